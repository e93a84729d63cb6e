//! The operations on sessions as one trait, implemented locally over the core and remotely over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{
    AgentView, BudgetView, Code, ComposedView, Error, LevelsView, SessionSummary, SessionView,
    SettingsChange, ToolAnswer,
};
use skills_session::{Api, MessageRole, Payload};

/// Which sessions a caller may use. A session belongs to the principal who created it; for others it does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionAccess {
    /// The owner of new sessions; `None` for the local account and without authentication.
    owner: Option<String>,
    /// The principal in whose name actions are recorded; `None` without authentication.
    principal: Option<String>,
    /// Whether sessions of other owners, and those without an owner, are permitted too.
    all: bool,
}

impl SessionAccess {
    /// Creates unrestricted access, for the local account and for callers of a service without authentication.
    pub fn unrestricted() -> Self {
        Self { owner: None, principal: None, all: true }
    }

    /// Creates the access of a principal: to their own sessions, or to all.
    pub fn of(principal: &str, all: bool) -> Self {
        Self { owner: Some(principal.to_owned()), principal: Some(principal.to_owned()), all }
    }

    /// Records actions in the name of this principal.
    #[must_use]
    pub fn acting_as(self, principal: &str) -> Self {
        Self { principal: Some(principal.to_owned()), ..self }
    }

    /// Returns the principal in whose name actions are recorded; `None` for the account of this process.
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// Returns the owner of sessions created with this access.
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// Returns whether a session of this owner can be used.
    pub fn admits(&self, owner: Option<&str>) -> bool {
        self.all || (owner.is_some() && owner == self.owner())
    }

    /// Returns the only owner whose sessions can be used; `None` if all can.
    pub fn only(&self) -> Option<&str> {
        self.owner().filter(|_| !self.all)
    }
}

impl Default for SessionAccess {
    fn default() -> Self {
        Self::unrestricted()
    }
}

/// A client for sessions that several tasks share.
pub type SharedSessionClient = Arc<dyn SessionClient>;

/// Operations on sessions for all adapters. A session is named by its id, or by a unique prefix or suffix of it.
#[async_trait]
pub trait SessionClient: Send + Sync + 'static {
    /// Returns a client with this access: sessions that the caller may not use are `not_found`. A remote client returns
    /// itself, because the service identifies the caller by the key.
    fn with_access(self: Arc<Self>, access: SessionAccess) -> SharedSessionClient;

    /// Creates an empty session.
    ///
    /// # Errors
    /// Returns `not_found` for an unknown client or agent.
    async fn new_session(&self, settings: SettingsChange) -> Result<SessionView, Error>;

    /// Lists sessions, most recently changed first.
    async fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>, Error>;

    /// Returns the details of a session.
    async fn session(&self, session: &str) -> Result<SessionView, Error>;

    async fn configure_session(&self, session: &str, change: SettingsChange) -> Result<SessionView, Error>;

    /// Appends a message.
    async fn say(&self, session: &str, speaker: MessageRole, text: &str) -> Result<u64, Error>;

    /// Calls a runtime tool (`skills.list|load|unload|read|run_script`, or an older name if the session offers those).
    /// The call and its result are appended to the transcript, even failed ones.
    ///
    /// `confirmed` is the `inputs_digest` that a person reviewed and confirmed; a script runs only with the digest of
    /// exactly what runs. Without one the result is `confirmation_required` with what would run.
    ///
    /// # Errors
    /// Returns `not_found` for an unknown session or tool; `session_conflict` if it changes faster than it can be read.
    async fn call_tool(
        &self,
        session: &str,
        tool: &str,
        arguments: Value,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error>;

    /// Calls `skills.run_script` with local files, by their names in the script's work directory. Files are passed by
    /// the host, never by the model: they are not arguments of the tool.
    ///
    /// # Errors
    /// Same as [`Self::call_tool`]; `invalid_request` for a file that does not exist; `not_implemented` if the core
    /// cannot access the caller's files.
    async fn run_script(
        &self,
        session: &str,
        arguments: Value,
        files: BTreeMap<String, String>,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error> {
        if !files.is_empty() {
            return Err(Error::new(
                Code::NotImplemented,
                "files cannot be passed to a session's script here: run it on the machine of the files",
            ));
        }
        self.call_tool(session, "skills.run_script", arguments, confirmed).await
    }

    /// Returns the instructions of the next call. `made` stores them as the last call, for comparison with later ones.
    async fn compose(&self, session: &str, made: bool) -> Result<ComposedView, Error>;

    /// Returns the complete request of the next call.
    async fn export_session(&self, session: &str, api: Api, model: &str) -> Result<Payload, Error>;

    /// Returns a skill at each disclosure level; if a session is given, as it is loaded there, even if its file changed
    /// since.
    async fn level_view(&self, skill: &str, session: Option<&str>) -> Result<LevelsView, Error>;

    /// Returns the catalog under a client's budget; without a client, unchanged.
    async fn budget(&self, client: Option<&str>, window: Option<u32>) -> Result<BudgetView, Error>;

    /// Returns the agents found in `agents/` of the roots, the configuration and the project.
    async fn agents(&self) -> Result<Vec<AgentView>, Error>;
}
