//! The workers of a process: claiming, keeping and releasing runs.
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::json;
use skills_model::{ApprovalReason, Command, Decision, Expiry, Gate, RunState, Verdict, WorkerReport};
use skills_runs::{
    CallerPermits, Execute, LeaseSettings, ProcessIdentity, Supervisor, SupervisorSettings, WORKER_PREFIX,
    execute_next,
};
use skills_store::{
    Checkpoint, Claimed, Clocks, EventKind, Launch, RunId, RunOptions, Sqlite, Store, StoreError, WorkerId,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(Sqlite::open(path, Clocks::system()).unwrap().store)
}

fn memory() -> Arc<dyn Store> {
    Arc::new(Sqlite::in_memory(Clocks::system()).unwrap())
}

fn launch(n: usize, does: &str) -> Launch {
    Launch {
        id: RunId(format!("run-{n:04}")),
        skill_id: "demo".into(),
        contract_digest: does.into(),
        contract: json!(does).into(),
        inputs: json!({}),
        target: None,
        trace_id: "t".into(),
        started_by: "ana".into(),
        steps: 1,
        options: RunOptions::default(),
        idempotency: None,
    }
}

/// Executes a run as its contract states, one word each.
struct Doer {
    started: AtomicUsize,
    canceled: AtomicUsize,
    /// Runs that `stay` continue when they get a permit.
    permits: Semaphore,
}

impl Doer {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            started: AtomicUsize::new(0),
            canceled: AtomicUsize::new(0),
            permits: Semaphore::new(0),
        })
    }
}

fn gate() -> Gate {
    Gate::human("one", "d", ApprovalReason::Confirmation)
}

struct Does(Arc<Doer>, Arc<dyn Store>);

#[async_trait]
impl Execute for Does {
    async fn execute(&self, claimed: Claimed, cancel: CancellationToken) -> Result<(), StoreError> {
        self.0.started.fetch_add(1, Ordering::SeqCst);
        let run = &claimed.run.id;
        let report = async |what: WorkerReport| {
            let command = Command::Work { fence: claimed.fence, report: what };
            let end = Checkpoint { number: 1, done: vec!["one".into()], state: json!({}), at_ms: 0 };
            let end = (command_ends(&command)).then_some(end);
            self.1.report(run, command, vec![], end, vec![], vec![]).await.map(drop)
        };
        let permit = async { self.0.permits.acquire().await.unwrap().forget() };
        match claimed.contract.as_str().unwrap() {
            "ask" if claimed.run.decided.is_none() => report(WorkerReport::Wait(gate())).await,
            "panic" => panic!("on purpose"),
            "break" => Err(StoreError::Failed { action: "move a run".into(), reason: "on purpose".into() }),
            "stay" => tokio::select! {
                () = cancel.cancelled() => {
                    self.0.canceled.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                }
                () = permit => report(WorkerReport::Complete).await,
            },
            _ => report(WorkerReport::Complete).await,
        }
    }
}

fn command_ends(command: &Command) -> bool {
    matches!(command, Command::Work { report: WorkerReport::Complete, .. })
}

fn settings(workers: usize) -> SupervisorSettings {
    SupervisorSettings {
        workers,
        leases: LeaseSettings {
            lease: Duration::from_millis(300),
            cancel_poll_interval: Duration::from_millis(10),
        },
        poll: Duration::from_millis(50),
        grace: Duration::from_millis(50),
    }
}

fn start(store: &Arc<dyn Store>, doer: &Arc<Doer>, workers: usize) -> Supervisor {
    Supervisor::start(store.clone(), Arc::new(Does(doer.clone(), store.clone())), settings(workers))
}

/// Waits for a condition of the store, as it changes.
async fn until<T>(store: &dyn Store, what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let seen = store.newest_event().await.unwrap();
        if let Some(answer) = condition().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "never: {what}");
        store.wait(seen, 20).await.unwrap();
    }
}

async fn until_state(store: &dyn Store, n: usize, state: RunState) {
    let run = RunId(format!("run-{n:04}"));
    until(store, &format!("{run} {state}"), async || {
        (store.run(&run).await.unwrap()?.state == state).then_some(())
    })
    .await;
}

fn yes() -> Command {
    Command::Decide(Decision {
        verdict: Verdict::Approve,
        step: "one".into(),
        inputs_digest: "d".into(),
        choice: None,
        result: None,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_waiting_runs_continue_when_approved() {
    let (store, doer) = (memory(), Doer::new());
    let workers = start(&store, &doer, 4);
    for n in 0..1000 {
        store.launch(launch(n, "ask")).await.unwrap();
    }
    let count = async |state: RunState| {
        let page = store.runs(skills_store::RunFilter { limit: 1, ..Default::default() }).await.unwrap();
        page.counts.get(&state).copied().unwrap_or(0)
    };
    until(&*store, "all wait", async || (count(RunState::WaitingForHuman).await == 1000).then_some(())).await;
    until(&*store, "no worker is kept by a waiting run", async || (workers.busy() == 0).then_some(())).await;
    for n in 0..1000 {
        let run = RunId(format!("run-{n:04}"));
        store.command(&run, yes(), None, None, None).await.unwrap();
    }
    until(&*store, "all completed", async || (count(RunState::Completed).await == 1000).then_some(())).await;
    workers.shutdown().await;
    assert!(store.live_workers(60_000).await.unwrap().is_empty(), "they are taken off the list");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approval_in_another_process_applies_immediately() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let (store, other, doer) = (open(&path), open(&path), Doer::new());
    let slow = SupervisorSettings { poll: Duration::from_secs(20), ..settings(1) };
    let workers = Supervisor::start(store.clone(), Arc::new(Does(doer.clone(), store.clone())), slow);
    other.launch(launch(1, "ask")).await.unwrap();
    until_state(&*other, 1, RunState::WaitingForHuman).await;
    assert_eq!(other.live_workers(60_000).await.unwrap().len(), 1, "another process sees that workers live");
    let started_at = Instant::now();
    other.command(&RunId("run-0001".into()), yes(), None, None, None).await.unwrap();
    until_state(&*other, 1, RunState::Completed).await;
    assert!(
        started_at.elapsed() < Duration::from_secs(5),
        "long before the next poll: {:?}",
        started_at.elapsed()
    );
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_by_another_process_reaches_the_execution() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let (store, other, doer) = (open(&path), open(&path), Doer::new());
    let long =
        LeaseSettings { lease: Duration::from_secs(30), cancel_poll_interval: Duration::from_millis(10) };
    let patient = SupervisorSettings { leases: long, ..settings(1) };
    let workers = Supervisor::start(store.clone(), Arc::new(Does(doer.clone(), store.clone())), patient);
    other.launch(launch(1, "stay")).await.unwrap();
    until(&*other, "it runs", async || (doer.started.load(Ordering::SeqCst) == 1).then_some(())).await;
    let started_at = Instant::now();
    other.command(&RunId("run-0001".into()), Command::Cancel, None, None, None).await.unwrap();
    until(&*other, "it stops", async || (doer.canceled.load(Ordering::SeqCst) == 1).then_some(())).await;
    assert!(
        started_at.elapsed() < Duration::from_secs(5),
        "long before the next renewal: {:?}",
        started_at.elapsed()
    );
    until(&*other, "the worker is free", async || (workers.busy() == 0).then_some(())).await;
    other.launch(launch(2, "end")).await.unwrap();
    until_state(&*other, 2, RunState::Completed).await;
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_process_removes_a_dead_worker() {
    let store = memory();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let own = ProcessIdentity::here().process();
    let parts: Vec<&str> = own.split('/').collect();
    let dead = format!("{}/{}/{}/1", parts[0], parts[1], child.id());
    let elsewhere = format!("other/other/{}/1", child.id());
    for process in [&dead, &elsewhere] {
        store.heartbeat(&WorkerId(format!("{process}/0"))).await.unwrap();
        let about = json!({ "seen_ms": i64::MAX });
        store.put_document(&format!("{WORKER_PREFIX}{process}"), Some(about), None).await.unwrap();
    }
    let supervisor = start(&store, &Doer::new(), 1);
    until(&*store, "the dead process is forgotten", async || {
        let documents = store.documents(WORKER_PREFIX).await.unwrap();
        let mut known: Vec<&str> =
            documents.iter().filter_map(|document| document.name.strip_prefix(WORKER_PREFIX)).collect();
        let mut expected = [own.as_str(), elsewhere.as_str()];
        known.sort_unstable();
        expected.sort_unstable();
        (known == expected).then_some(())
    })
    .await;
    let live = store.live_workers(60_000).await.unwrap();
    assert!(live.iter().all(|worker| !worker.0.starts_with(&dead)), "{live:?}");
    assert!(live.iter().any(|worker| worker.0.starts_with(&elsewhere)), "it may be alive");
    supervisor.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lease_of_a_long_step_is_kept_and_lost_one_reclaimed() {
    let (store, doer) = (memory(), Doer::new());
    store.launch(launch(1, "stay")).await.unwrap();
    store.launch(launch(2, "end")).await.unwrap();
    let lost = store.claim(&WorkerId("lost".into()), 200, Some(&RunId("run-0002".into()))).await.unwrap();
    let workers = start(&store, &doer, 2);
    // The lost run is taken over only after its lease: by then the long one was renewed, as its fence shows.
    until_state(&*store, 2, RunState::Completed).await;
    assert_eq!(store.run(&lost.unwrap().run.id).await.unwrap().unwrap().fence, 2);
    let until_then = Instant::now() + Duration::from_secs(1);
    until(&*store, "several leases long", async || (Instant::now() > until_then).then_some(())).await;
    assert_eq!(store.run(&RunId("run-0001".into())).await.unwrap().unwrap().fence, 1, "claimed once");
    doer.permits.add_permits(1);
    until_state(&*store, 1, RunState::Completed).await;
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_releases_runs_to_other_workers() {
    let (store, doer) = (memory(), Doer::new());
    let long = LeaseSettings { lease: Duration::from_secs(600), ..LeaseSettings::default() };
    let patient = SupervisorSettings { leases: long, ..settings(1) };
    let workers = Supervisor::start(store.clone(), Arc::new(Does(doer.clone(), store.clone())), patient);
    store.launch(launch(1, "stay")).await.unwrap();
    until(&*store, "it runs", async || (doer.started.load(Ordering::SeqCst) == 1).then_some(())).await;
    workers.shutdown().await;
    assert_eq!(doer.canceled.load(Ordering::SeqCst), 1, "the step was stopped first");
    assert_eq!(store.run(&RunId("run-0001".into())).await.unwrap().unwrap().state, RunState::Running);
    doer.permits.add_permits(1);
    let workers = start(&store, &doer, 1);
    until_state(&*store, 1, RunState::Completed).await;
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_wait_ends_automatically() {
    let (store, doer) = (memory(), Doer::new());
    let workers = start(&store, &doer, 1);
    let expiring = |n, on_expiry| Launch {
        options: RunOptions { expires_in_s: Some(0), on_expiry, ..RunOptions::default() },
        ..launch(n, "ask")
    };
    store.launch(expiring(1, Expiry::Deny)).await.unwrap();
    store.launch(expiring(2, Expiry::Fail)).await.unwrap();
    for (n, state) in [(1, RunState::Canceled), (2, RunState::Failed)] {
        let run = RunId(format!("run-{n:04}"));
        // It is read as ended before that is recorded.
        until(&*store, "an expiry is recorded", async || {
            let events = store.events(Some(&run), 0, 100).await.unwrap();
            events.iter().any(|event| event.event.kind == EventKind::RunExpired).then_some(())
        })
        .await;
        until_state(&*store, n, state).await;
    }
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panicking_execution_is_abandoned_and_worker_survives() {
    let (store, doer) = (memory(), Doer::new());
    let workers = start(&store, &doer, 1);
    store.launch(launch(1, "panic")).await.unwrap();
    store.launch(launch(2, "end")).await.unwrap();
    until_state(&*store, 2, RunState::Completed).await;
    until_state(&*store, 1, RunState::Failed).await;
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_cannot_be_written_is_given_up() {
    let (store, doer) = (memory(), Doer::new());
    let workers = start(&store, &doer, 1);
    store.launch(launch(1, "break")).await.unwrap();
    until_state(&*store, 1, RunState::Failed).await;
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caller_executes_only_its_own_run() {
    let (store, doer) = (memory(), Doer::new());
    let execute: Arc<dyn Execute> = Arc::new(Does(doer.clone(), store.clone()));
    let (stop, leases) = (CancellationToken::new(), settings(1).leases);
    store.launch(launch(1, "end")).await.unwrap();
    store.launch(launch(2, "ask")).await.unwrap();
    let run = RunId("run-0002".into());
    let work = |run: RunId, stop: CancellationToken| {
        let (store, execute) = (store.clone(), execute.clone());
        async move {
            let permits = CallerPermits::new(1);
            execute_next(&store, &execute, &run, leases, &permits, (&stop, &stop)).await.unwrap()
        }
    };
    let none = CallerPermits::new(0);
    let waiting = execute_next(&store, &execute, &run, leases, &none, (&stop, &stop));
    tokio::time::timeout(Duration::from_millis(200), waiting)
        .await
        .expect_err("it executes without a permit");
    assert_eq!(store.run(&run).await.unwrap().unwrap().state, RunState::Pending);
    assert_eq!(work(run.clone(), stop.clone()).await.unwrap().state, RunState::WaitingForHuman);
    assert_eq!(store.run(&RunId("run-0001".into())).await.unwrap().unwrap().state, RunState::Pending);
    store.command(&run, yes(), None, None, None).await.unwrap();
    assert_eq!(work(run.clone(), stop.clone()).await.unwrap().state, RunState::Completed);
    assert!(work(RunId("nowhere".into()), stop.clone()).await.is_none());

    // One that another worker has: the caller sees it through.
    store.launch(launch(3, "stay")).await.unwrap();
    let run = RunId("run-0003".into());
    let other = tokio::spawn(work(run.clone(), stop.clone()));
    until(&*store, "the other has it", async || (doer.started.load(Ordering::SeqCst) == 3).then_some(()))
        .await;
    let watcher = tokio::spawn(work(run.clone(), CancellationToken::new()));
    doer.permits.add_permits(1);
    assert_eq!(watcher.await.unwrap().unwrap().state, RunState::Completed);
    other.await.unwrap();

    // When stopped, it releases the run.
    store.launch(launch(4, "stay")).await.unwrap();
    let run = RunId("run-0004".into());
    let stopped = tokio::spawn(work(run.clone(), stop.clone()));
    until(&*store, "it runs", async || (doer.started.load(Ordering::SeqCst) == 4).then_some(())).await;
    stop.cancel();
    assert_eq!(stopped.await.unwrap().unwrap().state, RunState::Running);
    assert!(store.due().await.unwrap().claimable);
}

/// A caller that disconnects: what it started ends as it would have, and only that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_leaves_does_not_interrupt_its_run() {
    let (store, doer) = (memory(), Doer::new());
    let execute: Arc<dyn Execute> = Arc::new(Does(doer.clone(), store.clone()));
    // A lease that expires under load would start the run again.
    let leases = LeaseSettings { lease: Duration::from_secs(60), ..settings(1).leases };
    let (stop, permits) = (CancellationToken::new(), CallerPermits::new(2));
    let work = |n: usize, leave: &CancellationToken| {
        let (store, execute, leave) = (store.clone(), execute.clone(), leave.clone());
        let (permits, stop) = (&permits, &stop);
        async move {
            let run = RunId(format!("run-{n:04}"));
            let run = execute_next(&store, &execute, &run, leases, permits, (&leave, stop)).await;
            run.unwrap().unwrap().state
        }
    };
    for n in 1..=3 {
        store.launch(launch(n, "stay")).await.unwrap();
    }
    store.launch(Launch { started_by: "ben".into(), ..launch(4, "end") }).await.unwrap();
    let leave = CancellationToken::new();
    let leaves = async {
        until(&*store, "one is executed", async || (doer.started.load(Ordering::SeqCst) == 1).then_some(()))
            .await;
        // A principal has half of the permits: another one gets the other half at once.
        assert_eq!(work(4, &CancellationToken::new()).await, RunState::Completed);
        leave.cancel();
        doer.permits.add_permits(1);
    };
    let (first, second, third, ()) = tokio::join!(work(1, &leave), work(2, &leave), work(3, &leave), leaves);
    let count = |state| [first, second, third].into_iter().filter(|run| *run == state).count();
    assert_eq!((count(RunState::Completed), count(RunState::Pending)), (1, 2));
    assert_eq!(doer.canceled.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_runs_of_one_principal_do_not_delay_those_of_others() {
    let (store, doer) = (memory(), Doer::new());
    for n in 1..=4 {
        store.launch(launch(n, "stay")).await.unwrap();
    }
    let workers = start(&store, &doer, 2);
    until(&*store, "two are executed", async || (doer.started.load(Ordering::SeqCst) == 2).then_some(()))
        .await;
    for (n, who) in [(5, "ben"), (6, "cleo")] {
        store.launch(Launch { started_by: who.into(), ..launch(n, "end") }).await.unwrap();
        until_state(&*store, n, RunState::Completed).await;
    }
    assert_eq!(doer.started.load(Ordering::SeqCst), 4, "one principal has no more than the workers");
    doer.permits.add_permits(4);
    for n in 1..=4 {
        until_state(&*store, n, RunState::Completed).await;
    }
    workers.shutdown().await;
}
