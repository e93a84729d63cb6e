//! Arguments of the commands about capabilities and their bindings.

use clap::Args;

/// `skills explain-capability`
#[derive(Debug, Args)]
pub struct ExplainCapabilityArgs {
    /// The capability; without one, all are listed.
    pub capability: Option<String>,
}

/// `skills activate`
#[derive(Debug, Args)]
pub struct ActivateArgs {
    /// The capability.
    pub capability: String,
    /// The binding that is to carry it out on this machine.
    #[arg(required_unless_present = "clear", conflicts_with = "clear")]
    pub binding: Option<String>,
    /// Take the choice back: the default binding counts again.
    #[arg(long)]
    pub clear: bool,
}
