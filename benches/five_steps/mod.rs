//! The workload of the benches of runs: five trivial steps, each durable before the next; and the same with bare
//! `SQLite`.
#![allow(dead_code, reason = "each bench uses its own part")]

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rusqlite::{Connection, params};
use serde_json::json;
use skills_runs::{Call, CallConditions, CallError, Caller, Explanation, Plan, Reply};
use skills_skill::contract::{Capability, parse};
use skills_store::{Launch, RunId, RunOptions, Sqlite, Store};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

pub const FIVE: &str = "
id: bench.five
inputs: { n: { type: integer } }
outputs: { n: { type: integer } }
steps:
  - { id: a, uses: work.one, input: { n: inputs.n }, output: { n: vars.a } }
  - { id: b, uses: work.one, input: { n: vars.a }, output: { n: vars.b } }
  - { id: c, uses: work.one, input: { n: vars.b }, output: { n: vars.c } }
  - { id: d, uses: work.one, input: { n: vars.c }, output: { n: vars.d } }
  - { id: e, uses: work.one, input: { n: vars.d }, output: { n: outputs.n } }
";

/// Number of steps of [`FIVE`].
pub const STEPS: i64 = 5;

pub const RESULT: &str = r#"{"n": 1}"#;

pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the end of time")
}

/// Answers its inputs at once, and tells when it was called.
pub struct Echo(pub Option<UnboundedSender<(String, Instant)>>);

#[async_trait]
impl Caller for Echo {
    async fn call(&self, call: Call, _cancel: CancellationToken) -> Result<Reply, CallError> {
        if let Some(calls) = &self.0 {
            let _ = calls.send((call.trace_id.clone(), Instant::now()));
        }
        Ok(Reply { outputs: call.inputs, binding: "echo".into(), ..Reply::default() })
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

#[allow(clippy::unnecessary_wraps, reason = "the shape that pinning a plan asks for")]
fn capability(id: &str) -> Option<Arc<Capability>> {
    let value = json!({
        "id": id, "version": "1.0.0", "description": "", "inputs": {}, "outputs": {},
        "properties": {"deterministic": true, "side_effects": false, "idempotent": true},
        "safety": {"trust_level": "standard", "requires_confirmation": id == "work.asked",
                   "mandatory_pre_gates": [], "reversible": null},
        "location": ""
    });
    Some(Arc::new(serde_json::from_value(value).expect("a capability")))
}

pub fn plan(text: &str) -> Plan {
    let contract = parse(Path::new("/skills/bench/skill.yaml"), text).0.expect("a contract");
    Plan::pin(&contract, &|_| None, &capability, None).expect("a plan")
}

pub fn launch(plan: &Plan, n: usize) -> Launch {
    Launch {
        id: RunId(uuid::Uuid::now_v7().to_string()),
        skill_id: plan.contract.id.clone(),
        contract_digest: plan.digest(),
        contract: plan.to_value().into(),
        inputs: json!({"n": n}),
        target: None,
        trace_id: n.to_string(),
        started_by: "bench".into(),
        steps: u32::try_from(plan.contract.steps.len()).expect("few steps"),
        options: RunOptions::default(),
        idempotency: None,
    }
}

pub fn open(folder: &Path) -> Arc<dyn Store> {
    Arc::new(Sqlite::open(&folder.join("runs.db"), Arc::new(now)).expect("a store").store)
}

/// Median cost of making 4 KiB durable in this folder.
pub fn durable(folder: &Path) -> Duration {
    let mut file = std::fs::File::create(folder.join("x")).expect("a file");
    let mut times: Vec<Duration> = (0..300)
        .map(|_| {
            file.write_all(&[7; 4096]).expect("written");
            let began = Instant::now();
            file.sync_data().expect("synced");
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// As little as five durable steps take: the run and each step is a transaction, nothing else is kept.
pub struct BareSqlite(Connection);

impl BareSqlite {
    pub fn open(folder: &Path) -> Self {
        let connection = Connection::open(folder.join("bare.db")).expect("a database");
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE runs (id INTEGER PRIMARY KEY, state TEXT, head INTEGER);
                 CREATE TABLE steps (run INTEGER, step INTEGER, result TEXT, PRIMARY KEY (run, step)) WITHOUT ROWID;",
            )
            .expect("tables");
        Self(connection)
    }

    fn execute(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) {
        self.0.prepare_cached(sql).and_then(|mut statement| statement.execute(values)).expect("executed");
    }

    pub fn start(&self, run: i64) {
        self.execute("INSERT INTO runs VALUES (?1, 'running', 0)", params![run]);
    }

    pub fn step(&self, run: i64, step: i64) {
        self.execute("BEGIN IMMEDIATE", &[]);
        self.execute("INSERT INTO steps VALUES (?1, ?2, ?3)", params![run, step, RESULT]);
        self.execute(
            "UPDATE runs SET head = ?2, state = iif(?2 = ?3, 'completed', state) WHERE id = ?1",
            params![run, step, STEPS - 1],
        );
        self.execute("COMMIT", &[]);
    }
}
