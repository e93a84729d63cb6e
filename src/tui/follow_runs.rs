//! Follows the events of all runs in one task that long-polls the core, and checks its store every few seconds.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep, sleep_until};

use super::app::AppEvent;
use super::pane::Message;
use super::run_requests::{Outage, RunResponse};
use skills_api::{Error, SharedClient};
use skills_config::Invocation;

/// Long-poll timeout of one request, in milliseconds.
const WAIT_MS: u64 = 30_000;
/// Maximum number of events per response.
const EVENT_PAGE_SIZE: usize = 512;
/// Minimum interval between two forwarded responses: about twelve updates a second suffice on a screen.
const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(80);
/// Interval between checks of the store.
const BETWEEN_CHECKS: Duration = Duration::from_secs(5);
/// Delay after a failure, and when a core returns before the requested wait is over.
const PAUSE: Duration = Duration::from_secs(1);

/// The error notice while events cannot be followed.
pub const NO_UPDATES: &str = "no live updates of runs";

/// Forwards every event from now on until the receiver is dropped.
pub async fn follow(core: SharedClient, news: Sender<AppEvent>, called: Arc<Invocation>) {
    let mut place = None;
    let mut reported = None;
    let mut seen_ms = None;
    let mut next_check = Instant::now() + BETWEEN_CHECKS;
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
            error = unavailable(&core, &mut next_check, &mut seen_ms) => Err(error),
            response = response => response,
        };
        if response.is_ok() {
            seen_ms = Some(now_ms());
        }
        match response {
            Ok((_, RunResponse::Events(events))) if events.is_empty() => {
                if started.elapsed() < PAUSE {
                    sleep(PAUSE).await;
                }
            }
            Ok((last, response)) => {
                (place, reported) = (Some(last), None);
                if news.send(AppEvent::All(Message::Run(response))).await.is_err() {
                    return;
                }
                sleep(MIN_UPDATE_INTERVAL).await;
            }
            Err(error) => {
                // Panes reload what they missed once the core responds again. An invalid cursor alone is not an error:
                // the core may use another store.
                let followed = place.take().is_some();
                // A store can be unavailable again behind a connection that was lost in between.
                if !followed && reported != Some(error.code) {
                    reported = Some(error.code);
                    // Panes that show runs must know, so that they can poll for what is still readable.
                    let outage = Outage::new(error.clone(), seen_ms, now_ms());
                    let response = RunResponse::NotFollowing(outage).completed(&called);
                    let what = NO_UPDATES.to_owned();
                    let failed = AppEvent::Failed(what, called.completed_in(&error.message));
                    if news.send(failed).await.is_err()
                        || news.send(AppEvent::All(Message::Run(response))).await.is_err()
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

/// Waits until the core reports its store as unavailable: its events can then still be read, but new ones may be
/// written to another file. Checks are not more frequent while events arrive.
async fn unavailable(core: &SharedClient, next_check: &mut Instant, seen_ms: &mut Option<i64>) -> Error {
    loop {
        sleep_until(*next_check).await;
        *next_check = Instant::now() + BETWEEN_CHECKS;
        if let Err(error) = core.ensure_store().await {
            return error;
        }
        *seen_ms = Some(now_ms());
    }
}
