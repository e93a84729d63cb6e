//! Draws the list of proposals by state, and below it the versions of the selected skill.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::summary_list::SummaryList;
use super::{Focus, Row};
use crate::glyphs::Glyphs;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Seg, Title, age, count, day, shown};
use skills_api::{ProposalState, ProposalSummary, ProposalView};

/// Rows of the versions, including their title.
const VERSION_ROWS: u16 = 7;
/// Width of the columns of a row, in cells: change of P@1, age.
const GAIN_WIDTH: u16 = 7;
const AGE_WIDTH: u16 = 6;

pub(super) fn sign(state: ProposalState, glyphs: &Glyphs) -> (&'static str, Role) {
    match state {
        ProposalState::Waiting => (glyphs.waiting, Role::Waiting),
        ProposalState::Approved => (glyphs.ok, Role::Success),
        ProposalState::Denied => (glyphs.bad, Role::Danger),
        ProposalState::RolledBack => (glyphs.canceled, Role::Muted),
    }
}

pub(super) fn state_label(state: ProposalState) -> &'static str {
    match state {
        ProposalState::Waiting => "waiting for approval",
        ProposalState::Approved => "approved",
        ProposalState::Denied => "denied",
        ProposalState::RolledBack => "rolled back",
    }
}

/// Formats a change of a metric between 0 and 1, with its sign.
pub(super) fn gain(value: f64, glyphs: &Glyphs) -> String {
    if value.abs() < 5e-4 {
        return "0".to_owned();
    }
    format!("{value:+.3}").replace('-', glyphs.minus)
}

pub(super) fn draw(
    part: &mut SummaryList,
    view: Option<&ProposalView>,
    focus: Focus,
    area: Rect,
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) {
    let focused = cx.focused && focus != Focus::Detail;
    let mut painter = Painter::new(buf, cx);
    let list = part.list.clone().unwrap_or_default();
    let mut note = Vec::new();
    if list.waiting > 0 {
        note.push(Seg::new(format!("{}{} waiting", painter.glyphs.waiting, list.waiting), Role::Waiting));
        note.push(Seg::new(format!(" {} ", painter.glyphs.dot), Role::Muted));
    }
    note.push(Seg::new(format!("{} total", count(list.total)), Role::Muted));
    let title = Title { note: RichLine::from_segs(note), ..Title::of("Proposals", focused) };
    title.draw(&mut painter, area.x, area.y, area.width);
    let mut top = area.y + 1;
    if focus == Focus::Filter || !part.filter.is_empty() {
        part.filter_area = Rect { x: area.x + 3, y: top, width: area.width.saturating_sub(4), height: 1 };
        painter.put(area.x + 1, top, "/", Role::Key, 1);
        let style = painter.theme.style(Role::Text);
        let cursor = part.filter.draw(part.filter_area, painter.buf, style, &[]);
        if focus == Focus::Filter && cx.focused {
            cx.cursor = cursor;
        }
        top += 1;
    }
    let versions = if area.height >= 24 { VERSION_ROWS } else { 0 };
    let rows = Rect { y: top, height: area.bottom().saturating_sub(top + versions), ..area };
    part.scroll.follow(part.rows.len(), usize::from(rows.height));
    // Scroll the name of a group into view together with its first proposal.
    if part.scroll.offset == part.scroll.cursor && part.scroll.offset > 0 {
        part.scroll.offset -= 1;
    }
    if part.rows.is_empty() {
        painter.put(
            rows.x + 3,
            rows.y,
            "no proposals match the filter",
            Role::Muted,
            rows.width.saturating_sub(3),
        );
    }
    let visible = part.rows.iter().enumerate().skip(part.scroll.offset).take(usize::from(rows.height));
    let visible: Vec<(usize, Row)> = visible.map(|(at, row)| (at, *row)).collect();
    for ((at, row), y) in visible.into_iter().zip(rows.y..) {
        let line = Rect { y, height: 1, ..rows };
        match row {
            Row::Blank => {}
            Row::Group(state) => {
                let role = if state == ProposalState::Waiting { Role::Waiting } else { Role::Muted };
                painter.put(line.x + 3, y, state_label(state), role, line.width.saturating_sub(3));
                let end = line.right().saturating_sub(2);
                if at == 0 {
                    painter.right(end, y, "age", Role::Muted);
                    painter.right(end.saturating_sub(AGE_WIDTH), y, "P@1", Role::Muted);
                }
            }
            Row::Proposal(place) => {
                if let Some(one) = list.proposals.get(place) {
                    draw_row(one, line, at == part.scroll.cursor, focused, cx.clock_ms, &mut painter);
                }
                part.visible.push((line, at));
            }
        }
    }
    if versions > 0 {
        let below = Rect { y: area.bottom() - versions, height: versions, ..area };
        part.versions_rule = Some(below.y);
        draw_versions(view, below, &mut painter);
    }
}

fn draw_versions(view: Option<&ProposalView>, area: Rect, painter: &mut Painter<'_>) {
    Title::of("Versions", false).draw(painter, area.x, area.y, area.width);
    let Some(view) = view else { return };
    let mut rows: Vec<(String, &str, String, String, Role)> = Vec::new();
    let summary = &view.summary;
    if summary.state == ProposalState::Waiting {
        let next = view.versions.len() + 1;
        rows.push((
            format!("v{next}"),
            "proposed",
            String::new(),
            day(summary.proposed_at_ms),
            Role::Waiting,
        ));
    }
    for version in view.versions.iter().rev() {
        let digest: String = version.digest.to_string().chars().take(6).collect();
        let who = version.by.as_deref().unwrap_or(if version.number == 1 { "original" } else { "edited" });
        let when = version.at_ms.map(day).unwrap_or_default();
        let role = if version.current { Role::Strong } else { Role::Text };
        let state = match (version.current, version.rollback) {
            (true, _) => "now".to_owned(),
            (false, true) => "rollback".to_owned(),
            (false, false) => digest,
        };
        rows.push((format!("v{}", version.number), who, state, when, role));
    }
    for ((number, who, state, when, role), y) in rows.into_iter().zip(area.y + 1..area.bottom()) {
        painter.put(area.x + 3, y, &number, role, 4);
        painter.put_cut(area.x + 7, y, &shown(who), Role::Text, 9);
        painter.put(area.x + 17, y, &state, Role::Muted, 8);
        painter.right(area.right().saturating_sub(2), y, &when, Role::Muted);
    }
}

fn draw_row(
    one: &ProposalSummary,
    line: Rect,
    here: bool,
    focused: bool,
    clock_ms: i64,
    painter: &mut Painter<'_>,
) {
    if here {
        painter.select(line, focused);
    }
    let (glyph, role) = sign(one.state, painter.glyphs);
    painter.put(line.x + 3, line.y, glyph, role, 1);
    let end = line.right().saturating_sub(2);
    let at_ms = one.rollback.as_ref().or(one.decision.as_ref()).map_or(one.proposed_at_ms, |done| done.at_ms);
    painter.right(end, line.y, &age(clock_ms.saturating_sub(at_ms)), Role::Muted);
    let gain_end = end.saturating_sub(AGE_WIDTH);
    let change =
        one.p_at_1.map_or_else(|| painter.glyphs.dot.to_owned(), |value| gain(value, painter.glyphs));
    let change_role = match one.p_at_1 {
        Some(value) if value < -5e-4 => Role::Danger,
        Some(_) => Role::Text,
        None => Role::Muted,
    };
    painter.right(gain_end, line.y, &change, change_role);
    let available = gain_end.saturating_sub(GAIN_WIDTH).saturating_sub(line.x + 5);
    let role = match (here, one.state) {
        (true, _) | (_, ProposalState::Waiting) => Role::Strong,
        (_, ProposalState::RolledBack) => Role::Muted,
        _ => Role::Text,
    };
    painter.put_cut(line.x + 5, line.y, &shown(one.skill_id.as_str()), role, available);
}
