//! The application as a pure core: events in, a frame and commands out. It owns the screen's state and performs no I/O.
//! The caller (`run`, or a test) executes the commands.

mod appearance;
mod clock;
mod connection;
mod core_state;
mod overlays;
mod panes;
mod perform;
mod persistent_state;
mod screen;
mod terminal_status;

use crate::golden_requests::GoldenPaneResponse;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{
    Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use self::appearance::Appearance;
use self::clock::Clock;
use self::connection::CoreConnection;
use self::core_state::CoreState;
use self::overlays::Overlays;
use self::panes::Panes;
use self::perform::Executor;
pub use self::persistent_state::PersistentState;
use self::screen::ScreenState;
use self::terminal_status::TerminalStatus;
use super::action::Action;
use super::glyphs::Glyphs;
use super::keymap::Keymap;
use super::notices::Notices;
use super::overlay::Reading;
use super::pane::{Effect, Message, Pane, PaneId};
use super::proposal_requests::ProposalPaneResponse;
use super::run_requests::RunResponse;
use super::session_requests::SessionResponse;
use super::settings::Settings;
use super::spanned_error::LocatedError;
use super::theme::Theme;
use skills_api::{Connection, Diagnostics, Error, Event};
use skills_config::TerminalProgress;
use skills_registry::Catalog;
use skills_skill::safe_text;

/// Interval between spinner frames.
pub const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// An event for the application.
#[derive(Debug)]
pub enum AppEvent {
    /// Terminal input.
    Input(Input),
    /// The response to a pane's effect.
    Answer(PaneId, Message),
    /// A message for every pane.
    All(Message),
    /// The response to [`AppCommand::Refresh`].
    Refreshed(Box<Refreshed>),
    /// The client profiles to choose from: the requesting pane, the selected profile, and `(id, name)` of each.
    Profiles(PaneId, Option<String>, Result<Vec<(String, String)>, Error>),
    /// A text that a pane requested, to be shown in the reader overlay.
    Read(Box<Reading>),
    /// A command completed; shown as a note.
    Done(String),
    /// A command failed: what failed, and where or what to do.
    Failed(String, String),
}

/// The state of the core as it was requested. What events have reported since then is newer.
#[derive(Debug)]
pub struct Refreshed {
    /// What had been received at the request.
    pub since: ReceivedEvents,
    pub catalog: Option<Arc<Catalog>>,
    /// The diagnostics, with the progress of the scan and of the index.
    pub diagnostics: Option<Arc<Diagnostics>>,
}

/// Numbers of events received, by what they report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceivedEvents {
    catalog: usize,
    scan: usize,
    index: usize,
}

impl ReceivedEvents {
    fn count(&mut self, message: &Message) {
        match message {
            Message::Catalog(_) | Message::Event(Event::Catalog(_)) => self.catalog += 1,
            Message::Event(Event::Scan(_)) => self.scan += 1,
            Message::Event(Event::Index(_)) => self.index += 1,
            _ => {}
        }
    }
}

/// A command that the application's caller executes.
#[derive(Debug, Clone, PartialEq)]
pub enum AppCommand {
    /// Run a pane's effect that needs the core or a renderer.
    Call(PaneId, Effect),
    /// Rescan all roots.
    Rescan,
    /// Request the catalog and the diagnostics.
    Refresh,
    /// Copy this to the clipboard; the second value says what it is.
    Copy(String, String),
    /// Open the editor at a line.
    Edit(PathBuf, u32),
    /// Suspend to the shell until `fg`.
    Suspend,
    /// Hand the terminal to a demonstration until it ends.
    Demo,
    /// Write these bytes to the terminal, which raise or withdraw a notification.
    Notify(Vec<u8>),
    Progress(TerminalProgress),
    /// Clear the terminal and redraw everything.
    Redraw,
    /// Exit.
    Quit,
}

/// The workbench.
pub struct App {
    executor: Executor,
    terminal: TerminalStatus,
}

impl App {
    /// Creates the workbench over these panes, with the first one active.
    ///
    /// # Errors
    /// Returns an error if a keymap or theme is invalid, with the file and line.
    pub fn new(
        connection: Connection,
        panes: Vec<Box<dyn Pane>>,
        settings: &Settings,
        remembered: &PersistentState,
        now: Instant,
    ) -> Result<Self, LocatedError> {
        let (keymap, ignored) = Keymap::shipped()?.remapped_by_project(&settings.remaps)?;
        let (appearance, wrong) = Appearance::new(settings, remembered.theme.as_deref())?;
        let mut notices = Notices::default();
        for error in ignored.into_iter().chain(wrong) {
            notices.error(error.message, format!("{}:{}", error.file, error.line));
        }
        let screen = ScreenState {
            panes: Panes::new(panes, remembered.splits()),
            overlays: Overlays::default(),
            notices,
            keymap,
            appearance,
            connection: CoreConnection::new(connection, settings),
            core: CoreState::default(),
            lacks_golden_file: settings.golden.as_ref().is_some_and(|place| place.file.is_none()),
            clock: Clock::new(now, settings.clock_ms),
            hits: Vec::new(),
            pane_area: Rect::ZERO,
            dirty: true,
        };
        Ok(Self {
            executor: Executor::new(screen, settings.log.clone(), settings.config_file.clone()),
            terminal: TerminalStatus::new(settings.signs, settings.progress),
        })
    }

    /// Handles one event. Its consequences are in [`Self::take_commands`] and in the next frame.
    pub fn handle(&mut self, update: AppEvent, now: Instant) {
        let still = matches!(&update, AppEvent::Input(Input::FocusGained | Input::FocusLost))
            || matches!(&update, AppEvent::Input(Input::Mouse(mouse)) if mouse.kind == MouseEventKind::Moved);
        if still {
            return;
        }
        let executor = &mut self.executor;
        executor.screen.dirty |= !unmoved(&update);
        match update {
            AppEvent::Input(input) => self.input(input, now),
            AppEvent::Answer(pane, message) => {
                let screen = &mut executor.screen;
                match &message {
                    Message::Run(RunResponse::CommandDone(..)) => screen.connection.acknowledged(),
                    Message::ClientView(view) => {
                        screen.core.client = view.as_ref().map(|view| view.name.clone());
                    }
                    _ => {}
                }
                executor.answer(pane, &message, now);
            }
            AppEvent::All(message) => {
                executor.screen.core.received.count(&message);
                self.handle_message(&message, now);
            }
            AppEvent::Refreshed(refreshed) => self.refreshed(*refreshed, now),
            AppEvent::Profiles(pane, current, Ok(profiles)) => {
                executor.choose_client(pane, current.as_deref(), profiles);
            }
            AppEvent::Profiles(_, _, Err(error)) => {
                executor.screen.notices.error("no client profiles", error.message);
            }
            AppEvent::Read(reading) => executor.screen.overlays.read_again(*reading),
            AppEvent::Done(note) => executor.screen.notices.note(note, now),
            AppEvent::Failed(what, place) => {
                let place = executor.screen.with_keys(&place);
                executor.screen.notices.error(what, place);
            }
        }
    }

    /// Takes the commands that accumulated since the last call.
    pub fn take_commands(&mut self) -> Vec<AppCommand> {
        std::mem::take(&mut self.executor.commands)
    }

    /// Returns whether the frame differs from the last one drawn.
    pub fn dirty(&self) -> bool {
        self.executor.screen.dirty
    }

    /// Returns the active theme.
    pub fn theme(&self) -> &Theme {
        &self.executor.screen.appearance.theme
    }

    /// Returns the name of the theme, chosen by the user or automatically.
    pub fn theme_name(&self) -> &str {
        &self.executor.screen.appearance.kept_theme
    }

    pub fn set_theme(&mut self, name: &str) {
        self.executor.screen.set_theme(name);
    }

    /// Returns the active glyphs.
    pub fn glyphs(&self) -> &'static Glyphs {
        self.executor.screen.appearance.glyphs
    }

    pub fn keymap(&self) -> &Keymap {
        &self.executor.screen.keymap
    }

    /// Returns what has been received so far, for a request of the core's state.
    pub fn received(&self) -> ReceivedEvents {
        self.executor.screen.core.received
    }

    /// Requests a frame regardless of what the last one showed.
    pub fn redraw(&mut self) {
        self.executor.screen.dirty = true;
    }

    /// Advances time: fading notes and spinners.
    pub fn tick(&mut self, now: Instant) {
        let screen = &mut self.executor.screen;
        screen.dirty |= screen.clock.tick(screen.animated(), now);
        self.executor.tick(now);
    }

    /// Returns when the frame next changes without input; `None` when idle.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        self.executor.screen.next_change(now)
    }

    /// Draws everything; returns the position of the terminal's cursor, if it is visible.
    pub fn draw(&mut self, buf: &mut Buffer, now: Instant) -> Option<Position> {
        let screen = &mut self.executor.screen;
        let middle = screen.begin_frame(buf)?;
        let cursor = screen.draw_pane(middle, buf, now);
        let requested = screen.panes.active_mut().map(|pane| pane.take_pending_effects()).unwrap_or_default();
        self.executor.effects(requested, now);
        self.executor.screen.draw_around(middle, cursor, buf, now)
    }

    fn input(&mut self, input: Input, now: Instant) {
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => self.key(key, now),
            Input::Mouse(mouse) => self.mouse(mouse, now),
            Input::Paste(text) => {
                let screen = &mut self.executor.screen;
                if let Some(overlay) = &mut screen.overlays.top {
                    let outcome = overlay.paste(&text);
                    self.executor.finish(outcome, now);
                } else if let Some(pane) = screen.panes.active_mut()
                    && pane.in_text()
                {
                    let effects = pane.paste(&text);
                    self.executor.effects(effects, now);
                }
            }
            // A frame has the size of its buffer; a resize only requests a new frame.
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent, now: Instant) {
        let executor = &mut self.executor;
        let screen = &mut executor.screen;
        let (_, contexts, in_text) = screen.place();
        let action = screen.keymap.action(key, &contexts, in_text);
        let has_help = screen.overlays.can_open_help();
        if let Some(overlay) = &mut screen.overlays.top {
            match action {
                Some(Action::Suspend | Action::Redraw) => {
                    executor.perform(action.unwrap_or(Action::Redraw), now);
                }
                Some(Action::Help) if has_help => executor.open_help(),
                // A letter in a dialog is a typo or the beginning of a text: it must not quit.
                Some(Action::Quit) if !is_letter(key) => executor.leave(now),
                _ => {
                    overlay.at(now);
                    let outcome = overlay.key(key, action);
                    executor.finish(outcome, now);
                }
            }
        } else if let Some(action) = action {
            if !executor.perform(action, now) && !in_text {
                executor.screen.hint(key, now);
            }
        } else if in_text && let Some(pane) = screen.panes.active_mut() {
            let effects = pane.text_key(key);
            executor.effects(effects, now);
        } else {
            screen.hint(key, now);
        }
    }

    fn mouse(&mut self, mouse: MouseEvent, now: Instant) {
        let executor = &mut self.executor;
        let screen = &mut executor.screen;
        let at = Position::new(mouse.column, mouse.row);
        let pressed = mouse.kind == MouseEventKind::Down(MouseButton::Left);
        let hit = screen.hits.iter().find(|(area, _)| area.contains(at)).map(|(_, action)| *action);
        let has_help = screen.overlays.can_open_help();
        match (&mut screen.overlays.top, hit) {
            (None, Some(action)) if pressed => {
                executor.perform(action, now);
            }
            (Some(_), Some(Action::Help)) if pressed && has_help => executor.open_help(),
            (Some(overlay), Some(action)) if pressed => {
                let key = KeyEvent::new(KeyCode::Null, KeyModifiers::NONE);
                let outcome = overlay.key(key, Some(action));
                executor.finish(outcome, now);
            }
            (Some(overlay), _) => {
                let outcome = overlay.mouse(mouse);
                executor.finish(outcome, now);
            }
            (None, _) if screen.pane_area.contains(at) => {
                let effects = screen.panes.active_mut().map(|pane| pane.mouse(mouse)).unwrap_or_default();
                executor.effects(effects, now);
            }
            _ => {}
        }
    }

    /// Applies the state of the core, except what events have reported since it was requested.
    fn refreshed(&mut self, refreshed: Refreshed, now: Instant) {
        let Refreshed { since, catalog, diagnostics } = refreshed;
        if let Some(catalog) = catalog.filter(|_| since.catalog == self.received().catalog) {
            self.handle_message(&Message::Catalog(catalog), now);
        }
        let Some(diagnostics) = diagnostics else { return };
        if since.scan == self.received().scan {
            self.handle_message(&Message::Event(Event::Scan(diagnostics.scan)), now);
        }
        if since.index == self.received().index {
            self.handle_message(&Message::Event(Event::Index(diagnostics.index)), now);
        }
        self.handle_message(&Message::Diagnostics(diagnostics), now);
    }

    fn handle_message(&mut self, message: &Message, now: Instant) {
        match message {
            Message::Event(event) => {
                let progress = &mut self.executor.screen.core.progress;
                let was_busy = progress.busy();
                progress.on_event(event);
                let (progress, is_busy) = (progress.in_terminal(), progress.busy());
                self.executor.commands.extend(self.terminal.progress(progress));
                self.event(event, message, now);
                if was_busy && !is_busy {
                    self.executor.commands.push(AppCommand::Refresh);
                }
            }
            Message::Run(RunResponse::Events(events)) => {
                self.executor.commands.extend(self.terminal.withdraw(events));
            }
            Message::Run(response @ (RunResponse::Following | RunResponse::NotFollowing(_))) => {
                let screen = &mut self.executor.screen;
                screen.connection.store_changed(response, &mut screen.notices);
            }
            Message::Catalog(catalog) => {
                self.executor.screen.core.take_catalog(catalog);
                self.executor.notify_overlay(message, now);
            }
            _ => {}
        }
        self.executor.deliver_all(message, now);
    }

    fn event(&mut self, event: &Event, message: &Message, now: Instant) {
        let executor = &mut self.executor;
        let screen = &mut executor.screen;
        match event {
            Event::Catalog(change) => {
                screen.core.take_catalog(&change.catalog);
                executor.notify_overlay(message, now);
            }
            Event::Notice(text) => screen.notices.error(safe_text::line(text), "runs"),
            Event::Waiting(reminder) => executor.commands.extend(self.terminal.notify(reminder)),
            Event::Connection(state) => {
                executor.notify_overlay(message, now);
                let screen = &mut executor.screen;
                let was_lost = screen.connection.is_lost();
                let is_restored = screen.connection.change(state, &mut screen.notices, now);
                let outage = screen.connection.service_outage(now, screen.clock.wall_ms(now));
                if let Some(outage) = outage.filter(|_| !was_lost) {
                    executor.deliver_all(&Message::Run(RunResponse::NotFollowing(outage)), now);
                }
                let screen = &mut executor.screen;
                if is_restored {
                    // Requests in the meantime failed, and earlier responses may be outdated.
                    let outage = screen.connection.store_outage.clone();
                    executor.deliver_all(&Message::Run(RunResponse::Following), now);
                    if let Some(outage) = outage {
                        executor.deliver_all(&Message::Run(RunResponse::NotFollowing(outage)), now);
                    }
                }
            }
            // Everything known about the old store is dropped, in panes and overlays too.
            Event::Replaced => {
                let place = screen.connection.address().unwrap_or("the core");
                let note = format!("{place} has a different store now; reloading everything");
                screen.notices.note(note, now);
                executor.notify_overlay(message, now);
                executor.commands.push(AppCommand::Refresh);
            }
            Event::Index(_) => {
                executor.notify_overlay(message, now);
            }
            Event::Scan(_) => {}
        }
    }

    /// Returns the state to store. The theme is included only if the user chose it, not if the terminal determined it.
    pub fn persistent_state(&self, before: &PersistentState, at_start: &str) -> PersistentState {
        let picked = (self.theme_name() != at_start).then(|| self.theme_name().to_owned());
        let panes = &self.executor.screen.panes;
        let intents = panes.iter().flat_map(crate::pane::Pane::persistent_texts).collect();
        PersistentState {
            theme: picked.or_else(|| before.theme.clone()),
            split: panes.moved_splits(),
            intents,
        }
    }
}

/// Returns whether an event leaves the frame unchanged.
fn unmoved(update: &AppEvent) -> bool {
    matches!(
        update,
        AppEvent::Answer(
            _,
            Message::Session(SessionResponse::Looked(_, _, None))
                | Message::Golden(GoldenPaneResponse::Checked(None))
                | Message::Proposals(ProposalPaneResponse::Listed(Ok(None)))
                | Message::Run(RunResponse::Views(Ok(None)))
        )
    )
}

/// Returns whether a key types a character.
fn is_letter(key: KeyEvent) -> bool {
    let chord = KeyModifiers::CONTROL | KeyModifiers::ALT;
    matches!(key.code, KeyCode::Char(_)) && !key.modifiers.intersects(chord)
}
