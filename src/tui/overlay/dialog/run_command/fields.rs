//! The fields of a command: a checkpoint, a form, and whether to continue although the skill changed.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::choice::Choice;
use super::super::{CheckpointChoice, RunCommandKind};
use crate::form::{Form, FormState};
use crate::widgets::shown;
use skills_api::{Error, InputFields, RunCommand};
use skills_model::{Choice as Ending, RunState, Verdict};
use skills_skill::contract::{Field, FieldType};
use skills_store::RunRecord;

/// Names of the two fields of a signal.
const SIGNAL: &str = "signal";
const PAYLOAD: &str = "payload";
/// Names of the two fields of an assignment.
const ASSIGNEE: &str = "assign to";
const NOTE: &str = "note";
/// Name of the field for a result if the capability declares no outputs.
const RESULT: &str = "result";

#[derive(Default)]
pub(super) struct Fields {
    /// The choice of a checkpoint, if there is one.
    pub checkpoint: Option<Choice>,
    /// Numbers of the offered checkpoints, in the order of the choice.
    numbers: Vec<u64>,
    /// Inputs to correct, or a signal's name and payload.
    pub form: Form,
    /// The assignee when the form was opened; empty if unassigned.
    assignee: String,
    /// Whether to continue although the skill changed; `None` if it did not.
    pub despite: Option<bool>,
    /// Rows of the form at a width: while the dialog is open it grows, but does not shrink.
    rows: (u16, u16),
}

impl Fields {
    pub fn of(kind: &RunCommandKind, run: &RunRecord) -> Self {
        let mut fields = Self::default();
        match kind {
            RunCommandKind::Signal { name, .. } => {
                fields.form = signal_form(name);
                // The name it waits for is filled in; what is missing is the payload.
                fields.form.focus_on(if name.is_empty() { SIGNAL } else { PAYLOAD });
            }
            RunCommandKind::Resume { changed, fields: declared } => {
                let inputs = run.inputs.as_object().cloned().unwrap_or_default();
                let declared =
                    if declared.is_empty() { fields_from_inputs(&inputs) } else { declared.clone() };
                fields.form = Form::new(&declared, &inputs);
                fields.despite = changed.then_some(false);
            }
            RunCommandKind::Happened { outputs, .. } => {
                let outputs = if outputs.is_empty() { any_result() } else { outputs.clone() };
                fields.form = Form::new(&outputs, &Map::new());
            }
            RunCommandKind::Assign => fields.show_assignee(run),
            RunCommandKind::Cancel | RunCommandKind::Replay | RunCommandKind::Fork => {}
        }
        fields
    }

    /// Sets the form of an assignment to the current assignee.
    pub fn show_assignee(&mut self, run: &RunRecord) {
        let assigned = run.options.assigned.as_ref();
        self.assignee = assigned.map(|assigned| assigned.to.clone()).unwrap_or_default();
        self.form = assignment_form(assigned.map(|assigned| assigned.to.as_str()));
        self.form.focus_on(ASSIGNEE);
    }

    /// Takes the assignee that an error reports; sent again, the command replaces this assignment.
    pub fn take_assignee(&mut self, error: &Error) {
        if let Some(now) = error.reason.as_ref().and_then(|reason| reason.get("assigned")) {
            now.get("to").and_then(Value::as_str).unwrap_or_default().clone_into(&mut self.assignee);
        }
    }

    /// Offers the checkpoints, newest first: the last one is the default. Returns whether there are any.
    pub fn offer(
        &mut self,
        kind: &RunCommandKind,
        run: &RunRecord,
        checkpoints: Vec<CheckpointChoice>,
        chosen: Option<u64>,
    ) -> bool {
        let asks =
            matches!(kind, RunCommandKind::Resume { .. } | RunCommandKind::Replay | RunCommandKind::Fork);
        if checkpoints.is_empty() || !asks || (run.paused && run.state == RunState::Pending) {
            return false;
        }
        let head = run.head;
        let mut options = Vec::new();
        for (number, label) in checkpoints.into_iter().rev() {
            let mark = if number == head { " (latest)" } else { "" };
            options.push(format!("c{number}  {}{mark}", shown(&label)));
            self.numbers.push(number);
        }
        let requested = chosen.unwrap_or(head);
        let at = self.numbers.iter().position(|number| *number == requested).unwrap_or(0);
        self.checkpoint = Some(Choice { options, at });
        true
    }

    /// Validates what the form accepts as any text: a payload is JSON, or empty.
    pub fn check(&mut self, kind: &RunCommandKind) {
        if !matches!(kind, RunCommandKind::Signal { .. }) {
            return;
        }
        let wrong = self.form.text(PAYLOAD).and_then(|text| payload(text).err());
        let remarks: Vec<(String, String)> = wrong.map(|why| (PAYLOAD.to_owned(), why)).into_iter().collect();
        self.form.remark(&remarks);
    }

    /// Returns the command from the fields; `None` if a field is invalid, which is then focused.
    pub fn build_command(&mut self, kind: &RunCommandKind, run: &RunRecord) -> Option<RunCommand> {
        self.check(kind);
        if !self.form.check() {
            return None;
        }
        // Replay and fork send it even if it is the latest: the run may have a later one when the command arrives.
        let checkpoint = self.checkpoint.as_ref().and_then(|choice| self.numbers.get(choice.at).copied());
        Some(match kind {
            RunCommandKind::Resume { .. } => {
                let inputs = Some(self.form.changes()).filter(|changes| !changes.is_empty());
                RunCommand::Resume {
                    // Without a number, it continues where it stopped.
                    checkpoint: checkpoint.filter(|number| *number != run.head),
                    inputs,
                    despite_change: self.despite == Some(true),
                    by: None,
                    since_ms: None,
                }
            }
            RunCommandKind::Signal { .. } => {
                let name = self.form.text(SIGNAL).unwrap_or_default().trim().to_owned();
                let Ok(payload) = payload(self.form.text(PAYLOAD).unwrap_or_default()) else {
                    self.form.focus_on(PAYLOAD);
                    return None;
                };
                RunCommand::Signal { name, payload, by: None, since_ms: None }
            }
            RunCommandKind::Happened { step, inputs_digest, outputs, approver, notes } => {
                let mut stated = self.form.so_far();
                let result = if outputs.is_empty() { stated.remove(RESULT) } else { Some(stated.into()) };
                RunCommand::Decide {
                    verdict: Verdict::Approve,
                    step: Some(step.clone()),
                    inputs_digest: Some(inputs_digest.clone()),
                    approver: approver.clone(),
                    notes: notes.clone(),
                    choice: Some(Ending::Happened),
                    result,
                }
            }
            RunCommandKind::Cancel => RunCommand::Cancel { by: None },
            RunCommandKind::Replay => RunCommand::Replay { checkpoint, by: None, since_ms: None },
            RunCommandKind::Fork => RunCommand::Fork { checkpoint, by: None, since_ms: None },
            RunCommandKind::Assign => {
                let typed = |name: &str| {
                    let text = self.form.text(name).map(str::trim).filter(|text| !text.is_empty());
                    text.map(str::to_owned)
                };
                let (to, note) = (typed(ASSIGNEE), typed(NOTE));
                if to.is_none() && self.assignee.is_empty() {
                    self.form.focus_on(ASSIGNEE);
                    return None;
                }
                RunCommand::Assign { to, note, assignee: Some(self.assignee.clone()), by: None }
            }
        })
    }

    /// Returns the rows of the form: they grow with the input and do not change when the focus moves.
    pub fn form_rows(&mut self, width: u16, look: FormState) -> u16 {
        let before = if self.rows.0 == width { self.rows.1 } else { 0 };
        self.rows = (width, self.form.required_height(width, look).max(before));
        self.rows.1
    }
}

/// Returns the field for a result without declared outputs.
fn any_result() -> InputFields {
    let field = Field {
        required: true,
        description: Some("A JSON object.".to_owned()),
        ..Field::of(FieldType::Object)
    };
    BTreeMap::from([(RESULT.to_owned(), field)])
}

/// Returns the form of an assignment: the assignee and a note.
fn assignment_form(assigned: Option<&str>) -> Form {
    let field = |description: &str| Field {
        description: Some(description.to_owned()),
        ..Field::of(FieldType::String)
    };
    let fields: InputFields = BTreeMap::from([
        (ASSIGNEE.to_owned(), field("A person; leave empty to unassign the run.")),
        (NOTE.to_owned(), field("Note for the assignee.")),
    ]);
    let values = assigned.map(|to| (ASSIGNEE.to_owned(), Value::from(to)));
    Form::new(&fields, &Map::from_iter(values))
}

fn signal_form(name: &str) -> Form {
    let field = |kind: FieldType, required: bool, description: &str| Field {
        required,
        description: Some(description.to_owned()),
        ..Field::of(kind)
    };
    let fields: InputFields = BTreeMap::from([
        (SIGNAL.to_owned(), field(FieldType::String, true, "Name that a step waits for.")),
        (PAYLOAD.to_owned(), field(FieldType::Any, false, "JSON, or empty. ^J starts a new line.")),
    ]);
    let mut values = Map::from_iter([(PAYLOAD.to_owned(), Value::Object(Map::new()))]);
    if !name.is_empty() {
        values.insert(SIGNAL.to_owned(), Value::from(name));
    }
    Form::new(&fields, &values)
}

/// Infers fields from the values of inputs whose contract declares none.
fn fields_from_inputs(inputs: &Map<String, Value>) -> InputFields {
    let kind = |value: &Value| match value {
        Value::String(_) => FieldType::String,
        Value::Number(_) => FieldType::Number,
        Value::Bool(_) => FieldType::Boolean,
        Value::Array(_) => FieldType::Array,
        Value::Object(_) => FieldType::Object,
        Value::Null => FieldType::Any,
    };
    inputs.iter().map(|(name, value)| (name.clone(), Field::of(kind(value)))).collect()
}

/// Parses a payload: JSON, or empty.
pub fn payload(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(text).map_err(|error| {
        let line = if text.contains('\n') { format!("line {}, ", error.line()) } else { String::new() };
        format!("invalid JSON at {line}column {}", error.column())
    })
}
