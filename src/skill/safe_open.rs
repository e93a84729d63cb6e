//! Opens files of bundles: regular files alone, and never more of them than a limit.
//!
//! A bundle comes from elsewhere. A FIFO under the name of a file would be waited for without end, a device
//! read without end; so both are turned away, also when they take the file's place at the last moment.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file (links are followed), without ever waiting for it.
///
/// # Errors
/// `InvalidInput` for anything but a regular file; the system's words otherwise.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    // Looked at before it is opened: opening some devices does something already.
    only_regular(&path.metadata()?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // What is there may have changed meanwhile; without this flag a FIFO would block.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    only_regular(&metadata)?;
    Ok((file, metadata))
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// As [`open_regular`], and `FileTooLarge`.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let (file, metadata) = open_regular(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(limit)).unwrap_or(0));
    // The size may be no longer true, so the reading itself has the limit.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("the file has more than {limit} bytes"),
        ));
    }
    Ok(bytes)
}

/// As [`read_regular`], for UTF-8.
///
/// # Errors
/// As [`read_regular`], and `InvalidData`.
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
    fn only_regular_files_are_read_and_nothing_is_waited_for() {
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
