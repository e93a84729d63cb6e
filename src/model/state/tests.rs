//! The transition table, row by row, and properties over random command sequences.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;
use strum::IntoEnumIterator as _;

use super::*;

fn human(step: &str) -> Gate {
    Gate::human(step, "d1", ApprovalReason::Confirmation)
}

fn snapshot_in(state: RunState) -> RunSnapshot {
    let gate = match state {
        RunState::WaitingForHuman => Some(human("send")),
        RunState::WaitingForSignal => {
            Some(Gate::Signal { step: "ready".into(), name: "books-closed".into() })
        }
        _ => None,
    };
    RunSnapshot { state, paused: false, replays: false, fence: 7, gate, decided: None, expired_ms: None }
}

fn decision(verdict: Verdict) -> Decision {
    Decision { verdict, step: "send".into(), inputs_digest: "d1".into(), choice: None, result: None }
}

/// Abbreviates one cell of the table: the next state, `409`, `stale`, `new`, `same`, `kept`, `–`.
fn cell(run: &RunSnapshot, command: &Command) -> String {
    match transition(run, command) {
        Ok(Transition::Move { state, fence, lease, .. }) => {
            let fence = if fence > run.fence { " fence+1" } else { "" };
            let lease = match lease {
                Lease::Grant => " granted",
                Lease::Keep => " kept",
                Lease::Release => "",
            };
            format!("{state}{fence}{lease}")
        }
        Ok(Transition::Unchanged) => "same".into(),
        Ok(Transition::SignalBuffered) => "kept".into(),
        Ok(Transition::NewRun { paused }) => format!("new{}", if paused { " held" } else { "" }),
        Err(TransitionError::Invalid { .. } | TransitionError::DecisionConflict(_)) => "409".into(),
        Err(TransitionError::StaleFence { .. }) => "stale".into(),
        Err(TransitionError::NotExpired | TransitionError::NotClaimable | TransitionError::Paused) => {
            "–".into()
        }
    }
}

#[test]
fn all_transitions() {
    let commands: Vec<(&str, Command)> = vec![
        ("claim", Command::Claim { lease_expired: false, attempts_used_up: false }),
        ("claim, lease out", Command::Claim { lease_expired: true, attempts_used_up: false }),
        ("claim, used up", Command::Claim { lease_expired: true, attempts_used_up: true }),
        ("checkpoint", Command::Work { fence: 7, report: WorkerReport::Checkpoint }),
        ("checkpoint, old fence", Command::Work { fence: 6, report: WorkerReport::Checkpoint }),
        ("wait", Command::Work { fence: 7, report: WorkerReport::Wait(human("send")) }),
        ("hold", Command::Work { fence: 7, report: WorkerReport::Pause }),
        ("complete", Command::Work { fence: 7, report: WorkerReport::Complete }),
        ("fail", Command::Work { fence: 7, report: WorkerReport::Fail }),
        ("approve", Command::Decide(decision(Verdict::Approve))),
        ("deny", Command::Decide(decision(Verdict::Deny))),
        ("signal, fits", Command::Signal { name: "books-closed".into() }),
        ("signal, other", Command::Signal { name: "other".into() }),
        ("cancel", Command::Cancel),
        ("pause", Command::Pause),
        ("ask", Command::Ask(human("send"))),
        ("resume", Command::Resume),
        ("expire, deny", Command::Expire(Expiry::Deny)),
        ("expire, fail", Command::Expire(Expiry::Fail)),
        ("replay", Command::Replay),
        ("fork", Command::Fork),
    ];
    let mut table = String::new();
    for (name, command) in &commands {
        write!(table, "{name:>22}").unwrap();
        for state in RunState::iter() {
            write!(table, " | {state}: {}", cell(&snapshot_in(state), command)).unwrap();
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

#[test]
fn paused_run_is_claimed_only_after_resume() {
    let mut run = snapshot_in(RunState::Pending);
    run.paused = true;
    let claim = Command::Claim { lease_expired: false, attempts_used_up: false };
    assert_eq!(transition(&run, &claim), Err(TransitionError::NotClaimable));
    assert!(allowed(&run).contains(&CommandName::Resume));
    apply(&mut run, &Command::Resume);
    assert!(matches!(
        transition(&run, &claim),
        Ok(Transition::Move { state: RunState::Running, fence: 8, .. })
    ));
}

#[test]
fn paused_run_stops_and_continues_on_resume() {
    for state in RunState::iter().filter(|state| !state.is_terminal() && *state != RunState::Failed) {
        let mut run = snapshot_in(state);
        apply(&mut run, &Command::Pause);
        assert!(
            run.paused && run.state == state && run.fence == 7,
            "{state}: a step in progress is not stopped"
        );
        assert_eq!(transition(&run, &Command::Pause), Ok(Transition::Unchanged), "{state}");
        // If the worker dies in the meantime, its successor knows that the run is paused.
        apply(&mut run, &Command::Claim { lease_expired: true, attempts_used_up: false });
        let fence = run.fence;
        apply(&mut run, &Command::Work { fence, report: WorkerReport::Checkpoint });
        apply(&mut run, &Command::Work { fence, report: WorkerReport::Pause });
        apply(&mut run, &Command::Decide(decision(Verdict::Approve)));
        apply(&mut run, &Command::Signal { name: "books-closed".into() });
        assert_eq!((run.state, run.paused), (RunState::Pending, true), "{state}");
        apply(&mut run, &Command::Resume);
        assert_eq!((run.state, run.paused), (RunState::Pending, false), "{state}");
    }
}

#[test]
fn a_replay_restores_before_it_runs() {
    let mut run = snapshot_in(RunState::Pending);
    run.replays = true;
    apply(&mut run, &Command::Claim { lease_expired: false, attempts_used_up: false });
    assert_eq!(run.state, RunState::Replaying);
}

#[test]
fn repeated_decision_is_idempotent_and_another_one_conflicts() {
    let mut run = snapshot_in(RunState::WaitingForHuman);
    let yes = decision(Verdict::Approve);
    apply(&mut run, &Command::Decide(yes.clone()));
    assert_eq!(run.state, RunState::Pending);
    assert_eq!(transition(&run, &Command::Decide(yes)), Ok(Transition::Unchanged));
    let no = transition(&run, &Command::Decide(decision(Verdict::Deny)));
    assert!(
        matches!(no, Err(TransitionError::DecisionConflict(why)) if why.contains("already decided: approve"))
    );
}

#[test]
fn a_decision_for_other_inputs_is_refused() {
    let run = snapshot_in(RunState::WaitingForHuman);
    let other = Decision { inputs_digest: "d2".into(), ..decision(Verdict::Approve) };
    assert!(matches!(transition(&run, &Command::Decide(other)), Err(TransitionError::DecisionConflict(_))));
}

#[test]
fn signal_of_another_name_is_rejected() {
    let other = Command::Signal { name: "other".into() };
    let refusal = transition(&snapshot_in(RunState::WaitingForSignal), &other).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the run does not accept this signal: it is waiting for the signal `books-closed`, not `other`; other available commands: cancel, replay, fork"
    );
}

#[test]
fn only_a_completed_step_has_a_stated_result() {
    let mut run = snapshot_in(RunState::WaitingForHuman);
    run.gate = Some(Gate::human("send", "d1", ApprovalReason::UnknownOutcome));
    let message = |choice, result| Decision { choice, result, ..decision(Verdict::Approve) };
    let result = || Some(serde_json::json!({"sent": true}));
    let refused = |decision: Decision| transition(&run, &Command::Decide(decision)).unwrap_err().to_string();
    for lacking in [message(Some(Choice::Happened), None), message(None, None)] {
        let why = refused(lacking);
        assert!(Choice::iter().all(|choice| why.contains(&choice.to_string())), "{why}");
    }
    assert!(refused(message(Some(Choice::Skip), result())).contains("only valid with the choice `happened`"));
    assert!(refused(message(None, result())).contains("choose rerun"));
    let no = Decision { choice: Some(Choice::Rerun), ..decision(Verdict::Deny) };
    assert!(refused(no).contains("denying step send cancels the run"));
    let happened = Command::Decide(message(Some(Choice::Happened), result()));
    assert!(matches!(transition(&run, &happened), Ok(Transition::Move { state: RunState::Pending, .. })));
    apply(&mut run, &happened);
    assert_eq!(transition(&run, &happened), Ok(Transition::Unchanged));
    let other = message(Some(Choice::Happened), Some(serde_json::json!({"sent": false})));
    assert!(matches!(transition(&run, &Command::Decide(other)), Err(TransitionError::DecisionConflict(_))));
}

#[test]
fn resume_of_a_waiting_run_names_the_missing_decision() {
    let refusal = transition(&snapshot_in(RunState::WaitingForSignal), &Command::Resume).unwrap_err();
    insta::assert_snapshot!(refusal.to_string(), @"cannot resume the run: it is waiting for the signal `books-closed`; available commands: signal, cancel, replay, fork");
}

/// Applies a command that changes the state, as a store would.
fn apply(run: &mut RunSnapshot, command: &Command) {
    if let Ok(Transition::Move { state, fence, paused, gate, .. }) = transition(run, command) {
        if let Command::Decide(decision) = command {
            run.decided = Some(decision.clone());
        }
        *run = RunSnapshot { state, paused, fence, gate, ..run.clone() };
    }
}

fn any_command() -> impl Strategy<Value = Command> {
    prop_oneof![
        (any::<bool>(), any::<bool>())
            .prop_map(|(lease_expired, attempts_used_up)| Command::Claim { lease_expired, attempts_used_up }),
        (0..4_u64, 0..5_u8).prop_map(|(back, kind)| Command::Work {
            fence: 10_u64.saturating_sub(back),
            report: match kind {
                0 => WorkerReport::Checkpoint,
                1 => WorkerReport::Wait(human("send")),
                2 => WorkerReport::Complete,
                3 => WorkerReport::Pause,
                _ => WorkerReport::Fail,
            },
        }),
        Just(Command::Decide(decision(Verdict::Approve))),
        Just(Command::Decide(decision(Verdict::Deny))),
        Just(Command::Signal { name: "books-closed".into() }),
        Just(Command::Cancel),
        Just(Command::Pause),
        Just(Command::Resume),
        Just(Command::Expire(Expiry::Deny)),
        Just(Command::Expire(Expiry::Fail)),
    ]
}

proptest! {
    #[test]
    fn fencing_tokens_increase_and_ended_runs_stay_ended(commands in prop::collection::vec(any_command(), 0..60)) {
        let mut run = snapshot_in(RunState::Pending);
        for command in &commands {
            let before = run.clone();
            apply(&mut run, command);
            prop_assert!(run.fence >= before.fence);
            if before.state.is_terminal() {
                prop_assert_eq!(run.state, before.state);
            }
            prop_assert_eq!(run.gate.is_some(), matches!(run.state, RunState::WaitingForHuman | RunState::WaitingForSignal));
        }
    }

    #[test]
    fn allowed_commands_are_exactly_those_accepted(commands in prop::collection::vec(any_command(), 0..30)) {
        let mut run = snapshot_in(RunState::Pending);
        for command in &commands {
            apply(&mut run, command);
        }
        run.decided = None;
        for name in CommandName::iter() {
            let command = match name {
                CommandName::Approve => Command::Decide(decision(Verdict::Approve)),
                CommandName::Deny => Command::Decide(decision(Verdict::Deny)),
                CommandName::Resume => Command::Resume,
                CommandName::Signal => Command::Signal { name: "books-closed".into() },
                CommandName::Cancel => Command::Cancel,
                CommandName::Replay => Command::Replay,
                CommandName::Fork => Command::Fork,
            };
            let works = matches!(transition(&run, &command), Ok(Transition::Move { .. } | Transition::SignalBuffered | Transition::NewRun { .. }));
            prop_assert_eq!(allowed(&run).contains(&name), works, "{:?} {}", run, name);
        }
    }
}

#[test]
fn unchecked_decision_is_accepted_only_as_a_repetition() {
    let mut run = snapshot_in(RunState::WaitingForHuman);
    let approve = decision(Verdict::Approve);
    let unchecked = Command::RepeatDecision(approve.clone());
    assert!(matches!(transition(&run, &unchecked), Err(TransitionError::Invalid { .. })));
    apply(&mut run, &Command::Decide(approve));
    assert_eq!(transition(&run, &unchecked), Ok(Transition::Unchanged));
}

#[test]
fn approvals_of_an_unknown_outcome_have_to_agree() {
    let mut run = snapshot_in(RunState::WaitingForHuman);
    run.gate = Some(Gate::human("send", "d1", ApprovalReason::UnknownOutcome));
    let endorse = |by: &str, choice, result: Option<i64>| Command::Endorse {
        decision: Decision {
            choice: Some(choice),
            result: result.map(|paid| json!({ "paid": paid })),
            ..decision(Verdict::Approve)
        },
        by: by.to_owned(),
        need: 2,
    };
    apply(&mut run, &endorse("ana", Choice::Skip, None));
    let other = transition(&run, &endorse("kim", Choice::Rerun, None)).unwrap_err().to_string();
    assert!(other.contains("approved by ana with the choice `skip`"), "{other}");
    // Who is the only one so far may choose again.
    apply(&mut run, &endorse("ana", Choice::Happened, Some(1)));
    let other = transition(&run, &endorse("kim", Choice::Happened, Some(1_000_000))).unwrap_err();
    assert!(matches!(other, TransitionError::DecisionConflict(_)), "{other}");
    apply(&mut run, &endorse("kim", Choice::Happened, Some(1)));
    assert_eq!((run.state, run.gate), (RunState::Pending, None));
}

#[test]
fn a_gate_opens_with_the_last_approval_needed() {
    let mut run = snapshot_in(RunState::WaitingForHuman);
    let endorse =
        |by: &str| Command::Endorse { decision: decision(Verdict::Approve), by: by.to_owned(), need: 2 };
    let Transition::Move { state, gate: Some(gate), .. } = transition(&run, &endorse("ana")).unwrap() else {
        panic!("one approval of two decides nothing")
    };
    assert_eq!(state, RunState::WaitingForHuman);
    assert!(gate.is_same_question(&human("send")));
    run.gate = Some(gate.clone());
    assert_eq!(transition(&run, &endorse("ana")), Ok(Transition::Unchanged), "each person counts once");
    assert_eq!(
        transition(&run, &Command::Ask(human("send"))),
        Ok(Transition::Unchanged),
        "asking again keeps approvals"
    );
    let Ok(Transition::Move { state, gate, .. }) = transition(&run, &endorse("kim")) else {
        panic!("two are enough")
    };
    assert_eq!((state, gate), (RunState::Pending, None));
    let other = Decision { inputs_digest: "d2".into(), ..decision(Verdict::Approve) };
    let stale = Command::Endorse { decision: other, by: "bo".into(), need: 2 };
    assert!(matches!(transition(&run, &stale), Err(TransitionError::DecisionConflict(_))));
    let deny = transition(&run, &Command::Decide(decision(Verdict::Deny)));
    assert!(matches!(deny, Ok(Transition::Move { state: RunState::Canceled, .. })), "one denial is enough");
}
