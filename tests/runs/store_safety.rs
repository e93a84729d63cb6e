//! What may not happen to a store: that it is replaced silently, that what was accepted is lost, that it cannot even be
//! read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use skills_store::{
    KnownStores, OpenOptions, OpenedStore, RunFilter, Sqlite, Store, StoreError, Unavailability, adopt,
    reset, restore,
};

use crate::store_kit::{self, Time};

/// A folder with a store of one run that is recorded.
struct Fixture {
    folder: tempfile::TempDir,
    options: OpenOptions,
}

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let known = Some(KnownStores::new(folder.path().join("state/stores.json")));
        let fixture = Self { folder, options: OpenOptions { known, ..OpenOptions::default() } };
        fixture.open().unwrap().store.launch(store_kit::launch(1)).await.unwrap();
        fixture
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("runs.db")
    }

    fn open(&self) -> Result<OpenedStore, StoreError> {
        Sqlite::open_with(&self.path(), &self.options, Time::new().clock())
    }

    /// The database and its log, as a killed process leaves them after these launches.
    async fn kill_after(&self, launches: std::ops::Range<u32>) {
        let store = self.open().unwrap().store;
        for n in launches {
            store.launch(store_kit::launch(n)).await.unwrap();
        }
        let left = self.files();
        drop(store);
        for (file, bytes) in self.names().iter().zip(left) {
            std::fs::write(file, bytes.expect("it is there")).unwrap();
        }
    }

    fn names(&self) -> [PathBuf; 2] {
        [self.path(), self.folder.path().join("runs.db-wal")]
    }

    fn files(&self) -> [Option<Vec<u8>>; 2] {
        self.names().map(|file| std::fs::read(file).ok())
    }

    fn refusal(&self) -> Unavailability {
        let error = self.open().err().expect("a refusal");
        error.unavailability().unwrap_or_else(|| panic!("{error}"))
    }
}

async fn runs(store: &Sqlite) -> usize {
    store.runs(RunFilter::default()).await.unwrap().runs.len()
}

/// A small file system of its own, where this user may mount one.
struct Mount(tempfile::TempDir);

impl Mount {
    fn new(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mount = ["-t", "tmpfs", "-o", &options, "tmpfs", folder.path().to_str().unwrap()];
        let made = Command::new("mount").args(mount).output().is_ok_and(|output| output.status.success());
        if !made {
            eprintln!("skipped: this user may not mount a file system");
        }
        made.then_some(Self(folder))
    }

    fn remount(&self, how: &str) {
        let remount = ["-o", how, self.0.path().to_str().unwrap()];
        assert!(Command::new("mount").args(remount).status().unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0.path()).status());
    }
}

#[tokio::test]
async fn damaged_files_are_rejected_and_not_changed() {
    let damages: [(&str, fn(&[u8]) -> Vec<u8>); 4] = [
        ("header", |bytes| [&b"XXXX"[..], &bytes[4..]].concat()),
        ("cut", |bytes| bytes[..bytes.len() / 2 + 100].to_vec()),
        ("random", |bytes| bytes.iter().enumerate().map(|(at, byte)| byte ^ (at * 31 + 7) as u8).collect()),
        ("empty", |_| Vec::new()),
    ];
    for (name, damage) in damages {
        let fixture = Fixture::new().await;
        let damaged = damage(&std::fs::read(fixture.path()).unwrap());
        std::fs::write(fixture.path(), &damaged).unwrap();
        assert_eq!(fixture.refusal(), Unavailability::Damaged, "{name}");
        assert!(std::fs::read(fixture.path()).unwrap() == damaged, "{name}: the file was changed");
        let unrecorded = OpenOptions { known: None, ..fixture.options.clone() };
        if name != "empty" {
            let error = Sqlite::open_with(&fixture.path(), &unrecorded, Time::new().clock()).err().unwrap();
            assert_eq!(error.unavailability(), Some(Unavailability::Damaged), "{name}");
        }
    }
}

/// `SQLite` fills an incomplete last page with zeros.
#[tokio::test]
async fn store_truncated_within_a_page_is_rejected() {
    let fixture = Fixture::new().await;
    let complete = std::fs::read(fixture.path()).unwrap();
    for cut in [1, 100, 1_004, 4_095] {
        std::fs::write(fixture.path(), &complete[..complete.len() - cut]).unwrap();
        assert_eq!(fixture.refusal(), Unavailability::Damaged, "{cut}");
        assert_eq!(std::fs::metadata(fixture.path()).unwrap().len(), (complete.len() - cut) as u64);
    }
    std::fs::write(fixture.path(), &complete).unwrap();
    assert_eq!(runs(&fixture.open().unwrap().store).await, 1);
}

#[tokio::test]
async fn a_missing_store_is_not_created_again() {
    let fixture = Fixture::new().await;
    std::fs::rename(fixture.path(), fixture.folder.path().join("elsewhere.db")).unwrap();
    assert_eq!(fixture.refusal(), Unavailability::Missing);
    assert!(!fixture.path().exists());
    std::fs::rename(fixture.folder.path().join("elsewhere.db"), fixture.path()).unwrap();
    assert_eq!(runs(&fixture.open().unwrap().store).await, 1);
}

#[tokio::test]
async fn another_store_at_a_known_path_is_refused() {
    let fixture = Fixture::new().await;
    let other = Fixture::new().await;
    let expected = other.open().unwrap().store.identity();
    std::fs::copy(other.path(), fixture.path()).unwrap();
    let error = fixture.open().err().unwrap();
    assert_eq!(error.unavailability(), Some(Unavailability::Replaced));
    assert!(error.to_string().contains(&expected), "both ids are named: {error}");
    assert_eq!(adopt(&fixture.path(), &fixture.options, Time::new().clock()).unwrap(), expected);
    assert_eq!(runs(&fixture.open().unwrap().store).await, 1);
}

#[tokio::test]
async fn a_restored_backup_is_the_same_store() {
    let fixture = Fixture::new().await;
    let copy = fixture.folder.path().join("copy.db");
    fixture.open().unwrap().store.backup(&copy).await.unwrap();
    let mode = std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "{mode:o}");
    std::fs::rename(&copy, fixture.path()).unwrap();
    assert_eq!(runs(&fixture.open().unwrap().store).await, 1);
}

#[tokio::test]
async fn the_log_of_a_killed_process_is_merged() {
    let fixture = Fixture::new().await;
    fixture.kill_after(2..40).await;
    assert_eq!(runs(&fixture.open().unwrap().store).await, 39);
    let [_, log] = fixture.files();
    assert!(log.is_none(), "the log is merged when the store is closed");
}

#[tokio::test]
async fn a_leftover_log_is_not_merged_into_another_file() {
    let replacements: [(&str, &[u32]); 2] = [("backup", &[2]), ("backup, one run later", &[2, 3])];
    for (name, before) in replacements {
        let fixture = Fixture::new().await;
        let backup = fixture.folder.path().join("backup.db");
        let store = fixture.open().unwrap().store;
        for n in before {
            store.launch(store_kit::launch(*n)).await.unwrap();
        }
        store.backup(&backup).await.unwrap();
        drop(store);
        fixture.kill_after(10..50).await;
        std::fs::copy(&backup, fixture.path()).unwrap();
        let copied = fixture.files();
        let error = fixture.open().err().expect("a refusal");
        assert_eq!(error.unavailability(), Some(Unavailability::Damaged), "{name}: {error}");
        assert!(error.to_string().contains("runs.db-wal"), "{name}: {error}");
        assert!(fixture.files() == copied, "{name}: a file was changed");
        std::fs::remove_file(&fixture.names()[1]).unwrap();
        assert_eq!(runs(&fixture.open().unwrap().store).await, 1 + before.len(), "{name}");
    }
}

#[tokio::test]
async fn leftover_log_does_not_hide_another_store() {
    let fixture = Fixture::new().await;
    let other = Fixture::new().await;
    fixture.kill_after(2..50).await;
    std::fs::copy(other.path(), fixture.path()).unwrap();
    let copied = fixture.files();
    assert!([Unavailability::Damaged, Unavailability::Replaced].contains(&fixture.refusal()));
    assert!(fixture.files() == copied, "a file was changed");
}

#[tokio::test]
async fn a_leftover_log_is_not_merged_into_a_damaged_file() {
    let damages: [(&str, fn(&[u8]) -> Vec<u8>); 2] = [
        ("cut", |bytes| bytes[..bytes.len() / 2].to_vec()),
        ("pages", |bytes| {
            let mut bytes = bytes.to_vec();
            let (half, page) = (bytes.len() / 2, 4096);
            for page in bytes[half / page * page..].chunks_mut(page) {
                page[..200].fill(0xff);
            }
            bytes
        }),
    ];
    for (name, damage) in damages {
        let fixture = Fixture::new().await;
        let store = fixture.open().unwrap().store;
        for n in 2..400 {
            store.launch(store_kit::launch(n)).await.unwrap();
        }
        drop(store);
        fixture.kill_after(400..401).await;
        let damaged = damage(&std::fs::read(fixture.path()).unwrap());
        std::fs::write(fixture.path(), &damaged).unwrap();
        let before = fixture.files();
        assert_eq!(fixture.refusal(), Unavailability::Damaged, "{name}");
        assert!(fixture.files() == before, "{name}: a file was changed");
    }
}

#[tokio::test]
async fn backup_is_restored_despite_a_leftover_log() {
    let fixture = Fixture::new().await;
    let backup = fixture.folder.path().join("backup.db");
    let store = fixture.open().unwrap().store;
    store.backup(&backup).await.unwrap();
    let clock = || Time::new().clock();
    let restored = || restore(&fixture.path(), &backup, &fixture.options, clock());
    let busy = restored().unwrap_err();
    assert_eq!(busy.unavailability(), Some(Unavailability::Busy), "this process has it open: {busy}");
    let id = store.identity();
    drop(store);
    fixture.kill_after(10..50).await;
    let before = fixture.files();

    let other = Fixture::new().await;
    let damaged = fixture.folder.path().join("damaged.db");
    std::fs::write(&damaged, &std::fs::read(&backup).unwrap()[..60_000]).unwrap();
    for (wrong, cause) in [(&other.path(), Unavailability::Replaced), (&damaged, Unavailability::Damaged)] {
        let error = restore(&fixture.path(), wrong, &fixture.options, clock()).unwrap_err();
        assert_eq!(error.unavailability(), Some(cause), "{error}");
        assert!(fixture.files() == before, "a file was changed");
    }

    let done = restored().unwrap();
    assert_eq!((done.id, done.set_aside.len()), (id, 2));
    assert!([0, 1].map(|at| std::fs::read(&done.set_aside[at]).ok()) == before, "the former files are kept");
    assert_eq!(runs(&fixture.open().unwrap().store).await, 1);
}

#[tokio::test]
async fn a_reset_keeps_the_former_files() {
    let fixture = Fixture::new().await;
    let damaged = b"no database".repeat(500);
    std::fs::write(fixture.path(), &damaged).unwrap();
    let done = reset(&fixture.path(), &fixture.options, Time::new().clock()).unwrap();
    assert_eq!(done.set_aside.len(), 1);
    assert!(std::fs::read(&done.set_aside[0]).unwrap() == damaged);
    let opened = fixture.open().unwrap();
    assert_eq!((opened.store.identity(), runs(&opened.store).await), (done.id, 0));
}

#[tokio::test]
async fn a_store_that_must_exist_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let options = OpenOptions { must_exist: true, ..OpenOptions::default() };
    let path = folder.path().join("runs.db");
    let error = Sqlite::open_with(&path, &options, Time::new().clock()).err().unwrap();
    assert_eq!(error.unavailability(), Some(Unavailability::Missing));
    assert!(!path.exists());
}

#[tokio::test]
async fn a_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("places.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE places (a)").unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = Sqlite::open(&path, Time::new().clock()).err().unwrap();
    assert_eq!(error.unavailability(), Some(Unavailability::Unopenable));
    let error = reset(&path, &OpenOptions::default(), Time::new().clock()).unwrap_err();
    assert_eq!(error.unavailability(), Some(Unavailability::Unopenable), "it is not renamed either");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_files_accept_no_writes() {
    let losses: [(&str, fn(&Path), Unavailability); 5] = [
        (
            "moved",
            |path| std::fs::rename(path, path.with_extension("moved")).unwrap(),
            Unavailability::Missing,
        ),
        (
            "replaced",
            |path| {
                std::fs::copy(path, path.with_extension("copy")).unwrap();
                std::fs::rename(path.with_extension("copy"), path).unwrap();
            },
            Unavailability::Replaced,
        ),
        ("emptied", |path| drop(std::fs::File::create(path).unwrap()), Unavailability::Damaged),
        (
            "log deleted",
            |path| std::fs::remove_file(path.with_extension("db-wal")).unwrap(),
            Unavailability::Missing,
        ),
        (
            "shared memory deleted",
            |path| std::fs::remove_file(path.with_extension("db-shm")).unwrap(),
            Unavailability::Missing,
        ),
    ];
    for (name, lose, cause) in losses {
        let fixture = Fixture::new().await;
        let store = fixture.open().unwrap().store;
        store.launch(store_kit::launch(2)).await.unwrap();
        store.probe().await.unwrap();
        assert!(store.write_failure().is_none());
        lose(&fixture.path());
        let error = store.launch(store_kit::launch(3)).await.unwrap_err();
        assert_eq!(error.unavailability(), Some(cause), "{name}: {error}");
        assert!(store.probe().await.is_err(), "{name}");
        let failure = store.write_failure().unwrap();
        assert_eq!(failure.error.unavailability(), Some(cause), "{name}: {}", failure.error);
        assert_ne!(failure.since_ms, 0, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_does_not_write_into_another_store() {
    let [own, other] = [Fixture::new().await, Fixture::new().await];
    let store = own.open().unwrap().store;
    store.launch(store_kit::launch(2)).await.unwrap();
    let log = std::fs::read(own.path().with_extension("db-wal")).unwrap();
    // In place: the file keeps its inode.
    let foreign = std::fs::read(other.path()).unwrap();
    std::fs::write(own.path(), &foreign).unwrap();
    drop(store);
    assert_eq!(std::fs::read(own.path()).unwrap(), foreign, "the file was written");
    assert_eq!(std::fs::read(own.path().with_extension("db-wal")).unwrap(), log, "the log was changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_that_reappears_is_used_again() {
    let fixture = Fixture::new().await;
    let store = fixture.open().unwrap().store;
    store.launch(store_kit::launch(2)).await.unwrap();
    let aside = fixture.folder.path().join("aside.db");
    std::fs::rename(fixture.path(), &aside).unwrap();
    assert!(store.probe().await.is_err());
    std::fs::rename(&aside, fixture.path()).unwrap();
    store.probe().await.unwrap();
    assert!(store.write_failure().is_none());
    store.launch(store_kit::launch(3)).await.unwrap();
    assert_eq!(runs(&store).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_is_reported_and_recovered_from() {
    let Some(mount) = Mount::new("2m") else { return };
    let store = Sqlite::open(&mount.0.path().join("runs.db"), Time::new().clock()).unwrap().store;
    store.launch(store_kit::launch(0)).await.unwrap();
    let filler = mount.0.path().join("filler");
    // Filled to the last block, whatever the size of the blocks.
    drop(std::fs::write(&filler, vec![0; 4 << 20]));
    let mut accepted = 1;
    let error = loop {
        match store.launch(store_kit::launch(accepted)).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 10_000, "the disk never became full");
    };
    assert_eq!(error.unavailability(), Some(Unavailability::DiskFull), "{error}");
    let failure = store.write_failure().unwrap();
    assert_eq!(failure.error.unavailability(), Some(Unavailability::DiskFull));
    std::fs::remove_file(&filler).unwrap();
    store.probe().await.unwrap();
    assert!(store.write_failure().is_none());
    store.launch(store_kit::launch(accepted)).await.unwrap();
    assert_eq!(runs(&store).await, accepted as usize + 1, "nothing accepted is lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_store_is_read() {
    let Some(mount) = Mount::new("4m") else { return };
    let path = mount.0.path().join("runs.db");
    drop(Sqlite::open(&path, Time::new().clock()).unwrap().store.launch(store_kit::launch(0)).await.unwrap());
    for log in [false, true] {
        if log {
            // As a snapshot of a running service has it: with a log that was not folded in, and no shared memory.
            let store = Sqlite::open(&path, Time::new().clock()).unwrap().store;
            store.launch(store_kit::launch(1)).await.unwrap();
            let side = |suffix: &str| mount.0.path().join(format!("runs.db{suffix}"));
            let copies = ["", "-wal"].map(|suffix| (side(suffix), std::fs::read(side(suffix)).unwrap()));
            drop(store);
            for (file, bytes) in copies {
                std::fs::write(file, bytes).unwrap();
            }
        }
        mount.remount("remount,ro");
        let opened = Sqlite::open(&path, Time::new().clock()).unwrap();
        assert_eq!(opened.notices.len(), 1, "it is said");
        assert!(opened.notices[0].contains("mounted read-only"), "{:?}", opened.notices);
        assert_eq!(runs(&opened.store).await, 1 + usize::from(log), "log: {log}");
        assert!(opened.store.check().await.unwrap().is_sound());
        let error = opened.store.launch(store_kit::launch(9)).await.unwrap_err();
        assert_eq!(error.unavailability(), Some(Unavailability::ReadOnly));
        assert!(opened.store.write_failure().is_some());
        drop(opened);
        mount.remount("remount,rw");
    }
}

#[tokio::test]
async fn log_is_merged_when_the_store_is_unused() {
    let fixture = Fixture::new().await;
    let log = fixture.folder.path().join("runs.db-wal");
    assert!(!log.exists(), "the first store was closed");
    let (a, b) = (fixture.open().unwrap().store, fixture.open().unwrap().store);
    a.launch(store_kit::launch(2)).await.unwrap();
    drop(a);
    assert!(log.exists(), "the other one uses it");
    drop(b);
    assert!(!log.exists());
    let copy = fixture.folder.path().join("copy.db");
    std::fs::copy(fixture.path(), &copy).unwrap();
    assert_eq!(runs(&Sqlite::open(&copy, Time::new().clock()).unwrap().store).await, 2);
}

#[tokio::test]
async fn permissions_follow_the_mode_not_the_umask() {
    for mode in [0o600, 0o660] {
        let fixture = Fixture::new().await;
        let path = fixture.folder.path().join("new/runs.db");
        let options = OpenOptions { mode, ..fixture.options.clone() };
        let store = Sqlite::open_with(&path, &options, Time::new().clock()).unwrap().store;
        store.launch(store_kit::launch(1)).await.unwrap();
        let found = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(found(path.parent().unwrap()), 0o700);
        for file in ["runs.db", "runs.db-wal", "runs.db-shm"] {
            assert_eq!(found(&path.with_file_name(file)), mode, "{file}");
        }
    }
}

#[tokio::test]
async fn an_own_store_is_restricted_and_a_named_one_reported() {
    let fixture = Fixture::new().await;
    let widen = || std::fs::set_permissions(fixture.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let mode = || std::fs::metadata(fixture.path()).unwrap().permissions().mode() & 0o777;
    widen();
    assert_eq!(fixture.open().unwrap().notices.len(), 1);
    assert_eq!(mode(), 0o644);
    let own = OpenOptions { own_folder: true, ..fixture.options.clone() };
    assert!(Sqlite::open_with(&fixture.path(), &own, Time::new().clock()).unwrap().notices.is_empty());
    assert_eq!(mode(), 0o600);
}
