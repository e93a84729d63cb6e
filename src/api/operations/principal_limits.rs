//! Limits of what each principal does at the same time, so that a caller with many requests leaves threads and memory to
//! others. Without authentication there is no limit per principal.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument as _;

use super::{Caller, Operation};
use crate::work::with_permit;
use crate::{Code, Error};
use skills_base::sync::MutexExt as _;

/// A limit of one principal.
struct Limit {
    what: &'static str,
    running: usize,
    /// Maximum number that wait: each holds its arguments.
    waiting: usize,
}

const CALLS: Limit = Limit { what: "requests", running: 16, waiting: 64 };
const MEASUREMENTS: Limit = Limit { what: "measurements", running: 1, waiting: 8 };
const CLIENT_VIEWS: Limit = Limit { what: "views of clients", running: 2, waiting: 32 };
/// Findings of the linter and quality states, for which the complete catalog is checked.
const CATALOG_REPORTS: Limit = Limit { what: "reports about the catalog", running: 2, waiting: 32 };
const SEARCHES: Limit = Limit { what: "searches of runs", running: 1, waiting: 16 };
/// Rankings with more than [`LONG_RANKING`] results, whose breakdowns take up to 80 MB, and of more than
/// [`LONG_REQUEST_BYTES`], which may take a second each.
const LONG_RANKINGS: Limit = Limit { what: "long rankings", running: 2, waiting: 32 };
/// Number of results above which a ranking is long.
const LONG_RANKING: u64 = 100;
/// Size of the request and its filter in bytes above which a ranking is long.
const LONG_REQUEST_BYTES: usize = 500;
/// Calls that wait for runs or events: workbenches and scripts may share a key.
const WAITS: Limit = Limit { what: "requests that wait", running: 64, waiting: 64 };
const RESPONSES: Limit = Limit { what: "responses", running: 32, waiting: 64 };
/// Separate, because a call that waits holds its permit for as long.
const WAITED_RESPONSES: Limit = Limit { what: "responses to requests that wait", running: 64, waiting: 64 };
/// Event streams, each of which holds a connection.
const STREAMS: Limit = Limit { what: "event streams", running: 1024, waiting: 0 };
/// Pages of event streams. Streams that catch up at the same time wait for each other.
const EVENT_PAGES: Limit = Limit { what: "pages of event streams", running: 32, waiting: 4096 };
/// Responses of more than [`LARGE_RESPONSE_BYTES`]. Those that wait are in memory already, so few may.
const LARGE_RESPONSES: Limit = Limit { what: "large responses", running: 8, waiting: 8 };
/// Responses of more than [`HUGE_RESPONSE_BYTES`].
const HUGE_RESPONSES: Limit = Limit { what: "very large responses", running: 2, waiting: 0 };
/// Reads of complete runs and sessions, or of thousands of runs: each may take 100 MB.
const LARGE_READS: Limit = Limit { what: "reads of complete runs and sessions", running: 4, waiting: 60 };
/// Number of runs above which a page of a list is a large read: each may have 15 KB.
const LONG_RUN_LIST: u64 = 100;
/// Complete runs that are read to be returned to a caller that waited for them, found them by an idempotency key, or sent
/// them a command. Separate, because these calls hold permits that readers wait for. All calls in progress may wait: they are limited
/// themselves, and the result of a change is not withheld.
const RETURNED_RUNS: Limit = Limit { what: "returned runs", running: 4, waiting: 4096 };
/// Complete results of tools, which the protocol keeps as a tree and as text.
const COMPLETE_RESULTS: Limit = Limit { what: "complete results", running: 2, waiting: 32 };
/// Forks and replays, each of which copies the results of a run, up to 60 MB, while other writes wait.
const FORKS: Limit = Limit { what: "forks and replays", running: 1, waiting: 16 };
/// Assignments, each of which writes the row of a run again, up to 60 MB, while other writes wait.
const ASSIGNMENTS: Limit = Limit { what: "assignments", running: 1, waiting: 64 };
const LARGE_BODIES: Limit = Limit { what: "requests with large bodies", running: 2, waiting: 32 };

/// Requests with large bodies that wait for runs or for measurements, and keep the body for as long.
const LARGE_WAITS: Limit = Limit { what: "requests with large bodies that wait", running: 4, waiting: 0 };

/// Size of a body in bytes from which it is large: parsed off the async threads, by a limited number of requests at a
/// time.
pub const LARGE_BODY_BYTES: u64 = 64 << 10;

/// Size of a response in bytes from which fewer of them are kept at a time for a client that does not read them.
pub const LARGE_RESPONSE_BYTES: u64 = 1 << 20;

/// Size of a response in bytes from which very few of them are kept at a time.
const HUGE_RESPONSE_BYTES: u64 = 16 << 20;

/// Maximum number of requests with large bodies of all callers: a parsed body may take 25 times its size.
static ALL_LARGE_BODIES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(8)));

/// Maximum number of forks and replays of all principals.
static ALL_FORKS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(2)));

/// By limit and name of the principal; as many as there are keys.
type Semaphores = HashMap<(&'static str, String), Arc<Semaphore>>;
static SEMAPHORES: LazyLock<Mutex<Semaphores>> = LazyLock::new(Mutex::default);

impl Limit {
    /// Same as [`Self::acquire`] for a caller; `None` without authentication.
    async fn permit(&self, caller: &Caller) -> Result<Option<Permit>, Error> {
        let Some(principal) = &caller.principal else { return Ok(None) };
        Ok(Some(vec![self.acquire(&principal.name).await?].into()))
    }

    /// Waits until the principal is below the limit.
    ///
    /// # Errors
    /// Returns `rate_limited` if too many wait.
    async fn acquire(&self, principal: &str) -> Result<OwnedSemaphorePermit, Error> {
        let semaphore = {
            let mut all = SEMAPHORES.locked();
            let semaphore = all
                .entry((self.what, principal.to_owned()))
                .or_insert_with(|| Arc::new(Semaphore::new(self.running)));
            // The map has one reference; whatever runs or waits has another.
            if Arc::strong_count(semaphore) > self.running + self.waiting {
                let queued =
                    if self.waiting > 0 { format!(" and {} queued", self.waiting) } else { String::new() };
                let message = format!(
                    "{principal} has {} {} in progress{queued}; try again later",
                    self.running, self.what
                );
                return Err(Error::new(Code::RateLimited, message));
            }
            Arc::clone(semaphore)
        };
        semaphore.acquire_owned().await.map_err(|error| Error::new(Code::InternalError, error.to_string()))
    }
}

/// Counts among what its principal does at the same time until it is dropped.
#[derive(Debug)]
pub struct Permit {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl From<Vec<OwnedSemaphorePermit>> for Permit {
    fn from(permits: Vec<OwnedSemaphorePermit>) -> Self {
        Self { _permits: permits }
    }
}

/// What the calls of an operation count as, in addition to [`CALLS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    Request,
    /// One of [`CLIENT_VIEWS`].
    ClientView,
    /// One of [`LARGE_READS`].
    LargeRead,
    /// One of [`FORKS`].
    Fork,
    /// One of [`ASSIGNMENTS`].
    Assignment,
}

/// Waits for the permit of an operation.
///
/// # Errors
/// Returns `rate_limited` if too many calls of the principal wait.
pub(super) async fn operation_permit(
    operation: &Operation,
    caller: &Caller,
    arguments: &Value,
) -> Result<Option<Permit>, Error> {
    // Health checks are open: their callers share one principal, and must not keep each other waiting.
    let Some(principal) = caller.principal.as_ref().filter(|_| operation.scope.is_some()) else {
        return Ok(None);
    };
    let is_given = |name: &str| has_text(arguments, name);
    let waits_for_events = || arguments.get("wait_ms").and_then(Value::as_u64).is_some_and(|ms| ms > 0);
    if operation.waits || waits_for_events() {
        return WAITS.permit(caller).await;
    }
    let mut permits = Vec::new();
    if operation.measures {
        permits.push(MEASUREMENTS.acquire(&principal.name).await?);
    }
    if operation.name.starts_with("run.") && (is_given("where") || is_given("text")) {
        permits.push(SEARCHES.acquire(&principal.name).await?);
    }
    if is_catalog_report(operation.name, arguments) {
        permits.push(CATALOG_REPORTS.acquire(&principal.name).await?);
    }
    if operation.name == "skill.discover" && is_long_ranking(arguments) {
        permits.push(LONG_RANKINGS.acquire(&principal.name).await?);
    }
    let limit = match operation.counts_as {
        CallKind::Request => is_large_read(operation.name, arguments).then_some(LARGE_READS),
        CallKind::ClientView => Some(CLIENT_VIEWS),
        CallKind::LargeRead => Some(LARGE_READS),
        CallKind::Fork => Some(FORKS),
        CallKind::Assignment => Some(ASSIGNMENTS),
    };
    if let Some(limit) = limit {
        permits.push(limit.acquire(&principal.name).await?);
    }
    permits.push(CALLS.acquire(&principal.name).await?);
    if operation.counts_as == CallKind::Fork {
        // Last, so that its holder does not wait for other calls of the same principal. It is never closed.
        permits.extend(Arc::clone(&ALL_FORKS).acquire_owned().await);
    }
    Ok(Some(permits.into()))
}

fn has_text(arguments: &Value, name: &str) -> bool {
    arguments.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}

fn exceeds(arguments: &Value, name: &str, maximum: u64) -> bool {
    arguments.get(name).and_then(Value::as_u64).is_some_and(|number| number > maximum)
}

/// Returns whether these arguments make a large read of an operation that usually is none.
fn is_large_read(operation: &str, arguments: &Value) -> bool {
    match operation {
        "skill.levels" => has_text(arguments, "session_id"),
        // A confirmed script may run for long.
        "session.tool" => !(runs_script(arguments) && has_text(arguments, "inputs_digest")),
        "run.list" => exceeds(arguments, "limit", LONG_RUN_LIST),
        _ => false,
    }
}

/// Returns whether a call checks the complete catalog.
fn is_catalog_report(operation: &str, arguments: &Value) -> bool {
    match operation {
        // Also for the findings of one skill.
        "skill.lint" => true,
        "skill.governance.list" => !has_text(arguments, "skill"),
        _ => false,
    }
}

/// Returns whether a runtime tool is called that runs a script, by one of the forms of its name.
fn runs_script(arguments: &Value) -> bool {
    let tool = arguments.get("tool").and_then(Value::as_str);
    tool.is_some_and(|tool| matches!(tool, "skills.run_script" | "skills_run_script"))
}

fn is_long_ranking(arguments: &Value) -> bool {
    let length = |name: &str| arguments.get(name).and_then(Value::as_str).map_or(0, str::len);
    exceeds(arguments, "limit", LONG_RANKING)
        || length("intent").saturating_add(length("filter")) > LONG_REQUEST_BYTES
}

/// Waits for the permit of a call that is not an operation.
///
/// # Errors
/// Returns `rate_limited` if too many requests of the principal wait.
pub async fn call_permit(caller: &Caller) -> Result<Option<Permit>, Error> {
    CALLS.permit(caller).await
}

/// Runs a call that is not an operation to its end, even if its caller is gone.
///
/// # Errors
/// Returns the errors of the call, `rate_limited` if too many requests of the principal wait, and `internal_error` if it
/// panics.
pub async fn limited_call<T: Send + 'static>(
    caller: &Caller,
    call: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    run(call_permit(caller).await?, false, call).await
}

/// Returns the permit of an event stream, to be held until the stream ends.
///
/// # Errors
/// Returns `rate_limited` if the principal has too many streams.
pub async fn stream_permit(caller: &Caller) -> Result<Option<Permit>, Error> {
    STREAMS.permit(caller).await
}

/// Waits for the permit of a response, to be held until it is sent: a client that does not read it keeps it in memory.
/// Responses to requests that wait for runs or events count separately.
///
/// # Errors
/// Returns `rate_limited` if too many requests of the principal wait.
pub async fn response_permit(caller: &Caller, waits: bool) -> Result<Option<Permit>, Error> {
    if waits { WAITED_RESPONSES } else { RESPONSES }.permit(caller).await
}

/// Waits for the permit of a response that is large, to be held until it is sent.
///
/// # Errors
/// Returns `rate_limited` if too many large responses of the principal are not sent.
pub async fn large_response_permit(caller: &Caller, bytes: u64) -> Result<Option<Permit>, Error> {
    let Some(principal) = &caller.principal else { return Ok(None) };
    let mut permits = Vec::new();
    if bytes > HUGE_RESPONSE_BYTES {
        permits.push(HUGE_RESPONSES.acquire(&principal.name).await?);
    }
    permits.push(LARGE_RESPONSES.acquire(&principal.name).await?);
    Ok(Some(permits.into()))
}

/// Waits for the permit of a read of a complete run that is not an operation.
///
/// # Errors
/// Returns `rate_limited` if too many large reads of the principal wait.
pub async fn large_read_permit(caller: &Caller) -> Result<Option<Permit>, Error> {
    LARGE_READS.permit(caller).await
}

/// Waits for the permit to read a complete run that a call returns.
///
/// # Errors
/// Returns `rate_limited` if too many calls of the principal wait.
pub(super) async fn returned_run_permit(principal: &str) -> Result<Permit, Error> {
    Ok(vec![RETURNED_RUNS.acquire(principal).await?].into())
}

/// Waits for the permit of a complete result of a tool, to be held from before it is computed until it is sent.
///
/// # Errors
/// Returns `rate_limited` if too many complete results of the principal wait.
pub async fn complete_result_permit(caller: &Caller) -> Result<Option<Permit>, Error> {
    COMPLETE_RESULTS.permit(caller).await
}

/// Waits for the permit of a page of an event stream, to be held until it is sent.
///
/// # Errors
/// Returns `rate_limited` if too many streams of the principal wait.
pub async fn event_page_permit(caller: &Caller) -> Result<Option<Permit>, Error> {
    EVENT_PAGES.permit(caller).await
}

/// Waits until another body of more than [`LARGE_BODY_BYTES`] may be held in memory.
///
/// # Errors
/// Returns `rate_limited` if too many large bodies of the principal wait.
pub async fn large_body_permit(caller: &Caller) -> Result<Permit, Error> {
    let mut permits = Vec::new();
    if let Some(principal) = &caller.principal {
        permits.push(LARGE_BODIES.acquire(&principal.name).await?);
    }
    // The semaphore is never closed.
    permits.extend(Arc::clone(&ALL_LARGE_BODIES).acquire_owned().await);
    Ok(permits.into())
}

/// Permits another large body to be kept for as long as a run or a measurement takes.
///
/// # Errors
/// Returns `rate_limited` if the principal has too many.
pub async fn large_wait_permit(caller: &Caller) -> Result<Option<Permit>, Error> {
    LARGE_WAITS.permit(caller).await
}

/// Runs a call. One that has a permit is run to its end even if its caller is gone, unless it can be canceled. Work on
/// other threads cannot be stopped: until it has ended, its permit is not given to another call.
pub(super) async fn run<T: Send + 'static>(
    permit: Option<Permit>,
    is_cancelable: bool,
    call: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let is_dropped = permit.is_none() || is_cancelable;
    let call = with_permit(permit, call);
    if is_dropped {
        return call.await;
    }
    tokio::spawn(call.in_current_span()).await.unwrap_or_else(|error| {
        tracing::error!("a call failed: {error}");
        Err(Error::new(Code::InternalError, "internal error; see the log for this trace id"))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::super::Principal;
    use super::*;
    use crate::work::run_blocking;

    const LIMIT: Limit = Limit { what: "tests", running: 2, waiting: 3 };

    #[tokio::test]
    async fn a_principal_waits_for_its_own_calls_only() {
        let permits = [LIMIT.acquire("ana").await.unwrap(), LIMIT.acquire("ana").await.unwrap()];
        let _other = LIMIT.acquire("bo").await.unwrap();
        let mut waiting: Vec<_> = (0..LIMIT.waiting).map(|_| Box::pin(LIMIT.acquire("ana"))).collect();
        for one in &mut waiting {
            assert!(futures::poll!(one).is_pending());
        }
        assert_eq!(LIMIT.acquire("ana").await.unwrap_err().code, Code::RateLimited);
        drop(permits);
        for one in waiting {
            drop(one.await.unwrap());
        }
        drop(LIMIT.acquire("ana").await.expect("callers that are gone do not count"));
    }

    #[tokio::test]
    async fn streams_are_refused_at_the_limit() {
        let principal = Principal { name: "streams".to_owned(), scopes: BTreeSet::new() };
        let caller = Caller { principal: Some(principal), ..Caller::anyone() };
        let mut streams = Vec::new();
        for _ in 0..STREAMS.running {
            streams.push(stream_permit(&caller).await.unwrap());
        }
        assert_eq!(stream_permit(&caller).await.unwrap_err().code, Code::RateLimited);
        drop(streams.pop());
        assert!(stream_permit(&caller).await.is_ok());
    }

    /// Drops a call that has started, and asserts that its permit is free only after `end` has ended its work.
    async fn assert_counts_until_its_end<T: Send + 'static>(
        limit: &'static Limit,
        is_cancelable: bool,
        call: impl Future<Output = Result<T, Error>> + Send + 'static,
        end: impl FnOnce(),
    ) {
        let permit = vec![limit.acquire("ana").await.unwrap()].into();
        let mut call = Box::pin(run(Some(permit), is_cancelable, call));
        assert!(futures::poll!(&mut call).is_pending());
        drop(call);
        let mut next = Box::pin(limit.acquire("ana"));
        assert!(futures::poll!(&mut next).is_pending());
        end();
        drop(next.await.unwrap());
    }

    #[tokio::test]
    async fn abandoned_call_counts_until_it_ends() {
        static ONE: Limit = Limit { what: "tests of one", running: 1, waiting: 1 };
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let call = async move {
            ended.await.ok();
            Ok(())
        };
        assert_counts_until_its_end(&ONE, false, call, || end.send(()).unwrap()).await;
    }

    #[tokio::test]
    async fn work_of_a_canceled_call_counts_until_it_ends() {
        static ONE: Limit = Limit { what: "tests of work", running: 1, waiting: 1 };
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let call = async { run_blocking(move || Ok(ended.recv().ok())).await };
        assert_counts_until_its_end(&ONE, true, call, || end.send(()).unwrap()).await;
    }

    #[tokio::test]
    async fn two_long_rankings_of_a_principal_are_computed_at_a_time() {
        let discover = super::super::operation("skill.discover").unwrap();
        let principal = Principal { name: "rankings".to_owned(), scopes: BTreeSet::new() };
        let caller = Caller { principal: Some(principal), ..Caller::anyone() };
        let permit = async |intent: &str, limit: u64| {
            operation_permit(discover, &caller, &json!({ "intent": intent, "limit": limit })).await
        };
        let long = "a".repeat(LONG_REQUEST_BYTES + 1);
        let (short, long) = ("add numbers", long.as_str());
        let _running = [permit(short, LONG_RANKING + 1).await.unwrap(), permit(long, 1).await.unwrap()];
        assert!(futures::poll!(Box::pin(permit(short, 1000))).is_pending());
        assert!(futures::poll!(Box::pin(permit(long, LONG_RANKING))).is_pending());
        assert!(permit(short, LONG_RANKING).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn reads_of_sessions_are_large_reads() {
        let principal = Principal { name: "sessions".to_owned(), scopes: BTreeSet::new() };
        let caller = Caller { principal: Some(principal), ..Caller::anyone() };
        let permit = async |name: &str, arguments: Value| {
            operation_permit(super::super::operation(name).unwrap(), &caller, &arguments).await
        };
        let _running = [
            permit("session.list", json!({})).await.unwrap(),
            permit("session.tool", json!({ "session_id": "a", "tool": "skills.load" })).await.unwrap(),
            permit("session.configure", json!({ "session_id": "a" })).await.unwrap(),
            permit("skill.levels", json!({ "skill_id": "a", "session_id": "a" })).await.unwrap(),
        ];
        let say = json!({ "session_id": "a", "speaker": "user", "text": "x" });
        assert!(futures::poll!(Box::pin(permit("session.say", say))).is_pending());
        let confirmed = |tool: &str| json!({ "session_id": "a", "tool": tool, "inputs_digest": "d" });
        assert!(futures::poll!(Box::pin(permit("session.tool", confirmed("skills.load")))).is_pending());
        for tool in ["skills.run_script", "skills_run_script"] {
            assert!(permit("session.tool", confirmed(tool)).await.unwrap().is_some(), "it may run for long");
        }
        assert!(permit("skill.levels", json!({ "skill_id": "a" })).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn four_long_lists_of_runs_are_read_at_a_time() {
        let list = super::super::operation("run.list").unwrap();
        let principal = Principal { name: "lists of runs".to_owned(), scopes: BTreeSet::new() };
        let caller = Caller { principal: Some(principal), ..Caller::anyone() };
        let permit = async |limit: u64| operation_permit(list, &caller, &json!({ "limit": limit })).await;
        let mut running = Vec::new();
        for _ in 0..LARGE_READS.running {
            running.push(permit(LONG_RUN_LIST + 1).await.unwrap());
        }
        assert!(futures::poll!(Box::pin(permit(1000))).is_pending());
        assert!(permit(LONG_RUN_LIST).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn two_catalog_reports_of_a_principal_are_in_progress() {
        let caller = caller("reports");
        let permit = async |name: &str, arguments: Value| {
            operation_permit(super::super::operation(name).unwrap(), &caller, &arguments).await
        };
        let (lint, governance) = ("skill.lint", "skill.governance.list");
        let _running = [
            permit(lint, json!({ "rule": ["hooks"] })).await.unwrap(),
            permit(governance, json!({ "limit": 5 })).await.unwrap(),
        ];
        assert!(futures::poll!(Box::pin(permit(lint, json!({ "skill": "a" })))).is_pending());
        assert!(futures::poll!(Box::pin(permit(governance, json!({ "state": ["draft"] })))).is_pending());
        assert!(permit(governance, json!({ "skill": "a" })).await.unwrap().is_some());
    }

    fn caller(name: &str) -> Caller {
        let principal = Principal { name: name.to_owned(), scopes: BTreeSet::new() };
        Caller { principal: Some(principal), ..Caller::anyone() }
    }

    /// Waits for the permit of an operation on a run.
    async fn run_permit(name: &str, caller: &Caller) -> Option<Permit> {
        let operation = super::super::operation(name).unwrap();
        operation_permit(operation, caller, &json!({ "run_id": "r" })).await.unwrap()
    }

    #[tokio::test]
    async fn a_principal_assigns_one_run_at_a_time() {
        let [ana, bo] = ["ana's assignments", "bo's assignments"].map(caller);
        let first = run_permit("run.assign", &ana).await;
        let mut second = Box::pin(run_permit("run.assign", &ana));
        assert!(futures::poll!(&mut second).is_pending());
        assert!(run_permit("run.assign", &bo).await.is_some());
        assert!(run_permit("run.cancel", &ana).await.is_some(), "other commands do not wait");
        drop(first);
        assert!(second.await.is_some());
    }

    #[tokio::test]
    async fn forks_and_replays_wait_for_each_other() {
        let [ana, bo, cy] = ["ana's forks", "bo's forks", "cy's forks"].map(caller);
        let first = run_permit("run.fork", &ana).await;
        assert!(futures::poll!(Box::pin(run_permit("run.replay", &ana))).is_pending(), "one of a principal");
        assert!(run_permit("run.cancel", &ana).await.is_some(), "other commands do not wait");
        let _second = run_permit("run.replay", &bo).await;
        let mut third = Box::pin(run_permit("run.fork", &cy));
        assert!(futures::poll!(&mut third).is_pending(), "two in total");
        drop(first);
        assert!(third.await.is_some());
        let anyone = Caller::anyone();
        assert!(run_permit("run.fork", &anyone).await.is_none());
    }
}
