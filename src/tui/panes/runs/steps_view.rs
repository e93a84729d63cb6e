//! Draws the steps of a run with time bars. Idle time (such as a night before an approval) takes no space.

use crate::glyphs::Glyphs;
use crate::theme::Role;
use crate::widgets::json_lines::fields;
use crate::widgets::relative_time::{duration, time_of_day};
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::text_width::{cells, cut_end, shown};
use skills_api::{StepState, StepView};

/// The time axis of the steps, without idle time.
pub struct Axis {
    /// Disjoint busy intervals in order, in milliseconds since 1970-01-01 UTC.
    busy: Vec<(i64, i64)>,
    all: i64,
}

impl Axis {
    /// Creates the axis of these steps; a running step extends to the current time.
    pub fn of(steps: &[StepView], now_ms: i64) -> Self {
        let mut spans: Vec<(i64, i64)> = steps.iter().filter_map(|step| span(step, now_ms)).collect();
        spans.sort_unstable();
        let mut busy: Vec<(i64, i64)> = Vec::new();
        for (start, end) in spans {
            match busy.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => busy.push((start, end)),
            }
        }
        let all = busy.iter().map(|(start, end)| end - start).sum();
        Self { busy, all }
    }

    /// Returns the busy milliseconds before a moment.
    fn place(&self, at: i64) -> i64 {
        self.busy.iter().map(|(start, end)| at.clamp(*start, *end) - start).sum()
    }

    /// Returns the first cell and the number of cells of a step within a width; `None` for a step that has not started.
    pub fn bar(&self, step: &StepView, now_ms: i64, width: u16) -> Option<(u16, u16)> {
        let (start, end) = span(step, now_ms)?;
        if width == 0 {
            return None;
        }
        let all = self.all.max(1) as f64;
        let cell = |at: i64| (self.place(at) as f64 / all * f64::from(width)).round() as u16;
        let first = cell(start).min(width - 1);
        Some((first, cell(end).saturating_sub(first).clamp(1, width - first)))
    }
}

fn span(step: &StepView, now_ms: i64) -> Option<(i64, i64)> {
    let start = step.started_ms?;
    let running = step.state == StepState::Running;
    let end = step.ended_ms.or(running.then_some(now_ms))?;
    Some((start, end.max(start)))
}

/// Returns glyph and role of a step's state.
pub fn sign(state: StepState, glyphs: &Glyphs, spinner: &'static str) -> (&'static str, Role) {
    match state {
        StepState::Pending => (glyphs.pending, Role::Muted),
        StepState::Running => (spinner, Role::Info),
        StepState::WaitingForHuman => (glyphs.waiting, Role::Waiting),
        StepState::WaitingForSignal => (glyphs.signal, Role::Text),
        StepState::Completed => (glyphs.ok, Role::Success),
        StepState::Skipped => (glyphs.dot, Role::Muted),
        StepState::Failed => (glyphs.bad, Role::Danger),
        StepState::Interrupted => (glyphs.canceled, Role::Warning),
    }
}

/// Formats glyph, name and duration in `width` cells; the bar follows.
pub fn head(step: &StepView, now_ms: i64, width: u16, glyphs: &Glyphs, spinner: &'static str) -> RichLine {
    let (sign, role) = sign(step.state, glyphs, spinner);
    let took = span(step, now_ms).map(|(start, end)| duration(end - start)).unwrap_or_default();
    let note = match step.state {
        StepState::Skipped => "skipped".to_owned(),
        StepState::Interrupted => "stopped".to_owned(),
        _ if step.attempts > 1 => format!("{took} {}x", step.attempts),
        _ => took,
    };
    let is_slow = is_slow(step, now_ms);
    let note = if is_slow { format!("{} {note}", glyphs.warn) } else { note };
    let indent = "  ".repeat(step.depth.min(4) as usize);
    let available = width.saturating_sub(3 + cells(&note) + cells(&indent));
    // Nested names are prefixed by their parents' names: the last part distinguishes them.
    let own = if step.depth > 0 { step.step.rsplit('/').next().unwrap_or(&step.step) } else { &step.step };
    let name = cut_end(&shown(own), available, glyphs.ellipsis).into_owned();
    let gap = usize::from(width.saturating_sub(2 + cells(&indent) + cells(&name) + cells(&note)));
    let quiet = matches!(step.state, StepState::Pending | StepState::Skipped);
    RichLine::from_segs(vec![
        Seg::new(format!("{indent}{sign} "), role),
        Seg::new(name, if quiet { Role::Muted } else { Role::Text }),
        Seg::new(" ".repeat(gap), Role::Text),
        Seg::new(note, if is_slow { Role::Warning } else { Role::Muted }),
    ])
}

/// Returns whether a running step takes more than three times its 95th percentile.
fn is_slow(step: &StepView, now_ms: i64) -> bool {
    let Some((usual, (start, end))) = step.p95_ms.zip(span(step, now_ms)) else { return false };
    step.state == StepState::Running
        && u64::try_from(end - start).is_ok_and(|took| took > usual.saturating_mul(3))
}

/// Returns the lines below an opened step; `more` is what shows all of a long text.
pub fn inside(step: &StepView, width: u16, more: &str) -> Vec<RichLine> {
    let mut out = Vec::new();
    let mut row = |label: &str, text: &str| {
        if !text.is_empty() {
            out.push(RichLine::from_segs(vec![
                Seg::new(format!("{label:<10}"), Role::Muted),
                Seg::new(shown(text), Role::Text),
            ]));
        }
    };
    row("uses", &step.uses);
    if let (StepState::Interrupted, Some(started)) = (step.state, step.started_ms) {
        let summary = step.summary.as_deref().unwrap_or_default();
        row("started", &format!("{}, {summary}", time_of_day(started)));
    }
    if let Some(usual) = step.p95_ms {
        row("usual", &format!("p95 {}", duration(i64::try_from(usual).unwrap_or(i64::MAX))));
    }
    row("binding", step.binding.as_deref().unwrap_or_default());
    row("isolation", step.isolation.as_deref().unwrap_or_default());
    for file in &step.artifacts {
        let size = crate::widgets::format::byte_size(file.bytes);
        row("left", &format!("{} {size}, {}", file.name, file.media_type));
    }
    for (label, value) in [("inputs", &step.inputs), ("result", &step.result)] {
        let Some(value) = value else { continue };
        for (at, line) in fields(value, width.saturating_sub(10), more).into_iter().enumerate() {
            let head = if at == 0 { label } else { "" };
            let mut segs = vec![Seg::new(format!("{head:<10}"), Role::Muted)];
            segs.extend(line.segs);
            out.push(RichLine::from_segs(segs));
        }
    }
    if out.is_empty() {
        out.push(RichLine::of("nothing recorded yet", Role::Muted));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(started_ms: i64, ended_ms: Option<i64>, state: StepState) -> StepView {
        StepView {
            p95_ms: None,
            omitted_bytes: None,
            step: "s".to_owned(),
            depth: 0,
            uses: String::new(),
            state,
            started_ms: Some(started_ms),
            ended_ms,
            attempts: 1,
            inputs: None,
            result: None,
            summary: None,
            binding: None,
            isolation: None,
            artifacts: Vec::new(),
            status: None,
        }
    }

    #[test]
    fn a_step_over_three_times_its_usual_duration_is_marked() {
        let running = |p95_ms| StepView { p95_ms, ended_ms: None, ..step(0, None, StepState::Running) };
        let text = |step: &StepView| head(step, 10_000, 30, &crate::glyphs::UNICODE, "r").plain_text();
        assert!(text(&running(Some(3_000))).contains("! 10"), "{}", text(&running(Some(3_000))));
        assert!(!text(&running(Some(4_000))).contains('!'));
        assert!(!text(&running(None)).contains('!'));
        let ended = StepView { p95_ms: Some(1), ..step(0, Some(10_000), StepState::Completed) };
        assert!(!text(&ended).contains('!'));
    }

    #[test]
    fn long_wait_is_compressed_and_every_step_visible() {
        let night = 12 * 3_600_000;
        let steps = [
            step(0, Some(900), StepState::Completed),
            step(900, Some(901), StepState::Completed),
            step(night, Some(night + 900), StepState::Completed),
        ];
        let axis = Axis::of(&steps, 2 * night);
        let bars: Vec<(u16, u16)> = steps.iter().filter_map(|step| axis.bar(step, 0, 20)).collect();
        assert_eq!(bars, [(0, 10), (10, 1), (10, 10)]);
    }

    #[test]
    fn bar_of_a_running_step_ends_now() {
        let running = step(1_000, None, StepState::Running);
        let waiting = step(1_000, None, StepState::WaitingForHuman);
        let axis = Axis::of(&[running.clone(), waiting.clone()], 3_000);
        assert_eq!(axis.bar(&running, 3_000, 10), Some((0, 10)));
        assert_eq!(axis.bar(&waiting, 3_000, 10), None);
    }
}
