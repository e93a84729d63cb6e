//! Counts and facets of the filter and of the views. The service computes them while runs are missing here; they are
//! cached, because a frame must not read every run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::loaded::LoadedRuns;
use crate::pane::Effect;
use crate::run_requests::RunRequest;
use crate::widgets::format::count;
use skills_api::{Error, FacetList, SavedView};
use skills_store::{RunQuery, RunRecord};

/// Minimum interval between requests for the same counts.
const REFRESH: Duration = Duration::from_secs(10);
/// Counts of views with relative times are outdated after this time, in milliseconds.
const COUNTS_MS: i64 = 60_000;

/// Counts and facets by filter.
#[derive(Debug, Default)]
pub(super) struct Summaries {
    /// The facets of the rows; `None` after the rows changed.
    listed: Option<Arc<FacetList>>,
    /// The number of known runs of each view, and what it was computed from: the version of the runs, and the time.
    views: HashMap<String, u64>,
    /// Views whose number depends on inputs that are not loaded.
    uncounted: HashSet<String>,
    views_at: Option<(u64, i64)>,
    responses: HashMap<String, Arc<FacetList>>,
    requested: HashSet<String>,
    /// Whether runs changed since the last request.
    is_outdated: bool,
    requested_at: Option<Instant>,
}

impl Summaries {
    pub fn rows_changed(&mut self) {
        self.listed = None;
    }

    pub fn runs_changed(&mut self) {
        self.is_outdated = true;
    }

    pub fn views_changed(&mut self) {
        self.views_at = None;
    }

    pub fn reset(&mut self) {
        *self = Self { requested: std::mem::take(&mut self.requested), ..Self::default() };
    }

    fn request(&mut self, filters: &[String]) -> Vec<Effect> {
        let mut effects = Vec::new();
        for filter in filters {
            if self.requested.insert(filter.clone()) {
                effects.push(Effect::Run(RunRequest::Facets(filter.clone())));
            }
        }
        effects
    }

    /// Requests counts that are missing.
    pub fn request_missing(&mut self, filters: &[String], is_complete: bool) -> Vec<Effect> {
        if is_complete {
            // They would be outdated when the next run is missing.
            self.responses.retain(|filter, _| filters.contains(filter));
        }
        let missing: Vec<String> =
            filters.iter().filter(|filter| !self.responses.contains_key(*filter)).cloned().collect();
        self.request(&missing)
    }

    /// Returns when the counts are requested again; `None` if no run changed.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let waits = self.is_outdated && self.requested.is_empty();
        waits.then(|| self.requested_at.map_or(now, |at| at + REFRESH))
    }

    pub fn refresh(&mut self, filters: &[String], now: Instant) -> Vec<Effect> {
        (self.is_outdated, self.requested_at) = (false, Some(now));
        self.request(filters)
    }

    /// Handles a response; `wanted` are the filters whose counts only the service knows.
    pub fn take(&mut self, filter: &str, answer: &Result<Arc<FacetList>, Error>, sought: &[String]) {
        self.requested.remove(filter);
        // Without a count the tab has none; the filter itself reports what is wrong with it.
        let Ok(list) = answer else { return };
        self.responses.retain(|known, _| sought.contains(known));
        self.responses.insert(filter.to_owned(), Arc::clone(list));
    }

    /// Counts the known runs of each view, if they changed. Returns whether views were counted of which only the service
    /// knows the number.
    pub fn count_views(&mut self, views: &[SavedView], runs: &LoadedRuns, now_ms: i64) -> bool {
        let at = (runs.known.version(), now_ms / COUNTS_MS);
        if self.views_at == Some(at) {
            return false;
        }
        self.views.clear();
        self.uncounted.clear();
        for filter in views.iter().map(|view| &view.r#where) {
            let Ok(query) = RunQuery::parse(filter) else { continue };
            let add = |number: u64, (run, _): (&RunRecord, bool)| {
                query.evaluate(run, now_ms).map(|is_match| number + u64::from(is_match))
            };
            match runs.known.iter().try_fold(0, add) {
                Some(number) => {
                    self.views.insert(filter.clone(), number);
                }
                None => {
                    self.uncounted.insert(filter.clone());
                }
            }
        }
        self.views_at = Some(at);
        !self.uncounted.is_empty()
    }

    /// Returns whether only the service knows the number of runs of a view, although every run is loaded.
    pub fn is_uncounted(&self, filter: &str) -> bool {
        self.uncounted.contains(filter)
    }

    /// Returns the number of runs of a view, with a `+` if the service counted only a part; `None` if it is unknown.
    pub fn view_count(&self, filter: &str, is_complete: bool) -> Option<(String, u64)> {
        if is_complete && !self.is_uncounted(filter) {
            let number = *self.views.get(filter)?;
            return Some((count(usize::try_from(number).unwrap_or(usize::MAX)), number));
        }
        let list = self.responses.get(filter)?;
        Some((run_count(list), list.runs))
    }

    /// Returns the facets of a filter that the service computed, or the kept ones until it answers.
    pub fn facets(&self, filter: Option<&str>, lacks: bool) -> Option<Arc<FacetList>> {
        let computed = filter.and_then(|filter| self.responses.get(filter));
        computed.or_else(|| self.listed.as_ref().filter(|list| list.truncated == lacks)).cloned()
    }

    /// Keeps the facets of the rows until these change.
    pub fn keep_facets(&mut self, list: &Arc<FacetList>) {
        self.listed = Some(Arc::clone(list));
    }

    /// Returns how many runs match a filter, as the service counted them, if they are more than the listed ones.
    pub fn matches(&self, filter: Option<&str>, listed: u64) -> Option<String> {
        let total = filter.and_then(|filter| self.responses.get(filter))?;
        (total.runs > listed).then(|| run_count(total))
    }
}

/// Returns the number of runs, with a `+` if there are more.
fn run_count(list: &FacetList) -> String {
    let more = if list.truncated { "+" } else { "" };
    format!("{}{more}", count(usize::try_from(list.runs).unwrap_or(usize::MAX)))
}
