//! What a client's own settings say about skills: Claude Code's `skillOverrides` and Codex' `[[skills.config]]`.
//! Files of other scopes (managed settings, session flags) are not read.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::budget_fit::{CODEX_SETTINGS, SKILL_OVERRIDES, USER_SETTINGS};
use skills_base::files;
use skills_config::Config;
use skills_skill::client::Profile;

/// Settings of a project, in ascending order of precedence; those of the user have the lowest.
const PROJECT_SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];
/// Maximum number of bytes read of a settings file.
const MAX_BYTES: u64 = 1 << 20;

/// What a setting does with a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// Name and description are listed.
    On,
    /// Only the name is listed.
    NameOnly,
    /// Users call the skill; it is not listed.
    UserOnly,
    /// The skill is not loaded.
    Off,
    /// Not known: why.
    Unknown(String),
}

/// A setting that applies to a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// What it does.
    pub level: Level,
    /// The setting, with its file.
    pub source: String,
    /// The file.
    pub file: PathBuf,
}

/// The skills to which a setting applies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Selector {
    All,
    /// The skills built into the client.
    Bundled,
    /// A skill with this name in the client.
    Name(String),
    /// The same, if it is not built in. Whether such a key can also be the name in the frontmatter is not known.
    Key(String),
    /// A skill file, with links resolved.
    File(PathBuf),
}

/// A skill as settings select it.
pub struct Selected<'a> {
    /// The client's name of it.
    pub name: &'a str,
    /// The name in its frontmatter, if it is another one.
    pub other_name: Option<&'a str>,
    /// Its file, with links resolved.
    pub file: &'a Path,
    /// Whether it is built into the client.
    pub bundled: bool,
}

/// The settings of a client: the last one for each selector, with its place in ascending order of precedence.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientSettings(HashMap<Selector, (usize, Setting)>);

impl ClientSettings {
    /// Reads the settings of a client. A missing file has no settings; one that cannot be read makes unknown what
    /// happens to every skill. A demonstration reads none. Blocking.
    pub fn read(profile: &Profile, config: &Config) -> Self {
        let mut settings = Self::default();
        if config.demo {
            return settings;
        }
        let home = &config.dirs.home;
        match profile.id.as_str() {
            "claude-code" => {
                let project = PROJECT_SETTINGS.map(|below| config.cwd.join(below));
                let mut files = vec![home.join(USER_SETTINGS)];
                files.extend(project.into_iter().filter(|file| *file != home.join(USER_SETTINGS)));
                for file in files {
                    settings.add(&file, profile, home, claude_code);
                }
            }
            "codex" => settings.add(&home.join(CODEX_SETTINGS), profile, home, codex),
            _ => {}
        }
        settings
    }

    fn add(
        &mut self,
        file: &Path,
        profile: &Profile,
        home: &Path,
        parse: fn(&str) -> Result<Vec<(Selector, Level, String)>, String>,
    ) {
        let shown = match file.strip_prefix(home) {
            Ok(below) => format!("~/{}", below.display()),
            Err(_) => file.display().to_string(),
        };
        let client = &profile.name;
        let rules = match read_text(file) {
            Ok(None) => return,
            Ok(Some(text)) => parse(&text),
            Err(why) => Err(why),
        };
        let rules = rules.unwrap_or_else(|why| {
            let what = format!("{client}'s settings in {shown} cannot be read here ({why})");
            vec![(Selector::All, Level::Unknown(what), String::new())]
        });
        // A selector that is repeated gets a later place, so that places stay distinct.
        let places = self.0.values().map(|(place, _)| place + 1).max().unwrap_or(0)..;
        self.0.extend(places.zip(rules).map(|(place, (selector, level, key))| {
            let selector = match selector {
                Selector::File(path) => {
                    let path = match path.strip_prefix("~") {
                        Ok(below) => home.join(below),
                        Err(_) => file.parent().unwrap_or(home).join(path),
                    };
                    Selector::File(path.canonicalize().unwrap_or(path))
                }
                selector => selector,
            };
            let level = match level {
                Level::Unknown(what) if !key.is_empty() => Level::Unknown(format!("{what} in {shown}")),
                level => level,
            };
            let source = if key.is_empty() { shown.clone() } else { format!("`{key}` in {shown}") };
            (selector, (place, Setting { level, source, file: file.to_owned() }))
        }));
    }

    /// Returns the setting that applies to a skill: the last one that selects it.
    pub fn of(&self, skill: &Selected<'_>) -> Option<Setting> {
        let named = skill.name.to_owned();
        let on_key =
            skill.bundled.then_some("whether the setting applies to a built-in skill is not documented");
        let on_other = Some("whether the setting can use the name in the frontmatter is not documented");
        let on_folder =
            Some("whether the path of a setting can be the folder of the skill is not documented");
        let selectors = [
            (Some(Selector::All), None),
            (skill.bundled.then_some(Selector::Bundled), None),
            (Some(Selector::Name(named.clone())), None),
            (Some(Selector::Key(named)), on_key),
            (skill.other_name.map(|name| Selector::Key(name.to_owned())), on_other),
            (Some(Selector::File(skill.file.to_owned())), None),
            (skill.file.parent().map(|folder| Selector::File(folder.to_owned())), on_folder),
        ];
        let found = selectors.into_iter().filter_map(|(selector, unknown)| {
            let (place, setting) = self.0.get(&selector?)?;
            Some((place, setting, unknown))
        });
        let (_, setting, unknown) = found.max_by_key(|(place, ..)| **place)?;
        let level = match unknown {
            Some(what) => Level::Unknown(format!("{what}: {}", setting.source)),
            None => setting.level.clone(),
        };
        Some(Setting { level, ..setting.clone() })
    }
}

/// Reads a settings file of limited size; `None` if there is none.
fn read_text(file: &Path) -> Result<Option<String>, String> {
    let real = match file.canonicalize() {
        Ok(real) => real,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    files::read_text(&real, MAX_BYTES).map(Some).map_err(|error| error.to_string())
}

fn claude_code(text: &str) -> Result<Vec<(Selector, Level, String)>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    // A project's file can be a link: the message has nothing of its content.
    let settings: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        format!("not a JSON object, see line {}, column {}", error.line(), error.column())
    })?;
    let overrides = match settings.get(SKILL_OVERRIDES) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(overrides)) => overrides,
        Some(_) => return Err(format!("`{SKILL_OVERRIDES}` is not an object")),
    };
    let rule = |(name, value): (&String, &Value)| {
        let level = match value.as_str() {
            Some("on") => Level::On,
            Some("name-only") => Level::NameOnly,
            Some("user-invocable-only") => Level::UserOnly,
            Some("off") => Level::Off,
            _ => Level::Unknown(format!("`{SKILL_OVERRIDES}` has an unknown value for `{name}`")),
        };
        let key = match &level {
            Level::Unknown(_) => SKILL_OVERRIDES.to_owned(),
            _ => format!("{SKILL_OVERRIDES}: {}", value.as_str().unwrap_or_default()),
        };
        (Selector::Key(name.clone()), level, key)
    };
    Ok(overrides.iter().map(rule).collect())
}

/// The part of Codex' settings that concerns skills.
#[derive(Deserialize)]
struct CodexSettings {
    skills: Option<CodexSkills>,
}

#[derive(Deserialize)]
struct CodexSkills {
    bundled: Option<CodexBundled>,
    include_instructions: Option<bool>,
    #[serde(default)]
    config: Vec<CodexSkill>,
}

#[derive(Deserialize)]
struct CodexBundled {
    enabled: Option<bool>,
}

#[derive(Deserialize)]
struct CodexSkill {
    path: Option<PathBuf>,
    name: Option<String>,
    enabled: bool,
}

fn codex(text: &str) -> Result<Vec<(Selector, Level, String)>, String> {
    let settings: CodexSettings = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let Some(skills) = settings.skills else { return Ok(Vec::new()) };
    let mut rules = Vec::new();
    for skill in skills.config {
        // Codex ignores an entry with both or neither.
        let selector = match (skill.path, skill.name.as_deref().map(str::trim)) {
            (Some(path), None) => Selector::File(path),
            (None, Some(name)) if !name.is_empty() => Selector::Name(name.to_owned()),
            _ => continue,
        };
        let (level, key) = if skill.enabled {
            (Level::On, "[[skills.config]] enabled = true")
        } else {
            (Level::Off, "[[skills.config]] enabled = false")
        };
        rules.push((selector, level, key.to_owned()));
    }
    if skills.bundled.and_then(|bundled| bundled.enabled) == Some(false) {
        rules.push((Selector::Bundled, Level::Off, "[skills.bundled] enabled = false".to_owned()));
    }
    if skills.include_instructions == Some(false) {
        rules.push((Selector::All, Level::Off, "[skills] include_instructions = false".to_owned()));
    }
    Ok(rules)
}
