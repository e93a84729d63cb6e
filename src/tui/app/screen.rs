//! What is on the screen, and how it is drawn: header, pane, progress, notes, overlay, footer.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::SPINNER_INTERVAL;
use super::appearance::Appearance;
use super::clock::Clock;
use super::connection::CoreConnection;
use super::core_state::CoreState;
use super::overlays::Overlays;
use super::panes::Panes;
use crate::action::{Action, Context, PaneCommand};
use crate::available_commands::CommandContext;
use crate::header::Header;
use crate::keymap::{Keymap, key_name};
use crate::notices::Notices;
use crate::overlay::{Entry, Help, Hint, shade};
use crate::pane::{Draw, Pane, PaneId};
use crate::theme::Role;
use crate::widgets::{Painter, cells, fade};
use crate::{footer, glyphs::Glyphs};

const MIN_WINDOW_SIZE: (u16, u16) = (40, 10);

pub(super) struct ScreenState {
    pub panes: Panes,
    pub overlays: Overlays,
    pub notices: Notices,
    pub keymap: Keymap,
    pub appearance: Appearance,
    pub connection: CoreConnection,
    pub core: CoreState,
    /// Whether golden queries cannot be added here, as in the demo.
    pub lacks_golden_file: bool,
    pub clock: Clock,
    /// Click targets of the last frame.
    pub hits: Vec<(Rect, Action)>,
    pub pane_area: Rect,
    pub dirty: bool,
}

impl ScreenState {
    pub fn animated(&self) -> bool {
        let moves = self.core.progress.busy() || self.panes.active().is_some_and(Pane::animated);
        !self.appearance.reduced_motion && moves
    }

    /// Returns when the frame next changes without input; `None` when idle.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let look = self.panes.active().and_then(|pane| pane.next_poll(now));
        let clock = self.clock.next_change(self.animated());
        [clock, look, self.notices.next_change(now)].into_iter().flatten().min()
    }

    /// Returns the active pane, the focused contexts, and whether a text field has the focus.
    pub fn place(&self) -> (PaneId, Vec<Context>, bool) {
        let Some(pane) = self.panes.active() else { return (PaneId::Browse, Vec::new(), false) };
        if let Some(overlay) = &self.overlays.top {
            return (pane.id(), overlay.contexts(), overlay.in_text());
        }
        let mut contexts = pane.contexts();
        if self.notices.any_error() {
            contexts.insert(0, Context::Error);
        }
        (pane.id(), contexts, pane.in_text())
    }

    /// Returns the commands of the active pane.
    pub fn commands(&self) -> Vec<PaneCommand> {
        let mut commands = self.panes.commands();
        for why in commands.iter_mut().filter_map(|command| command.blocked.as_mut()) {
            *why = self.with_keys(why);
        }
        commands
    }

    /// Replaces each mention of a key in a message by its name in the active pane.
    pub fn with_keys(&self, message: &str) -> String {
        let contexts = self.panes.active().map(Pane::contexts).unwrap_or_default();
        self.keymap.with_keys(message, &contexts, self.appearance.glyphs)
    }

    /// Calls a function with everything that is currently available.
    pub fn here<T>(&self, look: impl FnOnce(&CommandContext<'_>) -> T) -> T {
        let (pane, contexts, in_text) = self.place();
        let commands = self.commands();
        let overlay = self.overlays.top.as_ref();
        let offered = overlay.map(|overlay| overlay.help_items());
        look(&CommandContext {
            keymap: &self.keymap,
            glyphs: self.appearance.glyphs,
            pane,
            contexts: &contexts,
            in_text,
            letters_begin_text: overlay.is_some_and(|overlay| overlay.letters_begin_text()),
            commands: &commands,
            overlay: offered.as_deref(),
        })
    }

    pub fn palette_entries(&self, recent: &[Action]) -> Vec<Entry> {
        let present: Vec<Action> = self.panes.iter().map(|pane| pane.id().go()).collect();
        let mut entries = self.here(|here| here.palette(recent));
        let gone = |action| {
            let goes = matches!(
                action,
                Action::GoBrowse
                    | Action::GoDiscover
                    | Action::GoAttach
                    | Action::GoSession
                    | Action::GoRuns
                    | Action::GoGolden
                    | Action::GoProposals
            );
            goes && !present.contains(&action)
        };
        entries.retain(|entry| !gone(entry.action));
        entries
    }

    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method's path has one lifetime too few"
    )]
    pub fn open_help(&mut self, config_file: &str) {
        let (left, right) = self.here(|here| here.help());
        let name = if self.overlays.top.is_some() { "this dialog" } else { self.panes.active_name() };
        self.overlays.open_over(Help::new(name, left, right, config_file));
    }

    /// Shows a pane, without notes about the previous one.
    pub fn show(&mut self, id: PaneId) {
        if self.panes.show(id) {
            self.notices.leave_pane();
        }
    }

    /// Notes that a key has no action in the focused panel, and which key lists the available ones. Another panel of the
    /// pane may have one.
    pub fn hint(&mut self, key: KeyEvent, now: Instant) {
        let is_typed = !matches!(
            key.code,
            KeyCode::Null
                | KeyCode::Modifier(_)
                | KeyCode::Media(_)
                | KeyCode::CapsLock
                | KeyCode::NumLock
                | KeyCode::ScrollLock
        );
        if !is_typed {
            return;
        }
        let glyphs = self.appearance.glyphs;
        let name = key_name(Keymap::combination(key), glyphs);
        let help = self.here(|here| here.keymap.key_for(Action::Help, here.contexts, here.in_text));
        let help = help.map(|key| format!("; {} lists the keys", key_name(key, glyphs)));
        self.notices.hint(format!("{name} is not available in this panel{}", help.unwrap_or_default()), now);
    }

    /// Sets the theme until the chooser closes.
    pub fn apply_theme(&mut self, name: &str) {
        if let Err(error) = self.appearance.apply(name) {
            self.notices.error(error.message, format!("{}:{}", error.file, error.line));
        }
    }

    pub fn set_theme(&mut self, name: &str) {
        name.clone_into(&mut self.appearance.kept_theme);
        self.apply_theme(name);
    }

    /// Describes what would be lost, stopped or never sent if the workbench quit now.
    pub fn unsaved_state(&self) -> Option<String> {
        let edited = self.overlays.behind.as_ref().and_then(|overlay| overlay.unsaved());
        let typed = self.panes.iter().find_map(Pane::unsaved);
        let stopped = self.connection.stopped(self.panes.iter().map(Pane::executing_runs).sum());
        let all = [self.connection.undelivered(), edited, typed, stopped];
        all.into_iter().flatten().reduce(|one, other| format!("{one} {other}"))
    }

    /// Begins a frame; returns the area of the pane, or `None` if the window is too small.
    pub fn begin_frame(&mut self, buf: &mut Buffer) -> Option<Rect> {
        self.dirty = false;
        self.hits.clear();
        self.pane_area = Rect::ZERO;
        let (screen, theme) = (buf.area, &self.appearance.theme);
        buf.set_style(screen, theme.style(Role::Base));
        if screen.width < MIN_WINDOW_SIZE.0 || screen.height < MIN_WINDOW_SIZE.1 {
            let (glyphs, commands) = (self.appearance.glyphs, self.connection.commands());
            too_small(&mut Painter { buf, theme, glyphs, keymap: &self.keymap, commands });
            return None;
        }
        let busy = u16::from(self.core.progress.busy());
        self.pane_area = Rect { y: screen.y + 1, height: screen.height - 2 - busy, ..screen };
        Some(self.pane_area)
    }

    /// Draws the active pane; returns the position of the terminal's cursor.
    pub fn draw_pane(&mut self, area: Rect, buf: &mut Buffer, now: Instant) -> Option<Position> {
        let focused = self.overlays.top.is_none();
        let clock_ms = self.clock.wall_ms(now);
        let (full_screen, split) = (self.panes.full_screen, self.panes.split());
        let pane = self.panes.active_mut()?;
        let mut cx = Draw {
            theme: &self.appearance.theme,
            glyphs: self.appearance.glyphs,
            keymap: &self.keymap,
            commands: self.connection.commands(),
            now,
            clock_ms,
            focused,
            full_screen,
            split,
            cursor: None,
        };
        pane.draw(area, buf, &mut cx);
        let cursor = cx.cursor.filter(|_| focused);
        let due = pane.changes_at(clock_ms).map(|at| u64::try_from(at - clock_ms).unwrap_or(0));
        self.clock.aged = None;
        self.clock.changes_in(due, now);
        cursor
    }

    /// Draws what is around and over the pane; returns the position of the terminal's cursor.
    pub fn draw_around(
        &mut self,
        middle: Rect,
        mut cursor: Option<Position>,
        buf: &mut Buffer,
        now: Instant,
    ) -> Option<Position> {
        let screen = buf.area;
        let foot = Rect { y: screen.bottom() - 1, height: 1, ..screen };
        let glyphs = self.appearance.glyphs;
        if self.connection.is_stale() {
            fade(middle, buf);
        }
        self.clock.counted = self.connection.next_second(now);
        self.draw_header(Rect { height: 1, ..screen }, foot, buf, now);
        let (items, fixed, dismiss_key) = self.here(|here| {
            let (items, fixed) = here.footer();
            let seen = here.keymap.key_for(Action::DismissError, &[Context::Error], false);
            (items, fixed, seen.map_or_else(String::new, |key| key_name(key, here.glyphs)))
        });
        let helps = self.help_hint();
        let unsaved = self.overlays.asks_to_leave().then(|| self.unsaved_state());
        let theme = &self.appearance.theme;
        let commands = self.connection.commands();
        let mut painter = Painter { buf, theme, glyphs, keymap: &self.keymap, commands };
        self.notices.draw(middle, &mut painter, &dismiss_key, now);
        let keys = if self.connection.is_lost() { refusal(foot, &mut painter) } else { foot };
        if let Some(overlay) = &mut self.overlays.top {
            self.hits.clear();
            let above = Rect { height: screen.height - 1, ..screen };
            if let Some(behind) = &mut self.overlays.behind {
                behind.draw(above, &mut painter, now);
            }
            if overlay.shades() {
                shade(above, &mut painter);
            }
            if let Some(unsaved) = unsaved {
                overlay.set_unsaved(unsaved);
            }
            cursor = overlay.draw(above, &mut painter, now);
            self.clock.changes_in(overlay.changes_in(now), now);
            let behind = self.overlays.behind.as_ref();
            self.clock.changes_in(behind.and_then(|behind| behind.changes_in(now)), now);
            // A dialog covers the notes: those of its own keys take the footer's row.
            let since = *self.overlays.since.get_or_insert(now);
            // After drawing: whether a text scrolls depends on its area.
            let hints = overlay.hints();
            let hints = self.here(|here| here.hints(&hints));
            if !self.notices.draw_newer_in_row(since, foot, &mut painter, now) {
                self.hits.extend(footer::draw(keys, &mut painter, &hints, &helps));
            }
        } else {
            self.overlays.since = None;
            let noted = self.notices.draw_in_row(middle, foot, &mut painter, now);
            if !noted {
                self.hits.extend(footer::draw(keys, &mut painter, &items, &fixed));
            }
        }
        cursor
    }

    /// Draws the header, and the progress above the footer.
    fn draw_header(&mut self, head: Rect, foot: Rect, buf: &mut Buffer, now: Instant) {
        let (glyphs, theme) = (self.appearance.glyphs, &self.appearance.theme);
        let spinner = spin(glyphs, self.clock.elapsed(now));
        let is_busy = self.core.progress.busy();
        let awaited: Vec<usize> = self.panes.iter().map(Pane::pending_decisions).collect();
        // Only Browse uses the client's view: a session has its own client.
        let browsing = self.panes.active_id() == Some(PaneId::Browse);
        let client = self.core.client.as_ref().filter(|_| browsing).map(|name| format!("as {name}"));
        // For a remote core the location is shown separately and in more detail.
        let local = self.connection.address().is_none().then(|| "local".to_owned());
        let facts: Vec<String> =
            std::iter::once(self.core.skill_count()).chain(client).chain(local).collect();
        let place = self.connection.place(glyphs, now, self.clock.wall_ms(now));
        let panes = self.panes.ids();
        let header = Header {
            panes: &panes,
            awaited: &awaited,
            has_stale_runs: self.connection.has_stale_runs(),
            active: self.panes.shown(),
            facts: &facts,
            place: place.as_ref(),
            spinner: is_busy.then_some(spinner),
        };
        let commands = self.connection.commands();
        let mut painter = Painter { buf, theme, glyphs, keymap: &self.keymap, commands };
        self.hits.extend(header.draw(head, &mut painter));
        if is_busy {
            self.core.progress.draw(Rect { y: foot.y - 1, ..foot }, &mut painter, spinner);
        }
    }

    /// Returns the item for the help of a dialog or a text.
    fn help_hint(&self) -> Vec<footer::Item> {
        let contexts = self.overlays.top.as_ref().map(|overlay| overlay.contexts()).unwrap_or_default();
        let shows = contexts.iter().any(|context| matches!(context, Context::Dialog | Context::Text));
        if !shows || !self.overlays.can_open_help() {
            return Vec::new();
        }
        self.here(|here| here.hints(&[Hint::new(Action::Help, "help")]))
    }
}

/// Writes in the footer that there is no connection; returns the area that is left for keys.
fn refusal(foot: Rect, painter: &mut Painter<'_>) -> Rect {
    let text = if foot.width < 80 { "no connection" } else { "no connection: commands are refused" };
    painter.band(foot, Role::Surface);
    let end = painter.put(foot.x + 2, foot.y, text, Role::Danger, foot.width);
    Rect { x: end, width: foot.right().saturating_sub(end), ..foot }
}

/// Returns the spinner's glyph at a time since the start.
fn spin(glyphs: &Glyphs, since: Duration) -> &'static str {
    let turns = since.as_millis() / SPINNER_INTERVAL.as_millis();
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
