//! Leases of runs, and what is known about the workers that hold them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

use super::{BootTime, ClockReading, WorkerId};

impl WorkerId {
    /// Returns the id in readable form: `process 4711 on build-2`; unchanged if it has another form.
    pub fn describe(&self) -> String {
        let parts: Vec<&str> = self.0.split('/').collect();
        match parts[..] {
            [host, _, process, _, _] => format!("process {process} on {host}"),
            _ => format!("worker {}", self.0),
        }
    }
}

/// A worker's lease on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLease {
    /// The worker; `None` if it released the run.
    pub worker: Option<WorkerId>,
    /// Expiry, milliseconds since 1970-01-01 UTC; 0 if it was released or its worker is dead.
    pub until_ms: i64,
    /// Expiry by the boot clock, which takes precedence on the same boot; `None` for a lease of an earlier version.
    #[serde(skip)]
    pub until_boot: Option<BootTime>,
    /// What is known about the lease holder. A store only knows leases; checking processes reveals more.
    pub holder: LeaseHolder,
}

impl RunLease {
    /// Returns the expiry on the wall clock of the reader: a lease lasts as long as the boot clock determines, whatever
    /// the worker's wall clock showed when it was granted.
    pub fn ends_ms(&self, now: &ClockReading) -> i64 {
        match (&self.until_boot, &now.boot) {
            (Some(until), Some(boot)) if self.until_ms != 0 && until.boot == boot.boot => {
                now.wall_ms.saturating_add(until.ms.saturating_sub(boot.ms))
            }
            _ => self.until_ms,
        }
    }
}

/// What is known about the lease holder of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LeaseHolder {
    /// A worker of the responding process.
    Here,
    /// A worker of another process, active as far as is known.
    Elsewhere,
    /// Its process has ended.
    Dead,
    /// It has not renewed its lease in time.
    RunOut,
    /// It shut down cleanly, and the run is not claimed yet.
    Left,
}

impl LeaseHolder {
    /// Returns whether no worker executes the run now.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Dead | Self::RunOut | Self::Left)
    }
}
