//! Dialogs that a user confirms before a command is sent to a run. Opening one has no effect.

mod bulk;
mod choice;
mod decision;
mod form_box;
mod launch;
pub(super) mod parts;
mod prompt;
mod prompt_dialog;
mod proposal;
mod run_command;
mod script;

pub use prompt::{EXPORT_DRAFT_KEY, PromptKind, name_of_script};
pub use proposal::ProposalCommand;

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};

use super::Overlay;
use crate::pane::PaneId;
use crate::session_requests::ScriptCall;
use skills_api::{ContractView, DecisionPreview, InputFields, ProposalView};
use skills_model::CommandName;
use skills_session::ScriptPreview;
use skills_store::{RunId, RunQuery, RunRecord};

/// A checkpoint to choose: its number and the step it follows.
pub type CheckpointChoice = (u64, String);

#[derive(Debug, Clone, PartialEq)]
pub enum DialogSpec {
    /// Approve or deny a pending step.
    Decide {
        /// The pending step.
        preview: Box<DecisionPreview>,
        title: Option<String>,
        /// The filter of the runs that can be decided with it.
        filter: Option<RunQuery>,
        /// Its draft: fields entered earlier and not submitted.
        typed: Map<String, Value>,
        /// Distinguishes commands.
        ticket: u64,
    },
    Launch {
        view: Arc<ContractView>,
        /// Its draft: fields entered earlier and not submitted.
        typed: Map<String, Value>,
        /// Distinguishes launches.
        ticket: u64,
    },
    /// Add a message to a session, review a script of one of its skills, or export it.
    Prompt {
        asking: PromptKind,
        /// Its draft: fields entered earlier and not submitted.
        typed: Map<String, Value>,
    },
    /// Run a script as it was reviewed.
    Script {
        call: ScriptCall,
        /// What it would run.
        preview: Box<ScriptPreview>,
    },
    /// Send one command to many runs.
    Bulk {
        command: CommandName,
        /// The affected runs, as listed.
        runs: Vec<RunRecord>,
        /// The number before that of the first command.
        ticket: u64,
    },
    /// Decide or roll back a proposal.
    Proposal { view: Arc<ProposalView>, command: ProposalCommand },
    /// Send another command to a run.
    RunCommand {
        run: Box<RunRecord>,
        kind: RunCommandKind,
        /// Its checkpoints, oldest first; empty if they are irrelevant.
        checkpoints: Vec<CheckpointChoice>,
        /// The initial checkpoint; `None` for the last one.
        chosen: Option<u64>,
        /// Its draft: fields entered earlier and not submitted.
        typed: Map<String, Value>,
        /// Distinguishes commands.
        ticket: u64,
    },
}

/// A command of a dialog other than the decision.
#[derive(Debug, Clone, PartialEq)]
pub enum RunCommandKind {
    /// Resume a paused or failed run.
    Resume {
        /// Whether its skill's contract has changed since, or is not loaded.
        changed: bool,
        /// The inputs it accepts.
        fields: InputFields,
    },
    Signal {
        /// The name it waits for; empty if it waits for none.
        name: String,
        /// Reason for pausing the run once the signal arrives; `None` if it is not to be paused.
        pause: Option<String>,
    },
    /// Continue with the result of a step whose outcome is unknown.
    Happened {
        step: String,
        /// The digest of its inputs, from the gate.
        inputs_digest: String,
        /// Its declared outputs.
        outputs: InputFields,
        approver: Option<String>,
        /// Notes of the decision.
        notes: Option<String>,
    },
    Cancel,
    /// Create a run from a checkpoint and start it.
    Replay,
    /// Create a run from a checkpoint, paused until resumed.
    Fork,
    /// Assign the run to a person, with a note.
    Assign,
}

impl DialogSpec {
    /// Creates the overlay, opened by a pane at a wall clock time (milliseconds since 1970-01-01 UTC) and a moment.
    pub fn open(self, pane: PaneId, opened: (i64, Instant)) -> Box<dyn Overlay> {
        match self {
            Self::Decide { preview, title, filter, typed, ticket } => {
                let decision = decision::Decision::new(pane, *preview, ticket, opened);
                Box::new(decision.among(title, filter).retyped(&typed))
            }
            Self::Launch { view, typed, ticket } => {
                Box::new(launch::LaunchDialog::new(pane, view, ticket).retyped(&typed))
            }
            Self::Bulk { command, runs, ticket } => {
                Box::new(bulk::BulkDialog::new(pane, command, runs, ticket, opened))
            }
            Self::Proposal { view, command } => Box::new(proposal::ProposalDialog::new(pane, view, command)),
            Self::Script { call, preview } => Box::new(script::ScriptDialog::new(pane, call, *preview)),
            Self::Prompt { asking, typed } => {
                Box::new(prompt_dialog::PromptDialog::new(pane, asking).retyped(&typed))
            }
            Self::RunCommand { run, kind, checkpoints, chosen, typed, ticket } => {
                let dialog = run_command::RunCommandDialog::new(pane, *run, kind, ticket, opened);
                Box::new(dialog.offering(checkpoints, chosen).retyped(&typed))
            }
        }
    }
}

/// Returns the name of a decision's draft.
pub fn decision_draft_key(run: &RunId) -> String {
    format!("decide {run}")
}

/// Returns the name of a launch's draft.
pub fn name_of_launch(skill: &str) -> String {
    format!("launch {skill}")
}

/// Returns the name of a command's draft.
pub fn name_of_run_command(kind: &RunCommandKind, run: &RunId) -> String {
    let what = match kind {
        RunCommandKind::Resume { .. } => "resume",
        RunCommandKind::Signal { .. } => "signal",
        RunCommandKind::Happened { .. } => "happened",
        RunCommandKind::Cancel => "cancel",
        RunCommandKind::Replay => "replay",
        RunCommandKind::Fork => "fork",
        RunCommandKind::Assign => "assign",
    };
    format!("{what} {run}")
}
