//! The sheets with fields as an overlay: keys, clicks and the picture.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::choice::state_word;
use super::order::{Answer, Asked, Focus, OrderSheet};
use super::parts::{self, LABEL, Row};
use crate::tui::action::{Action, Context};
use crate::tui::overlay::{Hint, Outcome, Overlay, centred, frame};
use crate::tui::pane::Message;
use crate::tui::run_traffic::RunTold;
use crate::tui::theme::Role;
use crate::tui::widgets::measure::{cut_end, shown};
use crate::tui::widgets::pen::Pen;
use crate::tui::widgets::rich::{RichLine, Seg};
use crate::tui::widgets::wrap::wrap;

/// Width of the box where there is room.
const WIDTH: u16 = 72;

impl OrderSheet {
    fn answer(&mut self) -> Option<&mut Answer> {
        let Focus::Item(at) = self.focus else { return None };
        self.items.get_mut(at).map(|item| &mut item.answer)
    }

    fn press(&mut self, action: Action) -> Outcome {
        match action {
            Action::Back => Outcome::Close,
            Action::CarryOut => self.carry_out(),
            _ => Outcome::Stay,
        }
    }

    /// Up and down, left and right: a choice turns, everything else moves the focus.
    fn step(&mut self, by: isize, across: bool) {
        match self.answer() {
            Some(Answer::Choice(choice)) => {
                let before = choice.at;
                choice.turn(by);
                if choice.at == before && !across {
                    self.turn(by);
                }
            }
            _ => self.turn(by),
        }
    }

    fn row(&mut self, at: usize, row: Rect, pen: &mut Pen<'_>) -> Option<Position> {
        let focused = self.focus == Focus::Item(at);
        let item = &mut self.items[at];
        let label = match &item.asked {
            Asked::Checkpoint => "checkpoint".to_owned(),
            Asked::Name => "signal".to_owned(),
            Asked::Payload => "payload".to_owned(),
            Asked::Input(name) => cut_end(&shown(name), LABEL - 2, pen.glyphs.ellipsis).into_owned(),
            Asked::Despite => "despite".to_owned(),
        };
        match &mut item.answer {
            Answer::Text(field) => {
                let hint = if item.asked == Asked::Payload { "JSON, or nothing" } else { "" };
                let note = item.wrong.clone().unwrap_or_default();
                let show = Row { label: &label, hint, note: &note, wrong: true, focused };
                return parts::field(row, pen, field, &show);
            }
            Answer::Choice(choice) => {
                line(row, &label, choice.shown(), focused, pen);
                let (up, down) = (pen.glyphs.up, pen.glyphs.down);
                pen.right(row.right().saturating_sub(1), row.y, &format!("{up}{down}"), Role::Muted);
            }
            Answer::Flag(flag) => {
                let sign = if *flag { pen.glyphs.set } else { pen.glyphs.pending };
                let text = format!("{sign} go on with the contract as it was launched");
                line(row, &label, &text, focused, pen);
            }
        }
        None
    }
}

fn line(row: Rect, label: &str, text: &str, focused: bool, pen: &mut Pen<'_>) {
    let room = LABEL.min(row.width / 3);
    let band = Rect { x: row.x + room, width: row.width.saturating_sub(room), ..row };
    let role = if focused { Role::Strong } else { Role::Muted };
    pen.put(row.x, row.y, label, role, room.saturating_sub(1));
    pen.band(band, if focused { Role::Selection } else { Role::Field });
    if focused {
        pen.put(band.x, band.y, pen.glyphs.gutter, Role::Gutter, 1);
    }
    let text = cut_end(text, band.width.saturating_sub(6), pen.glyphs.ellipsis).into_owned();
    pen.put(band.x + 1, band.y, &text, if focused { Role::Strong } else { Role::Text }, band.width);
}

impl Overlay for OrderSheet {
    fn in_text(&self) -> bool {
        let Focus::Item(at) = self.focus else { return false };
        matches!(self.items.get(at).map(|item| &item.answer), Some(Answer::Text(_)))
    }

    fn contexts(&self) -> Vec<Context> {
        vec![Context::Sheet]
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        let across = matches!(key.code, KeyCode::Left | KeyCode::Right);
        match action {
            Some(Action::NextPart) if !across => self.turn(1),
            Some(Action::PreviousPart) if !across => self.turn(-1),
            Some(Action::NextPart) => self.step(1, true),
            Some(Action::PreviousPart) => self.step(-1, true),
            Some(Action::Up) => self.step(-1, false),
            Some(Action::Down) => self.step(1, false),
            Some(Action::Back) if self.in_text() => {
                // The text stays; the next Esc closes.
                self.focus = Focus::Button(0);
            }
            Some(Action::Open | Action::Mark) => match self.focus {
                Focus::Button(at) if action == Some(Action::Open) => {
                    let action = self.buttons().get(at).map(|button| button.action);
                    return action.map_or(Outcome::Stay, |action| self.press(action));
                }
                Focus::Item(_) => match self.answer() {
                    Some(Answer::Flag(flag)) => *flag = !*flag,
                    _ => self.turn(1),
                },
                Focus::Button(_) => {}
            },
            Some(action) => return self.press(action),
            None => {
                if let Some(Answer::Text(field)) = self.answer()
                    && field.key(key)
                {
                    self.check();
                }
            }
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if let Some(Answer::Text(field)) = self.answer()
            && field.paste(text)
        {
            self.check();
        }
        Outcome::Stay
    }

    fn told(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Run(RunTold::Ordered(ticket, _, Ok(_))) if *ticket == self.ticket => Outcome::Close,
            Message::Run(RunTold::Ordered(ticket, _, Err(error))) if *ticket == self.ticket => {
                self.failed(error)
            }
            _ => Outcome::Stay,
        }
    }

    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.step(-1, false),
            MouseEventKind::ScrollDown => self.step(1, false),
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(index) = self.pressed.iter().position(|rect| rect.contains(at)) {
                    let action = self.buttons().get(index).map(|button| button.action);
                    return action.map_or(Outcome::Stay, |action| self.press(action));
                }
                let row = self.rows.iter().find(|(rect, _)| rect.contains(at)).map(|(_, index)| *index);
                if let Some(index) = row {
                    self.focus = Focus::Item(index);
                    match self.answer() {
                        Some(Answer::Text(field)) => {
                            field.click(at);
                        }
                        Some(Answer::Flag(flag)) => *flag = !*flag,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let mut out = vec![Hint { action: Action::NextPart, label: "move" }];
        match self.focus {
            Focus::Item(at) => match self.items.get(at).map(|item| &item.answer) {
                Some(Answer::Choice(_)) => out.push(Hint { action: Action::Up, label: "choose" }),
                Some(Answer::Flag(_)) => out.push(Hint { action: Action::Mark, label: "turn" }),
                _ => out.push(Hint { action: Action::Open, label: "next" }),
            },
            Focus::Button(0) => out.push(Hint { action: Action::Open, label: "not now" }),
            Focus::Button(_) => out.push(Hint { action: Action::Open, label: "press" }),
        }
        out.push(Hint { action: Action::CarryOut, label: "carry out" });
        let leave = if self.in_text() { "leave the field" } else { "nothing is done" };
        out.push(Hint { action: Action::Back, label: leave });
        out
    }

    fn draw(&mut self, area: Rect, pen: &mut Pen<'_>, now: Instant) -> Option<Position> {
        let width = WIDTH.min(area.width);
        let inner = width.saturating_sub(6);
        let roomy = area.height >= 22;
        let mut head: Vec<RichLine> = vec![RichLine::from_segs(vec![
            Seg::new(shown(&self.run.skill_id), Role::Strong),
            Seg::new(format!(" {}", shown(&self.run.id.0)), Role::Muted),
        ])];
        let (through, all) = self.run.progress;
        let state = format!(
            "{} for {} {} step {} of {all}",
            state_word(self.run.state),
            self.note(now),
            pen.glyphs.dot,
            (through + 1).min(all)
        );
        head.push(RichLine::of(state, Role::Muted));
        if roomy {
            head.push(RichLine::default());
        }
        let explains = wrap(&[Seg::new(self.explains(), Role::Text)], inner);
        head.extend(explains.into_iter().map(RichLine::from_segs));
        let said = self.said.clone().map(|said| {
            let lines = wrap(&[Seg::new(said, Role::Text)], inner.saturating_sub(2));
            lines.into_iter().map(|segs| RichLine::from_segs(segs).plain()).collect::<Vec<_>>()
        });
        let said_rows = said.as_ref().map_or(0, |lines| lines.len() as u16 + 1);
        let air = u16::from(roomy);
        let fixed = head.len() as u16 + said_rows + 2 + 3 * air + 1;
        let most = area.height.saturating_sub(fixed);
        let shown_items = (self.items.len() as u16).min(most.max(1));
        let outer = centred(area, width, fixed + shown_items + u16::from(!self.items.is_empty()));
        let title = format!("{} {}", pen.glyphs.waiting, self.title());
        let inside = frame(outer, pen, &title, "", true);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let mut y = inside.y + air;
        for line in &head {
            pen.line(inside.x, y, line, inside.width);
            y += 1;
        }
        if let Some(lines) = said {
            y += parts::warning(Rect { y, ..inside }, pen, &lines) + 1;
        }
        y += u16::from(!self.items.is_empty() && roomy);
        if let Focus::Item(at) = self.focus {
            self.scroll.cursor = at;
        }
        self.scroll.follow(self.items.len(), usize::from(shown_items));
        self.rows.clear();
        let mut cursor = None;
        for at in (0..self.items.len()).skip(self.scroll.offset).take(usize::from(shown_items)) {
            let row = Rect { y, height: 1, ..inside };
            cursor = self.row(at, row, pen).or(cursor);
            self.rows.push((row, at));
            y += 1;
        }
        let row = Rect { y: inside.bottom().saturating_sub(1 + air), height: 1, ..inside };
        let focused = if let Focus::Button(at) = self.focus { Some(at) } else { None };
        self.pressed = parts::buttons(row, pen, &self.buttons(), focused);
        cursor
    }
}
