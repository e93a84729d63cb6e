//! What a key can mean. Keymap, footer, help and palette are all made from this one list.

use strum::{Display, EnumIter, EnumString};

/// Everything a person can ask for by a key or in the palette. The kebab-case names are those of the keymap file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Display, EnumString, EnumIter)]
#[strum(serialize_all = "kebab-case")]
#[allow(missing_docs, reason = "assets/keymap.yaml says for each what it does")]
pub enum Action {
    // everywhere
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
    Leave,
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
    ReadWhole,
    ShowBoard,
    SaveView,
    AddTerm,
    SortRuns,
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
    // sheets and forms
    ApproveNow,
    DenyNow,
    RunAgain,
    ItHappened,
    SkipStep,
    FailStep,
    TakeBack,
    Mark,
    MarkAll,
    ExtendUp,
    ExtendDown,
    CarryOut,
    // overlays
    Complete,
    // errors
    Seen,
}

/// Where a key is looked up. The innermost context that binds it wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Display, EnumString, EnumIter)]
#[strum(serialize_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say where")]
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
    Sheet,
    Overlay,
}

/// One thing that can be done now: feeds footer, help and palette alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it does.
    pub action: Action,
    /// Two words at most for the footer (`what-if`, `open`).
    pub label: String,
    /// Why it cannot be done now, if it cannot.
    pub blocked: Option<String>,
    /// Whether the footer shows it.
    pub footer: bool,
}
