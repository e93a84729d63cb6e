//! The agents of this installation: `agents/*.yaml` next to the skills of each root, and in the project. Those of the
//! user come first: a project cannot replace one.

use std::path::{Path, PathBuf};

use crate::local::skills::Skills;
use crate::{AgentView, Code, Error, names};
use skills_base::files::{Folder, OpenError};
use skills_config::operands;
use skills_registry::{Catalog, RootOrigin};
use skills_session::{Agent, Settings, call_order, escape_tags, parse_agent};
use skills_skill::{Digest, is_main_file};

/// Folder of the agents, next to the skills of a root and in the project.
const FOLDER: &str = "agents";
/// Largest definition that is read, in bytes.
const MAX_AGENT_BYTES: u64 = 1 << 20;

/// The content of the agent folders.
#[derive(Default)]
struct Agents {
    found: Vec<AgentView>,
    /// Agents of the user with the id of one in `found`.
    others: Vec<AgentView>,
    /// Files that do not define an agent, under their names, with the reason as problem.
    unreadable: Vec<AgentView>,
    /// The folder of the agents that ship with this program: other versions and machines have it elsewhere.
    shipped: Option<PathBuf>,
}

impl Agents {
    /// Adds an agent; the first of several with the same id is used.
    fn add(&mut self, view: AgentView) {
        let of_project = view.of_project;
        // A project does not replace an agent of the user whose file cannot be read, either.
        let is_shipped = self.is_shipped(&view);
        let of_user = self.unreadable.iter_mut().filter(|known| of_project && !known.of_project);
        if let Some(known) =
            self.found.iter_mut().chain(of_user).find(|known| known.agent.id == view.agent.id)
        {
            let what = if !is_shipped && is_other_definition(known, &view) {
                "and differs: remove or rename one of them"
            } else {
                "and is not used"
            };
            known.problems.push(format!("{} has the same id {what}", view.location.display()));
            if !of_project && !is_shipped {
                self.others.push(view);
            }
            return;
        }
        self.found.push(view);
    }

    fn is_shipped(&self, view: &AgentView) -> bool {
        self.shipped.as_ref().is_some_and(|folder| view.location.starts_with(folder))
    }

    /// Returns the agent with this id.
    ///
    /// # Errors
    /// Like [`AgentFolders::find`].
    fn with_id(&self, id: &str) -> Result<&AgentView, Error> {
        if let Some(found) = self.found.iter().find(|view| view.agent.id == id) {
            if self.others.iter().any(|other| other.agent.id == id && is_other_definition(found, other)) {
                let message = format!(
                    "several folders define the agent {id} differently: remove or rename all but one of the files \
                     that `skills agents show {}` names",
                    operands([id])
                );
                return Err(Error::new(Code::InvalidConfiguration, message));
            }
            return Ok(found);
        }
        if let Some(view) = self.unreadable.iter().find(|view| view.agent.id == id) {
            return Err(wrong(&view.location, id));
        }
        let near = names::near(id, self.found.iter().map(|view| view.agent.id.as_str()));
        let message = format!("agent `{id}` not found; `skills agents list` lists agents");
        Err(Error { suggestions: near, ..Error::new(Code::NotFound, message) })
    }

    /// Returns the agent with this id from the file with this digest of its path.
    ///
    /// # Errors
    /// Like [`Self::with_id`]; `invalid_configuration` if only other files define the agent.
    fn of_file(&self, id: &str, file: Digest) -> Result<AgentView, Error> {
        let mut all = self.found.iter().chain(&self.others);
        let is_set = |view: &&AgentView| view.agent.id == id && digest_of_path(&view.location) == file;
        if let Some(found) = all.find(is_set) {
            return Ok(found.clone());
        }
        let present = self.with_id(id)?;
        if self.is_shipped(present) {
            return Ok(present.clone());
        }
        let message = format!(
            "the agent {id} of this session was set from a file that is not used here; set the agent of the session again \
             to use the present one"
        );
        Err(Error::new(Code::InvalidConfiguration, message))
    }
}

/// Returns whether two files of the user in different folders define an agent differently: one of them may be a download.
fn is_other_definition(known: &AgentView, other: &AgentView) -> bool {
    !known.of_project
        && !other.of_project
        && known.location.parent() != other.location.parent()
        && known.definition != other.definition
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
        let Agents { mut found, unreadable, .. } = self.found();
        for view in &mut found {
            let mut problems = self.problems(&view.agent, view.of_project);
            problems.append(&mut view.problems);
            view.problems = problems;
        }
        for view in unreadable {
            if !found.iter().any(|known| known.agent.id == view.agent.id) {
                found.push(view);
            }
        }
        found.sort_by(|a, b| a.agent.id.cmp(&b.agent.id));
        found
    }

    fn found(&self) -> Agents {
        let catalog = self.skills.snapshot();
        let shipped = catalog.roots.iter().find(|root| root.origin == RootOrigin::Shipped);
        let mut agents = Agents { shipped: shipped.map(|root| root.path.clone()), ..Agents::default() };
        for (above, of_project) in self.places() {
            // As with bundles, a link is followed if it stays beneath the root.
            let Ok(opened) = Folder::follow(&above) else { continue };
            let folder = above.join(FOLDER);
            let names = match definitions(&opened) {
                Ok(names) => names,
                Err(OpenError::NotFound { .. }) => continue,
                Err(refusal) => {
                    agents.unreadable.push(unreadable(folder, of_project, None, refusal.to_string()));
                    continue;
                }
            };
            // The author of a collection of that name is not the user.
            if !of_project
                && !names.is_empty()
                && let Some(skill) = skill_below(&catalog, &folder)
            {
                let why = format!("not a folder of agents, because it contains a skill: {}", skill.display());
                agents.unreadable.push(unreadable(folder, of_project, None, why));
                continue;
            }
            for name in names {
                let location = above.join(&name);
                let source = match opened.read_text(&name, MAX_AGENT_BYTES) {
                    Ok(source) => source,
                    Err(refusal) => {
                        agents.unreadable.push(unreadable(location, of_project, None, refusal.to_string()));
                        continue;
                    }
                };
                let agent = match parse_agent(&source) {
                    Ok(agent) => agent,
                    Err(why) => {
                        agents.unreadable.push(unreadable(location, of_project, Some(source), why));
                        continue;
                    }
                };
                let (composed, definition) = (call_order(Some(&agent)), Some(source));
                let problems = Vec::new();
                agents.add(AgentView { agent, location, of_project, definition, problems, composed });
            }
        }
        agents
    }

    /// Returns what is wrong with the skills of an agent.
    fn problems(&self, agent: &Agent, of_project: bool) -> Vec<String> {
        let problem = |name: &String| {
            let exists = self.skills.exists(name);
            if if of_project { exists } else { self.skills.exists_own(name) } {
                return None;
            }
            let why = if exists { "is not among your own" } else { "is not loaded" };
            Some(format!("it uses the skill {name}, which {why}"))
        };
        agent.uses_skills.iter().filter_map(problem).collect()
    }

    /// Returns the agent of a session as its calls use it: without our tags in the text of a project, and with the user's
    /// own skills in an agent of the user; none if no agent is set.
    ///
    /// # Errors
    /// Like [`Self::find`]; `invalid_configuration` if the agent was set from another file. Like
    /// [`Skills::resolve_own`] for the skills of an agent of the user.
    pub(super) fn of_session(&self, settings: &Settings) -> Result<Option<Agent>, Error> {
        let Some(id) = &settings.agent else { return Ok(None) };
        let agents = self.found();
        let view =
            settings.agent_file.map_or_else(|| agents.with_id(id).cloned(), |file| agents.of_file(id, file));
        let AgentView { agent, of_project, .. } = view?;
        if of_project {
            let (prompt, instructions) = (escape_tags(&agent.prompt), escape_tags(&agent.instructions));
            return Ok(Some(Agent { prompt, instructions, ..agent }));
        }
        let own = |name: &String| {
            let found = self.skills.resolve_own(name).map(|skill| skill.id.to_string());
            found.map_err(|error| Error {
                message: format!(
                    "agent {id}: {}; correct its file, or set another agent for the session",
                    error.message
                ),
                ..error
            })
        };
        let uses_skills = agent.uses_skills.iter().map(own).collect::<Result<Vec<_>, Error>>()?;
        Ok(Some(Agent { uses_skills, ..agent }))
    }

    /// Returns the agent with this id.
    ///
    /// # Errors
    /// Returns `not_found` with similar ids; `invalid_configuration` for a file of that name that cannot be read, and if
    /// several folders of the user define the agent differently.
    pub(super) fn find(&self, id: &str) -> Result<AgentView, Error> {
        self.found().with_id(id).cloned()
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

/// Returns the file of a skill below a folder, if there is one.
fn skill_below<'a>(catalog: &'a Catalog, folder: &Path) -> Option<&'a Path> {
    let skills = catalog.all_skills().map(|skill| &skill.location);
    // Each of the links leads to a skill.
    let links = catalog.links.iter().map(|link| &link.location);
    let mut files = skills.chain(catalog.aliases.iter().map(|alias| &alias.location)).chain(links);
    files.find(|file| file.starts_with(folder)).map(PathBuf::as_path)
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
    let message = format!(
        "agent {} is not valid; `skills agents show {}` shows why",
        location.display(),
        operands([id])
    );
    Error::new(Code::InvalidConfiguration, message)
}
