//! A script inside its bundle: found without leaving it, and copied to where another user can read it.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::error::SandboxError;

/// A bundle that is copied for a run may have this many files and bytes.
const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 256 << 20;

/// A script that lies in its bundle for certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The bundle's folder, without any link in its path.
    pub root: PathBuf,
    /// The script, relative to it.
    pub script: PathBuf,
    /// Somebody may execute the file itself.
    pub executable: bool,
}

/// Resolves a script's path, links included.
pub fn locate(root: &Path, script: &Path) -> Result<Located, SandboxError> {
    let refused = |why| SandboxError::NotAScript { path: script.to_owned(), why };
    let mut plain = PathBuf::new();
    for part in script.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err(refused("it holds `..`")),
            Component::RootDir | Component::Prefix(_) => return Err(refused("it is absolute")),
        }
    }
    if !plain.starts_with("scripts") || plain.components().count() < 2 {
        return Err(refused("it is not below `scripts/`"));
    }
    let root = root.canonicalize().map_err(|source| SandboxError::io("opening the bundle", root, source))?;
    let target = root.join(&plain).canonicalize().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => SandboxError::Missing { script: plain.clone(), bundle: root.clone() },
        _ => SandboxError::io("opening", &root.join(&plain), source),
    })?;
    if !target.starts_with(&root) {
        return Err(SandboxError::Escapes { path: script.to_owned(), target });
    }
    let meta = fs::metadata(&target).map_err(|source| SandboxError::io("opening", &target, source))?;
    if !meta.is_file() {
        return Err(refused("it is no regular file"));
    }
    Ok(Located { root, script: plain, executable: meta.mode() & 0o111 != 0 })
}

/// Copies a bundle so that everybody can read it and nobody but root can change it.
///
/// Links are copied as links (those with an absolute path into the bundle are led into the copy), special files and
/// the history kept in `.git` are left out.
pub fn copy_readable(root: &Path, to: &Path) -> Result<(), SandboxError> {
    let mut copy = Copy { from: root, to, files: 0, bytes: 0 };
    copy.folder(root, to)
}

struct Copy<'a> {
    from: &'a Path,
    to: &'a Path,
    files: usize,
    bytes: u64,
}

impl Copy<'_> {
    fn folder(&mut self, from: &Path, to: &Path) -> Result<(), SandboxError> {
        fs::create_dir(to).map_err(|source| SandboxError::io("creating", to, source))?;
        let entries = fs::read_dir(from).map_err(|source| SandboxError::io("reading", from, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| SandboxError::io("reading", from, source))?;
            if entry.file_name() != ".git" {
                self.entry(&entry.path(), &to.join(entry.file_name()))?;
            }
        }
        set_mode(to, 0o755)
    }

    fn entry(&mut self, from: &Path, to: &Path) -> Result<(), SandboxError> {
        let meta = fs::symlink_metadata(from).map_err(|source| SandboxError::io("reading", from, source))?;
        self.files += 1;
        self.bytes += meta.len();
        if self.files > MAX_FILES || self.bytes > MAX_BYTES {
            let why =
                format!("more than {MAX_FILES} files or {} MiB; run as an ordinary user", MAX_BYTES >> 20);
            return Err(SandboxError::bad(format!("bundle {}", self.from.display()), why));
        }
        if meta.is_dir() {
            return self.folder(from, to);
        }
        if meta.is_symlink() {
            let target = fs::read_link(from).map_err(|source| SandboxError::io("reading", from, source))?;
            let target = match target.strip_prefix(self.from) {
                Ok(inside) => self.to.join(inside),
                Err(_) => target,
            };
            return symlink(target, to).map_err(|source| SandboxError::io("creating", to, source));
        }
        if meta.is_file() {
            fs::copy(from, to).map_err(|source| SandboxError::io("copying", from, source))?;
            return set_mode(to, if meta.mode() & 0o111 == 0 { 0o444 } else { 0o555 });
        }
        Ok(())
    }
}

fn set_mode(path: &Path, mode: u32) -> Result<(), SandboxError> {
    fs::set_permissions(path, PermissionsExt::from_mode(mode))
        .map_err(|source| SandboxError::io("setting the mode of", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("temporary folder");
        fs::create_dir(folder.path().join("scripts")).expect("created");
        fs::write(folder.path().join("scripts/run.py"), "print(1)").expect("written");
        fs::write(folder.path().join("lib.py"), "x = 1").expect("written");
        folder
    }

    #[test]
    fn a_script_is_found_below_scripts_only() {
        let bundle = bundle();
        let found = locate(bundle.path(), Path::new("./scripts/run.py")).expect("there");
        assert_eq!(found.script, Path::new("scripts/run.py"));
        assert!(!found.executable);
        for (path, word) in [
            ("lib.py", "below"),
            ("scripts", "below"),
            ("scripts/../lib.py", ".."),
            ("/etc/passwd", "absolute"),
            ("scripts/none.py", "no script"),
        ] {
            let told = locate(bundle.path(), Path::new(path)).expect_err(path).to_string();
            assert!(told.contains(word), "{path}: {told}");
        }
    }

    #[test]
    fn a_link_out_of_the_bundle_is_no_script() {
        let bundle = bundle();
        let outside = tempfile::NamedTempFile::new().expect("temporary file");
        symlink(outside.path(), bundle.path().join("scripts/out.py")).expect("linked");
        let error = locate(bundle.path(), Path::new("scripts/out.py")).expect_err("leads out");
        assert!(matches!(error, SandboxError::Escapes { .. }), "{error}");
        symlink("../lib.py", bundle.path().join("scripts/in.py")).expect("linked");
        assert!(locate(bundle.path(), Path::new("scripts/in.py")).is_ok(), "a link inside stays inside");
    }

    #[test]
    fn a_copy_is_readable_by_all_and_keeps_its_links_inside() {
        let bundle = bundle();
        let script = bundle.path().join("scripts/run.py");
        fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).expect("own file");
        symlink(bundle.path().join("lib.py"), bundle.path().join("link.py")).expect("linked");
        let place = tempfile::tempdir().expect("temporary folder");
        let to = place.path().join("copy");
        copy_readable(bundle.path(), &to).expect("copied");
        assert_eq!(fs::metadata(to.join("scripts/run.py")).expect("there").mode() & 0o777, 0o555);
        assert_eq!(fs::read_link(to.join("link.py")).expect("a link"), to.join("lib.py"));
    }
}
