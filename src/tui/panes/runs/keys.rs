//! Keys of the Runs pane.

use std::time::Instant;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::detail::{DetailCursor, DetailView};
use super::feed::MAX_FOUND_RUNS;
use super::{Focus, Row, Runs, list};
use crate::action::{Action, Command, Context};
use crate::pane::{Draw, Effect, Message, Pane, PaneId};
use crate::widgets::format::count;
use crate::widgets::relative_time::{until_older, until_younger};
use skills_model::RunState;
use skills_store::LeaseHolder;

impl Pane for Runs {
    fn id(&self) -> PaneId {
        Self::ID
    }

    fn contexts(&self) -> Vec<Context> {
        if self.board.is_some() && self.focus == Focus::List {
            return vec![Context::RunsBoard, Context::Runs, Context::List];
        }
        match self.focus {
            Focus::List => vec![Context::Runs, Context::List],
            Focus::Filter | Focus::Name => vec![Context::Field],
            Focus::Detail => vec![Context::RunsDetail, Context::List],
        }
    }

    fn in_text(&self) -> bool {
        matches!(self.focus, Focus::Filter | Focus::Name)
    }

    fn commands(&self) -> Vec<Command> {
        self.available_commands()
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        // A key reaches the pane only if no overlay is shown.
        self.followed = None;
        if self.board.is_some()
            && let Some(effects) = self.act_on_board(action)
        {
            return Some(effects);
        }
        match action {
            Action::NextTab | Action::PreviousTab if !self.shows_other() && self.focus != Focus::Name => {
                return Some(self.turn_tab(if action == Action::NextTab { 1 } else { -1 }));
            }
            Action::ShowBoard => return Some(self.open_board()),
            Action::SaveView => return Some(self.begin_saving()),
            Action::AddTerm => return Some(self.choose_term()),
            Action::SortRuns => return Some(self.choose_sort()),
            _ => {}
        }
        if let Some(effects) = self.execute_command(action) {
            self.moved = true;
            return Some(effects);
        }
        match action {
            Action::NextPart if self.focus == Focus::Filter => {
                let completed = self.filter.complete(&self.known);
                Some(if completed { self.filtered() } else { Vec::new() })
            }
            Action::NextPart | Action::PreviousPart => {
                self.focus = if self.focus == Focus::Detail { Focus::List } else { Focus::Detail };
                Some(Vec::new())
            }
            Action::Filter => {
                self.focus = Focus::Filter;
                Some(if self.board.is_some() { self.close_board() } else { Vec::new() })
            }
            _ => match self.focus {
                Focus::List => self.act_in_list(action),
                Focus::Filter => self.act_in_filter(action),
                Focus::Name => match action {
                    Action::Submit => Some(self.finish_saving()),
                    Action::LeaveField | Action::Back => {
                        self.focus = Focus::List;
                        Some(Vec::new())
                    }
                    _ => Some(Vec::new()),
                },
                Focus::Detail => self.act_in_detail(action),
            },
        }
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.focus == Focus::Name {
            self.name.key(key);
            return Vec::new();
        }
        if self.filter.field.key(key) { self.filtered() } else { Vec::new() }
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.focus == Focus::Name {
            self.name.paste(text);
            return Vec::new();
        }
        if self.filter.field.paste(text) { self.filtered() } else { Vec::new() }
    }

    fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        self.pointed(event)
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        self.news(message)
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.view(area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.wanted)
    }

    fn animated(&self) -> bool {
        let turns = |run: &skills_store::RunRecord| run.state.is_active();
        let in_sight = self.drawn.rows.iter().filter_map(|(_, row)| match self.rows.get(*row)? {
            Row::Run(id) => self.known.get(id),
            _ => None,
        });
        in_sight.chain(self.record()).any(turns)
    }

    fn changes_at(&self, clock_ms: i64) -> Option<i64> {
        let shown = self.record().map(|run| run.since_ms);
        let all = self.drawn.since.iter().copied().chain(shown);
        let ages = all.map(|since| clock_ms + until_older(clock_ms - since));
        // The remaining time of a wait changes with the clock too, and its expiry is shown at that moment.
        let expiries = self.known.iter().filter_map(|(run, _)| run.expires_ms).filter(|at| *at > clock_ms);
        let expiries = expiries.map(|at| clock_ms + until_younger(at - clock_ms));
        ages.chain(expiries).min()
    }

    fn next_poll(&self, now: Instant) -> Option<Instant> {
        [self.board_due(now), self.summaries_due(now), self.views_due()].into_iter().flatten().min()
    }

    fn poll(&mut self, now: Instant) -> Vec<Effect> {
        let is_due = |due: Option<Instant>| due.is_some_and(|due| now >= due);
        let (board, summaries) = (is_due(self.board_due(now)), is_due(self.summaries_due(now)));
        let mut effects = if board { self.refresh_board(now) } else { Vec::new() };
        if summaries {
            effects.extend(self.refresh_summaries(now));
        }
        if is_due(self.views_due()) {
            effects.extend(self.refresh_views(now));
        }
        effects
    }

    fn executing_runs(&self) -> usize {
        let here = |run: &skills_store::RunRecord| {
            run.state.is_active() && run.lease.as_ref().is_some_and(|lease| lease.holder == LeaseHolder::Here)
        };
        self.known.iter().filter(|(run, _)| here(run)).count()
    }

    fn unsaved(&self) -> Option<String> {
        self.typed_and_unsent()
    }

    fn pending_decisions(&self) -> usize {
        usize::try_from(self.count(&[RunState::WaitingForHuman])).unwrap_or(usize::MAX)
    }
}

/// Returns how many rows an action moves.
pub(super) fn rows_of(action: Action, page: isize) -> Option<isize> {
    Some(match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::PageUp => -page,
        Action::PageDown => page,
        // Far enough for every list, without overflow.
        Action::Top => isize::MIN / 2,
        Action::Bottom => isize::MAX / 2,
        _ => return None,
    })
}

fn too_many() -> String {
    format!("more than {} runs match: narrow the filter to mark all", count(MAX_FOUND_RUNS))
}

impl Runs {
    fn act_in_list(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Open => {
                if self.selected.is_some() {
                    (self.focus, self.moved) = (Focus::Detail, true);
                    if self.detail.stop.is_none() {
                        self.detail.step(0);
                    }
                }
                Some(Vec::new())
            }
            Action::Back if self.marks_all || !self.marked.is_empty() => {
                self.unmark();
                Some(Vec::new())
            }
            Action::Mark => {
                self.mark_at_cursor();
                self.move_cursor(Action::Down)
            }
            Action::MarkAll => Some(self.mark_all()),
            Action::ExtendUp | Action::ExtendDown => {
                self.mark(self.selected.clone());
                let by = if action == Action::ExtendUp { Action::Up } else { Action::Down };
                let effects = self.move_cursor(by);
                self.mark(self.selected.clone());
                effects
            }
            Action::Back if !self.filter.field.is_empty() => {
                self.filter.field.clear();
                Some(self.filtered())
            }
            other => self.move_cursor(other),
        }
    }

    fn mark_at_cursor(&mut self) {
        if let Some(id) = self.selected.clone()
            && self.marked.remove(&id).is_none()
        {
            self.mark(Some(id));
        }
    }

    /// Marks every run of the list, or unmarks all if all are marked. Matches that are not loaded are loaded first.
    fn mark_all(&mut self) -> Vec<Effect> {
        if self.feeds.lacks_matches() {
            let request = self.feeds.find_all();
            self.marks_all = self.feeds.is_finding();
            if !self.marks_all {
                return vec![Effect::Toast(too_many())];
            }
            return request.into_iter().collect();
        }
        let listed: Vec<skills_store::RunId> = self.rows.iter().filter_map(Row::run).cloned().collect();
        if listed.iter().all(|id| self.marked.contains_key(id)) {
            self.marked.clear();
            return Vec::new();
        }
        let number = listed.len();
        self.mark(listed);
        if self.filter.is_empty() && !self.is_complete() {
            let (marked, all) = (count(number), count(usize::try_from(self.all()).unwrap_or(usize::MAX)));
            return vec![Effect::Toast(format!(
                "marked {marked} of {all} runs; the others are not loaded: a filter (/) marks all that match"
            ))];
        }
        Vec::new()
    }

    /// Marks all matches once they are loaded.
    pub(super) fn mark_found(&mut self) -> Vec<Effect> {
        if !self.marks_all || self.feeds.is_finding() {
            return Vec::new();
        }
        self.marks_all = false;
        if self.feeds.lacks_a_part() {
            return vec![Effect::Toast("no run is marked: the runs that match cannot be read".to_owned())];
        }
        if self.feeds.lacks_matches() {
            return vec![Effect::Toast(too_many())];
        }
        let listed: Vec<skills_store::RunId> = self.rows.iter().filter_map(Row::run).cloned().collect();
        self.mark(listed);
        Vec::new()
    }

    fn mark(&mut self, runs: impl IntoIterator<Item = skills_store::RunId>) {
        for id in runs {
            if let Some(run) = self.known.get(&id) {
                self.marked.insert(id, run.since_ms);
            }
        }
    }

    fn act_in_filter(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Submit | Action::LeaveField | Action::Back => {
                self.focus = Focus::List;
                Some(Vec::new())
            }
            Action::Clear => {
                Some(if self.filter.field.kill_to_start() { self.filtered() } else { Vec::new() })
            }
            other => self.move_cursor(other),
        }
    }

    fn move_cursor(&mut self, action: Action) -> Option<Vec<Effect>> {
        let by = rows_of(action, self.scroll.page())?;
        self.scroll.cursor = list::moved(&self.rows, self.scroll.cursor, by);
        (self.follow, self.moved) = (true, true);
        let mut effects = self.selection_changed();
        // At the last loaded run: load the next page.
        let last = list::moved(&self.rows, self.scroll.cursor, 1) == self.scroll.cursor;
        if last && self.filter.is_empty() {
            effects.extend(self.feeds.older());
        }
        Some(effects)
    }

    pub(super) fn filtered(&mut self) -> Vec<Effect> {
        let is_changed = self.filter.read();
        if is_changed {
            self.unmark();
        }
        if !self.filter.is_empty() {
            // While a filter is typed, the cursor is on the first match.
            self.moved = false;
        }
        self.build();
        self.moved = true;
        let mut effects = self.selection_changed();
        if is_changed || self.filter.in_force().is_some() {
            let is_complete = self.is_complete();
            effects.extend(self.feeds.find(self.filter.in_force().filter(|_| !is_complete)));
            if self.sort.is_some() {
                effects.extend(self.feeds.find_all());
            }
        }
        effects
    }

    /// Unmarks all runs: marks of another filter would be acted upon unseen.
    pub(super) fn unmark(&mut self) {
        self.marked.clear();
        self.marks_all = false;
    }

    fn act_in_detail(&mut self, action: Action) -> Option<Vec<Effect>> {
        match (&self.detail.showing, action) {
            (DetailView::Run, Action::Back) => {
                self.focus = Focus::List;
                Some(Vec::new())
            }
            (_, Action::Back) => {
                self.detail.showing = DetailView::Run;
                Some(Vec::new())
            }
            (DetailView::Run, Action::Open | Action::Fold) => self.open_stop(action),
            (DetailView::Run, Action::PageUp | Action::PageDown) => {
                let by = rows_of(action, self.detail.scroll.page())?;
                self.detail.follow = false;
                let offset = self.detail.scroll.offset.saturating_add_signed(by);
                // Drawing clamps the offset.
                self.detail.scroll.offset = offset.min(100_000);
                Some(Vec::new())
            }
            (DetailView::Run, other) => {
                let by = rows_of(other, 1)?;
                self.detail.step(by);
                Some(Vec::new())
            }
            (DetailView::State(_), other) => self.act_in_state(other),
            (_, other) => {
                let by = rows_of(other, self.detail.tree.page())?;
                let offset = self.detail.tree.offset.saturating_add_signed(by);
                self.detail.tree.offset = offset.min(100_000);
                Some(Vec::new())
            }
        }
    }

    /// Handles Enter and Space at the cursor.
    fn open_stop(&mut self, action: Action) -> Option<Vec<Effect>> {
        let stop = self.detail.stop.clone()?;
        match stop {
            DetailCursor::Step(_) | DetailCursor::Output => {
                if !self.detail.opened.remove(&stop) {
                    self.detail.opened.insert(stop);
                }
                self.detail.follow = true;
                Some(Vec::new())
            }
            _ if action == Action::Fold => None,
            DetailCursor::Checkpoint(number) => {
                self.show_state(number);
                Some(Vec::new())
            }
            DetailCursor::Source(_) => Some(self.go_to_source()),
            DetailCursor::Descendant(run) => Some(self.go_to(&run)),
        }
    }
}
