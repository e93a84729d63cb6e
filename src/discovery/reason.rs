//! Summarizes in one sentence why a skill has its rank, from the largest terms of its score.

use std::collections::{BTreeMap, BTreeSet};

use super::analysis::WordPosition;
use super::answer::{Breakdown, BreakdownTerm, ScoreComponent, TermKind};
use super::document::Document;
use super::index::Entry;
use super::phrases::Lexicon;
use super::ranking::QueryContext;
use super::reading::Reading;
use super::tokenize::{is_unspaced, whole_word};
use super::vocabulary::StemId;
use skills_base::text::join_with_and;
use skills_skill::slice;

/// Maximum number of words that a sentence names for each place.
const MAX_NAMED_WORDS: usize = 3;

/// A word of the request as a skill writes it: contribution to the score, word, quoted text.
type Quote = (f64, usize, String);

/// Where a word of the request occurs in a skill, and the quoted text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MatchedWord {
    place: MatchedField,
    quote: String,
}

/// Where words of a request occur, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MatchedField {
    NameAndDescription,
    Name,
    Description,
    Tags,
    Body,
    /// In an exclusion clause of the description; if a term of the score is from there, also in the body.
    Excluded,
}

impl MatchedField {
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
            Self::Excluded => format!("its description contains {words} only in an exclusion clause"),
        }
    }
}

/// Returns the sentence, without a final period. Quotes from a skill are verbatim. `places` are the words of its name and
/// description.
pub(crate) fn reason(
    breakdown: &Breakdown,
    query: &QueryContext<'_>,
    entry: &Entry,
    places: &[Vec<WordPosition>; 2],
) -> String {
    let reading = query.reading;
    if let Some(part) = breakdown.terms.iter().find(|p| p.kind == TermKind::Exact) {
        return exact_reason(part, reading, &entry.document);
    }
    let (contributions, shares_stop_words) = contributions(breakdown, reading);
    let in_exclusions = excluded_words(query, entry);
    let stated = entry.document.full_description();
    let texts = [(&*entry.document.name, &*places[0]), (&*stated, &*places[1])];
    let tags = tag_words(query, entry);
    let mut places: BTreeMap<MatchedField, Vec<Quote>> = BTreeMap::new();
    for (word, value) in &contributions {
        if let Some(found) = find_word(*word, query, entry, texts, &tags, &in_exclusions) {
            places.entry(found.place).or_default().push((*value, *word, found.quote));
        }
    }
    // Words of exclusion clauses are not ranked, but they are not missing either.
    let others = (0..reading.words.len())
        .filter(|at| reading.row(*at) == *at && reading.is_evidence(*at) && !contributions.contains_key(at));
    let excluded: BTreeMap<usize, String> =
        others.filter_map(|at| Some((at, excluded_quote(at, query, &in_exclusions)?))).collect();
    if !excluded.is_empty() {
        let words = excluded.iter().map(|(at, quote)| (0.0, *at, quote.clone()));
        places.entry(MatchedField::Excluded).or_default().extend(words);
    }
    let sum = |words: &[Quote]| words.iter().map(|(value, ..)| value).sum::<f64>();
    let mut groups: Vec<_> = places.into_iter().collect();
    groups.sort_by(|(p, a), (q, b)| p.is_body().cmp(&q.is_body()).then(sum(b).total_cmp(&sum(a))));
    let short = groups.iter().any(|(place, _)| !place.is_body());
    // What the description excludes is always reported.
    let (excluding, mut groups): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(place, _)| *place == MatchedField::Excluded);
    groups.truncate(2);
    let mut named = Vec::new();
    let mut clauses: Vec<String> = groups
        .into_iter()
        .chain(excluding)
        .map(|(place, words)| {
            let words = named_words(place, words, &entry.document, &stated, reading);
            named.extend(words.iter().map(|(_, word, _)| *word));
            let quotes: Vec<String> = words.into_iter().map(|(.., quote)| quote).collect();
            place.clause(&join_with_and(&quotes))
        })
        .collect();
    if contributions.is_empty() && excluded.is_empty() && shares_stop_words {
        clauses.push("only stop words match".to_owned());
    }
    if let Some((near, words)) = meaning(breakdown, reading, &query.router.lexicon, &contributions) {
        let no_word = contributions.is_empty() && excluded.is_empty() && !shares_stop_words;
        clauses.push(if no_word { format!("no content word in common, but {near}") } else { near });
        named.extend(words);
    }
    let lacking = lacking_words(breakdown, reading, &excluded);
    if !lacking.is_empty() && !short {
        clauses.push(format!("it lacks {}", quoted(&lacking, reading)));
        named.extend(lacking);
    }
    if clauses.is_empty() {
        clauses.push("only the meaning is similar".to_owned());
    }
    let mut seen = BTreeSet::new();
    let corrected = named.into_iter().filter(|word| reading.is_corrected(*word) && seen.insert(*word));
    let read_as = |word| format!("“{}” was read as “{}”", reading.as_typed(word), reading.read_as(word));
    // First, because the other clauses quote what was read, and a list cuts the sentence.
    corrected.map(read_as).chain(clauses).collect::<Vec<_>>().join("; ")
}

/// Returns the sentence about a skill that the request names, or is the id, name or tag of.
fn exact_reason(part: &BreakdownTerm, reading: &Reading, document: &Document) -> String {
    let is_label = |text: &str| super::labels::normalize_label(text) == part.label;
    if !is_label(&reading.intent) {
        let names = [document.id.as_str(), &document.name];
        let name = names.into_iter().find(|name| is_label(name)).unwrap_or(&part.label);
        return format!("the request names “{name}”");
    }
    let tag = || document.tags.iter().find(|tag| is_label(tag)).map_or(&*part.label, String::as_str);
    let (what, text) = match (is_label(document.id.as_str()), is_label(&document.name)) {
        (true, _) => ("id", document.id.as_str()),
        (false, true) => ("name", &*document.name),
        (false, false) => ("tag", tag()),
    };
    format!("the request is its {what} “{text}”")
}

/// Returns the contribution of each content word through its occurrences, and whether stop words contribute.
fn contributions(breakdown: &Breakdown, reading: &Reading) -> (BTreeMap<usize, f64>, bool) {
    let mut contributions: BTreeMap<usize, f64> = BTreeMap::new();
    let mut shares_stop_words = false;
    for part in breakdown.terms.iter().filter(|p| p.kind == TermKind::Term) {
        match breakdown.rows[part.row].query_word {
            Some(word) if reading.is_evidence(word) => *contributions.entry(word).or_default() += part.value,
            _ => shares_stop_words = true,
        }
    }
    (contributions, shares_stop_words)
}

/// Selects the words that a clause names: those that contribute most, in the order of the request.
fn named_words(
    place: MatchedField,
    words: Vec<Quote>,
    document: &Document,
    stated: &str,
    reading: &Reading,
) -> Vec<Quote> {
    let mut words = join_pairs(words, reading, |text| match place {
        MatchedField::NameAndDescription => document.name.contains(text) && stated.contains(text),
        MatchedField::Name => document.name.contains(text),
        MatchedField::Description => stated.contains(text),
        MatchedField::Tags | MatchedField::Body | MatchedField::Excluded => false,
    });
    words.sort_by(|a, b| b.0.total_cmp(&a.0));
    // “GitHub” matches both “git” and “hub”: quote it once.
    let mut quoted = BTreeSet::new();
    words.retain(|(.., quote)| quoted.insert(quote.to_lowercase()));
    words.truncate(MAX_NAMED_WORDS);
    words.sort_by_key(|(_, word, _)| *word);
    words
}

/// Returns the first words of the request that neither a term of the score nor an exclusion clause has.
fn lacking_words(breakdown: &Breakdown, reading: &Reading, excluded: &BTreeMap<usize, String>) -> Vec<usize> {
    let present: BTreeSet<usize> = breakdown.rows.iter().filter_map(|row| row.query_word).collect();
    let words: Vec<usize> = (0..reading.words.len()).collect();
    // Of a run of characters without spaces, a pair is not a word: only a run without any known pair is lacking.
    let runs = words.chunk_by(|_, next| reading.continues_run(*next));
    runs.filter(|run| {
        !run.iter().map(|at| reading.row(*at)).any(|at| present.contains(&at) || excluded.contains_key(&at))
    })
    .filter_map(|run| run.iter().copied().find(|at| reading.is_evidence(*at)))
    .filter(|at| reading.row(*at) == *at || reading.is_pair(*at))
    .take(MAX_NAMED_WORDS)
    .collect()
}

/// Joins the quotes of overlapping pairs of characters if the skill contains the joined text; sorts by word.
fn join_pairs(mut words: Vec<Quote>, reading: &Reading, is_contained: impl Fn(&str) -> bool) -> Vec<Quote> {
    words.sort_by_key(|(_, word, _)| *word);
    let mut out: Vec<Quote> = Vec::with_capacity(words.len());
    let mut end = 0;
    for (value, word, text) in words {
        let at = &reading.words[word].word;
        if let Some((sum, first, joined)) = out.last_mut()
            && at.start < end
        {
            let both = slice(&reading.intent, reading.words[*first].word.start as usize..at.end as usize);
            if is_contained(both) {
                *sum += value;
                *joined = quote(both);
                end = at.end;
                continue;
            }
        }
        end = at.end;
        out.push((value, word, text));
    }
    out
}

/// Collects the words of the exclusion clauses of a description, of what they exclude and of what they refer to
/// instead: stem and quote.
fn excluded_words(query: &QueryContext<'_>, entry: &Entry) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let stated = entry.document.full_description();
    for exclusion in &entry.exclusions {
        let clause = stated.get(exclusion.start as usize..exclusion.end as usize).unwrap_or_default();
        query.router.words.each_and_joined(clause, |w, _| {
            out.push((w.stem, quote(whole_word(clause, w.start as usize..w.end as usize))));
        });
    }
    out
}

/// Collects the words of the tags: stem and written form.
fn tag_words<'a>(query: &QueryContext<'_>, entry: &'a Entry) -> Vec<(StemId, &'a str)> {
    let mut out = Vec::new();
    for tag in &entry.document.tags {
        query.router.words.each_and_joined(tag, |w, _| {
            if let Some(stem) = query.cx.index.vocabulary.find(&w.stem) {
                out.push((stem, whole_word(tag, w.start as usize..w.end as usize)));
            }
        });
    }
    out
}

/// Returns how an exclusion clause writes a word of the request, if it does.
fn excluded_quote(word: usize, query: &QueryContext<'_>, clauses: &[(String, String)]) -> Option<String> {
    // The words of clauses need not be in the index.
    let read = &query.reading.words[word];
    let completions = || read.completions.iter().map(|stem| query.cx.index.vocabulary.stem(*stem));
    let is_meant = |stem: &str| {
        if read.completions.is_empty() { stem == read.word.stem } else { completions().any(|s| s == stem) }
    };
    clauses.iter().find(|(stem, _)| is_meant(stem)).map(|(_, quote)| quote.clone())
}

/// Finds where a word of the request occurs in a skill, and how it is written there. `texts` are its name and its
/// description with their words, `tags` the words of its tags.
fn find_word(
    word: usize,
    query: &QueryContext<'_>,
    entry: &Entry,
    texts: [(&str, &[WordPosition]); 2],
    tags: &[(StemId, &str)],
    excluded: &[(String, String)],
) -> Option<MatchedWord> {
    let reading = query.reading;
    let index = query.cx.index;
    let stems = &query.stems[word];
    let document = &entry.document;
    let [name, description] = texts.map(|(text, places)| -> Vec<&str> {
        let of = places.iter().filter(|place| stems.contains(&place.what));
        of.map(|place| whole_word(text, place.start as usize..place.end as usize)).collect()
    });
    let requested = reading.read_as(word).to_lowercase();
    let best = |forms: &[&str]| {
        let same = forms.iter().find(|form| form.to_lowercase() == requested);
        same.or(forms.first()).map(|form| (*form).to_owned())
    };
    let in_name: Vec<String> = name.iter().map(|form| form.to_lowercase()).collect();
    let both: Vec<String> =
        description.iter().map(|form| form.to_lowercase()).filter(|form| in_name.contains(form)).collect();
    let both: Vec<&str> = both.iter().map(String::as_str).collect();
    let is = |place, form: Option<String>| form.map(|form| MatchedWord { place, quote: quote(&form) });
    is(MatchedField::NameAndDescription, best(&both))
        .or_else(|| is(MatchedField::Name, best(&name)))
        .or_else(|| is(MatchedField::Description, best(&description)))
        .or_else(|| {
            let of = tags.iter().filter(|(stem, _)| stems.contains(stem));
            is(MatchedField::Tags, best(&of.map(|(_, form)| *form).collect::<Vec<_>>()))
        })
        .or_else(|| {
            let stem = stems.iter().copied().find(|stem| {
                let slot = index.slot_of(&document.id);
                slot.zip(query.cx.stem(*stem)).is_some_and(|(slot, found)| found.counts(slot).is_some())
            });
            let stem = stem.or(stems.first().copied())?;
            Some(match excluded_quote(word, query, excluded) {
                Some(quote) => MatchedWord { place: MatchedField::Excluded, quote },
                None => MatchedWord { place: MatchedField::Body, quote: body_quote(word, stem, query) },
            })
        })
}

/// Quotes a word of the body. The text of the body is not available here, so only a word with a single form in all
/// skills is quoted as written there.
fn body_quote(word: usize, stem: StemId, query: &QueryContext<'_>) -> String {
    let reading = query.reading;
    let index = query.cx.index;
    if reading.is_pair(word) {
        return format!("characters of {}", quote(slice(&reading.intent, reading.run(word))));
    }
    let (text, written) = (index.vocabulary.stem(stem), index.vocabulary.written_form(stem));
    let read = reading.read_as(word);
    if !read.chars().any(|c| c.is_alphabetic() && !is_unspaced(c)) {
        // Numbers and characters of unspaced scripts have no other forms.
        return quote(read);
    }
    // Forms of fewer than three letters are not stored.
    let is_stored = text.chars().nth(2).is_some();
    if let Some((form, is_part)) = index.forms.only_form(stem)
        && (is_stored || !form.chars().all(char::is_alphabetic))
    {
        return if is_part { format!("a word with {}", quote(form)) } else { quote(form) };
    }
    let at = &reading.words[word].word;
    let complete_word = whole_word(&reading.intent, at.start as usize..at.end as usize);
    let base = if index.forms.contains(&read.to_lowercase()) {
        read
    } else if !reading.is_corrected(word) && complete_word.len() > read.len() {
        complete_word
    } else {
        written
    };
    if !is_stored || index.forms.is_shared(stem, &base.to_lowercase()) {
        return format!("a word with the stem of {}", quote(read));
    }
    format!("a form of {}", quote(base))
}

/// Describes the semantic contribution beyond shared words, and returns the words that it names.
fn meaning(
    breakdown: &Breakdown,
    reading: &Reading,
    lexicon: &Lexicon,
    contributions: &BTreeMap<usize, f64>,
) -> Option<(String, Vec<usize>)> {
    let semantic = breakdown.signals[super::breakdown::column(ScoreComponent::Semantic)];
    let text: f64 = breakdown.signals[..3].iter().sum();
    if semantic <= 0.0 || (semantic < text * 0.5 && !contributions.is_empty()) {
        return None;
    }
    // Function words of another language are not stop words.
    let is_content = |word: usize| {
        let text = &reading.words[word].word.text;
        let is_function_word = reading.language.is_some_and(|l| l.has_function_word(text, lexicon));
        reading.is_evidence(word) && !is_function_word
    };
    let mut words: Vec<(f64, usize)> = breakdown
        .rows
        .iter()
        .filter_map(|row| Some((row.by_signal[3], row.query_word?)))
        .filter(|(value, word)| *value > semantic * 0.15 && is_content(*word))
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

fn quote(word: &str) -> String {
    format!("“{word}”")
}

/// Quotes words of the request as they were read; of pairs of characters, the run that they were cut from.
fn quoted(words: &[usize], reading: &Reading) -> String {
    let mut texts: Vec<&str> = words
        .iter()
        .map(|word| {
            if reading.is_pair(*word) {
                slice(&reading.intent, reading.run(*word))
            } else {
                reading.read_as(*word)
            }
        })
        .collect();
    texts.dedup();
    let quotes: Vec<String> = texts.into_iter().map(quote).collect();
    join_with_and(&quotes)
}

#[cfg(test)]
mod tests {
    use super::super::document::Document;
    use super::super::request::Request;
    use super::super::router::Router;
    use super::super::weights::Weights;
    use skills_skill::IndexText;

    /// The reason of the skill with this description and body for a request.
    fn reason(intent: &str, description: &str, body: &str) -> String {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let other = |n: usize, text: &str| Document::new(format!("s{n}"), format!("s{n}"), text);
        let with_body = |document: Document, body: &str| Document {
            text: Some(IndexText { headings: Vec::new(), body: body.to_owned() }),
            ..document
        };
        router.update(
            vec![
                with_body(Document::new("wanted", "wanted", description), body),
                with_body(other(1, "Writes short mails."), "Dear colleague."),
                with_body(other(2, "Sorts columns."), "The first column."),
            ],
            &[],
        );
        let request = Request { intent: intent.to_owned(), ..Request::default() };
        let answer = router.discover(&request).unwrap();
        let hit = answer.results.into_iter().find(|hit| hit.skill_id.as_str() == "wanted").unwrap();
        hit.reason
    }

    #[test]
    fn normalized_words_are_quoted_as_written() {
        for (intent, body, expected) in [
            ("csharp wiki", "Written in C#.", "only its body contains “c#”"),
            ("oreilly book", "A book by O'Reilly.", "“o'reilly”"),
            ("wells fargo", "We'll see. All is well.", "only its body contains “well”"),
            ("merge pdfs", "Many PDFs.", "only its body contains “pdfs”"),
            ("merge a pdf", "Many PDFs.", "only its body contains a word with “pdf”"),
            ("several rows", "The severity is severe.", "a word with the stem of “several”"),
            ("vite site", "Made with VitePress.", "a word with “vite”"),
            ("IPv6 address", "An IPv6 network.", "a form of “IPv6”"),
        ] {
            let reason = reason(intent, "Plans gardens.", body);
            assert!(reason.contains(expected), "{intent}: {reason}");
        }
    }

    #[test]
    fn character_pairs_are_not_words() {
        let body = reason("コードレビューをお願いします", "Plans gardens.", "コードを書きます。");
        assert!(body.contains("characters of “コードレビューをお願いします”"), "{body}");
        assert!(!body.contains("lacks"), "{body}");
        let description = reason("提取表格", "从PDF文件中提取表格。", "");
        assert!(description.contains("its description contains “提取表格”"), "{description}");
        let lacking = reason("columns 写一个单元测试", "Plans gardens.", "Two columns.");
        assert!(lacking.contains("it lacks “写一个单元测试”"), "{lacking}");
    }

    #[test]
    fn words_of_a_referral_are_not_denied() {
        let text = "Plans gardens. For the first setup of beds, use garden-new skill.";
        let reason = reason("plan a new skill", text, "A skill is a file.");
        assert!(
            reason.contains("its description contains “new” and “skill” only in an exclusion clause"),
            "{reason}"
        );
    }

    #[test]
    fn letters_and_contractions_are_not_other_words() {
        for (intent, body) in [
            ("plan ä ö ü", "Options -a, -o and -u."),
            ("plan a shell", "She'll plan it."),
            ("plan wed", "We'd plan it."),
            ("plan ls", "Plans URLs."),
            ("plan fs", "Plans FsUnit."),
        ] {
            let reason = reason(intent, "Plans gardens.", body);
            assert!(reason.starts_with("its description contains “Plans”"), "{intent}: {reason}");
            assert!(!reason.contains("its body"), "{intent}: {reason}");
        }
    }

    #[test]
    fn an_exclusion_contains_words_in_camel_case() {
        let reason = reason("plan gardens in ios", "Plans gardens. Not for iOS crashes.", "Nothing for iOS.");
        assert!(reason.contains("its description contains “iOS” only in an exclusion clause"), "{reason}");
    }

    #[test]
    fn an_exclusion_contains_the_word_in_any_form() {
        let text = "Plans gardens. Not for pages: if you need a dashboard, use another.";
        let other_form = reason("it plans a page", text, "A plan needs time.");
        assert!(
            other_form.contains("its description contains “pages” only in an exclusion clause"),
            "{other_form}"
        );
        let in_body = reason("page garden", text, "No page here.");
        assert!(
            in_body.contains("its description contains “pages” only in an exclusion clause"),
            "{in_body}"
        );
        assert!(!in_body.contains("only its body contains “page”"), "{in_body}");
    }
}
