//! Arguments of `skills golden` and `skills bisect`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::value_parsers::{expected_skill, integer_from};

/// `skills golden`
#[derive(Debug, Args)]
pub struct GoldenArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: GoldenAction,
}

/// What `skills golden` does.
#[derive(Debug, Subcommand)]
pub enum GoldenAction {
    /// List golden queries with their results, failing ones first.
    List(GoldenListArgs),
    /// Explain the result of a query, and which description change would fix it.
    Explain(GoldenExplainArgs),
    /// Add a query to your golden.yaml.
    Add(GoldenAddArgs),
    /// Remove a query from its golden.yaml; comments are kept.
    Remove(GoldenRemoveArgs),
    /// Add the queries of a file to your golden.yaml.
    Import(GoldenImportArgs),
    /// Print golden queries in a file format.
    Export(GoldenExportArgs),
}

/// `skills golden list`
#[derive(Debug, Args)]
#[command(
    after_help = "Golden sets are golden.yaml files and evals/*.json of the roots, and your own golden.yaml: next \
    to the project's .skill-workbench.yaml, else in the configuration folder.\nExits with 1 if a query fails."
)]
pub struct GoldenListArgs {
    /// List only queries about this skill.
    #[arg(long, value_name = "SKILL")]
    pub skill: Option<String>,
    /// List only failing queries.
    #[arg(long)]
    pub failing: bool,
}

/// What should happen with a query.
#[derive(Debug, Args)]
pub struct ExpectArgs {
    /// Expected skills, separated by commas (repeatable); any of them may rank first.
    #[arg(long, value_name = "SKILL", value_delimiter = ',', value_parser = expected_skill,
          conflicts_with_all = ["none", "not"])]
    pub expect: Vec<String>,
    /// Expect that no skill fits.
    #[arg(long, conflicts_with = "not")]
    pub none: bool,
    /// Skill that must not rank first.
    #[arg(long, value_name = "SKILL", value_parser = expected_skill)]
    pub not: Option<String>,
}

/// `skills golden explain`
#[derive(Debug, Args)]
#[command(
    after_help = "Without --expect, --none and --not, the query must be part of a golden set.\nExits with 1 if the query \
    is missed."
)]
pub struct GoldenExplainArgs {
    /// The query; `-` reads standard input.
    pub query: String,
    /// What should happen.
    #[command(flatten)]
    pub expect: ExpectArgs,
}

/// `skills golden add`
#[derive(Debug, Args)]
pub struct GoldenAddArgs {
    /// The query; `-` reads standard input.
    pub query: String,
    /// What should happen.
    #[command(flatten)]
    pub expect: ExpectArgs,
    /// The golden.yaml to change [default: your own].
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// `skills golden remove`
#[derive(Debug, Args)]
pub struct GoldenRemoveArgs {
    /// The query, exactly as in the file.
    pub query: String,
    /// The golden.yaml to change [default: your own].
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// A file format of golden queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GoldenForm {
    /// A golden.yaml.
    Yaml,
    /// The evaluation file of one skill.
    Json,
    /// JSON Lines: query with relevant or `not_skill`.
    Jsonl,
    /// A table: query, expect, not.
    Csv,
}

/// `skills golden import`
#[derive(Debug, Args)]
#[command(
    after_help = "Reads evaluation files of skills ([{\"query\", \"should_trigger\"}] or {\"evals\": [{\"prompt\"}]}), JSON \
    lines, CSV with a header, and golden.yaml files. Queries that are already in the file are skipped.\nExits with 1 if queries \
    have a different expectation there; they are not imported."
)]
pub struct GoldenImportArgs {
    /// Files to import.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// File format [default: by the extension].
    #[arg(long, value_enum)]
    pub format: Option<GoldenForm>,
    /// Skill that evaluation files belong to [default: their `skill_name`, or the folder that contains evals/].
    #[arg(long, value_name = "SKILL")]
    pub skill: Option<String>,
    /// The golden.yaml to change [default: your own].
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}

/// `skills golden export`
#[derive(Debug, Args)]
pub struct GoldenExportArgs {
    /// File format.
    #[arg(long, value_enum, default_value_t = GoldenForm::Yaml)]
    pub format: GoldenForm,
    /// Export only queries about this skill; required for json.
    #[arg(long, value_name = "SKILL", required_if_eq("format", "json"))]
    pub skill: Option<String>,
}

/// `skills bisect`
#[derive(Debug, Args)]
#[command(
    after_help = "Reads commits with git, from the newest to older ones, without a checkout; the working tree is \
    ignored. For roots outside the repository, the current skills are used.\nExits with 1 if no commit changed which skill ranks first."
)]
pub struct BisectArgs {
    /// Request; `-` reads standard input.
    #[arg(required = true, value_name = "REQUEST")]
    pub request: Vec<String>,
    /// Search for the commit by which this skill became first, or stopped being first.
    #[arg(long, value_name = "SKILL")]
    pub skill: Option<String>,
    /// Start at this commit and go back.
    #[arg(long, value_name = "GIT-REF", default_value = "HEAD")]
    pub from: String,
    /// Maximum number of commits.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = integer_from(0_usize))]
    pub max_commits: usize,
}
