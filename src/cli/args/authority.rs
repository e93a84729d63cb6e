//! Arguments of the commands about what may run: trust, policy.

use clap::{Args, Subcommand};

/// `skills trust`
#[derive(Debug, Args)]
#[command(
    after_help = "Trusting pins exactly the files that are there now: when one changes, the bundle asks \
    again.\nFolders under `trust:` in your config.yaml are trusted as they are.\n\n\
    Exits with 5 when a yes is needed and nobody can be asked; with 1 when a listed bundle has changed, or one \
    of several cannot be pinned."
)]
pub struct TrustArgs {
    /// Skills (id, name, location) or folders; a folder means every skill in it. Without any, lists what is trusted.
    #[arg(value_name = "PATH|SKILL")]
    pub what: Vec<String>,
    /// List what is trusted, and how it stands.
    #[arg(long, conflicts_with_all = ["revoke", "yes"])]
    pub list: bool,
    /// Take trust back.
    #[arg(long, requires = "what")]
    pub revoke: bool,
    /// Do not ask.
    #[arg(short, long, requires = "what")]
    pub yes: bool,
}

/// `skills policy`
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub action: PolicyAction,
}

/// What to do with the policy.
#[derive(Debug, Subcommand)]
pub enum PolicyAction {
    /// Say which rules match, and what they do.
    Explain(ExplainPolicyArgs),
    /// Check the file, and name rules that match nothing.
    Check,
}

/// `skills policy explain`
#[derive(Debug, Args)]
pub struct ExplainPolicyArgs {
    /// Id, name or location of a skill; without one, every skill that a rule matches.
    pub skill: Option<String>,
    /// Where they stand for this request, with the policy and without.
    #[arg(long, value_name = "TEXT")]
    pub intent: Option<String>,
}
