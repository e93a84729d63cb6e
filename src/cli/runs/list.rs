//! `skills runs list`: a line a run, those that wait first.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::onward::invocation;
use super::{clock, standing};
use crate::Context;
use crate::args::RunsListArgs;
use crate::failure::{Done, Failure};
use crate::output::{Ink, Look, cells, cut, fit};
use skills_api::Needs;
use skills_model::RunState;
use skills_skill::safe_text;
use skills_store::{RunFilter, RunPage, RunRecord};

/// Rows of one question to the store when all are wanted.
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
        let text = render(&page, clock::now_ms(), &TimeZone::system(), cx.out.look, &begin);
        cx.out.raw(text.as_bytes())?;
    }
    Ok(Done::Fine)
}

/// The runs as text.
fn render(page: &RunPage, now_ms: i64, zone: &TimeZone, look: Look, begin: &str) -> String {
    let mut out = String::new();
    // A pipe gets ids whole; on a terminal their ends, which name a run as well.
    let id = |run: &RunRecord| {
        if look.terminal { standing::short(&run.id.0).to_owned() } else { run.id.0.clone() }
    };
    let id_width = page.runs.iter().map(|run| cells(&id(run))).max().unwrap_or(8).max(3);
    let longest = page.runs.iter().map(|run| cells(&safe_text::line(&run.skill_id))).max().unwrap_or(5);
    let skill_width = if look.terminal { longest.clamp(5, 24) } else { longest.max(5) };
    let room =
        look.room(usize::MAX).saturating_sub(2 + id_width + 2 + skill_width + 2 + 5 + 2 + 6 + 2).max(12);
    if !page.runs.is_empty() {
        let head = format!(
            "  {}  {}  {:>5}  {:>6}  state",
            fit("run", id_width, look.unicode),
            fit("skill", skill_width, look.unicode),
            "steps",
            "since",
        );
        let _ = writeln!(out, "{}", Ink::Muted.paint(&head, look.colour));
    }
    for run in &page.runs {
        let (through, steps) = run.progress;
        let words = cut(&standing::words_now(run, now_ms, zone), room, look.unicode);
        let waits = matches!(run.state, RunState::WaitingForHuman | RunState::Failed);
        let words = if waits { words } else { Ink::Muted.paint(&words, look.colour) };
        let _ = writeln!(
            out,
            "{} {}  {}  {:>5}  {:>6}  {words}",
            standing::sign(run, look),
            Ink::Strong.paint(&fit(&id(run), id_width, look.unicode), look.colour),
            fit(&safe_text::line(&run.skill_id), skill_width, look.unicode),
            format!("{through}/{steps}"),
            clock::age(now_ms - run.since_ms),
        );
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out + &footer(page, look, begin)
}

fn footer(page: &RunPage, look: Look, begin: &str) -> String {
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
    Ink::Muted.paint(&parts.join(dot), look.colour) + "\n"
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
        let look = Look { colour: false, unicode: true, width: 80, terminal: true };
        let text = render(&page(), NOW_MS, &TimeZone::UTC, look, "skills run SKILL");
        insta::assert_snapshot!(text, @r"
          run       skill           steps   since  state
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
        let look = Look { colour: false, unicode: false, width: 80, terminal: false };
        let text = render(&page(), NOW_MS, &TimeZone::UTC, look, "skills run SKILL");
        assert!(text.contains("x 0198a1b2-0000-7000-8000-00000000abcd  invoice-intake"), "{text}");
        assert!(text.contains("failed at sum: the service answered 502\n"), "{text}");
    }

    #[test]
    fn an_empty_store_says_how_to_begin() {
        let none = RunPage { runs: Vec::new(), next: None, counts: std::collections::BTreeMap::default() };
        let look = Look { colour: false, unicode: true, width: 80, terminal: false };
        assert_eq!(
            render(&none, NOW_MS, &TimeZone::UTC, look, "skills run SKILL"),
            "no runs; start one with skills run SKILL\n"
        );
    }
}
