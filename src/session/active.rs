//! The skills that are loaded: their order, the cap, and the receipts of loading and unloading.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::compose::Instructions;
use super::failure::{ToolError, ToolFailure};
use super::state::Settings;

/// A loaded skill as it was when it was loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Active {
    /// The name to load it by.
    pub name: String,
    /// Absolute path of its `SKILL.md`.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// Absolute path of its bundle.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub root_dir: PathBuf,
    /// SHA-256 of the file, hexadecimal.
    pub digest: String,
    /// License, compatibility, allowed tools, metadata, as the file has them.
    pub properties: Map<String, Value>,
    /// Related skills that it lists; nothing is loaded automatically.
    pub requires: Vec<String>,
    /// The body: what loading returns.
    pub body: String,
    /// Tokens of the body in its element (o200k vocabulary), estimated if not counted yet, so that loading
    /// does not wait for the vocabulary.
    pub tokens: u32,
    /// Whether `tokens` is an estimate.
    #[serde(default = "yes")]
    pub tokens_estimated: bool,
}

/// Sessions stored before this field existed have estimates, too.
fn yes() -> bool {
    true
}

/// What happens to the skills that are already loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LoadMode {
    /// They are unloaded.
    #[default]
    Replace,
    /// They are kept, in their order.
    Add,
}

/// One skill of a receipt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LoadChange {
    /// The name to load it by.
    pub name: String,
    /// Absolute path of its `SKILL.md`; omitted for hosts without a file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: Option<PathBuf>,
    /// Absolute path of its bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub root_dir: Option<PathBuf>,
    /// SHA-256 of the file, hexadecimal.
    pub digest: String,
    /// License, compatibility, allowed tools, metadata, as the file has them.
    pub properties: Map<String, Value>,
    /// Tokens of the body in its element (o200k vocabulary), estimated if not counted yet.
    pub tokens: u32,
    /// Whether `tokens` is an estimate.
    #[serde(default = "yes")]
    pub tokens_estimated: bool,
    /// Skills worth reading with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// The body, if the host owns its instructions and takes it from here; omitted if an earlier result contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// The result of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Receipt {
    /// All active skills, most recent last.
    pub active: Vec<LoadChange>,
    /// Names that were not active before.
    pub loaded: Vec<String>,
    /// Names that were unloaded.
    pub unloaded: Vec<String>,
    /// Names to unload that were not active.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// When the instructions change, as text.
    pub note: String,
}

pub type Unloaded = Receipt;

/// Returns the active skills after a load, or why it failed; the given ones are not changed.
///
/// `names` are resolved before; a name given twice counts once, at its last position in `replace` and at its first in
/// `add`, so that an order can be requested by naming it.
///
/// # Errors
/// Returns [`ToolFailure::TooManySkills`] over the cap, [`ToolFailure::InvalidRequest`] without names.
pub fn loaded(
    active: &[Active],
    requested: Vec<Active>,
    mode: LoadMode,
    cap: usize,
) -> Result<Vec<Active>, ToolError> {
    if requested.is_empty() {
        return Err(ToolError::new(
            ToolFailure::InvalidRequest,
            "`names` is empty; specify the skills to \
            load",
        ));
    }
    let mut next: Vec<Active> = match mode {
        LoadMode::Replace => Vec::new(),
        LoadMode::Add => active.to_vec(),
    };
    for skill in requested {
        // Loading again reads again: the newer text replaces the old one.
        match next.iter_mut().find(|there| there.name == skill.name) {
            Some(there) => *there = skill,
            None => next.push(skill),
        }
    }
    if next.len() > cap {
        return Err(ToolError::new(
            ToolFailure::TooManySkills,
            format!(
                "{} skills would be active, the maximum is {cap}; no changes made: load fewer, or unload \
                    some first",
                next.len()
            ),
        ));
    }
    Ok(next)
}

/// Returns the active skills without these; names that are not active are ignored.
pub fn unloaded(active: &[Active], names: &[String]) -> Vec<Active> {
    active.iter().filter(|skill| !names.contains(&skill.name)).cloned().collect()
}

/// Returns the receipt of a change, with the bodies of those that are `delivered` in it.
pub fn receipt(
    before: &[Active],
    after: &[Active],
    delivered: &BTreeSet<String>,
    settings: &Settings,
) -> Receipt {
    let locations = settings.locations;
    let names = |list: &[Active]| list.iter().map(|skill| skill.name.clone()).collect::<Vec<_>>();
    let (old, new) = (names(before), names(after));
    let entry = |skill: &Active| LoadChange {
        name: skill.name.clone(),
        location: locations.then(|| skill.location.clone()),
        root_dir: locations.then(|| skill.root_dir.clone()),
        digest: skill.digest.clone(),
        properties: skill.properties.clone(),
        tokens: skill.tokens,
        tokens_estimated: skill.tokens_estimated,
        requires: skill.requires.clone(),
        body: delivered.contains(&skill.name).then(|| skill.body.clone()),
    };
    let note = match settings.instructions {
        _ if after.is_empty() => "No skill is active.",
        _ if delivered.len() == after.len() => {
            "The bodies in this result are instructions from now on; if two conflict, the later one has \
                precedence."
        }
        _ if !delivered.is_empty() => {
            "The bodies in this result are instructions from now on, in addition to those given before; \
                if two conflict, the later one in `active` has precedence."
        }
        Instructions::ToolResult => {
            "The bodies of the active skills were given before and still apply; if two conflict, the \
                later one in `active` has precedence."
        }
        Instructions::TopLevel => {
            "Their bodies are part of the instructions from the next call on; if two conflict, the later \
                one has precedence."
        }
    };
    Receipt {
        active: after.iter().map(entry).collect(),
        loaded: new.iter().filter(|name| !old.contains(name)).cloned().collect(),
        unloaded: old.into_iter().filter(|name| !new.contains(name)).collect(),
        ignored: Vec::new(),
        note: note.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str) -> Active {
        Active {
            name: name.into(),
            location: format!("/s/{name}/SKILL.md").into(),
            root_dir: format!("/s/{name}").into(),
            digest: "sha256:00".into(),
            properties: Map::new(),
            requires: Vec::new(),
            body: format!("# {name}\n"),
            tokens: 3,
            tokens_estimated: true,
        }
    }

    fn names(list: &[Active]) -> Vec<&str> {
        list.iter().map(|skill| skill.name.as_str()).collect()
    }

    #[test]
    fn replace_drops_loaded_skills_and_add_keeps_their_order() {
        let active = vec![skill("a"), skill("b")];
        let next = loaded(&active, vec![skill("c"), skill("a")], LoadMode::Replace, 8).unwrap();
        assert_eq!(names(&next), ["c", "a"]);
        let next = loaded(&active, vec![skill("c"), skill("a")], LoadMode::Add, 8).unwrap();
        assert_eq!(names(&next), ["a", "b", "c"]);
    }

    #[test]
    fn loading_over_the_limit_changes_nothing() {
        let active = vec![skill("a")];
        let error = loaded(&active, vec![skill("b"), skill("c")], LoadMode::Add, 2).unwrap_err();
        assert_eq!(error.code, ToolFailure::TooManySkills);
        assert!(error.message.contains("load fewer") && error.message.contains("3 skills"), "{error}");
    }

    #[test]
    fn reloading_updates_the_text_in_place() {
        let newer = Active { body: "new".into(), ..skill("a") };
        let next = loaded(&[skill("a"), skill("b")], vec![newer], LoadMode::Add, 8).unwrap();
        assert_eq!((names(&next), next[0].body.as_str()), (vec!["a", "b"], "new"));
    }

    #[test]
    fn receipt_names_loaded_and_unloaded_skills() {
        let before = vec![skill("a"), skill("b")];
        let after = unloaded(&before, &["a".into(), "never".into()]);
        let (none, here) = (BTreeSet::new(), Settings::default());
        let first = receipt(&before, &after, &none, &here);
        assert_eq!((names(&after), first.unloaded, first.loaded.len()), (vec!["b"], vec!["a".to_owned()], 0));
        assert!(first.active[0].body.is_none() && first.active[0].location.is_some());
        let delivered = BTreeSet::from(["a".to_owned()]);
        let away = Settings { locations: false, instructions: Instructions::ToolResult, ..here };
        let receipt = receipt(&before, &before, &delivered, &away);
        assert_eq!((receipt.active[0].body.as_deref(), &receipt.active[1].body), (Some("# a\n"), &None));
        assert!(
            receipt.note.contains("given before") && receipt.active[0].location.is_none(),
            "{}",
            receipt.note
        );
    }
}
