//! Draws the left part: the agent and the session, active skills in load order, and the budget by level.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::state::SessionState;
use super::{budget_view, changes_view};
use crate::action::{Action, Context};
use crate::pane::Draw;
use crate::session_export::short_id;
use crate::theme::Role;
use crate::widgets::{
    Painter, Seg, Title, cells, count, counted, cut_end, moment, shown, token_count, tokens, wrap_to,
};
use skills_api::{CallSize, LevelSize, LoadedFile, LoadedFrom, SessionView, SkillDrift};
use skills_session::PartKind;
use skills_skill::tokens::TokenCount;

/// Rows for the status of the selected skill.
const STATUS_ROWS: usize = 3;

pub(super) fn draw(
    state: &SessionState,
    rows: &mut Vec<(Rect, usize)>,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) {
    let below = draw_active(state, rows, focused, area, buf, cx);
    let rest = Rect { y: below, height: area.bottom().saturating_sub(below), ..area };
    let below = draw_budget(state, rest, buf, cx);
    let rest = Rect { y: below, height: area.bottom().saturating_sub(below), ..area };
    changes_view::draw(state, rest, buf, cx);
}

/// Draws the active skills; returns the row below.
fn draw_active(
    state: &SessionState,
    rows: &mut Vec<(Rect, usize)>,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> u16 {
    let Some(session) = &state.session else { return area.y };
    let note = format!("{} of {}", session.active.len(), session.settings.cap);
    Title::of("Active", focused).note(note).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    let mut painter = Painter::new(buf, cx);
    let mut y = area.y + 2;
    let right = area.right().saturating_sub(1);
    if session.active.is_empty() {
        let available = area.width.saturating_sub(3);
        let key = painter.key_word(Action::LoadSkill, &[Context::Session]);
        let forms = [
            format!("no skills loaded: press {key} to load one"),
            format!("no skills loaded: {key} loads one"),
            format!("empty: {key} loads a skill"),
        ];
        let text = forms.iter().find(|form| cells(form) <= available).unwrap_or(&forms[2]);
        let text = cut_end(text, available, painter.glyphs.ellipsis);
        painter.put(area.x + 2, y, &text, Role::Muted, available);
        y += 1;
    }
    let most = usize::from(area.height / 2).max(1);
    let first = state.cursor.saturating_sub(most.saturating_sub(1));
    for (at, skill) in session.active.iter().enumerate().skip(first).take(most) {
        let row = Rect { y, height: 1, ..area };
        let on = at == state.cursor;
        if on {
            painter.select(row, focused);
        }
        let drift = state.drift_of(&skill.name);
        let digest: String = skill.digest.trim_start_matches("sha256:").chars().take(4).collect();
        // A status mark is shown at any width; a digest only if it fits.
        let mark = match (drift.file, drift.roots) {
            (LoadedFile::Changed, _) => Some(painter.glyphs.edited),
            (LoadedFile::Unchanged, LoadedFrom::Here) => None,
            (LoadedFile::Unchanged, _) => Some(painter.glyphs.lost),
            _ => Some(painter.glyphs.bad),
        };
        let at_mark = match mark {
            Some(mark) => painter.right(right, y, mark, Role::Warning),
            None if area.width >= 34 => {
                painter.right(right, y, &format!("{digest}{}", painter.glyphs.ellipsis), Role::Muted)
            }
            None => right,
        };
        let size = state.composed.as_ref().and_then(|composed| composed.body_size(&skill.name));
        let loaded = TokenCount { tokens: skill.tokens, estimated: true };
        let cost = token_count(size.map_or(loaded, |size| size.count()), painter.glyphs);
        let at_tokens = painter.right(at_mark.saturating_sub(2), y, &cost, Role::Text);
        painter.put(area.x + 2, y, &format!("{}", at + 1), Role::Muted, 2);
        let available = at_tokens.saturating_sub(area.x + 6);
        let name = shown(&skill.name);
        let name = cut_end(&name, available, painter.glyphs.ellipsis);
        let plus = if on { Modifier::BOLD } else { Modifier::empty() };
        painter.put_plus(area.x + 4, y, &name, if on { Role::Strong } else { Role::Text }, plus, available);
        rows.push((row, at));
        y += 1;
    }
    if let Some(drift_text) = drift_text(state.selected_drift()) {
        let available = area.width.saturating_sub(5);
        for line in
            wrap_to(&[Seg::new(drift_text, Role::Warning)], available, STATUS_ROWS, painter.glyphs.ellipsis)
        {
            painter.line(area.x + 4, y, &line, available);
            y += 1;
        }
    }
    if session.active.len() > 1 {
        painter.put_cut(area.x + 4, y, "the later one wins", Role::Muted, area.width.saturating_sub(5));
        y += 1;
    }
    if area.height > 16 {
        y = draw_agent(state, session, &mut painter, area, y + 1);
    }
    y + 1
}

/// Draws the agent with the number of skills in its catalog, and below it the session; returns the row below.
fn draw_agent(
    state: &SessionState,
    session: &SessionView,
    painter: &mut Painter<'_>,
    area: Rect,
    mut y: u16,
) -> u16 {
    let right = area.right().saturating_sub(1);
    let agent = session.settings.agent.as_deref().map_or_else(|| "orchestrator".to_owned(), shown);
    let max_width = area.width.saturating_sub(3);
    let sees: Vec<String> = match (&session.settings.agent, &state.composed) {
        (None, Some(composed)) => vec![format!(" {}", counted(listed(composed), "skill"))],
        (Some(_), Some(composed)) => {
            let n = listed(composed);
            vec![format!(" {}", counted(n, "skill")), format!(" {}", count(n))]
        }
        _ => vec![String::new()],
    };
    // The client view is kept; the agent's name is truncated if both are too long, and the word `agent` is
    // dropped before that.
    let least = cells(sees.last().map_or("", String::as_str));
    let label = if cells(&agent) + least + 6 <= max_width { "agent " } else { "" };
    let name = cut_end(&agent, max_width.saturating_sub(least + cells(label)), painter.glyphs.ellipsis);
    let end = painter.put(area.x + 2, y, label, Role::Muted, max_width);
    let end = painter.put(end, y, &name, Role::Text, right.saturating_sub(end));
    let available = right.saturating_sub(end);
    if let Some(sees) = sees.iter().find(|sees| cells(sees) <= available) {
        painter.put(end, y, sees, Role::Muted, available);
    }
    y += 1;
    // The session's id distinguishes similar sessions.
    let short = short_id(&session.session_id);
    let (started, changed) = (moment(session.created_ms), moment(session.changed_ms));
    let all = [
        format!("session {short}  created {started}, changed {changed}"),
        format!("session {short}, created {}", span(&started, &changed)),
        format!("id {short}  {changed}"),
        short.to_owned(),
    ];
    if let Some(form) = all.iter().find(|form| cells(form) <= max_width) {
        painter.put(area.x + 2, y, form, Role::Muted, max_width);
    }
    y + 1
}

/// Draws the budget; returns the row below.
fn draw_budget(state: &SessionState, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> u16 {
    let (Some(session), Some(composed)) = (&state.session, &state.composed) else { return area.y };
    if area.height < 7 {
        return area.y;
    }
    let client = session
        .settings
        .client
        .as_deref()
        .map_or_else(|| "complete catalog".to_owned(), |client| format!("as {}", shown(client)));
    Title::of("Budget", false).note(client).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    let size = composed.size;
    let rows: [(&str, LevelSize, usize, Role); 5] = [
        ("base", size.base, 0, Role::Level0),
        ("L1", size.l1, 1, Role::Level1),
        ("L2", size.l2, 2, Role::Level2),
        ("L3", size.l3, 3, Role::Level3),
        ("history", size.history, 0, Role::Level0),
    ];
    let largest = rows.iter().map(|(_, level, ..)| level.tokens).max().unwrap_or(1).max(1);
    let mut painter = Painter::new(buf, cx);
    let bar = area.width.saturating_sub(20);
    let mut y = area.y + 2;
    for (name, level, depth, role) in rows {
        painter.rail(area.x + 2, y, 1, depth);
        painter.put(area.x + 4, y, name, Role::Muted, 7);
        painter.right(area.x + 17, y, &token_count(level.count(), painter.glyphs), Role::Text);
        let cells = (u64::from(level.tokens) * u64::from(bar) / u64::from(largest)) as u16;
        let cells = cells.max(u16::from(level.tokens > 0));
        let sign = if painter.glyphs.ascii { "#" } else { "▆" };
        painter.run(area.x + 18, y, sign, cells.min(bar), role);
        y += 1;
    }
    let sum = sum(&size);
    let share = if size.window == 0 { 0.0 } else { f64::from(sum.tokens) / f64::from(size.window) * 100.0 };
    painter.put(area.x + 4, y, "sum", Role::Muted, 4);
    painter.right(area.x + 17, y, &token_count(sum, painter.glyphs), Role::Strong);
    let window = tokens(size.window);
    let (of, role) = if sum.tokens > size.window {
        let warn = painter.glyphs.warn;
        (vec![format!("{warn} over {window}"), format!("{warn} >{window}"), warn.to_owned()], Role::Warning)
    } else {
        (
            vec![format!("of {window} {} {share:.1} %", painter.glyphs.dot), format!("of {window}")],
            Role::Muted,
        )
    };
    let available = area.right().saturating_sub(area.x + 19);
    if let Some(of) = of.iter().find(|of| cells(of) <= available) {
        painter.put(area.x + 19, y, of, role, available);
    }
    let below = Rect { y: y + 1, height: area.bottom().saturating_sub(y + 1), ..area };
    budget_view::draw(composed, below, &mut painter) + 1
}

/// Describes the status of the selected skill, and how to fix it.
fn drift_text(drift: SkillDrift) -> Option<String> {
    let text = drift.describe()?;
    let then = if drift.needs_reload() { "l reloads it" } else { "the loaded version is kept" };
    Some(format!("{text}; {then}"))
}

/// Formats when something was created and changed, with the day once: `22 Nov 12:04, changed 12:31`.
fn span(started: &str, changed: &str) -> String {
    let days = (started.rsplit_once(' '), changed.rsplit_once(' '));
    match days {
        _ if started == changed => started.to_owned(),
        (Some((day, _)), Some((same, time))) if day == same => format!("{started}, changed {time}"),
        _ => format!("{started}, changed {changed}"),
    }
}

/// Returns the number of catalog entries in a call.
fn listed(composed: &skills_api::ComposedView) -> usize {
    let parts = &composed.composed.parts;
    parts.iter().filter(|p| p.kind == PartKind::Available && p.skill.is_some()).count()
}

fn sum(size: &CallSize) -> TokenCount {
    [size.base, size.l1, size.l2, size.l3, size.history].iter().map(LevelSize::count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_is_shown_once_for_a_session_of_one_day() {
        assert_eq!(span("22 Nov 12:04", "22 Nov 12:31"), "22 Nov 12:04, changed 12:31");
        assert_eq!(span("22 Nov 12:04", "23 Nov 01:00"), "22 Nov 12:04, changed 23 Nov 01:00");
        assert_eq!(span("22 Nov 12:04", "22 Nov 12:04"), "22 Nov 12:04");
    }
}
