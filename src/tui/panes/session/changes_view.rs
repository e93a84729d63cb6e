//! Draws what the next call contains that the last one did not, and which settings changed.

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::state::SessionState;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, Title, byte_size, cells, count, counted, cut_end, shown};
use skills_api::{DiffLine, SinceLast};
use skills_session::Form;

/// Maximum number of catalog entries listed by name.
const MAX_NAMED_ENTRIES: usize = 4;

pub(super) fn draw(state: &SessionState, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    if area.height < 3 {
        return;
    }
    let Some(composed) = &state.composed else { return };
    Title::of("Since the last call", false).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    let mut painter = Painter::new(buf, cx);
    let available = area.width.saturating_sub(4);
    let mut y = area.y + 1 + u16::from(area.height > 5);
    let Some(diff) = &composed.diff else {
        let long = "no recorded call; c records one";
        let text = if cells(long) <= available { long } else { "none yet: c records one" };
        let none = cut_end(text, available, painter.glyphs.ellipsis);
        painter.put(area.x + 2, y, &none, Role::Muted, available);
        return;
    };
    let to = if painter.glyphs.ascii { "to" } else { "→" };
    let settings = composed.since.as_ref().map(|since| settings(since, to)).unwrap_or_default();
    let form = state.session.as_ref().map(|session| session.settings.form).unwrap_or_default();
    let other = composed.since.iter().flat_map(|since| &since.changes).any(|change| change.what == "form");
    let changes = changes(diff, if other { Form::Bullets } else { form });
    let changes = without_told_twice(changes, composed.since.as_ref());
    if settings.is_empty() && changes.is_empty() {
        painter.put(area.x + 2, y, "no changes", Role::Muted, available);
    }
    for settings_changes in settings {
        if y >= area.bottom() {
            return;
        }
        painter.put_cut(area.x + 2, y, &settings_changes, Role::Info, available);
        y += 1;
    }
    for (added, what) in changes {
        if y >= area.bottom() {
            return;
        }
        let (sign, role) = if added { ("+", Role::DiffAdd) } else { (painter.glyphs.minus, Role::DiffDel) };
        painter.put(area.x + 2, y, sign, role, 1);
        painter.put_cut(area.x + 4, y, &what, Role::Text, available);
        y += 1;
    }
    let bytes_now = byte_size(composed.composed.text.len() as u64);
    if y + 1 < area.bottom() {
        painter.put(area.x + 2, y + 1, &format!("{bytes_now} in total"), Role::Muted, available);
    }
}

/// Drops the count of added or removed entries if the catalog's size before and after is already shown.
fn without_told_twice(changes: Vec<(bool, String)>, since: Option<&SinceLast>) -> Vec<(bool, String)> {
    let counted = |(_, what): &(bool, String)| what.ends_with(" entries");
    let is_told_twice =
        since.is_some_and(|since| !since.changes.is_empty() && since.entries.0 != since.entries.1);
    if !is_told_twice || changes.iter().filter(|change| counted(change)).count() != 1 {
        return changes;
    }
    changes.into_iter().filter(|change| !counted(change)).collect()
}

/// Returns the changed settings, and the resulting change of the catalog's size.
fn settings(since: &SinceLast, to: &str) -> Vec<String> {
    let changed = since
        .changes
        .iter()
        .map(|change| format!("{} {} {to} {}", change.what, shown(&change.before), shown(&change.now)));
    let (before, now) = since.entries;
    let entries = (before != now && !since.changes.is_empty())
        .then(|| format!("{} {to} {}", count(before), counted(now, "entry")));
    let reordered = since.reordered.iter().map(|what| match what.as_str() {
        "bodies" => "load order changed".to_owned(),
        what => format!("order of {} changed", shown(what)),
    });
    let described = since.redescribed.counts().map(|(many, what)| format!("{} {what}", count(many)));
    changed.chain(entries).chain(described).chain(reordered).collect()
}

/// Returns added and removed bodies and entries; many entries are counted. Other lines are counted after them, except
/// those of an entry whose text alone changed: they are covered by its outcome.
fn changes(diff: &[DiffLine], form: Form) -> Vec<(bool, String)> {
    let mut bodies = Vec::new();
    let mut entries: BTreeMap<String, (bool, bool)> = BTreeMap::new();
    let (mut order, mut lines, mut within) = (Vec::new(), (0_usize, 0_usize), (false, false));
    // Whether a description of several lines continues, in the new text and in the old one.
    let mut continues = (false, false);
    for line in diff {
        let (added, text) = match line {
            DiffLine::Added(text) => (true, text),
            DiffLine::Removed(text) => (false, text),
            DiffLine::Same(text) => {
                continues = (described(continues.0, text), described(continues.1, text));
                continue;
            }
        };
        let side = if added { &mut continues.0 } else { &mut continues.1 };
        let before = *side;
        *side = described(before, text);
        if before && (*side || text.ends_with("</description>")) {
            continue;
        }
        // An added or removed body is reported by its name, which covers its lines.
        let inside = if added { &mut within.0 } else { &mut within.1 };
        if *inside {
            *inside = text != "</skill>";
            continue;
        }
        let body = text.strip_prefix("<skill name=\"").and_then(|rest| rest.strip_suffix("\">"));
        if let Some(name) = body {
            *inside = true;
            bodies.push((added, format!("{} body", shown(name))));
        } else if let Some(name) = entry(text, form) {
            let seen = entries.entry(name.to_owned()).or_insert_with(|| {
                order.push(name);
                (false, false)
            });
            *if added { &mut seen.0 } else { &mut seen.1 } = true;
        } else if !AROUND.iter().any(|start| text.starts_with(start)) {
            *if added { &mut lines.0 } else { &mut lines.1 } += 1;
        }
    }
    let only = |name: &&str| match entries.get(*name) {
        Some((true, false)) => Some((true, format!("{} entry", shown(name)))),
        Some((false, true)) => Some((false, format!("{} entry", shown(name)))),
        _ => None,
    };
    let mut entries: Vec<(bool, String)> = order.iter().filter_map(only).collect();
    if entries.len() > MAX_NAMED_ENTRIES {
        let came = entries.iter().filter(|(added, _)| *added).count();
        let counts = [(true, came), (false, entries.len() - came)];
        entries = counts
            .into_iter()
            .filter(|(_, many)| *many > 0)
            .map(|(added, many)| (added, counted(many, "entry")))
            .collect();
    }
    let mut out: Vec<(bool, String)> = bodies.into_iter().chain(entries).collect();
    if lines != (0, 0) {
        let new = counted(lines.0, "line");
        out.push((lines.0 >= lines.1, format!("{new} new, {} removed", count(lines.1))));
    }
    out
}

/// Returns whether a description continues after this line.
fn described(before: bool, line: &str) -> bool {
    let begins = line.starts_with("<description>");
    let ends = line.ends_with("</description>") || AROUND.iter().any(|start| line.starts_with(start));
    begins && !line.ends_with("</description>") || before && !ends
}

/// Beginnings of lines around entries and bodies, or within an entry: they change together with these.
const AROUND: [&str; 9] = [
    "<skill>",
    "</skill>",
    "<description>",
    "<location>",
    "<available_skills>",
    "</available_skills>",
    "<active_skills>",
    "</active_skills>",
    "[Available Skills]",
];

/// Returns the name of the entry that this line contains or begins.
fn entry(line: &str, form: Form) -> Option<&str> {
    let xml = line.strip_prefix("<name>").and_then(|rest| rest.strip_suffix("</name>"));
    let bullet = || Some(line.strip_prefix("- ")?.split_once(": ")?.0).filter(|name| !name.contains(' '));
    xml.or_else(|| bullet().filter(|_| form == Form::Bullets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_api::{DescriptionChanges, SettingChanged};

    #[test]
    fn changes_are_listed_in_order_of_importance() {
        let changed = SettingChanged { what: "client".into(), before: "none".into(), now: "codex".into() };
        let reordered = vec!["catalogue".to_owned(), "bodies".to_owned()];
        let cut = DescriptionChanges { shortened: 21, name_only: 9, ..DescriptionChanges::default() };
        let since = SinceLast { changes: vec![changed], entries: (4_483, 57), reordered, redescribed: cut };
        let rows = settings(&since, "→");
        assert_eq!(rows[2..4], ["21 truncated", "9 name only"]);
        assert_eq!(rows[4..], ["order of catalogue changed", "load order changed"]);
        assert_eq!(rows[0], "client none → codex");
        assert!(rows[1].ends_with("→ 57 entries"), "{rows:?}");
        let diff: Vec<DiffLine> =
            (0..9).map(|at| DiffLine::Removed(format!("<name>skill-{at}</name>"))).collect();
        assert_eq!(changes(&diff, Form::Xml), [(false, "9 entries".to_owned())]);
        assert_eq!(changes(&diff[..2], Form::Xml).len(), 2, "a few are named");
        let twice = changes(&diff, Form::Xml);
        assert!(without_told_twice(twice.clone(), Some(&since)).is_empty(), "4,483 → 57 says it");
        assert_eq!(without_told_twice(twice.clone(), None), twice);
        let both = vec![(true, "7 entries".to_owned()), (false, "9 entries".to_owned())];
        assert_eq!(without_told_twice(both.clone(), Some(&since)), both, "which came and which went is more");
        assert!(since.describe(crate::widgets::format::count).contains(&"4,426 entries fewer".to_owned()));
    }

    #[test]
    fn lines_outside_bodies_and_entries_are_counted_separately() {
        let new = |text: &str| DiffLine::Added(text.to_owned());
        let gone = |text: &str| DiffLine::Removed(text.to_owned());
        let cut = [gone("<description>Reads pages</description>"), new("<description>Reads</description>")];
        assert!(changes(&cut, Form::Xml).is_empty(), "changes of entries are reported separately");
        let body = [new("<skill name=\"pdf\">"), new("- one: two"), new("text"), new("</skill>")];
        let long =
            ["<skill>", "<name>a</name>", "<description>One", "two", "three</description>", "</skill>"];
        let long: Vec<DiffLine> = long.into_iter().map(gone).collect();
        assert_eq!(changes(&long, Form::Xml), [(false, "a entry".to_owned())]);
        let prompt = [new("You are a clerk."), gone("You are a cook.")];
        let all: Vec<DiffLine> = cut.into_iter().chain(body).chain(prompt).collect();
        let rows = [(true, "pdf body".to_owned()), (true, "1 line new, 1 removed".to_owned())];
        for form in [Form::Xml, Form::Bullets] {
            assert_eq!(changes(&all, form), rows);
        }
        let bullets = [gone("- csv: Counts all rows"), new("- csv: Counts"), gone("- log: Merges")];
        assert_eq!(changes(&bullets, Form::Bullets), [(false, "log entry".to_owned())]);
    }
}
