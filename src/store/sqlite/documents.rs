//! Shared documents in `SQLite`.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

use super::failed;
use super::rows::{column, execute, json as encode};
use crate::documents::MAX_DOCUMENT_BYTES;
use crate::{Document, StoreError};

pub(super) fn list(connection: &Connection, prefix: &str) -> Result<Vec<Document>, StoreError> {
    connection
        .prepare_cached(
            "SELECT name, version, json FROM documents WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name",
        )
        .and_then(|mut s| {
            s.query_map([prefix], |row| {
                let version = row.get::<_, i64>(1)?.unsigned_abs();
                Ok(Document { name: row.get(0)?, version, value: column(row, 2)? })
            })?
            .collect()
        })
        .map_err(|e| failed("reading documents".into(), &e))
}

pub(super) fn put(
    connection: &Connection,
    name: &str,
    value: Option<&Value>,
    expected: Option<u64>,
) -> Result<u64, StoreError> {
    let present: Option<i64> = connection
        .prepare_cached("SELECT version FROM documents WHERE name = ?1")
        .and_then(|mut s| s.query_row([name], |row| row.get(0)).optional())
        .map_err(|e| failed("reading a document".into(), &e))?;
    let present = present.map_or(0, i64::unsigned_abs);
    if expected.is_some_and(|expected| expected != present) {
        return Err(StoreError::DocumentConflict { name: name.to_owned() });
    }
    let Some(value) = value else {
        execute(connection, "deleting a document", "DELETE FROM documents WHERE name = ?1", [name])?;
        return Ok(0);
    };
    let text = encode(value)?;
    if text.len() > MAX_DOCUMENT_BYTES {
        return Err(StoreError::Unasked(format!("{name}: larger than {MAX_DOCUMENT_BYTES} bytes")));
    }
    execute(
        connection,
        "writing a document",
        "INSERT OR REPLACE INTO documents (name, version, json) VALUES (?1, ?2, ?3)",
        params![name, (present + 1).cast_signed(), text],
    )?;
    Ok(present + 1)
}
