//! A text in full over the entire screen: its white space as it is, lines broken at the width, all of it to copy.

use std::time::Instant;

use crossterm::event::{KeyEvent, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use serde_json::Value;

use super::{Drafting, Hint, Outcome, Overlay, frame};
use crate::action::{Action, Context};
use crate::glyphs::{Glyphs, UNICODE};
use crate::pane::{Effect, PaneId};
use crate::theme::Role;
use crate::widgets::format::count;
use crate::widgets::json_text::{self, Layout};
use crate::widgets::painter::Painter;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::scroll::Scroll;
use crate::widgets::text_width::{cells, head, shown};
use crate::widgets::wrap::{break_code, wrap};
use skills_api::CheckResult;
use skills_skill::safe_text;

/// Cells of the column that has the word of a result.
const WORD_WIDTH: usize = 8;

/// What is read, as it is: it is made safe where it is drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// Of what.
    pub title: String,
    /// What the copy of it is called.
    pub what: String,
    /// Its parts, from top to bottom.
    pub passages: Vec<Passage>,
    /// The skill whose description can be edited from here.
    pub draft: Option<Drafting>,
}

/// A part of a reading.
#[derive(Debug, Clone, PartialEq)]
pub enum Passage {
    /// What the parts below it are.
    Heading(String),
    /// A value: fields with their names, texts as they are, everything else as JSON.
    Value(Value),
    /// The result of a check.
    Check {
        /// The result.
        result: CheckResult,
        /// What was checked, padded.
        name: String,
        /// The evidence.
        text: String,
    },
    /// A text that is shown only in part: the rest is struck out.
    Cut {
        /// What is before it; the other lines are as far in.
        before: String,
        /// What is shown.
        shown: String,
        /// The rest.
        cut: String,
    },
    /// A text of any number of lines, with what is before the first of them.
    Text {
        /// A time or a name; the other lines are as far in.
        before: String,
        /// The text.
        text: String,
        /// How it looks.
        role: Role,
    },
}

/// The overlay.
pub struct Reader {
    pane: PaneId,
    reading: Reading,
    /// The lines, and the width they were made for.
    rows: Vec<RichLine>,
    width: u16,
    scroll: Scroll,
}

impl Reader {
    /// Opens a reading at its top.
    #[must_use]
    pub fn new(pane: PaneId, reading: Reading) -> Self {
        Self { pane, reading, rows: Vec::new(), width: 0, scroll: Scroll::default() }
    }
}

impl Overlay for Reader {
    fn in_text(&self) -> bool {
        false
    }

    fn contexts(&self) -> Vec<Context> {
        let mut contexts = vec![Context::Text, Context::Overlay];
        if self.reading.draft.is_some() {
            // The key of a draft is that of the pane.
            contexts.push(match self.pane {
                PaneId::Discover => Context::Discover,
                PaneId::Golden => Context::Golden,
                _ => Context::Browse,
            });
        }
        contexts
    }

    fn key(&mut self, _key: KeyEvent, action: Option<Action>) -> Outcome {
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
                return Outcome::Ask(self.pane, vec![copy]);
            }
            Some(Action::Draft) => {
                return match self.reading.draft.clone() {
                    Some(skill) => Outcome::Done(self.pane, vec![Effect::EditDescription(skill)]),
                    None => Outcome::Stay,
                };
            }
            Some(Action::Back | Action::ReadWhole) => return Outcome::Close,
            _ => 0,
        };
        self.scroll.roll(by, self.rows.len());
        Outcome::Stay
    }

    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        match event.kind {
            MouseEventKind::ScrollUp => self.scroll.roll(-3, self.rows.len()),
            MouseEventKind::ScrollDown => self.scroll.roll(3, self.rows.len()),
            _ => {}
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let mut hints = vec![
            Hint { action: Action::Down, label: "scroll" },
            Hint { action: Action::Bottom, label: "end" },
            Hint { action: Action::Copy, label: "copy all" },
            Hint { action: Action::Back, label: "close" },
        ];
        if self.reading.draft.is_some() {
            hints.insert(2, Hint { action: Action::Draft, label: "draft" });
        }
        hints
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, _now: Instant) -> Option<Position> {
        let width = area.width.saturating_sub(4).max(1);
        if width != self.width {
            // The line that is on top stays near the top.
            let before = self.rows.len().max(1);
            self.rows = rows(&self.reading, width, painter.glyphs);
            self.scroll.offset = self.scroll.offset * self.rows.len() / before;
            self.width = width;
        }
        self.scroll.height = usize::from(area.height.saturating_sub(2));
        self.scroll.roll(0, self.rows.len());
        let (first, all) = (self.scroll.offset, self.rows.len());
        let last = (first + self.scroll.height).min(all);
        let note = format!("{} to {} of {} lines", count(first + 1), count(last), count(all));
        let inside = frame(area, painter, &shown(&self.reading.title), &note, false);
        for (row, y) in self.rows.iter().skip(first).take(usize::from(inside.height)).zip(inside.y..) {
            painter.line(inside.x, y, row, inside.width);
        }
        None
    }
}

/// The lines of a reading at a width.
fn rows(reading: &Reading, width: u16, glyphs: &Glyphs) -> Vec<RichLine> {
    let ellipsis = glyphs.ellipsis;
    let mut out = Vec::new();
    for passage in &reading.passages {
        match passage {
            Passage::Heading(name) => {
                if !out.is_empty() {
                    out.push(RichLine::default());
                }
                out.push(RichLine::of(shown(name), Role::Strong));
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
            Passage::Cut { before, shown, cut } => push_cut(before, (shown, cut), width, glyphs, &mut out),
            Passage::Text { before, text, role } => push_text(before, text, *role, width, &mut out),
        }
    }
    out
}

/// The sign and the word of a result.
fn verdict(result: CheckResult, glyphs: &Glyphs) -> (&'static str, &'static str) {
    match result {
        CheckResult::Pass => (glyphs.ok, "pass"),
        CheckResult::Fail => (glyphs.bad, "FAIL"),
        CheckResult::Unknown => ("?", "unknown"),
    }
}

/// Puts the sign in front of the first line of a check. Only a check that failed is bold.
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
    let layout = Layout { width: width.saturating_sub(indent), whole: true, ellipsis };
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

/// A text whose end is struck out; in ASCII that is in braces.
fn push_cut(before: &str, (kept, cut): (&str, &str), width: u16, glyphs: &Glyphs, out: &mut Vec<RichLine>) {
    let before = safe_text::line(before).into_owned();
    let indent = cells(&before).min(width / 2);
    let (kept, cut) = (shown(kept), shown(cut));
    let cut = if glyphs.ascii { format!("{{-{cut}-}}") } else { cut };
    let segs = [Seg::new(kept, Role::Text), Seg::new(cut, Role::Muted).with(Modifier::CROSSED_OUT)];
    let mut head = Seg::new(head(&before, indent), Role::Muted);
    for part in wrap(&segs, width - indent) {
        let mut line = vec![head];
        line.extend(part);
        out.push(RichLine::from_segs(line));
        head = Seg::new(" ".repeat(usize::from(indent)), Role::Text);
    }
}

/// A reading as text, for the clipboard: nothing broken, nothing left out.
fn unformatted(reading: &Reading) -> String {
    let json = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let mut out = String::new();
    for passage in &reading.passages {
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
            Passage::Cut { before, shown, cut } => {
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
            draft: None,
        }
    }

    #[test]
    fn columns_stay_columns_and_long_lines_are_broken_not_cut() {
        let lines: Vec<String> = rows(&reading(), 30, &UNICODE).iter().map(RichLine::plain).collect();
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
                "            ␛[2Jnext line that",
                "             is long",
            ]
        );
        let narrow = rows(&reading(), 8, &UNICODE);
        assert!(narrow.iter().all(|line| line.width() <= 8), "{narrow:?}");
    }

    #[test]
    fn a_check_has_a_sign_and_a_word() {
        let check =
            |result| Passage::Check { result, name: "folder  ".to_owned(), text: "one two three".to_owned() };
        let results = [CheckResult::Pass, CheckResult::Fail, CheckResult::Unknown];
        let reading = Reading { passages: results.map(check).into(), ..Reading::default() };
        let lines: Vec<String> = rows(&reading, 60, &UNICODE).iter().map(RichLine::plain).collect();
        let expected = [
            "✓ pass    folder  one two three",
            "✗ FAIL    folder  one two three",
            "? unknown folder  one two three",
        ];
        assert_eq!(lines, expected);
        assert_eq!(unformatted(&reading), expected.map(|line| format!("{line}\n")).concat());
    }

    #[test]
    fn the_part_that_is_cut_is_struck_out() {
        let cut = |shown: &str, cut: &str| Passage::Cut {
            before: "shown: ".to_owned(),
            shown: shown.to_owned(),
            cut: cut.to_owned(),
        };
        let reading = Reading { passages: vec![cut("Bills cust", "omers.")], ..Reading::default() };
        let lines = rows(&reading, 60, &UNICODE);
        assert_eq!(lines[0].plain(), "shown: Bills customers.");
        let struck = lines[0].segs.iter().filter(|seg| seg.plus.contains(Modifier::CROSSED_OUT));
        assert_eq!(struck.map(|seg| seg.text.as_str()).collect::<String>(), "omers.");
        assert_eq!(rows(&reading, 60, &crate::glyphs::ASCII)[0].plain(), "shown: Bills cust{-omers.-}");
        assert_eq!(unformatted(&reading), "shown: Bills cust{-omers.-}\n");
    }

    #[test]
    fn what_is_copied_is_what_was_there() {
        let text = unformatted(&reading());
        assert!(text.contains("09:00:00 a  col1    col2\n\u{1b}[2Jnext line that is long\n"), "{text}");
        assert!(text.starts_with("outputs\n{\n  \"page\": \"Errors\\n     2 x a  b"), "{text}");
    }
}
