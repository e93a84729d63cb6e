//! The tables of a segment, sorted keys with their postings: in memory, or in the file of the cache, where they are read
//! as they are asked for.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use skills_base::blocks::Blocks;

/// Keys between two that stay in memory.
const GROUP: usize = 256;

/// Tables in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Owned {
    pub keys: Vec<u64>,
    /// Start of each key's postings, and the end of the last.
    pub starts: Vec<u32>,
    pub postings: Vec<u32>,
    /// The first key of each group: a search in them stays in the processor's cache.
    firsts: Vec<u64>,
}

impl Owned {
    fn range(&self, key: u64) -> &[u32] {
        let Some(at) = self.find(key) else { return &[] };
        &self.postings[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// The place of a key.
    fn find(&self, key: u64) -> Option<usize> {
        let group = self.firsts.partition_point(|first| *first <= key).checked_sub(1)?;
        let keys = &self.keys[group * GROUP..self.keys.len().min((group + 1) * GROUP)];
        keys.binary_search(&key).ok().map(|at| group * GROUP + at)
    }

    /// Adds a posting to the last key, or to one after it.
    pub fn push(&mut self, key: u64, posting: u32) {
        if self.keys.last() != Some(&key) {
            if self.keys.len().is_multiple_of(GROUP) {
                self.firsts.push(key);
            }
            self.keys.push(key);
            self.starts.push(self.postings.len() as u32);
        }
        self.postings.push(posting);
    }

    fn holds_together(&self) -> bool {
        self.starts.len() == self.keys.len() + 1
            && self.starts.windows(2).all(|w| w[0] <= w[1])
            && self.starts.last().is_some_and(|end| *end as usize == self.postings.len())
            && self.keys.windows(2).all(|w| w[0] < w[1])
            && self.keys.iter().step_by(GROUP).eq(&self.firsts)
    }

    /// Writes keys, starts, postings, and the first key of each group.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        words(out, self.keys.iter().map(|key| key.to_le_bytes()))?;
        words(out, self.starts.iter().map(|start| start.to_le_bytes()))?;
        words(out, self.postings.iter().map(|posting| posting.to_le_bytes()))?;
        words(out, self.firsts.iter().map(|key| key.to_le_bytes()))
    }
}

/// Writes numbers of one width.
pub(crate) fn words<const N: usize>(
    out: &mut impl Write,
    numbers: impl Iterator<Item = [u8; N]>,
) -> io::Result<()> {
    let mut piece = Vec::with_capacity(8 * 1024);
    for number in numbers {
        piece.extend_from_slice(&number);
        if piece.len() + N > 8 * 1024 {
            out.write_all(&piece)?;
            piece.clear();
        }
    }
    out.write_all(&piece)
}

/// Tables in a file.
#[derive(Debug)]
pub(crate) struct StoredTables {
    blocks: Arc<Blocks>,
    /// Offset of the keys; the rest follows them.
    from: u64,
    keys: usize,
    postings: usize,
    /// The first key of each group.
    firsts: Vec<u64>,
}

impl StoredTables {
    /// Tables that [`Owned::write`] wrote at the end.
    pub fn open(blocks: Arc<Blocks>, keys: u64, postings: u64) -> io::Result<Self> {
        let firsts = keys.div_ceil(GROUP as u64);
        let bytes = [keys.checked_mul(8), keys.checked_add(1).and_then(|starts| starts.checked_mul(4))]
            .into_iter()
            .chain([postings.checked_mul(4), firsts.checked_mul(8)])
            .try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?));
        let from =
            bytes.and_then(|bytes| blocks.length().checked_sub(bytes)).ok_or_else(|| blocks.damaged())?;
        let mut kept =
            Self { from, keys: keys as usize, postings: postings as usize, firsts: Vec::new(), blocks };
        let firsts = kept.blocks.read(kept.firsts_at(), firsts as usize * 8, false)?;
        kept.firsts = numbers(&firsts, u64::from_le_bytes);
        if !kept.firsts.is_sorted() {
            return Err(kept.blocks.damaged());
        }
        Ok(kept)
    }

    /// Where they begin.
    pub fn from(&self) -> u64 {
        self.from
    }

    fn starts_at(&self) -> u64 {
        self.from + self.keys as u64 * 8
    }

    fn postings_at(&self) -> u64 {
        self.starts_at() + (self.keys as u64 + 1) * 4
    }

    fn firsts_at(&self) -> u64 {
        self.postings_at() + self.postings as u64 * 4
    }

    fn range(&self, key: u64) -> io::Result<Vec<u32>> {
        let Some((start, length)) = self.find(key)? else { return Ok(Vec::new()) };
        let postings = self.blocks.read(self.postings_at() + start as u64 * 4, length * 4, true)?;
        Ok(numbers(&postings, u32::from_le_bytes))
    }

    /// Where the postings of a key start, and how many there are.
    fn find(&self, key: u64) -> io::Result<Option<(usize, usize)>> {
        let Some(group) = self.firsts.partition_point(|first| *first <= key).checked_sub(1) else {
            return Ok(None);
        };
        let first = group * GROUP;
        let keys = self.blocks.read(self.from + first as u64 * 8, GROUP.min(self.keys - first) * 8, true)?;
        let keys: Vec<u64> = numbers(&keys, u64::from_le_bytes);
        let Ok(at) = keys.binary_search(&key) else { return Ok(None) };
        let ends = self.blocks.read(self.starts_at() + (first + at) as u64 * 4, 8, true)?;
        let ends: Vec<u32> = numbers(&ends, u32::from_le_bytes);
        let (start, end) = (ends[0] as usize, ends[1] as usize);
        let length = end.checked_sub(start).filter(|_| end <= self.postings);
        Ok(Some((start, length.ok_or_else(|| self.blocks.damaged())?)))
    }

    fn load(&self) -> io::Result<Owned> {
        let read = |from: u64, length: usize| self.blocks.read(from, length, false);
        let owned = Owned {
            keys: numbers(&read(self.from, self.keys * 8)?, u64::from_le_bytes),
            starts: numbers(&read(self.starts_at(), (self.keys + 1) * 4)?, u32::from_le_bytes),
            postings: numbers(&read(self.postings_at(), self.postings * 4)?, u32::from_le_bytes),
            firsts: self.firsts.clone(),
        };
        if owned.holds_together() { Ok(owned) } else { Err(self.blocks.damaged()) }
    }
}

/// Numbers of one width out of bytes.
pub(crate) fn numbers<const N: usize, T>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)).collect()
}

/// Where the tables of a segment are. Copies share them.
#[derive(Debug, Clone)]
pub(crate) enum Tables {
    Owned(Arc<Owned>),
    StoredTables(Arc<StoredTables>),
}

impl Default for Tables {
    fn default() -> Self {
        Self::Owned(Arc::default())
    }
}

impl Tables {
    /// Packed postings of a key, in order of documents. What cannot be read has none, and is noted as damage.
    pub fn range(&self, key: u64) -> Cow<'_, [u32]> {
        match self {
            Self::Owned(tables) => Cow::Borrowed(tables.range(key)),
            Self::StoredTables(tables) => Cow::Owned(tables.range(key).unwrap_or_default()),
        }
    }

    /// How many postings a key has.
    pub fn count(&self, key: u64) -> usize {
        match self {
            Self::Owned(tables) => tables.range(key).len(),
            Self::StoredTables(tables) => tables.find(key).ok().flatten().map_or(0, |(_, length)| length),
        }
    }

    /// All of them in memory. What cannot be read is empty, and is noted as damage.
    pub fn owned(&self) -> Cow<'_, Owned> {
        match self {
            Self::Owned(tables) => Cow::Borrowed(tables),
            Self::StoredTables(tables) => Cow::Owned(tables.load().unwrap_or_default()),
        }
    }
}
