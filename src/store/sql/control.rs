//! Applies what a finished sidecar requested for the run it watches: once, and recorded on both runs.

use serde_json::json;

use super::command::{CommandRequest, command};
use super::rows::{append, as_of, find_short, moved};
use super::{Tx, dialect, values};
use crate::{Control, ControlOutcome, EventKind, RunId, RunRecord, StoreError};
use skills_model::{Command, RunState};

pub(crate) async fn control<T: Tx>(
    tx: &T,
    sidecar: &RunId,
    watched: &RunId,
    control: &Control,
) -> Result<ControlOutcome, StoreError> {
    let (first, second) = if sidecar <= watched { (sidecar, watched) } else { (watched, sidecar) };
    // Always in the same order: two sidecars that watch each other must not deadlock.
    find_short(tx, first).await?;
    find_short(tx, second).await?;
    // The sidecar's own event, whatever the outcome.
    let sql = format!(
        "SELECT data FROM events WHERE run = ?1 AND kind IN ('control.applied', 'control.refused')
            AND {} IS NOT NULL ORDER BY number LIMIT 1",
        dialect::field(T::POSTGRES, "data", "on")
    );
    let before = tx.find("look for what a sidecar asked", &sql, values![sidecar]).await?;
    if let Some(row) = before {
        let first: serde_json::Value = row.json(0)?;
        return Ok(match first["refused"].as_str() {
            Some(why) => ControlOutcome::Refused(why.to_owned()),
            None => ControlOutcome::Applied(first["did"].as_str().unwrap_or_default().to_owned()),
        });
    }
    let before = find_short(tx, watched).await?;
    let now_ms = tx.now().await?.wall_ms;
    let before = before.map(|(run, replays)| as_of(run, replays, now_ms));
    let outcome = match (&control.command, &before) {
        (Err(why), _) => ControlOutcome::Refused(why.clone()),
        (Ok(_), None) => ControlOutcome::Refused(StoreError::NoRun(watched.clone()).to_string()),
        (Ok((requested, payload)), Some(before)) => {
            let request = CommandRequest {
                since_ms: None,
                command: requested.clone(),
                record: None,
                head: None,
                payload: payload.clone(),
            };
            match command(tx, watched, &request).await {
                Ok(done) => ControlOutcome::Applied(did(&request.command, before, &done.run)),
                Err(StoreError::Refused(refusal)) => ControlOutcome::Refused(refusal.to_string()),
                Err(error) => return Err(error),
            }
        }
    };
    let mut data = json!({"asked": control.description});
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
    if let Some((run, _)) = find_short(tx, sidecar).await? {
        by["skill"] = run.skill_id.into();
    }
    if let Some(run) = &before {
        on["skill"] = run.skill_id.as_str().into();
    }
    append(tx, sidecar, &[moved(kind.clone(), on)], now_ms).await?;
    if before.is_some() {
        append(tx, watched, &[moved(kind, by)], now_ms).await?;
    }
    Ok(outcome)
}

/// Describes the effect of an applied command on the run.
fn did(command: &Command, before: &RunRecord, after: &RunRecord) -> String {
    let words = match (command, before.state) {
        (Command::Pause, _) if before.paused => "it was already paused",
        (Command::Pause, RunState::Pending) => "it is paused until it is resumed",
        (Command::Pause, RunState::WaitingForHuman) => {
            "it is waiting for approval; after the decision it is paused until it is resumed"
        }
        (Command::Pause, RunState::WaitingForSignal) => {
            "it is waiting for a signal; after the signal it is paused until it is resumed"
        }
        (Command::Pause, _) => "it stops before its next step and is paused until it is resumed",
        (Command::Cancel, RunState::Canceled) => "it was already canceled",
        (Command::Cancel, _) => "it is canceled",
        (Command::Signal { .. }, RunState::WaitingForSignal) if after.state == RunState::Pending => {
            "the waiting step continues"
        }
        (Command::Signal { .. }, _) => "it is buffered until a step waits for it",
        _ => "done",
    };
    words.to_owned()
}
