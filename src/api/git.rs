//! Skills of earlier commits, read from git objects without a checkout.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::env;
use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{Code, Error};
use skills_discovery::{Document, Router};
use skills_registry::{Catalog, RootState};
use skills_skill::{MAX_BYTES, SkillId, index_text, parse};

/// The fields of a commit in the output of `git log`, each after a NUL, which no field contains.
const FIELDS: &str = "%x00%H%x00%ct%x00%an%x00%s";

/// Maximum size of the output of a git command in bytes: the changes of 500 commits, or the files of a large repository.
const MAX_OUTPUT_BYTES: u64 = 128 << 20;
/// Maximum number of bytes of its messages.
const MAX_ERROR_BYTES: u64 = 64 << 10;
/// Maximum duration of a git command.
const MAX_DURATION: Duration = Duration::from_secs(30);
/// Maximum memory of a git command in bytes.
#[cfg(target_os = "linux")]
const MAX_MEMORY_BYTES: u64 = 1 << 30;

/// A folder of skills in a repository.
#[derive(Debug, Clone)]
pub struct GitRoot {
    /// The top of the work tree.
    top: PathBuf,
    /// The folder relative to the top, with `/` as separator; empty for the top itself.
    prefix: String,
    /// The folder as the catalog names it.
    folder: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCommit {
    pub id: String,
    /// When it was committed, in seconds since 1970-01-01 UTC.
    pub seconds: i64,
    pub author: String,
    /// The first line of its message.
    pub subject: String,
    /// Changes below the root: path, and the previous blob; `None` for a new file.
    changes: Vec<(String, Option<String>)>,
}

fn git_error(what: &str, why: &dyn std::fmt::Display) -> Error {
    Error::new(Code::InvalidRequest, format!("git {what}: {why}"))
}

/// Settings that take precedence over those of a repository, which may name programs to execute.
const SETTINGS: [&str; 11] = [
    "core.fsmonitor=false",
    "core.quotePath=false",
    "i18n.logOutputEncoding=UTF-8",
    "core.hooksPath=/dev/null",
    "core.sshCommand=false",
    "core.pager=cat",
    "log.showSignature=false",
    "log.showRoot=true",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "credential.helper=",
];

/// Returns a git command in a folder that neither prompts nor writes, and executes no other program.
pub(crate) fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
        .arg("-C")
        .arg(folder)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        // A relative folder would be one of the repository.
        .env("PATH", absolute_search_path())
        // No protocol, also if the repository allows one by name.
        .env("GIT_ALLOW_PROTOCOL", "")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null());
    command
}

/// Returns the search path without relative folders.
fn absolute_search_path() -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
    env::join_paths(folders).unwrap_or_default()
}

/// Runs a git command within limits: a small repository can make git work for hours and take all memory.
fn output(command: Command, what: &str) -> Result<String, Error> {
    output_within(command, what, MAX_OUTPUT_BYTES, MAX_DURATION)
}

/// Returns what a git command prints, within limits of size and time.
///
/// # Errors
/// Returns `invalid_request` if it fails or exceeds a limit.
pub(crate) fn output_within(
    mut command: Command,
    what: &str,
    max_bytes: u64,
    max_duration: Duration,
) -> Result<String, Error> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| git_error(what, &error))?;
    limit_memory(&child);
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(git_error(what, &"no pipes"));
    };
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        scope.spawn(move || sender.send(read_at_most(stdout, max_bytes)));
        let error_output = scope.spawn(|| read_at_most(stderr, MAX_ERROR_BYTES));
        let read = match receiver.recv_timeout(max_duration) {
            Ok(Ok(Some(bytes))) => Ok(bytes),
            Ok(Ok(None)) => Err(format!("the output has more than {} MiB", max_bytes >> 20)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("it did not end within {} s", max_duration.as_secs())),
        };
        if read.is_err() {
            // It may have ended.
            drop(child.kill());
        }
        let status = child.wait().map_err(|error| git_error(what, &error))?;
        let bytes = read.map_err(|why| git_error(what, &why))?;
        if !status.success() {
            let error_output = error_output.join().ok().and_then(Result::ok).flatten().unwrap_or_default();
            let error_output = String::from_utf8_lossy(&error_output);
            return Err(git_error(what, &error_output.lines().next().unwrap_or("failed").trim()));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    })
}

/// Returns the content of a pipe; `None` if it is larger.
fn read_at_most(pipe: impl Read, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    pipe.take(max_bytes + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max_bytes).then_some(bytes))
}

/// Limits the memory of a git process, without the packs that it maps.
#[cfg(target_os = "linux")]
fn limit_memory(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit { current: Some(MAX_MEMORY_BYTES), maximum: Some(MAX_MEMORY_BYTES) };
    // It fails for a process that has ended.
    let _ = prlimit(Some(Pid::from_child(child)), Resource::Data, limit);
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: &Child) {}

/// Returns the roots of a catalog that are in a git work tree.
pub fn git_roots(catalog: &Catalog) -> Vec<GitRoot> {
    let present = catalog.roots.iter().filter(|root| root.state == RootState::Present);
    present.filter_map(|root| GitRoot::of(&root.path)).collect()
}

impl GitRoot {
    /// Returns the folder if it is in a work tree.
    fn of(folder: &Path) -> Option<Self> {
        let real = skills_base::files::canonicalize(folder).ok()?;
        let mut command = git(&real);
        command.args(["rev-parse", "--show-toplevel"]);
        let top = PathBuf::from(output(command, "rev-parse").ok()?.trim_end_matches('\n'));
        let inside = real
            .strip_prefix(skills_base::files::canonicalize(&top).ok()?)
            .ok()?
            .to_str()?
            .replace('\\', "/");
        Some(Self { top, prefix: inside, folder: folder.to_owned() })
    }

    /// Returns the top of its work tree.
    pub fn top(&self) -> &Path {
        &self.top
    }

    fn paths(&self, command: &mut Command) {
        command.arg("--").arg(if self.prefix.is_empty() { "." } else { &self.prefix });
    }

    /// Resolves a reference to a commit id.
    ///
    /// # Errors
    /// Returns `invalid_request` for a reference unknown to git.
    pub fn resolve(&self, reference: &str) -> Result<String, Error> {
        let mut command = git(&self.top);
        command.args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
        command.arg(format!("{reference}^{{commit}}"));
        let unknown = || {
            let message = format!("commit `{reference}` not found in {}", self.top.display());
            Error::new(Code::NotFound, message)
        };
        let id = output(command, "rev-parse").map_err(|_| unknown())?.trim().to_owned();
        if id.is_empty() { Err(unknown()) } else { Ok(id) }
    }

    /// Returns the `SKILL.md` files of a commit with their blobs.
    pub fn files(&self, commit: &str) -> Result<BTreeMap<String, String>, Error> {
        let mut command = git(&self.top);
        command.args(["ls-tree", "-r", "-z", "--full-tree", commit]);
        self.paths(&mut command);
        let listed = output(command, "ls-tree")?;
        let file = |entry: &str| {
            let (facts, path) = entry.split_once('\t')?;
            let blob = facts.split(' ').nth(2)?;
            is_skill(path).then(|| (path.to_owned(), blob.to_owned()))
        };
        Ok(listed.split('\0').filter_map(file).collect())
    }

    /// Starts a reader of blobs.
    pub fn blobs(&self) -> Result<Blobs, Error> {
        Ok(Blobs { sizes: Batch::of(self, "--batch-check")?, contents: Batch::of(self, "--batch")? })
    }

    /// Returns where a file of a commit would be in the catalog.
    fn location(&self, path: &str) -> PathBuf {
        let inside = path.strip_prefix(&self.prefix).unwrap_or(path).trim_start_matches('/');
        self.folder.join(inside)
    }

    /// Returns the skill of a blob as a document for the router; `None` for a file that is not a readable skill.
    fn document(&self, path: &str, blob: &str, blobs: &mut Blobs) -> Result<Option<Document>, Error> {
        let Some(bytes) = blobs.read(blob)? else { return Ok(None) };
        let Ok(skill) = parse(&self.location(path), &bytes, 0) else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        let text = if skill.has_body { index_text(&text) } else { skills_skill::IndexText::default() };
        Ok(Some(Document { digest: None, ..Document::from_skill(&skill, Some(text)) }))
    }
}

/// Returns the commits that changed one of the folders of a repository, newest first along the first parents.
pub fn history(roots: &[&GitRoot], commit: &str, max: usize) -> Result<Vec<GitCommit>, Error> {
    let Some(first) = roots.first() else { return Ok(Vec::new()) };
    let mut command = git(&first.top);
    command.args([
        "log",
        "--no-show-signature",
        "--no-ext-diff",
        "--no-textconv",
        "--first-parent",
        "--diff-merges=first-parent",
        "--raw",
        "--no-abbrev",
        "--no-renames",
    ]);
    command.arg(format!("--format={FIELDS}"));
    command.arg(format!("--max-count={max}")).arg(commit).arg("--");
    command.args(roots.iter().map(|root| if root.prefix.is_empty() { "." } else { root.prefix.as_str() }));
    Ok(parse_log(&output(command, "log")?))
}

fn is_skill(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    // As in the catalog, the folder of the skill itself may have this name.
    let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
    name.eq_ignore_ascii_case("SKILL.md") && !above.split('/').any(|part| part == "node_modules")
}

fn parse_log(log: &str) -> Vec<GitCommit> {
    let fields: Vec<&str> = log.split('\0').skip(1).collect();
    fields.chunks_exact(4).filter_map(parse_commit).collect()
}

/// Parses the fields of a commit; the last one ends with its changes.
fn parse_commit(fields: &[&str]) -> Option<GitCommit> {
    let [id, seconds, author, last] = fields else { return None };
    let (subject, raw) = last.split_once('\n').unwrap_or((last, ""));
    let change = |line: &str| {
        let (facts, path) = line.strip_prefix(':')?.split_once('\t')?;
        let before = facts.split(' ').nth(2)?;
        let is_new = before.bytes().all(|digit| digit == b'0');
        let path = unquoted(path);
        is_skill(&path).then(|| (path, (!is_new).then(|| before.to_owned())))
    };
    Some(GitCommit {
        id: (*id).to_owned(),
        seconds: seconds.parse().ok()?,
        author: (*author).to_owned(),
        subject: subject.to_owned(),
        changes: raw.lines().filter_map(change).collect(),
    })
}

/// Parses a path as printed by git: quoted if it contains control characters, quotes or backslashes.
fn unquoted(path: &str) -> String {
    let Some(inner) = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) else {
        return path.to_owned();
    };
    let mut out = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match (character, if character == '\\' { characters.next() } else { None }) {
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some(other)) => out.push(other),
            (other, _) => out.push(other),
        }
    }
    out
}

/// A reader of blobs.
pub struct Blobs {
    sizes: Batch,
    contents: Batch,
}

impl Blobs {
    /// Returns the content of a blob; `None` if it is larger than a skill may be, or missing.
    ///
    /// # Errors
    /// Returns an error if git exits early.
    fn read(&mut self, blob: &str) -> Result<Option<Vec<u8>>, Error> {
        // Git holds a blob in memory to print it, whatever its size.
        if self.sizes.ask(blob)?.is_none_or(|object| object.size > MAX_BYTES) {
            return Ok(None);
        }
        Ok(self.contents.ask(blob)?.map(|object| object.content))
    }
}

/// An object as `git cat-file` prints it.
struct Object {
    size: u64,
    /// Empty if only sizes are printed.
    content: Vec<u8>,
}

/// A running `git cat-file` that answers one object at a time.
struct Batch {
    child: Child,
    input: ChildStdin,
    /// The answers, read by a thread: a damaged repository can make git wait forever.
    answers: mpsc::Receiver<io::Result<Option<Object>>>,
}

impl Batch {
    fn of(root: &GitRoot, mode: &str) -> Result<Self, Error> {
        let mut command = git(&root.top);
        command.args(["cat-file", mode]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| git_error("cat-file", &error))?;
        limit_memory(&child);
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(git_error("cat-file", &"no pipes"));
        };
        let has_content = mode == "--batch";
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let answer = read_object(&mut output, has_content);
                let is_last = answer.is_err();
                if sender.send(answer).is_err() || is_last {
                    return;
                }
            }
        });
        Ok(Self { child, input, answers })
    }

    /// Asks for an object; returns `None` if it is missing.
    fn ask(&mut self, object: &str) -> Result<Option<Object>, Error> {
        let io = |error: io::Error| git_error("cat-file", &error);
        writeln!(self.input, "{object}").and_then(|()| self.input.flush()).map_err(io)?;
        let answer = self
            .answers
            .recv_timeout(MAX_DURATION)
            .map_err(|_| git_error("cat-file", &format!("no answer within {} s", MAX_DURATION.as_secs())))?;
        answer.map_err(io)
    }
}

/// Reads the next answer of `git cat-file`.
fn read_object(output: &mut impl io::BufRead, has_content: bool) -> io::Result<Option<Object>> {
    let mut head = String::new();
    if output.read_line(&mut head)? == 0 {
        return Err(io::Error::other("it has ended"));
    }
    let Some(size) = head.trim_end().rsplit(' ').next().and_then(|size| size.parse().ok()) else {
        return Ok(None);
    };
    let mut content = Vec::new();
    if has_content {
        output.take(size).read_to_end(&mut content)?;
        output.read_exact(&mut [0; 1])?;
    }
    Ok(Some(Object { size, content }))
}

impl Drop for Batch {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The skills of one root at a commit, which can be moved from commit to commit.
pub struct History {
    root: GitRoot,
    blobs: Blobs,
    /// Blob of each file.
    files: BTreeMap<String, String>,
    /// Skills that another root of higher precedence has.
    shadowed: BTreeSet<SkillId>,
    /// Documents by blob and path: most commits change one file.
    known: HashMap<(String, String), Option<Document>>,
}

impl History {
    /// Reads the skills at a commit.
    pub fn at(root: &GitRoot, commit: &str, catalog: &Catalog) -> Result<Self, Error> {
        let inside = |location: &Path| location.starts_with(&root.folder);
        let others = catalog.entries.iter().filter(|entry| !inside(&entry.skill.location));
        Ok(Self {
            blobs: root.blobs()?,
            files: root.files(commit)?,
            shadowed: others.map(|entry| entry.skill.id.clone()).collect(),
            known: HashMap::new(),
            root: root.clone(),
        })
    }

    /// Replaces the skills of this root in the router by those of the commit.
    pub fn apply(&mut self, router: &mut Router, catalog: &Catalog) -> Result<(), Error> {
        let inside =
            catalog.entries.iter().filter(|entry| entry.skill.location.starts_with(&self.root.folder));
        let present: Vec<SkillId> = inside.map(|entry| entry.skill.id.clone()).collect();
        let ids: BTreeSet<String> = self.files.keys().map(|path| id_of(path)).collect();
        let mut documents = Vec::new();
        for id in &ids {
            documents.extend(self.winner(id)?);
        }
        let gone: Vec<SkillId> =
            present.into_iter().filter(|id| !documents.iter().any(|document| document.id == *id)).collect();
        router.update(documents, &gone);
        Ok(())
    }

    /// Reverts the changes of a commit.
    pub fn revert(&mut self, commit: &GitCommit, router: &mut Router) -> Result<(), Error> {
        let mut ids = BTreeSet::new();
        let prefix = &self.root.prefix;
        let is_inside = |path: &str| {
            let rest = path.strip_prefix(prefix.as_str());
            prefix.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
        };
        for (path, before) in commit.changes.iter().filter(|(path, _)| is_inside(path)) {
            ids.insert(id_of(path));
            match before {
                Some(blob) => drop(self.files.insert(path.clone(), blob.clone())),
                None => drop(self.files.remove(path)),
            }
        }
        let (mut documents, mut gone) = (Vec::new(), Vec::new());
        for id in ids {
            match self.winner(&id)? {
                Some(document) => documents.push(document),
                None => gone.push(SkillId::new(id)),
            }
        }
        gone.retain(|id| !self.shadowed.contains(id));
        router.update(documents, &gone);
        Ok(())
    }

    /// Returns the document of an id: that of the first path, as in the catalog.
    fn winner(&mut self, id: &str) -> Result<Option<Document>, Error> {
        if self.shadowed.contains(&SkillId::new(id)) {
            return Ok(None);
        }
        let paths = self.files.iter().filter(|(path, _)| id_of(path) == id);
        for (path, blob) in paths {
            let key = (blob.clone(), path.clone());
            if !self.known.contains_key(&key) {
                let document = self.root.document(path, blob, &mut self.blobs)?;
                self.known.insert(key.clone(), document);
            }
            if let Some(Some(document)) = self.known.get(&key) {
                return Ok(Some(document.clone()));
            }
        }
        Ok(None)
    }
}

/// Returns the id of a skill: the name of its folder.
fn id_of(path: &str) -> String {
    let mut parts = path.rsplit('/');
    parts.next();
    parts.next().unwrap_or_default().to_owned()
}

/// Returns a router with the skills of a commit instead of the current ones, for every root in a repository.
///
/// # Errors
/// Returns `not_found` for a reference that no repository has, `invalid_request` if no root is in a repository.
pub fn router_at(router: &Router, catalog: &Catalog, reference: &str) -> Result<Router, Error> {
    let roots = git_roots(catalog);
    if roots.is_empty() {
        return Err(Error::new(Code::InvalidRequest, "no root is in a git repository"));
    }
    let mut at = router.snapshot();
    let mut unknown = None;
    let mut is_known = false;
    for root in roots {
        match root.resolve(reference) {
            Ok(commit) => {
                is_known = true;
                History::at(&root, &commit, catalog)?.apply(&mut at, catalog)?;
            }
            Err(error) => unknown = Some(error),
        }
    }
    match unknown {
        Some(error) if !is_known => Err(error),
        _ => Ok(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_below_dependencies_are_ignored() {
        for (path, expected) in [
            ("SKILL.md", true),
            ("skills/a/skill.md", true),
            ("skills/node_modules/SKILL.md", true),
            ("node_modules/a/SKILL.md", false),
            ("skills/a/README.md", false),
        ] {
            assert_eq!(is_skill(path), expected, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_command_ends_at_its_limits() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let run = |script: &str, limit: Duration| output_within(shell(script), "log", 8, limit);
        let long = Duration::from_secs(600);
        assert_eq!(run("echo 1234567", long).unwrap(), "1234567\n");
        assert!(run("exec yes", long).unwrap_err().message.contains("MiB"));
        assert!(run("exec sleep 600", Duration::ZERO).unwrap_err().message.contains("did not end"));
        assert!(run("echo no >&2; exit 1", long).unwrap_err().message.ends_with("no"));
    }

    #[test]
    fn a_blob_larger_than_a_skill_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let run = |args: &[&str]| {
            let mut command = git(folder.path());
            command.args(args);
            output(command, args[0]).unwrap().trim().to_owned()
        };
        run(&["init", "--quiet"]);
        let blob = |name: &str, content: &[u8]| {
            std::fs::write(folder.path().join(name), content).unwrap();
            run(&["hash-object", "-w", name])
        };
        let large = blob("large", &vec![b'a'; MAX_BYTES as usize + 1]);
        let small = blob("small", b"text");
        let mut blobs = GitRoot::of(folder.path()).unwrap().blobs().unwrap();
        assert_eq!(blobs.read(&large).unwrap(), None);
        assert_eq!(blobs.read(&"0".repeat(40)).unwrap(), None);
        assert_eq!(blobs.read(&small).unwrap().as_deref(), Some(b"text".as_slice()));
    }

    #[test]
    fn a_commit_is_read_with_what_it_changed() {
        let zero = "0".repeat(40);
        let log = format!(
            "\0{}\01700000000\0Ana\0Say: more\u{1e}abc\u{1f}2\u{1f}Eve\u{1f}less\n\n:100644 100644 {a} {b} M\tskills/pdf/SKILL.md\n\
             :000000 100644 {zero} {b} A\t\"skills/t\\tab/SKILL.md\"\n:100644 100644 {a} {b} M\tREADME.md\n\
             \0{}\01600000000\0Bo\0First\n",
            "c".repeat(40),
            "d".repeat(40),
            a = "a".repeat(40),
            b = "b".repeat(40)
        );
        let commits = parse_log(&log);
        let [commit, first] = &commits[..] else { panic!("{commits:?}") };
        assert_eq!((first.seconds, first.subject.as_str()), (1_600_000_000, "First"));
        // Whatever a subject contains, it is not another commit.
        let subject = "Say: more\u{1e}abc\u{1f}2\u{1f}Eve\u{1f}less";
        assert_eq!(
            (commit.seconds, commit.author.as_str(), commit.subject.as_str()),
            (1_700_000_000, "Ana", subject)
        );
        let expected = [
            ("skills/pdf/SKILL.md".to_owned(), Some("a".repeat(40))),
            ("skills/t\tab/SKILL.md".to_owned(), None),
        ];
        assert_eq!(commit.changes, expected);
    }
}
