//! How the last write went.

use std::sync::{Mutex, PoisonError};

use crate::{StoreError, WriteFailure};

/// How writing goes.
#[derive(Debug, Default)]
pub(crate) struct WriteHealth {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failure: Option<WriteFailure>,
    /// Why nothing is written, whatever the disk says.
    refused: Option<StoreError>,
}

impl WriteHealth {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write went well.
    pub fn succeeded(&self) {
        let mut state = self.state();
        if state.refused.is_none() && state.failure.take().is_some() {
            tracing::info!("the store can be written again");
        }
    }

    /// A write, or a look at the file, failed; what is not about the store as a whole is passed over.
    pub fn failed(&self, error: &StoreError, now_ms: i64) {
        if error.unavailability().is_none() {
            return;
        }
        let mut state = self.state();
        let since_ms = state.failure.as_ref().map_or(now_ms, |failure| failure.since_ms);
        state.failure = Some(WriteFailure { since_ms, error: error.clone() });
    }

    /// From now on every write is refused with this.
    pub fn refuse_writes(&self, error: StoreError) {
        self.failed(&error, 0);
        self.state().refused = Some(error);
    }

    /// Writes are no longer refused.
    pub fn allow_writes(&self) {
        self.state().refused = None;
    }

    /// Why nothing may be written, if so.
    pub fn refusal(&self) -> Option<StoreError> {
        self.state().refused.clone()
    }

    /// The failure of the last write, if it failed.
    pub fn failure(&self) -> Option<WriteFailure> {
        self.state().failure.clone()
    }
}
