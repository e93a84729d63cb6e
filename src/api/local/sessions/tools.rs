//! Executes the runtime tools: list, load, unload, read, run a script. Each call and its result, even a failed one, is
//! appended to the transcript.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::agents::AgentFolders;
use super::catalog::listed_entry as as_told;
use super::script::Scripts;
use super::{ClientLists, StoredSessions, now_ms};
use crate::local::levels::Levels;
use crate::local::ranking::Ranking;
use crate::local::runs::Permissions;
use crate::local::skills::Skills;
use crate::local::usual_request;
use crate::{Code, Error, ToolAnswer, detail, names};
use skills_session::{
    Active, Agent, Compat, ListArguments, ListedEntry, LoadArguments, LoadMode, ReadArguments,
    ReadSkillArguments, Session, Tool, ToolError, ToolFailure, ToolNameFormat, UnloadArguments, arguments,
    body_text, read,
};
use skills_skill::tokens::TokenCount;

/// Default number of skills in a listing.
const MAX_LISTED_SKILLS: usize = 50;

/// What the host passes to a script in addition to the model's arguments.
#[derive(Default)]
pub(super) struct HostGrants {
    /// The digest that a person confirmed.
    pub confirmed: Option<String>,
    /// The principal of the call; none for the local account.
    pub by: Option<String>,
    /// Files of this machine, by their names in the work directory.
    pub files: BTreeMap<String, String>,
}

/// A tool by its current or its older name.
#[derive(Clone, Copy)]
enum RequestedTool {
    Own(Tool),
    Older(Compat),
}

/// Returns whether the result of the tool belongs to disclosure level L3.
pub(super) fn hands_out_files(tool: &str) -> bool {
    matches!(tool.parse(), Ok(Tool::Read | Tool::RunScript)) || tool == Compat::ReadSkillResource.to_string()
}

fn requested_tool(tool: &str, compat: bool) -> Result<RequestedTool, Error> {
    // Where names cannot contain a dot, an underscore replaces it.
    let dotted = tool.strip_prefix("skills_").map(|rest| format!("skills.{rest}"));
    if let Ok(tool) = Tool::from_str(dotted.as_deref().unwrap_or(tool)) {
        return Ok(RequestedTool::Own(tool));
    }
    if compat && let Ok(tool) = Compat::from_str(tool) {
        return Ok(RequestedTool::Older(tool));
    }
    let expected: Vec<String> =
        Tool::specs(ToolNameFormat::Dotted, compat).into_iter().map(|spec| spec.name).collect();
    let near = names::near(tool, expected.iter().map(String::as_str));
    let message = format!("runtime tool `{tool}` not found; expected one of: {}", expected.join(", "));
    Err(Error { suggestions: near, ..Error::new(Code::NotFound, message) })
}

fn to_json_result(value: &impl Serialize) -> Result<Value, ToolError> {
    serde_json::to_value(value).map_err(|error| ToolError::new(ToolFailure::RuntimeError, error.to_string()))
}

/// Converts an error of the core to that of a tool.
pub(super) fn to_tool_error(error: Error) -> ToolError {
    let code = match error.code {
        Code::NotFound => ToolFailure::NotFound,
        Code::InvalidRequest => ToolFailure::InvalidRequest,
        Code::PathEscape => ToolFailure::PathEscape,
        Code::SafetyDenied | Code::Forbidden => ToolFailure::SafetyDenied,
        _ => ToolFailure::RuntimeError,
    };
    let near = if error.suggestions.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", error.suggestions.join(", "))
    };
    ToolError::new(code, format!("{}{near}", error.message))
}

/// Maximum number of names in a call; a session has fewer active skills.
const MAX_NAMES: usize = 64;

fn ensure_few(names: &[String]) -> Result<(), ToolError> {
    if names.len() <= MAX_NAMES {
        return Ok(());
    }
    let message = format!("`names` has {} items; the maximum is {MAX_NAMES}", names.len());
    Err(ToolError::new(ToolFailure::InvalidRequest, message))
}

/// Returns a skill as it would be loaded now.
pub(super) fn active(skills: &Skills, levels: &Levels, requested: &str) -> Result<Active, Error> {
    let skill = skills.resolve(requested)?;
    let source = detail::source(&skill)?;
    let body = skills_skill::body(&source).to_owned();
    let mut properties = Map::new();
    let skill_properties = &skill.properties;
    for (key, value) in
        [("license", &skill_properties.license), ("compatibility", &skill_properties.compatibility)]
    {
        if let Some(value) = value {
            properties.insert(key.to_owned(), json!(value));
        }
    }
    if !skill_properties.allowed_tools.is_empty() {
        properties.insert("allowed-tools".to_owned(), json!(skill_properties.allowed_tools));
    }
    if !skill_properties.metadata.is_empty() {
        properties.insert("metadata".to_owned(), Value::Object(skill_properties.metadata.to_map()));
    }
    let (name, digest) = (skill.id.as_str(), skills_skill::Digest::of(source.as_bytes()));
    // Counts the same text as elsewhere: the body in its element. Loading does not wait for the vocabulary.
    let element = body_text(name, &body);
    let counted = levels.known_body(name, &digest, &element);
    let counted = counted.unwrap_or_else(|| TokenCount::estimate(&element));
    Ok(Active {
        name: skill.id.to_string(),
        location: skill.location.clone(),
        // With links resolved: a link that replaces it later is not followed.
        root_dir: skill.real_folder().to_owned(),
        // Computed from what was just read: a file that changes in the meantime must not be reported under its old
        // digest.
        digest: digest.to_string(),
        properties,
        requires: skill.requires.clone(),
        tokens: counted.tokens,
        tokens_estimated: counted.estimated,
        body,
    })
}

/// Returns the name of a loaded skill in its session, for any of the three forms that `skills.load` accepts; if it
/// is not loaded, the name as given.
pub(super) fn called(skills: &Skills, session: &Session, requested: &str) -> String {
    let loaded = |name: &str| session.active.iter().any(|skill| skill.name == name);
    if loaded(requested) {
        return requested.to_owned();
    }
    // Even if its files no longer exist, it can still be named by their location.
    let place = skills.config.cwd.join(requested);
    let by_place = session.active.iter().find(|skill| skill.location == place || skill.root_dir == place);
    let by_name = || Some(skills.resolve(requested).ok()?.id.to_string()).filter(|id| loaded(id));
    by_place.map(|skill| skill.name.clone()).or_else(by_name).unwrap_or_else(|| requested.to_owned())
}

/// Replaces estimated token counts by exact ones that have been counted since.
pub(super) fn count_loaded(levels: &Levels, active: &mut [Active]) {
    for skill in active.iter_mut().filter(|skill| skill.tokens_estimated) {
        if let Some(counted) = levels.known_text(&body_text(&skill.name, &skill.body)) {
            (skill.tokens, skill.tokens_estimated) = (counted.tokens, counted.estimated);
        }
    }
}

/// The runtime tools of sessions.
pub(super) struct SessionTools {
    pub skills: Skills,
    pub levels: Arc<Levels>,
    pub agents: AgentFolders,
    pub lists: Arc<ClientLists>,
    pub stored: Arc<StoredSessions>,
    pub ranking: Arc<Ranking>,
    pub permissions: Arc<Permissions>,
    pub scripts: Scripts,
}

impl SessionTools {
    /// Like [`active`], if the policy allows the skill and the speaking agent has it.
    fn allowed(&self, requested: &str, agent: Option<&Agent>) -> Result<Active, Error> {
        let skill = self.skills.resolve(requested)?;
        if let Some(agent) = agent.filter(|agent| agent.scoped()) {
            let own = self.agents.own_ids(agent);
            if !own.iter().any(|id| id == skill.id.as_str()) {
                let message = format!("{} has no skill {requested}; it uses {}", agent.id, own.join(", "));
                return Err(Error::new(Code::NotFound, message));
            }
        }
        self.permissions.approval(&skill)?;
        active(&self.skills, &self.levels, requested)
    }

    pub(super) async fn use_tool(
        &self,
        session: &str,
        tool: &str,
        raw_arguments: Value,
        leave: HostGrants,
    ) -> Result<ToolAnswer, Error> {
        let started = std::time::Instant::now();
        let found = self.stored.find(session).await?;
        let requested = requested_tool(tool, found.settings.compat)?;
        let name = match requested {
            RequestedTool::Own(tool) => tool.to_string(),
            RequestedTool::Older(tool) => tool.to_string(),
        };
        // Slow work is done first; the session is changed in one step at the end.
        let done = match requested {
            RequestedTool::Own(Tool::List) | RequestedTool::Older(Compat::ListSkills) => {
                ToolEffect::Response(self.listing(&name, &raw_arguments, &found).await)
            }
            RequestedTool::Own(Tool::Load) => match arguments::<LoadArguments>(&name, &raw_arguments) {
                Ok(load) => match ensure_few(&load.names) {
                    Ok(()) => self.loading(&load.names, load.mode, &found),
                    Err(error) => ToolEffect::Response(Err(error)),
                },
                Err(error) => ToolEffect::Response(Err(error)),
            },
            RequestedTool::Older(Compat::ReadSkill) => {
                match arguments::<ReadSkillArguments>(&name, &raw_arguments) {
                    Ok(read) => self.loading(&[read.id], LoadMode::Add, &found),
                    Err(error) => ToolEffect::Response(Err(error)),
                }
            }
            RequestedTool::Own(Tool::Unload) => match arguments::<UnloadArguments>(&name, &raw_arguments) {
                Ok(unload) if unload.names.is_empty() && !unload.all => {
                    ToolEffect::Response(Err(ToolError::new(
                        ToolFailure::InvalidRequest,
                        "specify the skills to unload in `names`, or set `all` to true",
                    )))
                }
                Ok(unload) => match ensure_few(&unload.names) {
                    Ok(()) => {
                        let names =
                            unload.names.iter().map(|name| called(&self.skills, &found, name)).collect();
                        ToolEffect::Unload(UnloadArguments { names, ..unload })
                    }
                    Err(error) => ToolEffect::Response(Err(error)),
                },
                Err(error) => ToolEffect::Response(Err(error)),
            },
            RequestedTool::Own(Tool::Read) | RequestedTool::Older(Compat::ReadSkillResource) => {
                ToolEffect::Response(self.reading(&name, &raw_arguments, &found).await)
            }
            RequestedTool::Own(Tool::RunScript) => {
                ToolEffect::Response(self.scripts.run(&name, &raw_arguments, &found, leave).await)
            }
        };
        let bodies = matches!(requested, RequestedTool::Older(Compat::ReadSkill));
        let change = |session: &mut Session| {
            count_loaded(&self.levels, &mut session.active);
            let result = done.apply(session, bodies);
            // What would run is for the caller who can confirm it, not for the model that reads the transcript.
            let reported = result.clone().map_err(|error| ToolError { script: None, ..error });
            let entry = session.called(now_ms(), &name, raw_arguments.clone(), reported);
            Ok((entry, result))
        };
        let ((entry, result), session) = self.stored.change_found(found, change).await?;
        self.ranking.metrics.tool(&name, result.is_ok(), started.elapsed());
        Ok(ToolAnswer { entry, result, version: session.version })
    }

    fn loading(&self, names: &[String], mode: LoadMode, session: &Session) -> ToolEffect {
        let agent = match self.agents.of_session(&session.settings) {
            Ok(agent) => agent,
            Err(error) => return ToolEffect::Response(Err(to_tool_error(error))),
        };
        let mut skills: Vec<Active> = Vec::new();
        for name in names {
            match self.allowed(name, agent.as_ref()) {
                Ok(skill) if skills.iter().any(|known| known.name == skill.name) => {}
                Ok(skill) => skills.push(skill),
                Err(error) => return ToolEffect::Response(Err(to_tool_error(error))),
            }
        }
        ToolEffect::Load(skills, mode)
    }

    async fn listing(
        &self,
        tool: &str,
        raw_arguments: &Value,
        session: &Session,
    ) -> Result<Value, ToolError> {
        let parsed: ListArguments = arguments(tool, raw_arguments)?;
        let limit = parsed.limit.unwrap_or(MAX_LISTED_SKILLS);
        let agent = self.agents.of_session(&session.settings).map_err(to_tool_error)?;
        let uses = super::composition::uses(&session.transcript);
        let seen = self
            .lists
            .seen(&session.settings, agent.as_ref(), uses, ToolNameFormat::Dotted)
            .map_err(to_tool_error)?;
        let entry = |listed: &ListedEntry, score: Option<f64>| {
            let listed = as_told(listed, session.settings.locations);
            let mut entry = json!({"name": listed.name, "description": listed.description});
            if let Some(location) = &listed.location {
                entry["location"] = json!(skills_base::paths::escaped(location));
            }
            if let Some(score) = score {
                entry["score"] = json!(score);
            }
            entry
        };
        let skills: Vec<Value> = match parsed.query.filter(|query| !query.trim().is_empty()) {
            Some(query) => {
                let request =
                    skills_discovery::Request { intent: query, limit, ..usual_request(&self.skills.config) };
                let answer = self.ranking.discover(request).await.map_err(to_tool_error)?;
                let listed_by_name: HashMap<&str, &ListedEntry> =
                    seen.listed().map(|listed| (listed.name.as_str(), listed)).collect();
                answer
                    .results
                    .iter()
                    .filter_map(|hit| {
                        let listed = listed_by_name.get(hit.skill_id.as_str())?;
                        Some(entry(listed, Some(hit.score)))
                    })
                    .collect()
            }
            None => seen.listed().take(limit).map(|listed| entry(listed, None)).collect(),
        };
        Ok(json!({"skills": skills, "total": seen.listed().count(), "hint": "load one with skills.load \
                first"}))
    }

    async fn reading(
        &self,
        tool: &str,
        raw_arguments: &Value,
        session: &Session,
    ) -> Result<Value, ToolError> {
        let parsed: ReadArguments = arguments(tool, raw_arguments)?;
        let named = parsed.skill.as_deref().map(|name| called(&self.skills, session, name));
        let skill = session.loaded(named.as_deref())?;
        let (loaded, name) = (skill.clone(), skill.name.clone());
        let (path, catalog) = (parsed.path.clone(), self.skills.registry.snapshot());
        let reading = move || {
            let bundle = super::skill_drift::open_loaded(&loaded, &catalog)?;
            read::range(&bundle, &path, parsed.offset, parsed.length).map_err(|error| match error.code {
                ToolFailure::NotFound => {
                    let message = format!("`{path}` does not exist in the loaded skill `{}`", loaded.name);
                    ToolError::new(ToolFailure::NotFound, message)
                }
                _ => error,
            })
        };
        let range = crate::work::spawn_blocking(reading).await.map_err(|error| {
            ToolError::new(ToolFailure::RuntimeError, Error::from_join_error(&error).message)
        })??;
        let mut answer = json!({"skill": name, "path": range.path, "size": range.size});
        if range.offset > 0 || range.next_offset.is_some() {
            answer["offset"] = json!(range.offset);
        }
        // A range may start or end inside a character: such bytes are returned as Base64.
        if let Some(text) = std::str::from_utf8(&range.bytes).ok().filter(|text| !text.contains('\0')) {
            answer["content"] = json!(text);
        } else {
            answer["encoding"] = json!("base64");
            answer["media_type"] = json!(detail::media_type_of(&range.path, false));
            answer["content"] = json!(BASE64.encode(&range.bytes));
        }
        if let Some(next) = range.next_offset {
            answer["next_offset"] = json!(next);
        }
        Ok(answer)
    }
}

/// The change to be made to the session.
enum ToolEffect {
    Response(Result<Value, ToolError>),
    Load(Vec<Active>, LoadMode),
    Unload(UnloadArguments),
}

impl ToolEffect {
    fn apply(&self, session: &mut Session, bodies: bool) -> Result<Value, ToolError> {
        match self {
            Self::Response(result) => result.clone(),
            Self::Load(skills, mode) => {
                let skills = skills.clone();
                let receipt = if bodies {
                    session.load_with_receipt(skills, *mode)?
                } else {
                    session.load(skills, *mode)?
                };
                to_json_result(&receipt)
            }
            Self::Unload(unload) if unload.all => to_json_result(&session.unload_all()),
            Self::Unload(unload) => to_json_result(&session.unload(&unload.names)),
        }
    }
}
