//! The effect of a command on a run in the in-memory core, by the table of states.
#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test file uses a part of it"
)]

use super::run_samples::{self, NOW_MS};
use async_trait::async_trait;
use serde_json::{Value, json};
use skills_api::{
    AttachCheck, AttachCheckResult, AttachPreview, AttachRequest, Attached, CapabilityExplanation, Code,
    CommandResult, ContractView, Error, LaunchRequest, Launched, RunClient, RunCommand, RunDetail,
    TargetChoice,
};
use skills_model::{
    Choice, Command, Decision, Gate, RunSnapshot, RunState, Transition, Verdict, allowed, transition,
};
use skills_skill::{AttachTarget, EffectMode, SkillId};
use skills_store::{
    DecisionRecord, IdempotencyOutcome, NewEvent, RecordedDecision, RunEvent, RunFilter, RunId, RunPage,
    RunRecord,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What the state machine would be given for a run.
pub fn run_snapshot(run: &RunRecord) -> RunSnapshot {
    RunSnapshot {
        state: run.state,
        paused: run.paused,
        replays: run.source.is_some(),
        fence: run.fence,
        gate: run.gate.clone(),
        decided: run.decided.clone(),
        expired_ms: run.expired_ms(),
    }
}

pub fn state_command(command: &RunCommand) -> Command {
    match command {
        RunCommand::Decide { verdict, step, inputs_digest, choice, result, .. } => {
            Command::Decide(Decision {
                verdict: *verdict,
                step: step.clone().unwrap_or_default(),
                inputs_digest: inputs_digest.clone().unwrap_or_default(),
                choice: *choice,
                result: result.clone(),
            })
        }
        RunCommand::Resume { .. } => Command::Resume,
        RunCommand::Signal { name, .. } => Command::Signal { name: name.clone() },
        RunCommand::Cancel { .. } => Command::Cancel,
        RunCommand::Replay { .. } => Command::Replay,
        RunCommand::Fork { .. } => Command::Fork,
        RunCommand::Assign { .. } => panic!("an assignment is not a command of the state machine"),
    }
}

pub fn event_of(command: &RunCommand) -> (&'static str, Value) {
    match command {
        RunCommand::Decide { verdict: Verdict::Approve, approver, notes, .. } => {
            ("gate.approved", json!({ "approver": approver, "notes": notes }))
        }
        RunCommand::Decide { verdict: Verdict::Deny, approver, notes, .. } => {
            ("gate.denied", json!({ "approver": approver, "notes": notes }))
        }
        RunCommand::Resume { checkpoint, inputs, .. } => {
            ("run.resumed", json!({ "checkpoint": checkpoint, "inputs": inputs }))
        }
        RunCommand::Signal { name, payload, .. } => {
            ("signal.received", json!({ "name": name, "payload": payload }))
        }
        RunCommand::Cancel { .. } => ("run.canceled", json!({})),
        RunCommand::Replay { checkpoint, .. } => ("run.replayed_to", json!({ "checkpoint": checkpoint })),
        RunCommand::Fork { checkpoint, .. } => ("run.forked_to", json!({ "checkpoint": checkpoint })),
        RunCommand::Assign { to, note, by, .. } => {
            ("run.assigned", json!({ "to": to, "note": note, "by": by }))
        }
    }
}

pub fn moved(detail: &mut RunDetail, next: Transition, command: &RunCommand) {
    if let Transition::Move { state, fence, paused, gate, .. } = next {
        if let (RunCommand::Decide { approver, notes, .. }, Command::Decide(decision)) =
            (command, state_command(command))
        {
            let by = DecisionRecord { approver: approver.clone(), notes: notes.clone() };
            detail.decisions.push(RecordedDecision { at_ms: NOW_MS, decision: decision.clone(), by });
            detail.run.decided = Some(decision);
        }
        let run = &mut detail.run;
        (run.state, run.fence, run.paused, run.gate, run.since_ms) = (state, fence, paused, gate, NOW_MS);
        if state != RunState::WaitingForHuman {
            detail.sheet = None;
        }
    }
    detail.run.allowed = allowed(&run_snapshot(&detail.run));
}

pub fn note(command: &RunCommand, next: &Transition, decisions: &[RecordedDecision]) -> String {
    match (command, next) {
        (RunCommand::Decide { verdict, .. }, Transition::Unchanged) => {
            let who = decisions.last().and_then(|d| d.by.approver.clone()).unwrap_or("somebody".to_owned());
            let done = if *verdict == Verdict::Approve { "approved" } else { "denied" };
            format!("was already {done} by {who}")
        }
        (RunCommand::Decide { choice: Some(choice), .. }, _) => match choice {
            Choice::Rerun => "runs again",
            Choice::Happened => "marked completed",
            Choice::Skip => "skipped",
            Choice::Fail => "failed there",
        }
        .to_owned(),
        (RunCommand::Decide { verdict: Verdict::Approve, .. }, _) => "approved".to_owned(),
        (RunCommand::Decide { .. }, _) => "denied".to_owned(),
        (RunCommand::Resume { .. }, _) => "resumed".to_owned(),
        (RunCommand::Signal { name, .. }, Transition::SignalBuffered) => {
            format!("signal `{name}` is buffered until a step waits for it")
        }
        (RunCommand::Signal { name, .. }, _) => format!("signal {name} sent"),
        (RunCommand::Cancel { .. }, Transition::Unchanged) => "was already canceled".to_owned(),
        (RunCommand::Cancel { .. }, _) => "canceled".to_owned(),
        (RunCommand::Replay { .. }, _) => "replayed".to_owned(),
        (RunCommand::Assign { .. }, _) => "assigned".to_owned(),
        (RunCommand::Fork { .. }, _) => "forked; held until it is resumed".to_owned(),
    }
}
