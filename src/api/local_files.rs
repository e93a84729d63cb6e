//! Files that a person at this machine names by their paths: those in the working directory and in the roots, and no
//! others. A caller from elsewhere has none of them.

use std::path::{Path, PathBuf};

use super::{Code, Error, TargetChoice, content};
use skills_base::files::Folder;
use skills_config::expand;

/// Files of the working directory looked at.
const MAX_LISTED: usize = 500;
/// How references begin that are not paths.
const SCHEMES: [&str; 2] = ["artifact:", "skill:"];

/// Where paths that a caller names begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFiles {
    /// The working directory.
    pub cwd: PathBuf,
    /// What `~` stands for.
    pub home: PathBuf,
}

/// A file that was read.
pub struct LocalFile {
    /// Its path in its folder.
    pub name: String,
    /// Its path for error messages and labels.
    pub path: PathBuf,
    /// Its bytes.
    pub content: Vec<u8>,
}

/// Whether a reference to an artifact is a path, not the name of something stored.
pub fn is_path(reference: &str) -> bool {
    !SCHEMES.iter().any(|scheme| reference.starts_with(scheme))
}

impl LocalFiles {
    /// Reads a file in the working directory or in one of the roots, opened beneath that folder: a link out of it is
    /// refused, also one that appears meanwhile.
    ///
    /// # Errors
    /// `target_not_found` for what lies elsewhere, is hidden, or is not a regular file; `payload_too_large`.
    pub fn read(&self, reference: &str, roots: &[PathBuf]) -> Result<LocalFile, Error> {
        let path = expand(reference, &self.cwd, &self.home);
        let folders = std::iter::once(&self.cwd).chain(roots);
        // A person may know a folder by its real path or by a link to it.
        let inside = folders.flat_map(|folder| [Some(folder.clone()), folder.canonicalize().ok()]).flatten();
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
        let content = content::read_beneath(&opened, &name, &shown)?;
        Ok(LocalFile { name, path, content })
    }

    /// Files of the working directory itself, newest first; hidden ones are left out.
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
                    label: format!("a file, {} bytes", metadata.len()),
                    at_ms: i64::try_from(since.as_millis()).ok(),
                })
            })
            .collect();
        files.sort_by(|a, b| b.at_ms.cmp(&a.at_ms).then_with(|| a.target_ref.cmp(&b.target_ref)));
        files
    }
}

/// What a file is called where it is stored: the last part of its path.
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
        let whole = at("root/pdf/a.md");
        assert_eq!(read(whole.to_str().unwrap()).unwrap().name, "pdf/a.md");
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
