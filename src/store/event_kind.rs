//! The kinds of events of a run, with their names in the store, in JSON and in event streams.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! event_kinds {
    ($($variant:ident = $name:literal,)*) => {
        /// The kind of a run's event.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum EventKind {
            $($variant,)*
            /// A kind of a later version. It is stored, listed and forwarded under its name.
            Other(String),
        }

        impl EventKind {
            /// Every kind that this version knows.
            pub const KNOWN: &[Self] = &[$(Self::$variant),*];

            /// Returns the name in the store, in JSON and in event streams.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }
        }

        impl From<&str> for EventKind {
            fn from(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }
    };
}

event_kinds! {
    RunCreated = "run.created",
    RunClaimed = "run.claimed",
    RunGivenBack = "run.given_back",
    RunAbandoned = "run.abandoned",
    RunCompleted = "run.completed",
    RunFailed = "run.failed",
    RunCanceled = "run.canceled",
    RunPaused = "run.paused",
    RunHeld = "run.held",
    RunResumed = "run.resumed",
    RunExpired = "run.expired",
    RunAssigned = "run.assigned",
    RunEscalated = "run.escalated",
    RunReplayedFrom = "run.replayed_from",
    RunReplayedTo = "run.replayed_to",
    RunForkedFrom = "run.forked_from",
    RunForkedTo = "run.forked_to",
    StepStarted = "step.started",
    StepCompleted = "step.completed",
    StepSkipped = "step.skipped",
    StepFailed = "step.failed",
    StepRetrying = "step.retrying",
    StepLog = "step.log",
    GateWaiting = "gate.waiting",
    GateChanged = "gate.changed",
    GateEndorsed = "gate.endorsed",
    GateApproved = "gate.approved",
    GateDenied = "gate.denied",
    GateWarned = "gate.warned",
    GateDegraded = "gate.degraded",
    SignalReceived = "signal.received",
    SignalConsumed = "signal.consumed",
    ControlApplied = "control.applied",
    ControlRefused = "control.refused",
    ArtifactKept = "artifact.kept",
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for EventKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EventKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(deserializer)?.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_back_by_its_name() {
        for kind in EventKind::KNOWN {
            assert_eq!(EventKind::from(kind.as_str()), *kind);
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }

    #[test]
    fn a_kind_of_a_later_version_keeps_its_name() {
        let kind: EventKind = serde_json::from_str(r#""run.archived""#).unwrap();
        assert_eq!(kind, EventKind::Other("run.archived".to_owned()));
        assert_eq!(serde_json::to_string(&kind).unwrap(), r#""run.archived""#);
    }
}
