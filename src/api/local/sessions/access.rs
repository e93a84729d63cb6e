//! The sessions of one principal: the others do not exist for them. Every operation on a session passes here first.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::LocalSessions;
use super::session_store::find_id;
use super::tools::HostGrants;
use crate::{
    AgentView, BudgetView, Code, ComposedView, Error, LevelsView, SessionAccess, SessionClient,
    SessionSummary, SessionView, SettingsChange, SharedSessionClient, ToolAnswer,
};
use skills_session::{Api, MessageRole, Payload, Tool};

/// Maximum number of sessions of a principal.
const MAX_SESSIONS: u64 = 500;
/// Maximum size of all of them in bytes.
const MAX_SESSIONS_BYTES: u64 = 256 << 20;

/// Sessions visible with this access.
pub(in crate::local) struct AccessibleSessions {
    sessions: Arc<LocalSessions>,
    access: SessionAccess,
}

impl AccessibleSessions {
    pub fn new(sessions: Arc<LocalSessions>, access: SessionAccess) -> Self {
        Self { sessions, access }
    }

    /// Returns the grants of a call with this access, recorded for its principal.
    fn grants(&self, confirmed: Option<&str>) -> HostGrants {
        let by = self.access.principal().map(str::to_owned);
        HostGrants { confirmed: confirmed.map(str::to_owned), by, files: BTreeMap::new() }
    }

    /// Checks that a principal may store this much more: their sessions share the disk with the runs of all others.
    ///
    /// # Errors
    /// Returns `rate_limited` with the limit.
    async fn ensure_space(&self, sessions: u64, bytes: usize) -> Result<(), Error> {
        let Some(owner) = self.access.owner() else { return Ok(()) };
        let used = self.sessions.stored.database().await?.session_usage(owner).await?;
        let full = |limit: String| {
            let message = format!(
                "the sessions of {owner} have reached the limit of {limit}; `retention.sessions` deletes old ones"
            );
            Err(Error::new(Code::RateLimited, message))
        };
        if used.sessions + sessions > MAX_SESSIONS {
            return full(format!("{MAX_SESSIONS} sessions"));
        }
        if used.bytes.saturating_add(bytes as u64) > MAX_SESSIONS_BYTES {
            return full(format!("{} MiB", MAX_SESSIONS_BYTES >> 20));
        }
        Ok(())
    }

    /// Returns the complete id of a permitted session. Its owner never changes, so this also holds for the next call.
    ///
    /// # Errors
    /// Returns `not_found` for a session of another owner, as for one that never existed.
    async fn permitted(&self, requested: &str) -> Result<String, Error> {
        let database = self.sessions.stored.database().await?;
        find_id(&*database, &self.access, requested).await
    }
}

#[async_trait]
impl SessionClient for AccessibleSessions {
    fn with_access(self: Arc<Self>, access: SessionAccess) -> SharedSessionClient {
        Arc::new(Self::new(Arc::clone(&self.sessions), access))
    }

    async fn new_session(&self, settings: SettingsChange) -> Result<SessionView, Error> {
        self.ensure_space(1, 0).await?;
        self.sessions.create_session(settings, self.access.owner()).await
    }

    async fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>, Error> {
        self.sessions.sessions_of(self.access.only(), limit).await
    }

    async fn session(&self, session: &str) -> Result<SessionView, Error> {
        self.sessions.session(&self.permitted(session).await?).await
    }

    async fn configure_session(&self, session: &str, change: SettingsChange) -> Result<SessionView, Error> {
        self.sessions.configure_session(&self.permitted(session).await?, change).await
    }

    async fn say(&self, session: &str, speaker: MessageRole, text: &str) -> Result<u64, Error> {
        let session = self.permitted(session).await?;
        self.ensure_space(0, text.len()).await?;
        self.sessions.say(&session, speaker, text).await
    }

    async fn call_tool(
        &self,
        session: &str,
        tool: &str,
        arguments: Value,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error> {
        let session = self.permitted(session).await?;
        self.ensure_space(0, 0).await?;
        self.sessions.tools.use_tool(&session, tool, arguments, self.grants(confirmed)).await
    }

    async fn run_script(
        &self,
        session: &str,
        arguments: Value,
        files: BTreeMap<String, String>,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error> {
        let (tool, grants) = (Tool::RunScript.to_string(), HostGrants { files, ..self.grants(confirmed) });
        self.sessions.tools.use_tool(&self.permitted(session).await?, &tool, arguments, grants).await
    }

    async fn compose(&self, session: &str, made: bool) -> Result<ComposedView, Error> {
        self.sessions.compose(&self.permitted(session).await?, made).await
    }

    async fn export_session(&self, session: &str, api: Api, model: &str) -> Result<Payload, Error> {
        self.sessions.export_session(&self.permitted(session).await?, api, model).await
    }

    async fn level_view(&self, skill: &str, session: Option<&str>) -> Result<LevelsView, Error> {
        let session = match session {
            Some(session) => Some(self.permitted(session).await?),
            None => None,
        };
        self.sessions.level_view(skill, session.as_deref()).await
    }

    async fn budget(&self, client: Option<&str>, window: Option<u32>) -> Result<BudgetView, Error> {
        self.sessions.budget(client, window).await
    }

    async fn agents(&self) -> Result<Vec<AgentView>, Error> {
        self.sessions.agents().await
    }
}
