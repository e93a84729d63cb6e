//! Tables, migrations, and detection of the state of a database file.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};

use super::{failed, identity_of, open};
use crate::{StoreError, Unavailability};

/// Each entry migrates a database from its index to the next version; never edited once released.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE contracts (digest TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE runs (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        skill_id TEXT NOT NULL,
        state TEXT NOT NULL,
        step TEXT,
        held INTEGER NOT NULL DEFAULT 0,
        replays INTEGER NOT NULL DEFAULT 0,
        steps_total INTEGER NOT NULL,
        steps_done INTEGER NOT NULL DEFAULT 0,
        head INTEGER NOT NULL DEFAULT 0,
        fence INTEGER NOT NULL DEFAULT 0,
        worker TEXT,
        lease_until_ms INTEGER,
        lost_leases INTEGER NOT NULL DEFAULT 0,
        events INTEGER NOT NULL DEFAULT 0,
        created_ms INTEGER NOT NULL,
        since_ms INTEGER NOT NULL,
        expires_in_ms INTEGER,
        expires_ms INTEGER,
        contract_digest TEXT NOT NULL REFERENCES contracts(digest),
        trace_id TEXT NOT NULL,
        started_by TEXT NOT NULL,
        source_run TEXT,
        source_checkpoint INTEGER,
        gate TEXT,
        decided TEXT,
        options TEXT NOT NULL,
        inputs TEXT NOT NULL,
        target TEXT,
        outputs TEXT,
        error TEXT
    );
    CREATE INDEX runs_free ON runs(seq) WHERE state = 'pending' AND held = 0;
    CREATE INDEX runs_leased ON runs(lease_until_ms) WHERE lease_until_ms IS NOT NULL;
    CREATE INDEX runs_expiring ON runs(expires_ms) WHERE expires_ms IS NOT NULL;
    CREATE INDEX runs_by_source ON runs(source_run) WHERE source_run IS NOT NULL;
    CREATE INDEX runs_by_state ON runs(state, since_ms);
    CREATE INDEX runs_listed ON runs(seq, state, skill_id, id, step);
    CREATE INDEX runs_asking ON runs(since_ms, seq, state, skill_id, id, step) WHERE state = 'waiting_for_human';
    CREATE TABLE steps (
        run TEXT NOT NULL, n INTEGER NOT NULL, step TEXT NOT NULL, superseded INTEGER NOT NULL DEFAULT 0,
        json TEXT NOT NULL, PRIMARY KEY (run, n)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX steps_once ON steps(run, step) WHERE superseded = 0;
    CREATE TABLE checkpoints (
        run TEXT NOT NULL, number INTEGER NOT NULL, done TEXT NOT NULL, state TEXT NOT NULL,
        at_ms INTEGER NOT NULL, PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
    CREATE TABLE intents (
        run TEXT NOT NULL, step TEXT NOT NULL, json TEXT NOT NULL, PRIMARY KEY (run, step)
    ) WITHOUT ROWID;
    CREATE TABLE events (
        global INTEGER PRIMARY KEY AUTOINCREMENT,
        run TEXT NOT NULL, number INTEGER NOT NULL, at_ms INTEGER NOT NULL,
        kind TEXT NOT NULL, step TEXT, data TEXT NOT NULL
    );
    CREATE UNIQUE INDEX events_of_run ON events(run, number);
    CREATE TABLE signals (
        n INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, name TEXT NOT NULL, payload TEXT NOT NULL
    );
    CREATE INDEX signals_of_run ON signals(run, name);
    CREATE TABLE decisions (
        run TEXT NOT NULL, at_ms INTEGER NOT NULL, decision TEXT NOT NULL, approver TEXT, notes TEXT
    );
    CREATE INDEX decisions_of_run ON decisions(run);
    CREATE TABLE workers (worker TEXT PRIMARY KEY, seen_ms INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE idempotency (
        principal TEXT NOT NULL, skill_id TEXT NOT NULL, key TEXT NOT NULL,
        payload_digest TEXT NOT NULL, run TEXT NOT NULL, expires_ms INTEGER NOT NULL,
        PRIMARY KEY (principal, skill_id, key)
    ) WITHOUT ROWID;
    CREATE INDEX idempotency_of_run ON idempotency(run);
", "
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, created_ms INTEGER NOT NULL, changed_ms INTEGER NOT NULL,
        version INTEGER NOT NULL, document TEXT NOT NULL
    );
    CREATE INDEX sessions_by_change ON sessions(changed_ms);
    CREATE TABLE session_lines (
        session TEXT NOT NULL, number INTEGER NOT NULL, json TEXT NOT NULL, PRIMARY KEY (session, number)
    ) WITHOUT ROWID;
", "
    CREATE TABLE tallies (
        kind TEXT NOT NULL, name TEXT NOT NULL, calls INTEGER NOT NULL, errors INTEGER NOT NULL,
        total_us INTEGER NOT NULL, max_us INTEGER NOT NULL, PRIMARY KEY (kind, name)
    ) WITHOUT ROWID;
    CREATE TABLE tally_times (
        only_one INTEGER PRIMARY KEY CHECK (only_one = 1), since_ms INTEGER NOT NULL, reset_ms INTEGER
    );
    CREATE TABLE allowances (
        principal TEXT NOT NULL, began_ms INTEGER NOT NULL, taken INTEGER NOT NULL,
        PRIMARY KEY (principal, began_ms)
    ) WITHOUT ROWID;
", "
    CREATE TABLE session_calls (session TEXT PRIMARY KEY, text TEXT NOT NULL);
    INSERT INTO session_calls
        SELECT id, json_extract(document, '$.last_call.text') FROM sessions
        WHERE json_extract(document, '$.last_call.text') IS NOT NULL;
    UPDATE sessions SET document = json_remove(document, '$.last_call');
", "
    ALTER TABLE checkpoints ADD COLUMN base INTEGER;
", "
    CREATE TABLE identity (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), id TEXT NOT NULL);
    INSERT INTO identity (only_one, id) VALUES (1, lower(hex(randomblob(16))));
", "
    CREATE INDEX runs_by_trace ON runs(trace_id);
", "
    ALTER TABLE runs ADD COLUMN lease_boot TEXT;
    ALTER TABLE runs ADD COLUMN lease_until_boot_ms INTEGER;
    ALTER TABLE workers ADD COLUMN boot TEXT;
    ALTER TABLE workers ADD COLUMN seen_boot_ms INTEGER;
    ALTER TABLE runs ADD COLUMN inputs_digest TEXT;
    ALTER TABLE checkpoints ADD COLUMN digest TEXT;
", "
    ALTER TABLE sessions ADD COLUMN owner TEXT;
", "
    CREATE TABLE write_probe (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), at_ms INTEGER NOT NULL);
    CREATE TABLE audit_anchors (
        log TEXT NOT NULL, day INTEGER NOT NULL, seq INTEGER NOT NULL, head TEXT NOT NULL,
        PRIMARY KEY (log, day)
    ) WITHOUT ROWID;
", "
    CREATE TABLE documents (name TEXT PRIMARY KEY, version INTEGER NOT NULL, json TEXT NOT NULL) WITHOUT ROWID;
", "
    DROP INDEX runs_free;
    CREATE INDEX runs_free ON runs(started_by, seq) WHERE state = 'pending' AND held = 0;
", "
    ALTER TABLE runs ADD COLUMN appended INTEGER NOT NULL DEFAULT 0;
", "
    CREATE TABLE session_outlines (session TEXT PRIMARY KEY, version INTEGER NOT NULL, json TEXT NOT NULL);
    CREATE INDEX sessions_of_owner ON sessions(owner, changed_ms, id, created_ms, version);
"];

/// The newest checkpoints of active runs, for a writing connection.
pub(super) const NEWEST: &str = "
    PRAGMA temp_store = MEMORY;
    CREATE TEMP TABLE newest (
        run TEXT PRIMARY KEY, number INTEGER NOT NULL, base INTEGER NOT NULL, spent INTEGER NOT NULL,
        done TEXT NOT NULL, state TEXT NOT NULL
    ) WITHOUT ROWID;
";

/// Marks a file as a store of this program in its header (bytes 68 to 71 of the `SQLite` file format): `SkWb`.
const APPLICATION_ID: i64 = 0x536b_5762;

/// Pages of 4 KiB in the write-ahead log before it is checkpointed into the database: 16 MiB.
const WAL_PAGES: i64 = 4096;

/// Configures any connection: how long it waits for another one that writes, and that only the statements of this
/// program are executed. A store has no triggers and views; those of a manipulated file could record an approval.
pub(super) fn restrict(connection: &Connection) -> rusqlite::Result<()> {
    for option in [
        DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER,
        DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW,
        DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA,
    ] {
        connection.set_db_config(option, false)?;
    }
    connection.busy_timeout(std::time::Duration::from_secs(10))
}

/// Configures a writing connection: durable at each commit, with concurrent readers.
pub(super) fn configure(connection: &Connection) -> rusqlite::Result<()> {
    restrict(connection)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // A step writes many pages, and checkpointing the log waits for the disk twice: do it less often than by default.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", WAL_PAGES, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", WAL_PAGES * 4096, |_| Ok(()))?;
    // The cache holds what a burst of launches touches (negative: KiB).
    connection.pragma_update(None, "cache_size", -8192)?;
    // Plans that may depend on a value are prepared again for each value: a sixth of a writer's time, for equal plans.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    enable_statement_cache(connection);
    Ok(())
}

/// Keeps every statement in use prepared.
pub(super) fn enable_statement_cache(connection: &Connection) {
    connection.set_prepared_statement_cache_capacity(128);
}

/// Returns whether a database belongs to another program.
pub(super) fn is_foreign(connection: &Connection) -> rusqlite::Result<bool> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    Ok(number("SELECT count(*) FROM sqlite_schema")? > 0
        && number("PRAGMA application_id")? != APPLICATION_ID)
}

/// Checks that a database is a store of this program, with the expected id if one is given, or is still empty.
pub(super) fn recognize(
    connection: &Connection,
    place: &str,
    expected: Option<&str>,
) -> Result<(), StoreError> {
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map_err(|e| failed(format!("open {place}"), &e))
    };
    if is_foreign(connection).map_err(|e| failed(format!("open {place}"), &e))? {
        return Err(StoreError::Unavailable {
            cause: Unavailability::Unopenable,
            action: format!("open {place}"),
            reason: "it is a database of another program; use another store".to_owned(),
        });
    }
    let Some(expected) = expected else { return Ok(()) };
    let has_id = number("SELECT count(*) FROM sqlite_schema WHERE name = 'identity'")? > 0;
    let found = has_id.then(|| identity_of(connection, place)).transpose()?;
    if found.as_deref() == Some(expected) {
        Ok(())
    } else {
        Err(open::replaced(place, expected, found.as_deref()))
    }
}

/// Returns whether a database has this program's version of the schema.
///
/// # Errors
/// Returns [`StoreError::Newer`] for a later one.
pub(super) fn is_present(connection: &Connection, place: &str) -> Result<bool, StoreError> {
    let found: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|e| failed(format!("read the schema of {place}"), &e))?;
    let supported = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if found > supported {
        return Err(StoreError::Newer { place: place.to_owned(), found, known: supported });
    }
    Ok(found == supported)
}

/// Migrates a database to this program's version.
///
/// # Errors
/// Returns [`StoreError::Newer`] for a database of a later version; it is left untouched.
pub(super) fn migrate(connection: &mut Connection, place: &str) -> Result<(), StoreError> {
    // A current schema takes no lock: a command that only reads must not wait for a writer.
    if is_present(connection, place)? {
        return Ok(());
    }
    let action = |what: &str| format!("{what} the schema of {place}");
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(|e| failed(action("lock"), &e))?;
    let found: i64 = transaction
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|e| failed(action("read"), &e))?;
    let supported = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if found > supported {
        return Err(StoreError::Newer { place: place.to_owned(), found, known: supported });
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(migration).map_err(|e| failed(action("migrate"), &e))?;
    }
    if found < supported {
        transaction
            .pragma_update(None, "user_version", supported)
            .and_then(|()| transaction.pragma_update(None, "application_id", APPLICATION_ID))
            .map_err(|e| failed(action("record the version of"), &e))?;
    }
    transaction.commit().map_err(|e| failed(action("commit"), &e))
}

/// Returns whether an error means that the file itself is damaged (rather than busy, full or locked).
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_and_views_of_a_file_are_not_executed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("runs.db");
        let script = "
            CREATE TABLE events (kind TEXT); CREATE TABLE decisions (decision TEXT);
            CREATE TRIGGER approve AFTER INSERT ON events BEGIN INSERT INTO decisions VALUES ('approve'); END;
            CREATE VIEW runs AS SELECT kind FROM events;
            INSERT INTO events VALUES ('gate.waiting');";
        Connection::open(&file).unwrap().execute_batch(script).unwrap();
        let connection = Connection::open(&file).unwrap();
        restrict(&connection).unwrap();
        connection.execute("INSERT INTO events VALUES ('gate.waiting')", []).unwrap();
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        assert_eq!(number("SELECT count(*) FROM decisions").unwrap(), 1, "only that of the other connection");
        assert!(number("SELECT count(*) FROM runs").unwrap_err().to_string().contains("prohibited"));
    }
}
