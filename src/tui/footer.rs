//! The last row: the available keys, from the same list as help and palette.

use ratatui::layout::Rect;

use super::action::Action;
use super::theme::Role;
use crate::widgets::{Painter, cells};

/// A key and its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub key: String,
    /// One or two words.
    pub label: String,
    /// The action of a click.
    pub action: Action,
}

impl Item {
    fn width(&self) -> u16 {
        cells(&self.key) + if self.label.is_empty() { 0 } else { 1 + cells(&self.label) }
    }

    fn draw(&self, x: u16, y: u16, painter: &mut Painter<'_>) -> u16 {
        let end = painter.put(x, y, &self.key, Role::Key, self.width());
        if self.label.is_empty() {
            return end;
        }
        painter.put(end + 1, y, &self.label, Role::Muted, self.width())
    }
}

/// Draws items from the left, dropping those on the right that do not fit next to `fixed`, which is always shown.
/// Returns the click targets.
pub fn draw(area: Rect, painter: &mut Painter<'_>, items: &[Item], fixed: &[Item]) -> Vec<(Rect, Action)> {
    painter.band(area, Role::Surface);
    let y = area.y;
    let mut hits = Vec::new();
    let narrow = area.width < 70;
    let mut shown: Vec<Item> = fixed.to_vec();
    if narrow {
        // The last one keeps its label: one word explains the symbols.
        let last = shown.len().saturating_sub(1);
        shown.iter_mut().take(last).for_each(|item| item.label.clear());
    }
    let gap = if narrow { 1 } else { 2 };
    let fixed_width: u16 = shown.iter().map(|item| item.width() + gap).sum::<u16>().saturating_sub(gap);
    let mut at = area.right().saturating_sub(2 + fixed_width).max(area.x);
    let limit = at.saturating_sub(2);
    for item in &shown {
        let end = item.draw(at, y, painter);
        hits.push((Rect::new(at, y, end.saturating_sub(at), 1), item.action));
        at = end + gap;
    }
    let mut x = area.x + 2;
    for item in items {
        if x + item.width() > limit {
            break;
        }
        let end = item.draw(x, y, painter);
        hits.push((Rect::new(x, y, end - x, 1), item.action));
        x = end + 2;
    }
    hits
}
