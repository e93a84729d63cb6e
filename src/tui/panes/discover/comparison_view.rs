//! Draws the third column: the selected skill compared with the best other result, and other close results.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::ask::PendingRequests;
use super::comparison::{compare, nearest};
use super::measurements::Measurements;
use super::result_list::ResultList;
use super::why_view::{draw_description, draw_differences};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::bars::{CellRange, stacked};
use crate::widgets::{Painter, Seg, Title, cells, plain_score, shown, signed};
use skills_discovery::Hit;

/// Minimum width of a score with its bar and gaps, in cells.
const MIN_SCORED_WIDTH: u16 = 16;

pub(super) fn draw(
    list: &ResultList,
    asking: &PendingRequests,
    measured: &mut Measurements,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) {
    let (Some(shown_answer), Some(hit)) = (asking.shown(), list.hit()) else { return };
    let answer = &shown_answer.answer;
    let Some(other) = nearest(answer, hit) else { return };
    let mut painter = Painter::new(buf, cx);
    let mut title = Title::of("Against ", false).note("other result");
    title.name.segs.push(Seg::new(shown(other.skill_id.as_str()), Role::Strong));
    title.draw(&mut painter, area.x, area.y, area.width);

    let column = Rect { x: area.x + 2, width: area.width.saturating_sub(3), ..area };
    let best = answer.results.iter().map(|h| h.score).fold(3.5, f64::max);
    let mut y = area.y + 2;
    let longest = answer.results.iter().take(10).chain([hit]).map(|h| cells(&shown(h.skill_id.as_str())));
    let least = column.width * 3 / 10;
    let name =
        longest.max().unwrap_or(0).clamp(least, column.width.saturating_sub(MIN_SCORED_WIDTH).max(least));
    draw_scored(hit, Role::Strong, column, y, (best, name, true), &mut painter);
    draw_scored(other, Role::Text, column, y + 2, (best, name, true), &mut painter);
    y += 4;

    painter.put(column.x, y, "difference in score", Role::Muted, column.width);
    let available = usize::from(area.bottom().saturating_sub(y + 10)).clamp(3, 9);
    let comparison = compare(hit, other, &answer.words, available);
    y += 1 + draw_differences(&comparison, column, y + 1, &mut painter);
    painter.run(column.x, y, painter.glyphs.rule, column.width, Role::Rule);
    painter.put(column.x, y + 1, "lead", Role::Muted, column.width);
    let end = column.x + lead_column(&comparison, column.width);
    painter.right(end, y + 1, &signed(comparison.lead, painter.glyphs), Role::Strong);
    y += 3;

    y += draw_description(asking, measured, other, 8, column, y, &mut painter) + 1;
    let mut painter = Painter::new(buf, cx);
    let near: Vec<&Hit> = answer
        .results
        .iter()
        .filter(|h| h.skill_id != hit.skill_id && h.skill_id != other.skill_id)
        .take(usize::from(area.bottom().saturating_sub(y + 1)).min(8))
        .collect();
    if !near.is_empty() {
        painter.put(column.x, y, "other results", Role::Strong, column.width);
        for (row, hit) in near.into_iter().enumerate() {
            draw_scored(hit, Role::Text, column, y + 1 + row as u16, (best, name, false), &mut painter);
        }
    }
}

/// Returns the column at which the differences end, so that the lead is aligned below them.
fn lead_column(comparison: &super::comparison::Comparison<'_>, width: u16) -> u16 {
    let longest = comparison.rows.iter().map(|r| crate::widgets::text_width::cells(&r.label)).max();
    longest.unwrap_or(0).clamp(9, 16).min(width / 4) + 7
}

/// Draws a name with its score and bar. The name gets its full width as long as a bar fits: it is truncated last.
pub(crate) fn draw_scored(
    hit: &Hit,
    role: Role,
    column: Rect,
    y: u16,
    (best, name, air): (f64, u16, bool),
    painter: &mut Painter<'_>,
) {
    if y >= column.bottom() {
        return;
    }
    let text = shown(hit.skill_id.as_str());
    painter.put_cut(column.x, y, &text, role, name);
    let end = column.x + name + if best >= 9.995 { 6 } else { 5 };
    painter.right(end, y, &plain_score(hit.score, painter.glyphs), role);
    let width = column.right().saturating_sub(end + 1);
    stacked(
        painter,
        CellRange { x: end + 1, y, width, scale: best, air, mark: None },
        &hit.breakdown.signals,
    );
}
