//! Files and folders that only their owner can read, regardless of the umask.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Mode of files with private content.
pub const FILE_MODE: u32 = 0o600;
/// Mode of folders that this program creates.
pub const FOLDER_MODE: u32 = 0o700;

/// Creates a folder and its missing parents, each accessible only to its owner. An existing folder stays unchanged.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_folder(parent)?;
    }
    match create_one(folder) {
        // Another process created it first, or the path ends in `..`.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        created => created,
    }
}

#[cfg(unix)]
fn create_one(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().mode(FOLDER_MODE).create(folder)?;
    // A umask can only remove permissions, but also those of the owner.
    set_mode(folder, FOLDER_MODE)
}

#[cfg(not(unix))]
fn create_one(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)
}

/// Creates an empty file with exactly these permissions; returns false if the name already exists.
pub fn create_file(file: &Path, mode: u32) -> io::Result<bool> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // Never more permissions than requested, even before they are set.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode & FILE_MODE);
    match options.open(file) {
        Ok(_) => set_mode(file, mode).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a file for appending and reading, creating it if it is missing, and removes the permissions of other users
/// from an existing one.
pub fn open_append(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
    // Opening a FIFO for reading and writing does not block; reading it would. Devices such as `/dev/null` are allowed.
    let opened = options.open(file)?;
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_fifo(&opened.metadata()?.file_type()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe, not a regular file"));
    }
    if let Err(error) = restrict(file, FILE_MODE) {
        // A file of another account can still be appended to.
        tracing::debug!("cannot change the permissions of {}: {error}", file.display());
    }
    Ok(opened)
}

/// Replaces a file's content atomically; only the owner may read it.
///
/// # Errors
/// Returns an error of the system; the file is then unchanged.
pub fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folder(folder)?;
    // Temporary files of the `tempfile` crate are readable only by their owner.
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(content)?;
    draft.as_file().sync_all()?;
    draft.persist(file).map(drop).map_err(|error| error.error)
}

/// Returns the permissions of a file or folder beyond `mode`, if any: `0o644` with mode `0o600` gives `0o044`.
#[cfg(unix)]
pub fn excess(path: &Path, mode: u32) -> io::Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt as _;
    let present = fs::metadata(path)?.permissions().mode() & 0o777;
    Ok(Some(present & !mode).filter(|excess| *excess != 0))
}

/// Returns `None`: this system has no such permissions.
#[cfg(not(unix))]
pub fn excess(_: &Path, _: u32) -> io::Result<Option<u32>> {
    Ok(None)
}

/// Removes permissions beyond `mode` from a file or folder; a missing one is not an error; links and devices are
/// skipped.
pub fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => Ok(()),
        Ok(_) => match excess(path, mode)? {
            Some(excess) => remove_bits(path, excess),
            None => Ok(()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn remove_bits(path: &Path, bits: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
    set_mode(path, mode & !bits)
}

#[cfg(not(unix))]
fn remove_bits(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

/// Sets exactly these permissions on a file or folder.
#[cfg(unix)]
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Does nothing: this system has no such permissions.
#[cfg(not(unix))]
pub fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn created_folders_and_files_are_private() {
        let dir = tempfile::tempdir().unwrap();
        set_mode(dir.path(), 0o755).unwrap();
        let deep = dir.path().join("a/b");
        create_folder(&deep).unwrap();
        assert_eq!((mode(dir.path()), mode(&dir.path().join("a")), mode(&deep)), (0o755, 0o700, 0o700));
        set_mode(&deep, 0o755).unwrap();
        create_folder(&deep).unwrap();
        assert_eq!(mode(&deep), 0o755, "a folder that exists stays as it is");
        let shared = deep.join("shared");
        assert!(create_file(&shared, 0o660).unwrap());
        assert!(!create_file(&shared, 0o600).unwrap());
        assert_eq!(mode(&shared), 0o660);
        replace(&shared, b"new").unwrap();
        assert_eq!((mode(&shared), fs::read(&shared).unwrap()), (0o600, b"new".to_vec()));
    }

    #[test]
    fn an_existing_file_is_restricted_and_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        fs::write(&file, "x").unwrap();
        set_mode(&file, 0o644).unwrap();
        assert_eq!(excess(&file, 0o600).unwrap(), Some(0o044));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        restrict(&link, 0o600).unwrap();
        assert_eq!(mode(&file), 0o644);
        drop(open_append(&file).unwrap());
        assert_eq!(mode(&file), 0o600);
        restrict(&dir.path().join("absent"), 0o600).unwrap();
    }

    #[test]
    fn a_pipe_is_not_opened_for_appending() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(open_append(&pipe).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let device = Path::new("/dev/null");
        let before = mode(device);
        drop(open_append(device).unwrap());
        assert_eq!(mode(device), before);
    }
}
