//! The snapshot: all skills of all roots at one moment, who won an id and who lost it.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::skill::{Refusal, Skill, SkillId};

/// Who named a root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootOrigin {
    /// `--root` on the command line.
    Argument,
    /// The user's or the project's configuration file.
    Config,
    /// A known client's folder between the working directory and the repository root.
    Project {
        /// The client's id, e.g. `claude-code`.
        client: String,
    },
    /// A known client's folder in the home directory.
    User {
        /// The client's id.
        client: String,
    },
    /// The skills embedded in this program.
    Shipped,
}

/// What was found where a root should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootState {
    /// Read.
    Present,
    /// No such folder.
    Missing,
    /// Not readable; the operating system's words.
    Unreadable(String),
}

/// One place where skills are looked for. The order of roots is the order of precedence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// Absolute path.
    pub path: PathBuf,
    /// As a person reads it: `~/.claude/skills`, `./.agents/skills`, `shipped`.
    pub label: String,
    /// Who named it.
    pub origin: RootOrigin,
    /// What was found.
    pub state: RootState,
    /// Whether file events reach us there (else it is polled).
    pub live: bool,
}

/// A bundle whose id was taken by one of higher precedence. Listed, addressable, not ranked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shadowed {
    /// The record; its id is `id@` + eight hex digits of its digest.
    pub skill: Arc<Skill>,
    /// Index into [`Catalogue::roots`].
    pub root: usize,
    /// The id it lost.
    pub lost: SkillId,
    /// Location of the winner.
    pub winner: PathBuf,
    /// Whether its SKILL.md is byte for byte the winner's.
    pub identical: bool,
}

/// An entry of the catalogue: a skill and the root it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The record.
    pub skill: Arc<Skill>,
    /// Index into [`Catalogue::roots`].
    pub root: usize,
}

/// An immutable snapshot of everything that was found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Catalogue {
    /// Counts up with every change.
    pub generation: u64,
    /// Roots in order of precedence, missing ones included.
    pub roots: Vec<Root>,
    /// Winners, by root order and inside a root by path.
    pub entries: Vec<Entry>,
    /// Losers, in the same order.
    pub shadowed: Vec<Shadowed>,
    /// Refused bundles.
    pub refused: Vec<Refusal>,
}

/// What a new snapshot changed against the one before. Ids of winners only.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The new snapshot.
    pub catalogue: Arc<Catalogue>,
    /// Ids that were not there before.
    pub added: Vec<SkillId>,
    /// Ids whose record changed.
    pub changed: Vec<SkillId>,
    /// Ids that are gone.
    pub removed: Vec<SkillId>,
}

/// How far a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ScanProgress {
    /// Files found so far.
    pub found: usize,
    /// Files parsed so far (or taken from the cache).
    pub parsed: usize,
    /// True when the scan is through.
    pub done: bool,
}

impl Catalogue {
    /// The winner, or the shadowed one, with that very id.
    #[must_use]
    pub fn by_id(&self, id: &str) -> Option<&Arc<Skill>> {
        let shadowed = self.shadowed.iter().map(|s| &s.skill);
        self.entries.iter().map(|e| &e.skill).chain(shadowed).find(|s| s.id.as_str() == id)
    }
}
