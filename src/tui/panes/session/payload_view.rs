//! Draws the input of the model: the composed call or its diff, the request, the transcript.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::context_view::{Line, difference, fitted, lines, transcript};
use super::{Fold, SessionPane};
use crate::glyphs::UNICODE;
use crate::pane::{Draw, Effect, RenderJob};
use crate::theme::Role;
use crate::widgets::format::{bytes, count, counted};
use crate::widgets::painter::Painter;
use crate::widgets::rich::Seg;
use crate::widgets::text_width::{cells, shown};
use crate::widgets::wrap::{cut_line, wrap_to};
use skills_api::ComposedView;
use skills_session::{Speaker, Turn};

/// Width of a title next to its note, in cells.
const TITLE: u16 = 36;

/// Returns the width of a line next to its rail.
fn available(area: Rect) -> u16 {
    area.width.saturating_sub(6)
}

impl SessionPane {
    /// Returns the composed call as rows of a width; cached until its content changes.
    fn rows(&mut self, width: u16) -> Arc<[Line]> {
        let Some(composed) = self.composed.clone() else { return Arc::new([]) };
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
        let entries = self.session.as_ref().map_or(&[][..], |session| session.transcript.as_slice());
        let rows: Arc<[Line]> = fitted(lines(&composed, entries, &open), width).into();
        self.laid_out = Some((key, Arc::clone(&rows)));
        rows
    }

    /// Returns the diff as rows of a width; cached until its content changes.
    fn diff_rows(&mut self, composed: &ComposedView, changes: &[String], width: u16) -> Arc<[Line]> {
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

    pub(super) fn draw_composed(&mut self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> String {
        let Some(composed) = self.composed.clone() else {
            return draw_composing(area, buf, cx);
        };
        if self.diff {
            let changes = composed.since.as_ref().map(|since| since.describe(count)).unwrap_or_default();
            let text = match &composed.diff {
                None => Some("no recorded call to compare with: c records one"),
                Some(lines) if lines.is_empty() && changes.is_empty() => {
                    Some("no changes since the last call")
                }
                Some(_) => None,
            };
            if let Some(text) = text {
                Painter::new(buf, cx).put(
                    area.x + 2,
                    area.y,
                    text,
                    Role::Muted,
                    area.width.saturating_sub(2),
                );
                return String::new();
            }
            let lines = self.diff_rows(&composed, &changes, available(area));
            self.draw_lines(&lines, area, buf, cx);
            return "next call compared with the last".to_owned();
        }
        let lines = self.rows(available(area));
        if lines.is_empty() {
            let text = "empty: no skills found";
            Painter::new(buf, cx).put(area.x + 2, area.y, text, Role::Muted, area.width.saturating_sub(2));
        }
        self.draw_lines(&lines, area, buf, cx);
        let digest: String = composed.digest.trim_start_matches("sha256:").chars().take(8).collect();
        format!(
            "next call {} {} {} sha256 {digest}",
            cx.glyphs.dot,
            bytes(composed.composed.text.len() as u64),
            cx.glyphs.dot
        )
    }

    pub(super) fn draw_transcript(&mut self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> String {
        let entries = self.session.as_ref().map(|s| s.transcript.clone()).unwrap_or_default();
        if entries.is_empty() {
            let text = "no history yet: loads, reads and script runs appear here";
            Painter::new(buf, cx).put(area.x + 2, area.y, text, Role::Muted, area.width.saturating_sub(2));
        }
        let open = |fold: &Fold| self.open.contains(fold);
        let lines = transcript(&entries, &open);
        self.draw_lines(&fitted(lines, available(area)), area, buf, cx);
        format!(
            "append-only {} {}",
            cx.glyphs.dot,
            if entries.len() == 1 { "1 entry".to_owned() } else { format!("{} entries", entries.len()) }
        )
    }

    pub(super) fn draw_payload(&mut self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> String {
        let Some((api, text)) = self.payload.clone() else {
            return draw_composing(area, buf, cx);
        };
        let width = area.width.saturating_sub(4);
        let mut hasher = DefaultHasher::new();
        (&text, width, cx.glyphs.ascii).hash(&mut hasher);
        let key = hasher.finish();
        if !self.rendered.contains_key(&key) && self.asked_for.insert(key) {
            self.rendered.clear();
            let job = RenderJob {
                key,
                text: text.clone(),
                syntax: "json".to_owned(),
                width,
                ascii: cx.glyphs.ascii,
            };
            self.wanted.push(Effect::Render(job));
        }
        let Some(rich) = self.rendered.get(&key).cloned() else {
            let progress = format!("laying out {}", bytes(text.len() as u64));
            Painter::new(buf, cx).put(area.x + 2, area.y, &progress, Role::Muted, width);
            return api.to_string();
        };
        let area = self.draw_objections(area, buf, cx);
        let height = usize::from(area.height);
        self.composed_scroll.height = height;
        self.composed_scroll.offset = self.composed_scroll.offset.min(rich.len().saturating_sub(height));
        let mut painter = Painter::new(buf, cx);
        for (line, y) in rich.iter().skip(self.composed_scroll.offset).take(height).zip(area.y..) {
            painter.line(area.x + 2, y, line, width);
        }
        // The title drops a note that does not fit, but the service is always named.
        let (dot, size) = (cx.glyphs.dot, bytes(text.len() as u64));
        let notes = [
            format!("{api} {dot} {size} {dot} Enter: next format {dot} y: copy"),
            format!("{api} {dot} {size} {dot} Enter: next format"),
            format!("{api} {dot} {size}"),
        ];
        let fits = |note: &&String| cells(note) + TITLE <= area.width;
        notes.iter().find(fits).cloned().unwrap_or_else(|| api.to_string())
    }

    /// Draws the key that helps, and the errors that the service is expected to report; returns the area below. The
    /// message is shown as long as it applies.
    fn draw_objections(&self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> Rect {
        let Some(session) = self.session.as_ref().filter(|_| !self.objections.is_empty()) else {
            return area;
        };
        let width = area.width.saturating_sub(6);
        let begun = matches!(
            session.transcript.first().map(|entry| &entry.turn),
            Some(Turn::Message { speaker: Speaker::User, .. })
        );
        let help = match session.transcript.len() {
            _ if begun => "",
            0 => "s: ",
            _ => "n, then s: ",
        };
        let mut painter = Painter::new(buf, cx);
        let mut y = area.y;
        for (at, why) in self.objections.iter().enumerate() {
            let text = format!("{}{}", if at == 0 { help } else { "" }, shown(why));
            painter.put(area.x + 2, y, painter.glyphs.warn, Role::Warning, 1);
            for line in wrap_to(&[Seg::new(text, Role::Text)], width, 4, painter.glyphs.ellipsis) {
                if y < area.bottom() {
                    painter.line(area.x + 4, y, &line, width);
                    y += 1;
                }
            }
        }
        let below = (y + 1).min(area.bottom());
        Rect { y: below, height: area.bottom() - below, ..area }
    }

    /// Draws lines with their rails, from the scroll position.
    pub(super) fn draw_lines(&mut self, lines: &[Line], area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
        let height = usize::from(area.height);
        self.composed_scroll.height = height;
        self.composed_scroll.offset = self.composed_scroll.offset.min(lines.len().saturating_sub(height));
        let mut painter = Painter::new(buf, cx);
        let end = area.right().saturating_sub(1);
        for (line, y) in lines.iter().skip(self.composed_scroll.offset).take(height).zip(area.y..) {
            if let Some(band) = line.text.band {
                painter.band(Rect { x: area.x + 2, y, width: area.width.saturating_sub(3), height: 1 }, band);
            }
            painter.rail(area.x + 2, y, u16::from(line.level > 0), line.level);
            let note = line.note.replace(UNICODE.about, painter.glyphs.about);
            if !note.is_empty() {
                painter.right(end, y, &note, Role::Muted);
            }
            let note = cells(&note);
            let available = available(area).saturating_sub(note + u16::from(note > 0));
            let text = cut_line(&line.text, available, painter.glyphs.ellipsis);
            painter.line(area.x + 4, y, &text, available);
            if let Some(fold) = &line.fold {
                self.drawn.folds.push((Rect { y, height: 1, ..area }, fold.clone()));
            }
        }
        if lines.len() > height && height > 0 {
            let left = lines.len() - (self.composed_scroll.offset + height).min(lines.len());
            if left > 0 {
                let text = format!(" {} below ", counted(left, "line"));
                painter.right(end, area.bottom().saturating_sub(1), &text, Role::Muted);
            }
        }
    }

    /// Collapses or expands the first visible section.
    pub(super) fn fold_in_sight(&mut self) {
        if let Some((_, fold)) = self.drawn.folds.first().cloned() {
            self.toggle(fold);
        }
    }

    pub(super) fn toggle(&mut self, fold: Fold) {
        if !self.open.remove(&fold) {
            self.open.insert(fold);
        }
    }

    /// Expands a skill's body and scrolls to it.
    pub(super) fn reveal(&mut self, name: &str) {
        let fold = Fold::Body(name.to_owned());
        self.open.insert(fold.clone());
        self.tab = super::Tab::Composed;
        self.diff = false;
        let lines = self.rows(available(self.drawn.composed_area));
        if let Some(at) = lines.iter().position(|line| line.fold.as_ref() == Some(&fold)) {
            self.composed_scroll.offset = at;
        }
    }
}

/// Draws the placeholder until the payload is composed; returns the empty title.
fn draw_composing(area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> String {
    Painter::new(buf, cx).put(area.x + 2, area.y, "composing", Role::Muted, area.width.saturating_sub(2));
    String::new()
}
