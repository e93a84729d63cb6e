//! A finding about a location in a bundle, from the parser's repairs to the linter's advice.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};

/// Severity of a finding, in increasing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Info,
    /// Some clients or readers have problems with it.
    Warning,
    /// Violates the specification, or the skill cannot be used.
    Error,
}

/// Position of a finding in the file. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Span {
    /// Line in the file, from 1.
    pub line: u32,
    /// Column in that line, in characters, from 1.
    pub column: u32,
    /// Byte offset in the file as read.
    pub offset: u32,
    /// Length in bytes; may be 0.
    pub length: u32,
}

/// A finding: problem, position and help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// Stable kebab-case code of the rule, e.g. `name-not-folder`, `unquoted-colon`.
    pub code: String,
    /// Severity.
    pub severity: Severity,
    /// The frontmatter field it is about (`description`, `metadata.classification.role`), if any.
    pub field: Option<String>,
    /// The file, relative to the bundle's folder (`SKILL.md`, `skill.yaml`).
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub file: PathBuf,
    /// Location in that file; absent if it concerns the complete bundle.
    pub span: Option<Span>,
    /// Problem, in one sentence without a final period.
    pub message: String,
    /// What to do about it, in one sentence.
    pub help: String,
    /// Whether `skills lint --fix` can fix it unambiguously.
    pub fixable: bool,
}

impl Finding {
    /// Returns what to do, without the explanation that follows the first `: ` outside of code: it may be about other
    /// clients.
    pub fn action(&self) -> &str {
        action(&self.help)
    }
}

/// Returns the part of a help before the first `: ` outside of code.
pub(crate) fn action(help: &str) -> &str {
    let is_outside_code = |before: &str| before.matches('`').count().is_multiple_of(2);
    let mut actions = help.match_indices(": ").filter_map(|(at, _)| help.get(..at));
    actions.find(|action| is_outside_code(action)).unwrap_or(help)
}

/// Returns the number of errors and of warnings, which every view counts as the findings of a skill.
pub fn errors_and_warnings(findings: &[Finding]) -> (usize, usize) {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    (count(Severity::Error), count(Severity::Warning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_ends_before_the_explanation() {
        let action = |help: &str| {
            let finding = Finding {
                code: "some-code".to_owned(),
                severity: Severity::Error,
                field: None,
                file: PathBuf::from("SKILL.md"),
                span: None,
                message: "wrong".to_owned(),
                help: help.to_owned(),
                fixable: false,
            };
            finding.action().to_owned()
        };
        assert_eq!(action("Save it as UTF-8: Codex drops it: always."), "Save it as UTF-8");
        assert_eq!(action("Write `name: x`: it is required."), "Write `name: x`");
        assert_eq!(action("Remove it."), "Remove it.");
    }
}
