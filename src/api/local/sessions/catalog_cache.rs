//! The cached catalog of a session: as long as the skills, the policy and the settings are unchanged, every call has
//! the same entries, bytes and token counts.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::HiddenSkills;
use crate::client_settings::ClientSettings;
use crate::local::levels::Levels;
use skills_registry::Catalog;
use skills_registry::policy::Policy;
use skills_session::{Allowance, Composed, Form, Listed, ToolNameFormat};
use skills_skill::tokens::TokenCount;

/// Number of cached catalogs: users switch between two clients, services between two agents.
const CACHE_SIZE: usize = 2;

/// What a catalog depends on.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub catalog: Arc<Catalog>,
    pub policy: Arc<Policy>,
    pub client: Option<String>,
    /// The client's own settings.
    pub settings: ClientSettings,
    pub window: u32,
    /// Ids that the speaking agent is limited to.
    pub own: Option<Vec<String>>,
    pub locations: bool,
    pub form: Form,
    /// Format of tool names in the catalog.
    pub wire: ToolNameFormat,
    /// How often each skill was loaded, for clients that shorten by it.
    pub uses: Vec<(String, u64)>,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.catalog, &other.catalog)
            && (Arc::ptr_eq(&self.policy, &other.policy) || self.policy == other.policy)
            && (&self.client, &self.settings, self.window, &self.own, self.locations)
                == (&other.client, &other.settings, other.window, &other.own, other.locations)
            && (self.form, self.wire, &self.uses) == (other.form, other.wire, &other.uses)
    }
}

/// A catalog that is ready to be inserted in calls.
#[derive(Debug)]
pub(super) struct Ready {
    /// The result of the client's budget; complete without a client.
    pub allowance: Allowance,
    /// Whether a client's budget applies.
    pub bounded: bool,
    /// Skills that are not in it.
    pub not_listed: Vec<HiddenSkills>,
    /// Its text in every call.
    pub text: Composed,
    tokens: OnceLock<Vec<TokenCount>>,
}

impl Ready {
    pub(super) fn new(
        allowance: Allowance,
        bounded: bool,
        not_listed: Vec<HiddenSkills>,
        text: Composed,
    ) -> Self {
        Self { allowance, bounded, not_listed, text, tokens: OnceLock::new() }
    }

    /// Returns the entries that the model sees.
    pub(super) fn listed(&self) -> impl Iterator<Item = &Listed> {
        self.allowance.included()
    }

    /// Returns the tokens of each part of the text, counted once. Blocking.
    pub(super) fn tokens(&self, levels: &Levels) -> &[TokenCount] {
        self.tokens
            .get_or_init(|| self.text.parts.iter().map(|part| levels.text(self.text.of(part))).collect())
    }
}

/// Cached catalogs, most recently used first.
#[derive(Debug, Default)]
pub(in crate::local) struct Prepared(Mutex<Vec<(Key, Arc<Ready>)>>);

impl Prepared {
    /// Returns the catalog for this key, preparing it if necessary.
    pub(super) fn get<E>(
        &self,
        key: Key,
        make: impl FnOnce(&Key) -> Result<Ready, E>,
    ) -> Result<Arc<Ready>, E> {
        if let Some(found) = self.found(&key) {
            return Ok(found);
        }
        // No lock is held while it is prepared: two concurrent requests for the same key both prepare it, and neither
        // waits.
        let made = Arc::new(make(&key)?);
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached.retain(|(known, _)| *known != key);
        cached.insert(0, (key, Arc::clone(&made)));
        cached.truncate(CACHE_SIZE);
        Ok(made)
    }

    fn found(&self, key: &Key) -> Option<Arc<Ready>> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = cached.iter().position(|(known, _)| known == key)?;
        let found = cached.remove(at);
        let ready = Arc::clone(&found.1);
        cached.insert(0, found);
        Some(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(catalog: &Arc<Catalog>, client: Option<&str>) -> Key {
        Key {
            catalog: Arc::clone(catalog),
            policy: Arc::default(),
            client: client.map(str::to_owned),
            settings: ClientSettings::default(),
            window: 1,
            own: None,
            locations: true,
            form: Form::Xml,
            wire: ToolNameFormat::Dotted,
            uses: Vec::new(),
        }
    }

    #[test]
    fn a_catalog_is_built_once() {
        let (prepared, made) = (Prepared::default(), std::cell::Cell::new(0));
        let ready = || Ready::new(Allowance::unlimited(Vec::new()), false, Vec::new(), Composed::default());
        let get = |key: Key| {
            let make = |_: &Key| {
                made.set(made.get() + 1);
                Ok::<_, ()>(ready())
            };
            prepared.get(key, make).unwrap();
            made.get()
        };
        let (one, changed) = (Arc::new(Catalog::default()), Arc::new(Catalog::default()));
        assert_eq!((get(key(&one, None)), get(key(&one, None))), (1, 1));
        assert_eq!(get(key(&one, Some("codex"))), 2, "another client");
        assert_eq!((get(key(&one, None)), get(key(&one, Some("codex")))), (2, 2), "both are kept");
        assert_eq!(get(key(&changed, None)), 3, "the skills changed");
        assert_eq!(get(key(&one, None)), 4, "the oldest went");
    }
}
