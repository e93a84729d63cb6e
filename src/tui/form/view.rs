//! Draws a form: labels left, fields right, problems after or below them, and the cursor.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::Form;
use super::entry::{Control, Entry, Meaning};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Seg, cells, cut_end, shown, wrap_to};

/// Maximum number of rows of a text before it scrolls inside its field.
const MAX_ROWS: usize = 6;
/// Maximum number of rows of a note below a field, without the hint of its default.
const NOTE_ROWS: usize = 2;
/// The hint of a field that has a default, before its description.
const DEFAULT_HINT: &str = "Press Right to edit the default.";
/// Minimum number of cells of a text next to its messages.
const MIN_TEXT: u16 = 14;
/// Minimum width of the label column.
const LABEL_LEAST: u16 = 6;

/// The layout of a form, and whether it has the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormState {
    /// Cells before the labels.
    pub indent: u16,
    /// Cells from the left edge to the fields; [`Form::label_width`] computes what the labels need.
    pub label: u16,
    /// Whether fields are separated by a blank row.
    pub roomy: bool,
    pub focused: bool,
}

struct Rows {
    body: usize,
    /// Wrapped rows below it; `wrong` is whether they are a problem.
    note: Vec<String>,
    wrong: bool,
    /// The problem, if it is shown after the text instead.
    behind: Option<String>,
    blank: usize,
}

impl Rows {
    fn all(&self) -> usize {
        self.body + self.note.len() + self.blank
    }
}

impl Form {
    /// Returns the cells that the labels need, at most `most`, including the mark of a required field and the gap.
    pub fn label_width(&self, indent: u16, most: u16) -> u16 {
        let widest = self.entries.iter().map(|entry| label_cells(entry) + indent + 2).max();
        widest.unwrap_or(0).min(most).max(LABEL_LEAST.min(most))
    }

    /// Returns the number of rows at a width.
    pub fn height(&self, width: u16, look: FormState) -> u16 {
        let available = width.saturating_sub(look.label);
        let rows =
            self.entries.iter().enumerate().map(|(at, entry)| self.rows_of(at, entry, available, look).all());
        let trailing = usize::from(look.roomy && !self.entries.is_empty());
        u16::try_from(rows.sum::<usize>().saturating_sub(trailing)).unwrap_or(u16::MAX)
    }

    /// Returns the number of rows that suffices for any focused field, including the note below it.
    pub fn required_height(&self, width: u16, look: FormState) -> u16 {
        let away = FormState { focused: false, ..look };
        let inner = width.saturating_sub(look.label + 2);
        let note = |entry: &Entry| {
            let message = help_text(entry, true)?;
            let rows = note_lines(message, inner).len();
            Some(if look.roomy && rows == 1 { 0 } else { rows })
        };
        let most = self.entries.iter().filter_map(note).max().unwrap_or(0);
        self.height(width, away)
            .saturating_add(u16::try_from(most).unwrap_or(0))
            .max(self.height(width, look))
    }

    /// Draws the form, scrolled so that the focused field is entirely visible; sets the cursor.
    pub fn draw(&mut self, area: Rect, look: FormState, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.drawn = area;
        for entry in &mut self.entries {
            entry.drawn = Rect::ZERO;
            entry.drawn_choices.clear();
        }
        if area.is_empty() {
            return;
        }
        let available = area.width.saturating_sub(look.label);
        let rows: Vec<Rows> = self
            .entries
            .iter()
            .enumerate()
            .map(|(at, entry)| self.rows_of(at, entry, available, look))
            .collect();
        let top: usize = rows.iter().take(self.focus).map(Rows::all).sum();
        // The blank row after the last field is not part of the scroll range.
        let trailing = rows.last().map_or(0, |rows| rows.blank);
        let total = rows.iter().map(Rows::all).sum::<usize>() - trailing;
        let height = usize::from(area.height);
        if look.focused {
            let end = top + rows.get(self.focus).map_or(0, |rows| rows.body + rows.note.len());
            self.offset = self.offset.max(end.saturating_sub(height)).min(top);
        }
        self.offset = self.offset.min(total.saturating_sub(height));
        let mut cursor = None;
        let mut y = 0;
        for (at, rows) in rows.iter().enumerate() {
            let focused = look.focused && at == self.focus;
            let place = FieldPlacement { area, offset: self.offset, at: y };
            if let Some(entry) = self.entries.get_mut(at) {
                let seen = draw_entry(entry, rows, &place, look, focused, buf, cx);
                cursor = cursor.or(seen.filter(|_| focused));
            }
            y += rows.all();
        }
        if cursor.is_some() {
            cx.cursor = cursor;
        }
        let mut painter = Painter::new(buf, cx);
        // The last cell of a field is always free, so the scroll arrows fit.
        let edge = area.right() - 1;
        if self.offset > 0 {
            painter.put(edge, area.y, painter.glyphs.up, Role::Muted, 1);
        }
        if self.offset + height < total {
            painter.put(edge, area.bottom() - 1, painter.glyphs.down, Role::Muted, 1);
        }
    }

    fn rows_of(&self, at: usize, entry: &Entry, width: u16, look: FormState) -> Rows {
        let problem = entry.problem(self.checked);
        let inner = width.saturating_sub(2);
        let body = match &entry.control {
            Control::Text(text) => text.height(inner).clamp(1, MAX_ROWS),
            Control::Choice { .. } => 1,
        };
        let fits = |why: &str| cells(why) + 4 + MIN_TEXT <= width;
        let typed = match &entry.control {
            Control::Text(text) if body == 1 => cells(text.text()),
            _ => 0,
        };
        let behind = problem
            .clone()
            .filter(|why| body == 1 && fits(why) && cells(why) + 4 + typed.max(MIN_TEXT) <= width)
            .filter(|_| matches!(entry.control, Control::Text(_)));
        let focused = look.focused && at == self.focus;
        let (message, wrong) = match (&problem, &behind) {
            (Some(why), None) => (Some(why.clone()), true),
            _ if !focused => (None, false),
            _ => {
                let empty = matches!(&entry.control, Control::Text(text) if text.is_empty());
                (help_text(entry, empty), false)
            }
        };
        let note = message.map_or_else(Vec::new, |message| {
            note_lines(message, inner).iter().map(RichLine::plain_text).collect()
        });
        let blank = usize::from(look.roomy && note.is_empty());
        // In a roomy form a note is followed by a blank row too, so that it visibly belongs to the field above it.
        let blank = blank + usize::from(look.roomy && note.len() > 1);
        Rows { body, note, wrong, behind, blank }
    }
}

/// The row of a field within the form, and the visible part of the form.
struct FieldPlacement {
    area: Rect,
    offset: usize,
    at: usize,
}

impl FieldPlacement {
    /// Returns the screen row of a form row, if it is visible.
    fn y(&self, row: usize) -> Option<u16> {
        let row = (self.at + row).checked_sub(self.offset)?;
        (row < usize::from(self.area.height)).then(|| self.area.y + row as u16)
    }
}

/// Returns the note below the focused field.
fn help_text(entry: &Entry, empty: bool) -> Option<String> {
    let takes = entry.field.default.is_some() && matches!(entry.control, Control::Text(_)) && empty;
    let takes = takes.then(|| DEFAULT_HINT.to_owned());
    let described = entry.field.description.as_deref().map(shown);
    // A long description is cut off at its end.
    let texts: Vec<String> = takes.into_iter().chain(described).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// Wraps a note; the hint of a default does not displace the end of the description.
fn note_lines(note: String, width: u16) -> Vec<RichLine> {
    let most = NOTE_ROWS + usize::from(note.starts_with(DEFAULT_HINT));
    wrap_to(&[Seg::new(note, Role::Muted)], width, most, "…")
}

fn label_cells(entry: &Entry) -> u16 {
    cells(&entry.label) + if entry.field.required { 2 } else { 0 }
}

fn draw_entry(
    entry: &mut Entry,
    rows: &Rows,
    place: &FieldPlacement,
    look: FormState,
    focused: bool,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> Option<Position> {
    let area = place.area;
    let seen: Vec<u16> = (0..rows.body).filter_map(|row| place.y(row)).collect();
    let field_x = area.x + look.label;
    let width = area.width.saturating_sub(look.label);
    let mut painter = Painter::new(buf, cx);
    if let Some(y) = place.y(0) {
        if focused {
            painter.put(area.x, y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        draw_label(
            entry,
            area.x + look.indent,
            y,
            look.label.saturating_sub(look.indent + 1),
            focused,
            &mut painter,
        );
    }
    let mut cursor = None;
    if let Some(y) = seen.first() {
        let band = Rect { x: field_x, y: *y, width, height: seen.len() as u16 };
        painter.band(band, Role::Field);
        entry.drawn = band;
        cursor = draw_control(entry, rows, band, focused, buf, cx);
    }
    let mut painter = Painter::new(buf, cx);
    for (row, line) in rows.note.iter().enumerate() {
        let Some(y) = place.y(rows.body + row) else { continue };
        let line = &line.replace('…', painter.glyphs.ellipsis);
        if rows.wrong {
            if row == 0 {
                painter.put(field_x, y, painter.glyphs.bad, Role::Danger, 1);
            }
            painter.put(field_x + 2, y, line, Role::Danger, width.saturating_sub(2));
        } else {
            painter.put(field_x, y, line, Role::Muted, width);
        }
    }
    cursor
}

fn draw_label(entry: &Entry, x: u16, y: u16, available: u16, focused: bool, painter: &mut Painter<'_>) {
    let mark = if entry.field.required { 2 } else { 0 };
    let label = cut_end(&entry.label, available.saturating_sub(mark), painter.glyphs.ellipsis).into_owned();
    let end = painter.put(x, y, &label, if focused { Role::Strong } else { Role::Muted }, available);
    if mark > 0 {
        painter.put(end + 1, y, "*", Role::Muted, 1);
    }
}

fn draw_control(
    entry: &mut Entry,
    rows: &Rows,
    band: Rect,
    focused: bool,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> Option<Position> {
    let meaning = entry.meaning();
    let mut painter = Painter::new(buf, cx);
    let end = band.right().saturating_sub(1);
    let tag_at = if rows.body > 1 {
        // A long text uses its rows alone; the first one shows the type.
        end
    } else if let Some(why) = &rows.behind {
        let at = painter.right(end, band.y, painter.glyphs.bad, Role::Danger);
        painter.right(at.saturating_sub(1), band.y, why, Role::Danger)
    } else {
        let (sign, role) = match &meaning {
            _ if rows.wrong => (painter.glyphs.bad, Role::Danger),
            Meaning::Value(_) => (painter.glyphs.ok, Role::Success),
            _ => ("", Role::Muted),
        };
        let at = if sign.is_empty() { end } else { painter.right(end, band.y, sign, role).saturating_sub(1) };
        let tag = entry.tag(&meaning);
        let free = at.saturating_sub(band.x + 2 + content_cells(entry, band.width));
        if cells(&tag) <= free { painter.right(at, band.y, &tag, Role::Muted) } else { at }
    };
    let text = Rect { x: band.x + 1, width: tag_at.saturating_sub(band.x + 2), ..band };
    let ghost = entry.default_text();
    let default = entry.default_choice();
    match &mut entry.control {
        Control::Text(typed) => {
            let cursor = typed.draw(text, painter.buf, cx.theme.style(Role::Text), focused);
            typed.mark_hidden_rows(text.right(), &mut painter);
            if typed.is_empty() {
                let ghost = cut_end(&ghost, text.width, painter.glyphs.ellipsis);
                painter.put(text.x, text.y, &ghost, Role::Muted, text.width);
            }
            cursor
        }
        Control::Choice { choices, taken } => {
            let taken = *taken;
            let labels: Vec<String> = choices.iter().map(|(_, label)| label.clone()).collect();
            entry.drawn_choices = draw_choices(&labels, taken, default, text, focused, &mut painter);
            None
        }
    }
}

/// Returns the width of a field's value in cells, without its messages.
fn content_cells(entry: &Entry, width: u16) -> u16 {
    match &entry.control {
        Control::Text(text) if text.is_empty() => cells(&entry.default_text()) + 1,
        Control::Text(text) => cells(text.text()) + 1,
        Control::Choice { choices, .. } => {
            let all = all_choices(choices.iter().map(|(_, label)| label.as_str()));
            if all + 2 <= width { all } else { MIN_TEXT }
        }
    }
}

fn all_choices<'a>(labels: impl Iterator<Item = &'a str>) -> u16 {
    labels.map(|label| cells(label) + 4).sum::<u16>().saturating_sub(2)
}

/// Draws all choices in a row if they fit, else the selected one; returns the area of each.
fn draw_choices(
    labels: &[String],
    taken: Option<usize>,
    default: Option<usize>,
    area: Rect,
    focused: bool,
    painter: &mut Painter<'_>,
) -> Vec<(Rect, usize)> {
    let mut hits = Vec::new();
    let selected = taken.or(default);
    let role = |at: usize| match (selected == Some(at), taken.is_some()) {
        (true, true) => Role::Strong,
        (true, false) => Role::Text,
        _ => Role::Muted,
    };
    if all_choices(labels.iter().map(String::as_str)) <= area.width {
        let mut x = area.x;
        for (at, label) in labels.iter().enumerate() {
            let sign = if selected == Some(at) { painter.glyphs.set } else { painter.glyphs.pending };
            let role = role(at);
            painter.put(x, area.y, sign, if focused { Role::Accent } else { role }, 1);
            let end = painter.put(x + 2, area.y, label, role, area.right().saturating_sub(x + 2));
            hits.push((Rect::new(x, area.y, end - x, 1), at));
            x = end + 2;
        }
        return hits;
    }
    // If they do not fit: the current one, its index, and a click target for the next one.
    let count = labels.len();
    let next = selected.map_or(0, |at| (at + 1) % count.max(1));
    let place = selected.map_or_else(|| format!("{count} choices"), |at| format!("{} of {count}", at + 1));
    let turn = format!("{place} {}", painter.glyphs.open);
    let start = painter.right(area.right(), area.y, &turn, Role::Muted);
    let label = selected.and_then(|at| labels.get(at)).map_or("choose", String::as_str);
    let available = start.saturating_sub(area.x + 1);
    let label = cut_end(label, available, painter.glyphs.ellipsis).into_owned();
    painter.put(area.x, area.y, &label, selected.map_or(Role::Muted, role), available);
    hits.push((area, next));
    hits
}
