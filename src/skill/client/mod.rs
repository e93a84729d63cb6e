//! Client profiles: where a known client looks for skills, which skill wins a name, how it handles a malformed file,
//! and how its budget truncates the list. Data in `assets/clients/*.yaml`: every value names its source, every profile
//! the client's version, and what is unknown stays unknown.

mod file;
mod read;

pub use file::{SkillFile, YamlDefect};
pub use read::{AsRead, Taken, read};

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use strum::Display;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../assets/clients");

/// How a value was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum How {
    /// Seen in the request that a running client sent.
    Run,
    /// Read in the client's published source.
    Source,
    /// Read in documentation or another public page.
    Docs,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// How it was learned.
    pub how: How,
    /// A public page or file; none for a run.
    #[serde(default)]
    pub url: Option<String>,
    /// The client's version or commit it is about; `unknown` for pages that name none.
    pub client_version: String,
    /// The day it was read or run, `YYYY-MM-DD`.
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
            None => format!("run of {version} ({})", self.date),
        }
    }
}

/// A value with the key of its [`Source`], or nothing where it is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Fact<T>(pub Option<Sourced<T>>);

/// A known value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced<T> {
    /// The value.
    pub is: T,
    /// Key into [`Profile::sources`].
    pub source: String,
}

impl<T> Fact<T> {
    /// The value, if it is known.
    pub fn value(&self) -> Option<&T> {
        self.0.as_ref().map(|known| &known.is)
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
        enum Written<T> {
            Unknown(Word),
            Known(Sourced<T>),
        }
        Ok(Self(match Written::deserialize(d)? {
            Written::Unknown(Word::Unknown) => None,
            Written::Known(known) => Some(known),
        }))
    }
}

/// Whose skills a folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Scope {
    /// Relative to the working directory.
    Project,
    /// Relative to the home folder.
    User,
}

/// A folder that a client looks into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Folder {
    /// Relative to the working directory or the home folder.
    pub path: String,
    /// To which of the two.
    pub scope: Scope,
    /// Key into [`Profile::sources`].
    pub source: String,
}

/// How deep below a folder a client finds skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// `FOLDER/skill/SKILL.md` only.
    One,
    /// That many folders down.
    AtMost(u32),
    /// Anywhere below.
    Any,
}

/// Which links below one of its folders a client follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Links {
    /// Linked folders and linked files.
    All,
    /// Linked folders, but no `SKILL.md` that is a link itself.
    Folders,
    /// Links that stay inside the folder that is looked into.
    Inside,
}

/// What happens to several skills of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SameName {
    /// The first that is read stays, the others are hidden.
    First,
    /// The first folder stays; of several in one folder the one that is read last.
    LastRead,
    /// All stay.
    All,
    /// One stays, and which differs from start to start.
    Undefined,
}

/// In which order a client lists its skills: where its list is too long, the order decides who stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Skills of the project before those of the user, then by name, then by path, byte by byte.
    ScopeNamePath,
    /// By name, as words are sorted in English: case and accents last.
    Name,
    /// The folder that wins a name first, inside it by path.
    StrongestFirst,
    /// The folder that wins a name first, inside it by name as words are sorted in English.
    StrongestFirstByName,
    /// The folder that loses a name first, the one that wins it last; inside one from the last path to the first. A name
    /// keeps the place at which it came first.
    WeakestFirst,
}

/// What of one of its folders a client goes through.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Directories by name that it does not enter; `.*` matches every hidden one.
    #[serde(default)]
    pub skips: Vec<String>,
    /// Folders in all below one of its own, read breadth first, each in the order of the file system.
    #[serde(default)]
    pub folders: Option<u32>,
    /// Folders inside one folder, the first by name.
    #[serde(default)]
    pub children: Option<u32>,
    /// Skills of one of its folders.
    #[serde(default)]
    pub skills: Option<u32>,
    /// Whether it leaves alone what lies inside a skill's folder.
    #[serde(default)]
    pub stops_at_skill: bool,
    /// Whether a skill goes by its path without links, so that one file counts once.
    #[serde(default)]
    pub real_paths: bool,
}

/// What a client calls a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameFrom {
    /// `name` of the frontmatter.
    Frontmatter,
    /// The folder's name.
    Folder,
    /// The folder's name; a different `name` of the frontmatter follows it in parentheses in the list.
    FolderAndName,
}

/// What a client makes of a file with a certain defect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handling {
    /// It does not matter: the value is taken as it is.
    Loaded,
    /// It makes do; how.
    Repaired(String),
    /// It leaves the skill out.
    Dropped,
    /// It takes the folder's name instead.
    FromFolder,
    /// It takes the first line of the text below the frontmatter, of the whole file where there is none.
    FromBody,
}

/// What a client makes of white space in a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhiteSpace {
    /// It stays, at both ends too.
    Kept,
    /// It stays, but for both ends.
    Trimmed,
    /// Every run of it becomes one blank.
    OneBlank,
}

/// Which signs of a text a client escapes in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Escape {
    /// None: a text can end the list that it is in.
    #[default]
    None,
    /// `<` and `>`.
    AngleBrackets,
    /// `&`, `<`, `>`, `"` and `'`.
    Xml,
}

impl Escape {
    /// The text as it is in the list.
    #[must_use]
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

/// What a description that is too long comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongDescription {
    /// Characters that are taken.
    pub characters: u32,
    /// What is at the end of one that was cut, within that length; none where the skill is dropped.
    #[serde(default)]
    pub cut: Option<String>,
    /// Whether white space before that mark goes, too.
    #[serde(default)]
    pub trims: bool,
}

/// What a client makes of a name's signs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameRules {
    /// Characters that a name may have; a longer one is dropped with its skill.
    #[serde(default)]
    pub longest: Option<u32>,
    /// Signs that are replaced by a hyphen.
    #[serde(default)]
    pub hyphens_for: String,
    /// Signs beside ASCII letters and digits that a name may have; with any other the skill is dropped.
    #[serde(default)]
    pub only: Option<String>,
    /// Signs with which the skill is dropped.
    #[serde(default)]
    pub never: String,
}

/// What a client makes of a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRules {
    /// Bytes of a `SKILL.md` that are taken.
    pub bytes: Fact<Option<u64>>,
    /// Bytes that are not UTF-8.
    pub not_utf8: Fact<Handling>,
    /// A byte order mark before the frontmatter.
    pub byte_order_mark: Fact<Handling>,
    /// Blanks behind the opening `---`.
    pub fence_blanks: Fact<Handling>,
    /// No opening `---` on the first line, or no closing one.
    pub no_frontmatter: Fact<Handling>,
    /// A plain value that holds `: `.
    pub unquoted_colon: Fact<Handling>,
    /// A plain value that ends with a colon.
    pub trailing_colon: Fact<Handling>,
    /// A line that is indented with a tab.
    pub tab_indent: Fact<Handling>,
    /// A duplicate key.
    pub duplicate_key: Fact<Handling>,
    /// A plain value that starts with a sign which YAML reserves.
    pub reserved_start: Fact<Handling>,
    /// Any other frontmatter that is not YAML mapping.
    pub bad_yaml: Fact<Handling>,
    /// Whether name and description are read line by line, as they are written, where the YAML fails or one
    /// of the two is not text.
    pub line_reader: Fact<bool>,
    /// A number or `true` as name or description.
    pub not_text: Fact<Handling>,
    /// A list as description.
    pub list: Fact<Handling>,
    /// `null` as description.
    pub null_description: Fact<Handling>,
    /// No `name`.
    pub missing_name: Fact<Handling>,
    /// An empty `name`.
    pub empty_name: Fact<Handling>,
    /// Signs and length of a name.
    pub name: Fact<NameRules>,
    /// No `description`.
    pub missing_description: Fact<Handling>,
    /// An empty or blank `description`.
    pub empty_description: Fact<Handling>,
    /// Line ends and other white space of a description.
    pub white_space: Fact<WhiteSpace>,
    /// A description that is too long.
    pub long_description: Fact<Option<LongDescription>>,
    /// Whether `when_to_use` follows the description, behind ` - `.
    pub when_to_use: Fact<bool>,
    /// Whether a skill with `paths` is listed only once a file fits.
    pub paths: Fact<bool>,
}

/// How a skill says that people alone call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeopleOnly {
    /// `disable-model-invocation` in the frontmatter: `true`, also in quotes, or `yes`.
    Frontmatter,
    /// The same; `yes` says nothing.
    FrontmatterTrue,
    /// `policy.allow_implicit_invocation: false` in `agents/openai.yaml`.
    OpenaiYaml,
}

/// Where a client lists the skills that it brings itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Among {
    /// Before all others.
    First,
    /// Sorted among them.
    Sorted,
    /// Behind all others.
    Last,
}

/// A skill that a client brings itself: its name and how long its text is, never the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledSkill {
    /// Its name.
    pub name: String,
    /// Characters of its description.
    pub characters: u32,
}

/// The skills that a client brings itself. They are in the same list and take their share of its bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundled {
    /// Their state.
    pub among: Among,
    /// Which they are, in the client's order.
    pub skills: Vec<BundledSkill>,
    /// Further ones of which the names are not known; they are counted behind all others.
    #[serde(default)]
    pub unnamed: u32,
    /// Characters that each of those is taken to have.
    #[serde(default)]
    pub unnamed_characters: u32,
    /// Whether their descriptions stay where others are truncated.
    #[serde(default)]
    pub keep_descriptions: bool,
    /// Folder relative to the home folder where the client unpacks them: what lies there is read instead.
    #[serde(default)]
    pub folder: Option<String>,
    /// The placeholder for their location, with `{name}`.
    #[serde(default)]
    pub location: String,
    /// Whether lengths or places are taken from elsewhere than a run of this version.
    #[serde(default)]
    pub approximate: bool,
}

/// In which unit a share of the context is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareUnit {
    /// Characters, four for each token of the share.
    Characters,
    /// Tokens.
    Tokens,
}

/// How long a client's list may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// As long as it is.
    None,
    /// That many characters.
    Characters(u32),
    /// A share of the model's context window.
    Share {
        /// 0 to 1.
        of_context: f64,
        /// The unit in which it is counted.
        unit: ShareUnit,
        /// More than that it never is.
        #[serde(default)]
        at_most: Option<u32>,
        /// Characters where the window is not known.
        #[serde(default)]
        without_window: Option<u32>,
    },
}

/// What a client does with a list that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortening {
    /// Names stay; a description stays whole where it still fits, those of the most used skills first, else in the
    /// order of the list.
    WholeWhileFitting,
    /// Every description is cut to the same length; then skills are left out.
    EvenlyThenOmit,
    /// All descriptions go at once; then skills beyond the bound are left out.
    NamesThenOmit,
    /// Entries stay whole up to the bound; all others are named in one line behind them.
    WholeThenNames,
}

/// What stands for the location in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    /// The path.
    #[default]
    Path,
    /// The path, with `~` for the home folder.
    Tilde,
    /// A short name for the client's folder (`r0`) and the rest of the path; the table of them is not measured.
    Alias,
    /// `project` or `user`.
    Scope,
}

/// What of its list a client measures against its bound. `{name}`, `{description}` and `{location}` stand for the parts
/// of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// An entry as it is written there.
    pub entry: String,
    /// An entry whose description went.
    pub bare: String,
    /// What is between two entries.
    #[serde(default)]
    pub between: String,
    /// Which signs of the parts are escaped.
    #[serde(default)]
    pub escape: Escape,
    /// What stands for the location.
    #[serde(default)]
    pub location: Location,
    /// Characters around all entries that count, too.
    #[serde(default)]
    pub around: u32,
    /// The same once descriptions went, with what is kept free then.
    #[serde(default)]
    pub around_bare: u32,
}

/// How a client keeps its list within bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// How long the list may be.
    pub bound: Fact<Bound>,
    /// What is measured against the bound.
    pub measured: Fact<Measured>,
    /// Bytes that it takes for a token: clients estimate.
    pub bytes_per_token: Fact<u32>,
    /// Entries at most.
    pub entries: Fact<Option<u32>>,
    /// What it does with a list that is too long.
    pub shortening: Fact<Shortening>,
    /// What is truncated first as text.
    pub gives_way: Fact<String>,
}

/// One client, in one range of its versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What commands and settings call it: the file's name.
    pub id: String,
    /// Display name.
    pub name: String,
    /// The version whose runs gave the values that are learned by running; none where it was never run.
    #[serde(default)]
    pub measured_at: Option<String>,
    /// The versions that the profile stands for, as `>=2.1.330` or `<2.1.330`; none for all.
    #[serde(default)]
    pub versions: Option<String>,
    /// Where the values were read, by key.
    pub sources: BTreeMap<String, Source>,
    /// Folders, the one that wins a name first.
    pub folders: Vec<Folder>,
    /// Whether project folders are looked for in every folder from the working directory up to the repository root
    /// (nearest first), or in the working directory alone.
    pub walks_up: Fact<bool>,
    /// How deep below a folder skills are found.
    pub depth: Fact<Depth>,
    /// Which links are followed.
    pub links: Fact<Links>,
    /// What of a folder is gone through.
    pub reading: Fact<Reading>,
    /// In which order skills are listed.
    pub order: Fact<Order>,
    /// What happens to several skills of one name.
    pub same_name: Fact<SameName>,
    /// What the client calls a skill.
    pub name_from: Fact<NameFrom>,
    /// What it makes of a file.
    pub file: FileRules,
    /// By what a skill is kept from the model, so that people alone call it.
    pub people_only: Fact<Vec<PeopleOnly>>,
    /// The skills that it brings itself.
    pub bundled: Fact<Bundled>,
    /// How the list is kept within bounds.
    pub budget: Budget,
}

impl Profile {
    /// The version that was run and all sources, in one line.
    #[must_use]
    pub fn sources_line(&self) -> String {
        self.sources.values().map(Source::line).collect::<Vec<_>>().join("; ")
    }

    /// Its name, and the version whose runs it holds, where there were any.
    #[must_use]
    pub fn measured_name(&self) -> String {
        match &self.measured_at {
            Some(version) => format!("{} {version}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Every client's profile for its newest versions, by id. A file that does not load is left out (the tests load each).
pub fn profiles() -> &'static [Profile] {
    static PROFILES: LazyLock<Vec<Profile>> =
        LazyLock::new(|| all().iter().filter_map(|known| known.first().cloned()).collect());
    &PROFILES
}

/// The profile of that id; of `id@version` the one whose range holds the version.
pub fn profile(id: &str) -> Option<&'static Profile> {
    let (id, version) = id.split_once('@').map_or((id, None), |(id, version)| (id, Some(version)));
    let Some(version) = version else { return profiles().iter().find(|profile| profile.id == id) };
    let known = all().iter().find(|known| known.first().is_some_and(|profile| profile.id == id))?;
    known.iter().find(|profile| profile.versions.as_deref().is_none_or(|range| in_range(version, range)))
}

/// The profiles of every client, the newest versions first.
fn all() -> &'static [Vec<Profile>] {
    static ALL: LazyLock<Vec<Vec<Profile>>> = LazyLock::new(|| {
        let mut all: Vec<Vec<Profile>> = written().filter_map(|(_, text)| load(text).ok()).collect();
        all.sort_by(|a, b| a.first().map(|profile| &profile.id).cmp(&b.first().map(|profile| &profile.id)));
        all
    });
    &ALL
}

fn written() -> impl Iterator<Item = (&'static Path, &'static str)> {
    FILES.files().filter_map(|file| Some((file.path(), file.contents_utf8()?)))
}

/// The profiles of one file: the one it spells out, and those of earlier versions, which say what was different.
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

/// Puts values over those of the same keys. A known fact is replaced whole.
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

/// Whether a version is in a range such as `>=2.1.330` or `<2.1.330`.
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
