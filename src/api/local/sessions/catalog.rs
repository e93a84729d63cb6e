//! The catalog of a session: the skills that its model may see, within the client's budget, and why others are not
//! listed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::agents::AgentFolders;
use super::catalog_cache::{ComposedCatalogs, Key, Ready, Views};
use crate::client_settings::ClientSettings;
use crate::client_view::SkillFiles;
use crate::local::levels::Levels;
use crate::local::skills::Skills;
use crate::policies::{PolicyFile, policy_result};
use crate::{
    AssumedFolder, BudgetView, ClientView, ClientViewEntry, ClientViewState, Code, DraftShown, Error,
    ForeignBundle, HiddenCause, HiddenSkills, Visibility, client_view, names, visibility,
};
use skills_session::{
    Agent, BudgetedCatalog, Composed, Form, ListedEntry, PartKind, Settings, ToolNameFormat, Truncation,
    apply_budget, catalog_text,
};
use skills_skill::Skill;
use skills_skill::client::{self, Profile, Shortening};
use skills_skill::tokens::TokenCount;

/// Recommended maximum number of tokens of a catalog entry.
const GOOD_ENTRY: u32 = 20;

/// Why a skill with `disable-model-invocation` is not listed if it is unknown whether the client respects it.
const ASSUMED_USER_ONLY: &str = "assumed user-only: disable-model-invocation";

/// Pseudo client without rules: every skill, with names and descriptions as written.
pub(super) const PLAIN: &str = "plain";

/// Returns a client's profile.
///
/// # Errors
/// Returns `not_found` with similar ids and the known ones.
pub(in crate::local) fn profile(id: &str) -> Result<&'static Profile, Error> {
    client::profile(id).ok_or_else(|| {
        if let Some((client, version)) = id.split_once('@')
            && let covered = client::covered_versions(client)
            && !covered.is_empty()
        {
            let covered = covered.join(", ");
            let message = format!("no profile of `{client}` covers version {version}; covered: {covered}");
            return Error::new(Code::NotFound, message);
        }
        let ids = client::profiles().iter().map(|profile| profile.id.as_str());
        let near = names::near(id, ids.clone());
        let ids: Vec<&str> = ids.collect();
        let message = format!("client profile `{id}` not found; expected one of: {}", ids.join(", "));
        Error { suggestions: near, ..Error::new(Code::NotFound, message) }
    })
}

/// Like [`profile`], where [`PLAIN`] is accepted, too: the error names it.
pub(super) fn profile_or_plain(id: &str) -> Result<&'static Profile, Error> {
    profile(id).map_err(|error| {
        let is_list = error.message.contains("expected one of: ");
        let message = if is_list { format!("{}, {PLAIN}", error.message) } else { error.message.clone() };
        Error { message, ..error }
    })
}

/// Skills that are not listed, by reason, in the order of the first occurrence.
#[derive(Default)]
struct OmittedSkills {
    groups: Vec<HiddenSkills>,
    at: HashMap<String, usize>,
}

impl OmittedSkills {
    fn add_hidden(&mut self, cause: HiddenCause, name: String) {
        self.add(cause.text().to_owned(), Some(cause), name);
    }

    fn add(&mut self, why: String, cause: Option<HiddenCause>, name: String) {
        let at = *self.at.entry(why).or_insert_with_key(|why| {
            self.groups.push(HiddenSkills { why: why.clone(), cause, skills: 0, names: Vec::new() });
            self.groups.len() - 1
        });
        self.groups[at].skills += 1;
        self.groups[at].names.push(name);
    }

    fn most_first(mut self) -> Vec<HiddenSkills> {
        self.groups.sort_by(|a, b| b.skills.cmp(&a.skills).then_with(|| a.why.cmp(&b.why)));
        self.groups
    }
}

/// The skills that a model may see, before anything is shortened.
#[derive(Default)]
struct VisibleSkills {
    listed: Vec<ListedEntry>,
    not_listed: Vec<HiddenSkills>,
    /// The client's state for every bundle.
    states: Vec<ClientViewEntry>,
    /// Bundles in its folders that are not in the catalog.
    foreign: Vec<ForeignBundle>,
    /// Folders that the client does not search and is shown as if it did.
    assumed_folders: Vec<AssumedFolder>,
}

impl VisibleSkills {
    /// Applies the client's budget.
    fn shortened(&self, profile: &Profile, uses: &[u64], window: u32) -> BudgetedCatalog {
        let mut allowance = apply_budget(&self.listed, uses, profile, window);
        if allowance.fill.limit.is_some() && profile.order.value().is_none() {
            allowance
                .fill
                .unknown
                .push("the order in which it lists skills; the order of folders is used".to_owned());
        }
        allowance
    }
}

/// Returns the entries of a client's list that a session can load, with the ids that `skills.load` accepts.
fn loadable(entries: Vec<(ListedEntry, Truncation)>) -> Vec<(ListedEntry, Truncation)> {
    let by_id = |(entry, shown): (ListedEntry, Truncation)| {
        let name = entry.skill_id?.to_string();
        let (description, location) = (entry.description, entry.location);
        Some((ListedEntry { name, description, location, ..ListedEntry::default() }, shown))
    };
    entries.into_iter().filter_map(by_id).collect()
}

/// Returns the tokens that this catalog takes in every call of a session.
fn catalog_tokens(levels: &Levels, text: &Composed) -> TokenCount {
    let parts = text.parts.iter().filter(|part| part.kind == PartKind::Available);
    parts.map(|part| levels.text(text.of(part))).sum()
}

/// The lists of skills that the models of clients see.
pub(in crate::local) struct ClientLists {
    pub(in crate::local) skills: Skills,
    pub(in crate::local) policy: Arc<PolicyFile>,
    pub(in crate::local) levels: Arc<Levels>,
    pub(in crate::local) agents: AgentFolders,
    pub(in crate::local) prepared: ComposedCatalogs,
    pub(in crate::local) views: Views,
    /// Cache of skill files as clients parse them.
    pub(in crate::local) skill_files: SkillFiles,
}

impl ClientLists {
    /// Returns what the session's model sees now.
    pub(super) fn seen(
        &self,
        settings: &Settings,
        agent: Option<&Agent>,
        uses: BTreeMap<String, u64>,
        wire: ToolNameFormat,
    ) -> Result<Arc<Ready>, Error> {
        let profile = settings.client.as_deref().map(profile).transpose()?;
        let by_use = profile
            .is_some_and(|profile| profile.budget.shortening.value() == Some(&Shortening::WholeWhileFitting));
        let key = Key {
            catalog: self.skills.registry.snapshot(),
            policy: self.policy.current()?,
            client: settings.client.clone(),
            settings: self.client_settings(profile),
            window: settings.window,
            own: agent.filter(|agent| agent.scoped()).map(|agent| self.agents.own_ids(agent)),
            locations: settings.locations,
            form: settings.form,
            wire: if settings.form == Form::Bullets { wire } else { ToolNameFormat::Dotted },
            uses: if by_use { uses.into_iter().collect() } else { Vec::new() },
        };
        self.prepared.get(key, |key| {
            let seen = self.listed(key, profile);
            let allowance = match profile {
                Some(profile) => {
                    let uses: HashMap<&str, u64> =
                        key.uses.iter().map(|(name, count)| (name.as_str(), *count)).collect();
                    let used =
                        |entry: &ListedEntry| entry.skill_id.as_ref().and_then(|id| uses.get(id.as_str()));
                    let uses: Vec<u64> =
                        seen.listed.iter().map(|entry| used(entry).copied().unwrap_or(0)).collect();
                    let allowance = seen.shortened(profile, &uses, key.window);
                    BudgetedCatalog { entries: loadable(allowance.entries), ..allowance }
                }
                None => BudgetedCatalog::unlimited(seen.listed),
            };
            let shown: Vec<ListedEntry> =
                allowance.included().map(|entry| listed_entry(entry, key.locations)).collect();
            let text = catalog_text(&shown, key.form, key.wire);
            Ok(Ready::new(allowance, profile.is_some(), seen.not_listed, text))
        })
    }

    /// Returns every skill that this model may see and the policy does not forbid, in the client's order, and the
    /// others by reason. Locations are always included: a client's measure counts them.
    fn listed(&self, key: &Key, profile: Option<&Profile>) -> VisibleSkills {
        self.listed_in(key, profile, &self.skill_files)
    }

    fn listed_in(&self, key: &Key, profile: Option<&Profile>, files: &SkillFiles) -> VisibleSkills {
        let catalog = &*key.catalog;
        let (mut left_out, mut seen) = (OmittedSkills::default(), VisibleSkills::default());
        let Some(profile) = profile else {
            // Without a client's rules, a skill that lost its name is not listed.
            for entry in &catalog.entries {
                let skill = &entry.skill;
                match hidden(skill, key, None) {
                    Some(cause) => left_out.add_hidden(cause, skill.id.to_string()),
                    None => seen.listed.push(ListedEntry {
                        name: skill.id.to_string(),
                        description: skill.description.clone(),
                        location: Some(skill.location.clone()),
                        ..ListedEntry::default()
                    }),
                }
            }
            return VisibleSkills { not_listed: left_out.most_first(), ..seen };
        };
        let computed = client_view::compute_view(profile, catalog, &self.skills.config, files, &key.settings);
        for row in computed.rows {
            match row.skill.and_then(|skill| Some((skill, hidden(skill, key, Some(profile))?))) {
                // Whether the client respects it is unknown.
                Some((skill, cause @ HiddenCause::DisableModelInvocation)) => {
                    left_out.add(ASSUMED_USER_ONLY.to_owned(), Some(cause), skill.id.to_string());
                }
                Some((skill, cause)) => left_out.add_hidden(cause, skill.id.to_string()),
                None => seen.listed.push(row.entry),
            }
        }
        for bundle in computed.bundles {
            if let Some(why) = bundle.why {
                left_out.add(why, None, bundle.entry.skill_id.to_string());
            }
            seen.states.push(bundle.entry);
        }
        seen.foreign = computed.foreign;
        seen.assumed_folders = computed.assumed_folders;
        for (name, why) in computed.others {
            left_out.add(why, None, name);
        }
        VisibleSkills { not_listed: left_out.most_first(), ..seen }
    }

    /// Returns what a client lists, and its state for every bundle. The list is that within its budget. Blocking.
    pub(in crate::local) fn client_list(&self, client: &str) -> Result<ClientView, Error> {
        let profile = profile(client)?;
        let key = self.budget_key(Some(client), Settings::default().window)?;
        let view = self.views.get(key, |key| self.client_view(key, profile, &self.skill_files));
        Ok(Arc::unwrap_or_clone(view))
    }

    fn client_view(&self, key: &Key, profile: &Profile, files: &SkillFiles) -> ClientView {
        let seen = self.listed_in(key, Some(profile), files);
        let list = seen.shortened(profile, &[], key.window);
        ClientView {
            client: profile.id.clone(),
            name: profile.name.clone(),
            source: profile.sources_line(),
            version: profile.measured_at.clone(),
            entries: seen.states,
            foreign: seen.foreign,
            list,
            not_listed: seen.not_listed,
            assumed_folders: seen.assumed_folders,
        }
    }

    /// Returns what each client that searches the folder of the skill would show of the description, if `source` were
    /// its file.
    pub(in crate::local) fn shown_by_clients(
        &self,
        skill: &Skill,
        source: &str,
        description: &str,
        when_to_use: Option<&str>,
    ) -> Result<Vec<DraftShown>, Error> {
        let files = self.skill_files.with_draft(skill.real_location().to_owned(), source.as_bytes());
        let mut out = Vec::new();
        for profile in client::profiles() {
            let key = self.budget_key(Some(&profile.id), Settings::default().window)?;
            let view = self.client_view(&key, profile, &files);
            let state = view.entries.iter().find(|one| one.skill_id == skill.id).map(|one| &one.state);
            if matches!(state, None | Some(ClientViewState::NotLooked)) {
                continue;
            }
            let of = profile.listable_text(description, when_to_use).chars().count();
            let cell = visibility::cell_of(&view, skill);
            let listed = view.listed(&skill.id, &skill.location);
            let characters = match cell.state {
                Visibility::Full => of,
                Visibility::Cut => listed.map_or(0, |(entry, _)| entry.description.chars().count().min(of)),
                _ => 0,
            };
            let why = cell.reason.unwrap_or_default();
            let dropped = match cell.state {
                Visibility::Full | Visibility::Cut | Visibility::NameOnly => None,
                Visibility::OtherText => Some(why.replacen(&format!("{} ", view.name), "", 1)),
                Visibility::Unknown => Some(format!("unknown: {why}")),
                Visibility::Undefined => Some(format!("undefined: {why}")),
                _ => Some(format!("not listed: {why}")),
            };
            let (client, name, version, assumed) = (view.client, view.name, view.version, cell.assumed);
            out.push(DraftShown { client, name, version, characters, of, dropped, assumed });
        }
        Ok(out)
    }

    /// Returns what a client lists before its budget, with its profile. Blocking.
    pub(in crate::local) fn listed_by(
        &self,
        client: &str,
        window: u32,
    ) -> Result<(&'static Profile, Vec<ListedEntry>), Error> {
        let profile = profile(client)?;
        Ok((profile, self.listed(&self.budget_key(Some(client), window)?, Some(profile)).listed))
    }

    /// Returns the tokens of a client's list, without the skills that are built into the client.
    pub(in crate::local) fn list_tokens(levels: &Levels, listed: &[ListedEntry]) -> u32 {
        let own: Vec<ListedEntry> = listed.iter().filter(|entry| !entry.bundled).cloned().collect();
        catalog_tokens(levels, &catalog_text(&own, Form::Xml, ToolNameFormat::Dotted)).tokens
    }

    /// Returns what a client's own settings say about skills. Blocking.
    pub(in crate::local) fn client_settings(&self, profile: Option<&Profile>) -> ClientSettings {
        profile.map(|profile| ClientSettings::read(profile, &self.skills.config)).unwrap_or_default()
    }

    fn budget_key(&self, client: Option<&str>, window: u32) -> Result<Key, Error> {
        // Clients do not read the policy of this program.
        let policy = if client.is_some() { Arc::default() } else { self.policy.current()? };
        Ok(Key {
            catalog: self.skills.registry.snapshot(),
            policy,
            client: client.map(str::to_owned),
            settings: self.client_settings(client.and_then(client::profile)),
            window,
            own: None,
            locations: true,
            form: Form::Xml,
            wire: ToolNameFormat::Dotted,
            uses: Vec::new(),
        })
    }

    /// Returns the catalog under a client's budget, outside of any session. Blocking.
    pub(super) fn budget_view(&self, client: Option<&str>, window: Option<u32>) -> Result<BudgetView, Error> {
        let window = window.unwrap_or(Settings::default().window);
        let client = client.filter(|id| *id != PLAIN);
        let profile = client.map(profile_or_plain).transpose()?;
        let key = self.budget_key(client, window)?;
        let seen = self.listed(&key, profile);
        let (name, source) = profile.map_or_else(
            || ("Plain: every skill as written, without a client's budget".to_owned(), String::new()),
            |profile| (profile.name.clone(), profile.sources_line()),
        );
        let allowance = match profile {
            Some(profile) => seen.shortened(profile, &[], window),
            None => BudgetedCatalog::unlimited(seen.listed.clone()),
        };
        let VisibleSkills { listed: mut all, not_listed, assumed_folders, .. } = seen;
        let in_session = |entry: &ListedEntry| profile.is_none() || entry.skill_id.is_some();
        all.retain(in_session);
        let mut shown: Vec<ListedEntry> =
            allowance.included().filter(|entry| in_session(entry)).cloned().collect();
        // Sessions use the ids that `skills.load` accepts.
        for entry in all.iter_mut().chain(&mut shown) {
            if let Some(id) = &entry.skill_id {
                entry.name = id.to_string();
            }
        }
        let described = |entry: &ListedEntry| self.levels.text(entry.description.trim()).tokens;
        let mut long: Vec<(String, u32)> =
            all.iter().map(|entry| (entry.name.clone(), described(entry))).collect();
        let count = |listed: &[ListedEntry]| {
            catalog_tokens(&self.levels, &catalog_text(listed, Form::Xml, ToolNameFormat::Dotted))
        };
        let (requested, used) = (count(&all), count(&shown));
        long.retain(|(_, tokens)| *tokens > GOOD_ENTRY);
        long.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let client = client.map(str::to_owned);
        Ok(BudgetView {
            client,
            name,
            source,
            version: profile.and_then(|profile| profile.measured_at.clone()),
            window,
            allowance,
            not_listed,
            tokens: (requested.tokens, used.tokens),
            tokens_estimated: requested.estimated || used.estimated,
            long,
            assumed_folders,
        })
    }
}

/// Returns what hides a skill that the client sees from this model. If it is unknown whether the client respects
/// `disable-model-invocation`, it is respected.
fn hidden(skill: &Skill, key: &Key, profile: Option<&Profile>) -> Option<HiddenCause> {
    let unknown = profile.is_none_or(|profile| profile.people_only.value().is_none());
    if unknown && skill.clients.disable_model_invocation {
        return Some(HiddenCause::DisableModelInvocation);
    }
    if key.own.as_ref().is_some_and(|own| !own.iter().any(|id| id == skill.id.as_str())) {
        return Some(HiddenCause::AgentSkills);
    }
    let forbidden = !key.policy.is_empty() && !policy_result(&key.policy, &key.catalog, skill).allowed;
    forbidden.then_some(HiddenCause::Policy)
}

/// Returns an entry as it is sent: hosts without a file system receive no location.
pub(super) fn listed_entry(entry: &ListedEntry, locations: bool) -> ListedEntry {
    ListedEntry { location: entry.location.clone().filter(|_| locations), ..entry.clone() }
}
