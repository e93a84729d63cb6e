//! The output of a run while it continues: its events as lines, both logs and results, with the time of day.

use serde_json::Value;

use crate::theme::Role;
use crate::widgets::relative_time::{duration, time_of_day};
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::text_width::{cells, shown};
use skills_api::{ControlRequest, RunDetail, StepState, changed_inputs};
use skills_model::{BEFORE_FIRST_STEP, Choice};
use skills_skill::safe_text;
use skills_store::{EventKind, RunEvent, RunId, WorkerId};

/// Returns the lines of an event in the output, with the white space of printed text preserved; empty for an event
/// without interest to a user. Further lines of a text are indented to its column, or by two cells if `is_narrow`.
#[must_use]
pub fn lines(event: &RunEvent, detail: &RunDetail, column: u16, is_narrow: bool) -> Vec<RichLine> {
    let Some((text, role)) = full_text(event, detail) else { return Vec::new() };
    let step = step_name(event);
    let step_role = if role == Role::Waiting { role } else { Role::Strong };
    let pad = usize::from(column.max(cells(&step)) - cells(&step));
    let time = format!("{} ", time_of_day(event.at_ms));
    let text = safe_text::block(&text);
    let line = |(at, part): (usize, &str)| {
        let indent = if is_narrow { 2 } else { usize::from(cells(&time) + cells(&step)) + pad + 2 };
        let mut segs = match at {
            0 => vec![
                Seg::new(time.clone(), Role::Muted),
                Seg::new(step.clone(), step_role),
                Seg::new(format!("{}  ", " ".repeat(pad)), Role::Text),
            ],
            _ => vec![Seg::new(" ".repeat(indent), Role::Text)],
        };
        segs.push(Seg::new(part, role));
        RichLine::from_segs(segs)
    };
    text.trim_end_matches('\n').split('\n').enumerate().map(line).collect()
}

/// Returns the complete text of an event, of any number of lines: printed text verbatim, not made safe to draw.
#[must_use]
pub fn full_text(event: &RunEvent, detail: &RunDetail) -> Option<(String, Role)> {
    let (message, role) = describe_event(event, detail)?;
    let printed = event.event.data.get("text").and_then(Value::as_str);
    let printed = printed.filter(|_| event.event.kind == EventKind::StepLog);
    Some((printed.map_or(message, str::to_owned), role))
}

/// Returns the step of an event; empty for an event of the run, such as its approval before the first step.
#[must_use]
pub fn step_name(event: &RunEvent) -> String {
    let step = event.event.step.as_deref().filter(|step| *step != BEFORE_FIRST_STEP);
    step.map(shown).unwrap_or_default()
}

/// Returns the width of the column of step names: that of the longest, within limits.
#[must_use]
pub fn column(detail: &RunDetail) -> u16 {
    let widest = detail.steps.iter().map(|step| cells(&shown(&step.step))).max();
    widest.unwrap_or(0).clamp(4, 18)
}

fn describe_event(event: &RunEvent, detail: &RunDetail) -> Option<(String, Role)> {
    let data = &event.event.data;
    let text = |key: &str| data.get(key).and_then(Value::as_str).map(shown).unwrap_or_default();
    let by = || {
        let named = ["approver", "by"].map(text).into_iter().find(|name| !name.is_empty());
        named.map(|name| format!(" by {name}")).unwrap_or_default()
    };
    let step = event.event.step.as_deref().unwrap_or_default();
    let view = detail.steps.iter().find(|view| view.step == step);
    Some(match &event.event.kind {
        EventKind::StepLog if text("stream") == "stderr" => (text("text"), Role::Muted),
        EventKind::StepLog if data.get("detail").is_some() => (text("detail"), Role::Text),
        EventKind::StepLog => (text("text"), Role::Text),
        EventKind::StepCompleted => {
            (completed(view.and_then(|view| view.summary.as_deref()), view), Role::Text)
        }
        EventKind::StepSkipped => (with_reason("skipped", &text("reason")), Role::Muted),
        EventKind::StepFailed => {
            // A later attempt that succeeded has another summary.
            let failed = view.filter(|view| view.state == StepState::Failed);
            (
                with_reason("failed", &failure(data, failed.and_then(|view| view.summary.as_deref()))),
                Role::Danger,
            )
        }
        EventKind::StepRetrying => {
            let attempt = data.get("attempt").and_then(Value::as_u64);
            let again = attempt.map(|attempt| format!("again, attempt {attempt}"));
            (with_reason(&again.unwrap_or_else(|| "again".to_owned()), &failure(data, None)), Role::Warning)
        }
        EventKind::GateWaiting => match data.pointer("/gate/signal/name").and_then(Value::as_str) {
            Some(signal) => (format!("waiting for the signal {}", shown(signal)), Role::Text),
            None => ("waiting for approval".to_owned(), Role::Waiting),
        },
        EventKind::GateChanged => {
            let what = data.pointer("/gate/human/why/changed/what").and_then(Value::as_str);
            (with_reason("asks again", &what.map(shown).unwrap_or_default()), Role::Waiting)
        }
        EventKind::GateApproved => (agreed(data, &by()), Role::Success),
        EventKind::GateDenied => (format!("denied{}", by()), Role::Danger),
        EventKind::GateWarned => (with_reason("a gate warns", &text("reason")), Role::Warning),
        EventKind::GateDegraded => (with_reason("skipped by a gate", &text("reason")), Role::Warning),
        EventKind::SignalReceived => {
            (format!("signal {} received{}", text("name"), by().replacen(" by ", " from ", 1)), Role::Text)
        }
        EventKind::ArtifactKept => (format!("kept file {}", text("name")), Role::Info),
        EventKind::ControlApplied | EventKind::ControlRefused => (controlled(data), Role::Warning),
        EventKind::RunClaimed if is_takeover(data) => {
            let number = |key: &str| data.get(key).and_then(Value::as_u64);
            let attempt = match (number("attempt"), number("attempts")) {
                (Some(attempt), Some(all)) => format!(", attempt {attempt} of {all},"),
                _ => String::new(),
            };
            let named = |word: &str, worker: String| {
                if worker.is_empty() { worker } else { format!(" {word} {}", WorkerId(worker).describe()) }
            };
            let (by, from) = (named("by", text("worker")), named("from", text("taken_over_from")));
            (format!("taken over{attempt}{by}{from}"), Role::Warning)
        }
        EventKind::RunEscalated => (escalated(data), Role::Warning),
        EventKind::RunAssigned => {
            let to = data.get("to").and_then(Value::as_str).map(shown);
            let what = to.map_or_else(|| "unassigned".to_owned(), |to| format!("assigned to {to}"));
            let note = Some(text("note")).filter(|note| !note.is_empty());
            (what + &by() + &note.map(|note| format!(": {note}")).unwrap_or_default(), Role::Text)
        }
        EventKind::RunCreated => ("launched".to_owned(), Role::Muted),
        EventKind::RunResumed => (resumed(data) + &by(), Role::Text),
        EventKind::RunCompleted => ("completed".to_owned(), Role::Success),
        EventKind::RunFailed => (with_reason("failed", &failure(data, None)), Role::Danger),
        EventKind::RunCanceled => (format!("canceled{}", by()), Role::Muted),
        EventKind::RunPaused => ("pauses before its next step".to_owned(), Role::Warning),
        EventKind::RunHeld => ("paused until resumed".to_owned(), Role::Warning),
        EventKind::RunExpired => ("expired".to_owned(), Role::Warning),
        EventKind::RunReplayedFrom | EventKind::RunForkedFrom => {
            ("restored from a checkpoint".to_owned(), Role::Muted)
        }
        EventKind::RunReplayedTo => (format!("replayed as a new run{}", by()), Role::Muted),
        EventKind::RunForkedTo => (format!("forked as a new run{}", by()), Role::Muted),
        _ => return None,
    })
}

/// Describes an escalation.
fn escalated(data: &Value) -> String {
    let to: Vec<String> = data
        .get("to")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(shown)
        .collect();
    if to.is_empty() { "escalated".to_owned() } else { format!("escalated to {}", to.join(", ")) }
}

/// Describes a sidecar's control request: its target or its source, and its outcome.
#[must_use]
pub fn controlled(data: &Value) -> String {
    let text = |key: &str| data.get(key).and_then(Value::as_str).map(shown);
    let request = text("asked").unwrap_or_else(|| "control".to_owned());
    let because = text("why").map(|why| format!(" ({why})")).unwrap_or_default();
    let came = match (text("refused"), text("did")) {
        (Some(why), _) => format!(", refused: {why}"),
        (None, Some(did)) => format!(": {did}"),
        (None, None) => String::new(),
    };
    let named = |run: String| {
        let end = super::list::tail(&skills_store::RunId(run));
        text("skill").map_or_else(|| format!("run {end}"), |skill| format!("{skill} {end}"))
    };
    match (text("by"), text("on")) {
        (Some(by), _) => format!("the sidecar {} requested {request}{because}{came}", named(by)),
        (None, Some(on)) => format!("requested {request} of {}{came}", named(on)),
        (None, None) => request,
    }
}

/// Describes a person's decision at a gate: an approval, or a choice for an unknown outcome.
fn agreed(data: &Value, by: &str) -> String {
    match data.get("choice").and_then(Value::as_str) {
        Some("happened") => {
            let gave = data.get("result").filter(|result| !result.is_null()).map(ToString::to_string);
            let gave = gave.map_or_else(|| "nothing".to_owned(), |gave| shown(&gave));
            format!("marked completed{by}: result {gave}")
        }
        Some("rerun") => format!("to be run again{by}"),
        Some("skip") => format!("to be skipped{by}"),
        Some("fail") => format!("failed{by}"),
        _ => format!("approved{by}"),
    }
}

/// Describes who marked a step with an unknown outcome as completed, when, and with which comment; `None` if its
/// outcome was observed.
#[must_use]
pub fn completed_by_decision(detail: &RunDetail, step: &str) -> Option<String> {
    let decided =
        detail.decisions.iter().rev().find(|decided| {
            decided.decision.step == step && decided.decision.choice == Some(Choice::Happened)
        })?;
    let by = decided.by.approver.as_deref().map_or_else(|| "another user".to_owned(), shown);
    let notes = decided.by.notes.as_deref().map(|notes| format!(": {}", shown(notes))).unwrap_or_default();
    Some(format!("marked completed by {by} at {}{notes}", time_of_day(decided.at_ms)))
}

/// Describes a sidecar's control request in its current state.
#[must_use]
pub fn describe_control_request(request: &ControlRequest) -> String {
    let named = |skill: Option<&str>, run: &RunId| {
        let end = super::list::tail(run);
        skill.map_or_else(|| format!("run {end}"), |skill| format!("{} {end}", shown(skill)))
    };
    shown(&request.sentence(named, time_of_day))
}

/// Returns whether a worker claimed the run from one that was lost.
fn is_takeover(data: &Value) -> bool {
    data.get("takeover").and_then(Value::as_bool) == Some(true)
}

/// Returns whether an event has a line in the output.
#[must_use]
pub fn is_listed(event: &RunEvent) -> bool {
    match &event.event.kind {
        EventKind::StepStarted => false,
        EventKind::RunClaimed => is_takeover(&event.event.data),
        _ => true,
    }
}

fn with_reason(what: &str, why: &str) -> String {
    if why.is_empty() { what.to_owned() } else { format!("{what}: {why}") }
}

/// Formats `resumed from c1 with changed file`.
fn resumed(data: &Value) -> String {
    let from = data.get("checkpoint").and_then(Value::as_u64).map(|number| format!(" from c{number}"));
    let names: Vec<_> = changed_inputs(data).iter().map(|change| shown(&change.name)).collect();
    let with = if names.is_empty() { String::new() } else { format!(" with changed {}", names.join(", ")) };
    format!("resumed{}{with}", from.unwrap_or_default())
}

fn failure(data: &Value, summary: Option<&str>) -> String {
    let error = data.get("error").unwrap_or(data);
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    let message = text("detail").or_else(|| text("message")).or_else(|| text("reason"));
    message.or_else(|| error.as_str()).or(summary).map(shown).unwrap_or_default()
}

fn completed(summary: Option<&str>, view: Option<&skills_api::StepView>) -> String {
    if let Some(summary) = summary {
        return shown(summary);
    }
    let took = view.and_then(|view| Some(view.ended_ms? - view.started_ms?));
    took.map_or_else(|| "done".to_owned(), |took| format!("done in {}", duration(took)))
}
