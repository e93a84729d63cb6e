//! Arguments of the commands that read skills: discover, list, describe, lint, eval, schema.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use skills_api::MOST_RESULTS;
use skills_discovery::Policy;
use skills_skill::Role;

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
    /// The list of this client (e.g. claude-code, or claude-code@2.1.197 for that version), in its order and with its
    /// names, and what it does not list and why.
    #[arg(long, value_name = "CLIENT")]
    pub client: Option<String>,
    /// So many skills at most, 1 to 1,000; all of them without.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// The page behind one that ended with this cursor.
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

impl ListArgs {
    /// Whether only some of the skills are asked for.
    pub fn is_filtered(&self) -> bool {
        let one = self.role.is_some() || self.status.is_some() || self.query.is_some();
        one || !self.domain.is_empty() || self.limit.is_some() || self.cursor.is_some()
    }
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

/// `skills why`
#[derive(Debug, Args)]
#[command(
    after_help = "Checks, in order: the client searches the folder, the file can be parsed, the skill wins its \
    name, it is offered to the model, its description survives the client's budget, it ranks first, it has the terms of \
    the request, no exclusion clause matches.\nExits with 1 when a check fails."
)]
pub struct WhyArgs {
    /// Id, name or location of a skill; also of a file that cannot be parsed.
    pub skill: String,
    /// The request; `-` reads it from standard input. Without one, only the checks that need none are made.
    #[arg(value_name = "REQUEST")]
    pub intent: Vec<String>,
    /// Check only this client (repeatable); those that search the skill's folder by default.
    #[arg(long, value_name = "CLIENT")]
    pub client: Vec<String>,
}

/// `skills draft`
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing is written without --write. Golden sets are those of the roots (golden.yaml, evals/*.json)."
)]
pub struct DraftArgs {
    /// Id, name or location of a skill.
    pub skill: String,
    /// The description to try; `-` reads it from standard input. Without one, the present description is measured.
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// The name to try.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The tags to try.
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Rank for this request with and without the draft.
    #[arg(long, value_name = "REQUEST")]
    pub request: Option<String>,
    /// Measure what each clause of the description is worth.
    #[arg(long)]
    pub clauses: bool,
    /// Write the description into the file; every other byte stays.
    #[arg(long)]
    pub write: bool,
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
    /// Print the evaluation in this form (`--json` is `--report json`).
    #[arg(long, value_name = "FORM", value_enum)]
    pub report: Option<EvalReportForm>,
    /// Only the queries that expect this skill.
    #[arg(long, value_name = "SKILL")]
    pub skill: Option<String>,
    /// How much worse a measure may be, as a fraction of 1.
    #[arg(long, value_name = "X", default_value_t = 0.005, requires = "baseline")]
    pub tolerance: f64,
}

/// How `skills eval` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EvalReportForm {
    /// For a comment on a pull request.
    Markdown,
    /// `JUnit` XML, a test case for each query.
    Junit,
    /// All data.
    Json,
    /// Workflow commands of GitHub Actions.
    Github,
}

/// `skills schema`
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Compare with this file instead of printing; exits with 1 when it differs.
    #[arg(long, value_name = "FILE")]
    pub check: Option<PathBuf>,
}

pub(super) const ROLES: [&str; 3] = ["procedure", "utility", "sidecar"];
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
}
