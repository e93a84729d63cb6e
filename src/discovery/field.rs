//! The five fields of a skill, and how often a stem occurs in each, packed into 16 bits.

/// Display names of the fields, in the order of every array over fields.
pub(crate) const NAMES: [&str; 5] = ["name", "description", "tags", "headings", "body"];

/// Number of fields.
pub(crate) const COUNT: usize = NAMES.len();

/// Index of the tags in every array over fields.
pub(crate) const TAGS: usize = 2;

/// Index of the body in every array over fields.
pub(crate) const BODY: usize = COUNT - 1;

/// Shift and width of each field's count. Larger counts are clamped: tf saturates long before.
const LAYOUT: [(u16, u16); COUNT] = [(14, 2), (10, 4), (8, 2), (5, 3), (0, 5)];

/// Mask of name, description and tags.
const SHORT: u16 = 0xFF00;

/// Mask of the body.
const BODY_MASK: u16 = 0x1F;

/// Occurrences by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts(pub u16);

impl Counts {
    /// Packs counts, clamping those that do not fit.
    pub fn pack(counts: [u16; COUNT]) -> Self {
        let bits = counts
            .iter()
            .zip(LAYOUT)
            .fold(0, |bits, (count, (shift, width))| bits | (*count.min(&((1 << width) - 1)) << shift));
        Self(bits)
    }

    /// Returns the occurrences in one field.
    pub fn of(self, field: usize) -> u16 {
        let (shift, width) = LAYOUT[field];
        (self.0 >> shift) & ((1 << width) - 1)
    }

    /// Returns the counts without headings and body.
    pub fn without_body(self) -> Self {
        Self(self.0 & SHORT)
    }

    /// Returns whether all occurrences are in the body.
    pub fn is_body(self) -> bool {
        self.0 <= BODY_MASK
    }

    /// Returns whether all occurrences are in headings or body.
    pub fn body_only(self) -> bool {
        self.0 & SHORT == 0 && self.0 != 0
    }

    /// Returns whether there are no occurrences.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_round_trip_and_large_ones_are_capped() {
        let c = Counts::pack([1, 14, 2, 7, 30]);
        assert_eq!([0, 1, 2, 3, 4].map(|f| c.of(f)), [1, 14, 2, 7, 30]);
        let c = Counts::pack([900, 900, 900, 900, 900]);
        assert_eq!([0, 1, 2, 3, 4].map(|f| c.of(f)), [3, 15, 3, 7, 31]);
        assert!(Counts::pack([0, 0, 0, 1, 0]).body_only());
        assert!(Counts::pack([0, 0, 0, 1, 2]).without_body().is_empty());
    }
}
