//! The list of measured queries: its rows, the filter and the cursor.

use std::sync::Arc;

use ratatui::layout::{Position, Rect};

use super::rows::{self, Row, rows};
use crate::field::Field;
use crate::golden_requests::GoldenMeasurement;
use crate::widgets::Scroll;
use skills_api::{GoldenResult, GoldenSource};

#[derive(Default)]
pub(super) struct QueryList {
    pub measured: Option<Arc<GoldenMeasurement>>,
    pub rows: Vec<Row>,
    pub scroll: Scroll,
    /// Whether the window follows the cursor.
    pub is_followed: bool,
    pub filter: Field,
    /// Areas of the last frame.
    pub area: Rect,
    pub filter_area: Rect,
    /// Rows of queries with their index in the list.
    pub visible: Vec<(Rect, usize)>,
}

impl QueryList {
    /// Forgets the areas of the last frame.
    pub fn start_frame(&mut self) {
        (self.area, self.filter_area) = (Rect::ZERO, Rect::ZERO);
        self.visible.clear();
    }

    /// Rebuilds the rows; the cursor stays on its query.
    pub fn set_rows(&mut self) {
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
    pub fn result(&self) -> Option<&GoldenResult> {
        let Some(Row::Query(at)) = self.rows.get(self.scroll.cursor) else { return None };
        self.measured.as_ref()?.report.results.get(*at)
    }

    /// Returns the file with the query under the cursor, or why it cannot be changed from here.
    pub fn file_of_query(&self) -> Result<&GoldenSource, String> {
        let none = || "no query selected".to_owned();
        let (measured, result) = (self.measured.as_ref().ok_or_else(none)?, self.result().ok_or_else(none)?);
        let source = result.source.and_then(|at| measured.report.sources.get(at));
        match source {
            Some(source) if measured.is_remote => {
                Err(format!("the query is in a file on the service's machine: `{}`", source.file.display()))
            }
            Some(source) if source.is_editable => Ok(source),
            Some(source) => {
                let is_shipped = source.file.ends_with("golden.yaml");
                let why = if is_shipped {
                    "queries of shipped skills are read-only"
                } else {
                    "only queries of a golden.yaml are changed here"
                };
                Err(format!("{why}: `{}`", source.file.display()))
            }
            None => Err("this query is in your own golden.yaml; edit it with skills golden".to_owned()),
        }
    }

    /// Moves the cursor to a row; returns whether it is another one.
    pub fn select(&mut self, row: usize) -> bool {
        let is_other = row != self.scroll.cursor;
        (self.scroll.cursor, self.is_followed) = (row, true);
        is_other
    }

    /// Moves the cursor by a number of queries; returns whether it is on another one.
    pub fn move_by(&mut self, by: isize) -> bool {
        self.select(rows::moved(&self.rows, self.scroll.cursor, by))
    }

    pub fn row_at(&self, at: Position) -> Option<usize> {
        self.visible.iter().find(|(area, _)| area.contains(at)).map(|(_, row)| *row)
    }

    pub fn roll(&mut self, by: isize) {
        self.is_followed = false;
        self.scroll.roll(by, self.rows.len());
    }
}
