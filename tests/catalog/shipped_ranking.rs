//! The shipped skills under the router: sidecars are offered for attaching and never recommended,
//! deprecated ones are left out with the reason, and an explanation names the words that won.

use std::path::Path;

use skills_discovery::{Answer, Document, ExcludedWhy, Fit, Group, Request, Router, Weights};

fn router() -> Router {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills");
    let mut documents = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let location = entry.unwrap().path().join("SKILL.md");
        if location.is_file() {
            let skill = skills_skill::read_bundle(&location).unwrap();
            let text = skills_skill::read_index_text(&skill).unwrap();
            documents.push(Document::from_skill(&skill, Some(text)));
        }
    }
    let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
    router.update(documents, &[]);
    router
}

fn ask(router: &Router, intent: &str) -> Answer {
    router.discover(&Request { intent: intent.to_owned(), ..Request::default() }).unwrap()
}

#[test]
fn sidecars_are_offered_for_attachment_and_never_recommended() {
    let router = router();
    for (intent, sidecar) in [
        ("did a password leak into the build output", "secret-scan"),
        ("stop the run when it costs more than its budget", "run-cost-watch"),
        ("summarise this long session with the agent for whoever takes over", "transcript-summary"),
    ] {
        let answer = ask(&router, intent);
        let first = answer.attachable.first().unwrap();
        assert_eq!(first.skill_id.as_str(), sidecar, "{intent}");
        assert!(!first.attach_targets.is_empty());
        assert!(answer.results.iter().all(|hit| hit.skill_id.as_str() != sidecar), "{intent}");
    }
}

#[test]
fn deprecated_skill_is_excluded_and_its_successor_wins() {
    let answer = ask(&router(), "merge log files by time stamp");
    let left_out = answer.excluded.iter().find(|e| e.skill_id.as_str() == "log-merge").unwrap();
    assert_eq!(left_out.reason, ExcludedWhy::Deprecated);
    assert_eq!(answer.results[0].skill_id.as_str(), "incident-timeline");
}

#[test]
fn procedures_are_primary_and_utilities_secondary() {
    let router = router();
    let group = |intent: &str| ask(&router, intent).results[0].group;
    assert_eq!(group("release notes for the new version"), Group::Primary);
    assert_eq!(group("what does the HTTP status code 409 mean"), Group::Secondary);
}

#[test]
fn an_out_of_scope_request_is_rejected() {
    let router = router();
    for intent in ["book me a flight to lisbon", "recipe for lentil soup", "play some quiet piano music"] {
        assert_eq!(ask(&router, intent).fit, Fit::None, "{intent}");
    }
    assert!(ask(&router, "compare two JSON documents by structure").fit > Fit::Low);
}
