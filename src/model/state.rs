//! The state machine of a run: one pure function, [`transition`], defines which command leads from which state to
//! which other one. Stores and adapters call it; [`allowed`] lists the commands that a run currently accepts.
//!
//! A *lease* is a worker's right to write to a run; each claim increments the run's *fence*, and every write carries
//! the fence of its claim, so that a worker whose lease expired while it was suspended cannot write (M. Kleppmann,
//! "How to do distributed locking", 2016, calls this a fencing token).

use strum::IntoEnumIterator as _;

use super::types::{
    ApprovalReason, Approvals, BEFORE_FIRST_STEP, Choice, Command, CommandName, Decision, Expiry, Gate,
    Lease, RunSnapshot, RunState, Transition, TransitionError, Verdict, WorkerReport, approval_label,
    expired_at_text,
};

/// Returns the user commands that a run currently accepts, in the order of [`CommandName`].
pub fn allowed(run: &RunSnapshot) -> Vec<CommandName> {
    CommandName::iter()
        .filter(|name| match name {
            CommandName::Approve | CommandName::Deny => run.state == RunState::WaitingForHuman,
            CommandName::Resume => can_resume(run),
            CommandName::Signal | CommandName::Cancel => {
                !run.state.is_terminal() && run.state != RunState::Failed
            }
            CommandName::Replay | CommandName::Fork => true,
        })
        .collect()
}

fn can_resume(run: &RunSnapshot) -> bool {
    run.state == RunState::Failed || (run.state == RunState::Pending && run.paused)
}

/// Looks up the transition table: returns the result of `command` for a run in this state.
///
/// # Errors
/// Returns a [`TransitionError`] with the commands that the run accepts instead.
pub fn transition(run: &RunSnapshot, command: &Command) -> Result<Transition, TransitionError> {
    match command {
        Command::Claim { lease_expired, attempts_used_up } => claim(run, *lease_expired, *attempts_used_up),
        Command::Work { fence, report } => apply_report(run, *fence, report),
        Command::Decide(decision) => decide(run, decision),
        Command::Endorse { decision, by, need } => record_approval(run, decision, by, *need),
        Command::RepeatDecision(decision) => repeat_decision(run, decision),
        Command::Signal { name } => signal(run, name),
        Command::Cancel => cancel(run),
        Command::Pause => pause(run),
        Command::Ask(gate) => ask(run, gate),
        Command::Resume => resume(run),
        Command::Expire(expiry) => expire(run, *expiry),
        Command::Replay => Ok(Transition::NewRun { paused: false }),
        Command::Fork => Ok(Transition::NewRun { paused: true }),
    }
}

/// Returns the transition to a state in which no worker owns the run.
fn move_to(run: &RunSnapshot, state: RunState) -> Transition {
    Transition::Move { state, fence: run.fence, lease: Lease::Release, paused: false, gate: None }
}

/// Returns the transition of a run whose wait has ended: it continues, unless it was paused in the meantime.
fn continue_after_wait(run: &RunSnapshot) -> Transition {
    Transition::Move {
        state: RunState::Pending,
        fence: run.fence,
        lease: Lease::Release,
        paused: run.paused,
        gate: None,
    }
}

fn claim(
    run: &RunSnapshot,
    lease_expired: bool,
    attempts_used_up: bool,
) -> Result<Transition, TransitionError> {
    let state = match run.state {
        RunState::Pending if !run.paused => {
            if run.replays {
                RunState::Replaying
            } else {
                RunState::Running
            }
        }
        active if active.is_active() && lease_expired && attempts_used_up => {
            return Ok(Transition::Move {
                state: RunState::Failed,
                fence: run.fence + 1,
                lease: Lease::Release,
                paused: false,
                gate: None,
            });
        }
        active if active.is_active() && lease_expired => active,
        _ => return Err(TransitionError::NotClaimable),
    };
    Ok(Transition::Move { state, fence: run.fence + 1, lease: Lease::Grant, paused: run.paused, gate: None })
}

fn apply_report(run: &RunSnapshot, fence: u64, report: &WorkerReport) -> Result<Transition, TransitionError> {
    if fence != run.fence || !run.state.is_active() {
        return Err(TransitionError::StaleFence { presented: fence, present: run.fence });
    }
    Ok(match report {
        WorkerReport::Checkpoint => Transition::Move {
            state: RunState::Running,
            fence,
            lease: Lease::Keep,
            paused: run.paused,
            gate: None,
        },
        WorkerReport::Pause => Transition::Move {
            state: RunState::Pending,
            fence,
            lease: Lease::Release,
            paused: true,
            gate: None,
        },
        WorkerReport::Wait(gate) => Transition::Move {
            state: match gate {
                Gate::Human { .. } => RunState::WaitingForHuman,
                Gate::Signal { .. } => RunState::WaitingForSignal,
            },
            fence,
            lease: Lease::Release,
            paused: run.paused,
            gate: Some(gate.clone()),
        },
        WorkerReport::Complete => move_to(run, RunState::Completed),
        WorkerReport::Fail => move_to(run, RunState::Failed),
    })
}

fn decide(run: &RunSnapshot, decision: &Decision) -> Result<Transition, TransitionError> {
    if run.decided.as_ref() == Some(decision) {
        return Ok(Transition::Unchanged);
    }
    if run.state != RunState::WaitingForHuman {
        if let Some(first) = run.decided.as_ref().filter(|first| first.same_gate(decision)) {
            return Err(TransitionError::DecisionConflict(format!(
                "step {} was already decided: {}; a decision cannot be reverted",
                first.step, first.verdict
            )));
        }
        return Err(invalid(run, &decision.verdict.to_string(), None));
    }
    match &run.gate {
        Some(Gate::Human { step, why, .. }) if decision.answers(run.gate.as_ref()) => {
            check_choice(step, why, decision)?;
            Ok(match decision.verdict {
                Verdict::Approve => continue_after_wait(run),
                Verdict::Deny => move_to(run, RunState::Canceled),
            })
        }
        Some(Gate::Human { step, .. }) if *step != decision.step => Err(TransitionError::DecisionConflict(
            format!("the run is waiting for approval of step {step}, not of step {}", decision.step),
        )),
        Some(Gate::Human { step, inputs_digest, .. }) => Err(TransitionError::DecisionConflict(format!(
            "inputs digest mismatch for step {step}: expected {inputs_digest}, got {}; review the inputs again",
            decision.inputs_digest
        ))),
        _ => Err(invalid(run, &decision.verdict.to_string(), None)),
    }
}

/// Records an approval. The run keeps waiting until as many different people as the rule requires have approved.
fn record_approval(
    run: &RunSnapshot,
    decision: &Decision,
    by: &str,
    need: u32,
) -> Result<Transition, TransitionError> {
    // Conditions that reject a single approval also reject one of several.
    let decided = decide(run, decision)?;
    let (Transition::Move { .. }, Some(Gate::Human { step, inputs_digest, why, approvals })) =
        (&decided, &run.gate)
    else {
        return Ok(decided);
    };
    let approved = approvals.by.iter().any(|earlier| earlier == by);
    let agrees =
        approvals.is_empty() || (approvals.choice, &approvals.result) == (decision.choice, &decision.result);
    let by: Vec<String> = match (approved, agrees) {
        (true, true) => return Ok(Transition::Unchanged),
        (false, true) => approvals.by.iter().cloned().chain([by.to_owned()]).collect(),
        // No other person has approved with the earlier choice.
        (true, false) if approvals.by.len() == 1 => approvals.by.clone(),
        (_, false) => return Err(TransitionError::DecisionConflict(approval_conflict(step, approvals))),
    };
    if u32::try_from(by.len()).unwrap_or(u32::MAX) >= need {
        return Ok(decided);
    }
    Ok(Transition::Move {
        state: run.state,
        fence: run.fence,
        lease: Lease::Release,
        paused: run.paused,
        gate: Some(Gate::Human {
            step: step.clone(),
            inputs_digest: inputs_digest.clone(),
            why: why.clone(),
            approvals: Approvals { need, by, choice: decision.choice, result: decision.result.clone() },
        }),
    })
}

/// Returns why an approval is rejected whose choice or result differs from that of the earlier ones.
fn approval_conflict(step: &str, approvals: &Approvals) -> String {
    let (by, choice) = (approvals.by.join(" and "), approvals.shared_choice());
    let what = if approvals.result.is_some() { "choice and result" } else { "choice" };
    format!("step {step} was approved by {by}{choice}; approve with the same {what}, or deny it")
}

/// Accepts a decision only if it was recorded before.
fn repeat_decision(run: &RunSnapshot, decision: &Decision) -> Result<Transition, TransitionError> {
    if decide(run, decision)? == Transition::Unchanged {
        return Ok(Transition::Unchanged);
    }
    let needed = format!("step {} has only just started waiting; review it first", decision.step);
    Err(invalid(run, &decision.verdict.to_string(), Some(needed)))
}

/// Checks that a choice is for the approval of an unknown outcome.
///
/// # Errors
/// Returns a conflict for any other decision.
pub fn check_offered(
    step: &str,
    outcome_unknown: bool,
    verdict: Verdict,
    choice: Choice,
) -> Result<(), TransitionError> {
    match (outcome_unknown, verdict) {
        (true, Verdict::Approve) => Ok(()),
        (true, Verdict::Deny) => Err(TransitionError::DecisionConflict(format!(
            "denying step {step} cancels the run; the choice `{choice}` is only valid for an approval"
        ))),
        (false, _) => Err(TransitionError::DecisionConflict(format!(
            "the choice `{choice}` is only valid for an unknown outcome; approve or deny step {step}"
        ))),
    }
}

/// Checks that an approval has a choice if and only if it is for an unknown outcome.
fn check_choice(step: &str, why: &ApprovalReason, decision: &Decision) -> Result<(), TransitionError> {
    let unknown = *why == ApprovalReason::UnknownOutcome && decision.verdict == Verdict::Approve;
    match (unknown, decision.choice) {
        (true, None) => Err(TransitionError::DecisionConflict(format!(
            "the outcome of step {step} is unknown: choose rerun, happened (with its result), skip or fail"
        ))),
        (true, Some(Choice::Happened)) if decision.result.is_none() => {
            Err(TransitionError::DecisionConflict(format!(
                "the choice `happened` requires the result of step {step}, an object with its outputs; the other \
                    choices are rerun, skip and fail"
            )))
        }
        (_, choice) if decision.result.is_some() && choice != Some(Choice::Happened) => {
            Err(TransitionError::DecisionConflict(format!(
                "a result is only valid with the choice `happened`; remove it from the decision on step \
                    {step}"
            )))
        }
        (_, Some(choice)) => {
            check_offered(step, *why == ApprovalReason::UnknownOutcome, decision.verdict, choice)
        }
        _ => Ok(()),
    }
}

fn expire(run: &RunSnapshot, expiry: Expiry) -> Result<Transition, TransitionError> {
    match run.state {
        RunState::WaitingForHuman | RunState::WaitingForSignal => Ok(move_to(
            run,
            match expiry {
                Expiry::Deny => RunState::Canceled,
                Expiry::Fail => RunState::Failed,
            },
        )),
        _ => Err(invalid(run, "expire", Some("only a waiting run expires".to_owned()))),
    }
}

fn signal(run: &RunSnapshot, name: &str) -> Result<Transition, TransitionError> {
    match (run.state, &run.gate) {
        (RunState::WaitingForSignal, Some(Gate::Signal { name: awaited, .. })) if awaited == name => {
            Ok(continue_after_wait(run))
        }
        (RunState::WaitingForSignal, Some(Gate::Signal { name: awaited, .. })) => Err(invalid(
            run,
            "signal",
            Some(format!("it is waiting for the signal `{awaited}`, not `{name}`")),
        )),
        (state, _) if state.is_terminal() || state == RunState::Failed => Err(invalid(run, "signal", None)),
        _ => Ok(Transition::SignalBuffered),
    }
}

fn cancel(run: &RunSnapshot) -> Result<Transition, TransitionError> {
    match run.state {
        RunState::Canceled => Ok(Transition::Unchanged),
        RunState::Completed | RunState::Failed => Err(invalid(run, "cancel", None)),
        active if active.is_active() => Ok(Transition::Move {
            state: RunState::Canceled,
            fence: run.fence + 1,
            lease: Lease::Release,
            paused: false,
            gate: None,
        }),
        _ => Ok(move_to(run, RunState::Canceled)),
    }
}

/// Pauses a run without losing work: immediately if no worker owns it, otherwise before its next step, or when its
/// wait ends.
fn pause(run: &RunSnapshot) -> Result<Transition, TransitionError> {
    if run.state.is_terminal() || run.state == RunState::Failed {
        return Err(invalid(run, "pause", Some("no step is running".to_owned())));
    }
    if run.paused {
        return Ok(Transition::Unchanged);
    }
    let lease = if run.state.is_active() { Lease::Keep } else { Lease::Release };
    Ok(Transition::Move { state: run.state, fence: run.fence, lease, paused: true, gate: run.gate.clone() })
}

/// Replaces the gate of the waiting step by another one.
fn ask(run: &RunSnapshot, gate: &Gate) -> Result<Transition, TransitionError> {
    match (run.state, &run.gate, gate) {
        (RunState::WaitingForHuman, Some(present), wanted) if present.is_same_question(wanted) => {
            Ok(Transition::Unchanged)
        }
        (RunState::WaitingForHuman, Some(Gate::Human { step: at, .. }), Gate::Human { step, .. })
            if at == step =>
        {
            Ok(Transition::Move {
                state: run.state,
                fence: run.fence,
                lease: Lease::Release,
                paused: run.paused,
                gate: Some(gate.clone()),
            })
        }
        _ => Err(invalid(run, "ask", Some("it is not waiting for a decision on that step".to_owned()))),
    }
}

fn resume(run: &RunSnapshot) -> Result<Transition, TransitionError> {
    if can_resume(run) {
        return Ok(move_to(run, RunState::Pending));
    }
    let needed = match &run.gate {
        Some(Gate::Human { step, .. }) if step == BEFORE_FIRST_STEP => {
            Some(format!("it is waiting for the {}", approval_label(step)))
        }
        Some(Gate::Human { step, .. }) => Some(format!("step {step} is waiting for approval")),
        Some(Gate::Signal { name, .. }) => Some(format!("it is waiting for the signal `{name}`")),
        None => None,
    };
    Err(invalid(run, "resume", needed))
}

fn invalid(run: &RunSnapshot, command: &str, needed: Option<String>) -> TransitionError {
    // If the wait has expired, the error reports it with the time of the deadline.
    let needed = needed.or_else(|| run.expired_ms.map(expired_at_text));
    TransitionError::Invalid { command: command.to_owned(), state: run.state, needed, allowed: allowed(run) }
}

#[cfg(test)]
mod tests;
