//! Sessions in this process: stored in the store of the runs, changed with optimistic versioning, composed from the
//! current catalog.

mod access;
mod agents;
mod catalog;
mod catalog_cache;
mod composition;
mod description_changes;
mod difference;
mod script;
mod session_store;
mod skill_drift;
mod tools;
mod transcripts;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::levels::Levels;
use super::ranking::Ranking;
use super::runs::{CapabilityServices, RunStore, Runs};
use crate::{
    AgentView, BudgetView, Code, ComposedView, Error, LevelsView, LoadedFile, SessionAccess, SessionClient,
    SessionSummary, SessionView, SettingsChange, SharedSessionClient, ToolAnswer,
};
use skills_base::audit::Recorder;
use skills_runs::{MAX_JSON_VALUES, has_few_values};
use skills_session::{Active, Api, MAX_CAP, MessageRole, Payload, Session, SessionId, Settings, Tool, Turn};
use skills_store::{SessionHead, Sessions, StoreError};

use self::access::AccessibleSessions;
pub(super) use self::agents::AgentFolders;
pub(super) use self::catalog::ClientLists;
pub(super) use self::catalog_cache::{ComposedCatalogs, Views};
use self::composition::Composer;
use self::script::Scripts;
pub(super) use self::session_store::find;
use self::session_store::{LastCall, broken, decode, encode};
use self::tools::{HostGrants, SessionTools};
pub(super) use self::transcripts::Transcripts;

/// Maximum number of attempts of a change when another process was faster.
const TRIES: u32 = 16;

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Maximum size of a transcript as JSON, in bytes: every call of the session reads it.
const MAX_TRANSCRIPT_BYTES: usize = 16 << 20;

fn ensure_fits(session: &Session) -> Result<(), Error> {
    let json = serde_json::to_vec(&session.transcript).map_err(|e| broken(&session.id.0, &e))?;
    let size = if json.len() > MAX_TRANSCRIPT_BYTES {
        format!("{} bytes; the maximum is {MAX_TRANSCRIPT_BYTES}", json.len())
    } else if !has_few_values(&json) {
        format!("more than {MAX_JSON_VALUES} values and keys of JSON")
    } else {
        return Ok(());
    };
    let message = format!("the transcript of session {} has {size}. Create another session", session.id);
    Err(Error::new(Code::InvalidRequest, message))
}

/// Checks the context window, which must not be zero; callers without a number omit it.
fn window_in_range(window: Option<u32>) -> Result<(), Error> {
    if window == Some(0) {
        let message = format!("`window`: 0 is out of range; allowed: 1 to {} tokens", u32::MAX);
        return Err(Error::new(Code::InvalidRequest, message));
    }
    Ok(())
}

/// The sessions in the store of the runs.
struct StoredSessions {
    store: Arc<RunStore>,
    transcripts: Transcripts,
}

impl StoredSessions {
    async fn database(&self) -> Result<Arc<dyn Sessions>, Error> {
        self.store.sessions().await
    }

    async fn find(&self, requested: &str) -> Result<Session, Error> {
        find(&*self.database().await?, &self.transcripts, &SessionAccess::unrestricted(), requested).await
    }

    /// Changes a session: reads, changes and saves it, and retries if it changed in the meantime.
    async fn change_session<T>(
        &self,
        requested: &str,
        change: impl Fn(&mut Session) -> Result<T, Error> + Send + Sync,
    ) -> Result<(T, Session), Error> {
        let found = self.find(requested).await?;
        self.change_found(found, change).await
    }

    /// Like [`Self::change_session`] for a session that was just read: it is read again only after a conflict.
    async fn change_found<T>(
        &self,
        found: Session,
        change: impl Fn(&mut Session) -> Result<T, Error> + Send + Sync,
    ) -> Result<(T, Session), Error> {
        let database = self.database().await?;
        let id = found.id.0.clone();
        let mut read = Some(found);
        for _ in 0..TRIES {
            let mut session = match read.take() {
                Some(session) => session,
                None => find(&*database, &self.transcripts, &SessionAccess::unrestricted(), &id).await?,
            };
            let before = session.transcript.len();
            let answer = change(&mut session)?;
            if session.transcript.len() > before {
                ensure_fits(&session)?;
            }
            let lines = session.transcript[before..]
                .iter()
                .map(serde_json::to_value)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| broken(&id, &e))?;
            let result = database.change_session(&id, session.version, encode(&session)?, lines).await;
            match result {
                Ok(version) => {
                    session.version = version;
                    self.transcripts.keep(&id, version, &session.transcript);
                    return Ok((answer, session));
                }
                Err(StoreError::SessionConflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::new(Code::SessionConflict, format!("session {id} is being modified; try again")))
    }
}

/// The sessions of this installation.
pub(super) struct LocalSessions {
    stored: Arc<StoredSessions>,
    levels: Arc<Levels>,
    agents: AgentFolders,
    lists: Arc<ClientLists>,
    tools: SessionTools,
    composer: Composer,
    services: Arc<CapabilityServices>,
}

impl LocalSessions {
    pub(super) fn new(
        lists: &Arc<ClientLists>,
        ranking: &Arc<Ranking>,
        runs: &Runs,
        audit: &Arc<Recorder>,
    ) -> Self {
        let (skills, levels, agents) = (&lists.skills, &lists.levels, &lists.agents);
        let store = Arc::clone(&runs.store);
        let stored = Arc::new(StoredSessions { store, transcripts: Transcripts::default() });
        let scripts = Scripts {
            skills: skills.clone(),
            audit: Arc::clone(audit),
            services: Arc::clone(&runs.services),
            permissions: Arc::clone(&runs.permissions),
        };
        let tools = SessionTools {
            skills: skills.clone(),
            levels: Arc::clone(levels),
            agents: agents.clone(),
            lists: Arc::clone(lists),
            stored: Arc::clone(&stored),
            ranking: Arc::clone(ranking),
            permissions: Arc::clone(&runs.permissions),
            scripts,
        };
        let composer = Composer {
            skills: skills.clone(),
            levels: Arc::clone(levels),
            agents: agents.clone(),
            lists: Arc::clone(lists),
        };
        Self {
            stored,
            levels: Arc::clone(levels),
            agents: agents.clone(),
            lists: Arc::clone(lists),
            tools,
            composer,
            services: Arc::clone(&runs.services),
        }
    }

    async fn create_session(
        &self,
        change: SettingsChange,
        owner: Option<&str>,
    ) -> Result<SessionView, Error> {
        let mut settings = Settings::default();
        self.checked(&mut settings, change)?;
        self.agents.of_session(&settings)?;
        let id = SessionId(uuid::Uuid::now_v7().to_string());
        let session = Session::new(id, now_ms(), settings);
        let row =
            self.stored.database().await?.create_session(&session.id.0, owner, encode(&session)?).await?;
        self.session_view(decode(row, Vec::new())?).await
    }

    /// Returns the sessions of this owner, or of all owners.
    async fn sessions_of(&self, owner: Option<&str>, limit: usize) -> Result<Vec<SessionSummary>, Error> {
        let heads = self.stored.database().await?.sessions(owner, limit).await?;
        let summary = |head: SessionHead| SessionSummary {
            session_id: head.id,
            created_ms: head.created_ms,
            changed_ms: head.changed_ms,
            active: head.outline.active,
            agent: head.outline.agent,
            entries: head.lines,
            owner: head.owner,
        };
        Ok(heads.into_iter().map(summary).collect())
    }

    fn checked(&self, settings: &mut Settings, change: SettingsChange) -> Result<(), Error> {
        let SettingsChange { cap, form, instructions, locations, client, window, agent, compat } = change;
        // Sessions of earlier versions may have a larger one, which they keep.
        let is_changed = |cap: &usize| *cap != settings.cap;
        if let Some(cap) = cap.filter(is_changed).filter(|cap| !(1..=MAX_CAP).contains(cap)) {
            let message = format!("`cap`: {cap} is out of range; allowed: 1 to {MAX_CAP}");
            return Err(Error::new(Code::InvalidRequest, message));
        }
        window_in_range(window)?;
        let named = |text: String| if text.is_empty() { None } else { Some(text) };
        if let Some(client) = client.map(|id| named(id).filter(|id| id != catalog::PLAIN)) {
            if let Some(id) = &client {
                catalog::profile_or_plain(id)?;
            }
            settings.client = client;
        }
        if let Some(agent) = agent.map(named) {
            let found = agent.as_deref().map(|id| self.agents.find(id)).transpose()?;
            settings.agent_file = found.map(|view| agents::digest_of_path(&view.location));
            settings.agent = agent;
        }
        settings.cap = cap.unwrap_or(settings.cap);
        settings.form = form.unwrap_or(settings.form);
        settings.instructions = instructions.unwrap_or(settings.instructions);
        settings.locations = locations.unwrap_or(settings.locations);
        settings.window = window.unwrap_or(settings.window);
        settings.compat = compat.unwrap_or(settings.compat);
        Ok(())
    }

    /// Checks that an agent with its own skills has all active ones: skills that it may not use are not carried over
    /// silently.
    fn within_agent(&self, session: &Session) -> Result<(), Error> {
        let Some(agent) = self.agents.of_session(&session.settings)? else { return Ok(()) };
        if !agent.scoped() {
            return Ok(());
        }
        let own = self.agents.own_ids(&agent);
        let others: Vec<&str> = session
            .active
            .iter()
            .map(|skill| skill.name.as_str())
            .filter(|name| !own.iter().any(|id| id == name))
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            Code::InvalidConfiguration,
            format!("agent {} uses only {}: unload {} first", agent.id, own.join(", "), others.join(", ")),
        ))
    }

    async fn session_view(&self, mut session: Session) -> Result<SessionView, Error> {
        tools::count_loaded(&self.levels, &mut session.active);
        let drift = self.composer.drift(&session.active).await?;
        let changed =
            |active: &&Active| drift.get(&active.name).is_some_and(|drift| drift.file == LoadedFile::Changed);
        Ok(SessionView {
            changed_since: session.active.iter().filter(changed).map(|active| active.name.clone()).collect(),
            drift,
            session_id: session.id.0,
            version: session.version,
            created_ms: session.created_ms,
            changed_ms: session.transcript.last().map_or(session.created_ms, |entry| entry.at_ms),
            settings: session.settings,
            active: session.active,
            transcript: session.transcript,
            isolation: self.services.isolating().report().summary(),
            owner: session.owner,
        })
    }
}

#[async_trait]
impl SessionClient for LocalSessions {
    fn with_access(self: Arc<Self>, access: SessionAccess) -> SharedSessionClient {
        Arc::new(AccessibleSessions::new(self, access))
    }

    async fn new_session(&self, change: SettingsChange) -> Result<SessionView, Error> {
        self.create_session(change, None).await
    }

    async fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>, Error> {
        self.sessions_of(None, limit).await
    }

    async fn session(&self, session: &str) -> Result<SessionView, Error> {
        self.session_view(self.stored.find(session).await?).await
    }

    async fn configure_session(&self, session: &str, change: SettingsChange) -> Result<SessionView, Error> {
        let edit = |session: &mut Session| {
            let over = change.cap.filter(|cap| *cap < session.active.len() && *cap > 0);
            if let Some(cap) = over {
                return Err(Error::new(
                    Code::TooManySkills,
                    format!("{} skills are active, more than {cap}; unload some first", session.active.len()),
                ));
            }
            self.checked(&mut session.settings, change.clone())?;
            self.within_agent(session)
        };
        let ((), session) = self.stored.change_session(session, edit).await?;
        self.session_view(session).await
    }

    async fn say(&self, session: &str, speaker: MessageRole, text: &str) -> Result<u64, Error> {
        if text.trim().is_empty() {
            return Err(Error::new(Code::InvalidRequest, "the message is empty"));
        }
        let (number, _) = self
            .stored
            .change_session(session, |session| {
                Ok(session.append(now_ms(), Turn::Message { speaker, text: text.to_owned() }))
            })
            .await?;
        Ok(number)
    }

    async fn call_tool(
        &self,
        session: &str,
        tool: &str,
        arguments: Value,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error> {
        let grants = HostGrants { confirmed: confirmed.map(str::to_owned), ..HostGrants::default() };
        self.tools.use_tool(session, tool, arguments, grants).await
    }

    async fn run_script(
        &self,
        session: &str,
        arguments: Value,
        files: BTreeMap<String, String>,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error> {
        let tool = Tool::RunScript.to_string();
        let grants = HostGrants { confirmed: confirmed.map(str::to_owned), files, ..HostGrants::default() };
        self.tools.use_tool(session, &tool, arguments, grants).await
    }

    async fn compose(&self, session: &str, made: bool) -> Result<ComposedView, Error> {
        let database = self.stored.database().await?;
        let found = self.stored.find(session).await?;
        let last = database.load_last_call(&found.id.0).await?.map(LastCall::read);
        let view = self.composer.composed_view(&found, last).await?;
        if made {
            let entries = composition::entries(&view.composed);
            let call = LastCall::to_stored_json(&found.settings, entries, &view.composed)
                .map_err(|e| broken(&found.id.0, &e))?;
            database.store_last_call(&found.id.0, call).await?;
        }
        Ok(view)
    }

    async fn export_session(&self, session: &str, api: Api, model: &str) -> Result<Payload, Error> {
        let session = self.stored.find(session).await?;
        self.composer.exported(&session, api, model).await
    }

    async fn level_view(&self, skill: &str, session: Option<&str>) -> Result<LevelsView, Error> {
        match session {
            Some(session) => self.composer.levels_of_loaded(&self.stored.find(session).await?, skill).await,
            None => self.composer.levels_of(skill).await,
        }
    }

    async fn budget(&self, client: Option<&str>, window: Option<u32>) -> Result<BudgetView, Error> {
        window_in_range(window)?;
        crate::in_place(|| self.lists.budget_view(client, window))
    }

    async fn agents(&self) -> Result<Vec<AgentView>, Error> {
        Ok(self.agents.views())
    }
}
