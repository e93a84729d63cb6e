//! Rankings with a draft of one skill, and its effects on a golden set.

use std::cmp::Reverse;
use std::collections::HashSet;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Hit, ScoreComponent};
use super::document::Document;
use super::eval::{ChangedQuery, EvalOptions, EvalReport, Outcome, outcomes};
use super::golden::{Case, Expect};
use super::marks::contains_word;
use super::request::Request;
use super::router::{RequestError, Router};
use super::task::exclusion_ranges;
use skills_skill::{Digest, SkillId, slice};

impl Router {
    /// Returns a copy of the router in its current state, without time limits for matchers, so that measurements give
    /// the same figures on a busy machine. It shares documents and tables, so it is cheap in time and memory.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        Self {
            weights: self.weights.clone().with_generous_time_limits(),
            words: self.words.clone(),
            lexicon: self.lexicon.clone(),
            model: self.model.clone(),
            matchers: super::matcher::chain(),
            off: self.off.clone(),
            index: self.index.clone(),
            columns: super::matcher::Columns::default(),
            revision: self.revision.clone(),
            is_canceled: self.is_canceled.clone(),
        }
    }

    /// Returns a snapshot in which `document` replaces the skill with its id. Its results equal those of an index
    /// built from scratch.
    #[must_use]
    pub fn with_document(&self, document: Document) -> Self {
        let mut draft = self.snapshot();
        draft.update(vec![document], &[]);
        draft
    }
}

impl Router {
    /// Returns the indexed description of a skill and its exclusion clauses.
    #[must_use]
    pub fn exclusion_clauses(&self, skill: &SkillId) -> Option<(String, Vec<String>)> {
        let entry = self.index.slot_of(skill).and_then(|slot| self.index.entry(slot))?;
        let stated = entry.document.full_description();
        let clause = |clause: &super::marks::Exclusion| {
            stated.get(clause.start as usize..clause.end as usize).map(|text| text.trim().to_owned())
        };
        Some((entry.document.description.clone(), entry.exclusions.iter().filter_map(clause).collect()))
    }
}

/// Metrics of a golden set; fractions of 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GoldenFigures {
    /// Queries that have a skill.
    pub queries: usize,
    /// Share of queries with an expected skill first.
    pub p_at_1: f64,
    /// Mean reciprocal rank of the best expected skill.
    pub mrr_at_10: f64,
    /// Queries for which a skill is first although none, or another skill, should be.
    pub false_triggers: usize,
    /// Queries that no skill fits, or that one skill must not win.
    #[serde(default)]
    pub out_of_scope: usize,
    /// Share of the queries that no skill fits which are rejected; absent if there are none.
    #[serde(default)]
    pub out_of_scope_rejected: Option<f64>,
}

impl From<&EvalReport> for GoldenFigures {
    fn from(report: &EvalReport) -> Self {
        Self {
            queries: report.queries,
            p_at_1: report.p_at_1,
            mrr_at_10: report.mrr_at_10,
            false_triggers: report.false_triggers.len(),
            out_of_scope: report.out_of_scope + report.near_misses.map_or(0, |near| near.queries),
            out_of_scope_rejected: report.out_of_scope_rejected,
        }
    }
}

impl GoldenFigures {
    /// Computes the metrics from the outcomes of cases.
    #[must_use]
    pub fn of(cases: &[Case], outcomes: &[Outcome]) -> Self {
        (&EvalReport::new(cases, outcomes)).into()
    }
}

/// Contribution of a clause of the description: the metrics without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClauseValue {
    /// Text of the clause.
    pub clause: String,
    /// Queries lost without it, minus those won.
    pub queries: i64,
    /// By how much the mean reciprocal rank falls without it.
    pub mrr: f64,
    /// False triggers that it prevents, minus those that it causes.
    #[serde(default)]
    pub false_triggers: i64,
}

/// A word of the draft that attracts queries of other skills, or of none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Attraction")]
pub struct AttractingWord {
    /// The word, as the queries have it.
    pub word: String,
    /// Queries that the skill wins wrongly, and to which this word contributes most.
    pub queries: Vec<String>,
    /// The expected skills of these queries.
    pub skills: Vec<SkillId>,
}

/// A change of the description that would win a missed query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// Text of the query.
    pub query: String,
    /// The word, or the two words, to add to the description.
    pub word: String,
    /// By how much the skill's score rises.
    pub gain: f64,
    /// The skill's rank after the change; none if it is not a result.
    pub rank: Option<usize>,
    /// Queries of the golden set that the change wins.
    #[serde(default)]
    pub won: usize,
    /// Queries of the golden set that the change loses.
    #[serde(default)]
    pub lost: usize,
    /// False triggers that the change adds, minus those that it removes.
    #[serde(default)]
    pub false_triggers: i64,
}

impl Advice {
    /// Describes the skill's rank after the change: `would rank first`.
    #[must_use]
    pub fn new_rank(&self) -> String {
        match self.rank {
            Some(1) => "would rank first".to_owned(),
            Some(rank) => format!("would have rank {rank}"),
            None => "would not be ranked".to_owned(),
        }
    }
}

/// Share of the queries of one half of the golden set with an expected skill first.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HalfFigures")]
pub struct SplitMetrics {
    /// Queries of the half that have a skill.
    pub queries: usize,
    /// Currently.
    pub before: f64,
    /// With the draft.
    pub after: f64,
}

/// A draft judged by queries that a rewrite prompt contains, and by those that it does not contain: 60 and 40 percent,
/// by the digest of the query.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// Queries that a rewrite prompt may contain.
    pub prompt: SplitMetrics,
    /// Queries that it never contains.
    pub held_out: SplitMetrics,
}

impl Split {
    /// Difference of the gains from which the scopes of skills overlap; below it, the wording decides.
    pub const WIDE_GAP: f64 = 0.05;

    fn new(cases: &[Case], before: &[Outcome], after: &[Outcome]) -> Self {
        let half = |requested: bool| {
            let mut half = SplitMetrics::default();
            for ((case, before), after) in cases.iter().zip(before).zip(after) {
                if matches!(case.expect, Expect::AnyOf(_)) && is_held_out(&case.query) == requested {
                    half.queries += 1;
                    half.before += f64::from(u8::from(before.rank == Some(1)));
                    half.after += f64::from(u8::from(after.rank == Some(1)));
                }
            }
            let queries = half.queries.max(1) as f64;
            SplitMetrics { before: half.before / queries, after: half.after / queries, ..half }
        };
        Self { prompt: half(false), held_out: half(true) }
    }

    /// Minimum number of queries of each half for a comparison.
    pub const MIN_QUERIES: usize = 5;

    /// Returns whether both halves have enough queries for a comparison.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.prompt.queries >= Self::MIN_QUERIES && self.held_out.queries >= Self::MIN_QUERIES
    }

    /// Returns the gain on queries of the prompt minus the gain on held-out queries.
    #[must_use]
    pub fn gap(&self) -> f64 {
        (self.prompt.after - self.prompt.before) - (self.held_out.after - self.held_out.before)
    }
}

/// Returns whether a query is held out, that is, never part of a rewrite prompt.
#[must_use]
pub fn is_held_out(query: &str) -> bool {
    let digest = Digest::of(query.trim().as_bytes()).to_string();
    let digits = skills_skill::slice(&digest, ..8);
    u32::from_str_radix(digits, 16).is_ok_and(|number| number % 10 >= 6)
}

/// Effects of a draft on a golden set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GoldenChange {
    /// The current metrics.
    pub before: GoldenFigures,
    /// The metrics with the draft.
    pub after: GoldenFigures,
    /// Queries that the draft wins.
    pub won: Vec<ChangedQuery>,
    /// Queries that the draft loses.
    pub lost: Vec<ChangedQuery>,
    /// False triggers that the draft adds.
    #[serde(default)]
    pub triggered: Vec<ChangedQuery>,
    /// False triggers that the draft removes.
    #[serde(default)]
    pub rejected: Vec<ChangedQuery>,
    /// The draft measured with the two parts of the golden set.
    #[serde(default)]
    pub split: Split,
}

/// Compares the outcomes of two rankings of the same cases.
#[must_use]
pub fn compare(cases: &[Case], before: &[Outcome], after: &[Outcome]) -> GoldenChange {
    let mut change = GoldenChange {
        before: GoldenFigures::of(cases, before),
        after: GoldenFigures::of(cases, after),
        split: Split::new(cases, before, after),
        ..GoldenChange::default()
    };
    for ((case, before), after) in cases.iter().zip(before).zip(after) {
        let was = before.is_expected(&case.expect);
        if was == after.is_expected(&case.expect) {
            continue;
        }
        let list = match (matches!(case.expect, Expect::AnyOf(_)), was) {
            (true, false) => &mut change.won,
            (true, true) => &mut change.lost,
            (false, false) => &mut change.rejected,
            (false, true) => &mut change.triggered,
        };
        // A first result that does not fit is not the winner of an out-of-scope query.
        let winner = |outcome: &Outcome| {
            let wins = outcome.fits || matches!(case.expect, Expect::AnyOf(_));
            outcome.first.clone().filter(|_| wins)
        };
        list.push(ChangedQuery { query: case.query.clone(), from: winner(before), to: winner(after) });
    }
    change
}

/// Splits a description into clauses: sentences, and their parts between semicolons.
#[must_use]
pub fn clauses(description: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut clause = String::new();
    let mut letters = description.chars();
    while let Some(letter) = letters.next() {
        clause.push(letter);
        let ends = match letter {
            ';' | '\n' | '。' => true,
            '.' if clause.ends_with("e.g.") || clause.ends_with("i.e.") => false,
            '.' | '!' | '?' => {
                // Closing quotes and brackets belong to the sentence that they end.
                let rest = letters.as_str();
                let after = rest.trim_start_matches(['\'', '"', '’', '”', '»', ')', ']']);
                let ends = after.chars().next().is_none_or(char::is_whitespace);
                if ends {
                    clause.push_str(rest.strip_suffix(after).unwrap_or_default());
                    letters = after.chars();
                }
                ends
            }
            _ => false,
        };
        if ends {
            out.push(std::mem::take(&mut clause));
        }
    }
    out.push(clause);
    out.into_iter().filter(|clause| clause.chars().any(char::is_alphanumeric)).collect()
}

/// Measures the value of each clause of a document's description and its `when_to_use` on a golden set, most valuable
/// first. `full` holds the outcomes with all clauses.
///
/// # Errors
/// Returns an error if a case has an empty query.
pub fn clause_values(
    router: &Router,
    document: &Document,
    cases: &[Case],
    full: &[Outcome],
) -> Result<Vec<ClauseValue>, RequestError> {
    let described = clauses(&document.description);
    let when = document.when_to_use.as_deref().map(clauses).unwrap_or_default();
    let parts: Vec<&String> = described.iter().chain(&when).collect();
    if parts.len() < 2 {
        return Ok(Vec::new());
    }
    let full = GoldenFigures::of(cases, full);
    let won = |figures: &GoldenFigures| (figures.p_at_1 * figures.queries as f64).round() as i64;
    let count = |figures: &GoldenFigures| i64::try_from(figures.false_triggers).unwrap_or(i64::MAX);
    let mut values = Vec::with_capacity(parts.len());
    for left_out in 0..parts.len() {
        let others = |from: usize, to: usize| -> String {
            (from..to).filter(|at| *at != left_out).map(|at| parts[at].as_str()).collect()
        };
        let shorter = Document {
            description: others(0, described.len()),
            when_to_use: document.when_to_use.as_ref().map(|_| others(described.len(), parts.len())),
            digest: None,
            ..document.clone()
        };
        let without = outcomes(&router.with_document(shorter), cases, EvalOptions::default())?;
        let without = GoldenFigures::of(cases, &without);
        values.push(ClauseValue {
            clause: parts[left_out].trim().to_owned(),
            queries: won(&full) - won(&without),
            mrr: full.mrr_at_10 - without.mrr_at_10,
            false_triggers: count(&without) - count(&full),
        });
    }
    values.sort_by(|a, b| b.queries.cmp(&a.queries).then(b.mrr.total_cmp(&a.mrr)));
    Ok(values)
}

/// Finds the words of a document that attract queries which the skill should not win; `outcomes` are those of
/// `router`.
///
/// # Errors
/// Returns an error if a case has an empty query.
pub fn attractions(
    router: &Router,
    skill: &SkillId,
    cases: &[Case],
    outcomes: &[Outcome],
) -> Result<Vec<AttractingWord>, RequestError> {
    let wrong = cases.iter().zip(outcomes).filter(|(case, outcome)| {
        outcome.first.as_ref() == Some(skill) && !outcome.is_expected(&case.expect)
    });
    let mut found: Vec<AttractingWord> = Vec::new();
    for (case, _) in wrong {
        let request = Request { intent: case.query.clone(), limit: 1, ..Request::default() };
        let answer = router.discover(&request)?;
        let Some(word) = answer.results.first().and_then(main_word) else { continue };
        let at = found.iter().position(|attraction| attraction.word == word).unwrap_or_else(|| {
            found.push(AttractingWord { word, queries: Vec::new(), skills: Vec::new() });
            found.len() - 1
        });
        found[at].queries.push(case.query.clone());
        if let Expect::AnyOf(ids) = &case.expect {
            let new = ids.iter().filter(|id| !found[at].skills.contains(id)).cloned().collect::<Vec<_>>();
            found[at].skills.extend(new);
        }
    }
    found.sort_by(|a, b| b.queries.len().cmp(&a.queries.len()).then_with(|| a.word.cmp(&b.word)));
    Ok(found)
}

/// Returns the word of the request with the largest contribution by name and description.
fn main_word(hit: &Hit) -> Option<String> {
    let words = hit.breakdown.rows.iter().filter(|row| row.query_word.is_some());
    let written = |row: &&super::answer::WordRow| {
        row.by_signal[ScoreComponent::Name as usize] + row.by_signal[ScoreComponent::Description as usize]
    };
    let best = words.max_by(|a, b| written(a).total_cmp(&written(b)))?;
    (written(&best) > 0.0).then(|| best.label.clone())
}

/// Maximum number of missed queries for which words are tried.
const MAX_ADVISED: usize = 5;
/// Maximum number of words tried for each query, and of words added together.
const MAX_WORDS: usize = 8;
const MAX_ADDED: usize = 4;
/// Maximum number of changes of a description that are measured on the golden set for one query.
const MAX_MEASURED: usize = 3;

/// Finds, for the skill's missed queries, the missing words that help most, each measured by a draft. `current` holds
/// the outcomes of `router`; `first` is the query that comes first, if it is lost, before those closest to a win.
///
/// # Errors
/// Returns an error if a case has an empty query.
pub fn advice(
    router: &Router,
    document: &Document,
    cases: &[Case],
    current: &[Outcome],
    first: Option<&str>,
) -> Result<Vec<Advice>, RequestError> {
    let own = cases.iter().zip(current).filter(|(case, outcome)| {
        matches!(&case.expect, Expect::AnyOf(ids) if ids.contains(&document.id)) && outcome.rank != Some(1)
    });
    let mut own: Vec<(&Case, &Outcome)> = own.collect();
    own.sort_by_key(|(case, outcome)| (first != Some(case.query.trim()), outcome.rank.unwrap_or(usize::MAX)));
    // Several files can have the same query, and several queries can lack the same word.
    let mut seen = HashSet::new();
    own.retain(|(case, _)| seen.insert(case.query.trim()));
    own.truncate(MAX_ADVISED);
    let all = own.into_par_iter().map(|(case, _)| advise(router, document, &case.query, cases, current));
    let mut all: Vec<Advice> = all.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    // Words of one query only are rarely what the description lacks.
    all.sort_by_key(|advice| (first != Some(advice.query.trim()), Reverse(advice.won)));
    let mut words = HashSet::new();
    all.retain(|advice| words.insert(advice.word.clone()));
    Ok(all)
}

/// Finds the missing words of a query that would help the skill most, measured by a draft: they raise its rank and win
/// more queries of the golden set than they lose. Each word is tried alone, then the best ones together. Returns `None`
/// if no such words are found.
///
/// # Errors
/// Returns an error if a case has an empty query.
pub fn advise(
    router: &Router,
    document: &Document,
    query: &str,
    cases: &[Case],
    current: &[Outcome],
) -> Result<Option<Advice>, RequestError> {
    let present = place(router, &document.id, query)?;
    if present.rank == Some(1) {
        return Ok(None);
    }
    let with = |words: &[&str]| {
        let description = format!("{} {}", document.description.trim_end(), words.join(" "));
        router.with_document(Document { description, digest: None, ..document.clone() })
    };
    let gain = |then: &QueryRank| then.score.unwrap_or(0.0) - present.score.unwrap_or(0.0);
    let rank = |place: &QueryRank| place.rank.unwrap_or(usize::MAX);
    let mut words = missing(router, &document.id, query)?;
    // A word that the skill excludes does not help.
    let excluded = exclusion_ranges(&document.description, &router.lexicon);
    let is_excluded = |word: &String| {
        excluded.iter().any(|range| contains_word(slice(&document.description, range.clone()), word))
    };
    words.retain(|word| !is_excluded(word));
    let alone = words.par_iter().map(|word| {
        let added = vec![word.as_str()];
        let then = place(&with(&added), &document.id, query)?;
        Ok((added, then))
    });
    let mut tried: Vec<(Vec<&str>, QueryRank)> = alone.collect::<Result<_, RequestError>>()?;
    tried.sort_by(|(_, a), (_, b)| rank(a).cmp(&rank(b)).then(gain(b).total_cmp(&gain(a))));
    let best: Vec<&str> = tried.iter().flat_map(|(words, _)| words.iter().copied()).collect();
    for count in 2..=MAX_ADDED.min(best.len()) {
        if tried.iter().any(|(_, then)| then.rank == Some(1)) {
            break;
        }
        // In the order of the query: adjacent words count as a pair too.
        let chosen = &best[..count];
        let added: Vec<&str> =
            words.iter().map(String::as_str).filter(|word| chosen.contains(word)).collect();
        let then = place(&with(&added), &document.id, query)?;
        tried.push((added, then));
    }
    // The fewest words that win; without such, those that help most.
    let words = |words: &[&str], then: &QueryRank| if then.rank == Some(1) { words.len() } else { 0 };
    tried.sort_by(|(a_words, a), (b_words, b)| {
        let fewer = words(a_words, a).cmp(&words(b_words, b));
        rank(a).cmp(&rank(b)).then(fewer).then(gain(b).total_cmp(&gain(a)))
    });
    let better = tried.into_iter().filter(|(_, then)| rank(then) < rank(&present));
    for (added, then) in better.take(MAX_MEASURED) {
        let change = compare(cases, current, &outcomes(&with(&added), cases, EvalOptions::default())?);
        let count = |list: &[ChangedQuery]| i64::try_from(list.len()).unwrap_or(i64::MAX);
        let false_triggers = count(&change.triggered) - count(&change.rejected);
        let (won, lost) = (change.won.len(), change.lost.len());
        // A better rank that wins no query does not help.
        let harmless = then.rank == Some(1) && lost == 0 && false_triggers <= 0;
        if harmless || count(&change.won) > count(&change.lost) + false_triggers.max(0) {
            let (query, word, gain) = (query.to_owned(), added.join(" "), gain(&then));
            return Ok(Some(Advice { query, word, gain, rank: then.rank, won, lost, false_triggers }));
        }
    }
    Ok(None)
}

/// Returns the words of a query that the description lacks and can have, in the order of the query; of many, those by
/// which the first result is furthest ahead. A misspelled word is replaced by the one it was read as.
fn missing(router: &Router, skill: &SkillId, query: &str) -> Result<Vec<String>, RequestError> {
    let ask = |skill: Option<SkillId>| {
        router.discover(&Request { intent: query.to_owned(), skill, limit: 1, ..Request::default() })
    };
    let (answer, first) = (ask(Some(skill.clone()))?, ask(None)?);
    let points = |hit: Option<&Hit>, word: usize| {
        let rows = hit.into_iter().flat_map(|hit| &hit.breakdown.rows);
        rows.filter(|row| row.query_word == Some(word)).map(|row| row.sum).sum::<f64>()
    };
    let has = |hit: Option<&Hit>, word: usize| {
        hit.is_some_and(|hit| {
            let rows = &hit.breakdown.rows;
            let mut described =
                hit.breakdown.terms.iter().filter(|part| part.field.as_deref() == Some("description"));
            described.any(|part| rows[part.row].query_word == Some(word))
        })
    };
    let own = answer.results.first();
    let mut found: Vec<(f64, usize, String)> = Vec::new();
    for (at, word) in answer.words.iter().enumerate().filter(|(at, word)| !word.stop && !has(own, *at)) {
        let written = query.get(word.start as usize..word.end as usize).unwrap_or_default();
        // The capital at the start of a query is not part of the word.
        let is_capitalized = at == 0 && written.chars().skip(1).all(char::is_lowercase);
        let text = match word.reading() {
            Some(read) => read.to_owned(),
            None if is_capitalized => written.to_lowercase(),
            None => written.to_owned(),
        };
        if is_describing(&text) {
            found.push((points(first.results.first(), at) - points(own, at), at, text));
        }
    }
    found.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
    let mut stems = HashSet::new();
    found.retain(|(_, _, text)| {
        let stem: Vec<String> = router.words.split(text).into_iter().map(|word| word.stem).collect();
        stems.insert(stem)
    });
    found.truncate(MAX_WORDS);
    found.sort_by_key(|(_, at, _)| *at);
    Ok(found.into_iter().map(|(_, _, text)| text).collect())
}

/// Returns whether a word can describe a skill: not an amount such as `20k`, nor a contraction such as `we're`.
fn is_describing(word: &str) -> bool {
    let amount = word.strip_suffix(['k', 'K', 'm', 'M', 'x', 'X', '%']).unwrap_or(word);
    let is_amount = amount.chars().all(|letter| letter.is_ascii_digit() || matches!(letter, '.' | ','));
    !is_amount && !word.contains(['\'', '’'])
}

/// Returns the rank of the best of some skills for a query, without a limit, and how far the first result is ahead of
/// it.
///
/// # Errors
/// Returns an error if the query is empty.
pub fn rank_of(
    router: &Router,
    query: &str,
    skills: &[SkillId],
) -> Result<Option<(usize, f64)>, RequestError> {
    let request = Request { intent: query.to_owned(), limit: 1, ..Request::default() };
    let Some((_, first)) = router.order(&request)?.results.into_iter().next() else { return Ok(None) };
    let mut best: Option<(usize, f64)> = None;
    for skill in skills {
        let place = place(router, skill, query)?;
        let found = place.rank.zip(place.score).map(|(rank, score)| (rank, first - score));
        best = [best, found].into_iter().flatten().min_by_key(|(rank, _)| *rank);
    }
    Ok(best)
}

/// Position of a skill in the ranking for a query.
struct QueryRank {
    rank: Option<usize>,
    score: Option<f64>,
}

fn place(router: &Router, skill: &SkillId, query: &str) -> Result<QueryRank, RequestError> {
    let request =
        Request { intent: query.to_owned(), skill: Some(skill.clone()), limit: 1, ..Request::default() };
    let answer = router.discover(&request)?;
    let hit = answer.results.first();
    Ok(QueryRank { rank: hit.map(|hit| hit.rank.unwrap_or(1)), score: hit.map(|hit| hit.score) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::eval::outcome;
    use super::super::weights::Weights;
    use super::*;

    fn documents() -> Vec<Document> {
        let text = |n: usize| match n % 4 {
            0 => format!("Extracts tables number {n} from PDF files. Use for invoices."),
            1 => format!("Writes unit tests {n} for Rust crates; runs them with nextest."),
            2 => format!("Deploys service {n} to Kubernetes. Not for databases."),
            _ => format!("Translates text {n} between German and English."),
        };
        (0..60).map(|n| Document::new(format!("skill-{n}"), format!("skill-{n}"), text(n))).collect()
    }

    fn cases() -> Vec<Case> {
        let case = |query: &str, id: &str| Case {
            query: query.to_owned(),
            expect: Expect::AnyOf(vec![SkillId::new(id)]),
        };
        vec![
            case("pull the spreadsheet out of a stripe receipt", "skill-0"),
            case("deploy service 2 to the cluster", "skill-2"),
        ]
    }

    fn router() -> Router {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update(documents(), &[]);
        router
    }

    #[test]
    fn a_canceled_measurement_stops_at_its_next_request() {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update(vec![Document::new("pdf", "pdf-tables", "Extracts tables.")], &[]);
        let left = AtomicUsize::new(2);
        let is_canceled = move || {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
        };
        let router = router.snapshot().cancelable(Arc::new(is_canceled));
        let document = Document::new("pdf", "pdf-tables", "Extracts tables. Reads forms. Merges files.");
        let cases = &cases()[..1];
        let full = outcomes(&router, cases, EvalOptions::default()).unwrap();
        assert_eq!(clause_values(&router, &document, cases, &full), Err(RequestError::Canceled));
    }

    #[test]
    fn draft_ranks_like_a_rebuilt_index() {
        let router = router();
        let draft =
            Document::new("skill-0", "skill-0", "Reads stripe receipts into a spreadsheet. Not for tables.");
        let overlay = router.with_document(draft.clone());
        let mut all = documents();
        all[0] = draft;
        let mut rebuilt = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        rebuilt.update(all, &[]);
        for query in
            ["stripe receipt", "tables from pdf", "deploy to kubernetes", "translate german", "skill-0"]
        {
            let request = Request { intent: query.to_owned(), limit: 100, ..Request::default() };
            let (a, b) = (overlay.discover(&request).unwrap(), rebuilt.discover(&request).unwrap());
            assert_eq!(a.results.len(), b.results.len(), "{query}");
            for (a, b) in a.results.iter().zip(&b.results) {
                assert_eq!(a.skill_id, b.skill_id, "{query}");
                assert!((a.score - b.score).abs() < 1e-6, "{query}: {} {}", a.score, b.score);
            }
            assert_eq!(a.verdict, b.verdict, "{query}");
        }
    }

    #[test]
    fn won_and_lost_queries_name_both_skills() {
        let router = router();
        let draft = Document::new("skill-0", "skill-0", "Pulls a spreadsheet out of a stripe receipt.");
        let measured = |router: &Router| outcomes(router, &cases(), EvalOptions::default()).unwrap();
        let change = compare(&cases(), &measured(&router), &measured(&router.with_document(draft)));
        assert!(change.after.p_at_1 > change.before.p_at_1, "{change:?}");
        assert_eq!(change.won.len(), 1);
        assert_eq!(change.won[0].to, Some(SkillId::new("skill-0")));
        assert_ne!(change.won[0].from, change.won[0].to);
        assert!(change.lost.is_empty());
    }

    #[test]
    fn advice_is_measured() {
        let router = router();
        let document = documents().swap_remove(0);
        let current = outcomes(&router, &cases(), EvalOptions::default()).unwrap();
        let found = advice(&router, &document, &cases(), &current, None).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        let words = ["spreadsheet", "stripe", "receipt", "pull"];
        assert!(found[0].word.split(' ').all(|word| words.contains(&word)), "{found:?}");
        assert_eq!((found[0].rank, found[0].won, found[0].lost), (Some(1), 1, 0));
        let twice = [cases(), cases()].concat();
        let again = outcomes(&router, &twice, EvalOptions::default()).unwrap();
        assert_eq!(
            advice(&router, &document, &twice, &again, None).unwrap().len(),
            1,
            "a query of two files"
        );
        // The advice must equal the result of a draft with the word.
        let description = format!("{} {}", document.description, found[0].word);
        let draft = router.with_document(Document { description, ..document });
        let first = outcome(&draft, &cases()[0], EvalOptions::default()).unwrap().first;
        assert_eq!(first, Some(SkillId::new("skill-0")));
    }

    #[test]
    fn advice_adds_several_words_and_corrects_misspelled_ones() {
        let mut router = router();
        let plans = Document::new("plans", "plans", "Plans tests of features.");
        router.update(
            vec![
                plans.clone(),
                Document::new(
                    "criteria",
                    "acceptance-criteria",
                    "Writes acceptance criteria and scenarios for a checkout with gherkin.",
                ),
            ],
            &[],
        );
        let document = plans;
        let advised = |query: &str| {
            let case = Case { query: query.to_owned(), expect: Expect::AnyOf(vec![SkillId::new("plans")]) };
            let current = outcomes(&router, std::slice::from_ref(&case), EvalOptions::default()).unwrap();
            advise(&router, &document, query, &[case], &current).unwrap()
        };
        let found = advised("we're after gherkin scenarios for the checkout, 20k of them").unwrap();
        assert_eq!((found.rank, found.won, found.lost), (Some(1), 1, 0), "{found:?}");
        assert!(found.word.split(' ').count() > 1, "{found:?}");
        let expected = ["gherkin", "scenarios", "checkout"];
        assert!(found.word.split(' ').all(|word| expected.contains(&word)), "{found:?}");
        let found = advised("features of the chekout, the checkout scenarois").unwrap();
        let words: Vec<&str> = found.word.split(' ').collect();
        assert!(words.iter().all(|word| expected.contains(word)), "{found:?}");
        assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len(), "{found:?}");
    }

    #[test]
    fn words_that_only_the_body_contains_are_missing() {
        let mut router = router();
        let body = "Then the checkout.".to_owned();
        let text = skills_skill::IndexText { body, ..skills_skill::IndexText::default() };
        let plans = Document { text: Some(text), ..Document::new("plans", "plans", "Plans tests.") };
        router.update(vec![plans, Document::new("shop", "shop", "Sells goods with a checkout.")], &[]);
        let found = missing(&router, &SkillId::new("plans"), "tests of the checkout").unwrap();
        assert_eq!(found, ["checkout"]);
    }

    #[test]
    fn amounts_and_contractions_are_not_suggested() {
        for word in ["20k", "5M", "2,000", "3.5x", "50%", "we're", "don’t"] {
            assert!(!is_describing(word), "{word}");
        }
        for word in ["h264", "s3", "checkout", "表"] {
            assert!(is_describing(word), "{word}");
        }
    }

    #[test]
    fn when_to_use_is_ranked_and_its_clauses_have_values() {
        let mut router = router();
        let with = |description: &str, when: Option<&str>| Document {
            when_to_use: when.map(str::to_owned),
            ..Document::new("skill-0", "skill-0", description)
        };
        let when = "Pulls a spreadsheet out of a stripe receipt. Sings. Not for deploying.";
        let draft = with("Reads files.", Some(when));
        let full = outcomes(&router.with_document(draft.clone()), &cases(), EvalOptions::default()).unwrap();
        assert_eq!(full[0].rank, Some(1));
        let values = clause_values(&router, &draft, &cases(), &full).unwrap();
        let value = |clause: &str| values.iter().find(|one| one.clause.starts_with(clause)).unwrap().queries;
        assert_eq!((values.len(), value("Pulls"), value("Sings"), value("Reads")), (4, 1, 0, 0));
        router.update(vec![draft], &[]);
        let request = |intent: &str| Request { intent: intent.to_owned(), ..Request::default() };
        let hit = router.discover(&request("stripe receipt, files")).unwrap().results.swap_remove(0);
        assert_eq!((hit.skill_id, hit.description.as_str()), (SkillId::new("skill-0"), "Reads files."));
        assert!(hit.reason.contains("stripe"), "{}", hit.reason);
        let marked =
            |mark: &super::super::answer::Mark| &hit.description[mark.start as usize..mark.end as usize];
        assert_eq!(hit.description_marks.iter().map(marked).collect::<Vec<_>>(), ["files"]);
        let hit = router.discover(&request("deploying a stripe receipt")).unwrap().results.swap_remove(0);
        assert_eq!(hit.exclusion_note.as_deref(), Some("Not for deploying."));
    }

    #[test]
    fn clauses_end_with_sentences_and_semicolons() {
        assert_eq!(
            clauses("Reads v1.2 files; writes CSV. Use it daily"),
            ["Reads v1.2 files;", " writes CSV.", " Use it daily"]
        );
        assert!(clauses("One only").len() == 1);
        assert_eq!(
            clauses("Use for “fix it.” Also for 'this page (e.g. a form).' Not at 3.5 or \"a.b\""),
            ["Use for “fix it.”", " Also for 'this page (e.g. a form).'", " Not at 3.5 or \"a.b\""]
        );
        let document = Document::new("skill-2", "skill-2", "Deploys service 2 to Kubernetes. Sings.");
        let router = router();
        let full =
            outcomes(&router.with_document(document.clone()), &cases(), EvalOptions::default()).unwrap();
        let values = clause_values(&router, &document, &cases(), &full).unwrap();
        assert_eq!(values.len(), 2);
        assert!(values[0].mrr >= values[1].mrr);
    }
}
