//! The log, newest line last; follows new lines while it is scrolled to the end.

use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};

use super::{Hint, Outcome, Overlay, centered, frame};
use crate::action::Action;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Scroll, Seg, break_code, cells, counted, cut_end, time_of_day};
use skills_base::duration::to_millis;
use skills_base::telemetry::{Record, RingBuffer};
use skills_skill::safe_text;

/// Width of the column for the source of a line, in cells.
const PLACE: u16 = 18;

pub struct LogView {
    source: RingBuffer,
    scroll: Scroll,
    rows: usize,
    follows: bool,
    area: Rect,
}

impl LogView {
    /// Creates a view of the log, scrolled to its end.
    pub fn new(source: RingBuffer) -> Self {
        Self { source, scroll: Scroll::default(), rows: 0, follows: true, area: Rect::ZERO }
    }

    fn roll(&mut self, rows: isize) {
        self.scroll.roll(rows, self.rows);
        self.follows = self.scroll.offset + self.scroll.height >= self.rows;
    }
}

impl Overlay for LogView {
    fn in_text(&self) -> bool {
        false
    }

    fn key(&mut self, _key: KeyEvent, action: Option<Action>) -> Outcome {
        let page = self.scroll.page();
        let all = isize::try_from(self.rows).unwrap_or(isize::MAX);
        match action {
            Some(Action::Up) => self.roll(-1),
            Some(Action::Down) => self.roll(1),
            Some(Action::PageUp) => self.roll(-page),
            Some(Action::PageDown) => self.roll(page),
            Some(Action::Top) => self.roll(-all),
            Some(Action::Bottom) => self.roll(all),
            Some(Action::Back | Action::ShowLog) => return Outcome::Close,
            _ => {}
        }
        Outcome::Stay
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        self.roll(rows);
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        if self.area.contains(at) { Outcome::Stay } else { Outcome::Close }
    }

    fn hints(&self) -> Vec<Hint> {
        vec![
            Hint::new(Action::Up, "scroll"),
            Hint::new(Action::Bottom, "newest"),
            Hint::new(Action::Back, "close"),
        ]
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, _now: Instant) -> Option<Position> {
        self.area = centered(area, area.width.saturating_sub(4).min(140), area.height.saturating_sub(2));
        let lines = self.source.records();
        let inside = frame(self.area, painter, "Log", &counted(lines.len(), "line"), false);
        let rows: Vec<RichLine> = lines.iter().flat_map(|line| as_rows(line, inside.width)).collect();
        self.rows = rows.len();
        let height = usize::from(inside.height);
        self.scroll.height = height;
        let end = self.rows.saturating_sub(height);
        self.scroll.offset = if self.follows { end } else { self.scroll.offset.min(end) };
        for (row, y) in rows.iter().skip(self.scroll.offset).take(height).zip(inside.y..) {
            painter.line(inside.x, y, row, inside.width);
        }
        if lines.is_empty() {
            painter.put(inside.x, inside.y + 1, "No log entries yet.", Role::Muted, inside.width);
        }
        None
    }
}

fn as_rows(line: &Record, width: u16) -> Vec<RichLine> {
    let (word, role) = match line.level {
        tracing::Level::ERROR => ("error", Role::Danger),
        tracing::Level::WARN => ("warn ", Role::Warning),
        tracing::Level::INFO => ("info ", Role::Info),
        tracing::Level::DEBUG => ("debug", Role::Muted),
        tracing::Level::TRACE => ("trace", Role::Faint),
    };
    let mut head = vec![
        Seg::new(format!("{}  ", clock(line.time)), Role::Muted),
        Seg::new(word, role),
        Seg::new("  ", Role::Text),
    ];
    // A separate column: after the message it would read as a part of it.
    if !line.target.is_empty() && width >= 60 {
        let place = line.target.strip_prefix("skills_").unwrap_or(&line.target);
        let place = cut_end(place, PLACE, "~");
        head.push(Seg::new(format!("{place:<width$}  ", width = usize::from(PLACE)), Role::Muted));
    }
    let indent = head.iter().map(|seg| cells(&seg.text)).sum::<u16>();
    let body = [Seg::new(safe_text::line(&line.message).into_owned(), Role::Text)];
    let broken = break_code(&body, width.saturating_sub(indent).max(10));
    let first = std::iter::once(head)
        .chain(std::iter::repeat_with(|| vec![Seg::new(" ".repeat(usize::from(indent)), Role::Text)]));
    first
        .zip(broken)
        .map(|(head, rest)| RichLine::from_segs(head.into_iter().chain(rest).collect()))
        .collect()
}

/// Formats the time of day in the local time zone.
fn clock(time: std::time::SystemTime) -> String {
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    time_of_day(to_millis(since))
}
