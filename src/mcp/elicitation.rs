//! Asking the person behind a client: by elicitation during the call, or, since revision 2026-07-28, as a result that
//! wants input before the same call is made again.

use std::collections::BTreeMap;
use std::fmt::Write as _;

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
use super::next_steps::Onward;
use super::server::Server;
use skills_api::operations::{Caller, Scope, operation};
use skills_api::{Code, DecisionSheet, Error};
use skills_model::Choice;
use skills_skill::safe_text;

/// The one question of a result that wants input.
const QUESTION: &str = "decision";
/// Characters of inputs that a question shows; what is longer is named with its digest.
const MAX_SHOWN_CHARS: usize = 6000;

/// How a client's person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElicitationMode {
    /// While the call continues.
    Now,
    /// As a result; the client makes the call again with the answer.
    Later,
    /// Not at all.
    None,
}

/// How this client's person can be asked.
pub fn way(cx: &RequestContext<RoleServer>) -> ElicitationMode {
    let can = cx.client_capabilities().and_then(|can| can.elicitation);
    // A client that names no mode means forms: there was nothing else when the capability came up.
    if !can.is_some_and(|can| can.form.is_some() || can.url.is_none()) {
        ElicitationMode::None
    } else if is_stateless(cx) {
        ElicitationMode::Later
    } else {
        ElicitationMode::Now
    }
}

/// How the person behind a client can be asked to decide: not at all where the answer would count for nothing, because
/// the caller may not decide, or the key that this process has for a service may not.
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

/// What asking came to.
pub enum Answered {
    /// It is decided, by this person or meanwhile by another one: make the call again.
    Decided,
    /// The client has to ask and come again.
    Later(InputRequiredResult),
    /// The person said nothing: it waits on.
    Nothing,
}

/// What a call that is made again was about. It comes back from the client, so nothing in it is believed: it names
/// what the caller could name anyway, and what is decided is checked by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The run that waits, or the session.
    pub about: String,
    /// The step that waits, or the script.
    pub step: String,
    /// Digest of exactly what was asked about.
    pub digest: String,
    /// The key that was lent to the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Ticket {
    /// Reads what a client sent back.
    ///
    /// # Errors
    /// `invalid_request` for anything that this server did not write.
    pub fn read(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| {
            Error::new(Code::InvalidRequest, format!("`requestState` was not issued by this server: {error}"))
        })
    }

    /// The result that asks for an answer.
    pub fn required(&self, question: ElicitRequestParams) -> InputRequiredResult {
        let request = InputRequest::Elicitation(ElicitRequest::new(question));
        let requests = BTreeMap::from([(QUESTION.to_owned(), request)]);
        InputRequiredResult::new(Some(requests), Some(json!(self).to_string()))
    }
}

/// The answer among the responses of a call that is made again.
///
/// # Errors
/// `invalid_request` for a response that is none to an elicitation.
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

/// Asks during the call.
///
/// # Errors
/// None: a client that cannot ask after all leaves the question open, and the log says why.
pub async fn ask(cx: &RequestContext<RoleServer>, question: ElicitRequestParams) -> Option<ElicitResult> {
    tokio::select! {
        biased;
        // Who gave the call up is not asked about it any longer.
        () = cx.ct.cancelled() => None,
        answer = cx.peer.create_elicitation(question) => {
            answer.inspect_err(|error| tracing::warn!("the client could not ask the user: {error}")).ok()
        }
    }
}

/// A question with a form.
pub fn question(message: String, form: ElicitationSchema) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: form }
}

/// Asks about the gate that a run waits at.
///
/// # Errors
/// Those of looking the run up and of the decision.
pub async fn about_run(
    server: &Server,
    caller: &Caller,
    cx: &RequestContext<RoleServer>,
    run: &str,
    way: ElicitationMode,
    key: Option<String>,
) -> Result<Answered, Error> {
    let detail = server.core().run(run).await?;
    // Somebody else was faster.
    let Some(sheet) = detail.sheet else { return Ok(Answered::Decided) };
    let question = question(message(&sheet, &server.inner().settings.onward()), form(&sheet));
    let ticket = Ticket { about: run.to_owned(), step: sheet.step, digest: sheet.inputs_digest, key };
    match way {
        ElicitationMode::None => Ok(Answered::Nothing),
        ElicitationMode::Later => Ok(Answered::Later(ticket.required(question))),
        ElicitationMode::Now => match ask(cx, question).await {
            Some(answer) => decide(server, caller, cx, &ticket, answer).await,
            None => Ok(Answered::Nothing),
        },
    }
}

/// Decides what a ticket is about by the answer that came with it.
///
/// # Errors
/// `invalid_request` for an answer that is none; those of the decision.
pub async fn settle_ticket(
    server: &Server,
    caller: &Caller,
    cx: &RequestContext<RoleServer>,
    ticket: &Ticket,
    responses: Option<InputResponses>,
) -> Result<Answered, Error> {
    match response(responses)? {
        Some(answer) => decide(server, caller, cx, ticket, answer).await,
        None => Ok(Answered::Nothing),
    }
}

/// Executes what a person answered, recorded under the caller's name, for exactly what was shown.
async fn decide(
    server: &Server,
    caller: &Caller,
    cx: &RequestContext<RoleServer>,
    ticket: &Ticket,
    answer: ElicitResult,
) -> Result<Answered, Error> {
    let order = match answer.action {
        ElicitationAction::Accept => "run.approve",
        ElicitationAction::Decline => "run.deny",
        _ => return Ok(Answered::Nothing),
    };
    let given = |field: &str| answer.content.as_ref().and_then(|content| content.get(field)).cloned();
    let arguments = json!({
        "run_id": ticket.about,
        "step": ticket.step,
        "inputs_digest": ticket.digest,
        "notes": notes(given("notes").as_ref().and_then(Value::as_str), cx),
        "choice": given("choice"),
    });
    let Some(order) = operation(order) else { return Ok(Answered::Nothing) };
    match order.call(&server.inner().service, caller, arguments).await {
        Ok(_) => Ok(Answered::Decided),
        // Decided meanwhile by another user: the call itself returns the outcome.
        Err(error) if error.code == Code::InvalidTransition => {
            tracing::info!("a decision came too late: {error}");
            Ok(Answered::Decided)
        }
        Err(error) => Err(error),
    }
}

/// What is recorded beside the decision: the person's words, and through which program they were asked.
fn notes(said: Option<&str>, cx: &RequestContext<RoleServer>) -> String {
    let client = cx.client_info().map(|client| format!("{} {}", client.name, client.version));
    let asked = format!("requested by {}", client.as_deref().unwrap_or("an MCP client"));
    match said.map(str::trim).filter(|said| !said.is_empty()) {
        Some(said) => format!("{said} ({asked})"),
        None => asked,
    }
}

fn form(sheet: &DecisionSheet) -> ElicitationSchema {
    let mut form = ElicitationSchema::builder().optional_string_with("notes", |notes| {
        notes.title("Notes").description("Kept with the decision.").max_length(2000)
    });
    if sheet.outcome_unknown {
        // What a step gave does not fit into such a form: the run itself takes it, with the choice happened.
        let choices = Choice::iter().filter(|choice| *choice != Choice::Happened);
        let choices = choices.map(|choice| choice.to_string()).collect();
        let choices = EnumSchema::builder(choices)
            .title("How to continue")
            .description("The outcome is unknown: run it again, skip it, or let the run fail.");
        form = form.required_enum_schema("choice", choices.build());
    }
    form.build_unchecked()
}

/// Exactly what would happen as text: anyone who may decide sees what would be called, as on the sheet of the
/// workbench.
fn message(sheet: &DecisionSheet, onward: &Onward) -> String {
    let mut out = format!("{}\n", sheet.headline);
    if sheet.outcome_unknown {
        out.push_str("Accept applies your choice, decline cancels the run.\n\n");
    } else {
        out.push_str("Accept continues the run, decline cancels it.\n\n");
    }
    let (place, of) = sheet.place;
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(out, "{name}: {value}");
        }
    };
    line("reason", &sheet.why);
    line("warning", sheet.irreversible.as_deref().unwrap_or_default());
    line("cannot be accepted", sheet.blocked.as_deref().unwrap_or_default());
    let held = sheet.pause.as_ref().map(|by| format!("paused until resumed, requested by {by}"));
    line("after approval", held.as_deref().unwrap_or_default());
    line("skill", &sheet.skill_id);
    line("step", &format!("{} ({place} of {of})", sheet.step));
    line("capability", &sheet.capability);
    line("effect", &sheet.capability_note);
    line("executed by", &sheet.binding);
    line("isolation", &sheet.isolation);
    line("run", &sheet.run.0);
    let inputs = serde_json::to_string_pretty(&sheet.inputs).unwrap_or_else(|_| sheet.inputs.to_string());
    let inputs = if sheet.inputs.is_null() { DecisionSheet::CHANGED.to_owned() } else { inputs };
    line("inputs", &shown(&inputs, &onward.line(&["runs", "show", &sheet.run.0])));
    line("digest of the inputs", &sheet.inputs_digest);
    safe_text::block(&out).into_owned()
}

/// A long text cut, saying so and where the rest can be read.
pub fn shown(text: &str, whole: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => {
            format!("{}\n… {} bytes more, not shown here: {whole}", &text[..end], text.len() - end)
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_store::RunId;

    fn sheet() -> DecisionSheet {
        DecisionSheet {
            run: RunId("0198a1b2".to_owned()),
            skill_id: "invoice-intake".to_owned(),
            headline: "Books 120.50 EUR".to_owned(),
            step: "book".to_owned(),
            place: (4, 4),
            outcome_unknown: false,
            capability: "ledger.entry.create".to_owned(),
            capability_note: "standard, not idempotent".to_owned(),
            binding: "POST https://ledger.internal/entries".to_owned(),
            isolation: "reaches the network".to_owned(),
            why: "the capability asks for confirmation".to_owned(),
            outputs: std::collections::BTreeMap::new(),
            irreversible: Some("cannot be undone".to_owned()),
            inputs: json!({ "total": 120.5, "note": "a\u{202e}b" }),
            inputs_digest: "9f".repeat(32),
            approver: None,
            since_ms: 0,
            expires_ms: None,
            on_expiry: skills_model::Expiry::default(),
            changed: None,
            blocked: None,
            missing_scope: None,
            pause: None,
        }
    }

    #[test]
    fn a_question_says_what_would_happen_and_hides_nothing() {
        let text = message(&sheet(), &Onward::Service);
        for part in [
            "Books 120.50 EUR",
            "cannot be undone",
            "book (4 of 4)",
            "effect: standard, not idempotent",
            "executed by: POST https://ledger.internal/entries",
            "isolation: reaches the network",
            "120.5",
            &"9f".repeat(32),
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains('\u{202e}'), "a character that turns text around is shown as what it is");
    }

    #[test]
    fn a_step_of_unknown_outcome_asks_for_a_choice() {
        let plain = serde_json::to_value(form(&sheet())).unwrap();
        assert!(plain["properties"]["choice"].is_null());
        let unknown =
            serde_json::to_value(form(&DecisionSheet { outcome_unknown: true, ..sheet() })).unwrap();
        assert_eq!(unknown["properties"]["choice"]["enum"], json!(["rerun", "skip", "fail"]));
        assert_eq!(unknown["required"], json!(["choice"]));
    }

    #[test]
    fn what_comes_back_is_read_strictly() {
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
    fn a_long_text_says_how_much_is_missing() {
        let text = shown(&"é".repeat(MAX_SHOWN_CHARS + 10), "skills runs show r");
        assert!(text.ends_with("… 20 bytes more, not shown here: skills runs show r"), "{}", &text[12000..]);
        assert_eq!(shown("short", ""), "short");
    }
}
