//! Draws a run: state, steps with time bars, the pending approval, output, checkpoints, source.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use serde_json::Value;

use super::blocks::{Kind, Line, RowContext, checkpoint_lines, lineage_lines, result_lines, waiting_lines};
use super::compare_view::draw_pair;
use super::detail::{DetailCursor, DetailState, DetailView};
use super::list::{Group, has_expired, tail};
use super::live;
use super::run_list::RunList;
use super::state_view::{draw_changes, draw_state, note_below};
use super::steps_view::{Axis, head, inside};
use crate::action::{Action, Context};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::painter::Painter;
use crate::widgets::relative_time::{age, ago, duration, lasting, time_of_day};
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::rule::Title;
use crate::widgets::scroll::rows_above_note;
use crate::widgets::text_width::{cut_end, shown};
use crate::widgets::wrap::{cut_line, wrap_to};
use skills_api::{PENDING_MS, RunDetail, StepState, control_requests, orphaned_run_reason};
use skills_model::{BEFORE_FIRST_STEP, Gate, RunState};
use skills_store::{RunRecord, expiry_outcome};

/// Maximum number of sidecars' control requests shown above the steps.
const MAX_CONTROL_REQUESTS: usize = 2;
/// Minimum number of lines of output before it is opened, and the maximum afterwards.
const OUTPUT: usize = 8;
const OUTPUT_OPEN: usize = 2_000;

/// Draws the right part; returns the rows of the rules that meet the divider.
pub(super) fn draw(
    state: &mut DetailState,
    list: &RunList,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> Vec<u16> {
    state.drawn.area = area;
    let Some(record) = list.record().cloned() else {
        Title::of("", focused).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
        return Vec::new();
    };
    let loaded = state.get().cloned();
    if let (Some(detail), true) = (&loaded, state.shows_other()) {
        match state.showing.clone() {
            DetailView::State(number) => draw_state(state, number, detail, focused, area, buf, cx),
            DetailView::Changes(from, to) => draw_changes(state, (from, to), detail, focused, area, buf, cx),
            DetailView::Pair(other) => draw_pair(state, &other, detail, focused, area, buf, cx),
            DetailView::Run => {}
        }
        return Vec::new();
    }
    let id = shown(&record.id.0);
    let id = if usize::from(area.width) > id.len() + 24 { id } else { short_id(&id, cx.glyphs.ellipsis) };
    let name = match record.title() {
        Some(title) if list.is_table() => shown(title),
        _ => shown(&record.skill_id),
    };
    let title = Title::of(name, focused).note(id);
    title.draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    let body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let lines = match &loaded {
        Some(detail) => lines(state, (detail, &record), list.runs.disconnected, body, cx),
        None => no_detail(state, &record, body, cx),
    };
    draw_lines(state, &lines, body, focused, buf, cx)
}

fn no_detail(state: &DetailState, record: &RunRecord, area: Rect, cx: &Draw<'_>) -> Vec<Line> {
    let making = RowContext::of(area.width.saturating_sub(5), false, cx);
    let mut out = vec![Line::blank()];
    out.extend(state_lines(state, record, &making));
    if let Some(error) = state.error() {
        out.push(Line::blank());
        let segs = [Seg::new(shown(&error.message), Role::Danger)];
        let lines = wrap_to(&segs, making.width, 6, cx.glyphs.ellipsis);
        out.extend(lines.into_iter().map(|line| Line::of(line.segs)));
    }
    out
}

fn draw_lines(
    state: &mut DetailState,
    lines: &[Line],
    area: Rect,
    focused: bool,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> Vec<u16> {
    let height = rows_above_note(lines.len(), area.height);
    let scroll = &mut state.scroll;
    scroll.height = height;
    let at_cursor = |line: &Line| focused && line.stop.is_some() && line.stop == state.stop;
    if state.follow
        && let Some(cursor) = lines.iter().position(at_cursor)
    {
        // Scroll the rows that belong to the cursor's row into view with it.
        let last = lines.iter().rposition(at_cursor).unwrap_or(cursor);
        if last >= scroll.offset + height {
            scroll.offset = last + 1 - height;
        }
        scroll.offset = scroll.offset.min(cursor.saturating_sub(1));
        state.follow = false;
    }
    scroll.offset = scroll.offset.min(lines.len().saturating_sub(height));
    let offset = scroll.offset;
    let mut painter = Painter::new(buf, cx);
    let mut rules = Vec::new();
    let bars = bar_column(area.width);
    for (line, y) in lines.iter().skip(offset).take(height).zip(area.y..) {
        let row = Rect { y, height: 1, ..area };
        let end = area.right().saturating_sub(2);
        if let Kind::Rule(title, note) = &line.kind {
            let mut title = Title::of(title.as_str(), false).note(note.as_str());
            title.name.segs.iter_mut().for_each(|seg| seg.role = Role::Muted);
            title.draw(&mut painter, row.x, y, row.width);
            rules.push(y);
        }
        if matches!(line.kind, Kind::Waiting) {
            painter.band(row, Role::WaitingBand);
            painter.put(row.x + 1, y, painter.glyphs.gutter, Role::Waiting, 1);
        }
        if at_cursor(line) {
            painter.band(row, Role::Selection);
            painter.put(row.x, y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        if let Some(stop) = &line.stop {
            state.drawn.stops.push((row, stop.clone()));
        }
        let mut limit = end;
        for (action, key, label) in line.buttons.iter().rev() {
            let start = painter.right(limit, y, label, Role::Muted);
            let start = painter.right(start.saturating_sub(1), y, key, Role::Key);
            state.drawn.buttons.push((Rect::new(start, y, limit - start, 1), *action));
            limit = start.saturating_sub(2);
        }
        if line.right.width() > 0 {
            limit = painter.line_right(limit, y, &line.right).saturating_sub(1);
        }
        let available = limit.saturating_sub(row.x + 2);
        painter.line(row.x + 2, y, &cut_line(&line.text, available, painter.glyphs.ellipsis), available);
        if let Kind::Bar(first, count) = line.kind {
            let sign = if painter.glyphs.ascii { "#" } else { "▆" };
            painter.run(row.x + 2 + bars + first, y, sign, count, Role::Level1);
        }
    }
    note_below(lines.len(), &state.scroll, area, &mut painter);
    rules
}

fn lines(
    state: &DetailState,
    (detail, record): (&RunDetail, &RunRecord),
    disconnected: bool,
    area: Rect,
    cx: &Draw<'_>,
) -> Vec<Line> {
    let making = RowContext::of(area.width.saturating_sub(4), disconnected, cx);
    let roomy = area.height >= 28;
    let mut out = Vec::new();
    let blank = |out: &mut Vec<Line>| out.extend(roomy.then(Line::blank));
    blank(&mut out);
    out.extend(state_lines(state, record, &making));
    elsewhere_lines(detail, &making, &mut out);
    control_lines(state, record, &making, &mut out);
    out.push(Line::blank());
    step_lines(state, detail, record, &making, roomy, &mut out);
    result_lines(detail, record, &making, &mut out);
    out.push(Line::blank());
    let mut below = Vec::new();
    blank(&mut below);
    checkpoint_lines(detail, record, &making, &mut below);
    blank(&mut below);
    lineage_lines(state, detail, record, &making, &mut below);
    // The height that is left, below the title.
    let left = usize::from(area.height).saturating_sub(out.len() + 1 + below.len());
    output_lines(state, detail, record, &making, left, &mut out);
    out.extend(below);
    out
}

/// Returns two or three rows: the state and its duration, who started the run, its progress, its trace id.
fn state_lines(state: &DetailState, record: &RunRecord, making: &RowContext<'_>) -> Vec<Line> {
    let glyphs = making.cx.glyphs;
    let (sign, role) = super::list_view::state_sign(record, glyphs, making.turning);
    let word = match record.state {
        _ if has_expired(record, making.now_ms) => "expired".to_owned(),
        RunState::Pending if record.paused => "paused until resumed".to_owned(),
        RunState::Canceled if record.denied_at().is_some() => "denied".to_owned(),
        state if record.paused && state.is_active() => "pausing before its next step".to_owned(),
        state if record.paused => format!("{}, then paused", state.label()),
        state => state.label().to_owned(),
    };
    let word_role = if role == Role::Muted { Role::Text } else { role };
    let passed = making.now_ms - record.since_ms;
    let when = match Group::of(record) {
        Group::Ended => format!("{} after {}", ago(passed), duration(record.since_ms - record.created_ms)),
        Group::Running => lasting(making.now_ms - record.created_ms),
        _ if passed < 1_000 => ago(passed),
        _ => format!("for {}", age(passed)),
    };
    let dot = glyphs.dot;
    let first = vec![
        Seg::new(format!("{sign} "), role),
        Seg::new(word, word_role).with(Modifier::BOLD),
        Seg::new(format!("  {when} {dot} started by "), Role::Muted),
        Seg::new(shown(&record.started_by), Role::Text),
    ];
    let place = format!("{} {dot} trace ", record.position());
    let trace: String = shown(&record.trace_id).chars().take(8).collect();
    let mut out =
        vec![Line::of(first), Line::of(vec![Seg::new(place, Role::Muted), Seg::new(trace, Role::Text)])];
    if let Some(expires) = record.expires_ms {
        let then = expiry_outcome(record.options.on_expiry, record.gate.as_ref());
        let text = if expires <= making.now_ms {
            format!("{} expired {} ago: {then}", glyphs.warn, age(making.now_ms - expires))
        } else {
            format!("{} expires in {}: {then}", glyphs.warn, age(expires - making.now_ms))
        };
        let lines = wrap_to(&[Seg::new(text, Role::Warning)], making.width, 2, glyphs.ellipsis);
        out.extend(lines.into_iter().map(|line| Line::of(line.segs)));
    }
    if let (RunState::Canceled, Some(at)) = (record.state, record.expired_ms()) {
        let text = format!("{} canceled: expired at {}", glyphs.warn, time_of_day(at));
        let lines = wrap_to(&[Seg::new(text, Role::Warning)], making.width, 2, glyphs.ellipsis);
        out.extend(lines.into_iter().map(|line| Line::of(line.segs)));
    }
    // If this process cannot execute it, the rows above the steps say which one can.
    let here = state.get().is_none_or(|detail| detail.elsewhere.is_none());
    let due = here && (record.state != RunState::Pending || passed > PENDING_MS);
    if let Some(why) = orphaned_run_reason(record, making.now_ms, age).filter(|_| due) {
        let text = format!("{} {why}", glyphs.warn);
        let lines = wrap_to(&[Seg::new(text, Role::Warning)], making.width, 2, glyphs.ellipsis);
        out.extend(lines.into_iter().map(|line| Line::of(line.segs)));
    }
    if let Some(progress) = record.approval_progress() {
        out.push(Line::of(vec![Seg::new(format!("{} {progress}", glyphs.waiting), Role::Waiting)]));
    }
    if let Some(escalation) = record.escalation() {
        let text = format!("{} {}", glyphs.warn, shown(&escalation));
        out.push(Line::of(vec![Seg::new(text, Role::Warning)]));
    }
    if let Some(assigned) = &record.options.assigned {
        let mut segs = vec![
            Seg::new("assigned to ", Role::Muted),
            Seg::new(shown(&assigned.to), Role::Text),
            Seg::new(format!(" by {}", shown(&assigned.by)), Role::Muted),
        ];
        segs.extend(assigned.note.iter().map(|note| Seg::new(format!(": {}", shown(note)), Role::Text)));
        let lines = wrap_to(&segs, making.width, 2, glyphs.ellipsis);
        out.extend(lines.into_iter().map(|line| Line::of(line.segs)));
    }
    if !record.options.labels.is_empty() {
        let labels: Vec<String> =
            record.options.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        out.push(Line::of(vec![
            Seg::new("labels ", Role::Muted),
            Seg::new(shown(&labels.join(", ")), Role::Text),
        ]));
    }
    if let Some(target) = &record.target {
        let text = |key: &str| target.get(key).and_then(Value::as_str).map(shown).unwrap_or_default();
        out.push(Line::of(vec![
            Seg::new("attached to ", Role::Muted),
            Seg::new(format!("{} {}", text("type"), text("ref")), Role::Text),
        ]));
    }
    out
}

/// Appends that this process cannot execute it, and which one can.
fn elsewhere_lines(detail: &RunDetail, making: &RowContext<'_>, out: &mut Vec<Line>) {
    let Some(why) = &detail.elsewhere else { return };
    let text = format!("{} {}", making.cx.glyphs.warn, shown(why));
    let lines = wrap_to(&[Seg::new(text, Role::Warning)], making.width, 4, making.cx.glyphs.ellipsis);
    out.extend(lines.into_iter().map(|line| Line::of(line.segs)));
}

/// Appends control requests of sidecars on this run, or of this run as a sidecar, with their current outcome:
/// newest first.
fn control_lines(state: &DetailState, record: &RunRecord, making: &RowContext<'_>, out: &mut Vec<Line>) {
    let requests = control_requests(record, state.events());
    let mut sentences: Vec<(bool, String)> = requests
        .iter()
        .rev()
        .map(|request| (request.is_active(), live::describe_control_request(request)))
        .collect();
    sentences.dedup();
    for (is_pending, sentences) in sentences.into_iter().take(MAX_CONTROL_REQUESTS) {
        let (sign, role) = if is_pending {
            (making.cx.glyphs.warn, Role::Warning)
        } else {
            (making.cx.glyphs.dot, Role::Muted)
        };
        let segs = [Seg::new(format!("{sign} {sentences}"), role)];
        let lines = wrap_to(&segs, making.width, 3, making.cx.glyphs.ellipsis);
        out.extend(lines.into_iter().map(|line| Line::of(line.segs)));
    }
}

fn step_lines(
    state: &DetailState,
    detail: &RunDetail,
    record: &RunRecord,
    making: &RowContext<'_>,
    roomy: bool,
    out: &mut Vec<Line>,
) {
    let axis = Axis::of(&detail.steps, making.now_ms);
    let column = bar_column(making.width + 4);
    let available = making.width.saturating_sub(column + 1);
    let name_room = if available >= 8 { column.saturating_sub(2) } else { making.width };
    let is_before_first = record.state == RunState::WaitingForHuman
        && matches!(&record.gate, Some(Gate::Human { step, .. }) if step == BEFORE_FIRST_STEP);
    if is_before_first {
        out.extend((roomy && !out.is_empty()).then(Line::blank));
        waiting_lines(None, detail.sheet.as_ref(), record, making, out);
        out.extend(roomy.then(Line::blank));
    }
    let mut after_gate = is_before_first;
    for step in &detail.steps {
        let waits = match (&record.gate, step.state) {
            (Some(Gate::Human { step: at, .. }), _) => {
                *at == step.step && record.state == RunState::WaitingForHuman
            }
            (_, StepState::WaitingForHuman) => true,
            _ => false,
        };
        let stop = DetailCursor::Step(step.step.clone());
        if waits {
            out.extend((roomy && !out.is_empty()).then(Line::blank));
            waiting_lines(Some(step), detail.sheet.as_ref(), record, making, out);
            out.extend(roomy.then(Line::blank));
            after_gate = true;
        } else {
            let mut line =
                Line::of(head(step, making.now_ms, name_room, making.cx.glyphs, making.turning).segs);
            if let Some((first, count)) = axis.bar(step, making.now_ms, available).filter(|_| available >= 8)
            {
                line.kind = Kind::Bar(first, count);
            }
            if let (StepState::WaitingForSignal, Some(Gate::Signal { name, .. })) = (step.state, &record.gate)
            {
                line.text.segs.push(Seg::new(format!("  {}", shown(name)), Role::Text));
                if !making.disconnected {
                    line.buttons.push((Action::Signal, "s".to_owned(), "signal".to_owned()));
                }
            } else if step.state == StepState::Interrupted {
                let summary = step.summary.as_deref().map(shown).unwrap_or_default();
                let summary = cut_end(&summary, available, making.cx.glyphs.ellipsis).into_owned();
                line = line.right(summary, Role::Warning);
            } else if step.state == StepState::Failed {
                let summary = step.summary.as_deref().map(shown).unwrap_or_default();
                if matches!(line.kind, Kind::Plain) || available < 8 {
                    line = line.right(summary, Role::Danger);
                }
            } else if step.state == StepState::Pending && after_gate {
                line = line.right("next", Role::Muted);
                after_gate = false;
            }
            out.push(line.at(stop.clone()));
        }
        if state.opened.contains(&stop) {
            let message = live::completed_by_decision(detail, &step.step);
            let available = making.width.saturating_sub(14);
            let message = message.map(|message| {
                let lines =
                    wrap_to(&[Seg::new(message, Role::Warning)], available, 4, making.cx.glyphs.ellipsis);
                let line = |(at, line): (usize, RichLine)| {
                    let head = format!("{:<10}", if at == 0 { "seen" } else { "" });
                    let mut segs = vec![Seg::new(head, Role::Muted)];
                    segs.extend(line.segs);
                    RichLine::from_segs(segs)
                };
                lines.into_iter().enumerate().map(line).collect::<Vec<_>>()
            });
            let key = making.cx.keymap.key_word(Action::CopyAs, &[Context::List], making.cx.glyphs);
            let more = format!("{key} copies the run as JSON");
            let rows = inside(step, making.width.saturating_sub(4), &more);
            for row in message.into_iter().flatten().chain(rows) {
                let mut segs = vec![Seg::new("    ", Role::Text)];
                segs.extend(row.segs);
                out.push(Line::of(segs));
            }
        }
    }
}

fn output_lines(
    state: &DetailState,
    detail: &RunDetail,
    record: &RunRecord,
    making: &RowContext<'_>,
    left: usize,
    out: &mut Vec<Line>,
) {
    let opened = state.opened.contains(&DetailCursor::Output);
    let limit = if opened { OUTPUT_OPEN } else { OUTPUT.max(left) };
    let column = live::column(detail);
    let mut lines: Vec<RichLine> = Vec::new();
    let mut more = 0usize;
    for event in state.events().rev() {
        if lines.len() < limit {
            lines.extend(live::lines(event, detail, column, making.width < NARROW).into_iter().rev());
        } else {
            more += usize::from(live::is_listed(event));
        }
    }
    lines.truncate(limit);
    lines.reverse();
    let note = if record.state.is_active() { "live" } else { "" };
    let mut title = Line::rule("Log", note).at(DetailCursor::Output);
    if more > 0 {
        title.kind = Kind::Rule("Log".to_owned(), format!("{more} earlier"));
    }
    out.push(title);
    if lines.is_empty() {
        out.push(Line::of(vec![Seg::new("none", Role::Muted)]));
    }
    let glyphs = making.cx.glyphs;
    for line in lines {
        let cut = cut_line(&line, making.width, glyphs.ellipsis);
        out.push(Line::of(cut.segs));
    }
}
/// Width below which further lines of an output start at the left.
const NARROW: u16 = 50;

/// Returns the column at which time bars begin, relative to the text.
fn bar_column(width: u16) -> u16 {
    if width >= 50 { 24 } else { (width / 2).max(18) }
}

/// Returns the step that a checkpoint follows.
pub(super) fn label_of(detail: &RunDetail, number: u64) -> String {
    let point = detail.checkpoints.iter().find(|point| point.number == number);
    match point.and_then(|point| point.done.last()) {
        Some(step) => format!("after {}", shown(step)),
        None => "before the first step".to_owned(),
    }
}

/// Abbreviates a long id to its beginning and its last three characters.
pub(super) fn short_id(id: &str, ellipsis: &str) -> String {
    if id.chars().count() <= 14 {
        return id.to_owned();
    }
    let front: String = id.chars().take(8).collect();
    format!("{front}{ellipsis}{}", tail(&skills_store::RunId(id.to_owned())).to_lowercase())
}
