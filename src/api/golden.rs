//! `golden`: how the queries of the golden sets are answered, and why a query is missed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};

use super::eval::Golden;
use super::{Code, Error};
use skills_discovery::{
    Advice, Case, Confidence, Expect, FitVerdict, GoldenFigures, Hit, Outcome, QueryWord, RequestError,
    Router, rank_of,
};
use skills_skill::SkillId;

/// A query with what should happen: one of `expect` is first, `not` is not first, or no skill fits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoldenQuery {
    /// Text of the query.
    #[schemars(length(min = 1, max = 20_000))]
    pub query: String,
    /// Skills of which one should be first; empty if no skill fits, and with `not`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub expect: Vec<SkillId>,
    /// Skill that must not rank first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<SkillId>,
}

impl From<Case> for GoldenQuery {
    fn from(case: Case) -> Self {
        let (expect, not) = match case.expect {
            Expect::AnyOf(ids) => (ids, None),
            Expect::Nothing => (Vec::new(), None),
            Expect::Not(id) => (Vec::new(), Some(id)),
        };
        Self { query: case.query, expect, not }
    }
}

impl From<GoldenQuery> for Case {
    fn from(query: GoldenQuery) -> Self {
        let expect = match (query.not, query.expect) {
            (Some(id), _) => Expect::Not(id),
            (None, ids) if ids.is_empty() => Expect::Nothing,
            (None, ids) => Expect::AnyOf(ids),
        };
        Self { query: query.query, expect }
    }
}

impl GoldenQuery {
    /// Returns what should happen as short text: ids, `none`, or `not ID`.
    pub fn expectation(&self) -> String {
        match &self.not {
            Some(id) => format!("not {id}"),
            None if self.expect.is_empty() => "none".to_owned(),
            None => self.expect.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        }
    }

    /// Returns the query in the form that the router accepts.
    ///
    /// # Errors
    /// Returns `invalid_request` for an empty query, and for both `expect` and `not`.
    pub fn checked(self) -> Result<Case, Error> {
        if self.query.trim().is_empty() {
            return Err(Error::new(Code::InvalidRequest, "a golden query needs text"));
        }
        if self.query.chars().count() > MAX_QUERY_LEN {
            let message = format!("a golden query has at most {MAX_QUERY_LEN} characters");
            return Err(Error::new(Code::InvalidRequest, message));
        }
        if self.not.is_some() && !self.expect.is_empty() {
            let message = format!("`{}` has both `expect` and `not`", self.query);
            return Err(Error::new(Code::InvalidRequest, message));
        }
        Ok(self.into())
    }
}

/// Maximum number of characters of a query.
pub const MAX_QUERY_LEN: usize = 20_000;
/// Maximum number of queries of a caller.
pub const MAX_QUERIES: usize = 2_000;

/// A measurement of the golden sets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoldenRequest {
    /// Only queries about this skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_id: Option<SkillId>,
    /// Queries in addition to those of the roots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2_000))]
    pub queries: Vec<GoldenQuery>,
}

/// Whether a query is answered as expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, JsonSchema, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GoldenState {
    /// A skill other than the expected one is first.
    Lost,
    /// A skill is first although none, or another skill, should be.
    FalseTrigger,
    /// An expected skill is first.
    Won,
    /// No skill fits, or a skill other than the excluded one is first, as expected.
    Rejected,
}

impl GoldenState {
    /// Returns whether the expectation is not met.
    pub fn is_failing(self) -> bool {
        matches!(self, Self::Lost | Self::FalseTrigger)
    }
}

/// How a query is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoldenResult {
    /// The query and the expected result.
    #[serde(flatten)]
    pub query: GoldenQuery,
    /// Whether it is answered as expected.
    pub state: GoldenState,
    /// Rank of the best expected skill, from 1; none if it is not a result.
    pub rank: Option<usize>,
    /// The first result.
    pub first: Option<SkillId>,
    /// Whether the first result fits.
    pub fits: bool,
    /// Lost: by how much the first result is ahead of the expected skill. Won: its lead over the second result. False
    /// trigger: by how much the first result exceeds the threshold.
    pub by: Option<f64>,
    /// Its file: index into `sources`; none for a query of the request.
    pub source: Option<usize>,
    /// Its place among the queries of its file, from 0.
    pub place: usize,
}

/// A file with golden queries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoldenSource {
    /// Path of the file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub file: PathBuf,
    /// Number of its queries.
    pub queries: usize,
    /// Whether it is a `golden.yaml` of the user, not the evaluation file of a skill and not a shipped one.
    pub is_editable: bool,
}

/// Two skills, and how many queries of each the other one wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confusion {
    /// One skill.
    pub a: SkillId,
    /// The other skill.
    pub b: SkillId,
    /// Queries of `b` that `a` wins.
    pub a_wins: usize,
    /// Queries of `a` that `b` wins.
    pub b_wins: usize,
}

/// The queries of one skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillPrecision {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// Queries that expect it.
    pub queries: usize,
    /// Those for which it, or another expected skill, is first.
    pub won: usize,
    /// `won` divided by `queries`.
    pub p_at_1: f64,
    /// Queries of others, or of none, that it wins.
    pub wins_wrongly: usize,
}

/// The golden sets, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoldenReport {
    /// Skills that are ranked.
    pub skills: usize,
    /// The metrics.
    pub figures: GoldenFigures,
    /// Every query: lost ones first, then false triggers, won and rejected ones; within each, closest decisions last.
    pub results: Vec<GoldenResult>,
    /// Pairs of skills that win queries of each other, most queries first.
    pub confusions: Vec<Confusion>,
    /// Metrics by expected skill, lowest precision first.
    pub by_skill: Vec<SkillPrecision>,
    /// Files with the queries.
    pub sources: Vec<GoldenSource>,
    /// Duration of the measurement, microseconds.
    pub took_us: u64,
}

/// A query to explain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoldenExplainRequest {
    /// The query with what should happen.
    pub query: GoldenQuery,
    /// Queries in addition to those of the roots, by which advice is evaluated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2_000))]
    pub queries: Vec<GoldenQuery>,
}

/// Why a query is answered as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoldenExplanation {
    /// The query and the expected result.
    pub query: GoldenQuery,
    /// Words of the query as interpreted.
    pub words: Vec<QueryWord>,
    /// Whether the first result fits, and why.
    pub verdict: FitVerdict,
    /// The thresholds in force.
    pub confidence: Option<Confidence>,
    /// The first result with its score breakdown.
    pub first: Option<Hit>,
    /// The best expected skill (for `not`, that skill) with its score breakdown; none if it is not a result.
    pub expected: Option<Hit>,
    /// A change of the expected skill's description that wins the query, measured by a draft; none if none was found.
    pub advice: Option<Advice>,
}

/// Converts the queries of a caller.
///
/// # Errors
/// Same as [`GoldenQuery::checked`], and for too many queries.
pub fn cases_of(queries: Vec<GoldenQuery>) -> Result<Vec<Case>, Error> {
    if queries.len() > MAX_QUERIES {
        let message = format!("{} queries given; the maximum is {MAX_QUERIES}", queries.len());
        return Err(Error::new(Code::InvalidRequest, message));
    }
    queries.into_iter().map(GoldenQuery::checked).collect()
}

/// Builds the report of a golden set. `is_editable` decides that for a file.
///
/// # Errors
/// Returns `invalid_request` for an empty query.
pub fn report(
    router: &Router,
    golden: &Golden,
    outcomes: &[Outcome],
    skill: Option<&SkillId>,
    is_editable: impl Fn(&Path) -> bool,
) -> Result<GoldenReport, Error> {
    let mut places: BTreeMap<Option<usize>, usize> = BTreeMap::new();
    let (mut cases, mut kept_outcomes, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for ((case, outcome), source) in golden.cases().iter().zip(outcomes).zip(golden.sources()) {
        let counter = places.entry(*source).or_default();
        let place = *counter;
        *counter += 1;
        if !skill.is_none_or(|skill| concerns(&case.expect, skill)) {
            continue;
        }
        results.push(result(router, case, outcome, *source, place).map_err(invalid)?);
        cases.push(case.clone());
        kept_outcomes.push(outcome.clone());
    }
    let figures = GoldenFigures::of(&cases, &kept_outcomes);
    let (confusions, by_skill) = (confusions(&results), by_skill(&results));
    results.sort_by(|a, b| {
        let by = |result: &GoldenResult| result.by.unwrap_or(f64::INFINITY);
        a.state.cmp(&b.state).then_with(|| by(b).total_cmp(&by(a)))
    });
    let source = |(at, file): (usize, &PathBuf)| GoldenSource {
        is_editable: is_editable(file),
        queries: places.get(&Some(at)).copied().unwrap_or_default(),
        file: file.clone(),
    };
    Ok(GoldenReport {
        skills: router.unshadowed(),
        figures,
        results,
        confusions,
        by_skill,
        sources: golden.files().iter().enumerate().map(source).collect(),
        took_us: 0,
    })
}

/// Returns whether an expectation concerns a skill.
fn concerns(expect: &Expect, skill: &SkillId) -> bool {
    match expect {
        Expect::AnyOf(ids) => ids.contains(skill),
        Expect::Not(id) => id == skill,
        Expect::Nothing => false,
    }
}

fn result(
    router: &Router,
    case: &Case,
    outcome: &Outcome,
    source: Option<usize>,
    place: usize,
) -> Result<GoldenResult, RequestError> {
    let state = match (&case.expect, outcome.is_expected(&case.expect)) {
        (Expect::AnyOf(_), true) => GoldenState::Won,
        (Expect::AnyOf(_), false) => GoldenState::Lost,
        (_, true) => GoldenState::Rejected,
        (_, false) => GoldenState::FalseTrigger,
    };
    let (mut rank, mut by) = (outcome.rank, outcome.by);
    match (&case.expect, state) {
        // Ranked lower than the measured results.
        (Expect::AnyOf(ids), GoldenState::Lost) if rank.is_none() => {
            (rank, by) = rank_of(router, &case.query, ids)?.unzip();
        }
        (_, GoldenState::FalseTrigger) => by = outcome.margin,
        _ => {}
    }
    let (first, fits) = (outcome.first.clone(), outcome.fits);
    Ok(GoldenResult { query: case.clone().into(), state, rank, first, fits, by, source, place })
}

fn confusions(results: &[GoldenResult]) -> Vec<Confusion> {
    let mut pairs: BTreeMap<(SkillId, SkillId), (usize, usize)> = BTreeMap::new();
    for result in results.iter().filter(|result| result.state == GoldenState::Lost) {
        let (Some(winner), Some(loser)) = (&result.first, result.query.expect.first()) else { continue };
        let (a, b) = (winner.min(loser).clone(), winner.max(loser).clone());
        let is_first = *winner == a;
        let counts = pairs.entry((a, b)).or_default();
        if is_first { counts.0 += 1 } else { counts.1 += 1 }
    }
    // The skill that wins more comes first.
    let confusion = |((a, b), (a_wins, b_wins))| {
        if a_wins >= b_wins {
            Confusion { a, b, a_wins, b_wins }
        } else {
            Confusion { a: b, b: a, a_wins: b_wins, b_wins: a_wins }
        }
    };
    let mut found: Vec<Confusion> = pairs.into_iter().map(confusion).collect();
    found.sort_by_key(|pair| std::cmp::Reverse(pair.a_wins + pair.b_wins));
    found
}

fn by_skill(results: &[GoldenResult]) -> Vec<SkillPrecision> {
    let mut skills: BTreeMap<SkillId, (usize, usize, usize)> = BTreeMap::new();
    for result in results {
        for id in &result.query.expect {
            let counts = skills.entry(id.clone()).or_default();
            counts.0 += 1;
            counts.1 += usize::from(result.state == GoldenState::Won);
        }
        if let Some(first) = result.first.as_ref().filter(|_| result.state.is_failing()) {
            skills.entry(first.clone()).or_default().2 += 1;
        }
    }
    let precision = |(skill_id, (queries, won, wins_wrongly)): (SkillId, (usize, usize, usize))| {
        let p_at_1 = won as f64 / queries.max(1) as f64;
        SkillPrecision { skill_id, queries, won, p_at_1, wins_wrongly }
    };
    let mut found: Vec<SkillPrecision> = skills.into_iter().map(precision).collect();
    found.sort_by(|a, b| {
        (a.queries == 0)
            .cmp(&(b.queries == 0))
            .then(a.p_at_1.total_cmp(&b.p_at_1))
            .then(b.wins_wrongly.cmp(&a.wins_wrongly))
    });
    found
}

/// Converts an error of the router.
pub fn invalid(error: RequestError) -> Error {
    Error::new(Code::InvalidRequest, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_discovery::{Document, EvalOptions, Weights, outcomes};

    fn router() -> Router {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let mut skills = vec![
            Document::new("pdf", "pdf-tables", "Extracts tables from PDF files into spreadsheets."),
            Document::new("mail", "mail-writer", "Writes and sends short mails to colleagues."),
        ];
        let filler = (0..20).map(|n| {
            Document::new(format!("s{n}"), format!("s{n}"), format!("Sends short note {n} to the archive."))
        });
        skills.extend(filler);
        router.update(skills, &[]);
        router
    }

    fn query(query: &str, expect: &[&str], not: Option<&str>) -> GoldenQuery {
        let expect = expect.iter().map(|id| SkillId::new(*id)).collect();
        GoldenQuery { query: query.to_owned(), expect, not: not.map(SkillId::new) }
    }

    fn measured(queries: Vec<GoldenQuery>, skill: Option<&SkillId>) -> GoldenReport {
        let (router, mut golden) = (router(), Golden::default());
        golden.extend(cases_of(queries).unwrap());
        let outcomes = outcomes(&router, golden.cases(), EvalOptions::default()).unwrap();
        report(&router, &golden, &outcomes, skill, |_| false).unwrap()
    }

    #[test]
    fn failing_queries_come_first_with_their_winner() {
        use GoldenState::{FalseTrigger, Lost, Rejected, Won};
        let queries = vec![
            query("extract the tables of a pdf", &["pdf"], None),
            query("write short mails to colleagues about the tables", &["pdf"], None),
            query("extract tables from pdf files", &[], Some("pdf")),
            query("ωωω", &[], None),
        ];
        let report = measured(queries, None);
        let states: Vec<GoldenState> = report.results.iter().map(|result| result.state).collect();
        assert_eq!(states, [Lost, FalseTrigger, Won, Rejected]);
        let lost = &report.results[0];
        assert_eq!(lost.first, Some(SkillId::new("mail")));
        assert!(lost.by.is_some_and(|by| by > 0.0), "{lost:?}");
        assert!(report.results[1].by.is_some_and(|by| by > 0.0), "the excess over the threshold");
        assert_eq!((report.figures.queries, report.figures.false_triggers), (2, 1));
        let pair = &report.confusions[0];
        assert_eq!((pair.a.as_str(), pair.b.as_str(), pair.a_wins, pair.b_wins), ("mail", "pdf", 1, 0));
        let pdf = report.by_skill.iter().find(|skill| skill.skill_id.as_str() == "pdf").unwrap();
        assert_eq!((pdf.queries, pdf.won, pdf.wins_wrongly), (2, 1, 1));
    }

    #[test]
    fn figures_of_one_skill_cover_its_queries_only() {
        let queries = vec![
            query("extract the tables of a pdf", &["pdf"], None),
            query("send short mails", &["mail"], None),
        ];
        let report = measured(queries, Some(&SkillId::new("mail")));
        assert_eq!((report.results.len(), report.results[0].place), (1, 1));
        assert!((report.figures.p_at_1 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn contradictory_and_empty_queries_are_refused() {
        let both = query("q", &["a"], Some("b")).checked().unwrap_err();
        let empty = query("  ", &["a"], None).checked().unwrap_err();
        let long = query(&"a".repeat(MAX_QUERY_LEN + 1), &["a"], None).checked().unwrap_err();
        assert_eq!([both.code, empty.code, long.code], [Code::InvalidRequest; 3]);
        assert!(cases_of(vec![query("q", &[], None); MAX_QUERIES + 1]).is_err());
    }
}
