//! An open folder, and opening files beneath it.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

#[cfg(not(unix))]
use self::elsewhere as system;
#[cfg(unix)]
use self::unix as system;
use super::{MAX_COMPONENTS, MAX_USER_FILE, OpenError, canonicalize};

/// What is neither a regular file nor a folder, for messages.
const SPECIAL: &str = "a pipe, socket or device";

/// An open folder: whatever is opened relative to it is beneath it, even if paths are renamed or replaced by links in
/// the meantime.
#[derive(Debug)]
pub struct Folder {
    handle: system::Handle,
    /// Its location, for error messages.
    path: PathBuf,
}

#[derive(Debug)]
pub struct Entry {
    /// Its name; entries whose names are not UTF-8 are omitted, because no path can refer to them.
    pub name: String,
    /// Whether the name itself is a link.
    pub is_link: bool,
}

impl Folder {
    /// Opens a folder by its real path: a link anywhere in the path is rejected.
    ///
    /// # Errors
    /// Returns an error of the system; for a link, its kind is `FilesystemLoop`.
    pub fn open(real: &Path) -> io::Result<Self> {
        Ok(Self { handle: system::open_folder(real)?, path: real.to_owned() })
    }

    /// Opens a folder by a path from the user: links in it are followed.
    pub fn follow(path: &Path) -> io::Result<Self> {
        Self::open(&canonicalize(path)?)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file beneath the folder, without ever blocking. Links are followed if they stay beneath the
    /// folder.
    ///
    /// # Errors
    /// Returns an error for a path that is absolute, hidden or contains `..`, for a link that points outside, and for
    /// anything but a regular file.
    pub fn open_file(&self, path: &str) -> Result<(File, Metadata), OpenError> {
        let inside = checked_path(path)?;
        let file = system::open_inside(&self.handle, inside, false)
            .map_err(|error| self.explain(inside, path, error))?;
        regular(file, path)
    }

    /// Reads a file beneath the folder of at most `limit` bytes.
    pub fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>, OpenError> {
        let (file, metadata) = self.open_file(path)?;
        read_open(file, &metadata, path, limit)
    }

    /// Reads a UTF-8 file like [`Self::read`].
    pub fn read_text(&self, path: &str, limit: u64) -> Result<String, OpenError> {
        text(self.read(path, limit)?, path)
    }

    /// Returns the metadata of a path beneath the folder, following links; of the folder itself for an empty path.
    pub fn metadata(&self, path: &str) -> Result<Metadata, OpenError> {
        let inside = if path.is_empty() { Path::new(".") } else { checked_path(path)? };
        system::stat_inside(&self.handle, inside).map_err(|error| self.explain(inside, path, error))
    }

    /// Returns the entries of a folder beneath this one, in arbitrary order; of the folder itself for an empty path.
    pub fn entries(&self, path: &str) -> Result<Vec<Entry>, OpenError> {
        let inside = if path.is_empty() { Path::new(".") } else { checked_path(path)? };
        let folder = system::open_inside(&self.handle, inside, true)
            .map_err(|error| self.explain(inside, path, error))?;
        system::entries(folder, &self.path.join(inside)).map_err(|error| OpenError::io(path, error))
    }

    /// Opens the folder of this name in the folder, and creates it if it is missing, accessible only to its owner. A
    /// link is rejected.
    pub fn create_folder(&self, name: &str) -> io::Result<Self> {
        let handle = system::create_folder_in(&self.handle, file_name(name)?)?;
        Ok(Self { handle, path: self.path.join(name) })
    }

    /// Opens the file of this name in the folder for locking, and creates it if it is missing, accessible only to its
    /// owner. A link is rejected.
    pub fn open_lock(&self, name: &str) -> io::Result<File> {
        let file = system::open_lock_in(&self.handle, file_name(name)?)?;
        if file.metadata()?.is_file() {
            return Ok(file);
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }

    /// Replaces the content of the file of this name in the folder atomically, or creates it; only its owner may read
    /// it. A link is replaced, not followed.
    ///
    /// # Errors
    /// Returns an error of the system; the file is then unchanged.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        system::write_in(&self.handle, file_name(name)?, content)
    }

    /// Converts an error of the system to a specific one. The file was rejected already, so the checks here cannot
    /// open it.
    fn explain(&self, inside: &Path, path: &str, error: io::Error) -> OpenError {
        if let Some(refusal) = blocking_link(&self.path, inside, path) {
            return refusal;
        }
        if system::is_link_error(&error) {
            let why = "it contains a symbolic link, which is not followed".to_owned();
            return OpenError::Link { path: path.to_owned(), why };
        }
        failed(path, error)
    }
}

/// Opens a folder by its real path for listing: a link anywhere in the path is rejected.
#[cfg(unix)]
pub fn open_folder(real: &Path) -> io::Result<File> {
    system::open_listed(real)
}

/// Opens a regular file by its real path: a link anywhere in the path is rejected.
pub fn open_file(real: &Path) -> Result<(File, Metadata), OpenError> {
    let shown = real.to_string_lossy();
    let file = system::open_real(real).map_err(|error| {
        if system::is_link_error(&error) {
            let why = "the file or a parent folder was replaced by a symbolic link".to_owned();
            return OpenError::Link { path: shown.clone().into_owned(), why };
        }
        failed(&shown, error)
    })?;
    regular(file, &shown)
}

/// Reads a file of at most `limit` bytes by its real path.
pub fn read_file(real: &Path, limit: u64) -> Result<Vec<u8>, OpenError> {
    let (file, metadata) = open_file(real)?;
    read_open(file, &metadata, &real.to_string_lossy(), limit)
}

/// Reads a UTF-8 file like [`read_file`].
pub fn read_text(real: &Path, limit: u64) -> Result<String, OpenError> {
    text(read_file(real, limit)?, &real.to_string_lossy())
}

/// Reads a text file of at most [`MAX_USER_FILE`] bytes that the user names, including links and pipes.
///
/// # Errors
/// Returns an error of the system, `FileTooLarge`, and `InvalidData` for anything but UTF-8.
pub fn read_user_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_USER_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_USER_FILE {
        let message = format!("the file has more than {} MiB", MAX_USER_FILE >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the file is not UTF-8 text"))
}

/// Resolves a file or folder that the user names to its real path, for [`read_file`] and [`replace_file`]: links in
/// its parent path are followed; the last component may be a link only to something beneath its own folder.
///
/// # Errors
/// Returns `Link` for a link that points outside or is broken, `NotFound`, or an error of the system.
pub fn resolve_named(path: &Path) -> Result<PathBuf, OpenError> {
    let shown = path.to_string_lossy();
    let found = |found: io::Result<PathBuf>| found.map_err(|error| failed(&shown, error));
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return found(canonicalize(path));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let folder = found(canonicalize(parent))?;
    let real = folder.join(name);
    let metadata = real.symlink_metadata().map_err(|error| failed(&shown, error))?;
    if !metadata.is_symlink() {
        return Ok(real);
    }
    let refused = |why: &str| Err(OpenError::Link { path: shown.clone().into_owned(), why: why.to_owned() });
    if let Some(OpenError::Link { why, .. }) = blocking_link(&folder, Path::new(name), &shown) {
        return refused(&why);
    }
    match canonicalize(&real) {
        Ok(target) if target.starts_with(&folder) => Ok(target),
        Ok(_) => refused("it is a symbolic link that points outside the folder"),
        Err(_) => refused("it is a broken symbolic link"),
    }
}

/// Atomically replaces a file by its real path if its content is `read`; permissions are preserved. All operations are
/// relative to the opened folder: a link that replaces the file or a folder in the meantime is rejected or replaced,
/// never followed. Returns whether the content was `read`.
pub fn replace_file(real: &Path, read: &[u8], write: &[u8]) -> Result<bool, OpenError> {
    replace_file_after(real, read, write, None, || Ok(()))
}

/// Replaces a file like [`replace_file`]. `prepared` is called when the new content is in the file `new` of the same
/// folder, immediately before that file takes the place of the other one: as long as it exists, nothing was replaced.
pub fn replace_file_after(
    real: &Path,
    read: &[u8],
    write: &[u8],
    new: Option<&str>,
    prepared: impl FnOnce() -> io::Result<()>,
) -> Result<bool, OpenError> {
    let shown = real.to_string_lossy();
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(failed(&shown, io::ErrorKind::InvalidInput.into()));
    };
    system::replace(parent, name, (read, write), new, prepared).map_err(|error| {
        if system::is_link_error(&error) {
            let why = "the file or a parent folder was replaced by a symbolic link".to_owned();
            return OpenError::Link { path: shown.clone().into_owned(), why };
        }
        failed(&shown, error)
    })
}

fn read_open(file: File, metadata: &Metadata, path: &str, limit: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(limit)).unwrap_or(0));
    // The size may be outdated, so the read itself is limited.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| OpenError::io(path, error))?;
    if bytes.len() as u64 > limit {
        return Err(OpenError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>, path: &str) -> Result<String, OpenError> {
    String::from_utf8(bytes).map_err(|error| {
        let source = io::Error::new(io::ErrorKind::InvalidData, error.utf8_error());
        OpenError::Io { path: path.to_owned(), source }
    })
}

/// Checks that a name has only one component.
fn file_name(name: &str) -> io::Result<&OsStr> {
    let path = Path::new(name);
    path.file_name()
        .filter(|only| *only == path.as_os_str())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"))
}

/// Checks that a path is relative and not too long, and has no `..` and no hidden components.
fn checked_path(path: &str) -> Result<&Path, OpenError> {
    let refused = |why| Err(OpenError::NotInside { path: path.to_owned(), why });
    if path.is_empty() || path.contains('\0') {
        return refused("is not a path");
    }
    let inside = Path::new(path);
    if inside.components().count() > MAX_COMPONENTS {
        return refused("is too long");
    }
    for part in inside.components() {
        match part {
            Component::Normal(name) if name.as_encoded_bytes().starts_with(b".") => {
                return refused("is hidden");
            }
            Component::Normal(_) | Component::CurDir => {}
            Component::ParentDir => return refused("contains `..`"),
            Component::RootDir | Component::Prefix(_) => return refused("is absolute"),
        }
    }
    Ok(inside)
}

fn failed(path: &str, error: io::Error) -> OpenError {
    if system::is_socket_error(&error) {
        return OpenError::NotRegular { path: path.to_owned(), what: SPECIAL };
    }
    OpenError::io(path, error)
}

fn regular(file: File, path: &str) -> Result<(File, Metadata), OpenError> {
    let metadata = file.metadata().map_err(|error| OpenError::io(path, error))?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a folder" } else { SPECIAL };
        return Err(OpenError::NotRegular { path: path.to_owned(), what });
    }
    if system::is_pseudo(&file) {
        return Err(OpenError::PseudoFileSystem { path: path.to_owned() });
    }
    Ok((file, metadata))
}

fn is_hidden(path: &Path) -> bool {
    path.iter().any(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Returns the error for the link in the path that caused the rejection, if there is one.
fn blocking_link(root: &Path, inside: &Path, path: &str) -> Option<OpenError> {
    let base = canonicalize(root).ok()?;
    let mut at = base.clone();
    for part in inside.components() {
        at.push(part);
        if !at.symlink_metadata().ok()?.is_symlink() {
            continue;
        }
        let link = at.strip_prefix(&base).unwrap_or(&at).display().to_string();
        let refused = |why: String| Some(OpenError::Link { path: path.to_owned(), why });
        return match canonicalize(&at) {
            Ok(real) => match real.strip_prefix(&base) {
                Err(_) => refused(format!("{link} is a symbolic link that points outside the folder")),
                Ok(there) if at.read_link().is_ok_and(|target| target.is_absolute()) => refused(format!(
                    "{link} is an absolute symbolic link, which is not followed; use {}",
                    there.display()
                )),
                Ok(there) if is_hidden(there) => {
                    refused(format!("{link} is a symbolic link to a hidden file or folder"))
                }
                Ok(there) if there.components().count() > MAX_COMPONENTS => {
                    refused(format!("{link} is a symbolic link to a path that is too long"))
                }
                // A link that stays inside was followed: something after it is the reason.
                Ok(_) => None,
            },
            Err(error) if system::is_link_error(&error) => {
                refused(format!("{link} is a symbolic link to itself"))
            }
            Err(_) if at.read_link().ok()?.is_absolute() => {
                refused(format!("{link} is a broken symbolic link"))
            }
            Err(_) => Some(OpenError::NotFound { path: path.to_owned() }),
        };
    }
    None
}

#[cfg(unix)]
mod unix {
    //! Unix implementation: the system resolves names relative to an open folder.

    use std::ffi::OsStr;
    #[cfg(target_os = "linux")]
    use std::ffi::OsString;
    use std::fs::{File, Metadata};
    use std::io::{self, Read as _, Write as _};
    use std::os::fd::OwnedFd;
    #[cfg(target_os = "linux")]
    use std::path::PathBuf;
    use std::path::{Component, Path};

    use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat};
    use rustix::io::Errno;

    use super::Entry;
    #[cfg(target_os = "linux")]
    use super::MAX_COMPONENTS;

    pub type Handle = OwnedFd;

    /// `NONBLOCK` and `NOCTTY`: neither a pipe nor a terminal may block.
    const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);
    /// Without read permission: sufficient for metadata, and for resolving names.
    #[cfg(target_os = "linux")]
    const LOOKUP: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
    #[cfg(not(target_os = "linux"))]
    const LOOKUP: OFlags = READ;

    pub fn is_link_error(error: &io::Error) -> bool {
        error
            .raw_os_error()
            .is_some_and(|code| code == Errno::LOOP.raw_os_error() || code == Errno::XDEV.raw_os_error())
    }

    /// Returns whether the file is a socket, or a device without a driver.
    pub fn is_socket_error(error: &io::Error) -> bool {
        error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
    }

    pub fn open_folder(real: &Path) -> io::Result<Handle> {
        Ok(without_links(real, LOOKUP | OFlags::DIRECTORY)?)
    }

    pub fn open_listed(real: &Path) -> io::Result<File> {
        Ok(without_links(real, FOLDER)?.into())
    }

    pub fn open_real(real: &Path) -> io::Result<File> {
        Ok(without_links(real, READ)?.into())
    }

    pub fn replace(
        parent: &Path,
        name: &OsStr,
        (read, write): (&[u8], &[u8]),
        new: Option<&str>,
        prepared: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<bool> {
        let folder = without_links(parent, FOLDER)?;
        let mut present = File::from(openat(&folder, name, READ | OFlags::NOFOLLOW, Mode::empty())?);
        let metadata = present.metadata()?;
        if !metadata.is_file() || metadata.len() != read.len() as u64 {
            return Ok(false);
        }
        let mut content = Vec::with_capacity(read.len());
        (&mut present).take(metadata.len() + 1).read_to_end(&mut content)?;
        if content != read {
            return Ok(false);
        }
        let (new, file) = match new {
            Some(new) => {
                // Left by an interrupted replacement.
                let _ = unlinkat(&folder, new, AtFlags::empty());
                (new.to_owned(), openat(&folder, new, NEW, Mode::RUSR | Mode::WUSR)?)
            }
            None => create_temporary(&folder)?,
        };
        let written = (|| {
            let mut file = File::from(file);
            file.write_all(write)?;
            file.set_permissions(metadata.permissions())?;
            file.sync_all()?;
            prepared()?;
            io::Result::Ok(renameat(&folder, &new, &folder, name)?)
        })();
        if written.is_err() {
            let _ = unlinkat(&folder, &new, AtFlags::empty());
        }
        written.map(|()| true)
    }

    const NEW: OFlags = OFlags::WRONLY
        .union(OFlags::CREATE)
        .union(OFlags::EXCL)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);

    pub fn create_folder_in(folder: &Handle, name: &OsStr) -> io::Result<Handle> {
        match mkdirat(folder, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)
    }

    pub fn open_lock_in(folder: &Handle, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(openat(folder, name, flags | OFlags::NOCTTY, Mode::RUSR | Mode::WUSR)?.into())
    }

    pub fn write_in(folder: &Handle, name: &OsStr, content: &[u8]) -> io::Result<()> {
        let (new, file) = create_temporary(folder)?;
        let written = (|| {
            let mut file = File::from(file);
            file.write_all(content)?;
            file.sync_all()?;
            io::Result::Ok(renameat(folder, &new, folder, name)?)
        })();
        if written.is_err() {
            let _ = unlinkat(folder, &new, AtFlags::empty());
        }
        written
    }

    /// Removes the temporary files that processes left when they were killed. A process of another machine or container
    /// cannot be looked up, but a replacement takes milliseconds.
    fn remove_abandoned(folder: &OwnedFd) -> io::Result<()> {
        const ABANDONED_AFTER_SECONDS: i64 = 600;
        const ENDED_AFTER_SECONDS: i64 = 10;
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(process) = name.to_str().ok().and_then(process_of_temporary) else { continue };
            let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            let age = now - stat.st_mtime as i64;
            let is_abandoned =
                age > ABANDONED_AFTER_SECONDS || (age > ENDED_AFTER_SECONDS && has_ended(process));
            if is_file && is_abandoned {
                unlinkat(folder, name, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    /// Returns the process in a name that [`create_temporary`] gives a file.
    fn process_of_temporary(name: &str) -> Option<&str> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (process, attempt) = name.strip_prefix(".skills-tmp-")?.split_once('-')?;
        (is_number(process) && is_number(attempt)).then_some(process)
    }

    fn has_ended(process: &str) -> bool {
        use rustix::process::{Pid, test_kill_process};
        let process = process.parse().ok().and_then(Pid::from_raw);
        process.is_some_and(|process| test_kill_process(process) == Err(Errno::SRCH))
    }

    /// Creates a new file in a folder, and returns its name.
    fn create_temporary(folder: &OwnedFd) -> io::Result<(String, OwnedFd)> {
        const MAX_TRIES: u32 = 100;
        // What remains is removed by a later replacement.
        let _ = remove_abandoned(folder);
        for attempt in 0..MAX_TRIES {
            let name = format!(".skills-tmp-{}-{attempt}", std::process::id());
            match openat(folder, &name, NEW, Mode::RUSR | Mode::WUSR) {
                Ok(file) => return Ok((name, file)),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub fn open_inside(folder: &Handle, inside: &Path, is_folder: bool) -> io::Result<File> {
        Ok(open_at(folder, inside, if is_folder { FOLDER } else { READ })?.into())
    }

    pub fn stat_inside(folder: &Handle, inside: &Path) -> io::Result<Metadata> {
        File::from(open_at(folder, inside, LOOKUP)?).metadata()
    }

    pub fn entries(folder: File, _: &Path) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            let is_link = match entry.file_type() {
                FileType::Unknown => statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink),
                kind => kind == FileType::Symlink,
            };
            found.push(Entry { name: name.to_owned(), is_link });
        }
        Ok(found)
    }

    #[cfg(target_os = "linux")]
    fn open_at(folder: &Handle, inside: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        use rustix::fs::ResolveFlags;
        // The opened path has no links and was checked completely: a link swapped in since then is rejected.
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let open = |inside: &Path| resolved(folder, inside, flags, resolve);
        let opened = match open(inside) {
            Some(Err(Errno::LOOP)) => open(&link_target(folder, inside)?),
            opened => opened,
        };
        opened.unwrap_or_else(|| walk(folder, inside, flags))
    }

    /// Resolves the links of a path. The target must satisfy the same rules for hidden components as the path itself.
    #[cfg(target_os = "linux")]
    fn link_target(folder: &Handle, inside: &Path) -> Result<PathBuf, Errno> {
        use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
        /// The limit of the kernel (`path_resolution(7)`).
        const MAX_LINKS: usize = 40;
        let parts = |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
        let mut pending: Vec<OsString> = parts(inside);
        let (mut at, mut links) = (PathBuf::new(), 0);
        while let Some(name) = pending.pop() {
            match name.as_bytes() {
                b"." => continue,
                b".." if at.pop() => continue,
                // The root, a parent above the folder, or a hidden component.
                [b'/' | b'.', ..] => return Err(Errno::XDEV),
                _ => at.push(&name),
            }
            let target = match rustix::fs::readlinkat(folder, &at, Vec::new()) {
                Ok(target) => PathBuf::from(OsString::from_vec(target.into_bytes())),
                Err(Errno::INVAL) => continue,
                Err(error) => return Err(error),
            };
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP);
            }
            at.pop();
            pending.extend::<Vec<OsString>>(parts(&target));
            if at.components().count() + pending.len() > MAX_COMPONENTS {
                return Err(Errno::LOOP);
            }
        }
        Ok(if at.as_os_str().is_empty() { PathBuf::from(".") } else { at })
    }

    #[cfg(not(target_os = "linux"))]
    fn open_at(folder: &Handle, inside: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        walk(folder, inside, flags)
    }

    #[cfg(target_os = "linux")]
    fn without_links(real: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        use rustix::fs::{CWD, ResolveFlags};
        resolved(CWD, real, flags, ResolveFlags::NO_SYMLINKS).unwrap_or_else(|| walk_from_start(real, flags))
    }

    #[cfg(not(target_os = "linux"))]
    fn without_links(real: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        walk_from_start(real, flags)
    }

    /// Calls `openat2(2)`; returns `None` if the kernel is older than 5.6, or a container blocks the call.
    #[cfg(target_os = "linux")]
    fn resolved(
        folder: impl std::os::fd::AsFd,
        path: &Path,
        flags: OFlags,
        resolve: rustix::fs::ResolveFlags,
    ) -> Option<Result<OwnedFd, Errno>> {
        /// Maximum number of attempts for a resolution that a concurrent rename interrupts.
        const ATTEMPTS: usize = 16;
        let mut result = Err(Errno::AGAIN);
        for _ in 0..ATTEMPTS {
            result = rustix::fs::openat2(&folder, path, flags, Mode::empty(), resolve);
            if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        match result {
            Err(Errno::NOSYS | Errno::PERM) => None,
            result => Some(result),
        }
    }

    fn walk_from_start(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (start, rest) = match path.strip_prefix("/") {
            Ok(rest) => ("/", rest),
            Err(_) => (".", path),
        };
        let start = rustix::fs::open(start, LOOKUP | OFlags::DIRECTORY, Mode::empty())?;
        walk(&start, rest, flags)
    }

    /// Resolves one component at a time, without following links.
    pub(super) fn walk(folder: &Handle, inside: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut names = Vec::new();
        for part in inside.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                _ => return Err(Errno::XDEV),
            }
        }
        let Some((last, folders)) = names.split_last() else {
            return openat(folder, ".", flags, Mode::empty());
        };
        let mut at: Option<OwnedFd> = None;
        for name in folders {
            let step = LOOKUP | OFlags::DIRECTORY;
            at = Some(step_into(at.as_ref().unwrap_or(folder), name, step)?);
        }
        step_into(at.as_ref().unwrap_or(folder), last, flags)
    }

    fn step_into(folder: &OwnedFd, name: &std::ffi::OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        let opened = openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty());
        let is_link = |folder| {
            statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
        };
        match opened {
            // The error for a link depends on the flags and on the system.
            Err(Errno::NOTDIR | Errno::MLINK) if is_link(folder) => Err(Errno::LOOP),
            // With `O_PATH`, the handle is that of the link itself.
            Ok(fd) if flags.contains(LOOKUP) => {
                let stat = rustix::fs::fstat(&fd)?;
                if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
                    return Err(Errno::LOOP);
                }
                Ok(fd)
            }
            opened => opened,
        }
    }

    /// Returns whether a file is in a pseudo file system of the kernel: its content was never written by anyone, and
    /// may be about this process.
    #[cfg(target_os = "linux")]
    pub fn is_pseudo(file: &File) -> bool {
        /// Magic numbers of `statfs(2)`, from `linux/magic.h`.
        const PSEUDO: [u64; 16] = [
            0x9fa0,      // proc
            0x6265_6572, // sysfs
            0x6462_6720, // debugfs
            0x7472_6163, // tracefs
            0x0027_e0eb, // cgroup
            0x6367_7270, // cgroup2
            0x7363_6673, // securityfs
            0xf97c_ff8c, // selinuxfs
            0xcafe_4a11, // bpf
            0x1cd1,      // devpts
            0x6265_6570, // configfs
            0xde5e_81e4, // efivarfs
            0x6165_676c, // pstore
            0x4249_4e4d, // binfmt_misc
            0x1980_0202, // mqueue
            0x6573_5543, // fusectl
        ];
        rustix::fs::fstatfs(file).is_ok_and(|found| PSEUDO.contains(&(found.f_type as u64 & 0xffff_ffff)))
    }

    #[cfg(not(target_os = "linux"))]
    pub fn is_pseudo(_: &File) -> bool {
        false
    }
}

#[cfg(not(unix))]
mod elsewhere {
    //! Implementation for systems that cannot resolve names relative to an open folder: the real path is compared
    //! before it is opened.

    use std::fs::{File, Metadata};
    use std::io;
    use std::path::{Path, PathBuf};

    use super::Entry;

    pub type Handle = PathBuf;

    pub fn is_link_error(error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::PermissionDenied
    }

    pub fn is_socket_error(_: &io::Error) -> bool {
        false
    }

    pub fn open_folder(real: &Path) -> io::Result<Handle> {
        real.canonicalize()
    }

    pub fn open_real(real: &Path) -> io::Result<File> {
        File::open(real.canonicalize()?)
    }

    pub fn replace(
        parent: &Path,
        name: &OsStr,
        (read, write): (&[u8], &[u8]),
        new: Option<&str>,
        prepared: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<bool> {
        let real = parent.join(name);
        if std::fs::read(&real)? != read {
            return Ok(false);
        }
        let permissions = std::fs::metadata(&real)?.permissions();
        let own = || format!(".skills-tmp-{}", std::process::id());
        let new = parent.join(new.map_or_else(own, str::to_owned));
        std::fs::write(&new, write)?;
        std::fs::set_permissions(&new, permissions)?;
        prepared()?;
        std::fs::rename(&new, &real)?;
        Ok(true)
    }

    pub fn create_folder_in(folder: &Handle, name: &OsStr) -> io::Result<Handle> {
        let path = folder.join(name);
        crate::private_files::create_folder(&path)?;
        open_folder(&path)
    }

    pub fn open_lock_in(folder: &Handle, name: &OsStr) -> io::Result<File> {
        crate::private_files::open_append(&folder.join(name))
    }

    pub fn write_in(folder: &Handle, name: &OsStr, content: &[u8]) -> io::Result<()> {
        crate::private_files::replace(&folder.join(name), content)
    }

    pub fn open_inside(folder: &Handle, inside: &Path, is_folder: bool) -> io::Result<File> {
        let real = open_at(folder, inside)?;
        File::open(if is_folder { folder.clone() } else { real })
    }

    pub fn stat_inside(folder: &Handle, inside: &Path) -> io::Result<Metadata> {
        open_at(folder, inside)?.metadata()
    }

    fn open_at(folder: &Path, inside: &Path) -> io::Result<PathBuf> {
        let real = folder.join(inside).canonicalize()?;
        if real.starts_with(folder) { Ok(real) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    pub fn entries(_: File, path: &Path) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let is_link = entry.file_type()?.is_symlink();
            if let Ok(name) = entry.file_name().into_string() {
                found.push(Entry { name, is_link });
            }
        }
        Ok(found)
    }

    pub fn is_pseudo(_: &File) -> bool {
        false
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "what cannot be made has to fail the test")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn bundle() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("skill");
        fs::create_dir_all(root.join("references")).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        fs::write(root.join("references/rules.md"), "0123456789").unwrap();
        let folder = Folder::open(&root).unwrap();
        (dir, folder)
    }

    #[test]
    fn a_path_that_is_too_long_is_invalid() {
        let (_dir, folder) = bundle();
        for path in ["x".repeat(300), "x/".repeat(100_000) + "x"] {
            assert!(matches!(folder.read(&path, 100), Err(OpenError::NotInside { .. })));
        }
    }

    #[test]
    fn a_replacement_removes_what_a_killed_process_left() {
        let (_dir, folder) = bundle();
        let root = folder.path();
        let before = |seconds| std::time::SystemTime::now() - std::time::Duration::from_secs(seconds);
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let of_ended = &*format!(".skills-tmp-{}-0", ended.id());
        let in_use = &*format!(".skills-tmp-{}-1", ended.id());
        let of_running = &*format!(".skills-tmp-{}-7", std::process::id());
        for (name, age) in [
            (".skills-tmp-1-0", 3_600),
            (of_running, 60),
            (of_ended, 60),
            (in_use, 0),
            (".skills-2024-11", 3_600),
            (".skills-tmp-1-x", 3_600),
        ] {
            fs::File::create(root.join(name)).unwrap().set_modified(before(age)).unwrap();
        }
        fs::write(root.join("SKILL.md"), "old").unwrap();
        assert!(replace_file(&root.join("SKILL.md"), b"old", b"new").unwrap());
        assert_eq!(fs::read(root.join("SKILL.md")).unwrap(), b"new");
        let is_there = |name: &str| root.join(name).exists();
        assert!(!is_there(".skills-tmp-1-0") && !is_there(of_ended), "abandoned");
        assert!(is_there(in_use), "maybe of a process in another container");
        assert!(is_there(of_running) && is_there(".skills-2024-11") && is_there(".skills-tmp-1-x"));
    }

    #[test]
    fn links_inside_the_folder_are_followed() {
        let (_dir, folder) = bundle();
        symlink("references/rules.md", folder.path().join("rules")).unwrap();
        #[cfg(target_os = "linux")]
        assert_eq!(folder.read("rules", 100).unwrap(), b"0123456789");
        let refused = unix::walk(&folder.handle, Path::new("rules"), rustix::fs::OFlags::RDONLY);
        assert_eq!(refused.unwrap_err(), rustix::io::Errno::LOOP);
        assert!(
            unix::walk(&folder.handle, Path::new("references/rules.md"), rustix::fs::OFlags::RDONLY).is_ok()
        );
    }

    #[test]
    fn walk_without_openat2_follows_no_link() {
        let (dir, folder) = bundle();
        symlink(dir.path(), folder.path().join("up")).unwrap();
        for path in ["up", "up/secret", "../secret", "/etc/hostname"] {
            let refused = unix::walk(&folder.handle, Path::new(path), rustix::fs::OFlags::RDONLY);
            let error = io::Error::from(refused.unwrap_err());
            assert!(unix::is_link_error(&error), "{path}: {error}");
        }
    }

    #[test]
    fn no_path_escapes_the_folder() {
        let (dir, folder) = bundle();
        let root = folder.path().to_owned();
        symlink(dir.path().join("secret"), root.join("absolute")).unwrap();
        symlink("../secret", root.join("upwards")).unwrap();
        symlink("..", root.join("parent")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        fs::write(root.join(".hidden"), "x").unwrap();
        for path in [
            "../secret",
            "/etc/passwd",
            "references/../../secret",
            "absolute",
            "upwards",
            "parent/secret",
            "loop",
            ".hidden",
            "references/.x",
            "",
            "a\0b",
        ] {
            let refusal = folder.read(path, 100).unwrap_err();
            assert!(refusal.is_escape(), "{path}: {refusal}");
            assert!(!refusal.to_string().contains(dir.path().to_str().unwrap()), "{refusal}");
        }
        for path in ["references/none.md", "references/rules.md/x"] {
            assert!(matches!(folder.read(path, 100), Err(OpenError::NotFound { .. })), "{path}");
        }
        assert!(matches!(folder.read("references", 100), Err(OpenError::NotRegular { .. })));
        assert!(matches!(folder.read("references/rules.md", 9), Err(OpenError::TooLarge { .. })));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn links_to_hidden_files_are_rejected() {
        let (_dir, folder) = bundle();
        let root = folder.path().to_owned();
        fs::create_dir_all(root.join(".git/deep")).unwrap();
        fs::write(root.join(".env"), "KEY=1").unwrap();
        fs::write(root.join(".git/deep/config"), "x").unwrap();
        symlink("../.env", root.join("references/env")).unwrap();
        symlink("references/env", root.join("twice")).unwrap();
        symlink(".git/deep", root.join("history")).unwrap();
        for path in ["references/env", "twice", "history/config"] {
            let refusal = folder.read(path, 100).unwrap_err();
            assert!(matches!(refusal, OpenError::Link { .. }), "{path}: {refusal}");
            assert!(folder.metadata(path).is_err(), "{path} is not listed either");
        }
        assert!(folder.entries("history").is_err());
        symlink("../references", root.join("references/self")).unwrap();
        assert_eq!(folder.read("references/self/./self/rules.md", 100).unwrap(), b"0123456789");
        assert!(
            folder.metadata("references/self/none").is_err_and(|e| matches!(e, OpenError::NotFound { .. }))
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn links_to_deep_files_are_rejected() {
        let (_dir, folder) = bundle();
        let root = folder.path().to_owned();
        let path = |levels: usize| "d/".repeat(levels) + "x";
        let (allowed, deep) = (path(MAX_COMPONENTS - 2), path(MAX_COMPONENTS));
        fs::create_dir_all(root.join(&deep).parent().unwrap()).unwrap();
        fs::write(root.join(&allowed), "near").unwrap();
        fs::write(root.join(&deep), "far").unwrap();
        for (path, link) in [(&*allowed, "near"), (&*deep, "far"), ("far", "chain")] {
            symlink(path, root.join(link)).unwrap();
        }
        assert_eq!(folder.read("near", 100).unwrap(), b"near");
        assert!(folder.metadata(&allowed).unwrap().is_file());
        for path in ["far", "chain"] {
            let refusal = folder.read(path, 100).unwrap_err();
            let why = format!("{path}: {path} is a symbolic link to a path that is too long");
            assert_eq!(refusal.to_string(), why);
            assert!(folder.metadata(path).is_err(), "{path} is not listed either");
        }
        assert!(matches!(folder.read(&deep, 100), Err(OpenError::NotInside { why: "is too long", .. })));
    }

    #[test]
    fn named_link_is_followed_only_inside_its_folder() {
        let (dir, folder) = bundle();
        let root = folder.path().to_owned();
        let rules = root.join("references/rules.md");
        symlink("references/rules.md", root.join("inside")).unwrap();
        symlink("../secret", root.join("outside")).unwrap();
        symlink(dir.path(), root.join("parent")).unwrap();
        symlink("none", root.join("broken")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(resolve_named(&rules).unwrap(), rules);
        assert_eq!(resolve_named(&root.join("inside")).unwrap(), rules);
        for name in ["outside", "parent", "broken", "loop"] {
            let refusal = resolve_named(&root.join(name)).unwrap_err();
            assert!(matches!(refusal, OpenError::Link { .. }), "{name}: {refusal}");
        }
        let above = resolve_named(&root.join("parent/secret")).unwrap();
        assert_eq!(above, dir.path().canonicalize().unwrap().join("secret"), "links above are the user's");
        assert!(matches!(resolve_named(&root.join("gone")), Err(OpenError::NotFound { .. })));
        assert_eq!(resolve_named(&root.join("references/..")).unwrap(), root);
    }

    #[test]
    fn a_folder_swapped_for_a_link_is_refused() {
        let (dir, folder) = bundle();
        let root = folder.path().to_owned();
        fs::rename(&root, dir.path().join("kept")).unwrap();
        symlink("/etc", &root).unwrap();
        assert!(unix::is_link_error(&Folder::open(&root).unwrap_err()));
        assert!(open_file(&root.join("hostname")).unwrap_err().is_escape());
        assert_eq!(folder.read("references/rules.md", 100).unwrap(), b"0123456789", "it is open still");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pseudo_file_systems_are_refused() {
        let proc = Folder::open(Path::new("/proc")).unwrap();
        assert!(matches!(proc.read("version", 1000), Err(OpenError::PseudoFileSystem { .. })));
        assert!(matches!(open_file(Path::new("/proc/version")), Err(OpenError::PseudoFileSystem { .. })));
    }

    #[test]
    fn entries_distinguish_links() {
        let (_dir, folder) = bundle();
        symlink("references/rules.md", folder.path().join("rules")).unwrap();
        let mut found: Vec<(String, bool)> =
            folder.entries("").unwrap().into_iter().map(|entry| (entry.name, entry.is_link)).collect();
        found.sort();
        assert_eq!(found, [("references".to_owned(), false), ("rules".to_owned(), true)]);
        assert_eq!(folder.entries("references").unwrap().len(), 1);
        assert!(folder.metadata("references").unwrap().is_dir() && folder.metadata("").unwrap().is_dir());
    }
}
