//! Resolves paths that an untrusted party may have prepared to their real paths.

use std::io;
use std::path::{Path, PathBuf};

/// Resolves a path like [`Path::canonicalize`], which takes time in proportion to the square of the number of components;
/// Linux resolves it in linear time.
///
/// # Errors
/// Returns an error of the system, for example if the path does not exist.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    #[cfg(target_os = "linux")]
    if let Some(resolved) = linux::resolve(path) {
        return resolved;
    }
    path.canonicalize()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, File};
    use std::io;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::{Path, PathBuf};

    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::Errno;

    /// Opens the path and asks the system for the path of the open file; `None` if the answer cannot be trusted: `/proc` is
    /// missing, or the path does not name that file, as if it is hidden by a mount or was renamed in the meantime.
    pub fn resolve(path: &Path) -> Option<io::Result<PathBuf>> {
        let file = match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => File::from(file),
            // No more files may be opened.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => return None,
            Err(error) => return Some(Err(error.into())),
        };
        let real = match fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            // For example, it is too long.
            Err(error) => return Some(Err(error)),
        };
        let (opened, named) = (file.metadata().ok()?, real.symlink_metadata().ok()?);
        let is_same = real.is_absolute() && (opened.dev(), opened.ino()) == (named.dev(), named.ino());
        is_same.then_some(Ok(real))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_resolve_like_the_operating_system() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "x").unwrap();
        fs::write(root.join("gone (deleted)"), "x").unwrap();
        for (target, link) in [
            ("a/b", "c"),
            ("c/../../c/file", "e"),
            ("nowhere", "broken"),
            ("loop", "loop"),
            ("gone (deleted)", "deleted"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let long = "x".repeat(300);
        let names =
            ["", "a/b", "c", "c/file", "c/file/x", "e", "broken", "none", "loop", "deleted", "a\0b", &long];
        for name in names {
            let path = root.join(name);
            let kind = |resolved: io::Result<PathBuf>| resolved.map_err(|error| error.kind());
            assert_eq!(kind(canonicalize(&path)), kind(path.canonicalize()), "{name}");
        }
        for path in ["", ".", "/", ".."].map(Path::new) {
            assert_eq!(canonicalize(path).ok(), path.canonicalize().ok(), "{}", path.display());
        }
    }
}
