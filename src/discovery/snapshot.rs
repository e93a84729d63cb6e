//! The index as bytes, for a warm start: documents through postcard, the large tables as they lie in
//! memory, little endian. A reader takes it whole or not at all.

use serde::{Deserialize, Serialize};

use super::document::Document;
use super::embedding::DIM;
use super::field;
use super::forms::Forms;
use super::index::{Entry, Index, NO_STEM};
use super::segment::Segment;
use super::vocabulary::Vocabulary;
use super::weights::Weights;

/// Counts up with every change of the form, of words, stems or limits.
const VERSION: u32 = 4;

/// Why bytes are no index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Another version wrote it, or it was made with other weights or another embedding.
    #[error("the cached index was made by another version or with other weights")]
    Version,
    /// Not what was written.
    #[error("the cached index is damaged: {0}")]
    Damaged(&'static str),
}

/// The part that goes through postcard.
#[derive(Serialize, Deserialize)]
struct Head {
    entries: Vec<KeptEntry>,
    vocabulary: (String, Vec<(u32, u32)>),
    forms: (String, Vec<u32>, Vec<u32>),
}

#[derive(Serialize, Deserialize)]
struct KeptEntry {
    document: Document,
    read: bool,
    has_body: bool,
    lengths: [u16; field::COUNT],
    pair_lengths: [u16; field::COUNT],
    pieces: Box<[u16]>,
    name_pieces: Box<[u16]>,
    places: [Box<[super::analysis::Place]>; 2],
    piece_places: Box<[super::analysis::Place]>,
    exclusions: Box<[super::marks::Exclusion]>,
    clauses: Box<[u32]>,
    language: Option<super::language::Language>,
}

/// Writes an index. `stamp` says what it depends on beside the documents: weights and embedding.
pub(crate) fn write(index: &Index, stamp: u64) -> Vec<u8> {
    // One segment, documents in its order: slots are numbered anew.
    let (segment, slots) = index.as_one();
    let entries = slots.iter().filter_map(|slot| index.entry(*slot)).map(|e| KeptEntry {
        document: e.document.clone(),
        read: e.read,
        has_body: e.has_body,
        lengths: e.lengths,
        pair_lengths: e.pair_lengths,
        pieces: e.pieces.clone(),
        name_pieces: e.name_pieces.clone(),
        places: e.places.clone(),
        piece_places: e.piece_places.clone(),
        exclusions: e.exclusions.clone(),
        clauses: e.clauses.clone(),
        language: e.language,
    });
    let (text, ends) = index.vocabulary.parts();
    let (forms, form_ends, form_stems) = index.forms.parts();
    let head = Head {
        entries: entries.collect(),
        vocabulary: (text.to_owned(), ends.to_vec()),
        forms: (forms.to_owned(), form_ends.to_vec(), form_stems.to_vec()),
    };
    // Serialising plain data into memory cannot fail; an empty head would be refused on reading.
    let head = postcard::to_stdvec(&head).unwrap_or_default();
    let mut out = Vec::new();
    out.extend(VERSION.to_le_bytes());
    out.extend(stamp.to_le_bytes());
    let mut block = |bytes: &mut dyn Iterator<Item = u8>, length: usize| {
        out.extend((length as u64).to_le_bytes());
        out.extend(bytes);
    };
    block(&mut head.iter().copied(), head.len());
    block(&mut segment.keys.iter().flat_map(|v| v.to_le_bytes()), segment.keys.len() * 8);
    block(&mut segment.starts.iter().flat_map(|v| v.to_le_bytes()), segment.starts.len() * 4);
    block(&mut segment.postings.iter().flat_map(|v| v.to_le_bytes()), segment.postings.len() * 4);
    let vectors = slots.iter().flat_map(|slot| index.vector(*slot)).flat_map(|v| v.to_le_bytes());
    block(&mut { vectors }, slots.len() * DIM * 2);
    out
}

/// Reads what [`write`] wrote.
pub(crate) fn read(bytes: &[u8], stamp: u64, weights: &Weights) -> Result<Index, SnapshotError> {
    let mut rest = bytes;
    let head = take(&mut rest, 12)?;
    if head[..4] != VERSION.to_le_bytes() || head[4..] != stamp.to_le_bytes() {
        return Err(SnapshotError::Version);
    }
    let head: Head =
        postcard::from_bytes(block(&mut rest)?).map_err(|_| SnapshotError::Damaged("its documents"))?;
    let keys = block(&mut rest)?.chunks_exact(8).map(|c| u64::from_le_bytes(std::array::from_fn(|i| c[i])));
    let keys: Vec<u64> = keys.collect();
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes.chunks_exact(4).map(|c| u32::from_le_bytes(std::array::from_fn(|i| c[i]))).collect()
    };
    let starts = words(block(&mut rest)?);
    let postings = words(block(&mut rest)?);
    let vectors: Vec<i16> =
        block(&mut rest)?.chunks_exact(2).map(|c| i16::from_le_bytes([c[0], c[1]])).collect();
    let n = head.entries.len();
    let segment = Segment { keys, starts, postings, slots: (0..n as u32).collect(), dead: Vec::new() };
    let vocabulary = Vocabulary::from_parts(head.vocabulary.0, head.vocabulary.1)
        .ok_or(SnapshotError::Damaged("its vocabulary"))?;
    let (forms, ends, stems) = head.forms;
    let known = |stem: &u32| (*stem as usize) < vocabulary.len();
    let forms = Some(stems)
        .filter(|stems| stems.iter().all(known))
        .and_then(|stems| Forms::from_parts(forms, ends, stems))
        .ok_or(SnapshotError::Damaged("its word forms"))?;
    let in_vocabulary = |e: &KeptEntry| {
        e.places.iter().flatten().all(|p| known(&p.what))
            && e.clauses.iter().all(|stem| known(stem) || *stem == NO_STEM)
    };
    if !rest.is_empty() || vectors.len() != n * DIM || !segment.holds_together() {
        return Err(SnapshotError::Damaged("its tables"));
    }
    if !head.entries.iter().all(in_vocabulary) {
        return Err(SnapshotError::Damaged("its words"));
    }
    let entries = head.entries.into_iter().enumerate().map(|(local, e)| Entry {
        document: e.document,
        read: e.read,
        has_body: e.has_body,
        lengths: e.lengths,
        pair_lengths: e.pair_lengths,
        pieces: e.pieces,
        name_pieces: e.name_pieces,
        places: e.places,
        piece_places: e.piece_places,
        exclusions: e.exclusions,
        clauses: e.clauses,
        language: e.language,
        home: (0, local as u16),
    });
    let mut index = Index::from_one(segment, entries.collect(), vocabulary, forms, vectors);
    index.derive(weights);
    Ok(index)
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Result<&'a [u8], SnapshotError> {
    let (taken, left) = rest.split_at_checked(n).ok_or(SnapshotError::Damaged("it is cut off"))?;
    *rest = left;
    Ok(taken)
}

fn block<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], SnapshotError> {
    let length = take(rest, 8)?;
    let length = u64::from_le_bytes(std::array::from_fn(|i| length[i]));
    take(rest, usize::try_from(length).map_err(|_| SnapshotError::Damaged("it is too large"))?)
}
