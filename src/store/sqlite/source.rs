//! A database file as the source of a migration to another store; it is read and never changed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::leftover::{check_leftover_log, has_log};
use super::open::{FileState, ensure_closed, file_state, migrated_copy, store_uri};
use super::{failed, reading, schema, tx};
use crate::sql::{Row, Value};
use crate::{StoreError, Unavailability};
use skills_base::sync::MutexExt as _;

/// Number of rows read at a time.
const BATCH_ROWS: usize = 500;

/// Maximum number of batches waiting to be written.
const QUEUED_BATCHES: usize = 4;

/// Tables that are specific to each store: its id, the heartbeats of its workers, the row written by probes.
const NOT_COPIED: &str = "'identity', 'workers', 'write_probe'";

/// Rows of the table with this index, or why they cannot be read.
pub(crate) type Batch = Result<(usize, Vec<Row>), StoreError>;

/// A table to be copied.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub name: String,
    pub columns: Vec<String>,
    /// Number of its rows.
    pub rows: u64,
}

impl Table {
    /// Returns its columns, quoted.
    pub fn columns(&self) -> String {
        let quoted: Vec<String> = self.columns.iter().map(|column| format!("\"{column}\"")).collect();
        quoted.join(", ")
    }
}

/// A database file that no process has open.
pub(crate) struct Source {
    place: String,
    path: PathBuf,
    state: FileState,
    connection: Arc<Mutex<Connection>>,
    tables: Vec<Table>,
    /// Folder of a copy that is read instead of the file.
    _copy: Option<tempfile::TempDir>,
}

impl Source {
    /// Opens a file that must contain a store. One of an earlier version is migrated in a copy.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`] or [`StoreError::Newer`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let place = store_uri(path);
        let refused = |cause, reason: &str| {
            Err(StoreError::Unavailable { cause, action: format!("open {place}"), reason: reason.to_owned() })
        };
        match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => return refused(Unavailability::Unopenable, "it is not a file"),
            Ok(found) if found.len() == 0 => return refused(Unavailability::Damaged, "the file is empty"),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return refused(Unavailability::Missing, "the file does not exist");
            }
            Err(error) => return Err(failed(format!("open {place}"), &error)),
        }
        ensure_closed(path, &format!("read {place}"))?;
        check_leftover_log(path, &place, None)?;
        let state = file_state(path);
        let (connection, copy) = connect(path, &place)?;
        let unknown = unknown_part(&connection, &place)?;
        if let Some(part) = unknown {
            return refused(Unavailability::Damaged, &format!("it has {part}, which no store has"));
        }
        let tables = tables(&connection).map_err(|e| failed(format!("read {place}"), &e))?;
        Ok(Self {
            place,
            path: path.to_owned(),
            state,
            connection: Arc::new(Mutex::new(connection)),
            tables,
            _copy: copy,
        })
    }

    /// Returns the tables; those that others refer to come first.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Sends all rows, table by table, in the order in which they were written; they are read in a thread.
    ///
    /// # Errors
    /// Returns [`StoreError::Failed`] if the thread cannot be started.
    pub fn rows(&self) -> Result<Receiver<Batch>, StoreError> {
        let (batches, receiver) = channel(QUEUED_BATCHES);
        let (connection, tables) = (Arc::clone(&self.connection), self.tables.clone());
        let place = self.place.clone();
        std::thread::Builder::new()
            .name("store-source".into())
            .spawn(move || {
                let connection = connection.locked();
                for (index, table) in tables.iter().enumerate() {
                    if let Err(error) = read(&connection, index, table, &batches) {
                        let error = failed(format!("read {} of {place}", table.name), &error);
                        // Fails only if the receiver was dropped.
                        let _ = batches.blocking_send(Err(error));
                        return;
                    }
                }
            })
            .map_err(|e| failed("start to read the source".into(), &e))?;
        Ok(receiver)
    }

    /// Checks that no process wrote to the file since it was opened.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`] otherwise.
    pub fn ensure_unchanged(&self) -> Result<(), StoreError> {
        ensure_closed(&self.path, &format!("read {}", self.place))?;
        if file_state(&self.path) == self.state {
            return Ok(());
        }
        Err(StoreError::Unavailable {
            cause: Unavailability::Busy,
            action: format!("read {}", self.place),
            reason:
                "another process wrote to it during the copy, so nothing was copied; stop that process first"
                    .to_owned(),
        })
    }
}

/// Checks that a file can be copied into another store: it contains a store, and no process has it open.
///
/// # Errors
/// Returns [`StoreError::Unavailable`] or [`StoreError::Newer`] otherwise.
pub fn check_source(path: &Path) -> Result<(), StoreError> {
    Source::open(path).map(drop)
}

/// Opens a connection that leaves no trace: to the file if its log is empty and it has the current schema, otherwise to
/// a copy.
fn connect(path: &Path, place: &str) -> Result<(Connection, Option<tempfile::TempDir>), StoreError> {
    if !has_log(path) {
        let connection = reading(path, place, true)?;
        schema::recognize(&connection, place, None)?;
        if schema::is_present(&connection, place)? {
            return Ok((connection, None));
        }
    }
    let unreadable = StoreError::Unavailable {
        cause: Unavailability::Unopenable,
        action: format!("open {place}"),
        reason: "it cannot be read; check the permissions of the file".to_owned(),
    };
    let copy = migrated_copy(path, place, None, &unreadable)?;
    Ok((copy.connection, Some(copy.folder)))
}

/// Returns the first table or column that a store of this version does not have: names become part of statements.
fn unknown_part(connection: &Connection, place: &str) -> Result<Option<String>, StoreError> {
    let reading = |error: rusqlite::Error| failed(format!("read {place}"), &error);
    let mut own = Connection::open_in_memory().map_err(reading)?;
    schema::migrate(&mut own, place)?;
    let own: HashSet<(String, String)> = columns(&own).map_err(reading)?.into_iter().collect();
    let found = columns(connection).map_err(reading)?.into_iter().find(|part| !own.contains(part));
    Ok(found.map(|(table, column)| format!("the table {table:?} with a column {column:?}")))
}

/// Returns the tables of a database with their columns.
fn columns(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let sql = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite@_%' ESCAPE '@'";
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<Table>> {
    let sql = format!(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@'
            AND name NOT IN ({NOT_COPIED}) ORDER BY name <> 'contracts', name"
    );
    let names = |sql: &str, parameter: &[&str]| -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare(sql)?;
        statement.query_map(rusqlite::params_from_iter(parameter), |row| row.get(0))?.collect()
    };
    let mut tables = Vec::new();
    for name in names(&sql, &[])? {
        let mut columns = names("SELECT name FROM pragma_table_info(?1) ORDER BY cid", &[&name])?;
        if name == "decisions" {
            // Preserves the order of decisions.
            columns.insert(0, "rowid".to_owned());
        }
        let rows = connection
            .query_row(&format!("SELECT count(*) FROM \"{name}\""), [], |row| row.get::<_, i64>(0))?
            .unsigned_abs();
        tables.push(Table { name, columns, rows });
    }
    Ok(tables)
}

/// Sends the rows of a table. Ends early when the receiver is dropped.
fn read(
    connection: &Connection,
    index: usize,
    table: &Table,
    batches: &Sender<Batch>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(&format!("SELECT {} FROM \"{}\"", table.columns(), table.name))?;
    let mut found = statement.query([])?;
    let mut rows = Vec::with_capacity(BATCH_ROWS);
    while let Some(row) = found.next()? {
        let values = (0..table.columns.len()).map(|column| -> rusqlite::Result<Value<'static>> {
            Ok(match tx::value(row.get_ref(column)?)? {
                // All columns are integers and texts: a sum of integers that overflowed.
                Value::Real(number) => Value::Int(number as i64),
                value => value,
            })
        });
        rows.push(Row(values.collect::<rusqlite::Result<_>>()?));
        if rows.len() == BATCH_ROWS && batches.blocking_send(Ok((index, std::mem::take(&mut rows)))).is_err()
        {
            return Ok(());
        }
    }
    if !rows.is_empty() {
        let _ = batches.blocking_send(Ok((index, rows)));
    }
    Ok(())
}
