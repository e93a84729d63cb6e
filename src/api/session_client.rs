//! The operations on sessions, as one trait: a local form over the core, a remote one over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{
    AgentView, BudgetView, Code, ComposedView, Error, LevelsView, SessionSummary, SessionView,
    SettingsChange, ToolAnswer,
};
use skills_session::{Api, Payload, Speaker};

/// Whose sessions a caller may use. A session belongs to the principal who made it; to others it does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionAccess {
    /// The owner of new sessions; `None` for the local account and without authentication.
    owner: Option<String>,
    /// Who acts; `None` without authentication.
    principal: Option<String>,
    /// Whether the sessions of others, and those without an owner, can be used too.
    all: bool,
}

impl SessionAccess {
    /// Everything: the local account, and callers of a service without authentication.
    #[must_use]
    pub fn unrestricted() -> Self {
        Self { owner: None, principal: None, all: true }
    }

    /// A principal: their own sessions, or all of them.
    #[must_use]
    pub fn of(principal: &str, all: bool) -> Self {
        Self { owner: Some(principal.to_owned()), principal: Some(principal.to_owned()), all }
    }

    /// The same, recorded in the name of this principal.
    #[must_use]
    pub fn acting_as(self, principal: &str) -> Self {
        Self { principal: Some(principal.to_owned()), ..self }
    }

    /// In whose name actions are recorded; none for the account of this process.
    #[must_use]
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// Who owns a session that is made with this access.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// Whether a session of this owner can be used.
    #[must_use]
    pub fn admits(&self, owner: Option<&str>) -> bool {
        self.all || (owner.is_some() && owner == self.owner())
    }

    /// The one owner whose sessions can be used; none where all can.
    #[must_use]
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

/// What every adapter may ask about sessions. A session is named by its id, or by a beginning or an end of it that
/// no other session has.
#[async_trait]
pub trait SessionClient: Send + Sync + 'static {
    /// The same sessions as a caller with this access sees them: what they may not use is `not_found`. A remote form
    /// answers itself, because the service knows by the key who calls.
    fn with_access(self: Arc<Self>, access: SessionAccess) -> SharedSessionClient;

    /// A new, empty session.
    ///
    /// # Errors
    /// `not_found` for an unknown client or agent.
    async fn new_session(&self, settings: SettingsChange) -> Result<SessionView, Error>;

    /// Lists sessions, most recently changed first.
    async fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>, Error>;

    /// One session whole.
    async fn session(&self, session: &str) -> Result<SessionView, Error>;

    /// Changes the settings of a session.
    async fn configure_session(&self, session: &str, change: SettingsChange) -> Result<SessionView, Error>;

    /// Appends a message.
    async fn say(&self, session: &str, speaker: Speaker, text: &str) -> Result<u64, Error>;

    /// Calls a runtime tool (`skills.list|load|unload|read|run_script`, or an older name where the session offers
    /// them). The call and its result are appended to the transcript, failed ones too.
    ///
    /// `confirmed` is the `inputs_digest` that a person reviewed and confirmed; a script runs only with the digest of
    /// exactly what runs. Without one the result is `confirmation_required` with what would run.
    ///
    /// # Errors
    /// `not_found` for an unknown session or tool; `session_conflict` when it changes faster than it can be read.
    async fn call_tool(
        &self,
        session: &str,
        tool: &str,
        arguments: Value,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error>;

    /// Calls `skills.run_script` with files of the gateway's machine, by their names in the script's work
    /// directory. Handing files over is the host's doing, never the model's: they are not arguments of the
    /// tool.
    ///
    /// # Errors
    /// As [`Self::call_tool`]; `invalid_request` for a file that is not there; `not_implemented` where the gateway
    /// cannot reach the caller's files.
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

    /// The instructions of the next call. `made` keeps them as the last call, to compare later ones with.
    async fn compose(&self, session: &str, made: bool) -> Result<ComposedView, Error>;

    /// The whole request of the next call.
    async fn export_session(&self, session: &str, api: Api, model: &str) -> Result<Payload, Error>;

    /// A skill at each level of disclosure; if a session is named, as it is loaded there, even if its
    /// file changed since.
    async fn level_view(&self, skill: &str, session: Option<&str>) -> Result<LevelsView, Error>;

    /// The catalog under a client's budget; without a client, as it is.
    async fn budget(&self, client: Option<&str>, window: Option<u32>) -> Result<BudgetView, Error>;

    /// The agents found in `agents/` of the roots, the configuration and the project.
    async fn agents(&self) -> Result<Vec<AgentView>, Error>;
}
