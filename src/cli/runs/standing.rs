//! Where a run and a step stand, in a sign, an ink and a few words; and how a command ends by it.

use serde_json::Value;

use crate::cli::failure::Done;
use crate::cli::output::{Ink, Look};
use crate::gateway::StepState;
use crate::runs::{Asked, Gate, RunState};
use crate::skill::safe_text;
use crate::store::RunRecord;

/// The sign of a run's state, painted.
pub fn sign(run: &RunRecord, look: Look) -> String {
    let (unicode, ascii, ink) = match run.state {
        RunState::WaitingForHuman => ("◆", "!", Ink::Warn),
        RunState::WaitingForSignal => ("◇", "~", Ink::Info),
        RunState::Pending => ("○", "o", Ink::Muted),
        RunState::Running | RunState::Replaying => ("▸", ">", Ink::Info),
        RunState::Completed => ("✓", "+", Ink::Good),
        RunState::Failed => ("✗", "x", Ink::Bad),
        RunState::Canceled => ("⊘", "/", Ink::Muted),
    };
    ink.paint(if look.unicode { unicode } else { ascii }, look.colour)
}

/// The sign of a step's state, painted.
pub fn step_sign(state: StepState, look: Look) -> String {
    let (unicode, ascii, ink) = match state {
        StepState::Pending => ("○", "o", Ink::Muted),
        StepState::Running => ("▸", ">", Ink::Info),
        StepState::WaitingForHuman => ("◆", "!", Ink::Warn),
        StepState::WaitingForSignal => ("◇", "~", Ink::Info),
        StepState::Completed => ("✓", "+", Ink::Good),
        StepState::Skipped => ("–", "-", Ink::Muted),
        StepState::Failed => ("✗", "x", Ink::Bad),
    };
    ink.paint(if look.unicode { unicode } else { ascii }, look.colour)
}

/// Where it stands, in a few words: `book waits for a person`, `failed at sum: http 502`.
pub fn words(run: &RunRecord) -> String {
    let step = run.step.as_deref().map(|step| safe_text::line(step).into_owned());
    match run.state {
        RunState::Pending if run.held => match &run.source {
            Some((_, checkpoint)) => format!("held, from checkpoint {checkpoint}"),
            None => "held".to_owned(),
        },
        RunState::Pending => "pending".to_owned(),
        RunState::Running => step.map_or_else(|| "running".to_owned(), |step| format!("running {step}")),
        RunState::Replaying => "replaying".to_owned(),
        RunState::WaitingForHuman | RunState::WaitingForSignal => match &run.gate {
            Some(Gate::Human { step, why: Asked::UnknownOutcome, .. }) => {
                format!("{}: outcome unknown", safe_text::line(step))
            }
            Some(Gate::Human { step, .. }) => format!("{} waits for a person", safe_text::line(step)),
            Some(Gate::Signal { name, .. }) => format!("waits for signal {}", safe_text::line(name)),
            None => run.state.to_string(),
        },
        RunState::Completed => "completed".to_owned(),
        RunState::Failed => match (failed_step(run), failure(run)) {
            (Some(step), Some(why)) => format!("failed at {step}: {why}"),
            (None, Some(why)) => format!("failed: {why}"),
            (Some(step), None) => format!("failed at {step}"),
            (None, None) => "failed".to_owned(),
        },
        RunState::Canceled => match failure(run) {
            Some(why) => format!("canceled: {why}"),
            None => "canceled".to_owned(),
        },
    }
}

/// Why a person is asked, in a sentence.
pub fn asked(why: &Asked) -> String {
    match why {
        Asked::Confirmation => "its capability wants a yes each time".to_owned(),
        Asked::Gate { capability, reason } => {
            format!(
                "the gate {} leaves it to a person: {}",
                safe_text::line(capability),
                safe_text::line(reason)
            )
        }
        Asked::Policy { rule } => format!("the policy asks: {}", safe_text::line(rule)),
        Asked::UnknownOutcome => {
            "it had begun when its worker was lost, and nobody knows how it ended".to_owned()
        }
    }
}

/// What went wrong, in one line.
pub fn failure(run: &RunRecord) -> Option<String> {
    let error = run.error.as_ref()?;
    let message = error.as_str().or_else(|| error.get("message").and_then(Value::as_str));
    Some(safe_text::line(&message.map_or_else(|| error.to_string(), str::to_owned)).into_owned())
}

/// The step that failed.
pub fn failed_step(run: &RunRecord) -> Option<String> {
    let named = run.error.as_ref().and_then(|error| error.get("step")).and_then(Value::as_str);
    named.or(run.step.as_deref()).map(|step| safe_text::line(step).into_owned())
}

/// How a command that works a run ends, by where the run stands then.
pub fn done(run: &RunRecord) -> Done {
    match run.state {
        RunState::Completed | RunState::Pending | RunState::Running | RunState::Replaying => Done::Fine,
        RunState::Failed | RunState::Canceled => Done::Findings,
        RunState::WaitingForHuman | RunState::WaitingForSignal => Done::Waiting,
    }
}

/// The end of a run's id, which tells it from others: ids begin with the time of their making.
pub fn short(id: &str) -> &str {
    let at = id.char_indices().rev().nth(7).map_or(0, |(at, _)| at);
    &id[at..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::runs::samples::record;

    #[test]
    fn every_state_says_what_it_is_about() {
        let said: Vec<String> = [
            RunState::Pending,
            RunState::Running,
            RunState::Replaying,
            RunState::WaitingForHuman,
            RunState::WaitingForSignal,
            RunState::Completed,
            RunState::Failed,
            RunState::Canceled,
        ]
        .map(|state| words(&record(state)))
        .into();
        assert_eq!(
            said,
            [
                "pending",
                "running book",
                "replaying",
                "book waits for a person",
                "waits for signal books-closed",
                "completed",
                "failed at sum: the service answered 502",
                "canceled"
            ]
        );
        let fork = RunRecord {
            held: true,
            source: Some((record(RunState::Completed).id, 2)),
            ..record(RunState::Pending)
        };
        assert_eq!(words(&fork), "held, from checkpoint 2");
    }

    #[test]
    fn the_exit_code_tells_the_state() {
        let code = |state| done(&record(state));
        assert_eq!(code(RunState::Completed), Done::Fine);
        assert_eq!((code(RunState::Failed), code(RunState::Canceled)), (Done::Findings, Done::Findings));
        assert_eq!(
            (code(RunState::WaitingForHuman), code(RunState::WaitingForSignal)),
            (Done::Waiting, Done::Waiting)
        );
    }

    #[test]
    fn a_short_id_is_its_end() {
        assert_eq!(short("0198a1b2-0000-7000-8000-00000000abcd"), "0000abcd");
        assert_eq!(short("abc"), "abc");
    }
}
