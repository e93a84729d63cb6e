//! Blocking and long work on other threads, which counts against the limits of its caller until it has ended.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::Error;
use crate::operations::Permit;

tokio::task_local! {
    /// The permit of the call that the task executes.
    static PERMIT: Arc<Permit>;
}

/// Executes a call that holds a permit until it has ended or is dropped, and until the work that it started with
/// `spawn_blocking` has ended.
pub async fn with_permit<T>(permit: Option<Permit>, call: impl Future<Output = T>) -> T {
    let Some(permit) = permit else { return call.await };
    PERMIT.scope(Arc::new(permit), call).await
}

/// Returns whether the call that the task executes counts against limits of its caller.
pub fn is_limited() -> bool {
    PERMIT.try_with(|_| ()).is_ok()
}

/// Starts work on a blocking thread. Nothing can stop it from outside, so it holds the permit of the call that starts it
/// even if the caller is gone.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let permit = PERMIT.try_with(Arc::clone).ok();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    })
}

/// Runs blocking or long work with [`spawn_blocking`].
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(Error::from_join_error(&error)))
}
