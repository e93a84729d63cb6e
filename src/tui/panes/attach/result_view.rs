//! Draws the last attachment: its run and the key that shows it, or why it failed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::Attach;
use super::compose_view::Plan;
use super::last::LastAttachment;
use crate::glyphs::Glyphs;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::format::counted;
use crate::widgets::json_lines::fields;
use crate::widgets::painter::Painter;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::rule::Title;
use crate::widgets::text_width::{cut_middle, shown};
use crate::widgets::wrap::{cut_line, wrap_to};
use skills_api::{AttachReason, Attached};
use skills_model::RunState;

/// Returns the maximum number of rows of the outcome for a block's height.
const fn output_rows(height: u16) -> usize {
    if height > 9 { 8 } else { 4 }
}

/// Maximum number of rows of a reason.
const REASON_ROWS: usize = 4;

impl Attach {
    /// Returns the rows of the last result including its rule; 0 if nothing was attached yet.
    pub(super) fn last_height(&self, plan: Plan) -> u16 {
        let Some(last) = &self.last else { return 0 };
        let most = plan.area.height / 3;
        let rows = lines(last, (plan.area.width, most), "…", self.sending.is_some()).len() as u16;
        let air = u16::from(plan.roomy);
        (1 + air + rows).min(most)
    }

    pub(super) fn draw_last(&mut self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
        let Some(last) = &self.last else { return };
        let mut painter = Painter::new(buf, cx);
        let mut title = Title::of("Last result", false);
        title.name.segs[0].role = Role::Muted;
        title.draw(&mut painter, area.x, area.y, area.width);
        let rows = lines(last, (area.width, area.height), painter.glyphs.ellipsis, self.sending.is_some());
        let air = u16::from(area.height as usize > 1 + rows.len());
        let (sign, role) = sign(last, painter.glyphs);
        painter.put(area.x + 2, area.y + 1 + air, sign, role, 1);
        let width = area.width.saturating_sub(5);
        for (line, y) in rows.iter().zip(area.y + 1 + air..area.bottom()) {
            let line = cut_line(line, width, painter.glyphs.ellipsis);
            painter.line(area.x + 4, y, &line, width);
        }
        if last.run().is_some() {
            self.drawn.run = Rect { y: area.y + 1, height: area.height - 1, ..area };
        }
    }
}

fn sign(last: &LastAttachment, glyphs: &Glyphs) -> (&'static str, Role) {
    match last {
        LastAttachment::Failed { .. } => (glyphs.bad, Role::Danger),
        LastAttachment::Done(attached) => match attached.execution.state {
            RunState::Completed => (glyphs.ok, Role::Success),
            RunState::Failed => (glyphs.bad, Role::Danger),
            RunState::Canceled => (glyphs.canceled, Role::Muted),
            RunState::WaitingForHuman => (glyphs.waiting, Role::Waiting),
            RunState::WaitingForSignal => (glyphs.signal, Role::Info),
            RunState::Pending | RunState::Running | RunState::Replaying => (glyphs.pending, Role::Info),
        },
    }
}

fn lines(last: &LastAttachment, (width, height): (u16, u16), ellipsis: &str, again: bool) -> Vec<RichLine> {
    let width = width.saturating_sub(5);
    let mut out = match last {
        LastAttachment::Done(attached) => done(attached, (width, output_rows(height)), ellipsis),
        LastAttachment::Failed { code, message, reason } => {
            failed(code, message, reason.as_ref(), width, ellipsis)
        }
    };
    if again {
        out.push(RichLine::of("attaching another one", Role::Muted));
    }
    out
}

fn done(attached: &Attached, (width, most): (u16, usize), ellipsis: &str) -> Vec<RichLine> {
    let run = &attached.execution;
    let state = match run.state {
        RunState::Completed => "completed",
        RunState::Failed => "its run failed",
        RunState::Canceled => "its run was canceled",
        RunState::WaitingForHuman => "its run waits for approval",
        RunState::WaitingForSignal => "its run waits for a signal",
        RunState::Pending | RunState::Running | RunState::Replaying => "its run continues",
    };
    let mut out = vec![RichLine::from_segs(vec![
        Seg::new("attached ", Role::Strong).with(Modifier::BOLD),
        Seg::new(shown(&run.skill_id), Role::Text),
        Seg::new(format!(" to {}", attached.target_type), Role::Muted),
    ])];
    out.push(RichLine::of(cut_middle(&shown(&attached.target_ref), width, ellipsis), Role::Text));
    if let Some(outputs) =
        run.outputs.as_ref().filter(|outputs| outputs.as_object().is_some_and(|o| !o.is_empty()))
    {
        let rows = fields(outputs, width);
        let more = rows.len().saturating_sub(most);
        out.extend(rows.into_iter().take(most));
        if more > 0 {
            out.push(RichLine::of(format!("{} in the run", counted(more, "more line")), Role::Muted));
        }
    }
    if let Some(control) = &attached.control {
        let said = [Seg::new("control  ", Role::Waiting), Seg::new(shown(control), Role::Strong)];
        out.extend(wrap_to(&said, width, 4, ellipsis));
    }
    // Fractions of a second are dropped.
    let at = shown(&attached.attached_at);
    let at = at.split_once('.').map_or(at.clone(), |(second, _)| format!("{second}Z"));
    let end = [
        Seg::new(format!("{state} "), Role::Text),
        Seg::new(format!(" {at} "), Role::Muted),
        Seg::new(" g", Role::Key),
        Seg::new(" goes to the run", Role::Muted),
    ];
    out.extend(wrap_to(&end, width, 2, ellipsis));
    out
}

fn failed(
    code: &str,
    message: &str,
    reason: Option<&AttachReason>,
    width: u16,
    ellipsis: &str,
) -> Vec<RichLine> {
    let mut out = vec![RichLine::from_segs(vec![
        Seg::new("not attached ", Role::Strong).with(Modifier::BOLD),
        Seg::new(code, Role::Danger),
    ])];
    out.extend(wrap_to(&[Seg::new(message, Role::Text)], width, REASON_ROWS, ellipsis));
    if let Some(reason) = reason {
        let mut segs = vec![
            Seg::new(format!("{} ", check_name(reason.check)), Role::Muted),
            Seg::new("given ", Role::Muted),
            Seg::new(
                if reason.value.is_empty() { "nothing".to_owned() } else { shown(&reason.value) },
                Role::Text,
            ),
        ];
        if !reason.allowed.is_empty() {
            segs.push(Seg::new("  allowed ", Role::Muted));
            let allowed: Vec<String> = reason.allowed.iter().map(|one| shown(one)).collect();
            segs.push(Seg::new(allowed.join(", "), Role::Text));
        }
        out.extend(wrap_to(&segs, width, 2, ellipsis));
    }
    out
}

/// Returns the name of a check.
pub(super) fn check_name(check: skills_api::AttachCheck) -> &'static str {
    use skills_api::AttachCheck;
    match check {
        AttachCheck::Exists => "skill exists",
        AttachCheck::Invocation => "invocation",
        AttachCheck::TargetType => "target type",
        AttachCheck::Target => "target exists",
    }
}
