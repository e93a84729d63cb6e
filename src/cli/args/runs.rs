//! Arguments of the commands that execute skills and act on runs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::words::{HandedFile, Pair, handed_file, pair, span, words};
use skills_model::{Choice, Expiry, RunState};
use skills_skill::AttachTarget;
use skills_skill::contract::Conformance;
use skills_store::AuditMode;

/// Inputs of a skill.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Inputs")]
pub struct InputArgs {
    /// One input, read as the contract types it; `NAME=@FILE` takes a file's text, `@@` a literal `@`.
    #[arg(long = "input", short = 'i', value_name = "NAME=VALUE", value_parser = pair)]
    pub pairs: Vec<Pair>,
    /// All inputs as a JSON or YAML object; `-` reads standard input. Single ones of --input go first.
    #[arg(long, value_name = "FILE")]
    pub inputs: Option<PathBuf>,
}

/// How a skill is executed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Execution")]
pub struct ExecArgs {
    /// A file for the scripts' work directory: the name there, and the file here.
    #[arg(long = "file", value_name = "NAME=PATH", value_parser = handed_file)]
    pub files: Vec<HandedFile>,
    /// Work the run in this process until it ends or waits (the default).
    #[arg(long, conflicts_with = "detach")]
    pub wait: bool,
    /// Leave the run to a worker that is alive (a workbench or a server on the same store).
    #[arg(long)]
    pub detach: bool,
    /// Makes the launch safe to repeat: the same key and inputs answer the same run.
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// The trace that the run belongs to.
    #[arg(long, value_name = "TRACE")]
    pub trace_id: Option<String>,
    /// Least that must be known about a binding's behaviour.
    #[arg(long, value_parser = words::<Conformance>(&CONFORMANCES))]
    pub conformance: Option<Conformance>,
    /// What is written down beside what the run needs.
    #[arg(long, default_value = "standard", value_parser = words::<AuditMode>(&AUDITS))]
    pub audit_mode: AuditMode,
    /// How long it may wait for a person or a signal: 90s, 10m, 2h, 30d.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub expires_in: Option<u64>,
    /// What happens when that time is over.
    #[arg(long, requires = "expires_in", default_value = "deny", value_parser = words::<Expiry>(&EXPIRIES))]
    pub on_expiry: Expiry,
    /// Run scripts even where this machine cannot isolate them; where it can, they are isolated all the same.
    #[arg(long)]
    pub unsandboxed: bool,
}

/// `skills run`
#[derive(Debug, Args)]
#[command(after_help = "Progress goes to standard error, the outputs to standard output.\n\
    Exits with 0 when the run completed, 1 when it failed or was denied, 5 when it waits for a person or a signal.")]
pub struct RunArgs {
    /// Id, name or location of a skill that has a contract.
    pub skill: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "flattened")]
    pub inputs: InputArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "flattened")]
    pub exec: ExecArgs,
}

/// `skills trace`
#[derive(Debug, Args)]
#[command(after_help = "Executes as `skills run`; every event goes to standard output, one a line \
    (with --json one JSON object a line), the exit code tells how the run ended.")]
pub struct TraceArgs {
    /// Id, name or location of a skill that has a contract.
    pub skill: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "flattened")]
    pub inputs: InputArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "flattened")]
    pub exec: ExecArgs,
}

/// `skills attach`
#[derive(Debug, Args)]
#[command(
    after_help = "What a reference looks like: RUN (run, or task for an open one), RUN/STEP (output), \
    session:ID (transcript), artifact:DIGEST or a file (artifact), task:ID (task)."
)]
pub struct AttachArgs {
    /// Id, name or location of a skill that may be attached.
    pub skill: String,
    /// What kind of thing it is attached to.
    #[arg(long, value_parser = words::<AttachTarget>(&TARGETS))]
    pub target_type: AttachTarget,
    /// Which one.
    #[arg(long, value_name = "REF")]
    pub target_ref: String,
    /// Show the four checks and what would happen; start nothing.
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "flattened")]
    pub inputs: InputArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "flattened")]
    pub exec: ExecArgs,
}

/// `skills runs`
#[derive(Debug, Args)]
#[command(after_help = "RUN is a run's id, or a beginning or an end of it that no other run has.")]
pub struct RunsArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: RunsAction,
}

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub enum RunsAction {
    /// List runs, those that wait for you first.
    List(RunsListArgs),
    /// Show one run: steps, what it waits for, checkpoints, results.
    Show(RunsShowArgs),
    /// Follow a run until it ends or waits, or all runs until Ctrl-C.
    Watch(RunsWatchArgs),
    /// Say yes to the step that waits for a person.
    Approve(DecideArgs),
    /// Say no to the step that waits for a person: the run is canceled.
    Deny(DecideArgs),
    /// Let a held or failed run go on, with corrected inputs or from an older checkpoint.
    Resume(ResumeArgs),
    /// Send a signal to a run.
    Signal(SignalArgs),
    /// Stop a run.
    Cancel(OneRunArgs),
    /// Start a new run that goes on from a checkpoint of this one.
    Replay(BranchArgs),
    /// Make a new held run from a checkpoint of this one; nothing is executed until it is resumed.
    Fork(BranchArgs),
    /// Compare two runs step by step; exits with 1 when they differ.
    Compare(CompareArgs),
    /// Work runs in this process that no worker has, until they end or wait.
    Work(WorkArgs),
}

/// What `--where` takes.
const WHERE_HELP: &str = "\
Only runs that match this filter. All terms have to match; `-` before a term negates it; double quotes group words.

  state:failed,canceled     a state, `open`, `ended` or `waiting`
  skill:deploy*             the skill; `*` stands for any characters
  step:book                 the present step
  age:>1h                   time since the start (s, m, h, d, w)
  since:<10m                time in the present state
  error:\"bad gateway\"       part of the error
  input.region:eu*          an input; `input.total:>100` compares numbers
  by:kim                    who started it
  id:4f1c                   part of the id
  trace:4bf92f35            the beginning of the trace id
  target:report.md          part of what it is attached to
  4711                      part of the id, skill, step, inputs or error";

/// `skills runs list`
#[derive(Debug, Args)]
pub struct RunsListArgs {
    /// Only these states.
    #[arg(long, value_delimiter = ',', value_parser = words::<RunState>(&STATES))]
    pub state: Vec<RunState>,
    /// Only this skill.
    #[arg(long)]
    pub skill: Option<String>,
    /// Only runs with this text in their id, skill or step, or of this trace.
    #[arg(long)]
    pub text: Option<String>,
    /// Only runs of this trace.
    #[arg(long, value_name = "TRACE")]
    pub trace: Option<String>,
    /// Only runs that match this filter: `state:failed skill:deploy* age:>1h input.region:eu* -error:timeout`.
    #[arg(long, value_name = "FILTER", long_help = WHERE_HELP)]
    pub r#where: Option<String>,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 30, conflicts_with = "all",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// All of them.
    #[arg(long)]
    pub all: bool,
}

/// `skills runs show`
#[derive(Debug, Args)]
pub struct RunsShowArgs {
    /// The run.
    pub run: String,
    /// Print its events too.
    #[arg(long)]
    pub events: bool,
    /// Print the state at this checkpoint, and what its step changed.
    #[arg(long, value_name = "N")]
    pub checkpoint: Option<u64>,
}

/// `skills runs watch`
#[derive(Debug, Args)]
#[command(
    after_help = "With a run it exits as `skills run` does; Ctrl-C leaves, and the run stays as it is."
)]
pub struct RunsWatchArgs {
    /// The run; all runs without one.
    pub run: Option<String>,
}

/// What happens to a run after an order that lets it go on.
#[derive(Debug, Clone, Copy, Args)]
pub struct OnwardArgs {
    /// Work the run on in this process until it ends or waits (the default).
    #[arg(long, conflicts_with = "detach")]
    pub wait: bool,
    /// Leave it to a worker that is alive.
    #[arg(long)]
    pub detach: bool,
}

/// `skills runs approve` and `skills runs deny`
#[derive(Debug, Args)]
#[command(after_help = "Shows what would happen and asks; what was shown is what is decided. \
    Without a terminal, or with --yes alone, it prints the details and the full command and exits with 5: \
    an approval needs --yes with --inputs-digest, a denial --yes with --step or --inputs-digest.")]
pub struct DecideArgs {
    /// The run.
    pub run: String,
    /// Do not ask; needs --inputs-digest (to deny, --step is enough).
    #[arg(long, short)]
    pub yes: bool,
    /// Step to decide (default: the step that is shown).
    #[arg(long)]
    pub step: Option<String>,
    /// Digest of what you have read (default: that of what is shown).
    #[arg(long, value_name = "SHA256")]
    pub inputs_digest: Option<String>,
    /// Who decides; your name, where absent.
    #[arg(long, value_name = "NAME")]
    pub approver: Option<String>,
    /// Kept with the decision.
    #[arg(long, value_name = "TEXT")]
    pub notes: Option<String>,
    /// What to do about a step that nobody knows the end of.
    #[arg(long, value_parser = words::<Choice>(&CHOICES))]
    pub choice: Option<Choice>,
    /// What it gave, with --choice happened: JSON with its outputs, or @FILE.
    #[arg(long, value_name = "JSON")]
    pub result: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "flattened")]
    pub onward: OnwardArgs,
}

/// `skills runs resume`
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run.
    pub run: String,
    /// From this checkpoint instead of the last; later steps run again.
    #[arg(long, value_name = "N")]
    pub checkpoint: Option<u64>,
    /// Go on although the skill changed since the launch: the contract of the launch runs.
    #[arg(long)]
    pub despite_change: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "flattened")]
    pub inputs: InputArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "flattened")]
    pub onward: OnwardArgs,
}

/// `skills runs signal`
#[derive(Debug, Args)]
pub struct SignalArgs {
    /// The run.
    pub run: String,
    /// The signal's name.
    pub name: String,
    /// What goes to the waiting step as its output: JSON, or `@FILE` (`@-` reads standard input).
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub payload: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "flattened")]
    pub onward: OnwardArgs,
}

/// `skills runs cancel`
#[derive(Debug, Args)]
pub struct OneRunArgs {
    /// The run.
    pub run: String,
}

/// `skills runs replay` and `skills runs fork`
#[derive(Debug, Args)]
pub struct BranchArgs {
    /// The run.
    pub run: String,
    /// From this checkpoint; the last, where absent.
    #[arg(long, value_name = "N")]
    pub checkpoint: Option<u64>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "flattened")]
    pub onward: OnwardArgs,
}

/// `skills runs compare`
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// One run.
    pub run: String,
    /// The other.
    pub other: String,
}

/// `skills runs work`
#[derive(Debug, Args)]
pub struct WorkArgs {
    /// The runs; all that can be worked, where absent.
    pub runs: Vec<String>,
}

const CONFORMANCES: [&str; 3] = ["experimental", "standard", "strict"];
const AUDITS: [&str; 3] = ["standard", "full", "off"];
const EXPIRIES: [&str; 2] = ["deny", "fail"];
const CHOICES: [&str; 4] = ["rerun", "happened", "skip", "fail"];
const TARGETS: [&str; 5] = ["task", "run", "output", "transcript", "artifact"];
const STATES: [&str; 8] = [
    "pending",
    "running",
    "replaying",
    "waiting_for_human",
    "waiting_for_signal",
    "completed",
    "failed",
    "canceled",
];

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    #[test]
    fn the_words_are_those_of_the_wire() {
        assert!(RunState::iter().map(|state| state.to_string()).eq(STATES));
        assert!(Choice::iter().map(|choice| choice.to_string()).eq(CHOICES));
        assert!(AttachTarget::iter().map(|target| target.to_string()).eq(TARGETS));
        assert!(EXPIRIES.iter().all(|word| word.parse::<Expiry>().is_ok()));
        assert!(AUDITS.iter().all(|word| word.parse::<AuditMode>().is_ok()));
        assert!(CONFORMANCES.iter().all(|word| word.parse::<Conformance>().is_ok()));
    }
}
