//! Copies the store of a file into another one, in one transaction of the latter.

use skills_base::number::counted;
use tokio::sync::mpsc::Receiver;

use super::{Tx, failed};
use crate::sqlite::{Batch, Source};
use crate::{StoreError, TableRows};

/// Tables that must be empty in a store that another one is copied into, with the noun for a row.
const RECORDS: [(&str, &str); 3] =
    [("runs", "run"), ("sessions", "session"), ("documents", "saved document")];

/// The table whose existing rows are kept: a server store has audit anchors of several machines.
const MERGED: &str = "audit_anchors";

/// Columns that number rows automatically, with their tables.
const NUMBERED: [(&str, &str); 3] = [("runs", "seq"), ("signals", "n"), ("decisions", "rowid")];

/// Copies all rows; `place` is the store that they are copied to.
pub(crate) async fn import<T: Tx>(
    tx: &T,
    place: &str,
    source: &Source,
    mut batches: Receiver<Batch>,
) -> Result<Vec<TableRows>, StoreError> {
    let action = "copy a store";
    // Followers of this store see none of the events until all of them are there.
    tx.reserve_events().await?;
    if T::POSTGRES {
        // The store stays empty until the copy is complete; counting may take long.
        let lock = "LOCK TABLE runs, sessions, documents IN SHARE ROW EXCLUSIVE MODE";
        tx.execute(action, lock, &[]).await?;
        tx.execute(action, "SET LOCAL statement_timeout = 0", &[]).await?;
    }
    ensure_empty(tx, place).await?;
    let mut statements = Vec::new();
    for table in source.tables() {
        if table.name != MERGED {
            tx.post(action, &format!("DELETE FROM \"{}\"", table.name), &[]).await?;
        }
        let parameters: Vec<String> = (1..=table.columns.len()).map(|n| format!("?{n}")).collect();
        let conflict = if table.name == MERGED {
            " ON CONFLICT (log, day) DO UPDATE SET seq = excluded.seq, head = excluded.head
                WHERE excluded.seq > audit_anchors.seq"
        } else {
            ""
        };
        statements.push(format!(
            "INSERT INTO \"{}\" ({}) VALUES ({}){conflict}",
            table.name,
            table.columns(),
            parameters.join(", ")
        ));
    }
    // Futures of the embedded store are complete when they are created, so its thread blocks until the next batch.
    while let Some(batch) = if T::POSTGRES { batches.recv().await } else { batches.blocking_recv() } {
        let (table, mut rows) = batch?;
        let Some(sql) = statements.get(table) else { continue };
        let last = rows.pop();
        for row in &rows {
            tx.post(action, sql, &row.0).await?;
        }
        // Waits for the responses to the whole batch.
        if let Some(row) = last {
            tx.execute(action, sql, &row.0).await?;
        }
    }
    if T::POSTGRES {
        continue_numbers(tx).await?;
        for table in source.tables() {
            // Without statistics the planner assumes that the tables are small.
            tx.execute(action, &format!("ANALYZE \"{}\"", table.name), &[]).await?;
        }
    }
    let copied = verify(tx, source).await?;
    source.ensure_unchanged()?;
    Ok(copied)
}

async fn count<T: Tx>(tx: &T, table: &str) -> Result<u64, StoreError> {
    let sql = format!("SELECT count(*) FROM \"{table}\"");
    tx.find("count rows", &sql, &[]).await?.map_or(Ok(0), |mut row| row.take(0))
}

async fn ensure_empty<T: Tx>(tx: &T, place: &str) -> Result<(), StoreError> {
    for (table, what) in RECORDS {
        let rows = count(tx, table).await?;
        if rows > 0 {
            return Err(StoreError::NotEmpty { place: place.to_owned(), found: counted(rows, what) });
        }
    }
    Ok(())
}

/// Lets the numbers of new rows follow those of the copied ones.
async fn continue_numbers<T: Tx>(tx: &T) -> Result<(), StoreError> {
    let action = "continue the numbers of rows";
    for (table, column) in NUMBERED {
        let sql = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({column})) FROM {table}
                HAVING max({column}) IS NOT NULL"
        );
        tx.query(action, &sql, &[]).await?;
    }
    let sql = "SELECT setval('events_global', greatest(max(global), (SELECT last_value FROM events_global)))
        FROM events HAVING max(global) IS NOT NULL";
    tx.query(action, sql, &[]).await.map(drop)
}

/// Compares the number of rows of each table with the source.
async fn verify<T: Tx>(tx: &T, source: &Source) -> Result<Vec<TableRows>, StoreError> {
    let mut copied = Vec::new();
    for table in source.tables() {
        let (found, expected) = (count(tx, &table.name).await?, table.rows);
        if found < expected || (found > expected && table.name != MERGED) {
            let reason = format!("{} has {found} rows instead of {expected}; nothing was copied", table.name);
            return Err(failed("verify the copy", &reason));
        }
        copied.push(TableRows { table: table.name.clone(), rows: expected });
    }
    Ok(copied)
}
