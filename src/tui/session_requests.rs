//! Requests of panes about sessions and their responses: the operations of [`SessionClient`] as values.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::clipboard::Clipboard;
use crate::session_export::{Exported, every_form, write};
use skills_api::{
    AgentView, BudgetView, ComposedView, Error, LevelsView, SessionClient, SessionSummary, SessionView,
    SettingsChange, SharedSessionClient, ToolAnswer,
};
use skills_session::{Api, MessageRole, Payload, ScriptPreview};

#[derive(Debug, Clone, PartialEq)]
pub enum SessionRequest {
    /// Load the session that changed last, or create one if there is none.
    Latest,
    /// List sessions, most recently changed first.
    List,
    Open(String),
    /// Check whether this session changed since it was loaded.
    Check {
        session: String,
        version: u64,
        /// The session that changed last at the previous check: if it is the same, nothing changed.
        newest: Option<Newest>,
        /// Return the session in any case: files of its skills, or the roots, may have changed.
        always: bool,
    },
    /// Create a session like this one.
    New(SettingsChange),
    Configure(String, SettingsChange),
    /// Call a runtime tool.
    Tool {
        session: String,
        tool: String,
        arguments: Value,
    },
    /// Reorder the active skills: move this skill by a number of positions.
    Reorder {
        session: String,
        skill: String,
        /// Number of positions; negative moves it towards the first.
        by: isize,
    },
    /// Compose the next call; `true` records it as made first.
    Compose(String, bool),
    /// Export the complete request of the next call.
    Export(String, Api),
    /// Load a skill at each disclosure level, as it is loaded in a session.
    Levels {
        session: String,
        skill: String,
    },
    Agents,
    /// Compute how a client's budget truncates the catalog.
    Budget(String),
    /// Run a script, or return what would run for review.
    Script {
        /// The script and its inputs.
        call: ScriptCall,
        /// The digest that a person confirmed; `None` requests the review.
        confirmed: Option<String>,
    },
    /// Append a message.
    Say(String, MessageRole, String),
    /// Export the session in every format.
    Exports(String),
    /// Write a text to a local file.
    Write {
        path: String,
        text: Arc<str>,
        /// Overwrite an existing file.
        replace: bool,
    },
}

/// A script of a session with its inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptCall {
    pub session: String,
    pub arguments: Value,
    /// Local files by their names in the work directory.
    pub files: BTreeMap<String, String>,
}

/// The session that changed last: its id, the time, and its number of entries then.
pub type Newest = (String, i64, u64);

#[derive(Debug, Clone)]
pub enum SessionResponse {
    /// Response to [`SessionRequest::List`].
    Listed(Result<Arc<[SessionSummary]>, Error>),
    /// Response to [`SessionRequest::Check`]: the session's id, the session that changed last, and the session if it changed
    /// or was requested in any case.
    Looked(String, Option<Newest>, Option<Arc<SessionView>>),
    Session(Result<Arc<SessionView>, Error>),
    /// Response to [`SessionRequest::Tool`]: the tool, its result, and the session afterwards.
    Tool(String, Result<Arc<ToolAnswer>, Error>, Option<Arc<SessionView>>),
    /// Response to an unconfirmed [`SessionRequest::Script`]: what would run, and the session after it.
    Review(ScriptCall, Box<ScriptPreview>, Option<Arc<SessionView>>),
    /// Response to [`SessionRequest::Compose`].
    Composed(String, Result<Arc<ComposedView>, Error>),
    /// Response to [`SessionRequest::Export`].
    Exported(Api, Result<Arc<Payload>, Error>),
    /// Response to [`SessionRequest::Exports`]: the session, its exports, and whether a desktop clipboard is available.
    Exports(String, Result<Arc<[Exported]>, Error>, bool),
    /// Response to [`SessionRequest::Write`]: the file, or the error.
    Written(Result<PathBuf, String>),
    /// Response to [`SessionRequest::Levels`], with the requested skill.
    Levels(String, Result<Arc<LevelsView>, Error>),
    /// Response to [`SessionRequest::Agents`].
    Agents(Result<Arc<[AgentView]>, Error>),
    /// Response to [`SessionRequest::Budget`], with the requested client.
    Budget(String, Result<Arc<BudgetView>, Error>),
}

/// Maximum number of sessions listed.
const MAX_LISTED_SESSIONS: usize = 200;

impl SessionRequest {
    /// Returns the operation's name for the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Latest | Self::Open(_) | Self::Check { .. } => "session",
            Self::List => "sessions",
            Self::New(_) => "new_session",
            Self::Configure(..) => "configure_session",
            Self::Tool { .. } | Self::Reorder { .. } => "call_tool",
            Self::Compose(..) => "compose",
            Self::Export(..) => "export_session",
            Self::Levels { .. } => "level_view",
            Self::Agents => "agents",
            Self::Budget(_) => "budget",
            Self::Say(..) => "say",
            Self::Script { .. } => "run_script",
            Self::Exports(_) => "export_session",
            Self::Write { .. } => "write",
        }
    }

    /// Sends the request to the core; a failure is a response too.
    pub async fn send(self, core: SharedSessionClient) -> SessionResponse {
        let core: &dyn SessionClient = core.as_ref();
        match self {
            Self::Latest => SessionResponse::Session(latest(core).await.map(Arc::new)),
            Self::List => SessionResponse::Listed(core.sessions(MAX_LISTED_SESSIONS).await.map(Into::into)),
            Self::Open(id) => SessionResponse::Session(core.session(&id).await.map(Arc::new)),
            Self::Check { session, version, newest, always } => {
                look(core, session, version, newest, always).await
            }
            Self::New(settings) => SessionResponse::Session(core.new_session(settings).await.map(Arc::new)),
            Self::Configure(id, change) => {
                SessionResponse::Session(core.configure_session(&id, change).await.map(Arc::new))
            }
            Self::Tool { session, tool, arguments } => {
                let answer = core.call_tool(&session, &tool, arguments, None).await.map(Arc::new);
                let after = core.session(&session).await.ok().map(Arc::new);
                SessionResponse::Tool(tool, answer, after)
            }
            Self::Reorder { session, skill, by } => reorder(core, session, &skill, by).await,
            Self::Compose(id, made) => {
                let mut composed = core.compose(&id, made).await;
                // The view after it: compared with the call that was recorded.
                if made && composed.is_ok() {
                    composed = core.compose(&id, false).await;
                }
                SessionResponse::Composed(id, composed.map(Arc::new))
            }
            Self::Export(id, api) => {
                SessionResponse::Exported(api, core.export_session(&id, api, "MODEL").await.map(Arc::new))
            }
            Self::Levels { session, skill } => {
                let levels = core.level_view(&skill, Some(&session)).await.map(Arc::new);
                SessionResponse::Levels(skill, levels)
            }
            Self::Agents => SessionResponse::Agents(core.agents().await.map(Into::into)),
            Self::Budget(client) => {
                let view = core.budget(Some(&client), None).await.map(Arc::new);
                SessionResponse::Budget(client, view)
            }
            Self::Script { call, confirmed } => {
                let ScriptCall { session, arguments, files } = call.clone();
                let mut answer = core.run_script(&session, arguments, files, confirmed.as_deref()).await;
                let after = core.session(&session).await.ok().map(Arc::new);
                let asks =
                    answer.as_mut().ok().and_then(|answer| answer.result.as_mut().err()?.script.take());
                match asks {
                    Some(preview) => SessionResponse::Review(call, preview, after),
                    None => {
                        SessionResponse::Tool("skills.run_script".to_owned(), answer.map(Arc::new), after)
                    }
                }
            }
            Self::Exports(id) => {
                let exports = every_form(core, &id).await;
                let desktop = Clipboard::has_desktop(|name| std::env::var(name).ok());
                SessionResponse::Exports(id, exports, desktop)
            }
            Self::Write { path, text, replace } => {
                let home = std::env::home_dir();
                let write = move || write(&path, &text, replace, home.as_deref());
                let written = tokio::task::spawn_blocking(write).await;
                SessionResponse::Written(written.unwrap_or_else(|error| Err(error.to_string())))
            }
            Self::Say(id, speaker, text) => {
                let session = match core.say(&id, speaker, &text).await {
                    Ok(_) => core.session(&id).await,
                    Err(error) => Err(error),
                };
                SessionResponse::Session(session.map(Arc::new))
            }
        }
    }
}

/// Moves a skill within the active skills as loaded from the core: the screen may be outdated, and applying its order
/// would unload what another process loaded since.
async fn reorder(core: &dyn SessionClient, session: String, skill: &str, by: isize) -> SessionResponse {
    let view = match core.session(&session).await {
        Ok(view) => view,
        Err(error) => return SessionResponse::Session(Err(error)),
    };
    let mut names: Vec<&str> = view.active.iter().map(|active| active.name.as_str()).collect();
    let from = names.iter().position(|name| *name == skill);
    let to = from.and_then(|from| from.checked_add_signed(by)).filter(|to| *to < names.len());
    let Some((from, to)) = from.zip(to) else { return SessionResponse::Session(Ok(Arc::new(view))) };
    let moved = names.remove(from);
    names.insert(to, moved);
    let tool = "skills.load".to_owned();
    let answer = core.call_tool(&session, &tool, json!({"names": names, "mode": "replace"}), None).await;
    let after = core.session(&session).await.ok().map(Arc::new);
    SessionResponse::Tool(tool, answer.map(Arc::new), after)
}

/// Checks whether a session changed; in most cases one row of the store shows that nothing did. Failures are ignored,
/// because the next poll tries again and the header shows a lost connection.
async fn look(
    core: &dyn SessionClient,
    session: String,
    version: u64,
    known: Option<Newest>,
    always: bool,
) -> SessionResponse {
    let Ok(heads) = core.sessions(1).await else { return SessionResponse::Looked(session, known, None) };
    let newest = heads.into_iter().next().map(|head| (head.session_id, head.changed_ms, head.entries));
    if newest.is_some() && newest == known && !always {
        return SessionResponse::Looked(session, known, None);
    }
    match core.session(&session).await {
        Ok(view) => {
            let changed = (always || view.version > version).then(|| Arc::new(view));
            SessionResponse::Looked(session, newest, changed)
        }
        Err(_) => SessionResponse::Looked(session, known, None),
    }
}

async fn latest(core: &dyn SessionClient) -> Result<SessionView, Error> {
    match core.sessions(1).await?.first() {
        Some(newest) => core.session(&newest.session_id).await,
        None => core.new_session(SettingsChange::default()).await,
    }
}
