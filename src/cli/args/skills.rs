//! Arguments of the commands that read skills: discover, list, describe, lint, eval, schema.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use skills_api::MAX_RESULTS;
use skills_discovery::Policy;
use skills_skill::{Role, Severity};

/// Severities of findings, as the wire names them.
const SEVERITIES: &[&str] = &["info", "warning", "error"];

/// `skills discover`
#[derive(Debug, Args)]
#[command(
    after_help = "Ranked by Skill Workbench; a client's model may choose differently.\nExits with 1 if no skill fits."
)]
pub struct DiscoverArgs {
    /// Request in natural language; `-` reads standard input. With `--plain`, prompts for it if omitted.
    #[arg(value_name = "REQUEST")]
    pub intent: Vec<String>,
    /// Print the score breakdown by word and component.
    #[arg(long)]
    pub explain: bool,
    /// Number of results to explain with --explain.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "explain",
        value_parser = super::value_parsers::integer_from(0_usize))]
    pub top: usize,
    /// Explain this skill, regardless of its rank.
    #[arg(long, value_name = "SKILL")]
    pub skill: Option<String>,
    /// Show only skills of this role (`sidecar` includes sidecars in the ranking).
    #[arg(long, value_parser = super::value_parsers::parse_name::<Role>(&ROLES))]
    pub role: Option<Role>,
    /// Show only skills of these domains.
    #[arg(long, value_delimiter = ',')]
    pub domain: Vec<String>,
    /// Maximum number of results, 1 to 1000 [default: 10, or as configured].
    #[arg(long, value_name = "N", value_parser = limit)]
    pub limit: Option<usize>,
    /// How role, status and read-only rules combine with the text score [default: blended, or as
    /// configured].
    #[arg(long, visible_alias = "ranking-policy", value_parser = super::value_parsers::parse_name::<Policy>(&POLICIES))]
    pub policy: Option<Policy>,
    /// Ignore headings and bodies.
    #[arg(long)]
    pub no_body: bool,
    /// Include deprecated skills.
    #[arg(long)]
    pub include_deprecated: bool,
}

/// `skills list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Show only skills of these domains.
    #[arg(long, value_delimiter = ',')]
    pub domain: Vec<String>,
    /// Show only skills of this role.
    #[arg(long, value_parser = super::value_parsers::parse_name::<Role>(&ROLES))]
    pub role: Option<Role>,
    /// Show only skills with this status, e.g. stable, experimental, deprecated.
    #[arg(long)]
    pub status: Option<String>,
    /// Filter by id, name and description, best match first.
    #[arg(long, value_name = "TEXT")]
    pub query: Option<String>,
    /// Show the list of this client (e.g. claude-code, or claude-code@2.1.197 for that version), in its
    /// order and with its names, and what it omits and why.
    #[arg(long, value_name = "CLIENT")]
    pub client: Option<String>,
    /// Maximum number of skills, 1 to 1000 [default: all].
    #[arg(long, value_name = "N", value_parser = limit)]
    pub limit: Option<usize>,
    /// Continue after the page that ended with this cursor.
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

impl ListArgs {
    /// Returns whether only some of the skills are requested.
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
    /// Print the content of the file.
    #[arg(long)]
    pub source: bool,
}

/// `skills why`
#[derive(Debug, Args)]
#[command(
    after_help = "Checks, first of the skill: the file can be parsed; it ranks first; it contains the \
        terms of the request; no exclusion clause matches. Then of each client: it searches the folder and can parse the file; the skill is not shadowed; it is offered to the model; its description fits the client's budget.\nExits with 1 if a check fails."
)]
pub struct WhyArgs {
    /// Id, name or location of a skill, including skills that cannot be parsed.
    pub skill: String,
    /// Request; `-` reads standard input. Without one, checks that need a request are skipped.
    #[arg(value_name = "REQUEST")]
    pub intent: Vec<String>,
    /// Check only this client (repeatable) [default: clients that search the skill's folder].
    #[arg(long, value_name = "CLIENT")]
    pub client: Vec<String>,
}

/// `skills visibility`
#[derive(Debug, Args)]
#[command(
    after_help = "For one skill, exits with 1 if no client that searches its folder shows it with a description."
)]
pub struct VisibilityArgs {
    /// Id, name or location of a skill, including skills that cannot be parsed [default: all skills].
    pub skill: Option<String>,
    /// Show only this client (repeatable) [default: all].
    #[arg(long, value_name = "CLIENT")]
    pub client: Vec<String>,
    /// Maximum number of skills, 1 to 1000 [default: all].
    #[arg(long, value_name = "N", value_parser = limit)]
    pub limit: Option<usize>,
    /// Continue after the page that ended with this cursor.
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

/// `skills draft`
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing is written without --write or --propose. Golden sets are those of the roots (golden.yaml, \
        evals/*.json)."
)]
pub struct DraftArgs {
    /// Id, name or location of a skill.
    pub skill: String,
    /// Description to try; `-` reads standard input [default: the current description].
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// `when_to_use` to try, which Claude Code appends to the description; an empty value removes it.
    #[arg(long, value_name = "TEXT")]
    pub when_to_use: Option<String>,
    /// Name to try.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Tags to try.
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Rank this request with and without the draft.
    #[arg(long, value_name = "REQUEST")]
    pub request: Option<String>,
    /// Measure the contribution of each clause of the description.
    #[arg(long)]
    pub clauses: bool,
    /// Print a prompt that asks a model or a colleague for a better description. It names missed queries, false
    /// triggers, neighboring skills and length limits; 40 % of the golden queries are held out to judge the result.
    #[arg(long, conflicts_with = "write")]
    pub prompt: bool,
    /// Write the description and `when_to_use` to the file; all other bytes are unchanged. If the file cannot be
    /// written, or with --connect, the change is proposed instead.
    #[arg(long)]
    pub write: bool,
    /// Propose the change instead of writing it.
    #[arg(long, conflicts_with = "write")]
    pub propose: bool,
    /// Justification of the proposal.
    #[arg(long, value_name = "TEXT")]
    pub justification: Option<String>,
}

/// How `skills lint` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// Human-readable, with the source line.
    Text,
    /// GitHub workflow commands, shown next to the line.
    Github,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// The same as --json.
    Json,
}

/// The findings that make `skills lint` fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Never fail on findings.
    None,
    /// Fail on errors.
    Errors,
    /// Fail on errors and warnings.
    Warnings,
    /// Fail on every finding.
    All,
}

/// `skills rivals`
#[derive(Debug, Args)]
#[command(
    after_help = "Probe requests are made from each clause of a description and ranked against all skills. \
    Without SKILL, lists the skills that lose requests. The first run on a large collection can take a minute."
)]
pub struct RivalsArgs {
    /// Id, unambiguous name or location [default: all skills that lose requests].
    pub skill: Option<String>,
    /// Print all rows.
    #[arg(long)]
    pub all: bool,
}

/// What makes `skills collisions` fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Any collision.
    Collisions,
    /// A collision that is not in the baseline.
    NewCollisions,
}

/// `skills collisions`
#[derive(Debug, Args)]
#[command(
    after_help = "A collision is a skill that loses at least two, and at least 20 %, of its probe requests to \
    one other skill. With two skills, prints what separates them and measured advice."
)]
pub struct CollisionsArgs {
    /// Show the cluster of one skill, or compare two skills [default: all skills].
    #[arg(num_args = 0..=2, value_name = "SKILL")]
    pub skills: Vec<String>,
    /// Exit with 1 on these collisions.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// File of known collisions.
    #[arg(long, value_name = "FILE", required_if_eq("fail_on", "new-collisions"))]
    pub baseline: Option<PathBuf>,
    /// Write the current collisions to the baseline, and exit with 0.
    #[arg(long, requires = "baseline")]
    pub write_baseline: bool,
    /// Print all clusters, collisions and groups.
    #[arg(long)]
    pub all: bool,
}

/// `skills lint`
#[derive(Debug, Args)]
#[command(after_help = "Exits with 1 if there are errors; --deny selects other findings.\n\n\
    A comment suppresses a rule for its line and the next, or for the complete file; the reason is required:\n  \
    <!-- skills-lint: ignore broken-link: created at install time -->\n  \
    <!-- skills-lint: ignore-file body-many-lines: a generated table -->\n\
    In frontmatter and skill.yaml, use `# skills-lint: …`.")]
pub struct LintArgs {
    /// `SKILL.md` files, folders with skills, or ids of skills [default: all roots].
    pub paths: Vec<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = LintFormat::Text)]
    pub format: LintFormat,
    /// Print only findings of this severity or above.
    #[arg(long, value_name = "SEVERITY", value_parser = super::value_parsers::parse_name::<Severity>(SEVERITIES))]
    pub level: Option<Severity>,
    /// Print only the number of findings of each rule and severity.
    #[arg(long)]
    pub summary: bool,
    /// Fix what can be fixed unambiguously: quoting, fences, byte order mark, line endings.
    #[arg(long)]
    pub fix: bool,
    /// Findings that cause exit code 1, printed or not [default: errors].
    #[arg(long, value_enum)]
    pub deny: Option<Deny>,
    /// File of known findings; only other findings are printed and cause exit code 1.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write all current findings to the baseline, and exit with 0.
    #[arg(long, requires = "baseline")]
    pub write_baseline: bool,
    /// Also check that the commands and environment variables used in instructions exist on this machine.
    #[arg(long)]
    pub environment: bool,
    /// Print the rules with their reasons and examples.
    #[arg(long, conflicts_with_all = ["paths", "fix", "baseline", "environment", "summary"])]
    pub rules: bool,
}

/// `skills eval`
#[derive(Debug, Args)]
#[command(after_help = "Without --skills and --queries, evaluates the golden.yaml files of the \
    roots.\nExits with 1 if a metric is worse than the baseline by more than the tolerance.")]
pub struct EvalArgs {
    /// File of skills, one JSON object per line: id, name, description, tags, headings, body.
    #[arg(long, value_name = "FILE", requires = "queries")]
    pub skills: Option<PathBuf>,
    /// File of queries, one JSON object per line: query, relevant (ids).
    #[arg(long, value_name = "FILE")]
    pub queries: Option<PathBuf>,
    /// File of out-of-scope queries, one JSON object per line: query.
    #[arg(long, value_name = "FILE", requires = "queries")]
    pub out_of_scope: Option<PathBuf>,
    /// How rules combine with the text score.
    #[arg(long, visible_alias = "ranking-policy", value_parser = super::value_parsers::parse_name::<Policy>(&POLICIES))]
    pub policy: Option<Policy>,
    /// Ignore headings and bodies.
    #[arg(long)]
    pub no_body: bool,
    /// Compare with an earlier `--json` output.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Compare with the skills of this git commit: `HEAD`, `main`, `v1.2`.
    #[arg(long, value_name = "GIT-REF", conflicts_with_all = ["baseline", "skills"])]
    pub against: Option<String>,
    /// Evaluate again whenever a skill or golden set changes.
    #[arg(long, conflicts_with_all = ["skills", "report"])]
    pub watch: bool,
    /// Skip the search for description changes that fix missed queries.
    #[arg(long)]
    pub no_advice: bool,
    /// Report format (`--json` is `--report json`).
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub report: Option<EvalReportForm>,
    /// Evaluate only queries that expect this skill.
    #[arg(long, value_name = "SKILL")]
    pub skill: Option<String>,
    /// How much a metric may drop before the command fails, from 0 to 1.
    #[arg(long, value_name = "X", default_value_t = 0.005, value_parser = super::value_parsers::fraction)]
    pub tolerance: f64,
}

/// How `skills eval` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EvalReportForm {
    /// Markdown for a comment on a pull request.
    Markdown,
    /// JUnit XML, one test case per query.
    Junit,
    /// All data.
    Json,
    /// GitHub workflow commands.
    Github,
}

/// `skills schema`
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Compare this file with the schema instead of printing; exits with 1 if they differ.
    #[arg(long, value_name = "FILE")]
    pub check: Option<PathBuf>,
}

pub(super) const ROLES: [&str; 3] = ["procedure", "utility", "sidecar"];
const POLICIES: [&str; 2] = ["blended", "strict"];

/// Parses a number of results, 1 to 1000.
pub(super) fn limit(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|limit| (1..=MAX_RESULTS).contains(limit))
        .ok_or_else(|| format!("expected an integer from 1 to {MAX_RESULTS}"))
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    #[test]
    fn values_equal_the_wire_names() {
        assert!(Role::iter().map(|role| role.to_string()).eq(ROLES));
        assert!(Policy::iter().map(|policy| policy.to_string()).eq(POLICIES));
    }
}
