//! What runs cost: five trivial steps, each durable before the next, beside bare `SQLite` doing as little as that
//! takes; how soon an approved run runs; lists of ten thousand; a thousand in flight; and an idle process. One run,
//! with the price of making a write durable on this disk, so that the figures can be judged as ratios.
#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot run should say so and stop")]

#[path = "five_steps/mod.rs"]
mod five_steps;

use std::sync::Arc;
use std::time::{Duration, Instant};

use five_steps::{BareSqlite, Echo, FIVE, STEPS, durable, launch, open, plan};
use rusqlite::Connection;
use serde_json::json;
use skills_model::{Command, Decision, Gate, RunState, Verdict};
use skills_runs::{Engine, Supervisor, SupervisorSettings};
use skills_store::{Launch, RunFilter, RunId, Store};
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

const ASKING: &str = "
id: bench.asking
inputs: { n: { type: integer } }
outputs: { n: { type: integer } }
steps:
  - { id: pay, uses: work.asked, input: { n: inputs.n }, output: { n: outputs.n } }
";

fn folder() -> tempfile::TempDir {
    // Next to the build, on disk: the system's temporary directory may be in memory.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

fn workers(store: &Arc<dyn Store>, echo: Echo, workers: usize) -> Supervisor {
    let engine = Arc::new(Engine::new(store.clone(), Arc::new(echo)));
    Supervisor::start(store.clone(), engine, SupervisorSettings { workers, ..SupervisorSettings::default() })
}

async fn count(store: &dyn Store, state: RunState) -> u64 {
    let page = store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await.expect("a page");
    page.counts.get(&state).copied().unwrap_or(0)
}

async fn until(store: &dyn Store, state: RunState, number: u64) {
    // Seldom enough that looking takes no core from what is measured.
    while count(store, state).await < number {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs per second with bare `SQLite`.
fn floor(runs: usize) -> f64 {
    let folder = folder();
    let database = BareSqlite::open(folder.path());
    let began = Instant::now();
    for n in 0..i64::try_from(runs).expect("few runs") {
        database.start(n);
        for step in 0..STEPS {
            database.step(n, step);
        }
    }
    per_second(runs, began)
}

fn per_second(runs: usize, began: Instant) -> f64 {
    runs as f64 / began.elapsed().as_secs_f64()
}

/// One run after the other: launched, worked, ended, before the next is launched.
async fn one_by_one(runs: usize) -> f64 {
    let folder = folder();
    let store = open(folder.path());
    let engine = Engine::new(store.clone(), Arc::new(Echo(None)));
    let plan = plan(FIVE);
    let worker = skills_store::WorkerId("bench".into());
    let began = Instant::now();
    for n in 0..runs {
        let run = store.launch(launch(&plan, n)).await.expect("launched").run.id;
        let claimed = store.claim(&worker, 30_000, Some(&run)).await.expect("claims").expect("claimable");
        let executed = engine.execute(claimed, CancellationToken::new()).await;
        assert!(matches!(executed, skills_runs::ExecutionEnd::Completed(_)), "{executed:?}");
    }
    per_second(runs, began)
}

/// Launched all at once and worked side by side.
async fn side_by_side(runs: usize, at_once: usize) -> f64 {
    let folder = folder();
    let store = open(folder.path());
    let plan = plan(FIVE);
    let began = Instant::now();
    let supervisor = workers(&store, Echo(None), at_once);
    let launches = (0..runs).map(|n| store.launch(launch(&plan, n)));
    for begun in futures::future::join_all(launches).await {
        begun.expect("launched");
    }
    until(&*store, RunState::Completed, runs as u64).await;
    let rate = per_second(runs, began);
    supervisor.shutdown().await;
    rate
}

async fn approve(store: &dyn Store, run: &RunId) -> Instant {
    let record = store.run(run).await.expect("read").expect("there");
    let Some(Gate::Human { step, inputs_digest, .. }) = record.gate else {
        panic!("{run} has no human gate")
    };
    let decision = Decision { verdict: Verdict::Approve, step, inputs_digest, choice: None, result: None };
    let began = Instant::now();
    store.command(run, Command::Decide(decision), None, None, None).await.expect("approved");
    began
}

/// From sending an approval to the call of the approved step; from this process, or from another connection.
async fn approval(samples: usize, elsewhere: bool) -> Vec<Duration> {
    let folder = folder();
    let store = open(folder.path());
    let person = if elsewhere { open(folder.path()) } else { store.clone() };
    let (sender, mut calls) = unbounded_channel();
    let supervisor = workers(&store, Echo(Some(sender)), 8);
    let plan = plan(ASKING);
    let mut runs = Vec::new();
    for n in 0..samples {
        runs.push(store.launch(launch(&plan, n)).await.expect("launched").run.id);
    }
    until(&*store, RunState::WaitingForHuman, samples as u64).await;
    let mut times = Vec::new();
    for run in &runs {
        let began = approve(&*person, run).await;
        let (_, called) = calls.recv().await.expect("called");
        times.push(called - began);
        // People do not answer in step with the machine.
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
    supervisor.shutdown().await;
    times.sort_unstable();
    times
}

async fn listing() {
    let folder = folder();
    let store = open(folder.path());
    let plan = plan(FIVE);
    store
        .launch(Launch { inputs: json!({"text": "x".repeat(500)}), ..launch(&plan, 0) })
        .await
        .expect("launched");
    let connection = Connection::open(folder.path().join("runs.db")).expect("opens");
    connection
        .execute_batch(
            "INSERT INTO runs (id, skill_id, state, step, steps_total, steps_done, created_ms, since_ms,
                               contract_digest, trace_id, started_by, options, inputs, outputs, gate)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
             SELECT printf('0199-%08d-%04x', i, i * 7919), 'skill.number-' || (i % 40),
                    CASE i % 20 WHEN 0 THEN 'failed' WHEN 1 THEN 'waiting_for_human' WHEN 2 THEN 'canceled'
                                ELSE 'completed' END,
                    'step' || (i % 5), 5, 5, i, i, contract_digest, trace_id, started_by, options, inputs, inputs,
                    CASE i % 20 WHEN 1 THEN
                        '{\"human\": {\"step\": \"a\", \"inputs_digest\": \"d\", \"why\": \"confirmation\"}}' END
             FROM n, (SELECT * FROM runs LIMIT 1)",
        )
        .expect("ten thousand runs");
    drop(connection);
    let text = |text: &str| RunFilter { text: Some(text.into()), ..RunFilter::default() };
    let filters = [
        ("first page", RunFilter::default()),
        ("failed", RunFilter { states: vec![RunState::Failed], ..RunFilter::default() }),
        ("one skill", RunFilter { skill_id: Some("skill.number-39".into()), ..RunFilter::default() }),
        ("text of few", text("00000007-")),
        ("text of none", text("nothing has this")),
    ];
    for (name, filter) in filters {
        let mut times = Vec::new();
        let mut rows = 0;
        for _ in 0..50 {
            let began = Instant::now();
            rows = store.runs(filter.clone()).await.expect("a page").runs.len();
            times.push(began.elapsed());
        }
        times.sort_unstable();
        println!("  {name:<14} {:>9.2?} median {:>9.2?} worst of 50   {rows} rows", times[25], times[49]);
    }
}

async fn thousand() {
    let folder = folder();
    let store = open(folder.path());
    let supervisor = workers(&store, Echo(None), 8);
    let plan = plan(ASKING);
    let began = Instant::now();
    let launches = (0..1000).map(|n| store.launch(launch(&plan, n)));
    let runs: Vec<RunId> =
        futures::future::join_all(launches).await.into_iter().map(|b| b.expect("launched").run.id).collect();
    println!("  1,000 launched after {:.2?}", began.elapsed());
    until(&*store, RunState::WaitingForHuman, 1000).await;
    println!("  all at their gates after {:.2?}", began.elapsed());
    let began = Instant::now();
    futures::future::join_all(runs.iter().map(|run| approve(&*store, run))).await;
    until(&*store, RunState::Completed, 1000).await;
    println!("  all approved and completed {:.2?} later", began.elapsed());
    supervisor.shutdown().await;
}

/// Share of a core that an idle process with workers takes, in per cent.
async fn idle() -> f64 {
    let folder = folder();
    let store = open(folder.path());
    let supervisor = workers(&store, Echo(None), 4);
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        fields.get(11..13).into_iter().flatten().filter_map(|f| f.parse::<u64>().ok()).sum()
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (before, span) = (ticks(), 10.0);
    tokio::time::sleep(Duration::from_secs_f64(span)).await;
    let used = ticks() - before;
    supervisor.shutdown().await;
    // A tick is a hundredth of a second on Linux (proc(5)).
    used as f64 / span
}

fn format_times(times: &[Duration]) -> String {
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    format!("p50 {:.2?}   p99 {:.2?}   worst {:.2?}", at(0.5), at(0.99), at(1.0))
}

fn main() {
    let runs: usize = std::env::var("RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    println!("making 4 KiB durable (fdatasync): {:.2?} median", durable(folder().path()));
    println!("five trivial steps, each durable before the next ({runs} runs):");
    let baseline = floor(runs);
    println!("  bare rusqlite, WAL, synchronous=FULL  {baseline:>8.0} runs/s");
    let single = runtime.block_on(one_by_one(runs));
    println!(
        "  engine and store, one by one          {single:>8.0} runs/s   {:>4.0} % of bare",
        100.0 * single / baseline
    );
    for at_once in [1, 8] {
        let rate = runtime.block_on(side_by_side(runs, at_once));
        println!(
            "  engine and store, {at_once} at a time         {rate:>8.0} runs/s   {:>4.0} % of bare",
            100.0 * rate / baseline
        );
    }
    let samples = runs.min(300);
    println!("approval to the call of the approved step ({samples} approvals):");
    println!("  from this process    {}", format_times(&runtime.block_on(approval(samples, false))));
    println!("  from another         {}", format_times(&runtime.block_on(approval(samples, true))));
    println!("10,000 stored runs:");
    runtime.block_on(listing());
    println!("1,000 runs in flight:");
    runtime.block_on(thousand());
    println!("an idle process with four workers: {:.1} % of a core", runtime.block_on(idle()));
}
