//! Draws a checkpoint: its state as a collapsible tree, and the changes from one checkpoint to another.

use std::collections::HashSet;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::detail::DetailView;
use super::detail_view::label_of;
use super::keys::rows_of;
use super::{Focus, Runs};
use crate::action::Action;
use crate::pane::{Draw, Effect};
use crate::theme::Role;
use crate::widgets::json_lines::{TreeRow, on_one_line, tree};
use crate::widgets::painter::Painter;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::rule::Title;
use crate::widgets::scroll::Scroll;
use crate::widgets::text_width::{cells, cut_end, cut_middle, shown};
use skills_api::{RunDetail, changes};

/// Longer lists are initially collapsed.
const LONG: usize = 12;

impl Runs {
    /// Shows the state at a checkpoint.
    pub(super) fn show_state(&mut self, number: u64) {
        let Some(detail) = self.detail.get().cloned() else { return };
        let Some(point) = detail.checkpoints.iter().find(|point| point.number == number) else { return };
        self.detail.showing = DetailView::State(number);
        self.detail.tree = Scroll::default();
        // Long lists would push the following content out of view.
        let open = HashSet::<String>::new();
        let long = |row: &&TreeRow| row.folded.is_some() && members(&point.state, &row.path) > LONG;
        self.detail.folded =
            tree(&point.state, &open).iter().filter(long).map(|row| row.path.clone()).collect();
    }

    /// Shows the checkpoint before or after the current one.
    pub(super) fn neighbour_state(&mut self, by: isize) {
        let Some(detail) = self.detail.get().cloned() else { return };
        let (DetailView::State(number) | DetailView::Changes(_, number)) = self.detail.showing.clone() else {
            return;
        };
        let numbers: Vec<u64> = detail.checkpoints.iter().map(|point| point.number).collect();
        let at = numbers.iter().position(|other| *other == number).unwrap_or(0);
        let next = at.saturating_add_signed(by).min(numbers.len().saturating_sub(1));
        let Some(number) = numbers.get(next).copied() else { return };
        match self.detail.showing {
            DetailView::Changes(..) => {
                let from = numbers.get(next.saturating_sub(1)).copied().unwrap_or(number);
                self.detail.showing = DetailView::Changes(from, number);
                self.detail.tree = Scroll::default();
            }
            _ => self.show_state(number),
        }
    }

    fn state_rows(&self, number: u64) -> Vec<TreeRow> {
        let point = self.detail.get().and_then(|detail| {
            detail.checkpoints.iter().find(|point| point.number == number).map(|point| point.state.clone())
        });
        point.map(|state| tree(&state, &self.detail.folded)).unwrap_or_default()
    }

    pub(super) fn act_in_state(&mut self, action: Action) -> Option<Vec<Effect>> {
        let DetailView::State(number) = self.detail.showing else { return None };
        let rows = self.state_rows(number);
        if let Action::Open | Action::Fold = action {
            let row = rows.get(self.detail.tree.cursor)?;
            row.folded?;
            if !self.detail.folded.remove(&row.path) {
                self.detail.folded.insert(row.path.clone());
            }
            return Some(Vec::new());
        }
        let by = rows_of(action, self.detail.tree.page())?;
        self.detail.tree.by(by, rows.len());
        Some(Vec::new())
    }

    pub(super) fn draw_state(
        &mut self,
        number: u64,
        detail: &RunDetail,
        area: Rect,
        buf: &mut Buffer,
        cx: &mut Draw<'_>,
    ) {
        let focused = cx.focused && self.focus == Focus::Detail;
        let name = format!("{} {} c{number}", shown(&detail.run.skill_id), cx.glyphs.dot);
        let mut painter = Painter::new(buf, cx);
        Title::of(name, focused).note(label_of(detail, number)).draw(
            &mut painter,
            area.x,
            area.y,
            area.width,
        );
        let rows = self.state_rows(number);
        let body = Rect { y: area.y + 2, height: area.height.saturating_sub(4), ..area };
        if rows.is_empty() {
            painter.put(body.x + 2, body.y, "nothing recorded at this point", Role::Muted, body.width);
        }
        self.detail.tree.follow(rows.len(), usize::from(body.height));
        let window = rows.iter().enumerate().skip(self.detail.tree.offset).take(usize::from(body.height));
        for ((at, row), y) in window.zip(body.y..) {
            if at == self.detail.tree.cursor && focused {
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
        let dot = painter.glyphs.dot;
        let hint = format!("[ ] move {dot} = changes {dot} p replay {dot} f fork {dot} r resume");
        let hint = cut_end(&hint, area.width.saturating_sub(4), painter.glyphs.ellipsis).into_owned();
        painter.put(area.x + 2, area.bottom().saturating_sub(1), &hint, Role::Muted, area.width);
    }

    pub(super) fn draw_changes(
        &mut self,
        (from, to): (u64, u64),
        detail: &RunDetail,
        area: Rect,
        buf: &mut Buffer,
        cx: &mut Draw<'_>,
    ) {
        let focused = cx.focused && self.focus == Focus::Detail;
        let arrow = if cx.glyphs.ascii { "to" } else { "→" };
        let name = format!("{} {} c{from} {arrow} c{to}", shown(&detail.run.skill_id), cx.glyphs.dot);
        let mut painter = Painter::new(buf, cx);
        Title::of(name, focused).note(label_of(detail, to)).draw(&mut painter, area.x, area.y, area.width);
        let state = |number: u64| {
            detail.checkpoints.iter().find(|point| point.number == number).map(|point| &point.state)
        };
        let (Some(before), Some(after)) = (state(from), state(to)) else { return };
        let width = area.width.saturating_sub(6);
        let mut lines: Vec<RichLine> = Vec::new();
        for change in changes(before, after) {
            let path = cut_middle(&shown(change.path.trim_start_matches('/')), width, cx.glyphs.ellipsis)
                .into_owned();
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
        scrolled(&mut self.detail.tree, &lines, body, &mut Painter::new(buf, cx));
        let hint = format!("[ ] move {} = the state", cx.glyphs.dot);
        let available = area.width.saturating_sub(4);
        Painter::new(buf, cx).put(area.x + 2, area.bottom().saturating_sub(1), &hint, Role::Muted, available);
    }
}

/// Draws the visible part of a text, indented by two cells.
pub(super) fn scrolled(scroll: &mut Scroll, lines: &[RichLine], area: Rect, painter: &mut Painter<'_>) {
    scroll.height = usize::from(area.height);
    scroll.offset = scroll.offset.min(lines.len().saturating_sub(scroll.height));
    for (line, y) in lines.iter().skip(scroll.offset).take(scroll.height).zip(area.y..) {
        painter.line(area.x + 2, y, line, area.width.saturating_sub(4));
    }
    let below = lines.len().saturating_sub(scroll.offset + scroll.height);
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

/// Returns the number of members of the value at a path.
fn members(state: &serde_json::Value, path: &str) -> usize {
    let found = path.split('/').try_fold(state, |value, part| match value {
        serde_json::Value::Object(map) => map.get(part),
        serde_json::Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    });
    match found {
        Some(serde_json::Value::Object(map)) => map.len(),
        Some(serde_json::Value::Array(items)) => items.len(),
        _ => 0,
    }
}
