//! `skills golden`: lists, explains and edits golden queries, and converts them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::Context;
use super::args::{
    ExpectArgs, GoldenAction, GoldenAddArgs, GoldenArgs, GoldenExplainArgs, GoldenExportArgs, GoldenForm,
    GoldenImportArgs, GoldenListArgs, GoldenRemoveArgs,
};
use super::context::Backend;
use super::eval::NO_GOLDEN_QUERIES;
use super::failure::{Exit, Failure};
use super::output::{TerminalCaps, TextStyle, counted, cut};
use super::runs::invocation;
use serde_json::json;
use skills_api::{
    CoreParts, GoldenExplainRequest, GoldenExplanation, GoldenQuery, GoldenReport, GoldenRequest,
    GoldenResult, GoldenState, rejection_of,
};
use skills_authoring::golden_file::{
    EditError, GoldenEdit, edit_golden, is_same_query, read_golden, split_new,
};
use skills_authoring::golden_format::{
    FormatError, GoldenFormat, format_golden, parse_golden, skill_of_evals,
};
use skills_authoring::write_back::WriteError;
use skills_base::paths::escaped;
use skills_config::Invocation;
use skills_discovery::{Advice, Case, Hit};
use skills_skill::{SkillId, read_regular_text, safe_text};

/// Maximum size of a file to import, in bytes.
const MAX_IMPORT_BYTES: u64 = 16 << 20;
/// Maximum number of pairs of skills listed.
const MAX_PAIRS: usize = 10;

pub async fn run(cx: &mut Context, args: &GoldenArgs) -> Result<Exit, Failure> {
    match &args.action {
        GoldenAction::List(args) => list(cx, args).await,
        GoldenAction::Explain(args) => explain(cx, args).await,
        GoldenAction::Add(args) => add(cx, args).await,
        GoldenAction::Remove(args) => remove(cx, args),
        GoldenAction::Import(args) => import(cx, args),
        GoldenAction::Export(args) => export(cx, args).await,
    }
}

impl From<GoldenForm> for GoldenFormat {
    fn from(form: GoldenForm) -> Self {
        match form {
            GoldenForm::Yaml => Self::Yaml,
            GoldenForm::Json => Self::Json,
            GoldenForm::Jsonl => Self::Jsonl,
            GoldenForm::Csv => Self::Csv,
        }
    }
}

/// Returns the file to edit: the one given with an option, else the user's own.
fn file(cx: &Context, option: &str, file: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    match file {
        Some(file) => Ok(cx.cwd.join(file)),
        None => cx.config()?.golden_file().ok_or_else(|| {
            let message =
                format!("the demo has no editable golden set; remove --demo, or pass {option} FILE");
            Failure::usage(message)
        }),
    }
}

/// Returns the queries of the user's own file that a remote service does not have.
pub fn own_queries(cx: &Context, core: &Backend) -> Result<Vec<GoldenQuery>, Failure> {
    if core.as_local().is_some() {
        return Ok(Vec::new());
    }
    let Some(file) = cx.config()?.golden_file() else { return Ok(Vec::new()) };
    let (cases, _) = read_golden(&file).map_err(|error| refused(&file, &error))?;
    Ok(cases.into_iter().map(GoldenQuery::from).collect())
}

fn refused(file: &Path, error: &EditError) -> Failure {
    let names_path = matches!(error, EditError::Open(_) | EditError::Write(WriteError::Io(_)));
    let message = if names_path { error.to_string() } else { format!("{}: {error}", file.display()) };
    Failure::usage(message)
}

async fn report(cx: &mut Context, skill: Option<&String>) -> Result<GoldenReport, Failure> {
    let core = cx.reach(CoreParts::Index).await?;
    let queries = own_queries(cx, &core)?;
    let request = GoldenRequest { skill_id: skill.map(SkillId::new), queries };
    Ok(core.golden_report(request).await?)
}

async fn list(cx: &mut Context, args: &GoldenListArgs) -> Result<Exit, Failure> {
    let mut report = report(cx, args.skill.as_ref()).await?;
    if args.failing {
        report.results.retain(|result| result.state.is_failing());
    }
    let has_failing = report.results.iter().any(|result| result.state.is_failing());
    let called = invocation(&cx.global, None);
    cx.out.show(&report, |look| render(&report, &called, look))?;
    Ok(if has_failing { Exit::ChecksFailed } else { Exit::Success })
}

fn name(id: Option<&SkillId>) -> String {
    id.map_or_else(|| "no result".to_owned(), |id| safe_text::line(id.as_str()).into_owned())
}

fn render(report: &GoldenReport, called: &Invocation, look: TerminalCaps) -> String {
    let strong = |text: &str| TextStyle::Strong.paint(text, look.color);
    let muted = |text: &str| TextStyle::Muted.paint(text, look.color);
    let mut out = String::new();
    if report.sources.is_empty() && report.results.is_empty() {
        return called.completed_in(NO_GOLDEN_QUERIES) + "\n";
    }
    let figures = &report.figures;
    let queries = figures.queries + figures.out_of_scope;
    // Without a query that has a skill there is nothing to measure.
    let ranked = if figures.queries == 0 {
        String::new()
    } else {
        let [first, rank] = [figures.p_at_1, figures.mrr_at_10].map(|figure| strong(&format!("{figure:.3}")));
        format!("P@1 {first}, MRR@10 {rank}, ")
    };
    let _ = writeln!(
        out,
        "{} over {}: {ranked}{}",
        counted(queries, "query"),
        counted(report.skills, "skill"),
        counted(figures.false_triggers, "false trigger"),
    );
    let max_width = look.text_width(110);
    let mut group = None;
    for result in &report.results {
        if group != Some(result.state) {
            group = Some(result.state);
            let title = match result.state {
                GoldenState::Lost => "missed",
                GoldenState::FalseTrigger => "false triggers",
                GoldenState::Won => "passed",
                GoldenState::Rejected => "rejected, as expected",
            };
            let count = report.results.iter().filter(|other| other.state == result.state).count();
            let _ = writeln!(out, "\n{}", strong(&format!("{title} ({count})")));
        }
        let query = cut(&safe_text::line(&result.query.query), max_width.saturating_sub(2), look.unicode);
        let _ = writeln!(out, "  {query}");
        let what = cut(&outcome(result), max_width.saturating_sub(4), look.unicode);
        let _ = writeln!(out, "    {}", muted(&what));
    }
    if !report.confusions.is_empty() {
        let _ = writeln!(out, "\n{}", strong("queries won from each other"));
        for pair in report.confusions.iter().take(MAX_PAIRS) {
            let (a, b) = (name(Some(&pair.a)), name(Some(&pair.b)));
            let _ = writeln!(out, "  {a} {} : {} {b}", pair.a_wins, pair.b_wins);
        }
    }
    out
}

/// Describes the result of a query in one line.
fn outcome(result: &GoldenResult) -> String {
    let expects = safe_text::line(&result.query.expectation()).into_owned();
    if result.first.is_none() && result.state != GoldenState::Rejected {
        let rank = if result.state == GoldenState::Lost { " (not ranked)" } else { "" };
        return format!("expects {expects}{rank}; no results");
    }
    let first = name(result.first.as_ref());
    let by = result.by.unwrap_or_default();
    match (result.state, result.rank) {
        (GoldenState::Lost, Some(rank)) => {
            format!("expects {expects} (rank {rank}); {first} is first, ahead by {by:.2}")
        }
        (GoldenState::Lost, None) => format!("expects {expects} (not ranked); {first} is first"),
        (GoldenState::FalseTrigger, _) => {
            format!("expects {expects}; {first} fits, {by:.2} above the threshold")
        }
        (GoldenState::Won, _) => {
            let lead = result.by.map_or_else(|| "the only result".to_owned(), |by| format!("lead {by:+.2}"));
            format!("{first}{}, {lead}", if result.fits { "" } else { " (does not fit)" })
        }
        (GoldenState::Rejected, _) => format!("expects {expects}"),
    }
}

impl ExpectArgs {
    fn is_empty(&self) -> bool {
        self.expect.is_empty() && !self.none && self.not.is_none()
    }

    fn query(&self, query: &str) -> GoldenQuery {
        GoldenQuery {
            query: query.to_owned(),
            expect: self.expect.iter().map(SkillId::new).collect(),
            not: self.not.as_ref().map(SkillId::new),
        }
    }
}

async fn explain(cx: &mut Context, args: &GoldenExplainArgs) -> Result<Exit, Failure> {
    let text = super::discover::intent(std::slice::from_ref(&args.query))?;
    let core = cx.reach(CoreParts::Index).await?;
    let queries = own_queries(cx, &core)?;
    let query = if args.expect.is_empty() {
        let request = GoldenRequest { queries: queries.clone(), ..GoldenRequest::default() };
        let results = core.golden_report(request).await?.results;
        let found = results.into_iter().find(|result| result.query.query == text);
        found.map(|result| result.query).ok_or_else(|| {
            Failure::usage(
                "the query is not in any golden set; specify the expected result with --expect, --none or --not",
            )
        })?
    } else {
        args.expect.query(&text)
    };
    let explanation = core.golden_explain(GoldenExplainRequest { query, queries }).await?;
    let is_lost = {
        let first = explanation.first.as_ref().map(|hit| &hit.skill_id);
        !explanation.query.expect.is_empty()
            && !first.is_some_and(|first| explanation.query.expect.contains(first))
    };
    if cx.out.json {
        cx.out.value(&explanation)?;
    } else {
        let catalog = core.catalog().await?;
        let unranked = explanation.query.expect.iter().filter(|_| explanation.expected.is_none());
        let rejected: Vec<String> = unranked.filter_map(|id| rejection_of(&catalog, id)).collect();
        let text = explained(&explanation, is_lost, &rejected, cx.out.look);
        cx.out.text(&text)?;
    }
    Ok(if is_lost { Exit::ChecksFailed } else { Exit::Success })
}

/// Renders an explanation. `rejected` says which expected skills have no readable file.
fn explained(
    explanation: &GoldenExplanation,
    is_lost: bool,
    rejected: &[String],
    look: TerminalCaps,
) -> String {
    let mut out = String::new();
    let strong = |text: &str| TextStyle::Strong.paint(text, look.color);
    let _ = writeln!(out, "{}", strong(&safe_text::line(&explanation.query.query)));
    let _ = writeln!(out, "expects {}", safe_text::line(&explanation.query.expectation()));
    let (expected, first) = (explanation.expected.as_ref(), explanation.first.as_ref());
    let words = words_of(expected, first);
    let score = |hit: Option<&Hit>, word: &str| {
        let rows = hit.into_iter().flat_map(|hit| &hit.breakdown.rows);
        rows.filter(|row| row.label == word).map(|row| row.sum).sum::<f64>()
    };
    let title = |hit: Option<&Hit>| match hit {
        Some(hit) => format!("{} ({}, {:.2})", name(Some(&hit.skill_id)), rank(hit), hit.score),
        None => "not ranked".to_owned(),
    };
    let is_same = expected.map(|hit| &hit.skill_id) == first.map(|hit| &hit.skill_id);
    let _ = writeln!(out, "\nexpected  {}", title(expected));
    if !is_same {
        let _ = writeln!(out, "first     {}", title(first));
        if expected.is_some() && first.is_some() {
            let _ = writeln!(out, "\n  {:>8}  {:>8}  {:>8}", "expected", "first", "differs");
            for word in words {
                let (ours, theirs) = (score(expected, &word), score(first, &word));
                let word = safe_text::line(&word);
                let _ = writeln!(out, "  {ours:>8.2}  {theirs:>8.2}  {:>+8.2}  {word}", ours - theirs);
            }
        }
    }
    match &explanation.advice {
        Some(advice) => out += &advised(advice, look),
        None if !rejected.is_empty() => {
            for why in rejected {
                let _ = writeln!(out, "\n{}", safe_text::line(why));
            }
        }
        None if is_lost => out += "\nno added words win this query without losing others\n",
        None => {}
    }
    out
}

/// Renders advice in two lines.
pub fn advised(advice: &Advice, look: TerminalCaps) -> String {
    let main = format!("add “{}” to the description", safe_text::line(&advice.word));
    let main = TextStyle::Strong.paint(&main, look.color);
    let rank = advice.new_rank();
    format!("\n{main}\n  {:+.2}, {rank}; {} won, {} lost\n", advice.gain, advice.won, advice.lost)
}

fn rank(hit: &Hit) -> String {
    format!("rank {}", hit.rank.unwrap_or(1))
}

/// Returns the labels of both breakdowns, largest difference first.
fn words_of(expected: Option<&Hit>, first: Option<&Hit>) -> Vec<String> {
    let mut labels: Vec<(String, f64)> = Vec::new();
    for (hit, sign) in [(expected, 1.0), (first, -1.0)] {
        for row in hit.into_iter().flat_map(|hit| &hit.breakdown.rows) {
            match labels.iter_mut().find(|(label, _)| *label == row.label) {
                Some((_, difference)) => *difference += sign * row.sum,
                None => labels.push((row.label.clone(), sign * row.sum)),
            }
        }
    }
    labels.retain(|(_, difference)| difference.abs() >= 0.005);
    labels.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
    labels.into_iter().map(|(label, _)| label).collect()
}

async fn add(cx: &mut Context, args: &GoldenAddArgs) -> Result<Exit, Failure> {
    if args.expect.is_empty() {
        return Err(Failure::usage("state what the query expects: --expect SKILL, --none or --not SKILL"));
    }
    let text = super::discover::intent(std::slice::from_ref(&args.query))?;
    let file = file(cx, "--file", args.file.as_ref())?;
    let query = args.expect.query(&text);
    let named: Vec<SkillId> = query.expect.iter().chain(&query.not).cloned().collect();
    let case = query.checked()?;
    let (existing, _) = read_golden(&file).map_err(|error| refused(&file, &error))?;
    if existing.iter().any(|other| is_same_query(other, &case)) {
        let message = format!("{} already has this query; remove it first", file.display());
        return Err(Failure::usage(message));
    }
    let cases =
        edit_golden(&file, &GoldenEdit::Add(vec![case]), None).map_err(|error| refused(&file, &error))?;
    warn_of_unknown(cx, &named).await;
    done(cx, &file, &json!({"file": escaped(&file), "queries": cases.len()}), "added to")
}

/// Warns of expected skills that do not exist: their queries cannot be won. A set can be written before its skills.
async fn warn_of_unknown(cx: &mut Context, named: &[SkillId]) {
    if named.is_empty() {
        return;
    }
    let Ok(core) = cx.reach(CoreParts::Catalog).await else { return };
    let Ok(catalog) = core.catalog().await else { return };
    for id in named.iter().filter(|id| catalog.by_id(id.as_str()).is_none()) {
        cx.reporter().warn(&format!("skill `{}` not found", safe_text::line(id.as_str())));
    }
}

fn remove(cx: &mut Context, args: &GoldenRemoveArgs) -> Result<Exit, Failure> {
    let file = file(cx, "--file", args.file.as_ref())?;
    let (existing, _) = read_golden(&file).map_err(|error| refused(&file, &error))?;
    let Some(at) = existing.iter().position(|case| case.query == args.query) else {
        let message = format!("{} has no query `{}`", file.display(), args.query);
        return Err(skills_api::Error::new(skills_api::Code::NotFound, message).into());
    };
    let cases = edit_golden(&file, &GoldenEdit::Remove(at), existing.get(at))
        .map_err(|error| refused(&file, &error))?;
    done(cx, &file, &json!({"file": escaped(&file), "queries": cases.len()}), "removed from")
}

fn done(cx: &mut Context, file: &Path, value: &serde_json::Value, verb: &str) -> Result<Exit, Failure> {
    if cx.out.json {
        cx.out.value(value)?;
    } else {
        cx.reporter().print_line(&format!("{verb} {}", safe_text::line(&file.display().to_string())));
    }
    Ok(Exit::Success)
}

fn expectation(case: Case) -> String {
    GoldenQuery::from(case).expectation()
}

fn import(cx: &mut Context, args: &GoldenImportArgs) -> Result<Exit, Failure> {
    let to = file(cx, "--to", args.to.as_ref())?;
    let mut cases: Vec<Case> = Vec::new();
    for source in &args.files {
        let source = cx.cwd.join(source);
        let text =
            read_regular_text(&source, MAX_IMPORT_BYTES).map_err(|error| Failure::file(&source, &error))?;
        let format = args.format.map(GoldenFormat::from).or_else(|| GoldenFormat::of(&source));
        let format = format.ok_or_else(|| {
            Failure::usage(format!("{}: unknown extension; name the format with --format", source.display()))
        })?;
        let skill = args.skill.as_ref().map(SkillId::new).or_else(|| skill_of_evals(&source, &text));
        let found = parse_golden(format, &text, skill.as_ref());
        cases.extend(found.map_err(|error| {
            let option = if matches!(error, FormatError::NoSkill) { " with --skill" } else { "" };
            Failure::usage(format!("{}: {error}{option}", source.display()))
        })?);
    }
    let (existing, _) = read_golden(&to).map_err(|error| refused(&to, &error))?;
    let split = split_new(&existing, cases);
    let (added, conflicts) = (split.new.len(), split.conflicts.len());
    if added > 0 {
        edit_golden(&to, &GoldenEdit::Add(split.new), None).map_err(|error| refused(&to, &error))?;
    }
    if cx.out.json {
        let queries: Vec<GoldenQuery> = split.conflicts.into_iter().map(GoldenQuery::from).collect();
        cx.out.value(
            &json!({"file": escaped(&to), "added": added, "known": split.known, "conflicts": queries}),
        )?;
    } else {
        let mut text = format!(
            "{} added to {}, {} already present\n",
            counted(added, "query"),
            safe_text::line(&to.display().to_string()),
            split.known
        );
        for case in split.conflicts {
            let same = existing.iter().enumerate().find(|(_, other)| is_same_query(other, &case));
            let (place, expected) = match same {
                Some((at, same)) => {
                    (format!("query {} of {}", at + 1, to.display()), expectation(same.clone()))
                }
                None => ("an earlier query of the import".to_owned(), "another result".to_owned()),
            };
            let _ = writeln!(
                text,
                "not imported: \"{}\" expects {}, but {} expects {}; change one of them, then import again",
                safe_text::line(&case.query),
                safe_text::line(&expectation(case.clone())),
                safe_text::line(&place),
                safe_text::line(&expected),
            );
        }
        cx.out.text(&text)?;
    }
    Ok(if conflicts > 0 { Exit::ChecksFailed } else { Exit::Success })
}

async fn export(cx: &mut Context, args: &GoldenExportArgs) -> Result<Exit, Failure> {
    let report = report(cx, args.skill.as_ref()).await?;
    let mut results = report.results;
    results.sort_by_key(|result| (result.source.unwrap_or(usize::MAX), result.place));
    let cases: Vec<Case> = results.into_iter().map(|result| result.query.into()).collect();
    let skill = args.skill.as_ref().map(SkillId::new);
    let text = format_golden(args.format.into(), &cases, skill.as_ref());
    let text = text.map_err(|error| Failure::usage(error.to_string()))?;
    // Queries may contain control characters; a file gets them as they are.
    let text = if cx.out.look.terminal {
        text.lines().map(|line| safe_text::line(line).into_owned() + "\n").collect()
    } else {
        text
    };
    cx.out.raw(text.as_bytes())?;
    Ok(Exit::Success)
}
