//! Transcripts of sessions as targets: named `session:ID`, passed on entry by entry.

use serde_json::{Value, json};

use super::RunRuntime;
use super::references::{ResolvedTarget, forms};
use crate::local::sessions;
use crate::{Code, Error, SessionAccess, TargetChoice};
use skills_session::{Entry, Session, Turn};
use skills_skill::AttachTarget;
use skills_store::SessionHead;

/// Prefix of a reference to a transcript.
const PREFIX: &str = "session:";
/// Maximum number of sessions offered for completion.
const MAX_OFFERED_SESSIONS: usize = 200;
/// Maximum size of a transcript in bytes: it is stored with the run and passed to scripts on stdin.
const MAX_TRANSCRIPT_BYTES: usize = 8 << 20;

/// Returns the transcript of a session; the prefix `session:` is optional.
///
/// # Errors
/// Returns `target_not_found`, or `payload_too_large` naming the limit.
pub(super) async fn found(
    runtime: &RunRuntime,
    access: &SessionAccess,
    reference: &str,
) -> Result<ResolvedTarget, Error> {
    let id = reference.strip_prefix(PREFIX).unwrap_or(reference);
    let transcripts = sessions::Transcripts::default();
    let found = sessions::find(&*runtime.sessions, &transcripts, access, id).await;
    let session = found.map_err(|error| match error.code {
        Code::NotFound | Code::InvalidRequest => Error {
            code: Code::TargetNotFound,
            message: format!("{}; {}", error.message, forms(AttachTarget::Transcript, None)),
            ..error
        },
        _ => error,
    })?;
    let content = transcript_content(&session);
    let bytes = content.to_string().len();
    if bytes > MAX_TRANSCRIPT_BYTES {
        return Err(Error::new(
            Code::PayloadTooLarge,
            format!(
                "the transcript of session {} has {bytes} bytes; the maximum is {MAX_TRANSCRIPT_BYTES}: use a new \
                    session",
                session.id
            ),
        ));
    }
    let label = format!("transcript of session {}, {}", session.id, entries(session.transcript.len() as u64));
    Ok(ResolvedTarget { label, content, run: None })
}

/// Returns the sessions with entries, most recently changed first.
pub(super) async fn choices(
    runtime: &RunRuntime,
    access: &SessionAccess,
) -> Result<Vec<TargetChoice>, Error> {
    let heads = runtime.sessions.sessions(access.only(), MAX_OFFERED_SESSIONS).await?;
    let choice = |head: SessionHead| {
        let names = head.outline.active.join(", ");
        let with = if names.is_empty() { "no skills loaded".to_owned() } else { names };
        TargetChoice {
            target_ref: format!("{PREFIX}{}", head.id),
            label: format!("{}, {with}", entries(head.lines)),
            at_ms: Some(head.changed_ms),
        }
    };
    Ok(heads.into_iter().filter(|head| head.lines > 0).map(choice).collect())
}

fn entries(count: u64) -> String {
    skills_base::number::counted(count, "entry")
}

/// Returns the content passed to a skill: the settings, the active skills, and every entry in order.
fn transcript_content(session: &Session) -> Value {
    let active: Vec<Value> = session
        .active
        .iter()
        .map(|skill| json!({"name": skill.name, "location": skills_base::paths::escaped(&skill.location), "digest": skill.digest}))
        .collect();
    let entries: Vec<Value> = session.transcript.iter().map(|line| entry(line)).collect();
    json!({
        "session_id": session.id, "created_ms": session.created_ms, "agent": session.settings.agent,
        "active": active, "entries": entries,
    })
}

fn entry(entry: &Entry) -> Value {
    let (number, at_ms) = (entry.number, entry.at_ms);
    match &entry.turn {
        Turn::Message { speaker, text } => {
            json!({"number": number, "at_ms": at_ms, "kind": "message", "speaker": speaker, "text": text})
        }
        Turn::Call { tool, arguments, result } => {
            let mut call = json!({
                "number": number, "at_ms": at_ms, "kind": "call", "tool": tool, "arguments": arguments,
            });
            match result {
                Ok(value) => call["result"] = value.clone(),
                Err(error) => call["error"] = json!({"code": error.code, "message": error.message}),
            }
            call
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_session::{MessageRole, SessionId, Settings, ToolError, ToolFailure};

    #[test]
    fn every_entry_has_its_result_or_error() {
        let mut session = Session::new(SessionId("s".into()), 7, Settings::default());
        session.say(8, MessageRole::User, "profile it");
        session.called(9, "skills.list", json!({}), Ok(json!({"total": 3})));
        let wrong = ToolError::new(ToolFailure::NotLoaded, "load it first");
        session.called(10, "skills.read", json!({"path": "a"}), Err(wrong));
        let content = transcript_content(&session);
        assert_eq!(content["entries"][0]["text"], "profile it");
        assert_eq!(content["entries"][1]["result"]["total"], 3);
        assert_eq!(content["entries"][2]["error"]["code"], "not_loaded");
        assert!(content["entries"][2].get("result").is_none());
    }
}
