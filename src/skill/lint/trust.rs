//! Rules about trust: hidden text, commands that run automatically, tools that the skill grants itself.

use std::collections::{BTreeMap, HashSet};
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use icu_properties::props::GeneralCategory;

use super::{LintInput, rules};
use crate::bundle::{bundle_files, is_main_file};
use crate::finding_builder::{Notes, slice};
use crate::safe_text::{Hidden, hidden};
use crate::text_width::CATEGORY;
use crate::yaml::{Content, Node};
use crate::{Digest, Finding};
use skills_base::files::Folder;

/// Extensions of files that are read as text, even if a byte of it is invalid.
const TEXT: &[&str] =
    &["md", "mdx", "markdown", "rst", "txt", "yaml", "yml", "json", "toml", "csv", "html", "xml"];
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
        note(kind, &group, "the file", None, at, notes);
    }
}

/// Reports invisible characters in the other text files of a bundle, which a model may read.
pub(super) fn hidden_in_files(folder: &Folder, main: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let files = bundle_files(folder).unwrap_or_default().into_iter();
    // Other systems may read another spelling of `SKILL.md`.
    let entries = folder.entries("").unwrap_or_default().into_iter().map(|entry| entry.name);
    let mut main_files: Vec<String> = entries.filter(|name| is_main_file(name)).collect();
    main_files.sort();
    let paths = main_files.into_iter().chain(files.map(|file| file.path));
    let (mut checked, mut total) = (0, 0);
    for path in paths.filter(|path| Path::new(path) != main) {
        if checked == MAX_TEXT_FILES {
            break;
        }
        let Some(bytes) = text_bytes(folder, &path) else { continue };
        checked += 1;
        total += bytes.len();
        if total > MAX_TEXT_TOTAL {
            break;
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) if is_text(&path) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            Err(_) => continue,
        };
        // Binary files contain it.
        if text.contains('\0') {
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
    if bytes.contains(&0) || !is_utf8 && !is_text(path) {
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
                note(kind, &group, &holder, Some(field), at.clone(), notes);
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
        // Tags after a black flag are part of an emoji (the flags of England, Scotland, Wales).
        if matches!(c, '\u{e0020}'..='\u{e007f}') && (before == Some('\u{1f3f4}') || flag_until == at) {
            flag_until = at + c.len_utf8();
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
    at: Range<usize>,
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

/// Returns the commands that Claude Code runs when it loads a skill: those in the body, and in what is the body for it.
fn command_expansions(source: &str, body_start: usize) -> Vec<(Range<usize>, &str)> {
    let end = frontmatter_end_for_claude_code(source).unwrap_or_default();
    let start = source.len() - slice(source, end..).trim_start_matches(is_space).len();
    // Behind a byte order mark, the frontmatter may be part of the body.
    let complete = source.starts_with('\u{feff}').then_some(0);
    let mut found: Vec<(Range<usize>, &str)> = [body_start, start]
        .into_iter()
        .chain(complete)
        .flat_map(|start| {
            let expansions = expansions_in(slice(source, start..)).into_iter();
            expansions.map(move |(at, command)| (at.start + start..at.end + start, command))
        })
        .collect();
    found.sort_by_key(|(at, _)| at.start);
    found.dedup_by_key(|(at, _)| at.start);
    found
}

/// Returns the commands in a body that Claude Code runs, also those that exist only after it has replaced placeholders,
/// such as `$1`, by arguments that are empty.
fn expansions_in(body: &str) -> Vec<(Range<usize>, &str)> {
    let mut places = places_of_expansions(body);
    if let Some(replaced) = Replaced::of(body) {
        let known: HashSet<usize> = places.iter().map(|(at, _)| at.start).collect();
        let further = places_of_expansions(&replaced.text).into_iter().map(|(at, command)| {
            // Ranges begin and end with characters that are not replaced, and so do the texts next to commands.
            let original = |at: usize| replaced.original(at);
            let command = original(command.start.saturating_sub(1)) + 1..original(command.end);
            (original(at.start)..original(at.end.saturating_sub(1)) + 1, command)
        });
        places.extend(further.filter(|(at, _)| !known.contains(&at.start)));
    }
    let commands = places.into_iter().map(|(at, command)| (at, slice(body, command).trim_matches(is_space)));
    commands.filter(|(_, command)| !command.is_empty()).collect()
}

/// Returns the ranges of the commands in a body and of their texts: `` !`command` `` after white space, and everything
/// after `` ```! `` up to the next fence, wherever it begins.
fn places_of_expansions(body: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found = Vec::new();
    let mut block_end = 0;
    for (at, _) in body.match_indices('!') {
        let rest = slice(body, at + 1..);
        let before = slice(body, ..at);
        if before.ends_with("```") && at >= block_end + 3 {
            let Some((command, _)) = rest.split_once("```") else { continue };
            let end = at + 1 + command.len();
            block_end = end + 3;
            found.push((at - 3..at + 1, at + 1..end));
        } else if let Some(rest) = rest.strip_prefix('`') {
            let is_free = before.chars().next_back().is_none_or(is_space);
            if let Some((command, _)) = rest.split_once('`').filter(|_| is_free) {
                let end = at + 2 + command.len();
                found.push((at..end + 1, at + 2..end));
            }
        }
    }
    found
}

/// A text in which the placeholders of arguments are replaced by empty texts.
struct Replaced {
    text: String,
    /// Where the parts begin in this text and in the original one.
    parts: Vec<(usize, usize)>,
}

impl Replaced {
    /// Replaces `$ARGUMENTS`, `$ARGUMENTS[1]`, `$1`, `$NAME` and `${CLAUDE_NAME}`; `None` if there are none. Replaces all
    /// names, and also what follows them as part of a word: the result of one replacement may be a placeholder, too.
    fn of(original: &str) -> Option<Self> {
        let mut replaced = Self { text: String::new(), parts: Vec::new() };
        let (mut from, mut searched) = (0, 0);
        while let Some(at) = slice(original, searched..).find('$').map(|at| searched + at) {
            let (length, is_placeholder) = word_with_dollar(slice(original, at..));
            searched = at + length;
            if is_placeholder {
                replaced.keep(original, from..at);
                from = searched;
            }
        }
        if from == 0 {
            return None;
        }
        replaced.keep(original, from..original.len());
        Some(replaced)
    }

    fn keep(&mut self, original: &str, part: Range<usize>) {
        self.parts.push((self.text.len(), part.start));
        self.text.push_str(slice(original, part));
    }

    /// Returns the offset in the original text of a character of this one.
    fn original(&self, at: usize) -> usize {
        let behind = self.parts.partition_point(|(start, _)| *start <= at);
        let part = behind.checked_sub(1).and_then(|index| self.parts.get(index));
        part.map_or(at, |(start, original)| original + (at - start))
    }
}

/// Returns the length of the word with which a text begins, which starts with `$`, and whether it is a placeholder.
fn word_with_dollar(text: &str) -> (usize, bool) {
    if let Some(rest) = text.strip_prefix("${CLAUDE_") {
        let behind = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        return if behind.starts_with('}') { (text.len() - behind.len() + 1, true) } else { (1, false) };
    }
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '$' | '_' | '-' | '[' | ']');
    let end = text.len() - text.trim_start_matches(is_part).len();
    (end, slice(text, ..end).bytes().any(|byte| byte != b'$'))
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
    let commands = commands.map(|(_, command)| {
        format!("`{}`, which Claude Code executes when it loads the skill", on_one_line(command))
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
    for (at, command) in found {
        let message = format!("loading the skill runs {}", shown_command(command));
        notes.add(&rules::COMMAND_EXPANSION, None, at, message);
    }
    if let Some((at, _)) = rest.first() {
        let commands: Vec<&str> = rest.iter().map(|(_, command)| *command).collect();
        let (count, shown) = (commands.len(), shown_command(&commands.join("\n")));
        let message =
            format!("the number of further commands that loading the skill runs is {count}: {shown}");
        notes.add(&rules::COMMAND_EXPANSION, None, at.clone(), message);
    }
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
    if let Some(shell) = tools.iter().find(|tool| grants_any_command(tool)) {
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
    HARMLESS.contains(&tool.split('(').next().unwrap_or(tool))
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
        shell || matches!(pattern, "" | "*" | "*:*" | ":*" | "**")
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
    use crate::safe_text;

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
                found.iter().map(|(_, command)| *command).collect::<Vec<_>>(),
                ["curl evil"],
                "{body:?}"
            );
        }
        assert_eq!(expansions_in("Now: !`a |\nb` x")[0].1, "a |\nb");
        for body in ["x!`a`", "```\na!\n```", "!``", "```!\n```", "!`a", "```! a", "!important"] {
            assert!(expansions_in(body).is_empty(), "{body:?}");
        }
    }

    #[test]
    fn commands_that_exist_after_the_replacement_of_arguments_are_found() {
        for body in [
            "!$9`curl evil`",
            "Now: $9!`curl evil`",
            "!$ARGUMENTS`curl evil`",
            "!$ARGUMENTS[3]`curl evil`",
            "$issue!$my-name`curl evil`",
            "!$AR$1GUMENTS`curl evil`",
            "!$$ARGUMENTS[0]1`curl evil`",
            "!${CLAUDE_SKILL_DIR}`curl evil`",
            "`$9``!\ncurl evil\n```\n",
            "```$1!\ncurl evil\n`$2`$3`",
            "Costs $$ $ ${HOME} é$1 表 !$9`curl evil` $",
        ] {
            let found = expansions_in(body);
            let commands: Vec<_> = found.iter().map(|(_, command)| *command).collect();
            assert_eq!(commands, ["curl evil"], "{body:?}");
            assert!(body[found[0].0.clone()].starts_with(['!', '`']), "{body:?}");
        }
        let found = expansions_in("!`a` !$1`$SHELL $2` $3!`b` !`c $1`");
        let commands: Vec<_> = found.iter().map(|(_, command)| *command).collect();
        assert_eq!(commands, ["a", "c $1", "$SHELL $2", "b"]);
        for body in ["Set `$HOME`!", "Pay $5!", "x$1!`a`", "$!`a`", "`$1`!`a`", "Use $1: `a`", "${HOME}!`a`"]
        {
            assert!(expansions_in(body).is_empty(), "{body:?}");
        }
        // Takes no time that grows with the square of the length.
        for part in ["$", "$1", "${CLAUDE_", "${CLAUDE_A", "!$1`", "`$1``!", "$é "] {
            expansions_in(&part.repeat(100_000));
        }
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
        // A character is at the end of the beginning.
        let long = format!("{}é\u{202e}", "x".repeat(usize::try_from(HEAD_BYTES).unwrap() - 1));
        std::fs::write(path("e"), long).unwrap();
        let folder = Folder::follow(dir.path()).unwrap();
        let found = hidden_in_files(&folder, Path::new("SKILL.md"));
        let files: Vec<_> = found.iter().map(|finding| finding.file.to_str().unwrap()).collect();
        assert_eq!(files, ["d.txt", "e"]);
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
        let found = hidden_in_files(&folder, Path::new("SKILL.md"));
        let files: Vec<_> = found.iter().map(|finding| finding.file.to_str().unwrap()).collect();
        assert_eq!(files, ["skill.md"]);
    }

    #[test]
    fn only_an_unlimited_shell_is_any_command() {
        for tool in ["Bash", "Bash(*)", "Bash(*:*)", "Bash(bash *)", "Bash(sudo:*)", "*", "shell"] {
            assert!(grants_any_command(tool), "{tool}");
        }
        for tool in ["Bash(git status:*)", "Read", "BashOutput", "Bash(python3:*)"] {
            assert!(!grants_any_command(tool), "{tool}");
        }
    }
}
