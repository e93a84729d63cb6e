//! Arguments of the commands about the program itself: completions, man, config.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `skills completions`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to print completions for.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `skills man`
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write the pages of all commands to this folder instead.
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `skills config`
#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub action: ConfigAction,
}
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ConfigAction {
    /// Print the paths of the configuration files.
    Path,
    /// Check the configuration files.
    Check,
    /// Open the user's configuration file in $VISUAL or $EDITOR.
    Edit,
}
