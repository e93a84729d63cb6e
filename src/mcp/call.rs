//! Calls of operations: executes them, and elicits a decision if a run waits for approval.

use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use super::answer::{explained, failed, failed_with, text_bytes, text_result};
use super::caller::{large_result, limit_large_result};
use super::compact::{EXPLAIN, short};
use super::elicitation::{self, DecisionResult, ElicitationMode, Ticket};
use super::progress::Progress;
use super::server::{Server, wants_skills};
use super::tools;
use skills_api::operations::{Caller, Operation, complete_result_permit};
use skills_api::{Code, CoreParts, Error, in_place, is_trace_id};
use skills_store::IdempotencyOutcome;

/// The argument with the idempotency key of a call.
const KEY: &str = "idempotency_key";
/// Maximum number of elicitations per call: a contract may have many gates, an endless loop of them is an error.
const MAX_PROMPTS: usize = 100;

pub async fn operation(
    server: &Server,
    operation: &'static Operation,
    request: CallToolRequestParams,
    caller: &Caller,
    cx: &RequestContext<RoleServer>,
) -> CallToolResponse {
    if wants_skills(operation.name) {
        server.ready(CoreParts::Index).await;
    }
    // A tool without an idempotency key starts no run that waits, so no elicitation is needed.
    let asks = tools::takes(operation.name, KEY) || tools::takes(operation.name, "options");
    let way = if asks { elicitation::deciding(server, caller, cx).await } else { ElicitationMode::None };
    let ticket = match request.request_state.as_deref().map(Ticket::read).transpose() {
        Ok(ticket) => ticket,
        Err(error) => return failed(&error, &caller.trace_id).into(),
    };
    let mut arguments = request.arguments.unwrap_or_default();
    let explain = match arguments.remove(EXPLAIN) {
        None | Some(Value::Null) => false,
        Some(Value::Bool(explain)) => explain,
        Some(other) => {
            let message = format!("`{EXPLAIN}` is {other}; expected true or false");
            return failed(&Error::new(Code::InvalidRequest, message), &caller.trace_id).into();
        }
    };
    if let Some(page) = operation.page {
        let limit = arguments.entry(tools::LIMIT).or_insert(Value::Null);
        if limit.is_null() {
            *limit = json!(page);
        }
    }
    // A call that may be repeated after an elicitation must find the run it launched.
    let lent = (way != ElicitationMode::None && repeatable(operation, &arguments)).then(|| {
        let key = ticket.as_ref().and_then(|ticket| ticket.key.clone());
        key.unwrap_or_else(|| format!("mcp-{}", skills_api::new_trace_id()))
    });
    if let Some(key) = &lent {
        arguments.insert(KEY.to_owned(), json!(key));
    }
    let (progress, observer) = Progress::follow(server, cx);
    let caller = &Caller { trace_id: trace_of(&arguments, caller), observer, ..caller.clone() };
    // Before it is computed, because it takes memory from then on. What waits for a run does not keep others waiting.
    if explain
        && operation.hints.read_only
        && !operation.waits
        && let Some(large) = large_result(cx)
    {
        match complete_result_permit(caller).await {
            Ok(permit) => large.hold(permit),
            Err(error) => return failed(&error, &caller.trace_id).into(),
        }
    }
    let made = Invocation { server, operation, arguments, explain, caller, cx, lent };
    let response = made.invoke(way, ticket, request.input_responses).await;
    progress.end().await;
    response
}

/// Returns whether a key can be added to a call: the operation accepts one, and the caller gave none.
fn repeatable(operation: &Operation, arguments: &Map<String, Value>) -> bool {
    let takes = tools::takes(operation.name, KEY);
    let own = arguments.get("options").and_then(|options| options.get(KEY));
    takes && arguments.get(KEY).is_none_or(Value::is_null) && own.is_none_or(Value::is_null)
}

/// Returns the trace id of a call: from its arguments, if valid, because refusals are logged with it; else that of the
/// request.
fn trace_of(arguments: &Map<String, Value>, caller: &Caller) -> String {
    let own = arguments.get("options").and_then(|options| options.get("trace_id"));
    let trace = arguments.get("trace_id").or(own).and_then(Value::as_str);
    trace.filter(|id| is_trace_id(id)).unwrap_or(&caller.trace_id).to_owned()
}

/// A call, which may be executed several times.
struct Invocation<'a> {
    server: &'a Server,
    operation: &'static Operation,
    arguments: Map<String, Value>,
    /// Whether the complete result is requested.
    explain: bool,
    caller: &'a Caller,
    cx: &'a RequestContext<RoleServer>,
    /// The idempotency key that was added.
    lent: Option<String>,
}

impl Invocation<'_> {
    async fn invoke(
        &self,
        way: ElicitationMode,
        ticket: Option<Ticket>,
        responses: Option<rmcp::model::InputResponses>,
    ) -> CallToolResponse {
        let mut way = way;
        if let Some(ticket) = ticket.filter(|_| way != ElicitationMode::None) {
            match elicitation::settle_ticket(self.server, self.caller, self.cx, &ticket, responses).await {
                // Elicited once without an answer: the call reports that it waits, and does not elicit again.
                Ok(DecisionResult::Nothing) => way = ElicitationMode::None,
                Ok(_) => {}
                Err(error) => return self.failed(&error),
            }
        }
        for _ in 0..MAX_PROMPTS {
            let arguments = Value::Object(self.arguments.clone());
            let service = &self.server.inner().service;
            let error = match self.operation.call(service, self.caller, arguments).await {
                Ok(answer) => return self.answered(self.without_loan(answer)).await,
                Err(error) => error,
            };
            let Some(run) =
                waiting_run(&error).filter(|_| way != ElicitationMode::None && self.knows_again())
            else {
                return self.failed(&error);
            };
            // The user may take minutes to answer.
            self.caller.returned_run.release();
            match elicitation::about_run(self.server, self.caller, self.cx, &run, way, self.lent.clone())
                .await
            {
                Ok(DecisionResult::Recorded) => {}
                Ok(DecisionResult::Later(required)) => return required.into(),
                Ok(DecisionResult::Nothing) => return self.failed(&error),
                Err(error) => return self.failed(&error),
            }
        }
        let message =
            format!("a call asks at most {MAX_PROMPTS} questions; decide the remaining ones separately");
        self.failed(&Error::new(Code::ConfirmationRequired, message))
    }

    async fn answered(&self, answer: Value) -> CallToolResponse {
        // Large results are freed here, too.
        let result = in_place(|| {
            if self.explain { explained(answer) } else { text_result(&short(self.operation.name, answer)) }
        });
        let read_only = self.operation.hints.read_only;
        match limit_large_result(self.cx, self.caller, text_bytes(&result), read_only).await {
            Ok(()) => result.into(),
            Err(error) => self.failed(&error),
        }
    }

    /// Returns whether calling again finds the run of this call instead of launching another one.
    fn knows_again(&self) -> bool {
        let own = self.arguments.get("options").and_then(|options| options.get(KEY));
        self.arguments.get(KEY).or(own).is_some_and(Value::is_string)
    }

    fn failed(&self, error: &Error) -> CallToolResponse {
        let Some(run) = waiting_run(error) else { return failed(error, &self.caller.trace_id).into() };
        let gate = error.reason.as_ref().map(|reason| &reason["gate"]["human"]);
        let text = |name: &str| gate.and_then(|gate| gate[name].as_str());
        let asks = text("step").zip(text("inputs_digest"));
        let onward = self.server.inner().settings.onward().of_run(&run, asks);
        failed_with(error, &self.caller.trace_id, &onward).into()
    }

    /// Removes from a result the key that the caller did not give.
    fn without_loan(&self, mut answer: Value) -> Value {
        if self.lent.is_some()
            && let Some(outcome) = answer.get_mut("idempotency")
        {
            *outcome = json!(IdempotencyOutcome::None);
        }
        answer
    }
}

/// Returns the run that waits for approval, if that is why the call failed.
fn waiting_run(error: &Error) -> Option<String> {
    if error.code != Code::ConfirmationRequired {
        return None;
    }
    error.reason.as_ref()?.get("run_id")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_trace_id_is_adopted() {
        let caller = Caller { trace_id: "of-the-request".to_owned(), ..Caller::anyone() };
        let trace = |arguments: Value| trace_of(arguments.as_object().unwrap(), &caller);
        assert_eq!(trace(json!({ "trace_id": "nightly/42" })), "nightly/42");
        assert_eq!(trace(json!({ "options": { "trace_id": "nightly/42" } })), "nightly/42");
        for wrong in [json!("Z".repeat(1_900_000)), json!("a\nb"), json!(""), json!(5), Value::Null] {
            assert_eq!(trace(json!({ "trace_id": wrong })), "of-the-request");
            assert_eq!(trace(json!({ "options": { "trace_id": wrong } })), "of-the-request");
        }
    }
}
