//! The skills embedded in this program, unpacked to the cache folder where files are needed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, DirEntry, include_dir};
use sha2::{Digest as _, Sha256};

use super::roots::{RootSpec, ShippedUse, resolve};
use super::{RootOrigin, cache};
use skills_base::private_files;
use skills_config::Config;
use skills_skill::client::profiles;

static SKILLS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../skills");

/// The name of the shipped skills in runs launched from them, regardless of the program's version: the script as of
/// the launch is stored with the run.
pub const SHIPPED: &str = "shipped";

/// Returns whether an embedded skill has this id.
pub fn is_shipped_id(id: &str) -> bool {
    SKILLS.get_file(Path::new(id).join("SKILL.md")).is_some()
        || SKILLS.get_file(Path::new(id).join("skill.yaml")).is_some()
}

/// Returns the folder below a cache folder that contains the shipped skills of each version.
pub fn versions(cache: &Path) -> PathBuf {
    cache.join("shipped")
}

/// Returns the folder of the embedded skills below a cache folder. Its name contains a digest of their content, so
/// that versions are never mixed.
pub fn root(cache: &Path) -> RootSpec {
    let mut hash = Sha256::new();
    for (path, content) in files() {
        hash.update(path.to_string_lossy().as_bytes());
        hash.update([0]);
        hash.update((content.len() as u64).to_le_bytes());
        hash.update(content);
    }
    let name = hash.finalize().iter().take(8).fold(0_u64, |name, byte| name << 8 | u64::from(*byte));
    let path = versions(cache).join(format!("{name:016x}"));
    RootSpec {
        path,
        label: "shipped".to_owned(),
        project_label: None,
        project: None,
        origin: RootOrigin::Shipped,
    }
}

/// Checks whether the cache folder of these settings can hold the shipped skills, if they may be needed. Unpacks them
/// if they are the only ones.
///
/// # Errors
/// Returns an error of the system if they are missing there and cannot be unpacked.
pub fn check_cache(config: &Config) -> io::Result<()> {
    let target = root(&config.dirs.cache).path;
    let (roots, used) = resolve(config, profiles());
    match used {
        ShippedUse::Never => Ok(()),
        ShippedUse::Only => unpack(&target),
        // A read-only cache that was filled before is still useful.
        ShippedUse::WhenEmpty if target.is_dir() || cache::file(&config.dirs.cache, &roots).exists() => {
            Ok(())
        }
        ShippedUse::WhenEmpty => check_writable(&target),
    }
}

/// Checks whether a missing folder can be created.
fn check_writable(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(existing) = folder.ancestors().find(|above| above.exists()) {
        use rustix::fs::{Access, access};
        access(existing, Access::WRITE_OK | Access::EXEC_OK)?;
    }
    Ok(())
}

/// Unpacks the embedded skills to `target` unless it exists. Atomic: written to a temporary folder, then renamed; if
/// two processes do so at once, one wins and both find the complete content.
pub fn unpack(target: &Path) -> io::Result<()> {
    if target.is_dir() {
        return Ok(());
    }
    let parent = target.parent().unwrap_or(target);
    private_files::create_folder(parent)?;
    let work = tempfile::Builder::new().prefix(".unpacking-").tempdir_in(parent)?;
    for (path, content) in files() {
        let path = work.path().join(path);
        if let Some(folder) = path.parent() {
            private_files::create_folder(folder)?;
        }
        fs::write(&path, content)?;
        private_files::set_mode(&path, 0o644)?;
        if content.starts_with(b"#!") {
            private_files::set_mode(&path, 0o755)?;
        }
    }
    match fs::rename(work.path(), target) {
        Ok(()) => {
            // The folder was renamed, so there is nothing left to remove.
            let _ = work.keep();
            Ok(())
        }
        Err(_) if target.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

fn files() -> Vec<(PathBuf, &'static [u8])> {
    fn collect(dir: &'static Dir<'_>, out: &mut Vec<(PathBuf, &'static [u8])>) {
        for entry in dir.entries() {
            match entry {
                DirEntry::Dir(dir) => collect(dir, out),
                DirEntry::File(file) => out.push((file.path().to_owned(), file.contents())),
            }
        }
    }
    let mut out = Vec::new();
    collect(&SKILLS, &mut out);
    out.sort();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_config::Env;

    #[test]
    fn only_examples_have_a_shipped_id() {
        assert!(is_shipped_id("log-digest"));
        assert!(!is_shipped_id("log"));
        assert!(!is_shipped_id(""));
    }

    #[test]
    fn unpacking_twice_creates_one_complete_folder() {
        let cache = tempfile::tempdir().unwrap();
        let root = root(cache.path());
        unpack(&root.path).unwrap();
        unpack(&root.path).unwrap();
        let entries: Vec<_> = fs::read_dir(cache.path().join("shipped")).unwrap().collect();
        assert_eq!(entries.len(), 1);
        for (path, content) in files() {
            assert_eq!(fs::read(root.path.join(&path)).unwrap(), content, "{}", path.display());
        }
    }

    #[test]
    fn failed_cache_creation_is_an_error_only_if_needed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "not a folder").unwrap();
        let mut config = Config::defaults(home.path(), &Env::at(home.path().to_string_lossy().into_owned()));
        assert!(check_cache(&config).is_ok());
        config.dirs.cache = file.join("cache");
        assert!(check_cache(&config).is_err());
        config.demo = true;
        assert!(check_cache(&config).is_err());
        config.demo = false;
        config.argument_roots = vec![home.path().to_owned()];
        assert!(check_cache(&config).is_ok());
    }
}
