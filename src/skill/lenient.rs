//! Lenient readers of single values: they accept what real files contain in place of a text, a flag or a list.

use std::ops::Range;
use std::str::FromStr;

use serde_json::Value;
use strum::IntoEnumIterator;

use super::finding_builder::Notes;
use super::lint::rules;
use super::yaml::{Content, Node};
use super::{AttachTarget, EffectMode, Invocation, Kind, Role, Severity, Status};

/// Context of a value: how its position maps to the file, and the collection for findings.
pub(super) struct Reader<'n, 's> {
    /// Collects the findings.
    pub notes: &'n mut Notes<'s>,
    /// Maps byte ranges of the YAML to those of the file.
    pub place: &'n dyn Fn(&Range<usize>) -> Range<usize>,
}

impl Reader<'_, '_> {
    pub fn wrong_type(&mut self, field: &str, node: &Node, requested: &str, taken: &str) {
        let at = (self.place)(&node.at);
        let is = describe(&node.value);
        self.notes.add(
            &rules::WRONG_TYPE,
            Some(field),
            at,
            format!("`{field}` is {is}; expected {requested}{taken}"),
        );
    }

    /// Returns the text as written in the file: `1.10` stays `1.10`.
    fn source(&self, node: &Node) -> String {
        let at = (self.place)(&node.at);
        self.notes.source.get(at).unwrap_or_default().trim().to_owned()
    }
}

fn describe(content: &Content) -> &'static str {
    match content {
        Content::Null => "empty",
        Content::Flag(_) => "true or false",
        Content::Number(_) => "a number",
        Content::Text(_) => "a string",
        Content::List(_) => "a list",
        Content::Map(_) => "a mapping",
    }
}

/// A type that is read leniently. Returns `None` if the value is empty or unusable.
pub(super) trait Lenient: Sized {
    fn read(reader: &mut Reader<'_, '_>, field: &str, node: &Node) -> Option<Self>;
}

impl Lenient for String {
    fn read(reader: &mut Reader<'_, '_>, field: &str, node: &Node) -> Option<Self> {
        let text = match &node.value {
            Content::Null => return None,
            Content::Text(text) => text.trim().to_owned(),
            Content::Flag(_) | Content::Number(_) => {
                let text = reader.source(node);
                if matches!(field, "name" | "description") {
                    reader.wrong_type(
                        field,
                        node,
                        "a string",
                        "; strict clients drop the skill unless it is quoted",
                    );
                }
                text
            }
            Content::List(items) => {
                reader.wrong_type(field, node, "a string", "; its items are joined");
                let texts = items.iter().filter_map(|item| Self::read(reader, field, item));
                texts.collect::<Vec<_>>().join(", ")
            }
            Content::Map(_) => {
                reader.wrong_type(field, node, "a string", "; it is ignored");
                return None;
            }
        };
        (!text.is_empty()).then_some(text)
    }
}

impl Lenient for bool {
    fn read(reader: &mut Reader<'_, '_>, field: &str, node: &Node) -> Option<Self> {
        let flag = match &node.value {
            Content::Null => return None,
            Content::Flag(flag) => return Some(*flag),
            Content::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Some(true),
                "false" | "no" | "off" => Some(false),
                _ => None,
            },
            _ => None,
        };
        let taken = match flag {
            Some(true) => "; it is read as true",
            Some(false) => "; it is read as false",
            None => "; it is ignored",
        };
        reader.wrong_type(field, node, "true or false", taken);
        flag
    }
}

impl Lenient for Value {
    fn read(_: &mut Reader<'_, '_>, _: &str, node: &Node) -> Option<Self> {
        (node.value != Content::Null).then(|| node.to_json())
    }
}

/// Words, written as a list or as one comma-separated text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Words(pub Vec<String>);

/// Tools, written as one text or as a list of texts, in which spaces or commas (outside parentheses) separate them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tools(pub Vec<String>);

impl Lenient for Words {
    fn read(reader: &mut Reader<'_, '_>, field: &str, node: &Node) -> Option<Self> {
        let split = |text: &str| text.split(',').map(str::to_owned).collect();
        read_list(reader, field, node, split).map(Self)
    }
}

impl Lenient for Tools {
    fn read(reader: &mut Reader<'_, '_>, field: &str, node: &Node) -> Option<Self> {
        let texts = read_list(reader, field, node, |text| vec![text.to_owned()])?;
        Some(Self(texts.iter().flat_map(|text| split_tools(text)).collect()))
    }
}

fn read_list(
    reader: &mut Reader<'_, '_>,
    field: &str,
    node: &Node,
    split: impl Fn(&str) -> Vec<String>,
) -> Option<Vec<String>> {
    let words: Vec<String> = match &node.value {
        Content::Null => return None,
        Content::List(items) => items.iter().filter_map(|item| String::read(reader, field, item)).collect(),
        // `metadata` is open to every program: OpenClaw has a mapping under `requires`.
        Content::Map(_) if field.starts_with("metadata.") => return None,
        Content::Map(_) => {
            reader.wrong_type(field, node, "a list or a string", "; it is ignored");
            return None;
        }
        Content::Text(text) => split(text),
        Content::Flag(_) | Content::Number(_) => vec![reader.source(node)],
    };
    Some(words.into_iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect())
}

/// Splits `Read, Bash(git add:*) Write` into three tools: at commas and spaces outside of parentheses. As for Claude Code,
/// parentheses are not nested.
fn split_tools(text: &str) -> Vec<String> {
    let mut is_inside = false;
    let tools = text.split(|c: char| {
        match c {
            '(' => is_inside = true,
            ')' => is_inside = false,
            _ => {}
        }
        !is_inside && (c == ',' || c.is_whitespace())
    });
    tools.filter(|tool| !tool.is_empty()).map(str::to_owned).collect()
}

/// Reads a variant of an enum; any other word is an error that lists the variants.
fn read_word<T: FromStr + IntoEnumIterator + ToString>(
    reader: &mut Reader<'_, '_>,
    field: &str,
    node: &Node,
) -> Option<T> {
    let text = String::read(reader, field, node)?;
    text.parse().ok().or_else(|| {
        let words: Vec<String> = T::iter().map(|word| word.to_string()).collect();
        let near = words.iter().min_by_key(|word| strsim::levenshtein(word, &text.to_lowercase()));
        let near = near.filter(|word| strsim::levenshtein(word, &text.to_lowercase()) <= 3);
        let at = (reader.place)(&node.at);
        let message = format!("`{field}` is `{text}`; expected one of {}", words.join(", "));
        let finding = reader.notes.add(&rules::CLASSIFICATION_INVALID, Some(field), at, message);
        if !field.starts_with("metadata.classification.") {
            finding.severity = Severity::Warning;
        }
        if let Some(near) = near {
            finding.help = format!("Did you mean `{near}`?");
        }
        None
    })
}

macro_rules! words {
    ($($kind:ty),+) => { $(
        impl Lenient for $kind {
            fn read(reader: &mut Reader<'_, '_>, field: &str, node: &Node) -> Option<Self> {
                read_word(reader, field, node)
            }
        }
    )+ };
}
words!(Role, Invocation, EffectMode, Kind);

impl Lenient for Status {
    fn read(reader: &mut Reader<'_, '_>, field: &str, node: &Node) -> Option<Self> {
        String::read(reader, field, node).map(Self::from)
    }
}

/// The valid targets of a list; each other word is reported as an error.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Targets(pub Vec<AttachTarget>);

impl Lenient for Targets {
    fn read(reader: &mut Reader<'_, '_>, field: &str, node: &Node) -> Option<Self> {
        let mut targets = Vec::new();
        let mut keep = |target: Option<AttachTarget>| {
            targets.extend(target.filter(|target| !targets.contains(target)));
        };
        match &node.value {
            Content::Null => return None,
            Content::List(items) => items.iter().for_each(|item| keep(read_word(reader, field, item))),
            Content::Text(text) if text.contains(',') => {
                for word in text.split(',') {
                    let word = Node { value: Content::Text(word.to_owned()), at: node.at.clone() };
                    keep(read_word(reader, field, &word));
                }
            }
            _ => keep(read_word(reader, field, node)),
        }
        Some(Self(targets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_split_at_commas_and_spaces_but_not_in_parentheses() {
        let tools = split_tools("Read, Bash(git add:*, git rm:*)  Write,Edit");
        assert_eq!(tools, ["Read", "Bash(git add:*, git rm:*)", "Write", "Edit"]);
        assert_eq!(split_tools("Read(a(b) Bash(*) Write"), ["Read(a(b)", "Bash(*)", "Write"]);
    }
}
