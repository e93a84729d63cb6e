//! Limits how many complete runs each principal is sent at the same time after it waited for them, found them by an
//! idempotency key, or sent them a command: each may take 100 MB.

use std::sync::{Arc, Mutex};

use super::principal_limits::{Permit, returned_run_permit};
use crate::Error;
use skills_base::sync::MutexExt as _;

tokio::task_local! {
    /// Of the call that the task executes, with the name of its principal.
    static CURRENT: (ReturnedRun, String);
}

/// The permit of a call to read the complete run that it returns, if it has one. It counts until the last copy is
/// dropped, which the caller does when the response is sent.
#[derive(Debug, Clone, Default)]
pub struct ReturnedRun(Arc<Mutex<Option<Permit>>>);

impl ReturnedRun {
    /// Executes a call whose permit is kept here.
    pub(super) async fn scope<T>(self, principal: Option<String>, call: impl Future<Output = T>) -> T {
        match principal {
            Some(principal) => CURRENT.scope((self, principal), call).await,
            None => call.await,
        }
    }

    /// Lets another call of the principal read a run.
    pub fn release(&self) {
        drop(self.0.locked().take());
    }

    fn is_held(&self) -> bool {
        self.0.locked().is_some()
    }
}

/// Waits until the call that the task executes may read the complete run that it returns. Outside of a call of a
/// principal there is no limit.
///
/// # Errors
/// Returns `rate_limited` if more calls of the principal wait than can be in progress.
pub(crate) async fn await_returned_run() -> Result<(), Error> {
    let Ok((returned, principal)) = CURRENT.try_with(Clone::clone) else { return Ok(()) };
    if !returned.is_held() {
        let permit = returned_run_permit(&principal).await?;
        *returned.0.locked() = Some(permit);
    }
    Ok(())
}

/// Releases the permit of the call that the task executes: its run is small, or is read again later.
pub(crate) fn release_returned_run() {
    // Outside of a call there is none.
    let _ = CURRENT.try_with(|(returned, _)| returned.release());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn four_calls_of_a_principal_return_a_run() {
        let take = async |returned: &ReturnedRun, principal: &str| {
            returned.clone().scope(Some(principal.to_owned()), await_returned_run()).await.unwrap();
        };
        let running: Vec<ReturnedRun> = (0..4).map(|_| ReturnedRun::default()).collect();
        for returned in &running {
            take(returned, "returned runs").await;
            take(returned, "returned runs").await;
        }
        let next = ReturnedRun::default();
        let mut waiting = Box::pin(take(&next, "returned runs"));
        assert!(futures::poll!(&mut waiting).is_pending());
        take(&ReturnedRun::default(), "another principal").await;
        ReturnedRun::default().scope(None, await_returned_run()).await.unwrap();
        let first = running[0].clone();
        first.scope(Some("returned runs".to_owned()), async { release_returned_run() }).await;
        waiting.await;
    }
}
