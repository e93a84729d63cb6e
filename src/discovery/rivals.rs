//! Rivals of one skill, and comparison of a pair of skills.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::collisions::{LostProbe, MAX_PROBES, ProbedClause, Probing};
use super::document::Document;
use super::draft::clauses as sentences;
use super::eval::{EvalOptions, EvalReport, eval};
use super::golden::{Case, Expect};
use super::phrases::Lexicon;
use super::router::{RequestError, Router};
use super::task::{exclusion_ranges, without};
use super::tokenize::Words;
use skills_skill::SkillId;

/// Maximum number of rivals in a report.
const MAX_RIVALS: usize = 12;
/// Maximum number of semantically similar skills that are listed without winning a request.
const MAX_NEAR: usize = 5;
/// Cosine from which two skills are listed for review.
const NEAR_FROM: f64 = 0.5;
/// Maximum number of lost requests and queries that are listed.
const MAX_EXAMPLES: usize = 12;

/// A golden query, and who wins it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GoldenDuel")]
pub struct GoldenComparison {
    /// Text of the query.
    pub query: String,
    /// The skill that wins it.
    pub won: SkillId,
}

/// A skill that competes with another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rival {
    /// Id of the rival.
    pub skill_id: SkillId,
    /// Probe requests of the skill that the rival wins.
    pub lost: usize,
    /// Probe requests of the rival that the skill wins.
    pub won: usize,
    /// Probe requests of the rival.
    pub made: usize,
    /// Golden queries that expect the skill and that the rival wins.
    pub golden_lost: Vec<String>,
    /// Golden queries that expect the rival and that the skill wins.
    pub golden_won: Vec<String>,
    /// Cosine of the two meanings: a candidate for review, not used for the order.
    pub similarity: f64,
}

/// A skill among its rivals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RivalReport {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// Why no request can find it, as a sidecar or a deprecated skill; then no probe requests are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ranked: Option<String>,
    /// Probe requests made from its description.
    pub made: usize,
    /// Those that it wins.
    #[serde(rename = "kept")]
    pub won: usize,
    /// The clauses of its description.
    pub clauses: Vec<ProbedClause>,
    /// Probe requests that it does not win.
    pub lost: Vec<LostProbe>,
    /// Golden queries that expect it.
    pub golden: usize,
    /// Those that it wins.
    #[serde(rename = "golden_won")]
    pub golden_won: usize,
    /// Its rivals, the one that wins most requests first.
    pub rivals: Vec<Rival>,
}

/// One side of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairSide {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// Probe requests made from its description.
    pub made: usize,
    /// Those that it wins.
    #[serde(rename = "kept")]
    pub won: usize,
    /// Those that the other side wins.
    pub lost: usize,
    /// The clauses of its description.
    pub clauses: Vec<ProbedClause>,
    /// Terms that only this side has, the most useful first.
    pub own_terms: Vec<String>,
    /// Its probe requests that have such a term.
    pub separable: usize,
    /// Those of them that it wins.
    pub separable_kept: usize,
    /// The clause that separates it from the other side: the clause with unique terms whose requests it wins most.
    pub separating_clause: Option<String>,
    /// The clause whose requests it loses most.
    pub lost_clause: Option<String>,
}

/// A way to separate a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AdviceKind {
    /// Add to both descriptions what they are not for.
    AddExclusion,
    /// Merge the two into one skill.
    Merge,
    /// Assign each contested clause to the side that wins it.
    Split,
}

/// A description that an option would write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdvisedText {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// New description of the skill.
    pub description: String,
}

/// An option, measured by a draft of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairAdvice {
    /// What to do.
    pub kind: AdviceKind,
    /// Current number of probe requests of both that a skill other than the expected one wins.
    pub lost_before: usize,
    /// The same number with the option.
    pub lost_after: usize,
    /// Change of the number of golden queries won; absent without a golden set.
    pub golden: Option<i64>,
    /// Change of the number of tokens of both descriptions.
    pub tokens: i64,
    /// The new descriptions; for a merge, that of the remaining skill.
    pub texts: Vec<AdvisedText>,
    /// The skill that a merge removes.
    pub removed: Option<SkillId>,
    /// Whether it is an improvement, and the best of all options.
    pub is_best: bool,
}

/// Two skills and what would separate them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairReport {
    /// The first skill.
    pub a: PairSide,
    /// The second skill.
    pub b: PairSide,
    /// Golden queries that expect one of them.
    pub golden: Vec<GoldenComparison>,
    /// Cosine of the two meanings; not used in advice.
    pub similarity: f64,
    /// Probe requests of both without a distinguishing term.
    pub shared: usize,
    /// Number of those that their own side loses to the other.
    pub shared_lost: usize,
    /// The options, the best first.
    pub advice: Vec<PairAdvice>,
}

impl Router {
    /// Reports the rivals of a skill; `None` if the skill is unknown.
    ///
    /// # Errors
    /// Returns an error if a case has an empty query.
    pub fn rivals(&self, id: &SkillId, cases: &[Case]) -> Result<Option<RivalReport>, RequestError> {
        let Some(document) = self.index.document(id) else { return Ok(None) };
        let not_ranked = self.not_ranked(id);
        let probes = if not_ranked.is_none() { self.probes(document, MAX_PROBES) } else { Vec::new() };
        let own = self.probing(probes)?;
        let mut golden = GoldenRivals::of(self, id, cases)?;
        let mut candidates: Vec<SkillId> =
            own.lost_to(id).into_iter().map(|(rival, _)| rival.clone()).collect();
        candidates.extend(golden.by_rival.keys().cloned());
        let near = self.nearest(id, MAX_NEAR).into_iter().filter(|(_, cosine)| *cosine >= NEAR_FROM);
        candidates.extend(near.map(|(rival, _)| rival));
        let mut seen = HashSet::new();
        candidates.retain(|candidate| seen.insert(candidate.clone()));
        candidates.truncate(2 * MAX_RIVALS);
        let mut rivals = Vec::with_capacity(candidates.len());
        for rival in candidates {
            let Some(document) = self.index.document(&rival) else { continue };
            let theirs = self.probing(self.probes(document, MAX_PROBES))?;
            let (golden_lost, golden_won) = golden.by_rival.remove(&rival).unwrap_or_default();
            rivals.push(Rival {
                lost: own.won_by(&rival),
                won: theirs.won_by(id),
                made: theirs.made(),
                golden_lost,
                golden_won,
                similarity: self.similarity(id, &rival).unwrap_or_default(),
                skill_id: rival,
            });
        }
        let weight =
            |rival: &Rival| (rival.golden_lost.len(), rival.lost, rival.golden_won.len() + rival.won);
        rivals.sort_by(|a, b| weight(b).cmp(&weight(a)).then(b.similarity.total_cmp(&a.similarity)));
        rivals.truncate(MAX_RIVALS);
        let lost = own.each().filter(|(_, winner)| *winner != Some(id));
        let lost = lost.map(|(query, won)| LostProbe { query: query.to_owned(), won: won.cloned() });
        Ok(Some(RivalReport {
            skill_id: id.clone(),
            not_ranked,
            made: own.made(),
            won: own.won_by(id),
            clauses: own.probed_clauses(id),
            lost: lost.take(MAX_EXAMPLES).collect(),
            golden: golden.expected,
            golden_won: golden.won,
            rivals,
        }))
    }

    /// Compares two skills. `tokens` counts the tokens of a text; `complete` returns the document of a skill with
    /// headings and body.
    ///
    /// # Errors
    /// Returns an error if a case has an empty query.
    pub fn pair(
        &self,
        (a, b): (&SkillId, &SkillId),
        cases: &[Case],
        tokens: &dyn Fn(&str) -> u32,
        complete: &dyn Fn(&SkillId) -> Option<Document>,
    ) -> Result<Option<PairReport>, RequestError> {
        let (Some(first), Some(second)) = (complete(a), complete(b)) else { return Ok(None) };
        let pair = Pair {
            router: self,
            probings: [
                self.probing(self.probes(&first, MAX_PROBES))?,
                self.probing(self.probes(&second, MAX_PROBES))?,
            ],
            stems: [&first, &second].map(|document| stems(document, &self.words, &self.lexicon)),
            documents: [first, second],
        };
        let sides = [pair.side(0), pair.side(1)];
        let mut golden = Vec::new();
        for case in cases {
            let Expect::AnyOf(expected) = &case.expect else { continue };
            if !(expected.contains(a) || expected.contains(b)) {
                continue;
            }
            if let Some(won) = self.winner(&case.query)? {
                golden.push(GoldenComparison { query: case.query.clone(), won });
            }
        }
        let (shared, shared_lost) = pair.shared();
        let advice = pair.advice(&sides, cases, tokens)?;
        let [first, second] = sides;
        Ok(Some(PairReport {
            similarity: self.similarity(a, b).unwrap_or_default(),
            a: first,
            b: second,
            golden,
            shared,
            shared_lost,
            advice,
        }))
    }

    /// Returns a copy of the router with some documents replaced and others removed.
    fn with_changes(&self, documents: Vec<Document>, removed: &[SkillId]) -> Self {
        let mut draft = self.snapshot();
        draft.update(documents, removed);
        draft
    }
}

/// The golden queries for which a skill is first or expected.
#[derive(Default)]
struct GoldenRivals {
    /// Number of queries that expect the skill.
    expected: usize,
    /// Number of those with an expected skill first.
    won: usize,
    /// By rival: the queries that it wins instead of the skill, and those that the skill wins instead of it.
    by_rival: HashMap<SkillId, (Vec<String>, Vec<String>)>,
}

impl GoldenRivals {
    fn of(router: &Router, id: &SkillId, cases: &[Case]) -> Result<Self, RequestError> {
        let mut golden = Self::default();
        for case in cases {
            let Expect::AnyOf(expected) = &case.expect else { continue };
            let is_own = expected.contains(id);
            let Some(winner) = router.winner(&case.query)? else {
                golden.expected += usize::from(is_own);
                continue;
            };
            if is_own {
                golden.expected += 1;
                golden.won += usize::from(expected.contains(&winner));
                if !expected.contains(&winner) {
                    golden.by_rival.entry(winner).or_default().0.push(case.query.clone());
                }
            } else if winner == *id
                && let Some(first) = expected.first()
            {
                golden.by_rival.entry(first.clone()).or_default().1.push(case.query.clone());
            }
        }
        Ok(golden)
    }
}

/// Returns the content stems of what a document claims, each with the first word that has it.
fn stems(document: &Document, words: &Words, lexicon: &Lexicon) -> BTreeMap<String, String> {
    let excluded = exclusion_ranges(&document.description, lexicon);
    let text = format!(
        "{} {} {}",
        document.name.replace(['-', '_', '/'], " "),
        without(&document.description, &excluded),
        document.tags.join(" ")
    );
    let mut out = BTreeMap::new();
    for word in words.split(&text).into_iter().filter(|word| !word.is_stop_word) {
        out.entry(word.stem).or_insert(word.text);
    }
    out
}

/// Two skills with their ranked probes.
struct Pair<'a> {
    router: &'a Router,
    documents: [Document; 2],
    probings: [Probing; 2],
    stems: [BTreeMap<String, String>; 2],
}

/// Requests with the skill that should win each.
type ExpectedWinners<'a> = Vec<(&'a str, &'a SkillId)>;

impl Pair<'_> {
    fn id(&self, side: usize) -> &SkillId {
        &self.documents[side].id
    }

    /// Returns the stems that a side has and the other one does not.
    fn own_stems(&self, side: usize) -> HashSet<&str> {
        let other = &self.stems[1 - side];
        self.stems[side].keys().filter(|stem| !other.contains_key(*stem)).map(String::as_str).collect()
    }

    fn has_any(&self, probe: &str, stems: &HashSet<&str>) -> bool {
        self.router.words.split(probe).iter().any(|word| stems.contains(word.stem.as_str()))
    }

    fn side(&self, side: usize) -> PairSide {
        let (own, other, probing) = (self.id(side), self.id(1 - side), &self.probings[side]);
        let stems = self.own_stems(side);
        let separable: Vec<bool> = probing
            .each()
            .filter(|(probe, _)| self.has_any(probe, &stems))
            .map(|(_, winner)| winner == Some(own))
            .collect();
        let mut terms: Vec<(usize, f64, &str)> = stems
            .iter()
            .map(|stem| {
                let won = probing.each().filter(|(probe, winner)| {
                    *winner == Some(own)
                        && self.router.words.split(probe).iter().any(|word| word.stem == **stem)
                });
                (won.count(), self.router.index.rarity(stem), self.stems[side][*stem].as_str())
            })
            .collect();
        terms.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then_with(|| a.2.cmp(b.2)));
        let clauses = probing.probed_clauses(own);
        let separates = |clause: &&ProbedClause| clause.won > 0 && self.has_any(&clause.clause, &stems);
        let best = clauses.iter().filter(separates).max_by_key(|clause| {
            let own_words = self.router.words.split(&clause.clause);
            let own_words = own_words.iter().filter(|word| stems.contains(word.stem.as_str())).count();
            (clause.won * 100 / clause.made.max(1), clause.won, own_words)
        });
        let lost_in =
            |at: usize| probing.winners[at].iter().filter(|winner| winner.as_ref() == Some(other)).count();
        let lost_clause = (0..clauses.len()).filter(|at| lost_in(*at) > 0).max_by_key(|at| lost_in(*at));
        PairSide {
            skill_id: own.clone(),
            made: probing.made(),
            won: probing.won_by(own),
            lost: probing.won_by(other),
            own_terms: terms
                .into_iter()
                .filter(|term| term.0 > 0)
                .take(3)
                .map(|term| term.2.to_owned())
                .collect(),
            separable: separable.len(),
            separable_kept: separable.iter().filter(|is_separable| **is_separable).count(),
            separating_clause: best.map(|clause| clause.clause.clone()),
            lost_clause: lost_clause.map(|at| clauses[at].clause.clone()),
            clauses,
        }
    }

    /// Counts the probes of both sides without a distinguishing term, and those of them that their own side loses to
    /// the other.
    fn shared(&self) -> (usize, usize) {
        let (mut shared, mut lost) = (0, 0);
        for side in [0, 1] {
            let stems = self.own_stems(side);
            for (_, winner) in self.probings[side].each().filter(|(probe, _)| !self.has_any(probe, &stems)) {
                shared += 1;
                lost += usize::from(winner == Some(self.id(1 - side)));
            }
        }
        (shared, lost)
    }

    /// Returns all probes with the skill that should win each.
    fn expected_winners(&self) -> ExpectedWinners<'_> {
        let of = |side: usize| self.probings[side].each().map(move |(probe, _)| (probe, self.id(side)));
        of(0).chain(of(1)).collect()
    }

    fn advice(
        &self,
        sides: &[PairSide; 2],
        cases: &[Case],
        tokens: &dyn Fn(&str) -> u32,
    ) -> Result<Vec<PairAdvice>, RequestError> {
        let now = eval(self.router, cases, EvalOptions::default())?;
        let before = count_lost(self.router, &self.expected_winners())?;
        let mut options = Vec::new();
        for option in [self.exclusion(sides), Some(self.merge()), self.split()].into_iter().flatten() {
            let draft = self.router.with_changes(option.documents.clone(), &option.removed);
            let lost_after = count_lost(&draft, &option.wanted)?;
            let golden = self.golden_change(&now, &draft, cases, &option.removed)?;
            let count = |documents: &[Document]| -> i64 {
                documents.iter().map(|document| i64::from(tokens(&document.description))).sum()
            };
            let changed: Vec<Document> = self
                .documents
                .iter()
                .filter(|old| {
                    option.removed.contains(&old.id) || option.documents.iter().any(|new| new.id == old.id)
                })
                .cloned()
                .collect();
            let texts = option.documents.iter().map(|document| AdvisedText {
                skill_id: document.id.clone(),
                description: document.description.clone(),
            });
            options.push(PairAdvice {
                kind: option.kind,
                lost_before: before,
                lost_after,
                golden,
                tokens: count(&option.documents) - count(&changed),
                texts: texts.collect(),
                removed: option.removed.first().cloned(),
                is_best: false,
            });
        }
        // A change that loses golden queries ranks last, however many probes it wins.
        let rank = |advice: &PairAdvice| (advice.golden.unwrap_or(0) < 0, advice.lost_after, advice.tokens);
        options.sort_by_key(rank);
        if let Some(first) = options.first_mut() {
            let wins_queries = first.golden.is_some_and(|golden| golden > 0);
            let is_harmless = first.golden.is_none_or(|golden| golden >= 0);
            first.is_best = is_harmless && (first.lost_after < first.lost_before || wins_queries);
        }
        Ok(options)
    }

    /// Counts the golden queries won with a draft, minus those won now. Queries that expected a removed skill expect
    /// the other one.
    fn golden_change(
        &self,
        now: &EvalReport,
        draft: &Router,
        cases: &[Case],
        removed: &[SkillId],
    ) -> Result<Option<i64>, RequestError> {
        if now.queries == 0 {
            return Ok(None);
        }
        let remaining = self.documents.iter().map(|document| &document.id).find(|id| !removed.contains(id));
        let moved = |case: &Case| {
            let mut case = case.clone();
            if let (Expect::AnyOf(ids), Some(remaining)) = (&mut case.expect, remaining) {
                ids.iter_mut().filter(|id| removed.contains(id)).for_each(|id| *id = remaining.clone());
            }
            case
        };
        let cases: Vec<Case> = cases.iter().map(moved).collect();
        let then = eval(draft, &cases, EvalOptions::default())?;
        let won = |report: &EvalReport| i64::try_from(report.queries - report.lost.len()).unwrap_or(i64::MAX);
        Ok(Some(won(&then) - won(now)))
    }

    /// Adds “Not for X; see B.” to both descriptions, where X is the clause that separates the other side.
    fn exclusion(&self, sides: &[PairSide; 2]) -> Option<Draft<'_>> {
        let mut documents = Vec::new();
        for side in [0, 1] {
            let Some(clause) = &sides[1 - side].separating_clause else { continue };
            let document = &self.documents[side];
            let text = format!("Not for {}; see {}.", as_object(clause), self.documents[1 - side].name);
            let mut description = document.description.trim_end().to_owned();
            if !description.ends_with(['.', '!', '?', '。']) {
                description.push('.');
            }
            description = format!("{description} {text}");
            documents.push(Document { description, digest: None, ..document.clone() });
        }
        let wanted = self.expected_winners();
        (!documents.is_empty()).then_some(Draft {
            kind: AdviceKind::AddExclusion,
            documents,
            removed: Vec::new(),
            wanted,
        })
    }

    /// Merges both into one skill with the clauses of both, without repetition.
    fn merge(&self) -> Draft<'_> {
        let keeper = usize::from(self.probings[1].won_by(self.id(1)) > self.probings[0].won_by(self.id(0)));
        let (keeper_document, other_document) = (&self.documents[keeper], &self.documents[1 - keeper]);
        let mut description = keeper_document.description.trim_end().to_owned();
        let stems = &self.stems[keeper];
        for sentence in sentences(&other_document.description) {
            let words = self.router.words.split(&sentence);
            let new =
                words.iter().filter(|word| !word.is_stop_word && !stems.contains_key(&word.stem)).count();
            // Skips sentences that add nothing, and sentences that exclude the skill merged in.
            if new > 0
                && !exclusion_ranges(&sentence, &self.router.lexicon)
                    .iter()
                    .any(|range: &Range<usize>| range.start == 0)
            {
                description = format!("{description} {}", sentence.trim());
            }
        }
        let mut text = keeper_document.text.clone();
        if let (Some(text), Some(more)) = (&mut text, &other_document.text) {
            text.headings.extend(more.headings.iter().cloned());
            text.body = format!("{}\n{}", text.body, more.body);
        }
        let mut tags = keeper_document.tags.clone();
        tags.extend(other_document.tags.iter().filter(|tag| !keeper_document.tags.contains(tag)).cloned());
        let document = Document { description, text, tags, digest: None, ..keeper_document.clone() };
        let wanted =
            self.expected_winners().into_iter().map(|(probe, _)| (probe, &keeper_document.id)).collect();
        Draft {
            kind: AdviceKind::Merge,
            documents: vec![document],
            removed: vec![other_document.id.clone()],
            wanted,
        }
    }

    /// Removes from each side the clauses of which it loses most probes to the other.
    fn split(&self) -> Option<Draft<'_>> {
        let mut documents = Vec::new();
        let mut moved: HashSet<&str> = HashSet::new();
        for side in [0, 1] {
            let (document, probing, other) = (&self.documents[side], &self.probings[side], self.id(1 - side));
            let mut description = document.description.clone();
            for (clause, winners) in probing.clauses.iter().zip(&probing.winners) {
                let lost = winners.iter().filter(|winner| winner.as_ref() == Some(other)).count();
                if 2 * lost <= winners.len() {
                    continue;
                }
                let shorter = without_clause(&description, &clause.text);
                if shorter.chars().any(char::is_alphanumeric) && shorter != description {
                    description = shorter;
                    moved.extend(clause.probes.iter().map(String::as_str));
                }
            }
            if description != document.description {
                documents.push(Document { description, digest: None, ..document.clone() });
            }
        }
        let wanted = [0, 1].into_iter().flat_map(|side| {
            let moved = &moved;
            self.probings[side]
                .each()
                .map(move |(probe, _)| (probe, self.id(if moved.contains(probe) { 1 - side } else { side })))
        });
        let wanted = wanted.collect();
        (!documents.is_empty()).then_some(Draft {
            kind: AdviceKind::Split,
            documents,
            removed: Vec::new(),
            wanted,
        })
    }
}

/// An option that is not measured yet.
struct Draft<'a> {
    kind: AdviceKind,
    documents: Vec<Document>,
    removed: Vec<SkillId>,
    wanted: ExpectedWinners<'a>,
}

/// Counts the probes that a skill other than the expected one wins.
fn count_lost(router: &Router, wanted: &ExpectedWinners<'_>) -> Result<usize, RequestError> {
    let mut lost = 0;
    for (probe, id) in wanted {
        lost += usize::from(router.winner(probe)?.as_ref() != Some(id));
    }
    Ok(lost)
}

/// Converts a clause to the object of “Not for …”: lower-cases its first letter, unless it begins with a name.
fn as_object(clause: &str) -> String {
    let clause = clause.trim_end_matches(['.', ';', ',']);
    let mut letters = clause.chars();
    let Some(first) = letters.next() else { return String::new() };
    let rest = letters.as_str();
    let is_name = rest.chars().next().is_some_and(char::is_uppercase);
    if is_name { clause.to_owned() } else { format!("{}{rest}", first.to_lowercase()) }
}

/// Removes one clause from a description, with adjacent punctuation and spaces.
fn without_clause(description: &str, clause: &str) -> String {
    let Some((before, after)) = description.split_once(clause) else { return description.to_owned() };
    // An opening (“Use for”) is removed along with its only clause.
    let open = before.rsplit(['.', '!', '?', ';']).next().unwrap_or_default();
    let sentences = before.strip_suffix(open).unwrap_or_default();
    let after = after.trim_start_matches(['.', ';', ',', '!', '?']);
    format!("{} {}", sentences.trim_end(), after.trim_start()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::weights::Weights;
    use super::*;

    const BILLING: &str =
        "Bills recurring subscriptions with proration and trials. Customers, products and prices of Stripe.";
    const CHECKOUT: &str = "Builds checkout pages and payment links. Stripe products, prices and customers. Refunds one-time payments.";

    fn documents() -> Vec<Document> {
        [
            ("stripe-billing", BILLING),
            ("stripe-checkout", CHECKOUT),
            ("pdf-tables", "Extracts tables from PDF files into spreadsheets."),
            ("trip-planner", "Plans train journeys with hotels and museums."),
        ]
        .map(|(id, text)| Document::new(id, id, text))
        .into()
    }

    fn router() -> Router {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update(documents(), &[]);
        router
    }

    fn cases() -> Vec<Case> {
        let case = |query: &str, id: &str| Case {
            query: query.into(),
            expect: Expect::AnyOf(vec![SkillId::new(id)]),
        };
        vec![
            case("bill a subscription every month", "stripe-billing"),
            case("stripe products and prices", "stripe-billing"),
            case("checkout page for a product", "stripe-checkout"),
        ]
    }

    fn pair() -> PairReport {
        let complete = |id: &SkillId| documents().into_iter().find(|document| document.id == *id);
        let words = |text: &str| u32::try_from(text.split_whitespace().count()).unwrap();
        let ids = ["stripe-billing", "stripe-checkout"].map(SkillId::new);
        router().pair((&ids[0], &ids[1]), &cases(), &words, &complete).unwrap().unwrap()
    }

    #[test]
    fn rivals_are_those_that_win_requests() {
        let report = router().rivals(&SkillId::new("stripe-checkout"), &cases()).unwrap().unwrap();
        assert_eq!(report.rivals[0].skill_id, SkillId::new("stripe-billing"), "{report:#?}");
        assert!(
            report.won < report.made
                && report.lost.iter().all(|lost| lost.won.as_ref() != Some(&report.skill_id))
        );
        assert_eq!(report.clauses.iter().map(|clause| clause.made).sum::<usize>(), report.made);
        assert_eq!(report.golden, 1);
        let lost: usize = report.rivals.iter().map(|rival| rival.golden_lost.len()).sum();
        assert_eq!(lost, report.golden - report.golden_won);
        assert!(router().rivals(&SkillId::new("unknown"), &[]).unwrap().is_none());
    }

    #[test]
    fn a_pair_names_the_terms_and_clauses_that_separate_it() {
        let report = pair();
        assert!(
            report.a.own_terms.iter().any(|term| term == "subscriptions" || term == "recurring"),
            "{:?}",
            report.a
        );
        assert!(
            report
                .b
                .own_terms
                .iter()
                .any(|term| ["checkout", "links", "payment", "pages"].contains(&term.as_str()))
        );
        let clause = report.b.separating_clause.as_deref().unwrap();
        assert!(!clause.contains("customers"), "{clause}");
        assert!(report.shared_lost > 0 && report.shared >= report.shared_lost, "{report:#?}");
        assert_eq!(report.golden.len(), 3);
    }

    #[test]
    fn options_are_measured_and_the_best_helps() {
        let report = pair();
        let of = |kind: AdviceKind| report.advice.iter().find(|advice| advice.kind == kind).unwrap();
        let merge = of(AdviceKind::Merge);
        assert!(merge.lost_after < merge.lost_before && merge.removed.is_some(), "{merge:?}");
        let exclusion = of(AdviceKind::AddExclusion);
        assert!(
            exclusion.tokens > 0 && exclusion.texts.iter().all(|text| text.description.contains("Not for"))
        );
        let split = of(AdviceKind::Split);
        assert!(split.tokens < 0 && split.lost_after < split.lost_before, "{split:?}");
        assert_eq!(report.advice.iter().filter(|advice| advice.is_best).count(), 1);
        assert!(report.advice[0].is_best);
    }

    #[test]
    fn clauses_are_removed_with_their_openings() {
        assert_eq!(
            without_clause("Makes maps. Use for maps of cities. Fast.", "maps of cities"),
            "Makes maps. Fast."
        );
        assert_eq!(without_clause("Makes maps; draws charts", "draws charts"), "Makes maps;");
        assert_eq!(as_object("Checkout pages."), "checkout pages");
        assert_eq!(as_object("PDF files"), "PDF files");
    }
}
