//! The index: documents in slots, their postings in segments, and the averages for scoring. It stores statistics of
//! bodies, never their text.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::HashMap;

use super::analysis::{Analysis, PackedPositions, UNIT, WordPosition};
use super::derived::{Derived, Lengths};
use super::document::Document;
use super::embedding::{DIM, dot, normalize};
use super::field::{self, Counts};
use super::labels::Labels;
use super::language::Language;
use super::lookup::{KeyPostings, View};
use super::marks::Exclusion;
use super::matcher::rarity;
use super::rules::status_rank;
use super::segment::{CAPACITY, Key, Posting, Segment};
use super::sums::Sums;
use super::vocabulary::{StemId, Vocabulary};
use super::weights::Weights;
use super::word_forms::Forms;
use skills_skill::{EffectMode, Role, SkillId, Status};

/// Number of segments of similar size that are merged into one.
const FAN: usize = 8;

/// Number of skills from which similarities are relative to the complete mean of the collection. The vectors of two skills
/// minus their own mean are opposite, whatever they mean, so the share of the mean increases from zero for two.
const FULL_CENTERING_FROM: f64 = 8.0;

/// Terminates the stems of each clause.
pub(crate) const NO_STEM: u32 = u32::MAX;

/// Segment number of an empty slot.
const NO_SEGMENT: u32 = u32::MAX;

/// The data of a document in addition to its postings.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The skill, without headings and body.
    pub document: Document,
    /// Whether headings and body have been read.
    pub is_body_read: bool,
    /// Whether headings and body contain any text.
    pub has_body: bool,
    /// Number of stems by field.
    pub lengths: [u16; field::COUNT],
    /// Number of pairs by field.
    pub pair_lengths: [u16; field::COUNT],
    /// Distinct word pieces of name, description and tags.
    pub pieces: Box<[u16]>,
    /// Distinct word pieces of the name.
    pub name_pieces: Box<[u16]>,
    /// Words of name and description: stem and position.
    pub places: [PackedPositions; 2],
    /// Word pieces of the description: token and position.
    pub piece_places: PackedPositions,
    /// Exclusion clauses of the description.
    pub exclusions: Box<[Exclusion]>,
    /// Stems of its clauses, each clause terminated by `NO_STEM`.
    pub clauses: Box<[u32]>,
    /// The language of the description, if it is not English.
    pub language: Option<Language>,
    /// Location of its postings: segment number and local number in the segment.
    pub home: (u32, u16),
}

impl Entry {
    /// Returns the clauses that start with a stem in the section of a posting.
    pub fn clauses_at(&self, posting: ClausePosting, first: u32) -> impl Iterator<Item = &[u32]> {
        let start = usize::from(posting.section) * ClausePosting::SECTION;
        let end = self.clauses.len().min(start + ClausePosting::SECTION);
        let starts_clause = move |at: usize| at == 0 || self.clauses[at - 1] == NO_STEM;
        (start..end)
            .filter(move |at| self.clauses[*at] == first && starts_clause(*at))
            .filter_map(|at| self.clauses[at..].split(|stem| *stem == NO_STEM).next())
    }
}

/// The data of a clause's posting: enough to skip almost all others without reading the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClausePosting {
    /// Section of its document's stems in which the clause starts.
    section: u16,
    /// Hash of the clause's second stem; 0 if it has only one stem.
    second: u16,
}

/// Whether stems of a request have a hash, by hash.
pub(crate) type StemMarks = [bool; 1 << ClausePosting::MARK_BITS];

impl ClausePosting {
    const MARK_BITS: u32 = 10;

    /// Number of stems in a section.
    const SECTION: usize = 16;

    /// Creates the posting data of a clause; returns `None` if its position does not fit.
    fn new(place: usize, clause: &[u32]) -> Option<Self> {
        let fits = |section: &u16| *section < 1 << (u16::BITS - Self::MARK_BITS);
        let section = u16::try_from(place / Self::SECTION).ok().filter(fits)?;
        Some(Self { section, second: clause.get(1).map_or(0, |stem| Self::mark(*stem)) })
    }

    /// Hashes a stem to a number from 1 to 1,023.
    fn mark(stem: u32) -> u16 {
        (stem % ((1 << Self::MARK_BITS) - 1) + 1) as u16
    }

    fn pack(self) -> Counts {
        Counts((self.section << Self::MARK_BITS) | self.second)
    }

    /// Unpacks the data from the counts of a posting.
    pub fn unpack(counts: Counts) -> Self {
        Self { section: counts.0 >> Self::MARK_BITS, second: counts.0 & ((1 << Self::MARK_BITS) - 1) }
    }

    /// Returns whether the clause has only one stem.
    pub fn is_single(self) -> bool {
        self.second == 0
    }

    /// Returns the set of the hashes of stems, for [`Self::may_be_of`].
    pub fn marks(stems: impl Iterator<Item = u32>) -> StemMarks {
        let mut marks = [false; 1 << Self::MARK_BITS];
        stems.for_each(|stem| marks[usize::from(Self::mark(stem))] = true);
        marks
    }

    /// Returns whether the second stem may be in the set.
    pub fn may_be_of(self, marks: &StemMarks) -> bool {
        marks[usize::from(self.second)]
    }
}

/// Facts for the rules, stored compactly because they are read for every candidate of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Its role in an answer.
    pub role: Role,
    /// Whether it can be a result, regardless of its domain: neither shadowed nor deprecated.
    pub offered: bool,
    /// Whether it is shadowed by another skill.
    pub shadowed: bool,
    /// Rank of its status in the literal order.
    pub status: u8,
    /// Whether it is read-only.
    pub read_only: bool,
}

impl Facts {
    /// Returns whether it can be a result of a request without filters.
    pub fn is_result(self) -> bool {
        self.offered && self.role != Role::Sidecar
    }

    fn of(document: &Document) -> Self {
        Self {
            role: document.role,
            offered: document.shadowed_by.is_none() && document.status != Status::Deprecated,
            shadowed: document.shadowed_by.is_some(),
            status: status_rank(&document.status),
            read_only: document.effect_mode == EffectMode::ReadOnly,
        }
    }
}

/// The index: documents, postings and averages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    pub vocabulary: Vocabulary,
    /// Written forms of the words.
    pub forms: Forms,
    /// Ids, names and tags in normalized form.
    pub labels: Labels,
    segments: Vec<(u32, Segment)>,
    next_segment: u32,
    /// The documents, shared by copies of the index.
    slots: Vec<Option<Arc<Entry>>>,
    /// Segment of each slot's document; `NO_SEGMENT` for an empty slot.
    homes: Vec<u32>,
    lengths: Vec<Lengths>,
    facts: Vec<Option<Facts>>,
    free: Vec<u32>,
    by_id: HashMap<SkillId, u32>,
    /// Fixed-point vectors: `DIM` values per slot, `UNIT` represents 1.
    vectors: Vec<i16>,
    sums: Sums,
    /// Set when data read from a file turns out to be damaged.
    pub damaged: Arc<AtomicBool>,
    /// Values derived from the sums, by slot; recomputed after every change.
    pub derived: Derived,
}

impl Index {
    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.sums.documents
    }

    /// Returns the number of documents that can be results: all but the shadowed ones.
    pub fn ranked(&self) -> usize {
        self.sums.documents - self.sums.shadowed
    }

    /// Returns whether a request in this language (`None` for English) is foreign to the skills.
    pub fn is_foreign(&self, language: Option<Language>) -> bool {
        self.sums.is_foreign(language)
    }

    /// Returns the most frequent language of descriptions; `None` for English.
    pub fn language(&self) -> Option<Language> {
        self.sums.language()
    }

    /// Returns whether all descriptions are in one language.
    pub fn is_in_one_language(&self) -> bool {
        self.sums.is_in_one_language()
    }

    /// Returns the number of documents that have a body with any text.
    pub fn bodies(&self) -> usize {
        self.sums.bodies
    }

    /// Returns the number of documents whose headings and body are not read yet.
    pub fn unread(&self) -> usize {
        self.sums.documents - self.sums.read
    }

    /// Returns the number of documents that can be results and whose headings and body are not read yet.
    pub fn ranked_unread(&self) -> usize {
        self.ranked() - self.sums.ranked_read
    }

    /// Returns the number of slots, including empty ones.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Returns the document in a slot.
    pub fn entry(&self, slot: usize) -> Option<&Entry> {
        self.slots.get(slot).and_then(Option::as_deref)
    }

    /// Returns whether an exclusion clause of any skill has a stem.
    pub fn excludes(&self, id: StemId) -> bool {
        let mut exclusions = self.entries().flat_map(|(_, entry)| &entry.exclusions);
        exclusions.any(|exclusion| exclusion.stems.contains(&id))
    }

    /// Iterates over all documents with their slots.
    pub fn entries(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.slots.iter().enumerate().filter_map(|(slot, e)| e.as_deref().map(|e| (slot, e)))
    }

    /// Returns the slot of a document.
    pub fn slot_of(&self, id: &SkillId) -> Option<usize> {
        self.by_id.get(id).map(|slot| *slot as usize)
    }

    /// Returns the vector of a document.
    pub fn vector(&self, slot: usize) -> &[i16] {
        &self.vectors[slot * DIM..(slot + 1) * DIM]
    }

    /// Returns all vectors, slot by slot.
    pub fn vectors(&self) -> &[i16] {
        &self.vectors
    }

    /// Returns the postings of a key; `None` if no document has it.
    pub fn find(&self, key: Key, view: View) -> Option<KeyPostings<'_>> {
        KeyPostings::new(self, key, view)
    }

    /// Returns the number of documents that have a key in the fields of `view`.
    pub fn frequency(&self, key: Key, view: View) -> usize {
        // Without dead documents, postings need not be read.
        if view == View::All && !self.segments.iter().any(|(_, segment)| segment.has_dead()) {
            return self.segments.iter().map(|(_, segment)| segment.tables().count(key.0)).sum();
        }
        self.find(key, view).map_or(0, |found| found.documents)
    }

    /// Returns the rarity of a word piece in names, descriptions and tags.
    pub fn piece_rarity(&self, token: u16) -> f64 {
        rarity(self.len(), self.sums.pieces.get(usize::from(token)).map_or(0, |n| *n as usize))
    }

    /// Returns the document of a skill, without headings and body.
    pub fn document(&self, id: &SkillId) -> Option<&Document> {
        let slot = self.slot_of(id)?;
        self.entry(slot).map(|entry| &entry.document)
    }

    /// Returns the documents that can be results, sorted by id.
    pub fn ranked_documents(&self) -> Vec<&Document> {
        let mut documents: Vec<&Document> = self
            .entries()
            .map(|(slot, entry)| (slot, &entry.document))
            .filter(|(slot, _)| self.facts()[*slot].is_some_and(Facts::is_result))
            .map(|(_, document)| document)
            .collect();
        documents.sort_by(|a, b| a.id.cmp(&b.id));
        documents
    }

    /// Returns the logarithm of the number of skills for each one with this stem in its short fields.
    pub fn rarity(&self, stem: &str) -> f64 {
        let documents = self.vocabulary.find(stem).map_or(0, |id| self.frequency(Key::stem(id), View::Short));
        (self.len() as f64 / documents.max(1) as f64).ln()
    }

    /// Returns the cosine of the vectors of two skills after subtracting the mean of the collection, or a share of it in
    /// a collection of few skills.
    pub fn similarity(&self, a: &SkillId, b: &SkillId) -> Option<f64> {
        let share = (self.sums.with_vector as f64 - 2.0) / (FULL_CENTERING_FROM - 2.0);
        let share = share.clamp(0.0, 1.0);
        let centered = |id: &SkillId| {
            let vector = self.vector(self.slot_of(id)?);
            let mean = &self.derived.mean;
            let mut out: [f64; DIM] = std::array::from_fn(|i| {
                f64::from(vector[i]) / UNIT - share * mean.get(i).copied().unwrap_or(0.0)
            });
            normalize(&mut out);
            Some(out)
        };
        Some(dot(&centered(a)?, &centered(b)?))
    }

    /// Returns a digest of all documents after `text`.
    pub fn content_digest(&self, mut text: String) -> String {
        let mut documents: Vec<&Document> = self.entries().map(|(_, entry)| &entry.document).collect();
        documents.sort_by(|a, b| a.id.cmp(&b.id));
        for document in documents {
            let _ = writeln!(
                text,
                "{:?}",
                (
                    (&document.id, &document.name, &document.full_description(), &document.tags),
                    (document.role, document.invocation, &document.status, document.effect_mode),
                    (
                        &document.domain,
                        document.shadowed_by.is_some(),
                        document.digest.map(|digest| digest.to_string())
                    ),
                )
            );
        }
        skills_skill::Digest::of(text.as_bytes()).to_string()
    }

    /// Returns the summed rarity of the word pieces of each name, by slot.
    pub fn name_totals(&self) -> &[f32] {
        self.derived.name_totals.get_or_init(|| {
            let mut rarities = vec![None; self.sums.pieces.len()];
            let mut rarity = |token: u16| match rarities.get_mut(usize::from(token)) {
                Some(known) => *known.get_or_insert_with(|| self.piece_rarity(token) as f32),
                None => self.piece_rarity(token) as f32,
            };
            let mut total = |pieces: &[u16]| pieces.iter().map(|token| rarity(*token)).sum();
            let slots = self.slots.iter();
            slots.map(|entry| entry.as_ref().map_or(0.0, |entry| total(&entry.name_pieces))).collect()
        })
    }

    /// Returns the segments with their numbers.
    pub fn segments(&self) -> &[(u32, Segment)] {
        &self.segments
    }

    /// Returns the facts for the rules, by slot; `None` for an empty slot.
    pub fn facts(&self) -> &[Option<Facts>] {
        &self.facts
    }

    /// Removes documents, and inserts or replaces others.
    pub fn change(&mut self, upserts: Vec<Analysis>, removed: &[SkillId], weights: &Weights) {
        for id in removed {
            self.remove(id);
        }
        let mut upserts = upserts.into_iter().peekable();
        while upserts.peek().is_some() {
            // Large changes are inserted in batches, which bounds the memory for sorting.
            let batch: Vec<Analysis> = upserts.by_ref().take(2_048).collect();
            self.insert(batch);
            self.merge_segments();
        }
        self.merge_segments();
        self.derive(weights);
    }

    /// Returns the whole index as one segment.
    pub fn as_one(&self) -> Cow<'_, Segment> {
        match (self.joined(), &self.segments[..]) {
            (Some(joined), _) => Cow::Owned(joined),
            (None, [(_, only)]) => Cow::Borrowed(only),
            (None, _) => Cow::Owned(Segment::merge(&[], |_, _| false)),
        }
    }

    /// Returns whether the part of the index in a file was found to be damaged.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Merges all segments into one without dead documents; returns `None` if that is already their state.
    pub fn joined(&self) -> Option<Segment> {
        let is_single = self.segments.len() < 2 && !self.segments.iter().any(|(_, s)| s.has_dead());
        if is_single {
            return None;
        }
        let (numbers, parts): (Vec<u32>, Vec<&Segment>) = self.segments.iter().map(|(n, s)| (*n, s)).unzip();
        Some(Segment::merge(&parts, |slot, which| self.homes[slot as usize] == numbers[which]))
    }

    /// Replaces all segments by the result of [`Index::joined`]; the index must not have changed since.
    pub fn replace(&mut self, joined: Segment) {
        let parts: Vec<Segment> = std::mem::take(&mut self.segments).into_iter().map(|(_, s)| s).collect();
        self.settle_in(&parts, joined);
    }

    /// Creates an index from one segment whose documents are the entries in order.
    pub fn from_one(
        segment: Segment,
        entries: Vec<Entry>,
        vocabulary: Vocabulary,
        forms: Forms,
        vectors: Vec<i16>,
    ) -> Self {
        let mut out = Self { vocabulary, forms, vectors, next_segment: 1, ..Self::default() };
        for (slot, entry) in entries.into_iter().enumerate() {
            let vector = std::array::from_fn(|i| out.vectors[slot * DIM + i]);
            out.sums.apply(&entry, &vector, true);
            out.labels.insert(&entry.document, slot as u32);
            out.by_id.insert(entry.document.id.clone(), slot as u32);
            out.homes.push(entry.home.0);
            out.facts.push(Some(Facts::of(&entry.document)));
            out.lengths.push((entry.lengths, entry.pair_lengths));
            out.slots.push(Some(Arc::new(entry)));
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
        self.homes[slot as usize] = NO_SEGMENT;
        self.facts[slot as usize] = None;
        self.lengths[slot as usize] = Lengths::default();
        if let Some((_, segment)) = self.segments.iter_mut().find(|(n, _)| *n == entry.home.0) {
            segment.bury(entry.home.1);
        }
    }

    fn insert(&mut self, batch: Vec<Analysis>) {
        let number = self.next_segment;
        self.next_segment += 1;
        let mut entries =
            Vec::with_capacity(batch.iter().map(|a| a.counts.len() + a.pairs.len() + a.pieces.len()).sum());
        let mut slots = Vec::with_capacity(batch.len());
        let mut replaced = Vec::new();
        for analysis in batch {
            // If an id occurs twice in one batch, the later one wins.
            let before = self.slot_of(&analysis.document.id).and_then(|slot| self.entry(slot));
            replaced.extend(before.filter(|e| e.home.0 == number).map(|e| e.home.1));
            self.remove(&analysis.document.id);
            let local = slots.len() as u16;
            let slot = self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.homes.push(NO_SEGMENT);
                self.facts.push(None);
                self.lengths.push(Lengths::default());
                self.vectors.resize(self.vectors.len() + DIM, 0);
                (self.slots.len() - 1) as u32
            });
            slots.push(slot);
            let ids: Vec<u32> = analysis.stems.iter().map(|(s, w)| self.vocabulary.intern(s, w)).collect();
            for (form, stem, is_part) in &analysis.forms {
                self.forms.insert(form, ids[*stem as usize], *is_part);
            }
            let posting = |counts| Posting { local, counts };
            // A stem that occurs only in an exclusion, in lower case, has no counts in any field.
            let stems = ids.iter().zip(&analysis.counts).filter(|(_, counts)| !counts.is_empty());
            entries.extend(stems.map(|(id, counts)| (Key::stem(*id), posting(*counts))));
            entries.extend(
                analysis
                    .pairs
                    .iter()
                    .map(|(a, b, c)| (Key::pair(ids[*a as usize], ids[*b as usize]), posting(*c))),
            );
            entries.extend(analysis.pieces.iter().map(|(token, in_name)| {
                (
                    Key::word_piece(*token),
                    posting(Counts::pack(if *in_name { [1, 1, 0, 0, 0] } else { [0, 1, 0, 0, 0] })),
                )
            }));
            entries.extend(
                analysis.verbs.iter().map(|verb| (Key::verb(ids[*verb as usize]), posting(Counts(1)))),
            );
            let mut clauses: Vec<u32> = Vec::new();
            for clause in &analysis.clauses {
                let stems: Vec<u32> = clause.iter().map(|stem| ids[*stem as usize]).collect();
                let found = stems.first().zip(ClausePosting::new(clauses.len(), &stems));
                let Some((first, found)) = found else { continue };
                entries.push((Key::clause(*first), posting(found.pack())));
                clauses.extend(stems);
                clauses.push(NO_STEM);
            }
            let entry = Entry {
                clauses: clauses.into_boxed_slice(),
                language: analysis.language,
                is_body_read: analysis.is_body_read,
                has_body: analysis.has_body,
                lengths: analysis.lengths,
                pair_lengths: analysis.pair_lengths,
                pieces: analysis.pieces.iter().map(|(token, _)| *token).collect(),
                name_pieces: analysis.name_pieces.into_boxed_slice(),
                places: analysis.places.map(|places| {
                    let numbered =
                        places.into_iter().map(|p| WordPosition { what: ids[p.what as usize], ..p });
                    PackedPositions::pack(numbered)
                }),
                piece_places: PackedPositions::pack(analysis.piece_places),
                exclusions: analysis
                    .exclusions
                    .into_iter()
                    .map(|e| Exclusion { stems: e.stems.iter().map(|s| ids[*s as usize]).collect(), ..e })
                    .collect(),
                home: (number, local),
                document: analysis.document,
            };
            self.sums.apply(&entry, &analysis.vector, true);
            let at = slot as usize * DIM;
            self.vectors[at..at + DIM].copy_from_slice(&analysis.vector[..]);
            self.labels.insert(&entry.document, slot);
            self.by_id.insert(entry.document.id.clone(), slot);
            self.homes[slot as usize] = number;
            self.facts[slot as usize] = Some(Facts::of(&entry.document));
            self.lengths[slot as usize] = (entry.lengths, entry.pair_lengths);
            self.slots[slot as usize] = Some(Arc::new(entry));
        }
        let mut segment = Segment::build(entries, slots);
        for local in replaced {
            segment.bury(local);
        }
        self.segments.push((number, segment));
    }

    /// Merges segments of similar size once there are [`FAN`] of them, and drops dead documents.
    fn merge_segments(&mut self) {
        loop {
            let tier = |s: &Segment| s.alive().max(1).ilog(FAN);
            let crowded = (0..8).find(|t| self.segments.iter().filter(|(_, s)| tier(s) == *t).count() >= FAN);
            let rotten = self.segments.iter().find(|(_, s)| s.alive() * 2 < s.slots.len()).map(|(n, _)| *n);
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
        let (numbers, parts): (Vec<u32>, Vec<Segment>) = parts.into_iter().unzip();
        let merged = Segment::merge(&parts.iter().collect::<Vec<_>>(), |slot, which| {
            self.homes[slot as usize] == numbers[which]
        });
        self.settle_in(&parts, merged);
    }

    /// Replaces segments by the segment that they were merged into.
    fn settle_in(&mut self, parts: &[Segment], merged: Segment) {
        let number = self.next_segment;
        self.next_segment += 1;
        for slot in parts.iter().flat_map(|p| &p.slots) {
            // A slot that no segment refers to anymore is free.
            if self.slots[*slot as usize].is_none() {
                self.free.push(*slot);
            }
        }
        for (local, slot) in merged.slots.iter().enumerate() {
            if let Some(entry) = &mut self.slots[*slot as usize] {
                let entry = Arc::make_mut(entry);
                entry.home = (number, local as u16);
                self.homes[*slot as usize] = number;
            }
        }
        if !merged.slots.is_empty() {
            self.segments.push((number, merged));
        }
    }

    /// Recomputes norms and mean after a change of the sums.
    pub fn derive(&mut self, weights: &Weights) {
        self.forms.prepare_search();
        self.derived = Derived::new(&self.sums, &self.lengths, &self.vectors, weights);
    }
}
