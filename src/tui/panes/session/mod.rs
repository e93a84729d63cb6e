//! Pane 4: a session as a model sees it. Shows the active skills, the exact bytes of the next call, the cost of each
//! disclosure level, and what changed since the last call.

mod budget_view;
mod calls_view;
mod changes_view;
mod choosers;
mod commands;
mod context;
mod context_view;
mod external_changes;
mod keys;
mod levels_view;
mod messages;
mod payload_view;
mod state;
mod summary_view;
mod view;

use ratatui::layout::Rect;

use self::context::ModelContext;
use self::external_changes::ExternalChanges;
use self::state::SessionState;

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    Active,
    Composed,
}

/// The tab of the right part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Tab {
    #[default]
    Composed,
    PerLevel,
    Payload,
    Transcript,
}

const TABS: [(Tab, &str); 4] = [
    (Tab::Composed, "Instructions"),
    (Tab::PerLevel, "Levels"),
    (Tab::Payload, "Request"),
    (Tab::Transcript, "Transcript"),
];

/// A section of the composed text that can be collapsed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Fold {
    Catalog,
    Body(String),
    /// An entry of the transcript.
    Entry(u64),
}

/// The state of pane 4.
#[derive(Default)]
pub struct SessionPane {
    state: SessionState,
    context: ModelContext,
    focus: Focus,
    /// The state of polling for changes by others.
    others: ExternalChanges,
    /// Area of the active skills in the last frame.
    active_area: Rect,
    /// Rows of the active list, with their index.
    rows: Vec<(Rect, usize)>,
}

impl SessionPane {
    /// Creates a pane that requests a session once it is shown.
    pub fn new() -> Self {
        Self::default()
    }
}
