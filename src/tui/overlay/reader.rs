//! The reader: a text in full on the entire screen, with its white space, wrapped to the width; it can be copied
//! entirely.

use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use serde_json::Value;

use super::{DescriptionEdit, Hint, Outcome, Overlay, frame};
use crate::action::{Action, Context};
use crate::field::Field;
use crate::glyphs::{Glyphs, UNICODE};
use crate::pane::{Effect, PaneId};
use crate::theme::Role;
use crate::widgets::bars::{self, cell_of, whole_cells};
use crate::widgets::highlight::marked;
use crate::widgets::json_text::{self, Layout};
use crate::widgets::{
    Painter, RichLine, Scroll, Seg, break_code, cells, count, cut_line, head, plain_score, shown, wrap,
};
use skills_api::CheckResult;
use skills_discovery::{Mark, ScoreComponent, SignalSums};
use skills_skill::safe_text;

/// Width of the column for the label of a result, in cells.
const WORD_WIDTH: usize = 8;
/// Minimum width for two columns, in cells.
const MIN_COLUMNS_WIDTH: u16 = 104;
/// Gap between two columns, in cells.
const BETWEEN_COLUMNS: u16 = 3;
/// Minimum width of a bar, in cells.
const MIN_BAR_WIDTH: u16 = 8;

/// The content of the reader, unescaped: it is made safe when it is drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    pub title: String,
    /// Name of the text in the note about copying.
    pub what: String,
    /// Its parts, from top to bottom.
    pub passages: Vec<Passage>,
    /// Parts next to those if there is enough space, else below them.
    pub alongside: Vec<Passage>,
    /// Parts below both, which stay visible if there is enough space.
    pub foot: Vec<Passage>,
    /// The skill whose description can be edited from here.
    pub draft: Option<DescriptionEdit>,
    /// Whether the text is being computed, and another one with the same title replaces it.
    pub is_pending: bool,
}

/// A part of the reader's content.
#[derive(Debug, Clone, PartialEq)]
pub enum Passage {
    /// The heading of the parts below it.
    Heading(String),
    /// A value: fields with their names, texts verbatim, everything else as JSON.
    Value(Value),
    Check {
        result: CheckResult,
        /// The check's name, padded.
        name: String,
        /// The evidence.
        text: String,
    },
    /// A truncated text: the rest is struck out.
    Cut {
        /// Text before it; the other lines are indented by its width.
        before: String,
        shown: String,
        /// The rest.
        cut: String,
        /// Words of the rest that the request needs.
        lost: Vec<String>,
    },
    /// A description in which matches are marked.
    Marked {
        text: String,
        /// The matches.
        marks: Vec<Mark>,
    },
    Score(ScoreBar),
    /// A text of any number of lines.
    Text {
        /// Text before the first line, such as a time or a name; the other lines are indented by its width.
        before: String,
        text: String,
        /// Its style.
        role: Role,
    },
}

/// A score with its bar, on a scale shared by all bars.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreBar {
    /// The skill or variant.
    pub label: String,
    /// Width of all labels, in cells.
    pub label_width: usize,
    pub rank: Option<usize>,
    pub score: f64,
    /// The score by signal; without it the bar is neutral.
    pub signals: Option<SignalSums>,
    /// The score of a full bar.
    pub scale: f64,
    /// Minimum score for a skill to fit.
    pub fit_threshold: Option<f64>,
    /// Whether it is the skill in question.
    pub is_strong: bool,
}

pub struct Reader {
    pane: PaneId,
    reading: Reading,
    /// The lines, and the width they were wrapped to.
    rows: Vec<RichLine>,
    /// Lines below the others that do not scroll.
    foot: Vec<RichLine>,
    width: u16,
    height: u16,
    scroll: Scroll,
    /// Whether the text grew since it was wrapped.
    is_stale: bool,
    /// The field of the text to find, while it is being entered.
    find: Option<Field>,
    /// The text to find, in lower case.
    query: String,
    /// The lines that contain it, and the one that was jumped to.
    matches: Vec<usize>,
    current: Option<usize>,
}

impl Reader {
    /// Creates a reader at the top of a text.
    pub fn new(pane: PaneId, reading: Reading) -> Self {
        Self {
            pane,
            reading,
            rows: Vec::new(),
            foot: Vec::new(),
            width: 0,
            height: 0,
            scroll: Scroll::default(),
            is_stale: false,
            find: None,
            query: String::new(),
            matches: Vec::new(),
            current: None,
        }
    }

    /// Finds the lines that contain the text again, after the text or the lines changed.
    fn search(&mut self) {
        let contains = |line: &RichLine| line.plain_text().to_lowercase().contains(&self.query);
        let found = self.rows.iter().enumerate().filter(|(_, line)| contains(line)).map(|(at, _)| at);
        self.matches = if self.query.is_empty() { Vec::new() } else { found.collect() };
        self.current = self.current.filter(|at| self.matches.contains(at));
    }

    /// Moves to the next or previous match, or to the first one from the top of the window.
    fn jump(&mut self, to: Jump) {
        let from = self.current.unwrap_or(self.scroll.offset);
        let (all, current) = (&self.matches, self.current);
        let next = match to {
            Jump::FromTop => all.iter().find(|at| **at >= self.scroll.offset),
            Jump::Next => all.iter().find(|at| **at > from || (current.is_none() && **at == from)),
            Jump::Previous => all.iter().rev().find(|at| **at < from).or(all.last()),
        };
        // After the last match comes the first.
        let Some(at) = next.or(all.first()).copied() else { return };
        self.current = Some(at);
        if !(self.scroll.offset..self.scroll.offset + self.scroll.height).contains(&at) {
            self.scroll.offset = at.saturating_sub(self.scroll.height / 3);
            self.scroll.roll(0, self.rows.len());
        }
    }

    /// Handles a key while the text to find is being entered.
    fn enter(&mut self, key: KeyEvent, action: Option<Action>) {
        match action {
            Some(Action::Back) => {
                (self.find, self.query) = (None, String::new());
                self.search();
            }
            Some(Action::Open) => self.find = None,
            _ => {
                if self.find.as_mut().is_some_and(|field| field.key(key)) {
                    self.entered();
                }
            }
        }
    }

    fn entered(&mut self) {
        self.query = self.find.as_ref().map_or("", Field::text).to_lowercase();
        self.current = None;
        self.search();
        self.jump(Jump::FromTop);
    }
}

impl Reader {
    /// Draws the text to find and the number of matches on the lower edge; returns the position of the cursor.
    fn draw_find(&mut self, row: Rect, painter: &mut Painter<'_>) -> Option<Position> {
        if self.find.is_none() && self.query.is_empty() {
            return None;
        }
        let place = self.current.and_then(|at| self.matches.binary_search(&at).ok());
        let note = match place {
            Some(at) => format!(" {} of {} matching lines ", count(at + 1), count(self.matches.len())),
            None if self.query.is_empty() => String::new(),
            None => " no match ".to_owned(),
        };
        let end = painter.right(row.right(), row.y, &note, Role::Muted);
        let x = painter.put(row.x, row.y, " / ", Role::Strong, row.width);
        let text = Rect { x, width: end.saturating_sub(x).min(row.width / 2), ..row };
        let style = painter.theme.style(Role::Field).patch(painter.theme.style(Role::Strong));
        if let Some(field) = &mut self.find {
            return field.draw(text, painter.buf, style, &[]);
        }
        painter.put(x, row.y, &format!("{} ", self.query), Role::Strong, text.width);
        None
    }
}

/// A movement between matches.
enum Jump {
    FromTop,
    Next,
    Previous,
}

impl Overlay for Reader {
    fn in_text(&self) -> bool {
        self.find.is_some()
    }

    fn contexts(&self) -> Vec<Context> {
        let mut contexts = vec![Context::Text, Context::Overlay];
        if self.reading.draft.is_some() {
            // The key for a draft is that of the pane.
            contexts.push(match self.pane {
                PaneId::Discover => Context::Discover,
                PaneId::Golden => Context::Golden,
                _ => Context::Browse,
            });
        }
        contexts
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        if self.find.is_some() {
            self.enter(key, action);
            return Outcome::Stay;
        }
        let page = self.scroll.page();
        let all = isize::try_from(self.rows.len()).unwrap_or(isize::MAX);
        let by = match action {
            Some(Action::Up) => -1,
            Some(Action::Down) => 1,
            Some(Action::PageUp) => -page,
            Some(Action::PageDown) => page,
            Some(Action::Top) => -all,
            Some(Action::Bottom) => all,
            Some(Action::Copy) => {
                let copy = Effect::Copy(unformatted(&self.reading), self.reading.what.clone());
                return Outcome::Request(self.pane, vec![copy]);
            }
            Some(Action::Draft) => {
                return match self.reading.draft.clone() {
                    Some(skill) => Outcome::Done(self.pane, vec![Effect::EditDescription(skill)]),
                    None => Outcome::Stay,
                };
            }
            Some(Action::Back | Action::Read) => return Outcome::Close,
            Some(Action::Filter) => {
                self.find = Some(Field::new());
                0
            }
            Some(Action::FindNext) => {
                self.jump(Jump::Next);
                0
            }
            Some(Action::FindPrevious) => {
                self.jump(Jump::Previous);
                0
            }
            _ => 0,
        };
        self.scroll.roll(by, self.rows.len());
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if self.find.as_mut().is_some_and(|field| field.paste(text)) {
            self.entered();
        }
        Outcome::Stay
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        self.scroll.roll(rows, self.rows.len());
        Outcome::Stay
    }

    fn read_again(&mut self, reading: Reading) {
        if reading.title != self.reading.title || reading == self.reading {
            return;
        }
        if self.reading.is_pending {
            // The text does not continue the one before it.
            *self = Self::new(self.pane, reading);
        } else {
            (self.reading, self.is_stale) = (reading, true);
        }
    }

    fn hints(&self) -> Vec<Hint> {
        if self.find.is_some() {
            return vec![Hint::new(Action::Open, "keep"), Hint::new(Action::Back, "clear")];
        }
        let mut hints = vec![
            Hint::new(Action::Down, "scroll"),
            Hint::new(Action::Bottom, "end"),
            Hint::new(Action::Filter, "find"),
            Hint::new(Action::Copy, "copy all"),
            Hint::new(Action::Back, "close"),
        ];
        if self.reading.draft.is_some() {
            hints.insert(3, Hint::new(Action::Draft, "draft"));
        }
        hints
    }

    fn help_items(&self) -> Vec<Hint> {
        let mut hints = self.hints();
        hints.extend([
            Hint::new(Action::FindNext, "next match"),
            Hint::new(Action::FindPrevious, "previous match"),
        ]);
        hints
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, _now: Instant) -> Option<Position> {
        let width = area.width.saturating_sub(4).max(1);
        if self.is_stale || (width, area.height) != (self.width, self.height) {
            let before = self.rows.len().max(1);
            let at_end = self.scroll.offset + self.scroll.height >= before;
            let height = usize::from(area.height.saturating_sub(2));
            let signs = bars::signs(painter);
            let contexts = self.contexts();
            for passage in &mut self.reading.foot {
                if let Passage::Text { text, .. } = passage {
                    *text = painter.with_keys(text, &contexts);
                }
            }
            self.rows = body_rows(&self.reading, width, painter.glyphs, signs);
            self.foot = rows(&self.reading.foot, width, painter.glyphs, signs);
            if self.foot.len() + 1 > height / 3 {
                append(&mut self.rows, std::mem::take(&mut self.foot));
            }
            if self.is_stale && at_end {
                // At the end, follow new lines; elsewhere, keep the same lines visible.
                self.scroll.offset = self.rows.len();
            } else if width != self.width {
                // Keep the line at the top near the top.
                self.scroll.offset = self.scroll.offset * self.rows.len() / before;
            }
            (self.width, self.height, self.is_stale) = (width, area.height, false);
            self.search();
        }
        let foot = if self.foot.is_empty() { 0 } else { self.foot.len() + 1 };
        self.scroll.height = usize::from(area.height.saturating_sub(2)).saturating_sub(foot);
        self.scroll.roll(0, self.rows.len());
        let (first, all) = (self.scroll.offset, self.rows.len());
        let last = (first + self.scroll.height).min(all);
        let to = if painter.glyphs.ascii { "-" } else { "–" };
        let note = if self.reading.is_pending {
            String::new()
        } else {
            format!("{}{to}{} of {} lines", count(first + 1), count(last), count(all))
        };
        let inside = frame(area, painter, &shown(&self.reading.title), &note, false);
        let shown_rows = self.rows.iter().enumerate().skip(first).take(self.scroll.height);
        for ((at, row), y) in shown_rows.zip(inside.y..) {
            if self.matches.binary_search(&at).is_ok() {
                let here = self.current == Some(at);
                let role = if here { Role::Selection } else { Role::SelectionWeak };
                painter.band(Rect { y, height: 1, ..inside }, role);
                let sign = if here { painter.glyphs.gutter } else { " " };
                painter.put(inside.x.saturating_sub(1), y, sign, Role::Gutter, 1);
            }
            painter.line(inside.x, y, row, inside.width);
        }
        let cursor =
            self.draw_find(Rect { y: area.bottom().saturating_sub(1), height: 1, ..inside }, painter);
        let foot = u16::try_from(self.foot.len()).unwrap_or(inside.height).min(inside.height);
        if foot > 0 {
            let top = inside.bottom().saturating_sub(foot);
            painter.run(inside.x, top.saturating_sub(1), painter.glyphs.rule, inside.width, Role::Rule);
            for (row, y) in self.foot.iter().zip(top..inside.bottom()) {
                painter.line(inside.x, y, row, inside.width);
            }
        }
        cursor
    }
}

/// Returns the lines of a reading at a width, in two columns if there is enough space.
fn body_rows(reading: &Reading, width: u16, glyphs: &Glyphs, signs: [&str; 5]) -> Vec<RichLine> {
    let is_wide = !reading.alongside.is_empty() && width >= MIN_COLUMNS_WIDTH;
    if is_wide {
        let left = (width - BETWEEN_COLUMNS) / 2;
        let right = width - BETWEEN_COLUMNS - left;
        let columns =
            (rows(&reading.passages, left, glyphs, signs), rows(&reading.alongside, right, glyphs, signs));
        next_to_each_other(columns, left, glyphs)
    } else {
        let mut rows_above = rows(&reading.passages, width, glyphs, signs);
        append(&mut rows_above, rows(&reading.alongside, width, glyphs, signs));
        rows_above
    }
}

/// Appends lines after an empty one.
fn append(out: &mut Vec<RichLine>, below: Vec<RichLine>) {
    if !out.is_empty() && !below.is_empty() {
        out.push(RichLine::default());
    }
    out.extend(below);
}

fn next_to_each_other(
    (left, right): (Vec<RichLine>, Vec<RichLine>),
    width: u16,
    glyphs: &Glyphs,
) -> Vec<RichLine> {
    let count = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    (0..count)
        .map(|_| {
            let mut line = left.next().unwrap_or_default();
            let gap = usize::from(width).saturating_sub(line.width());
            line.segs.push(Seg::new(" ".repeat(gap + 1), Role::Text));
            line.segs.push(Seg::new(glyphs.bar, Role::Rule));
            line.segs.push(Seg::new(" ", Role::Text));
            line.segs.extend(right.next().unwrap_or_default().segs);
            line
        })
        .collect()
}

fn rows(passages: &[Passage], width: u16, glyphs: &Glyphs, signs: [&str; 5]) -> Vec<RichLine> {
    let ellipsis = glyphs.ellipsis;
    let mut out = Vec::new();
    for passage in passages {
        match passage {
            Passage::Heading(name) => {
                if !out.is_empty() {
                    out.push(RichLine::default());
                }
                let line = RichLine::of(shown(name), Role::Strong);
                out.push(cut_line(&line, width, ellipsis));
            }
            Passage::Value(Value::Object(fields)) if !fields.is_empty() => {
                for (name, value) in fields {
                    let name = Seg::new(safe_text::line(name).into_owned(), Role::CodeKey);
                    out.push(RichLine::from_segs(vec![name]));
                    push_value(value, 2, width, ellipsis, &mut out);
                }
            }
            Passage::Value(value) => push_value(value, 0, width, ellipsis, &mut out),
            Passage::Check { result, name, text } => {
                let first = out.len();
                let (_, word) = verdict(*result, glyphs);
                push_text(&format!("  {word:<WORD_WIDTH$}{name}"), text, Role::Text, width, &mut out);
                if let Some(line) = out.get_mut(first) {
                    mark(line, *result, glyphs);
                }
            }
            Passage::Cut { before, shown, cut, lost } => {
                push_cut(before, (shown, cut, lost), width, glyphs, &mut out);
            }
            Passage::Marked { text, marks } => push_marked(text, marks, width, glyphs, &mut out),
            Passage::Score(bar) => out.push(score_line(bar, width, glyphs, signs)),
            Passage::Text { before, text, role } => push_text(before, text, *role, width, &mut out),
        }
    }
    out
}

/// Returns the glyph and the label of a result.
fn verdict(result: CheckResult, glyphs: &Glyphs) -> (&'static str, &'static str) {
    match result {
        CheckResult::Pass => (glyphs.ok, "pass"),
        CheckResult::Fail => (glyphs.bad, "FAIL"),
        CheckResult::Unknown => ("?", "unknown"),
    }
}

/// Puts the glyph in front of the first line of a check. Only a failed check is bold.
fn mark(line: &mut RichLine, result: CheckResult, glyphs: &Glyphs) {
    let (sign, _) = verdict(result, glyphs);
    let (role, text) = match result {
        CheckResult::Pass => (Role::Success, Role::Muted),
        CheckResult::Fail => (Role::Danger, Role::Strong),
        CheckResult::Unknown => (Role::Warning, Role::Text),
    };
    let weight = if result == CheckResult::Fail { Modifier::BOLD } else { Modifier::empty() };
    if let Some(head) = line.segs.first_mut() {
        head.text = head.text.trim_start().to_owned();
        head.role = text;
    }
    for seg in &mut line.segs {
        seg.plus |= weight;
    }
    line.segs.insert(0, Seg::new(format!("{sign} "), role));
}

fn push_value(value: &Value, indent: u16, width: u16, ellipsis: &str, out: &mut Vec<RichLine>) {
    let pad = " ".repeat(usize::from(indent));
    if let Value::String(text) = value {
        push_text(&pad, text, Role::Text, width, out);
        return;
    }
    let layout = Layout { width: width.saturating_sub(indent), expanded: true, ellipsis };
    for line in json_text::lines(value, layout).0 {
        let mut segs = vec![Seg::new(pad.clone(), Role::Text)];
        segs.extend(line.segs);
        out.push(RichLine::from_segs(segs));
    }
}

fn push_text(before: &str, text: &str, role: Role, width: u16, out: &mut Vec<RichLine>) {
    let before = safe_text::line(before).into_owned();
    let indent = cells(&before).min(width / 2);
    let text = safe_text::block(text);
    let mut head = Seg::new(head(&before, indent), Role::Muted);
    for line in text.trim_end_matches('\n').split('\n') {
        for part in break_code(&[Seg::new(line, role)], width - indent) {
            let mut segs = vec![head];
            segs.extend(part);
            out.push(RichLine::from_segs(segs));
            head = Seg::new(" ".repeat(usize::from(indent)), Role::Text);
        }
    }
}

/// Appends a text whose end is struck out; in ASCII it is in braces.
fn push_cut(
    before: &str,
    (retained, cut, lost): (&str, &str, &[String]),
    width: u16,
    glyphs: &Glyphs,
    out: &mut Vec<RichLine>,
) {
    let before = safe_text::line(before).into_owned();
    let indent = cells(&before).min(width / 2);
    let mut segs = vec![Seg::new(shown(retained), Role::Text)];
    let mut rest = marked(cut, &marks_of(cut, lost), Role::Muted, glyphs.ascii);
    rest.iter_mut().for_each(|seg| seg.plus |= Modifier::CROSSED_OUT);
    if cut.starts_with(char::is_whitespace) {
        rest.insert(0, Seg::new(" ", Role::Muted));
    }
    if glyphs.ascii {
        rest.insert(0, Seg::new("{-", Role::Muted));
        rest.push(Seg::new("-}", Role::Muted));
    }
    segs.extend(rest);
    let mut head = Seg::new(head(&before, indent), Role::Muted);
    for part in wrap(&segs, width - indent) {
        let mut line = vec![head];
        line.extend(part);
        out.push(RichLine::from_segs(line));
        head = Seg::new(" ".repeat(usize::from(indent)), Role::Text);
    }
}

/// Finds words in a text, ignoring the case of ASCII letters.
fn marks_of(text: &str, words: &[String]) -> Vec<Mark> {
    let lower = text.to_ascii_lowercase();
    let mut marks: Vec<Mark> = words
        .iter()
        .filter(|word| !word.is_empty())
        .filter_map(|word| {
            let start = lower.find(&word.to_ascii_lowercase())?;
            let (start, end) = (u32::try_from(start).ok()?, u32::try_from(start + word.len()).ok()?);
            Some(Mark { start, end, signal: ScoreComponent::Description })
        })
        .collect();
    marks.sort_by_key(|mark| mark.start);
    marks
}

/// Appends a description next to its rail.
fn push_marked(text: &str, marks: &[Mark], width: u16, glyphs: &Glyphs, out: &mut Vec<RichLine>) {
    let segs = marked(text, marks, Role::Text, glyphs.ascii);
    for part in wrap(&segs, width.saturating_sub(2).max(1)) {
        let mut line = vec![Seg::new(glyphs.levels[1], Role::Level1), Seg::new(" ", Role::Text)];
        line.extend(part);
        out.push(RichLine::from_segs(line));
    }
}

/// Formats label, rank, score and the bar, with a mark at the score from which a skill fits.
fn score_line(bar: &ScoreBar, width: u16, glyphs: &Glyphs, signs: [&str; 5]) -> RichLine {
    let (label, score) =
        if bar.is_strong { (Role::Strong, Role::Strong) } else { (Role::Text, Role::Strong) };
    let rank = bar.rank.map(count).unwrap_or_default();
    let mut segs = vec![
        Seg::new(format!("  {:<1$}", shown(&bar.label), bar.label_width), label),
        Seg::new(format!("{rank:>5}"), Role::Muted),
        Seg::new(format!("{:>7}  ", plain_score(bar.score, glyphs)), score),
    ];
    let used: usize = segs.iter().map(|seg| usize::from(cells(&seg.text))).sum();
    let available = u16::try_from(usize::from(width).saturating_sub(used + 1)).unwrap_or_default();
    if available < MIN_BAR_WIDTH || bar.scale <= 0.0 {
        return RichLine::from_segs(segs);
    }
    let mut drawn = 0;
    if let Some(signals) = &bar.signals {
        let lengths = whole_cells(signals, bar.scale, available, bar.fit_threshold);
        for ((length, sign), role) in lengths.into_iter().zip(signs).zip(bars::SIGNALS) {
            drawn += length;
            segs.push(Seg::new(sign.repeat(usize::from(length)), role));
        }
    } else {
        drawn = (bar.score.clamp(0.0, bar.scale) / bar.scale * f64::from(available)).round() as u16;
        if let Some(from) = bar.fit_threshold {
            drawn = bars::up_to_mark(drawn, cell_of(from, bar.scale, available), bar.score >= from);
        }
        let sign = if glyphs.ascii { "#" } else { "▆" };
        segs.push(Seg::new(sign.repeat(usize::from(drawn)), Role::Level1));
    }
    if let Some(from) = bar.fit_threshold {
        let at = (from / bar.scale * f64::from(available)).floor().max(0.0) as u16;
        if at >= drawn && at < available {
            segs.push(Seg::new(" ".repeat(usize::from(at - drawn)), Role::Text));
            segs.push(Seg::new(glyphs.tick, Role::Faint));
        }
    }
    RichLine::from_segs(segs)
}

/// Returns a reading as text for the clipboard: unwrapped and complete.
fn unformatted(reading: &Reading) -> String {
    let json = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let mut out = String::new();
    for passage in reading.passages.iter().chain(&reading.alongside).chain(&reading.foot) {
        match passage {
            Passage::Heading(name) => {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(name);
            }
            Passage::Value(value) => out.push_str(&json(value)),
            Passage::Check { result, name, text } => {
                let (sign, word) = verdict(*result, &UNICODE);
                let line = format!("{sign} {word:<WORD_WIDTH$}{name}{text}");
                out.push_str(&line);
            }
            Passage::Marked { text, .. } => out.push_str(text),
            Passage::Score(bar) => {
                let rank = bar.rank.map(|rank| format!(", rank {rank}")).unwrap_or_default();
                let line = format!("{}: {:.2}{rank}", bar.label, bar.score);
                out.push_str(&line);
            }
            Passage::Cut { before, shown, cut, .. } => {
                let line = format!("{before}{shown}{{-{cut}-}}");
                out.push_str(&line);
            }
            Passage::Text { before, text, .. } => {
                out.push_str(before);
                out.push_str(text);
            }
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(reading: &Reading, width: u16, glyphs: &Glyphs) -> Vec<RichLine> {
        let signs = ["n", "d", "b", "s", "r"];
        let mut all = body_rows(reading, width, glyphs, signs);
        append(&mut all, super::rows(&reading.foot, width, glyphs, signs));
        all
    }

    fn reading() -> Reading {
        let text = |before: &str, text: &str| Passage::Text {
            before: before.to_owned(),
            text: text.to_owned(),
            role: Role::Text,
        };
        Reading {
            title: "t".to_owned(),
            what: "output".to_owned(),
            passages: vec![
                Passage::Heading("outputs".to_owned()),
                Passage::Value(json!({"page": "Errors\n     2 x a  b\n\tend", "rows": [1, 2]})),
                Passage::Heading("printed".to_owned()),
                text("09:00:00 a  ", "col1    col2\n\u{1b}[2Jnext line that is long"),
            ],
            ..Reading::default()
        }
    }

    #[test]
    fn columns_are_kept_and_long_lines_wrapped() {
        let lines: Vec<String> = rows(&reading(), 30, &UNICODE).iter().map(RichLine::plain_text).collect();
        assert_eq!(
            lines,
            [
                "outputs",
                "page",
                "  Errors",
                "       2 x a  b",
                "      end",
                "rows",
                "  [1, 2]",
                "",
                "printed",
                "09:00:00 a  col1    col2",
                "            ␛[2Jnext line ",
                "            that is long",
            ]
        );
        let narrow = rows(&reading(), 8, &UNICODE);
        assert!(narrow.iter().all(|line| line.width() <= 8), "{narrow:?}");
    }

    #[test]
    fn check_has_a_glyph_and_a_word() {
        let check =
            |result| Passage::Check { result, name: "folder  ".to_owned(), text: "one two three".to_owned() };
        let results = [CheckResult::Pass, CheckResult::Fail, CheckResult::Unknown];
        let reading = Reading { passages: results.map(check).into(), ..Reading::default() };
        let lines: Vec<String> = rows(&reading, 60, &UNICODE).iter().map(RichLine::plain_text).collect();
        let expected = [
            "✓ pass    folder  one two three",
            "✗ FAIL    folder  one two three",
            "? unknown folder  one two three",
        ];
        assert_eq!(lines, expected);
        assert_eq!(unformatted(&reading), expected.map(|line| format!("{line}\n")).concat());
    }

    #[test]
    fn truncated_part_is_struck_out() {
        let cut = |shown: &str, cut: &str| Passage::Cut {
            before: "shown: ".to_owned(),
            shown: shown.to_owned(),
            cut: cut.to_owned(),
            lost: vec!["Omers".to_owned()],
        };
        let reading = Reading { passages: vec![cut("Bills cust", "omers.")], ..Reading::default() };
        let lines = rows(&reading, 60, &UNICODE);
        assert_eq!(lines[0].plain_text(), "shown: Bills customers.");
        let struck = lines[0].segs.iter().filter(|seg| seg.plus.contains(Modifier::CROSSED_OUT));
        assert_eq!(struck.map(|seg| seg.text.as_str()).collect::<String>(), "omers.");
        assert_eq!(
            rows(&reading, 60, &crate::glyphs::ASCII)[0].plain_text(),
            "shown: Bills cust{-[omers].-}"
        );
        let tinted = lines[0].segs.iter().find(|seg| seg.role == Role::MarkDescription);
        assert_eq!(tinted.map(|seg| seg.text.as_str()), Some("omers"));
        assert_eq!(unformatted(&reading), "shown: Bills cust{-omers.-}\n");
    }

    #[test]
    fn columns_are_side_by_side_if_they_fit() {
        let text =
            |text: &str| Passage::Text { before: String::new(), text: text.to_owned(), role: Role::Text };
        let reading = Reading {
            passages: vec![text("left"), text("second")],
            alongside: vec![text("right")],
            foot: vec![text("foot")],
            ..Reading::default()
        };
        let rendered = |width| -> Vec<String> {
            rows(&reading, width, &UNICODE)
                .iter()
                .map(|line| line.plain_text().trim_end().to_owned())
                .collect()
        };
        let left = |text: &str| format!("{text:<52} │");
        assert_eq!(
            rendered(107),
            [format!("{} right", left("left")), left("second"), String::new(), "foot".to_owned()]
        );
        assert_eq!(rendered(60), ["left", "second", "", "right", "", "foot"]);
    }

    #[test]
    fn a_bar_is_as_long_as_its_score() {
        let bar = |signals| ScoreBar {
            label: "a".to_owned(),
            label_width: 3,
            rank: Some(2),
            score: 1.0,
            signals,
            scale: 2.0,
            fit_threshold: Some(1.5),
            is_strong: false,
        };
        let line = |bar: &ScoreBar| score_line(bar, 38, &UNICODE, ["n", "d", "b", "s", "r"]).plain_text();
        let head = "  a      2   1.00  ";
        assert_eq!(line(&bar(Some([0.5, 0.5, 0.0, 0.0, 0.0]))), format!("{head}nnnnndddd    ┊"));
        assert_eq!(line(&bar(None)), format!("{head}▆▆▆▆▆▆▆▆▆    ┊"));
    }

    #[test]
    fn copied_text_is_the_original() {
        let text = unformatted(&reading());
        assert!(text.contains("09:00:00 a  col1    col2\n\u{1b}[2Jnext line that is long\n"), "{text}");
        assert!(text.starts_with("outputs\n{\n  \"page\": \"Errors\\n     2 x a  b"), "{text}");
    }
}
