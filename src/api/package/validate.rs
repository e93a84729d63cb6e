//! Validates a package from elsewhere: it is read as a stream within limits, each entry is checked before it is written
//! to disk, its digests are compared with the manifest, and its content is linted in a private temporary folder.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::bufread::GzDecoder;
use tar::{Archive, EntryType};

use super::prepare::{digest, entry, main_file, unreadable};
use super::{
    FORMAT, MANIFEST, MAX_ARCHIVE, MAX_BYTES, MAX_FILE, MAX_FILES, Manifest, PackageFinding, PackageReport,
    PackedFile, SAME_NAME, folded, path_problem, runs,
};
use crate::{Code, Error, LintFinding, lint};
use skills_skill::{Digest, SkillId};

/// Maximum size of a manifest in bytes.
const MAX_MANIFEST: u64 = 4 << 20;
/// Maximum size of headers and padding in bytes.
const OVERHEAD: u64 = 16 << 20;
/// Maximum number of findings; the rest is not read.
const MAX_FINDINGS: usize = 50;

/// Validates a package. Problems are listed in the report.
///
/// # Errors
/// Returns `not_found` or `forbidden` for an unreadable file; `internal_error` if there is no space to unpack.
pub fn validate(file: &Path) -> Result<PackageReport, Error> {
    let mut report = PackageReport { file: Some(file.to_owned()), ..PackageReport::empty() };
    let bytes = match skills_skill::read_regular(file, MAX_ARCHIVE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let message = format!("a package has at most {} MiB", MAX_ARCHIVE >> 20);
            report.findings.push(PackageFinding::new("too-large", None, message));
            return Ok(report);
        }
        Err(error) => return Err(unreadable(file, &error)),
    };
    report.bytes = bytes.len() as u64;
    report.sha256 = Some(Digest::of(&bytes));
    let temp_dir = tempfile::Builder::new().prefix("skill-package-").tempdir();
    let temp_dir = temp_dir.map_err(|e| {
        Error::new(Code::InternalError, format!("cannot create a temporary folder to unpack: {e}"))
    })?;
    let mut reading = PackageReader {
        folder: temp_dir.path(),
        found: Vec::new(),
        files: BTreeMap::new(),
        manifest: None,
        total: 0,
    };
    if let Err(error) = reading.entries(&bytes) {
        reading.note("damaged", None, format!("the file is not a valid tar.gz archive: {error}"));
    }
    let PackageReader { found, files, manifest, .. } = reading;
    report.findings = found;
    let Some(manifest_text) = manifest else {
        let message = format!("`{MANIFEST}` is missing; `skills package-prepare` creates packages");
        report.findings.push(PackageFinding::new("no-manifest", None, message));
        return Ok(report);
    };
    let manifest = match serde_json::from_slice::<Manifest>(&manifest_text) {
        Ok(manifest) => manifest,
        Err(error) => {
            let message = format!("cannot read the manifest: {error}");
            report.findings.push(PackageFinding::new("bad-manifest", Some(MANIFEST), message));
            return Ok(report);
        }
    };
    report.findings.extend(compared(&manifest, &files));
    if report.findings.is_empty()
        && !is_canonical(&bytes, &manifest_text, &files, temp_dir.path()).unwrap_or(false)
    {
        let message = "the archive is not in the form in which `skills package-prepare` writes it, so other programs \
            may unpack other files; prepare it again";
        report.findings.push(PackageFinding::new("not-canonical", None, message));
    }
    report.skill_id = Some(SkillId::new(manifest.id.clone()));
    let bundle = temp_dir.path().join(&manifest.id);
    let is_valid_id = path_problem(&manifest.id).is_none() && !manifest.id.contains('/');
    let names = fs::read_dir(&bundle).into_iter().flatten().flatten();
    let main = main_file(names.filter_map(|entry| entry.file_name().into_string().ok()));
    if let Some(main) = main.filter(|_| is_valid_id) {
        let read = skills_skill::read_bundle(&bundle.join(main));
        report.lint = lint::bundle(&read).findings;
        let skill = read.ok();
        report.runs = runs(&bundle, skill.as_ref());
        let own = files.keys().filter_map(|path| path.strip_prefix(&manifest.id)?.strip_prefix('/'));
        report.add_nested(&bundle, own);
        let inside = |found: LintFinding| {
            // The temporary folder is meaningless to the caller.
            let path = found.location.strip_prefix(temp_dir.path()).map(Path::to_path_buf);
            LintFinding { location: path.unwrap_or_else(|_| found.location.clone()), ..found }
        };
        report.lint = report.lint.into_iter().map(inside).collect();
    } else {
        let message = "the folder in its manifest contains neither SKILL.md nor skill.yaml";
        report.findings.push(PackageFinding::new("no-skill", Some(&manifest.id), message));
    }
    report.manifest = Some(manifest);
    Ok(report)
}

struct PackageReader<'a> {
    folder: &'a Path,
    found: Vec<PackageFinding>,
    /// Files by path in the archive.
    files: BTreeMap<String, PackedFile>,
    manifest: Option<Vec<u8>>,
    total: u64,
}

impl PackageReader<'_> {
    fn note(&mut self, code: &str, path: Option<&str>, message: impl Into<String>) {
        self.found.push(PackageFinding::new(code, path, message));
    }

    fn entries(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Whatever the archive claims, no more than this is unpacked.
        let unpacked = GzDecoder::new(bytes).take(MAX_BYTES + OVERHEAD);
        let mut archive = Archive::new(unpacked);
        let mut seen = HashSet::new();
        for (count, entry) in archive.entries()?.enumerate() {
            if count > MAX_FILES || self.found.len() >= MAX_FINDINGS {
                let message =
                    format!("a package has at most {MAX_FILES} files; further problems are not listed");
                self.note("too-many-files", None, message);
                return Ok(());
            }
            let mut entry = entry?;
            let raw = entry.path_bytes().into_owned();
            let Ok(path) = String::from_utf8(raw) else {
                let message = "an entry name is not UTF-8";
                self.note("bad-path", None, message);
                continue;
            };
            let path = path.trim_end_matches('/').to_owned();
            let kind = entry.header().entry_type();
            if kind == EntryType::Directory && path_problem(&path).is_none() {
                continue;
            }
            if let Some((code, why)) = path_problem(&path) {
                self.note(code, Some(&path), why);
                continue;
            }
            if kind != EntryType::Regular {
                let (code, what) = match kind {
                    EntryType::Symlink | EntryType::Link => ("link", "links are not allowed"),
                    _ => ("special-file", "only regular files are allowed"),
                };
                self.note(code, Some(&path), what);
                continue;
            }
            // Two names that differ only on some systems would overwrite each other on others.
            if !seen.insert(folded(&path)) {
                self.note("twice", Some(&path), SAME_NAME);
                continue;
            }
            let limit = if path == MANIFEST { MAX_MANIFEST } else { MAX_FILE };
            if entry.size() > limit {
                let message = format!("it has {} bytes; the maximum is {limit}", entry.size());
                self.note("file-too-large", Some(&path), message);
                continue;
            }
            let executable = entry.header().mode().unwrap_or(0) & 0o111 != 0;
            let mut content = Vec::new();
            Read::by_ref(&mut entry).take(limit + 1).read_to_end(&mut content)?;
            self.total += content.len() as u64;
            if content.len() as u64 > limit || self.total > MAX_BYTES {
                let message = format!("a package has at most {} MiB", MAX_BYTES >> 20);
                self.note("too-large", Some(&path), message);
                return Ok(());
            }
            if path == MANIFEST {
                self.manifest = Some(content);
                continue;
            }
            self.keep(&path, &content, executable)?;
        }
        // Read to the end, where the checksum is: a truncated archive is detected only there.
        io::copy(&mut archive.into_inner(), &mut io::sink())?;
        Ok(())
    }

    fn keep(&mut self, path: &str, content: &[u8], executable: bool) -> io::Result<()> {
        let place = self.folder.join(path);
        if let Some(folder) = place.parent()
            && fs::create_dir_all(folder).is_err()
        {
            self.note("bad-path", Some(path), "its parent is a file elsewhere in the archive");
            return Ok(());
        }
        // Never overwrites: everything in this folder was written by this loop.
        if let Ok(mut file) = File::options().write(true).create_new(true).open(&place) {
            file.write_all(content)?;
        } else {
            self.note("bad-path", Some(path), "it is a folder elsewhere in the archive");
            return Ok(());
        }
        if executable {
            skills_base::private_files::set_mode(&place, 0o755)?;
        }
        let packed = PackedFile {
            path: path.to_owned(),
            bytes: content.len() as u64,
            sha256: Digest::of(content),
            executable,
        };
        self.files.insert(path.to_owned(), packed);
        Ok(())
    }
}

/// Compares what is written with what can be read from `expected`.
struct Comparison<R> {
    expected: R,
    is_same: bool,
}

impl<R: Read> Write for Comparison<R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut expected = vec![0; bytes.len()];
        self.is_same &= self.expected.read_exact(&mut expected).is_ok() && expected == bytes;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether an archive consists of the bytes that packing the manifest and the files again would write. Programs
/// differ in how they read extension headers, unusual fields, and data after the end, none of which are in such an
/// archive.
fn is_canonical(
    archive: &[u8],
    manifest: &[u8],
    files: &BTreeMap<String, PackedFile>,
    folder: &Path,
) -> io::Result<bool> {
    let comparison = Comparison { expected: GzDecoder::new(archive), is_same: true };
    let mut tar = tar::Builder::new(comparison);
    entry(&mut tar, MANIFEST, manifest, false)?;
    for (path, packed) in files {
        entry(&mut tar, path, &fs::read(folder.join(path))?, packed.executable)?;
    }
    let Comparison { mut expected, is_same } = tar.into_inner()?;
    Ok(is_same && expected.read(&mut [0])? == 0 && expected.into_inner().is_empty())
}

/// Compares the manifest with the files found.
fn compared(manifest: &Manifest, files: &BTreeMap<String, PackedFile>) -> Vec<PackageFinding> {
    let mut found = Vec::new();
    let mut note = |code: &str, path: Option<&str>, message: String| {
        found.push(PackageFinding::new(code, path, message));
    };
    if manifest.format != FORMAT {
        note(
            "bad-manifest",
            Some(MANIFEST),
            format!("its format is `{}`; expected {FORMAT}", manifest.format),
        );
    }
    let mut listed = HashSet::new();
    for wanted in &manifest.files {
        let path = format!("{}/{}", manifest.id, wanted.path);
        if !listed.insert(path.clone()) {
            note("bad-manifest", Some(&wanted.path), "the manifest lists it twice".to_owned());
        }
        match files.get(&path) {
            None => note(
                "missing-file",
                Some(&wanted.path),
                "listed in the manifest, but missing from the archive".to_owned(),
            ),
            Some(have) if have.sha256 != wanted.sha256 || have.bytes != wanted.bytes => {
                let message = format!("its digest is {}; the manifest has {}", have.sha256, wanted.sha256);
                note("digest-mismatch", Some(&wanted.path), message);
            }
            Some(have) if have.executable != wanted.executable => {
                let message = "its execute bit differs from the manifest".to_owned();
                note("mode-mismatch", Some(&wanted.path), message);
            }
            Some(_) => {}
        }
    }
    for path in files.keys().filter(|path| !listed.contains(*path)) {
        note("unlisted-file", Some(path), "in the archive, but not listed in the manifest".to_owned());
    }
    let mut sorted = manifest.files.clone();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    if digest(&sorted) != manifest.digest {
        let message = "the digest over all files does not match the listed files".to_owned();
        note("digest-mismatch", Some(MANIFEST), message);
    }
    found
}
