//! The event loop of the application: input is drained before a frame is drawn, frames are drawn only when something
//! changed and at most sixty times a second, and an idle workbench does not wake up.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crossterm::event::Event as Input;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Receiver, channel};

use super::app::{App, AppCommand, AppEvent, PersistentState};
use super::clipboard::Clipboard;
use super::demo::{DemoOptions, DemoScreen};
use super::editor;
use super::effects::{EffectRunner, MAX_PENDING_NEWS};
use super::input::InputReader;
use super::pane::Pane;
use super::panes::attach::Attach;
use super::panes::browse::Browse;
use super::panes::discover::{Discover, History};
use super::panes::golden::Golden;
use super::panes::proposals::Proposals;
use super::panes::runs::Runs;
use super::panes::session::SessionPane;
use super::probe::{self, LateAnswer};
use super::settings::Settings;
use super::shutdown::Shutdown;
use super::spanned_error::LocatedError;
use super::terminal::{Screen, restore_on_panic};
use super::theme::Depth;
use skills_api::{SharedClient, SharedSessionClient};
use skills_config::{GlyphSet, RunSettings};

/// Minimum time between two frames.
const FRAME: Duration = Duration::from_micros(16_667);
/// Maximum time to drain input before a frame is drawn and other events are handled.
const MAX_DRAIN: Duration = Duration::from_millis(50);
/// How long a child process that has the terminal may take to exit when the workbench shuts down.
const CHILD_GRACE: Duration = Duration::from_millis(300);
/// `SIGCONT`, which tokio does not name: 18 on Linux, 19 on the BSDs and macOS.
const CONTINUED: i32 = if cfg!(target_os = "linux") { 18 } else { 19 };

/// Why the workbench could not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A theme or keymap is invalid; with file, line and what to do.
    #[error(transparent)]
    Settings(#[from] LocatedError),
    /// The terminal is missing or failed.
    #[error("the workbench needs a terminal ({0}); `skills --help` lists commands that do not need one")]
    Terminal(#[from] io::Error),
    /// An automatic demonstration did not reach every state that it waited for.
    #[error("the demonstration failed: {0}")]
    Missed(String),
}

/// How the workbench ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The user quit.
    Left,
    /// A signal or a closed terminal: the process has half a second to exit.
    ShutDown,
}

/// Runs the workbench until the user quits. Restores the terminal afterwards.
///
/// # Errors
/// Returns an error if the settings are invalid or there is no terminal.
pub async fn run(
    client: SharedClient,
    sessions: Option<SharedSessionClient>,
    settings: Settings,
    demo: Option<DemoOptions>,
) -> Result<Exit, RunError> {
    let runs = settings.runs.clone();
    let panes = move |remembered: &PersistentState| every_pane(remembered, runs);
    run_panes(client, sessions, panes, settings, demo).await
}

/// Returns all panes in the order of their numbers, with their state from the last session.
fn every_pane(remembered: &PersistentState, runs: RunSettings) -> Vec<Box<dyn Pane>> {
    let history = History::from_entries(remembered.intents.clone());
    vec![
        Box::new(Browse::new()),
        Box::new(Discover::new(history)),
        Box::new(Attach::new()),
        Box::new(SessionPane::new()),
        Box::new(Runs::of(runs)),
        Box::new(Golden::new()),
        Box::new(Proposals::new()),
    ]
}

/// Runs the workbench over these panes.
pub async fn run_panes(
    client: SharedClient,
    sessions: Option<SharedSessionClient>,
    panes: impl FnOnce(&PersistentState) -> Vec<Box<dyn Pane>>,
    mut settings: Settings,
    demo: Option<DemoOptions>,
) -> Result<Exit, RunError> {
    let played = demo.is_some();
    let remembered = settings.state_file.as_deref().map(PersistentState::read).unwrap_or_default();
    // Errors in settings are reported before the terminal changes.
    let depth = *settings.depth.get_or_insert_with(|| Depth::detect(|name| std::env::var(name).ok()));
    App::new(client.connection(), Vec::new(), &settings, &remembered, Instant::now())?;
    restore_on_panic();
    let shutdown = Shutdown::watch()?;
    let screen = Screen::enter()?;
    let answers =
        probe::ask(["SSH_CONNECTION", "SSH_TTY"].into_iter().any(|name| std::env::var_os(name).is_some()));
    let has_theme_setting = settings.theme.is_some();
    let automatic = !has_theme_setting && remembered.theme.is_none() && depth > Depth::Ansi16;
    choose(&mut settings, &remembered, answers, depth);
    let app = App::new(client.connection(), panes(&remembered), &settings, &remembered, Instant::now())?;
    let (sender, news) = channel(MAX_PENDING_NEWS);
    let mut running = RunningApp {
        at_start: app.theme_name().to_owned(),
        automatic,
        app,
        screen,
        input: Some(InputReader::start(shutdown.clone())?),
        shutdown,
        late: LateAnswer::after(answers, Instant::now()),
        effects: EffectRunner::new(client, sender)
            .with_sessions(sessions)
            .with_local_files(settings.local_files.clone())
            .with_golden(settings.golden.clone())
            .with_invocation(&settings.invocation),
        news,
        clipboard: Clipboard::default(),
        editor: settings.editor.clone(),
        drawn: None,
        demo: demo.map(|play| DemoScreen::new(play, Instant::now())),
    };
    let events = running.effects.follow_events();
    let of_runs = running.effects.follow_runs();
    let ended = match running.run_until_exit().await {
        // Drawing also fails on a closed terminal, which is a shutdown and not an error.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => Ok(()),
        ended => ended,
    };
    events.abort();
    of_runs.abort();
    drop(running.screen);
    let missed = running.demo.as_ref().filter(|demo| demo.ended()).map(|demo| demo.missed_steps().join("; "));
    // The history must not contain what a demonstration typed.
    if let Some(file) = settings.state_file.as_deref().filter(|_| !played) {
        let before = if has_theme_setting {
            PersistentState { theme: remembered.theme.clone(), ..PersistentState::default() }
        } else {
            remembered.clone()
        };
        keep(&running.app.persistent_state(&before, &running.at_start), &remembered, file);
    }
    ended?;
    match missed {
        Some(missed) if !missed.is_empty() => Err(RunError::Missed(missed)),
        _ if running.shutdown.is_requested() => Ok(Exit::ShutDown),
        _ => Ok(Exit::Left),
    }
}

fn keep(now: &PersistentState, before: &PersistentState, file: &Path) {
    if now != before
        && let Err(error) = now.write(file)
    {
        tracing::warn!("cannot write {}: {error}", file.display());
    }
}

/// Selects theme and glyphs from the terminal's responses, unless configured.
fn choose(settings: &mut Settings, remembered: &PersistentState, answers: probe::Answers, depth: Depth) {
    let variable = |name: &str| std::env::var(name).ok();
    if settings.theme.is_none() && remembered.theme.is_none() && depth > Depth::Ansi16 {
        let by_environment = variable("COLORFGBG").and_then(|value| probe::light_by_environment(&value));
        let light = answers.light.or(by_environment).unwrap_or(false);
        settings.theme = Some(theme_for(light).to_owned());
    }
    if settings.glyphs == GlyphSet::Auto {
        let narrow = answers.glyph_cells.is_none_or(|cells| cells == 1);
        let lacks_glyphs = variable("TERM").is_some_and(|term| probe::is_ascii_only(&term));
        settings.glyphs = if narrow && !lacks_glyphs { GlyphSet::Unicode } else { GlyphSet::Ascii };
    }
}

fn theme_for(light: bool) -> &'static str {
    if light { "light" } else { "dark" }
}

struct RunningApp {
    app: App,
    /// The theme selected at startup.
    at_start: String,
    /// Whether the terminal's background determines the theme.
    automatic: bool,
    screen: Screen,
    /// `None` while another program has the terminal.
    input: Option<InputReader>,
    shutdown: Shutdown,
    late: Option<LateAnswer>,
    effects: EffectRunner,
    news: Receiver<AppEvent>,
    clipboard: Clipboard,
    editor: Option<String>,
    /// When the last frame was drawn.
    drawn: Option<Instant>,
    /// A demonstration in progress.
    demo: Option<DemoScreen>,
}

impl RunningApp {
    async fn run_until_exit(&mut self) -> io::Result<()> {
        let mut resized = signal(SignalKind::window_change())?;
        loop {
            self.drain();
            if self.shutdown.is_requested() || self.process_commands().await? {
                return Ok(());
            }
            let now = Instant::now();
            self.play(now);
            if self.demo.as_ref().is_some_and(DemoScreen::ended) {
                return Ok(());
            }
            let due = self.drawn.map_or(now, |drawn| drawn + FRAME);
            if self.app.dirty() && now >= due {
                self.draw(now)?;
                self.drawn = Some(now);
                continue;
            }
            let wake = if self.app.dirty() { Some(due) } else { self.app.next_change(now) };
            let wake = wake.into_iter().chain(self.demo.as_ref().and_then(|demo| demo.wake(now))).min();
            let input = async {
                match &mut self.input {
                    Some(input) => input.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.shutdown.requested() => return Ok(()),
                event = input => match event {
                    Some(event) => self.take(event),
                    None => return Ok(()),
                },
                _ = resized.recv() => {
                    let (width, height) = crossterm::terminal::size()?;
                    self.take(Input::Resize(width, height));
                }
                Some(news) = self.news.recv() => self.app.handle(news, Instant::now()),
                () = sleep_until(wake) => self.app.tick(Instant::now()),
            }
        }
    }

    fn draw(&mut self, now: Instant) -> io::Result<()> {
        match &mut self.demo {
            Some(demo) => self.screen.draw(|buffer| {
                demo.draw(buffer, &mut self.app, now);
                None
            }),
            None => self.screen.draw(|buffer| self.app.draw(buffer, now)),
        }
    }

    /// Handles available input and events, so that the next frame shows the latest state; a growing backlog is handled
    /// in parts.
    fn drain(&mut self) {
        let until = Instant::now() + MAX_DRAIN;
        let can_wait = |shutdown: &Shutdown| !shutdown.is_requested() && Instant::now() < until;
        while can_wait(&self.shutdown)
            && let Some(event) = self.input.as_mut().and_then(InputReader::next_ready)
        {
            self.take(event);
        }
        while can_wait(&self.shutdown)
            && let Ok(news) = self.news.try_recv()
        {
            self.app.handle(news, Instant::now());
        }
    }

    fn take(&mut self, event: Input) {
        let now = Instant::now();
        if let Some(late) = &mut self.late
            && late.consumes(&event, now)
        {
            if let Some(light) = late.take_light() {
                self.follow_background(light);
            }
            return;
        }
        if let Some(demo) = &mut self.demo
            && !matches!(event, Input::Resize(..))
        {
            // During a demonstration, only the script controls the workbench.
            if !demo.take(&event, now) {
                self.demo = None;
            }
            self.app.redraw();
            return;
        }
        self.app.handle(AppEvent::Input(event), now);
    }

    /// Adapts the theme to a background that the terminal reported late, unless another one was chosen in the meantime.
    fn follow_background(&mut self, light: bool) {
        if self.automatic && self.app.theme_name() == self.at_start {
            theme_for(light).clone_into(&mut self.at_start);
            self.app.set_theme(theme_for(light));
            self.app.redraw();
        }
    }

    /// Lets the demonstration press its next key, and captures the frame of a completed step.
    fn play(&mut self, now: Instant) {
        let Some(demo) = &mut self.demo else { return };
        // A result that has just arrived is not handled yet.
        let is_idle = self.effects.in_progress() == 0 && self.news.is_empty() && !self.app.dirty();
        demo.rest(is_idle, &self.app);
        if let Some(why) = demo.take_failure() {
            self.app.handle(AppEvent::Failed("the demonstration".to_owned(), why), Instant::now());
        }
        let before = demo.wake(now);
        if let Some(key) = demo.next(now, is_idle) {
            self.app.handle(AppEvent::Input(Input::Key(key)), now);
        }
        if demo.wake(now) != before {
            self.app.redraw();
        }
    }

    /// Executes the application's commands. Returns whether one of them is to quit.
    async fn process_commands(&mut self) -> io::Result<bool> {
        for want in self.app.take_commands() {
            match want {
                AppCommand::Call(pane, effect) => self.effects.run(pane, effect),
                AppCommand::Rescan => self.effects.rescan(),
                AppCommand::Refresh => self.effects.refresh(self.app.received()),
                AppCommand::Copy(text, what) => self.copy(text, &what).await,
                AppCommand::Edit(path, line) => self.edit(&path, line).await?,
                AppCommand::Notify(bytes) => self.screen.notify(&bytes)?,
                AppCommand::Progress(progress) => self.screen.show_progress(progress)?,
                AppCommand::Suspend => self.suspend().await?,
                AppCommand::Demo => self.demo().await?,
                AppCommand::Redraw => {
                    self.screen.forget()?;
                    self.drawn = None;
                }
                AppCommand::Quit => return Ok(true),
            }
        }
        Ok(false)
    }

    async fn copy(&mut self, text: String, what: &str) {
        let news = if self.clipboard.offer(text.clone()).await {
            AppEvent::Done(format!("copied {what}"))
        } else {
            match self.screen.copy(&text) {
                Ok(()) => AppEvent::Done(format!("copied {what} through the terminal")),
                Err(error) => AppEvent::Failed(format!("{what} was not copied"), error.to_string()),
            }
        };
        self.app.handle(news, Instant::now());
    }

    async fn edit(&mut self, path: &Path, line: u32) -> io::Result<()> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let command = self.editor.clone().or_else(|| variable("VISUAL")).or_else(|| variable("EDITOR"));
        let (program, arguments) = match editor::command(command.as_deref().unwrap_or("vi"), path, line) {
            Ok(command) => command,
            Err(why) => return self.report_failure("the editor was not started", why),
        };
        match self.give_to(Path::new(&program), &arguments).await? {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                self.report_failure(&format!("{program} exited with {status}"), path.display().to_string())
            }
            Err(error) => {
                let hint = format!("{error}; set `editor` in config.yaml, or VISUAL or EDITOR");
                self.report_failure(&format!("cannot start {program}"), hint)
            }
        }
    }

    /// Plays the demonstration in a separate process with its own skills and store, so that nothing here changes.
    async fn demo(&mut self) -> io::Result<()> {
        let played = match std::env::current_exe() {
            Ok(program) => self.give_to(&program, &["demo".to_owned()]).await?,
            Err(error) => Err(error),
        };
        match played {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => self.report_failure("the demo", format!("it exited with {status}")),
            Err(error) => self.report_failure("the demo failed", error.to_string()),
        }
    }

    /// Hands the terminal to a program until it exits.
    async fn give_to(
        &mut self,
        program: &Path,
        arguments: &[String],
    ) -> io::Result<io::Result<std::process::ExitStatus>> {
        self.input = None;
        self.screen.leave();
        let status = self.run_child(program, arguments).await;
        if !self.shutdown.is_requested() {
            self.back_again()?;
        }
        Ok(status)
    }

    /// Runs a program on the terminal. On shutdown it is requested to exit, and keeps the terminal until then.
    async fn run_child(&self, program: &Path, arguments: &[String]) -> io::Result<std::process::ExitStatus> {
        let mut child = tokio::process::Command::new(program)
            .args(arguments)
            .stdin(Stdio::inherit())
            .stdout(Stdio::inherit())
            .stderr(Stdio::inherit())
            .spawn()?;
        tokio::select! {
            status = child.wait() => return status,
            () = self.shutdown.requested() => {}
        }
        if let Some(pid) = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed())) {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        }
        match tokio::time::timeout(CHILD_GRACE, child.wait()).await {
            Ok(status) => status,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Stops the whole process group, as the shell does for a job: with `cargo run` that is more than this process.
    async fn suspend(&mut self) -> io::Result<()> {
        let mut continued = signal(SignalKind::from_raw(CONTINUED))?;
        self.input = None;
        self.screen.leave();
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
        // The stop itself needs no wait; the timeout is for an orphaned process group, which cannot be stopped.
        let _ = tokio::time::timeout(Duration::from_millis(300), wait(&mut continued)).await;
        self.back_again()
    }

    fn back_again(&mut self) -> io::Result<()> {
        self.screen.again()?;
        self.input = Some(InputReader::start(self.shutdown.clone())?);
        self.drawn = None;
        self.app.redraw();
        Ok(())
    }

    #[allow(clippy::unnecessary_wraps, reason = "ends the functions that may fail otherwise")]
    fn report_failure(&mut self, what: &str, place: String) -> io::Result<()> {
        self.app.handle(AppEvent::Failed(what.to_owned(), place), Instant::now());
        Ok(())
    }
}

async fn wait(signal: &mut Signal) {
    signal.recv().await;
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake.into()).await,
        None => std::future::pending().await,
    }
}
