//! A cache on disk: one file, replaced whole and atomically, dropped when it is damaged or of
//! another version. What it holds can always be made again.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::skill::Digest;

/// Where one kind of content is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheFile {
    path: PathBuf,
    kind: &'static str,
    version: u32,
}

/// What became of a cache at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Its content.
    Content(Vec<u8>),
    /// There is none yet.
    Nothing,
    /// It is there and cannot be used; why.
    Unusable(String),
}

impl CacheFile {
    /// A cache of a kind and version at a path.
    pub fn new(path: PathBuf, kind: &'static str, version: u32) -> Self {
        Self { path, kind, version }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn head(&self) -> Vec<u8> {
        // The program's version is part of it: what is derived may differ between two releases.
        format!("skill-workbench {} {} {}\n", self.kind, self.version, env!("CARGO_PKG_VERSION")).into_bytes()
    }

    /// Reads it whole.
    pub fn read(&self) -> Found {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return Found::Unusable(error.to_string()),
        };
        let Some(rest) = bytes.strip_prefix(self.head().as_slice()) else {
            return Found::Unusable("another version wrote it".to_owned());
        };
        let Some((sum, content)) = rest.split_at_checked(64) else {
            return Found::Unusable("it is cut off".to_owned());
        };
        if Digest::of(content).to_string().as_bytes() != sum {
            return Found::Unusable("it is damaged".to_owned());
        }
        Found::Content(content.to_vec())
    }

    /// Replaces it: a reader sees the old or the new one, never a half.
    pub fn write(&self, content: &[u8]) -> io::Result<()> {
        let folder = self.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&self.head())?;
        file.write_all(Digest::of(content).to_string().as_bytes())?;
        file.write_all(content)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(dir: &tempfile::TempDir, version: u32) -> CacheFile {
        CacheFile::new(dir.path().join("deep/x.bin"), "x", version)
    }

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(cache(&dir, 1).read(), Found::Nothing);
        cache(&dir, 1).write(b"content").unwrap();
        assert_eq!(cache(&dir, 1).read(), Found::Content(b"content".to_vec()));
    }

    #[test]
    fn another_version_a_cut_and_a_flipped_bit_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let file = cache(&dir, 1);
        file.write(b"content").unwrap();
        assert_eq!(cache(&dir, 2).read(), Found::Unusable("another version wrote it".to_owned()));
        let whole = fs::read(file.path()).unwrap();
        fs::write(file.path(), &whole[..whole.len() - 1]).unwrap();
        assert_eq!(file.read(), Found::Unusable("it is damaged".to_owned()));
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(file.path(), &flipped).unwrap();
        assert_eq!(file.read(), Found::Unusable("it is damaged".to_owned()));
        fs::write(file.path(), &whole[..40.min(whole.len())]).unwrap();
        assert!(matches!(file.read(), Found::Unusable(_)));
    }
}
