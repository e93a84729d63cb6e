//! Parses one settings file: YAML to a typed layer; every error has its position and the allowed values.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::{Location, Spanned};

use super::runs::{RetentionLayer, RunsLayer};
use super::services::ServiceLayer;
use super::values::{AuditLog, GlyphSet, RankPolicy, WrittenKeys, WrittenRoot};
use super::{ConfigError, LocationInFile, reword_parser_error};
use skills_base::suggest::nearest_name;
use skills_skill::contract::Conformance;

/// The content of a settings file; `None` for keys that it does not contain.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Layer {
    pub roots: Option<Vec<Spanned<WrittenRoot>>>,
    pub watch: Option<bool>,
    pub theme: Option<Spanned<String>>,
    pub glyphs: Option<GlyphSet>,
    pub keys: Option<BTreeMap<String, BTreeMap<String, Spanned<WrittenKeys>>>>,
    pub editor: Option<Spanned<String>>,
    #[serde(rename = "links")]
    pub matchers: Option<MatcherLayer>,
    pub policy: Option<RankPolicy>,
    pub limit: Option<Spanned<usize>>,
    pub with_body: Option<bool>,
    pub client: Option<Spanned<String>>,
    pub trust: Option<Spanned<Vec<Spanned<String>>>>,
    pub policy_file: Option<Spanned<String>>,
    pub services: Option<BTreeMap<String, Spanned<ServiceLayer>>>,
    pub bindings: Option<BTreeMap<String, Spanned<String>>>,
    pub conformance: Option<Spanned<Conformance>>,
    pub audit: Option<Spanned<AuditLog>>,
    pub workers: Option<Spanned<usize>>,
    pub scripts: Option<Spanned<ScriptsLayer>>,
    pub notify: Option<Spanned<NotifyLayer>>,
    pub connect: Option<Spanned<String>>,
    pub api_key_file: Option<Spanned<String>>,
    pub store: Option<Spanned<String>>,
    pub store_mode: Option<Spanned<String>>,
    pub runs: Option<RunsLayer>,
    pub retention: Option<Spanned<RetentionLayer>>,
    pub reduced_motion: Option<bool>,
    pub plain: Option<Spanned<bool>>,
    pub hyperlinks: Option<bool>,
    pub progress: Option<bool>,
}

/// The `scripts` section of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ScriptsLayer {
    pub disk_mb: Option<Spanned<u64>>,
    pub files: Option<Spanned<u64>>,
    pub work_dir: Option<Spanned<String>>,
}

/// The `notify` section of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NotifyLayer {
    pub bell: Option<bool>,
    pub osc: Option<bool>,
    pub webhook: Option<Spanned<WebhookLayer>>,
}

/// The `webhook` of the `notify` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookLayer {
    pub url: Spanned<String>,
    pub secret_env: Spanned<String>,
}

/// The matchers that a file enables or disables.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MatcherLayer {
    pub exact: Option<bool>,
    pub lexical: Option<bool>,
    pub typo: Option<bool>,
    pub presence: Option<bool>,
    pub task: Option<bool>,
    pub semantic: Option<bool>,
}

pub(super) const ALLOWED: [(&str, &str); 30] = [
    ("roots", "a list of folders, each a path or `{path: …, label: …}`"),
    ("watch", "`true` or `false`"),
    ("theme", "the name of a theme"),
    ("glyphs", "`auto`, `unicode` or `ascii`"),
    ("keys", "a map of contexts, each a map of actions to a key or a list of keys"),
    ("editor", "a command line, in your own config.yaml only"),
    ("links", "a map of `exact`, `lexical`, `typo`, `presence`, `task`, `semantic` to `true` or `false`"),
    ("policy", "`blended` or `strict`"),
    ("limit", "an integer from 1 to 1000"),
    ("with_body", "`true` or `false`"),
    ("client", "the id of a client profile"),
    ("trust", "a list of folders, in your own config.yaml only"),
    ("policy_file", "the path of a policy file, in your own config.yaml only"),
    (
        "services",
        "a map of services to `{url: …}`, `{command: …}` or `{script: …}`, in your own config.yaml only",
    ),
    ("bindings", "a map of capabilities to bindings, in your own config.yaml only"),
    ("conformance", "`experimental`, `standard` or `strict`"),
    ("audit", "`off`, `standard` or `full`, in your own config.yaml only"),
    ("workers", "an integer from 1 to 64"),
    (
        "scripts",
        "a map of `disk_mb` (1 to 1048576), `files` (1 to 10000000) and `work_dir` (a folder), in your own config.yaml only",
    ),
    (
        "notify",
        "a map of `bell` and `osc` to `true` or `false`, and `webhook: {url: …, secret_env: …}`, in your own config.yaml only",
    ),
    ("connect", "the address of a service, in your own config.yaml only"),
    ("api_key_file", "the path of a file with a key, in your own config.yaml only"),
    ("store", "`sqlite:PATH` or `postgres://USER@HOST/DATABASE`, in your own config.yaml only"),
    ("store_mode", "`0600`, `0640` or `0660`, in your own config.yaml only"),
    (
        "runs",
        "a map of `expires_in`, `warn_before`, `danger_before`, `columns`, `sort`, `views` and `metric_labels`",
    ),
    (
        "retention",
        "a map of `completed`, `failed`, `canceled` and `sessions` to durations such as 30d, in your own config.yaml only",
    ),
    ("reduced_motion", "`true` or `false`"),
    ("plain", "`true` or `false`, in your own config.yaml only"),
    ("hyperlinks", "`true` or `false`"),
    ("progress", "`true` or `false`"),
];

/// Maximum values of the limits for scripts.
const MAX_SCRIPT_DISK_MB: u64 = 1 << 20;
const MAX_SCRIPT_FILES: u64 = 10_000_000;

/// Maximum number of workers of one process.
const MAX_WORKERS: usize = 64;

pub(super) const MAX_LIMIT: usize = 1000;

/// Returns the allowed values of a key as text.
pub(super) fn allowed(key: &str) -> Option<&'static str> {
    ALLOWED.iter().find(|(name, _)| *name == key).map(|(_, words)| *words)
}

/// Parses a layer. An empty file is an empty layer.
pub(super) fn parse(file: &Path, text: &str) -> Result<Layer, ConfigError> {
    parse_yaml(file, text).map_err(|error| syntax_error(file, text).unwrap_or(error))
}

pub(super) fn parse_yaml(file: &Path, text: &str) -> Result<Layer, ConfigError> {
    let options = serde_saphyr::options! { strict_booleans: true };
    let layer: Option<Layer> = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| value_error(file, text, &error))?;
    let layer = layer.unwrap_or_default();
    for (key, number, most) in [("limit", &layer.limit, MAX_LIMIT), ("workers", &layer.workers, MAX_WORKERS)]
    {
        if let Some(number) = number.as_ref().filter(|number| !(1..=most).contains(&number.value)) {
            let message = format!("`{key}` is {}", number.value);
            let allowed = format!("allowed: {}", allowed(key).unwrap_or(""));
            return Err(wrong(place(file, number.referenced), message, allowed));
        }
    }
    if let Some(scripts) = &layer.scripts {
        let limits = [
            ("disk_mb", &scripts.value.disk_mb, MAX_SCRIPT_DISK_MB),
            ("files", &scripts.value.files, MAX_SCRIPT_FILES),
        ];
        for (key, number, max) in limits {
            if let Some(number) = number.as_ref().filter(|number| !(1..=max).contains(&number.value)) {
                let message = format!("`scripts.{key}` is {}", number.value);
                let allowed = format!("allowed: an integer from 1 to {max}");
                return Err(wrong(place(file, number.referenced), message, allowed));
            }
        }
    }
    Ok(layer)
}

/// Returns the error of a text that is not YAML. The error of a value can precede it, for example that of `limit: [1`.
pub(super) fn syntax_error(file: &Path, text: &str) -> Option<ConfigError> {
    let error = serde_saphyr::from_str::<IgnoredAny>(text).err()?;
    let is_syntax = matches!(
        error.without_snippet(),
        serde_saphyr::Error::ExternalMessage { .. } | serde_saphyr::Error::UnknownAnchor { .. }
    );
    let at = error.location().unwrap_or(Location::UNKNOWN);
    is_syntax.then(|| wrong(place(file, at), format!("invalid YAML: {}", message_of(&error)), SYNTAX_ADVICE))
}

/// What repairs most texts that are not YAML.
const SYNTAX_ADVICE: &str = "close brackets and quotes, and quote values that contain special characters";

/// Converts the parser's error about a key or a value.
fn value_error(file: &Path, text: &str, error: &serde_saphyr::Error) -> ConfigError {
    let at = error.location().unwrap_or(Location::UNKNOWN);
    let key = key_at(text, at.line());
    let raw_message = message_of(error);
    if let Some((found, expected)) =
        raw_message.strip_prefix("invalid type: ").and_then(|types| types.split_once(", expected "))
        && let Some(key) = key
    {
        let message = format!("`{key}` has an invalid value: {found}");
        return wrong(place(file, at), message, format!("expected {expected}"));
    }
    let (raw_message, allowed_names) = match raw_message.split_once(", expected one of ") {
        Some((raw_message, allowed_names)) => (raw_message, Some(allowed_names)),
        None => (raw_message.as_str(), key.and_then(allowed)),
    };
    let advice = match allowed_names.and_then(|names| near_key(raw_message, names)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => allowed_names.map_or_else(known_keys, |names| format!("allowed: {names}")),
    };
    let mut message = reword_parser_error(raw_message);
    if let Some(key) = key.filter(|_| message.starts_with("expected ")) {
        message = match allowed_names {
            Some(_) => format!("`{key}` has an invalid value"),
            None => format!("`{key}`: {message}"),
        };
    }
    wrong(place(file, at), message, advice)
}

/// Returns the parser's message without its position and its excerpt of the text.
fn message_of(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.split(" at line ").next().unwrap_or(line).to_owned()
}

/// Returns the known key that is most similar to the unknown key in the parser's message.
fn near_key<'a>(message: &str, names: &'a str) -> Option<&'a str> {
    let unknown = message.split_once("unknown field `")?.1.split('`').next()?;
    nearest_name(unknown, names.split(", ").map(|name| name.trim_matches('`')))
}

/// Creates an error at a position.
pub(super) fn wrong(
    place: LocationInFile,
    message: impl Into<String>,
    allowed: impl Into<String>,
) -> ConfigError {
    ConfigError::InFile { place, message: message.into(), allowed: allowed.into() }
}

/// Converts the parser's location to a position.
pub(super) fn place(file: &Path, at: Location) -> LocationInFile {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).max(1);
    LocationInFile { file: file.to_owned(), line: number(at.line()), column: number(at.column()) }
}

fn known_keys() -> String {
    let names: Vec<_> = ALLOWED.iter().map(|(name, _)| *name).collect();
    format!("allowed: a map with the keys {}", names.join(", "))
}

/// Returns the top-level key that a line belongs to.
fn key_at(text: &str, line: u64) -> Option<&str> {
    let upto = text.lines().take(usize::try_from(line).ok()?);
    let top = |line: &&str| line.starts_with(|c: char| c.is_ascii_alphabetic());
    upto.filter(top).last()?.split(':').next()
}

/// Returns the YAML text with blank lines in place of the top-level key that a line belongs to, so that the positions
/// of the others stay. `None` if there is none.
pub(super) fn without_key(text: &str, line: u32) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    Some(without_lines(&lines, &lines_of_key(&lines, line)?))
}

/// As [`without_key`], but of a key with a block of entries, such as `runs`, removes only the entry that the line
/// belongs to.
pub(super) fn without_entry(text: &str, line: u32) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let key = lines_of_key(&lines, line)?;
    let entry = lines_of_entry(&lines, &key, line).filter(|entry| {
        let rest = [&lines[key.start..entry.start], &lines[entry.end..key.end]].concat();
        serde_saphyr::from_str::<IgnoredAny>(&rest.join("\n")).is_ok()
    });
    Some(without_lines(&lines, &entry.unwrap_or(key)))
}

/// Returns the indexes of the lines of the top-level key that a line belongs to.
fn lines_of_key(lines: &[&str], line: u32) -> Option<Range<usize>> {
    let is_top = |line: &&str| line.starts_with(|c: char| c.is_ascii_alphabetic());
    let first = lines.iter().take(usize::try_from(line).ok()?).rposition(is_top)?;
    let next = lines.iter().skip(first + 1).position(is_top).map_or(lines.len(), |more| first + 1 + more);
    Some(first..next)
}

/// Returns the indexes of the lines of the entry that a line below a top-level key belongs to.
fn lines_of_entry(lines: &[&str], key: &Range<usize>, line: u32) -> Option<Range<usize>> {
    let depth = |line: &str| {
        let content = line.trim_start_matches(' ');
        (!content.is_empty() && !content.starts_with('#')).then(|| line.len() - content.len())
    };
    let entries = lines.get(key.start + 1..key.end)?;
    let depth_of_entries = entries.iter().find_map(|line| depth(line))?;
    let is_entry = |line: &&str| depth(line).is_some_and(|depth| depth <= depth_of_entries);
    let upto = usize::try_from(line).ok()?.checked_sub(key.start + 1)?;
    let first = entries.iter().take(upto).rposition(is_entry)?;
    let next = entries.iter().skip(first + 1).position(is_entry);
    let next = next.map_or(entries.len(), |more| first + 1 + more);
    Some(key.start + 1 + first..key.start + 1 + next)
}

/// Returns the text with blank lines in place of some.
fn without_lines(lines: &[&str], removed: &Range<usize>) -> String {
    let remaining = lines.iter().enumerate().map(|(n, line)| if removed.contains(&n) { "" } else { *line });
    remaining.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_names_line_column_and_allowed_values() {
        let file = Path::new("/h/config.yaml");
        let seen: Vec<String> = [
            "watch: true\nwach: 1\n",
            "glyphs: asci\n",
            "# c\nwatch: yes\n",
            "limit: 0\n",
            "limit: many\n",
            "links:\n  exact: false\n  magic: true\n",
            "roots: ~/skills\n",
            "roots:\n  - path: a\n    lable: b\n",
            "roots:\n  - label: b\n",
            "- watch\n",
            "watch: true\nwatch: false\n",
            "keys:\n  global:\n    quit: {a: b}\n",
            "theme: [\n",
            "limit: [1\n",
            "roots:\n  - 5\n",
            "policy: lax\n",
            "workers: 0\n",
            "notify: {bel: true}\n",
            "notify: {webhook: {url: 'http://127.0.0.1:9/'}}\n",
        ]
        .iter()
        .map(|text| parse(file, text).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(seen.join("\n"));
    }

    #[test]
    fn empty_and_comment_only_files_set_nothing() {
        for text in ["", "# nothing\n", "---\n"] {
            let layer = parse(Path::new("f"), text).unwrap();
            assert!(layer.roots.is_none() && layer.watch.is_none() && layer.keys.is_none());
        }
    }
}
