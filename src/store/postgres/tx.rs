//! A transaction on a server. Statements without a result are sent without waiting for the previous one, so that a
//! transaction takes few round trips: one to read the run, one to write everything and commit.

use std::collections::VecDeque;
use std::error::Error as _;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::runtime::Handle;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{SimpleQueryMessage, Statement};

use super::reason::{Kind, failed, kind};
use crate::sql::{Row, Tx, Value};
use crate::{ClockReading, StoreError};
use skills_base::sync::MutexExt as _;

type QueryFuture<T> = Pin<Box<dyn Future<Output = Result<T, tokio_postgres::Error>> + Send>>;

/// What a transaction may do and see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Writes; each statement sees what is committed by then.
    Write,
    /// Reads a consistent snapshot.
    Read,
    /// Reads; each statement sees what is committed by then.
    Follow,
}

impl Mode {
    fn begin(self) -> &'static str {
        match self {
            Self::Write => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            Self::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Self::Follow => "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
        }
    }

    /// The same, and reads the database's clock: one message instead of two.
    fn begin_with_clock(self) -> String {
        format!("{}; SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)", self.begin())
    }
}

/// What the transactions of a store share.
#[derive(Default)]
pub(super) struct Shared {
    /// Latest time of an event that this process recorded; 0 before the first.
    latest_event_ms: AtomicI64,
    /// Number of times that a transaction waited for the server.
    round_trips: AtomicU64,
}

impl Shared {
    pub fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }
}

/// The result of a transaction.
pub(super) enum Attempt<T> {
    /// It is complete, with this result.
    Done(Result<T, StoreError>),
    /// It had no effect, and may succeed when retried.
    Again(StoreError),
}

pub(super) struct Transaction {
    client: Option<Arc<Object>>,
    mode: Mode,
    now: Arc<OnceLock<i64>>,
    shared: Arc<Shared>,
    unanswered: Mutex<VecDeque<(&'static str, QueryFuture<u64>)>>,
    /// Whether the statements failed in a way that a retry may resolve.
    is_repeatable: AtomicBool,
    records_events: AtomicBool,
}

/// Sends a request, which is written when the future is first polled.
async fn send<T>(sent: &mut QueryFuture<T>) -> Option<Result<T, tokio_postgres::Error>> {
    match poll_fn(|context| Poll::Ready(sent.as_mut().poll(context))).await {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

/// Until the transaction ends, readers do not advance past the newest number at this point.
const RESERVE: &str = "SELECT pg_advisory_xact_lock_shared(
    (SELECT events_lock FROM identity), CAST(CAST(last_value AS bit(32)) AS int)) FROM events_global";

impl Transaction {
    /// Begins a transaction on a connection of the pool, without waiting. A clock argument replaces the database's
    /// clock.
    pub async fn begin(
        client: Object,
        mode: Mode,
        shared: &Arc<Shared>,
        now_ms: Option<i64>,
    ) -> Result<Self, StoreError> {
        let transaction = Self {
            client: Some(Arc::new(client)),
            mode,
            now: Arc::new(OnceLock::new()),
            shared: Arc::clone(shared),
            unanswered: Mutex::default(),
            is_repeatable: AtomicBool::new(false),
            records_events: AtomicBool::new(false),
        };
        let action = "begin a transaction";
        if now_ms.is_some() || mode == Mode::Follow {
            now_ms.map(|now_ms| transaction.now.set(now_ms));
            transaction.send_text(action, mode.begin()).await?;
            return Ok(transaction);
        }
        let (client, now) = (transaction.client()?, Arc::clone(&transaction.now));
        let begin = async move {
            for message in client.simple_query(&mode.begin_with_clock()).await? {
                if let SimpleQueryMessage::Row(row) = message
                    && let Some(now_ms) = row.try_get(0)?.and_then(|text| text.parse().ok())
                {
                    let _ = now.set(now_ms);
                }
            }
            Ok(0)
        };
        transaction.start(action, Box::pin(begin)).await?;
        Ok(transaction)
    }

    pub fn records_events(&self) -> bool {
        self.records_events.load(Ordering::Relaxed)
    }

    fn client(&self) -> Result<Arc<Object>, StoreError> {
        self.client.clone().ok_or_else(|| crate::sql::failed("use the store", &"the transaction has ended"))
    }

    fn failed(&self, action: &str, error: &tokio_postgres::Error) -> StoreError {
        let repeatable = matches!(kind(error), Kind::Again | Kind::Lost);
        self.is_repeatable.fetch_or(repeatable, Ordering::Relaxed);
        failed(action, error)
    }

    /// Sends a request whose response is awaited later.
    async fn start(&self, action: &'static str, mut sent: QueryFuture<u64>) -> Result<(), StoreError> {
        match send(&mut sent).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                self.answers().await?;
                return Err(self.failed(action, &error));
            }
            None => self.unanswered().push_back((action, sent)),
        }
        Ok(())
    }

    fn unanswered(&self) -> std::sync::MutexGuard<'_, VecDeque<(&'static str, QueryFuture<u64>)>> {
        self.unanswered.locked()
    }

    fn count_round_trip(&self) {
        self.shared.round_trips.fetch_add(1, Ordering::Relaxed);
    }

    /// Like [`Self::answers`], as the only wait of a round trip.
    async fn wait(&self) -> Result<(), StoreError> {
        self.count_round_trip();
        self.answers().await
    }

    /// Waits for the responses to all pending requests.
    async fn answers(&self) -> Result<(), StoreError> {
        loop {
            let Some((action, sent)) = self.unanswered().pop_front() else { return Ok(()) };
            if let Err(error) = sent.await {
                // Requests sent after it failed for the same reason.
                self.unanswered().clear();
                return Err(self.failed(action, &error));
            }
        }
    }

    async fn send_text(&self, action: &'static str, sql: &'static str) -> Result<(), StoreError> {
        let client = self.client()?;
        let sent = async move { client.batch_execute(sql).await.map(|()| 0) };
        self.start(action, Box::pin(sent)).await
    }

    async fn prepare(&self, action: &'static str, sql: &str, keep: bool) -> Result<Statement, StoreError> {
        // The shared statements use the parameter syntax of SQLite, `?1`; the server requires `$1`.
        let text = sql.replace('?', "$");
        let client = self.client()?;
        let mut prepared: QueryFuture<Statement> = Box::pin(async move {
            if keep { client.prepare_cached(&text).await } else { client.prepare(&text).await }
        });
        let prepared = if let Some(prepared) = send(&mut prepared).await {
            prepared
        } else {
            // A connection stops reading while the buffer of an earlier response is full.
            self.answers().await?;
            prepared.await
        };
        match prepared {
            Ok(statement) => Ok(statement),
            Err(error) => {
                self.answers().await?;
                Err(self.failed(action, &error))
            }
        }
    }

    async fn rows(
        &self,
        action: &'static str,
        sql: &str,
        values: Vec<Value<'static>>,
        keep: bool,
    ) -> Result<Vec<Row>, StoreError> {
        let statement = self.prepare(action, sql, keep).await?;
        let mut found = self.rows_of(action, vec![(statement, values)]).await?;
        Ok(found.pop().unwrap_or_default())
    }

    /// Sends all queries, then waits.
    async fn rows_of(
        &self,
        action: &'static str,
        queries: Vec<(Statement, Vec<Value<'static>>)>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let mut sent = Vec::with_capacity(queries.len());
        for (statement, values) in queries {
            let client = self.client()?;
            let mut query: QueryFuture<Vec<tokio_postgres::Row>> =
                Box::pin(async move { client.query(&statement, &parameters(&values)).await });
            let answered = send(&mut query).await;
            sent.push((query, answered));
        }
        self.wait().await?;
        let mut found = Vec::with_capacity(sent.len());
        for (query, answered) in sent {
            let answered = match answered {
                Some(answered) => answered,
                None => query.await,
            };
            let rows = answered.and_then(|rows| rows.iter().map(row).collect());
            found.push(rows.map_err(|error| self.failed(action, &error))?);
        }
        Ok(found)
    }

    async fn changes(
        &self,
        action: &'static str,
        sql: &str,
        values: Vec<Value<'static>>,
    ) -> Result<QueryFuture<u64>, StoreError> {
        let (statement, client) = (self.prepare(action, sql, true).await?, self.client()?);
        Ok(Box::pin(async move { client.execute(&statement, &parameters(&values)).await }))
    }

    /// Commits on success, and rolls back otherwise.
    pub async fn finish<T>(mut self, outcome: Result<T, StoreError>) -> Attempt<T> {
        let value = match outcome {
            Ok(value) => value,
            Err(error) => {
                let repeatable = self.is_repeatable.load(Ordering::Relaxed);
                self.unanswered().clear();
                if self.send_text("roll back", "ROLLBACK").await.is_ok() && self.answers().await.is_ok() {
                    self.client = None;
                }
                return if repeatable { Attempt::Again(error) } else { Attempt::Done(Err(error)) };
            }
        };
        let sent = self.send_text("commit", "COMMIT").await;
        if self.mode != Mode::Write {
            // The data is complete, even if the connection is lost before the response, which is not awaited.
            self.unanswered().clear();
            if sent.is_ok() {
                self.client = None;
            }
            return Attempt::Done(Ok(value));
        }
        let committed = match sent {
            Ok(()) => self.wait().await,
            Err(error) => Err(error),
        };
        match committed {
            Ok(()) => {
                self.client = None;
                Attempt::Done(Ok(value))
            }
            Err(StoreError::Unavailable { cause, action, reason }) => {
                // The server may have committed before the connection was lost.
                let reason = format!("{reason}; it is not known whether the last change was recorded");
                Attempt::Done(Err(StoreError::Unavailable { cause, action, reason }))
            }
            Err(error) => {
                // A transaction with a failed statement is rolled back by its commit.
                self.client = None;
                let repeatable = self.is_repeatable.load(Ordering::Relaxed);
                if repeatable { Attempt::Again(error) } else { Attempt::Done(Err(error)) }
            }
        }
    }
}

/// Maximum time for rolling back a dropped transaction; then its connection is closed.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(2);

/// Dropping an open transaction rolls it back. Waits for events are dropped all the time, and a new connection costs the
/// server more than many transactions, because it prepares every statement again.
impl Drop for Transaction {
    fn drop(&mut self) {
        self.unanswered().clear();
        let Some(client) = self.client.take().and_then(Arc::into_inner) else { return };
        let Ok(runtime) = Handle::try_current() else { return drop(Object::take(client)) };
        runtime.spawn(async move {
            let rolled_back = tokio::time::timeout(ROLLBACK_TIMEOUT, client.batch_execute("ROLLBACK")).await;
            if !matches!(rolled_back, Ok(Ok(()))) {
                drop(Object::take(client));
            }
        });
    }
}

impl Tx for Transaction {
    const POSTGRES: bool = true;

    async fn now(&self) -> Result<ClockReading, StoreError> {
        if self.now.get().is_none() {
            self.wait().await?;
        }
        self.known_now().ok_or_else(|| crate::sql::failed("use the store", &"the clock was not read"))
    }

    fn known_now(&self) -> Option<ClockReading> {
        self.now.get().map(|wall_ms| ClockReading { wall_ms: *wall_ms, boot: None })
    }

    fn event_ms(&self, now_ms: i64) -> i64 {
        self.shared.latest_event_ms.fetch_max(now_ms, Ordering::Relaxed).max(now_ms)
    }

    fn query(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + Send {
        self.rows(action, sql, owned(values), true)
    }

    async fn query_all(
        &self,
        action: &'static str,
        queries: &[(&str, &[Value<'_>])],
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let mut prepared = Vec::with_capacity(queries.len());
        for (sql, values) in queries {
            prepared.push((self.prepare(action, sql, true).await?, owned(values)));
        }
        self.rows_of(action, prepared).await
    }

    fn query_once(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + Send {
        self.rows(action, sql, owned(values), false)
    }

    async fn execute(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        let mut sent = self.changes(action, sql, owned(values)).await?;
        let answered = send(&mut sent).await;
        self.wait().await?;
        let answered = match answered {
            Some(answered) => answered,
            None => sent.await,
        };
        answered.map_err(|error| self.failed(action, &error))
    }

    async fn post(&self, action: &'static str, sql: &str, values: &[Value<'_>]) -> Result<(), StoreError> {
        let sent = self.changes(action, sql, owned(values)).await?;
        self.start(action, sent).await
    }

    async fn reserve_events(&self) -> Result<(), StoreError> {
        self.records_events.store(true, Ordering::Relaxed);
        self.post("number events", RESERVE, &[]).await
    }

    fn locking(&self) -> &'static str {
        if self.mode == Mode::Write { " FOR NO KEY UPDATE" } else { "" }
    }
}

fn owned(values: &[Value<'_>]) -> Vec<Value<'static>> {
    values.iter().cloned().map(Value::into_owned).collect()
}

fn parameters<'v>(values: &'v [Value<'static>]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &'v (dyn ToSql + Sync)).collect()
}

fn row(found: &tokio_postgres::Row) -> Result<Row, tokio_postgres::Error> {
    let column = |(index, column): (usize, &tokio_postgres::Column)| {
        let value: Option<Value<'static>> = match *column.type_() {
            Type::INT8 => found.try_get::<_, Option<i64>>(index)?.map(Value::Int),
            Type::INT4 => found.try_get::<_, Option<i32>>(index)?.map(|n| Value::Int(n.into())),
            Type::BOOL => found.try_get::<_, Option<bool>>(index)?.map(Value::Bool),
            Type::FLOAT8 => found.try_get::<_, Option<f64>>(index)?.map(Value::Real),
            _ => found.try_get::<_, Option<String>>(index)?.map(Value::from),
        };
        Ok(value.unwrap_or(Value::Null))
    };
    found.columns().iter().enumerate().map(column).collect::<Result<_, _>>().map(Row)
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self, ty) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Bool(value), &Type::INT8) => i64::from(*value).to_sql(ty, out),
            (Self::Bool(value), &Type::BOOL) => value.to_sql(ty, out),
            (Self::Int(number), &Type::INT8) => number.to_sql(ty, out),
            (Self::Int(number), &Type::FLOAT8) => (*number as f64).to_sql(ty, out),
            (Self::Real(number), &Type::FLOAT8) => number.to_sql(ty, out),
            (Self::Text(text), &Type::TEXT | &Type::VARCHAR | &Type::JSON | &Type::NAME | &Type::UNKNOWN) => {
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
            _ => Err(format!("a parameter of a type other than {ty}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Returns whether an error, or its cause, is one of the connection.
pub(super) fn is_of_connection(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || error.source().is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

/// Runs `$body` in a transaction of this mode, and retries it if the database requests that.
macro_rules! in_transaction {
    ($store:expr, $mode:expr, $tx:ident => $body:expr) => {{
        let mut attempts = $crate::postgres::Attempts::default();
        loop {
            let transaction = match $store.begin($mode).await {
                Ok(transaction) => transaction,
                Err(error) => match attempts.again(error).await {
                    Some(error) => break Err(error),
                    None => continue,
                },
            };
            let outcome = {
                let $tx = &transaction;
                async { $body }.await
            };
            match $store.finish(transaction, outcome).await {
                $crate::postgres::tx::Attempt::Done(result) => break result,
                $crate::postgres::tx::Attempt::Again(error) => {
                    if let Some(error) = attempts.again(error).await {
                        break Err(error);
                    }
                }
            }
        }
    }};
}
pub(super) use in_transaction;

macro_rules! write_tx {
    ($store:expr, $tx:ident => $body:expr) => {
        $store.noted($crate::postgres::tx::in_transaction!($store, $crate::postgres::tx::Mode::Write, $tx => $body))
    };
}
pub(super) use write_tx;

macro_rules! read_tx {
    ($store:expr, $tx:ident => $body:expr) => {
        $crate::postgres::tx::in_transaction!($store, $crate::postgres::tx::Mode::Read, $tx => $body)
    };
}
pub(super) use read_tx;

macro_rules! follow_tx {
    ($store:expr, $tx:ident => $body:expr) => {
        $crate::postgres::tx::in_transaction!($store, $crate::postgres::tx::Mode::Follow, $tx => $body)
    };
}
pub(super) use follow_tx;
