//! Text with roles instead of colors: made once off the UI task, styled by the theme when it is drawn, so
//! that another theme needs no second rendering.

use ratatui::style::Modifier;
use unicode_width::UnicodeWidthStr;

use crate::theme::Role;

/// A stretch of text in one role. Its text is already safe to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seg {
    /// What is there.
    pub text: String,
    /// How it is styled.
    pub role: Role,
    /// Weight or underline on top of the role's style.
    pub plus: Modifier,
}

impl Seg {
    /// A stretch in a role as the theme has it.
    pub fn new(text: impl Into<String>, role: Role) -> Self {
        Self { text: text.into(), role, plus: Modifier::empty() }
    }

    /// Other text in the same look. A stretch may be megabytes long, so its own text is not copied for that.
    #[must_use]
    pub fn with_text(&self, text: impl Into<String>) -> Self {
        Self { text: text.into(), role: self.role, plus: self.plus }
    }

    /// The same stretch with more weight, underline or slant.
    #[must_use]
    pub fn with(mut self, plus: Modifier) -> Self {
        self.plus |= plus;
        self
    }
}

/// One line as drawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RichLine {
    /// Its stretches from left to right.
    pub segs: Vec<Seg>,
    /// A band under the full line (code is on `surface`).
    pub band: Option<Role>,
    /// The line of the source text it begins in, from 1; 0 for a line that continues the one above.
    pub source: u32,
}

impl RichLine {
    /// A line of one stretch.
    pub fn of(text: impl Into<String>, role: Role) -> Self {
        Self { segs: vec![Seg::new(text, role)], band: None, source: 0 }
    }

    /// A line of several stretches.
    #[must_use]
    pub fn from_segs(segs: Vec<Seg>) -> Self {
        Self { segs, band: None, source: 0 }
    }

    /// Its width in cells.
    #[must_use]
    pub fn width(&self) -> usize {
        self.segs.iter().map(|s| s.text.width()).sum()
    }

    /// The text alone.
    #[must_use]
    pub fn plain(&self) -> String {
        self.segs.iter().map(|s| s.text.as_str()).collect()
    }
}
