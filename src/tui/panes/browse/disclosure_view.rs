//! Draws what a model receives of the skill at each disclosure level, and the skill's classification.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::skill_list::ShownBundle;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Seg, Title, byte_size, counted, cut_line, shown, token_count};
use skills_api::{LevelTokens, SkillDetail};
use skills_registry::TrustSummary;

/// Returns the rows of the strip in a part of that height.
pub fn height(part: u16) -> u16 {
    match part {
        28.. => 7,
        18..28 => 5,
        _ => 0,
    }
}

pub(super) fn draw(
    shown: ShownBundle<'_>,
    detail: Option<&SkillDetail>,
    levels: Option<&LevelTokens>,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) {
    let mut painter = Painter::new(buf, cx);
    let mut title = Title::of("Disclosure", false);
    for seg in &mut title.name.segs {
        seg.role = Role::Muted;
    }
    if let Some(skill) = shown.skill {
        let digest = skill.digest.to_string();
        title = title.note(format!("sha256 {}{}{}", &digest[..4], painter.glyphs.ellipsis, &digest[60..]));
    }
    title.draw(&mut painter, area.x, area.y, area.width);
    let Some(skill) = shown.skill else { return };

    let files = detail.map(|d| (d.files.len(), d.files.iter().map(|f| f.bytes).sum()));
    let files = files.or(levels.map(|l| (l.l3_files as usize, l.l3_bytes)));
    let x = area.x + 2;
    let rows = [
        ("L1", "catalog", levels.map(|l| token_count(l.entry_count(), cx.glyphs)), "tok", "in every call"),
        (
            "L2",
            "body",
            levels.map(|l| token_count(l.body_count(), cx.glyphs)),
            "tok",
            "when the model loads it",
        ),
    ];
    let (number_end, note_x) = (x + 26, x + 34);
    let note_room = area.right().saturating_sub(note_x);
    let roles = [Role::Level1, Role::Level2, Role::Level3];
    for (row, (level, what, amount, unit, when)) in rows.iter().enumerate() {
        let y = area.y + 1 + row as u16;
        painter.rail(x, y, 1, row + 1);
        painter.put(x + 2, y, level, roles[row], 2);
        painter.put(x + 5, y, what, Role::Text, 16);
        if let Some(amount) = amount {
            painter.right(number_end, y, amount, Role::Text);
            painter.put(number_end + 1, y, unit, Role::Muted, 4);
        }
        if note_room >= 24 {
            painter.put(note_x, y, when, Role::Muted, note_room);
        }
    }
    let y = area.y + 3;
    painter.rail(x, y, 1, 3);
    painter.put(x + 2, y, "L3", roles[2], 2);
    if let Some((count, size)) = files {
        let what = if count == 0 { "no files".to_owned() } else { counted(count, "file") };
        painter.put(x + 5, y, &what, Role::Text, 16);
        if count > 0 {
            let size = byte_size(size);
            let (amount, unit) = size.rsplit_once(' ').unwrap_or((&size, ""));
            painter.right(number_end, y, amount, Role::Text);
            painter.put(number_end + 1, y, unit, Role::Muted, 4);
            if note_room >= 28 {
                painter.put(note_x, y, "when read or run", Role::Muted, note_room);
            }
        }
    }
    let trusted = detail.filter(|d| d.skill.id == shown.entry.id).map(|d| d.summary.trusted);
    let y = area.y + if area.height >= 7 { 5 } else { 4 };
    let available = area.width.saturating_sub(3);
    let rows = usize::from(area.bottom().saturating_sub(y));
    let items = classification_items(skill, trusted);
    for (line, y) in item_lines(items, painter.glyphs.dot, available, rows).iter().zip(y..) {
        painter.line(x, y, &cut_line(line, available, painter.glyphs.ellipsis), available);
    }
}

/// Joins items with the dot to at most `max_lines` lines, each but the last of at most `width` cells.
fn item_lines(items: Vec<Vec<Seg>>, dot: &str, width: u16, max_lines: usize) -> Vec<RichLine> {
    let separator = Seg::new(format!(" {dot} "), Role::Muted);
    let mut lines: Vec<RichLine> = Vec::new();
    for item in items {
        let item = RichLine::from_segs(item);
        let is_last = lines.len() == max_lines;
        match lines.last_mut() {
            Some(line) if is_last || line.width() + 3 + item.width() <= usize::from(width) => {
                line.segs.push(separator.clone());
                line.segs.extend(item.segs);
            }
            _ => lines.push(item),
        }
    }
    lines
}

/// Formats the classification: `role procedure inferred`, `effect read only`, `untrusted`, `kind tool`, `tools Read`.
fn classification_items(skill: &skills_skill::Skill, trusted: Option<TrustSummary>) -> Vec<Vec<Seg>> {
    let class = &skill.classification;
    let mut items = Vec::new();
    // What is inferred is marked once if it is everything: with three marks, the end would be cut off.
    let is_inferred = class.role.inferred && class.effect_mode.inferred && skill.kind.inferred;
    let mark = |inferred: bool| if inferred && !is_inferred { " inferred" } else { "" };
    let mut push = |label: &str, value: String, role: Role, mark: &'static str| {
        let mut segs = Vec::new();
        if !label.is_empty() {
            segs.push(Seg::new(format!("{label} "), Role::Muted));
        }
        segs.push(Seg::new(value, role));
        if !mark.is_empty() {
            segs.push(Seg::new(mark, Role::Muted));
        }
        items.push(segs);
    };
    push("role", class.role.value.to_string(), Role::Text, mark(class.role.inferred));
    let effect = class.effect_mode.value.to_string().replace('_', " ");
    push("effect", effect, Role::Text, mark(class.effect_mode.inferred));
    if let Some(trusted) = trusted {
        let (text, role) = match trusted {
            TrustSummary::Shipped => ("shipped", Role::Text),
            TrustSummary::Yes => ("trusted", Role::Text),
            TrustSummary::Changed => ("changed since trusted", Role::Warning),
            TrustSummary::No => ("untrusted", Role::Text),
        };
        push("", text.to_owned(), role, "");
    }
    let mark_of_kind = if is_inferred { " (all inferred)" } else { mark(skill.kind.inferred) };
    push("kind", skill.kind.value.to_string(), Role::Text, mark_of_kind);
    if !skill.properties.allowed_tools.is_empty() {
        let tools: Vec<String> = skill.properties.allowed_tools.iter().map(|t| shown(t)).collect();
        push("tools", tools.join(", "), Role::Text, "");
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_do_not_fit_start_the_next_line() {
        let lines = |width, max_lines| {
            let items = ["role utility", "kind tool (all inferred)", "tools Read"];
            let items = items.map(|item| vec![Seg::new(item, Role::Text)]).to_vec();
            let lines = item_lines(items, "-", width, max_lines);
            let text = |line: &RichLine| line.segs.iter().map(|seg| seg.text.as_str()).collect::<String>();
            lines.iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(lines(80, 2), ["role utility - kind tool (all inferred) - tools Read"]);
        assert_eq!(lines(39, 2), ["role utility - kind tool (all inferred)", "tools Read"]);
        assert_eq!(lines(20, 2), ["role utility", "kind tool (all inferred) - tools Read"]);
        assert_eq!(lines(20, 1), ["role utility - kind tool (all inferred) - tools Read"]);
    }
}
