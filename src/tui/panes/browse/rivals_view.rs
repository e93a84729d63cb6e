//! Draws the sub-tab of rivals: how many requests made from the description the skill keeps, and who wins the others.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::collisions_view::clause_line;
use super::detail::Detail;
use crate::pane::{Draw, Effect};
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Seg, cells, cut_end, shown, wrap};
use skills_api::SkillRivals;
use skills_discovery::GroupKind;
use skills_skill::SkillId;

/// Draws the rivals; returns the note of the title.
pub(super) fn draw(
    detail: &mut Detail,
    id: &SkillId,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> String {
    if detail.asked_rivals.insert(id.clone()) {
        detail.wanted.push(Effect::Rivals(id.clone()));
    }
    let mut painter = Painter::new(buf, cx);
    let width = area.width.saturating_sub(4);
    let rivals = match detail.rivals.get(id) {
        Some(Ok(rivals)) => rivals.clone(),
        Some(Err(error)) => {
            let segs = [Seg::new(shown(&error.message), Role::Danger)];
            for (line, y) in wrap(&segs, width).into_iter().zip(area.y..area.bottom()) {
                painter.line(area.x + 2, y, &RichLine::from_segs(line), width);
            }
            return String::new();
        }
        None => {
            painter.put(area.x + 2, area.y, "ranking requests made from the description", Role::Muted, width);
            return String::new();
        }
    };
    let report = &rivals.report;
    detail.rival = detail.rival.min(report.rivals.len().saturating_sub(1));
    let (lines, first) = lines(&rivals, width, &painter);
    let chosen = first + detail.rival;
    let height = usize::from(area.height);
    let scroll = &mut detail.text;
    scroll.height = height;
    if !report.rivals.is_empty() {
        if chosen >= scroll.offset + height {
            scroll.offset = chosen + 1 - height;
        }
        scroll.offset = scroll.offset.min(if detail.rival == 0 { 0 } else { chosen });
    }
    scroll.offset = scroll.offset.min(lines.len().saturating_sub(height));
    for (at, line) in lines.iter().enumerate().skip(scroll.offset).take(height) {
        let row = Rect { y: area.y + (at - scroll.offset) as u16, height: 1, ..area };
        if at == chosen && focused && !report.rivals.is_empty() {
            painter.select(row, true);
        }
        painter.line(row.x + 2, row.y, line, width);
    }
    match report.not_ranked {
        Some(_) => "not ranked".to_owned(),
        None => format!("wins {} of {} requests", report.won, report.made),
    }
}

/// Returns all lines, and the index of the line of the first rival.
fn lines(rivals: &SkillRivals, width: u16, painter: &Painter<'_>) -> (Vec<RichLine>, usize) {
    let report = &rivals.report;
    let mut out = Vec::new();
    if let Some(why) = &report.not_ranked {
        let text = format!("not ranked: {}", shown(why));
        out.extend(wrap(&[Seg::new(text, Role::Warning)], width).into_iter().map(RichLine::from_segs));
    } else {
        out.push(RichLine::of("probe requests per clause that the skill wins", Role::Muted));
        out.extend(report.clauses.iter().map(|clause| clause_line("", clause, width, painter)));
    }
    if report.golden > 0 {
        let text = format!("golden queries: {} of {} passed", report.golden_won, report.golden);
        out.push(RichLine::of(text, Role::Text));
    }
    out.push(RichLine::default());
    let name_width = width.saturating_sub(34).clamp(10, 32);
    if report.rivals.is_empty() {
        out.push(RichLine::of(
            "no rivals: no other skill wins a request or is close in meaning",
            Role::Muted,
        ));
    } else {
        let name = format!("{:<width$}", "rival", width = usize::from(name_width));
        let head = format!("{name}{:>8}{:>6}{:>9}{:>11}", "lost", "won", "golden", "similarity");
        out.push(RichLine::of(head, Role::Muted));
    }
    let first = out.len();
    for rival in &report.rivals {
        let name = shown(rival.skill_id.as_str());
        let name = cut_end(&name, name_width, painter.glyphs.ellipsis).into_owned();
        let padding = " ".repeat(usize::from(name_width.saturating_sub(cells(&name))));
        let is_strong = rival.lost > 0 || !rival.golden_lost.is_empty();
        let plus = if is_strong { Modifier::BOLD } else { Modifier::empty() };
        let golden = format!("-{}/+{}", rival.golden_lost.len(), rival.golden_won.len());
        let figure =
            |value: usize| if value == 0 { painter.glyphs.dot.to_owned() } else { value.to_string() };
        out.push(RichLine::from_segs(vec![
            Seg::new(format!("{name}{padding}"), Role::Text).with(plus),
            Seg::new(
                format!("{:>8}", figure(rival.lost)),
                if rival.lost > 0 { Role::Warning } else { Role::Muted },
            ),
            Seg::new(format!("{:>6}", figure(rival.won)), Role::Text),
            Seg::new(
                format!("{golden:>9}"),
                if rival.golden_lost.is_empty() { Role::Muted } else { Role::Warning },
            ),
            Seg::new(format!("{:>11.2}", rival.similarity), Role::Muted),
        ]));
    }
    if !report.lost.is_empty() {
        out.push(RichLine::default());
        out.push(RichLine::of("lost requests, and who wins them", Role::Muted));
    }
    for lost in &report.lost {
        let won = lost.won.as_ref().map_or_else(|| "no skill".to_owned(), |won| shown(won.as_str()));
        let available = width.saturating_sub(cells(&won) + 2);
        let query = shown(&lost.query);
        out.push(RichLine::from_segs(vec![
            Seg::new(cut_end(&query, available, painter.glyphs.ellipsis).into_owned(), Role::Text),
            Seg::new(format!("  {won}"), Role::Warning),
        ]));
    }
    for group in &rivals.groups {
        let others = group.skills.iter().filter(|id| **id != report.skill_id).map(|id| shown(id.as_str()));
        let others = others.collect::<Vec<_>>().join(", ");
        let text = match group.kind {
            GroupKind::Identical => format!("same description as {others}"),
            GroupKind::Template => format!("same template as {others}"),
            GroupKind::Shadowed => format!("same name as {others}"),
        };
        out.push(RichLine::default());
        out.extend(wrap(&[Seg::new(text, Role::Warning)], width).into_iter().map(RichLine::from_segs));
    }
    (out, first)
}
