//! Looking after the store of runs: whether it is sound, a copy of it, and forgetting what ended long ago.

use std::path::Path;

use super::super::Local;
use crate::gateway::{AuditPurged, Error, StoreHealth};

impl Local {
    /// Looks over the whole store.
    ///
    /// # Errors
    /// What the store says.
    pub async fn store_health(&self) -> Result<StoreHealth, Error> {
        let store = &self.runs.room().await?.store;
        Ok(StoreHealth { place: store.describe(), health: store.check().await? })
    }

    /// Writes a whole copy of the store into a file that is not there yet.
    ///
    /// # Errors
    /// What the store says; a file that is there is one of them.
    pub async fn store_backup(&self, to: &Path) -> Result<(), Error> {
        Ok(self.runs.room().await?.store.backup(to).await?)
    }

    /// Deletes runs that ended before a moment (milliseconds since 1970-01-01 UTC), with everything of theirs, gives
    /// their space back, and answers how many there were.
    ///
    /// # Errors
    /// What the store says.
    pub async fn store_purge(&self, before_ms: i64) -> Result<u64, Error> {
        let store = &self.runs.room().await?.store;
        let purged = store.purge(before_ms).await?;
        if purged > 0
            && let Err(error) = store.compact().await
        {
            // The runs are gone; their space is used by the next ones.
            tracing::warn!("the space of purged runs stays with the store: {error}");
        }
        Ok(purged)
    }

    /// Takes away inputs of steps and output lines of runs that ended before a moment, and the lines that the audit
    /// log had by then; answers how many runs and lines.
    ///
    /// # Errors
    /// What the store says; `invalid_configuration` for an audit log that does not hold, before anything is taken.
    pub async fn audit_purge(&self, before_ms: i64) -> Result<AuditPurged, Error> {
        let lines = self.audit_purge_lines(before_ms).await?;
        let runs = self.runs.room().await?.store.forget(before_ms).await?;
        Ok(AuditPurged { runs, lines: lines.lines, before_ms })
    }
}
