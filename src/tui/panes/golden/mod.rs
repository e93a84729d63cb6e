//! Pane 6: the golden queries, failing ones first, with the skill that ranked first instead, the reason, and advice.

mod detail_view;
mod head_view;
mod keys;
mod list_view;
mod rows;
mod view;

use std::collections::HashMap;
use std::sync::Arc;

use ratatui::layout::Rect;

use self::rows::{Row, rows};
use crate::field::Field;
use crate::golden_requests::{GoldenMeasurement, GoldenPaneRequest, GoldenPaneResponse};
use crate::pane::{Effect, Message};
use crate::widgets::scroll::Scroll;
use skills_api::{Error, Event, GoldenExplanation, GoldenResult};
use skills_registry::Catalogue;

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    List,
    /// The filter of the queries.
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

/// Areas of the last frame.
#[derive(Debug, Default)]
struct FrameAreas {
    list: Rect,
    filter: Rect,
    detail: Rect,
    /// Rows of queries with their index in the list.
    rows: Vec<(Rect, usize)>,
    /// Names of the tabs.
    tabs: Vec<(Rect, Tab)>,
    /// Rows of the tab of skills with their index.
    skills: Vec<(Rect, usize)>,
    is_folded: bool,
}

/// The state of pane 6.
#[derive(Default)]
pub struct Golden {
    focus: Focus,
    tab: Tab,
    measured: Option<Arc<GoldenMeasurement>>,
    error: Option<Error>,
    /// Whether a measurement is in progress.
    is_measuring: bool,
    /// Whether skills or queries have changed since the last measurement.
    is_stale: bool,
    rows: Vec<Row>,
    scroll: Scroll,
    /// Whether the window follows the cursor.
    is_followed: bool,
    filter: Field,
    detail: Scroll,
    explanations: HashMap<String, Result<Arc<GoldenExplanation>, String>>,
    /// The query whose explanation was requested last.
    explaining: Option<String>,
    catalogue: Arc<Catalogue>,
    wanted: Vec<Effect>,
    drawn: FrameAreas,
    /// Whether the next `x` removes the query under the cursor.
    is_removing: bool,
}

impl Golden {
    /// Creates a pane without a measurement.
    #[must_use]
    pub fn new() -> Self {
        Self { is_stale: true, is_followed: true, ..Self::default() }
    }

    fn on_message(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Golden(GoldenPaneResponse::Measurement(answer)) => {
                self.is_measuring = false;
                match answer {
                    Ok(measured) => {
                        (self.measured, self.error) = (Some(Arc::clone(measured)), None);
                        self.explanations.clear();
                        self.explaining = None;
                        self.set_rows();
                    }
                    Err(error) => self.error = Some(error.clone()),
                }
            }
            Message::Golden(GoldenPaneResponse::Explained(query, answer)) => {
                let answer = answer.clone().map_err(|error| error.message);
                self.explanations.insert(query.query.clone(), answer);
            }
            Message::Golden(GoldenPaneResponse::Edited(Ok(_))) => self.is_stale = true,
            Message::Golden(GoldenPaneResponse::Baselines(Ok(baselines))) => {
                if let Some(measured) = &mut self.measured {
                    Arc::make_mut(measured).baselines.clone_from(baselines);
                    self.set_rows();
                }
                return vec![Effect::Toast("baseline set: changes are shown from now on".to_owned())];
            }
            Message::Catalogue(catalogue) => {
                (self.catalogue, self.is_stale) = (Arc::clone(catalogue), true);
            }
            Message::Event(Event::Catalogue(change)) => {
                (self.catalogue, self.is_stale) = (Arc::clone(&change.catalogue), true);
            }
            Message::Event(Event::Index(progress)) if progress.done => self.is_stale = true,
            _ => {}
        }
        Vec::new()
    }

    /// Requests a measurement if something has changed; called while the pane is shown.
    fn refresh(&mut self) {
        if self.is_stale && !self.is_measuring {
            (self.is_stale, self.is_measuring) = (false, true);
            self.wanted.push(Effect::Golden(GoldenPaneRequest::Measure));
        }
    }

    /// Rebuilds the rows; the cursor stays on its query.
    fn set_rows(&mut self) {
        let before = self.result().map(|result| result.query.query.clone());
        let results = self.measured.as_ref().map_or(&[][..], |measured| &measured.report.results);
        self.rows = rows(results, self.filter.text());
        let place = |row: &Row| match row {
            Row::Query(at) => results.get(*at).map(|result| &result.query.query),
            _ => None,
        };
        let found = self.rows.iter().position(|row| before.is_some() && place(row) == before.as_ref());
        let cursor = found.unwrap_or(self.scroll.cursor);
        self.scroll.cursor = rows::nearest(&self.rows, cursor);
        self.is_followed = true;
    }

    /// Returns the query under the cursor.
    fn result(&self) -> Option<&GoldenResult> {
        let Some(Row::Query(at)) = self.rows.get(self.scroll.cursor) else { return None };
        self.measured.as_ref()?.report.results.get(*at)
    }

    /// Returns the explanation of the query under the cursor; requests it if it is not loaded.
    fn explanation(&mut self) -> Option<Result<Arc<GoldenExplanation>, String>> {
        let query = self.result()?.query.clone();
        if let Some(known) = self.explanations.get(&query.query) {
            return Some(known.clone());
        }
        if self.explaining.as_ref() != Some(&query.query) {
            self.explaining = Some(query.query.clone());
            self.wanted.push(Effect::Golden(GoldenPaneRequest::Explain(query)));
        }
        None
    }
}
