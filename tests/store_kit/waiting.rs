//! Checks of claims by name, expiring waits, corrections, and maintenance.

use skills_model::Expiry;

use super::*;

fn expiring(n: u32, seconds: u64, on_expiry: Expiry) -> Launch {
    Launch {
        options: RunOptions { expires_in_s: Some(seconds), on_expiry, ..RunOptions::default() },
        ..launch(n)
    }
}

async fn kinds(store: &dyn Store, run: &RunId) -> Vec<String> {
    store.events(Some(run), 0, 100).await.unwrap().into_iter().map(|e| e.event.kind.to_string()).collect()
}

async fn wait_at_gate(store: &dyn Store, launch: Launch) -> RunId {
    store.launch(launch).await.unwrap();
    let claim = claimed(store, "w1").await;
    step_one(store, &claim, WorkerReport::Wait(human())).await;
    claim.run.id
}

pub async fn one_run_is_claimed_by_its_id(store: &dyn Store, _: &Time) {
    for n in 0..3 {
        store.launch(launch(n)).await.unwrap();
    }
    let expected = RunId("run-0001".into());
    let claim = store.claim(&worker("w1"), LEASE, Some(&expected)).await.unwrap().expect("the run asked for");
    assert_eq!(claim.run.id, expected);
    assert_eq!(claim.contract["id"], "demo.two");
    assert!(store.claim(&worker("w2"), LEASE, Some(&expected)).await.unwrap().is_none(), "it is taken");
    let nowhere = RunId("nowhere".into());
    assert!(store.claim(&worker("w2"), LEASE, Some(&nowhere)).await.unwrap().is_none());
    assert_eq!(state(store, "run-0000").await, RunState::Pending, "others are left alone");
}

pub async fn principals_share_the_workers(store: &dyn Store, _: &Time) {
    for n in 0..40 {
        store.launch(launch(n)).await.unwrap();
    }
    let by = |n: u32, name: &str| Launch { started_by: name.into(), ..launch(n) };
    for n in 40..44 {
        store.launch(by(n, if n % 2 == 0 { "bea" } else { "cem" })).await.unwrap();
    }
    let mut counts = std::collections::BTreeMap::<String, Vec<String>>::new();
    for n in 0..6 {
        let claim = claimed(store, &format!("w{n}")).await;
        counts.entry(claim.run.started_by).or_default().push(claim.run.id.0);
    }
    let ids = |name: &str| counts[name].join(" ");
    assert_eq!(ids("ana"), "run-0000 run-0001", "the oldest of each principal first");
    assert_eq!(ids("bea"), "run-0040 run-0042");
    assert_eq!(ids("cem"), "run-0041 run-0043");
}

pub async fn idle_principals_are_claimed_for_beside_busy_ones(store: &dyn Store, _: &Time) {
    let of_idle =
        async || store.claim_of_idle_principal(&worker("w9"), LEASE).await.unwrap().map(|c| c.run.id.0);
    for n in 0..3 {
        store.launch(launch(n)).await.unwrap();
    }
    let claim = claimed(store, "w1").await;
    assert_eq!(of_idle().await, None, "one run of its principal is being executed");
    store.launch(Launch { started_by: "bea".into(), ..launch(3) }).await.unwrap();
    store.launch(Launch { started_by: "bea".into(), ..launch(4) }).await.unwrap();
    assert_eq!(of_idle().await.as_deref(), Some("run-0003"));
    assert_eq!(of_idle().await, None);
    store.release_lease(&claim.run.id, claim.fence).await.unwrap();
    assert_eq!(of_idle().await, Some(claim.run.id.0), "an interrupted run comes first");
    assert_eq!(of_idle().await, None);
}

pub async fn interrupted_runs_are_claimed_before_pending_ones(store: &dyn Store, time: &Time) {
    for n in 0..20 {
        store.launch(launch(n)).await.unwrap();
    }
    let by = |n: u32| Launch { started_by: "bea".into(), ..launch(n) };
    store.launch(by(20)).await.unwrap();
    let last = RunId("run-0020".into());
    let first = store.claim(&worker("w1"), LEASE, Some(&last)).await.unwrap().unwrap();
    store.release_lease(&last, first.fence).await.unwrap();
    assert_eq!(claimed(store, "w2").await.run.id, last, "released");
    time.pass(30_001);
    assert_eq!(claimed(store, "w3").await.run.id, last, "expired");
}

pub async fn one_worker_alternates_between_principals(store: &dyn Store, _: &Time) {
    for n in 0..60 {
        store.launch(launch(n)).await.unwrap();
    }
    store.launch(Launch { started_by: "bea".into(), ..launch(60) }).await.unwrap();
    let mut before = 0;
    loop {
        let claim = claimed(store, "w1").await;
        if claim.run.started_by == "bea" {
            break;
        }
        before += 1;
        let report = work(claim.fence, WorkerReport::Fail);
        store.report(&claim.run.id, report, vec![], None, vec![], vec![]).await.unwrap();
    }
    assert!(before < 50, "one of two is drawn each time: {before} runs of the other principal came first");
}

pub async fn released_lease_is_not_lost(store: &dyn Store, time: &Time) {
    store.launch(launch(1)).await.unwrap();
    for _ in 0..20 {
        let claim = claimed(store, "w1").await;
        assert!(store.claim(&worker("w2"), LEASE, None).await.unwrap().is_none());
        store.release_lease(&claim.run.id, claim.fence).await.unwrap();
        assert!(
            store.release_lease(&claim.run.id, claim.fence + 1).await.is_err(),
            "a stale fence gives nothing back"
        );
        time.pass(1);
    }
    let claim = claimed(store, "w2").await;
    assert_eq!(claim.run.state, RunState::Running, "workers that shut down cleanly consume no attempt");
    assert!(store.renew(&claim.run.id, claim.fence - 1, LEASE).await.is_err());
}

pub async fn output_lines_are_fenced_events(store: &dyn Store, time: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    let line = |text: &str| NewEvent {
        kind: "step.log".into(),
        step: Some("one".into()),
        data: json!({"stream": "stdout", "text": text}),
    };
    for _ in 0..2 {
        // The second time as after a lost response.
        store.append(&claim.run.id, claim.fence, 1, vec![line("a"), line("b")]).await.unwrap();
        assert_eq!(kinds(store, &claim.run.id).await, ["run.created", "run.claimed", "step.log", "step.log"]);
    }
    store.append(&claim.run.id, claim.fence, 2, vec![line("c")]).await.unwrap();
    assert_eq!(kinds(store, &claim.run.id).await.len(), 5);
    time.pass(30_001);
    claimed(store, "w2").await;
    let late = store.append(&claim.run.id, claim.fence, 3, vec![line("c")]).await;
    assert!(matches!(late, Err(StoreError::Refused(TransitionError::StaleFence { .. }))), "{late:?}");
}

pub async fn a_waiting_run_expires_as_configured(store: &dyn Store, time: &Time) {
    let denied = wait_at_gate(store, expiring(1, 60, Expiry::Deny)).await;
    let failed = wait_at_gate(store, expiring(2, 90, Expiry::Fail)).await;
    let patient = wait_at_gate(store, launch(3)).await;
    let run = store.run(&denied).await.unwrap().unwrap();
    assert_eq!(run.expires_ms, Some(run.since_ms + 60_000));
    assert_eq!(store.run(&patient).await.unwrap().unwrap().expires_ms, None);
    assert!(store.expired().await.unwrap().is_empty());
    time.pass(60_000);
    let over = store.expired().await.unwrap();
    assert_eq!(over.iter().map(|r| &r.id).collect::<Vec<_>>(), [&denied]);
    time.pass(40_000);
    for run in store.expired().await.unwrap() {
        store.command(&run.id, Command::Expire(run.options.on_expiry), None, None, None).await.unwrap();
    }
    assert_eq!(state(store, &denied.0).await, RunState::Canceled);
    assert!(kinds(store, &denied).await.ends_with(&["run.expired".into(), "run.canceled".into()]));
    let run = store.run(&denied).await.unwrap().unwrap();
    assert_eq!(run.expired_ms(), Some(run.since_ms - 40_000), "the deadline, not the time it was noticed");
    let error = run.error.unwrap();
    assert_eq!(error["code"], "expired", "the run records why it was canceled");
    let late = store.command(&denied, decision(Verdict::Approve), None, None, None).await.unwrap_err();
    let message = error["message"].as_str().unwrap();
    let expired = "expired at 1970-01-01 01:01:00 UTC";
    assert!(message.starts_with(expired), "{message}");
    assert!(late.to_string().contains(&format!("; {expired}; available commands: ")), "{late}");
    let run = store.run(&failed).await.unwrap().unwrap();
    assert_eq!((run.state, run.expires_ms), (RunState::Failed, None));
    assert_eq!(run.error.unwrap()["code"], "expired");
    assert!(run.allowed.contains(&CommandName::Resume));
    assert_eq!(state(store, &patient.0).await, RunState::WaitingForHuman);
    assert!(store.expired().await.unwrap().is_empty(), "each expires once");
}

pub async fn expired_wait_for_a_signal_names_it(store: &dyn Store, time: &Time) {
    let texts = [
        (Expiry::Deny, "expired at 1970-01-01 01:01:00 UTC without the signal go and was canceled"),
        (Expiry::Fail, "expired after 60 s without the signal go; resume it to wait again"),
    ];
    let mut runs = Vec::new();
    for (n, (expiry, _)) in (1..).zip(&texts) {
        store.launch(expiring(n, 60, *expiry)).await.unwrap();
        let claim = claimed(store, "w1").await;
        let gate = Gate::Signal { step: "two".into(), name: "go".into() };
        step_one(store, &claim, WorkerReport::Wait(gate)).await;
        runs.push(claim.run.id);
    }
    time.pass(60_000);
    for (run, (_, text)) in runs.iter().zip(texts) {
        let error = store.run(run).await.unwrap().unwrap().error.unwrap();
        assert_eq!(error["message"], text);
    }
}

pub async fn wait_of_any_length_is_stored(store: &dyn Store, time: &Time) {
    let waits = [
        (3_153_600_000, Some(3_153_600_000_000)),
        // Their ends have no date.
        (9_223_372_036_854_775, None),
        (u64::MAX, None),
    ];
    for (n, (seconds, wait)) in (1..).zip(waits) {
        let run = wait_at_gate(store, expiring(n, seconds, Expiry::Deny)).await;
        let stored = store.run(&run).await.unwrap().unwrap();
        assert_eq!(stored.expires_ms, wait.map(|wait| stored.since_ms + wait), "{seconds}");
        time.pass(60_000);
        assert_eq!(store.runs(RunFilter::default()).await.unwrap().runs.len(), n as usize, "{seconds}");
        assert_eq!(state(store, &run.0).await, RunState::WaitingForHuman, "{seconds}");
        let canceled = store.command(&run, Command::Cancel, None, None, None).await.unwrap();
        assert_eq!(canceled.run.state, RunState::Canceled, "{seconds}");
    }
}

pub async fn late_expiry_changes_nothing(store: &dyn Store, time: &Time) {
    let run = wait_at_gate(store, expiring(1, 60, Expiry::Deny)).await;
    time.pass(59_999);
    store.command(&run, decision(Verdict::Approve), None, None, None).await.unwrap();
    let claim = claimed(store, "w1").await;
    let gate = Gate::human("two", "d2", ApprovalReason::Confirmation);
    let wait = work(claim.fence, WorkerReport::Wait(gate));
    store.report(&run, wait, vec![], None, vec![], vec![]).await.unwrap();
    let late = store.command(&run, Command::Expire(Expiry::Deny), None, None, None).await;
    assert_eq!(late.unwrap_err(), StoreError::Refused(TransitionError::NotExpired));
    assert_eq!(state(store, &run.0).await, RunState::WaitingForHuman, "the new wait has its own time");
}

pub async fn due_wait_accepts_no_decision(store: &dyn Store, time: &Time) {
    let run = wait_at_gate(store, expiring(1, 60, Expiry::Deny)).await;
    time.pass(60_000);
    let newest = store.newest_event().await.unwrap();
    for verdict in [Verdict::Approve, Verdict::Deny] {
        let late = store.command(&run, decision(verdict), None, None, None).await.unwrap_err();
        let StoreError::Refused(TransitionError::Invalid { needed: Some(why), state, allowed, .. }) = &late
        else {
            panic!("{late:?}")
        };
        assert!(why.starts_with("expired at "), "{why}");
        assert_eq!(*state, RunState::Canceled, "refused as after its end");
        assert!(!allowed.contains(&CommandName::Approve), "{allowed:?}");
    }
    assert_eq!(store.newest_event().await.unwrap(), newest, "nothing is recorded by it");
    assert_eq!(store.decisions(&run).await.unwrap(), []);
}

pub async fn due_wait_is_returned_as_ended(store: &dyn Store, time: &Time) {
    let denied = wait_at_gate(store, expiring(1, 60, Expiry::Deny)).await;
    let failed = wait_at_gate(store, expiring(2, 60, Expiry::Fail)).await;
    let patient = wait_at_gate(store, launch(3)).await;
    let over = store.run(&denied).await.unwrap().unwrap().expires_ms;
    time.pass(70_000);
    let newest = store.newest_event().await.unwrap();
    let read = store.run(&denied).await.unwrap().unwrap();
    assert_eq!((read.state, read.gate.as_ref(), read.expires_ms), (RunState::Canceled, None, None));
    assert_eq!((read.expired_ms(), Some(read.since_ms)), (over, over));
    assert!(!read.allowed.contains(&CommandName::Approve), "{:?}", read.allowed);
    assert_eq!(store.run_snapshot(&denied).await.unwrap().unwrap().state, RunState::Canceled);
    let read = store.run(&failed).await.unwrap().unwrap();
    assert_eq!(
        (read.state, read.error.as_ref().unwrap()["code"].as_str()),
        (RunState::Failed, Some("expired"))
    );
    for (expected, found) in
        [(RunState::Canceled, &denied), (RunState::Failed, &failed), (RunState::WaitingForHuman, &patient)]
    {
        let filter = RunFilter { states: vec![expected], ..RunFilter::default() };
        let page = store.runs(filter).await.unwrap();
        let ids: Vec<(&RunId, RunState)> = page.runs.iter().map(|run| (&run.id, run.state)).collect();
        assert_eq!(ids, [(found, expected)]);
    }
    let mut all: Vec<RunId> = Vec::new();
    let mut filter = RunFilter { limit: 1, ..RunFilter::default() };
    loop {
        let page = store.runs(filter.clone()).await.unwrap();
        let counts: Vec<(RunState, u64)> = page.counts.into_iter().collect();
        assert_eq!(counts.len(), 3, "{counts:?}");
        assert!(counts.iter().all(|(_, runs)| *runs == 1), "{counts:?}");
        all.extend(page.runs.into_iter().map(|run| run.id));
        let Some(next) = page.next else { break };
        filter.cursor = Some(next);
    }
    assert_eq!(all, [patient, failed.clone(), denied.clone()], "each once, what waits first");
    assert_eq!(store.newest_event().await.unwrap(), newest, "reading records nothing");
    let resumed = store.command(&failed, Command::Resume, None, None, None).await.unwrap();
    assert_eq!((resumed.before, resumed.run.state), (RunState::Failed, RunState::Pending));
    assert_eq!(resumed.expired.unwrap().state, RunState::Failed, "what is carried out records the end first");
    assert!(kinds(store, &failed).await.ends_with(&[
        "run.expired".into(),
        "run.failed".into(),
        "run.resumed".into()
    ]));
    let computed = store.run(&denied).await.unwrap().unwrap();
    let recorded = store.command(&denied, Command::Expire(Expiry::Deny), None, None, None).await.unwrap().run;
    assert_eq!((recorded.state, recorded.error), (computed.state, computed.error));
    assert!(store.expired().await.unwrap().is_empty());
}

pub async fn changed_request_of_a_step_does_not_change_the_wait(store: &dyn Store, time: &Time) {
    let run = wait_at_gate(store, expiring(1, 60, Expiry::Deny)).await;
    let before = store.run(&run).await.unwrap().unwrap();
    let Some(Gate::Human { step, .. }) = before.gate.clone() else { panic!("no question is open") };
    time.pass(20_000);
    let why = ApprovalReason::Changed {
        what: "scripts/send.py changed".into(),
        now: std::collections::BTreeMap::from([("send".into(), "p2".into())]),
        call: Some("d1".into()),
        besides: None,
    };
    let new_gate = Gate::human(step, "d9", why);
    let updated = store.command(&run, Command::Ask(new_gate.clone()), None, None, None).await.unwrap().run;
    assert_eq!(
        (updated.gate.as_ref(), updated.expires_ms, updated.since_ms),
        (Some(&new_gate), before.expires_ms, before.since_ms)
    );
    let old = store.command(&run, decision(Verdict::Approve), None, None, None).await;
    assert!(matches!(old, Err(StoreError::Refused(TransitionError::DecisionConflict(_)))), "{old:?}");
    let elsewhere = Gate::human("other", "d9", ApprovalReason::Confirmation);
    assert!(store.command(&run, Command::Ask(elsewhere), None, None, None).await.is_err());
    let Gate::Human { step, inputs_digest, .. } = new_gate else { unreachable!() };
    let (verdict, choice, result) = (Verdict::Approve, None, None);
    let yes = Command::Decide(Decision { verdict, step, inputs_digest, choice, result });
    let after = store.command(&run, yes, None, None, None).await.unwrap().run;
    assert_eq!(after.options.pins.as_ref().unwrap()["send"], "p2", "what was approved is what runs");
    assert!(kinds(store, &run).await.contains(&"gate.changed".to_owned()));
    let events = store.events(Some(&run), 0, 100).await.unwrap();
    let approved = events.iter().find(|event| event.event.kind.as_str() == "gate.approved").unwrap();
    assert_eq!(approved.event.data["call"], "d1", "the approval covers the call");
}

pub async fn corrected_inputs_are_merged_and_recorded(store: &dyn Store, _: &Time) {
    store.launch(Launch { inputs: json!({"file": "a.csv", "n": 1}), ..launch(1) }).await.unwrap();
    let claim = claimed(store, "w1").await;
    let run = claim.run.id.clone();
    let error =
        StepRecord { status: StepStatus::Failed, result: json!({"code": "invalid_request"}), ..done("one") };
    store
        .report(&run, work(claim.fence, WorkerReport::Fail), vec![error], None, vec![], vec![])
        .await
        .unwrap();
    let wrong = store.command(&run, Command::Resume, None, None, Some(json!(["b.csv"]))).await;
    assert!(wrong.unwrap_err().to_string().contains("not an object"));
    assert_eq!(state(store, &run.0).await, RunState::Failed, "a wrong correction resumes nothing");
    let corrected = json!({"file": "b.csv"});
    let by = DecisionRecord { approver: Some("eve".into()), notes: None };
    let resumed = store.command(&run, Command::Resume, Some(by), None, Some(corrected.clone())).await;
    let back = resumed.unwrap().run;
    assert_eq!((back.state, back.inputs), (RunState::Pending, json!({"file": "b.csv", "n": 1})));
    assert_eq!((back.options.inputs_by, back.options.resumed_by), (vec!["eve".into()], Some("eve".into())));
    let events = store.events(Some(&run), 0, 100).await.unwrap();
    assert_eq!(events.last().unwrap().event.data["corrected_inputs"], corrected);
}

pub async fn commands_apply_to_the_state_that_was_reviewed(store: &dyn Store, time: &Time) {
    let expires = wait_at_gate(store, expiring(1, 60, Expiry::Fail)).await;
    time.pass(70_000);
    let reviewed = Some(store.run(&expires).await.unwrap().unwrap().since_ms);
    store.command(&expires, Command::Expire(Expiry::Fail), None, None, None).await.unwrap();
    // The expiry was recorded after the deadline, which is what the caller has seen.
    store.command_if(&expires, reviewed, Command::Resume, None, None, None).await.unwrap();
    let fail = |fence| work(fence, WorkerReport::Fail);
    let claim = claimed(store, "w1").await;
    time.pass(10);
    store.report(&expires, fail(claim.fence), vec![], None, vec![], vec![]).await.unwrap();
    let refused = store.command_if(&expires, reviewed, Command::Resume, None, None, None).await.unwrap_err();
    assert!(matches!(refused, StoreError::PreconditionFailed { .. }), "{refused}");
    let refused = store.fork_if(&expires, reviewed, None, RunId("fork".into()), true, None).await;
    assert!(matches!(refused, Err(StoreError::PreconditionFailed { .. })), "{refused:?}");
    let now = Some(store.run(&expires).await.unwrap().unwrap().since_ms);
    let fork = store.fork_if(&expires, now, None, RunId("fork".into()), true, None).await.unwrap();
    store.command_if(&expires, now, Command::Resume, None, None, None).await.unwrap();

    // A run that is resumed and paused again before it is executed is pending all the time.
    time.pass(10);
    store.command(&fork.id, Command::Resume, None, None, Some(json!({"to": "eve"}))).await.unwrap();
    time.pass(10);
    let paused = store.command(&fork.id, Command::Pause, None, None, None).await.unwrap().run;
    assert!(paused.paused && paused.since_ms > fork.since_ms, "{paused:?}");
    let reviewed = Some(fork.since_ms);
    let refused = store.command_if(&fork.id, reviewed, Command::Resume, None, None, None).await.unwrap_err();
    assert!(matches!(refused, StoreError::PreconditionFailed { .. }), "{refused}");
}

pub async fn corrections_of_inputs_are_limited(store: &dyn Store, _: &Time) {
    store.launch(Launch { inputs: json!({"text": ""}), ..launch(1) }).await.unwrap();
    let large = json!({"text": "x".repeat(1_900_000)});
    for n in 0..5 {
        let claim = claimed(store, "w1").await;
        let run = &claim.run.id;
        let report = work(claim.fence, WorkerReport::Fail);
        store.report(run, report, vec![], None, vec![], vec![]).await.unwrap();
        let resumed = store.command(run, Command::Resume, None, None, Some(large.clone())).await;
        if n < 4 {
            resumed.unwrap();
        } else {
            let refused = resumed.unwrap_err().to_string();
            assert!(refused.contains("the history of the corrected inputs"), "{refused}");
            store.command(run, Command::Resume, None, None, None).await.unwrap();
        }
    }
}

pub async fn decisions_and_descendants_are_kept(store: &dyn Store, time: &Time) {
    let run = waiting(store, 1).await;
    let by = DecisionRecord { approver: Some("kim".into()), notes: Some("seen".into()) };
    time.pass(5);
    store.command(&run, decision(Verdict::Deny), Some(by.clone()), None, None).await.unwrap();
    let decisions = store.decisions(&run).await.unwrap();
    assert_eq!(decisions.len(), 1);
    assert_eq!((decisions[0].by.clone(), decisions[0].decision.verdict), (by, Verdict::Deny));
    assert_eq!(decisions[0].at_ms, store.run(&run).await.unwrap().unwrap().since_ms);
    assert!(kinds(store, &run).await.ends_with(&["gate.denied".into(), "run.canceled".into()]));
    for name in ["later", "latest"] {
        store.fork(&run, None, RunId(name.into()), name == "latest", None).await.unwrap();
    }
    let children: Vec<String> = store.descendants(&run).await.unwrap().into_iter().map(|r| r.0).collect();
    assert_eq!(children, ["later", "latest"]);
    assert!(store.descendants(&RunId("later".into())).await.unwrap().is_empty());
}

pub async fn a_contract_is_found_by_its_digest(store: &dyn Store, _: &Time) {
    store.launch(launch(1)).await.unwrap();
    assert_eq!(store.contract(&launch(1).contract_digest).await.unwrap().unwrap()["id"], "demo.two");
    assert_eq!(store.contract("decaf").await.unwrap(), None);
}

pub async fn progress_counts_the_contracts_own_steps(store: &dyn Store, _: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    let inner = ["one[0]", "one[1]", "one", "two~gate:check", "two/render"];
    let steps = inner.iter().map(|step| done(step)).collect();
    let through = Some(checkpoint(1, &inner));
    let command = work(claim.fence, WorkerReport::Checkpoint);
    let run = store.report(&claim.run.id, command, steps, through, vec![], vec![]).await.unwrap();
    assert_eq!(run.progress, (1, 2));
    let fork = store.fork(&claim.run.id, None, RunId("fork".into()), true, None).await.unwrap();
    assert_eq!(fork.progress, (1, 2));
}

pub async fn failure_without_a_step_has_a_reason(store: &dyn Store, _: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    let why = json!({"code": "invalid_configuration", "message": "the plan cannot be read"});
    let event = NewEvent { kind: "run.failed".into(), step: None, data: why.clone() };
    let command = work(claim.fence, WorkerReport::Fail);
    let run = store.report(&claim.run.id, command, vec![], None, vec![], vec![event]).await.unwrap();
    assert_eq!((run.state, run.error), (RunState::Failed, Some(why)));
    assert_eq!(kinds(store, &run.id).await, ["run.created", "run.claimed", "run.failed"]);
}

pub async fn following_starts_at_the_newest_event(store: &dyn Store, _: &Time) {
    assert_eq!(store.newest_event().await.unwrap(), 0);
    store.launch(launch(1)).await.unwrap();
    let newest = store.newest_event().await.unwrap();
    assert!(store.events(None, newest, 10).await.unwrap().is_empty());
    let (waited, launched) = futures::join!(store.wait(newest, 60_000), store.launch(launch(2)));
    waited.unwrap();
    launched.unwrap();
    assert_eq!(store.events(None, newest, 10).await.unwrap().len(), 1);
}

pub async fn ended_runs_are_purged_completely(store: &dyn Store, time: &Time) {
    store.launch(keyed(1, "k", "p")).await.unwrap();
    let old = claimed(store, "w1").await;
    step_one(store, &old, WorkerReport::Complete).await;
    let active = waiting(store, 2).await;
    time.pass(1000);
    let before = store.run(&old.run.id).await.unwrap().unwrap().since_ms + 1;
    store.launch(launch(3)).await.unwrap();
    let young = claimed(store, "w1").await;
    step_one(store, &young, WorkerReport::Complete).await;
    assert_eq!(store.purge(before).await.unwrap(), 1);
    assert!(store.run(&old.run.id).await.unwrap().is_none());
    assert!(store.steps(&old.run.id, u64::MAX).await.unwrap().is_empty());
    assert!(store.checkpoints(&old.run.id, None, 1000).await.unwrap().is_empty());
    assert!(store.events(Some(&old.run.id), 0, 10).await.unwrap().is_empty());
    assert_eq!(state(store, &active.0).await, RunState::WaitingForHuman, "an active run is never purged");
    assert_eq!(state(store, &young.run.id.0).await, RunState::Completed);
    assert!(store.contract(&launch(1).contract_digest).await.unwrap().is_some(), "others still run it");
    let new_gate = store.launch(keyed(4, "k", "q")).await.unwrap();
    assert_eq!(new_gate.idempotency, IdempotencyOutcome::Created, "its key went with it");
}

pub async fn workers_with_heartbeats_are_active(store: &dyn Store, time: &Time) {
    store.heartbeat(&worker("a")).await.unwrap();
    time.pass(20_000);
    store.heartbeat(&worker("b")).await.unwrap();
    assert_eq!(store.live_workers(30_000).await.unwrap(), [worker("a"), worker("b")]);
    time.pass(20_000);
    assert_eq!(store.live_workers(30_000).await.unwrap(), [worker("b")]);
    store.heartbeat(&worker("a")).await.unwrap();
    store.deregister_worker(&worker("b")).await.unwrap();
    assert_eq!(store.live_workers(30_000).await.unwrap(), [worker("a")]);
}

pub async fn runs_of_a_dead_worker_are_claimable_immediately(store: &dyn Store, _: &Time) {
    for n in 0..3 {
        store.launch(launch(n)).await.unwrap();
    }
    claimed(store, "dead").await;
    claimed(store, "dead").await;
    let other = claimed(store, "alive").await;
    assert_eq!(store.leaseholders().await.unwrap(), [worker("alive"), worker("dead")]);
    assert_eq!(store.expire_leases(&worker("dead")).await.unwrap(), 2);
    assert_eq!(store.expire_leases(&worker("dead")).await.unwrap(), 0, "each run is abandoned once");
    assert_eq!(store.leaseholders().await.unwrap(), [worker("alive")]);
    let heir = claimed(store, "heir").await;
    assert_eq!((heir.run.id.0.as_str(), heir.fence), ("run-0000", 2));
    let taken = store.events(Some(&heir.run.id), 0, 10).await.unwrap();
    let data = &taken.last().unwrap().event.data;
    assert_eq!(data["takeover"], true);
    assert_eq!((&data["taken_over_from"], &data["attempt"]), (&json!("dead"), &json!(2)), "{data}");
    assert!(data["fence"].as_u64() > Some(1), "{data}");
    claimed(store, "heir").await;
    assert!(store.claim(&worker("heir"), LEASE, None).await.unwrap().is_none());
    store.renew(&other.run.id, other.fence, LEASE).await.unwrap();
}

pub async fn due_runs_are_returned(store: &dyn Store, time: &Time) {
    assert_eq!(store.due().await.unwrap(), Due::default());
    store.launch(expiring(1, 60, Expiry::Deny)).await.unwrap();
    assert_eq!(store.due().await.unwrap(), Due { claimable: true, expired: false });
    let claim = claimed(store, "w1").await;
    assert_eq!(store.due().await.unwrap(), Due::default());
    time.pass(30_001);
    assert!(store.due().await.unwrap().claimable, "its lease ran out");
    store.renew(&claim.run.id, claim.fence, LEASE).await.unwrap();
    step_one(store, &claim, WorkerReport::Wait(human())).await;
    assert_eq!(store.due().await.unwrap(), Due::default());
    time.pass(60_001);
    assert_eq!(store.due().await.unwrap(), Due { claimable: false, expired: true });
    store.fork(&claim.run.id, None, RunId("fork".into()), true, None).await.unwrap();
    assert!(!store.due().await.unwrap().claimable, "a paused run is not claimable");
}

pub async fn purge_deletes_recorded_data_and_keeps_results(store: &dyn Store, time: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    let run = claim.run.id.clone();
    let line = NewEvent { kind: "step.log".into(), step: None, data: json!({"text": "secret"}) };
    store.append(&run, claim.fence, 1, vec![line]).await.unwrap();
    let step = StepRecord { inputs: json!({"secret": 1}), ..done("one") };
    let command = work(claim.fence, WorkerReport::Complete);
    store.report(&run, command, vec![step], Some(checkpoint(1, &["one"])), vec![], vec![]).await.unwrap();
    let going_on = waiting(store, 2).await;
    time.pass(1);
    assert_eq!(store.prune(i64::MAX).await.unwrap(), 1);
    assert_eq!(store.prune(i64::MAX).await.unwrap(), 0, "once");
    let steps = store.steps(&run, u64::MAX).await.unwrap();
    assert_eq!((&steps[0].inputs, &steps[0].result), (&json!(null), &json!({"ok": "one"})));
    let events = serde_json::to_string(&store.events(Some(&run), 0, 100).await.unwrap()).unwrap();
    assert!(!events.contains("secret"), "{events}");
    assert_eq!(
        store.steps(&going_on, u64::MAX).await.unwrap()[0].inputs,
        json!({}),
        "an active run keeps everything"
    );
}

pub async fn cancel_invalidates_the_fencing_token(store: &dyn Store, _: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    let run = store.command(&claim.run.id, Command::Cancel, None, None, None).await.unwrap().run;
    assert_eq!((run.state, run.fence), (RunState::Canceled, claim.fence + 1));
    assert!(
        store.renew(&run.id, claim.fence, LEASE).await.is_err(),
        "the worker learns it at its next renewal"
    );
    let again = store.command(&run.id, Command::Cancel, None, None, None).await.unwrap().run;
    assert_eq!(again, run);
}
