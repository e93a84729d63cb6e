//! Health of a store: pending work and integrity.

use serde::{Deserialize, Serialize};

/// Pending work of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Due {
    /// A run may be claimed.
    pub claimable: bool,
    /// A wait has expired.
    pub expired: bool,
}

/// The result of a full integrity check.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Health {
    /// Damage as reported by `SQLite`; empty if there is none.
    pub damage: Vec<String>,
    /// Inconsistencies: rows with dangling references.
    pub contradictions: Vec<String>,
    /// Runs in the store.
    pub runs: u64,
    /// Events in the store.
    pub events: u64,
    /// Size of the database, bytes.
    pub bytes: u64,
    /// Of these, bytes that are free for new rows.
    pub free_bytes: u64,
}

/// The result of a quick integrity check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuickCheck {
    /// Damage as reported by `SQLite`; empty if none was found.
    pub damage: Vec<String>,
    /// Whether the check finished within its time limit.
    pub is_complete: bool,
    /// Other roles of the server that can hold the locks of the store, because every role may connect to its database.
    pub other_roles: u64,
}

impl Health {
    /// Returns whether nothing was found.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.contradictions.is_empty()
    }
}
