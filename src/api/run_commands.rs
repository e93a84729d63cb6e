//! Commands that users gave to a run in addition to decisions, from its events: who, when and what.

use serde_json::Value;

use crate::ChangedInput;
use skills_skill::safe_text;
use skills_store::{EventKind, RunEvent};

/// A command that a user gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCommand {
    /// Time of the command, in milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// Short description: `canceled`, `resumed from checkpoint 2`, `signal books-closed`; safe to display.
    pub what: String,
    /// Who gave it; safe to display.
    pub by: String,
    /// Their note; safe to display.
    pub note: Option<String>,
}

/// Returns the commands that users gave to a run, oldest first, except decisions, which are stored separately.
pub fn list_commands<'e>(events: impl Iterator<Item = &'e RunEvent>) -> Vec<RecordedCommand> {
    events
        .filter_map(|event| {
            let (kind, data) = (&event.event.kind, &event.event.data);
            let by = data.get("by")?.as_str()?;
            let what = command_of_event(kind, data)?;
            let by = safe_text::line(by).into_owned();
            Some(RecordedCommand { at_ms: event.at_ms, what, by, note: command_note(kind, data) })
        })
        .collect()
}

/// Returns the note of a command, if any.
pub fn command_note(kind: &EventKind, data: &Value) -> Option<String> {
    let note = data.get("note").and_then(Value::as_str).filter(|_| *kind == EventKind::RunAssigned)?;
    Some(safe_text::line(note).into_owned())
}

/// Describes the command that an event records; `None` for other events, and for the end of a run caused by a decision.
pub fn command_of_event(kind: &EventKind, data: &Value) -> Option<String> {
    let text =
        |name: &str| data.get(name).and_then(Value::as_str).map(|text| safe_text::line(text).into_owned());
    let checkpoint = || data.get("checkpoint").and_then(Value::as_u64);
    Some(match kind {
        EventKind::RunCanceled if data.get("reason").is_none() => "canceled".to_owned(),
        EventKind::RunResumed => {
            let from = checkpoint().map(|number| format!(" from checkpoint {number}")).unwrap_or_default();
            let changed = changed_inputs(data);
            let names: Vec<&str> = changed.iter().map(|change| change.name.as_str()).collect();
            let with = changed_inputs_note(&names);
            safe_text::line(&format!("resumed{from}{with}")).into_owned()
        }
        EventKind::SignalReceived => format!("signal {}", text("name")?),
        EventKind::RunAssigned => match text("to") {
            Some(to) => format!("assigned to {to}"),
            None => "unassigned".to_owned(),
        },
        EventKind::RunReplayedTo => format!("replayed as {}", text("run")?),
        EventKind::RunForkedTo => format!("forked as {}", text("run")?),
        _ => return None,
    })
}

/// Returns the inputs that a resumed run continues with, if they have other values than before.
pub fn changed_inputs(resumed: &Value) -> Vec<ChangedInput> {
    let corrected = resumed["corrected_inputs"].as_object().into_iter().flatten();
    let before = |name: &String| resumed["inputs_before"].get(name);
    corrected
        .filter(|(name, after)| before(name) != Some(*after))
        .map(|(name, after)| ChangedInput {
            name: name.clone(),
            before: before(name).filter(|value| !value.is_null()).cloned(),
            after: after.clone(),
        })
        .collect()
}

/// Names the inputs that a command changed, to append to a note; empty if there are none.
pub(super) fn changed_inputs_note(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => format!(" with changed input {one}"),
        several => format!(" with changed inputs {}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use skills_store::{NewEvent, RunId};

    #[test]
    fn every_command_names_its_sender() {
        let expected = [
            ("run.canceled", json!({"by": "ana"})),
            ("run.canceled", json!({"by": "bo", "reason": "denied"})),
            ("run.resumed", json!({"by": "cy", "checkpoint": 2, "corrected_inputs": {"name": "right.csv"}})),
            ("signal.received", json!({"by": "di\u{1b}[31m", "name": "go", "payload": null})),
            ("run.forked_to", json!({"by": "ed", "run": "r2", "checkpoint": 0})),
            ("run.assigned", json!({"by": "fi", "to": "kim", "note": "see INC-7"})),
            ("control.applied", json!({"by": "a-sidecar", "asked": "cancel"})),
            ("run.canceled", json!({})),
            (
                "run.resumed",
                json!({"by": "gus", "corrected_inputs": {"name": "a.csv", "limit": 3},
                       "inputs_before": {"name": "a.csv", "limit": 2}}),
            ),
        ];
        let events: Vec<RunEvent> = (1..)
            .zip(expected)
            .map(|(number, (kind, data))| RunEvent {
                run: RunId("r".into()),
                number,
                global: number,
                at_ms: 0,
                event: NewEvent { kind: kind.into(), step: None, data },
            })
            .collect();
        let commands = list_commands(events.iter());
        let commands: Vec<(&str, &str)> =
            commands.iter().map(|command| (command.what.as_str(), command.by.as_str())).collect();
        assert_eq!(commands[0], ("canceled", "ana"));
        assert_eq!(commands[1], ("resumed from checkpoint 2 with changed input `name`", "cy"));
        assert_eq!(commands[2].0, "signal go");
        assert!(!commands[2].1.contains('\u{1b}'));
        assert_eq!(commands[3..5], [("forked as r2", "ed"), ("assigned to kim", "fi")]);
        assert_eq!(commands[5..], [("resumed with changed input `limit`", "gus")]);
        assert_eq!(list_commands(events.iter())[4].note.as_deref(), Some("see INC-7"));
    }
}
