//! Draws the dialogs with fields: the run, the effects of the command, the fields, the buttons.

use std::time::Instant;

use ratatui::layout::{Position, Rect};

use super::parts::{self, LABEL};
use super::run_command::{Focus, RunCommandDialog};
use crate::form::FormState;
use crate::overlay::{centred, frame};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::painter::Painter;
use crate::widgets::relative_time::{ago, lasting};
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::text_width::{cut_end, shown};
use crate::widgets::wrap::{wrap, wrap_to};
use skills_model::RunState;

/// Width of the dialog if there is enough space.
const WIDTH: u16 = 72;

impl RunCommandDialog {
    fn head(&self, width: u16, roomy: bool, painter: &Painter<'_>, now: Instant) -> Vec<RichLine> {
        let title = self.run.title().map(|title| Seg::new(shown(title), Role::Strong));
        let skill = if title.is_some() { Role::Text } else { Role::Strong };
        let mut out: Vec<RichLine> = Vec::new();
        if let Some(title) = title {
            out.extend(wrap_to(&[title], width, 2, painter.glyphs.ellipsis));
        }
        out.push(RichLine::from_segs(vec![
            Seg::new(shown(&self.run.skill_id), skill),
            Seg::new(format!(" {}", shown(&self.run.id.0)), Role::Muted),
        ]));
        let (through, all) = self.run.progress;
        let paused = self.run.paused && self.run.state == RunState::Pending;
        let word = if paused { "paused" } else { self.run.state.label() };
        let since = if self.run.state.is_terminal() {
            format!("{word} {}", ago(self.passed(now)))
        } else {
            format!("{word} {}", lasting(self.passed(now)))
        };
        let state = format!("{since} {} step {} of {all}", painter.glyphs.dot, (through + 1).min(all));
        out.push(RichLine::of(state, Role::Muted));
        if self.past.is_none() {
            out.extend(roomy.then(RichLine::default));
            let explains = [Seg::new(self.explains(), Role::Text)];
            out.extend(wrap_to(&explains, width, if roomy { 6 } else { 3 }, painter.glyphs.ellipsis));
            let pause = self.pause().map(|pause| [Seg::new(pause, Role::Warning)]);
            out.extend(pause.iter().flat_map(|pause| wrap_to(pause, width, 3, painter.glyphs.ellipsis)));
        }
        out
    }

    pub(super) fn view(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        let width = WIDTH.min(area.width);
        let inner = width.saturating_sub(6);
        let roomy = area.height >= 22;
        let air = u16::from(roomy);
        let head = self.head(inner, roomy, painter, now);
        let said = self.past.clone().or_else(|| self.said.clone()).map(|said| {
            let lines = wrap(&[Seg::new(said, Role::Text)], inner.saturating_sub(2));
            lines.into_iter().map(|segs| RichLine::from_segs(segs).plain_text()).collect::<Vec<_>>()
        });
        let said_rows = said.as_ref().map_or(0, |lines| lines.len() as u16 + 1);
        let asks = self.past.is_none();
        let look = FormState {
            indent: 0,
            label: self.form.label_width(0, inner / 3).max(LABEL.min(inner / 3)),
            roomy: false,
            focused: self.focus == Focus::Form,
        };
        let choice = u16::from(asks && self.checkpoint.is_some());
        let despite = u16::from(asks && self.despite.is_some());
        let fixed = head.len() as u16 + said_rows + choice + despite + 3 + 3 * air;
        let most = area.height.saturating_sub(fixed + 1).max(1);
        let form = if asks && !self.form.is_empty() { self.form_rows(inner, look).min(most) } else { 0 };
        let fields = choice + form + despite;
        let outer = centred(area, width, fixed + form + u16::from(fields > 0));
        let title = format!("{} {}", painter.glyphs.waiting, self.title());
        let inside = frame(outer, painter, &title, "", true);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let mut y = inside.y + air;
        for line in &head {
            painter.line(inside.x, y, line, inside.width);
            y += 1;
        }
        if let Some(lines) = said {
            y += u16::from(roomy && !asks);
            y += parts::warning(Rect { y, ..inside }, painter, &lines) + u16::from(asks);
        }
        y += u16::from(fields > 0);
        (self.drawn.checkpoint, self.drawn.despite) = (Rect::ZERO, Rect::ZERO);
        let row = |y: u16| Rect { y, height: 1, ..inside };
        if let Some(checkpoint) = self.checkpoint.as_ref().filter(|_| asks) {
            let focused = self.focus == Focus::Checkpoint;
            line(row(y), look.label, "checkpoint", checkpoint.shown(), focused, painter);
            let turn = format!("{}{}", painter.glyphs.up, painter.glyphs.down);
            painter.right(inside.right().saturating_sub(1), y, &turn, Role::Muted);
            self.drawn.checkpoint = row(y);
            y += 1;
        }
        let mut cursor = None;
        if form > 0 {
            let mut cx = Draw {
                theme: painter.theme,
                glyphs: painter.glyphs,
                now,
                clock_ms: 0,
                focused: true,
                full_screen: false,
                split: 0,
                cursor: None,
            };
            self.form.draw(Rect { y, height: form, ..inside }, look, painter.buf, &mut cx);
            cursor = cx.cursor.filter(|_| self.focus == Focus::Form);
            y += form;
        }
        if let Some(flag) = self.despite.filter(|_| asks) {
            let sign = if flag { painter.glyphs.set } else { painter.glyphs.pending };
            let text = format!("{sign} continue with the contract of the launch");
            line(row(y), look.label, "despite", &text, self.focus == Focus::Despite, painter);
            self.drawn.despite = row(y);
        }
        let last = row(inside.bottom().saturating_sub(1 + air));
        let focused = if let Focus::Button(at) = self.focus { Some(at) } else { None };
        self.drawn.buttons = parts::buttons(last, painter, &self.buttons(), focused);
        cursor
    }

    /// Returns the rows of the form: they grow with the input and do not change when the focus moves.
    fn form_rows(&mut self, width: u16, look: FormState) -> u16 {
        let before = if self.drawn.rows.0 == width { self.drawn.rows.1 } else { 0 };
        self.drawn.rows = (width, self.form.required_height(width, look).max(before));
        self.drawn.rows.1
    }
}

fn line(row: Rect, label_room: u16, label: &str, text: &str, focused: bool, painter: &mut Painter<'_>) {
    let band = Rect { x: row.x + label_room, width: row.width.saturating_sub(label_room), ..row };
    let role = if focused { Role::Strong } else { Role::Muted };
    painter.put(row.x, row.y, label, role, label_room.saturating_sub(1));
    painter.band(band, if focused { Role::Selection } else { Role::Field });
    if focused {
        painter.put(band.x, band.y, painter.glyphs.gutter, Role::Gutter, 1);
    }
    let text = cut_end(text, band.width.saturating_sub(6), painter.glyphs.ellipsis).into_owned();
    painter.put(band.x + 1, band.y, &text, if focused { Role::Strong } else { Role::Text }, band.width);
}
