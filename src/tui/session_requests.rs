//! What panes ask about sessions and what they are notified: the operations of [`SessionClient`] as plain
//! values.

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
use skills_session::{Api, Payload, ScriptSheet, Speaker};

/// Something a pane asks of the core about sessions.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionAsk {
    /// The session that changed last; a new one where there is none.
    Latest,
    /// Lists sessions, most recently changed first.
    List,
    /// This session.
    Open(String),
    /// Whether this session was changed since it was read.
    Look {
        /// Which session.
        session: String,
        /// As it was read.
        version: u64,
        /// The session that changed last when this was asked before: the same one still means that nothing did.
        newest: Option<Newest>,
        /// Answer with the session in any case: its skills' files or the roots may be others.
        whole: bool,
    },
    /// A new session like this one.
    New(SettingsChange),
    /// Change how it is composed.
    Configure(String, SettingsChange),
    /// Call a runtime tool.
    Tool {
        /// Which session.
        session: String,
        /// Which tool.
        tool: String,
        /// With what.
        arguments: Value,
    },
    /// Load what is loaded in another order: this skill that many places further down.
    Reorder {
        /// Which session.
        session: String,
        /// Which skill.
        skill: String,
        /// Negative towards the first.
        by: isize,
    },
    /// The next call; `true` to remember it as made.
    Compose(String, bool),
    /// The complete request of the next call.
    Export(String, Api),
    /// A skill at each level, as it is loaded in a session.
    Levels {
        /// Which session.
        session: String,
        /// Which skill.
        skill: String,
    },
    /// The agents there are.
    Agents,
    /// What this client's budget makes of the catalog.
    Budget(String),
    /// Run a script with these files of this machine.
    Script {
        /// What of it.
        call: ScriptCall,
        /// The digest that a person confirmed; none to be told what would run.
        confirmed: Option<String>,
    },
    /// Append a message.
    Say(String, Speaker, String),
    /// The session in every form in which it can be taken out.
    Exports(String),
    /// Write a text into a file of this machine.
    Write {
        /// Which file.
        path: String,
        /// What.
        text: Arc<str>,
        /// Overwrite an existing file.
        replace: bool,
    },
}

/// A script and what it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptCall {
    /// Which session.
    pub session: String,
    /// Of the tool.
    pub arguments: Value,
    /// Files of this machine, by their names in the work directory.
    pub files: BTreeMap<String, String>,
}

/// The session that changed last: its id, when, and its entries then.
pub type Newest = (String, i64, u64);

/// What a pane is reported about sessions.
#[derive(Debug, Clone)]
pub enum SessionTold {
    /// Answer to [`SessionAsk::List`].
    Listed(Result<Arc<[SessionSummary]>, Error>),
    /// Answer to [`SessionAsk::Look`]: which session, the one that changed last, and the session where it changed or
    /// was asked for in any case.
    Looked(String, Option<Newest>, Option<Arc<SessionView>>),
    /// A session as it is now.
    Session(Result<Arc<SessionView>, Error>),
    /// Answer to [`SessionAsk::Tool`]: the tool, what it gave, and the session after it.
    Tool(String, Result<Arc<ToolAnswer>, Error>, Option<Arc<SessionView>>),
    /// What [`SessionAsk::Script`] would run, to be confirmed, and the session after it.
    Review(ScriptCall, Box<ScriptSheet>, Option<Arc<SessionView>>),
    /// Answer to [`SessionAsk::Compose`].
    Composed(String, Result<Arc<ComposedView>, Error>),
    /// Answer to [`SessionAsk::Export`].
    Exported(Api, Result<Arc<Payload>, Error>),
    /// Answer to [`SessionAsk::Exports`]: which session, and whether a desktop's clipboard is there.
    Exports(String, Result<Arc<[Exported]>, Error>, bool),
    /// Answer to [`SessionAsk::Write`]: the file, or why not.
    Written(Result<PathBuf, String>),
    /// Answer to [`SessionAsk::Levels`], with the skill that was asked for.
    Levels(String, Result<Arc<LevelsView>, Error>),
    /// Answer to [`SessionAsk::Agents`].
    Agents(Result<Arc<[AgentView]>, Error>),
    /// Answer to [`SessionAsk::Budget`], with the client that was asked for.
    Budget(String, Result<Arc<BudgetView>, Error>),
}

/// How many sessions are offered.
const LISTED: usize = 200;

impl SessionAsk {
    /// The operation's name, for the log.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Latest | Self::Open(_) | Self::Look { .. } => "session",
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

    /// Asks the core; failures are answers too.
    pub async fn put_to(self, core: SharedSessionClient) -> SessionTold {
        let core: &dyn SessionClient = core.as_ref();
        match self {
            Self::Latest => SessionTold::Session(latest(core).await.map(Arc::new)),
            Self::List => SessionTold::Listed(core.sessions(LISTED).await.map(Into::into)),
            Self::Open(id) => SessionTold::Session(core.session(&id).await.map(Arc::new)),
            Self::Look { session, version, newest, whole } => {
                look(core, session, version, newest, whole).await
            }
            Self::New(settings) => SessionTold::Session(core.new_session(settings).await.map(Arc::new)),
            Self::Configure(id, change) => {
                SessionTold::Session(core.configure_session(&id, change).await.map(Arc::new))
            }
            Self::Tool { session, tool, arguments } => {
                let answer = core.call_tool(&session, &tool, arguments, None).await.map(Arc::new);
                let after = core.session(&session).await.ok().map(Arc::new);
                SessionTold::Tool(tool, answer, after)
            }
            Self::Reorder { session, skill, by } => reorder(core, session, &skill, by).await,
            Self::Compose(id, made) => {
                let composed = core.compose(&id, made).await.map(Arc::new);
                SessionTold::Composed(id, composed)
            }
            Self::Export(id, api) => {
                SessionTold::Exported(api, core.export_session(&id, api, "MODEL").await.map(Arc::new))
            }
            Self::Levels { session, skill } => {
                let levels = core.level_view(&skill, Some(&session)).await.map(Arc::new);
                SessionTold::Levels(skill, levels)
            }
            Self::Agents => SessionTold::Agents(core.agents().await.map(Into::into)),
            Self::Budget(client) => {
                let view = core.budget(Some(&client), None).await.map(Arc::new);
                SessionTold::Budget(client, view)
            }
            Self::Script { call, confirmed } => {
                let ScriptCall { session, arguments, files } = call.clone();
                let mut answer = core.run_script(&session, arguments, files, confirmed.as_deref()).await;
                let after = core.session(&session).await.ok().map(Arc::new);
                let asks =
                    answer.as_mut().ok().and_then(|answer| answer.result.as_mut().err()?.script.take());
                match asks {
                    Some(sheet) => SessionTold::Review(call, sheet, after),
                    None => SessionTold::Tool("skills.run_script".to_owned(), answer.map(Arc::new), after),
                }
            }
            Self::Exports(id) => {
                let exports = every_form(core, &id).await;
                let desktop = Clipboard::has_desktop(|name| std::env::var(name).ok());
                SessionTold::Exports(id, exports, desktop)
            }
            Self::Write { path, text, replace } => {
                let home = std::env::home_dir();
                let write = move || write(&path, &text, replace, home.as_deref());
                let written = tokio::task::spawn_blocking(write).await;
                SessionTold::Written(written.unwrap_or_else(|error| Err(error.to_string())))
            }
            Self::Say(id, speaker, text) => {
                let said = match core.say(&id, speaker, &text).await {
                    Ok(_) => core.session(&id).await,
                    Err(error) => Err(error),
                };
                SessionTold::Session(said.map(Arc::new))
            }
        }
    }
}

/// Moves a skill among those that are loaded now: what is on a screen may be older, and loading that again
/// would unload what another process loaded since.
async fn reorder(core: &dyn SessionClient, session: String, skill: &str, by: isize) -> SessionTold {
    let view = match core.session(&session).await {
        Ok(view) => view,
        Err(error) => return SessionTold::Session(Err(error)),
    };
    let mut names: Vec<&str> = view.active.iter().map(|active| active.name.as_str()).collect();
    let from = names.iter().position(|name| *name == skill);
    let to = from.and_then(|from| from.checked_add_signed(by)).filter(|to| *to < names.len());
    let Some((from, to)) = from.zip(to) else { return SessionTold::Session(Ok(Arc::new(view))) };
    let moved = names.remove(from);
    names.insert(to, moved);
    let tool = "skills.load".to_owned();
    let answer = core.call_tool(&session, &tool, json!({"names": names, "mode": "replace"}), None).await;
    let after = core.session(&session).await.ok().map(Arc::new);
    SessionTold::Tool(tool, answer.map(Arc::new), after)
}

/// One row of the store says in most cases that nothing happened. What cannot be asked now is asked again later: the
/// header says that a connection is gone.
async fn look(
    core: &dyn SessionClient,
    session: String,
    version: u64,
    known: Option<Newest>,
    whole: bool,
) -> SessionTold {
    let Ok(heads) = core.sessions(1).await else { return SessionTold::Looked(session, known, None) };
    let newest = heads.into_iter().next().map(|head| (head.session_id, head.changed_ms, head.entries));
    if newest.is_some() && newest == known && !whole {
        return SessionTold::Looked(session, known, None);
    }
    match core.session(&session).await {
        Ok(view) => {
            let changed = (whole || view.version > version).then(|| Arc::new(view));
            SessionTold::Looked(session, newest, changed)
        }
        Err(_) => SessionTold::Looked(session, known, None),
    }
}

async fn latest(core: &dyn SessionClient) -> Result<SessionView, Error> {
    match core.sessions(1).await?.first() {
        Some(newest) => core.session(&newest.session_id).await,
        None => core.new_session(SettingsChange::default()).await,
    }
}
