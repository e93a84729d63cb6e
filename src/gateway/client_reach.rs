//! What a client comes to below one of its folders: how deep it goes, what it goes past, and where it stops.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::skill::client::{Depth, Profile, Reading, Scope};

/// One of the folders that a client looks into.
pub(super) struct Place {
    pub path: PathBuf,
    pub scope: Scope,
    /// The folders below it that the client gets to, by their place in its order; nothing where it has no bounds.
    walked: Option<HashMap<PathBuf, usize>>,
}

/// Why a file below a place is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Missed {
    /// Deeper than the folders right below it, which are all that is looked at.
    TooDeep,
    /// For another reason; in words that hold for every file of that kind.
    Because(String),
}

impl Place {
    /// A folder as it lies there now.
    pub fn new(path: PathBuf, scope: Scope, profile: &Profile) -> Self {
        let deepest = match profile.depth.value() {
            Some(Depth::One) => 1,
            Some(Depth::AtMost(most)) => *most,
            Some(Depth::Any) | None => u32::MAX,
        };
        let walked = profile.reading.value().and_then(|reading| walked(&path, reading, deepest));
        Self { path, scope, walked }
    }

    /// When the client comes to this file, against others of the place; or why it never does.
    pub fn reached(
        &self,
        file: &Path,
        profile: &Profile,
        skills: &HashSet<&Path>,
    ) -> Option<Result<usize, Missed>> {
        let below = file.strip_prefix(&self.path).ok()?;
        Some(self.rules(below, profile, skills))
    }

    fn rules(&self, below: &Path, profile: &Profile, skills: &HashSet<&Path>) -> Result<usize, Missed> {
        let client = &profile.name;
        let because = |why: String| Err(Missed::Because(why));
        let folder = below.parent().unwrap_or(Path::new(""));
        let deep = folder.components().count();
        let reading = profile.reading.value();
        for part in folder.components() {
            let Component::Normal(name) = part else { continue };
            let name = name.to_string_lossy();
            if let Some(skip) = reading.and_then(|reading| skipped(&name, reading)) {
                return because(if skip == ".*" {
                    format!("in a hidden folder: {client} goes into none")
                } else {
                    format!("in a folder called {skip}: {client} goes into none")
                });
            }
        }
        if reading.is_some_and(|reading| reading.stops_at_skill)
            && folder.ancestors().skip(1).any(|above| skills.contains(self.path.join(above).as_path()))
        {
            return because(format!("inside another skill's folder, where {client} does not look"));
        }
        match profile.depth.value() {
            Some(Depth::One) if deep != 1 => return Err(Missed::TooDeep),
            Some(Depth::AtMost(1)) if deep > 1 => return Err(Missed::TooDeep),
            Some(Depth::AtMost(most)) if deep > *most as usize => {
                return because(format!("too deep: {client} looks {most} folders down at most"));
            }
            _ => {}
        }
        let (Some(walked), true) = (&self.walked, deep > 0) else { return Ok(0) };
        match (walked.get(folder), reading) {
            (Some(at), _) => Ok(at + 1),
            (None, Some(Reading { children: Some(most), .. })) => because(format!(
                "beyond the first {most} folders of one folder, which is all that {client} reads"
            )),
            (None, Some(Reading { folders: Some(most), .. })) => because(format!(
                "beyond the first {most} folders below one of its own, which is all that {client} reads"
            )),
            (None, _) => Ok(0),
        }
    }
}

/// Which of the names that are gone past this folder has.
fn skipped<'a>(name: &str, reading: &'a Reading) -> Option<&'a str> {
    let fits = |skip: &&String| *skip == name || (*skip == ".*" && name.starts_with('.'));
    reading.skips.iter().find(fits).map(String::as_str)
}

/// The folders below `place` in the order in which a client with these bounds reads them. Nothing where it has none,
/// and where the place cannot be read.
fn walked(place: &Path, reading: &Reading, deepest: u32) -> Option<HashMap<PathBuf, usize>> {
    let mut order = Vec::new();
    if let Some(most) = reading.folders {
        // The place itself is one of them.
        let most = (most as usize).saturating_sub(1);
        let mut waiting = VecDeque::from([(PathBuf::new(), 0)]);
        let mut seen = HashSet::from([fs::canonicalize(place).ok()?]);
        while let Some((folder, depth)) = waiting.pop_front() {
            for name in folders_in(&place.join(&folder), reading).unwrap_or_default() {
                let below = folder.join(name);
                let fresh = fs::canonicalize(place.join(&below))
                    .is_ok_and(|real| depth < deepest && order.len() < most && seen.insert(real));
                if fresh {
                    order.push(below.clone());
                    waiting.push_back((below, depth + 1));
                }
            }
        }
    } else if let Some(most) = reading.children {
        folders_in(place, reading)?;
        descend(place, Path::new(""), reading, (most as usize, deepest), &mut order);
    } else {
        return None;
    }
    Some(order.into_iter().enumerate().map(|(at, folder)| (folder, at)).collect())
}

/// Folder by folder, each with what lies in it.
fn descend(
    place: &Path,
    folder: &Path,
    reading: &Reading,
    (most, deepest): (usize, u32),
    order: &mut Vec<PathBuf>,
) {
    let mut names = folders_in(&place.join(folder), reading).unwrap_or_default();
    names.sort();
    names.truncate(most);
    for name in names {
        let below = folder.join(name);
        order.push(below.clone());
        let skill = reading.stops_at_skill && place.join(&below).join("SKILL.md").exists();
        if deepest > 1 && !skill {
            descend(place, &below, reading, (most, deepest - 1), order);
        }
    }
}

/// Names of the folders in a folder, links to folders among them, without those that are gone past.
fn folders_in(folder: &Path, reading: &Reading) -> Option<Vec<String>> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let name = |entry: &fs::DirEntry| entry.file_name().into_string().ok();
    let folder = |entry: &fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_symlink() => fs::metadata(entry.path()).is_ok_and(|target| target.is_dir()),
        kind => kind.is_ok_and(|kind| kind.is_dir()),
    };
    let wanted = |name: &String| skipped(name, reading).is_none();
    Some(entries.filter(folder).filter_map(|entry| name(&entry)).filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(skills: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for skill in skills {
            fs::create_dir_all(dir.path().join(skill)).unwrap();
            fs::write(dir.path().join(skill).join("SKILL.md"), "").unwrap();
        }
        dir
    }

    fn order(dir: &Path, reading: &Reading, deepest: u32) -> Vec<String> {
        let mut found: Vec<(PathBuf, usize)> = walked(dir, reading, deepest).unwrap().into_iter().collect();
        found.sort_by_key(|(_, at)| *at);
        found.into_iter().map(|(path, _)| path.display().to_string()).collect()
    }

    #[test]
    fn the_first_folders_by_name_are_read_and_nothing_inside_a_skill() {
        let dir = tree(&["b/deep/x", "a", "a/inner", "c", ".hidden/y"]);
        let reading = Reading {
            skips: vec![".*".into()],
            children: Some(2),
            stops_at_skill: true,
            ..Reading::default()
        };
        assert_eq!(order(dir.path(), &reading, 2), ["a", "b", "b/deep"]);
    }

    #[test]
    fn folders_are_counted_level_by_level_and_a_loop_ends() {
        let dir = tree(&["a/one", "b/two"]);
        #[cfg(unix)]
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/loop")).unwrap();
        let reading = Reading { folders: Some(4), ..Reading::default() };
        let found = order(dir.path(), &reading, 6);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(["a", "b"].iter().all(|name| found[..2].contains(&(*name).to_owned())), "{found:?}");
        let all = order(dir.path(), &Reading { folders: Some(99), ..Reading::default() }, 6);
        assert_eq!(all.len(), 4, "{all:?}");
        assert_eq!(walked(Path::new("/no/such/place"), &reading, 6), None, "nothing is made up");
    }
}
