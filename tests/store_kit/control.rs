//! Checks of what a sidecar does to the run it watches.

use skill_workbench::store::{Control, ControlOutcome};

use super::*;

fn asked(order: Result<(Command, Option<serde_json::Value>), String>) -> Control {
    Control { asked: "as a test".to_owned(), order }
}

async fn kinds(store: &dyn Store, run: &RunId) -> Vec<String> {
    store.events(Some(run), 0, 100).await.unwrap().into_iter().map(|e| e.event.kind).collect()
}

pub async fn a_sidecars_wish_is_carried_out_once(store: &dyn Store, _: &Time) {
    let watched = waiting(store, 1).await;
    let sidecar = store.launch(launch(2)).await.unwrap().run.id;
    let signal = || Ok((Command::Signal { name: "checked".into() }, Some(json!(7))));
    for _ in 0..2 {
        let outcome = store.control(&sidecar, &watched, asked(signal())).await.unwrap();
        assert_eq!(outcome, ControlOutcome::Applied);
    }
    let told = kinds(store, &watched).await;
    assert_eq!(told.iter().filter(|kind| *kind == "signal.received").count(), 1, "{told:?}");
    assert_eq!(told.last().unwrap(), "control.applied");
    assert_eq!(kinds(store, &sidecar).await.last().unwrap(), "control.applied");
}

pub async fn a_refused_wish_is_written_down_and_changes_nothing(store: &dyn Store, _: &Time) {
    let watched = waiting(store, 1).await;
    store.command(&watched, Command::Cancel, None, None, None).await.unwrap();
    let before = kinds(store, &watched).await;
    for (n, order) in [(2, Ok((Command::Signal { name: "x".into() }, None))), (3, Err("no pause".to_owned()))]
    {
        let sidecar = store.launch(launch(n)).await.unwrap().run.id;
        let outcome = store.control(&sidecar, &watched, asked(order)).await.unwrap();
        assert!(matches!(&outcome, ControlOutcome::Refused(why) if !why.is_empty()), "{outcome:?}");
        assert_eq!(kinds(store, &sidecar).await.last().unwrap(), "control.refused");
    }
    assert_eq!(kinds(store, &watched).await, before);
}
