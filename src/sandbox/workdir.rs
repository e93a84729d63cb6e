//! The private work directory of one run: the only place that a script may write to.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::SandboxError;
use super::identity;
use super::outcome::Produced;
use super::plan::Identity;
use super::spec::InputFile;

/// Produced files that are listed, and how deep the list goes.
const MAX_LISTED: usize = 10_000;
const MAX_DEPTH: usize = 32;

/// A folder of its own for a run, deleted with this value.
#[derive(Debug)]
pub struct WorkDir {
    /// Holds the work directory and, beside it, a copy of the bundle where one is needed.
    outer: TempDir,
    work: PathBuf,
    /// The files that were put in, as they were then.
    inputs: BTreeMap<PathBuf, Stamp>,
}

/// What changes when a file is written to.
type Stamp = (u64, i64, i64, u64);

fn stamp(meta: &fs::Metadata) -> Stamp {
    (meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino())
}

impl WorkDir {
    /// Makes the folder, puts the files in, and gives it to the user the script will run as.
    pub fn create(owner: Option<Identity>, files: &[InputFile], inner: &Path) -> Result<Self, SandboxError> {
        let outer = place(owner.is_some())?;
        let work = outer.path().join("work");
        let mut out = Self { outer, work, inputs: BTreeMap::new() };
        let start = out.work.join(inner);
        make_folders(&start)?;
        for file in files {
            out.put(file)?;
        }
        if let Some(Identity(number)) = owner {
            give(&out.work, number)?;
        }
        set_mode(&out.work, 0o700)?;
        Ok(out)
    }

    /// The work directory itself.
    pub fn path(&self) -> &Path {
        &self.work
    }

    /// The folder around it, of which the script can use nothing else.
    pub fn outer(&self) -> &Path {
        self.outer.path()
    }

    fn put(&mut self, file: &InputFile) -> Result<(), SandboxError> {
        let to = self.work.join(&file.to);
        if let Some(parent) = to.parent() {
            make_folders(parent)?;
        }
        let meta =
            fs::metadata(&file.from).map_err(|source| SandboxError::io("reading", &file.from, source))?;
        if !meta.is_file() {
            return Err(SandboxError::bad(
                format!("input file {}", file.from.display()),
                "is no regular file",
            ));
        }
        fs::copy(&file.from, &to).map_err(|source| SandboxError::io("copying", &file.from, source))?;
        set_mode(&to, 0o600)?;
        let meta = fs::metadata(&to).map_err(|source| SandboxError::io("reading", &to, source))?;
        self.inputs.insert(to, stamp(&meta));
        Ok(())
    }

    /// Regular files that are new or changed, by path, and whether there are more than are listed. Call it when no
    /// process of the script is left.
    pub fn produced(&self) -> (Vec<Produced>, bool) {
        let mut found = Vec::new();
        let whole = self.list(&self.work, 0, &mut found);
        found.sort_by(|a, b| a.path.cmp(&b.path));
        (found, !whole)
    }

    /// Follows no link: what a script links to is not what it wrote.
    fn list(&self, folder: &Path, depth: usize, found: &mut Vec<Produced>) -> bool {
        let Ok(entries) = fs::read_dir(folder) else { return false };
        let mut whole = true;
        for entry in entries.flatten() {
            if found.len() >= MAX_LISTED {
                return false;
            }
            let path = entry.path();
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            if meta.is_dir() {
                whole &= depth < MAX_DEPTH && self.list(&path, depth + 1, found);
            } else if meta.is_file()
                && self.inputs.get(&path) != Some(&stamp(&meta))
                && let Ok(inside) = path.strip_prefix(&self.work)
            {
                found.push(Produced { path: inside.to_owned(), bytes: meta.len() });
            }
        }
        whole
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // A script may have closed its own folders; that must not keep them.
        open_folders(&self.work, 0);
    }
}

/// A new folder in the first temporary place that the script's user can get through to.
fn place(other: bool) -> Result<TempDir, SandboxError> {
    let usual = std::env::temp_dir();
    let mut why = Vec::new();
    for base in [usual.as_path(), Path::new("/tmp"), Path::new("/var/tmp")] {
        let base = base.canonicalize().unwrap_or_else(|_| base.to_owned());
        if let Err(reason) = identity::readable(&base, other) {
            why.push(reason);
            continue;
        }
        match tempfile::Builder::new().prefix("skills-step-").tempdir_in(&base) {
            Ok(outer) => {
                // The script's user passes through, and sees nothing on the way.
                set_mode(outer.path(), if other { 0o711 } else { 0o700 })?;
                return Ok(outer);
            }
            Err(error) => why.push(format!("{}: {error}", base.display())),
        }
    }
    Err(SandboxError::NotStarted { why: format!("no place for a work directory: {}", why.join("; ")) })
}

fn make_folders(path: &Path) -> Result<(), SandboxError> {
    fs::create_dir_all(path).map_err(|source| SandboxError::io("creating", path, source))
}

fn set_mode(path: &Path, mode: u32) -> Result<(), SandboxError> {
    fs::set_permissions(path, PermissionsExt::from_mode(mode))
        .map_err(|source| SandboxError::io("setting the mode of", path, source))
}

/// Gives a folder that only this process has written to, and everything in it, to a user.
fn give(path: &Path, number: u32) -> Result<(), SandboxError> {
    let failed = |source| SandboxError::io("giving away", path, source);
    chown(path, Some(number), Some(number)).map_err(failed)?;
    if fs::symlink_metadata(path).map_err(failed)?.is_dir() {
        for entry in fs::read_dir(path).map_err(failed)? {
            give(&entry.map_err(failed)?.path(), number)?;
        }
    }
    Ok(())
}

fn open_folders(folder: &Path, depth: usize) {
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir());
    if !is_folder || depth > 256 {
        return;
    }
    let _ = fs::set_permissions(folder, PermissionsExt::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        open_folders(&entry.path(), depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn produced_is_what_is_new_or_changed_and_no_link() {
        let given = tempfile::NamedTempFile::new().expect("temporary file");
        fs::write(given.path(), "given").expect("written");
        let put = |to: &str| InputFile { from: given.path().to_owned(), to: to.into() };
        let work =
            WorkDir::create(None, &[put("in/same"), put("in/changed")], Path::new("out")).expect("made");
        fs::write(work.path().join("in/changed"), "changed").expect("written");
        fs::write(work.path().join("out/new"), "four").expect("written");
        std::os::unix::fs::symlink("/etc/hostname", work.path().join("out/link")).expect("linked");
        let (found, more) = work.produced();
        let names: Vec<_> =
            found.iter().map(|file| (file.path.to_str().expect("plain"), file.bytes)).collect();
        assert_eq!(names, [("in/changed", 7), ("out/new", 4)]);
        assert!(!more);
    }

    #[test]
    fn a_closed_folder_does_not_stay_behind() {
        let work = WorkDir::create(None, &[], Path::new("")).expect("made");
        let closed = work.path().join("closed");
        fs::create_dir(&closed).expect("made");
        fs::write(closed.join("file"), "x").expect("written");
        fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).expect("own folder");
        let outer = work.outer().to_owned();
        drop(work);
        assert!(!outer.exists());
    }
}
