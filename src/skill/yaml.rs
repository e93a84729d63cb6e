//! A YAML tree in which every value has its position, for the lenient readers.
//!
//! Parsed by `serde-saphyr`, under limits that legitimate frontmatter does not reach.

use super::finding_builder::slice;
use std::fmt;
use std::ops::Range;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Location, Spanned};

/// A value and its byte range.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub value: Content,
    pub at: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Null,
    Flag(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// An entry of a mapping, including duplicates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub key: String,
    pub key_at: Range<usize>,
    pub value: Node,
}

impl Node {
    /// Returns the last value of a key, which most readers use for duplicates.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().rev().find(|entry| entry.key == key)
    }

    /// Returns the entries of a mapping; empty for anything else.
    pub fn entries(&self) -> &[Entry] {
        if let Content::Map(entries) = &self.value { entries } else { &[] }
    }

    /// Converts the value to JSON, without positions.
    pub fn to_json(&self) -> Value {
        match &self.value {
            Content::Null => Value::Null,
            Content::Flag(flag) => Value::Bool(*flag),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Content::Map(_) => Value::Object(self.to_json_map()),
        }
    }

    /// Converts a mapping to JSON; empty for anything else.
    pub fn to_json_map(&self) -> Map<String, Value> {
        self.entries().iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect()
    }
}

/// Why a text is invalid YAML, with the byte range.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct YamlError {
    pub message: String,
    pub at: Range<usize>,
}

impl YamlError {
    /// Returns what to do about it, if the help of the rule does not name the cause.
    pub fn help(&self) -> Option<&'static str> {
        let is_escape = self.message.contains("quoted scalar")
            && (self.message.contains("escape") || self.message.contains("hexadecimal"));
        is_escape.then_some(
            "Use single quotes, or double each backslash (`\\\\`): in double quotes, a backslash starts an escape.",
        )
    }
}

/// Maximum nesting. Each level takes about 45 kB of stack in an unoptimized build, and threads have 2 MiB; public
/// files nest seven levels deep.
const MAX_DEPTH: usize = 32;

/// Parses one document.
pub(super) fn parse(text: &str) -> Result<Node, YamlError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: 20_000,
            max_events: 60_000,
            max_depth: MAX_DEPTH,
            max_documents: 1,
            max_aliases: 100,
            max_anchors: 100,
            max_total_scalar_bytes: 4 << 20,
        },
        strict_booleans: true,
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options::<Spanned<Tree>>(text, options)
        .map(|tree| tree.value.into_node(bytes(&tree.referenced, text)))
        .map_err(|error| {
            let message = plain_message(&error);
            let mut at = error.location().map_or(0..0, |location| error_range(&location, text));
            // The scanner reports the value before the tab.
            if message.contains("found a tab")
                && let Some(tab) = indenting_tab(text, at.start)
            {
                at = tab..tab + 1;
            }
            YamlError { message, at }
        })
}

/// Formats an error of the YAML parser as part of a message, without its prefix `error: ` and its excerpt of the text.
pub fn yaml_message(error: &serde_saphyr::Error) -> String {
    const WORDS: [(&str, &str); 5] = [
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown value"),
        ("expected sequence start", "expected a list"),
        ("expected mapping start", "expected a map"),
        ("expected string scalar", "expected a string"),
    ];
    let text = limit_message(error).unwrap_or_else(|| error.without_snippet().to_string());
    let text = text.strip_prefix("error: ").unwrap_or(&text).to_owned();
    WORDS.iter().fold(quote_allowed(text), |text, (theirs, ours)| text.replace(theirs, ours))
}

/// Quotes the names that are allowed in place of an unknown one; the parser appends `, expected one of a, b at line 1,
/// column 1`, also if there is only one.
fn quote_allowed(text: String) -> String {
    let Some((found, allowed)) = text.rsplit_once(", expected one of ") else { return text };
    let (names, position) = match allowed.split_once(" at line ") {
        Some((names, position)) => (names, format!(" at line {position}")),
        None => (allowed, String::new()),
    };
    let expected = if names.contains(", ") { "expected one of" } else { "expected" };
    let names: Vec<String> = names.split(", ").map(|name| format!("`{name}`")).collect();
    format!("{found}{position}; {expected} {}", names.join(", "))
}

/// Describes a limit of the parser that was exceeded; the parser's own message has the names of its types.
fn limit_message(error: &serde_saphyr::Error) -> Option<String> {
    let serde_saphyr::Error::Budget { breach, .. } = error.without_snippet() else { return None };
    let limit = format!("{breach:?}");
    let name = limit.split([' ', '{', '(']).next().unwrap_or_default();
    Some(match name {
        "Documents" => "it has more than one document; keep one".to_owned(),
        "Depth" => "it is nested too deeply".to_owned(),
        name => format!("it exceeds a limit ({name})"),
    })
}

/// Returns the parser's message without its position (the finding has one) and its advice on Rust options.
fn plain_message(error: &serde_saphyr::Error) -> String {
    let text = limit_message(error).unwrap_or_else(|| error.to_string());
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(" at line ").next().unwrap_or(line);
    let line = line.strip_prefix("error: ").unwrap_or(line);
    line.trim().trim_end_matches(['.', ':', ',']).to_owned()
}

fn bytes(location: &Location, text: &str) -> Range<usize> {
    let span = location.span();
    let end = text.len();
    let start = usize::try_from(span.byte_offset().unwrap_or(0)).unwrap_or(0).min(end);
    let length = usize::try_from(span.byte_len().unwrap_or(0)).unwrap_or(0);
    start..start.saturating_add(length).min(end)
}

/// Errors of the scanner have only a line and a column.
fn error_range(location: &Location, text: &str) -> Range<usize> {
    if location.span().byte_offset().is_some() {
        return bytes(location, text);
    }
    let nth = |count: u64| usize::try_from(count.max(1) - 1).unwrap_or(0);
    let line_start: usize = text.split_inclusive('\n').take(nth(location.line())).map(str::len).sum();
    let line = slice(text, line_start..).split('\n').next().unwrap_or_default();
    let column = line.char_indices().nth(nth(location.column())).map_or(line.len(), |(at, _)| at);
    line_start + column..line_start + column
}

/// Finds the first tab in the indentation of a line after an offset.
fn indenting_tab(text: &str, after: usize) -> Option<usize> {
    let rest = text.get(after..)?;
    rest.match_indices('\n').find_map(|(newline, _)| {
        let start = after + newline + 1;
        let line = text.get(start..)?;
        let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
        line.get(..indentation)?.find('\t').map(|tab| start + tab)
    })
}

/// The tree as deserialized, with positions in the library's format.
enum Tree {
    Scalar(Content),
    List(Vec<Spanned<Tree>>),
    Map(Vec<(Spanned<Tree>, Spanned<Tree>)>),
}

impl Tree {
    fn into_node(self, at: Range<usize>) -> Node {
        let value = match self {
            Self::Scalar(content) => content,
            Self::List(items) => Content::List(items.into_iter().map(node).collect()),
            Self::Map(entries) => Content::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| {
                        let key = node(key);
                        Entry { key: key_text(key.to_json()), key_at: key.at, value: node(value) }
                    })
                    .collect(),
            ),
        };
        Node { value, at }
    }
}

fn node(tree: Spanned<Tree>) -> Node {
    let span = tree.referenced.span();
    let start = usize::try_from(span.byte_offset().unwrap_or(0)).unwrap_or(0);
    let length = usize::try_from(span.byte_len().unwrap_or(0)).unwrap_or(0);
    tree.value.into_node(start..start.saturating_add(length))
}

fn key_text(key: Value) -> String {
    match key {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Content::Null))
    }

    fn visit_none<E: de::Error>(self) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(Content::Flag(flag)))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(Content::Number(number.into())))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(Content::Number(number.into())))
    }

    fn visit_i128<E: de::Error>(self, number: i128) -> Result<Tree, E> {
        self.visit_string(number.to_string())
    }

    fn visit_u128<E: de::Error>(self, number: u128) -> Result<Tree, E> {
        self.visit_string(number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Tree, E> {
        let content =
            Number::from_f64(number).map_or_else(|| Content::Text(number.to_string()), Content::Number);
        Ok(Tree::Scalar(content))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Tree, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Tree, E> {
        Ok(Tree::Scalar(Content::Text(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_positions() {
        let text = "name: é\nmetadata:\n  version: 1.0\n  list: [a, 2]\nname: twice\n";
        let root = parse(text).unwrap();
        let keys: Vec<_> = root.entries().iter().map(|e| &text[e.key_at.clone()]).collect();
        assert_eq!(keys, ["name", "metadata", "name"]);
        assert_eq!(&text[root.entries()[0].value.at.clone()], "é");
        let version = root.get("metadata").unwrap().value.get("version").unwrap();
        assert_eq!(&text[version.value.at.clone()], "1.0");
        assert_eq!(root.get("name").unwrap().value.to_json(), "twice");
    }

    #[test]
    fn exceeded_limits_are_described() {
        let error = parse("a: 1\n---\nb: 2\n").unwrap_err();
        assert_eq!(error.message, "it has more than one document; keep one");
        let error = parse(&format!("{}{}", "[".repeat(64), "]".repeat(64))).unwrap_err();
        assert_eq!(error.message, "it is nested too deeply");
    }

    #[test]
    fn booleans_are_only_true_and_false() {
        let root = parse("a: yes\nb: true\nc:\nd: 007\n").unwrap();
        assert_eq!(root.to_json(), serde_json::json!({"a": "yes", "b": true, "c": null, "d": "007"}));
    }

    #[test]
    fn unquoted_colon_is_an_error_with_a_position() {
        let error = parse("name: a\ndescription: one: two\n").unwrap_err();
        assert!(error.at.start > 8, "{error:?}");
        assert!(!error.message.is_empty() && !error.message.contains("line"), "{error:?}");
    }

    #[test]
    fn backslash_in_double_quotes_has_help() {
        for value in [r#""C:\Users""#, r#""\d+""#, r#""\xzz""#, r#""\u12""#] {
            let error = parse(&format!("name: a\ndescription: {value}\n")).unwrap_err();
            assert!(error.help().is_some_and(|help| help.contains("single quotes")), "{error:?}");
        }
        assert_eq!(parse("a: b: c\n").unwrap_err().help(), None);
    }

    #[test]
    fn a_tab_in_an_indentation_is_reported_where_it_is() {
        let text = "steps:\n  - id: a\n\tuses: x.y\n    input: {n: 1}\n";
        let error = parse(text).unwrap_err();
        assert!(text[error.at.start..].starts_with("\tuses"), "{error:?}");
    }

    #[test]
    fn document_with_excessive_aliases_is_rejected() {
        use std::fmt::Write as _;
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let previous = format!("*a{},", level - 1).repeat(10);
            writeln!(bomb, "a{level}: &a{level} [{previous}]").unwrap();
        }
        assert!(parse(&bomb).is_err());
    }
}
