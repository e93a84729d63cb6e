//! The model of a skill: a folder with a `SKILL.md`, its frontmatter with located findings, its classification, lint,
//! token counts and safe text. Reads single bundles; finding bundles and ranking them are the tasks of `registry` and
//! `discovery`.
//!
//! Follows the open Agent Skills specification, <https://agentskills.io/specification>.
// Text of bundles is untrusted: an invalid range must not abort the program.
#![cfg_attr(not(test), deny(clippy::string_slice))]

mod bundle;
mod classification;
mod classify;
pub mod client;
pub mod contract;
mod fence;
mod finding;
mod finding_builder;
pub mod fix;
mod frontmatter;
mod id;
mod lenient;
pub mod lint;
mod parse;
mod record;
mod repair;
pub mod safe_text;
mod text;
pub mod text_width;
pub mod tokens;
mod yaml;

pub use bundle::{BundleFile, bundle_files, is_main_file, read_bundle, read_bundle_at};
pub use classification::{
    AttachTarget, Classification, EffectMode, Invocation, Kind, Role, Status, WithOrigin,
};
pub use finding::{Finding, Severity, Span, errors_and_warnings};
pub use finding_builder::{prefix, slice};
pub use frontmatter::{Frontmatter, schema};
pub use id::{Digest, SkillId};
pub use parse::{MAX_BYTES, parse};
pub use record::{Clients, JsonMap, Properties, RealPaths, RefusalReason, RejectedBundle, Skill};
pub use skills_base::files::{open_regular, read_regular, read_regular_text};
pub use text::{
    IndexText, body, frontmatter_json, frontmatter_range, index_body, index_text, read_index_text,
};
pub use yaml::yaml_message;
