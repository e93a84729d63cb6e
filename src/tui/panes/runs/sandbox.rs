//! The sandbox of scripts on this machine, as runs and contracts report it.

use std::sync::Arc;

use super::loaded::LoadedRuns;
use crate::pane::Effect;
use crate::run_requests::RunRequest;
use skills_registry::Catalog;
use skills_skill::Kind;

/// The sandbox, and the skills whose contracts report it.
#[derive(Default)]
pub(super) struct Sandbox {
    pub catalog: Arc<Catalog>,
    /// Its name; `None` before a run or contract reported it.
    pub isolation: Option<String>,
    /// Whether a contract was requested to determine it.
    probed: bool,
}

impl Sandbox {
    /// Requests a contract to determine the sandbox while there are no runs.
    pub fn probe(&mut self, runs: &LoadedRuns) -> Vec<Effect> {
        if self.probed || !runs.loaded || runs.all() > 0 || self.isolation.is_some() {
            return Vec::new();
        }
        // Skills that may have a contract, by their kind alone: sufficient to determine the sandbox.
        let skills = self.catalog.entries.iter().map(|entry| &entry.skill);
        let tools = skills.filter(|skill| skill.kind.value == Kind::Tool).take(3);
        let requests: Vec<Effect> =
            tools.map(|skill| Effect::Run(RunRequest::Contract(skill.id.to_string()))).collect();
        self.probed = !requests.is_empty();
        requests
    }
}
