//! The dear half of indexing: one skill's texts become counted stems, pairs, word pieces and a vector.
//! Pure, and the same on every thread; putting the result into the index is the cheap half.

use super::document::{Document, name_words};
use super::embedding::{DIM, Embedding};
use super::fast_hash::FastMap;
use super::field::{self, Counts};
use super::marks::{Exclusion, exclusions};
use super::weights::{Limits, Weights};
use super::words::Words;

/// One vector value in the index: 32,767 stands for 1.
pub(crate) const UNIT: f64 = 32_767.0;

/// A skill, counted.
#[derive(Debug, Clone)]
pub(crate) struct Analysis {
    /// The skill without its headings and body.
    pub document: Document,
    /// Whether headings and body were there.
    pub read: bool,
    /// Whether there was any text in them.
    pub has_body: bool,
    /// Distinct stems and how each is written first.
    pub stems: Vec<(String, String)>,
    /// Counts by stem (index into `stems`).
    pub counts: Vec<Counts>,
    /// Counts by pair of neighbouring content stems.
    pub pairs: Vec<(u32, u32, Counts)>,
    /// Stems by field.
    pub lengths: [u16; field::COUNT],
    /// Pairs by field.
    pub pair_lengths: [u16; field::COUNT],
    /// Distinct word pieces, and whether the name has them.
    pub pieces: Vec<(u16, bool)>,
    /// Distinct word pieces of the name.
    pub name_pieces: Vec<u16>,
    /// Normalised vector of name and description.
    pub vector: Box<[i16; DIM]>,
    /// Words of name and description: index into `stems` and place.
    pub places: [Vec<Place>; 2],
    /// Word pieces of the description: token and place.
    pub piece_places: Vec<Place>,
    /// What the description says the skill is not for; stems as indices into `stems`.
    pub exclusions: Vec<Exclusion>,
}

/// Where something stands in a short text; beyond 64 KiB nothing is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Place {
    /// A stem, or a word piece.
    pub what: u32,
    /// First byte.
    pub start: u16,
    /// Byte after the last.
    pub end: u16,
}

impl Place {
    fn new(what: u32, start: u32, end: u32) -> Option<Self> {
        Some(Self { what, start: u16::try_from(start).ok()?, end: u16::try_from(end).ok()? })
    }
}

/// Counts one skill.
pub(crate) fn analyse(
    mut document: Document,
    words: &Words,
    model: Option<&Embedding>,
    weights: &Weights,
) -> Analysis {
    let limits = &weights.limits;
    let text = document.text.take();
    let name = name_words(&document.name);
    let mut counting = Counting::default();
    counting.text(0, &name, words);
    counting.text(1, &document.description, words);
    counting.exclusions = exclusions(&document.description, &weights.exclusion_cues, words, |w| {
        counting.number(w.stem, w.text)
    });
    for tag in &document.tags {
        counting.text(2, tag, words);
    }
    if let Some(text) = &text {
        for heading in text.headings.iter().take(limits.headings) {
            counting.text(3, heading, words);
        }
        let end = text.body.char_indices().nth(limits.body_chars).map_or(text.body.len(), |(at, _)| at);
        counting.text(4, &text.body[..end], words);
    }
    let (pieces, name_pieces) = model.map(|m| pieces(m, &document, &name, limits)).unwrap_or_default();
    let piece_places = model.map(|m| m.pieces(&document.description, usize::MAX)).unwrap_or_default();
    let piece_places =
        piece_places.iter().filter_map(|p| Place::new(p.token.into(), p.start, p.end)).collect();
    let vector = model
        .map_or([0.0; DIM], |m| m.encode(&format!("{name}. {}", document.description), limits.query_pieces));
    Analysis {
        read: text.is_some(),
        has_body: text.is_some_and(|t| !t.body.trim().is_empty() || !t.headings.is_empty()),
        pieces,
        name_pieces,
        piece_places,
        vector: Box::new(vector.map(|v| (v * UNIT).round() as i16)),
        ..counting.finish(document)
    }
}

fn pieces(
    model: &Embedding,
    document: &Document,
    name: &str,
    limits: &Limits,
) -> (Vec<(u16, bool)>, Vec<u16>) {
    let mut name_pieces: Vec<u16> = model.pieces(name, limits.query_pieces).iter().map(|p| p.token).collect();
    name_pieces.sort_unstable();
    name_pieces.dedup();
    let whole = format!("{name}. {} {}", document.description, document.tags.join(" "));
    let mut all: Vec<u16> = model.pieces(&whole, limits.document_pieces).iter().map(|p| p.token).collect();
    all.sort_unstable();
    all.dedup();
    let all = all.into_iter().map(|t| (t, name_pieces.binary_search(&t).is_ok())).collect();
    (all, name_pieces)
}

#[derive(Default)]
struct Counting {
    numbers: FastMap<String, u32>,
    stems: Vec<(String, String)>,
    counts: Vec<[u16; field::COUNT]>,
    pairs: FastMap<(u32, u32), [u16; field::COUNT]>,
    lengths: [u16; field::COUNT],
    pair_lengths: [u16; field::COUNT],
    places: [Vec<Place>; 2],
    exclusions: Vec<Exclusion>,
}

impl Counting {
    /// Counts a stretch of text in which neighbours are neighbours.
    fn text(&mut self, field: usize, text: &str, words: &Words) {
        let mut before: Option<u32> = None;
        words.each(text, |word| {
            let number = self.number(word.stem, word.text);
            if let Some(places) = self.places.get_mut(field) {
                places.extend(Place::new(number, word.start, word.end));
            }
            let count = &mut self.counts[number as usize][field];
            *count = count.saturating_add(1);
            self.lengths[field] = self.lengths[field].saturating_add(1);
            if word.stop {
                return;
            }
            if let Some(first) = before {
                let count = &mut self.pairs.entry((first, number)).or_default()[field];
                *count = count.saturating_add(1);
                self.pair_lengths[field] = self.pair_lengths[field].saturating_add(1);
            }
            before = Some(number);
        });
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
            read: false,
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
        }
    }
}
