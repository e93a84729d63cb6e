//! The routing chain: matchers that each give candidates an addend of the score and can explain it.
//! A new link is one file here and one line in [`chain`].

mod exact;
mod lexical;
mod presence;
mod semantic;
mod task;
mod typo;

use super::answer::{PartKind, Signal};
use super::embedding::{Embedding, EmbeddingError};
use super::index::Index;
use super::lookup::View;
use super::reading::Reading;
use super::weights::{Profile, Weights};
use super::words::Words;

/// The links in order, cheapest first.
pub(crate) fn chain() -> Vec<Box<dyn Link>> {
    vec![
        Box::new(exact::Exact),
        Box::new(typo::TypoLink),
        Box::new(lexical::Lexical),
        Box::new(presence::Presence),
        Box::new(task::Task),
        Box::new(semantic::Semantic),
    ]
}

/// Names of the links, in order.
#[must_use]
pub fn link_names() -> Vec<&'static str> {
    chain().iter().map(|link| link.name()).collect()
}

/// Why a link has no part in an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// Its model cannot be used.
    #[error(transparent)]
    Model(#[from] EmbeddingError),
    /// It took too long.
    #[error("it took longer than {0} ms")]
    Budget(u64),
}

/// What a link may look at.
pub(crate) struct Context<'a> {
    pub index: &'a Index,
    pub weights: &'a Weights,
    pub profile: &'a Profile,
    pub words: &'a Words,
    pub model: Result<&'a Embedding, EmbeddingError>,
    /// Which fields count.
    pub view: View,
    /// Whether the last word may be unfinished.
    pub typing: bool,
}

impl Context<'_> {
    /// Whether so many skills have a stop word that it tells nothing and costs most.
    fn common(&self, documents: usize) -> bool {
        let (cut, n) = (&self.weights.common_stop_words, self.index.len());
        n >= cut.from_skills && documents as f64 > cut.share * n as f64
    }
}

/// One matcher of the chain.
pub(crate) trait Link: Send + Sync {
    /// Its name in reports and in the configuration.
    fn name(&self) -> &'static str;

    /// Changes how the request is read; answers how many words it changed.
    fn read(&self, _reading: &mut Reading, _cx: &Context<'_>) -> Result<usize, Failure> {
        Ok(0)
    }

    /// Gets ready to score; `None` when it has nothing to say to this request.
    fn prepare<'a>(
        &self,
        _reading: &'a Reading,
        _cx: &'a Context<'a>,
    ) -> Result<Option<Box<dyn Scorer + 'a>>, Failure> {
        Ok(None)
    }
}

/// A link at work on one request.
pub(crate) trait Scorer {
    /// Its addend for every slot of the index.
    fn score(&self) -> Result<Column, Failure>;

    /// The addends that make up its value in one slot.
    fn explain(&self, slot: usize, out: &mut Vec<Addend>);
}

/// What a slot has been matched by.
pub(crate) mod matched {
    /// A content stem, or a name.
    pub const CONTENT: u8 = 1;
    /// A content stem in name, description or tags.
    pub const SHORT: u8 = 2;
    /// An id, a name or a tag by rule.
    pub const EXACT: u8 = 4;
    /// A centred cosine above the floor.
    pub const MEANING: u8 = 8;
    /// A stop word.
    pub const STOP: u8 = 16;
}

/// A link's addend by slot, and what it matched there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub values: Vec<f32>,
    /// What stop words gave of it, apart from `values`; empty when there is nothing.
    pub stop_words: Vec<f32>,
    pub matched: Vec<u8>,
}

impl Column {
    /// Nothing anywhere.
    pub fn new(slots: usize) -> Self {
        Self { values: vec![0.0; slots], stop_words: Vec::new(), matched: vec![0; slots] }
    }

    /// Where what a word gives is counted, and what it matches.
    pub fn of_word(&mut self, content: bool) -> (&mut [f32], &mut [u8]) {
        if content {
            return (&mut self.values, &mut self.matched);
        }
        self.stop_words.resize(self.values.len(), 0.0);
        (&mut self.stop_words, &mut self.matched)
    }
}

/// The row of the ledger that an addend is gathered under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Row {
    /// A word of the request.
    Word(usize),
    /// Two neighbouring words of the request.
    Pair(usize, usize),
    /// The constant of the centred cosine.
    General,
    /// Exact matches.
    Exact,
    /// Role, status, read-only intent.
    Rules,
    /// Preferences of the person's policy.
    Policy,
}

/// One addend of a score, before it is put under words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Addend {
    pub row: Row,
    pub signal: Signal,
    pub kind: PartKind,
    pub field: Option<&'static str>,
    pub label: String,
    pub value: f64,
}

/// The column of a field.
pub(crate) fn signal_of(field: usize) -> Signal {
    match field {
        0 => Signal::Name,
        1 | 2 => Signal::Description,
        _ => Signal::Body,
    }
}

/// `ln(1 + (n − df + 0.5) / (df + 0.5))`, the weight of something rare.
pub(crate) fn rarity(n: usize, df: usize) -> f64 {
    let (n, df) = (n as f64, df as f64);
    ((n - df + 0.5) / (df + 0.5)).ln_1p()
}
