//! Operations on sessions of a remote service.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::Remote;
use super::call::{Arguments, arguments, written};
use crate::operations::{AgentList, Called, Said, SessionList};
use crate::{
    AgentView, BudgetView, Code, ComposedView, Error, LARGEST_PAGE, LevelsView, SessionAccess, SessionClient,
    SessionSummary, SessionView, SettingsChange, SharedSessionClient, ToolAnswer,
};
use skills_session::{Api, Payload, Speaker};

#[async_trait]
impl SessionClient for Remote {
    fn with_access(self: Arc<Self>, _access: SessionAccess) -> SharedSessionClient {
        self
    }

    async fn new_session(&self, settings: SettingsChange) -> Result<SessionView, Error> {
        self.inner.execute("session.new", written(&settings)?).await
    }

    async fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>, Error> {
        let fields = arguments(json!({ "limit": limit.clamp(1, LARGEST_PAGE) }));
        Ok(self.inner.ask::<SessionList>("session.list", fields).await?.sessions)
    }

    async fn session(&self, session: &str) -> Result<SessionView, Error> {
        self.inner.ask("session.show", arguments(json!({ "session_id": session }))).await
    }

    async fn configure_session(&self, session: &str, change: SettingsChange) -> Result<SessionView, Error> {
        let fields = arguments(json!({ "session_id": session, "settings": change }));
        self.inner.execute("session.configure", fields).await
    }

    async fn say(&self, session: &str, speaker: Speaker, text: &str) -> Result<u64, Error> {
        let fields = arguments(json!({ "session_id": session, "speaker": speaker, "text": text }));
        Ok(self.inner.execute::<Said>("session.say", fields).await?.entry)
    }

    async fn call_tool(
        &self,
        session: &str,
        tool: &str,
        tool_arguments: Value,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error> {
        let mut fields =
            arguments(json!({ "session_id": session, "tool": tool, "arguments": tool_arguments }));
        // Omitted without a confirmation, because services of earlier versions reject unknown arguments.
        if let Some(digest) = confirmed {
            fields.insert("inputs_digest".to_owned(), json!(digest));
        }
        Called::back(self.inner.execute("session.tool", fields).await)
    }

    async fn run_script(
        &self,
        session: &str,
        tool_arguments: Value,
        files: BTreeMap<String, String>,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error> {
        if let Some(name) = files.keys().next() {
            let message = format!(
                "{name} is a local file, which scripts of {} cannot read: remove it, or run the script \
                    there",
                self.address()
            );
            return Err(Error::new(Code::NotImplemented, message));
        }
        self.call_tool(session, "skills.run_script", tool_arguments, confirmed).await
    }

    async fn compose(&self, session: &str, made: bool) -> Result<ComposedView, Error> {
        let fields = arguments(json!({ "session_id": session, "made": made }));
        if made {
            return self.inner.execute("session.compose", fields).await;
        }
        self.inner.ask("session.compose", fields).await
    }

    async fn export_session(&self, session: &str, api: Api, model: &str) -> Result<Payload, Error> {
        let fields = arguments(json!({ "session_id": session, "api": api, "model": model }));
        self.inner.ask("session.export", fields).await
    }

    async fn level_view(&self, skill: &str, session: Option<&str>) -> Result<LevelsView, Error> {
        let fields = json!({ "skill_id": skill, "session_id": session });
        self.inner.ask("skill.levels", arguments(fields)).await
    }

    async fn budget(&self, client: Option<&str>, window: Option<u32>) -> Result<BudgetView, Error> {
        self.inner.ask("skill.budget", arguments(json!({ "client": client, "window": window }))).await
    }

    async fn agents(&self) -> Result<Vec<AgentView>, Error> {
        Ok(self.inner.ask::<AgentList>("agent.list", Arguments::new()).await?.agents)
    }
}
