//! Every matcher of the chain is needed: without it, an expected result is lost.

use crate::discovery::skills::{documents, typing, with_body};
use skills_discovery::{Document, MatcherState, Request, Router, Weights, matcher_names};

fn first(router: &Router, intent: &str) -> Option<String> {
    let answer = router.discover(&Request { intent: intent.into(), ..Request::default() }).unwrap();
    answer.results.first().map(|h| h.skill_id.to_string())
}

fn router(off: &[&str]) -> Router {
    let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits())
        .without_matchers(off.iter().copied())
        .unwrap();
    let mut skills = documents();
    skills.push(Document::new("canine", "canine-care", "Feeding plans and walks for puppies."));
    skills.push(Document::new("graph", "graph", "Draws charts of numbers, plots, and figures for papers."));
    router.update(skills, &[]);
    router
}

/// The request, the skill that must be first, and the matcher that this requires.
const NEEDED: [(&str, &str, &str); 4] = [
    ("exact", "extract the tables of this pdf into spreadsheets with /weekly-report", "weekly-report"),
    ("lexical", "borderless grids", "pdf-tables"),
    ("typo", "reprot teem wekly", "weekly-report"),
    ("semantic", "dog", "canine"),
];

#[test]
fn each_matcher_wins_a_request_lost_without_it() {
    for (link, intent, expected) in NEEDED {
        assert_eq!(first(&router(&[]), intent).as_deref(), Some(expected), "{intent}");
        assert_ne!(first(&router(&[link]), intent).as_deref(), Some(expected), "{intent} without {link}");
    }
}

#[test]
fn presence_adds_to_a_score_what_is_lost_without_it() {
    let z = |off: &[&str]| {
        let request = Request { intent: "weekly report of the team".into(), ..Request::default() };
        router(off).discover(&request).unwrap().results[0].z
    };
    assert!(z(&[]) > z(&["presence"]) + 0.3);
}

#[test]
fn task_adds_to_the_skill_with_the_requested_verb() {
    let ask = |off: &[&str]| {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits())
            .without_matchers(off.iter().copied())
            .unwrap();
        let review = Document::new("legal", "legal", "Reviews contracts and lists risky terms.");
        let stored =
            Document::new("suppliers", "suppliers", "Stores contracts. The date of the last review is kept.");
        let other = Document::new("mail", "mail-writer", "Writes short mails to colleagues.");
        let body = |document| with_body(document, &[], "Step by step.");
        router.update([review, stored, other].map(body).into(), &[]);
        let request = Request { intent: "review the contract of a supplier".into(), ..Request::default() };
        let answer = router.discover(&request).unwrap();
        let z = |id: &str| answer.results.iter().find(|hit| hit.skill_id.as_str() == id).unwrap().z;
        (z("legal"), z("suppliers"))
    };
    let (with, without) = (ask(&[]), ask(&["task"]));
    assert!(with.0 > without.0 + 0.1, "{with:?} {without:?}");
    assert!((with.1 - without.1).abs() < 1e-9, "{with:?} {without:?}");
}

#[test]
fn disabled_matcher_is_reported() {
    for name in matcher_names() {
        let answer = typing(&router(&[name]), "tables of a pdf");
        let report = answer.matchers.iter().find(|l| l.matcher == name).unwrap();
        assert_eq!(report.state, MatcherState::Off);
    }
}
