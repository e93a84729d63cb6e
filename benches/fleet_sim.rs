//! What a fleet of workers on one `PostgreSQL` primary can do: a discrete-event simulation with a seed. One parameter, the
//! processor time of a transaction, is fitted to the measured throughput of one worker; that of two and four workers is
//! then a prediction, printed beside the measurement. The same model extrapolates to fleets and to shards.
//!
//! `cargo bench --bench fleet_sim -- --help` lists the parameters. Exits with 1 if a prediction is off by more than 15 %.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a simulation whose model is wrong should say so and stop"
)]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const HELP: &str = "\
cargo bench --bench fleet_sim -- [--NAME VALUE]…
  measured           runs/s of 1, 2 and 4 workers, separated by commas; without it nothing is compared
  concurrency        runs that a worker executes at once (8)
  steps              steps of a run (5)
  commit-p50-ms      median time to make a commit durable (0.20)
  commit-p99-ms      99th percentile of that (1.0)
  answer-delay-ms    delay of the answer to each commit, as of the proxy of the measurement (0)
  round-trip-ms      network round trip between worker and primary in the measurement (0.02)
  round-trips        round trips of a transaction (2)
  machine-cores      cores that primary and workers share in the measurement (2)
  cpu-ms             processor time of a transaction on both sides; fitted if `measured` is given (0.5)
  server-share       part of it on the primary (0.5)
  wal-kb             write-ahead log of a transaction, KiB (4)
  wal-mb-per-second  how fast the log is written (400)
  fleet-round-trip-ms, primary-cores, worker-cores   of the fleet (0.5, 16, 2)
  background         write transactions of a worker per second: heartbeats and probes (0.4)
  connections        connections of a worker to each primary (3)
  max-connections    connections that a primary accepts (5000)
  runs-per-day, peak, fleet    load to extrapolate to: runs (1e8), its peak over the mean (3), workers (10000)
  kb-per-run         size of a run in the store, KiB (12)
  seed               of the random numbers (1)";

/// Transactions of a run besides those of its steps: launch, claim, intent of the first step.
const FIXED_TRANSACTIONS: u32 = 3;

/// Largest acceptable deviation of a prediction.
const TOLERANCE: f64 = 0.15;

/// Highest utilization of a primary that leaves room for vacuum, backups and a failing replica.
const UTILIZATION: f64 = 0.7;

struct Parameters {
    measured: Vec<f64>,
    values: Vec<(String, f64)>,
}

const DEFAULTS: [(&str, f64); 22] = [
    ("concurrency", 8.0),
    ("steps", 5.0),
    ("commit-p50-ms", 0.2),
    ("commit-p99-ms", 1.0),
    ("answer-delay-ms", 0.0),
    ("round-trip-ms", 0.02),
    ("round-trips", 2.0),
    ("machine-cores", 2.0),
    ("cpu-ms", 0.5),
    ("server-share", 0.5),
    ("wal-kb", 4.0),
    ("wal-mb-per-second", 400.0),
    ("fleet-round-trip-ms", 0.5),
    ("primary-cores", 16.0),
    ("worker-cores", 2.0),
    ("background", 0.4),
    ("connections", 3.0),
    ("max-connections", 5000.0),
    ("runs-per-day", 1e8),
    ("peak", 3.0),
    ("fleet", 10_000.0),
    ("kb-per-run", 12.0),
];

impl Parameters {
    fn of(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let values = DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), *value));
        let mut parameters =
            Self { measured: Vec::new(), values: values.chain([("seed".to_owned(), 1.0)]).collect() };
        while let Some(argument) = arguments.next() {
            // Cargo adds it.
            if argument == "--bench" {
                continue;
            }
            let name = argument.strip_prefix("--").filter(|name| *name != "help").ok_or(HELP)?;
            let text = arguments.next().ok_or_else(|| format!("--{name} needs a value"))?;
            let number = |text: &str| text.trim().parse::<f64>().map_err(|e| format!("--{name} {text}: {e}"));
            if name == "measured" {
                parameters.measured = text.split(',').map(number).collect::<Result<_, _>>()?;
                continue;
            }
            let known = parameters.values.iter_mut().find(|(known, _)| known == name);
            known.ok_or_else(|| format!("unknown parameter --{name}\n\n{HELP}"))?.1 = number(&text)?;
        }
        Ok(parameters)
    }

    fn get(&self, name: &str) -> f64 {
        self.values
            .iter()
            .find(|(known, _)| known == name)
            .map_or_else(|| panic!("{name}"), |(_, value)| *value)
    }
}

/// `SplitMix64` (<https://prng.di.unimi.it/splitmix64.c>).
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }

    /// With this median and 99th percentile.
    fn lognormal(&mut self, p50: f64, p99: f64) -> f64 {
        const Z99: f64 = 2.326;
        let normal =
            (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos();
        if p50 > 0.0 { p50 * (normal * (p99 / p50).ln() / Z99).exp() } else { 0.0 }
    }
}

/// What is simulated. Times in seconds.
#[derive(Clone)]
struct Model {
    workers: u32,
    concurrency: u32,
    transactions: u32,
    server_cpu: f64,
    worker_cpu: f64,
    server_cores: u32,
    /// None: workers share the cores of the server.
    worker_cores: Option<u32>,
    round_trips: f64,
    answer_delay: f64,
    commit: (f64, f64),
    write_per_transaction: f64,
    /// Write transactions per second and worker besides runs.
    background: f64,
    /// Runs per second that arrive; none: each slot starts the next run at once.
    arrivals: Option<f64>,
    seconds: f64,
    seed: u64,
}

#[derive(Default)]
struct Outcome {
    /// Runs per second.
    runs: f64,
    /// Transactions per second, those besides runs included.
    transactions: f64,
    /// Transactions of a flush.
    group: f64,
    /// Utilization of the server's cores.
    utilization: f64,
    /// From launch to completion, seconds, sorted.
    latencies: Vec<f64>,
}

impl Outcome {
    fn latency_ms(&self, part: f64) -> f64 {
        let at = (self.latencies.len().saturating_sub(1) as f64 * part) as usize;
        self.latencies.get(at).map_or(f64::NAN, |seconds| seconds * 1e3)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A task's use of a processor ends.
    ProcessorFree {
        pool: usize,
        task: usize,
    },
    /// The request of a task reaches the server.
    Request(usize),
    /// The answer reaches the task.
    Answer(usize),
    Flushed,
    Arrival,
    Background,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A worker's slot: executes runs.
    Slot,
    /// One write besides runs.
    Background,
}

#[derive(Clone)]
struct Task {
    purpose: Purpose,
    worker: usize,
    is_at_server: bool,
    left: u32,
    began: f64,
}

struct Pool {
    free: u32,
    queue: VecDeque<(usize, f64)>,
    busy: f64,
}

/// Nanoseconds: floats have no order.
fn key(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

struct Simulation {
    model: Model,
    random: Random,
    now: f64,
    number: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    tasks: Vec<Task>,
    pools: Vec<Pool>,
    /// Committed transactions that wait for the next flush, and those of the present one.
    waiting: Vec<usize>,
    flushing: Vec<usize>,
    idle: VecDeque<usize>,
    /// When runs that wait for a slot were launched.
    backlog: VecDeque<f64>,
    unused: Vec<usize>,
    flushes: u64,
    flushed: u64,
    /// Transactions of runs.
    completed: u64,
    outcome: Outcome,
}

impl Simulation {
    fn run(model: Model) -> Outcome {
        let pool = |cores| Pool { free: cores, queue: VecDeque::new(), busy: 0.0 };
        let mut pools = vec![pool(model.server_cores)];
        if let Some(cores) = model.worker_cores {
            pools.extend((0..model.workers).map(|_| pool(cores)));
        }
        let mut simulation = Self {
            random: Random(model.seed),
            now: 0.0,
            number: 0,
            events: BinaryHeap::new(),
            tasks: Vec::new(),
            pools,
            waiting: Vec::new(),
            flushing: Vec::new(),
            idle: VecDeque::new(),
            backlog: VecDeque::new(),
            unused: Vec::new(),
            flushes: 0,
            flushed: 0,
            completed: 0,
            outcome: Outcome::default(),
            model,
        };
        simulation.begin();
        let warm = simulation.model.seconds * 0.25;
        let end = simulation.model.seconds + warm;
        let mut at_warm = (0, 0, 0, 0.0);
        let mut is_warm = false;
        while let Some(Reverse((at, _, event))) = simulation.events.pop() {
            simulation.now = at as f64 / 1e9;
            if !is_warm && simulation.now >= warm {
                is_warm = true;
                simulation.outcome.latencies.clear();
                at_warm =
                    (simulation.flushes, simulation.flushed, simulation.completed, simulation.pools[0].busy);
            }
            if simulation.now >= end {
                break;
            }
            simulation.handle(event);
        }
        let seconds = simulation.model.seconds;
        let flushed = (simulation.flushed - at_warm.1) as f64;
        let mut outcome = simulation.outcome;
        outcome.transactions = flushed / seconds;
        outcome.group = flushed / ((simulation.flushes - at_warm.0) as f64).max(1.0);
        // By transactions: of a large fleet that saturates the server few runs end in the time that is simulated.
        outcome.runs =
            (simulation.completed - at_warm.2) as f64 / f64::from(simulation.model.transactions) / seconds;
        outcome.utilization =
            (simulation.pools[0].busy - at_warm.3) / seconds / f64::from(simulation.model.server_cores);
        outcome.latencies.sort_by(f64::total_cmp);
        outcome
    }

    fn begin(&mut self) {
        let slots = self.model.workers * self.model.concurrency;
        for slot in 0..slots {
            let worker = (slot % self.model.workers) as usize;
            self.tasks.push(Task {
                purpose: Purpose::Slot,
                worker,
                is_at_server: false,
                left: 0,
                began: 0.0,
            });
            if self.model.arrivals.is_some() {
                self.idle.push_back(slot as usize);
            } else {
                self.start_run(slot as usize, 0.0);
            }
        }
        if self.model.arrivals.is_some() {
            self.schedule(0.0, Event::Arrival);
        }
        if self.model.background > 0.0 {
            self.schedule(0.0, Event::Background);
        }
    }

    fn schedule(&mut self, delay: f64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((key(self.now + delay), self.number, event)));
    }

    fn start_run(&mut self, task: usize, launched: f64) {
        self.tasks[task].left = self.model.transactions;
        self.tasks[task].began = launched;
        self.work(task);
    }

    /// The worker's part of a transaction.
    fn work(&mut self, task: usize) {
        self.tasks[task].is_at_server = false;
        let pool = if self.model.worker_cores.is_some() { 1 + self.tasks[task].worker } else { 0 };
        self.compute(pool, task, self.model.worker_cpu);
    }

    fn compute(&mut self, pool: usize, task: usize, mean: f64) {
        let time = mean * (0.5 + self.random.uniform());
        if self.pools[pool].free > 0 {
            self.pools[pool].free -= 1;
            self.occupy(pool, task, time);
        } else {
            self.pools[pool].queue.push_back((task, time));
        }
    }

    fn occupy(&mut self, pool: usize, task: usize, time: f64) {
        self.pools[pool].busy += time;
        self.schedule(time, Event::ProcessorFree { pool, task });
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::ProcessorFree { pool, task } => {
                match self.pools[pool].queue.pop_front() {
                    Some((next, time)) => self.occupy(pool, next, time),
                    None => self.pools[pool].free += 1,
                }
                if self.tasks[task].is_at_server {
                    self.waiting.push(task);
                    self.flush();
                } else {
                    self.schedule(self.model.round_trips, Event::Request(task));
                }
            }
            Event::Request(task) => {
                self.tasks[task].is_at_server = true;
                self.compute(0, task, self.model.server_cpu);
            }
            Event::Flushed => {
                self.flushed += self.flushing.len() as u64;
                for task in std::mem::take(&mut self.flushing) {
                    self.schedule(self.model.answer_delay, Event::Answer(task));
                }
                self.flush();
            }
            Event::Answer(task) => self.answered(task),
            Event::Arrival => {
                let rate = self.model.arrivals.unwrap_or(1.0);
                let next = self.random.exponential(1.0 / rate);
                self.schedule(next, Event::Arrival);
                match self.idle.pop_front() {
                    Some(slot) => self.start_run(slot, self.now),
                    None => self.backlog.push_back(self.now),
                }
            }
            Event::Background => {
                let rate = self.model.background * f64::from(self.model.workers);
                let next = self.random.exponential(1.0 / rate);
                self.schedule(next, Event::Background);
                let worker = ((self.random.uniform() * f64::from(self.model.workers)) as usize)
                    .min(self.model.workers as usize - 1);
                let task = Task {
                    purpose: Purpose::Background,
                    worker,
                    is_at_server: false,
                    left: 1,
                    began: self.now,
                };
                let index = if let Some(index) = self.unused.pop() {
                    self.tasks[index] = task;
                    index
                } else {
                    self.tasks.push(task);
                    self.tasks.len() - 1
                };
                self.work(index);
            }
        }
    }

    /// All transactions that are ready share the next flush (group commit).
    fn flush(&mut self) {
        if !self.flushing.is_empty() || self.waiting.is_empty() {
            return;
        }
        self.flushing = std::mem::take(&mut self.waiting);
        self.flushes += 1;
        let (p50, p99) = self.model.commit;
        let write = self.flushing.len() as f64 * self.model.write_per_transaction;
        let time = self.random.lognormal(p50, p99) + write;
        self.schedule(time, Event::Flushed);
    }

    fn answered(&mut self, task: usize) {
        if self.tasks[task].purpose == Purpose::Background {
            self.unused.push(task);
            return;
        }
        self.completed += 1;
        self.tasks[task].left -= 1;
        if self.tasks[task].left > 0 {
            self.work(task);
            return;
        }
        self.outcome.latencies.push(self.now - self.tasks[task].began);
        if self.model.arrivals.is_none() {
            self.start_run(task, self.now);
        } else if let Some(launched) = self.backlog.pop_front() {
            self.start_run(task, launched);
        } else {
            self.idle.push_back(task);
        }
    }
}

/// The model has the results that can be computed by hand.
fn verify_model() {
    let model = Model {
        workers: 1,
        concurrency: 1,
        transactions: 8,
        server_cpu: 0.0,
        worker_cpu: 0.0,
        server_cores: 2,
        worker_cores: None,
        round_trips: 0.0,
        answer_delay: 0.0,
        commit: (0.001, 0.001),
        write_per_transaction: 0.0,
        background: 0.0,
        arrivals: None,
        seconds: 20.0,
        seed: 7,
    };
    let near = |what: &str, found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 0.03, "{what}: {found}, expected {expected}");
    };
    near("one flush after another", Simulation::run(model.clone()).runs, 1000.0 / 8.0);
    let eight = Simulation::run(Model { concurrency: 8, ..model.clone() });
    // Those that are answered commit again during the next flush: two groups take turns.
    near("eight form two groups", eight.group, 4.0);
    near("and are four times as fast", eight.runs, 500.0);
    let busy = Model { concurrency: 32, server_cpu: 0.001, worker_cpu: 0.001, ..model.clone() };
    let busy = Simulation::run(Model { commit: (1e-6, 1e-6), ..busy });
    near("two cores, 2 ms each", busy.transactions, 1000.0);
    near("which are busy", busy.utilization, 1.0);
    let open = Model { arrivals: Some(50.0), concurrency: 64, background: 10.0, seconds: 400.0, ..model };
    let open = Simulation::run(open);
    near("what arrives completes", open.runs, 50.0);
    near("besides it there are heartbeats", open.transactions, 50.0 * 8.0 + 10.0);
}

/// The machine of the measurement: workers and primary share its cores.
fn machine(parameters: &Parameters, cpu: f64, workers: u32) -> Model {
    let share = parameters.get("server-share");
    Model {
        workers,
        concurrency: parameters.get("concurrency") as u32,
        transactions: FIXED_TRANSACTIONS + parameters.get("steps") as u32,
        server_cpu: cpu * share,
        worker_cpu: cpu * (1.0 - share),
        server_cores: parameters.get("machine-cores") as u32,
        worker_cores: None,
        round_trips: parameters.get("round-trips") * parameters.get("round-trip-ms") / 1e3,
        answer_delay: parameters.get("answer-delay-ms") / 1e3,
        commit: (parameters.get("commit-p50-ms") / 1e3, parameters.get("commit-p99-ms") / 1e3),
        write_per_transaction: parameters.get("wal-kb") / 1024.0 / parameters.get("wal-mb-per-second"),
        background: parameters.get("background"),
        arrivals: None,
        seconds: 20.0,
        seed: parameters.get("seed") as u64,
    }
}

/// A fleet: each worker has a machine, and so has the primary.
fn fleet(parameters: &Parameters, cpu: f64, workers: u32) -> Model {
    Model {
        server_cores: parameters.get("primary-cores") as u32,
        worker_cores: Some(parameters.get("worker-cores") as u32),
        round_trips: parameters.get("round-trips") * parameters.get("fleet-round-trip-ms") / 1e3,
        answer_delay: 0.0,
        seconds: 4.0,
        ..machine(parameters, cpu, workers)
    }
}

/// The processor time of a transaction with which one worker does as many runs as were measured.
fn fit(parameters: &Parameters, measured: f64) -> f64 {
    let rate = |cpu: f64| Simulation::run(machine(parameters, cpu, 1)).runs;
    let (mut low, mut high) = (0.0, 0.05);
    let fastest = rate(low);
    if fastest < measured {
        println!(
            "The commit latency alone allows {fastest:.0} runs/s, fewer than the {measured:.0} measured: correct \
                --commit-p50-ms, --commit-p99-ms or --answer-delay-ms."
        );
        std::process::exit(1);
    }
    for _ in 0..24 {
        let middle = f64::midpoint(low, high);
        if rate(middle) > measured { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Prints measurement and model in one table; returns whether they agree.
fn reproduce(parameters: &Parameters, cpu: f64) -> bool {
    println!("## One machine, {} cores\n", parameters.get("machine-cores"));
    println!(
        "| workers | measured runs/s | simulated runs/s | deviation | transactions per flush | cores busy |"
    );
    println!("|--:|--:|--:|--:|--:|--:|");
    let mut agrees = true;
    for (index, workers) in [1, 2, 4].into_iter().enumerate() {
        let outcome = Simulation::run(machine(parameters, cpu, workers));
        let (measured, deviation) = match parameters.measured.get(index) {
            Some(measured) => {
                let deviation = outcome.runs / measured - 1.0;
                agrees &= deviation.abs() <= TOLERANCE;
                let fitted = if index == 0 { " (fitted)" } else { "" };
                (format!("{measured:.0}"), format!("{:+.1} %{fitted}", deviation * 100.0))
            }
            None => ("–".to_owned(), "–".to_owned()),
        };
        println!(
            "| {workers} | {measured} | {:.0} | {deviation} | {:.1} | {:.0} % |",
            outcome.runs,
            outcome.group,
            outcome.utilization * 100.0
        );
    }
    println!();
    agrees
}

fn extrapolate(parameters: &Parameters, cpu: f64) {
    let cores = parameters.get("primary-cores");
    println!(
        "## A fleet on one primary with {cores} cores, each worker on {} cores\n",
        parameters.get("worker-cores")
    );
    println!("| workers | runs/s | transactions/s | transactions per flush | primary busy | connections |");
    println!("|--:|--:|--:|--:|--:|--:|");
    for workers in [1, 2, 4, 10, 30, 100, 1000, 10_000] {
        let outcome = Simulation::run(fleet(parameters, cpu, workers));
        println!(
            "| {workers} | {:.0} | {:.0} | {:.1} | {:.0} % | {:.0} |",
            outcome.runs,
            outcome.transactions,
            outcome.group,
            outcome.utilization * 100.0,
            f64::from(workers) * parameters.get("connections")
        );
    }
    let transactions = f64::from(FIXED_TRANSACTIONS) + parameters.get("steps");
    let limit = cores / (cpu * parameters.get("server-share")) / transactions;
    println!("\nThe processors of the primary allow {limit:.0} runs/s.\n");
}

fn shard(parameters: &Parameters, cpu: f64) {
    let (runs, peak) = (parameters.get("runs-per-day"), parameters.get("peak"));
    let workers = parameters.get("fleet");
    let mean = runs / 86_400.0;
    println!(
        "## {runs:e} runs a day ({mean:.0}/s, at the peak {:.0}/s), {workers} workers, runs by hash over databases\n",
        mean * peak
    );
    println!(
        "| databases | runs/s each | transactions/s each | primary busy | run p50 | run p99 | connections each | enough |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|---|");
    let mut databases = 1.0;
    loop {
        // A worker belongs to one database; fractions of workers do not matter at this size.
        let own = (workers / databases).max(1.0) as u32;
        let arrivals = Some(mean * peak / databases);
        let outcome = Simulation::run(Model { arrivals, ..fleet(parameters, cpu, own) });
        let connections = f64::from(own) * parameters.get("connections");
        let is_enough =
            outcome.utilization <= UTILIZATION && connections <= parameters.get("max-connections");
        println!(
            "| {databases} | {:.0} | {:.0} | {:.0} % | {:.0} ms | {:.0} ms | {connections:.0} | {} |",
            outcome.runs,
            outcome.transactions,
            outcome.utilization * 100.0,
            outcome.latency_ms(0.5),
            outcome.latency_ms(0.99),
            if is_enough { "yes" } else { "no" }
        );
        if is_enough || databases >= 1024.0 {
            break;
        }
        databases *= 2.0;
    }
    let bytes = runs * parameters.get("kb-per-run") * 1024.0;
    println!(
        "\n{:.1} TB a day in all databases, {:.0} GB in each: {:.0} days fill 4 TB.",
        bytes / 1e12,
        bytes / databases / 1e9,
        4e12 / (bytes / databases)
    );
}

fn main() {
    let parameters = match Parameters::of(std::env::args().skip(1)) {
        Ok(parameters) => parameters,
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(2);
        }
    };
    verify_model();
    let cpu = match parameters.measured.first() {
        Some(measured) => fit(&parameters, *measured),
        None => parameters.get("cpu-ms") / 1e3,
    };
    let values: Vec<String> =
        parameters.values.iter().map(|(name, value)| format!("{name} {value}")).collect();
    println!("Parameters: {}; processor time of a transaction: {:.3} ms.\n", values.join(", "), cpu * 1e3);
    let agrees = reproduce(&parameters, cpu);
    extrapolate(&parameters, cpu);
    shard(&parameters, cpu);
    if !agrees {
        eprintln!("a prediction deviates by more than {:.0} % from the measurement", TOLERANCE * 100.0);
        std::process::exit(1);
    }
}
