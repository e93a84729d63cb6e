//! The types of single settings.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use strum::{Display, EnumString};

/// Which signs the screen is drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum GlyphSet {
    /// By what the terminal can do.
    #[default]
    Auto,
    /// Box drawing, blocks, arrows.
    Unicode,
    /// Plain ASCII.
    Ascii,
}

/// What the audit log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum AuditLog {
    /// There is none.
    Off,
    /// What happened to what, and by whom; digests instead of contents.
    #[default]
    Standard,
    /// Contents too, without secrets.
    Full,
}

/// How rule terms meet the text score. The same two words as the router's policy.
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

/// Which links of the routing chain are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one switch a link, as in the file")]
#[allow(missing_docs, reason = "named as in every answer's link report")]
pub struct Links {
    pub exact: bool,
    pub lexical: bool,
    pub typo: bool,
    pub presence: bool,
    pub task: bool,
    pub semantic: bool,
}

impl Default for Links {
    fn default() -> Self {
        Self { exact: true, lexical: true, typo: true, presence: true, task: true, semantic: true }
    }
}

impl Links {
    /// The names of the links that are switched off.
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

/// Key bindings as written: context → action → keys. The workbench gives them their types.
pub type Keys = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// `root` as text, or as `{path, label}`.
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

/// One key as text, or a list of keys.
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

/// How much a script may write in a step, and where; with defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scripts {
    /// Bytes of everything it writes.
    pub disk: Option<u64>,
    /// Files, folders and links that it makes.
    pub files: Option<u64>,
    /// The folder in which work folders are made; absolute.
    pub work_dir: Option<PathBuf>,
}
