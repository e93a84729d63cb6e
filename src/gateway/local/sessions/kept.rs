//! Sessions as the store keeps them: decoded, found by what a person writes, encoded.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gateway::{Code, Error};
use crate::session::{Active, Entry, Session, SessionId, Settings};
use crate::store::{SessionHead, SessionRow, Sessions};

/// Sessions that are looked through for a beginning or an end of an id.
const LOOKED_AT: usize = 1_000;
/// Fewest characters of an id that name a session.
const FEWEST: usize = 3;

/// What of a session is one document; the transcript is appended line by line.
#[derive(Serialize, Deserialize)]
struct Document {
    settings: Settings,
    active: Vec<Active>,
}

pub(super) fn broken(id: &str, error: &serde_json::Error) -> Error {
    Error::new(Code::InternalError, format!("session {id} cannot be read from the store: {error}"))
}

/// Settings and active skills of a session in a list.
pub(in crate::gateway::local) fn head(head: SessionHead) -> Result<(Settings, Vec<Active>), Error> {
    let document: Document = serde_json::from_value(head.document).map_err(|e| broken(&head.id, &e))?;
    Ok((document.settings, document.active))
}

pub(super) fn decode(row: SessionRow) -> Result<Session, Error> {
    let document: Document = serde_json::from_value(row.document).map_err(|e| broken(&row.id, &e))?;
    let transcript = row
        .lines
        .into_iter()
        .map(serde_json::from_value)
        .collect::<Result<Vec<Entry>, _>>()
        .map_err(|e| broken(&row.id, &e))?;
    Ok(Session {
        id: SessionId(row.id),
        created_ms: row.created_ms,
        version: row.version,
        settings: document.settings,
        active: document.active,
        transcript,
    })
}

pub(super) fn encode(session: &Session) -> Result<Value, Error> {
    let document = Document { settings: session.settings.clone(), active: session.active.clone() };
    serde_json::to_value(document).map_err(|e| broken(&session.id.0, &e))
}

/// The session that a person names: id, or a beginning or end of it.
///
/// # Errors
/// `not_found`; `invalid_request` where several fit.
pub(in crate::gateway::local) async fn find(desk: &dyn Sessions, wanted: &str) -> Result<Session, Error> {
    if let Some(row) = desk.session(wanted).await? {
        return decode(row);
    }
    let heads = desk.sessions(LOOKED_AT).await?;
    let fits = |id: &str| wanted.len() >= FEWEST && (id.starts_with(wanted) || id.ends_with(wanted));
    let found: Vec<&str> = heads.iter().map(|head| head.id.as_str()).filter(|id| fits(id)).collect();
    match found.as_slice() {
        [one] => match desk.session(one).await? {
            Some(row) => decode(row),
            None => Err(Error::new(Code::NotFound, format!("session {one} is gone"))),
        },
        [] => Err(Error::new(
            Code::NotFound,
            format!("there is no session {wanted}; `skills session list` names them"),
        )),
        several => Err(Error::new(
            Code::InvalidRequest,
            format!("{wanted} fits several sessions: {}; say more of the id", several.join(", ")),
        )),
    }
}
