//! Runs, contracts and capabilities as a store would hold them: one for every state that a screen can meet.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::path::Path;

use serde_json::{Value, json};
use skills_api::{
    CapabilityExplanation, ContractStep, ContractView, DecisionPreview, RunDetail, StepState, StepView,
};
use skills_model::{ApprovalReason, Gate, RunSnapshot, RunState, allowed};
use skills_runs::{BindingChoice, Explanation};
use skills_skill::SkillId;
use skills_skill::contract::{self, Conformance, StepAction};
use skills_store::{Checkpoint, NewEvent, RunEvent, RunId, RunOptions, RunRecord, StepStatus};

/// The present of these runs: milliseconds since 1970-01-01 UTC, 2026-07-14 09:30.
pub const NOW_MS: i64 = 1_784_021_400_000;

/// A contract with a confirmation before its last step.
pub const INVOICE: &str = "id: invoice-intake
version: 1.2.0
description: Reads an invoice and books it
inputs:
  file: { type: string, required: true, description: Path of the invoice }
  currency: { type: string, enum: [EUR, USD], default: EUR }
  limit: { type: number }
outputs:
  total: { type: number }
  booking: { type: string }
steps:
  - id: extract
    uses: document.table.extract
    input: { path: inputs.file }
    output: { rows: vars.rows }
  - id: check
    uses: table.rows.check
    input: { rows: vars.rows }
    output: { ok: vars.ok }
    config: { retry: { max_attempts: 3, backoff_seconds: 0.2 } }
  - id: sum
    uses: table.column.sum
    input: { rows: vars.rows }
    output: { total: outputs.total }
  - id: book
    uses: ledger.entry.create
    input: { total: outputs.total, currency: inputs.currency }
    output: { id: outputs.booking }
";

/// Steps of [`INVOICE`] with what they call.
const STEPS: [(&str, &str); 4] = [
    ("extract", "document.table.extract"),
    ("check", "table.rows.check"),
    ("sum", "table.column.sum"),
    ("book", "ledger.entry.create"),
];

/// A run of `skill` in this state, with steps, events and checkpoints that fit it. Ids are better long:
/// `0198a1b2-0000-7000-8000-000000000001`.
pub fn detail(id: &str, skill: &str, state: RunState) -> RunDetail {
    let through = match state {
        RunState::Pending => 0,
        RunState::Running | RunState::Replaying => 1,
        RunState::Failed | RunState::Canceled => 2,
        RunState::WaitingForHuman | RunState::WaitingForSignal => 3,
        RunState::Completed => 4,
    };
    let gate = match state {
        RunState::WaitingForHuman => Some(Gate::human("book", "9f".repeat(32), ApprovalReason::Confirmation)),
        RunState::WaitingForSignal => {
            Some(Gate::Signal { step: "book".to_owned(), name: "books-closed".to_owned() })
        }
        _ => None,
    };
    let run = record(id, skill, state, gate, through);
    let preview = (state == RunState::WaitingForHuman).then(|| decision_preview(&run));
    let steps = STEPS.iter().enumerate().map(|(i, (step, uses))| view(i, step, uses, state, through));
    RunDetail {
        contract_version: "1.2.0".to_owned(),
        input_fields: contract_view("invoice-intake", INVOICE).contract.inputs,
        earlier: Vec::new(),
        elsewhere: None,
        contract_unchanged: Some(true),
        steps: steps.collect(),
        checkpoints: (0..=u64::from(through)).map(|number| checkpoint(number, run.created_ms)).collect(),
        events: events(&run, through),
        decisions: Vec::new(),
        sheet: preview,
        descendants: Vec::new(),
        isolation: "full: Landlock ABI 7, seccomp".to_owned(),
        run,
    }
}

pub fn record(id: &str, skill: &str, state: RunState, gate: Option<Gate>, through: u32) -> RunRecord {
    let snapshot = RunSnapshot {
        state,
        paused: false,
        replays: false,
        fence: 1,
        gate: gate.clone(),
        decided: None,
        expired_ms: None,
    };
    RunRecord {
        id: RunId(id.to_owned()),
        skill_id: skill.to_owned(),
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
        progress: (through, 4),
        step: STEPS.get(through as usize).map(|(step, _)| (*step).to_owned()),
        head: u64::from(through),
        fence: 1,
        lease: None,
        created_ms: NOW_MS - 120_000,
        since_ms: NOW_MS - 60_000,
        expires_ms: None,
        allowed: allowed(&snapshot),
    }
}

fn view(place: usize, step: &str, uses: &str, run: RunState, through: u32) -> StepView {
    let at = NOW_MS - 120_000 + 1_000 * place as i64;
    let through = through as usize;
    let state = match (place.cmp(&through), run) {
        (std::cmp::Ordering::Less, _) => StepState::Completed,
        (std::cmp::Ordering::Equal, RunState::Running | RunState::Replaying) => StepState::Running,
        (std::cmp::Ordering::Equal, RunState::WaitingForHuman) => StepState::WaitingForHuman,
        (std::cmp::Ordering::Equal, RunState::WaitingForSignal) => StepState::WaitingForSignal,
        (std::cmp::Ordering::Equal, RunState::Failed) => StepState::Failed,
        _ => StepState::Pending,
    };
    let (done, failed) = (state == StepState::Completed, state == StepState::Failed);
    let result = if done {
        Some(json!({ "rows": [{ "item": "paper", "price": 12.5 }], "ok": true }))
    } else {
        failed.then(|| json!({ "code": "upstream_failure", "message": "the service answered 502" }))
    };
    StepView {
        p95_ms: None,
        omitted_bytes: None,
        step: step.to_owned(),
        depth: 0,
        uses: uses.to_owned(),
        state,
        started_ms: (state != StepState::Pending).then_some(at),
        ended_ms: (done || failed).then_some(at + 800),
        attempts: u32::from(state != StepState::Pending) + 2 * u32::from(failed),
        inputs: (state != StepState::Pending).then(|| json!({ "path": "invoices/2026-07.pdf" })),
        result,
        summary: done.then(|| "1 row, 2 columns".to_owned()).or(failed.then(|| "http 502".to_owned())),
        binding: (done || failed).then(|| format!("{uses}.script")),
        isolation: (done || failed).then(|| "full: Landlock ABI 7, seccomp".to_owned()),
        artifacts: Vec::new(),
        status: if done { Some(StepStatus::Completed) } else { failed.then_some(StepStatus::Failed) },
    }
}

/// A checkpoint after `number` steps.
pub fn checkpoint(number: u64, created_ms: i64) -> Checkpoint {
    let done = STEPS.iter().take(number as usize).map(|(step, _)| (*step).to_owned()).collect();
    let state = match number {
        0 => json!({ "vars": {}, "outputs": {} }),
        1 => json!({ "vars": { "rows": [{ "item": "paper", "price": 12.5 }] }, "outputs": {} }),
        2 => json!({ "vars": { "rows": [{ "item": "paper", "price": 12.5 }], "ok": true }, "outputs": {} }),
        _ => json!({ "vars": { "rows": [{ "item": "paper", "price": 12.5 }], "ok": true },
            "outputs": { "total": 1204.5 } }),
    };
    Checkpoint { number, done, state, at_ms: created_ms + 1_000 * number as i64 }
}

fn events(run: &RunRecord, through: u32) -> Vec<RunEvent> {
    let mut out = Vec::new();
    push(&mut out, run, "run.created", None, json!({ "skill": run.skill_id }));
    if run.state != RunState::Pending {
        push(&mut out, run, "run.claimed", None, json!({ "worker": "host-1-1" }));
    }
    for (step, uses) in STEPS.iter().take(through as usize) {
        push(&mut out, run, "step.started", Some(step), json!({ "capability": uses, "attempt": 1 }));
        push(&mut out, run, "step.log", Some(step), json!({ "stream": "stderr", "text": "reading …" }));
        push(&mut out, run, "step.completed", Some(step), json!({ "attempts": 1 }));
    }
    let last = match run.state {
        RunState::WaitingForHuman | RunState::WaitingForSignal => Some("gate.waiting"),
        RunState::Completed => Some("run.completed"),
        RunState::Failed => Some("run.failed"),
        RunState::Canceled => Some("run.canceled"),
        _ => None,
    };
    if let Some(kind) = last {
        push(&mut out, run, kind, run.step.as_deref(), json!({}));
    }
    out
}

fn push(out: &mut Vec<RunEvent>, run: &RunRecord, kind: &str, step: Option<&str>, data: Value) {
    let number = out.len() as u64 + 1;
    out.push(RunEvent {
        run: run.id.clone(),
        number,
        global: number,
        at_ms: run.created_ms + 100 * number as i64,
        event: NewEvent { kind: kind.into(), step: step.map(str::to_owned), data },
    });
}

/// The decision preview of the gate at which this run waits.
pub fn decision_preview(run: &RunRecord) -> DecisionPreview {
    let Some(Gate::Human { step, inputs_digest, why, .. }) = &run.gate else {
        panic!("no gate for a person")
    };
    DecisionPreview {
        labels: std::collections::BTreeMap::new(),
        run: run.id.clone(),
        skill_id: run.skill_id.clone(),
        headline: "Creates a ledger entry with total 1204.5 and currency EUR".to_owned(),
        step: step.clone(),
        place: (4, 4),
        outcome_unknown: *why == ApprovalReason::UnknownOutcome,
        capability: "ledger.entry.create".to_owned(),
        capability_note: "elevated, not idempotent".to_owned(),
        binding: "ledger.entry.create.script: scripts/book.sh".to_owned(),
        fallbacks: Vec::new(),
        isolation: "full: Landlock ABI 7, seccomp".to_owned(),
        why: "requires approval each time".to_owned(),
        outputs: std::collections::BTreeMap::new(),
        irreversible: Some("it cannot be undone".to_owned()),
        inputs: json!({ "total": 1204.5, "currency": "EUR" }),
        files: Vec::new(),
        target: None,
        inputs_digest: inputs_digest.clone(),
        approver: Some(("ana".to_owned(), "git config user.name".to_owned())),
        since_ms: run.since_ms,
        expires_ms: run.expires_ms,
        on_expiry: skills_model::Expiry::default(),
        changed: None,
        blocked: None,
        blocked_public: None,
        not_approver: None,
        required: None,
        missing_scope: None,
        pause: None,
    }
}

/// One run in every state, and a failed one with another skill; ids end in 1 to 8.
pub fn every_state() -> Vec<RunDetail> {
    let states = [
        (RunState::WaitingForHuman, "invoice-intake"),
        (RunState::WaitingForSignal, "books-close"),
        (RunState::Running, "site-report"),
        (RunState::Pending, "invoice-intake"),
        (RunState::Replaying, "invoice-intake"),
        (RunState::Completed, "invoice-intake"),
        (RunState::Failed, "flaky-upload"),
        (RunState::Canceled, "books-close"),
    ];
    let id = |i: usize| format!("0198a1b{i}-{i}000-7000-8000-00000000000{i}");
    states.iter().enumerate().map(|(i, (state, skill))| detail(&id(i + 1), skill, *state)).collect()
}

/// The view of a contract written as YAML; every capability has a script binding.
pub fn contract_view(skill: &str, source: &str) -> ContractView {
    let place = Path::new("/skills").join(skill).join("skill.yaml");
    let (contract, findings) = contract::parse(&place, source);
    let contract = contract.expect("a contract");
    let steps = contract.steps.iter().map(|step| ContractStep {
        id: step.id.clone(),
        after: step.depends_on.clone(),
        uses: match &step.action {
            StepAction::Capability(id) => format!("capability {id}"),
            StepAction::Skill(id) => format!("skill {id}"),
            StepAction::WaitForSignal(name) => format!("signal {name}"),
        },
        flow: step.retry.iter().map(|retry| format!("{} attempts", retry.max_attempts)).collect(),
        binding: match &step.action {
            StepAction::Capability(_) => Some(format!("script scripts/{}.sh", step.id)),
            _ => None,
        },
        unbound: false,
        gates: if step.id == "book" { vec!["a person confirms each time".to_owned()] } else { Vec::new() },
        unapproved: None,
        acts: step.id == "book",
        effect: "no side effects; safe to repeat".to_owned(),
    });
    ContractView {
        skill_id: SkillId::new(skill),
        steps: steps.collect(),
        digest: "c0".repeat(32),
        blocked: None,
        findings,
        isolation: "full: Landlock ABI 7, seccomp".to_owned(),
        contract,
    }
}

/// A capability with one script binding.
pub fn capability(id: &str) -> CapabilityExplanation {
    let binding = BindingChoice {
        binding: format!("{id}.script"),
        protocol: "script".to_owned(),
        service: "bundle".to_owned(),
        target: "scripts/run.sh".to_owned(),
        conformance: Conformance::Standard,
        place: "default".to_owned(),
        obstacle: None,
        breaker: "closed".to_owned(),
        isolation: "full: Landlock ABI 7, seccomp".to_owned(),
    };
    CapabilityExplanation {
        description: format!("What {id} does"),
        inputs: std::collections::BTreeMap::new(),
        outputs: std::collections::BTreeMap::new(),
        gates: Vec::new(),
        explanation: Explanation {
            capability: id.to_owned(),
            conformance: Conformance::Standard,
            chosen: Some(binding.binding.clone()),
            summary: format!("{} is called: it is the default", binding.binding),
            bindings: vec![binding],
        },
        used_by: vec!["invoice-intake/book".to_owned()],
    }
}

/// A workbench whose clock is fixed at the samples' time.
pub fn settings() -> skills_tui::Settings {
    skills_tui::Settings {
        clock_ms: Some(NOW_MS),
        depth: Some(skills_tui::theme::Depth::True),
        glyphs: skills_config::GlyphSet::Unicode,
        ..skills_tui::Settings::default()
    }
}
