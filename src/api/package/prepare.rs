//! Creates an archive from a bundle's folder: sorted files, no times and owners, no hidden files, links or secrets.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use serde_json::Value;

use super::secrets::suspicion;
use super::{
    FORMAT, MANIFEST, MAX_BYTES, MAX_FILE, MAX_FILES, Manifest, PackageFinding, PackageReport, PackedFile,
    SAME_NAME, folded, path_problem, runs,
};
use crate::{Code, Error, lint};
use skills_base::files::{Entry, Folder, MAX_DEPTH, OpenError, write_failure};
use skills_config::option;
use skills_registry::trust::{FileKind, SeenFile, combined_digest};
use skills_skill::{Digest, RealPaths, Skill, SkillId, contract, is_main_file};

/// Folders that tools leave behind.
const CACHES: [&str; 2] = ["__pycache__", "node_modules"];

/// The parameters of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageJob {
    /// The bundle's folder, absolute and with links resolved.
    pub bundle: PathBuf,
    /// Path of the archive; default: named after the skill's id and version, in `folder`.
    pub output: Option<PathBuf>,
    /// The default folder of the archive.
    pub folder: PathBuf,
    /// Files that only look like secrets: paths inside the bundle.
    pub allow: Vec<String>,
    /// Whether an existing archive may be replaced.
    pub replace: bool,
    /// Whether to only report what would be packed.
    pub dry_run: bool,
}

/// The content of a file for an archive.
struct Content {
    bytes: Vec<u8>,
    executable: bool,
}

/// Packs a bundle; if there are problems, nothing is written and the report lists them.
///
/// # Errors
/// Returns `not_found` for a folder that is not a bundle, `forbidden` for one that cannot be read, and for an archive
/// that cannot be written or already exists.
pub fn prepare(job: &PackageJob) -> Result<PackageReport, Error> {
    let bundle = &job.bundle;
    let folder = Folder::open(bundle).map_err(|error| unreadable(bundle, &error))?;
    let names = folder.entries("").map_err(|error| unreadable(bundle, &error.into()))?;
    let Some(main) = main_file(names.into_iter().map(|entry| entry.name)) else {
        let message =
            format!("{} is not a bundle: it contains neither SKILL.md nor skill.yaml", bundle.display());
        return Err(Error::new(Code::NotFound, message));
    };
    let mut report = PackageReport::empty();
    let mut gathered = BundleFiles {
        folder: &folder,
        report: &mut report,
        files: BTreeMap::new(),
        bytes: 0,
        allow: &job.allow,
    };
    gathered.folder("")?;
    let files = gathered.files;
    let mut names = HashSet::new();
    let same = files.keys().filter(|path| !names.insert(folded(path)));
    report.findings.extend(same.map(|path| PackageFinding::new("twice", Some(path), SAME_NAME)));
    let main = bundle.join(main);
    let read =
        skills_skill::read_bundle_at(&main, RealPaths { location: main.clone(), folder: bundle.clone() });
    report.lint = lint::bundle(&read).findings;
    let skill = read.ok();
    report.runs = runs(bundle, skill.as_ref());
    report.add_nested(bundle, files.keys().map(String::as_str));
    let id = bundle.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    report.skill_id = Some(SkillId::new(id.clone()));
    if path_problem(&id).is_some() || id.contains('/') {
        let message = format!("the folder name `{id}` is not valid in an archive; rename the folder");
        report.findings.push(PackageFinding::new("bad-path", None, message));
    }
    let manifest = manifest(id, version(&bundle.join("skill.yaml"), &files, skill.as_ref()), &files);
    report.manifest = Some(manifest.clone());
    if !report.good() || job.dry_run {
        return Ok(report);
    }
    let archive = archive(&manifest, &files).map_err(|error| unreadable(bundle, &error))?;
    let name = match &manifest.version {
        Some(version) if path_problem(version).is_none() && !version.contains('/') => {
            format!("{}-{version}.skill.tar.gz", manifest.id)
        }
        _ => format!("{}.skill.tar.gz", manifest.id),
    };
    let output = job.output.clone().unwrap_or_else(|| job.folder.join(name));
    write(&output, &archive, job.replace)?;
    report.bytes = archive.len() as u64;
    report.sha256 = Some(Digest::of(&archive));
    report.file = Some(output);
    Ok(report)
}

struct BundleFiles<'a> {
    folder: &'a Folder,
    report: &'a mut PackageReport,
    files: BTreeMap<String, Content>,
    bytes: u64,
    allow: &'a [String],
}

impl BundleFiles<'_> {
    /// Reads a subfolder recursively; `prefix` is its path with a slash, or empty for the bundle itself.
    fn folder(&mut self, prefix: &str) -> Result<(), Error> {
        let inside = prefix.trim_end_matches('/');
        let mut entries = self.folder.entries(inside).map_err(|error| self.unreadable(inside, error))?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        for Entry { name, is_link } in entries {
            let path = format!("{prefix}{name}");
            // Hidden files cannot be opened, so their kind is taken from the folder entry.
            let kind = if is_link || name.starts_with('.') { None } else { Some(self.kind(&path)?) };
            let is_folder = kind.is_some_and(|kind| kind.is_dir());
            if name.starts_with('.') {
                let hidden_folder = self.folder.path().join(&path).is_dir();
                self.report.left_out.push(if hidden_folder { format!("{path}/") } else { path });
            } else if is_folder && CACHES.contains(&name.as_str()) {
                self.report.left_out.push(format!("{path}/"));
            } else if is_folder && path.matches('/').count() >= MAX_DEPTH {
                let message = format!("folders are nested more than {MAX_DEPTH} levels deep");
                self.found("too-deep", prefix, &message);
            } else if is_folder {
                self.folder(&format!("{path}/"))?;
            } else if kind.is_some_and(|kind| kind.is_file()) {
                self.file(path)?;
            } else if is_link {
                let message = "links cannot be packaged; replace the link with the file";
                self.found("link", &path, message);
            } else {
                self.found("special-file", &path, "pipes, sockets and devices cannot be packaged");
            }
        }
        Ok(())
    }

    fn kind(&self, path: &str) -> Result<fs::FileType, Error> {
        let metadata = self.folder.metadata(path).map_err(|error| self.unreadable(path, error))?;
        Ok(metadata.file_type())
    }

    fn unreadable(&self, path: &str, error: OpenError) -> Error {
        unreadable(&self.folder.path().join(path), &error.into())
    }

    fn file(&mut self, path: String) -> Result<(), Error> {
        if self.files.len() >= MAX_FILES {
            if !self.report.findings.iter().any(|found| found.code == "too-many-files") {
                self.found("too-many-files", &path, &format!("a package has at most {MAX_FILES} files"));
            }
            return Ok(());
        }
        if let Some((code, why)) = path_problem(&path) {
            self.found(code, &path, why);
            return Ok(());
        }
        let opened = self.folder.open_file(&path).map_err(|error| self.unreadable(&path, error));
        let (file, metadata) = opened?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(&self.folder.path().join(&path), &error))?;
        if bytes.len() as u64 > MAX_FILE {
            self.found("file-too-large", &path, &format!("a file has at most {} MiB", MAX_FILE >> 20));
            return Ok(());
        }
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_BYTES {
            if !self.report.findings.iter().any(|found| found.code == "too-large") {
                self.found("too-large", &path, &format!("a package has at most {} MiB", MAX_BYTES >> 20));
            }
            return Ok(());
        }
        if !self.allow.contains(&path)
            && let Some(why) = suspicion(&path, &bytes)
        {
            let option = option("--allow", &path);
            let message = format!("{why}; remove it, or use {option} if it is not a secret");
            self.found("looks-like-a-secret", &path, &message);
        }
        let executable = skills_base::files::is_executable(&metadata);
        self.files.insert(path, Content { bytes, executable });
        Ok(())
    }

    fn found(&mut self, code: &str, path: &str, message: &str) {
        self.report.findings.push(PackageFinding::new(code, Some(path), message));
    }
}

fn manifest(id: String, version: Option<String>, files: &BTreeMap<String, Content>) -> Manifest {
    let packed: Vec<PackedFile> = files
        .iter()
        .map(|(path, content)| PackedFile {
            path: path.clone(),
            bytes: content.bytes.len() as u64,
            sha256: Digest::of(&content.bytes),
            executable: content.executable,
        })
        .collect();
    Manifest { format: FORMAT.to_owned(), id, version, digest: digest(&packed), files: packed }
}

/// Returns the digest over all files, as `skills trust` computes it after unpacking.
pub(super) fn digest(files: &[PackedFile]) -> Digest {
    let kind = |file: &PackedFile| if file.executable { FileKind::Executable } else { FileKind::File };
    combined_digest(
        &files
            .iter()
            .map(|file| (file.path.clone(), SeenFile { kind: kind(file), sha256: file.sha256 }))
            .collect(),
    )
}

/// Returns the name of the main file with the instructions.
pub(super) fn main_file(names: impl Iterator<Item = String>) -> Option<String> {
    names.filter(|name| is_main_file(name)).min_by_key(|name| (name == "skill.yaml", name != "SKILL.md"))
}

/// Returns the contract's version, else the frontmatter's.
fn version(file: &Path, files: &BTreeMap<String, Content>, skill: Option<&Skill>) -> Option<String> {
    let contract = files.get("skill.yaml").and_then(|content| std::str::from_utf8(&content.bytes).ok());
    let contract = contract.and_then(|text| contract::parse(file, text).0).map(|contract| contract.version);
    let stated = skill.and_then(|skill| match skill.properties.metadata.to_map().remove("version") {
        Some(Value::String(version)) => Some(version),
        Some(Value::Number(version)) => Some(version.to_string()),
        _ => None,
    });
    contract.or(stated)
}

fn archive(manifest: &Manifest, files: &BTreeMap<String, Content>) -> io::Result<Vec<u8>> {
    // No time, name or system in the header: the same content yields the same file, byte for byte.
    let gzip = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    let mut tar = tar::Builder::new(gzip);
    let mut text = serde_json::to_vec_pretty(manifest)?;
    text.push(b'\n');
    entry(&mut tar, MANIFEST, &text, false)?;
    for (path, content) in files {
        entry(&mut tar, &format!("{}/{path}", manifest.id), &content.bytes, content.executable)?;
    }
    tar.into_inner()?.finish()
}

/// Appends a file to an archive.
pub(super) fn entry(
    tar: &mut tar::Builder<impl Write>,
    path: &str,
    bytes: &[u8],
    executable: bool,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(bytes.len() as u64);
    header.set_mode(if executable { 0o755 } else { 0o644 });
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    tar.append_data(&mut header, path, bytes)
}

fn write(output: &Path, archive: &[u8], replace: bool) -> Result<(), Error> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let io = |error: &io::Error| Error::new(Code::Forbidden, write_failure(output, error));
    let mut file = new_file(tempfile::Builder::new().prefix(".skill-package-"))
        .tempfile_in(folder)
        .map_err(|e| io(&e))?;
    file.write_all(archive).map_err(|e| io(&e))?;
    file.as_file().sync_all().map_err(|e| io(&e))?;
    let result = if replace { file.persist(output) } else { file.persist_noclobber(output) };
    result.map(drop).map_err(|error| {
        if output.is_dir() {
            Error::new(Code::Forbidden, format!("{} is a directory; specify a file", output.display()))
        } else if error.error.kind() == io::ErrorKind::AlreadyExists {
            let message = format!("{} already exists; use --force to overwrite it", output.display());
            Error::new(Code::Forbidden, message)
        } else {
            io(&error.error)
        }
    })
}

/// Sets the mode of a regular new file, to which the umask applies.
#[cfg(unix)]
fn new_file<'a, 'b>(file: &'a mut tempfile::Builder<'b, 'b>) -> &'a mut tempfile::Builder<'b, 'b> {
    use std::os::unix::fs::PermissionsExt as _;
    file.permissions(fs::Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn new_file<'a, 'b>(file: &'a mut tempfile::Builder<'b, 'b>) -> &'a mut tempfile::Builder<'b, 'b> {
    file
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Error {
    let code = if error.kind() == io::ErrorKind::NotFound { Code::NotFound } else { Code::Forbidden };
    let reason = skills_base::files::io_reason(error);
    Error::new(code, format!("cannot read `{}`: {reason}", path.display()))
}
