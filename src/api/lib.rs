//! The API of the core: the requests, results and errors of every adapter.

mod approver_obstacle;
mod bisect;
mod board;
mod budget_fit;
mod client;
mod client_order;
mod client_roots;
mod client_settings;
mod client_view;
mod collisions;
mod content;
mod contract_types;
mod deadline;
mod description;
mod detail;
mod distinction;
mod draft;
mod error;
mod error_conversions;
mod eval;
mod git;
pub mod golden;
mod health_checks;
mod in_place;
mod keys;
mod known_contracts;
mod limits;
mod lint;
mod listing;
mod local;
mod local_files;
mod names;
pub mod operations;
mod operator_client;
mod operator_types;
mod origin;
mod orphaned_run;
mod package;
mod paging;
mod policies;
mod proposals;
pub mod remote;
mod reproduce;
mod request_limits;
pub mod resources;
mod rewrite_prompt;
mod run_client;
mod run_columns;
mod run_commands;
mod run_compare;
mod run_history;
mod run_options;
mod run_sidecars;
mod run_types;
mod scaffold;
mod schema;
mod service_types;
mod session_client;
mod session_types;
mod single_flight;
mod skill_drift;
#[cfg(test)]
mod testing;
mod trace;
mod trust;
mod types;
mod uncataloged_bundles;
mod user_invocable;
mod visibility;
mod why;
mod work;

pub use bisect::{BisectJob, Bisection, WinnerChange};
pub use board::{SLICES, facets, term};
pub use budget_fit::{
    BudgetFit, BudgetFitRequest, ClientOverrides, FitLevel, FittedClient, FittedDescription, write_overrides,
};
pub use client::{Client, Core, SharedClient};
pub use client_roots::is_searched;
pub use collisions::{CollisionBaseline, CollisionFilter, CollisionReport, SkillRivals};
pub use contract_types::{CapabilityExplanation, ContractStep, ContractView, InputFields};
pub use deadline::Deadline;
pub use description::{NewDescription, SavedDescription, ShownFile, save_description};
pub use distinction::{
    Differences, Distinction, distinguish, distinguishing_texts, is_same, target_fields, value_line,
};
pub use draft::{DraftMeasure, DraftPlace, DraftReport, DraftRequest, DraftShown};
pub use error::{Code, Error, ErrorBody, ErrorDetail, NEEDED_SCOPE, UNDONE};
pub use eval::{EvalJob, Evaluation, MAX_ADVISED, SkillQuery};
pub use golden::{
    Confusion, GoldenExplainRequest, GoldenExplanation, GoldenQuery, GoldenReport, GoldenRequest,
    GoldenResult, GoldenSource, GoldenState, SkillPrecision,
};
pub use health_checks::{Check, Health};
pub use in_place::in_place;
pub use keys::{KeyRing, StoredKey, new_key, scopes};
pub use limits::{Admission, Limiter, RateLimit};
pub use lint::{
    BaselineChange, FixedFile, IgnoredFinding, LintBaseline, LintFilter, LintFinding, LintJob, LintReport,
    LintRule, LintStyle, RuleCount, lint_rules, lint_sarif, lint_text,
};
pub use listing::{MatchKind, QueryWords};
pub use local::{
    AuditLogs, CoreParts, Local, PolicyViews, SHIPPED_IS_READ_ONLY, StoreMaintenance, TrustPins, account,
    bisect, config_problems, eval, lint, usual_request,
};
pub use local_files::LocalFiles;
pub use names::near;
pub use operator_client::OperatorClient;
pub use operator_types::{
    Board, BoardFailures, BoardRun, Facet, FacetList, FacetValue, LogLine, LogPage, LogRequest, SavedView,
    ViewList, WorkerList, WorkerState, WorkerView,
};
pub use origin::Origin;
pub use orphaned_run::{PENDING_MS, orphaned_run_reason};
pub use package::{
    Manifest, PackageFinding, PackageJob, PackageReport, PackedFile, prepare as package_prepare,
    validate as package_validate,
};
pub use paging::LARGEST_PAGE;
pub use policies::{PolicyExplanation, PolicyRanking, PolicyReport, PolicyRule};
pub use proposals::{
    ProposalAction, ProposalActionOptions, ProposalActionResult, ProposalCheck, ProposalCheckKind,
    ProposalFilter, ProposalList, ProposalRequest, ProposalSummary, ProposalView, ProposedPart,
};
pub use request_limits::{MAX_RESULTS, exceeds_length_limit};
pub use run_client::{RunClient, first_events};
pub use run_columns::{run_cell, sort_runs};
pub use run_commands::{RecordedCommand, changed_inputs, command_note, command_of_event, list_commands};
pub use run_compare::{Change, ComparedRun, RunComparison, StepComparison, changes, compare_runs};
pub use run_history::{ChangedInput, EarlierAttempt};
pub use run_sidecars::{ControlOutcome, ControlRequest, control_requests, requested_pause};
pub use run_types::{
    AttachCheck, AttachCheckResult, AttachPreview, AttachReason, AttachRequest, Attached, CommandResult,
    DecisionPreview, DecisionTarget, ExecutionOptions, LaunchRequest, Launched, NewArtifact, ResumeMode,
    RunCommand, RunDetail, StepState, StepView, StoredArtifact, SuppliedFile, TargetChoice,
};
pub use scaffold::{Scaffold, ScaffoldResult, ScriptLanguage, id_problem, scaffold};
pub use schema::{schema, schema_drift};
pub use service_types::{
    AuditFilter, AuditPurged, AuditReport, CallerView, CapabilityRequest, Counting, GovernanceFilter,
    GovernanceList, GovernedSkill, StoreHealth, StoreMigrated, StoreReset,
};
pub use session_client::{SessionAccess, SessionClient, SharedSessionClient};
pub use session_types::{
    AgentView, BudgetView, CallSize, ComposedView, DescriptionChanges, DiffLine, GivenBody, HiddenCause,
    HiddenSkills, LevelSize, LevelsView, SessionSummary, SessionView, SettingChanged, SettingsChange,
    SinceLast, ToolAnswer,
};
pub use single_flight::SingleFlight;
pub use skill_drift::{LoadedFile, LoadedFrom, SkillDrift};
pub use skills_authoring::proposals::diff::{Hunk, HunkLine};
pub use skills_authoring::proposals::{ProposalDecision, ProposalState, SkillVersion};
pub use skills_base::audit::redacted_text;
pub use skills_base::telemetry::{METRICS_CONTENT_TYPE, MetricsReport};
pub use skills_runs::{Reminder, TerminalSignals, terminal_bytes, withdrawal_bytes};
pub use skills_session::call_order;
pub use trace::{is_trace_id, new_trace_id};
pub use trust::TrustSubject;
pub use types::{
    AssumedFolder, ClientView, ClientViewEntry, ClientViewState, Connection, ConnectionState, Diagnostics,
    Event, FileContent, FileEntry, FileText, ForeignBundle, IndexProgress, LevelTokens, ListFilter,
    LoadState, OperationCount, SkillDetail, SkillList, SkillSummary, other_files,
};
pub use visibility::{
    Visibility, VisibilityCell, VisibilityClient, VisibilityReport, VisibilityRequest, VisibilityRow,
    visibility,
};
pub use why::{
    CheckKind, CheckResult, ClientChecks, CutDescription, WhyCheck, WhyHit, WhyRanking, WhyReport,
    WhyRequest, WhyTerm, finding_text, instead_of_description, rejection_of, why,
};
