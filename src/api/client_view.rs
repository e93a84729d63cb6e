//! The skills in a client's view: what it finds, repairs, drops and shadows, and in which order it lists the skills.
//! This is the only implementation of these rules; lists, budgets, sessions and screens show its result.
//!
//! The client's folders are scanned as they are on disk now, by the rules of its profile: a client lists skills that
//! this catalog does not contain (behind links, in a workspace's `skills`), and does not list all that this one does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::client_order::english;
use super::client_roots::{
    CHECK_PERMISSIONS, ClientFolder, FoundSkillFile, Missed, SKILL_FILE, ScannedLinks, places,
};
use super::client_settings::{ClientSettings, Level, Selected};
use super::types::MAX_NAMED_FILES;
use super::why::{defect, rejection_cause};
use super::{AssumedFolder, ClientViewEntry, ClientViewState, ForeignBundle, user_invocable};
use skills_base::files;
use skills_base::sync::MutexExt as _;
use skills_config::Config;
use skills_registry::{Catalog, Root, RootOrigin};
use skills_session::ListedEntry;
use skills_skill::client::one_blank;
use skills_skill::client::{
    Bundled, BundledListing, ClientEntry, Location, Order, ParseOutcome, Profile, RuleCodes, SameName, Scope,
    SkillFile, read,
};
use skills_skill::lint::rules::{ALL, Rule};
use skills_skill::{
    Finding, MAX_BYTES, RealPaths, RefusalReason, RejectedBundle, Skill, SkillId, read_bundle_at,
};

/// A bundle of the catalog in a client's view.
pub struct ClientBundle {
    /// What the client does with it.
    pub entry: ClientViewEntry,
    /// Why the client does not list it, without details of this bundle, so that reasons can be counted.
    pub why: Option<String>,
}

/// A skill listed by a client.
pub struct Row<'a> {
    /// The entry before the client's budget, with the client's names.
    pub entry: ListedEntry,
    /// The skill in the catalog; `None` if the catalog does not contain it or cannot read it.
    pub skill: Option<&'a Arc<Skill>>,
}

/// A client's view of everything in its folders and in the catalog.
pub struct ClientCatalog<'a> {
    /// The listed skills, in the client's order if known.
    pub rows: Vec<Row<'a>>,
    /// The bundles of the catalog: those that it lists in its order, then the others.
    pub bundles: Vec<ClientBundle>,
    /// Bundles in its folders that are not in the catalog.
    pub foreign: Vec<ForeignBundle>,
    /// Those of them that it does not list: name, or path if the name is an id of the catalog, and reason.
    pub others: Vec<(String, String)>,
    /// Folders that it does not search and is shown as if it did.
    pub assumed_folders: Vec<AssumedFolder>,
}

/// Cache of skill files, valid until they change.
#[derive(Debug, Default)]
pub struct SkillFiles {
    known: Arc<Mutex<HashMap<PathBuf, (Stamp, Arc<SkillFile>)>>>,
    /// What one of them would be.
    draft: Option<(PathBuf, Arc<SkillFile>)>,
}

/// Modification time and length of a file.
type Stamp = (Option<SystemTime>, u64);

/// Maximum number of cached files.
const MAX_FILES: usize = 20_000;

impl SkillFiles {
    /// Returns the same files, with other content of the one at a resolved path.
    pub fn with_draft(&self, real: PathBuf, content: &[u8]) -> Self {
        Self { known: Arc::clone(&self.known), draft: Some((real, Arc::new(SkillFile::of(content)))) }
    }

    /// Reads the file at a resolved path.
    fn read(&self, real: &Path) -> Result<Arc<SkillFile>, String> {
        if let Some((_, draft)) = self.draft.as_ref().filter(|(path, _)| path == real) {
            return Ok(Arc::clone(draft));
        }
        let found = std::fs::metadata(real).map_err(|error| error.to_string())?;
        let stamp = (found.modified().ok(), found.len());
        let cache = || self.known.locked();
        if let Some((cached, file)) = cache().get(real)
            && *cached == stamp
        {
            return Ok(Arc::clone(file));
        }
        let bytes = files::read_file(real, MAX_BYTES).map_err(|refusal| refusal.to_string())?;
        let file = Arc::new(SkillFile::of(&bytes));
        let mut files = cache();
        if files.len() >= MAX_FILES {
            files.clear();
        }
        files.insert(real.to_owned(), (stamp, Arc::clone(&file)));
        Ok(file)
    }
}

/// A skill that the client finds or includes.
struct Candidate<'a> {
    place: usize,
    found: FoundSkillFile,
    read: ClientEntry,
    skill: Option<&'a Arc<Skill>>,
    id: Option<&'a SkillId>,
    state: ClientViewState,
    /// Why it is not listed, as text that applies to all of its kind.
    why: Option<String>,
    /// What to do about that, if the client does not find it.
    help: Option<String>,
    bundled: bool,
    /// Whether its folder is none of the client's.
    assumed: bool,
    /// Whether the client does not find it, or may not.
    missed: bool,
    /// The setting of the client that applies to it.
    setting: Option<String>,
    /// The setting that reduces it to its name.
    name_only: Option<String>,
}

impl Candidate<'_> {
    fn is_listed(&self) -> bool {
        self.why.is_none()
    }

    fn leave_out(&mut self, state: ClientViewState, why: String) {
        (self.state, self.why, self.help) = (state, Some(why), None);
    }

    /// Returns what the client does with it, as a bundle of the catalog.
    fn bundle(&self, id: &SkillId) -> ClientBundle {
        let entry = ClientViewEntry {
            skill_id: id.clone(),
            state: self.state.clone(),
            help: self.help.clone(),
            setting: self.setting.clone(),
            assumed: self.assumed,
        };
        ClientBundle { entry, why: self.why.clone() }
    }
}

/// The content of the catalog, by path.
struct CatalogByPath<'a> {
    skills: HashMap<&'a Path, &'a Arc<Skill>>,
    refused: HashMap<&'a Path, &'a RejectedBundle>,
}

impl<'a> CatalogByPath<'a> {
    fn of(catalog: &'a Catalog) -> Self {
        let all = || {
            let losers = catalog.shadowed.iter().map(|loser| &loser.skill);
            catalog.entries.iter().map(|entry| &entry.skill).chain(losers)
        };
        let mut skills: HashMap<&Path, &Arc<Skill>> = HashMap::new();
        for skill in all() {
            if let Some(real) = &skill.real {
                skills.entry(&real.location).or_insert(skill);
            }
        }
        skills.extend(all().map(|skill| (skill.location.as_path(), skill)));
        for alias in &catalog.aliases {
            if let Some(skill) = skills.get(alias.same_as.as_path()).copied() {
                skills.entry(&alias.location).or_insert(skill);
            }
        }
        let refused = catalog.refused.iter().map(|refusal| (refusal.location.as_path(), refusal)).collect();
        Self { skills, refused }
    }

    fn skill(&self, found: &FoundSkillFile) -> Option<&'a Arc<Skill>> {
        [&found.file, &found.real].into_iter().find_map(|path| self.skills.get(path.as_path()).copied())
    }

    /// Returns the rejected bundle that is this skill. A skill deeper below a link to a folder is not in the catalog.
    fn refusal(&self, found: &FoundSkillFile) -> Option<&'a RejectedBundle> {
        let paths = [found.file.as_path(), found.real.as_path(), found.folder()];
        paths.into_iter().find_map(|path| self.refused.get(path).copied())
    }
}

/// Computes the client's view.
pub fn compute_view<'a>(
    profile: &Profile,
    catalog: &'a Catalog,
    config: &Config,
    files: &SkillFiles,
    settings: &ClientSettings,
) -> ClientCatalog<'a> {
    let folders = places(profile, catalog, config);
    let by_path = CatalogByPath::of(catalog);
    let FoundSkills { mut candidates, repeated, seen } = find_skills(profile, &folders, &by_path, files);
    candidates.extend(missed_behind_links(profile, catalog, config, &folders, &by_path, files, &seen));
    candidates.extend(bundled(profile, folders.len(), config, &by_path, files));
    apply_folder_limit(&mut candidates, profile, folders.len());
    let not_shown = resolve_same_names(&mut candidates, profile);
    hide_user_only(&mut candidates);
    apply_conditions(&mut candidates, profile);
    apply_settings(&mut candidates, settings);
    let order = in_order(&candidates, profile, &folders);
    let scopes: Vec<Scope> = folders.iter().map(|folder| folder.scope).collect();
    let aliases = aliases(&candidates, folders.len(), profile);
    let writer = EntryWriter { profile, config, places: &folders, scopes: &scopes, aliases: &aliases };
    let mut builder = ViewBuilder::new(&folders);
    // A file that is listed under any path counts as listed: another path to it may have lost the name.
    let (listed, unlisted): (Vec<usize>, Vec<usize>) =
        order.into_iter().partition(|at| candidates[*at].is_listed());
    builder.add_listed(&candidates, &listed, &not_shown, &writer);
    builder.add_unlisted(&candidates, &unlisted, catalog);
    // Another path to a file that the client read already.
    for candidate in &repeated {
        builder.add_bundle(candidate);
    }
    let found = candidates.iter().chain(&repeated);
    let found: BTreeMap<&Path, &Candidate<'_>> =
        found.map(|candidate| (candidate.found.file.as_path(), candidate)).collect();
    for (id, location, refusal) in all_bundles(catalog) {
        builder.add_other_bundle(id, || {
            let without_skill = refusal.and_then(|refusal| {
                without_file(id, refusal, &folders).or_else(|| linked_folder(id, refusal, &found))
            });
            without_skill.unwrap_or_else(|| {
                undiscovered_bundle(id, location, catalog, &folders, profile, &config.dirs.home)
            })
        });
    }
    let view = builder.view;
    let has_bundles = |folder: &AssumedFolder| {
        all_bundles(catalog).any(|(_, location, _)| location.starts_with(&folder.path))
    };
    let assumed_folders = folders.into_iter().filter_map(|folder| folder.assumed).filter(has_bundles);
    ClientCatalog { assumed_folders: assumed_folders.collect(), ..view }
}

/// The skills that a client finds in its folders.
struct FoundSkills<'a> {
    candidates: Vec<Candidate<'a>>,
    /// Other paths to files of the candidates, if the client reads every file once.
    repeated: Vec<Candidate<'a>>,
    /// The resolved path of each file, with the first path to it.
    seen: HashMap<PathBuf, PathBuf>,
}

fn find_skills<'a>(
    profile: &Profile,
    folders: &[ClientFolder],
    by_path: &CatalogByPath<'a>,
    files: &SkillFiles,
) -> FoundSkills<'a> {
    let reads_files_once = profile.reading.value().is_some_and(|reading| reading.real_paths);
    let mut seen: HashMap<PathBuf, PathBuf> = HashMap::new();
    let mut candidates: Vec<Candidate<'a>> = Vec::new();
    let mut repeated = Vec::new();
    for (index, folder) in folders.iter().enumerate() {
        for found in folder.found(profile) {
            let first = seen.get(&found.real).filter(|_| reads_files_once).cloned();
            seen.entry(found.real.clone()).or_insert_with(|| found.file.clone());
            let mut candidate = read_candidate(profile, index, folder, found, by_path, files);
            let Some(first) = first else {
                candidates.push(candidate);
                continue;
            };
            let why = shadowed_by(&first, true);
            candidate.leave_out(ClientViewState::Shadowed(first), why);
            candidate.help = Some("remove one of the two links".to_owned());
            repeated.push(candidate);
        }
    }
    // What the client finds in its own folders is not assumed.
    let own: HashSet<PathBuf> = candidates
        .iter()
        .filter(|candidate| !candidate.assumed)
        .map(|candidate| candidate.found.real.clone())
        .collect();
    candidates.retain(|candidate| !candidate.assumed || !own.contains(&candidate.found.real));
    FoundSkills { candidates, repeated, seen }
}

/// A view to which every bundle of the catalog and every other file is added once: what is added first counts.
struct ViewBuilder<'a, 'f> {
    folders: &'f [ClientFolder],
    view: ClientCatalog<'a>,
    seen_bundles: HashSet<&'a str>,
    /// Resolved paths of the files that are not in the catalog.
    seen_files: HashSet<PathBuf>,
}

impl<'a, 'f> ViewBuilder<'a, 'f> {
    fn new(folders: &'f [ClientFolder]) -> Self {
        Self {
            folders,
            view: ClientCatalog {
                rows: Vec::new(),
                bundles: Vec::new(),
                foreign: Vec::new(),
                others: Vec::new(),
                assumed_folders: Vec::new(),
            },
            seen_bundles: HashSet::new(),
            seen_files: HashSet::new(),
        }
    }

    /// Adds a candidate if it is a bundle of the catalog.
    fn add_bundle(&mut self, candidate: &Candidate<'a>) {
        if let Some(id) = candidate.id {
            self.add_other_bundle(id, || candidate.bundle(id));
        }
    }

    /// Adds a bundle of the catalog.
    fn add_other_bundle(&mut self, id: &'a SkillId, bundle: impl FnOnce() -> ClientBundle) {
        if self.seen_bundles.insert(id.as_str()) {
            self.view.bundles.push(bundle());
        }
    }

    /// Adds a candidate if it is not in the catalog. Returns whether it is a bundle of the catalog, a bundled skill, or a
    /// file that was not seen under another path.
    fn add_foreign(&mut self, candidate: &Candidate<'_>) -> bool {
        if candidate.id.is_some() || candidate.bundled {
            return true;
        }
        let is_new = self.seen_files.insert(candidate.found.real.clone());
        if is_new {
            let (error, rejected) = error_in(candidate, self.folders);
            self.view.foreign.push(ForeignBundle {
                name: candidate.read.name.clone(),
                location: candidate.found.file.clone(),
                description: candidate.read.description.clone(),
                state: candidate.state.clone(),
                setting: candidate.setting.clone(),
                error,
                rejected,
                assumed: candidate.assumed,
                missed: candidate.missed,
            });
        }
        is_new
    }

    /// Adds the listed candidates in their order; those in `not_shown` without an entry in the list.
    fn add_listed(
        &mut self,
        candidates: &[Candidate<'a>],
        listed: &[usize],
        not_shown: &HashSet<usize>,
        writer: &EntryWriter<'_>,
    ) {
        let mut names: HashSet<&str> = listed.iter().map(|at| candidates[*at].read.name.as_str()).collect();
        for at in listed {
            let candidate = &candidates[*at];
            self.add_bundle(candidate);
            self.add_foreign(candidate);
            if !not_shown.contains(at) {
                let other = candidate.read.other_name.as_deref().filter(|other| names.insert(*other));
                self.view.rows.push(writer.row(candidate, other));
            }
        }
    }

    /// Adds the candidates that the client does not list, with the reasons.
    fn add_unlisted(&mut self, candidates: &[Candidate<'a>], unlisted: &[usize], catalog: &Catalog) {
        let ids: HashSet<&str> = all_bundles(catalog).map(|(id, ..)| id.as_str()).collect();
        for at in unlisted {
            let candidate = &candidates[*at];
            let name = &candidate.read.name;
            let Some(why) = candidate.why.clone().filter(|_| self.add_foreign(candidate)) else { continue };
            self.add_bundle(candidate);
            // A skill of the user takes the place of a bundled one in the list.
            let is_replaced = candidate.bundled && matches!(candidate.state, ClientViewState::Shadowed(_));
            if candidate.id.is_some() || is_replaced {
                continue;
            }
            // Ids of the catalog are names of its own bundles only.
            let is_id = ids.contains(name.as_str());
            let name = if is_id { candidate.found.file.display().to_string() } else { name.clone() };
            self.view.others.push((name, why));
        }
    }
}

/// Returns the skills behind links to folders that the client does not find, or may not, each with the reason: other
/// clients find them. `seen` contains the resolved paths of those that it finds.
fn missed_behind_links<'a>(
    profile: &Profile,
    catalog: &Catalog,
    config: &Config,
    places: &[ClientFolder],
    by_path: &CatalogByPath<'a>,
    files: &SkillFiles,
    seen: &HashMap<PathBuf, PathBuf>,
) -> Vec<Candidate<'a>> {
    let is_folder = |link: &&RejectedBundle| {
        link.reason == RefusalReason::LeavesRoot && !link.location.join(SKILL_FILE).exists()
    };
    let (mut missed, mut scanned) = (Vec::new(), ScannedLinks::default());
    for link in catalog.refused.iter().filter(is_folder) {
        let mut folders = places.iter().enumerate();
        let Some((index, place)) = folders.find(|(_, place)| link.location.starts_with(&place.path)) else {
            continue;
        };
        for found in place.files_behind(&link.location, &mut scanned) {
            if seen.contains_key(&found.real) {
                continue;
            }
            let Some(reason) = place.reason_missed(&found.file, profile) else { continue };
            let mut candidate = read_candidate(profile, index, place, found, by_path, files);
            // A bundle of the catalog has its own reason.
            if candidate.id.is_some() {
                continue;
            }
            let (state, why, help) = missed_state(reason, place, profile, &config.dirs.home);
            candidate.leave_out(state, why);
            (candidate.help, candidate.missed) = (help, true);
            missed.push(candidate);
        }
    }
    missed
}

/// Returns the error of a file that the catalog does not contain, and whether a catalog would reject the file for it.
/// A file that the client reads as written is not read again, and one behind a link that points outside the folder is
/// never read.
fn error_in(one: &Candidate<'_>, places: &[ClientFolder]) -> (Option<Finding>, bool) {
    let is_read = one.state == ClientViewState::Found && !one.read.description.trim().is_empty();
    let is_outside = places.get(one.place).is_none_or(|place| place.left_by(&one.found.real));
    if is_read || is_outside {
        return (None, false);
    }
    let file = &one.found.file;
    let read = RealPaths::of(file, one.found.real.clone()).map(|real| read_bundle_at(file, real));
    match read {
        Ok(Ok(skill)) => {
            let about = defect_in(&skill.findings, one.read.rules);
            (about.or_else(|| defect(&skill.findings)).cloned(), false)
        }
        Ok(Err(refusal)) => (rejection_cause(&refusal).cloned(), true),
        // The file no longer exists.
        Err(_) => (None, false),
    }
}

/// Returns why a skill is not listed next to the other one at this path; `is_same` if both are the same file.
pub fn shadowed_by(winner: &Path, is_same: bool) -> String {
    if is_same {
        let name = winner.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        return format!("the same folder is already listed as {name}");
    }
    format!("shadowed by a skill with the same name: {}", winner.display())
}

/// Returns why the client finds no skill, for a folder that it searches without a SKILL.md.
fn without_file(id: &SkillId, refusal: &RejectedBundle, places: &[ClientFolder]) -> Option<ClientBundle> {
    let place = places.iter().find(|place| refusal.location.starts_with(&place.path))?;
    let finding = refusal.findings.last().filter(|_| refusal.reason == RefusalReason::NoSkillFile)?;
    let entry = ClientViewEntry {
        skill_id: id.clone(),
        state: ClientViewState::NotRead(finding.message.clone()),
        help: Some(finding.help.clone()).filter(|help| !help.is_empty()),
        setting: None,
        assumed: place.assumed.is_some(),
    };
    Some(ClientBundle { entry, why: Some(format!("no {SKILL_FILE}")) })
}

/// Returns what the client does with a link to a folder that is not a skill itself, if it finds skills in that folder.
fn linked_folder(
    id: &SkillId,
    refusal: &RejectedBundle,
    found: &BTreeMap<&Path, &Candidate<'_>>,
) -> Option<ClientBundle> {
    let link = refusal.location.as_path();
    // Paths are ordered by component: those below the link follow it.
    let (file, one) = found.range(link..).next()?;
    if refusal.reason != RefusalReason::LeavesRoot || !file.starts_with(link) {
        return None;
    }
    let why =
        format!("a symbolic link to a folder without {SKILL_FILE}; the skills in it are listed separately");
    let entry = ClientViewEntry {
        skill_id: id.clone(),
        state: ClientViewState::NotRead(why.clone()),
        help: None,
        setting: None,
        assumed: one.assumed,
    };
    Some(ClientBundle { entry, why: Some(why) })
}

/// Returns the ids and locations of all bundles of the catalog, and the rejected ones.
fn all_bundles(catalog: &Catalog) -> impl Iterator<Item = (&SkillId, &Path, Option<&RejectedBundle>)> {
    let skills = catalog.entries.iter().map(|entry| &entry.skill);
    let skills = skills.chain(catalog.shadowed.iter().map(|loser| &loser.skill));
    let skills = skills.map(|skill| (&skill.id, skill.location.as_path(), None));
    let refused = catalog.refused.iter();
    skills.chain(refused.map(|refusal| (&refusal.id, refusal.location.as_path(), Some(refusal))))
}

/// Reads a file as the client does. `index` is that of its folder.
fn read_candidate<'a>(
    profile: &Profile,
    index: usize,
    place: &ClientFolder,
    found: FoundSkillFile,
    by_path: &CatalogByPath<'a>,
    files: &SkillFiles,
) -> Candidate<'a> {
    let skill = by_path.skill(&found);
    let refusal = by_path.refusal(&found);
    let id = skill.map(|skill| &skill.id).or_else(|| refusal.map(|refusal| &refusal.id));
    let findings = skill.map(|skill| &*skill.findings).or_else(|| refusal.map(|refusal| &*refusal.findings));
    let folder = found.folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut candidate = Candidate {
        place: index,
        read: ClientEntry { name: folder.clone(), ..ClientEntry::default() },
        found,
        skill,
        id,
        state: ClientViewState::Found,
        why: None,
        help: None,
        bundled: false,
        assumed: place.assumed.is_some(),
        missed: false,
        setting: None,
        name_only: None,
    };
    let file = match files.read(&candidate.found.real) {
        Ok(file) => file,
        Err(why) => {
            if let Some(why) = too_large(profile, &candidate.found.real) {
                candidate.leave_out(ClientViewState::Dropped(why.clone()), why);
                candidate.help = Some(SMALLER.to_owned());
            } else if let Err(error) = files::open_regular(&candidate.found.real)
                && error.kind() == std::io::ErrorKind::PermissionDenied
            {
                // The client runs as the same user.
                let why = format!("its {SKILL_FILE} cannot be read: {error}");
                candidate.leave_out(ClientViewState::Dropped(why), "unreadable file".to_owned());
                candidate.help = Some(CHECK_PERMISSIONS.to_owned());
            } else {
                let what = format!("{why}: not supported here; {} may handle it differently", profile.name);
                candidate.leave_out(ClientViewState::Unknown(what), "unreadable file".to_owned());
            }
            return candidate;
        }
    };
    // Behind a link that points outside the folder only frontmatter is read, never the text of an arbitrary file.
    let outside = place.left_by(&candidate.found.real);
    if let Some(cause) = file.without_fields().filter(|_| outside) {
        let why = "a link that points outside the folder, to a file without readable frontmatter".to_owned();
        let what = format!("{why} ({cause}): not read here; {} may handle it differently", profile.name);
        candidate.leave_out(ClientViewState::Unknown(what), why);
        return candidate;
    }
    match read(profile, &file, &folder) {
        ParseOutcome::Dropped { why, common, rules } => {
            candidate.leave_out(ClientViewState::Dropped(why), common);
            candidate.read.rules = rules;
            let smaller = too_large(profile, &candidate.found.real).map(|_| SMALLER.to_owned());
            candidate.help = smaller.or_else(|| defect_help(findings?, rules, outside));
        }
        // The text below the frontmatter, in place of a description.
        ParseOutcome::Listed(read) if outside && read.other_text => {
            let why =
                "a link that points outside the folder, to a file without a readable description".to_owned();
            let what = format!("{why}: its text is not read here; {} lists a part of it", profile.name);
            candidate.read.name = read.name;
            candidate.leave_out(ClientViewState::Unknown(what), why);
        }
        ParseOutcome::Listed(read) => {
            candidate.state = match (&read.unknown, &read.repaired) {
                (Some(unknown), _) => ClientViewState::Unknown(unknown.clone()),
                (None, Some(how)) => ClientViewState::Repaired(how.clone()),
                (None, None) => ClientViewState::Found,
            };
            // The client reads the file; whether it passes the text to the model is unknown.
            candidate.setting = read.undocumented_key.as_ref().map(|key| format!("`{key}` in {SKILL_FILE}"));
            candidate.read = read;
            let is_repaired = matches!(candidate.state, ClientViewState::Repaired(_));
            if is_repaired || candidate.read.description.trim().is_empty() {
                candidate.help =
                    findings.and_then(|findings| defect_help(findings, candidate.read.rules, outside));
            }
            if let Some(skill) = skill.filter(|_| is_repaired) {
                candidate.read.other_text |= is_other_text(&skill.description, &candidate.read.description);
            }
            if let Some(mark) =
                candidate.found.real.parent().and_then(|folder| user_invocable::mark(profile, folder))
            {
                candidate.read.people_only.get_or_insert_with(|| mark.to_owned());
            }
        }
    }
    candidate
}

/// Returns what to do about a defect of a file, of which these are the findings: what the finding about it says, or, of a
/// file in the folder, its rule.
fn defect_help(findings: &[Finding], rules: RuleCodes, outside: bool) -> Option<String> {
    let found = defect_in(findings, rules).map(Finding::action);
    let rule = || ALL.iter().find(|rule| rules.first() == Some(&rule.code)).map(Rule::action);
    found.or_else(|| if outside { None } else { rule() }).map(str::to_owned)
}

/// Returns the finding about the defect that these rules describe.
fn defect_in(findings: &[Finding], rules: RuleCodes) -> Option<&Finding> {
    rules.iter().find_map(|code| findings.iter().find(|finding| finding.code == *code))
}

/// Returns whether a client's text is neither the description, nor its beginning, nor the description with more text.
fn is_other_text(description: &str, text: &str) -> bool {
    let own = one_blank(description);
    let text = one_blank(&text.replace("&lt;", "<").replace("&gt;", ">"));
    let beginning = text.trim_end_matches(['…', '.', ' ']);
    !own.starts_with(beginning) && !text.starts_with(&own)
}

/// What to do about a file that is too large.
const SMALLER: &str = "move text into other files of the folder, so that SKILL.md is smaller";

/// Returns why the client drops a file of this size, if it does.
fn too_large(profile: &Profile, file: &Path) -> Option<String> {
    let most = profile.file.bytes.value().copied().flatten()?;
    let bytes = std::fs::metadata(file).ok()?.len();
    (bytes > most).then(|| format!("its SKILL.md has {bytes} bytes; the maximum is {most}"))
}

/// Returns the skills that the client includes: those it has unpacked, else those of its profile.
fn bundled<'a>(
    profile: &Profile,
    place: usize,
    config: &Config,
    by_path: &CatalogByPath<'a>,
    files: &SkillFiles,
) -> Vec<Candidate<'a>> {
    let Some(bundled) = profile.bundled.value() else { return Vec::new() };
    let unpacked = bundled.folder.as_ref().filter(|_| !config.demo);
    let unpacked = unpacked.map(|folder| config.dirs.home.join(folder));
    let make = |found: FoundSkillFile, read: ClientEntry, skill: Option<&'a Arc<Skill>>| Candidate {
        place,
        found,
        read,
        skill,
        id: skill.map(|skill| &skill.id),
        state: ClientViewState::Found,
        why: None,
        help: None,
        bundled: true,
        assumed: false,
        missed: false,
        setting: None,
        name_only: None,
    };
    if let Some(folder) = unpacked.filter(|folder| folder.is_dir()) {
        let found = ClientFolder::new(folder, Scope::User, profile, None).found(profile);
        let one = |found: FoundSkillFile| {
            let name = found.folder().file_name()?.to_string_lossy().into_owned();
            let ParseOutcome::Listed(mut read) = read(profile, &*files.read(&found.real).ok()?, &name) else {
                return None;
            };
            let skill = by_path.skill(&found);
            if let Some(mark) = user_invocable::mark(profile, found.real.parent()?) {
                // Only a skill of the catalog has a state to report.
                skill?;
                read.people_only.get_or_insert_with(|| mark.to_owned());
            }
            Some(make(found, read, skill))
        };
        let mut unpacked: Vec<_> = found.into_iter().filter_map(one).collect();
        if !unpacked.is_empty() {
            unpacked.sort_by(|a, b| a.read.name.cmp(&b.read.name));
            unpacked.iter_mut().enumerate().for_each(|(at, one)| one.found.at = at);
            return unpacked;
        }
    }
    let own = bundled.skills.iter().enumerate().map(|(at, skill)| {
        // Only the length of the description is known.
        let (characters, breaks) = (skill.characters as usize, skill.line_breaks as usize);
        let description = ".".repeat(characters.saturating_sub(breaks)) + &"\n".repeat(breaks);
        let location = bundled.location_of(&skill.name);
        let file = PathBuf::from(location);
        let read = ClientEntry { name: skill.name.clone(), description, ..ClientEntry::default() };
        make(FoundSkillFile { real: file.clone(), file, at }, read, None)
    });
    own.collect()
}

/// Applies a client's limit of skills per folder: it takes those that it finds first.
fn apply_folder_limit(candidates: &mut [Candidate<'_>], profile: &Profile, folders: usize) {
    let Some(most) = profile.reading.value().and_then(|reading| reading.skills) else { return };
    for index in 0..folders {
        let in_folder =
            candidates.iter_mut().filter(|candidate| candidate.place == index && candidate.is_listed());
        for candidate in in_folder.skip(most as usize) {
            let why = format!("beyond the first {most} skills of a folder, the limit of {}", profile.name);
            candidate.leave_out(ClientViewState::NotRead(why.clone()), why);
            candidate.help = Some("move other skills out of the folder".to_owned());
        }
    }
}

/// Applies the client's rule for skills with the same name. If it is undefined which of them is listed, all of them
/// count as listed, but one is shown; returns the indices of the others.
fn resolve_same_names(candidates: &mut [Candidate<'_>], profile: &Profile) -> HashSet<usize> {
    let mut not_shown = HashSet::new();
    let rule = match profile.same_name.value() {
        Some(SameName::All) | None => return not_shown,
        Some(rule) => *rule,
    };
    let mut order: Vec<usize> = (0..candidates.len()).filter(|at| candidates[*at].is_listed()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&candidates[*a], &candidates[*b]);
        let inside = a.found.file.cmp(&b.found.file);
        a.place.cmp(&b.place).then(if rule == SameName::LastRead { inside.reverse() } else { inside })
    });
    let mut names: HashMap<String, Vec<usize>> = HashMap::new();
    for at in order {
        names.entry(candidates[at].read.name.clone()).or_default().push(at);
    }
    for same in names.into_values().filter(|same| same.len() > 1) {
        let Some((&winner, losers)) = same.split_first() else { continue };
        if rule == SameName::Undefined {
            mark_undefined(candidates, &same);
            // A copy in the catalog is shown with its id and description.
            let shown = same.iter().copied().find(|at| candidates[*at].id.is_some()).unwrap_or(winner);
            not_shown.extend(same.into_iter().filter(|at| *at != shown));
            continue;
        }
        let path = candidates[winner].found.file.clone();
        for &loser in losers {
            let state = ClientViewState::Shadowed(path.clone());
            candidates[loser].leave_out(state, "shadowed by a skill with the same name".to_owned());
        }
    }
    not_shown
}

/// Marks skills with the same name of which an undefined one is listed. Two paths to one file do not differ.
fn mark_undefined(candidates: &mut [Candidate<'_>], same: &[usize]) {
    let named = first_of_each_file(candidates, same);
    let others_of = |of: usize| -> Vec<PathBuf> {
        let others = named.iter().map(|at| &candidates[*at].found);
        let others = others.filter(|other| other.real != candidates[of].found.real);
        others.take(MAX_NAMED_FILES).map(|other| other.file.clone()).collect()
    };
    let others: Vec<(usize, Vec<PathBuf>)> = same.iter().map(|at| (*at, others_of(*at))).collect();
    for (at, others) in others.into_iter().filter(|(_, others)| !others.is_empty()) {
        candidates[at].state = ClientViewState::Either(others);
    }
}

/// Returns as many of the skills as are sufficient to name the others of each one: the first paths to the first files.
fn first_of_each_file(candidates: &[Candidate<'_>], same: &[usize]) -> Vec<usize> {
    let mut files: HashMap<&Path, usize> = HashMap::new();
    let mut first = Vec::new();
    for at in same {
        let real = candidates[*at].found.real.as_path();
        // One file more than are named: that of the skill itself is not.
        if files.len() > MAX_NAMED_FILES && !files.contains_key(real) {
            continue;
        }
        let paths = files.entry(real).or_default();
        *paths += 1;
        if *paths <= MAX_NAMED_FILES {
            first.push(*at);
        }
    }
    first
}

/// Marks skills that only users can invoke, and skills that require a matching file: they keep their names but are not
/// listed for the model.
fn hide_user_only(candidates: &mut [Candidate<'_>]) {
    for candidate in candidates.iter_mut().filter(|candidate| candidate.is_listed()) {
        if let Some(setting) = candidate.read.people_only.clone() {
            let why = format!("user-only: {setting}");
            candidate.leave_out(ClientViewState::ForPeople(setting), why);
        } else if let Some(until) = candidate.read.waits.clone() {
            candidate.leave_out(ClientViewState::Waiting(until.clone()), until);
        }
    }
}

/// Marks skills that the client offers only on some machines: whether this is one of them is not known here.
fn apply_conditions(candidates: &mut [Candidate<'_>], profile: &Profile) {
    for one in candidates.iter_mut().filter(|one| one.is_listed()) {
        let Some(key) = one.read.condition.clone() else { continue };
        if matches!(one.state, ClientViewState::Found | ClientViewState::Repaired(_)) {
            let source = format!("`{key}` in {SKILL_FILE}");
            let client = &profile.name;
            let what =
                format!("{client} offers it only where {source} is satisfied, which is not checked here");
            (one.state, one.setting) = (ClientViewState::Unknown(what), Some(source));
        }
    }
}

/// Applies the client's settings: they hide a skill, reduce it to its name, or have an effect that is not known.
fn apply_settings(candidates: &mut [Candidate<'_>], settings: &ClientSettings) {
    let is_loaded =
        |one: &Candidate<'_>| one.is_listed() || matches!(one.state, ClientViewState::ForPeople(_));
    for one in candidates.iter_mut().filter(|one| is_loaded(one)) {
        let selected = Selected {
            name: &one.read.name,
            other_name: one.read.other_name.as_deref(),
            key: one.read.settings_key.as_deref(),
            file: &one.found.real,
            bundled: one.bundled,
        };
        let Some(setting) = settings.of(&selected) else { continue };
        let source = setting.source;
        match setting.level {
            Level::Off => {
                one.leave_out(ClientViewState::TurnedOff(source.clone()), format!("turned off: {source}"));
            }
            // The file itself hides it already.
            _ if !one.is_listed() => continue,
            Level::On => {}
            Level::NameOnly => one.name_only = Some(source.clone()),
            Level::UserOnly => {
                one.leave_out(ClientViewState::ForPeople(source.clone()), format!("user-only: {source}"));
            }
            Level::Unknown(what) => one.state = ClientViewState::Unknown(what),
        }
        one.setting = Some(source);
    }
}

/// Returns the candidates in the client's order, including those that it does not list.
fn in_order(candidates: &[Candidate<'_>], profile: &Profile, places: &[ClientFolder]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    let of = |at: &usize| &candidates[*at];
    let among = profile.bundled.value().map_or(BundledListing::Last, |bundled| bundled.among);
    // Included skills have their own order, before or after the others.
    let precedence = |one: &Candidate<'_>| match (one.bundled, among) {
        (true, BundledListing::First) => (0, one.found.at),
        (true, BundledListing::Last) => (2, one.found.at),
        (true, BundledListing::Sorted) | (false, _) => (1, 0),
    };
    let by_path = |a: &Candidate<'_>, b: &Candidate<'_>| a.found.file.cmp(&b.found.file);
    match profile.order.value() {
        Some(Order::ScopeNamePath) => {
            let scope =
                |one: &Candidate<'_>| places.get(one.place).map_or(1, |place| scope_rank(place.scope));
            let key = |one: &Candidate<'_>| (precedence(one), scope(one));
            order.sort_by(|a, b| {
                let (a, b) = (of(a), of(b));
                key(a)
                    .cmp(&key(b))
                    .then_with(|| a.read.name.cmp(&b.read.name))
                    .then_with(|| a.found.real.cmp(&b.found.real))
            });
        }
        Some(Order::Name) => order.sort_by(|a, b| {
            let (a, b) = (of(a), of(b));
            precedence(a)
                .cmp(&precedence(b))
                .then_with(|| english(&a.read.name, &b.read.name))
                .then_with(|| by_path(a, b))
        }),
        Some(Order::StrongestFirst) | None => order.sort_by(|a, b| {
            let (a, b) = (of(a), of(b));
            let own = precedence(a).cmp(&precedence(b));
            let name = a.read.name.cmp(&b.read.name);
            own.then(a.place.cmp(&b.place)).then(name).then_with(|| by_path(a, b))
        }),
        Some(Order::StrongestFirstByName) => order.sort_by(|a, b| {
            let (a, b) = (of(a), of(b));
            let name = english(&a.read.name, &b.read.name);
            precedence(a)
                .cmp(&precedence(b))
                .then(a.place.cmp(&b.place))
                .then(name)
                .then_with(|| by_path(a, b))
        }),
        Some(Order::WeakestFirst) => {
            order.sort_by(|a, b| {
                let (a, b) = (of(a), of(b));
                let own = precedence(a).cmp(&precedence(b));
                own.then(Reverse(a.place).cmp(&Reverse(b.place))).then_with(|| by_path(b, a))
            });
            // The first skill of a name reserves the position for the one that wins it.
            let mut first: HashMap<&str, usize> = HashMap::new();
            let in_list =
                |one: &Candidate<'_>| one.is_listed() || matches!(one.state, ClientViewState::Shadowed(_));
            for (at, one) in order.iter().map(of).enumerate().filter(|(_, one)| in_list(one)) {
                first.entry(&one.read.name).or_insert(at);
            }
            let mut placed: Vec<(usize, usize)> = order
                .iter()
                .enumerate()
                .map(|(at, one)| (*first.get(&*of(one).read.name).unwrap_or(&at), *one))
                .collect();
            placed.sort_by_key(|(at, _)| *at);
            order = placed.into_iter().map(|(_, one)| one).collect();
        }
    }
    order
}

fn scope_rank(scope: Scope) -> usize {
    match scope {
        Scope::Project => 0,
        Scope::User => 1,
    }
}

/// Returns the short names of the client's folders, if it writes a table of those with a listed skill.
fn aliases(candidates: &[Candidate<'_>], places: usize, profile: &Profile) -> Vec<Option<String>> {
    let writes = profile.budget.measured.value().is_some_and(|measured| measured.location == Location::Alias);
    let mut next = usize::from(candidates.iter().any(|one| one.bundled && one.is_listed()));
    (0..places)
        .map(|which| {
            let used = candidates.iter().any(|one| one.place == which && one.is_listed());
            (writes && used).then(|| {
                next += 1;
                format!("r{}", next - 1)
            })
        })
        .collect()
}

/// How a client writes an entry.
struct EntryWriter<'w> {
    profile: &'w Profile,
    config: &'w Config,
    places: &'w [ClientFolder],
    scopes: &'w [Scope],
    aliases: &'w [Option<String>],
}

impl EntryWriter<'_> {
    fn row<'a>(&self, one: &Candidate<'a>, other_name: Option<&str>) -> Row<'a> {
        let entry = ListedEntry {
            name: one.read.name.clone(),
            description: if one.name_only.is_some() { String::new() } else { one.read.description.clone() },
            location: (!one.bundled || one.skill.is_some()).then(|| one.found.file.clone()),
            skill_id: one.skill.map(|skill| skill.id.clone()),
            bundled: one.bundled,
            cut: one.read.cut && one.name_only.is_none(),
            other_text: one.read.other_text && one.name_only.is_none(),
            name_only: one.name_only.clone(),
            unknown: match &one.state {
                ClientViewState::Unknown(what) => Some(what.clone()),
                _ => None,
            },
            assumed: one.assumed,
            title: other_name.map(|other| format!("{} ({other})", one.read.name)),
            written_location: self.location(one),
        };
        Row { entry, skill: one.skill }
    }

    /// Returns the location in the list, if it is not the path.
    fn location(&self, one: &Candidate<'_>) -> Option<String> {
        let measured = self.profile.budget.measured.value()?;
        let path = &one.found.file;
        if one.bundled {
            let own = self.profile.bundled.value();
            return own.map(|own: &Bundled| own.location_of(&one.read.name));
        }
        match measured.location {
            Location::Path => None,
            Location::Tilde => {
                let below = path.strip_prefix(&self.config.dirs.home).ok()?;
                Some(format!("~/{}", below.display()))
            }
            Location::Scope => Some(self.scopes.get(one.place)?.to_string()),
            Location::Alias => {
                let alias = self.aliases.get(one.place)?.as_ref()?;
                match one.found.real.strip_prefix(self.places.get(one.place)?.real_path()) {
                    Ok(below) => Some(format!("{alias}/{}", below.display())),
                    Err(_) => Some(one.found.real.display().to_string()),
                }
            }
        }
    }
}

/// Returns why the client does not find a bundle of the catalog.
fn undiscovered_bundle(
    id: &SkillId,
    location: &Path,
    catalog: &Catalog,
    places: &[ClientFolder],
    profile: &Profile,
    home: &Path,
) -> ClientBundle {
    let bundle = |state: ClientViewState, why: String, help: Option<String>, assumed: bool| {
        let entry = ClientViewEntry { skill_id: id.clone(), state, help, setting: None, assumed };
        ClientBundle { entry, why: Some(why) }
    };
    let aliases = catalog.aliases_of(location);
    let paths: Vec<&Path> =
        std::iter::once(location).chain(aliases.map(|alias| alias.location.as_path())).collect();
    for place in places {
        if let Some(missed) = paths.iter().find_map(|path| place.reason_missed(path, profile)) {
            let (state, why, help) = missed_state(missed, place, profile, home);
            return bundle(state, why, help, place.assumed.is_some());
        }
    }
    let is_here = |root: &&Root| location.starts_with(&root.path);
    let is_shipped = catalog.roots.iter().filter(is_here).any(|root| root.origin == RootOrigin::Shipped);
    let out = bundle(
        ClientViewState::NotLooked,
        format!("not in a folder that {} searches", profile.name),
        None,
        false,
    );
    // The user did not put the skills of this program anywhere: no client is expected to list them.
    ClientBundle { why: out.why.filter(|_| !is_shipped), ..out }
}

/// Returns the state of a file that a client does not find below one of its folders, why as text that applies to every
/// file of that kind, and what to do about it.
fn missed_state(
    missed: Missed,
    place: &ClientFolder,
    profile: &Profile,
    home: &Path,
) -> (ClientViewState, String, Option<String>) {
    match missed {
        Missed::TooDeep => {
            let (name, folder) = (&profile.name, from_home(&place.path, home));
            let why = format!("nested too deep: {name} loads only folders directly in {folder}");
            (ClientViewState::TooDeep(place.path.clone()), why, None)
        }
        Missed::Name(why) => (ClientViewState::Dropped(why.clone()), why, None),
        Missed::Because(why, help) => (ClientViewState::NotRead(why.clone()), why, Some(help)),
        Missed::Unknown(what) => (ClientViewState::Unknown(what.clone()), what, None),
    }
}

fn from_home(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
#[path = "client_view_tests.rs"]
mod tests;
