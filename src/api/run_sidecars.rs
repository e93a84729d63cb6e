//! Control requests of sidecars for a run, with their current outcome: pending, in effect, or over.

use serde_json::Value;

use skills_model::{Gate, RunState};
use skills_store::{EventKind, RunEvent, RunId, RunRecord};

/// A control request of a sidecar, and its current outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlRequest {
    /// Time of the request, in milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// Skill and id of the other run: the sidecar, or the run it watches.
    pub other: (Option<String>, RunId),
    /// Whether the request was for this run, not made by it.
    pub on_this: bool,
    /// `pause`, `cancel`, `signal NAME`.
    pub description: String,
    /// The sidecar's reason.
    pub because: Option<String>,
    pub outcome: ControlOutcome,
}

/// The current outcome of a control request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlOutcome {
    /// It was refused, with the reason.
    Refused(String),
    /// It was applied; nothing more is known here about the other run.
    Done,
    /// Paused since this time: nothing starts until it is resumed.
    Paused(i64),
    /// It will be paused, and when.
    PausePending(&'static str),
    /// It was paused from the first time to the second, when it was resumed or ended.
    WasPaused(i64, i64),
    /// It moved on or ended before it was paused.
    NotPaused(RunState),
    Canceled,
    /// The signal is buffered until a step waits for it.
    SignalBuffered,
    /// A step consumed the signal.
    Consumed,
    /// The run ended before any step waited for the signal.
    Unconsumed,
}

impl ControlRequest {
    /// Returns whether it is still pending, or pauses the run now.
    pub fn is_active(&self) -> bool {
        matches!(
            self.outcome,
            ControlOutcome::Paused(_) | ControlOutcome::PausePending(_) | ControlOutcome::SignalBuffered
        )
    }

    /// Returns a sentence; `named` formats the other run, `time` a time.
    pub fn sentence(
        &self,
        named: impl Fn(Option<&str>, &RunId) -> String,
        time: impl Fn(i64) -> String,
    ) -> String {
        let other = named(self.other.0.as_deref(), &self.other.1);
        let because = self.because.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let description = &self.description;
        let came = match &self.outcome {
            ControlOutcome::Refused(why) => format!("refused: {why}"),
            ControlOutcome::Done => format!("executed at {}", time(self.at_ms)),
            ControlOutcome::Paused(since) => {
                format!("paused since {}, until it is resumed", time(*since))
            }
            ControlOutcome::PausePending(when) => format!("{when} it is paused until it is resumed"),
            ControlOutcome::WasPaused(from, until) => {
                return if self.on_this {
                    format!(
                        "the sidecar {other} requested a pause{because}: paused from {} until {}",
                        time(*from),
                        time(*until)
                    )
                } else {
                    format!(
                        "requested {description} of {other}: paused from {} until {}",
                        time(*from),
                        time(*until)
                    )
                };
            }
            ControlOutcome::NotPaused(state) => {
                format!("it was {} before it could be paused", state_label(*state))
            }
            ControlOutcome::Canceled => "it is canceled".to_owned(),
            ControlOutcome::SignalBuffered => "kept until a step waits for it".to_owned(),
            ControlOutcome::Consumed => "received by a step".to_owned(),
            ControlOutcome::Unconsumed => "no step has waited for it".to_owned(),
        };
        if self.on_this {
            let verb = match (&self.outcome, description.as_str()) {
                (ControlOutcome::PausePending(_) | ControlOutcome::Paused(_), "pause") => {
                    "requests a pause".to_owned()
                }
                (ControlOutcome::NotPaused(_), "pause") => "requested a pause".to_owned(),
                _ => format!("requested {description}"),
            };
            format!("the sidecar {other} {verb}{because}: {came}")
        } else {
            format!("requested {description} of {other}: {came}")
        }
    }
}

fn state_label(state: RunState) -> &'static str {
    match state {
        RunState::Completed => "completed",
        RunState::Failed => "failed",
        RunState::Canceled => "canceled",
        _ => "resumed",
    }
}

/// Returns all control requests of sidecars for a run, or of this run as a sidecar, oldest first.
pub fn control_requests<'e>(
    run: &RunRecord,
    events: impl Iterator<Item = &'e RunEvent>,
) -> Vec<ControlRequest> {
    let events: Vec<&RunEvent> = events.collect();
    let mut wishes = Vec::new();
    for (at, event) in events.iter().enumerate() {
        if !matches!(event.event.kind, EventKind::ControlApplied | EventKind::ControlRefused) {
            continue;
        }
        let text = |key: &str| event.event.data.get(key).and_then(Value::as_str).map(str::to_owned);
        let (on_this, other) = match (text("by"), text("on")) {
            (Some(by), _) => (true, by),
            (None, Some(on)) => (false, on),
            (None, None) => continue,
        };
        let description = text("asked").unwrap_or_else(|| "control".to_owned());
        let came = match (text("refused"), on_this) {
            (Some(why), _) => ControlOutcome::Refused(why),
            (None, false) => ControlOutcome::Done,
            (None, true) => outcome_of(&description, run, &events, at),
        };
        wishes.push(ControlRequest {
            at_ms: event.at_ms,
            other: (text("skill"), RunId(other)),
            on_this,
            description,
            because: text("why"),
            outcome: came,
        });
    }
    wishes
}

fn outcome_of(description: &str, run: &RunRecord, events: &[&RunEvent], at: usize) -> ControlOutcome {
    let kind = |event: &&RunEvent, requested: EventKind| event.event.kind == requested;
    if description == "cancel" {
        return if run.state == RunState::Canceled { ControlOutcome::Canceled } else { ControlOutcome::Done };
    }
    if let Some(name) = description.strip_prefix("signal ") {
        let taken = events[at..].iter().any(|event| {
            kind(event, EventKind::SignalConsumed)
                && event.event.data.get("name").and_then(Value::as_str) == Some(name)
        });
        return match (taken, run.state.is_terminal() || run.state == RunState::Failed) {
            (true, _) => ControlOutcome::Consumed,
            (false, true) => ControlOutcome::Unconsumed,
            (false, false) => ControlOutcome::SignalBuffered,
        };
    }
    if description != "pause" {
        return ControlOutcome::Done;
    }
    // Between two resumes a run can be paused once.
    let begins =
        events[..at].iter().rposition(|event| kind(event, EventKind::RunResumed)).map_or(0, |at| at + 1);
    let ends = events[at..].iter().position(|event| kind(event, EventKind::RunResumed)).map(|more| at + more);
    let stretch = &events[begins..ends.unwrap_or(events.len())];
    let paused = stretch.iter().find(|event| kind(event, EventKind::RunHeld)).map(|event| event.at_ms);
    let over = ends.map(|at| events[at].at_ms);
    match (paused, over) {
        (Some(from), Some(until)) => ControlOutcome::WasPaused(from, until),
        (Some(from), None) if run.paused => ControlOutcome::Paused(from),
        (Some(from), None) => ControlOutcome::WasPaused(from, run.since_ms.max(from)),
        (None, Some(_)) => ControlOutcome::NotPaused(RunState::Failed),
        (None, None) if run.paused => ControlOutcome::PausePending(match (run.state, &run.gate) {
            (RunState::WaitingForHuman, Some(Gate::Human { .. })) => "after approval",
            (RunState::WaitingForSignal, _) => "after its signal",
            _ => "before its next step",
        }),
        (None, None) => ControlOutcome::NotPaused(run.state),
    }
}

/// Returns the sidecar that requested to pause a run that waits for approval or a signal, with its reason, if any.
pub fn requested_pause<'a>(
    run: &RunRecord,
    events: impl DoubleEndedIterator<Item = &'a RunEvent>,
) -> Option<String> {
    if !run.paused || !run.state.is_waiting() {
        return None;
    }
    let wishes = control_requests(run, events);
    let wish =
        wishes.iter().rev().find(|wish| wish.on_this && wish.description == "pause" && wish.is_active());
    Some(wish.map_or_else(
        || "another user".to_owned(),
        |wish| {
            let because = wish.because.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{}{because}", wish.other.0.as_deref().unwrap_or(&wish.other.1.0))
        },
    ))
}

#[cfg(test)]
mod tests;
