//! The layout of Proposals at each size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{Focus, Proposals, detail_view, list_view};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, Seg, Title, column_divider, command_rows, shown, wrap_to};
use skills_api::Error;

/// Below this width the parts share one column.
const FOLD_WIDTH: u16 = 90;
const LIST_WIDTH: u16 = 38;

impl Proposals {
    pub(super) fn draw_pane(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.list.start_frame();
        self.text.area = Rect::ZERO;
        if self.list.summaries().is_empty() {
            draw_empty(self.error.as_ref(), self.list.list.is_some(), area, buf, cx);
            return;
        }
        if area.width < FOLD_WIDTH || cx.full_screen {
            if self.focus == Focus::Detail {
                self.draw_detail(area, buf, cx);
            } else {
                self.draw_list(area, buf, cx);
            }
            return;
        }
        let left = LIST_WIDTH.saturating_add_signed(cx.split).clamp(30, area.width.saturating_sub(40));
        self.draw_list(Rect { width: left, ..area }, buf, cx);
        let right = Rect { x: area.x + left + 1, width: area.width - left - 1, ..area };
        let rules = self.draw_detail(right, buf, cx);
        let (x, heavy) = (area.x + left, cx.focused);
        column_divider(
            &mut Painter::new(buf, cx),
            area,
            x,
            heavy,
            self.list.versions_rule.as_slice(),
            &rules,
        );
    }

    fn draw_list(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        let view = self.view_of_selected().cloned();
        list_view::draw(&mut self.list, view.as_deref(), self.focus, area, buf, cx);
    }

    fn draw_detail(&mut self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> Vec<u16> {
        let focused = cx.focused && self.focus == Focus::Detail;
        let (view, summary) = (self.view_of_selected().cloned(), self.list.summary());
        detail_view::draw(&mut self.text, summary, view.as_deref(), focused, area, buf, cx)
    }
}

fn draw_empty(error: Option<&Error>, is_read: bool, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    let mut painter = Painter::new(buf, cx);
    Title::of("Proposals", cx.focused).draw(&mut painter, area.x, area.y, area.width);
    let (message, role) = match (error, is_read) {
        (Some(error), _) => (shown(&error.message), Role::Danger),
        (None, false) => ("reading proposals".to_owned(), Role::Muted),
        (None, true) => ("No proposals.".to_owned(), Role::Strong),
    };
    let width = area.width.saturating_sub(6).min(84);
    let ellipsis = painter.glyphs.ellipsis;
    let wrapped = |text: String, role| wrap_to(&[Seg::new(text, role)], width, 8, ellipsis);
    let mut paragraphs = vec![wrapped(message, role)];
    if is_read && error.is_none() {
        // With --demo, every skill is a shipped one.
        let is_demo = cx.commands.is_demo();
        let command = if is_demo { "the command `skills propose`" } else { "the command below" };
        let how = format!(
            "A proposal is a change to a skill that waits for approval. Agents create proposals with the MCP tool \
            `propose_skill_update`, users with {command}. Drafts (w in Browse) of files that you cannot write also \
            become proposals. Shipped skills cannot be changed."
        );
        paragraphs.push(wrapped(how, Role::Muted));
        if !is_demo {
            let command = "skills propose SKILL --diff change.diff --justification \"why\"";
            paragraphs.push(command_rows(&cx.commands.completed(command).unwrap_or_default(), width));
        }
    }
    let mut y = area.y + 2;
    for lines in paragraphs {
        for line in lines {
            if y >= area.bottom() {
                return;
            }
            painter.line(area.x + 3, y, &line, width);
            y += 1;
        }
        y += 1;
    }
}
