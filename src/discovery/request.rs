//! What is asked of the router.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString};

use crate::skill::Role;

/// How rule terms (role, status, read-only intent) meet the text score.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    Display,
    EnumString,
    EnumIter,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Policy {
    /// Rules are small, bounded, visible terms of the score.
    #[default]
    Blended,
    /// Rules sort first, in literal order, among candidates that match.
    Strict,
}

/// One request to the router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["intent"]))]
pub struct Request {
    /// What the person or the agent wants, in their words.
    #[schemars(length(min = 1, max = 20_000), regex(pattern = r"\S"))]
    pub intent: String,
    /// Keep only skills of these domains; empty keeps all.
    pub domain: Vec<String>,
    /// Keep only this role (asking for `sidecar` ranks sidecars too).
    pub role_filter: Option<Role>,
    /// How many results at most; 10 by default.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: usize,
    /// How rules meet text.
    pub policy: Policy,
    /// Whether headings and bodies count; true by default.
    pub with_body: bool,
    /// Whether the last word may be unfinished (a person is typing).
    pub typing: bool,
    /// Rank deprecated skills too.
    pub include_deprecated: bool,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            intent: String::new(),
            domain: Vec::new(),
            role_filter: None,
            limit: 10,
            policy: Policy::Blended,
            with_body: true,
            typing: false,
            include_deprecated: false,
        }
    }
}
