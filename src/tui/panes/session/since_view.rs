//! What the next call has that the last one had not, and in what other way it is made.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::SessionPane;
use crate::gateway::{DiffLine, SinceLast};
use crate::tui::pane::Draw;
use crate::tui::theme::Role;
use crate::tui::widgets::figures::{bytes, count, counted};
use crate::tui::widgets::measure::{cut_end, shown};
use crate::tui::widgets::pen::Pen;
use crate::tui::widgets::rule::Title;

/// Up to so many entries of the catalogue are told by name.
const NAMED: usize = 4;

impl SessionPane {
    pub(super) fn draw_since(&self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
        if area.height < 3 {
            return;
        }
        let Some(composed) = &self.composed else { return };
        Title::of("Since the last call", false).draw(&mut Pen::new(buf, cx), area.x, area.y, area.width);
        let mut pen = Pen::new(buf, cx);
        let room = area.width.saturating_sub(4);
        let mut y = area.y + 1 + u16::from(area.height > 5);
        let Some(diff) = &composed.diff else {
            let none = cut_end("none yet: c makes one", room, pen.glyphs.ellipsis);
            pen.put(area.x + 2, y, &none, Role::Muted, room);
            return;
        };
        let to = if pen.glyphs.ascii { "to" } else { "→" };
        let settings = composed.since.as_ref().map(|since| settings(since, to)).unwrap_or_default();
        let changes = changes(diff);
        if settings.is_empty() && changes.is_empty() {
            pen.put(area.x + 2, y, "nothing changed", Role::Muted, room);
        }
        for told in settings {
            if y >= area.bottom() {
                return;
            }
            pen.put(area.x + 2, y, &cut_end(&told, room, pen.glyphs.ellipsis), Role::Info, room);
            y += 1;
        }
        for (added, what) in changes {
            if y >= area.bottom() {
                return;
            }
            let (sign, role) = if added { ("+", Role::DiffAdd) } else { (pen.glyphs.minus, Role::DiffDel) };
            pen.put(area.x + 2, y, sign, role, 1);
            pen.put(area.x + 4, y, &cut_end(&what, room, pen.glyphs.ellipsis), Role::Text, room);
            y += 1;
        }
        let bytes_now = bytes(composed.composed.text.len() as u64);
        if y + 1 < area.bottom() {
            pen.put(area.x + 2, y + 1, &format!("{bytes_now} in all"), Role::Muted, room);
        }
    }
}

/// Settings that are others now, and how the catalogue grew or shrank by that.
fn settings(since: &SinceLast, to: &str) -> Vec<String> {
    let changed = since
        .changes
        .iter()
        .map(|change| format!("{} {} {to} {}", change.what, shown(&change.before), shown(&change.now)));
    let (before, now) = since.entries;
    let entries = (before != now && !since.changes.is_empty())
        .then(|| format!("{} {to} {}", count(before), counted(now, "entry").replace("entrys", "entries")));
    let reordered = since.reordered.iter().map(|what| match what.as_str() {
        "bodies" => "loaded in another order".to_owned(),
        what => format!("{} in another order", shown(what)),
    });
    changed.chain(entries).chain(reordered).collect()
}

/// Bodies and entries that came and went; many entries, and other lines, are counted.
fn changes(diff: &[DiffLine]) -> Vec<(bool, String)> {
    let mut bodies = Vec::new();
    let mut entries = Vec::new();
    let mut lines = (0_usize, 0_usize);
    for line in diff {
        let (added, text) = match line {
            DiffLine::Added(text) => (true, text),
            DiffLine::Removed(text) => (false, text),
            DiffLine::Same(_) => continue,
        };
        if added {
            lines.0 += 1;
        } else {
            lines.1 += 1;
        }
        let body = text.strip_prefix("<skill name=\"").and_then(|rest| rest.strip_suffix("\">"));
        let entry = text.strip_prefix("<name>").and_then(|rest| rest.strip_suffix("</name>"));
        if let Some(name) = body {
            bodies.push((added, format!("{} body", shown(name))));
        } else if let Some(name) = entry {
            entries.push((added, format!("{} entry", shown(name))));
        }
    }
    if entries.len() > NAMED {
        let came = entries.iter().filter(|(added, _)| *added).count();
        let told = [(true, came), (false, entries.len() - came)];
        entries = told
            .into_iter()
            .filter(|(_, many)| *many > 0)
            .map(|(added, many)| {
                (added, format!("{} {}", count(many), if many == 1 { "entry" } else { "entries" }))
            })
            .collect();
    }
    let mut out: Vec<(bool, String)> = bodies.into_iter().chain(entries).collect();
    if out.is_empty() && lines != (0, 0) {
        out.push((lines.0 >= lines.1, format!("{} lines new, {} gone", lines.0, lines.1)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::SettingChanged;

    #[test]
    fn another_client_is_told_before_what_it_left_out_and_what_only_moved_after_it() {
        let changed = SettingChanged { what: "client".into(), before: "none".into(), now: "codex".into() };
        let reordered = vec!["catalogue".to_owned(), "bodies".to_owned()];
        let since = SinceLast { changes: vec![changed], entries: (4_483, 57), reordered };
        let told = settings(&since, "→");
        assert_eq!(told[2..], ["catalogue in another order", "loaded in another order"]);
        assert_eq!(told[0], "client none → codex");
        assert!(told[1].ends_with("→ 57 entries"), "{told:?}");
        let diff: Vec<DiffLine> =
            (0..9).map(|at| DiffLine::Removed(format!("<name>skill-{at}</name>"))).collect();
        assert_eq!(changes(&diff), [(false, "9 entries".to_owned())]);
        assert_eq!(changes(&diff[..2]).len(), 2, "a few are named");
    }
}
