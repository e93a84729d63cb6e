//! The agents of this installation: `agents/*.yaml` next to the skills of each root, and in the project. Those of the
//! user come first: a project cannot replace one.

use std::path::{Path, PathBuf};

use crate::local::skills::Skills;
use crate::{AgentView, Code, Error, names};
use skills_base::files::{Folder, OpenError};
use skills_config::quoted;
use skills_session::{Agent, Settings, call_order, escape_tags, parse_agent};
use skills_skill::{Digest, is_main_file};

/// Folder of the agents, next to the skills of a root and in the project.
const FOLDER: &str = "agents";
/// Largest definition that is read, in bytes.
const MAX_AGENT_BYTES: u64 = 1 << 20;

/// The content of the agent folders.
struct Agents {
    found: Vec<AgentView>,
    /// Files that do not define an agent, under their names, with the reason as problem.
    unreadable: Vec<AgentView>,
}

fn unreadable(location: PathBuf, of_project: bool, definition: Option<String>, why: String) -> AgentView {
    let id = location.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let agent = Agent { id, ..Agent::default() };
    AgentView { agent, location, of_project, definition, problems: vec![why], composed: Vec::new() }
}

/// The agents of this installation.
#[derive(Clone)]
pub(in crate::local) struct AgentFolders {
    pub skills: Skills,
}

impl AgentFolders {
    /// Returns every agent by id; of several with the same id the first, which states the others as problems. A file that
    /// cannot be read is listed with the reason, under its file name.
    pub(super) fn views(&self) -> Vec<AgentView> {
        let Agents { mut found, unreadable } = self.found();
        for view in unreadable {
            if !found.iter().any(|known| known.agent.id == view.agent.id) {
                found.push(view);
            }
        }
        found.sort_by(|a, b| a.agent.id.cmp(&b.agent.id));
        found
    }

    fn found(&self) -> Agents {
        let catalog = self.skills.registry.snapshot();
        let (mut found, mut refused): (Vec<AgentView>, Vec<AgentView>) = (Vec::new(), Vec::new());
        for (above, of_project) in self.places() {
            // As with bundles, a link is followed if it stays beneath the root.
            let Ok(opened) = Folder::follow(&above) else { continue };
            let names = match definitions(&opened) {
                Ok(names) => names,
                Err(OpenError::NotFound { .. }) => continue,
                Err(refusal) => {
                    refused.push(unreadable(above.join(FOLDER), of_project, None, refusal.to_string()));
                    continue;
                }
            };
            for name in names {
                let location = above.join(&name);
                let source = match opened.read_text(&name, MAX_AGENT_BYTES) {
                    Ok(source) => source,
                    Err(refusal) => {
                        refused.push(unreadable(location, of_project, None, refusal.to_string()));
                        continue;
                    }
                };
                let agent = match parse_agent(&source) {
                    Ok(agent) => agent,
                    Err(why) => {
                        refused.push(unreadable(location, of_project, Some(source), why));
                        continue;
                    }
                };
                // A project does not replace an agent of the user whose file cannot be read, either.
                let of_user = refused.iter_mut().filter(|known| of_project && !known.of_project);
                if let Some(known) = found.iter_mut().chain(of_user).find(|known| known.agent.id == agent.id)
                {
                    known.problems.push(format!("{} has the same id and is not used", location.display()));
                    continue;
                }
                let problems = agent
                    .uses_skills
                    .iter()
                    .filter(|name| catalog.by_id(name).is_none() && self.skills.resolve(name).is_err())
                    .map(|name| format!("it uses the skill {name}, which does not exist"))
                    .collect();
                let (composed, definition) = (call_order(Some(&agent)), Some(source));
                found.push(AgentView { agent, location, of_project, definition, problems, composed });
            }
        }
        Agents { found, unreadable: refused }
    }

    /// Returns the agent of a session as its calls use it: without our tags in the text of a project, and with the user's
    /// own skills in an agent of the user; none if no agent is set.
    ///
    /// # Errors
    /// Like [`Self::find`]; `invalid_configuration` if the agent was set from another file, and this one is of a project.
    pub(super) fn of_session(&self, settings: &Settings) -> Result<Option<Agent>, Error> {
        let Some(id) = &settings.agent else { return Ok(None) };
        let AgentView { agent, location, of_project, .. } = self.find(id)?;
        if !of_project {
            let catalog = self.skills.snapshot();
            let own = |name: &String| {
                let skill = catalog.own_skill(name).or_else(|| catalog.own_skill_named(name));
                skill.map_or_else(|| name.clone(), |skill| skill.id.to_string())
            };
            return Ok(Some(Agent { uses_skills: agent.uses_skills.iter().map(own).collect(), ..agent }));
        }
        if settings.agent_file.as_ref().is_some_and(|file| *file != digest_of_path(&location)) {
            let message = format!(
                "the agent {id} of this session is that of another project, not the one here: set the agent of the \
                 session again to use this one"
            );
            return Err(Error::new(Code::InvalidConfiguration, message));
        }
        let (prompt, instructions) = (escape_tags(&agent.prompt), escape_tags(&agent.instructions));
        Ok(Some(Agent { prompt, instructions, ..agent }))
    }

    /// Returns the agent with this id.
    ///
    /// # Errors
    /// Returns `not_found` with similar ids; `invalid_configuration` for a file of that name that cannot be read.
    pub(super) fn find(&self, id: &str) -> Result<AgentView, Error> {
        let Agents { found: all, unreadable } = self.found();
        let near = names::near(id, all.iter().map(|view| view.agent.id.as_str()));
        if let Some(found) = all.into_iter().find(|view| view.agent.id == id) {
            return Ok(found);
        }
        if let Some(view) = unreadable.iter().find(|view| view.agent.id == id) {
            return Err(wrong(&view.location, id));
        }
        let message = format!("agent `{id}` not found; `skills agents list` lists agents");
        Err(Error { suggestions: near, ..Error::new(Code::NotFound, message) })
    }

    /// Returns the ids of the skills that an agent is limited to; unknown names are returned as written.
    pub(super) fn own_ids(&self, agent: &Agent) -> Vec<String> {
        let id = |name: &String| {
            self.skills.resolve(name).map_or_else(|_| name.clone(), |skill| skill.id.to_string())
        };
        agent.uses_skills.iter().map(id).collect()
    }

    /// The folders that may have a folder of agents, and whether they are of a project; those of the user first.
    fn places(&self) -> Vec<(PathBuf, bool)> {
        let catalog = self.skills.registry.snapshot();
        let (of_projects, own): (Vec<_>, Vec<_>) = catalog.roots.iter().partition(|root| root.of_project);
        let mut folders: Vec<(PathBuf, bool)> = own.iter().map(|root| (root.path.clone(), false)).collect();
        let others = of_projects.iter().map(|root| &root.path);
        for folder in std::iter::once(&self.skills.config.cwd).chain(others) {
            if !folders.iter().any(|(known, _)| known == folder) {
                folders.push((folder.clone(), true));
            }
        }
        folders
    }
}

/// Identifies the file of an agent without telling a caller of a service where it is.
pub(super) fn digest_of_path(location: &Path) -> Digest {
    Digest::of(location.as_os_str().as_encoded_bytes())
}

/// The paths of the files that may define an agent.
fn definitions(above: &Folder) -> Result<Vec<String>, OpenError> {
    let mut names: Vec<String> = above.entries(FOLDER)?.into_iter().map(|entry| entry.name).collect();
    // A bundle or repository of that name is not the folder of agents of the skills next to it.
    if names.iter().any(|name| is_main_file(name) || name == ".git") {
        return Ok(Vec::new());
    }
    names.retain(|name| {
        let is_yaml = Path::new(name).extension().is_some_and(|e| e == "yaml" || e == "yml");
        is_yaml && !name.starts_with('.')
    });
    names.sort();
    Ok(names.into_iter().map(|name| format!("{FOLDER}/{name}")).collect())
}

/// Returns the error for a file that does not define an agent, without an excerpt: a caller of a service may not see it.
fn wrong(location: &Path, id: &str) -> Error {
    let message =
        format!("agent {} is not valid; `skills agents show {}` shows why", location.display(), quoted(id));
    Error::new(Code::InvalidConfiguration, message)
}
