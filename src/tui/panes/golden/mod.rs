//! Pane 6: the golden queries, failing ones first, with the skill that ranked first instead, the reason, and advice.

mod detail;
mod detail_view;
mod head_view;
mod keys;
mod list_view;
mod query_list;
mod rows;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::detail::QueryDetail;
use self::query_list::QueryList;
use crate::golden_requests::{FileStamp, GoldenPaneRequest, GoldenPaneResponse};
use crate::pane::{Effect, Message};
use skills_api::{Error, Event};
use skills_registry::Catalog;

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    List,
    Filter,
    Detail,
}

/// The tab of the right part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Tab {
    #[default]
    Query,
    Confusions,
    Skills,
}

const TABS: [Tab; 3] = [Tab::Query, Tab::Confusions, Tab::Skills];

/// Interval between checks for changes of the files by other programs.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The state of pane 6.
#[derive(Default)]
pub struct Golden {
    focus: Focus,
    list: QueryList,
    detail: QueryDetail,
    error: Option<Error>,
    freshness: Freshness,
    catalog: Arc<Catalog>,
    /// Whether the parts shared one column in the last frame.
    is_folded: bool,
    /// Whether the next `x` removes the query under the cursor.
    is_removing: bool,
}

/// Whether the measurement is current, and the checks of the files for changes by other programs.
#[derive(Default)]
struct Freshness {
    /// Whether a measurement is in progress.
    is_measuring: bool,
    /// Whether skills or queries have changed since the last measurement.
    is_stale: bool,
    /// When the files were last checked.
    checked: Option<Instant>,
    is_checking: bool,
    /// The files at the last check.
    stamps: Option<Vec<FileStamp>>,
}

impl Freshness {
    /// Returns whether a measurement is due, and records that it begins.
    fn begin_measuring(&mut self) -> bool {
        let is_due = self.is_stale && !self.is_measuring;
        if is_due {
            (self.is_stale, self.is_measuring) = (false, true);
        }
        is_due
    }

    fn begin_checking(&mut self, now: Instant, files: Vec<PathBuf>) -> GoldenPaneRequest {
        (self.checked, self.is_checking) = (Some(now), true);
        GoldenPaneRequest::Check { files, known: self.stamps.clone() }
    }

    fn take_check(&mut self, changed: Option<&Vec<FileStamp>>) {
        self.is_checking = false;
        if let Some(stamps) = changed {
            // The first check is the base of the next ones.
            self.is_stale |= self.stamps.is_some();
            self.stamps = Some(stamps.clone());
        }
    }

    fn next_check(&self, now: Instant) -> Option<Instant> {
        let is_idle = !self.is_checking && !self.is_measuring;
        is_idle.then(|| self.checked.map_or(now, |checked| checked + CHECK_INTERVAL))
    }
}

impl Golden {
    /// Creates a pane without a measurement.
    pub fn new() -> Self {
        let list = QueryList { is_followed: true, ..QueryList::default() };
        Self { freshness: Freshness { is_stale: true, ..Freshness::default() }, list, ..Self::default() }
    }

    fn on_message(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Golden(GoldenPaneResponse::Measurement(answer)) => {
                self.freshness.is_measuring = false;
                match answer {
                    Ok(measured) => {
                        (self.list.measured, self.error) = (Some(Arc::clone(measured)), None);
                        self.detail.forget();
                        self.list.set_rows();
                    }
                    Err(error) => self.error = Some(error.clone()),
                }
            }
            Message::Golden(GoldenPaneResponse::Explained(query, answer)) => {
                self.detail.take_explanation(query, answer);
            }
            Message::Golden(GoldenPaneResponse::Edited(Ok(_))) => self.freshness.is_stale = true,
            Message::Golden(GoldenPaneResponse::Baselines(Ok(baselines))) => {
                if let Some(measured) = &mut self.list.measured {
                    Arc::make_mut(measured).baselines.clone_from(baselines);
                    self.list.set_rows();
                }
                return vec![Effect::Toast("baseline saved".to_owned())];
            }
            Message::Golden(GoldenPaneResponse::Checked(changed)) => {
                self.freshness.take_check(changed.as_ref());
            }
            Message::Catalog(catalog) => {
                (self.catalog, self.freshness.is_stale) = (Arc::clone(catalog), true);
            }
            Message::Event(Event::Catalog(change)) => {
                (self.catalog, self.freshness.is_stale) = (Arc::clone(&change.catalog), true);
            }
            Message::Event(Event::Index(progress)) if progress.done => self.freshness.is_stale = true,
            _ => {}
        }
        Vec::new()
    }

    /// Requests a measurement if something has changed; called while the pane is shown.
    fn refresh(&mut self) {
        if self.freshness.begin_measuring() {
            self.detail.wanted.push(Effect::Golden(GoldenPaneRequest::Measure));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_changed_by_another_program_is_measured_again() {
        let mut pane = Golden { freshness: Freshness::default(), ..Golden::new() };
        let checked = |stamps| Message::Golden(GoldenPaneResponse::Checked(stamps));
        pane.on_message(&checked(Some(Vec::new())));
        assert!(!pane.freshness.is_stale, "the first check is the base");
        pane.on_message(&checked(None));
        assert!(!pane.freshness.is_stale, "nothing changed");
        pane.on_message(&checked(Some(vec![("golden.yaml".into(), None)])));
        assert!(pane.freshness.is_stale);
    }
}
