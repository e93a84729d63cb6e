//! Task matcher: the request's main verb is one of the skill's verbs, and clauses of the skill's description occur
//! completely in the request.

use super::super::answer::{ScoreComponent, TermKind};
use super::super::fast_hash::FastMap;
use super::super::index::ClausePosting;
use super::super::lookup::{KeyPostings, View};
use super::super::reading::Reading;
use super::super::segment::Key;
use super::{Column, Context, Failure, Label, Matcher, Row, ScoreTerm, Scorer, rarity};

/// Scores the main verb and complete clauses.
pub(super) struct Task;

struct Verb<'a> {
    found: KeyPostings<'a>,
    value: f64,
    word: usize,
}

/// A content stem of the request with the word that contains it.
struct RequestStem {
    stem: u32,
    rarity: f64,
    word: usize,
}

struct TaskScorer<'a> {
    cx: &'a Context<'a>,
    reading: &'a Reading,
    verb: Option<Verb<'a>>,
    stems: Vec<RequestStem>,
    /// Slots with the stems (as indices into `stems`) of the clauses that occur in the request, sorted.
    clauses: Vec<(u32, u32)>,
}

impl Matcher for Task {
    fn name(&self) -> &'static str {
        "task"
    }

    fn prepare<'a>(
        &self,
        reading: &'a Reading,
        cx: &'a Context<'a>,
    ) -> Result<Option<Box<dyn Scorer + 'a>>, Failure> {
        let n = cx.index.len();
        let vocabulary = &cx.index.vocabulary;
        let verb = reading.task.verb.filter(|_| cx.profile.verb > 0.0).and_then(|word| {
            let id = vocabulary.find(&reading.words[word].word.stem)?;
            let found = cx.index.find(Key::verb(id), View::All)?;
            let rarity = rarity(n, cx.documents(&reading.words[word].word.stem));
            Some(Verb { found, value: cx.profile.verb * rarity.sqrt(), word: reading.row(word) })
        });
        let mut prepared = TaskScorer { cx, reading, verb, stems: Vec::new(), clauses: Vec::new() };
        if cx.profile.clause > 0.0 {
            prepared.find_clauses();
        }
        if prepared.verb.is_none() && prepared.clauses.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(prepared)))
    }
}

impl TaskScorer<'_> {
    fn find_clauses(&mut self) {
        let index = self.cx.index;
        for (at, read) in self.reading.words.iter().enumerate() {
            let done =
                self.reading.row(at) != at || !self.reading.is_content(at) || !read.completions.is_empty();
            let Some(stem) = index.vocabulary.find(&read.word.stem).filter(|_| !done) else { continue };
            let rarity = rarity(index.len(), self.cx.documents(&read.word.stem));
            self.stems.push(RequestStem { stem, rarity, word: at });
        }
        let places: FastMap<u32, u32> =
            self.stems.iter().zip(0..).map(|(request_stem, at)| (request_stem.stem, at)).collect();
        let mut found: Vec<(u32, u32)> = Vec::new();
        let marks = ClausePosting::marks(places.keys().copied());
        for (request_stem, at) in self.stems.iter().zip(0..) {
            let Some(postings) = index.find(Key::clause(request_stem.stem), View::All) else { continue };
            postings.each(|slot, counts| {
                let posting = ClausePosting::unpack(counts);
                if posting.is_single() {
                    found.push((slot as u32, at));
                }
                if posting.is_single() || !posting.may_be_of(&marks) {
                    return;
                }
                let entry = index.entry(slot).into_iter();
                for clause in entry.flat_map(|entry| entry.clauses_at(posting, request_stem.stem)) {
                    if clause.iter().all(|stem| places.contains_key(stem)) {
                        found
                            .extend(clause.iter().filter_map(|stem| Some((slot as u32, *places.get(stem)?))));
                    }
                }
            });
        }
        found.sort_unstable();
        found.dedup();
        self.clauses = found;
    }

    /// Computes Σ idf of the stems of the clauses in a slot, and their contribution to the score.
    fn clause_value(&self, stems: &[(u32, u32)]) -> (f64, f64) {
        let sum: f64 = stems.iter().map(|(_, at)| self.stems[*at as usize].rarity).sum();
        (sum, self.cx.profile.clause * sum.sqrt())
    }
}

impl Scorer for TaskScorer<'_> {
    fn score(&self, column: &mut Column) -> Result<(), Failure> {
        if let Some(verb) = &self.verb {
            verb.found.each(|slot, _| column.values[slot] += verb.value as f32);
        }
        for stems in self.clauses.chunk_by(|a, b| a.0 == b.0) {
            column.values[stems[0].0 as usize] += self.clause_value(stems).1 as f32;
        }
        Ok(())
    }

    fn explain(&self, slot: usize, out: &mut Vec<ScoreTerm>) {
        let mut give = |word: usize, kind, value| {
            out.push(ScoreTerm {
                row: Row::Word(word),
                signal: ScoreComponent::Description,
                kind,
                field: None,
                label: Label::Word(word),
                value,
            });
        };
        if let Some(verb) = self.verb.as_ref().filter(|verb| verb.found.counts(slot).is_some()) {
            give(verb.word, TermKind::Task, verb.value);
        }
        let place = |slot: usize| self.clauses.partition_point(|(of, _)| (*of as usize) < slot);
        let stems = &self.clauses[place(slot)..place(slot + 1)];
        let (sum, value) = self.clause_value(stems);
        for stem in stems.iter().map(|(_, at)| &self.stems[*at as usize]) {
            give(stem.word, TermKind::Clause, value * stem.rarity / sum);
        }
    }
}
