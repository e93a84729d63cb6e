//! The outcome of the last attachment: the run it started, or the structured reason why there is none.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use serde_json::Value;

use super::plan::Plan;
use crate::glyphs::Glyphs;
use crate::pane::{Draw, Effect};
use crate::run_requests::{RunRequest, RunResponse};
use crate::theme::Role;
use crate::widgets::json_lines::fields;
use crate::widgets::{Painter, RichLine, Seg, Title, counted, cut_line, cut_middle, shown, wrap_to};
use skills_api::{AttachReason, AttachRequest, Attached, Error, RunDetail};
use skills_model::RunState;
use skills_store::{EventKind, NewEvent, RunId};

/// Returns the maximum number of rows of the outcome for a block's height.
const fn output_rows(height: u16) -> usize {
    if height > 9 { 8 } else { 4 }
}

/// Maximum number of rows of a reason.
const REASON_ROWS: usize = 4;

/// The attachment in progress, and the outcome of the last one.
#[derive(Default)]
pub(super) struct LastResult {
    /// Counter of attachments; `sending` is the last one that was sent and has no response yet.
    ticket: u64,
    sending: Option<u64>,
    pub outcome: Option<LastAttachment>,
    /// Whether its run is being loaded, and whether it has changed since.
    following: (bool, bool),
    /// Area of the run in the last frame.
    pub area: Rect,
}

impl LastResult {
    pub fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    pub fn run(&self) -> Option<&RunId> {
        self.outcome.as_ref()?.run()
    }

    /// Forgets the last attachment, which belongs to the previous store.
    pub fn clear(&mut self) {
        (self.outcome, self.sending, self.following) = (None, None, (false, false));
    }

    pub fn send(&mut self, request: AttachRequest) -> Effect {
        self.ticket += 1;
        self.sending = Some(self.ticket);
        Effect::Run(RunRequest::Attach { request: Box::new(request), ticket: self.ticket })
    }

    /// Handles the response to an attachment; returns whether it is the one in progress.
    pub fn take(&mut self, ticket: u64, attached: &Result<Arc<Attached>, Error>) -> bool {
        let is_awaited = self.sending == Some(ticket);
        if is_awaited {
            (self.sending, self.following) = (None, (false, false));
            self.outcome = Some(LastAttachment::of(attached));
        }
        is_awaited
    }

    /// Requests the state of its run; while a request is in progress, the next one waits for its response.
    pub fn request(&mut self) -> Vec<Effect> {
        let Some(run) = self.run().cloned() else { return Vec::new() };
        if self.following.0 {
            self.following.1 = true;
            return Vec::new();
        }
        self.following.0 = true;
        vec![Effect::Run(RunRequest::Detail(run))]
    }

    /// Follows its run.
    pub fn on_response(&mut self, response: &RunResponse) -> Vec<Effect> {
        match response {
            RunResponse::Following => self.request(),
            RunResponse::Detail(run, answer) => {
                let again = std::mem::take(&mut self.following).1;
                if let (Some(last), Ok(detail)) = (&mut self.outcome, answer)
                    && last.run() == Some(run)
                {
                    last.update_run(detail);
                }
                if again { self.request() } else { Vec::new() }
            }
            RunResponse::Events(events) => {
                let last = self.run();
                let telling = |event: &skills_store::RunEvent| {
                    Some(&event.run) == last && event.event.kind != EventKind::StepLog
                };
                if events.iter().any(telling) { self.request() } else { Vec::new() }
            }
            _ => Vec::new(),
        }
    }

    /// Returns the rows of the last result including its rule; 0 if nothing was attached yet.
    pub(super) fn height(&self, plan: Plan) -> u16 {
        let Some(last) = &self.outcome else { return 0 };
        let most = plan.area.height / 3;
        let rows = lines(last, (plan.area.width, most), "…", self.is_sending()).len() as u16;
        let air = u16::from(plan.roomy);
        (1 + air + rows).min(most)
    }

    pub(super) fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
        let Some(last) = &self.outcome else { return };
        let mut painter = Painter::new(buf, cx);
        let mut title = Title::of("Last result", false);
        title.name.segs[0].role = Role::Muted;
        title.draw(&mut painter, area.x, area.y, area.width);
        let rows = lines(last, (area.width, area.height), painter.glyphs.ellipsis, self.is_sending());
        let air = u16::from(area.height as usize > 1 + rows.len());
        let (sign, role) = sign(last, painter.glyphs);
        painter.put(area.x + 2, area.y + 1 + air, sign, role, 1);
        let width = area.width.saturating_sub(5);
        for (line, y) in rows.iter().zip(area.y + 1 + air..area.bottom()) {
            let line = cut_line(line, width, painter.glyphs.ellipsis);
            painter.line(area.x + 4, y, &line, width);
        }
        if last.run().is_some() {
            self.area = Rect { y: area.y + 1, height: area.height - 1, ..area };
        }
    }
}

/// The last attachment.
#[derive(Debug, Clone)]
pub(super) enum LastAttachment {
    /// It started a run.
    Done(Arc<Attached>),
    Failed {
        /// The error code, as on the wire.
        code: String,
        /// What is wrong and what to do.
        message: String,
        /// The rejected value and the accepted ones, if known.
        reason: Option<AttachReason>,
    },
}

impl LastAttachment {
    pub fn of(attached: &Result<Arc<Attached>, Error>) -> Self {
        match attached {
            Ok(attached) => Self::Done(Arc::clone(attached)),
            Err(error) => Self::Failed {
                code: error.code.to_string(),
                message: shown(&error.message),
                reason: error.reason.clone().and_then(|reason| serde_json::from_value(reason).ok()),
            },
        }
    }

    /// Updates the state of its run, and the outcome of the control signal it sent.
    pub fn update_run(&mut self, detail: &RunDetail) {
        let Self::Done(attached) = self else { return };
        let attached = Arc::make_mut(attached);
        attached.execution.clone_from(&detail.run);
        let text = detail.events.iter().rev().find_map(|event| control_line(&event.event));
        attached.control = text.or_else(|| attached.control.take());
    }

    /// Returns the run, if one was started.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::Done(attached) => Some(&attached.execution.id),
            Self::Failed { .. } => None,
        }
    }
}

/// Describes an event of the sidecar about the control signal it sent.
fn control_line(event: &NewEvent) -> Option<String> {
    let text = |name: &str| event.data.get(name).and_then(Value::as_str).map(shown);
    let (requested, on) = (text("asked")?, text("on")?);
    match &event.kind {
        EventKind::ControlApplied => {
            let did = text("did").map(|did| format!(": {did}")).unwrap_or_default();
            Some(format!("{requested}: applied to run {on}{did}"))
        }
        EventKind::ControlRefused => {
            let why = text("refused").unwrap_or_default();
            Some(format!("{requested}: not applied to run {on}: {why}"))
        }
        _ => None,
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
        RunState::WaitingForHuman => "its run is waiting for approval",
        RunState::WaitingForSignal => "its run is waiting for a signal",
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
        let rows = fields(outputs, width, "in the run");
        let more = rows.len().saturating_sub(most);
        out.extend(rows.into_iter().take(most));
        if more > 0 {
            out.push(RichLine::of(format!("{} in the run", counted(more, "more line")), Role::Muted));
        }
    }
    if let Some(control) = &attached.control {
        let segs = [Seg::new("control  ", Role::Waiting), Seg::new(shown(control), Role::Strong)];
        out.extend(wrap_to(&segs, width, 4, ellipsis));
    }
    // Fractions of a second are dropped.
    let at = shown(&attached.attached_at);
    let at = at.split_once('.').map_or(at.clone(), |(second, _)| format!("{second}Z"));
    let end = [
        Seg::new(format!("{state} "), Role::Text),
        Seg::new(format!(" {at} "), Role::Muted),
        Seg::new(" g", Role::Key),
        Seg::new(" opens the run", Role::Muted),
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

pub(super) fn check_name(check: skills_api::AttachCheck) -> &'static str {
    use skills_api::AttachCheck;
    match check {
        AttachCheck::Exists => "contract",
        AttachCheck::Invocation => "invocation",
        AttachCheck::TargetType => "target type",
        AttachCheck::Target => "target exists",
    }
}
