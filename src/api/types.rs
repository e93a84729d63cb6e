//! Serializable types of the API, shared by all adapters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use skills_registry::{Change, Root, ScanProgress, TrustSummary};
use skills_runs::Reminder;
use skills_session::BudgetedCatalog;
use skills_skill::tokens::TokenCount;
use skills_skill::{
    AttachTarget, Digest, EffectMode, Finding, Invocation, Kind, RejectedBundle, Role, Skill, SkillId, Status,
};

/// Location of the core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// In this process.
    Local,
    /// On a remote service.
    Remote { address: String, state: ConnectionState },
}

/// State of the connection to a remote core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    /// The first connection is being established.
    Connecting,
    /// Calls succeed.
    Connected,
    /// Calls fail; reconnecting automatically.
    Lost {
        /// When it was lost.
        since: Instant,
        /// The reason, as a sentence.
        why: String,
        /// When the next attempt is made.
        next_try: Instant,
    },
    /// Nothing was received for longer than the core is ever silent; the connection is not given up yet.
    Silent {
        /// When something was last received.
        since: Instant,
    },
}

/// Progress of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IndexProgress {
    /// Number of skills with indexed bodies, including shadowed ones.
    pub indexed: usize,
    /// Number of skills, including shadowed ones.
    pub total: usize,
    /// Whether the index is up to date with the catalog.
    pub done: bool,
}

/// Events of the core.
#[derive(Debug, Clone)]
pub enum Event {
    /// A new snapshot.
    Catalog(Arc<Change>),
    Scan(ScanProgress),
    Index(IndexProgress),
    /// An unsolicited notice for the user, as one sentence.
    Notice(String),
    /// A run started to wait, and the user wants to be reminded.
    Waiting(Box<Reminder>),
    /// The connection to the core was lost or re-established. After reconnecting, missed events are fetched
    /// automatically.
    Connection(ConnectionState),
    /// The core uses a different store than before: cached data about runs and sessions is invalid.
    Replaced,
}

/// What `list` keeps. Empty keeps all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListFilter {
    /// Only these domains.
    pub domain: Vec<String>,
    /// Only this role.
    pub role: Option<Role>,
    /// Only this status.
    pub status: Option<String>,
    /// Fuzzy filter over ids and names, and words of descriptions; the result is then sorted by match.
    pub query: Option<String>,
    /// Page size, 1 to 1,000; default: all skills.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<usize>,
    /// Cursor: the `next` of the previous page.
    #[schemars(length(min = 1))]
    pub cursor: Option<String>,
}

impl ListFilter {
    /// Returns whether every skill matches, on any number of pages.
    pub fn keeps_all(&self) -> bool {
        *self == Self { limit: self.limit, cursor: self.cursor.clone(), ..Self::default() }
    }
}

/// One line of `list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SkillSummary {
    /// The name to load it by.
    pub skill_id: SkillId,
    /// Name of the skill.
    pub name: String,
    /// Description of the skill.
    pub description: String,
    /// Role of the skill.
    pub role: Role,
    /// How it may be invoked.
    pub invocation: Invocation,
    /// What it does.
    pub effect_mode: EffectMode,
    /// Status of the skill.
    pub status: Status,
    /// Facts or tool.
    pub kind: Kind,
    /// Subject area.
    pub domain: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// What it can be attached to.
    pub attach_targets: Vec<AttachTarget>,
    /// Which of the fields above are defaults: `role`, `kind`, `status`, ….
    pub inferred: Vec<String>,
    /// Absolute path of its file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// The root it came from, for display.
    pub root: String,
    /// SHA-256 of its file.
    pub digest: Digest,
    /// How many errors and warnings it has; in a list those of SKILL.md itself, without references (see `lint`).
    pub findings: usize,
    /// For a shadowed one, the location of the winner.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub shadowed_by: Option<PathBuf>,
    /// Whether it has a contract.
    #[serde(default)]
    pub has_contract: bool,
    /// Whether its contract, scripts and bindings may run.
    #[serde(default)]
    pub trusted: TrustSummary,
    /// Whether the policy requires approval before it runs.
    #[serde(default)]
    pub needs_approval: bool,
}

/// Result of `list`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SkillList {
    /// Skills; shadowed ones after the winners.
    pub skills: Vec<SkillSummary>,
    /// Bundles that were found but cannot be used; listed without a filter, after the last skill.
    #[serde(default)]
    pub refused: Vec<RejectedBundle>,
    /// Number of skills that match the filter, on all pages.
    #[serde(default)]
    pub total: usize,
    /// Cursor of the next page, if any.
    #[serde(default)]
    pub next: Option<String>,
    /// If no skill matches: values of the filter that no skill has, with a similar one that skills have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// A file of a bundle, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileEntry {
    /// Path inside the bundle, `/` between parts.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Whether it is executable.
    pub executable: bool,
}

/// A complete skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SkillDetail {
    /// One line of it.
    pub summary: SkillSummary,
    /// The record.
    pub skill: Arc<Skill>,
    /// The complete file at its location (frontmatter and body).
    pub source: String,
    /// The body: what a model receives by loading.
    pub body: String,
    /// Parser's and linter's findings, including those that need the other skills (shadowing, links).
    pub findings: Vec<Finding>,
    /// Files of the bundle other than `SKILL.md`, by path.
    pub files: Vec<FileEntry>,
}

/// Result of reading a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileContent {
    /// Path inside the bundle.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Media type by extension and content, e.g. `text/markdown`, `image/png`.
    pub media_type: String,
    /// The content, or its beginning.
    pub content: FileText,
}

/// Text, or the first bytes of other content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileText {
    /// UTF-8 text; cut at 1 MiB.
    Text(String),
    /// The first 512 bytes of something that is not text.
    Binary(Vec<u8>),
}

/// Token counts of one skill, by level of disclosure (o200k vocabulary).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LevelTokens {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// L1: its catalog entry (name, description, location).
    pub l1: u32,
    /// L2: its body.
    pub l2: u32,
    /// L3: its resource files as text; binary files count 0.
    pub l3: u32,
    /// `l1` is an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub l1_estimated: bool,
    /// `l2` is an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub l2_estimated: bool,
    /// `l3` is an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub l3_estimated: bool,
    /// L3: number of resource files.
    pub l3_files: u32,
    /// L3: their bytes.
    pub l3_bytes: u64,
}

impl LevelTokens {
    /// Returns the tokens of its catalog entry.
    pub fn entry_count(&self) -> TokenCount {
        TokenCount { tokens: self.l1, estimated: self.l1_estimated }
    }

    pub fn body_count(&self) -> TokenCount {
        TokenCount { tokens: self.l2, estimated: self.l2_estimated }
    }

    /// Returns the tokens of its resource files.
    pub fn files_count(&self) -> TokenCount {
        TokenCount { tokens: self.l3, estimated: self.l3_estimated }
    }
}

/// Maximum number of other skills with its name that the state of a skill has.
pub(crate) const MAX_NAMED_FILES: usize = 16;
/// Maximum number of them in a text.
const MAX_SHOWN_FILES: usize = 3;

/// Returns the locations of the other skills in [`ClientViewState::Either`] as text: the first ones, and the number of the
/// rest.
pub fn other_files(others: &[PathBuf], separator: &str, shown: impl Fn(&Path) -> String) -> String {
    let mut texts: Vec<String> = others.iter().take(MAX_SHOWN_FILES).map(|path| shown(path)).collect();
    let more = others.len().saturating_sub(MAX_SHOWN_FILES);
    if more > 0 {
        let least = if others.len() >= MAX_NAMED_FILES { "at least " } else { "" };
        texts.push(format!("{least}{more} more"));
    }
    texts.join(separator)
}

/// How a client handles a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientViewState {
    /// In its catalog.
    Found,
    /// In its catalog after a repair; what it repairs.
    Repaired(String),
    /// Shadowed by another bundle of the same name; its location.
    Shadowed(#[serde(serialize_with = "skills_base::paths::serialize")] PathBuf),
    /// The client rejects it; why.
    Dropped(String),
    /// Whether the client accepts it is unknown; what is not documented.
    Unknown(String),
    /// Outside the folders that this client searches.
    NotLooked,
    /// Nested too deep in a folder that this client searches; the folder.
    TooDeep(#[serde(serialize_with = "skills_base::paths::serialize")] PathBuf),
    /// In such a folder, but not read there; why.
    NotRead(String),
    /// Loaded, but user-only; the setting that hides it from the model.
    ForPeople(String),
    /// Not loaded: the client's settings turn it off; the setting and its file.
    TurnedOff(String),
    /// One of several skills with its name is listed, which one varies between starts; locations of the
    /// others, at most 16.
    Either(#[serde(serialize_with = "skills_base::paths::serialize")] Vec<PathBuf>),
    /// Loaded, but not listed before a condition is met; which.
    Waiting(String),
}

/// A bundle as a given client sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientViewEntry {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// What happens to it.
    pub state: ClientViewState,
    /// What to do, if the client does not find it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The setting of the client that applies to it, with its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// Whether it is in no folder of the client and is shown as if it were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

/// A folder that a client does not search and is shown as if it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AssumedFolder {
    /// The folder.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub path: PathBuf,
    /// Whether it contains the skills of this program, which replace those of a user without any; otherwise it is
    /// given by `--root`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shipped: bool,
}

impl AssumedFolder {
    /// Returns a note for each folder, with the names of the clients that do not search it, for the top of a list.
    pub fn notes(clients: &[(&str, &[Self])]) -> Vec<String> {
        let mut folders: Vec<(&Self, Vec<&str>)> = Vec::new();
        for (client, own) in clients {
            for folder in *own {
                match folders.iter_mut().find(|(known, _)| *known == folder) {
                    Some((_, clients)) => clients.push(client),
                    None => folders.push((folder, vec![client])),
                }
            }
        }
        let note = |(folder, names): (&Self, Vec<&str>)| {
            let is_all = names.len() == clients.len() && names.len() > 1;
            folder.note(&if is_all { "these clients".to_owned() } else { names.join(", ") })
        };
        folders.into_iter().map(note).collect()
    }

    /// Returns the note for a client or several.
    pub fn note(&self, clients: &str) -> String {
        if self.shipped {
            return format!(
                "assumed: the shipped skills are not in a folder of {clients}; they are shown as if they were"
            );
        }
        let path = self.path.display();
        format!(
            "assumed: {path}, given by --root, is not a folder of {clients}; its skills are shown as if it were"
        )
    }
}

/// A bundle in a client's folders that this catalog does not contain: it is in no root, or behind a link that points
/// outside one. Only its frontmatter and its errors are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ForeignBundle {
    /// The name that the client gives it.
    pub name: String,
    /// File of the bundle, under the client's path.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// The description that the client reads.
    pub description: String,
    /// What happens to it.
    pub state: ClientViewState,
    /// The setting of the client that applies to it, with its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The error for which a catalog with its folder as a root would reject or repair the file. Not determined for a link
    /// out of the client's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Finding>,
    /// Whether such a catalog would reject the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejected: bool,
    /// Whether it is in no folder of the client and is shown as if it were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// Whether the client does not find the file, or may not: it is behind a link to a folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missed: bool,
}

/// The catalog as a given client sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientView {
    /// Profile id.
    pub client: String,
    /// Display name.
    pub name: String,
    /// Sources of the profile: public source, client version, date.
    pub source: String,
    /// The client's version that was measured; absent if it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Every bundle of the catalog.
    pub entries: Vec<ClientViewEntry>,
    /// Bundles in the client's folders that this catalog does not contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<ForeignBundle>,
    /// The client's list, in its order, with its names and within its budget: also skills that are built
    /// in, and those in its folders that are not in this catalog. The same as in a budget.
    #[serde(default)]
    pub list: BudgetedCatalog,
    /// Skills that are not in that list, by reason.
    #[serde(default)]
    pub not_listed: Vec<super::HiddenSkills>,
    /// Folders that the client does not search and is shown as if it did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed_folders: Vec<AssumedFolder>,
}

/// Number and duration of calls of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OperationCount {
    /// Calls.
    pub calls: u64,
    /// Of those, failed ones.
    pub errors: u64,
    /// Sum of the time, microseconds.
    pub total_us: u64,
    /// Longest, microseconds.
    pub max_us: u64,
}

/// What is loaded, from memory: the answer to a health check does not depend on how busy the store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadState {
    /// This program's version.
    pub version: String,
    /// Number of skills that are not shadowed or refused.
    pub skills: usize,
    /// Progress of the scan.
    pub scan: ScanProgress,
    /// Progress of the index.
    pub index: IndexProgress,
}

/// Diagnostics of the core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Diagnostics {
    /// This program's version.
    pub version: String,
    /// Roots in order, with what was found.
    pub roots: Vec<Root>,
    /// Winners.
    pub skills: usize,
    /// Shadowed ones.
    pub shadowed: usize,
    /// Refused ones.
    pub refused: usize,
    /// Progress of the scan.
    pub scan: ScanProgress,
    /// Progress of the index.
    pub index: IndexProgress,
    /// Start of the counts below, and where they are stored.
    #[serde(default)]
    pub counting: super::Counting,
    /// Start of this process, milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    pub started_ms: i64,
    /// How long ago that is, in seconds.
    #[serde(default)]
    pub uptime_seconds: u64,
    /// Per operation, by name.
    pub operations: BTreeMap<String, OperationCount>,
    /// Number of failures, per matcher.
    pub link_failures: BTreeMap<String, u64>,
    /// Path of the warm-start cache, and its use at start (`used`, `rebuilt: …`, `off`).
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub cache: (PathBuf, String),
    /// Resident memory in bytes, if known.
    pub resident_bytes: Option<u64>,
}
