//! The right part: its tab and scroll position, and the explanations of queries.

use std::collections::HashMap;
use std::sync::Arc;

use ratatui::layout::Rect;

use super::{TABS, Tab};
use crate::golden_requests::GoldenPaneRequest;
use crate::pane::Effect;
use crate::widgets::Scroll;
use skills_api::{Error, GoldenExplanation, GoldenQuery};

/// The state of the part.
#[derive(Default)]
pub(super) struct QueryDetail {
    pub tab: Tab,
    /// Scroll position of the tab; its cursor is that of the tab of skills.
    pub scroll: Scroll,
    explanations: HashMap<String, Result<Arc<GoldenExplanation>, String>>,
    /// The query whose explanation was requested last.
    explaining: Option<String>,
    /// Requests for what the last frame lacked.
    pub wanted: Vec<Effect>,
    /// Areas of the last frame.
    pub area: Rect,
    pub tabs: Vec<(Rect, Tab)>,
    /// Rows of the tab of skills with their index.
    pub skills: Vec<(Rect, usize)>,
}

impl QueryDetail {
    /// Forgets the areas of the last frame.
    pub fn start_frame(&mut self) {
        self.area = Rect::ZERO;
        self.tabs.clear();
        self.skills.clear();
    }

    /// Returns the explanation of a query; requests it if it is not loaded.
    pub fn explanation(&mut self, query: &GoldenQuery) -> Option<Result<Arc<GoldenExplanation>, String>> {
        if let Some(known) = self.explanations.get(&query.query) {
            return Some(known.clone());
        }
        if self.explaining.as_ref() != Some(&query.query) {
            self.explaining = Some(query.query.clone());
            self.wanted.push(Effect::Golden(GoldenPaneRequest::Explain(query.clone())));
        }
        None
    }

    pub fn take_explanation(&mut self, query: &GoldenQuery, answer: &Result<Arc<GoldenExplanation>, Error>) {
        let answer = answer.clone().map_err(|error| error.message);
        self.explanations.insert(query.query.clone(), answer);
    }

    /// Discards the explanations: they are those of another measurement.
    pub fn forget(&mut self) {
        self.explanations.clear();
        self.explaining = None;
    }

    pub fn set_tab(&mut self, tab: Tab) {
        (self.tab, self.scroll.offset, self.scroll.cursor) = (tab, 0, 0);
    }

    /// Returns the tab that is some steps further.
    pub fn tab_after(&self, steps: usize) -> Tab {
        let at = TABS.iter().position(|tab| *tab == self.tab).unwrap_or(0);
        TABS[(at + steps) % TABS.len()]
    }

    /// Moves the cursor of the tab of skills, or scrolls another tab.
    pub fn move_by(&mut self, by: isize, skills: usize) {
        if self.tab == Tab::Skills {
            self.scroll.by(by, skills);
        } else {
            // Drawing clamps the offset.
            self.scroll.offset = self.scroll.offset.saturating_add_signed(by).min(100_000);
        }
    }
}
