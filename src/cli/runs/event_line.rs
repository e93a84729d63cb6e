//! Formats an event of a run as a line.

use jiff::tz::TimeZone;
use serde::Deserialize as _;
use serde_json::Value;

use super::{clock, status};
use crate::output::{TerminalCaps, TextStyle, cells, cut, fit};
use skills_api::{RecordedCommand, command_note, command_of_event, list_commands};
use skills_model::{Gate, step_label};
use skills_skill::safe_text;
use skills_store::{EventKind, RunEvent};

/// Renders an event, with one line for each line of output; with the run's id if events of several runs are mixed.
pub fn render(event: &RunEvent, with_run: bool, zone: &TimeZone, look: TerminalCaps) -> String {
    let kind = safe_text::line(event.event.kind.as_str()).into_owned();
    let mut head = TextStyle::Muted.paint(&clock::time_of_day(event.at_ms, zone), look.color);
    let mut used = 8;
    if with_run {
        let id = if look.terminal { status::short(&event.run.0) } else { &event.run.0 };
        head += &format!("  {id}");
        used += 2 + cells(id);
    }
    let step = event
        .event
        .step
        .as_deref()
        .map(|step| safe_text::line(step_label(step)).into_owned())
        .unwrap_or_default();
    // The terminal would continue a wider row in its first column.
    let width = look.text_width(usize::MAX).saturating_sub(used + 2 + 15 + 2);
    let step = cut(&step, width.saturating_sub(12 + 2).max(12), look.unicode);
    let step_text = if step.is_empty() { String::new() } else { format!("  {step}") };
    let available = width.saturating_sub(cells(&step_text)).max(12);
    let kind = text_style(&event.event.kind).paint(&fit(&kind, 15, look.unicode), look.color);
    let line = |description: &str| {
        let description = cut(description, available, look.unicode);
        let expiry = if description.is_empty() {
            description
        } else {
            format!("  {}", TextStyle::Muted.paint(&description, look.color))
        };
        format!("{head}  {kind}{step_text}{expiry}").trim_end().to_owned()
    };
    match output(&event.event.kind, &event.event.data) {
        Some(text) if text.contains('\n') => {
            text.lines().map(|text| line(&safe_text::line(text))).collect::<Vec<_>>().join("\n")
        }
        _ => line(&describe_event(&event.event.kind, &event.event.data)),
    }
}

/// Returns what a step printed, for an event of its output.
fn output<'d>(kind: &EventKind, data: &'d Value) -> Option<&'d str> {
    let text = data.get("detail").or_else(|| data.get("text"))?;
    text.as_str().filter(|_| *kind == EventKind::StepLog)
}

fn text_style(kind: &EventKind) -> TextStyle {
    match kind {
        EventKind::RunCompleted
        | EventKind::StepCompleted
        | EventKind::GateApproved
        | EventKind::GateEndorsed => TextStyle::Good,
        EventKind::RunFailed | EventKind::StepFailed | EventKind::GateDenied => TextStyle::Bad,
        EventKind::RunAbandoned
        | EventKind::RunPaused
        | EventKind::RunHeld
        | EventKind::ControlApplied
        | EventKind::ControlRefused
        | EventKind::GateWaiting
        | EventKind::GateWarned
        | EventKind::GateDegraded
        | EventKind::StepRetrying
        | EventKind::RunExpired
        | EventKind::RunEscalated => TextStyle::Warn,
        _ => TextStyle::Info,
    }
}

/// Describes an event briefly.
pub fn describe_event(kind: &EventKind, data: &Value) -> String {
    if *kind == EventKind::StepLog {
        return data
            .get("detail")
            .or_else(|| data.get("text"))
            .map(skills_api::value_line)
            .unwrap_or_default();
    }
    if let Some(description) = status::claim(kind, data) {
        return description;
    }
    if let Some(description) = controlled(kind, data) {
        return description;
    }
    // The gate of a run is described as on its page.
    if let Some(Ok(gate)) = data.get("gate").map(Gate::deserialize) {
        return match gate {
            Gate::Human { why, .. } => status::approval_reason(&why),
            Gate::Signal { name, .. } => format!("for signal {}", safe_text::line(&name)),
        };
    }
    if let Some(description) = agreed(kind, data) {
        return description;
    }
    if let Some(description) = describe_command(kind, data) {
        return description;
    }
    let Value::Object(fields) = data else {
        return if data.is_null() { String::new() } else { skills_api::value_line(data) };
    };
    for name in ["gist", "detail", "message", "reason", "note"] {
        if let Some(Value::String(text)) = fields.get(name) {
            return safe_text::line(text).into_owned();
        }
    }
    if let Some(Value::String(text)) =
        fields.get("error").map(|error| error.get("detail").or_else(|| error.get("message")).unwrap_or(error))
    {
        return safe_text::line(text).into_owned();
    }
    let pairs = fields.iter().filter_map(|(name, value)| match value {
        Value::Null => None,
        // A digest is of no use to readers; programs read the JSON.
        Value::String(text) if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) => None,
        Value::Array(items) => Some(format!("{name}=[{}]", items.len())),
        Value::Object(inner) if inner.is_empty() => None,
        Value::Object(inner) => {
            let names: Vec<&str> = inner.keys().map(String::as_str).collect();
            Some(format!("{name}={{{}}}", names.join(", ")))
        }
        Value::String(text) => Some(format!("{name}={}", safe_text::field(text))),
        other => Some(format!("{name}={}", skills_api::value_line(other))),
    });
    safe_text::line(&pairs.collect::<Vec<_>>().join(" ")).into_owned()
}

/// Renders the commands that users gave to a run, one per line: time, command and user.
pub fn render_commands(events: &[RunEvent], zone: &TimeZone, look: TerminalCaps) -> String {
    let line = |command: RecordedCommand| {
        let moment = clock::moment(command.at_ms, zone);
        let note = command.note.map(|note| format!(": {note}")).unwrap_or_default();
        let head = format!("  {}  ", TextStyle::Muted.paint(&moment, look.color));
        let text = format!("{} by {}{note}", command.what, command.by);
        look.rows(&head, &" ".repeat(cells(&moment) + 4), &text).join("\n") + "\n"
    };
    list_commands(events.iter()).into_iter().map(line).collect()
}

/// Describes the command that was given, and by whom.
fn describe_command(kind: &EventKind, data: &Value) -> Option<String> {
    let by = safe_text::line(data.get("by")?.as_str()?).into_owned();
    let what = match (kind, data.get("reason").and_then(Value::as_str)) {
        (EventKind::RunCanceled, Some(reason)) => safe_text::line(reason).into_owned(),
        (EventKind::RunCanceled, None) => return Some(format!("by {by}")),
        _ => command_of_event(kind, data)?,
    };
    let payload = data.get("payload").filter(|payload| !payload.is_null()).map(skills_api::value_line);
    let more =
        payload.or_else(|| command_note(kind, data)).map(|more| format!(": {more}")).unwrap_or_default();
    Some(format!("{what} by {by}{more}"))
}

/// Describes a decision about a step whose outcome was unknown.
fn agreed(kind: &EventKind, data: &Value) -> Option<String> {
    let text = |name: &str| Some(safe_text::line(data.get(name)?.as_str()?).into_owned());
    let choice = text("choice").filter(|_| *kind == EventKind::GateApproved)?;
    let by = text("approver").map(|by| format!(" by {by}")).unwrap_or_default();
    let notes = text("notes").map(|notes| format!(" ({notes})")).unwrap_or_default();
    Some(match choice.as_str() {
        "happened" => {
            let gave = data.get("result").map(skills_api::value_line).unwrap_or_default();
            format!("marked completed{by}{notes}: result {gave}")
        }
        other => format!("{other}{by}{notes}"),
    })
}

/// Describes a control request of a sidecar and its outcome, for either run.
fn controlled(kind: &EventKind, data: &Value) -> Option<String> {
    let text = |name: &str| Some(safe_text::line(data.get(name)?.as_str()?).into_owned());
    let request =
        text("asked").filter(|_| matches!(kind, EventKind::ControlApplied | EventKind::ControlRefused))?;
    let came = match (text("refused"), text("did")) {
        (Some(why), _) => format!("refused: {why}"),
        (None, Some(did)) => did,
        (None, None) => "applied".to_owned(),
    };
    let skill = text("skill").map(|skill| format!("{skill} ")).unwrap_or_default();
    Some(match (text("by"), text("on")) {
        (Some(by), _) => {
            let why = text("why").map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{request}, requested by sidecar {skill}{by}{why}: {came}")
        }
        (None, Some(on)) => format!("{request} of run {skill}{on}: {came}"),
        (None, None) => format!("{request}: {came}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runs::samples::{event, record};
    use skills_model::RunState;

    const CAPS: TerminalCaps = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };

    #[test]
    fn event_lines_have_time_kind_step_and_text() {
        let all = [
            event(1, "run.created", None, json!({ "by": "ana", "contract": "c0".repeat(32) })),
            event(2, "step.started", Some("extract"), json!({ "attempt": 1, "inputs": { "file": "a" } })),
            event(
                3,
                "step.log",
                Some("extract"),
                json!({ "stream": "stderr", "text": "page \u{1b}[2J1 of 3\npage 2 of 3" }),
            ),
            event(
                4,
                "step.failed",
                Some("extract"),
                json!({ "error": { "message": "no such file ".repeat(8) } }),
            ),
            event(4, "run.abandoned", None, json!({ "worker": "build-2/1-ab/4711/99/0" })),
            event(
                4,
                "run.claimed",
                None,
                json!({ "worker": "build-2/1-ab/5012/120/0", "fence": 2, "takeover": true,
                        "taken_over_from": "build-2/1-ab/4711/99/0", "attempt": 2, "attempts": 6 }),
            ),
            event(
                5,
                "gate.waiting",
                Some("send"),
                json!({ "gate": record(RunState::WaitingForSignal).gate }),
            ),
        ];
        let text: String = all.iter().map(|e| render(e, false, &TimeZone::UTC, CAPS) + "\n").collect();
        insta::assert_snapshot!(text, @r"
        09:28:00  run.created      by=ana
        09:28:01  step.started     extract  attempt=1 inputs={file}
        09:28:01  step.log         extract  page ␛[2J1 of 3
        09:28:01  step.log         extract  page 2 of 3
        09:28:02  step.failed      extract  no such file no such file no such file no s…
        09:28:02  run.abandoned    process 4711 on build-2 has exited
        09:28:02  run.claimed      attempt 2 of 6: taken over from process 4711 on buil…
        09:28:02  gate.waiting     send  for signal books-closed
        ");
        assert!(text.lines().all(|line| cells(line) <= 80));
    }

    #[test]
    fn a_long_step_id_is_truncated_to_the_terminal() {
        let step = format!("s{}next: skills runs approve", " ".repeat(60));
        let line = render(&event(1, "step.started", Some(&step), json!({})), false, &TimeZone::UTC, CAPS);
        assert!(cells(&line) <= 80 && line.contains('…'), "{line}");
    }

    #[test]
    fn a_confirmed_step_shows_approver_and_result() {
        let message = json!({"approver": "kim", "notes": "seen at the bank", "choice": "happened",
                          "result": {"paid": true}, "inputs_digest": "d1", "call": null});
        assert_eq!(
            describe_event(&EventKind::GateApproved, &message),
            "marked completed by kim (seen at the bank): result {\"paid\":true}"
        );
    }

    #[test]
    fn events_of_several_runs_name_their_run() {
        let one = event(1, "run.created", None, json!({}));
        assert!(render(&one, true, &TimeZone::UTC, CAPS).contains("  0000abcd  "));
        let pipe = TerminalCaps { terminal: false, ..CAPS };
        assert!(render(&one, true, &TimeZone::UTC, pipe).contains(&one.run.0));
    }
}
