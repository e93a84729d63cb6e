//! Parts of dialogs: rows with labels, fields on a band, and buttons.

use std::time::Instant;

use ratatui::layout::{Position, Rect};

use crate::action::{Action, Context};
use crate::field::Field;
use crate::form::{Form, FormState, Text};
use crate::overlay::Hint;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Scroll, Seg, cells, cut_end, rows_above_note, shown, wrap};
use skills_config::quoted;
use skills_store::RunId;

/// Column of the values, from the inside's left edge.
pub const LABEL: u16 = 14;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Button {
    pub action: Action,
    pub label: String,
    /// Whether its effect is irreversible.
    pub danger: bool,
}

impl Button {
    pub fn new(action: Action, label: impl Into<String>) -> Self {
        Self { action, label: label.into(), danger: false }
    }

    /// Creates a button that stops or removes something.
    pub fn danger(action: Action, label: impl Into<String>) -> Self {
        Self { danger: true, ..Self::new(action, label) }
    }
}

/// Adds the keys of fields and buttons to those of a dialog's footer, for help.
pub fn with_form_keys(mut hints: Vec<Hint>) -> Vec<Hint> {
    let keys = [
        (Action::NextPart, "next"),
        (Action::Up, "move"),
        (Action::Open, "select"),
        (Action::Submit, "next field"),
        (Action::NewLine, "new line"),
        (Action::Clear, "clear"),
        (Action::LeaveField, "leave field"),
        (Action::Back, "cancel"),
    ];
    for (action, label) in keys {
        if !hints.iter().any(|hint| hint.action == action) {
            hints.push(Hint::new(action, label));
        }
    }
    hints
}

/// Returns the contexts of a dialog with text fields.
pub fn contexts(in_text: bool) -> Vec<Context> {
    if in_text { vec![Context::Form, Context::Field, Context::Dialog] } else { vec![Context::Dialog] }
}

pub fn button_at(drawn: &[Rect], at: Position) -> Option<usize> {
    drawn.iter().position(|rect| rect.contains(at))
}

/// Returns the lines of a text next to its label.
pub fn labeled(
    label: &str,
    width: u16,
    lines: impl IntoIterator<Item = Vec<Seg>>,
) -> impl Iterator<Item = RichLine> {
    let width = usize::from(width);
    lines.into_iter().enumerate().map(move |(at, line)| {
        let label = if at == 0 { label } else { "" };
        let mut segs = vec![Seg::new(format!("{label:<width$}"), Role::Muted)];
        segs.extend(line);
        RichLine::from_segs(segs)
    })
}

/// Returns the lines of a message with a sign before it, in a dialog of this inner width.
pub fn message_lines(message: &str, width: u16) -> Vec<String> {
    let lines = wrap(&[Seg::new(message, Role::Text)], width.saturating_sub(2));
    lines.into_iter().map(|segs| RichLine::from_segs(segs).plain_text()).collect()
}

/// Draws a form; returns the position of the terminal's cursor.
pub fn form(
    form: &mut Form,
    area: Rect,
    look: FormState,
    painter: &mut Painter<'_>,
    now: Instant,
) -> Option<Position> {
    let mut cx = Draw {
        theme: painter.theme,
        glyphs: painter.glyphs,
        keymap: painter.keymap,
        commands: painter.commands,
        now,
        clock_ms: 0,
        focused: true,
        full_screen: false,
        split: 0,
        cursor: None,
    };
    form.draw(area, look, painter.buf, &mut cx);
    cx.cursor
}

/// Returns what shows all of a truncated value of a run: a command, or a copy if no other process can read the run.
pub fn shows_all(run: &RunId, painter: &Painter<'_>) -> String {
    let command = painter.commands.completed(&format!("skills runs show {} --json", quoted(&run.0)));
    command.map_or_else(
        || {
            let key = painter.key_word(Action::CopyAs, &[Context::List]);
            format!("{key} in pane 5 copies the run as JSON")
        },
        |command| format!("`{command}` prints all of it"),
    )
}

/// Returns the part of a ring after the focused one, or before it; the second one if none is focused.
pub fn next_focus<F: PartialEq + Copy>(ring: &[F], focus: F, forward: bool) -> F {
    let at = ring.iter().position(|part| *part == focus).unwrap_or(0);
    let by = if forward { 1 } else { ring.len() - 1 };
    ring[(at + by) % ring.len()]
}

/// Draws the visible lines of a text that scrolls, and how many more there are below.
pub fn scrolled(area: Rect, painter: &mut Painter<'_>, lines: &[RichLine], scroll: &mut Scroll) {
    scroll.height = rows_above_note(lines.len(), area.height);
    scroll.roll(0, lines.len());
    for (line, y) in lines.iter().skip(scroll.offset).take(scroll.height).zip(area.y..) {
        painter.line(area.x, y, line, area.width);
    }
    more_below(area, painter, lines.len(), scroll);
}

/// Draws how many lines are below the visible ones, if there are any.
pub fn more_below(area: Rect, painter: &mut Painter<'_>, lines: usize, scroll: &Scroll) {
    let below = lines.saturating_sub(scroll.offset + scroll.height);
    if below > 0 {
        let note = format!(" {below} more below {} ", painter.glyphs.down);
        painter.right(area.right(), area.bottom().saturating_sub(1), &note, Role::Waiting);
    }
}

/// Draws buttons in a row, with their keys in these contexts: the first on the left, the others together on the right.
/// Returns their areas.
pub fn buttons(
    row: Rect,
    painter: &mut Painter<'_>,
    (all, contexts): (&[Button], &[Context]),
    focused: Option<usize>,
) -> Vec<Rect> {
    let keys = all.iter().map(|button| painter.key(button.action, contexts).map(|key| format!("  {key}")));
    let mut keys: Vec<String> = keys.map(Option::unwrap_or_default).collect();
    let labels: u16 = all.iter().map(|button| cells(&button.label)).sum();
    let least = labels + keys.iter().map(|key| cells(key)).sum::<u16>() + 2 * all.len() as u16;
    // The gap after the first button may be one cell, and none follows the last one.
    if least > row.width + 3 {
        keys.iter_mut().for_each(String::clear);
    }
    let text = |at: usize, air: &str| format!("{air}{}{}{air}", all[at].label, keys[at]);
    let width = |air: &str| (0..all.len()).map(|at| cells(&text(at, air)) + 2).sum::<u16>();
    let air = ["   ", "  ", " ", ""].into_iter().find(|air| width(air) <= row.width).unwrap_or("");
    let mut out = Vec::with_capacity(all.len());
    let mut end = row.right();
    for (at, button) in all.iter().enumerate().rev() {
        let text = text(at, air);
        let wide = cells(&text).min(row.width);
        let start = if at == 0 { row.x } else { end.saturating_sub(wide).max(row.x) };
        let role = match (focused == Some(at), button.danger) {
            (true, _) => Role::ButtonFocus,
            (false, true) => Role::ButtonDanger,
            (false, false) => Role::Button,
        };
        painter.put(start, row.y, &text, role, wide);
        if painter.glyphs.ascii && focused == Some(at) {
            painter.put(start, row.y, ">", role, 1);
        }
        out.push(Rect::new(start, row.y, wide, 1));
        end = start.saturating_sub(2);
    }
    out.reverse();
    out
}

/// The parts of a field's row other than its text.
pub struct Row<'a> {
    /// Label to the left.
    pub label: &'a str,
    /// Text shown in the empty field.
    pub hint: &'a str,
    /// Note at the right end.
    pub note: &'a str,
    /// Whether the note is a problem.
    pub wrong: bool,
    pub focused: bool,
}

/// Draws a label, and the band of a field to its right; returns the band.
fn labeled_band(area: Rect, painter: &mut Painter<'_>, show: &Row<'_>) -> Rect {
    let label_room = LABEL.min(area.width / 3);
    let role = if show.focused { Role::Strong } else { Role::Muted };
    painter.put(area.x, area.y, show.label, role, label_room.saturating_sub(1));
    let band = Rect { x: area.x + label_room, width: area.width.saturating_sub(label_room), ..area };
    painter.band(band, Role::Field);
    if painter.glyphs.ascii {
        for y in band.top()..band.bottom() {
            painter.put(band.x, y, "[", Role::Muted, 1);
            painter.right(band.right(), y, "]", Role::Muted);
        }
    }
    band
}

/// Draws a label and a field on its band; returns the position of the terminal's cursor.
pub fn field(row: Rect, painter: &mut Painter<'_>, field: &mut Field, show: &Row<'_>) -> Option<Position> {
    let band = labeled_band(row, painter, show);
    let mut end = band.right().saturating_sub(1);
    let typed = cells(field.text());
    let fits = cells(show.note) + typed.max(9) + 3 <= band.width;
    if !show.note.is_empty() && fits {
        let role = if show.wrong { Role::Danger } else { Role::Muted };
        end = painter.right(end, band.y, show.note, role).saturating_sub(1);
    }
    let text = Rect { x: band.x + 1, width: end.saturating_sub(band.x + 1), ..band };
    let style = painter.theme.style(Role::Field).patch(painter.theme.style(Role::Strong));
    let cursor = field.draw(text, painter.buf, style, &[]);
    if field.is_empty() && !show.focused {
        painter.put(text.x, text.y, show.hint, Role::Muted, text.width);
    } else if typed > text.width && !show.focused {
        // Show the beginning: the field scrolls to its end while typing.
        painter.run(text.x, text.y, " ", text.width, Role::Field);
        painter.put(
            text.x,
            text.y,
            &cut_end(field.text(), text.width, painter.glyphs.ellipsis),
            Role::Strong,
            text.width,
        );
    }
    cursor.filter(|_| show.focused)
}

/// Draws a label and a text of several rows on its band; returns the position of the terminal's cursor.
pub fn text(area: Rect, painter: &mut Painter<'_>, text: &mut Text, show: &Row<'_>) -> Option<Position> {
    let band = labeled_band(area, painter, show);
    let inside = Rect { x: band.x + 1, width: band.width.saturating_sub(2), ..band };
    let style = painter.theme.style(Role::Field).patch(painter.theme.style(Role::Strong));
    let cursor = text.draw(inside, painter.buf, style, show.focused);
    text.mark_hidden_rows(inside.right(), painter);
    if text.is_empty() && !show.focused {
        painter.put(inside.x, inside.y, show.hint, Role::Muted, inside.width);
    }
    cursor
}

/// Returns the current wall clock, from its value when the dialog was opened.
pub fn clock(opened: (i64, Instant), now: Instant) -> i64 {
    let since = now.saturating_duration_since(opened.1).as_millis();
    opened.0.saturating_add(i64::try_from(since).unwrap_or(i64::MAX))
}

/// Draws the band of a warning: one row for each line, the first with the glyph. Returns the number of rows.
pub fn warning(area: Rect, painter: &mut Painter<'_>, lines: &[String]) -> u16 {
    let height = (lines.len() as u16).min(area.height);
    let band = Rect { x: area.x.saturating_sub(1), width: area.width + 2, height, ..area };
    painter.band(band, Role::DangerBand);
    for (at, (line, y)) in lines.iter().zip(area.y..area.y + height).enumerate() {
        painter.put(band.x, y, painter.glyphs.gutter, Role::Danger, 1);
        if at == 0 {
            painter.put(area.x, y, painter.glyphs.warn, Role::Danger, 1);
        }
        let role = if at == 0 { Role::Danger } else { Role::Text };
        painter.put(area.x + 2, y, line, role, area.width.saturating_sub(2));
    }
    height
}

/// Returns the last three characters of an id, which distinguish runs in a list.
pub fn tail(id: &str) -> String {
    let all: Vec<char> = shown(id).chars().collect();
    all[all.len().saturating_sub(3)..].iter().collect()
}
