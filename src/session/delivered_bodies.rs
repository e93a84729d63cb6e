//! Bodies in results of calls: they are in the transcript for as long as the session exists, and are not composed into
//! the instructions as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::active::Active;
use super::marked::escaped;
use super::tools::{Compat, Tool};
use super::transcript::{Entry, Turn};

/// The body of a skill in the result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveredBody<'a> {
    pub skill: &'a str,
    /// SHA-256 of its file, hexadecimal.
    pub digest: &'a str,
    /// Its body, as the model reads it in the decoded result.
    pub body: &'a str,
}

impl DeliveredBody<'_> {
    /// Returns the body as it is in the result: every byte of the JSON string between its quotes.
    pub fn in_answer(&self) -> String {
        let quoted = Value::from(self.body).to_string();
        quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
    }
}

impl Entry {
    /// Returns the bodies in the result of this call, in order.
    pub fn bodies(&self) -> impl Iterator<Item = DeliveredBody<'_>> {
        let skills = self.receipt().into_iter().flatten();
        skills.filter_map(|skill| {
            let text = |key: &str| skill.get(key).and_then(Value::as_str);
            Some(DeliveredBody { skill: text("name")?, digest: text("digest")?, body: text("body")? })
        })
    }

    /// Returns the active skills after this call, if it is one that changes them.
    fn receipt(&self) -> Option<&Vec<Value>> {
        let Turn::Call { tool, result: Ok(answer), .. } = &self.turn else { return None };
        let changes =
            matches!(tool.parse(), Ok(Tool::Load | Tool::Unload)) || tool.parse() == Ok(Compat::ReadSkill);
        answer.get("active").filter(|_| changes)?.as_array()
    }
}

/// Returns the skills whose current body was in a result since they were loaded.
pub fn in_answers(transcript: &[Arc<Entry>], active: &[Active]) -> BTreeSet<String> {
    let mut delivered: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in transcript {
        let Some(receipt) = entry.receipt() else { continue };
        let there: BTreeSet<&str> = receipt.iter().filter_map(|skill| skill.get("name")?.as_str()).collect();
        delivered.retain(|name, _| there.contains(name));
        delivered.extend(entry.bodies().map(|delivered| (delivered.skill, delivered.digest)));
    }
    let is_current = |skill: &&Active| delivered.get(skill.name.as_str()) == Some(&skill.digest.as_str());
    active.iter().filter(is_current).map(|skill| skill.name.clone()).collect()
}

/// Returns the placeholder for a body that is in a result.
pub(super) fn elsewhere_text(name: &str) -> String {
    format!(
        "<skill name=\"{}\">its instructions are in the result of the call that loaded it</skill>\n",
        escaped(name)
    )
}
