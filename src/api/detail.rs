//! `describe` and `read_file`: the details of a skill, and the files of its bundle. Reads from disk: call it on a
//! blocking thread.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use super::lint::{Neighbors, checked};
use super::listing::{problems, summary};
use super::{Code, Error, FileContent, FileEntry, FileText, SkillDetail};
use skills_base::files::OpenError;
use skills_registry::Catalog;
use skills_skill::{BundleFile, Skill, lint};

/// Maximum number of bytes read of a text file.
const TEXT_LIMIT: u64 = 1 << 20;
/// Maximum number of bytes read of any other file.
const BINARY_LIMIT: usize = 512;

/// Returns the file of a skill as text.
///
/// # Errors
/// Returns `not_found` if it no longer exists, `invalid_configuration` if it cannot be read.
pub fn source(skill: &Skill) -> Result<String, Error> {
    let bytes = skill.read().map_err(|refusal| unreadable_file_error(skill, &refusal.into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns a skill of the catalog with everything in its folder.
///
/// # Errors
/// Returns `not_found` if its file no longer exists, `invalid_configuration` if it cannot be read.
pub fn describe(catalog: &Catalog, skill: &Arc<Skill>) -> Result<SkillDetail, Error> {
    let source = source(skill)?;
    let loser = catalog.shadowed_by_id(skill.id.as_str());
    let root = loser.map(|l| l.root).or_else(|| catalog.entry(skill.id.as_str()).map(|e| e.root));
    let mut summary = summary(catalog, skill, root.unwrap_or(usize::MAX), loser.map(|l| l.winner.as_path()));
    let mentions_skills = || {
        let found = lint::references(skills_skill::body(&source));
        found.iter().any(|found| found.kind == lint::ReferenceKind::Skill)
    };
    let needs_neighbors =
        !skill.requires.is_empty() || skill.root_dir.join("skill.yaml").is_file() || mentions_skills();
    let neighbors = needs_neighbors.then(|| Neighbors::of(catalog, 1));
    let (mut findings, _) = checked(skill, &source, neighbors.as_ref());
    findings.extend(loser.map(|loser| lint::shadowed(skill, &loser.winner, loser.identical)));
    summary.findings = problems(&findings);
    let files = files_of(skill);
    Ok(SkillDetail {
        summary,
        skill: Arc::clone(skill),
        body: skills_skill::body(&source).to_owned(),
        source,
        findings,
        files: files
            .into_iter()
            .map(|file| FileEntry { path: file.path, bytes: file.bytes, executable: file.executable })
            .collect(),
    })
}

/// Returns a file of a skill's bundle, by its relative path.
///
/// # Errors
/// Returns `path_escape` for a path that leaves the bundle, or `not_found`.
pub fn read_file(skill: &Skill, path: &str) -> Result<FileContent, Error> {
    let bundle = skill.open().map_err(|e| unreadable_file_error(skill, &e))?;
    let (file, metadata) = bundle.open_file(path).map_err(|refusal| refused(skill, path, &refusal))?;
    let mut bytes = Vec::new();
    file.take(TEXT_LIMIT).read_to_end(&mut bytes).map_err(|e| unreadable(path, &e))?;
    let content = as_text(bytes, metadata.len());
    Ok(FileContent {
        path: path.to_owned(),
        bytes: metadata.len(),
        media_type: media_type(path, &content).to_owned(),
        content,
    })
}

/// Returns text if it is UTF-8 without a zero byte (a character truncated by the limit is dropped), else its first
/// bytes.
fn as_text(mut bytes: Vec<u8>, total_bytes: u64) -> FileText {
    let valid = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        // Only the end of a truncated file may be incomplete.
        Err(e) if e.error_len().is_none() && total_bytes > bytes.len() as u64 => e.valid_up_to(),
        Err(_) => 0,
    };
    if (valid > 0 || bytes.is_empty()) && !bytes[..valid].contains(&0) {
        bytes.truncate(valid);
        if let Ok(text) = String::from_utf8(bytes) {
            return FileText::Text(text);
        }
        return FileText::Text(String::new());
    }
    bytes.truncate(BINARY_LIMIT);
    FileText::Binary(bytes)
}

/// Returns the media type by extension, checked against the content.
fn media_type(path: &str, content: &FileText) -> &'static str {
    media_type_of(path, matches!(content, FileText::Text(_)))
}

/// Returns the media type by extension, checked against whether the content is text.
pub fn media_type_of(path: &str, text: bool) -> &'static str {
    let extension =
        Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let by_name = match extension.as_str() {
        "md" | "markdown" => "text/markdown",
        "py" => "text/x-python",
        "sh" | "bash" => "text/x-shellscript",
        "js" | "mjs" | "cjs" => "text/javascript",
        "ts" => "text/x-typescript",
        "rs" => "text/x-rust",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "ttf" => "font/ttf",
        "wasm" => "application/wasm",
        _ => "",
    };
    let textual = by_name.starts_with("text/")
        || matches!(
            by_name,
            "application/json" | "application/yaml" | "application/toml" | "application/xml"
        )
        || by_name == "image/svg+xml";
    match text {
        true if by_name.is_empty() || !textual => "text/plain",
        false if by_name.is_empty() || textual => "application/octet-stream",
        _ => by_name,
    }
}

fn unreadable_file_error(skill: &Skill, error: &std::io::Error) -> Error {
    let code = if error.kind() == std::io::ErrorKind::NotFound {
        Code::NotFound
    } else {
        Code::InvalidConfiguration
    };
    Error::new(code, format!("cannot read the file of {}: {}: {error}", skill.id, skill.location.display()))
}

fn unreadable(path: &str, error: &std::io::Error) -> Error {
    Error::new(Code::InvalidConfiguration, format!("{path}: {error}"))
}

/// Returns why a file of a bundle cannot be opened.
pub fn refused(skill: &Skill, path: &str, refusal: &OpenError) -> Error {
    let code = match refusal {
        OpenError::NotFound { .. } => Code::NotFound,
        OpenError::NotInside { .. } | OpenError::Link { .. } | OpenError::PseudoFileSystem { .. } => {
            Code::PathEscape
        }
        OpenError::NotRegular { .. } => Code::InvalidRequest,
        OpenError::TooLarge { .. } => Code::PayloadTooLarge,
        OpenError::Io { .. } => Code::InvalidConfiguration,
    };
    let suggestions = match code {
        Code::NotFound => super::names::near(path, files_of(skill).iter().map(|file| file.path.as_str())),
        _ => Vec::new(),
    };
    Error { suggestions, ..Error::new(code, format!("{refusal} (skill {})", skill.id)) }
}

/// Returns the resource files of a skill; empty if its folder cannot be read.
fn files_of(skill: &Skill) -> Vec<BundleFile> {
    skill.open().and_then(|bundle| skills_skill::bundle_files(&bundle)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing;

    fn bundle(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Skill) {
        let dir = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let mut skill = testing::skill("demo", "demo");
        skill.root_dir = dir.path().to_owned();
        skill.location = dir.path().join("SKILL.md");
        (dir, skill)
    }

    #[test]
    fn text_and_binary_are_distinguished() {
        let (_dir, skill) =
            bundle(&[("a.py", b"print(1)\n"), ("b.png", b"\x89PNG\0\0"), ("c.py", b"\xff\xfe")]);
        let read = |path| read_file(&skill, path).unwrap();
        assert_eq!(
            (read("a.py").media_type.as_str(), read("b.png").media_type.as_str()),
            ("text/x-python", "image/png")
        );
        assert_eq!(read("a.py").content, FileText::Text("print(1)\n".into()));
        assert_eq!(read("c.py").media_type, "application/octet-stream");
    }

    #[test]
    fn path_outside_the_bundle_is_rejected_with_a_suggestion() {
        let (_dir, skill) = bundle(&[("references/layout.md", b"x")]);
        assert_eq!(read_file(&skill, "../x").unwrap_err().code, Code::PathEscape);
        let error = read_file(&skill, "references/layuot.md").unwrap_err();
        assert_eq!(
            (error.code, error.suggestions),
            (Code::NotFound, vec!["references/layout.md".to_owned()])
        );
    }

    #[test]
    fn large_text_is_truncated_between_characters() {
        let text_value = "é".repeat(10);
        assert_eq!(as_text(text_value.as_bytes()[..5].to_vec(), 20), FileText::Text("éé".into()));
        assert!(matches!(as_text(text_value.as_bytes()[..5].to_vec(), 5), FileText::Binary(_)));
    }
}
