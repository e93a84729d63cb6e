//! The reading of a request: its words with corrections, and the word pieces of the embedding.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use super::answer::{Correction, QueryWord};
use super::embedding::Embedding;
use super::language::Language;
use super::phrases::Lexicon;
use super::task::Task;
use super::tokenize::{JOINED_LETTERS, NEGATION, Word, Words, american_spelling, fold_accents};
use super::vocabulary::StemId;
use skills_skill::slice;

/// Fewest letters of a part of a camelCase word that means something by itself.
const MIN_PART_LETTERS: usize = 3;

/// A word piece of a request and the word it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadPiece {
    pub token: u16,
    /// Index into [`Reading::words`].
    pub word: usize,
}

/// A word of a request.
#[derive(Debug, Clone)]
pub(crate) struct ReadWord {
    /// The word as read: after a correction, text and stem are those of the correction.
    pub word: Word,
    /// The interpretation that replaces the word, if any.
    pub correction: Option<Correction>,
    /// Possible completions of an unfinished word.
    pub completions: Vec<StemId>,
    /// Whether it is a proper name that no skill contains.
    pub is_proper_name: bool,
    /// Whether it is a part of a camelCase word, other parts of which are stop words and left out: `desk` of `AnyDesk`.
    pub is_remainder: bool,
    /// Whether it is an unknown short word that was read as a stop word, which it may not be: `wht`, `nike`.
    pub is_doubtful: bool,
}

impl ReadWord {
    /// Creates a word without corrections.
    pub fn new(word: Word) -> Self {
        Self {
            word,
            correction: None,
            completions: Vec::new(),
            is_proper_name: false,
            is_remainder: false,
            is_doubtful: false,
        }
    }

    /// Creates a word from the parts of a camelCase word. It is read like its lower-case form, also by the embedding.
    fn joined(parts: &[Self], words: &Words) -> Self {
        let text: String = parts.iter().map(|part| part.word.text.as_str()).collect();
        let start = parts.first().map_or(0, |part| part.word.start);
        let end = parts.last().map_or(start, |part| part.word.end);
        let word = Word {
            start,
            end,
            is_stop_word: words.is_stop(&text),
            stem: words.stem(&text),
            text: text.clone(),
        };
        Self { correction: Some(Correction::Typo(text)), ..Self::new(word) }
    }
}

/// Returns whether a word is written in capitals only.
pub(crate) fn is_acronym(written: &str) -> bool {
    written.chars().all(char::is_uppercase)
}

/// A parsed request.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// The text as written.
    pub intent: String,
    /// Its words; changed only by the methods.
    pub words: Vec<ReadWord>,
    /// Its word pieces; set by [`Reading::split_pieces`] after the words.
    pub pieces: Vec<ReadPiece>,
    /// Its task; set by [`Reading::read_task`] after the words.
    pub task: Task,
    /// Its language, if it is not English.
    pub language: Option<Language>,
    /// For each word the first word with the same stem, and whether any of them is not a stop word; set on first use.
    stems: OnceLock<Vec<(usize, bool)>>,
    /// For each word the range of its run of characters without spaces; set on first use.
    runs: OnceLock<Vec<Range<usize>>>,
}

impl Reading {
    /// Splits a request into words.
    pub fn new(intent: &str, words: &Words) -> Self {
        let words = words.split(intent).into_iter().map(ReadWord::new).collect();
        Self {
            intent: intent.to_owned(),
            words,
            pieces: Vec::new(),
            task: Task::default(),
            language: None,
            stems: OnceLock::new(),
            runs: OnceLock::new(),
        }
    }

    /// Replaces words, and returns the previous ones.
    pub fn replace_words(
        &mut self,
        range: Range<usize>,
        words: impl IntoIterator<Item = ReadWord>,
    ) -> Vec<ReadWord> {
        self.stems.take();
        self.runs.take();
        self.words.splice(range, words).collect()
    }

    /// Returns a word to be changed.
    pub fn word_mut(&mut self, word: usize) -> &mut ReadWord {
        self.stems.take();
        &mut self.words[word]
    }

    /// Reads the parts of a camelCase word as the one word that its lower-case form is, if `is_word` returns true for
    /// that form and a part means nothing by itself: a stop word (`YouTube`) or one of two letters (`LaTeX`). The parts
    /// of others (`GitHub`) remain separate words.
    pub fn join_parts(&mut self, words: &Words, is_word: impl Fn(&str, &str) -> bool) {
        self.replace_camel_case(|parts| {
            let is_odd = |part: &ReadWord| part.word.is_stop_word || part.word.text.len() < MIN_PART_LETTERS;
            let letters: usize = parts.iter().map(|part| part.word.text.len()).sum();
            if !JOINED_LETTERS.contains(&letters) || !parts.iter().any(is_odd) {
                return None;
            }
            let joined = ReadWord::joined(parts, words);
            is_word(&joined.word.text, &joined.word.stem).then(|| vec![joined])
        });
    }

    /// Leaves out the parts of camelCase words that are stop words, which say nothing about the request (`You` of
    /// `YouTube`). A word without other parts is read as one word.
    pub fn drop_stop_parts(&mut self, words: &Words) {
        self.replace_camel_case(|parts| {
            let others: Vec<ReadWord> = parts
                .iter()
                .filter(|part| !part.word.is_stop_word)
                .map(|part| ReadWord { is_remainder: true, ..part.clone() })
                .collect();
            match others.len() {
                0 => Some(vec![ReadWord::joined(parts, words)]),
                count => (count < parts.len()).then_some(others),
            }
        });
    }

    /// Replaces the parts of each camelCase word by the words that `replace` returns, if any.
    fn replace_camel_case(&mut self, replace: impl Fn(&[ReadWord]) -> Option<Vec<ReadWord>>) {
        if !(1..self.words.len()).any(|at| self.continues_camel_case(at)) {
            return;
        }
        let mut out = Vec::with_capacity(self.words.len());
        let mut at = 0;
        while at < self.words.len() {
            let parts = self.camel_case(at);
            at = parts.end;
            let parts = &self.words[parts];
            match (parts.len() > 1).then(|| replace(parts)).flatten() {
                Some(words) => out.extend(words),
                None => out.extend_from_slice(parts),
            }
        }
        let _ = self.replace_words(0..self.words.len(), out);
    }

    /// Returns the range of the words that are parts of the same camelCase word, from the first of them on.
    fn camel_case(&self, first: usize) -> Range<usize> {
        let mut end = first + 1;
        while end < self.words.len() && self.continues_camel_case(end) {
            end += 1;
        }
        first..end
    }

    /// Returns whether a word and the one before it are parts of the same camelCase word.
    fn continues_camel_case(&self, word: usize) -> bool {
        // Skills have the joined forms of words of letters only.
        let is_letter = |c: char| c.is_ascii_alphabetic() || matches!(c, '\'' | '’');
        let is_part = |at: usize| self.as_typed(at).chars().all(is_letter);
        word.checked_sub(1).is_some_and(|before| {
            self.words[before].word.end == self.words[word].word.start
                && is_part(before)
                && is_part(word)
                && self.as_typed(word).starts_with(|c: char| c.is_ascii_uppercase())
        })
    }

    /// Returns whether a word is a part of a camelCase word, not all parts of which are among the words of a skill that
    /// `has` contains.
    pub fn is_lone_part(&self, word: usize, has: impl Fn(usize) -> bool) -> bool {
        // A longer run is not a name.
        let nearest = *JOINED_LETTERS.end();
        let before =
            (word.saturating_sub(nearest)..=word).rev().take_while(|at| self.continues_camel_case(*at));
        let after =
            (word + 1..self.words.len()).take(nearest).take_while(|at| self.continues_camel_case(*at));
        self.words[word].is_remainder || before.map(|at| at - 1).chain(after).any(|at| !has(self.row(at)))
    }

    /// Splits the words into word pieces. A corrected word yields the pieces of its correction, an unfinished one
    /// those of its only completion, an accented one those without accents, and words for which `means_nothing` returns
    /// true yield none.
    pub fn split_pieces(&mut self, model: &Embedding, limit: usize, means_nothing: impl Fn(usize) -> bool) {
        let mut out: Vec<ReadPiece> = Vec::new();
        for read_token in model.pieces(&self.intent, limit) {
            let at = self.words.partition_point(|w| w.word.end <= read_token.start);
            let Some(read) = self.words.get(at) else { continue };
            let folded = fold_accents(&read.word.text);
            let other = match &read.correction {
                None if means_nothing(at) => continue,
                None if matches!(folded, Cow::Owned(_)) => &*folded,
                None => {
                    out.push(ReadPiece { token: read_token.token, word: at });
                    continue;
                }
                Some(Correction::Typo(other)) => other,
                Some(Correction::Completed(words)) => match &words[..] {
                    [only] => only,
                    _ => continue,
                },
                Some(Correction::Dropped) => continue,
            };
            if out.last().is_none_or(|p| p.word != at) {
                let pieces = model.pieces(other, limit);
                out.extend(pieces.iter().map(|p| ReadPiece { token: p.token, word: at }));
            }
        }
        out.truncate(limit);
        self.pieces = out;
    }

    /// Determines the task of the request.
    pub fn read_task(&mut self, words: &Words, lexicon: &Lexicon) {
        self.task = Task::read(&self.intent, &self.words, words, lexicon);
    }

    /// Marks proper names: unknown words that are capitalized inside a sentence, if the request also has lower-case
    /// words.
    pub fn mark_proper_names(&mut self, is_unknown: impl Fn(&ReadWord) -> bool) {
        let is_lower = |at: usize| self.as_typed(at).chars().all(char::is_lowercase);
        if !(0..self.words.len()).any(|at| !self.words[at].word.is_stop_word && is_lower(at)) {
            return;
        }
        for at in 0..self.words.len() {
            let read = &self.words[at];
            let interpreted = read.correction.is_some() || !read.completions.is_empty();
            let is_proper_name = !interpreted && self.is_capitalized_inside(at) && is_unknown(read);
            self.words[at].is_proper_name = is_proper_name;
        }
    }

    fn is_capitalized_inside(&self, word: usize) -> bool {
        let before = slice(&self.intent, ..self.words[word].word.start as usize).trim_end();
        let starts_sentence =
            before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n', '"', '“', '(']);
        let mut letters = self.as_typed(word).chars();
        letters.next().is_some_and(char::is_uppercase) && letters.any(char::is_lowercase) && !starts_sentence
    }

    /// Returns whether any word with the same stem is not a stop word.
    pub fn is_content(&self, word: usize) -> bool {
        self.stems()[self.row(word)].1
    }

    /// Returns whether a word is about the subject of the request: neither a stop word nor a contraction with `not`.
    pub fn is_evidence(&self, word: usize) -> bool {
        self.is_content(word) && !self.words[word].word.text.ends_with(NEGATION)
    }

    /// Returns the first word with the same stem, which represents all of them.
    pub fn row(&self, word: usize) -> usize {
        self.stems()[word].0
    }

    fn stems(&self) -> &[(usize, bool)] {
        self.stems.get_or_init(|| {
            let mut firsts: HashMap<&str, usize> = HashMap::with_capacity(self.words.len());
            let mut stems: Vec<(usize, bool)> = Vec::with_capacity(self.words.len());
            for (at, read) in self.words.iter().enumerate() {
                let first = *firsts.entry(read.word.stem.as_str()).or_insert(at);
                stems.push((first, false));
                stems[first].1 |= !read.word.is_stop_word;
            }
            stems
        })
    }

    /// Returns a word as written in the request.
    pub fn as_typed(&self, word: usize) -> &str {
        let w = &self.words[word].word;
        slice(&self.intent, w.start as usize..w.end as usize)
    }

    /// Returns whether a word is a pair of characters of a run without spaces that contains more of them.
    pub fn is_pair(&self, word: usize) -> bool {
        self.continues_run(word) || self.words.get(word + 1).is_some_and(|_| self.continues_run(word + 1))
    }

    /// Returns whether a word overlaps the one before it: both are pairs of characters of a run without spaces.
    pub fn continues_run(&self, word: usize) -> bool {
        let before = word.checked_sub(1).map(|before| &self.words[before].word);
        before.is_some_and(|before| self.words[word].word.start < before.end)
    }

    /// Returns the range of a word in the request; for pairs of characters, that of the run they were cut from.
    pub fn run(&self, word: usize) -> Range<usize> {
        self.runs()[word].clone()
    }

    fn runs(&self) -> &[Range<usize>] {
        self.runs.get_or_init(|| {
            let mut runs: Vec<Range<usize>> = Vec::with_capacity(self.words.len());
            let mut first = 0;
            for (at, read) in self.words.iter().enumerate() {
                if !self.continues_run(at) {
                    first = at;
                }
                let end = read.word.end as usize;
                runs.push(self.words[first].word.start as usize..end);
            }
            for at in (1..runs.len()).rev() {
                if self.continues_run(at) {
                    runs[at - 1].end = runs[at].end;
                }
            }
            runs
        })
    }

    /// Returns the text that a word was read as: as written, or its correction.
    pub fn read_as(&self, word: usize) -> &str {
        let read = &self.words[word];
        match &read.correction {
            Some(Correction::Typo(other)) if !read.is_doubtful => other,
            _ => self.as_typed(word),
        }
    }

    /// Returns whether a word was read as another one; different capitalization and spelling variants do not count.
    pub fn is_corrected(&self, word: usize) -> bool {
        let read = &self.words[word];
        let Some(Correction::Typo(other)) = read.correction.as_ref().filter(|_| !read.is_doubtful) else {
            return false;
        };
        let written = self.as_typed(word).to_lowercase();
        *other != written && american_spelling(&written).as_ref() != Some(other)
    }

    /// Groups words in order by the written words, such as `docker-compose`, of which they are parts.
    pub fn written_words<'w>(&self, words: &'w [usize]) -> impl Iterator<Item = &'w [usize]> {
        words.chunk_by(|before, word| self.is_one_word(*before, *word))
    }

    /// Returns whether two words are parts of one written word.
    fn is_one_word(&self, first: usize, last: usize) -> bool {
        let parts = self.words.get(first..=last).unwrap_or_default();
        parts.windows(2).all(|two| {
            let gap = self.intent.get(two[0].word.end as usize..two[1].word.start as usize);
            gap.is_some_and(|gap| gap.chars().all(|c| matches!(c, '-' | '_' | '.')))
        })
    }

    /// Returns the words for an answer; `known` returns whether a word is known.
    pub fn to_query_words(&self, is_known: impl Fn(usize) -> bool) -> Vec<QueryWord> {
        self.words
            .iter()
            .enumerate()
            .map(|(i, w)| {
                QueryWord {
                start: w.word.start,
                end: w.word.end,
                stop: w.word.is_stop_word && !w.is_doubtful,
                known: is_known(i),
                // The same letters without their capitals are not a correction.
                correction: w.correction.clone().filter(|correction| {
                    !w.is_doubtful && !matches!(correction, Correction::Typo(other) if *other == self.as_typed(i).to_lowercase())
                }),
            }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::weights::Weights;
    use super::*;

    #[test]
    fn parts_of_a_written_word_are_grouped() {
        let words = Words::new(Weights::shipped().unwrap().stop_words);
        let reading = Reading::new("PayPal, docker-compose.yml and CVE-2021-44228 dentist", &words);
        let all: Vec<usize> = (0..reading.words.len()).collect();
        let groups: Vec<usize> = reading.written_words(&all).map(<[usize]>::len).collect();
        assert_eq!(groups, [2, 3, 1, 3, 1]);
    }

    #[test]
    fn names_are_unknown_words_capitalized_inside_a_sentence() {
        let words = Words::new(Weights::shipped().unwrap().stop_words);
        let names = |intent: &str| {
            let mut reading = Reading::new(intent, &words);
            reading.mark_proper_names(|read| read.word.text != "python");
            let all = (0..reading.words.len()).filter(|at| reading.words[*at].is_proper_name);
            all.map(|at| reading.as_typed(at).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("write a Python scraper for Le Monde articles"), ["Le", "Monde"]);
        assert_eq!(names("plan a trip to São Paulo. Then book it in Lisboa"), ["São", "Paulo", "Lisboa"]);
        assert_eq!(names("Scrape tables from HTML"), Vec::<String>::new());
        assert_eq!(names("Plan A Trip To Lisboa"), Vec::<String>::new(), "a title has no names of its own");
    }
}
