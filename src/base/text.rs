//! Texts for people.

/// Returns a text with each run of white space as one space, and none at its ends.
pub fn collapse_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Joins texts: `a`, `a and b`, `a, b and c`.
pub fn join_with_and<T: AsRef<str>>(texts: &[T]) -> String {
    let mut out = String::new();
    for (at, text) in texts.iter().enumerate() {
        if at > 0 {
            out.push_str(if at + 1 == texts.len() { " and " } else { ", " });
        }
        out.push_str(text.as_ref());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_text_is_joined_with_and() {
        assert_eq!(join_with_and::<&str>(&[]), "");
        assert_eq!(join_with_and(&["a"]), "a");
        assert_eq!(join_with_and(&["a", "b"]), "a and b");
        assert_eq!(join_with_and(&["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn white_space_is_one_space() {
        assert_eq!(collapse_whitespace("  a\n\t b "), "a b");
    }
}
