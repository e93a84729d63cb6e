//! Counts and facets of the filter and of the views. The service computes them while runs are missing here; they are
//! cached, because a frame must not read every run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Runs;
use super::list::Row;
use crate::pane::Effect;
use crate::run_requests::RunRequest;
use crate::widgets::format::count;
use skills_api::{Error, FacetList, facets};
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

    fn request(&mut self, filter: &str) -> Option<Effect> {
        let is_new = self.requested.insert(filter.to_owned());
        is_new.then(|| Effect::Run(RunRequest::Facets(filter.to_owned())))
    }
}

impl Runs {
    /// Returns whether every run of the store is loaded.
    pub(super) fn is_complete(&self) -> bool {
        self.known.listed() as u64 >= self.all()
    }

    /// Returns the filters whose counts only the service knows.
    fn requested_filters(&self) -> Vec<String> {
        let views = self.views.iter().filter(|_| !self.is_complete()).map(|view| view.r#where.clone());
        let filter = self.filter.in_force().filter(|_| self.feeds.has_further_matches());
        views.chain(filter.map(str::to_owned)).collect()
    }

    /// Requests counts that are missing.
    pub(super) fn request_summaries(&mut self) -> Vec<Effect> {
        if !self.loaded {
            return Vec::new();
        }
        if self.is_complete() {
            // They would be outdated when the next run is missing.
            self.summaries.responses.clear();
        }
        let mut missing = self.requested_filters();
        missing.retain(|filter| !self.summaries.responses.contains_key(filter));
        missing.iter().filter_map(|filter| self.summaries.request(filter)).collect()
    }

    /// Returns when the counts are requested again; `None` if no run changed.
    pub(super) fn summaries_due(&self, now: Instant) -> Option<Instant> {
        let waits = self.summaries.is_outdated && self.summaries.requested.is_empty();
        if !waits || self.requested_filters().is_empty() {
            return None;
        }
        Some(self.summaries.requested_at.map_or(now, |at| at + REFRESH))
    }

    pub(super) fn refresh_summaries(&mut self, now: Instant) -> Vec<Effect> {
        (self.summaries.is_outdated, self.summaries.requested_at) = (false, Some(now));
        let filters = self.requested_filters();
        filters.iter().filter_map(|filter| self.summaries.request(filter)).collect()
    }

    pub(super) fn take_summary(&mut self, filter: &str, answer: &Result<Arc<FacetList>, Error>) {
        self.summaries.requested.remove(filter);
        // Without a count the tab has none; the filter itself reports what is wrong with it.
        let Ok(list) = answer else { return };
        let wanted = self.requested_filters();
        self.summaries.responses.retain(|known, _| wanted.contains(known));
        self.summaries.responses.insert(filter.to_owned(), Arc::clone(list));
    }

    /// Counts the known runs of each view, if they changed.
    pub(super) fn count_views(&mut self, now_ms: i64) {
        let at = (self.known.version(), now_ms / COUNTS_MS);
        if self.summaries.views_at == Some(at) {
            return;
        }
        let number = |filter: &str| {
            let query = RunQuery::parse(filter).ok()?;
            Some(self.known.iter().filter(|(run, _)| query.matches(run, now_ms)).count() as u64)
        };
        let counts =
            self.views.iter().filter_map(|view| Some((view.r#where.clone(), number(&view.r#where)?)));
        self.summaries.views = counts.collect();
        self.summaries.views_at = Some(at);
    }

    /// Returns the number of runs of a view, with a `+` if the service counted only a part; `None` if it is unknown.
    pub(super) fn view_count(&self, filter: &str) -> Option<(String, u64)> {
        if self.is_complete() {
            let number = *self.summaries.views.get(filter)?;
            return Some((count(usize::try_from(number).unwrap_or(usize::MAX)), number));
        }
        let list = self.summaries.responses.get(filter)?;
        Some((in_words(list), list.runs))
    }

    /// Returns the facets of all runs that match the filter, or of the loaded ones until the service answers.
    pub(super) fn facets(&mut self) -> Arc<FacetList> {
        let lacks = self.feeds.lacks_matches();
        if lacks
            && let Some(list) = self.filter.in_force().and_then(|filter| self.summaries.responses.get(filter))
        {
            return Arc::clone(list);
        }
        if let Some(list) = self.summaries.listed.as_ref().filter(|list| list.truncated == lacks) {
            return Arc::clone(list);
        }
        let runs: Vec<&RunRecord> =
            self.rows.iter().filter_map(Row::run).filter_map(|id| self.known.get(id)).collect();
        let list = Arc::new(facets(&runs, lacks));
        self.summaries.listed = Some(Arc::clone(&list));
        list
    }

    /// Describes how many runs match the filter, and how many of them are loaded.
    pub(super) fn matches_in_words(&self) -> String {
        if self.filter.is_invalid() {
            return "not applied".to_owned();
        }
        let rows = self.rows.iter().filter_map(Row::run).count();
        let loaded = count(rows);
        if !self.feeds.lacks_matches() {
            let all = count(usize::try_from(self.all()).unwrap_or(usize::MAX));
            return format!("{loaded} of {all}");
        }
        let total = self.filter.in_force().and_then(|filter| self.summaries.responses.get(filter));
        match total.filter(|total| total.runs > rows as u64) {
            Some(total) => format!("first {loaded} of {} matches", in_words(total)),
            None if self.feeds.is_finding() => format!("{loaded}, loading"),
            None => format!("first {loaded} matches, more exist"),
        }
    }
}

/// Returns the number of runs, with a `+` if there are more.
fn in_words(list: &FacetList) -> String {
    let more = if list.truncated { "+" } else { "" };
    format!("{}{more}", count(usize::try_from(list.runs).unwrap_or(usize::MAX)))
}
