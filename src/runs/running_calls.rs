//! The calls of one execution that are in progress, and the retries to be started.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use super::attempt::{AttemptResult, CancelTokens, run_attempt};
use super::call::{Call, CallError, Caller};
use super::scheduled_call::ScheduledCall;
use super::scheduler::Running;
use skills_store::{EventKind, NewEvent, RunId};

/// How long stopped calls may take to end before they are dropped.
const GRACE: Duration = Duration::from_secs(10);

/// A call in progress.
pub(super) struct RunningCall {
    pub call: ScheduledCall,
    stops: CancelTokens,
    pub started_ms: i64,
}

impl RunningCall {
    /// Returns whether a failed attempt is retried.
    pub fn tries_again(&self, error: &CallError) -> bool {
        !self.stops.call.is_cancelled() && self.call.tries_again(error)
    }

    fn stop_if_repeatable(&self) {
        if self.call.is_repeatable() {
            self.stops.call.cancel();
        }
    }
}

/// The calls in progress, by path.
#[derive(Default)]
pub(super) struct RunningCalls {
    pub tasks: JoinSet<AttemptResult>,
    by_path: HashMap<String, RunningCall>,
    /// Retries to be started, with their backoff; they stay among the calls in progress.
    pub again: Vec<(ScheduledCall, Duration)>,
}

impl RunningCalls {
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    pub fn len(&self) -> usize {
        self.by_path.len()
    }

    pub fn contains(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    pub fn paths(&self) -> Running {
        self.by_path.keys().cloned().collect()
    }

    /// Starts an attempt of a call.
    pub fn start(
        &mut self,
        caller: Arc<dyn Caller>,
        call: Call,
        scheduled: ScheduledCall,
        backoff: Duration,
        stops: CancelTokens,
        now: i64,
    ) {
        let (path, obstacle) = (scheduled.path.clone(), scheduled.obstacle.clone());
        let started_ms = self.by_path.get(&path).map_or(now, |before| before.started_ms);
        self.tasks.spawn(run_attempt(caller, call, path.clone(), obstacle, backoff, stops.clone()));
        self.by_path.insert(path, RunningCall { call: scheduled, stops, started_ms });
    }

    pub fn remove(&mut self, path: &str) -> Option<RunningCall> {
        self.by_path.remove(path)
    }

    /// Schedules another attempt of a call, which stays among those in progress. Returns the event.
    pub fn retry(&mut self, running: RunningCall, error: &CallError) -> NewEvent {
        let call = &running.call;
        let (path, backoff) = (call.path.clone(), call.backoff());
        let event = NewEvent {
            kind: EventKind::StepRetrying,
            step: Some(path.clone()),
            data: json!({"attempt": call.attempt, "of": call.retry.map(|retry| retry.max_attempts),
                         "code": error.code, "message": error.public_message(),
                         "detail": error.public.as_ref().map(|_| error.message.as_str()),
                         "backoff_ms": u64::try_from(backoff.as_millis()).unwrap_or(u64::MAX)}),
        };
        let next = ScheduledCall { attempt: call.attempt + 1, notes: Vec::new(), ..call.clone() };
        self.again.push((next, backoff));
        self.by_path.insert(path, running);
        event
    }

    /// Removes the retries that are not yet started, and returns the attempts before them.
    pub fn drop_retries(&mut self) -> Vec<RunningCall> {
        let again = std::mem::take(&mut self.again);
        again.into_iter().filter_map(|(scheduled, _)| self.by_path.remove(&scheduled.path)).collect()
    }

    /// Stops a call whose result is no longer needed, if it is repeatable.
    pub fn supersede(&self, path: &str) {
        if let Some(running) = self.by_path.get(path) {
            running.stop_if_repeatable();
        }
    }

    /// Stops the repeatable calls, and the backoff of all.
    pub fn wind_down(&self) {
        for running in self.by_path.values() {
            running.stops.pause.cancel();
            running.stop_if_repeatable();
        }
    }

    /// Stops every call; used when recording is no longer allowed.
    pub async fn stop(&mut self, run: &RunId) {
        for running in self.by_path.values() {
            running.stops.call.cancel();
        }
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tracing::warn!("calls of run {run} did not end after cancellation; dropped");
        }
        self.tasks.shutdown().await;
        self.by_path.clear();
    }
}
