//! Types of individual settings.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use strum::{Display, EnumString};

/// The characters that are used for drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum GlyphSet {
    /// Depends on the capabilities of the terminal.
    #[default]
    Auto,
    /// Box drawing, blocks, arrows.
    Unicode,
    /// ASCII only.
    Ascii,
}

/// The level of detail of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum AuditLog {
    /// Disabled.
    Off,
    /// Events, subjects and principals; digests instead of contents.
    #[default]
    Standard,
    /// Also contents, without secrets.
    Full,
}

/// How rule terms combine with the text score. Has the same values as the router's policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RankPolicy {
    /// Rules are small terms of the score.
    #[default]
    Blended,
    /// Rules sort first.
    Strict,
}

/// Which matchers are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one switch per matcher, as in the file")]
pub struct MatcherSettings {
    pub exact: bool,
    pub lexical: bool,
    pub typo: bool,
    pub presence: bool,
    pub task: bool,
    pub semantic: bool,
}

impl Default for MatcherSettings {
    fn default() -> Self {
        Self { exact: true, lexical: true, typo: true, presence: true, task: true, semantic: true }
    }
}

impl MatcherSettings {
    /// Returns the names of the disabled matchers.
    pub fn off(self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("exact", self.exact),
            ("lexical", self.lexical),
            ("typo", self.typo),
            ("presence", self.presence),
            ("task", self.task),
            ("semantic", self.semantic),
        ];
        all.into_iter().filter(|(_, on)| !on).map(|(name, _)| name)
    }
}

/// Key bindings as written: context → action → keys. The workbench parses them.
pub type Keys = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// A root, written as text or as `{path, label}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenRoot {
    pub path: String,
    pub label: Option<String>,
}

impl<'de> Deserialize<'de> for WrittenRoot {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Root;
        impl<'de> Visitor<'de> for Root {
            type Value = WrittenRoot;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path, or a map with `path` and `label`")
            }

            fn visit_str<E: de::Error>(self, path: &str) -> Result<WrittenRoot, E> {
                Ok(WrittenRoot { path: path.to_owned(), label: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenRoot, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Fields {
                    path: String,
                    label: Option<String>,
                }
                let fields = Fields::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(WrittenRoot { path: fields.path, label: fields.label })
            }
        }
        d.deserialize_any(Root)
    }
}

/// Keys, written as one text or as a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenKeys(pub Vec<String>);

impl<'de> Deserialize<'de> for WrittenKeys {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = WrittenKeys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key such as `ctrl-r`, or a list of keys")
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<WrittenKeys, E> {
                Ok(WrittenKeys(vec![key.to_owned()]))
            }

            fn visit_i64<E: de::Error>(self, key: i64) -> Result<WrittenKeys, E> {
                Ok(WrittenKeys(vec![key.to_string()]))
            }

            fn visit_u64<E: de::Error>(self, key: u64) -> Result<WrittenKeys, E> {
                Ok(WrittenKeys(vec![key.to_string()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<WrittenKeys, A::Error> {
                let mut keys = Vec::new();
                while let Some(key) = seq.next_element::<String>()? {
                    keys.push(key);
                }
                Ok(WrittenKeys(keys))
            }
        }
        d.deserialize_any(Keys)
    }
}

/// How much a script may write in a step, and where; `None` for defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scripts {
    /// Maximum total bytes written.
    pub disk: Option<u64>,
    /// Maximum number of files, folders and links created.
    pub files: Option<u64>,
    /// The folder in which working directories are created; absolute.
    pub work_dir: Option<PathBuf>,
}
