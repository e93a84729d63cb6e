//! One sentence about why a skill is where it is, made from the largest parts of its score.

use std::collections::BTreeMap;

use super::answer::{Breakdown, PartKind, Signal};
use super::reading::Reading;

/// Words a sentence names at most, by place.
const NAMED: usize = 3;

/// Where a word of the request stands in a skill.
#[allow(clippy::struct_excessive_bools, reason = "four places, each there or not")]
#[derive(Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Places {
    name: bool,
    description: bool,
    tags: bool,
    body: bool,
}

impl Places {
    /// As the subject of a sentence that goes on with "say" or "says".
    fn subject(self) -> Option<(&'static str, bool)> {
        Some(match (self.name, self.description, self.tags, self.body) {
            (true, true, _, _) => ("its name and description say", true),
            (true, false, true, _) => ("its name and tags say", true),
            (true, false, false, _) => ("its name says", true),
            (false, true, _, _) => ("its description says", true),
            (false, false, true, _) => ("its tags say", true),
            (false, false, false, true) => ("only its body has", false),
            (false, false, false, false) => return None,
        })
    }
}

/// What words with the same places gave in all, whether name, description or tags are among the places,
/// and what each of the words gave.
type Group = (f64, bool, Vec<(f64, usize)>);

/// The sentence, without a final stop.
pub(crate) fn reason(breakdown: &Breakdown, reading: &Reading) -> String {
    if let Some(part) = breakdown.parts.iter().find(|p| p.kind == PartKind::Exact) {
        return if part.label == super::labels::plain(&reading.intent) {
            format!("the request is its name, id or tag “{}”", part.label)
        } else {
            format!("the request names “{}”", part.label)
        };
    }
    let mut places: BTreeMap<usize, (Places, f64)> = BTreeMap::new();
    for part in breakdown.parts.iter().filter(|p| p.kind == PartKind::Term) {
        let Some(word) = breakdown.words[part.word].query_word else { continue };
        if reading.words[word].word.stop {
            continue;
        }
        let (at, sum) = places.entry(word).or_default();
        *sum += part.value;
        match part.field.as_deref() {
            Some("name") => at.name = true,
            Some("description") => at.description = true,
            Some("tags") => at.tags = true,
            _ => at.body = true,
        }
    }
    let mut groups: BTreeMap<&str, Group> = BTreeMap::new();
    for (word, (at, sum)) in &places {
        if let Some((subject, short)) = at.subject() {
            let group = groups.entry(subject).or_insert((0.0, short, Vec::new()));
            group.0 += sum;
            group.2.push((*sum, *word));
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.1.cmp(&a.1.1).then(b.1.0.total_cmp(&a.1.0)));
    let mut clauses: Vec<String> = groups
        .into_iter()
        .take(2)
        .map(|(subject, (_, _, mut words))| {
            words.sort_by(|a, b| b.0.total_cmp(&a.0));
            words.truncate(NAMED);
            words.sort_by_key(|(_, word)| *word);
            format!(
                "{subject} {}",
                listed(&words.iter().map(|(_, w)| reading.written(*w)).collect::<Vec<_>>())
            )
        })
        .collect();
    if let Some(near) = meaning(breakdown, reading, &places) {
        clauses.push(near);
    }
    let unknown: Vec<&str> = (0..reading.words.len())
        .filter(|at| !reading.words[*at].word.stop && reading.row(*at) == *at)
        .filter(|at| !breakdown.words.iter().any(|r| r.query_word == Some(*at)))
        .map(|at| reading.written(at))
        .collect();
    if !unknown.is_empty() && places.values().all(|(p, _)| !p.name && !p.description && !p.tags) {
        let some: Vec<&str> = unknown.into_iter().take(NAMED).collect();
        clauses.push(format!("it lacks {}", listed(&some)));
    }
    if clauses.is_empty() {
        "it shares only common words with the request".to_owned()
    } else {
        clauses.join("; ")
    }
}

/// What meaning adds beyond words in common.
fn meaning(
    breakdown: &Breakdown,
    reading: &Reading,
    places: &BTreeMap<usize, (Places, f64)>,
) -> Option<String> {
    let semantic = breakdown.signals[super::ledger::column(Signal::Semantic)];
    let text: f64 = breakdown.signals[..3].iter().sum();
    if semantic <= 0.0 || (semantic < text * 0.5 && !places.is_empty()) {
        return None;
    }
    let mut words: Vec<(f64, usize)> = breakdown
        .words
        .iter()
        .filter_map(|row| Some((row.by_signal[3], row.query_word?)))
        .filter(|(value, word)| *value > semantic * 0.15 && !reading.words[*word].word.stop)
        .collect();
    words.sort_by(|a, b| b.0.total_cmp(&a.0));
    words.truncate(NAMED);
    words.sort_by_key(|(_, word)| *word);
    if places.is_empty() {
        let near: Vec<&str> = words.iter().map(|(_, w)| reading.written(*w)).collect();
        return Some(if near.is_empty() {
            "no word in common, but a near meaning".to_owned()
        } else {
            format!("no word in common, but near in meaning to {}", listed(&near))
        });
    }
    let near: Vec<&str> =
        words.iter().filter(|(_, w)| !places.contains_key(w)).map(|(_, w)| reading.written(*w)).collect();
    Some(if near.is_empty() {
        "near in meaning".to_owned()
    } else {
        format!("near in meaning to {}", listed(&near))
    })
}

/// `“a”, “b” and “c”`.
fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("“{w}”")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}
