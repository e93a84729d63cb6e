//! Tests of the server store: the conformance kit, and failures of server and network with many workers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../../../benches/five_steps/delay.rs"]
mod delay;
#[path = "../../../tests/postgres/mod.rs"]
mod postgres;
#[path = "../../../tests/store_kit/mod.rs"]
mod store_kit;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postgres::Server;
use serde_json::json;
use skills_model::{Command, RunState, Verdict, WorkerReport};
use skills_store::{
    AuditAnchor, AuditAnchors as _, Checkpoint, Counts as _, KnownStores, Postgres, PostgresAddress,
    PostgresOptions, RunFilter, RunId, Sessions as _, Sqlite, StepIntent, StepRecord, StepStatus, Store,
    StoreError, Unavailability, WorkerId,
};
use store_kit::Time;

/// Longer than all timeouts of the store together.
const TIMEOUT: Duration = Duration::from_secs(60);

async fn open_at(address: &str, options: &PostgresOptions) -> Result<Postgres, StoreError> {
    Postgres::open(&PostgresAddress::parse(address)?, options).await
}

async fn open(address: &str) -> Postgres {
    open_at(address, &PostgresOptions::default()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_requirements_hold_on_a_server() {
    let Some(server) = Server::start() else { return };
    store_kit::run_all(async |time: Time| {
        let address = PostgresAddress::parse(&server.store().0).unwrap();
        Postgres::open_with(&address, &PostgresOptions::default(), Some(time.clock())).await.unwrap()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_assigns_runs_to_workers_of_their_root() {
    let Some(server) = Server::start() else { return };
    let (address, schema) = server.store();
    let store = open(&address).await;
    store.work_only(Box::new(|| Arc::new(vec!["/skills".to_owned()])));
    store_kit::runs_are_claimed_from_their_root(&store).await;
    // The column as version 2 computed it, for the runs above.
    let old = "CASE WHEN strpos(options, '\\u0000') = 0 THEN CAST(options AS jsonb) ->> 'place' END";
    server.sql(&format!(
        "SET search_path = {schema}; UPDATE schema_version SET version = 2; ALTER TABLE runs DROP COLUMN place;
         ALTER TABLE runs ADD COLUMN place TEXT COLLATE \"C\" GENERATED ALWAYS AS ({old}) STORED"
    ));
    drop(open(&address).await);
    let unknown = server.sql(&format!("SELECT count(*) FROM {schema}.runs WHERE place IS NULL"));
    assert_eq!(unknown, "4", "only the runs without a root");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reopened_store_has_its_earlier_content() {
    let Some(server) = Server::start() else { return };
    let (address, schema) = server.store();
    let folder = tempfile::tempdir().unwrap();
    let known = Some(KnownStores::new(folder.path().join("stores.json")));
    let refused = open_at(&address, &PostgresOptions { must_exist: true, known: None }).await.unwrap_err();
    assert_eq!(refused.unavailability(), Some(Unavailability::Missing), "{refused}");
    let options = PostgresOptions { known, must_exist: false };
    let (first, second) = futures::join!(open_at(&address, &options), open_at(&address, &options));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.identity(), second.identity(), "one of two that open at once makes the tables");
    first.launch(store_kit::launch(1)).await.unwrap();
    assert_eq!(second.runs(RunFilter::default()).await.unwrap().runs.len(), 1);
    let health = second.check().await.unwrap();
    assert!(health.is_sound() && (health.runs, health.events) == (1, 1), "{health:?}");
    server.sql(&format!("UPDATE {schema}.schema_version SET version = 999"));
    let newer = open_at(&address, &options).await.unwrap_err();
    assert!(matches!(newer, StoreError::Newer { found: 999, .. }), "{newer}");
    server.sql(&format!("UPDATE {schema}.schema_version SET version = 1; DROP TABLE {schema}.documents"));
    let migrated = open_at(&address, &options).await.unwrap();
    assert_eq!(migrated.put_document("view:a", Some(json!(1)), Some(0)).await, Ok(1));
    server.sql(&format!("UPDATE {schema}.identity SET id = 'other'"));
    let replaced = open_at(&address, &options).await.unwrap_err();
    assert_eq!(replaced.unavailability(), Some(Unavailability::Replaced), "{replaced}");
    let probed = first.probe().await.unwrap_err();
    assert_eq!(probed.unavailability(), Some(Unavailability::Replaced), "{probed}");
    server.sql(&format!("DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema}"));
    let missing = open_at(&address, &options).await.unwrap_err();
    assert_eq!(missing.unavailability(), Some(Unavailability::Missing), "{missing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quick_check_counts_roles_that_may_connect_without_a_grant() {
    let Some(server) = Server::start() else { return };
    let store = open(&server.store().0).await;
    let others = async || store.quick_check(TIMEOUT).await.unwrap().other_roles;
    let before = others().await;
    server.sql("CREATE ROLE may_only_connect LOGIN; SELECT 1");
    assert_eq!(others().await, before + 1);
    server.sql("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC; SELECT 1");
    assert_eq!(others().await, 0);
    server.sql("GRANT CONNECT ON DATABASE postgres TO PUBLIC; DROP ROLE may_only_connect; SELECT 1");
}

/// On a network a response may arrive message by message, which takes more buffers of a connection than one that
/// arrives whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_may_arrive_in_parts() {
    let Some(server) = Server::start() else { return };
    let store = open(&delay::start(&server.store().0, Duration::ZERO).await).await;
    let work = async {
        let run = store.launch(store_kit::launch(1)).await.unwrap().run.id;
        let claimed = store.claim(&WorkerId("a".to_owned()), 30_000, Some(&run)).await.unwrap().unwrap();
        assert_eq!(store.steps(&run, u64::MAX).await.unwrap(), []);
        store.release_lease(&run, claimed.fence).await.unwrap();
        assert_eq!(store.runs(RunFilter::default()).await.unwrap().runs.len(), 1);
        assert!(!store.events(Some(&run), 0, 10).await.unwrap().is_empty());
    };
    tokio::time::timeout(TIMEOUT / 2, work).await.expect("no statement waits forever");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audit_anchors_are_stored_without_an_async_runtime() {
    let Some(server) = Server::start() else { return };
    let store = Arc::new(open(&server.store().0).await);
    let writer = Arc::clone(&store);
    std::thread::spawn(move || {
        writer.store_audit_anchor("log", AuditAnchor { seq: 7, head: "abc".to_owned() });
    })
    .join()
    .unwrap();
    let result = async {
        while store.audit_anchors("log").await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), result).await.unwrap();
    assert_eq!(store.audit_anchors("log").await.unwrap()[0].seq, 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedded_store_is_copied_to_a_server() {
    let Some(server) = Server::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let old = Sqlite::open(&path, Time::new().clock()).unwrap().store;
    store_kit::fill(&old).await;
    let before = store_kit::contents(&old).await;
    drop(old);
    let address = PostgresAddress::parse(&server.store().0).unwrap();
    let options = PostgresOptions::default();
    let new = Postgres::open_with(&address, &options, Some(Time::new().clock())).await.unwrap();
    new.store_audit_anchor("log", AuditAnchor { seq: 7, head: "abc".to_owned() });
    let result = async {
        while new.audit_anchors("log").await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, result).await.unwrap();
    let tables = new.import(&path).await.unwrap();
    assert!(tables.iter().any(|of| of.table == "runs" && of.rows == 3), "{tables:?}");
    store_kit::is_continued(&new, &before).await;
    assert_eq!(new.audit_anchors("log").await.unwrap().len(), 1, "anchors of other machines are kept");
    let again = new.import(&path).await.unwrap_err();
    assert!(matches!(again, StoreError::NotEmpty { .. }), "{again}");
}

/// A run of five steps is launched and claimed, its first step is announced, and each report records a step and
/// announces the next: eight transactions, of few round trips.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_costs_few_round_trips() {
    const STEPS: [&str; 5] = ["a", "b", "c", "d", "e"];
    let Some(server) = Server::start() else { return };
    let store = open(&server.store().0).await;
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&commits);
    store.observe_commits(Arc::new(move |_, _| _ = counted.fetch_add(1, Ordering::SeqCst)));
    let mut trips = Vec::new();
    let mut count = || {
        let sum: u64 = trips.iter().sum();
        trips.push(store.round_trips() - sum);
    };
    let run = store.launch(store_kit::launch(1)).await.unwrap().run.id;
    count();
    let claim = store.claim(&WorkerId("w".into()), 30_000, None).await.unwrap().unwrap();
    count();
    let intent = |step: &str| StepIntent {
        step: step.to_owned(),
        attempt: 1,
        inputs_digest: "d".into(),
        idempotency_key: step.to_owned(),
        repeatable: true,
        capability: None,
        bindings: None,
    };
    store.record_intent(&run, claim.fence, 1, intent(STEPS[0])).await.unwrap();
    count();
    for n in 1..=STEPS.len() {
        let next: Vec<StepIntent> = STEPS.get(n).map(|step| intent(step)).into_iter().collect();
        let report = if next.is_empty() { WorkerReport::Complete } else { WorkerReport::Checkpoint };
        let done = STEPS[..n].iter().map(|step| (*step).to_owned()).collect();
        let checkpoint = Checkpoint { number: n as u64, done, state: json!({"outputs": {}}), at_ms: 0 };
        let command = Command::Work { fence: claim.fence, report };
        let step = recorded(STEPS[n - 1], "w");
        store.report(&run, command, vec![step], Some(checkpoint), next, vec![]).await.unwrap();
        count();
    }
    assert_eq!(store.run(&run).await.unwrap().unwrap().state, RunState::Completed);
    assert_eq!(commits.load(Ordering::SeqCst), 8, "commits");
    // One to read, one to write and commit. A claim also reads what is needed to execute the run. Fewer where a response
    // arrives before it is waited for.
    let most = [2, 3, 2, 2, 2, 2, 2, 2];
    assert!(
        trips.iter().zip(most).all(|(trips, most)| *trips <= most),
        "launch, claim, intent, reports: {trips:?}"
    );
    assert_eq!(trips.len(), most.len());
}

/// A process that saw the later time and one that was started since must not take each other's leases for over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_clock_set_back_moves_a_lease_once() {
    const BACK: i64 = 3_600_000;
    const LEASE: u64 = 30_000;
    let Some(server) = Server::start() else { return };
    let (address, time) = (PostgresAddress::parse(&server.store().0).unwrap(), Time::new());
    let options = PostgresOptions::default();
    let open = || Postgres::open_with(&address, &options, Some(time.clock()));
    time.pass(BACK);
    let early = open().await.unwrap();
    early.launch(store_kit::launch(1)).await.unwrap();
    early.claim(&WorkerId("early".into()), LEASE, None).await.unwrap().unwrap();
    time.pass(-BACK);
    let late = open().await.unwrap();
    // No lease is that long: the clock was set back.
    let taken = late.claim(&WorkerId("late".into()), LEASE, None).await.unwrap().unwrap();
    assert!(taken.takeover);
    assert!(early.claim(&WorkerId("early".into()), LEASE, None).await.unwrap().is_none());
    late.renew(&taken.run.id, taken.fence, LEASE).await.unwrap();
}

#[tokio::test]
async fn missing_server_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().display().to_string().replace('/', "%2F");
    let address = format!("postgres://kim:s3cret@{socket}/runs");
    let error = open_at(&address, &PostgresOptions::default()).await.unwrap_err();
    assert_eq!(error.unavailability(), Some(Unavailability::Io), "{error}");
    assert!(!error.to_string().contains("s3cret"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_of_another_process_wake_waiters() {
    let Some(server) = Server::start() else { return };
    let (address, _) = server.store();
    let (a, b) = (open(&address).await, Arc::new(open(&address).await));
    // Waits until both listen.
    a.launch(store_kit::launch(0)).await.unwrap();
    b.wait(0, 20_000).await.unwrap();
    let mut slowest = Duration::ZERO;
    for n in 1..=20 {
        let seen = b.newest_event().await.unwrap();
        let waiter = tokio::spawn({
            let b = Arc::clone(&b);
            async move { b.wait(seen, 20_000).await.map(|()| Instant::now()) }
        });
        a.launch(store_kit::launch(n)).await.unwrap();
        let committed = Instant::now();
        let woken = waiter.await.unwrap().unwrap();
        slowest = slowest.max(woken.saturating_duration_since(committed));
    }
    eprintln!("slowest wake-up of 20: {slowest:?}");
    assert_eq!(b.events(None, 0, 100).await.unwrap().len(), 21);
    // The listening connection is lost; what is committed in the meantime is found nevertheless.
    let seen = b.newest_event().await.unwrap();
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' OR query LIKE 'NOTIFY%'");
    a.launch(store_kit::launch(21)).await.unwrap();
    b.wait(seen, 20_000).await.unwrap();
    assert!(b.newest_event().await.unwrap() > seen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolled_back_transaction_wakes_no_waiter() {
    let Some(server) = Server::start() else { return };
    let (address, schema) = server.store();
    let store = open(&address).await;
    store.launch(store_kit::launch(0)).await.unwrap();
    let seen = store.events(None, 0, 100).await.unwrap().last().unwrap().global;
    server.sql(&format!("SELECT nextval('{schema}.events_global')"));
    let patience = Duration::from_millis(300);
    let waited = tokio::time::timeout(patience, store.wait(seen, 20_000)).await;
    assert!(waited.is_err(), "there is no event after the last one");
    // An event after the gap is found.
    let waiter = store.wait(seen, 20_000);
    let launch = store.launch(store_kit::launch(1));
    let (waited, _) = futures::join!(waiter, launch);
    waited.unwrap();
    assert!(!store.events(None, seen, 1).await.unwrap().is_empty());
}

/// Reads all events as a follower does, and collects their global numbers.
async fn follow(store: &Postgres, until: &AtomicBool) -> Vec<(RunId, u64)> {
    let (mut seen, mut after) = (Vec::new(), 0);
    loop {
        let ended = until.load(Ordering::SeqCst);
        let events = store.events(None, after, 50).await.unwrap();
        for event in &events {
            assert!(event.global > after, "global numbers go forward");
            after = event.global;
            seen.push((event.run.clone(), event.number));
        }
        if events.is_empty() {
            if ended {
                return seen;
            }
            store.wait(after, 20).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_misses_no_event_of_concurrent_writers() {
    const WRITERS: u32 = 8;
    const RUNS: u32 = 30;
    let Some(server) = Server::start() else { return };
    let store = Arc::new(open(&server.store().0).await);
    let ended = Arc::new(AtomicBool::new(false));
    let follower = tokio::spawn({
        let (store, ended) = (Arc::clone(&store), Arc::clone(&ended));
        async move { follow(&store, &ended).await }
    });
    let writers = (0..WRITERS).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for n in 0..RUNS {
                let run = RunId(format!("run-{:04}", writer * RUNS + n));
                store.launch(store_kit::launch(writer * RUNS + n)).await.unwrap();
                store.command(&run, Command::Pause, None, None, None).await.unwrap();
                store.command(&run, Command::Cancel, None, None, None).await.unwrap();
            }
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.unwrap();
    }
    ended.store(true, Ordering::SeqCst);
    let seen = follower.await.unwrap();
    let distinct: BTreeSet<_> = seen.iter().collect();
    let health = store.check().await.unwrap();
    assert_eq!((seen.len(), distinct.len() as u64), (distinct.len(), health.events), "each event once");
    for run in 0..WRITERS * RUNS {
        let id = RunId(format!("run-{run:04}"));
        let numbers: Vec<u64> = seen.iter().filter(|(of, _)| *of == id).map(|(_, number)| *number).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "in the order of the run");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_decisions_of_two_services_are_one() {
    let Some(server) = Server::start() else { return };
    let (address, _) = server.store();
    let (a, b) = (open(&address).await, open(&address).await);
    for n in 0..20 {
        let run = store_kit::waiting(&a, n).await;
        let (yes, no) = futures::join!(
            a.command(&run, store_kit::decision(Verdict::Approve), None, None, None),
            b.command(&run, store_kit::decision(Verdict::Deny), None, None, None),
        );
        assert_eq!(u8::from(yes.is_ok()) + u8::from(no.is_ok()), 1, "{yes:?} {no:?}");
        assert_eq!(b.decisions(&run).await.unwrap().len(), 1);
        a.command(&run, Command::Cancel, None, None, None).await.ok();
    }
    let allowances = futures::future::join_all((0..20).map(|n| {
        let store = if n % 2 == 0 { &a } else { &b };
        store.allowance("kim", 1, 3, 25)
    }));
    let granted: u64 = allowances.await.into_iter().map(|allowance| allowance.unwrap().granted).sum();
    assert_eq!(granted, 25, "a limit is shared");
    a.create_session("s", None, json!({})).await.unwrap();
    let (one, other) = futures::join!(
        a.change_session("s", 0, json!({"n": 1}), vec![json!(1)]),
        b.change_session("s", 0, json!({"n": 2}), vec![json!(2)]),
    );
    assert_eq!(u8::from(one.is_ok()) + u8::from(other.is_ok()), 1, "{one:?} {other:?}");
    assert_eq!(a.session("s", 0).await.unwrap().unwrap().lines.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exhausted_pool_and_a_timeout_are_unavailable() {
    let Some(server) = Server::start() else { return };
    let (address, schema) = server.store();
    let store = Arc::new(
        open(&format!("{address}&pool_size=1&pool_timeout_ms=5000&statement_timeout_ms=10000")).await,
    );
    store.launch(store_kit::launch(1)).await.unwrap();
    let lock = format!(
        "BEGIN; LOCK TABLE {schema}.runs; DO $$ BEGIN
            WHILE NOT EXISTS (SELECT FROM pg_tables WHERE schemaname = '{schema}' AND tablename = 'released')
            LOOP PERFORM pg_sleep(0.05); END LOOP; END $$"
    );
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| server.sql(&lock));
        let runtime = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| {
            runtime.block_on(async {
                let lock_query = format!("SELECT count(*) FROM pg_locks WHERE relation = '{schema}.runs'::regclass AND mode = 'AccessExclusiveLock'");
                while server.sql(&lock_query) != "1" {}
                let cancel = RunId("run-0001".into());
                let (slow, second) = futures::join!(
                    store.command(&cancel, Command::Cancel, None, None, None),
                    store.run(&cancel),
                );
                for error in [slow.unwrap_err(), second.unwrap_err()] {
                    assert_eq!(error.unavailability(), Some(Unavailability::Busy), "{error}");
                }
                assert!(store.write_failure().is_some());
            });
        });
        server.sql(&format!("CREATE TABLE {schema}.released ()"));
        holder.join().unwrap();
    });
    store.command(&RunId("run-0001".into()), Command::Cancel, None, None, None).await.unwrap();
    assert!(store.write_failure().is_none(), "it is over with the next write");
}

fn recorded(step: &str, by: &str) -> StepRecord {
    StepRecord {
        step: step.to_owned(),
        status: StepStatus::Completed,
        inputs: json!({}),
        result: json!({"by": by}),
        binding: None,
        isolation: None,
        attempts: 1,
        started_ms: 0,
        ended_ms: 1,
        omitted_bytes: None,
    }
}

/// A worker that runs two steps of each claimed run; its operations may fail while the server is down.
async fn work(store: Arc<Postgres>, name: String, stop: Arc<AtomicBool>, done: Arc<AtomicUsize>) {
    let worker = WorkerId(name);
    while !stop.load(Ordering::SeqCst) {
        let Ok(Some(claim)) = store.claim(&worker, 2_000, None).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let mut finished = claim.checkpoint.done.clone();
        let mut number = claim.checkpoint.number;
        let (run, fence) = (&claim.run.id, claim.fence);
        for step in ["one", "two"].into_iter().filter(|step| !claim.checkpoint.done.iter().any(|d| d == step))
        {
            finished.push(step.to_owned());
            number += 1;
            let record = recorded(step, &worker.0);
            let checkpoint = Checkpoint {
                number,
                done: finished.clone(),
                state: json!({"outputs": {"steps": finished.len()}}),
                at_ms: 0,
            };
            let report = if step == "two" { WorkerReport::Complete } else { WorkerReport::Checkpoint };
            let command = Command::Work { fence, report };
            let reported = store.report(run, command, vec![record], Some(checkpoint), vec![], vec![]).await;
            match reported {
                Ok(run) if run.state == RunState::Completed => _ = done.fetch_add(1, Ordering::SeqCst),
                Ok(_) => {}
                // Unknown, or taken over: the next claim continues from what was recorded.
                Err(_) => break,
            }
        }
    }
}

/// Asserts that every launched run is completed, with each step recorded once.
async fn all_completed(store: &Postgres, runs: &[RunId]) {
    for run in runs {
        let record = store.run(run).await.unwrap().expect("what was acknowledged is there");
        assert_eq!(record.state, RunState::Completed, "{run}");
        let steps: Vec<String> =
            store.steps(run, u64::MAX).await.unwrap().into_iter().map(|step| step.step).collect();
        assert_eq!(steps, ["one", "two"], "{run}");
    }
    let health = store.check().await.unwrap();
    assert!(health.is_sound(), "{health:?}");
}

async fn wait_until_completed(store: &Postgres) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let counts = store.runs(RunFilter::default()).await.map(|page| page.counts).unwrap_or_default();
        if !counts.is_empty() && counts.keys().all(|state| *state == RunState::Completed) {
            break;
        }
        assert!(Instant::now() < deadline, "{counts:?}");
        let seen = store.newest_event().await.unwrap_or(0);
        let _ = store.wait(seen, 100).await;
    }
}

fn soak() -> u32 {
    std::env::var("SKILLS_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_under_load_loses_nothing() {
    let Some(mut server) = Server::start() else { return };
    if !server.is_own() {
        return eprintln!("skipped: the server of SKILLS_TEST_POSTGRES is not stopped by a test");
    }
    let store = Arc::new(open(&server.store().0).await);
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let workers: Vec<_> = (0..4)
        .map(|n| {
            tokio::spawn(work(Arc::clone(&store), format!("w{n}"), Arc::clone(&stop), Arc::clone(&done)))
        })
        .collect();
    let mut launched = Vec::new();
    for round in 0..2 * soak() {
        let before = done.load(Ordering::SeqCst);
        for n in 0..60 {
            let launch = store_kit::launch(round * 1000 + n);
            let run = launch.id.clone();
            // An unacknowledged run may exist or not; it is not counted.
            if store.launch(launch).await.is_ok() {
                launched.push(run);
            }
            if n == 30 {
                let deadline = Instant::now() + TIMEOUT;
                while done.load(Ordering::SeqCst) == before && Instant::now() < deadline {
                    tokio::task::yield_now().await;
                }
                tokio::task::block_in_place(|| server.restart());
            }
        }
    }
    wait_until_completed(&store).await;
    stop.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await.unwrap();
    }
    all_completed(&store, &launched).await;
}

/// Addresses name the servers in either order: each connection is to the one that accepts writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_loses_and_repeats_nothing() {
    let Some((mut primary, standby)) = Server::start_replicated() else { return };
    let (_, schema) = primary.store();
    let mut stores = Vec::new();
    for (first, second) in [(&primary, &standby), (&standby, &primary)] {
        let hosts = format!("{},{}", first.endpoint(), second.endpoint());
        let address = format!("postgres://tests@{hosts}/postgres?options=-csearch_path%3D{schema}");
        stores.push(Arc::new(open(&address).await));
    }
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let workers: Vec<_> = (0..4)
        .map(|n| {
            let store = Arc::clone(&stores[n % 2]);
            tokio::spawn(work(store, format!("w{n}"), Arc::clone(&stop), Arc::clone(&done)))
        })
        .collect();
    let mut launched = Vec::new();
    for n in 0..120 {
        let launch = store_kit::launch(n);
        let run = launch.id.clone();
        // An unacknowledged run may exist or not; it is not counted.
        if stores[n as usize % 2].launch(launch).await.is_ok() {
            launched.push(run);
        }
        if n == 60 {
            let deadline = Instant::now() + TIMEOUT;
            while done.load(Ordering::SeqCst) == 0 && Instant::now() < deadline {
                tokio::task::yield_now().await;
            }
            let promoted = tokio::task::block_in_place(|| {
                primary.crash();
                // Without waiting: records that the standby still replays may cancel a statement that takes long.
                standby.sql("SELECT pg_promote(false)")
            });
            assert_eq!(promoted, "t");
            let began = Instant::now();
            for store in &stores {
                while let Err(error) = store.probe().await {
                    assert!(began.elapsed() < TIMEOUT, "{error}");
                }
            }
            eprintln!("ready {} ms after the promotion", began.elapsed().as_millis());
        }
    }
    wait_until_completed(&stores[0]).await;
    stop.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await.unwrap();
    }
    assert!(launched.len() > 100, "{} acknowledged", launched.len());
    all_completed(&stores[1], &launched).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_lost_at_random_lose_and_repeat_nothing() {
    let Some(server) = Server::start() else { return };
    let (address, _) = server.store();
    let store = Arc::new(open(&address).await);
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let workers: Vec<_> = (0..20)
        .map(|n| {
            tokio::spawn(work(Arc::clone(&store), format!("w{n}"), Arc::clone(&stop), Arc::clone(&done)))
        })
        .collect();
    let mut launched = Vec::new();
    let mut lost = 0;
    for n in 0..200 * soak() {
        let launch = store_kit::launch(n);
        let run = launch.id.clone();
        if store.launch(launch).await.is_ok() {
            launched.push(run);
        }
        if n % 10 == 9 {
            let kill = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
                WHERE application_name = 'skill-workbench' ORDER BY random() LIMIT 4) victims";
            lost += tokio::task::block_in_place(|| server.sql(kill)).parse::<u32>().unwrap();
        }
    }
    assert!(lost > 0);
    let deadline = Instant::now() + TIMEOUT;
    while done.load(Ordering::SeqCst) < launched.len() && Instant::now() < deadline {
        let counts = store.runs(RunFilter::default()).await.map(|page| page.counts).unwrap_or_default();
        if !counts.is_empty() && counts.keys().all(|state| *state == RunState::Completed) {
            break;
        }
        let seen = store.newest_event().await.unwrap_or(0);
        let _ = store.wait(seen, 100).await;
    }
    stop.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await.unwrap();
    }
    all_completed(&store, &launched).await;
    eprintln!("{lost} connections lost, {} runs completed", launched.len());
}

/// Connections are closed all the time: between two statements, before the commit, in the pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_lost_at_random_fail_no_read() {
    const READERS: usize = 16;
    let Some(server) = Server::start() else { return };
    let (address, _) = server.store();
    let store = Arc::new(open(&address).await);
    for n in 0..20 {
        store.launch(store_kit::launch(n)).await.unwrap();
    }
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (store, stop, done) = (Arc::clone(&store), Arc::clone(&stop), Arc::clone(&done));
            let run = RunId("run-0007".into());
            tokio::spawn(async move {
                let mut failed = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    let runs = store.runs(RunFilter::default()).await.map(|page| page.runs.len());
                    let found = store.run(&run).await.map(|run| usize::from(run.is_some()));
                    let events = store.events(None, 0, 50).await.map(|events| events.len());
                    let newest = store.newest_event().await.map(|newest| usize::from(newest >= 20));
                    for (read, expected) in [(runs, 20), (found, 1), (events, 20), (newest, 1)] {
                        done.fetch_add(1, Ordering::SeqCst);
                        match read {
                            Ok(count) => assert_eq!(count, expected),
                            Err(error) => failed.push(error.to_string()),
                        }
                    }
                }
                failed
            })
        })
        .collect();
    // Between two statements if possible, where the next one may be the last. So seldom per read that none loses all the
    // connections that it tries.
    let kills = 100 * soak();
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
        WHERE application_name = 'skill-workbench'
        ORDER BY state = 'idle in transaction' DESC, random() LIMIT 1) victims";
    for _ in 0..kills {
        let (before, deadline) = (done.load(Ordering::SeqCst), Instant::now() + TIMEOUT);
        while done.load(Ordering::SeqCst) < before + READERS / 2 {
            assert!(Instant::now() < deadline, "nothing is read");
            tokio::task::yield_now().await;
        }
        tokio::task::block_in_place(|| server.sql(kill));
    }
    stop.store(true, Ordering::SeqCst);
    let mut failed = Vec::new();
    for reader in readers {
        failed.extend(reader.await.unwrap());
    }
    let reads = done.load(Ordering::SeqCst);
    eprintln!("{kills} connections closed during {reads} reads");
    assert!(failed.is_empty(), "{} of {reads} reads failed: {:?}", failed.len(), failed.first());
}

/// Query plans of the screens' queries, over many runs of realistic size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_query_of_the_screens_scans_a_table() {
    let Some(server) = Server::start() else { return };
    if !server.is_own() {
        return eprintln!("skipped: the log of the server of SKILLS_TEST_POSTGRES cannot be read");
    }
    let (address, schema) = server.store();
    let store = open(&address).await;
    let contract = store.launch(store_kit::launch(1)).await.unwrap().run.contract_digest;
    let runs = 100_000 * u64::from(soak());
    server.sql(&format!(
        "SET search_path = {schema};
         INSERT INTO runs (id, skill_id, state, steps_total, created_ms, since_ms, contract_digest, trace_id, started_by,
                           options, inputs, events)
         SELECT 'many-' || n, 'skill-' || n % 50,
                CASE WHEN n % 1000 = 0 THEN 'waiting_for_human' WHEN n % 1000 = 1 THEN 'pending'
                     WHEN n % 100 = 2 THEN 'failed' ELSE 'completed' END,
                2, n, n, '{contract}', md5(n::text), 'ana', '{{}}', json_build_object('n', n, 'text', repeat(md5(n::text), 20))::text, 1
         FROM generate_series(1, {runs}) n;
         INSERT INTO events (run, number, at_ms, kind, data)
         SELECT 'many-' || n, 1, n, 'run.created', '{{}}' FROM generate_series(1, {runs}) n;
         INSERT INTO checkpoints (run, number, done, state, at_ms)
         SELECT 'many-' || n, 0, '[]', '{{}}', n FROM generate_series(1, {runs}) n;
         INSERT INTO steps (run, n, step, json) SELECT 'many-' || n, 1, 'one', '{{}}' FROM generate_series(1, {runs}) n;
         INSERT INTO decisions (run, at_ms, decision) SELECT 'many-' || n, n, '{{}}' FROM generate_series(1, {runs}, 100) n"
    ));
    store.compact().await.unwrap();
    server.sql(&format!(
        "ALTER ROLE CURRENT_USER IN DATABASE postgres SET session_preload_libraries = 'auto_explain';
         ALTER ROLE CURRENT_USER IN DATABASE postgres SET auto_explain.log_min_duration = 0;
         ALTER ROLE CURRENT_USER IN DATABASE postgres SET auto_explain.log_level = 'log'; SELECT '{schema}'"
    ));
    let explained = open(&address).await;
    let worker = WorkerId("w".into());
    let run = RunId("run-0001".into());
    for filter in [
        RunFilter::default(),
        RunFilter { states: vec![RunState::Failed], ..RunFilter::default() },
        RunFilter { skill_id: Some("skill-7".into()), ..RunFilter::default() },
        RunFilter { r#where: Some("state:failed input.n:>5".into()), limit: 20, ..RunFilter::default() },
        RunFilter { trace_id: Some("c4ca4238a0b923820dcc509a6f75849b".into()), ..RunFilter::default() },
        RunFilter { text: Some("many-99".into()), limit: 20, ..RunFilter::default() },
    ] {
        explained.runs(filter).await.unwrap();
    }
    explained.run(&run).await.unwrap();
    explained.intents(&run).await.unwrap();
    explained.steps(&run, u64::MAX).await.unwrap();
    explained.checkpoints(&run, None, 1000).await.unwrap();
    explained.decisions(&run).await.unwrap();
    explained.descendants(&run).await.unwrap();
    explained.events(Some(&run), 0, 100).await.unwrap();
    explained.events(None, runs / 2, 100).await.unwrap();
    explained.due().await.unwrap();
    explained.expired().await.unwrap();
    explained.leaseholders().await.unwrap();
    explained.runs_by_skill().await.unwrap();
    let claim = explained.claim(&worker, 30_000, None).await.unwrap().expect("a pending run");
    explained.renew(&claim.run.id, claim.fence, 30_000).await.unwrap();
    let plans = server.log();
    assert!(plans.contains("Index"), "plans are written to the log");
    let scans: Vec<&str> = plans
        .lines()
        .filter(|line| {
            ["runs", "events", "steps", "checkpoints", "decisions"]
                .iter()
                .any(|table| line.contains(&format!("Seq Scan on {table} ")))
        })
        .collect();
    assert!(scans.is_empty(), "{scans:#?}");
}
