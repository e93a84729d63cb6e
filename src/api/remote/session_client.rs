//! Operations on sessions of a remote service.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::Remote;
use super::call::{Arguments, arguments, to_arguments};
use crate::operations::arguments::{
    BudgetArguments, ComposeArguments, ExportArguments, LimitArguments, MessageArguments, SessionArguments,
    SessionChangeArguments, ToolCallArguments,
};
use crate::operations::{AgentList, AppendReply, SessionList, ToolReply};
use crate::{
    AgentView, BudgetView, Code, ComposedView, Error, LARGEST_PAGE, LevelsView, SessionAccess, SessionClient,
    SessionSummary, SessionView, SettingsChange, SharedSessionClient, ToolAnswer,
};
use skills_session::{Api, MessageRole, Payload};

#[async_trait]
impl SessionClient for Remote {
    fn with_access(self: Arc<Self>, _access: SessionAccess) -> SharedSessionClient {
        self
    }

    async fn new_session(&self, settings: SettingsChange) -> Result<SessionView, Error> {
        self.inner.execute("session.new", to_arguments(&settings)?).await
    }

    async fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>, Error> {
        let fields = to_arguments(&LimitArguments { limit: limit.clamp(1, LARGEST_PAGE) })?;
        Ok(self.inner.ask::<SessionList>("session.list", fields).await?.sessions)
    }

    async fn session(&self, session: &str) -> Result<SessionView, Error> {
        self.inner
            .ask("session.show", to_arguments(&SessionArguments { session_id: session.to_owned() })?)
            .await
    }

    async fn configure_session(&self, session: &str, change: SettingsChange) -> Result<SessionView, Error> {
        let fields =
            to_arguments(&SessionChangeArguments { session_id: session.to_owned(), settings: change })?;
        self.inner.execute("session.configure", fields).await
    }

    async fn say(&self, session: &str, speaker: MessageRole, text: &str) -> Result<u64, Error> {
        let fields = to_arguments(&MessageArguments {
            session_id: session.to_owned(),
            speaker,
            text: text.to_owned(),
        })?;
        Ok(self.inner.execute::<AppendReply>("session.say", fields).await?.entry)
    }

    async fn call_tool(
        &self,
        session: &str,
        tool: &str,
        tool_arguments: Value,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error> {
        let fields = to_arguments(&ToolCallArguments {
            session_id: session.to_owned(),
            tool: tool.to_owned(),
            arguments: tool_arguments,
            inputs_digest: confirmed.map(str::to_owned),
            approved: false,
        })?;
        ToolReply::back(self.inner.execute("session.tool", fields).await)
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
        let fields = to_arguments(&ComposeArguments { session_id: session.to_owned(), made })?;
        if made {
            return self.inner.execute("session.compose", fields).await;
        }
        self.inner.ask("session.compose", fields).await
    }

    async fn export_session(&self, session: &str, api: Api, model: &str) -> Result<Payload, Error> {
        let fields =
            to_arguments(&ExportArguments { session_id: session.to_owned(), api, model: model.to_owned() })?;
        self.inner.ask("session.export", fields).await
    }

    async fn level_view(&self, skill: &str, session: Option<&str>) -> Result<LevelsView, Error> {
        let fields = json!({ "skill_id": skill, "session_id": session });
        self.inner.ask("skill.levels", arguments(fields)).await
    }

    async fn budget(&self, client: Option<&str>, window: Option<u32>) -> Result<BudgetView, Error> {
        self.inner
            .ask(
                "skill.budget",
                to_arguments(&BudgetArguments { client: client.map(str::to_owned), window })?,
            )
            .await
    }

    async fn agents(&self) -> Result<Vec<AgentView>, Error> {
        Ok(self.inner.ask::<AgentList>("agent.list", Arguments::new()).await?.agents)
    }
}
