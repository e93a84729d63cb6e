//! Sessions in `SQLite`.

use async_trait::async_trait;
use fail::fail_point;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

use super::rows::{column, execute, json as encode};
use super::{Sqlite, failed};
use crate::StoreError;
use crate::sessions::{SessionHead, SessionRow, Sessions};

#[async_trait]
impl Sessions for Sqlite {
    async fn create_session(
        &self,
        id: &str,
        owner: Option<&str>,
        document: Value,
    ) -> Result<SessionRow, StoreError> {
        let (id, owner) = (id.to_owned(), owner.map(str::to_owned));
        self.write(move |connection, now| {
            execute(
                connection,
                "keeping a session",
                "INSERT INTO sessions (id, created_ms, changed_ms, version, document, owner)
                 VALUES (?1, ?2, ?2, 0, ?3, ?4)",
                params![id, now, encode(&document)?, owner],
            )?;
            Ok(SessionRow {
                id,
                created_ms: now,
                changed_ms: now,
                version: 0,
                owner,
                document,
                lines: Vec::new(),
            })
        })
        .await
    }

    async fn session(&self, id: &str, known: u64) -> Result<Option<SessionRow>, StoreError> {
        let id = id.to_owned();
        self.read(move |connection| read(connection, &id, known)).await
    }

    async fn sessions(&self, owner: Option<&str>, limit: usize) -> Result<Vec<SessionHead>, StoreError> {
        let owner = owner.map(str::to_owned);
        self.read(move |connection| {
            connection
                .prepare_cached(
                    "SELECT id, created_ms, changed_ms, document,
                            (SELECT count(*) FROM session_lines l WHERE l.session = s.id), owner
                     FROM sessions s WHERE ?2 IS NULL OR owner = ?2
                     ORDER BY changed_ms DESC, id DESC LIMIT ?1",
                )
                .and_then(|mut s| {
                    s.query_map(params![i64::try_from(limit).unwrap_or(i64::MAX), owner], |row| {
                        Ok(SessionHead {
                            id: row.get(0)?,
                            created_ms: row.get(1)?,
                            changed_ms: row.get(2)?,
                            document: column(row, 3)?,
                            lines: row.get::<_, i64>(4)?.unsigned_abs(),
                            owner: row.get(5)?,
                        })
                    })?
                    .collect()
                })
                .map_err(|e| failed("listing sessions".into(), &e))
        })
        .await
    }

    async fn change_session(
        &self,
        id: &str,
        version: u64,
        document: Value,
        lines: Vec<Value>,
    ) -> Result<u64, StoreError> {
        let id = id.to_owned();
        let changed = self
            .write(move |connection, now| {
                let changed = execute(
                    connection,
                    "changing a session",
                    "UPDATE sessions SET version = version + 1, changed_ms = ?3, document = ?4
                 WHERE id = ?1 AND version = ?2",
                    params![id, version.cast_signed(), now, encode(&document)?],
                )?;
                if changed == 0 {
                    return Err(StoreError::SessionConflict { id });
                }
                for line in &lines {
                    execute(
                        connection,
                        "appending to a session",
                        "INSERT INTO session_lines (session, number, json)
                     SELECT ?1, coalesce(max(number), 0) + 1, ?2 FROM session_lines WHERE session = ?1",
                        params![id, encode(line)?],
                    )?;
                }
                fail_point!("session-before-commit");
                Ok(version + 1)
            })
            .await?;
        fail_point!("session-after-commit");
        Ok(changed)
    }

    async fn keep_call(&self, id: &str, text: String) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.write(move |connection, _| {
            execute(
                connection,
                "keeping the last call of a session",
                "INSERT INTO session_calls (session, text) SELECT id, ?2 FROM sessions WHERE id = ?1
                 ON CONFLICT (session) DO UPDATE SET text = excluded.text",
                params![id, text],
            )
            .map(|_| ())
        })
        .await
    }

    async fn kept_call(&self, id: &str) -> Result<Option<String>, StoreError> {
        let id = id.to_owned();
        self.read(move |connection| {
            connection
                .prepare_cached("SELECT text FROM session_calls WHERE session = ?1")
                .and_then(|mut s| s.query_row([&id], |row| row.get(0)).optional())
                .map_err(|e| failed(format!("reading the last call of session {id}"), &e))
        })
        .await
    }

    async fn purge_sessions(&self, before_ms: i64) -> Result<u64, StoreError> {
        self.write(move |connection, _| {
            execute(
                connection,
                "purging the lines of sessions",
                "DELETE FROM session_lines WHERE session IN (SELECT id FROM sessions WHERE changed_ms < ?1)",
                [before_ms],
            )?;
            execute(
                connection,
                "purging the calls of sessions",
                "DELETE FROM session_calls WHERE session IN (SELECT id FROM sessions WHERE changed_ms < ?1)",
                [before_ms],
            )?;
            let gone = execute(
                connection,
                "purging sessions",
                "DELETE FROM sessions WHERE changed_ms < ?1",
                [before_ms],
            )?;
            Ok(gone as u64)
        })
        .await
    }
}

fn read(connection: &Connection, id: &str, known: u64) -> Result<Option<SessionRow>, StoreError> {
    let doing = || format!("reading session {id}");
    let row = connection
        .prepare_cached("SELECT created_ms, changed_ms, version, document, owner FROM sessions WHERE id = ?1")
        .and_then(|mut s| {
            s.query_row([id], |row| {
                Ok(SessionRow {
                    id: id.to_owned(),
                    created_ms: row.get(0)?,
                    changed_ms: row.get(1)?,
                    version: row.get::<_, i64>(2)?.unsigned_abs(),
                    document: column(row, 3)?,
                    owner: row.get(4)?,
                    lines: Vec::new(),
                })
            })
            .optional()
        })
        .map_err(|e| failed(doing(), &e))?;
    let Some(mut row) = row else { return Ok(None) };
    row.lines = connection
        .prepare_cached("SELECT json FROM session_lines WHERE session = ?1 AND number > ?2 ORDER BY number")
        .and_then(|mut s| s.query_map(params![id, known.cast_signed()], |row| column(row, 0))?.collect())
        .map_err(|e| failed(doing(), &e))?;
    Ok(Some(row))
}
