//! Overlays over a pane: palette, help, choosers, log, confirmations. One at a time; it receives all keys.

mod chooser;
mod clients;
mod dialog;
mod draft;
mod draft_report;
mod help;
mod log;
mod palette;
mod question;
mod reader;

use std::time::Instant;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::action::{Action, Context};
use super::pane::{Effect, Message, PaneId, PickerKind, WHEEL_ROWS};
use super::theme::Role;
use crate::widgets::text_width::TextWidth as _;
use crate::widgets::{Painter, cells, cut_end};
pub use chooser::Chooser;
pub use clients::ClientsView;
pub use dialog::{
    DialogSpec, EXPORT_DRAFT_KEY, PromptKind, ProposalCommand, RunCommandKind, decision_draft_key,
    name_of_launch, name_of_run_command, name_of_script,
};
pub use draft::{DescriptionEdit, DraftEditor};
pub use help::{Help, Section};
pub use log::LogView;
pub use palette::{Entry, Palette, SkillEntry};
pub use question::Question;
pub use reader::{Passage, Reader, Reading, ScoreBar};
use skills_skill::SkillId;

/// What a chooser selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A choice requested by a pane.
    Pane(PaneId, PickerKind),
    Theme,
}

/// The outcome of a key or click.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The overlay stays and is redrawn.
    Stay,
    /// Like [`Self::Stay`], and the message is not delivered to the pane.
    Handled,
    /// Like [`Self::Handled`], and these effects are run for a pane.
    HandledWith(PaneId, Vec<Effect>),
    /// The overlay closes; nothing else happens.
    Close,
    /// The overlay closes, and this action is executed.
    Do(Action),
    /// The overlay stays, and these effects are run for a pane.
    Request(PaneId, Vec<Effect>),
    /// The overlay closes, and this skill is opened.
    OpenSkill(SkillId),
    /// The overlay closes, and these effects are run for a pane.
    Done(PaneId, Vec<Effect>),
    /// The overlay closes with this value.
    Chosen(Purpose, String),
    /// The cursor is on this value, whose effect is previewed.
    Hovered(Purpose, String),
    /// Quit the workbench.
    Quit,
}

/// A key in an overlay's footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    /// The action whose key is shown.
    pub action: Action,
    /// What it does here.
    pub label: &'static str,
}

impl Hint {
    pub const fn new(action: Action, label: &'static str) -> Self {
        Self { action, label }
    }
}

/// An overlay over a pane.
pub trait Overlay {
    /// Returns whether a text field in it has the focus.
    fn in_text(&self) -> bool;
    /// Returns whether letters begin a text, although no text field has the focus.
    fn letters_begin_text(&self) -> bool {
        false
    }
    /// Handles a key, given the action that the keymap binds to it.
    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome;
    /// Returns the contexts for key look-up, innermost first.
    fn contexts(&self) -> Vec<Context> {
        vec![Context::Overlay]
    }
    /// Handles a message for the pane under this overlay, before the pane does.
    fn on_message(&mut self, _message: &Message) -> Outcome {
        Outcome::Stay
    }
    /// Returns whether it is the confirmation to quit, which is updated before each frame with what would be lost.
    fn asks_to_leave(&self) -> bool {
        false
    }
    /// Returns whether it is the help, which has no help itself.
    fn is_help(&self) -> bool {
        false
    }
    /// Sets what would currently be lost.
    fn set_unsaved(&mut self, _lost: Option<String>) {}
    /// Sets the time of the next key.
    fn at(&mut self, _now: Instant) {}
    /// Returns the effect to run when it closes for any reason: entered text that was not submitted is kept.
    fn draft_effect(&self) -> Option<(PaneId, Effect)> {
        None
    }
    /// Describes in a sentence what would be lost with it: entered text that no pane keeps.
    fn unsaved(&self) -> Option<String> {
        None
    }
    /// Handles the passage of time.
    fn tick(&mut self, _now: Instant) -> Outcome {
        Outcome::Stay
    }
    fn paste(&mut self, _text: &str) -> Outcome {
        Outcome::Stay
    }
    /// Handles the mouse.
    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        match event.kind {
            MouseEventKind::ScrollUp => self.wheel(-WHEEL_ROWS),
            MouseEventKind::ScrollDown => self.wheel(WHEEL_ROWS),
            MouseEventKind::Down(MouseButton::Left) => self.click(Position::new(event.column, event.row)),
            _ => Outcome::Stay,
        }
    }
    /// Handles the wheel, which scrolls by these rows.
    fn wheel(&mut self, _rows: isize) -> Outcome {
        Outcome::Stay
    }
    /// Handles a click, using the last drawn frame.
    fn click(&mut self, _at: Position) -> Outcome {
        Outcome::Stay
    }
    /// Returns the items of the footer.
    fn hints(&self) -> Vec<Hint>;
    /// Returns the commands that help lists: those of the footer, and those that it shows in another focus.
    fn help_items(&self) -> Vec<Hint> {
        self.hints()
    }
    /// Draws it inside the screen's `area`; returns the position of the terminal's cursor.
    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position>;
    /// Returns after how many milliseconds it changes without input; `None` if it does not.
    fn changes_in(&self, _now: Instant) -> Option<u64> {
        None
    }
    /// Shows the new version of a text that grew, if that text is shown.
    fn read_again(&mut self, _reading: Reading) {}
    /// Returns whether the content behind it is dimmed.
    fn shades(&self) -> bool {
        true
    }
}

/// Returns a centered rectangle of the requested size, reduced to fit.
pub fn centered(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect::new(area.x + (area.width - width) / 2, area.y + (area.height - height) / 2, width, height)
}

/// Clears cells to the overlay's background; also clears wide characters that extend into the area from the left.
pub fn clear(area: Rect, painter: &mut Painter<'_>) {
    let area = area.intersection(painter.buf.area);
    let ground = painter.theme.style(Role::Base).patch(painter.theme.style(Role::Overlay));
    for y in area.top()..area.bottom() {
        for x in painter.buf.area.x..area.x {
            if let Some(left) = painter.buf.cell_mut((x, y))
                && left.symbol().width() > usize::from(area.x - x)
            {
                left.set_symbol(" ");
            }
        }
        for x in area.left()..area.right() {
            if let Some(cell) = painter.buf.cell_mut((x, y)) {
                cell.reset();
                cell.set_style(ground);
            }
        }
    }
}

/// Dims everything drawn so far.
pub fn shade(area: Rect, painter: &mut Painter<'_>) {
    let style = painter.theme.style(Role::Base).patch(painter.theme.style(Role::Shade));
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            if let Some(cell) = painter.buf.cell_mut((x, y)) {
                cell.modifier = ratatui::style::Modifier::empty();
                cell.set_style(style);
            }
        }
    }
}

/// Draws an overlay's frame on a cleared background: rounded, or heavy in the color of pending decisions. Returns the
/// inside, with one cell of padding left and right.
pub fn frame(area: Rect, painter: &mut Painter<'_>, title: &str, note: &str, decision: bool) -> Rect {
    clear(area, painter);
    if area.width < 4 || area.height < 3 {
        return Rect::ZERO;
    }
    let signs = match (painter.glyphs.ascii, decision) {
        (true, _) => ["+", "+", "+", "+", "-", "|"],
        (false, false) => ["╭", "╮", "╰", "╯", "─", "│"],
        (false, true) => ["┏", "┓", "┗", "┛", "━", "┃"],
    };
    let role = if decision { Role::Waiting } else { Role::Focus };
    let (left, right, top, bottom) = (area.left(), area.right() - 1, area.top(), area.bottom() - 1);
    for y in [top, bottom] {
        painter.run(left + 1, y, signs[4], area.width - 2, role);
    }
    for y in top + 1..bottom {
        painter.put(left, y, signs[5], role, 1);
        painter.put(right, y, signs[5], role, 1);
    }
    for (x, y, sign) in
        [(left, top, signs[0]), (right, top, signs[1]), (left, bottom, signs[2]), (right, bottom, signs[3])]
    {
        painter.put(x, y, sign, role, 1);
    }
    let mut available = area.width.saturating_sub(6);
    if !note.is_empty() && cells(title) + cells(note) + 9 <= area.width {
        let note = format!(" {note} ");
        painter.right(right - 1, top, &note, Role::Muted);
        available -= cells(&note);
    }
    if !title.is_empty() {
        let title = cut_end(title, available, painter.glyphs.ellipsis).into_owned();
        let title = format!(" {title} ");
        painter.put(
            left + 2,
            top,
            &title,
            if decision { Role::Waiting } else { Role::Strong },
            available + 2,
        );
    }
    Rect::new(left + 2, top + 1, area.width - 4, area.height - 2)
}

/// Returns the row under a click, using the rows drawn last.
fn row_at(rows: &[(Rect, usize)], at: Position) -> Option<usize> {
    rows.iter().find(|(row, _)| row.contains(at)).map(|(_, index)| *index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture;

    #[test]
    fn wide_character_at_the_left_edge_is_clipped() {
        let buf = picture::painted(12, 3, |painter| {
            painter.buf.set_string(0, 1, "日本語日本語", ratatui::style::Style::new());
            clear(Rect::new(3, 0, 4, 3), painter);
        });
        assert_eq!(buf[(2, 1)].symbol(), " ");
        assert_eq!(buf[(0, 1)].symbol(), "日");
    }

    #[test]
    fn box_is_limited_to_the_screen() {
        let screen = Rect::new(0, 0, 40, 10);
        assert_eq!(centered(screen, 66, 18), screen);
        assert_eq!(centered(screen, 20, 4), Rect::new(10, 3, 20, 4));
    }
}
