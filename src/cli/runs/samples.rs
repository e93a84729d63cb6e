//! Sample runs for the tests of this module: one for every state.

use clap::Parser as _;
use serde_json::json;

use super::next_steps::Caller;
use crate::args::Cli;
use skills_api::{DecisionPreview, RunDetail, StepState, StepView};
use skills_model::{ApprovalReason, CommandName, Gate, RunState};
use skills_store::{Checkpoint, NewEvent, RunEvent, RunId, RunOptions, RunRecord, StepStatus};

/// The current time of these runs, 2026-07-14 09:30 UTC.
pub const NOW_MS: i64 = 1_784_021_400_000;

/// An id in the format of stores.
pub const ID: &str = "0198a1b2-0000-7000-8000-00000000abcd";

/// Returns the caller of a command with these options.
pub fn caller(options: &[&str]) -> Caller {
    Caller::of(&Cli::try_parse_from([&["skills"], options].concat()).unwrap().global)
}

/// Returns a run in this state, at its fourth step unless it has ended.
pub fn record(state: RunState) -> RunRecord {
    let gate = match state {
        RunState::WaitingForHuman => Some(Gate::human("book", "9f".repeat(32), ApprovalReason::Confirmation)),
        RunState::WaitingForSignal => Some(Gate::Signal { step: "book".into(), name: "books-closed".into() }),
        _ => None,
    };
    let allowed = match state {
        RunState::WaitingForHuman => vec![CommandName::Approve, CommandName::Deny, CommandName::Cancel],
        RunState::WaitingForSignal => vec![CommandName::Signal, CommandName::Cancel],
        RunState::Failed => vec![CommandName::Resume],
        _ => vec![CommandName::Replay, CommandName::Fork],
    };
    RunRecord {
        id: RunId(ID.to_owned()),
        skill_id: "invoice-intake".to_owned(),
        state,
        paused: false,
        gate,
        decided: None,
        contract_digest: "c0".repeat(32),
        inputs: json!({ "file": "invoices/2026-07.pdf", "currency": "EUR" }),
        target: None,
        options: RunOptions::default(),
        outputs: (state == RunState::Completed).then(|| json!({ "total": 1204.5, "booking": "B-1009" })),
        error: (state == RunState::Failed).then(
            || json!({ "step": "sum", "code": "upstream_failure", "message": "the service answered 502" }),
        ),
        trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".to_owned(),
        started_by: "ana".to_owned(),
        source: None,
        progress: (3, 4),
        step: Some("book".to_owned()),
        head: 3,
        fence: 1,
        lease: None,
        created_ms: NOW_MS - 120_000,
        since_ms: NOW_MS - 60_000,
        expires_ms: None,
        allowed,
    }
}

pub fn detail(state: RunState) -> RunDetail {
    let run = record(state);
    let step = |step: &str, state: StepState, result: Option<serde_json::Value>| StepView {
        p95_ms: None,
        omitted_bytes: None,
        step: step.to_owned(),
        depth: 0,
        uses: format!("ledger.{step}.do"),
        state,
        started_ms: (state != StepState::Pending).then_some(NOW_MS - 119_000),
        ended_ms: result.as_ref().map(|_| NOW_MS - 117_800),
        attempts: 1,
        inputs: Some(json!({ "of": step })),
        summary: result.as_ref().map(|_| "214 rows".to_owned()),
        status: result.as_ref().map(|_| StepStatus::Completed),
        result,
        binding: Some("script scripts/do.py".to_owned()),
        isolation: None,
        artifacts: Vec::new(),
    };
    let last = match state {
        RunState::WaitingForHuman => StepState::WaitingForHuman,
        RunState::WaitingForSignal => StepState::WaitingForSignal,
        RunState::Completed => StepState::Completed,
        _ => StepState::Pending,
    };
    let preview = (state == RunState::WaitingForHuman).then(|| DecisionPreview {
        run: run.id.clone(),
        skill_id: run.skill_id.clone(),
        headline: "Book 1204.5 EUR in the ledger".to_owned(),
        step: "book".to_owned(),
        place: (4, 4),
        labels: std::collections::BTreeMap::new(),
        outcome_unknown: false,
        capability: "ledger.entry.create".to_owned(),
        capability_note: "elevated, not idempotent".to_owned(),
        binding: "openapi POST https://ledger.example/entries".to_owned(),
        fallbacks: Vec::new(),
        isolation: "leaves this machine".to_owned(),
        why: "the capability always requires approval".to_owned(),
        outputs: std::collections::BTreeMap::new(),
        irreversible: Some("It leaves this machine and cannot be undone.".to_owned()),
        inputs: json!({ "total": 1204.5, "currency": "EUR" }),
        files: Vec::new(),
        target: None,
        inputs_digest: "9f".repeat(32),
        approver: Some(("kim".to_owned(), "from git config".to_owned())),
        since_ms: NOW_MS - 60_000,
        expires_ms: Some(NOW_MS + 7_200_000),
        on_expiry: skills_model::Expiry::default(),
        changed: None,
        blocked: None,
        blocked_public: None,
        not_approver: None,
        required: None,
        missing_scope: None,
        pause: None,
    });
    RunDetail {
        contract_version: "1.2.0".to_owned(),
        input_fields: std::collections::BTreeMap::new(),
        contract_unchanged: Some(true),
        earlier: Vec::new(),
        elsewhere: None,
        steps: vec![
            step("extract", StepState::Completed, Some(json!({ "rows": 214 }))),
            step("check", StepState::Completed, Some(json!({ "ok": true }))),
            step("sum", StepState::Completed, Some(json!({ "total": 1204.5 }))),
            step("book", last, (last == StepState::Completed).then(|| json!({ "id": "B-1009" }))),
        ],
        checkpoints: (0..4)
            .map(|number| Checkpoint {
                number,
                done: ["extract", "check", "sum"]
                    .iter()
                    .take(number as usize)
                    .map(ToString::to_string)
                    .collect(),
                state: json!({ "vars": { "through": number } }),
                at_ms: NOW_MS - 120_000 + 1_000 * number as i64,
            })
            .collect(),
        events: vec![
            event(1, "run.created", None, json!({ "by": "ana" })),
            event(2, "step.completed", Some("extract"), json!({ "attempts": 1, "outputs": { "rows": 214 } })),
        ],
        decisions: Vec::new(),
        sheet: preview,
        descendants: Vec::new(),
        isolation: "Landlock ABI 7, seccomp; no network".to_owned(),
        run,
    }
}

pub fn event(number: u64, kind: &str, step: Option<&str>, data: serde_json::Value) -> RunEvent {
    RunEvent {
        run: RunId(ID.to_owned()),
        number,
        global: 100 + number,
        at_ms: NOW_MS - 120_000 + 500 * number as i64,
        event: NewEvent { kind: kind.into(), step: step.map(ToOwned::to_owned), data },
    }
}
