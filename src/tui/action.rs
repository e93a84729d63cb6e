//! Actions that keys trigger. Keymap, footer, help and palette are all derived from this list.

use strum::{Display, EnumIter, EnumString};

/// An action that a key or the palette can trigger. The kebab-case names are those of the keymap file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Display, EnumString, EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Action {
    // global
    Quit,
    Back,
    Help,
    Palette,
    PickTheme,
    ShowLog,
    ShowClients,
    PlayDemo,
    Suspend,
    Rescan,
    Redraw,
    FullScreen,
    SplitNarrower,
    SplitWider,
    GoBrowse,
    GoDiscover,
    GoAttach,
    GoSession,
    GoRuns,
    GoGolden,
    GoProposals,
    NextPart,
    PreviousPart,
    NextTab,
    PreviousTab,
    // lists and texts
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
    Open,
    Fold,
    Filter,
    Copy,
    CopyAs,
    Edit,
    OpenByName,
    // text fields
    Submit,
    #[strum(serialize = "leave")]
    LeaveField,
    Clear,
    NewLine,
    HistoryEarlier,
    HistoryLater,
    // browse
    Sort,
    GroupBy,
    PickClient,
    DiscoverThis,
    Why,
    Draft,
    AddGolden,
    RewritePrompt,
    ReloadFile,
    ShowCollisions,
    ZoomCluster,
    NextCollision,
    Left,
    Right,
    // discover
    FocusIntent,
    TogglePolicy,
    CycleRole,
    PickDomain,
    ToggleBody,
    // attach
    AttachThis,
    ShowRun,
    // session
    LoadSkill,
    UnloadSkill,
    ReadResource,
    RunScript,
    Say,
    DiffCalls,
    MarkCall,
    Export,
    PickAgent,
    NewSession,
    OpenSession,
    MoveEarlier,
    MoveLater,
    // runs
    Approve,
    Deny,
    Resume,
    Signal,
    CancelRun,
    Replay,
    Fork,
    Assign,
    Launch,
    Compare,
    ShowCheckpoint,
    #[strum(serialize = "read-whole")]
    Read,
    ShowBoard,
    SaveView,
    AddTerm,
    SortRuns,
    ZoomIn,
    ZoomOut,
    Drain,
    // golden
    Measure,
    SetBaseline,
    AddQuery,
    EditQuery,
    RemoveQuery,
    ImportGolden,
    // proposals
    TakeDraft,
    ToggleDiff,
    RollBack,
    // dialogs and forms
    ApproveNow,
    DenyNow,
    RunAgain,
    #[strum(serialize = "it-happened")]
    MarkCompleted,
    SkipStep,
    FailStep,
    SendNow,
    Undo,
    #[strum(serialize = "despite-change")]
    AllowChangedSkill,
    Notes,
    Mark,
    MarkAll,
    ExtendUp,
    ExtendDown,
    #[strum(serialize = "carry-out")]
    Execute,
    // overlays
    Complete,
    FindNext,
    FindPrevious,
    // errors
    #[strum(serialize = "seen")]
    DismissError,
}

impl Action {
    /// Returns by how many rows the action moves a cursor, if it moves one.
    pub fn rows(self, page: isize) -> Option<isize> {
        Some(match self {
            Self::Up => -1,
            Self::Down => 1,
            Self::PageUp => -page,
            Self::PageDown => page,
            Self::Top => isize::MIN,
            Self::Bottom => isize::MAX,
            _ => return None,
        })
    }
}

/// A context in which a key is looked up. The innermost context that binds it has precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Display, EnumString, EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Context {
    Global,
    Error,
    List,
    Text,
    Field,
    Form,
    Browse,
    BrowseDetail,
    BrowseMap,
    Discover,
    DiscoverIntent,
    Attach,
    Session,
    Runs,
    RunsDetail,
    Golden,
    Draft,
    Proposals,
    RunsBoard,
    #[strum(serialize = "sheet")]
    Dialog,
    Bulk,
    Overlay,
}

/// A command that is currently available: the source for footer, help and palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneCommand {
    pub action: Action,
    /// Label for the footer, at most two words (`what-if`, `open`).
    pub label: String,
    /// The reason why it is currently unavailable, if any.
    pub blocked: Option<String>,
    pub footer: bool,
}

impl PaneCommand {
    /// Creates an available command that the footer shows.
    pub fn shown(action: Action, label: &str) -> Self {
        Self { action, label: label.to_owned(), blocked: None, footer: true }
    }

    /// Creates an available command that only help and palette show.
    pub fn hidden(action: Action, label: &str) -> Self {
        Self { footer: false, ..Self::shown(action, label) }
    }

    /// Returns the commands of a list's filter.
    pub fn in_filter(submit: &str) -> Vec<Self> {
        vec![
            Self::shown(Action::Submit, submit),
            Self::shown(Action::Down, "move"),
            Self::shown(Action::Clear, "clear"),
            Self::shown(Action::LeaveField, "leave"),
            Self::hidden(Action::Up, "move"),
            Self::hidden(Action::PageUp, "page up"),
            Self::hidden(Action::PageDown, "page down"),
            Self::hidden(Action::NextPart, "next panel"),
            Self::hidden(Action::PreviousPart, "previous panel"),
        ]
    }

    /// Returns the commands that move a cursor, except for the one that the footer shows.
    pub fn moves() -> [Self; 5] {
        [Action::Up, Action::PageUp, Action::PageDown, Action::Top, Action::Bottom]
            .map(|action| Self::hidden(action, "move"))
    }

    /// Returns the commands that move a cursor.
    pub fn all_moves() -> [Self; 6] {
        [Action::Up, Action::Down, Action::PageUp, Action::PageDown, Action::Top, Action::Bottom]
            .map(|action| Self::hidden(action, "move"))
    }
}
