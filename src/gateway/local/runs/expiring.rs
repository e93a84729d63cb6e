//! Waits whose time is over end when somebody looks, where no worker is awake to end them: what is listed as waiting can
//! still be decided.

use crate::runs::Command;
use crate::store::{Store, StoreError};

/// Ends every wait whose time is over, each as its run was told to. A store that cannot be written is read as it is.
pub(super) async fn apply_due(store: &dyn Store) {
    match ended(store).await {
        Ok(()) => {}
        Err(error) => tracing::warn!("ending waits whose time is over: {error}"),
    }
}

async fn ended(store: &dyn Store) -> Result<(), StoreError> {
    if !store.due().await?.expired {
        return Ok(());
    }
    for run in store.expired().await? {
        match store.command(&run.id, Command::Expire(run.options.on_expiry), None, None, None).await {
            // Refused where somebody decided, or a worker was faster.
            Ok(_) | Err(StoreError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
