//! Maps changed paths to the parts of the tree that have to be read again.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::RootState;
use super::tree::{Key, Scan, ScanReport, ScannedRoot, Tree, probe_root};
use super::walk::{self, is_reached};
use skills_skill::is_main_file;

/// Updates the tree after changes at these paths (as watched). The result equals that of a complete rescan.
pub(super) fn apply(tree: &mut Tree, paths: &BTreeSet<PathBuf>, scan: &Scan<'_>) {
    revisit_roots(tree, scan);
    let mut places = BTreeSet::new();
    let mounts = mounts(tree);
    for path in paths {
        images(&mounts, path, &mut places);
    }
    let mut bundles: BTreeSet<Key> = BTreeSet::new();
    let mut folders: BTreeSet<Key> = BTreeSet::new();
    for (root, path) in places {
        // In a folder that is not searched, only its own bundle matters.
        if let Some(folder) = path.parent().filter(|folder| tree.is_shallow(root, folder)) {
            tree.remove(root, &path);
            bundles.insert((root, folder.into()));
            continue;
        }
        if let Some(folder) = tree.enclosing_bundle(root, &path) {
            bundles.insert((root, folder.into()));
        }
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {
                folders.insert((root, path));
            }
            Ok(metadata) => {
                tree.remove(root, &path);
                let main = path.file_name().and_then(|name| name.to_str()).is_some_and(is_main_file);
                if let (true, Some(parent)) = (main, path.parent()) {
                    bundles.insert((root, parent.into()));
                } else if metadata.is_symlink() {
                    relink(tree, root, &path);
                }
            }
            Err(_) => {
                tree.remove(root, &path);
                let main = path.file_name().and_then(|name| name.to_str()).is_some_and(is_main_file);
                if let (true, Some(parent)) = (main, path.parent()) {
                    bundles.insert((root, parent.into()));
                }
            }
        }
    }
    for (root, folder) in &folders {
        let inside = |above: &Path| folders.contains(&(*root, above.into()));
        if !folder.ancestors().skip(1).any(inside) {
            rescan(tree, *root, folder, scan);
        }
    }
    for (root, folder) in bundles {
        tree.reread(root, &folder, scan);
    }
    follow_links(tree, scan);
}

/// Walks the targets of links into skipped folders that were not walked through another link of the root.
fn follow_links(tree: &mut Tree, scan: &Scan<'_>) {
    let links: Vec<_> = tree.links_into_skipped().collect();
    let walked = links.iter().filter(|(.., is_followed)| *is_followed);
    let mut walked: HashSet<(usize, &OsStr)> = walked.map(|(key, to, _)| (key.0, to.as_os_str())).collect();
    let missing = links.iter().filter(|(key, to, _)| walked.insert((key.0, to.as_os_str())));
    let missing: Vec<Key> = missing.map(|(key, ..)| (*key).clone()).collect();
    for (root, link) in missing {
        tree.scan(root, &link, scan, &mut |_, _| {});
    }
}

/// Rescans a folder; bundles with an unchanged stamp are not parsed.
pub(super) fn rescan(tree: &mut Tree, root: usize, folder: &Path, scan: &Scan<'_>) {
    let outcomes = known_below(tree, root, folder);
    let link = tree.links.remove_entry(&(root, folder.into())).filter(|_| folder.is_symlink());
    tree.remove(root, folder);
    // The folder above reports the link, not the walk of its target.
    tree.links.extend(link);
    tree.scan(root, folder, &Scan { known: &outcomes, ..*scan }, &mut |_, _| {});
    // A folder with the name of a main file is reported by its parent folder.
    let main = folder.file_name().and_then(|name| name.to_str()).is_some_and(is_main_file);
    if let Some(above) =
        folder.parent().filter(|above| main && above.starts_with(&tree.roots[root].spec.path))
    {
        tree.reread(root, above, scan);
    }
}

/// Returns the known outcomes of the bundles at and below a folder.
fn known_below(tree: &Tree, root: usize, folder: &Path) -> super::tree::KnownOutcomes {
    let here = tree.records.range((root, folder.into())..);
    let here = here.take_while(|((r, path), _)| *r == root && path.starts_with(folder));
    here.map(|(_, record)| record.known()).collect()
}

fn relink(tree: &mut Tree, root: usize, path: &Path) {
    if let Some(found) = walk::link(path, &tree.real_roots()) {
        tree.apply(ScanReport::Seen(root, found));
    }
}

/// Rescans roots that appeared, disappeared, or resolve to another folder since the last scan.
fn revisit_roots(tree: &mut Tree, scan: &Scan<'_>) {
    for root in 0..tree.roots.len() {
        let ScannedRoot { spec, state, real } = &tree.roots[root];
        let now = probe_root(spec.clone());
        if now.state == *state && now.real == *real {
            continue;
        }
        let path = spec.path.clone();
        let present = now.state == RootState::Present;
        tree.roots[root] = now;
        tree.remove(root, &path);
        if present {
            tree.scan(root, &path, scan, &mut |_, _| {});
        }
        // A link that pointed outside the roots may now lead into one, and vice versa.
        let links = tree.links.keys().chain(tree.refused_links.keys()).cloned().collect::<Vec<_>>();
        for (root, link) in links {
            tree.links.remove(&(root, link.clone()));
            tree.refused_links.remove(&(root, link.clone()));
            relink(tree, root, &link);
        }
    }
}

/// A root and the path and real path of the root, or of a link in it that a walk follows.
type Mount<'t> = (usize, &'t Path, &'t Path);

fn mounts(tree: &Tree) -> Vec<Mount<'_>> {
    tree.roots
        .iter()
        .enumerate()
        .filter_map(|(index, root)| Some((index, root.spec.path.as_path(), root.real.as_deref()?)))
        .chain(
            tree.links_into_skipped()
                .filter(|(.., is_followed)| *is_followed)
                .map(|((root, link), to, _)| (*root, &**link, to)),
        )
        .collect()
}

/// Collects the paths in the roots that correspond to a watched path: a folder that two roots contain is watched once.
fn images(mounts: &[Mount<'_>], path: &Path, out: &mut BTreeSet<Key>) {
    let below = |base: &Path, rest: &Path| {
        if rest.as_os_str().is_empty() { base.to_owned() } else { base.join(rest) }
    };
    for (_, watched, real) in mounts {
        let Ok(rest) = path.strip_prefix(watched) else { continue };
        let real = below(real, rest);
        for (root, lexical, base) in mounts {
            if let Ok(rest) = real.strip_prefix(base)
                && is_reached(rest)
            {
                out.insert((*root, below(lexical, rest).into()));
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use super::super::folder_state::KnownFolders;
    use super::super::roots::RootSpec;
    use super::super::tree::KnownOutcomes;
    use super::*;
    use crate::RootOrigin;

    #[test]
    fn a_skipped_folder_is_walked_through_one_of_its_links() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let folder = top.join("node_modules/x");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), "---\nname: x\ndescription: Does x.\n---\nbody\n").unwrap();
        let mut tree = Tree::new(vec![RootSpec {
            path: top.clone(),
            label: "root".to_owned(),
            project_label: None,
            project: None,
            origin: RootOrigin::Argument,
        }]);
        let (known, folders) = (KnownOutcomes::default(), KnownFolders::default());
        let (stop, parsed) = (AtomicBool::new(false), AtomicUsize::new(0));
        let scan = Scan { known: &known, folders: &folders, stop: &stop, threads: 1, parsed: &parsed };
        tree.scan(0, &top, &scan, &mut |_, _| {});
        let links = ["a", "b", "c"].map(|name| top.join(name));
        let found = |tree: &Tree| -> Vec<PathBuf> {
            tree.records.keys().map(|(_, path)| path.to_path_buf()).collect()
        };
        for link in &links {
            symlink("node_modules", link).unwrap();
            apply(&mut tree, &BTreeSet::from([link.clone()]), &scan);
            assert_eq!(found(&tree), [links[0].join("x/SKILL.md")]);
        }
        apply(&mut tree, &BTreeSet::from([folder.join("SKILL.md")]), &scan);
        assert_eq!((tree.records.len(), tree.links.len()), (1, 3));
        // A watch of the folder was added: it is walked again.
        rescan(&mut tree, 0, &links[0], &scan);
        apply(&mut tree, &BTreeSet::new(), &scan);
        assert_eq!((tree.records.len(), tree.links.len()), (1, 3));
        fs::remove_file(&links[0]).unwrap();
        apply(&mut tree, &BTreeSet::from([links[0].clone()]), &scan);
        assert_eq!(found(&tree), [links[1].join("x/SKILL.md")]);
    }
}
