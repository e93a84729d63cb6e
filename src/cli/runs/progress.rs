//! Live progress of a run: a line for each step that ended, and on a terminal a progress line for those in progress.

use std::collections::BTreeMap;

use super::reporter::Reporter;
use super::{clock, event_line, status};
use crate::dialog::{clean, sentences};
use crate::output::{TerminalCaps, TextStyle, cells, cut, fit};
use skills_api::StepView;
use skills_skill::safe_text;
use skills_store::{EventKind, LeaseHolder, RunEvent, RunLease, RunRecord, WorkerId};

/// Frames of the spinner.
const TURNS: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const ASCII_TURNS: [&str; 4] = ["|", "/", "-", "\\"];

/// Maximum width of a step's name in cells.
const MAX_NAME_WIDTH: usize = 28;

/// The progress of one run, from its events.
pub struct Progress {
    width: usize,
    started: BTreeMap<String, i64>,
    turn: usize,
    /// Whether it prints labeled lines.
    pub labeled: bool,
    /// The worker of another process that was reported to the user.
    other: Option<WorkerId>,
}

impl Progress {
    /// Creates the progress of a run with these step names.
    pub fn new<'a>(steps: impl Iterator<Item = &'a str>) -> Self {
        let width =
            steps.map(|step| cells(&safe_text::line(step))).max().unwrap_or(0).clamp(8, MAX_NAME_WIDTH);
        Self { width, started: BTreeMap::new(), turn: 0, labeled: false, other: None }
    }

    /// Processes an event and prints what is relevant to the user.
    pub fn event(&mut self, event: &RunEvent, steps: &[StepView], reporter: &mut Reporter) {
        match self.line(event, steps, reporter.look) {
            // The note of a labeled line is complete.
            Some(line) if self.labeled => reporter.print_message("", &line),
            Some(line) => reporter.print_line(&line),
            None => {}
        }
    }

    fn line(&mut self, event: &RunEvent, steps: &[StepView], look: TerminalCaps) -> Option<String> {
        let kind = &event.event.kind;
        if *kind == EventKind::RunClaimed && event.event.data.get("taken_over_from").is_some() {
            let text = status::claim(kind, &event.event.data)?;
            if self.labeled {
                return Some(format!("Worker: {}.", clean(&text)));
            }
            return Some(format!(
                "  {} {text}",
                TextStyle::Warn.paint(if look.unicode { "↻" } else { "r" }, look.color)
            ));
        }
        let step = event.event.step.as_deref()?;
        let (sign, ascii, style) = match kind {
            EventKind::StepStarted => {
                self.started.insert(step.to_owned(), event.at_ms);
                return None;
            }
            EventKind::StepCompleted => ("✓", "+", TextStyle::Good),
            EventKind::StepSkipped => ("–", "-", TextStyle::Muted),
            EventKind::StepFailed => ("✗", "x", TextStyle::Bad),
            EventKind::StepRetrying => ("↻", "r", TextStyle::Warn),
            EventKind::GateWarned | EventKind::GateDegraded => ("!", "!", TextStyle::Warn),
            _ => return None,
        };
        let started_at = if *kind == EventKind::StepRetrying {
            self.started.get(step).copied()
        } else {
            self.started.remove(step)
        };
        let measured = event.event.data.get("took_ms").and_then(serde_json::Value::as_i64);
        let took = measured
            .or_else(|| Some(event.at_ms.saturating_sub(started_at?)))
            .map_or_else(String::new, clock::took);
        let name = safe_text::line(step);
        // Iterations and nested steps are only known when they start.
        self.width = self.width.max(cells(&name)).min(MAX_NAME_WIDTH);
        let name = fit(&name, self.width, look.unicode);
        let text = steps.iter().find(|view| view.step == step).and_then(|view| view.summary.as_deref());
        let note = match (kind, text) {
            (EventKind::StepRetrying | EventKind::GateWarned | EventKind::GateDegraded, _) => {
                event_line::describe_event(kind, &event.event.data)
            }
            (_, Some(summary)) => safe_text::line(summary).into_owned(),
            (_, None) => String::new(),
        };
        if self.labeled {
            let state = match kind {
                EventKind::StepCompleted => "completed",
                EventKind::StepSkipped => "skipped",
                EventKind::StepFailed => "failed",
                EventKind::StepRetrying => "retrying",
                _ => "warning",
            };
            let took = Some(took).filter(|took| !took.is_empty()).map(|took| format!(", {took}"));
            let head = format!("Step {}: {state}{}", clean(step), took.unwrap_or_default());
            return Some(sentences(vec![head, clean(&note)]));
        }
        let text =
            cut(&note, look.text_width(usize::MAX).saturating_sub(self.width + 17).max(12), look.unicode);
        let sign = style.paint(if look.unicode { sign } else { ascii }, look.color);
        Some(format!("  {sign} {name}  {took:>9}  {text}").trim_end().to_owned())
    }

    /// Reports, once for each, that a worker of another process owns the run that is to be executed here.
    pub fn elsewhere(&mut self, run: &RunRecord, reporter: &mut Reporter) {
        let Some(RunLease { worker: Some(worker), holder: LeaseHolder::Elsewhere, .. }) = &run.lease else {
            return;
        };
        if self.other.as_ref() != Some(worker) {
            let words = worker.describe();
            reporter.print_line(&format!(
                "  executed by {}; following it, and taking over if that worker is lost",
                safe_text::line(&words)
            ));
            self.other = Some(worker.clone());
        }
    }

    /// Updates the progress line of the steps in progress.
    pub fn turn(&mut self, now_ms: i64, reporter: &mut Reporter) {
        if !reporter.moves() {
            return;
        }
        let look = reporter.look;
        let turns: &[&str] = if look.unicode { &TURNS } else { &ASCII_TURNS };
        self.turn = (self.turn + 1) % turns.len();
        let under_way: Vec<String> = self
            .started
            .iter()
            .map(|(step, started_at)| {
                format!("{} {}", safe_text::line(step), clock::age(now_ms.saturating_sub(*started_at)))
            })
            .collect();
        let text = if under_way.is_empty() { "…".to_owned() } else { under_way.join(", ") };
        let text = cut(&text, look.width.saturating_sub(6), look.unicode);
        reporter.show(&format!("  {} {text}", TextStyle::Info.paint(turns[self.turn], look.color)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runs::samples::{detail, event};
    use skills_model::RunState;

    #[test]
    fn each_step_that_ends_is_a_line_with_its_time() {
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: false };
        let mut progress = Progress::new(["extract", "check", "send_mail"].into_iter());
        let all = [
            event(1, "run.claimed", None, json!({})),
            event(2, "step.started", Some("extract"), json!({})),
            event(3, "step.started", Some("check"), json!({})),
            event(5, "step.completed", Some("extract"), json!({ "attempts": 1, "took_ms": 1_204 })),
            event(
                6,
                "run.claimed",
                None,
                json!({ "worker": "b/1-a/5/9/0", "taken_over_from": "b/1-a/4/8/0", "attempt": 2, "attempts": 6 }),
            ),
            event(6, "step.retrying", Some("check"), json!({ "message": "the service answered 502" })),
            event(8, "step.failed", Some("check"), json!({ "attempts": 2 })),
            event(9, "step.skipped", Some("send_mail"), json!({ "attempts": 0, "took_ms": 0 })),
        ];
        let mut steps = detail(RunState::Failed).steps;
        steps[1].summary = Some("the service answered 502".to_owned());
        let mut labeled = Progress { labeled: true, ..Progress::new(["extract"].into_iter()) };
        let lines: Vec<String> = all.iter().filter_map(|event| labeled.line(event, &steps, look)).collect();
        assert_eq!(lines[0], "Step extract: completed, 1.2 s. 214 rows.");
        assert!(lines.iter().all(|line| line.is_ascii()), "{lines:?}");
        let lines: Vec<String> = all.iter().filter_map(|event| progress.line(event, &steps, look)).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
          ✓ extract        1.2 s  214 rows
          ↻ attempt 2 of 6: taken over from process 4 on b by process 5 on b
          ↻ check          1.5 s  the service answered 502
          ✗ check          2.5 s  the service answered 502
          – send_mail     < 1 ms
        ");
    }
}
