//! Integrity checks of a database file, backups, and compaction.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::leftover::has_log;
use super::open::store_uri;
use super::schema::is_damage;
use super::tx::{Transaction, complete};
use super::{failed, reading};
use crate::sql::maintenance::{RULES, describe_modified};
use crate::{ClockReading, Health, QuickCheck, StoreError};
use skills_base::private_files;

/// Maximum number of problems reported by a quick check.
const MAX_PROBLEMS: u32 = 3;

/// Interrupts the statements of a connection after a time limit. Returns whether the limit was reached, too.
pub(super) fn within<T>(connection: &Connection, limit: Duration, work: impl FnOnce() -> T) -> (T, bool) {
    let (done, waiting) = mpsc::channel::<()>();
    let handle = connection.get_interrupt_handle();
    let timer = std::thread::spawn(move || {
        let is_late = waiting.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        if is_late {
            handle.interrupt();
        }
        is_late
    });
    let result = work();
    drop(done);
    // The thread ends immediately, because its channel is closed.
    (result, timer.join().unwrap_or(false))
}

/// Checks the pages until the time limit. Indexes are not compared with their tables, unlike in [`check`].
pub(super) fn quick_check(connection: &Connection, patience: Duration) -> Result<QuickCheck, StoreError> {
    let ((mut damage, broken_off), _) =
        within(connection, patience, || damage(connection, &format!("PRAGMA quick_check({MAX_PROBLEMS})")));
    match broken_off {
        None => Ok(QuickCheck { damage, is_complete: true, other_roles: 0 }),
        Some(error) => match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => Ok(QuickCheck { damage, ..QuickCheck::default() }),
            _ if is_damage(&error) => {
                if damage.is_empty() {
                    damage.push(error.to_string());
                }
                Ok(QuickCheck { damage, ..QuickCheck::default() })
            }
            _ => Err(failed("check the store".to_owned(), &error)),
        },
    }
}

/// Returns the damage that a check of the pages reports, and the error that interrupted it: earlier findings are kept.
pub(super) fn damage(connection: &Connection, pragma: &str) -> (Vec<String>, Option<rusqlite::Error>) {
    let mut found: Vec<String> = Vec::new();
    let mut look = || -> rusqlite::Result<()> {
        let mut statement = connection.prepare(pragma)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let message: String = row.get(0)?;
            // One row may contain several lines below a heading with the name of the database.
            let lines = message.lines().filter(|line| *line != "ok" && !line.starts_with("*** in database"));
            found.extend(lines.map(str::to_owned));
        }
        Ok(())
    };
    let broken_off = look().err();
    (found, broken_off)
}

/// Returns the damage of a file that cannot be opened as a store; empty if its log may be the reason.
pub fn damage_of(path: &Path) -> Vec<String> {
    if has_log(path) {
        return Vec::new();
    }
    let place = store_uri(path);
    match reading(path, &place, true) {
        Ok(connection) => {
            let (mut damage, interrupted) = damage(&connection, "PRAGMA quick_check");
            damage.extend(interrupted.filter(|_| damage.is_empty()).map(|error| error.to_string()));
            damage
        }
        Err(error) => vec![error.to_string()],
    }
}

pub(super) fn check(connection: &Connection, now: ClockReading) -> Result<Health, StoreError> {
    let action = || "check the store".to_owned();
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map(i64::unsigned_abs)
            .map_err(|e| failed(action(), &e))
    };
    let (mut damage, broken_off) = damage(connection, "PRAGMA integrity_check");
    match broken_off {
        None => {}
        // The damage prevents the comparison of indexes with their tables; the pages alone show where it is.
        Some(error) if is_damage(&error) => {
            let (pages, _) = self::damage(connection, "PRAGMA quick_check");
            damage.extend(pages.into_iter().filter(|line| !damage.contains(line)).collect::<Vec<_>>());
            damage.push(if damage.is_empty() {
                error.to_string()
            } else {
                format!("cannot check indices: {error}")
            });
        }
        Some(error) => return Err(failed(action(), &error)),
    }
    // The content of a damaged page cannot be counted; the rest is still reported.
    let mut counted = |sql: &str| match number(sql) {
        Err(error) if damage.is_empty() => Err(error),
        Err(error) => {
            tracing::warn!("{error}");
            let message = "incomplete count because of a damaged page".to_owned();
            if !damage.contains(&message) {
                damage.push(message);
            }
            Ok(0)
        }
        number => number,
    };
    let mut contradictions = Vec::new();
    for (what, sql) in RULES {
        match counted(sql)? {
            0 => {}
            count => contradictions.push(format!("{count} {what}")),
        }
    }
    // An unreadable page has already been reported.
    if let Ok(modified) = complete(describe_modified(&Transaction::new(connection, now))) {
        contradictions.extend(modified);
    }
    let (runs, events) = (counted("SELECT count(*) FROM runs")?, counted("SELECT count(*) FROM events")?);
    let page = number("PRAGMA page_size")?;
    Ok(Health {
        damage,
        contradictions,
        runs,
        events,
        bytes: number("PRAGMA page_count")?.saturating_mul(page),
        free_bytes: number("PRAGMA freelist_count")?.saturating_mul(page),
    })
}

/// Writes a complete copy, first under a temporary name, so that an interrupted one is never mistaken for a store.
pub(super) fn backup(connection: &Connection, to: &Path) -> Result<(), StoreError> {
    let action = || format!("back up to {}", to.display());
    if to.exists() {
        return Err(failed(action(), &"the file already exists; choose another"));
    }
    let mut draft = to.as_os_str().to_owned();
    draft.push(".part");
    let draft = PathBuf::from(draft);
    // An empty file is filled and keeps its permissions.
    let copied = private_files::create_file(&draft, private_files::FILE_MODE)
        .map_err(|e| failed(action(), &e))
        .and_then(|_| {
            connection.execute("VACUUM INTO ?1", [draft.to_string_lossy()]).map_err(|e| failed(action(), &e))
        })
        .and_then(|_| std::fs::rename(&draft, to).map_err(|e| failed(action(), &e)));
    if copied.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    copied
}

/// Returns the space of deleted records to the system.
pub(super) fn compact(connection: &Connection) -> Result<(), StoreError> {
    connection
        .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
        .map_err(|e| failed("reclaim free space".into(), &e))
}
