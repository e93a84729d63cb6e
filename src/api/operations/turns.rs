//! Takes turns between the principals that measure: each has one measurement at a time, so that a caller with many
//! requests does not occupy all threads for measurements.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use super::Caller;

/// By name of the principal; as many as there are keys.
static TURNS: LazyLock<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>> = LazyLock::new(Mutex::default);

/// Waits until the caller has no other measurement. Without authentication there is no limit.
pub(super) async fn take(caller: &Caller) -> Option<tokio::sync::OwnedMutexGuard<()>> {
    let name = &caller.principal.as_ref()?.name;
    let turn = {
        let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(name.clone()).or_default())
    };
    Some(turn.lock_owned().await)
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
        let first = take(&caller("turns-ana")).await;
        assert!(take(&caller("turns-bo")).await.is_some());
        assert!(take(&Caller::anyone()).await.is_none());
        let ana = caller("turns-ana");
        let mut second = std::pin::pin!(take(&ana));
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        assert!(second.await.is_some());
    }
}
