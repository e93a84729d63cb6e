//! One attempt of one call, with a timeout and isolated from its run: a caller that hangs or panics fails its step, not
//! the run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use fail::fail_point;
use futures::FutureExt as _;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::call::{Call, CallError, CallFailure, Caller, Reply};

/// Additional time before this timeout fires, so that the caller's own timeout fires first: its error is more specific.
const MARGIN: Duration = Duration::from_millis(250);
/// How long a timed-out call may take to terminate its children.
const GRACE: Duration = Duration::from_secs(5);

/// The result of a finished attempt.
#[derive(Debug)]
pub(super) struct AttemptResult {
    pub path: String,
    pub result: Result<Reply, CallError>,
}

/// Cancellation tokens of an attempt.
#[derive(Debug, Clone)]
pub(super) struct CancelTokens {
    pub call: CancellationToken,
    /// Cancels the backoff before the call.
    pub pause: CancellationToken,
}

/// Waits for `backoff`, then calls. Panics of the caller are caught and become errors.
pub(super) async fn run_attempt(
    caller: Arc<dyn Caller>,
    call: Call,
    path: String,
    obstacle: Option<CallError>,
    backoff: Duration,
    stops: CancelTokens,
) -> AttemptResult {
    if let Some(error) = obstacle {
        return AttemptResult { path, result: Err(error) };
    }
    if !backoff.is_zero() {
        tokio::select! {
            () = sleep(backoff) => {}
            () = stops.call.cancelled() => return AttemptResult { path, result: Err(stopped()) },
            () = stops.pause.cancelled() => return AttemptResult { path, result: Err(stopped()) },
        }
    }
    fail_point!("call-before");
    let result = AssertUnwindSafe(bounded(caller, call, stops.call)).catch_unwind().await;
    fail_point!("call-after");
    let result = result.unwrap_or_else(|_| {
        Err(CallError::new(CallFailure::RuntimeError, "internal error in the binding; see the log"))
    });
    AttemptResult { path, result }
}

fn stopped() -> CallError {
    CallError::new(CallFailure::Canceled, "stopped before the next attempt")
}

async fn bounded(caller: Arc<dyn Caller>, call: Call, stop: CancellationToken) -> Result<Reply, CallError> {
    let limit = call.timeout;
    let stop = stop.child_token();
    let mut work = caller.call(call, stop.clone());
    if let Ok(result) = timeout(limit + MARGIN, &mut work).await {
        return result;
    }
    stop.cancel();
    // The children are terminated before this returns, or when the future is dropped here.
    if let Ok(Err(error)) = timeout(GRACE, &mut work).await
        && error.code == CallFailure::StepTimeout
    {
        return Err(error);
    }
    let message = format!("timed out after {} s (timeout_seconds of its step)", limit.as_secs_f64());
    Err(CallError::new(CallFailure::StepTimeout, message))
}
