//! The progress of scanning and indexing: a line above the footer while they run.

use ratatui::layout::Rect;

use super::theme::Role;
use super::widgets::format;
use crate::widgets::Painter;
use skills_api::{Event, IndexProgress};
use skills_config::TerminalProgress;
use skills_registry::ScanProgress;

/// The last state of both.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    scan: Option<ScanProgress>,
    index: Option<IndexProgress>,
}

impl Progress {
    /// Updates the progress from an event of the core.
    pub fn on_event(&mut self, event: &Event) {
        match event {
            Event::Scan(scan) => self.scan = (!scan.done).then_some(*scan),
            Event::Index(index) => self.index = (!index.done).then_some(*index),
            Event::Catalog(_)
            | Event::Notice(_)
            | Event::Waiting(_)
            | Event::Connection(_)
            | Event::Replaced => {}
        }
    }

    /// Returns whether something is in progress.
    pub fn busy(&self) -> bool {
        self.scan.is_some() || self.index.is_some()
    }

    /// Returns the progress that the terminal shows.
    pub fn in_terminal(&self) -> TerminalProgress {
        match (self.scan, self.index) {
            (Some(_), _) => TerminalProgress::Busy,
            (None, Some(index)) => TerminalProgress::of(index.indexed, index.total),
            (None, None) => TerminalProgress::Hidden,
        }
    }

    pub fn draw(&self, row: Rect, painter: &mut Painter<'_>, spinner: &str) {
        // The number of files is unknown until the walk is complete, so scanning has no bar.
        let (verb, done, rest, total) = match (self.scan, self.index) {
            (Some(scan), _) => ("reading skills:", scan.parsed, " files".to_owned(), 0),
            (None, Some(index)) => {
                ("indexed", index.indexed, format!(" of {} files", format::count(index.total)), index.total)
            }
            (None, None) => return,
        };
        let mut x = painter.put(row.x + 2, row.y, spinner, Role::Info, 1) + 1;
        for (text, role) in
            [(format!("{verb} "), Role::Text), (format::count(done), Role::Strong), (rest, Role::Muted)]
        {
            x = painter.put(x, row.y, &text, role, row.right().saturating_sub(x));
        }
        let x = x.max(row.x + 28) + 3;
        let available = row.right().saturating_sub(x + 2).min(30);
        if available < 8 || total == 0 {
            return;
        }
        let full = (usize::from(available) * done.min(total) / total) as u16;
        painter.run(x, row.y, painter.glyphs.heavy, full, Role::Info);
        painter.run(x + full, row.y, painter.glyphs.rule, available - full, Role::Faint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_until_both_are_complete() {
        let mut progress = Progress::default();
        assert!(!progress.busy());
        progress.on_event(&Event::Scan(ScanProgress { found: 10, parsed: 4, done: false }));
        progress.on_event(&Event::Index(IndexProgress { indexed: 1, total: 4, done: false }));
        assert_eq!(progress.in_terminal(), TerminalProgress::Busy);
        progress.on_event(&Event::Scan(ScanProgress { found: 10, parsed: 10, done: true }));
        assert!(progress.busy());
        assert_eq!(progress.in_terminal(), TerminalProgress::Percent(25));
        progress.on_event(&Event::Index(IndexProgress { indexed: 10, total: 10, done: true }));
        assert!(!progress.busy());
        assert_eq!(progress.in_terminal(), TerminalProgress::Hidden);
    }
}
