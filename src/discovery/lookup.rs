//! A key of the index, found once: where its postings are in every segment, and what they say.

use super::field::Counts;
use super::index::Index;
use super::segment::{Key, Posting, Segment};
use super::tables::Postings;

/// Which fields count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// All of them.
    All,
    /// Name, description and tags.
    Short,
}

impl View {
    /// The counts in the fields that count.
    pub fn of(self, counts: Counts) -> Counts {
        match self {
            Self::All => counts,
            Self::Short => counts.without_body(),
        }
    }
}

/// The postings of a key in one segment.
#[derive(Debug, Clone)]
struct Part<'a> {
    number: u32,
    segment: &'a Segment,
    postings: Postings<'a>,
}

/// The postings of a key.
#[derive(Debug, Clone)]
pub(crate) struct Found<'a> {
    index: &'a Index,
    parts: Vec<Part<'a>>,
    view: View,
    /// Living documents that have the key.
    pub documents: usize,
}

impl<'a> Found<'a> {
    /// Looks a key up; `None` when no living document has it.
    pub fn new(index: &'a Index, key: Key, view: View) -> Option<Self> {
        let parts: Vec<Part<'a>> = index
            .segments()
            .iter()
            .map(|(number, segment)| Part { number: *number, segment, postings: segment.range(key) })
            .filter(|part| !part.postings.is_empty())
            .collect();
        let mut found = Self { index, parts, view, documents: 0 };
        found.documents = found.count();
        (found.documents > 0).then_some(found)
    }

    fn count(&self) -> usize {
        if self.view == View::All {
            return self.parts.iter().map(|p| p.postings.len() - p.segment.dead_among(&p.postings)).sum();
        }
        let mut n = 0;
        self.each(|_, _| n += 1);
        n
    }

    /// Hands every living document with its counts to `take`.
    pub fn each(&self, mut take: impl FnMut(usize, Counts)) {
        for part in &self.parts {
            let checked = part.segment.has_dead();
            for bits in &*part.postings {
                let posting = Posting::unpack(*bits);
                let slot = part.segment.slot(posting.local);
                if checked && self.index.home(slot) != part.number {
                    continue;
                }
                let counts = self.view.of(posting.counts);
                if !counts.is_empty() {
                    take(slot, counts);
                }
            }
        }
    }

    /// The counts in one document.
    pub fn counts(&self, slot: usize) -> Option<Counts> {
        let (number, local) = self.index.entry(slot)?.home;
        let part = self.parts.iter().find(|p| p.number == number)?;
        Posting::search(&part.postings, local).map(|c| self.view.of(c)).filter(|c| !c.is_empty())
    }
}
