//! Shared documents.

use serde_json::Value as Json;

use super::rows::json as encode;
use super::{Row, Tx, values};
use crate::documents::MAX_DOCUMENT_BYTES;
use crate::{Document, StoreError};

pub(crate) async fn list<T: Tx>(tx: &T, prefix: &str) -> Result<Vec<Document>, StoreError> {
    let sql = "SELECT name, version, json FROM documents
        WHERE substr(name, 1, length(CAST(?1 AS TEXT))) = ?1 ORDER BY name";
    let document =
        |mut row: Row| Ok(Document { name: row.take(0)?, version: row.take(1)?, value: row.json(2)? });
    tx.query("read documents", sql, values![prefix]).await?.into_iter().map(document).collect()
}

/// Each case is one statement, so that of two writers that expect the same version one fails.
pub(crate) async fn put<T: Tx>(
    tx: &T,
    name: &str,
    value: Option<&Json>,
    expected: Option<u64>,
) -> Result<u64, StoreError> {
    let conflict = || StoreError::DocumentConflict { name: name.to_owned() };
    let Some(value) = value else {
        let action = "delete a document";
        if expected == Some(0) {
            let sql = "SELECT 1 FROM documents WHERE name = ?1";
            return tx.find(action, sql, values![name]).await?.map_or(Ok(0), |_| Err(conflict()));
        }
        let sql = "DELETE FROM documents WHERE name = ?1 AND (CAST(?2 AS BIGINT) IS NULL OR version = ?2)";
        let deleted = tx.execute(action, sql, values![name, expected]).await?;
        return if expected.is_some() && deleted == 0 { Err(conflict()) } else { Ok(0) };
    };
    let text = encode(value)?;
    if text.len() > MAX_DOCUMENT_BYTES {
        return Err(StoreError::InvalidRequest(format!("{name}: larger than {MAX_DOCUMENT_BYTES} bytes")));
    }
    let action = "write a document";
    let written = match expected {
        None => {
            let sql = "INSERT INTO documents (name, version, json) VALUES (?1, 1, ?2)
                ON CONFLICT (name) DO UPDATE SET version = documents.version + 1, json = excluded.json
                RETURNING version";
            tx.find(action, sql, values![name, &text]).await?
        }
        Some(0) => {
            let sql = "INSERT INTO documents (name, version, json) VALUES (?1, 1, ?2)
                ON CONFLICT (name) DO NOTHING RETURNING version";
            tx.find(action, sql, values![name, &text]).await?
        }
        Some(version) => {
            let sql = "UPDATE documents SET version = version + 1, json = ?2
                WHERE name = ?1 AND version = ?3 RETURNING version";
            tx.find(action, sql, values![name, &text, version]).await?
        }
    };
    written.ok_or_else(conflict)?.take(0)
}
