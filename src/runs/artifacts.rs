//! Content-addressed storage for the files that steps produce. Stored content never changes, and identical content is
//! stored once.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::Artifact;
use super::uploads::Uploads;
use skills_base::{hex, private_files};

/// Number of leading bytes from which the media type is detected.
const SNIFF_BYTES: usize = 512;

/// Size of the read buffer in bytes.
const CHUNK: usize = 64 * 1024;

/// File signatures that determine the media type regardless of the name.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
];

/// The signature of ZIP archives, which office formats share.
const ZIP: &[u8] = b"PK\x03\x04";

/// Media types by file extension, as registered with IANA, with the signature that such a file must begin with (empty
/// for text formats).
const ENDINGS: &[(&str, &[u8], &str)] = &[
    ("csv", b"", "text/csv"),
    ("css", b"", "text/css"),
    ("docx", ZIP, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("htm", b"", "text/html"),
    ("html", b"", "text/html"),
    ("js", b"", "text/javascript"),
    ("json", b"", "application/json"),
    ("jsonl", b"", "application/jsonl"),
    ("md", b"", "text/markdown"),
    ("parquet", b"PAR1", "application/vnd.apache.parquet"),
    ("pptx", ZIP, "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("svg", b"", "image/svg+xml"),
    ("toml", b"", "application/toml"),
    ("tsv", b"", "text/tab-separated-values"),
    ("xlsx", ZIP, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", b"", "application/xml"),
    ("yaml", b"", "application/yaml"),
    ("yml", b"", "application/yaml"),
];

/// A folder of files named by digest: `ab/abcdef…`, each with its first name and media type next to it in
/// `ab/abcdef….json`. Files that only sessions produced have the owners of these sessions in `ab/abcdef….private`.
#[derive(Debug, Clone)]
pub struct Artifacts {
    folder: PathBuf,
    uploads: Uploads,
}

impl Artifacts {
    /// Opens an artifact folder, creating it if it does not exist. Where nothing can be created, it stays empty until
    /// something is stored.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created for another reason.
    pub fn open(folder: &Path) -> io::Result<Self> {
        if let Err(error) = private_files::create_folder(folder)
            && !matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
        {
            return Err(error);
        }
        Ok(Self { folder: folder.to_owned(), uploads: Uploads::default() })
    }

    /// Stores everything that can be read from `from`. Content that is already stored is left unchanged, including its
    /// first name; the returned artifact has the name given here. The write is atomic: readers see the complete file or
    /// none.
    ///
    /// # Errors
    /// Returns an error if reading or writing fails (for example on a full disk); nothing is stored then.
    pub fn keep(&self, name: &str, from: &mut dyn Read) -> io::Result<Artifact> {
        let artifact = self.store(name, from, |digest| {
            let guard = self.uploads.lock();
            // It is not deleted together with an upload of the same content.
            remove(&self.upload_mark(digest))?;
            Ok(guard)
        })?;
        // After the content is stored: a session that produced it at the same time does not hide it.
        self.publish(&artifact.digest)?;
        Ok(artifact)
    }

    /// Stores a file that a session of this owner produced (`None`: the local account). Until something else stores the
    /// same content, only those who can use sessions of its owners can use it.
    ///
    /// # Errors
    /// Returns an error if reading or writing fails; nothing is stored then.
    pub fn keep_private(&self, name: &str, from: &mut dyn Read, owner: Option<&str>) -> io::Result<Artifact> {
        self.store(name, from, |digest| {
            let guard = self.uploads.lock();
            let mut owners = match self.owners(digest)? {
                Some(owners) => owners,
                None if self.is_stored(digest) => {
                    remove(&self.upload_mark(digest))?;
                    return Ok(guard);
                }
                None => Vec::new(),
            };
            if owners.iter().all(|known| known.as_deref() != owner) {
                owners.push(owner.map(str::to_owned));
                let folder = self.folder.join(&digest[..2]);
                private_files::create_folder(&folder)?;
                let mut mark = tempfile::Builder::new().prefix(".draft-").tempfile_in(&folder)?;
                serde_json::to_writer(&mut mark, &owners)?;
                mark.as_file().sync_all()?;
                persist(mark, &self.private_mark(digest))?;
            }
            Ok(guard)
        })
    }

    /// Makes content that sessions produced available to everyone.
    pub(super) fn publish(&self, digest: &str) -> io::Result<()> {
        remove(&self.private_mark(digest))
    }

    /// Returns the owners of the sessions that produced some content; `None` if not only sessions did.
    fn owners(&self, digest: &str) -> io::Result<Option<Vec<Option<String>>>> {
        match fs::read(self.private_mark(digest)) {
            Ok(owners) => Ok(Some(serde_json::from_slice(&owners)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the artifacts that a caller can use, newest first; `admits` states whether they can use sessions of an
    /// owner.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn available(&self, admits: impl Fn(Option<&str>) -> bool) -> io::Result<Vec<Artifact>> {
        let mut artifacts = self.list()?;
        artifacts.retain(|artifact| match self.owners(&artifact.digest) {
            Ok(owners) => owners.is_none_or(|owners| owners.iter().any(|owner| admits(owner.as_deref()))),
            Err(error) => {
                tracing::warn!("cannot read the owners of artifact {}: {error}", artifact.digest);
                false
            }
        });
        Ok(artifacts)
    }

    /// Stores content; the value of `claim` lives until it is known whether the content is already stored.
    pub(super) fn store<T>(
        &self,
        name: &str,
        from: &mut dyn Read,
        claim: impl FnOnce(&str) -> io::Result<T>,
    ) -> io::Result<Artifact> {
        private_files::create_folder(&self.folder)?;
        let mut draft = tempfile::Builder::new().prefix(".draft-").tempfile_in(&self.folder)?;
        let mut hash = Sha256::new();
        let mut head = Vec::with_capacity(SNIFF_BYTES);
        let mut bytes = 0_u64;
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match from.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => &chunk[..read],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            head.extend_from_slice(&read[..read.len().min(SNIFF_BYTES - head.len())]);
            hash.update(read);
            draft.write_all(read)?;
            bytes += read.len() as u64;
        }
        let digest = hex::encode(&hash.finalize());
        let artifact =
            Artifact { digest, name: name.to_owned(), bytes, media_type: media_type(name, &head).to_owned() };
        let place = self.place(&artifact.digest);
        let claimed = claim(&artifact.digest)?;
        if self.is_stored(&artifact.digest) {
            return Ok(artifact);
        }
        drop(claimed);
        let folder = self.folder.join(&artifact.digest[..2]);
        private_files::create_folder(&folder)?;
        draft.as_file().sync_all()?;
        persist(draft, &place)?;
        // The metadata file is written last: a listing shows only artifacts that are complete.
        let mut label = tempfile::Builder::new().prefix(".draft-").tempfile_in(&folder)?;
        serde_json::to_writer(&mut label, &artifact)?;
        label.as_file().sync_all()?;
        persist(label, &self.label(&artifact.digest))?;
        File::open(&folder)?.sync_all()?;
        Ok(artifact)
    }

    /// Returns the path of the content with this digest if it is stored.
    pub fn path(&self, digest: &str) -> Option<PathBuf> {
        let path = is_digest(digest).then(|| self.place(digest))?;
        path.is_file().then_some(path)
    }

    /// Returns the metadata of the content with this digest, under its first name.
    pub fn find(&self, digest: &str) -> Option<Artifact> {
        let label = is_digest(digest).then(|| self.label(digest))?;
        serde_json::from_slice(&fs::read(label).ok()?).ok()
    }

    /// Returns all artifacts, newest first.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read. Unreadable metadata files are skipped and logged.
    pub fn list(&self) -> io::Result<Vec<Artifact>> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for shelf in fs::read_dir(&self.folder)? {
            let shelf = shelf?.path();
            if !shelf.is_dir() {
                continue;
            }
            for entry in fs::read_dir(shelf)? {
                let entry = entry?;
                let path = entry.path();
                if path.extension().is_none_or(|e| e != "json") {
                    continue;
                }
                match fs::read(&path).and_then(|text| Ok(serde_json::from_slice::<Artifact>(&text)?)) {
                    Ok(artifact) => found.push((entry.metadata()?.modified()?, artifact)),
                    Err(e) => tracing::warn!("{} is not a valid artifact label: {e}", path.display()),
                }
            }
        }
        found.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| x.digest.cmp(&y.digest)));
        Ok(found.into_iter().map(|(_, artifact)| artifact).collect())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn uploads(&self) -> &Uploads {
        &self.uploads
    }

    /// Marks content that is about to be uploaded, unless it is already stored.
    pub(super) fn mark_upload(&self, digest: &str) -> io::Result<()> {
        if !self.is_stored(digest) {
            private_files::create_folder(&self.folder.join(&digest[..2]))?;
            private_files::create_file(&self.upload_mark(digest), private_files::FILE_MODE)?;
        }
        Ok(())
    }

    /// Deletes content that was uploaded and that no run produced; returns whether it was.
    pub(super) fn delete_unproduced(&self, digest: &str) -> io::Result<bool> {
        if !is_digest(digest) || fs::remove_file(self.upload_mark(digest)).is_err() {
            return Ok(false);
        }
        // The metadata file first: a listing shows only artifacts that are complete.
        for file in [self.label(digest), self.place(digest)] {
            remove(&file)?;
        }
        Ok(true)
    }

    fn is_stored(&self, digest: &str) -> bool {
        self.place(digest).is_file() && self.label(digest).is_file()
    }

    fn upload_mark(&self, digest: &str) -> PathBuf {
        self.folder.join(&digest[..2]).join(format!("{digest}.upload"))
    }

    fn private_mark(&self, digest: &str) -> PathBuf {
        self.folder.join(&digest[..2]).join(format!("{digest}.private"))
    }

    fn place(&self, digest: &str) -> PathBuf {
        self.folder.join(&digest[..2]).join(digest)
    }

    fn label(&self, digest: &str) -> PathBuf {
        self.folder.join(&digest[..2]).join(format!("{digest}.json"))
    }
}

/// Deletes a file if it exists.
fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Renames a draft to its final path. If another writer was first, the content is identical, so either may stay.
fn persist(draft: tempfile::NamedTempFile, place: &Path) -> io::Result<()> {
    draft.persist(place).map(drop).map_err(|e| e.error)
}

/// Returns whether the text is 64 lowercase hexadecimal digits; nothing else may become part of a path.
fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Detects the media type: by signature if one matches, then by extension unless the content contradicts it, then as
/// text or binary.
fn media_type(name: &str, head: &[u8]) -> &'static str {
    if let Some((_, kind)) = SIGNATURES.iter().find(|(start, _)| head.starts_with(start)) {
        return kind;
    }
    let text = is_text(head);
    let ending = Path::new(name).extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    let named = ENDINGS.iter().find(|(e, start, _)| {
        Some(*e) == ending.as_deref() && if start.is_empty() { text } else { head.starts_with(start) }
    });
    match named {
        Some((_, _, kind)) => kind,
        None if head.starts_with(ZIP) => "application/zip",
        None if text => "text/plain",
        None => "application/octet-stream",
    }
}

/// Returns whether the head is valid UTF-8 without NUL; a character truncated at the end of a full head is allowed.
fn is_text(head: &[u8]) -> bool {
    let sound = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(e) => e.error_len().is_none() && head.len() == SNIFF_BYTES,
    };
    sound && !head.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Artifacts) {
        let folder = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::open(&folder.path().join("artifacts")).unwrap();
        (folder, artifacts)
    }

    #[test]
    fn the_same_content_is_kept_once_and_found_by_its_digest() {
        let (_folder, artifacts) = store();
        let first = artifacts.keep("out/rows.csv", &mut "a,b\n1,2\n".as_bytes()).unwrap();
        let again = artifacts.keep("copy.csv", &mut "a,b\n1,2\n".as_bytes()).unwrap();
        assert_eq!(first.digest, again.digest);
        assert_eq!((first.bytes, first.media_type.as_str()), (8, "text/csv"));
        assert_eq!(fs::read(artifacts.path(&first.digest).unwrap()).unwrap(), b"a,b\n1,2\n");
        assert_eq!(artifacts.list().unwrap(), std::slice::from_ref(&first));
        assert_eq!(artifacts.find(&first.digest), Some(first));
        let known = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(artifacts.keep("empty", &mut io::empty()).unwrap().digest, known);
    }

    #[test]
    fn files_of_sessions_are_private_until_something_else_stores_them() {
        let (folder, artifacts) = store();
        let of = |owner: &'static str| move |other: Option<&str>| other == Some(owner);
        let secret = artifacts.keep_private("a.txt", &mut "secret".as_bytes(), Some("kim")).unwrap();
        assert_eq!(artifacts.available(of("kim")).unwrap(), std::slice::from_ref(&secret));
        assert!(artifacts.available(of("robin")).unwrap().is_empty());
        artifacts.keep_private("b.txt", &mut "secret".as_bytes(), Some("robin")).unwrap();
        artifacts.keep_private("c.txt", &mut "secret".as_bytes(), None).unwrap();
        assert_eq!(artifacts.available(of("robin")).unwrap(), artifacts.available(of("kim")).unwrap());
        assert!(artifacts.available(of("sam")).unwrap().is_empty());
        assert_eq!(artifacts.available(|owner| owner.is_none()).unwrap().len(), 1);

        let mark = folder.path().join(format!("artifacts/{}/{}.private", &secret.digest[..2], secret.digest));
        fs::write(&mark, "[").unwrap();
        assert!(artifacts.available(|_| true).unwrap().is_empty(), "unreadable owners admit no caller");
        artifacts.keep("out.txt", &mut "secret".as_bytes()).unwrap();
        assert_eq!(artifacts.available(of("sam")).unwrap(), [secret]);
        artifacts.keep_private("a.txt", &mut "secret".as_bytes(), Some("kim")).unwrap();
        assert_eq!(artifacts.available(of("sam")).unwrap().len(), 1, "published content stays public");
    }

    #[test]
    fn a_missing_folder_is_empty_and_created_by_the_first_artifact() {
        let (folder, artifacts) = store();
        fs::remove_dir(folder.path().join("artifacts")).unwrap();
        assert!(artifacts.list().unwrap().is_empty());
        let artifact = artifacts.keep("a.txt", &mut "x".as_bytes()).unwrap();
        assert_eq!(artifacts.list().unwrap(), [artifact]);
    }

    #[test]
    fn invalid_digest_is_not_found() {
        let (folder, artifacts) = store();
        fs::write(folder.path().join("secret"), "x").unwrap();
        for text in ["../secret", "", "ab", &"A".repeat(64), &format!("{}/", "a".repeat(63)), &"é".repeat(32)]
        {
            assert_eq!(artifacts.path(text), None, "{text}");
            assert_eq!(artifacts.find(text), None, "{text}");
        }
    }

    #[test]
    fn interrupted_source_leaves_no_file() {
        struct Broken(bool);
        impl Read for Broken {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(io::Error::other("gone"));
                }
                into[0] = b'x';
                Ok(1)
            }
        }
        let (folder, artifacts) = store();
        assert!(artifacts.keep("half", &mut Broken(false)).is_err());
        assert!(artifacts.list().unwrap().is_empty());
        assert_eq!(fs::read_dir(folder.path().join("artifacts")).unwrap().count(), 0, "not even a draft");
    }

    #[test]
    fn media_types_follow_content_before_name() {
        let kind = |name: &str, head: &[u8]| media_type(name, head);
        assert_eq!(kind("photo.txt", b"\x89PNG\r\n\x1a\n...."), "image/png");
        assert_eq!(kind("report.MD", b"# Title"), "text/markdown");
        assert_eq!(kind("notes", "grün".as_bytes()), "text/plain");
        assert_eq!(kind("rows.csv", b"\0\x01\x02"), "application/octet-stream");
        assert_eq!(kind("book.xlsx", b"PK\x03\x04...."), ENDINGS[14].2);
        assert_eq!(kind("book.xlsx", b"just words"), "text/plain");
        assert_eq!(kind("pack.bin", b"PK\x03\x04"), "application/zip");
    }
}
