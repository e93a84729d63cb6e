//! `skills runs board`: waiting runs by deadline, runs in progress, failures by reason, and the workers, on one page.

use std::fmt::Write as _;
use std::time::Duration;

use super::{clock, plain, status};
use crate::Context;
use crate::args::RunsBoardArgs;
use crate::failure::{Exit, Failure};
use crate::output::{HANGING, TerminalCaps, TextStyle, cells, cut, fit, fit_end, grouped};
use skills_api::{Board, BoardRun, CoreParts, Deadline, WorkerState, WorkerView};
use skills_model::{RunState, step_label};
use skills_skill::safe_text;

/// Maximum number of runs listed per group.
const MAX_ROWS: usize = 15;
/// Width of a deadline with its separator.
const DEADLINE_WIDTH: usize = 17;

/// Commands that start a worker.
pub const FIRST_WORKER: &str = "start one with `skills serve` or `skills runs work`";

/// Remaining times below which a deadline is shown as a warning, and as critical.
#[derive(Debug, Clone, Copy)]
pub struct Thresholds {
    pub warn_before: Duration,
    pub danger_before: Duration,
}

impl Thresholds {
    pub fn of(config: &skills_config::Config) -> Self {
        Self { warn_before: config.runs.warn_before, danger_before: config.runs.danger_before }
    }

    /// Returns `expires in 32 min` in the style of its urgency; `no deadline` if there is none.
    pub fn deadline(self, expires_ms: Option<i64>, now_ms: i64, look: TerminalCaps) -> String {
        let deadline = Deadline::of(expires_ms, now_ms);
        let text = deadline.text(clock::age);
        let style = match deadline {
            Deadline::None => TextStyle::Muted,
            _ if deadline.is_within(self.danger_before) => TextStyle::Bad,
            _ if deadline.is_within(self.warn_before) => TextStyle::Warn,
            _ => return text,
        };
        style.paint(&text, look.color)
    }
}

pub async fn run(cx: &mut Context, args: &RunsBoardArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let board = client.board(args.hours).await?;
    if cx.out.json {
        cx.out.value(&board)?;
    } else {
        let thresholds = Thresholds::of(&cx.config()?);
        let advice = cx.first_entry_advice(FIRST_WORKER);
        cx.print_rendered(|is_plain, look| {
            if is_plain {
                plain::text::board(&board, args.hours)
            } else {
                render(&board, args.hours, thresholds, &advice, look)
            }
        })?;
    }
    Ok(Exit::Success)
}

/// Renders counts, one character per slice: `▁▂▃▄▅▆▇`, or `1` to `7`.
fn sparkline(slices: &[u32], cells: usize, unicode: bool) -> String {
    let signs = if unicode {
        ['▁', '▂', '▃', '▄', '▅', '▆', '▇']
    } else {
        ['1', '2', '3', '4', '5', '6', '7']
    };
    let per_cell = slices.len().div_ceil(cells.max(1)).max(1);
    let sums: Vec<u32> =
        slices.chunks(per_cell).map(|chunk| chunk.iter().copied().fold(0, u32::saturating_add)).collect();
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    let sign = |sum: &u32| match sum {
        0 => ' ',
        sum => signs[usize::try_from(u64::from(*sum) * 7 / u64::from(most)).unwrap_or(7).clamp(1, 7) - 1],
    };
    sums.iter().map(sign).collect()
}

/// Renders the board; `advice` is how to start the first worker.
fn render(board: &Board, hours: u32, thresholds: Thresholds, advice: &str, look: TerminalCaps) -> String {
    let widths = ColumnWidths::of(look);
    let mut out = summary(board, hours, look);
    if board.truncated {
        let _ =
            writeln!(out, "{}", TextStyle::Warn.paint("Only the newest ended runs are counted.", look.color));
    }
    out += &group("waiting for approval, nearest deadline first", &board.waiting, &widths, look, |run| {
        waiting_note(run, thresholds, board.now_ms, &widths, look)
    });
    out += &group("in progress", &board.running, &widths, look, |run| {
        progress_note(run, board.now_ms, &widths, look)
    });
    out += &failures(board, hours, &widths, look);
    let completed = board.completed_runs();
    if completed > 0 {
        let _ = writeln!(
            out,
            "\n  {} {:>6}  {}  {}",
            sign(RunState::Completed, look),
            grouped(completed),
            fit("completed", widths.title, look.unicode),
            sparkline(&board.completed, widths.bars, look.unicode),
        );
    }
    out.push('\n');
    out + &workers(&board.workers, board.now_ms, advice, look)
}

/// Widths of the columns of runs and reasons, in cells.
struct ColumnWidths {
    title: usize,
    step: usize,
    last: usize,
    bars: usize,
}

impl ColumnWidths {
    fn of(look: TerminalCaps) -> Self {
        let available = look.text_width(120);
        let title = available.saturating_sub(54).clamp(24, 44);
        let step = if available < 100 { 14 } else { 20 };
        let last = available.saturating_sub(title + step + 18).max(22);
        let bars = available.saturating_sub(title + 24).clamp(8, 64);
        Self { title, step, last, bars }
    }
}

/// Renders the counts by state, in one line.
fn summary(board: &Board, hours: u32, look: TerminalCaps) -> String {
    let count = |states: &[RunState]| {
        let counts = states.iter().filter_map(|state| board.counts.get(state));
        counts.copied().fold(0, u64::saturating_add)
    };
    let oldest = board.oldest_waiting_ms.map_or_else(String::new, |since| {
        format!(" (oldest {})", clock::age(board.now_ms.saturating_sub(since)))
    });
    let waiting = format!("{} waiting for approval{oldest}", grouped(count(&[RunState::WaitingForHuman])));
    format!(
        "{}, {} running, {} waiting for a signal, {} pending, {} paused; last {hours} h: {} failed, \
         {} completed, {} canceled\n",
        TextStyle::Strong.paint(&waiting, look.color),
        grouped(count(&[RunState::Running, RunState::Replaying])),
        grouped(count(&[RunState::WaitingForSignal])),
        grouped(count(&[RunState::Pending]).saturating_sub(board.paused())),
        grouped(board.paused()),
        grouped(board.failed_runs()),
        grouped(board.completed_runs()),
        grouped(board.canceled_runs()),
    )
}

/// Renders a heading and a row for each run, which ends with its note; nothing without runs.
fn group(
    heading: &str,
    runs: &[BoardRun],
    widths: &ColumnWidths,
    look: TerminalCaps,
    note: impl Fn(&BoardRun) -> String,
) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", TextStyle::Muted.paint(heading, look.color));
    for run in runs.iter().take(MAX_ROWS) {
        let title = match run.distinction.as_str() {
            "" => fit(&safe_text::line(&run.title), widths.title, look.unicode),
            other => {
                fit_end(&format!("{}  {other}", safe_text::line(&run.title)), widths.title, look.unicode)
            }
        };
        let step = run
            .step
            .as_deref()
            .map(|step| safe_text::line(step_label(step)).into_owned())
            .unwrap_or_default();
        let (done, all) = run.progress;
        let at = fit(&format!("{done}/{all} {step}"), widths.step, look.unicode);
        let id = status::short(&run.run.0);
        let _ = writeln!(out, "  {} {id}  {title}  {at}  {}", sign(run.state, look), note(run));
    }
    if runs.len() > MAX_ROWS {
        let _ = writeln!(out, "  {} more", runs.len() - MAX_ROWS);
    }
    out
}

/// Describes how long a run waits and for whom.
fn waiting_note(
    run: &BoardRun,
    thresholds: Thresholds,
    now_ms: i64,
    widths: &ColumnWidths,
    look: TerminalCaps,
) -> String {
    let deadline = thresholds.deadline(run.expires_ms, now_ms, look);
    let assigned = run.assigned.as_ref().map(|to| format!("assigned to {}", safe_text::line(to)));
    let notes = run.wait_notes().map(|note| safe_text::line(note).into_owned());
    let notes = notes.chain(assigned).collect::<Vec<_>>().join(", ");
    if notes.is_empty() {
        return deadline;
    }
    // A terminal would wrap them within a word.
    let is_long = look.terminal && DEADLINE_WIDTH + cells(&notes) > widths.last;
    let (separator, rows) =
        if is_long { ("\n", look.rows("      ", HANGING, &notes)) } else { (", ", vec![notes]) };
    let paint = |row: String| {
        if run.outcome_unknown { TextStyle::Warn.paint(&row, look.color) } else { row }
    };
    format!("{deadline}{separator}{}", rows.into_iter().map(paint).collect::<Vec<_>>().join("\n"))
}

/// Describes what a run in progress waits for, or since when it runs.
fn progress_note(run: &BoardRun, now_ms: i64, widths: &ColumnWidths, look: TerminalCaps) -> String {
    match &run.signal {
        Some(signal) => cut(&format!("signal {}", safe_text::line(signal)), widths.last, look.unicode),
        None if run.is_paused() => "paused until resumed".to_owned(),
        None if run.state == RunState::Pending => {
            format!("pending {}", clock::age(now_ms.saturating_sub(run.since_ms)))
        }
        None => format!("started {} ago", clock::age(now_ms.saturating_sub(run.created_ms))),
    }
}

/// Renders the reasons of failures with their frequency over time; nothing without failures.
fn failures(board: &Board, hours: u32, widths: &ColumnWidths, look: TerminalCaps) -> String {
    if board.failed.is_empty() {
        return String::new();
    }
    let heading = format!("failed, last {hours} h, by reason");
    let mut out = format!("\n{}\n", TextStyle::Muted.paint(&heading, look.color));
    for reason in board.failed.iter().take(MAX_ROWS) {
        let _ = writeln!(
            out,
            "  {} {:>6}  {}  {}  last {} ago",
            sign(RunState::Failed, look),
            grouped(reason.runs),
            fit(&safe_text::line(&reason.reason), widths.title, look.unicode),
            TextStyle::Bad.paint(&sparkline(&reason.slices, widths.bars, look.unicode), look.color),
            clock::age(board.now_ms.saturating_sub(reason.last_ms)),
        );
    }
    out
}

fn sign(state: RunState, look: TerminalCaps) -> String {
    status::sign_of(state, look)
}

/// Renders the workers; `advice` is how to start the first one.
pub fn workers(workers: &[WorkerView], now_ms: i64, advice: &str, look: TerminalCaps) -> String {
    if workers.is_empty() {
        let text = format!("no workers; {advice}");
        return format!("{}\n", TextStyle::Muted.paint(&text, look.color));
    }
    let mut out = format!("{}\n", TextStyle::Muted.paint("workers", look.color));
    let width = look.name_width(workers.iter().map(|worker| worker.name.as_str()), 10, 40);
    for worker in workers {
        let (sign, style) = match worker.state {
            WorkerState::Live => (if look.unicode { "✓" } else { "+" }, TextStyle::Good),
            WorkerState::Draining => ("!", TextStyle::Warn),
            WorkerState::Lost => (if look.unicode { "✗" } else { "x" }, TextStyle::Bad),
        };
        let busy = match worker.slots {
            Some(slots) => format!("{}/{slots}", worker.runs.len()),
            None => worker.runs.len().to_string(),
        };
        let seen = match worker.seen_ms {
            Some(seen) => format!("heartbeat {} ago", clock::age(now_ms.saturating_sub(seen))),
            None => "no heartbeat".to_owned(),
        };
        let runs: Vec<&str> = worker.runs.iter().map(|run| status::short(&run.run.0)).collect();
        let what = match worker.state {
            WorkerState::Live => String::new(),
            WorkerState::Draining => format!("draining, {} left  ", worker.runs.len()),
            WorkerState::Lost => "lost  ".to_owned(),
        };
        let version = worker.version.as_deref().unwrap_or("-");
        let text = format!("{what}{}", runs.join(" "));
        let line = format!(
            "  {} {}  {:<7} {busy:>4}  {:<20}  {}",
            style.paint(sign, look.color),
            look.name(&safe_text::line(&worker.name), width),
            cut(&safe_text::line(version), 7, look.unicode),
            seen,
            cut(&text, look.text_width(120).saturating_sub(width + 42).max(16), look.unicode),
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples::{NOW_MS, record};

    #[test]
    fn the_board_fits_eighty_columns() {
        let mut runs: Vec<_> = [
            RunState::WaitingForHuman,
            RunState::WaitingForSignal,
            RunState::Running,
            RunState::Failed,
            RunState::Completed,
        ]
        .map(record)
        .into();
        runs[0].options.title = Some("Deploy 5.4.0 to eu-west-1".to_owned());
        runs[0].expires_ms = Some(NOW_MS + 300_000);
        let counts = runs.iter().map(|run| (run.state, 1)).collect();
        let worker = WorkerView {
            worker: "build-2/1/2/3".to_owned(),
            name: "process 2 on build-2".to_owned(),
            version: Some("0.2.0".to_owned()),
            state: WorkerState::Draining,
            slots: Some(8),
            runs: vec![BoardRun::of(&runs[2])],
            started_ms: None,
            seen_ms: Some(NOW_MS - 2_000),
        };
        let board = Board::of(&runs, counts, vec![worker], (NOW_MS - 8 * 3_600_000, NOW_MS));
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let thresholds =
            Thresholds { warn_before: Duration::from_secs(3_600), danger_before: Duration::from_secs(900) };
        let text = render(&board, 8, thresholds, "", look);
        for part in [
            "1 waiting for approval (oldest 1 m)",
            "Deploy 5.4.0 to eu-west-1",
            "expires in 5 m",
            "signal books-closed",
            "the service answered 502",
            "draining, 1 left",
            "heartbeat 2 s ago",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        let rows = text.lines().skip(1);
        assert!(rows.map(crate::output::cells).all(|width| width <= 80), "{text}");
    }

    #[test]
    fn extreme_numbers_of_a_service_do_not_overflow() {
        let mut run = record(RunState::Running);
        (run.created_ms, run.since_ms) = (i64::MIN, i64::MIN);
        let mut waiting = record(RunState::WaitingForHuman);
        waiting.expires_ms = Some(i64::MAX);
        let counts = [(RunState::Running, u64::MAX), (RunState::Replaying, 1)].into();
        let mut board = Board::of(&[run, waiting], counts, vec![], (0, 1));
        (board.oldest_waiting_ms, board.ended_runs) = (Some(i64::MIN), u64::MAX);
        board.completed = vec![u32::MAX; 200];
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let thresholds = Thresholds { warn_before: Duration::ZERO, danger_before: Duration::ZERO };
        for now_ms in [i64::MIN, 1, i64::MAX] {
            board.now_ms = now_ms;
            let text = render(&board, 8, thresholds, "", look);
            assert!(text.contains("18,446,744,073,709,551,615 running"), "{text}");
        }
    }

    #[test]
    fn no_assignee_begins_a_row_of_the_board() {
        let mut run = record(RunState::WaitingForHuman);
        run.options.assigned = Some(skills_store::Assignment {
            to: format!("kim{}  ◆ 7f3c19aa  pay", " ".repeat(70)),
            by: "eve".to_owned(),
            note: None,
            at_ms: NOW_MS,
        });
        let board = Board::of(&[run], [(RunState::WaitingForHuman, 1)].into(), vec![], (NOW_MS - 1, NOW_MS));
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let thresholds = Thresholds { warn_before: Duration::ZERO, danger_before: Duration::ZERO };
        let text = render(&board, 8, thresholds, "", look);
        assert!(text.contains("\n      assigned to kim\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("  ◆ ")).count(), 1, "{text}");
    }

    #[test]
    fn counts_are_drawn_on_one_scale() {
        assert_eq!(sparkline(&[0, 1, 7, 3], 4, true), " ▁▇▃");
        assert_eq!(sparkline(&[0, 1, 7, 3], 2, false), "17");
        assert_eq!(sparkline(&[0, 0], 2, true), "  ");
    }
}
