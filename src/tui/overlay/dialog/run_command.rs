//! Dialogs with a few fields: resume, signal, assign, cancel, replay, fork, and the result of a step. Input is
//! validated while it is typed.

mod fields;
mod kind;

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use self::fields::Fields;
pub(super) use self::fields::payload;
use super::parts::{self, Button, LABEL};
use super::{CheckpointChoice, RunCommandKind};
use crate::action::{Action, Context};
use crate::form::{FormOutcome, FormState};
use crate::overlay::{Hint, Outcome, Overlay, centered, frame};
use crate::pane::{Effect, Message, PaneId};
use crate::run_requests::{RunRequest, RunResponse};
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Seg, ago, cut_end, lasting, shown, wrap_to};
use skills_api::{Code, Error};
use skills_model::RunState;
use skills_store::RunRecord;

/// Width of the dialog if there is enough space.
const WIDTH: u16 = 72;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Checkpoint,
    Form,
    /// Continue although the skill changed.
    Despite,
    Button(usize),
}

pub(super) struct RunCommandDialog {
    pane: PaneId,
    kind: RunCommandKind,
    run: RunRecord,
    ticket: u64,
    fields: Fields,
    focus: Focus,
    sent: bool,
    done: bool,
    message: Option<String>,
    /// Why the run no longer accepts the command.
    past: Option<String>,
    /// Whether the inputs, the checkpoint or the wait changed since the dialog was opened.
    outdated: bool,
    opened: (i64, Instant),
    drawn: FrameAreas,
}

/// Areas of the last frame.
#[derive(Debug, Default)]
struct FrameAreas {
    checkpoint: Rect,
    despite: Rect,
    buttons: Vec<Rect>,
}

const OUTDATED: &str = "The run has changed since this dialog was opened. Close it and open it again.";

impl RunCommandDialog {
    pub(super) fn new(
        pane: PaneId,
        run: RunRecord,
        kind: RunCommandKind,
        ticket: u64,
        opened: (i64, Instant),
    ) -> Self {
        let fields = Fields::of(&kind, &run);
        // It may have changed while it was loaded for this dialog.
        let past = kind.refused_by(&run);
        // Without fields, the focus stays on the button that closes the dialog: these commands take effect immediately.
        let is_closed = past.is_some() || fields.form.is_empty();
        let focus = if is_closed { Focus::Button(0) } else { Focus::Form };
        Self {
            pane,
            kind,
            run,
            ticket,
            fields,
            focus,
            sent: false,
            done: false,
            message: None,
            past,
            outdated: false,
            opened,
            drawn: FrameAreas::default(),
        }
    }

    /// Offers the checkpoints, newest first: the last one is the default.
    pub(super) fn offering(mut self, checkpoints: Vec<CheckpointChoice>, chosen: Option<u64>) -> Self {
        if self.fields.offer(&self.kind, &self.run, checkpoints, chosen) && self.past.is_none() {
            self.focus = Focus::Checkpoint;
        }
        self
    }

    /// Restores a draft.
    pub(super) fn retyped(mut self, typed: &Map<String, Value>) -> Self {
        self.fields.form.retype(typed);
        self.check();
        self
    }

    /// Returns the fields that were entered and not submitted, with the name of the draft.
    fn typed(&self) -> (String, Map<String, Value>) {
        let is_over = self.done || (self.past.is_some() && !self.outdated);
        let typed = if is_over { Map::new() } else { self.fields.form.typed() };
        (super::name_of_run_command(&self.kind, &self.run.id), typed)
    }

    /// Describes the pause that was requested for after the signal.
    fn pause(&self) -> Option<String> {
        let RunCommandKind::Signal { pause, .. } = &self.kind else { return None };
        if !self.run.paused || self.run.state != RunState::WaitingForSignal {
            return None;
        }
        // The request may have arrived after the dialog was opened.
        let by = pause.as_deref().map_or_else(|| "another user".to_owned(), shown);
        Some(format!("pause requested by {by}: after the signal it is paused until resumed"))
    }

    /// Returns whether the command can still be sent.
    fn open(&self) -> bool {
        !self.sent && self.past.is_none()
    }

    fn buttons(&self) -> Vec<Button> {
        if !self.open() {
            return vec![Button::new(Action::Back, "Close")];
        }
        let label = self.kind.labels(&self.run).0;
        let act = if self.kind == RunCommandKind::Cancel {
            Button::danger(Action::Execute, label)
        } else {
            Button::new(Action::Execute, label)
        };
        vec![Button::new(Action::Back, self.kind.closing()), act]
    }

    /// Moves the focus to the next applicable part.
    fn turn(&mut self, forward: bool) {
        let request = [
            self.fields.checkpoint.as_ref().map(|_| Focus::Checkpoint),
            (!self.fields.form.is_empty()).then_some(Focus::Form),
            self.fields.despite.map(|_| Focus::Despite),
        ];
        let mut ring: Vec<Focus> =
            if self.open() { request.into_iter().flatten().collect() } else { Vec::new() };
        ring.extend((0..self.buttons().len()).map(Focus::Button));
        self.focus = parts::next_focus(&ring, self.focus, forward);
        if self.focus == Focus::Form {
            if forward { self.fields.form.first() } else { self.fields.form.last() }
        }
    }

    fn check(&mut self) {
        self.fields.check(&self.kind);
    }

    /// Sends the command, once.
    fn submit(&mut self) -> Outcome {
        if !self.open() {
            return Outcome::Stay;
        }
        let Some(command) = self.fields.build_command(&self.kind, &self.run) else {
            self.focus = Focus::Form;
            return Outcome::Stay;
        };
        (self.sent, self.message, self.focus) = (true, None, Focus::Button(0));
        let command = Box::new(command.if_unchanged(&self.run));
        let (run, ticket) = (self.run.id.clone(), self.ticket);
        Outcome::Request(self.pane, vec![Effect::Run(RunRequest::Command { run, command, ticket })])
    }

    fn failed(&mut self, error: &Error) -> Outcome {
        self.sent = false;
        self.message = Some(shown(&error.message));
        if error.code == Code::SkillChanged && self.fields.despite.is_none() {
            self.fields.despite = Some(false);
            self.focus = Focus::Despite;
        }
        self.fields.take_assignee(error);
        Outcome::Handled
    }

    /// Updates the run. A command that it no longer accepts is disabled.
    fn news_of(&mut self, run: &RunRecord) {
        let before = std::mem::replace(&mut self.run, run.clone());
        if self.sent {
            // Its own command changed it; the response is pending.
            return;
        }
        if self.kind == RunCommandKind::Assign && !self.fields.form.changed() {
            self.fields.show_assignee(run);
        }
        // What was reviewed here would not be what is resumed or continued.
        self.outdated |= match self.kind {
            RunCommandKind::Resume { .. } => {
                (&before.inputs, before.head) != (&run.inputs, run.head) || !before.is_in_same_state(run)
            }
            RunCommandKind::Replay => (&before.inputs, before.head) != (&run.inputs, run.head),
            // A run that is executed continues meanwhile.
            RunCommandKind::Fork => before.inputs != run.inputs,
            // A run that does not wait may continue meanwhile.
            RunCommandKind::Signal { .. } => {
                before.gate != run.gate || (run.gate.is_some() && !before.is_in_same_state(run))
            }
            _ => false,
        };
        let outdated = || self.outdated.then(|| OUTDATED.to_owned());
        let refusal = self.kind.refused_by(run).or_else(outdated);
        let before = std::mem::replace(&mut self.past, refusal);
        if self.past.is_some() || before.is_some() {
            self.focus = Focus::Button(0);
        }
    }

    /// Returns how long ago the run entered its state, in milliseconds.
    fn passed(&self, now: Instant) -> i64 {
        parts::clock(self.opened, now).saturating_sub(self.run.since_ms)
    }

    fn head(&self, width: u16, roomy: bool, painter: &Painter<'_>, now: Instant) -> Vec<RichLine> {
        let title = self.run.title().map(|title| Seg::new(shown(title), Role::Strong));
        let skill = if title.is_some() { Role::Text } else { Role::Strong };
        let mut out: Vec<RichLine> = Vec::new();
        if let Some(title) = title {
            out.extend(wrap_to(&[title], width, 2, painter.glyphs.ellipsis));
        }
        out.push(RichLine::from_segs(vec![
            Seg::new(shown(&self.run.skill_id), skill),
            Seg::new(format!(" {}", shown(&self.run.id.0)), Role::Muted),
        ]));
        let paused = self.run.paused && self.run.state == RunState::Pending;
        let word = if paused { "paused" } else { self.run.state.label() };
        let since = if self.run.state.is_terminal() || self.run.state == RunState::Failed {
            format!("{word} {}", ago(self.passed(now)))
        } else {
            format!("{word} {}", lasting(self.passed(now)))
        };
        let state = format!("{since} {} {}", painter.glyphs.dot, self.run.position());
        out.push(RichLine::of(state, Role::Muted));
        if self.past.is_none() {
            out.extend(roomy.then(RichLine::default));
            let explains = [Seg::new(self.kind.explains(&self.run), Role::Text)];
            out.extend(wrap_to(&explains, width, if roomy { 6 } else { 3 }, painter.glyphs.ellipsis));
            let pause = self.pause().map(|pause| [Seg::new(pause, Role::Warning)]);
            out.extend(pause.iter().flat_map(|pause| wrap_to(pause, width, 3, painter.glyphs.ellipsis)));
        }
        out
    }

    fn press(&mut self, action: Action) -> Outcome {
        match action {
            Action::Back => Outcome::Close,
            Action::Execute => self.submit(),
            _ => Outcome::Stay,
        }
    }

    /// Handles arrows: a choice changes its selection, otherwise the focus moves.
    fn step(&mut self, forward: bool, across: bool) {
        if self.focus == Focus::Checkpoint
            && let Some(choice) = &mut self.fields.checkpoint
        {
            let before = choice.at;
            choice.turn(if forward { 1 } else { -1 });
            if choice.at != before || across {
                return;
            }
        }
        self.turn(forward);
    }

    fn in_form(&mut self, key: KeyEvent, action: Option<Action>) {
        match action {
            Some(Action::LeaveField | Action::Back) => {
                // The text is kept; the next Esc closes.
                self.fields.form.leave();
                self.focus = Focus::Button(0);
            }
            Some(action) => match self.fields.form.act(action) {
                FormOutcome::After => self.turn(true),
                FormOutcome::Before => self.turn(false),
                FormOutcome::Changed => self.check(),
                FormOutcome::Stayed | FormOutcome::Unknown => {}
            },
            None => {
                if self.fields.form.key(key) {
                    self.check();
                }
            }
        }
    }
}

impl Overlay for RunCommandDialog {
    fn in_text(&self) -> bool {
        self.focus == Focus::Form
    }

    fn contexts(&self) -> Vec<Context> {
        parts::contexts(self.in_text())
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        let across = matches!(key.code, KeyCode::Left | KeyCode::Right);
        match (action, self.focus) {
            (Some(Action::Execute), _) => return self.submit(),
            (action, Focus::Form) => self.in_form(key, action),
            (Some(Action::NextPart), _) if !across => self.turn(true),
            (Some(Action::PreviousPart), _) if !across => self.turn(false),
            (Some(Action::NextPart), _) => self.step(true, true),
            (Some(Action::PreviousPart), _) => self.step(false, true),
            (Some(Action::Up), _) => self.step(false, false),
            (Some(Action::Down), _) => self.step(true, false),
            (Some(Action::Open), Focus::Button(at)) => {
                let action = self.buttons().get(at).map(|button| button.action);
                return action.map_or(Outcome::Stay, |action| self.press(action));
            }
            (Some(Action::Open | Action::Mark), Focus::Despite) => {
                self.fields.despite = self.fields.despite.map(|flag| !flag);
            }
            (Some(Action::Open), Focus::Checkpoint) => self.turn(true),
            (Some(action), _) => return self.press(action),
            (None, _) => {}
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if self.in_text() && self.fields.form.paste(text) {
            self.check();
        }
        Outcome::Stay
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Run(RunResponse::CommandDone(ticket, _, Ok(_))) if *ticket == self.ticket => {
                self.done = true;
                Outcome::Close
            }
            Message::Run(RunResponse::CommandDone(ticket, _, Err(error))) if *ticket == self.ticket => {
                self.failed(error)
            }
            Message::Run(RunResponse::Detail(run, Ok(detail))) if *run == self.run.id => {
                self.news_of(&detail.run);
                Outcome::Stay
            }
            _ => Outcome::Stay,
        }
    }

    fn draft_effect(&self) -> Option<(PaneId, Effect)> {
        let (name, typed) = self.typed();
        Some((self.pane, Effect::Keep(name, typed)))
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        if self.in_text() {
            self.fields.form.wheel(rows > 0);
        } else {
            self.step(rows > 0, false);
        }
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        if let Some(index) = parts::button_at(&self.drawn.buttons, at) {
            let action = self.buttons().get(index).map(|button| button.action);
            return action.map_or(Outcome::Stay, |action| self.press(action));
        }
        if !self.open() {
            return Outcome::Stay;
        }
        if self.drawn.checkpoint.contains(at) {
            self.focus = Focus::Checkpoint;
        } else if self.drawn.despite.contains(at) {
            self.focus = Focus::Despite;
            self.fields.despite = self.fields.despite.map(|flag| !flag);
        } else if self.fields.form.click(at).is_some() {
            self.focus = Focus::Form;
            self.check();
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let mut out = vec![Hint::new(Action::NextPart, "next")];
        let closing = if self.kind == RunCommandKind::Cancel { "keep running" } else { "cancel" };
        match self.focus {
            Focus::Checkpoint => out.push(Hint::new(Action::Up, "choose")),
            Focus::Despite => out.push(Hint::new(Action::Mark, "toggle")),
            Focus::Form => {}
            Focus::Button(0) if self.open() => out.push(Hint::new(Action::Open, closing)),
            Focus::Button(0) => out.push(Hint::new(Action::Open, "close")),
            Focus::Button(_) => out.push(Hint::new(Action::Open, "select")),
        }
        if self.open() {
            out.push(Hint::new(Action::Execute, self.kind.labels(&self.run).1));
        }
        if self.in_text() {
            out.push(Hint::new(Action::NewLine, "new line"));
            out.push(Hint::new(Action::LeaveField, "leave field"));
        } else {
            out.push(Hint::new(Action::Back, closing));
        }
        out
    }

    fn help_items(&self) -> Vec<Hint> {
        parts::with_form_keys(self.hints())
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        let width = WIDTH.min(area.width);
        let inner = width.saturating_sub(6);
        let roomy = area.height >= 22;
        let air = u16::from(roomy);
        let head = self.head(inner, roomy, painter, now);
        let message = self.past.as_ref().or(self.message.as_ref());
        let message = message.map(|message| parts::message_lines(message, inner));
        let message_rows = message.as_ref().map_or(0, |lines| lines.len() as u16 + 1);
        let asks = self.past.is_none();
        let look = FormState {
            indent: 0,
            label: self.fields.form.label_width(0, inner / 3).max(LABEL.min(inner / 3)),
            roomy: false,
            focused: self.focus == Focus::Form,
        };
        let choice = u16::from(asks && self.fields.checkpoint.is_some());
        let despite = u16::from(asks && self.fields.despite.is_some());
        let fixed = head.len() as u16 + message_rows + choice + despite + 3 + 3 * air;
        let most = area.height.saturating_sub(fixed + 1).max(1);
        let form = if asks && !self.fields.form.is_empty() {
            self.fields.form_rows(inner, look).min(most)
        } else {
            0
        };
        let fields = choice + form + despite;
        let outer = centered(area, width, fixed + form + u16::from(fields > 0));
        let title = format!("{} {}", painter.glyphs.waiting, self.kind.title(&self.run));
        let inside = frame(outer, painter, &title, "", true);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let mut y = inside.y + air;
        for line in &head {
            painter.line(inside.x, y, line, inside.width);
            y += 1;
        }
        if let Some(lines) = message {
            y += u16::from(roomy && !asks);
            y += parts::warning(Rect { y, ..inside }, painter, &lines) + u16::from(asks);
        }
        y += u16::from(fields > 0);
        (self.drawn.checkpoint, self.drawn.despite) = (Rect::ZERO, Rect::ZERO);
        let row = |y: u16| Rect { y, height: 1, ..inside };
        if let Some(checkpoint) = self.fields.checkpoint.as_ref().filter(|_| asks) {
            let focused = self.focus == Focus::Checkpoint;
            line(row(y), look.label, "checkpoint", checkpoint.shown(), focused, painter);
            let turn = format!("{}{}", painter.glyphs.up, painter.glyphs.down);
            painter.right(inside.right().saturating_sub(1), y, &turn, Role::Muted);
            self.drawn.checkpoint = row(y);
            y += 1;
        }
        let mut cursor = None;
        if form > 0 {
            let area = Rect { y, height: form, ..inside };
            cursor = parts::form(&mut self.fields.form, area, look, painter, now);
            cursor = cursor.filter(|_| self.focus == Focus::Form);
            y += form;
        }
        if let Some(flag) = self.fields.despite.filter(|_| asks) {
            let sign = if flag { painter.glyphs.set } else { painter.glyphs.pending };
            let text = format!("{sign} use the contract of the launch");
            line(row(y), look.label, "contract", &text, self.focus == Focus::Despite, painter);
            self.drawn.despite = row(y);
        }
        let last = row(inside.bottom().saturating_sub(1 + air));
        let focused = if let Focus::Button(at) = self.focus { Some(at) } else { None };
        self.drawn.buttons = parts::buttons(last, painter, (&self.buttons(), &[Context::Dialog]), focused);
        cursor
    }
}

fn line(row: Rect, label_room: u16, label: &str, text: &str, focused: bool, painter: &mut Painter<'_>) {
    let band = Rect { x: row.x + label_room, width: row.width.saturating_sub(label_room), ..row };
    let role = if focused { Role::Strong } else { Role::Muted };
    painter.put(row.x, row.y, label, role, label_room.saturating_sub(1));
    painter.band(band, if focused { Role::Selection } else { Role::Field });
    if focused {
        painter.put(band.x, band.y, painter.glyphs.gutter, Role::Gutter, 1);
    }
    let text = cut_end(text, band.width.saturating_sub(6), painter.glyphs.ellipsis).into_owned();
    painter.put(band.x + 1, band.y, &text, if focused { Role::Strong } else { Role::Text }, band.width);
}
