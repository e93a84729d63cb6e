//! Arguments of the commands about what may run: trust, policy.

use clap::{Args, Subcommand};

/// `skills trust`
#[derive(Debug, Args)]
#[command(
    after_help = "Trust is pinned to the current content of the bundle: if a file changes, the bundle \
        must be trusted again.\nFolders under `trust:` in your config.yaml are always trusted.\n\nExits with 5 if confirmation is required and there is no terminal; with 1 if a listed bundle has changed, or one of several cannot be pinned."
)]
pub struct TrustArgs {
    /// Skills (id, name or location) or folders; a folder selects all skills in it. Without
    /// arguments, lists trusted bundles.
    #[arg(value_name = "PATH|SKILL")]
    pub what: Vec<String>,
    /// List trusted bundles and their status.
    #[arg(long, conflicts_with_all = ["revoke", "yes"])]
    pub list: bool,
    /// Revoke trust.
    #[arg(long, requires = "what")]
    pub revoke: bool,
    /// Skip the confirmation prompt.
    #[arg(short, long, requires = "what")]
    pub yes: bool,
}

/// `skills policy`
#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    pub action: PolicyAction,
}

/// What to do with the policy.
#[derive(Debug, Subcommand)]
pub enum PolicyAction {
    /// Show which rules match and their effect.
    Explain(ExplainPolicyArgs),
    /// Check the policy file and report rules that match nothing.
    Check,
}

/// `skills policy explain`
#[derive(Debug, Args)]
pub struct ExplainPolicyArgs {
    /// Id, name or location of a skill; without one, every skill that a rule matches.
    pub skill: Option<String>,
    /// Compare ranks for this request with and without the policy.
    #[arg(long = "request", alias = "intent", value_name = "TEXT")]
    pub intent: Option<String>,
}
