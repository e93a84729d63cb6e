//! The list of proposals by state: its rows, the filter and the cursor.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::{GROUPS, Row};
use crate::field::Field;
use crate::widgets::Scroll;
use skills_api::{ProposalList, ProposalSummary};

#[derive(Default)]
pub(super) struct SummaryList {
    pub list: Option<Arc<ProposalList>>,
    pub rows: Vec<Row>,
    pub selected: Option<String>,
    pub scroll: Scroll,
    pub filter: Field,
    /// Areas of the last frame.
    pub filter_area: Rect,
    /// The row of the rule above the versions.
    pub versions_rule: Option<u16>,
    /// Visible rows with their index among all rows.
    pub visible: Vec<(Rect, usize)>,
}

impl SummaryList {
    /// Forgets the areas of the last frame.
    pub fn start_frame(&mut self) {
        (self.filter_area, self.versions_rule) = (Rect::ZERO, None);
        self.visible.clear();
    }

    pub fn summaries(&self) -> &[ProposalSummary] {
        self.list.as_ref().map_or(&[], |list| &list.proposals)
    }

    pub fn summary(&self) -> Option<&ProposalSummary> {
        let id = self.selected.as_ref()?;
        self.summaries().iter().find(|one| one.proposal_id == *id)
    }

    /// Rebuilds the rows; the cursor stays on its proposal. Returns whether it is on another one.
    pub fn rebuild(&mut self) -> bool {
        let requested = self.filter.text().trim().to_lowercase();
        let matches = |one: &ProposalSummary| {
            let text = format!("{} {} {} {}", one.skill_id, one.title, one.proposed_by, one.state);
            requested.is_empty() || text.to_lowercase().contains(&requested)
        };
        let mut rows = Vec::new();
        for state in GROUPS {
            let of_state =
                self.summaries().iter().enumerate().filter(|(_, one)| one.state == state && matches(one));
            let of_state: Vec<Row> = of_state.map(|(at, _)| Row::Proposal(at)).collect();
            if of_state.is_empty() {
                continue;
            }
            if !rows.is_empty() {
                rows.push(Row::Blank);
            }
            rows.push(Row::Group(state));
            rows.extend(of_state);
        }
        self.rows = rows;
        let at = self
            .rows
            .iter()
            .position(|row| self.id_of(*row) == self.selected.as_deref() && self.selected.is_some());
        if let Some(at) = at.or_else(|| self.rows.iter().position(|row| matches!(row, Row::Proposal(_)))) {
            return self.select(at);
        }
        self.selected = None;
        false
    }

    fn id_of(&self, row: Row) -> Option<&str> {
        match row {
            Row::Proposal(at) => self.summaries().get(at).map(|one| one.proposal_id.as_str()),
            Row::Blank | Row::Group(_) => None,
        }
    }

    /// Selects a row; returns whether it has another proposal.
    pub fn select(&mut self, at: usize) -> bool {
        let id = self.rows.get(at).and_then(|row| self.id_of(*row)).map(str::to_owned);
        let is_other = id != self.selected;
        (self.scroll.cursor, self.selected) = (at, id);
        is_other
    }

    /// Moves the cursor by a number of proposals; returns whether it is on another one, or `None` without a cursor.
    pub fn move_by(&mut self, by: isize) -> Option<bool> {
        let items: Vec<usize> =
            (0..self.rows.len()).filter(|at| matches!(self.rows[*at], Row::Proposal(_))).collect();
        let here = items.iter().position(|at| *at == self.scroll.cursor)?;
        let next = here.saturating_add_signed(by).min(items.len() - 1);
        Some(self.select(items[next]))
    }
}
