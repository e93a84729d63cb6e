//! `skills eval`: measures the ranking on queries with known answers, lists missed queries, and detects regressions.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tokio::sync::broadcast::error::RecvError;

use super::Context;
use super::args::{EvalArgs, EvalReportForm};
use super::eval_report;
use super::failure::{Exit, Failure, warn};
use super::output::{TerminalCaps, TextStyle, counted, cut, elapsed_micros};
use super::runs::invocation;
use skills_api::{Client as _, Code, Error, EvalJob, Evaluation, Event, Local, MAX_ADVISED, SkillQuery};
use skills_config::{Config, Invocation, RankPolicy};
use skills_discovery::{EvalReport, Policy, Rejected};
use skills_skill::{SkillId, safe_text};

/// Printed in place of the figures of an empty golden set.
pub(super) const NO_GOLDEN_QUERIES: &str =
    "no golden queries; add one with `skills golden add QUERY --expect SKILL`";

/// Maximum number of missed queries named.
const MAX_LOST_QUERIES: usize = 30;

pub async fn run(cx: &mut Context, args: &EvalArgs) -> Result<Exit, Failure> {
    let config = cx.config()?;
    let usual = if config.policy == RankPolicy::Strict { Policy::Strict } else { Policy::Blended };
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| cx.cwd.join(path));
    let form = if cx.out.json { Some(EvalReportForm::Json) } else { args.report };
    let job = EvalJob {
        skills: path(&args.skills),
        queries: path(&args.queries),
        out_of_scope: path(&args.out_of_scope),
        policy: args.policy.unwrap_or(usual),
        with_body: config.with_body && !args.no_body,
        skill: args.skill.as_deref().map(SkillId::new),
        baseline: path(&args.baseline).map(|file| (file, args.tolerance)),
        against: args.against.clone(),
        tolerance: args.tolerance,
        advice: !args.no_advice && matches!(form, None | Some(EvalReportForm::Json)),
    };
    if args.watch {
        return watch(cx, config, job).await;
    }
    let evaluation = evaluate(&config, &job).await?;
    let called = invocation(&cx.global, None);
    match form {
        Some(EvalReportForm::Json) => cx.out.value(&evaluation)?,
        Some(EvalReportForm::Markdown) => {
            cx.out.raw(eval_report::markdown(&evaluation, &called).as_bytes())?;
        }
        Some(EvalReportForm::Junit) => cx.out.raw(eval_report::junit(&evaluation).as_bytes())?,
        Some(EvalReportForm::Github) => {
            cx.out.raw(eval_report::github(&evaluation, &called, &cx.cwd).as_bytes())?;
        }
        None => cx.print_rendered(|is_plain, look| render(&evaluation, &job, &called, is_plain, look))?,
    }
    if !cx.out.json {
        warn(&evaluation.warnings);
    }
    let worse = evaluation.regressions.as_ref().is_some_and(|worse| !worse.is_empty());
    Ok(if worse { Exit::ChecksFailed } else { Exit::Success })
}

async fn evaluate(config: &Config, job: &EvalJob) -> Result<Evaluation, Error> {
    // A file that cannot be read is a usage error here.
    skills_api::eval(config.clone(), job.clone()).await.map_err(|error| match error.code {
        Code::InvalidConfiguration => Error { code: Code::InvalidRequest, ..error },
        _ => error,
    })
}

/// Polling interval for changes of golden sets.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Evaluates at each change of a skill or golden set, until it is interrupted. The first evaluation is printed
/// completely, later ones as differences.
async fn watch(cx: &mut Context, config: Config, job: EvalJob) -> Result<Exit, Failure> {
    let local = Local::open(config.clone())?;
    let mut events = local.events();
    local.wait_for_catalog().await?;
    let called = invocation(&cx.global, None);
    let mut before: Option<Evaluation> = None;
    loop {
        let evaluation = evaluate(&config, &job).await;
        match evaluation {
            Ok(evaluation) => {
                cx.show(&evaluation, |is_plain, look| match &before {
                    Some(before) => changes(before, &evaluation, is_plain, look),
                    None => render(&evaluation, &job, &called, is_plain, look),
                })?;
                cx.out.flush()?;
                before = Some(evaluation);
            }
            // A file may be incomplete, or invalid until the next change.
            Err(error) if before.is_some() => {
                let message = called.completed_in(&error.message);
                cx.reporter().print_line(&safe_text::line(&message));
            }
            Err(error) => return Err(error.into()),
        }
        let files = before.as_ref().map(|before| before.golden.clone()).unwrap_or_default();
        let stamps = |files: &[PathBuf]| -> Vec<Option<SystemTime>> {
            files.iter().map(|file| std::fs::metadata(file).and_then(|found| found.modified()).ok()).collect()
        };
        let stamped = stamps(&files);
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Ok(Event::Catalog(_)) | Err(RecvError::Lagged(_)) => break,
                    Ok(_) => {}
                    Err(RecvError::Closed) => return Ok(Exit::Success),
                },
                () = tokio::time::sleep(POLL_INTERVAL) => {
                    if stamps(&files) != stamped {
                        break;
                    }
                }
            }
        }
    }
}

/// Renders the differences between two evaluations.
fn changes(before: &Evaluation, now: &Evaluation, plain: bool, look: TerminalCaps) -> String {
    let time = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
    let (old, new) = (&before.report, &now.report);
    let figure = |name: &str, old: f64, new: f64| {
        let style = match () {
            () if new > old + 5e-4 => TextStyle::Good,
            () if new < old - 5e-4 => TextStyle::Bad,
            () => TextStyle::Muted,
        };
        let change = style.paint(&format!("({:+.3})", new - old), look.color);
        let name = if plain { format!("{name}:") } else { name.to_owned() };
        format!("{name} {new:.3} {change}")
    };
    let figures = [
        figure("P@1", old.p_at_1, new.p_at_1),
        figure("MRR@10", old.mrr_at_10, new.mrr_at_10),
        counted(new.false_triggers.len(), "false trigger"),
    ];
    let mut out = if plain {
        format!("{time}: {}.\n", figures.join(", "))
    } else {
        format!("{} {}\n", TextStyle::Muted.paint(&time, look.color), figures.join("  "))
    };
    let name = |id: &Option<SkillId>| {
        id.as_ref().map_or_else(|| "none".to_owned(), |id| safe_text::line(id.as_str()).into_owned())
    };
    let available = look.text_width(110).saturating_sub(2);
    let lost_in = |report: &EvalReport, query: &str| report.lost.iter().any(|lost| lost.query == query);
    for lost in new.lost.iter().filter(|lost| !lost_in(old, &lost.query)) {
        let what = format!("lost to {}: {}", name(&lost.won), safe_text::line(&lost.query));
        let _ = writeln!(out, "  {}", TextStyle::Bad.paint(&cut(&what, available, look.unicode), look.color));
    }
    for won in old.lost.iter().filter(|lost| !lost_in(new, &lost.query)) {
        let what = format!("won from {}: {}", name(&won.won), safe_text::line(&won.query));
        let _ =
            writeln!(out, "  {}", TextStyle::Good.paint(&cut(&what, available, look.unicode), look.color));
    }
    out
}

fn render(
    evaluation: &Evaluation,
    job: &EvalJob,
    called: &Invocation,
    plain: bool,
    look: TerminalCaps,
) -> String {
    let report = &evaluation.report;
    if report.queries + report.out_of_scope == 0 && report.near_misses.is_none() {
        if job.queries.is_some() && job.skill.is_none() {
            return without_queries(&evaluation.golden);
        }
        return called.completed_in(NO_GOLDEN_QUERIES) + "\n";
    }
    let mut out = String::new();
    let skills = counted(evaluation.skills, "skill");
    let others = match report.out_of_scope {
        0 => String::new(),
        count => format!(" and {}", counted(count, "out-of-scope query")),
    };
    let _ = writeln!(out, "{}{others}, {skills}", counted(report.queries, "in-scope query"));
    let first = report.queries - report.lost.len();
    let figure = |name: &str, value: f64, note: &str| {
        if plain {
            let note = if note.is_empty() { String::new() } else { format!(", {note}") };
            return format!("{name}: {value:.3}{note}.\n");
        }
        let value = TextStyle::Strong.paint(&format!("{value:.3}"), look.color);
        format!("  {name:<10} {value}  {}\n", TextStyle::Muted.paint(note, look.color)).replace("  \n", "\n")
    };
    if report.queries == 0 {
        let note = TextStyle::Muted.paint("no in-scope queries", look.color);
        for name in ["P@1", "hit@5", "MRR@10"] {
            out +=
                &if plain { format!("{name}: {note}.\n") } else { format!("  {name:<10} -      {note}\n") };
        }
    } else {
        out += &figure("P@1", report.p_at_1, &format!("{first} of {} ranked first", report.queries));
        out += &figure("hit@5", report.hit_at_5, "");
        out += &figure("MRR@10", report.mrr_at_10, "");
    }
    if let Some(rejected) = report.out_of_scope_rejected {
        let of = format!("of {}", counted(report.out_of_scope, "out-of-scope query"));
        out += &figure("rejected", rejected, &of);
    } else if report.near_misses.is_some() {
        let note = "no out-of-scope queries, only near misses";
        let head = if plain { "rejected:" } else { "rejected   -     " };
        let _ = writeln!(out, "  {head} {}", TextStyle::Muted.paint(note, look.color));
    }
    if report.wrongly_rejected > 0 {
        let rejected = counted(report.wrongly_rejected, "in-scope query");
        let _ = writeln!(out, "  {rejected} rejected");
    }
    if let Some(near) = report.near_misses {
        let share = near.routed as f64 / near.queries as f64;
        let of = counted(near.queries, "near miss");
        let note = format!("{} of {of} to the forbidden skill", near.routed);
        out += &figure("routed", share, &note);
    }
    let (half, most) = (elapsed_micros(report.latency_us.p50), elapsed_micros(report.latency_us.p99));
    let head = if plain { "latency:" } else { "latency   " };
    let _ = writeln!(out, "  {head} {half} (p50), {most} (p99)");
    out += &operating_points(report, plain, look);
    lost(&mut out, evaluation, called, TerminalCaps { unicode: look.unicode && !plain, ..look });
    passed(&mut out, evaluation, look);
    if !evaluation.missing.is_empty() {
        let ids: Vec<String> =
            evaluation.missing.iter().map(|id| safe_text::line(id.as_str()).into_owned()).collect();
        let _ = writeln!(out, "\nunknown skills in the golden set: {}", ids.join(", "));
    }
    if let Some(changed) = &evaluation.changed {
        let queries = counted(changed.len(), "query");
        let _ = writeln!(out, "\n{queries} with a different first skill");
        for one in changed.iter().take(MAX_LOST_QUERIES) {
            let name = |id: &Option<SkillId>| id.as_ref().map_or("none", SkillId::as_str).to_owned();
            let _ = writeln!(
                out,
                "  {}",
                cut(&safe_text::line(&one.query), look.text_width(110) - 2, look.unicode)
            );
            let what = format!("{} -> {}", name(&one.from), name(&one.to));
            let _ = writeln!(out, "    {}", TextStyle::Muted.paint(&safe_text::line(&what), look.color));
        }
        if let Some(compared) = &evaluation.compared {
            let _ = writeln!(out, "{}", eval_report::compared(compared, called));
        }
    }
    match &evaluation.regressions {
        None => {}
        Some(worse) if worse.is_empty() => {
            let _ = writeln!(out, "\n{}", TextStyle::Good.paint("no worse than the baseline", look.color));
        }
        Some(worse) => {
            let _ = writeln!(out, "\n{}", TextStyle::Bad.paint("worse than the baseline", look.color));
            for figure in worse {
                let _ = writeln!(
                    out,
                    "  {}: {:.3}, was {:.3} ({:+.3})",
                    figure.figure,
                    figure.now,
                    figure.was,
                    figure.now - figure.was
                );
            }
        }
    }
    out
}

/// States that the files that the caller named have no queries.
fn without_queries(files: &[PathBuf]) -> String {
    let names: Vec<String> =
        files.iter().map(|file| format!("`{}`", safe_text::line(&file.display().to_string()))).collect();
    let have = if names.len() == 1 { "has" } else { "have" };
    format!("{} {have} no queries\n", names.join(" and "))
}

/// Renders what the current threshold keeps and rejects, and what others would.
fn operating_points(report: &EvalReport, plain: bool, look: TerminalCaps) -> String {
    let Some(rejected) = report.present.rejected else { return String::new() };
    // Without in-scope queries there is nothing to accept.
    let has_accepted = report.queries > 0;
    if plain {
        let line = |name: &str, threshold: Option<f64>, accepted: f64, rejected: f64| {
            let at = threshold.map(|from| format!(" {from:.2}")).unwrap_or_default();
            let accepted = if has_accepted { format!("accepted {accepted:.3}, ") } else { String::new() };
            format!("{name}{at}: {accepted}rejected {rejected:.3}.\n")
        };
        let mut out = line("Current threshold", report.present.threshold, report.present.accepted, rejected);
        for point in &report.thresholds {
            if let Some(rejected) = point.rejected {
                out += &line("Threshold", point.threshold, point.accepted, rejected);
            }
        }
        return out;
    }
    let mut out = format!("\n{}\n", TextStyle::Strong.paint("threshold  accepted  rejected", look.color));
    let mut rows = vec![(report.present.threshold, report.present.accepted, rejected, "  current")];
    rows.extend(
        report
            .thresholds
            .iter()
            .filter_map(|point| Some((Some(point.threshold?), point.accepted, point.rejected?, ""))),
    );
    let at = |threshold: Option<f64>| threshold.unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|a, b| at(a.0).total_cmp(&at(b.0)));
    for (threshold, accepted, rejected, note) in rows {
        let threshold = threshold.map(|from| format!("{from:.2}")).unwrap_or_default();
        let accepted = if has_accepted { format!("{accepted:.3}") } else { "-".to_owned() };
        let _ = writeln!(out, "  {threshold:<7}  {accepted:<8}  {rejected:.3}{note}");
    }
    out
}

/// Renders the queries of one skill that are answered as expected.
fn passed(out: &mut String, evaluation: &Evaluation, look: TerminalCaps) {
    let passed: Vec<&SkillQuery> =
        evaluation.of_skill.iter().flatten().filter(|query| query.is_expected).collect();
    if passed.is_empty() {
        return;
    }
    let title = TextStyle::Strong.paint(&format!("passed ({})", passed.len()), look.color);
    let _ = writeln!(out, "\n{title}");
    let available = look.text_width(110);
    for one in passed {
        let what = match (&one.won, &one.query.not, one.by) {
            (None, ..) => format!("expected {}; no results", one.query.expectation()),
            (Some(won), Some(_), _) => format!("expected {}; {won} is first", one.query.expectation()),
            (Some(won), None, Some(by)) => format!("{won} won by {by:.2} (#1)"),
            (Some(won), None, None) => format!("{won} won (#1), the only result"),
        };
        let _ = writeln!(out, "  {}", cut(&safe_text::line(&one.query.query), available - 2, look.unicode));
        let what = cut(&safe_text::line(&what), available - 4, look.unicode);
        let _ = writeln!(out, "    {}", TextStyle::Muted.paint(&what, look.color));
    }
}

/// Describes a rejected query: the rank of the expected skill, and how far it is below the threshold.
pub(super) fn why_rejected(rejected: &Rejected) -> String {
    let expected: Vec<&str> = rejected.expected.iter().map(SkillId::as_str).collect();
    let rank = rejected.rank.map_or_else(|| "not among the first ten".to_owned(), |rank| format!("#{rank}"));
    let below = rejected.below.map(|below| format!(", {below:.2} below the threshold")).unwrap_or_default();
    format!("no fit{below}; expected {} ({rank})", expected.join(" or "))
}

fn lost(out: &mut String, evaluation: &Evaluation, called: &Invocation, look: TerminalCaps) {
    let report = &evaluation.report;
    let title = |out: &mut String, text: &str, n: usize| {
        let _ = writeln!(out, "\n{}", TextStyle::Strong.paint(&format!("{text} ({n})"), look.color));
    };
    let available = look.text_width(110);
    let more = |out: &mut String, n: usize| {
        if n > MAX_LOST_QUERIES {
            let text = format!("and {} more (--json lists all)", n - MAX_LOST_QUERIES);
            let _ = writeln!(out, "  {}", TextStyle::Muted.paint(&text, look.color));
        }
    };
    if !report.lost.is_empty() {
        title(out, "missed", report.lost.len());
    }
    for lost in report.lost.iter().take(MAX_LOST_QUERIES) {
        let expected: Vec<&str> = lost.expected.iter().map(skills_skill::SkillId::as_str).collect();
        let rank = lost.rank.map_or_else(|| "not among the first ten".to_owned(), |rank| format!("#{rank}"));
        let by = lost.by.map(|by| format!(" by {by:.2}")).unwrap_or_default();
        let won = lost.won.as_ref().map_or_else(|| "no results".to_owned(), |won| format!("{won} won{by}"));
        let what = format!("{won}; expected {} ({rank})", expected.join(" or "));
        let _ = writeln!(out, "  {}", cut(&safe_text::line(&lost.query), available - 2, look.unicode));
        let what = cut(&safe_text::line(&what), available - 4, look.unicode);
        let _ = writeln!(out, "    {}", TextStyle::Muted.paint(&what, look.color));
        if let Some(advice) = evaluation.advice.iter().find(|advice| advice.query == lost.query) {
            let word = safe_text::line(&advice.word);
            let (open, close) = if look.unicode { ("“", "”") } else { ("\"", "\"") };
            let (gain, rank) = (advice.gain, advice.new_rank());
            let text = format!("add {open}{word}{close} to the description: {gain:+.2}, {rank}");
            let _ = writeln!(out, "    {text}; {} won, {} lost", advice.won, advice.lost);
        }
    }
    more(out, report.lost.len());
    if !evaluation.advice.is_empty() && report.lost.len() > MAX_ADVISED {
        let text = format!(
            "advice is measured for the first {MAX_ADVISED}; `{}` measures it for the others",
            called.line(&["golden", "explain", "QUERY"])
        );
        let _ = writeln!(out, "  {}", TextStyle::Muted.paint(&text, look.color));
    }
    if !report.rejected_queries.is_empty() {
        title(out, "rejected in-scope queries", report.rejected_queries.len());
    }
    for rejected in report.rejected_queries.iter().take(MAX_LOST_QUERIES) {
        let _ = writeln!(out, "  {}", cut(&safe_text::line(&rejected.query), available - 2, look.unicode));
        let what = cut(&safe_text::line(&why_rejected(rejected)), available - 4, look.unicode);
        let _ = writeln!(out, "    {}", TextStyle::Muted.paint(&what, look.color));
    }
    more(out, report.rejected_queries.len());
    if !report.false_triggers.is_empty() {
        title(out, "false triggers", report.false_triggers.len());
    }
    for trigger in report.false_triggers.iter().take(MAX_LOST_QUERIES) {
        let _ = writeln!(out, "  {}", cut(&safe_text::line(&trigger.query), available - 2, look.unicode));
        let why = if trigger.near_miss { "is first, but must not be" } else { "fits, but no skill should" };
        let what = format!("{} {why}", safe_text::line(trigger.won.as_str()));
        let _ = writeln!(
            out,
            "    {}",
            TextStyle::Muted.paint(&cut(&what, available - 4, look.unicode), look.color)
        );
    }
    more(out, report.false_triggers.len());
}
