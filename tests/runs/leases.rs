//! Ownership of runs: leases by the boot clock, regardless of wall clocks, and owners whose processes have ended.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use skills_model::{Command as RunCommand, RunState, WorkerReport};
use skills_runs::{Execute, LeaseSettings, ProcessIdentity, Supervisor, SupervisorSettings};
use skills_store::{
    BootTime, Checkpoint, Claimed, ClockReading, Clocks, RunEvent, RunId, Sqlite, Store, StoreError, WorkerId,
};
use tokio_util::sync::CancellationToken;

use crate::store_kit;

const LEASE: u64 = 30_000;
const FIVE_MINUTES: i64 = 300_000;
const FOLDER: &str = "SKILLS_LEASES_FOLDER";

/// A machine: one boot clock for all its processes, and a wall clock that each may see differently.
#[derive(Clone)]
struct Machine {
    elapsed: Arc<AtomicI64>,
    boot: Arc<str>,
}

impl Machine {
    fn booted(boot: &str) -> Self {
        Self { elapsed: Arc::new(AtomicI64::new(60_000)), boot: boot.into() }
    }

    fn pass(&self, ms: i64) {
        self.elapsed.fetch_add(ms, Ordering::SeqCst);
    }

    /// The clocks of a process whose wall clock is off by this much.
    fn clocks(&self, off_ms: i64) -> Clocks {
        let (wall, machine) = (self.elapsed.clone(), self.clone());
        Clocks::new(Arc::new(move || 1_700_000_000_000 + off_ms + wall.load(Ordering::SeqCst)), move || {
            Some(BootTime { boot: machine.boot.clone(), ms: machine.elapsed.load(Ordering::SeqCst) })
        })
    }
}

fn open(path: &Path, clocks: Clocks) -> Sqlite {
    Sqlite::open(path, clocks).unwrap().store
}

fn worker(name: &str) -> WorkerId {
    WorkerId(name.into())
}

fn first() -> RunId {
    RunId("run-0001".into())
}

#[tokio::test]
async fn wrong_wall_clocks_take_no_lease() {
    for off_ms in [FIVE_MINUTES, -FIVE_MINUTES] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let machine = Machine::booted("b1");
        let owner = open(&path, machine.clocks(0));
        let other = open(&path, machine.clocks(off_ms));
        owner.launch(store_kit::launch(1)).await.unwrap();
        let claim = owner.claim(&worker("owner"), LEASE, None).await.unwrap().unwrap();
        owner.heartbeat(&worker("owner")).await.unwrap();

        machine.pass(29_000);
        assert!(!other.due().await.unwrap().claimable, "{off_ms}");
        assert!(other.claim(&worker("other"), LEASE, None).await.unwrap().is_none(), "{off_ms}");
        assert!(other.claim(&worker("other"), LEASE, Some(&first())).await.unwrap().is_none(), "{off_ms}");
        assert_eq!(other.live_workers(LEASE).await.unwrap(), [worker("owner")], "{off_ms}");
        let lease = other.run(&first()).await.unwrap().unwrap().lease.unwrap();
        let now = machine.clocks(off_ms).now();
        assert_eq!(lease.ends_ms(&now) - now.wall_ms, 1_000, "read on the other's own wall clock");

        owner.renew(&claim.run.id, claim.fence, LEASE).await.unwrap();
        machine.pass(30_001);
        assert!(other.due().await.unwrap().claimable, "{off_ms}");
        let heir = other.claim(&worker("other"), LEASE, None).await.unwrap().unwrap();
        assert_eq!((heir.run.id, heir.fence), (first(), 2), "{off_ms}");
        machine.pass(1);
        assert!(other.live_workers(30_000).await.unwrap().is_empty(), "{off_ms}");
    }
}

#[tokio::test]
async fn wall_clock_step_moves_no_lease() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::booted("b1");
    let wall = Arc::new(AtomicI64::new(1_700_000_000_000));
    let (stepping, boot) = (wall.clone(), machine.clone());
    let clocks =
        Clocks::new(Arc::new(move || stepping.load(Ordering::SeqCst)), move || boot.clocks(0).now().boot);
    let store = open(&folder.path().join("runs.db"), clocks);
    store.launch(store_kit::launch(1)).await.unwrap();
    store.claim(&worker("owner"), LEASE, None).await.unwrap().unwrap();
    for step in [86_400_000, -172_800_000] {
        wall.fetch_add(step, Ordering::SeqCst);
        assert!(!store.due().await.unwrap().claimable, "{step}");
    }
    machine.pass(30_001);
    assert!(store.due().await.unwrap().claimable);
}

#[tokio::test]
async fn lease_of_another_boot_ends_by_wall_clock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let before = Machine::booted("b1");
    let store = open(&path, before.clocks(0));
    store.launch(store_kit::launch(1)).await.unwrap();
    store.claim(&worker("owner"), LEASE, None).await.unwrap().unwrap();
    drop(store);

    let after = Machine::booted("b2");
    let store = open(&path, after.clocks(0));
    after.pass(29_999);
    assert!(!store.due().await.unwrap().claimable, "as long as its own wall clock said");
    after.pass(2);
    assert!(store.due().await.unwrap().claimable);
    drop(store);

    // The clock was an hour ahead before the machine was started again: no lease is that long.
    let store = open(&path, Machine::booted("b3").clocks(3_600_000));
    store.claim(&worker("owner"), LEASE, None).await.unwrap().unwrap();
    drop(store);
    let store = open(&path, after.clocks(-3_600_000));
    assert!(store.due().await.unwrap().claimable);
}

#[tokio::test]
async fn lease_of_an_earlier_version_ends_by_wall_clock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let machine = Machine::booted("b1");
    let store = open(&path, machine.clocks(0));
    store.launch(store_kit::launch(1)).await.unwrap();
    store.claim(&worker("owner"), LEASE, None).await.unwrap().unwrap();
    store.heartbeat(&worker("owner")).await.unwrap();
    drop(store);
    // As such rows are after the migration.
    let earlier = rusqlite::Connection::open(&path).unwrap();
    let rows = "UPDATE runs SET lease_boot = NULL, lease_until_boot_ms = NULL, inputs_digest = NULL;
                UPDATE checkpoints SET digest = NULL; UPDATE workers SET boot = NULL, seen_boot_ms = NULL";
    earlier.execute_batch(rows).unwrap();
    drop(earlier);

    let store = open(&path, machine.clocks(0));
    assert_eq!(store.live_workers(LEASE).await.unwrap(), [worker("owner")]);
    assert!(!store.due().await.unwrap().claimable);
    store.renew(&first(), 1, LEASE).await.unwrap();
    assert!(store.run(&first()).await.unwrap().unwrap().lease.unwrap().until_boot.is_some());
    machine.pass(30_001);
    assert_eq!(store.claim(&worker("heir"), LEASE, None).await.unwrap().unwrap().fence, 2);
}

/// Completes a run at once.
struct Completes(Arc<dyn Store>);

#[async_trait]
impl Execute for Completes {
    async fn execute(&self, claimed: Claimed, _: CancellationToken) -> Result<(), StoreError> {
        let end = Checkpoint { number: 1, done: vec!["one".into()], state: json!({}), at_ms: 0 };
        let command = RunCommand::Work { fence: claimed.fence, report: WorkerReport::Complete };
        self.0.report(&claimed.run.id, command, vec![], Some(end), vec![], vec![]).await.map(drop)
    }
}

/// Does nothing unless this process was started as the owner of a lease: claims the run and renews it until the end.
#[test]
fn owner_process() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = PathBuf::from(folder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(&folder.join("runs.db"), Clocks::system());
        let lease_ms: u64 = std::fs::read_to_string(folder.join("lease")).unwrap().parse().unwrap();
        let claim =
            store.claim(&ProcessIdentity::here().next_worker(), lease_ms, None).await.unwrap().unwrap();
        loop {
            store.renew(&claim.run.id, claim.fence, lease_ms).await.unwrap();
            // In one step: the process may be stopped at any moment.
            std::fs::write(folder.join("renewing"), ClockReading::now().boot.unwrap().ms.to_string())
                .unwrap();
            std::fs::rename(folder.join("renewing"), folder.join("renewed")).unwrap();
            tokio::time::sleep(Duration::from_millis(lease_ms.min(300) / 3)).await;
        }
    });
}

/// A store with one run, owned by another process, started through a command before it.
struct Owned {
    folder: tempfile::TempDir,
    store: Arc<dyn Store>,
    owner: Child,
}

impl Owned {
    async fn start(lease_ms: u64, through: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(open(&folder.path().join("runs.db"), Clocks::system()));
        store.launch(store_kit::launch(1)).await.unwrap();
        std::fs::write(folder.path().join("lease"), lease_ms.to_string()).unwrap();
        let exe = std::env::current_exe().unwrap();
        let mut words: Vec<&std::ffi::OsStr> = through.iter().map(std::ffi::OsStr::new).collect();
        words.push(exe.as_os_str());
        let owner = Command::new(words[0])
            .args(&words[1..])
            .args(["leases::owner_process", "--exact", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let owned = Self { folder, store, owner };
        owned.until("it renewed its lease", async || owned.folder.path().join("renewed").exists()).await;
        owned
    }

    async fn until(&self, what: &str, mut condition: impl AsyncFnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !condition().await {
            assert!(Instant::now() < deadline, "never: {what}");
            self.store.wait(self.store.newest_event().await.unwrap(), 20).await.unwrap();
        }
    }

    fn workers(&self) -> Supervisor {
        let settings = SupervisorSettings {
            workers: 1,
            leases: LeaseSettings {
                lease: Duration::from_secs(5),
                cancel_poll_interval: Duration::from_millis(10),
            },
            poll: Duration::from_millis(50),
            grace: Duration::from_millis(50),
        };
        Supervisor::start(self.store.clone(), Arc::new(Completes(self.store.clone())), settings)
    }

    async fn state(&self) -> RunState {
        self.store.run(&first()).await.unwrap().unwrap().state
    }

    async fn until_completed(&self) {
        self.until("it completes", async || self.state().await == RunState::Completed).await;
    }

    async fn events(&self, kind: &str) -> Vec<RunEvent> {
        let all = self.store.events(Some(&first()), 0, 1000).await.unwrap();
        all.into_iter().filter(|event| event.event.kind.as_str() == kind).collect()
    }

    /// How long ago the owner renewed its lease, at least.
    fn renewed_ago(&self) -> i64 {
        let at: i64 = std::fs::read_to_string(self.folder.path().join("renewed")).unwrap().parse().unwrap();
        ClockReading::now().boot.unwrap().ms - at
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.owner.kill();
        let _ = self.owner.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_of_a_dead_owner_is_reclaimed_immediately() {
    let mut owned = Owned::start(600_000, &["env"]).await;
    owned.owner.kill().unwrap();
    owned.owner.wait().unwrap();
    let workers = owned.workers();
    owned.until_completed().await;
    assert_eq!(owned.events("run.abandoned").await.len(), 1, "ten minutes before its lease was out");
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_owner_keeps_its_run_until_the_lease_ends() {
    let owned = Owned::start(3_000, &["env"]).await;
    let pid = Pid::from_raw(i32::try_from(owned.owner.id()).unwrap()).unwrap();
    let other = rusqlite::Connection::open(owned.folder.path().join("runs.db")).unwrap();
    other.busy_timeout(Duration::ZERO).unwrap();
    // A process stopped within a commit blocks all others, whatever its lease.
    kill_process(pid, Signal::STOP).unwrap();
    while other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err() {
        kill_process(pid, Signal::CONT).unwrap();
        std::thread::yield_now();
        kill_process(pid, Signal::STOP).unwrap();
    }
    let workers = owned.workers();
    owned.until_completed().await;
    assert!(owned.renewed_ago() >= 2_900, "not before its lease ran out: {} ms", owned.renewed_ago());
    assert!(owned.events("run.abandoned").await.is_empty(), "a stopped process is not a dead one");
    let taken = owned.events("run.claimed").await;
    assert_eq!(taken.last().unwrap().event.data["takeover"], true);
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owner_in_another_pid_namespace_keeps_its_run() {
    let namespace = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let made = Command::new(namespace[0]).args(&namespace[1..]).arg("true").status();
    if !made.as_ref().is_ok_and(std::process::ExitStatus::success) {
        eprintln!(
            "SKIPPED: no PID namespace can be made here (unshare needs to be started as root): {made:?}"
        );
        return;
    }
    let mut owned = Owned::start(3_000, &namespace).await;
    let workers = owned.workers();
    let started = Instant::now();
    owned.until("longer than a lease", async || started.elapsed() > Duration::from_millis(3_500)).await;
    assert_eq!(owned.state().await, RunState::Running, "its number means another process here");
    assert_eq!(owned.events("run.claimed").await.len(), 1);
    owned.owner.kill().unwrap();
    owned.owner.wait().unwrap();
    owned.until_completed().await;
    assert!(owned.renewed_ago() >= 2_900, "its end is not known here: {} ms", owned.renewed_ago());
    assert!(owned.events("run.abandoned").await.is_empty());
    workers.shutdown().await;
}
