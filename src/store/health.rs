//! Health of a store: pending work and integrity.

use serde::{Deserialize, Serialize};

/// What a store has to do for those who work on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Due {
    /// A run may be claimed.
    pub claimable: bool,
    /// The time of a waiting run is over.
    pub expired: bool,
}

/// The result of a full integrity check.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Health {
    /// Damage, in the words of `SQLite`; empty where there is none.
    pub damage: Vec<String>,
    /// What contradicts itself: rows that lead nowhere.
    pub contradictions: Vec<String>,
    /// Runs in the store.
    pub runs: u64,
    /// Events in the store.
    pub events: u64,
    /// Size of the database, bytes.
    pub bytes: u64,
    /// Of these, free for new rows.
    pub free_bytes: u64,
}

/// The result of a quick integrity check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Glance {
    /// Damage, in the words of `SQLite`; empty where none was found.
    pub damage: Vec<String>,
    /// Whether everything was looked at before the time was over.
    pub whole: bool,
}

impl Health {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.contradictions.is_empty()
    }
}
