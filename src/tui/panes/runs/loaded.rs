//! The runs that are loaded, what is known of the others, and the requests for more.

use std::collections::{BTreeMap, HashSet};

use super::feed::{KnownRuns, RunPages};
use super::list::tail;
use crate::pane::Effect;
use crate::run_requests::Outage;
use crate::widgets::text_width::shown;
use skills_api::Error;
use skills_model::{BEFORE_FIRST_STEP, RunState, step_label};
use skills_store::{LeaseHolder, RunId, RunPage, RunRecord};

/// The loaded runs.
#[derive(Debug, Default)]
pub(super) struct LoadedRuns {
    pub known: KnownRuns,
    pub feeds: RunPages,
    counts: BTreeMap<RunState, u64>,
    /// Whether the list has been loaded once: only then an empty list means that there are no runs.
    pub loaded: bool,
    /// Runs that are known to wait for a person; `None` before the open ones were loaded.
    told_waiting: Option<HashSet<RunId>>,
    pub error: Option<Error>,
    /// Why the runs are not updated, if so.
    pub outage: Option<Outage>,
    /// Whether the core is unreachable, so that commands are refused.
    pub disconnected: bool,
}

impl LoadedRuns {
    /// Returns the number of runs in these states, over the entire store.
    pub fn count(&self, states: &[RunState]) -> u64 {
        states.iter().filter_map(|state| self.counts.get(state)).sum()
    }

    pub fn all(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Returns whether every run of the store is loaded.
    pub fn is_complete(&self) -> bool {
        self.known.listed() as u64 >= self.all()
    }

    /// Returns the number of runs that this process executes.
    pub fn executing(&self) -> usize {
        let here = |run: &RunRecord| {
            run.state.is_active() && run.lease.as_ref().is_some_and(|lease| lease.holder == LeaseHolder::Here)
        };
        self.known.iter().filter(|(run, _)| here(run)).count()
    }

    /// Drops everything after the core changed to another store.
    pub fn reset(&mut self) {
        self.known = KnownRuns::default();
        self.feeds.reset();
        self.counts.clear();
        (self.loaded, self.told_waiting, self.error) = (false, None, None);
        self.outage = None;
    }

    /// Returns the error of the list, except one that [`Self::outage`] already reports.
    pub fn own_error(&self) -> Option<&Error> {
        let is_told = |outage: &Outage, error: &Error| {
            outage.error.code == error.code || (outage.is_unreachable() && error.is_service_unreachable())
        };
        let is_own = |error: &&Error| self.outage.as_ref().is_none_or(|outage| !is_told(outage, error));
        self.error.as_ref().filter(is_own)
    }

    /// Returns whether nothing can be read now.
    pub fn are_stale(&self) -> bool {
        self.outage.as_ref().is_some_and(Outage::is_unreachable)
    }

    pub fn refresh_all(&mut self) -> Vec<Effect> {
        self.feeds.refresh_all(&self.known)
    }

    pub fn take_page(&mut self, generation: u64, page: &RunPage) -> Vec<Effect> {
        self.counts.clone_from(&page.counts);
        let mut effects = self.feeds.take(generation, page, &mut self.known);
        if !self.feeds.is_incomplete() {
            self.error = None;
        }
        self.loaded |= self.feeds.has_read_all();
        effects.extend(self.announce_waiting());
        effects
    }

    /// Announces runs that started to wait since the last announcement, whichever response reported them.
    pub fn announce_waiting(&mut self) -> Vec<Effect> {
        // Runs that already wait when the workbench opens are not announced, whichever part of the list is loaded
        // first.
        if !self.feeds.has_read_open() {
            return Vec::new();
        }
        let Some(before) = self.told_waiting.replace(self.known.waiting()) else { return Vec::new() };
        let started = self.known.began_to_wait(&before);
        let deliver = |run: RunRecord| {
            let step = run.step.as_deref().map(|step| match step {
                BEFORE_FIRST_STEP => format!(" {}", step_label(step)),
                _ => format!(" at {}", shown(step)),
            });
            let step = step.unwrap_or_default();
            let name = shown(run.title_or_skill());
            Effect::Awaited(format!("{name} {} is waiting for approval{step}", tail(&run.id)))
        };
        started.into_iter().map(deliver).collect()
    }
}
