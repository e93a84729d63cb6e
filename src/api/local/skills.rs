//! The current skills, by the names that callers use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Error, names};
use skills_config::Config;
use skills_registry::{Catalog, Registry};
use skills_skill::Skill;

#[derive(Clone)]
pub(super) struct Skills {
    pub config: Arc<Config>,
    pub registry: Arc<Registry>,
}

impl Skills {
    pub(super) fn snapshot(&self) -> Arc<Catalog> {
        self.registry.snapshot()
    }

    /// Resolves a skill by id, unambiguous name, or location.
    pub(super) fn resolve(&self, requested: &str) -> Result<Arc<Skill>, Error> {
        names::resolve(&self.registry.snapshot(), requested, Some(&self.place(requested)))
    }

    /// Like [`Self::resolve`], as if there were no project.
    pub(super) fn resolve_own(&self, requested: &str) -> Result<Arc<Skill>, Error> {
        names::resolve_own(&self.registry.snapshot(), requested, Some(&self.place(requested)))
    }

    /// Returns whether a name leads to a skill.
    pub(super) fn exists(&self, requested: &str) -> bool {
        names::exists(&self.registry.snapshot(), requested, Some(&self.place(requested)))
    }

    /// Like [`Self::exists`], as if there were no project.
    pub(super) fn exists_own(&self, requested: &str) -> bool {
        names::exists_own(&self.registry.snapshot(), requested, Some(&self.place(requested)))
    }

    fn place(&self, requested: &str) -> PathBuf {
        let place = self.config.cwd.join(requested);
        skills_config::expand(&place.to_string_lossy(), Path::new("/"), &self.config.dirs.home)
    }
}
