//! Draws the input of the model: the composed call or its diff, the request, the transcript.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Fold;
use super::context::{ModelContext, available};
use super::context_view::{fitted, transcript};
use super::state::SessionState;
use crate::action::{Action, Context};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, Seg, byte_size, cells, count, counted, shown, wrap_to};
use skills_session::{MessageRole, Turn};

/// Width of a title next to its note, in cells.
const TITLE: u16 = 36;

pub(super) fn draw_composed(
    context: &mut ModelContext,
    state: &SessionState,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> String {
    let Some(composed) = &state.composed else {
        return draw_composing(area, buf, cx);
    };
    if context.diff {
        let changes = composed.since.as_ref().map(|since| since.describe(count)).unwrap_or_default();
        let text = match &composed.diff {
            None => Some("no recorded call to compare with: c records one"),
            Some(lines) if lines.is_empty() && changes.is_empty() => Some("no changes since the last call"),
            Some(_) => None,
        };
        if let Some(text) = text {
            Painter::new(buf, cx).put(area.x + 2, area.y, text, Role::Muted, area.width.saturating_sub(2));
            return String::new();
        }
        let lines = context.diff_rows(composed, &changes, available(area));
        context.draw_lines(&lines, area, buf, cx);
        return "next call compared with the last".to_owned();
    }
    let lines = context.rows(state, available(area));
    if lines.is_empty() {
        let text = "empty: no skill is listed";
        Painter::new(buf, cx).put(area.x + 2, area.y, text, Role::Muted, area.width.saturating_sub(2));
    }
    context.draw_lines(&lines, area, buf, cx);
    let digest: String = composed.digest.trim_start_matches("sha256:").chars().take(8).collect();
    format!(
        "next call {} {} {} sha256 {digest}",
        cx.glyphs.dot,
        byte_size(composed.composed.text.len() as u64),
        cx.glyphs.dot
    )
}

pub(super) fn draw_transcript(
    context: &mut ModelContext,
    state: &SessionState,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> String {
    let entries = state.session.as_ref().map_or(&[][..], |session| session.transcript.as_slice());
    if entries.is_empty() {
        let text = "the transcript is empty: loads, reads and script runs appear here";
        Painter::new(buf, cx).put(area.x + 2, area.y, text, Role::Muted, area.width.saturating_sub(2));
    }
    let open = |fold: &Fold| context.open.contains(fold);
    let lines = transcript(entries, &open);
    context.draw_lines(&fitted(lines, available(area)), area, buf, cx);
    format!("append-only {} {}", cx.glyphs.dot, counted(entries.len(), "entry"))
}

pub(super) fn draw_payload(
    context: &mut ModelContext,
    state: &SessionState,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> String {
    let Some((api, text)) = &state.payload else {
        return draw_composing(area, buf, cx);
    };
    let width = area.width.saturating_sub(4);
    let Some(rich) = context.rendered(text, width, cx.glyphs.ascii) else {
        let progress = format!("laying out {}", byte_size(text.len() as u64));
        Painter::new(buf, cx).put(area.x + 2, area.y, &progress, Role::Muted, width);
        return api.to_string();
    };
    let area = draw_objections(state, area, buf, cx);
    let height = usize::from(area.height);
    context.scroll.height = height;
    context.scroll.offset = context.scroll.offset.min(rich.len().saturating_sub(height));
    let mut painter = Painter::new(buf, cx);
    for (line, y) in rich.iter().skip(context.scroll.offset).take(height).zip(area.y..) {
        painter.line(area.x + 2, y, line, width);
    }
    // The title drops a note that does not fit, but the service is always named.
    let (dot, enter, size) = (cx.glyphs.dot, cx.glyphs.enter, byte_size(text.len() as u64));
    let notes = [
        format!("{api} {dot} {size} {dot} {enter} next format  y copy"),
        format!("{api} {dot} {size} {dot} {enter} next format"),
        format!("{api} {dot} {size}"),
    ];
    let fits = |note: &&String| cells(note) + TITLE <= area.width;
    notes.iter().find(fits).cloned().unwrap_or_else(|| api.to_string())
}

/// Draws the key that helps, and the errors that the service is expected to report; returns the area below. The
/// message is shown as long as it applies.
fn draw_objections(state: &SessionState, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> Rect {
    let Some(session) = state.session.as_ref().filter(|_| !state.objections.is_empty()) else {
        return area;
    };
    let width = area.width.saturating_sub(6);
    let started = matches!(
        session.transcript.first().map(|entry| &entry.turn),
        Some(Turn::Message { speaker: MessageRole::User, .. })
    );
    let mut painter = Painter::new(buf, cx);
    let key = |action| painter.key_word(action, &[Context::Session]);
    let keys = match session.transcript.len() {
        _ if started => String::new(),
        0 => format!(" ({})", key(Action::Say)),
        _ => format!(" ({}, then {})", key(Action::NewSession), key(Action::Say)),
    };
    let mut y = area.y;
    for (at, why) in state.objections.iter().enumerate() {
        let text = format!("{}{}", shown(why), if at == 0 { keys.as_str() } else { "" });
        painter.put(area.x + 2, y, painter.glyphs.warn, Role::Warning, 1);
        for line in wrap_to(&[Seg::new(text, Role::Text)], width, 4, painter.glyphs.ellipsis) {
            if y < area.bottom() {
                painter.line(area.x + 4, y, &line, width);
                y += 1;
            }
        }
    }
    let below = (y + 1).min(area.bottom());
    Rect { y: below, height: area.bottom() - below, ..area }
}

/// Draws the placeholder until the payload is composed; returns the empty title.
fn draw_composing(area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> String {
    Painter::new(buf, cx).put(area.x + 2, area.y, "composing", Role::Muted, area.width.saturating_sub(2));
    String::new()
}
