//! The agents of this installation: `agents/*.yaml` next to the skills of each root, and in the project.

use std::path::{Path, PathBuf};

use super::Local;
use crate::{AgentView, Code, Error, names};
use skills_base::files::Folder;
use skills_session::{Agent, call_order, parse_agent};

/// Largest definition that is read, in bytes.
const LARGEST: u64 = 1 << 20;

impl Local {
    /// Every agent, by id; the first of a name wins, as with skills.
    pub(super) fn agent_views(&self) -> Result<Vec<AgentView>, Error> {
        let catalogue = self.registry.snapshot();
        let mut found: Vec<AgentView> = Vec::new();
        for folder in self.agent_folders() {
            let Ok(opened) = Folder::follow(&folder) else { continue };
            for name in definitions(&opened) {
                let location = folder.join(&name);
                let source = opened
                    .read_text(&name, LARGEST)
                    .map_err(|refusal| wrong(&location, &refusal.to_string()))?;
                let agent = parse_agent(&source).map_err(|error| wrong(&location, &error))?;
                if found.iter().any(|known| known.agent.id == agent.id) {
                    continue;
                }
                let problems = agent
                    .uses_skills
                    .iter()
                    .filter(|name| catalogue.by_id(name).is_none() && self.resolve(name).is_err())
                    .map(|name| format!("it uses the skill {name}, which does not exist"))
                    .collect();
                let composed = call_order(Some(&agent));
                found.push(AgentView { agent, location, problems, composed });
            }
        }
        found.sort_by(|a, b| a.agent.id.cmp(&b.agent.id));
        Ok(found)
    }

    /// One agent.
    ///
    /// # Errors
    /// `not_found` with near ids.
    pub(super) fn agent(&self, id: &str) -> Result<Agent, Error> {
        let all = self.agent_views()?;
        if let Some(found) = all.iter().find(|view| view.agent.id == id) {
            return Ok(found.agent.clone());
        }
        let near = names::near(id, all.iter().map(|view| view.agent.id.as_str()));
        let folders: Vec<String> = self.agent_folders().iter().map(|f| f.display().to_string()).collect();
        let message = format!("there is no agent `{id}`; agents are searched in {}", folders.join(", "));
        Err(Error { suggestions: near, ..Error::new(Code::NotFound, message) })
    }

    fn agent_folders(&self) -> Vec<PathBuf> {
        let catalogue = self.registry.snapshot();
        let mut folders = vec![self.config.cwd.join("agents")];
        folders.extend(catalogue.roots.iter().map(|root| root.path.join("agents")));
        folders.dedup();
        folders
    }
}

fn definitions(folder: &Folder) -> Vec<String> {
    let Ok(entries) = folder.entries("") else { return Vec::new() };
    let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    names.retain(|name| {
        let is_yaml = Path::new(name).extension().is_some_and(|e| e == "yaml" || e == "yml");
        is_yaml && !name.starts_with('.')
    });
    names.sort();
    names
}

fn wrong(location: &Path, why: &str) -> Error {
    Error::new(Code::InvalidConfiguration, format!("the agent {}: {why}", location.display()))
}
