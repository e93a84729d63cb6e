//! Executes or follows a run and reports its events as they arrive, until it ends, waits, or the user leaves.

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::clock;
use crate::failure::Failure;
use skills_api::{Code, Error, PENDING_MS, RunClient, StepView};
use skills_model::RunState;
use skills_store::{EventKind, RunEvent, RunFilter, RunRecord};

/// How long a single request for events waits, in milliseconds.
const POLL_WAIT_MS: u64 = 1_000;
const EVENT_PAGE_SIZE: usize = 500;
/// Update interval of the progress line.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// An update while a run continues.
pub enum RunUpdate<'a> {
    /// An event occurred; with the current steps of the run, if they were read.
    Event(&'a RunEvent, &'a [StepView]),
    /// Time for an update of the progress line.
    Tick,
    /// Nothing happened for some time: the run in its current state.
    Silence(&'a RunRecord),
}

/// The state of a run when following it ends.
pub struct Completion {
    pub run: RunRecord,
    /// Whether the user left before that.
    pub left: bool,
    /// Why an approval would be rejected, if it waits for one.
    pub obstacle: Option<String>,
}

type OnUpdate<'a> = &'a mut dyn FnMut(RunUpdate<'_>) -> Result<(), Failure>;
type Events<'a> = Pin<Box<dyn Future<Output = Result<Vec<RunEvent>, Error>> + Send + 'a>>;

/// Maximum number of steps up to which results are read as steps end; for runs with thousands that is too slow.
const MAX_LOOKUP_STEPS: usize = 200;

/// Executes a run until it ends or waits and reports its events after a number; with `with_steps`, events of steps that
/// ended are reported with their results. Ctrl-C releases the run and leaves; a second one leaves immediately.
pub async fn wait_for_completion(
    client: &dyn RunClient,
    run: &RunRecord,
    after: u64,
    with_steps: bool,
    on_update: OnUpdate<'_>,
) -> Result<Completion, Failure> {
    let id = run.id.0.as_str();
    let leave = CancellationToken::new();
    let mut settling = pin!(client.wait_for_completion(id, leave.clone()));
    let mut seen = after;
    let mut ended = 0;
    let mut left = false;
    let mut turn = tokio::time::interval(SPINNER_INTERVAL);
    turn.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut interrupted = pin!(interrupted());
    let mut update: Events<'_> = client.run_events(Some(id), seen, EVENT_PAGE_SIZE, POLL_WAIT_MS);
    let mut silence = CheckInterval::begin();
    let completion = loop {
        tokio::select! {
            completion = &mut settling => break completion?,
            events = &mut update => {
                let events = events?;
                let steps = if with_steps { steps(client, id, &events, &mut ended).await? } else { Vec::new() };
                for event in &events {
                    seen = seen.max(event.number);
                    on_update(RunUpdate::Event(event, &steps))?;
                }
                if !events.is_empty() {
                    silence = CheckInterval::begin();
                } else if silence.is_due() {
                    on_update(RunUpdate::Silence(&client.run(id).await?.run))?;
                }
                update = client.run_events(Some(id), seen, EVENT_PAGE_SIZE, POLL_WAIT_MS);
            }
            _ = turn.tick() => on_update(RunUpdate::Tick)?,
            () = &mut interrupted => {
                if left {
                    return Ok(Completion { run: run.clone(), left, obstacle: None });
                }
                left = true;
                leave.cancel();
                interrupted.set(self::interrupted());
            }
        }
    };
    drop(update);
    loop {
        let events = client.run_events(Some(id), seen, EVENT_PAGE_SIZE, 0).await?;
        let Some(last) = events.last() else { break };
        seen = last.number;
        let steps = if with_steps { steps(client, id, &events, &mut ended).await? } else { Vec::new() };
        for event in &events {
            on_update(RunUpdate::Event(event, &steps))?;
        }
    }
    let obstacle = approval_obstacle(client, &completion).await;
    Ok(Completion { left: left && completion.is_executable(), run: completion, obstacle })
}

/// Returns why an approval would be rejected, if the run waits for one.
pub async fn approval_obstacle(client: &dyn RunClient, run: &RunRecord) -> Option<String> {
    if run.state != RunState::WaitingForHuman {
        return None;
    }
    let preview = client.run(&run.id.0).await.ok()?.sheet?;
    preview.approval_obstacle().map(str::to_owned)
}

/// Returns the steps of a run, if some of them ended and there are not too many.
async fn steps(
    client: &dyn RunClient,
    id: &str,
    events: &[RunEvent],
    ended: &mut usize,
) -> Result<Vec<StepView>, Failure> {
    let ends = [EventKind::StepCompleted, EventKind::StepSkipped, EventKind::StepFailed];
    let new = events.iter().filter(|event| ends.contains(&event.event.kind)).count();
    *ended += new;
    if new == 0 || *ended > MAX_LOOKUP_STEPS {
        return Ok(Vec::new());
    }
    Ok(client.run(id).await?.steps)
}

/// Time without events after which the lease holder is checked; doubled after each check.
struct CheckInterval {
    since: Instant,
    patience: Duration,
}

impl CheckInterval {
    const FIRST: Duration = Duration::from_secs(2);
    const MAX_BACKOFF: Duration = Duration::from_secs(16);

    fn begin() -> Self {
        Self { since: Instant::now(), patience: Self::FIRST }
    }

    fn is_due(&mut self) -> bool {
        let due = self.since.elapsed() >= self.patience;
        if due {
            *self = Self { since: Instant::now(), patience: (self.patience * 2).min(Self::MAX_BACKOFF) };
        }
        due
    }
}

/// Follows a run that others execute until it ends, waits or is paused, from its first event.
pub async fn watch(client: &dyn RunClient, id: &str, on_update: OnUpdate<'_>) -> Result<Completion, Failure> {
    let mut seen = 0;
    let mut interrupted = pin!(interrupted());
    let mut run = client.run(id).await?.run;
    let id = run.id.0.clone();
    let mut silence = CheckInterval::begin();
    // Whether the state of the run may have changed and could not be read.
    let mut stale = false;
    loop {
        let patience = if run.is_executable() || stale { POLL_WAIT_MS } else { 0 };
        let events = tokio::select! {
            events = client.run_events(Some(&id), seen, EVENT_PAGE_SIZE, patience) => events?,
            () = &mut interrupted => return Ok(Completion { run, left: true, obstacle: None }),
        };
        if events.is_empty() && !run.is_executable() && !stale {
            let obstacle = approval_obstacle(client, &run).await;
            return Ok(Completion { run, left: false, obstacle });
        }
        for event in &events {
            seen = event.number;
            on_update(RunUpdate::Event(event, &[]))?;
        }
        let silent = events.is_empty() && silence.is_due();
        if !events.is_empty() {
            silence = CheckInterval::begin();
        }
        if !events.is_empty() || silent || stale {
            let present = reached(client.run(&id).await)?;
            stale = present.is_none();
            if let Some(detail) = present {
                run = detail.run;
                if silent {
                    on_update(RunUpdate::Silence(&run))?;
                }
            }
        }
    }
}

/// Returns the result, or `None` if the core cannot be reached at the moment: following its events waits until it is
/// back.
fn reached<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.code == Code::UpstreamFailure => Ok(None),
        Err(error) => Err(error),
    }
}

/// Follows all runs from now on until the user stops it.
pub async fn watch_all(client: &dyn RunClient, on_update: OnUpdate<'_>) -> Result<(), Failure> {
    let mut seen = client.newest_event().await?;
    let mut interrupted = pin!(interrupted());
    let mut look = CheckInterval::begin();
    look_over(client, on_update).await?;
    loop {
        let events = tokio::select! {
            events = client.run_events(None, seen, EVENT_PAGE_SIZE, POLL_WAIT_MS) => events?,
            () = &mut interrupted => return Ok(()),
        };
        for event in &events {
            seen = event.global;
            on_update(RunUpdate::Event(event, &[]))?;
        }
        // The death of a worker causes no event.
        if look.is_due() {
            look_over(client, on_update).await?;
        }
    }
}

/// Reports the current state of the runs that have a worker or need one.
async fn look_over(client: &dyn RunClient, on_update: OnUpdate<'_>) -> Result<(), Failure> {
    let states = vec![RunState::Running, RunState::Replaying, RunState::Pending];
    let filter = RunFilter { states, limit: EVENT_PAGE_SIZE, ..RunFilter::default() };
    let Some(page) = reached(client.runs(filter).await)? else { return Ok(()) };
    // A run that was just launched is about to be claimed.
    let due =
        |run: &&RunRecord| run.state != RunState::Pending || clock::now_ms() - run.since_ms > PENDING_MS;
    page.runs
        .iter()
        .filter(|run| run.is_executable())
        .filter(due)
        .try_for_each(|run| on_update(RunUpdate::Silence(run)))
}

/// Returns when the user presses Ctrl-C or the process receives a termination signal.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a signal handler, the command is not ended by a signal.
        std::future::pending::<()>().await;
    }
}
