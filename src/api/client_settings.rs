//! What a client's own settings say about skills, such as Claude Code's `skillOverrides`.
//! Files of other scopes (managed settings, session flags) are not read.

mod json;
mod opencode;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use self::json::{json5_object, list, member, object, object_with_comments};
use super::budget_fit::{CODEX_SETTINGS, SKILL_OVERRIDES, USER_SETTINGS};
use skills_base::files;
use skills_config::Config;
use skills_skill::client::Profile;

/// Settings of a project, in ascending order of precedence; those of the user have the lowest.
const PROJECT_SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];
/// Settings of Gemini CLI, relative to the home folder and to the project.
const GEMINI_SETTINGS: &str = ".gemini/settings.json";
/// Settings of GitHub Copilot CLI, relative to the home folder.
const COPILOT_SETTINGS: &str = ".copilot/settings.json";
/// The same, relative to the repository.
const COPILOT_PROJECT: [&str; 2] = [".github/copilot/settings.json", ".github/copilot/settings.local.json"];
/// Settings of `OpenClaw`, relative to the home folder.
const OPENCLAW_SETTINGS: &str = ".openclaw/openclaw.json";
/// Maximum number of bytes read of a settings file.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum number of patterns in a settings file, and of bytes in each: all of them are compared with every skill.
const MAX_PATTERNS: usize = 1_000;
const MAX_PATTERN_BYTES: usize = 256;

/// What a setting does with a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// Name and description are listed.
    On,
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
    pub source: String,
    pub file: PathBuf,
}

/// The skills to which a setting applies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Selector {
    All,
    /// All skills, by a setting that turns off the feature: one that turns it on only cancels an earlier one.
    Feature,
    /// The skills built into the client.
    Bundled,
    /// A skill with this name in the client.
    Name(String),
    /// The same, if it is not built in. Whether such a key can also be the name in the frontmatter is not known.
    Key(String),
    /// A skill with this name in lower case.
    AnyCase(String),
    /// Skills whose name fits a pattern. Such a setting counts whatever else selects the skill, unless that hides it.
    Pattern(String),
    /// A skill file, with links resolved.
    File(PathBuf),
}

/// What a settings file says: which skills, what it does with them, and the setting.
type Rule = (Selector, Level, String);

/// A skill as settings select it.
pub struct Selected<'a> {
    pub name: &'a str,
    /// The name in its frontmatter, if it is another one.
    pub other_name: Option<&'a str>,
    /// The key of its settings, if it is not the name.
    pub key: Option<&'a str>,
    /// Its file, with links resolved.
    pub file: &'a Path,
    /// Whether it is built into the client.
    pub bundled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientSettings {
    /// The last setting for each selector, with its place in ascending order of precedence.
    exact: HashMap<Selector, (usize, Setting)>,
    /// Those of patterns, in ascending order of precedence.
    patterns: Vec<(String, Setting)>,
    count: usize,
}

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
                for file in with_project(home.join(USER_SETTINGS), project) {
                    settings.add(&file, profile, home, claude_code);
                }
                // A rule that denies the whole tool counts in each file, whatever others deny.
                settings.patterns.sort_by_key(|(_, setting)| setting.level == Level::Off);
            }
            "codex" => settings.add(&home.join(CODEX_SETTINGS), profile, home, codex),
            "copilot" => {
                let repository = config.repository.as_deref().unwrap_or(&config.cwd);
                let project = COPILOT_PROJECT.map(|below| repository.join(below));
                for file in with_project(home.join(COPILOT_SETTINGS), project) {
                    settings.add(&file, profile, home, copilot);
                }
            }
            "gemini-cli" => {
                let project = [config.cwd.join(GEMINI_SETTINGS)];
                for file in with_project(home.join(GEMINI_SETTINGS), project) {
                    settings.add(&file, profile, home, gemini_cli);
                }
            }
            "openclaw" => settings.add(&home.join(OPENCLAW_SETTINGS), profile, home, openclaw),
            "opencode" => settings.add_opencode(profile, config),
            _ => {}
        }
        settings
    }

    fn add(
        &mut self,
        file: &Path,
        profile: &Profile,
        home: &Path,
        parse: fn(&str) -> Result<Vec<Rule>, String>,
    ) {
        let rules = match read_text(file) {
            Ok(None) => return,
            Ok(Some(text)) => parse(&text),
            Err(why) => Err(why),
        };
        match rules.and_then(limited) {
            Ok(rules) => rules.into_iter().for_each(|rule| self.insert(rule, file, home)),
            Err(why) => self.add_unknown(&why, file, profile, home),
        }
    }

    fn add_opencode(&mut self, profile: &Profile, config: &Config) {
        let home = &config.dirs.home;
        let mut permissions = opencode::Permissions::default();
        for file in opencode::files(config) {
            let added = match read_text(&file) {
                Ok(None) => continue,
                Ok(Some(text)) => permissions.add(&text, &file),
                Err(why) => Err(why),
            };
            if let Err(why) = added {
                self.add_unknown(&why, &file, profile, home);
                return;
            }
        }
        for (pattern, action) in permissions.into_rules() {
            self.insert((Selector::Pattern(pattern), action.level, action.key), &action.file, home);
        }
    }

    /// Makes every skill unknown, since a file cannot be read.
    fn add_unknown(&mut self, why: &str, file: &Path, profile: &Profile, home: &Path) {
        let what =
            format!("{}'s settings in {} cannot be read here ({why})", profile.name, shown(file, home));
        for selector in [Selector::All, Selector::Pattern("*".to_owned())] {
            self.insert((selector, Level::Unknown(what.clone()), String::new()), file, home);
        }
    }

    fn insert(&mut self, (selector, level, key): Rule, file: &Path, home: &Path) {
        let shown = shown(file, home);
        let level = match level {
            Level::Unknown(what) if !key.is_empty() => Level::Unknown(format!("{what} in {shown}")),
            level => level,
        };
        let source = if key.is_empty() { shown } else { format!("`{key}` in {shown}") };
        let setting = Setting { level, source, file: file.to_owned() };
        let selector = match selector {
            Selector::Pattern(pattern) => {
                self.patterns.push((pattern, setting));
                return;
            }
            Selector::File(path) => {
                let path = match path.strip_prefix("~") {
                    Ok(below) => home.join(below),
                    Err(_) => file.parent().unwrap_or(home).join(path),
                };
                Selector::File(files::canonicalize(&path).unwrap_or(path))
            }
            selector => selector,
        };
        // A selector that is repeated gets a later place, so that places stay distinct.
        self.exact.insert(selector, (self.count, setting));
        self.count += 1;
    }

    /// Returns the setting that applies to a skill: the last one that selects it.
    pub fn of(&self, skill: &Selected<'_>) -> Option<Setting> {
        let exact = self.exact(skill);
        let is_hidden = |setting: &Setting| matches!(setting.level, Level::Off | Level::UserOnly);
        if exact.as_ref().is_some_and(is_hidden) {
            return exact;
        }
        let fits = |pattern: &str| {
            let mut names = [Some(skill.name), skill.other_name].into_iter().flatten();
            names.any(|name| matches(pattern, name))
        };
        let last = self.patterns.iter().rev().find(|(pattern, _)| fits(pattern));
        let last = last.map(|(_, setting)| setting).filter(|setting| setting.level != Level::On);
        last.cloned().or(exact)
    }

    fn exact(&self, skill: &Selected<'_>) -> Option<Setting> {
        let named = skill.key.unwrap_or(skill.name).to_owned();
        let on_key =
            skill.bundled.then_some("whether the setting applies to a built-in skill is not documented");
        let on_other = Some("whether the setting can use the name in the frontmatter is not documented");
        let on_folder =
            Some("whether the path of a setting can be the folder of the skill is not documented");
        let selectors = [
            (Some(Selector::All), None),
            (Some(Selector::Feature), None),
            (skill.bundled.then_some(Selector::Bundled), None),
            (Some(Selector::Name(named.clone())), None),
            (Some(Selector::AnyCase(named.to_lowercase())), None),
            (Some(Selector::Key(named)), on_key),
            (skill.other_name.map(|name| Selector::Key(name.to_owned())), on_other),
            (Some(Selector::File(skill.file.to_owned())), None),
            (skill.file.parent().map(|folder| Selector::File(folder.to_owned())), on_folder),
        ];
        let found = selectors.into_iter().filter_map(|(selector, unknown)| {
            let selector = selector?;
            let (place, setting) = self.exact.get(&selector)?;
            let cancels = selector == Selector::Feature && setting.level == Level::On;
            (!cancels).then_some((place, setting, unknown))
        });
        let (_, setting, unknown) = found.max_by_key(|(place, ..)| **place)?;
        let level = match unknown {
            Some(what) => Level::Unknown(format!("{what}: {}", setting.source)),
            None => setting.level.clone(),
        };
        Some(Setting { level, ..setting.clone() })
    }
}

/// Returns a user's settings file and those of the project, which can be the same.
fn with_project<const N: usize>(user: PathBuf, project: [PathBuf; N]) -> Vec<PathBuf> {
    let mut files = vec![user];
    for file in project {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

fn shown(file: &Path, home: &Path) -> String {
    match file.strip_prefix(home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => file.display().to_string(),
    }
}

/// Rejects more or longer patterns than can be compared with every skill.
fn limited(rules: Vec<Rule>) -> Result<Vec<Rule>, String> {
    let patterns = rules.iter().filter_map(|(selector, ..)| match selector {
        Selector::Pattern(pattern) => Some(pattern.len()),
        _ => None,
    });
    check_patterns(patterns)?;
    Ok(rules)
}

fn check_patterns(lengths: impl Iterator<Item = usize>) -> Result<(), String> {
    let mut count = 0;
    for length in lengths {
        count += 1;
        if count > MAX_PATTERNS {
            return Err(format!("more than {MAX_PATTERNS} patterns"));
        }
        if length > MAX_PATTERN_BYTES {
            return Err(format!("a pattern of more than {MAX_PATTERN_BYTES} bytes"));
        }
    }
    Ok(())
}

/// Returns whether a name fits a pattern: `*` matches any number of characters, `?` one
/// (<https://opencode.ai/v1/docs/permissions>). A ` *` at the end of the pattern can be missing in the name
/// (`packages/opencode/src/util/wildcard.ts` of <https://github.com/anomalyco/opencode>).
fn matches(pattern: &str, name: &str) -> bool {
    let fits = |pattern: &str| {
        let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
        let (mut at, mut named) = (0, 0);
        // The last `*`, and where in the name what follows it was tried.
        let mut star: Option<(usize, usize)> = None;
        while named < name.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, named));
                    at += 1;
                }
                Some(&one) if one == '?' || one == name[named] => {
                    at += 1;
                    named += 1;
                }
                _ => {
                    let Some((last, tried)) = star else { return false };
                    star = Some((last, tried + 1));
                    at = last + 1;
                    named = tried + 1;
                }
            }
        }
        pattern[at..].iter().all(|one| *one == '*')
    };
    fits(pattern) || pattern.strip_suffix(" *").is_some_and(fits)
}

/// Reads a settings file of limited size; `None` if there is none.
fn read_text(file: &Path) -> Result<Option<String>, String> {
    let real = match files::canonicalize(file) {
        Ok(real) => real,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    files::read_text(&real, MAX_BYTES).map(Some).map_err(|error| error.to_string())
}

fn claude_code(text: &str) -> Result<Vec<Rule>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let settings = object(text)?;
    let mut rules = denied(&settings)?;
    let Some(overrides) = member(&settings, SKILL_OVERRIDES)? else { return Ok(rules) };
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
    rules.extend(overrides.iter().map(rule));
    Ok(rules)
}

/// Returns what Claude Code's `permissions.deny` says about the tool `Skill`.
///
/// `Skill` disables all skills; `Skill(name)` and `Skill(name *)` deny one by its name and by the start of it
/// (<https://code.claude.com/docs/en/skills>, "Restrict Claude's skill access"). A tool that is denied as a whole, also
/// as `Skill(*)`, is removed from the context, and a rule of any file denies
/// (<https://code.claude.com/docs/en/permissions>). Neither page says whether a skill that is denied by name is listed.
fn denied(settings: &Map<String, Value>) -> Result<Vec<Rule>, String> {
    let Some(permissions) = member(settings, "permissions")? else { return Ok(Vec::new()) };
    let rule = |rule: &str| {
        let tool = rule.trim().strip_prefix("Skill")?;
        let name = match tool {
            "" => "*",
            _ => tool.strip_prefix('(')?.strip_suffix(')')?.trim(),
        };
        let start = name.strip_suffix(" *").or_else(|| name.strip_suffix(":*"));
        let pattern = start.map_or_else(|| name.to_owned(), |start| format!("{start}*"));
        let key = format!("permissions.deny: {}", rule.trim());
        let level = if pattern == "*" {
            Level::Off
        } else {
            Level::Unknown(format!("whether Claude Code lists a denied skill is not documented: `{key}`"))
        };
        Some((Selector::Pattern(pattern), level, key))
    };
    Ok(list(permissions, "deny")?.iter().filter_map(Value::as_str).filter_map(rule).collect())
}

/// Reads settings of GitHub Copilot CLI: JSON with comments. The lists of all files are joined
/// (<https://docs.github.com/en/copilot/reference/copilot-cli-reference/cli-config-dir-reference>).
fn copilot(text: &str) -> Result<Vec<Rule>, String> {
    let settings = object_with_comments(text, false)?;
    let names = list(&settings, "disabledSkills")?.iter().filter_map(Value::as_str);
    let rule = |name: &str| (Selector::Key(name.to_owned()), Level::Off, "disabledSkills".to_owned());
    Ok(names.map(rule).collect())
}

/// Reads settings of Gemini CLI: JSON with comments (`strip-json-comments`). The lists of all files are joined, and the
/// last `enabled` counts (`packages/cli/src/config/settings.ts` and `settingsSchema.ts` of
/// <https://github.com/google-gemini/gemini-cli>). Names are compared in lower case, also those of its own skills
/// (`packages/core/src/skills/skillManager.ts` there).
fn gemini_cli(text: &str) -> Result<Vec<Rule>, String> {
    let settings = object_with_comments(text, false)?;
    let Some(skills) = member(&settings, "skills")? else { return Ok(Vec::new()) };
    let names = list(skills, "disabled")?.iter().filter_map(Value::as_str);
    let rule =
        |name: &str| (Selector::AnyCase(name.to_lowercase()), Level::Off, "skills.disabled".to_owned());
    let mut rules: Vec<Rule> = names.map(rule).collect();
    match skills.get("enabled") {
        None | Some(Value::Null) => {}
        Some(Value::Bool(enabled)) => {
            let level = if *enabled { Level::On } else { Level::Off };
            rules.push((Selector::Feature, level, format!("skills.enabled: {enabled}")));
        }
        Some(_) => return Err("`skills.enabled` is neither true nor false".to_owned()),
    }
    Ok(rules)
}

/// Reads `OpenClaw`'s settings: JSON5 (<https://docs.openclaw.ai/tools/skills-config>).
fn openclaw(text: &str) -> Result<Vec<Rule>, String> {
    const INCLUDE: &str = "$include";
    let settings = json5_object(text)?;
    let mut rules = Vec::new();
    let agents = member(&settings, "agents")?;
    let mut agent = agents.and_then(|agents| agents.get("list")?.as_array()).into_iter().flatten();
    let defaults = agents.and_then(|agents| agents.get("defaults"));
    if agent.any(|agent| agent.get("skills").is_some())
        || defaults.is_some_and(|defaults| defaults.get("skills").is_some())
    {
        let what = "per-agent skills (`agents`) are not read".to_owned();
        rules.push((Selector::All, Level::Unknown(what), "agents".to_owned()));
    }
    let skills = member(&settings, "skills")?;
    let entries = skills.map(|skills| member(skills, "entries")).transpose()?.flatten();
    let own = agents.into_iter().chain(skills).chain(entries);
    if [&settings].into_iter().chain(own).any(|settings| settings.contains_key(INCLUDE)) {
        return Err(format!("files named by `{INCLUDE}` are not read"));
    }
    let allowed = skills.map(|skills| list(skills, "allowBundled")).transpose()?.unwrap_or_default();
    if !allowed.is_empty() {
        rules.push((Selector::Bundled, Level::Off, "skills.allowBundled".to_owned()));
        let names = allowed.iter().filter_map(Value::as_str);
        let rule =
            |name: &str| (Selector::Name(name.to_owned()), Level::On, "skills.allowBundled".to_owned());
        rules.extend(names.map(rule));
    }
    for (name, entry) in entries.into_iter().flatten() {
        if entry.get("enabled") == Some(&Value::Bool(false)) {
            let key = format!("skills.entries.{name}.enabled: false");
            rules.push((Selector::Name(name.clone()), Level::Off, key));
        }
    }
    Ok(rules)
}

/// The part of Codex's settings that concerns skills.
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

fn codex(text: &str) -> Result<Vec<Rule>, String> {
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

#[cfg(test)]
mod tests {
    use super::{MAX_PATTERN_BYTES, MAX_PATTERNS, check_patterns, matches};

    #[test]
    fn pattern_matches_names() {
        let fitting = [
            ("a", "a"),
            ("*", ""),
            ("*", "any"),
            ("internal-*", "internal-docs"),
            ("internal-*", "internal-"),
            ("*-docs", "a-docs-docs"),
            ("a*b*c", "axxbxbc"),
            ("?-b", "ä-b"),
            ("deploy *", "deploy"),
            ("deploy *", "deploy now"),
            ("**", "a"),
        ];
        for (pattern, name) in fitting {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        let others = [
            ("a", "b"),
            ("a", "ab"),
            ("?", ""),
            ("a?", "a"),
            ("a*b", "abc"),
            ("deploy *", "deployed"),
            ("", "a"),
        ];
        for (pattern, name) in others {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        assert!(!matches(&"*a".repeat(50), &"a".repeat(49)), "without exponential time");
    }

    #[test]
    fn patterns_are_limited() {
        assert!(check_patterns([MAX_PATTERN_BYTES].into_iter().cycle().take(MAX_PATTERNS)).is_ok());
        assert!(check_patterns([1].into_iter().cycle().take(MAX_PATTERNS + 1)).is_err());
        assert!(check_patterns([MAX_PATTERN_BYTES + 1].into_iter()).is_err());
    }
}
