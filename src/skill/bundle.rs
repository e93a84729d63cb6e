//! A bundle on disk: its main file and its resource files, never outside its folder.

use std::collections::HashSet;
use std::fs::Metadata;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::lint::rules;
use super::parse::{MAX_BYTES, refusal, too_large};
use super::{RealPaths, RefusalReason, RejectedBundle, Skill, parse};
use skills_base::duration::to_millis;
use skills_base::files::{self, Entry, Folder, MAX_DEPTH};

const NODE_MODULES: &str = "node_modules";
/// Folders that are not searched for skills, except for one directly in them.
const UNSEARCHED: [&str; 2] = [NODE_MODULES, "target"];
/// Maximum number of files and folders in those that are considered.
const MAX_DEPENDENCIES: usize = 5_000;

/// A resource file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BundleFile {
    /// Path relative to the bundle, with `/` as separator.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Modification time, in nanoseconds since 1970-01-01 UTC.
    pub modified_ns: u128,
    pub executable: bool,
}

/// Reads a bundle by the path of its main file, following links in the path.
#[allow(
    clippy::result_large_err,
    reason = "a refusal is a record that is listed, not an error that is passed on"
)]
pub fn read_bundle(location: &Path) -> Result<Skill, RejectedBundle> {
    let real = files::canonicalize(location).and_then(|real| RealPaths::of(location, real));
    read_bundle_at(location, real.map_err(|error| unreadable(location, &error))?)
}

/// Reads a bundle that was found at these real paths. A link that has replaced one of them since then is not followed.
/// The size of the file is checked before it is read.
#[allow(
    clippy::result_large_err,
    reason = "a refusal is a record that is listed, not an error that is passed on"
)]
pub fn read_bundle_at(location: &Path, real: RealPaths) -> Result<Skill, RejectedBundle> {
    let refused = |refusal: files::OpenError| match refusal {
        files::OpenError::TooLarge { .. } => too_large(location, MAX_BYTES + 1),
        files::OpenError::NotRegular { what, .. } => irregular(location, what),
        other => unreadable(location, &io::Error::from(other)),
    };
    let (file, metadata) = files::open_file(&real.location).map_err(refused)?;
    if metadata.len() > MAX_BYTES {
        return Err(too_large(location, metadata.len()));
    }
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified_ms = modified.map_or(0, to_millis);
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(location, &error))?;
    // A file that has grown since then is rejected for its size.
    let mut skill = parse(location, &bytes, modified_ms)?.with_location(real);
    if skill.kind.inferred {
        let path_of = |name: &str| skill.root_dir.join(name);
        let (scripts, contract) = (path_of("scripts").is_dir(), path_of("skill.yaml").is_file());
        skill.set_neighbors(scripts, contract);
    }
    Ok(skill)
}

fn unreadable(location: &Path, error: &io::Error) -> RejectedBundle {
    refusal(location, RefusalReason::Unreadable, &rules::UNREADABLE, format!("cannot read the file: {error}"))
}

fn irregular(location: &Path, what: &str) -> RejectedBundle {
    let name = location.file_name().unwrap_or_default().display();
    let message = format!("{name} is {what}, not a file");
    let mut rejected = refusal(location, RefusalReason::Unreadable, &rules::UNREADABLE, message);
    for finding in &mut rejected.findings {
        "Replace it with a file.".clone_into(&mut finding.help);
    }
    rejected
}

/// Returns the resource files of a bundle, sorted by path. Excludes its main files, hidden files, `node_modules`,
/// folders that are skills themselves, links that point outside the bundle, and files that are nested too deeply.
///
/// # Errors
/// Returns an error if the bundle's folder cannot be read. Unreadable folders below it are skipped.
pub fn bundle_files(bundle: &Folder) -> io::Result<Vec<BundleFile>> {
    files_in(bundle, false)
}

/// Returns the paths of the resource files and of those in folders that are not searched for skills, such as
/// `node_modules`.
pub(super) fn all_files(bundle: &Folder) -> io::Result<Vec<String>> {
    Ok(files_in(bundle, true)?.into_iter().map(|file| file.path).collect())
}

/// Returns whether a path is in a folder that is not searched for skills.
pub(super) fn is_dependency(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(folder, _)| folder.split('/').any(|name| UNSEARCHED.contains(&name)))
}

fn files_in(bundle: &Folder, with_dependencies: bool) -> io::Result<Vec<BundleFile>> {
    let mut dependencies = 0;
    let mut found = Vec::new();
    let mut visited: HashSet<(u64, u64)> =
        bundle.metadata("").ok().and_then(|own| identity(&own)).into_iter().collect();
    let mut folders = vec![String::new()];
    while let Some(prefix) = folders.pop() {
        let entries = match bundle.entries(prefix.trim_end_matches('/')) {
            Ok(entries) => entries,
            Err(error) if prefix.is_empty() => return Err(error.into()),
            Err(_) => continue,
        };
        // A nested folder with a main file is a separate skill, if it is found. Of a link it is not known.
        let is_found = !(with_dependencies && is_dependency(prefix.trim_end_matches('/')));
        let is_read = |entry: &Entry| {
            let path = format!("{prefix}{}", entry.name);
            !with_dependencies || (!entry.is_link && bundle.metadata(&path).is_ok_and(|main| main.is_file()))
        };
        let is_skill = |entry: &Entry| is_main_file(&entry.name) && is_read(entry);
        if !prefix.is_empty() && is_found && entries.iter().any(is_skill) {
            continue;
        }
        for entry in entries {
            let name = entry.name;
            let is_left_out = name == NODE_MODULES && !with_dependencies;
            if name.starts_with('.') || is_left_out || (prefix.is_empty() && is_main_file(&name)) {
                continue;
            }
            let path = format!("{prefix}{name}");
            if with_dependencies && is_dependency(&path) {
                dependencies += 1;
                if dependencies > MAX_DEPENDENCIES {
                    continue;
                }
            }
            // Follows links; broken ones and those that point outside the bundle are skipped.
            let Ok(metadata) = bundle.metadata(&path) else { continue };
            if metadata.is_file() {
                found.push(BundleFile {
                    path,
                    bytes: metadata.len(),
                    modified_ns: modified_ns(&metadata),
                    executable: skills_base::files::is_executable(&metadata),
                });
            } else if metadata.is_dir() {
                // A link to an ancestor folder would cause an infinite loop.
                let fresh = identity(&metadata).map_or(!entry.is_link, |id| visited.insert(id));
                if fresh && path.matches('/').count() < MAX_DEPTH {
                    folders.push(format!("{path}/"));
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

fn modified_ns(metadata: &Metadata) -> u128 {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    modified.unwrap_or_default().as_nanos()
}

/// Identifies a folder by device and inode number, on systems that have them.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems have no such number")]
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// Returns whether a file name is that of a bundle's main file.
pub fn is_main_file(name: &str) -> bool {
    is_same_name(name, "SKILL.md") || name == "skill.yaml"
}

/// Returns whether two names differ at most by case. Two characters beyond ASCII are cases of ASCII letters.
pub(super) fn is_same_name(name: &str, other: &str) -> bool {
    let folded = |c: char| match c {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        c => c.to_ascii_lowercase(),
    };
    name.chars().map(folded).eq(other.chars().map(folded))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "the tests' scratch folder")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn bundle() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        [
            "secret.txt",
            "a/SKILL.md",
            "a/scripts/run.sh",
            "a/references/b.md",
            "a/.hidden",
            "a/inner/SKILL.md",
        ]
        .into_iter()
        .for_each(write);
        symlink(dir.path().join("secret.txt"), dir.path().join("a/out.txt")).unwrap();
        symlink(dir.path(), dir.path().join("a/up")).unwrap();
        symlink(dir.path().join("a"), dir.path().join("a/loop")).unwrap();
        symlink("references/b.md", dir.path().join("a/inside.md")).unwrap();
        dir
    }

    #[test]
    fn resource_files_are_those_inside_and_no_other_skills() {
        let dir = bundle();
        let folder = Folder::follow(&dir.path().join("a")).unwrap();
        let files = bundle_files(&folder).unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["inside.md", "references/b.md", "scripts/run.sh"]);
    }

    #[test]
    fn names_that_differ_by_case_are_the_same() {
        for name in ["SKILL.md", "skill.MD", "S\u{212a}ILL.md", "\u{17f}kill.md"] {
            assert!(is_main_file(name), "{name}");
        }
        for name in ["SKILLS.md", "ŠKILL.md", "SKILL.yaml", "skıll.md"] {
            assert!(!is_main_file(name), "{name}");
        }
    }

    #[test]
    fn all_files_are_also_those_of_dependencies() {
        let dir = bundle();
        for path in ["node_modules/a/SKILL.md", "node_modules/a/b.md", "target/SKILL.md", "target/x/SKILL.md"]
        {
            let path = dir.path().join("a").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        fs::create_dir_all(dir.path().join("a/references/target/deep")).unwrap();
        fs::write(dir.path().join("a/references/target/deep/SKILL.md"), "x").unwrap();
        let folder = Folder::follow(&dir.path().join("a")).unwrap();
        let known = ["inside.md", "references/b.md", "scripts/run.sh"];
        let further = ["node_modules/a/SKILL.md", "node_modules/a/b.md", "references/target/deep/SKILL.md"];
        let mut expected = [known, further].concat();
        expected.sort_unstable();
        assert_eq!(all_files(&folder).unwrap(), expected);
        // A link with the name of a main file hides nothing.
        std::os::unix::fs::symlink("missing", dir.path().join("a/references/SKILL.md")).unwrap();
        assert_eq!(all_files(&folder).unwrap(), expected);
        fs::remove_file(dir.path().join("a/references/SKILL.md")).unwrap();
        let files = bundle_files(&folder).unwrap();
        assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), known);
    }

    #[test]
    fn a_main_file_swapped_for_a_link_is_refused() {
        let dir = bundle();
        let at = dir.path().canonicalize().unwrap().join("a/SKILL.md");
        let real = RealPaths::of(&at, at.clone()).unwrap();
        fs::remove_file(&at).unwrap();
        symlink("/etc/passwd", &at).unwrap();
        let refused = read_bundle_at(&at, real).unwrap_err();
        assert_eq!(refused.reason, RefusalReason::Unreadable);
        let message = format!("{refused:?}");
        assert!(!message.contains("root:"), "{message}");
    }

    #[test]
    fn linked_main_file_is_read_from_its_target() {
        let dir = bundle();
        let at = dir.path().canonicalize().unwrap();
        fs::write(at.join("shared.md"), "---\nname: a\ndescription: Does a thing\n---\nbody\n").unwrap();
        fs::remove_file(at.join("a/SKILL.md")).unwrap();
        symlink("../shared.md", at.join("a/SKILL.md")).unwrap();
        let skill = read_bundle(&at.join("a/SKILL.md")).unwrap();
        assert_eq!(skill.real_folder(), at.join("a"));
        assert!(String::from_utf8(skill.read().unwrap()).unwrap().ends_with("body\n"));
    }

    #[test]
    fn file_over_the_limit_is_rejected_unread() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("SKILL.md");
        fs::File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(read_bundle(&path).unwrap_err().reason, RefusalReason::TooLarge);
        assert_eq!(read_bundle(&dir.path().join("no")).unwrap_err().reason, RefusalReason::Unreadable);
    }

    #[test]
    fn a_bundle_with_scripts_is_a_tool() {
        let dir = bundle();
        let path = dir.path().join("a/SKILL.md");
        fs::write(&path, "---\nname: a\ndescription: Does a thing\n---\n").unwrap();
        assert_eq!(read_bundle(&path).unwrap().kind.value, crate::Kind::Tool);
    }
}
