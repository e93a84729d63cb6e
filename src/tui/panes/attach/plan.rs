//! The columns of the left part.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::widgets::Painter;

/// Minimum height for blank rows between parts.
const ROOMY: u16 = 30;

/// The layout of the left part in this frame.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub area: Rect,
    /// Column at which the fields begin.
    pub field: u16,
    /// Width of the fields.
    pub width: u16,
    /// Whether there are blank rows.
    pub roomy: bool,
}

impl Plan {
    pub fn new(area: Rect) -> Self {
        let label = if area.width < 50 { 10 } else { 14 };
        let width = area.width.saturating_sub(label + 2);
        Self { area, field: area.x + label, width, roomy: area.height >= ROOMY }
    }

    pub fn label(self, label: &str, y: u16, focused: bool, painter: &mut Painter<'_>) {
        if focused {
            painter.put(self.area.x, y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        let role = if focused { Role::Strong } else { Role::Muted };
        painter.put(self.area.x + 2, y, label, role, self.field.saturating_sub(self.area.x + 2));
    }
}
