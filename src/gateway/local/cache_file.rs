//! A cache on disk: one file, replaced whole and atomically, dropped when it is damaged or of
//! another version. What it holds can always be made again.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::private_files;
use crate::skill::Digest;

/// Where one kind of content is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheFile {
    path: PathBuf,
    kind: &'static str,
    build: String,
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
    /// A cache of a kind at a path, as good as the build that wrote it: another build may derive other content.
    pub fn new(path: PathBuf, kind: &'static str, build: impl Into<String>) -> Self {
        Self { path, kind, build: build.into() }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn head(&self) -> Vec<u8> {
        format!("skill-workbench {} {}\n", self.kind, self.build.replace('\n', " ")).into_bytes()
    }

    /// Reads it whole.
    pub fn read(&self) -> Found {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return Found::Unusable(error.to_string()),
        };
        let Some(rest) = bytes.strip_prefix(self.head().as_slice()) else {
            return Found::Unusable("another build of this program wrote it".to_owned());
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
        private_files::create_folder(folder)?;
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

    fn cache(dir: &tempfile::TempDir, build: &str) -> CacheFile {
        CacheFile::new(dir.path().join("deep/x.bin"), "x", build)
    }

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(cache(&dir, "a").read(), Found::Nothing);
        cache(&dir, "a").write(b"content").unwrap();
        assert_eq!(cache(&dir, "a").read(), Found::Content(b"content".to_vec()));
    }

    #[test]
    fn another_build_a_cut_and_a_flipped_bit_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let file = cache(&dir, "a");
        file.write(b"content").unwrap();
        assert_eq!(
            cache(&dir, "b").read(),
            Found::Unusable("another build of this program wrote it".to_owned())
        );
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
