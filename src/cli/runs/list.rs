//! `skills runs list`: one line per run, waiting runs first.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::next_steps::invocation;
use super::{clock, status};
use crate::Context;
use crate::args::RunsListArgs;
use crate::failure::{Done, Failure};
use crate::output::{TerminalCaps, TextStyle, cells, cut, fit};
use skills_api::Needs;
use skills_config::RUN_COLUMNS;
use skills_model::RunState;
use skills_skill::safe_text;
use skills_store::{RunFilter, RunPage, RunRecord};

/// Rows per page when all runs are requested.
const PAGE: usize = 500;

/// Runs the command.
pub async fn run(cx: &mut Context, args: &RunsListArgs) -> Result<Done, Failure> {
    let client = cx.reach(Needs::Catalogue).await?;
    let mut filter = RunFilter {
        states: args.state.clone(),
        skill_id: args.skill.clone(),
        text: args.text.clone(),
        trace_id: args.trace.clone(),
        r#where: args.r#where.clone(),
        cursor: None,
        limit: if args.all { PAGE } else { args.limit as usize },
    };
    let mut page = client.runs(filter.clone()).await?;
    while args.all
        && let Some(cursor) = page.next.take()
    {
        filter.cursor = Some(cursor);
        let more = client.runs(filter.clone()).await?;
        page.runs.extend(more.runs);
        page.next = more.next;
    }
    if cx.out.json {
        cx.out.value(&page)?;
    } else {
        let begin = invocation(&cx.global, None).line(&["run", "SKILL"]);
        sort(&mut page.runs, args.sort.as_deref())?;
        let columns: Vec<&str> = args.columns.iter().map(String::as_str).collect();
        let text = if columns.is_empty() {
            render(&page, clock::now_ms(), &TimeZone::system(), cx.out.look, &begin)
        } else {
            table(&page, &columns, clock::now_ms(), cx.out.look) + &footer(&page, cx.out.look, &begin)
        };
        let ids = page.runs.iter().map(|run| (status::short(&run.id.0), run.id.0.as_str()));
        let text = cx.out.links.runs(text, ids);
        cx.out.raw(text.as_bytes())?;
    }
    Ok(Done::Fine)
}

/// Returns the text of a column; the sort key is the same text, or its number.
fn cell(run: &RunRecord, column: &str, now_ms: i64, look: TerminalCaps) -> String {
    let text = match column {
        "state" => run.state.to_string(),
        "title" => run.title_or_skill().to_owned(),
        "skill" => run.skill_id.clone(),
        "id" if look.terminal => status::short(&run.id.0).to_owned(),
        "id" => run.id.0.clone(),
        "progress" => format!("{}/{}", run.progress.0, run.progress.1),
        "step" => run.step.clone().unwrap_or_default(),
        "error" => run.failure().unwrap_or_default(),
        "by" => run.started_by.clone(),
        "approver" => run.options.assigned.as_ref().map(|assigned| assigned.to.clone()).unwrap_or_default(),
        "worker" => {
            let worker = run.lease.as_ref().and_then(|lease| lease.worker.as_ref());
            worker.map(skills_store::WorkerId::describe).unwrap_or_default()
        }
        "deadline" => run.expires_ms.map(|at| clock::age(at - now_ms)).unwrap_or_default(),
        _ => clock::age(now_ms - run.since_ms),
    };
    safe_text::line(&text).into_owned()
}

/// Sorts runs by a column; a leading `-` reverses the order.
fn sort(runs: &mut [RunRecord], by: Option<&str>) -> Result<(), Failure> {
    let Some(by) = by else { return Ok(()) };
    let column = by.trim_start_matches('-');
    if !RUN_COLUMNS.contains(&column) {
        return Err(Failure::usage(format!(
            "unknown column `{column}`; use one of {}",
            RUN_COLUMNS.join(", ")
        )));
    }
    let look = TerminalCaps { colour: false, unicode: true, width: 80, terminal: false };
    match column {
        "age" => runs.sort_by_key(|run| -run.since_ms),
        "deadline" => runs.sort_by_key(|run| run.expires_ms.unwrap_or(i64::MAX)),
        "progress" => runs.sort_by_key(|run| run.progress),
        _ => runs.sort_by_cached_key(|run| cell(run, column, 0, look)),
    }
    if by.starts_with('-') {
        runs.reverse();
    }
    Ok(())
}

/// Renders runs with the given columns.
fn table(page: &RunPage, columns: &[&str], now_ms: i64, look: TerminalCaps) -> String {
    let rows: Vec<Vec<String>> = page
        .runs
        .iter()
        .map(|run| columns.iter().map(|column| cell(run, column, now_ms, look)).collect())
        .collect();
    let most = if look.terminal { 40 } else { usize::MAX };
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            let longest = rows.iter().map(|row| cells(&row[at])).max().unwrap_or(0);
            longest.max(columns[at].len()).min(most)
        })
        .collect();
    let line = |row: &[String]| {
        let parts = row.iter().zip(&widths).map(|(text, width)| fit(text, *width, look.unicode));
        parts.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let head: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
    let mut out = TextStyle::Muted.paint(line(&head).trim_end(), look.colour) + "\n";
    out.extend(rows.iter().map(|row| line(row)));
    out + "\n"
}

/// Renders the runs.
fn render(page: &RunPage, now_ms: i64, zone: &TimeZone, look: TerminalCaps, begin: &str) -> String {
    let mut out = String::new();
    // In a pipe ids are complete; on a terminal they are abbreviated to their ends, which also identify a run.
    let id = |run: &RunRecord| {
        if look.terminal { status::short(&run.id.0).to_owned() } else { run.id.0.clone() }
    };
    let id_width = page.runs.iter().map(|run| cells(&id(run))).max().unwrap_or(8).max(3);
    // A title identifies a run; without one its skill is shown.
    let name = |run: &RunRecord| match run.title() {
        Some(title) if look.terminal || title.starts_with(&run.skill_id) => {
            safe_text::line(title).into_owned()
        }
        Some(title) => format!("{}: {}", safe_text::line(&run.skill_id), safe_text::line(title)),
        None => safe_text::line(&run.skill_id).into_owned(),
    };
    let longest = page.runs.iter().map(|run| cells(&name(run))).max().unwrap_or(5);
    let skill_width = if look.terminal { longest.clamp(5, (look.width / 3).max(24)) } else { longest.max(5) };
    let available = look
        .text_width(usize::MAX)
        .saturating_sub(2 + id_width + 2 + skill_width + 2 + 5 + 2 + 6 + 2)
        .max(12);
    if !page.runs.is_empty() {
        let head = format!(
            "  {}  {}  {:>5}  {:>6}  state",
            fit("run", id_width, look.unicode),
            fit("title", skill_width, look.unicode),
            "steps",
            "since",
        );
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(&head, look.colour));
    }
    for run in &page.runs {
        let (through, steps) = run.progress;
        let words = cut(&status::words_now(run, now_ms, zone), available, look.unicode);
        let waits = matches!(run.state, RunState::WaitingForHuman | RunState::Failed);
        let words = if waits { words } else { TextStyle::Muted.paint(&words, look.colour) };
        let _ = writeln!(
            out,
            "{} {}  {}  {:>5}  {:>6}  {words}",
            status::sign(run, look),
            TextStyle::Strong.paint(&fit(&id(run), id_width, look.unicode), look.colour),
            fit(&name(run), skill_width, look.unicode),
            format!("{through}/{steps}"),
            clock::age(now_ms - run.since_ms),
        );
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out + &footer(page, look, begin)
}

fn footer(page: &RunPage, look: TerminalCaps, begin: &str) -> String {
    let count = |states: &[RunState]| states.iter().filter_map(|state| page.counts.get(state)).sum::<u64>();
    let all: u64 = page.counts.values().sum();
    let mut parts = Vec::new();
    let waiting = count(&[RunState::WaitingForHuman]);
    let signals = count(&[RunState::WaitingForSignal]);
    let running = count(&[RunState::Running, RunState::Replaying]);
    for (n, words) in
        [(waiting, "waiting for approval"), (signals, "waiting for a signal"), (running, "running")]
    {
        if n > 0 {
            parts.push(format!("{n} {words}"));
        }
    }
    parts.push(if all == 0 { format!("no runs; start one with {begin}") } else { format!("{all} in total") });
    if page.next.is_some() {
        parts.push(format!("{} shown (--all shows all)", page.runs.len()));
    }
    let dot = if look.unicode { " · " } else { " - " };
    TextStyle::Muted.paint(&parts.join(dot), look.colour) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples::{NOW_MS, record};

    fn page() -> RunPage {
        let states = [
            RunState::WaitingForHuman,
            RunState::WaitingForSignal,
            RunState::Running,
            RunState::Completed,
            RunState::Failed,
            RunState::Canceled,
        ];
        RunPage {
            runs: states.map(record).into(),
            next: Some("more".to_owned()),
            counts: states.map(|state| (state, 3)).into(),
        }
    }

    #[test]
    fn eighty_columns_hold_a_run_and_what_it_is_about() {
        let look = TerminalCaps { colour: false, unicode: true, width: 80, terminal: true };
        let text = render(&page(), NOW_MS, &TimeZone::UTC, look, "skills run SKILL");
        insta::assert_snapshot!(text, @r"
          run       title           steps   since  state
        ◆ 0000abcd  invoice-intake    3/4   1 min  book waits for approval
        ◇ 0000abcd  invoice-intake    3/4   1 min  waits for signal books-closed
        ▸ 0000abcd  invoice-intake    3/4   1 min  running book
        ✓ 0000abcd  invoice-intake    3/4   1 min  completed
        ✗ 0000abcd  invoice-intake    3/4   1 min  failed at sum: the service answered…
        ⊘ 0000abcd  invoice-intake    3/4   1 min  canceled

        3 waiting for approval · 3 waiting for a signal · 3 running · 18 in total · 6 shown (--all shows all)
        ");
        let rows: Vec<&str> = text.lines().take(7).collect();
        assert!(rows.iter().all(|line| cells(line) <= 80), "{text}");
    }

    #[test]
    fn a_pipe_gets_whole_ids_and_whole_sentences() {
        let look = TerminalCaps { colour: false, unicode: false, width: 80, terminal: false };
        let text = render(&page(), NOW_MS, &TimeZone::UTC, look, "skills run SKILL");
        assert!(text.contains("x 0198a1b2-0000-7000-8000-00000000abcd  invoice-intake"), "{text}");
        assert!(text.contains("failed at sum: the service answered 502\n"), "{text}");
    }

    #[test]
    fn an_empty_store_says_how_to_begin() {
        let none = RunPage { runs: Vec::new(), next: None, counts: std::collections::BTreeMap::default() };
        let look = TerminalCaps { colour: false, unicode: true, width: 80, terminal: false };
        assert_eq!(
            render(&none, NOW_MS, &TimeZone::UTC, look, "skills run SKILL"),
            "no runs; start one with skills run SKILL\n"
        );
    }
}
