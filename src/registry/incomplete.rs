//! Folders and files in a client's folder of skills that no client offers, because there is no SKILL.md. They are
//! reported, since clients skip a misplaced or misnamed file without a message.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::tree::{ScannedRoot, Tree};
use super::walk::{main_file, passes_skipped};
use super::{RootOrigin, RootState};
use skills_base::files::{MAX_DEPTH, canonicalize, open_regular};
use skills_base::number::counted;
use skills_skill::lint::rules;
use skills_skill::{Finding, RefusalReason, RejectedBundle, SkillId, is_main_file};

/// The file that clients read.
const SKILL_FILE: &str = "SKILL.md";
/// Maximum number of found files that are named.
const MAX_NAMED: usize = 3;
/// Maximum number of entries that are searched for a bundle below a folder.
const MAX_ENTRIES: usize = 1_000;
/// Ends of the names of archives.
const ARCHIVES: [&str; 8] = [".zip", ".skill", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".7z"];
/// Number of bytes that show whether a file begins with frontmatter, after a byte order mark.
const HEAD_BYTES: usize = 6;

/// Returns the direct children of the root that could have been meant as a skill: folders without a bundle at any
/// depth or that cannot be read, broken links, Markdown files with frontmatter, files named like a skill, and archives
/// that are not unpacked next to it. Only in folders that belong to a client: elsewhere,
/// children can be anything.
pub(super) fn incomplete(tree: &Tree, root: usize) -> Vec<RejectedBundle> {
    let ScannedRoot { spec, real, .. } = &tree.roots[root];
    let is_of_client = matches!(spec.origin, RootOrigin::Project { .. } | RootOrigin::User { .. });
    let is_first = |real| tree.roots[..root].iter().all(|other| other.real.as_ref() != Some(real));
    // The children of a root that is a bundle itself are its resources.
    if !is_of_client || !real.as_ref().is_some_and(is_first) || main_file(&spec.path).is_some() {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(&spec.path) else { return Vec::new() };
    let with_bundle = tree.children_with_bundles(root);
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
        let path = entry.path();
        let is_known = with_bundle.contains(OsStr::new(&name));
        if is_known || name.starts_with('.') || passes_skipped(Path::new(&name)) {
            continue;
        }
        let place = format!("{}/{name}", spec.label);
        if kind.is_dir() {
            found.extend(folder(&path, &name, &place));
        } else if kind.is_symlink() && fs::metadata(&path).is_err() {
            found.push(rejected(
                &path,
                &name,
                format!("{place} is a broken symbolic link"),
                link_help(&path),
            ));
        } else if let Some(stem) = name.strip_suffix(".md").filter(|_| has_frontmatter(&path)) {
            let message = format!("{place} is a file; clients read only {SKILL_FILE} in a folder");
            let help = format!("Move it to {stem}/{SKILL_FILE}.");
            found.push(rejected(&path, stem, message, Some(help)));
        } else if kind.is_file()
            && let Some(stem) = ARCHIVES.iter().find_map(|end| name.strip_suffix(end))
        {
            let is_unpacked = path.with_file_name(stem).join(SKILL_FILE).is_file();
            if !is_unpacked && !with_bundle.contains(OsStr::new(stem)) {
                let message = format!("{place} is an archive; clients read only {SKILL_FILE} in a folder");
                let help = format!("Unpack it, so that there is {stem}/{SKILL_FILE}.");
                found.push(rejected(&path, stem, message, Some(help)));
            }
        } else if kind.is_file() && is_skill_name(&name) {
            let message = format!("{place} is a file; clients read only {SKILL_FILE} in a folder");
            let help =
                format!("Replace it with a folder of the same name, and move it to {name}/{SKILL_FILE}.");
            found.push(rejected(&path, &name, message, Some(help)));
        }
    }
    found.sort_by(|a, b| a.location.cmp(&b.location));
    found
}

/// Returns a client's root in the user's folders that is a broken symbolic link or a file: no client finds a skill in it.
pub(super) fn unusable(tree: &Tree, root: usize) -> Option<RejectedBundle> {
    let ScannedRoot { spec, state: RootState::Unreadable(_), .. } = &tree.roots[root] else { return None };
    let (path, label) = (&spec.path, &spec.label);
    let is_of_client = match spec.origin {
        RootOrigin::User { .. } => true,
        // A file named `skills` in a project can be anything.
        RootOrigin::Project { .. } => path.parent()?.file_name()?.to_str()?.starts_with('.'),
        RootOrigin::Argument | RootOrigin::Config | RootOrigin::Shipped => false,
    };
    let name = path.file_name().and_then(OsStr::to_str).filter(|_| is_of_client)?;
    let (message, help) = match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => return None,
        // The target may exist.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
        Ok(_) => (
            format!("{label} is a file; clients read a folder with this name"),
            Some("Replace it with a folder that contains a folder for each skill.".to_owned()),
        ),
        Err(_) => (format!("{label} is a broken symbolic link"), Some(link_help(path)?)),
    };
    Some(rejected(path, name, message, help))
}

/// Returns the folders with skills next to a client's root that only differ from its name in case or by a final `s`, such
/// as `~/.claude/skill`: no client reads them.
pub(super) fn misnamed(tree: &Tree, root: usize) -> Vec<RejectedBundle> {
    let ScannedRoot { spec, real, .. } = &tree.roots[root];
    let is_of_client = matches!(spec.origin, RootOrigin::Project { .. } | RootOrigin::User { .. });
    let (Some(parent), Some(expected)) =
        (spec.path.parent().filter(|_| is_of_client), spec.path.file_name().and_then(OsStr::to_str))
    else {
        return Vec::new();
    };
    let simplified = |name: &str| name.to_lowercase().trim_end_matches('s').to_owned();
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = entry.path();
        let is_root = |path: &Path| tree.roots.iter().any(|root| root.spec.path == path);
        // On file systems that ignore case, both names are one folder.
        let is_same = || real.is_some() && canonicalize(&path).ok() == *real;
        if name == expected || simplified(&name) != simplified(expected) || is_root(&path) || is_same() {
            continue;
        }
        let Ok(children) = fs::read_dir(&path) else { continue };
        let skills = children
            .flatten()
            .take(MAX_ENTRIES)
            .filter(|child| child.path().join(SKILL_FILE).is_file())
            .count();
        if skills > 0 {
            let place = Path::new(&spec.label).with_file_name(&name);
            let skills = counted(skills, "skill");
            let message =
                format!("{} with {skills} is not read; clients read {}", place.display(), spec.label);
            let help = format!("Rename the folder to {expected}, or move the skills there.");
            found.push(rejected(&path, &name, message, Some(help)));
        }
    }
    found.sort_by(|a, b| a.location.cmp(&b.location));
    found
}

/// Returns the finding about a folder; `None` if there is a bundle in it, or too much to tell.
fn folder(path: &Path, name: &str, place: &str) -> Option<RejectedBundle> {
    let file = path.join(SKILL_FILE);
    if fs::symlink_metadata(&file).is_ok() {
        let is_broken = fs::metadata(&file).is_err();
        let message = format!("{SKILL_FILE} in {place} is a broken symbolic link");
        return is_broken.then(|| rejected(&file, name, message, link_help(&file)));
    }
    if let Err(error) = fs::read_dir(path)
        && error.kind() == ErrorKind::PermissionDenied
    {
        let rule = &rules::UNREADABLE;
        let help = Some("Check the permissions of the folder.".to_owned());
        let mut bundle = rejected(path, name, format!("cannot read {place}: {error}"), help);
        bundle.reason = RefusalReason::Unreadable;
        for finding in &mut bundle.findings {
            (finding.code, finding.severity) = (rule.code.to_owned(), rule.severity);
        }
        return Some(bundle);
    }
    if may_have_bundle(path, 1, &mut 0) {
        return None;
    }
    let mut names: Vec<String> = fs::read_dir(path)
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    let content = match names.len() {
        0 => "the folder is empty".to_owned(),
        count => {
            let more =
                if count > MAX_NAMED { format!(" and {} more", count - MAX_NAMED) } else { String::new() };
            format!("found {}{more}", names[..count.min(MAX_NAMED)].join(", "))
        }
    };
    let is_meant = |name: &&String| name.to_lowercase().starts_with("skill");
    let help = names.iter().find(is_meant).map(|wrong| format!("Rename {wrong} to {SKILL_FILE}."));
    Some(rejected(&file, name, format!("no {SKILL_FILE} in {place}; {content}"), help))
}

/// Returns what to do about a broken link.
fn link_help(link: &Path) -> Option<String> {
    let target = fs::read_link(link).ok()?;
    if link.parent().is_some_and(|folder| folder.join(&target) == link) {
        return Some("Remove the link: it points to itself.".to_owned());
    }
    Some(format!("Correct or remove the link to {}.", target.display()))
}

/// Returns whether a main file is below a folder, or what is below it was not searched completely.
fn may_have_bundle(folder: &Path, depth: usize, searched: &mut usize) -> bool {
    // Each level keeps a folder open.
    if depth > MAX_DEPTH {
        return true;
    }
    let Ok(entries) = fs::read_dir(folder) else { return true };
    for entry in entries.flatten() {
        *searched += 1;
        let name = entry.file_name();
        if *searched > MAX_ENTRIES || name.to_str().is_some_and(is_main_file) {
            return true;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder
            && !passes_skipped(Path::new(&name))
            && may_have_bundle(&entry.path(), depth + 1, searched)
        {
            return true;
        }
    }
    false
}

/// Returns whether a file is named like the folder of a skill, and not like a license or a script.
fn is_skill_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn has_frontmatter(path: &Path) -> bool {
    use std::io::Read as _;
    let mut head = [0; HEAD_BYTES];
    let read = open_regular(path).and_then(|(mut file, _)| file.read(&mut head));
    let Ok(length) = read else { return false };
    let head = &head[..length];
    head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head).starts_with(b"---")
}

fn rejected(location: &Path, name: &str, message: String, help: Option<String>) -> RejectedBundle {
    let rule = &rules::SKILL_FILE_MISSING;
    RejectedBundle {
        id: SkillId::new(name),
        location: location.to_owned(),
        reason: RefusalReason::NoSkillFile,
        findings: vec![Finding {
            code: rule.code.to_owned(),
            severity: rule.severity,
            field: None,
            file: location.file_name().unwrap_or_default().into(),
            span: None,
            message,
            help: help.unwrap_or_else(|| rule.help.to_owned()),
            fixable: false,
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::RootSpec;

    const SKILL: &str = "---\nname: x\ndescription: Does x.\n---\nbody\n";

    fn tree(root: &Path, origin: RootOrigin) -> Tree {
        Tree::new(vec![RootSpec {
            path: root.to_owned(),
            label: "~/.claude/skills".to_owned(),
            project_label: None,
            project: None,
            origin,
        }])
    }

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_misnamed_folder_of_skills_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let client = dir.path().join(".claude");
        write(&client, "skill/pdf/SKILL.md", SKILL);
        write(&client, "Skills2/pdf/SKILL.md", SKILL);
        write(&client, "SKILL/notes.txt", "no skill");
        let user = || RootOrigin::User { client: "claude-code".to_owned() };
        let found = misnamed(&tree(&client.join("skills"), user()), 0);
        let [only] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(only.location, client.join("skill"));
        let message = &only.findings[0].message;
        assert_eq!(message, "~/.claude/skill with 1 skill is not read; clients read ~/.claude/skills");
        assert_eq!(misnamed(&tree(&client.join("skills"), RootOrigin::Config), 0), []);
        let both = vec!["skills", "skill"].into_iter().map(|name| RootSpec {
            path: client.join(name),
            label: format!("~/.claude/{name}"),
            project_label: None,
            project: None,
            origin: user(),
        });
        assert_eq!(misnamed(&Tree::new(both.collect()), 0), [], "another client reads it");
    }

    #[cfg(unix)]
    #[test]
    fn a_root_that_is_a_broken_link_or_a_file_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join(".claude/skills");
        fs::create_dir_all(root.parent().unwrap()).unwrap();
        let user = || RootOrigin::User { client: "claude-code".to_owned() };
        assert_eq!(unusable(&tree(&root, user()), 0), None, "it is missing");
        std::os::unix::fs::symlink("/nowhere", &root).unwrap();
        let found = unusable(&tree(&root, user()), 0).unwrap();
        assert_eq!(found.location, root);
        assert_eq!(found.findings[0].message, "~/.claude/skills is a broken symbolic link");
        assert_eq!(found.findings[0].help, "Correct or remove the link to /nowhere.");
        assert_eq!(
            unusable(&tree(&root, RootOrigin::Config), 0),
            None,
            "a configured root is reported as such"
        );
        fs::remove_file(&root).unwrap();
        fs::write(&root, SKILL).unwrap();
        let found = unusable(&tree(&root, user()), 0).unwrap();
        assert_eq!(
            found.findings[0].message,
            "~/.claude/skills is a file; clients read a folder with this name"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_without_read_permission_is_reported() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let closed = dir.path().join("closed");
        write(dir.path(), "closed/SKILL.md", SKILL);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let is_readable = fs::read_dir(&closed).is_ok();
        let origin = RootOrigin::User { client: "claude-code".to_owned() };
        let found = incomplete(&tree(dir.path(), origin), 0);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        if is_readable {
            println!("SKIPPED: this user reads folders without permission");
            return;
        }
        let [only] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((only.id.as_str(), &only.reason), ("closed", &RefusalReason::Unreadable));
        let message = &only.findings[0].message;
        assert!(message.starts_with("cannot read ~/.claude/skills/closed: "), "{message}");
        assert_eq!(only.findings[0].help, "Check the permissions of the folder.");
    }

    #[cfg(unix)]
    #[test]
    fn children_without_a_skill_file_are_reported_in_client_folders() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, "readme-only/README.md", "# Text");
        write(root, "text/SKILL.md.txt", SKILL);
        write(root, "flat.md", SKILL);
        write(root, "README.md", "# Notes");
        write(root, ".hidden/README.md", "");
        write(root, "node_modules/x/README.md", "");
        write(root, "whole/SKILL.md", SKILL);
        write(root, "whole.zip", "PK");
        write(root, "pdf", SKILL);
        write(root, "tools.tar.gz", "");
        write(root, "LICENSE", "");
        write(root, "install.sh", "");
        write(root, "nested/deeper/SKILL.md", SKILL);
        write(root, "dangling/notes.txt", "");
        fs::create_dir(root.join("empty")).unwrap();
        std::os::unix::fs::symlink("/nowhere/SKILL.md", root.join("dangling/SKILL.md")).unwrap();
        std::os::unix::fs::symlink("/nowhere", root.join("gone")).unwrap();
        std::os::unix::fs::symlink("circle", root.join("circle")).unwrap();
        assert_eq!(link_help(&root.join("circle")).as_deref(), Some("Remove the link: it points to itself."));
        fs::remove_file(root.join("circle")).unwrap();
        let origin = RootOrigin::User { client: "claude-code".to_owned() };
        let found = incomplete(&tree(root, origin), 0);
        let reported: Vec<_> = found
            .iter()
            .map(|one| (one.id.as_str(), one.findings[0].message.as_str(), one.findings[0].help.as_str()))
            .collect();
        let help = rules::SKILL_FILE_MISSING.help;
        let expected = [
            (
                "dangling",
                "SKILL.md in ~/.claude/skills/dangling is a broken symbolic link",
                "Correct or remove the link to /nowhere/SKILL.md.",
            ),
            ("empty", "no SKILL.md in ~/.claude/skills/empty; the folder is empty", help),
            (
                "flat",
                "~/.claude/skills/flat.md is a file; clients read only SKILL.md in a folder",
                "Move it to flat/SKILL.md.",
            ),
            (
                "gone",
                "~/.claude/skills/gone is a broken symbolic link",
                "Correct or remove the link to /nowhere.",
            ),
            (
                "pdf",
                "~/.claude/skills/pdf is a file; clients read only SKILL.md in a folder",
                "Replace it with a folder of the same name, and move it to pdf/SKILL.md.",
            ),
            ("readme-only", "no SKILL.md in ~/.claude/skills/readme-only; found README.md", help),
            (
                "text",
                "no SKILL.md in ~/.claude/skills/text; found SKILL.md.txt",
                "Rename SKILL.md.txt to SKILL.md.",
            ),
            (
                "tools",
                "~/.claude/skills/tools.tar.gz is an archive; clients read only SKILL.md in a folder",
                "Unpack it, so that there is tools/SKILL.md.",
            ),
        ];
        assert_eq!(reported, expected);
        assert_eq!(incomplete(&tree(root, RootOrigin::Argument), 0), []);
        write(root, "SKILL.md", SKILL);
        let origin = RootOrigin::User { client: "claude-code".to_owned() };
        assert_eq!(incomplete(&tree(root, origin), 0), [], "the folders of a bundle are its resources");
    }
}
