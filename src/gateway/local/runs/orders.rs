//! What people do to a run: decide, resume, signal, cancel, replay, fork.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Room, Runs, find, launch, people};
use crate::engine::{Plan, check_inputs, check_outputs};
use crate::gateway::{Code, Error, Ordered, RunOrder};
use crate::runs::{Choice, Command, Decision, Gate, Next, Refusal, Verdict, transition};
use crate::store::{Decided, DecisionRecord, RunId, RunRecord, StoreError};

impl Runs {
    /// Carries out an order.
    pub(super) async fn order(self: &Arc<Self>, wanted: &str, order: RunOrder) -> Result<Ordered, Error> {
        let room = self.room().await?;
        let run = Self::expire(&room, find::run(&*room.store, wanted).await?).await?;
        let mut repeated = false;
        let (run, note) = match order {
            RunOrder::Decide { verdict, step, inputs_digest, approver, notes, choice, result } => {
                let named = inputs_digest.is_some();
                let (step, inputs_digest) = bound(&run, step, inputs_digest);
                let decision = Decision { verdict, step, inputs_digest, choice, result };
                let run = self.agreeable(&room, run, &decision, named).await?;
                let made = self.decide(&room, &run, decision, DecisionRecord { approver, notes }).await?;
                repeated = made.2;
                (made.0, made.1)
            }
            RunOrder::Resume { checkpoint, inputs, despite_change, by } => {
                self.resume(&room, &run, (checkpoint, inputs), despite_change, given(by)).await?
            }
            RunOrder::Signal { name, payload, by } => signal(&room, &run, name, payload, given(by)).await?,
            RunOrder::Cancel { by } => {
                let before = self.next(&room, &run, &Command::Cancel).await?;
                let after = room.store.command(&run.id, Command::Cancel, Some(given(by)), None, None).await?;
                repeated = before == Next::Same;
                let note = if repeated { "was already canceled" } else { "canceled" };
                (after, note.to_owned())
            }
            RunOrder::Replay { checkpoint, by } => branch(&room, &run, checkpoint, false, given(by)).await?,
            RunOrder::Fork { checkpoint, by } => branch(&room, &run, checkpoint, true, given(by)).await?,
        };
        let worker_alive = self.worker_alive(&room).await;
        Ok(Ordered { run, note, worker_alive, repeated })
    }

    /// What a command would lead to now.
    ///
    /// # Errors
    /// `invalid_transition`.
    async fn next(&self, room: &Room, run: &RunRecord, command: &Command) -> Result<Next, Error> {
        let standing = room.store.standing(&run.id).await?;
        let standing =
            standing.ok_or_else(|| Error::from(crate::store::StoreError::NoRun(run.id.clone())))?;
        transition(&standing, command).map_err(Error::from)
    }

    /// Ends a wait whose time is over, where no worker has done it yet: what comes too late comes too late whoever is
    /// awake.
    async fn expire(room: &Room, run: RunRecord) -> Result<RunRecord, Error> {
        let now = jiff::Timestamp::now().as_millisecond();
        if run.expires_ms.is_none_or(|at| at > now) {
            return Ok(run);
        }
        let expiry = Command::Expire(run.options.on_expiry);
        Ok(room.store.command(&run.id, expiry, None, None, None).await?)
    }

    async fn decide(
        self: &Arc<Self>,
        room: &Room,
        run: &RunRecord,
        decision: Decision,
        mut by: DecisionRecord,
    ) -> Result<(RunRecord, String, bool), Error> {
        let known = room.store.decisions(&run.id).await?.len();
        if by.approver.as_deref().is_none_or(|name| name.trim().is_empty()) {
            by.approver = Some(self.approver().await.0);
        }
        if let Some(result) = &decision.result {
            fits(room, run, &decision, result).await?;
        }
        let command = Command::Decide(decision.clone());
        let ordered = room.store.command(&run.id, command, Some(by.clone()), None, None).await;
        let decisions = room.store.decisions(&run.id).await?;
        let after = match ordered {
            Ok(after) => after,
            Err(refused @ StoreError::Refused(Refusal::OtherDecision(_) | Refusal::Invalid { .. })) => {
                return Err(too_late(&decision, &decisions, refused));
            }
            Err(error) => return Err(error.into()),
        };
        // The first record of this decision that was not there before is ours, if it says what we said: somebody who
        // decided the same at the same moment is named instead.
        let recorded = decisions.iter().rev().find(|kept| kept.decision == decision);
        let new = decisions.len() > known;
        Ok(match recorded {
            Some(kept) if !new || kept.by != by => (after, already(&decision, kept, &by), true),
            _ => {
                let note = word(&decision).to_owned() + then_held(&after);
                (after, note, false)
            }
        })
    }

    async fn resume(
        self: &Arc<Self>,
        room: &Room,
        run: &RunRecord,
        (checkpoint, inputs): (Option<u64>, Option<Map<String, Value>>),
        despite_change: bool,
        by: DecisionRecord,
    ) -> Result<(RunRecord, String), Error> {
        self.next(room, run, &Command::Resume).await?;
        let plan = room.plan(&run.contract_digest).await?;
        if let Some(number) = checkpoint {
            has_checkpoint(room, run, number).await?;
        }
        if let Some(corrected) = &inputs {
            corrected_fit(&plan, run, corrected)?;
        }
        if !despite_change {
            self.unchanged(run, &plan).await?;
        }
        let payload = inputs.clone().map(Value::Object);
        let after = room.store.command(&run.id, Command::Resume, Some(by), checkpoint, payload).await?;
        let mut note = "resumed".to_owned();
        if let Some(number) = checkpoint {
            note = format!("{note} from checkpoint {number}");
        }
        if let Some(corrected) = inputs.filter(|fields| !fields.is_empty()) {
            let names: Vec<String> = corrected.keys().cloned().collect();
            note = format!("{note} with other {}", names.join(", "));
        }
        Ok((after, note))
    }

    /// Refuses to go on where the skill is not the one that was launched.
    async fn unchanged(self: &Arc<Self>, run: &RunRecord, plan: &Plan) -> Result<(), Error> {
        let (present, version) = self.present(run, plan).await;
        if present.as_deref() == Some(&run.contract_digest) {
            return Ok(());
        }
        let launched = &plan.contract.version;
        let what = match (&present, version) {
            (None, None) => format!("the skill {} is gone or cannot run any more", run.skill_id),
            (_, Some(now)) if now != *launched => {
                format!("the skill {} changed since the launch: {launched} then, {now} now", run.skill_id)
            }
            _ => format!("the skill {} changed since the launch", run.skill_id),
        };
        let message = format!(
            "{what}. The contract of the launch is kept: go on with it (--despite-change), or launch the skill anew"
        );
        let reason = json!({ "launched": run.contract_digest, "present": present });
        Err(Error { reason: Some(reason), ..Error::new(Code::SkillChanged, message) })
    }
}

/// Who gives an order: as named, else the account.
fn given(by: Option<String>) -> DecisionRecord {
    let by = by.filter(|name| !name.trim().is_empty()).unwrap_or_else(people::account);
    DecisionRecord { approver: Some(by), notes: None }
}

/// Refuses a result that the step could not have given.
async fn fits(room: &Room, run: &RunRecord, decision: &Decision, result: &Value) -> Result<(), Error> {
    let wrong = |message: String| Error::new(Code::InvalidRequest, message);
    let Some(fields) = result.as_object() else {
        return Err(wrong("a result is an object of fields: {\"field\": value}".to_owned()));
    };
    let at = room.engine.at_gate(&run.id).await?;
    let asked = at.filter(|at| at.step == decision.step && at.inputs_digest == decision.inputs_digest);
    // What does not wait is answered by the state machine, in its own words.
    let Some(capability) = asked.and_then(|at| at.capability) else { return Ok(()) };
    check_outputs(&capability.outputs, fields).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        wrong(format!("the result is none of {}: {}", capability.id, problems.join("; ")))
    })
}

/// A decision that is not taken any more: who decided, what and when, where that is known.
fn too_late(decision: &Decision, decisions: &[Decided], refused: StoreError) -> Error {
    let first = decisions.iter().rev().find(|kept| {
        kept.decision.step == decision.step && kept.decision.inputs_digest == decision.inputs_digest
    });
    let error = Error::from(refused);
    let Some(first) = first else { return error };
    let message = format!(
        "step {} {}; a decision cannot be taken back",
        decision.step,
        was(&first.decision, first, "already ")
    );
    Error { message, ..error }
}

/// `was already approved by ana at 2026-07-14 09:28:30 UTC`.
fn was(decision: &Decision, first: &Decided, already: &str) -> String {
    let who = first.by.approver.as_deref().unwrap_or("somebody");
    let at = jiff::Timestamp::from_millisecond(first.at_ms).unwrap_or_default();
    format!("was {already}{} by {who} at {} UTC", word(decision), at.strftime("%Y-%m-%d %H:%M:%S"))
}

/// What to say to somebody who decides what was decided: the first decision stands, with what was said to it.
fn already(decision: &Decision, first: &Decided, now: &DecisionRecord) -> String {
    let said = was(decision, first, "already ");
    let spoken = |notes: &Option<String>| notes.clone().filter(|notes| !notes.trim().is_empty());
    match (spoken(&now.notes), spoken(&first.by.notes)) {
        (Some(new), Some(kept)) if new == kept => said,
        (Some(_), Some(kept)) => {
            format!("{said} with the notes {kept:?}, and that stands; the new notes were not kept")
        }
        (Some(_), None) => format!("{said} without notes, and that stands; the new notes were not kept"),
        (None, Some(kept)) => format!("{said} with the notes {kept:?}"),
        (None, None) => said,
    }
}

/// What a sidecar's pause makes of a run that could go on now.
fn then_held(after: &RunRecord) -> &'static str {
    if after.held { "; it was paused meanwhile and is held until somebody resumes it" } else { "" }
}

fn word(decision: &Decision) -> &'static str {
    match (decision.verdict, decision.choice) {
        (Verdict::Approve, None) => "approved",
        (Verdict::Approve, Some(Choice::Rerun)) => "approved to run again",
        (Verdict::Approve, Some(Choice::Happened)) => "taken as happened, with the result that was stated",
        (Verdict::Approve, Some(Choice::Skip)) => "approved to be skipped",
        (Verdict::Approve, Some(Choice::Fail)) => "left to fail",
        (Verdict::Deny, _) => "denied",
    }
}

/// Step and digest that a decision is about: as given, else the waiting gate's, else those decided last (the same
/// decision again has to find its first answer).
fn bound(run: &RunRecord, step: Option<String>, digest: Option<String>) -> (String, String) {
    let (at, seen) = match (&run.gate, &run.decided) {
        (Some(Gate::Human { step, inputs_digest, .. }), _) => (step.clone(), inputs_digest.clone()),
        (_, Some(decided)) => (decided.step.clone(), decided.inputs_digest.clone()),
        _ => (String::new(), String::new()),
    };
    (step.unwrap_or(at), digest.unwrap_or(seen))
}

async fn signal(
    room: &Room,
    run: &RunRecord,
    name: String,
    payload: Value,
    by: DecisionRecord,
) -> Result<(RunRecord, String), Error> {
    if name.trim().is_empty() {
        return Err(Error::new(Code::InvalidRequest, "a signal needs a name"));
    }
    let command = Command::Signal { name: name.clone() };
    let after = room.store.command(&run.id, command, Some(by), None, Some(payload)).await?;
    let awaited = matches!(&run.gate, Some(Gate::Signal { name: wanted, .. }) if *wanted == name);
    let note = if awaited {
        format!("signal {name} received{}", then_held(&after))
    } else {
        format!("signal {name} is kept until a step waits for it")
    };
    Ok((after, note))
}

async fn branch(
    room: &Room,
    run: &RunRecord,
    checkpoint: Option<u64>,
    held: bool,
    by: DecisionRecord,
) -> Result<(RunRecord, String), Error> {
    if let Some(number) = checkpoint {
        has_checkpoint(room, run, number).await?;
    }
    let new = RunId(uuid::Uuid::now_v7().to_string());
    let made = room.store.branch(&run.id, checkpoint, new, held, by.approver).await?;
    let at = checkpoint.unwrap_or(run.head);
    let note = if held {
        format!("forked from {} at checkpoint {at}; nothing runs until it is resumed", run.id)
    } else {
        format!("replays {} from checkpoint {at}", run.id)
    };
    Ok((made, note))
}

/// Refuses a checkpoint that the run has not, with those it has.
async fn has_checkpoint(room: &Room, run: &RunRecord, number: u64) -> Result<(), Error> {
    match room.store.checkpoint(&run.id, number).await {
        Err(StoreError::NoCheckpoint { .. }) => {
            let known = room.store.checkpoints(&run.id).await?;
            let last = known.last().map_or(0, |kept| kept.number);
            let message = format!("run {} has no checkpoint {number}; it has 0 to {last}", run.id);
            Err(Error::new(Code::CheckpointNotFound, message))
        }
        kept => Ok(kept.map(drop)?),
    }
}

/// Corrected inputs joined over the run's own have to fit the contract that runs.
fn corrected_fit(plan: &Plan, run: &RunRecord, corrected: &Map<String, Value>) -> Result<(), Error> {
    let mut joined = run.inputs.as_object().cloned().unwrap_or_default();
    joined.extend(corrected.clone());
    check_inputs(&plan.contract.inputs, &joined)
        .map(drop)
        .map_err(|problems| launch::inputs_error(&run.skill_id, &problems))
}
