//! Sessions.

use serde_json::Value as Json;

use super::rows::json as encode;
use super::{Row, Tx, dialect, values};
use crate::{SessionHead, SessionOutline, SessionRow, SessionUsage, StoreError};

/// The index that has all columns of lists: in `SQLite`, columns after the document are read through all of its pages.
const LISTED: &str = "sessions_of_owner";

pub(crate) async fn create<T: Tx>(
    tx: &T,
    id: &str,
    owner: Option<&str>,
    document: &Json,
) -> Result<SessionRow, StoreError> {
    let now_ms = tx.now().await?.wall_ms;
    tx.post(
        "store a session",
        "INSERT INTO sessions (id, created_ms, changed_ms, version, document, owner)
         VALUES (?1, ?2, ?2, 0, ?3, ?4)",
        values![id, now_ms, encode(document)?, owner],
    )
    .await?;
    store_outline(tx, id, 0, document).await?;
    Ok(SessionRow {
        id: id.to_owned(),
        created_ms: now_ms,
        changed_ms: now_ms,
        version: 0,
        owner: owner.map(str::to_owned),
        document: document.clone(),
        lines: Vec::new(),
    })
}

pub(crate) async fn read<T: Tx>(tx: &T, id: &str, skip: u64) -> Result<Option<SessionRow>, StoreError> {
    let action = "read a session";
    let sql = "SELECT created_ms, changed_ms, version, document, owner FROM sessions WHERE id = ?1";
    let Some(mut row) = tx.find(action, sql, values![id]).await? else { return Ok(None) };
    let sql = "SELECT json FROM session_lines WHERE session = ?1 AND number > ?2 ORDER BY number";
    let lines = tx.query(action, sql, values![id, skip]).await?;
    Ok(Some(SessionRow {
        id: id.to_owned(),
        created_ms: row.take(0)?,
        changed_ms: row.take(1)?,
        version: row.take(2)?,
        document: row.json(3)?,
        owner: row.take(4)?,
        lines: lines.iter().map(|line| line.json(0)).collect::<Result<_, _>>()?,
    }))
}

/// Stores what lists show of a document. A program of an earlier version changes only the document, so the version of the
/// session is stored, too.
async fn store_outline<T: Tx>(tx: &T, id: &str, version: u64, document: &Json) -> Result<(), StoreError> {
    tx.post(
        "store the outline of a session",
        "INSERT INTO session_outlines (session, version, json) VALUES (?1, ?2, ?3)
         ON CONFLICT (session) DO UPDATE SET version = excluded.version, json = excluded.json",
        values![id, version, encode(&SessionOutline::of(document))?],
    )
    .await
}

pub(crate) async fn list<T: Tx>(
    tx: &T,
    owner: Option<&str>,
    limit: usize,
) -> Result<Vec<SessionHead>, StoreError> {
    // Sessions of earlier versions have no outline: their documents are read.
    let sql = format!(
        "SELECT s.id, s.created_ms, s.changed_ms, o.json,
            (SELECT count(*) FROM session_lines l WHERE l.session = s.id), s.owner,
            CASE WHEN o.json IS NULL THEN (SELECT d.document FROM sessions d WHERE d.id = s.id) END
        FROM (
            SELECT id, created_ms, changed_ms, version, owner FROM sessions {}
            WHERE CAST(?2 AS TEXT) IS NULL OR owner = ?2 ORDER BY changed_ms DESC, id DESC LIMIT ?1
        ) s LEFT JOIN session_outlines o ON o.session = s.id AND o.version = s.version
        ORDER BY s.changed_ms DESC, s.id DESC",
        dialect::indexed_by(T::POSTGRES, LISTED)
    );
    let head = |mut row: Row| {
        let outline = match row.optional_json::<SessionOutline>(3)? {
            Some(outline) => outline,
            None => SessionOutline::of(&row.json::<Json>(6)?),
        };
        Ok(SessionHead {
            id: row.take(0)?,
            created_ms: row.take(1)?,
            changed_ms: row.take(2)?,
            outline,
            lines: row.take(4)?,
            owner: row.take(5)?,
        })
    };
    tx.query("list sessions", &sql, values![limit, owner]).await?.into_iter().map(head).collect()
}

/// Returns the ids that begin or end with a text.
pub(crate) async fn ids<T: Tx>(
    tx: &T,
    owner: Option<&str>,
    part: &str,
    limit: usize,
) -> Result<Vec<String>, StoreError> {
    let sql = format!(
        "SELECT s.id FROM sessions s {} WHERE (CAST(?2 AS TEXT) IS NULL OR s.owner = ?2)
            AND (substr(s.id, 1, length(CAST(?3 AS TEXT))) = ?3
                OR substr(s.id, length(s.id) - length(CAST(?3 AS TEXT)) + 1) = ?3)
        ORDER BY s.changed_ms DESC, s.id DESC LIMIT ?1",
        dialect::indexed_by(T::POSTGRES, LISTED)
    );
    let rows = tx.query("look for sessions", &sql, values![limit, owner, part]).await?;
    rows.into_iter().map(|mut row| row.take(0)).collect()
}

pub(crate) async fn change<T: Tx>(
    tx: &T,
    id: &str,
    version: u64,
    document: &Json,
    lines: &[Json],
) -> Result<u64, StoreError> {
    let now_ms = tx.now().await?.wall_ms;
    let changed = tx
        .execute(
            "change a session",
            "UPDATE sessions SET version = version + 1, changed_ms = ?3, document = ?4
             WHERE id = ?1 AND version = ?2",
            values![id, version, now_ms, encode(document)?],
        )
        .await?;
    if changed == 0 {
        return Err(StoreError::SessionConflict { id: id.to_owned() });
    }
    store_outline(tx, id, version + 1, document).await?;
    for line in lines {
        tx.post(
            "append to a session",
            "INSERT INTO session_lines (session, number, json)
             SELECT CAST(?1 AS TEXT), coalesce(max(number), 0) + 1, CAST(?2 AS TEXT)
             FROM session_lines WHERE session = ?1",
            values![id, encode(line)?],
        )
        .await?;
    }
    Ok(version + 1)
}

pub(crate) async fn store_last_call<T: Tx>(tx: &T, id: &str, text: &str) -> Result<(), StoreError> {
    tx.post(
        "keep the last call of a session",
        "INSERT INTO session_calls (session, text) SELECT id, CAST(?2 AS TEXT) FROM sessions WHERE id = ?1
         ON CONFLICT (session) DO UPDATE SET text = excluded.text",
        values![id, text],
    )
    .await
}

pub(crate) async fn load_last_call<T: Tx>(tx: &T, id: &str) -> Result<Option<String>, StoreError> {
    let sql = "SELECT text FROM session_calls WHERE session = ?1";
    let row = tx.find("read the last call of a session", sql, values![id]).await?;
    row.map(|mut row| row.take(0)).transpose()
}

pub(crate) async fn usage<T: Tx>(tx: &T, owner: &str) -> Result<SessionUsage, StoreError> {
    // Both databases know this length without reading the text.
    let sql = "SELECT count(*), CAST(coalesce(sum(octet_length(document)), 0) AS BIGINT), CAST(coalesce(sum((
                SELECT sum(octet_length(json)) FROM session_lines l WHERE l.session = s.id)), 0) AS BIGINT)
        FROM sessions s WHERE owner = ?1";
    let row = tx.find("add up the sizes of sessions", sql, values![owner]).await?;
    let Some(mut row) = row else { return Ok(SessionUsage::default()) };
    let (sessions, documents, lines): (u64, u64, u64) = (row.take(0)?, row.take(1)?, row.take(2)?);
    Ok(SessionUsage { sessions, bytes: documents + lines })
}

pub(crate) async fn purge<T: Tx>(tx: &T, before_ms: i64) -> Result<u64, StoreError> {
    let action = "purge sessions";
    for table in ["session_lines", "session_calls", "session_outlines"] {
        let sql =
            format!("DELETE FROM {table} WHERE session IN (SELECT id FROM sessions WHERE changed_ms < ?1)");
        tx.post(action, &sql, values![before_ms]).await?;
    }
    tx.execute(action, "DELETE FROM sessions WHERE changed_ms < ?1", values![before_ms]).await
}
