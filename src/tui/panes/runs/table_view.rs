//! Draws the list as a table over the full width: column heads, facets, and a row for each run.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::list::tail;
use super::list_view::state_sign;
use super::run_list::RunList;
use super::view::spinner;
use crate::action::{Action, Context};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::format::count;
use crate::widgets::painter::Painter;
use crate::widgets::scroll::rows_above_note;
use crate::widgets::text_width::{cells, cut_end, cut_middle, shown};
use skills_api::{Deadline, distinguishing_texts, run_cell};
use skills_config::{RunColumn, RunSettings, RunSort};
use skills_model::RunState;
use skills_store::{RunRecord, TermEffect, with_term};

/// A column with its first cell and width.
struct Column {
    name: RunColumn,
    x: u16,
    width: u16,
}

/// Minimum width of the column of errors, of `approved, 1 of 2` there, and of titles while there are columns to drop.
const MIN_ERROR: u16 = 12;
const MIN_NOTE: u16 = 16;
const MIN_TITLE: u16 = 26;

/// What is shown in the window of the list.
struct Table {
    window: Rect,
    /// The runs with their places in the list; a title ends with what distinguishes its run.
    records: Vec<(usize, RunRecord)>,
    /// For each record, what distinguishes it from others with its title; empty for a unique title.
    distinctions: Vec<String>,
    columns: Vec<Column>,
    now_ms: i64,
}

/// Draws facets, column heads and rows.
pub(super) fn draw_table(list: &mut RunList, focused: bool, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
    let mut y = area.y;
    if area.height >= 10 {
        y += draw_facets(list, Rect { y, height: 1, ..area }, buf, cx);
    }
    let window = Rect { y: y + 1, height: area.bottom().saturating_sub(y + 1), ..area };
    let table = visible_part(list, window, cx.clock_ms);
    let mut painter = Painter::new(buf, cx);
    draw_heads(list, &table, y, &mut painter);
    if list.rows.is_empty() {
        let text = painter.with_keys(&list.filter.no_matches(), &[Context::Runs]);
        painter.put(window.x + 3, window.y, &text, Role::Muted, window.width.saturating_sub(3));
    }
    draw_rows(list, &table, focused, spinner(cx), &mut painter);
    let below = list.rows.len().saturating_sub(list.scroll.offset + list.scroll.height);
    if below > 0 {
        // Further matches that are not loaded are not counted.
        let more = if list.runs.feeds.has_further_matches() { "+" } else { "" };
        let note = format!(" {}{more} more {} ", count(below), painter.glyphs.down);
        painter.right(
            window.right().saturating_sub(1),
            window.bottom().saturating_sub(1),
            &note,
            Role::Muted,
        );
    }
}

/// Scrolls the list to fit the window, and returns what is visible there.
fn visible_part(list: &mut RunList, window: Rect, now_ms: i64) -> Table {
    list.drawn.list = window;
    let height = rows_above_note(list.rows.len(), window.height);
    if list.follow {
        list.scroll.follow(list.rows.len(), height);
    }
    list.scroll.height = height;
    list.scroll.offset = list.scroll.offset.min(list.rows.len().saturating_sub(height));
    let mut records: Vec<(usize, RunRecord)> = (list.scroll.offset..list.rows.len())
        .take(height)
        .filter_map(|index| Some((index, list.runs.known.get(list.rows[index].run()?)?.clone())))
        .collect();
    let distinctions = distinguishing_texts(&records.iter().map(|(_, run)| run).collect::<Vec<_>>(), "  ");
    for ((_, run), distinction) in records.iter_mut().zip(&distinctions).filter(|row| !row.1.is_empty()) {
        run.options.title = Some(format!("{}  {distinction}", run.title_or_skill()));
    }
    let columns = columns(&list.settings, window, &records, now_ms);
    Table { window, records, distinctions, columns, now_ms }
}

/// Draws the heads of the columns, with the direction of the one that is sorted by.
fn draw_heads(list: &mut RunList, table: &Table, y: u16, painter: &mut Painter<'_>) {
    let all_wait = all_wait(&table.records);
    for column in &table.columns {
        let sign = match list.sort.filter(|sort| sort.column == column.name) {
            Some(RunSort { descending: true, .. }) => painter.glyphs.down,
            Some(RunSort { descending: false, .. }) => painter.glyphs.up,
            None => "",
        };
        let name = match column.name {
            RunColumn::State => String::new(),
            RunColumn::Progress => sign.to_owned(),
            RunColumn::Error if all_wait => format!("status{}{sign}", if sign.is_empty() { "" } else { " " }),
            name => format!("{name}{}{sign}", if sign.is_empty() { "" } else { " " }),
        };
        let role = if sign.is_empty() { Role::Muted } else { Role::Text };
        if column.name.is_numeric() {
            painter.right(column.x + column.width, y, &name, role);
        } else {
            painter.put(column.x, y, &name, role, column.width);
        }
        list.drawn.columns.push((Rect::new(column.x, y, column.width, 1), column.name));
    }
}

fn draw_rows(
    list: &mut RunList,
    table: &Table,
    focused: bool,
    turning: &'static str,
    painter: &mut Painter<'_>,
) {
    let has_age = table.columns.iter().any(|column| column.name == RunColumn::Age);
    let rows = table.records.iter().zip(&table.distinctions).zip(table.window.y..);
    for (((index, run), distinction), y) in rows {
        let row = Rect { y, height: 1, ..table.window };
        list.drawn.rows.push((row, *index));
        list.drawn.since.push(run.since_ms);
        list.drawn.since.extend(has_age.then_some(run.created_ms));
        let at_cursor = *index == list.scroll.cursor;
        let marked = list.marked.contains_key(&run.id);
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
        for column in &table.columns {
            if column.name == RunColumn::State {
                let (sign, role) = state_sign(run, painter.glyphs, turning);
                painter.put(column.x, y, sign, role, 1);
                continue;
            }
            let (text, role) = cell(&list.settings, run, column.name, at_cursor, table.now_ms);
            let cut =
                if column.name == RunColumn::Title && !distinction.is_empty() { cut_middle } else { cut_end };
            let text = cut(&text, column.width, painter.glyphs.ellipsis).into_owned();
            if column.name.is_numeric() {
                painter.right(column.x + column.width, y, &text, role);
            } else {
                painter.put(column.x, y, &text, role, column.width);
            }
        }
    }
}

/// Draws one line with the most informative field and its values. Returns the number of rows.
fn draw_facets(list: &mut RunList, row: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) -> u16 {
    let facets = list.facets();
    let more = if facets.truncated { "+" } else { "" };
    let found = &facets.facets;
    if found.is_empty() {
        return 0;
    }
    let mut painter = Painter::new(buf, cx);
    // A value that the filter contains is marked; a click on it removes it.
    let is_selected = |term: &str| with_term(list.filter.field.text(), term).1 == TermEffect::Removes;
    let has_selected = found.iter().flat_map(|facet| &facet.values).any(|value| is_selected(&value.term));
    let hint = if has_selected { "add or remove" } else { "add to the filter" };
    // Two blank cells separate the values from the hint.
    let end = row.right().saturating_sub(cells(hint) + 5);
    let mut x = row.x + 5;
    'all: for facet in found {
        if x + cells(&facet.key) + 10 > end {
            break;
        }
        let mut last = painter.put(x, row.y, &shown(&facet.key), Role::Muted, end.saturating_sub(x));
        x = last + 2;
        for value in &facet.values {
            let number = format!("{}{more}", count(usize::try_from(value.runs).unwrap_or(0)));
            let sign =
                if is_selected(&value.term) { format!("{} ", painter.glyphs.set) } else { String::new() };
            let text = sign + &shown(&value.value);
            let width = cells(&text) + 1 + cells(&number);
            if x + width > end {
                // Others of its values have no space.
                let ellipsis = painter.glyphs.ellipsis;
                let at = (last + 1).min((end + 1).saturating_sub(cells(ellipsis))).max(last);
                painter.put(at, row.y, ellipsis, Role::Muted, cells(ellipsis));
                break 'all;
            }
            let start = x;
            x = painter.put(x, row.y, &text, Role::Text, width) + 1;
            last = painter.put(x, row.y, &number, Role::Strong, width);
            list.drawn.terms.push((Rect::new(start, row.y, last - start, 1), value.term.clone()));
            x = last + 3;
        }
    }
    let start = painter.right(row.right().saturating_sub(1), row.y, hint, Role::Muted);
    let key = painter.key(Action::AddTerm, &[Context::Runs]).unwrap_or_default();
    painter.right(start.saturating_sub(1), row.y, &key, Role::Key);
    1
}

/// Returns whether there are runs and all of them wait: the column of errors has their status.
fn all_wait(records: &[(usize, RunRecord)]) -> bool {
    !records.is_empty() && records.iter().all(|(_, run)| run.state.is_waiting())
}

/// Returns the configured columns that fit: those that distinguish runs are kept longest.
fn columns(settings: &RunSettings, area: Rect, records: &[(usize, RunRecord)], now_ms: i64) -> Vec<Column> {
    let mut names = settings.columns.clone();
    // Runs that wait have a deadline and no error.
    if !names.contains(&RunColumn::Deadline)
        && all_wait(records)
        && let Some(at) = names.iter().position(|name| *name == RunColumn::Error)
    {
        if records.iter().all(|(_, run)| run.wait_notes().next().is_none()) {
            names[at] = RunColumn::Deadline;
        } else if records.iter().any(|(_, run)| run.expires_ms.is_some()) {
            names.insert(at, RunColumn::Deadline);
        }
    }
    // Who a run is assigned to matters only where one is.
    let is_assigned = |run: &RunRecord| run.options.assigned.is_some() && !run.state.is_terminal();
    if !names.contains(&RunColumn::Assigned) && records.iter().any(|(_, run)| is_assigned(run)) {
        let at = names.iter().position(|name| matches!(name, RunColumn::By | RunColumn::Since));
        names.insert(at.unwrap_or(names.len()), RunColumn::Assigned);
    }
    let wanted = |column: RunColumn| -> u16 {
        let head = match column {
            RunColumn::Progress => 3,
            column => cells(column.name()) + 2,
        };
        let most = match column {
            RunColumn::State => return 1,
            RunColumn::Title => 40,
            RunColumn::Error => 36,
            RunColumn::Skill | RunColumn::Worker => 24,
            RunColumn::Step | RunColumn::By | RunColumn::Assigned | RunColumn::Deadline => 16,
            RunColumn::Id | RunColumn::Progress | RunColumn::Since | RunColumn::Age => 12,
        };
        let longest =
            records.iter().map(|(_, run)| cells(&cell(settings, run, column, false, now_ms).0)).max();
        longest.unwrap_or(0).max(head).min(most)
    };
    let available = area.width.saturating_sub(6);
    let mut cut = (wanted(RunColumn::Title), wanted(RunColumn::Error));
    let width = |name: RunColumn, cut: (u16, u16)| match name {
        RunColumn::Title => cut.0,
        RunColumn::Error => cut.1,
        name => wanted(name),
    };
    let sum = |names: &[RunColumn], cut: (u16, u16)| {
        names.iter().map(|name| width(*name, cut) + 2).sum::<u16>().saturating_sub(2)
    };
    // Columns that are also in the details, or in the title, are dropped first.
    for expendable in [
        RunColumn::Skill,
        RunColumn::By,
        RunColumn::Progress,
        RunColumn::Worker,
        RunColumn::Step,
        RunColumn::Assigned,
        RunColumn::Id,
        RunColumn::Error,
    ] {
        if expendable == RunColumn::Worker {
            // A truncated error is more informative than none.
            let excess = sum(&names, cut).saturating_sub(available);
            let has_notes = records.iter().any(|(_, run)| run.wait_notes().next().is_some());
            let least = if has_notes { MIN_NOTE } else { MIN_ERROR };
            cut.1 = cut.1.min(least.max(cut.1.saturating_sub(excess)));
        }
        if expendable == RunColumn::Assigned {
            let excess = sum(&names, cut).saturating_sub(available);
            cut.0 = cut.0.min(MIN_TITLE.max(cut.0.saturating_sub(excess)));
        }
        if sum(&names, cut) > available {
            names.retain(|name| *name != expendable);
        }
    }
    if names.contains(&RunColumn::Error) {
        cut.1 = wanted(RunColumn::Error).min(cut.1 + available.saturating_sub(sum(&names, cut)));
    }
    cut.0 = wanted(RunColumn::Title).min(cut.0 + available.saturating_sub(sum(&names, cut)));
    let spare = available.saturating_sub(sum(&names, cut));
    let mut x = area.x + 4;
    let mut columns = Vec::new();
    let last = names.len().saturating_sub(1);
    for (at, name) in names.into_iter().enumerate() {
        let mut width = width(name, cut);
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
fn cell(
    settings: &RunSettings,
    run: &RunRecord,
    column: RunColumn,
    at_cursor: bool,
    now_ms: i64,
) -> (String, Role) {
    let text = match column {
        RunColumn::Id => tail(&run.id),
        column => shown(&run_cell(column, run, now_ms)),
    };
    let role = match column {
        RunColumn::Title if at_cursor => Role::Strong,
        RunColumn::Error if run.state == RunState::WaitingForHuman => Role::Waiting,
        RunColumn::Deadline => deadline_role(settings, Deadline::of(run.expires_ms, now_ms)),
        RunColumn::Title | RunColumn::Error | RunColumn::Step | RunColumn::Since | RunColumn::Age => {
            Role::Text
        }
        RunColumn::State
        | RunColumn::Skill
        | RunColumn::Id
        | RunColumn::Progress
        | RunColumn::By
        | RunColumn::Assigned
        | RunColumn::Worker => Role::Muted,
    };
    (text, role)
}

/// Returns the role of a deadline: warning and danger while little time is left.
pub(super) fn deadline_role(settings: &RunSettings, deadline: Deadline) -> Role {
    match deadline {
        Deadline::None => Role::Muted,
        _ if deadline.is_within(settings.danger_before) => Role::Danger,
        _ if deadline.is_within(settings.warn_before) => Role::Warning,
        _ => Role::Text,
    }
}
