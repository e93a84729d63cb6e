//! Draws the right part: the reason for the result of the query under the cursor, and advice; pairs of skills that win
//! queries of each other; the precision of each skill.

use std::sync::Arc;

use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::detail::QueryDetail;
use super::query_list::QueryList;
use super::{TABS, Tab};
use crate::action::{Action, Context};
use crate::golden_requests::GoldenMeasurement;
use crate::panes::discover::{compare_hits, draw_differences, draw_scored};
use crate::theme::Role;
use crate::widgets::{
    Painter, RichLine, Seg, Title, cells, cut_end, plain_score, shown, signed, signed_count, wrap, wrap_to,
};
use skills_api::{
    Confusion, Error, GoldenExplanation, GoldenResult, GoldenState, SkillPrecision, rejection_of,
};
use skills_discovery::Advice;
use skills_registry::Catalog;

/// Rows of a pair and of the gap after it.
const PAIR_HEIGHT: usize = 3;
/// Cells after the columns of passed queries and of the precision, in the tab of skills: "wrong wins" on two rows and a gap.
const PASSED_END: u16 = 7;
const PRECISION_END: u16 = 15;

/// Draws the panel; `error` is why the golden set can no longer be read.
pub(super) fn draw(
    detail: &mut QueryDetail,
    list: &QueryList,
    catalog: &Catalog,
    error: Option<&Error>,
    is_focused: bool,
    area: Rect,
    painter: &mut Painter<'_>,
) {
    let Some(measured) = &list.measured else { return };
    detail.area = area;
    draw_tabs(detail, measured, is_focused, area, painter);
    let inside = Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(3),
        height: area.height.saturating_sub(1),
    };
    match (detail.tab, list.result()) {
        (Tab::Query, Some(result)) => {
            draw_explanation(detail, result, catalog, error, inside, painter);
        }
        (Tab::Query, None) => {
            painter.put(inside.x, inside.y + 1, "no query selected", Role::Muted, inside.width);
        }
        (Tab::Confusions, _) => draw_confusions(detail, &measured.report.confusions, inside, painter),
        (Tab::Skills, _) => draw_skills(detail, &measured.report.by_skill, is_focused, inside, painter),
    }
}

fn draw_tabs(
    detail: &mut QueryDetail,
    measured: &GoldenMeasurement,
    is_focused: bool,
    area: Rect,
    painter: &mut Painter<'_>,
) {
    let mut title = Title::of("", is_focused);
    title.name.segs.clear();
    let mut x = area.x + 2;
    for tab in TABS {
        let name = match tab {
            Tab::Query => "Query".to_owned(),
            Tab::Confusions => format!("Confusions {}", measured.report.confusions.len()),
            Tab::Skills => format!("Skills {}", measured.report.by_skill.len()),
        };
        if tab != TABS[0] {
            title.name.segs.push(Seg::new("  ", Role::Text));
            x += 2;
        }
        let seg = if tab == detail.tab {
            Seg::new(name.clone(), Role::Strong).with(Modifier::BOLD | Modifier::UNDERLINED)
        } else {
            Seg::new(name.clone(), Role::Muted)
        };
        title.name.segs.push(seg);
        detail.tabs.push((Rect::new(x, area.y, cells(&name), 1), tab));
        x += cells(&name);
    }
    title.draw(painter, area.x, area.y, area.width);
}

fn draw_explanation(
    detail: &mut QueryDetail,
    result: &GoldenResult,
    catalog: &Catalog,
    error: Option<&Error>,
    area: Rect,
    painter: &mut Painter<'_>,
) {
    // Golden sets that cannot be read any more have no explanations.
    let explanation = match error {
        Some(error) => Some(Err(error.message.clone())),
        None => detail.explanation(&result.query),
    };
    let unknown = result.query.expect.iter().find(|id| catalog.by_id(id.as_str()).is_none());
    let unknown =
        unknown.map(|id| rejection_of(catalog, id).unwrap_or_else(|| format!("skill `{id}` not found")));
    let query = [Seg::new(shown(&result.query.query), Role::Strong)];
    let mut y = area.y + 1;
    // The complete query where there is room.
    let most = usize::from(area.height / 4).max(3);
    for line in wrap_to(&query, area.width, most, painter.glyphs.ellipsis) {
        painter.line(area.x, y, &line, area.width);
        y += 1;
    }
    y += put_pairs(&facts(result, painter), area, y, painter) + 1;
    match explanation {
        None => drop(painter.put(area.x, y, "reading the score breakdowns", Role::Muted, area.width)),
        Some(Err(message)) => {
            painter.put(area.x, y, painter.glyphs.bad, Role::Danger, 1);
            let width = area.width.saturating_sub(2);
            let lines = wrap(&[Seg::new(shown(&message), Role::Text)], width);
            for (segs, y) in lines.into_iter().zip(y..area.bottom()) {
                painter.line(area.x + 2, y, &RichLine::from_segs(segs), width);
            }
        }
        Some(Ok(explanation)) => {
            draw_reasons(result, &explanation, unknown.as_deref(), area, y, painter);
        }
    }
}

fn draw_confusions(detail: &mut QueryDetail, pairs: &[Confusion], area: Rect, painter: &mut Painter<'_>) {
    let text =
        if pairs.is_empty() { "no skill wins queries of another" } else { "queries won from each other" };
    painter.put(area.x, area.y, text, Role::Muted, area.width);
    let rows = usize::from(area.height.saturating_sub(2));
    detail.scroll.height = rows;
    detail.scroll.roll(0, pairs.len() * PAIR_HEIGHT);
    let skipped = detail.scroll.offset.div_ceil(PAIR_HEIGHT);
    for (pair, y) in
        pairs.iter().skip(skipped).zip((area.y + 2..area.bottom().saturating_sub(1)).step_by(PAIR_HEIGHT))
    {
        draw_pair(pair, area, y, painter);
    }
}

fn draw_skills(
    detail: &mut QueryDetail,
    skills: &[SkillPrecision],
    focused: bool,
    area: Rect,
    painter: &mut Painter<'_>,
) {
    let end = area.right();
    // The name has the space that `wrong wins` would take on one row.
    painter.right(end, area.y, "wrong", Role::Muted);
    painter.put(area.x, area.y + 1, "skill", Role::Muted, area.width);
    painter.right(end, area.y + 1, "wins", Role::Muted);
    painter.right(end - PASSED_END, area.y + 1, "passed", Role::Muted);
    painter.right(end - PRECISION_END, area.y + 1, "P@1", Role::Muted);
    detail.scroll.follow(skills.len(), usize::from(area.height.saturating_sub(2)));
    let name = area.width.saturating_sub(PRECISION_END + 7);
    let shown_skills = skills.iter().enumerate().skip(detail.scroll.offset);
    for ((at, skill), y) in shown_skills.zip(area.y + 2..area.bottom()) {
        let row = Rect { x: area.x - 2, y, width: area.width + 3, height: 1 };
        detail.skills.push((row, at));
        if at == detail.scroll.cursor {
            painter.select(row, focused);
        }
        let is_failing = skill.won < skill.queries || skill.wins_wrongly > 0;
        let role = if is_failing { Role::Text } else { Role::Muted };
        let id = shown(skill.skill_id.as_str());
        painter.put_cut(area.x, y, &id, role, name);
        if skill.queries > 0 {
            let won = format!("{}/{}", skill.won, skill.queries);
            painter.right(end - PASSED_END, y, &won, role);
            painter.right(
                end - PRECISION_END,
                y,
                &format!("{:.3}", skill.p_at_1),
                if is_failing { Role::Strong } else { role },
            );
        }
        let wrongly = if skill.wins_wrongly == 0 {
            painter.glyphs.dot.to_owned()
        } else {
            skill.wins_wrongly.to_string()
        };
        painter.right(end, y, &wrongly, role);
    }
}

/// Returns what is known without the breakdowns: labels, values and their roles.
fn facts(result: &GoldenResult, painter: &Painter<'_>) -> Vec<(&'static str, String, Role)> {
    let dot = painter.glyphs.dot;
    let rank = match result.rank {
        Some(rank) => format!(" {dot} rank {rank}"),
        None if result.state == GoldenState::Lost => format!(" {dot} not ranked"),
        None => String::new(),
    };
    let first = result.first.as_ref().map_or_else(|| "no result".to_owned(), |id| shown(id.as_str()));
    let by = result.by.map(|by| match result.state {
        GoldenState::Lost => format!(" {dot} ahead by {}", plain_score(by, painter.glyphs)),
        GoldenState::FalseTrigger => {
            format!(" {dot} {} above the threshold", plain_score(by, painter.glyphs))
        }
        GoldenState::Won => format!(" {dot} lead {}", signed(by, painter.glyphs)),
        GoldenState::Rejected => String::new(),
    });
    let fits = if result.fits || result.first.is_none() { "" } else { " (does not fit)" };
    let role = if result.state.is_failing() { Role::Danger } else { Role::Success };
    let state = match result.state {
        GoldenState::Lost => "missed",
        GoldenState::FalseTrigger => "false trigger",
        GoldenState::Won => "passed",
        GoldenState::Rejected => "rejected, as expected",
    };
    vec![
        ("", state.to_owned(), role),
        ("expects", shown(&result.query.expectation()) + &rank, Role::Text),
        ("first", format!("{first}{fits}{}", by.unwrap_or_default()), Role::Text),
    ]
}

/// Draws labels and values below each other; returns the number of rows.
fn put_pairs(pairs: &[(&str, String, Role)], area: Rect, y: u16, painter: &mut Painter<'_>) -> u16 {
    const LABEL: u16 = 9;
    let mut row = y;
    for (label, value, role) in pairs {
        let indent = if label.is_empty() { 0 } else { LABEL };
        painter.put(area.x, row, label, Role::Muted, LABEL);
        let segs = [Seg::new(value.clone(), *role)];
        for line in wrap_to(&segs, area.width.saturating_sub(indent), 2, painter.glyphs.ellipsis) {
            painter.line(area.x + indent, row, &line, area.width.saturating_sub(indent));
            row += 1;
        }
    }
    row - y
}

/// Draws the scores of the expected and the first skill, their difference by words, and the advice at the bottom.
fn draw_reasons(
    result: &GoldenResult,
    explanation: &Arc<GoldenExplanation>,
    unknown: Option<&str>,
    area: Rect,
    mut y: u16,
    painter: &mut Painter<'_>,
) {
    let foot = explanation.advice.as_ref().map(|advice| advice_lines(advice, area.width, painter));
    let foot_height = foot.as_ref().map_or(0, |lines| lines.len() as u16 + 1);
    let bottom = area.bottom().saturating_sub(foot_height);
    let (expected, first) = (explanation.expected.as_ref(), explanation.first.as_ref());
    let other = first.filter(|first| expected.is_none_or(|expected| expected.skill_id != first.skill_id));
    let best = expected.into_iter().chain(first).map(|hit| hit.score).fold(3.5, f64::max);
    let names = expected.into_iter().chain(other).map(|hit| cells(&shown(hit.skill_id.as_str())));
    let name = names.max().unwrap_or(0).min(area.width / 2);
    for (hit, role) in
        expected.map(|hit| (hit, Role::Strong)).into_iter().chain(other.map(|hit| (hit, Role::Text)))
    {
        if y < bottom {
            draw_scored(hit, role, area, y, (best, name, true), painter);
        }
        y += 2;
    }
    if let (Some(expected), Some(other)) = (expected, other) {
        let max_width = bottom.saturating_sub(y + 1);
        if max_width >= 2 {
            let text = format!(
                "{} compared with {}",
                shown(expected.skill_id.as_str()),
                shown(other.skill_id.as_str())
            );
            painter.put_cut(area.x, y, &text, Role::Muted, area.width);
            let comparison =
                compare_hits(expected, other, &explanation.words, usize::from(max_width).min(10));
            draw_differences(&comparison, area, y + 1, painter);
        }
    } else if expected.is_none() && !result.query.expect.is_empty() && y < bottom {
        let text = match unknown {
            Some(why) => format!("the expected skill is not ranked: {}", shown(why)),
            None => "the expected skill is not ranked: it shares no term with the query".to_owned(),
        };
        for (line, row) in wrap_to(&[Seg::new(text, Role::Text)], area.width, 4, painter.glyphs.ellipsis)
            .iter()
            .zip(y..bottom)
        {
            painter.line(area.x, row, line, area.width);
        }
    }
    if let Some(lines) = foot {
        for (line, y) in lines.iter().zip(area.bottom().saturating_sub(lines.len() as u16)..) {
            painter.line(area.x, y, line, area.width);
        }
    } else if result.state == GoldenState::Lost && bottom > y && (unknown.is_none() || expected.is_some()) {
        let text = "no added words win this query without losing others";
        let lines = wrap_to(&[Seg::new(text, Role::Muted)], area.width, 2, painter.glyphs.ellipsis);
        for (line, y) in lines.iter().zip(area.bottom().saturating_sub(lines.len() as u16)..) {
            painter.line(area.x, y, line, area.width);
        }
    }
}

/// Formats an advice: one bold line, and its effect below.
fn advice_lines(advice: &Advice, width: u16, painter: &Painter<'_>) -> Vec<RichLine> {
    let dot = painter.glyphs.dot;
    let main = format!("add “{}” to the description", shown(&advice.word));
    let mut effect = format!(
        "{}, {} {dot} {} won, {} lost",
        signed(advice.gain, painter.glyphs),
        advice.new_rank(),
        advice.won,
        advice.lost
    );
    if advice.false_triggers != 0 {
        let triggers = signed_count(advice.false_triggers, painter.glyphs);
        effect += &format!(" {dot} {triggers} false triggers");
    }
    let key = painter.key_word(Action::Draft, &[Context::Golden]) + " ";
    let key_width = cells(&key) + cells("draft");
    let gap = width.saturating_sub(cells(&main) + key_width);
    let key = [Seg::new(key, Role::Key), Seg::new("draft", Role::Muted)];
    let main = Seg::new(main, Role::Strong).with(Modifier::BOLD);
    let effect = [Seg::new(effect, Role::Muted)];
    if gap >= 2 {
        // The key is at the right end.
        let mut segs = vec![main, Seg::new(" ".repeat(usize::from(gap)), Role::Text)];
        segs.extend(key);
        let mut lines = vec![RichLine::from_segs(segs)];
        lines.extend(wrap_to(&effect, width, 2, painter.glyphs.ellipsis));
        return lines;
    }
    let mut lines = wrap_to(&[main], width, 2, painter.glyphs.ellipsis);
    lines.extend(wrap_to(&effect, width, 2, painter.glyphs.ellipsis));
    lines.push(RichLine::from_segs(key.to_vec()));
    lines
}

/// Draws a pair of skills and, from a center line, one block for each query that the skill on that side wins.
fn draw_pair(pair: &Confusion, area: Rect, y: u16, painter: &mut Painter<'_>) {
    let half = area.width / 2;
    let (a, b) = (shown(pair.a.as_str()), shown(pair.b.as_str()));
    let max_width = half.saturating_sub(1);
    painter.put_cut(area.x, y, &a, Role::Text, max_width);
    painter.right(area.right(), y, &cut_end(&b, max_width, painter.glyphs.ellipsis), Role::Text);
    let center = area.x + half;
    painter.put(area.x, y + 1, &pair.a_wins.to_string(), Role::Muted, 4);
    painter.right(area.right(), y + 1, &pair.b_wins.to_string(), Role::Muted);
    painter.put(center, y + 1, painter.glyphs.bar, Role::Rule, 1);
    let sign = if painter.glyphs.ascii { "#" } else { "▆" };
    let most = usize::from(half.saturating_sub(6) / 2);
    for at in 0..pair.a_wins.min(most) {
        painter.put(center - 2 - 2 * at as u16, y + 1, sign, Role::Level2, 1);
    }
    for at in 0..pair.b_wins.min(most) {
        painter.put(center + 2 + 2 * at as u16, y + 1, sign, Role::Level1, 1);
    }
}
