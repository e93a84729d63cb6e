//! Checks of stored runs: resuming, branching, events, lists.

use super::*;

pub async fn a_failed_run_resumes_from_an_earlier_checkpoint(store: &dyn Store, _: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    let run = claim.run.id.clone();
    step_one(store, &claim, WorkerReport::Checkpoint).await;
    let approved = StepIntent { repeatable: true, ..intent("approved") };
    for (batch, step) in (2..).zip([intent("lost"), approved]) {
        store.record_intent(&run, claim.fence, batch, step).await.unwrap();
    }
    let error = json!({"code": "upstream_failure", "message": "502"});
    let failed = StepRecord { status: StepStatus::Failed, result: error.clone(), ..done("two") };
    let end = store
        .report(&run, work(claim.fence, WorkerReport::Fail), vec![failed], None, vec![], vec![])
        .await
        .unwrap();
    assert_eq!((end.state, end.error), (RunState::Failed, Some(error)));
    assert!(matches!(
        store.command(&run, Command::Resume, None, Some(9), None).await,
        Err(StoreError::NoCheckpoint { checkpoint: 9, .. })
    ));
    for unknown in [i64::MAX.unsigned_abs(), i64::MAX.unsigned_abs() + 1, u64::MAX] {
        let found = store.checkpoint(&run, unknown).await;
        assert!(matches!(found, Err(StoreError::NoCheckpoint { .. })), "{found:?}");
        let resumed = store.command(&run, Command::Resume, None, Some(unknown), None).await;
        assert!(matches!(resumed, Err(StoreError::NoCheckpoint { .. })), "{resumed:?}");
        let forked = store.fork(&run, Some(unknown), RunId(format!("at-{unknown}")), true, None).await;
        assert!(matches!(forked, Err(StoreError::NoCheckpoint { .. })), "{forked:?}");
    }
    let back = store.command(&run, Command::Resume, None, Some(0), None).await.unwrap().run;
    assert_eq!((back.state, back.head, back.progress.0, back.error), (RunState::Pending, 0, 0, None));
    assert!(store.steps(&run, u64::MAX).await.unwrap().is_empty(), "steps behind the head run again");
    let resumed = store.events(Some(&run), 0, 100).await.unwrap().pop().unwrap().event.data;
    assert_eq!((&resumed["checkpoint"], &resumed["head_before"]), (&json!(0), &json!(1)));
    let claim = claimed(store, "w2").await;
    assert_eq!(claim.checkpoint.number, 0);
    assert_eq!(claim.unfinished, [intent("lost")], "what may be repeated is approved again");
}

pub async fn forks_are_paused_and_have_their_own_checkpoints(store: &dyn Store, _: &Time) {
    let source = waiting(store, 1).await;
    let fork = store.fork(&source, Some(1), RunId("fork".into()), true, None).await.unwrap();
    assert_eq!((fork.state, fork.paused, fork.head), (RunState::Pending, true, 1));
    assert_eq!(fork.source, Some((source.clone(), 1)));
    assert!(
        store.claim(&worker("w1"), LEASE, None).await.unwrap().is_none(),
        "a fork executes nothing by itself"
    );
    store.command(&fork.id, Command::Resume, None, None, None).await.unwrap();
    let claim = claimed(store, "w1").await;
    assert_eq!((claim.run.id.0.as_str(), claim.run.state), ("fork", RunState::Replaying));
    assert_eq!(store.steps(&fork.id, u64::MAX).await.unwrap(), store.steps(&source, u64::MAX).await.unwrap());
    let report = work(claim.fence, WorkerReport::Complete);
    let end = checkpoint(2, &["one", "two"]);
    store.report(&fork.id, report, vec![done("two")], Some(end), vec![], vec![]).await.unwrap();
    assert_eq!(store.checkpoints(&source, None, 1000).await.unwrap().len(), 2, "the source keeps its own");
    assert_eq!(state(store, &source.0).await, RunState::WaitingForHuman);
    let none = store.fork(&source, Some(7), RunId("lost".into()), false, None).await.unwrap_err();
    assert!(matches!(none, StoreError::NoCheckpoint { checkpoint: 7, .. }));
    assert!(store.run(&RunId("lost".into())).await.unwrap().is_none());
}

/// The state of a run after `number` iterations: a list that grows, a text that is replaced, a table that stays.
fn grown(number: u64) -> Checkpoint {
    let through = 0..number;
    let table: Vec<String> = (0..100).map(|row| format!("row {row} of a table that never changes")).collect();
    Checkpoint {
        number,
        done: through.clone().map(|i| format!("each[{i}]")).collect(),
        state: json!({"vars": {"found": through.collect::<Vec<_>>(), "table": table, "last": format!("item {number}")}}),
        at_ms: 0,
    }
}

async fn iterate(store: &dyn Store, claim: &Claimed, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        let step = done(&format!("each[{}]", number - 1));
        let command = work(claim.fence, WorkerReport::Checkpoint);
        let checkpoint = Some(grown(number));
        store.report(&claim.run.id, command, vec![step], checkpoint, vec![], vec![]).await.unwrap();
    }
}

pub async fn checkpoints_of_a_long_run_are_stored_as_differences(store: &dyn Store, time: &Time) {
    const END: u64 = 600;
    let same = |stored: Checkpoint, number: u64| {
        let expected = grown(number);
        assert_eq!((stored.number, &stored.done, &stored.state), (number, &expected.done, &expected.state));
    };
    store.launch(launch(1)).await.unwrap();
    let first = claimed(store, "w1").await;
    let run = first.run.id.clone();
    iterate(store, &first, 1..=300).await;
    time.pass(LEASE.cast_signed() + 1);
    let heir = claimed(store, "w2").await;
    same(heir.checkpoint.clone(), 300);
    iterate(store, &heir, 301..=END).await;
    for number in [1, 2, 299, 300, 301, 599, END] {
        same(store.checkpoint(&run, number).await.unwrap(), number);
    }
    let all = all_checkpoints(store, &run).await;
    assert_eq!(all.len() as u64, END + 1);
    for stored in all.into_iter().skip(1) {
        let number = stored.number;
        same(stored, number);
    }
    let missing = store.checkpoint(&run, END + 1).await.unwrap_err();
    assert!(matches!(missing, StoreError::NoCheckpoint { checkpoint, .. } if checkpoint == END + 1));
    let health = store.check().await.unwrap();
    assert!(health.is_sound(), "{health:?}");
    assert!(health.bytes < 2_000_000, "{} bytes for {END} iterations", health.bytes);
    let fork = store.fork(&run, Some(450), RunId("fork".into()), false, None).await.unwrap();
    assert_eq!(all_checkpoints(store, &fork.id).await.len(), 451);
    store.command(&run, Command::Cancel, None, None, None).await.unwrap();
    let claim = claimed(store, "w3").await;
    same(claim.checkpoint.clone(), 450);
    iterate(store, &claim, 451..=455).await;
    same(store.checkpoint(&fork.id, 455).await.unwrap(), 455);
    same(store.checkpoint(&run, 455).await.unwrap(), 455);
    let failed = StepRecord { status: StepStatus::Failed, ..done("each[455]") };
    let report = work(claim.fence, WorkerReport::Fail);
    store.report(&fork.id, report, vec![failed], None, vec![], vec![]).await.unwrap();
    store.command(&fork.id, Command::Resume, None, Some(20), None).await.unwrap();
    let claim = claimed(store, "w4").await;
    same(claim.checkpoint.clone(), 20);
    let step = done("each[20]");
    let command = work(claim.fence, WorkerReport::Checkpoint);
    let after = store.report(&fork.id, command, vec![step], Some(grown(21)), vec![], vec![]).await.unwrap();
    assert_eq!(after.head, 456, "later checkpoints stay, and numbers continue after them");
    let stored = store.checkpoint(&fork.id, 456).await.unwrap();
    same(Checkpoint { number: 21, ..stored }, 21);
    same(store.checkpoint(&fork.id, 455).await.unwrap(), 455);
}

pub async fn checkpoints_are_read_by_page(store: &dyn Store, _: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    let run = &claim.run.id;
    iterate(store, &claim, 1..=60).await;
    let numbers = async |before, limit| -> Vec<u64> {
        store.checkpoints(run, before, limit).await.unwrap().iter().map(|stored| stored.number).collect()
    };
    assert_eq!(numbers(None, 3).await, [58, 59, 60]);
    assert_eq!(numbers(Some(58), 2).await, [56, 57]);
    assert_eq!(numbers(Some(2), 10).await, [0, 1]);
    assert!(numbers(Some(0), 10).await.is_empty());
    for stored in store.checkpoints(run, Some(45), 20).await.unwrap() {
        let expected = grown(stored.number);
        assert_eq!((stored.done, stored.state), (expected.done, expected.state));
    }
    // Three of these do not fit in a page together.
    let large = |number: u64| Checkpoint {
        state: json!({"vars": {"text": "x".repeat(6 << 20), "number": number}}),
        ..grown(number)
    };
    for number in 61..=66 {
        let command = work(claim.fence, WorkerReport::Checkpoint);
        let step = done(&format!("each[{}]", number - 1));
        store.report(run, command, vec![step], Some(large(number)), vec![], vec![]).await.unwrap();
    }
    assert_eq!(numbers(None, 1000).await, [65, 66]);
    assert_eq!(numbers(Some(65), 1000).await, [63, 64]);
    assert_eq!(numbers(Some(61), 1000).await.len(), 61);
    let number = 67;
    let huge = Checkpoint { state: json!({"vars": {"text": "x".repeat(17 << 20)}}), ..grown(number) };
    let command = work(claim.fence, WorkerReport::Checkpoint);
    store.report(run, command, vec![done("huge")], Some(huge), vec![], vec![]).await.unwrap();
    assert_eq!(numbers(None, 1000).await, [67], "at least one");
    assert_eq!(numbers(Some(67), 1000).await, [65, 66]);
}

pub async fn large_results_of_steps_are_omitted_on_request(store: &dyn Store, _: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    let run = &claim.run.id;
    let large = |step: &str| StepRecord { result: json!("x".repeat(100_000)), ..done(step) };
    let mut steps = vec![large("one"), large("two"), done("short")];
    steps.push(StepRecord { status: StepStatus::Failed, ..large("failed") });
    let report = work(claim.fence, WorkerReport::Checkpoint);
    store.report(run, report, steps.clone(), Some(grown(1)), vec![], vec![]).await.unwrap();
    assert_eq!(store.steps(run, u64::MAX).await.unwrap(), steps);
    let read = store.steps(run, 150_000).await.unwrap();
    assert_eq!(read[0], steps[0]);
    assert_eq!(
        (&read[1].step, &read[1].result, &read[1].inputs),
        (&"two".to_owned(), &json!(null), &json!(null))
    );
    assert!(read[1].omitted_bytes.is_some_and(|bytes| bytes > 100_000), "{:?}", read[1].omitted_bytes);
    assert_eq!(read[2..], steps[2..], "short and failed ones are complete");
}

pub async fn events_are_numbered_without_gaps(store: &dyn Store, _: &Time) {
    for n in 0..5 {
        store.launch(launch(n)).await.unwrap();
        let claim = claimed(store, "w1").await;
        step_one(store, &claim, WorkerReport::Checkpoint).await;
        store.command(&claim.run.id, Command::Cancel, None, None, None).await.unwrap();
    }
    let run = RunId("run-0002".into());
    let events = store.events(Some(&run), 0, 100).await.unwrap();
    let numbers: Vec<u64> = events.iter().map(|e| e.number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let kinds: Vec<&str> = events.iter().map(|e| e.event.kind.as_str()).collect();
    assert_eq!(kinds, ["run.created", "run.claimed", "step.started", "step.completed", "run.canceled"]);
    assert_eq!(store.events(Some(&run), 3, 1).await.unwrap()[0].number, 4);
    let all = store.events(None, 0, 1000).await.unwrap();
    assert_eq!(all.len(), 25);
    assert!(all.is_sorted_by_key(|e| e.global));
    store.wait(0, 60_000).await.unwrap();
}

pub async fn waiting_runs_are_listed_first_and_pages_join(store: &dyn Store, time: &Time) {
    for n in 0..30 {
        if n % 10 == 3 {
            waiting(store, n).await;
        } else {
            store.launch(launch(n)).await.unwrap();
            let claim = claimed(store, "w1").await;
            step_one(store, &claim, WorkerReport::Complete).await;
        }
        time.pass(1000);
    }
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.runs(RunFilter { cursor, limit: 7, ..RunFilter::default() }).await.unwrap();
        assert_eq!(page.counts[&RunState::WaitingForHuman], 3);
        all.extend(page.runs);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let ids: Vec<&str> = all.iter().map(|r| r.id.0.as_str()).collect();
    assert_eq!(ids.len(), 30);
    assert_eq!(&ids[..5], ["run-0003", "run-0013", "run-0023", "run-0029", "run-0028"]);
    let filter = RunFilter {
        skill_id: Some("skill-1".into()),
        states: vec![RunState::Completed],
        ..RunFilter::default()
    };
    assert!(store.runs(filter).await.unwrap().runs.iter().all(|r| r.skill_id == "skill-1"));
    let text = RunFilter { text: Some("0017".into()), ..RunFilter::default() };
    assert_eq!(store.runs(text).await.unwrap().runs.len(), 1);
    let bad = RunFilter { cursor: Some("x".into()), ..RunFilter::default() };
    assert!(store.runs(bad).await.unwrap_err().to_string().contains("invalid cursor"));
}

pub async fn filters_select_what_they_describe(store: &dyn Store, time: &Time) {
    let regions = ["eu-west", "eu_north", "us%east", "50 \"quoted\""];
    for n in 0..24_u32 {
        let region = regions[n as usize % regions.len()];
        let inputs = json!({
            "region": region, "total": f64::from(n) / 2.0, "n": n, "dry": n % 2 == 0, "deep": {"name": format!("v{n}")},
        });
        let by = if n % 5 == 0 { "key:kim" } else { "Ana" };
        let target = (n % 4 == 0).then(|| json!({
            "type": "artifact", "ref": "report.md", "content": {"error": {"code": "x", "detail": "http://10.0.0.8"}},
        }));
        let launch = Launch { inputs, target, started_by: by.into(), ..launch(n) };
        store.launch(launch).await.unwrap();
        if n % 3 != 2 {
            let claim = claimed(store, "w1").await;
            let mut error = json!({"code": "upstream_failure", "message": "Bad gateway 50%"});
            if n % 12 == 1 {
                error["detail"] = json!("POST http://10.0.0.7 answered 502");
                error["binding"] = json!("mail");
            }
            match n % 6 {
                0 => step_one(store, &claim, WorkerReport::Complete).await,
                1 => {
                    let failed = StepRecord { status: StepStatus::Failed, result: error, ..done("one") };
                    let report = work(claim.fence, WorkerReport::Fail);
                    store.report(&claim.run.id, report, vec![failed], None, vec![], vec![]).await.unwrap();
                }
                3 if n < 12 => {
                    let why = [ApprovalReason::UnknownOutcome, ApprovalReason::Confirmation];
                    let gate = Gate::human("two", "d", why[usize::from(n > 3)].clone());
                    step_one(store, &claim, WorkerReport::Wait(gate)).await;
                }
                _ => {}
            }
        }
        time.pass(60_000);
    }
    let now_ms = time.clock()();
    let all = store.runs(RunFilter { limit: 100, ..RunFilter::default() }).await.unwrap().runs;
    assert_eq!(all.len(), 24);
    let mut never = Vec::new();
    for text in [
        "state:failed",
        "state:open",
        "state:unknown",
        "-state:unknown",
        "state:waiting -state:unknown",
        "state:failed,unknown",
        "-state:completed,failed",
        "state:ended skill:skill-1",
        "skill:SKILL*",
        "skill:*-2",
        "-skill:skill-0",
        "step:on*",
        "-step:one",
        "id:001",
        "by:KIM",
        "-by:kim",
        "trace:trace-1",
        "error:gateway",
        "error:\"upstream failure\"",
        "error:\"bad gateway 50%\"",
        "-error:gateway",
        "detail:10.0.0.7",
        "-detail:10.0.0.7",
        "error:10.0.0.7",
        "10.0.0.7",
        "target:report.md",
        "-target:report",
        "target:10.0.0.8",
        "input.region:eu*",
        "input.region:eu_north",
        "input.region:us%east",
        "-input.region:*west",
        "input.dry:true",
        "input.n:7",
        "input.total:>3.5",
        "input.total:<3",
        "-input.total:>3.5",
        "input.deep.name:v1*",
        "input.none:*",
        "-input.none:*",
        "age:>10m",
        "age:<600s",
        "since:>15m",
        "eu_",
        "50%",
        "gateway",
        "\"quoted\\\"\"",
        "-gateway input.n:<10",
        "trace-12",
        "state:failed age:>5m input.region:eu* error:bad",
        "input.n:>3 -input.n:>5",
    ] {
        let query = RunQuery::parse(text).unwrap();
        let filter = RunFilter { r#where: Some(text.to_owned()), limit: 100, ..RunFilter::default() };
        let page = store.runs(filter).await.unwrap();
        let mut found: Vec<&str> = page.runs.iter().map(|run| run.id.0.as_str()).collect();
        let mut expected: Vec<&str> =
            all.iter().filter(|run| query.matches(run, now_ms)).map(|run| run.id.0.as_str()).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{text}");
        if found.is_empty() || found.len() == all.len() {
            never.push(text);
        }
    }
    assert_eq!(
        never,
        [
            "skill:SKILL*",
            "step:on*",
            "-step:one",
            "error:10.0.0.7",
            "10.0.0.7",
            "target:10.0.0.8",
            "input.none:*",
            "-input.none:*"
        ],
        "each other filter tells runs apart"
    );
    let paged =
        RunFilter { r#where: Some("input.dry:true -state:waiting".into()), limit: 5, ..RunFilter::default() };
    let first = store.runs(paged.clone()).await.unwrap();
    let second = store.runs(RunFilter { cursor: first.next.clone(), ..paged }).await.unwrap();
    let both: Vec<_> =
        first.runs.iter().chain(&second.runs).map(|run| run.inputs["n"].as_u64().unwrap()).collect();
    // Which runs wait depends on the order of the claims above.
    let query = RunQuery::parse("input.dry:true -state:waiting").unwrap();
    let matching = all.iter().filter(|run| query.matches(run, now_ms));
    let mut newest: Vec<_> = matching.map(|run| run.inputs["n"].as_u64().unwrap()).collect();
    newest.sort_unstable_by(|a, b| b.cmp(a));
    newest.truncate(10);
    assert_eq!(both, newest, "newest first");
    let wrong = RunFilter { r#where: Some("stat:failed".into()), ..RunFilter::default() };
    let error = store.runs(wrong).await.unwrap_err().to_string();
    assert!(error.contains("did you mean `state`?"), "{error}");
}

pub async fn list_is_complete_while_runs_change(store: &dyn Store, _: &Time) {
    const RUNS: u32 = 60;
    for n in 1..=RUNS {
        waiting(store, n).await;
    }
    let moving = std::cell::Cell::new(true);
    let approve = async {
        for n in 1..=RUNS {
            let run = RunId(format!("run-{n:04}"));
            store.command(&run, decision(Verdict::Approve), None, None, None).await.unwrap();
        }
        moving.set(false);
    };
    let list = async {
        while moving.get() {
            let page = store.runs(RunFilter { limit: 100, ..Default::default() }).await.unwrap();
            assert_eq!(page.counts.values().sum::<u64>(), u64::from(RUNS), "no run is between two states");
        }
    };
    futures::join!(approve, list);
}

pub async fn long_values_stay_out_of_lists(store: &dyn Store, _: &Time) {
    let long = "x".repeat(5000);
    let target = json!({"type": "output", "ref": "r", "content": long});
    let launch = Launch { inputs: json!({"text": long}), target: Some(target.clone()), ..launch(1) };
    let begun = store.launch(launch).await.unwrap().run;
    let listed = store.runs(RunFilter::default()).await.unwrap().runs.remove(0);
    assert_eq!(store.listed_run(&begun.id).await.unwrap().as_ref(), Some(&listed));
    assert_eq!((listed.inputs, listed.target), (json!(null), Some(json!({"type": "output", "ref": "r"}))));
    // The content is the last member of a target; in rows of earlier versions others follow it.
    let (short, last) =
        (json!({"type": "output", "ref": "r", "effect_mode": "advise", "run": "r"}), "content");
    for first in [true, false] {
        let mut stored = if first { json!({ last: long, "effect_mode": "" }) } else { json!({}) };
        for (name, value) in short.as_object().unwrap() {
            stored[name] = value.clone();
        }
        stored[last] = json!(long);
        let begun = store
            .launch(Launch { target: Some(stored), ..super::launch(3 + u32::from(first)) })
            .await
            .unwrap()
            .run;
        assert_eq!(
            store.listed_run(&begun.id).await.unwrap().unwrap().target.as_ref(),
            Some(&short),
            "{first}"
        );
        store.command(&begun.id, Command::Cancel, None, None, None).await.unwrap();
    }
    let expected = store.run(&begun.id).await.unwrap().unwrap();
    assert_eq!((expected.inputs["text"].as_str(), expected.target), (Some(long.as_str()), Some(target)));
    store.launch(super::launch(2)).await.unwrap();
    let text = |text: &str| RunFilter { text: Some(text.into()), ..RunFilter::default() };
    assert_eq!(store.runs(text("RUN-0002")).await.unwrap().runs[0].inputs, json!({"n": 2}));
    for odd in ["%", "run_0001", "\\"] {
        assert!(store.runs(text(odd)).await.unwrap().runs.is_empty(), "{odd:?} is not a pattern");
    }
}

pub async fn commands_do_not_read_long_values(store: &dyn Store, _: &Time) {
    let long = json!({"text": "x".repeat(5000)});
    let launched = async |number: u32| {
        store.launch(Launch { inputs: long.clone(), ..launch(number) }).await.unwrap();
        claimed(store, "w1").await
    };
    let claim = launched(1).await;
    let completed = &claim.run.id;
    let end = Checkpoint { state: json!({"outputs": long}), ..checkpoint(1, &["one", "two"]) };
    let report = work(claim.fence, WorkerReport::Complete);
    store.report(completed, report, vec![], Some(end), vec![], vec![]).await.unwrap();
    let title = json!({"title": "Deploy"}).as_object().cloned().unwrap();
    let titled = store.annotate(completed, title, vec![], None).await.unwrap();
    assert_eq!(
        (titled.options.title.as_deref(), titled.inputs, titled.outputs),
        (Some("Deploy"), json!(null), None)
    );
    let stored = store.run(completed).await.unwrap().unwrap();
    assert_eq!(
        (stored.options.title.as_deref(), stored.inputs, stored.outputs),
        (Some("Deploy"), long.clone(), Some(long.clone()))
    );

    let claim = launched(2).await;
    let failed = &claim.run.id;
    let report = work(claim.fence, WorkerReport::Fail);
    store.report(failed, report, vec![], None, vec![], vec![]).await.unwrap();
    let corrected = Some(json!({"text": "y", "n": 2}));
    let resumed = store.command(failed, Command::Resume, None, None, corrected).await.unwrap().run;
    assert_eq!((resumed.state, resumed.inputs), (RunState::Pending, json!({"n": 2, "text": "y"})));
    let resumed = store.events(Some(failed), 0, 100).await.unwrap().pop().unwrap().event.data;
    assert_eq!(resumed["inputs_before"], json!({"n": null, "text": long["text"]}));
    let fork = store.fork(completed, None, RunId("fork".into()), true, None).await.unwrap();
    assert_eq!(fork.inputs, long);
    let canceled = store.command(&fork.id, Command::Cancel, None, None, None).await.unwrap().run;
    assert_eq!((canceled.state, canceled.inputs), (RunState::Canceled, json!(null)));
    assert_eq!(store.run(&fork.id).await.unwrap().unwrap().inputs, long);
}

pub async fn unknown_runs_are_named(store: &dyn Store, _: &Time) {
    let run = RunId("nowhere".into());
    assert!(store.run(&run).await.unwrap().is_none());
    assert!(store.listed_run(&run).await.unwrap().is_none());
    assert_eq!(store.newest_run_event(&run).await.unwrap(), 0);
    let launched = store.launch(super::launch(1)).await.unwrap().run;
    assert_eq!(store.newest_run_event(&launched.id).await.unwrap(), 1);
    let error = store.command(&run, Command::Cancel, None, None, None).await.unwrap_err();
    assert_eq!(error.to_string(), "run `nowhere` not found");
}
