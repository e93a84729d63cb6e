//! Reports which run a call waits for, so that its progress is read from that run only.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use skills_store::{RunId, RunRecord};

/// The run that a call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedRun {
    pub id: RunId,
    /// Number of steps of its contract.
    pub steps: u32,
}

/// Receives the run that a call launched, or found by its idempotency key, before the call waits for it. The default
/// ignores it.
#[derive(Debug, Clone, Default)]
pub struct RunObserver(Option<UnboundedSender<AwaitedRun>>);

impl RunObserver {
    /// Creates an observer, and the channel of the runs that it receives.
    pub fn channel() -> (Self, UnboundedReceiver<AwaitedRun>) {
        let (sender, runs) = unbounded_channel();
        (Self(Some(sender)), runs)
    }

    /// Reports the run that is waited for from now on.
    pub(crate) fn report(&self, run: &RunRecord) {
        if let Some(sender) = &self.0 {
            // The receiver may have ended already.
            let _ = sender.send(AwaitedRun { id: run.id.clone(), steps: run.progress.1 });
        }
    }
}
