//! The state of the right part: the run's details, requests for it, the cursor, and what is shown instead.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::widgets::scroll::Scroll;
use skills_api::{Error, RunDetail};
use skills_store::{RunEvent, RunId};

/// Maximum number of cached runs.
const CACHE_SIZE: usize = 24;

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
    /// The run.
    #[default]
    Run,
    /// The state at a checkpoint, as a tree.
    State(u64),
    /// The changes from one checkpoint to another.
    Changes(u64, u64),
    /// The comparison with another run, step by step.
    Pair(RunId),
}

/// The state of the right part.
#[derive(Debug, Default)]
pub struct Detail {
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
    /// The cursor.
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
    /// Whether the decision dialog opens as soon as the run is loaded.
    pub sheet_wanted: bool,
}

impl Detail {
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
        *self = Self { known, order, requested, again, ..Self::default() };
    }

    /// Returns whether this run is shown.
    pub fn is_of(&self, run: &RunId) -> bool {
        self.run.as_ref() == Some(run)
    }

    /// Registers a request for a run; returns `false` if one is in progress, after which it is requested again.
    pub fn ask(&mut self, run: &RunId) -> bool {
        let new = self.requested.insert(run.clone());
        if !new {
            self.again.insert(run.clone());
        }
        new
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
}
