//! Follows the events of all runs in one task that long-polls the core, and checks its store every few seconds: whether
//! it is available, and whether runs were deleted, which causes no event.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep, sleep_until};

use super::app::AppEvent;
use super::pane::Message;
use super::run_requests::{Outage, RunResponse};
use skills_api::{Error, SharedClient};
use skills_config::Invocation;
use skills_store::RunFilter;

/// Long-poll timeout of one request, in milliseconds.
const WAIT_MS: u64 = 30_000;
/// Maximum number of events per response.
const EVENT_PAGE_SIZE: usize = 512;
/// Minimum interval between two forwarded responses: about twelve updates a second suffice on a screen.
const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(80);
/// Interval between checks of the store.
const BETWEEN_CHECKS: Duration = Duration::from_secs(5);
/// Pause after a count of the runs as a multiple of its duration: counting many runs is expensive for their store.
const COUNT_PAUSE: u32 = 100;
/// Delay after a failure, and when a core returns before the requested wait is over.
const PAUSE: Duration = Duration::from_secs(1);

/// The error notice while events cannot be followed.
pub const NO_UPDATES: &str = "no live updates of runs";

/// Forwards every event from now on until the receiver is dropped.
pub async fn follow(core: SharedClient, events: Sender<AppEvent>, called: Arc<Invocation>) {
    let mut place = None;
    let mut reported = None;
    let next = Instant::now() + BETWEEN_CHECKS;
    let mut checks = Checks { next, next_count: next, seen_ms: None, runs: None };
    loop {
        let started = Instant::now();
        let response = async {
            let Some(after) = place else {
                core.ensure_store().await?;
                return core.newest_event().await.map(|newest| (newest, RunResponse::Following));
            };
            let events = core.run_events(None, after, EVENT_PAGE_SIZE, WAIT_MS).await?;
            let last = events.last().map_or(after, |event| event.global);
            Ok((last, RunResponse::Events(events.into())))
        };
        let response = tokio::select! {
            biased;
            deleted = checks.until_deletion(&core) => deleted.map(|()| (place, RunResponse::Deleted)),
            response = response => response.map(|(last, response)| (Some(last), response)),
        };
        if response.is_ok() {
            checks.seen_ms = Some(now_ms());
        }
        match response {
            Ok((_, RunResponse::Events(events))) if events.is_empty() => {
                if started.elapsed() < PAUSE {
                    sleep(PAUSE).await;
                }
            }
            Ok((last, response)) => {
                (place, reported) = (last, None);
                if events.send(AppEvent::All(Message::Run(response))).await.is_err() {
                    return;
                }
                sleep(MIN_UPDATE_INTERVAL).await;
            }
            Err(error) => {
                // Panes reload what they missed once the core responds again. An invalid cursor alone is not an error:
                // the core may use another store.
                let followed = place.take().is_some();
                checks.runs = None;
                // A store can be unavailable again behind a connection that was lost in between.
                if !followed && reported != Some(error.code) {
                    reported = Some(error.code);
                    // Panes that show runs must know, so that they can poll for what is still readable.
                    let outage = Outage::new(error.clone(), checks.seen_ms, now_ms());
                    let response = RunResponse::NotFollowing(outage).completed(&called);
                    let what = NO_UPDATES.to_owned();
                    let failed = AppEvent::Failed(what, called.completed_in(&error.message));
                    if events.send(failed).await.is_err()
                        || events.send(AppEvent::All(Message::Run(response))).await.is_err()
                    {
                        return;
                    }
                }
                sleep(PAUSE).await;
            }
        }
    }
}

/// Returns the wall clock.
fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// The checks of the store.
struct Checks {
    next: Instant,
    /// When the runs may be counted again.
    next_count: Instant,
    /// When the core last responded.
    seen_ms: Option<i64>,
    /// The number of runs, as of the last count.
    runs: Option<u64>,
}

impl Checks {
    /// Waits until the store has fewer runs than at the last count. Checks are not more frequent while events arrive.
    ///
    /// # Errors
    /// Returns the reason if the core reports its store as unavailable: its events can then still be read, but new ones
    /// may be written to another file.
    async fn until_deletion(&mut self, core: &SharedClient) -> Result<(), Error> {
        loop {
            sleep_until(self.next).await;
            self.next = Instant::now() + BETWEEN_CHECKS;
            core.ensure_store().await?;
            self.seen_ms = Some(now_ms());
            let started = Instant::now();
            if started < self.next_count {
                continue;
            }
            // Why runs cannot be listed is shown where they are listed.
            let counted = core.runs(RunFilter { limit: 1, ..RunFilter::default() }).await;
            self.next_count = Instant::now() + COUNT_PAUSE * started.elapsed();
            let Ok(page) = counted else { continue };
            let runs = page.counts.values().copied().fold(0, u64::saturating_add);
            if self.runs.replace(runs).is_some_and(|before| runs < before) {
                return Ok(());
            }
        }
    }
}
