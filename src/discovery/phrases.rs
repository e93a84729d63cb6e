//! The phrases file (`assets/ranker/phrases.yaml`): verbs, request openings, exclusion phrases and function words of
//! languages, as written and compiled for matching.

use serde::Deserialize;

use super::fast_hash::{FastMap, FastSet};
use super::tokenize::Words;
use skills_skill::slice;

/// A language, defined by its function words.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageWords {
    /// ISO 639-1 code.
    pub code: String,
    /// English name.
    pub name: String,
    /// Its function words.
    #[serde(deserialize_with = "word_list")]
    pub words: Vec<String>,
    /// Letters that distinguish it from the languages it shares words with.
    #[serde(default)]
    pub letters: String,
}

/// Phrases that mark a clause about what a skill is not for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExclusionPhrases {
    /// Phrases at the start of a segment.
    pub openings: Vec<String>,
    /// Phrases at the start of a segment, also after one of `subjects`.
    #[serde(default)]
    pub statements: Vec<String>,
    /// Phrases at the start of a segment that count only after one of `subjects`.
    #[serde(default)]
    pub limits: Vec<String>,
    /// Names for the skill as the subject of a sentence.
    #[serde(default)]
    pub subjects: Vec<String>,
    /// Phrases after a subject that the skill does not cover.
    #[serde(default)]
    pub declarations: Vec<String>,
    /// Phrases inside a segment.
    pub inside: Vec<String>,
    /// Phrases inside a segment that count after a comma, after a word of `joins`, or with a capitalized “NOT”.
    #[serde(default)]
    pub negations: Vec<String>,
    /// Words after “not” that make it no exclusion in brackets or after a comma.
    #[serde(default, deserialize_with = "word_list")]
    pub qualifiers: Vec<String>,
    /// Words before “, not X” that make it a statement about something else.
    #[serde(default, deserialize_with = "word_list")]
    pub definitions: Vec<String>,
    /// Words that join a phrase of `negations` to the text before it.
    #[serde(default, deserialize_with = "word_list")]
    pub joins: Vec<String>,
    /// Phrases that begin like an exclusion but are a compound.
    #[serde(default)]
    pub compounds: Vec<String>,
    /// Phrases that end an exclusion: what follows is not excluded.
    #[serde(default)]
    pub ends: Vec<String>,
    /// Phrases at the start of a segment after an exclusion that refer elsewhere: it belongs to the exclusion.
    #[serde(default)]
    pub redirects: Vec<String>,
    /// Longer phrases that begin like one of `redirects` and state what the skill is for.
    #[serde(default)]
    pub purposes: Vec<String>,
    /// Phrases of scripts without spaces at the start of a part of a sentence: what follows is excluded.
    #[serde(default, deserialize_with = "word_list")]
    pub unspaced_openings: Vec<String>,
    /// The same at its end: what precedes is excluded.
    #[serde(default, deserialize_with = "word_list")]
    pub unspaced_endings: Vec<String>,
    /// Words before a phrase inside a segment that turn it into a condition.
    #[serde(deserialize_with = "word_list")]
    pub conditions: Vec<String>,
}

/// The phrases file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phrases {
    /// Verbs of requests and skills.
    #[serde(deserialize_with = "word_list")]
    pub verbs: Vec<String>,
    /// Polite words before the actual request.
    #[serde(deserialize_with = "word_list")]
    pub politeness: Vec<String>,
    /// Openings of a request, such as “can you”.
    pub asking_forms: Vec<String>,
    /// Words that may follow such an opening.
    #[serde(deserialize_with = "word_list")]
    pub asking_tail: Vec<String>,
    /// Words that end the head of a request.
    #[serde(deserialize_with = "word_list")]
    pub head_cues: Vec<String>,
    /// Sequences of words that end the head of a request.
    pub head_phrases: Vec<String>,
    /// Phrases of a description that introduce when to use the skill.
    pub trigger_cues: Vec<String>,
    /// Phrases that make a clause of a description an exclusion.
    pub exclusions: ExclusionPhrases,
    /// Languages by their function words.
    pub languages: Vec<LanguageWords>,
    /// Function words that are English words too.
    #[serde(default, deserialize_with = "word_list")]
    pub english_words: Vec<String>,
}

fn word_list<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    Ok(String::deserialize(d)?.split_whitespace().map(str::to_owned).collect())
}

/// A sequence of words, each with alternatives.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Vec<Vec<String>>);

impl Pattern {
    fn new(text: &str) -> Self {
        let word = |word: &str| word.split('|').map(str::to_owned).collect();
        Self(text.split_whitespace().map(word).collect())
    }

    /// Returns the number of tokens from `at` on that the pattern matches; `None` if it does not match.
    pub fn covers(&self, tokens: &[Token<'_>], at: usize) -> Option<usize> {
        let rest = tokens.get(at..at + self.0.len())?;
        let all = rest.iter().zip(&self.0).all(|(token, words)| words.contains(&token.text));
        all.then_some(self.0.len())
    }
}

/// A run of letters, digits and inner apostrophes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// First byte in the text.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// The text as written.
    pub written: &'a str,
    /// The text in lower case, with a straight apostrophe.
    pub text: String,
}

/// Splits a text into tokens; their offsets count from `base`.
pub(crate) fn tokens(text: &str, base: usize) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((start, first)) = chars.next() {
        if !first.is_alphanumeric() {
            continue;
        }
        let mut end = start + first.len_utf8();
        while let Some(&(at, c)) = chars.peek() {
            let next = slice(text, at + c.len_utf8()..).chars().next();
            let inner = matches!(c, '\'' | '’') && next.is_some_and(char::is_alphabetic);
            if !c.is_alphanumeric() && !inner {
                break;
            }
            end = at + c.len_utf8();
            chars.next();
        }
        let written = slice(text, start..end);
        out.push(Token {
            start: base + start,
            end: base + end,
            written,
            text: written.to_lowercase().replace('’', "'"),
        });
    }
    out
}

/// The phrases, compiled for matching.
#[derive(Debug)]
pub(crate) struct Lexicon {
    /// Stems of the verbs.
    pub verbs: FastSet<String>,
    pub politeness: FastSet<String>,
    pub asking_forms: Vec<Pattern>,
    pub asking_tail: FastSet<String>,
    pub head_cues: FastSet<String>,
    pub head_phrases: Vec<Pattern>,
    pub trigger_cues: Vec<Pattern>,
    pub exclusion_openings: Vec<Pattern>,
    pub exclusion_statements: Vec<Pattern>,
    pub exclusion_limits: Vec<Pattern>,
    pub exclusion_subjects: Vec<Pattern>,
    pub exclusion_declarations: Vec<Pattern>,
    pub exclusion_inside: Vec<Pattern>,
    pub exclusion_negations: Vec<Pattern>,
    pub exclusion_qualifiers: FastSet<String>,
    pub exclusion_definitions: FastSet<String>,
    pub exclusion_joins: FastSet<String>,
    pub exclusion_compounds: Vec<Pattern>,
    pub exclusion_ends: Vec<Pattern>,
    pub exclusion_redirects: Vec<Pattern>,
    pub exclusion_purposes: Vec<Pattern>,
    pub exclusion_conditions: FastSet<String>,
    pub unspaced_exclusion_openings: Vec<String>,
    pub unspaced_exclusion_endings: Vec<String>,
    /// Code and English name of each language.
    pub languages: Vec<(String, String)>,
    /// Distinguishing letters of each language, in the order of `languages`.
    pub letters: Vec<String>,
    /// Function words that alone are not evidence of a language, because English has them too.
    pub english_words: FastSet<String>,
    /// Function words, with a bit set of the languages that have them.
    pub function_words: FastMap<String, u32>,
}

impl Lexicon {
    /// Compiles a phrases file.
    pub fn new(phrases: &Phrases, words: &Words) -> Self {
        let set = |list: &[String]| list.iter().cloned().collect();
        let patterns = |list: &[String]| list.iter().map(|text| Pattern::new(text)).collect();
        let mut function_words: FastMap<String, u32> = FastMap::default();
        for (at, language) in phrases.languages.iter().enumerate() {
            for word in &language.words {
                *function_words.entry(word.clone()).or_default() |= 1 << at;
            }
        }
        Self {
            verbs: phrases.verbs.iter().map(|verb| words.stem(verb)).collect(),
            politeness: set(&phrases.politeness),
            asking_forms: patterns(&phrases.asking_forms),
            asking_tail: set(&phrases.asking_tail),
            head_cues: set(&phrases.head_cues),
            head_phrases: patterns(&phrases.head_phrases),
            trigger_cues: patterns(&phrases.trigger_cues),
            exclusion_openings: patterns(&phrases.exclusions.openings),
            exclusion_statements: patterns(&phrases.exclusions.statements),
            exclusion_limits: patterns(&phrases.exclusions.limits),
            exclusion_subjects: patterns(&phrases.exclusions.subjects),
            exclusion_declarations: patterns(&phrases.exclusions.declarations),
            exclusion_inside: patterns(&phrases.exclusions.inside),
            exclusion_negations: patterns(&phrases.exclusions.negations),
            exclusion_qualifiers: set(&phrases.exclusions.qualifiers),
            exclusion_definitions: set(&phrases.exclusions.definitions),
            exclusion_joins: set(&phrases.exclusions.joins),
            exclusion_compounds: patterns(&phrases.exclusions.compounds),
            exclusion_ends: patterns(&phrases.exclusions.ends),
            exclusion_redirects: patterns(&phrases.exclusions.redirects),
            exclusion_purposes: patterns(&phrases.exclusions.purposes),
            exclusion_conditions: set(&phrases.exclusions.conditions),
            unspaced_exclusion_openings: phrases.exclusions.unspaced_openings.clone(),
            unspaced_exclusion_endings: phrases.exclusions.unspaced_endings.clone(),
            languages: phrases.languages.iter().map(|l| (l.code.clone(), l.name.clone())).collect(),
            english_words: set(&phrases.english_words),
            letters: phrases.languages.iter().map(|l| l.letters.clone()).collect(),
            function_words,
        }
    }
}

/// Returns the length of the longest match of any pattern at a token.
pub(crate) fn longest(patterns: &[Pattern], tokens: &[Token<'_>], at: usize) -> Option<usize> {
    patterns.iter().filter_map(|pattern| pattern.covers(tokens, at)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_alternatives_word_for_word() {
        let pattern = Pattern::new("can|could you");
        let text = "Could you, please, don’t";
        let tokens = tokens(text, 10);
        assert_eq!(
            tokens.iter().map(|t| t.text.as_str()).collect::<Vec<_>>(),
            ["could", "you", "please", "don't"]
        );
        assert_eq!((tokens[1].start, tokens[1].end), (16, 19));
        assert_eq!(pattern.covers(&tokens, 0), Some(2));
        assert_eq!(pattern.covers(&tokens, 1), None);
        assert_eq!(pattern.covers(&tokens, 4), None);
    }
}
