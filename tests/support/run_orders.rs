//! What an order does to a run in the core that holds runs in memory, by the one table of states.
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
    ContractView, Error, LaunchRequest, Launched, Ordered, RunClient, RunDetail, RunOrder, TargetChoice,
};
use skills_model::{
    Choice, Command, Decision, Gate, Next, RunSnapshot, RunState, Verdict, allowed, transition,
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

pub fn command(order: &RunOrder) -> Command {
    match order {
        RunOrder::Decide { verdict, step, inputs_digest, choice, result, .. } => Command::Decide(Decision {
            verdict: *verdict,
            step: step.clone().unwrap_or_default(),
            inputs_digest: inputs_digest.clone().unwrap_or_default(),
            choice: *choice,
            result: result.clone(),
        }),
        RunOrder::Resume { .. } => Command::Resume,
        RunOrder::Signal { name, .. } => Command::Signal { name: name.clone() },
        RunOrder::Cancel { .. } => Command::Cancel,
        RunOrder::Replay { .. } => Command::Replay,
        RunOrder::Fork { .. } => Command::Fork,
        RunOrder::Assign { .. } => panic!("an assignment is not a command of the state machine"),
    }
}

pub fn event_of(order: &RunOrder) -> (&'static str, Value) {
    match order {
        RunOrder::Decide { verdict: Verdict::Approve, approver, notes, .. } => {
            ("gate.approved", json!({ "approver": approver, "notes": notes }))
        }
        RunOrder::Decide { verdict: Verdict::Deny, approver, notes, .. } => {
            ("gate.denied", json!({ "approver": approver, "notes": notes }))
        }
        RunOrder::Resume { checkpoint, inputs, .. } => {
            ("run.resumed", json!({ "checkpoint": checkpoint, "inputs": inputs }))
        }
        RunOrder::Signal { name, payload, .. } => {
            ("signal.received", json!({ "name": name, "payload": payload }))
        }
        RunOrder::Cancel { .. } => ("run.canceled", json!({})),
        RunOrder::Replay { checkpoint, .. } => ("run.replayed_to", json!({ "checkpoint": checkpoint })),
        RunOrder::Fork { checkpoint, .. } => ("run.forked_to", json!({ "checkpoint": checkpoint })),
        RunOrder::Assign { to, note, by, .. } => {
            ("run.assigned", json!({ "to": to, "note": note, "by": by }))
        }
    }
}

pub fn moved(detail: &mut RunDetail, next: Next, order: &RunOrder) {
    if let Next::Move { state, fence, paused: held, gate, .. } = next {
        if let (RunOrder::Decide { approver, notes, .. }, Command::Decide(decision)) = (order, command(order))
        {
            let by = DecisionRecord { approver: approver.clone(), notes: notes.clone() };
            detail.decisions.push(RecordedDecision { at_ms: NOW_MS, decision: decision.clone(), by });
            detail.run.decided = Some(decision);
        }
        let run = &mut detail.run;
        (run.state, run.fence, run.paused, run.gate, run.since_ms) = (state, fence, held, gate, NOW_MS);
        if state != RunState::WaitingForHuman {
            detail.sheet = None;
        }
    }
    detail.run.allowed = allowed(&run_snapshot(&detail.run));
}

pub fn note(order: &RunOrder, next: &Next, decisions: &[RecordedDecision]) -> String {
    match (order, next) {
        (RunOrder::Decide { verdict, .. }, Next::Unchanged) => {
            let who = decisions.last().and_then(|d| d.by.approver.clone()).unwrap_or("somebody".to_owned());
            let done = if *verdict == Verdict::Approve { "approved" } else { "denied" };
            format!("was already {done} by {who}")
        }
        (RunOrder::Decide { choice: Some(choice), .. }, _) => match choice {
            Choice::Rerun => "runs again",
            Choice::Happened => "marked completed",
            Choice::Skip => "skipped",
            Choice::Fail => "failed there",
        }
        .to_owned(),
        (RunOrder::Decide { verdict: Verdict::Approve, .. }, _) => "approved".to_owned(),
        (RunOrder::Decide { .. }, _) => "denied".to_owned(),
        (RunOrder::Resume { .. }, _) => "resumed".to_owned(),
        (RunOrder::Signal { name, .. }, Next::SignalBuffered) => {
            format!("signal {name} is buffered until a step waits for it")
        }
        (RunOrder::Signal { name, .. }, _) => format!("signal {name} sent"),
        (RunOrder::Cancel { .. }, Next::Unchanged) => "was already canceled".to_owned(),
        (RunOrder::Cancel { .. }, _) => "canceled".to_owned(),
        (RunOrder::Replay { .. }, _) => "replayed".to_owned(),
        (RunOrder::Assign { .. }, _) => "assigned".to_owned(),
        (RunOrder::Fork { .. }, _) => "forked; held until it is resumed".to_owned(),
    }
}
