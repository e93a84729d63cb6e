//! What part a skill plays: `metadata.classification`, kind and status, stated or inferred.

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
    /// Which place a skill takes in an answer.
    Role {
        /// Does a whole job: a primary match.
        Procedure,
        /// Helps with a part of a job: a secondary match.
        Utility,
        /// Watches or annotates something else: never invoked directly, only attached.
        Sidecar,
    }
}
vocabulary! {
    "snake_case"
    /// How a skill may be invoked.
    Invocation {
        /// On its own.
        Direct,
        /// Only attached to a target.
        Attach,
        /// Either way.
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
    /// What a skill does to the world it is used in.
    EffectMode {
        /// Changes nothing.
        ReadOnly,
        /// Adds to its input.
        Enrich,
        /// May steer what it is attached to.
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

/// Where a skill stands in its life. Unknown words are kept as they were written.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(from = "String", into = "String")]
pub enum Status {
    /// Ready for use; the default.
    Stable,
    /// May change.
    Experimental,
    /// Not for use: left out of recommendations unless asked for.
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
    /// The word as it is shown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stable => "stable",
            Self::Experimental => "experimental",
            Self::Deprecated => "deprecated",
            Self::Other(word) => word,
        }
    }
}

/// A value with where it comes from: the skill's own file, or this reader's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stated<T> {
    /// The value in force.
    pub value: T,
    /// True when the file says nothing and the reader filled it in (never written back).
    pub inferred: bool,
}

impl<T> Stated<T> {
    /// A value that the file states.
    pub fn written(value: T) -> Self {
        Self { value, inferred: false }
    }

    /// A value that the reader filled in.
    pub fn inferred(value: T) -> Self {
        Self { value, inferred: true }
    }
}

/// `metadata.classification`, with defaults where the file is silent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Classification {
    /// Place in an answer; default procedure.
    pub role: Stated<Role>,
    /// How it may be invoked; default direct.
    pub invocation: Stated<Invocation>,
    /// Valid targets in the order of the file; empty for direct skills.
    pub attach_targets: Vec<AttachTarget>,
    /// What it does; default enrich.
    pub effect_mode: Stated<EffectMode>,
}
