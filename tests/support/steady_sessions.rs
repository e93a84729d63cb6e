//! Sessions of the real core that say the same whenever and wherever they are made: id, times and isolation are given.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use skills_api::{
    AgentView, BudgetView, ComposedView, Error, LevelsView, SessionAccess, SessionClient, SessionSummary,
    SessionView, SettingsChange, SharedSessionClient, ToolAnswer,
};
use skills_session::{Api, MessageRole, Payload};

/// Replaces every id.
pub const ID: &str = "0198a1b1-1000-7000-8000-00000000cafe";
/// Replaces every time, milliseconds since 1970-01-01 UTC.
pub const NOON_MS: i64 = 1_760_702_400_000;

pub struct SteadySessions {
    core: SharedSessionClient,
    /// The one session there is, by its real id.
    real: String,
}

impl SteadySessions {
    /// Over a session whose call does not name the skills' location.
    pub async fn over(core: SharedSessionClient) -> Self {
        let hidden = SettingsChange { locations: Some(false), ..SettingsChange::default() };
        let real = core.new_session(hidden).await.unwrap().session_id;
        Self { core, real }
    }

    fn steady(view: SessionView) -> SessionView {
        let isolation = "full: Landlock ABI 7, seccomp, resource limits, unprivileged user".to_owned();
        SessionView { session_id: ID.to_owned(), created_ms: NOON_MS, changed_ms: NOON_MS, isolation, ..view }
    }
}

#[async_trait]
impl SessionClient for SteadySessions {
    fn with_access(self: Arc<Self>, _access: SessionAccess) -> SharedSessionClient {
        self
    }

    async fn new_session(&self, _settings: SettingsChange) -> Result<SessionView, Error> {
        self.session(ID).await
    }

    async fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>, Error> {
        let steady = |summary| SessionSummary {
            session_id: ID.to_owned(),
            created_ms: NOON_MS,
            changed_ms: NOON_MS,
            ..summary
        };
        Ok(self.core.sessions(limit).await?.into_iter().map(steady).collect())
    }

    async fn session(&self, _session: &str) -> Result<SessionView, Error> {
        self.core.session(&self.real).await.map(Self::steady)
    }

    async fn configure_session(&self, _session: &str, change: SettingsChange) -> Result<SessionView, Error> {
        self.core.configure_session(&self.real, change).await.map(Self::steady)
    }

    async fn say(&self, _session: &str, speaker: MessageRole, text: &str) -> Result<u64, Error> {
        self.core.say(&self.real, speaker, text).await
    }

    async fn call_tool(
        &self,
        _session: &str,
        tool: &str,
        arguments: Value,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error> {
        self.core.call_tool(&self.real, tool, arguments, confirmed).await
    }

    async fn compose(&self, _session: &str, made: bool) -> Result<ComposedView, Error> {
        self.core.compose(&self.real, made).await
    }

    async fn export_session(&self, _session: &str, api: Api, model: &str) -> Result<Payload, Error> {
        self.core.export_session(&self.real, api, model).await
    }

    async fn level_view(&self, skill: &str, session: Option<&str>) -> Result<LevelsView, Error> {
        self.core.level_view(skill, session.map(|_| self.real.as_str())).await
    }

    async fn budget(&self, client: Option<&str>, window: Option<u32>) -> Result<BudgetView, Error> {
        self.core.budget(client, window).await
    }

    async fn agents(&self) -> Result<Vec<AgentView>, Error> {
        self.core.agents().await
    }
}
