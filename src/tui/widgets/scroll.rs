//! A cursor in a list that is longer than the window, and an offset that follows it.

/// Cursor and first visible row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scroll {
    pub cursor: usize,
    /// The first visible row.
    pub offset: usize,
    /// Rows that were visible in the last frame.
    pub height: usize,
}

impl Scroll {
    /// Moves the cursor by rows, within `len`.
    pub fn by(&mut self, rows: isize, len: usize) {
        self.cursor = self.cursor.saturating_add_signed(rows).min(len.saturating_sub(1));
    }

    /// Returns the rows of a page: one row stays visible.
    pub fn page(&self) -> isize {
        isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1)
    }

    /// Moves the window so that it contains the cursor and shows no empty rows after the end.
    pub fn follow(&mut self, len: usize, height: usize) {
        self.height = height;
        self.cursor = self.cursor.min(len.saturating_sub(1));
        if self.cursor < self.offset {
            self.offset = self.cursor;
        } else if height > 0 && self.cursor >= self.offset + height {
            self.offset = self.cursor + 1 - height;
        }
        self.offset = self.offset.min(len.saturating_sub(height));
    }

    /// Fits the window to the rows of a list with headings; if it follows the cursor, the heading of a group comes into
    /// view together with the group's first row.
    pub fn fit(&mut self, len: usize, height: usize, follows: bool, is_heading: impl Fn(usize) -> bool) {
        if follows {
            self.follow(len, height);
            if self.offset == self.cursor && self.cursor > 0 && is_heading(self.cursor - 1) {
                self.offset = self.cursor - 1;
            }
        }
        self.height = height;
        self.offset = self.offset.min(len.saturating_sub(height));
    }

    /// Moves the window itself (wheel, a text without cursor).
    pub fn roll(&mut self, rows: isize, len: usize) {
        self.offset = self.offset.saturating_add_signed(rows).min(len.saturating_sub(self.height));
    }
}

/// Returns how many of `len` lines are visible in `height` rows: if they do not all fit, the last row counts those below.
pub fn rows_above_note(len: usize, height: u16) -> usize {
    let height = usize::from(height);
    height.saturating_sub(usize::from(len > height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_follows_the_cursor_and_never_shows_past_the_end() {
        let mut scroll = Scroll { cursor: 0, offset: 0, height: 10 };
        scroll.by(25, 30);
        scroll.follow(30, 10);
        assert_eq!((scroll.cursor, scroll.offset), (25, 16));
        scroll.by(100, 30);
        scroll.follow(30, 10);
        assert_eq!((scroll.cursor, scroll.offset), (29, 20));
        scroll.follow(5, 10);
        assert_eq!((scroll.cursor, scroll.offset), (4, 0));
        scroll.by(-100, 5);
        assert_eq!(scroll.cursor, 0);
    }
}
