//! The result of the last write.

use std::sync::Mutex;

use crate::{StoreError, WriteFailure};
use skills_base::sync::MutexExt as _;

/// Whether writes succeed.
#[derive(Debug, Default)]
pub(crate) struct WriteHealth {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failure: Option<WriteFailure>,
    /// Why writes are refused, regardless of the disk.
    refused: Option<StoreError>,
}

impl WriteHealth {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.locked()
    }

    /// Records a successful write.
    pub fn succeeded(&self) {
        let mut state = self.state();
        if state.refused.is_none() && state.failure.take().is_some() {
            tracing::info!("the store can be written again");
        }
    }

    /// Records a failed write or check of the file; errors that do not concern the store as a whole are ignored.
    pub fn failed(&self, error: &StoreError, now_ms: i64) {
        if error.unavailability().is_none() {
            return;
        }
        let mut state = self.state();
        let since_ms = state.failure.as_ref().map_or(now_ms, |failure| failure.since_ms);
        state.failure = Some(WriteFailure { since_ms, error: error.clone() });
    }

    /// Refuses every write with this error from now on.
    pub fn refuse_writes(&self, error: StoreError, now_ms: i64) {
        self.failed(&error, now_ms);
        self.state().refused = Some(error);
    }

    /// Stops refusing writes.
    pub fn allow_writes(&self) {
        self.state().refused = None;
    }

    /// Returns why writes are refused, if they are.
    pub fn refusal(&self) -> Option<StoreError> {
        self.state().refused.clone()
    }

    /// Returns the failure of the last write, if it failed.
    pub fn failure(&self) -> Option<WriteFailure> {
        self.state().failure.clone()
    }
}
