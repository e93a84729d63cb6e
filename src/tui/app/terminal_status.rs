//! What the terminal shows outside of the screen: notifications, and the progress.

use super::AppCommand;
use skills_api::{Reminder, TerminalSignals, terminal_bytes, withdrawal_bytes};
use skills_config::TerminalProgress;
use skills_store::{EventKind, RunEvent, RunId};

/// Maximum number of remembered notifications that can be withdrawn.
const MAX_NOTIFIED: usize = 1000;

pub(super) struct TerminalStatus {
    pub signs: TerminalSignals,
    /// Runs with a notification that can be withdrawn, each with the start of its wait.
    notified: Vec<(RunId, i64)>,
    /// The progress that the terminal shows, if any.
    shown_progress: Option<TerminalProgress>,
}

impl TerminalStatus {
    pub fn new(signs: TerminalSignals, shows_progress: bool) -> Self {
        let shown_progress = shows_progress.then_some(TerminalProgress::Hidden);
        Self { signs, notified: Vec::new(), shown_progress }
    }

    /// Shows the progress if it changed.
    pub fn progress(&mut self, progress: TerminalProgress) -> Option<AppCommand> {
        let shown = self.shown_progress.as_mut().filter(|shown| **shown != progress)?;
        *shown = progress;
        Some(AppCommand::Progress(progress))
    }

    /// Raises a notification of a run that waits.
    pub fn notify(&mut self, reminder: &Reminder) -> Option<AppCommand> {
        let bytes = terminal_bytes(self.signs, reminder);
        if self.signs.osc && self.signs.withdrawable && self.notified.len() < MAX_NOTIFIED {
            self.notified.push((reminder.run.clone(), reminder.since_ms));
        }
        (!bytes.is_empty()).then_some(AppCommand::Notify(bytes))
    }

    /// Withdraws the notifications of runs that no longer wait.
    pub fn withdraw(&mut self, events: &[RunEvent]) -> Vec<AppCommand> {
        let mut out = Vec::new();
        for event in events.iter().filter(|event| ends_wait(&event.event.kind)) {
            let is_over = |(run, since_ms): &mut (RunId, i64)| *run == event.run && event.at_ms > *since_ms;
            for (run, _) in self.notified.extract_if(.., is_over) {
                out.push(AppCommand::Notify(withdrawal_bytes(self.signs, &run)));
            }
        }
        out
    }
}

/// Returns whether a run no longer waits after this event.
fn ends_wait(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::GateApproved
            | EventKind::GateDenied
            | EventKind::SignalConsumed
            | EventKind::RunClaimed
            | EventKind::RunCanceled
            | EventKind::RunExpired
            | EventKind::RunFailed
            | EventKind::RunCompleted
    )
}
