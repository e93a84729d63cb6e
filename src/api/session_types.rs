//! Serializable types of sessions, shared by all adapters.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::skill_drift::SkillDrift;
use skills_base::number::counted;
use skills_config::operands;
use skills_session::{
    Active, BudgetedCatalog, Composed, ComposedPart, Entry, Fill, Form, Instructions, ListedEntry, PartKind,
    Settings, ToolError, ToolSpec,
};
use skills_skill::SkillId;
use skills_skill::tokens::TokenCount;

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionSummary {
    /// Id of the session.
    pub session_id: String,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// Time of the last change, milliseconds since 1970-01-01 UTC.
    pub changed_ms: i64,
    /// Names of its active skills, most recent last.
    pub active: Vec<String>,
    /// Id of the agent.
    pub agent: Option<String>,
    /// Entries of its transcript.
    pub entries: u64,
    /// The principal that created it; absent for the local account and without authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// Changes of a session's settings; missing ones are unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsChange {
    /// Maximum number of active skills.
    #[schemars(range(min = 1, max = 64))]
    pub cap: Option<usize>,
    /// Format of the catalog.
    pub form: Option<Form>,
    /// Where bodies are placed.
    pub instructions: Option<Instructions>,
    /// Whether locations are included.
    pub locations: Option<bool>,
    /// Id of the client whose budget truncates the catalog; an empty string for none.
    pub client: Option<String>,
    /// The model's context window in tokens.
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
    /// Id of the agent; an empty string for none.
    pub agent: Option<String>,
    /// Also offer the three old tool names.
    pub compat: Option<bool>,
}

/// A complete session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionView {
    /// Id of the session.
    pub session_id: String,
    /// Incremented with every change.
    pub version: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// Time of the last transcript entry, milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    pub changed_ms: i64,
    /// How it is composed.
    pub settings: Settings,
    /// Active skills, most recent last.
    pub active: Vec<Active>,
    /// Active skills whose file changed after loading.
    pub changed_since: Vec<String>,
    /// Active skills that differ from the current roots, by name: changed, missing, moved.
    #[serde(default)]
    #[serde(rename = "standing")]
    pub drift: BTreeMap<String, SkillDrift>,
    /// What happened, oldest first.
    pub transcript: Vec<Arc<Entry>>,
    /// Isolation of its scripts on this machine, as short text.
    pub isolation: String,
    /// The principal that created it; absent for the local account and without authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

impl SessionView {
    /// Describes the settings that differ from the defaults: `agent clerk`, `as codex`, `4 skills at most`.
    pub fn own_settings(&self) -> Vec<String> {
        let (own, usual) = (&self.settings, Settings::default());
        let agent = own.agent.as_deref().map(|agent| format!("agent {agent}"));
        let client = own.client.as_deref().map(|client| format!("as {client}"));
        let others = [
            (own.window != usual.window, format!("context window of {} tokens", own.window)),
            (own.cap != usual.cap, format!("at most {}", counted(own.cap, "skill"))),
            (own.form != usual.form, format!("catalog format {}", own.form)),
            (own.instructions != usual.instructions, format!("bodies in the {}", own.instructions)),
            (own.locations != usual.locations, "no locations".to_owned()),
            (own.compat != usual.compat, "with old tool names".to_owned()),
        ];
        let others = others.into_iter().filter(|(own, _)| *own).map(|(_, text)| text);
        agent.into_iter().chain(client).chain(others).collect()
    }
}

/// The result of a runtime tool. The error of a failed tool is a result too, which the model reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolAnswer {
    /// The entry of the transcript.
    pub entry: u64,
    /// What the model reads.
    pub result: Result<Value, ToolError>,
    /// The current version of the session.
    pub version: u64,
}

/// Bytes and tokens of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LevelSize {
    /// Bytes.
    pub bytes: u64,
    /// Tokens (o200k vocabulary).
    pub tokens: u32,
    /// `tokens` is an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl LevelSize {
    /// Creates a size of that many bytes and tokens.
    pub fn new(bytes: u64, count: TokenCount) -> Self {
        Self { bytes, tokens: count.tokens, estimated: count.estimated }
    }

    pub fn count(&self) -> TokenCount {
        TokenCount { tokens: self.tokens, estimated: self.estimated }
    }
}

impl std::ops::Add for LevelSize {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(self.bytes.saturating_add(other.bytes), self.count() + other.count())
    }
}

impl std::ops::AddAssign for LevelSize {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for LevelSize {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), std::ops::Add::add)
    }
}

/// How large a call is, by level of disclosure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallSize {
    /// Rules, prompts and inline instructions.
    pub base: LevelSize,
    /// L1: the catalog.
    pub l1: LevelSize,
    /// L2: bodies, in the instructions and in results of calls.
    pub l2: LevelSize,
    /// L3: what was read or printed by scripts, in the history.
    pub l3: LevelSize,
    /// All other history.
    pub history: LevelSize,
    /// The model's context window in tokens.
    pub window: u32,
}

/// The body of a skill in the result of an earlier call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GivenBody {
    /// The entry of the transcript that has it.
    pub entry: u64,
    /// Id of the skill.
    pub skill: String,
    /// Size of the body in that entry; included in L2.
    pub size: LevelSize,
}

/// A line of the difference between two calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffLine {
    /// In both.
    Same(String),
    /// New in this one.
    Added(String),
    /// Removed since the last one.
    Removed(String),
}

/// How the settings of a call differ from the previous one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SinceLast {
    /// Settings that changed.
    pub changes: Vec<SettingChanged>,
    /// Catalog entries in the last call and in this one.
    pub entries: (usize, usize),
    /// What is in a different order in both calls: `catalogue`, `bodies`.
    #[serde(default)]
    pub reordered: Vec<String>,
    /// Entries of both calls with a shorter or longer description in this one.
    #[serde(default)]
    pub redescribed: DescriptionChanges,
}

/// Catalog entries of two calls, counted by the change of their descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Redescribed")]
pub struct DescriptionChanges {
    /// Shortened.
    pub shortened: usize,
    /// Description omitted: only the name is shown.
    pub name_only: usize,
    /// Longer than before.
    pub longer: usize,
    /// Changed otherwise.
    pub rewritten: usize,
}

impl DescriptionChanges {
    /// Returns whether every description is unchanged.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the non-zero counts with their labels.
    pub fn counts(&self) -> impl Iterator<Item = (usize, &'static str)> {
        let all = [
            (self.shortened, "truncated"),
            (self.name_only, "name only"),
            (self.longer, "longer than before"),
            (self.rewritten, "description changed"),
        ];
        all.into_iter().filter(|(count, _)| *count > 0)
    }
}

/// A setting that changed since the last call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SettingChanged {
    /// The setting: `client`, `agent`, `window`, `form`, `instructions` or `locations`.
    pub what: String,
    /// Previous value of the setting.
    pub before: String,
    /// Current value of the setting.
    pub now: String,
}

impl SinceLast {
    /// Describes the changes: `the client changed from Codex to Cursor`, `3 entries fewer`; `number` formats numbers.
    pub fn describe(&self, number: impl Fn(usize) -> String) -> Vec<String> {
        let changed = |change: &SettingChanged| {
            format!("the {} changed from {} to {}", change.what, change.before, change.now)
        };
        let (before, now) = self.entries;
        let more = now.abs_diff(before);
        let noun = if more == 1 { "entry" } else { "entries" };
        let more = number(more);
        let entries = match now.cmp(&before) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Less => Some(format!("{more} {noun} fewer")),
            std::cmp::Ordering::Greater => Some(format!("{more} {noun} more")),
        };
        let described = self.redescribed.counts().map(|(many, what)| match (many, what) {
            (1, what) => format!("1 entry {what}"),
            (many, what) => format!("{} entries {what}", number(many)),
        });
        let reordered = self.reordered.iter().map(|what| match what.as_str() {
            "bodies" => "the order of the loaded skills changed".to_owned(),
            what => format!("the order of the {what} changed"),
        });
        self.changes.iter().map(changed).chain(entries).chain(described).chain(reordered).collect()
    }
}

/// Skills hidden from a model, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "NotListed")]
pub struct HiddenSkills {
    /// Why, as text.
    pub why: String,
    /// What hides them, if it is not the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HiddenCause>,
    /// How many there are.
    pub skills: usize,
    /// Their ids, or some of them: in a session, always including those that are loaded.
    pub names: Vec<String>,
}

/// What hides a skill that the client finds from its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HiddenCause {
    /// Its own `disable-model-invocation`.
    DisableModelInvocation,
    /// The list of the agent's own skills.
    AgentSkills,
    /// The policy.
    Policy,
}

impl HiddenCause {
    /// Returns the cause as the text of [`HiddenSkills::why`].
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::DisableModelInvocation => "user-only: disable-model-invocation",
            Self::AgentSkills => "not among the agent's own skills",
            Self::Policy => "forbidden by the policy",
        }
    }
}

/// The model context of the next call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ComposedView {
    /// The instructions, with the origin of each part.
    pub composed: Composed,
    /// SHA-256 of the text, hexadecimal.
    pub digest: String,
    /// The client whose view of the catalog is listed; none for the complete catalog.
    #[serde(default)]
    pub client: Option<String>,
    /// Where the bodies of skills that are loaded later are placed.
    #[serde(default)]
    pub instructions: Instructions,
    /// Sizes.
    pub size: CallSize,
    /// Tokens of each part of the instructions, in their order.
    #[serde(default)]
    pub part_tokens: Vec<u32>,
    /// Indices of parts whose `part_tokens` are an estimate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts_estimated: Vec<usize>,
    /// Bodies in results of calls, in order; a skill that was loaded twice appears twice.
    #[serde(default)]
    #[serde(rename = "given")]
    pub delivered: Vec<GivenBody>,
    /// Differences from the last call; empty if none, absent before the first call.
    pub diff: Option<Vec<DiffLine>>,
    /// How the settings of this call differ from the last one; absent before the first call, and for calls
    /// recorded by earlier versions.
    #[serde(default)]
    pub since: Option<SinceLast>,
    /// How much of the client's catalog budget is used, if a client is set; `budget` has the details.
    pub allowance: Option<Fill>,
    /// Skills that exist but are not in the catalog, by reason, with some of their names.
    #[serde(default)]
    pub not_listed: Vec<HiddenSkills>,
    /// The tools that are offered.
    pub tools: Vec<ToolSpec>,
}

impl ComposedView {
    /// Returns the size of a skill's body in the call: in the instructions, else in the last result that contains it.
    pub fn body_size(&self, name: &str) -> Option<LevelSize> {
        let this = |part: &&(&ComposedPart, LevelSize)| {
            let body = matches!(part.0.kind, PartKind::ActiveSkill | PartKind::AgentSkill);
            body && part.0.skill.as_deref() == Some(name)
        };
        let delivered_body = self
            .delivered
            .iter()
            .rev()
            .find(|delivered_body| delivered_body.skill == name)
            .map(|delivered_body| delivered_body.size);
        self.part_sizes().find(|part| this(&part)).map(|(_, size)| size).or(delivered_body)
    }

    /// Returns the parts of the instructions with their sizes, in order.
    pub fn part_sizes(&self) -> impl Iterator<Item = (&ComposedPart, LevelSize)> {
        self.composed.parts.iter().zip(&self.part_tokens).enumerate().map(|(at, (part, tokens))| {
            let count = TokenCount { tokens: *tokens, estimated: self.parts_estimated.contains(&at) };
            (part, LevelSize::new(part.end.saturating_sub(part.start) as u64, count))
        })
    }

    /// Returns the transcript entry whose result contains the body of a skill, unless the instructions contain it.
    pub fn delivered_in(&self, name: &str) -> Option<u64> {
        let body = |part: &ComposedPart| matches!(part.kind, PartKind::ActiveSkill | PartKind::AgentSkill);
        let here = self.composed.parts.iter().any(|part| body(part) && part.skill.as_deref() == Some(name));
        let delivered_body =
            self.delivered.iter().rev().find(|delivered_body| delivered_body.skill == name)?;
        (!here).then_some(delivered_body.entry)
    }
}

/// A skill at all three disclosure levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LevelsView {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// L1: its entry as the model sees it; none if it is not in the current roots.
    #[serde(default)]
    pub entry: Option<ListedEntry>,
    /// Size of the catalog entry.
    pub l1: LevelSize,
    /// L2: its body.
    pub body: String,
    /// Size of the body.
    pub l2: LevelSize,
    /// L3: its files.
    pub files: Vec<(String, LevelSize)>,
    /// Why its files are unknown, if they are.
    #[serde(default)]
    pub files_unknown: Option<String>,
}

/// The catalog under a client's budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BudgetView {
    /// Id of the client profile; none for no budget.
    pub client: Option<String>,
    /// Name of the client.
    pub name: String,
    /// Where the budget is published, with version and date.
    pub source: String,
    /// The client's version that was measured; absent if it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The model's context window in tokens.
    pub window: u32,
    /// How it handles the catalog.
    pub allowance: BudgetedCatalog,
    /// Skills that this client does not list, by reason.
    #[serde(default)]
    pub not_listed: Vec<HiddenSkills>,
    /// Tokens of the catalog as written and as shown, which is what a session adds to every call.
    pub tokens: (u32, u32),
    /// One of `tokens` is an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_estimated: bool,
    /// Descriptions of more than the recommended twenty tokens: name and tokens, largest first.
    pub long: Vec<(String, u32)>,
    /// Folders that the client does not search and is shown as if it did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed_folders: Vec<super::AssumedFolder>,
}

/// A known agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentView {
    /// The definition.
    pub agent: skills_session::Agent,
    /// Absolute path of its file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: std::path::PathBuf,
    /// Whether it is from a project, which may be anyone's: tags of the composed text are escaped in its prompt and
    /// instructions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_project: bool,
    /// Text of its file, if it can be read; for the local user and `admin` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Problems: skills that do not exist, other files with its id, or why the file cannot be read.
    pub problems: Vec<String>,
    /// The components of a call, in order, as text.
    #[serde(default)]
    pub composed: Vec<String>,
}

impl AgentView {
    /// Removes the text of the file, which may not define an agent at all.
    pub(crate) fn redact(&mut self) {
        self.definition = None;
        if self.composed.is_empty() {
            self.problems = vec![format!(
                "the definition is not valid; `skills agents show {}` on the service's machine shows why",
                operands([self.agent.id.as_str()])
            )];
        }
    }
}
