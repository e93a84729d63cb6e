//! Texts for people.

/// Returns a text with each run of white space as one space, and none at its ends.
pub fn collapse_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
