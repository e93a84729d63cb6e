//! Pane 5: running runs, runs that wait for a person, and ended ones; and the details of one run, updated from its
//! events.

mod blocks;
mod board_view;
mod commands;
mod compare_view;
mod detail;
mod detail_view;
mod empty_view;
mod feed;
mod filter;
mod keys;
mod list;
mod list_view;
mod live;
mod mouse;
mod reading;
mod state_view;
mod steps_view;
mod summaries;
mod table_view;
mod view;
mod views;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use ratatui::layout::Rect;

use self::board_view::BoardState;
use self::detail::{Detail, DetailCursor, DetailView};
use self::feed::{KnownRuns, RunPages};
use self::filter::Filter;
use self::list::{Row, rows};
use self::summaries::Summaries;
use crate::field::Field;
use crate::form_drafts::FormDrafts;
use crate::pane::{Effect, Message, PaneId, PickerKind, Target};
use crate::run_requests::{RunRequest, RunResponse};
use crate::widgets::scroll::Scroll;
use crate::widgets::text_width::shown;
use skills_api::{ConnectionState, Error, RunDetail, SavedView};
use skills_config::{RunColumn, RunSettings, RunSort};
use skills_model::RunState;
use skills_registry::Catalog;
use skills_skill::{Kind, Skill};
use skills_store::{EventKind, RunEvent, RunId, RunRecord};

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    List,
    Filter,
    /// The name under which a filter is saved.
    Name,
    Detail,
}

/// Areas of the last frame.
#[derive(Debug, Default)]
struct FrameAreas {
    list: Rect,
    filter: Rect,
    detail: Rect,
    /// Visible rows with their index among all rows.
    rows: Vec<(Rect, usize)>,
    /// Tabs with their index among all tabs.
    tabs: Vec<(Rect, usize)>,
    /// Values with the terms that add them to the filter.
    terms: Vec<(Rect, String)>,
    /// Column heads with their names.
    columns: Vec<(Rect, RunColumn)>,
    /// Rows of the board with their index.
    spots: Vec<(Rect, usize)>,
    stops: Vec<(Rect, DetailCursor)>,
    /// Texts that trigger an action when clicked.
    buttons: Vec<(Rect, crate::action::Action)>,
    /// The start of relative times on the screen, in milliseconds since 1970-01-01 UTC.
    since: Vec<i64>,
    /// The wall clock of the frame.
    clock_ms: i64,
}

/// The state of pane 5.
#[derive(Default)]
pub struct Runs {
    known: KnownRuns,
    feeds: RunPages,
    counts: BTreeMap<RunState, u64>,
    /// Whether the list has been loaded once: only then an empty list means that there are no runs.
    loaded: bool,
    /// Runs that are known to wait for a person; `None` before the open ones were loaded.
    told_waiting: Option<HashSet<RunId>>,
    error: Option<Error>,
    rows: Vec<Row>,
    scroll: Scroll,
    follow: bool,
    /// The run under the cursor, wherever its row moves.
    selected: Option<RunId>,
    /// Whether the user moved the cursor; until then it stays on the first run.
    moved: bool,
    focus: Focus,
    filter: Filter,
    /// The name being entered for a view.
    name: Field,
    /// Saved views.
    views: Vec<SavedView>,
    /// When they were last compared with those of the store; the first frame at the earliest.
    views_compared_at: Option<Instant>,
    /// The column that sorts the table, with a `-` prefix for descending order.
    sort: Option<RunSort>,
    settings: RunSettings,
    /// The board, while it is shown.
    board: Option<BoardState>,
    /// Runs that the next command applies to instead of the one under the cursor, with the start of their state when
    /// they were marked. A run that changed since is no longer marked.
    marked: HashMap<RunId, i64>,
    /// Whether all matches are marked as soon as they are loaded.
    marks_all: bool,
    summaries: Summaries,
    detail: Detail,
    catalog: Arc<Catalog>,
    /// The sandbox of scripts on this machine, as reported by a run or contract.
    machine: Option<String>,
    /// Whether a contract was requested to determine it.
    probed: bool,
    tickets: u64,
    /// The skill whose contract was requested for a launch.
    launching: Option<String>,
    /// Drafts of dialogs that were closed without submitting.
    typed: FormDrafts,
    /// Whether the core is unreachable, so that commands are refused.
    disconnected: bool,
    wanted: Vec<Effect>,
    /// The run, or a step of it, that is shown in the reader and follows new events.
    followed: Option<(RunId, Option<String>)>,
    drawn: FrameAreas,
}

impl Runs {
    /// Creates an empty pane with the focus on the list.
    #[must_use]
    pub fn new() -> Self {
        Self::of(RunSettings::default())
    }

    /// Creates a pane with the settings of a configuration.
    #[must_use]
    pub fn of(settings: RunSettings) -> Self {
        Self { follow: true, sort: settings.sort, settings, ..Self::default() }
    }

    /// Returns the run under the cursor.
    fn record(&self) -> Option<&RunRecord> {
        self.known.get(self.selected.as_ref()?)
    }

    /// Returns the number of runs in these states, over the entire store.
    fn count(&self, states: &[RunState]) -> u64 {
        states.iter().filter_map(|state| self.counts.get(state)).sum()
    }

    fn all(&self) -> u64 {
        self.counts.values().sum()
    }

    fn news(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Run(response) => {
                let mut effects = self.on_response(response);
                effects.extend(self.read_again());
                effects
            }
            Message::Event(skills_api::Event::Replaced) => self.reset(),
            Message::Catalog(catalog) => {
                self.catalog = Arc::clone(catalog);
                self.check_again()
            }
            Message::Event(skills_api::Event::Catalog(change)) => {
                self.catalog = Arc::clone(&change.catalog);
                self.check_again()
            }
            Message::Event(skills_api::Event::Connection(state)) => {
                self.disconnected = matches!(state, ConnectionState::Lost { .. });
                Vec::new()
            }
            Message::Visit(Target::Run(run)) => self.go_to(run),
            Message::Visit(Target::Happened(run)) => self.open_happened(run),
            Message::Visit(Target::Launch(_)) if self.disconnected => {
                vec![Effect::Toast(commands::DISCONNECTED.to_owned())]
            }
            Message::Visit(Target::Launch(skill)) => {
                self.launching = Some(skill.to_string());
                vec![Effect::Run(RunRequest::Contract(skill.to_string()))]
            }
            Message::Picked(PickerKind::CopyAs, what) => self.copy_as(what),
            Message::Picked(PickerKind::Launchable, skill) => {
                self.launching = Some(skill.clone());
                vec![Effect::Run(RunRequest::Contract(skill.clone()))]
            }
            Message::Picked(PickerKind::Checkpoint, choice) => self.picked(choice),
            Message::Picked(PickerKind::FilterTerm, text) => self.add_term(text),
            Message::Picked(PickerKind::RunSort, column) => self.sort_by(column.parse().ok()),
            Message::SavedDraft(sheet, typed) => {
                self.typed.keep(sheet, typed);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn on_response(&mut self, response: &RunResponse) -> Vec<Effect> {
        match response {
            RunResponse::Following => {
                let mut effects = self.feeds.refresh_all(&self.known);
                effects.extend(self.request_detail());
                effects.push(Effect::Run(RunRequest::Views(None)));
                effects
            }
            RunResponse::NotFollowing(error) => {
                if !self.loaded {
                    self.error = Some(error.clone());
                }
                self.feeds.refresh_all(&self.known)
            }
            RunResponse::Events(events) => self.happened(events),
            RunResponse::Page(generation, answer) => self.page(*generation, answer),
            RunResponse::Detail(run, answer) => self.take_detail(run, answer),
            RunResponse::Ordered(_, run, answer) => match answer {
                Ok(ordered) => {
                    let mut effects = vec![Effect::Toast(shown(&ordered.note))];
                    let made = ordered.run.id != *run;
                    if ordered.run.state != RunState::WaitingForHuman {
                        self.discard_submitted_drafts(Some(run), None);
                    }
                    self.known.put(ordered.run.clone(), true);
                    self.build();
                    if made {
                        effects.extend(self.go_to(&ordered.run.id));
                    }
                    effects
                }
                Err(error) => {
                    vec![Effect::ErrorNotice(format!("{}: failed", shown(&run.0)), shown(&error.message))]
                }
            },
            RunResponse::Board(hours, answer) => self.take_board(*hours, answer),
            RunResponse::Facets(filter, answer) => {
                self.take_summary(filter, answer);
                Vec::new()
            }
            RunResponse::Views(Ok(Some(list))) => self.take_views(&list.views),
            RunResponse::ViewSaved(name, Ok(list)) => {
                let mut effects = self.take_views(&list.views);
                effects.push(Effect::Toast(format!("saved as {}", shown(name))));
                effects
            }
            RunResponse::ViewSaved(_, Err(error)) => {
                vec![Effect::ErrorNotice("the view was not saved".to_owned(), shown(&error.message))]
            }
            RunResponse::Drained(Ok(_)) => self.request_board(),
            RunResponse::Drained(Err(error)) => {
                vec![Effect::ErrorNotice("the worker was not changed".to_owned(), shown(&error.message))]
            }
            RunResponse::Launched(_, Ok(launched)) => {
                let name = shown(&launched.run.skill_id);
                let note = if launched.worker_alive {
                    format!("{name} launched")
                } else {
                    format!("{name} launched, but no worker is connected")
                };
                self.known.put(launched.run.clone(), true);
                self.discard_submitted_drafts(None, Some(&launched.run.skill_id));
                let mut effects = vec![Effect::Toast(note)];
                effects.extend(self.go_to(&launched.run.id));
                effects
            }
            RunResponse::Launched(_, Err(error)) => {
                vec![Effect::ErrorNotice("nothing was launched".to_owned(), shown(&error.message))]
            }
            RunResponse::Launchable(Ok(ready)) => self.choose_skill(ready),
            RunResponse::Launchable(Err(error)) => {
                vec![Effect::ErrorNotice("cannot list skills".to_owned(), shown(&error.message))]
            }
            RunResponse::Contract(skill, answer) if self.launching.as_ref() == Some(skill) => {
                self.launching = None;
                match answer {
                    Ok(view) => self.open_launch(view),
                    Err(error) => {
                        vec![Effect::ErrorNotice(
                            format!("{} cannot be launched", shown(skill)),
                            shown(&error.message),
                        )]
                    }
                }
            }
            RunResponse::Contract(_, Ok(view)) => {
                self.machine = Some(view.isolation.clone());
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Resets everything after the core changed to another store.
    fn reset(&mut self) -> Vec<Effect> {
        self.known = KnownRuns::default();
        self.feeds.reset();
        self.counts.clear();
        (self.loaded, self.moved) = (false, false);
        self.told_waiting = None;
        (self.error, self.selected, self.launching) = (None, None, None);
        self.detail = Detail::default();
        self.typed.clear();
        self.unmark();
        self.summaries.reset();
        self.build();
        self.feeds.refresh_all(&self.known)
    }

    fn page(&mut self, generation: u64, answer: &Result<Arc<skills_store::RunPage>, Error>) -> Vec<Effect> {
        let page = match answer {
            Ok(page) => page,
            Err(error) => {
                self.feeds.failed(generation);
                self.error = Some(error.clone());
                return self.mark_found();
            }
        };
        self.counts.clone_from(&page.counts);
        let mut effects = self.feeds.take(generation, page, &mut self.known);
        if !self.feeds.lacks_a_part() {
            self.error = None;
        }
        self.loaded |= self.feeds.has_read_all();
        effects.extend(self.announce_waiting());
        self.build();
        if self.loaded && !self.is_complete() && !self.feeds.has_searched() {
            // The filter was entered while every known run was loaded.
            effects.extend(self.filter.in_force().and_then(|filter| self.feeds.find(Some(filter))));
        }
        effects.extend(self.mark_found());
        effects.extend(self.request_summaries());
        effects.extend(self.selection_changed());
        effects.extend(self.probe());
        effects
    }

    /// Reloads what depends on skills after a change of the catalog, such as what would execute a step.
    fn check_again(&mut self) -> Vec<Effect> {
        let mut effects = self.probe();
        if self.loaded {
            effects.extend(self.request_detail());
        }
        effects
    }

    /// Requests a contract to determine the sandbox of scripts while there are no runs.
    fn probe(&mut self) -> Vec<Effect> {
        if self.probed || !self.loaded || self.all() > 0 || self.machine.is_some() {
            return Vec::new();
        }
        let skills: Vec<String> = self.launchable().take(3).map(|skill| skill.id.to_string()).collect();
        self.probed = !skills.is_empty();
        skills.into_iter().map(|skill| Effect::Run(RunRequest::Contract(skill))).collect()
    }

    /// Returns skills that may have a contract, by their kind alone: sufficient to determine the sandbox.
    fn launchable(&self) -> impl Iterator<Item = &Arc<Skill>> {
        let skills = self.catalog.entries.iter().map(|entry| &entry.skill);
        skills.filter(|skill| skill.kind.value == Kind::Tool)
    }

    fn happened(&mut self, events: &[RunEvent]) -> Vec<Effect> {
        let telling = |event: &&RunEvent| event.event.kind != EventKind::StepLog;
        let mut effects = Vec::new();
        if events.iter().any(|event| telling(&event)) {
            let ends = [
                EventKind::RunCompleted,
                EventKind::RunFailed,
                EventKind::RunCanceled,
                EventKind::RunExpired,
                EventKind::GateDenied,
            ];
            let ended = events.iter().any(|event| ends.contains(&event.event.kind));
            self.summaries.runs_changed();
            effects.extend(self.feeds.refresh(ended, &self.known));
        }
        let Some(selected) = self.selected.clone() else { return effects };
        let of_it: Vec<&RunEvent> = events.iter().filter(|event| event.run == selected).collect();
        self.detail.add_events(&selected, &of_it);
        if of_it.iter().any(telling) {
            effects.extend(self.request_detail());
        }
        effects
    }

    /// Announces runs that began to wait since the last announcement, whichever response reported them.
    fn announce_waiting(&mut self) -> Vec<Effect> {
        // Runs that already wait when the workbench opens are not announced, whichever part of the list is loaded
        // first.
        if !self.feeds.has_read_open() {
            return Vec::new();
        }
        let Some(before) = self.told_waiting.replace(self.known.waiting()) else { return Vec::new() };
        let began = self.known.began_to_wait(&before);
        let deliver = |run: RunRecord| {
            let step = run.step.as_deref().map(|step| format!(" at {}", shown(step))).unwrap_or_default();
            Effect::Awaited(format!(
                "{} {} waits for approval{step}",
                shown(run.title_or_skill()),
                list::tail(&run.id)
            ))
        };
        began.into_iter().map(deliver).collect()
    }

    fn take_detail(&mut self, run: &RunId, answer: &Result<Arc<RunDetail>, Error>) -> Vec<Effect> {
        let found = answer.as_ref().map(|detail| &detail.run);
        let before = self.known.version();
        let (single, next) = self.feeds.take_run(run, found, &mut self.known);
        if single && self.known.version() != before {
            self.build();
        }
        if single && !self.detail.is_requested(run) {
            return next.into_iter().chain(self.announce_waiting()).collect();
        }
        if let Ok(detail) = answer {
            self.machine = Some(detail.isolation.clone());
            if self.known.get(run).is_some_and(|known| *known != detail.run)
                || self.selected.as_ref() == Some(run)
            {
                self.known.put(detail.run.clone(), self.known.is_listed(run));
                self.build();
            }
        }
        let again = self.detail.take(run, answer, self.selected.as_ref());
        let mut effects = if again { self.request_detail() } else { Vec::new() };
        effects.extend(next);
        effects.extend(self.announce_waiting());
        effects.extend(self.open_awaited_sheet(run));
        effects
    }

    fn request_detail(&mut self) -> Vec<Effect> {
        let Some(run) = self.selected.clone() else { return Vec::new() };
        let is_new = self.detail.ask(&run);
        is_new.then(|| Effect::Run(RunRequest::Detail(run))).into_iter().collect()
    }

    /// Rebuilds the rows; the cursor stays on its run.
    fn build(&mut self) {
        let older = self.all().saturating_sub(self.known.listed() as u64);
        self.rows = rows(&self.known, &self.filter, self.drawn.clock_ms, older);
        if self.is_table() {
            self.rows.retain(|row| matches!(row, Row::Run(_)));
            self.sort_rows();
        }
        self.summaries.rows_changed();
        if !self.marked.is_empty() {
            let listed: HashSet<&RunId> = self.rows.iter().filter_map(Row::run).collect();
            self.marked.retain(|id, since_ms| {
                listed.contains(id) && self.known.get(id).is_some_and(|run| run.since_ms == *since_ms)
            });
        }
        let at = |id: &RunId| self.rows.iter().position(|row| matches!(row, Row::Run(run) if run == id));
        let found = self.selected.as_ref().filter(|_| self.moved).and_then(at);
        let first = || self.rows.iter().position(|row| matches!(row, Row::Run(_)));
        self.scroll.cursor = match found {
            Some(row) => row,
            None if self.moved && self.selected.is_some() && self.filter.is_empty() => {
                list::nearest_run(&self.rows, self.scroll.cursor).unwrap_or(0)
            }
            None => first().unwrap_or(0),
        };
        self.follow = true;
    }

    /// Requests the data of the run under the cursor if it is another one than before.
    fn selection_changed(&mut self) -> Vec<Effect> {
        if self.board.is_some() {
            return self.select_on_board();
        }
        let Some(Row::Run(id)) = self.rows.get(self.scroll.cursor) else {
            // Commands must not apply to a run that the filter excludes.
            if !self.filter.is_empty() {
                self.selected = None;
                self.detail.hide();
            }
            return Vec::new();
        };
        if self.selected.as_ref() == Some(id) && self.detail.is_of(id) {
            return Vec::new();
        }
        let id = id.clone();
        self.selected = Some(id.clone());
        self.detail.show(&id);
        self.request_detail()
    }

    /// Moves the cursor to a run, resetting a filter that hides it.
    fn go_to(&mut self, run: &RunId) -> Vec<Effect> {
        if self.filter.clear() {
            self.unmark();
            self.feeds.find(None);
        }
        (self.moved, self.selected) = (true, Some(run.clone()));
        if matches!(self.focus, Focus::Filter | Focus::Name) {
            self.focus = Focus::List;
        }
        self.board = None;
        self.detail.show(run);
        self.build();
        self.request_detail()
    }

    fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    fn go_to_source(&mut self) -> Vec<Effect> {
        let source = self.record().and_then(|run| run.source.clone());
        source.map(|(run, _)| self.go_to(&run)).unwrap_or_default()
    }

    /// Returns whether something else is shown instead of the run.
    fn shows_other(&self) -> bool {
        !matches!(self.detail.showing, DetailView::Run)
    }

    /// The pane's own id, for effects that contain it.
    const ID: PaneId = PaneId::Runs;
}
