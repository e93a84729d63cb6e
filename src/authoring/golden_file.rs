//! Edits of a `golden.yaml` that preserve comments, order and quoting of everything else.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use skills_base::files::{self, OpenError};
use skills_base::private_files;
use skills_discovery::{Case, Expect, GoldenError, golden_yaml};
use skills_skill::SkillId;

use crate::write_back::{WriteError, replace_real_file};

/// Maximum size of an edited file in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// A change of a golden set. Positions count the queries of the file from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoldenEdit {
    /// Adds queries at the end.
    Add(Vec<Case>),
    /// Replaces the query at a position.
    Replace(usize, Case),
    /// Removes the query at a position.
    Remove(usize),
}

/// Why a golden set cannot be edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file is not a valid golden set.
    #[error("{0}")]
    Invalid(#[from] GoldenError),
    /// The query at that position has changed.
    #[error("the golden set has changed; read it again before editing")]
    Changed,
    /// The change would affect other content.
    #[error("this file cannot be edited without affecting other content; edit it manually")]
    NotExact,
    /// The file cannot be opened, or is a link that points outside its folder.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Reads the queries of a file and its text; both are empty for a file that does not exist.
///
/// # Errors
/// Returns an error if the file cannot be read, or is a link that points outside its folder.
pub fn read_golden(file: &Path) -> Result<(Vec<Case>, String), EditError> {
    let text = read(file)?.map(|(_, text)| text).unwrap_or_default();
    let cases = if is_empty(&text) { Vec::new() } else { golden_yaml(&text)? };
    Ok((cases, text))
}

/// Returns the real path of a file and its text; `None` for a file that does not exist.
fn read(file: &Path) -> Result<Option<(PathBuf, String)>, OpenError> {
    let read = |real: PathBuf| files::read_text(&real, MAX_BYTES).map(|text| (real, text));
    match files::resolve_named(file).and_then(read) {
        Ok(found) => Ok(Some(found)),
        Err(OpenError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Edits a file atomically. `expected` is the query that the caller saw at the position of the edit: if another one is
/// there now, the edit is applied at the query's current position. Processes that edit files in the same folder are
/// serialized. Returns the queries of the file after the edit.
///
/// # Errors
/// Returns an error if the file lacks the expected query or already has the added one, is a link that points
/// outside its folder, or cannot be written.
pub fn edit_golden(file: &Path, edit: &GoldenEdit, expected: Option<&Case>) -> Result<Vec<Case>, EditError> {
    let io = |error: std::io::Error| WriteError::Io(format!("{}: {error}", file.display()));
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if matches!(edit, GoldenEdit::Add(_)) {
        private_files::create_folder(folder).map_err(io)?;
    }
    let _lock = lock(folder);
    let (real, text) = read(file)?.unzip();
    let text = text.unwrap_or_default();
    let cases = if is_empty(&text) { Vec::new() } else { golden_yaml(&text)? };
    let present = |at: usize| match expected {
        Some(expected) if cases.get(at) != Some(expected) => {
            cases.iter().position(|case| case == expected).ok_or(EditError::Changed)
        }
        _ => Ok(at),
    };
    let edit = match edit {
        // The caller checked for duplicates, so this query was added since.
        GoldenEdit::Add(new) if new.iter().any(|new| cases.iter().any(|case| case.query == new.query)) => {
            return Err(EditError::Changed);
        }
        GoldenEdit::Add(new) => GoldenEdit::Add(new.clone()),
        GoldenEdit::Replace(at, case) => GoldenEdit::Replace(present(*at)?, case.clone()),
        GoldenEdit::Remove(at) => GoldenEdit::Remove(present(*at)?),
    };
    let written = apply_edit(&text, &edit)?;
    if let Some(real) = real {
        replace_real_file(&real, text.as_bytes(), written.as_bytes())?;
    } else {
        let new = File::options().write(true).create_new(true).open(file);
        std::io::Write::write_all(&mut new.map_err(io)?, written.as_bytes()).map_err(io)?;
    }
    Ok(golden_yaml(&written)?)
}

/// Locks a folder until the file is dropped or the process ends (`flock(2)`): a lock file would be an additional file
/// in the user's repository. Returns `None` if the system cannot lock folders.
fn lock(folder: &Path) -> Option<File> {
    let opened = File::open(folder).ok()?;
    match opened.lock() {
        Ok(()) => Some(opened),
        Err(error) => {
            tracing::debug!("cannot lock {}: {error}", folder.display());
            None
        }
    }
}

/// Queries to be added, compared with those of a golden set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewCases {
    /// Queries that are not in the set.
    pub new: Vec<Case>,
    /// Number of queries that are in the set with the same expectation.
    pub known: usize,
    /// Queries that are in the set with a different expectation.
    pub conflicts: Vec<Case>,
}

/// Returns whether two cases have the same query: the ranking does not distinguish upper and lower case.
pub fn is_same_query(a: &Case, b: &Case) -> bool {
    a.query.to_lowercase() == b.query.to_lowercase()
}

/// Compares queries with those of a golden set.
pub fn split_new(existing: &[Case], cases: Vec<Case>) -> NewCases {
    let mut split = NewCases::default();
    for case in cases {
        match existing.iter().chain(&split.new).find(|other| is_same_query(other, &case)) {
            None => split.new.push(case),
            Some(same) if same.expect == case.expect => split.known += 1,
            Some(_) => split.conflicts.push(case),
        }
    }
    split
}

/// Returns the text after an edit.
///
/// # Errors
/// Returns an error if the text is not a golden set, has no query at that position, or the result would not parse to
/// exactly the intended queries.
pub fn apply_edit(text: &str, edit: &GoldenEdit) -> Result<String, EditError> {
    let before = if is_empty(text) { Vec::new() } else { golden_yaml(text)? };
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let items = items(text);
    if items.len() != before.len() {
        return Err(EditError::NotExact);
    }
    let mut requested = before;
    let mut out = text.to_owned();
    match edit {
        GoldenEdit::Add(cases) => {
            // `[]` is an empty set as well.
            if requested.is_empty() && text.trim_end().ends_with("[]") {
                out.truncate(text.trim_end().len() - 2);
            }
            if !out.is_empty() && !out.ends_with('\n') {
                out.push_str(line_end);
            }
            let indent = items.first().map_or("", |item| item.indent);
            for case in cases {
                out.push_str(&render_case(case, indent, line_end));
            }
            requested.extend(cases.iter().cloned());
        }
        GoldenEdit::Replace(at, case) => {
            let item = items.get(*at).ok_or(EditError::Changed)?;
            let old = requested.get(*at).cloned().ok_or(EditError::Changed)?;
            item.replace(&mut out, text, &old, case, line_end);
            requested[*at] = case.clone();
        }
        GoldenEdit::Remove(at) => {
            let item = items.get(*at).ok_or(EditError::Changed)?;
            out.replace_range(item.lines.clone(), "");
            requested.remove(*at);
        }
    }
    let after = if is_empty(&out) { Vec::new() } else { golden_yaml(&out)? };
    if after == requested { Ok(out) } else { Err(EditError::NotExact) }
}

/// Returns whether a text has no queries: only blank lines and comments, or an empty list.
fn is_empty(text: &str) -> bool {
    let mut content = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    content.all(|line| line == "---" || line == "[]")
}

/// One entry of the list.
struct Item<'a> {
    /// The byte range of its lines, without comments and blank lines after it.
    lines: Range<usize>,
    /// Indentation before its hyphen.
    indent: &'a str,
}

/// Returns the entries of a block list at the top level of a file.
fn items(text: &str) -> Vec<Item<'_>> {
    let mut items: Vec<Item<'_>> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let body = line.trim_start_matches(' ');
        let indent = text.get(start..start + line.len() - body.len()).unwrap_or_default();
        let is_entry = body.starts_with("- ") || body.trim_end() == "-";
        let content = !body.trim().is_empty() && !body.starts_with('#');
        match items.last_mut() {
            Some(last) if is_entry && indent.len() == last.indent.len() => {
                items.push(Item { lines: start..at, indent });
            }
            Some(last) if content => last.lines.end = at,
            None if is_entry => items.push(Item { lines: start..at, indent }),
            _ => {}
        }
    }
    items
}

impl Item<'_> {
    /// Returns the byte ranges of a key and of its value, without a trailing comment.
    fn value(&self, text: &str, key: &str) -> Option<(Range<usize>, Range<usize>)> {
        let mut at = self.lines.start;
        let mut found: Option<(Range<usize>, usize)> = None;
        let mut key_indent = None;
        for line in text.get(self.lines.clone())?.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let rest = line.trim_start_matches([' ', '-']);
            let indent = line.len() - rest.len();
            let of_item = *key_indent.get_or_insert(indent) == indent;
            if let Some((_, end)) = &mut found {
                if of_item || rest.trim().is_empty() || rest.starts_with('#') {
                    break;
                }
                *end = at;
            } else if of_item && rest.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')) {
                let name = start + indent;
                found = Some((name..name + key.len(), at));
            }
        }
        let (name, end) = found?;
        let raw = text.get(name.end + 1..end)?;
        let value = raw.trim();
        let quoted = match value.chars().next() {
            Some('"') => value.get(1..)?.rfind('"').map(|at| at + 2),
            Some('\'') => value.get(1..)?.rfind('\'').map(|at| at + 2),
            Some('[') => value.rfind(']').map(|at| at + 1),
            Some('>' | '|') => Some(value.len()),
            _ => None,
        };
        let length = quoted.unwrap_or_else(|| {
            value
                .find(" #")
                .map_or(value.len(), |at| value.get(..at).map_or(at, |value| value.trim_end().len()))
        });
        let from = name.end + 1 + raw.len() - raw.trim_start().len();
        Some((name, from..from + length))
    }

    /// Writes the differences between two cases in place; rewrites the entry if that is not possible.
    fn replace(&self, out: &mut String, text: &str, old: &Case, new: &Case, line_end: &str) {
        let mut changes: Vec<(Range<usize>, String)> = Vec::new();
        let mut is_complete = true;
        if old.query != new.query {
            match self.value(text, "query") {
                Some((_, value)) => changes.push((value, scalar(&new.query))),
                None => is_complete = false,
            }
        }
        if old.expect != new.expect {
            let place = self.value(text, "expect").or_else(|| self.value(text, "not"));
            match place {
                Some((name, value)) => {
                    let (key, expected) = expectation(&new.expect);
                    changes.push((name, key.to_owned()));
                    changes.push((value, expected));
                }
                None => is_complete = false,
            }
        }
        if !is_complete {
            out.replace_range(self.lines.clone(), &render_case(new, self.indent, line_end));
            return;
        }
        changes.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        for (range, new) in changes {
            out.replace_range(range, &new);
        }
    }
}

fn render_case(case: &Case, indent: &str, line_end: &str) -> String {
    let (key, expected) = expectation(&case.expect);
    let query = scalar(&case.query);
    format!("{indent}- query: {query}{line_end}{indent}  {key}: {expected}{line_end}")
}

fn expectation(expect: &Expect) -> (&'static str, String) {
    match expect {
        Expect::AnyOf(ids) => {
            let ids: Vec<String> = ids.iter().map(|id: &SkillId| scalar(id.as_str())).collect();
            ("expect", format!("[{}]", ids.join(", ")))
        }
        Expect::Nothing => ("expect", "none".to_owned()),
        Expect::Not(id) => ("not", scalar(id.as_str())),
    }
}

/// Formats a text as a YAML scalar: unquoted if it parses to the same text in block and flow style.
fn scalar(text: &str) -> String {
    let begins = text.chars().next().is_some_and(char::is_alphabetic);
    let simple = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '/' | '\'' | '?' | '!');
    let words = ["true", "false", "yes", "no", "on", "off", "null", "none", "nan", "inf"];
    let is_word = words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if begins && text.chars().all(simple) && text.trim() == text && !is_word {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# The golden set of the team.
- query: a table from a pdf   # the usual request
  expect: [pdf-tables]

# Out of scope.
- expect: none
  query: \"what's the time: now\"
-
  query: >-
    over two
    lines
  expect:
    - a  # the first
    - b
";

    fn any(ids: &[&str]) -> Expect {
        Expect::AnyOf(ids.iter().map(|id| SkillId::new(*id)).collect())
    }

    fn case(query: &str, expect: Expect) -> Case {
        Case { query: query.to_owned(), expect }
    }

    #[test]
    fn a_query_in_other_case_is_the_same_query() {
        let existing = [case("Read a PDF", any(&["pdf"]))];
        let new = vec![case("read a pdf", any(&["pdf"])), case("READ A PDF", Expect::Nothing)];
        let split = split_new(&existing, new);
        assert_eq!((split.new.len(), split.known, split.conflicts.len()), (0, 1, 1));
    }

    #[test]
    fn an_added_query_is_appended() {
        let new = vec![case("is it 5: yes", Expect::Not(SkillId::new("clock"))), case("no", Expect::Nothing)];
        let out = apply_edit(TEXT, &GoldenEdit::Add(new)).unwrap();
        let added = "- query: \"is it 5: yes\"\n  not: clock\n- query: \"no\"\n  expect: none\n";
        assert_eq!(out, format!("{TEXT}{added}"));
        assert_eq!(
            apply_edit("# Empty.\n[]\n", &GoldenEdit::Add(vec![case("q", any(&["a"]))])).unwrap(),
            "# Empty.\n- query: q\n  expect: [a]\n"
        );
        let indented = "  - query: q\r\n    expect: [a]\r\n";
        let out = apply_edit(indented, &GoldenEdit::Add(vec![case("r", Expect::Nothing)])).unwrap();
        assert_eq!(out, "  - query: q\r\n    expect: [a]\r\n  - query: r\r\n    expect: none\r\n");
    }

    #[test]
    fn a_replaced_query_keeps_comments_and_order() {
        let new = case("every table of a pdf", any(&["pdf-tables", "xlsx"]));
        let out = apply_edit(TEXT, &GoldenEdit::Replace(0, new)).unwrap();
        let expected = TEXT
            .replace("a table from a pdf ", "every table of a pdf ")
            .replace("[pdf-tables]", "[pdf-tables, xlsx]");
        assert_eq!(out, expected);
        let out =
            apply_edit(TEXT, &GoldenEdit::Replace(1, case("what's the time: now", any(&["clock"])))).unwrap();
        assert_eq!(out, TEXT.replace("expect: none", "expect: [clock]"));
        let out = apply_edit(
            TEXT,
            &GoldenEdit::Replace(1, case("what's the time: now", Expect::Not(SkillId::new("x")))),
        )
        .unwrap();
        assert_eq!(out, TEXT.replace("expect: none", "not: x"));
        let out = apply_edit(TEXT, &GoldenEdit::Replace(2, case("one line", any(&["c"])))).unwrap();
        assert_eq!(golden_yaml(&out).unwrap()[2], case("one line", any(&["c"])));
        assert!(out.starts_with("# The golden set of the team.\n- query: a table from a pdf   # the usual"));
    }

    #[test]
    fn a_removed_query_leaves_the_comments_around_it() {
        let out = apply_edit(TEXT, &GoldenEdit::Remove(1)).unwrap();
        assert!(out.contains("# Out of scope.\n-\n  query: >-"), "{out}");
        assert_eq!(golden_yaml(&out).unwrap().len(), 2);
        let out = apply_edit("- query: q\n  expect: none\n", &GoldenEdit::Remove(0)).unwrap();
        assert_eq!(out, "");
    }

    #[test]
    fn a_list_in_flow_style_is_refused() {
        let flow = "[{query: q, expect: none}]\n";
        assert!(matches!(apply_edit(flow, &GoldenEdit::Remove(0)), Err(EditError::NotExact)));
    }

    #[test]
    fn a_file_that_changed_is_not_edited() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/golden.yaml");
        let q = case("q", Expect::Nothing);
        edit_golden(&file, &GoldenEdit::Add(vec![q.clone()]), None).unwrap();
        let other = case("r", Expect::Nothing);
        let refused = edit_golden(&file, &GoldenEdit::Remove(0), Some(&other));
        assert!(matches!(refused, Err(EditError::Changed)));
        let twice = edit_golden(&file, &GoldenEdit::Add(vec![case("q", any(&["a"]))]), None);
        assert!(matches!(twice, Err(EditError::Changed)), "it was added meanwhile");
        edit_golden(&file, &GoldenEdit::Add(vec![other.clone()]), None).unwrap();
        let left = edit_golden(&file, &GoldenEdit::Remove(0), Some(&other)).unwrap();
        assert_eq!(left, std::slice::from_ref(&q), "the query that was seen has another place now");
        assert_eq!(edit_golden(&file, &GoldenEdit::Remove(0), Some(&q)).unwrap(), []);
    }

    #[cfg(unix)]
    #[test]
    fn concurrent_edits_lose_nothing() {
        const EDITS: usize = 16;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("golden.yaml");
        let add = |at: usize| {
            let new = case(&format!("query {at}"), Expect::Nothing);
            edit_golden(&file, &GoldenEdit::Add(vec![new]), None).unwrap();
        };
        std::thread::scope(|scope| (0..EDITS).for_each(|at| drop(scope.spawn(move || add(at)))));
        let (cases, _) = read_golden(&file).unwrap();
        assert_eq!(cases.len(), EDITS);
        let remove = |case: &Case| {
            edit_golden(&file, &GoldenEdit::Remove(0), Some(case)).unwrap();
        };
        std::thread::scope(|scope| cases.iter().for_each(|case| drop(scope.spawn(move || remove(case)))));
        assert_eq!(read_golden(&file).unwrap().0, []);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_folder_is_not_edited() {
        let folder = tempfile::tempdir().unwrap();
        let (project, outside) = (folder.path().join("project"), folder.path().join("outside.yaml"));
        std::fs::create_dir(&project).unwrap();
        let text = "- query: q\n  expect: none\n";
        std::fs::write(&outside, text).unwrap();
        let file = project.join("golden.yaml");
        let add = GoldenEdit::Add(vec![case("r", Expect::Nothing)]);
        let is_refused = |edit: &GoldenEdit| {
            matches!(edit_golden(&file, edit, None), Err(EditError::Open(OpenError::Link { .. })))
        };
        std::os::unix::fs::symlink("../outside.yaml", &file).unwrap();
        assert!(is_refused(&add) && is_refused(&GoldenEdit::Remove(0)) && read_golden(&file).is_err());
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), text);
        std::fs::remove_file(&outside).unwrap();
        assert!(is_refused(&add) && !outside.exists(), "a broken link");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(project.join("own.yaml"), text).unwrap();
        std::os::unix::fs::symlink("own.yaml", &file).unwrap();
        assert_eq!(edit_golden(&file, &add, None).unwrap().len(), 2, "a link beneath the folder");
        assert!(file.is_symlink());
    }
}
