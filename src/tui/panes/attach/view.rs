//! The layout of Attach at each size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{Attach, Focus, FrameAreas};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::painter::Painter;
use crate::widgets::rich::Seg;
use crate::widgets::rule::{Joint, Title, divider};
use crate::widgets::text_width::shown;
use crate::widgets::wrap::wrap_to;

/// Below this width the parts share one column.
const FOLD: u16 = 80;

impl Attach {
    pub(super) fn view(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.drawn = FrameAreas::default();
        if self.offered.is_empty() {
            self.draw_empty(area, buf, cx);
            return;
        }
        let on_preview = self.focus == Focus::Preview;
        if area.width < FOLD || cx.full_screen {
            if on_preview {
                self.draw_preview(area, buf, cx);
            } else {
                self.draw_compose(area, buf, cx);
            }
            return;
        }
        let share = if area.width < 100 { area.width / 2 } else { area.width * 56 / 120 };
        let left = share.saturating_add_signed(cx.split).clamp(36, area.width.saturating_sub(34));
        let right = Rect { x: area.x + left + 1, width: area.width - left - 1, ..area };
        let rule = self.draw_compose(Rect { width: left, ..area }, buf, cx);
        let rules = self.draw_preview(right, buf, cx);
        let mut joints = vec![(area.y, Joint::Top { heavy: cx.focused })];
        for y in area.top() + 1..area.bottom() {
            match (rule == Some(y), rules.contains(&y)) {
                (true, true) => joints.push((y, Joint::Cross { left: false, right: false })),
                (true, false) => joints.push((y, Joint::Left { heavy: false })),
                (false, true) => joints.push((y, Joint::Right { heavy: false })),
                (false, false) => {}
            }
        }
        divider(&mut Painter::new(buf, cx), Rect { x: area.x + left, width: 1, ..area }, &joints);
    }

    /// Draws the pane without attachable skills: what was searched, and what makes a skill attachable.
    fn draw_empty(&self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
        let mut painter = Painter::new(buf, cx);
        Title::of("Attach", cx.focused).draw(&mut painter, area.x, area.y, area.width);
        let (all, roots) = (self.catalogue.entries.len(), self.catalogue.roots.len());
        let looked = match (all, roots) {
            (0, 0) => "no skills loaded yet".to_owned(),
            (0, _) => "no skills in any root".to_owned(),
            (all, _) => format!("none of {all} skills can be attached"),
        };
        let text = [
            (looked, Role::Strong),
            (
                "A sidecar monitors or annotates a target: a task, a run, a step output, a session \
                    transcript or an artifact."
                    .to_owned(),
                Role::Text,
            ),
            (
                "To make a skill attachable, set `invocation: attach` (or `both`) and `attach_targets: \
                    [run, output]` under metadata.classification in its SKILL.md."
                    .to_owned(),
                Role::Muted,
            ),
        ];
        let width = area.width.saturating_sub(4).min(76);
        let mut y = area.y + 2;
        for (said, role) in text {
            for line in wrap_to(&[Seg::new(shown(&said), role)], width, 4, painter.glyphs.ellipsis) {
                if y < area.bottom() {
                    painter.line(area.x + 2, y, &line, width);
                }
                y += 1;
            }
            y += 1;
        }
    }
}
