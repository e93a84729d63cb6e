//! What a skill *is*: a folder with a `SKILL.md`, its frontmatter with located findings, its
//! classification, lint, token counts and safe text. Reads single bundles; never walks disks for
//! them and never scores (that is `registry` and `discovery`).
//!
//! Follows the open Agent Skills specification, <https://agentskills.io/specification>.

mod classification;
pub mod client;
mod finding;
mod id;
mod record;

pub use classification::{AttachTarget, Classification, EffectMode, Invocation, Kind, Role, Stated, Status};
pub use finding::{Finding, Severity, Span};
pub use id::{Digest, SkillId};
pub use record::{Clients, Properties, Refusal, RefusalReason, Skill};
