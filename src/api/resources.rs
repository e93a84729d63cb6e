//! Skills as resources for remote hosts: every file of a bundle with its digest and content, and the verbatim
//! frontmatter.
//!
//! Limits and rules are those of the MCP extension for skills
//! (<https://modelcontextprotocol.io/extensions/skills/overview>): 512 files and 16 MiB per skill. Hidden files and
//! `node_modules` are excluded.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Code, Connection, Error, SharedClient, detail};
use crate::work::run_blocking;
use skills_base::files::Folder;
use skills_session::{ToolError, read};
use skills_skill::{Digest, Skill};

/// Maximum number of files of a skill.
pub const MAX_FILES: usize = 512;
/// Maximum total size of a skill's files in bytes.
pub const MAX_BYTES: u64 = 16 << 20;
/// Name of the main file for hosts, whatever its spelling on disk.
pub const MAIN: &str = "SKILL.md";

/// A file in the manifest of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// Path inside the skill, with `/` as separator.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 of the bytes.
    pub digest: Digest,
}

/// The manifest of a skill: all of its files, and its frontmatter.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillManifest {
    /// All fields of the frontmatter; `None` if it is not readable YAML.
    pub frontmatter: Option<Map<String, Value>>,
    /// All files, the main one first.
    pub files: Vec<ManifestFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Media type by extension and content.
    pub media_type: &'static str,
    /// SHA-256 of the bytes.
    pub digest: Digest,
    pub bytes: Vec<u8>,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Path inside the skill.
    pub path: String,
    pub folder: bool,
    /// Media type by extension; empty for folders.
    pub media_type: &'static str,
}

/// Returns the path of a skill's main file, as hosts know it.
pub fn main_path(skill: &Skill) -> &str {
    match skill.location.file_name().and_then(|name| name.to_str()) {
        Some(name) if !name.eq_ignore_ascii_case(MAIN) => name,
        _ => MAIN,
    }
}

/// Returns the manifest of a skill, with digests computed now.
///
/// # Errors
/// Returns `payload_too_large` beyond the limits; `not_found` if the skill no longer exists; `not_implemented` if the
/// core is remote.
pub async fn manifest(core: &SharedClient, skill: &Arc<Skill>) -> Result<SkillManifest, Error> {
    here(core)?;
    let skill = Arc::clone(skill);
    run_blocking(move || {
        let mut files = Vec::new();
        let mut left = MAX_BYTES;
        for path in paths(&skill)? {
            let bytes = bytes(&skill, &path, left)?;
            left = left.saturating_sub(bytes.len() as u64);
            files.push(ManifestFile { size: bytes.len() as u64, digest: Digest::of(&bytes), path });
        }
        let source = detail::source(&skill)?;
        Ok(SkillManifest { frontmatter: skills_skill::frontmatter_json(&source), files })
    })
    .await
}

/// Returns a complete file of a skill.
///
/// # Errors
/// Returns `path_escape` for a path that is hidden or points outside the skill; `not_found`; `payload_too_large`;
/// `not_implemented` if the core is remote.
pub async fn content(core: &SharedClient, skill: &Arc<Skill>, path: &str) -> Result<Content, Error> {
    here(core)?;
    let (skill, path) = (Arc::clone(skill), path.to_owned());
    run_blocking(move || {
        let bytes = bytes(&skill, &path, MAX_BYTES)?;
        let text = std::str::from_utf8(&bytes).is_ok_and(|text| !text.contains('\0'));
        Ok(Content { media_type: detail::media_type_of(&path, text), digest: Digest::of(&bytes), bytes })
    })
    .await
}

/// Returns the paths of all files of a skill, the main one first.
pub async fn files(core: &SharedClient, skill: &Arc<Skill>) -> Result<Vec<String>, Error> {
    here(core)?;
    let skill = Arc::clone(skill);
    run_blocking(move || paths(&skill)).await
}

/// Returns the entries of a folder of a skill; of the skill's own folder if `folder` is empty.
///
/// # Errors
/// Returns `not_found` for anything other than a folder with files; otherwise same as [`manifest`].
pub async fn children(core: &SharedClient, skill: &Arc<Skill>, folder: &str) -> Result<Vec<Child>, Error> {
    let files = files(core, skill).await?;
    let found = within(&files, folder);
    if found.is_empty() {
        let message = format!("{} has no folder {folder:?}", skill.id);
        return Err(Error::new(Code::NotFound, message));
    }
    Ok(found)
}

fn within(files: &[String], folder: &str) -> Vec<Child> {
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let below = files.iter().filter_map(|path| path.strip_prefix(&prefix));
    let mut seen = BTreeSet::new();
    below
        .filter_map(|rest| match rest.split_once('/') {
            Some((name, _)) => seen.insert(name).then_some((name, true)),
            None => Some((rest, false)),
        })
        .map(|(name, folder)| Child {
            path: format!("{prefix}{name}"),
            folder,
            media_type: if folder { "" } else { detail::media_type_of(name, is_textual(name)) },
        })
        .collect()
}

/// Returns whether a file name suggests text; its content is not read.
fn is_textual(name: &str) -> bool {
    let is_txt = Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("txt"));
    is_txt || detail::media_type_of(name, true) != "text/plain"
}

fn here(core: &SharedClient) -> Result<(), Error> {
    match core.connection() {
        Connection::Local => Ok(()),
        Connection::Remote { address, .. } => {
            let message = format!("files of skills are served by {address}");
            Err(Error::new(Code::NotImplemented, message))
        }
    }
}

fn bytes(skill: &Skill, path: &str, most: u64) -> Result<Vec<u8>, Error> {
    let own = skill.location.file_name().and_then(|name| name.to_str()).unwrap_or(MAIN);
    let place = if path == main_path(skill) { own } else { path };
    if place == own {
        let bytes = skill.read().map_err(|refusal| resource_error(skill, &read::refused(&refusal)))?;
        if bytes.len() as u64 > most {
            let message = format!("{path} of {} has {} bytes; the maximum is {most}", skill.id, bytes.len());
            return Err(Error::new(Code::PayloadTooLarge, message));
        }
        return Ok(bytes);
    }
    read::read_all(&opened(skill)?, place, most).map_err(|error| resource_error(skill, &error))
}

fn opened(skill: &Skill) -> Result<Folder, Error> {
    skill.open().map_err(|error| {
        Error::new(Code::NotFound, format!("{}: {}: {error}", skill.id, skill.root_dir.display()))
    })
}

fn resource_error(skill: &Skill, error: &ToolError) -> Error {
    let code = error.code.to_string().parse().unwrap_or(Code::RuntimeError);
    Error::new(code, format!("{} ({})", error.message, skill.id))
}

/// Returns every file, including those of nested skills: for the enclosing skill those are ordinary files.
fn paths(skill: &Skill) -> Result<Vec<String>, Error> {
    let bundle = opened(skill)?;
    let main = main_path(skill);
    let (mut found, mut folders) = (Vec::new(), vec![String::new()]);
    while let Some(prefix) = folders.pop() {
        let Ok(entries) = bundle.entries(prefix.trim_end_matches('/')) else { continue };
        for entry in entries {
            if entry.name.starts_with('.') || entry.name == "node_modules" {
                continue;
            }
            let path = format!("{prefix}{}", entry.name);
            let Ok(metadata) = bundle.metadata(&path) else { continue };
            if metadata.is_file() {
                found.push(path);
            } else if metadata.is_dir() && !entry.is_link {
                // A link to a folder inside would list the same files twice.
                folders.push(format!("{path}/"));
            }
        }
        if found.len() > MAX_FILES {
            let message = format!("{} has more than {MAX_FILES} files, the maximum", skill.id);
            return Err(Error::new(Code::PayloadTooLarge, message));
        }
    }
    let own = skill.location.file_name().and_then(|name| name.to_str()).unwrap_or(MAIN);
    found.retain(|path| path != own && path != main);
    found.sort();
    found.insert(0, main.to_owned());
    Ok(found)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, clippy::assigning_clones, reason = "a test fails by a panic")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing;

    fn bundle(main: &str) -> (tempfile::TempDir, Skill) {
        let dir = tempfile::tempdir().unwrap();
        for path in [main, "references/a.md", "inner/SKILL.md", ".git/config", "references/.secret"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "---\nname: demo\ndescription: x\n---\nbody\n").unwrap();
        }
        symlink("references/a.md", dir.path().join("inside.md")).unwrap();
        symlink("/etc/hostname", dir.path().join("outside")).unwrap();
        symlink(".", dir.path().join("again")).unwrap();
        let mut skill = testing::skill("demo", "demo");
        skill.root_dir = dir.path().to_owned();
        skill.location = dir.path().join(main);
        (dir, skill)
    }

    #[test]
    fn every_visible_file_of_the_bundle_is_listed_once() {
        let (_dir, skill) = bundle("SKILL.md");
        assert_eq!(paths(&skill).unwrap(), ["SKILL.md", "inner/SKILL.md", "inside.md", "references/a.md"]);
        for path in ["outside", ".git/config", "../x", "references/.secret"] {
            assert_eq!(bytes(&skill, path, 100).unwrap_err().code, Code::PathEscape, "{path}");
        }
        assert_eq!(bytes(&skill, "references/a.md", 3).unwrap_err().code, Code::PayloadTooLarge);
    }

    #[test]
    fn main_file_in_other_case_has_its_standard_name() {
        let (_dir, skill) = bundle("skill.md");
        assert_eq!(paths(&skill).unwrap()[0], "SKILL.md");
        assert!(!bytes(&skill, "SKILL.md", 100).unwrap().is_empty());
    }

    #[test]
    fn folder_lists_its_direct_children_only() {
        let files = ["SKILL.md", "a/b.md", "a/c/d.png", "a/c/e.png"].map(str::to_owned);
        let shown = |folder: &str| -> Vec<(String, bool)> {
            within(&files, folder).into_iter().map(|child| (child.path, child.folder)).collect()
        };
        assert_eq!(shown(""), [("SKILL.md".to_owned(), false), ("a".to_owned(), true)]);
        assert_eq!(shown("a"), [("a/b.md".to_owned(), false), ("a/c".to_owned(), true)]);
        assert!(shown("b").is_empty());
        assert_eq!(within(&files, "a/c")[0].media_type, "image/png");
    }
}
