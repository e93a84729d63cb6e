//! Draws the list: filter line, column heads, groups and skills, and a summary below. Only visible rows are built.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::Focus;
use super::items::{Entry, ExclusionReason};
use super::list::{GroupBy, Row, SortBy};
use super::skill_list::SkillList;
use crate::glyphs::Glyphs;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::bars::share;
use crate::widgets::{
    Painter, RichLine, Seg, Title, cells, count, counted, cut_end, cut_line, cut_middle, day, head, pairs,
    shown, token_count,
};
use skills_api::ClientViewState;

/// Maximum width of a number of findings with its sign.
const BADGE_WIDTH: u16 = 4;

struct Columns {
    name: u16,
    name_room: u16,
    role: Option<u16>,
    badge: u16,
    tokens_end: u16,
}

impl Columns {
    fn of(area: Rect, sort: SortBy) -> Self {
        let tokens_end = area.right().saturating_sub(1);
        // A date needs more space than a count.
        let badge = tokens_end.saturating_sub(if sort == SortBy::Changed { 15 } else { 12 });
        let role = (area.width >= 42).then(|| badge.saturating_sub(11));
        let name = area.x + 3;
        let name_room = role.unwrap_or(badge).saturating_sub(name + 1);
        Self { name, name_room, role, badge, tokens_end }
    }
}

/// Draws the list; returns the row of the summary's rule, if there is one.
pub(super) fn draw(
    list: &mut SkillList,
    focus: Focus,
    area: Rect,
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) -> Option<u16> {
    let focused = cx.focused && focus != Focus::Detail;
    list_title(list, focused, cx).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    let mut y = area.y + 1;
    if focus == Focus::Filter || !list.filter.is_empty() {
        list.filter_area = Rect { y, height: 1, ..area };
        let note = format!("{} of {}", count(list.matched), count(list.entries.len()));
        list.filter.draw_filter(list.filter_area, (2, 1), &note, focus == Focus::Filter, buf, cx);
        y += 1;
    }
    let mut painter = Painter::new(buf, cx);
    let columns = Columns::of(area, list.sort);
    draw_heads(list, &columns, y, &mut painter);
    y += 1;
    // As tall as the strip next to it, so that their rules meet.
    let foot = super::disclosure_view::height(area.height);
    let window = Rect { y, height: area.bottom().saturating_sub(y + foot), ..area };
    draw_rows(list, window, &columns, &mut painter, focused);
    let below = Rect { y: window.bottom(), height: foot, ..area };
    (foot > 0).then(|| draw_summary(list, below, &mut painter))
}

/// Draws the column heads, the sorted one with the direction.
fn draw_heads(list: &SkillList, columns: &Columns, y: u16, painter: &mut Painter<'_>) {
    let (up, down) = (painter.glyphs.up, painter.glyphs.down);
    let role_of = |sort| if list.sort == sort { Role::Text } else { Role::Muted };
    let name = if list.sort == SortBy::Name { format!("name {up}") } else { "name".to_owned() };
    painter.put(columns.name, y, &name, role_of(SortBy::Name), 10);
    let role_end = columns.role.map(|role| {
        let head = if list.client.budget().is_some() { "shown" } else { "role" };
        painter.put(role, y, head, Role::Muted, 10)
    });
    if list.sort == SortBy::Changed {
        painter.right(columns.tokens_end, y, &format!("changed {down}"), Role::Text);
        return;
    }
    if columns.role.is_none() && list.client.budget().is_some() {
        painter.right(columns.tokens_end, y, "shown", Role::Muted);
        return;
    }
    let tokens = if list.sort == SortBy::Tokens { format!("L2 tok {down}") } else { "L2 tok".to_owned() };
    let start = painter.right(columns.tokens_end, y, &tokens, role_of(SortBy::Tokens)).saturating_sub(1);
    painter.rail(start, y, 1, 2);
    match (list.sort, columns.role) {
        (SortBy::Findings, _) => {
            let head = format!("findings {down}");
            let end = start.saturating_sub(1);
            // A head before it needs the gap after it.
            let touches = role_end.is_some_and(|role_end| role_end + cells(&head) >= end);
            painter.right(end + u16::from(touches), y, &head, Role::Text);
        }
        (SortBy::Name, Some(_)) => {
            painter.right(start.saturating_sub(1), y, "findings", Role::Muted);
        }
        _ => {}
    }
}

fn list_title(list: &SkillList, focused: bool, cx: &Draw<'_>) -> Title {
    let mut note = match list.group {
        GroupBy::None => "all".to_owned(),
        group => format!("by {group}"),
    };
    if let Some(client) = &list.client.view {
        let assumed = if client.assumed_folders.is_empty() { "" } else { " (assumed)" };
        note = format!("{note} {} as {}{assumed}", cx.glyphs.dot, shown(&client.name));
    }
    Title::of("Skills", focused).note(note)
}

fn draw_rows(
    list: &mut SkillList,
    window: Rect,
    columns: &Columns,
    painter: &mut Painter<'_>,
    focused: bool,
) {
    list.area = window;
    let height = usize::from(window.height);
    let is_heading = |at: usize| matches!(list.rows.get(at), Some(Row::Group { .. }));
    list.scroll.fit(list.rows.len(), height, list.follow, is_heading);
    if list.rows.is_empty() {
        painter.put(window.x + 3, window.y, "no skills match the filter", Role::Muted, window.width - 3);
    }
    let mut unknown = Vec::new();
    for place in 0..height.min(list.rows.len().saturating_sub(list.scroll.offset)) {
        let index = list.scroll.offset + place;
        let area = Rect { y: window.y + place as u16, height: 1, ..window };
        let selected = index == list.scroll.cursor;
        if selected {
            painter.select(area, focused);
        }
        match list.rows[index].clone() {
            Row::Group { label, count: members, live, folded, .. } => {
                draw_group(&label, members, live, folded, area, painter);
            }
            Row::Entry(entry) => {
                draw_entry(list, entry, selected, area, columns, painter);
                let entry = &list.entries[entry];
                if entry.is_readable() && list.tokens.of(&entry.id).is_none() {
                    unknown.push(entry.id.clone());
                }
            }
        }
    }
    list.wanted.extend(list.tokens.request(unknown.iter()));
}

fn draw_entry(
    list: &mut SkillList,
    index: usize,
    selected: bool,
    area: Rect,
    columns: &Columns,
    painter: &mut Painter<'_>,
) {
    let entry = &list.entries[index];
    let y = area.y;
    // A skill that is shadowed here may be a separate one for the client.
    let listed = || {
        let client = list.client.view.as_ref()?;
        let listed = client.entries.iter().find(|listed| listed.skill_id == entry.id)?;
        let is_known = !matches!(listed.state, ClientViewState::Unknown(_));
        let state = if is_known { "listed by" } else { "unknown in" };
        Some(format!("{state} {}, rejected here", shown(&client.name)))
    };
    let marker = match (&list.client.view, list.client.unseen.get(&entry.id)) {
        (Some(_), Some(why)) => Some(why.clone()),
        (Some(_), None) if matches!(entry.exclusion, ExclusionReason::Shadowed(_)) => None,
        (Some(_), None) if matches!(entry.exclusion, ExclusionReason::Refused(_)) => {
            listed().or_else(|| entry.note.clone())
        }
        _ => entry.note.clone(),
    };
    if let Some(note) = marker {
        let available = (area.width / 4).max(12);
        let role = if selected { Role::Strong } else { Role::Muted };
        draw_name(entry, None, &mut list.fuzzy, Rect::new(columns.name, y, available, 1), role, painter);
        let x = columns.name + available + 1;
        let available = columns.tokens_end.saturating_sub(x);
        let note = cut_end(&note, available, painter.glyphs.ellipsis);
        painter.put(x, y, &note, Role::Muted, available);
        return;
    }
    let role = if selected { Role::Strong } else { Role::Text };
    // A narrow list shows what the client shows in the column of the tokens.
    let budget_word = list
        .client
        .budget()
        .filter(|_| columns.role.is_none() && list.sort != SortBy::Changed)
        .and_then(|budget| budget.budget_label(&entry.id));
    let badge = match entry.findings {
        (0, 0) => None,
        (0, warnings) => Some((format!("{}{warnings}", painter.glyphs.warn), Role::Warning)),
        (errors, _) => Some((format!("{}{errors}", painter.glyphs.bad), Role::Danger)),
    };
    let is_edited = list.edited.contains(&entry.id);
    let marks = badge.as_ref().map_or(0, |(text, _)| cells(text).min(BADGE_WIDTH) + 1);
    let marks = marks + if is_edited { 2 } else { 0 };
    // A long word moves the marks before it to the left.
    let word_start = budget_word.as_ref().map(|(word, _)| columns.tokens_end.saturating_sub(cells(word)));
    let marks_start = word_start.map_or(columns.badge, |at| columns.badge.min(at.saturating_sub(marks)));
    let name_room = columns.name_room.saturating_sub(columns.badge - marks_start);
    let available = Rect::new(columns.name, y, name_room, 1);
    draw_name(entry, entry.status.as_deref(), &mut list.fuzzy, available, role, painter);
    if let Some(x) = columns.role {
        let (word, role) = list
            .client
            .budget()
            .and_then(|budget| budget.budget_label(&entry.id))
            .unwrap_or_else(|| (entry.role.to_string(), Role::Muted));
        painter.put(x, y, &word, role, 10);
    }
    let mut x = marks_start;
    if let Some((text, role)) = badge {
        x = painter.put(x, y, &text, role, BADGE_WIDTH) + 1;
    }
    if is_edited {
        painter.put(x, y, painter.glyphs.edited, Role::Info, 1);
    }
    if list.sort == SortBy::Changed {
        painter.right(columns.tokens_end, y, &day(entry.modified), Role::Text);
    } else if let Some((word, role)) = budget_word {
        painter.right(columns.tokens_end, y, &word, role);
    } else if let Some(levels) = list.tokens.of(&entry.id) {
        painter.right(columns.tokens_end, y, &token_count(levels.body_count(), painter.glyphs), Role::Text);
    }
}

/// Draws the totals and the sort order; returns the row of the rule.
fn draw_summary(list: &SkillList, area: Rect, painter: &mut Painter<'_>) -> u16 {
    let title = match &list.client.view {
        Some(client) => Title::of(format!("Catalog of {}", shown(&client.name)), false),
        None => Title::of("Catalog", false),
    };
    let mut title = title;
    for seg in &mut title.name.segs {
        seg.role = Role::Muted;
    }
    title.draw(painter, area.x, area.y, area.width);
    let x = area.x + 3;
    let width = area.width.saturating_sub(4);
    let skills = list.catalog.entries.len();
    let mut y = area.y + 1;
    if list.client.view.is_some() {
        let all = list.entries.len();
        let seen = list.entries.iter().filter(|e| !list.client.unseen.contains_key(&e.id) && e.is_readable());
        let seen =
            list.client.budget().and_then(super::budget::Budget::listed).unwrap_or_else(|| seen.count());
        let dot = format!(" {} ", painter.glyphs.dot);
        let seen_of = format!("{} of {} loaded", count(seen), count(all));
        let made = list.client.budget().map(super::budget::Budget::counts).unwrap_or_default().join(&dot);
        let rows = match (made.is_empty(), area.height >= 7) {
            (true, _) => vec![seen_of],
            (false, true) => vec![seen_of, made],
            (false, false) => vec![format!("{seen_of}{dot}{made}")],
        };
        for row in rows {
            painter.put_cut(x, y, &row, Role::Text, width);
            y += 1;
        }
        let sums = list.client.budget().and_then(|budget| budget.sums(painter));
        if let Some(sums) = sums.filter(|_| y < area.bottom()) {
            painter.line(x, y, &cut_line(&sums, width, painter.glyphs.ellipsis), width);
            y += 1;
        }
        let unseen = list.client.budget().map(super::budget::Budget::unseen).unwrap_or_default();
        for why in unseen {
            if y + 1 >= area.bottom() {
                break;
            }
            painter.put_cut(x, y, &why, Role::Muted, width);
            y += 1;
        }
        if y + 2 < area.bottom() {
            share(painter, x, y, width, seen as f64 / all.max(1) as f64);
            y += 1;
        }
    } else {
        let roots = list.catalog.roots.iter().filter(|r| r.state == skills_registry::RootState::Present);
        let from = format!("{} from {}", counted(skills, "skill"), counted(roots.count(), "root"));
        painter.put(x, y, &from, Role::Text, width);
        y += 1;
        if y < area.bottom() {
            // Listed skills, not findings: the linter's findings across skills are not known here.
            let listed = || list.entries.iter().filter(|e| matches!(e.exclusion, ExclusionReason::Skill));
            let errors = listed().filter(|e| e.findings.0 > 0).count();
            let warnings = listed().filter(|e| e.findings.1 > 0).count();
            let bad = findings_line([errors, warnings], width, painter.glyphs);
            painter.line(x, y, &bad, width);
            y += 1;
        }
        if y + 1 < area.bottom() {
            let (shadowed, refused) = (list.catalog.shadowed.len(), list.catalog.refused.len());
            let dot = painter.glyphs.dot;
            let text = format!("{} shadowed {dot} {} rejected", count(shadowed), count(refused));
            painter.put(x, y, &text, Role::Muted, width);
            y += 1;
        }
    }
    if let Some(client) = list.client.view.as_ref().filter(|_| y + 1 < area.bottom()) {
        let at = painter.put(x, y, "source ", Role::Muted, width);
        let text = shown(&client.source);
        let available = width.saturating_sub(7);
        painter.put(at, y, &cut_middle(&text, available, painter.glyphs.ellipsis), Role::Text, available);
        y += 1;
    }
    if y < area.bottom() {
        let line = pairs(&[("sort", list.sort.to_string()), ("group", list.group.to_string())]);
        painter.line(x, y, &cut_line(&line, width, painter.glyphs.ellipsis), width);
    }
    area.y
}

/// Counts the skills with errors and with warnings; a narrow line has the signs instead of the words.
fn findings_line(skills: [usize; 2], width: u16, glyphs: &Glyphs) -> RichLine {
    if skills == [0, 0] {
        return RichLine::of("no errors or warnings", Role::Muted);
    }
    let kinds = [(glyphs.bad, Role::Danger, "errors"), (glyphs.warn, Role::Warning, "warnings")];
    let line = |is_short: bool| {
        let mut segs = Vec::new();
        let has_both = skills.iter().all(|number| *number > 0);
        for ((glyph, role, kind), number) in kinds.into_iter().zip(skills).filter(|(_, number)| *number > 0) {
            let gap = if segs.is_empty() { "" } else { "  " };
            let text = if !is_short {
                format!("{} with {kind}", count(number))
            } else if segs.is_empty() && has_both {
                count(number)
            } else {
                counted(number, "skill")
            };
            segs.extend([Seg::new(format!("{gap}{glyph} "), role), Seg::new(text, Role::Muted)]);
        }
        RichLine::from_segs(segs)
    };
    let long = line(false);
    if long.width() <= usize::from(width) { long } else { line(true) }
}

fn draw_group(label: &str, members: usize, live: bool, folded: bool, area: Rect, painter: &mut Painter<'_>) {
    let sign = if folded { painter.glyphs.closed } else { painter.glyphs.open };
    painter.put(area.x + 1, area.y, sign, Role::Muted, 1);
    let number = count(members);
    let end = area.right().saturating_sub(1);
    let available = area.width.saturating_sub(6 + cells(&number));
    let with_live = live && cells(label) + 12 <= available;
    let shortened = cut_middle(label, available, painter.glyphs.ellipsis);
    let x = painter.put(area.x + 3, area.y, &shortened, Role::Strong, available);
    painter.put(x + 1, area.y, &number, Role::Muted, 8);
    if with_live {
        let note = RichLine::of(format!("{} watched", painter.glyphs.set), Role::Info);
        painter.line_right(end, area.y, &note);
    }
}

/// Truncates an id; the digits that distinguish it from others of the same name are kept.
fn cut_id(id: &str, available: u16, ellipsis: &str) -> String {
    let namesake = id.rsplit_once('@').is_some_and(|(_, digits)| digits.chars().count() >= 3);
    if cells(id) <= available || !namesake || available < 8 {
        return cut_end(id, available, ellipsis).into_owned();
    }
    let tail: String = id.chars().skip(id.chars().count() - 3).collect();
    let front = available.saturating_sub(cells(ellipsis) + cells(&tail));
    format!("{}{ellipsis}{tail}", head(id, front))
}

/// Draws an id with the matches of the filter underlined; after it, if they fit, the name if it differs and the status.
/// The status is truncated first.
fn draw_name(
    entry: &Entry,
    status: Option<&str>,
    fuzzy: &mut crate::widgets::fuzzy::Fuzzy,
    area: Rect,
    role: Role,
    painter: &mut Painter<'_>,
) {
    let label = cut_id(&entry.label, area.width, painter.glyphs.ellipsis);
    let is_full = label == entry.label;
    let mut used = cells(&label);
    let mut fits = |text: &str| {
        let more = 2 + cells(text);
        let fits = is_full && used + more <= area.width;
        used += if fits { more } else { 0 };
        fits
    };
    let name = entry.name.as_deref().filter(|name| fits(name));
    let status = status.filter(|status| fits(status));
    // Indices refer to the text that the filter searches: id, one space, name.
    let letters = match &entry.name {
        Some(name) => fuzzy.letters(&format!("{} {name}", entry.label)),
        None => fuzzy.letters(&entry.label),
    };
    let mut segs: Vec<Seg> = Vec::new();
    let mut write = |text: &str, from: usize, role: Role| {
        for (place, c) in text.chars().enumerate() {
            let hit = u32::try_from(from + place).is_ok_and(|place| letters.binary_search(&place).is_ok());
            let (role, plus) =
                if hit { (Role::Accent, Modifier::UNDERLINED) } else { (role, Modifier::empty()) };
            match segs.last_mut() {
                Some(last) if last.role == role && last.plus == plus => last.text.push(c),
                _ => segs.push(Seg::new(c, role).with(plus)),
            }
        }
    };
    write(&label, 0, role);
    if let Some(name) = name {
        write("  ", usize::MAX / 2, Role::Muted);
        write(name, entry.label.chars().count() + 1, Role::Muted);
    }
    if let Some(status) = status {
        write("  ", usize::MAX / 2, Role::Muted);
        write(status, usize::MAX / 2, Role::Muted);
    }
    painter.line(area.x, area.y, &RichLine::from_segs(segs), area.width);
}

#[cfg(test)]
mod tests {
    use super::findings_line;
    use crate::glyphs::UNICODE;

    #[test]
    fn narrow_pane_shortens_words_but_not_numbers() {
        for (skills, width, expected) in [
            ([310, 1_753], 40, "✗ 310 with errors  ! 1,753 with warnings"),
            ([310, 1_753], 39, "✗ 310  ! 1,753 skills"),
            ([0, 1], 30, "! 1 with warnings"),
            ([0, 0], 30, "no errors or warnings"),
        ] {
            assert_eq!(findings_line(skills, width, &UNICODE).plain_text(), expected);
        }
    }
}
