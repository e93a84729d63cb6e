//! Evaluation of the ranking on a golden set, and comparison with a baseline.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::answer::{Fit, VerdictReason};
use super::confidence::keeps;
use super::golden::{Case, Expect};
use super::ranking::Order;
use super::request::{Policy, Request};
use super::router::{RequestError, Router};
use skills_skill::SkillId;

/// Acceptance rates for which thresholds are computed.
const KEPT_SHARES: [f64; 3] = [0.90, 0.94, 0.98];

/// Options of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvalOptions {
    /// How rules combine with the text score.
    pub policy: Policy,
    /// Whether headings and bodies are ranked.
    pub with_body: bool,
}

impl Default for EvalOptions {
    fn default() -> Self {
        Self { policy: Policy::Blended, with_body: true }
    }
}

/// Latency percentiles of one request, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LatencyUs {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
}

/// The first result of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Winner {
    /// The request.
    pub query: String,
    /// The first result, whether it fits or not.
    pub won: Option<SkillId>,
}

/// A request whose expected skill is not first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// The request.
    pub query: String,
    /// The expected skills.
    pub expected: Vec<SkillId>,
    /// Rank of the best of them, from 1; `None` if it is not among the first ten.
    pub rank: Option<usize>,
    /// The first result instead.
    pub won: Option<SkillId>,
    /// How far its score exceeds that of the expected skill, if both have a score.
    pub by: Option<f64>,
}

/// A request with an expected skill that is rejected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// The request.
    pub query: String,
    /// The expected skills.
    pub expected: Vec<SkillId>,
    /// Rank of the best of them, from 1; `None` if it is not among the first ten.
    pub rank: Option<usize>,
    /// How far the score of the first result is below the threshold; `None` if it is rejected for another reason.
    pub below: Option<f64>,
}

/// A request for which a skill fits although none, or another one, should.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FalseTrigger {
    /// The request.
    pub query: String,
    /// The first result.
    pub won: SkillId,
    /// Whether only this skill must not win (a near miss); otherwise no skill should fit.
    pub near_miss: bool,
}

/// A threshold and its effects.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OperatingPoint {
    /// Share of the requests with an expected skill that are accepted.
    #[serde(rename = "kept")]
    pub accepted: f64,
    /// Share of the out-of-scope requests that are rejected, without near misses.
    pub rejected: Option<f64>,
    /// The threshold of the collection: for a skill that shares more than one word with a request in its language.
    pub threshold: Option<f64>,
}

/// Requests that one particular skill must not win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearMisses {
    /// Number of such requests.
    pub queries: usize,
    /// Number of them for which the forbidden skill is first.
    pub forbidden_first: usize,
    /// Number of them for which the forbidden skill is first and fits.
    pub routed: usize,
}

/// Result of an evaluation; fractions of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalReport {
    /// Requests that have an expected skill.
    pub queries: usize,
    /// Share of requests with an expected skill first.
    pub p_at_1: f64,
    /// Share of requests with an expected skill among the first five.
    pub hit_at_5: f64,
    /// Mean reciprocal rank of the best expected skill, 0 past the tenth.
    pub mrr_at_10: f64,
    /// Share of the out-of-scope requests that are rejected; `None` if there are no such requests.
    pub out_of_scope_rejected: Option<f64>,
    /// Number of out-of-scope requests, without near misses.
    pub out_of_scope: usize,
    /// The current threshold: requests accepted, and out-of-scope requests rejected.
    pub present: OperatingPoint,
    /// The highest thresholds that accept at least 90, 94 and 98 % of the requests with an expected skill, each once.
    pub thresholds: Vec<OperatingPoint>,
    /// Near misses, counted nowhere else but among the false triggers; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_misses: Option<NearMisses>,
    /// Requests with an expected skill that are rejected.
    pub wrongly_rejected: usize,
    /// These requests.
    #[serde(default)]
    pub rejected_queries: Vec<Rejected>,
    /// Latency of a request.
    pub latency_us: LatencyUs,
    /// Requests that another skill wins.
    pub lost: Vec<Lost>,
    /// Requests for which a skill fits although none, or another one, should.
    pub false_triggers: Vec<FalseTrigger>,
    /// The first result of every request, with which later reports are compared.
    #[serde(default)]
    pub winners: Vec<Winner>,
}

/// The result of the ranking for the query of a case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The first result.
    pub first: Option<SkillId>,
    /// Whether the first result fits.
    pub fits: bool,
    /// Rank of the best expected skill, from 1; `None` if it is not among the first ten.
    pub rank: Option<usize>,
    /// Score of the first result minus that of the best expected skill; if that is the first, minus that of the
    /// second.
    pub by: Option<f64>,
    /// Score of the first result minus the threshold; `None` if the verdict does not depend on the score.
    pub margin: Option<f64>,
    /// The threshold of the collection.
    threshold: Option<f64>,
    took_us: u64,
}

impl Outcome {
    /// Returns whether the outcome is what the case expects.
    #[must_use]
    pub fn is_expected(&self, expect: &Expect) -> bool {
        match expect {
            Expect::AnyOf(_) => self.rank == Some(1),
            Expect::Nothing => !self.fits || self.first.is_none(),
            Expect::Not(id) => !self.fits || self.first.as_ref() != Some(id),
        }
    }
}

/// Ranks the query of a case.
///
/// # Errors
/// Returns an error if the query is empty.
pub fn outcome(router: &Router, case: &Case, options: EvalOptions) -> Result<Outcome, RequestError> {
    let request = Request {
        intent: case.query.clone(),
        policy: options.policy,
        with_body: options.with_body,
        ..Request::default()
    };
    let started = Instant::now();
    let Order { mut results, verdict, confidence, threshold: of_collection } = router.order(&request)?;
    let took_us = started.elapsed().as_micros() as u64;
    results.truncate(request.limit);
    let by_score = matches!(
        verdict.reason,
        VerdictReason::Fits | VerdictReason::FitsByReading | VerdictReason::BelowThreshold
    );
    let score_of = |at: usize| results.get(at).map(|(_, score)| *score);
    let at = match &case.expect {
        Expect::AnyOf(expected) => results.iter().position(|(id, _)| expected.contains(id)),
        _ => None,
    };
    let threshold = confidence.filter(|_| by_score && !results.is_empty()).map(|c| c.fit_threshold);
    let other = match at {
        Some(0) => score_of(1),
        Some(at) => score_of(at),
        None => None,
    };
    Ok(Outcome {
        fits: verdict.fit != Fit::None,
        rank: at.map(|at| at + 1),
        by: score_of(0).zip(other).map(|(first, other)| first - other),
        margin: score_of(0).zip(threshold).map(|(first, threshold)| first - threshold),
        threshold: Some(of_collection),
        first: results.into_iter().next().map(|(id, _)| id),
        took_us,
    })
}

/// Ranks the queries of all cases, on all cores.
///
/// # Errors
/// Returns an error if a query is empty.
pub fn outcomes(router: &Router, cases: &[Case], options: EvalOptions) -> Result<Vec<Outcome>, RequestError> {
    cases.par_iter().map(|case| outcome(router, case, options)).collect()
}

/// Ranks the queries of all cases one at a time, so that latencies are those of single requests, and computes
/// the report.
///
/// # Errors
/// Returns an error if a query is empty.
pub fn eval(router: &Router, cases: &[Case], options: EvalOptions) -> Result<EvalReport, RequestError> {
    let outcomes = cases.iter().map(|case| outcome(router, case, options)).collect::<Result<Vec<_>, _>>()?;
    let report = EvalReport::new(cases, &outcomes);
    let winner = |(case, outcome): (&Case, Outcome)| Winner { query: case.query.clone(), won: outcome.first };
    Ok(EvalReport { winners: cases.iter().zip(outcomes).map(winner).collect(), ..report })
}

impl EvalReport {
    /// Computes the report from the outcomes of cases, without `winners`.
    #[must_use]
    pub fn new(cases: &[Case], outcomes: &[Outcome]) -> Self {
        let mut lost = Vec::new();
        let mut false_triggers = Vec::new();
        let (mut queries, mut first, mut five, mut reciprocal) = (0, 0, 0, 0.0);
        let mut rejected_queries = Vec::new();
        let mut near = NearMisses { queries: 0, forbidden_first: 0, routed: 0 };
        let mut scores = Scores::default();
        for (case, outcome) in cases.iter().zip(outcomes) {
            scores.take(outcome, &case.expect);
            match &case.expect {
                Expect::AnyOf(expected) => {
                    queries += 1;
                    if !outcome.fits {
                        rejected_queries.push(Rejected {
                            query: case.query.clone(),
                            expected: expected.clone(),
                            rank: outcome.rank,
                            below: outcome.margin.map(|margin| -margin).filter(|below| *below > 0.0),
                        });
                    }
                    first += usize::from(outcome.rank == Some(1));
                    five += usize::from(outcome.rank.is_some_and(|rank| rank <= 5));
                    reciprocal += outcome.rank.map_or(0.0, |rank| 1.0 / rank as f64);
                    if outcome.rank != Some(1) {
                        lost.push(Lost {
                            query: case.query.clone(),
                            expected: expected.clone(),
                            rank: outcome.rank,
                            won: outcome.first.clone(),
                            by: outcome.by,
                        });
                    }
                }
                Expect::Nothing | Expect::Not(_) => {
                    if let Expect::Not(id) = &case.expect {
                        let first = outcome.first.as_ref() == Some(id);
                        near.queries += 1;
                        near.forbidden_first += usize::from(first);
                        near.routed += usize::from(first && outcome.fits);
                    }
                    if !outcome.is_expected(&case.expect)
                        && let Some(won) = outcome.first.clone()
                    {
                        let near_miss = matches!(case.expect, Expect::Not(_));
                        false_triggers.push(FalseTrigger { query: case.query.clone(), won, near_miss });
                    }
                }
            }
        }
        let share = |n: usize, of: usize| if of == 0 { 0.0 } else { n as f64 / of as f64 };
        let present = scores.present();
        let mut thresholds: Vec<OperatingPoint> =
            KEPT_SHARES.iter().filter_map(|share| scores.keeping(*share)).collect();
        thresholds.dedup();
        let mut times: Vec<u64> = outcomes.iter().map(|outcome| outcome.took_us).collect();
        Self {
            queries,
            p_at_1: share(first, queries),
            hit_at_5: share(five, queries),
            mrr_at_10: if queries == 0 { 0.0 } else { reciprocal / queries as f64 },
            out_of_scope_rejected: present.rejected,
            out_of_scope: scores.stray.len(),
            present,
            thresholds,
            near_misses: (near.queries > 0).then_some(near),
            wrongly_rejected: rejected_queries.len(),
            rejected_queries,
            latency_us: latency(&mut times),
            lost,
            false_triggers,
            winners: Vec::new(),
        }
    }
}

/// Scores of the first results. A request rejected for a reason other than its score is rejected at every threshold.
#[derive(Default)]
struct Scores {
    /// Distance of each score above the threshold in force for it, by request.
    fitting: Vec<f64>,
    stray: Vec<f64>,
    /// The threshold of the collection.
    threshold: Option<f64>,
    fits: usize,
    rejected: usize,
}

impl Scores {
    fn take(&mut self, outcome: &Outcome, expect: &Expect) {
        let score = outcome.margin.unwrap_or(f64::NEG_INFINITY);
        self.threshold = self.threshold.or(outcome.threshold);
        match expect {
            Expect::AnyOf(_) => {
                self.fitting.push(score);
                self.fits += usize::from(outcome.fits);
            }
            Expect::Nothing => {
                self.stray.push(score);
                self.rejected += usize::from(outcome.is_expected(expect));
            }
            Expect::Not(_) => {}
        }
    }

    fn present(&self) -> OperatingPoint {
        let share = |n: usize, of: usize| (of > 0).then(|| n as f64 / of as f64);
        OperatingPoint {
            accepted: share(self.fits, self.fitting.len()).unwrap_or_default(),
            rejected: share(self.rejected, self.stray.len()),
            threshold: self.threshold,
        }
    }

    fn keeping(&self, min_kept: f64) -> Option<OperatingPoint> {
        let threshold = keeps(&self.fitting, min_kept).filter(|z| z.is_finite())?;
        let below = self.stray.iter().filter(|z| **z < threshold).count();
        let rejected = (!self.stray.is_empty()).then(|| below as f64 / self.stray.len() as f64);
        let accepted = self.fitting.iter().filter(|z| **z >= threshold).count();
        Some(OperatingPoint {
            accepted: accepted as f64 / self.fitting.len() as f64,
            rejected,
            threshold: self.threshold.map(|present| present + threshold),
        })
    }
}

fn latency(times: &mut [u64]) -> LatencyUs {
    times.sort_unstable();
    let at = |share: f64| {
        let last = times.len().saturating_sub(1);
        times.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
    };
    LatencyUs { p50: at(0.5), p99: at(0.99) }
}

/// A query whose first result changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChangedQuery {
    /// Text of the query.
    pub query: String,
    /// The first result before.
    pub from: Option<SkillId>,
    /// The first result after.
    pub to: Option<SkillId>,
}

/// Which queries were compared with those of a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ComparedQueries {
    /// Number of queries whose first result is known now and in the baseline.
    pub queries: usize,
    /// Number of queries that the baseline does not have; `None` if it does not name all of its queries.
    pub added: Option<usize>,
    /// Number of queries of the baseline that no longer exist; `None` if it does not name all of its queries.
    pub removed: Option<usize>,
    /// Number of queries whose first result is not known in the baseline, because it names missed queries only.
    pub not_comparable: usize,
}

/// A figure that got worse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    /// The figure: `p_at_1`, `hit_at_5`, `mrr_at_10`, `out_of_scope_rejected` or `near_misses_not_routed`.
    pub figure: String,
    /// Its value in the baseline.
    pub was: f64,
    /// Its current value.
    pub now: f64,
}

/// The figures of a baseline, taken from an earlier report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// See [`EvalReport::p_at_1`].
    pub p_at_1: f64,
    /// See [`EvalReport::hit_at_5`].
    pub hit_at_5: f64,
    /// See [`EvalReport::mrr_at_10`].
    pub mrr_at_10: f64,
    /// See [`EvalReport::out_of_scope_rejected`].
    #[serde(default)]
    pub out_of_scope_rejected: Option<f64>,
    /// See [`EvalReport::near_misses`].
    #[serde(default)]
    pub near_misses: Option<NearMisses>,
    /// See [`EvalReport::lost`].
    #[serde(default)]
    pub lost: Option<Vec<Lost>>,
    /// See [`EvalReport::winners`]; `None` in reports of versions that did not store them.
    #[serde(default)]
    pub winners: Option<Vec<Winner>>,
}

impl From<EvalReport> for Baseline {
    fn from(report: EvalReport) -> Self {
        Self {
            p_at_1: report.p_at_1,
            hit_at_5: report.hit_at_5,
            mrr_at_10: report.mrr_at_10,
            out_of_scope_rejected: report.out_of_scope_rejected,
            near_misses: report.near_misses,
            lost: Some(report.lost),
            winners: Some(report.winners),
        }
    }
}

/// Returns the queries whose first result differs from the baseline, and which queries were compared; `None` if the
/// baseline names no queries. `queries` are all queries that exist now, also those that were not measured.
#[must_use]
pub fn changed_winners(
    now: &EvalReport,
    queries: &HashSet<String, impl std::hash::BuildHasher>,
    baseline: &Baseline,
) -> Option<(Vec<ChangedQuery>, ComparedQueries)> {
    let before: HashMap<&str, &Option<SkillId>> = match (&baseline.winners, &baseline.lost) {
        (Some(winners), _) => winners.iter().map(|one| (one.query.as_str(), &one.won)).collect(),
        (None, Some(lost)) => lost.iter().map(|lost| (lost.query.as_str(), &lost.won)).collect(),
        (None, None) => return None,
    };
    let (mut changed, mut seen, mut compared) = (Vec::new(), HashSet::new(), ComparedQueries::default());
    let mut others = 0;
    for one in now.winners.iter().filter(|one| seen.insert(one.query.as_str())) {
        let Some(from) = before.get(one.query.as_str()).copied() else {
            others += 1;
            continue;
        };
        compared.queries += 1;
        if *from != one.won {
            changed.push(ChangedQuery { query: one.query.clone(), from: from.clone(), to: one.won.clone() });
        }
    }
    if baseline.winners.is_some() {
        compared.added = Some(others);
        compared.removed = Some(before.keys().filter(|query| !queries.contains(**query)).count());
    } else {
        compared.not_comparable = others;
    }
    Some((changed, compared))
}

/// Returns the figures that are lower than in a baseline by more than `tolerance` (a fraction of 1).
#[must_use]
pub fn regressions(now: &EvalReport, baseline: &Baseline, tolerance: f64) -> Vec<Regression> {
    let not_routed = |near: NearMisses| 1.0 - near.routed as f64 / near.queries.max(1) as f64;
    let figures = [
        ("p_at_1", Some(baseline.p_at_1), Some(now.p_at_1)),
        ("hit_at_5", Some(baseline.hit_at_5), Some(now.hit_at_5)),
        ("mrr_at_10", Some(baseline.mrr_at_10), Some(now.mrr_at_10)),
        ("out_of_scope_rejected", baseline.out_of_scope_rejected, now.out_of_scope_rejected),
        ("near_misses_not_routed", baseline.near_misses.map(not_routed), now.near_misses.map(not_routed)),
    ];
    figures
        .into_iter()
        .filter_map(|(figure, was, now)| Some((figure, was?, now?)))
        .filter(|(_, was, now)| was - now > tolerance + 1e-9)
        .map(|(figure, was, now)| Regression { figure: figure.to_owned(), was, now })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Weights};

    fn router() -> Router {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let skills = [
            Document::new("pdf", "pdf-tables", "Extracts tables from PDF files into spreadsheets."),
            Document::new("mail", "mail-writer", "Writes and sends short mails to colleagues."),
        ];
        router.update(skills.into(), &[]);
        router
    }

    fn case(query: &str, expect: Expect) -> Case {
        Case { query: query.to_owned(), expect }
    }

    #[test]
    fn won_lost_and_false_triggers_are_counted() {
        let id = SkillId::new;
        let cases = [
            case("extract the tables of a pdf", Expect::AnyOf(vec![id("pdf")])),
            case("write a mail about pdf tables", Expect::AnyOf(vec![id("pdf"), id("mail")])),
            case("send short mails", Expect::AnyOf(vec![id("pdf")])),
            case("ψψψ", Expect::AnyOf(vec![id("pdf")])),
            case("extract tables from pdf files", Expect::Not(id("pdf"))),
            case("ωωω", Expect::Nothing),
            case("short mails to colleagues", Expect::Nothing),
        ];
        let report = eval(&router(), &cases, EvalOptions::default()).unwrap();
        assert_eq!((report.queries, report.out_of_scope), (4, 2), "near misses are counted separately");
        assert!((report.p_at_1 - 0.5).abs() < 1e-12);
        assert_eq!(report.wrongly_rejected, 1);
        let rejected = &report.rejected_queries[0];
        assert_eq!((rejected.query.as_str(), rejected.rank, rejected.below), ("ψψψ", None, None));
        assert_eq!((report.out_of_scope_rejected, report.present.rejected), (Some(0.5), Some(0.5)));
        assert_eq!(report.near_misses, Some(NearMisses { queries: 1, forbidden_first: 1, routed: 1 }));
        assert_eq!(report.lost.len(), 2);
        assert_eq!(report.lost[0].won, Some(id("mail")));
        assert_eq!(report.false_triggers[0].won, id("pdf"));
        assert!(report.false_triggers[0].near_miss && !report.false_triggers[1].near_miss);
        let only_near = eval(&router(), &cases[4..5], EvalOptions::default()).unwrap();
        assert_eq!((only_near.out_of_scope_rejected, only_near.out_of_scope), (None, 0));
    }

    #[test]
    fn each_threshold_states_the_share_it_accepts() {
        let scores = |fitting: Vec<f64>| Scores { fitting, threshold: Some(1.0), ..Scores::default() };
        let shares = |fitting: Vec<f64>| -> Vec<f64> {
            let scores = scores(fitting);
            KEPT_SHARES.iter().map(|share| scores.keeping(*share).unwrap().accepted).collect()
        };
        assert_eq!(shares(vec![0.5]), [1.0, 1.0, 1.0]);
        assert_eq!(shares((0..25).map(f64::from).collect()), [0.92, 0.96, 1.0]);
        assert_eq!(shares(vec![2.0, 0.5, 0.5]), [1.0, 1.0, 1.0]);
        let case = case("extract the tables of a pdf", Expect::AnyOf(vec![SkillId::new("pdf")]));
        let report = eval(&router(), &[case], EvalOptions::default()).unwrap();
        assert_eq!(report.thresholds.len(), 1, "{:?}", report.thresholds);
    }

    #[test]
    fn current_threshold_is_that_of_the_collection() {
        let router = router();
        let threshold = |queries: &[&str], options| {
            let cases: Vec<Case> =
                queries.iter().map(|q| case(q, Expect::AnyOf(vec![SkillId::new("pdf")]))).collect();
            let report = eval(&router, &cases, options).unwrap();
            // The last point keeps most.
            let keeps = report.thresholds.last().and_then(|point| point.threshold);
            (report.present.threshold.unwrap(), keeps)
        };
        let options = EvalOptions::default();
        let confidence = |intent: &str| {
            let answer =
                router.discover(&Request { intent: intent.to_owned(), ..Request::default() }).unwrap();
            answer.confidence.unwrap().fit_threshold
        };
        let query = "extract the tables of a pdf";
        let chance = "tables of astronauts and elephants";
        let foreign = "提取 pdf tables spreadsheets";
        assert!(confidence(chance) > confidence(query));
        let (alone, keeps) = threshold(&[query], options);
        assert!((alone - confidence(query)).abs() < 1e-12);
        let score = |intent: &str| {
            let answer =
                router.discover(&Request { intent: intent.to_owned(), ..Request::default() }).unwrap();
            answer.results[0].score
        };
        assert!((keeps.unwrap() - score(query)).abs() < 1e-12);
        for others in [&[chance][..], &[query, foreign], &[foreign, chance, query], &["ωωω"]] {
            assert!((threshold(others, options).0 - alone).abs() < 1e-12, "{others:?}");
        }
        let strict = EvalOptions { policy: Policy::Strict, ..options };
        assert!(threshold(&[query], strict).0 < alone);
    }

    #[test]
    fn only_drops_beyond_the_tolerance_are_regressions() {
        let mut now = eval(&router(), &[], EvalOptions::default()).unwrap();
        (now.p_at_1, now.hit_at_5, now.mrr_at_10) = (0.70, 0.90, 0.80);
        let near = |routed| Some(NearMisses { queries: 10, forbidden_first: 9, routed });
        now.near_misses = near(5);
        let mut was = Baseline {
            p_at_1: 0.75,
            hit_at_5: 0.905,
            mrr_at_10: 0.7,
            out_of_scope_rejected: Some(0.9),
            near_misses: near(5),
            lost: None,
            winners: None,
        };
        let found =
            |was: &Baseline| regressions(&now, was, 0.01).into_iter().map(|r| r.figure).collect::<Vec<_>>();
        assert_eq!(found(&was), ["p_at_1"]);
        was.near_misses = near(4);
        assert_eq!(found(&was), ["p_at_1", "near_misses_not_routed"]);
    }

    #[test]
    fn winners_are_compared_for_queries_that_both_reports_have() {
        let id = |id: &str| SkillId::new(id);
        let mails = case("send short mails", Expect::AnyOf(vec![id("mail")]));
        let cases = [
            case("extract the tables of a pdf", Expect::AnyOf(vec![id("pdf")])),
            case("extract tables from pdf files", Expect::Not(id("pdf"))),
            case("short mails to colleagues", Expect::Nothing),
            mails.clone(),
        ];
        let now = eval(&router(), &cases, EvalOptions::default()).unwrap();
        let all: HashSet<String> = cases.iter().map(|case| case.query.clone()).collect();
        let mut before = now.clone();
        before.winners.retain(|one| one.query != mails.query);
        before.winners.iter_mut().for_each(|one| one.won = None);
        before.winners[0].won = Some(id("pdf"));
        before.winners.push(Winner { query: "a former query".to_owned(), won: None });
        let (changed, compared) = changed_winners(&now, &all, &before.into()).unwrap();
        let changed: Vec<_> = changed.into_iter().map(|one| (one.query, one.to)).collect();
        let to = |at: usize, won: &str| (cases[at].query.clone(), Some(id(won)));
        assert_eq!(
            changed,
            [to(1, "pdf"), to(2, "mail")],
            "out-of-scope queries and near misses have winners"
        );
        assert_eq!(
            compared,
            ComparedQueries { queries: 3, added: Some(1), removed: Some(1), not_comparable: 0 }
        );
    }

    #[test]
    fn baseline_of_an_earlier_version_compares_its_lost_queries_only() {
        let id = SkillId::new;
        let cases = [
            case("send short mails", Expect::AnyOf(vec![id("pdf")])),
            case("extract the tables of a pdf", Expect::AnyOf(vec![id("mail")])),
        ];
        let now = eval(&router(), &cases, EvalOptions::default()).unwrap();
        let all: HashSet<String> = cases.iter().map(|case| case.query.clone()).collect();
        let mut before = Baseline::from(now.clone());
        (before.lost, before.winners) = (Some(vec![Lost { won: None, ..now.lost[0].clone() }]), None);
        let (changed, compared) = changed_winners(&now, &all, &before).unwrap();
        let changed: Vec<_> = changed.into_iter().map(|one| (one.query, one.from, one.to)).collect();
        assert_eq!(changed, [(cases[0].query.clone(), None, Some(id("mail")))]);
        let expected = ComparedQueries { queries: 1, not_comparable: 1, ..ComparedQueries::default() };
        assert_eq!(compared, expected);
        before.lost = None;
        assert_eq!(changed_winners(&now, &all, &before), None);
    }

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let mut times: Vec<u64> = (1..=101).rev().collect();
        assert_eq!(latency(&mut times), LatencyUs { p50: 51, p99: 100 });
        assert_eq!(latency(&mut []), LatencyUs::default());
    }
}
