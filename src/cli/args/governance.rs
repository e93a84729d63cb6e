//! Arguments of `governance` and `audit`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::value_parsers::integer;
use skills_authoring::governance::QualityState;

/// The quality states, lowest first.
const STATES: [&str; 5] = ["draft", "validated", "lab-verified", "trusted", "recommended"];

fn state() -> impl TypedValueParser<Value = QualityState> {
    PossibleValuesParser::new(STATES).try_map(|word| word.parse::<QualityState>())
}

/// `skills governance`
#[derive(Debug, Args)]
#[command(
    after_help = "States: draft, validated, lab-verified, trusted, recommended; docs/governance.md has \
        the rules."
)]
pub struct GovernanceArgs {
    /// Id, name or location of a skill; without one, all skills.
    pub skill: Option<String>,
    /// Show only skills in these states.
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state())]
    pub state: Vec<QualityState>,
    /// Show only skills of these domains.
    #[arg(long, value_delimiter = ',')]
    pub domain: Vec<String>,
    /// Maximum number of skills, 1 to 1000 [default: all].
    #[arg(long, value_name = "N", value_parser = super::skills::limit)]
    pub limit: Option<usize>,
    /// Continue after the page that ended with this cursor.
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
    /// Exit with 1 if a listed skill is below this state.
    #[arg(long, value_name = "STATE", value_parser = state())]
    pub require: Option<QualityState>,
}

/// `skills audit`
#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(subcommand)]
    pub action: AuditAction,
}
#[derive(Debug, Subcommand)]
pub enum AuditAction {
    /// Verify the hash chain of the log; exits with 1 at the first broken line.
    Verify,
    /// Show the last entries.
    Show(AuditShowArgs),
}

/// `skills audit show`
#[derive(Debug, Args)]
pub struct AuditShowArgs {
    /// Show only entries of this run.
    #[arg(long)]
    pub run: Option<String>,
    /// Show only kinds with this prefix: run., run.approved, trust., policy.
    #[arg(long)]
    pub kind: Option<String>,
    /// Show only entries of this principal.
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Maximum number of entries.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = integer(1, u16::MAX))]
    pub limit: u16,
}
