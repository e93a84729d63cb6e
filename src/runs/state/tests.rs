//! The table, row by row, and properties over random command sequences.

use std::fmt::Write as _;

use proptest::prelude::*;
use strum::IntoEnumIterator as _;

use super::*;

fn human(step: &str) -> Gate {
    Gate::Human { step: step.into(), inputs_digest: "d1".into(), why: Asked::Confirmation }
}

fn standing(state: RunState) -> Standing {
    let gate = match state {
        RunState::WaitingForHuman => Some(human("send")),
        RunState::WaitingForSignal => {
            Some(Gate::Signal { step: "ready".into(), name: "books-closed".into() })
        }
        _ => None,
    };
    Standing { state, held: false, replays: false, fence: 7, gate, decided: None }
}

fn decision(verdict: Verdict) -> Decision {
    Decision { verdict, step: "send".into(), inputs_digest: "d1".into(), choice: None }
}

/// One cell of the table in a few letters: the next state, `409`, `stale`, `new`, `same`, `kept`, `–`.
fn cell(run: &Standing, command: &Command) -> String {
    match transition(run, command) {
        Ok(Next::Move { state, fence, lease, .. }) => {
            let fence = if fence > run.fence { " fence+1" } else { "" };
            let lease = match lease {
                Lease::Grant => " granted",
                Lease::Keep => " kept",
                Lease::Release => "",
            };
            format!("{state}{fence}{lease}")
        }
        Ok(Next::Same) => "same".into(),
        Ok(Next::Kept) => "kept".into(),
        Ok(Next::NewRun { held }) => format!("new{}", if held { " held" } else { "" }),
        Err(Refusal::Invalid { .. } | Refusal::OtherDecision(_)) => "409".into(),
        Err(Refusal::StaleFence { .. }) => "stale".into(),
        Err(Refusal::NotOver | Refusal::NotClaimable) => "–".into(),
    }
}

#[test]
fn the_whole_table() {
    let commands: Vec<(&str, Command)> = vec![
        ("claim", Command::Claim { lease_expired: false, attempts_used_up: false }),
        ("claim, lease out", Command::Claim { lease_expired: true, attempts_used_up: false }),
        ("claim, used up", Command::Claim { lease_expired: true, attempts_used_up: true }),
        ("checkpoint", Command::Work { fence: 7, report: WorkerMove::Checkpoint }),
        ("checkpoint, old fence", Command::Work { fence: 6, report: WorkerMove::Checkpoint }),
        ("wait", Command::Work { fence: 7, report: WorkerMove::Wait(human("send")) }),
        ("complete", Command::Work { fence: 7, report: WorkerMove::Complete }),
        ("fail", Command::Work { fence: 7, report: WorkerMove::Fail }),
        ("approve", Command::Decide(decision(Verdict::Approve))),
        ("deny", Command::Decide(decision(Verdict::Deny))),
        ("signal, fits", Command::Signal { name: "books-closed".into() }),
        ("signal, other", Command::Signal { name: "other".into() }),
        ("cancel", Command::Cancel),
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
            write!(table, " | {state}: {}", cell(&standing(state), command)).unwrap();
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_held_run_is_claimed_only_after_resume() {
    let mut run = standing(RunState::Pending);
    run.held = true;
    let claim = Command::Claim { lease_expired: false, attempts_used_up: false };
    assert_eq!(transition(&run, &claim), Err(Refusal::NotClaimable));
    assert!(allowed(&run).contains(&CommandName::Resume));
    apply(&mut run, &Command::Resume);
    assert!(matches!(transition(&run, &claim), Ok(Next::Move { state: RunState::Running, fence: 8, .. })));
}

#[test]
fn a_replay_restores_before_it_runs() {
    let mut run = standing(RunState::Pending);
    run.replays = true;
    apply(&mut run, &Command::Claim { lease_expired: false, attempts_used_up: false });
    assert_eq!(run.state, RunState::Replaying);
}

#[test]
fn the_same_decision_again_gets_the_same_answer_and_another_one_a_conflict() {
    let mut run = standing(RunState::WaitingForHuman);
    let yes = decision(Verdict::Approve);
    apply(&mut run, &Command::Decide(yes.clone()));
    assert_eq!(run.state, RunState::Pending);
    assert_eq!(transition(&run, &Command::Decide(yes)), Ok(Next::Same));
    let no = transition(&run, &Command::Decide(decision(Verdict::Deny)));
    assert!(matches!(no, Err(Refusal::OtherDecision(why)) if why.contains("already decided: approve")));
}

#[test]
fn a_decision_for_other_inputs_is_refused() {
    let run = standing(RunState::WaitingForHuman);
    let other = Decision { inputs_digest: "d2".into(), ..decision(Verdict::Approve) };
    assert!(matches!(transition(&run, &Command::Decide(other)), Err(Refusal::OtherDecision(_))));
}

#[test]
fn resume_of_a_waiting_run_says_what_is_needed() {
    let refusal = transition(&standing(RunState::WaitingForSignal), &Command::Resume).unwrap_err();
    insta::assert_snapshot!(refusal.to_string(), @r#"a waiting_for_signal run does not take resume: it needs the signal "books-closed"; it takes signal, cancel, replay, fork"#);
}

/// Applies a command that moves, as a store would.
fn apply(run: &mut Standing, command: &Command) {
    if let Ok(Next::Move { state, fence, held, gate, .. }) = transition(run, command) {
        if let Command::Decide(decision) = command {
            run.decided = Some(decision.clone());
        }
        *run = Standing { state, held, fence, gate, ..run.clone() };
    }
}

fn any_command() -> impl Strategy<Value = Command> {
    prop_oneof![
        (any::<bool>(), any::<bool>())
            .prop_map(|(lease_expired, attempts_used_up)| Command::Claim { lease_expired, attempts_used_up }),
        (0..4_u64, 0..4_u8).prop_map(|(back, kind)| Command::Work {
            fence: 10_u64.saturating_sub(back),
            report: match kind {
                0 => WorkerMove::Checkpoint,
                1 => WorkerMove::Wait(human("send")),
                2 => WorkerMove::Complete,
                _ => WorkerMove::Fail,
            },
        }),
        Just(Command::Decide(decision(Verdict::Approve))),
        Just(Command::Decide(decision(Verdict::Deny))),
        Just(Command::Signal { name: "books-closed".into() }),
        Just(Command::Cancel),
        Just(Command::Resume),
        Just(Command::Expire(Expiry::Deny)),
        Just(Command::Expire(Expiry::Fail)),
    ]
}

proptest! {
    #[test]
    fn fences_only_rise_and_terminal_runs_stay(commands in prop::collection::vec(any_command(), 0..60)) {
        let mut run = standing(RunState::Pending);
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
    fn what_is_allowed_is_what_works(commands in prop::collection::vec(any_command(), 0..30)) {
        let mut run = standing(RunState::Pending);
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
            let works = matches!(transition(&run, &command), Ok(Next::Move { .. } | Next::Kept | Next::NewRun { .. }));
            prop_assert_eq!(allowed(&run).contains(&name), works, "{:?} {}", run, name);
        }
    }
}
