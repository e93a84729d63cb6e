//! Splits texts into words and stems: camelCase, `c++` and `c#`, apostrophes, stop words, the Snowball stemmer for
//! English, and pairs of characters for scripts that are written without spaces.

use std::borrow::Cow;
use std::cell::{LazyCell, RefCell};
use std::collections::HashSet;
use std::ops::Range;

use rust_stemmers::{Algorithm, Stemmer};

use super::fast_hash::{FastMap, FastSet};
use skills_skill::slice;

/// Maximum number of stems that a thread caches: stemming is expensive, and texts repeat their words.
const STEM_CACHE_SIZE: usize = 20_000;

/// Number of letters of a word that is read in addition to its camelCase parts.
pub(crate) const JOINED_LETTERS: std::ops::RangeInclusive<usize> = 3..=24;

/// Ending of contractions with `not`.
pub(crate) const NEGATION: &str = "n't";

/// Endings of contractions: `don't`, `we'd`.
const CONTRACTIONS: [&str; 6] = [NEGATION, "'d", "'ll", "'m", "'re", "'ve"];

/// Contractions that are read without their apostrophe, too: `whats`. Those that are another word then are not among
/// them (`well`, `wed`).
const JOINED_CONTRACTIONS: [&str; 41] = [
    "aren't",
    "can't",
    "couldn't",
    "didn't",
    "doesn't",
    "don't",
    "hadn't",
    "hasn't",
    "haven't",
    "he's",
    "how's",
    "i'm",
    "i've",
    "isn't",
    "it'll",
    "let's",
    "mustn't",
    "she's",
    "shouldn't",
    "that'll",
    "that's",
    "there's",
    "they'd",
    "they'll",
    "they're",
    "they've",
    "wasn't",
    "we've",
    "weren't",
    "what're",
    "what's",
    "when's",
    "where's",
    "who's",
    "won't",
    "wouldn't",
    "you'd",
    "you'll",
    "you're",
    "you've",
    "why's",
];

/// A joined contraction that is a German word as well.
const GERMAN_CONTRACTION: &str = "im";

thread_local! {
    static STEMS: RefCell<FastMap<String, String>> = RefCell::default();
}

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// First byte in the text.
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
    /// Lower case, without apostrophes except in contractions: `sheets`, `csharp`, `表格`, `we'd`.
    pub text: String,
    /// The form in the index: `sheet`, `csharp`, `表格`.
    pub stem: String,
    /// Whether it is a stop word.
    pub is_stop_word: bool,
}

/// Splits texts into words. Cheap to share between threads.
pub(crate) struct Words {
    stemmer: Stemmer,
    stops: FastSet<String>,
    /// The joined contractions by their form without the apostrophe.
    contractions: FastMap<String, &'static str>,
}

impl Words {
    /// Creates a tokenizer with these stop words.
    pub fn new(stops: HashSet<String>) -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
            stops: stops.into_iter().collect(),
            contractions: JOINED_CONTRACTIONS
                .map(|word| (word.replace('\'', ""), word))
                .into_iter()
                .collect(),
        }
    }

    /// Returns whether a lower-case word is a stop word.
    pub fn is_stop(&self, word: &str) -> bool {
        self.stops.contains(word) || (word != GERMAN_CONTRACTION && self.contractions.contains_key(word))
    }

    /// Returns the contraction that a word of a text is without its apostrophe. Neither a part of a word (`WhatsApp`)
    /// nor an abbreviation is one, and `im` only in a text with a stop word (`has_stop_word`).
    fn contraction(
        &self,
        text: &str,
        at: Range<usize>,
        word: &str,
        has_stop_word: impl FnOnce() -> bool,
    ) -> Option<&'static str> {
        let contraction = self.contractions.get(word).copied()?;
        let is_part = slice(text, ..at.start).ends_with(char::is_alphanumeric)
            || slice(text, at.end..).starts_with(char::is_alphanumeric);
        let is_word = !is_part && slice(text, at).contains(char::is_lowercase);
        (is_word && (word != GERMAN_CONTRACTION || has_stop_word())).then_some(contraction)
    }

    /// Iterates over the stop words.
    pub fn stops(&self) -> impl Iterator<Item = &str> {
        self.stops.iter().map(String::as_str)
    }

    /// Returns the stem of a lower-case word, without accents.
    pub fn stem(&self, word: &str) -> String {
        STEMS.with_borrow_mut(|stems| {
            if let Some(stem) = stems.get(word) {
                return stem.clone();
            }
            // A single letter is not a word without its accent.
            let folded = if word.chars().nth(1).is_some() { fold_accents(word) } else { Cow::Borrowed(word) };
            let mut stem = self.stemmer.stem(&folded).into_owned();
            // The stemmer reduces the double consonant of `adding`, but keeps that of `add`.
            if let (Some(last), [_, second, third, ..]) = (stem.chars().nth(1), folded.as_bytes())
                && stem.len() == 2
                && second == third
                && folded.starts_with(&stem)
            {
                stem.push(last);
            }
            if stems.len() < STEM_CACHE_SIZE {
                stems.insert(word.to_owned(), stem.clone());
            }
            stem
        })
    }

    /// Returns all words of a text, in order.
    pub fn split(&self, text: &str) -> Vec<Word> {
        let mut out = Vec::new();
        self.each(text, |word| out.push(word));
        out
    }

    /// Like [`Self::each`]; a word that camelCase splits follows its parts, marked with `true`, and its parts of one or
    /// two letters are omitted: `SwiftUI` is read as `swift` and `swiftui`, `PDFs` as `pdf` and `pdfs`.
    pub fn each_and_joined(&self, text: &str, mut take: impl FnMut(Word, bool)) {
        let mut parts: Vec<Word> = Vec::new();
        self.each(text, |word| {
            if parts.last().is_some_and(|last| last.end != word.start) {
                self.take_run(text, &mut parts, &mut take);
            }
            parts.push(word);
        });
        self.take_run(text, &mut parts, &mut take);
    }

    /// Takes adjacent words without a separator.
    fn take_run(&self, text: &str, parts: &mut Vec<Word>, take: &mut impl FnMut(Word, bool)) {
        let joined = self.joined(text, parts);
        let is_split = joined.is_some() && parts.len() > 1;
        for part in parts.drain(..).filter(|part| !is_split || part.text.len() >= *JOINED_LETTERS.start()) {
            take(part, false);
        }
        if let Some(joined) = joined {
            take(joined, true);
        }
    }

    /// Returns the entire word of which these are the parts, if it has another stem.
    fn joined(&self, text: &str, parts: &[Word]) -> Option<Word> {
        let (start, end) = (parts.first()?.start, parts.last()?.end);
        if let [only] = parts
            && only.text.len() == (end - start) as usize
        {
            return None;
        }
        let text = slice(text, start as usize..end as usize).to_ascii_lowercase();
        if !JOINED_LETTERS.contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_alphabetic()) {
            return None;
        }
        let (stem, is_stop_word) = (self.stem(&text), self.is_stop(&text));
        let is_other = parts.len() > 1 || parts.first().is_some_and(|part| part.stem != stem);
        is_other.then_some(Word { start, end, text, stem, is_stop_word })
    }

    /// Calls `take` with each word of a text, in order.
    pub fn each(&self, text: &str, mut take: impl FnMut(Word)) {
        // Searched once: a text can consist of the words that need it.
        let has_stop_word = LazyCell::new(|| {
            text.split(|c: char| !c.is_alphanumeric()).any(|word| self.stops.contains(&word.to_lowercase()))
        });
        let mut chars = text.char_indices().peekable();
        while let Some((start, first)) = chars.next() {
            if is_unspaced(first) {
                let mut end = start + first.len_utf8();
                while let Some(&(at, c)) = chars.peek() {
                    if !is_unspaced(c) {
                        break;
                    }
                    end = at + c.len_utf8();
                    chars.next();
                }
                self.pairs(text, start, end, &mut take);
                continue;
            }
            if !first.is_alphanumeric() {
                continue;
            }
            // A run of letters and digits up to a camelCase boundary.
            let mut end = start + first.len_utf8();
            let mut last = first;
            while let Some(&(at, c)) = chars.peek() {
                if !c.is_alphanumeric() && !is_mark(c) || is_unspaced(c) {
                    break;
                }
                if border(last, c, slice(text, at + c.len_utf8()..)) {
                    break;
                }
                end = at + c.len_utf8();
                last = c;
                chars.next();
            }
            let rest = slice(text, end..);
            // The word is what follows: `d'incident`.
            if rest.starts_with(['\'', '’']) && is_elided(slice(text, start..end), rest) {
                continue;
            }
            let named = match slice(text, start..end) {
                "c" | "C" if rest.starts_with("++") => Some(("cpp", 2)),
                "c" | "C" if rest.starts_with('#') => Some(("csharp", 1)),
                "f" | "F" if rest.starts_with('#') => Some(("fsharp", 1)),
                _ => None,
            };
            if let Some((name, extra)) = named {
                for _ in 0..extra {
                    chars.next();
                }
                let (start, end) = (start as u32, (end + extra) as u32);
                take(Word { start, end, text: name.to_owned(), stem: name.to_owned(), is_stop_word: false });
                continue;
            }
            let tail = apostrophe_suffix(rest);
            take(self.word(text, start..end, tail, || *has_stop_word));
            let until = end + tail;
            while chars.peek().is_some_and(|&(at, _)| at < until) {
                chars.next();
            }
        }
    }

    /// Returns the word at a position of a text, with `tail` bytes of a suffix with an apostrophe.
    fn word(&self, text: &str, at: Range<usize>, tail: usize, has_stop_word: impl FnOnce() -> bool) -> Word {
        let end = at.end + tail;
        let written = slice(text, at.start..end);
        let mut lowercase = fold_width(written).to_lowercase();
        let mut stop = self.stops.contains(&lowercase);
        let mut is_contraction = false;
        let joined =
            if tail == 0 { self.contraction(text, at.clone(), &lowercase, has_stop_word) } else { None };
        if let Some(contraction) = joined {
            contraction.clone_into(&mut lowercase);
        }
        if tail > 0 || joined.is_some() {
            lowercase = lowercase.replace('’', "'");
            stop |= self.stops.contains(&lowercase);
            is_contraction = CONTRACTIONS.iter().any(|ending| lowercase.ends_with(ending));
            // A negation is not a stop word: `can't verify` is a different task than `verify`.
            stop |= is_contraction && !lowercase.ends_with(NEGATION);
            let cut = lowercase.strip_suffix("'s").unwrap_or(&lowercase);
            stop |= self.stops.contains(cut);
            if !is_contraction {
                lowercase = cut.replace('\'', "");
            }
        } else if is_plural_abbreviation(written) {
            lowercase.pop();
        }
        // `we'd` is not a form of `wed`.
        let stem = if is_contraction { lowercase.clone() } else { self.stem(&lowercase) };
        Word { start: at.start as u32, end: end as u32, text: lowercase, stem, is_stop_word: stop }
    }
}

/// Returns the length of a suffix with an apostrophe at the start of a text: `user's`, `don't`, `I'm`.
fn apostrophe_suffix(rest: &str) -> usize {
    let Some(mark) = rest.chars().next().filter(|c| matches!(c, '\'' | '’')) else { return 0 };
    let letters = slice(rest, mark.len_utf8()..).chars().take_while(|c| c.is_alphabetic());
    let length: usize = letters.map(char::len_utf8).sum();
    if length > 0 { mark.len_utf8() + length } else { 0 }
}

impl Words {
    /// Splits a run without spaces into overlapping pairs of characters; a single character is a word by itself.
    fn pairs(&self, text: &str, start: usize, end: usize, take: &mut impl FnMut(Word)) {
        let run = slice(text, start..end);
        let ends: Vec<(usize, usize)> =
            run.char_indices().map(|(at, c)| (start + at, start + at + c.len_utf8())).collect();
        let mut give = |from: usize, to: usize, stop: bool| {
            let word_pair = slice(text, from..to).to_owned();
            let (start, end) = (from as u32, to as u32);
            take(Word { start, end, stem: word_pair.clone(), text: word_pair, is_stop_word: stop });
        };
        if let [(from, to)] = ends[..] {
            give(from, to, self.is_stop(run));
        }
        let pairs: Vec<(usize, usize, bool)> = ends
            .windows(2)
            .map(|pair| (pair[0].0, pair[1].1, self.is_stop(slice(text, pair[0].0..pair[1].1))))
            .collect();
        for (at, (from, to, stop)) in pairs.iter().enumerate() {
            // Half a stop word of Han characters and half of the next word have no meaning: `份周` of `一份周报`.
            let neighbors = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
            let is_cut = neighbors.filter_map(|at| pairs.get(at)).any(|(from, to, stop)| {
                *stop && slice(text, *from..*to).chars().all(|c| matches!(c, '\u{4e00}'..='\u{9fff}'))
            });
            give(*from, *to, *stop || is_cut);
        }
    }
}

/// Words that French and Italian elide before a vowel, without the apostrophe: `l'export`, `dell'azienda`.
const ELIDED: [&str; 16] = [
    "d", "l", "j", "m", "n", "s", "t", "c", "qu", "lorsqu", "puisqu", "jusqu", "dell", "nell", "sull", "dall",
];

/// Returns whether a word is elided before the rest of a text, which starts with the apostrophe.
fn is_elided(word: &str, rest: &str) -> bool {
    let next = rest.chars().nth(1).and_then(|c| c.to_lowercase().next());
    let is_vowel =
        |c: char| fold_accents(c.encode_utf8(&mut [0; 4])).starts_with(['a', 'e', 'i', 'o', 'u', 'h', 'y']);
    next.is_some_and(is_vowel) && ELIDED.contains(&word.to_lowercase().as_str())
}

/// Replaces full-width letters and digits, which texts in Chinese and Japanese contain, by the usual ones.
pub(crate) fn fold_width(text: &str) -> Cow<'_, str> {
    let is_wide = |c: char| matches!(c, '\u{FF01}'..='\u{FF5E}');
    if text.is_ascii() || !text.contains(is_wide) {
        return Cow::Borrowed(text);
    }
    let fold = |c: char| if is_wide(c) { char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c) } else { c };
    Cow::Owned(text.chars().map(fold).collect())
}

/// Returns whether a character is a combining mark inside a word (accents, Indic vowel signs), which `is_alphanumeric`
/// does not include.
fn is_mark(c: char) -> bool {
    matches!(u32::from(c), 0x0300..=0x036F | 0x0900..=0x0903 | 0x093A..=0x094F | 0x0E31..=0x0E4E | 0x064B..=0x065F)
}

/// British endings with the American ones.
const AMERICAN_ENDINGS: [(&str, &str); 9] = [
    ("isation", "ization"),
    ("isations", "izations"),
    ("ise", "ize"),
    ("ised", "ized"),
    ("ises", "izes"),
    ("ising", "izing"),
    ("our", "or"),
    ("yse", "yze"),
    ("ysing", "yzing"),
];

/// Fewest letters of a word with a British ending: `tour` is not `tor`.
const MIN_BRITISH_LETTERS: usize = 6;

/// Returns the American spelling of a lower-case word with a British ending.
pub(crate) fn american_spelling(word: &str) -> Option<String> {
    let endings = || AMERICAN_ENDINGS.iter();
    let (base, ending) =
        endings().find_map(|(british, american)| Some((word.strip_suffix(british)?, american)))?;
    (word.len() >= MIN_BRITISH_LETTERS).then(|| format!("{base}{ending}"))
}

/// Replaces accented Latin letters of a lower-case word by their base letters: `résumé` is matched by `resume`.
pub(crate) fn fold_accents(word: &str) -> Cow<'_, str> {
    let is_accent = |c: char| matches!(c, '\u{300}'..='\u{36F}');
    if word.is_ascii() || !word.chars().any(|c| is_accent(c) || base_letters(c).is_some()) {
        return Cow::Borrowed(word);
    }
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        match base_letters(c) {
            Some(base) => out.push_str(base),
            // A combining accent belongs to the letter before it; in other scripts it distinguishes letters.
            None if is_accent(c) && out.ends_with(|c: char| c.is_ascii_alphabetic()) => {}
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Returns the base letters of an accented letter of Latin-1 or Latin Extended-A.
fn base_letters(c: char) -> Option<&'static str> {
    Some(match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' => "a",
        'æ' => "ae",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' => "h",
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
        'ĵ' => "j",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ŀ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => "o",
        'œ' => "oe",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' => "s",
        'ß' => "ss",
        'ţ' | 'ť' | 'ŧ' => "t",
        'þ' => "th",
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => "u",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => return None,
    })
}

/// Extends a word to the surrounding run of ASCII letters and digits: `Fast` to `FastAPI`.
pub(crate) fn whole_word(text: &str, word: Range<usize>) -> &str {
    let is_inner = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_alphanumeric);
    let (mut start, mut end) = (word.start, word.end);
    while start > 0 && is_inner(start) && is_inner(start - 1) {
        start -= 1;
    }
    while end > 0 && is_inner(end - 1) && is_inner(end) {
        end += 1;
    }
    slice(text, start..end)
}

/// Returns whether emphasis inside a word cuts it off from the rest: `nalyze` in `**A**nalyze`.
pub(crate) fn is_split_by_markup(text: &str, word: Range<usize>) -> bool {
    const MARKS: [char; 3] = ['*', '~', '`'];
    let (before, after) = (slice(text, ..word.start), slice(text, word.end..));
    let (left, right) = (before.trim_end_matches(MARKS), after.trim_start_matches(MARKS));
    (left.len() < before.len() && left.ends_with(char::is_alphanumeric))
        || (right.len() < after.len() && right.starts_with(char::is_alphanumeric))
}

/// Returns whether a camelCase boundary precedes `c`: `aB` → `a B`, `ABc` → `A Bc`, but not `URLs` → `UR Ls`; ASCII
/// only.
fn border(last: char, c: char, rest: &str) -> bool {
    if !c.is_ascii_uppercase() {
        return false;
    }
    let mut rest = rest.chars();
    let next = rest.next();
    let ends = rest.next().is_none_or(|c| !c.is_alphanumeric() || c.is_ascii_uppercase());
    last.is_ascii_lowercase()
        || (last.is_ascii_uppercase()
            && next.is_some_and(|next| next.is_ascii_lowercase() && !(next == 's' && ends)))
}

/// Returns whether a word is an abbreviation in capitals with a plural ending: `URLs`.
fn is_plural_abbreviation(written: &str) -> bool {
    let capitals = written.strip_suffix('s').unwrap_or_default();
    capitals.len() > 1 && capitals.bytes().all(|b| b.is_ascii_uppercase())
}

/// Returns whether a character belongs to a script written without spaces between words: Han, Hiragana, Katakana,
/// Hangul, Thai, Lao, Khmer, Burmese.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x3040..=0x30FF | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF
        | 0xAC00..=0xD7AF | 0x1100..=0x11FF | 0xFF66..=0xFF9F | 0x0E00..=0x0EFF | 0x1000..=0x109F
        | 0x1780..=0x17FF | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let stops = ["the", "i'm", "don't", "my"].map(str::to_owned);
        Words::new(stops.into())
            .split(text)
            .into_iter()
            .map(|w| {
                assert!(text.is_char_boundary(w.start as usize) && text.is_char_boundary(w.end as usize));
                format!(
                    "{}/{}{}",
                    &text[w.start as usize..w.end as usize],
                    w.stem,
                    if w.is_stop_word { "!" } else { "" }
                )
            })
            .collect()
    }

    #[test]
    fn camel_case_is_split_and_spans_stay_correct() {
        assert_eq!(
            words("parseJSONFile from YouTube"),
            ["parse/pars", "JSON/json", "File/file", "from/from", "You/you", "Tube/tube"]
        );
    }

    #[test]
    fn language_names_keep_their_symbols() {
        assert_eq!(words("C++ and C#, f#."), ["C++/cpp", "and/and", "C#/csharp", "f#/fsharp"]);
    }

    #[test]
    fn apostrophes_are_removed_after_the_stop_list() {
        assert_eq!(
            words("I’m on the user's team, don't"),
            ["I’m/i'm!", "on/on", "the/the!", "user's/user", "team/team", "don't/don't!"]
        );
    }

    #[test]
    fn contractions_are_separate_words() {
        assert_eq!(
            words("We’d wed, she'll shell, can't cant, they've, O'Reilly"),
            [
                "We’d/we'd!",
                "wed/wed",
                "she'll/she'll!",
                "shell/shell",
                "can't/can't",
                "cant/can't",
                "they've/they've!",
                "O'Reilly/oreilli"
            ]
        );
    }

    #[test]
    fn contractions_are_read_without_their_apostrophe() {
        assert_eq!(
            words("Dont, youre the cant well; im WhatsApp IM Whats"),
            [
                "Dont/don't!",
                "youre/you're!",
                "the/the!",
                "cant/can't",
                "well/well",
                "im/i'm!",
                "Whats/what",
                "App/app",
                "IM/im",
                "Whats/what"
            ]
        );
        assert_eq!(words("Fehler im Pod"), ["Fehler/fehler", "im/im", "Pod/pod"]);
        let shipped = Words::new(super::super::weights::Weights::shipped().unwrap().stop_words);
        for word in ["whats", "dont", "im", "youre", "thats", "lets"] {
            assert!(shipped.split(&format!("{word} it"))[0].is_stop_word, "{word}");
            assert!(shipped.is_stop(word), "{word}");
        }
        assert!(shipped.split("WhatsApp it").iter().any(|word| word.text == "whats" && !word.is_stop_word));
    }

    #[test]
    fn plurals_of_abbreviations_are_not_split() {
        assert_eq!(
            words("URLs, VMs' IDs; the PDFs_CTEs URLsFromHTML HTMLParser DNSes"),
            [
                "URLs/url",
                "VMs/vm",
                "IDs/id",
                "the/the!",
                "PDFs/pdf",
                "CTEs/cte",
                "URLs/url",
                "From/from",
                "HTML/html",
                "HTML/html",
                "Parser/parser",
                "DN/dn",
                "Ses/ses"
            ]
        );
    }

    #[test]
    fn short_parts_of_a_word_are_not_words() {
        let words = Words::new(HashSet::new());
        let read = |text: &str| {
            let mut out = Vec::new();
            words.each_and_joined(text, |word, is_joined| {
                out.push(format!("{}{}", word.text, if is_joined { "+" } else { "" }));
            });
            out
        };
        assert_eq!(read("iOS FsUnit, LaTeX"), ["ios+", "unit", "fsunit+", "latex+"]);
        assert_eq!(read("PDFs and URLs"), ["pdf", "pdfs+", "and", "url"]);
        assert_eq!(read("pH of OAuth2"), ["p", "h", "of", "o", "auth2"]);
        assert_eq!(read("user's C++"), ["user", "cpp"]);
    }

    #[test]
    fn single_letters_keep_their_accents() {
        assert_eq!(words("ä über"), ["ä/ä", "über/uber"]);
    }

    #[test]
    fn words_after_an_elision_are_words_of_their_own() {
        assert_eq!(
            words("l'export d’incident, Qu'il dell'Azienda O'Reilly n'roll"),
            [
                "export/export",
                "incident/incid",
                "il/il",
                "Azienda/azienda",
                "O'Reilly/oreilli",
                "n'roll/nroll"
            ]
        );
    }

    #[test]
    fn full_width_letters_are_the_usual_ones() {
        assert_eq!(words("ＰＤＦの Ｅｘｃｅｌ２"), ["ＰＤＦ/pdf", "の/の", "Ｅｘｃｅｌ２/excel2"]);
    }

    #[test]
    fn pairs_that_cut_a_stop_word_are_stop_words() {
        let words = Words::new(["一份".to_owned(), "って".to_owned()].into());
        let stops = |text: &str| {
            let stops = words.split(text).into_iter().filter(|word| word.is_stop_word);
            stops.map(|word| word.text).collect::<Vec<_>>()
        };
        assert_eq!(stops("写一份周报"), ["写一", "一份", "份周"]);
        assert_eq!(stops("作って"), ["って"]);
    }

    #[test]
    fn scripts_without_spaces_become_pairs() {
        assert_eq!(
            words("PDF表格提取 x字"),
            ["PDF/pdf", "表格/表格", "格提/格提", "提取/提取", "x/x", "字/字"]
        );
    }

    #[test]
    fn a_double_consonant_is_kept_in_all_forms_of_a_short_verb() {
        assert_eq!(
            words("add adds added adding erring egged ads planning odd"),
            [
                "add/add",
                "adds/add",
                "added/add",
                "adding/add",
                "erring/err",
                "egged/egg",
                "ads/ad",
                "planning/plan",
                "odd/odd"
            ]
        );
    }

    #[test]
    fn accents_and_other_alphabets_are_not_split() {
        assert_eq!(words("São Paulo, отчёт"), ["São/sao", "Paulo/paulo", "отчёт/отчёт"]);
    }

    #[test]
    fn accents_are_folded_in_stems() {
        assert_eq!(
            words("Résumés résumé cafe\u{301} naïve Straße"),
            ["Résumés/resum", "résumé/resum", "cafe\u{301}/cafe", "naïve/naiv", "Straße/strass",]
        );
        assert_eq!(
            fold_accents("и\u{306}"),
            "и\u{306}",
            "an accent of another script is a part of its letter"
        );
    }

    #[test]
    fn emphasis_inside_a_word_splits_it() {
        let text = "**A**nalyze *all* of it";
        assert!(is_split_by_markup(text, 2..3) && is_split_by_markup(text, 5..11));
        assert!(!is_split_by_markup(text, 13..16) && !is_split_by_markup(text, 18..20));
    }
}
