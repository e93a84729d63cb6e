//! The tables of a segment, sorted keys with their postings: in memory, or in the cache file, from which they are read
//! on demand.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use skills_base::blocks::Blocks;

use super::fast_hash::FastBuildHasher;

/// Number of keys in a group; the first key of each group stays in memory.
const GROUP: usize = 256;
/// Maximum number of cached groups of keys: 6 MiB.
const MAX_GROUPS: usize = 2_048;
/// Maximum number of cached postings: 8 MiB.
const MAX_POSTINGS: usize = 2 * 1024 * 1024;

/// Packed postings of a key, borrowed from tables in memory or shared with a cache.
#[derive(Debug, Clone)]
pub(crate) enum Postings<'a> {
    Borrowed(&'a [u32]),
    Shared(Arc<[u32]>),
}

impl Deref for Postings<'_> {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match self {
            Self::Borrowed(postings) => postings,
            Self::Shared(postings) => postings,
        }
    }
}

/// Tables in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Owned {
    pub keys: Vec<u64>,
    /// Start of each key's postings, and the end of the last.
    pub starts: Vec<u32>,
    pub postings: Vec<u32>,
    /// The first key of each group: a binary search in them stays in the processor's cache.
    firsts: Vec<u64>,
}

impl Owned {
    fn range(&self, key: u64) -> &[u32] {
        let Some(at) = self.find(key) else { return &[] };
        &self.postings[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Returns the position of a key.
    fn find(&self, key: u64) -> Option<usize> {
        let group = self.firsts.partition_point(|first| *first <= key).checked_sub(1)?;
        let keys = &self.keys[group * GROUP..self.keys.len().min((group + 1) * GROUP)];
        keys.binary_search(&key).ok().map(|at| group * GROUP + at)
    }

    /// Appends a posting to the last key, or to a new key after it.
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
    let mut buffer = Vec::with_capacity(8 * 1024);
    for number in numbers {
        buffer.extend_from_slice(&number);
        if buffer.len() + N > 8 * 1024 {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)
}

/// Tables stored in a file.
#[derive(Debug)]
pub(crate) struct StoredTables {
    blocks: Arc<Blocks>,
    /// Offset of the keys; the other parts follow them.
    from: u64,
    documents: usize,
    keys: usize,
    postings: usize,
    /// The first key of each group.
    firsts: Vec<u64>,
    cached: Mutex<TableCache>,
}

/// Recently read groups and postings.
#[derive(Debug)]
struct TableCache {
    groups: LruCache<usize, Arc<KeyGroup>, FastBuildHasher>,
    postings: LruCache<u64, Arc<[u32]>, FastBuildHasher>,
    /// Number of all cached postings.
    length: usize,
}

/// A group of keys, with the start of each key's postings and the end of the last.
#[derive(Debug)]
struct KeyGroup {
    keys: Vec<u64>,
    starts: Vec<u32>,
}

impl Default for TableCache {
    fn default() -> Self {
        let lru = || LruCache::unbounded_with_hasher(FastBuildHasher::default());
        Self {
            groups: LruCache::unbounded_with_hasher(FastBuildHasher::default()),
            postings: lru(),
            length: 0,
        }
    }
}

impl TableCache {
    fn add_group(&mut self, number: usize, group: &Arc<KeyGroup>) {
        self.groups.put(number, Arc::clone(group));
        if self.groups.len() > MAX_GROUPS {
            self.groups.pop_lru();
        }
    }

    fn add_postings(&mut self, key: u64, postings: &Arc<[u32]>) {
        self.length += postings.len();
        if let Some(replaced) = self.postings.put(key, Arc::clone(postings)) {
            self.length -= replaced.len();
        }
        while self.length > MAX_POSTINGS
            && let Some((_, dropped)) = self.postings.pop_lru()
        {
            self.length -= dropped.len();
        }
    }
}

impl StoredTables {
    /// Opens tables that [`Owned::write`] wrote at the end of the file, for this number of documents.
    pub fn open(blocks: Arc<Blocks>, documents: usize, keys: u64, postings: u64) -> io::Result<Self> {
        let firsts = keys.div_ceil(GROUP as u64);
        let bytes = [keys.checked_mul(8), keys.checked_add(1).and_then(|starts| starts.checked_mul(4))]
            .into_iter()
            .chain([postings.checked_mul(4), firsts.checked_mul(8)])
            .try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?));
        let from =
            bytes.and_then(|bytes| blocks.length().checked_sub(bytes)).ok_or_else(|| blocks.damaged())?;
        let mut stored = Self {
            from,
            documents,
            keys: keys as usize,
            postings: postings as usize,
            firsts: Vec::new(),
            blocks,
            cached: Mutex::default(),
        };
        let firsts = stored.blocks.read(stored.firsts_at(), firsts as usize * 8)?;
        stored.firsts = numbers(&firsts, u64::from_le_bytes);
        if !stored.firsts.is_sorted() {
            return Err(stored.blocks.damaged());
        }
        Ok(stored)
    }

    /// Returns the offset of the tables.
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

    fn cached(&self) -> MutexGuard<'_, TableCache> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn range(&self, key: u64) -> io::Result<Postings<'static>> {
        if let Some(postings) = self.cached().postings.get(&key) {
            return Ok(Postings::Shared(Arc::clone(postings)));
        }
        let Some((start, length)) = self.find(key)? else { return Ok(Postings::Borrowed(&[])) };
        let bytes = self.blocks.read(self.postings_at() + start as u64 * 4, length * 4)?;
        let mut postings = numbers(&bytes, u32::from_le_bytes);
        // The file is untrusted: drop postings of documents that do not exist.
        postings.retain(|bits| ((bits >> 16) as usize) < self.documents);
        let postings: Arc<[u32]> = postings.into();
        self.cached().add_postings(key, &postings);
        Ok(Postings::Shared(postings))
    }

    /// Returns the start and the number of the postings of a key.
    fn find(&self, key: u64) -> io::Result<Option<(usize, usize)>> {
        let Some(number) = self.firsts.partition_point(|first| *first <= key).checked_sub(1) else {
            return Ok(None);
        };
        let group = self.group(number)?;
        let Ok(at) = group.keys.binary_search(&key) else { return Ok(None) };
        let (start, end) = (group.starts[at] as usize, group.starts[at + 1] as usize);
        let length = end.checked_sub(start).filter(|_| end <= self.postings);
        Ok(Some((start, length.ok_or_else(|| self.blocks.damaged())?)))
    }

    fn group(&self, number: usize) -> io::Result<Arc<KeyGroup>> {
        if let Some(group) = self.cached().groups.get(&number) {
            return Ok(Arc::clone(group));
        }
        let first = number * GROUP;
        let length = GROUP.min(self.keys - first);
        let keys = self.blocks.read(self.from + first as u64 * 8, length * 8)?;
        let starts = self.blocks.read(self.starts_at() + first as u64 * 4, (length + 1) * 4)?;
        let group = Arc::new(KeyGroup {
            keys: numbers(&keys, u64::from_le_bytes),
            starts: numbers(&starts, u32::from_le_bytes),
        });
        self.cached().add_group(number, &group);
        Ok(group)
    }

    fn load(&self) -> io::Result<Owned> {
        let read = |from: u64, length: usize| self.blocks.read(from, length);
        let owned = Owned {
            keys: numbers(&read(self.from, self.keys * 8)?, u64::from_le_bytes),
            starts: numbers(&read(self.starts_at(), (self.keys + 1) * 4)?, u32::from_le_bytes),
            postings: numbers(&read(self.postings_at(), self.postings * 4)?, u32::from_le_bytes),
            firsts: self.firsts.clone(),
        };
        if owned.holds_together() { Ok(owned) } else { Err(self.blocks.damaged()) }
    }
}

/// Decodes numbers of one width.
pub(crate) fn numbers<const N: usize, T>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)).collect()
}

/// The tables of a segment, in memory or in a file. Copies share them.
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
    /// Returns the packed postings of a key, in document order. Returns none if they cannot be read, and records the
    /// damage.
    pub fn range(&self, key: u64) -> Postings<'_> {
        match self {
            Self::Owned(tables) => Postings::Borrowed(tables.range(key)),
            Self::StoredTables(tables) => tables.range(key).unwrap_or(Postings::Borrowed(&[])),
        }
    }

    /// Returns the number of postings of a key.
    pub fn count(&self, key: u64) -> usize {
        match self {
            Self::Owned(tables) => tables.range(key).len(),
            Self::StoredTables(tables) => tables.find(key).ok().flatten().map_or(0, |(_, length)| length),
        }
    }

    /// Returns all tables in memory. Returns empty tables if they cannot be read, and records the damage.
    pub fn owned(&self) -> Cow<'_, Owned> {
        match self {
            Self::Owned(tables) => Cow::Borrowed(tables),
            Self::StoredTables(tables) => Cow::Owned(tables.load().unwrap_or_default()),
        }
    }
}
