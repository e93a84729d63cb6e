//! The embedded store: the requirements on a file and in memory, and faults of files.
use crate::store_kit;

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use skills_model::{Command, RunState, Verdict, WorkerReport};
use skills_store::{
    Counts as _, Launch, RunFilter, RunId, Sessions as _, Sqlite, StepRecord, StepStatus, Store, StoreError,
    Unavailability, WorkerId,
};
use store_kit::Time;

fn open(path: &Path) -> Result<skills_store::OpenedStore, StoreError> {
    Sqlite::open(path, Time::new().clock())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_requirements_hold_on_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let next = std::sync::atomic::AtomicU32::new(0);
    store_kit::run_all(async |time: Time| {
        let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Sqlite::open(&folder.path().join(format!("{n}.db")), time.clock()).unwrap().store
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_requirements_hold_in_memory() {
    store_kit::run_all(async |time: Time| Sqlite::in_memory(time.clock()).unwrap()).await;
}

#[tokio::test]
async fn file_assigns_runs_to_workers_of_their_root() {
    let store = Sqlite::in_memory(Time::new().clock()).unwrap();
    store.work_only(Box::new(|| Arc::new(vec!["/skills".to_owned()])));
    store_kit::runs_are_claimed_from_their_root(&store).await;
}

#[tokio::test]
async fn acknowledged_writes_survive_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/runs.db");
    let first = open(&path).unwrap().store;
    first.launch(store_kit::launch(1)).await.unwrap();
    drop(first);
    let second = open(&path).unwrap().store;
    assert_eq!(second.runs(RunFilter::default()).await.unwrap().runs.len(), 1);
    let health = second.check().await.unwrap();
    assert!(health.is_sound(), "{health:?}");
    assert_eq!((health.runs, health.events), (1, 1));
}

#[tokio::test]
async fn lists_of_sessions_do_not_read_documents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = open(&path).unwrap().store;
    store.create_session("a", None, json!({"active": [{"name": "old", "body": "x"}]})).await.unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("UPDATE sessions SET document = 'not JSON'").unwrap();
    assert_eq!(store.sessions(None, 10).await.unwrap()[0].outline.active, ["old"]);
    assert_eq!(store.session_ids(None, "a", 10).await.unwrap(), ["a"]);
    // A program of an earlier version does not update what is listed.
    let change = r#"UPDATE sessions SET version = version + 1, document = '{"active":[{"name":"new"}]}'"#;
    other.execute_batch(change).unwrap();
    assert_eq!(store.sessions(None, 10).await.unwrap()[0].outline.active, ["new"]);
}

#[tokio::test]
async fn a_store_opens_and_lists_while_another_process_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    open(&path).unwrap().store.launch(store_kit::launch(1)).await.unwrap();
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Opening would fail after 10 s if it took the lock.
    let store = open(&path).unwrap().store;
    assert_eq!(store.runs(RunFilter::default()).await.unwrap().runs.len(), 1);
    writer.execute_batch("ROLLBACK").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_search_ends_and_does_not_block_other_reads() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("runs.db")).unwrap().store;
    // Comparing the pattern with one of these inputs takes about a second.
    let input = "a".repeat(4 << 20);
    for n in 0..20 {
        let inputs = serde_json::json!({ "q": input });
        store.launch(Launch { inputs, ..store_kit::launch(n) }).await.unwrap();
    }
    let pattern = format!("input.q:*{}b*", "a".repeat(240));
    let search = store.runs(RunFilter { r#where: Some(pattern), ..RunFilter::default() });
    let other = async {
        tokio::task::yield_now().await;
        store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await.unwrap();
        tokio::time::Instant::now()
    };
    let search = async { (search.await, tokio::time::Instant::now()) };
    let ((searched, searched_at), read_at) = tokio::join!(search, other);
    assert!(read_at < searched_at, "the other read waited for the search");
    let error = searched.unwrap_err();
    assert!(matches!(&error, StoreError::InvalidRequest(text) if text.contains("took longer")), "{error}");
}

#[tokio::test]
async fn database_of_a_later_version_is_rejected_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    drop(open(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 999).unwrap();
    drop(connection);
    let error = open(&path).err().expect("a refusal");
    assert!(matches!(error, StoreError::Newer { found: 999, .. }), "{error}");
    assert!(error.to_string().contains("newer version"));
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = open(&file.join("runs.db")).err().expect("a refusal");
    assert_eq!(error.unavailability(), Some(Unavailability::Unopenable), "{error}");
}

#[tokio::test]
async fn a_backup_is_a_store_and_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("runs.db")).unwrap().store;
    store.launch(store_kit::launch(1)).await.unwrap();
    let copy = folder.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    assert_eq!(open(&copy).unwrap().store.runs(RunFilter::default()).await.unwrap().runs.len(), 1);
    assert!(store.backup(&copy).await.unwrap_err().to_string().contains("exists"));
}

/// Names of the files in a folder.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_import_copies_everything_and_changes_nothing() {
    let (folder, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = folder.path().join("old.db");
    let old = open(&path).unwrap().store;
    store_kit::fill(&old).await;
    let before = store_kit::contents(&old).await;
    let identity = old.identity();
    drop(old);
    let (bytes, names) = (std::fs::read(&path).unwrap(), files(folder.path()));
    let new = open(&target.path().join("new.db")).unwrap().store;
    let tables = new.import(&path).await.unwrap();
    let rows = |name: &str| tables.iter().find(|of| of.table == name).map(|of| of.rows);
    assert_eq!((rows("runs"), rows("documents"), rows("session_lines")), (Some(3), Some(1), Some(1)));
    assert_eq!((rows("identity"), rows("contracts")), (None, Some(1)));
    assert!(std::fs::read(&path).unwrap() == bytes);
    assert_eq!(files(folder.path()), names);
    assert_ne!(new.identity(), identity, "two stores are never one");
    store_kit::is_continued(&new, &before).await;
    let again = new.import(&path).await.unwrap_err();
    assert!(matches!(&again, StoreError::NotEmpty { found, .. } if found == "4 runs"), "{again}");
}

#[tokio::test]
async fn an_import_plays_back_a_log_in_a_copy() {
    let (folder, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (live, left) = (folder.path().join("live.db"), folder.path().join("left.db"));
    let old = open(&live).unwrap().store;
    old.launch(store_kit::launch(1)).await.unwrap();
    // As a process leaves them that was killed.
    for suffix in ["", "-wal"] {
        std::fs::copy(format!("{}{suffix}", live.display()), format!("{}{suffix}", left.display())).unwrap();
    }
    let log = std::fs::read(folder.path().join("left.db-wal")).unwrap();
    assert!(!log.is_empty());
    let new = open(&target.path().join("new.db")).unwrap().store;
    new.import(&left).await.unwrap();
    assert_eq!(new.runs(RunFilter::default()).await.unwrap().runs.len(), 1);
    assert!(std::fs::read(folder.path().join("left.db-wal")).unwrap() == log);
}

#[tokio::test]
async fn import_rejects_files_that_are_not_earlier_stores() {
    let folder = tempfile::tempdir().unwrap();
    let (path, newer) = (folder.path().join("runs.db"), folder.path().join("newer.db"));
    let store = open(&path).unwrap().store;
    assert!(matches!(store.import(&path).await, Err(StoreError::InvalidRequest(_))), "not into itself");
    drop(open(&newer).unwrap());
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 999).unwrap();
    let error = store.import(&newer).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 999, .. }), "{error}");
    let (text, empty) = (folder.path().join("text"), folder.path().join("empty"));
    std::fs::write(&text, "runs\n".repeat(500)).unwrap();
    std::fs::write(&empty, "").unwrap();
    for (file, cause) in [
        (&text, Unavailability::Damaged),
        (&empty, Unavailability::Damaged),
        (&folder.path().join("none"), Unavailability::Missing),
    ] {
        let error = store.import(file).await.unwrap_err();
        assert_eq!(error.unavailability(), Some(cause), "{error}");
    }
    assert!(store.runs(RunFilter::default()).await.unwrap().runs.is_empty());
}

#[tokio::test]
async fn inconsistencies_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = open(&path).unwrap().store;
    store.launch(store_kit::launch(1)).await.unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("DELETE FROM checkpoints; UPDATE runs SET events = 7").unwrap();
    let health = store.check().await.unwrap();
    assert!(!health.is_sound());
    assert_eq!(
        health.contradictions,
        ["1 runs without their head checkpoint", "1 runs whose events have gaps"]
    );
}

#[tokio::test]
async fn a_run_that_cannot_be_read_stops_neither_claims_nor_lists() {
    let deep = format!("{}{}", "[".repeat(127), "]".repeat(127));
    for damage in [
        format!("UPDATE runs SET target = '{{\"content\": {deep}}}' WHERE seq = 1"),
        format!("UPDATE runs SET inputs = '{{\"q\": {deep}}}', inputs_digest = NULL WHERE seq = 1"),
        format!("UPDATE checkpoints SET state = '{{\"q\": {deep}}}', digest = NULL WHERE run = (SELECT id FROM runs WHERE seq = 1)"),
        "UPDATE events SET data = '{' WHERE global = 1; PRAGMA foreign_keys = OFF; UPDATE runs SET contract_digest = 'gone' WHERE seq = 1".to_owned(),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let store = open(&path).unwrap().store;
        let first = store.launch(store_kit::launch(1)).await.unwrap().run.id;
        let second = store.launch(store_kit::launch(2)).await.unwrap().run.id;
        rusqlite::Connection::open(&path).unwrap().execute_batch(&damage).unwrap();
        let worker = skills_store::WorkerId("w".to_owned());
        let claimed = store.claim(&worker, 30_000, None).await.unwrap().expect("the second run");
        assert_eq!(claimed.run.id, second, "{damage}");
        let listed = store.runs(RunFilter::default()).await.unwrap().runs;
        let state = |id: &RunId| listed.iter().find(|run| run.id == *id).unwrap().state;
        assert_eq!(state(&first), RunState::Failed, "{damage}");
        assert!(store.run(&first).await.unwrap().unwrap().error.is_some(), "{damage}");
        assert!(store.events(Some(&first), 0, 10).await.unwrap().len() >= 2, "{damage}");
    }
}

#[tokio::test]
async fn deadline_that_overflowed_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = open(&path).unwrap().store;
    let run = store.launch(store_kit::launch(1)).await.unwrap().run.id;
    // As an earlier version stored a sum of times.
    let overflow = "UPDATE runs SET expires_ms = 9223372036854775807 + 1000";
    rusqlite::Connection::open(&path).unwrap().execute_batch(overflow).unwrap();
    let listed = store.runs(RunFilter::default()).await.unwrap().runs;
    assert_eq!(listed.iter().map(|run| run.expires_ms).collect::<Vec<_>>(), [None]);
    let canceled = store.command(&run, Command::Cancel, None, None, None).await.unwrap();
    assert_eq!((canceled.run.state, canceled.run.expires_ms), (RunState::Canceled, None));
}

/// The steps of each attempt may have megabytes, and other writes wait for those of a resume.
#[tokio::test]
async fn resume_writes_no_steps_of_earlier_attempts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = open(&path).unwrap().store;
    let run = store.launch(store_kit::launch(1)).await.unwrap().run.id;
    let trigger = "CREATE TRIGGER superseded BEFORE UPDATE ON steps WHEN OLD.superseded = 1
        BEGIN SELECT RAISE(ABORT, 'the step is superseded'); END";
    rusqlite::Connection::open(&path).unwrap().execute_batch(trigger).unwrap();
    let failed = StepRecord {
        step: "one".into(),
        status: StepStatus::Failed,
        inputs: json!({}),
        result: json!({"code": "runtime_error"}),
        binding: None,
        isolation: None,
        attempts: 1,
        started_ms: 1,
        ended_ms: 2,
        omitted_bytes: None,
    };
    for _ in 0..3 {
        let claim = store.claim(&WorkerId("w1".into()), 30_000, None).await.unwrap().unwrap();
        let report = Command::Work { fence: claim.fence, report: WorkerReport::Fail };
        store.report(&run, report, vec![failed.clone()], None, vec![], vec![]).await.unwrap();
        store.command(&run, Command::Resume, None, None, None).await.unwrap();
        assert!(store.steps(&run, u64::MAX).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_damaged_row_is_listed_as_failed() {
    for damage in ["state = 'suspended'", "steps_done = 'many'", "since_ms = 'then', expires_ms = 'soon'"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let store = open(&path).unwrap().store;
        for n in 1..=3 {
            store.launch(store_kit::launch(n)).await.unwrap();
        }
        let damage = format!("UPDATE runs SET {damage} WHERE seq = 2");
        rusqlite::Connection::open(&path).unwrap().execute_batch(&damage).unwrap();
        let mut filter = RunFilter { limit: 1, ..RunFilter::default() };
        let mut states = Vec::new();
        loop {
            let page = store.runs(filter.clone()).await.unwrap();
            states.extend(page.runs.into_iter().map(|run| (run.id.0, run.state, run.error.is_some())));
            let Some(next) = page.next else { break };
            filter.cursor = Some(next);
        }
        let expected = [
            ("run-0003".to_owned(), RunState::Pending, false),
            ("run-0002".to_owned(), RunState::Failed, true),
            ("run-0001".to_owned(), RunState::Pending, false),
        ];
        assert_eq!(states, expected, "{damage}");
        store.runs_by_skill().await.unwrap();
        assert!(store.expired().await.unwrap().is_empty(), "{damage}");
    }
}

#[tokio::test]
async fn purge_frees_disk_space() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let time = Time::new();
    let store = Sqlite::open(&path, time.clock()).unwrap().store;
    for n in 0..200 {
        let inputs = serde_json::json!({"text": "x".repeat(4000)});
        store.launch(Launch { inputs, ..store_kit::launch(n) }).await.unwrap();
        let run = RunId(format!("run-{n:04}"));
        store.command(&run, Command::Cancel, None, None, None).await.unwrap();
    }
    let full = store.check().await.unwrap().bytes;
    time.pass(1);
    assert_eq!(store.purge(i64::MAX).await.unwrap(), 200);
    store.compact().await.unwrap();
    let health = store.check().await.unwrap();
    assert!(health.is_sound(), "{health:?}");
    assert!(health.bytes * 4 < full && std::fs::metadata(&path).unwrap().len() * 4 < full, "{health:?}");
    store.launch(store_kit::launch(1)).await.unwrap();
}

#[tokio::test]
async fn read_only_database_error_states_what_to_do() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    drop(open(&path).unwrap());
    let rights = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    rights(0o444);
    if std::fs::OpenOptions::new().write(true).open(&path).is_ok() {
        return eprintln!("skipped: this user may write to everything");
    }
    let opened = open(&path).unwrap();
    assert_eq!(opened.notices.len(), 1);
    let error = opened.store.launch(store_kit::launch(1)).await.unwrap_err();
    assert_eq!(error.unavailability(), Some(Unavailability::ReadOnly), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let (a, b) = (Arc::new(open(&path).unwrap().store), Arc::new(open(&path).unwrap().store));
    let waiter = tokio::spawn({
        let b = b.clone();
        async move { b.wait(0, 20_000).await.map(|()| std::time::Instant::now()) }
    });
    a.launch(store_kit::launch(1)).await.unwrap();
    waiter.await.unwrap().unwrap();
    assert_eq!(b.events(None, 0, 10).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workbenches_that_decide_the_same_approval_get_one_decision() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let (a, b) = (open(&path).unwrap().store, open(&path).unwrap().store);
    for n in 0..20 {
        let run = store_kit::waiting(&a, n).await;
        let (yes, no) = futures::join!(
            a.command(&run, store_kit::decision(Verdict::Approve), None, None, None),
            b.command(&run, store_kit::decision(Verdict::Deny), None, None, None),
        );
        assert_eq!(u8::from(yes.is_ok()) + u8::from(no.is_ok()), 1, "{yes:?} {no:?}");
        let refused = yes.as_ref().err().or(no.as_ref().err()).unwrap().to_string();
        assert!(refused.contains("already decided") || refused.contains("does not take"), "{refused}");
        assert_eq!(b.decisions(&run).await.unwrap().len(), 1);
        a.command(&run, Command::Cancel, None, None, None).await.ok();
    }
}
