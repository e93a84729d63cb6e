//! All written forms of the indexed words, as candidates for corrections.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::fast_hash::{FastMap, FastSet, hash};
use super::vocabulary::StemId;
use skills_skill::slice;

const EMPTY: u32 = u32::MAX;

const APOSTROPHES: [char; 2] = ['\'', '’'];

/// Characters of forms other than letters.
const SIGNS: [char; 4] = ['\'', '’', '+', '#'];

/// Minimum and maximum number of letters of a stored form.
const LETTERS: std::ops::RangeInclusive<usize> = 3..=32;

/// Number of letters of a form that is not a candidate: with an apostrophe, or `c++`.
const NO_CANDIDATE: u8 = u8::MAX;

/// Written forms with their stems, in one block of text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forms {
    text: String,
    ends: Vec<u32>,
    stems: Vec<StemId>,
    /// Bit set of the letters of each form, and their number.
    letters: Vec<(u32, u8)>,
    /// Hash table with open addressing; the size is a power of two.
    table: Vec<u32>,
    /// First form of each stem; `EMPTY` if there is none.
    firsts: Vec<u32>,
    /// Number of forms of each stem, saturating at 255.
    counts: Vec<u8>,
    /// Stems of different words: `several` and `severity`.
    shared: FastSet<StemId>,
    /// Whether a form occurs as a part of a longer word: `vite` in `VitePress`.
    parts: Vec<bool>,
    /// Stems of words with an apostrophe, which other words may share: `we'll` and `wells`.
    contracted: FastSet<StemId>,
    near: Arc<NearForms>,
}

/// The forms close to the words of earlier requests, among the first forms. Forms are only appended, so copies of the
/// forms share them.
#[derive(Debug, Default)]
struct NearForms {
    /// Number of the forms that were searched.
    searched: usize,
    /// Number and distance of the close forms, by word and number of edits.
    found: Mutex<FastMap<(String, usize), Arc<[(u32, usize)]>>>,
}

impl NearForms {
    /// Maximum number of words.
    const MAX_WORDS: usize = 4_096;
    /// Number of appended forms from which all are searched again.
    const MAX_APPENDED: usize = 1_024;

    /// Returns the close forms of a word; `search` finds them the first time.
    fn of(
        &self,
        word: &str,
        edits: usize,
        search: impl FnOnce() -> Vec<(u32, usize)>,
    ) -> Arc<[(u32, usize)]> {
        let key = (word.to_owned(), edits);
        let cache = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = cache().get(&key) {
            return Arc::clone(found);
        }
        let found: Arc<[(u32, usize)]> = search().into();
        let mut words = cache();
        if words.len() >= Self::MAX_WORDS {
            words.clear();
        }
        words.insert(key, Arc::clone(&found));
        found
    }
}

/// A form close to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpellingCandidate<'a> {
    /// Edit distance.
    pub distance: usize,
    pub form: &'a str,
    pub stem: StemId,
}

/// Returns the bit set of the letters of a word.
pub(crate) fn letter_bits(word: &str) -> u32 {
    word.chars().fold(0, |bits, c| {
        let at = if c.is_ascii_lowercase() { u32::from(c) - u32::from('a') } else { 26 + u32::from(c) % 6 };
        bits | 1 << at
    })
}

/// Returns whether two forms of one stem are inflections of the same word: `migrates` and `migrating`, but not
/// `migration`.
fn is_inflection(a: &str, b: &str) -> bool {
    a == b || bases(a).any(|base| bases(b).any(|other| other == base))
}

/// Returns the words that a form may be an inflection of, and itself, without a final `e`, `i` or `y`.
fn bases(form: &str) -> impl Iterator<Item = &str> {
    let without = |ending| form.strip_suffix(ending);
    let regular = ["", "s", "es", "d", "ed", "ing"].into_iter().filter_map(without);
    // `planning` is a form of `plan`, but `adding` one of `add`.
    let doubled = ["ed", "ing"].into_iter().filter_map(without).filter_map(|base| {
        let mut letters = base.chars().rev();
        let (last, before) = (letters.next()?, letters.next()?);
        (last == before).then(|| base.strip_suffix(last)).flatten()
    });
    regular.chain(doubled).map(|base| base.trim_end_matches(['e', 'i', 'y']))
}

/// Returns the edit distance of two words if it is at most `edits`.
fn distance(a: &str, b: &str, edits: usize) -> Option<usize> {
    let same = |one: char, other: char| if one == other { Some(one.len_utf8()) } else { None };
    let prefix: usize = a.chars().zip(b.chars()).map_while(|(a, b)| same(a, b)).sum();
    let (a, b) = (slice(a, prefix..), slice(b, prefix..));
    let suffix: usize = a.chars().rev().zip(b.chars().rev()).map_while(|(a, b)| same(a, b)).sum();
    let (a, b) = (slice(a, ..a.len() - suffix), slice(b, ..b.len() - suffix));
    // What one edit changes is at most two letters long; most words differ in more.
    if edits == 1 && a.chars().count().max(b.chars().count()) > 2 {
        return None;
    }
    Some(strsim::osa_distance(a, b)).filter(|distance| *distance <= edits)
}

impl Forms {
    /// Inserts a form, unless it contains characters other than letters, apostrophes and the signs of `c++` and `c#`;
    /// `is_part` returns whether it is a part of a longer word there.
    pub fn insert(&mut self, form: &str, stem: StemId, is_part: bool) {
        let length = form.chars().count();
        let is_word = form.chars().all(char::is_alphabetic);
        let is_signed = !is_word && form.chars().all(|c| c.is_alphabetic() || SIGNS.contains(&c));
        if length > *LETTERS.end() || (length < *LETTERS.start() && !is_signed) || !(is_word || is_signed) {
            return;
        }
        if self.ends.len() * 2 >= self.table.len() {
            self.grow();
        }
        let place = self.place(form);
        if self.table[place] != EMPTY {
            self.parts[self.table[place] as usize] |= is_part;
            return;
        }
        self.table[place] = self.ends.len() as u32;
        self.parts.push(is_part);
        self.text.push_str(form);
        self.ends.push(self.text.len() as u32);
        self.note(form, length, stem);
        self.stems.push(stem);
    }

    fn note(&mut self, form: &str, length: usize, stem: StemId) {
        let is_word = form.chars().all(char::is_alphabetic);
        self.letters.push(if is_word { (letter_bits(form), length as u8) } else { (0, NO_CANDIDATE) });
        if form.contains(APOSTROPHES) {
            self.contracted.insert(stem);
        }
        let at = stem as usize;
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
            self.firsts.resize(at + 1, EMPTY);
        }
        self.counts[at] = self.counts[at].saturating_add(1);
        if self.firsts[at] == EMPTY {
            self.firsts[at] = self.letters.len() as u32 - 1;
        } else if !self.shared.contains(&stem) && !is_inflection(self.form(self.firsts[at] as usize), form) {
            self.shared.insert(stem);
        }
    }

    fn form(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        slice(&self.text, start as usize..self.ends[at] as usize)
    }

    /// Returns whether any skill contains a form.
    pub fn contains(&self, form: &str) -> bool {
        !self.table.is_empty() && self.table[self.place(form)] != EMPTY
    }

    fn place(&self, form: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut at = hash(form) as usize & mask;
        while self.table[at] != EMPTY && self.form(self.table[at] as usize) != form {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        self.table = vec![EMPTY; (self.ends.len() * 4).next_power_of_two().max(64)];
        for at in 0..self.ends.len() {
            let place = self.place(self.form(at));
            self.table[place] = at as u32;
        }
    }

    /// Returns the form of a stem that has no other form, and whether it occurs as a part of longer words.
    pub fn only_form(&self, stem: StemId) -> Option<(&str, bool)> {
        if self.counts.get(stem as usize) != Some(&1) {
            return None;
        }
        let at = self.firsts[stem as usize] as usize;
        Some((self.form(at), self.parts[at]))
    }

    /// Returns whether a stem is shared by words other than the inflections of `word`, or by a word with an apostrophe
    /// and others.
    pub fn is_shared(&self, stem: StemId, word: &str) -> bool {
        let at = stem as usize;
        let is_several = self.counts.get(at).is_some_and(|count| *count > 1);
        let first = self.firsts.get(at).filter(|first| **first != EMPTY);
        (is_several && self.contracted.contains(&stem))
            || self.shared.contains(&stem)
            || first.is_some_and(|first| !is_inflection(self.form(*first as usize), word))
    }

    /// Calls `take` with each form that starts with a text and is longer, and its stem.
    pub fn continuing<'a>(&'a self, start: &str, mut take: impl FnMut(&'a str, StemId)) {
        let bits = letter_bits(start);
        for (at, (other, _)) in self.letters.iter().enumerate() {
            if bits & !other != 0 {
                continue;
            }
            let form = self.form(at);
            if form.len() > start.len() && form.starts_with(start) {
                take(form, self.stems[at]);
            }
        }
    }

    /// Calls `take` with each form within `edits` edits of a word, in insertion order.
    pub fn near<'a>(&'a self, word: &str, edits: usize, mut take: impl FnMut(SpellingCandidate<'a>)) {
        let searched = self.near.searched;
        let first = self.near.of(word, edits, || self.search(word, edits, 0..searched));
        let appended = self.search(word, edits, searched..self.letters.len());
        for (at, distance) in first.iter().chain(&appended) {
            let at = *at as usize;
            take(SpellingCandidate { distance: *distance, form: self.form(at), stem: self.stems[at] });
        }
    }

    /// Returns the numbers and distances of the forms in a range within `edits` edits of a word.
    fn search(&self, word: &str, edits: usize, range: Range<usize>) -> Vec<(u32, usize)> {
        let (bits, length) = (letter_bits(word), word.chars().count());
        let close = |(at, (other, letters)): (usize, &(u32, u8))| {
            // A substitution changes at most two letters of the set, an insertion or deletion one.
            let added = usize::from(*letters).abs_diff(length);
            if added > edits || (bits ^ other).count_ones() as usize + added > 2 * edits {
                return None;
            }
            Some((at as u32, distance(word, self.form(at), edits)?))
        };
        range.clone().zip(&self.letters[range]).filter_map(close).collect()
    }

    /// Prepares searches after a change.
    pub fn prepare_search(&mut self) {
        if self.letters.len() - self.near.searched > NearForms::MAX_APPENDED {
            self.near = Arc::new(NearForms { searched: self.letters.len(), ..NearForms::default() });
        }
    }

    /// Returns the parts that the cache stores.
    pub fn parts(&self) -> (&str, &[u32], &[StemId], &[bool]) {
        (&self.text, &self.ends, &self.stems, &self.parts)
    }

    /// Creates the forms from the parts of a cache; returns `None` if they are inconsistent.
    pub fn from_parts(text: String, ends: Vec<u32>, stems: Vec<StemId>, parts: Vec<bool>) -> Option<Self> {
        let mut last = 0;
        for end in &ends {
            if *end < last || !text.is_char_boundary(*end as usize) {
                return None;
            }
            last = *end;
        }
        if ends.len() != stems.len() || ends.len() != parts.len() {
            return None;
        }
        let mut out = Self { text, ends, stems, parts, ..Self::default() };
        out.grow();
        for at in 0..out.ends.len() {
            let form = out.form(at).to_owned();
            out.note(&form, form.chars().count(), out.stems[at]);
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflections_are_distinguished_from_words_sharing_a_stem() {
        for (a, b) in [
            ("plan", "planning"),
            ("add", "added"),
            ("tries", "trying"),
            ("migrates", "migrating"),
            ("agree", "agreed"),
            ("policy", "policies"),
        ] {
            assert!(is_inflection(a, b) && is_inflection(b, a), "{a} {b}");
        }
        for (a, b) in [
            ("several", "severity"),
            ("import", "important"),
            ("experiments", "experience"),
            ("customers", "custom"),
            ("heads", "headings"),
            ("animals", "animations"),
        ] {
            assert!(!is_inflection(a, b), "{a} {b}");
        }
        let mut forms = Forms::default();
        for (form, stem) in [("several", 0), ("severity", 0), ("plans", 1), ("planning", 1), ("tests", 2)] {
            forms.insert(form, stem, false);
        }
        assert!(forms.is_shared(0, "several"));
        assert!(!forms.is_shared(1, "planned") && !forms.is_shared(2, "testing"));
        assert!(forms.is_shared(2, "testament"), "the word of the request is another one");
    }

    #[test]
    fn close_forms_are_remembered_without_those_appended_to_a_copy() {
        let mut forms = Forms::default();
        let number = |at: usize| -> String { format!("{at:010b}").replace('0', "x").replace('1', "y") };
        for at in 0..=NearForms::MAX_APPENDED {
            forms.insert(&number(at), at as u32, false);
        }
        forms.prepare_search();
        let near = |forms: &Forms| {
            let mut out = Vec::new();
            forms.near("xxyyxxyyxz", 1, |near| out.push((near.distance, near.form.to_owned(), near.stem)));
            out
        };
        let before = near(&forms);
        assert_eq!(before.iter().map(|near| near.2).collect::<Vec<_>>(), [0b1100_1100, 0b1100_1101]);
        let mut copy = forms.clone();
        copy.insert("xxyyxxyyz", 9, false);
        copy.prepare_search();
        assert_eq!(near(&copy), [before.clone(), vec![(1, "xxyyxxyyz".to_owned(), 9)]].concat());
        assert_eq!(near(&forms), before);
    }

    #[test]
    fn forms_are_found_by_edits_at_any_position() {
        let mut forms = Forms::default();
        for (at, form) in ["accessible", "accessibility", "tables", "table", "kubernetes"].iter().enumerate()
        {
            forms.insert(form, at as u32 / 2, false);
            forms.insert(form, 9, *form == "kubernetes");
        }
        forms.insert("k8s", 7, false);
        forms.insert("can't", 8, false);
        forms.insert("c#", 10, false);
        let near = |forms: &Forms, word: &str, edits| {
            let mut out = Vec::new();
            forms.near(word, edits, |n| out.push((n.distance, n.form.to_owned(), n.stem)));
            out
        };
        assert_eq!(near(&forms, "accessibjle", 1), [(1, "accessible".to_owned(), 0)]);
        assert_eq!(near(&forms, "gables", 1), [(1, "tables".to_owned(), 1)]);
        assert_eq!(near(&forms, "kuberntse", 2), [(2, "kubernetes".to_owned(), 2)]);
        assert!(near(&forms, "k8", 1).is_empty());
        assert_eq!(forms.only_form(0), None);
        assert_eq!(forms.only_form(2), Some(("kubernetes", true)));
        assert_eq!(forms.only_form(8), Some(("can't", false)));
        assert_eq!(forms.only_form(10), Some(("c#", false)));
        assert!(near(&forms, "cant", 1).is_empty(), "a contraction is not a correction");
        assert!(!forms.is_shared(8, "can't"));
        forms.insert("cant", 8, false);
        assert!(forms.is_shared(8, "can't"));
        let (text, ends, stems, parts) = forms.parts();
        let again =
            Forms::from_parts(text.to_owned(), ends.to_vec(), stems.to_vec(), parts.to_vec()).unwrap();
        assert_eq!(near(&again, "gables", 1), near(&forms, "gables", 1));
        assert!(Forms::from_parts("ab".into(), vec![9], vec![0], vec![false]).is_none());
    }
}
