//! The index: documents in slots, their postings in segments, and the averages that scores need.
//! It holds statistics of bodies, never their text.

use std::collections::HashMap;

use super::analysis::{Analysis, Place, UNIT};
use super::document::Document;
use super::embedding::DIM;
use super::field::{self, Counts};
use super::labels::Labels;
use super::segment::{CAPACITY, Key, Posting, Segment};
use super::sums::Sums;
use super::vocabulary::Vocabulary;
use super::weights::Weights;
use crate::skill::SkillId;

/// Segments of about one size that are merged into one.
const FAN: usize = 8;

/// What stays of a document beside its postings.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The skill, without headings and body.
    pub document: Document,
    /// Whether headings and body have been read.
    pub read: bool,
    /// Whether there was any text in them.
    pub has_body: bool,
    /// Stems by field.
    pub lengths: [u16; field::COUNT],
    /// Pairs by field.
    pub pair_lengths: [u16; field::COUNT],
    /// Distinct word pieces of the name.
    pub name_pieces: Vec<u16>,
    /// Words of name and description: stem and place.
    pub places: [Box<[Place]>; 2],
    /// Word pieces of the description: token and place.
    pub piece_places: Box<[Place]>,
    /// Where its postings are: segment (by number) and place in it.
    pub home: (u32, u16),
}

/// Documents, postings, averages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    pub vocabulary: Vocabulary,
    /// Ids, names and tags by their plain form.
    pub labels: Labels,
    segments: Vec<(u32, Segment)>,
    next_segment: u32,
    slots: Vec<Option<Entry>>,
    free: Vec<u32>,
    by_id: HashMap<SkillId, u32>,
    /// `DIM` values a slot, `UNIT` for 1.
    vectors: Vec<i16>,
    sums: Sums,
    /// What follows from the sums, by slot; made anew after every change.
    pub derived: Derived,
}

/// Norms by slot that depend on averages over all documents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Derived {
    /// `w_f / (1 − b_f + b_f · len_f / avglen_f)` of stems.
    pub norms: Vec<[f32; field::COUNT]>,
    /// The same of pairs.
    pub pair_norms: Vec<[f32; field::COUNT]>,
    /// Mean vector of the collection.
    pub mean: Vec<f64>,
    /// 1 / |d − share·mean|; 0 for a document without a vector.
    pub centred: Vec<f32>,
}

impl Index {
    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.sums.documents
    }

    /// How many of them can be an answer: all but the shadowed copies.
    pub fn ranked(&self) -> usize {
        self.sums.documents - self.sums.shadowed
    }

    /// How many of them have a body with any text.
    pub fn bodies(&self) -> usize {
        self.sums.bodies
    }

    /// How many of them have headings and body still to be read.
    pub fn unread(&self) -> usize {
        self.sums.documents - self.sums.read
    }

    /// How many slots there are, empty ones included.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The document in a slot.
    pub fn entry(&self, slot: usize) -> Option<&Entry> {
        self.slots.get(slot).and_then(Option::as_ref)
    }

    /// All documents with their slots.
    pub fn entries(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.slots.iter().enumerate().filter_map(|(slot, e)| e.as_ref().map(|e| (slot, e)))
    }

    /// The slot of a document.
    pub fn slot_of(&self, id: &SkillId) -> Option<usize> {
        self.by_id.get(id).map(|slot| *slot as usize)
    }

    /// A document's vector.
    pub fn vector(&self, slot: usize) -> &[i16] {
        &self.vectors[slot * DIM..(slot + 1) * DIM]
    }

    /// All vectors, slot by slot.
    pub fn vectors(&self) -> &[i16] {
        &self.vectors
    }

    /// Hands every living document that has a key to `take`, with the counts that `view` lets through.
    pub fn each(&self, key: Key, view: View, mut take: impl FnMut(usize, Counts)) {
        for (number, segment) in &self.segments {
            for posting in segment.postings(key) {
                let slot = segment.slot(posting.local);
                if segment.dead > 0 && !self.lives(slot, *number) {
                    continue;
                }
                let counts = view.of(posting.counts);
                if !counts.is_empty() {
                    take(slot, counts);
                }
            }
        }
    }

    /// How many living documents have a key, as far as `view` sees.
    pub fn frequency(&self, key: Key, view: View) -> usize {
        if view != View::Short && self.segments.iter().all(|(_, s)| s.dead == 0) {
            return self.segments.iter().map(|(_, s)| s.count(key)).sum();
        }
        let mut n = 0;
        self.each(key, view, |_, _| n += 1);
        n
    }

    /// The counts of a key in one document.
    pub fn counts(&self, key: Key, slot: usize, view: View) -> Option<Counts> {
        let (number, local) = self.entry(slot)?.home;
        let (_, segment) = self.segments.iter().find(|(n, _)| *n == number)?;
        segment.in_document(key, local).map(|c| view.of(c)).filter(|c| !c.is_empty())
    }

    fn lives(&self, slot: usize, segment: u32) -> bool {
        self.entry(slot).is_some_and(|e| e.home.0 == segment)
    }

    /// Average length of a field over the documents that have it: of stems, of pairs.
    pub fn average(&self, field: usize) -> (f64, f64) {
        let mean = |sum: u64, n: u64| if n == 0 { 1.0 } else { sum as f64 / n as f64 };
        (
            mean(self.sums.lengths[field], self.sums.filled[field]),
            mean(self.sums.pair_lengths[field], self.sums.pair_filled[field]),
        )
    }

    /// Takes documents out and puts others in (an id that is there is replaced).
    pub fn change(&mut self, upserts: Vec<Analysis>, removed: &[SkillId], weights: &Weights) {
        for id in removed {
            self.remove(id);
        }
        let mut upserts = upserts.into_iter().peekable();
        while upserts.peek().is_some() {
            // Large changes go in pieces, so that the memory to sort them stays small.
            let batch: Vec<Analysis> = upserts.by_ref().take(2_048).collect();
            self.insert(batch);
            self.settle();
        }
        self.settle();
        self.derive(weights);
    }

    /// Everything in one segment, and its documents' slots in its order.
    pub fn as_one(&self) -> (Segment, Vec<usize>) {
        let (numbers, parts): (Vec<u32>, Vec<&Segment>) = self.segments.iter().map(|(n, s)| (*n, s)).unzip();
        let merged = Segment::merge(&parts, |slot, which| self.lives(slot as usize, numbers[which]));
        let slots = merged.slots.iter().map(|slot| *slot as usize).collect();
        (merged, slots)
    }

    /// From one segment whose documents are the entries in order.
    pub fn from_one(
        segment: Segment,
        entries: Vec<Entry>,
        vocabulary: Vocabulary,
        vectors: Vec<i16>,
    ) -> Self {
        let mut out = Self { vocabulary, vectors, next_segment: 1, ..Self::default() };
        for (slot, entry) in entries.into_iter().enumerate() {
            let vector = std::array::from_fn(|i| out.vectors[slot * DIM + i]);
            out.sums.apply(&entry, &vector, true);
            out.labels.insert(&entry.document, slot as u32);
            out.by_id.insert(entry.document.id.clone(), slot as u32);
            out.slots.push(Some(entry));
        }
        if !segment.slots.is_empty() {
            out.segments.push((0, segment));
        }
        out
    }

    fn remove(&mut self, id: &SkillId) {
        let Some(slot) = self.by_id.remove(id) else { return };
        let Some(entry) = self.slots[slot as usize].take() else { return };
        self.labels.remove(&entry.document, slot);
        let vector = std::array::from_fn(|i| self.vectors[slot as usize * DIM + i]);
        self.sums.apply(&entry, &vector, false);
        self.vectors[slot as usize * DIM..(slot as usize + 1) * DIM].fill(0);
        if let Some((_, segment)) = self.segments.iter_mut().find(|(n, _)| *n == entry.home.0) {
            segment.dead += 1;
        }
    }

    fn insert(&mut self, batch: Vec<Analysis>) {
        let number = self.next_segment;
        self.next_segment += 1;
        let mut entries =
            Vec::with_capacity(batch.iter().map(|a| a.counts.len() + a.pairs.len() + a.pieces.len()).sum());
        let mut slots = Vec::with_capacity(batch.len());
        let mut replaced = 0;
        for analysis in batch {
            if let Some(slot) = self.by_id.get(&analysis.document.id).copied()
                && self.entry(slot as usize).is_some_and(|e| e.home.0 == number)
            {
                replaced += 1;
            }
            self.remove(&analysis.document.id);
            let local = slots.len() as u16;
            let slot = self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.vectors.resize(self.vectors.len() + DIM, 0);
                (self.slots.len() - 1) as u32
            });
            slots.push(slot);
            let ids: Vec<u32> = analysis.stems.iter().map(|(s, w)| self.vocabulary.intern(s, w)).collect();
            let posting = |counts| Posting { local, counts };
            entries.extend(ids.iter().zip(&analysis.counts).map(|(id, c)| (Key::stem(*id), posting(*c))));
            entries.extend(
                analysis
                    .pairs
                    .iter()
                    .map(|(a, b, c)| (Key::pair(ids[*a as usize], ids[*b as usize]), posting(*c))),
            );
            entries.extend(analysis.pieces.iter().map(|(token, in_name)| {
                (
                    Key::piece(*token),
                    posting(Counts::pack(if *in_name { [1, 1, 0, 0, 0] } else { [0, 1, 0, 0, 0] })),
                )
            }));
            let entry = Entry {
                read: analysis.read,
                has_body: analysis.has_body,
                lengths: analysis.lengths,
                pair_lengths: analysis.pair_lengths,
                name_pieces: analysis.name_pieces,
                places: analysis.places.map(|places| {
                    places.into_iter().map(|p| Place { what: ids[p.what as usize], ..p }).collect()
                }),
                piece_places: analysis.piece_places.into_boxed_slice(),
                home: (number, local),
                document: analysis.document,
            };
            self.sums.apply(&entry, &analysis.vector, true);
            let at = slot as usize * DIM;
            self.vectors[at..at + DIM].copy_from_slice(&analysis.vector[..]);
            self.labels.insert(&entry.document, slot);
            self.by_id.insert(entry.document.id.clone(), slot);
            self.slots[slot as usize] = Some(entry);
        }
        let mut segment = Segment::build(entries, slots);
        segment.dead = replaced;
        self.segments.push((number, segment));
    }

    /// Merges segments of about one size once there are enough of them; drops the dead.
    fn settle(&mut self) {
        loop {
            let tier = |s: &Segment| s.alive().max(1).ilog(FAN);
            let crowded = (0..8).find(|t| self.segments.iter().filter(|(_, s)| tier(s) == *t).count() >= FAN);
            let rotten = self.segments.iter().find(|(_, s)| s.dead * 2 > s.slots.len()).map(|(n, _)| *n);
            let chosen: Vec<u32> = match (crowded, rotten) {
                (_, Some(number)) => vec![number],
                (Some(t), None) => {
                    self.segments.iter().filter(|(_, s)| tier(s) == t).map(|(n, _)| *n).collect()
                }
                (None, None) => return,
            };
            let (parts, rest): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.segments).into_iter().partition(|(n, _)| chosen.contains(n));
            self.segments = rest;
            let total: usize = parts.iter().map(|(_, s)| s.alive()).sum();
            if total > CAPACITY {
                self.segments.extend(parts);
                return;
            }
            self.merge(parts);
        }
    }

    fn merge(&mut self, parts: Vec<(u32, Segment)>) {
        let number = self.next_segment;
        self.next_segment += 1;
        let (numbers, parts): (Vec<u32>, Vec<Segment>) = parts.into_iter().unzip();
        let merged = Segment::merge(&parts.iter().collect::<Vec<_>>(), |slot, which| {
            self.lives(slot as usize, numbers[which])
        });
        for slot in parts.iter().flat_map(|p| &p.slots) {
            // A slot that no segment holds any more can be used again.
            if self.slots[*slot as usize].is_none() {
                self.free.push(*slot);
            }
        }
        for (local, slot) in merged.slots.iter().enumerate() {
            if let Some(entry) = &mut self.slots[*slot as usize] {
                entry.home = (number, local as u16);
            }
        }
        if !merged.slots.is_empty() {
            self.segments.push((number, merged));
        }
    }

    /// Norms and mean after a change of the sums.
    pub fn derive(&mut self, weights: &Weights) {
        let fields = weights.fields.all();
        let averages: [(f64, f64); field::COUNT] = std::array::from_fn(|f| self.average(f));
        let norm = |lengths: &[u16; field::COUNT], pairs: bool| -> [f32; field::COUNT] {
            std::array::from_fn(|f| {
                let (b, average) = if pairs {
                    (fields[f].bigram_length, averages[f].1)
                } else {
                    (fields[f].length, averages[f].0)
                };
                (fields[f].weight / (1.0 - b + b * f64::from(lengths[f]) / average)) as f32
            })
        };
        let none = [0; field::COUNT];
        let of = |e: &Option<Entry>, pairs: bool| {
            let lengths = e.as_ref().map_or(&none, |e| if pairs { &e.pair_lengths } else { &e.lengths });
            norm(lengths, pairs)
        };
        let mean: [f64; DIM] = std::array::from_fn(|i| {
            if self.sums.with_vector == 0 {
                0.0
            } else {
                self.sums.vectors[i] as f64 / UNIT / self.sums.with_vector as f64
            }
        });
        let offset = mean.map(|m| (weights.centring * m) as f32);
        let centred = self.vectors.chunks_exact(DIM).map(|v| {
            let (mut length, mut any) = (0.0_f32, false);
            for (value, off) in v.iter().zip(&offset) {
                let x = f32::from(*value) / UNIT as f32 - off;
                any |= *value != 0;
                length += x * x;
            }
            if any && length > 0.0 { 1.0 / length.sqrt() } else { 0.0 }
        });
        self.derived = Derived {
            norms: self.slots.iter().map(|e| of(e, false)).collect(),
            pair_norms: self.slots.iter().map(|e| of(e, true)).collect(),
            centred: centred.collect(),
            mean: mean.to_vec(),
        };
    }
}

/// Which fields count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// All of them.
    All,
    /// Name, description and tags.
    Short,
    /// A word piece's mark for the name.
    Pieces,
}

impl View {
    fn of(self, counts: Counts) -> Counts {
        match self {
            Self::All | Self::Pieces => counts,
            Self::Short => counts.without_body(),
        }
    }
}
