//! Requirements of every store. A store passes when [`run_all`] returns; its test
//! file provides a factory that creates an empty store with a clock that the tests advance.

mod control;
mod copy;
mod history;
mod people;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;
use skills_base::canonical::digest_of;
use skills_model::{
    ApprovalReason, Command, CommandName, Decision, Gate, RunState, TransitionError, Verdict, WorkerReport,
};
use skills_store::{
    Checkpoint, Claimed, CommandEffect, CommandOutcome, DecisionRecord, Due, EventKind, Idempotency,
    IdempotencyOutcome, Launch, NewEvent, PendingDelivery, Precondition, RunFilter, RunId, RunOptions,
    RunQuery, StepIntent, StepRecord, StepStatus, Store, StoreError, WorkerId,
};

use control::*;
pub use copy::{contents, fill, is_continued};
use history::*;
pub use people::runs_are_claimed_from_their_root;
use people::*;
use waiting::*;

/// The clock of the tests: starts at one o'clock and is advanced by them.
#[derive(Clone)]
pub struct Time(Arc<AtomicI64>);

impl Time {
    pub fn new() -> Self {
        Self(Arc::new(AtomicI64::new(3_600_000)))
    }

    pub fn clock(&self) -> Arc<dyn Fn() -> i64 + Send + Sync> {
        let time = self.0.clone();
        Arc::new(move || time.load(Ordering::SeqCst))
    }

    pub fn pass(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

const LEASE: u64 = 30_000;

pub fn launch(n: u32) -> Launch {
    let contract = json!({"id": "demo.two", "steps": [{"id": "one"}, {"id": "two"}]});
    Launch {
        id: RunId(format!("run-{n:04}")),
        skill_id: format!("skill-{}", n % 3),
        contract_digest: digest_of(&contract),
        contract: contract.into(),
        steps: 2,
        options: RunOptions::default(),
        inputs: json!({"n": n}),
        target: None,
        trace_id: format!("trace-{n}"),
        started_by: "ana".into(),
        idempotency: None,
    }
}

fn keyed(n: u32, key: &str, payload: &str) -> Launch {
    let key = Idempotency {
        principal: "ana".into(),
        key: key.into(),
        payload_digest: payload.into(),
        ttl_seconds: 60,
    };
    Launch { idempotency: Some(key), skill_id: "skill".into(), ..launch(n) }
}

/// Returns the checkpoints of all pages.
async fn all_checkpoints(store: &dyn Store, run: &RunId) -> Vec<Checkpoint> {
    let mut all = Vec::new();
    loop {
        let before = all.first().map(|checkpoint: &Checkpoint| checkpoint.number);
        let page = store.checkpoints(run, before, 100).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.splice(0..0, page);
    }
}

fn worker(name: &str) -> WorkerId {
    WorkerId(name.into())
}

fn done(step: &str) -> StepRecord {
    StepRecord {
        step: step.into(),
        status: StepStatus::Completed,
        inputs: json!({}),
        result: json!({"ok": step}),
        binding: None,
        isolation: None,
        attempts: 1,
        started_ms: 1,
        ended_ms: 4,
        omitted_bytes: None,
    }
}

fn intent(step: &str) -> StepIntent {
    StepIntent {
        step: step.into(),
        attempt: 1,
        inputs_digest: "d1".into(),
        idempotency_key: format!("key-{step}"),
        repeatable: false,
        capability: None,
        bindings: None,
    }
}

fn checkpoint(number: u64, steps: &[&str]) -> Checkpoint {
    Checkpoint {
        number,
        done: steps.iter().map(ToString::to_string).collect(),
        state: json!({"vars": {}, "outputs": {"steps": steps.len()}}),
        at_ms: 0,
    }
}

fn work(fence: u64, report: WorkerReport) -> Command {
    Command::Work { fence, report }
}

async fn claimed(store: &dyn Store, name: &str) -> Claimed {
    store.claim(&worker(name), LEASE, None).await.unwrap().expect("a run to claim")
}

/// Executes step one and leaves the run in the state that `then` produces.
async fn step_one(store: &dyn Store, claim: &Claimed, then: WorkerReport) {
    let run = &claim.run.id;
    for _ in 0..2 {
        // The second time as after a lost response.
        store.record_intent(run, claim.fence, 1, intent("one")).await.unwrap();
    }
    store
        .report(
            run,
            work(claim.fence, then),
            vec![done("one")],
            Some(checkpoint(1, &["one"])),
            vec![],
            vec![],
        )
        .await
        .unwrap();
}

async fn state(store: &dyn Store, run: &str) -> RunState {
    store.run(&RunId(run.into())).await.unwrap().expect("the run").state
}

/// Every check, each on a store of its own.
pub async fn run_all<S: Store>(new: impl AsyncFn(Time) -> S) {
    macro_rules! check {
        ($($name:ident),+ $(,)?) => {$(
            let time = Time::new();
            let store = new(time.clone()).await;
            eprintln!("{}: {}", store.describe(), stringify!($name));
            $name(&store, &time).await;
        )+};
    }
    check!(
        run_proceeds_from_launch_to_completed,
        launch_returns_the_stored_run,
        worker_receives_the_stored_run,
        idempotency_key_is_unique_per_principal,
        expired_key_can_be_reused,
        concurrent_launches_with_one_key_create_one_run,
        runs_are_claimed_oldest_first_and_by_one_worker,
        principals_share_the_workers,
        idle_principals_are_claimed_for_beside_busy_ones,
        interrupted_runs_are_claimed_before_pending_ones,
        one_worker_alternates_between_principals,
        lost_lease_is_reclaimed_and_its_former_owner_fenced,
        run_that_crashes_its_workers_fails,
        renewed_lease_is_kept,
        clock_stepping_back_ends_no_lease,
        the_next_worker_gets_unfinished_intents,
        a_step_is_recorded_once,
        gate_is_decided_once,
        concurrent_decisions_are_one,
        late_decisions_return_the_recorded_decision,
        due_wait_is_returned_as_ended,
        due_wait_accepts_no_decision,
        signals_are_buffered_for_their_step,
        awaited_signal_is_taken_by_a_full_run,
        cancel_invalidates_the_fencing_token,
        a_failed_run_resumes_from_an_earlier_checkpoint,
        forks_are_paused_and_have_their_own_checkpoints,
        checkpoints_of_a_long_run_are_stored_as_differences,
        checkpoints_are_read_by_page,
        large_results_of_steps_are_omitted_on_request,
        events_are_numbered_without_gaps,
        waiting_runs_are_listed_first_and_pages_join,
        filters_select_what_they_describe,
        list_is_complete_while_runs_change,
        unknown_runs_are_named,
        long_values_stay_out_of_lists,
        commands_do_not_read_long_values,
        one_run_is_claimed_by_its_id,
        released_lease_is_not_lost,
        output_lines_are_fenced_events,
        a_waiting_run_expires_as_configured,
        expired_wait_for_a_signal_names_it,
        wait_of_any_length_is_stored,
        late_expiry_changes_nothing,
        changed_request_of_a_step_does_not_change_the_wait,
        corrected_inputs_are_merged_and_recorded,
        commands_apply_to_the_state_that_was_reviewed,
        corrections_of_inputs_are_limited,
        decisions_and_descendants_are_kept,
        a_contract_is_found_by_its_digest,
        progress_counts_the_contracts_own_steps,
        failure_without_a_step_has_a_reason,
        following_starts_at_the_newest_event,
        ended_runs_are_purged_completely,
        workers_with_heartbeats_are_active,
        control_request_of_a_sidecar_is_executed_once,
        rejected_control_request_is_recorded_and_changes_nothing,
        waiting_run_is_paused_after_its_wait,
        runs_of_a_dead_worker_are_claimable_immediately,
        due_runs_are_returned,
        purge_deletes_recorded_data_and_keeps_results,
        partial_approval_is_repeated_by_its_approver_only,
        several_approvals_open_a_gate_together,
        a_denial_ends_a_gate_that_needs_several,
        annotations_are_merged_and_recorded,
        assignments_of_a_run_are_limited,
        one_of_two_conditional_writes_succeeds,
        events_without_a_delivered_message_are_found,
        titles_labels_and_assignees_are_found,
        texts_like_nul_escapes_are_preserved,
        documents_are_shared_and_versioned,
        retention_deletes_by_state,
    );
}

async fn launch_returns_the_stored_run(store: &dyn Store, _: &Time) {
    let options =
        RunOptions { expires_in_s: Some(60), place: Some("/skills".into()), ..RunOptions::default() };
    let target = Some(json!({"type": "run", "ref": "r", "content": {"rows": [1.5]}}));
    for launch in [launch(1), Launch { target, options, ..keyed(2, "k", "p") }] {
        let begun = store.launch(launch).await.unwrap();
        assert_eq!(store.run(&begun.run.id).await.unwrap().as_ref(), Some(&begun.run));
        let events = store.events(Some(&begun.run.id), 0, 10).await.unwrap();
        let numbered: Vec<_> = events.iter().map(|e| (e.number, e.event.kind.as_str())).collect();
        assert_eq!(numbered, [(1, "run.created")]);
    }
}

async fn worker_receives_the_stored_run(store: &dyn Store, time: &Time) {
    let signal = Gate::Signal { step: "two".into(), name: "go".into() };
    let reports = [
        WorkerReport::Checkpoint,
        WorkerReport::Wait(human()),
        WorkerReport::Wait(signal),
        WorkerReport::Pause,
        WorkerReport::Complete,
        WorkerReport::Fail,
    ];
    for (n, report) in (1..).zip(reports) {
        let options = RunOptions { expires_in_s: Some(60), ..RunOptions::default() };
        let run = store.launch(Launch { options, ..launch(n) }).await.unwrap().run.id;
        time.pass(7);
        let claim = store.claim(&worker("w1"), LEASE, Some(&run)).await.unwrap().expect("claimable");
        assert_eq!(store.run(&run).await.unwrap().as_ref(), Some(&claim.run));
        store.record_intent(&run, claim.fence, 1, intent("one")).await.unwrap();
        time.pass(7);
        let failed = StepRecord { status: StepStatus::Failed, result: json!({"step": "one"}), ..done("one") };
        let step = if report == WorkerReport::Fail { failed } else { done("one") };
        if report == WorkerReport::Pause {
            store.command(&run, Command::Pause, None, None, None).await.unwrap();
        }
        let head = Some(checkpoint(1, &["one"]));
        let next = vec![intent("two")];
        let name = format!("{report:?}");
        let answer =
            store.report(&run, work(claim.fence, report), vec![step], head, next, vec![]).await.unwrap();
        assert_eq!(store.run(&run).await.unwrap(), Some(answer), "{name}");
        let events = store.events(Some(&run), 0, 100).await.unwrap();
        let numbers: Vec<u64> = events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{name}");
    }
}

async fn run_proceeds_from_launch_to_completed(store: &dyn Store, _: &Time) {
    let begun = store.launch(launch(1)).await.unwrap();
    assert_eq!((begun.run.state, begun.idempotency), (RunState::Pending, IdempotencyOutcome::None));
    assert_eq!(begun.run.progress, (0, 2));
    let claim = claimed(store, "w1").await;
    assert_eq!((claim.run.state, claim.fence, claim.checkpoint.number), (RunState::Running, 1, 0));
    step_one(store, &claim, WorkerReport::Checkpoint).await;
    let end = store
        .report(
            &claim.run.id,
            work(claim.fence, WorkerReport::Complete),
            vec![done("two")],
            Some(checkpoint(2, &["one", "two"])),
            vec![],
            vec![],
        )
        .await
        .unwrap();
    assert_eq!((end.state, end.progress, end.head), (RunState::Completed, (2, 2), 2));
    assert_eq!(end.outputs, Some(json!({"steps": 2})));
    assert_eq!(end.allowed, [CommandName::Replay, CommandName::Fork]);
    assert_eq!(store.steps(&claim.run.id, u64::MAX).await.unwrap().len(), 2);
    assert!(store.claim(&worker("w1"), LEASE, None).await.unwrap().is_none());
}

async fn idempotency_key_is_unique_per_principal(store: &dyn Store, _: &Time) {
    let first = store.launch(keyed(1, "k", "p")).await.unwrap();
    assert_eq!(first.idempotency, IdempotencyOutcome::Created);
    let again = store.launch(keyed(2, "k", "p")).await.unwrap();
    assert_eq!((again.idempotency, &again.run.id), (IdempotencyOutcome::Reused, &first.run.id));
    let other = store.launch(keyed(3, "k", "q")).await.unwrap_err();
    assert!(matches!(other, StoreError::IdempotencyConflict { run, .. } if run == first.run.id));
    assert!(store.run(&RunId("run-0003".into())).await.unwrap().is_none(), "a conflict creates nothing");
    let mut bea = keyed(4, "k", "q");
    if let Some(key) = &mut bea.idempotency {
        key.principal = "bea".into();
    }
    assert_eq!(store.launch(bea).await.unwrap().idempotency, IdempotencyOutcome::Created);
}

async fn expired_key_can_be_reused(store: &dyn Store, time: &Time) {
    store.launch(keyed(1, "k", "p")).await.unwrap();
    time.pass(60_001);
    let second = store.launch(keyed(2, "k", "q")).await.unwrap();
    assert_eq!((second.idempotency, second.run.id.0.as_str()), (IdempotencyOutcome::Expired, "run-0002"));
    let again = store.launch(keyed(3, "k", "q")).await.unwrap();
    assert_eq!((again.idempotency, again.run.id.0.as_str()), (IdempotencyOutcome::Reused, "run-0002"));
}

async fn concurrent_launches_with_one_key_create_one_run(store: &dyn Store, _: &Time) {
    let answers = futures::future::join_all((0..32).map(|n| store.launch(keyed(n, "race", "p")))).await;
    let runs: std::collections::BTreeSet<_> =
        answers.iter().map(|a| a.as_ref().unwrap().run.id.clone()).collect();
    assert_eq!(runs.len(), 1);
    let created = answers.iter().filter(|a| a.as_ref().unwrap().idempotency == IdempotencyOutcome::Created);
    assert_eq!(created.count(), 1);
    assert_eq!(store.runs(RunFilter::default()).await.unwrap().runs.len(), 1);
}

async fn runs_are_claimed_oldest_first_and_by_one_worker(store: &dyn Store, _: &Time) {
    for n in 0..20 {
        store.launch(launch(n)).await.unwrap();
    }
    assert_eq!(claimed(store, "w0").await.run.id.0, "run-0000");
    let names: Vec<WorkerId> = (0..25).map(|n| worker(&format!("w{n}"))).collect();
    let claims = futures::future::join_all(names.iter().map(|name| store.claim(name, LEASE, None))).await;
    let runs: Vec<_> = claims.into_iter().filter_map(|c| c.unwrap().map(|c| c.run.id)).collect();
    let distinct: std::collections::BTreeSet<_> = runs.iter().collect();
    assert_eq!((runs.len(), distinct.len()), (19, 19));
}

async fn lost_lease_is_reclaimed_and_its_former_owner_fenced(store: &dyn Store, time: &Time) {
    store.launch(launch(1)).await.unwrap();
    let sleeper = claimed(store, "sleeper").await;
    assert!(store.claim(&worker("other"), LEASE, None).await.unwrap().is_none(), "the lease holds");
    time.pass(30_001);
    let heir = claimed(store, "heir").await;
    assert_eq!((heir.fence, heir.run.state), (sleeper.fence + 1, RunState::Running));
    let late = store
        .report(
            &sleeper.run.id,
            work(sleeper.fence, WorkerReport::Complete),
            vec![done("one")],
            None,
            vec![],
            vec![],
        )
        .await;
    assert!(
        matches!(late, Err(StoreError::Refused(TransitionError::StaleFence { presented: 1, present: 2 }))),
        "{late:?}"
    );
    assert!(store.renew(&sleeper.run.id, sleeper.fence, LEASE).await.is_err());
    assert!(store.record_intent(&sleeper.run.id, sleeper.fence, 1, intent("one")).await.is_err());
    assert!(
        store.steps(&sleeper.run.id, u64::MAX).await.unwrap().is_empty(),
        "a refused report leaves nothing behind"
    );
    step_one(store, &heir, WorkerReport::Complete).await;
}

async fn run_that_crashes_its_workers_fails(store: &dyn Store, time: &Time) {
    store.launch(launch(1)).await.unwrap();
    let mut claims = 0;
    while store.claim(&worker("w"), LEASE, None).await.unwrap().is_some() {
        claims += 1;
        assert!(claims < 100, "it is claimed for ever");
        time.pass(30_001);
    }
    let run = store.run(&RunId("run-0001".into())).await.unwrap().unwrap();
    assert_eq!(run.state, RunState::Failed);
    let error = run.error.unwrap();
    assert_eq!((claims, &error["lost_workers"]), (6, &json!(6)), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("ended 6 times") && message.contains("could not write its state"), "{error}");
    assert!(run.allowed.contains(&CommandName::Resume));
}

async fn renewed_lease_is_kept(store: &dyn Store, time: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    for _ in 0..5 {
        time.pass(20_000);
        store.renew(&claim.run.id, claim.fence, LEASE).await.unwrap();
        assert!(store.claim(&worker("w2"), LEASE, None).await.unwrap().is_none());
    }
}

async fn clock_stepping_back_ends_no_lease(store: &dyn Store, time: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    time.pass(-3_000_000);
    store.renew(&claim.run.id, claim.fence, LEASE).await.unwrap();
    assert!(store.claim(&worker("w2"), LEASE, None).await.unwrap().is_none());
    step_one(store, &claim, WorkerReport::Checkpoint).await;
    let times: Vec<i64> = store.events(None, 0, 100).await.unwrap().iter().map(|e| e.at_ms).collect();
    assert!(times.is_sorted(), "{times:?}");
}

async fn the_next_worker_gets_unfinished_intents(store: &dyn Store, time: &Time) {
    store.launch(launch(1)).await.unwrap();
    let first = claimed(store, "w1").await;
    step_one(store, &first, WorkerReport::Checkpoint).await;
    store.record_intent(&first.run.id, first.fence, 2, intent("two")).await.unwrap();
    time.pass(30_001);
    let heir = claimed(store, "w2").await;
    assert_eq!(heir.unfinished, [intent("two")]);
    assert_eq!(heir.checkpoint.done, ["one"]);
}

async fn a_step_is_recorded_once(store: &dyn Store, _: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    step_one(store, &claim, WorkerReport::Checkpoint).await;
    let again = store
        .report(
            &claim.run.id,
            work(claim.fence, WorkerReport::Checkpoint),
            vec![done("one")],
            Some(checkpoint(2, &["one"])),
            vec![],
            vec![],
        )
        .await;
    assert!(matches!(again, Err(StoreError::Failed { .. })), "{again:?}");
    assert_eq!(
        store.checkpoints(&claim.run.id, None, 1000).await.unwrap().len(),
        2,
        "its checkpoint went with it"
    );
}

pub fn decision(verdict: Verdict) -> Command {
    Command::Decide(Decision {
        verdict,
        step: "two".into(),
        inputs_digest: "d1".into(),
        choice: None,
        result: None,
    })
}

fn human() -> Gate {
    Gate::human("two", "d1", ApprovalReason::Confirmation)
}

pub async fn waiting(store: &dyn Store, n: u32) -> RunId {
    store.launch(launch(n)).await.unwrap();
    let claim = claimed(store, "w1").await;
    step_one(store, &claim, WorkerReport::Wait(human())).await;
    claim.run.id
}

async fn gate_is_decided_once(store: &dyn Store, _: &Time) {
    let run = waiting(store, 1).await;
    assert_eq!(state(store, &run.0).await, RunState::WaitingForHuman);
    assert!(
        store.claim(&worker("w1"), LEASE, None).await.unwrap().is_none(),
        "a waiting run keeps no worker"
    );
    let by = DecisionRecord { approver: Some("kim".into()), notes: Some("seen".into()) };
    let after = store.command(&run, decision(Verdict::Approve), Some(by.clone()), None, None).await.unwrap();
    assert_eq!((after.run.state, after.before), (RunState::Pending, RunState::WaitingForHuman));
    assert_eq!(after.effect, CommandEffect::Applied);
    let events = store.events(Some(&run), 0, 100).await.unwrap().len();
    let late = DecisionRecord { approver: Some("lee".into()), notes: None };
    let again = store.command(&run, decision(Verdict::Approve), Some(late), None, None).await.unwrap();
    assert_eq!((again.run.state, again.before), (RunState::Pending, RunState::Pending));
    assert!(matches!(&again.effect, CommandEffect::Repeated(Some(first)) if first.by == by), "{again:?}");
    assert_eq!(store.events(Some(&run), 0, 100).await.unwrap().len(), events, "said twice, done once");
    let other = store.command(&run, decision(Verdict::Deny), None, None, None).await.unwrap_err();
    let StoreError::AlreadyDecided { first, refusal: TransitionError::DecisionConflict(_) } = &other else {
        panic!("{other:?}")
    };
    assert_eq!((first.decision.verdict, &first.by), (Verdict::Approve, &by));

    // The next gate of the run: an earlier decision returns its result again and does not decide this gate.
    let claim = claimed(store, "w2").await;
    let gate = Gate::human("three", "d3", ApprovalReason::Confirmation);
    let wait = Command::Work { fence: claim.fence, report: WorkerReport::Wait(gate.clone()) };
    store.report(&run, wait, Vec::new(), None, Vec::new(), Vec::new()).await.unwrap();
    let retried = store.command(&run, decision(Verdict::Approve), None, None, None).await.unwrap();
    assert!(matches!(&retried.effect, CommandEffect::Repeated(Some(first)) if first.by == by), "{retried:?}");
    assert_eq!(retried.run.gate, Some(gate));
    let other = store.command(&run, decision(Verdict::Deny), None, None, None).await.unwrap_err();
    assert!(matches!(other, StoreError::AlreadyDecided { .. }), "{other:?}");
    let by_step = Decision {
        verdict: Verdict::Deny,
        step: "three".into(),
        inputs_digest: String::new(),
        choice: None,
        result: None,
    };
    let elsewhere = Command::Decide(Decision { step: "four".into(), ..by_step.clone() });
    assert!(store.command(&run, elsewhere, None, None, None).await.is_err());
    for expected in [CommandEffect::Applied, CommandEffect::Repeated(None)] {
        let denied = store.command(&run, Command::Decide(by_step.clone()), None, None, None).await.unwrap();
        assert_eq!(denied.run.state, RunState::Canceled);
        assert_eq!(denied.run.decided.map(|last| last.inputs_digest).as_deref(), Some("d3"));
        assert_eq!(std::mem::discriminant(&denied.effect), std::mem::discriminant(&expected));
    }
}

/// Concurrent decisions: one succeeds, and every other one reports who decided.
async fn late_decisions_return_the_recorded_decision(store: &dyn Store, _: &Time) {
    let run = waiting(store, 1).await;
    let decide = |n: usize| {
        let verdict = if n.is_multiple_of(2) { Verdict::Approve } else { Verdict::Deny };
        let by = DecisionRecord { approver: Some(format!("p{n}")), notes: None };
        store.command(&run, decision(verdict), Some(by), None, None)
    };
    let outcomes = futures::future::join_all((0..20).map(decide)).await;
    let stored = store.decisions(&run).await.unwrap();
    assert_eq!(stored.len(), 1);
    let mut applied = 0;
    for outcome in outcomes {
        match outcome {
            Ok(CommandOutcome { effect: CommandEffect::Applied, .. }) => applied += 1,
            Ok(CommandOutcome { effect: CommandEffect::Repeated(Some(first)), .. }) => {
                assert_eq!(*first, stored[0]);
            }
            Err(StoreError::AlreadyDecided { first, .. }) => {
                assert_eq!(*first, stored[0]);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(applied, 1);
}

async fn concurrent_decisions_are_one(store: &dyn Store, _: &Time) {
    let run = waiting(store, 1).await;
    let (yes, no) = futures::join!(
        store.command(&run, decision(Verdict::Approve), None, None, None),
        store.command(&run, decision(Verdict::Deny), None, None, None),
    );
    assert_eq!(u8::from(yes.is_ok()) + u8::from(no.is_ok()), 1);
    let expected = if yes.is_ok() { RunState::Pending } else { RunState::Canceled };
    assert_eq!(state(store, &run.0).await, expected);
}

async fn awaited_signal_is_taken_by_a_full_run(store: &dyn Store, _: &Time) {
    let signal = |name: &str| Command::Signal { name: name.into() };
    let run = waiting(store, 1).await;
    for n in 0..100 {
        store.command(&run, signal(&format!("stray-{n}")), None, None, None).await.unwrap();
    }
    assert!(store.command(&run, signal("one-more"), None, None, None).await.is_err());
    store.command(&run, decision(Verdict::Approve), None, None, None).await.unwrap();
    let taken = store.claim(&worker("w3"), LEASE, Some(&run)).await.unwrap().expect("the approved run");
    let awaited = Gate::Signal { step: "two".into(), name: "go".into() };
    let wait = work(taken.fence, WorkerReport::Wait(awaited));
    store.report(&run, wait, vec![], None, vec![], vec![]).await.unwrap();
    let sent = store.command(&run, signal("go"), None, None, None).await.unwrap();
    assert_eq!(sent.run.state, RunState::Pending, "the signal that it waits for is taken");
}

async fn signals_are_buffered_for_their_step(store: &dyn Store, _: &Time) {
    store.launch(launch(1)).await.unwrap();
    let run = RunId("run-0001".into());
    let signal = |name: &str| Command::Signal { name: name.into() };
    store.command(&run, signal("early"), None, None, Some(json!({"n": 1}))).await.unwrap();
    assert_eq!(state(store, &run.0).await, RunState::Pending, "an early signal is kept");
    let full = store.launch(launch(2)).await.unwrap().run.id;
    let large = json!("x".repeat(2 << 20));
    store.command(&full, signal("large"), None, None, Some(large.clone())).await.unwrap();
    let refused = store.command(&full, signal("large"), None, None, Some(large)).await.unwrap_err();
    assert!(matches!(refused, StoreError::InvalidRequest(_)), "{refused}");
    store.command(&full, Command::Cancel, None, None, None).await.unwrap();
    let claim = claimed(store, "w1").await;
    for _ in 0..2 {
        let stored = store.buffered_signal(&run, "early").await.unwrap();
        assert_eq!(stored, Some(json!({"n": 1})), "looking does not take it");
    }
    let command = Command::Work { fence: claim.fence, report: WorkerReport::Checkpoint };
    let consumed = NewEvent {
        kind: "signal.consumed".into(),
        step: Some("zero".into()),
        data: json!({"name": "early"}),
    };
    store.report(&run, command, Vec::new(), None, Vec::new(), vec![consumed]).await.unwrap();
    assert_eq!(store.buffered_signal(&run, "early").await.unwrap(), None, "taken with the report, once");
    let gate = Gate::Signal { step: "two".into(), name: "ready".into() };
    step_one(store, &claim, WorkerReport::Wait(gate)).await;
    assert!(store.command(&run, signal("other"), None, None, None).await.is_err());
    store.command(&run, signal("ready"), None, None, Some(json!("go"))).await.unwrap();
    let claim = claimed(store, "w2").await;
    assert_eq!(store.buffered_signal(&run, "ready").await.unwrap(), Some(json!("go")));
    let gate = Gate::Signal { step: "three".into(), name: "ready".into() };
    let command = Command::Work { fence: claim.fence, report: WorkerReport::Wait(gate) };
    let run = store.report(&run, command, Vec::new(), None, Vec::new(), Vec::new()).await.unwrap();
    assert_eq!(run.state, RunState::Pending, "what is kept already is not waited for");
}
