//! The part that shows the input of the model: its tab, its scroll position and the sections that are expanded.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::context_view::{Line, difference, fitted, lines};
use super::state::SessionState;
use super::{Fold, TABS, Tab};
use crate::action::Action;
use crate::glyphs::UNICODE;
use crate::pane::{Draw, Effect, RenderJob};
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Scroll, cells, counted, cut_line};
use skills_api::ComposedView;

/// The largest offset; drawing knows the length and clamps it.
const MAX_OFFSET: usize = 1_000_000;

/// Returns the width of a line next to its rail.
pub(super) fn available(area: Rect) -> u16 {
    area.width.saturating_sub(6)
}

/// The state of the part.
#[derive(Default)]
pub(super) struct ModelContext {
    pub tab: Tab,
    pub scroll: Scroll,
    pub open: HashSet<Fold>,
    /// Whether to show the difference from the last call instead of the call.
    pub diff: bool,
    rendered: BTreeMap<u64, Arc<[RichLine]>>,
    /// The key of the last request.
    requested: Option<u64>,
    /// The cached rows of the composed call, with the hash of their input.
    laid_out: Option<(u64, Arc<[Line]>)>,
    /// Areas of the last frame.
    pub area: Rect,
    pub tabs: Vec<(Rect, Tab)>,
    /// Rows of the text that collapse or expand a section.
    pub folds: Vec<(Rect, Fold)>,
    /// Requests for what the last frame lacked.
    pub wanted: Vec<Effect>,
}

impl ModelContext {
    /// Forgets the areas of the last frame.
    pub fn start_frame(&mut self) {
        self.area = Rect::ZERO;
        self.tabs.clear();
        self.folds.clear();
    }

    /// Shows another session from its top.
    pub fn reset(&mut self) {
        self.open.clear();
        self.scroll = Scroll::default();
    }

    /// Switches to a tab and requests its content.
    pub fn turn(&mut self, tab: Tab, state: &mut SessionState) -> Vec<Effect> {
        self.tab = tab;
        self.scroll = Scroll::default();
        state.request_for(tab)
    }

    /// Returns the tab that is some steps further.
    pub fn tab_after(&self, steps: usize) -> Tab {
        let at = TABS.iter().position(|(tab, _)| *tab == self.tab).unwrap_or(0);
        TABS[(at + steps) % TABS.len()].0
    }

    /// Scrolls by the rows of an action; returns `None` if it moves none.
    pub fn move_by(&mut self, action: Action) -> Option<()> {
        let rows = action.rows(self.scroll.page())?;
        self.roll(rows);
        Some(())
    }

    pub fn roll(&mut self, rows: isize) {
        self.scroll.offset = self.scroll.offset.saturating_add_signed(rows).min(MAX_OFFSET);
    }

    /// Returns the section whose row is at a position.
    pub fn fold_at(&self, at: Position) -> Option<Fold> {
        self.folds.iter().find(|(place, _)| place.contains(at)).map(|(_, fold)| fold.clone())
    }

    pub fn take_rendered(&mut self, key: u64, lines: &Arc<[RichLine]>) {
        self.rendered.insert(key, Arc::clone(lines));
    }

    /// Returns a JSON text rendered at a width; requests it if it is not cached.
    pub fn rendered(&mut self, text: &Arc<str>, width: u16, ascii: bool) -> Option<Arc<[RichLine]>> {
        let mut hasher = DefaultHasher::new();
        (text, width, ascii).hash(&mut hasher);
        let key = hasher.finish();
        // A text that is no longer cached is requested again, even if it was requested before another one.
        if !self.rendered.contains_key(&key) && self.requested.replace(key) != Some(key) {
            self.rendered.clear();
            let job = RenderJob { key, text: Arc::clone(text), syntax: "json".to_owned(), width, ascii };
            self.wanted.push(Effect::Render(job));
        }
        self.rendered.get(&key).cloned()
    }

    /// Returns the composed call as rows of a width; cached until its content changes.
    pub fn rows(&mut self, state: &SessionState, width: u16) -> Arc<[Line]> {
        let Some(composed) = &state.composed else { return Arc::new([]) };
        let mut open: Vec<&Fold> = self.open.iter().collect();
        open.sort();
        let mut hasher = DefaultHasher::new();
        let size = composed.size;
        (&composed.digest, size.l1.tokens, size.l2.tokens, &composed.delivered, open, width)
            .hash(&mut hasher);
        let key = hasher.finish();
        if let Some((_, rows)) = self.laid_out.as_ref().filter(|(known, _)| *known == key) {
            return Arc::clone(rows);
        }
        let open = |fold: &Fold| self.open.contains(fold);
        let entries = state.session.as_ref().map_or(&[][..], |session| session.transcript.as_slice());
        let rows: Arc<[Line]> = fitted(lines(composed, entries, &open), width).into();
        self.laid_out = Some((key, Arc::clone(&rows)));
        rows
    }

    /// Returns the diff as rows of a width; cached until its content changes.
    pub fn diff_rows(&mut self, composed: &ComposedView, changes: &[String], width: u16) -> Arc<[Line]> {
        let lines = composed.diff.as_deref().unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        ("difference", &composed.digest, lines.len(), changes, width).hash(&mut hasher);
        let key = hasher.finish();
        if let Some((_, rows)) = self.laid_out.as_ref().filter(|(known, _)| *known == key) {
            return Arc::clone(rows);
        }
        let rows: Arc<[Line]> = fitted(difference(changes, lines), width).into();
        self.laid_out = Some((key, Arc::clone(&rows)));
        rows
    }

    /// Draws lines with their rails, from the scroll position.
    pub fn draw_lines(&mut self, lines: &[Line], area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
        let height = usize::from(area.height);
        self.scroll.height = height;
        self.scroll.offset = self.scroll.offset.min(lines.len().saturating_sub(height));
        let mut painter = Painter::new(buf, cx);
        let end = area.right().saturating_sub(1);
        let left = lines.len().saturating_sub(self.scroll.offset + height);
        let below = if left > 0 { format!(" {} below ", counted(left, "line")) } else { String::new() };
        for (line, y) in lines.iter().skip(self.scroll.offset).take(height).zip(area.y..) {
            if let Some(band) = line.text.band {
                painter.band(Rect { x: area.x + 2, y, width: area.width.saturating_sub(3), height: 1 }, band);
            }
            painter.rail(area.x + 2, y, u16::from(line.level > 0), line.level);
            // The number of lines below is in the last row.
            let reserved = if y + 1 == area.bottom() { cells(&below) } else { 0 };
            let note = line.note.replace(UNICODE.about, painter.glyphs.about);
            if !note.is_empty() {
                painter.right(end.saturating_sub(reserved), y, &note, Role::Muted);
            }
            let note = cells(&note);
            let available = available(area).saturating_sub(note + u16::from(note > 0) + reserved);
            let text = cut_line(&line.text, available, painter.glyphs.ellipsis);
            painter.line(area.x + 4, y, &text, available);
            if let Some(fold) = &line.fold {
                self.folds.push((Rect { y, height: 1, ..area }, fold.clone()));
            }
        }
        if height > 0 && !below.is_empty() {
            painter.right(end, area.bottom().saturating_sub(1), &below, Role::Muted);
        }
    }

    /// Collapses or expands the first visible section.
    pub fn fold_visible(&mut self) {
        if let Some((_, fold)) = self.folds.first().cloned() {
            self.toggle(fold);
        }
    }

    pub fn toggle(&mut self, fold: Fold) {
        if !self.open.remove(&fold) {
            self.open.insert(fold);
        }
    }

    /// Expands a skill's body and scrolls to it.
    pub fn reveal(&mut self, name: &str, state: &SessionState) {
        let fold = Fold::Body(name.to_owned());
        self.open.insert(fold.clone());
        self.tab = Tab::Composed;
        self.diff = false;
        let lines = self.rows(state, available(self.area));
        if let Some(at) = lines.iter().position(|line| line.fold.as_ref() == Some(&fold)) {
            self.scroll.offset = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_an_earlier_width_is_rendered_again() {
        let mut context = ModelContext::default();
        let text: Arc<str> = "{}".into();
        for width in [76, 116, 76, 116] {
            assert!(context.rendered(&text, width, false).is_none());
            assert!(context.rendered(&text, width, false).is_none(), "one request per width");
            let wanted = std::mem::take(&mut context.wanted);
            let [Effect::Render(job)] = wanted.as_slice() else { panic!("not one request: {wanted:?}") };
            assert_eq!(job.width, width);
            context.take_rendered(job.key, &Arc::from([RichLine::of("{}".to_owned(), Role::Text)]));
            assert!(context.rendered(&text, width, false).is_some() && context.wanted.is_empty());
        }
    }

    #[test]
    fn number_of_lines_below_covers_no_text() {
        let buffer = crate::picture::painted(44, 2, |painter| {
            let cx = Draw {
                theme: painter.theme,
                glyphs: painter.glyphs,
                keymap: painter.keymap,
                commands: painter.commands,
                now: std::time::Instant::now(),
                clock_ms: 0,
                focused: true,
                full_screen: false,
                split: 0,
                cursor: None,
            };
            let text = RichLine::of("a".repeat(60), Role::Text);
            let line = Line { level: 1, text, note: "0.2k".to_owned(), fold: None, short: false };
            let area = Rect::new(0, 0, 44, 2);
            ModelContext::default().draw_lines(&[line.clone(), line.clone(), line], area, painter.buf, &cx);
        });
        let seen = crate::picture::text(&buffer);
        let rows: Vec<&str> = seen.lines().collect();
        assert!(rows[0].contains("a…") && rows[0].ends_with(" 0.2k"), "{seen}");
        assert!(rows[1].contains("a…") && rows[1].ends_with(" 0.2k 1 line below"), "{seen}");
    }
}
