//! What the core has reported: the catalog, the client whose view of it is shown, and the progress.

use std::sync::Arc;

use super::ReceivedEvents;
use crate::overlay::SkillEntry;
use crate::pane::beginning;
use crate::progress::Progress;
use crate::widgets::format;
use crate::widgets::shown;
use skills_registry::Catalog;

/// The last state of the core.
#[derive(Default)]
pub(super) struct CoreState {
    pub received: ReceivedEvents,
    pub progress: Progress,
    /// Number of skills; `None` until the core reports it.
    skills: Option<usize>,
    /// The skills that the palette offers.
    pub catalog: Arc<Catalog>,
    /// The client whose view of the catalog is shown.
    pub client: Option<String>,
}

impl CoreState {
    pub fn take_catalog(&mut self, catalog: &Arc<Catalog>) {
        self.skills = Some(catalog.entries.len());
        self.catalog = Arc::clone(catalog);
    }

    /// Describes the number of skills for the header.
    pub fn skill_count(&self) -> String {
        match self.skills {
            None => "reading".to_owned(),
            Some(0) if self.progress.busy() => "reading".to_owned(),
            Some(1) => "1 skill".to_owned(),
            Some(count) => format!("{} skills", format::count(count)),
        }
    }

    /// Returns the skills that the palette offers.
    pub fn skills_offered(&self) -> Vec<SkillEntry> {
        let skill = |entry: &skills_registry::Entry| SkillEntry {
            id: entry.skill.id.clone(),
            name: shown(entry.skill.id.as_str()),
            description: beginning(&entry.skill.description),
        };
        self.catalog.entries.iter().map(skill).collect()
    }
}
