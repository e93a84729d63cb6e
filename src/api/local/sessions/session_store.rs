//! Stored sessions: decoding, encoding, and lookup by id or a part of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::description_changes::redescribed;
use super::difference::{Difference, by_parts, coarse, difference};
use super::transcripts::Transcripts;
use crate::{Code, DescriptionChanges, Error, SessionAccess, SettingChanged, SinceLast};
use skills_session::{
    Active, Composed, ComposedPart, Entry, Form, Instructions, PartKind, Session, SessionId, Settings,
};
use skills_store::{SessionRow, Sessions};

/// Maximum number of sessions listed for an ambiguous id.
const MAX_MATCHES: usize = 20;
/// Minimum number of characters of an abbreviated id.
const MIN_COUNT: usize = 3;

/// The part of a session that is one document; the transcript is appended line by line.
#[derive(Serialize, Deserialize)]
struct Document {
    settings: Settings,
    active: Vec<Active>,
}

/// How a call was made, in a line before its text. No composed text begins with this character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct How {
    client: Option<String>,
    agent: Option<String>,
    window: u32,
    form: Form,
    instructions: Instructions,
    locations: bool,
    entries: usize,
    /// The parts of the text, with the catalog as one; empty in a call stored by a version that did not record them.
    #[serde(default)]
    parts: Vec<ComposedPart>,
}

const HOW: &str = "\u{1}call ";

/// The last call of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LastCall {
    pub text: String,
    how: Option<How>,
}

impl LastCall {
    /// Parses a stored call: one of an earlier version consists of the text alone.
    pub(super) fn read(mut stored: String) -> Self {
        let Some(rest) = stored.strip_prefix(HOW) else { return Self { text: stored, how: None } };
        let Some((line, _)) = rest.split_once('\n') else { return Self { text: stored, how: None } };
        let how = serde_json::from_str(line).ok();
        let head = HOW.len() + line.len() + 1;
        stored.drain(..head);
        Self { text: stored, how }
    }

    /// Returns the stored form of a call.
    pub(super) fn to_stored_json(
        settings: &Settings,
        entries: usize,
        composed: &Composed,
    ) -> Result<String, serde_json::Error> {
        let how = How {
            client: settings.client.clone(),
            agent: settings.agent.clone(),
            window: settings.window,
            form: settings.form,
            instructions: settings.instructions,
            locations: settings.locations,
            entries,
            parts: coarse(composed),
        };
        Ok(format!("{HOW}{}\n{}", serde_json::to_string(&how)?, composed.text))
    }

    /// Compares the text with another call, part by part if the parts are known.
    pub(super) fn difference(&self, now: &Composed) -> Difference {
        match &self.how {
            Some(how) if !how.parts.is_empty() => {
                by_parts((&self.text, &how.parts), (&now.text, &coarse(now)))
            }
            _ => difference(&self.text, &now.text),
        }
    }

    /// Returns the entries that another call describes differently; empty if the part with the entries is not known.
    pub(super) fn redescribed(&self, now: &Composed) -> DescriptionChanges {
        let catalog = |text: &str, parts: &[ComposedPart]| {
            let part = parts.iter().find(|part| part.kind == PartKind::Available);
            part.and_then(|part| text.get(part.start..part.end)).unwrap_or_default().to_owned()
        };
        let parts = self.how.as_ref().map_or(&[][..], |how| &how.parts);
        redescribed(&catalog(&self.text, parts), &catalog(&now.text, &coarse(now)))
    }

    /// Returns what differs in a call with these settings and that many entries.
    pub(super) fn since(&self, now: &Settings, entries: usize, reordered: Vec<String>) -> Option<SinceLast> {
        let how = self.how.as_ref()?;
        let none = |text: &Option<String>, none: &str| text.clone().unwrap_or_else(|| none.to_owned());
        let describe = |is_told: bool| if is_told { "told" } else { "not told" }.to_owned();
        let all = [
            ("client", none(&how.client, "none"), none(&now.client, "none")),
            ("agent", none(&how.agent, "orchestrator"), none(&now.agent, "orchestrator")),
            ("window", how.window.to_string(), now.window.to_string()),
            ("form", how.form.to_string(), now.form.to_string()),
            ("instructions", how.instructions.to_string(), now.instructions.to_string()),
            ("locations", describe(how.locations), describe(now.locations)),
        ];
        let changes = all
            .into_iter()
            .filter(|(_, before, now)| before != now)
            .map(|(what, before, now)| SettingChanged { what: what.to_owned(), before, now })
            .collect();
        let redescribed = DescriptionChanges::default();
        Some(SinceLast { changes, entries: (how.entries, entries), reordered, redescribed })
    }
}

pub(super) fn broken(id: &str, error: &serde_json::Error) -> Error {
    Error::new(Code::InternalError, format!("cannot read session {id} from the store: {error}"))
}

/// Decodes a session of which the first entries are known.
pub(super) fn decode(row: SessionRow, mut transcript: Vec<Arc<Entry>>) -> Result<Session, Error> {
    let document: Document = serde_json::from_value(row.document).map_err(|e| broken(&row.id, &e))?;
    for line in row.lines {
        transcript.push(Arc::new(serde_json::from_value(line).map_err(|e| broken(&row.id, &e))?));
    }
    Ok(Session {
        id: SessionId(row.id),
        created_ms: row.created_ms,
        version: row.version,
        owner: row.owner,
        settings: document.settings,
        active: document.active,
        transcript,
    })
}

pub(super) fn encode(session: &Session) -> Result<Value, Error> {
    let document = Document { settings: session.settings.clone(), active: session.active.clone() };
    serde_json::to_value(document).map_err(|e| broken(&session.id.0, &e))
}

/// Reads a session by its complete id; the cached part of its transcript is not read again.
async fn read(
    database: &dyn Sessions,
    transcripts: &Transcripts,
    id: &str,
) -> Result<Option<Session>, Error> {
    let (version, entries) = transcripts.of(id).unwrap_or_default();
    let Some(mut row) = database.session(id, entries.len() as u64).await? else {
        transcripts.forget(id);
        return Ok(None);
    };
    let mut before = entries;
    if row.version < version {
        // The store was replaced by an older one: the cached entries do not exist there.
        before = Vec::new();
        transcripts.forget(id);
        let Some(stored) = database.session(id, 0).await? else { return Ok(None) };
        row = stored;
    }
    let session = decode(row, before)?;
    transcripts.keep(id, session.version, &session.transcript);
    Ok(Some(session))
}

/// Finds a session by its id, or a prefix or suffix of it. A session that the caller may not use is not found.
///
/// # Errors
/// Returns `not_found`, also for an abbreviation that is too short, or `invalid_request` if several match.
pub(in crate::local) async fn find(
    database: &dyn Sessions,
    transcripts: &Transcripts,
    access: &SessionAccess,
    requested: &str,
) -> Result<Session, Error> {
    if let Some(session) = read(database, transcripts, requested).await?
        && access.admits(session.owner.as_deref())
    {
        return Ok(session);
    }
    let id = find_id(database, access, requested).await?;
    read(database, transcripts, &id)
        .await?
        .ok_or_else(|| Error::new(Code::NotFound, format!("session {id} no longer exists")))
}

/// Like [`find`], but returns the complete id and does not read the session.
///
/// # Errors
/// Returns `not_found`, also for an abbreviation that is too short, or `invalid_request` if several match.
pub(super) async fn find_id(
    database: &dyn Sessions,
    access: &SessionAccess,
    requested: &str,
) -> Result<String, Error> {
    let mut found = database.session_ids(access.only(), requested, MAX_MATCHES).await?;
    if let Some(at) = found.iter().position(|id| id == requested) {
        return Ok(found.swap_remove(at));
    }
    if requested.chars().count() < MIN_COUNT {
        let message = format!("session id `{requested}` is too short: at least {MIN_COUNT} characters");
        return Err(Error::new(Code::NotFound, message));
    }
    match found.len() {
        1 => Ok(found.swap_remove(0)),
        0 => Err(Error::new(Code::NotFound, format!("session `{requested}` not found"))),
        _ => Err(Error::new(
            Code::InvalidRequest,
            format!(
                "{requested} matches several sessions: {}; use a longer part of the id",
                found.join(", ")
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_session::MessageRole;
    use skills_store::Sqlite;

    #[test]
    fn recorded_call_has_its_parameters_unless_it_is_old() {
        let codex = Settings { client: Some("codex".into()), ..Settings::default() };
        let call = Composed { text: "# Skills\n".to_owned(), parts: Vec::new() };
        let stored = LastCall::to_stored_json(&codex, 57, &call).unwrap();
        let last = LastCall::read(stored);
        assert_eq!(last.text, "# Skills\n");
        let same = SinceLast { entries: (57, 57), ..SinceLast::default() };
        assert_eq!(last.since(&codex, 57, Vec::new()), Some(same));
        let openclaw = Settings { client: Some("openclaw".into()), ..Settings::default() };
        let since = last.since(&openclaw, 50, Vec::new()).unwrap();
        assert_eq!(
            since.describe(|many| many.to_string()),
            ["the client changed from codex to openclaw", "7 entries fewer"]
        );
        let old = LastCall::read("# Skills\n".to_owned());
        assert_eq!((old.text.as_str(), old.since(&codex, 1, Vec::new())), ("# Skills\n", None));
    }

    #[tokio::test]
    async fn store_of_an_earlier_version_is_read_completely() {
        let clock: skills_store::Clock = Arc::new(|| 0);
        let (newer, older) = (Sqlite::in_memory(clock.clone()).unwrap(), Sqlite::in_memory(clock).unwrap());
        let mut session = Session::new(SessionId("a".into()), 0, Settings::default());
        session.say(0, MessageRole::User, "hello");
        session.say(0, MessageRole::User, "what they never said there");
        let lines: Vec<Value> =
            session.transcript.iter().map(|line| serde_json::to_value(line).unwrap()).collect();
        for (database, expected) in [(&newer, &lines[..]), (&older, &[])] {
            let row = database.create_session("a", None, encode(&session).unwrap()).await.unwrap();
            for line in expected {
                let version = database.session("a", 0).await.unwrap().unwrap().version;
                database
                    .change_session("a", version, row.document.clone(), vec![line.clone()])
                    .await
                    .unwrap();
            }
        }
        let transcripts = Transcripts::default();
        let access = SessionAccess::unrestricted();
        for _ in 0..2 {
            assert_eq!(
                find(&newer, &transcripts, &access, "a").await.unwrap().transcript,
                session.transcript
            );
        }
        assert_eq!(
            newer.session("a", 1).await.unwrap().unwrap().lines,
            lines[1..],
            "known lines are not read"
        );
        assert_eq!(find(&older, &transcripts, &access, "a").await.unwrap().transcript, []);
    }
}
