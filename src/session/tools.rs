//! The runtime tools as a model sees them: names, descriptions, argument schemas, and parsing of arguments.

use std::collections::BTreeMap;

use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{Display, EnumIter, EnumString, IntoEnumIterator as _};

use super::active::LoadMode;
use super::compose::ToolNameFormat;
use super::failure::{ToolError, ToolFailure};

/// The five runtime tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, EnumIter, schemars::JsonSchema)]
pub enum Tool {
    /// List the available skills.
    #[serde(rename = "skills.list")]
    #[strum(serialize = "skills.list")]
    List,
    /// Load skills.
    #[serde(rename = "skills.load")]
    #[strum(serialize = "skills.load")]
    Load,
    /// Unload skills.
    #[serde(rename = "skills.unload")]
    #[strum(serialize = "skills.unload")]
    Unload,
    /// Read a file of a loaded skill.
    #[serde(rename = "skills.read")]
    #[strum(serialize = "skills.read")]
    Read,
    /// Run a script of a loaded skill.
    #[serde(rename = "skills.run_script")]
    #[strum(serialize = "skills.run_script")]
    RunScript,
}

/// The three older names, offered on request; they follow the same rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, EnumIter, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Compat {
    /// As `skills.list`.
    ListSkills,
    /// Loads one skill and returns its body.
    ReadSkill,
    /// As `skills.read`.
    ReadSkillResource,
}

/// Arguments of `skills.list` and `list_skills`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListArguments {
    /// Rank the skills for this request and return those that fit; without it, all are listed.
    pub query: Option<String>,
    /// Maximum number of entries.
    pub limit: Option<usize>,
}

/// Arguments of `skills.load`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadArguments {
    /// Names from the list of available skills.
    pub names: Vec<String>,
    /// `replace` (the default) drops what is loaded, `add` keeps it.
    #[serde(default)]
    pub mode: LoadMode,
}

/// Arguments of `skills.unload`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UnloadArguments {
    /// Names of loaded skills; one that is not loaded is ignored.
    pub names: Vec<String>,
    /// Unload every skill.
    pub all: bool,
}

/// Arguments of `skills.read` and `read_skill_resource`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArguments {
    /// A loaded skill; the one loaded last, if omitted.
    #[serde(default, alias = "id")]
    pub skill: Option<String>,
    /// Path inside the skill's folder, e.g. `references/rules.md`.
    pub path: String,
    /// First byte to read, to continue where an earlier answer ended.
    #[serde(default)]
    pub offset: u64,
    /// Bytes to read at most.
    #[serde(default)]
    pub length: Option<u64>,
}

/// Arguments of `skills.run_script`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunScriptArguments {
    /// A loaded skill; the one loaded last, if omitted.
    #[serde(default)]
    pub skill: Option<String>,
    /// Path of the script below `scripts/`. `.py` runs with python3, `.sh` with bash, `.js` with node, `.rb` with ruby,
    /// anything else directly if it is executable.
    pub path: String,
    /// Arguments after the script's name.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables in addition to those that every script gets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Current directory, relative to the private work directory.
    #[serde(default)]
    pub workdir: Option<String>,
}

/// Arguments of `read_skill`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadSkillArguments {
    /// Name of the skill.
    pub id: String,
}

/// A tool definition for a model API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolSpec {
    /// Name of the tool in the model API.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its arguments (draft 2020-12).
    pub input_schema: Value,
}

impl Tool {
    /// Returns its description for the model.
    pub fn description(self) -> &'static str {
        match self {
            Self::List => "Lists skills that can be loaded, or those that match a query, best first.",
            Self::Load => {
                "Loads skills by name, so that their instructions apply. Call it before using a skill. \
                    `replace` unloads other skills, `add` keeps them."
            }
            Self::Unload => "Unloads skills whose instructions are no longer needed.",
            Self::Read => "Reads a file that belongs to a loaded skill, such as references/rules.md.",
            Self::RunScript => {
                "Runs a script of a loaded skill, without network access, in a private work directory. \
                    May require confirmation."
            }
        }
    }

    /// Returns the JSON schema of its arguments.
    pub fn schema(self) -> Value {
        let schema = match self {
            Self::List => schema_for!(ListArguments),
            Self::Load => schema_for!(LoadArguments),
            Self::Unload => schema_for!(UnloadArguments),
            Self::Read => schema_for!(ReadArguments),
            Self::RunScript => schema_for!(RunScriptArguments),
        };
        simplify_schema(schema.to_value())
    }

    /// Returns the tools with their schemas, named as this format requires.
    pub fn specs(wire: ToolNameFormat, compat: bool) -> Vec<ToolSpec> {
        let spec = |name: String, description: &str, input_schema| ToolSpec {
            name,
            description: description.to_owned(),
            input_schema,
        };
        let mut all: Vec<ToolSpec> = Self::iter()
            .map(|tool| spec(wire.name(&tool.to_string()), tool.description(), tool.schema()))
            .collect();
        if compat {
            all.extend(Compat::iter().map(|tool| spec(tool.to_string(), tool.description(), tool.schema())));
        }
        all
    }
}

impl Compat {
    /// Returns its description for the model.
    pub fn description(self) -> &'static str {
        match self {
            Self::ListSkills => Tool::List.description(),
            Self::ReadSkill => {
                "Loads one skill and returns its instructions and their approximate number of tokens."
            }
            Self::ReadSkillResource => Tool::Read.description(),
        }
    }

    /// Returns the JSON schema of its arguments.
    pub fn schema(self) -> Value {
        simplify_schema(match self {
            Self::ListSkills => schema_for!(ListArguments).to_value(),
            Self::ReadSkill => schema_for!(ReadSkillArguments).to_value(),
            Self::ReadSkillResource => schema_for!(ReadArguments).to_value(),
        })
    }
}

/// Removes keywords that a model does not need.
fn simplify_schema(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.remove("description");
    }
    schema
}

/// Parses a tool's arguments.
///
/// # Errors
/// Returns [`ToolFailure::InvalidRequest`] naming the unknown, missing or mistyped argument and the known ones.
pub fn arguments<T: DeserializeOwned>(tool: &str, input: &Value) -> Result<T, ToolError> {
    let input = if input.is_null() { Value::Object(serde_json::Map::new()) } else { input.clone() };
    serde_json::from_value(input)
        .map_err(|error| ToolError::new(ToolFailure::InvalidRequest, format!("arguments of {tool}: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_arguments_are_refused_by_name() {
        let error =
            arguments::<LoadArguments>("skills.load", &json!({"names": ["a"], "force": true})).unwrap_err();
        assert_eq!(error.code, ToolFailure::InvalidRequest);
        assert!(error.message.contains("skills.load") && error.message.contains("force"), "{error}");
        let error = arguments::<LoadArguments>("skills.load", &json!({"names": "a"})).unwrap_err();
        assert!(error.message.contains("names") || error.message.contains("sequence"), "{error}");
    }

    #[test]
    fn replace_is_the_default_and_no_arguments_are_an_empty_object() {
        let load: LoadArguments = arguments("skills.load", &json!({"names": ["a"]})).unwrap();
        assert_eq!(load.mode, LoadMode::Replace);
        assert_eq!(
            arguments::<ListArguments>("skills.list", &Value::Null).unwrap(),
            ListArguments::default()
        );
    }

    #[test]
    fn tool_names_are_valid_and_schemas_closed() {
        for spec in Tool::specs(ToolNameFormat::Underscored, true) {
            assert!(spec.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{}", spec.name);
            assert_eq!(spec.input_schema["type"], "object", "{}", spec.name);
            assert_eq!(spec.input_schema["additionalProperties"], false, "{}", spec.name);
        }
        assert_eq!(Tool::specs(ToolNameFormat::Dotted, false).len(), 5);
        assert_eq!("skills.run_script".parse::<Tool>().unwrap(), Tool::RunScript);
    }
}
