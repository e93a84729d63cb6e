//! The list of runs: its rows, filter, order, marks and views, and the cursor.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use ratatui::layout::{Position, Rect};

use super::feed::MAX_FOUND_RUNS;
use super::filter::Filter;
use super::list::{self, Row, rows};
use super::loaded::LoadedRuns;
use super::views::{Views, terms_of};
use crate::action::Action;
use crate::keymap::mention;
use crate::pane::{Effect, Picker, PickerKind};
use crate::widgets::format::count;
use crate::widgets::relative_time::{until_older, until_younger};
use crate::widgets::scroll::Scroll;
use crate::widgets::text_width::shown;
use skills_api::{FacetList, SavedView, facets, sort_runs};
use skills_base::number::{counted, grouped};
use skills_config::{RunColumn, RunSettings, RunSort};
use skills_store::{
    EventKind, RunEvent, RunId, RunPage, RunQuery, RunRecord, TermEffect, with_term, without_each_field,
};

/// Areas of the last frame.
#[derive(Debug, Default)]
pub(super) struct ListAreas {
    pub list: Rect,
    pub filter: Rect,
    /// Visible rows with their index among all rows.
    pub rows: Vec<(Rect, usize)>,
    /// Tabs with their index among all tabs.
    pub tabs: Vec<(Rect, usize)>,
    /// Values with the terms that add them to the filter.
    pub terms: Vec<(Rect, String)>,
    /// Column heads with their names.
    pub columns: Vec<(Rect, RunColumn)>,
    /// The start of relative times on the screen, in milliseconds since 1970-01-01 UTC.
    pub since: Vec<i64>,
    /// The wall clock of the frame.
    pub clock_ms: i64,
}

/// The state of the list.
#[derive(Default)]
pub(super) struct RunList {
    pub runs: LoadedRuns,
    pub rows: Vec<Row>,
    pub scroll: Scroll,
    pub follow: bool,
    /// The run under the cursor, wherever its row moves.
    pub selected: Option<RunId>,
    /// Whether the user moved the cursor; until then it stays on the first run.
    pub moved: bool,
    pub filter: Filter,
    /// The tabs: filters that are built in, and saved ones.
    pub views: Views,
    /// The column that sorts the table, with a `-` prefix for descending order.
    pub sort: Option<RunSort>,
    pub settings: RunSettings,
    /// Runs that the next command applies to instead of the one under the cursor, with the start of their state when
    /// they were marked. A run that changed since is no longer marked.
    pub marked: HashMap<RunId, i64>,
    /// Whether all matches are marked as soon as they are loaded.
    pub marks_all: bool,
    /// Whether only the store knows of some runs whether they match the filter, because their inputs are not loaded.
    has_unknown_matches: bool,
    /// Those that changed after the filter was sent to the store; they are not listed.
    uncompared: Vec<RunId>,
    /// Requests for what the last frame lacked.
    pub wanted: Vec<Effect>,
    pub drawn: ListAreas,
}

fn too_many() -> String {
    format!("more than {} runs match: narrow the filter to mark all", count(MAX_FOUND_RUNS))
}

/// Describes what a term does to the filter, with the number of runs that have it, if known.
fn term_note(effect: TermEffect, runs: Option<u64>) -> String {
    match (effect, runs) {
        (TermEffect::Narrows, runs) => runs.map(grouped).unwrap_or_default(),
        (TermEffect::Widens, Some(runs)) => format!("also match: {}", counted(runs, "run")),
        (TermEffect::Widens, None) => "also match".to_owned(),
        (TermEffect::Removes, _) => "active; select to remove".to_owned(),
    }
}

/// Returns whether an event changes a run, more than by a line of its output.
pub(super) fn changes_run(event: &RunEvent) -> bool {
    event.event.kind != EventKind::StepLog
}

impl RunList {
    pub fn of(settings: RunSettings) -> Self {
        Self { follow: true, sort: settings.sort, settings, ..Self::default() }
    }

    /// Returns the run under the cursor.
    pub fn record(&self) -> Option<&RunRecord> {
        self.runs.known.get(self.selected.as_ref()?)
    }

    /// Returns whether runs are shown as a table: a filter or a view is active.
    pub fn is_table(&self) -> bool {
        !self.filter.field.text().trim().is_empty()
    }

    /// Returns the number of rows that the drawn table needs of its height, and leaves the others to the details.
    pub fn leave_rows(&mut self, top: u16, height: u16) -> u16 {
        let drawn = &mut self.drawn;
        if drawn.rows.len() < self.rows.len() || self.runs.own_error().is_some() {
            return height;
        }
        let end = drawn.rows.last().map_or(drawn.list.y + 1, |(row, _)| row.bottom()).min(top + height);
        drawn.list.height = end.saturating_sub(drawn.list.y);
        end - top
    }

    /// Returns the listed runs in their order.
    pub fn listed(&self) -> impl Iterator<Item = &RunId> {
        self.rows.iter().filter_map(Row::run)
    }

    /// Drops everything after the core changed to another store.
    pub fn reset(&mut self) {
        self.runs.reset();
        (self.moved, self.selected) = (false, None);
        self.unmark();
        self.views.summaries.reset();
        self.build();
    }

    /// Rebuilds the rows; the cursor stays on its run.
    pub fn build(&mut self) {
        let older = self.runs.all().saturating_sub(self.runs.known.listed() as u64);
        let (known, feeds, filter) = (&self.runs.known, &self.runs.feeds, &self.filter);
        let (mut has_unknown, mut uncompared) = (false, Vec::new());
        let is_shown = |run: &RunRecord, listed: bool| {
            if filter.is_empty() {
                return listed;
            }
            filter.evaluate(run, self.drawn.clock_ms).unwrap_or_else(|| {
                has_unknown = true;
                let is_match = feeds.store_match(filter.applied(), &run.id, known);
                if is_match.is_none() {
                    uncompared.push(run.id.clone());
                }
                is_match == Some(true)
            })
        };
        self.rows = rows(known, is_shown, if filter.is_empty() { older } else { 0 });
        (self.has_unknown_matches, self.uncompared) = (has_unknown, uncompared);
        if self.is_table() {
            self.rows.retain(|row| matches!(row, Row::Run(_)));
            self.sort_rows();
        }
        self.views.summaries.rows_changed();
        if !self.marked.is_empty() {
            let listed: HashSet<&RunId> = self.rows.iter().filter_map(Row::run).collect();
            self.marked.retain(|id, since_ms| {
                listed.contains(id) && self.runs.known.get(id).is_some_and(|run| run.since_ms == *since_ms)
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

    /// Sorts the table by a column, over all runs that match the filter.
    pub fn sort_by(&mut self, sort: Option<RunSort>) -> Vec<Effect> {
        self.sort = sort;
        self.build();
        self.sort.as_ref().and_then(|_| self.runs.feeds.find_all()).into_iter().collect()
    }

    /// Sorts the rows of the table by its column.
    fn sort_rows(&mut self) {
        let Some(sort) = self.sort else { return };
        let mut runs: Vec<&RunRecord> = self.listed().filter_map(|id| self.runs.known.get(id)).collect();
        sort_runs(&mut runs, sort);
        self.rows = runs.into_iter().map(|run| Row::Run(run.id.clone())).collect();
    }

    pub fn take_page(&mut self, generation: u64, page: &RunPage) -> Vec<Effect> {
        let before = self.runs.all();
        let mut effects = self.runs.take_page(generation, page);
        self.build();
        if self.runs.all() < before {
            self.views.summaries.runs_changed();
        }
        if self.runs.feeds.take_cut() {
            effects.extend(self.find_matches(true));
        }
        let needs_store = self.needs_store();
        let runs = &mut self.runs;
        if runs.feeds.has_searched() {
            effects.extend(runs.feeds.read_uncompared(&self.uncompared, &runs.known));
        } else if runs.loaded && needs_store {
            // The filter was entered while every known run was loaded, with what it compares.
            let filter = self.filter.in_force();
            effects.extend(filter.and_then(|filter| runs.feeds.find(Some(filter), &runs.known)));
        }
        effects.extend(self.mark_found());
        effects.extend(self.request_summaries());
        effects
    }

    /// Requests what the events changed.
    pub fn happened(&mut self, events: &[RunEvent]) -> Vec<Effect> {
        if !events.iter().any(changes_run) {
            return Vec::new();
        }
        let ends = [
            EventKind::RunCompleted,
            EventKind::RunFailed,
            EventKind::RunCanceled,
            EventKind::RunExpired,
            EventKind::GateDenied,
        ];
        let ended = events.iter().any(|event| ends.contains(&event.event.kind));
        self.views.summaries.runs_changed();
        self.runs.feeds.refresh(ended, &self.runs.known)
    }

    /// Moves the cursor, if the action does.
    pub fn move_cursor(&mut self, action: Action) -> Option<()> {
        let by = action.rows(self.scroll.page())?;
        self.scroll.cursor = list::moved(&self.rows, self.scroll.cursor, by);
        (self.follow, self.moved) = (true, true);
        Some(())
    }

    /// Requests the next page at the last loaded run.
    pub fn older_at_end(&mut self) -> Option<Effect> {
        let last = list::moved(&self.rows, self.scroll.cursor, 1) == self.scroll.cursor;
        if last && self.filter.is_empty() { self.runs.feeds.older() } else { None }
    }

    /// Applies the text of the filter; returns whether it differs from the previous filter.
    pub fn apply_filter(&mut self) -> bool {
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
        is_changed
    }

    /// Returns whether the loaded runs do not show which runs match the filter.
    fn needs_store(&self) -> bool {
        !self.runs.is_complete() || self.has_unknown_matches
    }

    /// Requests matches that are not loaded, or that only the store knows.
    pub fn find_matches(&mut self, is_changed: bool) -> Vec<Effect> {
        let mut effects = Vec::new();
        if is_changed || self.filter.in_force().is_some() {
            let filter = self.filter.in_force().filter(|_| self.needs_store());
            effects.extend(self.runs.feeds.find(filter, &self.runs.known));
            if self.sort.is_some() {
                effects.extend(self.runs.feeds.find_all());
            }
        }
        effects
    }

    /// Adds a term to the text of the filter: an alternative, if the filter restricts the field, or removes it.
    pub fn add_term(&mut self, text: &str) {
        let (filter, _) = with_term(self.filter.field.text(), text);
        self.filter.field.set(&filter);
    }

    /// Handles `+`: lets the user choose a value of the run under the cursor, or of other runs, to add to the filter.
    pub fn choose_term(&mut self) -> Vec<Effect> {
        let of_run = self.record().map(terms_of).unwrap_or_default();
        let mut terms: Vec<(String, Option<u64>)> = of_run.into_iter().map(|text| (text, None)).collect();
        for value in self.facets().facets.iter().flat_map(|facet| &facet.values) {
            if terms.iter().all(|(known, _)| *known != value.term) {
                terms.push((value.term.clone(), Some(value.runs)));
            }
        }
        let choices = terms.into_iter().map(|(term, runs)| {
            let note = term_note(with_term(self.filter.field.text(), &term).1, runs);
            (term.clone(), shown(&term), note)
        });
        let choices: Vec<(String, String, String)> = choices.collect();
        let title = "Add to the filter, or remove from it".to_owned();
        vec![Effect::Pick(Picker { what: PickerKind::FilterTerm, title, choices, current: None })]
    }

    /// Handles `o`: lets the user choose the column that sorts the table.
    pub fn choose_sort(&self) -> Vec<Effect> {
        let mut choices =
            vec![(String::new(), "default order".to_owned(), "waiting first, then newest".to_owned())];
        for column in &self.settings.columns {
            choices.push((column.to_string(), column.to_string(), "ascending".to_owned()));
            choices.push((format!("-{column}"), format!("-{column}"), "descending".to_owned()));
        }
        let now = self.sort.map(|sort| sort.to_string()).unwrap_or_default();
        let current = choices.iter().position(|(value, ..)| *value == now);
        let title = "Sort by".to_owned();
        vec![Effect::Pick(Picker { what: PickerKind::RunSort, title, choices, current })]
    }

    /// Returns the marked runs in the order of the list.
    pub fn marked_runs(&self) -> impl Iterator<Item = &RunRecord> {
        let listed = self.listed().filter(|id| self.marked.contains_key(*id));
        listed.filter_map(|id| self.runs.known.get(id))
    }

    /// Marks the run under the cursor, or unmarks it.
    pub fn mark_at_cursor(&mut self) {
        if let Some(id) = self.selected.clone()
            && self.marked.remove(&id).is_none()
        {
            self.mark(Some(id));
        }
    }

    /// Marks every run of the list, or unmarks all if all are marked. Matches that are not loaded are loaded first.
    pub fn mark_all(&mut self) -> Vec<Effect> {
        if let Some(why) = self.filter.blocks_marking() {
            return vec![Effect::Toast(why)];
        }
        if self.runs.feeds.lacks_matches() {
            let request = self.runs.feeds.find_all();
            self.marks_all = self.runs.feeds.is_finding();
            if !self.marks_all {
                return vec![Effect::Toast(too_many())];
            }
            return request.into_iter().collect();
        }
        let listed: Vec<RunId> = self.listed().cloned().collect();
        if listed.iter().all(|id| self.marked.contains_key(id)) {
            self.marked.clear();
            return Vec::new();
        }
        let number = listed.len();
        self.mark(listed);
        if self.filter.is_empty() && !self.runs.is_complete() {
            let (marked, all) =
                (count(number), count(usize::try_from(self.runs.all()).unwrap_or(usize::MAX)));
            let filter = mention(Action::Filter);
            return vec![Effect::Toast(format!(
                "marked {marked} of {all} runs; the others are not loaded: set a filter ({filter}) to mark all \
                 that match"
            ))];
        }
        Vec::new()
    }

    /// Marks all matches once they are loaded.
    pub fn mark_found(&mut self) -> Vec<Effect> {
        if !self.marks_all || self.runs.feeds.is_finding() {
            return Vec::new();
        }
        self.marks_all = false;
        if self.runs.feeds.is_incomplete() {
            return vec![Effect::Toast("no run is marked: the runs that match cannot be read".to_owned())];
        }
        if self.runs.feeds.lacks_matches() {
            return vec![Effect::Toast(too_many())];
        }
        let listed: Vec<RunId> = self.listed().cloned().collect();
        self.mark(listed);
        Vec::new()
    }

    pub fn mark(&mut self, runs: impl IntoIterator<Item = RunId>) {
        for id in runs {
            if let Some(run) = self.runs.known.get(&id) {
                self.marked.insert(id, run.since_ms);
            }
        }
    }

    /// Unmarks all runs: marks of another filter would be acted upon unseen.
    pub fn unmark(&mut self) {
        self.marked.clear();
        self.marks_all = false;
    }

    /// Returns the filters whose counts only the service knows.
    pub fn requested_filters(&self) -> Vec<String> {
        let is_complete = self.runs.is_complete();
        let summaries = &self.views.summaries;
        let views = self.views.saved.iter().map(|view| view.r#where.clone());
        let views = views.filter(|filter| !is_complete || summaries.is_uncounted(filter));
        let is_counted = |filter: &&str| {
            self.runs.feeds.has_further_matches() || !is_complete && !without_each_field(filter).is_empty()
        };
        let filter = self.filter.in_force().filter(is_counted);
        views.chain(filter.map(str::to_owned)).collect()
    }

    /// Requests counts that are missing.
    pub fn request_summaries(&mut self) -> Vec<Effect> {
        if !self.runs.loaded {
            return Vec::new();
        }
        let filters = self.requested_filters();
        self.views.summaries.request_missing(&filters, self.runs.is_complete())
    }

    /// Returns when the counts are requested again; `None` if no run changed.
    pub fn summaries_due(&self, now: Instant) -> Option<Instant> {
        let due = self.views.summaries.due(now)?;
        (!self.requested_filters().is_empty()).then_some(due)
    }

    pub fn take_views(&mut self, views: &[SavedView]) -> Vec<Effect> {
        self.views.take(views);
        self.request_summaries()
    }

    /// Returns the facets of all runs that match the filter, or of the loaded ones until the service answers.
    pub fn facets(&mut self) -> Arc<FacetList> {
        let lacks = self.runs.feeds.lacks_matches();
        let is_complete = self.runs.is_complete();
        let filter = self.filter.in_force();
        if let Some(list) = self.views.summaries.facets(filter.filter(|_| lacks || !is_complete), lacks) {
            return list;
        }
        let (runs, now_ms) = (&self.runs.known, self.drawn.clock_ms);
        let listed: Vec<&RunRecord> = self.rows.iter().filter_map(|row| runs.get(row.run()?)).collect();
        let fields = filter.filter(|_| is_complete).map(without_each_field).unwrap_or_default();
        let alternatives = fields.into_iter().filter_map(|(key, others)| {
            let query = RunQuery::parse(&others).ok()?;
            let matching = runs.iter().filter(|(run, _)| query.matches(run, now_ms)).map(|(run, _)| run);
            Some((key, matching.collect()))
        });
        let list = Arc::new(facets(&listed, lacks, &alternatives.collect::<Vec<_>>()));
        self.views.summaries.keep_facets(&list);
        list
    }

    /// Returns whether a run on the screen has a spinner.
    pub fn animated(&self) -> bool {
        let turns = |run: &RunRecord| run.state.is_active();
        let in_sight =
            self.drawn.rows.iter().filter_map(|(_, row)| self.runs.known.get(self.rows.get(*row)?.run()?));
        in_sight.chain(self.record()).any(turns)
    }

    /// Returns when a relative time on the screen changes.
    pub fn changes_at(&self, clock_ms: i64) -> Option<i64> {
        let shown = self.record().map(|run| run.since_ms);
        let all = self.drawn.since.iter().copied().chain(shown);
        let ages = all.map(|since| clock_ms + until_older(clock_ms - since));
        // The remaining time of a wait changes with the clock too, and its expiry is shown at that moment.
        let expiries =
            self.runs.known.iter().filter_map(|(run, _)| run.expires_ms).filter(|at| *at > clock_ms);
        let expiries = expiries.map(|at| clock_ms + until_younger(at - clock_ms));
        ages.chain(expiries).min()
    }

    /// Sorts by the column whose head was clicked; a second click on it reverses the order.
    pub fn click_on_head(&mut self, at: Position) -> Option<Vec<Effect>> {
        let (_, column) = self.drawn.columns.iter().find(|(rect, _)| rect.contains(at))?;
        let ascending = RunSort { column: *column, descending: false };
        let sort = RunSort { descending: self.sort == Some(ascending), ..ascending };
        Some(self.sort_by(Some(sort)))
    }

    /// Moves the cursor to the run that was clicked, if any.
    pub fn click(&mut self, at: Position) -> Option<()> {
        let (_, row) = self.drawn.rows.iter().find(|(rect, _)| rect.contains(at))?;
        (self.scroll.cursor, self.moved) = (*row, true);
        Some(())
    }

    /// Scrolls the list without moving the cursor.
    pub fn wheel(&mut self, rows: isize) {
        self.follow = false;
        self.scroll.roll(rows, self.rows.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_of_a_term_states_its_effect() {
        assert_eq!(term_note(TermEffect::Narrows, Some(1234)), "1,234");
        assert_eq!(term_note(TermEffect::Widens, Some(4)), "also match: 4 runs");
        assert_eq!(term_note(TermEffect::Widens, None), "also match");
        assert_eq!(term_note(TermEffect::Removes, Some(4)), "active; select to remove");
    }
}
