//! `budget fit`: the smallest change that makes the lists of clients fit their budgets without losing a golden query.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strum::Display;

use super::{Code, Error, GoldenQuery};
use skills_authoring::write_back::{WriteError, replace_file};
use skills_base::files::{MAX_USER_FILE, read_regular_text};
use skills_base::private_files;
use skills_session::Unit;
use skills_skill::SkillId;

/// Clients whose lists must fit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetFitRequest {
    /// Ids of client profiles.
    #[schemars(length(min = 1, max = 32))]
    pub clients: Vec<String>,
    /// The model's context window in tokens; default: that of `budget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
    /// Golden queries in addition to those of the roots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2_000))]
    pub queries: Vec<GoldenQuery>,
}

/// Maximum number of client profiles in one request.
const MAX_CLIENTS: usize = 32;

impl BudgetFitRequest {
    /// Rejects a request without clients or with too many.
    ///
    /// # Errors
    /// Returns `invalid_request` for such a request.
    pub fn check(&self) -> Result<(), Error> {
        if self.clients.is_empty() || self.clients.len() > MAX_CLIENTS || self.window == Some(0) {
            let message =
                format!("give 1 to {MAX_CLIENTS} client profiles, and a window of at least 1 token");
            return Err(Error::new(Code::InvalidRequest, message));
        }
        Ok(())
    }
}

/// How much of a skill a client's model is to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FitLevel {
    /// Name and description.
    Full,
    /// Name and fewer clauses of the description.
    Shortened,
    /// The name.
    NameOnly,
    /// Nothing: the skill is user-only.
    Manual,
    /// Nothing: the client does not load the skill.
    Off,
}

/// A description with fewer clauses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FittedDescription {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// Path of the skill's file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// The current description.
    pub before: String,
    /// The proposed one.
    pub after: String,
    /// The clauses that were removed.
    pub removed: Vec<String>,
}

/// Settings of a client that set the levels of skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientOverrides {
    /// The client's settings file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub file: PathBuf,
    /// What to add to it.
    pub text: String,
    /// Source of the setting.
    pub source: String,
}

/// A client's list before and after the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FittedClient {
    /// Id of its profile.
    pub client: String,
    /// Name of the client.
    pub name: String,
    /// The version that was measured; absent if it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The limit of its list, if known.
    pub limit: Option<usize>,
    /// The unit of the limit and of both sizes.
    pub unit: Unit,
    /// Size of the list: currently, as written; with the change, as shown if it fits, else as written.
    pub size: (usize, usize),
    /// Tokens of the list as written, currently and with the change.
    pub tokens: (u32, u32),
    /// Whether the current list fits.
    pub fits_now: bool,
    /// Whether the list fits with the change.
    pub fits: bool,
    /// Golden queries that are answered as expected by complete descriptions; these are to be kept.
    pub expected: usize,
    /// How many of them are answered as expected by what the client shows now.
    pub expected_now: usize,
    /// Those of them that the change loses.
    pub lost: Vec<String>,
    /// Number of skills by level.
    pub levels: BTreeMap<FitLevel, usize>,
    /// Skills that are not shown in full, with their level.
    pub reduced: BTreeMap<SkillId, FitLevel>,
    /// The client's own settings for the levels below `shortened`; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<ClientOverrides>,
}

/// A change that makes the lists of clients fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetFit {
    /// Whether every list fits and no golden query is lost.
    pub fits: bool,
    /// Golden queries.
    pub queries: usize,
    /// The clients.
    pub clients: Vec<FittedClient>,
    /// Descriptions that change.
    pub descriptions: Vec<FittedDescription>,
}

/// Settings of a client that hide a skill or its description from the model.
pub(super) struct OverrideFile {
    /// The levels that the settings can set, the least restrictive first.
    pub levels: &'static [FitLevel],
    /// Path relative to the home folder.
    path: &'static str,
    source: &'static str,
    text: fn(&[Overridden]) -> String,
}

/// A skill whose level is set by a client's settings.
pub(super) struct Overridden {
    /// The client's name of the skill.
    pub name: String,
    pub location: PathBuf,
    pub level: FitLevel,
}

/// The key of Claude Code's settings.
pub(super) const SKILL_OVERRIDES: &str = "skillOverrides";
/// The user's settings of Claude Code, relative to the home folder.
pub(super) const USER_SETTINGS: &str = ".claude/settings.json";
/// The settings of Codex, relative to the home folder.
pub(super) const CODEX_SETTINGS: &str = ".codex/config.toml";

const CLAUDE_CODE: OverrideFile = OverrideFile {
    levels: &[FitLevel::NameOnly, FitLevel::Manual],
    path: USER_SETTINGS,
    source: "https://code.claude.com/docs/en/skills (skillOverrides, from 2.1.129 on)",
    text: claude_code,
};

const CODEX: OverrideFile = OverrideFile {
    levels: &[FitLevel::Off],
    path: CODEX_SETTINGS,
    source: "https://developers.openai.com/codex/skills ([[skills.config]])",
    text: codex,
};

impl OverrideFile {
    /// Returns the settings of a client, if known.
    pub(super) fn of(client: &str) -> Option<&'static Self> {
        match client.split('@').next() {
            Some("claude-code") => Some(&CLAUDE_CODE),
            Some("codex") => Some(&CODEX),
            _ => None,
        }
    }

    pub(super) fn file(&self, home: &Path) -> PathBuf {
        home.join(self.path)
    }

    pub(super) fn overrides(&self, home: &Path, skills: &[Overridden]) -> ClientOverrides {
        ClientOverrides { file: self.file(home), text: (self.text)(skills), source: self.source.to_owned() }
    }
}

fn claude_code(skills: &[Overridden]) -> String {
    let value = |level: FitLevel| match level {
        FitLevel::NameOnly => "name-only",
        _ => "user-invocable-only",
    };
    let levels: Map<String, Value> =
        skills.iter().map(|skill| (skill.name.clone(), value(skill.level).into())).collect();
    format!("{:#}\n", json!({ SKILL_OVERRIDES: levels }))
}

fn codex(skills: &[Overridden]) -> String {
    let mut out = String::new();
    for skill in skills {
        // A JSON string is also a TOML string.
        let path = Value::from(skill.location.display().to_string());
        let _ = write!(out, "\n[[skills.config]]\npath = {path}\nenabled = false\n");
    }
    out
}

/// Returns the content of a client's settings file with the additions.
///
/// # Errors
/// Returns `invalid_configuration` for a JSON file that is not an object, and a TOML file that is invalid with them.
fn with_overrides(present: &str, overrides: &ClientOverrides) -> Result<String, Error> {
    let invalid =
        |why: String| Error::new(Code::InvalidConfiguration, format!("{}: {why}", overrides.file.display()));
    if overrides.file.extension().is_none_or(|extension| extension != "json") {
        let gap = if present.is_empty() || present.ends_with('\n') { "" } else { "\n" };
        let text = format!("{present}{gap}{}", overrides.text);
        // A list of skills in another notation cannot be extended at the end of the file.
        return match toml::from_str::<toml::Table>(&text) {
            Ok(_) => Ok(text),
            Err(error) => Err(invalid(error.message().to_owned())),
        };
    }
    let object = |text: &str| -> Result<Map<String, Value>, Error> {
        serde_json::from_str(text).map_err(|error| invalid(error.to_string()))
    };
    let mut settings = object(if present.trim().is_empty() { "{}" } else { present })?;
    for (key, value) in object(&overrides.text)? {
        let Value::Object(new) = value else { continue };
        match settings.entry(key).or_insert_with(|| json!({})) {
            Value::Object(old) => old.extend(new),
            _ => return Err(invalid(format!("`{SKILL_OVERRIDES}` is not an object"))),
        }
    }
    Ok(format!("{:#}\n", Value::Object(settings)))
}

/// Adds the settings to the client's file, atomically; other settings are kept. Blocking.
///
/// # Errors
/// Returns `invalid_configuration` for a file that cannot be read as the client's settings, `skill_changed` if it
/// changed in the meantime, and `internal_error` with the cause if it cannot be written.
pub fn write_overrides(overrides: &ClientOverrides) -> Result<(), Error> {
    let refused = |why: String| Error::from(WriteError::Io(format!("{}: {why}", overrides.file.display())));
    let present = match read_regular_text(&overrides.file, MAX_USER_FILE) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = overrides.file.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder).map_err(|error| refused(error.to_string()))?;
            private_files::create_file(&overrides.file, private_files::FILE_MODE)
                .map_err(|error| refused(error.to_string()))?;
            String::new()
        }
        Err(error) => {
            let message = format!("{}: {error}", overrides.file.display());
            return Err(Error::new(Code::InvalidConfiguration, message));
        }
    };
    let text = with_overrides(&present, overrides)?;
    Ok(replace_file(&overrides.file, present.as_bytes(), text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(level: FitLevel) -> Overridden {
        Overridden { name: "pdf".to_owned(), location: PathBuf::from("/s/p\"df/SKILL.md"), level }
    }

    #[test]
    fn other_client_settings_are_preserved() {
        let overrides = CLAUDE_CODE.overrides(Path::new("/h"), &[skill(FitLevel::NameOnly)]);
        let present = r#"{"model": "x", "skillOverrides": {"csv": "off", "pdf": "off"}}"#;
        let text = with_overrides(present, &overrides).unwrap();
        let settings: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(settings, json!({"model": "x", "skillOverrides": {"csv": "off", "pdf": "name-only"}}));
        assert!(text.find("model") < text.find("skillOverrides"), "{text}");
        let invalid = with_overrides("[1]", &overrides).unwrap_err();
        assert_eq!(invalid.code, Code::InvalidConfiguration);
    }

    #[test]
    fn codex_skills_are_disabled_at_the_end_of_the_file() {
        let overrides = CODEX.overrides(Path::new("/h"), &[skill(FitLevel::Off)]);
        assert_eq!(overrides.file, Path::new("/h/.codex/config.toml"));
        let text = with_overrides("model = \"x\"\n", &overrides).unwrap();
        let added = "\n[[skills.config]]\npath = \"/s/p\\\"df/SKILL.md\"\nenabled = false\n";
        assert_eq!(text, format!("model = \"x\"\n{added}"));
    }

    #[test]
    fn skill_list_in_another_notation_is_not_extended() {
        let overrides = CODEX.overrides(Path::new("/h"), &[skill(FitLevel::Off)]);
        let inline = "skills.config = [{ name = \"pdf\", enabled = true }]\n";
        let refused = with_overrides(inline, &overrides).unwrap_err();
        assert_eq!(refused.code, Code::InvalidConfiguration);
        let text = with_overrides("model = \"x\"", &overrides).unwrap();
        assert!(text.starts_with("model = \"x\"\n\n[[skills.config]]"), "the last line had no end: {text}");
    }

    #[test]
    fn missing_settings_file_is_created() {
        let home = tempfile::tempdir().unwrap();
        let overrides = CLAUDE_CODE.overrides(home.path(), &[skill(FitLevel::Manual)]);
        write_overrides(&overrides).unwrap();
        let text = std::fs::read_to_string(home.path().join(".claude/settings.json")).unwrap();
        assert_eq!(text, overrides.text);
        assert!(text.contains("user-invocable-only"), "{text}");
    }
}
