//! Draws the list as a table over the full width: column heads, facets, and a row for each run.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::list::{Row, tail};
use super::list_view::{NO_MATCHES, state_sign};
use super::view::spinner;
use super::{Focus, Runs};
use crate::pane::{Draw, Effect};
use crate::theme::Role;
use crate::widgets::format::count;
use crate::widgets::painter::Painter;
use crate::widgets::relative_time::age;
use crate::widgets::text_width::{cells, cut_end, shown};
use skills_model::RunState;
use skills_store::{RunRecord, WorkerId};

/// A column with its first cell and width.
struct Column {
    name: String,
    x: u16,
    width: u16,
}

/// Minimum width of the column of errors.
const MIN_ERROR: u16 = 12;

impl Runs {
    /// Returns whether runs are shown as a table: a filter or a view is active.
    pub(super) fn is_table(&self) -> bool {
        !self.filter.field.text().trim().is_empty()
    }

    /// Draws facets, column heads and rows.
    pub(super) fn draw_table(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        let focused = cx.focused && self.focus != Focus::Detail;
        let mut y = area.y;
        if area.height >= 10 {
            y += self.draw_facets(Rect { y, height: 1, ..area }, buf, cx);
        }
        let head = Rect { y, height: 1, ..area };
        let list = Rect { y: y + 1, height: area.bottom().saturating_sub(y + 1), ..area };
        self.drawn.list = list;
        let height = usize::from(list.height);
        if self.follow {
            self.scroll.follow(self.rows.len(), height);
        }
        self.scroll.height = height;
        self.scroll.offset = self.scroll.offset.min(self.rows.len().saturating_sub(height));
        let now_ms = cx.clock_ms;
        let offset = self.scroll.offset;
        let records: Vec<(usize, RunRecord)> = (offset..self.rows.len())
            .take(height)
            .filter_map(|index| Some((index, self.known.get(self.rows[index].run()?)?.clone())))
            .collect();
        let columns = self.columns(list, &records, now_ms);
        let mut painter = Painter::new(buf, cx);
        for column in &columns {
            let sorted =
                self.sort.as_deref().map(|sort| (sort.trim_start_matches('-'), sort.starts_with('-')));
            let sign = match sorted.filter(|(name, _)| *name == column.name) {
                Some((_, true)) => painter.glyphs.down,
                Some((_, false)) => painter.glyphs.up,
                None => "",
            };
            let name = match column.name.as_str() {
                "state" => String::new(),
                "progress" => sign.to_owned(),
                // The former name of the column of assignees.
                "approver" => format!("assigned{}{sign}", if sign.is_empty() { "" } else { " " }),
                name => format!("{name}{}{sign}", if sign.is_empty() { "" } else { " " }),
            };
            let role = if sign.is_empty() { Role::Muted } else { Role::Text };
            if is_right(&column.name) {
                painter.right(column.x + column.width, head.y, &name, role);
            } else {
                painter.put(column.x, head.y, &name, role, column.width);
            }
            self.drawn.columns.push((Rect::new(column.x, head.y, column.width, 1), column.name.clone()));
        }
        if self.rows.is_empty() {
            painter.put(list.x + 3, list.y, NO_MATCHES, Role::Muted, list.width.saturating_sub(3));
        }
        let has_age = columns.iter().any(|column| column.name == "age");
        let turning = spinner(cx);
        for ((index, run), y) in records.iter().zip(list.y..) {
            let row = Rect { y, height: 1, ..list };
            self.drawn.rows.push((row, *index));
            self.drawn.since.push(run.since_ms);
            self.drawn.since.extend(has_age.then_some(run.created_ms));
            let at_cursor = *index == self.scroll.cursor;
            let marked = self.marked.contains_key(&run.id);
            if at_cursor {
                painter.band(row, if focused { Role::Selection } else { Role::SelectionWeak });
                let role = if focused { Role::Gutter } else { Role::Muted };
                painter.put(row.x + 1, y, painter.glyphs.gutter, role, 1);
            } else if marked {
                painter.band(row, Role::SelectionWeak);
            }
            if marked {
                painter.put(row.x + 2, y, painter.glyphs.set, Role::Focus, 1);
            }
            for column in &columns {
                if column.name == "state" {
                    let (sign, role) = state_sign(run, &painter, turning);
                    painter.put(column.x, y, sign, role, 1);
                    continue;
                }
                let (text, role) = self.cell(run, &column.name, at_cursor, now_ms);
                let text = cut_end(&text, column.width, painter.glyphs.ellipsis).into_owned();
                if is_right(&column.name) {
                    painter.right(column.x + column.width, y, &text, role);
                } else {
                    painter.put(column.x, y, &text, role, column.width);
                }
            }
        }
        let below = self.rows.len().saturating_sub(offset + height);
        if below > 0 {
            let note = format!(" {} more {} ", count(below), painter.glyphs.down);
            painter.right(
                list.right().saturating_sub(1),
                list.bottom().saturating_sub(1),
                &note,
                Role::Muted,
            );
        }
    }

    /// Draws one line with the most informative field and its values. Returns the number of rows.
    fn draw_facets(&mut self, row: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) -> u16 {
        let list = self.facets();
        let more = if list.truncated { "+" } else { "" };
        let found = &list.facets;
        if found.is_empty() {
            return 0;
        }
        let mut painter = Painter::new(buf, cx);
        // Two blank cells separate the values from the hint.
        let end = row.right().saturating_sub(cells("+ add to the filter") + 3);
        let mut x = row.x + 5;
        'all: for facet in found {
            if x + cells(&facet.key) + 10 > end {
                break;
            }
            x = painter.put(x, row.y, &shown(&facet.key), Role::Muted, end.saturating_sub(x)) + 2;
            for value in &facet.values {
                let number = format!("{}{more}", count(usize::try_from(value.runs).unwrap_or(0)));
                let text = shown(&value.value);
                let width = cells(&text) + 1 + cells(&number);
                if x + width > end {
                    break 'all;
                }
                let start = x;
                x = painter.put(x, row.y, &text, Role::Text, width) + 1;
                x = painter.put(x, row.y, &number, Role::Strong, width);
                self.drawn.terms.push((Rect::new(start, row.y, x - start, 1), value.term.clone()));
                x += 3;
            }
        }
        let start = painter.right(row.right().saturating_sub(1), row.y, "add to the filter", Role::Muted);
        painter.right(start.saturating_sub(1), row.y, "+", Role::Key);
        1
    }

    /// Returns the configured columns that fit: those that distinguish runs are kept longest.
    fn columns(&self, area: Rect, records: &[(usize, RunRecord)], now_ms: i64) -> Vec<Column> {
        let mut names: Vec<String> = self.settings.columns.clone();
        // Runs that wait have a deadline and no error.
        let waits =
            |run: &RunRecord| matches!(run.state, RunState::WaitingForHuman | RunState::WaitingForSignal);
        let has_deadlines = names.iter().any(|name| name == "deadline");
        if !has_deadlines
            && !records.is_empty()
            && records.iter().all(|(_, run)| waits(run) && run.approval_progress().is_none())
            && let Some(at) = names.iter().position(|name| name == "error")
        {
            "deadline".clone_into(&mut names[at]);
        }
        let wanted = |name: &str| -> u16 {
            let head = match name {
                "progress" => 3,
                "approver" => cells("assigned") + 2,
                name => cells(name) + 2,
            };
            let most = match name {
                "state" => return 1,
                "title" => 40,
                "error" => 36,
                "skill" | "worker" => 24,
                "step" | "by" | "approver" | "assigned" | "deadline" => 16,
                _ => 12,
            };
            let longest = records.iter().map(|(_, run)| cells(&self.cell(run, name, false, now_ms).0)).max();
            longest.unwrap_or(0).max(head).min(most)
        };
        let available = area.width.saturating_sub(6);
        let mut error = wanted("error");
        let width = |name: &str, error: u16| if name == "error" { error } else { wanted(name) };
        let sum = |names: &[String], error: u16| {
            names.iter().map(|name| width(name, error) + 2).sum::<u16>().saturating_sub(2)
        };
        // Columns that are also in the details, or in the title, are dropped first.
        for expendable in ["skill", "by", "progress", "id", "worker", "approver", "assigned", "step", "error"]
        {
            if expendable == "id" {
                // An error cut to its beginning says more than none.
                error = error
                    .min(MIN_ERROR.max(error.saturating_sub(sum(&names, error).saturating_sub(available))));
            }
            if sum(&names, error) > available {
                names.retain(|name| name != expendable);
            }
        }
        if names.iter().any(|name| name == "error") {
            error = wanted("error").min(error + available.saturating_sub(sum(&names, error)));
        }
        let spare = available.saturating_sub(sum(&names, error));
        let mut x = area.x + 4;
        let mut columns = Vec::new();
        let last = names.len().saturating_sub(1);
        for (at, name) in names.into_iter().enumerate() {
            let mut width = width(&name, error);
            // The last column ends at the edge.
            if at == last {
                width += spare;
            }
            let width = width.min(area.right().saturating_sub(x + 1));
            columns.push(Column { name, x, width });
            x += width + 2;
        }
        columns
    }

    /// Returns text and role of a cell.
    fn cell(&self, run: &RunRecord, column: &str, at_cursor: bool, now_ms: i64) -> (String, Role) {
        let muted = |text: String| (text, Role::Muted);
        match column {
            "title" => (shown(run.title_or_skill()), if at_cursor { Role::Strong } else { Role::Text }),
            "skill" => muted(shown(&run.skill_id)),
            "id" => muted(tail(&run.id)),
            "progress" => muted(format!("{}/{}", run.progress.0, run.progress.1)),
            "step" => (run.step.as_deref().map(shown).unwrap_or_default(), Role::Text),
            "error" => match run.approval_progress() {
                Some(progress) => (progress, Role::Waiting),
                None => (run.failure().map(|why| shown(&why)).unwrap_or_default(), Role::Text),
            },
            "by" => muted(shown(&run.started_by)),
            "approver" | "assigned" => {
                muted(run.options.assigned.as_ref().map(|assigned| shown(&assigned.to)).unwrap_or_default())
            }
            "worker" => {
                let worker = run.lease.as_ref().and_then(|lease| lease.worker.as_ref());
                muted(worker.map(WorkerId::describe).map(|name| shown(&name)).unwrap_or_default())
            }
            // Only a wait has a deadline.
            "deadline" if !matches!(run.state, RunState::WaitingForHuman | RunState::WaitingForSignal) => {
                muted(String::new())
            }
            "deadline" => self.deadline(run.expires_ms, now_ms),
            "age" => (age(now_ms - run.created_ms), Role::Text),
            _ => (age(now_ms - run.since_ms), Role::Text),
        }
    }

    /// Returns the remaining time of a wait, in the role of its urgency.
    pub(super) fn deadline(&self, expires_ms: Option<i64>, now_ms: i64) -> (String, Role) {
        let Some(at) = expires_ms else { return ("no deadline".to_owned(), Role::Muted) };
        let left = at - now_ms;
        let ms = |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        let role = if left < ms(self.settings.danger_before) {
            Role::Danger
        } else if left < ms(self.settings.warn_before) {
            Role::Warning
        } else {
            Role::Text
        };
        let text = if left > 0 { format!("expires in {}", age(left)) } else { "expired".to_owned() };
        (text, role)
    }

    /// Sorts the table by a column, over all runs that match the filter.
    pub(super) fn sort_by(&mut self, sort: Option<String>) -> Vec<Effect> {
        self.sort = sort;
        self.build();
        self.sort.as_ref().and_then(|_| self.feeds.find_all()).into_iter().collect()
    }

    /// Sorts the rows of the table by its column.
    pub(super) fn sort_rows(&mut self) {
        let Some(sort) = self.sort.clone().filter(|_| self.is_table()) else { return };
        let column = sort.trim_start_matches('-').to_owned();
        let now_ms = self.drawn.clock_ms;
        let mut runs: Vec<&RunRecord> =
            self.rows.iter().filter_map(|row| self.known.get(row.run()?)).collect();
        match column.as_str() {
            "age" => runs.sort_by_key(|run| -run.created_ms),
            "since" => runs.sort_by_key(|run| -run.since_ms),
            "deadline" => runs.sort_by_key(|run| run.expires_ms.unwrap_or(i64::MAX)),
            "progress" => runs.sort_by_key(|run| run.progress),
            "state" => runs.sort_by_key(|run| state_order(run.state)),
            _ => runs.sort_by_cached_key(|run| self.cell(run, &column, false, now_ms).0),
        }
        if sort.starts_with('-') {
            runs.reverse();
        }
        self.rows = runs.into_iter().map(|run| Row::Run(run.id.clone())).collect();
    }
}

/// Returns the sort rank of a state: states that require a person come first.
fn state_order(state: RunState) -> u8 {
    match state {
        RunState::WaitingForHuman => 0,
        RunState::Failed => 1,
        RunState::WaitingForSignal => 2,
        RunState::Running | RunState::Replaying => 3,
        RunState::Pending => 4,
        RunState::Completed => 5,
        RunState::Canceled => 6,
    }
}

/// Returns whether a column is right-aligned, because its numbers are compared.
fn is_right(column: &str) -> bool {
    matches!(column, "since" | "age")
}
