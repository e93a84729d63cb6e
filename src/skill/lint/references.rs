//! References of a body to skills, tools, files of its bundle, commands and environment variables, and checks that
//! they exist.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::rules;
use crate::finding_builder::{Notes, floor, slice};

/// What a reference refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// Another skill, by its name.
    Skill,
    /// A tool of the client, by its name.
    Tool,
    /// A file of the bundle, by its relative path.
    File,
    /// A program that a shell block runs.
    Command,
    /// An environment variable that code reads.
    Variable,
}

/// The first reference to something in a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Kind of its target.
    pub kind: ReferenceKind,
    /// Its name or path.
    pub name: String,
    /// Byte range in the body.
    pub at: Range<usize>,
    /// Whether a command runs it, or the path starts at the skill's folder (`${CLAUDE_SKILL_DIR}/…`); only for files.
    pub is_certain: bool,
}

/// Tools of known clients, from the tool references of Claude Code, Codex, Gemini CLI, `OpenCode` and Copilot.
const TOOLS: &[&str] = &[
    "Agent",
    "AskUserQuestion",
    "Artifact",
    "Bash",
    "BashOutput",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "GlobTool",
    "GoogleSearch",
    "Grep",
    "GrepTool",
    "KillShell",
    "LS",
    "ListMcpResourcesTool",
    "LSP",
    "MemoryTool",
    "Monitor",
    "MonitorTool",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "Read",
    "ReadFile",
    "ReadFolder",
    "ReadManyFiles",
    "ReadMcpResourceTool",
    "SaveMemory",
    "SendMessage",
    "Shell",
    "Skill",
    "SlashCommand",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
    "WriteFile",
    "WriteTodos",
];

/// Conventional folders of bundles.
const FOLDERS: &[&str] =
    &["scripts/", "references/", "assets/", "templates/", "reference/", "resources/", "examples/"];
/// Prefixes that clients replace by the skill's folder.
const BUNDLE_PREFIXES: &[&str] = &[
    "${CLAUDE_SKILL_DIR}/",
    "$CLAUDE_SKILL_DIR/",
    "${SKILL_DIR}/",
    "$SKILL_DIR/",
    "{baseDir}/",
    "${baseDir}/",
];
/// Programs that run a script given as a file.
const INTERPRETERS: &[&str] = &[
    "python", "python3", "bash", "sh", "zsh", "node", "ruby", "perl", "bun", "tsx", "deno", "uv", "npx",
    "run", "source",
];
/// Languages of code blocks that contain commands.
const SHELLS: &[&str] = &["bash", "sh", "shell", "zsh", "console", "shell-session"];
/// Shell keywords and builtins, which are not programs.
const SHELL_WORDS: &[&str] = &[
    "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "declare", "dirs", "disown",
    "do", "done", "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "false", "fg", "fi",
    "for", "function", "getopts", "hash", "if", "in", "jobs", "let", "local", "mapfile", "popd", "printf",
    "pushd", "pwd", "read", "readonly", "return", "select", "set", "shift", "shopt", "source", "test",
    "then", "time", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset",
    "until", "wait", "while",
];
/// Variables set by a shell, a client or a CI system.
const SET_ELSEWHERE: &[&str] =
    &["ARGUMENTS", "BASH_SOURCE", "HOME", "IFS", "OLDPWD", "PATH", "PWD", "SHELL", "TMPDIR", "USER"];
const SET_ELSEWHERE_PREFIXES: &[&str] = &["BASH_", "CLAUDE_", "CODEX_", "GITHUB_", "SKILL_"];
/// Words of a line about something yet to be created, or about an example.
const PLACEHOLDER_PHRASES: &[&str] = &[
    "building",
    "create",
    "creates",
    "creating",
    "design",
    "designing",
    "e.g",
    "example",
    "examples",
    "future",
    "generate",
    "generates",
    "imagine",
    "like",
    "mkdir",
    "name",
    "named",
    "output",
    "rename",
    "save",
    "touch",
    "write",
    "writes",
];

/// Maximum length of strong text that names a skill, with its stars.
const MAX_STRONG_BYTES: usize = 80;
/// Maximum length of the text before a reference that decides whether it is about an example.
const MAX_CONTEXT_BYTES: usize = 500;

/// Returns the first reference to each thing that a body mentions, in order.
pub fn references(body: &str) -> Vec<Reference> {
    let context = Context { body, read: 0, phrase: None };
    let mut found = ReferenceCollector { out: Vec::new(), seen: HashMap::new(), set: None, context };
    let mut block: Option<String> = None;
    for (event, at) in Parser::new_ext(body, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                block = Some(match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',', '{']).next().unwrap_or_default().to_ascii_lowercase()
                    }
                    CodeBlockKind::Indented => String::new(),
                });
            }
            Event::End(TagEnd::CodeBlock) => block = None,
            Event::Text(_) => {
                let Some(language) = &block else { continue };
                // Uses the source itself: offsets of text inside a quote or a list would be wrong otherwise.
                if SHELLS.contains(&language.as_str()) {
                    found.shell(body, at.clone());
                }
                found.variables_of_code(body, at, language);
            }
            Event::Code(_) => found.code_span(body, at),
            Event::Start(Tag::Strong) => found.strong(body, at),
            _ => {}
        }
    }
    found.out
}

struct ReferenceCollector<'a> {
    out: Vec<Reference>,
    /// The index of each reference in `out`.
    seen: HashMap<(ReferenceKind, String), usize>,
    /// The variables that the body sets; computed for the first one that it reads.
    set: Option<HashSet<&'a str>>,
    context: Context<'a>,
}

impl<'a> ReferenceCollector<'a> {
    fn add(&mut self, kind: ReferenceKind, name: &str, at: Range<usize>, is_certain: bool) {
        match self.seen.entry((kind, name.to_owned())) {
            Entry::Vacant(unseen) => {
                unseen.insert(self.out.len());
                self.out.push(Reference { kind, name: name.to_owned(), at, is_certain });
            }
            Entry::Occupied(seen) => {
                if is_certain && let Some(known) = self.out.get_mut(*seen.get()) {
                    known.is_certain = true;
                }
            }
        }
    }

    /// Finds `` `name` skill ``, ``skill `name` ``, `` `Name` tool ``, and paths.
    fn code_span(&mut self, body: &str, at: Range<usize>) {
        let written = slice(body, at.clone());
        let ticks = written.len() - written.trim_start_matches('`').len();
        let inner = at.start + ticks..at.end.saturating_sub(ticks).max(at.start + ticks);
        let text = slice(body, inner.clone());
        let (before, after) = (slice(body, ..at.start), slice(body, at.end..));
        let name = text.trim_start_matches('/');
        let name_at = inner.end - name.len()..inner.end;
        if is_skill_name(name)
            && (is_followed_by(after, "skill") || is_preceded_by(before, &["skill", "skills"]))
        {
            if !self.context.is_hypothetical(at.start) {
                self.add(ReferenceKind::Skill, name, name_at, true);
            }
        } else if is_followed_by(after, "tool") && is_tool_name(text) {
            self.add(ReferenceKind::Tool, text, inner.clone(), true);
        }
        self.paths(body, inner);
    }

    /// Finds `**name** skill`.
    fn strong(&mut self, body: &str, at: Range<usize>) {
        // Strong text can contain strong text: only ranges that can be a name are read.
        if at.len() > MAX_STRONG_BYTES {
            return;
        }
        let text = slice(body, at.clone());
        let name = text.trim_matches('*');
        let is_adjective = name.ends_with("-invoked") || name.ends_with("-based") || name.ends_with("-only");
        let is_named = is_skill_name(name) && !is_adjective;
        if is_named
            && is_followed_by(slice(body, at.end..), "skill")
            && !self.context.is_hypothetical(at.start)
        {
            let start = at.start + text.len() - text.trim_start_matches('*').len();
            self.add(ReferenceKind::Skill, name, start..start + name.len(), true);
        }
    }

    /// Finds paths of files among the words of a code span.
    fn paths(&mut self, body: &str, at: Range<usize>) {
        let text = slice(body, at.clone());
        let mut is_run = false;
        for (start, word) in words(text) {
            let place = at.start + start;
            let (path, is_absolute) = bundle_path(word);
            let is_program = INTERPRETERS.contains(&word);
            if let Some(path) = path
                && is_file_path(path)
                && (is_absolute || FOLDERS.iter().any(|folder| path.starts_with(folder)))
                && !self.context.is_hypothetical(place)
            {
                let from = place + word.len() - path.len();
                self.add(ReferenceKind::File, path, from..from + path.len(), is_absolute || is_run);
            }
            is_run = is_program || (is_run && word.starts_with('-'));
        }
    }

    /// Finds the commands of a shell block, the scripts that they run, and the variables that they read.
    fn shell(&mut self, body: &str, at: Range<usize>) {
        let mut from = at.start;
        let mut continued = false;
        let mut heredoc: Option<String> = None;
        let text = slice(body, at);
        let is_session = text.lines().any(|line| line.trim_start().starts_with("$ "));
        for line in text.split_inclusive('\n') {
            let start = from;
            from += line.len();
            let command = line.trim();
            if let Some(end) = &heredoc {
                if command == end {
                    heredoc = None;
                }
                continue;
            }
            let is_output = is_session && !command.starts_with("$ ") && !continued;
            if command.is_empty() || command.starts_with('#') || is_output {
                continued = false;
                continue;
            }
            if let Some((_, marker)) = line.split_once("<<") {
                let marker = marker.trim_start_matches(['-', '<', ' ']);
                let marker = marker
                    .split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '\'' | '"'))
                    .next();
                heredoc = marker
                    .map(|word| word.trim_matches(['\'', '"']).to_owned())
                    .filter(|word| !word.is_empty());
            }
            if !continued {
                self.commands(line, start);
            }
            self.paths_of_line(body, start..from);
            continued = command.ends_with('\\');
        }
    }

    fn paths_of_line(&mut self, body: &str, at: Range<usize>) {
        let code = slice(body, at.clone());
        let end = code.find(" #").unwrap_or(code.len());
        // The target of a redirection (`> path`) need not exist before.
        let end = code.find('>').map_or(end, |redirect| redirect.min(end));
        let line = slice(code, ..end);
        let runs: Vec<&str> = words(line).map(|(_, word)| word).collect();
        let is_script = |word: &str| {
            let (path, is_absolute) = bundle_path(word);
            path.is_some_and(|path| {
                is_absolute || path.starts_with("scripts/") || path.starts_with("assets/")
            })
        };
        let first_script = runs.iter().position(|word| is_script(word));
        let Some(first) = first_script else { return };
        let runs_it = first == 0
            || runs.get(..first).unwrap_or_default().iter().any(|word| INTERPRETERS.contains(word));
        if runs_it {
            let start = line.find(runs[first]).unwrap_or_default();
            let (path, is_absolute) = bundle_path(runs[first]);
            if let Some(path) = path.filter(|path| is_file_path(path)) {
                let from = at.start + start + runs[first].len() - path.len();
                let is_relative_script = path.starts_with("scripts/") || path.starts_with("assets/");
                if is_absolute || is_relative_script {
                    self.add(ReferenceKind::File, path, from..from + path.len(), true);
                }
            }
        }
    }

    /// Finds the program of each part of a command line.
    fn commands(&mut self, line: &str, start: usize) {
        for (at, part) in parts(line) {
            let mut rest = words(part);
            let program = rest.find(|(_, word)| {
                let is_assignment = word.split_once('=').is_some_and(|(name, _)| is_identifier(name));
                !is_assignment && !matches!(*word, "$" | "sudo" | "env" | "time" | "exec" | "!" | "nohup")
            });
            let Some((offset, program)) = program else { continue };
            let is_program = program.len() > 1
                && program.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
                && program.bytes().all(|b| {
                    b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.' | b'+')
                })
                && !program.contains("..")
                && !program.ends_with(['.', '-']);
            if is_program
                && !SHELL_WORDS.contains(&program)
                && !slice(line, at + offset..).starts_with(&format!("{program}()"))
            {
                let place = start + at + offset;
                self.add(ReferenceKind::Command, program, place..place + program.len(), true);
            } else if !is_program && !program.starts_with(['$', '.', '/', '{', '[', '-']) {
                // A part that does not start with a program is the rest of a quoted text.
                return;
            }
        }
    }

    /// Finds `$NAME` in shell, `os.environ["NAME"]`, `os.getenv("NAME")`, `process.env.NAME`.
    fn variables_of_code(&mut self, body: &'a str, at: Range<usize>, language: &str) {
        let text = slice(body, at.clone());
        let mut read = |name: &str, offset: usize| {
            let is_set_elsewhere = SET_ELSEWHERE.contains(&name)
                || SET_ELSEWHERE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            if is_variable_name(name)
                && !is_set_elsewhere
                && !self.set.get_or_insert_with(|| set_variables(body)).contains(name)
            {
                let from = at.start + offset;
                self.add(ReferenceKind::Variable, name, from..from + name.len(), true);
            }
        };
        let openings: &[&str] = match language {
            language if SHELLS.contains(&language) => &["${", "$"],
            "python" | "py" => {
                &["os.environ[\"", "os.environ['", "os.environ.get(\"", "os.getenv(\"", "os.getenv('"]
            }
            "javascript" | "js" | "typescript" | "ts" | "jsx" | "tsx" => &["process.env."],
            _ => return,
        };
        for opening in openings {
            for (place, _) in text.match_indices(opening) {
                let from = place + opening.len();
                let rest = slice(text, from..);
                let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
                // `${NAME:-default}` has a default.
                if !slice(rest, length..).starts_with(":-") {
                    read(slice(rest, ..length), from);
                }
            }
        }
    }
}

/// Returns whether a name is that of an environment variable, as they are usually written.
fn is_variable_name(name: &str) -> bool {
    name.len() >= 4
        && name.contains('_')
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && name.bytes().next().is_some_and(|b| b.is_ascii_uppercase())
}

/// Returns the variables that a body sets: by assignment, as a loop variable, by `read`, or in an `env:` mapping.
fn set_variables(body: &str) -> HashSet<&str> {
    let mut set = HashSet::new();
    let mut from = 0;
    for word in body.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let end = from + word.len();
        let (before, after) = (slice(body, ..from), slice(body, end..));
        let is_set = after.starts_with(['=', ':'])
            || (before.ends_with("for ") && after.starts_with(' '))
            || before.ends_with("read ")
            || before.ends_with("read -r ");
        if is_set && is_variable_name(word) {
            set.insert(word);
        }
        from = end + after.chars().next().map_or(0, char::len_utf8);
    }
    set
}

/// Splits a line into commands with their offsets: at `|`, `;` and `&` outside of quotes.
fn parts(line: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let (mut from, mut quote) = (0, None);
    for (at, letter) in line.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            None if matches!(letter, '|' | ';' | '&') => {
                out.push((from, slice(line, from..at)));
                from = at + 1;
            }
            _ => {}
        }
    }
    out.push((from, slice(line, from..)));
    out
}

/// Splits a line into words with their offsets, without surrounding quotes.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    line.split([' ', '\t', '\n', '\r']).filter_map(move |word| {
        let start = at;
        at += word.len() + 1;
        let trimmed = word.trim_start_matches(['"', '\'', '(']);
        let offset = start + word.len() - trimmed.len();
        let trimmed = trimmed.trim_end_matches(['"', '\'', ')', ',', ':']);
        (!trimmed.is_empty()).then_some((offset, trimmed))
    })
}

/// Returns a path relative to the bundle, and whether it explicitly starts at the bundle's folder.
fn bundle_path(word: &str) -> (Option<&str>, bool) {
    if let Some(path) = BUNDLE_PREFIXES.iter().find_map(|prefix| word.strip_prefix(prefix)) {
        return (Some(path), true);
    }
    let path = word.strip_prefix("./").unwrap_or(word);
    (path.contains('/').then_some(path), false)
}

/// Returns whether a path names one file, not a pattern or a placeholder.
fn is_file_path(path: &str) -> bool {
    let is_plain = path.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'-' | b'_'));
    let extension = path.rsplit_once('.').map(|(name, extension)| (!name.ends_with('/'), extension));
    let has_extension = extension.is_some_and(|(named, extension)| {
        named && (1..=5).contains(&extension.len()) && extension.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    is_plain && has_extension && !path.contains("..") && !path.contains("//") && !is_placeholder(path)
}

fn is_placeholder(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    matches!(
        stem,
        "example"
            | "file"
            | "filename"
            | "foo"
            | "bar"
            | "script"
            | "my-script"
            | "my_script"
            | "name"
            | "xxx"
    ) || path.contains("YYYY")
        || path.contains("path/to")
}

fn is_skill_name(name: &str) -> bool {
    name.contains('-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !matches!(
            name,
            "your-skill" | "my-skill" | "skill-name" | "your-skill-name" | "my-skill-name" | "skill-id"
        )
}

fn is_tool_name(name: &str) -> bool {
    name.len() > 2
        && name.bytes().next().is_some_and(|b| b.is_ascii_uppercase())
        && name.bytes().any(|b| b.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_alphabetic())
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_followed_by(after: &str, word: &str) -> bool {
    after.strip_prefix(' ').and_then(|rest| rest.strip_prefix(word)).is_some_and(|rest| {
        !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '’' | '\''))
    })
}

fn is_preceded_by(before: &str, names: &[&str]) -> bool {
    let before = before.trim_end_matches([' ', ':']);
    names.iter().any(|word| {
        before.strip_suffix(word).is_some_and(|rest| {
            !rest.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/'))
        })
    })
}

/// The text before references. Their positions ascend, so that each part is read once.
struct Context<'a> {
    body: &'a str,
    /// End of the text that is read.
    read: usize,
    /// Start of the last of [`PLACEHOLDER_PHRASES`] in the line up to there.
    phrase: Option<usize>,
}

impl Context<'_> {
    /// Returns whether the line up to a position is about an example, or about something yet to be created.
    fn is_hypothetical(&mut self, at: usize) -> bool {
        let from = floor(self.body, at.saturating_sub(MAX_CONTEXT_BYTES));
        if self.read < from || self.read > at {
            (self.read, self.phrase) = (from, None);
        }
        let is_separator = |c: char| !c.is_alphanumeric() && c != '.' && c != '-';
        for line in slice(self.body, self.read..at).split_inclusive(['\n', '|']) {
            for part in line.split_inclusive(is_separator) {
                let word = part.trim_end_matches(is_separator).trim_end_matches('.');
                if PLACEHOLDER_PHRASES.iter().any(|phrase| phrase.eq_ignore_ascii_case(word)) {
                    self.phrase = Some(self.read);
                }
                self.read += part.len();
            }
            if line.ends_with(['\n', '|']) {
                self.phrase = None;
            }
        }
        self.phrase.is_some_and(|phrase| phrase >= from)
    }
}

/// Returns the known tool that a name probably means; `None` if it is a known tool, or similar to none.
fn intended_tool(name: &str) -> Option<&'static str> {
    if TOOLS.contains(&name) {
        return None;
    }
    let without = name.strip_suffix("Tool").or_else(|| name.strip_suffix('s'));
    let exact = TOOLS.iter().find(|tool| without == Some(**tool) || tool.eq_ignore_ascii_case(name));
    exact
        .or_else(|| TOOLS.iter().find(|tool| name.len() >= 6 && strsim::damerau_levenshtein(tool, name) <= 1))
        .copied()
}

/// Reports unknown tools that resemble a known one, and missing files.
pub(super) fn check(
    body: &str,
    start: usize,
    root_dir: &Path,
    is_ignored: impl Fn(&rules::Rule, usize) -> bool,
    notes: &mut Notes<'_>,
) {
    let place = |reference: &Reference| reference.at.start + start..reference.at.end + start;
    let mut missing = Vec::new();
    for reference in references(body) {
        match reference.kind {
            ReferenceKind::Tool => {
                if let Some(intended) = intended_tool(&reference.name) {
                    let message = format!("no known client has a tool `{}`", reference.name);
                    let finding = notes.add(&rules::TOOL_UNKNOWN, None, place(&reference), message);
                    finding.help =
                        format!("Did you mean `{intended}`? The model calls tools by their exact name.");
                }
            }
            ReferenceKind::File => {
                let first = reference.name.split('/').next().unwrap_or_default();
                // If a folder with that name exists, it is a path of the bundle; otherwise it may refer to the user's
                // project.
                let is_of_bundle = reference.is_certain || root_dir.join(first).is_dir();
                if is_of_bundle && !root_dir.join(&reference.name).exists() {
                    missing.push(reference);
                }
            }
            ReferenceKind::Skill | ReferenceKind::Command | ReferenceKind::Variable => {}
        }
    }
    let is_ignored = |reference: &&Reference| is_ignored(&rules::FILE_MISSING, place(reference).start);
    let (ignored, mut others): (Vec<_>, Vec<_>) = missing.iter().partition(is_ignored);
    if let [first, _, ..] = others.as_slice()
        && super::links::is_alone(root_dir)
    {
        let message = format!(
            "{} files, such as `{}`, are missing: the folder contains only SKILL.md",
            others.len(),
            first.name
        );
        notes.add(&rules::FILE_MISSING, None, place(first), message);
        others.clear();
    }
    for reference in ignored.into_iter().chain(others) {
        let message = format!("file `{}` not found in the bundle", reference.name);
        notes.add(&rules::FILE_MISSING, None, place(reference), message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_base::time_limit::TimeLimit;

    fn names(body: &str, kind: ReferenceKind) -> Vec<String> {
        references(body).into_iter().filter(|found| found.kind == kind).map(|found| found.name).collect()
    }

    #[test]
    fn skills_are_recognized_by_their_wording() {
        let body = "Use the `pdf-tables` skill, then the **csv-tools** skill. See skill `log-sum`.\n\
            A `two-step` process; `my-skill` skill; **user-invoked** skill.\n\
            When building a `pdf-editor` skill, ask first.\n";
        assert_eq!(names(body, ReferenceKind::Skill), ["pdf-tables", "csv-tools", "log-sum"]);
    }

    #[test]
    fn files_are_those_that_commands_run_or_folders_name() {
        let body = "Read `references/layout.md`. Create `assets/new.svg`. Use `scripts/*.py`.\n\n\
            ```bash\n# scripts/comment.py\npython3 scripts/extract.py in.pdf > scripts/out.txt\n\
            ${CLAUDE_SKILL_DIR}/bin/run.sh\ncat scripts/data.csv\n```\n\n```\nscripts/tree.py\n```\n";
        let found = references(body);
        let files: Vec<_> = found
            .iter()
            .filter(|found| found.kind == ReferenceKind::File)
            .map(|found| (found.name.as_str(), found.is_certain))
            .collect();
        assert_eq!(
            files,
            [("references/layout.md", false), ("scripts/extract.py", true), ("bin/run.sh", true)]
        );
        for reference in found {
            assert_eq!(&body[reference.at.clone()], reference.name, "{reference:?}");
        }
    }

    #[test]
    fn the_line_before_a_reference_determines_whether_it_is_an_example() {
        let far = format!("Create it. {}`references/far.md`\n\n", "x ".repeat(MAX_CONTEXT_BYTES / 2));
        let body = format!(
            "{far}CREATE `references/a.md` and `references/b.md c references/d.md`.\nRead `references/e.md`.\n\n\
                For example. See `references/f.md`\n\n| save | file |\n|-|-|\n| save | `references/g.md` |\n"
        );
        let found = names(&body, ReferenceKind::File);
        assert_eq!(found, ["references/far.md", "references/e.md", "references/g.md"]);
    }

    #[test]
    fn commands_start_the_segments_of_a_shell_line() {
        let body = "```bash\nexport A=1\nFOO=2 pdftotext in.pdf | sort -u && jq . x\ncat <<EOF\nnotacommand\nEOF\n\
            git commit -m \"one; two\" \\\n  --amend\n```\n\n```python\nprint(1)\n```\n";
        assert_eq!(names(body, ReferenceKind::Command), ["pdftotext", "sort", "jq", "cat", "git"]);
        let session = "```console\n$ kubectl get pods\nname   ready\n```\n";
        assert_eq!(names(session, ReferenceKind::Command), ["kubectl"]);
    }

    #[test]
    fn only_unset_variables_are_reported() {
        let body = "```bash\ncurl -H \"X: $API_TOKEN\" \"$BASE_URL\" ${LOG_LEVEL:-info} $HOME_DIR $1\nBASE_URL=x\n```\n\n\
            ```python\nos.environ[\"SERVICE_KEY\"]\n```\n\n```text\n$NOT_CODE\n```\n";
        assert_eq!(names(body, ReferenceKind::Variable), ["API_TOKEN", "HOME_DIR", "SERVICE_KEY"]);
    }

    #[test]
    fn variables_are_set_in_several_forms() {
        let body = "```bash\nfor ONE_FILE in *; do echo $ONE_FILE; done; read TWO_LINE; read -r THREE_LINE\n\
            export FOUR_WORD=é; env:\n  FIVE_KEY: x\necho $TWO_LINE $THREE_LINE $FOUR_WORD $FIVE_KEY $SIX_GONE\n```\n";
        assert_eq!(names(body, ReferenceKind::Variable), ["SIX_GONE"]);
    }

    /// Each of these took minutes when a reference was compared with all of the body or with all other references.
    #[test]
    fn long_bodies_with_many_references_are_read_quickly() {
        let many = |form: &dyn Fn(usize) -> String| (0..40_000).map(form).collect::<String>();
        let bodies = [
            format!("```bash\n{}\n```\n", "$(".repeat(250_000)),
            format!("```bash\n{}\n```\n", many(&|n| format!("$A_B{n} "))),
            format!("```bash\n{}{}\n```\n", many(&|n| format!("c{n}\n")), "c39999\n".repeat(40_000)),
            many(&|n| format!("`scripts/f{n}.py` ")),
            "`scripts/a.py` ".repeat(200_000),
            "Create `scripts/a.py` ".repeat(200_000),
        ];
        for body in bodies {
            let limit = TimeLimit::start(std::time::Duration::from_secs(20));
            references(&body);
            assert!(!limit.is_exceeded(), "{}", slice(&body, ..20));
        }
    }

    #[test]
    fn only_misspelled_tools_are_corrected() {
        assert_eq!(intended_tool("AskUserQuestions"), Some("AskUserQuestion"));
        assert_eq!(intended_tool("WebSerch"), Some("WebSearch"));
        assert_eq!(intended_tool("BashTool"), Some("Bash"));
        assert_eq!(intended_tool("Read"), None);
        assert_eq!(intended_tool("CreateInvoice"), None);
    }

    #[test]
    fn missing_files_are_found_in_folders_that_exist() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("scripts")).unwrap();
        std::fs::write(dir.path().join("scripts/there.py"), "").unwrap();
        std::fs::write(dir.path().join("SKILL.md"), "").unwrap();
        let body = "Run `scripts/there.py`, then `scripts/gone.py`; read `references/none.md`.\n";
        let found = |root: &Path, body: &str| {
            let mut notes = Notes::new(Path::new("SKILL.md"), body);
            check(body, 0, root, |_, _| false, &mut notes);
            notes
                .finish()
                .into_iter()
                .map(|found| (found.code, found.span.unwrap().offset))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(dir.path(), body), [("file-missing".to_owned(), 30)]);
        let alone = tempfile::tempdir().unwrap();
        std::fs::write(alone.path().join("SKILL.md"), "").unwrap();
        let body = "```bash\npython scripts/one.py\npython scripts/two.py\n```\n";
        assert_eq!(found(alone.path(), body).len(), 1);
    }
}
