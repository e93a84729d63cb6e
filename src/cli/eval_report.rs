//! `skills eval --report`: the evaluation in formats for other tools.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::eval::why_rejected;
use super::output::counted;
use skills_api::Evaluation;
use skills_config::Invocation;
use skills_discovery::{ComparedQueries, EvalReport, NearMisses, Regression};
use skills_skill::{SkillId, safe_text};

/// Maximum number of rows of a Markdown table.
const MAX_ROWS: usize = 50;
/// Maximum number of characters of a query by which its line is found.
const MAX_QUERY_START: usize = 60;
/// The same for a query that is wrapped before that.
const MIN_QUERY_START: usize = 24;

fn name(id: Option<&SkillId>) -> String {
    id.map_or_else(|| "none".to_owned(), |id| safe_text::line(id.as_str()).into_owned())
}

/// Describes which queries were compared with those of a baseline.
pub(super) fn compared(compared: &ComparedQueries, called: &Invocation) -> String {
    let mut text = format!("{} compared", counted(compared.queries, "query"));
    if let Some((added, removed)) = compared.added.zip(compared.removed) {
        text += &format!(", {added} added, {removed} removed");
    }
    if compared.not_comparable > 0 {
        let queries = counted(compared.not_comparable, "query");
        let command = called.line(&["eval", "--json"]);
        text += &format!(
            "; {queries} not comparable: this baseline contains missed queries only, write a new one with `{command}`"
        );
    }
    text
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

/// Escapes a text of a table, so that it contains no link, image, format or mention.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            // GitHub looks for mentions in the rendered text, in which a backslash has no effect.
            '@' => out.push_str("@&#8203;"),
            '\\' | '|' | '[' | ']' | '!' | '`' | '*' | '_' | '~' | ':' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

/// Renders Markdown for a comment on a pull request.
pub fn markdown(evaluation: &Evaluation, called: &Invocation) -> String {
    let report = &evaluation.report;
    let mut out = String::from("### Skill routing\n\n");
    let before = evaluation.before.as_ref();
    out.push_str(match before {
        Some(_) => "| metric | before | now |\n|---|---|---|\n",
        None => "| metric | value |\n|---|---|\n",
    });
    let mut row = |figure: &str, was: Option<f64>, now: String| {
        let was = was.map_or_else(String::new, |was| format!("{was:.3}"));
        let was = match before {
            Some(_) if was.is_empty() => " |".to_owned(),
            Some(_) => format!(" {was} |"),
            None => String::new(),
        };
        let _ = writeln!(out, "| {figure} |{was} {now} |");
    };
    // Without an in-scope query there is nothing to rank.
    let ranked = |value: f64| if report.queries == 0 { "-".to_owned() } else { format!("{value:.3}") };
    row("queries", None, report.queries.to_string());
    row("P@1", before.map(|before| before.p_at_1), ranked(report.p_at_1));
    row("hit@5", before.map(|before| before.hit_at_5), ranked(report.hit_at_5));
    row("MRR@10", before.map(|before| before.mrr_at_10), ranked(report.mrr_at_10));
    row("in-scope queries rejected", None, report.wrongly_rejected.to_string());
    row("false triggers", None, report.false_triggers.len().to_string());
    if let Some(rejected) = report.out_of_scope_rejected {
        let figure = format!("rejected, of {}", counted(report.out_of_scope, "out-of-scope query"));
        let was = before.and_then(|before| before.out_of_scope_rejected);
        row(&figure, was, format!("{rejected:.3}"));
    }
    if let Some(near) = report.near_misses {
        let figure = format!("routed to the forbidden skill, of {}", counted(near.queries, "near miss"));
        let share = |near: NearMisses| near.routed as f64 / near.queries as f64;
        let was = before.and_then(|before| before.near_misses).map(share);
        row(&figure, was, format!("{:.3}", share(near)));
    }
    out += &operating_points(report);
    if let Some(changed) = &evaluation.changed {
        let _ = writeln!(out, "\n**Queries with a different winner: {}**\n", changed.len());
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
        if let Some(queries) = &evaluation.compared {
            let _ = writeln!(out, "\n{}.", compared(queries, called));
        }
    }
    if let Some(worse) = &evaluation.regressions {
        let text =
            if worse.is_empty() { "No worse than the baseline" } else { "**Worse than the baseline**" };
        let figure = |one: &Regression| format!("{} {:.3}, was {:.3}", one.figure, one.now, one.was);
        let figures = worse.iter().map(figure).collect::<Vec<_>>().join("; ");
        let colon = if worse.is_empty() { "" } else { ": " };
        let _ = writeln!(out, "\n{text}{colon}{figures}.");
    }
    let rejected = report.rejected_queries.iter();
    let rejected =
        rejected.map(|one| (safe_text::line(&one.query).into_owned(), why_rejected(one))).collect();
    for (title, queries) in [("failing", failures(evaluation)), ("in-scope rejected", rejected)] {
        if queries.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n<details><summary>{} {title}</summary>\n", queries.len());
        out.push_str("| query | result |\n|---|---|\n");
        for (query, what) in queries.iter().take(MAX_ROWS) {
            let _ = writeln!(out, "| {} | {} |", cell(query), cell(&safe_text::line(what)));
        }
        if queries.len() > MAX_ROWS {
            let _ = writeln!(out, "\nand {} more (--json lists all)", queries.len() - MAX_ROWS);
        }
        out.push_str("\n</details>\n");
    }
    out
}

/// Renders the table of what the current threshold accepts and rejects, and what others would.
fn operating_points(report: &EvalReport) -> String {
    let Some(rejected) = report.present.rejected else { return String::new() };
    let mut out = String::from("\n| threshold | accepted | rejected |\n|---|---|---|\n");
    let present = report.present.threshold.map(|from| format!("{from:.2}, ")).unwrap_or_default();
    let accepted =
        if report.queries == 0 { "-".to_owned() } else { format!("{:.3}", report.present.accepted) };
    let _ = writeln!(out, "| {present}current | {accepted} | {rejected:.3} |");
    for point in &report.thresholds {
        if let (Some(threshold), Some(rejected)) = (point.threshold, point.rejected) {
            let _ = writeln!(out, "| {threshold:.2} | {:.3} | {rejected:.3} |", point.accepted);
        }
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
    if let (Some(changed), Some(compared)) = (&evaluation.changed, evaluation.compared) {
        let counts = [
            ("changed_winners", Some(changed.len())),
            ("compared_queries", Some(compared.queries)),
            ("added_queries", compared.added),
            ("removed_queries", compared.removed),
            ("not_comparable_queries", Some(compared.not_comparable)),
        ];
        out.push_str("  <properties>\n");
        for (name, count) in counts.into_iter().filter_map(|(name, count)| Some((name, count?))) {
            let _ = writeln!(out, "    <property name=\"{name}\" value=\"{count}\"/>");
        }
        out.push_str("  </properties>\n");
    }
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

/// Returns the line of a query in a golden set, from 1. Long queries can be wrapped, and JSON escapes characters.
fn line_of(text: &str, query: &str) -> Option<usize> {
    let start = |most: usize| -> String { query.chars().take_while(|c| *c != '\n').take(most).collect() };
    let escaped = serde_json::to_string(&start(MAX_QUERY_START)).unwrap_or_default();
    let find = |start: &str| text.lines().position(|line| line.contains(start));
    let found = find(&start(MAX_QUERY_START)).or_else(|| find(escaped.trim_matches('"')));
    found.or_else(|| find(&start(MIN_QUERY_START))).map(|line| line + 1)
}

/// Returns the file and line of each query, as properties of a workflow command. GitHub expects paths relative to the
/// repository, where its steps run.
fn places(evaluation: &Evaluation, cwd: &Path) -> HashMap<String, String> {
    let read = |file: &PathBuf| skills_base::files::read_user_text(file).unwrap_or_default();
    // A file named by the user may be a pipe, which is read once.
    let texts: Vec<String> = evaluation
        .golden
        .iter()
        .map(|file| if file.is_file() { read(file) } else { String::new() })
        .collect();
    let place = |(query, source): (&String, &Option<usize>)| {
        let at = (*source)?;
        let file = evaluation.golden.get(at)?;
        let path = property(&file.strip_prefix(cwd).unwrap_or(file).display().to_string());
        let line = line_of(texts.get(at)?, query).map(|line| format!(",line={line}")).unwrap_or_default();
        Some((safe_text::line(query).into_owned(), format!("file={path}{line},")))
    };
    evaluation.queries.iter().zip(&evaluation.sources).filter_map(place).collect()
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Renders workflow commands of GitHub Actions.
pub fn github(evaluation: &Evaluation, called: &Invocation, cwd: &Path) -> String {
    let places = places(evaluation, cwd);
    let report = &evaluation.report;
    let mut out = String::new();
    for (query, what) in failures(evaluation) {
        let place = places.get(&query).map_or("", String::as_str);
        let _ = writeln!(out, "::warning {place}title={}::{}", property(&query), data(&what));
    }
    let place = |query: &str| places.get(&*safe_text::line(query)).map_or("", String::as_str);
    // The others are missed queries, above.
    for one in report.rejected_queries.iter().filter(|one| one.rank == Some(1)) {
        let (query, what) = (safe_text::line(&one.query), why_rejected(one));
        let place = place(&one.query);
        let _ =
            writeln!(out, "::notice {place}title={}::{}", property(&query), data(&safe_text::line(&what)));
    }
    for one in evaluation.changed.iter().flatten() {
        let (from, to) = (name(one.from.as_ref()), name(one.to.as_ref()));
        let (place, query) = (place(&one.query), safe_text::line(&one.query));
        let what = format!("the first skill is {to}, {from} in the baseline");
        let _ = writeln!(out, "::notice {place}title={}::{}", property(&query), data(&what));
    }
    for figure in evaluation.regressions.iter().flatten() {
        let text = format!("{:.3}, was {:.3} in the baseline", figure.now, figure.was);
        let _ = writeln!(out, "::error title={} is worse::{}", property(&figure.figure), data(&text));
    }
    let mut figures = if report.queries == 0 {
        "no in-scope queries".to_owned()
    } else {
        let queries = counted(report.queries, "query");
        format!("P@1 {:.3}, MRR@10 {:.3}, {queries}", report.p_at_1, report.mrr_at_10)
    };
    if let (Some(changed), Some(queries)) = (&evaluation.changed, &evaluation.compared) {
        figures += &format!("; {} with a different winner, {}", changed.len(), compared(queries, called));
    }
    let _ = writeln!(out, "::notice title=skills eval::{}", data(&figures));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_contain_no_markdown() {
        assert_eq!(
            cell("[click](http://evil) ![x](y) @admin <b> `a|b` *c* my_d &lt;"),
            r"\[click\](http\://evil) \!\[x\](y) @&#8203;admin &lt;b> \`a\|b\` \*c\* my\_d &amp;lt;"
        );
        assert_eq!(cell("merge pdf files, quickly (rank 3)"), "merge pdf files, quickly (rank 3)");
    }
}
