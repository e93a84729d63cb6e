//! The arguments of `skills`, as clap reads them; help texts and the man page come from here.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{
    ArgAction, ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum,
};

use crate::discovery::Policy;
use crate::gateway::MOST_RESULTS;
use crate::skill::Role;

/// The table of exit codes, in `--help` and in the man page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0   done
  1   findings, no skill fits, or a measure got worse
  2   wrong usage or configuration
  3   not found
  4   refused
  5   waiting for a person
  70  internal error";

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
    match root {
        Some(root) => with_root(cli, &root),
        None => cli,
    }
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
    /// Check skills against the specification and good practice.
    Lint(LintArgs),
    /// Measure the ranking against queries with known answers.
    Eval(EvalArgs),
    /// Print the JSON schema of a skill's frontmatter.
    Schema(SchemaArgs),
    /// Say what this program finds here: roots, configuration, cache, terminal.
    Doctor,
    /// Print completions for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page.
    Man(ManArgs),
    /// Show, check or edit the configuration.
    Config(ConfigArgs),
}

/// `skills discover`
#[derive(Debug, Args)]
#[command(after_help = "The ranking is this router's own; the model behind a client may choose otherwise.\n\
    Exits with 1 when no skill fits.")]
pub struct DiscoverArgs {
    /// What you want, in your words; `-` reads it from standard input.
    #[arg(required = true, value_name = "INTENT")]
    pub intent: Vec<String>,
    /// Print the ledger: what each word gave by each signal.
    #[arg(long)]
    pub explain: bool,
    /// How many results `--explain` explains.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "explain")]
    pub top: usize,
    /// Explain this skill, wherever it stands.
    #[arg(long, value_name = "SKILL")]
    pub skill: Option<String>,
    /// Only skills of this role (asking for sidecars ranks them too).
    #[arg(long, value_parser = words::<Role>(&ROLES))]
    pub role: Option<Role>,
    /// Only skills of these domains.
    #[arg(long, value_delimiter = ',')]
    pub domain: Vec<String>,
    /// How many results at most, 1 to 1000; 10, where the configuration says nothing else.
    #[arg(long, value_name = "N", value_parser = limit)]
    pub limit: Option<usize>,
    /// How role, status and read-only rules meet the text score; blended, where the configuration
    /// says nothing else.
    #[arg(long, value_parser = words::<Policy>(&POLICIES))]
    pub policy: Option<Policy>,
    /// Leave headings and bodies out.
    #[arg(long)]
    pub no_body: bool,
    /// Rank deprecated skills too.
    #[arg(long)]
    pub include_deprecated: bool,
}

/// `skills list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only these domains.
    #[arg(long, value_delimiter = ',')]
    pub domain: Vec<String>,
    /// Only this role.
    #[arg(long, value_parser = words::<Role>(&ROLES))]
    pub role: Option<Role>,
    /// Only this status, e.g. stable, experimental, deprecated.
    #[arg(long)]
    pub status: Option<String>,
    /// Fuzzy filter over ids and names; the best match comes first.
    #[arg(long, value_name = "TEXT")]
    pub query: Option<String>,
    /// As this client sees them (e.g. claude-code): found, shadowed, dropped.
    #[arg(long, value_name = "CLIENT")]
    pub client: Option<String>,
}

/// `skills describe`
#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// Id, name or location of a skill.
    pub skill: String,
    /// Print the file itself.
    #[arg(long)]
    pub source: bool,
}

/// How `skills lint` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// For people, with the source line.
    Text,
    /// Workflow commands that GitHub shows beside the line.
    Github,
}

/// What makes `skills lint` fail beside errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Warnings too.
    Warnings,
}

/// `skills lint`
#[derive(Debug, Args)]
#[command(after_help = "Exits with 1 when there are errors; warnings alone do not fail.")]
pub struct LintArgs {
    /// `SKILL.md` files or folders with skills; without any, all roots.
    pub paths: Vec<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = LintFormat::Text)]
    pub format: LintFormat,
    /// Repair what can be repaired without a guess: quoting, fences, byte order mark, line endings.
    #[arg(long)]
    pub fix: bool,
    /// Fail on these too.
    #[arg(long, value_enum)]
    pub deny: Option<Deny>,
}

/// `skills eval`
#[derive(Debug, Args)]
#[command(after_help = "Without --skills and --queries, the golden.yaml files of the roots are measured.\n\
    Exits with 1 when a measure is worse than the baseline's by more than the tolerance.")]
pub struct EvalArgs {
    /// Skills, one JSON object a line: id, name, description, tags, headings, body.
    #[arg(long, value_name = "FILE", requires = "queries")]
    pub skills: Option<PathBuf>,
    /// Queries, one JSON object a line: query, relevant (ids).
    #[arg(long, value_name = "FILE")]
    pub queries: Option<PathBuf>,
    /// Queries that no skill fits, one JSON object a line: query.
    #[arg(long, value_name = "FILE", requires = "queries")]
    pub out_of_scope: Option<PathBuf>,
    /// How rules meet the text score.
    #[arg(long, value_parser = words::<Policy>(&POLICIES))]
    pub policy: Option<Policy>,
    /// Leave headings and bodies out.
    #[arg(long)]
    pub no_body: bool,
    /// Compare with an earlier `--json` answer.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// How much worse a measure may be, as a fraction of 1.
    #[arg(long, value_name = "X", default_value_t = 0.005, requires = "baseline")]
    pub tolerance: f64,
}

/// `skills schema`
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Compare with this file instead of printing; exits with 1 when it differs.
    #[arg(long, value_name = "FILE")]
    pub check: Option<PathBuf>,
}

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

const ROLES: [&str; 3] = ["procedure", "utility", "sidecar"];
const POLICIES: [&str; 2] = ["blended", "strict"];

/// A parser for one of the core's closed vocabularies: the words are those of the wire.
fn words<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: std::str::FromStr + Clone + Send + Sync + 'static,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|word| word.parse::<T>())
}

fn limit(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|limit| (1..=MOST_RESULTS).contains(limit))
        .ok_or_else(|| format!("allowed: a whole number from 1 to {MOST_RESULTS}"))
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    #[test]
    fn the_words_are_those_of_the_wire() {
        assert!(Role::iter().map(|role| role.to_string()).eq(ROLES));
        assert!(Policy::iter().map(|policy| policy.to_string()).eq(POLICIES));
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
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
