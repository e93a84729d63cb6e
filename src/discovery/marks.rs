//! Ranges to highlight in a name and a description, and the exclusion clause that a request matches.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::analysis::WordPosition;
use super::answer::{Mark, ScoreComponent};
use super::embedding::{DIM, Embedding};
use super::phrases::Lexicon;
use super::reading::Reading;
use super::task::{ExclusionClause, exclusion_clauses};
use super::tokenize::{Word, Words};
use super::vocabulary::StemId;
use super::weights::Weights;
use skills_skill::slice;

/// Collects the content stems of a request, including completions.
pub(crate) fn stems<'a>(reading: &'a Reading, written: impl Fn(u32) -> &'a str) -> HashSet<&'a str> {
    let mut out = HashSet::new();
    for read in reading.words.iter().filter(|w| !w.word.is_stop_word) {
        if read.completions.is_empty() {
            out.insert(read.word.stem.as_str());
        }
        out.extend(read.completions.iter().map(|id| written(*id)));
    }
    out
}

/// Marks the words of a text whose stems occur in the request.
pub(crate) fn by_stem(text: &str, stems: &HashSet<&str>, words: &Words, signal: ScoreComponent) -> Vec<Mark> {
    let mut out: Vec<Mark> = Vec::new();
    words.each_and_joined(text, |word, _| {
        if !stems.contains(word.stem.as_str()) {
            return;
        }
        match out.last_mut() {
            // Pairs of characters, and joined words with their parts, overlap: merge them into one range.
            Some(last) if last.end > word.start => {
                (last.start, last.end) = (last.start.min(word.start), last.end.max(word.end));
            }
            _ => out.push(Mark { start: word.start, end: word.end, signal }),
        }
    });
    out
}

/// Marks the words of a text whose stem numbers are in `numbers`, which must be sorted.
pub(crate) fn by_number(places: &[WordPosition], numbers: &[StemId], signal: ScoreComponent) -> Vec<Mark> {
    let mut out: Vec<Mark> = Vec::new();
    for place in places.iter().filter(|p| numbers.binary_search(&p.what).is_ok()) {
        let (start, end) = (u32::from(place.start), u32::from(place.end));
        match out.last_mut() {
            Some(last) if last.end > start => {
                (last.start, last.end) = (last.start.min(start), last.end.max(end));
            }
            _ => out.push(Mark { start, end, signal }),
        }
    }
    out
}

/// Marks words of a text that no stem matched but whose word pieces contribute at least `share` of its similarity to
/// the request's vector `query`; at most `limit`, in text order.
pub(crate) fn by_meaning(
    (text, pieces): (&str, &[WordPosition]),
    taken: &[Mark],
    query: &[i16; DIM],
    model: &Embedding,
    words: &Words,
    (share, limit): (f64, usize),
) -> Vec<Mark> {
    let mut found: Vec<(f64, u32, u32)> = Vec::new();
    let mut total = 0.0;
    for token in pieces {
        let value = model.rough_product(token.what as u16, query);
        let (start, end) = (u32::from(token.start), u32::from(token.end));
        total += value;
        match found.last_mut() {
            Some(last) if last.2 == start => {
                last.0 += value;
                last.2 = end;
            }
            _ => found.push((value, start, end)),
        }
    }
    if total <= 0.0 {
        return Vec::new();
    }
    found.retain(|(value, start, end)| {
        *value >= share * total
            && !taken.iter().any(|m| m.start < *end && *start < m.end)
            && text
                .get(*start as usize..*end as usize)
                .is_some_and(|word| !words.is_stop(&word.to_ascii_lowercase()))
    });
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(limit);
    found.sort_by_key(|(_, start, _)| *start);
    found.into_iter().map(|(_, start, end)| Mark { start, end, signal: ScoreComponent::Semantic }).collect()
}

/// Returns the exclusion clauses of a description with the content stems of what they exclude; `number` maps each stem
/// to its number.
pub(crate) fn exclusions(
    description: &str,
    clauses: &[ExclusionClause],
    words: &Words,
    mut number: impl FnMut(Word) -> u32,
) -> Vec<Exclusion> {
    let clause = |ExclusionClause { clause, subject }: &ExclusionClause| {
        let mut stems = Vec::new();
        words.each_and_joined(slice(description, subject.clone()), |word, _| {
            if !word.is_stop_word {
                stems.push(number(word));
            }
        });
        stems.sort_unstable();
        stems.dedup();
        Exclusion { start: clause.start as u32, end: clause.end as u32, stems }
    };
    clauses.iter().map(clause).collect()
}

/// A clause that states what a skill is not for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Exclusion {
    /// First byte in the description.
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
    /// Stems of the excluded subject.
    pub stems: Vec<u32>,
}

/// Returns the exclusion clause that shares most stems with a request, if any does; `query` must be sorted.
pub(crate) fn exclusion(description: &str, all: &[Exclusion], query: &[StemId]) -> Option<String> {
    let shared = |e: &Exclusion| e.stems.iter().filter(|stem| query.binary_search(stem).is_ok()).count();
    // The first of several with the same number.
    let touched = all.iter().rev().max_by_key(|e| shared(e)).filter(|e| shared(e) > 0)?;
    Some(description.get(touched.start as usize..touched.end as usize)?.trim().to_owned())
}

/// The shipped stop words and phrases.
static SHIPPED: LazyLock<Option<(Words, Lexicon)>> = LazyLock::new(|| {
    let weights = Weights::shipped().ok()?;
    let words = Words::new(weights.stop_words);
    let lexicon = Lexicon::new(&weights.phrases, &words);
    Some((words, lexicon))
});

/// Returns whether a text contains a word in any form, as the ranker reads words: `script` is not in `subscription`.
#[must_use]
pub fn contains_word(text: &str, word: &str) -> bool {
    let Some((words, _)) = SHIPPED.as_ref() else { return false };
    let mut stems: HashSet<String> = words.split(word).into_iter().map(|part| part.stem).collect();
    let is_empty = stems.is_empty();
    words.each_and_joined(text, |part, _| {
        stems.remove(&part.stem);
    });
    !is_empty && stems.is_empty()
}

/// Returns the exclusion clause of a description that a request matches, using the shipped phrases and no index, so
/// that it also works for a skill that is not a result.
#[must_use]
pub fn matched_exclusion(description: &str, request: &str) -> Option<String> {
    let (words, lexicon) = SHIPPED.as_ref()?;
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut number = |word: Word| {
        let next = numbers.len() as u32;
        *numbers.entry(word.stem).or_insert(next)
    };
    let all = exclusions(description, &exclusion_clauses(description, lexicon), words, &mut number);
    let mut query = Vec::new();
    words.each(request, |word| {
        if !word.is_stop_word {
            query.push(number(word));
        }
    });
    query.sort_unstable();
    exclusion(description, &all, &query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_form_and_as_a_whole() {
        let text = "Cancels a subscription, or refunds it with Xcode and GitHub.";
        for (word, expected) in [
            ("subscriptions", true),
            ("refund", true),
            ("script", false),
            ("code", false),
            ("github", true),
            ("GitHub", true),
            ("", false),
        ] {
            assert_eq!(contains_word(text, word), expected, "{word}");
        }
    }

    #[test]
    fn each_exclusion_is_found_with_its_stems() {
        let weights = Weights::shipped().unwrap();
        let words = Words::new(weights.stop_words);
        let lexicon = Lexicon::new(&weights.phrases, &words);
        let mut seen: Vec<String> = Vec::new();
        let text = "Makes tables. Not for filling in the forms; do not use with .png images. Fast.";
        let found = exclusions(text, &exclusion_clauses(text, &lexicon), &words, |word| {
            seen.push(word.stem);
            (seen.len() - 1) as u32
        });
        assert_eq!(seen, ["fill", "form", "png", "imag"]);
        assert_eq!(exclusion(text, &found, &[3]).as_deref(), Some("do not use with .png images."));
        assert_eq!(exclusion(text, &found, &[9]), None);
    }

    #[test]
    fn an_exclusion_is_matched_without_an_index() {
        let text = "Creates bills for customers. Not for subscriptions.";
        let clause = matched_exclusion(text, "cancel my subscription");
        assert_eq!(clause.as_deref(), Some("Not for subscriptions."));
        assert_eq!(matched_exclusion(text, "bills for a customer"), None);
    }

    #[test]
    fn matched_clause_is_excluded_from_the_ranking() {
        // A word of a compound, of a quote or of a condition is not an exclusion, nor is the rest of its sentence.
        for text in [
            "Keeps the books of not for profit organizations.",
            "Finds films that are not suitable for children.",
            "Answers \"wip; not for release\" notes.",
        ] {
            for request in ["profit organizations", "children", "release notes"] {
                assert_eq!(matched_exclusion(text, request), None, "{text}");
            }
        }
        let text = "Plans trips, but not for hotels (by train). For flights, see flight-finder. Does not book tours.";
        for (request, clause) in [
            ("find hotels", Some("but not for hotels (by train).")),
            ("plan trips", None),
            ("by train", Some("but not for hotels (by train).")),
            ("cheap flights", Some("For flights, see flight-finder.")),
            ("book tours", Some("Does not book tours.")),
        ] {
            assert_eq!(matched_exclusion(text, request).as_deref(), clause, "{request}");
        }
    }
}
