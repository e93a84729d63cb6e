//! Checks of control requests of sidecars.

use skills_store::{Control, ControlOutcome};

use super::*;

fn control(command: Result<(Command, Option<serde_json::Value>), String>) -> Control {
    Control { description: "as a test".to_owned(), command, why: Some("2 findings".to_owned()) }
}

async fn kinds(store: &dyn Store, run: &RunId) -> Vec<String> {
    store.events(Some(run), 0, 100).await.unwrap().into_iter().map(|e| e.event.kind.to_string()).collect()
}

pub async fn control_request_of_a_sidecar_is_executed_once(store: &dyn Store, _: &Time) {
    let watched = waiting(store, 1).await;
    let sidecar = store.launch(launch(2)).await.unwrap().run.id;
    let signal = || Ok((Command::Signal { name: "checked".into() }, Some(json!(7))));
    for _ in 0..2 {
        let outcome = store.control(&sidecar, &watched, control(signal())).await.unwrap();
        assert!(
            matches!(&outcome, ControlOutcome::Applied(did) if did.contains("waits for it")),
            "{outcome:?}"
        );
    }
    let event_kinds = kinds(store, &watched).await;
    assert_eq!(event_kinds.iter().filter(|kind| *kind == "signal.received").count(), 1, "{event_kinds:?}");
    assert_eq!(event_kinds.last().unwrap(), "control.applied");
    assert_eq!(kinds(store, &sidecar).await.last().unwrap(), "control.applied");
}

pub async fn rejected_control_request_is_recorded_and_changes_nothing(store: &dyn Store, _: &Time) {
    let watched = waiting(store, 1).await;
    store.command(&watched, Command::Cancel, None, None, None).await.unwrap();
    let before = store.run(&watched).await.unwrap();
    let commands = [
        Ok((Command::Signal { name: "x".into() }, None)),
        Ok((Command::Pause, None)),
        Err("no such wish".to_owned()),
    ];
    for (n, command) in (2..).zip(commands) {
        let sidecar = store.launch(launch(n)).await.unwrap().run.id;
        let outcome = store.control(&sidecar, &watched, control(command)).await.unwrap();
        assert!(matches!(&outcome, ControlOutcome::Refused(why) if !why.is_empty()), "{outcome:?}");
        assert_eq!(kinds(store, &sidecar).await.last().unwrap(), "control.refused");
        let event_kinds = store.events(Some(&watched), 0, 100).await.unwrap().pop().unwrap().event;
        assert_eq!(event_kinds.kind.as_str(), "control.refused", "the watched run tells it too");
        assert_eq!(
            (event_kinds.data["by"].as_str(), event_kinds.data["why"].as_str()),
            (Some(&*sidecar.0), Some("2 findings"))
        );
    }
    assert_eq!(store.run(&watched).await.unwrap(), before);
}

pub async fn waiting_run_is_paused_after_its_wait(store: &dyn Store, time: &Time) {
    let watched = waiting(store, 1).await;
    let expires = store.run(&watched).await.unwrap().unwrap().expires_ms;
    time.pass(5);
    for (n, says) in [(2, "after the decision"), (3, "already paused")] {
        let sidecar = store.launch(launch(n)).await.unwrap().run.id;
        let outcome = store.control(&sidecar, &watched, control(Ok((Command::Pause, None)))).await.unwrap();
        assert!(matches!(&outcome, ControlOutcome::Applied(did) if did.contains(says)), "{outcome:?}");
    }
    let waits = store.run(&watched).await.unwrap().unwrap();
    assert_eq!((waits.state, waits.paused), (RunState::WaitingForHuman, true));
    assert_eq!(waits.expires_ms, expires, "a pause gives no more time to answer");
    let Some(Gate::Human { step, inputs_digest, .. }) = waits.gate else { panic!("{waits:?}") };
    let yes = Command::Decide(Decision {
        verdict: Verdict::Approve,
        step,
        inputs_digest,
        choice: None,
        result: None,
    });
    let after = store.command(&watched, yes, None, None, None).await.unwrap().run;
    assert_eq!((after.state, after.paused), (RunState::Pending, true));
    assert_eq!(kinds(store, &watched).await.last().unwrap(), "run.held");
    assert!(
        store.claim(&worker("w"), LEASE, Some(&watched)).await.unwrap().is_none(),
        "no worker may claim it"
    );
    store.command(&watched, Command::Resume, None, None, None).await.unwrap();
    assert!(store.claim(&worker("w"), LEASE, Some(&watched)).await.unwrap().is_some());
}
