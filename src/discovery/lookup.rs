//! Lookup of a key in the index: its postings in every segment, found once.

use super::field::Counts;
use super::index::Index;
use super::segment::{Key, Posting, Segment};
use super::tables::Postings;

/// The fields that are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// All fields.
    All,
    /// Name, description and tags.
    Short,
}

impl View {
    /// Returns the counts in the fields of this view.
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
    /// Positions of the postings of dead documents, in order.
    dead: Vec<usize>,
}

impl Part<'_> {
    /// Iterates over the runs of postings of live documents.
    fn live(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.dead.iter().map(|dead| dead + 1));
        let ends = self.dead.iter().copied().chain([self.postings.len()]);
        starts.zip(ends).map(|(start, end)| &self.postings[start..end])
    }
}

/// The postings of a key in all segments.
#[derive(Debug, Clone)]
pub(crate) struct KeyPostings<'a> {
    index: &'a Index,
    parts: Vec<Part<'a>>,
    view: View,
    /// Number of live documents that have the key.
    pub documents: usize,
}

impl<'a> KeyPostings<'a> {
    /// Looks up a key; returns `None` if no live document has it.
    pub fn new(index: &'a Index, key: Key, view: View) -> Option<Self> {
        let parts: Vec<Part<'a>> = index
            .segments()
            .iter()
            .map(|(number, segment)| (*number, segment, segment.range(key)))
            .filter(|(.., postings)| !postings.is_empty())
            .map(|(number, segment, postings)| {
                let dead = segment.dead_among(&postings);
                Part { number, segment, postings, dead }
            })
            .collect();
        let mut found = Self { index, parts, view, documents: 0 };
        found.documents = found.count();
        (found.documents > 0).then_some(found)
    }

    fn count(&self) -> usize {
        if self.view == View::All {
            return self.parts.iter().map(|p| p.postings.len() - p.dead.len()).sum();
        }
        let mut n = 0;
        self.each(|_, _| n += 1);
        n
    }

    /// Calls `take` with each live document and its counts.
    pub fn each(&self, mut take: impl FnMut(usize, Counts)) {
        let skips_empty = self.view == View::Short;
        // `take` is called in one place, so that it is inlined and keeps its variables in registers.
        for part in &self.parts {
            let slots = &part.segment.slots[..];
            for run in part.live() {
                for bits in run {
                    let posting = Posting::unpack(*bits);
                    let counts = self.view.of(posting.counts);
                    if !(skips_empty && counts.is_empty()) {
                        take(slots[usize::from(posting.local)] as usize, counts);
                    }
                }
            }
        }
    }

    /// Returns the counts in one document.
    pub fn counts(&self, slot: usize) -> Option<Counts> {
        let (number, local) = self.index.entry(slot)?.home;
        let part = self.parts.iter().find(|p| p.number == number)?;
        Posting::search(&part.postings, local).map(|c| self.view.of(c)).filter(|c| !c.is_empty())
    }
}
