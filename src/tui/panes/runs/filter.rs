//! The filter of the list: parsed at each keystroke, completed with Tab, with errors shown below it.

use std::collections::BTreeSet;

use super::feed::KnownRuns;
use crate::action::Action;
use crate::field::Field;
use crate::keymap::mention;
use crate::widgets::text_width::shown;
use serde_json::Value;
use skills_api::term;
use skills_store::{QUERY_KEYS, QUERY_STATES, RunQuery, RunRecord, failure_kind};

/// The text, and the query parsed from it.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub field: Field,
    query: RunQuery,
    /// The text of the query.
    applied: String,
    error: Option<String>,
    /// Whether the text was submitted although it is invalid: its error is shown, not its completions.
    is_refused: bool,
}

impl Filter {
    /// Prepares for further terms: the cursor is at the end, after a space.
    pub fn begin(&mut self) {
        let text = format!("{} ", self.field.text());
        if !text.trim().is_empty() && !text.ends_with("  ") && !self.is_invalid() {
            self.field.set(&text);
        }
    }

    /// Submits the text; returns whether it is valid.
    pub fn submit(&mut self) -> bool {
        self.error = RunQuery::parse(self.field.text().trim()).err().map(|error| error.to_string());
        self.is_refused = self.is_invalid();
        if !self.is_refused {
            self.end();
        }
        !self.is_refused
    }

    /// Removes the space that [`Self::begin`] appended.
    pub fn end(&mut self) {
        let text = self.field.text().trim_end().to_owned();
        if text != self.field.text() {
            self.field.set(&text);
        }
    }

    /// Parses the text; returns whether the query changed. A term without its value is ignored until it has one. If
    /// the text is invalid, the last valid query stays active.
    pub fn read(&mut self) -> bool {
        self.is_refused = false;
        let text = self.field.text();
        let started = text.get(last_part(text, char::is_whitespace)..).filter(|word| is_begun(word));
        let text = started.and_then(|word| text.strip_suffix(word)).unwrap_or(text).trim();
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

    /// Returns why all listed runs cannot be marked: while the text is invalid, they are not those that it describes.
    pub fn blocks_marking(&self) -> Option<String> {
        let error = self.error.as_ref()?;
        let (why, key) = (shown(error), mention(Action::Filter));
        Some(format!("the filter is not applied: {}; press {key} to correct it", why.trim_end_matches('.')))
    }

    /// Returns whether every run is listed.
    pub fn is_empty(&self) -> bool {
        self.query.is_empty()
    }

    /// Returns the text of the query if the filter is valid and not empty.
    pub fn in_force(&self) -> Option<&str> {
        (self.error.is_none() && !self.is_empty()).then_some(self.applied.as_str())
    }

    /// Returns the query that restricts the list, if any.
    pub fn query(&self) -> Option<&RunQuery> {
        (!self.is_empty()).then_some(&self.query)
    }

    /// Returns the text of the query that restricts the list.
    pub fn applied(&self) -> &str {
        &self.applied
    }

    /// Returns whether a run matches; `None` if only the store knows it.
    pub fn evaluate(&self, run: &RunRecord, now_ms: i64) -> Option<bool> {
        self.query.evaluate(run, now_ms)
    }

    /// Returns the completions of the last term: those that begin with what was typed, then those that contain it.
    pub fn completions(&self, runs: &KnownRuns) -> Vec<String> {
        let text = self.field.text();
        let word = text.get(last_part(text, char::is_whitespace)..).unwrap_or_default();
        let (sign, word) = match word.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", word),
        };
        let Some((key, value)) = word.split_once(':') else {
            let keys = QUERY_KEYS.map(|(key, _)| {
                if KEYS_WITH_NAMES.contains(&key) { format!("{key}.") } else { format!("{key}:") }
            });
            let names = match word {
                _ if word.starts_with("input.") => input_names(runs),
                _ if word.starts_with("label.") => label_names(runs),
                _ => BTreeSet::new(),
            };
            let all = keys.into_iter().chain(names);
            return all.filter(|full| full.starts_with(word)).map(|full| format!("{sign}{full}")).collect();
        };
        let (before, part) = value.split_at_checked(last_part(value, |c| c == ',')).unwrap_or(("", value));
        let part = part.trim_matches('"').to_lowercase();
        let values = runs.iter().flat_map(|(run, _)| values_of(run, key));
        let states = QUERY_STATES.iter().filter(|_| key == "state").map(|state| (*state).to_owned());
        let values: BTreeSet<String> = values.chain(states).filter(|value| !value.is_empty()).collect();
        let contains = values.iter().filter(|value| {
            let value = value.to_lowercase();
            value.contains(&part) && value != part
        });
        let (first, others): (Vec<&String>, Vec<&String>) =
            contains.partition(|value| value.to_lowercase().starts_with(&part));
        let full = |value: &String| {
            let full = term(key, value);
            let value = full.split_once(':').map_or("", |(_, value)| value);
            format!("{sign}{key}:{before}{value}")
        };
        first.into_iter().chain(others).map(full).collect()
    }

    /// Completes the last term up to the first ambiguity; returns whether the text changed.
    pub fn complete(&mut self, runs: &KnownRuns) -> bool {
        let text = self.field.text();
        let (prefix, word) =
            text.split_at_checked(last_part(text, char::is_whitespace)).unwrap_or(("", text));
        let mut all = self.completions(runs);
        let begins = |full: &String| {
            let (full, word) = (full.replace('"', ""), word.replace('"', ""));
            full.to_lowercase().starts_with(&word.to_lowercase())
        };
        if all.iter().any(begins) {
            all.retain(begins);
        }
        let Some(first) = all.first() else { return false };
        let common = all.iter().fold(first.as_str(), |common, next| {
            let same = common.char_indices().zip(next.chars()).find(|((_, a), b)| a != b);
            let end = same.map_or(common.len().min(next.len()), |((at, _), _)| at);
            common.get(..end).unwrap_or_default()
        });
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

    /// Describes an empty list, with a mention of a key. A state is searched as text, so the filter by state is
    /// suggested.
    pub fn no_matches(&self) -> String {
        let state = self.applied.split_whitespace().find(|word| QUERY_STATES.contains(word));
        let change = state.map_or_else(
            || format!("{} changes it", mention(Action::Filter)),
            |state| format!("use state:{state} for the state"),
        );
        format!("no runs match the filter: {change}, Esc shows all runs")
    }

    /// Returns the line below the field, an error or the completions, and whether it is an error. While the last term
    /// is typed, its completions are shown instead of its error.
    pub fn hint(&self, runs: &KnownRuns, is_typing: bool) -> (String, bool) {
        let text = self.field.text();
        let is_last = || {
            let before = text.get(..last_part(text, char::is_whitespace)).unwrap_or_default();
            RunQuery::parse(before).is_ok()
        };
        let completions = self.completions(runs);
        match &self.error {
            Some(error) if self.is_refused || completions.is_empty() || !is_typing || !is_last() => {
                (shown(error), true)
            }
            _ => (completions.iter().map(|text| shown(text)).collect::<Vec<_>>().join("  "), false),
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

/// Returns where the last part of a text begins. Separators in double quotes do not count.
fn last_part(text: &str, is_separator: impl Fn(char) -> bool) -> usize {
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, character) in text.char_indices() {
        match character {
            '"' if !is_escaped => is_quoted = !is_quoted,
            other if is_separator(other) && !is_quoted => start = at + other.len_utf8(),
            _ => {}
        }
        is_escaped = is_quoted && !is_escaped && character == '\\';
    }
    start
}

/// Returns the values of a run that a term with this key compares.
fn values_of(run: &RunRecord, key: &str) -> Vec<String> {
    let value = match key {
        "skill" => Some(run.skill_id.clone()),
        "step" => run.step.clone(),
        "by" => Some(run.started_by.clone()),
        "title" => run.title().map(str::to_owned),
        "assigned" => run.options.assigned.as_ref().map(|assigned| assigned.to.clone()),
        "worker" => run.lease.as_ref().and_then(|lease| Some(lease.worker.as_ref()?.0.clone())),
        "error" => {
            let reason = run.failure().unwrap_or_default();
            let reason = reason.trim_end_matches('…');
            return vec![failure_kind(reason).to_owned(), reason.to_owned()];
        }
        key => match key.split_once('.') {
            Some(("label", name)) => run.options.labels.get(name).cloned(),
            Some(("input", path)) => {
                let value = path.split('.').try_fold(&run.inputs, |value, name| value.as_object()?.get(name));
                value.and_then(|value| match value {
                    Value::String(text) => Some(text.clone()),
                    Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
                    Value::Null | Value::Array(_) | Value::Object(_) => None,
                })
            }
            _ => None,
        },
    };
    value.into_iter().collect()
}

/// Returns `label.NAME:` for the labels of the known runs.
fn label_names(runs: &KnownRuns) -> BTreeSet<String> {
    let labels = runs.iter().flat_map(|(run, _)| run.options.labels.keys());
    labels.map(|name| format!("label.{name}:")).collect()
}

/// Returns `input.NAME:` for the inputs of the known runs.
fn input_names(runs: &KnownRuns) -> BTreeSet<String> {
    let inputs = runs.iter().filter_map(|(run, _)| run.inputs.as_object());
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
        assert!(filter.no_matches().contains(" changes it"), "{}", filter.no_matches());
    }
}
