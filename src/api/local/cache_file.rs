//! A cache on disk: one file, replaced as a whole and atomically, discarded if it is damaged or of another version. Its
//! content can always be recomputed.

use std::fs;
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use skills_base::blocks::FileFrom;
use skills_base::files::{open_regular, read_regular};
use skills_base::private_files;
use skills_skill::Digest;

/// A file with one kind of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheFile {
    path: PathBuf,
    kind: &'static str,
    build: String,
}

const ANOTHER_BUILD: &str = "it was written by another build of this program";

/// The result of reading a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheRead {
    Content(Vec<u8>),
    /// There is none yet.
    Nothing,
    /// It exists and cannot be used, for this reason.
    Unusable(String),
}

impl CacheFile {
    /// Creates a cache of a kind at a path, valid only for the build that wrote it: another build may derive other
    /// content.
    pub fn new(path: PathBuf, kind: &'static str, build: impl Into<String>) -> Self {
        Self { path, kind, build: build.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn head(&self) -> Vec<u8> {
        format!("skill-workbench {} {}\n", self.kind, self.build.replace('\n', " ")).into_bytes()
    }

    /// Reads the complete content.
    pub fn read(&self) -> CacheRead {
        let bytes = match read_regular(&self.path, u64::MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return CacheRead::Nothing,
            Err(error) => return CacheRead::Unusable(error.to_string()),
        };
        let head = self.head();
        let Some(rest) = bytes.strip_prefix(head.as_slice()) else {
            return CacheRead::Unusable(ANOTHER_BUILD.to_owned());
        };
        let Some((sum, content)) = rest.split_at_checked(64) else {
            return CacheRead::Unusable("truncated".to_owned());
        };
        if Digest::of(content).to_string().as_bytes() != sum {
            return CacheRead::Unusable("damaged".to_owned());
        }
        let mut bytes = bytes;
        bytes.drain(..head.len() + 64);
        CacheRead::Content(bytes)
    }

    /// Opens a cache with self-checking content, to be read in pieces; `None` if there is no file.
    ///
    /// # Errors
    /// Returns why it cannot be used.
    pub fn open(&self) -> Result<Option<FileFrom>, String> {
        let file = match open_regular(&self.path) {
            Ok((file, _)) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let head = self.head();
        let mut found = vec![0; head.len()];
        match (&file).read_exact(&mut found) {
            Ok(()) if found == head => Ok(Some(FileFrom::new(file, head.len() as u64))),
            Ok(()) => Err(ANOTHER_BUILD.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(ANOTHER_BUILD.to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Replaces it with what `content` writes, which must be self-checking: a reader sees the old or the new content,
    /// never a part. It is left unchanged if `content` returns `None`.
    pub fn write_with<T>(
        &self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<Option<T>>,
    ) -> io::Result<Option<T>> {
        let folder = self.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        private_files::create_folder(folder)?;
        let file = tempfile::NamedTempFile::new_in(folder)?;
        let mut out = BufWriter::with_capacity(64 * 1024, file);
        out.write_all(&self.head())?;
        let Some(written) = content(&mut out)? else { return Ok(None) };
        out.into_inner().map_err(io::IntoInnerError::into_error)?.persist(&self.path)?;
        Ok(Some(written))
    }

    pub fn remove(&self) {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, path = %self.path.display(), "a cache cannot be removed");
            }
            _ => {}
        }
    }

    /// Replaces it: a reader sees the old or the new content, never a part.
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

    #[cfg(unix)]
    #[test]
    fn pipe_as_cache_file_is_unusable_and_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(&folder, "a");
        fs::create_dir_all(cache.path().parent().unwrap()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(cache.path()).status().unwrap();
        assert!(made.success());
        assert!(matches!(cache.read(), CacheRead::Unusable(_)));
        assert!(cache.open().is_err());
    }

    #[test]
    fn written_content_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(cache(&dir, "a").read(), CacheRead::Nothing);
        cache(&dir, "a").write(b"content").unwrap();
        assert_eq!(cache(&dir, "a").read(), CacheRead::Content(b"content".to_vec()));
    }

    #[test]
    fn cache_of_another_build_and_damaged_cache_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let file = cache(&dir, "a");
        file.write(b"content").unwrap();
        assert_eq!(
            cache(&dir, "b").read(),
            CacheRead::Unusable("it was written by another build of this program".to_owned())
        );
        let intact = fs::read(file.path()).unwrap();
        fs::write(file.path(), &intact[..intact.len() - 1]).unwrap();
        assert_eq!(file.read(), CacheRead::Unusable("damaged".to_owned()));
        let mut flipped = intact.clone();
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(file.path(), &flipped).unwrap();
        assert_eq!(file.read(), CacheRead::Unusable("damaged".to_owned()));
        fs::write(file.path(), &intact[..40.min(intact.len())]).unwrap();
        assert!(matches!(file.read(), CacheRead::Unusable(_)));
    }
}
