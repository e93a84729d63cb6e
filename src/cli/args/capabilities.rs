//! Arguments of the commands about capabilities and their bindings.

use clap::{ArgGroup, Args};

/// `skills explain-capability`
#[derive(Debug, Args)]
pub struct ExplainCapabilityArgs {
    /// Capability to explain; without one, lists all.
    pub capability: Option<String>,
}

/// `skills activate`
#[derive(Debug, Args)]
#[command(override_usage = "skills activate [OPTIONS] <CAPABILITY> <BINDING|--clear>")]
#[command(group(ArgGroup::new("choice").required(true).args(["binding", "clear"])))]
pub struct ActivateArgs {
    /// Id of the capability.
    pub capability: String,
    /// Binding to use for it on this machine.
    pub binding: Option<String>,
    /// Restore the default binding.
    #[arg(long)]
    pub clear: bool,
}
