//! Sums over all documents, from which averages are computed.

use std::collections::BTreeMap;

use super::analysis::UNIT;
use super::embedding::DIM;
use super::field;
use super::index::Entry;
use super::language::Language;

/// Sums over all documents; integers, so that subtraction is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sums {
    pub documents: usize,
    pub shadowed: usize,
    pub bodies: usize,
    pub read: usize,
    /// Number of documents that are read and not shadowed.
    pub ranked_read: usize,
    pub lengths: [u64; field::COUNT],
    pub filled: [u64; field::COUNT],
    pub pair_lengths: [u64; field::COUNT],
    pub pair_filled: [u64; field::COUNT],
    pub vectors: [i64; DIM],
    pub with_vector: usize,
    /// Number of documents by word piece of name, description or tags.
    pub pieces: Vec<u32>,
    /// Number of documents by the language of their description.
    pub languages: BTreeMap<Option<Language>, usize>,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            documents: 0,
            shadowed: 0,
            bodies: 0,
            read: 0,
            ranked_read: 0,
            lengths: [0; field::COUNT],
            filled: [0; field::COUNT],
            pair_lengths: [0; field::COUNT],
            pair_filled: [0; field::COUNT],
            vectors: [0; DIM],
            with_vector: 0,
            pieces: Vec::new(),
            languages: BTreeMap::new(),
        }
    }
}

impl Sums {
    /// Adds or subtracts a document.
    pub fn apply(&mut self, entry: &Entry, vector: &[i16; DIM], add: bool) {
        let sign = |sum: &mut u64, n: u64| *sum = if add { *sum + n } else { *sum - n };
        let count =
            |sum: &mut usize, n: bool| *sum = if add { *sum + usize::from(n) } else { *sum - usize::from(n) };
        count(&mut self.documents, true);
        count(&mut self.shadowed, entry.document.shadowed_by.is_some());
        count(&mut self.bodies, entry.has_body);
        count(&mut self.read, entry.is_body_read);
        count(&mut self.ranked_read, entry.is_body_read && entry.document.shadowed_by.is_none());
        count(&mut self.with_vector, vector.iter().any(|v| *v != 0));
        let spoken = self.languages.entry(entry.language).or_default();
        count(spoken, true);
        for f in 0..field::COUNT {
            sign(&mut self.lengths[f], u64::from(entry.lengths[f]));
            sign(&mut self.filled[f], u64::from(entry.lengths[f] > 0));
            sign(&mut self.pair_lengths[f], u64::from(entry.pair_lengths[f]));
            sign(&mut self.pair_filled[f], u64::from(entry.pair_lengths[f] > 0));
        }
        for token in entry.pieces.iter().map(|t| usize::from(*t)) {
            if self.pieces.len() <= token {
                self.pieces.resize(token + 1, 0);
            }
            self.pieces[token] = if add { self.pieces[token] + 1 } else { self.pieces[token] - 1 };
        }
        for (sum, v) in self.vectors.iter_mut().zip(vector) {
            *sum += if add { i64::from(*v) } else { -i64::from(*v) };
        }
    }

    /// Returns whether all descriptions are in one language.
    pub fn is_in_one_language(&self) -> bool {
        self.languages.values().filter(|n| **n > 0).count() < 2
    }

    /// Returns whether a request in this language (`None` for English) is foreign to the skills: more than half of the
    /// descriptions are in one other language, and fewer than a tenth in this one.
    pub fn is_foreign(&self, language: Option<Language>) -> bool {
        let may_be = |other: Option<Language>| match (language, other) {
            (Some(Language::Undetermined), other) => other.is_some(),
            (Some(language), Some(other)) => language.may_be(other),
            (language, other) => language == other,
        };
        let is_own = |other: Option<Language>| language != Some(Language::Undetermined) && may_be(other);
        let own: usize = self.languages.iter().filter(|(other, _)| is_own(**other)).map(|(_, n)| n).sum();
        let most = self.language();
        let of_most = self.languages.get(&most).copied().unwrap_or_default();
        !may_be(most) && 2 * of_most > self.documents && 10 * own < self.documents
    }

    /// Returns the most frequent language of descriptions; `None` for English.
    pub fn language(&self) -> Option<Language> {
        self.languages
            .iter()
            .max_by_key(|(language, n)| (**n, language.is_none()))
            .and_then(|(language, _)| *language)
    }

    /// Returns the average lengths of a field over the documents that have it, in stems and in pairs.
    pub fn average(&self, field: usize) -> (f64, f64) {
        let mean = |sum: u64, n: u64| if n == 0 { 1.0 } else { sum as f64 / n as f64 };
        (
            mean(self.lengths[field], self.filled[field]),
            mean(self.pair_lengths[field], self.pair_filled[field]),
        )
    }

    /// Returns the mean of all vectors.
    pub fn mean(&self) -> [f64; DIM] {
        let n = self.with_vector.max(1) as f64;
        self.vectors.map(|sum| sum as f64 / UNIT / n)
    }
}
