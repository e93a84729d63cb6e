//! The runtime tools of a session: list, load, unload, read, run a script.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequestParams,
    ElicitationAction, ElicitationSchema, InputResponses,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use super::answer::{SESSION, failed, of_session, text_bytes, text_result};
use super::caller::limit_large_result;
use super::elicitation::{self, ElicitationMode, Ticket};
use super::server::Server;
use skills_api::operations::{Caller, ToolReply, operation};
use skills_api::{Code, CoreParts, Error, SessionView, SettingsChange};
use skills_config::quoted;
use skills_session::{Compat, Instructions, Tool};
use skills_skill::safe_text;

/// A runtime tool by its current name, or by an older name with the same meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    pub tool: Tool,
    /// The older name.
    pub compat: Option<Compat>,
}

impl Named {
    /// Returns the tool of this name; older names only if they are offered.
    pub fn find(name: &str, compat: bool) -> Option<Self> {
        if let Ok(tool) = name.parse() {
            return Some(Self { tool, compat: None });
        }
        let older: Compat = name.parse().ok().filter(|_| compat)?;
        let tool = match older {
            Compat::ListSkills => Tool::List,
            Compat::ReadSkill => Tool::Load,
            Compat::ReadSkillResource => Tool::Read,
        };
        Some(Self { tool, compat: Some(older) })
    }

    fn name(self) -> String {
        self.compat.map_or_else(|| self.tool.to_string(), |older| older.to_string())
    }
}

/// The digest that a client's user confirmed, in the request's `_meta`, and where the preview of a script has it.
const DIGEST: &str = "inputs_digest";

/// Calls a runtime tool.
pub async fn call(
    server: &Server,
    named: Named,
    request: CallToolRequestParams,
    caller: &Caller,
    cx: &RequestContext<RoleServer>,
) -> CallToolResponse {
    let tool = named.tool;
    server.ready(if tool == Tool::List { CoreParts::Index } else { CoreParts::Catalog }).await;
    // The host's, not an argument: a model does not confirm what it asks for.
    let confirmed = request.meta.as_ref().and_then(|meta| meta.get(DIGEST)).or_else(|| cx.meta.get(DIGEST));
    let confirmed = confirmed.and_then(Value::as_str).map(str::to_owned);
    let mut arguments = request.arguments.unwrap_or_default();
    let requested = match arguments.remove(SESSION) {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id),
        Some(other) => {
            let error = Error::new(
                Code::InvalidRequest,
                format!(
                    "`{SESSION}` is {other}; expected a \
                session id"
                ),
            );
            return failed(&error, &caller.trace_id).into();
        }
    };
    let ticket = match request.request_state.as_deref().map(Ticket::read).transpose() {
        Ok(ticket) => ticket,
        Err(error) => return failed(&error, &caller.trace_id).into(),
    };
    let requested = requested.or_else(|| ticket.as_ref().map(|ticket| ticket.about.clone()));
    if requested.is_none()
        && !keeps(server, cx)
        && matches!(tool, Tool::Read | Tool::Unload | Tool::RunScript)
    {
        let message = format!(
            "this connection has no session: pass `{SESSION}` as returned by skills.load, or load a \
                skill first"
        );
        return failed(&Error::new(Code::NotLoaded, message), &caller.trace_id).into();
    }
    let session = match session(server, caller, cx, requested, named).await {
        Ok(session) => session,
        Err(error) => return failed(&error, &caller.trace_id).into(),
    };
    let made = ToolInvocation { server, named, arguments, session: &session, caller, cx, confirmed };
    match made.invoke(ticket, request.input_responses).await {
        Ok(CallToolResponse::Complete(result)) => {
            // If requests are stateless, the model itself has to pass the session id again.
            let lasts = server.inner().settings.transport.lasts(cx);
            let result = if lasts { result } else { naming_session(result, &session) };
            of_session(result, &session).into()
        }
        Ok(response) => response,
        Err(error) => of_session(failed(&error, &caller.trace_id), &session).into(),
    }
}

/// Returns whether calls without a session id continue the previous session.
fn keeps(server: &Server, cx: &RequestContext<RoleServer>) -> bool {
    let settings = &server.inner().settings;
    settings.session.is_some() || settings.transport.lasts(cx)
}

fn naming_session(mut result: CallToolResult, session: &str) -> CallToolResult {
    let hint = format!("{SESSION}: {session} (pass it with the next call to use the loaded skills)");
    result.content.push(ContentBlock::text(hint));
    result
}

/// Returns the session of a call: the one it names, the one the server was started with, or the connection's own,
/// created at first use. The latter returns bodies in results, because the host owns the model's instructions.
async fn session(
    server: &Server,
    caller: &Caller,
    cx: &RequestContext<RoleServer>,
    requested: Option<String>,
    named: Named,
) -> Result<String, Error> {
    let inner = server.inner();
    let change = SettingsChange {
        instructions: Some(Instructions::ToolResult),
        compat: inner.settings.compat.then_some(true),
        ..SettingsChange::default()
    };
    if let Some(session) = requested.or_else(|| inner.settings.session.clone()) {
        if named.tool != Tool::Load && named.compat.is_none() {
            return Ok(session);
        }
        let view = call_operation(server, caller, "session.show", json!({ SESSION: session })).await?;
        let view: SessionView = read(view)?;
        let settings = &view.settings;
        if settings.instructions != Instructions::ToolResult || (named.compat.is_some() && !settings.compat) {
            let arguments = json!({ SESSION: view.session_id, "settings": change });
            call_operation(server, caller, "session.configure", arguments).await?;
        }
        return Ok(view.session_id);
    }
    let new = async || {
        let view = call_operation(server, caller, "session.new", json!(change)).await?;
        read::<SessionView>(view).map(|view| view.session_id)
    };
    if !inner.settings.transport.lasts(cx) {
        return new().await;
    }
    // Locked while it is created: two concurrent first calls share one session.
    let mut own = inner.session.lock().await;
    if let Some(id) = own.as_ref() {
        return Ok(id.clone());
    }
    let id = new().await?;
    *own = Some(id.clone());
    Ok(id)
}

/// Calls an operation of the table, with its scope checks and errors.
async fn call_operation(
    server: &Server,
    caller: &Caller,
    name: &str,
    arguments: Value,
) -> Result<Value, Error> {
    let found = operation(name)
        .ok_or_else(|| Error::new(Code::InternalError, format!("unknown operation `{name}`")))?;
    found.call(&server.inner().service, caller, arguments).await
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value)
        .map_err(|error| Error::new(Code::InternalError, format!("cannot read a response: {error}")))
}

/// Returns the digest to confirm, if the error requires a confirmation.
fn digest_of(error: &Error) -> Option<String> {
    error.reason.as_ref()?.get("script")?.get(DIGEST)?.as_str().map(str::to_owned)
}

/// Describes a script that requires confirmation. Each value is on one line, so that none can be taken for other lines;
/// only the arguments, as JSON, have several. `command` shows what is truncated.
fn confirmation(
    path: &str,
    error: &Error,
    arguments: &Map<String, Value>,
    session: &str,
    command: &str,
) -> String {
    let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
    format!(
        "Run the script {}?\n{}\n\ncall: {}\nsession: {}\ndigest: {}",
        safe_text::exact(&quoted(path)),
        elicitation::shown(&safe_text::exact(&error.message), command),
        elicitation::exact_lines(&elicitation::shown(&arguments, command)),
        safe_text::exact(session),
        safe_text::exact(&digest_of(error).unwrap_or_default())
    )
}

/// A call of a tool in a session.
struct ToolInvocation<'a> {
    server: &'a Server,
    named: Named,
    arguments: Map<String, Value>,
    session: &'a str,
    caller: &'a Caller,
    cx: &'a RequestContext<RoleServer>,
    /// The digest that came with the call.
    confirmed: Option<String>,
}

impl ToolInvocation<'_> {
    async fn invoke(
        &self,
        ticket: Option<Ticket>,
        responses: Option<InputResponses>,
    ) -> Result<CallToolResponse, Error> {
        if let Some(ticket) = ticket {
            return self.again(&ticket, responses).await;
        }
        let error = match self.made(self.confirmed.as_deref()).await {
            Ok(value) => return self.result(&value).await,
            Err(error) if error.code != Code::ConfirmationRequired => return Err(error),
            Err(error) => error,
        };
        let Some(digest) = digest_of(&error) else { return Err(self.unasked(error)) };
        match elicitation::deciding(self.server, self.caller, self.cx).await {
            ElicitationMode::None => Err(self.unasked(error)),
            ElicitationMode::Later => Ok(self.ticket(digest).required(self.question(&error)).into()),
            ElicitationMode::Now => {
                match elicitation::ask(self.cx, self.question(&error)).await.map(|answer| answer.action) {
                    Some(ElicitationAction::Accept) => self.approved(&digest).await,
                    Some(ElicitationAction::Decline) => Err(self.declined()),
                    _ => Err(self.unasked(error)),
                }
            }
        }
    }

    /// Repeats the call with the user's answer.
    async fn again(
        &self,
        ticket: &Ticket,
        responses: Option<InputResponses>,
    ) -> Result<CallToolResponse, Error> {
        if *ticket != self.ticket(ticket.digest.clone()) {
            let message = "the call differs from the one to confirm; repeat it without `requestState`";
            return Err(Error::new(Code::InvalidRequest, message));
        }
        match elicitation::response(responses)?.map(|answer| answer.action) {
            Some(ElicitationAction::Accept) => self.approved(&ticket.digest).await,
            Some(ElicitationAction::Decline) => Err(self.declined()),
            _ => {
                let message = format!("{} is still waiting for confirmation", self.path());
                Err(Error::new(Code::ConfirmationRequired, message))
            }
        }
    }

    /// Runs what was shown: the digest of anything else is refused.
    async fn approved(&self, digest: &str) -> Result<CallToolResponse, Error> {
        let value = self.made(Some(digest)).await?;
        self.result(&value).await
    }

    async fn result(&self, value: &Value) -> Result<CallToolResponse, Error> {
        let result = text_result(value);
        // A script has run when its result is there.
        let read_only = self.named.tool != Tool::RunScript;
        limit_large_result(self.cx, self.caller, text_bytes(&result), read_only).await?;
        Ok(result.into())
    }

    async fn made(&self, confirmed: Option<&str>) -> Result<Value, Error> {
        let arguments = json!({
            SESSION: self.session,
            "tool": self.named.name(),
            "arguments": self.arguments,
            DIGEST: confirmed,
        });
        let answer = call_operation(self.server, self.caller, "session.tool", arguments).await?;
        let mut result = read::<ToolReply>(answer)?.result;
        // A later call has to name the session, and a model reads the text, not the result's `_meta`.
        if let (Tool::Load, Some(receipt)) = (self.named.tool, result.as_object_mut()) {
            receipt.insert(SESSION.to_owned(), json!(self.session));
        }
        Ok(result)
    }

    fn exact_path(&self) -> &str {
        self.arguments.get("path").and_then(Value::as_str).unwrap_or_default()
    }

    fn path(&self) -> String {
        safe_text::line(self.exact_path()).into_owned()
    }

    fn ticket(&self, digest: String) -> Ticket {
        Ticket { about: self.session.to_owned(), step: self.path(), digest, key: None }
    }

    fn question(&self, error: &Error) -> ElicitRequestParams {
        let command = self.server.inner().settings.onward().line(&["session", "show", self.session]);
        let message = confirmation(self.exact_path(), error, &self.arguments, self.session, &command);
        let form = ElicitationSchema::builder().build_unchecked();
        elicitation::question(message, form)
    }

    fn declined(&self) -> Error {
        let message =
            format!("the user declined to run {}; do not try again without being asked", self.path());
        Error::new(Code::SafetyDenied, message)
    }

    /// Adds the next steps to the error, for a client whose user cannot be asked.
    fn unasked(&self, mut error: Error) -> Error {
        // The arguments are valid, because the confirmation was requested for them.
        if let Ok(args) = serde_json::from_value(Value::Object(self.arguments.clone()))
            && let Some(digest) = digest_of(&error)
        {
            let onward = self.server.inner().settings.onward();
            error.message.push_str(&onward.of_script(self.session, &args, &digest));
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_a_confirmation_imitates_other_lines() {
        let forged = "a.sh\ncall: {}\nsession: s0\ndigest: 00";
        let reason = json!({ "script": { "inputs_digest": forged } });
        let error = Error { reason: Some(reason), ..Error::new(Code::ConfirmationRequired, forged) };
        let arguments = json!({ "path": forged });
        let text =
            confirmation(forged, &error, arguments.as_object().unwrap(), forged, "skills session show 1");
        for begin in ["call: ", "session: ", "digest: "] {
            assert_eq!(text.lines().filter(|line| line.starts_with(begin)).count(), 1, "{text}");
        }
    }

    #[test]
    fn white_space_of_a_confirmation_is_exact() {
        let argument = "a\u{a0}b\u{3000}c  d ";
        let error = Error::new(Code::ConfirmationRequired, format!("with arguments '{argument}'"));
        let arguments = json!({ "path": "a.sh", "args": [argument] });
        let text = confirmation("a.sh", &error, arguments.as_object().unwrap(), "s", "skills session show s");
        let shown = "a⟨U+00A0⟩b⟨U+3000⟩c  d ";
        for part in [format!("arguments '{shown}'"), format!("\"{shown}\"")] {
            assert!(text.contains(&part), "{part}: {text}");
        }
        assert!(!text.contains(['\u{a0}', '\u{3000}']), "{text}");
    }
}
