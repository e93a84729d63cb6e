//! Opens a database file: the conditions before anything is written, the read-only fallbacks for a file that cannot be
//! written, and what a user may decide about a file that is refused.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::guard::{FileGuard, OpenCount};
use super::leftover::{check_leftover_log, ensure_own, ensure_shared_memory, has_log};
use super::{Sqlite, failed, identity_of, reading, schema, storage};
use crate::{Clocks, KnownStores, StoreError, Unavailability};
use skills_base::private_files;

/// Suffixes of the files next to a database.
pub(super) const SIDE_FILES: [&str; 2] = ["-wal", "-shm"];

/// Size and modification time of the database and its log.
pub(super) type FileState = [Option<(u64, Option<SystemTime>)>; 2];

/// Options for opening a database file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Permissions of the database and the files next to it.
    pub mode: u32,
    /// Record of which store was opened at which path, if there is one.
    pub known: Option<KnownStores>,
    /// Whether to refuse to create the file.
    pub must_exist: bool,
    /// Whether the file is in a folder of this program: permissions beyond `mode` are then removed.
    pub own_folder: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { mode: private_files::FILE_MODE, known: None, must_exist: false, own_folder: false }
    }
}

/// An opened store, and notices for the user about how it was opened.
pub struct OpenedStore {
    pub store: Sqlite,
    /// Notices, for example that it is read-only, readable by others, or not recorded.
    pub notices: Vec<String>,
}

/// A new or restored store, and the files of the previous one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset {
    pub id: String,
    /// New paths of the previous files.
    pub set_aside: Vec<PathBuf>,
}

impl Sqlite {
    /// Opens a database file without a record of earlier ones, creating it and its folder if needed.
    pub fn open(path: &Path, clocks: impl Into<Clocks>) -> Result<OpenedStore, StoreError> {
        Self::open_with(path, &OpenOptions::default(), clocks)
    }

    /// Opens a database file. It is created only if no store is known to have existed there. A damaged file, a store
    /// other than the known one, or a file next to the log of another one, is refused and left untouched. A file that
    /// cannot be written is opened read-only.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`], [`StoreError::Newer`], or [`StoreError::Failed`] with the error of the
    /// system.
    pub fn open_with(
        path: &Path,
        options: &OpenOptions,
        clocks: impl Into<Clocks>,
    ) -> Result<OpenedStore, StoreError> {
        let clocks = clocks.into();
        let place = store_uri(path);
        let mut notices = Vec::new();
        let expected = match &options.known {
            Some(known) => known.id_at(path)?,
            None => None,
        };
        let existed = prepare_file(path, options, expected.as_deref())?;
        let open_here = OpenCount::count(path, || {
            ensure_shared_memory(path, &place)?;
            check_leftover_log(path, &place, expected.as_deref())?;
            ensure_complete(path, &place)
        })?;
        if options.own_folder {
            for file in files_of(path) {
                if let Err(error) = private_files::restrict(&file, options.mode) {
                    tracing::warn!("cannot change the permissions of {}: {error}", file.display());
                }
            }
        } else if let Ok(Some(excess)) = private_files::excess(path, options.mode) {
            notices.push(format!(
                "{place} has permissions beyond {:04o} (others: {excess:03o}); run chmod {0:o} {1}*, or \
                    set store_mode in config.yaml",
                options.mode,
                path.display()
            ));
        }
        let opened = open_for_writing(path, &place, expected.as_deref(), &clocks);
        let store = match opened {
            Ok(store) => Sqlite { _open_here: open_here, ..store },
            Err(error) if existed && may_still_be_read(&error) => {
                let (store, notice) = open_for_reading(path, &place, expected.as_deref(), error, clocks)?;
                notices.push(notice);
                return Ok(OpenedStore { store: Sqlite { _open_here: open_here, ..store }, notices });
            }
            Err(error) => return Err(error),
        };
        if let Some(known) = options.known.as_ref().filter(|_| expected.is_none()) {
            match known.adopt(path, &store.identity, store.clocks.now().wall_ms) {
                Ok(id) if id == store.identity => {}
                // Two processes started with different files at this path: only one of them is right.
                Ok(id) => return Err(replaced(&place, &id, Some(&store.identity))),
                Err(error) => notices.push(format!(
                    "cannot record {place}, so a later loss of its file would not be detected ({error}); \
                        use --store-must-exist"
                )),
            }
        }
        Ok(OpenedStore { store, notices })
    }
}

/// Checks that a database without a log has all pages that its header names: `SQLite` would fill the last one with zeros.
fn ensure_complete(path: &Path, place: &str) -> Result<(), StoreError> {
    let mut header = [0; 100];
    let Ok(mut file) = std::fs::File::open(path) else { return Ok(()) };
    let length = file.metadata().map_or(0, |found| found.len());
    // Other headers are reported when the database is opened.
    if has_log(path) || file.read_exact(&mut header).is_err() || !header.starts_with(b"SQLite format 3\0") {
        return Ok(());
    }
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        page => u64::from(page),
    };
    // Written by versions that do not keep the number of pages: <https://www.sqlite.org/fileformat2.html#in_header_database_size>.
    let is_known = number(24) == number(92);
    let expected = if is_known { u64::from(number(28)) * page } else { 0 };
    if page == 0 || (length % page == 0 && length >= expected) {
        return Ok(());
    }
    Err(StoreError::Unavailable {
        cause: Unavailability::Damaged,
        action: format!("open {place}"),
        reason: format!(
            "it is truncated: it has {length} bytes, and its header names {expected}. Restore a backup (`skills db \
             restore FILE`), or start with an empty store (`skills db reset`)"
        ),
    })
}

/// Creates a new, empty store at a path. The previous files are renamed and keep their content.
///
/// # Errors
/// Returns [`StoreError::Unavailable`] if a process has the store open, for a database of another program, and if a
/// file cannot be renamed; or the [`StoreError`] of opening the new one.
pub fn reset(path: &Path, options: &OpenOptions, clocks: impl Into<Clocks>) -> Result<Reset, StoreError> {
    ensure_closed(path, &format!("reset {}", store_uri(path)))?;
    ensure_own(path, &store_uri(path))?;
    let clocks = clocks.into();
    let set_aside = set_aside(path, &format!(".reset-{}", stamp(&clocks)))?;
    if let Some(known) = &options.known {
        known.remove(path)?;
    }
    let store = Sqlite::open_with(path, &OpenOptions { must_exist: false, ..options.clone() }, clocks)?.store;
    Ok(Reset { id: store.identity.clone(), set_aside })
}

/// Copies a backup to a path. The previous files are renamed and keep their content. The anchors of audit logs in the
/// backup are removed: the log may be another one than at that time, and its next anchor is stored at the next start.
///
/// # Errors
/// Returns [`StoreError::Unavailable`] if a process has the store open, for a backup that is damaged or of a store
/// other than the known one, and if a file cannot be written; [`StoreError::Newer`].
pub fn restore(
    path: &Path,
    backup: &Path,
    options: &OpenOptions,
    clocks: impl Into<Clocks>,
) -> Result<Reset, StoreError> {
    let action = format!("restore {}", store_uri(path));
    ensure_closed(path, &action)?;
    ensure_own(path, &store_uri(path))?;
    let expected = options.known.as_ref().map(|known| known.id_at(path)).transpose()?.flatten();
    ensure_backup(backup, expected.as_deref())?;
    let clocks = clocks.into();
    let stamp = stamp(&clocks);
    let failed = |error: std::io::Error| failed(action.clone(), &error);
    if let Some(folder) = path.parent() {
        private_files::create_folder(folder).map_err(failed)?;
    }
    // In the same folder: nothing is renamed before the whole copy is on disk.
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".restore-{stamp}.part"));
    let draft = PathBuf::from(draft);
    let placed = std::fs::copy(backup, &draft)
        .and_then(|_| private_files::set_mode(&draft, options.mode))
        .and_then(|()| std::fs::File::open(&draft)?.sync_all())
        .map_err(failed)
        .and_then(|()| set_aside(path, &format!(".replaced-{stamp}")))
        .and_then(|set_aside| std::fs::rename(&draft, path).map(|()| set_aside).map_err(failed));
    let set_aside = placed.inspect_err(|_| drop(std::fs::remove_file(&draft)))?;
    let store = Sqlite::open_with(path, options, clocks)?.store;
    store.forget_audit_anchors()?;
    Ok(Reset { id: store.identity.clone(), set_aside })
}

/// Checks that a file is a sound store, complete without a log, with the expected id if one is given.
fn ensure_backup(file: &Path, expected: Option<&str>) -> Result<(), StoreError> {
    let place = store_uri(file);
    let refused = |cause, reason: String| {
        Err(StoreError::Unavailable { cause, action: format!("check {place}"), reason })
    };
    match std::fs::metadata(file) {
        Ok(found) if !found.is_file() => {
            return refused(Unavailability::Unopenable, "it is not a file".into());
        }
        Ok(_) => {}
        Err(error) => return Err(failed(format!("open {place}"), &error)),
    }
    ensure_closed(file, &format!("read {place}"))?;
    if has_log(file) {
        let reason = "it has a write-ahead log (-wal), so the file alone is not complete; copy the store with \
                      `skills db backup` instead";
        return refused(Unavailability::Unopenable, reason.into());
    }
    let connection = reading(file, &place, true)?;
    let instead = "restore a file that `skills db backup` wrote";
    match schema::is_foreign(&connection) {
        Ok(false) => {}
        Ok(true) => {
            let reason = format!("it is a database of another program, not a store of runs; {instead}");
            return refused(Unavailability::Unopenable, reason);
        }
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            let reason = format!("it is not a SQLite database, or its header is damaged; {instead}");
            return refused(Unavailability::Damaged, reason);
        }
        Err(error) => return Err(failed(format!("open {place}"), &error)),
    }
    schema::is_present(&connection, &place)?;
    let (damage, interrupted) = storage::damage(&connection, "PRAGMA integrity_check(1)");
    if let Some(found) = damage.into_iter().next().or_else(|| interrupted.map(|error| error.to_string())) {
        return refused(Unavailability::Damaged, format!("the backup is damaged ({found}); use another one"));
    }
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|error| failed(format!("read {place}"), &error))?;
    if tables == 0 {
        return refused(Unavailability::Damaged, format!("it is an empty database; {instead}"));
    }
    let id = identity_of(&connection, &place).ok();
    match expected {
        Some(expected) if id.as_deref() != Some(expected) => {
            let found = id.map_or_else(|| "no store id".to_owned(), |id| format!("the store {id}"));
            let reason = format!(
                "expected the store {expected}, but the backup has {found}. To use it anyway, move the current \
                 files away, copy the backup to the store's path, and accept it with `skills db adopt`"
            );
            refused(Unavailability::Replaced, reason)
        }
        _ => Ok(()),
    }
}

/// Checks that no process has a database open.
pub(super) fn ensure_closed(path: &Path, action: &str) -> Result<(), StoreError> {
    match super::guard::process_using(path) {
        None => Ok(()),
        Some(process) => Err(StoreError::Unavailable {
            cause: Unavailability::Busy,
            action: action.to_owned(),
            reason: format!("it is open in process {process}; stop that process first"),
        }),
    }
}

fn stamp(clocks: &Clocks) -> String {
    let at = jiff::Timestamp::from_millisecond(clocks.now().wall_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.strftime("%Y%m%dT%H%M%S%3fZ").to_string()
}

/// Renames a database and the files next to it; returns their new names.
fn set_aside(path: &Path, suffix: &str) -> Result<Vec<PathBuf>, StoreError> {
    let mut set_aside = Vec::new();
    // The log first: the database without its log is at least a consistent earlier state.
    for (from, side) in files_of(path).into_iter().zip(["", SIDE_FILES[0], SIDE_FILES[1]]).rev() {
        let mut to = path.as_os_str().to_owned();
        to.push(format!("{suffix}{side}"));
        let to = PathBuf::from(to);
        match std::fs::rename(&from, &to) {
            Ok(()) => set_aside.push(to),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(format!("rename {}", from.display()), &error)),
        }
    }
    set_aside.reverse();
    Ok(set_aside)
}

/// Records the store that is at a path now in place of the recorded one; returns its id.
pub fn adopt(path: &Path, options: &OpenOptions, clocks: impl Into<Clocks>) -> Result<String, StoreError> {
    if std::fs::metadata(path).map_or(0, |found| found.len()) == 0 {
        let place = store_uri(path);
        return Err(StoreError::Unavailable {
            cause: Unavailability::Missing,
            action: format!("open {place}"),
            reason: "the file is missing or empty. Move the store's file back, restore a backup with `skills db restore \
                     FILE`, or start with an empty store: `skills db reset`"
                .to_owned(),
        });
    }
    // If it is not a store, the record stays unchanged.
    let unrecorded = OpenOptions { known: None, must_exist: true, ..options.clone() };
    let store = Sqlite::open_with(path, &unrecorded, clocks)?.store;
    if let Some(known) = &options.known {
        known.remove(path)?;
        known.adopt(path, &store.identity, store.clocks.now().wall_ms)?;
    }
    Ok(store.identity.clone())
}

/// Returns whether there is or was a store at a path: its file, its log, or a record of it.
///
/// # Errors
/// Returns [`StoreError::Unavailable`] for a damaged record of known stores.
pub fn has_existed(path: &Path, options: &OpenOptions) -> Result<bool, StoreError> {
    // A file that cannot be checked may exist.
    let is_there = |file: &Path| {
        std::fs::symlink_metadata(file).map_or_else(|e| e.kind() != std::io::ErrorKind::NotFound, |_| true)
    };
    if files_of(path).iter().any(|file| is_there(file)) {
        return Ok(true);
    }
    Ok(options.known.as_ref().map(|known| known.id_at(path)).transpose()?.flatten().is_some())
}

pub(super) fn store_uri(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// Returns the database and the files next to it, whether they exist or not.
pub(super) fn files_of(path: &Path) -> [PathBuf; 3] {
    let with_suffix = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    [path.to_owned(), with_suffix(SIDE_FILES[0]), with_suffix(SIDE_FILES[1])]
}

pub(super) fn file_state(path: &Path) -> FileState {
    let [database, log, _] = files_of(path);
    [database, log].map(|file| {
        let found = std::fs::metadata(file).ok()?;
        Some((found.len(), found.modified().ok()))
    })
}

/// Ensures that there is a file that may be opened, creating it if allowed; returns whether it had content.
fn prepare_file(path: &Path, options: &OpenOptions, expected: Option<&str>) -> Result<bool, StoreError> {
    let place = store_uri(path);
    let refused = |cause, reason: String| {
        Err(StoreError::Unavailable { cause, action: format!("open {place}"), reason })
    };
    let ways_out = "Move the file back or mount its volume, restore a backup with `skills db restore FILE`, or start \
                    with an empty store: `skills db reset`";
    let bytes = match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Some(found.len()),
        Ok(_) => return refused(Unavailability::Unopenable, "it is not a file".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return refused(Unavailability::Unopenable, error.to_string()),
    };
    let [_, log, _] = files_of(path);
    let log_bytes = std::fs::metadata(log).map_or(0, |found| found.len());
    match (bytes, expected) {
        (Some(1..), _) => return Ok(true),
        (None, Some(id)) => {
            let reason = format!("the file of store {id} is missing. {ways_out}");
            return refused(Unavailability::Missing, reason);
        }
        (Some(_), Some(id)) => {
            let reason = format!("the file of store {id} is empty. {ways_out}");
            return refused(Unavailability::Damaged, reason);
        }
        (_, None) if log_bytes > 0 => {
            let what = if bytes.is_some() { "empty" } else { "missing" };
            let reason = format!("the file is {what}, but its log (-wal) has {log_bytes} bytes. {ways_out}");
            return refused(Unavailability::Damaged, reason);
        }
        (_, None) if options.must_exist => {
            let what = match path.parent().filter(|folder| !folder.exists()) {
                Some(folder) => format!("the file and its folder `{}` do not exist", folder.display()),
                None if bytes.is_some() => "the file is empty".to_owned(),
                None => "the file does not exist".to_owned(),
            };
            let reason = format!("{what}; check the path, or create a store with `skills db create`");
            return refused(Unavailability::Missing, reason);
        }
        (Some(_), None) => {}
        (None, None) => {
            if let Some(folder) = path.parent() {
                private_files::create_folder(folder)
                    .map_err(|e| failed(format!("create the folder of {place}"), &e))?;
            }
            private_files::create_file(path, options.mode)
                .map_err(|e| failed(format!("create {place}"), &e))?;
        }
    }
    Ok(false)
}

/// Opens a writing connection to a file that contains a store of this program, or nothing yet.
fn connect(path: &Path, place: &str, expected: Option<&str>) -> Result<Connection, StoreError> {
    let action = || format!("open {place}");
    // Never create it: a file that vanished since the check must not come back empty.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|e| failed(action(), &e))?;
    schema::restrict(&connection).map_err(|e| failed(action(), &e))?;
    if connection.is_readonly("main").map_err(|e| failed(action(), &e))? {
        return Err(StoreError::Unavailable {
            cause: Unavailability::ReadOnly,
            action: action(),
            reason: if is_mounted_read_only(path) {
                "its file system is mounted read-only; remount it, or use another store".to_owned()
            } else {
                "the file is not writable; change its permissions, or use another store".to_owned()
            },
        });
    }
    schema::recognize(&connection, place, expected)?;
    Ok(connection)
}

#[cfg(unix)]
fn is_mounted_read_only(path: &Path) -> bool {
    nix::unistd::access(path, nix::unistd::AccessFlags::W_OK) == Err(nix::errno::Errno::EROFS)
}

#[cfg(not(unix))]
fn is_mounted_read_only(_: &Path) -> bool {
    false
}

fn open_for_writing(
    path: &Path,
    place: &str,
    expected: Option<&str>,
    clocks: &Clocks,
) -> Result<Sqlite, StoreError> {
    let connection = connect(path, place, expected)?;
    schema::configure(&connection).map_err(|e| failed(format!("open {place}"), &e))?;
    let reader = || reading(path, place, false).map(Some);
    Sqlite::start(connection, reader, place.to_owned(), Some(path), clocks.clone())
}

/// Returns why a store cannot be used, without what was attempted.
fn reason(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

/// Returns whether a store that cannot be opened for writing may be readable.
fn may_still_be_read(error: &StoreError) -> bool {
    matches!(
        error.unavailability(),
        Some(Unavailability::ReadOnly | Unavailability::Unopenable | Unavailability::DiskFull)
    )
}

/// Opens a store read-only; `error` is why it cannot be written.
fn open_for_reading(
    path: &Path,
    place: &str,
    expected: Option<&str>,
    error: StoreError,
    clocks: Clocks,
) -> Result<(Sqlite, String), StoreError> {
    let usable = |connection: Connection| -> Result<Option<Connection>, StoreError> {
        schema::recognize(&connection, place, expected)?;
        Ok(schema::is_present(&connection, place)?.then_some(connection))
    };
    let [_, log, _] = files_of(path);
    let log_is_empty = std::fs::metadata(log).map_or(true, |found| found.len() == 0);
    // Normally if its WAL files exist too; as an immutable file if it has no log.
    let mut direct = None;
    for immutable in [false, true] {
        if direct.is_none() && (!immutable || log_is_empty) {
            direct = match reading(path, place, immutable).and_then(&usable) {
                Ok(connection) => connection.map(|connection| (connection, immutable)),
                // Neither way helps against these errors.
                Err(error) if !may_still_be_read(&error) => return Err(error),
                Err(_) => None,
            };
        }
    }
    let store = if let Some((connection, immutable)) = direct {
        Sqlite::start_reading(connection, place, path, immutable, error.clone(), clocks, None)?
    } else {
        let MigratedCopy { folder, file: copy, connection } = migrated_copy(path, place, expected, &error)?;
        Sqlite::start_reading(connection, place, &copy, false, error.clone(), clocks, Some(folder))?
    };
    let why = reason(&error);
    let notice = format!("{place} is read-only; launches, decisions and recording are not possible: {why}");
    Ok((store, notice))
}

/// A copy of a database, migrated to the current schema.
pub(super) struct MigratedCopy {
    /// Temporary folder, removed on drop.
    pub folder: tempfile::TempDir,
    pub file: PathBuf,
    pub connection: Connection,
}

/// Creates a copy of a database whose log has to be replayed or whose schema has to be migrated; `error` is why that is
/// not done to the original.
pub(super) fn migrated_copy(
    path: &Path,
    place: &str,
    expected: Option<&str>,
    error: &StoreError,
) -> Result<MigratedCopy, StoreError> {
    let (folder, file) = copy(path, place, error)?;
    let mut connection = connect(&file, place, expected)?;
    schema::configure(&connection).map_err(|e| failed(format!("open a copy of {place}"), &e))?;
    schema::migrate(&mut connection, place)?;
    Ok(MigratedCopy { folder, file, connection })
}

/// Copies a database and its log to a temporary folder; `error` is why the original cannot be written.
fn copy(path: &Path, place: &str, error: &StoreError) -> Result<(tempfile::TempDir, PathBuf), StoreError> {
    let failed = |e: std::io::Error| failed(format!("copy {place} to read it"), &e);
    let folder = tempfile::tempdir().map_err(failed)?;
    let copy = folder.path().join("runs.db");
    let [_, from_log, _] = files_of(path);
    let [_, to_log, _] = files_of(&copy);
    for (from, to) in [(path, &copy), (&from_log, &to_log)] {
        let copied =
            std::fs::copy(from, to).and_then(|_| private_files::set_mode(to, private_files::FILE_MODE));
        match copied {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            // The reason why it cannot be opened is more specific.
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return Err(error.clone()),
            Err(e) => return Err(failed(e)),
        }
    }
    Ok((folder, copy))
}

impl Sqlite {
    fn start_reading(
        connection: Connection,
        place: &str,
        path: &Path,
        immutable: bool,
        error: StoreError,
        clocks: Clocks,
        copy: Option<tempfile::TempDir>,
    ) -> Result<Self, StoreError> {
        let mut store = Self::of_reader(connection, place, path, immutable, clocks)?;
        let is_full = error.unavailability() == Some(Unavailability::DiskFull);
        let refusal = StoreError::Unavailable {
            cause: if is_full { Unavailability::DiskFull } else { Unavailability::ReadOnly },
            action: format!("write to {place}"),
            reason: format!("it is opened read-only: {}", reason(&error)),
        };
        store.health.refuse_writes(refusal, store.clocks.now().wall_ms);
        store.copy = copy;
        Ok(store)
    }
}

/// The error for a different store at a known path.
pub(super) fn replaced(place: &str, expected: &str, found: Option<&str>) -> StoreError {
    let found = found.map_or_else(|| "no store id".to_owned(), |id| format!("the store {id}"));
    StoreError::Unavailable {
        cause: Unavailability::Replaced,
        action: format!("open {place}"),
        reason: format!(
            "expected the store {expected}, but the file has {found}. Restore the original file, or \
                accept this one with `skills db adopt`"
        ),
    }
}

/// Records the files that must stay in place for as long as the store is written.
pub(super) fn guard(path: &Path, place: &str) -> Option<FileGuard> {
    FileGuard::of(&files_of(path), place)
}
