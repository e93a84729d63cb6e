//! Exact matcher: the request *is* an id, a name or a tag, or it names a skill (`use the pdf-tables skill`,
//! `/pdf-tables`, `` `pdf-tables` ``).

use std::collections::HashMap;

use super::super::answer::{ScoreComponent, TermKind};
use super::super::field;
use super::super::labels::normalize_label;
use super::super::reading::Reading;
use super::{Column, Context, Failure, Label, Matcher, Row, ScoreTerm, Scorer, matched};

/// Scores requests that are or contain an id, a name or a tag.
pub(super) struct Exact;

/// Words that mark the words before them as a name.
const NOUNS: [&str; 2] = ["skill", "skills"];

/// Words after which a name of a skill starts: `use the pdf-tables skill`, `run pdf-tables skill`.
const BEFORE_NAMES: [&str; 17] = [
    "the", "use", "using", "run", "running", "load", "activate", "apply", "call", "execute", "invoke",
    "open", "start", "via", "with", "attach", "your",
];

/// Words that describe a skill rather than name it: `the new skill`.
const DESCRIBING: [&str; 16] = [
    "best",
    "current",
    "existing",
    "first",
    "following",
    "last",
    "latest",
    "new",
    "next",
    "old",
    "other",
    "previous",
    "right",
    "same",
    "second",
    "wrong",
];

/// HTTP methods, before a path: `GET /orders`.
const METHODS: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/// A label of a skill that a request is or names.
struct Reference {
    value: f64,
    label: String,
    /// The field that has the label, unless it is the id or the name.
    field: Option<&'static str>,
}

struct ExactScorer {
    found: HashMap<usize, Reference>,
}

impl Matcher for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn prepare<'a>(
        &self,
        reading: &'a Reading,
        cx: &'a Context<'a>,
    ) -> Result<Option<Box<dyn Scorer + 'a>>, Failure> {
        let labels = &cx.index.labels;
        let weights = &cx.weights.exact;
        let request = reading.intent.trim().trim_start_matches(['/', '$', '@']);
        let request_label = normalize_label(request.trim_end_matches(['.', '!', '?', ',', ';', ':']));
        let mut found = HashMap::new();
        let mut give = |slots: &[u32], value: f64, label: &str, field: Option<&'static str>| {
            for slot in slots.iter().map(|slot| *slot as usize) {
                let by_id =
                    cx.index.entry(slot).is_some_and(|e| normalize_label(e.document.id.as_str()) == label);
                let value = value + if by_id { weights.id } else { 0.0 };
                let reference = || Reference { value, label: label.to_owned(), field };
                let best = found.entry(slot).or_insert_with(reference);
                if value > best.value {
                    *best = reference();
                }
            }
        };
        if !request_label.is_empty() {
            give(labels.named(&request_label), weights.full_match, &request_label, None);
            // A request of stop words alone, such as “help”, does not mean the tag of that name.
            let is_marked = is_marked(reading.intent.trim());
            if !is_marked && !request_label.split(' ').all(|word| cx.words.is_stop(word)) {
                give(
                    labels.tagged(&request_label),
                    weights.tag,
                    &request_label,
                    Some(field::NAMES[field::TAGS]),
                );
            }
        }
        for name in named_skills(&reading.intent) {
            give(labels.named(&name), weights.named, &name, None);
        }
        if found.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(ExactScorer { found })))
    }
}

/// Returns the normalized labels that a request names: marked words, and up to four words before "skill" if they start
/// the request or follow a word such as "the". A compound or a brand name inside a sentence does not count.
fn named_skills(intent: &str) -> Vec<String> {
    let raw: Vec<&str> = intent.split_whitespace().collect();
    let lower = |at: usize| trim(raw[at]).to_lowercase();
    let mut out = Vec::new();
    for (at, word) in raw.iter().enumerate() {
        let after_method = at > 0 && word.starts_with('/') && METHODS.contains(&raw[at - 1]);
        if is_marked(word) && !after_method {
            out.push(normalize_label(trim(word)));
        }
        if NOUNS.contains(&lower(at).as_str()) {
            let starts_name = |from: &usize| *from == 0 || BEFORE_NAMES.contains(&lower(*from - 1).as_str());
            for from in (at.saturating_sub(4)..at).filter(starts_name) {
                let name = raw[from..at].iter().map(|w| trim(w)).collect::<Vec<_>>().join(" ");
                out.push(normalize_label(&name));
            }
        }
    }
    out.retain(|name| !name.is_empty() && !DESCRIBING.contains(&name.as_str()));
    out
}

fn trim(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Returns whether a word is marked as a name: `/name`, `$name`, `@name`, or in backticks. A path is not.
fn is_marked(word: &str) -> bool {
    let word = word.trim_start_matches(['(', '"', '“']);
    word.starts_with('`') || word.strip_prefix(['/', '$', '@']).is_some_and(|name| !name.contains('/'))
}

impl Scorer for ExactScorer {
    fn score(&self, column: &mut Column) -> Result<(), Failure> {
        for (slot, reference) in &self.found {
            column.values[*slot] = reference.value as f32;
            column.matched[*slot] = matched::EXACT | matched::CONTENT;
        }
        Ok(())
    }

    fn explain(&self, slot: usize, out: &mut Vec<ScoreTerm>) {
        if let Some(Reference { value, label, field }) = self.found.get(&slot) {
            out.push(ScoreTerm {
                row: Row::Exact,
                signal: ScoreComponent::Rule,
                kind: TermKind::Exact,
                field: *field,
                label: Label::Text(label.clone()),
                value: *value,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_only_as_references() {
        assert!(named_skills("use the pdf-tables skill").contains(&"pdf tables".to_owned()));
        assert!(named_skills("run the form filler skill, please").contains(&"form filler".to_owned()));
        assert_eq!(named_skills("try /review on this"), ["review"]);
        assert!(named_skills("turn the table into a form").is_empty());
        assert!(named_skills("pdf-tables of my next.js app at /usr/bin").is_empty());
        assert_eq!(named_skills("with `pdf-tables`, please"), ["pdf tables"]);
        assert!(named_skills("pdf-tables skill").contains(&"pdf tables".to_owned()));
        for (intent, word) in [
            ("create a new skill", "new"),
            ("write my search skill", "search"),
            ("test the new skill", "new"),
        ] {
            assert!(!named_skills(intent).iter().any(|name| name == word), "{intent}");
        }
        assert!(named_skills("GET /deployment returns 500").is_empty());
    }
}
