//! Dialogs with a few fields: resume, signal, assign, cancel, replay, fork, and the result of a step. Input is
//! validated while it is typed.

use std::collections::BTreeMap;
use std::time::Instant;

use ratatui::layout::Rect;
use serde_json::{Map, Value};

use super::choice::Choice;
use super::parts::Button;
use super::{CheckpointChoice, RunCommandKind};
use crate::action::Action;
use crate::form::Form;
use crate::overlay::Outcome;
use crate::pane::{Effect, PaneId};
use crate::run_requests::RunRequest;
use crate::widgets::text_width::shown;
use skills_api::{Code, Error, InputFields, RunCommand};
use skills_model::{Choice as Ending, CommandName, Gate, RunState, Verdict};
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

/// The focused part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Checkpoint,
    Form,
    /// Continue although the skill changed.
    Despite,
    Button(usize),
}

/// The state of the dialog.
pub(super) struct RunCommandDialog {
    pub(super) pane: PaneId,
    pub(super) kind: RunCommandKind,
    pub(super) run: RunRecord,
    pub(super) ticket: u64,
    /// The choice of a checkpoint, if there is one.
    pub(super) checkpoint: Option<Choice>,
    /// Numbers of the offered checkpoints, in the order of the choice.
    numbers: Vec<u64>,
    /// Inputs to correct, or a signal's name and payload.
    pub(super) form: Form,
    /// The assignee when the form was opened; empty if unassigned.
    assignee: String,
    /// Whether to continue although the skill changed; `None` if it did not.
    pub(super) despite: Option<bool>,
    pub(super) focus: Focus,
    pub(super) sent: bool,
    /// Whether the command was executed.
    done: bool,
    pub(super) said: Option<String>,
    /// Why the run no longer accepts the command.
    pub(super) past: Option<String>,
    pub(super) opened: (i64, Instant),
    pub(super) drawn: FrameAreas,
}

/// Areas of the last frame.
#[derive(Debug, Default)]
pub(super) struct FrameAreas {
    pub(super) checkpoint: Rect,
    pub(super) despite: Rect,
    pub(super) buttons: Vec<Rect>,
    /// Rows of the form at a width: while the dialog is open it grows, but does not shrink.
    pub(super) rows: (u16, u16),
}

impl RunCommandDialog {
    pub(super) fn new(
        pane: PaneId,
        run: RunRecord,
        kind: RunCommandKind,
        ticket: u64,
        opened: (i64, Instant),
    ) -> Self {
        let mut sheet = Self {
            pane,
            kind,
            run,
            ticket,
            checkpoint: None,
            numbers: Vec::new(),
            form: Form::default(),
            assignee: String::new(),
            despite: None,
            focus: Focus::Button(0),
            sent: false,
            done: false,
            said: None,
            past: None,
            opened,
            drawn: FrameAreas::default(),
        };
        match sheet.kind.clone() {
            RunCommandKind::Signal { name, .. } => {
                sheet.form = signal_form(&name);
                // The name it waits for is filled in; what is missing is the payload.
                sheet.form.focus_on(if name.is_empty() { SIGNAL } else { PAYLOAD });
                sheet.focus = Focus::Form;
            }
            RunCommandKind::Resume { changed, fields } => {
                let inputs = sheet.run.inputs.as_object().cloned().unwrap_or_default();
                let fields = if fields.is_empty() { guessed(&inputs) } else { fields };
                sheet.form = Form::new(&fields, &inputs);
                sheet.despite = changed.then_some(false);
                if !sheet.form.is_empty() {
                    sheet.focus = Focus::Form;
                }
            }
            RunCommandKind::Happened { outputs, .. } => {
                let fields = if outputs.is_empty() { any_result() } else { outputs };
                sheet.form = Form::new(&fields, &Map::new());
                sheet.focus = Focus::Form;
            }
            RunCommandKind::Assign => {
                sheet.show_assignee();
                sheet.focus = Focus::Form;
            }
            // The focus stays on the button that closes the dialog: these commands take effect immediately.
            RunCommandKind::Cancel | RunCommandKind::Replay | RunCommandKind::Fork => {}
        }
        sheet
    }

    /// Sets the form of an assignment to the current assignee.
    fn show_assignee(&mut self) {
        let assigned = self.run.options.assigned.as_ref();
        self.assignee = assigned.map(|assigned| assigned.to.clone()).unwrap_or_default();
        self.form = assignment_form(assigned.map(|assigned| assigned.to.as_str()));
        self.form.focus_on(ASSIGNEE);
    }

    /// Offers the checkpoints, newest first: the last one is the default.
    pub(super) fn offering(mut self, checkpoints: Vec<CheckpointChoice>, chosen: Option<u64>) -> Self {
        let asks = matches!(
            self.kind,
            RunCommandKind::Resume { .. } | RunCommandKind::Replay | RunCommandKind::Fork
        );
        if checkpoints.is_empty() || !asks || (self.run.paused && self.run.state == RunState::Pending) {
            return self;
        }
        let head = self.run.head;
        let mut options = Vec::new();
        for (number, label) in checkpoints.into_iter().rev() {
            let mark = if number == head { ", the head" } else { "" };
            options.push(format!("c{number}  {}{mark}", shown(&label)));
            self.numbers.push(number);
        }
        let wanted = chosen.unwrap_or(head);
        let at = self.numbers.iter().position(|number| *number == wanted).unwrap_or(0);
        self.checkpoint = Some(Choice { options, at });
        self.focus = Focus::Checkpoint;
        self
    }

    /// Restores a draft.
    pub(super) fn retyped(mut self, typed: &Map<String, Value>) -> Self {
        self.form.retype(typed);
        self.check();
        self
    }

    /// Returns the fields that were entered and not submitted, with the name of the draft.
    pub(super) fn typed(&self) -> (String, Map<String, Value>) {
        let typed = if self.done || self.past.is_some() { Map::new() } else { self.form.typed() };
        (super::name_of_run_command(&self.kind, &self.run.id), typed)
    }

    pub(super) fn title(&self) -> &'static str {
        match &self.kind {
            RunCommandKind::Resume { .. } => "Resume this run",
            RunCommandKind::Signal { .. } => "Send a signal",
            RunCommandKind::Happened { .. } => "Mark completed: enter the result",
            RunCommandKind::Cancel => "Cancel this run?",
            RunCommandKind::Replay => "Replay from a checkpoint",
            RunCommandKind::Fork => "Fork from a checkpoint",
            RunCommandKind::Assign if self.run.options.assigned.is_some() => "Reassign this run",
            RunCommandKind::Assign => "Assign this run",
        }
    }

    /// Describes the effects of the command in sentences.
    pub(super) fn explains(&self) -> String {
        let step = self.run.step.as_deref().map(shown);
        match &self.kind {
            RunCommandKind::Resume { .. } if self.run.paused => {
                "It was paused: its steps start now.".to_owned()
            }
            RunCommandKind::Resume { .. } => {
                "Steps after the checkpoint run again. Changed inputs are recorded.".to_owned()
            }
            RunCommandKind::Signal { .. } => {
                let payload = "The payload becomes the output of the waiting step.";
                match &self.run.gate {
                    Some(Gate::Signal { name, .. }) => {
                        format!("{payload} This run waits for {:?} and accepts no other signal.", shown(name))
                    }
                    _ => format!("{payload} No step waits for a signal now; it is buffered until one does."),
                }
            }
            RunCommandKind::Happened { step, .. } => format!(
                "{} is recorded as completed with this result. It does not run again, and the run \
                    continues after it.",
                shown(step)
            ),
            RunCommandKind::Cancel if self.run.state.is_active() => format!(
                "Its worker stops{}. External side effects remain. A canceled run cannot be resumed.",
                step.map(|step| format!(" in {step}")).unwrap_or_default()
            ),
            RunCommandKind::Cancel => {
                "External side effects remain. A canceled run cannot be resumed.".to_owned()
            }
            RunCommandKind::Replay => {
                "Creates a run: steps up to the checkpoint are copied, the others run immediately. Their \
                    external side effects are repeated."
                    .to_owned()
            }
            RunCommandKind::Fork => {
                "Creates a paused run: steps up to the checkpoint are copied, nothing runs until it is \
                    resumed."
                    .to_owned()
            }
            RunCommandKind::Assign => match &self.run.options.assigned {
                Some(assigned) => format!(
                    "Assigned to {}{}. Leave the person empty to unassign it.",
                    shown(&assigned.to),
                    assigned.note.as_ref().map(|note| format!(": {}", shown(note))).unwrap_or_default()
                ),
                None => "The details of the run show the person and the note.".to_owned(),
            },
        }
    }

    /// Describes the pause that was requested for after the signal.
    pub(super) fn pause(&self) -> Option<String> {
        let RunCommandKind::Signal { pause, .. } = &self.kind else { return None };
        if !self.run.paused || self.run.state != RunState::WaitingForSignal {
            return None;
        }
        // The request may have arrived after the dialog was opened.
        let by = pause.as_deref().map_or_else(|| "another user".to_owned(), shown);
        Some(format!("pause requested by {by}: after the signal it is paused until resumed"))
    }

    /// Returns whether the command can still be sent.
    pub(super) fn open(&self) -> bool {
        !self.sent && self.past.is_none()
    }

    pub(super) fn buttons(&self) -> Vec<Button> {
        if !self.open() {
            return vec![Button::new(Action::Back, "Close", "Esc")];
        }
        let label = self.labels().0;
        let act = if self.kind == RunCommandKind::Cancel {
            Button::danger(Action::CarryOut, label, "^S")
        } else {
            Button::new(Action::CarryOut, label, "^S")
        };
        vec![Button::new(Action::Back, self.closing(), "Esc"), act]
    }

    /// Returns the labels of the button that sends the command, and of its key in the footer.
    pub(super) fn labels(&self) -> (&'static str, &'static str) {
        match &self.kind {
            RunCommandKind::Resume { .. } => ("Resume", "resume"),
            RunCommandKind::Signal { .. } => ("Send", "send"),
            RunCommandKind::Happened { .. } => ("Mark completed", "mark completed"),
            RunCommandKind::Cancel => ("Cancel run", "cancel run"),
            RunCommandKind::Replay => ("Replay", "replay"),
            RunCommandKind::Fork => ("Fork", "fork"),
            RunCommandKind::Assign if self.run.options.assigned.is_some() => ("Reassign", "reassign"),
            RunCommandKind::Assign => ("Assign", "assign"),
        }
    }

    /// Returns the label of the button that sends nothing.
    pub(super) fn closing(&self) -> &'static str {
        // "Cancel" would read as the command.
        if self.kind == RunCommandKind::Cancel { "Keep running" } else { "Cancel" }
    }

    /// Moves the focus to the next applicable part.
    pub(super) fn turn(&mut self, forward: bool) {
        let request = [
            self.checkpoint.as_ref().map(|_| Focus::Checkpoint),
            (!self.form.is_empty()).then_some(Focus::Form),
            self.despite.map(|_| Focus::Despite),
        ];
        let mut ring: Vec<Focus> =
            if self.open() { request.into_iter().flatten().collect() } else { Vec::new() };
        ring.extend((0..self.buttons().len()).map(Focus::Button));
        let at = ring.iter().position(|focus| *focus == self.focus).unwrap_or(0);
        let by = if forward { 1 } else { ring.len() - 1 };
        self.focus = ring[(at + by) % ring.len()];
        if self.focus == Focus::Form {
            if forward { self.form.first() } else { self.form.last() }
        }
    }

    /// Validates what the form accepts as any text: a payload is JSON, or empty.
    pub(super) fn check(&mut self) {
        if !matches!(self.kind, RunCommandKind::Signal { .. }) {
            return;
        }
        let wrong = self.form.text(PAYLOAD).and_then(|text| payload(text).err());
        let remarks: Vec<(String, String)> = wrong.map(|why| (PAYLOAD.to_owned(), why)).into_iter().collect();
        self.form.remark(&remarks);
    }

    /// Returns the command from the fields; `None` if a field is invalid, which is then focused.
    fn order(&mut self) -> Option<RunCommand> {
        self.check();
        if !self.form.check() {
            return None;
        }
        let chosen = self.checkpoint.as_ref().and_then(|choice| self.numbers.get(choice.at).copied());
        let checkpoint = chosen.filter(|number| *number != self.run.head);
        Some(match &self.kind {
            RunCommandKind::Resume { .. } => {
                let inputs = Some(self.form.changes()).filter(|changes| !changes.is_empty());
                RunCommand::Resume {
                    checkpoint,
                    inputs,
                    despite_change: self.despite == Some(true),
                    by: None,
                }
            }
            RunCommandKind::Signal { .. } => {
                let name = self.form.text(SIGNAL).unwrap_or_default().trim().to_owned();
                let Ok(payload) = payload(self.form.text(PAYLOAD).unwrap_or_default()) else {
                    self.form.focus_on(PAYLOAD);
                    return None;
                };
                RunCommand::Signal { name, payload, by: None }
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
            RunCommandKind::Replay => RunCommand::Replay { checkpoint, by: None },
            RunCommandKind::Fork => RunCommand::Fork { checkpoint, by: None },
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

    /// Sends the command, once.
    pub(super) fn submit(&mut self) -> Outcome {
        if !self.open() {
            return Outcome::Stay;
        }
        let Some(order) = self.order() else {
            self.focus = Focus::Form;
            return Outcome::Stay;
        };
        (self.sent, self.said, self.focus) = (true, None, Focus::Button(0));
        let (run, order, ticket) = (self.run.id.clone(), Box::new(order), self.ticket);
        Outcome::Request(self.pane, vec![Effect::Run(RunRequest::Order { run, order, ticket })])
    }

    /// Handles the success of the command.
    pub(super) fn through(&mut self) -> Outcome {
        self.done = true;
        Outcome::Close
    }

    pub(super) fn failed(&mut self, error: &Error) -> Outcome {
        self.sent = false;
        self.said = Some(shown(&error.message));
        if error.code == Code::SkillChanged && self.despite.is_none() {
            self.despite = Some(false);
            self.focus = Focus::Despite;
        }
        if let Some(now) = error.reason.as_ref().and_then(|reason| reason.get("assigned")) {
            // The message names the person; sent again, it replaces this assignment.
            now.get("to").and_then(Value::as_str).unwrap_or_default().clone_into(&mut self.assignee);
        }
        Outcome::Handled
    }

    /// Updates the run. A command that it no longer accepts is disabled.
    pub(super) fn news_of(&mut self, run: &RunRecord) {
        self.run.clone_from(run);
        if self.sent {
            // Its own command changed it; the response is pending.
            return;
        }
        if self.kind == RunCommandKind::Assign && !self.form.changed() {
            self.show_assignee();
        }
        let takes = |command: CommandName| run.allowed.contains(&command);
        let (is_open, gone) = match &self.kind {
            RunCommandKind::Resume { .. } => (takes(CommandName::Resume), "it cannot be resumed"),
            RunCommandKind::Signal { .. } => (takes(CommandName::Signal), "it no longer accepts signals"),
            RunCommandKind::Happened { .. } => (takes(CommandName::Approve), "no decision is pending"),
            RunCommandKind::Cancel => (takes(CommandName::Cancel), "it has already ended"),
            RunCommandKind::Replay => (takes(CommandName::Replay), "it cannot be replayed"),
            RunCommandKind::Fork => (takes(CommandName::Fork), "it cannot be forked"),
            RunCommandKind::Assign => (!run.state.is_terminal(), "it has ended"),
        };
        let before = self.past.take();
        if !is_open {
            self.past = Some(format!("It is {} now: {gone}.", run.state.label()));
            self.focus = Focus::Button(0);
        } else if before.is_some() {
            self.focus = Focus::Button(0);
        }
    }

    /// Returns how long the run has been in its state, in milliseconds.
    pub(super) fn passed(&self, now: Instant) -> i64 {
        super::parts::clock(self.opened, now) - self.run.since_ms
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
fn guessed(inputs: &Map<String, Value>) -> InputFields {
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
pub(super) fn payload(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(text).map_err(|error| {
        let line = if text.contains('\n') { format!("line {}, ", error.line()) } else { String::new() };
        format!("invalid JSON at {line}column {}", error.column())
    })
}
