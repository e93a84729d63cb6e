//! A caller whose behavior a test defines, and a fixture that launches, claims, decides and counts.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use skills_model::{ApprovalReason, Choice, Command, Decision, Gate, RunState, Verdict};
use skills_runs::{
    Call, CallConditions, CallError, CallFailure, Caller, Engine, ExecutionEnd, Explanation, Plan,
    PresentBindings, Reply,
};
use skills_skill::contract::{Capability, Contract, parse};
use skills_store::{
    AuditMode, Claimed, Launch, RunEvent, RunId, RunOptions, RunRecord, Sqlite, StepRecord, StepStatus,
    Store, WorkerId,
};
use tokio_util::sync::CancellationToken;

pub const LEASE: u64 = 30_000;

pub type Answer = Result<Value, CallError>;
type Act = Arc<dyn Fn(RecordedCall, Call, CancellationToken) -> BoxFuture<'static, Answer> + Send + Sync>;

/// A call that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCall {
    pub capability: String,
    pub step: String,
    pub inputs: Value,
    pub key: String,
    /// Which call of this capability it is, from 1.
    pub nth: usize,
}

/// Behaves as configured for each capability; any other returns its inputs.
#[derive(Default)]
pub struct Fake {
    acts: Mutex<HashMap<String, Act>>,
    made: Mutex<Vec<RecordedCall>>,
    pub at_once: AtomicUsize,
    pub most_at_once: AtomicUsize,
    /// Calls whose cancellation was seen.
    pub canceled: AtomicUsize,
    changed: tokio::sync::Notify,
    /// The simulated content of the script of every capability.
    pub script: Mutex<String>,
    /// The simulated address of the service of every capability.
    pub address: Mutex<String>,
}

impl Fake {
    /// Returns a function of the inputs and of the number of calls.
    pub fn on(&self, capability: &str, act: impl Fn(RecordedCall) -> Answer + Send + Sync + 'static) {
        self.does(capability, move |made, _, _| {
            let answer = act(made);
            Box::pin(async move { answer })
        });
    }

    pub fn does(
        &self,
        capability: &str,
        act: impl Fn(RecordedCall, Call, CancellationToken) -> BoxFuture<'static, Answer> + Send + Sync + 'static,
    ) {
        self.acts.lock().unwrap().insert(capability.to_owned(), Arc::new(act));
    }

    /// Never returns; ends when it is canceled.
    pub fn block_forever(&self, capability: &str) {
        self.does(capability, |_, _, cancel| {
            Box::pin(async move {
                cancel.cancelled().await;
                Err(CallError::new(CallFailure::Canceled, "told to stop"))
            })
        });
    }

    /// As any other capability: returns its inputs.
    pub fn heals(&self, capability: &str) {
        self.acts.lock().unwrap().remove(capability);
    }

    pub fn made(&self) -> Vec<RecordedCall> {
        self.made.lock().unwrap().clone()
    }

    /// Paths of the calls so far, in their order.
    pub fn steps(&self) -> Vec<String> {
        self.made().into_iter().map(|made| made.step).collect()
    }

    pub fn count(&self, step: &str) -> usize {
        self.steps().iter().filter(|made| *made == step).count()
    }

    /// Waits until a step was called `times` times.
    pub async fn called(&self, step: &str, times: usize) {
        loop {
            let changed = self.changed.notified();
            if self.count(step) >= times {
                return;
            }
            changed.await;
        }
    }
}

/// Returns a path without the digest of what a gate checks.
pub fn without_digest(path: &str) -> &str {
    path.split_once('#').map_or(path, |(path, _)| path)
}

struct Inside(Arc<FakeCaller>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fake.at_once.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The caller of a fixture.
pub struct FakeCaller {
    pub fake: Arc<Fake>,
    me: std::sync::Weak<FakeCaller>,
}

#[async_trait]
impl Caller for FakeCaller {
    async fn call(&self, call: Call, cancel: CancellationToken) -> Result<Reply, CallError> {
        let fake = &self.fake;
        let (made, act) = {
            let mut all = fake.made.lock().unwrap();
            let nth = all.iter().filter(|made| made.capability == call.capability.id).count() + 1;
            let made = RecordedCall {
                capability: call.capability.id.clone(),
                step: without_digest(&call.step).to_owned(),
                inputs: Value::Object(call.inputs.clone()),
                key: call.idempotency_key.clone(),
                nth,
            };
            all.push(made.clone());
            (made, fake.acts.lock().unwrap().get(&call.capability.id).cloned())
        };
        let now = fake.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        fake.most_at_once.fetch_max(now, Ordering::SeqCst);
        let _inside = Inside(self.me.upgrade().unwrap());
        fake.changed.notify_waiters();
        let answer = match act {
            Some(act) => act(made, call, cancel).await,
            None => Ok(made.inputs),
        };
        if matches!(&answer, Err(error) if error.code == CallFailure::Canceled) {
            fake.canceled.fetch_add(1, Ordering::SeqCst);
        }
        let outputs = answer?.as_object().cloned().unwrap_or_default();
        Ok(Reply { outputs, binding: "fake".into(), ..Reply::default() })
    }

    fn pins(&self, capability: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(capability.to_owned(), self.fake.script.lock().unwrap().clone())])
    }

    fn present_bindings(
        &self,
        capability: &Capability,
        _: &CallConditions,
        launched: &BTreeMap<String, String>,
    ) -> PresentBindings {
        let now = self.pins(&capability.id);
        let what = "the script changed since the launch".to_owned();
        let same = now.iter().all(|(binding, pin)| launched.get(binding) == Some(pin));
        let address = self.fake.address.lock().unwrap().clone();
        PresentBindings {
            callable: if address == NOT_CONFIGURED { vec![] } else { vec![("fake".to_owned(), address)] },
            changed: (!same).then_some(ApprovalReason::Changed { what, now, call: None, besides: None }),
        }
    }

    fn explain(&self, capability: &Capability, conditions: &CallConditions) -> Explanation {
        Explanation {
            capability: capability.id.clone(),
            conformance: conditions.conformance,
            chosen: Some("fake".into()),
            bindings: Vec::new(),
            summary: "the test decides".into(),
        }
    }
}

/// An address with which nothing can be called.
pub const NOT_CONFIGURED: &str = "not configured";

/// A capability; `shape` holds any of its fields.
pub fn capability(id: &str, shape: Value) -> Capability {
    let mut document = json!({
        "id": id, "version": "1.0.0", "description": "", "inputs": {}, "outputs": {},
        "properties": {"deterministic": true, "side_effects": false, "idempotent": false},
        "safety": {"trust_level": "standard", "requires_confirmation": false, "mandatory_pre_gates": [],
                   "reversible": null},
        "location": ""
    });
    for (part, value) in shape.as_object().into_iter().flatten() {
        if let Some(fields) = value.as_object().filter(|_| part != "inputs") {
            for (key, value) in fields {
                document[part][key] = value.clone();
            }
        } else {
            document[part] = value.clone();
        }
    }
    serde_json::from_value(document).unwrap()
}

/// Everything a test needs.
pub struct Bench {
    pub store: Arc<dyn Store>,
    pub fake: Arc<Fake>,
    pub engine: Engine,
    capabilities: BTreeMap<String, Arc<Capability>>,
    skills: BTreeMap<String, Arc<Contract>>,
    time: Arc<AtomicI64>,
    launched: AtomicUsize,
    pub options: RunOptions,
    pub approval: Option<String>,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|clock| Sqlite::in_memory(clock).unwrap())
    }

    /// On a database file, as in earnest.
    pub fn on_disk(folder: &Path) -> Self {
        let path = folder.join("runs.db");
        Self::with(|clock| Sqlite::open(&path, clock).unwrap().store)
    }

    /// With a clock that advances whenever it is read, so that each transaction has its own time.
    pub fn ticking() -> Self {
        Self::timed(|clock| Sqlite::in_memory(clock).unwrap(), 1)
    }

    fn with(open: impl Fn(Arc<dyn Fn() -> i64 + Send + Sync>) -> Sqlite) -> Self {
        Self::timed(open, 0)
    }

    fn timed(open: impl Fn(Arc<dyn Fn() -> i64 + Send + Sync>) -> Sqlite, tick: i64) -> Self {
        let time = Arc::new(AtomicI64::new(1_000_000));
        let read = time.clone();
        let clock: Arc<dyn Fn() -> i64 + Send + Sync> =
            Arc::new(move || read.fetch_add(tick, Ordering::SeqCst));
        let store: Arc<dyn Store> = Arc::new(open(clock.clone()));
        let fake = Arc::new(Fake::default());
        let caller = Arc::new_cyclic(|me| FakeCaller { fake: fake.clone(), me: me.clone() });
        let engine = Engine::new(store.clone(), caller).with_clock(clock);
        let options = RunOptions { audit_mode: AuditMode::Full, ..RunOptions::default() };
        Self {
            store,
            fake,
            engine,
            capabilities: BTreeMap::new(),
            skills: BTreeMap::new(),
            time,
            launched: AtomicUsize::new(0),
            options,
            approval: None,
        }
    }

    /// Declares a capability; undeclared ones have no side effects and accept any input.
    pub fn declare(&mut self, id: &str, shape: Value) -> &mut Self {
        self.capabilities.insert(id.to_owned(), Arc::new(capability(id, shape)));
        self
    }

    /// A capability that acts on the world and may not be repeated.
    pub fn declare_unsafe(&mut self, id: &str) -> &mut Self {
        self.declare(id, json!({"properties": {"side_effects": true, "deterministic": false}}))
    }

    /// A skill that contracts may nest.
    pub fn skill(&mut self, text: &str) -> &mut Self {
        let contract = contract(text);
        self.skills.insert(contract.id.clone(), Arc::new(contract));
        self
    }

    pub fn plan(&self, text: &str) -> Plan {
        let any = |id: &str| {
            Some(self.capabilities.get(id).cloned().unwrap_or_else(|| Arc::new(capability(id, json!({})))))
        };
        let skills = |id: &str| self.skills.get(id).cloned();
        Plan::pin(&contract(text), &skills, &any, self.approval.clone()).unwrap_or_else(|e| panic!("{e}"))
    }

    pub async fn launch(&self, text: &str, inputs: Value) -> RunId {
        self.launch_plan(self.plan(text).to_value(), inputs).await
    }

    /// Launches a run of a stored plan.
    pub async fn launch_plan(&self, plan: Value, inputs: Value) -> RunId {
        let digest = skills_base::canonical::digest_of(&plan);
        let plan = Plan::from_value(&plan, &digest).unwrap();
        let id = RunId(format!("run-{}", self.launched.fetch_add(1, Ordering::SeqCst)));
        let launch = Launch {
            id: id.clone(),
            skill_id: plan.contract.id.clone(),
            contract_digest: plan.digest(),
            contract: plan.to_value().into(),
            inputs,
            target: Some(json!({"type": "output", "ref": "x", "content": {"total": 3}})),
            trace_id: "trace".into(),
            started_by: "ana".into(),
            steps: u32::try_from(plan.contract.steps.len()).unwrap(),
            options: self.options.clone(),
            idempotency: None,
        };
        self.store.launch(launch).await.unwrap();
        id
    }

    pub async fn claim(&self, run: &RunId) -> Claimed {
        let claimed = self.store.claim(&WorkerId("w".into()), LEASE, Some(run)).await.unwrap();
        claimed.unwrap_or_else(|| panic!("{run} cannot be claimed"))
    }

    /// Claims a run and executes it until it waits or ends.
    pub async fn work(&self, run: &RunId) -> ExecutionEnd {
        let claimed = self.claim(run).await;
        self.engine.execute(claimed, CancellationToken::new()).await
    }

    /// Launches and executes.
    pub async fn run(&self, text: &str, inputs: Value) -> (RunId, ExecutionEnd) {
        let run = self.launch(text, inputs).await;
        let executed = self.work(&run).await;
        (run, executed)
    }

    /// Launches, executes, and expects outputs.
    pub async fn outputs(&self, text: &str, inputs: Value) -> Value {
        match self.run(text, inputs).await.1 {
            ExecutionEnd::Completed(run) => run.outputs.unwrap(),
            other => panic!("not completed: {other:?}"),
        }
    }

    /// Executes until a step was called `times` times, then abandons the worker: nothing more is recorded.
    pub async fn work_until(&self, run: &RunId, step: &str, times: usize) {
        let claimed = self.claim(run).await;
        tokio::select! {
            biased;
            ended = self.engine.execute(claimed, CancellationToken::new()) => panic!("it ended: {ended:?}"),
            () = self.fake.called(step, times) => {}
        }
        self.pass(i64::try_from(LEASE).unwrap() + 1);
    }

    pub fn pass(&self, ms: i64) {
        self.time.fetch_add(ms, Ordering::SeqCst);
    }

    pub async fn record(&self, run: &RunId) -> RunRecord {
        self.store.run(run).await.unwrap().unwrap()
    }

    pub async fn events(&self, run: &RunId) -> Vec<RunEvent> {
        self.store.events(Some(run), 0, 10_000).await.unwrap()
    }

    /// Kinds of events about a step.
    pub async fn kinds(&self, run: &RunId, step: &str) -> Vec<String> {
        let events = self.events(run).await;
        let about = |event: &&RunEvent| event.event.step.as_deref() == Some(step);
        events.iter().filter(about).map(|event| event.event.kind.to_string()).collect()
    }

    pub async fn step(&self, run: &RunId, step: &str) -> Option<StepRecord> {
        self.store
            .steps(run, u64::MAX)
            .await
            .unwrap()
            .into_iter()
            .find(|record| without_digest(&record.step) == step)
    }

    pub async fn status(&self, run: &RunId, step: &str) -> Option<StepStatus> {
        self.step(run, step).await.map(|record| record.status)
    }

    /// Decides the gate that waits.
    pub async fn decide(&self, run: &RunId, verdict: Verdict, choice: Option<Choice>) -> RunRecord {
        let Some(Gate::Human { step, inputs_digest, .. }) = self.record(run).await.gate else {
            panic!("no question is open")
        };
        let decision = Command::Decide(Decision { verdict, step, inputs_digest, choice, result: None });
        self.store.command(run, decision, None, None, None).await.unwrap().run
    }

    /// Marks the step of unknown outcome as completed, with its result.
    pub async fn happened(&self, run: &RunId, result: Value) {
        let Some(Gate::Human { step, inputs_digest, .. }) = self.record(run).await.gate else {
            panic!("no question is open")
        };
        let (verdict, choice, result) = (Verdict::Approve, Some(Choice::Happened), Some(result));
        let decision = Command::Decide(Decision { verdict, step, inputs_digest, choice, result });
        self.store.command(run, decision, None, None, None).await.unwrap();
    }

    pub async fn approve(&self, run: &RunId) {
        assert_eq!(self.decide(run, Verdict::Approve, None).await.state, RunState::Pending);
    }

    pub async fn resume(&self, run: &RunId, head: Option<u64>, inputs: Option<Value>) {
        self.store.command(run, Command::Resume, None, head, inputs).await.unwrap();
    }

    pub async fn signal(&self, run: &RunId, name: &str, payload: Value) {
        let signal = Command::Signal { name: name.into() };
        self.store.command(run, signal, None, None, Some(payload)).await.unwrap();
    }
}

pub fn contract(text: &str) -> Contract {
    let (contract, findings) = parse(Path::new("/skills/demo/skill.yaml"), text);
    contract.unwrap_or_else(|| panic!("{findings:?}"))
}

pub fn failing(message: &str) -> Answer {
    Err(CallError::new(CallFailure::RuntimeError, message))
}

pub fn completed(executed: &ExecutionEnd) -> &RunRecord {
    match executed {
        ExecutionEnd::Completed(run) => run,
        other => panic!("not completed: {other:?}"),
    }
}

/// Code and message of a failed run.
pub fn failed(executed: &ExecutionEnd) -> (String, String) {
    let ExecutionEnd::Failed(run) = executed else { panic!("not failed: {executed:?}") };
    let error = run.error.clone().unwrap();
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    (text("code"), text("message"))
}

/// The step that waits for approval, and the reason as JSON.
pub fn pending_step(executed: &ExecutionEnd) -> (String, Value) {
    let ExecutionEnd::Waiting(run) = executed else { panic!("not waiting: {executed:?}") };
    match run.gate.clone() {
        Some(Gate::Human { step, why, .. }) => (step, json!(why)),
        other => panic!("waits for {other:?}"),
    }
}
