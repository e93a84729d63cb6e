//! Stems and the numbers the index knows them by, in one block of text.

use super::fast_hash::hash;
use skills_skill::slice;

/// A stem's number.
pub(crate) type StemId = u32;

const EMPTY: u32 = u32::MAX;

/// Interned stems, each with one of its written forms for showing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vocabulary {
    text: String,
    /// End of stem and end of written form of each entry, in `text`.
    ends: Vec<(u32, u32)>,
    /// Open addressing, a power of two long.
    table: Vec<u32>,
    /// Numbers by first byte.
    initials: Vec<Vec<StemId>>,
}

impl Vocabulary {
    /// How many stems there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The stem with that number.
    pub fn stem(&self, id: StemId) -> &str {
        let (stem_end, _) = self.ends[id as usize];
        slice(&self.text, self.start(id) as usize..stem_end as usize)
    }

    /// How the stem is written where it was first seen.
    pub fn written(&self, id: StemId) -> &str {
        let (from, to) = self.ends[id as usize];
        if from == to { self.stem(id) } else { slice(&self.text, from as usize..to as usize) }
    }

    fn start(&self, id: StemId) -> u32 {
        if id == 0 { 0 } else { self.ends[id as usize - 1].1 }
    }

    /// The number of a stem.
    pub fn find(&self, stem: &str) -> Option<StemId> {
        if self.table.is_empty() {
            return None;
        }
        let id = self.table[self.place(stem)];
        (id != EMPTY).then_some(id)
    }

    /// The number of a stem, given to it now if it has none.
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

    /// The stems that start with the same byte as a text.
    pub fn same_initial(&self, text: &str) -> &[StemId] {
        let first = text.bytes().next().unwrap_or_default();
        self.initials.get(usize::from(first)).map_or(&[], Vec::as_slice)
    }

    /// Where the stem is, or where it would go.
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

    /// The parts that a cache keeps.
    pub fn parts(&self) -> (&str, &[(u32, u32)]) {
        (&self.text, &self.ends)
    }

    /// From the parts of a cache; none when they do not fit together.
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
            assert_eq!(v.written(*id), format!("stems{i}"));
        }
        assert_eq!(v.find("other"), None);
        let (text, ends) = v.parts();
        let again = Vocabulary::from_parts(text.to_owned(), ends.to_vec()).unwrap();
        assert_eq!(again.find("stem77"), Some(ids[77]));
        assert!(Vocabulary::from_parts("ab".into(), vec![(1, 9)]).is_none());
    }
}
