//! Writes what one execution records, under its fencing token, and tries again while the store does not accept writes.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::execute::Engine;
use super::log::{LogQueue, PAUSE};
use skills_store::{NewEvent, RunId, StepIntent, Store, StoreError, Unavailability};

/// Time between attempts to write to a store that does not accept writes.
const STORE_RETRY: Duration = Duration::from_millis(500);

/// Returns whether the same write can succeed once the store accepts writes again.
fn is_temporary(error: &StoreError) -> bool {
    matches!(
        error.unavailability(),
        Some(
            Unavailability::Io
                | Unavailability::Busy
                | Unavailability::DiskFull
                | Unavailability::ReadOnly
                | Unavailability::Missing
        )
    )
}

/// Why an execution stops before its run has ended.
pub(super) enum ExecutionStop {
    Canceled,
    Store(StoreError),
}

impl From<StoreError> for ExecutionStop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The writes of one execution under its fencing token, and the output lines that are not written yet.
pub(super) struct RunWriter {
    store: Arc<dyn Store>,
    run: RunId,
    pub fence: u64,
    pub cancel: CancellationToken,
    pub logs: LogQueue,
    /// Output lines that the store did not accept yet: those of the current batch. Later ones wait in `logs`, because
    /// the store may have recorded this batch without an answer.
    unwritten: Vec<NewEvent>,
    /// Number of the current batch of events.
    batch: u32,
    flushed: Instant,
}

impl RunWriter {
    pub fn new(engine: &Engine, run: RunId, fence: u64, cancel: CancellationToken) -> Self {
        Self {
            store: Arc::clone(&engine.store),
            run,
            fence,
            cancel,
            logs: LogQueue::default(),
            unwritten: Vec::new(),
            batch: 0,
            flushed: Instant::now(),
        }
    }

    /// Writes, and tries again for as long as the lease lasts if the store does not accept writes and `is_due`: ending
    /// the execution would lose a call in progress, or what one returned. The execution is canceled when the lease
    /// expires.
    pub async fn persist<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        is_due: bool,
        write: impl Fn() -> F,
    ) -> Result<T, ExecutionStop> {
        let mut failing = false;
        loop {
            let error = match write().await {
                Ok(written) => return Ok(written),
                Err(error) if is_temporary(&error) && is_due => error,
                Err(error) => return Err(error.into()),
            };
            if !std::mem::replace(&mut failing, true) {
                tracing::warn!("cannot write run {}, trying again: {error}", self.run);
            }
            tokio::select! {
                () = tokio::time::sleep(STORE_RETRY) => {}
                () = self.cancel.cancelled() => return Err(error.into()),
            }
        }
    }

    /// Appends events in a new batch, after the current one.
    pub async fn append(&mut self, is_due: bool, events: Vec<NewEvent>) -> Result<(), ExecutionStop> {
        if events.is_empty() {
            return Ok(());
        }
        self.begin_batch(is_due).await?;
        self.append_batch(is_due, events).await
    }

    /// Records that a step is about to start, once: a lost answer does not repeat its event.
    pub async fn record_intent(&mut self, is_due: bool, intent: &StepIntent) -> Result<(), ExecutionStop> {
        self.begin_batch(is_due).await?;
        let (store, run) = (&self.store, &self.run);
        self.persist(is_due, || store.record_intent(run, self.fence, self.batch, intent.clone())).await
    }

    /// Begins a batch after the output lines that are not recorded yet.
    async fn begin_batch(&mut self, is_due: bool) -> Result<(), ExecutionStop> {
        let unwritten = std::mem::take(&mut self.unwritten);
        if !unwritten.is_empty() {
            self.append_batch(is_due, unwritten).await?;
        }
        self.batch += 1;
        Ok(())
    }

    /// Appends the events of the current batch, which the store records once.
    async fn append_batch(&self, is_due: bool, events: Vec<NewEvent>) -> Result<(), ExecutionStop> {
        let (store, run) = (&self.store, &self.run);
        self.persist(is_due, || store.append(run, self.fence, self.batch, events.clone())).await
    }

    /// Writes the output lines so far. Only a stale fencing token ends the execution: its steps continue without a
    /// store.
    pub async fn flush(&mut self) -> Result<(), ExecutionStop> {
        if self.unwritten.is_empty() {
            self.unwritten = self.logs.drain();
            self.batch += 1;
        }
        let (store, run) = (&self.store, &self.run);
        let written = store.append(run, self.fence, self.batch, self.unwritten.clone()).await;
        self.flushed = Instant::now();
        match written {
            Err(error @ StoreError::Refused(_)) => return Err(error.into()),
            Err(error) if is_temporary(&error) => {
                tracing::warn!("cannot write output of run {}, trying again: {error}", self.run);
                self.flushed += STORE_RETRY;
                return Ok(());
            }
            Err(error) => tracing::error!("output of run {} was not written: {error}", self.run),
            Ok(()) => {}
        }
        self.unwritten.clear();
        Ok(())
    }

    /// Returns the output lines to write with a report; those of the current batch are written before.
    pub async fn lines(&mut self, is_due: bool) -> Result<Vec<NewEvent>, ExecutionStop> {
        let unwritten = std::mem::take(&mut self.unwritten);
        if !unwritten.is_empty() {
            self.append_batch(is_due, unwritten).await?;
        }
        self.flushed = Instant::now();
        Ok(self.logs.drain())
    }

    /// Waits until output lines are due to be written.
    pub fn lines_due(&self) -> impl Future<Output = ()> + use<> {
        let due = self.flushed + PAUSE;
        let (logs, unwritten) = (self.logs.clone(), !self.unwritten.is_empty());
        async move {
            if !unwritten {
                logs.arrive().await;
            }
            sleep_until(due).await;
        }
    }
}
