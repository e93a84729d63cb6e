//! Waiting, deciding and launching when the service crashes or its responses are lost.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn monitor_survives_a_service_crash_and_misses_nothing() {
    let (_place, here, mut service) = setting().await;
    let there = Arc::new(connect(&service).await);
    let mut events = there.events();
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
    wait_for_connection(&there, |state| matches!(state, ConnectionState::Lost { .. })).await;
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
    wait_for_connection(&there, |state| *state == ConnectionState::Connected).await;
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
    let mut connected = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let Event::Connection(state) = event {
            connected.push(matches!(state, ConnectionState::Connected));
        }
    }
    assert!(connected.len() >= 2 && !connected[0] && connected[connected.len() - 1], "{connected:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_run_survives_an_outage() {
    let (_place, here, mut service) = setting().await;
    let there = Arc::new(connect(&service).await);
    let launched = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap();
    let id = launched.run.id.0.clone();
    service.mishap("run.settle", Mishap::Hangs);
    let waiter = Arc::clone(&there);
    let waited = id.clone();
    let waiting =
        tokio::spawn(async move { waiter.wait_for_completion(&waited, CancellationToken::new()).await });
    let wait_calls = || async { service.calls("run.settle") };
    tokio::time::timeout(WAIT_TIMEOUT, async {
        while wait_calls().await == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    service.kill();
    service.begin();
    let completed = tokio::time::timeout(WAIT_TIMEOUT, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!((completed.id.0, completed.state), (id.clone(), RunState::WaitingForHuman));
    // A client that stops waiting gets the current state, and nothing is canceled.
    let leave = CancellationToken::new();
    leave.cancel();
    assert_eq!(there.wait_for_completion(&id, leave).await.unwrap().state, RunState::WaitingForHuman);
    assert_eq!(here.run(&id).await.unwrap().run.state, RunState::WaitingForHuman);
}

#[tokio::test(flavor = "multi_thread")]
async fn decision_with_a_lost_response_is_applied_once() {
    let (_place, here, service) = setting().await;
    let there = connect(&service).await;
    let waiting = || async {
        let launched = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap();
        there.wait_for_completion(&launched.run.id.0, CancellationToken::new()).await.unwrap()
    };
    let run = waiting().await;
    let id = run.id.0.clone();
    service.mishap("run.approve", Mishap::BreaksAfter);
    let approved = there.send_command(&id, decide(&run, Verdict::Approve, "bo")).await.unwrap();
    assert!(approved.note.starts_with("approved by bo"), "{}", approved.note);
    assert_eq!(service.calls("run.approve"), 1, "the run showed it: nothing was sent again");
    assert_eq!(here.run(&id).await.unwrap().decisions.len(), 1);

    let run = waiting().await;
    let id = run.id.0.clone();
    service.mishap("run.deny", Mishap::BreaksBefore);
    let denied = there.send_command(&id, decide(&run, Verdict::Deny, "bo")).await.unwrap();
    assert_eq!((denied.note.as_str(), denied.run.state), ("denied", RunState::Canceled));
    assert_eq!(service.calls("run.deny"), 2);
    assert_eq!(here.run(&id).await.unwrap().decisions.len(), 1);

    // A request without a key or a visible effect is not sent again, and is reported as unknown.
    service.mishap("run.fork", Mishap::BreaksAfter);
    let error = there
        .send_command(&id, RunCommand::Fork { checkpoint: None, by: None, since_ms: None })
        .await
        .unwrap_err();
    assert!(error.is_outcome_unknown() && error.message.contains("it is now canceled"), "{error}");
    assert_eq!((service.calls("run.fork"), here.run(&id).await.unwrap().descendants.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn launch_with_a_lost_response_is_executed_once() {
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
async fn another_store_after_a_reconnect_is_reported() {
    let (_place, here, mut service) = setting().await;
    let there = Arc::new(connect(&service).await);
    let mut events = there.events();
    for amount in 1..4 {
        let run = here.launch(request("ledger", json!({ "amounts": [amount] }))).await.unwrap().run.id.0;
        here.wait_for_completion(&run, CancellationToken::new()).await.unwrap();
    }
    let seen = here.newest_event().await.unwrap();
    let mut connected = 0;
    while connected < seen {
        connected = there.run_events(None, connected, 100, 20_000).await.unwrap().last().unwrap().global;
    }
    service.kill();
    let place = TestHome::new();
    let other = place.open().await;
    service.use_core(&other);
    service.begin();
    tokio::time::timeout(WAIT_TIMEOUT, async {
        while !matches!(events.recv().await.unwrap(), Event::Replaced) {}
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
async fn commands_without_a_connection_are_refused_and_never_sent() {
    let (_place, here, mut service) = setting().await;
    let there = connect(&service).await;
    let _news = there.events();
    let launched = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap();
    let run = there.wait_for_completion(&launched.run.id.0, CancellationToken::new()).await.unwrap();
    let id = run.id.0.as_str();
    let commands = [
        ("run.approve", decide(&run, Verdict::Approve, "bo")),
        ("run.deny", decide(&run, Verdict::Deny, "bo")),
        ("run.resume", resume()),
        (
            "run.signal",
            RunCommand::Signal { name: "go".to_owned(), payload: Value::Null, by: None, since_ms: None },
        ),
        ("run.cancel", RunCommand::Cancel { by: None }),
        ("run.replay", RunCommand::Replay { checkpoint: None, by: None, since_ms: None }),
        ("run.fork", RunCommand::Fork { checkpoint: None, by: None, since_ms: None }),
        (
            "run.assign",
            RunCommand::Assign { to: Some("bo".to_owned()), note: None, assignee: None, by: None },
        ),
    ];
    service.kill();
    wait_for_connection(&there, |state| matches!(state, ConnectionState::Lost { .. })).await;
    for (name, command) in &commands {
        let error = there.send_command(id, command.clone()).await.unwrap_err();
        assert!(error.is_service_unreachable() && !error.is_outcome_unknown(), "{name}: {error:?}");
    }
    assert!(there.drain("w", true, None).await.unwrap_err().is_service_unreachable());
    service.begin();
    wait_for_connection(&there, |state| *state == ConnectionState::Connected).await;
    let calls: Vec<usize> = commands.iter().map(|(name, _)| service.calls(name)).collect();
    assert_eq!(calls, [0; 8], "nothing is sent when the connection is restored");
    assert_eq!(here.run(id).await.unwrap().run.state, RunState::WaitingForHuman);
    let mut answers = Vec::new();
    for (_, command) in commands.clone() {
        answers.push(there.send_command(id, command).await);
    }
    assert_eq!(answers[0].as_ref().unwrap().note, "approved");
    assert!(commands.iter().all(|(name, _)| service.calls(name) == 1), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_to_a_dead_service_is_refused() {
    let (_place, _here, mut service) = setting().await;
    let there = connect(&service).await;
    let launched = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap();
    let run = there.wait_for_completion(&launched.run.id.0, CancellationToken::new()).await.unwrap();
    let decision = decide(&run, Verdict::Approve, "bo");
    service.kill();
    // Without an event stream the client has not noticed yet that the service is gone.
    let error = there.send_command(&run.id.0, decision.clone()).await.unwrap_err();
    assert!(error.is_service_unreachable(), "{error:?}");
    service.begin();
    let approved = there.send_command(&run.id.0, decision).await.unwrap();
    assert_eq!((approved.note.as_str(), service.calls("run.approve")), ("approved", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_no_run_shows_is_unknown() {
    let (_place, _here, mut service) = setting().await;
    let there = Arc::new(connect(&service).await);
    let launched = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap();
    let run = there.wait_for_completion(&launched.run.id.0, CancellationToken::new()).await.unwrap();
    let decision = decide(&run, Verdict::Approve, "bo");
    service.mishap("run.approve", Mishap::Hangs);
    let decider = Arc::clone(&there);
    let deciding = tokio::spawn(async move { decider.send_command(&run.id.0, decision).await });
    tokio::time::timeout(WAIT_TIMEOUT, async {
        while service.calls("run.approve") == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    // The service that returns has another store, which does not have the run.
    let place = TestHome::new();
    service.kill();
    service.use_core(&place.open().await);
    service.begin();
    let error = tokio::time::timeout(WAIT_TIMEOUT, deciding).await.unwrap().unwrap().unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
    assert_eq!(service.calls("run.approve"), 1, "an approval is not sent to another store");
}

#[tokio::test(flavor = "multi_thread")]
async fn launch_without_a_connection_is_rejected_and_not_queued() {
    let (_place, here, mut service) = setting().await;
    let there = connect(&service).await;
    let _news = there.events();
    service.kill();
    wait_for_connection(&there, |state| matches!(state, ConnectionState::Lost { .. })).await;
    let error = there.launch(request("ledger", json!({ "amounts": [1] }))).await.unwrap_err();
    assert_eq!(error.code, Code::UpstreamFailure);
    assert!(error.message.contains("the request was not sent"), "{error}");
    service.begin();
    wait_for_connection(&there, |state| *state == ConnectionState::Connected).await;
    assert_eq!(
        (service.calls("skill.execute_async"), here.runs(RunFilter::default()).await.unwrap().runs.len()),
        (0, 0)
    );
    // Sent, and the service crashes before it responds: the same launch is sent again when it is back.
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
    wait_for_connection(&there, |state| matches!(state, ConnectionState::Lost { .. })).await;
    service.begin();
    let launched = tokio::time::timeout(WAIT_TIMEOUT, launching).await.unwrap().unwrap().unwrap();
    let runs = here.runs(RunFilter::default()).await.unwrap().runs;
    assert_eq!(runs.iter().map(|run| &run.id).collect::<Vec<_>>(), [&launched.run.id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unresponsive_service_is_reported_before_the_timeout() {
    let (_place, _here, service) = setting().await;
    let address = Address::parse(&service.url()).unwrap();
    let there = Remote::connect_within(Duration::from_secs(1), address, None, None).await.unwrap();
    let mut events = there.events();
    let mut connected = Vec::new();
    tokio::time::timeout(WAIT_TIMEOUT, async {
        while connected.last() != Some(&"lost") {
            match events.recv().await.unwrap() {
                Event::Connection(ConnectionState::Silent { .. }) => connected.push("silent"),
                Event::Connection(ConnectionState::Lost { why, .. }) => {
                    assert!(why.contains("no data from"), "{why}");
                    connected.push("lost");
                }
                _ => {}
            }
        }
    })
    .await
    .unwrap();
    assert_eq!(connected, ["silent", "lost"]);
}
