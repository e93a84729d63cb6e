//! Arguments of the commands for authors: scaffold, package-prepare, package-validate.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::skills::ROLES;
use super::value_parsers::parse_name;
use skills_skill::{AttachTarget, EffectMode, Invocation, Kind, Role};

/// The language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScriptWord {
    /// Python 3, standard library.
    Python,
    /// Node.
    Node,
    /// A shell script.
    Shell,
}

/// `skills scaffold`
#[derive(Debug, Args)]
#[command(
    after_help = "At a terminal, missing values are prompted for. Existing files are never overwritten.\n\n\
    Example:\n  skills scaffold log-digest \\\n    --description \"Summarizes a log by hour and level.\" \\\n    \
    --when \"the user asks what happened on a server\" --script python --contract"
)]
pub struct ScaffoldArgs {
    /// Id of the skill and name of its folder: lowercase letters, digits and single hyphens.
    pub id: Option<String>,
    /// What the skill does, in one sentence.
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// When to use it; completes the sentence "Use when …".
    #[arg(long, value_name = "TEXT")]
    pub when: Option<String>,
    /// Kind of skill: reference knowledge, or a tool to operate [default: a tool if it has a script].
    #[arg(long, value_parser = parse_name::<Kind>(&["host-knowledge", "tool"]))]
    pub kind: Option<Kind>,
    /// Role of the skill [default: procedure].
    #[arg(long, value_parser = parse_name::<Role>(&ROLES))]
    pub role: Option<Role>,
    /// How the skill is invoked [default: direct; attach for a sidecar].
    #[arg(long, value_parser = parse_name::<Invocation>(&["direct", "attach", "both"]))]
    pub invocation: Option<Invocation>,
    /// Target types the skill can be attached to (repeatable).
    #[arg(long = "target", value_name = "TARGET",
          value_parser = parse_name::<AttachTarget>(&["task", "run", "output", "transcript", "artifact"]))]
    pub targets: Vec<AttachTarget>,
    /// Effect on the target [default: enrich].
    #[arg(long, value_parser = parse_name::<EffectMode>(&["read_only", "enrich", "control_signal"]))]
    pub effect: Option<EffectMode>,
    /// Subject area, e.g. operations.
    #[arg(long)]
    pub domain: Option<String>,
    /// Tag to find the skill by (repeatable).
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Add a script in this language.
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub script: Option<ScriptWord>,
    /// Add a contract that runs the script as a step.
    #[arg(long)]
    pub contract: bool,
    /// Add a reference page.
    #[arg(long)]
    pub references: bool,
    /// Request for which this skill should rank first (repeatable); stored in golden.yaml next to the
    /// skill.
    #[arg(long = "query", value_name = "TEXT")]
    pub queries: Vec<String>,
    /// Do not write golden queries.
    #[arg(long, conflicts_with = "queries")]
    pub no_golden: bool,
    /// Parent folder [default: the first --root, else the working directory].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `skills package-prepare`
#[derive(Debug, Args)]
#[command(
    after_help = "Packages are reproducible: files are sorted, and times and owners are omitted. Hidden \
        files are excluded. Links, lint errors and files that look like secrets prevent packaging.\n\nExits with 1, without writing anything, if the skill cannot be packaged."
)]
pub struct PackagePrepareArgs {
    /// Skill (id, name or location) or its folder.
    #[arg(value_name = "PATH|SKILL")]
    pub skill: String,
    /// Archive to write [default: ID-VERSION.skill.tar.gz in the working directory].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Include this file even though it looks like a secret; a path in the bundle (repeatable).
    #[arg(long, value_name = "PATH")]
    pub allow: Vec<String>,
    /// Overwrite an existing archive.
    #[arg(long)]
    pub force: bool,
    /// List what would be packed, without writing.
    #[arg(long)]
    pub dry_run: bool,
}

/// `skills package-validate`
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing in the package is executed or extracted to disk. Exits with 1 if the package \
        is invalid."
)]
pub struct PackageValidateArgs {
    /// Archive to check.
    pub file: PathBuf,
}
