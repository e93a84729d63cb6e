//! `OpenCode`'s permissions of its `skill` tool.
//!
//! All files are merged key by key (<https://opencode.ai/v1/docs/config>), and a key keeps its place
//! (`packages/opencode/src/config/config.ts` of <https://github.com/anomalyco/opencode>). Then the last rule that matches
//! counts, for the tool as for the name of the skill (<https://opencode.ai/v1/docs/permissions>). A denied skill is hidden
//! from the model (<https://opencode.ai/v1/docs/skills>). The older `tools` comes before all permissions (`config.ts`).

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::json::{member, object_with_comments};
use super::{Level, check_patterns, matches};
use skills_config::Config;

const TOOL: &str = "skill";
/// Folder of the user's files, relative to the home folder.
const USER_FOLDER: &str = ".config/opencode";
const FOLDER: &str = ".opencode";
const NAMES: [&str; 2] = ["opencode.json", "opencode.jsonc"];

/// Returns the files in ascending order of precedence, as `packages/opencode/src/config/paths.ts` does.
pub(super) fn files(config: &Config) -> Vec<PathBuf> {
    let home = &config.dirs.home;
    let user = home.join(USER_FOLDER);
    let top = config.repository.as_deref().unwrap_or(&config.cwd);
    let project: Vec<&Path> = config.cwd.ancestors().take_while(|dir| dir.starts_with(top)).collect();
    let mut folders = vec![user.clone()];
    folders.extend(project.iter().rev().map(|dir| dir.to_path_buf()));
    folders.extend(project.iter().map(|dir| dir.join(FOLDER)));
    folders.push(home.join(FOLDER));
    let mut files = vec![user.join("config.json")];
    for file in folders.iter().flat_map(|folder| NAMES.map(|name| folder.join(name))) {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

/// What a rule does, and where it is.
pub(super) struct Action {
    pub level: Level,
    pub key: String,
    pub file: PathBuf,
}

enum Permission {
    Action(Action),
    /// By pattern of the skill's name.
    Patterns(Vec<(String, Action)>),
}

/// The merged files: what they say about tools whose pattern matches this one.
#[derive(Default)]
pub(super) struct Permissions {
    tools: Vec<(String, Permission)>,
    permissions: Vec<(String, Permission)>,
}

impl Permissions {
    /// Merges a file.
    pub fn add(&mut self, text: &str, file: &Path) -> Result<(), String> {
        let settings = object_with_comments(text, true)?;
        for (tool, value) in of_tool(member(&settings, "tools")?)? {
            let Value::Bool(enabled) = value else {
                return Err(format!("`tools.{tool}` is neither true nor false"));
            };
            let level = if *enabled { Level::On } else { Level::Off };
            let action = Action { level, key: format!("tools.{tool}: {enabled}"), file: file.to_owned() };
            set(&mut self.tools, tool, Permission::Action(action));
        }
        if let Some(value @ Value::String(_)) = settings.get("permission") {
            set(&mut self.permissions, "*", Permission::Action(action(value, "permission", file)));
            return self.check();
        }
        for (tool, value) in of_tool(member(&settings, "permission")?)? {
            let key = format!("permission.{tool}");
            let Value::Object(patterns) = value else {
                set(&mut self.permissions, tool, Permission::Action(action(value, &key, file)));
                continue;
            };
            check_patterns(patterns.keys().map(String::len))?;
            let known = self.permissions.iter_mut().find(|(other, _)| other == tool);
            let mut merged = match known {
                Some((_, Permission::Patterns(known))) => std::mem::take(known),
                _ => Vec::new(),
            };
            for (pattern, value) in patterns {
                set(&mut merged, pattern, action(value, &format!("{key}.{pattern}"), file));
            }
            set(&mut self.permissions, tool, Permission::Patterns(merged));
        }
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        let all = self.tools.iter().chain(&self.permissions);
        check_patterns(all.flat_map(|(tool, permission)| {
            let patterns: &[(String, Action)] = match permission {
                Permission::Action(_) => &[],
                Permission::Patterns(patterns) => patterns,
            };
            std::iter::once(tool.len()).chain(patterns.iter().map(|(pattern, _)| pattern.len()))
        }))
    }

    /// Returns the rules, of which the last one that matches a name counts, with their patterns.
    pub fn into_rules(self) -> Vec<(String, Action)> {
        let mut merged = self.tools;
        for (tool, permission) in self.permissions {
            set(&mut merged, &tool, permission);
        }
        let rules = merged.into_iter().flat_map(|(_, permission)| match permission {
            Permission::Action(action) => vec![("*".to_owned(), action)],
            Permission::Patterns(patterns) => patterns,
        });
        rules.collect()
    }
}

/// Returns the members whose key is a pattern that matches the tool.
fn of_tool(settings: Option<&Map<String, Value>>) -> Result<Vec<(&str, &Value)>, String> {
    let members = settings.into_iter().flatten().map(|(tool, value)| (tool.as_str(), value));
    let found: Vec<(&str, &Value)> = members.filter(|(tool, _)| matches(tool, TOOL)).collect();
    check_patterns(found.iter().map(|(tool, _)| tool.len()))?;
    Ok(found)
}

fn action(value: &Value, key: &str, file: &Path) -> Action {
    let level = match value.as_str() {
        Some("allow" | "ask") => Level::On,
        Some("deny") => Level::Off,
        _ => Level::Unknown(format!("`{key}` has an unknown value")),
    };
    let key = match &level {
        Level::Unknown(_) => key.to_owned(),
        _ => format!("{key}: {}", value.as_str().unwrap_or_default()),
    };
    Action { level, key, file: file.to_owned() }
}

/// Replaces the value of a key in its place, or adds it at the end.
fn set<T>(list: &mut Vec<(String, T)>, key: &str, value: T) {
    match list.iter_mut().find(|(other, _)| other == key) {
        Some((_, known)) => *known = value,
        None => list.push((key.to_owned(), value)),
    }
}
