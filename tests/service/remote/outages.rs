//! What becomes of waiting, deciding and launching when the service dies or its answers are lost.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_goes_on_through_a_service_that_dies_and_misses_nothing() {
    let (_place, here, mut service) = setting().await;
    let there = Arc::new(connect(&service).await);
    let mut news = there.events();
    let (heard, mut numbers) = tokio::sync::mpsc::unbounded_channel();
    let monitor = Arc::clone(&there);
    let following = tokio::spawn(async move {
        let mut after = 0;
        loop {
            for event in monitor.run_events(None, after, 100, 20_000).await.unwrap() {
                after = event.global;
                heard.send(event.global).unwrap();
            }
        }
    });
    let first = here.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap();
    here.wait_for_completion(&first.run.id.0, CancellationToken::new()).await.unwrap();
    let mut seen = Vec::new();
    let before = here.newest_event().await.unwrap();
    while seen.last() != Some(&before) {
        seen.push(tokio::time::timeout(WAIT_TIMEOUT, numbers.recv()).await.unwrap().unwrap());
    }

    service.kill();
    stands(&there, |state| matches!(state, ConnectionState::Lost { .. })).await;
    let ConnectionState::Lost { why, .. } = there.states().borrow().clone() else { panic!("it stands") };
    // By what was in flight when it died.
    let ways = ["closed the connection", "cannot connect", "closed the event stream"];
    assert!(ways.iter().any(|way| why.contains(way)), "{why}");
    let error = there.runs(RunFilter::default()).await.unwrap_err();
    assert_eq!(error.code, Code::UpstreamFailure);
    assert!(error.message.contains("cannot connect"), "{error}");
    // What happens during the outage.
    let second = here.launch(request("ledger", json!({ "amounts": [2] }))).await.unwrap();
    here.wait_for_completion(&second.run.id.0, CancellationToken::new()).await.unwrap();
    service.begin();
    stands(&there, |state| *state == ConnectionState::Connected).await;
    let third = here.launch(request("ledger", json!({ "amounts": [3] }))).await.unwrap();
    here.wait_for_completion(&third.run.id.0, CancellationToken::new()).await.unwrap();

    let newest = here.newest_event().await.unwrap();
    while seen.last() != Some(&newest) {
        seen.push(tokio::time::timeout(WAIT_TIMEOUT, numbers.recv()).await.unwrap().unwrap());
    }
    let all = here.run_events(None, 0, 10_000, 0).await.unwrap();
    assert_eq!(seen, all.iter().map(|event| event.global).collect::<Vec<_>>(), "none missed, none twice");
    following.abort();
    // One stream throughout, resumed where it broke off; no page was requested by number.
    let resumed = service.resumed();
    assert!(
        resumed.len() >= 2 && resumed[0].is_none() && resumed[1..].iter().all(Option::is_some),
        "{resumed:?}"
    );
    assert!(service.calls("event.list") <= resumed.len() + 1, "{} lists", service.calls("event.list"));
    // The same as messages for display: lost, then reconnected.
    let mut told = Vec::new();
    while let Ok(event) = news.try_recv() {
        if let Event::Connection(state) = event {
            told.push(matches!(state, ConnectionState::Connected));
        }
    }
    assert!(told.len() >= 2 && !told[0] && told[told.len() - 1], "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_waited_for_through_an_outage() {
    let (_place, here, mut service) = setting().await;
    let there = Arc::new(connect(&service).await);
    let launched = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap();
    let id = launched.run.id.0.clone();
    service.mishap("run.settle", Mishap::Hangs);
    let waiter = Arc::clone(&there);
    let waited = id.clone();
    let waiting =
        tokio::spawn(async move { waiter.wait_for_completion(&waited, CancellationToken::new()).await });
    let asked = || async { service.calls("run.settle") };
    tokio::time::timeout(WAIT_TIMEOUT, async {
        while asked().await == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    service.kill();
    service.begin();
    let settled = tokio::time::timeout(WAIT_TIMEOUT, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!((settled.id.0, settled.state), (id.clone(), RunState::WaitingForHuman));
    // A client that stops waiting gets the current state, and nothing is canceled.
    let leave = CancellationToken::new();
    leave.cancel();
    assert_eq!(there.wait_for_completion(&id, leave).await.unwrap().state, RunState::WaitingForHuman);
    assert_eq!(here.run(&id).await.unwrap().run.state, RunState::WaitingForHuman);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_carried_out_once_whatever_becomes_of_its_answer() {
    let (_place, here, service) = setting().await;
    let there = connect(&service).await;
    let waiting = || async {
        let launched = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap();
        there.wait_for_completion(&launched.run.id.0, CancellationToken::new()).await.unwrap()
    };
    let run = waiting().await;
    let id = run.id.0.clone();
    service.mishap("run.approve", Mishap::BreaksAfter);
    let approved = there.order(&id, decide(&run, Verdict::Approve, "bo")).await.unwrap();
    assert!(approved.note.starts_with("approved by bo"), "{}", approved.note);
    assert_eq!(service.calls("run.approve"), 1, "the run showed it: nothing was sent again");
    assert_eq!(here.run(&id).await.unwrap().decisions.len(), 1);

    let run = waiting().await;
    let id = run.id.0.clone();
    service.mishap("run.deny", Mishap::BreaksBefore);
    let denied = there.order(&id, decide(&run, Verdict::Deny, "bo")).await.unwrap();
    assert_eq!((denied.note.as_str(), denied.run.state), ("denied", RunState::Canceled));
    assert_eq!(service.calls("run.deny"), 2);
    assert_eq!(here.run(&id).await.unwrap().decisions.len(), 1);

    // A request without a key or a visible effect is not sent again, and is reported as unknown.
    service.mishap("run.fork", Mishap::BreaksAfter);
    let error = there.order(&id, RunOrder::Fork { checkpoint: None, by: None }).await.unwrap_err();
    assert!(error.message.contains("is unknown: it is canceled now"), "{error}");
    assert_eq!((service.calls("run.fork"), here.run(&id).await.unwrap().descendants.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_is_carried_out_once_whatever_becomes_of_its_answer() {
    let (_place, here, service) = setting().await;
    let there = connect(&service).await;
    service.mishap("skill.execute_async", Mishap::BreaksAfter);
    let launched = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap();
    assert_eq!((service.calls("skill.execute_async"), launched.idempotency), (2, IdempotencyOutcome::None));
    let runs = here.runs(RunFilter::default()).await.unwrap().runs;
    assert_eq!(runs.iter().map(|run| &run.id).collect::<Vec<_>>(), [&launched.run.id]);

    let options =
        ExecutionOptions { idempotency_key: Some("mine".to_owned()), ..ExecutionOptions::default() };
    let keyed = LaunchRequest { options, ..request("ledger", json!({ "amounts": [1] })) };
    let outcomes = [there.launch(keyed.clone()).await.unwrap(), there.launch(keyed).await.unwrap()];
    assert_eq!(
        outcomes.map(|launched| launched.idempotency),
        [IdempotencyOutcome::Created, IdempotencyOutcome::Reused]
    );
    let files = std::collections::BTreeMap::from([("in.pdf".to_owned(), "/tmp/a.pdf".to_owned())]);
    let options = ExecutionOptions { files, ..ExecutionOptions::default() };
    let error = there.launch(LaunchRequest { options, ..request("ledger", json!({})) }).await.unwrap_err();
    assert!(error.message.contains("in.pdf is a local file"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_comes_back_with_another_store_says_so_and_is_followed_from_there() {
    let (_place, here, mut service) = setting().await;
    let there = Arc::new(connect(&service).await);
    let mut news = there.events();
    for amount in 1..4 {
        let run = here.launch(request("ledger", json!({ "amounts": [amount] }))).await.unwrap().run.id.0;
        here.wait_for_completion(&run, CancellationToken::new()).await.unwrap();
    }
    let seen = here.newest_event().await.unwrap();
    let mut told = 0;
    while told < seen {
        told = there.run_events(None, told, 100, 20_000).await.unwrap().last().unwrap().global;
    }
    service.kill();
    let place = Place::new();
    let other = place.open().await;
    service.stand_on(&other);
    service.begin();
    tokio::time::timeout(WAIT_TIMEOUT, async {
        while !matches!(news.recv().await.unwrap(), Event::Replaced) {}
    })
    .await
    .expect("the client is notified that the service is a different one");
    let error = there.run_events(None, seen, 100, 20_000).await.unwrap_err();
    assert!(error.message.contains("a different store"), "{error}");
    let after = there.newest_event().await.unwrap();
    let run = other.launch(request("ledger", json!({ "amounts": [9] }))).await.unwrap().run.id;
    let events = there.run_events(None, after, 100, 20_000).await.unwrap();
    assert_eq!(events[0].run, run, "an event there is delivered at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_made_without_a_connection_waits_for_it_and_is_sent_once() {
    let (_place, here, mut service) = setting().await;
    let there = Arc::new(connect(&service).await);
    let mut news = there.events();
    let run = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap().run.id.0;
    there.wait_for_completion(&run, CancellationToken::new()).await.unwrap();
    let decision = decision_on(&there, &run).await;
    service.kill();
    stands(&there, |state| matches!(state, ConnectionState::Lost { .. })).await;
    let (decider, decided) = (Arc::clone(&there), run.clone());
    let deciding = tokio::spawn(async move { decider.order(&decided, decision).await });
    let mut way = Vec::new();
    let mut hear = async |last: Sending| {
        while way.last() != Some(&last) {
            let event = tokio::time::timeout(WAIT_TIMEOUT, news.recv()).await.expect("news in time").unwrap();
            if let Event::Order(told) = event {
                assert_eq!((&told.run, told.approver.as_deref()), (&run, Some("bo")));
                way.push(told.sending);
            }
        }
        way.clone()
    };
    hear(Sending::Waiting).await;
    assert_eq!(here.run(&run).await.unwrap().run.state, RunState::WaitingForHuman);
    service.begin();
    let approved = tokio::time::timeout(WAIT_TIMEOUT, deciding).await.unwrap().unwrap().unwrap();
    assert_eq!(approved.note, "approved");
    let way = hear(Sending::Over).await;
    assert!(way.ends_with(&[Sending::Waiting, Sending::Sent, Sending::Over]), "{way:?}");
    assert_eq!((service.calls("run.approve"), here.run(&run).await.unwrap().decisions.len()), (1, 1));
}

/// An approval of exactly what a run waits with.
async fn decision_on(there: &Remote, run: &str) -> RunOrder {
    let sheet = there.run(run).await.unwrap().sheet.unwrap();
    RunOrder::Decide {
        verdict: Verdict::Approve,
        step: Some(sheet.step),
        inputs_digest: Some(sheet.inputs_digest),
        approver: Some("bo".to_owned()),
        notes: None,
        choice: None,
        result: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_was_not_sent_is_taken_back_and_another_one_is_free() {
    let (_place, here, mut service) = setting().await;
    let there = Arc::new(connect(&service).await);
    let mut news = there.events();
    let run = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap().run.id.0;
    there.wait_for_completion(&run, CancellationToken::new()).await.unwrap();
    let yes = decision_on(&there, &run).await;
    let RunOrder::Decide { step, inputs_digest, approver, notes, choice, result, .. } = yes.clone() else {
        panic!("a decision")
    };
    let no =
        RunOrder::Decide { verdict: Verdict::Deny, step, inputs_digest, approver, notes, choice, result };
    service.kill();
    // A service that dies may still answer what reached it; what is decided after that waits.
    stands(&there, |state| matches!(state, ConnectionState::Lost { .. })).await;
    let (decider, decided) = (Arc::clone(&there), run.clone());
    let deciding = tokio::spawn(async move { decider.order(&decided, yes).await });
    tokio::time::timeout(WAIT_TIMEOUT, async {
        while !matches!(news.recv().await.unwrap(), Event::Order(way) if way.sending == Sending::Waiting) {}
    })
    .await
    .expect("waits for the connection");
    let refused = there.order(&run, no.clone()).await.unwrap_err();
    assert!(refused.message.contains("withdraw it first"), "{refused}");
    there.take_back(&run).unwrap();
    let error = tokio::time::timeout(WAIT_TIMEOUT, deciding).await.unwrap().unwrap().unwrap_err();
    assert!(UnderWay::was_taken_back(&error), "{error}");
    assert!(there.take_back(&run).unwrap_err().message.contains("no decision on this run"));
    service.begin();
    let denied = there.order(&run, no).await.unwrap();
    assert_eq!((denied.run.state, service.calls("run.approve")), (RunState::Canceled, 0));
    let decisions = here.run(&run).await.unwrap().decisions;
    assert_eq!(decisions.iter().map(|one| one.decision.verdict).collect::<Vec<_>>(), [Verdict::Deny]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_without_a_connection_is_refused_at_once_and_nothing_is_sent_later() {
    let (_place, here, mut service) = setting().await;
    let there = connect(&service).await;
    let _news = there.events();
    service.kill();
    stands(&there, |state| matches!(state, ConnectionState::Lost { .. })).await;
    let error = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap_err();
    assert_eq!(error.code, Code::UpstreamFailure);
    assert!(error.message.contains("the request was not sent"), "{error}");
    service.begin();
    stands(&there, |state| *state == ConnectionState::Connected).await;
    assert_eq!(
        (service.calls("skill.execute_async"), here.runs(RunFilter::default()).await.unwrap().runs.len()),
        (0, 0)
    );
    // Sent, and the service dies before it answers: the same launch goes out again when it is back.
    service.mishap("skill.execute_async", Mishap::Hangs);
    let there = Arc::new(there);
    let launcher = Arc::clone(&there);
    let launching =
        tokio::spawn(async move { launcher.launch(request("ledger", json!({ "amounts": [2] }))).await });
    tokio::time::timeout(WAIT_TIMEOUT, async {
        while service.calls("skill.execute_async") == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    service.kill();
    stands(&there, |state| matches!(state, ConnectionState::Lost { .. })).await;
    service.begin();
    let launched = tokio::time::timeout(WAIT_TIMEOUT, launching).await.unwrap().unwrap().unwrap();
    let runs = here.runs(RunFilter::default()).await.unwrap().runs;
    assert_eq!(runs.iter().map(|run| &run.id).collect::<Vec<_>>(), [&launched.run.id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_falls_silent_is_said_to_be_before_it_is_given_up() {
    let (_place, _here, service) = setting().await;
    let address = Address::parse(&service.url()).unwrap();
    let there = Remote::connect_within(Duration::from_secs(1), address, None, None).await.unwrap();
    let mut news = there.events();
    let mut told = Vec::new();
    tokio::time::timeout(WAIT_TIMEOUT, async {
        while told.last() != Some(&"lost") {
            match news.recv().await.unwrap() {
                Event::Connection(ConnectionState::Silent { .. }) => told.push("silent"),
                Event::Connection(ConnectionState::Lost { why, .. }) => {
                    assert!(why.contains("no data from"), "{why}");
                    told.push("lost");
                }
                _ => {}
            }
        }
    })
    .await
    .unwrap();
    assert_eq!(told, ["silent", "lost"]);
}
