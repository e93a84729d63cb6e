//! Draws the decision dialog: what would be executed in the middle, which scrolls; the decision's fields and buttons
//! below.

use std::time::Instant;

use ratatui::layout::{Position, Rect};
use serde_json::Value;

use super::decision::{Decision, Focus, FrameAreas, PendingGate, SendState};
use super::decision_limits::outlook;
use super::parts::{self, LABEL, Row};
use crate::overlay::{centred, frame};
use crate::theme::Role;
use crate::widgets::json_lines::fields;
use crate::widgets::painter::Painter;
use crate::widgets::relative_time::age;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::text_width::{cells, cut_end, shown};
use crate::widgets::wrap::wrap;
use skills_api::{DecisionSheet, Differences, is_same};

/// Width of the dialog if its lines need no more.
const WIDTH: u16 = 76;
/// Width up to which the dialog grows with its lines.
const MAX_WIDTH: u16 = 140;

impl Decision {
    pub(super) fn view(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        self.drawn = FrameAreas { digest: self.shown_one().inputs_digest.clone(), ..FrameAreas::default() };
        let roomy = area.height >= 30;
        let mut width = area.width.saturating_sub(4).clamp(WIDTH, MAX_WIDTH).min(area.width);
        let mut body = self.body_lines(width.saturating_sub(6), roomy, now, painter);
        // With a list the width must not change with the row under the cursor.
        if self.waiting.len() == 1 {
            let needed = body.iter().map(Line::width).max().unwrap_or(0);
            width = needed.saturating_add(6).clamp(WIDTH.min(width), width);
            body = self.body_lines(width.saturating_sub(6), roomy, now, painter);
        }
        let inner = width.saturating_sub(6);
        let captions = if self.sending() {
            ["Sent; waiting for the response."; 2]
        } else if self.not_permitted().is_some() {
            ["This API key lacks the scope shown above.", "This API key cannot decide."]
        } else if !self.takes_text() {
            ["No pending decision."; 2]
        } else if matches!(self.focus, Focus::Approver | Focus::Notes) {
            ["Esc leaves the field; then choose a button.", "Esc leaves the field, then decide."]
        } else if self.notes.is_empty() {
            if self.waiting[0].sheet.outcome_unknown {
                ["Type to add notes. Uppercase keys decide."; 2]
            } else {
                ["Type to add notes. A approves, D denies."; 2]
            }
        } else {
            [
                "Notes are stored with the decision, and kept as a draft if you close.",
                "Notes are kept as a draft if you close.",
            ]
        };
        let caption = captions[usize::from(cells(captions[0]) > inner.saturating_sub(2))];
        // Approver, notes and buttons, with blank rows if there is enough space, and the caption.
        let long = self.notes.height(inner.saturating_sub(LABEL + 2)) > 1;
        let notes: u16 = if roomy || long || self.focus == Focus::Notes { 2 } else { 1 };
        let foot: u16 = if roomy { 7 + notes } else { 2 + notes };
        let wanted = (body.len() as u16).saturating_add(foot + 3 + u16::from(roomy));
        let height = wanted.min(area.height.saturating_sub(if roomy { 2 } else { 0 })).max(8);
        let outer = centred(area, width, height);
        let title = format!("{} Your decision", painter.glyphs.waiting);
        let since = parts::clock(self.opened, now) - self.shown_one().since_ms;
        let open = self.waiting.iter().any(|one| one.send_state == SendState::Open);
        let left = self.shown_one().expires_ms.filter(|_| open).map(|at| at - parts::clock(self.opened, now));
        let left = left.filter(|left| *left > 0).map(|left| format!(", {} left", age(left)));
        let waits = format!("waiting {}{}", age(since), left.unwrap_or_default());
        let inside = frame(outer, painter, &title, &waits, true);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let top = inside.y + u16::from(roomy);
        let bottom = inside.bottom().saturating_sub(foot);
        let mut middle = Rect { y: top, height: bottom.saturating_sub(top), ..inside };
        if roomy && body.len() > usize::from(middle.height) {
            // A text that continues below must still not touch the fields.
            middle.height -= 1;
        }
        self.draw_body(middle, &body, parts::clock(self.opened, now), painter);
        let air = u16::from(roomy);
        let mut y = bottom;
        let approver = Rect { y, height: 1, ..inside };
        let cursor = self.draw_fields(approver, Rect { y: y + 1 + air, height: notes, ..inside }, painter);
        y += 1 + notes + 2 * air;
        let focused = if let Focus::Button(at) = self.focus { Some(at) } else { None };
        self.drawn.buttons =
            parts::buttons(Rect { y, height: 1, ..inside }, painter, &self.buttons(), focused);
        if roomy {
            painter.put(inside.x, y + 2, caption, Role::Muted, inside.width);
        } else {
            let note = format!(" {caption} ");
            let available = outer.width.saturating_sub(6);
            let note = cut_end(&note, available, painter.glyphs.ellipsis).into_owned();
            painter.put(outer.x + 2, outer.bottom().saturating_sub(1), &note, Role::Muted, available);
        }
        cursor
    }

    fn draw_fields(&mut self, row: Rect, below: Rect, painter: &mut Painter<'_>) -> Option<Position> {
        let from = self.shown_one().approver.as_ref().map(|(_, from)| shown(from)).unwrap_or_default();
        let approver = Row {
            label: "approver",
            hint: "your name",
            note: &from,
            wrong: false,
            focused: self.focus == Focus::Approver,
        };
        let notes = Row {
            label: "notes",
            hint: "optional, stored with the decision",
            note: "",
            wrong: false,
            focused: self.focus == Focus::Notes,
        };
        (self.drawn.approver, self.drawn.notes) = (row, below);
        let first = parts::field(row, painter, &mut self.approver, &approver);
        first.or(parts::text(below, painter, &mut self.notes, &notes))
    }

    fn draw_body(&mut self, area: Rect, lines: &[Line], clock: i64, painter: &mut Painter<'_>) {
        self.body.height = usize::from(area.height);
        let cursor = lines.iter().position(|line| matches!(line, Line::Together(index) if *index == self.at));
        if std::mem::take(&mut self.follow)
            && let Some(cursor) = cursor
        {
            self.body.offset =
                self.body.offset.max((cursor + 2).saturating_sub(self.body.height)).min(cursor);
        }
        self.body.offset = self.body.offset.min(lines.len().saturating_sub(self.body.height));
        let mut shown: Vec<&Line> = lines.iter().skip(self.body.offset).take(self.body.height).collect();
        // A key selects the row under the cursor, so it stays visible wherever the text is scrolled to.
        if let Some(cursor) = cursor.filter(|_| shown.len() > 2) {
            let last = shown.len() - 1;
            if cursor < self.body.offset {
                shown[0] = &lines[cursor];
            } else if cursor > self.body.offset + last {
                shown[last] = &lines[cursor];
            }
        }
        let shown = shown.into_iter();
        let list = self.list_rows(clock);
        for (line, y) in shown.zip(area.y..) {
            let row = Rect { y, height: 1, ..area };
            match line {
                Line::Plain(line) => {
                    painter.line(area.x, y, line, area.width);
                }
                Line::Warning(text, first) => {
                    let band = Rect { x: area.x.saturating_sub(1), width: area.width + 2, ..row };
                    painter.band(band, Role::DangerBand);
                    painter.put(band.x, y, painter.glyphs.gutter, Role::Danger, 1);
                    let sign = if *first { painter.glyphs.warn } else { " " };
                    painter.put(area.x, y, sign, Role::Danger, 1);
                    let role = if *first { Role::Danger } else { Role::Text };
                    painter.put(area.x + 2, y, text, role, area.width.saturating_sub(2));
                }
                Line::Together(index) => self.draw_together(*index, &list, row, painter),
            }
        }
        parts::more_below(area, painter, lines.len(), &self.body);
    }

    /// Returns what distinguishes the gates that are decided together.
    fn list_rows(&self, clock: i64) -> Vec<ListRow> {
        let inputs: Vec<&Value> = self.waiting.iter().map(|one| &one.sheet.inputs).collect();
        let mut differences = Differences::of(&inputs);
        if differences.names.is_empty() {
            differences = Differences::of(&inputs[..1]);
        }
        let is_one_title = self.waiting.len() > 1 && is_same(self.waiting.iter().map(|one| &one.title));
        let same = is_same(self.waiting.iter().map(|one| &one.sheet.headline));
        let row = |one: &PendingGate| {
            let title = one.title.as_deref().filter(|_| !is_one_title);
            let inputs = differences.row(&one.sheet.inputs, title);
            let left = one.sheet.expires_ms.map(|at| at - clock).filter(|left| *left > 0);
            let left = left.filter(|_| one.send_state == SendState::Open);
            ListRow {
                name: if inputs.is_empty() || title.is_some() { one.name() } else { inputs.clone() },
                left: left.map(|left| format!("{} left", age(left))).unwrap_or_default(),
                text: match &one.send_state {
                    SendState::Past(why) => why.clone(),
                    // What is the same in all rows is shown once, below the list.
                    _ if title.is_some() && !inputs.is_empty() => inputs,
                    _ if same => String::new(),
                    _ => shown(&one.sheet.headline),
                },
            }
        };
        self.waiting.iter().map(row).collect()
    }

    fn draw_together(&mut self, index: usize, list: &[ListRow], row: Rect, painter: &mut Painter<'_>) {
        let one = &self.waiting[index];
        let here = index == self.at;
        if here {
            let in_text = matches!(self.focus, Focus::Approver | Focus::Notes);
            let role = if in_text { Role::SelectionWeak } else { Role::Selection };
            painter.band(row, role);
            painter.put(row.x.saturating_sub(1), row.y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        let (sign, role) = match (&one.send_state, one.marked) {
            (SendState::Done, _) => (painter.glyphs.ok, Role::Success),
            (SendState::Past(_), _) => (painter.glyphs.canceled, Role::Muted),
            (SendState::Sent, _) => (painter.glyphs.set, Role::Info),
            (SendState::Open, true) => (painter.glyphs.set, Role::Waiting),
            (SendState::Open, false) => (painter.glyphs.pending, Role::Muted),
        };
        painter.put(row.x, row.y, sign, role, 1);
        let id = tail(&one.sheet.run.0).to_uppercase();
        let widest = |of: fn(&ListRow) -> &str| list.iter().map(|row| cells(of(row))).max().unwrap_or(0);
        let left_width = widest(|row| &row.left);
        let others = 2 + cells(&id) + 2 + left_width;
        let texts = if list.iter().all(|row| row.text.is_empty()) { 1 } else { 2 };
        let name_width = widest(|row| &row.name).min(row.width.saturating_sub(2 + others) / texts);
        let shows = &list[index];
        let columns = [
            (&shows.name, name_width, if here { Role::Strong } else { Role::Text }),
            (&id, cells(&id), Role::Muted),
            (&shows.left, left_width, Role::Warning),
        ];
        let mut x = row.x + 2;
        for (text, width, role) in columns.into_iter().filter(|(_, width, _)| *width > 0) {
            painter.put(x, row.y, &cut_end(text, width, painter.glyphs.ellipsis), role, width);
            x += width + 2;
        }
        let left = row.right().saturating_sub(x);
        painter.put(x, row.y, &cut_end(&shows.text, left, painter.glyphs.ellipsis), Role::Muted, left);
        self.drawn.together.push((row, index));
    }

    fn body_lines(&self, width: u16, roomy: bool, now: Instant, painter: &Painter<'_>) -> Vec<Line> {
        let sheet = self.shown_one();
        let mut out = Vec::new();
        let blank = |out: &mut Vec<Line>| {
            if roomy {
                out.push(Line::Plain(RichLine::default()));
            }
        };
        if let Some(said) = &self.said {
            out.extend(warned(said, width));
            out.push(Line::Plain(RichLine::default()));
        }
        if self.waiting.len() > 1 {
            let what = if sheet.outcome_unknown { "unknown outcomes of" } else { "waiting for" };
            let head = format!("{} {what} {}; space selects", self.waiting.len(), shown(&sheet.capability));
            out.push(Line::Plain(RichLine::of(head, Role::Muted)));
            out.extend((0..self.waiting.len()).map(Line::Together));
            out.push(Line::Plain(RichLine::default()));
        }
        let title = self.waiting[self.at.min(self.waiting.len() - 1)].title.as_deref();
        if let Some(title) = title {
            let title = [Seg::new(shown(title), Role::Strong)];
            out.extend(wrap(&title, width).into_iter().map(|segs| Line::Plain(RichLine::from_segs(segs))));
        }
        for segs in wrap(&[Seg::new(shown(&sheet.headline), Role::Strong)], width) {
            out.push(Line::Plain(RichLine::from_segs(segs)));
        }
        let (place, all) = sheet.place;
        let of = vec![
            Seg::new(format!("step {place} of {all}, "), Role::Muted),
            Seg::new(shown(&sheet.step), Role::Text),
            Seg::new(", of ", Role::Muted),
            Seg::new(shown(&sheet.skill_id), Role::Text),
            Seg::new(format!(" {}", shown(&sheet.run.0)), Role::Muted),
        ];
        out.extend(wrap(&of, width).into_iter().map(|segs| Line::Plain(RichLine::from_segs(segs))));
        blank(&mut out);
        if sheet.outcome_unknown {
            let known = "Outcome unknown: its execution was interrupted.";
            out.extend(warned(known, width));
        }
        if let Some(warning) = &sheet.irreversible {
            out.extend(warned(warning, width));
        }
        if let Some(why) = &sheet.blocked {
            out.extend(warned(why, width));
        }
        if sheet.outcome_unknown || sheet.irreversible.is_some() || sheet.blocked.is_some() {
            blank(&mut out);
        }
        // In a small window the effect comes before the details.
        let look_ahead = |out: &mut Vec<Line>| {
            for (label, segs) in outlook(sheet, parts::clock(self.opened, now)) {
                labelled(label, segs, width, out);
            }
        };
        if !roomy {
            look_ahead(&mut out);
            self.inputs(width, painter, &mut out);
        }
        if !sheet.capability.is_empty() {
            let note = Seg::new(shown(&sheet.capability_note), Role::Muted);
            labelled(
                "capability",
                vec![Seg::new(shown(&sheet.capability), Role::Text), Seg::new(" ", Role::Text), note],
                width,
                &mut out,
            );
        }
        let labels = sheet.labels_text();
        let facts = [
            ("labels", &labels),
            ("binding", &sheet.binding),
            ("isolation", &sheet.isolation),
            ("reason", &sheet.why),
        ];
        for (label, text) in facts {
            if !text.trim().is_empty() {
                labelled(label, vec![Seg::new(shown(text), Role::Text)], width, &mut out);
            }
        }
        if roomy {
            look_ahead(&mut out);
        }
        if roomy {
            blank(&mut out);
            self.inputs(width, painter, &mut out);
            blank(&mut out);
        }
        out
    }

    fn inputs(&self, width: u16, painter: &Painter<'_>, out: &mut Vec<Line>) {
        let sheet = self.shown_one();
        if sheet.inputs.is_null() {
            out.push(Line::Plain(indented("inputs", vec![Seg::new(DecisionSheet::CHANGED, Role::Muted)])));
            return;
        }
        for (at, line) in fields(&sheet.inputs, width.saturating_sub(LABEL)).into_iter().enumerate() {
            out.push(Line::Plain(indented(if at == 0 { "inputs" } else { "" }, line.segs)));
        }
        let digest: String = sheet.inputs_digest.chars().filter(char::is_ascii_alphanumeric).collect();
        let short = match (digest.get(..4), digest.len().checked_sub(4).and_then(|from| digest.get(from..))) {
            (Some(head), Some(end)) => format!("{head}{}{end}", painter.glyphs.ellipsis),
            _ => digest.clone(),
        };
        let line = format!("sha256 {short} {} exactly these inputs are used", painter.glyphs.dot);
        out.push(Line::Plain(indented("", vec![Seg::new(line, Role::Muted)])));
    }
}

/// A line of the middle part.
enum Line {
    Plain(RichLine),
    /// In the danger band; the first line of its text carries the glyph.
    Warning(String, bool),
    /// One of the gates decided together.
    Together(usize),
}

impl Line {
    fn width(&self) -> u16 {
        match self {
            Self::Plain(line) => u16::try_from(line.width()).unwrap_or(u16::MAX),
            Self::Warning(text, _) => cells(text).saturating_add(2),
            Self::Together(_) => 0,
        }
    }
}

/// What a row of the list shows.
struct ListRow {
    /// The title of the run, or the inputs of its step.
    name: String,
    /// The time left to decide.
    left: String,
    /// What would happen, if it is not the same for all, or why no decision is possible any longer.
    text: String,
}

fn warned(text: &str, width: u16) -> Vec<Line> {
    let lines = wrap(&[Seg::new(shown(text), Role::Text)], width.saturating_sub(2));
    let texts = lines.into_iter().map(|segs| RichLine::from_segs(segs).plain_text());
    texts.enumerate().map(|(at, line)| Line::Warning(line, at == 0)).collect()
}

fn indented(label: &str, segs: Vec<Seg>) -> RichLine {
    let pad = usize::from(LABEL.saturating_sub(cells(label)));
    let mut all = vec![Seg::new(format!("{label}{}", " ".repeat(pad)), Role::Muted)];
    all.extend(segs);
    RichLine::from_segs(all)
}

fn labelled(label: &str, segs: Vec<Seg>, width: u16, out: &mut Vec<Line>) {
    for (at, segs) in wrap(&segs, width.saturating_sub(LABEL)).into_iter().enumerate() {
        out.push(Line::Plain(indented(if at == 0 { label } else { "" }, segs)));
    }
}

/// Returns the last three characters of an id, which distinguish runs in a list.
pub(super) fn tail(id: &str) -> String {
    let all: Vec<char> = shown(id).chars().collect();
    all[all.len().saturating_sub(3)..].iter().collect()
}
