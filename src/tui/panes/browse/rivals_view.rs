//! Draws the sub-tab of rivals: how many requests made from the description the skill keeps, and who wins the others.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::collisions_view::clause_line;
use super::detail::Detail;
use crate::pane::{Draw, Effect};
use crate::theme::Role;
use crate::widgets::format::plain_score;
use crate::widgets::{Painter, RichLine, Seg, cells, counted, cut_end, shown, wrap};
use skills_api::SkillRivals;
use skills_discovery::GroupKind;
use skills_skill::SkillId;

/// Widths of the columns after the name: lost and won requests, golden queries, similarity.
const WIDE_COLUMNS: [usize; 4] = [8, 6, 9, 11];
const NARROW_COLUMNS: [usize; 4] = [5, 5, 7, 7];
/// Minimum width of a name.
const MIN_NAME: u16 = 10;

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
            painter.put(
                area.x + 2,
                area.y,
                "ranking the requests made from the description",
                Role::Muted,
                width,
            );
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
        None => format!("wins {} of {}", report.won, counted(report.made, "request")),
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
        out.push(RichLine::of("probe requests won, by clause", Role::Muted));
        out.extend(report.clauses.iter().map(|clause| clause_line("", clause, width, painter)));
    }
    if report.golden > 0 {
        let text = format!("golden queries: {} of {} passed", report.golden_won, report.golden);
        out.push(RichLine::of(text, Role::Text));
    }
    out.push(RichLine::default());
    // Golden queries have a column only if one of them changes its winner.
    let has_golden =
        report.rivals.iter().any(|rival| !(rival.golden_lost.is_empty() && rival.golden_won.is_empty()));
    let columns = |[lost, won, golden, similarity]: [usize; 4]| {
        [lost, won, if has_golden { golden } else { 0 }, similarity]
    };
    let of_name = |columns: [usize; 4]| {
        width.checked_sub(columns.iter().sum::<usize>() as u16).filter(|name| *name >= MIN_NAME)
    };
    let is_narrow = of_name(columns(WIDE_COLUMNS)).is_none();
    let widths = columns(if is_narrow { NARROW_COLUMNS } else { WIDE_COLUMNS });
    let name_width = of_name(widths).unwrap_or(MIN_NAME).min(32);
    if report.rivals.is_empty() {
        let text = "no rivals: no other skill wins a request or is close in meaning";
        out.extend(wrap(&[Seg::new(text, Role::Muted)], width).into_iter().map(RichLine::from_segs));
    } else {
        let name = format!("{:<width$}", "rival", width = usize::from(name_width));
        let heads = ["lost", "won", "golden", if is_narrow { "sim." } else { "similarity" }];
        let heads = heads.into_iter().zip(widths).filter(|(_, width)| *width > 0);
        let heads: String = heads.map(|(head, width)| format!("{head:>width$}")).collect();
        out.push(RichLine::of(name + &heads, Role::Muted));
    }
    let first = out.len();
    for rival in &report.rivals {
        let name = shown(rival.skill_id.as_str());
        let name = cut_end(&name, name_width, painter.glyphs.ellipsis).into_owned();
        let padding = " ".repeat(usize::from(name_width.saturating_sub(cells(&name))));
        let is_strong = rival.lost > 0 || !rival.golden_lost.is_empty();
        let plus = if is_strong { Modifier::BOLD } else { Modifier::empty() };
        let golden = match (rival.golden_lost.len(), rival.golden_won.len()) {
            (0, 0) => painter.glyphs.dot.to_owned(),
            (lost, won) => format!("-{lost}/+{won}"),
        };
        let figure =
            |value: usize| if value == 0 { painter.glyphs.dot.to_owned() } else { value.to_string() };
        let loss = |is_lost: bool| if is_lost { Role::Warning } else { Role::Muted };
        let figures = [
            (figure(rival.lost), loss(rival.lost > 0)),
            (figure(rival.won), Role::Text),
            (golden, loss(!rival.golden_lost.is_empty())),
            (plain_score(rival.similarity, painter.glyphs), Role::Muted),
        ];
        let figures = figures.into_iter().zip(widths).filter(|(_, width)| *width > 0);
        let mut segs = vec![Seg::new(format!("{name}{padding}"), Role::Text).with(plus)];
        segs.extend(figures.map(|((text, role), width)| Seg::new(format!("{text:>width$}"), role)));
        out.push(RichLine::from_segs(segs));
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
