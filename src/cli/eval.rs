//! `skills eval`: how good the ranking is on queries with known answers, what was lost to what, and
//! whether it got worse.

use std::fmt::Write as _;

use super::Context;
use super::args::{EvalArgs, EvalReportForm};
use super::eval_report;
use super::failure::{Done, Failure};
use super::output::{Ink, Look, counted, cut, took};
use skills_api::{Code, Error, EvalJob, Evaluation};
use skills_config::RankPolicy;
use skills_discovery::{EvalReport, Policy};
use skills_skill::{SkillId, safe_text};

/// How many lost queries are named.
const NAMED: usize = 30;

/// Runs the command.
pub async fn run(cx: &mut Context, args: &EvalArgs) -> Result<Done, Failure> {
    let config = cx.config()?;
    let usual = if config.policy == RankPolicy::Strict { Policy::Strict } else { Policy::Blended };
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| cx.cwd.join(path));
    let job = EvalJob {
        skills: path(&args.skills),
        queries: path(&args.queries),
        out_of_scope: path(&args.out_of_scope),
        policy: args.policy.unwrap_or(usual),
        with_body: config.with_body && !args.no_body,
        skill: args.skill.as_deref().map(SkillId::new),
        baseline: path(&args.baseline).map(|file| (file, args.tolerance)),
    };
    // A file that cannot be read is wrong usage here: nothing was asked of a skill that could refuse it.
    let evaluation = skills_api::eval(config, job).await.map_err(|error| match error.code {
        Code::InvalidConfiguration => Error { code: Code::InvalidRequest, ..error },
        _ => error,
    })?;
    let form = if cx.out.json { Some(EvalReportForm::Json) } else { args.report };
    let text = match form {
        Some(EvalReportForm::Json) => {
            cx.out.value(&evaluation)?;
            String::new()
        }
        Some(EvalReportForm::Markdown) => eval_report::markdown(&evaluation),
        Some(EvalReportForm::Junit) => eval_report::junit(&evaluation),
        Some(EvalReportForm::Github) => eval_report::github(&evaluation),
        None => render(&evaluation, cx.out.look),
    };
    cx.out.raw(text.as_bytes())?;
    let worse = evaluation.regressions.as_ref().is_some_and(|worse| !worse.is_empty());
    Ok(if worse { Done::Findings } else { Done::Fine })
}

/// The evaluation as text.
fn render(evaluation: &Evaluation, look: Look) -> String {
    let report = &evaluation.report;
    let mut out = String::new();
    let skills = counted(evaluation.skills, "skill", "skills");
    let _ = writeln!(out, "{} over {skills}", counted(report.queries, "query", "queries"));
    let first = report.queries - report.lost.len();
    let figure = |name: &str, value: f64, note: &str| {
        let value = Ink::Strong.paint(&format!("{value:.3}"), look.colour);
        format!("  {name:<10} {value}  {}\n", Ink::Muted.paint(note, look.colour)).replace("  \n", "\n")
    };
    out += &figure("P@1", report.p_at_1, &format!("{first} of {} first", report.queries));
    out += &figure("hit@5", report.hit_at_5, "");
    out += &figure("MRR@10", report.mrr_at_10, "");
    if let Some(rejected) = report.out_of_scope_rejected {
        out += &figure("rejected", rejected, &format!("of {} that fit none", report.out_of_scope));
    }
    if let Some(near) = report.near_misses {
        let share = near.routed as f64 / near.queries as f64;
        let note = format!("{} of {} near misses to the forbidden skill", near.routed, near.queries);
        out += &figure("routed", share, &note);
    }
    out += &operating_points(report, look);
    if report.wrongly_rejected > 0 {
        let _ = writeln!(out, "  {} wrongly rejected", report.wrongly_rejected);
    }
    let (half, most) = (took(report.latency_us.p50, look.unicode), took(report.latency_us.p99, look.unicode));
    let _ = writeln!(out, "  latency    {half} (p50), {most} (p99)");
    lost(&mut out, evaluation, look);
    if !evaluation.missing.is_empty() {
        let ids: Vec<String> =
            evaluation.missing.iter().map(|id| safe_text::line(id.as_str()).into_owned()).collect();
        let _ = writeln!(out, "\nexpected, but not found: {}", ids.join(", "));
    }
    if let Some(changed) = &evaluation.changed {
        let _ = writeln!(out, "\nqueries with another winner: {}", changed.len());
        for one in changed.iter().take(NAMED) {
            let name = |id: &Option<SkillId>| id.as_ref().map_or("none", SkillId::as_str).to_owned();
            let _ = writeln!(
                out,
                "  {}",
                cut(&safe_text::line(&one.query), look.width.min(110) - 2, look.unicode)
            );
            let what = format!("{} -> {}", name(&one.from), name(&one.to));
            let _ = writeln!(out, "    {}", Ink::Muted.paint(&safe_text::line(&what), look.colour));
        }
    }
    match &evaluation.regressions {
        None => {}
        Some(worse) if worse.is_empty() => {
            let _ = writeln!(out, "\n{}", Ink::Good.paint("no worse than the baseline", look.colour));
        }
        Some(worse) => {
            let _ = writeln!(out, "\n{}", Ink::Bad.paint("worse than the baseline", look.colour));
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

/// What the present threshold keeps and rejects, and what others would.
fn operating_points(report: &EvalReport, look: Look) -> String {
    let Some(rejected) = report.present.rejected else { return String::new() };
    let mut out = format!("\n{}\n", Ink::Strong.paint("threshold  kept   rejected", look.colour));
    let present = report.present.threshold.map(|from| format!("{from:.2}")).unwrap_or_default();
    let _ = writeln!(out, "  {present:<7}  {:.3}  {rejected:.3}  present", report.present.kept);
    for point in &report.thresholds {
        if let (Some(threshold), Some(rejected)) = (point.threshold, point.rejected) {
            let _ = writeln!(out, "  {threshold:<7.2}  {:.3}  {rejected:.3}", point.kept);
        }
    }
    out
}

fn lost(out: &mut String, evaluation: &Evaluation, look: Look) {
    let report = &evaluation.report;
    let title = |out: &mut String, text: &str, n: usize| {
        let _ = writeln!(out, "\n{}", Ink::Strong.paint(&format!("{text} ({n})"), look.colour));
    };
    let room = look.width.min(110);
    let more = |out: &mut String, n: usize| {
        if n > NAMED {
            let text = format!("and {} more (--json names them)", n - NAMED);
            let _ = writeln!(out, "  {}", Ink::Muted.paint(&text, look.colour));
        }
    };
    if !report.lost.is_empty() {
        title(out, "lost", report.lost.len());
    }
    for lost in report.lost.iter().take(NAMED) {
        let expected: Vec<&str> = lost.expected.iter().map(skills_skill::SkillId::as_str).collect();
        let won = lost.won.as_ref().map_or("nothing", skills_skill::SkillId::as_str);
        let rank = lost.rank.map_or_else(|| "not among the first ten".to_owned(), |rank| format!("#{rank}"));
        let by = lost.by.map(|by| format!(" by {by:.2}")).unwrap_or_default();
        let what = format!("{won} won{by}; expected {} ({rank})", expected.join(" or "));
        let _ = writeln!(out, "  {}", cut(&safe_text::line(&lost.query), room - 2, look.unicode));
        let what = cut(&safe_text::line(&what), room - 4, look.unicode);
        let _ = writeln!(out, "    {}", Ink::Muted.paint(&what, look.colour));
    }
    more(out, report.lost.len());
    if !report.false_triggers.is_empty() {
        title(out, "false triggers", report.false_triggers.len());
    }
    for trigger in report.false_triggers.iter().take(NAMED) {
        let _ = writeln!(out, "  {}", cut(&safe_text::line(&trigger.query), room - 2, look.unicode));
        let why = if trigger.near_miss { "first, but forbidden" } else { "first, but no skill fits" };
        let what = format!("{} {why}", safe_text::line(trigger.won.as_str()));
        let _ = writeln!(out, "    {}", Ink::Muted.paint(&cut(&what, room - 4, look.unicode), look.colour));
    }
    more(out, report.false_triggers.len());
}
