//! Checks of shared data of a store: several approvals of one gate, annotations, documents, retention.

use super::*;

fn endorse(by: &str, need: u32) -> (Command, Option<DecisionRecord>) {
    let Command::Decide(decision) = decision(Verdict::Approve) else { unreachable!() };
    let record = DecisionRecord { approver: Some(by.into()), notes: None };
    (Command::Endorse { decision, by: by.into(), need }, Some(record))
}

/// An approval that was not enough decides nothing: only the person who made it repeats it, until the gate is denied.
pub async fn partial_approval_is_repeated_by_its_approver_only(store: &dyn Store, _: &Time) {
    let late = |by: &str| {
        let Command::Decide(approval) = decision(Verdict::Approve) else { unreachable!() };
        let record = DecisionRecord { approver: Some(by.into()), notes: None };
        (Command::RepeatDecision(approval), Some(record))
    };
    for end in [Command::Cancel, decision(Verdict::Deny)] {
        let run = waiting(store, if end == Command::Cancel { 1 } else { 2 }).await;
        let (command, by) = endorse("ana", 2);
        store.command(&run, command, by.clone(), None, None).await.unwrap();
        store.command(&run, end.clone(), by, None, None).await.unwrap();
        assert_eq!(state(store, &run.0).await, RunState::Canceled);
        let (command, by) = late("kim");
        let other = store.command(&run, command, by, None, None).await.unwrap_err();
        assert!(matches!(other, StoreError::AlreadyDecided { .. }), "{other:?}");
        let (command, by) = late("ana");
        let own = store.command(&run, command, by, None, None).await;
        match end {
            Command::Cancel => assert!(matches!(own.unwrap().effect, CommandEffect::Repeated(Some(_)))),
            _ => assert!(matches!(own.unwrap_err(), StoreError::AlreadyDecided { .. })),
        }
    }
}

pub async fn several_approvals_open_a_gate_together(store: &dyn Store, time: &Time) {
    let run = waiting(store, 1).await;
    let before = store.run(&run).await.unwrap().unwrap();
    time.pass(1_000);
    let (command, by) = endorse("ana", 2);
    let first = store.command(&run, command.clone(), by.clone(), None, None).await.unwrap();
    assert_eq!(first.effect, CommandEffect::Applied);
    assert_eq!((first.run.state, first.run.since_ms), (RunState::WaitingForHuman, before.since_ms));
    assert_eq!(first.run.approval_progress().as_deref(), Some("approved, 1 of 2"));
    let again = store.command(&run, command, by, None, None).await.unwrap();
    assert!(matches!(again.effect, CommandEffect::Repeated(_)), "{again:?}");
    assert!(store.claim(&worker("w2"), LEASE, None).await.unwrap().is_none(), "one of two decides nothing");
    let (kim, lee) = futures::join!(
        async {
            let (command, by) = endorse("kim", 2);
            store.command(&run, command, by, None, None).await
        },
        async {
            let (command, by) = endorse("lee", 2);
            store.command(&run, command, by, None, None).await
        },
    );
    assert!(kim.is_ok() && lee.is_ok(), "{kim:?} {lee:?}");
    assert_eq!(state(store, &run.0).await, RunState::Pending);
    let kinds: Vec<String> = store
        .events(Some(&run), 0, 100)
        .await
        .unwrap()
        .into_iter()
        .map(|event| event.event.kind.to_string())
        .filter(|kind| kind.starts_with("gate."))
        .collect();
    assert_eq!(kinds, ["gate.waiting", "gate.endorsed", "gate.approved"]);
    assert_eq!(store.decisions(&run).await.unwrap().len(), 2);
}

pub async fn a_denial_ends_a_gate_that_needs_several(store: &dyn Store, _: &Time) {
    let run = waiting(store, 1).await;
    let (command, by) = endorse("ana", 3);
    store.command(&run, command, by, None, None).await.unwrap();
    store.command(&run, decision(Verdict::Deny), None, None, None).await.unwrap();
    assert_eq!(state(store, &run.0).await, RunState::Canceled);
}

pub async fn annotations_are_merged_and_recorded(store: &dyn Store, _: &Time) {
    let options = RunOptions {
        labels: [("env".to_owned(), "prod".to_owned())].into(),
        title: Some("Deploy 5.4.0".into()),
        ..RunOptions::default()
    };
    store.launch(Launch { options, ..launch(1) }).await.unwrap();
    let run = RunId("run-0001".into());
    let fields = json!({"assigned": {"to": "kim", "by": "ana", "note": "registry is back", "at_ms": 7}});
    let event = NewEvent { kind: "run.assigned".into(), step: None, data: json!({"to": "kim"}) };
    let after = store.annotate(&run, fields.as_object().cloned().unwrap(), vec![event], None).await.unwrap();
    assert_eq!(after.options.assigned.as_ref().map(|assigned| assigned.to.as_str()), Some("kim"));
    assert_eq!((after.title(), after.state), (Some("Deploy 5.4.0"), RunState::Pending));
    assert_eq!(after.options.labels["env"], "prod");
    let events = store.events(Some(&run), 0, 10).await.unwrap();
    assert_eq!(events.last().map(|event| event.event.kind.to_string()).as_deref(), Some("run.assigned"));
    let other = json!({"assigned": {"to": "lee", "by": "bo", "at_ms": 8}});
    let conflict = store
        .annotate(
            &run,
            other.as_object().cloned().unwrap(),
            vec![],
            Some(Precondition::AssignedTo(String::new())),
        )
        .await;
    let assigned = after.options.assigned.clone();
    assert_eq!(conflict, Err(StoreError::AssignmentConflict { run: run.clone(), assigned }));
    let other = store
        .annotate(
            &run,
            other.as_object().cloned().unwrap(),
            vec![],
            Some(Precondition::AssignedTo("kim".into())),
        )
        .await;
    assert_eq!(other.unwrap().options.assigned.map(|assigned| assigned.to).as_deref(), Some("lee"));
    let cleared =
        store.annotate(&run, json!({"assigned": null}).as_object().cloned().unwrap(), vec![], None).await;
    assert_eq!(cleared.unwrap().options.assigned, None);
    let wrong = store.annotate(&run, json!({"labels": 1}).as_object().cloned().unwrap(), vec![], None).await;
    assert!(matches!(wrong, Err(StoreError::InvalidRequest(_))), "{wrong:?}");
    let gone = store.annotate(&RunId("gone".into()), serde_json::Map::new(), vec![], None).await;
    assert_eq!(gone, Err(StoreError::NoRun(RunId("gone".into()))));
}

pub async fn assignments_of_a_run_are_limited(store: &dyn Store, _: &Time) {
    let assign = async |run: &str, number: usize, by: &str| {
        let data = json!({"to": "kim", "by": by});
        let event = NewEvent { kind: "run.assigned".into(), step: None, data };
        let fields = json!({"assigned": {"to": "kim", "by": by, "at_ms": number}});
        store.annotate(&RunId(run.into()), fields.as_object().cloned().unwrap(), vec![event], None).await
    };
    for number in 1..=2 {
        store.launch(launch(number)).await.unwrap();
    }
    for number in 0..200 {
        assign("run-0001", number, "ana").await.unwrap();
    }
    let refused = assign("run-0001", 200, "ana").await;
    assert!(matches!(refused, Err(StoreError::InvalidRequest(_))), "{refused:?}");
    let run = store.run(&RunId("run-0001".into())).await.unwrap().unwrap();
    assert_eq!(run.options.assigned.unwrap().at_ms, 199);
    assign("run-0002", 0, "ana").await.unwrap();
    assign("run-0001", 200, "bo").await.expect("others are not affected");
    let title = json!({"title": "Deploy"}).as_object().cloned().unwrap();
    store.annotate(&RunId("run-0001".into()), title, vec![], None).await.unwrap();
}

pub async fn one_of_two_conditional_writes_succeeds(store: &dyn Store, time: &Time) {
    let run = waiting(store, 1).await;
    let since_ms = store.run(&run).await.unwrap().unwrap().since_ms;
    let failed = Err(StoreError::PreconditionFailed { run: run.clone() });
    let escalate = async || {
        let event = NewEvent { kind: "run.escalated".into(), step: None, data: json!({}) };
        let fields = json!({ "escalated_ms": since_ms }).as_object().cloned().unwrap();
        let written =
            store.annotate(&run, fields, vec![event], Some(Precondition::NotEscalated(since_ms))).await;
        written.map(|_| ())
    };
    let (first, second) = futures::join!(escalate(), escalate());
    assert_ne!(first.is_ok(), second.is_ok(), "{first:?} {second:?}");
    assert_eq!(escalate().await, failed);
    for n in 2..=6 {
        time.pass(10);
        waiting(store, n).await;
    }
    let late = async |since_ms: i64, after: Option<(i64, i64)>| {
        let page = store.unescalated(since_ms, after, 2).await.unwrap();
        let ids: Vec<String> = page.iter().map(|(run, _)| run.id.0.clone()).collect();
        (ids, page.last().map(|(_, place)| *place))
    };
    let (ids, place) = late(i64::MAX, None).await;
    assert_eq!(ids, ["run-0002", "run-0003"], "the first one was escalated; the oldest come first");
    let (ids, place) = late(i64::MAX, place).await;
    assert_eq!(ids, ["run-0004", "run-0005"]);
    let (ids, place) = late(i64::MAX, place).await;
    assert_eq!((ids.len(), late(i64::MAX, place).await.0.len()), (1, 0));
    assert_eq!(late(since_ms, None).await.0.len(), 0, "the others have not waited as long");
    let events = store.events(Some(&run), 0, 100).await.unwrap();
    let escalated = events.iter().filter(|event| event.event.kind.to_string() == "run.escalated");
    assert_eq!(escalated.count(), 1);
    let pending = PendingDelivery { event: 3, failures: 1, due_ms: 5 };
    let notify = async |before: Option<u64>, list: &[PendingDelivery], event: u64| {
        let notifying = vec![PendingDelivery { event, ..pending }];
        let fields = json!({ "notified": event, "notifying": notifying }).as_object().cloned().unwrap();
        let requires = Precondition::Notifications(before, list.to_vec());
        store.annotate(&run, fields, vec![], Some(requires)).await.map(|_| ())
    };
    let (first, second) = futures::join!(notify(None, &[], 3), notify(None, &[], 3));
    assert_ne!(first.is_ok(), second.is_ok(), "{first:?} {second:?}");
    assert_eq!(notify(Some(3), &[], 4).await, failed, "it is not delivered yet");
    assert_eq!(notify(Some(3), &[pending], 4).await, Ok(()));
    time.pass(1_000);
    store.command(&run, Command::Cancel, None, None, None).await.unwrap();
    assert_eq!(escalate().await, failed, "the wait is over");
}

pub async fn events_without_a_delivered_message_are_found(store: &dyn Store, time: &Time) {
    let began_ms = store.run(&waiting(store, 1).await).await.unwrap().unwrap().since_ms;
    time.pass(10);
    for n in 2..=6 {
        waiting(store, n).await;
    }
    let found = async |since_ms: i64, after: u64| {
        let events = store.unnotified(since_ms, after, 3).await.unwrap();
        let ids: Vec<String> =
            events.iter().map(|event| format!("{} {}", event.run, event.event.kind)).collect();
        (ids, events.last().map_or(0, |event| event.global))
    };
    let annotate = async |run: &str, fields: serde_json::Value, events: Vec<NewEvent>| {
        let fields = fields.as_object().cloned().unwrap();
        store.annotate(&RunId(run.into()), fields, events, None).await.unwrap();
    };
    let number = async |run: &str| {
        let events = store.events(Some(&RunId(run.into())), 0, 100).await.unwrap();
        events.iter().find(|event| event.event.kind == EventKind::GateWaiting).unwrap().number
    };
    let delivered = number("run-0002").await;
    annotate("run-0002", json!({ "notified": delivered }), vec![]).await;
    let failing = PendingDelivery { event: number("run-0003").await, failures: 1, due_ms: 5 };
    annotate("run-0003", json!({ "notified": failing.event, "notifying": [failing] }), vec![]).await;
    store.command(&RunId("run-0004".into()), Command::Cancel, None, None, None).await.unwrap();
    let late = NewEvent { kind: EventKind::RunEscalated, step: None, data: json!({}) };
    annotate("run-0002", json!({}), vec![late]).await;
    let (first, place) = found(began_ms, 0).await;
    assert_eq!(first, ["run-0001 gate.waiting", "run-0003 gate.waiting", "run-0005 gate.waiting"]);
    let (second, place) = found(began_ms, place).await;
    assert_eq!(second, ["run-0006 gate.waiting", "run-0002 run.escalated"]);
    assert_eq!(found(began_ms, place).await.0, [] as [&str; 0]);
    assert_eq!(found(began_ms + 1, 0).await.0[0], "run-0003 gate.waiting", "the others began earlier");
}

pub async fn titles_labels_and_assignees_are_found(store: &dyn Store, time: &Time) {
    for (n, (title, env)) in
        (0..).zip([("Deploy 5.4.0 to eu", "prod"), ("Deploy 5.4.1 to us", "test"), ("", "")])
    {
        let mut options = RunOptions::default();
        if !title.is_empty() {
            options.title = Some(title.into());
            options.labels = [("env".to_owned(), env.to_owned())].into();
        }
        store.launch(Launch { options, ..launch(n) }).await.unwrap();
    }
    let assigned = json!({"assigned": {"to": "Kim", "by": "ana", "at_ms": 7}});
    let run = RunId("run-0001".into());
    store.annotate(&run, assigned.as_object().cloned().unwrap(), vec![], None).await.unwrap();
    claimed(store, "build-2/w").await;
    let now_ms = time.clock()();
    let all = store.runs(RunFilter::default()).await.unwrap().runs;
    for (text, expected) in [
        ("title:deploy*", &["run-0000", "run-0001"][..]),
        ("title:*us", &["run-0001"]),
        ("-title:*", &["run-0002"]),
        ("label.env:prod", &["run-0000"]),
        ("-label.env:prod", &["run-0001", "run-0002"]),
        ("assigned:kim", &["run-0001"]),
        ("worker:build-2", &["run-0000"]),
        ("label.env:prod,test -assigned:kim,lee", &["run-0000"]),
        ("id:0001,0002 skill:*,x", &["run-0001", "run-0002"]),
        ("-id:0001,0002", &["run-0000"]),
        ("age:<=1d -age:>=1d", &["run-0000", "run-0001", "run-0002"]),
        ("5.4.1", &["run-0001"]),
    ] {
        let filter = RunFilter { r#where: Some(text.into()), ..RunFilter::default() };
        let mut found: Vec<String> =
            store.runs(filter).await.unwrap().runs.into_iter().map(|run| run.id.0).collect();
        found.sort();
        assert_eq!(found, expected, "{text}");
        let query = RunQuery::parse(text).unwrap();
        let matching = all.iter().filter(|run| query.matches(run, now_ms)).count();
        assert_eq!(matching, expected.len(), "{text}: in memory as in the store");
    }
}

/// `\u0000` is the escape of NUL in JSON, and a text that users can enter.
pub async fn texts_like_nul_escapes_are_preserved(store: &dyn Store, _: &Time) {
    for (n, text) in (0..).zip(["x", "\\u0000", "\\\\u0000", "\u{0}", "\\\u{0}\\"]) {
        let options = RunOptions {
            labels: [("env".to_owned(), "prod".to_owned()), ("a".to_owned(), text.to_owned())].into(),
            title: Some("Deploy".into()),
            place: Some("/skills".into()),
            ..RunOptions::default()
        };
        store.launch(Launch { options, inputs: json!({"q": text, "n": n}), ..launch(n) }).await.unwrap();
        let assigned = json!({"assigned": {"to": "kim", "by": "ana", "note": text, "at_ms": 7}});
        let run = RunId(format!("run-{n:04}"));
        let after = store.annotate(&run, assigned.as_object().cloned().unwrap(), vec![], None).await.unwrap();
        assert_eq!(after.options.labels["a"], text, "it is returned as it was stored");
    }
    for (text, expected) in [
        ("label.env:prod", 5),
        ("-label.env:prod", 0),
        ("title:deploy", 5),
        ("assigned:kim", 5),
        ("input.n:<3", 3),
        (r#"label.a:"\u0000""#, 1),
    ] {
        let filter = RunFilter { r#where: Some(text.into()), ..RunFilter::default() };
        assert_eq!(store.runs(filter).await.unwrap().runs.len(), expected, "{text}");
    }
}

/// For a store that may only claim runs of `/skills`.
pub async fn runs_are_claimed_from_their_root(store: &dyn Store) {
    let at = |place: Option<&str>, label: &str| RunOptions {
        labels: [("a".to_owned(), label.to_owned())].into(),
        place: place.map(str::to_owned),
        ..RunOptions::default()
    };
    let texts = ["x", "\\u0000", "\\\\u0000", "\u{0}"];
    let mut own = Vec::new();
    for (n, (place, text)) in (0..)
        .zip([Some("/skills"), Some("/other"), None].into_iter().flat_map(|at| texts.map(|text| (at, text))))
    {
        let run = store.launch(Launch { options: at(place, text), ..launch(n) }).await.unwrap().run;
        if place == Some("/skills") {
            own.push(run.id);
        } else {
            let named = store.claim(&worker("w"), LEASE, Some(&run.id)).await.unwrap();
            assert_eq!(named.map(|claimed| claimed.run.id), None, "{place:?} {text}");
        }
    }
    let mut claimed = Vec::new();
    while let Some(next) = store.claim(&worker("w"), LEASE, None).await.unwrap() {
        claimed.push(next.run.id);
    }
    assert_eq!(claimed, own);
    assert!(!store.due().await.unwrap().claimable);
}

pub async fn documents_are_shared_and_versioned(store: &dyn Store, _: &Time) {
    assert_eq!(store.put_document("view:a", Some(json!({"where": "x"})), Some(0)).await, Ok(1));
    assert_eq!(store.put_document("view:a", Some(json!({"where": "y"})), Some(1)).await, Ok(2));
    store.put_document("view:%", Some(json!(1)), None).await.unwrap();
    store.put_document("worker:a", Some(json!(2)), None).await.unwrap();
    let stale = store.put_document("view:a", Some(json!({"where": "z"})), Some(1)).await;
    assert_eq!(stale, Err(StoreError::DocumentConflict { name: "view:a".into() }));
    let views = store.documents("view:").await.unwrap();
    let names: Vec<(&str, u64)> = views.iter().map(|view| (view.name.as_str(), view.version)).collect();
    assert_eq!(names, [("view:%", 1), ("view:a", 2)]);
    assert_eq!(views[1].value, json!({"where": "y"}));
    assert_eq!(store.put_document("view:a", None, Some(2)).await, Ok(0));
    assert_eq!(store.put_document("view:a", None, None).await, Ok(0), "deleting twice is allowed");
    assert_eq!(store.documents("view:").await.unwrap().len(), 1);
    let write = |value: u64| store.put_document("view:c", Some(json!(value)), Some(0));
    let (first, second) = futures::join!(write(1), write(2));
    let conflict = Err(StoreError::DocumentConflict { name: "view:c".into() });
    assert!(
        [(Ok(1), conflict.clone()), (conflict.clone(), Ok(1))].contains(&(first.clone(), second.clone())),
        "{first:?} {second:?}"
    );
    assert_eq!(store.put_document("view:c", None, Some(0)).await, conflict, "there is one");
    assert_eq!(store.put_document("view:c", None, Some(2)).await, conflict, "it has another version");
    assert_eq!(store.put_document("view:c", None, Some(1)).await, Ok(0));
    let gone = store.put_document("view:c", Some(json!(3)), Some(1)).await;
    assert_eq!(gone, conflict, "an update creates nothing");
    let large = store.put_document("view:b", Some(json!("x".repeat(100_000))), None).await;
    assert!(matches!(large, Err(StoreError::InvalidRequest(_))), "{large:?}");
}

pub async fn retention_deletes_by_state(store: &dyn Store, time: &Time) {
    store.launch(launch(1)).await.unwrap();
    let claim = claimed(store, "w1").await;
    step_one(store, &claim, WorkerReport::Complete).await;
    let canceled = waiting(store, 2).await;
    store.command(&canceled, Command::Cancel, None, None, None).await.unwrap();
    let open = waiting(store, 3).await;
    time.pass(1_000);
    let now = time.clock()();
    let states = [RunState::Completed, RunState::WaitingForHuman];
    assert_eq!(store.purge_states(&states, now - 2_000).await, Ok(0), "too young");
    assert_eq!(store.purge_states(&states, now).await, Ok(1));
    assert!(store.run(&claim.run.id).await.unwrap().is_none());
    assert!(store.run(&canceled).await.unwrap().is_some());
    assert!(store.run(&open).await.unwrap().is_some(), "an open run is never purged");
    assert_eq!(store.purge(now).await, Ok(1));
}
