//! Ids, names and tags in normalized form, for requests that name a skill.

use foldhash::HashMap;

use super::document::{Document, name_words};
use super::tokenize::fold_accents;

/// Slots by normalized id or name, and by normalized tag.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels {
    names: HashMap<String, Vec<u32>>,
    tags: HashMap<String, Vec<u32>>,
}

/// Normalizes a label: lower case without accents, `-`, `_` and `/` as spaces, one space between words.
pub(crate) fn normalize_label(text: &str) -> String {
    // Nearly all labels: without a text for each word.
    if text.is_ascii() {
        let mut out = String::with_capacity(text.len());
        for word in text.split(|c: char| c.is_ascii_whitespace() || c == '\x0b' || "-_/".contains(c)) {
            if !(word.is_empty() || out.is_empty()) {
                out.push(' ');
            }
            out.push_str(word);
        }
        out.make_ascii_lowercase();
        return out;
    }
    let words = name_words(text);
    let words = words.split_whitespace().map(|word| fold_accents(&word.to_lowercase()).into_owned());
    words.collect::<Vec<_>>().join(" ")
}

fn keys(document: &Document) -> (Vec<String>, Vec<String>) {
    let distinct = |texts: Vec<&str>| {
        let mut all: Vec<String> = texts.into_iter().map(normalize_label).filter(|t| !t.is_empty()).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    (
        distinct(vec![document.id.as_str(), &document.name]),
        distinct(document.tags.iter().map(String::as_str).collect()),
    )
}

impl Labels {
    /// Adds a document.
    pub fn insert(&mut self, document: &Document, slot: u32) {
        let (names, tags) = keys(document);
        for name in names {
            self.names.entry(name).or_default().push(slot);
        }
        for tag in tags {
            self.tags.entry(tag).or_default().push(slot);
        }
    }

    /// Removes a document.
    pub fn remove(&mut self, document: &Document, slot: u32) {
        let (names, tags) = keys(document);
        for (map, keys) in [(&mut self.names, names), (&mut self.tags, tags)] {
            for key in keys {
                if let Some(slots) = map.get_mut(&key) {
                    slots.retain(|s| *s != slot);
                    if slots.is_empty() {
                        map.remove(&key);
                    }
                }
            }
        }
    }

    /// Returns the slots of skills whose id or name has this normalized form.
    pub fn named(&self, normalized: &str) -> &[u32] {
        self.names.get(normalized).map_or(&[], Vec::as_slice)
    }

    /// Returns the slots of skills with a tag of this normalized form.
    pub fn tagged(&self, normalized: &str) -> &[u32] {
        self.tags.get(normalized).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn ascii_labels_are_normalized_as_others(text in "[a-zA-Z0-9._/ \\-\t\n\x0b\x0c\r\x1c]{0,12}") {
            // With a letter outside of ASCII as another word, the general way is taken.
            let general = normalize_label(&format!("{text} ж"));
            let expected = general.strip_suffix('ж').unwrap().trim_end_matches(' ');
            proptest::prop_assert_eq!(normalize_label(&text), expected);
        }
    }
}
