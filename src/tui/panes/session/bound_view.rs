//! How full the client's catalogue is, in the client's own unit, and how many skills it does not list, and why.

use ratatui::layout::Rect;

use super::SessionPane;
use crate::session::{Fill, Unit};
use crate::tui::theme::Role;
use crate::tui::widgets::figures::count;
use crate::tui::widgets::measure::{cells, cut_end, shown};
use crate::tui::widgets::pen::Pen;

/// Reasons that are told one by one.
const REASONS: usize = 2;

impl SessionPane {
    /// Below the sizes by level; answers the row below.
    pub(super) fn draw_bound(&self, area: Rect, pen: &mut Pen<'_>) -> u16 {
        let Some(composed) = &self.composed else { return area.y };
        let mut y = area.y;
        let room = area.width.saturating_sub(5);
        if let Some(fill) = &composed.allowance
            && y < area.bottom()
        {
            let over = fill.limit.is_some_and(|limit| fill.used > limit);
            let told = filled(fill, pen.glyphs.warn);
            if let Some(told) = told.iter().find(|told| cells(told) <= room).or(told.last()) {
                let role = if over { Role::Warning } else { Role::Text };
                pen.put(area.x + 4, y, &cut_end(told, room, pen.glyphs.ellipsis), role, room);
            }
            y += 1;
        }
        for group in composed.not_listed.iter().take(REASONS) {
            if y >= area.bottom() {
                break;
            }
            let at =
                pen.put(area.x + 4, y, &format!("{} unseen: ", count(group.skills)), Role::Warning, room);
            let left = area.right().saturating_sub(at + 1);
            pen.put(at, y, &cut_end(&shown(&group.why), left, pen.glyphs.ellipsis), Role::Muted, left);
            y += 1;
        }
        y
    }
}

/// From the longest way of saying it to the shortest.
fn filled(fill: &Fill, warn: &str) -> Vec<String> {
    let Some(limit) = fill.limit else {
        return vec!["its bound: not published".to_owned(), "no bound".to_owned()];
    };
    let unit = if fill.unit == Unit::Tokens { "tok" } else { "chars" };
    let (used, of) = (count(fill.used), count(limit));
    let share = if limit == 0 { 0.0 } else { fill.used as f64 / limit as f64 * 100.0 };
    let mark = if fill.used > limit { format!("{warn} ") } else { String::new() };
    vec![
        format!("{mark}its bound: {used} of {of} {unit}, {share:.0} %"),
        format!("{mark}{used} of {of} {unit}, {share:.0} %"),
        format!("{mark}{used} of {of} {unit}"),
        format!("{mark}{share:.0} % of {of}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_told_in_the_clients_own_unit() {
        let codex = Fill { limit: Some(4_000), used: 3_998, unit: Unit::Tokens, ..Fill::default() };
        let told = filled(&codex, "!");
        assert!(told[0].ends_with(" tok, 100 %") && told[0].starts_with("its bound: 3"), "{told:?}");
        let over = Fill { limit: Some(8_000), used: 90_000, ..Fill::default() };
        assert!(filled(&over, "!").iter().all(|told| told.starts_with("! ")));
        assert!(filled(&Fill::default(), "!")[0].contains("not published"));
    }
}
