//! Arguments of the commands about the program itself: completions, man, config.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `skills completions`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Which shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `skills man`
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write the pages of all commands into this folder instead.
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `skills config`
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub action: ConfigAction,
}

/// What to do with the configuration.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ConfigAction {
    /// Print where the configuration files are looked for.
    Path,
    /// Check them and name what is wrong.
    Check,
    /// Open the user's file in $VISUAL or $EDITOR.
    Edit,
}
