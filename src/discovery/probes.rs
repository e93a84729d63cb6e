//! Probe requests: requests that a user could make, derived clause by clause from the claims of a description.

use std::ops::Range;

use super::document::Document;
use super::phrases::{Lexicon, longest, tokens};
use super::router::Router;
use super::task::{exclusion_ranges, segments, sentences};
use super::tokenize::Words;
use skills_skill::{prefix, slice};

/// Maximum number of content words of a probe: requests are rarely longer.
const MAX_PROBE_WORDS: usize = 14;
/// Number of bytes of a description that yield probes: several times what any client shows.
const MAX_PROBED_BYTES: usize = 8 << 10;
/// Minimum number of content words of a probe: one word is not specific to one skill.
const MIN_PROBE_WORDS: usize = 2;

/// A clause of a description that makes a claim, and the requests derived from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeClause {
    /// The clause as written.
    pub text: String,
    /// Requests derived from it.
    pub probes: Vec<String>,
}

impl Router {
    /// Returns the clauses of a document's description with at most `limit` probe requests, distributed round-robin
    /// over the clauses. Excluded text yields no probes.
    #[must_use]
    pub fn probes(&self, document: &Document, limit: usize) -> Vec<ProbeClause> {
        let description = prefix(&document.description, MAX_PROBED_BYTES);
        let mut clauses = clauses(description, &self.words, &self.lexicon);
        limit_in_turn(&mut clauses, limit);
        clauses
    }
}

/// Limits the probes round-robin: keeps the first of each clause, then the second of each, and so on.
fn limit_in_turn(clauses: &mut Vec<ProbeClause>, limit: usize) {
    let mut counts = vec![0; clauses.len()];
    let mut left = limit;
    let longest = clauses.iter().map(|clause| clause.probes.len()).max().unwrap_or(0);
    for turn in 1..=longest {
        for (count, clause) in counts.iter_mut().zip(clauses.iter()) {
            if left > 0 && clause.probes.len() >= turn {
                *count += 1;
                left -= 1;
            }
        }
    }
    for (clause, count) in clauses.iter_mut().zip(counts) {
        clause.probes.truncate(count);
    }
    clauses.retain(|clause| !clause.probes.is_empty());
}

fn clauses(description: &str, words: &Words, lexicon: &Lexicon) -> Vec<ProbeClause> {
    let excluded = exclusion_ranges(description, lexicon);
    let mut out: Vec<ProbeClause> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for sentence in sentences(description) {
        for segment in segments(description, sentence) {
            let Some(claimed) = outside(&segment, &excluded) else { continue };
            let text = slice(description, without_cue(description, claimed, lexicon));
            let mut probes = Vec::new();
            for probe in probes_of(text, words, lexicon) {
                if seen.insert(probe.to_lowercase()) {
                    probes.push(probe);
                }
            }
            if !probes.is_empty() {
                out.push(ProbeClause { text: trimmed(text).to_owned(), probes });
            }
        }
    }
    out
}

/// Returns the part of a segment before its first exclusion.
fn outside(segment: &Range<usize>, excluded: &[Range<usize>]) -> Option<Range<usize>> {
    let first = excluded.iter().find(|range| range.start < segment.end && range.end > segment.start);
    match first {
        None => Some(segment.clone()),
        Some(range) if range.start > segment.start => Some(segment.start..range.start),
        Some(_) => None,
    }
}

/// Returns a segment without its opening, such as “Use when the user asks to …”.
fn without_cue(text: &str, segment: Range<usize>, lexicon: &Lexicon) -> Range<usize> {
    let tokens = tokens(slice(text, segment.clone()), segment.start);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let of_opening = match longest(&lexicon.trigger_cues, &tokens, at) {
            Some(length) => length,
            None if OPENING.contains(&token.text.as_str()) => 1,
            None => break,
        };
        at += of_opening;
    }
    tokens.get(at).map_or(segment.end..segment.end, |token| token.start..segment.end)
}

/// Words of an opening that do not name a subject.
const OPENING: &[&str] = &[
    "a",
    "about",
    "also",
    "any",
    "ask",
    "asks",
    "asking",
    "be",
    "for",
    "if",
    "includes",
    "including",
    "is",
    "it",
    "mention",
    "mentions",
    "mentioning",
    "needs",
    "needing",
    "on",
    "or",
    "should",
    "skill",
    "such",
    "tasks",
    "that",
    "the",
    "their",
    "they",
    "this",
    "to",
    "trigger",
    "triggers",
    "use",
    "used",
    "user",
    "users",
    "want",
    "wants",
    "when",
    "whenever",
    "with",
    "work",
    "working",
    "you",
];

fn probes_of(text: &str, words: &Words, lexicon: &Lexicon) -> Vec<String> {
    let mut out = Vec::new();
    for quoted in quoted(text) {
        let quoted = first_words(quoted, words);
        if content_words(quoted, words) >= MIN_PROBE_WORDS {
            out.push(trimmed(quoted).to_owned());
        }
    }
    let text = trimmed(text);
    let count = content_words(text, words);
    let items = items(text);
    if (MIN_PROBE_WORDS..=MAX_PROBE_WORDS).contains(&count) {
        out.push(text.to_owned());
    } else if items.len() < 2 && count > MAX_PROBE_WORDS {
        out.push(first_words(text, words).to_owned());
    }
    if items.len() < 2 {
        return out;
    }
    // “Extracts tables, forms and images”: each item becomes a request with the verb of the first.
    let verb = words
        .split(text)
        .into_iter()
        .find(|word| !word.is_stop_word)
        .filter(|word| lexicon.verbs.contains(&word.stem));
    let verb = verb.and_then(|word| text.get(word.start as usize..word.end as usize));
    for (place, item) in items.into_iter().enumerate() {
        let count = content_words(item, words);
        let has_verb = words.split(item).into_iter().any(|word| lexicon.verbs.contains(&word.stem));
        match verb.filter(|_| place > 0 && !has_verb) {
            Some(verb) if count >= 1 => out.push(format!("{verb} {item}")),
            _ if (MIN_PROBE_WORDS..=MAX_PROBE_WORDS).contains(&count) => out.push(item.to_owned()),
            _ => {}
        }
    }
    out
}

/// Returns the texts in quotation marks, which are example requests.
fn quoted(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for (open, close) in [('"', '"'), ('“', '”')] {
        let mut rest = text;
        while let Some((_, behind)) = rest.split_once(open) {
            let Some((inner, next)) = behind.split_once(close) else { break };
            out.push(inner);
            rest = next;
        }
    }
    out
}

/// Splits an enumeration into its items.
fn items(text: &str) -> Vec<&str> {
    text.split([',', '、', '，', ':'])
        .flat_map(|part| part.split(" and "))
        .flat_map(|part| part.split(" or "))
        .map(|item| trimmed(item.trim_start_matches("and ").trim_start_matches("or ")))
        .filter(|item| !item.is_empty())
        .collect()
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| {
        c.is_whitespace()
            || matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '"' | '“' | '”' | '(' | ')' | '-' | '–' | '—')
    })
}

fn content_words(text: &str, words: &Words) -> usize {
    let mut count = 0;
    words.each(text, |word| count += usize::from(!word.is_stop_word));
    count
}

fn first_words<'a>(text: &'a str, words: &Words) -> &'a str {
    let content = words.split(text).into_iter().filter(|word| !word.is_stop_word);
    let end = content.take(MAX_PROBE_WORDS).last().map_or(0, |word| word.end as usize);
    slice(text, ..end)
}

#[cfg(test)]
mod tests {
    use super::super::weights::Weights;
    use super::*;

    fn probes(description: &str, limit: usize) -> Vec<ProbeClause> {
        let router = Router::new(Weights::shipped().unwrap());
        router.probes(&Document::new("a", "a", description), limit)
    }

    fn texts(description: &str) -> Vec<String> {
        probes(description, 100).into_iter().flat_map(|clause| clause.probes).collect()
    }

    #[test]
    fn probes_are_short_however_long_the_description_is() {
        for description in
            ["alpha beta gamma ".repeat(50_000), format!("\"{}\"", "read the table ".repeat(300))]
        {
            let found = texts(&description);
            assert!(!found.is_empty());
            assert!(
                found.iter().all(|probe| probe.split_whitespace().count() <= 2 * MAX_PROBE_WORDS),
                "{found:?}"
            );
        }
    }

    #[test]
    fn each_item_of_a_clause_is_a_request() {
        let found = texts("Extracts tables, form fields and images from PDF files.");
        assert_eq!(
            found,
            [
                "Extracts tables, form fields and images from PDF files",
                "Extracts tables",
                "Extracts form fields",
                "images from PDF files"
            ]
        );
    }

    #[test]
    fn openings_and_exclusions_make_no_probe() {
        let found = probes(
            "Makes charts of sales. Use when the user asks to plot revenue by month. Not for maps of countries.",
            9,
        );
        let clauses: Vec<&str> = found.iter().map(|clause| clause.text.as_str()).collect();
        assert_eq!(clauses, ["Makes charts of sales", "plot revenue by month"]);
    }

    #[test]
    fn quoted_examples_are_unchanged_requests() {
        assert!(
            texts("Use for requests such as \"merge my two invoices\".")
                .contains(&"merge my two invoices".to_owned())
        );
    }

    #[test]
    fn every_clause_gets_a_probe_before_one_gets_two() {
        let found =
            probes("Reads logs, metrics and traces. Writes incident reports, status pages and summaries.", 3);
        let counts: Vec<usize> = found.iter().map(|clause| clause.probes.len()).collect();
        assert_eq!(counts, [2, 1]);
    }

    #[test]
    fn texts_without_words_make_no_probe() {
        assert_eq!(texts("…"), Vec::<String>::new());
        assert_eq!(texts("PDF"), Vec::<String>::new());
    }
}
