//! Draws a skill at all three disclosure levels, side by side if there is enough space.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::budget_view::unit_label;
use super::context::ModelContext;
use super::state::SessionState;
use crate::glyphs::Glyphs;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{
    Painter, Seg, break_code, byte_size, cells, count, counted, cut_middle, shown, token_count,
};
use skills_api::{LevelSize, LevelsView, LoadedFrom};
use skills_config::quoted;
use skills_session::{ComposedPart, Fill, PartKind};
use skills_skill::safe_text;

/// Minimum width for levels side by side.
const MIN_SIDE_BY_SIDE_WIDTH: u16 = 72;

pub(super) fn draw(
    context: &mut ModelContext,
    state: &SessionState,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> String {
    // The cached levels may belong to a skill that is no longer loaded.
    let Some(levels) = state.levels_of_selected() else {
        let failed =
            state.no_levels.as_ref().filter(|(of, _)| state.selected().is_some_and(|s| s.name == *of));
        let text = match (state.selected(), failed) {
            (None, _) => "load a skill to see its three levels".to_owned(),
            (Some(_), None) => "counting".to_owned(),
            (Some(_), Some((_, why))) => format!("not known: {}", shown(why)),
        };
        let place = Rect { x: area.x + 2, width: area.width.saturating_sub(3), ..area };
        text_at(&mut Painter::new(buf, cx), place, &text, None, Role::Muted);
        return String::new();
    };
    let files: LevelSize = levels.files.iter().map(|(_, size)| *size).sum();
    let is_wide = area.width >= MIN_SIDE_BY_SIDE_WIDTH;
    let places = if is_wide { side_by_side(area) } else { stacked(area, levels.files.len()) };
    let mut painter = Painter::new(buf, cx);
    let note = listed_as(state, levels.skill_id.as_str(), painter.glyphs);
    let first = note.entry.as_ref().map_or(LevelSize::default(), |(size, _)| *size);
    // Use the size in the call: the bytes of a body in a tool result differ from those in the instructions.
    let name = levels.skill_id.as_str();
    let call = state.composed.as_ref();
    let body = call.and_then(|call| call.body_size(name)).unwrap_or(levels.l2);
    let is_delivered = call.is_some_and(|call| call.delivered_in(name).is_some());
    let second = if is_delivered { "L2 in a tool result" } else { "L2 once loaded" };
    let files = levels.files_unknown.is_none().then_some(files);
    let heads = [("L1 in every call", Some(first)), (second, Some(body)), ("L3 when read", files)];
    let mut below = places;
    for (at, (name, size)) in heads.into_iter().enumerate() {
        below[at] = head(&mut painter, places[at], at + 1, name, size, is_wide);
    }
    let entry = note.entry.map_or_else(|| note.missing.clone(), |(_, entry)| entry);
    let entry = if is_wide { entry } else { entry.lines().collect() };
    // The totals of the catalog stay visible below a long entry.
    let facts = if is_wide { note.facts } else { vec![note.facts.join(", ")] };
    let rows = (facts.len() as u16).min(below[0].height.saturating_sub(1));
    let above = Rect { height: below[0].height.saturating_sub(rows + u16::from(is_wide)), ..below[0] };
    text_at(&mut painter, above, &entry, None, Role::Text);
    for (fact, y) in facts.iter().zip(below[0].bottom() - rows..) {
        painter.put_cut(below[0].x, y, fact, Role::Muted, below[0].width);
    }
    text_at(&mut painter, below[1], &levels.body, Some(context.scroll.offset), Role::Text);
    file_list(&mut painter, below[2], levels);
    context.scroll.height = usize::from(below[1].height);
    let all = levels.body.lines().count();
    context.scroll.offset = context.scroll.offset.min(all.saturating_sub(1));
    shown(levels.skill_id.as_str())
}

/// The entry of a skill in the next call's catalog, and the catalog's totals.
struct CatalogCost {
    /// Size and text of its entry; `None` if the catalog has none.
    entry: Option<(LevelSize, String)>,
    /// The text shown instead.
    missing: String,
    /// Totals of the catalog, most important first.
    facts: Vec<String>,
}

/// Returns the entry in the view of the session's client, counted in the call itself like every other number of the
/// pane.
fn listed_as(state: &SessionState, skill: &str, glyphs: &Glyphs) -> CatalogCost {
    let client = state.session.as_ref().and_then(|session| session.settings.client.as_deref()).map(shown);
    let who = client.as_ref().map_or_else(|| "complete catalog".to_owned(), |client| format!("as {client}"));
    let Some(composed) = &state.composed else {
        return CatalogCost { entry: None, missing: "counting".to_owned(), facts: vec![who] };
    };
    // A loaded skill is listed with the reason; one that the client would list and has no reason was omitted for
    // the budget.
    let bound = composed.allowance.as_ref().filter(|fill| fill.made.omitted > 0);
    let named = composed.not_listed.iter().find(|group| group.names.iter().any(|name| name == skill));
    let roots = state.drift_of(skill).roots;
    let missing = match (named, bound, &client) {
        (None, ..) if matches!(roots, LoadedFrom::Elsewhere | LoadedFrom::Refused) => {
            "no entry: not in these roots".to_owned()
        }
        (Some(group), ..) => format!("no entry: {}", shown(&group.why)),
        (None, Some(fill), Some(client)) => left_out(client, fill),
        (None, None, Some(client)) => {
            let id = quoted(client);
            format!("no entry: {client} does not list it; skills budget --client {id} --all shows why")
        }
        (None, _, None) => "no entry: hidden from the model".to_owned(),
    };
    let call = &composed.composed;
    let entries = || {
        let listed =
            |part: &&(&ComposedPart, LevelSize)| part.0.kind == PartKind::Available && part.0.skill.is_some();
        composed.part_sizes().filter(move |part| listed(&part))
    };
    let entry = entries().find(|(part, _)| part.skill.as_deref() == Some(skill));
    let entry = entry.map(|(part, size)| (size, call.of(part).trim_end().to_owned()));
    let (all, size) = (entries().count(), composed.size.l1);
    let mut facts = vec![
        format!("all {}: {} tok", count(all), token_count(size.count(), glyphs)),
        byte_size(size.bytes),
        who,
        "tokens: o200k".to_owned(),
    ];
    if let Some(fill) = &composed.allowance
        && let Some(limit) = fill.limit
    {
        facts.push("counted by the client:".to_owned());
        facts.push(format!("{} of {} {}", count(fill.used), count(limit), unit_label(fill.unit)));
    }
    CatalogCost { entry, missing, facts }
}

/// Describes why a skill has no entry: the budget was exhausted by others.
fn left_out(client: &str, fill: &Fill) -> String {
    let (left, out) = (counted(fill.made.omitted, "skill"), "no entry: over budget");
    match fill.limit {
        Some(limit) => {
            format!("{out} of {client}, {} {}: budget exhausted, {left} did not fit", count(limit), fill.unit)
        }
        None => format!("{out} of {client}: {left} did not fit"),
    }
}

fn side_by_side(area: Rect) -> [Rect; 3] {
    let each = (area.width - 2) / 3;
    [0, 1, 2].map(|at| Rect { x: area.x + 2 + at * each, width: each.saturating_sub(2), ..area })
}

/// Returns the areas of the levels below each other: small ones take what they need, the body takes the rest.
fn stacked(area: Rect, files: usize) -> [Rect; 3] {
    let most = (area.height / 4).max(2);
    let first = most.min(4);
    let last = (files.max(1) as u16 + 1).min(most);
    let body = area.height.saturating_sub(first + last + 2).max(2);
    let place = |y: u16, height: u16| Rect {
        x: area.x + 2,
        y,
        width: area.width.saturating_sub(3),
        height: height.min(area.bottom().saturating_sub(y)),
    };
    let second = area.y + first + 1;
    [place(area.y, first), place(second, body), place((second + body + 1).min(area.bottom()), last)]
}

/// Draws name and size of a level, in two rows or in one; returns the area below.
fn head(
    painter: &mut Painter<'_>,
    place: Rect,
    level: usize,
    name: &str,
    size: Option<LevelSize>,
    side_by_side: bool,
) -> Rect {
    painter.rail(place.x, place.y, place.height, level);
    let (x, available) = (place.x + 2, place.width.saturating_sub(2));
    let cost = size.map_or_else(
        || "not known".to_owned(),
        |size| format!("{} tok  {}", token_count(size.count(), painter.glyphs), byte_size(size.bytes)),
    );
    let rows = if place.height == 0 {
        0
    } else if side_by_side {
        painter.put(x, place.y, name, Role::Strong, available);
        painter.put(x, place.y + 1, &cost, Role::Muted, available);
        3
    } else {
        let end = painter.put(x, place.y, name, Role::Strong, available);
        painter.put(end + 2, place.y, &cost, Role::Muted, (x + available).saturating_sub(end + 2));
        1
    };
    Rect { x, y: place.y + rows, width: available, height: place.height.saturating_sub(rows) }
}

/// Draws a text that scrolls from a line, or one that does not: an ellipsis replaces the end that does not fit.
fn text_at(painter: &mut Painter<'_>, place: Rect, text: &str, offset: Option<usize>, role: Role) {
    let (mut x, mut y) = (place.x, place.y);
    for line in text.lines().skip(offset.unwrap_or(0)) {
        for part in break_code(&[Seg::new(safe_text::line(line), role)], place.width.max(1)) {
            if y >= place.bottom() {
                if offset.is_none() && place.height > 0 {
                    let ellipsis = painter.glyphs.ellipsis;
                    let last = place.right().saturating_sub(cells(ellipsis));
                    painter.put(x.min(last), y - 1, ellipsis, role, cells(ellipsis));
                }
                return;
            }
            x = place.x;
            for seg in part {
                x = painter.put(x, y, &seg.text, seg.role, place.right().saturating_sub(x));
            }
            y += 1;
        }
    }
}

fn file_list(painter: &mut Painter<'_>, place: Rect, levels: &LevelsView) {
    let available = place.width;
    if let Some(why) = &levels.files_unknown {
        text_at(painter, place, why, None, Role::Muted);
        return;
    }
    if levels.files.is_empty() && place.height > 0 {
        painter.put(place.x, place.y, "no files", Role::Muted, available);
    }
    let shown_rows = usize::from(place.height);
    let hidden = levels.files.len().saturating_sub(shown_rows);
    for (at, ((path, size), y)) in levels.files.iter().zip(place.y..place.bottom()).enumerate() {
        if hidden > 0 && at + 1 == shown_rows {
            painter.put(place.x, y, &format!("and {} more files", count(hidden + 1)), Role::Muted, available);
            return;
        }
        let cost = if available >= 34 {
            format!("{} tok  {:>7}", token_count(size.count(), painter.glyphs), byte_size(size.bytes))
        } else {
            token_count(size.count(), painter.glyphs)
        };
        let at = painter.right(place.right(), y, &cost, Role::Muted);
        let space = at.saturating_sub(place.x + 1);
        let path = shown(path);
        let path = cut_middle(&path, space, painter.glyphs.ellipsis);
        painter.put_cut(place.x, y, &path, Role::Text, space);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::painted;

    #[test]
    fn stacked_levels_do_not_overlap_and_body_is_largest() {
        for (height, files) in [(16, 0), (16, 9), (12, 2), (9, 1), (40, 30)] {
            let [first, body, last] = stacked(Rect::new(0, 0, 50, height), files);
            assert!(body.height >= first.height && body.height >= last.height, "{first} {body} {last}");
            assert!(first.bottom() < body.y && body.bottom() < last.y, "{first} {body} {last}");
            assert!(
                first.height >= 2 && last.height >= 2 && last.bottom() <= height,
                "{first} {body} {last}"
            );
        }
    }

    #[test]
    fn text_that_does_not_scroll_ends_with_an_ellipsis() {
        let seen = |text: &str, offset| {
            let area = Rect::new(0, 0, 8, 2);
            let buffer = painted(8, 2, |painter| text_at(painter, area, text, offset, Role::Text));
            let seen = crate::picture::text(&buffer);
            seen.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(seen("one\ntwo", None), ["one", "two"]);
        assert_eq!(seen("one\ntwo\nthree", None), ["one", "two…"]);
        assert_eq!(seen("one\ntwo two!\nthree", None), ["one", "two two…"]);
        assert_eq!(seen("one\ntwo\nthree", Some(0)), ["one", "two"]);
    }
}
