//! What the commands of a run are called, and what they do.

use super::super::RunCommandKind;
use crate::widgets::shown;
use skills_model::{CommandName, Gate};
use skills_store::RunRecord;

impl RunCommandKind {
    pub(super) fn title(&self, run: &RunRecord) -> &'static str {
        match self {
            Self::Resume { .. } => "Resume this run",
            Self::Signal { .. } => "Send a signal",
            Self::Happened { .. } => "Mark completed: enter the result",
            Self::Cancel => "Cancel this run?",
            Self::Replay => "Replay from a checkpoint",
            Self::Fork => "Fork from a checkpoint",
            Self::Assign if run.options.assigned.is_some() => "Reassign this run",
            Self::Assign => "Assign this run",
        }
    }

    /// Describes the effects of the command in sentences.
    pub(super) fn explains(&self, run: &RunRecord) -> String {
        let step = run.step.as_deref().map(shown);
        match self {
            Self::Resume { .. } if run.paused && run.progress.0 >= run.progress.1 => {
                "The run is paused; it continues when you resume it.".to_owned()
            }
            Self::Resume { .. } if run.paused => {
                "The run is paused; its next step starts when you resume it.".to_owned()
            }
            Self::Resume { .. } => {
                "Steps after the checkpoint are executed. Changed inputs are recorded.".to_owned()
            }
            Self::Signal { .. } => match &run.gate {
                Some(Gate::Signal { name, .. }) => format!(
                    "The payload becomes the output of the waiting step. This run is waiting for `{}` and \
                        accepts no other signal.",
                    shown(name)
                ),
                _ => {
                    "No step is waiting for a signal: it is buffered, and its payload becomes the output of \
                        the step that waits for it."
                        .to_owned()
                }
            },
            Self::Happened { step, .. } => format!(
                "{} is recorded as completed with this result. It does not run again, and the run \
                    continues after it.",
                shown(step)
            ),
            Self::Cancel if run.state.is_active() => format!(
                "Its worker stops{}. External side effects remain. A canceled run cannot be resumed.",
                step.map(|step| format!(" in {step}")).unwrap_or_default()
            ),
            Self::Cancel => "External side effects remain. A canceled run cannot be resumed.".to_owned(),
            Self::Replay => {
                "Creates a run: steps up to the checkpoint are copied, the others are executed. Steps after the \
                    checkpoint that already ran repeat their external side effects."
                    .to_owned()
            }
            Self::Fork => {
                "Creates a paused run: steps up to the checkpoint are copied; nothing runs until it is \
                    resumed."
                    .to_owned()
            }
            Self::Assign => match &run.options.assigned {
                Some(assigned) => format!(
                    "Assigned to {}{}. Leave the person empty to unassign it.",
                    shown(&assigned.to),
                    assigned.note.as_ref().map(|note| format!(": {}", shown(note))).unwrap_or_default()
                ),
                None => {
                    "The run list and the board show the assignee; the details also show the note.".to_owned()
                }
            },
        }
    }

    /// Returns the labels of the button that sends the command, and of its key in the footer.
    pub(super) fn labels(&self, run: &RunRecord) -> (&'static str, &'static str) {
        match self {
            Self::Resume { .. } => ("Resume", "resume"),
            Self::Signal { .. } => ("Send", "send"),
            Self::Happened { .. } => ("Mark completed", "mark completed"),
            Self::Cancel => ("Cancel run", "cancel run"),
            Self::Replay => ("Replay", "replay"),
            Self::Fork => ("Fork", "fork"),
            Self::Assign if run.options.assigned.is_some() => ("Reassign", "reassign"),
            Self::Assign => ("Assign", "assign"),
        }
    }

    /// Returns the label of the button that sends nothing.
    pub(super) fn closing(&self) -> &'static str {
        // "Cancel" would read as the command.
        if *self == Self::Cancel { "Keep running" } else { "Cancel" }
    }

    /// Returns why a run does not accept the command, if it does not.
    pub(super) fn refused_by(&self, run: &RunRecord) -> Option<String> {
        let takes = |command: CommandName| run.allowed.contains(&command);
        let (is_open, gone) = match self {
            Self::Resume { .. } => (takes(CommandName::Resume), "it cannot be resumed"),
            Self::Signal { .. } => (takes(CommandName::Signal), "it no longer accepts signals"),
            Self::Happened { .. } => (takes(CommandName::Approve), "no decision is pending"),
            Self::Cancel => (takes(CommandName::Cancel), "it has already ended"),
            Self::Replay => (takes(CommandName::Replay), "it cannot be replayed"),
            Self::Fork => (takes(CommandName::Fork), "it cannot be forked"),
            Self::Assign => return None,
        };
        (!is_open).then(|| format!("The run is {}: {gone}.", run.state.label()))
    }
}
