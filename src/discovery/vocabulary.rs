//! Interned stems and their numbers, in one block of text.

use super::fast_hash::hash;
use skills_skill::slice;

/// Number of a stem.
pub(crate) type StemId = u32;

const EMPTY: u32 = u32::MAX;

/// Interned stems, each with one of its written forms for display.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vocabulary {
    text: String,
    /// End of stem and end of written form of each entry, in `text`.
    ends: Vec<(u32, u32)>,
    /// Hash table with open addressing; the size is a power of two.
    table: Vec<u32>,
    /// Stem numbers by first byte.
    initials: Vec<Vec<StemId>>,
}

impl Vocabulary {
    /// Returns the number of stems.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the stem with this number.
    pub fn stem(&self, id: StemId) -> &str {
        let (stem_end, _) = self.ends[id as usize];
        slice(&self.text, self.start(id) as usize..stem_end as usize)
    }

    /// Returns the written form in which the stem was first seen.
    pub fn written_form(&self, id: StemId) -> &str {
        let (from, to) = self.ends[id as usize];
        if from == to { self.stem(id) } else { slice(&self.text, from as usize..to as usize) }
    }

    fn start(&self, id: StemId) -> u32 {
        if id == 0 { 0 } else { self.ends[id as usize - 1].1 }
    }

    /// Returns the number of a stem.
    pub fn find(&self, stem: &str) -> Option<StemId> {
        if self.table.is_empty() {
            return None;
        }
        let id = self.table[self.place(stem)];
        (id != EMPTY).then_some(id)
    }

    /// Returns the number of a stem, assigning one if it has none.
    pub fn intern(&mut self, stem: &str, written: &str) -> StemId {
        if self.ends.len() * 2 >= self.table.len() {
            self.grow();
        }
        let place = self.place(stem);
        if self.table[place] != EMPTY {
            return self.table[place];
        }
        let id = self.push(stem, written);
        self.table[place] = id;
        id
    }

    fn push(&mut self, stem: &str, written: &str) -> StemId {
        self.text.push_str(stem);
        let stem_end = self.text.len() as u32;
        if written != stem {
            self.text.push_str(written);
        }
        self.ends.push((stem_end, self.text.len() as u32));
        let id = (self.ends.len() - 1) as u32;
        self.note_initial(id);
        id
    }

    fn note_initial(&mut self, id: StemId) {
        self.initials.resize(256, Vec::new());
        let first = self.stem(id).bytes().next().unwrap_or_default();
        self.initials[usize::from(first)].push(id);
    }

    /// Returns the stems that start with the same byte as a text.
    pub fn same_initial(&self, text: &str) -> &[StemId] {
        let first = text.bytes().next().unwrap_or_default();
        self.initials.get(usize::from(first)).map_or(&[], Vec::as_slice)
    }

    /// Returns the position of a stem in the hash table, or of the empty entry where it would be inserted.
    fn place(&self, stem: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut at = hash(stem) as usize & mask;
        while self.table[at] != EMPTY && self.stem(self.table[at]) != stem {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        self.table = vec![EMPTY; (self.ends.len() * 4).next_power_of_two().max(64)];
        for id in 0..self.ends.len() as u32 {
            let place = self.place(self.stem(id));
            self.table[place] = id;
        }
    }

    /// Returns the parts that the cache stores.
    pub fn parts(&self) -> (&str, &[(u32, u32)]) {
        (&self.text, &self.ends)
    }

    /// Creates the vocabulary from the parts of a cache; returns `None` if they are inconsistent.
    pub fn from_parts(text: String, ends: Vec<(u32, u32)>) -> Option<Self> {
        let mut last = 0;
        for &(a, b) in &ends {
            let fits =
                last <= a && a <= b && text.is_char_boundary(a as usize) && text.is_char_boundary(b as usize);
            if !fits {
                return None;
            }
            last = b;
        }
        let mut all = Self { text, ends, table: Vec::new(), initials: Vec::new() };
        all.grow();
        (0..all.ends.len() as u32).for_each(|id| all.note_initial(id));
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_keep_their_numbers_while_it_grows() {
        let mut v = Vocabulary::default();
        let ids: Vec<u32> = (0..1000).map(|i| v.intern(&format!("stem{i}"), &format!("stems{i}"))).collect();
        assert_eq!(v.len(), 1000);
        for (i, id) in ids.iter().enumerate() {
            assert_eq!(v.find(&format!("stem{i}")), Some(*id));
            assert_eq!(v.written_form(*id), format!("stems{i}"));
        }
        assert_eq!(v.find("other"), None);
        let (text, ends) = v.parts();
        let again = Vocabulary::from_parts(text.to_owned(), ends.to_vec()).unwrap();
        assert_eq!(again.find("stem77"), Some(ids[77]));
        assert!(Vocabulary::from_parts("ab".into(), vec![(1, 9)]).is_none());
    }
}
