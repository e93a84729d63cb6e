//! Wraps the helper in bubblewrap, if it is installed: a file system view that contains nothing else, and separate
//! process, network and IPC namespaces (<https://github.com/containers/bubblewrap>).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::plan::FileAccess;

/// Path of the helper's program in the file system view.
const HELPER: &str = "/.isolate";

/// Finds bubblewrap in a search path.
pub fn find(search: &[PathBuf]) -> Option<PathBuf> {
    search.iter().map(|folder| folder.join("bwrap")).find(|path| path.is_file())
}

/// Returns the command up to the helper's own arguments.
///
/// Started as root, it creates its namespaces as root, and keeps only the capabilities that the helper needs to change
/// the user inside; the helper drops those as well.
pub fn command(bwrap: &Path, helper: &Path, access: &FileAccess, as_root: bool) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut out = vec![text(bwrap)];
    let mut add = |words: &[&str]| out.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["--die-with-parent", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]);
    add(&["--unshare-cgroup-try", "--hostname", "sandbox"]);
    if as_root {
        add(&["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]);
    } else {
        add(&["--unshare-user", "--cap-drop", "ALL"]);
    }
    add(&["--dev", "/dev", "--proc", "/proc"]);
    // Parent folders that bubblewrap creates implicitly are not accessible to other users.
    let present = access.readable_if_present.iter().filter(|path| path.exists());
    let ways: BTreeSet<&Path> = present
        .chain(&access.readable)
        .chain([&access.writable])
        .flat_map(|path| path.ancestors().skip(1))
        .filter(|way| way.parent().is_some())
        .collect();
    for way in ways {
        add(&["--perms", "0755", "--dir", &text(way)]);
    }
    for path in &access.readable_if_present {
        add(&["--ro-bind-try", &text(path), &text(path)]);
    }
    for path in &access.readable {
        add(&["--ro-bind", &text(path), &text(path)]);
    }
    add(&["--bind", &text(&access.writable), &text(&access.writable)]);
    add(&["--ro-bind", &text(helper), HELPER, "--remount-ro", "/", "--chdir", "/", "--", HELPER]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_granted_paths_are_visible() {
        let access = FileAccess {
            readable: vec!["/a/b".into()],
            readable_if_present: vec!["/usr".into()],
            writable: "/a/c/w".into(),
            ..FileAccess::default()
        };
        let line = command(Path::new("/usr/bin/bwrap"), Path::new("/opt/skills"), &access, false).join(" ");
        assert!(line.starts_with("/usr/bin/bwrap --die-with-parent"), "{line}");
        assert!(line.contains("--perms 0755 --dir /a --perms 0755 --dir /a/c --ro-bind-try /usr"), "{line}");
        assert!(line.contains("/usr /usr --ro-bind /a/b /a/b --bind /a/c/w /a/c/w"), "{line}");
        assert!(line.contains("--unshare-net") && line.contains("--unshare-user"), "{line}");
        assert!(
            line.ends_with("--ro-bind /opt/skills /.isolate --remount-ro / --chdir / -- /.isolate"),
            "{line}"
        );
        let as_root = command(Path::new("bwrap"), Path::new("/opt/skills"), &access, true).join(" ");
        assert!(!as_root.contains("--unshare-user"), "root keeps its user numbers: {as_root}");
    }
}
