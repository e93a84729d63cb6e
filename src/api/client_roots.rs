//! The folders that a client looks into, and the skill files that it comes to below them: how deep it goes, what it
//! goes past, which links it follows, and where it stops.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::path::{Component, Path, PathBuf};

use skills_config::Config;
use skills_registry::{Catalogue, RootOrigin};
use skills_skill::client::{Depth, Links, Profile, Reading, Scope};
use skills_skill::is_main_file;

/// The name of a skill's file. No client that was run takes it in another case.
pub(super) const SKILL_FILE: &str = "SKILL.md";
/// Deeper than that nothing is looked for where a client has no bound.
const DEEPEST: u32 = 40;
/// More folders than that below one of a client's are not gone through.
const MAX_FOLDERS: usize = 50_000;

/// One of the folders that a client looks into.
pub(super) struct ClientFolder {
    pub path: PathBuf,
    pub scope: Scope,
    /// The path without links; none where there is no such folder.
    real: Option<PathBuf>,
}

/// A skill file that a client comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Its path as the client comes to it.
    pub file: PathBuf,
    /// Its path without links.
    pub real: PathBuf,
    /// When the client comes to it, among those of the place.
    pub at: usize,
}

impl Found {
    /// The folder of the skill, as the client comes to it.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }
}

/// Why a client does not come to a file below a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Missed {
    /// Deeper than the folders right below it, which are all that is looked at.
    TooDeep,
    /// No file of the name that is read.
    Name(String),
    /// For another reason; as text that hold for every file of that kind.
    Because(String),
}

/// The folders that a client looks into, the one that wins a name first. A folder named on the command line, and the
/// shipped skills, stand for the client's own: who names one asks what the client would make of it.
pub(super) fn places(profile: &Profile, catalogue: &Catalogue, config: &Config) -> Vec<ClientFolder> {
    let named = catalogue.roots.iter().filter_map(|root| match root.origin {
        RootOrigin::Argument => Some((root.path.clone(), Scope::Project)),
        RootOrigin::Shipped => Some((root.path.clone(), Scope::User)),
        _ => None,
    });
    let mut places: Vec<(PathBuf, Scope)> = named.collect();
    let top = config.repository.as_deref().unwrap_or(&config.cwd);
    let walks_up = profile.walks_up.value() == Some(&true);
    for folder in &profile.folders {
        match folder.scope {
            Scope::User => places.push((config.dirs.home.join(&folder.path), Scope::User)),
            Scope::Project => {
                let up = config.cwd.ancestors().take_while(|dir| dir.starts_with(top));
                let up = up.take(if walks_up { usize::MAX } else { 1 });
                places.extend(up.map(|dir| (dir.join(&folder.path), Scope::Project)));
            }
        }
    }
    let mut seen = HashSet::new();
    places.retain(|(path, _)| seen.insert(path.clone()));
    places.into_iter().map(|(path, scope)| ClientFolder::new(path, scope)).collect()
}

impl ClientFolder {
    /// A folder as it lies there now.
    pub fn new(path: PathBuf, scope: Scope) -> Self {
        let real = fs::canonicalize(&path).ok().filter(|real| real.is_dir());
        Self { path, scope, real }
    }

    /// The path without links; as it is written where there is no such folder.
    pub fn real_path(&self) -> &Path {
        self.real.as_deref().unwrap_or(&self.path)
    }

    /// Whether a link leads out of it.
    pub fn left_by(&self, real: &Path) -> bool {
        self.real.as_ref().is_none_or(|root| !real.starts_with(root))
    }

    /// The skill files that the client comes to, in its order.
    pub fn found(&self, profile: &Profile) -> Vec<Found> {
        let Some(real) = &self.real else { return Vec::new() };
        let none = Reading::default();
        let mut walk = Walk {
            root: real,
            reading: profile.reading.value().unwrap_or(&none),
            links: profile.links.value().copied(),
            deepest: deepest(profile),
            in_root: profile.depth.value() != Some(&Depth::One),
            seen: HashSet::from([real.clone()]),
            folders: 1,
            found: Vec::new(),
        };
        if walk.reading.folders.is_some() {
            walk.level_by_level(&self.path, real);
        } else {
            walk.folder_by_folder(&self.path, real, 0, &mut vec![real.clone()]);
        }
        walk.found
    }

    /// Why the client does not come to a file that is below this place; none for one that lies elsewhere.
    pub fn missed(&self, file: &Path, profile: &Profile) -> Option<Missed> {
        let below = file.strip_prefix(&self.path).ok()?;
        let because = |why: String| Some(Missed::Because(why));
        let client = &profile.name;
        let is_file = file.file_name().and_then(|name| name.to_str()).is_some_and(is_main_file);
        let folder = if is_file { below.parent().unwrap_or(Path::new("")) } else { below };
        let deep = folder.components().count();
        let reading = profile.reading.value();
        for part in folder.components() {
            let Component::Normal(name) = part else { continue };
            let name = name.to_string_lossy();
            if let Some(skip) = reading.and_then(|reading| skipped(&name, reading)) {
                return because(if skip == ".*" {
                    format!("in a hidden folder, which {client} skips")
                } else {
                    format!("in a folder named {skip}, which {client} skips")
                });
            }
        }
        if reading.is_some_and(|reading| reading.stops_at_skill)
            && folder.ancestors().skip(1).any(|above| self.path.join(above).join(SKILL_FILE).exists())
        {
            return because(format!("inside another skill's folder, which {client} does not search"));
        }
        match profile.depth.value() {
            Some(Depth::One) if deep != 1 => return Some(Missed::TooDeep),
            Some(Depth::AtMost(1)) if deep > 1 => return Some(Missed::TooDeep),
            Some(Depth::AtMost(most)) if deep > *most as usize => {
                return because(format!("nested too deep: {client} searches at most {most} levels"));
            }
            _ => {}
        }
        if is_file && file.file_name().is_some_and(|name| name != SKILL_FILE) {
            return Some(Missed::Name(format!("not named {SKILL_FILE}; {client} reads only that name")));
        }
        if file.ancestors().take_while(|path| path.starts_with(&self.path)).any(is_link) {
            return because(match profile.links.value() {
                None => format!("behind a symbolic link; whether {client} follows it is not documented"),
                Some(Links::Inside) => {
                    format!("behind a symbolic link out of its folder, which {client} does not follow")
                }
                Some(Links::Folders) => {
                    format!("{SKILL_FILE} is a symbolic link, which {client} does not follow")
                }
                Some(Links::All) => "behind a broken symbolic link".to_owned(),
            });
        }
        because(match reading {
            Some(Reading { children: Some(most), .. }) => {
                format!("beyond the first {most} entries of a folder, the limit of {client}")
            }
            Some(Reading { folders: Some(most), .. }) => {
                format!("beyond the first {most} folders of a root, the limit of {client}")
            }
            _ => "unreadable file".to_owned(),
        })
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

fn deepest(profile: &Profile) -> u32 {
    match profile.depth.value() {
        Some(Depth::One) => 1,
        Some(Depth::AtMost(most)) => *most,
        Some(Depth::Any) | None => DEEPEST,
    }
}

/// Which of the names that are gone past this folder has.
fn skipped<'a>(name: &str, reading: &'a Reading) -> Option<&'a str> {
    let fits = |skip: &&String| *skip == name || (*skip == ".*" && name.starts_with('.'));
    reading.skips.iter().find(fits).map(String::as_str)
}

/// A way through one place.
struct Walk<'a> {
    root: &'a Path,
    reading: &'a Reading,
    links: Option<Links>,
    deepest: u32,
    /// Whether a file right in the place is a skill.
    in_root: bool,
    /// Folders that were gone through, by their paths without links.
    seen: HashSet<PathBuf>,
    folders: usize,
    found: Vec<Found>,
}

impl Walk<'_> {
    /// The folders nearest to the place first, each once.
    fn level_by_level(&mut self, place: &Path, real: &Path) {
        let most = self.reading.folders.map_or(MAX_FOLDERS, |most| most as usize);
        let mut waiting = VecDeque::from([(place.to_owned(), real.to_owned(), 0)]);
        while let Some((folder, real, depth)) = waiting.pop_front() {
            self.take_file(&folder, &real, depth);
            if depth >= self.deepest {
                continue;
            }
            for (path, real) in self.folders_in(&folder, &real) {
                if self.seen.len() < most && self.seen.insert(real.clone()) {
                    waiting.push_back((path, real, depth + 1));
                }
            }
        }
    }

    /// Folder by folder, the first by name first, each with what is in it. A folder that a link puts below
    /// itself ends the way.
    fn folder_by_folder(&mut self, folder: &Path, real: &Path, depth: u32, above: &mut Vec<PathBuf>) {
        let skill = self.take_file(folder, real, depth);
        if depth >= self.deepest || skill && self.reading.stops_at_skill {
            return;
        }
        let mut folders = self.folders_in(folder, real);
        folders.sort();
        folders.truncate(self.reading.children.map_or(usize::MAX, |most| most as usize));
        for (path, real) in folders {
            self.folders += 1;
            if self.folders > MAX_FOLDERS || above.contains(&real) {
                continue;
            }
            above.push(real.clone());
            self.folder_by_folder(&path, &real, depth + 1, above);
            above.pop();
        }
    }

    /// Takes the skill file of a folder; answers whether there is one.
    fn take_file(&mut self, folder: &Path, real: &Path, depth: u32) -> bool {
        let file = folder.join(SKILL_FILE);
        let Ok(kind) = fs::symlink_metadata(&file) else { return false };
        let real = if kind.is_symlink() {
            let target = fs::canonicalize(&file).ok();
            let follows = match self.links {
                Some(Links::All) => true,
                Some(Links::Inside) => target.as_ref().is_some_and(|target| target.starts_with(self.root)),
                Some(Links::Folders) | None => false,
            };
            match target.filter(|target| follows && target.is_file()) {
                Some(target) => target,
                None => return false,
            }
        } else if kind.is_file() {
            real.join(SKILL_FILE)
        } else {
            return false;
        };
        if depth > 0 || self.in_root {
            self.found.push(Found { file, real, at: self.found.len() });
        }
        true
    }

    /// The folders in a folder that the client goes into, with their paths without links.
    fn folders_in(&self, folder: &Path, real: &Path) -> Vec<(PathBuf, PathBuf)> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let mut folders = Vec::new();
        for entry in entries.flatten() {
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            if skipped(&name.to_string_lossy(), self.reading).is_some() {
                continue;
            }
            if kind.is_dir() {
                folders.push((entry.path(), real.join(&name)));
            } else if kind.is_symlink()
                && let Ok(target) = fs::canonicalize(entry.path())
                && target.is_dir()
            {
                let follows = match self.links {
                    Some(Links::All | Links::Folders) => true,
                    Some(Links::Inside) => target.starts_with(self.root),
                    None => false,
                };
                if follows {
                    folders.push((entry.path(), target));
                }
            }
        }
        folders
    }
}
