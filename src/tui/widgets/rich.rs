//! Text with roles instead of colors: rendered once off the UI task and styled by the theme when it is drawn, so that a
//! change of the theme requires no rendering.

use ratatui::style::Modifier;

use super::text_width::TextWidth as _;
use crate::theme::Role;

/// A segment of text in one role. Its text is already safe to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seg {
    pub text: String,
    /// The role, which determines its style.
    pub role: Role,
    /// Modifiers in addition to the role's style.
    pub plus: Modifier,
}

impl Seg {
    /// Creates a segment in a role.
    pub fn new(text: impl Into<String>, role: Role) -> Self {
        Self { text: text.into(), role, plus: Modifier::empty() }
    }

    /// Returns a segment of other text in the same style. A segment may be megabytes long, so its text is not cloned
    /// for that.
    #[must_use]
    pub fn with_text(&self, text: impl Into<String>) -> Self {
        Self { text: text.into(), role: self.role, plus: self.plus }
    }

    /// Adds modifiers to the segment.
    #[must_use]
    pub fn with(mut self, plus: Modifier) -> Self {
        self.plus |= plus;
        self
    }
}

/// A line, ready to draw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RichLine {
    /// Its segments from left to right.
    pub segs: Vec<Seg>,
    /// A band under the full line (code is on `surface`).
    pub band: Option<Role>,
    /// The line of the source text it begins in, from 1; 0 for a line that continues the one above.
    pub source: u32,
}

impl RichLine {
    /// Creates a line of one segment.
    pub fn of(text: impl Into<String>, role: Role) -> Self {
        Self { segs: vec![Seg::new(text, role)], band: None, source: 0 }
    }

    /// Creates a line of several segments.
    pub fn from_segs(segs: Vec<Seg>) -> Self {
        Self { segs, band: None, source: 0 }
    }

    /// Returns its width in cells.
    pub fn width(&self) -> usize {
        self.segs.iter().map(|s| s.text.width()).sum()
    }

    /// Returns the text alone.
    pub fn plain_text(&self) -> String {
        self.segs.iter().map(|s| s.text.as_str()).collect()
    }
}
