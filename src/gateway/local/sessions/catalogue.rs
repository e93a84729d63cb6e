//! The catalogue of a session: the skills that this model may see, within the client's budget.

use std::collections::BTreeMap;

use super::Local;
use crate::gateway::local::levels::Levels;
use crate::gateway::policies::verdict;
use crate::gateway::{BudgetView, ClientViewState, Code, Error, client_view, names};
use crate::registry::Catalogue;
use crate::session::{
    Agent, Allowance, Form, Ingredients, Instructions, Listed, PartKind, Settings, Wire, compose, shorten,
};
use crate::skill::client::{self, Profile};

/// A catalogue entry should cost about this many tokens.
const GOOD_ENTRY: u32 = 20;

/// A client's profile.
///
/// # Errors
/// `not_found` with the near ids and the known ones.
pub(super) fn profile(id: &str) -> Result<&'static Profile, Error> {
    client::profile(id).ok_or_else(|| {
        let ids = client::profiles().iter().map(|profile| profile.id.as_str());
        let near = names::near(id, ids.clone());
        let known: Vec<&str> = ids.collect();
        let message = format!("no client profile is called {id}; there are {}", known.join(", "));
        Error { suggestions: near, ..Error::new(Code::NotFound, message) }
    })
}

/// What the session's model sees of the catalogue, and what a budget made of it.
pub(super) struct Seen {
    pub listed: Vec<Listed>,
    pub allowance: Option<Allowance>,
}

/// Every skill that a model may call for, in catalogue order: without those that are for people alone, and for an
/// agent with skills of its own just these.
fn listed(catalogue: &Catalogue, agent: Option<&Agent>, locations: bool) -> Vec<Listed> {
    let own = agent.filter(|agent| agent.scoped());
    catalogue
        .entries
        .iter()
        .map(|entry| &entry.skill)
        .filter(|skill| !skill.clients.disable_model_invocation)
        .filter(|skill| {
            own.is_none_or(|agent| agent.uses_skills.iter().any(|name| name == skill.id.as_str()))
        })
        .map(|skill| Listed {
            name: skill.id.to_string(),
            description: skill.description.clone(),
            location: locations.then(|| skill.location.clone()),
        })
        .collect()
}

/// Tokens that this catalogue takes in every call of a session.
fn catalogue_tokens(levels: &Levels, listed: &[Listed]) -> u32 {
    let composed = compose(&Ingredients {
        listed,
        active: &[],
        agent: None,
        own: &[],
        form: Form::Xml,
        instructions: Instructions::TopLevel,
        wire: Wire::Dotted,
    });
    let parts = composed.parts.iter().filter(|part| part.kind == PartKind::Available);
    parts.map(|part| levels.text(composed.of(part))).sum()
}

impl Local {
    /// Every skill that this model may see and the policy does not forbid.
    fn listed(
        &self,
        catalogue: &Catalogue,
        agent: Option<&Agent>,
        locations: bool,
    ) -> Result<Vec<Listed>, Error> {
        let policy = self.policy.current()?;
        let mut all = listed(catalogue, agent, locations);
        if !policy.is_empty() {
            all.retain(|entry| {
                let skill = catalogue.by_id(&entry.name);
                skill.is_none_or(|skill| verdict(&policy, catalogue, skill).allowed)
            });
        }
        Ok(all)
    }

    /// What the session's model sees now.
    pub(super) fn seen(
        &self,
        settings: &Settings,
        agent: Option<&Agent>,
        uses: &BTreeMap<String, u64>,
    ) -> Result<Seen, Error> {
        let catalogue = self.registry.snapshot();
        let mut listed = self.listed(&catalogue, agent, settings.locations)?;
        let Some(id) = &settings.client else { return Ok(Seen { listed, allowance: None }) };
        let profile = profile(id)?;
        self.keep_found(profile, &catalogue, &mut listed);
        let uses: Vec<u64> = listed.iter().map(|entry| uses.get(&entry.name).copied().unwrap_or(0)).collect();
        let allowance = shorten(&listed, &uses, &profile.budget, settings.window);
        Ok(Seen { listed: allowance.kept().cloned().collect(), allowance: Some(allowance) })
    }

    /// Leaves those that the client finds, or of which nobody knows whether it does.
    fn keep_found(&self, profile: &Profile, catalogue: &Catalogue, listed: &mut Vec<Listed>) {
        let view = client_view::view(profile, catalogue, &self.config);
        let kept: std::collections::HashSet<String> = view
            .entries
            .into_iter()
            .filter(|entry| {
                matches!(
                    entry.state,
                    ClientViewState::Found | ClientViewState::Repaired(_) | ClientViewState::Unknown(_)
                )
            })
            .map(|entry| entry.skill_id.to_string())
            .collect();
        listed.retain(|entry| kept.contains(&entry.name));
    }

    /// The catalogue under a client's budget, outside of any session.
    pub(super) async fn budget_view(
        &self,
        client: Option<&str>,
        window: Option<u32>,
    ) -> Result<BudgetView, Error> {
        let window = window.unwrap_or(Settings::default().window);
        let catalogue = self.registry.snapshot();
        let mut all = self.listed(&catalogue, None, true)?;
        let (name, source, allowance) = if let Some(id) = client {
            let profile = profile(id)?;
            self.keep_found(profile, &catalogue, &mut all);
            (profile.name.clone(), profile.sources_line(), shorten(&all, &[], &profile.budget, window))
        } else {
            let size = |entry: &Listed| entry.name.chars().count() + entry.description.chars().count();
            let characters = all.iter().map(size).sum();
            let entries = all.iter().map(|entry| (entry.clone(), crate::session::Shown::Whole)).collect();
            let allowance = Allowance {
                entries,
                limit: None,
                limit_from: "no bound".to_owned(),
                wanted: characters,
                used: characters,
                unknown: Vec::new(),
            };
            ("no client".to_owned(), String::new(), allowance)
        };
        let levels = std::sync::Arc::clone(&self.levels);
        let shown: Vec<Listed> = allowance.kept().cloned().collect();
        let (tokens, long) = super::super::apart(move || {
            let described = |entry: &Listed| levels.text(entry.description.trim());
            let mut long: Vec<(String, u32)> =
                all.iter().map(|entry| (entry.name.clone(), described(entry))).collect();
            let (wanted, used) = (catalogue_tokens(&levels, &all), catalogue_tokens(&levels, &shown));
            long.retain(|(_, tokens)| *tokens > GOOD_ENTRY);
            long.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            Ok(((wanted, used), long))
        })
        .await?;
        Ok(BudgetView { client: client.map(str::to_owned), name, source, window, allowance, tokens, long })
    }
}
