//! Checks a write-ahead log left behind by a killed process. Opening the database would merge it permanently, so
//! whether the two belong together is checked first, without locks and without writes.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::open::{file_state, files_of};
use super::reason::Reason as _;
use super::{guard, identity_of, reading, schema, storage};
use crate::{StoreError, Unavailability};

/// Number of attempts to read files that other processes change in the meantime.
const TRIES: usize = 3;

/// Maximum number of problems that the message names.
const MAX_NAMED: u32 = 1;

/// Checks that a log which no process has open belongs to its database and yields a sound store, with the expected id
/// if one is given. Reads the whole database, but only if there is such a log. The caller ensures that this process
/// does not have the database open.
///
/// # Errors
/// Returns [`StoreError::Unavailable`] or [`StoreError::Newer`] otherwise.
pub(super) fn check_leftover_log(path: &Path, place: &str, expected: Option<&str>) -> Result<(), StoreError> {
    // The log is next to the target of a link.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for _ in 0..TRIES {
        // A process that has it open has already checked this.
        if !cfg!(unix) || !has_log(path) || guard::locked_by(path).is_some() {
            return Ok(());
        }
        let state = file_state(path);
        let checked = check(path, place, expected);
        // Otherwise the read may have overlapped a write of another process.
        if guard::locked_by(path).is_none() && file_state(path) == state {
            return checked;
        }
    }
    Err(StoreError::Unavailable {
        cause: Unavailability::Busy,
        action: format!("open {place}"),
        reason: "other processes open and close it; try again".to_owned(),
    })
}

/// Ensures that the shared-memory file (`-shm`) exists if another process has the database open. With a second such
/// file the processes would not see each other's locks, and their writes would damage the database.
///
/// # Errors
/// Returns [`StoreError::Unavailable`] if it is missing.
pub(super) fn ensure_shared_memory(path: &Path, place: &str) -> Result<(), StoreError> {
    /// A process that opens or closes a database briefly holds its lock without the file.
    const TIMEOUT: Duration = Duration::from_secs(1);
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let [_, log, memory] = files_of(path);
    let started = Instant::now();
    while let Some(process) = guard::locked_by(path) {
        if memory.exists() || !log.exists() {
            return Ok(());
        }
        if started.elapsed() > TIMEOUT {
            return Err(StoreError::Unavailable {
                cause: Unavailability::Missing,
                action: format!("open {place}"),
                reason: format!(
                    "process {process} has it open, but {} no longer exists; stop that process first",
                    memory.display()
                ),
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns whether a database has a non-empty log.
pub(super) fn has_log(path: &Path) -> bool {
    let [_, log, _] = files_of(path);
    std::fs::metadata(log).is_ok_and(|found| found.len() > 0)
}

fn check(path: &Path, place: &str, expected: Option<&str>) -> Result<(), StoreError> {
    let (connection, version) = match open(path) {
        Ok(opened) => opened,
        Err(error) if schema::is_damage(&error) => return Err(mismatch(path, place, &error.to_string())),
        Err(error) => {
            return match error.unavailability() {
                // Opening it for writing or reading fails too, with a message that states what to do.
                Some(Unavailability::Unopenable | Unavailability::ReadOnly) => Ok(()),
                _ => Err(super::failed(format!("open {place}"), &error)),
            };
        }
    };
    let recognized = schema::recognize(&connection, place, expected)
        .and_then(|()| schema::is_present(&connection, place).map(drop));
    if let Err(error) = recognized {
        return Err(match error.unavailability() {
            Some(Unavailability::Damaged) => mismatch(path, place, "its first pages cannot be read"),
            _ => error,
        });
    }
    if let Ok((alone, alone_version)) = without_log(path, place) {
        // A copy made by `db backup` or VACUUM has a later version than a log that was written before it.
        if alone_version > version {
            return Err(mismatch(path, place, "the log is older than the file"));
        }
        let id = identity_of(&connection, place).ok();
        if alone.is_some() && alone != id {
            return Err(mismatch(path, place, "they have different store ids"));
        }
    }
    // Not `quick_check`: it does not compare indexes with their tables, so pages of another file pass it.
    let (damage, interrupted) = storage::damage(&connection, &format!("PRAGMA integrity_check({MAX_NAMED})"));
    match (damage.into_iter().next(), interrupted) {
        (Some(found), _) => Err(mismatch(path, place, &found)),
        (None, Some(error)) if schema::is_damage(&error) => Err(mismatch(path, place, &error.to_string())),
        (None, Some(error)) => Err(super::failed(format!("check {place}"), &error)),
        (None, None) => Ok(()),
    }
}

/// Checks that a file is not a database of another program. A file that cannot be read as a database passes.
pub(super) fn ensure_own(path: &Path, place: &str) -> Result<(), StoreError> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let what = if found.is_dir() { "a folder" } else { "a device, socket or pipe" };
            return Err(StoreError::Unavailable {
                cause: Unavailability::Unopenable,
                action: format!("check {place}"),
                reason: format!("it is {what}, not the file of a store, and was left unchanged; name a file"),
            });
        }
        // SQLite deletes the log of an empty file even without writing.
        Ok(found) if found.len() == 0 => return Ok(()),
        Ok(_) => {}
        Err(_) => return Ok(()),
    }
    match open(path) {
        Ok((connection, _)) if schema::is_foreign(&connection).unwrap_or(false) => {
            schema::recognize(&connection, place, None)
        }
        _ => Ok(()),
    }
}

/// Opens a connection that reads the file through its log, and returns it with the version of the schema. It takes no
/// locks, keeps the index of the log in memory, and neither merges nor deletes the log.
fn open(path: &Path) -> rusqlite::Result<(Connection, i64)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // https://sqlite.org/vfs.html#standard_unix_vfses; without locks, a log can only be read in exclusive mode.
    let connection = Connection::open_with_flags_and_vfs(path, flags, "unix-none")?;
    schema::restrict(&connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
    let version = schema_version(&connection)?;
    Ok((connection, version))
}

/// Returns the store id, if there is one, and the schema version of the file without its log.
fn without_log(path: &Path, place: &str) -> Result<(Option<String>, i64), StoreError> {
    let connection = reading(path, place, true)?;
    let version =
        schema_version(&connection).map_err(|error| super::failed(format!("read {place}"), &error))?;
    // A new store may have everything in its log.
    Ok((identity_of(&connection, place).ok(), version))
}

/// Returns a number that increases with each change of the schema.
fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "schema_version", |row| row.get(0))
}

/// The error for a file and a log that do not belong together.
fn mismatch(path: &Path, place: &str, found: &str) -> StoreError {
    let [_, log, index] = files_of(path);
    StoreError::Unavailable {
        cause: Unavailability::Damaged,
        action: format!("open {place}"),
        reason: format!(
            "the file and the write-ahead log next to it, which a killed process left, do not match ({found}); \
                neither was modified. If the file is a backup that was copied there, move {} and {} away. Otherwise \
                restore a backup: `skills db restore FILE` renames the old files",
            log.display(),
            index.display()
        ),
    }
}
