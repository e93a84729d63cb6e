//! Draws a checkpoint: its state as a collapsible tree, and the changes from one checkpoint to another.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::detail::DetailState;
use super::detail_view::label_of;
use crate::action::{Action, Context};
use crate::keymap::mention;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::json_lines::on_one_line;
use crate::widgets::painter::Painter;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::rule::Title;
use crate::widgets::scroll::{Scroll, rows_above_note};
use crate::widgets::text_width::{cells, cut_end, cut_middle, shown};
use skills_api::{RunDetail, changes};

pub(super) fn draw_state(
    state: &mut DetailState,
    number: u64,
    detail: &RunDetail,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) {
    let name = format!("{} {} c{number}", shown(&detail.run.skill_id), cx.glyphs.dot);
    let mut painter = Painter::new(buf, cx);
    Title::of(name, focused).note(label_of(detail, number)).draw(&mut painter, area.x, area.y, area.width);
    let rows = state.state_rows(number);
    let body = Rect { y: area.y + 2, height: area.height.saturating_sub(4), ..area };
    if rows.is_empty() {
        painter.put(body.x + 2, body.y, "nothing recorded at this point", Role::Muted, body.width);
    }
    state.tree.follow(rows.len(), usize::from(body.height));
    let window = rows.iter().enumerate().skip(state.tree.offset).take(usize::from(body.height));
    for ((at, row), y) in window.zip(body.y..) {
        if at == state.tree.cursor && focused {
            painter.band(Rect { y, height: 1, ..body }, Role::Selection);
            painter.put(body.x, y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        let indent = 2 * row.depth.min(12) as u16;
        let x = body.x + 2 + indent;
        let sign = match row.folded {
            Some(true) => painter.glyphs.closed,
            Some(false) => painter.glyphs.open,
            None => " ",
        };
        painter.put(x, y, sign, Role::Muted, 1);
        let end = body.right().saturating_sub(2);
        let available = end.saturating_sub(x + 2);
        let name = cut_end(&row.name, available / 2, painter.glyphs.ellipsis).into_owned();
        let after = painter.put(x + 2, y, &name, Role::Strong, available) + 2;
        let available = end.saturating_sub(after);
        let text = cut_end(&row.value.text, available, painter.glyphs.ellipsis).into_owned();
        painter.put(after, y, &text, row.value.role, available);
    }
    draw_hint("changes", area, &mut painter);
}

/// Draws the keys that show another checkpoint, and the key that shows something else about this one.
fn draw_hint(other: &str, area: Rect, painter: &mut Painter<'_>) {
    let dot = painter.glyphs.dot;
    // The footer has the commands of the run, as far as it accepts them.
    let [previous, next, compare] = [Action::PreviousTab, Action::NextTab, Action::Compare].map(mention);
    let hint = format!("{previous} {next} move {dot} {compare} {other}");
    let hint = painter.with_keys(&hint, &[Context::RunsDetail, Context::Runs]);
    let available = area.width.saturating_sub(4);
    painter.put_cut(area.x + 2, area.bottom().saturating_sub(1), &hint, Role::Muted, available);
}

pub(super) fn draw_changes(
    state: &mut DetailState,
    (from, to): (u64, u64),
    detail: &RunDetail,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) {
    let arrow = if cx.glyphs.ascii { "to" } else { "→" };
    let name = format!("{} {} c{from} {arrow} c{to}", shown(&detail.run.skill_id), cx.glyphs.dot);
    let mut painter = Painter::new(buf, cx);
    Title::of(name, focused).note(label_of(detail, to)).draw(&mut painter, area.x, area.y, area.width);
    let at = |number: u64| {
        detail.checkpoints.iter().find(|point| point.number == number).map(|point| &point.state)
    };
    let (Some(before), Some(after)) = (at(from), at(to)) else { return };
    let width = area.width.saturating_sub(6);
    let mut lines: Vec<RichLine> = Vec::new();
    for change in changes(before, after) {
        let path =
            cut_middle(&shown(change.path.trim_start_matches('/')), width, cx.glyphs.ellipsis).into_owned();
        lines.push(RichLine::of(path, Role::Strong));
        for (value, sign, role) in
            [(&change.left, cx.glyphs.minus, Role::DiffDel), (&change.right, "+", Role::DiffAdd)]
        {
            let Some(value) = value else { continue };
            let mut segs = vec![Seg::new(format!("{sign} "), role)];
            let mut value = on_one_line(value, width.saturating_sub(4), cx.glyphs.ellipsis);
            value.iter_mut().for_each(|seg| seg.role = role);
            segs.extend(value);
            lines.push(RichLine::from_segs(segs));
        }
    }
    if lines.is_empty() {
        lines.push(RichLine::of("no differences", Role::Muted));
    }
    let body = Rect { y: area.y + 2, height: area.height.saturating_sub(4), ..area };
    let mut painter = Painter::new(buf, cx);
    scrolled(&mut state.tree, &lines, body, &mut painter);
    draw_hint("the state", area, &mut painter);
}

/// Draws the visible part of a text, indented by two cells.
pub(super) fn scrolled(scroll: &mut Scroll, lines: &[RichLine], area: Rect, painter: &mut Painter<'_>) {
    scroll.height = rows_above_note(lines.len(), area.height);
    scroll.offset = scroll.offset.min(lines.len().saturating_sub(scroll.height));
    for (line, y) in lines.iter().skip(scroll.offset).take(scroll.height).zip(area.y..) {
        painter.line(area.x + 2, y, line, area.width.saturating_sub(4));
    }
    note_below(lines.len(), scroll, area, painter);
}

/// Draws in the last row of an area how many lines are below the visible ones, if there are any.
pub(super) fn note_below(lines: usize, scroll: &Scroll, area: Rect, painter: &mut Painter<'_>) {
    let below = lines.saturating_sub(scroll.offset + scroll.height);
    if below > 0 {
        let note = format!(" {below} more {} ", painter.glyphs.down);
        let available = cells(&note);
        painter.right(
            area.right().saturating_sub(1).max(available),
            area.bottom().saturating_sub(1),
            &note,
            Role::Muted,
        );
    }
}
