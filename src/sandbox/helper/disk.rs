//! A separate file system for the files that a script writes, whose limits on bytes and files the kernel enforces.
//!
//! The supervisor enters a mount namespace, mounts a `tmpfs` (tmpfs(5)) over the work directory, and copies the
//! produced files out of it afterwards. It disappears with the namespace, however that ends.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statvfs::statvfs;

use super::super::plan::{Disk, DiskUse, Identity};
use super::super::workdir::{MAX_DEPTH, Stamp, stamp};
use super::child_setup::enter_namespace;

/// Size of a page in bytes, the minimum space of a file.
const PAGE: u64 = 4096;

/// The mounted file system.
pub struct Mounted {
    disk: Disk,
    /// The initial files with their stamps.
    inputs: BTreeMap<PathBuf, Stamp>,
    full: Arc<ReachedLimits>,
}

/// The limits that were reached at some time.
#[derive(Default)]
struct ReachedLimits {
    bytes: AtomicBool,
    files: AtomicBool,
}

impl ReachedLimits {
    fn update(&self, work: &Path) {
        if let Ok(now) = statvfs(work) {
            self.bytes.fetch_or(now.blocks_free() == 0, Ordering::SeqCst);
            self.files.fetch_or(now.files_free() == 0, Ordering::SeqCst);
        }
    }
}

impl Mounted {
    /// Mounts the file system over the work directory and copies the directory's content into it. Call it before any
    /// thread is started.
    pub fn mount(disk: &Disk, owner: Option<Identity>) -> Result<Self, String> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: nix::Error| format!("{what}: {error}")
        };
        let io = |error: io::Error| format!("populating the work directory: {error}");
        let below = File::open(&disk.work).map_err(io)?;
        let below_path = PathBuf::from(format!("/proc/self/fd/{}", below.as_raw_fd()));
        let initial = InitialUsage::of(&below_path).map_err(io)?;
        if !nix::unistd::geteuid().is_root() {
            enter_namespace()?;
        }
        unshare(CloneFlags::CLONE_NEWNS).map_err(failed("entering a mount namespace"))?;
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
            .map_err(failed("making mounts private"))?;
        let options = format!(
            "mode=0700,size={},nr_inodes={}",
            disk.bytes.saturating_add(initial.bytes).next_multiple_of(PAGE),
            // The folder itself counts as one.
            disk.files.saturating_add(initial.entries).saturating_add(1)
        );
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("tmpfs"), &disk.work, Some("tmpfs"), flags, Some(options.as_str()))
            .map_err(failed("mounting a tmpfs"))?;
        let mut inputs = BTreeMap::new();
        fill(&below_path, &disk.work, owner, &mut inputs).map_err(io)?;
        set_owner(&disk.work, owner).map_err(io)?;
        Ok(Self { disk: disk.clone(), inputs, full: Arc::default() })
    }

    /// Periodically checks whether it is full, in a separate thread.
    pub fn watch(&self) {
        let (work, full) = (self.disk.work.clone(), Arc::clone(&self.full));
        std::thread::spawn(move || {
            loop {
                full.update(&work);
                std::thread::sleep(super::super::workdir::POLL_INTERVAL);
            }
        });
    }

    /// Copies new and changed files to the folder where the program finds them. Call it when no process of the script
    /// is left.
    pub fn export(self) -> DiskUse {
        self.full.update(&self.disk.work);
        let mut found = DiskUse {
            bytes_full: self.full.bytes.load(Ordering::SeqCst),
            files_full: self.full.files.load(Ordering::SeqCst),
            ..DiskUse::default()
        };
        // Limits the copy by the apparent size, because a sparse file takes more space in the copy.
        let mut left = self.disk.bytes;
        match self.copy_out(&self.disk.work, &self.disk.out, 0, &mut left) {
            Ok(complete) => found.truncated = !complete,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => found.bytes_full = true,
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                found.error =
                    Some(format!("a path of its folders is longer than {} bytes", nix::libc::PATH_MAX));
            }
            Err(error) => found.error = Some(format!("copying what the script wrote: {error}")),
        }
        found
    }

    /// Copies files without following links, because the target of a link was not written by the script. Returns
    /// whether everything was copied.
    fn copy_out(&self, from: &Path, to: &Path, depth: usize, left: &mut u64) -> io::Result<bool> {
        let mut complete = true;
        // The script may have removed the permissions of its own folder.
        fs::set_permissions(from, PermissionsExt::from_mode(0o700))?;
        for entry in fs::read_dir(from)? {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
            let meta = fs::symlink_metadata(&path)?;
            let to = to.join(name);
            if meta.is_dir() && depth < MAX_DEPTH {
                fs::create_dir(&to)?;
                complete &= self.copy_out(&path, &to, depth + 1, left)?;
            } else if meta.is_dir() {
                complete = false;
            } else if meta.is_file() && self.inputs.get(&path) != Some(&stamp(&meta)) {
                *left = left.checked_sub(meta.len()).ok_or(io::ErrorKind::FileTooLarge)?;
                if meta.mode() & 0o400 == 0 {
                    fs::set_permissions(&path, PermissionsExt::from_mode(0o600))?;
                }
                copy_file(&path, &to)?;
            }
        }
        Ok(complete)
    }
}

/// Entries and bytes in the work directory before the start.
struct InitialUsage {
    entries: u64,
    bytes: u64,
}

impl InitialUsage {
    fn of(folder: &Path) -> io::Result<Self> {
        let mut found = Self { entries: 0, bytes: 0 };
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let meta = fs::symlink_metadata(&path)?;
            found.entries += 1;
            if meta.is_dir() {
                let below = Self::of(&path)?;
                found.entries += below.entries;
                found.bytes += below.bytes;
            } else {
                found.bytes += meta.len().next_multiple_of(PAGE);
            }
        }
        Ok(found)
    }
}

/// Copies folders and files that the program has created; there are no other kinds of entries.
fn fill(
    from: &Path,
    to: &Path,
    owner: Option<Identity>,
    inputs: &mut BTreeMap<PathBuf, Stamp>,
) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let meta = fs::symlink_metadata(&path)?;
        let to = to.join(name);
        if meta.is_dir() {
            fs::create_dir(&to)?;
            fill(&path, &to, owner, inputs)?;
            fs::set_permissions(&to, meta.permissions())?;
            set_owner(&to, owner)?;
        } else if meta.is_file() {
            copy_file(&path, &to)?;
            fs::set_permissions(&to, meta.permissions())?;
            set_owner(&to, owner)?;
            inputs.insert(to.clone(), stamp(&fs::symlink_metadata(&to)?));
        }
    }
    Ok(())
}

fn set_owner(path: &Path, owner: Option<Identity>) -> io::Result<()> {
    owner.map_or(Ok(()), |Identity(number)| chown(path, Some(number), Some(number)))
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::options().read(true).custom_flags(nix::libc::O_NOFOLLOW).open(from)?;
    let mut to = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            read => to.write_all(&buffer[..read])?,
        }
    }
}
