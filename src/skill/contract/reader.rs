//! Walks the YAML tree of a contract file: reads values, and reports everything invalid and every unknown key.

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use serde_json::Value;

use crate::Finding;
use crate::finding_builder::Notes;
use crate::frontmatter::Frontmatter;
use crate::lint::rules;
use crate::yaml::{self, Content, Entry, Node};

/// Maximum number of characters of a word for which a similar one is suggested.
const MAX_WORD: usize = 64;
/// Maximum cost of all suggestions for a file: each known word that is looked at costs 1, if it is compared
/// [`COMPARISON_COST`].
const SUGGESTION_BUDGET: usize = 1_000_000;
const COMPARISON_COST: usize = 50;

/// Reads one contract file.
pub(super) struct Reader<'a> {
    notes: Notes<'a>,
    /// How much suggestions for further findings may cost.
    budget: usize,
}

impl<'a> Reader<'a> {
    pub fn new(file: &'a Path, source: &'a str) -> Self {
        Self { notes: Notes::new(file, source), budget: SUGGESTION_BUDGET }
    }

    /// Returns the root mapping; `None` (with a finding) if the file is not YAML or not a mapping.
    pub fn root(&mut self) -> Option<Node> {
        match yaml::parse(self.notes.source) {
            Ok(root) if matches!(root.value, Content::Map(_)) => Some(root),
            Ok(_) => {
                let message = "the file has no `key: value` lines";
                let finding = self.notes.add(&rules::NOT_A_MAPPING, None, 0..0, message);
                "Write `key: value` lines.".clone_into(&mut finding.help);
                None
            }
            Err(error) => {
                let message = format!("the file is not valid YAML: {}", error.message);
                let help = error.help();
                let finding = self.notes.add(&rules::BAD_YAML, None, error.at, message);
                if let Some(help) = help {
                    help.clone_into(&mut finding.help);
                }
                None
            }
        }
    }

    pub fn findings(self) -> Vec<Finding> {
        self.notes.finish()
    }

    pub fn line(&self, at: &Range<usize>) -> u32 {
        self.notes.span(at.clone()).line
    }

    /// Reports a defect that prevents the contract from running, with help.
    pub fn invalid(
        &mut self,
        field: &str,
        at: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Finding {
        let finding = self.notes.add(&rules::CONTRACT_INVALID, Some(field), at.clone(), message);
        finding.help = help.into();
        finding
    }

    /// Reports a reference, an expression or an output under its own rule.
    pub fn note(
        &mut self,
        rule: &rules::Rule,
        field: &str,
        at: &Range<usize>,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.notes.add(rule, Some(field), at.clone(), message)
    }

    /// Reports every key that is not in `keys`, with the most similar known key.
    pub fn only(&mut self, node: &Node, field: &str, keys: &[&str]) {
        for entry in node.entries() {
            if !keys.contains(&entry.key.as_str()) {
                let path = join(field, &entry.key);
                let message = format!("unknown key `{path}`");
                self.notes.add(&rules::CONTRACT_UNKNOWN_KEY, Some(&path), entry.key_at.clone(), message);
                self.suggest(&entry.key, keys.iter().copied());
            }
        }
    }

    /// Reports every top-level key that resembles one of `keys`: within two edits if that one is missing, within one
    /// edit if it is present. Other keys are allowed at the top level.
    pub fn misspelled(&mut self, root: &Node, keys: &[&str]) {
        for entry in root.entries() {
            let key = entry.key.as_str();
            if keys.contains(&key) || Frontmatter::KEYS.contains(&key) {
                continue;
            }
            let allowed = |name: &str| match root.get(name) {
                None if key.chars().count() >= 6 => 2,
                Some(_) if name.len() < 4 => 0,
                _ => 1,
            };
            let near = keys.iter().find(|name| strsim::osa_distance(name, key) <= allowed(name));
            if let Some(near) = near {
                let message = format!("unknown key `{key}`");
                let finding =
                    self.notes.add(&rules::CONTRACT_UNKNOWN_KEY, Some(key), entry.key_at.clone(), message);
                finding.help = format!("Did you mean `{near}`?");
            }
        }
    }

    /// Reads a text, if the key is present.
    pub fn text(&mut self, node: &Node, field: &str, key: &str) -> Option<String> {
        let entry = node.get(key)?;
        match &entry.value.value {
            Content::Null => None,
            Content::Text(text) => Some(text.trim().to_owned()),
            Content::Flag(_) | Content::Number(_) => {
                // `version: 1.10` is meant as written, not as the number 1.1.
                self.notes.source.get(entry.value.at.clone()).map(|text| text.trim().to_owned())
            }
            _ => self.wrong(&join(field, key), &entry.value, "a string"),
        }
    }

    /// Reads a required text.
    pub fn required(&mut self, node: &Node, field: &str, key: &str) -> Option<String> {
        let found = self.text(node, field, key).filter(|text| !text.is_empty());
        let is_text = |entry: &Entry| !matches!(entry.value.value, Content::List(_) | Content::Map(_));
        // Another type is reported as such.
        if found.is_none() && node.get(key).is_none_or(is_text) {
            let path = join(field, key);
            let at = node.get(key).map_or(node.at.start..node.at.start, |entry| entry.key_at.clone());
            self.invalid(&path, &at, format!("`{path}` is missing"), format!("Add `{key}`."));
        }
        found
    }

    /// Reads a value of an enumeration.
    pub fn word<T: FromStr>(&mut self, node: &Node, field: &str, key: &str, words: &str) -> Option<T> {
        let text = self.text(node, field, key)?;
        let parsed = text.parse().ok();
        if parsed.is_none()
            && let Some(entry) = node.get(key)
        {
            let path = join(field, key);
            let message = format!("`{path}` is `{text}`; expected one of {words}");
            self.invalid(&path, &entry.value.at, message, "Use one of these words.");
            self.suggest(&text, words.split(", "));
        }
        parsed
    }

    pub fn flag(&mut self, node: &Node, field: &str, key: &str) -> Option<bool> {
        let entry = node.get(key)?;
        match &entry.value.value {
            Content::Null => None,
            Content::Flag(flag) => Some(*flag),
            _ => self.wrong(&join(field, key), &entry.value, "true or false"),
        }
    }

    /// Reads a number within bounds.
    pub fn number(&mut self, node: &Node, field: &str, key: &str, least: f64, most: f64) -> Option<f64> {
        let entry = node.get(key)?;
        let path = join(field, key);
        match &entry.value.value {
            Content::Null => None,
            Content::Number(number) => {
                let number = number.as_f64().filter(|n| (least..=most).contains(n));
                if number.is_none() {
                    let message = format!("`{path}` must be from {least} to {most}");
                    self.invalid(&path, &entry.value.at, message, "Use a number in this range.");
                }
                number
            }
            _ => self.wrong(&path, &entry.value, "a number"),
        }
    }

    /// Reads a list of texts; a single text counts as a list of one.
    pub fn texts(&mut self, node: &Node, field: &str, key: &str) -> Option<Vec<String>> {
        let entry = node.get(key)?;
        let path = join(field, key);
        match &entry.value.value {
            Content::Null => None,
            Content::Text(text) => Some(vec![text.trim().to_owned()]),
            Content::List(items) => {
                let mut texts = Vec::new();
                for item in items {
                    match &item.value {
                        Content::Text(text) => texts.push(text.trim().to_owned()),
                        _ => drop(self.wrong::<()>(&path, item, "a string")),
                    }
                }
                Some(texts)
            }
            _ => self.wrong(&path, &entry.value, "a list of strings"),
        }
    }

    /// Reads the entries of a mapping under a key; empty if the key is absent, and with a finding if the value is not
    /// a mapping.
    pub fn map<'n>(&mut self, node: &'n Node, field: &str, key: &str) -> &'n [Entry] {
        let Some(entry) = node.get(key) else { return &[] };
        match &entry.value.value {
            Content::Map(entries) => entries,
            Content::Null => &[],
            _ => {
                self.wrong::<()>(&join(field, key), &entry.value, "a mapping");
                &[]
            }
        }
    }

    /// Reads the items of a list under a key.
    pub fn list<'n>(&mut self, node: &'n Node, field: &str, key: &str) -> &'n [Node] {
        let Some(entry) = node.get(key) else { return &[] };
        match &entry.value.value {
            Content::List(items) => items,
            Content::Null => &[],
            _ => {
                self.wrong::<()>(&join(field, key), &entry.value, "a list");
                &[]
            }
        }
    }

    /// Reads the value under a key as JSON.
    pub fn json(node: &Node, key: &str) -> Option<Value> {
        node.get(key).map(|entry| entry.value.to_json()).filter(|value| !value.is_null())
    }

    /// Returns the most similar known word, if one is similar enough: one that begins with the word (`int`, `bool`), or
    /// one with few edits. Words of more than [`MAX_WORD`] characters have none: the time grows with the square of the
    /// length. Once the budget for a file is used up, further words have none either.
    pub fn nearest<'w>(&mut self, word: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
        let letters = word.chars().count();
        if letters > MAX_WORD {
            return None;
        }
        let allowed = if letters < 4 { 1 } else { (letters / 3).clamp(2, 4) };
        let is_long = |known: &str| known.len() > 4 * (MAX_WORD + allowed);
        let mut near: Option<(usize, &'w str)> = None;
        for known in words {
            let is_short_form = letters > 1 && known.starts_with(word);
            let is_compared =
                is_short_form || (!is_long(known) && known.chars().count().abs_diff(letters) <= allowed);
            self.budget = self.budget.checked_sub(if is_compared { COMPARISON_COST } else { 1 })?;
            if is_compared {
                let distance = if is_short_form { 0 } else { strsim::levenshtein(known, word) };
                near = Some(near.map_or((distance, known), |near| near.min((distance, known))));
            }
        }
        near.filter(|(distance, _)| *distance <= allowed).map(|(_, near)| near)
    }

    /// Sets the help of the last finding to the most similar known word, if one is similar enough.
    pub fn suggest<'w>(&mut self, word: &str, words: impl Iterator<Item = &'w str>) {
        if let Some(near) = self.nearest(word, words) {
            self.set_help(format!("Did you mean `{near}`?"));
        }
    }

    /// Sets the help of the last finding.
    pub fn set_help(&mut self, help: String) {
        if let Some(finding) = self.notes.last() {
            finding.help = help;
        }
    }

    fn wrong<T>(&mut self, path: &str, node: &Node, requested: &str) -> Option<T> {
        let is = match node.value {
            Content::Null => "empty",
            Content::Flag(_) => "true or false",
            Content::Number(_) => "a number",
            Content::Text(_) => "a string",
            Content::List(_) => "a list",
            Content::Map(_) => "a mapping",
        };
        let message = format!("`{path}` is {is}; expected {requested}");
        self.invalid(path, &node.at, message, format!("Replace it with {requested}."));
        None
    }
}

/// Joins a path and a key: `steps.send` and `config` → `steps.send.config`.
pub(super) fn join(field: &str, key: &str) -> String {
    if field.is_empty() { key.to_owned() } else { format!("{field}.{key}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_for_one_file_have_a_budget() {
        let known: Vec<String> = (0..2_000).map(|number| format!("{number:060}")).collect();
        let mut reader = Reader::new(Path::new("skill.yaml"), "");
        let mut found = Vec::new();
        for number in 0..9_000 {
            let word = format!("{number:059}x");
            found.push(reader.nearest(&word, known.iter().map(String::as_str)).is_some());
        }
        assert!(found[0] && !found[100..].contains(&true), "{:?}", &found[..100]);
    }
}
