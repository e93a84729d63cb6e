//! Reads the files of one registry folder. They are untrusted: links are not followed, and depth, number and size of
//! files are limited.

use std::path::{Path, PathBuf};

use super::{CapabilityFolder, diagnostics};
use skills_base::files::{Entry, Folder};
use skills_skill::contract::{Binding, Capability, Service, parse_binding, parse_capability, parse_service};
use skills_skill::{Digest, Finding, Severity, is_main_file};

/// Maximum size of a file in bytes; the largest public ones have some ten thousand.
const MAX_FILE: u64 = 1 << 20;
/// Maximum depth of folders below `bindings/` or `services/`.
const MAX_DEPTH: usize = 8;
/// Maximum number of files of one kind per folder.
const MAX_FILES: usize = 20_000;

/// The result of reading a file.
pub(super) enum CatalogEntry {
    Capability(Capability),
    Binding(Binding),
    Service(Service),
    /// A file that was parsed, with its digest.
    Source(PathBuf, Digest),
    Finding(Finding),
}

#[derive(Clone, Copy)]
enum EntryKind {
    Capability,
    Binding,
    Service,
}

/// Reads everything in a folder, in path order.
pub(super) fn read(place: &CapabilityFolder) -> Vec<CatalogEntry> {
    let kinds = [
        (EntryKind::Capability, "capabilities"),
        (EntryKind::Binding, "bindings"),
        (EntryKind::Service, "services"),
    ];
    let mut parts = Vec::new();
    let Ok(top) = Folder::follow(&place.dir) else { return parts };
    for (kind, name) in kinds {
        let mut files = Vec::new();
        let folder = place.dir.join(name);
        let real = top.entries("").is_ok_and(|all| all.iter().any(|one| one.name == name && !one.is_link));
        let cut = real && list(&top, name, 0, &mut files);
        if cut {
            parts.push(CatalogEntry::Finding(diagnostics::file_finding(
                "registry-too-large",
                Severity::Error,
                &folder,
                format!(
                    "more than {MAX_FILES} files, or folders deeper than {MAX_DEPTH}; the rest is ignored"
                ),
                "Split the registry into several roots",
            )));
        }
        // Not on shared threads: launches and approvals do not wait for reports, and a check of a skill that holds a
        // lock while the files are read does not execute another check that needs the lock.
        parts.extend(files.iter().flat_map(|path| read_file(kind, &top, path, &place.dir.join(path))));
    }
    parts
}

/// Lists the YAML files below a folder, sorted; returns true if there were too many. Names that begin with `_` or `.`
/// are indexes and private files of a registry, and `specs` contains interface descriptions in another format.
fn list(top: &Folder, folder: &str, depth: usize, into: &mut Vec<String>) -> bool {
    let Ok(mut entries) = top.entries(folder) else { return false };
    // A bundle, even one that is named like a folder of the registry, is not a part of it.
    if entries.iter().any(|entry| is_main_file(&entry.name)) {
        return false;
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for Entry { name, is_link } in entries {
        if is_link || name.starts_with(['_', '.']) {
            continue;
        }
        let path = format!("{folder}/{name}");
        let Ok(metadata) = top.metadata(&path) else { continue };
        if metadata.is_dir() && name != "specs" {
            if depth >= MAX_DEPTH || list(top, &path, depth + 1, into) {
                return true;
            }
        } else if metadata.is_file()
            && Path::new(&name).extension().is_some_and(|end| end == "yaml" || end == "yml")
        {
            if into.len() >= MAX_FILES {
                return true;
            }
            into.push(path);
        }
    }
    false
}

/// Reads one file; `file` is its location for findings.
fn read_file(kind: EntryKind, top: &Folder, path: &str, file: &Path) -> Vec<CatalogEntry> {
    let source = match top.read_text(path, MAX_FILE) {
        Ok(source) => source,
        Err(error) => {
            return vec![CatalogEntry::Finding(diagnostics::file_finding(
                "registry-file-unreadable",
                Severity::Error,
                file,
                format!("cannot read the file: {error}"),
                "Make it a readable UTF-8 text file",
            ))];
        }
    };
    let (part, findings) = match kind {
        EntryKind::Capability => {
            let (found, findings) = parse_capability(file, &source);
            (found.map(CatalogEntry::Capability), findings)
        }
        EntryKind::Binding => {
            let (found, findings) = parse_binding(file, &source);
            (found.map(CatalogEntry::Binding), findings)
        }
        EntryKind::Service => {
            let (found, findings) = parse_service(file, &source);
            (found.map(CatalogEntry::Service), findings)
        }
    };
    let remarks = findings
        .into_iter()
        .map(|finding| CatalogEntry::Finding(Finding { file: file.to_owned(), ..finding }));
    let source = CatalogEntry::Source(file.to_owned(), Digest::of(source.as_bytes()));
    part.into_iter().chain([source]).chain(remarks).collect()
}
