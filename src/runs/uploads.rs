//! Artifacts that callers upload: how much of them may be stored, and when they are deleted. Files that runs produce
//! are not limited here: they end with what their scripts may write.
//!
//! `uploads/OWNER/DIGEST.BYTES` in the artifact folder records that a caller stored some content, and when.
//! `DIGEST.upload` next to the content states that no run produced it, so that it can be deleted.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use super::Artifact;
use super::artifacts::Artifacts;
use skills_base::sync::MutexExt as _;
use skills_base::{hex, private_files};

/// How long uploaded content is stored after the last upload, unless a run refers to it.
pub const UPLOADS_KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

const FOLDER: &str = "uploads";

/// Number and size of uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UploadedBytes {
    /// Number of files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl UploadedBytes {
    fn with(self, bytes: u64) -> Self {
        Self { files: self.files.saturating_add(1), bytes: self.bytes.saturating_add(bytes) }
    }

    fn exceeds(self, limit: Self) -> bool {
        self.files > limit.files || self.bytes > limit.bytes
    }
}

/// How much callers may store.
#[derive(Debug, Clone, Copy)]
pub struct UploadLimits {
    /// Uploads of one caller.
    pub each: UploadedBytes,
    /// Uploads of all callers.
    pub total: UploadedBytes,
}

impl UploadLimits {
    pub const SERVICE: Self = Self {
        each: UploadedBytes { files: 10_000, bytes: 1 << 30 },
        total: UploadedBytes { files: 50_000, bytes: 8 << 30 },
    };
}

/// Why content was not stored.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// A limit would be exceeded.
    #[error("{whose} has {} files with {} bytes; the limit is {} files and {} bytes", .stored.files, .stored.bytes, .limit.files, .limit.bytes)]
    Full {
        /// Who has uploaded that much.
        whose: &'static str,
        stored: UploadedBytes,
        limit: UploadedBytes,
    },
    /// The content cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The uploads by owner, once they were counted.
#[derive(Debug, Default)]
struct Usage {
    by_owner: Option<BTreeMap<String, UploadedBytes>>,
}

/// The uploads in an artifact folder. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Uploads(Arc<Mutex<Usage>>);

/// Exclusive access to the records within this process.
pub(super) struct UploadsGuard<'a>(MutexGuard<'a, Usage>);

impl Uploads {
    pub fn lock(&self) -> UploadsGuard<'_> {
        UploadsGuard(self.0.locked())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// SHA-256 of the content.
    pub digest: String,
    record: PathBuf,
}

/// Returns the uploads of all owners in a folder, with their sizes.
fn records(folder: &Path) -> io::Result<Vec<(String, Upload, u64)>> {
    let mut all = Vec::new();
    let owners = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(all),
        owners => owners?,
    };
    for owner in owners {
        let owner = owner?;
        if !owner.file_type()?.is_dir() {
            continue;
        }
        let name = owner.file_name().to_string_lossy().into_owned();
        for record in fs::read_dir(owner.path())? {
            let record = record?;
            let file = record.file_name().to_string_lossy().into_owned();
            let Some((digest, bytes)) = file.split_once('.') else { continue };
            let Ok(bytes) = bytes.parse() else { continue };
            all.push((name.clone(), Upload { digest: digest.to_owned(), record: record.path() }, bytes));
        }
    }
    Ok(all)
}

fn remove(file: &Path) -> io::Result<bool> {
    match fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Artifacts {
    /// Stores content that a caller uploads, if the limits permit it. Content that the caller has stored before is not
    /// counted again.
    ///
    /// # Errors
    /// Returns [`UploadError::Full`], or an error if writing fails; nothing is stored then.
    pub fn upload(
        &self,
        name: &str,
        content: &[u8],
        by: &str,
        limits: &UploadLimits,
    ) -> Result<Artifact, UploadError> {
        // The name of a caller can contain any character.
        let owner = hex::encode(&Sha256::digest(by.as_bytes())[..16]);
        let digest = hex::encode(&Sha256::digest(content));
        let bytes = content.len() as u64;
        let folder = self.folder().join(FOLDER);
        let record = folder.join(&owner).join(format!("{digest}.{bytes}"));
        let mut guard = self.uploads().lock();
        let is_new = !record.is_file();
        if is_new {
            let by_owner = if let Some(by_owner) = guard.0.by_owner.take() {
                by_owner
            } else {
                let mut by_owner: BTreeMap<String, UploadedBytes> = BTreeMap::new();
                for (owner, _, bytes) in records(&folder)? {
                    let sum = by_owner.entry(owner).or_default();
                    *sum = sum.with(bytes);
                }
                by_owner
            };
            let by_owner = guard.0.by_owner.insert(by_owner);
            let own = by_owner.get(&owner).copied().unwrap_or_default();
            let total = by_owner.values().fold(UploadedBytes::default(), |sum, one| UploadedBytes {
                files: sum.files.saturating_add(one.files),
                bytes: sum.bytes.saturating_add(one.bytes),
            });
            for (whose, stored, limit) in
                [("the caller", own, limits.each), ("the service", total, limits.total)]
            {
                if stored.with(bytes).exceeds(limit) {
                    return Err(UploadError::Full { whose, stored, limit });
                }
            }
        }
        private_files::create_folder(&folder)?;
        private_files::create_folder(&folder.join(&owner))?;
        private_files::create_file(&record, private_files::FILE_MODE)?;
        File::options().write(true).open(&record)?.set_modified(SystemTime::now())?;
        let stored = self
            .mark_upload(&digest)
            .and_then(|()| self.store(name, &mut &*content, |digest| self.publish(digest)));
        match (&stored, is_new, &mut guard.0.by_owner) {
            (Ok(_), true, Some(by_owner)) => {
                let sum = by_owner.entry(owner).or_default();
                *sum = sum.with(bytes);
            }
            (Err(_), true, _) => drop(remove(&record)),
            _ => {}
        }
        Ok(stored?)
    }

    /// Returns the uploads that are older than `age`.
    pub fn expired_uploads(&self, age: Duration) -> io::Result<Vec<Upload>> {
        let all = records(&self.folder().join(FOLDER))?;
        Ok(all.into_iter().map(|(_, upload, _)| upload).filter(|upload| upload.is_expired(age)).collect())
    }

    /// Deletes an upload that is older than `age`, with its content, unless others have uploaded that too or a run has
    /// produced it; returns whether the content was deleted.
    pub fn delete_upload(&self, upload: &Upload, age: Duration) -> io::Result<bool> {
        let mut guard = self.uploads().lock();
        // It may have been uploaded again.
        if !upload.is_expired(age) {
            return Ok(false);
        }
        // Counted again with the next upload, with those of other processes.
        guard.0.by_owner = None;
        remove(&upload.record)?;
        if let Some(owner) = upload.record.parent() {
            let _ = fs::remove_dir(owner); // only if it is empty
        }
        if let Some(name) = upload.record.file_name() {
            for owner in fs::read_dir(self.folder().join(FOLDER))? {
                if owner?.path().join(name).is_file() {
                    return Ok(false);
                }
            }
        }
        self.delete_unproduced(&upload.digest)
    }

    /// Stores an upload for the same time again.
    pub fn renew_upload(&self, upload: &Upload) -> io::Result<()> {
        File::options().write(true).open(&upload.record)?.set_modified(SystemTime::now())
    }
}

impl Upload {
    fn is_expired(&self, age: Duration) -> bool {
        let modified = fs::metadata(&self.record).and_then(|data| data.modified());
        modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|elapsed| elapsed >= age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: UploadLimits = UploadLimits {
        each: UploadedBytes { files: 3, bytes: 100 },
        total: UploadedBytes { files: 4, bytes: 1_000 },
    };

    fn store() -> (tempfile::TempDir, Artifacts) {
        let folder = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::open(&folder.path().join("artifacts")).unwrap();
        (folder, artifacts)
    }

    fn whose(result: Result<Artifact, UploadError>) -> &'static str {
        match result.unwrap_err() {
            UploadError::Full { whose, .. } => whose,
            UploadError::Io(error) => panic!("{error}"),
        }
    }

    #[test]
    fn uploads_are_limited_for_each_caller_and_in_total() {
        let (folder, artifacts) = store();
        let upload = |content: &[u8], by: &str| artifacts.upload("a", content, by, &LIMITS);
        assert_eq!(whose(upload(&[b'x'; 101], "ana")), "the caller");
        assert!(artifacts.list().unwrap().is_empty());
        for content in ["1", "2", "3"] {
            upload(content.as_bytes(), "ana").unwrap();
        }
        upload(b"3", "ana").unwrap();
        assert_eq!(whose(upload(b"4", "ana")), "the caller");
        upload(b"4", "kim").unwrap();
        assert_eq!(whose(upload(b"5", "kim")), "the service");
        // Another process counts the same.
        let other = Artifacts::open(&folder.path().join("artifacts")).unwrap();
        assert_eq!(whose(other.upload("a", b"5", "ana", &LIMITS)), "the caller");
        assert_eq!(whose(other.upload("a", b"5", "kim", &LIMITS)), "the service");
    }

    #[test]
    fn expired_uploads_are_deleted_with_their_content() {
        let (_folder, artifacts) = store();
        let shared = artifacts.upload("a", b"shared", "ana", &LIMITS).unwrap();
        artifacts.upload("a", b"shared", "kim", &LIMITS).unwrap();
        let own = artifacts.upload("a", b"own", "ana", &LIMITS).unwrap();
        assert_eq!(artifacts.expired_uploads(UPLOADS_KEPT_FOR).unwrap(), []);
        let expired = artifacts.expired_uploads(Duration::ZERO).unwrap();
        assert_eq!(expired.len(), 3);
        assert!(!artifacts.delete_upload(&expired[0], UPLOADS_KEPT_FOR).unwrap(), "it is not old enough");
        let deleted: Vec<bool> =
            expired.iter().map(|upload| artifacts.delete_upload(upload, Duration::ZERO).unwrap()).collect();
        assert_eq!(deleted.iter().filter(|deleted| **deleted).count(), 2, "the shared content once");
        assert_eq!((artifacts.path(&shared.digest), artifacts.path(&own.digest)), (None, None));
        assert!(artifacts.list().unwrap().is_empty());
        for content in ["1", "2", "3"] {
            artifacts.upload("a", content.as_bytes(), "ana", &LIMITS).unwrap();
        }
    }

    #[test]
    fn artifacts_of_runs_are_kept() {
        let (_folder, artifacts) = store();
        let first = artifacts.keep("out.csv", &mut "produced first".as_bytes()).unwrap();
        artifacts.upload("a", b"produced first", "ana", &LIMITS).unwrap();
        let later = artifacts.upload("a", b"produced later", "ana", &LIMITS).unwrap();
        artifacts.keep("out.csv", &mut "produced later".as_bytes()).unwrap();
        for upload in artifacts.expired_uploads(Duration::ZERO).unwrap() {
            assert!(!artifacts.delete_upload(&upload, Duration::ZERO).unwrap());
        }
        assert!(artifacts.path(&first.digest).is_some() && artifacts.path(&later.digest).is_some());
    }

    #[test]
    fn renewed_uploads_are_not_expired() {
        let (_folder, artifacts) = store();
        artifacts.upload("a", b"1", "ana", &LIMITS).unwrap();
        let upload = artifacts.expired_uploads(Duration::ZERO).unwrap().remove(0);
        let past = SystemTime::now() - 2 * UPLOADS_KEPT_FOR;
        File::options().write(true).open(&upload.record).unwrap().set_modified(past).unwrap();
        assert_eq!(artifacts.expired_uploads(UPLOADS_KEPT_FOR).unwrap(), std::slice::from_ref(&upload));
        artifacts.renew_upload(&upload).unwrap();
        assert_eq!(artifacts.expired_uploads(UPLOADS_KEPT_FOR).unwrap(), []);
    }
}
