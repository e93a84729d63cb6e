//! Draws the result list: hits and sidecars in the order of the answer with bars on one fixed scale, then what was
//! excluded.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::Focus;
use super::ask::PendingRequests;
use super::history::History;
use super::result_list::ResultList;
use super::rows::{Density, Item, Outcome, Row};
use super::view::{RANKING_DISCLAIMER, disclaimer};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::bars::{CellRange, stacked};
use crate::widgets::highlight::{excerpt_from, marked, marks_from};
use crate::widgets::{
    Painter, RichLine, Seg, Title, cells, count, counted, cut_end, cut_middle, plain_score, score, shown,
    wrap_to,
};
use skills_discovery::{Answer, Attachable, Excluded, ExcludedWhy, Filter, Fit, Hit, Mark, ScoreComponent};
use skills_registry::Catalog;
use skills_skill::AttachTarget;

/// The score of a full bar, unless the best score is higher: typing does not change the scale.
const SCALE: f64 = 3.5;

/// The note of a skill that the request does not match.
const NO_MATCH: &str = "does not match the request";

/// A row of the screen: the row of the list, and the line within it.
#[derive(Debug, Clone, Copy)]
enum Line {
    Row(usize, usize),
    Blank,
}

/// Columns and scale, the same for all rows of a frame.
struct Layout {
    density: Density,
    /// Column of names; ranks end one column before.
    name_x: u16,
    name_room: u16,
    /// Column of labels, if they have a separate one.
    label_x: Option<u16>,
    score_end: u16,
    bar: CellRange,
    /// Column of the notes of excluded skills.
    note_x: u16,
    none_fits: bool,
    filter: Filter,
}

/// Draws the list, or only its title without an answer.
pub(super) fn draw(
    list: &mut ResultList,
    asking: &PendingRequests,
    focus: Focus,
    area: Rect,
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) {
    let focused = cx.focused && matches!(focus, Focus::Results | Focus::Filter);
    list.area = area;
    let mut body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    if list.listing.first().is_some() && (focus == Focus::Filter || !list.filter.is_empty()) {
        list.filter_area = Rect { height: 1, ..body };
        let all = asking.shown().map_or(0, |s| s.answer.results.len() + s.answer.below_limit);
        let note = format!("{} of {}", count(list.listing.total()), count(all));
        list.filter.draw_filter(list.filter_area, (2, 2), &note, focus == Focus::Filter, buf, cx);
        body = Rect { y: body.y + 1, height: body.height.saturating_sub(1), ..body };
    }
    let Some(answer) = asking.shown().map(|s| &s.answer) else {
        let title = results_title(list, asking, focused, "", area.width, cx);
        title.draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
        return;
    };
    let foot = u16::from(list.folded && body.height > 8);
    let body = Rect { height: body.height - foot, ..body };
    let layout = layout(list, body, answer);
    let lines = lines(list, &layout);
    keep_cursor_visible(list, &lines, usize::from(body.height));
    let window = lines.iter().skip(list.scroll.offset).take(usize::from(body.height));
    let places = window.clone().filter_map(|line| match line {
        Line::Row(row, 0) => Some(list.rows[*row]),
        _ => None,
    });
    let places: Vec<usize> = places
        .filter_map(|row| match row {
            Row::Item(Item::Hit(place)) => Some(place),
            _ => None,
        })
        .collect();
    let range = match (places.first(), places.last()) {
        (Some(first), Some(last)) => {
            format!("{}–{} of {}", count(first + 1), count(last + 1), count(list.listing.total()))
        }
        _ => format!("{} above", count(list.listing.total())),
    };
    let mut painter = Painter::new(buf, cx);
    let range = if list.listing.total() == 0 { "" } else { &range };
    let title = results_title(list, asking, focused, range, area.width, cx);
    title.draw(&mut painter, area.x, area.y, area.width);
    let mut y = body.y;
    for line in window {
        if let Line::Row(row, part) = *line {
            let area = Rect { y, height: 1, ..body };
            if let Ok(item) = list.items.binary_search(&row) {
                list.visible.push((area, item));
            }
            draw_row(list, (row, part), &layout, asking, area, &mut painter, focused);
        }
        y += 1;
    }
    for place in places {
        list.want_place(place, asking);
    }
    if foot > 0 {
        let available = body.width.saturating_sub(4);
        painter.put(body.x + 2, body.bottom(), disclaimer(available), Role::Muted, available);
    }
    if answer.skills == 0 && list.catalog.entries.is_empty() {
        draw_no_skills(&list.catalog, body, &mut painter);
    } else if list.rows.is_empty() {
        let text = if list.listing.filter().trim().is_empty() {
            "no skill matches this request".to_owned()
        } else {
            format!("no result has “{}” in its name or description", shown(list.listing.filter().trim()))
        };
        let width = body.width.saturating_sub(4);
        for (row, line) in
            wrap_to(&[Seg::new(text, Role::Muted)], width, 2, painter.glyphs.ellipsis).iter().enumerate()
        {
            painter.line(body.x + 2, body.y + 1 + row as u16, line, width);
        }
    }
}

/// Returns the title: the list's name, the minimum score for a skill to fit, and which results are visible.
fn results_title(
    list: &ResultList,
    asking: &PendingRequests,
    focused: bool,
    range: &str,
    width: u16,
    cx: &Draw<'_>,
) -> Title {
    let answer = asking.shown().map(|s| &s.answer);
    let none = answer.is_some_and(|a| a.fit == Fit::None && !a.results.is_empty());
    let title = Title::of(if none { "Closest, none fits" } else { "Results" }, focused);
    let available = width.saturating_sub(title.name.width() as u16 + 7);
    let confidence = answer.and_then(|a| a.confidence).filter(|_| !list.folded);
    let notes = match confidence.map(|c| plain_score(c.fit_threshold, cx.glyphs)) {
        Some(from) => vec![
            format!("{} threshold {from} {} {range}", cx.glyphs.tick, cx.glyphs.dot),
            format!("{} {from} {} {range}", cx.glyphs.tick, cx.glyphs.dot),
            range.to_owned(),
        ],
        None => vec![range.to_owned()],
    };
    let note = notes.into_iter().find(|note| cells(note) <= available && !range.is_empty());
    title.note(note.unwrap_or_default())
}

fn layout(list: &ResultList, area: Rect, answer: &Answer) -> Layout {
    let best = answer.results.iter().map(|h| h.score).fold(SCALE, f64::max);
    let density =
        if list.folded { Density::Dense } else { Density::choose(&list.rows, area.width, area.height) };
    let digits = (answer.results.len() + answer.below_limit).to_string().len() as u16;
    let name_x = area.x + (digits + 2).max(4);
    // The minimum width of bars: names are truncated last.
    let bar_width = (area.width / 4).clamp(8, 24);
    let is_negative = answer.results.iter().any(|hit| hit.score < 0.0)
        || answer.attachable.iter().any(|sidecar| sidecar.score < 0.0);
    let score_width = if best >= 9.995 || is_negative { 5 } else { 4 };
    let most = area.right().saturating_sub(name_x + score_width + bar_width + 3);
    let sidecars = list.listing.first().into_iter().flat_map(|first| &first.attachable);
    let named = list.listing.hits().map(|h| (&h.skill_id, label(h)));
    let named = named.chain(sidecars.map(|s| (&s.skill_id, SIDECAR.to_owned())));
    let (mut longest, mut longest_label, mut inline) = (10, 0, 10);
    for (id, label) in named {
        let name = cells(&shown(id.as_str()));
        longest = longest.max(name);
        longest_label = longest_label.max(cells(&label));
        let with_label = name + 1 + cells(&label);
        inline = inline.max(if label == USUAL || with_label > most { name } else { with_label });
    }
    let label = longest_label;
    let labeled = longest + 2 + label <= most.min(area.width / 2);
    let used = if labeled { longest + 2 + label } else { inline.min(most) };
    let requested = area.x + area.width * 31 / 60;
    let score_end = (name_x + used + 1 + score_width).max(requested);
    let bar = CellRange {
        x: score_end + 1,
        y: area.y,
        width: area.right().saturating_sub(score_end + 2),
        scale: best,
        air: density.description() > 0,
        mark: answer.confidence.map(|c| c.fit_threshold),
    };
    let left_out = list.listing.first().into_iter().flat_map(|first| &first.excluded);
    let longest_out = left_out.map(|e| cells(&shown(e.skill_id.as_str()))).max().unwrap_or(0);
    // The name of a skill that was opened by name is not truncated.
    let opened = list.opened.as_ref().map_or(0, |opened| cells(&shown(opened.id.as_str())));
    let out_width = longest_out.clamp(14, (area.width / 3).max(14)).max(opened.min(area.width / 2));
    Layout {
        density,
        name_x,
        name_room: if labeled { longest } else { score_end.saturating_sub(name_x + 1 + score_width) },
        label_x: labeled.then(|| score_end - score_width - 1 - label),
        score_end,
        bar,
        note_x: name_x + out_width + 2,
        none_fits: answer.fit == Fit::None,
        filter: Filter::new(list.listing.filter()),
    }
}

/// Returns the screen rows of the entire list.
fn lines(list: &ResultList, layout: &Layout) -> Vec<Line> {
    let mut out = Vec::with_capacity(list.rows.len() * 2);
    let cursor_row = cursor_row(list);
    if layout.none_fits && !list.folded && !list.rows.is_empty() {
        out.push(Line::Blank);
    }
    for (index, row) in list.rows.iter().enumerate() {
        match row {
            Row::Heading(..) => {
                let blank_before = matches!(out.last(), Some(Line::Row(..)));
                if blank_before && layout.density != Density::Dense {
                    out.push(Line::Blank);
                }
                out.push(Line::Row(index, 0));
            }
            Row::Item(Item::Hit(_)) => {
                let unfolded = list.folded && Some(index) == cursor_row;
                let below = if unfolded { 3 } else { layout.density.description() };
                out.extend((0..=below).map(|part| Line::Row(index, part)));
                if layout.density.gap() {
                    out.push(Line::Blank);
                }
            }
            Row::Item(item) => {
                out.push(Line::Row(index, 0));
                if layout.density.gap() && matches!(item, Item::Attachable(_)) {
                    out.push(Line::Blank);
                }
            }
        }
    }
    out
}

fn cursor_row(list: &ResultList) -> Option<usize> {
    list.items.get(list.cursor).copied()
}

fn keep_cursor_visible(list: &mut ResultList, lines: &[Line], height: usize) {
    list.scroll.height = height;
    let cursor = cursor_row(list);
    let of_cursor = |line: &Line| matches!(line, Line::Row(row, _) if Some(*row) == cursor);
    if list.follow
        && let Some(first) = lines.iter().position(of_cursor)
    {
        let last = lines.iter().rposition(of_cursor).unwrap_or(first);
        // Scroll the heading above the first item into view together with it.
        let first = if list.cursor == 0 { 0 } else { first };
        let (above, below) = (list.scroll.offset.saturating_sub(height), list.scroll.offset + 2 * height);
        if first < above || last >= below {
            // Show the target of a jump between its neighbors.
            list.scroll.offset = first.saturating_sub(height / 3);
        } else if first < list.scroll.offset {
            list.scroll.offset = first;
        } else if last >= list.scroll.offset + height {
            list.scroll.offset = last + 1 - height;
        }
    }
    list.scroll.offset = list.scroll.offset.min(lines.len().saturating_sub(height));
}

fn draw_row(
    list: &ResultList,
    (row, part): (usize, usize),
    layout: &Layout,
    asking: &PendingRequests,
    area: Rect,
    painter: &mut Painter<'_>,
    focused: bool,
) {
    let selected = cursor_row(list) == Some(row);
    if selected {
        painter.select(area, focused);
    }
    let Some(first) = list.listing.first() else { return };
    match list.rows[row] {
        Row::Heading(name, members) => {
            painter.put(area.x + 2, area.y, name, Role::Muted, area.width - 2);
            if members > 1 {
                painter.right(area.right() - 2, area.y, &count(members), Role::Muted);
            }
        }
        Row::Item(Item::Hit(place)) => {
            if let (0, Some(rank)) = (part, list.listing.rank(place)) {
                painter.right(layout.name_x - 1, area.y, &rank.to_string(), Role::Muted);
            }
            match list.listing.hit(place) {
                Some(hit) if part == 0 => draw_hit(hit, layout, area, painter, selected),
                Some(hit) => {
                    let below = Below { part, folded: list.folded, marks: description_marks(asking, hit) };
                    draw_below(hit, &below, layout, area, painter);
                }
                None if part == 0 => {
                    painter.put(layout.name_x, area.y, painter.glyphs.ellipsis, Role::Muted, 3);
                }
                None => {}
            }
        }
        Row::Item(Item::Attachable(index)) => {
            if let Some(sidecar) = first.attachable.get(index) {
                draw_sidecar(sidecar, layout, area, painter, selected);
            }
        }
        Row::Item(Item::Excluded(index)) => {
            let Some(excluded) = first.excluded.get(index) else { return };
            let available = area.right().saturating_sub(layout.note_x + 2);
            let note = exclusion_text(excluded, available, painter.glyphs.ellipsis);
            draw_other(excluded.skill_id.as_str(), &note, layout, area, painter);
        }
        Row::Item(Item::Copies(copies)) => {
            let sign = if list.unfolded { painter.glyphs.open } else { painter.glyphs.closed };
            let available = area.right().saturating_sub(layout.name_x + 2);
            let long = format!("{} copies or other versions, shadowed", count(copies));
            let short = format!("{} copies, shadowed", count(copies));
            let text = if cells(&long) + 2 <= available { long } else { short };
            let role = if selected { Role::Text } else { Role::Muted };
            painter.put(layout.name_x, area.y, &format!("{text} {sign}"), role, available);
        }
        Row::Item(Item::Opened) => {
            let Some(opened) = &list.opened else { return };
            let available = area.right().saturating_sub(layout.note_x + 2);
            let note = match &opened.outcome {
                Outcome::Excluded(excluded) => exclusion_text(excluded, available, painter.glyphs.ellipsis),
                Outcome::Sidecar(_) => SIDECAR.to_owned(),
                Outcome::NoMatch if available < cells(NO_MATCH) => "no match".to_owned(),
                Outcome::NoMatch => NO_MATCH.to_owned(),
            };
            draw_other(opened.id.as_str(), &note, layout, area, painter);
        }
    }
}

/// Returns the matches in a description. Semantic matches are marked only if the semantic signal mattered.
pub(super) fn description_marks(asking: &PendingRequests, hit: &Hit) -> Vec<Mark> {
    let answer = asking.shown().map(|s| &s.answer);
    let fits = answer.and_then(|a| a.confidence).is_some_and(|c| hit.score >= c.fit_threshold);
    let semantic = hit.breakdown.signals[SEMANTIC];
    let weak = !fits || semantic < MEANING_SHARE * hit.score;
    let marks = hit.description_marks.iter();
    marks.filter(|mark| !(weak && mark.signal == ScoreComponent::Semantic)).copied().collect()
}

/// A line below a hit, and the matches in its description.
struct Below {
    part: usize,
    /// Whether list and explanation share one column.
    folded: bool,
    marks: Vec<Mark>,
}

/// Draws a line below a hit: its description, or with one column the contributions of words.
fn draw_below(hit: &Hit, below: &Below, layout: &Layout, area: Rect, painter: &mut Painter<'_>) {
    let width = area.right().saturating_sub(layout.name_x + 2);
    if below.folded && below.part == 3 {
        let mut line = RichLine::default();
        for row in hit.breakdown.rows.iter().filter(|r| r.sum.abs() >= 0.005) {
            let item = [format!("{} ", shown(&row.label)), score(row.sum, painter.glyphs)];
            let wide = item.iter().map(|text| usize::from(cells(text))).sum::<usize>();
            if line.width() + wide <= usize::from(width) {
                let [label, value] = item;
                let gap = Seg::new("  ", Role::Muted);
                line.segs.extend([Seg::new(label, Role::Muted), Seg::new(value, Role::Strong), gap]);
            }
        }
        painter.line(layout.name_x, area.y, &line, width);
        return;
    }
    let role = if below.folded { Role::Text } else { Role::Muted };
    let lines = if below.folded { 2 } else { layout.density.description() };
    // A long description begins at its first match, so that its matches are visible without opening it.
    let filtered = layout.filter.ranges(&hit.description);
    let sought: Vec<Mark> = filtered
        .iter()
        .map(|r| Mark { start: r.start as u32, end: r.end as u32, signal: ScoreComponent::Description })
        .collect();
    let sought = if sought.is_empty() { &below.marks } else { &sought };
    let from = excerpt_from(&hit.description, sought, width * lines as u16);
    let (rest, marks) = (hit.description.get(from..).unwrap_or_default(), marks_from(&below.marks, from));
    let mut segs = marked(rest, &marks, role, painter.glyphs.ascii);
    if from > 0 {
        segs.insert(0, Seg::new(format!("{} ", painter.glyphs.ellipsis), role));
    }
    let wrapped = wrap_to(&segs, width, lines, painter.glyphs.ellipsis);
    if let Some(line) = wrapped.get(below.part - 1) {
        let line = RichLine::from_segs(underlined(&line.segs, &layout.filter));
        painter.line(layout.name_x, area.y, &line, width);
    }
}

/// Draws that there are no skills to rank, and where skills are searched.
fn draw_no_skills(catalog: &Catalog, area: Rect, painter: &mut Painter<'_>) {
    let (x, width) = (area.x + 2, area.width.saturating_sub(4));
    let roots = &catalog.roots;
    let text = if roots.is_empty() {
        "no skills found".to_owned()
    } else {
        format!("no skills found; searched in {}:", counted(roots.len(), "place"))
    };
    painter.put_cut(x, area.y + 1, &text, Role::Text, width);
    let rows = usize::from(area.height.saturating_sub(3));
    for (row, root) in roots.iter().take(rows).enumerate() {
        let label = shown(&root.title());
        let label = cut_middle(&label, width.saturating_sub(2), painter.glyphs.ellipsis);
        painter.put(x + 2, area.y + 2 + row as u16, &label, Role::Muted, width);
    }
}

/// Draws that there is no answer: the error, or what to do.
pub(super) fn draw_no_request(
    asking: &PendingRequests,
    history: &History,
    skills: usize,
    area: Rect,
    painter: &mut Painter<'_>,
) {
    let (x, mut y, width) = (area.x + 2, area.y + 1, area.width.saturating_sub(4));
    if let Some(error) = asking.error() {
        let x = painter.put(x, y, painter.glyphs.bad, Role::Danger, 1) + 1;
        for line in wrap_to(&[Seg::new(shown(&error.message), Role::Text)], width - 2, 4, "…") {
            painter.line(x, y, &line, width - 2);
            y += 1;
        }
        return;
    }
    let skills = counted(skills, "skill");
    for text in [
        format!("Describe your task; results for {skills} update as you type."),
        RANKING_DISCLAIMER.to_owned(),
    ] {
        for line in wrap_to(&[Seg::new(text, Role::Muted)], width, 3, painter.glyphs.ellipsis) {
            painter.line(x, y, &line, width);
            y += 1;
        }
    }
    let earlier: Vec<&String> = history.entries().iter().rev().take(8).collect();
    if !earlier.is_empty() && y + 3 < area.bottom() {
        y += 1;
        painter.put(x, y, "recent requests", Role::Muted, width);
        for intent in earlier {
            y += 1;
            if y < area.bottom() {
                let text = shown(intent);
                painter.put_cut(x + 2, y, &text, Role::Text, width - 2);
            }
        }
    }
}

/// The label of a sidecar's row.
const SIDECAR: &str = "sidecar";
/// Index of the semantic signal.
const SEMANTIC: usize = 3;
/// Minimum share of a score for semantic matches to be marked.
const MEANING_SHARE: f64 = 0.15;

/// The role of most skills: the first label to be dropped if space is short.
const USUAL: &str = "procedure";

/// Returns the role, and the status if notable.
fn label(hit: &Hit) -> String {
    let role = hit.role.to_string();
    match (hit.status.as_str(), role.as_str()) {
        ("stable", _) => role,
        (status, USUAL) => shown(status),
        (status, _) => format!("{role}, {}", shown(status)),
    }
}

/// Underlines the matches of a filter in the segments of a line.
fn underlined(segs: &[Seg], filter: &Filter) -> Vec<Seg> {
    let mut out = Vec::new();
    for seg in segs {
        let mut at = 0;
        for range in filter.ranges(&seg.text) {
            let (before, inside) = (seg.text.get(at..range.start), seg.text.get(range.clone()));
            out.push(seg.with_text(before.unwrap_or_default()));
            out.push(seg.with_text(inside.unwrap_or_default()).with(Modifier::UNDERLINED | Modifier::BOLD));
            at = range.end;
        }
        out.push(seg.with_text(seg.text.get(at..).unwrap_or_default()));
    }
    out
}

/// Draws name, label and score of a row.
fn draw_named(
    (id, label): (&str, &str),
    value: f64,
    role: Role,
    layout: &Layout,
    y: u16,
    painter: &mut Painter<'_>,
) {
    let (x, available) = (layout.name_x, layout.name_room);
    let name = shown(id);
    let name = Seg::new(cut_end(&name, available, painter.glyphs.ellipsis).into_owned(), role);
    let name = RichLine::from_segs(underlined(&[name], &layout.filter));
    let end = painter.line(x, y, &name, available);
    match layout.label_x {
        Some(x) => {
            painter.put(x, y, label, Role::Muted, cells(label));
        }
        None if label != USUAL && end + 1 + cells(label) <= x + available => {
            painter.put(end + 1, y, label, Role::Muted, available);
        }
        None => {}
    }
    painter.right(layout.score_end, y, &plain_score(value, painter.glyphs), role);
}

fn draw_hit(hit: &Hit, layout: &Layout, area: Rect, painter: &mut Painter<'_>, selected: bool) {
    let role = match (selected, layout.none_fits) {
        (true, false) => Role::Strong,
        (_, true) => Role::Muted,
        (false, false) => Role::Text,
    };
    draw_named((hit.skill_id.as_str(), &label(hit)), hit.score, role, layout, area.y, painter);
    let bar = CellRange { y: area.y, ..layout.bar };
    stacked(painter, bar, &hit.breakdown.signals);
    if let Some(from) = bar.mark.filter(|from| hit.score < *from) {
        painter.put(bar.column(from), area.y, painter.glyphs.tick, Role::Faint, 1);
    }
}

/// Draws a sidecar at its position by score, with its targets instead of a bar.
fn draw_sidecar(
    sidecar: &Attachable,
    layout: &Layout,
    area: Rect,
    painter: &mut Painter<'_>,
    selected: bool,
) {
    let role = if selected { Role::Strong } else { Role::Muted };
    draw_named((sidecar.skill_id.as_str(), SIDECAR), sidecar.score, role, layout, area.y, painter);
    let available = area.right().saturating_sub(layout.bar.x + 1);
    let long = targets(&sidecar.attach_targets, true);
    let note = if cells(&long) <= available { long } else { targets(&sidecar.attach_targets, false) };
    painter.put_cut(layout.bar.x, area.y, &note, Role::Muted, available);
}

/// Draws a row without a score: its name and the reason.
fn draw_other(id: &str, note: &str, layout: &Layout, area: Rect, painter: &mut Painter<'_>) {
    let x = layout.name_x;
    let available = layout.note_x.saturating_sub(x + 2);
    let name = shown(id);
    painter.put_cut(x, area.y, &name, Role::Muted, available);
    let available = area.right().saturating_sub(layout.note_x + 2);
    painter.put_cut(layout.note_x, area.y, note, Role::Muted, available);
}

/// Formats `a copy, shadowed by ~/.claude/skills`: words are dropped first, then the path is truncated in its middle.
fn exclusion_text(excluded: &Excluded, available: u16, ellipsis: &str) -> String {
    let why = shown(&excluded.why);
    let ExcludedWhy::Shadowed(place) = &excluded.reason else { return why };
    let place = shown(place);
    for message in [why.strip_suffix(place.as_str()).unwrap_or("shadowed by "), "shadowed by ", "by "] {
        let left = available.saturating_sub(cells(message));
        if left >= cells(&place).min(16) {
            return format!("{message}{}", cut_middle(&place, left, ellipsis));
        }
    }
    "shadowed".to_owned()
}

/// Formats `attach to output, artifact`; in narrow lists `on output, artifact`.
fn targets(targets: &[AttachTarget], long: bool) -> String {
    let words: Vec<String> = targets.iter().map(ToString::to_string).collect();
    if words.is_empty() {
        return "has no target".to_owned();
    }
    format!("{} {}", if long { "attach to" } else { "to" }, words.join(", "))
}
