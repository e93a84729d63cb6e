//! Draws the list: queries in columns, groups with their titles, the filter. Only visible rows are built.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Focus;
use super::query_list::QueryList;
use super::rows::Row;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, Title, cells, count, plain_score, shown, signed};
use skills_api::{GoldenResult, GoldenState};

/// Columns of a row: first cell and width; 0 if there is no space.
struct Columns {
    query: (u16, u16),
    expects: (u16, u16),
    rank_end: u16,
    first: (u16, u16),
    by_end: u16,
}

impl Columns {
    /// Computes the columns: names get what they need, up to a quarter each; the query gets the rest.
    fn of(area: Rect, results: &[GoldenResult]) -> Self {
        let by_end = area.right().saturating_sub(1);
        let start = area.x + 5;
        let most = (by_end.saturating_sub(start) / 4).max(9);
        let expects = results.iter().map(|result| cells(&result.query.expectation())).max().unwrap_or(0);
        let failing = results.iter().filter(|result| result.state.is_failing());
        let winners = failing.filter_map(|result| result.first.as_ref());
        let first = winners.map(|id| cells(id.as_str())).max().unwrap_or(0);
        let (expects_width, first_width) = (expects.clamp(8, most), first.clamp(13.min(most), most));
        let first = by_end.saturating_sub(7 + first_width);
        let rank_end = first.saturating_sub(2);
        let expects = rank_end.saturating_sub(5 + expects_width);
        let query = expects.saturating_sub(start + 2);
        Self {
            query: (start, query),
            expects: (expects, expects_width),
            rank_end,
            first: (first, first_width),
            by_end,
        }
    }
}

pub(super) fn draw(list: &mut QueryList, focus: Focus, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
    let is_focused = cx.focused && focus != Focus::Detail;
    let Some(measured) = list.measured.clone() else { return };
    let results = &measured.report.results;
    let lost = results.iter().filter(|result| result.state.is_failing()).count();
    let note = format!("{} failing {} failing first", count(lost), cx.glyphs.dot);
    Title::of("Queries", is_focused).note(note).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    let mut y = area.y + 1;
    if focus == Focus::Filter || !list.filter.is_empty() {
        list.filter_area = Rect { y, height: 1, ..area };
        let found = list.rows.iter().filter(|row| matches!(row, Row::Query(_))).count();
        let note = format!("{} found", count(found));
        list.filter.draw_filter(list.filter_area, (3, 1), &note, focus == Focus::Filter, buf, cx);
        y += 1;
    }
    let columns = Columns::of(area, results);
    let mut painter = Painter::new(buf, cx);
    header(&columns, y, &mut painter);
    y += 1;
    let window = Rect { y, height: area.bottom().saturating_sub(y), ..area };
    list.area = area;
    let height = usize::from(window.height);
    let is_heading = |at: usize| matches!(list.rows.get(at), Some(Row::Heading(_)));
    list.scroll.fit(list.rows.len(), height, list.is_followed, is_heading);
    if list.rows.is_empty() {
        painter.put(
            window.x + 5,
            window.y,
            "no queries match the filter",
            Role::Muted,
            window.width.saturating_sub(6),
        );
    }
    for place in 0..height.min(list.rows.len().saturating_sub(list.scroll.offset)) {
        let index = list.scroll.offset + place;
        let row = Rect { y: window.y + place as u16, height: 1, ..window };
        match list.rows[index] {
            Row::Blank => {}
            Row::Heading(state) => {
                painter.put(row.x + 3, row.y, group_title(state), Role::Muted, row.width.saturating_sub(4));
            }
            Row::Query(at) => {
                let Some(result) = results.get(at) else { continue };
                list.visible.push((row, index));
                let is_selected = index == list.scroll.cursor;
                if is_selected {
                    painter.select_at(row.x + 1, row, is_focused);
                }
                let passed_before = measured.baselines.last().and_then(|baseline| {
                    let query = &result.query.query;
                    let passed = baseline.passed.contains_key(query);
                    (passed || baseline.failed.contains_key(query)).then_some(passed)
                });
                draw_query(result, passed_before, is_selected, row.y, &columns, &mut painter);
            }
        }
    }
}

fn group_title(state: GoldenState) -> &'static str {
    match state {
        GoldenState::Lost => "missed",
        GoldenState::FalseTrigger => "false triggers: a skill fits but should not",
        GoldenState::Won => "passed",
        GoldenState::Rejected => "rejected, as expected",
    }
}

fn header(columns: &Columns, y: u16, painter: &mut Painter<'_>) {
    let mut put = |(x, width): (u16, u16), text: &str| {
        painter.put_cut(x, y, text, Role::Muted, width);
    };
    put(columns.query, "query");
    put(columns.expects, "expects");
    put(columns.first, "ranked first");
    painter.right(columns.rank_end, y, "rank", Role::Muted);
    painter.right(columns.by_end, y, "lead", Role::Muted);
}

fn draw_query(
    result: &GoldenResult,
    passed_before: Option<bool>,
    is_selected: bool,
    y: u16,
    columns: &Columns,
    painter: &mut Painter<'_>,
) {
    let glyphs = painter.glyphs;
    let is_failing = result.state.is_failing();
    let (sign, role) = match result.state {
        GoldenState::Lost => (glyphs.bad, Role::Danger),
        GoldenState::FalseTrigger => (glyphs.warn, Role::Danger),
        GoldenState::Won | GoldenState::Rejected => (glyphs.ok, Role::Success),
    };
    painter.put(columns.query.0 - 2, y, sign, role, 1);
    // Mark queries that changed since the baseline.
    match passed_before {
        Some(true) if is_failing => drop(painter.put(columns.query.0 - 3, y, glyphs.down, Role::Danger, 1)),
        Some(false) if !is_failing => drop(painter.put(columns.query.0 - 3, y, glyphs.up, Role::Success, 1)),
        _ => {}
    }
    let text = match (is_selected, is_failing) {
        (true, _) => Role::Strong,
        (false, true) => Role::Text,
        (false, false) => Role::Muted,
    };
    let other = if is_failing { Role::Text } else { Role::Muted };
    let (x, width) = columns.query;
    painter.put_cut(x, y, &shown(&result.query.query), text, width);
    let (x, width) = columns.expects;
    let expects = shown(&result.query.expectation());
    let role = if result.query.expect.is_empty() { Role::Muted } else { other };
    painter.put_cut(x, y, &expects, role, width);
    let rank = match result.rank {
        Some(rank) => count(rank),
        None => glyphs.minus.to_owned(),
    };
    painter.right(columns.rank_end, y, &rank, other);
    if is_failing {
        let (x, width) = columns.first;
        let first = result.first.as_ref().map_or_else(|| "no result".to_owned(), |id| shown(id.as_str()));
        painter.put_cut(x, y, &first, Role::Text, width);
    }
    if let Some(by) = result.by {
        // The lead of the expected skill; of a false trigger, how far it is above the threshold.
        let by = match result.state {
            GoldenState::Lost => signed(-by, glyphs),
            GoldenState::FalseTrigger => plain_score(by, glyphs),
            GoldenState::Won | GoldenState::Rejected => signed(by, glyphs),
        };
        painter.right(columns.by_end, y, &by, other);
    }
}
