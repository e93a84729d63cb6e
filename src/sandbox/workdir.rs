//! The private work directory of one run: the only place to which a script may write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use skills_base::files;
use skills_base::locked_folder::{self, LockedFolder};

use super::bundle::{self, Contents, set_mode};
use super::error::SandboxError;
use super::identity;
use super::outcome::Produced;
use super::plan::Identity;
use super::spec::InputFile;

/// Maximum number of listed files, and maximum depth of the listing.
const MAX_LISTED: usize = 10_000;
pub const MAX_DEPTH: usize = 32;
/// Maximum depth of folders that are counted: the recursion uses stack.
const MAX_NESTED: usize = 256;

/// Interval at which the usage of a script is counted.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Prefix of the names of work directories.
const PREFIX: &str = "skills-step-";

/// A separate folder for a run, deleted with this value.
#[derive(Debug)]
pub struct WorkDir {
    /// Contains the work directory and, next to it, a copy of the bundle if one is needed.
    outer: LockedFolder,
    work: PathBuf,
    /// The folder of produced files, if they are copied out of a separate file system.
    out: Option<PathBuf>,
    /// The initial files with their stamps.
    inputs: BTreeMap<PathBuf, Stamp>,
    /// SHA-256 of the initial files, by name.
    digests: Contents,
    /// Number of folders that were created for them.
    initial_files: u64,
}

/// Metadata that changes when a file is written to.
pub type Stamp = (u64, i64, i64, u64);

pub fn stamp(meta: &fs::Metadata) -> Stamp {
    (meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino())
}

impl WorkDir {
    /// Creates the folder with the initial files, and makes the script's user its owner.
    pub fn create(
        base: Option<&Path>,
        owner: Option<Identity>,
        files: &[InputFile],
        inner: &Path,
    ) -> Result<Self, SandboxError> {
        let outer = make(base, owner.is_some())?;
        let work = outer.path().join("work");
        let mut out = Self {
            outer,
            work,
            out: None,
            inputs: BTreeMap::new(),
            digests: Contents::new(),
            initial_files: 0,
        };
        let start = out.work.join(inner);
        make_folders(&start)?;
        for file in files {
            out.put(file)?;
        }
        if let Some(Identity(number)) = owner {
            set_owner(&out.work, number)?;
        }
        set_mode(&out.work, 0o700)?;
        out.initial_files = out.usage().files;
        Ok(out)
    }

    pub fn path(&self) -> &Path {
        &self.work
    }

    /// Creates a folder next to it, inaccessible to the script, for the produced files.
    pub fn export(&mut self) -> Result<PathBuf, SandboxError> {
        let out = self.outer.path().join("out");
        make_folders(&out)?;
        set_mode(&out, 0o700)?;
        self.out = Some(out.clone());
        Ok(out)
    }

    /// Returns the path of a produced file.
    pub fn produced_at(&self, inside: &Path) -> PathBuf {
        self.out.as_ref().unwrap_or(&self.work).join(inside)
    }

    /// Counts what the script has written so far, without the initial files.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.count(&self.work, 0, &mut usage);
        usage.files = usage.files.saturating_sub(self.initial_files);
        usage
    }

    fn count(&self, folder: &Path, depth: usize, usage: &mut Usage) {
        if depth > MAX_NESTED {
            usage.is_closed = true;
            return;
        }
        let Ok(entries) = fs::read_dir(folder) else {
            // A folder that was deleted in the meantime does not matter; one that cannot be read may contain anything.
            usage.is_closed |= fs::symlink_metadata(folder).is_ok();
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            if self.inputs.get(&path) == Some(&stamp(&meta)) {
                continue;
            }
            usage.files += 1;
            if meta.is_dir() {
                self.count(&path, depth + 1, usage);
            } else {
                usage.bytes += meta.blocks().saturating_mul(512);
            }
        }
    }

    /// Returns the SHA-256 of the initial files, by name.
    pub fn digests(&self) -> &Contents {
        &self.digests
    }

    /// Returns the folder around the work directory, of which the script can use nothing else.
    pub fn outer(&self) -> &Path {
        self.outer.path()
    }

    fn put(&mut self, file: &InputFile) -> Result<(), SandboxError> {
        let (name, to) = (bundle::name_of(&file.to)?, self.work.join(&file.to));
        if let Some(parent) = to.parent() {
            make_folders(parent)?;
        }
        let mut copy = fs::File::create(&to).map_err(|source| SandboxError::io("creating", &to, source))?;
        let digest = copy_input(&file.from, &mut copy)?;
        // Of two files of one name the later one stays.
        self.digests.insert(name, digest);
        set_mode(&to, 0o600)?;
        let meta = fs::metadata(&to).map_err(|source| SandboxError::io("reading", &to, source))?;
        self.inputs.insert(to, stamp(&meta));
        Ok(())
    }

    /// Returns the regular files that are new or changed, sorted by path, and whether there are more than listed. Call
    /// it when no process of the script is left.
    pub fn produced(&self) -> (Vec<Produced>, bool) {
        let mut found = Vec::new();
        let is_complete = self.list(&self.produced_at(Path::new("")), 0, &mut found);
        found.sort_by(|a, b| a.path.cmp(&b.path));
        (found, !is_complete)
    }

    /// Lists files without following links, because the target of a link was not written by the script.
    fn list(&self, folder: &Path, depth: usize, found: &mut Vec<Produced>) -> bool {
        let Ok(entries) = fs::read_dir(folder) else { return false };
        let mut is_complete = true;
        for entry in entries.flatten() {
            if found.len() >= MAX_LISTED {
                return false;
            }
            let path = entry.path();
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            if meta.is_dir() {
                is_complete &= depth < MAX_DEPTH && self.list(&path, depth + 1, found);
            } else if meta.is_file()
                && self.inputs.get(&path) != Some(&stamp(&meta))
                && let Ok(inside) = path.strip_prefix(self.out.as_ref().unwrap_or(&self.work))
            {
                found.push(Produced { path: inside.to_owned(), bytes: meta.len() });
            }
        }
        is_complete
    }
}

/// Copies an input file; returns the SHA-256 of the copied bytes.
pub fn copy_input(from: &Path, to: &mut impl Write) -> Result<String, SandboxError> {
    // If it is a pipe, do not wait for a writer.
    let mut file = fs::File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(from)
        .map_err(|source| SandboxError::io("reading", from, source))?;
    let meta = file.metadata().map_err(|source| SandboxError::io("reading", from, source))?;
    if !meta.is_file() {
        return Err(SandboxError::bad(format!("input file {}", from.display()), "is not a regular file"));
    }
    bundle::hash_chunks(&mut file, from, |chunk| {
        to.write_all(chunk).map_err(|source| SandboxError::io("copying", from, source))
    })
}

/// Usage of the work directory by a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of files, folders and links.
    pub files: u64,
    /// Disk space in bytes.
    pub bytes: u64,
    /// Whether some folder cannot be read.
    pub is_closed: bool,
}

/// Folders of ended processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Number of folders.
    pub folders: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

/// Returns the candidate folders for work directories: the configured one, or the temporary folders of the system.
fn bases(base: Option<&Path>) -> Vec<PathBuf> {
    let usual = std::env::temp_dir();
    let all = match base {
        Some(base) => vec![base],
        None => vec![usual.as_path(), Path::new("/tmp"), Path::new("/var/tmp")],
    };
    let mut seen = BTreeSet::new();
    let real = all.into_iter().map(|base| files::canonicalize(base).unwrap_or_else(|_| base.to_owned()));
    real.filter(|base| seen.insert(base.clone())).collect()
}

/// Creates a folder with a lock that marks it as in use.
fn make(base: Option<&Path>, other: bool) -> Result<LockedFolder, SandboxError> {
    let mut why = Vec::new();
    if let Some(base) = base.filter(|base| !base.exists()) {
        make_folders(base)?;
        set_mode(base, if other { 0o711 } else { 0o700 })?;
    }
    for base in bases(base) {
        if let Err(reason) = identity::check_traversable(&base, other) {
            why.push(reason);
            continue;
        }
        // The script's user may traverse the folder, but not list it.
        match LockedFolder::create_in(&base, PREFIX, other) {
            Ok(made) => return Ok(made),
            Err(error) => why.push(format!("{}: {error}", base.display())),
        }
    }
    Err(SandboxError::NotStarted { why: format!("cannot create a work directory: {}", why.join("; ")) })
}

/// Counts the folders left behind by ended processes; with `clear`, also deletes them.
pub fn leftovers(base: Option<&Path>, clear: bool) -> Leftovers {
    let mut found = Leftovers::default();
    for base in bases(base) {
        for leftover in locked_folder::leftovers(&base, PREFIX) {
            let bytes = size(leftover.path(), 0);
            let path = leftover.path().to_owned();
            if clear && let Err(error) = leftover.clear() {
                tracing::warn!("clearing {}: {error}", path.display());
                continue;
            }
            found.folders += 1;
            found.bytes += bytes;
        }
    }
    found
}

fn size(folder: &Path, depth: usize) -> u64 {
    if depth > MAX_NESTED {
        return 0;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.path(), fs::symlink_metadata(entry.path()).ok()?)))
        .map(|(path, meta)| {
            let own = meta.blocks().saturating_mul(512);
            if meta.is_dir() { own + size(&path, depth + 1) } else { own }
        })
        .sum()
}

fn make_folders(path: &Path) -> Result<(), SandboxError> {
    fs::create_dir_all(path).map_err(|source| SandboxError::io("creating", path, source))
}

/// Makes a user the owner of a folder and its content, to which only this process has written.
fn set_owner(path: &Path, number: u32) -> Result<(), SandboxError> {
    let failed = |source| SandboxError::io("giving away", path, source);
    chown(path, Some(number), Some(number)).map_err(failed)?;
    if fs::symlink_metadata(path).map_err(failed)?.is_dir() {
        for entry in fs::read_dir(path).map_err(failed)? {
            set_owner(&entry.map_err(failed)?.path(), number)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn produced_files_are_new_or_changed_and_not_links() {
        let base = tempfile::NamedTempFile::new().expect("temporary file");
        fs::write(base.path(), "given").expect("written");
        let put = |to: &str| InputFile { from: base.path().to_owned(), to: to.into() };
        let work = WorkDir::create(None, None, &[put("in/same"), put("in/changed")], Path::new("out"))
            .expect("made");
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
    fn unreadable_folder_is_removed() {
        let work = WorkDir::create(None, None, &[], Path::new("")).expect("made");
        let closed = work.path().join("closed");
        fs::create_dir(&closed).expect("made");
        fs::write(closed.join("file"), "x").expect("written");
        fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000))
            .expect("own folder");
        let outer = work.outer().to_owned();
        drop(work);
        assert!(!outer.exists());
    }

    #[test]
    fn only_folders_of_ended_processes_are_removed() {
        let base = tempfile::tempdir().expect("temporary folder");
        let alive = WorkDir::create(Some(base.path()), None, &[], Path::new("")).expect("made");
        let dead = base.path().join("skills-step-dead");
        fs::create_dir_all(dead.join("work")).expect("made");
        fs::write(dead.join("work/file"), "x".repeat(5000)).expect("written");
        assert_eq!(
            leftovers(Some(base.path()), true),
            Leftovers::default(),
            "an earlier version may have it"
        );
        fs::write(dead.join("lock"), "").expect("written");
        std::os::unix::fs::symlink(alive.outer(), base.path().join("skills-step-link")).expect("linked");
        fs::create_dir(base.path().join("another")).expect("made");
        let found = leftovers(Some(base.path()), false);
        assert!(found.folders == 1 && found.bytes >= 5000, "{found:?}");
        assert_eq!(leftovers(Some(base.path()), true), found);
        assert!(!dead.exists() && alive.work.exists() && base.path().join("another").exists());
        assert_eq!(leftovers(Some(base.path()), true), Leftovers::default());
    }

    #[test]
    fn usage_is_what_was_written() {
        let base = tempfile::NamedTempFile::new().expect("temporary file");
        fs::write(base.path(), "x".repeat(100_000)).expect("written");
        let put = InputFile { from: base.path().to_owned(), to: "in".into() };
        let work = WorkDir::create(None, None, &[put], Path::new("")).expect("made");
        assert_eq!(work.usage(), Usage::default());
        fs::create_dir(work.path().join("folder")).expect("made");
        fs::write(work.path().join("folder/file"), "x".repeat(50_000)).expect("written");
        let usage = work.usage();
        assert_eq!(usage.files, 2);
        assert!((50_000..100_000).contains(&usage.bytes), "{usage:?}");
    }
}
