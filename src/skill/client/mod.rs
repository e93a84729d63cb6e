//! Client profiles: where a known client looks for skills, which of several skills with one name wins, how it handles
//! a malformed file, and how its budget truncates the list. The data is in `assets/clients/*.yaml`: every value names
//! its source, every profile names the client's version, and unknown values stay unknown.

mod file;
mod read;

pub use file::{SkillFile, YamlDefect};
pub use read::{ClientEntry, ParseOutcome, RuleCodes, read};
pub use skills_base::text::collapse_whitespace as one_blank;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use strum::Display;

/// What a client that appends `when_to_use` to the description writes between them.
pub const WHEN_TO_USE: &str = " - ";

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../assets/clients");

/// How a value was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum How {
    /// Observed in the request that a running client sent.
    Run,
    /// Read from the client's published source.
    Source,
    /// Read from documentation or another public page.
    Docs,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// How the value was determined.
    pub how: How,
    /// A public page or file; `None` for a run.
    #[serde(default)]
    pub url: Option<String>,
    /// The client's version or commit; `unknown` for pages that do not name one.
    pub client_version: String,
    /// The day on which it was read or run, `YYYY-MM-DD`.
    pub date: String,
}

impl Source {
    fn line(&self) -> String {
        let version = match self.client_version.as_str() {
            "unknown" => "version unknown",
            version => version,
        };
        match &self.url {
            Some(url) => format!("{url} ({version}, read {})", self.date),
            None => format!("measured with {version} ({})", self.date),
        }
    }
}

/// A value with the key of its [`Source`]; `None` if it is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Fact<T>(pub Option<Sourced<T>>);

/// A known value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced<T> {
    pub is: T,
    /// Key into [`Profile::sources`].
    pub source: String,
}

impl<T> Fact<T> {
    /// Returns the value, if it is known.
    pub fn value(&self) -> Option<&T> {
        self.0.as_ref().map(|known| &known.is)
    }

    /// Returns the key of the source, if the value is known.
    pub fn source(&self) -> Option<&str> {
        self.0.as_ref().map(|known| known.source.as_str())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fact<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Word {
            Unknown,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum ValueOrUnknown<T> {
            Unknown(Word),
            Known(Sourced<T>),
        }
        Ok(Self(match ValueOrUnknown::deserialize(d)? {
            ValueOrUnknown::Unknown(Word::Unknown) => None,
            ValueOrUnknown::Known(known) => Some(known),
        }))
    }
}

/// What a folder is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Scope {
    /// Relative to the working directory.
    Project,
    /// Relative to the home folder.
    User,
}

/// A folder in which a client looks for skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Folder {
    /// Path relative to the working directory or the home folder.
    pub path: String,
    pub scope: Scope,
    /// Which links below it are followed, if they are not those of the profile.
    #[serde(default)]
    pub links: Option<Links>,
    /// Names of folders below it that are skipped, in addition to those of the profile.
    #[serde(default)]
    pub skips: Vec<String>,
    /// Key into [`Profile::sources`].
    pub source: String,
}

/// How deep below a folder a client finds skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// `FOLDER/skill/SKILL.md` only.
    One,
    /// At most this many folders down.
    AtMost(u32),
    /// Anywhere below.
    Any,
}

/// Which links below its folders a client follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Links {
    /// Linked folders and linked files.
    All,
    /// Linked folders, but not a `SKILL.md` that is a link itself.
    Folders,
    /// Links whose target is inside the scanned folder.
    Inside,
}

/// How a client treats several skills with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SameName {
    /// The first one read is listed, the others are hidden.
    First,
    /// The first folder wins; of several skills in that folder, the one read last.
    LastRead,
    All,
    /// One is listed; which one varies between starts.
    Undefined,
}

/// The order in which a client lists its skills, which decides which of them stay in a list that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Skills of the project before those of the user, then by name, then by path, byte by byte.
    ScopeNamePath,
    /// By name, in English collation order: case and accents are compared last.
    Name,
    /// By folder, the one that wins a name first; within a folder by name, byte by byte.
    StrongestFirst,
    /// By folder, the one that wins a name first; within a folder by name in English collation order.
    StrongestFirstByName,
    /// By folder, the one that wins a name last; within a folder by path in descending order. A name keeps the
    /// position of its first occurrence.
    WeakestFirst,
}

/// Which parts of its folders a client scans.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Names of directories that it skips; `.*` matches every hidden one.
    #[serde(default)]
    pub skips: Vec<String>,
    /// Maximum total number of folders below one of its folders, read breadth-first, each in the order of the file
    /// system.
    #[serde(default)]
    pub folders: Option<u32>,
    /// Maximum number of folders in one folder, the first by name.
    #[serde(default)]
    pub children: Option<u32>,
    /// Maximum number of skills of one of its folders.
    #[serde(default)]
    pub skills: Option<u32>,
    /// Whether it does not scan inside a skill's folder.
    #[serde(default)]
    pub stops_at_skill: bool,
    /// Whether it identifies a skill by its path without links, so that one file counts once.
    #[serde(default)]
    pub real_paths: bool,
}

/// The name under which a client lists a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameFrom {
    Frontmatter,
    Folder,
    /// The folder's name; if `name` of the frontmatter differs, it follows in parentheses in the list.
    FolderAndName,
}

/// How a client handles a file with a certain defect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handling {
    /// The defect has no effect: the value is used unchanged.
    Loaded,
    /// It repairs the value; how.
    Repaired(String),
    Dropped,
    /// It uses the folder's name instead.
    FromFolder,
    /// It uses the first line of the text below the frontmatter, or of the complete file if there is no frontmatter.
    FromBody,
}

/// How a client handles whitespace in a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhiteSpace {
    /// Unchanged, also at both ends.
    #[serde(rename = "kept")]
    Preserved,
    /// Removed at both ends, unless nothing else remains.
    Trimmed,
    /// Every run of whitespace becomes one space.
    OneBlank,
    /// Every run of line breaks and control characters becomes one space; removed at both ends.
    OneLine,
}

/// Which characters a client escapes in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Escape {
    /// None: a text can close the tag that encloses the list.
    #[default]
    None,
    /// `<` and `>`.
    AngleBrackets,
    /// `&`, `<`, `>`, `"` and `'`.
    Xml,
}

impl Escape {
    /// Returns the text as it is in the list.
    pub fn of(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 16);
        for sign in text.chars() {
            match (self, sign) {
                (Self::Xml, '&') => out.push_str("&amp;"),
                (Self::Xml | Self::AngleBrackets, '<') => out.push_str("&lt;"),
                (Self::Xml | Self::AngleBrackets, '>') => out.push_str("&gt;"),
                (Self::Xml, '"') => out.push_str("&quot;"),
                (Self::Xml, '\'') => out.push_str("&apos;"),
                _ => out.push(sign),
            }
        }
        out
    }
}

/// How a client handles a description that is too long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongDescription {
    /// Maximum number of characters.
    pub characters: u32,
    /// Suffix of a truncated description, included in that maximum; `None` if the skill is dropped.
    #[serde(default)]
    pub cut: Option<String>,
}

/// How a client validates the characters of a name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameRules {
    /// Maximum number of characters; a skill with a longer name is dropped.
    #[serde(default)]
    pub longest: Option<u32>,
    /// Characters that are replaced by a hyphen.
    #[serde(default)]
    pub hyphens_for: String,
    /// Characters that a name may contain in addition to ASCII letters and digits; a skill with any other character is
    /// dropped.
    #[serde(default)]
    pub only: Option<String>,
    /// Characters for which the skill is dropped.
    #[serde(default)]
    pub never: String,
}

/// How a client handles a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRules {
    /// Maximum size in bytes.
    pub bytes: Fact<Option<u64>>,
    /// Bytes that are not UTF-8.
    pub not_utf8: Fact<Handling>,
    /// A byte order mark before the frontmatter.
    pub byte_order_mark: Fact<Handling>,
    /// Whitespace after the opening `---`.
    pub fence_blanks: Fact<Handling>,
    /// No opening `---` on the first line, or no closing one.
    pub no_frontmatter: Fact<Handling>,
    /// An unquoted value that contains `: `.
    pub unquoted_colon: Fact<Handling>,
    /// An unquoted value that ends with a colon.
    pub trailing_colon: Fact<Handling>,
    /// A line that is indented with a tab.
    pub tab_indent: Fact<Handling>,
    pub duplicate_key: Fact<Handling>,
    /// An unquoted value that starts with a character that has a special meaning in YAML.
    pub reserved_start: Fact<Handling>,
    /// Any other frontmatter that is not a YAML mapping.
    pub bad_yaml: Fact<Handling>,
    /// Whether name and description are read line by line, verbatim, if the YAML is invalid or one of the two is not
    /// text.
    pub line_reader: Fact<bool>,
    /// A number or `true` as name or description.
    pub not_text: Fact<Handling>,
    /// A list as description.
    pub list: Fact<Handling>,
    pub null_description: Fact<Handling>,
    pub missing_name: Fact<Handling>,
    /// An empty `name`.
    pub empty_name: Fact<Handling>,
    /// Allowed characters and length of a name.
    pub name: Fact<NameRules>,
    pub missing_description: Fact<Handling>,
    /// An empty or blank `description`.
    pub empty_description: Fact<Handling>,
    /// Line breaks and other whitespace of a description.
    pub white_space: Fact<WhiteSpace>,
    /// A description that is too long.
    pub long_description: Fact<Option<LongDescription>>,
    /// Whether `when_to_use` is appended to the description after [`WHEN_TO_USE`].
    pub when_to_use: Fact<bool>,
    /// Whether a skill with `paths` is listed only once a matching file is used.
    pub paths: Fact<bool>,
}

/// How a skill states that only users can invoke it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeopleOnly {
    /// `disable-model-invocation` in the frontmatter: `true`, also in quotes, or `yes`.
    Frontmatter,
    /// Like `Frontmatter`, but `yes` has no effect.
    FrontmatterTrue,
    /// `policy.allow_implicit_invocation: false` in `agents/openai.yaml`.
    OpenaiYaml,
}

/// Where a client lists its bundled skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BundledListing {
    /// Before all others.
    First,
    /// Sorted among them.
    Sorted,
    /// After all others.
    Last,
}

/// A bundled skill: its name and the length of its text, never the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledSkill {
    pub name: String,
    /// Number of characters of its description.
    pub characters: u32,
    /// Number of these that are line breaks.
    #[serde(default)]
    pub line_breaks: u32,
    /// Whether its description is removed for lack of space although those of the others are kept.
    #[serde(default)]
    pub removable: bool,
    /// Its location in the list, if it is not the one of the others.
    #[serde(default)]
    pub location: Option<String>,
}

/// The skills bundled with a client. They are in the same list and use part of its budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundled {
    /// Their position in the list.
    pub among: BundledListing,
    /// The skills, in the client's order.
    pub skills: Vec<BundledSkill>,
    /// Whether their descriptions are kept where others are truncated.
    #[serde(default)]
    pub keep_descriptions: bool,
    /// Folder relative to the home folder into which the client unpacks them; if it exists, its content is read
    /// instead.
    #[serde(default)]
    pub folder: Option<String>,
    /// The template of their location, with `{name}`.
    #[serde(default)]
    pub location: String,
    /// Whether lengths or positions do not come from a run of this version.
    #[serde(default)]
    pub approximate: bool,
}

impl Bundled {
    /// Returns whether one of them keeps its description where others are truncated.
    pub fn keeps(&self, name: &str) -> bool {
        let removable = |skill: &BundledSkill| skill.name == name && skill.removable;
        self.keep_descriptions && !self.skills.iter().any(removable)
    }

    /// Returns the location of one of them in the list.
    pub fn location_of(&self, name: &str) -> String {
        let skill = self.skills.iter().find(|skill| skill.name == name);
        let location = skill.and_then(|skill| skill.location.as_ref()).unwrap_or(&self.location);
        location.replace("{name}", name)
    }
}

/// Unit of a share of the context window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareUnit {
    /// Characters: four for each token of the share.
    Characters,
    Tokens,
}

/// Maximum length of a client's list.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Unlimited.
    None,
    /// This number of characters.
    Characters(u32),
    /// A share of the model's context window.
    #[serde(rename = "share")]
    ContextShare {
        /// The share, 0 to 1.
        of_context: f64,
        /// The unit in which it is counted.
        unit: ShareUnit,
        /// The maximum, whatever the share is.
        #[serde(default)]
        at_most: Option<u32>,
        /// Maximum number of characters if the context window is not known.
        #[serde(default)]
        without_window: Option<u32>,
    },
}

/// How a client shortens a list that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortening {
    /// Names are kept; complete descriptions are kept while they fit, those of the most used skills first, or in list
    /// order if there is no usage data.
    WholeWhileFitting,
    /// Every description is truncated to the same length; then skills are omitted.
    EvenlyThenOmit,
    /// Every description is truncated to the same number of characters, the largest between these two with which the
    /// list fits; if none fits, all descriptions are omitted, and then skills beyond the limit.
    CutThenOmit {
        /// The shortest length to which descriptions are truncated.
        least: u32,
        /// The longest one, which applies to each list over the limit.
        most: u32,
        /// Tokens of the context window for each character of the list: with a smaller window, descriptions are
        /// truncated again.
        tokens_per_character: u32,
        /// The shortest length to which they are truncated for that.
        least_for_window: u32,
    },
    /// Complete entries up to the limit; all others are named in one line after them.
    WholeThenNames,
}

/// What an entry shows as the location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    #[default]
    Path,
    /// The path, with `~` for the home folder.
    Tilde,
    /// A short name of the client's folder (`r0`) and the rest of the path; the table of short names is not measured.
    Alias,
    /// `project` or `user`.
    Scope,
}

/// The part of the list that counts towards its limit. The placeholders `{name}`, `{description}` and `{location}` are
/// the parts of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedFormat {
    /// Template of an entry.
    pub entry: String,
    /// Template of an entry without description.
    #[serde(rename = "bare")]
    pub name_only: String,
    /// Separator between two entries.
    #[serde(default)]
    pub between: String,
    /// Which characters of the parts are escaped.
    #[serde(default)]
    pub escape: Escape,
    /// Whether a character counts with its width: a wide one twice, a combining mark or control character not at all.
    #[serde(default)]
    pub columns: bool,
    #[serde(default)]
    pub location: Location,
    /// Number of characters around all entries that also count.
    #[serde(default)]
    pub around: u32,
    /// The same number once descriptions are truncated to fit.
    #[serde(default)]
    pub around_cut: u32,
    /// The same number once descriptions are omitted.
    #[serde(default)]
    pub around_bare: u32,
    /// Number of characters that are added where skills are omitted, in addition to both counts of skills as digits.
    #[serde(default)]
    pub omission_note: u32,
}

/// How a client limits the length of its list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Maximum length of the list.
    pub bound: Fact<Bound>,
    /// What counts towards the limit.
    pub measured: Fact<CountedFormat>,
    /// Bytes per token in the client's estimate.
    pub bytes_per_token: Fact<u32>,
    /// Maximum number of entries.
    pub entries: Fact<Option<u32>>,
    /// How it shortens a list that is too long.
    pub shortening: Fact<Shortening>,
    /// Description of what is truncated first.
    pub gives_way: Fact<String>,
}

/// The profile of one client for a range of versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The id in commands and settings, and the name of its file.
    pub id: String,
    pub name: String,
    /// The version that was run to determine values; `None` if it was never run.
    #[serde(default)]
    pub measured_at: Option<String>,
    /// The versions that the profile covers, as `>=2.1.330` or `<2.1.330`; `None` for all.
    #[serde(default)]
    pub versions: Option<String>,
    /// Sources of the values, by key.
    pub sources: BTreeMap<String, Source>,
    /// Folders, in descending order of precedence for equal names.
    pub folders: Vec<Folder>,
    /// Whether project folders are searched in every folder from the working directory up to the repository root
    /// (nearest first), or only in the working directory.
    pub walks_up: Fact<bool>,
    /// How deep below a folder skills are found.
    pub depth: Fact<Depth>,
    /// Which links are followed.
    pub links: Fact<Links>,
    /// Which parts of a folder are scanned.
    pub reading: Fact<Reading>,
    pub order: Fact<Order>,
    /// How several skills with the same name are treated.
    pub same_name: Fact<SameName>,
    /// Where the name of a skill comes from.
    pub name_from: Fact<NameFrom>,
    /// How a `SKILL.md` is handled.
    pub file: FileRules,
    /// How a skill can be hidden from the model, so that only users can invoke it.
    pub people_only: Fact<Vec<PeopleOnly>>,
    /// Frontmatter values, as paths of keys, with which the client offers a skill only on some machines. Whether this
    /// one is among them is not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Fact<Vec<String>>>,
    /// The frontmatter value, as a path of keys, that is the key of the skill in the client's settings instead of its
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_key: Option<Fact<String>>,
    /// The skills bundled with the client.
    pub bundled: Fact<Bundled>,
    /// How the length of the list is limited.
    pub budget: Budget,
}

impl Profile {
    /// Returns all sources in one line.
    pub fn sources_line(&self) -> String {
        self.sources.values().map(Source::line).collect::<Vec<_>>().join("; ")
    }

    /// Returns the sources of some values in one line; all sources if the values do not name any.
    fn sources_among<'a>(&self, keys: impl IntoIterator<Item = Option<&'a str>>) -> String {
        let keys: BTreeSet<&str> = keys.into_iter().flatten().collect();
        let named: Vec<String> =
            keys.into_iter().filter_map(|key| self.sources.get(key)).map(Source::line).collect();
        if named.is_empty() { self.sources_line() } else { named.join("; ") }
    }

    /// Returns the sources of the folders, and of how they are searched.
    #[must_use]
    pub fn folder_sources(&self) -> String {
        let folders = self.folders.iter().map(|folder| Some(folder.source.as_str()));
        self.sources_among(folders.chain([self.walks_up.source(), self.depth.source(), self.links.source()]))
    }

    /// Returns the sources of how skills with the same name are treated.
    #[must_use]
    pub fn name_sources(&self) -> String {
        self.sources_among([self.same_name.source(), self.name_from.source()])
    }

    /// Returns the sources of how the length of the list is limited.
    #[must_use]
    pub fn budget_sources(&self) -> String {
        let budget = &self.budget;
        self.sources_among([budget.bound.source(), budget.measured.source(), budget.shortening.source()])
    }

    /// Returns the sources of how a skill can be hidden from the model.
    #[must_use]
    pub fn people_only_sources(&self) -> String {
        self.sources_among([self.people_only.source()])
    }

    /// Returns the text of which the client lists as much as it allows: the description, with `when_to_use` if the client
    /// appends it.
    pub fn listable_text<'a>(&self, description: &'a str, when_to_use: Option<&str>) -> Cow<'a, str> {
        let appends = self.file.when_to_use.value() == Some(&true);
        with_when_to_use(description, when_to_use.filter(|_| appends))
    }
}

/// Appends `when_to_use`, if there is any, to a description.
pub fn with_when_to_use<'a>(description: &'a str, when_to_use: Option<&str>) -> Cow<'a, str> {
    match when_to_use.filter(|text| !text.trim().is_empty()) {
        Some(text) => format!("{}{WHEN_TO_USE}{text}", description.trim_end()).into(),
        None => description.into(),
    }
}

/// Returns the profile of every client for its newest versions, sorted by id. Files that do not load are skipped (the
/// tests load each of them).
pub fn profiles() -> &'static [Profile] {
    static PROFILES: LazyLock<Vec<Profile>> =
        LazyLock::new(|| all().iter().filter_map(|known| known.first().cloned()).collect());
    &PROFILES
}

/// Returns the profile of a client by its id, or the one that covers the version for `id@version`.
pub fn profile(id: &str) -> Option<&'static Profile> {
    let (id, version) = id.split_once('@').map_or((id, None), |(id, version)| (id, Some(version)));
    let Some(version) = version else { return profiles().iter().find(|profile| profile.id == id) };
    let versions = all().iter().find(|versions| versions.first().is_some_and(|profile| profile.id == id))?;
    versions.iter().find(|profile| profile.versions.as_deref().is_none_or(|range| in_range(version, range)))
}

/// Returns the ranges of versions that the profiles of a client cover, the newest first; empty for an unknown client.
pub fn covered_versions(id: &str) -> Vec<&'static str> {
    let of_client = all().iter().filter(|known| known.first().is_some_and(|profile| profile.id == id));
    of_client.flatten().filter_map(|profile| profile.versions.as_deref()).collect()
}

/// Returns the profiles of every client, the newest versions first.
fn all() -> &'static [Vec<Profile>] {
    static ALL: LazyLock<Vec<Vec<Profile>>> = LazyLock::new(|| {
        let mut all: Vec<Vec<Profile>> = shipped_files().filter_map(|(_, text)| load(text).ok()).collect();
        all.sort_by(|a, b| a.first().map(|profile| &profile.id).cmp(&b.first().map(|profile| &profile.id)));
        all
    });
    &ALL
}

fn shipped_files() -> impl Iterator<Item = (&'static Path, &'static str)> {
    FILES.files().filter_map(|file| Some((file.path(), file.contents_utf8()?)))
}

/// Parses the profiles of one file: the complete one, and those of earlier versions, which only contain the
/// differences.
fn load(text: &str) -> Result<Vec<Profile>, String> {
    let mut tree: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let earlier = tree.as_object_mut().and_then(|map| map.remove("earlier")).unwrap_or(Value::Null);
    let mut trees = vec![tree];
    for changes in earlier.as_array().into_iter().flatten() {
        let mut older = trees[0].clone();
        put_over(&mut older, changes);
        trees.push(older);
    }
    let profile = |tree: Value| serde_json::from_value(tree).map_err(|error| error.to_string());
    trees.into_iter().map(profile).collect()
}

/// Overwrites values with those of the same keys. A known fact is replaced completely.
fn put_over(tree: &mut Value, changes: &Value) {
    match (tree, changes) {
        (Value::Object(tree), Value::Object(changes)) if !changes.contains_key("is") => {
            for (key, value) in changes {
                put_over(tree.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (tree, changes) => *tree = changes.clone(),
    }
}

/// Returns whether a version is in a range such as `>=2.1.330` or `<2.1.330`.
fn in_range(version: &str, range: &str) -> bool {
    range.split(',').map(str::trim).all(|part| {
        if let Some(from) = part.strip_prefix(">=") {
            by_parts(version, from) != Ordering::Less
        } else if let Some(below) = part.strip_prefix('<') {
            by_parts(version, below) == Ordering::Less
        } else {
            by_parts(version, part) == Ordering::Equal
        }
    })
}

/// Compares versions number by number.
fn by_parts(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| -> Vec<u64> {
        text.trim().split('.').map(|part| part.parse().unwrap_or_default()).collect()
    };
    parts(a).cmp(&parts(b))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
