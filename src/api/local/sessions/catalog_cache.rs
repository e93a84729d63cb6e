//! The cached catalog of a session: as long as the skills, the policy and the settings are unchanged, every call has
//! the same entries, bytes and token counts.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::client_settings::ClientSettings;
use crate::local::levels::Levels;
use crate::{ClientView, HiddenSkills};
use skills_base::sync::MutexExt as _;
use skills_registry::Catalog;
use skills_registry::policy::Policy;
use skills_session::{BudgetedCatalog, Composed, Form, ListedEntry, ToolNameFormat};
use skills_skill::tokens::TokenCount;

/// Number of cached catalogs: users switch between two clients, services between two agents.
const CACHE_SIZE: usize = 2;

/// What a catalog depends on.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub catalog: Arc<Catalog>,
    pub policy: Arc<Policy>,
    pub client: Option<String>,
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
    pub allowance: BudgetedCatalog,
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
        allowance: BudgetedCatalog,
        bounded: bool,
        not_listed: Vec<HiddenSkills>,
        text: Composed,
    ) -> Self {
        Self { allowance, bounded, not_listed, text, tokens: OnceLock::new() }
    }

    /// Returns the entries that the model sees.
    pub(super) fn listed(&self) -> impl Iterator<Item = &ListedEntry> {
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
pub(in crate::local) struct ComposedCatalogs(Mutex<Vec<(Key, Arc<Ready>)>>);

impl ComposedCatalogs {
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
        let mut cached = self.0.locked();
        cached.retain(|(other, _)| *other != key);
        cached.insert(0, (key, Arc::clone(&made)));
        cached.truncate(CACHE_SIZE);
        Ok(made)
    }

    fn found(&self, key: &Key) -> Option<Arc<Ready>> {
        let mut cached = self.0.locked();
        let at = cached.iter().position(|(other, _)| other == key)?;
        let found = cached.remove(at);
        let ready = Arc::clone(&found.1);
        cached.insert(0, found);
        Some(ready)
    }
}

/// Minimum number of bundles of a view that is cached: smaller ones are read quickly.
const MIN_CACHED_BUNDLES: usize = 1_000;
/// How long a view is used: no change of files outside of the catalog is reported.
const MAX_VIEW_AGE: Duration = Duration::from_secs(30);

/// Cached views of clients, one for each, as long as the skills, the policy and the settings are unchanged.
#[derive(Debug, Default)]
pub(in crate::local) struct Views(Mutex<Vec<(Key, Instant, Arc<ClientView>)>>);

impl Views {
    /// Returns the view for this key, reading it if necessary.
    pub(super) fn get(&self, key: Key, make: impl FnOnce(&Key) -> ClientView) -> Arc<ClientView> {
        let cached = || self.0.locked();
        let mut views = cached();
        views.retain(|(other, made, _)| {
            Arc::ptr_eq(&other.catalog, &key.catalog) && made.elapsed() < MAX_VIEW_AGE
        });
        if let Some((.., view)) = views.iter().find(|(other, ..)| *other == key) {
            return Arc::clone(view);
        }
        drop(views);
        let view = Arc::new(make(&key));
        if view.entries.len() + view.foreign.len() >= MIN_CACHED_BUNDLES {
            let mut views = cached();
            views.retain(|(other, ..)| other.client != key.client);
            views.push((key, Instant::now(), Arc::clone(&view)));
        }
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientViewState, ForeignBundle};

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
        let (prepared, made) = (ComposedCatalogs::default(), std::cell::Cell::new(0));
        let ready =
            || Ready::new(BudgetedCatalog::unlimited(Vec::new()), false, Vec::new(), Composed::default());
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

    #[test]
    fn only_the_view_of_a_large_catalog_is_cached() {
        let catalog: Arc<Catalog> = Arc::default();
        let made = |bundles: usize, keys: &[Key]| {
            let (views, made) = (Views::default(), std::cell::Cell::new(0));
            let foreign = ForeignBundle {
                name: "a".to_owned(),
                location: "/a".into(),
                description: String::new(),
                state: ClientViewState::Found,
                setting: None,
                error: None,
                rejected: false,
                assumed: false,
                missed: false,
            };
            for key in keys {
                views.get(key.clone(), |key| {
                    made.set(made.get() + 1);
                    ClientView {
                        client: key.client.clone().unwrap_or_default(),
                        name: String::new(),
                        source: String::new(),
                        version: None,
                        entries: Vec::new(),
                        foreign: vec![foreign.clone(); bundles],
                        list: BudgetedCatalog::unlimited(Vec::new()),
                        not_listed: Vec::new(),
                        assumed_folders: Vec::new(),
                    }
                });
            }
            made.get()
        };
        let (codex, goose) = (key(&catalog, Some("codex")), key(&catalog, Some("goose")));
        let both = [codex.clone(), goose.clone(), codex.clone(), goose];
        assert_eq!(made(MIN_CACHED_BUNDLES, &both), 2);
        assert_eq!(made(1, &both), 4);
        let changed = key(&Arc::default(), Some("codex"));
        assert_eq!(made(MIN_CACHED_BUNDLES, &[codex.clone(), changed, codex]), 3);
    }
}
