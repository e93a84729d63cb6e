//! Views of the list as tabs with their counts: the board, built-in filters, and saved ones.

use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::Focus;
use super::filter::Filter;
use super::loaded::LoadedRuns;
use super::run_list::RunList;
use super::summaries::Summaries;
use crate::action::{Action, Context};
use crate::field::Field;
use crate::keymap::mention;
use crate::pane::{Draw, Effect};
use crate::run_requests::RunRequest;
use crate::theme::Role;
use crate::widgets::format::count;
use crate::widgets::painter::Painter;
use crate::widgets::text_width::{cells, cut_end, shown};
use skills_api::{SavedView, term};
use skills_model::RunState;
use skills_store::{RunRecord, failure_kind};

/// Maximum number of characters of a saved view's name on its tab.
const MAX_TAB: u16 = 20;
/// Its minimum if space is short.
const MIN_TAB: u16 = 8;

/// Interval at which saved views of other workbenches are read, and all runs are compared with those of the store.
const VIEWS_REFRESH: Duration = Duration::from_secs(60);

/// Short names of the built-in tabs.
const SHORT: [(&str, &str); 3] = [("Waiting", "Wait"), ("Running", "Run"), ("Failed", "Fail")];

/// A name with its count.
type Label = (String, Option<(String, Role)>);

/// How detailed the tabs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// Names and counts.
    All,
    /// Names, the count of waiting runs, and that of the active tab.
    Waiting,
    /// Short names, and the count of waiting runs.
    Short,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tab {
    Board,
    /// A name and its filter.
    Filter(String, String),
}

/// The state of the tabs.
#[derive(Default)]
pub(super) struct Views {
    /// Saved views.
    pub saved: Vec<SavedView>,
    /// The name being entered for a view.
    pub name: Field,
    /// When the views were last compared with those of the store; the first frame at the earliest.
    compared_at: Option<Instant>,
    pub summaries: Summaries,
}

impl Views {
    /// Returns every tab in order: all runs first, the board last.
    pub fn tabs(&self) -> Vec<Tab> {
        let filter = |name: &str, filter: &str| Tab::Filter(name.to_owned(), filter.to_owned());
        let mut tabs = vec![
            filter("All", ""),
            filter("Waiting", "state:waiting_for_human"),
            filter("Running", "state:running,replaying"),
            filter("Failed", "state:failed"),
        ];
        tabs.extend(self.saved.iter().map(|view| filter(&view.name, &view.r#where)));
        tabs.push(Tab::Board);
        tabs
    }

    /// Returns the active tab; `None` if another filter is entered.
    pub fn active(&self, filter: &Filter, on_board: bool) -> Option<usize> {
        let text = filter.field.text().trim();
        self.tabs().iter().position(|tab| match tab {
            Tab::Board => on_board,
            Tab::Filter(_, filter) => !on_board && filter == text,
        })
    }

    /// Returns the tab a number of tabs further, or the first one if none is active.
    pub fn turned(&self, filter: &Filter, on_board: bool, by: isize) -> usize {
        let last = self.tabs().len() - 1;
        self.active(filter, on_board).map_or(0, |at| at.saturating_add_signed(by).min(last))
    }

    /// Returns the number of runs of a tab, if it is known.
    fn tab_count(&self, tab: &Tab, runs: &LoadedRuns) -> Option<(String, u64)> {
        let Tab::Filter(name, filter) = tab else { return None };
        if !runs.loaded {
            return None;
        }
        let number = match name.as_str() {
            "All" if filter.is_empty() => runs.all(),
            "Waiting" => runs.count(&[RunState::WaitingForHuman]),
            "Running" => runs.count(&[RunState::Running, RunState::Replaying]),
            "Failed" => runs.count(&[RunState::Failed]),
            _ => return self.summaries.view_count(filter, runs.is_complete()),
        };
        Some((count(usize::try_from(number).unwrap_or(usize::MAX)), number))
    }

    /// Returns the names of the tabs with their counts, as detailed as requested, and with names of saved views of at
    /// most this width.
    fn labels(
        &self,
        (detail, longest): (Detail, u16),
        active: Option<usize>,
        runs: &LoadedRuns,
        cx: &Draw<'_>,
    ) -> Vec<Label> {
        let label = |(at, tab): (usize, &Tab)| {
            let name = match tab {
                Tab::Board => "Board".to_owned(),
                Tab::Filter(name, _) => {
                    let is_short = detail == Detail::Short && at < SHORT.len() + 1;
                    let short = SHORT.iter().find(|(long, _)| is_short && *long == name.as_str());
                    let cut = || cut_end(&shown(name), longest, cx.glyphs.ellipsis).into_owned();
                    short.map_or_else(cut, |(_, short)| (*short).to_owned())
                }
            };
            let waiting = matches!(tab, Tab::Filter(name, _) if name == "Waiting");
            let number = self.tab_count(tab, runs).filter(|(_, number)| match detail {
                Detail::All => true,
                Detail::Waiting => waiting && *number > 0 || active == Some(at),
                Detail::Short => waiting && *number > 0,
            });
            let text = number.map(|(text, number)| match (waiting && number > 0, text) {
                (true, text) => (format!("{}{text}", cx.glyphs.waiting), Role::Waiting),
                (false, text) => (text, Role::Muted),
            });
            (name, text)
        };
        self.tabs().iter().enumerate().map(label).collect()
    }

    /// Handles `V`: prepares the name under which the filter is saved, or explains why it is not.
    pub fn begin_saving(&mut self, filter: &Filter) -> Result<(), Effect> {
        let Some(filter) = filter.in_force() else {
            return Err(Effect::Toast(format!(
                "no filter to save; press {} to enter one",
                mention(Action::Filter)
            )));
        };
        if let Some(view) = self.saved.iter().find(|view| view.r#where == filter.trim()) {
            return Err(Effect::Toast(format!("this filter is saved as {}", shown(&view.name))));
        }
        self.name.clear();
        Ok(())
    }

    /// Returns the request that saves the filter under the entered name.
    pub fn save(&self, filter: &Filter) -> Option<Effect> {
        let name = self.name.text().trim().to_owned();
        let filter = filter.in_force().filter(|_| !name.is_empty())?.trim().to_owned();
        Some(Effect::Run(RunRequest::SaveView { name, filter }))
    }

    /// Returns when saved views of other workbenches are read, and runs compared.
    pub fn due(&self) -> Option<Instant> {
        self.compared_at.map(|at| at + VIEWS_REFRESH)
    }

    pub fn refresh(&mut self, now: Instant) -> Effect {
        self.compared_at = Some(now);
        Effect::Run(RunRequest::Views(Some(self.saved.clone())))
    }

    pub fn take(&mut self, views: &[SavedView]) {
        self.saved = views.to_vec();
        self.summaries.views_changed();
    }
}

/// Draws the tabs in one row, with fewer counts and shorter names if space is short.
pub(super) fn draw_tabs(
    list: &mut RunList,
    (focus, on_board): (Focus, bool),
    row: Rect,
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) {
    if list.views.summaries.count_views(&list.views.saved, &list.runs, cx.clock_ms) {
        let missing = list.request_summaries();
        list.wanted.extend(missing);
    }
    let (views, runs) = (&mut list.views, &list.runs);
    if focus == Focus::Name {
        let mut painter = Painter::new(buf, cx);
        painter.band(row, Role::Field);
        let x = painter.put(row.x + 3, row.y, "Save this filter as: ", Role::Strong, row.width);
        let line = Rect { x, width: row.right().saturating_sub(x + 1), ..row };
        let style = cx.theme.style(Role::Field).patch(cx.theme.style(Role::Strong));
        let cursor = views.name.draw(line, buf, style, &[]);
        if cx.focused {
            cx.cursor = cursor;
        }
        return;
    }
    // They are read at the start.
    views.compared_at.get_or_insert(cx.now);
    let mut painter = Painter::new(buf, cx);
    let active = views.active(&list.filter, on_board);
    let end = row.right().saturating_sub(1);
    let mut x = row.x + 3;
    let available = end.saturating_sub(x);
    let width = |(name, text): &Label| cells(name) + text.as_ref().map_or(0, |(text, _)| cells(text) + 1);
    let total = |labels: &[Label]| labels.iter().map(|label| width(label) + 2).sum::<u16>();
    // Names of saved views are cut no more than needed.
    let cut = (MIN_TAB..=MAX_TAB).rev().map(|longest| (Detail::Short, longest));
    let levels = [(Detail::All, MAX_TAB), (Detail::Waiting, MAX_TAB)].into_iter().chain(cut);
    let mut labels = levels.map(|level| views.labels(level, active, runs, cx));
    let last = || views.labels((Detail::Short, MIN_TAB), active, runs, cx);
    let labels = labels.find(|labels| total(labels) <= available + 2).unwrap_or_else(last);
    let ellipsis = painter.glyphs.ellipsis;
    let widths: Vec<u16> = labels.iter().map(width).collect();
    // Tabs that do not fit are represented by a glyph in their place, which opens the nearest of them.
    let mut next = 0;
    for at in fitting(&widths, active, cells(ellipsis), available) {
        if next < at {
            let nearest = if active == Some(at) { at - 1 } else { next };
            list.drawn.tabs.push((Rect::new(x, row.y, cells(ellipsis), 1), nearest));
            x = painter.put(x, row.y, ellipsis, Role::Muted, end.saturating_sub(x)) + 2;
        }
        next = at + 1;
        let (name, text) = &labels[at];
        let start = x;
        x = if active == Some(at) {
            let plus = Modifier::BOLD | Modifier::UNDERLINED;
            painter.put_plus(x, row.y, name, Role::Strong, plus, end.saturating_sub(x))
        } else {
            painter.put(x, row.y, name, Role::Muted, end.saturating_sub(x))
        };
        if let Some((text, role)) = text {
            x = painter.put(x + 1, row.y, text, *role, end.saturating_sub(x + 1));
        }
        list.drawn.tabs.push((Rect::new(start, row.y, x - start, 1), at));
        x += 2;
    }
    if active.is_none() && x + 14 < end {
        let start = painter.right(end, row.y, "save as view", Role::Muted);
        let key = painter.key(Action::SaveView, &[Context::Runs]).unwrap_or_default();
        painter.right(start.saturating_sub(1), row.y, &key, Role::Key);
    }
}

/// Returns the tabs that fit, in order: the active one, the board, which is the last one, and of the others the first.
/// Those between two of them are represented by an ellipsis.
fn fitting(widths: &[u16], active: Option<usize>, ellipsis: u16, available: u16) -> Vec<usize> {
    let mut tabs: Vec<usize> = Vec::new();
    let others = (0..widths.len()).filter(|at| Some(*at) != active && at + 1 != widths.len());
    for at in active.into_iter().chain(widths.len().checked_sub(1)).chain(others) {
        let place = tabs.partition_point(|known| *known < at);
        if tabs.get(place) == Some(&at) {
            continue;
        }
        tabs.insert(place, at);
        let gaps =
            (0..tabs.len()).filter(|i| tabs[*i] > i.checked_sub(1).map_or(0, |before| tabs[before] + 1));
        let total = tabs.iter().map(|at| widths[*at] + 2).sum::<u16>() + gaps.count() as u16 * (ellipsis + 2);
        if total > available + 2 && tabs.len() > 1 {
            tabs.remove(place);
            break;
        }
    }
    tabs
}

/// Returns terms that a run matches, most informative first.
pub(super) fn terms_of(run: &RunRecord) -> Vec<String> {
    let mut terms = Vec::new();
    if let Some(reason) = run.failure().filter(|reason| !reason.is_empty()) {
        let kind = failure_kind(&reason);
        if kind != reason {
            // With the colon it does not match `exit code 10` for `exit code 1`.
            terms.push(term("error", &format!("{kind}:")));
        }
        terms.push(term("error", &reason));
    }
    terms.push(term("skill", &run.skill_id));
    terms.push(term("state", &run.state.to_string()));
    if let Some(step) = &run.step {
        terms.push(term("step", step));
    }
    terms.extend(run.options.labels.iter().map(|(name, value)| term(&format!("label.{name}"), value)));
    for (name, value) in run.inputs.as_object().into_iter().flatten() {
        let value = match value {
            serde_json::Value::String(text) if text.len() <= 60 => text.clone(),
            serde_json::Value::Number(_) | serde_json::Value::Bool(_) => value.to_string(),
            _ => continue,
        };
        terms.push(term(&format!("input.{name}"), &value));
    }
    terms.push(term("by", &run.started_by));
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_active_tab_and_the_board_always_fit() {
        // Four built-in tabs, six views, and the board.
        let widths = [3, 4, 3, 4, 9, 9, 9, 9, 9, 9, 5];
        assert_eq!(fitting(&widths, Some(0), 1, 200), (0..11).collect::<Vec<_>>());
        assert_eq!(fitting(&widths, Some(0), 1, 42), [0, 1, 2, 3, 4, 10]);
        assert_eq!(fitting(&widths, Some(8), 1, 42), [0, 1, 2, 8, 10]);
        assert_eq!(fitting(&widths, Some(10), 1, 42), [0, 1, 2, 3, 4, 10]);
        assert_eq!(fitting(&widths, None, 1, 20), [0, 1, 10]);
        assert_eq!(fitting(&widths, Some(8), 1, 8), [8]);
    }
}
