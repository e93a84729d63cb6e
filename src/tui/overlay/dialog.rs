//! Sheets: what a person is shown before a run is ordered to do something. Nothing is done by opening one.

mod ask;
mod bulk;
mod choice;
mod decision;
mod decision_keys;
mod decision_limits;
mod decision_progress;
mod decision_view;
mod launch;
mod order;
mod order_keys;
mod order_view;
mod parts;
mod prompt;
mod proposal;
mod script;

pub use choice::state_word;
pub use prompt::{Asking, NAME_OF_EXPORT, name_of_script};
pub use proposal::ProposalCommand;

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};

use super::Overlay;
use crate::pane::PaneId;
use crate::session_requests::ScriptCall;
use skills_api::{ContractView, DecisionSheet, InputFields, ProposalView};
use skills_model::CommandName;
use skills_session::ScriptSheet;
use skills_store::{RunId, RunRecord};

/// A checkpoint to choose: its number and the step it follows.
pub type Offered = (u64, String);

/// What a sheet is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Sheet {
    /// Approve or deny what waits.
    Decide {
        /// What waits.
        sheet: Box<DecisionSheet>,
        /// What was typed on it before and not sent.
        typed: Map<String, Value>,
        /// Tells orders apart.
        ticket: u64,
    },
    /// Launch a run.
    Launch {
        /// Of what.
        view: Arc<ContractView>,
        /// What was typed on it before and not sent.
        typed: Map<String, Value>,
        /// Tells launches apart.
        ticket: u64,
    },
    /// Say something in a session, review a script of one of its skills, or take something out of it.
    Ask {
        /// What of it.
        asking: Asking,
        /// What was typed on it before and not sent.
        typed: Map<String, Value>,
    },
    /// Run a script as it was reviewed.
    Script {
        /// The call.
        call: ScriptCall,
        /// What it would run.
        sheet: Box<ScriptSheet>,
    },
    /// Send one command to many runs.
    Bulk {
        /// The command.
        command: CommandName,
        /// The affected runs, as listed.
        runs: Vec<RunRecord>,
        /// The number before that of the first order.
        ticket: u64,
    },
    /// Decide or roll back a proposal.
    Proposal {
        /// The proposal as it was shown.
        view: Arc<ProposalView>,
        /// The command.
        command: ProposalCommand,
    },
    /// Order something else of a run.
    Order {
        /// Which run.
        run: Box<RunRecord>,
        /// What.
        kind: OrderKind,
        /// Its checkpoints, oldest first; none where it makes no difference.
        checkpoints: Vec<Offered>,
        /// The one to begin with; the head, if none is meant.
        chosen: Option<u64>,
        /// What was typed on it before and not sent.
        typed: Map<String, Value>,
        /// Tells orders apart.
        ticket: u64,
    },
}

/// What a sheet other than the decision's orders.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderKind {
    /// Let a held or failed run continue.
    Resume {
        /// Whether its skill's contract is another one now.
        changed: bool,
        /// What it takes as inputs.
        fields: InputFields,
    },
    /// Send a signal.
    Signal {
        /// The name it waits for; empty where it waits for none.
        name: String,
        /// Reason for pausing the run once the signal arrives; none if it is not to be paused.
        pause: Option<String>,
    },
    /// Continue with the result of a step whose end was not observed.
    Happened {
        /// The step.
        step: String,
        /// What it was given, as the gate has it.
        inputs_digest: String,
        /// Its outputs.
        outputs: InputFields,
        /// Who decides.
        approver: Option<String>,
        /// What is said to it.
        notes: Option<String>,
    },
    /// Stop it.
    Cancel,
    /// A new run from a checkpoint, at once.
    Replay,
    /// A new run from a checkpoint, held until resumed.
    Fork,
    /// Give it to a person, with a note.
    Assign,
}

impl Sheet {
    /// The overlay, opened by a pane at a moment of the wall clock (milliseconds since 1970-01-01 UTC).
    #[must_use]
    pub fn open(self, pane: PaneId, opened: (i64, Instant)) -> Box<dyn Overlay> {
        match self {
            Self::Decide { sheet, typed, ticket } => {
                Box::new(decision::Decision::new(pane, *sheet, ticket, opened).retyped(&typed))
            }
            Self::Launch { view, typed, ticket } => {
                Box::new(launch::LaunchSheet::new(pane, view, ticket).retyped(&typed))
            }
            Self::Bulk { command, runs, ticket } => {
                Box::new(bulk::BulkSheet::new(pane, command, runs, ticket))
            }
            Self::Proposal { view, command } => Box::new(proposal::ProposalDialog::new(pane, view, command)),
            Self::Script { call, sheet } => Box::new(script::ScriptDialog::new(pane, call, *sheet)),
            Self::Ask { asking, typed } => Box::new(ask::AskSheet::new(pane, asking).retyped(&typed)),
            Self::Order { run, kind, checkpoints, chosen, typed, ticket } => {
                let sheet = order::OrderSheet::new(pane, *run, kind, ticket, opened);
                Box::new(sheet.offering(checkpoints, chosen).retyped(&typed))
            }
        }
    }
}

/// The name under which a decision's texts are kept.
#[must_use]
pub fn name_of_decision(run: &RunId) -> String {
    format!("decide {run}")
}

/// The name under which the inputs of a launch are kept.
#[must_use]
pub fn name_of_launch(skill: &str) -> String {
    format!("launch {skill}")
}

/// The name under which an order's fields are kept.
#[must_use]
pub fn name_of_order(kind: &OrderKind, run: &RunId) -> String {
    let what = match kind {
        OrderKind::Resume { .. } => "resume",
        OrderKind::Signal { .. } => "signal",
        OrderKind::Happened { .. } => "happened",
        OrderKind::Cancel => "cancel",
        OrderKind::Replay => "replay",
        OrderKind::Fork => "fork",
        OrderKind::Assign => "assign",
    };
    format!("{what} {run}")
}
