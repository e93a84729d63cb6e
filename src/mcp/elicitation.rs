//! Elicitation of decisions from the client's user: during the call or, since revision 2026-07-28, as a result that
//! requires input before the same call is made again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema,
    InputRequest, InputRequiredResult, InputResponses,
};
use rmcp::service::RequestContext;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

use super::caller::is_stateless;
use super::connections::abandoned;
use super::next_steps::NextSteps;
use super::server::Server;
use skills_api::operations::{Caller, Scope, large_read_permit, operation};
use skills_api::{Code, DecisionPreview, Error};
use skills_model::Choice;
use skills_skill::{prefix, safe_text};

/// Key of the only question in a result that requires input.
const QUESTION: &str = "decision";
/// Maximum length of an error of a client in the log, which is rotated by size, in bytes.
const MAX_LOGGED_BYTES: usize = 1024;
/// Maximum number of characters of inputs in a question; longer ones are truncated, with their digest.
const MAX_SHOWN_CHARS: usize = 6000;

/// How a client's user can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElicitationMode {
    /// During the call.
    Now,
    /// As a result; the client makes the call again with the answer.
    Later,
    /// Not at all.
    None,
}

/// Returns how this client's user can be asked.
pub fn way(cx: &RequestContext<RoleServer>) -> ElicitationMode {
    let can = cx.client_capabilities().and_then(|can| can.elicitation);
    // A client that names no mode supports forms: there was nothing else when the capability was introduced.
    if !can.is_some_and(|can| can.form.is_some() || can.url.is_none()) {
        ElicitationMode::None
    } else if is_stateless(cx) {
        ElicitationMode::Later
    } else {
        ElicitationMode::Now
    }
}

/// Returns how the client's user can be asked to decide: not at all if the answer would not count, because the caller,
/// or the key of this process for a service, may not decide.
pub async fn deciding(server: &Server, caller: &Caller, cx: &RequestContext<RoleServer>) -> ElicitationMode {
    let way = if caller.may(Scope::Decide) { way(cx) } else { ElicitationMode::None };
    if way == ElicitationMode::None {
        return way;
    }
    match server.core().caller().await {
        Ok(known) if known.scopes.contains(&Scope::Decide) => way,
        Ok(_) => ElicitationMode::None,
        Err(error) => {
            tracing::warn!(
                "no confirmation is requested, because the scopes of the key are unknown: \
                {error}"
            );
            ElicitationMode::None
        }
    }
}

/// The result of an elicitation.
pub enum DecisionResult {
    /// A decision was made, by this or another user: make the call again.
    Recorded,
    /// The client has to ask its user and make the call again.
    Later(InputRequiredResult),
    /// The user did not answer; the run keeps waiting.
    Nothing,
}

/// What a repeated call refers to. It is returned by the client, so it is not trusted: it names only what the caller
/// could name anyway, and the subject of a decision is checked by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The run that waits, or the session.
    pub about: String,
    /// The step that waits, or the script.
    pub step: String,
    /// Digest of exactly what was asked about.
    pub digest: String,
    /// The idempotency key that was added to the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Ticket {
    /// Parses what a client returned.
    ///
    /// # Errors
    /// Returns `invalid_request` for anything that this server did not write.
    pub fn read(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| {
            Error::new(Code::InvalidRequest, format!("`requestState` was not issued by this server: {error}"))
        })
    }

    /// Returns the result that requires an answer.
    pub fn required(&self, question: ElicitRequestParams) -> InputRequiredResult {
        let request = InputRequest::Elicitation(ElicitRequest::new(question));
        let requests = BTreeMap::from([(QUESTION.to_owned(), request)]);
        InputRequiredResult::new(Some(requests), Some(json!(self).to_string()))
    }
}

/// Returns the answer among the responses of a repeated call.
///
/// # Errors
/// Returns `invalid_request` for a response that does not belong to an elicitation.
pub fn response(responses: Option<InputResponses>) -> Result<Option<ElicitResult>, Error> {
    let Some(answer) = responses.and_then(|mut all| all.remove(QUESTION)) else { return Ok(None) };
    serde_json::from_value(answer).map(Some).map_err(|error| {
        Error::new(
            Code::InvalidRequest,
            format!(
                "`inputResponses.{QUESTION}` is not a valid response: \
            {error}"
            ),
        )
    })
}

/// How long a call waits for the user's answer; then it reports that the run waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// Asks during the call. If the client cannot ask after all, the question stays open, and the log says why.
pub async fn ask(cx: &RequestContext<RoleServer>, question: ElicitRequestParams) -> Option<ElicitResult> {
    tokio::select! {
        biased;
        // The user who canceled the call is not asked any further.
        () = cx.ct.cancelled() => None,
        answer = cx.peer.create_elicitation(question) => {
            let log = |error: &rmcp::ServiceError| {
                let error = error.to_string();
                tracing::warn!("the client could not ask the user: {}", prefix(&error, MAX_LOGGED_BYTES));
            };
            answer.inspect_err(log).ok()
        }
        () = tokio::time::sleep(ANSWER_TIMEOUT) => None,
        () = abandoned(cx.extensions.get()) => None,
    }
}

pub fn question(message: String, form: ElicitationSchema) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: form }
}

/// Asks about the gate that a run waits at.
pub async fn about_run(
    server: &Server,
    caller: &Caller,
    cx: &RequestContext<RoleServer>,
    run: &str,
    way: ElicitationMode,
    key: Option<String>,
) -> Result<DecisionResult, Error> {
    let detail = {
        let _permit = large_read_permit(caller).await?;
        server.core().run(run).await?
    };
    // It was decided concurrently.
    let Some(preview) = detail.sheet else { return Ok(DecisionResult::Recorded) };
    let preview = match &preview.blocked_public {
        Some(public) if !caller.may(Scope::Admin) => {
            DecisionPreview { blocked: Some(public.clone()), ..preview }
        }
        _ => preview,
    };
    let question = question(message(&preview, &server.inner().settings.onward()), form(&preview));
    let ticket = Ticket { about: run.to_owned(), step: preview.step, digest: preview.inputs_digest, key };
    match way {
        ElicitationMode::None => Ok(DecisionResult::Nothing),
        ElicitationMode::Later => Ok(DecisionResult::Later(ticket.required(question))),
        ElicitationMode::Now => match ask(cx, question).await {
            Some(answer) => decide(server, caller, cx, &ticket, answer).await,
            None => Ok(DecisionResult::Nothing),
        },
    }
}

/// Makes the decision that a ticket refers to, by the answer that came with it.
///
/// # Errors
/// Returns `invalid_request` for an invalid answer, and the errors of the decision.
pub async fn settle_ticket(
    server: &Server,
    caller: &Caller,
    cx: &RequestContext<RoleServer>,
    ticket: &Ticket,
    responses: Option<InputResponses>,
) -> Result<DecisionResult, Error> {
    match response(responses)? {
        Some(answer) => decide(server, caller, cx, ticket, answer).await,
        None => Ok(DecisionResult::Nothing),
    }
}

/// Applies the user's answer, recorded under the caller's name, for exactly what was shown.
async fn decide(
    server: &Server,
    caller: &Caller,
    cx: &RequestContext<RoleServer>,
    ticket: &Ticket,
    answer: ElicitResult,
) -> Result<DecisionResult, Error> {
    let order = match answer.action {
        ElicitationAction::Accept => "run.approve",
        ElicitationAction::Decline => "run.deny",
        _ => return Ok(DecisionResult::Nothing),
    };
    let value_of = |field: &str| answer.content.as_ref().and_then(|content| content.get(field)).cloned();
    let arguments = json!({
        "run_id": ticket.about,
        "step": ticket.step,
        "inputs_digest": ticket.digest,
        "notes": notes(value_of("notes").as_ref().and_then(Value::as_str), cx),
        "choice": value_of("choice"),
    });
    let Some(order) = operation(order) else { return Ok(DecisionResult::Nothing) };
    match order.call(&server.inner().service, caller, arguments).await {
        Ok(_) => Ok(DecisionResult::Recorded),
        // Decided in the meantime by another user: the call itself returns the outcome.
        Err(error) if error.code == Code::InvalidTransition => {
            tracing::info!("a decision came too late: {error}");
            Ok(DecisionResult::Recorded)
        }
        Err(error) => Err(error),
    }
}

/// Returns the notes recorded with the decision: the user's own, and the client that asked.
fn notes(typed: Option<&str>, cx: &RequestContext<RoleServer>) -> String {
    let client = cx.client_info().map(|client| format!("{} {}", client.name, client.version));
    let requester = format!("requested by {}", client.as_deref().unwrap_or("an MCP client"));
    match typed.map(str::trim).filter(|typed| !typed.is_empty()) {
        Some(typed) => format!("{typed} ({requester})"),
        None => requester,
    }
}

fn form(preview: &DecisionPreview) -> ElicitationSchema {
    let mut form = ElicitationSchema::builder().optional_string_with("notes", |notes| {
        notes.title("Notes").description("Comment stored with the decision.").max_length(2000)
    });
    if preview.outcome_unknown {
        // The outputs of a step do not fit in such a form, so the choice `happened` is only available for the run
        // itself.
        let choices = Choice::iter().filter(|choice| *choice != Choice::Happened);
        let choices = choices.map(|choice| choice.to_string()).collect();
        let choices = EnumSchema::builder(choices)
            .title("How to continue")
            .description("The outcome is unknown: run it again, skip it, or let the run fail.");
        form = form.required_enum_schema("choice", choices.build());
    }
    form.build_unchecked()
}

/// Describes exactly what would be executed: callers who may decide see what would be called, as in the preview of the
/// workbench. Each value is on one line, so that none can be taken for other lines; only the inputs and the content of a
/// target, as JSON, have several.
fn message(preview: &DecisionPreview, onward: &NextSteps) -> String {
    let mut out = format!("{}\n", safe_text::exact(&preview.headline));
    if preview.outcome_unknown {
        out.push_str("Accept applies your choice, decline cancels the run.\n\n");
    } else {
        out.push_str("Accept continues the run, decline cancels it.\n\n");
    }
    let (place, of) = preview.place;
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(out, "{name}: {}", safe_text::exact(value));
        }
    };
    line("reason", &preview.why);
    line("warning", preview.irreversible.as_deref().unwrap_or_default());
    line("cannot be accepted", preview.blocked.as_deref().unwrap_or_default());
    let pause = preview.pause.as_ref().map(|by| format!("paused until resumed, requested by {by}"));
    line("after approval", pause.as_deref().unwrap_or_default());
    line("skill", &preview.skill_id);
    line("step", &format!("{} ({place} of {of})", preview.step));
    line("capability", &preview.capability);
    line("effect", &preview.capability_note);
    line("executed by", &preview.binding);
    for fallback in &preview.fallbacks {
        line("or, if that fails, by", fallback);
    }
    line("isolation", &preview.isolation);
    for file in &preview.files {
        line("file", &file.text());
    }
    line("run", &preview.run.0);
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    let full_text = onward.line(&["runs", "show", &preview.run.0]);
    if let Some(target) = &preview.target {
        line("attached to", &target.text());
        let content = shown(&pretty(&target.content), &full_text);
        let _ = writeln!(out, "content of the target: {}", exact_lines(&content));
        if target.truncated {
            let _ = writeln!(out, "its complete content is in the `target` of the run: {full_text}");
        }
    }
    let inputs =
        if preview.inputs.is_null() { DecisionPreview::CHANGED.to_owned() } else { pretty(&preview.inputs) };
    let inputs = shown(&inputs, &full_text);
    let digest = safe_text::line(&preview.inputs_digest);
    let _ = writeln!(out, "inputs: {}\ndigest of the inputs: {digest}", exact_lines(&inputs));
    out
}

/// Makes several lines safe and shows each exactly.
pub fn exact_lines(text: &str) -> String {
    text.lines().map(safe_text::exact).collect::<Vec<_>>().join("\n")
}

/// Truncates a long text, stating where the complete one can be read.
pub fn shown(text: &str, full_text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => {
            format!("{}\n… {} bytes more, not shown here: {full_text}", &text[..end], text.len() - end)
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_api::{DecisionTarget, SuppliedFile};
    use skills_store::RunId;

    fn preview() -> DecisionPreview {
        DecisionPreview {
            run: RunId("0198a1b2".to_owned()),
            skill_id: "invoice-intake".to_owned(),
            headline: "Books 120.50 EUR".to_owned(),
            step: "book".to_owned(),
            place: (4, 4),
            labels: std::collections::BTreeMap::new(),
            outcome_unknown: false,
            capability: "ledger.entry.create".to_owned(),
            capability_note: "standard, not idempotent".to_owned(),
            binding: "POST https://ledger.internal/entries".to_owned(),
            fallbacks: Vec::new(),
            isolation: "reaches the network".to_owned(),
            why: "the capability asks for confirmation".to_owned(),
            outputs: std::collections::BTreeMap::new(),
            irreversible: Some("cannot be undone".to_owned()),
            inputs: json!({ "total": 120.5, "note": "a\u{202e}b" }),
            files: Vec::new(),
            target: None,
            inputs_digest: "9f".repeat(32),
            approver: None,
            since_ms: 0,
            expires_ms: None,
            on_expiry: skills_model::Expiry::default(),
            changed: None,
            blocked: None,
            blocked_public: None,
            not_approver: None,
            required: None,
            missing_scope: None,
            pause: None,
        }
    }

    #[test]
    fn elicitation_shows_the_complete_effect() {
        let (name, path) = ("pay.csv".to_owned(), "/srv/pay.csv".to_owned());
        let files = vec![SuppliedFile { name, path, sha256: Some("ab".repeat(32)) }];
        let fallbacks = vec!["POST https://backup.example/entries".to_owned()];
        let target = Some(DecisionTarget {
            kind: "artifact".to_owned(),
            reference: "artifact:394a".to_owned(),
            label: Some("o.json".to_owned()),
            content_bytes: 55,
            sha256: "cd".repeat(32),
            content: json!({ "iban": "DE00\ninputs: {}" }),
            truncated: false,
        });
        let shown = DecisionPreview { files, fallbacks, target, ..preview() };
        let text = message(&shown, &NextSteps::Service);
        for part in [
            "Books 120.50 EUR",
            "cannot be undone",
            "book (4 of 4)",
            "effect: standard, not idempotent",
            "executed by: POST https://ledger.internal/entries",
            "or, if that fails, by: POST https://backup.example/entries",
            &format!(
                "attached to: artifact artifact:394a (o.json), 55 B as JSON, sha256 {}",
                "cd".repeat(32)
            ),
            "\"iban\": \"DE00\\ninputs: {}\"",
            "isolation: reaches the network",
            &format!("file: pay.csv  /srv/pay.csv  sha256 {}", "ab".repeat(32)),
            "120.5",
            &"9f".repeat(32),
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains('\u{202e}'), "a character that turns text around is shown as what it is");
    }

    #[test]
    fn no_value_imitates_other_lines() {
        let forged = "x\nskill: other\r\ninputs: {}\ndigest of the inputs: 00";
        let text = || forged.to_owned();
        let clean = message(&preview(), &NextSteps::Service);
        let forged = DecisionPreview {
            run: RunId(text()),
            skill_id: text(),
            headline: text(),
            step: text(),
            capability: text(),
            capability_note: text(),
            binding: text(),
            isolation: text(),
            why: text(),
            irreversible: Some(text()),
            blocked: Some(text()),
            pause: Some(text()),
            inputs: json!({ "total": text(), "note": text() }),
            files: vec![SuppliedFile { name: text(), path: text(), sha256: Some(text()) }],
            inputs_digest: text(),
            ..preview()
        };
        let message = message(&forged, &NextSteps::Service);
        for begin in ["skill: ", "inputs: ", "digest of the inputs: "] {
            assert_eq!(message.lines().filter(|line| line.starts_with(begin)).count(), 1, "{message}");
        }
        // Those that the other preview lacks: `cannot be accepted`, `after approval` and `file`.
        assert_eq!(message.lines().count(), clean.lines().count() + 3, "{message}");
    }

    #[test]
    fn unknown_outcome_requires_a_choice() {
        let json = serde_json::to_value(form(&preview())).unwrap();
        assert!(json["properties"]["choice"].is_null());
        let unknown =
            serde_json::to_value(form(&DecisionPreview { outcome_unknown: true, ..preview() })).unwrap();
        assert_eq!(unknown["properties"]["choice"]["enum"], json!(["rerun", "skip", "fail"]));
        assert_eq!(unknown["required"], json!(["choice"]));
    }

    #[test]
    fn responses_are_parsed_strictly() {
        let ticket =
            Ticket { about: "r".to_owned(), step: "s".to_owned(), digest: "d".to_owned(), key: None };
        assert_eq!(Ticket::read(&json!(ticket).to_string()).unwrap(), ticket);
        for wrong in ["", "{}", r#"{"about":"r","step":"s","digest":"d","approved":true}"#] {
            assert_eq!(Ticket::read(wrong).unwrap_err().code, Code::InvalidRequest, "{wrong}");
        }
        let answers = BTreeMap::from([(QUESTION.to_owned(), json!({ "action": "perhaps" }))]);
        assert_eq!(response(Some(answers)).unwrap_err().code, Code::InvalidRequest);
    }

    #[test]
    fn long_text_states_the_omitted_length() {
        let text = shown(&"é".repeat(MAX_SHOWN_CHARS + 10), "skills runs show r");
        assert!(text.ends_with("… 20 bytes more, not shown here: skills runs show r"), "{}", &text[12000..]);
        assert_eq!(shown("short", ""), "short");
    }
}
