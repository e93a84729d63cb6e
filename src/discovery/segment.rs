//! An immutable part of the index: maps each key to the documents that have it. A changed document goes into a new
//! segment and is marked as dead in the old one; merging drops dead documents.

use std::borrow::Cow;
use std::sync::Arc;

use super::field::Counts;
use super::tables::{Owned, Postings, Tables};

/// Maximum number of documents in a segment, which numbers them with 16 bits.
pub(crate) const CAPACITY: usize = 60_000;

/// A lookup key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(pub u64);

impl Key {
    /// Key of a stem.
    pub fn stem(id: u32) -> Self {
        Self(u64::from(id))
    }

    /// Key of two adjacent content stems.
    pub fn pair(first: u32, second: u32) -> Self {
        Self(((u64::from(first) + 1) << 32) | u64::from(second))
    }

    /// Key of a stem among a skill's verbs.
    pub fn verb(id: u32) -> Self {
        Self((0b101 << 61) | u64::from(id))
    }

    /// Key of the clauses that are indexed under one of their stems; a posting's counts are a
    /// [`super::index::ClausePosting`].
    pub fn clause(id: u32) -> Self {
        Self((0b110 << 61) | u64::from(id))
    }

    /// Key of a word piece of the embedding.
    pub fn word_piece(token: u16) -> Self {
        Self((1 << 63) | u64::from(token))
    }
}

/// A document of a segment and the counts of the key in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Posting {
    /// Number of the document in the segment.
    pub local: u16,
    /// Occurrences of the key by field; for a word piece, 1 if the name has it.
    pub counts: Counts,
}

impl Posting {
    fn pack(self) -> u32 {
        (u32::from(self.local) << 16) | u32::from(self.counts.0)
    }

    /// Unpacks a posting.
    pub fn unpack(bits: u32) -> Self {
        Self { local: (bits >> 16) as u16, counts: Counts(bits as u16) }
    }

    /// Finds the position of one document among postings.
    fn position(postings: &[u32], local: u16) -> Option<usize> {
        postings.binary_search_by_key(&local, |bits| (bits >> 16) as u16).ok()
    }

    /// Finds the counts of one document among postings.
    pub fn search(postings: &[u32], local: u16) -> Option<Counts> {
        Self::position(postings, local).map(|at| Self::unpack(postings[at]).counts)
    }
}

/// Sorted keys with their postings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segment {
    tables: Tables,
    /// Slot of each document in the index.
    pub(super) slots: Vec<u32>,
    /// Local numbers of dead documents.
    pub(super) dead: Vec<u16>,
}

impl Segment {
    /// Builds a segment from entries in any order.
    pub fn build(mut entries: Vec<(Key, Posting)>, slots: Vec<u32>) -> Self {
        use rayon::slice::ParallelSliceMut as _;
        if entries.len() > 100_000 {
            entries.par_sort_unstable_by_key(|(key, posting)| (*key, posting.local));
        } else {
            entries.sort_unstable_by_key(|(key, posting)| (*key, posting.local));
        }
        let mut tables = Owned::default();
        tables.postings.reserve_exact(entries.len());
        for (key, posting) in entries {
            tables.push(key.0, posting.pack());
        }
        Self::new(close(tables), slots)
    }

    /// Creates a segment from tables and the slots of their documents.
    pub fn new(tables: Tables, slots: Vec<u32>) -> Self {
        Self { tables, slots, dead: Vec::new() }
    }

    /// Returns the tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the packed postings of a key, in document order.
    pub fn range(&self, key: Key) -> Postings<'_> {
        self.tables.range(key.0)
    }

    /// Marks a document as dead.
    pub fn bury(&mut self, local: u16) {
        self.dead.push(local);
    }

    /// Returns whether any document is dead.
    pub fn has_dead(&self) -> bool {
        !self.dead.is_empty()
    }

    /// Returns the positions of the postings of dead documents, in order.
    pub fn dead_among(&self, postings: &[u32]) -> Vec<usize> {
        let mut dead: Vec<usize> =
            self.dead.iter().filter_map(|local| Posting::position(postings, *local)).collect();
        dead.sort_unstable();
        dead.dedup();
        dead
    }

    /// Returns the number of live documents.
    pub fn alive(&self) -> usize {
        self.slots.len() - self.dead.len()
    }

    /// Merges segments into one without dead documents. `lives` returns whether the document in a slot is alive.
    pub fn merge(parts: &[&Self], lives: impl Fn(u32, usize) -> bool) -> Self {
        let (mut out, mut slots) = (Owned::default(), Vec::new());
        let mut numbers: Vec<Vec<Option<u16>>> = Vec::with_capacity(parts.len());
        for (which, part) in parts.iter().enumerate() {
            let mut of_part = Vec::with_capacity(part.slots.len());
            for slot in &part.slots {
                if lives(*slot, which) {
                    of_part.push(u16::try_from(slots.len()).ok());
                    slots.push(*slot);
                } else {
                    of_part.push(None);
                }
            }
            numbers.push(of_part);
        }
        let mut at = vec![0; parts.len()];
        let tables: Vec<Cow<'_, Owned>> = parts.iter().map(|part| part.tables.owned()).collect();
        while let Some(key) = tables.iter().zip(&at).filter_map(|(p, at)| p.keys.get(*at).copied()).min() {
            for ((part, at), numbers) in tables.iter().zip(&mut at).zip(&numbers) {
                if part.keys.get(*at) != Some(&key) {
                    continue;
                }
                let range = part.starts[*at] as usize..part.starts[*at + 1] as usize;
                *at += 1;
                for bits in &part.postings[range] {
                    let posting = Posting::unpack(*bits);
                    if let Some(local) = numbers.get(usize::from(posting.local)).copied().flatten() {
                        out.push(key, Posting { local, ..posting }.pack());
                    }
                }
            }
        }
        out.postings.shrink_to_fit();
        Self::new(close(out), slots)
    }
}

fn close(mut tables: Owned) -> Tables {
    tables.starts.push(tables.postings.len() as u32);
    tables.keys.shrink_to_fit();
    tables.starts.shrink_to_fit();
    Tables::Owned(Arc::new(tables))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posting(local: u16, count: u16) -> Posting {
        Posting { local, counts: Counts(count) }
    }

    #[test]
    fn keys_of_stems_pairs_and_pieces_never_collide() {
        assert!(Key::stem(u32::MAX) < Key::pair(0, 0));
        assert!(Key::pair(1 << 30, u32::MAX) < Key::word_piece(0));
        assert!(Key::word_piece(u16::MAX) < Key::verb(0));
        assert!(Key::verb(u32::MAX) < Key::clause(0));
    }

    #[test]
    fn merging_drops_deleted_documents_and_keeps_order() {
        let one = Segment::build(
            vec![(Key(5), posting(1, 7)), (Key(5), posting(0, 3)), (Key(2), posting(1, 1))],
            vec![10, 11],
        );
        let two = Segment::build(vec![(Key(5), posting(0, 9)), (Key(9), posting(0, 2))], vec![12]);
        assert_eq!(*one.range(Key(5)), [posting(0, 3).pack(), posting(1, 7).pack()]);
        let merged = Segment::merge(&[&one, &two], |slot, _| slot != 10);
        assert_eq!(merged.slots, [11, 12]);
        assert_eq!(*merged.range(Key(5)), [posting(0, 7).pack(), posting(1, 9).pack()]);
        assert_eq!(Posting::search(&merged.range(Key(9)), 1), Some(Counts(2)));
        assert_eq!(Posting::search(&merged.range(Key(9)), 0), None);
        assert!(merged.range(Key(7)).is_empty());
    }

    #[test]
    fn deleted_documents_are_not_counted() {
        let entries = (0..10).map(|local| (Key(5), posting(local, 1))).collect();
        let mut segment = Segment::build(entries, (0..10).collect());
        segment.bury(3);
        segment.bury(9);
        assert_eq!(segment.dead_among(&segment.range(Key(5))), [3, 9]);
        assert_eq!(segment.alive(), 8);
    }
}
