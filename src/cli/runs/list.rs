//! `skills runs list`: one line per run, waiting runs first.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::{clock, plain, status};
use crate::Context;
use crate::args::RunsListArgs;
use crate::dialog::clean;
use crate::failure::{Exit, Failure};
use crate::output::{HANGING, TerminalCaps, TextStyle, cells, cut, fit, fit_end};
use skills_api::{CoreParts, RunClient, distinguishing_texts, run_cell, sort_runs};
use skills_config::{RunColumn, RunSort};
use skills_model::RunState;
use skills_skill::safe_text;
use skills_store::{RunFilter, RunPage, RunRecord};

/// Rows per page when all runs are requested.
const PAGE: usize = 500;

/// Maximum number of matching runs that are counted for the footer of a cut list: they are read to count them.
const MAX_COUNTED: usize = 5_000;

pub async fn run(cx: &mut Context, args: &RunsListArgs) -> Result<Exit, Failure> {
    let sort = args.sort.as_deref().map(parse_sort).transpose()?;
    let client = cx.reach(CoreParts::Catalog).await?;
    // The first rows of an order other than the store's can be on any page.
    let all = args.all || sort.is_some();
    let mut filter = RunFilter {
        states: args.state.clone(),
        skill_id: args.skill.clone(),
        text: args.text.clone(),
        trace_id: args.trace.clone(),
        r#where: args.r#where.clone(),
        cursor: None,
        limit: if all { PAGE } else { args.limit as usize },
    };
    let mut page = client.runs(filter.clone()).await?;
    while all && let Some(cursor) = page.next.take() {
        filter.cursor = Some(cursor);
        let more = client.runs(filter.clone()).await?;
        page.runs.extend(more.runs);
        page.next = more.next;
    }
    let next = page.next.clone();
    // The most urgent wait can be on any page that has waiting runs, which come first.
    let waits = |run: &RunRecord| run.state == RunState::WaitingForHuman;
    while sort.is_none()
        && page.runs.len() <= MAX_COUNTED
        && page.runs.last().is_some_and(waits)
        && let Some(cursor) = page.next.take()
    {
        let more = client.runs(RunFilter { cursor: Some(cursor), limit: PAGE, ..filter.clone() }).await?;
        page.runs.extend(more.runs);
        page.next = more.next;
    }
    match sort {
        Some(sort) => sort_runs(&mut page.runs, sort),
        None => page.runs.sort_by_key(|run| {
            let deadline = waits(run).then(|| run.expires_ms.unwrap_or(i64::MAX));
            (deadline.is_none(), deadline)
        }),
    }
    let matching = match page.next {
        Some(_) if !cx.out.json => count(&*client, filter, &page).await?,
        _ => page.runs.len(),
    };
    let shown = if args.all { usize::MAX } else { args.limit as usize };
    if page.runs.len() > shown {
        page.runs.truncate(shown);
        page.next = page.next.or(next);
    }
    if cx.out.json {
        cx.out.value(&page)?;
    } else {
        if page.runs.is_empty() && has_filter(args) {
            eprintln!("no runs match the filter");
        }
        let advice = cx.first_entry_advice("start one with `skills run SKILL`");
        let columns = &args.columns;
        if cx.is_plain() {
            let text = labeled(&page, columns, clock::now_ms());
            let totals = totals(&page, matching, &advice).join(", ");
            cx.out.text(&format!("{text}{totals}.\n"))?;
            return Ok(Exit::Success);
        }
        let text = if columns.is_empty() {
            render(&page, clock::now_ms(), &TimeZone::system(), cx.out.look)
        } else {
            table(&page, columns, clock::now_ms(), cx.out.look)
        };
        let ids = page.runs.iter().map(|run| (status::short(&run.id.0), run.id.0.as_str()));
        let text = cx.out.links.runs(text + &footer(&page, matching, cx.out.look, &advice), ids);
        cx.out.text(&text)?;
    }
    Ok(Exit::Success)
}

/// Returns whether the list is narrowed.
fn has_filter(args: &RunsListArgs) -> bool {
    let texts = [&args.skill, &args.text, &args.trace, &args.r#where];
    !args.state.is_empty() || texts.into_iter().any(Option::is_some)
}

/// Returns how many runs match a filter, of which `page` is the first page; above [`MAX_COUNTED`] at least that many.
async fn count(client: &dyn RunClient, mut filter: RunFilter, page: &RunPage) -> Result<usize, Failure> {
    let RunFilter { states, skill_id, text, trace_id, r#where, .. } = &filter;
    if skill_id.is_none() && text.is_none() && trace_id.is_none() && r#where.is_none() {
        let counted = page.counts.iter().filter(|(state, _)| states.is_empty() || states.contains(state));
        return Ok(usize::try_from(counted.map(|(_, runs)| *runs).fold(0, u64::saturating_add))
            .unwrap_or(usize::MAX));
    }
    let mut matching = page.runs.len();
    let mut next = page.next.clone();
    filter.limit = PAGE;
    while matching <= MAX_COUNTED
        && let Some(cursor) = next
    {
        filter.cursor = Some(cursor);
        let more = client.runs(filter.clone()).await?;
        matching += more.runs.len();
        next = more.next;
    }
    Ok(matching)
}

/// Returns the text of a cell; on a terminal ids are abbreviated.
fn cell(run: &RunRecord, column: RunColumn, now_ms: i64, look: TerminalCaps) -> String {
    if column == RunColumn::Id && look.terminal {
        return status::short(&run.id.0).to_owned();
    }
    safe_text::line(&run_cell(column, run, now_ms)).into_owned()
}

/// Parses the order of the list.
fn parse_sort(by: &str) -> Result<RunSort, Failure> {
    by.parse().map_err(|_| {
        let column = by.trim_start_matches('-');
        Failure::usage(format!("unknown column `{column}`; expected one of: {}", RunColumn::names()))
    })
}

/// Renders runs as numbered, labeled lines, with the given columns if there are any.
fn labeled(page: &RunPage, columns: &[RunColumn], now_ms: i64) -> String {
    let look = TerminalCaps { color: false, unicode: false, width: usize::MAX, terminal: false };
    let line = |run: &RunRecord, distinction: &str| {
        if columns.is_empty() {
            return plain::text::item(run, distinction, now_ms);
        }
        let parts = columns.iter().map(|column| {
            let text = cell(run, *column, now_ms, look);
            let has_distinction = *column == RunColumn::Title && !distinction.is_empty();
            if has_distinction {
                format!("{column}: {text}, {distinction}")
            } else {
                format!("{column}: {text}")
            }
        });
        clean(&parts.collect::<Vec<_>>().join("; "))
    };
    let distinctions = distinguishing_texts(&page.runs.iter().collect::<Vec<_>>(), ", ");
    let lines = page.runs.iter().zip(&distinctions).map(|(run, distinction)| line(run, distinction));
    (1..).zip(lines).map(|(number, line)| format!("{number}. {line}\n")).collect()
}

fn table(page: &RunPage, columns: &[RunColumn], now_ms: i64, look: TerminalCaps) -> String {
    let distinctions = distinguishing_texts(&page.runs.iter().collect::<Vec<_>>(), "  ");
    let cell = |run: &RunRecord, distinction: &str, column: RunColumn| match column {
        RunColumn::Title => titled(cell(run, column, now_ms, look), distinction),
        column => cell(run, column, now_ms, look),
    };
    let rows: Vec<Vec<String>> = page
        .runs
        .iter()
        .zip(&distinctions)
        .map(|(run, distinction)| columns.iter().map(|column| cell(run, distinction, *column)).collect())
        .collect();
    let most = if look.terminal { 40 } else { usize::MAX };
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            let longest = rows.iter().map(|row| cells(&row[at])).max().unwrap_or(0);
            longest.max(columns[at].name().len()).min(most)
        })
        .collect();
    let line = |row: &[String], distinction: &str| {
        let parts = row.iter().zip(&widths).zip(columns).map(|((text, width), column)| match column {
            RunColumn::Title if !distinction.is_empty() => fit_end(text, *width, look.unicode),
            _ => fit(text, *width, look.unicode),
        });
        let row = parts.collect::<Vec<_>>().join("  ");
        look.rows("", HANGING, row.trim_end()).join("\n") + "\n"
    };
    let head: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let mut out = TextStyle::Muted.paint(line(&head, "").trim_end(), look.color) + "\n";
    out.extend(rows.iter().zip(&distinctions).map(|(row, distinction)| line(row, distinction)));
    out + "\n"
}

/// Appends what distinguishes a run from others of its title.
fn titled(title: String, distinction: &str) -> String {
    if distinction.is_empty() { title } else { format!("{title}  {distinction}") }
}

fn render(page: &RunPage, now_ms: i64, zone: &TimeZone, look: TerminalCaps) -> String {
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
        Some(title) => format!("{}: {}", safe_text::name(&run.skill_id), safe_text::line(title)),
        None => safe_text::name(&run.skill_id).into_owned(),
    };
    let distinctions = distinguishing_texts(&page.runs.iter().collect::<Vec<_>>(), "  ");
    let names = page.runs.iter().zip(&distinctions);
    let names: Vec<String> = names.map(|(run, distinction)| titled(name(run), distinction)).collect();
    let longest = names.iter().map(|name| cells(name)).max().unwrap_or(5);
    let skill_width = if look.terminal { longest.clamp(5, (look.width / 3).max(24)) } else { longest.max(5) };
    let available = look
        .text_width(usize::MAX)
        .saturating_sub(2 + id_width + 2 + skill_width + 2 + 8 + 2 + 6 + 2)
        .max(12);
    if !page.runs.is_empty() {
        let head = format!(
            "  {}  {}  {:>8}  {:>6}  state",
            fit("id", id_width, look.unicode),
            fit("title", skill_width, look.unicode),
            "progress",
            "since",
        );
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(&head, look.color));
    }
    for ((run, name), distinction) in page.runs.iter().zip(&names).zip(&distinctions) {
        let fit_name = if distinction.is_empty() { fit } else { fit_end };
        let (through, steps) = run.progress;
        let assigned = run.options.assigned.as_ref().filter(|_| !run.state.is_terminal());
        let assigned = assigned.map(|assigned| format!(", assigned to {}", safe_text::line(&assigned.to)));
        let words = status::words_now(run, now_ms, zone) + &assigned.unwrap_or_default();
        let words = cut(&words, available, look.unicode);
        let waits = matches!(run.state, RunState::WaitingForHuman | RunState::Failed);
        let words = if waits { words } else { TextStyle::Muted.paint(&words, look.color) };
        let _ = writeln!(
            out,
            "{} {}  {}  {:>8}  {:>6}  {words}",
            status::sign(run, look),
            TextStyle::Strong.paint(&fit(&id(run), id_width, look.unicode), look.color),
            fit_name(name, skill_width, look.unicode),
            format!("{through}/{steps}"),
            clock::age(now_ms.saturating_sub(run.since_ms)),
        );
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// Renders the last line of a list.
fn footer(page: &RunPage, matching: usize, look: TerminalCaps, advice: &str) -> String {
    let dot = if look.unicode { " · " } else { " - " };
    TextStyle::Muted.paint(&totals(page, matching, advice).join(dot), look.color) + "\n"
}

/// Returns the counts of the store (for an empty one, the advice), and how many runs match if the list is cut.
fn totals(page: &RunPage, matching: usize, advice: &str) -> Vec<String> {
    let count = |states: &[RunState]| {
        let counts = states.iter().filter_map(|state| page.counts.get(state));
        counts.copied().fold(0, u64::saturating_add)
    };
    let all = page.counts.values().copied().fold(0, u64::saturating_add);
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
    parts.push(if all == 0 { format!("no runs; {advice}") } else { format!("{all} total") });
    let shown = page.runs.len();
    if matching > shown {
        let total =
            if matching > MAX_COUNTED { format!("more than {MAX_COUNTED}") } else { matching.to_string() };
        parts.push(format!("{shown} of {total} shown; --all lists them"));
    }
    parts
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
    fn run_and_its_title_fit_eighty_columns() {
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let page = page();
        let text = render(&page, NOW_MS, &TimeZone::UTC, look) + &footer(&page, 18, look, "");
        insta::assert_snapshot!(text, @r"
          id        title           progress   since  state
        ◆ 0000abcd  invoice-intake       3/4     1 m  book is waiting for approval
        ◇ 0000abcd  invoice-intake       3/4     1 m  waiting for signal books-closed
        ▸ 0000abcd  invoice-intake       3/4     1 m  running book
        ✓ 0000abcd  invoice-intake       3/4     1 m  completed
        ✗ 0000abcd  invoice-intake       3/4     1 m  failed at sum: the service answer…
        ⊘ 0000abcd  invoice-intake       3/4     1 m  canceled

        3 waiting for approval · 3 waiting for a signal · 3 running · 18 total · 6 of 18 shown; --all lists them
        ");
        let rows: Vec<&str> = text.lines().take(7).collect();
        assert!(rows.iter().all(|line| cells(line) <= 80), "{text}");
    }

    #[test]
    fn extreme_numbers_of_a_service_do_not_overflow() {
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let mut page = page();
        page.runs.iter_mut().for_each(|run| (run.created_ms, run.since_ms) = (i64::MIN, i64::MIN));
        page.counts.values_mut().for_each(|count| *count = u64::MAX);
        let text = render(&page, NOW_MS, &TimeZone::UTC, look) + &footer(&page, 18, look, "");
        assert!(text.contains("18446744073709551615 total"), "{text}");
    }

    #[test]
    fn plain_lists_are_numbered_and_labeled() {
        let text = labeled(&page(), &[], NOW_MS);
        assert!(text.starts_with("1. invoice-intake. Run 0000abcd, skill invoice-intake, step 4"), "{text}");
        let text = labeled(&page(), &[RunColumn::State, RunColumn::Title], NOW_MS);
        assert!(text.contains("\n5. state: failed; title: invoice-intake\n"), "{text}");
    }

    #[test]
    fn output_to_a_pipe_is_not_truncated() {
        let look = TerminalCaps { color: false, unicode: false, width: 80, terminal: false };
        let text = render(&page(), NOW_MS, &TimeZone::UTC, look);
        assert!(text.contains("x 0198a1b2-0000-7000-8000-00000000abcd  invoice-intake"), "{text}");
        assert!(text.contains("failed at sum: the service answered 502\n"), "{text}");
    }

    #[test]
    fn empty_store_shows_how_to_start() {
        let none = RunPage { runs: Vec::new(), next: None, counts: std::collections::BTreeMap::default() };
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: false };
        let advice = "start one with `skills run SKILL`";
        assert_eq!(footer(&none, 0, look, advice), "no runs; start one with `skills run SKILL`\n");
    }
}
