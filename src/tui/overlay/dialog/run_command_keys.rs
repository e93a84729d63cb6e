//! The dialogs with fields as an overlay: keys, clicks, and messages while they are open.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::parts;
use super::run_command::{Focus, RunCommandDialog};
use crate::action::{Action, Context};
use crate::form::FormOutcome;
use crate::overlay::{Hint, Outcome, Overlay};
use crate::pane::{Effect, Message, PaneId};
use crate::run_requests::RunResponse;
use crate::widgets::painter::Painter;

impl RunCommandDialog {
    fn press(&mut self, action: Action) -> Outcome {
        match action {
            Action::Back => Outcome::Close,
            Action::CarryOut => self.submit(),
            _ => Outcome::Stay,
        }
    }

    /// Handles arrows: a choice changes its selection, otherwise the focus moves.
    fn step(&mut self, forward: bool, across: bool) {
        if self.focus == Focus::Checkpoint
            && let Some(choice) = &mut self.checkpoint
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
                self.form.leave();
                self.focus = Focus::Button(0);
            }
            Some(action) => match self.form.act(action) {
                FormOutcome::After => self.turn(true),
                FormOutcome::Before => self.turn(false),
                FormOutcome::Changed => self.check(),
                FormOutcome::Stayed | FormOutcome::Unknown => {}
            },
            None => {
                if self.form.key(key) {
                    self.check();
                }
            }
        }
    }

    fn clicked(&mut self, at: Position) -> Outcome {
        if let Some(index) = self.drawn.buttons.iter().position(|rect| rect.contains(at)) {
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
            self.despite = self.despite.map(|flag| !flag);
        } else if self.form.click(at).is_some() {
            self.focus = Focus::Form;
            self.check();
        }
        Outcome::Stay
    }
}

impl Overlay for RunCommandDialog {
    fn in_text(&self) -> bool {
        self.focus == Focus::Form
    }

    fn contexts(&self) -> Vec<Context> {
        if self.in_text() {
            vec![Context::Form, Context::Field, Context::Dialog]
        } else {
            vec![Context::Dialog]
        }
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        let across = matches!(key.code, KeyCode::Left | KeyCode::Right);
        match (action, self.focus) {
            (Some(Action::CarryOut), _) => return self.submit(),
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
                self.despite = self.despite.map(|flag| !flag);
            }
            (Some(Action::Open), Focus::Checkpoint) => self.turn(true),
            (Some(action), _) => return self.press(action),
            (None, _) => {}
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if self.in_text() && self.form.paste(text) {
            self.check();
        }
        Outcome::Stay
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Run(RunResponse::Ordered(ticket, _, Ok(_))) if *ticket == self.ticket => self.through(),
            Message::Run(RunResponse::Ordered(ticket, _, Err(error))) if *ticket == self.ticket => {
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

    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp if self.in_text() => self.form.wheel(false),
            MouseEventKind::ScrollDown if self.in_text() => self.form.wheel(true),
            MouseEventKind::ScrollUp => self.step(false, false),
            MouseEventKind::ScrollDown => self.step(true, false),
            MouseEventKind::Down(MouseButton::Left) => return self.clicked(at),
            _ => {}
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let mut out = vec![Hint { action: Action::NextPart, label: "next" }];
        let closing = if self.kind == super::RunCommandKind::Cancel { "keep running" } else { "cancel" };
        match self.focus {
            Focus::Checkpoint => out.push(Hint { action: Action::Up, label: "choose" }),
            Focus::Despite => out.push(Hint { action: Action::Mark, label: "toggle" }),
            Focus::Form => {}
            Focus::Button(0) if self.open() => out.push(Hint { action: Action::Open, label: closing }),
            Focus::Button(0) => out.push(Hint { action: Action::Open, label: "close" }),
            Focus::Button(_) => out.push(Hint { action: Action::Open, label: "select" }),
        }
        if self.open() {
            out.push(Hint { action: Action::CarryOut, label: self.labels().1 });
        }
        if self.in_text() {
            out.push(Hint { action: Action::NewLine, label: "new line" });
            out.push(Hint { action: Action::LeaveField, label: "leave the field" });
        } else {
            out.push(Hint { action: Action::Back, label: closing });
        }
        out
    }

    fn help_items(&self) -> Vec<Hint> {
        parts::with_form_keys(self.hints())
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        self.view(area, painter, now)
    }
}
