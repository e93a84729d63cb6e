//! The result list: hits in the order of their scores with bars on one fixed scale, then what can be attached and
//! what was left out.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::rows::{Density, Item, Row};
use super::view::{DISCLAIMER, disclaimer};
use super::{Discover, Part};
use crate::discovery::{Answer, Excluded, ExcludedWhy, Fit, Group, Hit};
use crate::skill::AttachTarget;
use crate::tui::pane::Draw;
use crate::tui::theme::Role;
use crate::tui::widgets::bars::{Place, stacked};
use crate::tui::widgets::figures::{count, counted, plain_score, score};
use crate::tui::widgets::marked::{excerpt_from, marked, marks_from};
use crate::tui::widgets::measure::{cells, cut_end, cut_middle, shown};
use crate::tui::widgets::pen::Pen;
use crate::tui::widgets::rich::{RichLine, Seg};
use crate::tui::widgets::rule::Title;
use crate::tui::widgets::wrap::wrap_to;

/// What a full bar means, unless the best score is higher: typing does not rescale.
const SCALE: f64 = 3.5;

/// A row of the screen: which row of the list, and which of its lines.
#[derive(Debug, Clone, Copy)]
enum Line {
    Row(usize, usize),
    Blank,
}

/// Columns and scale, the same for all rows of a frame.
struct Layout {
    density: Density,
    score_end: u16,
    bar: Place,
    note_x: u16,
    fits_from: Option<f64>,
    none_fits: bool,
}

impl Discover {
    pub(super) fn draw_results(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        let focused = cx.focused && self.focus == Part::Results;
        let mut pen = Pen::new(buf, cx);
        self.drawn.results = area;
        self.results_title(focused, area.width, cx).draw(&mut pen, area.x, area.y, area.width);
        let list = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        let Some(answer) = self.asking.shown().map(|s| std::sync::Arc::clone(&s.answer)) else {
            self.draw_nothing_asked(list, &mut pen);
            return;
        };
        let layout = self.layout(list, &answer);
        let lines = self.lines(&layout);
        self.keep_in_sight(&lines, usize::from(list.height));
        let mut y = list.y;
        for line in lines.iter().skip(self.results.offset).take(usize::from(list.height)) {
            if let Line::Row(row, part) = *line {
                self.draw_row(row, part, &layout, &answer, Rect { y, height: 1, ..list }, &mut pen, focused);
            }
            y += 1;
        }
        if self.drawn.folded && y + 1 < list.bottom() {
            let room = list.width.saturating_sub(4);
            pen.put(list.x + 2, list.bottom() - 1, disclaimer(room), Role::Muted, room);
        }
        if answer.skills == 0 {
            self.draw_no_skills(list, &mut pen);
        } else if answer.results.is_empty() {
            pen.put(list.x + 2, list.y + 1, "nothing matches a word of it", Role::Muted, list.width - 4);
        }
    }

    fn results_title(&self, focused: bool, width: u16, cx: &Draw<'_>) -> Title {
        let answer = self.asking.shown().map(|s| &s.answer);
        let none = answer.is_some_and(|a| a.fit == Fit::None && !a.results.is_empty());
        let mut title = Title::of(if none { "Nearest, none fits" } else { "Results" }, focused);
        if self.drawn.folded {
            title.note = self.short_status(cx, width.saturating_sub(title.name.width() as u16 + 7));
        } else if let Some(confidence) = answer.and_then(|a| a.confidence) {
            let from = plain_score(confidence.fits_from, cx.glyphs);
            title = title.note(format!("{} fits from {from}", cx.glyphs.tick));
        }
        title
    }

    fn layout(&self, area: Rect, answer: &Answer) -> Layout {
        let best = answer.results.iter().map(|h| h.score).fold(SCALE, f64::max);
        let none_fits = answer.fit == Fit::None;
        let density = if self.drawn.folded {
            Density::Dense
        } else {
            Density::choose(&self.rows, area.width, area.height)
        };
        let score_end = area.x + (area.width * 31 / 60).max(22);
        let bar = Place {
            x: score_end + 1,
            y: area.y,
            width: area.right().saturating_sub(score_end + 2),
            scale: best,
            air: density.description() > 0,
        };
        let names = self.items.iter().filter(|(item, _)| !matches!(item, Item::Hit(_)));
        let longest = names.filter_map(|(item, _)| item.skill(answer)).map(|id| cells(id.as_str())).max();
        let name = longest.unwrap_or(0).clamp(14, (area.width / 3).max(14));
        Layout {
            density,
            score_end,
            bar,
            note_x: area.x + 4 + name + 2,
            fits_from: answer.confidence.map(|c| c.fits_from),
            none_fits,
        }
    }

    /// The screen rows of the whole list.
    fn lines(&self, layout: &Layout) -> Vec<Line> {
        let mut out = Vec::new();
        let cursor_row = self.cursor_row();
        for (index, row) in self.rows.iter().enumerate() {
            match row {
                Row::Heading(..) => {
                    let first = out.is_empty();
                    if first && (self.drawn.folded || layout.none_fits) {
                        if layout.none_fits && !self.drawn.folded {
                            out.push(Line::Blank);
                        }
                        continue;
                    }
                    let blank_before = matches!(out.last(), Some(Line::Row(..)));
                    if blank_before && layout.density != Density::Dense {
                        out.push(Line::Blank);
                    }
                    out.push(Line::Row(index, 0));
                }
                Row::Item(Item::Hit(_), _) => {
                    let unfolded = self.drawn.folded && Some(index) == cursor_row;
                    let below = if unfolded { 3 } else { layout.density.description() };
                    out.extend((0..=below).map(|part| Line::Row(index, part)));
                    if layout.density.gap() {
                        out.push(Line::Blank);
                    }
                }
                Row::Item(..) | Row::Below(_) => out.push(Line::Row(index, 0)),
            }
        }
        out
    }

    fn cursor_row(&self) -> Option<usize> {
        let (item, _) = self.items.get(self.cursor)?;
        self.rows.iter().position(|row| matches!(row, Row::Item(other, _) if other == item))
    }

    fn keep_in_sight(&mut self, lines: &[Line], height: usize) {
        self.results.height = height;
        let cursor = self.cursor_row();
        let of_cursor = |line: &Line| matches!(line, Line::Row(row, _) if Some(*row) == cursor);
        if self.follow
            && let Some(first) = lines.iter().position(of_cursor)
        {
            let last = lines.iter().rposition(of_cursor).unwrap_or(first);
            // The heading above the first item comes into sight with it.
            let first = if self.cursor == 0 { 0 } else { first };
            if first < self.results.offset {
                self.results.offset = first;
            } else if last >= self.results.offset + height {
                self.results.offset = last + 1 - height;
            }
        }
        self.results.offset = self.results.offset.min(lines.len().saturating_sub(height));
    }

    #[allow(clippy::too_many_arguments, reason = "one row of one list in one frame")]
    fn draw_row(
        &mut self,
        row: usize,
        part: usize,
        layout: &Layout,
        answer: &Answer,
        area: Rect,
        pen: &mut Pen<'_>,
        focused: bool,
    ) {
        let selected = self.cursor_row() == Some(row);
        if let Row::Item(item, _) = self.rows[row]
            && let Some(place) = self.items.iter().position(|(other, _)| *other == item)
        {
            self.drawn.items.push((area, place));
        }
        if selected {
            pen.band(area, if focused { Role::Selection } else { Role::SelectionWeak });
            let role = if focused { Role::Gutter } else { Role::Muted };
            pen.put(area.x, area.y, pen.glyphs.gutter, role, 1);
        }
        match self.rows[row] {
            Row::Heading(name, members) => {
                pen.put(area.x + 2, area.y, name, Role::Muted, area.width - 2);
                if name == "left out" {
                    pen.right(area.right() - 2, area.y, &count(members), Role::Muted);
                }
            }
            Row::Below(more) => {
                let text = if more == 1 {
                    "1 more matches below the limit".to_owned()
                } else {
                    format!("{} more match below the limit", count(more))
                };
                pen.put(area.x + 4, area.y, &text, Role::Muted, area.width - 5);
            }
            Row::Item(Item::Hit(hit), rank) => {
                let hit = &answer.results[hit];
                if part == 0 {
                    draw_hit(hit, rank, layout, area, pen, selected);
                } else {
                    self.draw_below(hit, part, layout, area, pen);
                }
            }
            Row::Item(Item::Attachable(index), _) => {
                let attachable = &answer.attachable[index];
                let note = targets(&attachable.attach_targets, area.width >= 50);
                draw_other(attachable.skill_id.as_str(), &note, Role::Text, layout, area, pen);
            }
            Row::Item(Item::Excluded(index), _) => {
                let excluded = &answer.excluded[index];
                let room = area.right().saturating_sub(layout.note_x + 2);
                let note = why_left_out(excluded, room, pen.glyphs.ellipsis);
                draw_other(excluded.skill_id.as_str(), &note, Role::Muted, layout, area, pen);
            }
            Row::Item(Item::Copies(copies), _) => {
                let sign = if self.unfolded { pen.glyphs.open } else { pen.glyphs.closed };
                let room = area.width.saturating_sub(6);
                let long = format!("{} copies or other versions, shadowed", count(copies));
                let short = format!("{} copies, shadowed", count(copies));
                let text = if cells(&long) + 2 <= room { long } else { short };
                let role = if selected { Role::Text } else { Role::Muted };
                pen.put(area.x + 4, area.y, &format!("{text} {sign}"), role, room);
            }
        }
    }

    /// A line below a hit's own: its description, or in one column what its words gave.
    fn draw_below(&self, hit: &Hit, part: usize, layout: &Layout, area: Rect, pen: &mut Pen<'_>) {
        let width = area.width.saturating_sub(6);
        if self.drawn.folded && part == 3 {
            let mut line = RichLine::default();
            for row in hit.breakdown.words.iter().filter(|r| r.sum.abs() >= 0.005) {
                let item = [format!("{} ", shown(&row.label)), score(row.sum, pen.glyphs)];
                let wide = item.iter().map(|text| usize::from(cells(text))).sum::<usize>();
                if line.width() + wide <= usize::from(width) {
                    let [label, value] = item;
                    let gap = Seg::new("  ", Role::Muted);
                    line.segs.extend([Seg::new(label, Role::Muted), Seg::new(value, Role::Strong), gap]);
                }
            }
            pen.line(area.x + 4, area.y, &line, width);
            return;
        }
        let role = if self.drawn.folded { Role::Text } else { Role::Muted };
        let lines = if self.drawn.folded { 2 } else { layout.density.description() };
        // A long description begins where it first counts, so that its words show without opening it.
        let from = excerpt_from(&hit.description, &hit.description_marks, width * lines as u16);
        let (rest, marks) =
            (hit.description.get(from..).unwrap_or_default(), marks_from(&hit.description_marks, from));
        let mut segs = marked(rest, &marks, role, pen.glyphs.ascii);
        if from > 0 {
            segs.insert(0, Seg::new(format!("{} ", pen.glyphs.ellipsis), role));
        }
        let wrapped = wrap_to(&segs, width, lines, pen.glyphs.ellipsis);
        if let Some(line) = wrapped.get(part - 1) {
            pen.line(area.x + 4, area.y, line, width);
        }
    }

    /// That there is nothing to rank, and where skills are looked for.
    fn draw_no_skills(&self, area: Rect, pen: &mut Pen<'_>) {
        let (x, width) = (area.x + 2, area.width.saturating_sub(4));
        let roots = &self.catalogue.roots;
        let text = if roots.is_empty() {
            "there are no skills here yet".to_owned()
        } else {
            format!("there are no skills yet; looked in {}:", counted(roots.len(), "place"))
        };
        pen.put(x, area.y + 1, &cut_end(&text, width, pen.glyphs.ellipsis), Role::Text, width);
        let rows = usize::from(area.height.saturating_sub(3));
        for (row, root) in roots.iter().take(rows).enumerate() {
            let label = shown(&root.label);
            let label = cut_middle(&label, width.saturating_sub(2), pen.glyphs.ellipsis);
            pen.put(x + 2, area.y + 2 + row as u16, &label, Role::Muted, width);
        }
    }

    fn draw_nothing_asked(&self, area: Rect, pen: &mut Pen<'_>) {
        let (x, mut y, width) = (area.x + 2, area.y + 1, area.width.saturating_sub(4));
        if let Some(error) = self.asking.error() {
            let x = pen.put(x, y, pen.glyphs.bad, Role::Danger, 1) + 1;
            for line in wrap_to(&[Seg::new(shown(&error.message), Role::Text)], width - 2, 4, "…") {
                pen.line(x, y, &line, width - 2);
                y += 1;
            }
            return;
        }
        let skills = counted(self.catalogue.entries.len(), "skill");
        for text in
            [format!("Say what you want done; every keystroke ranks {skills}."), DISCLAIMER.to_owned()]
        {
            for line in wrap_to(&[Seg::new(text, Role::Muted)], width, 3, pen.glyphs.ellipsis) {
                pen.line(x, y, &line, width);
                y += 1;
            }
        }
        let earlier: Vec<&String> = self.history.entries().iter().rev().take(8).collect();
        if !earlier.is_empty() && y + 3 < area.bottom() {
            y += 1;
            pen.put(x, y, "asked before", Role::Muted, width);
            for intent in earlier {
                y += 1;
                if y < area.bottom() {
                    let text = shown(intent);
                    pen.put(x + 2, y, &cut_end(&text, width - 2, pen.glyphs.ellipsis), Role::Text, width - 2);
                }
            }
        }
    }
}

fn draw_hit(hit: &Hit, rank: Option<usize>, layout: &Layout, area: Rect, pen: &mut Pen<'_>, selected: bool) {
    if let Some(rank) = rank {
        pen.right(area.x + 3, area.y, &rank.to_string(), Role::Muted);
    }
    let x = area.x + 4;
    let room = layout.score_end.saturating_sub(5 + x);
    let role = match (selected, layout.none_fits) {
        (true, false) => Role::Strong,
        (_, true) => Role::Muted,
        (false, false) => Role::Text,
    };
    let name = shown(hit.skill_id.as_str());
    let end = pen.put(x, area.y, &cut_end(&name, room, pen.glyphs.ellipsis), role, room);
    let group = match hit.group {
        Group::Primary => None,
        Group::Secondary => Some("utility".to_owned()),
        Group::Attachable => Some("sidecar".to_owned()),
    };
    let status = Some(shown(&hit.status)).filter(|status| status != "stable");
    let label = group.into_iter().chain(status).collect::<Vec<_>>().join(", ");
    if end + 1 + cells(&label) <= x + room {
        pen.put(end + 1, area.y, &label, Role::Muted, room);
    }
    pen.right(layout.score_end, area.y, &plain_score(hit.score, pen.glyphs), role);
    let bar = Place { y: area.y, ..layout.bar };
    stacked(pen, bar, &hit.breakdown.signals);
    if let Some(from) = layout.fits_from.filter(|from| hit.score < *from) {
        pen.put(bar.column(from), area.y, pen.glyphs.tick, Role::Faint, 1);
    }
}

fn draw_other(id: &str, note: &str, role: Role, layout: &Layout, area: Rect, pen: &mut Pen<'_>) {
    let x = area.x + 4;
    let room = layout.note_x.saturating_sub(x + 2);
    let name = shown(id);
    pen.put(x, area.y, &cut_end(&name, room, pen.glyphs.ellipsis), role, room);
    let room = area.right().saturating_sub(layout.note_x + 2);
    pen.put(layout.note_x, area.y, &cut_end(note, room, pen.glyphs.ellipsis), Role::Muted, room);
}

/// `a copy, shadowed by ~/.claude/skills`: the path is cut in its middle, before that the words go.
fn why_left_out(excluded: &Excluded, room: u16, ellipsis: &str) -> String {
    let why = shown(&excluded.why);
    let ExcludedWhy::Shadowed(place) = &excluded.reason else { return why };
    let place = shown(place);
    for said in [why.strip_suffix(place.as_str()).unwrap_or("shadowed by "), "shadowed by ", "by "] {
        let left = room.saturating_sub(cells(said));
        if left >= cells(&place).min(16) {
            return format!("{said}{}", cut_middle(&place, left, ellipsis));
        }
    }
    "shadowed".to_owned()
}

/// `to an output or artifact`; in narrow lists `to output, artifact`.
fn targets(targets: &[AttachTarget], long: bool) -> String {
    let words: Vec<String> = targets.iter().map(ToString::to_string).collect();
    match (words.first(), long) {
        (None, _) => "has no target".to_owned(),
        (Some(_), false) => format!("to {}", words.join(", ")),
        (Some(first), true) => {
            let article = if first.starts_with(['a', 'o']) { "an" } else { "a" };
            format!("to {article} {}", words.join(" or "))
        }
    }
}
