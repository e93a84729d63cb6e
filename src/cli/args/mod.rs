//! The arguments of `skills`, as clap reads them; help texts and the man page come from here.

mod authoring;
mod authority;
mod capabilities;
mod governance;
mod groups;
mod mcp;
mod program;
mod runs;
mod service;
mod sessions;
mod skills;
mod store;
mod words;

use std::path::PathBuf;

use clap::{ArgAction, ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub use self::authoring::{PackagePrepareArgs, PackageValidateArgs, ScaffoldArgs, ScriptWord};
pub use self::authority::{ExplainPolicyArgs, PolicyAction, PolicyArgs, TrustArgs};
pub use self::capabilities::{ActivateArgs, ExplainCapabilityArgs};
pub use self::governance::{AuditAction, AuditArgs, GovernanceArgs};
pub use self::mcp::McpArgs;
pub use self::program::{CompletionsArgs, ConfigAction, ConfigArgs, ManArgs};
pub use self::runs::{
    AttachArgs, BranchArgs, CompareArgs, DecideArgs, ExecArgs, InputArgs, OneRunArgs, ResumeArgs, RunArgs,
    RunsAction, RunsArgs, RunsListArgs, RunsShowArgs, RunsWatchArgs, SignalArgs, TraceArgs, WorkArgs,
};
pub use self::service::{KeysAction, KeysArgs, NewKeyArgs, OpenapiArgs, ServeArgs, Verifier, VerifyArgs};
pub use self::sessions::{
    AgentsAction, AgentsArgs, BudgetArgs, DemoArgs, SessionAction, SessionArgs, SettingsArgs,
};
pub use self::skills::{
    Deny, DescribeArgs, DiscoverArgs, DraftArgs, EvalArgs, EvalReportForm, LintArgs, LintFormat, ListArgs,
    SchemaArgs, WhyArgs,
};
pub use self::store::{BackupArgs, BeforeArgs, ConfirmArgs, DbAction, DbArgs};
pub use self::words::HandedFile;
pub use self::words::Pair;

use skills_config::MEMORY_STORE;

/// The table of exit codes, in `--help` and in the man page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0   done; a run completed, or was left to a worker
  1   findings, no skill fits, a measure got worse, or a run failed or was denied
  2   wrong usage or configuration
  3   not found
  4   refused: by its state, for want of trust, by policy
  5   waiting for a person or a signal
  69  the service (--connect) cannot be reached, or is still starting
  70  internal error, or the store of runs cannot be used
  130 left with Ctrl-C; the run stays as it was";

/// A workbench for Agent Skills: see which skill wins a request, and why.
#[derive(Debug, Parser)]
#[command(name = "skills", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
#[command(long_about = "A workbench for Agent Skills: see which skill wins a request, and why.\n\n\
    Without a command it opens the workbench. Skills are read from --root, else from the configuration, \
    else from the folders of the known clients in this project and in your home, else the examples that \
    ship with this program are shown.")]
pub struct Cli {
    /// Options that every command takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do; nothing opens the workbench.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The definition of the command line: `--root` counts before and behind each command.
pub fn command() -> clap::Command {
    let cli = Cli::command();
    let root = cli.get_arguments().find(|arg| arg.get_id() == ROOTS).cloned();
    groups::grouped(match root {
        Some(root) => with_root(cli, &root),
        None => cli,
    })
}

/// Reads the address of a store.
fn store(text: &str) -> Result<String, String> {
    let file = text.strip_prefix("sqlite:").is_some_and(|path| !path.is_empty());
    if file || text == MEMORY_STORE {
        return Ok(text.to_owned());
    }
    Err("write sqlite:PATH, or memory: for a trial".to_owned())
}

fn with_root(command: clap::Command, root: &clap::Arg) -> clap::Command {
    command.mut_subcommands(|below| with_root(below.arg(root.clone()), root))
}

impl Cli {
    /// What was given, with the roots of all levels in order.
    ///
    /// # Errors
    /// As clap's.
    pub fn of(found: &ArgMatches) -> Result<Self, clap::Error> {
        let mut cli = Self::from_arg_matches(found)?;
        let mut level = found;
        while let Some((_, below)) = level.subcommand() {
            cli.global.roots.extend(below.get_many::<PathBuf>(ROOTS).into_iter().flatten().cloned());
            level = below;
        }
        Ok(cli)
    }
}

/// Clap's name of `--root`: the field's.
const ROOTS: &str = "roots";

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
#[allow(clippy::struct_excessive_bools, reason = "one switch of the command line each")]
pub struct Global {
    /// Read skills from this folder (may be given several times; the first wins a name).
    // Not `global`: of a global option given on both sides of a command clap keeps one side alone.
    #[arg(long = "root", value_name = "DIR", action = ArgAction::Append)]
    pub roots: Vec<PathBuf>,
    /// Only the shipped example skills; nothing is read from or written to your folders.
    #[arg(long, global = true)]
    pub demo: bool,
    /// Where runs are kept: `sqlite:PATH`, or `memory:` for a trial that ends with the command.
    #[arg(long, value_name = "URL", global = true, value_parser = store)]
    pub store: Option<String>,
    /// Refuse to create the store where it is missing (for containers, where no record of earlier ones survives).
    #[arg(long, global = true)]
    pub store_must_exist: bool,
    /// Work on the service at this address instead of on this machine (or set `SKILLS_CONNECT`).
    #[arg(long, value_name = "URL", global = true)]
    pub connect: Option<String>,
    /// Take the key for that service from this file (or set `SKILLS_API_KEY`).
    #[arg(long, value_name = "FILE", global = true)]
    pub api_key_file: Option<PathBuf>,
    /// Do not follow changes of the folders.
    #[arg(long, global = true)]
    pub no_watch: bool,
    /// Answer in JSON, errors too.
    #[arg(long, global = true)]
    pub json: bool,
    /// No colour (as with `NO_COLOR` set, or into a pipe).
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Show warnings of the log on standard error; twice shows all of it.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Read this configuration file instead of the user's.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Rank the skills for a request, and say why.
    Discover(DiscoverArgs),
    /// List the skills.
    List(ListArgs),
    /// Show one skill: record, findings, files, tokens.
    Describe(DescribeArgs),
    /// Explain why a skill is used for a request or not.
    Why(WhyArgs),
    /// Try another description before it is written.
    Draft(DraftArgs),
    /// Check skills against the specification and good practice.
    Lint(LintArgs),
    /// Measure the ranking against queries with known answers.
    Eval(EvalArgs),
    /// Run a skill's contract until it ends or waits.
    Run(RunArgs),
    /// Attach a skill to a run, its output, a file, or a task.
    Attach(AttachArgs),
    /// List, watch, decide, resume and compare runs.
    Runs(RunsArgs),
    /// Run a skill and print every event of it.
    Trace(TraceArgs),
    /// Say which binding carries a capability out, and why.
    ExplainCapability(ExplainCapabilityArgs),
    /// Choose the binding of a capability on this machine.
    Activate(ActivateArgs),
    /// Check, copy, clear and replace the store of runs.
    Db(DbArgs),
    /// Say how far skills have proved themselves.
    #[command(alias = "skill-governance")]
    Governance(GovernanceArgs),
    /// Verify and show the log of runs, decisions and trust.
    Audit(AuditArgs),
    /// Forget inputs, output and audit lines of long ago.
    AuditPurge(BeforeArgs),
    /// See what a model is given: load, read, compose.
    Session(SessionArgs),
    /// Show which agents there are.
    Agents(AgentsArgs),
    /// Show what a client's bounds leave of the catalogue.
    Budget(BudgetArgs),
    /// Answer over HTTP: skills, runs, sessions, events.
    Serve(ServeArgs),
    /// Make sure that a service keeps its promises.
    Verify(VerifyArgs),
    /// Print the `OpenAPI` document of the service.
    Openapi(OpenapiArgs),
    /// Make keys for the service.
    Keys(KeysArgs),
    /// Play a demonstration on the shipped skills.
    Demo(DemoArgs),
    /// Serve skills, sessions and runs to an MCP client.
    Mcp(McpArgs),
    /// Print the JSON schema of a skill's frontmatter.
    Schema(SchemaArgs),
    /// Show what a skill would run, and trust it as it is.
    Trust(TrustArgs),
    /// Explain and check the policy of what may run.
    Policy(PolicyArgs),
    /// Make a new skill that lint has nothing to say about.
    Scaffold(ScaffoldArgs),
    /// Pack a skill as one file, with a manifest of digests.
    PackagePrepare(PackagePrepareArgs),
    /// Check such a file: digests, paths, limits, lint.
    PackageValidate(PackageValidateArgs),
    /// Say what is found here: roots, store, isolation, terminal.
    Doctor,
    /// Print completions for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page.
    Man(ManArgs),
    /// Show, check or edit the configuration.
    Config(ConfigArgs),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn a_store_is_a_file_or_memory() {
        let store = |url: &str| Cli::try_parse_from(["skills", "runs", "list", "--store", url]);
        assert_eq!(store("sqlite:a.db").unwrap().global.store.as_deref(), Some("sqlite:a.db"));
        assert!(store("memory:").is_ok());
        assert!(store("runs.db").unwrap_err().to_string().contains("sqlite:PATH"));
    }

    #[test]
    fn an_intent_needs_no_quotes_and_options_may_follow() {
        let cli = Cli::try_parse_from(["skills", "discover", "read", "a", "pdf", "--limit", "3", "--json"])
            .unwrap();
        assert!(cli.global.json);
        let Some(Command::Discover(args)) = cli.command else { panic!("not discover") };
        assert_eq!((args.intent.join(" ").as_str(), args.limit), ("read a pdf", Some(3)));
    }

    #[test]
    fn roots_before_and_behind_a_command_count_in_order() {
        let roots = |args: &str| {
            let found = command().try_get_matches_from(args.split(' ')).unwrap();
            Cli::of(&found).unwrap().global.roots
        };
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(roots("skills --root a list --root b --root=c"), paths(&["a", "b", "c"]));
        assert_eq!(roots("skills --root a config --root b check --root c"), paths(&["a", "b", "c"]));
        assert_eq!(roots("skills list --root b"), paths(&["b"]));
        assert_eq!(roots("skills --root a"), paths(&["a"]));
    }

    #[test]
    fn a_wrong_role_names_the_right_ones() {
        let error = Cli::try_parse_from(["skills", "list", "--role", "sidecr"]).unwrap_err().to_string();
        assert!(error.contains("procedure, utility, sidecar"), "{error}");
    }
}
