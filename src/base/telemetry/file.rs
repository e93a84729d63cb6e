//! The log file: appended to, and renamed to `….old` when it reaches a size.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

use crate::private_files;
use crate::sync::MutexExt as _;

/// Size in bytes at which a file is rotated. One older file is kept.
const LIMIT: u64 = 1 << 20;

/// A log file to which several threads write complete records.
#[derive(Debug, Clone)]
pub struct LogFile(Arc<Mutex<OpenLog>>);

#[derive(Debug)]
struct OpenLog {
    path: PathBuf,
    file: File,
    bytes: u64,
    limit: u64,
}

impl LogFile {
    /// Opens the file, creating it and its parent folders if they are missing.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::with_limit(path, LIMIT)
    }

    fn with_limit(path: &Path, limit: u64) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            private_files::create_folder(folder)?;
        }
        let file = append(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self(Arc::new(Mutex::new(OpenLog { path: path.to_owned(), file, bytes, limit }))))
    }
}

fn append(path: &Path) -> io::Result<File> {
    private_files::open_append(path)
}

impl Write for &LogFile {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let mut open = self.0.locked();
        if open.bytes > 0 && open.bytes + record.len() as u64 > open.limit {
            let mut old = open.path.clone().into_os_string();
            old.push(".old");
            fs::rename(&open.path, old)?;
            open.file = append(&open.path)?;
            open.bytes = 0;
        }
        open.file.write_all(record)?;
        open.bytes += record.len() as u64;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.locked().file.flush()
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = &'a LogFile;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_log_file_is_rotated_and_one_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/skills.log");
        let log = LogFile::with_limit(&path, 20).unwrap();
        for n in 0..7 {
            writeln!(&log, "record {n}").unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "record 6\n");
        assert_eq!(
            fs::read_to_string(dir.path().join("state/skills.log.old")).unwrap(),
            "record 4\nrecord 5\n"
        );
        assert_eq!(fs::read_dir(dir.path().join("state")).unwrap().count(), 2);
        drop(log);
        writeln!(&LogFile::with_limit(&path, 20).unwrap(), "next start").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "record 6\nnext start\n");
    }
}
