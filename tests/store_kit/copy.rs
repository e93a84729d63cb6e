//! Stores that are copied into others: what is filled in, and all that can be read of it.

use super::*;
use skills_store::{SessionOutline, SessionUsage, Sessions};

/// Runs in several states with decisions, signals and keys, a document and a session. No run has a lease.
pub async fn fill<S: Store + Sessions>(store: &S) {
    let decided = waiting(store, 1).await;
    let by = DecisionRecord { approver: Some("kim".into()), notes: Some("seen \u{fc}".into()) };
    store.command(&decided, decision(Verdict::Approve), Some(by), None, None).await.unwrap();
    let claim = store.claim(&worker("w1"), LEASE, Some(&decided)).await.unwrap().expect("the approved run");
    let ended = work(claim.fence, WorkerReport::Complete);
    store
        .report(&decided, ended, vec![done("two")], Some(checkpoint(2, &["one", "two"])), vec![], vec![])
        .await
        .unwrap();
    waiting(store, 2).await;
    store.launch(keyed(3, "a key", "payload")).await.unwrap();
    let signal = Command::Signal { name: "later".into() };
    store.command(&RunId("run-0003".into()), signal, None, None, Some(json!({"x": "\u{0}"}))).await.unwrap();
    store.put_document("view:a", Some(json!({"where": "state:failed"})), Some(0)).await.unwrap();
    let session = store.create_session("0190-a", Some("kim"), json!({"name": "a"})).await.unwrap();
    store.change_session("0190-a", session.version, json!({"name": "b"}), vec![json!("line")]).await.unwrap();
    let bytes = (r#"{"name":"b"}"#.len() + r#""line""#.len()) as u64;
    assert_eq!(store.session_usage("kim").await.unwrap(), SessionUsage { sessions: 1, bytes });
    assert_eq!(store.session_usage("lee").await.unwrap(), SessionUsage::default());
    let document = json!({"settings": {"agent": "ops"}, "active": [{"name": "pay", "body": "x"}]});
    store.create_session("0190-b", Some("max"), document).await.unwrap();
    let heads = store.sessions(Some("max"), 10).await.unwrap();
    let outline = SessionOutline { agent: Some("ops".into()), active: vec!["pay".into()] };
    assert_eq!((heads.len(), &heads[0].outline), (1, &outline));
    for (owner, part, expected) in [
        (None, "90-b", &["0190-b"][..]),
        (None, "0190-b", &["0190-b"]),
        (Some("kim"), "0190-", &["0190-a"]),
        (Some("kim"), "0190-b", &[]),
        (None, "190", &[]),
    ] {
        assert_eq!(store.session_ids(owner, part, 10).await.unwrap(), expected, "{owner:?} {part}");
    }
}

/// Everything that can be read of the records of [`fill`].
pub async fn contents<S: Store + Sessions>(store: &S) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |record: &dyn std::fmt::Debug| found.push(format!("{record:?}"));
    for run in store.runs(RunFilter::default()).await.unwrap().runs {
        add(&store.run(&run.id).await.unwrap());
        add(&store.steps(&run.id, u64::MAX).await.unwrap());
        add(&store.intents(&run.id).await.unwrap());
        add(&all_checkpoints(store, &run.id).await);
        add(&store.decisions(&run.id).await.unwrap());
        add(&store.buffered_signal(&run.id, "later").await.unwrap());
        add(&store.contract(&run.contract_digest).await.unwrap());
    }
    add(&store.events(None, 0, 1000).await.unwrap());
    add(&store.newest_event().await.unwrap());
    add(&store.documents("").await.unwrap());
    add(&store.session("0190-a", 0).await.unwrap());
    add(&store.sessions(None, 10).await.unwrap());
    found
}

/// The store has what the other one had, and continues its numbers.
pub async fn is_continued<S: Store + Sessions>(store: &S, before: &[String]) {
    assert_eq!(contents(store).await, before);
    let health = store.check().await.unwrap();
    assert!(health.is_sound() && health.runs == 3, "{health:?}");
    let newest = store.newest_event().await.unwrap();
    let again = store.launch(keyed(4, "a key", "payload")).await.unwrap();
    assert_eq!(again.run.id, RunId("run-0003".into()), "the key is known");
    store.launch(launch(5)).await.unwrap();
    let events = store.events(None, newest, 10).await.unwrap();
    assert!(events.iter().all(|event| event.run.0 == "run-0005") && events.len() == 1, "{events:?}");
    let next = claimed(store, "w2").await;
    assert_eq!(next.run.id, RunId("run-0003".into()), "the oldest run comes first");
}
