//! The arguments of `skills`, parsed by clap; help texts and the man page are generated from them.

mod authoring;
mod authority;
mod capabilities;
mod golden;
mod governance;
mod groups;
mod mcp;
mod program;
mod proposals;
mod runs;
mod service;
mod sessions;
mod skills;
mod store;
mod value_parsers;

#[cfg(test)]
mod deployment;

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::{ArgAction, ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub use self::authoring::{PackagePrepareArgs, PackageValidateArgs, ScaffoldArgs, ScriptWord};
pub use self::authority::{ExplainPolicyArgs, PolicyAction, PolicyArgs, TrustArgs};
pub use self::capabilities::{ActivateArgs, ExplainCapabilityArgs};
pub use self::golden::{
    BisectArgs, ExpectArgs, GoldenAction, GoldenAddArgs, GoldenArgs, GoldenExplainArgs, GoldenExportArgs,
    GoldenForm, GoldenImportArgs, GoldenListArgs, GoldenRemoveArgs,
};
pub use self::governance::{AuditAction, AuditArgs, GovernanceArgs};
pub use self::mcp::McpArgs;
pub use self::program::{CompletionsArgs, ConfigAction, ConfigArgs, ManArgs};
pub use self::proposals::{
    ApproveProposalArgs, ProposalActionArgs, ProposalsAction, ProposalsArgs, ProposalsListArgs, ProposeArgs,
};
pub use self::runs::{
    AttachArgs, BranchArgs, CancelArgs, CompareArgs, DecideArgs, ExecArgs, InputArgs, ResumeArgs, RunArgs,
    RunsAction, RunsArgs, RunsAssignArgs, RunsBoardArgs, RunsListArgs, RunsLogsArgs, RunsShowArgs,
    RunsViewsArgs, RunsWatchArgs, RunsWorkersArgs, SignalArgs, TraceArgs, WorkArgs,
};
pub use self::service::{KeysAction, KeysArgs, NewKeyArgs, OpenapiArgs, ServeArgs, Verifier, VerifyArgs};
pub use self::sessions::{
    AgentsAction, AgentsArgs, BudgetAction, BudgetArgs, BudgetFitArgs, DemoArgs, ScriptArgs, SessionAction,
    SessionArgs, SettingsArgs,
};
pub use self::skills::{
    CollisionsArgs, Deny, DescribeArgs, DiscoverArgs, DraftArgs, EvalArgs, EvalReportForm, FailOn, LintArgs,
    LintFormat, ListArgs, RivalsArgs, SchemaArgs, VisibilityArgs, WhyArgs,
};
pub use self::store::{BackupArgs, BeforeArgs, ConfirmArgs, DbAction, DbArgs, MigrateArgs, RestoreArgs};
pub use self::value_parsers::InputFileArg;
pub use self::value_parsers::Pair;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use skills_config::MEMORY_STORE;
use skills_store::PostgresAddress;

/// The table of exit codes, in `--help` and in the man page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0   success; a run completed, or was left to another worker
  1   findings, no skill fits, a metric got worse, or a run failed or was denied
  2   invalid usage or configuration
  3   not found
  4   refused: not trusted, forbidden, invalid state, unusable file or folder
  5   waiting for approval or a signal, or paused until it is resumed
  69  the service (--connect) is unreachable or starting; serve: address in use
  70  internal error, or the run store is unusable
  130 interrupted with Ctrl-C; the run is not canceled";

/// A workbench for Agent Skills: see which skill is selected for a request, and why.
#[derive(Debug, Parser)]
#[command(name = "skills", version, after_help = EXIT_CODES)]
#[command(long_about = "A workbench for Agent Skills: see which skill is selected for a request, and \
    why.\n\n\
    Without a command, opens the workbench. Skills are read from --root, else from the configuration, else from the folders of known clients in this project and your home directory. If none has skills, the shipped examples are shown.")]
pub struct Cli {
    /// Options that every command takes.
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Returns the definition of the command line; `--root` is accepted before and after each command.
pub fn command() -> clap::Command {
    let cli = Cli::command();
    let root = cli.get_arguments().find(|arg| arg.get_id() == ROOTS).cloned();
    groups::grouped(match root {
        Some(root) => with_root(cli, &root),
        None => cli,
    })
}

/// Parses the address of a store. Its error does not repeat the address, as those of other parsers do: one that is
/// badly written can contain a password.
#[derive(Debug, Clone, Copy)]
struct StoreAddress;

impl TypedValueParser for StoreAddress {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let is_file = |text: &str| text.strip_prefix("sqlite:").is_some_and(|path| !path.is_empty());
        let is_valid = |text: &&str| is_file(text) || *text == MEMORY_STORE || PostgresAddress::is_one(text);
        value.to_str().filter(is_valid).map(str::to_owned).ok_or_else(|| {
            let expected =
                "`sqlite:PATH`, `postgres://USER@HOST/DATABASE`, or `memory:` for a temporary store";
            invalid_address(command, value, "--store <URL>", expected)
        })
    }
}

/// Returns the error for an invalid address of a store.
fn invalid_address(command: &clap::Command, value: &OsStr, option: &str, expected: &str) -> clap::Error {
    // The value is repeated only if it cannot contain a password.
    let text = value.to_str().unwrap_or_default();
    let is_safe = !text.contains(['@', '=', '/']) && text.matches(':').count() < 2;
    let named = if is_safe { format!("invalid value '{text}'") } else { "invalid value".to_owned() };
    let message = format!("{named} for '{option}': expected {expected}\n");
    clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
}

/// Parses the address of a store in a file: `sqlite:FILE`.
#[derive(Debug, Clone, Copy)]
struct SqliteFile;

impl TypedValueParser for SqliteFile {
    type Value = PathBuf;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<PathBuf, clap::Error> {
        let file =
            value.to_str().and_then(|text| text.strip_prefix("sqlite:")).filter(|file| !file.is_empty());
        file.map(PathBuf::from)
            .ok_or_else(|| invalid_address(command, value, "--from <STORE>", "`sqlite:FILE`"))
    }
}

fn with_root(command: clap::Command, root: &clap::Arg) -> clap::Command {
    command.mut_subcommands(|below| with_root(below.arg(root.clone()), root))
}

impl Cli {
    /// Returns the parsed arguments, with the roots of all levels in order.
    ///
    /// # Errors
    /// Returns clap's errors.
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

/// Clap's id of `--root`, which is the name of the field.
const ROOTS: &str = "roots";

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
#[allow(clippy::struct_excessive_bools, reason = "one switch of the command line each")]
pub struct Global {
    /// Read skills from this folder (repeatable; the first has precedence).
    // Not `global`: if a global option is given both before and after a command, clap keeps only one of them.
    #[arg(long = "root", value_name = "DIR", action = ArgAction::Append)]
    pub roots: Vec<PathBuf>,
    /// Use only the shipped example skills; runs are kept in memory unless --store is given.
    #[arg(long, global = true)]
    pub demo: bool,
    /// Run store: `sqlite:PATH`, `postgres://USER@HOST/DATABASE`, or `memory:` for a temporary
    /// in-memory store (or set `SKILLS_STORE`).
    #[arg(long, value_name = "URL", global = true, value_parser = StoreAddress)]
    pub store: Option<String>,
    /// Fail if the store does not exist, instead of creating it (for containers).
    #[arg(long, global = true)]
    pub store_must_exist: bool,
    /// Use the service at this address instead of this machine (or set `SKILLS_CONNECT`).
    #[arg(long, value_name = "URL", global = true)]
    pub connect: Option<String>,
    /// Read the API key of that service from this file (or set `SKILLS_API_KEY`).
    #[arg(long, value_name = "FILE", global = true)]
    pub api_key_file: Option<PathBuf>,
    /// Do not watch folders for changes.
    #[arg(long, global = true)]
    pub no_watch: bool,
    /// Print JSON, including errors.
    #[arg(long, global = true)]
    pub json: bool,
    /// Disable color (default if `NO_COLOR` is set or output is not a terminal).
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Print log warnings to standard error; twice prints the complete log.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Use a line-based text interface, for screen readers (`skills --plain runs`).
    #[arg(long, global = true)]
    pub plain: bool,
    /// Use this configuration file instead of the user's.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Rank skills for a request and explain the ranking.
    Discover(DiscoverArgs),
    /// List skills.
    List(ListArgs),
    /// Show one skill: metadata, findings, files, tokens.
    Describe(DescribeArgs),
    /// Explain why a skill is or is not selected for a request.
    Why(WhyArgs),
    /// Show which clients see which skills, and why.
    Visibility(VisibilityArgs),
    /// Measure a changed description before writing it.
    Draft(DraftArgs),
    /// Propose a change to a skill for approval.
    Propose(ProposeArgs),
    /// List, show, approve, deny and roll back proposals.
    Proposals(ProposalsArgs),
    /// Show which skills outrank a skill for its own requests.
    Rivals(RivalsArgs),
    /// Find skills that lose their own requests to other skills.
    Collisions(CollisionsArgs),
    /// Check skills against the specification and best practices.
    Lint(LintArgs),
    /// Evaluate the ranking against queries with known answers.
    Eval(EvalArgs),
    /// Manage golden queries.
    Golden(GoldenArgs),
    /// Find the commit that changed which skill ranks first.
    Bisect(BisectArgs),
    /// Run a skill's contract.
    Run(RunArgs),
    /// Attach a skill to a run, output, file, transcript or task.
    Attach(AttachArgs),
    /// List, watch, approve, resume and compare runs.
    Runs(RunsArgs),
    /// Run a skill and print every event.
    Trace(TraceArgs),
    /// Show which binding implements a capability, and why.
    ExplainCapability(ExplainCapabilityArgs),
    /// Choose the binding for a capability on this machine.
    Activate(ActivateArgs),
    /// Check, back up, restore, migrate and purge the run store.
    Db(DbArgs),
    /// Show skill quality states.
    #[command(alias = "skill-governance")]
    Governance(GovernanceArgs),
    /// Verify and show the audit log.
    Audit(AuditArgs),
    /// Delete audit entries and run contents older than a date.
    AuditPurge(BeforeArgs),
    /// Manage sessions: load skills, compose model calls.
    Session(SessionArgs),
    /// List and show agents.
    Agents(AgentsArgs),
    /// Show how a client's budget truncates the catalog.
    Budget(BudgetArgs),
    /// Serve skills, runs and sessions over HTTP and MCP.
    Serve(ServeArgs),
    /// Run conformance checks against a service.
    Verify(VerifyArgs),
    /// Print the OpenAPI document of the service.
    Openapi(OpenapiArgs),
    /// Create API keys for the service.
    Keys(KeysArgs),
    /// Play a demonstration with the shipped skills.
    Demo(DemoArgs),
    /// Serve skills, sessions and runs to an MCP client.
    Mcp(McpArgs),
    /// Print the JSON schema of the skill frontmatter.
    Schema(SchemaArgs),
    /// Show what a skill can execute, and trust it.
    Trust(TrustArgs),
    /// Explain and check the policy.
    Policy(PolicyArgs),
    /// Create a new lint-clean skill.
    Scaffold(ScaffoldArgs),
    /// Create a package from a skill.
    PackagePrepare(PackagePrepareArgs),
    /// Check a package: digests, paths, limits, lint.
    PackageValidate(PackageValidateArgs),
    /// Check this installation: roots, store, sandbox, terminal.
    Doctor,
    /// Print shell completions.
    Completions(CompletionsArgs),
    /// Print the manual page.
    Man(ManArgs),
    /// Locate, check or edit the configuration.
    Config(ConfigArgs),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_definition_is_valid() {
        command().debug_assert();
    }

    #[test]
    fn a_store_is_a_file_or_memory() {
        let store = |url: &str| Cli::try_parse_from(["skills", "runs", "list", "--store", url]);
        assert_eq!(store("sqlite:a.db").unwrap().global.store.as_deref(), Some("sqlite:a.db"));
        assert!(store("memory:").is_ok() && store("postgres://kim@db/runs").is_ok());
        assert!(store("runs.db").unwrap_err().to_string().contains("sqlite:PATH"));
        for wrong in
            ["Postgres://kim:s3cret@db/runs", " postgres://kim:s3cret@db/runs", "postgres:kim:s3cret@db"]
        {
            let error = store(wrong).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(
                !error.to_string().contains("s3cret") && !format!("{error:?}").contains("s3cret"),
                "{error}"
            );
        }
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
    fn roots_before_and_after_a_command_keep_their_order() {
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
    fn invalid_role_error_lists_valid_roles() {
        let error = Cli::try_parse_from(["skills", "list", "--role", "sidecr"]).unwrap_err().to_string();
        assert!(error.contains("procedure, utility, sidecar"), "{error}");
    }
}
