//! Rules for single fields: name, lengths, keys.

use std::collections::HashSet;
use std::ops::Range;

use super::{LintInput, rules};
use crate::finding_builder::{Notes, prefix};
use crate::frontmatter::Frontmatter;
use crate::parse::CONTRACT_KEYS;
use crate::yaml::{Content, Node};
use skills_base::number::grouped;
use skills_base::text::join_with_and;

/// Top-level keys of another known client, `OpenClaw`.
const KEYS_OF_OTHERS: &[&str] = &["homepage", "command-dispatch", "command-tool", "command-arg-mode"];

/// Checks `name` against the specification: 1 to 64 lowercase letters, digits, single hyphens; equal to the folder's
/// name.
pub(super) fn name(subject: &LintInput<'_>, notes: &mut Notes<'_>) {
    let Some(at) = subject.value("name") else { return };
    let name = subject.skill.name.as_str();
    let folder = subject.skill.id.as_str();
    let valid = is_valid_name(name);
    if !valid {
        let why = why_invalid(name);
        let finding = notes.add(&rules::NAME_INVALID, Some("name"), at.clone(), format!("the name {why}"));
        let slug = slug(name);
        if !slug.is_empty() && slug != name {
            finding.help = format!("Use 1 to 64 lowercase letters, digits and single hyphens: `{slug}`.");
        }
    }
    let takes = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, ':' | '_' | ' ' | '-');
    if let Some(sign) = name.chars().find(|sign| !takes(*sign)) {
        notes.add(&rules::NAME_SIGNS, Some("name"), at.clone(), format!("the name contains `{sign}`"));
    }
    // If the valid form of the name is the folder's name, one finding is enough.
    if name != folder && (valid || slug(name) != folder) {
        let message = format!("the name is `{name}`, but the folder is `{folder}`");
        notes.add(&rules::NAME_NOT_FOLDER, Some("name"), at, message);
    }
}

fn is_valid_name(name: &str) -> bool {
    name.len() <= 64
        && name.split('-').all(|part| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

fn why_invalid(name: &str) -> String {
    let length = name.chars().count();
    if length > 64 {
        return format!("has {length} characters; the maximum is 64");
    }
    let mut invalid: Vec<char> = Vec::new();
    for c in name.chars().filter(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-')) {
        if !invalid.contains(&c) {
            invalid.push(c);
        }
    }
    if invalid.is_empty() {
        let hyphens =
            if name.contains("--") { "has two hyphens in a row" } else { "starts or ends with a hyphen" };
        return hyphens.to_owned();
    }
    let (uppercase, others): (Vec<char>, Vec<char>) = invalid.into_iter().partition(|c| c.is_uppercase());
    let quoted: Vec<String> = uppercase.iter().map(|c| format!("`{c}`")).collect();
    let mut listed = match quoted.as_slice() {
        [] => Vec::new(),
        [one] => vec![format!("the uppercase letter {one}")],
        several => vec![format!("uppercase letters ({})", several.join(", "))],
    };
    listed.extend(others.into_iter().map(|c| if c == ' ' { "a space".to_owned() } else { format!("`{c}`") }));
    format!("contains {}", join_with_and(&listed))
}

/// Returns the most similar valid name.
fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let joined = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    joined.chars().take(64).collect::<String>().trim_end_matches('-').to_owned()
}

/// Number of characters of a description that a full list of `OpenClaw` has.
const CUT_BY_OPENCLAW: usize = 220;

/// Checks lengths in characters: description 1,024, compatibility 500.
pub(super) fn lengths(subject: &LintInput<'_>, notes: &mut Notes<'_>) {
    let compatibility = subject.skill.properties.compatibility.as_deref().unwrap_or_default();
    let limits = [
        (&rules::DESCRIPTION_TOO_LONG, "description", subject.skill.description.as_str(), 1024),
        (&rules::COMPATIBILITY_TOO_LONG, "compatibility", compatibility, 500),
    ];
    let description = subject.skill.description.chars().count();
    let listed = subject.skill.location.extension().is_some_and(|extension| extension == "md");
    let cut = (CUT_BY_OPENCLAW + 1..=1024).contains(&description);
    if listed && cut && subject.value("description").is_some() {
        let message = format!(
            "`description` has {description} characters; OpenClaw shows at most {CUT_BY_OPENCLAW} when its list is full"
        );
        notes.add(&rules::DESCRIPTION_OVER_220, Some("description"), subject.value("description"), message);
    }
    for (rule, field, text, limit) in limits {
        let length = text.chars().count();
        if length > limit {
            let (length, limit) = (grouped(length as u64), grouped(limit as u64));
            let message = format!("`{field}` has {length} characters; the specification allows {limit}");
            notes.add(rule, Some(field), subject.value(field), message);
        }
    }
}

/// Reports keys that are duplicated, look misspelled, or are not read by any client.
pub(super) fn keys(subject: &LintInput<'_>, notes: &mut Notes<'_>) {
    duplicates(subject.root, "", subject.at, notes);
    let mut unread = Vec::new();
    let mut seen = HashSet::new();
    let present: HashSet<&str> = subject.root.entries().iter().map(|entry| entry.key.as_str()).collect();
    for entry in subject.root.entries() {
        let key = entry.key.as_str();
        let contract = !subject.skill.has_body && CONTRACT_KEYS.contains(&key);
        if Frontmatter::KEYS.contains(&key) || KEYS_OF_OTHERS.contains(&key) || contract {
            continue;
        }
        let at = (subject.at)(&entry.key_at);
        if let Some(meant) = near_key(key).filter(|meant| !present.contains(*meant)) {
            let message = format!("unknown key `{key}`");
            notes.add(&rules::MISSPELT_KEY, Some(key), at, message).help = format!("Did you mean `{meant}`?");
        } else if seen.insert(key) {
            unread.push((key, at));
        }
    }
    if let Some((_, at)) = unread.first().cloned() {
        let message = format!("no known client reads {}", list(&unread));
        notes.add(&rules::UNKNOWN_KEYS, None, at, message);
    }
}

fn list(keys: &[(&str, std::ops::Range<usize>)]) -> String {
    let shown: Vec<_> = keys.iter().take(6).map(|(key, _)| format!("`{key}`")).collect();
    match keys.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns the known key that a key probably misspells.
pub(in super::super) fn near_key(key: &str) -> Option<&'static str> {
    let normalized = |text: &str| text.to_ascii_lowercase().replace(['_', '-', ' '], "");
    let requested = normalized(key);
    let allowed = match requested.len() {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    // The first letter is rarely wrong; this rejects most keys early.
    let near =
        Frontmatter::KEYS.iter().filter(|known| known.as_bytes().first() == requested.as_bytes().first());
    let distances = near.map(|known| (strsim::osa_distance(&normalized(known), &requested), *known));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, known)| known)
}

/// Maximum length of a field's path to which the name of a nested key is appended, in bytes.
const MAX_PATH_BYTES: usize = 1000;

/// Appends the name of a nested key to the path of a field. A very long path is cut: it is copied for each key.
pub(super) fn field_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{}.{name}", prefix(path, MAX_PATH_BYTES)) }
}

/// Reports keys that are given more than once in the same mapping.
pub(super) fn duplicates(
    node: &Node,
    path: &str,
    at: &dyn Fn(&Range<usize>) -> Range<usize>,
    notes: &mut Notes<'_>,
) {
    let join = |name: &str| field_path(path, name);
    if let Content::List(items) = &node.value {
        for (index, item) in items.iter().enumerate() {
            let id = item.get("id").map(|entry| &entry.value.value);
            let name = if let Some(Content::Text(id)) = id { id.clone() } else { index.to_string() };
            duplicates(item, &join(&name), at, notes);
        }
    }
    let mut seen = HashSet::new();
    for entry in node.entries() {
        let field = join(&entry.key);
        if !seen.insert(entry.key.as_str()) {
            let message = format!("`{field}` is given twice; the last value is used");
            notes.add(&rules::DUPLICATE_KEY, Some(&field), at(&entry.key_at), message);
        }
        duplicates(&entry.value, &field, at, notes);
    }
}

/// Reports fields with different values at the top level and under `metadata`.
pub(super) fn contradictions(subject: &LintInput<'_>, notes: &mut Notes<'_>) {
    let Some(metadata) = subject.entry("metadata") else { return };
    for key in ["kind", "status", "domain"] {
        let (Some(top), Some(below)) = (subject.entry(key), metadata.value.get(key)) else { continue };
        if top.value.to_json() != below.value.to_json() {
            let message = format!("`{key}` differs from `metadata.{key}`; the top-level value is used");
            let at = (subject.at)(&below.value.at);
            notes.add(&rules::CONTRADICTION, Some(&format!("metadata.{key}")), at, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_specification() {
        for good in ["pdf", "pdf-tables-2", "0a"] {
            assert!(is_valid_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a--b", "A", "a_b", "a b", "é", &"a".repeat(65)] {
            assert!(!is_valid_name(bad), "{bad}");
        }
        assert_eq!(slug("My Great_Skill!"), "my-great-skill");
    }

    #[test]
    fn description_without_a_value_is_empty() {
        let finding = |source: &str| {
            let skill =
                crate::parse::parse(std::path::Path::new("/a/SKILL.md"), source.as_bytes(), 0).unwrap();
            let found = skill.findings.iter().find(|finding| finding.code == "description-missing");
            found.map(|finding| (finding.message.clone(), finding.help.clone())).unwrap()
        };
        let (message, help) = finding("---\nname: a\ndescription:\n---\nText.\n");
        assert!(message.starts_with("`description` is empty;"), "{message}");
        assert!(help.starts_with("State what"), "{help}");
        let (message, help) = finding("---\nname: a\n---\nText.\n");
        assert!(message.starts_with("`description` is missing;"), "{message}");
        assert!(help.starts_with("Add a `description:`"), "{help}");
    }

    #[test]
    fn a_misspelled_key_finds_its_word() {
        let meant = [
            ("descripton", Some("description")),
            ("allowed_tools", Some("allowed-tools")),
            ("allowedTools", Some("allowed-tools")),
            ("Name", Some("name")),
            ("licence", Some("license")),
            ("author", None),
            ("source", None),
            ("tools", None),
        ];
        for (key, expected) in meant {
            assert_eq!(near_key(key), expected, "{key}");
        }
    }
}
