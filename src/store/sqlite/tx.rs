//! A transaction of the embedded store for the shared logic: every statement returns its result immediately.

use std::future::ready;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::failed;
use crate::sql::{Row, Tx, Value};
use crate::{ClockReading, StoreError};

/// A connection with an open transaction, and the time when it began.
pub(super) struct Transaction<'c> {
    connection: &'c Connection,
    now: ClockReading,
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Self::Bool(value) => ToSqlOutput::Borrowed(ValueRef::Integer(i64::from(*value))),
            Self::Int(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Self::Real(number) => ToSqlOutput::Borrowed(ValueRef::Real(*number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

pub(super) fn value(found: ValueRef<'_>) -> rusqlite::Result<Value<'static>> {
    Ok(match found {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(_) | ValueRef::Blob(_) => Value::Text(found.as_str()?.to_owned().into()),
    })
}

impl<'c> Transaction<'c> {
    pub fn new(connection: &'c Connection, now: ClockReading) -> Self {
        Self { connection, now }
    }

    fn rows(&self, sql: &str, values: &[Value<'_>]) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut found = statement.query(params_from_iter(values))?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            let values = (0..columns).map(|column| value(row.get_ref(column)?));
            rows.push(Row(values.collect::<rusqlite::Result<_>>()?));
        }
        Ok(rows)
    }

    fn changes(&self, action: &str, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params_from_iter(values)))
            .map(|changed| changed as u64)
            .map_err(|e| failed(action.to_owned(), &e))
    }
}

impl Tx for Transaction<'_> {
    const POSTGRES: bool = false;

    fn now(&self) -> impl Future<Output = Result<ClockReading, StoreError>> + Send {
        ready(Ok(self.now.clone()))
    }

    fn known_now(&self) -> Option<ClockReading> {
        Some(self.now.clone())
    }

    fn query(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + Send {
        ready(self.rows(sql, values).map_err(|e| failed(action.to_owned(), &e)))
    }

    fn query_all(
        &self,
        action: &'static str,
        queries: &[(&str, &[Value<'_>])],
    ) -> impl Future<Output = Result<Vec<Vec<Row>>, StoreError>> + Send {
        let rows = queries.iter().map(|(sql, values)| self.rows(sql, values)).collect::<Result<_, _>>();
        ready(rows.map_err(|e| failed(action.to_owned(), &e)))
    }

    fn query_once(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + Send {
        self.query(action, sql, values)
    }

    fn execute(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, StoreError>> + Send {
        ready(self.changes(action, sql, values))
    }

    fn post(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        ready(self.changes(action, sql, values).map(drop))
    }

    fn reserve_events(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        ready(Ok(()))
    }

    fn locking(&self) -> &'static str {
        ""
    }
}

/// Returns the result of shared logic on this store, which completes at the first poll.
pub(super) fn complete<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(failed("use the store".into(), &"a statement did not complete")),
    }
}

/// Runs `$body` in the next commit, again if that is rolled back because of another body. The current time is read when
/// it is executed.
macro_rules! write_tx {
    ($store:expr, $tx:ident => $body:expr) => {
        $store
            .write(move |transaction| {
                let $tx = &transaction;
                $crate::sqlite::tx::complete(async { $body })
            })
            .await
    };
}
pub(super) use write_tx;

/// Runs `$body` on a consistent snapshot of the store.
macro_rules! read_tx {
    ($store:expr, $tx:ident => $body:expr) => {
        $store
            .read(move |transaction| {
                let $tx = &transaction;
                $crate::sqlite::tx::complete(async move { $body })
            })
            .await
    };
}
pub(super) use read_tx;
