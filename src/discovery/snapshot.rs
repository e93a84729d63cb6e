//! The index in a file, for a warm start: documents as postcard, vectors and tables in little endian, in blocks that
//! are verified when they are read. Documents and vectors are loaded at once; the tables stay in the file.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::analysis::PackedPositions;
use super::document::Document;
use super::embedding::DIM;
use super::field;
use super::index::{Entry, Index, NO_STEM};
use super::segment::{CAPACITY, Segment};
use super::tables::{StoredTables, Tables, numbers, words};
use super::vocabulary::Vocabulary;
use super::weights::Weights;
use super::word_forms::Forms;
use skills_base::blocks::{BlockWriter, Blocks, ReadAt};

/// Format version; incremented with every change of the format, of tokenization, stemming or limits.
const VERSION: u32 = 19;

/// Why bytes are not a valid index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Written by another version, with other weights, or with another embedding.
    #[error("the cached index was created by another version or with other weights")]
    Version,
    /// The content differs from what was written.
    #[error("the cached index is damaged: {0}")]
    Damaged(&'static str),
}

/// Number of bytes before the documents: version, stamp, and the lengths of the parts.
const PREAMBLE: usize = 36;

/// The serialized form of a document, for reading.
#[derive(Deserialize)]
struct StoredEntry<'a> {
    document: Document,
    read: bool,
    has_body: bool,
    lengths: [u16; field::COUNT],
    pair_lengths: [u16; field::COUNT],
    pieces: Box<[u16]>,
    name_pieces: Box<[u16]>,
    #[serde(borrow)]
    places: [&'a [u8]; 2],
    piece_places: &'a [u8],
    exclusions: Box<[super::marks::Exclusion]>,
    clauses: Box<[u32]>,
    language: Option<super::language::Language>,
}

/// The borrowed form of [`StoredEntry`], for writing.
#[derive(Serialize)]
struct EntryRef<'a> {
    document: &'a Document,
    read: bool,
    has_body: bool,
    lengths: [u16; field::COUNT],
    pair_lengths: [u16; field::COUNT],
    pieces: &'a [u16],
    name_pieces: &'a [u16],
    places: [&'a [u8]; 2],
    piece_places: &'a [u8],
    exclusions: &'a [super::marks::Exclusion],
    clauses: &'a [u32],
    language: Option<super::language::Language>,
}

/// Writes an index. `stamp` identifies what it depends on in addition to the documents: weights and embedding. Returns
/// the slots of the documents in the order in which they were written.
pub(crate) fn write(index: &Index, stamp: u64, out: impl Write) -> io::Result<Vec<u32>> {
    // The file has one segment with documents in its order: slots are renumbered.
    let segment = index.as_one();
    let entries = || segment.slots.iter().filter_map(|slot| index.entry(*slot as usize));
    let tables = segment.tables().owned();
    let mut out = BlockWriter::new(out);
    out.write_all(&VERSION.to_le_bytes())?;
    out.write_all(&stamp.to_le_bytes())?;
    let lengths = [entries().count(), tables.keys.len(), tables.postings.len()];
    words(&mut out, lengths.into_iter().map(|length| (length as u64).to_le_bytes()))?;
    let mut bytes = Vec::new();
    for e in entries() {
        bytes.clear();
        let entry = EntryRef {
            document: &e.document,
            read: e.is_body_read,
            has_body: e.has_body,
            lengths: e.lengths,
            pair_lengths: e.pair_lengths,
            pieces: &e.pieces,
            name_pieces: &e.name_pieces,
            places: e.places.each_ref().map(PackedPositions::as_bytes),
            piece_places: e.piece_places.as_bytes(),
            exclusions: &e.exclusions,
            clauses: &e.clauses,
            language: e.language,
        };
        bytes = postcard::to_extend(&entry, bytes).map_err(io::Error::other)?;
        out.record(&bytes)?;
    }
    drop(bytes);
    out.record(&postcard::to_stdvec(&index.vocabulary.parts()).map_err(io::Error::other)?)?;
    out.record(&postcard::to_stdvec(&index.forms.parts()).map_err(io::Error::other)?)?;
    let vectors = segment.slots.iter().flat_map(|slot| index.vector(*slot as usize));
    words(&mut out, vectors.map(|value| value.to_le_bytes()))?;
    tables.write(&mut out)?;
    out.finish()?;
    Ok(segment.slots.clone())
}

/// Opens a written index; returns its blocks and the lengths of its parts.
fn open(
    source: Box<dyn ReadAt>,
    stamp: u64,
    damaged: &Arc<AtomicBool>,
) -> Result<(Arc<Blocks>, [u64; 3]), SnapshotError> {
    let cut = |_| SnapshotError::Damaged("truncated");
    let blocks = Arc::new(Blocks::open(source, Arc::clone(damaged)).map_err(cut)?);
    let preamble = blocks.read(0, PREAMBLE).map_err(cut)?;
    if preamble[..4] != VERSION.to_le_bytes() || preamble[4..12] != stamp.to_le_bytes() {
        return Err(SnapshotError::Version);
    }
    let lengths: Vec<u64> = numbers(&preamble[12..], u64::from_le_bytes);
    Ok((blocks, std::array::from_fn(|i| lengths[i])))
}

/// Opens the tables of an index that was written from these slots, to replace those in memory.
pub(crate) fn segment(
    source: Box<dyn ReadAt>,
    stamp: u64,
    damaged: &Arc<AtomicBool>,
    slots: Vec<u32>,
) -> Result<Segment, SnapshotError> {
    let (blocks, [documents, keys, postings]) = open(source, stamp, damaged)?;
    if documents != slots.len() as u64 {
        return Err(SnapshotError::Damaged("its documents"));
    }
    Ok(Segment::new(tables(blocks, slots.len(), keys, postings)?, slots))
}

/// Opens the tables, which are at the end of the file.
fn tables(blocks: Arc<Blocks>, documents: usize, keys: u64, postings: u64) -> Result<Tables, SnapshotError> {
    let stored = StoredTables::open(blocks, documents, keys, postings);
    Ok(Tables::StoredTables(Arc::new(stored.map_err(|_| SnapshotError::Damaged("its tables"))?)))
}

/// Reads a written index; its tables are read on demand.
pub(crate) fn read(source: Box<dyn ReadAt>, stamp: u64, weights: &Weights) -> Result<Index, SnapshotError> {
    let damaged = Arc::<AtomicBool>::default();
    let (blocks, [documents, keys, postings]) = open(source, stamp, &damaged)?;
    let n = usize::try_from(documents).ok().filter(|n| *n <= CAPACITY);
    let n = n.ok_or(SnapshotError::Damaged("its documents"))?;
    let mut reader = blocks.reader(PREAMBLE as u64);
    let mut entries: Vec<Entry> = Vec::with_capacity(n);
    for local in 0..n {
        let entry =
            reader.record().ok().and_then(|bytes| postcard::from_bytes::<StoredEntry<'_>>(bytes).ok());
        let e = entry.ok_or(SnapshotError::Damaged("its documents"))?;
        entries.push(Entry {
            document: e.document,
            is_body_read: e.read,
            has_body: e.has_body,
            lengths: e.lengths,
            pair_lengths: e.pair_lengths,
            pieces: e.pieces,
            name_pieces: e.name_pieces,
            places: e.places.map(PackedPositions::from_bytes),
            piece_places: PackedPositions::from_bytes(e.piece_places),
            exclusions: e.exclusions,
            clauses: e.clauses,
            language: e.language,
            home: (0, local as u16),
        });
    }
    let parts = reader.record().ok().and_then(|bytes| postcard::from_bytes(bytes).ok());
    let (text, ends): (String, Vec<(u32, u32)>) = parts.ok_or(SnapshotError::Damaged("its vocabulary"))?;
    let vocabulary = Vocabulary::from_parts(text, ends).ok_or(SnapshotError::Damaged("its vocabulary"))?;
    let parts = reader.record().ok().and_then(|bytes| postcard::from_bytes(bytes).ok());
    let (forms, ends, stems, parts_of_words): (String, Vec<u32>, Vec<u32>, Vec<bool>) =
        parts.ok_or(SnapshotError::Damaged("its word forms"))?;
    let mut vectors: Vec<i16> = Vec::with_capacity(n * DIM);
    for _ in 0..n {
        let vector = reader.take(DIM * 2).map_err(|_| SnapshotError::Damaged("its vectors"))?;
        vectors.extend(numbers(vector, i16::from_le_bytes));
    }
    let from = reader.at();
    drop(reader);
    let tables = tables(blocks, n, keys, postings)?;
    if !matches!(&tables, Tables::StoredTables(stored) if stored.from() == from) {
        return Err(SnapshotError::Damaged("its tables"));
    }
    let segment = Segment::new(tables, (0..n as u32).collect());
    let has_stem = |stem: &u32| (*stem as usize) < vocabulary.len();
    let forms = Some(stems)
        .filter(|stems| stems.iter().all(has_stem))
        .and_then(|stems| Forms::from_parts(forms, ends, stems, parts_of_words))
        .ok_or(SnapshotError::Damaged("its word forms"))?;
    // An unknown stem of a place matches no word of a request.
    let in_vocabulary = |e: &Entry| e.clauses.iter().all(|stem| has_stem(stem) || *stem == NO_STEM);
    if !entries.iter().all(in_vocabulary) {
        return Err(SnapshotError::Damaged("its words"));
    }
    let mut index = Index::from_one(segment, entries, vocabulary, forms, vectors);
    index.damaged = damaged;
    index.derive(weights);
    Ok(index)
}
