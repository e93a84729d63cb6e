//! The runs with the details of the one under the cursor, and the board in place of both.

use ratatui::layout::Position;

use super::board::BoardState;
use super::compare_view::{Compared, compared};
use super::detail::{DetailCursor, DetailState, DetailView};
use super::list::Row;
use super::reading::{Followed, read, read_again};
use super::run_list::{RunList, changes_run};
use super::views::Tab;
use super::{Focus, commands, copy};
use crate::action::Action;
use crate::pane::{Effect, PaneId, Target};
use skills_api::{Board, Code, Error, RunDetail};
use skills_config::RunSettings;
use skills_store::{RunEvent, RunId, RunPage, RunQuery};

/// The state of the list, the details and the board.
#[derive(Default)]
pub(super) struct RunBrowser {
    pub list: RunList,
    pub detail: DetailState,
    /// The board, while it is shown.
    pub board: Option<BoardState>,
    pub focus: Focus,
    followed: Followed,
}

impl RunBrowser {
    pub fn of(settings: RunSettings) -> Self {
        Self { list: RunList::of(settings), ..Self::default() }
    }

    /// Drops everything after the core changed to another store.
    pub fn reset(&mut self) -> Vec<Effect> {
        self.detail.reset();
        self.list.reset();
        self.list.runs.refresh_all()
    }

    pub fn request_detail(&mut self) -> Option<Effect> {
        self.detail.request(self.list.selected.as_ref()?)
    }

    /// Requests the data of the run under the cursor if it is not the same as before.
    pub fn selection_changed(&mut self) -> Option<Effect> {
        let selected = match &self.board {
            Some(board) => board.run(),
            None => self.list.rows.get(self.list.scroll.cursor).and_then(Row::run),
        };
        let Some(selected) = selected else {
            // Commands must not apply to a run that the filter excludes, or that the cursor of the board has left.
            if self.board.is_some() || !self.list.filter.is_empty() {
                self.list.selected = None;
                self.detail.hide();
            }
            return None;
        };
        if self.list.selected.as_ref() == Some(selected) && self.detail.is_of(selected) {
            return None;
        }
        self.list.moved |= self.board.is_some();
        self.detail.show(selected);
        self.list.selected = Some(selected.clone());
        self.request_detail()
    }

    /// Returns the filter of the runs on the screen; the board has none.
    pub fn shown_filter(&self) -> Option<RunQuery> {
        self.list.filter.query().filter(|_| self.board.is_none()).cloned()
    }

    /// Moves the cursor to a run, resetting a filter that hides it.
    pub fn go_to(&mut self, run: &RunId) -> Option<Effect> {
        if self.list.filter.clear() {
            self.list.unmark();
            self.list.runs.feeds.find(None, &self.list.runs.known);
        }
        (self.list.moved, self.list.selected) = (true, Some(run.clone()));
        if matches!(self.focus, Focus::Filter | Focus::Name) {
            self.focus = Focus::List;
        }
        self.board = None;
        self.detail.show(run);
        self.list.build();
        self.request_detail()
    }

    pub fn filtered(&mut self) -> Vec<Effect> {
        let is_changed = self.list.apply_filter();
        let request = self.selection_changed();
        request.into_iter().chain(self.list.find_matches(is_changed)).collect()
    }

    pub fn add_term(&mut self, text: &str) -> Vec<Effect> {
        self.list.add_term(text);
        self.focus = Focus::List;
        self.filtered()
    }

    pub fn page(&mut self, generation: u64, page: &RunPage) -> Vec<Effect> {
        let mut effects = self.list.take_page(generation, page);
        effects.extend(self.selection_changed());
        effects
    }

    pub fn happened(&mut self, events: &[RunEvent]) -> Vec<Effect> {
        let mut effects = self.list.happened(events);
        let Some(selected) = &self.list.selected else { return effects };
        let of_it: Vec<&RunEvent> = events.iter().filter(|event| event.run == *selected).collect();
        self.detail.add_events(selected, &of_it);
        if of_it.iter().any(|event| changes_run(event)) {
            effects.extend(self.request_detail());
        }
        effects
    }

    /// Handles the details of a run; returns whether they were requested to be shown, too.
    pub fn take_detail(
        &mut self,
        run: &RunId,
        answer: &Result<std::sync::Arc<RunDetail>, Error>,
    ) -> (Vec<Effect>, bool) {
        let (list, runs) = (&mut self.list, answer.as_ref().map(|detail| &detail.run));
        let before = list.runs.known.version();
        let (single, next) = list.runs.feeds.take_run(run, runs, &mut list.runs.known);
        if runs.is_err_and(|error| error.code == Code::NotFound) {
            list.runs.known.remove(run);
        }
        let is_changed = list.runs.known.version() != before;
        if is_changed {
            list.build();
        }
        if single && !self.detail.is_requested(run) {
            let mut effects: Vec<Effect> = next.into_iter().chain(list.runs.announce_waiting()).collect();
            if is_changed {
                // Its row may have appeared, or disappeared from under the cursor.
                effects.extend(self.selection_changed());
            }
            return (effects, false);
        }
        if let Ok(detail) = answer
            && (list.runs.known.get(run).is_some_and(|known| *known != detail.run)
                || list.selected.as_ref() == Some(run))
        {
            list.runs.known.put(detail.run.clone(), list.runs.known.is_listed(run));
            list.build();
        }
        let again = self.detail.take(run, answer, list.selected.as_ref());
        let mut effects: Vec<Effect> = again.then(|| self.request_detail()).flatten().into_iter().collect();
        effects.extend(next.into_iter().chain(self.list.runs.announce_waiting()));
        if is_changed {
            // A deleted run has no row for the cursor any longer.
            effects.extend(self.selection_changed());
        }
        (effects, true)
    }

    /// Returns the update of the reader with the current state.
    pub fn read_again(&self) -> Option<Effect> {
        read_again(&self.detail, &self.followed)
    }

    /// Handles actions that precede the commands of a run: those on the board, and on views and filters.
    pub fn act_on_view(&mut self, action: Action) -> Option<Vec<Effect>> {
        // A key reaches the pane only if no overlay is shown.
        self.followed = None;
        if let Some(effects) = self.act_on_board(action) {
            return Some(effects);
        }
        Some(match action {
            Action::NextTab | Action::PreviousTab
                if !self.detail.shows_other() && self.focus != Focus::Name =>
            {
                let by = if action == Action::NextTab { 1 } else { -1 };
                self.open_tab(self.list.views.turned(&self.list.filter, self.board.is_some(), by))
            }
            Action::ShowBoard => self.open_board(),
            Action::SaveView => match self.list.views.begin_saving(&self.list.filter) {
                Ok(()) => {
                    self.focus = Focus::Name;
                    Vec::new()
                }
                Err(why_not) => vec![why_not],
            },
            Action::AddTerm => self.list.choose_term(),
            Action::SortRuns => self.list.choose_sort(),
            _ => return None,
        })
    }

    /// Executes an action on the run that opens no dialog.
    pub fn act_on_run(&mut self, action: Action) -> Option<Vec<Effect>> {
        let on_detail = self.focus == Focus::Detail;
        Some(match action {
            Action::Compare => match compared(&self.list, &self.detail, on_detail) {
                Compared::State(number) => {
                    self.detail.show_state(number);
                    Vec::new()
                }
                Compared::Run(run) => self.show_pair(&run),
                Compared::Choice(picker) => vec![Effect::Pick(picker)],
                Compared::Nothing => Vec::new(),
            },
            Action::Read => match read(&self.detail, on_detail) {
                Some((reading, followed)) => {
                    self.followed = followed;
                    vec![Effect::Read(Box::new(reading))]
                }
                None => vec![Effect::Toast("loading the run".to_owned())],
            },
            Action::ShowCheckpoint => {
                let head = self.list.record()?.head;
                let number = self.detail.checkpoint().unwrap_or(head);
                self.detail.show_state(number);
                if self.detail.shows_other() {
                    self.focus = Focus::Detail;
                    Vec::new()
                } else if self.detail.get().is_none() {
                    vec![Effect::Toast("loading this run; try again in a moment".to_owned())]
                } else {
                    vec![Effect::Toast(format!("checkpoint {number} of this run no longer exists"))]
                }
            }
            Action::NextTab | Action::PreviousTab if self.detail.shows_other() => {
                self.detail.adjacent_state(if action == Action::NextTab { 1 } else { -1 });
                Vec::new()
            }
            Action::AttachThis => {
                let run = &self.list.record()?.id.0;
                let target = match &self.detail.stop {
                    Some(DetailCursor::Step(step)) if on_detail => ("output", format!("{run}/{step}")),
                    _ => ("run", run.clone()),
                };
                let target = Some((target.0.to_owned(), target.1));
                vec![Effect::Go(PaneId::Attach, Some(Target::Attach { skill: None, target }))]
            }
            Action::Copy => vec![Effect::copy_line(&self.list.record()?.id.0, "id")],
            Action::CopyAs => vec![Effect::Pick(copy::choices(self.list.record()?))],
            _ => return None,
        })
    }

    /// Handles actions in the part that has the focus.
    pub fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::NextPart if self.focus == Focus::Filter => {
                let completed = self.list.filter.complete(&self.list.runs.known);
                return Some(if completed { self.filtered() } else { Vec::new() });
            }
            Action::NextPart | Action::PreviousPart => {
                self.focus = if self.focus == Focus::Detail { Focus::List } else { Focus::Detail };
            }
            Action::Filter => {
                self.focus = Focus::Filter;
                self.list.filter.begin();
                return Some(self.close_board());
            }
            _ => {
                return match self.focus {
                    Focus::List => self.act_in_list(action),
                    Focus::Filter => self.act_in_filter(action),
                    Focus::Name => Some(self.act_in_name(action)),
                    Focus::Detail => self.act_in_detail(action),
                };
            }
        }
        Some(Vec::new())
    }

    fn act_in_list(&mut self, action: Action) -> Option<Vec<Effect>> {
        let list = &mut self.list;
        match action {
            Action::Open => {
                if list.selected.is_some() {
                    (self.focus, list.moved) = (Focus::Detail, true);
                    if self.detail.stop.is_none() {
                        self.detail.step(0);
                    }
                }
            }
            Action::Back if list.marks_all || !list.marked.is_empty() => list.unmark(),
            Action::Mark => {
                list.mark_at_cursor();
                return self.move_cursor(Action::Down);
            }
            Action::MarkAll => return Some(list.mark_all()),
            Action::ExtendUp | Action::ExtendDown => {
                list.mark(list.selected.clone());
                let by = if action == Action::ExtendUp { Action::Up } else { Action::Down };
                let effects = self.move_cursor(by);
                self.list.mark(self.list.selected.clone());
                return effects;
            }
            Action::Back if !list.filter.field.is_empty() => {
                list.filter.field.clear();
                return Some(self.filtered());
            }
            other => return self.move_cursor(other),
        }
        Some(Vec::new())
    }

    fn act_in_filter(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Submit if !self.list.filter.submit() => {}
            Action::Submit => self.focus = Focus::List,
            Action::LeaveField | Action::Back => {
                self.list.filter.end();
                self.focus = Focus::List;
            }
            Action::Clear if self.list.filter.field.kill_to_start() => return Some(self.filtered()),
            Action::Clear => {}
            other => return self.move_cursor(other),
        }
        Some(Vec::new())
    }

    fn act_in_name(&mut self, action: Action) -> Vec<Effect> {
        if matches!(action, Action::Submit | Action::LeaveField | Action::Back) {
            self.focus = Focus::List;
        }
        let saved = (action == Action::Submit).then(|| self.list.views.save(&self.list.filter));
        saved.flatten().into_iter().collect()
    }

    fn move_cursor(&mut self, action: Action) -> Option<Vec<Effect>> {
        self.list.move_cursor(action)?;
        let mut effects: Vec<Effect> = self.selection_changed().into_iter().collect();
        effects.extend(self.list.older_at_end());
        Some(effects)
    }

    fn act_in_detail(&mut self, action: Action) -> Option<Vec<Effect>> {
        match (&self.detail.showing, action) {
            (DetailView::Run, Action::Back) => self.focus = Focus::List,
            (DetailView::Run, Action::Open | Action::Fold) => match self.detail.stop.clone()? {
                stop @ (DetailCursor::Step(_) | DetailCursor::Output) => self.detail.toggle(stop),
                _ if action == Action::Fold => return None,
                DetailCursor::Checkpoint(number) => self.detail.show_state(number),
                DetailCursor::Source(_) => {
                    let source = self.list.record().and_then(|run| run.source.clone());
                    return Some(source.and_then(|(run, _)| self.go_to(&run)).into_iter().collect());
                }
                DetailCursor::Descendant(run) => return Some(self.go_to(&run).into_iter().collect()),
            },
            _ => self.detail.act(action)?,
        }
        Some(Vec::new())
    }

    /// Handles the choice of what to compare with: a checkpoint's number, or `run ID`.
    pub fn picked(&mut self, choice: &str) -> Vec<Effect> {
        if let Some(run) = choice.strip_prefix("run ") {
            return self.show_pair(&RunId(run.to_owned()));
        }
        if let (Ok(other), Some(number)) = (choice.parse::<u64>(), self.detail.checkpoint()) {
            self.detail.show_changes(other, number);
        }
        Vec::new()
    }

    fn show_pair(&mut self, other: &RunId) -> Vec<Effect> {
        self.focus = Focus::Detail;
        self.detail.show_pair(other)
    }

    fn open_board(&mut self) -> Vec<Effect> {
        self.focus = Focus::List;
        self.list.unmark();
        let requested = self.board.get_or_insert_with(BoardState::new).request();
        requested.into_iter().chain(self.selection_changed()).collect()
    }

    /// Requests the board again, if it is shown.
    pub fn request_board(&mut self) -> Vec<Effect> {
        self.board.as_mut().map(BoardState::request).unwrap_or_default()
    }

    pub fn take_board(&mut self, hours: u32, answer: &Result<std::sync::Arc<Board>, Error>) -> Vec<Effect> {
        let Some(board) = &mut self.board else { return Vec::new() };
        if !board.take(hours, answer) {
            return board.request();
        }
        self.selection_changed().into_iter().collect()
    }

    /// Shows the list again if the board is shown, and selects the run under its cursor.
    fn close_board(&mut self) -> Vec<Effect> {
        if self.board.take().is_none() {
            return Vec::new();
        }
        self.list.build();
        self.selection_changed().into_iter().collect()
    }

    fn act_on_board(&mut self, action: Action) -> Option<Vec<Effect>> {
        let board = self.board.as_mut()?;
        match action {
            Action::Open => {
                if let Some(filter) = board.failures() {
                    return Some(self.open_term(&filter));
                }
                let run = board.run().cloned()?;
                let effects = self.go_to(&run);
                self.focus = Focus::Detail;
                Some(effects.into_iter().collect())
            }
            Action::Back => Some(self.close_board()),
            _ => {
                if let Some(effects) = board.act(action) {
                    return Some(effects);
                }
                board.move_cursor(action)?;
                Some(self.selection_changed().into_iter().collect())
            }
        }
    }

    /// Adds a term to the filter, or opens the list with it if the board is shown.
    fn open_term(&mut self, term: &str) -> Vec<Effect> {
        if self.board.take().is_some() {
            self.list.filter.field.clear();
        }
        self.add_term(term)
    }

    /// Moves the cursor of the board to a row; a second click opens it.
    fn click_on_board(&mut self, at: Position) -> Option<Vec<Effect>> {
        let board = self.board.as_mut()?;
        let (_, spot) = board.drawn.iter().find(|(rect, _)| rect.contains(at))?;
        if board.cursor == *spot {
            return self.act_on_board(Action::Open);
        }
        board.cursor = *spot;
        Some(self.selection_changed().into_iter().collect())
    }

    fn open_tab(&mut self, at: usize) -> Vec<Effect> {
        match self.list.views.tabs().get(at) {
            Some(Tab::Board) => self.open_board(),
            Some(Tab::Filter(_, filter)) => {
                self.board = None;
                self.list.filter.field.set(filter);
                self.focus = Focus::List;
                self.list.unmark();
                self.filtered()
            }
            None => Vec::new(),
        }
    }

    /// Handles a click; returns the action that it triggers on the run.
    pub fn clicked(&mut self, at: Position) -> Result<Vec<Effect>, Action> {
        let drawn = &self.list.drawn;
        if let Some((_, tab)) = drawn.tabs.iter().find(|(rect, _)| rect.contains(at)) {
            return Ok(self.open_tab(*tab));
        }
        if let Some((_, term)) = drawn.terms.iter().find(|(rect, _)| rect.contains(at)) {
            let term = term.clone();
            return Ok(self.open_term(&term));
        }
        if let Some(effects) = self.list.click_on_head(at) {
            return Ok(effects);
        }
        if self.board.is_some() {
            return Ok(self.click_on_board(at).unwrap_or_default());
        }
        if self.list.drawn.filter.contains(at) {
            self.focus = Focus::Filter;
            self.list.filter.field.click(at);
        } else if self.list.drawn.list.contains(at) {
            self.focus = Focus::List;
            if self.list.click(at).is_some() {
                return Ok(self.selection_changed().into_iter().collect());
            }
        } else if self.detail.drawn.area.contains(at) {
            self.focus = Focus::Detail;
            if let Some((_, action)) = self.detail.drawn.buttons.iter().find(|(rect, _)| rect.contains(at)) {
                let mut all = commands::available(self).into_iter();
                let blocked = all.find(|command| command.action == *action).and_then(|one| one.blocked);
                return blocked.map_or(Err(*action), |why| Ok(vec![Effect::Toast(why)]));
            }
            // A second click on the item under the cursor opens it.
            if self.detail.click(at) {
                return Err(Action::Open);
            }
        }
        Ok(Vec::new())
    }

    pub fn wheel(&mut self, at: Position, rows: isize) {
        if self.list.drawn.list.contains(at) {
            self.list.wheel(rows);
        } else if self.detail.drawn.area.contains(at) {
            self.detail.wheel(rows);
        }
    }
}
