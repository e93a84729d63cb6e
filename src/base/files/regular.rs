//! Opens only regular files, and reads at most a given number of bytes.
//!
//! Files of bundles are untrusted, and others may replace those of the user. Opening a FIFO in place of a file would
//! block forever, and reading a device would never end, so both are rejected, even if they replace the file at the last
//! moment.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Replaces a file that others may read, or creates it. A link is replaced, not followed: a repository may contain one. The
/// permissions of an existing file stay; a device, such as `/dev/stdout`, is written.
///
/// # Errors
/// Returns an error of the system; the file is then unchanged.
pub fn replace_shared(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.starts_with("/dev") {
        return OpenOptions::new().write(true).open(path)?.write_all(content);
    }
    let found = path.symlink_metadata().ok();
    if let Some(found) = found.as_ref().filter(|found| !found.is_symlink()) {
        only_regular(found)?;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut options = tempfile::Builder::new();
    #[cfg(unix)]
    options.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut draft = options.tempfile_in(folder)?;
    draft.write_all(content)?;
    if let Some(found) = found.filter(Metadata::is_file) {
        draft.as_file().set_permissions(found.permissions())?;
    }
    draft.as_file().sync_all()?;
    draft.persist(path).map(drop).map_err(|error| error.error)
}

/// Opens a regular file, following links, without ever blocking.
///
/// # Errors
/// Returns `InvalidInput` for anything but a regular file, otherwise an error of the system.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    // Checked before it is opened: opening some devices already has effects.
    only_regular(&path.metadata()?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // The file may have been replaced since; without this flag a FIFO would block.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    only_regular(&metadata)?;
    Ok((file, metadata))
}

/// Reads a regular file of at most `limit` bytes.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let (file, metadata) = open_regular(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(limit)).unwrap_or(0));
    // The size may be outdated, so the read itself is limited.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("the file has more than {limit} bytes"),
        ));
    }
    Ok(bytes)
}

/// Reads a UTF-8 file like [`read_regular`].
pub fn read_regular_text(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = read_regular(path, limit)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

fn only_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = if metadata.is_dir() { "a folder" } else { "a pipe, socket or device" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file")))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    #[test]
    fn only_regular_files_are_read_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        symlink("fifo", at("link")).unwrap();
        for name in ["fifo", "socket", "folder", "zero", "link"] {
            let error = read_regular(&at(name), 10).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
            assert!(error.to_string().contains("not a regular file"), "{error}");
        }
        fs::write(at("file"), "0123456789").unwrap();
        symlink("file", at("good")).unwrap();
        assert_eq!(read_regular(&at("good"), 10).unwrap(), b"0123456789");
        assert_eq!(read_regular(&at("file"), 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
