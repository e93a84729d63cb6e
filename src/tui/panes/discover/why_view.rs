//! Draws why the selected skill is ranked where it is: score breakdown, description with matches, the lead over its
//! best other result, and limitations of the answer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::ask::PendingRequests;
use super::comparison::{Comparison, Difference, LEVEL, compare, nearest};
use super::measurements::Measurements;
use super::result_list::ResultList;
use super::results_view::description_marks;
use super::rows::{Item, Outcome};
use super::view::disclaimer;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::bars;
use crate::widgets::breakdown;
use crate::widgets::highlight::marked;
use crate::widgets::{
    Painter, RichLine, Seg, Title, byte_size, cells, count, counted, cut_end, cut_middle, plain_score, shown,
    signed, token_count, wrap_to,
};
use skills_discovery::{Answer, Fit, Hit, Mark, MatcherState, VerdictReason};

/// How the explanation is laid out.
#[derive(Debug, Clone, Copy)]
pub(super) struct WhyLayout {
    /// Whether there is space for blank rows.
    pub airy: bool,
    /// Whether the best other result has a separate column.
    pub with_other: bool,
    pub focused: bool,
}

/// Maximum number of rows of an explanation.
const MAX_ROWS: u16 = 90;

pub(super) fn draw(
    list: &mut ResultList,
    asking: &PendingRequests,
    measured: &mut Measurements,
    look: WhyLayout,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) {
    let airy = look.airy;
    let title = why_title(list, asking, look, area.width, cx);
    title.draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    if asking.shown().is_none() {
        let text = "select a result to see its score breakdown";
        let lines =
            wrap_to(&[Seg::new(text, Role::Muted)], area.width.saturating_sub(3), 3, cx.glyphs.ellipsis);
        let mut painter = Painter::new(buf, cx);
        for (line, y) in lines.iter().zip(area.y + 2..area.bottom()) {
            painter.line(area.x + 2, y, line, area.width.saturating_sub(3));
        }
        return;
    }
    let inside = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let foot = u16::from(inside.height > 8);
    let window = inside.height - foot;

    // Draw everything into a separate buffer, of which the window shows a part.
    let mut page = Buffer::empty(Rect::new(area.x, 0, area.width, MAX_ROWS));
    page.set_style(page.area, cx.theme.style(Role::Base));
    let used = draw_report(list, asking, measured, look, window, &mut page, cx);
    list.why.height = usize::from(window);
    list.why.offset = list.why.offset.min(usize::from(used.saturating_sub(window)));
    let offset = list.why.offset as u16;
    for row in 0..window.min(MAX_ROWS - offset) {
        for x in area.left()..area.right() {
            if let (Some(from), Some(to)) = (page.cell((x, row + offset)), buf.cell_mut((x, inside.y + row)))
            {
                *to = from.clone();
            }
        }
    }
    let mut painter = Painter::new(buf, cx);
    if foot > 0 {
        let x = area.x + if airy { 2 } else { 1 };
        let available = area.right().saturating_sub(x + 1);
        painter.put(x, inside.bottom() - 1, disclaimer(available), Role::Muted, available);
    }
}

fn why_title(
    list: &ResultList,
    asking: &PendingRequests,
    WhyLayout { airy, focused, .. }: WhyLayout,
    width: u16,
    cx: &Draw<'_>,
) -> Title {
    let mut title = Title { focused, ..Title::default() };
    let (Some(shown_answer), Some(id)) = (asking.shown(), list.selected()) else {
        return Title::of("Why", focused);
    };
    let name = shown(id.as_str());
    title.name.segs = vec![Seg::new("Why ", Role::Text), Seg::new(name, Role::Strong)];
    let rank = list.rank();
    let Some(hit) = list.hit() else {
        let available = width.saturating_sub(title.name.width() as u16 + 4);
        let message =
            [" is not ranked", ": not ranked"].into_iter().find(|message| cells(message) <= available);
        title.name.segs.extend(message.map(|message| Seg::new(message, Role::Text)));
        return title;
    };
    let total = shown_answer.answer.results.len() + shown_answer.answer.below_limit;
    if !airy {
        let score = plain_score(hit.score, cx.glyphs);
        let dot = cx.glyphs.dot;
        let notes = rank.map_or_else(Vec::new, |rank| {
            vec![
                format!("{} of {} {dot} {score}", count(rank), count(total)),
                format!("{} {dot} {score}", count(rank)),
            ]
        });
        let available = width.saturating_sub(title.name.width() as u16 + 7);
        let note = notes.into_iter().find(|note| cells(note) <= available).unwrap_or(score);
        title.note = RichLine::of(note, Role::Muted);
        return title;
    }
    let answer = &shown_answer.answer;
    let forms = match (answer.fit, rank) {
        (Fit::None, Some(1)) if answer.verdict.reason == VerdictReason::BelowThreshold => {
            vec![" is below the threshold".to_owned(), ": too low".to_owned()]
        }
        (Fit::None, Some(1)) => vec![" does not fit".to_owned(), ": no fit".to_owned()],
        (_, Some(1)) => vec![" is first".to_owned()],
        (_, Some(rank)) => {
            vec![format!(" is number {} of {}", count(rank), count(total)), format!(": {}", count(rank))]
        }
        (_, None) => Vec::new(),
    };
    let available = width.saturating_sub(title.name.width() as u16 + 4);
    let place = forms.into_iter().find(|form| cells(form) <= available);
    title.name.segs.extend(place.map(|place| Seg::new(place, Role::Text)));
    let effect = hit.effect_mode.to_string().replace('_', " ");
    title.note(format!("{} · {} · {effect}", hit.role, shown(&hit.status)))
}

/// Draws everything from the top of the buffer; returns the number of rows.
fn draw_report(
    list: &ResultList,
    asking: &PendingRequests,
    measured: &mut Measurements,
    WhyLayout { airy, with_other, .. }: WhyLayout,
    window: u16,
    page: &mut Buffer,
    cx: &Draw<'_>,
) -> u16 {
    let Some(answer) = asking.shown().map(|shown| &*shown.answer) else { return 0 };
    let area = page.area;
    let left = if airy { 2 } else { 1 };
    let column =
        Rect { x: area.x + left, y: 0, width: area.width.saturating_sub(left + 1), height: MAX_ROWS };
    let mut painter = Painter::new(page, cx);
    let mut y = u16::from(airy);
    match (list.item(), list.hit()) {
        (Some(_), Some(hit)) => {
            let notice_height = notices(asking, answer).len() as u16 * 2;
            // The description and the lead below it keep their rows.
            let most = if airy { window.saturating_sub(y + notice_height + 13).clamp(7, 18) } else { 9 };
            y += draw_ledger(hit, answer, airy, Rect { y, height: most, ..column }, &mut painter) + 1;
            let lead = if airy { 7 + notice_height } else { 3 };
            let lines = usize::from(window.saturating_sub(y + lead)).clamp(3, 8);
            y += draw_description(asking, measured, hit, lines, column, y, &mut painter) + 1;
            let notices = notices(asking, answer);
            if !with_other && let Some(other) = nearest(answer, hit) {
                // The remaining space above the notices.
                let available = window.saturating_sub(y + 2 * notices.len() as u16 + 1).max(4);
                let comparison = compare(hit, other, &answer.words, usize::from(available.clamp(4, 8)));
                y += if airy {
                    draw_lead(&comparison, column, y, &mut painter)
                } else {
                    draw_lead_line(&comparison, column, y, &mut painter)
                } + 1;
            }
            if with_other {
                y = draw_levels(asking, measured, hit, column, y, &mut painter);
            }
            y = draw_notices(&notices, column, y, &mut painter);
        }
        (Some(item), None) => {
            y = draw_no_result(list, item, column, y, &mut painter);
            y = draw_notices(&notices(asking, answer), column, y, &mut painter);
        }
        (None, _) => y = draw_notices(&notices(asking, answer), column, y, &mut painter),
    }
    y
}

/// Draws the description as the catalog passes it to a model, with the matches marked.
pub(super) fn draw_description(
    asking: &PendingRequests,
    measured: &mut Measurements,
    hit: &Hit,
    max: usize,
    column: Rect,
    y: u16,
    painter: &mut Painter<'_>,
) -> u16 {
    let tokens = measured.levels(&hit.skill_id).map(|l| token_count(l.entry_count(), painter.glyphs));
    let note = tokens.map_or_else(RichLine::default, |t| {
        RichLine::from_segs(vec![Seg::new("L1 ", Role::Level1), Seg::new(format!("{t} tok"), Role::Muted)])
    });
    let mut rows = draw_card(hit, &description_marks(asking, hit), &note, max, column, y, painter);
    if let Some(note) = &hit.exclusion_note {
        let text = format!("its description: “{}”", shown(note));
        let width = column.width.saturating_sub(4);
        for (index, line) in
            wrap_to(&[Seg::new(text, Role::Text)], width, 2, painter.glyphs.ellipsis).iter().enumerate()
        {
            if index == 0 {
                painter.put(column.x + 2, y + rows, painter.glyphs.warn, Role::Warning, 1);
            }
            painter.line(column.x + 4, y + rows, line, width);
            rows += 1;
        }
    }
    rows
}

/// Draws where the body contains the words, and the resources: for screens that are tall enough.
fn draw_levels(
    asking: &PendingRequests,
    measured: &mut Measurements,
    hit: &Hit,
    column: Rect,
    mut y: u16,
    painter: &mut Painter<'_>,
) -> u16 {
    let intent = asking.shown().map_or("", |s| &s.intent);
    let levels = measured.levels(&hit.skill_id).cloned();
    let end = column.right();
    if let Some(lines) = measured.body_lines(&hit.skill_id, intent).filter(|l| !l.is_empty()) {
        painter.put(column.x + 2, y, "matches in the body", Role::Strong, column.width);
        if let Some(levels) = &levels {
            let start = painter.right(
                end,
                y,
                &format!("{} tok", token_count(levels.body_count(), painter.glyphs)),
                Role::Muted,
            );
            painter.right(start - 1, y, "L2", Role::Level2);
        }
        let digits = lines.iter().map(|l| l.line.to_string().len()).max().unwrap_or(1) as u16;
        for (row, line) in lines.iter().take(6).enumerate() {
            let at = y + 1 + row as u16;
            painter.right(column.x + 3 + digits, at, &line.line.to_string(), Role::Muted);
            let marks: Vec<Mark> = line.marks.clone();
            let segs = marked(&line.text, &marks, Role::Text, painter.glyphs.ascii);
            let available = column.width.saturating_sub(digits + 5);
            let line = crate::widgets::wrap::cut_line(
                &RichLine::from_segs(segs),
                available,
                painter.glyphs.ellipsis,
            );
            painter.line(column.x + 5 + digits, at, &line, available);
        }
        let rows = lines.len().min(6) as u16;
        painter.rail(column.x, y, rows + 1, 2);
        y += rows + 2;
    }
    if let Some(detail) = measured.detail(&hit.skill_id).filter(|d| !d.files.is_empty()) {
        painter.put(column.x + 2, y, "resources", Role::Strong, column.width);
        let total: u64 = detail.files.iter().map(|f| f.bytes).sum();
        let note = format!("{} · {}", counted(detail.files.len(), "file"), byte_size(total));
        let start = painter.right(end, y, &note, Role::Muted);
        painter.right(start - 1, y, "L3", Role::Level3);
        let longest = detail.files.iter().take(5).map(|f| cells(&f.path)).max().unwrap_or(0);
        let name = longest.min(column.width.saturating_sub(14));
        for (row, file) in detail.files.iter().take(5).enumerate() {
            let at = y + 1 + row as u16;
            let path = shown(&file.path);
            painter.put(
                column.x + 2,
                at,
                &cut_middle(&path, name, painter.glyphs.ellipsis),
                Role::Muted,
                name,
            );
            painter.right(column.x + 2 + name + 10, at, &byte_size(file.bytes), Role::Muted);
        }
        let rows = detail.files.len().min(5) as u16;
        painter.rail(column.x, y, rows + 1, 3);
        y += rows + 2;
    }
    y
}

/// Draws what is known about an item that is not a result, or a result whose page is being loaded.
fn draw_no_result(list: &ResultList, item: Item, column: Rect, y: u16, painter: &mut Painter<'_>) -> u16 {
    let answer = list.listing.first();
    let sidecar = "a sidecar: attached to a target, not ranked".to_owned();
    let left_out = |why: &str| format!("excluded: {}", shown(why));
    let (text, score) = match (item, answer) {
        (Item::Attachable(at), Some(answer)) => (sidecar, answer.attachable.get(at).map(|a| a.score)),
        (Item::Excluded(at), Some(answer)) => match answer.excluded.get(at) {
            Some(excluded) => (left_out(&excluded.why), Some(excluded.score)),
            None => (String::new(), None),
        },
        (Item::Opened, _) => match list.opened.as_ref().map(|opened| &opened.outcome) {
            Some(Outcome::Excluded(excluded)) => (left_out(&excluded.why), Some(excluded.score)),
            Some(Outcome::Sidecar(score)) => (sidecar, Some(*score)),
            Some(Outcome::NoMatch) => {
                let text = "it does not match this request";
                (text.to_owned(), None)
            }
            None => (String::new(), None),
        },
        (Item::Copies(_), _) => {
            let text = "bundles with the same id, or copies; the first in root order is ranked, \
                Enter lists the others";
            (text.to_owned(), None)
        }
        (Item::Hit(_), _) => ("loading".to_owned(), None),
        (_, None) => (String::new(), None),
    };
    let mut y = y;
    for line in wrap_to(&[Seg::new(text, Role::Text)], column.width, 3, painter.glyphs.ellipsis) {
        painter.line(column.x, y, &line, column.width);
        y += 1;
    }
    if let Some(score) = score {
        let text = format!("score {}", plain_score(score, painter.glyphs));
        painter.put(column.x, y, &text, Role::Muted, column.width);
        y += 1;
    }
    y += 1;
    let skill = list.skill_of(item).and_then(|id| list.catalog.by_id(id.as_str()));
    if let Some(skill) = skill {
        let width = column.width.saturating_sub(2);
        let top = y;
        painter.put(column.x + 2, y, &shown(&skill.name), Role::Strong, width);
        y += 1;
        let segs = [Seg::new(shown(&skill.description), Role::Text)];
        for line in wrap_to(&segs, width, 8, painter.glyphs.ellipsis) {
            painter.line(column.x + 2, y, &line, width);
            y += 1;
        }
        painter.rail(column.x, top, y - top, 1);
        y += 1;
    }
    y
}

/// Returns the limitations of this answer, and what is not loaded yet.
fn notices(asking: &PendingRequests, answer: &Answer) -> Vec<(bool, Vec<Seg>, String)> {
    let mut out = Vec::new();
    if let Some(error) = asking.error() {
        let segs = vec![Seg::new("the last request failed", Role::Strong)];
        out.push((true, segs, shown(&error.message)));
    }
    for matcher in &answer.matchers {
        if let MatcherState::Failed(why) = &matcher.state {
            let segs = vec![
                Seg::new("a matcher failed: ", Role::Strong),
                Seg::new(shown(&matcher.matcher), Role::Text),
                Seg::new(" not part of the score", Role::Muted),
            ];
            out.push((true, segs, shown(why)));
        }
    }
    if let Some((read, all)) = asking.reading() {
        let text = format!("provisional: {} of {} indexed", count(read), count(all));
        out.push((false, vec![Seg::new(text, Role::Muted)], String::new()));
    }
    out
}

fn draw_ledger(hit: &Hit, answer: &Answer, airy: bool, area: Rect, painter: &mut Painter<'_>) -> u16 {
    let breakdown = breakdown::stop_words_as_one(&hit.breakdown, &answer.words);
    if airy && area.width >= breakdown::FULL_WIDTH && answer.fit != Fit::None {
        breakdown::full(painter, area, &breakdown, hit.score)
    } else {
        breakdown::compact(painter, area, &breakdown, true)
    }
}

/// Draws a name and description with matches, next to the rail of its level; returns the number of rows.
fn draw_card(
    hit: &Hit,
    marks: &[Mark],
    note: &RichLine,
    max: usize,
    column: Rect,
    y: u16,
    painter: &mut Painter<'_>,
) -> u16 {
    let width = column.width.saturating_sub(2);
    let name = RichLine::from_segs(marked(&hit.name, &hit.name_marks, Role::Text, painter.glyphs.ascii));
    let available = width.saturating_sub(note.width() as u16 + 2);
    let name = crate::widgets::wrap::cut_line(&name, available, painter.glyphs.ellipsis);
    painter.line(column.x + 2, y, &name, available);
    painter.line_right(column.right(), y, note);
    let segs = marked(&hit.description, marks, Role::Text, painter.glyphs.ascii);
    let lines = wrap_to(&segs, width, max, painter.glyphs.ellipsis);
    for (row, line) in lines.iter().enumerate() {
        painter.line(column.x + 2, y + 1 + row as u16, line, width);
    }
    let rows = 1 + lines.len() as u16;
    painter.rail(column.x, y, rows, 1);
    rows
}

/// Formats `ahead of xlsx by 1.22`: the name is truncated before the amount.
fn lead_words(comparison: &Comparison<'_>, width: u16, painter: &Painter<'_>) -> RichLine {
    let other = shown(comparison.other.skill_id.as_str());
    let (word, by) = match comparison.lead {
        lead if lead.abs() < LEVEL => ("tied with ", String::new()),
        lead if lead > 0.0 => ("ahead of ", plain_score(lead, painter.glyphs)),
        lead => ("behind ", plain_score(-lead, painter.glyphs)),
    };
    let between = if by.is_empty() { "" } else { " by " };
    let available = width.saturating_sub(cells(word) + cells(between) + cells(&by));
    RichLine::from_segs(vec![
        Seg::new(word, Role::Muted),
        Seg::new(cut_end(&other, available, painter.glyphs.ellipsis).into_owned(), Role::Strong),
        Seg::new(between, Role::Muted),
        Seg::new(by, Role::Strong),
    ])
}

/// Draws `ahead of xlsx by 1.22` and a bar for each word; returns the number of rows.
fn draw_lead(comparison: &Comparison<'_>, column: Rect, y: u16, painter: &mut Painter<'_>) -> u16 {
    let line = lead_words(comparison, column.width, painter);
    painter.line(column.x, y, &line, column.width);
    1 + draw_differences(comparison, column, y + 1, painter)
}

/// Draws the rows of a comparison: word, difference, bar from the center, reason.
pub(crate) fn draw_differences(
    comparison: &Comparison<'_>,
    column: Rect,
    y: u16,
    painter: &mut Painter<'_>,
) -> u16 {
    let longest = comparison.rows.iter().map(|r| cells(&r.label)).max().unwrap_or(0);
    let label = longest.clamp(9, 16).min(column.width * 2 / 7);
    let end = column.x + label + 7;
    let other = shown(comparison.other.skill_id.as_str());
    let reasons =
        comparison.rows.iter().map(|r| cells(&r.reason.text(&other, u16::MAX, painter.glyphs.ellipsis)));
    // Bars shrink before reasons are truncated, because reasons name the other result.
    let rest = column.width.saturating_sub(label + 7 + 4 + reasons.max().unwrap_or(0));
    let half = (rest / 2).clamp(3, (column.width / 9).clamp(3, 8));
    let scale = comparison.rows.iter().map(|r| r.value.abs()).fold(0.5, f64::max);
    for (row, difference) in comparison.rows.iter().enumerate() {
        let y = y + row as u16;
        painter.put_cut(column.x, y, &difference.label, Role::Text, label);
        painter.right(end, y, &signed(difference.value, painter.glyphs), Role::Text);
        bars::difference(painter, end + 2, y, half, scale, difference.value);
        // To the right of the center, a negative difference has no bar.
        let bar_end = if difference.value < 0.0 { end + half + 3 } else { end + 2 * half + 3 };
        let available = column.right().saturating_sub(bar_end + 1);
        let reason = difference.reason.text(&other, available, painter.glyphs.ellipsis);
        painter.right(column.right(), y, &reason, Role::Muted);
    }
    comparison.rows.len() as u16
}

/// Draws the lead in one line, for small screens: `ahead of xlsx by 1.22: “pdf”, “table”`.
fn draw_lead_line(comparison: &Comparison<'_>, column: Rect, y: u16, painter: &mut Painter<'_>) -> u16 {
    let ahead = comparison.lead >= 0.0;
    let mut rows: Vec<_> = comparison.rows.iter().filter(|r| (r.value > 0.0) == ahead).collect();
    rows.sort_by(|a, b| b.value.abs().total_cmp(&a.value.abs()));
    let mut line = lead_words(comparison, column.width, painter);
    push_labels(&mut line, rows.into_iter().take(4), column.width);
    painter.line(column.x, y, &line, column.width);
    1
}

/// Adds `: “pdf”, “table”` to a line of `width` cells, up to the first label that does not fit: those that follow matter
/// less.
fn push_labels<'a>(line: &mut RichLine, rows: impl Iterator<Item = &'a Difference>, width: u16) {
    let mut separator = ':';
    for row in rows {
        let label = &row.label;
        let text =
            if row.is_word { format!("{separator} “{label}”") } else { format!("{separator} {label}") };
        if line.width() + usize::from(cells(&text)) > usize::from(width) {
            return;
        }
        line.segs.push(Seg::new(text, Role::Muted));
        separator = ',';
    }
}

fn draw_notices(
    notices: &[(bool, Vec<Seg>, String)],
    column: Rect,
    mut y: u16,
    painter: &mut Painter<'_>,
) -> u16 {
    let width = column.width.saturating_sub(2);
    for (failed, what, why) in notices {
        let (sign, role) =
            if *failed { (painter.glyphs.bad, Role::Danger) } else { (painter.glyphs.pending, Role::Muted) };
        painter.put(column.x, y, sign, role, 1);
        let mut lines = wrap_to(what, width, 2, painter.glyphs.ellipsis);
        if !why.is_empty() {
            lines.extend(wrap_to(&[Seg::new(why.clone(), Role::Muted)], width, 2, painter.glyphs.ellipsis));
        }
        for line in lines {
            painter.line(column.x + 2, y, &line, width);
            y += 1;
        }
        y += 1;
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panes::discover::comparison::Reason;

    #[test]
    fn labels_end_at_the_first_that_does_not_fit() {
        let rows = [("check", true), ("rules", false), ("gate+release", false), ("0", true)];
        let rows = rows.map(|(label, is_word)| Difference {
            label: label.to_owned(),
            is_word,
            value: 0.1,
            reason: Reason::default(),
        });
        let text = |width| {
            let mut line = RichLine::from_segs(vec![Seg::new("ahead of csv by 0.06", Role::Muted)]);
            push_labels(&mut line, rows.iter(), width);
            line.segs.iter().map(|seg| seg.text.as_str()).collect::<String>()
        };
        assert_eq!(text(28), "ahead of csv by 0.06");
        assert_eq!(text(45), "ahead of csv by 0.06: “check”, rules");
        assert_eq!(text(60), "ahead of csv by 0.06: “check”, rules, gate+release, “0”");
    }
}
