//! What a finished sidecar asked for on the run it watches: carried out once, and written down on both.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use super::command::{Order, command};
use super::failed;
use super::rows::{append, as_of, column, find, moved};
use crate::{Control, ControlOutcome, EventKind, RunId, RunRecord, StoreError};
use skills_model::{Command, RunState};

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
            None => ControlOutcome::Applied(first["did"].as_str().unwrap_or_default().to_owned()),
        });
    }
    let before = find(connection, watched)?.map(|(run, replays)| as_of(run, replays, now_ms));
    let outcome = match (&control.order, &before) {
        (Err(why), _) => ControlOutcome::Refused(why.clone()),
        (Ok(_), None) => ControlOutcome::Refused(StoreError::NoRun(watched.clone()).to_string()),
        (Ok((order, payload)), Some(before)) => {
            let order = Order { command: order.clone(), record: None, head: None, payload: payload.clone() };
            match command(connection, watched, &order, now_ms) {
                Ok(done) => ControlOutcome::Applied(did(&order.command, before, &done.run)),
                Err(StoreError::Refused(refusal)) => ControlOutcome::Refused(refusal.to_string()),
                Err(error) => return Err(error),
            }
        }
    };
    let mut data = json!({"asked": control.asked});
    if let Some(why) = &control.why {
        data["why"] = why.as_str().into();
    }
    let kind = match &outcome {
        ControlOutcome::Applied(did) => {
            data["did"] = did.as_str().into();
            EventKind::ControlApplied
        }
        ControlOutcome::Refused(why) => {
            data["refused"] = why.as_str().into();
            EventKind::ControlRefused
        }
    };
    let (mut on, mut by) = (data.clone(), data);
    (on["on"], by["by"]) = (json!(watched), json!(sidecar));
    if let Some((run, _)) = find(connection, sidecar)? {
        by["skill"] = run.skill_id.into();
    }
    if let Some(run) = &before {
        on["skill"] = run.skill_id.as_str().into();
    }
    append(connection, sidecar, &[moved(kind.clone(), on)], now_ms)?;
    if before.is_some() {
        append(connection, watched, &[moved(kind, by)], now_ms)?;
    }
    Ok(outcome)
}

/// What a command that was carried out means for the run, in words.
fn did(command: &Command, before: &RunRecord, after: &RunRecord) -> String {
    let words = match (command, before.state) {
        (Command::Pause, _) if before.held => "it was already paused",
        (Command::Pause, RunState::Pending) => "it is paused until it is resumed",
        (Command::Pause, RunState::WaitingForHuman) => {
            "it waits for approval; after the decision it is paused until it is resumed"
        }
        (Command::Pause, RunState::WaitingForSignal) => {
            "it waits for a signal; after the signal it is paused until it is resumed"
        }
        (Command::Pause, _) => "it stops before its next step and is paused until it is resumed",
        (Command::Cancel, RunState::Canceled) => "it was already canceled",
        (Command::Cancel, _) => "it is canceled",
        (Command::Signal { .. }, RunState::WaitingForSignal) if after.state == RunState::Pending => {
            "the waiting step continues"
        }
        (Command::Signal { .. }, _) => "it is kept until a step waits for it",
        _ => "done",
    };
    words.to_owned()
}
