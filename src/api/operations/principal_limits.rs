//! Limits of what each principal does at the same time, so that a caller with many requests leaves threads and memory to
//! others. Without authentication there is no limit per principal.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument as _;

use super::{Caller, Operation};
use crate::{Code, Error};

/// A limit of one principal.
struct Limit {
    what: &'static str,
    running: usize,
    /// Maximum number that wait: each holds its arguments.
    waiting: usize,
}

const CALLS: Limit = Limit { what: "requests", running: 16, waiting: 64 };
const MEASUREMENTS: Limit = Limit { what: "measurements", running: 1, waiting: 8 };
const SEARCHES: Limit = Limit { what: "searches of runs", running: 1, waiting: 16 };
/// Calls that wait for runs or events: workbenches and scripts may share a key.
const WAITS: Limit = Limit { what: "requests that wait", running: 64, waiting: 64 };
const RESPONSES: Limit = Limit { what: "responses", running: 32, waiting: 64 };
const LARGE_BODIES: Limit = Limit { what: "requests with large bodies", running: 2, waiting: 32 };

/// Requests with large bodies that wait for runs or for measurements, and keep the body for as long.
const LARGE_WAITS: Limit = Limit { what: "requests with large bodies that wait", running: 4, waiting: 0 };

/// Maximum number of requests with large bodies of all callers: a parsed body may take 25 times its size.
static ALL_LARGE_BODIES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(8)));

/// By limit and name of the principal; as many as there are keys.
type Semaphores = HashMap<(&'static str, String), Arc<Semaphore>>;
static SEMAPHORES: LazyLock<Mutex<Semaphores>> = LazyLock::new(Mutex::default);

impl Limit {
    async fn place(&self, caller: &Caller) -> Result<Option<Place>, Error> {
        let Some(principal) = &caller.principal else { return Ok(None) };
        Ok(Some(Place(vec![self.acquire(&principal.name).await?])))
    }

    /// Waits until the principal is below the limit.
    ///
    /// # Errors
    /// Returns `rate_limited` if too many wait.
    async fn acquire(&self, principal: &str) -> Result<OwnedSemaphorePermit, Error> {
        let semaphore = {
            let mut all = SEMAPHORES.lock().unwrap_or_else(PoisonError::into_inner);
            let semaphore = all
                .entry((self.what, principal.to_owned()))
                .or_insert_with(|| Arc::new(Semaphore::new(self.running)));
            // The map has one reference; whatever runs or waits has another.
            if Arc::strong_count(semaphore) > self.running + self.waiting {
                let message = format!(
                    "{principal} has {} {} in progress and {} more; try again later",
                    self.running, self.what, self.waiting
                );
                return Err(Error::new(Code::RateLimited, message));
            }
            Arc::clone(semaphore)
        };
        semaphore.acquire_owned().await.map_err(|error| Error::new(Code::InternalError, error.to_string()))
    }
}

/// The place of a call among those of its principal; free again when it is dropped.
#[derive(Debug)]
pub struct Place(#[allow(dead_code, reason = "held")] Vec<OwnedSemaphorePermit>);

/// Waits for a place for a call.
///
/// # Errors
/// Returns `rate_limited` if too many calls of the principal wait.
pub(super) async fn place(
    operation: &Operation,
    caller: &Caller,
    arguments: &Value,
) -> Result<Option<Place>, Error> {
    let Some(principal) = &caller.principal else { return Ok(None) };
    let is_given = |name: &str| {
        arguments.get(name).is_some_and(|value| value.as_str().is_some_and(|text| !text.is_empty()))
    };
    let waits_for_events = || arguments.get("wait_ms").and_then(Value::as_u64).is_some_and(|ms| ms > 0);
    if operation.waits || waits_for_events() {
        return WAITS.place(caller).await;
    }
    let mut permits = Vec::new();
    if operation.measures {
        permits.push(MEASUREMENTS.acquire(&principal.name).await?);
    }
    if operation.name.starts_with("run.") && (is_given("where") || is_given("text")) {
        permits.push(SEARCHES.acquire(&principal.name).await?);
    }
    permits.push(CALLS.acquire(&principal.name).await?);
    Ok(Some(Place(permits)))
}

/// Waits for a place for a call that is not an operation.
///
/// # Errors
/// Returns `rate_limited` if too many requests of the principal wait.
pub async fn call_place(caller: &Caller) -> Result<Option<Place>, Error> {
    CALLS.place(caller).await
}

/// Waits for a place for a response, to be held until it is sent: a client that does not read it keeps it in memory.
///
/// # Errors
/// Returns `rate_limited` if too many requests of the principal wait.
pub async fn response_place(caller: &Caller) -> Result<Option<Place>, Error> {
    RESPONSES.place(caller).await
}

/// Runs a call to its end, even if its caller is gone: work on other threads cannot be stopped, and until it has ended
/// its place must not be taken by another call.
///
/// # Errors
/// Returns the errors of the call, and `internal_error` if it panics.
pub(super) async fn complete<T: Send + 'static>(
    place: Option<Place>,
    call: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let Some(place) = place else { return call.await };
    let call = async move {
        let answer = call.await;
        drop(place);
        answer
    };
    tokio::spawn(call.in_current_span()).await.unwrap_or_else(|error| {
        tracing::error!("a call failed: {error}");
        Err(Error::new(Code::InternalError, "internal error; see the log for this trace id"))
    })
}

/// Permits another large body to be kept for as long as a run or a measurement takes.
///
/// # Errors
/// Returns `rate_limited` if the principal has too many.
pub async fn large_wait(caller: &Caller) -> Result<Option<Arc<LargeBody>>, Error> {
    let Some(principal) = &caller.principal else { return Ok(None) };
    Ok(Some(Arc::new(LargeBody(vec![LARGE_WAITS.acquire(&principal.name).await?]))))
}

/// Permission to hold a large body in memory, until it is dropped.
#[derive(Debug)]
pub struct LargeBody(#[allow(dead_code, reason = "held")] Vec<OwnedSemaphorePermit>);

/// Waits until another large body may be held in memory.
///
/// # Errors
/// Returns `rate_limited` if too many large bodies of the principal wait.
pub async fn large_body(caller: &Caller) -> Result<Arc<LargeBody>, Error> {
    let mut permits = Vec::new();
    if let Some(principal) = &caller.principal {
        permits.push(LARGE_BODIES.acquire(&principal.name).await?);
    }
    // The semaphore is never closed.
    permits.extend(Arc::clone(&ALL_LARGE_BODIES).acquire_owned().await);
    Ok(Arc::new(LargeBody(permits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit { what: "tests", running: 2, waiting: 3 };

    #[tokio::test]
    async fn a_principal_waits_for_its_own_calls_only() {
        let held = [LIMIT.acquire("ana").await.unwrap(), LIMIT.acquire("ana").await.unwrap()];
        let _other = LIMIT.acquire("bo").await.unwrap();
        let mut waiting: Vec<_> = (0..LIMIT.waiting).map(|_| Box::pin(LIMIT.acquire("ana"))).collect();
        for one in &mut waiting {
            assert!(futures::poll!(one).is_pending());
        }
        assert_eq!(LIMIT.acquire("ana").await.unwrap_err().code, Code::RateLimited);
        drop(held);
        for one in waiting {
            drop(one.await.unwrap());
        }
        drop(LIMIT.acquire("ana").await.expect("callers that are gone do not count"));
    }

    #[tokio::test]
    async fn a_call_whose_caller_is_gone_keeps_its_place_until_it_has_ended() {
        const ONE: Limit = Limit { what: "tests of one", running: 1, waiting: 1 };
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let place = Place(vec![ONE.acquire("ana").await.unwrap()]);
        let mut call = Box::pin(complete(Some(place), async move {
            ended.await.ok();
            Ok(())
        }));
        assert!(futures::poll!(&mut call).is_pending());
        drop(call);
        let mut next = Box::pin(ONE.acquire("ana"));
        assert!(futures::poll!(&mut next).is_pending());
        end.send(()).unwrap();
        drop(next.await.unwrap());
    }
}
