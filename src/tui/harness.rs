//! Drives the entire workbench without a terminal: keys in, a screen out. For tests, benches and pictures.

use std::time::{Duration, Instant};

use crossterm::event::{
    Event as Input, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tokio::sync::mpsc::{Receiver, channel};

use super::app::{App, AppCommand, AppEvent, Remembered};
use super::effects::{Calls, MAX_PENDING_NEWS};
use super::keymap::parse_key;
use super::pane::Pane;
use super::settings::Settings;
use super::spanned_error::LocatedError;
use super::widgets::relative_time;
use skills_api::{SharedClient, SharedSessionClient};

/// How long a condition may take before it counts as never.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The workbench at a size, with a manual clock.
pub struct Harness {
    app: App,
    calls: Calls,
    news: Receiver<AppEvent>,
    runtime: tokio::runtime::Runtime,
    size: Rect,
    now: Instant,
    buffer: Buffer,
    cursor: Option<Position>,
    outside: Vec<AppCommand>,
    /// How long one input may take to settle.
    settling: Duration,
}

impl Harness {
    /// A workbench of these panes over a client, drawn once. Colors and signs are those of `settings`.
    ///
    /// # Errors
    /// As [`App::new`].
    pub fn new(
        client: SharedClient,
        panes: Vec<Box<dyn Pane>>,
        settings: &Settings,
        width: u16,
        height: u16,
    ) -> Result<Self, LocatedError> {
        Self::with_sessions(client, None, panes, settings, (width, height))
    }

    /// The same, over a core that has sessions.
    ///
    /// # Errors
    /// As [`App::new`].
    pub fn with_sessions(
        client: SharedClient,
        sessions: Option<SharedSessionClient>,
        panes: Vec<Box<dyn Pane>>,
        settings: &Settings,
        (width, height): (u16, u16),
    ) -> Result<Self, LocatedError> {
        // A screen is the same wherever it is drawn.
        relative_time::set_time_zone(jiff::tz::TimeZone::UTC);
        let started = |error: std::io::Error| LocatedError::new("runtime", 1, error.to_string());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(started)?;
        let now = Instant::now();
        let app = App::new(client.connection(), panes, settings, &Remembered::default(), now)?;
        let (sender, news) = channel(MAX_PENDING_NEWS);
        let calls = runtime.block_on(async {
            let calls = Calls::new(client, sender)
                .with_sessions(sessions)
                .with_local_files(settings.local_files.clone())
                .with_golden(settings.golden.clone())
                .called(&settings.invocation);
            calls.follow_events();
            calls.follow_runs();
            calls
        });
        let size = Rect::new(0, 0, width, height);
        let (buffer, outside) = (Buffer::empty(size), Vec::new());
        let mut harness = Self {
            app,
            calls,
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

    /// Continues after this time although calls are still in progress: for a core that holds answers back.
    pub fn settle_within(&mut self, time: Duration) -> &mut Self {
        self.settling = time;
        self
    }

    /// Presses keys, one after another: `"2"`, `"ctrl-p"`, `"G"`, `"esc"`. What follows has happened on return.
    ///
    /// # Panics
    /// When a name is not a key, which is a mistake in the test.
    #[allow(clippy::panic, reason = "a mistyped key is the test's own mistake, reported at its call")]
    pub fn press(&mut self, keys: &str) -> &mut Self {
        for name in keys.split(' ').filter(|name| !name.is_empty()) {
            let Some(key) = parse_key(name).ok().and_then(event) else { panic!("`{name}` is not a key") };
            self.send(Input::Key(key));
        }
        self
    }

    /// Types text, letter by letter.
    pub fn type_text(&mut self, text: &str) -> &mut Self {
        for letter in text.chars() {
            self.send(Input::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE)));
        }
        self
    }

    /// Pastes text.
    pub fn paste(&mut self, text: &str) -> &mut Self {
        self.send(Input::Paste(text.to_owned()));
        self
    }

    /// Clicks with the left button.
    pub fn click(&mut self, x: u16, y: u16) -> &mut Self {
        self.mouse(MouseEventKind::Down(MouseButton::Left), x, y);
        self.mouse(MouseEventKind::Up(MouseButton::Left), x, y)
    }

    /// Turns the wheel, downwards for positive steps.
    pub fn wheel(&mut self, x: u16, y: u16, steps: i16) -> &mut Self {
        let kind = if steps > 0 { MouseEventKind::ScrollDown } else { MouseEventKind::ScrollUp };
        for _ in 0..steps.unsigned_abs() {
            self.mouse(kind, x, y);
        }
        self
    }

    /// Another size of the terminal.
    pub fn resize(&mut self, width: u16, height: u16) -> &mut Self {
        self.size = Rect::new(0, 0, width, height);
        self.send(Input::Resize(width, height));
        self
    }

    /// Moves the clock.
    pub fn pass(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self.app.tick(self.now);
        self.wait_until_idle();
        self
    }

    /// Gives news as if they came from outside.
    pub fn tell(&mut self, news: AppEvent) -> &mut Self {
        self.app.handle(news, self.now);
        self.wait_until_idle();
        self
    }

    /// Waits until the screen holds a text.
    ///
    /// # Panics
    /// When it does not for a long time; the message shows the screen.
    pub fn wait_for(&mut self, text: &str) -> &mut Self {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Waits until a condition holds for the screen.
    ///
    /// # Panics
    /// When it does not for a long time; the message shows the screen.
    #[allow(clippy::panic, reason = "the only use of the harness is to fail a test loudly")]
    pub fn wait_until(&mut self, what: &str, holds: impl Fn(&str) -> bool) -> &mut Self {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while !holds(&self.screen()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let received =
                self.runtime.block_on(async { tokio::time::timeout(left, self.news.recv()).await });
            match received {
                Ok(Some(news)) => self.app.handle(news, self.now),
                _ => panic!("waited in vain for: {what}\n{}", self.screen()),
            }
            self.wait_until_idle();
        }
        self
    }

    /// The screen as text, rows without trailing spaces.
    #[must_use]
    pub fn screen(&self) -> String {
        super::picture::text(&self.buffer)
    }

    /// The screen with its colors.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Where the terminal's cursor shows.
    #[must_use]
    pub fn cursor(&self) -> Option<Position> {
        self.cursor
    }

    /// What was wanted outside (copies, the editor, the end) since the last call.
    pub fn take_outside(&mut self) -> Vec<AppCommand> {
        std::mem::take(&mut self.outside)
    }

    /// The application itself.
    pub fn app(&mut self) -> &mut App {
        &mut self.app
    }

    /// Gives one input and lets everything happen that follows from it.
    pub fn send(&mut self, input: Input) {
        self.app.handle(AppEvent::Input(input), self.now);
        self.wait_until_idle();
    }

    fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> &mut Self {
        self.send(Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
        self
    }

    /// Executes wants and takes answers until nothing is in progress, then has drawn the last state.
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
                Err(_) if self.calls.under_way() == 0 && self.news.is_empty() => None,
                Err(_) => self.runtime.block_on(async {
                    let soon = tokio::time::timeout(Duration::from_millis(5), self.news.recv());
                    soon.await.ok().flatten()
                }),
            };
            match next {
                Some(news) => self.app.handle(news, self.now),
                None if self.calls.under_way() == 0 && !self.app.dirty() && self.news.is_empty() => return,
                None if Instant::now() > deadline => return,
                None => {}
            }
        }
    }

    fn process_commands(&mut self) {
        let _inside = self.runtime.enter();
        for want in self.app.take_wants() {
            match want {
                AppCommand::Call(pane, effect) => self.calls.run(pane, effect),
                AppCommand::Rescan => self.calls.rescan(),
                AppCommand::Refresh => self.calls.refresh(),
                outside => self.outside.push(outside),
            }
        }
    }
}

/// The event a terminal sends for a key of the keymap.
fn event(key: crokey::KeyCombination) -> Option<KeyEvent> {
    match key.codes {
        crokey::OneToThree::One(code) => Some(KeyEvent::new(code, key.modifiers)),
        _ => None,
    }
}
