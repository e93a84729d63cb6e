//! Repair by line: puts quotes around plain YAML values that are invalid without them.
//!
//! By far the most frequent defect of real frontmatter is a description with `: ` in it. The value is quoted verbatim
//! and nothing is moved, so every position in the repaired text has a corresponding one in the file.

use std::collections::HashSet;
use std::ops::Range;

use super::finding_builder::slice;
use super::yaml;

/// Frontmatter with added quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repaired {
    /// The YAML with quotes.
    pub text: String,
    /// The quoted values, in text order.
    pub quoted: Vec<QuotedValue>,
    /// Offsets of inserted bytes in the repaired text, ascending.
    inserted: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuotedValue {
    pub key: String,
    /// The value in the text before the repair.
    pub value: Range<usize>,
    /// The range of the defect: the first `: `, or the first character.
    pub defect: Range<usize>,
    /// Whether the defect is a colon.
    pub colon: bool,
    /// The list or mapping that it opens and does not close, if it is not a text.
    pub unclosed: Option<Collection>,
    /// False if ` #` in it might have been meant as a comment, a key in it as a key, or its first character as YAML.
    pub sure: bool,
    /// The range of a key that seems to be in the value because of a missing line break.
    pub swallowed: Option<Range<usize>>,
}

/// A collection in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Collection {
    List,
    Mapping,
}

impl Collection {
    /// Returns the collection that a value opens and does not close.
    fn unclosed(value: &str) -> Option<Self> {
        let (this, open, close) = match value.chars().next()? {
            '[' => (Self::List, '[', ']'),
            '{' => (Self::Mapping, '{', '}'),
            _ => return None,
        };
        (value.matches(open).count() > value.matches(close).count()).then_some(this)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Mapping => "mapping",
        }
    }

    /// Returns the character that closes it.
    pub fn end(self) -> char {
        match self {
            Self::List => ']',
            Self::Mapping => '}',
        }
    }
}

impl Repaired {
    /// Maps an offset after the repair to the one before it.
    pub fn original(&self, at: usize) -> usize {
        at - self.inserted.partition_point(|place| *place < at)
    }
}

/// A key with its value and the continuation lines of the value.
struct Block<'a> {
    key: &'a str,
    lines: Range<usize>,
    value: Range<usize>,
}

/// Maximum number of entries that are parsed on their own: a repair of more takes too long. Real files have some dozens.
const MAX_ENTRIES: usize = 1_000;

/// Quotes the values of the entries that are invalid on their own, if `requested` accepts them. Returns `None` if there
/// are none, and if there are more than [`MAX_ENTRIES`] entries to check.
pub(super) fn quote_values(yaml_text: &str, requested: impl Fn(&QuotedValue) -> bool) -> Option<Repaired> {
    let around = Surroundings::of(yaml_text);
    let mut quoted = Vec::new();
    let mut left = MAX_ENTRIES;
    let mut is_yaml = |entry: &str| {
        left = left.checked_sub(1)?;
        Some(around.is_yaml(entry))
    };
    for block in blocks(yaml_text, 0..yaml_text.len(), 0) {
        if is_yaml(slice(yaml_text, block.lines.clone()))? {
            continue;
        }
        if block.value.is_empty() {
            let start = slice(yaml_text, block.lines.clone())
                .find('\n')
                .map_or(block.lines.end, |at| block.lines.start + at + 1);
            let inner = start..block.lines.end;
            let indent = slice(yaml_text, inner.clone()).len()
                - slice(yaml_text, inner.clone()).trim_start_matches(' ').len();
            for nested in blocks(yaml_text, inner, indent) {
                if !is_yaml(slice(yaml_text, nested.lines.start + indent..nested.lines.end))? {
                    quoted.extend(quote(yaml_text, &nested, &around));
                }
            }
        } else {
            quoted.extend(quote(yaml_text, &block, &around));
        }
    }
    quoted.retain(requested);
    (!quoted.is_empty()).then(|| put_in(yaml_text, quoted))
}

/// Returns the key whose quoted value is not closed before a line that is not part of it, and the offset of the quote, if
/// that is the error at `error`: with the quote closed, the text is valid at least beyond it.
pub(super) fn unclosed_quote(yaml_text: &str, error: usize) -> Option<(&str, usize)> {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut start = 0;
    let mut lines = yaml_text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let line_start = start;
        start += line.len();
        let Some((key, value)) = line.split_once(':') else { continue };
        let quoted = value.trim_start_matches(' ');
        let Some(quote) = quoted.chars().next().filter(|sign| matches!(sign, '"' | '\'')) else { continue };
        let quote_at = line_start + line.len() - quoted.len();
        let inside = indent(line);
        // Its further lines are blank or have a deeper indentation. Only those before the closing quote are read, which
        // are skipped below: the time stays linear.
        let is_inside = |end: &usize| {
            let mut more =
                yaml_text.get(start..=quote_at + 1 + end).unwrap_or_default().split_inclusive('\n');
            more.all(|line| line.trim().is_empty() || indent(line) > inside)
        };
        match closing_quote(slice(yaml_text, quote_at + 1..), quote).filter(is_inside) {
            None => {
                let end = quote_at + quoted.trim_end().len();
                let closed = format!("{}{quote}{}", slice(yaml_text, ..end), slice(yaml_text, end..));
                let is_beyond = yaml::parse(&closed).err().is_none_or(|again| again.at.start > error + 1);
                return is_beyond.then(|| (key.trim(), quote_at));
            }
            // The next key is after the end of the value.
            Some(end) => {
                while start <= quote_at + 1 + end {
                    start += lines.next()?.len();
                }
            }
        }
    }
    None
}

/// Returns the offset of the quote that closes a value.
fn closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut signs = text.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        if quote == '"' && sign == '\\' {
            signs.next();
        } else if sign == quote && (quote == '"' || signs.next_if(|(_, next)| *next == quote).is_none()) {
            return Some(at);
        }
    }
    None
}

/// The context of an entry: names that other entries anchor, and keys of the specification at the start of a line.
/// Both are collected once, so that the time stays linear in the text.
struct Surroundings<'a> {
    anchors: HashSet<&'a str>,
    fields: HashSet<&'static str>,
}

impl<'a> Surroundings<'a> {
    fn of(text: &'a str) -> Self {
        let at_top = |line: &str| {
            let key = line.split_once(':').map_or("", |(key, _)| key);
            FIELDS.iter().copied().find(|field| *field == key)
        };
        Self { anchors: marked_names(text, '&').collect(), fields: text.lines().filter_map(at_top).collect() }
    }

    /// Returns whether an entry is valid YAML; an alias in it may refer to an anchor of another entry.
    fn is_yaml(&self, entry: &str) -> bool {
        if yaml::parse(entry).is_ok() {
            return true;
        }
        let mut named = HashSet::new();
        let mut anchors = String::new();
        for name in marked_names(entry, '*').filter(|name| self.anchors.contains(name)) {
            if anchors.len() >= MAX_ANCHORS {
                break;
            }
            if named.insert(name) {
                anchors.push_str(&format!("- &{name} x\n"));
            }
        }
        if anchors.is_empty() {
            return false;
        }
        let inner: Vec<String> = entry.lines().map(|line| format!("  {line}\n")).collect();
        yaml::parse(&format!("anchors:\n{anchors}entry:\n{}", inner.concat())).is_ok()
    }
}

/// Returns the names after a mark: `&name` is an anchor, `*name` an alias.
fn marked_names(text: &str, mark: char) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let names =
        text.split(mark).skip(1).map(move |part| part.split(|c| !is_part(c)).next().unwrap_or_default());
    names.filter(|name| !name.is_empty())
}

/// Maximum number of bytes of anchors that are added when an entry is checked.
const MAX_ANCHORS: usize = 2_000;

/// Finds a key in the middle of a plain value, where a line break is missing: directly after the end of a sentence, or
/// a key of the specification that occurs nowhere else in the frontmatter. Returns its range in the value.
fn swallowed_key(value: &str, around: &Surroundings<'_>) -> Option<Range<usize>> {
    value.match_indices(": ").chain(value.strip_suffix(':').map(|rest| (rest.len(), ":"))).find_map(
        |(colon, _)| {
            let before = value.get(..colon)?;
            let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            let start = before.rfind(|c| !part(c)).map_or(0, |at| {
                at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
            });
            let key = before.get(start..)?;
            let led_by = before.get(..start)?.chars().next_back()?;
            let ends_sentence =
                matches!(led_by, '.' | '!' | '?' | '。' | '！' | '？' | ')' | '）' | '"' | '”');
            let is_word = key.len() > 2 && key.starts_with(|c: char| c.is_ascii_lowercase());
            let missing = FIELDS.contains(&key) && !around.fields.contains(key);
            (is_word && (ends_sentence || missing)).then_some(start..colon)
        },
    )
}

/// Fields of the specification that are rarely words of a sentence.
const FIELDS: &[&str] = &["license", "compatibility", "allowed-tools", "metadata"];

/// Keys with texts: there, brackets and asterisks are never meant as YAML.
const TEXTS: &[&str] = &["name", "description", "when_to_use", "argument-hint", "license", "compatibility"];

/// Returns the entries at one indentation, each with the more deeply indented lines after it.
fn blocks(text: &str, within: Range<usize>, indent: usize) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut at = within.start;
    for raw in slice(text, within).split_inclusive('\n') {
        let (start, end) = (at, at + raw.len());
        at = end;
        let line = raw.trim_end();
        let depth = line.len() - line.trim_start_matches(' ').len();
        if line.is_empty() || depth > indent {
            if let Some(block) = found.last_mut() {
                block.lines.end = end;
                if !line.is_empty() && !block.value.is_empty() {
                    block.value.end = start + line.len();
                }
            }
            continue;
        }
        let Some((key, rest)) = slice(line, depth..).split_once(':') else { continue };
        let is_key = !key.is_empty() && !key.starts_with(['#', '-', '"', '\'']) && !key.contains(' ');
        if depth < indent || !is_key || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
            continue;
        }
        let value = start + line.len() - rest.trim_start().len()..start + line.len();
        found.push(Block { key, lines: start..end, value });
    }
    found
}

/// Determines how to quote a block's value; returns `None` if it is already quoted or a block scalar.
fn quote(text: &str, block: &Block<'_>, around: &Surroundings<'_>) -> Option<QuotedValue> {
    let value = slice(text, block.value.clone());
    if value.starts_with(['"', '\'', '|', '>']) {
        return None;
    }
    let colon = value.find(": ").or_else(|| value.strip_suffix(':').map(str::len));
    let reserved = value.starts_with(['@', '`', '%', '[', '{', '*', '&', '!', '?', '-', ',', ']', '}']);
    let defect = match colon {
        Some(at) if !reserved => block.value.start + at..block.value.start + at + 1,
        _ if reserved => block.value.start..block.value.start + 1,
        _ => return None,
    };
    let swallowed =
        swallowed_key(value, around).map(|key| block.value.start + key.start..block.value.start + key.end);
    let is_structure =
        value.starts_with(['!', '&']) || value.starts_with(['[', '{', '*']) && !TEXTS.contains(&block.key);
    let sure = !value.contains(" #") && swallowed.is_none() && !is_structure;
    let unclosed = if is_structure { Collection::unclosed(value) } else { None };
    let (key, value) = (block.key.to_owned(), block.value.clone());
    Some(QuotedValue { key, value, defect, colon: !reserved, unclosed, sure, swallowed })
}

/// Inserts quotes: double quotes if nothing inside needs an escape, otherwise single quotes with `'` doubled.
fn put_in(text: &str, quoted: Vec<QuotedValue>) -> Repaired {
    let mut inserted = Vec::new();
    let mut out = String::with_capacity(text.len() + 16);
    let mut copied = 0;
    for part in &quoted {
        let value = slice(text, part.value.clone());
        let mark = if value.contains(['"', '\\']) { '\'' } else { '"' };
        out.push_str(slice(text, copied..part.value.start));
        out.push(mark);
        inserted.push(part.value.start + inserted.len());
        for (at, c) in value.char_indices() {
            if c == mark {
                out.push(mark);
                inserted.push(part.value.start + at + inserted.len());
            }
            out.push(c);
        }
        out.push(mark);
        inserted.push(part.value.end + inserted.len());
        copied = part.value.end;
    }
    out.push_str(slice(text, copied..));
    Repaired { text: out, quoted, inserted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unclosed_quote_is_reported_at_its_key() {
        let found = |text: &str| {
            let error = yaml::parse(text).err().map(|error| error.at.start);
            error.and_then(|error| unclosed_quote(text, error)).map(|(key, at)| (key.to_owned(), at))
        };
        let description = Some(("description".to_owned(), 21));
        assert_eq!(found("name: a\ndescription: \"Makes bills.\nlicense: MIT\n"), description);
        assert_eq!(found("name: a\ndescription: 'It''s a bill.\nlicense: MIT\n"), description);
        let twice = "name: a\ndescription: \"Makes bills.\ntags: [a, b\n";
        assert_eq!(found(twice), description, "another defect below");
        let multi = "name: a\ndescription: \"Makes\n  bills.\n\n  \\\"More\\\".\"\ntags: [a\n";
        assert_eq!(found(multi), None, "closed on a further line");
        let shallow = "a: \"x\nb: \"z\"\n";
        assert_eq!(found(shallow), Some(("a".to_owned(), 3)), "the next quote belongs to another key");
        // Keys with ever deeper indentation: each must not read the rest of the text.
        let keys: String = (0..1500).map(|depth| format!("{:depth$}a: \"\"\n", "")).collect();
        let nested = format!("{{\n{keys}{}b: c\n", "\n".repeat(700_000));
        assert_eq!(unclosed_quote(&nested, nested.len()), None);
        let block = "name: a\ndescription: |\n  note: \"open\ntags: [a\n";
        assert_eq!(found(block), None, "in a block, a quote is text");
    }

    fn repaired(text: &str) -> String {
        quote_values(text, |_| true).map_or_else(|| text.to_owned(), |repaired| repaired.text)
    }

    #[test]
    fn a_colon_in_a_plain_value_is_quoted() {
        assert_eq!(repaired("name: a\ndescription: one: two\n"), "name: a\ndescription: \"one: two\"\n");
        assert_eq!(repaired("d: say \"it's: so\"\n"), "d: 'say \"it''s: so\"'\n");
        assert_eq!(repaired("d: one: two\n  three: four\ne: x\n"), "d: \"one: two\n  three: four\"\ne: x\n");
    }

    #[test]
    fn a_reserved_first_character_is_quoted() {
        assert_eq!(repaired("d: @Observable views\n"), "d: \"@Observable views\"\n");
        assert_eq!(repaired("argument-hint: [file] [mode]\n"), "argument-hint: \"[file] [mode]\"\n");
    }

    #[test]
    fn an_unclosed_collection_is_distinguished_from_a_text() {
        let unclosed = |text: &str| quote_values(text, |_| true).unwrap().quoted[0].unclosed;
        assert_eq!(unclosed("allowed-tools: [Read, Grep\n"), Some(Collection::List));
        assert_eq!(unclosed("tags: {a\n"), Some(Collection::Mapping));
        assert_eq!(unclosed("tags: [a] and b\n"), None);
        assert_eq!(unclosed("description: [draft Helps\n"), None, "a text");
    }

    #[test]
    fn nested_values_are_repaired_and_valid_ones_kept() {
        let text = "metadata:\n  note: a: b\n  url: http://x\nhint: [a]\nurl: http://x\n";
        assert_eq!(
            repaired(text),
            "metadata:\n  note: \"a: b\"\n  url: http://x\nhint: [a]\nurl: http://x\n"
        );
    }

    #[test]
    fn too_many_entries_are_not_checked() {
        let is_repaired = |text: &str| quote_values(text, |_| true).is_some();
        let (entries, nested) = (|count| "k:\n".repeat(count), |count| "  k:\n".repeat(count));
        assert!(is_repaired(&format!("d: one: two\n{}", entries(MAX_ENTRIES - 1))));
        assert!(!is_repaired(&format!("d: one: two\n{}", entries(MAX_ENTRIES))));
        assert!(!is_repaired(&format!("m:\n  d: one: two\n{}", nested(MAX_ENTRIES))));
    }

    #[test]
    fn aliases_of_other_entries_are_kept() {
        assert_eq!(
            repaired("a: &a [x]\nb: &b [*a, *a]\nc: {d: *b}\n"),
            "a: &a [x]\nb: &b [*a, *a]\nc: {d: *b}\n"
        );
        assert_eq!(repaired("d: *bold* words\n"), "d: \"*bold* words\"\n");
    }

    #[test]
    fn swallowed_keys_are_found() {
        let swallowed = |text: &str| {
            let repaired = quote_values(text, |_| true).unwrap();
            repaired.quoted[0].swallowed.clone().map(|at| text[at].to_owned())
        };
        assert_eq!(swallowed("description: 用于写作时。origin: community\n").as_deref(), Some("origin"));
        assert_eq!(swallowed("description: Does x. Use: for x license: MIT\n").as_deref(), Some("license"));
        assert_eq!(swallowed("description: Of a license: one\nlicense: MIT\n"), None);
        assert_eq!(swallowed("description: Writes notes: short ones\n"), None);
    }

    #[test]
    fn positions_refer_to_the_original_file() {
        let repaired = quote_values("d: it's \"one\": two\ne: x\n", |_| true).unwrap();
        let at = repaired.text.find("e: x").unwrap();
        assert_eq!(repaired.original(at), 19);
        assert_eq!(repaired.original(repaired.text.find("two").unwrap()), 15);
    }
}
