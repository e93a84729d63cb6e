//! The launch dialog: the inputs of the skill's contract, the approvals that it requires, and a button.

use std::sync::Arc;
use std::time::Instant;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use super::parts::{self, Button, LABEL};
use crate::action::{Action, Context};
use crate::form::{Form, FormOutcome, FormState};
use crate::overlay::{Hint, Outcome, Overlay, centered, frame};
use crate::pane::{Draw, Effect, Message, PaneId};
use crate::run_requests::{RunRequest, RunResponse};
use crate::theme::Role;
use crate::widgets::format::counted;
use crate::widgets::painter::Painter;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::text_width::shown;
use crate::widgets::wrap::{wrap, wrap_to};
use skills_api::{ConnectionState, ContractView, Event, LaunchRequest};

/// Width of the dialog if there is enough space.
const WIDTH: u16 = 78;

/// Message if the connection is lost after the launch was sent.
const LOST: &str = "Sent, but the connection was lost before the response. It is retried within 2 m with \
    the same idempotency key, so that only one run is created.";

/// Message if the contract was edited while the dialog was open.
const EDITED: &str = "The contract was edited meanwhile: review its inputs and approvals.";

pub(super) struct LaunchDialog {
    pane: PaneId,
    view: Arc<ContractView>,
    ticket: u64,
    form: Form,
    /// The focused button; `None` while the form has the focus.
    button: Option<usize>,
    sent: bool,
    /// Whether the core is reachable.
    connected: bool,
    done: bool,
    said: Option<String>,
    pressed: Vec<Rect>,
    /// Rows of the form at a width: while the dialog is open it grows, but does not shrink.
    rows: (u16, u16),
}

impl LaunchDialog {
    pub(super) fn new(pane: PaneId, view: Arc<ContractView>, ticket: u64) -> Self {
        let form = Form::new(&view.contract.inputs, &Map::new());
        let button = form.is_empty().then_some(0);
        let (sent, connected, done, said) = (false, true, false, None);
        Self {
            pane,
            view,
            ticket,
            form,
            button,
            sent,
            connected,
            done,
            said,
            pressed: Vec::new(),
            rows: (0, 0),
        }
    }

    /// Restores a draft.
    pub(super) fn retyped(mut self, typed: &Map<String, Value>) -> Self {
        self.form.retype(typed);
        self
    }

    fn buttons(&self) -> Vec<Button> {
        if self.sent || self.view.blocked.is_some() {
            return vec![Button::new(Action::Back, "Close", "Esc")];
        }
        vec![Button::new(Action::Back, "Cancel", "Esc"), Button::new(Action::Execute, "Launch", "^S")]
    }

    fn press(&mut self, action: Action) -> Outcome {
        match action {
            Action::Back => Outcome::Close,
            Action::Execute => self.launch(),
            _ => Outcome::Stay,
        }
    }

    /// Sends the launch, once.
    fn launch(&mut self) -> Outcome {
        if self.sent || self.view.blocked.is_some() {
            return Outcome::Stay;
        }
        if !self.form.check() {
            self.button = None;
            return Outcome::Stay;
        }
        let Ok(inputs) = self.form.values() else { return Outcome::Stay };
        (self.sent, self.said, self.button) = (true, None, Some(0));
        let skill = self.view.skill_id.to_string();
        let request = Box::new(LaunchRequest { skill, inputs, ..LaunchRequest::default() });
        Outcome::Request(self.pane, vec![Effect::Run(RunRequest::Launch { request, ticket: self.ticket })])
    }

    /// Updates the contract; entered values are kept for fields that remain.
    fn update_contract(&mut self, view: &Arc<ContractView>) {
        if self.sent || self.view == *view {
            return;
        }
        let (edited, before) = (self.view.digest != view.digest, self.view.blocked.is_some());
        if self.view.contract.inputs != view.contract.inputs {
            let typed = self.form.typed();
            self.form = Form::new(&view.contract.inputs, &Map::new());
            self.form.retype(&typed);
        }
        self.view = Arc::clone(view);
        if edited || before != view.blocked.is_some() {
            self.button = (self.form.is_empty() || view.blocked.is_some()).then_some(0);
        }
        if edited {
            self.said = Some(EDITED.to_owned());
        }
    }

    /// Returns a message about the launch, and whether it is a problem.
    fn status_line(&self) -> Option<(String, bool)> {
        let message = self.view.blocked.clone().or_else(|| self.said.clone());
        match (message, self.sent, self.connected) {
            (Some(message), ..) => Some((message, true)),
            (None, true, true) => Some(("Sent; waiting for the response.".to_owned(), false)),
            (None, true, false) => Some((LOST.to_owned(), true)),
            (None, false, _) => None,
        }
    }

    fn turn(&mut self, forward: bool) {
        let last = self.buttons().len() - 1;
        match (self.button, forward) {
            (Some(at), true) if at < last => self.button = Some(at + 1),
            (Some(at), false) if at > 0 => self.button = Some(at - 1),
            (Some(_), _) if self.form.is_empty() => self.button = Some(if forward { 0 } else { last }),
            (Some(_), true) => {
                self.button = None;
                self.form.first();
            }
            (Some(_), false) => {
                self.button = None;
                self.form.last();
            }
            (None, _) => {}
        }
    }

    /// Returns the skill, the required approvals and the sandbox of its scripts; in few rows if space is short.
    fn head(&self, width: u16, roomy: bool, painter: &Painter<'_>) -> Vec<RichLine> {
        let contract = &self.view.contract;
        let mut out = vec![RichLine::from_segs(vec![
            Seg::new(shown(self.view.skill_id.as_str()), Role::Strong),
            Seg::new(
                format!(
                    "  {} {} {}",
                    shown(&contract.version),
                    painter.glyphs.dot,
                    counted(self.view.steps.len(), "step")
                ),
                Role::Muted,
            ),
        ])];
        let mut row = |label: &str, text: &str, role: Role| {
            let available = width.saturating_sub(LABEL);
            let segs = [Seg::new(shown(text), role)];
            for (at, line) in wrap_to(&segs, available, if roomy { 2 } else { 1 }, painter.glyphs.ellipsis)
                .into_iter()
                .enumerate()
            {
                let head = if at == 0 { label } else { "" };
                let mut segs =
                    vec![Seg::new(format!("{head:<width$}", width = usize::from(LABEL)), Role::Muted)];
                segs.extend(line.segs);
                out.push(RichLine::from_segs(segs));
            }
        };
        let mut asking = self.view.steps.iter().filter(|step| !step.gates.is_empty());
        for step in asking.by_ref().take(if roomy { 3 } else { 1 }) {
            row("approval", &format!("before {}: {}", step.id, step.gates.join("; ")), Role::Waiting);
        }
        let more = asking.count();
        if more > 0 {
            row("", &format!("and before {}", counted(more, "more step")), Role::Waiting);
        }
        let unasked: Vec<&str> = (self.view.steps.iter())
            .filter(|step| step.acts && step.gates.is_empty())
            .map(|step| step.id.as_str())
            .collect();
        if !unasked.is_empty() {
            let change = if unasked.len() == 1 { "changes" } else { "change" };
            row("no approval", &format!("{} {change} external state", unasked.join(", ")), Role::Warning);
        }
        row("isolation", &self.view.isolation, Role::Text);
        out
    }
}

impl Overlay for LaunchDialog {
    fn in_text(&self) -> bool {
        self.button.is_none()
    }

    fn contexts(&self) -> Vec<Context> {
        if self.button.is_none() {
            vec![Context::Form, Context::Field, Context::Dialog]
        } else {
            vec![Context::Dialog]
        }
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        match (action, self.button) {
            (Some(Action::Execute), _) => return self.launch(),
            (Some(Action::LeaveField | Action::Back), None) => {
                self.form.leave();
                self.button = Some(0);
            }
            (Some(action), None) => match self.form.act(action) {
                FormOutcome::After => self.button = Some(self.buttons().len() - 1),
                FormOutcome::Before => self.button = Some(0),
                _ => {}
            },
            (None, None) => {
                self.form.key(key);
            }
            (Some(Action::NextPart | Action::Down), Some(_)) => self.turn(true),
            (Some(Action::PreviousPart | Action::Up), Some(_)) => self.turn(false),
            (Some(Action::Open), Some(at)) => {
                let action = self.buttons().get(at).map(|button| button.action);
                return action.map_or(Outcome::Stay, |action| self.press(action));
            }
            (Some(action), Some(_)) => return self.press(action),
            (None, Some(_)) => {}
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if self.button.is_none() {
            self.form.paste(text);
        }
        Outcome::Stay
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Run(RunResponse::Launched(ticket, answer)) if *ticket == self.ticket => match answer {
                Ok(_) => {
                    self.done = true;
                    Outcome::Close
                }
                Err(error) => {
                    self.sent = false;
                    self.said = Some(shown(&error.message));
                    Outcome::Handled
                }
            },
            // Reload the contract: what may run, and its inputs, may have changed.
            Message::Event(Event::Catalog(_)) | Message::Catalog(_) if !self.sent => {
                let request = RunRequest::Contract(self.view.skill_id.to_string());
                Outcome::HandledWith(self.pane, vec![Effect::Run(request)])
            }
            Message::Run(RunResponse::Contract(skill, Ok(view)))
                if *skill == *self.view.skill_id.as_str() =>
            {
                self.update_contract(view);
                Outcome::Handled
            }
            Message::Event(Event::Connection(state)) => {
                self.connected = !matches!(state, ConnectionState::Lost { .. });
                Outcome::Stay
            }
            _ => Outcome::Stay,
        }
    }

    fn draft_effect(&self) -> Option<(PaneId, Effect)> {
        let typed = if self.done { Map::new() } else { self.form.typed() };
        Some((self.pane, Effect::Keep(super::name_of_launch(self.view.skill_id.as_str()), typed)))
    }

    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.form.wheel(false),
            MouseEventKind::ScrollDown => self.form.wheel(true),
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(index) = self.pressed.iter().position(|rect| rect.contains(at)) {
                    let action = self.buttons().get(index).map(|button| button.action);
                    return action.map_or(Outcome::Stay, |action| self.press(action));
                }
                if self.form.click(at).is_some() {
                    self.button = None;
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        if self.sent {
            // Closing does not withdraw the launch.
            return vec![Hint { action: Action::Back, label: "close" }];
        }
        let mut out = vec![Hint { action: Action::NextPart, label: "next" }];
        if self.button.is_some() {
            out.push(Hint { action: Action::Open, label: "select" });
        }
        if self.view.blocked.is_none() {
            out.push(Hint { action: Action::Execute, label: "launch" });
        }
        if self.button.is_some() {
            out.push(Hint { action: Action::Back, label: "cancel" });
        } else {
            out.push(Hint { action: Action::LeaveField, label: "leave field" });
        }
        out
    }

    fn help_items(&self) -> Vec<Hint> {
        parts::with_form_keys(self.hints())
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        let width = WIDTH.min(area.width);
        let inner = width.saturating_sub(6);
        let roomy = area.height >= 26;
        let air = u16::from(roomy);
        let head = self.head(inner, roomy, painter);
        let look = FormState {
            indent: 0,
            label: self.form.label_width(0, inner / 3),
            roomy,
            focused: self.button.is_none(),
        };
        let said = self.status_line().map(|(said, bad)| {
            let lines = wrap(&[Seg::new(shown(&said), Role::Text)], inner.saturating_sub(2));
            (lines.into_iter().map(|segs| RichLine::from_segs(segs).plain_text()).collect::<Vec<_>>(), bad)
        });
        let said_rows = said.as_ref().map_or(0, |(lines, _)| lines.len() as u16 + 1);
        let fixed = head.len() as u16 + said_rows + 5 + 2 * air;
        let before = if self.rows.0 == inner { self.rows.1 } else { 1 };
        self.rows = (inner, self.form.required_height(inner, look).max(before));
        let wanted = self.rows.1;
        let rows = wanted.min(area.height.saturating_sub(fixed)).max(1);
        let outer = centered(area, width, fixed + rows);
        let inside = frame(outer, painter, "Launch a run", "", false);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let mut y = inside.y + air;
        for line in &head {
            painter.line(inside.x, y, line, inside.width);
            y += 1;
        }
        y += 1;
        if let Some((lines, bad)) = said {
            if bad {
                y += parts::warning(Rect { y, ..inside }, painter, &lines) + 1;
            } else {
                for line in &lines {
                    painter.put(inside.x, y, line, Role::Muted, inside.width);
                    y += 1;
                }
                y += 1;
            }
        }
        let mut cx = Draw {
            theme: painter.theme,
            glyphs: painter.glyphs,
            now,
            clock_ms: 0,
            focused: true,
            full_screen: false,
            split: 0,
            cursor: None,
        };
        if self.form.is_empty() {
            painter.put(inside.x, y, "it has no inputs", Role::Muted, inside.width);
        } else {
            self.form.draw(Rect { y, height: rows, ..inside }, look, painter.buf, &mut cx);
        }
        let row = Rect { y: inside.bottom().saturating_sub(1 + air), height: 1, ..inside };
        self.pressed = parts::buttons(row, painter, &self.buttons(), self.button);
        cx.cursor.filter(|_| self.button.is_none())
    }
}
