//! Arguments of the commands on proposals.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};

use skills_api::ProposalState;
use skills_skill::Digest;

/// `skills propose`
#[derive(Debug, Args)]
#[command(
    after_help = "The diff changes the SKILL.md of this skill only; paths in its headers are ignored. The \
    proposal is rejected if the diff does not apply. The file changes only after `skills proposals approve`."
)]
pub struct ProposeArgs {
    /// Id, name or location of a skill.
    pub skill: String,
    /// File with a unified diff of its SKILL.md; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    pub diff: PathBuf,
    /// Why the change is needed.
    #[arg(long, value_name = "TEXT")]
    pub justification: String,
    /// What supports it: sessions, queries, reports.
    #[arg(long, value_name = "TEXT")]
    pub evidence: Option<String>,
    /// Name of the user who proposes it [default: your account].
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// `skills proposals`
#[derive(Debug, Args)]
pub struct ProposalsArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: ProposalsAction,
}

/// The commands on proposals.
#[derive(Debug, Subcommand)]
pub enum ProposalsAction {
    /// List proposals, newest first.
    List(ProposalsListArgs),
    /// Show a proposal: diff, justification, checks, effects, versions.
    Show(OneProposalArgs),
    /// Approve a proposal and write the file.
    Approve(ApproveProposalArgs),
    /// Deny a proposal.
    Deny(ProposalActionArgs),
    /// Restore the file as it was before an applied proposal.
    Rollback(ProposalActionArgs),
}

/// `skills proposals list`
#[derive(Debug, Args)]
pub struct ProposalsListArgs {
    /// Show only proposals in these states.
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(STATES)
        .try_map(|word| word.parse::<ProposalState>()))]
    pub state: Vec<ProposalState>,
    /// Show only proposals for this skill.
    #[arg(long)]
    pub skill: Option<String>,
    /// Maximum number of proposals, 1 to 1000 [default: all].
    #[arg(long, value_name = "N", value_parser = super::skills::limit)]
    pub limit: Option<usize>,
    /// Continue after the page that ended with this cursor.
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

/// `skills proposals show`
#[derive(Debug, Args)]
pub struct OneProposalArgs {
    /// Id of the proposal.
    pub proposal: String,
}

/// `skills proposals approve`
#[derive(Debug, Args)]
#[command(
    after_help = "Prints the proposal and asks for confirmation. With --yes, both digests of the reviewed proposal are \
    required; otherwise nothing is decided, and the complete command is printed."
)]
pub struct ApproveProposalArgs {
    #[command(flatten)]
    pub action: ProposalActionArgs,
    /// Digest of the proposal that was reviewed [default: the digest that is shown].
    #[arg(long, value_name = "SHA256", value_parser = digest)]
    pub proposal_digest: Option<Digest>,
    /// Digest of the file that it was reviewed for [default: the digest that is shown].
    #[arg(long, value_name = "SHA256", value_parser = digest)]
    pub base_digest: Option<Digest>,
}

/// `skills proposals deny` and `skills proposals rollback`
#[derive(Debug, Args)]
pub struct ProposalActionArgs {
    /// Id of the proposal.
    pub proposal: String,
    /// Skip the confirmation prompt.
    #[arg(long, short)]
    pub yes: bool,
    /// Name of the user who decides [default: your account].
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Comment stored with the decision.
    #[arg(long, value_name = "TEXT")]
    pub notes: Option<String>,
}

fn digest(text: &str) -> Result<Digest, String> {
    serde_json::from_value(text.into()).map_err(|_| "a digest has 64 hexadecimal digits".to_owned())
}

const STATES: [&str; 4] = ["waiting", "approved", "denied", "rolled_back"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_equal_the_wire_names() {
        assert!(
            STATES
                .iter()
                .all(|state| state.parse::<ProposalState>().is_ok_and(|one| one.to_string() == *state))
        );
    }
}
