//! Takes turns between the principals that measure: each has one measurement at a time, so that a caller with many
//! requests does not occupy all threads for measurements.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

use super::Caller;
use crate::{Code, Error};

/// Maximum number of measurements of a principal that wait: each holds its arguments.
const MAX_WAITING: usize = 8;

/// By name of the principal; as many as there are keys.
static TURNS: LazyLock<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>> = LazyLock::new(Mutex::default);

/// Waits until the caller has no other measurement. Without authentication there is no limit.
///
/// # Errors
/// Returns `rate_limited` if too many measurements of the caller wait.
pub(super) async fn take(caller: &Caller) -> Result<Option<OwnedMutexGuard<()>>, Error> {
    let Some(principal) = &caller.principal else { return Ok(None) };
    let turn = {
        let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turns.entry(principal.name.clone()).or_default();
        // The map has one reference, the measurement that runs and each one that waits have another.
        if Arc::strong_count(turn) >= 1 + 1 + MAX_WAITING {
            let message =
                format!("{MAX_WAITING} measurements of {} are waiting; try again later", principal.name);
            return Err(Error::new(Code::RateLimited, message));
        }
        Arc::clone(turn)
    };
    Ok(Some(turn.lock_owned().await))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::operations::Principal;

    #[tokio::test]
    async fn a_principal_waits_for_its_own_measurement_only() {
        let caller = |name: &str| {
            let principal = Principal { name: name.to_owned(), scopes: BTreeSet::new() };
            Caller { principal: Some(principal), ..Caller::anyone() }
        };
        let first = take(&caller("turns-ana")).await.unwrap();
        assert!(take(&caller("turns-bo")).await.unwrap().is_some());
        assert!(take(&Caller::anyone()).await.unwrap().is_none());
        let ana = caller("turns-ana");
        let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| Box::pin(take(&ana))).collect();
        for one in &mut waiting {
            assert!(futures::poll!(one).is_pending());
        }
        assert_eq!(take(&ana).await.unwrap_err().code, Code::RateLimited);
        drop(first);
        for one in waiting {
            assert!(one.await.unwrap().is_some());
        }
        assert!(take(&ana).await.unwrap().is_some(), "callers that are gone do not count");
    }
}
