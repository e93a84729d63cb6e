//! Arguments of `governance` and `audit`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use skills_authoring::governance::QualityState;

/// The quality states, lowest first.
const STATES: [&str; 5] = ["draft", "validated", "lab-verified", "trusted", "recommended"];

fn state() -> impl TypedValueParser<Value = QualityState> {
    PossibleValuesParser::new(STATES).try_map(|word| word.parse::<QualityState>())
}

/// `skills governance`
#[derive(Debug, Args)]
#[command(
    after_help = "States: draft, validated, lab-verified, trusted, recommended; docs/governance.md has the rules."
)]
pub struct GovernanceArgs {
    /// One skill, by id, name or location; all without.
    pub skill: Option<String>,
    /// Only skills in these states.
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state())]
    pub state: Vec<QualityState>,
    /// Only these domains.
    #[arg(long, value_delimiter = ',')]
    pub domain: Vec<String>,
    /// So many skills at most, 1 to 1,000; all of them without.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// The page behind one that ended with this cursor.
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
    /// Exit with 1 when a skill that is listed is below this state.
    #[arg(long, value_name = "STATE", value_parser = state())]
    pub require: Option<QualityState>,
}

/// `skills audit`
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: AuditAction,
}

/// What to do with the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditAction {
    /// Check that every line follows the one before it; exits with 1 at the first that does not.
    Verify,
    /// Show the last lines.
    Show(AuditShowArgs),
}

/// `skills audit show`
#[derive(Debug, Args)]
pub struct AuditShowArgs {
    /// Only lines about this run.
    #[arg(long)]
    pub run: Option<String>,
    /// Only kinds that begin so: run., run.approved, trust., policy.
    #[arg(long)]
    pub kind: Option<String>,
    /// Only what this person did.
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// How many lines at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    pub limit: u16,
}
