//! Drives the entire workbench without a terminal: keys in, a screen out. For tests, benches and screenshots.

use std::time::{Duration, Instant};

use crossterm::event::{
    Event as Input, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tokio::sync::mpsc::{Receiver, channel};

use super::app::{App, AppCommand, AppEvent, PersistentState};
use super::effects::{EffectRunner, MAX_PENDING_NEWS};
use super::keymap::parse_key;
use super::pane::Pane;
use super::settings::Settings;
use super::spanned_error::LocatedError;
use super::widgets::relative_time;
use skills_api::{SharedClient, SharedSessionClient};

/// Timeout for a condition.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The workbench at a fixed size, with a manual clock.
pub struct Harness {
    app: App,
    effects: EffectRunner,
    news: Receiver<AppEvent>,
    runtime: tokio::runtime::Runtime,
    size: Rect,
    now: Instant,
    buffer: Buffer,
    cursor: Option<Position>,
    outside: Vec<AppCommand>,
    /// Timeout for the work that one input causes.
    settling: Duration,
}

impl Harness {
    /// Creates a workbench of these panes over a client and draws it once. Colors and glyphs are those of `settings`.
    pub fn new(
        client: SharedClient,
        panes: Vec<Box<dyn Pane>>,
        settings: &Settings,
        width: u16,
        height: u16,
    ) -> Result<Self, LocatedError> {
        Self::with_sessions(client, None, panes, settings, (width, height))
    }

    /// Creates a workbench as [`Self::new`] does, over a core that has sessions.
    pub fn with_sessions(
        client: SharedClient,
        sessions: Option<SharedSessionClient>,
        panes: Vec<Box<dyn Pane>>,
        settings: &Settings,
        (width, height): (u16, u16),
    ) -> Result<Self, LocatedError> {
        // The screen must not depend on the machine's time zone.
        relative_time::set_time_zone(jiff::tz::TimeZone::UTC);
        let started = |error: std::io::Error| LocatedError::new("runtime", 1, error.to_string());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(started)?;
        let now = Instant::now();
        let app = App::new(client.connection(), panes, settings, &PersistentState::default(), now)?;
        let (sender, news) = channel(MAX_PENDING_NEWS);
        let effects = runtime.block_on(async {
            let effects = EffectRunner::new(client, sender)
                .with_sessions(sessions)
                .with_local_files(settings.local_files.clone())
                .with_golden(settings.golden.clone())
                .with_invocation(&settings.invocation);
            effects.follow_events();
            effects.follow_runs();
            effects
        });
        let size = Rect::new(0, 0, width, height);
        let (buffer, outside) = (Buffer::empty(size), Vec::new());
        let mut harness = Self {
            app,
            effects,
            news,
            runtime,
            size,
            now,
            buffer,
            cursor: None,
            outside,
            settling: WAIT_TIMEOUT,
        };
        harness.wait_until_idle();
        Ok(harness)
    }

    /// Limits the wait after each input to this time, although calls may still be in progress: for a core that delays
    /// its responses.
    pub fn settle_within(&mut self, time: Duration) -> &mut Self {
        self.settling = time;
        self
    }

    /// Presses keys one after another: `"2"`, `"ctrl-p"`, `"G"`, `"esc"`. Returns after their effects have completed.
    ///
    /// # Panics
    /// Panics if a name is not a key, which is a bug in the test.
    #[allow(clippy::panic, reason = "a mistyped key is the test's own mistake, reported at its call")]
    pub fn press(&mut self, keys: &str) -> &mut Self {
        for name in keys.split(' ').filter(|name| !name.is_empty()) {
            let Some(key) = parse_key(name).ok().and_then(event) else { panic!("`{name}` is not a key") };
            self.send(Input::Key(key));
        }
        self
    }

    /// Types text character by character.
    pub fn type_text(&mut self, text: &str) -> &mut Self {
        for letter in text.chars() {
            self.send(Input::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE)));
        }
        self
    }

    pub fn paste(&mut self, text: &str) -> &mut Self {
        self.send(Input::Paste(text.to_owned()));
        self
    }

    /// Clicks with the left button.
    pub fn click(&mut self, x: u16, y: u16) -> &mut Self {
        self.mouse(MouseEventKind::Down(MouseButton::Left), x, y);
        self.mouse(MouseEventKind::Up(MouseButton::Left), x, y)
    }

    /// Scrolls the wheel; positive steps scroll down.
    pub fn wheel(&mut self, x: u16, y: u16, steps: i16) -> &mut Self {
        let kind = if steps > 0 { MouseEventKind::ScrollDown } else { MouseEventKind::ScrollUp };
        for _ in 0..steps.unsigned_abs() {
            self.mouse(kind, x, y);
        }
        self
    }

    /// Resizes the terminal.
    pub fn resize(&mut self, width: u16, height: u16) -> &mut Self {
        self.size = Rect::new(0, 0, width, height);
        self.send(Input::Resize(width, height));
        self
    }

    /// Advances the clock.
    pub fn pass(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self.app.tick(self.now);
        self.wait_until_idle();
        self
    }

    /// Delivers an event as if it came from outside.
    pub fn deliver(&mut self, news: AppEvent) -> &mut Self {
        self.app.handle(news, self.now);
        self.wait_until_idle();
        self
    }

    /// Waits until the screen contains a text.
    ///
    /// # Panics
    /// Panics after a timeout; the message shows the screen.
    pub fn wait_for(&mut self, text: &str) -> &mut Self {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Waits until a condition holds for the screen.
    ///
    /// # Panics
    /// Panics after a timeout; the message shows the screen.
    #[allow(clippy::panic, reason = "the only use of the harness is to fail a test loudly")]
    pub fn wait_until(&mut self, what: &str, condition: impl Fn(&str) -> bool) -> &mut Self {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while !condition(&self.screen()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let received =
                self.runtime.block_on(async { tokio::time::timeout(left, self.news.recv()).await });
            match received {
                Ok(Some(news)) => self.app.handle(news, self.now),
                _ => panic!("timed out waiting for: {what}\n{}", self.screen()),
            }
            self.wait_until_idle();
        }
        self
    }

    /// Returns the screen as text, rows without trailing spaces.
    pub fn screen(&self) -> String {
        super::picture::text(&self.buffer)
    }

    /// Returns the screen with its colors.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Returns the position of the terminal's cursor.
    pub fn cursor(&self) -> Option<Position> {
        self.cursor
    }

    /// Takes the commands for the outside (copies, the editor, quitting) since the last call.
    pub fn take_outside(&mut self) -> Vec<AppCommand> {
        std::mem::take(&mut self.outside)
    }

    /// Returns the application itself.
    pub fn app(&mut self) -> &mut App {
        &mut self.app
    }

    /// Sends one input and waits for its effects to complete.
    pub fn send(&mut self, input: Input) {
        self.app.handle(AppEvent::Input(input), self.now);
        self.wait_until_idle();
    }

    fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> &mut Self {
        self.send(Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
        self
    }

    /// Executes commands and handles results until nothing is in progress and the last state is drawn.
    fn wait_until_idle(&mut self) {
        let deadline = Instant::now() + self.settling;
        loop {
            self.process_commands();
            if self.app.dirty() {
                self.buffer = Buffer::empty(self.size);
                self.cursor = self.app.draw(&mut self.buffer, self.now);
                self.process_commands();
            }
            let next = match self.news.try_recv() {
                Ok(news) => Some(news),
                Err(_) if self.effects.in_progress() == 0 && self.news.is_empty() => None,
                Err(_) => self.runtime.block_on(async {
                    let soon = tokio::time::timeout(Duration::from_millis(5), self.news.recv());
                    soon.await.ok().flatten()
                }),
            };
            match next {
                Some(news) => self.app.handle(news, self.now),
                None if self.effects.in_progress() == 0 && !self.app.dirty() && self.news.is_empty() => {
                    return;
                }
                None if Instant::now() > deadline => return,
                None => {}
            }
        }
    }

    fn process_commands(&mut self) {
        let _inside = self.runtime.enter();
        for want in self.app.take_commands() {
            match want {
                AppCommand::Call(pane, effect) => self.effects.run(pane, effect),
                AppCommand::Rescan => self.effects.rescan(),
                AppCommand::Refresh => self.effects.refresh(self.app.received()),
                outside => self.outside.push(outside),
            }
        }
    }
}

/// Returns the event that a terminal sends for a key of the keymap.
fn event(key: crokey::KeyCombination) -> Option<KeyEvent> {
    match key.codes {
        crokey::OneToThree::One(code) => Some(KeyEvent::new(code, key.modifiers)),
        _ => None,
    }
}
