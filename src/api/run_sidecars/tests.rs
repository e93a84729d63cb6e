//! Tests of pauses that are pending, in effect, and over.

use serde_json::json;

use super::*;
use skills_model::ApprovalReason;
use skills_store::{NewEvent, RunOptions};

fn run(state: RunState, paused: bool) -> RunRecord {
    let gate =
        (state == RunState::WaitingForHuman).then(|| Gate::human("book", "d", ApprovalReason::Confirmation));
    RunRecord {
        id: RunId("run".into()),
        skill_id: "invoice-intake".into(),
        state,
        paused,
        gate,
        decided: None,
        contract_digest: String::new(),
        inputs: json!({}),
        target: None,
        options: RunOptions::default(),
        outputs: None,
        error: None,
        trace_id: String::new(),
        started_by: "ana".into(),
        source: None,
        progress: (0, 1),
        step: None,
        head: 0,
        fence: 0,
        lease: None,
        created_ms: 0,
        since_ms: 90,
        expires_ms: None,
        allowed: Vec::new(),
    }
}

fn events(kinds: &[&str]) -> Vec<RunEvent> {
    let data = |kind: &str| match kind {
        "control.applied" => {
            json!({"asked": "pause", "by": "side-1", "skill": "watch", "why": "too many rows",
                                    "did": "it stops before its next step"})
        }
        _ => json!({}),
    };
    let event = |(number, kind): (u64, &&str)| RunEvent {
        run: RunId("run".into()),
        number,
        global: number,
        at_ms: number as i64 * 10,
        event: NewEvent { kind: (*kind).into(), step: None, data: data(kind) },
    };
    (1..).zip(kinds).map(event).collect()
}

fn next_actions(state: RunState, paused: bool, kinds: &[&str]) -> String {
    let requests = control_requests(&run(state, paused), events(kinds).iter());
    requests[0].sentence(|skill, _| skill.unwrap_or_default().to_owned(), |at| format!("{at}"))
}

#[test]
fn the_current_state_of_a_pause_is_reported() {
    assert_eq!(
        next_actions(RunState::WaitingForHuman, true, &["run.created", "run.paused", "control.applied"]),
        "the sidecar watch requests a pause (too many rows): after approval it is paused until it is resumed"
    );
    assert_eq!(
        next_actions(RunState::Running, true, &["run.paused", "control.applied"]),
        "the sidecar watch requests a pause (too many rows): before its next step it is paused until it is resumed"
    );
    assert_eq!(
        next_actions(
            RunState::Pending,
            true,
            &["run.paused", "control.applied", "gate.approved", "run.held"]
        ),
        "the sidecar watch requests a pause (too many rows): paused since 40, until it is resumed"
    );
    let over = ["run.paused", "control.applied", "run.held", "run.resumed", "run.completed"];
    assert_eq!(
        next_actions(RunState::Completed, false, &over),
        "the sidecar watch requested a pause (too many rows): paused from 30 until 40"
    );
    assert_eq!(
        next_actions(RunState::Completed, false, &["run.paused", "control.applied", "run.completed"]),
        "the sidecar watch requested a pause (too many rows): it was completed before it could be paused"
    );
    assert_eq!(
        next_actions(
            RunState::Canceled,
            false,
            &["run.paused", "control.applied", "gate.denied", "run.canceled"]
        ),
        "the sidecar watch requested a pause (too many rows): it was canceled before it could be paused"
    );
}

#[test]
fn a_decision_names_who_requested_the_pause() {
    let events_list = events(&["run.paused", "control.applied"]);
    assert_eq!(
        requested_pause(&run(RunState::WaitingForHuman, true), events_list.iter()).as_deref(),
        Some("watch (too many rows)")
    );
    assert_eq!(requested_pause(&run(RunState::WaitingForHuman, false), events_list.iter()), None);
    assert!(requested_pause(&run(RunState::WaitingForSignal, true), events_list.iter()).is_some());
}
