//! The thresholds of the weights file on the public query sets: in-scope requests are accepted and
//! out-of-scope requests rejected, in collections of every size.
#![allow(clippy::unwrap_used, reason = "a set that cannot be read or ranked has to fail the test")]

use crate::discovery::sets::{Set, set};
use skills_discovery::{
    Case, Document, EvalOptions, EvalReport, Expect, Fit, Request, Router, Weights, eval,
};

/// A set together with the out-of-scope queries of clinc150, which none of these skills fits.
fn measured(name: &str) -> Option<EvalReport> {
    let (set, strangers) = (set(name)?, set("clinc150")?.out_of_scope);
    let cases: Vec<Case> = set.queries.iter().chain(&strangers).cloned().collect();
    Some(eval(&set.router(), &cases, EvalOptions::default()).unwrap())
}

/// The share of out-of-scope requests rejected where 94 % of the in-scope requests are accepted.
fn rejected_at_94(report: &EvalReport) -> f64 {
    report.thresholds.iter().find(|point| point.accepted > 0.94 - 1e-9).unwrap().rejected.unwrap()
}

#[test]
fn real_skills_match_requests_and_reject_out_of_scope_ones() {
    let Some(report) = measured("skilltrig") else { return };
    println!("skilltrig: {:?} {:?}", report.present, report.thresholds);
    assert!((0.92..=0.96).contains(&report.present.accepted), "{:?}", report.present);
    assert!(rejected_at_94(&report) >= 0.88, "{:?}", report.thresholds);
}

#[test]
fn short_descriptions_match_requests_and_reject_out_of_scope_ones() {
    for (name, wanted) in [("clinc150", 0.72), ("banking77", 0.90), ("metatool", 0.35), ("sealtools", 0.70)] {
        let Some(report) = measured(name) else { return };
        println!("{name}: {:?} {:?}", report.present, report.thresholds);
        assert!((0.87..=0.995).contains(&report.present.accepted), "{name}: {:?}", report.present);
        assert!(rejected_at_94(&report) >= wanted, "{name}: {:?}", report.thresholds);
    }
}

/// In collections of `n` skills cut out of a set: the share of requests accepted, and of out-of-scope ones rejected.
fn shares(set: &Set, strangers: &[Case], n: usize) -> (f64, f64) {
    let (mut fitting, mut accepted, mut strange, mut rejected) = (0, 0, 0, 0);
    for (at, documents) in set.skills.chunks_exact(n).enumerate() {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update(documents.to_vec(), &[]);
        let fits = |case: &Case| {
            let request = Request { intent: case.query.clone(), ..Request::default() };
            router.discover(&request).unwrap().fit != Fit::None
        };
        for case in set.queries.iter().filter(|case| is_here(case, documents)) {
            fitting += 1;
            accepted += usize::from(fits(case));
        }
        for case in strangers.iter().skip(at % 7).step_by(7) {
            strange += 1;
            rejected += usize::from(!fits(case));
        }
    }
    (f64::from(accepted as u32) / f64::from(fitting), f64::from(rejected as u32) / f64::from(strange))
}

fn is_here(case: &Case, documents: &[Document]) -> bool {
    matches!(&case.expect, Expect::AnyOf(expected) if documents.iter().any(|d| expected.contains(&d.id)))
}

#[test]
fn small_collections_match_requests_and_reject_out_of_scope_ones() {
    let (Some(trigger), Some(clinc)) = (set("skilltrig"), set("clinc150")) else { return };
    for n in [16, 64] {
        let (accepted, turned) = shares(&trigger, &clinc.out_of_scope, n);
        println!("bodies, {n} skills: {accepted:.3} kept, {turned:.3} rejected");
        assert!(accepted > 0.91 && turned > 0.85, "bodies, {n} skills: {accepted:.3} {turned:.3}");
        let (accepted, turned) = shares(&clinc, &clinc.out_of_scope, n);
        println!("short, {n} skills: {accepted:.3} kept, {turned:.3} rejected");
        assert!(accepted > 0.90 && turned > 0.60, "short, {n} skills: {accepted:.3} {turned:.3}");
    }
}
