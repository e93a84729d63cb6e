//! Classification of a skill: `metadata.classification`, kind and status, stated or inferred.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

macro_rules! vocabulary {
    ($case:literal $(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
                 schemars::JsonSchema, Display, EnumString, EnumIter, IntoStaticStr)]
        #[serde(rename_all = $case)]
        #[strum(serialize_all = $case)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
    };
}

vocabulary! {
    "snake_case"
    /// Role of a skill in an answer.
    Role {
        /// Does a complete task: a primary match.
        Procedure,
        /// Helps with part of a task: a secondary match.
        Utility,
        /// Monitors or annotates a target: only attached, never invoked directly.
        Sidecar,
    }
}
vocabulary! {
    "snake_case"
    /// How a skill may be invoked.
    Invocation {
        /// Directly.
        Direct,
        /// Only attached to a target.
        Attach,
        /// Both.
        Both,
    }
}
vocabulary! {
    "snake_case"
    /// What a skill can be attached to.
    AttachTarget {
        /// An open work item.
        Task,
        /// A run.
        Run,
        /// A step's output.
        Output,
        /// A session's transcript.
        Transcript,
        /// A stored artifact or file.
        Artifact,
    }
}
vocabulary! {
    "snake_case"
    /// Effects of a skill on its environment.
    EffectMode {
        /// Has no side effects.
        ReadOnly,
        /// Adds to its input.
        Enrich,
        /// Can control its target.
        ControlSignal,
    }
}
vocabulary! {
    "kebab-case"
    /// Facts to read, or a tool to operate.
    Kind {
        /// Facts about a host or a domain, read only.
        HostKnowledge,
        /// How to operate something.
        Tool,
    }
}

/// Status of a skill. Unknown values are kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "String", into = "String")]
pub enum Status {
    /// Ready for use; the default.
    Stable,
    /// May change.
    Experimental,
    /// Not for use: excluded from recommendations unless requested.
    Deprecated,
    /// Any other word.
    Other(String),
}

impl From<String> for Status {
    fn from(word: String) -> Self {
        match word.trim().to_ascii_lowercase().as_str() {
            "stable" => Self::Stable,
            "experimental" => Self::Experimental,
            "deprecated" => Self::Deprecated,
            _ => Self::Other(word.trim().to_owned()),
        }
    }
}

impl From<Status> for String {
    fn from(status: Status) -> Self {
        status.as_str().to_owned()
    }
}

impl Status {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stable => "stable",
            Self::Experimental => "experimental",
            Self::Deprecated => "deprecated",
            Self::Other(word) => word,
        }
    }
}

/// A value and its origin: the skill's file, or a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Stated")]
pub struct WithOrigin<T> {
    /// The effective value.
    pub value: T,
    /// Whether the value is a default (never written to the file).
    pub inferred: bool,
}

impl<T> WithOrigin<T> {
    /// Creates a value that the file states.
    pub fn explicit(value: T) -> Self {
        Self { value, inferred: false }
    }

    pub fn inferred(value: T) -> Self {
        Self { value, inferred: true }
    }
}

/// `metadata.classification`, with defaults for missing values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Classification {
    /// Role of the skill; default procedure.
    pub role: WithOrigin<Role>,
    /// Invocation; default direct.
    pub invocation: WithOrigin<Invocation>,
    /// Valid targets in the order of the file; empty for direct skills.
    pub attach_targets: Vec<AttachTarget>,
    /// Effects of the skill; default enrich.
    pub effect_mode: WithOrigin<EffectMode>,
}
