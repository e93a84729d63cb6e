//! Operations on sessions: the composed context, and the runtime tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answers::{AgentList, AppendReply, SessionList, ToolReply};
use super::arguments::{
    BudgetArguments, ComposeArguments, ExportArguments, LimitArguments, MessageArguments, NoArguments,
    SessionArguments, SessionChangeArguments, ToolCallArguments,
};
use super::{CallContext, Hints, Operation, Route, Scope};
use crate::{AgentView, Error, SettingsChange};

/// A skill, as it is now or as it is loaded in a session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LevelsArguments {
    /// Id, unambiguous name, or location.
    skill_id: String,
    /// The session in which it is loaded, to return what was loaded there.
    #[serde(default)]
    session_id: Option<String>,
}

pub(super) fn operations() -> Vec<Operation> {
    let mut all = read_operations();
    all.extend(changing());
    all
}

/// A script that has to be confirmed, with the request that confirms it.
fn confirmable(mut error: Error, session: &str, tool: &str, arguments: &Value) -> Error {
    if let Some(reason) = error.reason.as_mut().filter(|reason| reason["script"].is_object()) {
        let digest = reason["script"]["inputs_digest"].clone();
        reason["send"] = json!({
            "method": "POST",
            "path": format!("/v1/sessions/{session}/tools/{tool}"),
            "body": { "arguments": arguments, "inputs_digest": digest },
        });
    }
    error
}

fn read_operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "session.list",
            Route::get("/v1/sessions"),
            Scope::Read,
            "Lists sessions, most recently changed first.",
            |context: CallContext, ask: LimitArguments| async move {
                Ok(SessionList { sessions: context.sessions().sessions(ask.limit.min(1000)).await? })
            },
        )
        .large_read(),
        Operation::new(
            "session.show",
            Route::get("/v1/sessions/{session_id}"),
            Scope::Read,
            "Returns a session: settings, active skills, transcript.",
            |context: CallContext, one: SessionArguments| async move {
                context.sessions().session(&one.session_id).await
            },
        )
        .large_read(),
        Operation::new(
            "skill.levels",
            Route::get("/v1/skills/{skill_id}/levels"),
            Scope::Read,
            "Returns a skill at each disclosure level, with bytes and tokens; with a session, as loaded \
                there.",
            |context: CallContext, one: LevelsArguments| async move {
                context.sessions().level_view(&one.skill_id, one.session_id.as_deref()).await
            },
        ),
        Operation::new(
            "skill.budget",
            Route::get("/v1/skills/budget"),
            Scope::Read,
            "Returns the catalog under a client's budget: what is truncated and what is omitted.",
            |context: CallContext, ask: BudgetArguments| async move {
                context.sessions().budget(ask.client.as_deref(), ask.window).await
            },
        )
        .client_view(),
        Operation::new(
            "agent.list",
            Route::get("/v1/agents"),
            Scope::Read,
            "Lists agents and the skills they use.",
            |context: CallContext, _: NoArguments| async move {
                let mut agents = context.sessions().agents().await?;
                if !context.caller.may(Scope::Admin) {
                    agents.iter_mut().for_each(AgentView::redact);
                }
                Ok(AgentList { agents })
            },
        ),
        Operation::new(
            "session.export",
            Route::post("/v1/sessions/{session_id}/export"),
            Scope::Read,
            "Returns the complete request of the next call in the format of a model API.",
            |context: CallContext, ask: ExportArguments| async move {
                context.sessions().export_session(&ask.session_id, ask.api, &ask.model).await
            },
        )
        .large_read()
        .read_only(),
    ]
}

fn changing() -> Vec<Operation> {
    vec![
        Operation::new(
            "session.new",
            Route::post("/v1/sessions"),
            Scope::Run,
            "Creates an empty session.",
            |context: CallContext, settings: SettingsChange| async move {
                context.sessions().new_session(settings).await
            },
        )
        .status(201),
        Operation::new(
            "session.configure",
            Route::patch("/v1/sessions/{session_id}"),
            Scope::Run,
            "Changes the settings of a session.",
            |context: CallContext, ask: SessionChangeArguments| async move {
                context.sessions().configure_session(&ask.session_id, ask.settings).await
            },
        )
        .large_read()
        .hints(Hints { idempotent: true, ..Hints::default() }),
        Operation::new(
            "session.say",
            Route::post("/v1/sessions/{session_id}/messages"),
            Scope::Run,
            "Appends a user or assistant message.",
            |context: CallContext, ask: MessageArguments| async move {
                let entry = context.sessions().say(&ask.session_id, ask.speaker, &ask.text).await?;
                Ok(AppendReply { entry })
            },
        )
        .large_read(),
        Operation::new(
            "session.tool",
            Route::post("/v1/sessions/{session_id}/tools/{tool}"),
            Scope::Run,
            "Calls a runtime tool; the call and its result are appended to the transcript. A script needs the \
                `inputs_digest` of what was reviewed: without it, the response is 428 with what would run.",
            |context: CallContext, ask: ToolCallArguments| async move {
                let ToolCallArguments { session_id, tool, arguments, inputs_digest, approved } = ask;
                if (approved || inputs_digest.is_some()) && !context.caller.may(Scope::Decide) {
                    return Err(Error::needs_scope(
                        Scope::Decide,
                        "confirming a script needs the scope `decide`",
                    ));
                }
                let confirmed = inputs_digest.as_deref();
                let answer =
                    context.sessions().call_tool(&session_id, &tool, arguments.clone(), confirmed).await?;
                ToolReply::of(answer).map_err(|error| confirmable(error, &session_id, &tool, &arguments))
            },
        ),
        Operation::new(
            "session.compose",
            Route::post("/v1/sessions/{session_id}/compose"),
            Scope::Run,
            "Returns the instructions of the next call, with the origin of each part.",
            |context: CallContext, ask: ComposeArguments| async move {
                context.sessions().compose(&ask.session_id, ask.made).await
            },
        )
        .large_read(),
    ]
}
