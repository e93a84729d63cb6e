//! The matcher chain: each matcher adds a term to the score of a candidate and can explain it.
//! A new matcher is a file here, a line in [`chain`], and about twelve other places: CONTRIBUTING.md lists them under
//! "add a matcher". A matcher sees the index only; other data is added as a term of `Adjustments`.

mod exact;
mod lexical;
mod presence;
mod semantic;
mod task;
mod typo;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::answer::{ScoreComponent, TermKind};
use super::embedding::{Embedding, EmbeddingError};
use super::fast_hash::FastMap;
use super::index::Index;
use super::lookup::{KeyPostings, View};
use super::reading::Reading;
use super::segment::Key;
use super::tokenize::{Words, fold_accents};
use super::vocabulary::StemId;
use super::weights::{Profile, Weights};

/// Returns the matchers in order, cheapest first.
pub(crate) fn chain() -> Vec<Box<dyn Matcher>> {
    vec![
        Box::new(exact::Exact),
        Box::new(typo::TypoMatcher),
        Box::new(lexical::Lexical),
        Box::new(presence::Presence),
        Box::new(task::Task),
        Box::new(semantic::Semantic),
    ]
}

/// Returns the names of the matchers, in order.
#[must_use]
pub fn matcher_names() -> Vec<&'static str> {
    chain().iter().map(|matcher| matcher.name()).collect()
}

/// Why a matcher did not contribute to an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// Its model is unusable.
    #[error(transparent)]
    Model(#[from] EmbeddingError),
    /// It exceeded its time limit.
    #[error("it took longer than {0} ms")]
    Budget(u64),
}

/// The data available to a matcher.
pub(crate) struct Context<'a> {
    pub index: &'a Index,
    pub weights: &'a Weights,
    pub profile: &'a Profile,
    pub words: &'a Words,
    pub model: Result<&'a Embedding, EmbeddingError>,
    /// The fields that are ranked.
    pub view: View,
    /// Whether the last word may be unfinished.
    pub typing: bool,
    /// Stems of the request that were looked up, cached because several matchers need the same ones.
    pub stems: RefCell<FastMap<StemId, Option<Rc<KeyPostings<'a>>>>>,
    /// Words of the request that no skill states, and whether an exclusion clause has them: a search of all clauses.
    pub excluded: RefCell<FastMap<StemId, bool>>,
}

impl<'a> Context<'a> {
    /// Returns the skills that have a stem; `None` if there are none.
    pub fn stem(&self, id: StemId) -> Option<Rc<KeyPostings<'a>>> {
        let find = || self.index.find(Key::stem(id), self.view).map(Rc::new);
        self.stems.borrow_mut().entry(id).or_insert_with(find).clone()
    }

    /// Returns the number of skills that have a stem of the request.
    pub fn documents(&self, stem: &str) -> usize {
        let found = self.index.vocabulary.find(stem).and_then(|id| self.stem(id));
        found.map_or(0, |found| found.documents)
    }

    /// Returns whether the embedding has a lower-case word, except for its accents.
    pub fn in_embedding(&self, word: &str) -> bool {
        self.model.as_ref().is_ok_and(|model| model.find(&fold_accents(word)).is_some())
    }

    /// Returns whether a skill or the embedding has a lower-case word.
    pub fn knows(&self, word: &str, stem: &str) -> bool {
        self.documents(stem) > 0 || self.in_embedding(word)
    }

    /// Returns whether an exclusion clause of any skill has a stem.
    pub fn excludes(&self, stem: &str) -> bool {
        let Some(id) = self.index.vocabulary.find(stem) else { return false };
        *self.excluded.borrow_mut().entry(id).or_insert_with(|| self.index.excludes(id))
    }

    /// Returns whether a stop word occurs in too many skills to be informative.
    fn is_too_common(&self, documents: usize) -> bool {
        let (cut, n) = (&self.weights.common_stop_words, self.index.len());
        n >= cut.from_skills && documents as f64 > cut.share * n as f64
    }
}

/// One matcher of the chain.
pub(crate) trait Matcher: Send + Sync {
    /// Its name in reports and in the configuration.
    fn name(&self) -> &'static str;

    /// Returns whether [`Matcher::read`] changes anything.
    fn rewrites_request(&self) -> bool {
        false
    }

    /// Changes the reading of the request; returns the number of changed words.
    fn read(&self, _reading: &mut Reading, _cx: &Context<'_>) -> Result<usize, Failure> {
        Ok(0)
    }

    /// Prepares scoring; returns `None` if the matcher does not apply to the request.
    fn prepare<'a>(
        &self,
        _reading: &'a Reading,
        _cx: &'a Context<'a>,
    ) -> Result<Option<Box<dyn Scorer + 'a>>, Failure> {
        Ok(None)
    }
}

/// A matcher applied to one request.
pub(crate) trait Scorer {
    /// Writes its score term for every slot of the index into an empty column.
    fn score(&self, column: &mut Column) -> Result<(), Failure>;

    /// Appends the terms that make up its value in one slot.
    fn explain(&self, slot: usize, out: &mut Vec<ScoreTerm>);
}

/// Flags of what a slot was matched by.
pub(crate) mod matched {
    /// A content stem, or a name.
    pub const CONTENT: u8 = 1;
    /// A content stem in name, description or tags.
    pub const SHORT: u8 = 2;
    /// An id, a name or a tag by rule.
    pub const EXACT: u8 = 4;
    /// A centered cosine above the floor.
    pub const MEANING: u8 = 8;
    /// A stop word.
    pub const STOP: u8 = 16;
}

/// Score terms by slot, with the flags of what was matched there.
#[derive(Debug, Default)]
pub(crate) struct Column {
    pub values: Vec<f32>,
    /// Contribution of stop words, separate from `values`; empty if there is none.
    pub stop_words: Vec<f32>,
    pub matched: Vec<u8>,
}

impl Column {
    /// Clears it and resizes it to `slots` slots.
    pub fn reset(&mut self, slots: usize) {
        self.values.clear();
        self.values.resize(slots, 0.0);
        self.stop_words.clear();
        self.matched.clear();
        self.matched.resize(slots, 0);
    }

    /// Adds another column to this one.
    pub fn add(&mut self, other: &Self) {
        self.values.iter_mut().zip(&other.values).for_each(|(sum, value)| *sum += value);
        self.matched.iter_mut().zip(&other.matched).for_each(|(all, one)| *all |= one);
        if !other.stop_words.is_empty() {
            let (stop_words, _) = self.of_word(false);
            stop_words.iter_mut().zip(&other.stop_words).for_each(|(sum, value)| *sum += value);
        }
    }

    /// Adds the contribution of stop words to the values, at most `most` per slot.
    pub fn add_stop_words(&mut self, most: f32) {
        self.values.iter_mut().zip(&self.stop_words).for_each(|(sum, value)| *sum += value.min(most));
    }

    /// Returns the values and match flags that a word of this kind is added to.
    pub fn of_word(&mut self, content: bool) -> (&mut [f32], &mut [u8]) {
        if content {
            return (&mut self.values, &mut self.matched);
        }
        self.stop_words.resize(self.values.len(), 0.0);
        (&mut self.stop_words, &mut self.matched)
    }
}

/// A pool of columns for reuse: they are the largest allocations of a request, and slow ones if the heap is
/// fragmented.
#[derive(Debug, Default)]
pub(crate) struct Columns(Mutex<Vec<Column>>);

impl Columns {
    /// Maximum number of pooled columns: two for each of several concurrent requests.
    const MAX_KEPT: usize = 8;

    /// Returns an empty column with `slots` slots.
    pub fn take(&self, slots: usize) -> Column {
        let mut column = self.pool().pop().unwrap_or_default();
        column.reset(slots);
        column
    }

    /// Returns a column to the pool.
    pub fn give(&self, column: Column) {
        let mut pool = self.pool();
        if pool.len() < Self::MAX_KEPT {
            pool.push(column);
        }
    }

    fn pool(&self) -> MutexGuard<'_, Vec<Column>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The row of the breakdown that a term belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Row {
    /// A word of the request.
    Word(usize),
    /// Two adjacent words of the request.
    Pair(usize, usize),
    /// The constant of the centered cosine, shown as general wording.
    General,
    /// Exact matches.
    Exact,
    /// Role, status, read-only intent.
    Rules,
    /// Preferences of the user's policy.
    Policy,
}

/// The label of a score term. Most terms are never shown, so their texts are not copied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Label {
    /// A word of the request, as it was read.
    Word(usize),
    /// Two adjacent words of the request, as they were read.
    Pair(usize, usize),
    /// A word piece of the embedding.
    Piece(u16),
    /// A fixed text.
    Fixed(&'static str),
    /// Any other text.
    Text(String),
}

impl Label {
    /// Returns its text.
    pub fn into_text(self, reading: &Reading, cx: &Context<'_>) -> String {
        let word = |at: usize| reading.words[at].word.text.as_str();
        match self {
            Self::Word(at) => word(at).to_owned(),
            Self::Pair(first, second) => format!("{}+{}", word(first), word(second)),
            Self::Piece(token) => {
                cx.model.as_ref().map_or_else(|_| String::new(), |m| m.text(token).to_owned())
            }
            Self::Fixed(text) => text.to_owned(),
            Self::Text(text) => text,
        }
    }
}

/// One term of a score, before terms are grouped by word.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScoreTerm {
    pub row: Row,
    pub signal: ScoreComponent,
    pub kind: TermKind,
    pub field: Option<&'static str>,
    pub label: Label,
    pub value: f64,
}

/// Returns the signal of a field.
pub(crate) fn signal_of(field: usize) -> ScoreComponent {
    match field {
        0 => ScoreComponent::Name,
        1 | 2 => ScoreComponent::Description,
        _ => ScoreComponent::Body,
    }
}

/// Computes `ln(1 + (n − df + 0.5) / (df + 0.5))`, the inverse document frequency.
pub(crate) fn rarity(n: usize, df: usize) -> f64 {
    let (n, df) = (n as f64, df as f64);
    ((n - df + 0.5) / (df + 0.5)).ln_1p()
}
