//! Opening a file beneath a bundle, whatever the bundle holds: the path is resolved by the system against an open
//! directory, so that nothing can be swapped between the check and the opening.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::failure::{ToolError, ToolFailure};

/// Bytes handed out at once, where nothing else is asked for, and at most.
pub const MOST_BYTES: u64 = 256 << 10;

/// A file, or a range of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Path inside the bundle.
    pub path: String,
    /// Size of the whole file in bytes.
    pub size: u64,
    /// First byte that was read.
    pub offset: u64,
    /// The bytes.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// Where to go on, when there is more.
    pub next_offset: Option<u64>,
}

/// Reads a range of a file of a bundle.
///
/// # Errors
/// [`ToolFailure::PathEscape`] for a path that is absolute, hidden, has `..`, or leads out through a link;
/// [`ToolFailure::NotFound`]; [`ToolFailure::InvalidRequest`] for a folder, pipe or device, and for a range that is too
/// large or begins behind the end.
pub fn range(root: &Path, path: &str, offset: u64, length: Option<u64>) -> Result<Range, ToolError> {
    let most = length.unwrap_or(MOST_BYTES);
    if most == 0 || most > MOST_BYTES {
        return Err(ToolError::new(
            ToolFailure::PayloadTooLarge,
            format!("`length` is {most}; 1 to {MOST_BYTES} bytes are read at once, go on with `offset`"),
        ));
    }
    let inside = plain(path)?;
    let mut file = open_beneath(root, inside, path)?;
    let size = file.metadata().map_err(|error| failed(path, &error))?.len();
    if offset > size {
        return Err(ToolError::new(
            ToolFailure::InvalidRequest,
            format!("{path} has {size} bytes; `offset` {offset} is behind its end"),
        ));
    }
    file.seek(SeekFrom::Start(offset)).map_err(|error| failed(path, &error))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(|error| failed(path, &error))?;
    let end = offset + bytes.len() as u64;
    Ok(Range { path: path.to_owned(), size, offset, bytes, next_offset: (end < size).then_some(end) })
}

/// Reads a file of a bundle whole.
///
/// # Errors
/// As [`range`]; [`ToolFailure::PayloadTooLarge`] for more than `most` bytes.
pub fn whole(root: &Path, path: &str, most: u64) -> Result<Vec<u8>, ToolError> {
    let file = open_beneath(root, plain(path)?, path)?;
    let mut bytes = Vec::new();
    // The size may be no longer true, so the reading itself has the limit.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| failed(path, &error))?;
    if bytes.len() as u64 > most {
        return Err(ToolError::new(
            ToolFailure::PayloadTooLarge,
            format!("{path} has more than {most} bytes, which are handed out at most"),
        ));
    }
    Ok(bytes)
}

/// A relative path without `..` and without hidden parts.
fn plain(path: &str) -> Result<&Path, ToolError> {
    let escape = |why: &str| {
        ToolError::new(
            ToolFailure::PathEscape,
            format!("{path:?} {why}; name a file inside the skill's folder, e.g. references/rules.md"),
        )
    };
    if path.is_empty() || path.contains('\0') {
        return Err(escape("is no path"));
    }
    let inside = Path::new(path);
    for part in inside.components() {
        match part {
            Component::Normal(name) if name.as_encoded_bytes().starts_with(b".") => {
                return Err(escape("is hidden"));
            }
            Component::Normal(_) | Component::CurDir => {}
            Component::ParentDir => return Err(escape("leads upwards")),
            Component::RootDir | Component::Prefix(_) => return Err(escape("is absolute")),
        }
    }
    Ok(inside)
}

fn failed(path: &str, error: &std::io::Error) -> ToolError {
    ToolError::new(ToolFailure::RuntimeError, format!("{path}: {error}"))
}

fn regular(file: File, path: &str) -> Result<File, ToolError> {
    let metadata = file.metadata().map_err(|error| failed(path, &error))?;
    if metadata.is_file() {
        return Ok(file);
    }
    let what = if metadata.is_dir() { "a folder" } else { "a pipe, socket or device" };
    Err(ToolError::new(ToolFailure::InvalidRequest, format!("{path} is {what}, not a file")))
}

#[cfg(unix)]
fn told(path: &str, error: rustix::io::Errno) -> ToolError {
    use rustix::io::Errno;
    match error {
        Errno::NOENT | Errno::NOTDIR => {
            ToolError::new(ToolFailure::NotFound, format!("the skill has no file {path}"))
        }
        // The reason is looked for where the way is known: see `through_link`.
        Errno::XDEV | Errno::LOOP => ToolError::new(
            ToolFailure::PathEscape,
            format!("{path} goes through a link that is not followed"),
        ),
        other => failed(path, &other.into()),
    }
}

/// Why a link on the way is not followed, where there is one. Only words: whether the file is opened was decided.
#[cfg(unix)]
fn through_link(root: &Path, inside: &Path, path: &str) -> Option<ToolError> {
    let base = root.canonicalize().ok()?;
    let mut at = base.clone();
    for part in inside.components() {
        at.push(part);
        if !at.symlink_metadata().ok()?.is_symlink() {
            continue;
        }
        let link = at.strip_prefix(&base).unwrap_or(&at).display().to_string();
        let refused = |why: String| Some(ToolError::new(ToolFailure::PathEscape, format!("{path}: {why}")));
        return match at.canonicalize() {
            Ok(real) => match real.strip_prefix(&base) {
                Err(_) => refused(format!("{link} is a link that leads out of the skill's folder")),
                Ok(there) => refused(format!(
                    "{link} is a link into the skill's own folder, written so that it is not followed; name the place itself: {}",
                    there.display()
                )),
            },
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                refused(format!("{link} is a link that goes round in a circle"))
            }
            Err(_) => {
                let code = if at.read_link().ok()?.is_absolute() {
                    ToolFailure::PathEscape
                } else {
                    ToolFailure::NotFound
                };
                Some(ToolError::new(code, format!("{path}: {link} is a link to something that is not there")))
            }
        };
    }
    None
}

/// `openat2(2)` with `RESOLVE_BENEATH`: the kernel refuses every way out, links included.
#[cfg(target_os = "linux")]
fn open_beneath(root: &Path, inside: &Path, path: &str) -> Result<File, ToolError> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
    let folder = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| told(path, error))?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(&folder, inside, flags, Mode::empty(), resolve) {
        Ok(file) => regular(File::from(file), path),
        // Kernels before 5.6.
        Err(rustix::io::Errno::NOSYS) => {
            walk(folder, inside, path).map_err(|error| through_link(root, inside, path).unwrap_or(error))
        }
        Err(error) => Err(through_link(root, inside, path).unwrap_or_else(|| told(path, error))),
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn open_beneath(root: &Path, inside: &Path, path: &str) -> Result<File, ToolError> {
    use rustix::fs::{Mode, OFlags, open};
    let folder = open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| told(path, error))?;
    walk(folder, inside, path).map_err(|error| through_link(root, inside, path).unwrap_or(error))
}

/// Folder by folder, following no link at all.
#[cfg(unix)]
fn walk(mut folder: std::os::fd::OwnedFd, inside: &Path, path: &str) -> Result<File, ToolError> {
    use rustix::fs::{Mode, OFlags, openat};
    let names: Vec<_> = inside
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let Some((last, folders)) = names.split_last() else {
        return Err(ToolError::new(ToolFailure::InvalidRequest, format!("{path} is a folder, not a file")));
    };
    for name in folders {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        folder = openat(&folder, *name, flags, Mode::empty()).map_err(|error| told(path, error))?;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = openat(&folder, *last, flags, Mode::empty()).map_err(|error| told(path, error))?;
    regular(File::from(file), path)
}

#[cfg(not(unix))]
fn open_beneath(root: &Path, inside: &Path, path: &str) -> Result<File, ToolError> {
    let whole = root.join(inside);
    let real = whole.canonicalize().map_err(|error| failed(path, &error))?;
    let base = root.canonicalize().map_err(|error| failed(path, &error))?;
    if !real.starts_with(&base) {
        return Err(ToolError::new(
            ToolFailure::PathEscape,
            format!("{path} leads out of the skill's folder through a link"),
        ));
    }
    regular(File::open(real).map_err(|error| failed(path, &error))?, path)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "what cannot be made has to fail the test")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn bundle() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("skill/references")).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        fs::write(dir.path().join("skill/references/rules.md"), "0123456789").unwrap();
        dir
    }

    #[test]
    fn a_file_is_read_whole_or_by_ranges() {
        let dir = bundle();
        let root = dir.path().join("skill");
        let whole = range(&root, "references/rules.md", 0, None).unwrap();
        assert_eq!((whole.bytes.as_slice(), whole.next_offset), (b"0123456789".as_slice(), None));
        let part = range(&root, "./references/rules.md", 2, Some(3)).unwrap();
        assert_eq!((part.bytes.as_slice(), part.next_offset), (b"234".as_slice(), Some(5)));
        assert_eq!(
            range(&root, "references/rules.md", 11, None).unwrap_err().code,
            ToolFailure::InvalidRequest
        );
        let error = range(&root, "references/rules.md", 0, Some(MOST_BYTES + 1)).unwrap_err();
        assert_eq!(error.code, ToolFailure::PayloadTooLarge);
    }

    #[test]
    fn no_path_leads_out() {
        let dir = bundle();
        let root = dir.path().join("skill");
        symlink(dir.path().join("secret"), root.join("absolute")).unwrap();
        symlink("../secret", root.join("upwards")).unwrap();
        symlink("..", root.join("folder")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        fs::write(root.join(".hidden"), "x").unwrap();
        for path in [
            "../secret",
            "/etc/passwd",
            "references/../../secret",
            "absolute",
            "upwards",
            "folder/secret",
            "loop",
            ".hidden",
            "references/.x",
            "",
            "a\0b",
        ] {
            let error = range(&root, path, 0, None).unwrap_err();
            assert_eq!(error.code, ToolFailure::PathEscape, "{path}: {error}");
        }
        for path in ["references/none.md", "references/rules.md/x"] {
            assert_eq!(range(&root, path, 0, None).unwrap_err().code, ToolFailure::NotFound, "{path}");
        }
        assert_eq!(range(&root, "references", 0, None).unwrap_err().code, ToolFailure::InvalidRequest);
    }

    #[test]
    fn a_link_is_refused_for_what_it_is() {
        let dir = bundle();
        let root = dir.path().join("skill");
        fs::create_dir(dir.path().join("other")).unwrap();
        fs::write(dir.path().join("other/SKILL.md"), "x").unwrap();
        symlink("../other", root.join("sibling")).unwrap();
        symlink(root.join("references"), root.join("absolute")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("nothing", root.join("dangling")).unwrap();
        let why = |path: &str| range(&root, path, 0, None).unwrap_err();
        assert!(
            why("sibling/SKILL.md")
                .message
                .contains("sibling is a link that leads out of the skill's folder")
        );
        let inside = why("absolute/rules.md").message;
        assert!(inside.contains("into the skill's own folder") && inside.contains("references"), "{inside}");
        assert!(why("loop").message.contains("goes round in a circle"));
        let dangling = why("dangling");
        assert_eq!(dangling.code, ToolFailure::NotFound);
        assert!(dangling.message.contains("dangling is a link to something that is not there"), "{dangling}");
        assert!(!why("sibling/SKILL.md").message.contains(dir.path().to_str().unwrap()), "no place is told");
    }

    #[test]
    fn a_link_that_stays_inside_is_followed_by_the_kernel_and_refused_without_it() {
        let dir = bundle();
        let root = dir.path().join("skill");
        symlink("references/rules.md", root.join("rules")).unwrap();
        #[cfg(target_os = "linux")]
        assert_eq!(range(&root, "rules", 0, None).unwrap().bytes, b"0123456789");
        let folder = fs::File::open(&root).unwrap();
        let refused = walk(folder.into(), Path::new("rules"), "rules").unwrap_err();
        assert_eq!(refused.code, ToolFailure::PathEscape);
    }
}
