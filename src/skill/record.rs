//! The record of one skill: frontmatter and metrics, without the body.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::parse::MAX_BYTES;
use super::{Classification, Digest, Finding, Kind, SkillId, Status, WithOrigin};
use skills_base::files::{self, Folder, canonicalize};

/// Other fields of the specification and of the file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Properties {
    /// SPDX expression or a file's name.
    pub license: Option<String>,
    /// Environment requirements, at most 500 characters by the specification.
    pub compatibility: Option<String>,
    /// Tools the skill wants pre-approved, split from any of the three spellings in use.
    pub allowed_tools: Vec<String>,
    /// `metadata`, with values of any type, in file order.
    pub metadata: JsonMap,
    /// Unknown keys, unchanged, in file order.
    pub unknown: JsonMap,
}

/// Frontmatter fields of individual clients.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Clients {
    /// Claude Code: appended to the description in the catalog.
    pub when_to_use: Option<String>,
    /// Claude Code: the model must not invoke it.
    pub disable_model_invocation: bool,
    /// Claude Code: shown as a slash command; default true.
    pub user_invocable: Option<bool>,
    /// Claude Code: hint after the slash command.
    pub argument_hint: Option<String>,
    /// Claude Code: `fork` runs it in a separate context.
    pub context: Option<String>,
    /// Claude Code: which agent runs a forked context.
    pub agent: Option<String>,
    /// Claude Code: model override.
    pub model: Option<String>,
    /// Globs of files for which the skill is offered.
    pub paths: Vec<String>,
    /// Whether the frontmatter has `hooks` (commands that a client would run).
    pub has_hooks: bool,
}

/// One indexed skill. Body and resources are read on demand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Skill {
    /// The id by which it is loaded.
    pub id: SkillId,
    /// `name` of the frontmatter; default: the folder name.
    pub name: String,
    /// The text by which a router selects; untrusted text of the bundle (display it through `safe_text`).
    pub description: String,
    /// Absolute path of `SKILL.md` (or `skill.yaml` if there is no other main file).
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// Absolute path of the bundle's folder.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub root_dir: PathBuf,
    /// Whether it contains facts or is a tool.
    pub kind: WithOrigin<Kind>,
    /// Status of the skill.
    pub status: WithOrigin<Status>,
    /// Subject area, if any.
    pub domain: Option<WithOrigin<String>>,
    /// Tags in file order.
    pub tags: Vec<String>,
    /// Ids of related skills; a hint only, nothing is loaded.
    pub requires: Vec<String>,
    /// Role, invocation, targets, effect.
    pub classification: Classification,
    /// Specification fields, metadata, unknown keys.
    pub properties: Properties,
    /// Fields of individual clients.
    pub clients: Clients,
    /// SHA-256 of the file at `location`.
    pub digest: Digest,
    /// Bytes of the file at `location`.
    pub bytes: u64,
    /// Modification time, milliseconds since 1970-01-01 UTC.
    pub modified_ms: i64,
    /// First line of the body in the file, from 1.
    pub body_line: u32,
    /// Lines of the body.
    pub body_lines: u32,
    /// Whether there is a body with any text.
    pub has_body: bool,
    /// All repairs of the parser and findings of the linter about this bundle alone.
    pub findings: Vec<Finding>,
    /// Its real paths, if the paths above contain links; never serialized.
    #[serde(skip)]
    pub real: Option<Box<RealPaths>>,
}

/// The paths of a bundle without links, as they were when it was read. Its files are opened by these paths later, so
/// that a link that has replaced a file or a folder since then is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealPaths {
    /// The main file.
    pub location: PathBuf,
    pub folder: PathBuf,
}

impl RealPaths {
    /// Determines the real paths of the bundle whose main file is at `location`, with `real` as its real path.
    ///
    /// # Errors
    /// Returns an error of the system, for example if the folder no longer exists.
    pub fn of(location: &Path, real: PathBuf) -> io::Result<Self> {
        let folder = location.parent().unwrap_or(Path::new(""));
        let folder = match real.parent() {
            // The path contains no link.
            Some(parent) if real == location => parent.to_owned(),
            // The main file itself is a link: its target does not determine the folder.
            _ if location.symlink_metadata()?.is_symlink() => canonicalize(folder)?,
            Some(parent) => parent.to_owned(),
            None => canonicalize(folder)?,
        };
        Ok(Self { location: real, folder })
    }
}

impl Skill {
    /// Sets the real paths, if they differ from the paths above.
    #[must_use]
    pub fn with_location(mut self, real: RealPaths) -> Self {
        let linked = real.location != self.location || real.folder != self.root_dir;
        self.real = linked.then(|| Box::new(real));
        self
    }

    /// Returns the path of the bundle's folder, without links.
    pub fn real_folder(&self) -> &Path {
        self.real.as_ref().map_or(&self.root_dir, |real| &real.folder)
    }

    /// Returns the path of the main file, without links.
    pub fn real_location(&self) -> &Path {
        self.real.as_ref().map_or(&self.location, |real| &real.location)
    }

    /// Opens the bundle's folder, to read files below it.
    ///
    /// # Errors
    /// Returns an error of the system, and if a link has replaced the folder.
    pub fn open(&self) -> io::Result<Folder> {
        Folder::open(self.real_folder())
    }

    /// Reads the main file.
    ///
    /// # Errors
    /// Returns an error of the system, if a link has replaced the file, or if it has more than [`MAX_BYTES`].
    pub fn read(&self) -> Result<Vec<u8>, files::OpenError> {
        let real = self.real.as_ref().map_or(&self.location, |real| &real.location);
        files::read_file(real, MAX_BYTES)
    }
}

/// Why a bundle is listed but cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// No description after all repairs.
    NoDescription,
    /// The bytes or the path are not UTF-8.
    NotUtf8,
    /// Larger than 2 MiB.
    TooLarge,
    /// The frontmatter is not a YAML mapping, even after repairs.
    BadFrontmatter,
    /// The file could not be read.
    Unreadable,
    /// A link that points outside its root.
    LeavesRoot,
    /// A folder in a client's folder of skills has no SKILL.md.
    NoSkillFile,
}

/// A bundle that was found but cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RejectedBundle {
    /// The id it would have had; if another bundle has that, `id@` + eight hex digits of its location's digest.
    pub id: SkillId,
    /// Absolute path of the file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// Why.
    pub reason: RefusalReason,
    /// The findings that led to it; the last error is the reason.
    pub findings: Vec<Finding>,
}

/// A JSON map, stored as text: of the thousands of skills of a collection, few are asked for it, and parsed maps take
/// several times as much memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JsonMap(Option<Box<str>>);

impl JsonMap {
    /// Returns whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Parses it.
    pub fn to_map(&self) -> Map<String, Value> {
        let text = self.0.as_deref().unwrap_or("{}");
        // It was written by this type.
        serde_json::from_str(text).unwrap_or_default()
    }
}

impl From<Map<String, Value>> for JsonMap {
    fn from(map: Map<String, Value>) -> Self {
        Self((!map.is_empty()).then(|| Value::Object(map).to_string().into_boxed_str()))
    }
}

/// As a map in self-describing formats, and as text in the binary cache, whose format does not support
/// `deserialize_any`.
impl Serialize for JsonMap {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if s.is_human_readable() {
            self.to_map().serialize(s)
        } else {
            self.0.as_deref().unwrap_or("{}").serialize(s)
        }
    }
}

impl<'de> Deserialize<'de> for JsonMap {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        if d.is_human_readable() {
            return Map::deserialize(d).map(Self::from);
        }
        let text = String::deserialize(d)?;
        Ok(Self((text != "{}").then(|| text.into_boxed_str())))
    }
}

impl schemars::JsonSchema for JsonMap {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Map::<String, Value>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Map::<String, Value>::json_schema(generator)
    }
}
