//! Local files that a user names by path: only those in the working directory and in the roots. Remote callers have no
//! access to them.

use std::path::{Path, PathBuf};

use super::{Code, Error, TargetChoice, content};
use skills_base::files::{Folder, canonicalize};
use skills_base::number::byte_size;
use skills_config::expand;

/// Maximum number of files listed of the working directory.
const MAX_LISTED: usize = 500;
/// Prefixes of references that are not paths.
const SCHEMES: [&str; 2] = ["artifact:", "skill:"];

/// The references of artifacts for callers who cannot name files.
pub(crate) const STORED_FORMS: &str =
    "expected artifact:DIGEST or skill:ID/RELATIVE/PATH; artifact.create (POST /v1/artifacts) stores content";
/// The references of artifacts for callers who can.
pub(crate) const FILE_FORMS: &str = "expected artifact:DIGEST, skill:ID/RELATIVE/PATH or the path of a file";

/// Base folders of the paths that a caller names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFiles {
    /// The working directory.
    pub cwd: PathBuf,
    /// The folder that `~` denotes.
    pub home: PathBuf,
}

pub struct LocalFile {
    /// Its path relative to its folder.
    pub name: String,
    /// Its path for error messages and labels.
    pub path: PathBuf,
    pub content: Vec<u8>,
}

/// Returns whether a reference to an artifact is a path rather than the name of stored content.
pub fn is_path(reference: &str) -> bool {
    !SCHEMES.iter().any(|scheme| reference.starts_with(scheme))
}

impl LocalFiles {
    /// Reads a file in the working directory or in one of the roots, opened beneath that folder: a link that
    /// points outside it is rejected, even one that appears in the meantime.
    ///
    /// # Errors
    /// Returns `target_not_found` for a file elsewhere, a hidden one, or one that is not a regular file;
    /// `payload_too_large`.
    pub fn read(&self, reference: &str, roots: &[PathBuf]) -> Result<LocalFile, Error> {
        let path = expand(reference, &self.cwd, &self.home);
        let folders = std::iter::once(&self.cwd).chain(roots);
        // The user may name a folder by its real path or by a link to it.
        let inside = folders.flat_map(|folder| [Some(folder.clone()), canonicalize(folder).ok()]).flatten();
        let found = inside.into_iter().find_map(|folder| {
            let name = path.strip_prefix(&folder).ok()?.to_str()?.to_owned();
            Some((folder, name))
        });
        let shown = path.display().to_string();
        let Some((folder, name)) = found else {
            let message = format!(
                "{shown} is outside the working directory and the roots; only files in them can be attached"
            );
            return Err(Error::new(Code::TargetNotFound, message));
        };
        let opened = Folder::follow(&folder).map_err(|error| {
            Error::new(Code::TargetNotFound, format!("cannot open {}: {error}", folder.display()))
        })?;
        let content = content::read_inside(&opened, &name, &shown)?;
        Ok(LocalFile { name, path, content })
    }

    /// Returns the files of the working directory itself, newest first; hidden ones are omitted.
    pub fn choices(&self) -> Vec<TargetChoice> {
        let Ok(folder) = Folder::follow(&self.cwd) else { return Vec::new() };
        let names = folder.entries("").unwrap_or_default().into_iter().map(|entry| entry.name);
        let mut files: Vec<TargetChoice> = names
            .filter(|name| !name.starts_with('.'))
            .take(MAX_LISTED)
            .filter_map(|name| {
                let metadata = folder.metadata(&name).ok().filter(std::fs::Metadata::is_file)?;
                let since = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
                Some(TargetChoice {
                    target_ref: if is_path(&name) { name } else { format!("./{name}") },
                    label: format!("a file, {}", byte_size(metadata.len())),
                    at_ms: i64::try_from(since.as_millis()).ok(),
                })
            })
            .collect();
        files.sort_by(|a, b| b.at_ms.cmp(&a.at_ms).then_with(|| a.target_ref.cmp(&b.target_ref)));
        files
    }
}

/// Returns the name under which a file is stored: the last component of its path.
pub fn stored_name(path: &Path) -> String {
    path.file_name().map_or_else(|| "file".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_in_the_folders_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for path in ["work/rows.csv", "work/.env", "root/pdf/a.md", "elsewhere/secret"] {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), "x").unwrap();
        }
        symlink(at("elsewhere/secret"), at("work/absolute")).unwrap();
        symlink("../elsewhere/secret", at("work/upwards")).unwrap();
        symlink(at("elsewhere"), at("work/folder")).unwrap();
        symlink("rows.csv", at("work/inside")).unwrap();
        let local = LocalFiles { cwd: at("work"), home: at("work") };
        let roots = [at("root")];
        let read = |reference: &str| local.read(reference, &roots);
        for good in
            ["rows.csv", "./rows.csv", "~/rows.csv", "../root/pdf/a.md", "folder/../rows.csv", "inside"]
        {
            assert_eq!(read(good).unwrap().content, b"x", "{good}");
        }
        let text = at("root/pdf/a.md");
        assert_eq!(read(text.to_str().unwrap()).unwrap().name, "pdf/a.md");
        for bad in
            [".env", "absolute", "upwards", "folder/secret", "../elsewhere/secret", "/etc/passwd", ".", ""]
        {
            assert_eq!(read(bad).err().map(|error| error.code), Some(Code::TargetNotFound), "{bad}");
        }
        let names: Vec<String> = local.choices().into_iter().map(|choice| choice.target_ref).collect();
        assert!(
            names.contains(&"rows.csv".to_owned()) && !names.iter().any(|name| name.contains("env")),
            "{names:?}"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pseudo_files_below_the_top_are_refused() {
        let local = LocalFiles { cwd: PathBuf::from("/"), home: PathBuf::from("/") };
        for path in ["proc/self/environ", "/proc/version", "sys/kernel/uevent_seqnum"] {
            assert_eq!(
                local.read(path, &[]).err().map(|error| error.code),
                Some(Code::TargetNotFound),
                "{path}"
            );
        }
    }
}
