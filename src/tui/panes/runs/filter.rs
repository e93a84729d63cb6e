//! The filter of the list: parsed at each keystroke, completed with Tab, with errors shown below it.

use std::collections::BTreeSet;

use super::feed::KnownRuns;
use crate::field::Field;
use crate::widgets::text_width::shown;
use skills_store::{QUERY_KEYS, QUERY_STATES, RunQuery, RunRecord};

/// The text, and the query parsed from it.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub field: Field,
    query: RunQuery,
    /// The text of the query.
    applied: String,
    error: Option<String>,
}

impl Filter {
    /// Parses the text; returns whether the query changed. A term without its value is ignored until it has one. If
    /// the text is invalid, the last valid query stays active.
    pub fn read(&mut self) -> bool {
        let text = self.field.text();
        let begun = text.rsplit(char::is_whitespace).next().filter(|word| is_begun(word));
        let text = begun.and_then(|word| text.strip_suffix(word)).unwrap_or(text).trim();
        match RunQuery::parse(text) {
            Ok(query) => {
                let is_changed = query != self.query;
                (self.applied, self.query, self.error) = (text.to_owned(), query, None);
                is_changed
            }
            Err(error) => {
                self.error = Some(error.to_string());
                false
            }
        }
    }

    /// Removes the filter; returns whether there was one.
    pub fn clear(&mut self) -> bool {
        self.field.clear();
        self.read()
    }

    /// Returns whether the text is invalid, so that an earlier query is active.
    pub fn is_invalid(&self) -> bool {
        self.error.is_some()
    }

    /// Returns whether every run is listed.
    pub fn is_empty(&self) -> bool {
        self.query.is_empty()
    }

    /// Returns the text of the query if the filter is valid and not empty.
    pub fn in_force(&self) -> Option<&str> {
        (self.error.is_none() && !self.is_empty()).then_some(self.applied.as_str())
    }

    pub fn matches(&self, run: &RunRecord, now_ms: i64) -> bool {
        self.query.matches(run, now_ms)
    }

    /// Returns the completions of the last word.
    pub fn completions(&self, known: &KnownRuns) -> Vec<String> {
        let text = self.field.text();
        let word = text.rsplit(char::is_whitespace).next().unwrap_or_default();
        let (sign, word) = match word.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", word),
        };
        let Some((key, value)) = word.split_once(':') else {
            let keys = QUERY_KEYS.map(|(key, _)| {
                if KEYS_WITH_NAMES.contains(&key) { format!("{key}.") } else { format!("{key}:") }
            });
            let names = match word {
                _ if word.starts_with("input.") => input_names(known),
                _ if word.starts_with("label.") => label_names(known),
                _ => BTreeSet::new(),
            };
            let all = keys.into_iter().chain(names);
            return all.filter(|full| full.starts_with(word)).map(|full| format!("{sign}{full}")).collect();
        };
        let (before, part) = value.rsplit_once(',').map_or(("", value), |(before, part)| (before, part));
        let comma = if before.is_empty() { "" } else { "," };
        let values: BTreeSet<String> = match key {
            "state" => QUERY_STATES.iter().map(|state| (*state).to_owned()).collect(),
            "skill" => known.iter().map(|(run, _)| run.skill_id.clone()).collect(),
            "step" => known.iter().filter_map(|(run, _)| run.step.clone()).collect(),
            key if key.starts_with("label.") => {
                let name = key.trim_start_matches("label.");
                known.iter().filter_map(|(run, _)| run.options.labels.get(name).cloned()).collect()
            }
            "by" => known.iter().map(|(run, _)| run.started_by.clone()).collect(),
            _ => BTreeSet::new(),
        };
        let quoted = |value: &str| {
            if value.contains(char::is_whitespace) { format!("\"{value}\"") } else { value.to_owned() }
        };
        let fits = values.iter().filter(|value| value.starts_with(part) && *value != part);
        fits.map(|value| format!("{sign}{key}:{before}{comma}{}", quoted(value))).collect()
    }

    /// Completes the last word up to the first ambiguity; returns whether the text changed.
    pub fn complete(&mut self, known: &KnownRuns) -> bool {
        let all = self.completions(known);
        let Some(first) = all.first() else { return false };
        let common = all.iter().fold(first.as_str(), |common, next| {
            let same = common.char_indices().zip(next.chars()).find(|((_, a), b)| a != b);
            let end = same.map_or(common.len().min(next.len()), |((at, _), _)| at);
            common.get(..end).unwrap_or_default()
        });
        let text = self.field.text();
        let start = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let prefix = text.get(..start).unwrap_or_default();
        let done = format!(
            "{prefix}{common}{}",
            if all.len() == 1 && common.contains(':') && !common.ends_with(':') { " " } else { "" }
        );
        if done == text || done.len() < text.len() {
            return false;
        }
        self.field.set(&done);
        self.read();
        true
    }

    /// Describes an empty list. A state is searched as text, so the filter by state is suggested.
    pub fn no_matches(&self) -> String {
        let state = self.applied.split_whitespace().find(|word| QUERY_STATES.contains(word));
        let change = state
            .map_or_else(|| "/ changes it".to_owned(), |state| format!("use state:{state} for the state"));
        format!("no runs match the filter: {change}, Esc shows all runs")
    }

    /// Returns the line below the field, an error or the completions, and whether it is an error.
    pub fn hint(&self, known: &KnownRuns) -> (String, bool) {
        match &self.error {
            Some(error) => (shown(error), true),
            None => {
                (self.completions(known).iter().map(|text| shown(text)).collect::<Vec<_>>().join("  "), false)
            }
        }
    }
}

/// Keys that a name follows: `input.NAME:`.
const KEYS_WITH_NAMES: [&str; 2] = ["input", "label"];

/// Returns whether the end of a term has yet to be typed: `skill:`, `input.` or `label.env`.
fn is_begun(word: &str) -> bool {
    let key = word.trim_start_matches('-');
    let named = || key.split_once('.').is_some_and(|(key, _)| KEYS_WITH_NAMES.contains(&key));
    word.ends_with(':') || (!word.contains(':') && named())
}

/// Returns `label.NAME:` for the labels of the known runs.
fn label_names(known: &KnownRuns) -> BTreeSet<String> {
    let labels = known.iter().flat_map(|(run, _)| run.options.labels.keys());
    labels.map(|name| format!("label.{name}:")).collect()
}

/// Returns `input.NAME:` for the inputs of the known runs.
fn input_names(known: &KnownRuns) -> BTreeSet<String> {
    let inputs = known.iter().filter_map(|(run, _)| run.inputs.as_object());
    inputs.flat_map(|inputs| inputs.keys()).map(|name| format!("input.{name}:")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_without_matches_suggests_the_filter_by_state() {
        let mut filter = Filter::default();
        filter.field.set("failed");
        filter.read();
        assert!(filter.no_matches().contains("state:failed"), "{}", filter.no_matches());
        filter.field.set("state:failed");
        filter.read();
        assert!(filter.no_matches().contains("/ changes it"), "{}", filter.no_matches());
    }
}
