//! `skills eval --report`: the evaluation in formats for other tools.

use std::fmt::Write as _;

use skills_api::Evaluation;
use skills_skill::{SkillId, safe_text};

/// Maximum number of rows of a Markdown table.
const MAX_ROWS: usize = 50;

fn name(id: Option<&SkillId>) -> String {
    id.map_or_else(|| "none".to_owned(), |id| safe_text::line(id.as_str()).into_owned())
}

/// Returns every failing query with its problem.
fn failures(evaluation: &Evaluation) -> Vec<(String, String)> {
    let report = &evaluation.report;
    let lost = report.lost.iter().map(|lost| {
        let expected: Vec<String> = lost.expected.iter().map(|id| name(Some(id))).collect();
        let rank = lost.rank.map_or_else(|| "not in the first ten".to_owned(), |rank| format!("rank {rank}"));
        let won = name(lost.won.as_ref());
        (lost.query.clone(), format!("expected {} ({rank}), {won} is first", expected.join(" or ")))
    });
    let false_triggers = report.false_triggers.iter().map(|trigger| {
        let won = name(Some(&trigger.won));
        let why = if trigger.near_miss { "must not be first" } else { "fits, but no skill should" };
        (trigger.query.clone(), format!("{won} {why}"))
    });
    let all = lost.chain(false_triggers);
    all.map(|(query, what)| (safe_text::line(&query).into_owned(), what)).collect()
}

/// Renders Markdown for a comment on a pull request.
pub fn markdown(evaluation: &Evaluation) -> String {
    let report = &evaluation.report;
    let cell = |text: &str| text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;");
    let mut out = String::from("### Skill routing\n\n| figure | value |\n|---|---|\n");
    let _ = writeln!(out, "| queries | {} |", report.queries);
    let _ = writeln!(out, "| P@1 | {:.3} |", report.p_at_1);
    let _ = writeln!(out, "| hit@5 | {:.3} |", report.hit_at_5);
    let _ = writeln!(out, "| MRR@10 | {:.3} |", report.mrr_at_10);
    if let Some(rejected) = report.out_of_scope_rejected {
        let _ =
            writeln!(out, "| rejected, of {} out-of-scope queries | {rejected:.3} |", report.out_of_scope);
    }
    if let Some(changed) = &evaluation.changed {
        let _ = writeln!(out, "\n**Queries with another winner: {}**\n", changed.len());
        if !changed.is_empty() {
            out.push_str("| query | before | now |\n|---|---|---|\n");
        }
        for one in changed.iter().take(MAX_ROWS) {
            let query = cell(&safe_text::line(&one.query));
            let (from, to) = (cell(&name(one.from.as_ref())), cell(&name(one.to.as_ref())));
            let _ = writeln!(out, "| {query} | {from} | {to} |");
        }
        if changed.len() > MAX_ROWS {
            let _ = writeln!(out, "\nand {} more", changed.len() - MAX_ROWS);
        }
    }
    for figure in evaluation.regressions.iter().flatten() {
        let _ = writeln!(out, "\n**Regression:** {} {:.3}, was {:.3}", figure.figure, figure.now, figure.was);
    }
    let failures = failures(evaluation);
    if !failures.is_empty() {
        let _ = writeln!(out, "\n<details><summary>{} failing</summary>\n", failures.len());
        out.push_str("| query | result |\n|---|---|\n");
        for (query, what) in failures.iter().take(MAX_ROWS) {
            let _ = writeln!(out, "| {} | {} |", cell(query), cell(what));
        }
        if failures.len() > MAX_ROWS {
            let _ = writeln!(out, "\nand {} more", failures.len() - MAX_ROWS);
        }
        out.push_str("\n</details>\n");
    }
    out
}

/// Renders `JUnit` XML with a test case for each query.
pub fn junit(evaluation: &Evaluation) -> String {
    let escape = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text.replace('"', "&quot;")
    };
    let failures = failures(evaluation);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuite name=\"skills eval\" tests=\"{}\" failures=\"{}\">",
        evaluation.queries.len(),
        failures.len()
    );
    for query in &evaluation.queries {
        let query = safe_text::line(query);
        let _ = write!(out, "  <testcase classname=\"golden\" name=\"{}\"", escape(&query));
        match failures.iter().find(|(failed, _)| *failed == query) {
            Some((_, what)) => {
                let _ = writeln!(out, "><failure message=\"{}\"/></testcase>", escape(what));
            }
            None => out.push_str("/>\n"),
        }
    }
    out.push_str("</testsuite>\n");
    out
}

/// Renders workflow commands of GitHub Actions.
pub fn github(evaluation: &Evaluation) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    let mut out = String::new();
    for (query, what) in failures(evaluation) {
        let _ = writeln!(out, "::warning title={}::{}", property(&query), data(&what));
    }
    for figure in evaluation.regressions.iter().flatten() {
        let text = format!("{:.3}, was {:.3}", figure.now, figure.was);
        let _ = writeln!(out, "::error title={} is worse::{}", property(&figure.figure), data(&text));
    }
    let report = &evaluation.report;
    let figures =
        format!("P@1 {:.3}, MRR@10 {:.3}, {} queries", report.p_at_1, report.mrr_at_10, report.queries);
    let _ = writeln!(out, "::notice title=skills eval::{figures}");
    out
}
