//! Control requests of sidecars for a run, with their current outcome: pending, in effect, or over.

use serde_json::Value;

use skills_model::{Gate, RunState};
use skills_store::{EventKind, RunEvent, RunId, RunRecord};

/// A control request of a sidecar, and its current outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidecarWish {
    /// Time of the request, in milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// Skill and id of the other run: the sidecar, or the run it watches.
    pub other: (Option<String>, RunId),
    /// Whether the request was for this run, not made by it.
    pub on_this: bool,
    /// `pause`, `cancel`, `signal NAME`.
    pub asked: String,
    /// The sidecar's reason.
    pub because: Option<String>,
    /// Its outcome.
    pub came: Came,
}

/// The current outcome of a control request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// It was refused, with the reason.
    Refused(String),
    /// It was applied; nothing more is known here about the other run.
    Done,
    /// Paused since this time: nothing starts until it is resumed.
    Held(i64),
    /// It will be paused, and when.
    ToBeHeld(&'static str),
    /// It was paused from the first time to the second, when it was resumed or ended.
    WasHeld(i64, i64),
    /// It moved on or ended before it was paused.
    NeverHeld(RunState),
    /// It was canceled.
    Canceled,
    /// The signal is buffered until a step waits for it.
    Kept,
    /// A step consumed the signal.
    Taken,
    /// The run ended before any step waited for the signal.
    NeverTaken,
}

impl SidecarWish {
    /// Returns whether it is still pending, or pauses the run now.
    #[must_use]
    pub fn stands(&self) -> bool {
        matches!(self.came, Came::Held(_) | Came::ToBeHeld(_) | Came::Kept)
    }

    /// Returns a sentence; `named` formats the other run, `time` a time.
    #[must_use]
    pub fn sentence(
        &self,
        named: impl Fn(Option<&str>, &RunId) -> String,
        time: impl Fn(i64) -> String,
    ) -> String {
        let other = named(self.other.0.as_deref(), &self.other.1);
        let because = self.because.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let asked = &self.asked;
        let came = match &self.came {
            Came::Refused(why) => format!("refused: {why}"),
            Came::Done => format!("executed at {}", time(self.at_ms)),
            Came::Held(since) => {
                format!("paused since {}, until it is resumed", time(*since))
            }
            Came::ToBeHeld(when) => format!("{when} it is paused until it is resumed"),
            Came::WasHeld(from, until) => {
                return if self.on_this {
                    format!(
                        "the sidecar {other} requested a pause{because}: paused from {} until {}",
                        time(*from),
                        time(*until)
                    )
                } else {
                    format!(
                        "requested {asked} of {other}: paused from {} until {}",
                        time(*from),
                        time(*until)
                    )
                };
            }
            Came::NeverHeld(state) => format!("it was {} before it could be paused", word(*state)),
            Came::Canceled => "it is canceled".to_owned(),
            Came::Kept => "kept until a step waits for it".to_owned(),
            Came::Taken => "received by a step".to_owned(),
            Came::NeverTaken => "no step has waited for it".to_owned(),
        };
        if self.on_this {
            let verb = match (&self.came, asked.as_str()) {
                (Came::ToBeHeld(_) | Came::Held(_), "pause") => "requests a pause".to_owned(),
                (Came::NeverHeld(_), "pause") => "requested a pause".to_owned(),
                _ => format!("requested {asked}"),
            };
            format!("the sidecar {other} {verb}{because}: {came}")
        } else {
            format!("requested {asked} of {other}: {came}")
        }
    }
}

fn word(state: RunState) -> &'static str {
    match state {
        RunState::Completed => "completed",
        RunState::Failed => "failed",
        RunState::Canceled => "canceled",
        _ => "resumed",
    }
}

/// Returns all control requests of sidecars for a run, or of this run as a sidecar, oldest first.
pub fn sidecar_wishes<'e>(run: &RunRecord, events: impl Iterator<Item = &'e RunEvent>) -> Vec<SidecarWish> {
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
        let asked = text("asked").unwrap_or_else(|| "control".to_owned());
        let came = match (text("refused"), on_this) {
            (Some(why), _) => Came::Refused(why),
            (None, false) => Came::Done,
            (None, true) => came_of(&asked, run, &events, at),
        };
        wishes.push(SidecarWish {
            at_ms: event.at_ms,
            other: (text("skill"), RunId(other)),
            on_this,
            asked,
            because: text("why"),
            came,
        });
    }
    wishes
}

fn came_of(asked: &str, run: &RunRecord, events: &[&RunEvent], at: usize) -> Came {
    let kind = |event: &&RunEvent, wanted: EventKind| event.event.kind == wanted;
    if asked == "cancel" {
        return if run.state == RunState::Canceled { Came::Canceled } else { Came::Done };
    }
    if let Some(name) = asked.strip_prefix("signal ") {
        let taken = events[at..].iter().any(|event| {
            kind(event, EventKind::SignalConsumed)
                && event.event.data.get("name").and_then(Value::as_str) == Some(name)
        });
        return match (taken, run.state.is_terminal() || run.state == RunState::Failed) {
            (true, _) => Came::Taken,
            (false, true) => Came::NeverTaken,
            (false, false) => Came::Kept,
        };
    }
    if asked != "pause" {
        return Came::Done;
    }
    // Between two resumes a run can be paused once.
    let begins =
        events[..at].iter().rposition(|event| kind(event, EventKind::RunResumed)).map_or(0, |at| at + 1);
    let ends = events[at..].iter().position(|event| kind(event, EventKind::RunResumed)).map(|more| at + more);
    let stretch = &events[begins..ends.unwrap_or(events.len())];
    let held = stretch.iter().find(|event| kind(event, EventKind::RunHeld)).map(|event| event.at_ms);
    let over = ends.map(|at| events[at].at_ms);
    match (held, over) {
        (Some(from), Some(until)) => Came::WasHeld(from, until),
        (Some(from), None) if run.held => Came::Held(from),
        (Some(from), None) => Came::WasHeld(from, run.since_ms.max(from)),
        (None, Some(_)) => Came::NeverHeld(RunState::Failed),
        (None, None) if run.held => Came::ToBeHeld(match (run.state, &run.gate) {
            (RunState::WaitingForHuman, Some(Gate::Human { .. })) => "after approval",
            (RunState::WaitingForSignal, _) => "after its signal",
            _ => "before its next step",
        }),
        (None, None) => Came::NeverHeld(run.state),
    }
}

/// Returns the sidecar that requested to pause a run that waits for approval or a signal, with its reason, if any.
#[must_use]
pub fn pause_wanted<'a>(
    run: &RunRecord,
    events: impl DoubleEndedIterator<Item = &'a RunEvent>,
) -> Option<String> {
    if !run.held || !matches!(run.state, RunState::WaitingForHuman | RunState::WaitingForSignal) {
        return None;
    }
    let wishes = sidecar_wishes(run, events);
    let wish = wishes.iter().rev().find(|wish| wish.on_this && wish.asked == "pause" && wish.stands());
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
