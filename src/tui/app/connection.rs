//! The connection to the core: its state in the header, and how commands reach the core from elsewhere.

use std::time::{Duration, Instant};

use crate::command_lines::CommandLines;
use crate::follow_runs::NO_UPDATES;
use crate::glyphs::Glyphs;
use crate::header::RemoteLocation;
use crate::notices::Notices;
use crate::overlay::Overlay;
use crate::pane::Message;
use crate::run_requests::{Outage, RunResponse};
use crate::settings::Settings;
use crate::widgets::{duration, moment_since};
use skills_api::{Code, Connection, ConnectionState, Error, Event};
use skills_skill::safe_text;

/// The connection, and the commands without a response.
pub(super) struct CoreConnection {
    connection: Connection,
    /// Set while the core reports its run store as unavailable.
    pub store_outage: Option<Outage>,
    /// When a remote core was last heard of before the connection was lost.
    heard_at: Option<Instant>,
    /// Number of commands to runs of a remote core without a response yet.
    unacknowledged: usize,
    commands: CommandLines,
    /// Whether runs are not persisted.
    passing: bool,
}

/// Describes what happens to runs executing here when the workbench exits.
fn stopped(runs: usize, passing: bool) -> Option<String> {
    let (are, they, the) = match runs {
        0 => return None,
        1 => ("1 run is executing here".to_owned(), "It has", "the run continues"),
        more => (format!("{more} runs are executing here"), "They have", "the runs continue"),
    };
    Some(if passing {
        format!("{are} and will be lost: the store is in memory.")
    } else {
        format!(
            "{are}. {they} 2 s to finish the current steps; unfinished steps are stopped, and {the} at \
                the next start. Steps that are not idempotent require a decision then."
        )
    })
}

impl CoreConnection {
    pub fn new(connection: Connection, settings: &Settings) -> Self {
        let is_private = settings.passing && matches!(connection, Connection::Local);
        let commands = CommandLines::new(settings.invocation.clone(), is_private);
        Self {
            connection,
            store_outage: None,
            heard_at: None,
            unacknowledged: 0,
            commands,
            passing: settings.passing,
        }
    }

    /// Handles whether the events of runs can be followed, which the run store may prevent.
    pub fn store_changed(&mut self, response: &RunResponse, notices: &mut Notices) {
        self.store_outage = match response {
            RunResponse::NotFollowing(outage) if outage.is_of_store() => Some(outage.clone()),
            _ => None,
        };
        if matches!(response, RunResponse::Following) {
            notices.over(NO_UPDATES);
        }
    }

    /// Handles a change of the connection; returns whether it is restored after a loss.
    pub fn change(&mut self, state: &ConnectionState, notices: &mut Notices, now: Instant) -> bool {
        let Connection::Remote { address, state: current } = &mut self.connection else { return false };
        let before = std::mem::replace(current, state.clone());
        let what = format!("connection to {address} lost");
        // The notice already names the address.
        let reason = |why: &str| {
            let why = why.strip_prefix(address.as_str()).map_or(why, str::trim_start);
            safe_text::line(why).into_owned()
        };
        match (&before, state) {
            (ConnectionState::Silent { since }, ConnectionState::Lost { .. }) => self.heard_at = Some(*since),
            (ConnectionState::Connected, ConnectionState::Lost { since, .. }) => self.heard_at = Some(*since),
            _ => {}
        }
        match (before, state) {
            (ConnectionState::Lost { .. }, ConnectionState::Lost { why, .. }) => {
                notices.retell(&what, reason(why));
            }
            // The header shows it, and the connection may recover shortly.
            (_, ConnectionState::Silent { .. }) => {}
            (_, ConnectionState::Lost { why, .. }) => notices.error(what, reason(why)),
            (ConnectionState::Lost { since, .. }, ConnectionState::Connected) => {
                notices.over(&what);
                let away = now.saturating_duration_since(since).as_millis();
                let away = duration(i64::try_from(away).unwrap_or(i64::MAX));
                notices.note(format!("reconnected after {away}; fetching missed changes"), now);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Returns the outage of a remote core whose connection is lost.
    pub fn service_outage(&self, now: Instant, now_ms: i64) -> Option<Outage> {
        let Connection::Remote { address, state: ConnectionState::Lost { since, why, .. } } =
            &self.connection
        else {
            return None;
        };
        let wall_ms = |at: &Instant| {
            let ago = now.saturating_duration_since(*at).as_millis();
            now_ms.saturating_sub(i64::try_from(ago).unwrap_or(i64::MAX))
        };
        let error = Error::service_unreachable(Code::UpstreamFailure, address, why.clone());
        Some(Outage::new(error, self.heard_at.as_ref().map(wall_ms), wall_ms(since)))
    }

    /// Delivers the state of the connection to an overlay that opens.
    pub fn introduce(&self, overlay: &mut dyn Overlay) {
        if let Connection::Remote { state, .. } = &self.connection {
            overlay.on_message(&Message::Event(Event::Connection(state.clone())));
        }
    }

    /// Counts a command to a run that a remote core has to acknowledge.
    pub fn sent(&mut self) {
        self.unacknowledged += usize::from(self.address().is_some());
    }

    pub fn acknowledged(&mut self) {
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
    }

    /// Describes what happens to commands without a response if the workbench quits now.
    pub fn undelivered(&self) -> Option<String> {
        match self.unacknowledged {
            0 => None,
            1 => {
                Some("A command was sent, but not yet acknowledged; the run will show the result.".to_owned())
            }
            many => Some(format!(
                "{many} commands were sent, but not yet acknowledged; the runs will show the results."
            )),
        }
    }

    /// Describes what happens to runs that this process executes. Those of a service continue without it.
    pub fn stopped(&self, runs: usize) -> Option<String> {
        self.address().is_none().then(|| stopped(runs, self.passing)).flatten()
    }

    /// Returns the address of a remote core.
    pub fn address(&self) -> Option<&str> {
        match &self.connection {
            Connection::Local => None,
            Connection::Remote { address, .. } => Some(address),
        }
    }

    /// Returns how command lines for other processes are completed.
    pub fn commands(&self) -> &CommandLines {
        &self.commands
    }

    /// Returns whether commands are refused because the core is unreachable.
    pub fn is_lost(&self) -> bool {
        matches!(&self.connection, Connection::Remote { state: ConnectionState::Lost { .. }, .. })
    }

    /// Returns whether the screen shows old data because the current state is unknown.
    pub fn is_stale(&self) -> bool {
        matches!(
            &self.connection,
            Connection::Remote { state: ConnectionState::Lost { .. } | ConnectionState::Silent { .. }, .. }
        )
    }

    /// Returns whether the runs on the screen are outdated.
    pub fn has_stale_runs(&self) -> bool {
        self.is_stale() || self.store_outage.as_ref().is_some_and(Outage::is_unreachable)
    }

    /// Returns when the countdown in the header next changes.
    pub fn next_second(&self, now: Instant) -> Option<Instant> {
        let next_try = match &self.connection {
            Connection::Remote { state: ConnectionState::Lost { next_try, .. }, .. } => next_try,
            Connection::Remote { state: ConnectionState::Silent { since }, .. } => {
                let seconds = now.saturating_duration_since(*since).as_secs();
                return since.checked_add(Duration::from_secs(seconds + 1));
            }
            _ => return None,
        };
        let left = seconds(next_try.saturating_duration_since(now));
        (left > 0).then(|| next_try.checked_sub(Duration::from_secs(left - 1)).unwrap_or(*next_try))
    }

    /// Returns the connection in increasingly shorter forms for the header; `None` for a core in this process with a
    /// store that works.
    pub fn place(&self, glyphs: &Glyphs, now: Instant, now_ms: i64) -> Option<RemoteLocation> {
        let (set, lost) = (glyphs.set, glyphs.lost);
        let outage = self.store_outage.as_ref();
        let outage = outage.map(|outage| (outage.what(), moment_since(outage.since_ms, now_ms)));
        let Connection::Remote { address, state } = &self.connection else {
            let (what, since) = outage?;
            let long = format!("{lost} {what} since {since}");
            let forms = vec![long, format!("{lost} {what}"), format!("{lost} store")];
            return Some(RemoteLocation { forms, alarm: true });
        };
        let alarm = outage.is_some() || *state != ConnectionState::Connected;
        let forms = match (state, outage) {
            (ConnectionState::Connected, Some((what, since))) => vec![
                format!("{set} remote {address}, {what} since {since}"),
                format!("{set} remote, {what} since {since}"),
                format!("{set} {what} since {since}"),
                format!("{set} {what}"),
                format!("{set} store"),
            ],
            (ConnectionState::Connected, None) => {
                vec![format!("{set} remote {address}"), format!("{set} {address}"), format!("{set} remote")]
            }
            (ConnectionState::Connecting, _) => {
                vec![format!("{lost} connecting to {address}"), format!("{lost} connecting")]
            }
            (ConnectionState::Silent { since }, _) => {
                let silent = now.saturating_duration_since(*since).as_secs();
                vec![
                    format!("{lost} {address} {} no response for {silent} s", glyphs.dot),
                    format!("{lost} no response for {silent} s"),
                    format!("{lost} silent {silent} s"),
                    format!("{lost} {silent} s"),
                    lost.to_owned(),
                ]
            }
            (ConnectionState::Lost { next_try, .. }, _) => {
                let left = seconds(next_try.saturating_duration_since(now));
                let (long, short, brief) = match left {
                    0 => ("reconnecting".to_owned(), "lost".to_owned(), format!("{lost} 0 s")),
                    left => (
                        format!("reconnecting in {left} s"),
                        format!("lost {left} s"),
                        format!("{lost} {left} s"),
                    ),
                };
                vec![
                    format!("{lost} {address} {} {long}", glyphs.dot),
                    format!("{lost} {long}"),
                    format!("{lost} {short}"),
                    brief,
                    lost.to_owned(),
                ]
            }
        };
        Some(RemoteLocation { forms, alarm })
    }
}

/// Returns whole seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    use super::*;
    use crate::app::App;
    use crate::app::{AppEvent, PersistentState};
    use crate::pane::Pane;
    use crate::pane::PaneId;
    use crate::panes::session::SessionPane;
    use crate::panes::{attach::Attach, browse::Browse, discover::Discover, discover::History, runs::Runs};
    use crate::settings::Settings;
    use skills_api::Event;

    fn app(ascii: bool, now: Instant) -> App {
        let glyphs = if ascii { skills_config::GlyphSet::Ascii } else { skills_config::GlyphSet::Unicode };
        let settings = Settings { glyphs, ..Settings::default() };
        let panes: Vec<Box<dyn Pane>> = vec![
            Box::new(Browse::new()),
            Box::new(Discover::new(History::from_entries(Vec::new()))),
            Box::new(Runs::new()),
        ];
        let state = ConnectionState::Connected;
        let connection = Connection::Remote { address: "gate.example:8080".to_owned(), state };
        App::new(connection, panes, &settings, &PersistentState::default(), now).unwrap()
    }

    fn deliver(app: &mut App, state: ConnectionState, now: Instant) {
        app.handle(AppEvent::All(Message::Event(Event::Connection(state))), now);
    }

    fn lost(now: Instant, in_s: u64) -> ConnectionState {
        ConnectionState::Lost {
            since: now,
            why: "gate.example:8080 cannot be reached: Connection refused".to_owned(),
            next_try: now + Duration::from_secs(in_s),
        }
    }

    #[test]
    fn a_catalog_that_was_requested_before_a_change_does_not_replace_it() {
        use crate::app::Refreshed;
        use crate::pane::Message;
        use skills_api::Event;
        use skills_registry::{Catalog, Change, ScanProgress};

        let now = Instant::now();
        let mut app = app(false, now);
        let since = app.received();
        let changed = Catalog { generation: 1, ..Catalog::default() };
        let change = Change { catalog: changed.into(), ..Change::default() };
        app.handle(AppEvent::All(Message::Event(Event::Catalog(change.into()))), now);
        let refresh = |since| {
            let catalog = Some(Catalog { generation: 0, ..Catalog::default() }.into());
            AppEvent::Refreshed(Box::new(Refreshed { since, catalog, diagnostics: None }))
        };
        app.handle(refresh(since), now);
        assert_eq!(app.executor.screen.core.catalog.generation, 1);
        // A service that was restarted counts from the start.
        let since = app.received();
        app.handle(AppEvent::All(Message::Event(Event::Scan(ScanProgress::default()))), now);
        app.handle(refresh(since), now);
        assert_eq!(app.executor.screen.core.catalog.generation, 0);
    }

    #[test]
    fn a_late_report_replaces_only_its_pending_frame() {
        use crate::pane::{Effect, PaneId};
        use crate::why_report::{failed, pending};
        use crossterm::event::{Event as Input, KeyCode, KeyEvent};
        use skills_api::WhyRequest;

        let now = Instant::now();
        let mut app = app(false, now);
        let request = |id: &str| WhyRequest { skill_id: id.to_owned(), ..WhyRequest::default() };
        let report = |id: &str| AppEvent::Read(Box::new(failed(pending(&request(id)), "no such skill")));
        let has_frame = |app: &App| app.executor.screen.overlays.top.is_some();
        app.executor.run_effects(PaneId::Browse, vec![Effect::Why(request("a"))], now);
        assert!(has_frame(&app), "the frame opens before the report is there");
        app.handle(report("b"), now);
        app.handle(AppEvent::Input(Input::Key(KeyEvent::from(KeyCode::Esc))), now);
        assert!(!has_frame(&app));
        app.handle(report("a"), now);
        assert!(!has_frame(&app), "a frame that was closed does not open again");
    }

    #[test]
    fn progress_is_shown_by_a_terminal_that_can() {
        use crate::app::AppCommand;
        use skills_api::IndexProgress;
        use skills_config::TerminalProgress;

        let now = Instant::now();
        let index = |indexed, done| Event::Index(IndexProgress { indexed, total: 10, done });
        for progress in [true, false] {
            let settings = Settings { progress, ..Settings::default() };
            let panes: Vec<Box<dyn Pane>> = vec![Box::new(Browse::new())];
            let remembered = PersistentState::default();
            let mut app = App::new(Connection::Local, panes, &settings, &remembered, now).unwrap();
            let mut shown = Vec::new();
            for event in [index(1, false), index(1, false), index(5, false), index(10, true)] {
                app.handle(AppEvent::All(Message::Event(event)), now);
                shown.extend(app.take_commands().into_iter().filter_map(|want| match want {
                    AppCommand::Progress(progress) => Some(progress),
                    _ => None,
                }));
            }
            let expected =
                [TerminalProgress::Percent(10), TerminalProgress::Percent(50), TerminalProgress::Hidden];
            assert_eq!(shown, if progress { expected.to_vec() } else { Vec::new() });
        }
    }

    #[test]
    fn a_notification_is_withdrawn_after_the_wait() {
        use crate::app::AppCommand;
        use crate::run_requests::RunResponse;
        use skills_api::{Reminder, TerminalSignals};
        use skills_model::{ApprovalReason, Gate};
        use skills_store::{EventKind, NewEvent, RunEvent, RunId};

        let now = Instant::now();
        let mut app = app(false, now);
        app.terminal.signs = TerminalSignals { bell: false, osc: true, withdrawable: true };
        let run = RunId("0198-a1".to_owned());
        let gate = Gate::human("pay", "d", ApprovalReason::Confirmation);
        let reminder = Reminder {
            run: run.clone(),
            skill_id: "demo".into(),
            title: None,
            gate,
            since_ms: 50,
            expires_ms: None,
        };
        app.handle(AppEvent::All(Message::Event(Event::Waiting(Box::new(reminder)))), now);
        let mut signs = |kind: EventKind, at_ms: i64| {
            let event = NewEvent { kind, step: None, data: serde_json::json!({}) };
            let event = RunEvent { run: run.clone(), number: 1, global: 1, at_ms, event };
            app.take_commands();
            app.handle(AppEvent::All(Message::Run(RunResponse::Events([event].into()))), now);
            let commands = app.take_commands().into_iter();
            commands.filter(|command| matches!(command, AppCommand::Notify(_))).count()
        };
        assert_eq!(signs(EventKind::RunClaimed, 50), 0, "before the wait");
        assert_eq!(signs(EventKind::RunAssigned, 60), 0, "it still waits");
        assert_eq!(signs(EventKind::GateApproved, 70), 1);
        assert_eq!(signs(EventKind::RunClaimed, 71), 0, "withdrawn once");
    }

    #[test]
    fn note_about_a_pane_ends_with_it() {
        use crate::pane::{Effect, PaneId};

        let now = Instant::now();
        let mut app = app(false, now);
        let screen = |app: &mut App| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 120, 36));
            app.draw(&mut buffer, now);
            crate::picture::text(&buffer)
        };
        let toast = |text: &str| vec![Effect::Toast(text.to_owned())];
        app.executor.run_effects(PaneId::Browse, vec![Effect::Go(PaneId::Browse, None)], now);
        app.executor.run_effects(PaneId::Browse, toast("was unloaded"), now);
        assert!(screen(&mut app).contains("was unloaded"));
        app.executor.run_effects(PaneId::Browse, vec![Effect::Go(PaneId::Runs, None)], now);
        assert!(!screen(&mut app).contains("was unloaded"));
        app.executor.run_effects(PaneId::Browse, toast("was saved"), now);
        app.executor.run_effects(PaneId::Runs, vec![Effect::Go(PaneId::Browse, None)], now);
        assert!(screen(&mut app).contains("was saved"), "a late response is shown in any pane");
    }

    #[test]
    fn header_shows_lost_connection() {
        let start = Instant::now();
        let mut app = app(false, start);
        let later = start + Duration::from_secs(20);
        deliver(&mut app, ConnectionState::Silent { since: start }, later);
        assert!(header(&mut app, 120, later).contains("gate.example:8080 · no response for 20 s"));
        assert!(
            app.executor.screen.connection.is_stale() && !app.executor.screen.notices.any_error(),
            "it may be over in a moment"
        );
        let next = app.next_change(later).unwrap();
        assert_eq!(next, start + Duration::from_secs(21));
        app.tick(next);
        assert!(app.dirty() && header(&mut app, 60, next).contains("no response for 21 s"));
        deliver(&mut app, ConnectionState::Connected, next);
        assert!(
            header(&mut app, 120, next).contains("remote gate.example:8080")
                && !app.executor.screen.connection.is_stale()
        );
    }

    #[test]
    fn header_shows_that_the_store_is_unavailable() {
        let now = Instant::now();
        let mut app = app(false, now);
        let error = Error::new(Code::StoreUnavailable, "the run store is unavailable");
        let outage = Outage::new(error, None, 1_000);
        app.handle(AppEvent::All(Message::Run(RunResponse::NotFollowing(outage))), now);
        assert!(header(&mut app, 140, now).contains("remote gate.example:8080, store unreachable since"));
        assert!(header(&mut app, 80, now).contains("store unreachable"));
        app.handle(AppEvent::Failed(NO_UPDATES.to_owned(), "the run store is unavailable".to_owned()), now);
        assert!(app.executor.screen.notices.any_error());
        app.handle(AppEvent::All(Message::Run(RunResponse::Following)), now);
        assert!(!header(&mut app, 120, now).contains("store"));
        assert!(!app.executor.screen.notices.any_error());
    }

    fn header(app: &mut App, width: u16, now: Instant) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, 12));
        app.draw(&mut buffer, now);
        let text = crate::picture::text(&buffer);
        text.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn header_shows_address_and_connection_at_every_width() {
        let start = Instant::now();
        let mut seen = String::new();
        for ascii in [false, true] {
            let mut app = app(ascii, start);
            for width in [120, 80, 60, 40] {
                seen += &format!("{}\n", header(&mut app, width, start));
            }
            deliver(&mut app, lost(start, 3), start);
            for width in [120, 80, 60, 40] {
                seen += &format!("{}\n", header(&mut app, width, start));
            }
            seen += &format!("{}\n", header(&mut app, 120, start + Duration::from_secs(3)));
        }
        insta::assert_snapshot!(seen);
    }

    #[test]
    fn outage_seconds_are_shown_in_a_small_window() {
        let start = Instant::now();
        let panes: Vec<Box<dyn Pane>> = vec![
            Box::new(Browse::new()),
            Box::new(Discover::new(History::from_entries(Vec::new()))),
            Box::new(Attach::new()),
            Box::new(SessionPane::new()),
            Box::new(Runs::new()),
        ];
        let connection =
            Connection::Remote { address: "gate.example:8080".to_owned(), state: ConnectionState::Connected };
        let settings = Settings { glyphs: skills_config::GlyphSet::Unicode, ..Settings::default() };
        let mut app = App::new(connection, panes, &settings, &PersistentState::default(), start).unwrap();
        deliver(&mut app, lost(start, 3), start);
        assert!(
            header(&mut app, 76, start).trim_end().ends_with(" ◌ 3 s"),
            "{}",
            header(&mut app, 76, start)
        );
        let later = start + Duration::from_secs(22);
        deliver(&mut app, ConnectionState::Silent { since: start }, later);
        assert!(
            header(&mut app, 76, later).trim_end().ends_with(" ◌ 22 s"),
            "{}",
            header(&mut app, 76, later)
        );
    }

    #[test]
    fn leaving_with_an_unacknowledged_command_is_confirmed() {
        use crate::pane::Effect;
        use crate::run_requests::RunRequest;
        use skills_api::RunCommand;
        use skills_store::RunId;

        let now = Instant::now();
        let mut app = app(false, now);
        let run = RunId("0198a1b2".to_owned());
        let command = Box::new(RunCommand::Cancel { by: None });
        let request = RunRequest::Command { run: run.clone(), command, ticket: 1 };
        app.executor.run_effects(PaneId::Runs, vec![Effect::Run(request)], now);
        app.executor.leave(now);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 100, 20));
        app.draw(&mut buffer, now);
        let screen = crate::picture::text(&buffer);
        assert!(screen.contains("not yet acknowledged"), "{screen}");
        assert!(!app.take_commands().contains(&crate::app::AppCommand::Quit));
        app.executor.screen.overlays.top = None;
        let answer =
            RunResponse::CommandDone(1, run, Err(Error::new(Code::InvalidTransition, "it has ended")));
        app.handle(AppEvent::Answer(PaneId::Runs, Message::Run(answer)), now);
        app.executor.leave(now);
        assert!(app.take_commands().contains(&crate::app::AppCommand::Quit));
    }

    #[test]
    fn footer_shows_that_commands_are_rejected() {
        let now = Instant::now();
        for width in [120, 80, 40] {
            let mut app = app(false, now);
            let footer = |app: &mut App| {
                let mut buffer = Buffer::empty(Rect::new(0, 0, width, 20));
                app.draw(&mut buffer, now);
                crate::picture::text(&buffer).lines().last().unwrap_or_default().to_owned()
            };
            assert!(!footer(&mut app).contains("no connection"));
            deliver(&mut app, lost(now, 3), now);
            let screen = footer(&mut app);
            assert!(screen.contains("no connection") && screen.contains('?'), "{screen}");
            assert_eq!(screen.contains("commands are refused"), width >= 80, "{screen}");
            app.executor.perform(crate::action::Action::Help, now);
            assert!(footer(&mut app).contains("no connection"), "in front of a dialog's keys too");
            app.executor.screen.overlays.top = None;
            deliver(&mut app, ConnectionState::Connected, now);
            assert!(!footer(&mut app).contains("no connection"));
        }
    }

    #[test]
    fn nothing_is_rescanned_without_a_connection() {
        let now = Instant::now();
        let mut app = app(false, now);
        deliver(&mut app, lost(now, 3), now);
        app.take_commands();
        app.executor.perform(crate::action::Action::Rescan, now);
        assert!(!app.take_commands().contains(&crate::app::AppCommand::Rescan));
        let mut buffer = Buffer::empty(Rect::new(0, 0, 120, 40));
        app.draw(&mut buffer, now);
        let screen = crate::picture::text(&buffer);
        assert!(screen.contains("not rescanned: no connection to the service"), "{screen}");
    }

    #[test]
    fn countdown_updates_and_reason_clears_on_reconnect() {
        let start = Instant::now();
        let mut app = app(false, start);
        deliver(&mut app, lost(start, 2), start);
        assert!(header(&mut app, 120, start).contains("in 2 s"));
        let next = app.next_change(start).unwrap();
        assert_eq!(next, start + Duration::from_secs(1));
        app.tick(next);
        assert!(app.dirty() && header(&mut app, 120, next).contains("in 1 s"));
        let mut buffer = Buffer::empty(Rect::new(0, 0, 120, 20));
        app.draw(&mut buffer, next);
        let screen = crate::picture::text(&buffer);
        assert!(screen.contains("Connection refused") && screen.contains(" lost"), "{screen}");
        let dim = |buffer: &Buffer| buffer[(3, 5)].modifier.contains(ratatui::style::Modifier::DIM);
        assert!(dim(&buffer), "what may be old is dimmed");
        let later = start + Duration::from_secs(12);
        deliver(&mut app, ConnectionState::Connected, later);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 120, 20));
        app.draw(&mut buffer, later);
        let screen = crate::picture::text(&buffer);
        assert!(!screen.contains("refused") && screen.contains("reconnected after 12.0 s"), "{screen}");
        assert!(screen.contains("● remote gate.example:8080"), "{screen}");
    }

    #[test]
    fn one_run_and_several_have_correct_grammar() {
        assert_eq!(stopped(0, false), None);
        let one = stopped(1, false).unwrap();
        assert!(
            one.starts_with("1 run is executing here. It has 2 s") && one.contains("the run continues at"),
            "{one}"
        );
        let many = stopped(3, false).unwrap();
        assert!(many.starts_with("3 runs are executing here. They have 2 s"), "{many}");
        assert!(many.contains("the runs continue at the next start"), "{many}");
        assert_eq!(
            [stopped(1, true).unwrap(), stopped(2, true).unwrap()],
            [
                "1 run is executing here and will be lost: the store is in memory.",
                "2 runs are executing here and will be lost: the store is in memory."
            ]
        );
    }
}
