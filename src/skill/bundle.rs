//! A bundle on disk: its main file, its resource files, and paths that stay inside of it.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::lint::rules;
use super::parse::{MAX_BYTES, refusal, too_large};
use super::{Refusal, RefusalReason, Skill, parse, read_regular};

/// A file of a bundle beside its main file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BundleFile {
    /// Path inside the bundle, `/` between parts.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Whether it is executable.
    pub executable: bool,
}

/// Why a path inside a bundle is not followed.
#[derive(Debug, thiserror::Error)]
pub enum PathRefusal {
    /// It is absolute, has `..` in it, names a hidden file, or is empty.
    #[error(
        "`{0}` is no path inside the bundle: give it relative to the bundle's folder, without `..` and hidden parts"
    )]
    NotInside(String),
    /// A link on the way leads out of the bundle.
    #[error("`{0}` leads out of the bundle through a symbolic link")]
    LeavesBundle(String),
    /// There is no such file.
    #[error("there is no file `{path}` in the bundle: {source}")]
    NotFound {
        /// As given.
        path: String,
        /// The system's words.
        source: io::Error,
    },
}

/// Reads a bundle by the place of its main file: its size is checked before it is read.
///
/// # Errors
/// As [`parse`], and a refusal when the file cannot be read.
#[allow(
    clippy::result_large_err,
    reason = "a refusal is a record that is listed, not an error that is passed on"
)]
pub fn read_bundle(location: &Path) -> Result<Skill, Refusal> {
    let unreadable = |error: io::Error| {
        refusal(
            location,
            RefusalReason::Unreadable,
            &rules::UNREADABLE,
            format!("the file cannot be read: {error}"),
        )
    };
    let metadata = fs::metadata(location).map_err(unreadable)?;
    if metadata.len() > MAX_BYTES {
        return Err(too_large(location, metadata.len()));
    }
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified_ms = modified.map_or(0, |age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    let bytes = read_regular(location, MAX_BYTES).map_err(|error| match error.kind() {
        // It has grown since.
        io::ErrorKind::FileTooLarge => too_large(location, MAX_BYTES + 1),
        _ => unreadable(error),
    })?;
    let mut skill = parse(location, &bytes, modified_ms)?;
    if skill.kind.inferred {
        let beside = |name: &str| skill.root_dir.join(name);
        let (scripts, contract) = (beside("scripts").is_dir(), beside("skill.yaml").is_file());
        skill.set_neighbours(scripts, contract);
    }
    Ok(skill)
}

/// The resource files of a bundle, by path. Left out: its main files, hidden files, `node_modules`,
/// folders that are skills themselves, and links that lead out of the bundle.
///
/// # Errors
/// The bundle's folder cannot be read. Folders below that cannot be read are left out.
pub fn bundle_files(root_dir: &Path) -> io::Result<Vec<BundleFile>> {
    let root = root_dir.canonicalize()?;
    let mut found = Vec::new();
    let mut visited = vec![root.clone()];
    let mut folders = vec![(root.clone(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if prefix.is_empty() => return Err(error),
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || name == "node_modules" || (prefix.is_empty() && is_main_file(&name)) {
                continue;
            }
            // Follows links, and leaves those out that are broken or lead elsewhere.
            let Ok(real) = entry.path().canonicalize() else { continue };
            let Ok(metadata) = real.metadata() else { continue };
            if !real.starts_with(&root) {
                continue;
            }
            let path = format!("{prefix}{name}");
            if metadata.is_file() {
                found.push(BundleFile { path, bytes: metadata.len(), executable: is_executable(&metadata) });
            } else if metadata.is_dir() && !visited.contains(&real) && !is_skill(&real) {
                visited.push(real.clone());
                folders.push((real, format!("{path}/")));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The place of a file inside a bundle.
///
/// # Errors
/// A path that is absolute, has `..` or hidden parts, leads out through a link, or names nothing.
pub fn resolve(root_dir: &Path, path: &str) -> Result<PathBuf, PathRefusal> {
    let inside = !path.is_empty()
        && !path.contains('\0')
        && Path::new(path).components().all(|part| match part {
            Component::Normal(name) => !name.to_string_lossy().starts_with('.'),
            Component::CurDir => true,
            _ => false,
        });
    if !inside {
        return Err(PathRefusal::NotInside(path.to_owned()));
    }
    let not_found = |source| PathRefusal::NotFound { path: path.to_owned(), source };
    let root = root_dir.canonicalize().map_err(not_found)?;
    let real = root.join(path).canonicalize().map_err(not_found)?;
    if real.starts_with(&root) { Ok(real) } else { Err(PathRefusal::LeavesBundle(path.to_owned())) }
}

/// Whether a file name is that of a bundle's main file.
#[must_use]
pub fn is_main_file(name: &str) -> bool {
    name.eq_ignore_ascii_case("SKILL.md") || name == "skill.yaml"
}

fn is_skill(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_main_file))
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "the tests' scratch folder")]
mod tests {
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
        let files = bundle_files(&dir.path().join("a")).unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["inside.md", "references/b.md", "scripts/run.sh"]);
    }

    #[test]
    fn paths_stay_inside_of_the_bundle() {
        let dir = bundle();
        let root = dir.path().join("a");
        assert!(resolve(&root, "./scripts/run.sh").unwrap().ends_with("a/scripts/run.sh"));
        assert!(resolve(&root, "inside.md").is_ok());
        for path in ["", "../secret.txt", "scripts/../../secret.txt", "/etc/hostname", ".hidden", "a\0b"] {
            assert!(matches!(resolve(&root, path), Err(PathRefusal::NotInside(_))), "{path:?}");
        }
        for path in ["out.txt", "up/secret.txt"] {
            assert!(matches!(resolve(&root, path), Err(PathRefusal::LeavesBundle(_))), "{path}");
        }
        assert!(matches!(resolve(&root, "none.md"), Err(PathRefusal::NotFound { .. })));
    }

    #[test]
    fn a_file_beyond_the_limit_is_refused_unread() {
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
        assert_eq!(read_bundle(&path).unwrap().kind.value, crate::skill::Kind::Tool);
    }
}
