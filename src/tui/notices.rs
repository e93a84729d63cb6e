//! Short notes that fade, and errors that stay until they are dismissed.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ratatui::layout::Rect;

use super::theme::Role;
use crate::widgets::{Painter, Seg, cells, cut_end, wrap_to};
use skills_skill::safe_text;

/// How long a note is shown in full, and how long it is then shown dimmed.
const FULL: Duration = Duration::from_secs(3);
const FAINT: Duration = Duration::from_millis(700);
/// Maximum number of notes on screen; the oldest are dropped.
const MAX_NOTES: usize = 3;

/// An error shown on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorNotice {
    /// What failed.
    pub what: String,
    /// Where, and what to do.
    pub place: String,
}

/// A note on the screen.
#[derive(Debug)]
struct Note {
    text: String,
    since: Instant,
    /// Whether it only concerns the pane that is shown.
    of_pane: bool,
}

/// Notes and errors on screen.
#[derive(Debug, Default)]
pub struct Notices {
    notes: VecDeque<Note>,
    /// The note about a key without an action, while it is shown.
    hint: Option<String>,
    errors: VecDeque<ErrorNotice>,
}

impl Notices {
    pub fn note(&mut self, text: impl Into<String>, now: Instant) {
        self.push(&text.into(), now, false);
    }

    /// Shows a note about the pane that is shown, at most until [`Self::leave_pane`].
    pub fn note_of_pane(&mut self, text: impl Into<String>, now: Instant) {
        self.push(&text.into(), now, true);
    }

    fn push(&mut self, text: &str, since: Instant, of_pane: bool) {
        let text = safe_text::line(text).into_owned();
        self.notes.retain(|note| note.text != text);
        self.notes.push_back(Note { text, since, of_pane });
        if self.notes.len() > MAX_NOTES {
            self.notes.pop_front();
        }
    }

    /// Removes the notes about the pane that was shown.
    pub fn leave_pane(&mut self) {
        self.notes.retain(|note| !note.of_pane);
    }

    /// Shows a hint in place of the previous one.
    pub fn hint(&mut self, text: impl Into<String>, now: Instant) {
        let text = safe_text::line(&text.into()).into_owned();
        if let Some(last) = self.hint.replace(text.clone()) {
            self.notes.retain(|note| note.text != last);
        }
        self.note_of_pane(text, now);
    }

    /// Shows an error until it is dismissed. An identical error is not added twice.
    pub fn error(&mut self, what: impl Into<String>, place: impl Into<String>) {
        let what = safe_text::line(&what.into()).into_owned();
        let trouble = ErrorNotice { what, place: safe_text::line(&place.into()).into_owned() };
        if !self.errors.contains(&trouble) {
            tracing::error!(detail = %trouble.place, "{}", trouble.what);
            self.errors.push_back(trouble);
        }
    }

    /// Replaces the details of an error that is still shown.
    pub fn retell(&mut self, what: &str, place: impl Into<String>) {
        if let Some(trouble) = self.errors.iter_mut().find(|trouble| trouble.what == what) {
            trouble.place = safe_text::line(&place.into()).into_owned();
        }
    }

    /// Removes an error that no longer applies.
    pub fn over(&mut self, what: &str) {
        self.errors.retain(|trouble| trouble.what != what);
    }

    /// Dismisses the oldest error. Returns whether there was one.
    pub fn dismiss(&mut self) -> bool {
        self.errors.pop_front().is_some()
    }

    pub fn any_error(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Removes expired notes. Returns whether the frame changes at this moment.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.notes.len();
        self.notes.retain(|note| now < note.since + FULL + FAINT);
        before != self.notes.len() || self.notes.iter().any(|note| now >= note.since + FULL)
    }

    /// Returns when the frame next changes without input.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        self.notes
            .iter()
            .flat_map(|note| [note.since + FULL, note.since + FULL + FAINT])
            .filter(|at| *at > now)
            .min()
    }

    /// Draws notes and errors at the bottom right of an area. Notes are drawn only in a large area: in a small one they
    /// would cover what they refer to, and are in the footer's row ([`Self::draw_in_row`]). `dismiss_key` is the key that
    /// dismisses an error.
    pub fn draw(&self, area: Rect, painter: &mut Painter<'_>, dismiss_key: &str, now: Instant) {
        let mut bottom = area.bottom();
        if let Some(trouble) = self.errors.front()
            && area.height >= 3
        {
            let width = if area.width < 80 { area.width } else { area.width / 2 };
            let band = Rect::new(area.right() - width, area.y, width, bottom - area.y);
            bottom -= self.draw_error(trouble, band, painter, dismiss_key);
        }
        for Note { text, since, .. } in self.notes.iter().rev().filter(|_| roomy(area)) {
            if bottom <= area.top() + 1 {
                break;
            }
            bottom -= 1;
            let text = cut_end(text, area.width.saturating_sub(6), painter.glyphs.ellipsis);
            let width = cells(&text) + 4;
            // Clear the entire row: half of a text next to a note could be read as part of it.
            super::overlay::clear(Rect::new(area.x, bottom, area.width, 1), painter);
            let role = if now >= *since + FULL { Role::Muted } else { Role::Text };
            painter.put(area.right().saturating_sub(width) + 2, bottom, &text, role, width);
        }
    }

    /// Draws the notes in one row, newest first, if they are not drawn over the area. Returns whether there are any.
    pub fn draw_in_row(&self, area: Rect, row: Rect, painter: &mut Painter<'_>, now: Instant) -> bool {
        !roomy(area) && Self::draw_row(self.notes.iter().rev().collect(), row, painter, now)
    }

    /// Draws the notes after a moment in one row, newest first. Returns whether there are any.
    pub fn draw_newer_in_row(
        &self,
        since: Instant,
        row: Rect,
        painter: &mut Painter<'_>,
        now: Instant,
    ) -> bool {
        let newer = self.notes.iter().rev().filter(|note| note.since > since);
        Self::draw_row(newer.collect(), row, painter, now)
    }

    fn draw_row(newest_first: Vec<&Note>, row: Rect, painter: &mut Painter<'_>, now: Instant) -> bool {
        let Some(newest) = newest_first.first() else { return false };
        let texts: Vec<&str> = newest_first.iter().map(|note| note.text.as_str()).collect();
        let text = texts.join(&format!(" {} ", painter.glyphs.dot));
        super::overlay::clear(row, painter);
        let role = if now >= newest.since + FULL { Role::Muted } else { Role::Text };
        let available = row.width.saturating_sub(2);
        painter.put(row.x + 1, row.y, &cut_end(&text, available, painter.glyphs.ellipsis), role, available);
        true
    }

    /// Draws an error at the bottom of a column, as high as its text requires and at most a third of the space. Returns
    /// the number of rows.
    fn draw_error(
        &self,
        trouble: &ErrorNotice,
        column: Rect,
        painter: &mut Painter<'_>,
        dismiss_key: &str,
    ) -> u16 {
        let more = self.errors.len();
        let count = if more > 1 { format!(" 1 of {more}") } else { String::new() };
        let tail = format!(" {} {dismiss_key} dismiss", painter.glyphs.dot);
        let most = usize::from(column.height / 6).max(1);
        let indent = 4 + cells(painter.glyphs.bad);
        let available = column.width.saturating_sub(indent + 1);
        let ellipsis = painter.glyphs.ellipsis;
        let lines = |text: &str, role: Role, side_text: &str| {
            wrap_to(
                &[Seg::new(text.to_owned(), role)],
                available.saturating_sub(cells(side_text)),
                most,
                ellipsis,
            )
        };
        let (what, place) =
            (lines(&trouble.what, Role::Strong, &count), lines(&trouble.place, Role::Muted, &tail));
        let rows = (what.len() + place.len().max(1)).min(usize::from(column.height));
        let rows = u16::try_from(rows).unwrap_or(column.height);
        let band = Rect::new(column.x, column.bottom() - rows, column.width, rows);
        super::overlay::clear(band, painter);
        painter.band(band, Role::DangerBand);
        for row in band.rows() {
            painter.put(row.x + 1, row.y, painter.glyphs.gutter, Role::Danger, 1);
        }
        if more > 1 {
            painter.right(band.right().saturating_sub(1), band.y, count.trim_start(), Role::Muted);
        }
        painter.put(band.x + 3, band.y, painter.glyphs.bad, Role::Danger, 3);
        let x = band.x + indent;
        let mut at = x;
        for (line, y) in what.iter().chain(&place).zip(band.y..band.bottom()) {
            at = painter.line(x, y, line, available);
        }
        let last = band.bottom().saturating_sub(1);
        if place.iter().all(|line| line.segs.is_empty()) {
            at = x;
        } else {
            at = painter.put(at, last, &format!(" {} ", painter.glyphs.dot), Role::Muted, 3);
        }
        at = painter.put(at, last, dismiss_key, Role::Key, 8);
        painter.put(at, last, " dismiss", Role::Muted, 8);
        rows
    }
}

/// Returns whether notes may cover an area without hiding what they refer to.
fn roomy(area: Rect) -> bool {
    area.width >= 100 && area.height >= 26
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_expire_and_errors_stay() {
        let start = Instant::now();
        let mut notices = Notices::default();
        notices.note("copied", start);
        notices.error("the editor is gone", "no-such-editor");
        assert!(!notices.expire(start + Duration::from_secs(1)));
        let faint = notices.next_change(start).unwrap();
        assert!(notices.expire(faint));
        let gone = notices.next_change(faint).unwrap();
        assert!(notices.expire(gone));
        assert_eq!(notices.next_change(gone), None);
        assert!(notices.any_error());
        assert!(notices.dismiss());
        assert!(!notices.any_error());
    }

    #[test]
    fn hint_replaces_the_previous_one() {
        let start = Instant::now();
        let mut notices = Notices::default();
        notices.note("copied", start);
        notices.note("copied", start);
        ["w", "w", "x"].into_iter().for_each(|key| notices.hint(key, start));
        let texts: Vec<&str> = notices.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(texts, ["copied", "x"]);
    }

    #[test]
    fn notes_about_a_pane_end_with_it() {
        let start = Instant::now();
        let mut notices = Notices::default();
        notices.note("copied", start);
        notices.note_of_pane("press x again", start);
        notices.hint("w is not available", start);
        notices.leave_pane();
        let texts: Vec<&str> = notices.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(texts, ["copied"]);
    }

    #[test]
    fn invisible_characters_of_a_service_are_shown() {
        let mut notices = Notices::default();
        notices.note("gone\u{200d}", Instant::now());
        notices.error("no\u{2028}answer", "at\u{e0041}\nhost");
        let error = &notices.errors[0];
        let texts = [&notices.notes[0].text, &error.what, &error.place];
        assert!(!texts.iter().any(|text| text.contains(['\u{200d}', '\u{2028}', '\u{e0041}'])), "{texts:?}");
        assert!(error.place.ends_with(" host"), "{}", error.place);
    }

    #[test]
    fn an_error_that_repeats_is_shown_once() {
        let mut notices = Notices::default();
        (0..3).for_each(|_| notices.error("no answer", "gateway"));
        assert!(notices.dismiss());
        assert!(!notices.dismiss());
    }
}
