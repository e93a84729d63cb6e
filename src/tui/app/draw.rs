//! One frame: header, pane, progress, notes, overlay, footer.

use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::{App, SPIN};
use crate::action::{Action, Context};
use crate::header::Header;
use crate::overlay::{Hint, shade};
use crate::pane::{Draw, PaneId};
use crate::theme::Role;
use crate::widgets::format;
use crate::widgets::painter::Painter;
use crate::widgets::text_width::cells;
use crate::{footer, glyphs::Glyphs};
use skills_api::Connection;

/// Minimum size of the window.
pub const MIN_WINDOW_SIZE: (u16, u16) = (40, 10);

impl App {
    /// Draws everything; returns the position of the terminal's cursor, if it is visible.
    pub fn draw(&mut self, buf: &mut Buffer, now: Instant) -> Option<Position> {
        self.dirty = false;
        self.hits.clear();
        let screen = buf.area;
        buf.set_style(screen, self.theme.style(Role::Base));
        if screen.width < MIN_WINDOW_SIZE.0 || screen.height < MIN_WINDOW_SIZE.1 {
            self.pane_area = Rect::ZERO;
            too_small(&mut Painter { buf, theme: &self.theme, glyphs: self.glyphs });
            return None;
        }
        let head = Rect { height: 1, ..screen };
        let foot = Rect { y: screen.bottom() - 1, height: 1, ..screen };
        let busy = u16::from(self.progress.busy());
        let middle = Rect { y: screen.y + 1, height: screen.height - 2 - busy, ..screen };
        self.pane_area = middle;
        let spinner = spin(self.glyphs, now.saturating_duration_since(self.started));

        let mut cursor = self.draw_pane(middle, buf, now);
        if self.is_stale() {
            faded(middle, buf);
        }
        self.counted = self.next_second(now);
        let (ids, facts) = self.header_facts();
        let place = self.connection_place(now);
        let awaited: Vec<usize> = self.panes.iter().map(|pane| pane.pending_decisions()).collect();
        let theme = &self.theme;
        let mut painter = Painter { buf, theme, glyphs: self.glyphs };
        let header = Header {
            panes: &ids,
            awaited: &awaited,
            active: self.active,
            facts: &facts,
            place: place.as_ref(),
            spinner: (busy > 0).then_some(spinner),
        };
        self.hits.extend(header.draw(head, &mut painter));
        if busy > 0 {
            self.progress.draw(Rect { y: foot.y - 1, ..foot }, &mut painter, spinner);
        }
        let (items, fixed, dismiss_key) = self.here(|here| {
            let (items, fixed) = here.footer();
            let seen = here.keymap.key_for(Action::Seen, &[Context::Error], false);
            (items, fixed, seen.map_or_else(String::new, |key| crate::keymap::key_name(key, here.glyphs)))
        });
        self.notices.draw(middle, &mut painter, &dismiss_key, now);

        let hints = self.overlay.as_ref().map(|overlay| self.here(|here| here.hints(&overlay.hints())));
        let helps = self.help_hint();
        let keys = if self.is_disconnected() { refusal(foot, &mut painter) } else { foot };
        if let Some((mut overlay, hints)) = self.overlay.take().zip(hints) {
            self.hits.clear();
            let above = Rect { height: screen.height - 1, ..screen };
            if let Some(behind) = &mut self.behind {
                behind.draw(above, &mut painter, now);
            }
            if overlay.shades() {
                shade(above, &mut painter);
            }
            if overlay.asks_to_leave() {
                overlay.set_unsaved(self.unsaved_state());
            }
            cursor = overlay.draw(above, &mut painter, now);
            let due = overlay.changes_in(now).map(|millis| now + Duration::from_millis(millis.max(1)));
            self.aged = self.aged.into_iter().chain(due).min();
            let behind = self.behind.as_ref().and_then(|behind| behind.changes_in(now));
            let behind = behind.map(|millis| now + Duration::from_millis(millis.max(1)));
            self.aged = self.aged.into_iter().chain(behind).min();
            // A dialog covers the notes: those of its own keys take the footer's row.
            let since = *self.overlay_since.get_or_insert(now);
            if !self.notices.draw_newer_in_row(since, foot, &mut painter, now) {
                self.hits.extend(footer::draw(keys, &mut painter, &hints, &helps));
            }
            self.overlay = Some(overlay);
        } else {
            self.overlay_since = None;
            let noted = self.notices.draw_in_row(middle, foot, &mut painter, now);
            if !noted {
                self.hits.extend(footer::draw(keys, &mut painter, &items, &fixed));
            }
        }
        cursor
    }

    /// Returns the item for the help of a dialog or a text.
    fn help_hint(&self) -> Vec<footer::Item> {
        let contexts = self.overlay.as_ref().map(|overlay| overlay.contexts()).unwrap_or_default();
        let shows = contexts.iter().any(|context| matches!(context, Context::Dialog | Context::Text));
        if !shows || !self.can_open_help_over() {
            return Vec::new();
        }
        self.here(|here| here.hints(&[Hint { action: Action::Help, label: "help" }]))
    }

    fn draw_pane(&mut self, area: Rect, buf: &mut Buffer, now: Instant) -> Option<Position> {
        let focused = self.overlay.is_none();
        let clock_ms = self.clock(now);
        let pane = self.panes.get_mut(self.active)?;
        let id = pane.id();
        let mut cx = Draw {
            theme: &self.theme,
            glyphs: self.glyphs,
            now,
            clock_ms,
            focused,
            full_screen: self.full_screen,
            split: self.splits.get(&id).copied().unwrap_or_default(),
            cursor: None,
        };
        pane.draw(area, buf, &mut cx);
        let cursor = cx.cursor.filter(|_| focused);
        let due = pane.changes_at(clock_ms).map(|at| u64::try_from(at - clock_ms).unwrap_or(0));
        self.aged = due.map(|millis| now + Duration::from_millis(millis.max(1)));
        let wanted = pane.take_pending_effects();
        self.effects_of(id, wanted, now);
        cursor
    }

    fn header_facts(&self) -> (Vec<PaneId>, Vec<String>) {
        let ids = self.panes.iter().map(|pane| pane.id()).collect();
        let count = match self.skills {
            None => "reading".to_owned(),
            Some(0) if self.progress.busy() => "reading".to_owned(),
            Some(1) => "1 skill".to_owned(),
            Some(count) => format!("{} skills", format::count(count)),
        };
        // Only Browse uses the client's view: a session has a client of its own.
        let browsing = self.panes.get(self.active).is_some_and(|pane| pane.id() == PaneId::Browse);
        let client = self.client.as_ref().filter(|_| browsing).map(|name| format!("as {name}"));
        // For a remote core the location is shown separately and in more detail.
        let place = matches!(self.connection, Connection::Local).then(|| "local".to_owned());
        (ids, std::iter::once(count).chain(client).chain(place).collect())
    }
}

/// Writes in the footer that there is no connection; returns the area that is left for keys.
fn refusal(foot: Rect, painter: &mut Painter<'_>) -> Rect {
    let text = if foot.width < 80 { "no connection" } else { "no connection: commands are refused" };
    painter.band(foot, Role::Surface);
    let end = painter.put(foot.x + 2, foot.y, text, Role::Danger, foot.width);
    Rect { x: end, width: foot.right().saturating_sub(end), ..foot }
}

/// Dims content that may be outdated; everything else about it stays.
fn faded(area: Rect, buf: &mut Buffer) {
    for position in area.positions() {
        if let Some(cell) = buf.cell_mut(position) {
            cell.modifier.insert(ratatui::style::Modifier::DIM);
        }
    }
}

/// Returns the spinner's glyph at a time since the start.
fn spin(glyphs: &Glyphs, since: Duration) -> &'static str {
    let turns = since.as_millis() / SPIN.as_millis();
    glyphs.running[usize::try_from(turns).unwrap_or_default() % glyphs.running.len()]
}

fn too_small(painter: &mut Painter<'_>) {
    let area = painter.buf.area;
    let lines = [
        ("terminal too small".to_owned(), Role::Strong),
        (
            format!("{}x{}, needs {}x{}", area.width, area.height, MIN_WINDOW_SIZE.0, MIN_WINDOW_SIZE.1),
            Role::Muted,
        ),
    ];
    let top = area.y + area.height.saturating_sub(lines.len() as u16) / 2;
    for ((text, role), y) in lines.iter().zip(top..area.bottom()) {
        let x = area.x + area.width.saturating_sub(cells(text)) / 2;
        painter.put(x, y, text, *role, area.width);
    }
}
