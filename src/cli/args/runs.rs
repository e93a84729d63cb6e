//! Arguments of the commands that execute skills and act on runs.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::value_parsers::{InputFileArg, Pair, checkpoint, integer, pair, parse_file_arg, parse_name, span};
use skills_config::RunColumn;
use skills_model::{Choice, Expiry, RunState};
use skills_skill::AttachTarget;
use skills_skill::contract::Conformance;
use skills_store::AuditMode;

/// Inputs of a skill.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Inputs")]
pub struct InputArgs {
    /// Set an input, parsed by its type in the contract; `NAME=@FILE` reads a file, `@@` is a literal `@`.
    #[arg(long = "input", short = 'i', value_name = "NAME=VALUE", value_parser = pair)]
    pub pairs: Vec<Pair>,
    /// Read inputs from a JSON or YAML file; `-` reads standard input. --input overrides values from
    /// this file.
    #[arg(long, value_name = "FILE")]
    pub inputs: Option<PathBuf>,
}

/// How a skill is executed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Execution")]
pub struct ExecArgs {
    /// Copy PATH into the work directory of scripts as NAME.
    #[arg(long = "file", value_name = "NAME=PATH", value_parser = parse_file_arg)]
    pub files: Vec<InputFileArg>,
    /// Execute the run in this process until it ends or waits [default].
    #[arg(long, conflicts_with = "detach")]
    pub wait: bool,
    /// Leave the run to another worker: a workbench or service with the same store.
    #[arg(long)]
    pub detach: bool,
    /// Idempotency key: a launch with the same key and inputs returns the existing run.
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// Trace id of the run.
    #[arg(long, value_name = "TRACE")]
    pub trace_id: Option<String>,
    /// Minimum binding conformance level.
    #[arg(long, value_parser = parse_name::<Conformance>(&CONFORMANCES))]
    pub conformance: Option<Conformance>,
    /// How much the audit log records of the run.
    #[arg(long, default_value = "standard", value_parser = parse_name::<AuditMode>(&AUDITS))]
    pub audit_mode: AuditMode,
    /// Maximum time to wait for an approval or a signal: 90s, 10m, 2h, 30d.
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub expires_in: Option<u64>,
    /// Action when the wait expires.
    #[arg(long, requires = "expires_in", default_value = "deny", value_parser = parse_name::<Expiry>(&EXPIRIES))]
    pub on_expiry: Expiry,
    /// Label of the run, for filters, metrics and policy (repeatable).
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = pair)]
    pub labels: Vec<Pair>,
    /// Run scripts even if this machine cannot sandbox them; has no effect if it can.
    #[arg(long)]
    pub unsandboxed: bool,
}

/// `skills run`
#[derive(Debug, Args)]
#[command(after_help = "Executes the contract until the run ends or waits. Progress is written to \
    standard error, outputs to standard output.\nExits with 0 if the run completed, 1 if it failed or was denied, 5 if it waits for an approval or a signal.")]
pub struct RunArgs {
    /// Id, name or location of a skill with a contract.
    pub skill: String,
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub exec: ExecArgs,
}

/// `skills trace`
#[derive(Debug, Args)]
#[command(after_help = "Executes the contract as `skills run` does and writes every event to standard \
    output, one per line (with --json, one JSON object per line). The exit code is that of `skills run`.")]
pub struct TraceArgs {
    /// Id, name or location of a skill with a contract.
    pub skill: String,
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub exec: ExecArgs,
}

/// `skills attach`
#[derive(Debug, Args)]
#[command(
    after_help = "References: RUN (type run; type task while the run is open), RUN/STEP (output), session:ID (transcript), \
        artifact:DIGEST, skill:ID/RELATIVE/PATH or a file (artifact), task:ID (task)."
)]
pub struct AttachArgs {
    /// Id, name or location of a skill that can be attached.
    pub skill: String,
    /// Type of the target.
    #[arg(long, value_parser = parse_name::<AttachTarget>(&TARGETS))]
    pub target_type: AttachTarget,
    /// Reference to the target.
    #[arg(long, value_name = "REF")]
    pub target_ref: String,
    /// Show the checks and what would happen, without starting a run.
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub exec: ExecArgs,
}

/// `skills runs`
#[derive(Debug, Args)]
#[command(after_help = "RUN is the id of a run, or a unique prefix or suffix of it.")]
pub struct RunsArgs {
    #[command(subcommand)]
    pub action: Option<RunsAction>,
}
#[derive(Debug, Subcommand)]
pub enum RunsAction {
    /// List runs, waiting runs first.
    List(RunsListArgs),
    /// Show waiting runs by deadline, runs in progress, failures by reason, and workers.
    Board(RunsBoardArgs),
    /// List the workers and their runs, or drain one.
    Workers(RunsWorkersArgs),
    /// List, save or delete named filters.
    Views(RunsViewsArgs),
    /// Print the full output of a run or of one step.
    Logs(RunsLogsArgs),
    /// Assign a run to a user, with a note.
    Assign(RunsAssignArgs),
    /// Show one run: steps, pending decision, checkpoints, results.
    Show(RunsShowArgs),
    /// Follow a run until it ends or waits, or all runs until Ctrl-C.
    Watch(RunsWatchArgs),
    /// Approve the waiting step.
    #[command(mut_arg("yes", |arg| arg.help(
        "Skip the confirmation prompt; requires --inputs-digest, or --list-digest with --where"
    )))]
    Approve(DecideArgs),
    /// Deny the waiting step, which cancels the run.
    #[command(mut_arg("yes", |arg| arg.help(
        "Skip the confirmation prompt; requires --step or --inputs-digest, or --list-digest with --where"
    )), mut_arg("choice", |arg| arg.hide(true)), mut_arg("result", |arg| arg.hide(true)))]
    Deny(DecideArgs),
    /// Resume a paused or failed run, optionally with changed inputs or from an older checkpoint.
    Resume(ResumeArgs),
    /// Send a signal to a run.
    Signal(SignalArgs),
    /// Cancel a run, or all that match a filter.
    Cancel(CancelArgs),
    /// Start a new run from a checkpoint of a run.
    Replay(BranchArgs),
    /// Create a paused run from a checkpoint of a run.
    // Nothing executes a paused run, so the options of `replay` have no effect.
    #[command(mut_arg("wait", |arg| arg.hide(true)), mut_arg("detach", |arg| arg.hide(true)))]
    Fork(BranchArgs),
    /// Compare two runs step by step; exits with 1 if they differ.
    Compare(CompareArgs),
    /// Execute unclaimed runs in this process until they end or wait.
    Work(WorkArgs),
}

// Help of `--where`: the command's own sentence and the terms of a filter. Clap prints only one of a short and a long
// help.
macro_rules! where_help {
    ($sentence:literal) => {
        concat!(
            $sentence,
            " All terms must match; `-` before a term negates it; double quotes group words.
Several values of a key, of which one must match, are separated by commas: `error:503,circuit` (except for title, target, age and since).

  state:failed,canceled     a state, or open, ended, waiting, unknown
  title:deploy*             the title of the run
  skill:deploy*             the skill; `*` stands for any characters
  step:book                 the current step
  age:>1h                   time since the start (s, m, h, d, w)
  since:<10m                time in the current state
  error:\"bad gateway\"       part of the error
  detail:10.0.0.7           part of the error including addresses
  input.region:eu*          an input; numbers also `:>100`, `:<=5`
  label.env:prod            a label set at launch
  by:kim                    who started it
  assigned:kim              who it is assigned to
  worker:build-2            the worker that executes it
  id:4f1c                   part of the id
  trace:4bf92f35            the beginning of the trace id
  target:report.md          part of what it is attached to
  4711                      in id, title, skill, step, inputs or error"
        )
    };
}

/// `skills runs list`
#[derive(Debug, Args)]
pub struct RunsListArgs {
    /// Show only runs in these states.
    #[arg(long, value_delimiter = ',', value_parser = parse_name::<RunState>(&STATES))]
    pub state: Vec<RunState>,
    /// Show only runs of this skill.
    #[arg(long)]
    pub skill: Option<String>,
    /// Show only runs with this text in their id, skill or step, or with this trace id.
    #[arg(long)]
    pub text: Option<String>,
    /// Show only runs with this trace id.
    #[arg(long, value_name = "TRACE")]
    pub trace: Option<String>,
    /// Show only runs that match this filter: `state:failed skill:deploy* age:>1h input.region:eu* -error:timeout`.
    #[arg(long, value_name = "FILTER", allow_hyphen_values = true, long_help = where_help!("Show only runs that match this filter."))]
    pub r#where: Option<String>,
    /// Maximum number of entries.
    #[arg(long, value_name = "N", default_value_t = 30, conflicts_with = "all",
        value_parser = integer(1_u32, 10_000))]
    pub limit: u32,
    /// Show all runs.
    #[arg(long)]
    pub all: bool,
    /// Columns to show, in this order.
    #[arg(long, value_delimiter = ',', value_name = "COLUMN", value_parser = super::value_parsers::run_column())]
    pub columns: Vec<RunColumn>,
    /// Sort all runs that match by this column, then show the first ones; prefix it with `-` for descending order.
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub sort: Option<String>,
}

/// `skills runs show`
#[derive(Debug, Args)]
pub struct RunsShowArgs {
    /// Id of the run, or a unique prefix or suffix of it.
    pub run: String,
    /// Also print the events of the run.
    #[arg(long)]
    pub events: bool,
    /// Print the state at this checkpoint and the changes of its step.
    #[arg(long, value_name = "N", value_parser = checkpoint)]
    pub checkpoint: Option<u64>,
}

/// `skills runs watch`
#[derive(Debug, Args)]
#[command(after_help = "With a run, the exit code is that of `skills run`. Ctrl-C stops watching; the run \
        continues.")]
pub struct RunsWatchArgs {
    /// Id of the run; without one, all runs.
    pub run: Option<String>,
}

/// What happens to a run after a command that lets it continue.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Execution")]
pub struct WaitArgs {
    /// Execute the run in this process until it ends or waits [default].
    #[arg(long, conflicts_with = "detach")]
    pub wait: bool,
    /// Leave the run to another worker.
    #[arg(long)]
    pub detach: bool,
}

/// `skills runs approve` and `skills runs deny`
#[derive(Debug, Args)]
#[command(after_help = "Shows what would happen and asks for confirmation. The decision applies to \
    exactly what was shown. Without a terminal, or with --yes alone, prints the details and the full command and exits with 5. With --yes, approve requires --inputs-digest, and deny --step or --inputs-digest. With --where, use --yes with the --list-digest that is printed with the list.")]
#[command(group(ArgGroup::new("selected").required(true).args(["run", "where"])))]
pub struct DecideArgs {
    /// Id of the run, or a unique prefix or suffix of it.
    pub run: Option<String>,
    /// Apply to every waiting run that matches this filter, after listing the runs with the digests of their inputs and
    /// asking for confirmation.
    #[arg(long, value_name = "FILTER", allow_hyphen_values = true, long_help = where_help!("Apply to every waiting run that matches this filter, after listing the runs with the digests of their inputs and asking for confirmation."),
          conflicts_with_all = ["step", "inputs_digest", "choice", "result"])]
    pub r#where: Option<String>,
    /// Digest printed with the list of runs; required with --where and --yes.
    #[arg(long = "list-digest", alias = "digest", value_name = "SHA256", requires = "where")]
    pub digest: Option<String>,
    /// Skip the confirmation prompt.
    #[arg(long, short)]
    pub yes: bool,
    /// Step to approve or deny [default: the waiting step].
    #[arg(long)]
    pub step: Option<String>,
    /// Digest of the inputs that were reviewed [default: the digest that is shown].
    #[arg(long, value_name = "SHA256")]
    pub inputs_digest: Option<String>,
    /// Name of the user who decides [default: your account].
    #[arg(long, value_name = "NAME")]
    pub approver: Option<String>,
    /// Comment stored with the decision.
    #[arg(long, value_name = "TEXT")]
    pub notes: Option<String>,
    /// How to continue after a step with an unknown outcome.
    #[arg(long, value_parser = parse_name::<Choice>(&CHOICES))]
    pub choice: Option<Choice>,
    /// Result of the step, with --choice happened: JSON with its outputs, or @FILE.
    #[arg(long, value_name = "JSON")]
    pub result: Option<String>,
    #[command(flatten)]
    pub onward: WaitArgs,
}

/// `skills runs resume`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("selected").required(true).args(["run", "where"])))]
pub struct ResumeArgs {
    /// Id of the run, or a unique prefix or suffix of it.
    pub run: Option<String>,
    #[command(flatten)]
    pub bulk: BulkArgs,
    /// Resume from this checkpoint; later steps run again [default: the last].
    #[arg(long, value_name = "N", value_parser = checkpoint)]
    pub checkpoint: Option<u64>,
    /// Resume even though the skill changed since the launch; the contract of the launch is used.
    #[arg(long = "allow-changed-skill", alias = "despite-change")]
    pub despite_change: bool,
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub onward: WaitArgs,
}

/// `skills runs signal`
#[derive(Debug, Args)]
#[command(override_usage = "skills runs signal [OPTIONS] <RUN> <NAME>\n       \
    skills runs signal [OPTIONS] --where <FILTER> <NAME>")]
pub struct SignalArgs {
    /// Id of the run; with --where, the name of the signal.
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Name of the signal.
    #[arg(required_unless_present = "where", conflicts_with = "where")]
    pub name: Option<String>,
    #[command(flatten)]
    pub bulk: BulkArgs,
    /// Payload, which becomes the output of the waiting step: JSON, or `@FILE` (`@-` reads standard input).
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub payload: String,
    #[command(flatten)]
    pub onward: WaitArgs,
}

/// `skills runs cancel`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("selected").required(true).args(["run", "where"])))]
pub struct CancelArgs {
    /// Id of the run, or a unique prefix or suffix of it.
    pub run: Option<String>,
    #[command(flatten)]
    pub bulk: BulkArgs,
}

/// One command for many runs.
#[derive(Debug, Clone, Default, Args)]
pub struct BulkArgs {
    /// Apply to every run that matches this filter, after listing the runs and asking for confirmation.
    #[arg(long, value_name = "FILTER", allow_hyphen_values = true, long_help = where_help!("Apply to every run that matches this filter, after listing the runs and asking for confirmation."))]
    pub r#where: Option<String>,
    /// Skip the confirmation prompt of --where; without --where, there is none.
    #[arg(long, short, requires = "where")]
    pub yes: bool,
}

/// `skills runs board`
#[derive(Debug, Args)]
pub struct RunsBoardArgs {
    /// Number of past hours to include.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = integer(1_u32, 336))]
    pub hours: u32,
}

/// `skills runs workers`
#[derive(Debug, Args)]
#[command(after_help = "WORKER is the id of a worker, or a unique part of it.")]
pub struct RunsWorkersArgs {
    /// Let a worker finish its runs and claim no others.
    #[arg(long, value_name = "WORKER", conflicts_with = "undrain")]
    pub drain: Option<String>,
    /// Let a draining worker claim runs again.
    #[arg(long, value_name = "WORKER")]
    pub undrain: Option<String>,
}

/// `skills runs views`
#[derive(Debug, Args)]
pub struct RunsViewsArgs {
    /// Save the filter of --where under this name.
    #[arg(long, value_name = "NAME", requires = "where", conflicts_with = "delete")]
    pub save: Option<String>,
    /// Filter to save.
    #[arg(long, value_name = "FILTER", requires = "save", allow_hyphen_values = true, long_help = where_help!("Filter to save."))]
    pub r#where: Option<String>,
    /// Delete the view of this name.
    #[arg(long, value_name = "NAME")]
    pub delete: Option<String>,
}

/// `skills runs logs`
#[derive(Debug, Args)]
pub struct RunsLogsArgs {
    /// Id of the run, or a unique prefix or suffix of it.
    pub run: String,
    /// Only lines of this step.
    pub step: Option<String>,
    /// Only lines with this text, regardless of case.
    #[arg(long, value_name = "TEXT")]
    pub grep: Option<String>,
    /// Wait for more lines until the run ends.
    #[arg(long, short)]
    pub follow: bool,
}

/// `skills runs assign`
#[derive(Debug, Args)]
pub struct RunsAssignArgs {
    /// Id of the run, or a unique prefix or suffix of it.
    pub run: String,
    /// User to assign; if omitted, the assignment is removed.
    pub to: Option<String>,
    /// Note for the assignee.
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
}

/// `skills runs replay` and `skills runs fork`
#[derive(Debug, Args)]
pub struct BranchArgs {
    /// Id of the run, or a unique prefix or suffix of it.
    pub run: String,
    /// Checkpoint to start from [default: the last].
    #[arg(long, value_name = "N", value_parser = checkpoint)]
    pub checkpoint: Option<u64>,
    #[command(flatten)]
    pub onward: WaitArgs,
}

/// `skills runs compare`
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Id of a run.
    pub run: String,
    /// Id of the run to compare it with.
    pub other: String,
}

/// `skills runs work`
#[derive(Debug, Args)]
pub struct WorkArgs {
    /// Ids of runs [default: all unclaimed runs].
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
    fn values_equal_the_wire_names() {
        assert!(RunState::iter().map(|state| state.to_string()).eq(STATES));
        assert!(Choice::iter().map(|choice| choice.to_string()).eq(CHOICES));
        assert!(AttachTarget::iter().map(|target| target.to_string()).eq(TARGETS));
        assert!(EXPIRIES.iter().all(|word| word.parse::<Expiry>().is_ok()));
        assert!(AUDITS.iter().all(|word| word.parse::<AuditMode>().is_ok()));
        assert!(CONFORMANCES.iter().all(|word| word.parse::<Conformance>().is_ok()));
    }

    #[test]
    fn missing_selection_names_the_run_and_the_filter() {
        for command in ["approve", "deny", "resume", "cancel"] {
            let parsed = <crate::args::Cli as clap::Parser>::try_parse_from(["skills", "runs", command]);
            let error = parsed.unwrap_err();
            assert_eq!(error.exit_code(), 2);
            let message = error.to_string();
            assert!(message.contains("<RUN|--where <FILTER>>"), "{message}");
        }
    }

    #[test]
    fn help_of_where_fits_80_columns() {
        // Clap indents the help of an option by ten columns.
        let help = where_help!("");
        let rows = help.lines().filter(|line| line.starts_with("  "));
        assert_eq!(rows.map(str::len).find(|width| *width > 70), None);
    }

    #[test]
    fn help_of_where_lists_every_filter_key() {
        let help = where_help!("");
        for (key, _) in skills_store::QUERY_KEYS {
            let is_of_key = |line: &str| {
                line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with([':', '.']))
            };
            assert!(help.lines().any(is_of_key), "{key}");
        }
    }
}
