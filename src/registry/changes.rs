//! Maps changed paths to the parts of the tree that have to be read again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::RootState;
use super::tree::{Key, Scan, ScanReport, ScannedRoot, Tree, probe_root};
use super::walk::{self, WalkEntry, passes_skipped};
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
                    relink(tree, root, &path, scan);
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
}

/// Rescans a folder; bundles with an unchanged stamp are not parsed.
pub(super) fn rescan(tree: &mut Tree, root: usize, folder: &Path, scan: &Scan<'_>) {
    let outcomes = known_below(tree, root, folder);
    tree.remove(root, folder);
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

fn relink(tree: &mut Tree, root: usize, path: &Path, scan: &Scan<'_>) {
    match walk::link(path, &tree.real_roots()) {
        Some(WalkEntry::Link(link, to)) => {
            let hidden = tree.is_skipped(&to);
            tree.apply(ScanReport::Seen(root, WalkEntry::Link(link, to)));
            if hidden {
                tree.scan(root, path, scan, &mut |_, _| {});
            }
        }
        Some(other) => tree.apply(ScanReport::Seen(root, other)),
        None => {}
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
            relink(tree, root, &link, scan);
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
            tree.links
                .iter()
                .filter(|(_, to)| tree.is_skipped(to))
                .map(|((r, l), to)| (*r, &**l, to.as_path())),
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
                && !passes_skipped(rest)
            {
                out.insert((*root, below(lexical, rest).into()));
            }
        }
    }
}
