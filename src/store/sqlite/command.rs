//! What people and other programs do to a run: decide, signal, cancel, resume.

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::read;
use super::rows::{append, apply, execute, get, json as encode, moved, standing};
use crate::runs::{Command, Next, Verdict, transition};
use crate::store::{DecisionRecord, NewEvent, RunId, RunRecord, StoreError};

/// A command with what is kept beside it.
#[derive(Debug)]
pub(super) struct Order {
    pub command: Command,
    pub record: Option<DecisionRecord>,
    pub head: Option<u64>,
    pub payload: Option<Value>,
}

pub(super) fn command(
    connection: &Connection,
    run: &RunId,
    order: &Order,
    now_ms: i64,
) -> Result<RunRecord, StoreError> {
    let (before, replays) = get(connection, run)?;
    let next = transition(&standing(&before, replays), &order.command)?;
    let decided = match &order.command {
        Command::Decide(decision) => Some(decision),
        _ => None,
    };
    if next == Next::Same {
        return Ok(before);
    }
    apply(connection, run, &next, decided, now_ms)?;
    let mut events: Vec<NewEvent> = Vec::new();
    match &order.command {
        Command::Decide(decision) => {
            let record = order.record.clone().unwrap_or(DecisionRecord { approver: None, notes: None });
            execute(
                connection,
                "recording a decision",
                "INSERT INTO decisions (run, at_ms, decision, approver, notes) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![run.0, now_ms, encode(decision)?, record.approver, record.notes],
            )?;
            let word = if decision.verdict == Verdict::Approve { "approved" } else { "denied" };
            events.push(NewEvent {
                kind: format!("gate.{word}"),
                step: Some(decision.step.clone()),
                data: json!({"approver": record.approver, "notes": record.notes}),
            });
        }
        Command::Signal { name } => {
            let payload = order.payload.clone().unwrap_or(Value::Null);
            execute(
                connection,
                "keeping a signal",
                "INSERT INTO signals (run, name, payload) VALUES (?1, ?2, ?3)",
                params![run.0, name, encode(&payload)?],
            )?;
            events.push(moved("signal.received", json!({"name": name, "payload": payload})));
        }
        Command::Cancel => events.push(moved("run.canceled", json!({}))),
        Command::Resume => {
            let head = resume(connection, run, before.head, order.head)?;
            events.push(moved("run.resumed", json!({"checkpoint": head, "mode": "checkpoint_resume"})));
        }
        Command::Claim { .. } | Command::Work { .. } | Command::Replay | Command::Fork => {}
    }
    append(connection, run, &events, now_ms)?;
    Ok(get(connection, run)?.0)
}

/// Moves the head, and lets the steps that are not behind it run again: their records stay, superseded.
fn resume(connection: &Connection, run: &RunId, head: u64, to: Option<u64>) -> Result<u64, StoreError> {
    let number = to.unwrap_or(head);
    let checkpoint = read::checkpoint(connection, run, number)?;
    let done = encode(&checkpoint.done)?;
    execute(
        connection,
        "superseding steps",
        "UPDATE steps SET superseded = 1 WHERE run = ?1 AND step NOT IN (SELECT value FROM json_each(?2))",
        params![run.0, done],
    )?;
    // Intents stay: one without a result may have acted outside, and the worker has to ask about it.
    execute(
        connection,
        "moving the head",
        "UPDATE runs SET head = ?2, steps_done = json_array_length(?3), error = NULL, lost_leases = 0, step = NULL
         WHERE id = ?1",
        params![run.0, number.cast_signed(), done],
    )?;
    Ok(number)
}
