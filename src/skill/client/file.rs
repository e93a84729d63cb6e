//! The content of a `SKILL.md` before any client's rules: fences, the YAML between them, the first line of the text.

use std::ops::Range;

use crate::finding_builder::slice;
use crate::yaml::{self, Content, Node};
use crate::{fence, repair};

/// Why frontmatter is invalid for a strict YAML parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YamlDefect {
    /// An unquoted value contains `: `.
    UnquotedColon,
    /// An unquoted value ends with a colon.
    TrailingColon,
    /// A line is indented with a tab.
    TabIndent,
    /// An unquoted value starts with a character that has a special meaning in YAML.
    ReservedStart,
    DuplicateKey,
    /// Anything else.
    Other,
}

/// A value of the frontmatter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field {
    /// The key is absent.
    Missing,
    Text(String),
    /// A number, `true` or `false`, as written.
    Scalar(String),
    /// A list or a mapping, as JSON: `OpenClaw` lists `[a, b]` as `["a","b"]`.
    List(String),
    /// Nothing, `null` or `~`, as written.
    Null(String),
}

/// A parsed file.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillFile {
    /// Size in bytes.
    pub bytes: u64,
    /// Whether it is UTF-8.
    pub utf8: bool,
    /// Whether it starts with a byte order mark.
    pub byte_order_mark: bool,
    /// Whether the opening `---` is followed by whitespace.
    pub fence_blanks: bool,
    /// Whether `---` is its first line, and another one closes it.
    pub fenced: bool,
    /// Whether the first line begins a frontmatter.
    pub opened: bool,
    pub defects: Vec<YamlDefect>,
    front: String,
    /// The YAML as written, if it is valid.
    strict: Option<Node>,
    repaired: Option<(String, Node)>,
    /// The first line with any text below the frontmatter, and of the complete file.
    body_line: Option<String>,
    file_line: Option<String>,
}

impl SkillFile {
    /// Parses the bytes of a file.
    pub fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let source = text.trim_start_matches('\u{feff}');
        let first = source.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let opening = first.trim_end() == "---";
        let split = fence::split(source);
        let fenced = opening && split.defects.is_empty();
        let front = if fenced { slice(source, split.yaml) } else { "" }.to_owned();
        let body = if fenced { slice(source, split.body) } else { source };
        let mut file = Self {
            bytes: bytes.len() as u64,
            utf8: std::str::from_utf8(bytes).is_ok(),
            byte_order_mark: source.len() < text.len(),
            fence_blanks: opening && first.len() > 3,
            fenced,
            opened: opening,
            defects: Vec::new(),
            front,
            strict: None,
            repaired: None,
            body_line: first_line(body),
            file_line: first_line(source),
        };
        file.parse();
        file
    }

    fn parse(&mut self) {
        if !self.fenced {
            return;
        }
        let tabs = self.front.lines().any(|line| line.starts_with('\t') && !line.trim().is_empty());
        let parsed = yaml::parse(&self.front).ok().filter(|node| {
            let root = matches!(node.value, Content::Map(_) | Content::Null);
            if !root {
                self.defects.push(YamlDefect::Other);
            }
            root
        });
        if tabs {
            self.defects.push(YamlDefect::TabIndent);
        }
        match parsed {
            Some(node) => {
                if twice(&node) {
                    self.defects.push(YamlDefect::DuplicateKey);
                }
                if !tabs {
                    self.strict = Some(node);
                    return;
                }
            }
            None if self.defects.contains(&YamlDefect::Other) => return,
            None => {}
        }
        let without_tabs: String = self
            .front
            .split_inclusive('\n')
            .map(|line| {
                let rest = line.trim_start_matches('\t');
                "  ".repeat(line.len() - rest.len()) + rest
            })
            .collect();
        let quoted = repair::quote_values(&without_tabs, |_| true);
        let text = quoted.as_ref().map_or(without_tabs.as_str(), |repaired| &repaired.text);
        match yaml::parse(text) {
            Ok(node) if matches!(node.value, Content::Map(_)) => {
                for value in quoted.iter().flat_map(|repaired| &repaired.quoted) {
                    let text = slice(&without_tabs, value.value.clone());
                    self.defects.push(match value.colon {
                        true if text.contains(": ") => YamlDefect::UnquotedColon,
                        true => YamlDefect::TrailingColon,
                        false => YamlDefect::ReservedStart,
                    });
                }
                self.repaired = Some((text.to_owned(), node));
            }
            // Quotes do not repair it: what is wrong is something else.
            _ => self.defects.push(YamlDefect::Other),
        }
        if self.defects.is_empty() {
            self.defects.push(YamlDefect::Other);
        }
    }

    /// Returns a value: of the YAML as written if it is valid, otherwise of the repaired one.
    pub(super) fn field(&self, key: &str) -> Field {
        match (&self.strict, &self.repaired) {
            (Some(node), _) => field(node, &self.front, key),
            (None, Some((text, node))) => field(node, text, key),
            (None, None) => Field::Missing,
        }
    }

    /// Reads name and description line by line: the text after the key, verbatim, and for a description also the
    /// indented lines below it.
    pub(super) fn by_lines(&self) -> (Option<String>, Option<String>) {
        let value = |line: &str, key: &str| {
            line.trim_start()
                .strip_prefix(key)
                .and_then(|rest| rest.strip_prefix(':'))
                .map(|rest| rest.trim().to_owned())
        };
        let (mut name, mut description) = (None, None);
        let mut lines = self.front.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(text) = value(line, "name") {
                name = Some(text);
            } else if let Some(text) = value(line, "description") {
                let mut parts = vec![text];
                while let Some(more) =
                    lines.next_if(|next| next.starts_with([' ', '\t']) && !next.trim().is_empty())
                {
                    parts.push(more.trim().to_owned());
                }
                parts.retain(|part| !part.is_empty());
                description = Some(parts.join(" "));
            }
        }
        (name, description)
    }

    /// Returns the first line of the text below the frontmatter, or of the complete file if there is no frontmatter,
    /// without heading marks.
    pub(super) fn first_line(&self, with_frontmatter: bool) -> Option<&str> {
        if with_frontmatter { self.body_line.as_deref() } else { self.file_line.as_deref() }
    }

    /// Parses a flag: `true`, also in quotes, or `yes`.
    pub(super) fn flag(&self, key: &str) -> Option<Flag> {
        let text = match self.field(key) {
            Field::Text(text) | Field::Scalar(text) => text.trim().to_ascii_lowercase(),
            _ => return None,
        };
        match text.trim_matches(['"', '\'']) {
            "true" => Some(Flag::True),
            "yes" | "on" => Some(Flag::Yes),
            _ => None,
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        match self.field(key) {
            Field::Missing | Field::Null(_) => false,
            Field::Text(text) => !text.trim().is_empty(),
            Field::Scalar(_) | Field::List(_) => true,
        }
    }

    /// Returns whether there is a value at a path of keys separated by dots. An empty list or mapping is none.
    pub(super) fn has_path(&self, path: &str) -> bool {
        self.at_path(path).is_some_and(|node| match &node.value {
            Content::Null => false,
            Content::List(items) => !items.is_empty(),
            Content::Map(entries) => !entries.is_empty(),
            _ => true,
        })
    }

    /// Returns the text at a path of keys separated by dots, if it is one and not empty.
    pub(super) fn text_at(&self, path: &str) -> Option<&str> {
        match &self.at_path(path)?.value {
            Content::Text(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    fn at_path(&self, path: &str) -> Option<&Node> {
        let root = self.strict.as_ref().or_else(|| self.repaired.as_ref().map(|(_, node)| node))?;
        path.split('.').try_fold(root, |node, key| node.get(key).map(|entry| &entry.value))
    }

    /// Returns why no field can be read, without any text of the file; `None` if the file has frontmatter that is valid
    /// or could be repaired.
    pub fn without_fields(&self) -> Option<&'static str> {
        match (self.strict.is_some() || self.repaired.is_some(), self.fenced) {
            (true, _) => None,
            (false, true) => Some("its frontmatter is not valid YAML"),
            (false, false) => Some("it does not start with frontmatter between two lines `---`"),
        }
    }
}

/// How a flag is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flag {
    True,
    Yes,
}

fn field(root: &Node, text: &str, key: &str) -> Field {
    let Some(entry) = root.get(key) else { return Field::Missing };
    let source = |at: &Range<usize>| text.get(at.clone()).unwrap_or_default().trim().to_owned();
    let at = &entry.value.at;
    match &entry.value.value {
        Content::Text(text) => Field::Text(text.clone()),
        Content::Null => Field::Null(source(at)),
        Content::Flag(flag) => Field::Scalar(flag.to_string()),
        Content::Number(_) => Field::Scalar(source(at)),
        Content::List(_) | Content::Map(_) => Field::List(entry.value.to_json().to_string()),
    }
}

fn twice(node: &Node) -> bool {
    match &node.value {
        Content::Map(entries) => entries.iter().enumerate().any(|(at, entry)| {
            entries.iter().take(at).any(|other| other.key == entry.key) || twice(&entry.value)
        }),
        Content::List(items) => items.iter().any(twice),
        _ => false,
    }
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let heading = line.trim_start_matches('#');
    Some(
        if heading.len() < line.len() && heading.starts_with(' ') { heading.trim() } else { line }.to_owned(),
    )
}
