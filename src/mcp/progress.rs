//! Progress notifications of a call, from the events of the run that it waits for.

use std::collections::HashSet;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::server::Server;
use skills_api::SharedClient;
use skills_api::operations::{AwaitedRun, RunObserver};
use skills_skill::safe_text;
use skills_store::{EventKind, RunEvent};

/// Events read per page.
const PAGE: usize = 200;
/// Maximum wait for events, in milliseconds.
const WAIT_MS: u64 = 30_000;

/// How long the last notifications may take once the result is available.
const LAST: Duration = Duration::from_secs(2);

/// Follows the run of one call until the call ends.
pub struct Progress(Option<Follower>);

struct Follower {
    task: JoinHandle<()>,
    over: CancellationToken,
}

impl Progress {
    /// Follows the run that the call reports to the returned observer, if the client gave a progress token. Nothing is
    /// read before: the call reports its run when it has been admitted.
    pub fn follow(server: &Server, cx: &RequestContext<RoleServer>) -> (Self, RunObserver) {
        let Some(token) = cx.meta.get_progress_token() else { return (Self(None), RunObserver::default()) };
        let (observer, runs) = RunObserver::channel();
        let reported = ReportedProgress { token, peer: cx.peer.clone(), ended: HashSet::new(), total: 0 };
        let over = CancellationToken::new();
        let task = tokio::spawn(follow(server.core().clone(), runs, reported, over.clone()));
        (Self(Some(Follower { task, over })), observer)
    }

    /// Ends the notifications before the call responds: what happened until now is still reported, and nothing
    /// afterwards.
    pub async fn end(mut self) {
        if let Some(follower) = &mut self.0 {
            follower.over.cancel();
            // A client that does not read must not delay its own response.
            let _ = tokio::time::timeout(LAST, &mut follower.task).await;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(follower) = &self.0 {
            follower.task.abort();
        }
    }
}

async fn follow(
    core: SharedClient,
    mut runs: UnboundedReceiver<AwaitedRun>,
    mut reported: ReportedProgress,
    over: CancellationToken,
) {
    let awaited = tokio::select! {
        // A run that is already reported is followed even if the call is over.
        biased;
        awaited = runs.recv() => awaited,
        () = over.cancelled() => None,
    };
    let Some(AwaitedRun { id, steps }) = awaited else { return };
    reported.total = steps;
    // A run that the call found by its idempotency key may have ended some steps before.
    let mut after = 0;
    loop {
        let last = over.is_cancelled();
        let request = tokio::select! {
            events = core.run_events(Some(&id.0), after, PAGE, if last { 0 } else { WAIT_MS }) => events,
            // Once more, without waiting.
            () = over.cancelled(), if !last => continue,
        };
        let events = match request {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!("cannot report further progress: {error}");
                return;
            }
        };
        if last && events.is_empty() {
            return;
        }
        for event in events {
            after = event.number;
            if !reported.report(&event).await {
                return;
            }
        }
    }
}

/// What was reported so far.
struct ReportedProgress {
    token: ProgressToken,
    peer: Peer<RoleServer>,
    ended: HashSet<String>,
    total: u32,
}

impl ReportedProgress {
    /// Reports the end of a step; returns false if the client has disconnected.
    async fn report(&mut self, event: &RunEvent) -> bool {
        let Some((step, how)) = ended(event) else { return true };
        // The progress of each notification has to be greater than that of the previous one.
        if !self.ended.insert(step.to_owned()) {
            return true;
        }
        let done = u32::try_from(self.ended.len()).unwrap_or(u32::MAX);
        let total = self.total.max(done);
        let message = format!("{} {how} ({done} of {total})", safe_text::line(step));
        let progress = ProgressNotificationParam::new(self.token.clone(), f64::from(done))
            .with_total(f64::from(total))
            .with_message(message);
        self.peer.notify_progress(progress).await.is_ok()
    }
}

/// Returns the step of the contract itself that this event ended, and how.
fn ended(event: &RunEvent) -> Option<(&str, &str)> {
    let how = match event.event.kind {
        EventKind::StepCompleted => "completed",
        EventKind::StepSkipped => "skipped",
        EventKind::StepFailed => "failed",
        _ => return None,
    };
    let step = event.event.step.as_deref()?;
    (!step.contains(['/', '[', '~'])).then_some((step, how))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use skills_store::{NewEvent, RunId};

    #[test]
    fn only_steps_of_the_contract_itself_count() {
        let event = |kind: &str, step: Option<&str>| RunEvent {
            run: RunId("r".to_owned()),
            number: 1,
            global: 1,
            at_ms: 0,
            event: NewEvent { kind: kind.into(), step: step.map(str::to_owned), data: Value::Null },
        };
        assert_eq!(ended(&event("step.completed", Some("sum"))), Some(("sum", "completed")));
        for (kind, step) in [
            ("step.started", Some("sum")),
            ("step.log", Some("sum")),
            ("step.retrying", Some("sum")),
            ("step.completed", Some("each[2]")),
            ("step.completed", Some("report/render")),
            ("run.completed", None),
        ] {
            assert_eq!(ended(&event(kind, step)), None, "{kind} {step:?}");
        }
    }
}
