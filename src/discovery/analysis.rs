//! The expensive half of indexing: turns the texts of one skill into counted stems, pairs, word pieces and a vector.
//! Pure and deterministic, so it runs on any thread; inserting the result into the index is the cheap half.

use super::document::{Document, name_words};
use super::embedding::{DIM, Embedding};
use super::fast_hash::FastMap;
use super::field::{self, Counts};
use super::language::{self, Language};
use super::marks::{Exclusion, exclusions};
use super::phrases::Lexicon;
use super::task::{Phrasing, exclusion_clauses, phrasing, without};
use super::tokenize::{Word, Words, is_split_by_markup, whole_word};
use super::weights::{Limits, Weights};
use skills_skill::{prefix, slice};

/// Fixed-point scale of vector values in the index: 32,767 represents 1.
pub(crate) const UNIT: f64 = 32_767.0;

/// The counted texts of a skill.
#[derive(Debug, Clone)]
pub(crate) struct Analysis {
    /// The skill without its headings and body.
    pub document: Document,
    /// Whether headings and body were available.
    pub is_body_read: bool,
    /// Whether headings and body contain any text.
    pub has_body: bool,
    /// Distinct stems, each with its first written form.
    pub stems: Vec<(String, String)>,
    /// Counts by stem (index into `stems`).
    pub counts: Vec<Counts>,
    /// Counts by pair of adjacent content stems.
    pub pairs: Vec<(u32, u32, Counts)>,
    /// Number of stems by field.
    pub lengths: [u16; field::COUNT],
    /// Number of pairs by field.
    pub pair_lengths: [u16; field::COUNT],
    /// Distinct word pieces, and whether the name contains them.
    pub pieces: Vec<(u16, bool)>,
    /// Distinct word pieces of the name.
    pub name_pieces: Vec<u16>,
    /// Normalized vector of name and description.
    pub vector: Box<[i16; DIM]>,
    /// Words of name and description: index into `stems` and position.
    pub places: [Vec<WordPosition>; 2],
    /// Word pieces of the description: token and position.
    pub piece_places: Vec<WordPosition>,
    /// Exclusion clauses of the description; stems as indices into `stems`.
    pub exclusions: Vec<Exclusion>,
    /// Written forms with their stems (index into `stems`), and whether any of them is a part of a longer word.
    pub forms: Vec<(String, u32, bool)>,
    /// Stems of the skill's verbs (indices into `stems`).
    pub verbs: Vec<u32>,
    /// Stems of each clause of the description (indices into `stems`), longest first.
    pub clauses: Vec<Vec<u32>>,
    /// The language of the description, if it is not English.
    pub language: Option<Language>,
}

/// A position in a short text; positions beyond 64 KiB are not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordPosition {
    /// Number of a stem, or a word piece token.
    pub what: u32,
    /// First byte.
    pub start: u16,
    /// Byte after the last.
    pub end: u16,
}

impl WordPosition {
    fn new(what: u32, start: u32, end: u32) -> Option<Self> {
        Some(Self { what, start: u16::try_from(start).ok()?, end: u16::try_from(end).ok()? })
    }
}

/// Places of a text, packed: they are read only for results, and would take a quarter of the memory of the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PackedPositions(Box<[u8]>);

impl PackedPositions {
    /// Packs places, each relative to the one before.
    pub fn pack(places: impl IntoIterator<Item = WordPosition>) -> Self {
        let (mut bytes, mut last) = (Vec::new(), 0);
        for place in places {
            let number = (
                place.what,
                place.start.wrapping_sub(last).cast_signed(),
                place.end.wrapping_sub(place.start),
            );
            // Writing numbers to memory does not fail.
            bytes = postcard::to_extend(&number, bytes).unwrap_or_default();
            last = place.start;
        }
        Self(bytes.into())
    }

    /// Returns packed places as they were stored.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the places.
    pub fn unpack(&self) -> Vec<WordPosition> {
        let (mut rest, mut last, mut places) = (&*self.0, 0_u16, Vec::new());
        while let Ok(((what, step, length), more)) = postcard::take_from_bytes::<(u32, i16, u16)>(rest) {
            let start = last.wrapping_add_signed(step);
            places.push(WordPosition { what, start, end: start.wrapping_add(length) });
            (rest, last) = (more, start);
        }
        places
    }
}

/// Analyzes one skill.
pub(crate) fn analyze(
    mut document: Document,
    words: &Words,
    lexicon: &Lexicon,
    model: Option<&Embedding>,
    weights: &Weights,
) -> Analysis {
    let limits = &weights.limits;
    let text = document.text.take();
    let stated = document.full_description().into_owned();
    let stated = prefix(&stated, MAX_FIELD_BYTES);
    let name = name_words(prefix(&document.name, MAX_FIELD_BYTES));
    // Excluded text must not contribute to the score.
    let excluded = exclusion_clauses(stated, lexicon);
    let ranges: Vec<_> = excluded.iter().map(|one| one.clause.clone()).collect();
    let description = without(stated, &ranges);
    let mut counting = StemCounter::default();
    counting.text(0, &name, words);
    counting.text(1, &description, words);
    let phrasing = phrasing(&name, &description, words, lexicon);
    counting.phrasing(phrasing);
    counting.exclusions = exclusions(stated, &excluded, words, |w| counting.number(w.stem, w.text));
    for tag in &document.tags {
        counting.text(2, prefix(tag, MAX_FIELD_BYTES), words);
    }
    if let Some(text) = &text {
        for heading in text.headings.iter().take(limits.headings) {
            counting.text(3, prefix(heading, MAX_FIELD_BYTES), words);
        }
        let end = text.body.char_indices().nth(limits.body_chars).map_or(text.body.len(), |(at, _)| at);
        counting.text(4, slice(&text.body, ..end), words);
    }
    let (pieces, name_pieces) =
        model.map(|m| pieces(m, &document, (&name, &description), limits)).unwrap_or_default();
    let piece_places = model.map(|m| m.pieces(&description, usize::MAX)).unwrap_or_default();
    let piece_places =
        piece_places.iter().filter_map(|p| WordPosition::new(p.token.into(), p.start, p.end)).collect();
    let vector =
        model.map_or([0.0; DIM], |m| m.encode(&format!("{name}. {description}"), limits.query_pieces));
    Analysis {
        is_body_read: text.is_some(),
        has_body: text.is_some_and(|t| !t.body.trim().is_empty() || !t.headings.is_empty()),
        pieces,
        name_pieces,
        piece_places,
        vector: Box::new(vector.map(|v| (v * UNIT).round() as i16)),
        language: language::of_description(stated, words, lexicon),
        ..counting.finish(document)
    }
}

fn pieces(
    model: &Embedding,
    document: &Document,
    (name, description): (&str, &str),
    limits: &Limits,
) -> (Vec<(u16, bool)>, Vec<u16>) {
    let mut name_pieces: Vec<u16> = model.pieces(name, limits.query_pieces).iter().map(|p| p.token).collect();
    name_pieces.sort_unstable();
    name_pieces.dedup();
    let combined = format!("{name}. {description} {}", document.tags.join(" "));
    let mut all: Vec<u16> = model.pieces(&combined, limits.document_pieces).iter().map(|p| p.token).collect();
    all.sort_unstable();
    all.dedup();
    let all = all.into_iter().map(|t| (t, name_pieces.binary_search(&t).is_ok())).collect();
    (all, name_pieces)
}

/// Maximum indexed bytes of a name, a description, a tag or a heading; the longest public description has 3,000.
const MAX_FIELD_BYTES: usize = 16 * 1024;

#[derive(Default)]
struct StemCounter {
    numbers: FastMap<String, u32>,
    forms: FastMap<String, (u32, bool)>,
    verbs: Vec<u32>,
    clauses: Vec<Vec<u32>>,
    stems: Vec<(String, String)>,
    counts: Vec<[u16; field::COUNT]>,
    pairs: FastMap<(u32, u32), [u16; field::COUNT]>,
    lengths: [u16; field::COUNT],
    pair_lengths: [u16; field::COUNT],
    places: [Vec<WordPosition>; 2],
    exclusions: Vec<Exclusion>,
}

impl StemCounter {
    /// Counts the words of a text and the pairs of adjacent ones. The parts of an identifier are words, but no pair:
    /// a skill about `pull_request_target` is not about pull requests.
    fn text(&mut self, field: usize, text: &str, words: &Words) {
        let mut before: Option<u32> = None;
        let mut last_end = 0;
        words.each_and_joined(text, |word, is_joined| {
            let (start, end, stop) = (word.start, word.end, word.is_stop_word);
            let number = self.record_stem(word, text);
            if let Some(places) = self.places.get_mut(field) {
                places.extend(WordPosition::new(number, start, end));
            }
            let count = &mut self.counts[number as usize][field];
            *count = count.saturating_add(1);
            if is_joined {
                return;
            }
            self.lengths[field] = self.lengths[field].saturating_add(1);
            let is_identifier = text.get(last_end..start as usize) == Some("_");
            last_end = end as usize;
            if stop {
                return;
            }
            if let Some(first) = before.filter(|_| !is_identifier) {
                let count = &mut self.pairs.entry((first, number)).or_default()[field];
                *count = count.saturating_add(1);
                self.pair_lengths[field] = self.pair_lengths[field].saturating_add(1);
            }
            before = Some(number);
        });
    }

    /// Returns the number of a word's stem and records its written form.
    fn record_stem(&mut self, word: Word, text: &str) -> u32 {
        let range = word.start as usize..word.end as usize;
        let written = slice(text, range.clone());
        // `pdf` is a part of `PDFs`, unlike `user` of `user's`.
        let is_plural =
            range.len() > word.text.len() && written.ends_with('s') && !written.contains(['\'', '’']);
        let is_part = is_plural || whole_word(text, range.clone()).len() > range.len();
        // `c++` and `can't` have a normalized form that the text does not contain.
        let form = if written.eq_ignore_ascii_case(&word.text) {
            word.text
        } else {
            let lowercase = written.to_lowercase();
            if lowercase.starts_with(&word.text) { word.text } else { lowercase }
        };
        if let Some((number, part)) = self.forms.get_mut(&form) {
            *part |= is_part;
            return *number;
        }
        let number = self.number(word.stem, form.clone());
        if !is_split_by_markup(text, range) {
            self.forms.insert(form, (number, is_part));
        }
        number
    }

    /// Records the verbs and clauses of the skill.
    fn phrasing(&mut self, phrasing: Phrasing) {
        self.verbs = phrasing.verbs.into_iter().map(|stem| self.number(stem.clone(), stem)).collect();
        for mut clause in phrasing.clauses {
            // Longest first: a long stem is likely to be rare, so few requests look it up.
            clause.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            let numbers = clause.into_iter().map(|stem| self.number(stem.clone(), stem)).collect();
            self.clauses.push(numbers);
        }
    }

    fn number(&mut self, stem: String, written: String) -> u32 {
        if let Some(number) = self.numbers.get(&stem) {
            return *number;
        }
        let number = self.stems.len() as u32;
        self.stems.push((stem.clone(), written));
        self.counts.push([0; field::COUNT]);
        self.numbers.insert(stem, number);
        number
    }

    fn finish(self, document: Document) -> Analysis {
        Analysis {
            document,
            is_body_read: false,
            has_body: false,
            stems: self.stems,
            counts: self.counts.into_iter().map(Counts::pack).collect(),
            pairs: self.pairs.into_iter().map(|((a, b), c)| (a, b, Counts::pack(c))).collect(),
            lengths: self.lengths,
            pair_lengths: self.pair_lengths,
            pieces: Vec::new(),
            name_pieces: Vec::new(),
            vector: Box::new([0; DIM]),
            places: self.places,
            piece_places: Vec::new(),
            exclusions: self.exclusions,
            forms: self.forms.into_iter().map(|(form, (stem, is_part))| (form, stem, is_part)).collect(),
            verbs: self.verbs,
            clauses: self.clauses,
            language: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn packed_positions_round_trip(places: Vec<(u32, u16, u16)>) {
            let places: Vec<WordPosition> =
                places.into_iter().map(|(what, start, end)| WordPosition { what, start, end }).collect();
            let packed = PackedPositions::pack(places.iter().copied());
            proptest::prop_assert_eq!(packed.unpack(), places);
        }
    }
}
