//! Checks that relative links of a body lead to files of the bundle.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag};

use super::rules;
use crate::finding_builder::Notes;

/// Checks inline and reference links, each destination once. Skips code, autolinks, URLs, anchors and placeholders.
/// Links that a comment ignores are reported one by one, so that the comment applies to them.
pub(super) fn check(
    body: &str,
    start: usize,
    root_dir: &Path,
    is_ignored: impl Fn(&rules::Rule, usize) -> bool,
    notes: &mut Notes<'_>,
) {
    let mut seen = HashSet::new();
    let mut broken = Vec::new();
    for (event, at) in Parser::new_ext(body, Options::ENABLE_TABLES).into_offset_iter() {
        let Event::Start(Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. }) =
            event
        else {
            continue;
        };
        let checked = matches!(
            link_type,
            LinkType::Inline | LinkType::Reference | LinkType::Collapsed | LinkType::Shortcut
        );
        let Some(path) = relative_path(&dest_url).filter(|path| checked && seen.insert(path.clone())) else {
            continue;
        };
        let at = at.start + start..at.end + start;
        if !root_dir.join(&path).exists() {
            broken.push((at, dest_url));
        } else if leaves(&path) {
            let message = format!("the link to `{dest_url}` points outside the bundle");
            notes.add(&rules::LINK_LEAVES_BUNDLE, None, at, message);
        }
    }
    let (ignored, broken): (Vec<_>, Vec<_>) =
        broken.into_iter().partition(|(at, _)| is_ignored(&rules::BROKEN_LINK, at.start));
    report(ignored, notes);
    // Reports one finding instead of many if the SKILL.md was copied without its files.
    if let [(at, first), _, ..] = broken.as_slice()
        && is_alone(root_dir)
    {
        let message = format!(
            "{} links, such as the one to `{first}`, are broken: the folder contains only SKILL.md",
            broken.len()
        );
        notes.add(&rules::RESOURCES_MISSING, None, at.clone(), message);
        return;
    }
    report(broken, notes);
}

fn report(broken: Vec<(Range<usize>, CowStr<'_>)>, notes: &mut Notes<'_>) {
    for (at, url) in broken {
        notes.add(&rules::BROKEN_LINK, None, at, format!("broken link to `{url}`"));
    }
}

/// Returns whether a bundle contains only its main file.
pub(super) fn is_alone(root_dir: &Path) -> bool {
    std::fs::read_dir(root_dir).is_ok_and(|entries| entries.flatten().take(2).count() < 2)
}

/// Returns the path of a link, relative to the bundle; `None` if it is not a path, or an example of one.
fn relative_path(url: &str) -> Option<PathBuf> {
    let path = url.split(['#', '?']).next().unwrap_or_default();
    let has_scheme = path.split('/').next().unwrap_or_default().contains(':');
    let placeholder = path.contains(['<', '>', '{', '}', '$', '*', '[', ']', '|', ' ', '"', '`'])
        || path.contains("...")
        || path.contains('…')
        || path.contains("path/to")
        || path.contains("example.")
        || path.contains("YYYY");
    // A single word (`url`, `link`) is a placeholder; a file has an extension, a folder a slash.
    let named = path.contains(['/', '.']) || path.contains("LICENSE");
    if path.is_empty() || path.starts_with(['/', '~']) || has_scheme || placeholder || !named {
        return None;
    }
    Some(PathBuf::from(percent_decoded(path)))
}

/// Returns whether a path leads above the folder in which it starts.
fn leaves(path: &Path) -> bool {
    let mut depth = 0_i32;
    path.components().any(|part| {
        depth += match part {
            Component::ParentDir => -1,
            Component::Normal(_) => 1,
            _ => 0,
        };
        depth < 0
    })
}

fn percent_decoded(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        let decoded = hex.filter(|_| bytes[at] == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(decoded.unwrap_or(bytes[at]));
        at += if decoded.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_are_checked() {
        for url in [
            "https://x.y/z.md",
            "mailto:a@b.c",
            "#part",
            "/abs.md",
            "url",
            "",
            "path/to/file.md",
            "docs/{name}.md",
        ] {
            assert_eq!(relative_path(url), None, "{url}");
        }
        assert_eq!(relative_path("a%20b.md#part"), Some(PathBuf::from("a b.md")));
        assert_eq!(relative_path("references/"), Some(PathBuf::from("references/")));
    }

    #[test]
    fn links_to_missing_files_and_out_of_the_bundle_are_noted() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("bundle")).unwrap();
        std::fs::write(dir.path().join("bundle/there.md"), "x").unwrap();
        std::fs::write(dir.path().join("bundle/SKILL.md"), "x").unwrap();
        std::fs::write(dir.path().join("up.md"), "x").unwrap();
        let body = "[a](there.md) [b](gone.md#x) [c](../up.md) [d][r] `[e](code.md)`\n\n```\n[f](code.md)\n```\n\n[r]: ./ref.md\n";
        let mut notes = Notes::new(Path::new("SKILL.md"), body);
        check(body, 0, &dir.path().join("bundle"), |_, _| false, &mut notes);
        let found = notes.finish();
        let found: Vec<_> = found.iter().map(|f| (f.code.as_str(), f.span.unwrap().offset)).collect();
        assert_eq!(found, [("broken-link", 14), ("link-leaves-bundle", 29), ("broken-link", 43)]);
        std::fs::remove_file(dir.path().join("bundle/there.md")).unwrap();
        let mut notes = Notes::new(Path::new("SKILL.md"), body);
        check(body, 0, &dir.path().join("bundle"), |_, _| false, &mut notes);
        let codes: Vec<_> = notes.finish().into_iter().map(|f| f.code).collect();
        assert_eq!(codes, ["resources-missing", "link-leaves-bundle"]);
    }
}
