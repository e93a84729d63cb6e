//! The state of the right part: the run's details, requests for it, the cursor, and what is shown instead.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ratatui::layout::{Position, Rect};

use crate::action::Action;
use crate::pane::Effect;
use crate::run_requests::RunRequest;
use crate::widgets::json_lines::{TreeRow, tree};
use crate::widgets::scroll::Scroll;
use skills_api::{Error, RunDetail};
use skills_store::{RunEvent, RunId};

/// Maximum number of cached runs.
const CACHE_SIZE: usize = 24;
/// Longer lists of a state are initially collapsed.
const LONG: usize = 12;

/// A position of the cursor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DetailCursor {
    /// A step, by its path.
    Step(String),
    /// The output, truncated to its end until it is opened.
    Output,
    /// A checkpoint, by its number.
    Checkpoint(u64),
    /// The run it was created from.
    Source(RunId),
    /// A run that was created from it.
    Descendant(RunId),
}

/// The content of the right part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DetailView {
    #[default]
    Run,
    /// The state at a checkpoint, as a tree.
    State(u64),
    /// The changes from one checkpoint to another.
    Changes(u64, u64),
    /// The comparison with another run, step by step.
    Pair(RunId),
}

/// Areas of the last frame.
#[derive(Debug, Default)]
pub(super) struct DetailAreas {
    pub area: Rect,
    pub stops: Vec<(Rect, DetailCursor)>,
    /// Texts that trigger an action when clicked.
    pub buttons: Vec<(Rect, Action)>,
}

/// The state of the right part.
#[derive(Debug, Default)]
pub(super) struct DetailState {
    run: Option<RunId>,
    known: HashMap<RunId, Arc<RunDetail>>,
    order: VecDeque<RunId>,
    error: Option<Error>,
    requested: HashSet<RunId>,
    again: HashSet<RunId>,
    /// Events that are newer than the details.
    since: Vec<RunEvent>,
    /// The content.
    pub showing: DetailView,
    pub stop: Option<DetailCursor>,
    /// Whether the window follows the cursor.
    pub follow: bool,
    /// First visible row.
    pub scroll: Scroll,
    /// Steps whose inputs and results are shown, and whether the entire output is.
    pub opened: HashSet<DetailCursor>,
    /// Collapsed paths of a state.
    pub folded: HashSet<String>,
    /// Cursor and scroll position of a state.
    pub tree: Scroll,
    /// The command whose dialog opens as soon as the run is loaded.
    pub wanted: Option<Action>,
    pub drawn: DetailAreas,
}

impl DetailState {
    /// Shows another run from its top.
    pub fn show(&mut self, run: &RunId) {
        if self.run.as_ref() == Some(run) {
            return;
        }
        self.hide();
        self.run = Some(run.clone());
    }

    /// Shows no run; the loaded ones stay in the cache.
    pub fn hide(&mut self) {
        let known = std::mem::take(&mut self.known);
        let order = std::mem::take(&mut self.order);
        let (requested, again) = (std::mem::take(&mut self.requested), std::mem::take(&mut self.again));
        let drawn = std::mem::take(&mut self.drawn);
        *self = Self { known, order, requested, again, drawn, ..Self::default() };
    }

    /// Drops everything after the core changed to another store.
    pub fn reset(&mut self) {
        *self = Self { drawn: std::mem::take(&mut self.drawn), ..Self::default() };
    }

    /// Returns whether this run is shown.
    pub fn is_of(&self, run: &RunId) -> bool {
        self.run.as_ref() == Some(run)
    }

    /// Requests a run; if a request is in progress, it is requested again afterwards.
    pub fn request(&mut self, run: &RunId) -> Option<Effect> {
        if self.requested.insert(run.clone()) {
            return Some(Effect::Run(RunRequest::Detail(run.clone())));
        }
        self.again.insert(run.clone());
        None
    }

    /// Returns whether the details of a run were requested.
    pub fn is_requested(&self, run: &RunId) -> bool {
        self.requested.contains(run)
    }

    /// Handles a response; returns whether the shown run has to be requested again.
    pub fn take(
        &mut self,
        run: &RunId,
        answer: &Result<Arc<RunDetail>, Error>,
        shown: Option<&RunId>,
    ) -> bool {
        self.requested.remove(run);
        let again = self.again.remove(run);
        match answer {
            Ok(detail) => {
                if self.known.insert(run.clone(), Arc::clone(detail)).is_none() {
                    self.order.push_back(run.clone());
                }
                if self.order.len() > CACHE_SIZE
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.known.remove(&oldest);
                }
                if self.is_of(run) {
                    self.error = None;
                    let last = detail.events.last().map_or(0, |event| event.number);
                    self.since.retain(|event| event.number > last);
                }
            }
            Err(error) if self.is_of(run) => self.error = Some(error.clone()),
            Err(_) => {}
        }
        again && shown == Some(run)
    }

    /// Adds newer events of the shown run.
    pub fn add_events(&mut self, run: &RunId, events: &[&RunEvent]) {
        if !self.is_of(run) {
            return;
        }
        let last = self.events().last().map_or(0, |event| event.number);
        self.since.extend(events.iter().filter(|event| event.number > last).map(|event| (*event).clone()));
    }

    /// Returns the shown run as last loaded.
    pub fn get(&self) -> Option<&Arc<RunDetail>> {
        self.known.get(self.run.as_ref()?)
    }

    /// Returns another run if it is cached.
    pub fn other(&self, run: &RunId) -> Option<&Arc<RunDetail>> {
        self.known.get(run)
    }

    /// Returns why it could not be loaded.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Returns all events of the shown run, oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &RunEvent> {
        let loaded = self.get().map(|detail| detail.events.as_slice()).unwrap_or_default();
        loaded.iter().chain(&self.since)
    }

    /// Moves the cursor by a number of positions.
    pub fn step(&mut self, by: isize) {
        let stops = self.stops();
        let at = self.stop.as_ref().and_then(|stop| stops.iter().position(|other| other == stop));
        let next = match at {
            None if by >= 0 => 0,
            None => stops.len().saturating_sub(1),
            Some(at) => at.saturating_add_signed(by).min(stops.len().saturating_sub(1)),
        };
        self.stop = stops.get(next).cloned();
        self.follow = true;
    }

    /// Returns every position of the cursor, from top to bottom.
    pub fn stops(&self) -> Vec<DetailCursor> {
        let Some(detail) = self.get() else { return Vec::new() };
        let mut out: Vec<DetailCursor> =
            detail.steps.iter().map(|step| DetailCursor::Step(step.step.clone())).collect();
        out.push(DetailCursor::Output);
        out.extend(detail.checkpoints.iter().rev().map(|point| DetailCursor::Checkpoint(point.number)));
        out.extend(detail.run.source.iter().map(|(run, _)| DetailCursor::Source(run.clone())));
        out.extend(detail.descendants.iter().cloned().map(DetailCursor::Descendant));
        out
    }

    /// Returns the checkpoint being shown or under the cursor.
    pub fn checkpoint(&self) -> Option<u64> {
        match (&self.showing, &self.stop) {
            (DetailView::State(number) | DetailView::Changes(_, number), _) => Some(*number),
            (_, Some(DetailCursor::Checkpoint(number))) => Some(*number),
            _ => None,
        }
    }

    /// Shows the state at a checkpoint.
    pub fn show_state(&mut self, number: u64) {
        let Some(detail) = self.get().cloned() else { return };
        let Some(point) = detail.checkpoints.iter().find(|point| point.number == number) else { return };
        self.showing = DetailView::State(number);
        self.tree = Scroll::default();
        // Long lists would push the following content out of view.
        let open = HashSet::<String>::new();
        let long = |row: &&TreeRow| row.folded.is_some() && members(&point.state, &row.path) > LONG;
        self.folded = tree(&point.state, &open).iter().filter(long).map(|row| row.path.clone()).collect();
    }

    /// Shows the checkpoint before or after the current one.
    pub fn adjacent_state(&mut self, by: isize) {
        let Some(detail) = self.get().cloned() else { return };
        let (DetailView::State(number) | DetailView::Changes(_, number)) = self.showing.clone() else {
            return;
        };
        let numbers: Vec<u64> = detail.checkpoints.iter().map(|point| point.number).collect();
        let at = numbers.iter().position(|other| *other == number).unwrap_or(0);
        let next = at.saturating_add_signed(by).min(numbers.len().saturating_sub(1));
        let Some(number) = numbers.get(next).copied() else { return };
        match self.showing {
            DetailView::Changes(..) => {
                let from = numbers.get(next.saturating_sub(1)).copied().unwrap_or(number);
                self.showing = DetailView::Changes(from, number);
                self.tree = Scroll::default();
            }
            _ => self.show_state(number),
        }
    }

    pub fn state_rows(&self, number: u64) -> Vec<TreeRow> {
        let point = self.get().and_then(|detail| {
            detail.checkpoints.iter().find(|point| point.number == number).map(|point| point.state.clone())
        });
        point.map(|state| tree(&state, &self.folded)).unwrap_or_default()
    }

    fn act_in_state(&mut self, number: u64, action: Action) -> Option<()> {
        let rows = self.state_rows(number);
        if let Action::Open | Action::Fold = action {
            let row = rows.get(self.tree.cursor)?;
            row.folded?;
            if !self.folded.remove(&row.path) {
                self.folded.insert(row.path.clone());
            }
            return Some(());
        }
        self.tree.by(action.rows(self.tree.page())?, rows.len());
        Some(())
    }

    /// Returns whether something else is shown instead of the run.
    pub fn shows_other(&self) -> bool {
        !matches!(self.showing, DetailView::Run)
    }

    /// Opens or closes a part of the run.
    pub fn toggle(&mut self, stop: DetailCursor) {
        if !self.opened.remove(&stop) {
            self.opened.insert(stop);
        }
        self.follow = true;
    }

    /// Moves the cursor, scrolls, or returns to the run.
    pub fn act(&mut self, action: Action) -> Option<()> {
        match (&self.showing, action) {
            (DetailView::Run, Action::PageUp | Action::PageDown) => {
                let by = action.rows(self.scroll.page())?;
                self.wheel(by);
            }
            (DetailView::Run, other) => self.step(other.rows(1)?),
            (_, Action::Back) => self.showing = DetailView::Run,
            (DetailView::State(number), other) => return self.act_in_state(*number, other),
            (_, other) => {
                let by = other.rows(self.tree.page())?;
                scroll_by(&mut self.tree, by);
            }
        }
        Some(())
    }

    /// Scrolls without moving the cursor.
    pub fn wheel(&mut self, rows: isize) {
        scroll_by(if self.shows_other() { &mut self.tree } else { &mut self.scroll }, rows);
        self.follow = false;
    }

    /// Moves the cursor to the item that was clicked; returns whether it was there already.
    pub fn click(&mut self, at: Position) -> bool {
        let stop = self.drawn.stops.iter().find(|(rect, _)| rect.contains(at)).map(|(_, stop)| stop.clone());
        let is_again = stop.is_some() && self.stop == stop;
        if let (Some(stop), DetailView::Run) = (stop, &self.showing) {
            self.stop = Some(stop);
            return is_again;
        }
        false
    }

    /// Compares two checkpoints.
    pub fn show_changes(&mut self, one: u64, other: u64) {
        self.showing = DetailView::Changes(one.min(other), one.max(other));
        self.tree = Scroll::default();
    }

    /// Compares the run with another one, which is requested.
    pub fn show_pair(&mut self, other: &RunId) -> Vec<Effect> {
        self.showing = DetailView::Pair(other.clone());
        self.tree = Scroll::default();
        self.request(other).into_iter().collect()
    }
}

/// Scrolls a text; drawing clamps the offset.
fn scroll_by(scroll: &mut Scroll, rows: isize) {
    scroll.offset = scroll.offset.saturating_add_signed(rows).min(100_000);
}

/// Returns the number of members of the value at a path.
fn members(state: &serde_json::Value, path: &str) -> usize {
    let found = path.split('/').try_fold(state, |value, part| match value {
        serde_json::Value::Object(map) => map.get(part),
        serde_json::Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    });
    match found {
        Some(serde_json::Value::Object(map)) => map.len(),
        Some(serde_json::Value::Array(items)) => items.len(),
        _ => 0,
    }
}
