//! Sheets with a few fields: resume, signal, cancel, replay and fork. What is typed is checked while it is typed.

use std::time::Instant;

use ratatui::layout::Rect;
use serde_json::{Map, Value};

use super::choice::Choice;
use super::parts::Button;
use super::{Offered, OrderKind};
use crate::gateway::{Code, Error, RunOrder};
use crate::store::RunRecord;
use crate::tui::action::Action;
use crate::tui::field::Field;
use crate::tui::overlay::Outcome;
use crate::tui::pane::{Effect, PaneId};
use crate::tui::run_traffic::RunAsk;
use crate::tui::widgets::ages::age;
use crate::tui::widgets::measure::shown;
use crate::tui::widgets::scroll::Scroll;

/// What is asked in one row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    Checkpoint,
    Name,
    Payload,
    /// A corrected input of the run.
    Input(String),
    /// Go on although the skill changed.
    Despite,
}

/// How it is answered.
pub(super) enum Answer {
    Choice(Choice),
    Text(Field),
    Flag(bool),
}

/// One row.
pub(super) struct Item {
    pub(super) asked: Asked,
    pub(super) answer: Answer,
    /// What is wrong with it.
    pub(super) wrong: Option<String>,
}

/// What has the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Item(usize),
    Button(usize),
}

/// The sheet and where it stands.
pub(super) struct OrderSheet {
    pub(super) pane: PaneId,
    pub(super) kind: OrderKind,
    pub(super) run: RunRecord,
    pub(super) ticket: u64,
    pub(super) items: Vec<Item>,
    /// Numbers of the checkpoints offered, in the order of the choice.
    numbers: Vec<u64>,
    pub(super) focus: Focus,
    pub(super) sent: bool,
    pub(super) said: Option<String>,
    pub(super) opened: Option<(i64, Instant)>,
    pub(super) scroll: Scroll,
    pub(super) rows: Vec<(Rect, usize)>,
    pub(super) pressed: Vec<Rect>,
}

impl OrderSheet {
    pub(super) fn new(pane: PaneId, run: RunRecord, kind: OrderKind, ticket: u64) -> Self {
        let mut sheet = Self {
            pane,
            kind,
            run,
            ticket,
            items: Vec::new(),
            numbers: Vec::new(),
            focus: Focus::Item(0),
            sent: false,
            said: None,
            opened: None,
            scroll: Scroll::default(),
            rows: Vec::new(),
            pressed: Vec::new(),
        };
        match sheet.kind.clone() {
            OrderKind::Signal { name } => {
                sheet.add(Asked::Name, Answer::Text(filled(&name)));
                sheet.add(Asked::Payload, Answer::Text(filled("{}")));
                // The name it waits for is there already: what is missing is the payload.
                sheet.focus = Focus::Item(usize::from(!name.is_empty()));
            }
            OrderKind::Resume { changed } => {
                for (name, value) in sheet.run.inputs.as_object().cloned().unwrap_or_default() {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    // A field of one line would join the lines of a longer text: such inputs stay as they are.
                    if !text.contains('\n') {
                        sheet.add(Asked::Input(name), Answer::Text(filled(&text)));
                    }
                }
                if changed {
                    sheet.add(Asked::Despite, Answer::Flag(false));
                }
            }
            // A question that stops something begins on "no".
            OrderKind::Cancel => sheet.focus = Focus::Button(0),
            OrderKind::Replay | OrderKind::Fork => {}
        }
        sheet
    }

    /// The same, opened at a moment of the wall clock.
    pub(super) fn opened_at(mut self, opened: (i64, Instant)) -> Self {
        self.opened = Some(opened);
        self
    }

    fn add(&mut self, asked: Asked, answer: Answer) {
        self.items.push(Item { asked, answer, wrong: None });
    }

    /// Offers the checkpoints, newest first: the head is what is meant when nothing is said.
    pub(super) fn offering(mut self, checkpoints: Vec<Offered>, chosen: Option<u64>) -> Self {
        let asks = matches!(self.kind, OrderKind::Resume { .. } | OrderKind::Replay | OrderKind::Fork);
        if checkpoints.is_empty() || !asks || self.run.held {
            if self.items.is_empty() {
                self.focus = Focus::Button(0);
            }
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
        let answer = Answer::Choice(Choice { options, at });
        self.items.insert(0, Item { asked: Asked::Checkpoint, answer, wrong: None });
        self
    }

    pub(super) fn title(&self) -> &'static str {
        match &self.kind {
            OrderKind::Resume { .. } => "Resume this run",
            OrderKind::Signal { .. } => "Send a signal",
            OrderKind::Cancel => "Cancel this run?",
            OrderKind::Replay => "Replay from a checkpoint",
            OrderKind::Fork => "Fork from a checkpoint",
        }
    }

    /// What will come of it, in sentences.
    pub(super) fn explains(&self) -> String {
        let step = self.run.step.as_deref().map(shown);
        match &self.kind {
            OrderKind::Resume { .. } if self.run.held => "It was held: its steps begin now.".to_owned(),
            OrderKind::Resume { .. } => {
                "Steps after the checkpoint run again. Inputs you change here are recorded as corrected."
                    .to_owned()
            }
            OrderKind::Signal { .. } => {
                "The payload becomes the output of the step that waits. A name nobody waits for \
                is kept until a step asks for it."
                    .to_owned()
            }
            OrderKind::Cancel if self.run.state.is_active() => format!(
                "Its worker stops what it does{}. What has happened outside stays. This is the end of the run.",
                step.map(|step| format!(" in {step}")).unwrap_or_default()
            ),
            OrderKind::Cancel => "What has happened outside stays. This is the end of the run.".to_owned(),
            OrderKind::Replay => {
                "A new run: steps up to the checkpoint are taken over as recorded, the others run \
                at once. What they do outside happens again."
                    .to_owned()
            }
            OrderKind::Fork => {
                "A new run with steps up to the checkpoint taken over. Nothing runs until it is \
                resumed."
                    .to_owned()
            }
        }
    }

    pub(super) fn buttons(&self) -> Vec<Button> {
        if self.sent {
            return vec![Button::new(Action::Back, "Close", "Esc")];
        }
        let label = match &self.kind {
            OrderKind::Resume { .. } => "Resume",
            OrderKind::Signal { .. } => "Send",
            OrderKind::Cancel => "Cancel the run",
            OrderKind::Replay => "Replay",
            OrderKind::Fork => "Fork",
        };
        let act = if self.kind == OrderKind::Cancel {
            Button::danger(Action::CarryOut, label, "^S")
        } else {
            Button::new(Action::CarryOut, label, "^S")
        };
        vec![Button::new(Action::Back, "Not now", "Esc"), act]
    }

    pub(super) fn turn(&mut self, by: isize) {
        let mut ring: Vec<Focus> = (0..self.items.len()).map(Focus::Item).collect();
        ring.extend((0..self.buttons().len()).map(Focus::Button));
        let at = ring.iter().position(|focus| *focus == self.focus).unwrap_or(0);
        let len = isize::try_from(ring.len()).unwrap_or(1);
        let next = (isize::try_from(at).unwrap_or(0) + by).rem_euclid(len);
        self.focus = ring[usize::try_from(next).unwrap_or(0)];
    }

    /// Looks at every row again.
    pub(super) fn check(&mut self) {
        let inputs = self.run.inputs.clone();
        for item in &mut self.items {
            let Answer::Text(field) = &item.answer else { continue };
            item.wrong = match &item.asked {
                Asked::Name if field.text().trim().is_empty() => Some("a signal has a name".to_owned()),
                Asked::Payload => payload(field.text()).err(),
                Asked::Input(name) => corrected(field.text(), inputs.get(name)).err(),
                _ => None,
            };
        }
    }

    /// The order as it stands on the sheet, or the first row that is wrong.
    fn order(&mut self) -> Result<RunOrder, usize> {
        self.check();
        if let Some(at) = self.items.iter().position(|item| item.wrong.is_some()) {
            return Err(at);
        }
        let mut checkpoint = None;
        let (mut name, mut sent) = (String::new(), Value::Null);
        let (mut inputs, mut despite_change) = (Map::new(), false);
        for item in &self.items {
            match (&item.asked, &item.answer) {
                (Asked::Checkpoint, Answer::Choice(choice)) => {
                    let number = self.numbers.get(choice.at).copied();
                    checkpoint = number.filter(|number| *number != self.run.head);
                }
                (Asked::Name, Answer::Text(field)) => field.text().trim().clone_into(&mut name),
                (Asked::Payload, Answer::Text(field)) => sent = payload(field.text()).unwrap_or_default(),
                (Asked::Input(key), Answer::Text(field)) => {
                    let before = self.run.inputs.get(key);
                    if let Ok(value) = corrected(field.text(), before)
                        && before != Some(&value)
                    {
                        inputs.insert(key.clone(), value);
                    }
                }
                (Asked::Despite, Answer::Flag(flag)) => despite_change = *flag,
                _ => {}
            }
        }
        let inputs = (!inputs.is_empty()).then_some(inputs);
        Ok(match &self.kind {
            OrderKind::Resume { .. } => RunOrder::Resume { checkpoint, inputs, despite_change },
            OrderKind::Signal { .. } => RunOrder::Signal { name, payload: sent },
            OrderKind::Cancel => RunOrder::Cancel,
            OrderKind::Replay => RunOrder::Replay { checkpoint },
            OrderKind::Fork => RunOrder::Fork { checkpoint },
        })
    }

    /// Sends it, once.
    pub(super) fn carry_out(&mut self) -> Outcome {
        if self.sent {
            return Outcome::Stay;
        }
        match self.order() {
            Err(at) => {
                self.focus = Focus::Item(at);
                Outcome::Stay
            }
            Ok(order) => {
                (self.sent, self.said, self.focus) = (true, None, Focus::Button(0));
                let (run, order, ticket) = (self.run.id.clone(), Box::new(order), self.ticket);
                Outcome::Ask(self.pane, vec![Effect::Run(RunAsk::Order { run, order, ticket })])
            }
        }
    }

    pub(super) fn failed(&mut self, error: &Error) -> Outcome {
        self.sent = false;
        self.said = Some(shown(&error.message));
        let asks = self.items.iter().any(|item| item.asked == Asked::Despite);
        if error.code == Code::SkillChanged && !asks {
            self.add(Asked::Despite, Answer::Flag(false));
            self.focus = Focus::Item(self.items.len() - 1);
        }
        Outcome::Heard
    }

    /// How long the run has been as it is.
    pub(super) fn note(&self, now: Instant) -> String {
        let Some(opened) = self.opened else { return String::new() };
        age(super::parts::clock(opened, now) - self.run.since_ms)
    }
}

fn filled(text: &str) -> Field {
    let mut field = Field::new();
    field.set(text);
    field
}

/// A payload: JSON, or nothing.
fn payload(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(text).map_err(|error| format!("no JSON at column {}", error.column()))
}

/// An input as typed: text stays text where it was text, everything else is JSON.
fn corrected(text: &str, before: Option<&Value>) -> Result<Value, String> {
    if matches!(before, Some(Value::String(_))) {
        return Ok(Value::String(text.to_owned()));
    }
    serde_json::from_str(text).map_err(|error| format!("no JSON at column {}", error.column()))
}
