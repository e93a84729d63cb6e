//! Arguments of operations, parsed from a path, a query, a body or a tool call. Unknown names are rejected.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{Code, Error, ExecutionOptions, LARGEST_PAGE, RunDetail};
use skills_model::{Choice, RunState};
use skills_session::{Api, MessageRole};
use skills_skill::{AttachTarget, Digest, SkillId};

macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name { $($(#[$field_meta])* pub $field: $kind,)* }
    )*};
}

arguments! {
    /// No arguments.
    NoArguments {}

    /// A skill.
    SkillArguments {
        /// Id, unambiguous name, or location.
        skill_id: String,
    }

    /// Two skills.
    SkillPairArguments {
        /// Id, unambiguous name, or location.
        skill_id: String,
        /// The other skill: id, unambiguous name, or location.
        rival: String,
    }

    /// A file of a skill.
    SkillFileArguments {
        /// Id, unambiguous name, or location.
        skill_id: String,
        /// Path inside the bundle, `/` between parts.
        path: String,
    }

    /// Lines of a skill that match words of a request.
    SkillLinesArguments {
        /// Id, unambiguous name, or location.
        skill_id: String,
        /// What to search for.
        intent: String,
        /// Maximum number of lines.
        #[serde(default = "some", deserialize_with = "page_limit")]
        #[schemars(range(min = 1, max = 1_000))]
        limit: usize,
    }

    /// Several skills.
    SeveralSkillsArguments {
        /// Their ids.
        skills: Vec<SkillId>,
    }

    /// A proposal.
    ProposalArguments {
        /// Id of the proposal.
        proposal_id: String,
    }

    /// The approval of a proposal. Without both digests, the response is 428 with the complete body to send.
    ProposalApprovalArguments {
        /// Id of the proposal.
        proposal_id: String,
        /// Digest of the proposal that was reviewed: `proposal_digest` of the proposal. Nothing else is approved.
        #[serde(default)]
        #[schemars(required)]
        proposal_digest: Option<Digest>,
        /// Digest of the file that it was reviewed for: `base_digest` of the proposal.
        #[serde(default)]
        #[schemars(required)]
        base_digest: Option<Digest>,
        /// Who decides, if the caller is not authenticated.
        #[serde(default)]
        by: Option<String>,
        /// Notes, stored with the decision.
        #[serde(default)]
        notes: Option<String>,
    }

    /// A command on a proposal.
    ProposalCommandArguments {
        /// Id of the proposal.
        proposal_id: String,
        /// Who decides, if the caller is not authenticated.
        #[serde(default)]
        by: Option<String>,
        /// Notes, stored with the decision.
        #[serde(default)]
        notes: Option<String>,
    }

    /// A client.
    ClientArguments {
        /// Id of its profile.
        client: String,
    }

    /// A budget.
    BudgetArguments {
        /// Id of a client profile; default: the complete catalog.
        #[serde(default)]
        client: Option<String>,
        /// The model's context window in tokens.
        #[serde(default)]
        #[schemars(range(min = 1))]
        window: Option<u32>,
    }

    /// A capability.
    CapabilityArguments {
        /// Id of the capability.
        capability_id: String,
    }

    /// A capability to execute through one binding.
    ActivationArguments {
        /// Id of the capability.
        capability_id: String,
        /// Id of the binding; null restores the default.
        #[serde(default)]
        binding: Option<String>,
    }

    /// References to complete.
    TargetsArguments {
        /// Type of the target.
        target_type: AttachTarget,
        /// Part of the reference.
        #[serde(default)]
        #[schemars(length(max = 2_097_152))]
        text: String,
        /// Maximum number of entries.
        #[serde(default = "some", deserialize_with = "page_limit")]
        #[schemars(range(min = 1, max = 1_000))]
        limit: usize,
    }

    /// Content to store.
    ArtifactArguments {
        /// File name, without folders.
        #[schemars(length(min = 1, max = 255))]
        name: String,
        /// The content, at most 8 MiB.
        #[schemars(length(max = 12_582_912))]
        content: String,
        /// Encoding of the content.
        #[serde(default)]
        encoding: ContentEncoding,
        /// Name of the caller, if authentication is disabled.
        #[serde(default)]
        by: Option<String>,
    }

    /// Runs to list.
    RunListArguments {
        /// Only these states.
        #[serde(default)]
        states: Vec<RunState>,
        /// Only this skill.
        #[serde(default)]
        skill_id: Option<String>,
        /// Part of an id, a skill or a step; or a trace id or its first 8 or more characters.
        #[serde(default)]
        #[schemars(length(max = 256))]
        text: Option<String>,
        /// Only runs of this trace.
        #[serde(default)]
        trace_id: Option<String>,
        /// A filter, for example `state:failed skill:deploy* age:>1h input.region:eu* -error:timeout`. Keys: state,
        /// skill, title, step, age, since, error, detail, input.NAME, label.NAME, by, assigned, worker, id, trace,
        /// target; other words in id, title, skill, step, inputs or error.
        #[serde(default)]
        #[schemars(length(max = 4_096))]
        r#where: Option<String>,
        /// Cursor of the previous page.
        #[serde(default)]
        #[schemars(length(min = 1))]
        cursor: Option<String>,
        /// Runs of one page.
        #[serde(default = "page", deserialize_with = "page_limit")]
        #[schemars(range(min = 1, max = 1_000))]
        limit: usize,
    }

    /// A run.
    RunArguments {
        /// Its id, or a unique prefix or suffix of it.
        run_id: String,
    }

    /// A run to control.
    RunCommandArguments {
        /// Its id, or a unique prefix or suffix of it.
        run_id: String,
        /// Name of the caller, if authentication is disabled.
        by: Option<String>,
    }

    /// Checkpoints of a run.
    RunCheckpointsArguments {
        /// Id of the run.
        run_id: String,
        /// Only those before this number: the first one of a page leads to the page before it.
        #[serde(default)]
        before: Option<u64>,
        /// Maximum number of entries, the newest; large checkpoints make a page shorter.
        #[serde(default = "checkpoint_page", deserialize_with = "page_limit")]
        #[schemars(range(min = 1, max = 1_000))]
        limit: usize,
    }

    /// Events of a run.
    RunEventsArguments {
        /// Id of the run.
        run_id: String,
        /// Only those after this number of the run.
        #[serde(default)]
        after: u64,
        /// Maximum number of entries; large events make a page shorter.
        #[serde(default = "page", deserialize_with = "event_limit")]
        #[schemars(range(min = 1, max = 10_000))]
        limit: usize,
        /// If there are none, wait this long for the first, in milliseconds, at most 60,000.
        #[serde(default)]
        #[schemars(range(max = 60_000))]
        wait_ms: u64,
    }

    /// Events of all runs.
    AllEventsArguments {
        /// Only those after this number over all runs.
        #[serde(default)]
        after: u64,
        /// Maximum number of entries; large events make a page shorter.
        #[serde(default = "page", deserialize_with = "event_limit")]
        #[schemars(range(min = 1, max = 10_000))]
        limit: usize,
        /// If there are none, wait this long for the first, in milliseconds, at most 60,000.
        #[serde(default)]
        #[schemars(range(max = 60_000))]
        wait_ms: u64,
    }

    /// An approval. Without step and digest, the response is 428 with the complete body to send.
    ApprovalArguments {
        /// Id of the run.
        run_id: String,
        /// The step to approve: `sheet.step` of the run.
        #[schemars(required)]
        step: Option<String>,
        /// Digest of what was reviewed: `sheet.inputs_digest` of the run. Nothing else is approved.
        #[schemars(required)]
        inputs_digest: Option<String>,
        /// Name of the person who decides, if authentication is disabled.
        approver: Option<String>,
        /// Free text, kept with the decision.
        notes: Option<String>,
        /// For a step with an unknown outcome: `rerun`, `happened` (with its `result`), `skip` or `fail`.
        choice: Option<Choice>,
        /// Result of the step, if it was completed: an object of its outputs.
        #[serde(default)]
        #[schemars(with = "Option<Map<String, Value>>")]
        result: Option<Value>,
    }

    /// A denial. Without the step, the response is 428 with the complete body to send.
    DenialArguments {
        /// Id of the run.
        run_id: String,
        /// The step to deny: `sheet.step` of the run.
        #[schemars(required)]
        step: Option<String>,
        /// Digest of what was reviewed; if given, nothing else is denied.
        inputs_digest: Option<String>,
        /// Name of the person who decides, if authentication is disabled.
        approver: Option<String>,
        /// Free text, kept with the decision.
        notes: Option<String>,
        /// Only valid in an approval; rejected here.
        choice: Option<Choice>,
        /// Only valid in an approval; rejected here.
        #[serde(default)]
        #[schemars(with = "Option<Map<String, Value>>")]
        result: Option<Value>,
    }

    /// A run to resume.
    ResumeArguments {
        /// Id of the run.
        run_id: String,
        /// From this checkpoint instead of the newest.
        #[serde(default, alias = "checkpoint")]
        checkpoint_id: Option<u64>,
        /// Corrected inputs, merged into its own.
        #[serde(default)]
        inputs: Option<Map<String, Value>>,
        /// Resume although the skill changed since the launch.
        #[serde(default)]
        despite_change: bool,
        /// `since_ms` of the run as it was reviewed; rejected if its state changed since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_ms: Option<i64>,
        /// Name of the caller, if authentication is disabled.
        by: Option<String>,
    }

    /// A run to replay or fork.
    BranchArguments {
        /// Id of the run.
        run_id: String,
        /// From this checkpoint instead of the newest.
        #[serde(default, alias = "checkpoint")]
        checkpoint_id: Option<u64>,
        /// `since_ms` of the run as it was reviewed; rejected if its state changed since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_ms: Option<i64>,
        /// Name of the caller, if authentication is disabled.
        by: Option<String>,
    }

    /// A signal.
    SignalArguments {
        /// Id of the run.
        run_id: String,
        /// The signal's name.
        #[schemars(regex(pattern = r"\S"))]
        name: String,
        /// Becomes the output of the waiting step.
        #[serde(default)]
        payload: Value,
        /// `since_ms` of the run as it was reviewed; rejected if its state changed since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_ms: Option<i64>,
        /// Name of the caller, if authentication is disabled.
        by: Option<String>,
    }

    /// A board.
    BoardArguments {
        /// Hours back from now, 1 to 336.
        #[serde(default = "shift")]
        #[schemars(range(min = 1, max = 336))]
        hours: u32,
    }

    /// Runs to distinguish.
    FacetsArguments {
        /// A filter as of `run.list`; all runs if empty.
        #[serde(default)]
        #[schemars(length(max = 4_096))]
        r#where: String,
    }

    /// Output lines of a run.
    LogArguments {
        /// Its id, or a unique prefix or suffix of it.
        run_id: String,
        /// Only those of this step.
        #[serde(default)]
        step: Option<String>,
        /// Only those with this text, regardless of case.
        #[serde(default)]
        text: Option<String>,
        /// Only those after this number: `next` of the previous page.
        #[serde(default)]
        after: u64,
        /// Maximum number of lines.
        #[serde(default = "page", deserialize_with = "event_limit")]
        #[schemars(range(min = 1, max = 10_000))]
        limit: usize,
        /// If there are none, wait this long for the first, in milliseconds, at most 60,000.
        #[serde(default)]
        #[schemars(range(max = 60_000))]
        wait_ms: u64,
    }

    /// A run to assign.
    AssignArguments {
        /// Its id, or a unique prefix or suffix of it.
        run_id: String,
        /// The person; if omitted, the run is unassigned.
        #[serde(default)]
        to: Option<String>,
        /// Note for the assignee.
        #[serde(default)]
        #[schemars(length(max = 1_000))]
        note: Option<String>,
        /// Who the run was assigned to when the caller read it (empty: unassigned); 409 if that changed. Not compared, if
        /// omitted.
        #[serde(default, skip_serializing_if = "Option::is_none")] // services of earlier versions reject it
        assignee: Option<String>,
        /// Name of the caller, if authentication is disabled.
        #[serde(default)]
        by: Option<String>,
    }

    /// A worker to drain.
    DrainArguments {
        /// Its id, or a unique part of it.
        #[schemars(length(min = 1))]
        worker: String,
        /// Whether it claims no more runs; false lets it claim again.
        #[serde(default = "yes")]
        drain: bool,
    }

    /// A view to save.
    ViewArguments {
        /// Name of the view.
        #[schemars(length(min = 1, max = 40))]
        name: String,
        /// The filter, as of `run.list`.
        #[schemars(length(min = 1, max = 4_096))]
        r#where: String,
        /// Name of the caller, if authentication is disabled.
        #[serde(default)]
        by: Option<String>,
    }

    /// A view to delete.
    ViewNameArguments {
        /// Name of the view.
        #[schemars(length(min = 1, max = 40))]
        name: String,
        /// Name of the caller, if authentication is disabled.
        #[serde(default)]
        by: Option<String>,
    }

    /// How many.
    LimitArguments {
        /// Maximum number of entries.
        #[serde(default = "page", deserialize_with = "page_limit")]
        #[schemars(range(min = 1, max = 1_000))]
        limit: usize,
    }

    /// A session.
    SessionArguments {
        /// Its id, or a unique prefix or suffix of it.
        session_id: String,
    }

    /// Settings of a session to change.
    SessionChangeArguments {
        /// Id of the session.
        session_id: String,
        /// What to change.
        #[serde(deserialize_with = "object")]
        settings: crate::SettingsChange,
    }

    /// A message.
    MessageArguments {
        /// Id of the session.
        session_id: String,
        /// Role of the author.
        speaker: MessageRole,
        /// Text of the message.
        #[schemars(regex(pattern = r"\S"))]
        #[schemars(length(max = 2_097_152))]
        text: String,
    }

    /// A call of a runtime tool.
    ToolCallArguments {
        /// Id of the session.
        session_id: String,
        /// `skills.list`, `skills.load`, `skills.unload`, `skills.read` or `skills.run_script`.
        tool: String,
        /// The tool's arguments.
        #[serde(default)]
        arguments: Value,
        /// Digest of what a person reviewed and confirmed: `script.inputs_digest` of the response 428; requires the
        /// scope `decide`. Nothing else is run.
        #[serde(default, skip_serializing_if = "Option::is_none")] // services of earlier versions reject it
        inputs_digest: Option<String>,
        /// Deprecated: it has no effect; `inputs_digest` confirms the inputs.
        #[serde(default)]
        #[schemars(extend("deprecated" = true))]
        approved: bool,
    }

    /// A call to compose.
    ComposeArguments {
        /// Id of the session.
        session_id: String,
        /// Record it as the last call, for comparison.
        #[serde(default)]
        made: bool,
    }

    /// A request to export.
    ExportArguments {
        /// Id of the session.
        session_id: String,
        /// The API of the format.
        api: Api,
        /// The model's name.
        model: String,
    }
}

/// Encoding of bytes in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContentEncoding {
    /// As it is; UTF-8.
    #[default]
    Text,
    /// The standard alphabet with padding (RFC 4648, section 4).
    Base64,
}

/// Deserializes a value that must be an object: a list would be accepted for its fields in order.
fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Members<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(members))
        }
    }

    deserializer.deserialize_map(Members(PhantomData))
}

/// The options of a launch as given in a call.
pub(super) struct LaunchFields {
    pub inputs: Map<String, Value>,
    pub options: ExecutionOptions,
    pub started_by: Option<String>,
}

/// Defines arguments of operations that launch a run: their own fields, and those common to all launches.
///
/// They are written out in each type: with `serde(flatten)`, errors would not name the field of an invalid value.
macro_rules! launches {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $kind:ty,)* })*) => {$(
        arguments! {
            $(#[$doc])*
            $name {
                $($(#[$field_meta])* $field: $kind,)*
                /// Values of the inputs by name.
                #[serde(default)]
                inputs: Map<String, Value>,
                /// Execution options.
                #[serde(default, deserialize_with = "object")]
                options: ExecutionOptions,
                /// Its trace id.
                #[serde(default)]
                #[schemars(regex(pattern = "^[!-~]{1,255}$"))]
                trace_id: Option<String>,
                /// Idempotency key that makes the call safe to repeat.
                #[serde(default)]
                #[schemars(regex(pattern = "^[!-~]{1,255}$"))]
                idempotency_key: Option<String>,
                /// Include the trace of what happened: the first events of the run.
                #[serde(default)]
                include_trace: bool,
                /// Name of the caller, if authentication is disabled.
                #[serde(default)]
                started_by: Option<String>,
            }
        }

        impl $name {
            /// Takes the fields common to all launches, within the caller's permissions.
            pub(super) fn take_launch_fields(&mut self, caller: &super::Caller) -> Result<LaunchFields, Error> {
                let options = std::mem::take(&mut self.options);
                let options = limited(options, caller, self.trace_id.take(), self.idempotency_key.take())?;
                let started_by = caller.name(self.started_by.take());
                Ok(LaunchFields { inputs: std::mem::take(&mut self.inputs), options, started_by })
            }
        }
    )*};
}

launches! {
    /// A capability to execute.
    CapabilityCallArguments {
        /// Its id.
        capability_id: String,
    }

    /// A skill to be executed.
    ExecuteArguments {
        /// Id, unambiguous name, or location.
        skill_id: String,
    }

    /// A skill to be attached.
    AttachArguments {
        /// Id, unambiguous name, or location.
        skill_id: String,
        /// `task`, `run`, `output`, `transcript` or `artifact`.
        target_type: String,
        /// Reference: `RUN`, `RUN/STEP`, `session:ID`, `task:ID`, `artifact:DIGEST` or
        /// `skill:ID/RELATIVE/PATH` (a file of a skill). Files of the service's machine are not accessible:
        /// `artifact.create` (`POST /v1/artifacts`) stores content.
        target_ref: String,
    }
}

/// Deserializes the number of items of a page.
fn page_limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    at_most(deserializer, LARGEST_PAGE)
}

/// Deserializes the number of events of a page; more are allowed because events are smaller than other items.
fn event_limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    at_most(deserializer, 10_000)
}

fn at_most<'de, D: Deserializer<'de>>(deserializer: D, largest: usize) -> Result<usize, D::Error> {
    // Any number, so that a negative one is reported as out of range too.
    let limit = serde_json::Number::deserialize(deserializer)?;
    let unsigned = limit.as_u64().and_then(|limit| usize::try_from(limit).ok());
    if let Some(limit) = unsigned.filter(|limit| (1..=largest).contains(limit)) {
        return Ok(limit);
    }
    Err(serde::de::Error::custom(format!("{limit} is out of range; allowed: 1 to {largest}")))
}

fn some() -> usize {
    20
}

/// Returns the hours of a shift.
fn shift() -> u32 {
    8
}

fn yes() -> bool {
    true
}

fn page() -> usize {
    100
}

fn checkpoint_page() -> usize {
    RunDetail::MAX_CHECKPOINTS
}

/// Checks the options that a remote caller may set, and merges trace id and key given elsewhere.
///
/// # Errors
/// Returns `invalid_request` for files, which are paths of this machine, and for a trace id or key given twice with
/// different values; `forbidden` to run unsandboxed without the scope for it.
pub(super) fn limited(
    mut options: ExecutionOptions,
    caller: &super::Caller,
    trace_id: Option<String>,
    key: Option<String>,
) -> Result<ExecutionOptions, Error> {
    if !options.files.is_empty() {
        let message = "`options.files` refers to files of the service's machine; pass contents as \
            inputs, or launch there with `skills run --file`";
        return Err(Error::new(Code::InvalidRequest, message));
    }
    if options.unsandboxed && !caller.may(super::Scope::Admin) {
        return Err(Error::needs_scope(super::Scope::Admin, "`options.unsandboxed` needs the scope `admin`"));
    }
    options.trace_id =
        agreed("trace_id", trace_id, options.trace_id)?.or_else(|| Some(caller.trace_id.clone()));
    options.idempotency_key = agreed("idempotency_key", key, options.idempotency_key)?;
    options.check()?;
    Ok(options)
}

fn agreed(what: &str, one: Option<String>, other: Option<String>) -> Result<Option<String>, Error> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => {
            Err(Error::new(Code::InvalidRequest, format!("`{what}` is given twice: {one:?} and {other:?}")))
        }
        (one, other) => Ok(one.or(other)),
    }
}
