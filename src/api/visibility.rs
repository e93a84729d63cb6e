//! `visibility`: which clients show which skills to their models, how much of each description, and why not more.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

use super::client_view::shadowed_by;
use super::uncataloged_bundles::{ListedEntries, is_named, linked_bundle, uncataloged_bundles};
use super::{
    AssumedFolder, Client, ClientView, ClientViewEntry, ClientViewState, Error, in_place, other_files,
    paging, why,
};
use skills_registry::Catalog;
use skills_session::{ListedEntry, Truncation};
use skills_skill::client::profile;
use skills_skill::{Skill, SkillId};

/// Which skills, in which clients.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VisibilityRequest {
    /// Id, unambiguous name or location of a skill; default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Ids of client profiles; default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub clients: Vec<String>,
    /// Page size, 1 to 1,000; default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: Option<usize>,
    /// Continue after the page that ended with this cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// What a client's model receives of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Visibility {
    /// Name and complete description.
    Full,
    /// Another text of the file in place of the description.
    OtherText,
    /// The beginning of the description.
    Cut,
    /// The name.
    NameOnly,
    /// Nothing: the skill is user-only.
    Manual,
    /// Nothing: the client's settings turn it off, or it is not offered yet.
    Off,
    /// Nothing: the client rejects the file or has no space for it.
    Dropped,
    /// Nothing: another skill has its name.
    Shadowed,
    /// This one or another skill with its name, which varies between starts.
    Undefined,
    /// Not known for this client.
    Unknown,
    /// Nothing: the client does not search its folder.
    NotSearched,
}

impl Visibility {
    /// Returns the sign in a matrix, in Unicode or ASCII.
    pub fn sign(self, unicode: bool) -> &'static str {
        let (sign, ascii) = match self {
            Self::Full => ("●", "@"),
            Self::OtherText => ("≠", "~"),
            Self::Cut => ("◐", "%"),
            Self::NameOnly => ("○", "o"),
            Self::Manual => ("/", "/"),
            Self::Off => ("⊘", "-"),
            Self::Dropped => ("✗", "x"),
            Self::Shadowed => ("◌", "s"),
            Self::Undefined => ("±", "="),
            Self::Unknown => ("?", "?"),
            Self::NotSearched => ("·", "."),
        };
        if unicode { sign } else { ascii }
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::OtherText => "other text",
            Self::Cut => "truncated",
            Self::NameOnly => "name only",
            Self::Manual => "user-only",
            Self::Off => "off",
            Self::Dropped => "dropped",
            Self::Shadowed => "shadowed",
            Self::Undefined => "undefined",
            Self::Unknown => "unknown",
            Self::NotSearched => "not searched",
        }
    }

    /// All states, in the order of a legend.
    pub const ALL: [Self; 11] = [
        Self::Full,
        Self::Cut,
        Self::OtherText,
        Self::NameOnly,
        Self::Manual,
        Self::Off,
        Self::Dropped,
        Self::Shadowed,
        Self::Undefined,
        Self::Unknown,
        Self::NotSearched,
    ];
}

/// A skill in a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VisibilityCell {
    /// Id of the client's profile.
    pub client: String,
    /// What its model receives.
    pub state: Visibility,
    /// Words of the description that it receives.
    pub words: usize,
    /// The name that the client gives the skill, if it lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How the client repairs the file, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repaired: Option<String>,
    /// The path under which the client lists the file, if it is not the skill's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: Option<PathBuf>,
    /// Why it is not shown in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is shown of the description, if one skill is requested and it is not all of it; another text in place of the
    /// description always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// Whether the skill is in no folder of the client and is shown as if it were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

/// A skill in all requested clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VisibilityRow {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// Its file in the catalog, or under the path of a link that only clients follow.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// Its root, as text; `in no root of this catalog` if only clients find it.
    pub root: String,
    /// Words of its description.
    pub words: usize,
    /// Its description, if one skill is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The clients, in the order of `clients`.
    pub cells: Vec<VisibilityCell>,
}

/// Returns the sources of the values of a profile that decide a state; `all` if it is not known which did.
pub(super) fn deciding_sources(client: &str, state: Visibility, all: &str) -> String {
    let Some(profile) = profile(client) else { return all.to_owned() };
    match state {
        Visibility::NotSearched => profile.folder_sources(),
        Visibility::Cut | Visibility::NameOnly => profile.budget_sources(),
        Visibility::Shadowed | Visibility::Undefined => profile.name_sources(),
        Visibility::Manual => profile.people_only_sources(),
        Visibility::Full
        | Visibility::OtherText
        | Visibility::Off
        | Visibility::Dropped
        | Visibility::Unknown => all.to_owned(),
    }
}

impl VisibilityClient {
    /// Returns the sources of what decides a cell of this client.
    #[must_use]
    pub fn sources_of(&self, cell: &VisibilityCell) -> String {
        deciding_sources(&self.client, cell.state, &self.source)
    }
}

impl VisibilityCell {
    /// Returns whether the model receives a description of the skill, or of another one with its name.
    fn has_description(&self) -> bool {
        match self.state {
            Visibility::Full | Visibility::Cut => true,
            // Of the skills with one name, the list has one.
            Visibility::Undefined => self.words > 0,
            _ => false,
        }
    }
}

/// A client of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VisibilityClient {
    /// Id of its profile.
    pub client: String,
    /// Name of the client.
    pub name: String,
    /// The version that was measured; absent if it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Sources of the profile.
    pub source: String,
    /// Skills of the catalog that its model receives with a description.
    pub with_description: usize,
    /// The limit of its list of skills, as text.
    pub limit: String,
    /// Folders that the client does not search and is shown as if it did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed_folders: Vec<AssumedFolder>,
}

/// Skills by clients.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VisibilityReport {
    /// The clients.
    pub clients: Vec<VisibilityClient>,
    /// The skills, in catalog order; after them those that cannot be parsed, and those that only clients find.
    pub skills: Vec<VisibilityRow>,
    /// Skills on all pages.
    pub total: usize,
    /// The cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl VisibilityReport {
    /// Returns the notes about folders that clients do not search and are shown as if they did.
    pub fn notes(&self) -> Vec<String> {
        let clients = self.clients.iter();
        let clients: Vec<_> =
            clients.map(|client| (client.name.as_str(), client.assumed_folders.as_slice())).collect();
        AssumedFolder::notes(&clients)
    }
}

/// A skill of the catalog, parsed or not, or one that only clients find.
struct CatalogSkill<'c> {
    id: SkillId,
    location: &'c Path,
    description: &'c str,
    /// Whether the catalog cannot read it.
    is_refused: bool,
}

/// The parts of a client's view by skill.
struct Index<'v> {
    view: &'v ClientView,
    entries: HashMap<&'v str, &'v ClientViewEntry>,
    listed: ListedEntries<'v>,
    /// What it does with bundles that the catalog does not contain.
    foreign: HashMap<&'v Path, ClientViewEntry>,
    withheld: HashMap<&'v str, &'v str>,
}

/// Computes the matrix.
///
/// # Errors
/// Returns `not_found` with similar names for a skill or client; `invalid_request` for a limit or cursor.
pub async fn visibility(
    core: &(impl Client + ?Sized),
    request: &VisibilityRequest,
) -> Result<VisibilityReport, Error> {
    // Before the views, which take long.
    paging::check_limit(request.limit)?;
    core.wait_for_catalog().await?;
    let profiles = core.client_profiles().await?;
    let ids: Vec<&str> = if request.clients.is_empty() {
        profiles.iter().map(|(id, _)| id.as_str()).collect()
    } else {
        let mut named = HashSet::new();
        request.clients.iter().map(String::as_str).filter(|id| named.insert(*id)).collect()
    };
    // An unknown client is rejected with similar ids.
    let views = futures::future::try_join_all(ids.into_iter().map(|id| core.client_view(id))).await?;
    let catalog = core.catalog().await?;
    let requested = match &request.skill {
        Some(requested) => Some((requested.as_str(), why::subject_id(core, requested).await)),
        None => None,
    };
    in_place(|| matrix(&catalog, &views, request, requested))
}

/// Computes the matrix from the views of the clients. `wanted` is the requested skill with its id, or the error of
/// looking it up in the catalog.
fn matrix(
    catalog: &Catalog,
    views: &[ClientView],
    request: &VisibilityRequest,
    requested: Option<(&str, Result<SkillId, Error>)>,
) -> Result<VisibilityReport, Error> {
    let mut subjects = subjects(catalog, views);
    match requested {
        Some((requested, Ok(id))) => subjects.retain(|subject| {
            // A file that the catalog cannot read is shown with others of its name.
            let is_meant = || is_named(&subject.id, subject.location, requested);
            subject.id == id || subject.is_refused && is_meant()
        }),
        Some((requested, Err(error))) => {
            subjects.retain(|subject| is_named(&subject.id, subject.location, requested));
            if subjects.is_empty() {
                return Err(error);
            }
        }
        None => {}
    }
    let single = request.skill.is_some();
    let indexes: Vec<Index<'_>> = views.iter().map(Index::of).collect();
    let id = |at: usize| subjects[at].id.as_str();
    let (page, next) = paging::part(subjects.len(), id, request.limit, request.cursor.as_deref())?;
    let with_description = |index: &Index<'_>| {
        let cells = subjects.iter().map(|subject| index.cell(subject, false));
        cells.filter(VisibilityCell::has_description).count()
    };
    let clients = indexes.iter().map(|index| VisibilityClient {
        client: index.view.client.clone(),
        name: index.view.name.clone(),
        version: index.view.version.clone(),
        source: index.view.source.clone(),
        with_description: with_description(index),
        limit: index.view.list.fill.limit_from.clone(),
        assumed_folders: index.view.assumed_folders.clone(),
    });
    let clients = clients.collect();
    let rows = subjects[page].iter().map(|subject| VisibilityRow {
        skill_id: subject.id.clone(),
        location: subject.location.to_owned(),
        root: root_of(catalog, subject.location),
        words: words(subject.description),
        description: single.then(|| subject.description.to_owned()),
        cells: indexes.iter().map(|index| index.cell(subject, single)).collect(),
    });
    let skills = rows.collect();
    Ok(VisibilityReport { clients, skills, total: subjects.len(), next })
}

/// Returns what a client's model receives of a skill of the catalog.
pub(super) fn cell_of(view: &ClientView, skill: &Skill) -> VisibilityCell {
    let (id, location, description) = (skill.id.clone(), &skill.location, skill.description.as_str());
    Index::of(view).cell(&CatalogSkill { id, location, description, is_refused: false }, true)
}

fn subjects<'c>(catalog: &'c Catalog, views: &'c [ClientView]) -> Vec<CatalogSkill<'c>> {
    let parsed = catalog.all_skills().map(|skill| CatalogSkill {
        id: skill.id.clone(),
        location: &skill.location,
        description: &skill.description,
        is_refused: false,
    });
    let listed: Vec<ListedEntries<'_>> = views.iter().map(ListedEntries::of).collect();
    let refused = catalog.refused.iter().map(|refusal| {
        let (location, description) = linked_bundle(&listed, refusal).unwrap_or((&refusal.location, ""));
        CatalogSkill { id: refusal.id.clone(), location, description, is_refused: true }
    });
    let foreign = uncataloged_bundles(views, catalog).into_iter().map(|(id, one)| CatalogSkill {
        id,
        location: &one.location,
        description: &one.description,
        is_refused: false,
    });
    parsed.chain(refused).chain(foreign).collect()
}

fn root_of(catalog: &Catalog, location: &Path) -> String {
    let roots = catalog.roots.iter().filter(|root| location.starts_with(&root.path));
    let nearest = roots.max_by_key(|root| root.path.as_os_str().len());
    nearest.map_or_else(|| "in no root of this catalog".to_owned(), |root| root.label.clone())
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

impl<'v> Index<'v> {
    fn of(view: &'v ClientView) -> Self {
        let entries = view.entries.iter().map(|entry| (entry.skill_id.as_str(), entry));
        let foreign = view.foreign.iter().map(|one| (one.location.as_path(), one.entry()));
        let groups = view.not_listed.iter();
        let withheld =
            groups.flat_map(|group| group.names.iter().map(|name| (name.as_str(), group.why.as_str())));
        Self {
            entries: entries.collect(),
            listed: ListedEntries::of(view),
            foreign: foreign.collect(),
            withheld: withheld.collect(),
            view,
        }
    }

    fn cell(&self, subject: &CatalogSkill<'_>, with_text: bool) -> VisibilityCell {
        let id = subject.id.as_str();
        let foreign = self.foreign.get(subject.location);
        let entry = self.entries.get(id).copied().or(foreign);
        let assumed = entry.is_some_and(|entry| entry.assumed);
        let without = |state: Visibility, reason: String| VisibilityCell {
            client: self.view.client.clone(),
            state,
            words: 0,
            name: None,
            repaired: None,
            location: None,
            reason: Some(reason).filter(|reason| !reason.is_empty()),
            shown: None,
            assumed,
        };
        if let Some((state, reason)) = self.reason_not_listed(entry) {
            return without(state, reason);
        }
        let (mut undefined, mut repaired) = (None, None);
        match entry.map(|entry| &entry.state) {
            Some(ClientViewState::Repaired(how)) => repaired = Some(how.clone()),
            Some(ClientViewState::Either(others)) => {
                let others = other_files(others, ", ", |path| path.display().to_string());
                undefined = Some(format!("this one or another with its name: {others}"));
            }
            _ => {}
        }
        // A bundle outside the catalog can have the name of a skill of the catalog.
        if let Some(why) = self.withheld.get(id).filter(|_| foreign.is_none()) {
            return VisibilityCell { repaired, ..without(Visibility::Dropped, (*why).to_owned()) };
        }
        let Some((listed, shown)) = self.listed.get(&subject.id, subject.location) else {
            let state = if undefined.is_some() { Visibility::Undefined } else { Visibility::Unknown };
            return VisibilityCell { repaired, ..without(state, undefined.unwrap_or_default()) };
        };
        let text = why::shown_text(listed, shown);
        let (state, reason) = self.shown_part(listed, shown, text);
        let state = if undefined.is_some() { Visibility::Undefined } else { state };
        let is_all = state == Visibility::Full && !subject.description.is_empty();
        let is_shown = with_text && !is_all || state == Visibility::OtherText;
        VisibilityCell {
            client: self.view.client.clone(),
            state,
            words: if matches!(shown, Truncation::Omitted { .. } | Truncation::Beyond) {
                0
            } else {
                words(text)
            },
            name: Some(listed.name.clone()).filter(|_| !matches!(shown, Truncation::Omitted { .. })),
            repaired,
            location: listed.location.clone().filter(|path| path != subject.location),
            reason: undefined.or(reason),
            shown: is_shown.then(|| text.to_owned()),
            assumed,
        }
    }

    /// Returns why the client does not list a skill; `None` if it may.
    fn reason_not_listed(&self, entry: Option<&ClientViewEntry>) -> Option<(Visibility, String)> {
        let name = &self.view.name;
        Some(match entry.map(|entry| &entry.state) {
            None | Some(ClientViewState::NotLooked) => {
                (Visibility::NotSearched, format!("{name} does not search its folder"))
            }
            Some(ClientViewState::TooDeep(top)) => {
                let why =
                    format!("nested too deep ({name} searches only direct subfolders of {})", top.display());
                (Visibility::NotSearched, why)
            }
            Some(ClientViewState::NotRead(why)) => (Visibility::NotSearched, why.clone()),
            Some(ClientViewState::Dropped(why)) => (Visibility::Dropped, why.clone()),
            Some(ClientViewState::Unknown(what)) => (Visibility::Unknown, what.clone()),
            Some(ClientViewState::Shadowed(winner)) => {
                // Only another path to the same file has help.
                let is_same = entry.is_some_and(|entry| entry.help.is_some());
                (Visibility::Shadowed, shadowed_by(winner, is_same))
            }
            Some(ClientViewState::ForPeople(message)) => {
                (Visibility::Manual, format!("user-only: {message}"))
            }
            Some(ClientViewState::TurnedOff(message)) => (Visibility::Off, format!("turned off: {message}")),
            Some(ClientViewState::Waiting(until)) => (Visibility::Off, format!("not offered yet: {until}")),
            Some(ClientViewState::Found | ClientViewState::Repaired(_) | ClientViewState::Either(_)) => {
                return None;
            }
        })
    }

    /// Returns how much of a description the client shows, and why not all of it.
    fn shown_part(
        &self,
        listed: &ListedEntry,
        shown: &Truncation,
        text: &str,
    ) -> (Visibility, Option<String>) {
        match shown {
            _ if listed.other_text && !text.is_empty() => {
                let why = format!("{} shows {}", self.view.name, why::instead_of_description(text));
                (Visibility::OtherText, Some(why))
            }
            Truncation::Complete | Truncation::OtherText if !listed.cut => (Visibility::Full, None),
            Truncation::Unknown { what } => (Visibility::Unknown, Some(what.clone())),
            Truncation::Complete | Truncation::OtherText => {
                (Visibility::Cut, Some("the client's own limit for one description".to_owned()))
            }
            Truncation::Shortened { why, .. } if text.is_empty() => (Visibility::NameOnly, Some(why.clone())),
            Truncation::Shortened { why, .. } => (Visibility::Cut, Some(why.clone())),
            Truncation::NameOnly { why } => (Visibility::NameOnly, Some(why.clone())),
            Truncation::Omitted { why } => (Visibility::Dropped, Some(why.clone())),
            Truncation::Beyond => {
                let why = "the catalog exceeds the client's budget, and how it truncates is not published";
                (Visibility::Unknown, Some(why.to_owned()))
            }
        }
    }
}
