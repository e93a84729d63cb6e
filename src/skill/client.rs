//! Client profiles: where a known client looks for skills, who wins a name, what it makes of a
//! malformed file. Data in `assets/clients/*.yaml`; every value names its source, and what nobody
//! published stays unknown.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use serde::{Deserialize, Deserializer, Serialize};
use strum::Display;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/assets/clients");

/// Where a value was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A public page or file.
    pub url: String,
    /// The client's version or commit it is about; `unknown` for pages that name none.
    pub client_version: String,
    /// The day it was read, `YYYY-MM-DD`.
    pub date: String,
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
    /// So many folders down.
    AtMost(u32),
    /// Anywhere below.
    Any,
}

/// What happens to several skills of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SameName {
    /// The first in the order of [`Profile::folders`] stays, the others are hidden.
    First,
    /// The first folder stays; of several in one folder the one that is read last.
    LastRead,
    /// All stay.
    All,
}

/// In which order a client lists its skills: where its catalogue is too long, the order decides who stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Skills of the project before those of the user, then by name, then by path, byte by byte.
    ScopeNamePath,
    /// By name, as words are sorted in English: case and accents last.
    Name,
    /// The folder that loses a name first, the one that wins it last.
    WeakestFirst,
}

/// What of one of its folders a client goes through.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Folders by name that it does not go into; `.*` stands for every hidden one.
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
    /// Bytes of a `SKILL.md`.
    #[serde(default)]
    pub file_bytes: Option<u64>,
}

/// What a client calls a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameFrom {
    /// `name` of the frontmatter.
    Frontmatter,
    /// The folder's name.
    Folder,
}

/// What a client makes of a file with a certain defect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Handling {
    /// It does not matter.
    Loaded,
    /// It makes do; how.
    Repaired(String),
    /// It leaves the skill out.
    Dropped,
}

/// How a skill says that people alone call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeopleOnly {
    /// `disable-model-invocation: true` in the frontmatter.
    Frontmatter,
    /// `policy.allow_implicit_invocation: false` in `agents/openai.yaml`.
    OpenaiYaml,
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

/// What a client does with a catalogue that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortening {
    /// Names stay; descriptions of the skills that are used least are cut first.
    LeastUsedFirst,
    /// Every description is cut to the same length; then skills are left out.
    EvenlyThenOmit,
    /// All descriptions go at once; then skills beyond the bound are left out.
    NamesThenOmit,
    /// Skills beyond the bound are left out.
    Omit,
}

/// What of its catalogue a client measures against its bound. `{name}`, `{description}` and `{location}` stand for
/// the parts of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// An entry as it is written there.
    pub entry: String,
    /// An entry whose description went.
    pub bare: String,
    /// Whether the parts are escaped as in XML.
    #[serde(default)]
    pub xml: bool,
    /// Whether the home folder is written `~` in the location.
    #[serde(default)]
    pub tilde: bool,
    /// Characters around all entries that count, too.
    #[serde(default)]
    pub around: u32,
    /// The same once descriptions went, with what is kept free then.
    #[serde(default)]
    pub around_bare: u32,
    /// What stands at the end of a description that was cut.
    #[serde(default)]
    pub cut_mark: String,
    /// How folders are written once and named shortly in every entry, where the client does so.
    #[serde(default)]
    pub aliases: Option<Aliases>,
}

/// A table of folders before the entries of a catalogue that is too long: an entry's location is then the folder's
/// short name and the rest of its path. It is used where more skills, or more of their descriptions, fit so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aliases {
    /// A folder's short name; `{n}` counts from 0.
    pub name: String,
    /// A row of the table, with `{alias}` and `{root}`.
    pub row: String,
    /// Characters by which the text around the entries grows beside the rows.
    pub around: u32,
}

/// How a client keeps its catalogue within bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Share of the model's context window, 0 to 1.
    pub share_of_context: Fact<f64>,
    /// The unit in which that share is counted.
    pub share_unit: Fact<ShareUnit>,
    /// What is measured against the bound.
    pub measured: Fact<Measured>,
    /// Bytes that it takes for a token: clients estimate.
    pub bytes_per_token: Fact<u32>,
    /// Characters of the whole catalogue (where the share does not hold, or instead of it).
    pub characters: Fact<u32>,
    /// Entries at most.
    pub entries: Fact<u32>,
    /// Characters of one entry's description.
    pub entry_characters: Fact<u32>,
    /// What it does with a catalogue that is too long.
    pub shortening: Fact<Shortening>,
    /// What gives way first, in words.
    pub gives_way: Fact<String>,
}

/// One client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What commands and settings call it: the file's name.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Where the values were read, by key.
    pub sources: BTreeMap<String, Source>,
    /// Folders, the one that wins a name first.
    pub folders: Vec<Folder>,
    /// Whether project folders are looked for in every folder from the working directory up to the
    /// repository root (nearest first), or in the working directory alone.
    pub walks_up: Fact<bool>,
    /// How deep below a folder skills are found.
    pub depth: Fact<Depth>,
    /// What of a folder is gone through.
    pub reading: Fact<Reading>,
    /// In which order skills are listed.
    pub order: Fact<Order>,
    /// What happens to several skills of one name.
    pub same_name: Fact<SameName>,
    /// What the client calls a skill.
    pub name_from: Fact<NameFrom>,
    /// No `description`.
    pub missing_description: Fact<Handling>,
    /// No `name`.
    pub missing_name: Fact<Handling>,
    /// Frontmatter that is no YAML, as with an unquoted `: `.
    pub bad_yaml: Fact<Handling>,
    /// No opening or closing fence.
    pub no_frontmatter: Fact<Handling>,
    /// `name` is not the folder's.
    pub name_not_folder: Fact<Handling>,
    /// Longest name in characters that is taken.
    pub longest_name: Fact<u32>,
    /// Longest `description` in characters that is taken.
    pub longest_description: Fact<u32>,
    /// By what a skill is kept from the model, so that people alone call it.
    pub people_only: Fact<Vec<PeopleOnly>>,
    /// How the catalogue is kept within bounds.
    pub budget: Budget,
}

impl Profile {
    /// All sources in one line: address, version, day.
    #[must_use]
    pub fn sources_line(&self) -> String {
        let line = |s: &Source| format!("{} ({}, read {})", s.url, version(&s.client_version), s.date);
        self.sources.values().map(line).collect::<Vec<_>>().join("; ")
    }
}

fn version(text: &str) -> String {
    if text == "unknown" { "version unknown".to_owned() } else { text.to_owned() }
}

/// Every profile, by id. A file that does not load is left out (the tests load each).
pub fn profiles() -> &'static [Profile] {
    static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
        let mut all: Vec<Profile> = written().filter_map(|(_, text)| read(text).ok()).collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    });
    &PROFILES
}

/// The profile of that id.
pub fn profile(id: &str) -> Option<&'static Profile> {
    profiles().iter().find(|profile| profile.id == id)
}

fn written() -> impl Iterator<Item = (&'static Path, &'static str)> {
    FILES.files().filter_map(|file| Some((file.path(), file.contents_utf8()?)))
}

fn read(text: &str) -> Result<Profile, serde_saphyr::Error> {
    serde_saphyr::from_str(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_loads_under_its_files_name() {
        let mut ids = Vec::new();
        for (path, text) in written() {
            let profile = read(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(path.file_stem().unwrap().to_str().unwrap(), profile.id);
            ids.push(profile.id);
        }
        ids.sort();
        let known =
            ["claude-code", "codex", "copilot", "cursor", "gemini-cli", "goose", "openclaw", "opencode"];
        assert_eq!(ids, known);
        assert_eq!(profiles().len(), known.len());
    }

    #[test]
    fn every_value_names_a_public_source_with_version_and_day() {
        for (path, text) in written() {
            let tree: serde_json::Value = serde_json::to_value(read(text).unwrap()).unwrap();
            let mut used = Vec::new();
            collect(&tree, &mut used);
            let sources = tree["sources"].as_object().unwrap();
            for key in &used {
                assert!(sources.contains_key(key), "{}: no source `{key}`", path.display());
            }
            for (key, source) in sources {
                assert!(used.contains(key), "{}: source `{key}` is not used", path.display());
                assert!(source["url"].as_str().unwrap().starts_with("https://"), "{key}");
                assert!(!source["client_version"].as_str().unwrap().is_empty(), "{key}");
                let date = source["date"].as_str().unwrap();
                assert!(date.len() == 10 && date.split('-').count() == 3, "{key}: {date}");
            }
        }
    }

    fn collect(value: &serde_json::Value, used: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                if let Some(serde_json::Value::String(source)) = map.get("source") {
                    used.push(source.clone());
                }
                map.values().for_each(|value| collect(value, used));
            }
            serde_json::Value::Array(list) => list.iter().for_each(|value| collect(value, used)),
            _ => {}
        }
    }

    #[test]
    fn an_unknown_fact_and_a_known_one_are_told_apart() {
        let facts: BTreeMap<String, Fact<Handling>> = serde_saphyr::from_str(
            "a: unknown\nb: {is: dropped, source: s}\nc: {is: {repaired: how}, source: s}\n",
        )
        .unwrap();
        assert_eq!(facts["a"].value(), None);
        assert_eq!(facts["b"].value(), Some(&Handling::Dropped));
        assert_eq!(facts["c"].value(), Some(&Handling::Repaired("how".to_owned())));
        assert!(serde_saphyr::from_str::<Fact<Handling>>("{is: dropped}").is_err());
    }
}
