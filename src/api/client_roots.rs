//! The folders that a client scans, and the skill files that it finds below them: maximum depth, skipped folders,
//! followed links, and where the scan stops.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::AssumedFolder;
use skills_base::files::canonicalize;
use skills_base::number::grouped;
use skills_config::Config;
use skills_registry::{Catalog, Root, RootOrigin, RootState};
use skills_skill::client::{Depth, Folder, Links, Profile, Reading, Scope, profiles};
use skills_skill::is_main_file;

/// File name of a skill. No client that was measured accepts another case.
pub(super) const SKILL_FILE: &str = "SKILL.md";
/// What to do about a file or folder that cannot be read.
pub(super) const CHECK_PERMISSIONS: &str = "check the permissions of the file and its folders";
/// Maximum depth of the scan for clients without a limit.
const MAX_FOLDER_DEPTH: u32 = 40;
/// Maximum number of folders scanned below one of a client's folders.
const MAX_FOLDERS: usize = 50_000;
/// The same for folders that are reached through links that point outside it: a link of a repository may point to the
/// root of the file system.
const MAX_LINKED_FOLDERS: usize = 5_000;

/// What was scanned behind links that lead out of the folders of a client.
#[derive(Default)]
pub(super) struct ScannedLinks {
    targets: HashSet<PathBuf>,
    folders: usize,
}

/// A folder that a client scans.
pub(super) struct ClientFolder {
    pub path: PathBuf,
    pub scope: Scope,
    /// Set if the client does not search it and is shown as if it did.
    pub assumed: Option<AssumedFolder>,
    /// The path with links resolved; `None` if the folder does not exist.
    real: Option<PathBuf>,
    /// Which links below it the client follows.
    links: Option<Links>,
    /// Names of folders below it that the client skips.
    skips: Vec<String>,
}

/// A skill file found by a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundSkillFile {
    /// Path under which the client finds it.
    pub file: PathBuf,
    /// Path with links resolved.
    pub real: PathBuf,
    /// Position in the order in which the client finds the files of the folder.
    pub at: usize,
}

impl FoundSkillFile {
    /// Returns the folder of the skill, under the client's path.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }
}

/// Why a client does not find a file below one of its folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Missed {
    /// It is deeper than the direct subfolders, and only those are scanned.
    TooDeep,
    /// It does not have the expected file name.
    Name(String),
    /// Another reason, as text that applies to every file of that kind, and what to do about it.
    Because(String, String),
    /// Whether the client finds it is not known.
    Unknown(String),
}

/// Returns the folders that a client scans, in order of precedence: those named on the command line, to show what the
/// client would do with them, then its own. The shipped skills replace its own if those contain no skill, where the
/// catalog shows them: if no root has a skill, and in a demonstration, which reads none of the user's folders. Folders
/// that are not its own are marked as assumed.
pub(super) fn places(profile: &Profile, catalog: &Catalog, config: &Config) -> Vec<ClientFolder> {
    let named = |origin: &RootOrigin, scope: Scope| -> Vec<ClientFolder> {
        let is_named = |root: &&Root| root.origin == *origin && root.state == RootState::Present;
        let roots = catalog.roots.iter().filter(is_named);
        let shipped = *origin == RootOrigin::Shipped;
        let assumed = |path: &Path| Some(AssumedFolder { path: path.to_owned(), shipped });
        let folder = |path: &Path| ClientFolder::new(path.to_owned(), scope, profile, None);
        roots.map(|root| ClientFolder { assumed: assumed(&root.path), ..folder(&root.path) }).collect()
    };
    let own = if config.demo { Vec::new() } else { own_places(profile, config) };
    let mut places = named(&RootOrigin::Argument, Scope::Project);
    places.retain(|place| !own.iter().any(|own| own.path == place.path || own.is_same(place)));
    let shipped = named(&RootOrigin::Shipped, Scope::User);
    if !shipped.is_empty() && own.iter().all(|place| place.found(profile).is_empty()) {
        places.extend(shipped);
    }
    places.extend(own);
    let mut seen = HashSet::new();
    places.retain(|place| seen.insert(place.path.clone()));
    places
}

fn own_places(profile: &Profile, config: &Config) -> Vec<ClientFolder> {
    let mut own = Vec::new();
    let top = config.repository.as_deref().unwrap_or(&config.cwd);
    let walks_up = profile.walks_up.value() == Some(&true);
    for folder in &profile.folders {
        let of = |dir: &Path| ClientFolder::new(dir.join(&folder.path), folder.scope, profile, Some(folder));
        match folder.scope {
            Scope::User => own.push(of(&config.dirs.home)),
            Scope::Project => {
                let up = config.cwd.ancestors().take_while(|dir| dir.starts_with(top));
                let up = up.take(if walks_up { usize::MAX } else { 1 });
                own.extend(up.map(of));
            }
        }
    }
    own
}

/// Returns whether a folder is one in which a client searches skills, or below one.
pub fn is_searched(folder: &Path, config: &Config) -> bool {
    let real = canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mut places = profiles().iter().flat_map(|profile| own_places(profile, config));
    places.any(|place| folder.starts_with(&place.path) || real.starts_with(place.real_path()))
}

/// Returns the skill files below the roots that clients find in folders that the catalog does not search: below a
/// `node_modules` or `target` in one of the client's folders. Those that a link outside of the root leads to are left out.
pub(super) fn unsearched_files(catalog: &Catalog) -> Vec<PathBuf> {
    let skills = catalog.all_skills().map(|skill| skill.location.as_path());
    let known: HashSet<&Path> =
        skills.chain(catalog.refused.iter().map(|refusal| refusal.location.as_path())).collect();
    let folders: HashSet<&Path> = known.iter().copied().flat_map(Path::ancestors).collect();
    // Links may lead to one file on many paths.
    let mut found: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for root in &catalog.roots {
        let Ok(real_root) = canonicalize(&root.path) else { continue };
        let is_unsearched = |file: &FoundSkillFile| {
            let rest = file.folder().strip_prefix(&root.path).ok().and_then(Path::parent);
            let is_below =
                rest.is_some_and(|above| above.iter().any(|name| name == "node_modules" || name == "target"));
            let is_known = [&file.file, &file.real].into_iter().any(|path| known.contains(path.as_path()));
            is_below && file.real.starts_with(&real_root) && !is_known
        };
        // The catalog finds what is directly in a folder. Folders called `skills` are not only those of a client.
        let profiles = profiles().iter().filter(|profile| profile.depth.value() != Some(&Depth::One));
        let own = profiles.flat_map(|profile| profile.folders.iter().map(move |folder| (profile, folder)));
        for (profile, folder) in own.filter(|(_, folder)| folder.path.starts_with('.')) {
            let below = folders.iter().copied().filter(|path| path.starts_with(&root.path));
            let named = below.chain(root.path.ancestors()).filter(|path| path.ends_with(&folder.path));
            let mut tops: HashSet<PathBuf> = named.map(Path::to_owned).collect();
            // A root may be the first part of the path.
            let path = Path::new(&folder.path);
            let first = path.ancestors().filter(|first| root.path.ends_with(first));
            tops.extend(first.filter_map(|first| Some(root.path.join(path.strip_prefix(first).ok()?))));
            for top in tops {
                let files = ClientFolder::new(top, folder.scope, profile, Some(folder)).found(profile);
                for file in files.into_iter().filter(is_unsearched) {
                    found.entry(file.real).or_insert(file.file);
                }
            }
        }
    }
    found.into_values().collect()
}

impl ClientFolder {
    /// Resolves a folder, one of the profile's or another one.
    pub fn new(path: PathBuf, scope: Scope, profile: &Profile, folder: Option<&Folder>) -> Self {
        let real = canonicalize(&path).ok().filter(|real| real.is_dir());
        let links = folder.and_then(|folder| folder.links).or(profile.links.value().copied());
        let everywhere = profile.reading.value().into_iter().flat_map(|reading| &reading.skips);
        let skips = everywhere.chain(folder.into_iter().flat_map(|folder| &folder.skips)).cloned().collect();
        Self { path, scope, assumed: None, real, links, skips }
    }

    /// Returns whether both are the same folder on disk.
    fn is_same(&self, other: &Self) -> bool {
        self.real.is_some() && self.real == other.real
    }

    /// Returns the path with links resolved, or the path as written if the folder does not exist.
    pub fn real_path(&self) -> &Path {
        self.real.as_deref().unwrap_or(&self.path)
    }

    /// Returns whether a link points outside the folder.
    pub fn left_by(&self, real: &Path) -> bool {
        self.real.as_ref().is_none_or(|root| !real.starts_with(root))
    }

    /// Returns the skill files that the client finds, in its order.
    pub fn found(&self, profile: &Profile) -> Vec<FoundSkillFile> {
        let Some(real) = &self.real else { return Vec::new() };
        let none = Reading::default();
        let mut walk = Walk {
            root: real,
            reading: profile.reading.value().unwrap_or(&none),
            links: self.links,
            skips: &self.skips,
            deepest: deepest(profile),
            in_root: profile.depth.value() != Some(&Depth::One),
            seen: HashSet::from([real.clone()]),
            folders: 1,
            linked_folders: 0,
            found: Vec::new(),
        };
        if walk.reading.folders.is_some() {
            walk.level_by_level(&self.path, real);
        } else {
            walk.folder_by_folder(&self.path, real, 0, &mut vec![real.clone()]);
        }
        walk.found
    }

    /// Returns the skill files behind a link to a folder below this one, whether the client finds them or not. All
    /// links share the maximum number of folders, and each target is scanned once.
    pub fn files_behind(&self, link: &Path, scanned: &mut ScannedLinks) -> Vec<FoundSkillFile> {
        let (Some(root), Ok(real)) = (&self.real, canonicalize(link)) else { return Vec::new() };
        if scanned.folders >= MAX_LINKED_FOLDERS || !scanned.targets.insert(real.clone()) {
            return Vec::new();
        }
        let mut walk = Walk {
            root,
            reading: &Reading::default(),
            links: Some(Links::All),
            skips: &[],
            deepest: MAX_FOLDER_DEPTH,
            in_root: true,
            seen: HashSet::new(),
            folders: 0,
            linked_folders: scanned.folders + 1,
            found: Vec::new(),
        };
        walk.folder_by_folder(link, &real, 0, &mut vec![real.clone()]);
        scanned.folders = walk.linked_folders;
        walk.found
    }

    /// Returns why the client does not find a file below this folder; `None` for a file elsewhere.
    pub fn reason_missed(&self, file: &Path, profile: &Profile) -> Option<Missed> {
        let below = file.strip_prefix(&self.path).ok()?;
        let is_file = file.file_name().and_then(|name| name.to_str()).is_some_and(is_main_file);
        let folder = if is_file { below.parent().unwrap_or(Path::new("")) } else { below };
        let missed = self
            .missed_by_folder(folder, profile)
            .or_else(|| self.missed_by_depth(folder, profile))
            .or_else(|| if is_file { missed_by_name(file, profile) } else { None })
            .or_else(|| self.missed_by_link(file, profile));
        Some(missed.unwrap_or_else(|| self.missed_by_limit(is_file, profile)))
    }

    /// Returns why the client skips the folder: because of its name, or of a skill above it.
    fn missed_by_folder(&self, folder: &Path, profile: &Profile) -> Option<Missed> {
        let (top, client) = (self.path.display(), &profile.name);
        let move_up = format!("move the folder directly into {top}");
        for part in folder.components() {
            let Component::Normal(name) = part else { continue };
            let name = name.to_string_lossy();
            if let Some(skip) = skipped(&name, &self.skips) {
                let why = if skip == ".*" {
                    format!("in a hidden folder, which {client} skips")
                } else {
                    format!("in a folder named {skip}, which {client} skips")
                };
                return Some(Missed::Because(why, format!("{move_up}, under another name")));
            }
        }
        let stops_at_skill = profile.reading.value().is_some_and(|reading| reading.stops_at_skill);
        let mut above = folder.ancestors().skip(1);
        (stops_at_skill && above.any(|above| self.path.join(above).join(SKILL_FILE).exists())).then(|| {
            let why = format!("inside another skill's folder, which {client} does not search");
            Missed::Because(why, move_up)
        })
    }

    fn missed_by_depth(&self, folder: &Path, profile: &Profile) -> Option<Missed> {
        let (top, client) = (self.path.display(), &profile.name);
        let deep = folder.components().count();
        match profile.depth.value() {
            Some(Depth::One) if deep == 0 => {
                let why = format!("directly in the folder of skills; {client} searches only its subfolders");
                Some(Missed::Because(why, format!("move {SKILL_FILE} to {top}/NAME/{SKILL_FILE}")))
            }
            Some(Depth::One) if deep != 1 => Some(Missed::TooDeep),
            Some(Depth::AtMost(1)) if deep > 1 => Some(Missed::TooDeep),
            Some(Depth::AtMost(most)) if deep > *most as usize => Some(Missed::Because(
                format!("nested too deep: {client} searches at most {most} levels"),
                format!("move the folder directly into {top}"),
            )),
            _ => None,
        }
    }

    /// Returns why the client does not follow a link on the path, if there is one.
    fn missed_by_link(&self, file: &Path, profile: &Profile) -> Option<Missed> {
        let client = &profile.name;
        let because = |why: String, help: &str| Some(Missed::Because(why, help.to_owned()));
        let mut above = file.ancestors().take_while(|path| path.starts_with(&self.path));
        let link = above.find(|path| is_link(path))?;
        if matches!(self.links, Some(Links::All | Links::Folders)) && link.is_dir() {
            if deepest(profile) > 1 {
                return Some(Missed::Unknown(format!(
                    "behind a symbolic link to a folder: not in the first {MAX_LINKED_FOLDERS} folders behind \
                        links, which are searched here; {client} may search more"
                )));
            }
            if !link.join(SKILL_FILE).exists() {
                let why = format!("behind a symbolic link to a folder without {SKILL_FILE}");
                return because(why, "correct or remove the link");
            }
        }
        match self.links {
            None => {
                let what = "behind a symbolic link; whether";
                Some(Missed::Unknown(format!("{what} {client} follows it is not documented")))
            }
            Some(Links::Inside) => because(
                format!(
                    "behind a symbolic link that points outside its folder, which {client} does not follow"
                ),
                "replace the link with a copy",
            ),
            Some(Links::Folders) => because(
                format!("{SKILL_FILE} is a symbolic link, which {client} does not follow"),
                "replace the link with a copy, or link the folder",
            ),
            Some(Links::All) => {
                because("behind a broken symbolic link".to_owned(), "correct or remove the link")
            }
        }
    }

    /// Returns the limit of the client that hides a file for no other reason, or that the file is unreadable.
    fn missed_by_limit(&self, is_file: bool, profile: &Profile) -> Missed {
        let client = &profile.name;
        let fewer = format!("move other folders out of {}", self.path.display());
        match profile.reading.value() {
            Some(Reading { children: Some(most), .. }) => Missed::Because(
                format!(
                    "beyond the first {} entries of a folder, the limit of {client}",
                    grouped(u64::from(*most))
                ),
                fewer,
            ),
            Some(Reading { folders: Some(most), .. }) => Missed::Because(
                format!(
                    "beyond the first {} folders of a root, the limit of {client}",
                    grouped(u64::from(*most))
                ),
                fewer,
            ),
            _ => {
                let kind = if is_file { "file" } else { "folder" };
                Missed::Because(format!("unreadable {kind}"), CHECK_PERMISSIONS.to_owned())
            }
        }
    }
}

/// Returns why the client does not read a main file: because of its name, or because it is a folder.
fn missed_by_name(file: &Path, profile: &Profile) -> Option<Missed> {
    let client = &profile.name;
    if file.file_name().is_some_and(|name| name != SKILL_FILE) {
        return Some(Missed::Name(format!("not named {SKILL_FILE}; {client} reads only that name")));
    }
    file.is_dir().then(|| {
        let why = format!("{SKILL_FILE} is a folder; {client} reads only a file of that name");
        Missed::Because(why, "replace the folder with a file".to_owned())
    })
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

fn deepest(profile: &Profile) -> u32 {
    match profile.depth.value() {
        Some(Depth::One) => 1,
        Some(Depth::AtMost(most)) => *most,
        Some(Depth::Any) | None => MAX_FOLDER_DEPTH,
    }
}

/// Returns the skip pattern that this folder matches.
fn skipped<'a>(name: &str, skips: &'a [String]) -> Option<&'a str> {
    let fits = |skip: &&String| *skip == name || (*skip == ".*" && name.starts_with('.'));
    skips.iter().find(fits).map(String::as_str)
}

/// A scan of one folder.
struct Walk<'a> {
    root: &'a Path,
    reading: &'a Reading,
    links: Option<Links>,
    skips: &'a [String],
    deepest: u32,
    /// Whether a file directly in the folder is a skill.
    in_root: bool,
    /// Scanned folders, by resolved path.
    seen: HashSet<PathBuf>,
    folders: usize,
    /// Number of scanned folders outside of `root`.
    linked_folders: usize,
    found: Vec<FoundSkillFile>,
}

impl Walk<'_> {
    /// Scans breadth-first, each folder once.
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

    /// Scans depth-first in the order of names. A link that makes a folder its own descendant ends the scan of that
    /// branch.
    fn folder_by_folder(&mut self, folder: &Path, real: &Path, depth: u32, above: &mut Vec<PathBuf>) {
        let skill = self.take_file(folder, real, depth);
        if depth >= self.deepest || skill && self.reading.stops_at_skill {
            return;
        }
        let mut folders = self.folders_in(folder, real);
        folders.sort();
        folders.truncate(self.reading.children.map_or(usize::MAX, |most| most as usize));
        for (path, real) in folders {
            let (count, most) = if real.starts_with(self.root) {
                (&mut self.folders, MAX_FOLDERS)
            } else {
                (&mut self.linked_folders, MAX_LINKED_FOLDERS)
            };
            *count += 1;
            if *count > most || above.contains(&real) {
                continue;
            }
            above.push(real.clone());
            self.folder_by_folder(&path, &real, depth + 1, above);
            above.pop();
        }
    }

    /// Adds the skill file of a folder; returns whether there is one.
    fn take_file(&mut self, folder: &Path, real: &Path, depth: u32) -> bool {
        let file = folder.join(SKILL_FILE);
        let Ok(kind) = fs::symlink_metadata(&file) else { return false };
        let real = if kind.is_symlink() {
            let target = canonicalize(&file).ok();
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
            self.found.push(FoundSkillFile { file, real, at: self.found.len() });
        }
        true
    }

    /// Returns the subfolders that the client enters, with their resolved paths.
    fn folders_in(&self, folder: &Path, real: &Path) -> Vec<(PathBuf, PathBuf)> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let mut folders = Vec::new();
        for entry in entries.flatten() {
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            if skipped(&name.to_string_lossy(), self.skips).is_some() {
                continue;
            }
            if kind.is_dir() {
                folders.push((entry.path(), real.join(&name)));
            } else if kind.is_symlink()
                && let Ok(target) = canonicalize(&entry.path())
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
