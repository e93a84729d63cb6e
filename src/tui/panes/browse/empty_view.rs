//! Draws Browse without a skill: what was searched, and what to do.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::skill_list::SkillList;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::bars::SIGNALS;
use crate::widgets::{Painter, RichLine, Seg, Title, cells, count, counted, cut_middle, shown};
use skills_registry::{RootOrigin, RootState, ScanProgress};

pub(super) fn draw(list: &SkillList, scan: &ScanProgress, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    let mut title = Title::of("Skills", cx.focused);
    if let Some(client) = &list.client.view {
        title = title.note(format!("as {}", shown(&client.name)));
    }
    let mut painter = Painter::new(buf, cx);
    title.draw(&mut painter, area.x, area.y, area.width);
    let scanning = !scan.done && scan.found > 0;
    let roots = &list.catalog.roots;
    let requested = 12 + roots.len() as u16;
    let width = area.width.saturating_sub(4).min(66);
    let x = area.x + (area.width.saturating_sub(width)) / 2;
    let mut y = area.y + 2 + area.height.saturating_sub(requested + 4) / 2;
    for (place, role) in SIGNALS.iter().take(4).enumerate() {
        for cell in 0..2 {
            painter.put(x + 2 * place as u16 + cell, y, painter.glyphs.mark[place], *role, 1);
        }
    }
    y += 2;
    if scanning {
        painter.put(x, y, &format!("Reading {}", counted(scan.found, "file")), Role::Strong, width);
        y += 1;
        painter.put(x, y, &format!("{} loaded", count(scan.parsed)), Role::Muted, width);
        return;
    }
    if !scan.done && roots.is_empty() {
        painter.put(x, y, "Searching for skills", Role::Strong, width);
        return;
    }
    painter.put(x, y, "No skills found", Role::Strong, width);
    y += 1;
    painter.put(x, y, &format!("Searched in {}:", counted(roots.len(), "place")), Role::Muted, width);
    y += 2;
    let longest = roots.iter().map(|r| cells(&r.title())).max().unwrap_or(0);
    let label = longest.clamp(20, width.saturating_sub(18).max(20));
    let rows = area.bottom().saturating_sub(y + 6);
    for root in roots.iter().take(usize::from(rows)) {
        let named = matches!(root.origin, RootOrigin::Argument | RootOrigin::Config);
        let (state, role) = match &root.state {
            RootState::Missing if named => ("no such folder".to_owned(), Role::Danger),
            RootState::Present => ("empty".to_owned(), Role::Text),
            RootState::Missing => ("no such folder".to_owned(), Role::Muted),
            RootState::Unreadable(why) => (shown(why), Role::Danger),
        };
        let failed = role == Role::Danger;
        let (sign, sign_role) =
            if failed { (painter.glyphs.bad, role) } else { (painter.glyphs.pending, Role::Muted) };
        painter.put(x, y, sign, sign_role, 1);
        let name = shown(&root.title());
        painter.put(x + 2, y, &cut_middle(&name, label, painter.glyphs.ellipsis), Role::Text, label);
        painter.put(x + 2 + label + 3, y, &state, role, width.saturating_sub(label + 5));
        y += 1;
    }
    if roots.len() > usize::from(rows) {
        painter.put(x + 2, y, &format!("and {} more", roots.len() - usize::from(rows)), Role::Muted, width);
        y += 1;
    }
    y += 1;
    let open = RichLine::from_segs(vec![
        Seg::new("skills --root FOLDER", Role::Key),
        Seg::new("  opens a folder of skills", Role::Muted),
    ]);
    painter.line(x, y, &open, width);
    y += 1;
    let shipped = RichLine::from_segs(vec![
        Seg::new("skills --demo", Role::Key),
        Seg::new("         shows the shipped skills", Role::Muted),
    ]);
    painter.line(x, y, &shipped, width);
    y += 2;
    let live = roots.iter().any(|r| r.live || r.state == RootState::Missing);
    if live {
        let text = "New skills appear automatically: the folders are watched.";
        painter.put(x, y, text, Role::Muted, width);
    }
}
