//! Token counts with the o200k vocabulary. Loading it takes about 300 ms and 46 MB, so it is loaded only for the first
//! exact count, and dropped when no text was counted for a while; scans use the estimate.

use std::collections::HashSet;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tiktoken_rs::CoreBPE;

use super::finding_builder::floor;
use skills_base::idle_cache::IdleCache;

/// Maximum length of text passed to the tokenizer at once. Its regular expression fails on a run of a million spaces,
/// and time and memory grow superlinearly with the length of a word.
const MAX_CHUNK_BYTES: usize = 16 * 1024;

/// How long the vocabulary stays loaded after the last count.
const KEEP_VOCABULARY: Duration = Duration::from_secs(10);

static VOCABULARY: IdleCache<CoreBPE> = IdleCache::new("vocabulary", KEEP_VOCABULARY);

fn vocabulary() -> Option<Arc<CoreBPE>> {
    VOCABULARY.get(|| match tiktoken_rs::o200k_base() {
        Ok(vocabulary) => Some(vocabulary),
        Err(error) => {
            tracing::error!(%error, "the vocabulary cannot be loaded: token counts are estimates");
            None
        }
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct TokenCount {
    pub tokens: u32,
    pub estimated: bool,
}

impl TokenCount {
    fn exact(tokens: usize) -> Self {
        Self { tokens: u32::try_from(tokens).unwrap_or(u32::MAX), estimated: false }
    }

    /// Estimates the number of tokens of a text, without the vocabulary.
    pub fn estimate(text: &str) -> Self {
        Self { estimated: true, ..Self::exact(estimate(text)) }
    }
}

impl Add for TokenCount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            estimated: self.estimated || other.estimated,
        }
    }
}

impl AddAssign for TokenCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for TokenCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Add::add)
    }
}

/// Counts the tokens of a text: exactly, unless it has a run of more than 16 KiB that the tokenizer does not split
/// (one long word, one long run of spaces). Loads the vocabulary on first use; call it off the UI task. Time and
/// memory are linear in the text, whatever it contains.
pub fn count(text: &str) -> TokenCount {
    let Some(vocabulary) = vocabulary() else { return TokenCount::estimate(text) };
    let no_special_tokens = HashSet::new();
    Chunks { rest: text }
        .map(|chunk| match vocabulary.encode(chunk.text, &no_special_tokens) {
            Ok((tokens, _)) => {
                TokenCount { estimated: chunk.splits_a_word, ..TokenCount::exact(tokens.len()) }
            }
            Err(error) => {
                tracing::debug!(%error, "a text is estimated: the tokenizer failed");
                TokenCount::estimate(chunk.text)
            }
        })
        .sum()
}

/// A part of a text that is tokenized on its own.
struct Chunk<'a> {
    text: &'a str,
    /// Whether it ends where the tokenizer would not split the complete text.
    splits_a_word: bool,
}

/// Splits a text into chunks of at most [`MAX_CHUNK_BYTES`].
struct Chunks<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let boundary = if self.rest.len() <= MAX_CHUNK_BYTES {
            Some(self.rest.len())
        } else {
            last_boundary(self.rest, MAX_CHUNK_BYTES)
        };
        let end = boundary.unwrap_or_else(|| floor(self.rest, MAX_CHUNK_BYTES));
        let (text, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(Chunk { text, splits_a_word: boundary.is_none() })
    }
}

/// Returns the last offset in the first `limit` bytes at which the tokenizer splits every text.
fn last_boundary(text: &str, limit: usize) -> Option<usize> {
    let head = text.get(..floor(text, limit))?;
    let mut after = text.get(head.len()..)?.chars().next();
    for (start, before) in head.char_indices().rev() {
        if after.is_some_and(|after| is_boundary(before, after)) {
            return Some(start + before.len_utf8());
        }
        after = Some(before);
    }
    None
}

/// Returns whether the pattern of o200k ends a piece between these two characters in any context, so that both sides
/// may be tokenized separately. No alternative of the pattern continues from text to whitespace other than a line
/// break, or from a line break to anything but whitespace and `/`; and none looks ahead from there.
fn is_boundary(before: char, after: char) -> bool {
    let ends_line = |c| matches!(c, '\r' | '\n');
    if ends_line(before) {
        !after.is_whitespace() && after != '/'
    } else {
        !before.is_whitespace() && after.is_whitespace() && !ends_line(after)
    }
}

/// Estimates the number of tokens of a text without the vocabulary: by bytes for ASCII, by characters for everything
/// else.
pub fn estimate(text: &str) -> usize {
    let other_bytes = count_bytes(text, |byte| byte >= 0x80);
    let other_chars = count_bytes(text, |byte| byte >= 0xC0);
    let ascii = text.len() - other_bytes;
    (ascii as f64 / ASCII_BYTES_PER_TOKEN + other_chars as f64 * TOKENS_PER_OTHER_CHAR) as usize
}

/// Counts bytes in chunks whose counts fit into a byte, which vectorizes well: every body is scanned.
pub(super) fn count_bytes(text: &str, wanted: impl Fn(u8) -> bool) -> usize {
    let chunks = text.as_bytes().chunks(255);
    chunks.map(|chunk| usize::from(chunk.iter().map(|&byte| u8::from(wanted(byte))).sum::<u8>())).sum()
}

/// Fitted on 4,483 public bodies: half of the estimates are within 10 % of the exact count.
const ASCII_BYTES_PER_TOKEN: f64 = 4.15;
const TOKENS_PER_OTHER_CHAR: f64 = 0.8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count_all(text: &str) -> usize {
        let vocabulary = vocabulary().unwrap();
        vocabulary.encode(text, &HashSet::new()).unwrap().0.len()
    }

    #[test]
    fn counts_are_exact_and_the_estimate_is_near() {
        assert_eq!(count("hello world"), TokenCount::exact(2));
        assert_eq!(count(""), TokenCount::default());
        let text = "Extracts tables from PDF files. Use when a request names a PDF.\n".repeat(40);
        let (exact, about) = (f64::from(count(&text).tokens), estimate(&text) as f64);
        assert!((about / exact - 1.0).abs() < 0.3, "{about} for {exact}");
    }

    /// Generates text in which each alternative of the tokenizer's pattern is adjacent to each other one.
    fn prose() -> impl Strategy<Value = String> {
        let fragment = prop_oneof![
            "[a-zA-Z]{1,12}",
            "[0-9]{1,6}",
            "[ \t]{1,6}",
            "[\r\n]{1,3}",
            "['/.,:;!?{}()<>|_`#*-]{1,4}",
            Just("don't".to_owned()),
            Just(" \u{2028}\u{a0}\u{3000}".to_owned()),
            Just("//\n/".to_owned()),
            Just("<|endoftext|>".to_owned()),
            "[\u{4e00}-\u{4e40}\u{430}-\u{44f}\u{301}\u{5d0}]{1,5}",
            any::<char>().prop_map(String::from),
        ];
        proptest::collection::vec(fragment, 1..80).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_split_at_any_boundary_is_exact(text in prose()) {
            let all = count_all(&text);
            let mut before = None;
            for (at, after) in text.char_indices() {
                if before.is_some_and(|before| is_boundary(before, after)) {
                    prop_assert_eq!(count_all(&text[..at]) + count_all(&text[at..]), all, "{:?} at {}", &text, at);
                }
                before = Some(after);
            }
        }
    }

    #[test]
    fn long_prose_is_counted_exactly() {
        for line in [
            "Reads `orders.csv`, then don't\tsplit\r\n  the /tmp/a//b.txt of 12,345.67 rows.\n\n",
            "表から値を読み、合計を書く。\n",
            "fn main() { println!(\"{}\", 0x1f); }\n// a comment\n/ and more\n",
        ] {
            let text = line.repeat(3 * MAX_CHUNK_BYTES / line.len() + 1);
            assert_eq!(count(&text), TokenCount::exact(count_all(&text)), "{line}");
        }
    }

    #[test]
    fn unsplittable_text_is_marked_as_estimated() {
        for (text, exact) in [("a", 1 << 10), ("a", 1 << 16), (" ", 1 << 16), ("\n", 1 << 16), ("é", 1 << 16)]
        {
            let long = text.repeat(exact);
            assert_eq!(count(&long).estimated, long.len() > MAX_CHUNK_BYTES, "{text:?}");
        }
        let long = "ab".repeat(1 << 15);
        let (counted, exact) = (f64::from(count(&long).tokens), count_all(&long) as f64);
        assert!((counted / exact - 1.0).abs() < 0.01, "{counted} for {exact}");
    }
}
