//! Baselines of known findings: these do not fail a check, only new ones do.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::{BaselineChange, LintFinding, LintReport};
use crate::{Code, Error};
use skills_skill::lint::rules;

/// Version of the file format.
const VERSION: u32 = 1;

/// Known findings of a collection, independent of line numbers and the location of the checkout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LintBaseline {
    version: u32,
    findings: Vec<BaselineCount>,
}

/// A number of equal findings in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BaselineCount {
    /// Path relative to the baseline's folder, with `/` as separator.
    file: String,
    code: String,
    message: String,
    count: usize,
}

type Key = (String, String, String);

impl LintBaseline {
    /// Creates a baseline from the findings of a report. `folder` is that of the baseline file.
    pub fn of(report: &LintReport, folder: &Path) -> Self {
        let mut counts: BTreeMap<Key, usize> = BTreeMap::new();
        for found in report.findings.iter().chain(&report.known) {
            *counts.entry(key(found, folder)).or_default() += 1;
        }
        let known =
            |((file, code, message), count): (Key, usize)| BaselineCount { file, code, message, count };
        Self { version: VERSION, findings: counts.into_iter().map(known).collect() }
    }

    /// Reads a baseline file.
    ///
    /// # Errors
    /// Returns `not_found`, or `invalid_configuration` for another format or version.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let baseline: Self = read_baseline(path)?;
        check_version(path, baseline.version, VERSION)?;
        Ok(baseline)
    }

    /// Moves the findings in the baseline from `findings` to `known`. `folder` is that of the baseline file.
    pub fn apply(&self, report: &mut LintReport, folder: &Path) {
        let mut left: BTreeMap<Key, usize> = BTreeMap::new();
        for known in &self.findings {
            let message = identity(&known.code, &known.message, folder);
            *left.entry((known.file.clone(), known.code.clone(), message)).or_default() += known.count;
        }
        let mut known = Vec::new();
        report.findings.retain(|found| match left.get_mut(&key(found, folder)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                known.push(found.clone());
                false
            }
            _ => true,
        });
        let resolved = left.values().sum();
        report.baseline = Some(BaselineChange { known: known.len(), resolved });
        report.known = known;
        report.summarize();
    }
}

/// Reads a baseline file of any kind.
///
/// # Errors
/// Returns `not_found`, or `invalid_configuration` for another format.
pub fn read_baseline<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = skills_base::files::read_user_text(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let message =
                format!("baseline `{}` does not exist; create it with --write-baseline", path.display());
            Error::new(Code::NotFound, message)
        }
        _ => Error::new(Code::InvalidConfiguration, format!("{}: {error}", path.display())),
    })?;
    serde_json::from_str(&text)
        .map_err(|error| Error::new(Code::InvalidConfiguration, format!("{}: {error}", path.display())))
}

/// Rejects a baseline of another version.
///
/// # Errors
/// Returns `invalid_configuration`.
pub fn check_version(path: &Path, found: u32, expected: u32) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    let message = format!("{}: version {found} of a baseline; this program reads {expected}", path.display());
    Err(Error::new(Code::InvalidConfiguration, message))
}

/// Returns the identity of a finding: numbers in its message are ignored, because they change with the text.
fn key(found: &LintFinding, folder: &Path) -> Key {
    let message = identity(&found.finding.code, &found.finding.message, folder);
    (relative(&found.path(), folder), found.finding.code.clone(), message)
}

/// Returns what of a message identifies its finding. Of commands, hooks, tools and hidden text every character counts:
/// another address is another command.
fn identity(code: &str, message: &str, folder: &Path) -> String {
    let exact = [
        &rules::COMMAND_EXPANSION,
        &rules::HOOKS,
        &rules::GRANTS_SHELL,
        &rules::GRANTS_TOOLS,
        &rules::HIDDEN_CHARACTERS,
        &rules::SMUGGLED_TEXT,
    ];
    if exact.iter().any(|rule| rule.code == code) { message.to_owned() } else { portable(message, folder) }
}

/// Returns a message without numbers, and with paths relative to the folder: messages may name other files. A message
/// of an earlier baseline, which may have absolute paths, becomes the same.
fn portable(message: &str, folder: &Path) -> String {
    let mut message = without_numbers(message);
    let mut up = String::new();
    for above in folder.ancestors().filter(|above| above.file_name().is_some()) {
        let path = format!("{}/", without_numbers(&above.display().to_string()));
        message = with_starts_replaced(&message, &path, &up);
        up.push_str("../");
    }
    message
}

/// Replaces each group of digits by `#`.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        let letter = if letter.is_ascii_digit() { '#' } else { letter };
        if letter != '#' || !out.ends_with('#') {
            out.push(letter);
        }
    }
    out
}

/// Replaces a text where a path begins with it, and not where it is in the middle of one.
fn with_starts_replaced(text: &str, start: &str, by: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(start) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let is_start =
            out.chars().next_back().is_none_or(|last| last.is_whitespace() || "`'\"(".contains(last));
        out.push_str(if is_start { by } else { start });
        rest = &found[start.len()..];
    }
    out + rest
}

/// Returns a path relative to a folder, with `/` as separator; unchanged if the two have no folder in common.
pub(super) fn relative(path: &Path, folder: &Path) -> String {
    let (mut path_parts, mut folder_parts) = (path.components().peekable(), folder.components().peekable());
    let mut common = 0;
    while let (Some(a), Some(b)) = (path_parts.peek(), folder_parts.peek()) {
        if a != b {
            break;
        }
        common += usize::from(!matches!(a, Component::RootDir | Component::Prefix(_)));
        path_parts.next();
        folder_parts.next();
    }
    if common == 0 {
        return path.display().to_string();
    }
    let up = folder_parts.map(|_| "..".to_owned());
    let down = path_parts.map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::files;
    use super::*;
    use skills_skill::{Finding, Severity, SkillId};

    fn collection(folder: &Path, lines: &str) -> LintReport {
        let path = folder.join("skills/notes/SKILL.md");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path.with_file_name("other.md"), "").unwrap();
        let head =
            "---\nname: notes\ndescription: Writes meeting notes. Use when notes are requested.\n---\n";
        std::fs::write(&path, format!("{head}{lines}")).unwrap();
        files(&[path])
    }

    #[test]
    fn only_new_findings_remain_in_any_checkout() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let before = collection(here.path(), "[a](a.md) [b](b.md)\n");
        let baseline = LintBaseline::of(&before, here.path());
        let mut now = collection(there.path(), "New line.\n\n[b](b.md) [c](c.md)\n");
        baseline.apply(&mut now, there.path());
        assert_eq!(now.baseline, Some(BaselineChange { known: 1, resolved: 1 }));
        let [only] = now.findings.as_slice() else { panic!("{now:?}") };
        assert!(only.finding.message.contains("c.md"));
        assert_eq!((now.summary.len(), now.summary[0].findings), (1, 1));
        assert_eq!(LintBaseline::of(&now, there.path()).findings.len(), 2);
    }

    #[test]
    fn paths_in_messages_are_relative_to_the_folder_of_the_baseline() {
        let found = |top: &str| {
            let message = format!("the other `x` at {top}/skills/x2/SKILL.md, see {top}/docs{top}/a");
            let finding = Finding {
                code: "name-undefined".to_owned(),
                severity: Severity::Warning,
                field: None,
                file: "SKILL.md".into(),
                span: None,
                message,
                help: String::new(),
                fixable: false,
            };
            let location = Path::new(top).join("skills/x1/SKILL.md");
            LintReport {
                findings: vec![LintFinding { skill_id: SkillId::new("x"), location, finding }],
                ..LintReport::default()
            }
        };
        for below in ["", "/.ci", "/a1/b"] {
            let folder = |top: &str| PathBuf::from(format!("{top}{below}"));
            let report = LintReport { findings: found("/r15/b").findings, ..LintReport::default() };
            let baseline = LintBaseline::of(&report, &folder("/r15/b"));
            let message = &baseline.findings[0].message;
            assert!(!message.contains(" /") && message.contains("skills/x#/SKILL.md"), "{message}");
            let mut now = found("/home/me/c");
            // The end of the message repeats the folder inside a path, which is a different path elsewhere.
            now.findings[0].finding.message =
                now.findings[0].finding.message.replace("docs/home/me/c", "docs/r15/b");
            baseline.apply(&mut now, &folder("/home/me/c"));
            assert_eq!(now.baseline, Some(BaselineChange { known: 1, resolved: 0 }), "{message}");
        }
    }

    #[test]
    fn earlier_baselines_with_absolute_paths_match_in_their_folder() {
        let dir = tempfile::Builder::new().prefix("skills-7-").tempdir().unwrap();
        let report = collection(dir.path(), "[a](a.md)\n");
        let mut baseline = LintBaseline::of(&report, dir.path());
        let absolute = without_numbers(&format!("at {}/x.md", dir.path().display()));
        baseline.findings[0].message = absolute;
        let mut now = collection(dir.path(), "[a](a.md)\n");
        now.findings[0].finding.message = format!("at {}/x.md", dir.path().display());
        baseline.apply(&mut now, dir.path());
        assert_eq!(now.baseline, Some(BaselineChange { known: 1, resolved: 0 }));
    }

    #[test]
    fn equal_findings_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let before = collection(dir.path(), "\u{200b}\n");
        let baseline = LintBaseline::of(&before, dir.path());
        let mut now = collection(dir.path(), "\u{200b}\n[d](d.md)\n");
        baseline.apply(&mut now, dir.path());
        assert_eq!(
            now.findings.iter().map(|found| found.finding.code.as_str()).collect::<Vec<_>>(),
            ["broken-link"]
        );
    }

    #[test]
    fn other_hidden_text_is_not_in_the_baseline() {
        let dir = tempfile::tempdir().unwrap();
        let text = |zero_width: &str, selectors: &str| format!("a{zero_width}b 1{selectors}\n");
        let (two, four) = ("\u{200b}".repeat(2), "\u{fe0f}".repeat(4));
        let before = collection(dir.path(), &text(&two, &four));
        let baseline = LintBaseline::of(&before, dir.path());
        let (longer, more) = (two.repeat(256), four.repeat(16));
        for (zero_width, selectors, expected) in [
            (two.as_str(), four.as_str(), ""),
            (longer.as_str(), four.as_str(), "hidden-characters"),
            (two.as_str(), more.as_str(), "smuggled-text"),
            ("\u{200b}\u{2060}", "\u{fe0f}\u{fe0f}\u{fe0f}\u{fe01}", "hidden-characters smuggled-text"),
        ] {
            let mut now = collection(dir.path(), &text(zero_width, selectors));
            baseline.apply(&mut now, dir.path());
            let found: Vec<_> = now.findings.iter().map(|found| found.finding.code.as_str()).collect();
            assert_eq!(found.join(" "), expected);
        }
    }

    #[test]
    fn another_version_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("baseline.json");
        assert_eq!(LintBaseline::read(&file).unwrap_err().code, Code::NotFound);
        std::fs::write(&file, "{\"version\": 2, \"findings\": []}").unwrap();
        assert_eq!(LintBaseline::read(&file).unwrap_err().code, Code::InvalidConfiguration);
    }

    #[test]
    fn paths_are_relative_to_the_folder() {
        assert_eq!(relative(Path::new("/a/b/c.md"), Path::new("/a")), "b/c.md");
        assert_eq!(relative(Path::new("/a/b/c.md"), Path::new("/a/d")), "../b/c.md");
        assert_eq!(relative(Path::new("/a/b.md"), Path::new("/x/y")), "/a/b.md");
    }
}
