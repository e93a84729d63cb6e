//! Draws what a decision would execute, with the list of gates that are decided together.

use std::borrow::Cow;

use ratatui::layout::{Position, Rect};
use serde_json::Value;

use super::super::parts::{self, LABEL};
use super::gates::{Gates, PendingGate, SendState, outlook};
use crate::action::{Action, Context};
use crate::overlay::row_at;
use crate::theme::Role;
use crate::widgets::json_lines::fields;
use crate::widgets::{
    Painter, RichLine, Scroll, Seg, age, break_code, cells, cut_end, exact, rows_above_note, shown, wrap_to,
};
use skills_api::{DecisionPreview, DecisionTarget, Differences, is_same};
use skills_base::number::counted;
use skills_model::{BEFORE_FIRST_STEP, approval_label};
use skills_store::RunId;

/// Maximum number of rows of the list of gates: what would be executed must be visible below it.
const MAX_ROWS: usize = 6;
const MAX_ROWS_IN_SMALL_WINDOW: usize = 3;

/// The middle part, which scrolls.
#[derive(Default)]
pub(super) struct Body {
    pub scroll: Scroll,
    /// Whether the next frame scrolls to the row under the cursor.
    follow: bool,
    /// Rows of the gates in the last frame.
    rows: Vec<(Rect, usize)>,
}

impl Body {
    /// Scrolls to the start, or if necessary to the row under the cursor.
    pub fn show_cursor(&mut self) {
        (self.scroll.offset, self.follow) = (0, true);
    }

    /// Scrolls by rows; drawing clamps the offset.
    pub fn roll(&mut self, rows: isize) {
        self.scroll.offset = self.scroll.offset.saturating_add_signed(rows).min(10_000);
    }

    pub fn row_at(&self, at: Position) -> Option<usize> {
        row_at(&self.rows, at)
    }

    pub fn draw(
        &mut self,
        area: Rect,
        lines: &[Line],
        (gates, in_text, clock): (&Gates, bool, i64),
        painter: &mut Painter<'_>,
    ) {
        self.scroll.height = rows_above_note(lines.len(), area.height);
        let cursor =
            lines.iter().position(|line| matches!(line, Line::Together(index) if *index == gates.at));
        if std::mem::take(&mut self.follow)
            && let Some(cursor) = cursor
        {
            self.scroll.offset =
                self.scroll.offset.max((cursor + 2).saturating_sub(self.scroll.height)).min(cursor);
        }
        self.scroll.offset = self.scroll.offset.min(lines.len().saturating_sub(self.scroll.height));
        let mut shown: Vec<&Line> = lines.iter().skip(self.scroll.offset).take(self.scroll.height).collect();
        // A key selects the row under the cursor, so it stays visible wherever the text is scrolled to.
        if let Some(cursor) = cursor.filter(|_| shown.len() > 2) {
            let last = shown.len() - 1;
            if cursor < self.scroll.offset {
                shown[0] = &lines[cursor];
            } else if cursor > self.scroll.offset + last {
                shown[last] = &lines[cursor];
            }
        }
        let shown = shown.into_iter();
        let list = list_rows(&gates.all, clock);
        self.rows.clear();
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
                Line::Together(index) => {
                    draw_gate(gates, *index, &list, (row, in_text), painter);
                    self.rows.push((row, *index));
                }
            }
        }
        parts::more_below(area, painter, lines.len(), &self.scroll);
    }
}

/// Returns what distinguishes the gates that are decided together.
fn list_rows(all: &[PendingGate], clock: i64) -> Vec<ListRow> {
    let values: Vec<Cow<'_, Value>> = all.iter().map(|one| passed(&one.preview)).collect();
    let inputs: Vec<&Value> = values.iter().map(|value| &**value).collect();
    let mut differences = Differences::of(&inputs).short();
    if differences.names.is_empty() {
        differences = Differences::of(&inputs[..1]).short();
    }
    let is_one_title = all.len() > 1 && is_same(all.iter().map(|one| &one.title));
    let same = is_same(all.iter().map(|one| &one.preview.headline));
    let row = |(one, inputs): (&PendingGate, &Value)| {
        let title = one.title.as_deref().filter(|_| !is_one_title);
        let inputs = differences.line(inputs);
        let left = one.preview.expires_ms.map(|at| at.saturating_sub(clock)).filter(|left| *left > 0);
        let left = left.filter(|_| one.send_state == SendState::Open);
        ListRow {
            name: if inputs.is_empty() || title.is_some() { one.name() } else { inputs.clone() },
            left: left.map(|left| format!("{} left", age(left))).unwrap_or_default(),
            text: match &one.send_state {
                SendState::Past(why) => why.clone(),
                // What is the same in all rows is shown once, below the list.
                _ if title.is_some() && !inputs.is_empty() => inputs,
                _ if same => String::new(),
                _ => shown(&one.preview.headline),
            },
        }
    };
    all.iter().zip(inputs.iter().copied()).map(row).collect()
}

/// Returns what would be passed to the binding: the inputs, and what the run is attached to as one of them.
pub fn passed(preview: &DecisionPreview) -> Cow<'_, Value> {
    match (&preview.inputs, &preview.target) {
        (Value::Object(inputs), Some(target)) => {
            let mut inputs = inputs.clone();
            inputs.insert("attached to".to_owned(), target.text().into());
            Cow::Owned(Value::Object(inputs))
        }
        (inputs, _) => Cow::Borrowed(inputs),
    }
}

fn draw_gate(
    gates: &Gates,
    index: usize,
    list: &[ListRow],
    (row, in_text): (Rect, bool),
    painter: &mut Painter<'_>,
) {
    let one = &gates.all[index];
    let here = index == gates.at;
    if here {
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
    let id = parts::tail(&one.preview.run.0).to_uppercase();
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
}

/// Returns the lines of the middle part.
pub(super) fn body_lines(
    (gates, message): (&Gates, Option<&str>),
    (width, roomy): (u16, bool),
    clock: i64,
    painter: &Painter<'_>,
) -> Vec<Line> {
    let preview = &gates.current().preview;
    let mut out = Vec::new();
    let blank = |out: &mut Vec<Line>| {
        if roomy {
            out.push(Line::Plain(RichLine::default()));
        }
    };
    if let Some(message) = message {
        out.extend(warned(message, width));
        out.push(Line::Plain(RichLine::default()));
    }
    if gates.are_several() {
        list_lines(gates, (width, roomy), painter, &mut out);
    }
    subject_lines(gates, width, &mut out);
    blank(&mut out);
    let unknown = preview.outcome_unknown.then_some("Outcome unknown: its execution was interrupted.");
    let rejected = gates.current().not_approver(gates.names_another);
    let warnings = [unknown, preview.irreversible.as_deref(), preview.blocked.as_deref(), rejected];
    for warning in warnings.into_iter().flatten() {
        out.extend(warned(warning, width));
    }
    if warnings.iter().any(Option::is_some) {
        blank(&mut out);
    }
    // In a small window the effect comes before the details.
    if !roomy {
        outlook_lines(preview, clock, width, &mut out);
        inputs(gates, width, painter, &mut out);
    }
    detail_lines(preview, width, &mut out);
    if roomy {
        outlook_lines(preview, clock, width, &mut out);
        blank(&mut out);
        inputs(gates, width, painter, &mut out);
        blank(&mut out);
    }
    out
}

/// Adds the list of the gates that are decided together, with its heading.
fn list_lines(gates: &Gates, (width, roomy): (u16, bool), painter: &Painter<'_>, out: &mut Vec<Line>) {
    let preview = &gates.current().preview;
    let all = gates.all.len();
    let rows = if roomy { MAX_ROWS } else { MAX_ROWS_IN_SMALL_WINDOW }.min(all);
    let first = (gates.at + 1).saturating_sub(rows);
    let dash = if painter.glyphs.ascii { "-" } else { "–" };
    let capability = shown(&preview.capability);
    // Others may have been decided while the dialog was open.
    let waiting = gates.all.iter().filter(|one| one.is_waiting()).count();
    let head = match (rows < all, preview.outcome_unknown) {
        (false, false) if waiting == 1 => format!("1 run is waiting for {capability}"),
        (false, false) => format!("{waiting} runs are waiting for {capability}"),
        (false, true) => format!("{} of {capability}", counted(waiting, "unknown outcome")),
        (true, is_unknown) if waiting == all => {
            let what = if is_unknown { "loaded unknown outcomes of" } else { "loaded runs waiting for" };
            format!("{}{dash}{} of {all} {what} {capability}", first + 1, first + rows)
        }
        (true, is_unknown) => {
            let what = if is_unknown { "with an unknown outcome of" } else { "waiting for" };
            format!("{}{dash}{} of {all} loaded runs, {waiting} {what} {capability}", first + 1, first + rows)
        }
    };
    let matching = match (&gates.filter, rows < all || preview.outcome_unknown) {
        (None, _) => "",
        (Some(_), false) if waiting == 1 => " and matches the filter",
        (Some(_), false) => " and match the filter",
        (Some(_), true) => ", all matching the filter",
    };
    out.push(Line::Plain(RichLine::of(format!("{head}{matching}; Space selects"), Role::Muted)));
    out.extend((first..first + rows).map(Line::Together));
    // A decision must not apply to a run that is not visible anywhere.
    let is_hidden = |index: usize| !(first..first + rows).contains(&index);
    let hidden = gates
        .all
        .iter()
        .enumerate()
        .filter(|(index, one)| is_hidden(*index) && one.marked && one.send_state == SendState::Open);
    let names: Vec<String> = hidden
        .map(|(_, one)| format!("{} {}", one.name(), parts::tail(&one.preview.run.0).to_uppercase()))
        .collect();
    if !names.is_empty() {
        let text = format!("also selected: {}", names.join(", "));
        let lines = wrap_to(&[Seg::new(text, Role::Waiting)], width, 3, painter.glyphs.ellipsis);
        out.extend(lines.into_iter().map(Line::Plain));
    }
    out.push(Line::Plain(RichLine::default()));
}

/// Adds the title of the run, what its step would do, and the place of the step.
fn subject_lines(gates: &Gates, width: u16, out: &mut Vec<Line>) {
    let preview = &gates.current().preview;
    let title = gates.current().title.as_deref();
    let texts = title.into_iter().chain([preview.headline.as_str()]);
    for text in texts.filter(|text| !text.trim().is_empty()) {
        let segs = [Seg::new(exact(text), Role::Strong)];
        out.extend(break_code(&segs, width).into_iter().map(|segs| Line::Plain(RichLine::from_segs(segs))));
    }
    let (place, all) = preview.place;
    let (before, after) = if preview.step == BEFORE_FIRST_STEP {
        (String::new(), " of ")
    } else {
        (format!("step {place} of {all}, "), ", of ")
    };
    let of = [
        Seg::new(before, Role::Muted),
        Seg::new(shown(approval_label(&preview.step)), Role::Text),
        Seg::new(after, Role::Muted),
        Seg::new(shown(&preview.skill_id), Role::Text),
        Seg::new(format!(" {}", shown(&preview.run.0)), Role::Muted),
    ];
    out.extend(break_code(&of, width).into_iter().map(|segs| Line::Plain(RichLine::from_segs(segs))));
}

/// Adds what happens after the decision.
fn outlook_lines(preview: &DecisionPreview, clock: i64, width: u16, out: &mut Vec<Line>) {
    for (label, segs) in outlook(preview, clock) {
        labeled(label, segs, width, out);
    }
}

/// Adds the capability that would be executed, and by what.
fn detail_lines(preview: &DecisionPreview, width: u16, out: &mut Vec<Line>) {
    if !preview.capability.is_empty() {
        let note = Seg::new(shown(&preview.capability_note), Role::Muted);
        let segs = vec![Seg::new(shown(&preview.capability), Role::Text), Seg::new(" ", Role::Text), note];
        labeled("capability", segs, width, out);
    }
    let labels = preview.labels_text();
    let mut fact = |label: &str, text: &str| {
        if !text.trim().is_empty() {
            labeled(label, vec![Seg::new(exact(text), Role::Text)], width, out);
        }
    };
    fact("labels", &labels);
    fact("binding", &preview.binding);
    for (at, fallback) in preview.fallbacks.iter().enumerate() {
        fact(if at == 0 { "fallbacks" } else { "" }, fallback);
    }
    fact("isolation", &preview.isolation);
    fact("reason", &preview.why);
    for (at, file) in preview.files.iter().enumerate() {
        let label = if at == 0 { "files" } else { "" };
        labeled(label, vec![Seg::new(exact(&file.text()), Role::Text)], width, out);
    }
}

/// Adds what the run is attached to.
fn target_lines(
    target: &DecisionTarget,
    run: &RunId,
    width: u16,
    painter: &Painter<'_>,
    out: &mut Vec<Line>,
) {
    labeled("attached to", vec![Seg::new(exact(&target.text()), Role::Text)], width, out);
    let lines = fields(&target.content, width.saturating_sub(LABEL), &copies_all(painter));
    out.extend(parts::labeled("content", LABEL, lines.into_iter().map(|line| line.segs)).map(Line::Plain));
    if target.truncated {
        let text = format!("truncated; {}", parts::shows_all(run, painter));
        labeled("", vec![Seg::new(text, Role::Warning)], width, out);
    }
}

/// Returns which key copies what the dialog shows.
fn copies_all(painter: &Painter<'_>) -> String {
    format!("{} copies all of it", painter.key_word(Action::Copy, &[Context::Dialog]))
}

/// Adds what would be passed to the binding: the target of the run, and the inputs.
fn inputs(gates: &Gates, width: u16, painter: &Painter<'_>, out: &mut Vec<Line>) {
    let one = gates.current();
    let preview = &one.preview;
    if let Some(target) = &preview.target {
        target_lines(target, &preview.run, width, painter, out);
    }
    if preview.inputs.is_null() {
        out.push(Line::Plain(indented("inputs", vec![Seg::new(DecisionPreview::CHANGED, Role::Muted)])));
        return;
    }
    let lines = fields(&preview.inputs, width.saturating_sub(LABEL), &copies_all(painter));
    out.extend(parts::labeled("inputs", LABEL, lines.into_iter().map(|line| line.segs)).map(Line::Plain));
    let digest: String = preview.inputs_digest.chars().filter(char::is_ascii_alphanumeric).collect();
    let short = match (digest.get(..4), digest.len().checked_sub(4).and_then(|from| digest.get(from..))) {
        (Some(head), Some(end)) => format!("{head}{}{end}", painter.glyphs.ellipsis),
        _ => digest.clone(),
    };
    let target = if preview.target.is_some() { " and this target" } else { "" };
    let (applies, role) = if one.send_state == SendState::Open && !one.marked {
        ("not selected: no decision applies".to_owned(), Role::Warning)
    } else {
        (format!("the decision applies to these inputs{target}"), Role::Muted)
    };
    let line = format!("sha256 {short} {} {applies}", painter.glyphs.dot);
    out.push(Line::Plain(indented("", vec![Seg::new(line, role)])));
}

/// A line of the middle part.
pub(super) enum Line {
    Plain(RichLine),
    /// In the danger band; the first line of its text carries the glyph.
    Warning(String, bool),
    /// One of the gates decided together.
    Together(usize),
}

impl Line {
    pub fn width(&self) -> u16 {
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
    let texts = parts::message_lines(&shown(text), width);
    texts.into_iter().enumerate().map(|(at, line)| Line::Warning(line, at == 0)).collect()
}

fn indented(label: &str, segs: Vec<Seg>) -> RichLine {
    let pad = usize::from(LABEL.saturating_sub(cells(label)));
    let mut all = vec![Seg::new(format!("{label}{}", " ".repeat(pad)), Role::Muted)];
    all.extend(segs);
    RichLine::from_segs(all)
}

fn labeled(label: &str, segs: Vec<Seg>, width: u16, out: &mut Vec<Line>) {
    let lines = break_code(&segs, width.saturating_sub(LABEL));
    out.extend(parts::labeled(label, LABEL, lines).map(Line::Plain));
}
