//! A person is notified that a run waits: by a signed message, repeated until it is accepted.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use skills_model::{Command, Gate, RunState, WorkerReport};
use skills_runs::{Reminder, Webhook, remind};
use skills_store::{Launch, RunId, RunOptions, Sqlite, Store, WorkerId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A message as it arrived.
struct Message {
    headers: BTreeMap<String, String>,
    body: String,
}

/// A receiver that answers with these statuses in turn, then with 200.
async fn receiver(statuses: &'static [&'static str]) -> (String, mpsc::UnboundedReceiver<Message>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (arrived, messages) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut statuses = statuses.iter();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut read = Vec::new();
            let message = loop {
                let mut chunk = [0; 4096];
                let n = stream.read(&mut chunk).await.unwrap();
                assert_ne!(n, 0, "the message broke off");
                read.extend_from_slice(&chunk[..n]);
                if let Some(message) = complete_message(&String::from_utf8_lossy(&read)) {
                    break message;
                }
            };
            arrived.send(message).ok();
            let status = statuses.next().unwrap_or(&"200 OK");
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, messages)
}

fn complete_message(read: &str) -> Option<Message> {
    let (head, body) = read.split_once("\r\n\r\n")?;
    let headers: BTreeMap<String, String> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length")?.parse().ok()?;
    (body.len() >= length).then(|| Message { headers, body: body[..length].to_owned() })
}

/// A run that starts to wait now.
async fn waiting(store: &dyn Store, n: usize) -> RunId {
    let id = RunId(format!("run-{n:04}"));
    let launch = Launch {
        id: id.clone(),
        skill_id: "books.close".into(),
        contract_digest: "c".into(),
        contract: json!({}).into(),
        inputs: json!({}),
        target: None,
        trace_id: "t".into(),
        started_by: "ana".into(),
        steps: 1,
        options: RunOptions::default(),
        idempotency: None,
    };
    store.launch(launch).await.unwrap();
    let claimed = store.claim(&WorkerId("w".into()), 30_000, Some(&id)).await.unwrap().unwrap();
    let gate = Gate::Signal { step: "wait".into(), name: "books-closed".into() };
    let command = Command::Work { fence: claimed.fence, report: WorkerReport::Wait(gate) };
    let run = store.report(&id, command, vec![], None, vec![], vec![]).await.unwrap();
    assert_eq!(run.state, RunState::WaitingForSignal);
    id
}

/// Runs start to wait until a message about one of them arrives: following starts some time after the process.
async fn first(store: &dyn Store, messages: &mut mpsc::UnboundedReceiver<Message>) -> Message {
    for n in 0..100 {
        waiting(store, n).await;
        if let Ok(Some(message)) = timeout(Duration::from_millis(300), messages.recv()).await {
            return message;
        }
    }
    panic!("no reminder came");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reminder_is_signed_and_repeated_until_accepted() {
    let store: Arc<dyn Store> = Arc::new(Sqlite::in_memory(Arc::new(now)).unwrap());
    let (url, mut messages) = receiver(&["503 Service Unavailable", "307 Temporary Redirect"]).await;
    let webhook = Webhook::new(&url, SECRET).unwrap().with_pauses(vec![Duration::from_millis(20); 4]);
    let (tell, mut received) = mpsc::channel::<Reminder>(16);
    let stop = CancellationToken::new();
    let reminding = tokio::spawn(remind(store.clone(), tell, Some(webhook.clone()), stop.clone()));
    let message = first(&*store, &mut messages).await;
    let again = timeout(WAIT_TIMEOUT, messages.recv()).await.unwrap().unwrap();
    let taken = timeout(WAIT_TIMEOUT, messages.recv()).await.unwrap().unwrap();
    for repeated in [&again, &taken] {
        assert_eq!(
            repeated.headers["webhook-id"], message.headers["webhook-id"],
            "a receiver can drop repetitions"
        );
        assert_eq!(repeated.body, message.body);
    }
    for sent in [&message, &again, &taken] {
        let at: i64 = sent.headers["webhook-timestamp"].parse().unwrap();
        assert!((now() / 1000 - at).abs() < 60, "{at}");
        let signed = webhook.signature(&sent.headers["webhook-id"], at, &sent.body);
        assert_eq!(sent.headers["webhook-signature"], signed);
        assert_eq!(sent.headers["content-type"], "application/json");
    }
    let body: Value = serde_json::from_str(&message.body).unwrap();
    assert_eq!((&body["type"], &body["data"]["skill_id"]), (&json!("run.waiting"), &json!("books.close")));
    assert!(body["data"]["gate"].to_string().contains("books-closed"), "{body}");
    // The run of the message may have waited before its events were followed.
    let mut reminder = None;
    for n in 100..200 {
        reminder = timeout(Duration::from_millis(300), received.recv()).await.ok().flatten();
        if reminder.is_some() {
            break;
        }
        waiting(&*store, n).await;
    }
    assert_eq!(reminder.unwrap().sentence(), "books.close is waiting for the signal books-closed");
    stop.cancel();
    timeout(WAIT_TIMEOUT, reminding).await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_two_processes_sends_the_message() {
    let store: Arc<dyn Store> = Arc::new(Sqlite::in_memory(Arc::new(now)).unwrap());
    let (url, mut messages) = receiver(&[]).await;
    let stop = CancellationToken::new();
    let _stopped = stop.clone().drop_guard();
    let mut receivers = Vec::new();
    for _ in 0..2 {
        let (tell, receiver) = mpsc::channel::<Reminder>(200);
        let webhook = Webhook::new(&url, SECRET).unwrap();
        tokio::spawn(remind(store.clone(), tell, Some(webhook), stop.clone()));
        receivers.push(receiver);
    }
    let mut n = 0;
    for receiver in &mut receivers {
        while timeout(Duration::from_millis(300), receiver.recv()).await.is_err() {
            waiting(&*store, n).await;
            n += 1;
        }
    }
    // Both follow the store from here on.
    for n in 100..110 {
        waiting(&*store, n).await;
    }
    let mut received = Vec::new();
    for receiver in &mut receivers {
        while timeout(WAIT_TIMEOUT, receiver.recv()).await.unwrap().unwrap().run.0 != "run-0109" {}
    }
    while let Ok(Some(message)) = timeout(Duration::from_secs(1), messages.recv()).await {
        received.push(message);
    }
    let ids: Vec<&String> = received.iter().map(|message| &message.headers["webhook-id"]).collect();
    let distinct: std::collections::BTreeSet<&&String> = ids.iter().collect();
    assert!(distinct.len() > 10 && distinct.len() == ids.len(), "{ids:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_wait_causes_no_further_reminder() {
    let store: Arc<dyn Store> = Arc::new(Sqlite::in_memory(Arc::new(now)).unwrap());
    let (url, mut messages) = receiver(&["500 Internal Server Error"; 9]).await;
    let webhook = Webhook::new(&url, SECRET).unwrap().with_pauses(vec![Duration::from_millis(400); 8]);
    let (tell, _told) = mpsc::channel::<Reminder>(16);
    let stop = CancellationToken::new();
    let _stopped = stop.clone().drop_guard();
    tokio::spawn(remind(store.clone(), tell, Some(webhook), stop));
    let message = first(&*store, &mut messages).await;
    let body: Value = serde_json::from_str(&message.body).unwrap();
    let page = store.runs(skills_store::RunFilter::default()).await.unwrap();
    for run in page.runs {
        store.command(&run.id, Command::Cancel, None, None, None).await.unwrap();
    }
    // Those in flight before the cancellation may still arrive; after two pauses nothing does.
    while let Ok(Some(late)) = timeout(Duration::from_secs(1), messages.recv()).await {
        let late: Value = serde_json::from_str(&late.body).unwrap();
        assert_eq!(late["type"], body["type"]);
    }
    assert!(messages.is_empty());
}

/// Follows the store as one process does, until the returned guard is dropped.
async fn follower(store: &Arc<dyn Store>, webhook: Webhook) -> (DropGuard, mpsc::Receiver<Reminder>) {
    let (tell, received) = mpsc::channel::<Reminder>(200);
    let stop = CancellationToken::new();
    tokio::spawn(remind(Arc::clone(store), tell, Some(webhook), stop.clone()));
    (stop.drop_guard(), received)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_was_not_delivered_is_sent_after_a_restart() {
    let store: Arc<dyn Store> = Arc::new(Sqlite::in_memory(Arc::new(now)).unwrap());
    // One wait starts while no process follows the store, and the receiver is down when the first process starts.
    let before = waiting(&*store, 1).await;
    let (url, mut messages) = receiver(&["503 Service Unavailable"; 2]).await;
    let webhook = Webhook::new(&url, SECRET).unwrap().with_pauses(vec![Duration::from_secs(1); 4]);
    let (first_process, mut received) = follower(&store, webhook.clone()).await;
    let failed = timeout(WAIT_TIMEOUT, messages.recv()).await.unwrap().unwrap();
    assert_eq!(failed.headers["webhook-id"], format!("msg_{before}_3"));
    let during = waiting(&*store, 2).await;
    assert_eq!(timeout(WAIT_TIMEOUT, received.recv()).await.unwrap().unwrap().run, during);
    let failed = timeout(WAIT_TIMEOUT, messages.recv()).await.unwrap().unwrap();
    assert_eq!(failed.headers["webhook-id"], format!("msg_{during}_3"));
    // The response arrives, and the next attempt is recorded.
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(first_process);
    let (second_process, _received) = follower(&store, webhook.clone()).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(
            timeout(WAIT_TIMEOUT, messages.recv()).await.unwrap().unwrap().headers["webhook-id"].clone(),
        );
    }
    ids.sort();
    assert_eq!(ids, [format!("msg_{before}_3"), format!("msg_{during}_3")]);
    // What was delivered is not sent again.
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(second_process);
    let (_third_process, _received) = follower(&store, webhook).await;
    assert!(timeout(Duration::from_secs(2), messages.recv()).await.is_err());
}
