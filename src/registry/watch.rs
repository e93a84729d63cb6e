//! Watches for changes on disk: one watch for each folder that a scan read. If the system cannot report changes
//! (network mounts, exhausted watches), a root is polled.
//!
//! Individual watches instead of recursive ones exclude version stores and dependencies, and tell for each folder
//! whether changes in it can be missed.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::tree::{Key, Tree};
use super::worker::{MessageQueue, WorkerMessage};

/// File systems that do not report changes made on other machines.
const SILENT: [&str; 12] = [
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "nfs",
    "nfs4",
    "smb3",
    "vboxsf",
    "virtiofs",
];

/// Active watches.
pub(super) struct Watch {
    watcher: Option<RecommendedWatcher>,
    /// The watched path by real path: a folder with two paths has one watch.
    watched: HashMap<PathBuf, PathBuf>,
    /// Whether all folders of each root are watched.
    pub live: Vec<bool>,
}

impl Watch {
    /// Creates a state without watches; `None` disables watching.
    pub fn new(send: Option<MessageQueue>) -> Self {
        let watcher = send.and_then(|send| match notify::recommended_watcher(handler(send)) {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                tracing::warn!("file events are not available, polling instead: {error}");
                None
            }
        });
        Self { watcher, watched: HashMap::new(), live: Vec::new() }
    }

    /// Watches the folders of the tree, and for each missing root its nearest existing parent folder. Returns the
    /// folders that were not watched before, in which changes until now may have been missed.
    pub fn update(&mut self, tree: &Tree, mounts: &str) -> Vec<Key> {
        let Some(watcher) = &mut self.watcher else {
            self.live = vec![false; tree.roots.len()];
            return Vec::new();
        };
        let mut requested: HashMap<PathBuf, Key> = HashMap::new();
        self.live = tree.roots.iter().map(|root| !is_silent(&root.spec.path, mounts)).collect();
        let links = followed_links(tree);
        // A folder with two paths is watched under the one through which it is searched.
        let (shallow, searched): (Vec<&Key>, Vec<&Key>) =
            tree.folders.keys().partition(|(root, path)| tree.is_shallow(*root, path));
        for (root, path) in searched.into_iter().chain(shallow) {
            if self.live[*root] {
                let real = real_path(tree, &links, *root, path);
                requested.entry(real).or_insert_with(|| (*root, path.clone()));
            }
        }
        for (index, root) in tree.roots.iter().enumerate() {
            if root.real.is_none()
                && let Some(above) = root.spec.path.ancestors().find(|dir| dir.is_dir())
            {
                let real = skills_base::files::canonicalize(above).unwrap_or_else(|_| above.to_owned());
                requested.entry(real).or_insert_with(|| (index, above.into()));
            }
        }
        // Unwatch removed folders first: a renamed folder keeps its watch, which is then registered under its new
        // name.
        self.watched.retain(|real, path| {
            let keep = requested.get(real).is_some_and(|(_, requested)| **requested == **path);
            if !keep && !requested.contains_key(real) {
                // Fails if the folder itself was removed together with its watch.
                let _ = watcher.unwatch(path);
            }
            keep
        });
        let mut fresh = Vec::new();
        for (real, (root, path)) in requested {
            if self.watched.contains_key(&real) || !self.live[root] {
                continue;
            }
            match watcher.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(real, path.to_path_buf());
                    fresh.push((root, path));
                }
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
                Err(error) => {
                    let label = &tree.roots[root].spec.label;
                    tracing::warn!("cannot watch {label}, polling instead: {error}");
                    self.live[root] = false;
                }
            }
        }
        fresh.sort();
        fresh
    }

    /// Drops the watches at and below changed paths: a folder that was removed and recreated, or renamed and replaced,
    /// is a different folder under the same path, which is not watched.
    pub fn drop_watches(&mut self, paths: &BTreeSet<PathBuf>) {
        let Some(watcher) = &mut self.watcher else { return };
        self.watched.retain(|_, path| {
            let doubted = path.ancestors().any(|above| paths.contains(above));
            if doubted {
                // Fails if the folder was removed together with its watch.
                let _ = watcher.unwatch(path);
            }
            !doubted
        });
    }

    /// Returns whether any root has to be polled.
    pub fn needs_polling(&self) -> bool {
        self.live.iter().any(|live| !live)
    }
}

/// Returns the targets of the links that walks followed, by root and path.
fn followed_links(tree: &Tree) -> HashMap<(usize, &OsStr), &Path> {
    let followed = tree.links_into_skipped().filter(|(.., is_followed)| *is_followed);
    followed.map(|((root, link), to, _)| ((*root, link.as_os_str()), to)).collect()
}

/// Returns the real path of a folder found by a walk: only links into skipped folders are followed.
fn real_path(tree: &Tree, links: &HashMap<(usize, &OsStr), &Path>, root: usize, path: &Path) -> PathBuf {
    let mut above = path.ancestors().filter(|_| !links.is_empty());
    let through = above.find_map(|folder| {
        let to = links.get(&(root, folder.as_os_str()))?;
        Some(to.join(path.strip_prefix(folder).ok()?))
    });
    let scanned = &tree.roots[root];
    through.unwrap_or_else(|| match (&scanned.real, path.strip_prefix(&scanned.spec.path)) {
        (Some(real), Ok(rest)) => real.join(rest),
        _ => path.to_owned(),
    })
}

fn handler(send: MessageQueue) -> impl Fn(notify::Result<Event>) + Send + 'static {
    move |event| {
        let message = match event {
            // Caused by our own reads.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) if event.need_rescan() => WorkerMessage::Rescan,
            Ok(event) => WorkerMessage::Changed(event.paths),
            Err(error) => {
                tracing::warn!("file events were lost, rescanning all folders: {error}");
                WorkerMessage::Rescan
            }
        };
        send.try_send(message);
    }
}

/// Returns whether a path is on a file system that does not report changes, according to the text of
/// `/proc/self/mountinfo` (<https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html>).
fn is_silent(path: &Path, mounts: &str) -> bool {
    let mount = |line: &'_ str| -> Option<(PathBuf, String)> {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?.replace("\\040", " ");
        Some((PathBuf::from(point), after.split(' ').next()?.to_owned()))
    };
    let over = mounts.lines().filter_map(mount).filter(|(point, _)| path.starts_with(point));
    let nearest = over.max_by_key(|(point, _)| point.components().count());
    nearest.is_some_and(|(_, kind)| SILENT.contains(&kind.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_mount_is_polled_and_a_local_one_inside_it_is_not() {
        let mounts = "22 1 0:20 / / rw - ext4 /dev/sda1 rw\n\
                      30 22 0:40 / /mnt/team\\040share rw,nosuid shared:5 - nfs4 host:/x rw\n\
                      31 30 0:41 / /mnt/team\\040share/local rw - tmpfs tmpfs rw\n";
        assert!(is_silent(Path::new("/mnt/team share/skills"), mounts));
        assert!(!is_silent(Path::new("/mnt/team share/local/skills"), mounts));
        assert!(!is_silent(Path::new("/home/ann"), mounts));
        assert!(!is_silent(Path::new("/home/ann"), ""));
    }
}
