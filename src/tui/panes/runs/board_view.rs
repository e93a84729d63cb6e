//! The board: one overview of a shift. Waiting runs by deadline, running ones, reasons of failures, and workers.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Focus;
use super::board::{BoardState, failures_filter};
use super::run_list::RunList;
use super::table_view::deadline_role;
use super::view::{outdated_line, run_name, spinner};
use super::views::draw_tabs;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::format::count;
use crate::widgets::painter::{Painter, fade};
use crate::widgets::relative_time::{age, moment, time_of_day};
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::rule::Title;
use crate::widgets::text_width::{cells, cut_end, shown};
use crate::widgets::wrap::wrap;
use skills_api::{Board, BoardRun, Deadline, WorkerState};
use skills_base::duration::to_millis;
use skills_config::RunSettings;
use skills_model::{RunState, step_label};

/// Age from which a board is marked as outdated.
const OUTDATED_AFTER: Duration = Duration::from_secs(15);
/// Width of the notes at the right, and in a wide window.
const NOTE: u16 = 24;
const WIDE_NOTE: u16 = 36;
/// Width from which id, starter and step have columns.
const WIDE: u16 = 160;
/// Widths of these columns.
const DETAILS: [u16; 3] = [3, 12, 16];

/// Returns the glyph of a count relative to the maximum.
fn level(count: u32, most: u32, ascii: bool) -> &'static str {
    const UNICODE: [&str; 7] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇"];
    const ASCII: [&str; 7] = ["1", "2", "3", "4", "5", "6", "7"];
    if count == 0 {
        return " ";
    }
    let at = usize::try_from(u64::from(count) * 7 / u64::from(most.max(1))).unwrap_or(7).clamp(1, 7) - 1;
    if ascii { ASCII[at] } else { UNICODE[at] }
}

/// The timeline in the middle of the board.
#[derive(Debug, Clone, Copy)]
struct TimeLine {
    x: u16,
    width: u16,
    from_ms: i64,
    now_ms: i64,
}

impl TimeLine {
    /// Returns the cell of a moment; the first one for earlier moments.
    fn cell(&self, at_ms: i64) -> u16 {
        let span = (self.now_ms - self.from_ms).max(1);
        let past = (at_ms - self.from_ms).clamp(0, span);
        let cell = past * i64::from(self.width.saturating_sub(1)) / span;
        self.x + u16::try_from(cell).unwrap_or(0)
    }
}

/// The columns of a row: the name, id, starter and step in a wide window, the timeline and the note.
#[derive(Debug, Clone, Copy)]
struct BoardColumns {
    name: u16,
    is_wide: bool,
    line: TimeLine,
}

impl BoardColumns {
    fn of(area: Rect, board: &Board) -> Self {
        let is_wide = area.width >= WIDE;
        let name = (area.width / 3).clamp(20, 44);
        let details = if is_wide { DETAILS.iter().map(|width| width + 2).sum() } else { 0 };
        let note = if is_wide { WIDE_NOTE } else { NOTE.min(area.width / 4).max(16) };
        let left = 5 + name + details + 1;
        let width = area.width.saturating_sub(left + note + 3);
        let line = TimeLine { x: area.x + left, width, from_ms: board.from_ms, now_ms: board.now_ms };
        Self { name, is_wide, line }
    }
}

/// Draws the board.
pub(super) fn draw(
    state: &mut BoardState,
    list: &mut RunList,
    focus: Focus,
    area: Rect,
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) {
    state.drawn.clear();
    let hours = state.hours;
    let focused = cx.focused;
    let (error, mut board) = (state.error.clone(), state.board.clone());
    // Ages advance while the service does not respond.
    let elapsed = cx.now.saturating_duration_since(*state.drawn_since.get_or_insert(cx.now));
    let is_stale = error.is_some() || elapsed > OUTDATED_AFTER || list.runs.are_stale();
    let mut title = Title::of("Board", focused);
    if let Some(board) = &board {
        let dot = cx.glyphs.dot;
        let mut note = if is_stale {
            format!("as of {} {dot} {hours} h", time_of_day(board.now_ms))
        } else {
            let live = board.workers.iter().filter(|worker| worker.state != WorkerState::Lost).count();
            let form = if shows_days(board) { moment } else { minute };
            let (from, now) = (form(board.from_ms), form(board.now_ms));
            let plural = if live == 1 { "" } else { "s" };
            format!("{from} to {now} {dot} {hours} h {dot} {live} worker{plural}")
        };
        if list.filter.query().is_some() {
            note = format!("all runs, not filtered {dot} {note}");
        }
        title = title.note(note);
    }
    title.draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    draw_tabs(list, (focus, true), Rect { y: area.y + 1, height: 1, ..area }, buf, cx);
    let mut outdated = None;
    if let Some(board) = &mut board {
        let outage = list.runs.outage.as_ref();
        outdated = match (outage, is_stale) {
            (Some(outage), _) => Some(outage.texts(Some(board.now_ms), cx.clock_ms)),
            (None, true) => {
                let why =
                    error.as_ref().map_or_else(|| "no response".to_owned(), |error| shown(&error.message));
                Some(vec![format!("as of {}: {why}", time_of_day(board.now_ms))])
            }
            (None, false) => None,
        };
        if is_stale {
            let elapsed = to_millis(elapsed);
            (board.from_ms, board.now_ms) = (board.from_ms + elapsed, board.now_ms + elapsed);
        }
    }
    list.drawn.list = area;
    let Some(board) = board else {
        let mut painter = Painter::new(buf, cx);
        if let Some(outage) = &list.runs.outage {
            let row = Rect { y: area.y + 2, height: 1, ..area };
            outdated_line(&outage.texts(None, cx.clock_ms), row, &mut painter);
        }
        let text = error.map_or_else(|| "reading".to_owned(), |error| shown(&error.message));
        let lines = wrap(&[Seg::new(text, Role::Muted)], area.width.saturating_sub(4));
        for (line, y) in lines.into_iter().zip(area.y + 3..area.bottom()) {
            painter.line(area.x + 3, y, &RichLine::from_segs(line), area.width.saturating_sub(4));
        }
        return;
    };
    let mut body = Rect { y: area.y + 2, height: area.height.saturating_sub(2), ..area };
    if let Some(texts) = outdated {
        outdated_line(&texts, Rect { height: 1, ..body }, &mut Painter::new(buf, cx));
        body = Rect { y: body.y + 1, height: body.height.saturating_sub(1), ..body };
    }
    draw_body(state, list, &board, body, buf, cx);
    if is_stale {
        fade(Rect { y: area.y + 1, height: 1, ..area }, buf);
        fade(body, buf);
    }
}

fn draw_body(
    state: &mut BoardState,
    list: &mut RunList,
    board: &Board,
    area: Rect,
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) {
    let cursor = state.cursor;
    let turning = spinner(cx);
    let columns = BoardColumns::of(area, board);
    let line = columns.line;
    board_counts(board, Rect { height: 1, ..area }, buf, cx);
    board_hours(board, line, area.y + 1, &mut Painter::new(buf, cx));
    let groups: [(&str, &[BoardRun], Role); 3] = [
        ("waiting for approval", &board.waiting, Role::Waiting),
        ("in progress", &board.running, Role::Muted),
        ("ended", &board.ended, Role::Muted),
    ];
    // Positions of the cursor, and the sections where they begin.
    let failures_at = board.waiting.len() + board.running.len();
    let firsts = [0, board.waiting.len(), failures_at + board.failed.len()];
    let workers_at = firsts[2] + board.ended.len();
    // Workers keep their rows at the bottom.
    let on_worker = cursor >= workers_at && !board.workers.is_empty();
    let rows = |len: usize| u16::try_from(len).unwrap_or(u16::MAX);
    let full = [
        rows(board.waiting.len()),
        rows(board.running.len()),
        rows(board.failed.len()),
        u16::from(board.completed.iter().any(|runs| *runs > 0)),
        rows(board.ended.len()),
    ];
    let workers = worker_rows(full, rows(board.workers.len()), on_worker, area.height);
    let bottom = area.bottom().saturating_sub(workers);
    let starts = [(0, 0), (1, firsts[1]), (FAILURES_SECTION, failures_at), (4, firsts[2])];
    let at_cursor = starts.into_iter().rev().find(|(section, first)| cursor >= *first && full[*section] > 0);
    let at_cursor = at_cursor.filter(|_| !on_worker).map(|(section, _)| section);
    let mut y = area.y + 2;
    let shares = shares(full, at_cursor, bottom.saturating_sub(y));
    for (section, share) in shares.into_iter().enumerate().filter(|(_, share)| *share > 0) {
        let part = Rect { y, height: share, ..area };
        match section {
            FAILURES_SECTION => {
                let at = (failures_at, cursor);
                board_failures(&mut list.drawn.terms, board, at, line, part, buf, cx);
            }
            COMPLETED_SECTION => board_completed(board, line, part, &mut Painter::new(buf, cx)),
            _ => {
                let at = [0, 1, 0, 0, 2][section];
                let (name, runs, role) = groups[at];
                Painter::new(buf, cx).put(area.x + 3, y, name, role, area.width);
                let height = usize::from(share - 1);
                // The window follows the cursor; without it, the first rows are the most urgent ones.
                let at_row = if at_cursor == Some(section) { cursor - firsts[at] } else { 0 };
                let offset = at_row.saturating_sub(height.saturating_sub(1));
                let ended = usize::try_from(board.ended_runs).unwrap_or(usize::MAX);
                let all = if at == 2 { ended.max(runs.len()) } else { runs.len() };
                if height < all {
                    let (from, to) = (count(offset + 1), count((offset + height).min(runs.len())));
                    let dash = if cx.glyphs.ascii { "-" } else { "–" };
                    let note = format!("{from}{dash}{to} of {}", count(all));
                    Painter::new(buf, cx).right(area.right().saturating_sub(1), y, &note, Role::Muted);
                }
                for ((at_run, run), y) in runs.iter().enumerate().skip(offset).zip(y + 1..y + share) {
                    let (row, spot) = (Rect { y, height: 1, ..area }, firsts[at] + at_run);
                    board_row(&list.settings, run, row, columns, (spot == cursor, turning), buf, cx);
                    state.drawn.push((row, spot));
                }
            }
        }
        y += share + 1;
    }
    let workers = Rect { y: bottom, height: workers, ..area };
    board_workers(&mut state.drawn, board, (workers_at, cursor), workers, buf, cx);
}

/// Sign, role, number of runs and text of a count.
type StateCount = (&'static str, Role, u64, String);

/// Returns the counts that fit into a width. They add up to all runs of the board: those without space are counted
/// together.
fn fitting_counts(mut parts: Vec<StateCount>, available: u16) -> Vec<StateCount> {
    let mut others = 0;
    while parts.len() > 1 && parts.iter().map(|part| cells(&part.3) + 5).sum::<u16>() > available + 3 {
        if others > 0 {
            parts.pop();
        }
        let Some((.., runs, _)) = parts.pop() else { break };
        others += runs;
        if others > 0 {
            let plural = if others == 1 { "" } else { "s" };
            let number = count(usize::try_from(others).unwrap_or(usize::MAX));
            parts.push((" ", Role::Muted, others, format!("{number} other{plural}")));
        }
    }
    parts
}

fn board_counts(board: &Board, row: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
    let mut painter = Painter::new(buf, cx);
    let of = |states: &[RunState]| states.iter().filter_map(|state| board.counts.get(state)).sum::<u64>();
    let number = |count_of: u64| count(usize::try_from(count_of).unwrap_or(usize::MAX));
    let glyphs = painter.glyphs;
    let waiting = of(&[RunState::WaitingForHuman]);
    let role = if waiting > 0 { Role::Waiting } else { Role::Muted };
    let (signals, paused) = (of(&[RunState::WaitingForSignal]), board.paused());
    let pending = of(&[RunState::Pending]).saturating_sub(paused);
    let running = of(&[RunState::Running, RunState::Replaying]);
    let (failed, canceled) = (board.failed_runs(), board.canceled_runs());
    // Rare states are shown only if there are runs in them.
    let mut parts = vec![
        (glyphs.waiting, role, waiting, "to approve", true),
        (glyphs.running[0], Role::Info, running, "running", true),
        (glyphs.pending, Role::Muted, pending, "pending", false),
        (glyphs.pending, Role::Muted, paused, "paused", false),
        (glyphs.signal, Role::Text, signals, "waiting for a signal", false),
        (glyphs.bad, Role::Danger, failed, "failed", true),
        (glyphs.ok, Role::Success, board.completed_runs(), "completed", true),
        (glyphs.canceled, Role::Muted, canceled, "canceled", false),
    ];
    parts.retain(|(.., runs, _, always)| *always || *runs > 0);
    let parts = parts
        .into_iter()
        .map(|(sign, role, runs, what, _)| (sign, role, runs, format!("{} {what}", number(runs))))
        .collect();
    let mut x = row.x + 3;
    for (sign, role, _, text) in fitting_counts(parts, row.width.saturating_sub(4)) {
        let width = cells(&text) + 2;
        painter.put(x, row.y, sign, role, 1);
        x = painter.put(x + 2, row.y, &text, if role == Role::Waiting { role } else { Role::Text }, width)
            + 3;
    }
    if let Some(since) = board.oldest_waiting_ms {
        let text = format!("oldest approval {}", age(board.now_ms - since));
        if x + cells(&text) + 1 < row.right() {
            painter.right(row.right().saturating_sub(1), row.y, &text, Role::Muted);
        }
    }
}

/// Draws a run with its bar: its past, running, waiting for approval, waiting for a signal. What it did before its
/// present state is not known here.
fn board_row(
    settings: &RunSettings,
    run: &BoardRun,
    row: Rect,
    columns: BoardColumns,
    (at_cursor, turning): (bool, &'static str),
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) {
    let line = columns.line;
    let (note, note_role) = match run.state {
        RunState::WaitingForHuman => wait_note(settings, run, line.now_ms),
        RunState::WaitingForSignal => {
            (format!("signal {}", shown(run.signal.as_deref().unwrap_or_default())), Role::Muted)
        }
        RunState::Completed | RunState::Canceled | RunState::Failed => {
            (format!("{} ago", age(line.now_ms - run.since_ms)), Role::Muted)
        }
        _ if run.is_paused() => ("paused until resumed".to_owned(), Role::Muted),
        _ => {
            let step = run.step.as_deref().map(shown).unwrap_or_default();
            (format!("{}/{} {step}", run.progress.0, run.progress.1), Role::Muted)
        }
    };
    let mut painter = Painter::new(buf, cx);
    if run.state == RunState::WaitingForHuman {
        painter.band(row, Role::WaitingBand);
    }
    if at_cursor {
        painter.band(row, Role::Selection);
        painter.put(row.x + 1, row.y, painter.glyphs.gutter, Role::Gutter, 1);
    }
    let (sign, role) = match run.state {
        RunState::WaitingForHuman => (painter.glyphs.waiting, Role::Waiting),
        RunState::WaitingForSignal => (painter.glyphs.signal, Role::Text),
        RunState::Pending => (painter.glyphs.pending, Role::Muted),
        RunState::Completed => (painter.glyphs.ok, Role::Success),
        RunState::Canceled => (painter.glyphs.canceled, Role::Muted),
        RunState::Failed => (painter.glyphs.bad, Role::Danger),
        RunState::Running | RunState::Replaying => (turning, Role::Info),
    };
    painter.put(row.x + 3, row.y, sign, role, 1);
    let name_role =
        if run.state == RunState::WaitingForHuman || at_cursor { Role::Strong } else { Role::Text };
    let name = run_name(&shown(&run.title), &run.distinction, columns.name, painter.glyphs.ellipsis);
    painter.put(row.x + 5, row.y, &name, name_role, columns.name);
    if columns.is_wide {
        let (done, all) = run.progress;
        let step = run.step.as_deref().filter(|_| !run.state.is_terminal());
        let step = step.map(|step| shown(step_label(step))).unwrap_or_default();
        let details = [super::list::tail(&run.run), shown(&run.started_by), format!("{done}/{all} {step}")];
        let mut x = row.x + 5 + columns.name + 2;
        for (text, width) in details.iter().zip(DETAILS) {
            painter.put(x, row.y, &cut_end(text, width, painter.glyphs.ellipsis), Role::Muted, width);
            x += width + 2;
        }
    }
    let (work, waits_sign, waits_role) = (
        if painter.glyphs.ascii { "#" } else { "▆" },
        if run.state == RunState::WaitingForHuman { painter.glyphs.heavy } else { painter.glyphs.rule },
        if run.state == RunState::WaitingForHuman { Role::Waiting } else { Role::Muted },
    );
    if line.width > 1 {
        let waits = run.state.is_waiting();
        let ended = run.state.is_terminal() || run.state == RunState::Failed;
        let end = if waits || ended { run.since_ms } else { line.now_ms };
        let (first, last) = (line.cell(run.created_ms), line.cell(end));
        let works = run.state.is_active();
        let started = if works { line.cell(run.since_ms) } else { last };
        let past = if painter.glyphs.ascii { "." } else { "·" };
        if run.state != RunState::Pending {
            let least = u16::from(!works && !waits);
            painter.run(first, row.y, past, (started - first).max(least), Role::Muted);
        }
        if works {
            painter.run(started, row.y, work, (last - started).max(1), Role::Level1);
        }
        if waits {
            let until = line.cell(line.now_ms);
            painter.run(last, row.y, waits_sign, until.saturating_sub(last).max(1), waits_role);
        }
    }
    let x = line.x + line.width + 1;
    let available = row.right().saturating_sub(x + 1);
    painter.put(x, row.y, &cut_end(&note, available, painter.glyphs.ellipsis), note_role, available);
}

/// Describes a wait for approval: its deadline, the approvals it has, its escalation, and the assignee.
fn wait_note(settings: &RunSettings, run: &BoardRun, now_ms: i64) -> (String, Role) {
    let deadline = Deadline::of(run.expires_ms, now_ms);
    let urgency = deadline_role(settings, deadline);
    let mut parts: Vec<String> = run.wait_notes().map(shown).collect();
    let has_notes = !parts.is_empty();
    parts.extend(run.assigned.as_ref().map(|to| format!("for {}", shown(to))));
    if parts.is_empty() {
        return (deadline.text(age), urgency);
    }
    if run.expires_ms.is_some() || parts.len() > 1 {
        // Next to others there is only space for the counts of approvals.
        if let (Some(approvals), Some(part)) =
            (&run.approvals, parts.get_mut(usize::from(run.outcome_unknown)))
            && let Some((_, counts)) = approvals.rsplit_once(", ")
        {
            counts.clone_into(part);
        }
    }
    match deadline {
        Deadline::None => {}
        Deadline::Expired => parts.insert(0, deadline.text(age)),
        Deadline::In(left_ms) => parts.insert(0, format!("{} left", age(left_ms))),
    }
    let role = match urgency {
        Role::Danger | Role::Warning => urgency,
        _ if run.outcome_unknown => Role::Warning,
        _ if has_notes => Role::Waiting,
        _ => urgency,
    };
    (parts.join(", "), role)
}

/// Draws counts of failures by reason over the timeline.
fn board_failures(
    terms: &mut Vec<(Rect, String)>,
    board: &Board,
    (first, cursor): (usize, usize),
    line: TimeLine,
    area: Rect,
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) {
    let mut painter = Painter::new(buf, cx);
    painter.put(area.x + 3, area.y, "failed, by reason", Role::Muted, area.width);
    let height = usize::from(area.height - 1);
    // The window follows the cursor; without it, the first reasons are the most frequent ones.
    let at_cursor = cursor.checked_sub(first).filter(|at| *at < board.failed.len());
    let offset = at_cursor.map_or(0, |at| at.saturating_sub(height.saturating_sub(1)));
    let hidden = board.failed.len().saturating_sub(height);
    if hidden > 0 {
        let others = board.failed.iter().take(offset).chain(board.failed.iter().skip(offset + height));
        let runs: u64 = others.map(|reason| reason.runs).sum();
        let runs = count(usize::try_from(runs).unwrap_or(usize::MAX));
        let plural = if hidden == 1 { "" } else { "s" };
        let note = format!("{} more reason{plural}, {runs} failed", count(hidden));
        painter.right(area.right().saturating_sub(1), area.y, &note, Role::Muted);
    }
    for ((at, reason), y) in board.failed.iter().enumerate().skip(offset).zip(area.y + 1..area.bottom()) {
        let row = Rect { y, height: 1, ..area };
        if at_cursor == Some(at) {
            painter.band(row, Role::Selection);
            painter.put(row.x + 1, y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        let name = shown(&reason.reason);
        let counts = (reason.runs, reason.slices.as_slice());
        board_counted(&name, counts, line, row, (painter.glyphs.bad, Role::Danger), &mut painter);
        let note = format!("last {} ago", age(board.now_ms - reason.last_ms));
        let x = line.x + line.width + 1;
        painter.put(x, y, &note, Role::Muted, area.right().saturating_sub(x + 1));
        terms.push((row, failures_filter(&reason.reason)));
    }
}

fn board_workers(
    spots: &mut Vec<(Rect, usize)>,
    board: &Board,
    (first, cursor): (usize, usize),
    area: Rect,
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) {
    if area.height == 0 {
        return;
    }
    let mut painter = Painter::new(buf, cx);
    let of = |state: WorkerState| board.workers.iter().filter(|worker| worker.state == state).count();
    // A lost worker has no slots.
    let present = || board.workers.iter().filter(|worker| worker.state != WorkerState::Lost);
    let slots: u32 = present().filter_map(|worker| worker.slots).sum();
    let busy: usize = present().map(|worker| worker.runs.len()).sum();
    let dot = painter.glyphs.dot;
    let mut note = vec![Seg::new(format!("{} live", of(WorkerState::Live)), Role::Muted)];
    for (state, word, role) in
        [(WorkerState::Draining, "draining", Role::Warning), (WorkerState::Lost, "lost", Role::Danger)]
    {
        if of(state) > 0 {
            note.push(Seg::new(format!(" {dot} "), Role::Muted));
            note.push(Seg::new(format!("{} {word}", of(state)), role));
        }
    }
    note.push(Seg::new(format!(" {dot} {busy} of {slots} slots"), Role::Muted));
    let height = usize::from(area.height - 1);
    let offset = cursor.saturating_sub(first).saturating_sub(height.saturating_sub(1));
    let offset = offset.min(board.workers.len().saturating_sub(height));
    if (1..board.workers.len()).contains(&height) {
        let (from, to) = (offset + 1, offset + height);
        let dash = if painter.glyphs.ascii { "-" } else { "–" };
        let text = format!(" {dot} {from}{dash}{to} of {}", board.workers.len());
        note.push(Seg::new(text, Role::Muted));
    }
    let mut title = Title::of("Workers", false);
    title.note = RichLine::from_segs(note);
    title.draw(&mut painter, area.x, area.y, area.width);
    for ((at, worker), y) in board.workers.iter().enumerate().skip(offset).zip(area.y + 1..area.bottom()) {
        let row = Rect { y, height: 1, ..area };
        spots.push((row, first + at));
        if first + at == cursor {
            painter.band(row, Role::Selection);
            painter.put(row.x + 1, y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        let (sign, role) = match worker.state {
            WorkerState::Live => (painter.glyphs.ok, Role::Success),
            WorkerState::Draining => (painter.glyphs.warn, Role::Warning),
            WorkerState::Lost => (painter.glyphs.bad, Role::Danger),
        };
        painter.put(row.x + 3, y, sign, role, 1);
        let name = cut_end(&shown(&worker.name), 30, painter.glyphs.ellipsis).into_owned();
        let mut x = painter.put(row.x + 5, y, &name, Role::Text, 30) + 2;
        if let Some(version) = &worker.version {
            x = painter.put(x, y, &shown(version), Role::Muted, 12) + 2;
        }
        let busy = match worker.slots {
            Some(slots) => format!("{}/{slots}", worker.runs.len()),
            None => worker.runs.len().to_string(),
        };
        x = painter.put(x, y, &busy, Role::Text, 8) + 2;
        let (seen, role) = match (worker.state, worker.seen_ms) {
            (WorkerState::Lost, _) | (_, None) => ("no heartbeat".to_owned(), Role::Danger),
            (_, Some(seen)) => (format!("heartbeat {} ago", age(board.now_ms - seen)), Role::Muted),
        };
        let start = painter.right(row.right().saturating_sub(1), y, &seen, role);
        let runs: Vec<String> = worker.runs.iter().map(|run| super::list::tail(&run.run)).collect();
        let what = match worker.state {
            WorkerState::Draining => format!("draining, {} left: {}", worker.runs.len(), runs.join(" ")),
            _ => runs.join(" "),
        };
        let available = start.saturating_sub(x + 2);
        painter.put(
            x,
            y,
            &cut_end(what.trim_end_matches([':', ' ']), available, painter.glyphs.ellipsis),
            Role::Muted,
            available,
        );
    }
}

/// Draws the number of completed runs over the timeline.
fn board_completed(board: &Board, line: TimeLine, row: Rect, painter: &mut Painter<'_>) {
    let counts = (board.completed_runs(), board.completed.as_slice());
    board_counted("completed", counts, line, row, (painter.glyphs.ok, Role::Success), painter);
}

/// Draws a name with its number of runs, and their distribution over the timeline.
fn board_counted(
    name: &str,
    (runs, slices): (u64, &[u32]),
    line: TimeLine,
    row: Rect,
    (sign, role): (&'static str, Role),
    painter: &mut Painter<'_>,
) {
    painter.put(row.x + 3, row.y, sign, role, 1);
    let number = count(usize::try_from(runs).unwrap_or(usize::MAX));
    let start = painter.right(line.x.saturating_sub(2), row.y, &number, Role::Strong);
    let available = start.saturating_sub(row.x + 6);
    let name = cut_end(name, available, painter.glyphs.ellipsis);
    painter.put(row.x + 5, row.y, &name, Role::Text, available);
    let bars = if role == Role::Success { Role::Level1 } else { Role::Danger };
    draw_slices(slices, line, row.y, bars, painter);
}

/// The sections of the board, by index: waiting, running, failures, completed, ended.
const FAILURES_SECTION: usize = 2;
const COMPLETED_SECTION: usize = 3;

/// Returns the height of a section's heading. Completed runs have none.
fn heading(section: usize) -> u16 {
    u16::from(section != COMPLETED_SECTION)
}

/// Returns the height of the workers, with their title. In a small window they have the rows that no section needs.
fn worker_rows(full: [u16; 5], workers: u16, on_worker: bool, height: u16) -> u16 {
    if height >= 24 {
        return workers.saturating_add(1).min(height / 4);
    }
    let sections = full.into_iter().enumerate().filter(|(_, rows)| *rows > 0);
    let needed = sections.fold(0_u16, |sum, (section, rows)| {
        // A blank row is below each.
        sum.saturating_add(rows).saturating_add(heading(section) + 1)
    });
    // Counts, hours and the title are always drawn.
    let free = height.saturating_sub(3).saturating_sub(needed);
    1 + workers.min(free.max(u16::from(on_worker)))
}

/// Returns the height of each section, with its heading and without the blank row below it; 0 if it is not drawn. The
/// section of the cursor is always drawn, then each gets its minimum in the order of urgency, then the rest is shared.
fn shares(full: [u16; 5], at_cursor: Option<usize>, height: u16) -> [u16; 5] {
    let mut shares = [0_u16; 5];
    let mut rest = height;
    for section in at_cursor.into_iter().chain([0, FAILURES_SECTION, 1, COMPLETED_SECTION, 4]) {
        if full[section] == 0 || shares[section] > 0 {
            continue;
        }
        let gap = u16::from(shares.iter().any(|share| *share > 0));
        let least = heading(section) + 1;
        if rest < least + gap {
            continue;
        }
        let usual = match section {
            0 => 5,
            FAILURES_SECTION if height >= 24 => 5,
            _ => 2,
        };
        let usual = heading(section) + full[section].min(usual);
        shares[section] = usual.min(rest - gap);
        rest -= shares[section] + gap;
    }
    for section in [0, 1, FAILURES_SECTION, 4] {
        if shares[section] > 0 {
            let more = (full[section].saturating_add(heading(section)) - shares[section]).min(rest);
            shares[section] += more;
            rest -= more;
        }
    }
    shares
}

/// Returns whether the period is too long for times without a date.
fn shows_days(board: &Board) -> bool {
    board.now_ms - board.from_ms >= 24 * 3_600_000
}

/// Formats a time of day to the minute: `17:00`.
fn minute(at_ms: i64) -> String {
    time_of_day(at_ms).chars().take(5).collect()
}

/// Draws the hours above the timeline.
fn board_hours(board: &Board, line: TimeLine, y: u16, painter: &mut Painter<'_>) {
    if line.width < 12 {
        return;
    }
    let (form, width): (fn(i64) -> String, u16) = if shows_days(board) { (moment, 12) } else { (minute, 5) };
    // Between two times, and before the end, there is space for another time.
    let marks = (line.width / (width + 6)).clamp(1, 8);
    for mark in 0..marks {
        let at = board.from_ms + (board.now_ms - board.from_ms) * i64::from(mark) / i64::from(marks);
        painter.put(line.cell(at), y, &form(at), Role::Muted, width);
    }
    painter.right(line.x + line.width, y, "now", Role::Strong);
}

/// Draws counts per slice over the timeline, on one scale.
fn draw_slices(slices: &[u32], line: TimeLine, y: u16, role: Role, painter: &mut Painter<'_>) {
    if slices.is_empty() || line.width == 0 {
        return;
    }
    let width = usize::from(line.width);
    let mut sums = vec![0_u32; width];
    for (at, count) in slices.iter().enumerate() {
        sums[(at * width / slices.len()).min(width - 1)] += count;
    }
    let most = sums.iter().copied().max().unwrap_or(0);
    let ascii = painter.glyphs.ascii;
    for (sum, x) in sums.into_iter().zip(line.x..) {
        if sum > 0 {
            painter.put(x, y, level(sum, most, ascii), role, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moment_maps_to_a_cell_of_the_timeline() {
        let line = TimeLine { x: 10, width: 11, from_ms: 0, now_ms: 1_000 };
        assert_eq!((line.cell(-5), line.cell(0), line.cell(500), line.cell(1_000)), (10, 10, 15, 20));
        assert_eq!(line.cell(9_000), 20);
    }

    #[test]
    fn every_section_of_the_board_has_rows_if_there_is_space() {
        assert_eq!(shares([2, 0, 2, 1, 1], Some(0), 24), [3, 0, 3, 1, 2], "all of it");
        assert_eq!(shares([12, 6, 5, 1, 12], Some(0), 15), [7, 3, 3, 0, 0]);
        assert_eq!(shares([12, 6, 5, 1, 12], Some(0), 30), [13, 3, 6, 1, 3], "approvals grow first");
        let small = shares([12, 6, 5, 1, 12], Some(4), 8);
        assert!(small[4] >= 2, "the section of the cursor is drawn: {small:?}");
        for height in 0..40 {
            let shares = shares([12, 6, 5, 1, 12], Some(1), height);
            let drawn = shares.iter().filter(|share| **share > 0).count() as u16;
            assert!(shares.iter().sum::<u16>() + drawn.saturating_sub(1) <= height, "{height}: {shares:?}");
        }
    }

    #[test]
    fn workers_have_the_rows_that_no_section_needs() {
        assert_eq!(worker_rows([0, 1, 0, 0, 0], 1, false, 19), 2);
        assert_eq!(worker_rows([0, 1, 0, 0, 0], 3, false, 8), 3, "two of three");
        assert_eq!(worker_rows([12, 6, 5, 1, 12], 1, false, 19), 1);
        assert_eq!(worker_rows([12, 6, 5, 1, 12], 1, true, 19), 2, "the cursor is on a worker");
        assert_eq!(worker_rows([0, 0, 0, 0, 0], 0, false, 19), 1);
        assert_eq!(worker_rows([12, 6, 5, 1, 12], 9, false, 32), 8);
    }

    #[test]
    fn counts_without_space_are_counted_together() {
        let fitting = |counts: &[(u64, &str)], available| {
            let parts = counts.iter().map(|(runs, what)| ("*", Role::Text, *runs, format!("{runs} {what}")));
            let fitting = fitting_counts(parts.collect(), available).into_iter();
            fitting.map(|(.., text)| text).collect::<Vec<_>>()
        };
        let none_completed = [(1, "waiting for a signal"), (0, "failed"), (0, "completed")];
        assert_eq!(fitting(&none_completed, 80), ["1 waiting for a signal", "0 failed", "0 completed"]);
        assert_eq!(fitting(&none_completed, 38), ["1 waiting for a signal", "0 failed"]);
        assert_eq!(fitting(&none_completed, 20), ["1 waiting for a signal"]);
        let some = [(1, "waiting for a signal"), (2, "failed"), (0, "completed"), (3, "canceled")];
        assert_eq!(fitting(&some, 50), ["1 waiting for a signal", "2 failed", "3 others"]);
        assert_eq!(fitting(&some, 40), ["1 waiting for a signal", "5 others"]);
        assert_eq!(fitting(&some, 10), ["6 others"]);
    }

    #[test]
    fn counts_are_glyphs_of_one_cell() {
        assert_eq!((level(0, 5, false), level(1, 7, false), level(7, 7, true)), (" ", "▁", "7"));
    }
}
