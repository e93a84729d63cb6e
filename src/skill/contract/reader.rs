//! Walks a YAML tree of the contract form: takes what is there, notes what is wrong, forgets no key.

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use serde_json::Value;

use crate::Finding;
use crate::finding_builder::{Notes, span};
use crate::frontmatter::Frontmatter;
use crate::lint::rules;
use crate::yaml::{self, Content, Entry, Node};

/// Reads one file of the contract form.
pub(super) struct Reader<'a> {
    notes: Notes<'a>,
}

impl<'a> Reader<'a> {
    pub fn new(file: &'a Path, source: &'a str) -> Self {
        Self { notes: Notes::new(file, source) }
    }

    /// The file's mapping; none (with a finding) where it is not YAML or no mapping.
    pub fn root(&mut self) -> Option<Node> {
        match yaml::parse(self.notes.source) {
            Ok(root) if matches!(root.value, Content::Map(_)) => Some(root),
            Ok(_) => {
                self.notes.add(&rules::NOT_A_MAPPING, None, 0..0, "the file has no `key: value` lines");
                None
            }
            Err(error) => {
                let message = format!("the file is not YAML: {}", error.message);
                self.notes.add(&rules::BAD_YAML, None, error.at, message);
                None
            }
        }
    }

    pub fn findings(self) -> Vec<Finding> {
        self.notes.finish()
    }

    pub fn line(&self, at: &Range<usize>) -> u32 {
        span(self.notes.source, at.clone()).line
    }

    /// Notes something that keeps the contract from running, and what to do.
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

    /// Notes a reference, an expression or an output by its own rule.
    pub fn note(
        &mut self,
        rule: &rules::Rule,
        field: &str,
        at: &Range<usize>,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.notes.add(rule, Some(field), at.clone(), message)
    }

    /// Notes every key that is none of `known`, with the nearest of them.
    pub fn only(&mut self, node: &Node, field: &str, known: &[&str]) {
        for entry in node.entries() {
            if !known.contains(&entry.key.as_str()) {
                let path = join(field, &entry.key);
                let message = format!("unknown key `{path}`");
                let finding =
                    self.notes.add(&rules::CONTRACT_UNKNOWN_KEY, Some(&path), entry.key_at.clone(), message);
                suggest(finding, &entry.key, known.iter().copied());
            }
        }
    }

    /// Notes every key at the top that resembles one of `known`: up to two letters differ where that one is missing,
    /// a single one where it is there too. Any other key is allowed there.
    pub fn misspelled(&mut self, root: &Node, known: &[&str]) {
        for entry in root.entries() {
            let key = entry.key.as_str();
            if known.contains(&key) || Frontmatter::KEYS.contains(&key) {
                continue;
            }
            let allowed = |name: &str| match root.get(name) {
                None if key.chars().count() >= 6 => 2,
                Some(_) if name.len() < 4 => 0,
                _ => 1,
            };
            let near = known.iter().find(|name| strsim::osa_distance(name, key) <= allowed(name));
            if let Some(near) = near {
                let message = format!("unknown key `{key}`");
                let finding =
                    self.notes.add(&rules::CONTRACT_UNKNOWN_KEY, Some(key), entry.key_at.clone(), message);
                finding.help = format!("Did you mean `{near}`?");
            }
        }
    }

    /// A text, if the key is there.
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

    /// A text that has to be there.
    pub fn required(&mut self, node: &Node, field: &str, key: &str) -> Option<String> {
        let found = self.text(node, field, key).filter(|text| !text.is_empty());
        if found.is_none() {
            let path = join(field, key);
            let at = node.get(key).map_or(node.at.start..node.at.start, |entry| entry.key_at.clone());
            self.invalid(&path, &at, format!("`{path}` is missing"), format!("Add `{key}`."));
        }
        found
    }

    /// One of a set of words.
    pub fn word<T: FromStr>(&mut self, node: &Node, field: &str, key: &str, words: &str) -> Option<T> {
        let text = self.text(node, field, key)?;
        let parsed = text.parse().ok();
        if parsed.is_none()
            && let Some(entry) = node.get(key)
        {
            let path = join(field, key);
            let message = format!("`{path}` is `{text}`; expected one of {words}");
            let finding = self.invalid(&path, &entry.value.at, message, "Use one of these words.");
            suggest(finding, &text, words.split(", "));
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

    /// A number within bounds.
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

    /// A list of texts; a single text counts as a list of one.
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

    /// The entries of a mapping under a key; none where it is absent, with a finding where it is something else.
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

    /// The items of a list under a key.
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

    /// The value under a key as JSON.
    pub fn json(node: &Node, key: &str) -> Option<Value> {
        node.get(key).map(|entry| entry.value.to_json()).filter(|value| !value.is_null())
    }

    fn wrong<T>(&mut self, path: &str, node: &Node, wanted: &str) -> Option<T> {
        let is = match node.value {
            Content::Null => "empty",
            Content::Flag(_) => "true or false",
            Content::Number(_) => "a number",
            Content::Text(_) => "a string",
            Content::List(_) => "a list",
            Content::Map(_) => "a mapping",
        };
        let message = format!("`{path}` is {is}; expected {wanted}");
        self.invalid(path, &node.at, message, format!("Replace it with {wanted}."));
        None
    }
}

/// The nearest of the known words, where one is near.
pub(super) fn nearest<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let allowed = (word.chars().count() / 3).clamp(2, 4);
    let near = known.map(|known| (strsim::levenshtein(known, word), known)).min();
    near.filter(|(distance, _)| *distance <= allowed).map(|(_, near)| near)
}

/// Lets a finding ask for the nearest of the known words, where one is near.
pub(super) fn suggest<'w>(finding: &mut Finding, word: &str, known: impl Iterator<Item = &'w str>) {
    if let Some(near) = nearest(word, known) {
        finding.help = format!("Did you mean `{near}`?");
    }
}

/// `steps.send` and `config` → `steps.send.config`.
pub(super) fn join(field: &str, key: &str) -> String {
    if field.is_empty() { key.to_owned() } else { format!("{field}.{key}") }
}
