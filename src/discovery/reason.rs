//! Summarizes in one sentence why a skill has its rank, from the largest terms of its score.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::answer::{Breakdown, Signal, TermKind};
use super::index::Entry;
use super::ranking::QueryContext;
use super::reading::Reading;
use super::tokenize::is_unspaced;
use skills_skill::slice;

/// Maximum number of words that a sentence names for each place.
const MAX_NAMED_WORDS: usize = 3;

/// Where a word of the request occurs in a skill, and the quoted text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MatchedWord {
    place: Place,
    quote: String,
}

/// Where words of a request occur, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    NameAndDescription,
    Name,
    Description,
    Tags,
    Body,
    /// In the body, and in an exclusion clause of the description.
    Excluded,
}

impl Place {
    fn is_body(self) -> bool {
        matches!(self, Self::Body | Self::Excluded)
    }

    /// Describes where the matched words occur.
    fn clause(self, words: &str) -> String {
        match self {
            Self::NameAndDescription => format!("name and description contain {words}"),
            Self::Name => format!("its name contains {words}"),
            Self::Description => format!("its description contains {words}"),
            Self::Tags => format!("its tags contain {words}"),
            Self::Body => format!("only its body contains {words}"),
            Self::Excluded => format!("its body contains {words}, which its description excludes"),
        }
    }
}

/// Returns the sentence, without a final period. Quotes from a skill are verbatim.
pub(crate) fn reason(breakdown: &Breakdown, query: &QueryContext<'_>, entry: &Entry) -> String {
    let reading = query.reading;
    if let Some(part) = breakdown.parts.iter().find(|p| p.kind == TermKind::Exact) {
        let is_label = |text: &str| super::labels::normalize_label(text) == part.label;
        return if is_label(&reading.intent) {
            let document = &entry.document;
            let tag = || document.tags.iter().find(|tag| is_label(tag)).map_or(&*part.label, String::as_str);
            let (what, text) = match (is_label(document.id.as_str()), is_label(&document.name)) {
                (true, _) => ("id", document.id.as_str()),
                (false, true) => ("name", &*document.name),
                (false, false) => ("tag", tag()),
            };
            format!("the request is its {what} “{text}”")
        } else {
            format!("the request names “{}”", part.label)
        };
    }
    // The contribution of each content word through its occurrences.
    let mut contributions: BTreeMap<usize, f64> = BTreeMap::new();
    let mut shares_stop_words = false;
    for part in breakdown.parts.iter().filter(|p| p.kind == TermKind::Term) {
        match breakdown.words[part.word].query_word {
            Some(word) if reading.is_content(word) => *contributions.entry(word).or_default() += part.value,
            _ => shares_stop_words = true,
        }
    }
    let mut places: BTreeMap<Place, Vec<(f64, usize, String)>> = BTreeMap::new();
    let described = Described::default();
    for (word, value) in &contributions {
        if let Some(found) = find_word(*word, query, entry, &described) {
            places.entry(found.place).or_default().push((*value, *word, found.quote));
        }
    }
    let sum = |words: &[(f64, usize, String)]| words.iter().map(|(value, ..)| value).sum::<f64>();
    let mut groups: Vec<_> = places.into_iter().collect();
    groups.sort_by(|(p, a), (q, b)| p.is_body().cmp(&q.is_body()).then(sum(b).total_cmp(&sum(a))));
    let short = groups.iter().any(|(place, _)| !place.is_body());
    let mut named = Vec::new();
    let mut clauses: Vec<String> = groups
        .into_iter()
        .take(2)
        .map(|(place, mut words)| {
            words.sort_by(|a, b| b.0.total_cmp(&a.0));
            // “GitHub” matches both “git” and “hub”: quote it once.
            let mut quoted = BTreeSet::new();
            words.retain(|(.., quote)| quoted.insert(quote.to_lowercase()));
            words.truncate(MAX_NAMED_WORDS);
            words.sort_by_key(|(_, word, _)| *word);
            named.extend(words.iter().map(|(_, word, _)| *word));
            place.clause(&listed(words.into_iter().map(|(.., quote)| quote)))
        })
        .collect();
    if contributions.is_empty() && shares_stop_words {
        clauses.push("only stop words match".to_owned());
    }
    if let Some((near, words)) = meaning(breakdown, reading, &contributions) {
        let no_word = contributions.is_empty() && !shares_stop_words;
        clauses.push(if no_word { format!("no word in common, but {near}") } else { near });
        named.extend(words);
    }
    let lacking: Vec<usize> = (0..reading.words.len())
        .filter(|at| reading.is_content(*at) && reading.row(*at) == *at)
        .filter(|at| !breakdown.words.iter().any(|r| r.query_word == Some(*at)))
        .take(MAX_NAMED_WORDS)
        .collect();
    if !lacking.is_empty() && !short {
        clauses.push(format!("it lacks {}", quoted(&lacking, reading)));
        named.extend(lacking);
    }
    if clauses.is_empty() {
        clauses.push("only the meaning is similar".to_owned());
    }
    for word in named.into_iter().filter(|word| reading.is_corrected(*word)) {
        clauses.push(format!("“{}” was read as “{}”", reading.written(word), reading.read_as(word)));
    }
    clauses.join("; ")
}

/// The complete description of a skill and the stems that it excludes, computed on first use.
#[derive(Default)]
struct Described {
    lower: OnceCell<String>,
    stems: OnceCell<Vec<u32>>,
}

fn stems_of(text: &str, query: &QueryContext<'_>) -> Vec<u32> {
    let mut found = Vec::new();
    query.router.words.each_and_joined(text, |w, _| found.extend(query.cx.index.vocabulary.find(&w.stem)));
    found
}

/// Returns the prefix that all words with this stem share: stemming changes at most the last letter of a stem, and
/// more of short ones.
fn common_start(stem: &str) -> &str {
    const SHORT: usize = 3;
    if stem.chars().count() <= SHORT {
        return "";
    }
    stem.char_indices().next_back().map_or("", |(last, _)| slice(stem, ..last))
}

/// Finds where a word of the request occurs in a skill, and how it is written there.
fn find_word(
    word: usize,
    query: &QueryContext<'_>,
    entry: &Entry,
    described: &Described,
) -> Option<MatchedWord> {
    let reading = query.reading;
    let index = query.cx.index;
    let words = &query.router.words;
    let stems = &query.stems[word];
    let document = &entry.document;
    let in_places = |places: &[super::analysis::Place], text: &str| -> Vec<String> {
        let of = places.iter().filter(|place| stems.contains(&place.what));
        of.map(|p| whole_word(text, p.start as usize..p.end as usize).to_owned()).collect()
    };
    let name = in_places(&entry.places[0], &document.name);
    let description = in_places(&entry.places[1], &document.description);
    let wanted = reading.read_as(word).to_lowercase();
    let best = |forms: &[String]| {
        let same = forms.iter().find(|form| form.to_lowercase() == wanted);
        same.or(forms.first()).cloned()
    };
    let both: Vec<String> = description
        .iter()
        .filter(|form| name.iter().any(|other| other.to_lowercase() == form.to_lowercase()))
        .map(|form| form.to_lowercase())
        .collect();
    let is = |place, form: Option<String>| form.map(|form| MatchedWord { place, quote: quote(&form) });
    is(Place::NameAndDescription, best(&both))
        .or_else(|| is(Place::Name, best(&name)))
        .or_else(|| is(Place::Description, best(&description)))
        .or_else(|| {
            let mut forms = Vec::new();
            for tag in &document.tags {
                words.each_and_joined(tag, |w, _| {
                    if index.vocabulary.find(&w.stem).is_some_and(|stem| stems.contains(&stem)) {
                        forms.push(whole_word(tag, w.start as usize..w.end as usize).to_owned());
                    }
                });
            }
            is(Place::Tags, best(&forms))
        })
        .or_else(|| {
            // The text of the body is not available here, so only a word with a single form in all skills can be
            // quoted.
            let stem = *stems.first()?;
            // Forms of fewer than three letters, which have short stems, are not stored.
            let (text, written) = (index.vocabulary.stem(stem), index.vocabulary.written(stem));
            let is_single = stems.len() == 1 && text.chars().nth(2).is_some();
            let only = is_single.then(|| index.forms.only_form(stem, written)).flatten();
            let read = reading.read_as(word);
            let quote = if let Some(only) = only {
                quote(only)
            } else if !read.chars().any(|c| c.is_alphabetic() && !is_unspaced(c)) {
                // Numbers and characters of unspaced scripts have no other forms.
                quote(read)
            } else {
                let known = index.forms.contains(&read.to_lowercase());
                format!("a form of {}", quote(if known { read } else { index.vocabulary.written(stem) }))
            };
            let lower = described.lower.get_or_init(|| document.description.to_lowercase());
            let described = |stem: &u32| {
                lower.contains(common_start(index.vocabulary.stem(*stem)))
                    && described.stems.get_or_init(|| stems_of(&document.description, query)).contains(stem)
            };
            let excluded = stems.iter().any(described);
            Some(MatchedWord { place: if excluded { Place::Excluded } else { Place::Body }, quote })
        })
}

/// Describes the semantic contribution beyond shared words, and returns the words that it names.
fn meaning(
    breakdown: &Breakdown,
    reading: &Reading,
    contributions: &BTreeMap<usize, f64>,
) -> Option<(String, Vec<usize>)> {
    let semantic = breakdown.signals[super::breakdown::column(Signal::Semantic)];
    let text: f64 = breakdown.signals[..3].iter().sum();
    if semantic <= 0.0 || (semantic < text * 0.5 && !contributions.is_empty()) {
        return None;
    }
    let mut words: Vec<(f64, usize)> = breakdown
        .words
        .iter()
        .filter_map(|row| Some((row.by_signal[3], row.query_word?)))
        .filter(|(value, word)| *value > semantic * 0.15 && reading.is_content(*word))
        .collect();
    words.sort_by(|a, b| b.0.total_cmp(&a.0));
    words.truncate(MAX_NAMED_WORDS);
    words.sort_by_key(|(_, word)| *word);
    let near: Vec<usize> =
        words.into_iter().map(|(_, word)| word).filter(|w| !contributions.contains_key(w)).collect();
    let text = if near.is_empty() {
        "similar meaning".to_owned()
    } else {
        format!("similar in meaning to {}", quoted(&near, reading))
    };
    Some((text, near))
}

/// Extends a word to the surrounding run of ASCII letters and digits: `Fast` to `FastAPI`.
fn whole_word(text: &str, word: Range<usize>) -> &str {
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

fn quote(word: &str) -> String {
    format!("“{word}”")
}

/// Quotes words of the request as they were read, merging overlapping pairs of characters.
fn quoted(words: &[usize], reading: &Reading) -> String {
    let mut texts: Vec<(Range<usize>, String)> = Vec::new();
    for word in words {
        let at = &reading.words[*word].word;
        let (start, end) = (at.start as usize, at.end as usize);
        match texts.last_mut() {
            Some((range, text)) if start < range.end => {
                range.end = end;
                slice(&reading.intent, range.clone()).clone_into(text);
            }
            _ => texts.push((start..end, reading.read_as(*word).to_owned())),
        }
    }
    listed(texts.into_iter().map(|(_, text)| quote(&text)))
}

/// Joins words as `a, b and c`.
fn listed(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}
