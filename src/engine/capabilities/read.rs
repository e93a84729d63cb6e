//! Reads the files of one registry folder. They come from strangers: no link is followed, and depth, number and size
//! have bounds.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::{Place, remarks};
use crate::skill::contract::{Binding, Capability, Service, parse_binding, parse_capability, parse_service};
use crate::skill::{Finding, Severity, read_regular_text};

/// Bytes of one file; the largest public ones have some ten thousand.
const MAX_FILE: u64 = 1 << 20;
/// Folders below `bindings/` or `services/`.
const MAX_DEPTH: usize = 8;
/// Files of one kind in one place.
const MAX_FILES: usize = 20_000;

/// What a file gave.
pub(super) enum Part {
    Capability(Capability),
    Binding(Binding),
    Service(Service),
    Remark(Finding),
}

#[derive(Clone, Copy)]
enum Kind {
    Capability,
    Binding,
    Service,
}

/// Everything in a place, in the order of its paths.
pub(super) fn read(place: &Place) -> Vec<Part> {
    let kinds =
        [(Kind::Capability, "capabilities"), (Kind::Binding, "bindings"), (Kind::Service, "services")];
    let mut parts = Vec::new();
    for (kind, name) in kinds {
        let mut files = Vec::new();
        let folder = place.dir.join(name);
        let real = folder.symlink_metadata().is_ok_and(|found| found.is_dir());
        let cut = real && list(&folder, 0, &mut files);
        if cut {
            parts.push(Part::Remark(remarks::remark(
                "registry-too-large",
                Severity::Error,
                &folder,
                format!(
                    "more than {MAX_FILES} files, or folders deeper than {MAX_DEPTH}; the rest is left out"
                ),
                "Split the registry into several roots",
            )));
        }
        let found: Vec<Vec<Part>> = files.par_iter().map(|file| one(kind, file)).collect();
        parts.extend(found.into_iter().flatten());
    }
    parts
}

/// The YAML files below a folder, sorted; true when there were too many. Names with `_` or `.` in front are indexes
/// and private matters of a registry, and `specs` holds descriptions of interfaces in another form.
fn list(folder: &Path, depth: usize, into: &mut Vec<PathBuf>) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
        let name = name.to_string_lossy();
        if name.starts_with(['_', '.']) {
            continue;
        }
        if kind.is_dir() && name != "specs" {
            if depth >= MAX_DEPTH || list(&entry.path(), depth + 1, into) {
                return true;
            }
        } else if kind.is_file() && (name.ends_with(".yaml") || name.ends_with(".yml")) {
            if into.len() >= MAX_FILES {
                return true;
            }
            into.push(entry.path());
        }
    }
    false
}

fn one(kind: Kind, file: &Path) -> Vec<Part> {
    let source = match read_regular_text(file, MAX_FILE) {
        Ok(source) => source,
        Err(error) => {
            return vec![Part::Remark(remarks::remark(
                "registry-file-unreadable",
                Severity::Error,
                file,
                format!("the file cannot be read: {error}"),
                "Make it a readable file of UTF-8 text",
            ))];
        }
    };
    let (part, findings) = match kind {
        Kind::Capability => {
            let (found, findings) = parse_capability(file, &source);
            (found.map(Part::Capability), findings)
        }
        Kind::Binding => {
            let (found, findings) = parse_binding(file, &source);
            (found.map(Part::Binding), findings)
        }
        Kind::Service => {
            let (found, findings) = parse_service(file, &source);
            (found.map(Part::Service), findings)
        }
    };
    let remarks =
        findings.into_iter().map(|finding| Part::Remark(Finding { file: file.to_owned(), ..finding }));
    part.into_iter().chain(remarks).collect()
}
