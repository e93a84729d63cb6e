//! The embedded store: the kit on a file and in memory, and what a file can suffer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod store_kit;

use std::path::Path;
use std::sync::Arc;

use skill_workbench::store::{RunFilter, Sqlite, Store, StoreError};
use store_kit::Time;

fn open(path: &Path) -> Result<skill_workbench::store::Opened, StoreError> {
    Sqlite::open(path, Time::new().clock())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kit_on_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let next = std::sync::atomic::AtomicU32::new(0);
    store_kit::run_all(async |time: Time| {
        let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Sqlite::open(&folder.path().join(format!("{n}.db")), time.clock()).unwrap().store
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kit_in_memory() {
    store_kit::run_all(async |time: Time| Sqlite::in_memory(time.clock()).unwrap()).await;
}

#[tokio::test]
async fn what_was_answered_is_there_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/runs.db");
    let first = open(&path).unwrap().store;
    first.launch(store_kit::launch(1)).await.unwrap();
    drop(first);
    let second = open(&path).unwrap().store;
    assert_eq!(second.runs(RunFilter::default()).await.unwrap().runs.len(), 1);
    assert_eq!(second.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let rubbish = b"this is no database, but somebody may still want it ".repeat(100);
    std::fs::write(&path, &rubbish).unwrap();
    let opened = open(&path).unwrap();
    let aside = opened.set_aside.expect("it is told where the file went");
    assert_eq!(std::fs::read(aside).unwrap(), rubbish);
    opened.store.launch(store_kit::launch(1)).await.unwrap();
}

#[tokio::test]
async fn a_database_of_a_later_version_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    drop(open(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 999).unwrap();
    drop(connection);
    let error = open(&path).err().expect("a refusal");
    assert!(matches!(error, StoreError::Newer { found: 999, .. }), "{error}");
    assert!(error.to_string().contains("later version"));
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = open(&file.join("runs.db")).err().expect("a refusal").to_string();
    assert!(error.contains("creating the folder of sqlite:"), "{error}");
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
