//! Arguments of the commands for authors: scaffold, package-prepare, package-validate.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::skills::ROLES;
use super::words::words;
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
    after_help = "At a terminal, what is not given is asked for. Nothing that exists is overwritten.\n\n\
    Example:\n  skills scaffold log-digest --description \"Sums up a log by hour and level.\" \\\n    \
    --when \"somebody asks what happened on a server\" --script python --contract"
)]
pub struct ScaffoldArgs {
    /// Its id: the folder's name, lower-case letters, digits and single hyphens.
    pub id: Option<String>,
    /// What it does, in a sentence.
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// When to use it: goes on with the words "Use when …".
    #[arg(long, value_name = "TEXT")]
    pub when: Option<String>,
    /// Facts to read, or a tool to operate; a tool where it has a script, else host-knowledge.
    #[arg(long, value_parser = words::<Kind>(&["host-knowledge", "tool"]))]
    pub kind: Option<Kind>,
    /// Its place in an answer; procedure by default.
    #[arg(long, value_parser = words::<Role>(&ROLES))]
    pub role: Option<Role>,
    /// How it is invoked; direct by default, attach for a sidecar.
    #[arg(long, value_parser = words::<Invocation>(&["direct", "attach", "both"]))]
    pub invocation: Option<Invocation>,
    /// What it can be attached to (may be given several times).
    #[arg(long = "target", value_name = "TARGET",
          value_parser = words::<AttachTarget>(&["task", "run", "output", "transcript", "artifact"]))]
    pub targets: Vec<AttachTarget>,
    /// What it does to what it is used on; enrich by default.
    #[arg(long, value_parser = words::<EffectMode>(&["read_only", "enrich", "control_signal"]))]
    pub effect: Option<EffectMode>,
    /// Its subject area, e.g. operations.
    #[arg(long)]
    pub domain: Option<String>,
    /// Words by which it should be found (may be given several times).
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// With a script in this language.
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub script: Option<ScriptWord>,
    /// With a contract that runs the script as a step.
    #[arg(long)]
    pub contract: bool,
    /// With a page of reference material.
    #[arg(long)]
    pub references: bool,
    /// What somebody would ask when this skill should win (may be given several times); kept in golden.yaml
    /// beside the skill.
    #[arg(long = "query", value_name = "TEXT")]
    pub queries: Vec<String>,
    /// Write no golden queries.
    #[arg(long, conflicts_with = "queries")]
    pub no_golden: bool,
    /// The folder that it is made in; the first --root, else the working directory.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `skills package-prepare`
#[derive(Debug, Args)]
#[command(
    after_help = "The same bundle always gives the same bytes: files sorted, times and owners left out. \
    Hidden files stay out; links, errors of lint and files that look like secrets are in the way.\n\n\
    Exits with 1 when something is in the way; nothing is written then."
)]
pub struct PackagePrepareArgs {
    /// A skill (id, name, location) or its folder.
    #[arg(value_name = "PATH|SKILL")]
    pub skill: String,
    /// The archive; ID-VERSION.skill.tar.gz in the working directory by default.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A file that only looks like a secret: its path in the bundle (may be given several times).
    #[arg(long, value_name = "PATH")]
    pub allow: Vec<String>,
    /// Replace an archive that is there.
    #[arg(long)]
    pub force: bool,
    /// Only say what would be packed.
    #[arg(long)]
    pub dry_run: bool,
}

/// `skills package-validate`
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing of it is run, and nothing is left on the disk. Exits with 1 when something is wrong."
)]
pub struct PackageValidateArgs {
    /// The archive.
    pub file: PathBuf,
}
