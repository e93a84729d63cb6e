//! The application as a pure core: events in, a frame and commands out. It owns the screen's state and performs no I/O.
//! The caller (`run`, or a test) executes the commands.

mod connection;
mod draw;
mod perform;
mod persistent_state;
mod polling;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{
    Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::{Position, Rect};

use super::action::{Action, Context};
use super::available_commands::CommandContext;
use super::glyphs::{ASCII, ASCII_STILL, Glyphs, UNICODE, UNICODE_STILL};
use super::keymap::Keymap;
use super::notices::Notices;
use super::overlay::{Outcome, Overlay, Reading};
use super::pane::{Effect, Message, Pane, PaneId};
use super::progress::Progress;
use super::run_requests::RunResponse;
use super::settings::Settings;
use super::spanned_error::LocatedError;
use super::theme::{Depth, Theme, Themes};
pub use persistent_state::PersistentState;
use skills_api::{Connection, Diagnostics, Error, Event, TerminalSignals, terminal_bytes, withdrawal_bytes};
use skills_base::telemetry::RingBuffer;
use skills_config::{Invocation, TerminalProgress};
use skills_registry::Catalog;
use skills_skill::safe_text;
use skills_store::{EventKind, RunEvent, RunId};

/// Interval between spinner frames.
pub const SPIN: Duration = Duration::from_millis(100);

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
    Read(PaneId, Box<Reading>),
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
    /// The catalog.
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
    Sign(Vec<u8>),
    /// Show this progress in the terminal.
    Progress(TerminalProgress),
    /// Clear the terminal and redraw everything.
    Redraw,
    /// Exit.
    Quit,
}

/// The state of the screen.
pub struct App {
    panes: Vec<Box<dyn Pane>>,
    active: usize,
    overlay: Option<Box<dyn Overlay>>,
    /// The overlay behind its help, or the one with unsaved text behind the confirmation to quit; restored afterwards.
    behind: Option<Box<dyn Overlay>>,
    notices: Notices,
    /// When the open dialog was drawn first.
    overlay_since: Option<Instant>,
    progress: Progress,
    keymap: Keymap,
    themes: Themes,
    depth: Depth,
    theme: Theme,
    /// The active theme before the theme chooser opened.
    kept_theme: String,
    glyphs: &'static Glyphs,
    /// Whether animations are disabled.
    reduced_motion: bool,
    connection: Connection,
    /// Number of commands to runs of a remote core without a response yet.
    unacknowledged: usize,
    /// Number of keys, clicks and pastes so far, and that at which a report was last requested.
    inputs: usize,
    report_requested: Option<usize>,
    received: ReceivedEvents,
    /// Number of skills; `None` until the core reports it.
    skills: Option<usize>,
    /// The skills that the palette offers.
    catalog: Arc<Catalog>,
    /// The client whose view of the catalog is shown.
    client: Option<String>,
    full_screen: bool,
    splits: HashMap<PaneId, i16>,
    newest: HashMap<PaneId, u64>,
    recent: Vec<Action>,
    log: RingBuffer,
    config_file: String,
    signs: TerminalSignals,
    /// Runs with a notification that can be withdrawn, each with the start of its wait.
    notified: Vec<(RunId, i64)>,
    /// The progress that the terminal shows, if any.
    shown_progress: Option<TerminalProgress>,
    /// Click targets of the last frame.
    hits: Vec<(Rect, Action)>,
    pane_area: Rect,
    commands: Vec<AppCommand>,
    dirty: bool,
    started: Instant,
    /// The wall clock at the start, unless it is the system clock.
    clock_ms: Option<i64>,
    /// How the workbench was started.
    invocation: Invocation,
    /// Whether runs are not persisted.
    passing: bool,
    /// When the spinners last advanced.
    spun: Instant,
    /// When a relative time on the screen changes.
    aged: Option<Instant>,
    /// When the countdown to the next connection attempt drops by a second.
    counted: Option<Instant>,
}

/// Returns whether an input can move the cursor or the focus. The release of the key or button that requested something
/// does not.
fn acts(input: &Input) -> bool {
    match input {
        Input::Key(key) => key.kind != KeyEventKind::Release,
        Input::Mouse(mouse) => !matches!(mouse.kind, MouseEventKind::Up(_) | MouseEventKind::Moved),
        Input::Paste(_) => true,
        _ => false,
    }
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
        let keymap = Keymap::shipped()?.remapped(&settings.remaps)?;
        let (themes, wrong) = match &settings.theme_dir {
            Some(dir) => Themes::shipped()?.with_dir(dir),
            None => (Themes::shipped()?, Vec::new()),
        };
        let depth = settings.depth.unwrap_or(Depth::True);
        let picked = remembered.theme.as_deref().filter(|name| themes.names().contains(name));
        let name = settings.theme.as_deref().or(picked).unwrap_or("dark");
        let theme = themes.theme(name, depth)?;
        let mut notices = Notices::default();
        for error in wrong {
            notices.error(error.message, format!("{}:{}", error.file, error.line));
        }
        Ok(Self {
            panes,
            active: 0,
            overlay: None,
            behind: None,
            notices,
            overlay_since: None,
            progress: Progress::default(),
            keymap,
            depth,
            kept_theme: name.to_owned(),
            theme,
            themes,
            glyphs: match (settings.glyphs == skills_config::GlyphSet::Ascii, settings.reduced_motion) {
                (true, false) => &ASCII,
                (false, false) => &UNICODE,
                (true, true) => &ASCII_STILL,
                (false, true) => &UNICODE_STILL,
            },
            reduced_motion: settings.reduced_motion,
            connection,
            unacknowledged: 0,
            inputs: 0,
            report_requested: None,
            received: ReceivedEvents::default(),
            skills: None,
            catalog: Arc::default(),
            client: None,
            full_screen: false,
            splits: remembered.splits(),
            newest: HashMap::new(),
            recent: Vec::new(),
            log: settings.log.clone(),
            config_file: settings.config_file.clone(),
            signs: settings.signs,
            notified: Vec::new(),
            shown_progress: settings.progress.then_some(TerminalProgress::Hidden),
            hits: Vec::new(),
            pane_area: Rect::ZERO,
            commands: vec![AppCommand::Refresh],
            dirty: true,
            started: now,
            clock_ms: settings.clock_ms,
            invocation: settings.invocation.clone(),
            passing: settings.passing,
            spun: now,
            aged: None,
            counted: None,
        })
    }

    /// Handles one event. Its consequences are in [`Self::take_commands`] and in the next frame.
    pub fn handle(&mut self, news: AppEvent, now: Instant) {
        let still = matches!(&news, AppEvent::Input(Input::FocusGained | Input::FocusLost))
            || matches!(&news, AppEvent::Input(Input::Mouse(mouse)) if mouse.kind == MouseEventKind::Moved);
        if still {
            return;
        }
        self.dirty |= !polling::unmoved(&news);
        match news {
            AppEvent::Input(input) => {
                self.inputs += usize::from(acts(&input));
                self.input(input, now);
            }
            AppEvent::Answer(pane, message) => self.answer(pane, &message, now),
            AppEvent::All(message) => {
                self.received.count(&message);
                self.news(&message, now);
            }
            AppEvent::Refreshed(refreshed) => self.refreshed(*refreshed, now),
            AppEvent::Profiles(pane, current, Ok(profiles)) => {
                self.choose_client(pane, current.as_deref(), profiles);
            }
            AppEvent::Profiles(_, _, Err(error)) => self.notices.error("no client profiles", error.message),
            // A dialog that was opened in the meantime may contain user input.
            AppEvent::Read(..) if self.overlay.is_some() => {
                self.notices.note("the report is ready; open it again after this dialog", now);
            }
            // The cursor or the focus has moved since: the next keys are not meant for the report.
            AppEvent::Read(..) if self.report_requested != Some(self.inputs) => {
                self.notices.note("the report is ready; request it again to read it", now);
            }
            AppEvent::Read(pane, reading) => self.effects_of(pane, vec![Effect::Read(reading)], now),
            AppEvent::Done(note) => self.notices.note(note, now),
            AppEvent::Failed(what, place) => self.notices.error(what, place),
        }
    }

    /// Takes the commands that accumulated since the last call.
    pub fn take_commands(&mut self) -> Vec<AppCommand> {
        std::mem::take(&mut self.commands)
    }

    /// Returns whether the frame differs from the last one drawn.
    #[must_use]
    pub fn dirty(&self) -> bool {
        self.dirty
    }

    /// Returns the active theme.
    #[must_use]
    pub fn theme(&self) -> &Theme {
        &self.theme
    }

    /// Returns the active glyphs.
    #[must_use]
    pub fn glyphs(&self) -> &'static Glyphs {
        self.glyphs
    }

    /// Requests a frame regardless of what the last one showed.
    pub fn redraw(&mut self) {
        self.dirty = true;
    }

    /// Advances time: fading notes and spinners.
    pub fn tick(&mut self, now: Instant) {
        if self.animated() && now >= self.spun + SPIN {
            self.spun = now;
            self.dirty = true;
        }
        if self.aged.is_some_and(|due| now >= due) {
            self.aged = None;
            self.dirty = true;
        }
        if self.counted.is_some_and(|due| now >= due) {
            self.counted = None;
            self.dirty = true;
        }
        // A dialog behind its help continues.
        if let Some(overlay) = self.behind.as_mut().or(self.overlay.as_mut()) {
            let outcome = overlay.tick(now);
            self.uncover(&outcome);
            self.finish(outcome, now);
        }
        self.dirty |= self.notices.expire(now);
        self.check_again(now);
    }

    /// Returns when the frame next changes without input; `None` when idle.
    #[must_use]
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let spin = self.animated().then(|| self.spun + SPIN);
        let look = self.next_look(now);
        [spin, self.aged, self.counted, look, self.notices.next_change(now)].into_iter().flatten().min()
    }

    /// Returns the wall clock at a moment, in milliseconds since 1970-01-01 UTC.
    fn clock(&self, now: Instant) -> i64 {
        let since = now.saturating_duration_since(self.started).as_millis();
        match self.clock_ms {
            Some(start) => start.saturating_add(i64::try_from(since).unwrap_or(i64::MAX)),
            None => jiff::Timestamp::now().as_millisecond(),
        }
    }

    fn animated(&self) -> bool {
        !self.reduced_motion && self.moves()
    }

    fn moves(&self) -> bool {
        self.progress.busy() || self.panes.get(self.active).is_some_and(|pane| pane.animated())
    }

    fn pane(&mut self) -> Option<&mut Box<dyn Pane>> {
        self.panes.get_mut(self.active)
    }

    /// Returns the active pane, the focused contexts, and whether a text field has the focus.
    fn place(&self) -> (PaneId, Vec<Context>, bool) {
        let Some(pane) = self.panes.get(self.active) else { return (PaneId::Browse, Vec::new(), false) };
        if let Some(overlay) = &self.overlay {
            return (pane.id(), overlay.contexts(), overlay.in_text());
        }
        let mut contexts = pane.contexts();
        if self.notices.any_error() {
            contexts.insert(0, Context::Error);
        }
        (pane.id(), contexts, pane.in_text())
    }

    /// Calls a function with everything that is currently available.
    fn here<T>(&self, look: impl FnOnce(&CommandContext<'_>) -> T) -> T {
        let (pane, contexts, in_text) = self.place();
        let commands = self.panes.get(self.active).map(|pane| pane.commands()).unwrap_or_default();
        let offered = self.overlay.as_ref().map(|overlay| overlay.help_items());
        look(&CommandContext {
            keymap: &self.keymap,
            glyphs: self.glyphs,
            pane,
            contexts: &contexts,
            in_text,
            commands: &commands,
            overlay: offered.as_deref(),
        })
    }

    fn input(&mut self, input: Input, now: Instant) {
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => self.key(key, now),
            Input::Mouse(mouse) => self.mouse(mouse, now),
            Input::Paste(text) => {
                if let Some(overlay) = &mut self.overlay {
                    let outcome = overlay.paste(&text);
                    self.finish(outcome, now);
                } else if let Some(pane) = self.pane()
                    && pane.in_text()
                {
                    let effects = pane.paste(&text);
                    self.effects(effects, now);
                }
            }
            // A frame has the size of its buffer; a resize only requests a new frame.
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent, now: Instant) {
        let (_, contexts, in_text) = self.place();
        let action = self.keymap.action(key, &contexts, in_text);
        if self.overlay.is_some() {
            match action {
                Some(Action::Suspend | Action::Redraw) => {
                    self.perform(action.unwrap_or(Action::Redraw), now);
                }
                Some(Action::Help) if self.can_open_help_over() => self.open_help(),
                // A letter in a dialog is a typo or the beginning of a text: it must not quit.
                Some(Action::Quit) if !is_letter(key) => self.leave(now),
                _ => {
                    let outcome = self.overlay.as_mut().map_or(Outcome::Close, |over| {
                        over.at(now);
                        over.key(key, action)
                    });
                    self.finish(outcome, now);
                }
            }
        } else if let Some(action) = action {
            if !self.perform(action, now) && !in_text {
                self.hint(key, now);
            }
        } else if in_text && let Some(pane) = self.pane() {
            let effects = pane.text_key(key);
            self.effects(effects, now);
        } else {
            self.hint(key, now);
        }
    }

    fn mouse(&mut self, mouse: MouseEvent, now: Instant) {
        let at = Position::new(mouse.column, mouse.row);
        let pressed = mouse.kind == MouseEventKind::Down(MouseButton::Left);
        let hit = self.hits.iter().find(|(area, _)| area.contains(at)).map(|(_, action)| *action);
        let has_help = self.can_open_help_over();
        match (&mut self.overlay, hit) {
            (None, Some(action)) if pressed => {
                self.perform(action, now);
            }
            (Some(_), Some(Action::Help)) if pressed && has_help => self.open_help(),
            (Some(overlay), Some(action)) if pressed => {
                let key = KeyEvent::new(KeyCode::Null, KeyModifiers::NONE);
                let outcome = overlay.key(key, Some(action));
                self.finish(outcome, now);
            }
            (Some(overlay), _) => {
                let outcome = overlay.mouse(mouse);
                self.finish(outcome, now);
            }
            (None, _) if self.pane_area.contains(at) => {
                let effects = self.pane().map(|pane| pane.mouse(mouse)).unwrap_or_default();
                self.effects(effects, now);
            }
            _ => {}
        }
    }

    fn answer(&mut self, pane: PaneId, message: &Message, now: Instant) {
        if let Message::Answer(generation, _) = message
            && self.newest.get(&pane).is_some_and(|newest| generation < newest)
        {
            return;
        }
        if let Message::Run(RunResponse::Ordered(..)) = message {
            self.unacknowledged = self.unacknowledged.saturating_sub(1);
        }
        if let Message::ClientView(view) = message {
            self.client = view.as_ref().map(|view| view.name.clone());
        }
        if let Some(overlay) = self.behind.as_mut().or(self.overlay.as_mut()) {
            let outcome = overlay.on_message(message);
            self.uncover(&outcome);
            let is_handled = matches!(outcome, Outcome::Handled | Outcome::HandledWith(..));
            self.finish(outcome, now);
            if is_handled {
                return;
            }
        }
        self.deliver(pane, message, now);
    }

    /// Returns what has been received so far, for a request of the core's state.
    #[must_use]
    pub fn received(&self) -> ReceivedEvents {
        self.received
    }

    /// Applies the state of the core, except what events have reported since it was requested.
    fn refreshed(&mut self, refreshed: Refreshed, now: Instant) {
        let Refreshed { since, catalog, diagnostics } = refreshed;
        if let Some(catalog) = catalog.filter(|_| since.catalog == self.received.catalog) {
            self.news(&Message::Catalog(catalog), now);
        }
        let Some(diagnostics) = diagnostics else { return };
        if since.scan == self.received.scan {
            self.news(&Message::Event(Event::Scan(diagnostics.scan)), now);
        }
        if since.index == self.received.index {
            self.news(&Message::Event(Event::Index(diagnostics.index)), now);
        }
        self.news(&Message::Diagnostics(diagnostics), now);
    }

    fn news(&mut self, message: &Message, now: Instant) {
        match message {
            Message::Event(event) => {
                let was_busy = self.progress.busy();
                self.progress.news(event);
                let progress = self.progress.in_terminal();
                if self.shown_progress.is_some_and(|shown| shown != progress) {
                    self.shown_progress = Some(progress);
                    self.commands.push(AppCommand::Progress(progress));
                }
                match event {
                    Event::Catalog(change) => {
                        self.skills = Some(change.catalog.entries.len());
                        self.catalog = Arc::clone(&change.catalog);
                        self.notify_overlay(message, now);
                    }
                    Event::Notice(text) => self.notices.error(safe_text::line(text), "runs"),
                    Event::Waiting(reminder) => {
                        let bytes = terminal_bytes(self.signs, reminder);
                        self.commands.extend((!bytes.is_empty()).then_some(AppCommand::Sign(bytes)));
                        if self.signs.osc && self.signs.withdrawable && self.notified.len() < MAX_NOTIFIED {
                            self.notified.push((reminder.run.clone(), reminder.since_ms));
                        }
                    }
                    Event::Connection(state) => self.connection_news(state, message, now),
                    Event::Replaced => self.replaced(message, now),
                    Event::Scan(_) | Event::Index(_) => {}
                }
                if was_busy && !self.progress.busy() {
                    self.commands.push(AppCommand::Refresh);
                }
            }
            Message::Run(RunResponse::Events(events)) => self.withdraw(events),
            Message::Catalog(catalog) => {
                self.skills = Some(catalog.entries.len());
                self.catalog = Arc::clone(catalog);
                self.notify_overlay(message, now);
            }
            _ => {}
        }
        let ids: Vec<PaneId> = self.panes.iter().map(|pane| pane.id()).collect();
        for id in ids {
            self.deliver(id, message, now);
        }
    }

    /// Withdraws the notifications of runs that no longer wait.
    fn withdraw(&mut self, events: &[RunEvent]) {
        for event in events.iter().filter(|event| ends_wait(&event.event.kind)) {
            let is_over = |(run, since_ms): &mut (RunId, i64)| *run == event.run && event.at_ms > *since_ms;
            for (run, _) in self.notified.extract_if(.., is_over) {
                self.commands.push(AppCommand::Sign(withdrawal_bytes(self.signs, &run)));
            }
        }
    }

    fn deliver(&mut self, id: PaneId, message: &Message, now: Instant) {
        if let Some(pane) = self.panes.iter_mut().find(|pane| pane.id() == id) {
            let effects = pane.message(message);
            self.effects_of(id, effects, now);
        }
    }
}

/// Maximum number of remembered notifications that can be withdrawn.
const MAX_NOTIFIED: usize = 1000;

/// Returns whether a run no longer waits after this event.
fn ends_wait(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::GateApproved
            | EventKind::GateDenied
            | EventKind::SignalConsumed
            | EventKind::RunClaimed
            | EventKind::RunCanceled
            | EventKind::RunExpired
            | EventKind::RunFailed
            | EventKind::RunCompleted
    )
}

/// Returns whether a key types a character.
fn is_letter(key: KeyEvent) -> bool {
    let chord = KeyModifiers::CONTROL | KeyModifiers::ALT;
    matches!(key.code, KeyCode::Char(_)) && !key.modifiers.intersects(chord)
}
