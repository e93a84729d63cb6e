//! What a finished sidecar asked for on the run it watches: carried out once, and written down on both.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use super::command::{Order, command};
use super::failed;
use super::rows::{append, column, moved};
use crate::store::{Control, ControlOutcome, RunId, StoreError};

/// The sidecar's own event, whichever way it went.
const RECORDED: &str =
    "SELECT data FROM events WHERE run = ?1 AND kind IN ('control.applied', 'control.refused')
                        AND json_extract(data, '$.on') IS NOT NULL ORDER BY number LIMIT 1";

pub(super) fn control(
    connection: &Connection,
    sidecar: &RunId,
    watched: &RunId,
    control: &Control,
    now_ms: i64,
) -> Result<ControlOutcome, StoreError> {
    let before: Option<serde_json::Value> = connection
        .prepare_cached(RECORDED)
        .and_then(|mut s| s.query_row(params![sidecar.0], |row| column(row, 0)).optional())
        .map_err(|e| failed("looking for what a sidecar asked".into(), &e))?;
    if let Some(first) = before {
        return Ok(match first["refused"].as_str() {
            Some(why) => ControlOutcome::Refused(why.to_owned()),
            None => ControlOutcome::Applied,
        });
    }
    let refused = match &control.order {
        Err(why) => Some(why.clone()),
        Ok((order, payload)) => {
            let order = Order { command: order.clone(), record: None, head: None, payload: payload.clone() };
            match command(connection, watched, &order, now_ms) {
                Ok(_) => None,
                Err(error @ (StoreError::Refused(_) | StoreError::NoRun(_))) => Some(error.to_string()),
                Err(error) => return Err(error),
            }
        }
    };
    if let Some(why) = refused {
        let data = json!({"on": watched, "asked": control.asked, "refused": why});
        append(connection, sidecar, &[moved("control.refused", data)], now_ms)?;
        return Ok(ControlOutcome::Refused(why));
    }
    let (on, by) =
        (json!({"on": watched, "asked": control.asked}), json!({"by": sidecar, "asked": control.asked}));
    append(connection, sidecar, &[moved("control.applied", on)], now_ms)?;
    append(connection, watched, &[moved("control.applied", by)], now_ms)?;
    Ok(ControlOutcome::Applied)
}
