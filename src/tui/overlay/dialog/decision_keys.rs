//! The decision dialog as an overlay: keys, clicks, pasted text, and messages while it is open.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::decision::{Decision, Focus};
use super::parts;
use crate::action::{Action, Context};
use crate::overlay::{Hint, Outcome, Overlay};
use crate::pane::{Effect, Message, PaneId};
use crate::run_requests::RunResponse;
use crate::widgets::painter::Painter;
use skills_api::Event;

/// A repeat of the key that opened the dialog is ignored as held down within this time.
pub(super) const KEY_REPEAT_TIMEOUT: Duration = Duration::from_secs(1);

impl Decision {
    /// Returns whether a key begins a text: a letter that is bound to no button or action. The capitals of decisions
    /// never do, so that a decision cannot become text by mistake, nor does the key that opened the dialog while it is
    /// held down.
    fn begins_text(&mut self, key: KeyEvent, action: Option<Action>) -> bool {
        let KeyCode::Char(letter) = key.code else { return false };
        let decides = matches!(
            action,
            Some(
                Action::ApproveNow
                    | Action::DenyNow
                    | Action::RunAgain
                    | Action::ItHappened
                    | Action::SkipStep
                    | Action::FailStep
                    | Action::Copy
                    | Action::Mark
            )
        );
        let is_unmodified = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if self.in_text() || decides || !is_unmodified || !letter.is_alphanumeric() || !self.takes_text() {
            return false;
        }
        if matches!(letter, 'a' | 'd') && self.now < self.ignore_repeats_until {
            self.ignore_repeats_until = self.now + KEY_REPEAT_TIMEOUT;
            return false;
        }
        true
    }
}

impl Decision {
    /// Returns the keys of the buttons that decide.
    fn button_hints(&self) -> Vec<Hint> {
        let label = |action| match action {
            Action::DenyNow => "deny",
            Action::ApproveNow => "approve",
            Action::RunAgain => "run again",
            Action::ItHappened => "mark completed",
            Action::SkipStep => "skip",
            _ => "fail",
        };
        let buttons = self.buttons();
        let decides = buttons.iter().filter(|button| button.action != Action::Back);
        decides.map(|button| Hint { action: button.action, label: label(button.action) }).collect()
    }

    /// Returns the keys that help shows in every focus.
    fn command_hints(&self) -> Vec<Hint> {
        let mut out = self.button_hints();
        if self.waiting.len() > 1 {
            out.push(Hint { action: Action::Mark, label: "select" });
        }
        out.extend([
            Hint { action: Action::PageDown, label: "scroll" },
            Hint { action: Action::Copy, label: "copy inputs" },
            Hint { action: Action::Back, label: "cancel" },
        ]);
        out
    }
}

impl Overlay for Decision {
    fn in_text(&self) -> bool {
        matches!(self.focus, Focus::Approver | Focus::Notes)
    }

    fn contexts(&self) -> Vec<Context> {
        if self.focus == Focus::Notes { vec![Context::Form, Context::Dialog] } else { vec![Context::Dialog] }
    }

    fn at(&mut self, now: Instant) {
        self.now = now;
    }

    fn draft_effect(&self) -> Option<(PaneId, Effect)> {
        let name = super::name_of_decision(&self.waiting.first()?.sheet.run);
        Some((self.pane, Effect::Keep(name, self.typed())))
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        if self.begins_text(key, action) {
            self.focus = Focus::Notes;
            self.notes.key(key);
            return Outcome::Stay;
        }
        match action {
            Some(Action::NextPart) => self.turn(1),
            Some(Action::PreviousPart) => self.turn(-1),
            Some(Action::Back) if self.in_text() => self.focus = Focus::Button(0),
            Some(Action::NewLine) => {
                self.notes.insert("\n");
            }
            Some(action @ (Action::Up | Action::Down))
                if self.focus == Focus::Notes && self.notes.by_row(action == Action::Down) => {}
            Some(Action::Open) => match self.focus {
                Focus::Button(at) => {
                    let action = self.buttons().get(at).map(|button| button.action);
                    return action.map_or(Outcome::Stay, |action| self.press(action));
                }
                Focus::Together => self.mark(self.at),
                Focus::Approver | Focus::Notes => self.turn(1),
            },
            Some(Action::Mark) if self.waiting.len() > 1 && !self.in_text() => self.mark(self.at),
            Some(Action::Copy) => {
                let text = serde_json::to_string_pretty(&self.shown_one().inputs).unwrap_or_default();
                return Outcome::Request(self.pane, vec![Effect::Copy(text, "the inputs".to_owned())]);
            }
            Some(action @ (Action::Up | Action::Down | Action::PageUp | Action::PageDown)) => {
                self.moved(action);
            }
            Some(action) => return self.press(action),
            None => {
                match self.focus {
                    Focus::Approver => self.approver.key(key),
                    Focus::Notes => self.notes.key(key),
                    _ => false,
                };
            }
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if self.focus == Focus::Approver {
            self.approver.paste(text);
        } else if self.takes_text() {
            self.focus = Focus::Notes;
            self.notes.insert(text.trim_end_matches(['\r', '\n']));
        }
        Outcome::Stay
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Run(RunResponse::Ordered(ticket, run, answer)) if *ticket == self.ticket => {
                self.answered(run, answer.as_deref())
            }
            Message::Run(RunResponse::Detail(_, Ok(detail))) => {
                self.news_of(detail);
                Outcome::Stay
            }
            Message::Event(Event::Replaced) => {
                self.gone();
                Outcome::Stay
            }
            _ => Outcome::Stay,
        }
    }

    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.body.offset = self.body.offset.saturating_sub(3),
            MouseEventKind::ScrollDown => self.body.offset = (self.body.offset + 3).min(10_000),
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(index) = self.drawn.buttons.iter().position(|rect| rect.contains(at)) {
                    let action = self.buttons().get(index).map(|button| button.action);
                    return action.map_or(Outcome::Stay, |action| self.press(action));
                }
                let row = self.drawn.together.iter().find(|(rect, _)| rect.contains(at));
                if let Some(index) = row.map(|(_, index)| *index) {
                    // A second click on the row that is shown selects it.
                    if self.focus == Focus::Together && self.at == index {
                        self.mark(index);
                    }
                    self.focus = Focus::Together;
                    self.choose(index);
                } else if self.drawn.approver.contains(at) {
                    self.focus = Focus::Approver;
                    self.approver.click(at);
                } else if self.drawn.notes.contains(at) {
                    self.focus = Focus::Notes;
                    self.notes.click(at);
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let mut out = vec![Hint { action: Action::NextPart, label: "move" }];
        if self.in_text() {
            out.push(Hint { action: Action::Open, label: "next" });
            if self.focus == Focus::Notes {
                out.push(Hint { action: Action::NewLine, label: "new line" });
            }
            out.push(Hint { action: Action::Back, label: "leave the field" });
            return out;
        }
        if self.sending() {
            // Closing does not withdraw a decision.
            return vec![
                Hint { action: Action::Back, label: "close" },
                Hint { action: Action::Up, label: "scroll" },
            ];
        }
        match self.focus {
            Focus::Together => out.push(Hint { action: Action::Mark, label: "select" }),
            Focus::Button(0) => out.push(Hint { action: Action::Open, label: "cancel" }),
            _ => out.push(Hint { action: Action::Open, label: "select" }),
        }
        let several = self.waiting.len() > 1;
        if several && self.focus != Focus::Together {
            out.push(Hint { action: Action::Mark, label: "select" });
        }
        out.extend(self.button_hints());
        if several {
            out.push(Hint { action: Action::Up, label: "run" });
            out.push(Hint { action: Action::PageDown, label: "scroll" });
        } else {
            out.push(Hint { action: Action::Up, label: "scroll" });
        }
        out.push(Hint { action: Action::Copy, label: "copy inputs" });
        out.push(Hint { action: Action::Back, label: "cancel" });
        out
    }

    fn help_items(&self) -> Vec<Hint> {
        let mut out = parts::with_form_keys(self.hints());
        if !self.sending() {
            out.extend(self.command_hints());
        }
        out
    }

    fn changes_in(&self, now: Instant) -> Option<u64> {
        self.words_hold(now)
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        self.let_expire(now);
        self.view(area, painter, now)
    }
}
