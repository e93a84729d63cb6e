//! A filter of words that must occur in a skill's id, name or description, ignoring case.

use std::ops::Range;

/// A parsed filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The words in lower case.
    words: Vec<String>,
}

impl Filter {
    /// Splits a filter text at whitespace.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { words: text.split_whitespace().map(str::to_lowercase).collect() }
    }

    /// Returns whether each word occurs in at least one of the texts. An empty filter matches everything.
    #[must_use]
    pub fn matches(&self, texts: &[&str]) -> bool {
        self.words.iter().all(|word| texts.iter().any(|text| find(text, word).is_some()))
    }

    /// Returns the byte ranges of the filter's words in a text, in order, without overlaps.
    #[must_use]
    pub fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for word in &self.words {
            let mut from = 0;
            while let Some(next) = text.get(from..).and_then(|rest| find(rest, word)) {
                found.push(from + next.start..from + next.end);
                from += next.end;
            }
        }
        found.sort_by_key(|range| (range.start, range.end));
        found.dedup_by(|next, previous| {
            let overlaps = next.start < previous.end;
            if overlaps {
                previous.end = previous.end.max(next.end);
            }
            overlaps
        });
        found
    }
}

/// Finds the first occurrence of a lower-case word in a text, ignoring case.
fn find(text: &str, word: &str) -> Option<Range<usize>> {
    if word.is_empty() {
        return None;
    }
    if text.is_ascii() && word.is_ascii() {
        let bytes = text.as_bytes().windows(word.len());
        let start = bytes.into_iter().position(|part| part.eq_ignore_ascii_case(word.as_bytes()))?;
        return Some(start..start + word.len());
    }
    text.char_indices().find_map(|(start, _)| {
        let mut requested = word.chars();
        let mut next = requested.next();
        for (at, letter) in text.get(start..)?.char_indices() {
            for lower in letter.to_lowercase() {
                if next != Some(lower) {
                    return None;
                }
                next = requested.next();
                if next.is_none() {
                    return Some(start..start + at + letter.len_utf8());
                }
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_word_must_match() {
        let filter = Filter::new("  PDF  table ");
        assert!(filter.matches(&["pdf-tools", "Extracts Tables."]));
        assert!(!filter.matches(&["pdf-tools", "Fills forms."]));
        assert!(Filter::new(" ").matches(&["anything"]));
    }

    #[test]
    fn positions_are_byte_offsets_in_any_script() {
        assert_eq!(Filter::new("über ta").ranges("Über TABLES: Überblick, ta"), [0..5, 6..8, 14..19, 26..28]);
        assert_eq!(Filter::new("表").ranges("日本語の表"), vec![12..15]);
        assert_eq!(Filter::new("table tab").ranges("tables"), vec![0..5]);
        assert!(Filter::new("istan").ranges("İSTAN").is_empty());
    }
}
