//! Draws the dialog for many runs: what is the same in all, what differs in each, what would happen to the run under
//! the cursor, and the buttons.

use std::time::Instant;

use ratatui::layout::{Position, Rect};

use super::bulk::{BulkDialog, Focus, Phase, Row, plural};
use super::parts::{self, LABEL, tail};
use crate::overlay::{centred, frame};
use crate::theme::Role;
use crate::widgets::format::count;
use crate::widgets::json_lines;
use crate::widgets::painter::Painter;
use crate::widgets::relative_time::age;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::text_width::{cells, cut_end, shown};
use crate::widgets::wrap::{wrap, wrap_to};
use skills_api::{DecisionSheet, is_same};

/// Maximum width of the dialog.
const MAX_WIDTH: u16 = 140;
/// Minimum width of the screen for a margin around the dialog.
const MIN_WIDTH_WITH_MARGIN: u16 = 100;
/// Maximum number of lines of what is the same in all runs.
const MAX_COMMON_LINES: usize = 8;
/// Minimum number of rows of the list.
const MIN_ROWS: u16 = 4;

/// Areas of the last frame.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) rows: Vec<(Rect, usize)>,
    pub(super) buttons: Vec<Rect>,
    pub(super) texts: Vec<Rect>,
    /// The screen, and the height on it: while the dialog is open it grows, but does not shrink.
    height: (Rect, u16),
}

impl BulkDialog {
    pub(super) fn view(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        let margin = if area.width < MIN_WIDTH_WITH_MARGIN { 0 } else { 4 };
        let width = area.width.saturating_sub(margin).min(MAX_WIDTH);
        let inner = width.saturating_sub(6);
        let head = self.common_lines(inner, painter);
        let about = self.about(inner, painter, now);
        let texts =
            if matches!(self.phase, Phase::Choosing | Phase::Counting(_)) { self.texts.len() } else { 0 };
        let len = |lines: usize| u16::try_from(lines).unwrap_or(u16::MAX);
        let blank = |lines: usize| len(lines).saturating_add(u16::from(lines > 0));
        // Text fields, status, a blank row, and the buttons.
        let foot = len(texts) + 3 + 1;
        let wanted = [blank(head.len()), len(self.rows.len()), blank(about.len()), foot + 2];
        let wanted = wanted.into_iter().fold(0, u16::saturating_add);
        let least = if self.drawn.height.0 == area { self.drawn.height.1 } else { 8 };
        let height = wanted.min(area.height.saturating_sub(2)).max(least);
        self.drawn.height = (area, height);
        let outer = centred(area, width, height);
        let asks = self.phase != Phase::Done;
        let sign = if asks { format!("{} ", painter.glyphs.waiting) } else { String::new() };
        let title = format!("{sign}{} {}", self.verb(), plural(self.included()));
        let note = format!("{} marked", plural(self.rows.len()));
        let inside = frame(outer, painter, &title, &note, asks);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let end = inside.bottom().saturating_sub(foot);
        let mut y = inside.y;
        // In a small window the list has precedence.
        let above = end.saturating_sub(y);
        let head_room = above.saturating_sub(MIN_ROWS + 1).min(above / 2);
        let head = &head[..head.len().min(usize::from(head_room))];
        for line in head {
            painter.line(inside.x, y, line, inside.width);
            y += 1;
        }
        y += u16::from(!head.is_empty());
        let available = end.saturating_sub(y);
        let rows = len(self.rows.len());
        let about_room = available.saturating_sub(rows.min(MIN_ROWS.max(available / 2))).saturating_sub(1);
        let about = &about[..about.len().min(usize::from(about_room))];
        let left = available.saturating_sub(blank(about.len()));
        let list = Rect { y, height: rows.min(left), ..inside };
        self.draw_list(list, painter, now);
        y = end.saturating_sub(len(about.len()));
        for (line, y) in about.iter().zip(y..) {
            painter.line(inside.x, y, line, inside.width);
        }
        let mut cursor = None;
        self.drawn.texts.clear();
        for (at, y) in (0..texts).zip(end..) {
            let area = Rect { y, height: 1, ..inside };
            let text = &mut self.texts[at];
            let focused = self.focus == Focus::Text(at);
            let row = parts::Row { label: text.label, hint: text.hint, note: "", wrong: false, focused };
            cursor = cursor.or(parts::field(area, painter, &mut text.field, &row));
            self.drawn.texts.push(area);
        }
        let (text, role) = self.status(now);
        let y = inside.bottom().saturating_sub(3);
        if matches!(self.phase, Phase::Counting(_)) {
            let band = Rect { x: inside.x.saturating_sub(1), y, width: inside.width + 2, height: 1 };
            painter.band(band, Role::WaitingBand);
            painter.put(band.x, y, painter.glyphs.gutter, Role::Waiting, 1);
        }
        let text = cut_end(&text, inside.width, painter.glyphs.ellipsis).into_owned();
        painter.put(inside.x, y, &text, role, inside.width);
        let row = Rect { y: inside.bottom().saturating_sub(1), height: 1, ..inside };
        let all = self.buttons();
        let focused = match self.focus {
            Focus::Button(at) => Some(at.min(all.len().saturating_sub(1))),
            Focus::Text(_) => None,
        };
        self.drawn.buttons = parts::buttons(row, painter, &all, focused);
        cursor
    }

    /// Returns the lines of what is the same in all runs.
    fn common_lines(&self, width: u16, painter: &Painter<'_>) -> Vec<RichLine> {
        let mut out = Vec::new();
        if self.rows.len() < 2 {
            return out;
        }
        for (label, value) in &self.common {
            let role = if *label == "error" { Role::Danger } else { Role::Text };
            let segs = [Seg::new(value.clone(), role)];
            let lines = wrap_to(&segs, width.saturating_sub(2 * LABEL), 2, painter.glyphs.ellipsis);
            for (at, line) in lines.into_iter().enumerate() {
                let head = if out.is_empty() { "all runs" } else { "" };
                let label = if at == 0 { *label } else { "" };
                let indent = usize::from(LABEL);
                let mut segs = vec![Seg::new(format!("{head:<indent$}{label:<indent$}"), Role::Muted)];
                segs.extend(line.segs);
                out.push(RichLine::from_segs(segs));
            }
        }
        out.truncate(MAX_COMMON_LINES);
        out
    }

    /// Returns the lines about the run under the cursor: the whole outcome, and what would be executed.
    fn about(&self, width: u16, painter: &Painter<'_>, now: Instant) -> Vec<RichLine> {
        let Some(row) = self.rows.get(self.scroll.cursor) else { return Vec::new() };
        let mut out = Vec::new();
        let said = match (&row.outcome, &row.blocked) {
            (Some(Err(why)), _) => Some((why.clone(), Role::Danger)),
            (Some(Ok(note)), _) => Some((note.clone(), Role::Success)),
            (None, Some(why)) => Some((why.clone(), Role::Muted)),
            (None, None) if row.changed && !row.despite => {
                let text = "excluded: its skill changed since the launch. Resume it with the contract of the \
                            launch (W), or launch the skill again.";
                Some((text.to_owned(), Role::Warning))
            }
            _ => None,
        };
        let labelled = |label: &str, segs: Vec<Seg>, out: &mut Vec<RichLine>| {
            let indent = usize::from(LABEL);
            for (at, line) in wrap(&segs, width.saturating_sub(LABEL)).into_iter().enumerate() {
                let label = if at == 0 { label } else { "" };
                let mut segs = vec![Seg::new(format!("{label:<indent$}"), Role::Muted)];
                segs.extend(line);
                out.push(RichLine::from_segs(segs));
            }
        };
        let id = tail(&row.run.id.0).to_uppercase();
        if let Some((text, role)) = said {
            labelled(&id, vec![Seg::new(text, role)], &mut out);
        }
        if !self.decides() || row.outcome.is_some() {
            return out;
        }
        let Some(sheet) = &row.sheet else {
            if row.blocked.is_none() {
                let text = "loading what it would execute".to_owned() + painter.glyphs.ellipsis;
                labelled(&id, vec![Seg::new(text, Role::Muted)], &mut out);
            }
            return out;
        };
        let whose = if self.sheets_are_same() { "all runs" } else { &id };
        labelled(whose, vec![Seg::new(shown(&sheet.headline), Role::Strong)], &mut out);
        if let Some(warning) = &sheet.irreversible {
            labelled("", vec![Seg::new(shown(warning), Role::Danger)], &mut out);
        }
        if !sheet.capability.is_empty() {
            let note = Seg::new(format!(" {}", shown(&sheet.capability_note)), Role::Muted);
            labelled("capability", vec![Seg::new(shown(&sheet.capability), Role::Text), note], &mut out);
        }
        if !sheet.binding.trim().is_empty() {
            labelled("binding", vec![Seg::new(shown(&sheet.binding), Role::Text)], &mut out);
        }
        let left = sheet.expires_ms.map(|at| at - parts::clock(self.opened, now)).filter(|left| *left > 0);
        if let Some(left) = left {
            labelled("expires", vec![Seg::new(format!("in {}", age(left)), Role::Warning)], &mut out);
        }
        if let Some(progress) = row.run.approval_progress() {
            labelled("approvals", vec![Seg::new(progress, Role::Text)], &mut out);
        }
        let inputs = if sheet.inputs.is_null() {
            vec![RichLine::of(DecisionSheet::CHANGED, Role::Muted)]
        } else {
            json_lines::fields(&sheet.inputs, width.saturating_sub(LABEL))
        };
        for (at, line) in inputs.into_iter().enumerate() {
            labelled(if at == 0 { "inputs" } else { "" }, line.segs, &mut out);
        }
        labelled("digest", vec![Seg::new(shown(&sheet.inputs_digest), Role::Muted)], &mut out);
        out
    }

    /// Returns whether the same would be executed for all runs.
    fn sheets_are_same(&self) -> bool {
        let sheets = || self.rows.iter().filter(|row| row.included).map(|row| row.sheet.as_ref());
        let key = |sheet: &'_ DecisionSheet| {
            (
                sheet.headline.clone(),
                sheet.capability.clone(),
                sheet.binding.clone(),
                sheet.inputs_digest.clone(),
            )
        };
        sheets().count() > 1 && sheets().all(|sheet| sheet.is_some()) && is_same(sheets().flatten().map(key))
    }

    fn draw_list(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) {
        let len = self.rows.len();
        let hides = len > usize::from(area.height);
        let height = area.height.saturating_sub(u16::from(hides));
        self.scroll.follow(len, usize::from(height));
        let name = |row: &Row| shown(row.run.title_or_skill());
        // A name that is the same in all rows is stated above them.
        let names = if len > 1 && is_same(self.rows.iter().map(name)) {
            0
        } else {
            self.rows.iter().map(|row| cells(&name(row))).max().unwrap_or(0).min(area.width / 2)
        };
        let clock = parts::clock(self.opened, now);
        let ages: Vec<String> = self.rows.iter().map(|row| age(clock - row.run.since_ms)).collect();
        let widest = ages.iter().map(|age| cells(age)).max().unwrap_or(0);
        self.drawn.rows.clear();
        for place in 0..height {
            let at = self.scroll.offset + usize::from(place);
            if at >= len {
                break;
            }
            let row = Rect { y: area.y + place, height: 1, ..area };
            self.draw_row(at, row, (names, &ages[at], widest), painter);
            self.drawn.rows.push((row, at));
        }
        if hides {
            let hidden = count(len - usize::from(height).min(len));
            let is_above = self.scroll.offset + usize::from(height) >= len;
            let arrow = if is_above { painter.glyphs.up } else { painter.glyphs.down };
            let more = format!("{} and {hidden} more {arrow}", painter.glyphs.ellipsis);
            painter.put(area.x + 4, area.bottom().saturating_sub(1), &more, Role::Waiting, area.width);
        }
    }

    fn draw_row(
        &self,
        at: usize,
        area: Rect,
        (name_width, since, since_width): (u16, &str, u16),
        painter: &mut Painter<'_>,
    ) {
        let row = &self.rows[at];
        if at == self.scroll.cursor {
            painter.band(area, Role::Selection);
            painter.put(area.x.saturating_sub(1), area.y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        let (sign, role) = match (&row.outcome, row.included, self.phase) {
            (Some(Ok(_)), ..) => (painter.glyphs.ok, Role::Success),
            (Some(Err(_)), ..) if row.unknown => ("?", Role::Warning),
            (Some(Err(_)), ..) => (painter.glyphs.bad, Role::Danger),
            (None, true, Phase::Sending(sending)) if sending == at => (painter.glyphs.running[0], Role::Info),
            (None, true, _) => ("x", Role::Strong),
            (None, false, _) => (" ", Role::Muted),
        };
        painter.put(area.x, area.y, "[", Role::Muted, 1);
        painter.put(area.x + 1, area.y, sign, role, 1);
        painter.put(area.x + 2, area.y, "]", Role::Muted, 1);
        let text_role = if row.included { Role::Text } else { Role::Muted };
        let name = shown(row.run.title_or_skill());
        let id = tail(&row.run.id.0).to_uppercase();
        let pad = usize::from(since_width.saturating_sub(cells(since)));
        let since = format!("{}{since}", " ".repeat(pad));
        let mut x = area.x + 4;
        for (text, width, role) in [
            (&name, name_width, text_role),
            (&id, cells(&id), Role::Muted),
            (&since, since_width, Role::Muted),
        ] {
            if width > 0 {
                painter.put(x, area.y, &cut_end(text, width, painter.glyphs.ellipsis), role, width);
                x += width + 2;
            }
        }
        let (text, role) = match (&row.outcome, &row.blocked) {
            (Some(Ok(note)), _) => (note.as_str(), Role::Success),
            (Some(Err(why)), _) => (why.as_str(), Role::Danger),
            (None, Some(why)) => (why.as_str(), Role::Muted),
            (None, None) if row.changed && row.despite => ("with the contract of the launch", Role::Warning),
            (None, None) if row.changed => ("excluded: skill changed since the launch", Role::Warning),
            (None, None) => (row.text.as_str(), text_role),
        };
        let available = area.right().saturating_sub(x);
        painter.put(x, area.y, &cut_end(text, available, painter.glyphs.ellipsis), role, available);
    }
}
