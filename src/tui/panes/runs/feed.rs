//! The known runs, and requests for pages of them: all open runs, ended ones page by page.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::mem;

use crate::pane::Effect;
use crate::run_requests::RunRequest;
use skills_api::{Code, Error};
use skills_model::RunState;
use skills_store::{RunFilter, RunId, RunPage, RunRecord};

/// Number of runs per page.
const PAGE: usize = 200;
/// Maximum number of open runs refreshed in one request; further ones are read individually. Also the number of
/// runs per page of the matches of a filter.
const MAX_REFRESHED_RUNS: usize = 1_000;
/// Maximum number of matches that are loaded, as many as the commands for many runs accept.
pub const MAX_FOUND_RUNS: usize = 10_000;

/// A known run.
#[derive(Debug)]
struct KnownRun {
    run: RunRecord,
    /// Whether it belongs to the loaded pages.
    listed: bool,
    /// The version since which it has been in its state, at its step and with its title.
    changed_at: u64,
}

impl KnownRun {
    /// Replaces the record by a newer one. Values that are too long for a list are kept until the state changes. Returns
    /// whether anything changed.
    fn replace(&mut self, mut run: RunRecord) -> bool {
        let known = &mut self.run;
        let is_same = known.is_in_same_state(&run);
        // What is kept is not compared.
        let inputs = (is_same && run.lacks_inputs()).then(|| mem::take(&mut known.inputs));
        let target = (is_same && run.lacks_target_content())
            .then(|| mem::replace(&mut known.target, run.target.clone()));
        let outputs = if is_same && run.outputs.is_none() { known.outputs.take() } else { None };
        let is_changed = *known != run;
        run.inputs = inputs.unwrap_or(run.inputs);
        run.target = target.unwrap_or(run.target);
        run.outputs = outputs.or(run.outputs);
        *known = run;
        is_changed
    }
}

/// Known runs, by id.
#[derive(Debug, Default)]
pub struct KnownRuns {
    runs: HashMap<RunId, KnownRun>,
    listed: usize,
    version: u64,
}

impl KnownRuns {
    /// Returns a run.
    pub fn get(&self, id: &RunId) -> Option<&RunRecord> {
        self.runs.get(id).map(|known| &known.run)
    }

    /// Stores a run. *Listed* ones belong to the loaded pages; others were found by a filter.
    pub fn put(&mut self, run: RunRecord, listed: bool) {
        let next = self.version + 1;
        match self.runs.entry(run.id.clone()) {
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                // A word is searched for in the step and the title, too.
                let has_same_texts = known.run.step == run.step && known.run.title() == run.title();
                if !has_same_texts || !known.run.is_in_same_state(&run) {
                    known.changed_at = next;
                }
                self.version += u64::from(known.replace(run));
                self.listed += usize::from(listed && !known.listed);
                known.listed |= listed;
            }
            Entry::Vacant(entry) => {
                (self.version, self.listed) = (next, self.listed + usize::from(listed));
                entry.insert(KnownRun { run, listed, changed_at: next });
            }
        }
    }

    /// Returns the version since which a run has been in its state, at its step and with its title.
    fn changed_at(&self, id: &RunId) -> Option<u64> {
        self.runs.get(id).map(|known| known.changed_at)
    }

    /// Returns a number that changes with every change of a run.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Drops a run that no longer exists.
    pub fn remove(&mut self, id: &RunId) {
        self.forget(|run| run.id == *id);
    }

    /// Drops runs that no longer exist.
    fn forget(&mut self, gone: impl Fn(&RunRecord) -> bool) {
        self.runs.retain(|_, known| {
            let gone = gone(&known.run);
            self.listed -= usize::from(gone && known.listed);
            self.version += u64::from(gone);
            !gone
        });
    }

    /// Returns whether a run belongs to the loaded pages.
    pub fn is_listed(&self, id: &RunId) -> bool {
        self.runs.get(id).is_some_and(|known| known.listed)
    }

    /// Returns the number of runs in the loaded pages.
    pub fn listed(&self) -> usize {
        self.listed
    }

    /// Returns all runs, with whether they are listed.
    pub fn iter(&self) -> impl Iterator<Item = (&RunRecord, bool)> {
        self.runs.values().map(|known| (&known.run, known.listed))
    }

    /// Returns the runs that wait for a person.
    pub fn waiting(&self) -> HashSet<RunId> {
        let waits = self.iter().filter(|(run, _)| run.state == RunState::WaitingForHuman);
        waits.map(|(run, _)| run.id.clone()).collect()
    }

    /// Returns the listed runs that wait for a person now and did not before: one that a filter found may have waited
    /// for long.
    pub fn began_to_wait(&self, before: &HashSet<RunId>) -> Vec<RunRecord> {
        let mut out: Vec<RunRecord> = self
            .iter()
            .filter(|(run, listed)| {
                *listed && run.state == RunState::WaitingForHuman && !before.contains(&run.id)
            })
            .map(|(run, _)| run.clone())
            .collect();
        out.sort_by(|a, b| (a.since_ms, &a.id).cmp(&(b.since_ms, &b.id)));
        out
    }
}

/// The purpose of a page request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Why {
    /// All runs that have not ended.
    Open,
    /// The most recently ended runs.
    Ended,
    /// The next older runs.
    Older,
    /// Runs that match a filter beyond the loaded pages.
    Found,
}

/// The matches of a filter beyond the loaded pages, and of runs that only the store can compare with it.
#[derive(Debug, Default)]
struct FilterMatches {
    text: String,
    /// The version of the known runs when it was sent.
    version: u64,
    /// Matches without their inputs, each with the version of their last change that the filter could notice.
    without_inputs: HashMap<RunId, u64>,
    /// The request in progress.
    pending: Option<u64>,
    next: Option<String>,
    loaded: usize,
    /// Whether all matches are wanted instead of the first page.
    wants_all: bool,
    is_complete: bool,
}

/// Requests in progress.
#[derive(Debug, Default)]
pub struct RunPages {
    generation: u64,
    requests: HashMap<u64, Why>,
    /// Whether to repeat the requests in progress for open and for ended runs, because something changed since.
    again: (bool, bool),
    /// The cursor of the next page of ended runs; `None` if all are loaded.
    older: Option<String>,
    ended_read: usize,
    /// Whether the open runs have been loaded.
    open_read: bool,
    /// Whether the next page of ended runs also shows which runs were deleted.
    full_refresh: bool,
    /// The number of runs of the store as of the last page, and whether it ever decreased since the last full refresh:
    /// only deletion does that.
    total: u64,
    has_deletions: bool,
    /// Whether runs beyond the first page were dropped, because some of them were deleted: matches of a filter have to
    /// be requested again.
    is_cut: bool,
    /// The last failed request, until one of its kind succeeds.
    failed: Option<Why>,
    /// Runs that the page of open runs no longer contains, to be read one by one.
    left: BTreeSet<RunId>,
    /// Runs that changed after the filter was sent, to be read one by one, because their inputs are compared with it.
    uncompared: BTreeSet<RunId>,
    /// The one that is being read.
    reading: Option<RunId>,
    /// The matches of the active filter; `None` if the loaded pages contain all of them, and enough to compare them.
    found: Option<FilterMatches>,
}

impl RunPages {
    fn ask(&mut self, why: Why, filter: RunFilter) -> Effect {
        self.generation += 1;
        self.requests.insert(self.generation, why);
        Effect::Run(RunRequest::Page { filter: Box::new(filter), generation: self.generation })
    }

    fn is_in_progress(&self, why: &Why) -> bool {
        self.requests.values().any(|pending| pending == why)
    }

    /// Discards pending requests and the position in the pages.
    pub fn reset(&mut self) {
        *self = Self { generation: self.generation, ..Self::default() };
    }

    /// Requests everything again and drops runs that were purged in the meantime.
    pub fn refresh_all(&mut self, runs: &KnownRuns) -> Vec<Effect> {
        self.full_refresh = true;
        self.refresh(true, runs)
    }

    /// Requests the open runs again, and the most recently ended ones if some ended. While a request is in progress,
    /// the next one waits for its response.
    pub fn refresh(&mut self, ended: bool, runs: &KnownRuns) -> Vec<Effect> {
        let mut out = Vec::new();
        if self.is_in_progress(&Why::Open) {
            self.again.0 = true;
        } else {
            let open = runs.iter().filter(|(run, _)| RunState::OPEN.contains(&run.state)).count();
            let limit = (open + PAGE / 2).clamp(PAGE, MAX_REFRESHED_RUNS);
            out.push(self.ask(
                Why::Open,
                RunFilter { states: RunState::OPEN.to_vec(), limit, ..RunFilter::default() },
            ));
        }
        if ended && self.is_in_progress(&Why::Ended) {
            self.again.1 = true;
        } else if ended {
            let filter = RunFilter { states: RunState::ENDED.to_vec(), limit: PAGE, ..RunFilter::default() };
            out.push(self.ask(Why::Ended, filter));
        }
        out
    }

    /// Requests the next older runs, if there are any and they are not requested yet.
    pub fn older(&mut self) -> Option<Effect> {
        if self.is_in_progress(&Why::Older) {
            return None;
        }
        let cursor = Some(self.older.clone()?);
        let filter =
            RunFilter { states: RunState::ENDED.to_vec(), cursor, limit: PAGE, ..RunFilter::default() };
        Some(self.ask(Why::Older, filter))
    }

    /// Requests runs that match a filter beyond the loaded pages; `None` as the filter, or if every run is loaded with
    /// what the filter compares, because there are none.
    pub fn find(&mut self, filter: Option<&str>, runs: &KnownRuns) -> Option<Effect> {
        let before = self.found.take();
        self.uncompared.clear();
        self.found = filter.map(|text| {
            let text = text.trim().to_owned();
            // What matched the same filter stays listed until the response.
            let same = before.filter(|before| before.text == text);
            let without_inputs = same.map(|before| before.without_inputs).unwrap_or_default();
            FilterMatches { text, version: runs.version(), without_inputs, ..FilterMatches::default() }
        });
        self.request_found()
    }

    /// Returns whether a run that only the store can compare matches a filter; `None` if the store was not asked since the
    /// run changed.
    pub fn store_match(&self, filter: &str, run: &RunId, runs: &KnownRuns) -> Option<bool> {
        let found = self.found.as_ref().filter(|found| found.text == filter)?;
        let changed_at = runs.changed_at(run)?;
        if found.without_inputs.get(run) == Some(&changed_at) {
            return Some(true);
        }
        (changed_at <= found.version).then_some(false)
    }

    /// Reads runs that changed after the filter was sent, one by one; those of its response are already known.
    pub fn read_uncompared(&mut self, ids: &[RunId], runs: &KnownRuns) -> Option<Effect> {
        if self.is_finding() {
            return None;
        }
        self.uncompared = ids.iter().cloned().collect();
        self.read_next(runs)
    }

    fn request_found(&mut self) -> Option<Effect> {
        let found = self.found.as_ref()?;
        let (r#where, cursor) = (Some(found.text.clone()), found.next.clone());
        let filter = RunFilter { r#where, cursor, limit: MAX_REFRESHED_RUNS, ..RunFilter::default() };
        let effect = self.ask(Why::Found, filter);
        if let Some(found) = &mut self.found {
            found.pending = Some(self.generation);
        }
        Some(effect)
    }

    /// Requests all further matches of the filter, page by page.
    pub fn find_all(&mut self) -> Option<Effect> {
        let found = self.found.as_mut().filter(|found| !found.is_complete)?;
        found.wants_all = true;
        if found.pending.is_some() || found.loaded >= MAX_FOUND_RUNS {
            return None;
        }
        self.request_found()
    }

    /// Returns whether the filter may match more runs than are loaded.
    pub fn lacks_matches(&self) -> bool {
        self.found.as_ref().is_some_and(|found| !found.is_complete)
    }

    /// Returns whether the filter matches more runs than are loaded.
    pub fn has_further_matches(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.next.is_some())
    }

    /// Returns whether matches beyond the loaded pages were requested.
    pub fn has_searched(&self) -> bool {
        self.found.is_some()
    }

    /// Returns whether further matches are being loaded.
    pub fn is_finding(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.pending.is_some())
    }

    /// Handles a failed request.
    pub fn failed(&mut self, generation: u64) {
        self.failed = self.requests.remove(&generation).or(self.failed.take());
        if let Some(found) = &mut self.found {
            found.pending.take_if(|pending| *pending == generation);
        }
    }

    /// Returns whether runs were dropped that may match the filter, once.
    pub fn take_cut(&mut self) -> bool {
        std::mem::take(&mut self.is_cut)
    }

    /// Returns whether a part of the list could not be loaded.
    pub fn is_incomplete(&self) -> bool {
        self.failed.is_some()
    }

    /// Returns whether the open runs have been loaded: from then on it is known which ones wait.
    pub fn has_read_open(&self) -> bool {
        self.open_read
    }

    /// Returns whether the open runs have been loaded and no request for the ended ones is in progress.
    pub fn has_read_all(&self) -> bool {
        self.open_read && !self.is_in_progress(&Why::Ended)
    }

    /// Reads the next run that is no longer on the page of open runs, unless another page contained it since, or whose
    /// inputs are compared with the filter. By id: searches are limited per caller.
    fn read_next(&mut self, runs: &KnownRuns) -> Option<Effect> {
        if self.reading.is_some() {
            return None;
        }
        let is_open = |id: &RunId| runs.get(id).is_some_and(|run| RunState::OPEN.contains(&run.state));
        let lacks_inputs = |id: &RunId| runs.get(id).is_some_and(RunRecord::lacks_inputs);
        let left = std::iter::from_fn(|| self.left.pop_first()).find(is_open);
        let uncompared = || std::iter::from_fn(|| self.uncompared.pop_first()).find(lacks_inputs);
        let id = left.or_else(uncompared)?;
        self.reading = Some(id.clone());
        Some(Effect::Run(RunRequest::Detail(id)))
    }

    /// Returns whether the response for a run was requested from here, and requests the next one. After an error, the
    /// run stays open and is read again after the next page of open runs.
    pub fn take_run(
        &mut self,
        run: &RunId,
        answer: Result<&RunRecord, &Error>,
        runs: &mut KnownRuns,
    ) -> (bool, Option<Effect>) {
        if self.reading.as_ref() != Some(run) {
            return (false, None);
        }
        self.reading = None;
        match answer {
            Ok(now) => runs.put(now.clone(), runs.is_listed(run)),
            Err(error) if error.code == Code::NotFound => runs.forget(|one| one.id == *run),
            Err(_) => {}
        }
        (true, self.read_next(runs))
    }

    /// Handles a page; returns follow-up requests.
    pub fn take(&mut self, generation: u64, page: &RunPage, runs: &mut KnownRuns) -> Vec<Effect> {
        let Some(why) = self.requests.remove(&generation) else { return Vec::new() };
        self.failed.take_if(|failed| *failed == why);
        self.open_read |= why == Why::Open;
        let here: HashSet<&RunId> = page.runs.iter().map(|run| &run.id).collect();
        let total = page.counts.values().sum();
        self.has_deletions |= total < std::mem::replace(&mut self.total, total);
        if why == Why::Ended && std::mem::take(&mut self.full_refresh) {
            // Pages are ordered newest first, as ids are: this page does not show whether runs older than its last one
            // exist.
            let last = page.next.as_ref().and(page.runs.last()).map(|run| &run.id);
            runs.forget(|run| {
                RunState::ENDED.contains(&run.state)
                    && !here.contains(&run.id)
                    && last.is_none_or(|last| run.id.0 > last.0)
            });
            let ended: u64 = RunState::ENDED.iter().filter_map(|state| page.counts.get(state)).sum();
            let known_ended =
                runs.iter().filter(|(run, listed)| *listed && RunState::ENDED.contains(&run.state)).count();
            let lacks = std::mem::take(&mut self.has_deletions) || known_ended as u64 > ended;
            if let Some(last) = last.filter(|_| lacks) {
                // Which of the older ones were deleted is unknown: they are loaded again.
                runs.forget(|run| RunState::ENDED.contains(&run.state) && run.id.0 < last.0);
                (self.older, self.ended_read, self.is_cut) = (None, 0, true);
            }
        }
        match why {
            Why::Open if page.next.is_none() => {
                let open = runs.iter().filter(|(run, _)| RunState::OPEN.contains(&run.state));
                self.left = open.map(|(run, _)| run.id.clone()).filter(|id| !here.contains(id)).collect();
            }
            // The first page determines where the second begins, until older ones have been loaded.
            Why::Ended if self.ended_read <= page.runs.len() => {
                self.older.clone_from(&page.next);
                self.ended_read = page.runs.len();
            }
            Why::Older => {
                self.older.clone_from(&page.next);
                self.ended_read += page.runs.len();
            }
            _ => {}
        }
        for run in &page.runs {
            runs.put(run.clone(), why != Why::Found);
        }
        let mut out = Vec::new();
        if let Some(found) = self.found.as_mut().filter(|found| found.pending == Some(generation)) {
            found.pending = None;
            found.loaded += page.runs.len();
            found.is_complete = page.next.is_none();
            found.next.clone_from(&page.next);
            let without_inputs = page.runs.iter().filter(|run| run.lacks_inputs());
            let matches = without_inputs.filter_map(|run| Some((run.id.clone(), runs.changed_at(&run.id)?)));
            found.without_inputs.extend(matches);
            if found.wants_all {
                out.extend(self.find_all());
            }
        }
        out.extend(self.read_next(runs));
        let (open, ended) = std::mem::take(&mut self.again);
        match why {
            Why::Open if open => out.extend(self.refresh(ended, runs)),
            Why::Ended if ended => out.extend(self.refresh(true, runs)),
            _ => self.again = (open, ended),
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use skills_store::RunOptions;

    use super::*;

    fn generation(effect: &Effect) -> u64 {
        match effect {
            Effect::Run(RunRequest::Page { generation, .. }) => *generation,
            other => panic!("{other:?} asks for no page"),
        }
    }

    fn page(next: Option<&str>) -> RunPage {
        RunPage { runs: Vec::new(), next: next.map(str::to_owned), counts: BTreeMap::new() }
    }

    fn record() -> RunRecord {
        serde_json::from_value(serde_json::json!({
            "id": "a", "skill_id": "demo", "state": "running", "held": false, "gate": null, "decided": null,
            "contract_digest": "c", "inputs": {}, "target": null, "options": RunOptions::default(),
            "outputs": null, "error": null, "trace_id": "t", "started_by": "ana", "source": null,
            "progress": [0, 1], "step": null, "head": 0, "fence": 1, "created_ms": 0, "since_ms": 0,
            "expires_ms": null, "allowed": [],
        }))
        .unwrap()
    }

    #[test]
    fn events_during_a_page_request_cause_one_more() {
        let (mut feeds, mut runs) = (RunPages::default(), KnownRuns::default());
        let first = feeds.refresh(false, &runs);
        assert_eq!(first.len(), 1);
        for _ in 0..50 {
            assert!(feeds.refresh(false, &runs).is_empty(), "a burst of events asks nothing meanwhile");
        }
        let again = feeds.take(generation(&first[0]), &page(None), &mut runs);
        assert_eq!(again.len(), 1);
        assert!(feeds.take(generation(&again[0]), &page(None), &mut runs).is_empty());
    }

    #[test]
    fn a_part_that_could_not_be_read_is_missing_until_it_is() {
        let (mut feeds, mut runs) = (RunPages::default(), KnownRuns::default());
        let requests = feeds.refresh_all(&runs);
        feeds.failed(generation(&requests[1]));
        feeds.take(generation(&requests[0]), &page(None), &mut runs);
        assert!(feeds.is_incomplete(), "the open runs say nothing of the ended ones");
        let again = feeds.refresh_all(&runs);
        feeds.take(generation(&again[1]), &page(None), &mut runs);
        assert!(!feeds.is_incomplete());
    }

    #[test]
    fn runs_that_left_the_page_are_read_by_id_one_at_a_time_and_again_after_an_error() {
        let (mut feeds, mut runs) = (RunPages::default(), KnownRuns::default());
        let mut run = record();
        for id in ["a", "b", "c"] {
            run.id = RunId(id.into());
            runs.put(run.clone(), true);
        }
        let read = |effects: &[Effect]| match effects {
            [Effect::Run(RunRequest::Detail(id))] => id.clone(),
            other => panic!("{other:?}"),
        };
        let first = feeds.refresh(false, &runs);
        let a = read(&feeds.take(generation(&first[0]), &page(None), &mut runs));
        let busy = Error::new(Code::RateLimited, "try again later");
        let (mine, next) = feeds.take_run(&a, Err(&busy), &mut runs);
        assert!(mine && !feeds.is_incomplete(), "the list itself was read");
        let b = read(&next.into_iter().collect::<Vec<_>>());
        run.id = b.clone();
        run.state = RunState::Completed;
        let (_, next) = feeds.take_run(&b, Ok(&run), &mut runs);
        let c = read(&next.into_iter().collect::<Vec<_>>());
        let gone = Error::new(Code::NotFound, "no such run");
        assert_eq!(feeds.take_run(&c, Err(&gone), &mut runs), (true, None));
        assert_eq!((runs.listed(), runs.get(&b).unwrap().state), (2, RunState::Completed));
        let again = feeds.refresh(false, &runs);
        assert_eq!(read(&feeds.take(generation(&again[0]), &page(None), &mut runs)), a);
    }

    #[test]
    fn deleted_runs_are_dropped_by_a_full_refresh_also_beyond_the_first_page() {
        let (mut feeds, mut runs) = (RunPages::default(), KnownRuns::default());
        let run = |id: &str| RunRecord { id: RunId(id.into()), state: RunState::Completed, ..record() };
        let full = |ids: &[&str], next: Option<&str>, all: u64| RunPage {
            runs: ids.iter().map(|id| run(id)).collect(),
            next: next.map(str::to_owned),
            counts: BTreeMap::from([(RunState::Completed, all)]),
        };
        let first = feeds.refresh_all(&runs);
        feeds.take(generation(&first[1]), &full(&["d", "c"], Some("c"), 4), &mut runs);
        let older = feeds.older().unwrap();
        feeds.take(generation(&older), &full(&["b", "a"], None, 4), &mut runs);
        assert_eq!((runs.listed(), feeds.older()), (4, None));
        let again = feeds.refresh_all(&runs);
        feeds.take(generation(again.last().unwrap()), &full(&["d", "c"], Some("c"), 3), &mut runs);
        assert_eq!(runs.listed(), 2, "one of the older runs was deleted");
        assert!(feeds.take_cut() && !feeds.take_cut());
        let older = feeds.older().unwrap();
        feeds.take(generation(&older), &full(&["b"], None, 3), &mut runs);
        let last = feeds.refresh_all(&runs);
        feeds.take(generation(last.last().unwrap()), &full(&["d"], None, 1), &mut runs);
        assert_eq!(runs.iter().map(|(run, _)| run.id.0.as_str()).collect::<Vec<_>>(), ["d"]);
        assert!(!feeds.take_cut(), "the page shows all ended runs");
    }

    #[test]
    fn matches_beyond_the_first_page_are_loaded_on_demand() {
        let (mut feeds, mut runs) = (RunPages::default(), KnownRuns::default());
        let outdated = feeds.find(Some("state:open"), &runs).unwrap();
        let first = feeds.find(Some("state:failed"), &runs).unwrap();
        assert!(feeds.lacks_matches(), "nothing is known before the first response");
        feeds.take(generation(&outdated), &page(None), &mut runs);
        assert!(feeds.lacks_matches(), "the response belongs to another filter");
        assert!(feeds.take(generation(&first), &page(Some("b")), &mut runs).is_empty());
        assert!(feeds.lacks_matches() && !feeds.is_finding());
        let second = feeds.find_all().unwrap();
        assert_eq!(feeds.find_all(), None, "it is in progress");
        let third = feeds.take(generation(&second), &page(Some("c")), &mut runs);
        assert_eq!(third.len(), 1, "all of them are wanted");
        feeds.take(generation(&third[0]), &page(None), &mut runs);
        assert!(!feeds.lacks_matches());
        assert_eq!(feeds.find_all(), None);
    }

    /// Returns a run as a list returns it if its inputs are long.
    fn without_inputs(id: &str, since_ms: i64) -> RunRecord {
        let inputs = serde_json::Value::Null;
        RunRecord { id: RunId(id.into()), state: RunState::Completed, inputs, since_ms, ..record() }
    }

    #[test]
    fn long_values_are_kept_until_the_state_changes() {
        let mut runs = KnownRuns::default();
        let target = |content: Option<&str>| {
            let mut target = serde_json::json!({ "type": "file", "ref": "a.md" });
            if let Some(content) = content {
                target["content"] = content.into();
            }
            Some(target)
        };
        let listed = RunRecord { target: target(None), ..without_inputs("a", 5) };
        let loaded = RunRecord {
            inputs: serde_json::json!({ "to": "mallory" }),
            target: target(Some("text")),
            outputs: Some(serde_json::json!({ "paid": 5 })),
            ..listed.clone()
        };
        runs.put(listed.clone(), true);
        runs.put(loaded.clone(), false);
        let version = runs.version();
        runs.put(listed.clone(), true);
        assert_eq!((runs.get(&listed.id), runs.version(), runs.listed()), (Some(&loaded), version, 1));
        for changed in [
            RunRecord { since_ms: 6, ..listed.clone() },
            RunRecord { since_ms: 6, state: RunState::Pending, ..listed.clone() },
            RunRecord { paused: true, ..listed.clone() },
        ] {
            runs.put(loaded.clone(), true);
            runs.put(changed.clone(), true);
            assert_eq!(runs.get(&listed.id), Some(&changed));
        }
    }

    #[test]
    fn a_run_without_its_inputs_matches_only_as_the_store_reports() {
        let (mut feeds, mut runs) = (RunPages::default(), KnownRuns::default());
        let (filter, a, b) = ("-input.to:mallory", RunId("a".into()), RunId("b".into()));
        runs.put(without_inputs("a", 1), true);
        runs.put(without_inputs("b", 1), true);
        assert_eq!(feeds.store_match(filter, &a, &runs), None, "the store was not asked");
        let request = feeds.find(Some(filter), &runs).unwrap();
        assert_eq!(feeds.store_match(filter, &a, &runs), Some(false), "not before the response");
        let found = RunPage { runs: vec![without_inputs("a", 1)], ..page(None) };
        feeds.take(generation(&request), &found, &mut runs);
        let both = |feeds: &RunPages, runs: &KnownRuns| {
            (feeds.store_match(filter, &a, runs), feeds.store_match(filter, &b, runs))
        };
        assert_eq!(both(&feeds, &runs), (Some(true), Some(false)));
        assert_eq!(feeds.store_match("input.to:x", &a, &runs), None, "the response is for another filter");
        let again = feeds.find(Some(filter), &runs).unwrap();
        assert_eq!(both(&feeds, &runs), (Some(true), Some(false)), "it stays listed");
        assert_eq!(
            feeds.read_uncompared(std::slice::from_ref(&b), &runs),
            None,
            "the response may contain it"
        );
        feeds.take(generation(&again), &found, &mut runs);

        // Both were resumed, and may have other inputs.
        runs.put(without_inputs("a", 2), true);
        runs.put(without_inputs("b", 2), true);
        assert_eq!(both(&feeds, &runs), (None, None));
        let first = feeds.read_uncompared(&[a.clone(), b.clone()], &runs);
        assert_eq!(first, Some(Effect::Run(RunRequest::Detail(a.clone()))));
        let loaded = RunRecord { inputs: serde_json::json!({}), ..without_inputs("a", 2) };
        let next = feeds.take_run(&a, Ok(&loaded), &mut runs);
        assert_eq!(next, (true, Some(Effect::Run(RunRequest::Detail(b.clone())))));
        assert_eq!(runs.get(&a), Some(&loaded));
    }

    #[test]
    fn a_failed_request_leaves_the_matches_incomplete() {
        let mut feeds = RunPages::default();
        let first = feeds.find(Some("state:failed"), &KnownRuns::default()).unwrap();
        feeds.failed(generation(&first));
        assert!(feeds.lacks_matches() && !feeds.is_finding());
        assert!(feeds.find_all().is_some(), "it can be requested again");
    }

    #[test]
    fn older_runs_are_loaded_one_page_at_a_time() {
        let (mut feeds, mut runs) = (RunPages::default(), KnownRuns::default());
        assert_eq!(feeds.older(), None, "nothing is known to be older yet");
        let requests = feeds.refresh_all(&runs);
        feeds.take(generation(&requests[1]), &page(Some("b")), &mut runs);
        let older = feeds.older().unwrap();
        assert_eq!(feeds.older(), None);
        feeds.take(generation(&older), &page(None), &mut runs);
        assert_eq!(feeds.older(), None, "that was the last page");
    }
}
