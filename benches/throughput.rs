//! Runs per second of five trivial steps, each durable before the next: bare `SQLite` and bare `PostgreSQL`, the engine
//! with both stores, fleets of workers, and other engines. One table, from interleaved slices: in each round every row
//! runs for a short time, so that a change of the machine's speed concerns all of them.
//!
//! | variable | meaning |
//! |---|---|
//! | `ROUNDS` | number of rounds (8) |
//! | `SLICE_MS` | time of a slice, ms (1000) |
//! | `ROWS` | only rows whose name contains this; those that they are compared with have to be among them |
//! | `FOLDER` | folder for the data of both databases, on the disk to be measured (`/var/tmp`) |
//! | `SKILLS_TEST_POSTGRES` | address of a server; without it one is started from the installed package |
//! | `PEERS` | a Python interpreter with `LangGraph` and DBOS, see `benches/peers/throughput.py` |
//!
//! - **bare rusqlite**: WAL, `synchronous = FULL`; one transaction for the run and one for each step, the last of which
//!   completes the run (6 commits). Eight threads share the connection: `SQLite` has one writer.
//! - **bare tokio-postgres**: prepared statements that commit by themselves: the run, each step, and the completion (7
//!   commits, 7 round trips). Eight runs use eight connections.
//! - **engine**: a run is launched, claimed and executed, then the next one; steps call a function of this process.
//! - **fleet**: supervisors that claim what is launched, eight runs each, each with a store and connections of its own.
//!   All are in this process, so that they share its cores with each other and with the server.
//! - **20 ms commits**: through a proxy that delays the answer to each `COMMIT`, one run per supervisor: most of the time
//!   is spent waiting, so that the cores do not limit a fleet, and its ratio shows what the workers wait for each other.
//!
//! A slice begins and ends without runs in progress; its time includes the last of them.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

#[path = "five_steps/delay.rs"]
mod delay;
#[path = "five_steps/mod.rs"]
mod five_steps;
#[path = "../tests/postgres/mod.rs"]
mod postgres;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use five_steps::{BareSqlite, Echo, FIVE, RESULT, STEPS, durable, launch, open, plan};
use postgres::Server;
use skills_runs::{Engine, Execute, ExecutionEnd, Plan, Supervisor, SupervisorSettings};
use skills_store::{Claimed, Postgres, PostgresAddress, PostgresOptions, Store, StoreError, WorkerId};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_postgres::{NoTls, Statement};
use tokio_util::sync::CancellationToken;

/// Runs that a worker of a fleet executes at once.
const SLOTS: usize = 8;

/// Delay of the answer to a commit: long compared with the time of the cores for one.
const DELAY: Duration = Duration::from_millis(20);

/// What a row runs.
enum Load {
    BareSqlite(Arc<Mutex<BareSqlite>>),
    BarePostgres(Vec<Arc<BarePostgres>>),
    Engine(Arc<dyn Store>),
    /// Supervisors with this number of slots.
    Fleet(Vec<Arc<dyn Store>>, usize),
    Peer(Arc<Mutex<Peer>>),
}

struct Row {
    name: String,
    concurrency: usize,
    /// Name of the row that it is compared with, at the same concurrency unless it is a fleet.
    baseline: Option<&'static str>,
    load: Load,
    /// Runs per second of each round.
    rates: Vec<f64>,
}

impl Row {
    fn new(name: &str, concurrency: usize, baseline: Option<&'static str>, load: Load) -> Self {
        Self { name: name.to_owned(), concurrency, baseline, load, rates: Vec::new() }
    }
}

/// A connection with prepared statements, and tables of no more than five durable steps need.
struct BarePostgres {
    client: tokio_postgres::Client,
    start: Statement,
    step: Statement,
    complete: Statement,
}

impl BarePostgres {
    async fn open(address: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(address, NoTls).await.expect("a connection");
        tokio::spawn(connection);
        client
            .batch_execute(
                "CREATE TABLE IF NOT EXISTS bare_runs (id BIGINT PRIMARY KEY, state TEXT NOT NULL);
                 CREATE TABLE IF NOT EXISTS bare_steps
                     (run BIGINT, step BIGINT, result TEXT NOT NULL, PRIMARY KEY (run, step))",
            )
            .await
            .expect("tables");
        let start = client.prepare("INSERT INTO bare_runs VALUES ($1, 'running')").await.expect("prepared");
        let step = client.prepare("INSERT INTO bare_steps VALUES ($1, $2, $3)").await.expect("prepared");
        let complete = "UPDATE bare_runs SET state = 'completed' WHERE id = $1";
        let complete = client.prepare(complete).await.expect("prepared");
        Self { client, start, step, complete }
    }

    async fn run(&self, run: i64) {
        self.client.execute(&self.start, &[&run]).await.expect("started");
        for step in 0..STEPS {
            self.client.execute(&self.step, &[&run, &step, &RESULT]).await.expect("recorded");
        }
        self.client.execute(&self.complete, &[&run]).await.expect("completed");
    }
}

/// Another engine in a process of its own, which runs a slice for each line that it reads.
struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the interpreter; returns it with the names of its rows.
    fn start(python: &str, folder: &Path, postgres: Option<&str>) -> (Self, Vec<String>) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/throughput.py");
        let mut process = Command::new(python)
            .arg(script)
            .arg("--folder")
            .arg(folder)
            .args(postgres.map(|address| format!("--postgres={address}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("PEERS={python}: {error}"));
        let requests = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut peer = Self { process, requests, answers };
        let names = peer.answer().split(',').map(str::to_owned).collect();
        (peer, names)
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        assert!(line.ends_with('\n'), "benches/peers/throughput.py ended; see its message");
        line.trim().to_owned()
    }

    fn slice(&mut self, name: &str, concurrency: usize, time: Duration) -> f64 {
        writeln!(self.requests, "{name},{concurrency},{}", time.as_millis()).expect("asked");
        let answer = self.answer();
        let (runs, seconds) = answer.split_once(' ').expect("runs and seconds");
        runs.parse::<f64>().expect("a number") / seconds.parse::<f64>().expect("a number")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the slices share.
struct Bench {
    runtime: Runtime,
    plan: Arc<Plan>,
    /// Number of the next run.
    next: Arc<AtomicI64>,
    time: Duration,
}

impl Bench {
    /// Runs per second of tasks that each do one after the other until the time is over.
    async fn closed_loop<Work: Future<Output = ()> + Send + 'static>(
        &self,
        tasks: usize,
        one: impl Fn(usize, i64) -> Work + Clone + Send + 'static,
    ) -> f64 {
        let began = Instant::now();
        let deadline = began + self.time;
        let tasks = (0..tasks).map(|task| {
            let (one, next) = (one.clone(), Arc::clone(&self.next));
            tokio::spawn(async move {
                let mut runs = 0_u32;
                while Instant::now() < deadline {
                    one(task, next.fetch_add(1, Ordering::Relaxed)).await;
                    runs += 1;
                }
                runs
            })
        });
        let runs = futures::future::join_all(tasks).await;
        let runs: u32 = runs.into_iter().map(|runs| runs.expect("runs")).sum();
        f64::from(runs) / began.elapsed().as_secs_f64()
    }

    /// The same with threads, for what blocks.
    fn threads(&self, threads: usize, database: &Mutex<BareSqlite>) -> f64 {
        let began = Instant::now();
        let work = || {
            let mut runs = 0_u32;
            while began.elapsed() < self.time {
                let run = self.next.fetch_add(1, Ordering::Relaxed);
                database.lock().expect("a connection").start(run);
                for step in 0..STEPS {
                    database.lock().expect("a connection").step(run, step);
                }
                runs += 1;
            }
            runs
        };
        let runs: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().expect("runs")).sum()
        });
        f64::from(runs) / began.elapsed().as_secs_f64()
    }

    async fn engine(&self, concurrency: usize, store: &Arc<dyn Store>) -> f64 {
        let engine = Arc::new(Engine::new(store.clone(), Arc::new(Echo(None))));
        let (store, plan) = (store.clone(), Arc::clone(&self.plan));
        self.closed_loop(concurrency, move |task, n| {
            let (store, engine) = (store.clone(), Arc::clone(&engine));
            let launch = launch(&plan, usize::try_from(n).expect("few runs"));
            async move {
                let run = store.launch(launch).await.expect("launched").run.id;
                let worker = WorkerId(format!("bench-{task}"));
                let claimed =
                    store.claim(&worker, 30_000, Some(&run)).await.expect("claims").expect("claimable");
                let ended = engine.execute(claimed, CancellationToken::new()).await;
                assert!(matches!(ended, ExecutionEnd::Completed(_)), "{ended:?}");
            }
        })
        .await
    }

    /// Launches runs, twice as many as are executed, through the first worker's store, and waits until all are complete.
    async fn fleet(&self, stores: &[Arc<dyn Store>], slots: usize) -> f64 {
        let limit = 2 * slots * stores.len();
        let pending = Arc::new(Semaphore::new(limit));
        let settings = SupervisorSettings { workers: slots, ..SupervisorSettings::default() };
        let workers: Vec<Supervisor> = stores
            .iter()
            .map(|store| {
                let engine = Engine::new(store.clone(), Arc::new(Echo(None)));
                let counted = Counted { engine, pending: Arc::clone(&pending) };
                Supervisor::start(store.clone(), Arc::new(counted), settings.clone())
            })
            .collect();
        let (began, mut launched) = (Instant::now(), 0_u32);
        while began.elapsed() < self.time {
            pending.acquire().await.expect("never closed").forget();
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let (store, launch) =
                (stores[0].clone(), launch(&self.plan, usize::try_from(n).expect("few runs")));
            tokio::spawn(async move { store.launch(launch).await.expect("launched") });
            launched += 1;
        }
        let all = u32::try_from(limit).expect("few");
        pending.acquire_many(all).await.expect("never closed").forget();
        let rate = f64::from(launched) / began.elapsed().as_secs_f64();
        for worker in workers {
            worker.shutdown().await;
        }
        rate
    }

    fn slice(&self, row: &Row) -> f64 {
        match &row.load {
            Load::BareSqlite(database) => self.threads(row.concurrency, database),
            Load::BarePostgres(connections) => {
                let connections = connections.clone();
                let one = move |task: usize, n| {
                    let connection = Arc::clone(&connections[task]);
                    async move { connection.run(n).await }
                };
                self.runtime.block_on(self.closed_loop(row.concurrency, one))
            }
            Load::Engine(store) => self.runtime.block_on(self.engine(row.concurrency, store)),
            Load::Fleet(stores, slots) => self.runtime.block_on(self.fleet(stores, *slots)),
            Load::Peer(peer) => peer.lock().expect("a peer").slice(&row.name, row.concurrency, self.time),
        }
    }
}

/// Permits another launch when a run is complete.
struct Counted {
    engine: Engine,
    pending: Arc<Semaphore>,
}

#[async_trait]
impl Execute for Counted {
    async fn execute(&self, claimed: Claimed, cancel: CancellationToken) -> Result<(), StoreError> {
        let ended = self.engine.execute(claimed, cancel).await;
        assert!(matches!(ended, ExecutionEnd::Completed(_)), "{ended:?}");
        self.pending.add_permits(1);
        Ok(())
    }
}

async fn open_postgres(address: &str) -> Arc<dyn Store> {
    let address = PostgresAddress::parse(address).expect("an address");
    Arc::new(Postgres::open(&address, &PostgresOptions::default()).await.expect("a store"))
}

fn rows(bench: &Bench, folder: &Path, server: Option<&Server>) -> Vec<Row> {
    let sqlite = Arc::new(Mutex::new(BareSqlite::open(folder)));
    let store = open(folder);
    let mut rows = Vec::new();
    for concurrency in [1, SLOTS] {
        rows.push(Row::new("bare rusqlite", concurrency, None, Load::BareSqlite(sqlite.clone())));
        let load = Load::Engine(store.clone());
        rows.push(Row::new("engine, SQLite", concurrency, Some("bare rusqlite"), load));
    }
    if let Some(server) = server {
        bench.runtime.block_on(postgres_rows(server, &mut rows));
    }
    if let Ok(python) = std::env::var("PEERS") {
        let address = server.map(|server| server.store().0);
        let (peer, names) = Peer::start(&python, folder, address.as_deref());
        let peer = Arc::new(Mutex::new(peer));
        for (name, concurrency) in names.iter().flat_map(|name| [(name, 1), (name, SLOTS)]) {
            let baseline = if name.contains("SQLite") { "bare rusqlite" } else { "bare tokio-postgres" };
            rows.push(Row::new(name, concurrency, Some(baseline), Load::Peer(peer.clone())));
        }
    }
    if let Ok(only) = std::env::var("ROWS") {
        rows.retain(|row| row.name.contains(&only));
    }
    rows
}

async fn postgres_rows(server: &Server, rows: &mut Vec<Row>) {
    let address = server.store().0;
    let mut connections = Vec::new();
    for _ in 0..SLOTS {
        connections.push(Arc::new(BarePostgres::open(&address).await));
    }
    let store = open_postgres(&server.store().0).await;
    for concurrency in [1, SLOTS] {
        let load = Load::BarePostgres(connections.clone());
        rows.push(Row::new("bare tokio-postgres", concurrency, None, load));
        let load = Load::Engine(store.clone());
        rows.push(Row::new("engine, PostgreSQL", concurrency, Some("bare tokio-postgres"), load));
    }
    let (near, far) = (server.store().0, server.store().0);
    let far = delay::start(&far, DELAY).await;
    let fleets = [
        (near, SLOTS, "fleet of 1, PostgreSQL", "PostgreSQL"),
        (far, 1, "fleet of 1, 20 ms commits", "20 ms commits"),
    ];
    for (address, slots, alone, store) in fleets {
        let mut stores = Vec::new();
        for _ in 0..4 {
            stores.push(open_postgres(&address).await);
        }
        for workers in [1, 2, 4] {
            let name = format!("fleet of {workers}, {store}");
            let baseline = (workers > 1).then_some(alone);
            let load = Load::Fleet(stores[..workers].to_vec(), slots);
            rows.push(Row::new(&name, workers * slots, baseline, load));
        }
    }
}

/// Median, least and greatest.
fn spread(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    };
    (median, sorted[0], sorted[sorted.len() - 1])
}

fn print(rows: &[Row]) {
    println!("| row | concurrent runs | runs/s (min–max) | compared with | ratio (min–max) |");
    println!("|---|--:|--:|---|--:|");
    for row in rows {
        let (median, least, most) = spread(&row.rates);
        let baseline = rows.iter().find(|other| {
            let is_comparable = other.concurrency == row.concurrency || matches!(row.load, Load::Fleet(..));
            Some(other.name.as_str()) == row.baseline && is_comparable
        });
        let ratio = baseline.map_or(String::new(), |baseline| {
            // Of the same round: what slows the machine down slows both.
            let ratios: Vec<f64> =
                row.rates.iter().zip(&baseline.rates).map(|(own, its)| own / its).collect();
            let (median, least, most) = spread(&ratios);
            format!("{median:.2} ({least:.2}–{most:.2})")
        });
        let (name, concurrency) = (&row.name, row.concurrency);
        let compared = if ratio.is_empty() { "" } else { row.baseline.unwrap_or_default() };
        let digits = usize::from(median < 100.0);
        println!(
            "| {name} | {concurrency} | {median:.digits$} ({least:.digits$}–{most:.digits$}) | {compared} | {ratio} |"
        );
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

fn main() {
    let parent = std::env::var_os("FOLDER").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let folder = tempfile::tempdir_in(&parent).expect("a folder");
    // Started by this thread, with which the server ends.
    let server = Server::start_durable(&parent);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let bench = Bench {
        runtime: runtime.expect("a runtime"),
        plan: Arc::new(plan(FIVE)),
        next: Arc::default(),
        time: Duration::from_millis(number("SLICE_MS", 1000)),
    };
    let rounds = number("ROUNDS", 8);
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!("{rounds} rounds of {:?} for each row, {cores} cores", bench.time);
    println!("making 4 KiB durable (fdatasync): {:.2?} median", durable(folder.path()));
    if let Some(server) = &server {
        println!("{}", server.sql("SELECT version()"));
    }
    let mut rows = rows(&bench, folder.path(), server.as_ref());
    for round in 0..=rounds {
        for row in &mut rows {
            let rate = bench.slice(row);
            // The first round fills caches.
            if round > 0 {
                row.rates.push(rate);
            }
        }
        eprintln!("round {round} of {rounds}");
    }
    println!();
    print(&rows);
}
