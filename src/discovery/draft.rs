//! The ranking as if one skill were written otherwise, and what that changes on a golden set.

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::Document;
use super::eval::{ChangedQuery, EvalOptions, EvalReport, eval};
use super::golden::{Case, Expect};
use super::request::Request;
use super::router::{RequestError, Router};

impl Router {
    /// A router in which `document` takes the place of the skill with its id. Answers are those of an index that is
    /// made anew.
    #[must_use]
    pub fn with_document(&self, document: Document) -> Self {
        let mut draft = Self::with_model(self.weights.clone(), self.model.clone());
        draft.off.clone_from(&self.off);
        draft.index = self.index.clone();
        draft.update(vec![document], &[]);
        draft
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
    /// Queries for which a skill is first although none, or another one, should be.
    pub false_triggers: usize,
}

impl From<&EvalReport> for GoldenFigures {
    fn from(report: &EvalReport) -> Self {
        Self {
            queries: report.queries,
            p_at_1: report.p_at_1,
            mrr_at_10: report.mrr_at_10,
            false_triggers: report.false_triggers.len(),
        }
    }
}

/// Contribution of a clause of the description: the metrics without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClauseValue {
    /// The clause.
    pub clause: String,
    /// Queries lost without it, minus those won.
    pub queries: i64,
    /// By how much the mean reciprocal rank falls without it.
    pub mrr: f64,
}

/// A word that would win a missed query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// The query.
    pub query: String,
    /// The word to add to the description.
    pub word: String,
    /// By how much the skill's score rises.
    pub gain: f64,
    /// The skill's rank then; none if it is not a result.
    pub rank: Option<usize>,
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
}

/// Compares two routers on a golden set.
///
/// # Errors
/// When a case has an empty query.
pub fn compare(before: &Router, after: &Router, cases: &[Case]) -> Result<GoldenChange, RequestError> {
    let (old, new) = rayon::join(
        || eval(before, cases, EvalOptions::default()),
        || eval(after, cases, EvalOptions::default()),
    );
    let (old, new) = (old?, new?);
    let lost_of = |report: &EvalReport, query: &str| {
        report.lost.iter().find(|lost| lost.query == query).map(|lost| lost.won.clone())
    };
    let expected = |query: &str| {
        cases.iter().find(|case| case.query == query).and_then(|case| match &case.expect {
            Expect::AnyOf(ids) => ids.first().cloned(),
            _ => None,
        })
    };
    let changed = |here: &EvalReport, there: &EvalReport, gains: bool| {
        let only_here = here.lost.iter().filter(|lost| lost_of(there, &lost.query).is_none());
        only_here
            .map(|lost| {
                let (other, own) = (lost.won.clone(), expected(&lost.query));
                let (from, to) = if gains { (other, own) } else { (own, other) };
                ChangedQuery { query: lost.query.clone(), from, to }
            })
            .collect()
    };
    Ok(GoldenChange {
        before: (&old).into(),
        after: (&new).into(),
        won: changed(&old, &new, true),
        lost: changed(&new, &old, false),
    })
}

/// The clauses of a description: sentences, and their parts between semicolons.
#[must_use]
pub fn clauses(description: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut clause = String::new();
    let mut letters = description.chars().peekable();
    while let Some(letter) = letters.next() {
        clause.push(letter);
        let ends = match letter {
            ';' | '\n' | '。' => true,
            '.' | '!' | '?' => letters.peek().is_none_or(|next| next.is_whitespace()),
            _ => false,
        };
        if ends {
            out.push(std::mem::take(&mut clause));
        }
    }
    out.push(clause);
    out.into_iter().filter(|clause| clause.chars().any(char::is_alphanumeric)).collect()
}

/// What each clause of a document's description is worth on a golden set; most valuable first.
///
/// # Errors
/// When a case has an empty query.
pub fn clause_values(
    router: &Router,
    document: &Document,
    cases: &[Case],
) -> Result<Vec<ClauseValue>, RequestError> {
    let parts = clauses(&document.description);
    if parts.len() < 2 {
        return Ok(Vec::new());
    }
    let full = eval(&router.with_document(document.clone()), cases, EvalOptions::default())?;
    let values = (0..parts.len()).into_par_iter().map(|left_out| {
        let kept = parts.iter().enumerate().filter(|(at, _)| *at != left_out);
        let description: String = kept.map(|(_, clause)| clause.as_str()).collect();
        let shorter = Document { description, digest: None, ..document.clone() };
        let without = eval(&router.with_document(shorter), cases, EvalOptions::default())?;
        let lost = |report: &EvalReport| i64::try_from(report.lost.len()).unwrap_or(i64::MAX);
        Ok(ClauseValue {
            clause: parts[left_out].trim().to_owned(),
            queries: lost(&without) - lost(&full),
            mrr: full.mrr_at_10 - without.mrr_at_10,
        })
    });
    let mut values = values.collect::<Result<Vec<_>, RequestError>>()?;
    values.sort_by(|a, b| b.queries.cmp(&a.queries).then(b.mrr.total_cmp(&a.mrr)));
    Ok(values)
}

/// Lost queries for which words are tried, and words tried for each.
const MAX_ADVISED: usize = 5;
const MAX_WORDS: usize = 4;

/// For the skill's lost queries, the missing word that helps most, each measured by a draft.
///
/// # Errors
/// When a case has an empty query.
pub fn advice(router: &Router, document: &Document, cases: &[Case]) -> Result<Vec<Advice>, RequestError> {
    let own =
        cases.iter().filter(|case| matches!(&case.expect, Expect::AnyOf(ids) if ids.contains(&document.id)));
    let mut lost = Vec::new();
    for case in own {
        let (rank, score, missing) = standing(router, document, &case.query)?;
        if rank != Some(1) && !missing.is_empty() {
            lost.push((case.query.as_str(), score, missing));
        }
        if lost.len() == MAX_ADVISED {
            break;
        }
    }
    let best = lost.into_par_iter().map(|(query, score, missing)| {
        let mut best: Option<Advice> = None;
        for word in missing.into_iter().take(MAX_WORDS) {
            let description = format!("{} {word}", document.description.trim_end());
            let longer = Document { description, digest: None, ..document.clone() };
            let (rank, reached, _) = standing(&router.with_document(longer.clone()), &longer, query)?;
            let gain = reached.unwrap_or(0.0) - score.unwrap_or(0.0);
            if best.as_ref().is_none_or(|best| gain > best.gain) {
                best = Some(Advice { query: query.to_owned(), word, gain, rank });
            }
        }
        Ok(best)
    });
    let best = best.collect::<Result<Vec<_>, RequestError>>()?;
    Ok(best.into_iter().flatten().filter(|advice| advice.gain > 0.0).collect())
}

type Standing = (Option<usize>, Option<f64>, Vec<String>);

/// Rank and score of a skill for a query, and the words of the query that it lacks.
fn standing(router: &Router, document: &Document, query: &str) -> Result<Standing, RequestError> {
    let request = Request {
        intent: query.to_owned(),
        skill: Some(document.id.clone()),
        limit: 1,
        ..Request::default()
    };
    let answer = router.discover(&request)?;
    let hit = answer.results.first();
    let has = |word: usize| {
        hit.is_some_and(|hit| {
            let rows = &hit.breakdown.words;
            hit.breakdown
                .parts
                .iter()
                .any(|part| part.field.is_some() && rows[part.word].query_word == Some(word))
        })
    };
    let words = answer.words.iter().enumerate().filter(|(at, word)| !word.stop && !has(*at));
    let missing = words.filter_map(|(_, word)| query.get(word.start as usize..word.end as usize));
    let missing = missing.map(str::to_lowercase).collect();
    Ok((hit.map(|hit| hit.rank.unwrap_or(1)), hit.map(|hit| hit.score), missing))
}

#[cfg(test)]
mod tests {
    use super::super::weights::Weights;
    use super::*;
    use skills_skill::SkillId;

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
        let mut router = Router::new(Weights::shipped().unwrap());
        router.update(documents(), &[]);
        router
    }

    #[test]
    fn a_draft_answers_as_an_index_made_anew() {
        let router = router();
        let draft =
            Document::new("skill-0", "skill-0", "Reads stripe receipts into a spreadsheet. Not for tables.");
        let overlay = router.with_document(draft.clone());
        let mut all = documents();
        all[0] = draft;
        let mut rebuilt = Router::new(Weights::shipped().unwrap());
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
        let change = compare(&router, &router.with_document(draft), &cases()).unwrap();
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
        let found = advice(&router, &document, &cases()).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(["spreadsheet", "stripe", "receipt", "pull"].contains(&found[0].word.as_str()), "{found:?}");
        assert!(found[0].gain > 0.0);
    }

    #[test]
    fn clauses_end_with_sentences_and_semicolons() {
        assert_eq!(
            clauses("Reads v1.2 files; writes CSV. Use it daily"),
            ["Reads v1.2 files;", " writes CSV.", " Use it daily"]
        );
        assert!(clauses("One only").len() == 1);
        let document = Document::new("skill-2", "skill-2", "Deploys service 2 to Kubernetes. Sings.");
        let values = clause_values(&router(), &document, &cases()).unwrap();
        assert_eq!(values.len(), 2);
        assert!(values[0].mrr >= values[1].mrr);
    }
}
