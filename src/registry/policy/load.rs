//! Parses a policy file: YAML to rules; every error has its position and the allowed values.

use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::approvals::{ApprovalRule, ExcludedApprover};
use super::matching::{Criteria, RootPattern, real_roots};
use super::result::{Effect, MAX_PREFERENCE, Policy, Rule};
use skills_config::reword_parser_error;
use skills_skill::{EffectMode, Role};

/// Default score term of a preference.
const USUAL_PREFERENCE: f64 = 0.1;

/// An error in a policy. None of the file is then in force: all requests are denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// An error at a position.
    #[error("{}:{line}:{column}: {message}; {allowed}", file.display())]
    InFile {
        file: PathBuf,
        /// Line, from 1.
        line: u32,
        /// Column, from 1.
        column: u32,
        /// What is wrong.
        message: String,
        allowed: String,
    },
    /// The file cannot be read.
    #[error("policy {}: {why}", file.display())]
    Unreadable {
        file: PathBuf,
        /// The error of the system.
        why: String,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawPolicy {
    deny: Option<Vec<Spanned<RawRule>>>,
    allow: Option<Vec<Spanned<RawRule>>>,
    require_approval: Option<Vec<Spanned<RawRule>>>,
    prefer: Option<Vec<Spanned<RawRule>>>,
    approvals: Option<Spanned<OneOrMore>>,
}

/// One rule, which applies to all skills, or a list of rules.
#[derive(Debug)]
enum OneOrMore {
    One(Box<RawApprovals>),
    More(Vec<Spanned<RawApprovals>>),
}

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Rules;
        impl<'de> Visitor<'de> for Rules {
            type Value = OneOrMore;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rule or a list of rules")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<OneOrMore, A::Error> {
                let rule = RawApprovals::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(OneOrMore::One(Box::new(rule)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OneOrMore, A::Error> {
                let mut rules = Vec::new();
                while let Some(rule) = seq.next_element()? {
                    rules.push(rule);
                }
                Ok(OneOrMore::More(rules))
            }
        }
        d.deserialize_any(Rules)
    }
}

/// The criteria of a raw rule. A macro, because `deny_unknown_fields` excludes a flattened type for the shared fields.
macro_rules! criteria {
    ($raw:ident, $folder:expr, $home:expr) => {{
        let root: Vec<RootPattern> =
            $raw.root.0.into_iter().map(|root| root_pattern(&root, $folder, $home)).collect();
        Criteria {
            id: $raw.id.0,
            tag: $raw.tag.0,
            domain: $raw.domain.0,
            role: $raw.role.0,
            effect: $raw.effect.0,
            real_roots: real_roots(&root),
            root,
            label: $raw.label.0,
            except: $raw.except.0,
        }
    }};
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawApprovals {
    id: Many<String>,
    tag: Many<String>,
    domain: Many<String>,
    role: Many<Role>,
    effect: Many<EffectMode>,
    root: Many<String>,
    label: Many<String>,
    except: Many<String>,
    need: Option<u32>,
    not_by: Option<ExcludedApprover>,
    of: Many<String>,
    escalate_after: Option<String>,
    escalate_to: Many<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawRule {
    id: Many<String>,
    tag: Many<String>,
    domain: Many<String>,
    role: Many<Role>,
    effect: Many<EffectMode>,
    root: Many<String>,
    label: Many<String>,
    except: Many<String>,
    reason: Option<String>,
    by: Option<Spanned<f64>>,
}

const EFFECTS: &str =
    "a map of `deny`, `allow`, `require_approval`, `prefer` and `approvals`, each a list of rules";
const APPROVALS: &str = "expected `need` (1 to 20), `not_by: starter`, `of` (names of keys, or `scope:NAME`), \
    `escalate_after` (a duration such as 4h) and `escalate_to`, with the criteria of other rules";
const KEYS: &str = "expected a rule: a map of `id`, `tag`, `domain`, `role` (procedure, utility, \
    sidecar), `effect` (read_only, enrich, control_signal), `root` and `label`, each a value or a list, with `except`, `reason` and, in `prefer`, `by`";

/// Parses a policy. `~` in a `root` is expanded to `home`; a relative folder (`./skills`) is relative to the file. Folders
/// are resolved on disk.
///
/// # Errors
/// Returns the first error, with its position.
pub fn parse(file: &Path, text: &str, home: &Path) -> Result<Policy, PolicyError> {
    let options = serde_saphyr::options! { strict_booleans: true };
    let written: Option<RawPolicy> = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let at = error.location().unwrap_or(Location::UNKNOWN);
        let raw_message = error.without_snippet().to_string();
        let raw_message =
            raw_message.lines().next().and_then(|line| line.split(" at line ").next()).unwrap_or_default();
        let (raw_message, allowed) = match raw_message.split_once(", expected one of ") {
            Some((raw_message, known)) => (raw_message, format!("allowed: {known}")),
            None if raw_message.contains("duplicate") => (raw_message, "each key is allowed once".to_owned()),
            None if is_in_approvals(text, at.line()) => (raw_message, APPROVALS.to_owned()),
            None if raw_message.contains("expected sequence start") => {
                ("expected a list of rules", "a rule is a map, such as `id: tool-a`".to_owned())
            }
            None if raw_message.contains("missing") || is_at_top(text, at) => {
                (raw_message, format!("allowed: {EFFECTS}"))
            }
            None => (raw_message, KEYS.to_owned()),
        };
        wrong(file, at, reword_parser_error(raw_message), allowed)
    })?;
    let written = written.unwrap_or_default();
    let folder = file.parent().unwrap_or(Path::new("/"));
    let groups = [
        (Effect::Deny, written.deny),
        (Effect::Allow, written.allow),
        (Effect::RequireApproval, written.require_approval),
        (Effect::Prefer, written.prefer),
    ];
    let mut rules = Vec::new();
    for (effect, group) in groups {
        for rule in group.unwrap_or_default() {
            rules.push(checked(file, folder, home, effect, rule)?);
        }
    }
    let mut approvals = Vec::new();
    if let Some(written) = written.approvals {
        let at = written.referenced;
        match written.value {
            OneOrMore::One(rule) => approvals.push(approval_rule(file, folder, home, at, *rule)?),
            OneOrMore::More(rules) => {
                for rule in rules {
                    approvals.push(approval_rule(file, folder, home, rule.referenced, rule.value)?);
                }
            }
        }
    }
    Ok(Policy { rules, approvals })
}

/// Returns whether a line belongs to `approvals`.
fn is_in_approvals(text: &str, line: u64) -> bool {
    let before = text.lines().take(usize::try_from(line).unwrap_or(0));
    let top = before.filter(|line| line.starts_with(|c: char| c.is_ascii_alphabetic())).last();
    top.is_some_and(|line| line.starts_with("approvals:"))
}

/// Returns whether a position is outside the lists of rules, as far as the first line tells.
fn is_at_top(text: &str, at: Location) -> bool {
    let column = usize::try_from(at.column()).unwrap_or(usize::MAX);
    let mut before = text.chars().take(column.saturating_sub(1));
    at.line() <= 1 && !before.any(|letter| letter == '[')
}

fn checked(
    file: &Path,
    folder: &Path,
    home: &Path,
    effect: Effect,
    rule: Spanned<RawRule>,
) -> Result<Rule, PolicyError> {
    let at = rule.referenced;
    let written = rule.value;
    let texts = [&written.id, &written.tag, &written.domain, &written.root, &written.except];
    if texts.iter().any(|many| many.0.iter().any(|text| text.trim().is_empty())) {
        return Err(wrong(file, at, "a rule has an empty value, which matches nothing", KEYS));
    }
    let by = match (&written.by, effect) {
        (Some(by), Effect::Prefer) if by.value > 0.0 && by.value <= MAX_PREFERENCE => Some(by.value),
        (Some(by), Effect::Prefer) => {
            let message = format!("`by` is {}", by.value);
            let allowed = format!("allowed: a number above 0, at most {MAX_PREFERENCE}");
            return Err(wrong(file, by.referenced, message, allowed));
        }
        (Some(by), _) => {
            let allowed = "only allowed in `prefer`, where it is added to the score";
            return Err(wrong(file, by.referenced, format!("a rule of `{effect}` has a `by`"), allowed));
        }
        (None, Effect::Prefer) => Some(USUAL_PREFERENCE),
        (None, _) => None,
    };
    let criteria = criteria!(written, folder, home);
    if criteria.is_empty() {
        let allowed = "add a criterion; `id: \"*\"` matches all skills";
        return Err(wrong(file, at, format!("a rule of `{effect}` has no criterion"), allowed));
    }
    let line = u32::try_from(at.line()).unwrap_or(u32::MAX);
    Ok(Rule { effect, criteria, reason: written.reason, by, line })
}

/// Maximum number of approvals that one rule can require.
const MAX_APPROVALS: u32 = 20;

fn approval_rule(
    file: &Path,
    folder: &Path,
    home: &Path,
    at: Location,
    written: RawApprovals,
) -> Result<ApprovalRule, PolicyError> {
    let need = written.need.unwrap_or(1);
    if !(1..=MAX_APPROVALS).contains(&need) {
        let allowed = format!("allowed: a number from 1 to {MAX_APPROVALS}");
        return Err(wrong(file, at, format!("`need` is {need}"), allowed));
    }
    let escalate_after = match &written.escalate_after {
        None => None,
        Some(text) => {
            let Some(after) = skills_base::duration::parse(text).filter(|after| !after.is_zero()) else {
                let message = format!("`escalate_after` is `{text}`");
                return Err(wrong(
                    file,
                    at,
                    message,
                    "allowed: a duration such as 90s, 15m, 1h30m or 2d, at most 36500d",
                ));
            };
            Some(after)
        }
    };
    let criteria = criteria!(written, folder, home);
    Ok(ApprovalRule {
        criteria,
        need,
        not_by: written.not_by,
        of: written.of.0,
        escalate_after_s: escalate_after.map(|after| after.as_secs()),
        escalate_to: written.escalate_to.0,
        line: u32::try_from(at.line()).unwrap_or(u32::MAX),
    })
}

/// Parses a `root` pattern: a folder if it is written as a path, otherwise a label.
fn root_pattern(text: &str, folder: &Path, home: &Path) -> RootPattern {
    let path = if text == "~" {
        home.to_owned()
    } else if let Some(rest) = text.strip_prefix("~/") {
        home.join(rest)
    } else if text.starts_with('/') {
        PathBuf::from(text)
    } else if let Some(rest) = text.strip_prefix("./") {
        folder.join(rest)
    } else {
        return RootPattern::Label(text.to_owned());
    };
    // Wildcards are not supported in paths, only in labels.
    if text.contains('*') {
        RootPattern::Label(text.to_owned())
    } else {
        RootPattern::Below(path.components().collect())
    }
}

fn wrong(file: &Path, at: Location, message: impl Into<String>, allowed: impl Into<String>) -> PolicyError {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).max(1);
    PolicyError::InFile {
        file: file.to_owned(),
        line: number(at.line()),
        column: number(at.column()),
        message: message.into(),
        allowed: allowed.into(),
    }
}

/// One value, or a list of values.
#[derive(Debug)]
struct Many<T>(Vec<T>);

impl<T> Default for Many<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Values<T>(PhantomData<T>);
        impl<'de, T: DeserializeOwned> Visitor<'de> for Values<T> {
            type Value = Many<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value or a list of values")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Many<T>, E> {
                T::deserialize(de::value::StrDeserializer::new(text)).map(|value| Many(vec![value]))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Many<T>, E> {
                Ok(Many(Vec::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Many<T>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = items.next_element()? {
                    values.push(value);
                }
                Ok(Many(values))
            }
        }
        d.deserialize_any(Values(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_names_line_column_and_allowed_values() {
        let seen: Vec<String> = [
            "dany:\n  - {id: a}\n",
            "deny:\n  - {ids: a}\n",
            "deny:\n  - {role: boss}\n",
            "deny:\n  - {effect: [read_only, writes]}\n",
            "deny:\n  - {reason: because}\n",
            "deny:\n  - {id: ''}\n",
            "deny: all\n",
            "deny: [tool-a]\n",
            "prefer:\n  - {id: a, by: 3}\n",
            "prefer:\n  - id: a\n    by: much\n",
            "deny:\n  - id: a\n    by: 0.1\n",
            "- deny\n",
            "deny: [\n",
            "deny: [{id: a}]\ndeny: [{id: b}]\n",
        ]
        .iter()
        .map(|text| parse(Path::new("/h/policy.yaml"), text, Path::new("/h")).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(seen.join("\n"));
    }

    #[test]
    fn a_single_value_needs_no_list() {
        let policy = parse(Path::new("/h/p.yaml"), "deny:\n- id: [a, b]\n  role: sidecar\n", Path::new("/h"));
        let policy = policy.unwrap();
        assert_eq!(policy.rules[0].describe(), "deny id a or b and role sidecar (line 2)");
        assert_eq!(policy.rules[0].line, 2);
    }

    #[test]
    fn folders_and_labels_are_distinguished() {
        let root = |text| root_pattern(text, Path::new("/h/conf"), Path::new("/h"));
        assert_eq!(root("~/s/"), RootPattern::Below("/h/s".into()));
        assert_eq!(root("./s"), RootPattern::Below("/h/conf/s".into()));
        assert_eq!(root("shipped"), RootPattern::Label("shipped".into()));
        assert_eq!(root("~/.cl*/skills"), RootPattern::Label("~/.cl*/skills".into()));
    }
}
