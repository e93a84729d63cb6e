//! What both databases share: the statements, and the logic around them. A statement is written once, in the SQL that
//! both support; where they differ, [`Tx`] supplies the expression.

pub(crate) mod audit_anchors;
pub(crate) mod checkpoints;
pub(crate) mod claims;
pub(crate) mod command;
pub(crate) mod control;
pub(crate) mod counts;
pub(crate) mod documents;
mod filter;
pub(crate) mod import;
pub(crate) mod integrity;
pub(crate) mod launch;
pub(crate) mod maintenance;
pub(crate) mod methods;
pub(crate) mod read;
pub(crate) mod report;
pub(crate) mod rows;
pub(crate) mod sessions;
mod value;

use std::fmt::Display;

pub(crate) use value::{Row, Value, values};

use std::sync::{Arc, OnceLock};

use crate::{ClockReading, Places, StoreError};

/// Returns the roots as a JSON array for SQL; `None` if every run may be claimed. May read from disk.
pub(crate) async fn claimable(places: &Arc<OnceLock<Places>>) -> Result<Option<String>, StoreError> {
    if places.get().is_none() {
        return Ok(None);
    }
    let places = Arc::clone(places);
    tokio::task::spawn_blocking(move || places.get().map(|places| serde_json::json!(*places()).to_string()))
        .await
        .map_err(|e| failed("look for the roots of skills", &e))
}

/// Returns the failure of an operation that does not concern the store as a whole.
pub(crate) fn failed(action: &str, reason: &dyn Display) -> StoreError {
    StoreError::Failed { action: action.to_owned(), reason: reason.to_string() }
}

/// An open transaction. Parameters of statements are written `?1`, `?2`, ….
///
/// In the embedded store the futures are complete when they are created.
pub(crate) trait Tx {
    /// Whether this is `PostgreSQL`, for the few statements that have two forms.
    const POSTGRES: bool;

    /// Returns the current time of the store's clock. Later calls in one transaction return the same moment.
    fn now(&self) -> impl Future<Output = Result<ClockReading, StoreError>> + Send;

    /// Returns the current time if it is known without waiting.
    fn known_now(&self) -> Option<ClockReading>;

    /// Returns the time of an event that is recorded now, never before that of an event recorded earlier by this process.
    fn event_ms(&self, now_ms: i64) -> i64 {
        now_ms
    }

    /// Runs a query. The statement stays prepared, so the number of different texts must be bounded.
    fn query(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + Send;

    /// Runs queries in this order, without waiting for the rows of one before sending the next.
    fn query_all(
        &self,
        action: &'static str,
        queries: &[(&str, &[Value<'_>])],
    ) -> impl Future<Output = Result<Vec<Vec<Row>>, StoreError>> + Send;

    /// Like [`Self::query`], for a statement that depends on user input.
    fn query_once(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + Send;

    /// Changes rows; returns how many.
    fn execute(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Changes rows without waiting for the outcome: a failure is reported by a later statement or by the commit.
    fn post(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns at most one row.
    fn find(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Row>, StoreError>> + Send {
        let rows = self.query(action, sql, values);
        async move { Ok(rows.await?.into_iter().next()) }
    }

    /// Reserves the global numbers of events that this transaction records.
    fn reserve_events(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns the clause that locks the selected rows of `runs` until the transaction ends; empty if transactions do
    /// not overlap.
    fn locking(&self) -> &'static str;
}

/// Expressions that differ between the two databases.
pub(crate) mod dialect {
    /// Names the index to read by; `PostgreSQL` chooses by itself.
    pub fn indexed_by(postgres: bool, index: &str) -> String {
        if postgres { String::new() } else { format!("INDEXED BY {index}") }
    }

    /// Returns a column of JSON text as a value for JSON operators. `PostgreSQL` cannot represent NUL: it is replaced by
    /// U+FFFD. Escaped backslashes are rewritten first, so that the text `\u0000` stays what it is.
    pub fn json(postgres: bool, column: &str) -> String {
        if postgres {
            let replaced = format!("replace(replace({column}, '\\\\', '\\u005c'), '\\u0000', '\\ufffd')");
            format!(
                "CAST(CASE WHEN strpos({column}, '\\u0000') = 0 THEN {column} ELSE {replaced} END AS json)"
            )
        } else {
            column.to_owned()
        }
    }

    /// Returns the text of a field in a column of JSON text.
    pub fn field(postgres: bool, column: &str, name: &str) -> String {
        format!("({} ->> '{name}')", json(postgres, column))
    }

    /// Returns the text of a boolean field of an object: `true` or `false`.
    pub fn flag(postgres: bool, column: &str, name: &str) -> String {
        if postgres { field(true, column, name) } else { format!("({column} -> '{name}')") }
    }

    /// Returns the text of an error without the fields for callers with the scope `admin`, as
    /// [`RunQuery::matches`](crate::RunQuery::matches) compares it.
    pub fn public_error(postgres: bool, column: &str) -> String {
        let (names, with_message) =
            (crate::query::PRIVATE_FIELDS, [&crate::query::PRIVATE_FIELDS[..], &["message"]].concat());
        let without = |names: &[&str]| {
            if postgres {
                let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
                format!("CAST(CAST({} AS jsonb) - ARRAY[{}] AS TEXT)", json(true, column), names.join(", "))
            } else {
                let paths: Vec<String> = names.iter().map(|name| format!("'$.{name}'")).collect();
                format!("json_remove({column}, {})", paths.join(", "))
            }
        };
        let (binding, detail) = (field(postgres, column, "binding"), field(postgres, column, "detail"));
        format!(
            "(CASE WHEN {binding} IS NOT NULL AND {detail} IS NULL THEN {} ELSE {} END)",
            without(&with_message),
            without(&names)
        )
    }

    /// Selects the texts of a JSON array that is a parameter.
    pub fn texts(postgres: bool, parameter: &str) -> String {
        if postgres {
            format!("(SELECT json_array_elements_text(CAST({parameter} AS json)))")
        } else {
            format!("(SELECT value FROM json_each({parameter}))")
        }
    }
}
