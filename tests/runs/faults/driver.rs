//! The process that is killed: it launches and executes runs, decides their gates, and exits where configured.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use skills_model::{ApprovalReason, Choice, Command, Decision, Gate, RunState, Verdict};
use skills_runs::{
    Call, CallConditions, CallError, Caller, Engine, Explanation, LeaseSettings, Plan, Reply, Supervisor,
    SupervisorSettings,
};
use skills_skill::contract::{Capability, parse};
use skills_store::{Clocks, Idempotency, Launch, RunFilter, RunId, RunOptions, RunRecord, Sqlite, Store};
use tokio_util::sync::CancellationToken;

pub const FOLDER: &str = "SKILLS_FAULTS_FOLDER";
pub const RUNS: &str = "SKILLS_FAULTS_RUNS";
pub const FAULT: &str = "SKILLS_FAULTS_FAULT";

/// Every kind of step that a crash can tear apart.
const CONTRACT: &str = "
id: demo.faults
inputs: { list: { type: array } }
outputs: { all: { type: array } }
steps:
  - { id: read, uses: note.read, output: { n: vars.n } }
  - { id: send, uses: mail.send }
  - { id: each, uses: note.read, input: { n: item }, output: { n: outputs.all }, config: { foreach: { items: inputs.list, as: item } } }
  - { id: pay, uses: pay.out }
  - { id: closed, wait_for_signal: books-closed }
  - { id: last, uses: mail.send }
";

/// Timeout of a driver, so that a hang is a failure.
const BOUND: Duration = Duration::from_secs(120);

fn end_self(signal: Signal) {
    kill_process(getpid(), signal).unwrap();
}

/// Appends one complete line to a file.
fn note(path: &Path, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Acts on the outside world: each effect is a line with the key of its step.
struct World {
    effects: PathBuf,
    count: AtomicUsize,
    /// After this number of effects: the signal, and the delay.
    ending: Option<(usize, Signal, Duration)>,
}

#[async_trait]
impl Caller for World {
    async fn call(&self, call: Call, _cancel: CancellationToken) -> Result<Reply, CallError> {
        note(&self.effects, &format!("{}\t{}", call.idempotency_key, call.capability.id));
        let nth = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some((_, signal, after)) = self.ending.filter(|(at, _, _)| *at == nth) {
            if after.is_zero() {
                end_self(signal);
            } else {
                std::thread::spawn(move || {
                    std::thread::sleep(after);
                    end_self(signal);
                });
            }
        }
        // Longer than a commit, so that calls of several runs overlap.
        tokio::time::sleep(Duration::from_millis(2)).await;
        let outputs = json!({"n": 1}).as_object().cloned().unwrap();
        Ok(Reply { outputs, binding: "world".into(), ..Reply::default() })
    }

    fn explain(&self, capability: &Capability, conditions: &CallConditions) -> Explanation {
        Explanation {
            capability: capability.id.clone(),
            conformance: conditions.conformance,
            chosen: None,
            bindings: Vec::new(),
            summary: String::new(),
        }
    }
}

fn capability(id: &str, acts: bool, confirmed: bool) -> Arc<Capability> {
    let document = json!({
        "id": id, "version": "1.0.0", "description": "", "inputs": {}, "outputs": {},
        "properties": {"deterministic": !acts, "side_effects": acts, "idempotent": false},
        "safety": {"trust_level": "standard", "requires_confirmation": confirmed, "mandatory_pre_gates": [],
                   "reversible": null},
        "location": ""
    });
    Arc::new(serde_json::from_value(document).unwrap())
}

fn plan() -> Plan {
    let (contract, findings) = parse(Path::new("/skills/faults/skill.yaml"), CONTRACT);
    let contract = contract.unwrap_or_else(|| panic!("{findings:?}"));
    let find = |id: &str| match id {
        "note.read" => Some(capability(id, false, false)),
        "mail.send" => Some(capability(id, true, false)),
        "pay.out" => Some(capability(id, true, true)),
        _ => None,
    };
    Plan::pin(&contract, &|_| None, &find, None).unwrap()
}

/// A launch as repeated by a client after a crash: a new id, the same key.
fn launch(plan: &Plan, n: usize, inputs: Value) -> Launch {
    Launch {
        id: RunId(uuid::Uuid::now_v7().to_string()),
        skill_id: plan.contract.id.clone(),
        contract_digest: plan.digest(),
        contract: plan.to_value().into(),
        inputs,
        target: None,
        trace_id: format!("trace-{n}"),
        started_by: "ana".into(),
        steps: u32::try_from(plan.contract.steps.len()).unwrap(),
        options: RunOptions::default(),
        idempotency: Some(Idempotency {
            principal: "ana".into(),
            key: format!("key-{n}"),
            payload_digest: "p".into(),
            ttl_seconds: 3600,
        }),
    }
}

/// Does nothing unless this process was started as a driver.
pub fn main() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = PathBuf::from(folder);
    let runs: usize = std::env::var(RUNS).unwrap().parse().unwrap();
    let fault = std::env::var(FAULT).unwrap();
    let words: Vec<&str> = fault.split(' ').collect();
    let number = |index: usize| words[index].parse::<usize>().unwrap();
    let mut ending = None;
    match words[0] {
        "point" => end_at(words[1].to_owned(), number(2), folder.join("hit")),
        "moment" => {
            let after = Duration::from_micros(u64::try_from(number(2)).unwrap().max(1));
            ending = Some((number(1), Signal::KILL, after));
        }
        "stop" => ending = Some((number(1), Signal::STOP, Duration::ZERO)),
        _ => {}
    }
    let world = World { effects: folder.join("effects"), count: AtomicUsize::new(0), ending };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let all = async {
        if words[0] == "full" {
            fill(&folder).await;
        } else {
            work(&folder, runs, world, words[0] == "stop").await;
        }
    };
    let in_time = runtime.block_on(async { tokio::time::timeout(BOUND, all).await });
    assert!(in_time.is_ok(), "it did not come to an end");
}

fn end_at(point: String, nth: usize, hit: PathBuf) {
    let count = AtomicUsize::new(0);
    let name = point.clone();
    fail::cfg_callback(point, move || {
        if count.fetch_add(1, Ordering::SeqCst) + 1 == nth {
            std::fs::write(&hit, &name).unwrap();
            end_self(Signal::KILL);
        }
    })
    .unwrap();
}

async fn work(folder: &Path, runs: usize, world: World, alone: bool) {
    let store: Arc<dyn Store> =
        Arc::new(Sqlite::open(&folder.join("runs.db"), Clocks::system()).unwrap().store);
    let engine = Arc::new(Engine::new(store.clone(), Arc::new(world)));
    let settings = SupervisorSettings {
        // One that sleeps must not sleep in the middle of a commit of another run.
        workers: if alone { 1 } else { 8 },
        leases: LeaseSettings {
            lease: Duration::from_millis(600),
            cancel_poll_interval: Duration::from_millis(20),
        },
        poll: Duration::from_millis(50),
        grace: Duration::from_secs(2),
    };
    let plan = plan();
    let acknowledged = folder.join("acknowledged");
    let mut workers = None;
    for n in 0..runs {
        let started = store.launch(launch(&plan, n, json!({"list": [1, 2, 3]}))).await.unwrap();
        note(&acknowledged, &format!("key-{n}\t{}", started.run.id));
        // Work is in flight while more is launched.
        if n == 0 && !alone {
            workers = Some(Supervisor::start(store.clone(), engine.clone(), settings.clone()));
        }
    }
    let workers = workers.unwrap_or_else(|| Supervisor::start(store.clone(), engine, settings));
    loop {
        let seen = store.newest_event().await.unwrap();
        let page = store.runs(RunFilter { limit: runs, ..RunFilter::default() }).await.unwrap();
        if page.runs.iter().all(|run| run.state == RunState::Completed) {
            break;
        }
        for run in page.runs {
            answer(&*store, &run, folder).await;
        }
        store.wait(seen, 200).await.unwrap();
    }
    workers.shutdown().await;
}

/// Decisions on a waiting run: every gate is approved; an unknown outcome is alternately rerun or skipped.
async fn answer(store: &dyn Store, run: &RunRecord, folder: &Path) {
    let command = match &run.gate {
        Some(Gate::Human { step, inputs_digest, why, .. }) => {
            let turn = run.trace_id.ends_with(['0', '2', '4', '6', '8']);
            let choice = (*why == ApprovalReason::UnknownOutcome).then_some(if turn {
                Choice::Rerun
            } else {
                Choice::Skip
            });
            Command::Decide(Decision {
                verdict: Verdict::Approve,
                step: step.clone(),
                inputs_digest: inputs_digest.clone(),
                choice,
                result: None,
            })
        }
        Some(Gate::Signal { name, .. }) => Command::Signal { name: name.clone() },
        None => return,
    };
    let decided = match &command {
        Command::Decide(decision) => Some(decision.step.clone()),
        _ => None,
    };
    // Another process may have decided at the same time; then the state has changed and this is rejected.
    if store.command(&run.id, command, None, None, Some(json!({}))).await.is_ok()
        && let Some(step) = decided
    {
        note(&folder.join("decided"), &format!("{}\t{step}", run.id));
    }
}

/// Launches until the disk is full, frees space, and continues.
async fn fill(folder: &Path) {
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![b'x'; 600_000]).unwrap();
    let store = Sqlite::open(&folder.join("runs.db"), Clocks::system()).unwrap().store;
    let plan = plan();
    let large = |n: usize| launch(&plan, n, json!({"list": ["x".repeat(20_000)]}));
    let mut launched = Vec::new();
    let error = loop {
        assert!(launched.len() < 1000, "the disk is never full");
        match store.launch(large(launched.len())).await {
            Ok(started) => launched.push(started.run.id),
            Err(error) => break error.to_string(),
        }
    };
    assert!(
        error.contains("the disk is full") && error.contains("nothing recorded before is lost"),
        "{error}"
    );
    assert!(launched.len() > 5, "{} launches", launched.len());
    for run in &launched {
        assert!(store.run(run).await.unwrap().is_some(), "{run} was acknowledged");
    }
    std::fs::remove_file(&ballast).unwrap();
    let n = launched.len();
    launched.push(store.launch(large(n)).await.expect("with free space it continues").run.id);
    let health = store.check().await.unwrap();
    assert!(health.is_sound(), "{health:?}");
    assert_eq!(health.runs, launched.len() as u64);
}
