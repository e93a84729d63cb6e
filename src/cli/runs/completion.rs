//! Executes a run until it ends or waits: shows its progress, then its state and the next steps.

use serde::Serialize;

use super::follow::{self, Completion, RunUpdate};
use super::next_steps::Caller;
use super::progress::Progress;
use super::reporter::Reporter;
use super::{clock, plain, status, values};
use crate::Context;
use crate::context::IN_MEMORY_NOTE;
use crate::failure::{Exit, Failure};
use crate::output::{HANGING, TerminalCaps, TextStyle};
use skills_api::RunClient;
use skills_model::{Gate, RunState};
use skills_skill::safe_text;
use skills_store::RunRecord;

/// A next command, in JSON.
#[derive(Debug, Serialize)]
pub struct NextCommand {
    /// What it does: `approve`, `deny`, `signal`, `resume`, `work`, `watch`, `look`, `cancel`.
    does: &'static str,
    command: String,
}

/// Returns the next commands of a run, without an approval that would be rejected (see [`Completion::obstacle`]).
pub fn next(cx: &Context, run: &RunRecord, obstacle: Option<&str>) -> Vec<NextCommand> {
    let next = accepted(&Caller::of(&cx.global), run, obstacle);
    next.into_iter().map(|(does, command)| NextCommand { does, command }).collect()
}

/// Executes a run and shows its progress, with events after a number only.
pub async fn work(
    client: &dyn RunClient,
    run: &RunRecord,
    after: u64,
    steps: &[String],
    reporter: &mut Reporter,
) -> Result<Completion, Failure> {
    let mut progress = Progress::new(steps.iter().map(String::as_str));
    progress.labeled = reporter.labeled;
    let completion = follow::wait_for_completion(client, run, after, true, &mut |update| {
        match update {
            RunUpdate::Event(event, steps) => progress.event(event, steps, reporter),
            RunUpdate::Tick => progress.turn(clock::now_ms(), reporter),
            RunUpdate::Silence(run) => progress.elsewhere(run, reporter),
        }
        Ok(())
    })
    .await?;
    reporter.clear();
    Ok(completion)
}

/// Reports the state of a run after its execution, writes its outputs, and returns how the command ends.
pub fn conclude(cx: &mut Context, completion: &Completion, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let caller = Caller::of(&cx.global);
    reporter.print_line(&ending(completion, &caller, cx.in_memory(), reporter.labeled, reporter.look));
    if !cx.out.json
        && let Some(outputs) = &completion.run.outputs
    {
        let text = if reporter.labeled && outputs.is_object() {
            format!("Outputs:\n{}", plain::text::values(outputs))
        } else {
            values::rows(outputs, 0, cx.out.look)
        };
        cx.out.text(&text)?;
    }
    Ok(if completion.left { Exit::Left } else { status::done(&completion.run) })
}

/// Returns the next commands of a run, without an approval that would be rejected.
fn accepted(caller: &Caller, run: &RunRecord, obstacle: Option<&str>) -> Vec<(&'static str, String)> {
    let mut next = caller.next(run);
    next.retain(|(verb, _)| obstacle.is_none() || *verb != "approve");
    next
}

/// Renders why an approval would be rejected, and the commands that continue from the state of the run.
pub fn next_rows(
    run: &RunRecord,
    obstacle: Option<&str>,
    caller: &Caller,
    in_memory: bool,
    look: TerminalCaps,
) -> Vec<String> {
    let why = obstacle.map(|why| caller.completed_in(&safe_text::line(why)));
    let mut rows: Vec<String> = why.iter().flat_map(|why| look.message_rows("  ", HANGING, why)).collect();
    let next = accepted(caller, run, obstacle);
    if in_memory && !next.is_empty() {
        rows.push(format!("  {}", TextStyle::Warn.paint(IN_MEMORY_NOTE, look.color)));
        return rows;
    }
    let label = |verb: &str| TextStyle::Muted.paint(&format!("{:<8}", format!("{verb}:")), look.color);
    rows.extend(next.into_iter().map(|(verb, line)| look.command_row(&format!("  {} ", label(verb)), &line)));
    rows
}

/// Renders the state of the run, and the commands that continue from there.
pub fn ending(
    completion: &Completion,
    caller: &Caller,
    in_memory: bool,
    labeled: bool,
    look: TerminalCaps,
) -> String {
    let run = &completion.run;
    let sign = if labeled { "Run:".to_owned() } else { status::sign(run, look) };
    let mut state = status::describe(run, &jiff::tz::TimeZone::system());
    if run.state == RunState::Completed {
        state = format!("{state} in {}", clock::took(run.since_ms.saturating_sub(run.created_ms)));
    }
    let mut rows = look.rows(&format!("{sign} "), HANGING, &state);
    if let Some(Gate::Human { why, .. }) = &run.gate {
        rows.extend(look.rows("  ", HANGING, &status::approval_reason(why)));
    }
    if let Some(at) = run.expires_ms {
        let zone = jiff::tz::TimeZone::system();
        let text = status::wait_expiry(run, at, clock::now_ms(), &zone);
        rows.push(format!("  expires {text}"));
    }
    if completion.left {
        rows.push("  stopped watching; the run is not canceled".to_owned());
    }
    rows.extend(next_rows(run, completion.obstacle.as_deref(), caller, in_memory, look));
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples::{caller, record};

    const CAPS: TerminalCaps = TerminalCaps { color: false, unicode: true, width: 80, terminal: false };

    fn completion_text(state: RunState, left: bool, in_memory: bool) -> String {
        ending(&Completion { run: record(state), left, obstacle: None }, &caller(&[]), in_memory, false, CAPS)
    }

    #[test]
    fn labeled_result_has_no_glyph() {
        let completion = Completion { run: record(RunState::Completed), left: false, obstacle: None };
        let text = ending(&completion, &caller(&[]), false, true, CAPS);
        assert_eq!(text, "Run: completed in 1 m 00 s");
    }

    #[test]
    fn waiting_run_shows_its_reason_and_command() {
        insta::assert_snapshot!(completion_text(RunState::WaitingForHuman, false, false), @r"
        ◆ book is waiting for approval
          the capability always requires approval
          show:    skills runs show 0198a1b2-0000-7000-8000-00000000abcd
          approve: skills runs approve 0198a1b2-0000-7000-8000-00000000abcd --step book --inputs-digest 9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f
          deny:    skills runs deny 0198a1b2-0000-7000-8000-00000000abcd --step book --inputs-digest 9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f
        ");
    }

    #[test]
    fn an_approval_that_would_be_rejected_is_not_suggested() {
        let obstacle = Some("a person other than ana must approve".to_owned());
        let completion = Completion { run: record(RunState::WaitingForHuman), left: false, obstacle };
        let text = ending(&completion, &caller(&[]), false, false, CAPS);
        assert!(text.contains("\n  a person other than ana must approve\n"), "{text}");
        assert!(!text.contains("runs approve") && text.contains("runs deny"), "{text}");
    }

    #[test]
    fn other_results_show_how_to_continue() {
        assert_eq!(completion_text(RunState::Completed, false, false), "✓ completed in 1 m 00 s");
        let failed = completion_text(RunState::Failed, false, false);
        assert!(failed.starts_with("✗ failed at sum: the service answered 502\n"), "{failed}");
        assert!(failed.contains("resume:  skills runs resume 0198a1b2-"), "{failed}");
        let left = completion_text(RunState::Pending, true, false);
        assert!(left.contains("not canceled") && left.contains("skills runs work"), "{left}");
    }

    #[test]
    fn text_of_a_script_begins_no_row() {
        let screen = TerminalCaps { terminal: true, ..CAPS };
        let pad = " ".repeat(CAPS.width);
        let mut run = record(RunState::Failed);
        run.error =
            Some(serde_json::json!({ "step": "sum", "detail": format!("unknown{pad}✓ completed in 1 m") }));
        let obstacle = Some(format!("not you{pad}  show:    skills runs approve"));
        let completion = Completion { run, left: false, obstacle };
        let text = ending(&completion, &caller(&[]), false, false, screen);
        let text = screen.fitted(&text);
        let begin = |begin: &str| text.lines().filter(|row| row.starts_with(begin)).count();
        assert_eq!((begin("✓"), begin("✗"), begin("  show:")), (0, 1, 1), "{text}");
    }

    #[test]
    fn store_in_memory_offers_no_unusable_command() {
        let text = completion_text(RunState::WaitingForSignal, false, true);
        assert!(text.contains("in memory") && !text.contains("skills runs"), "{text}");
    }
}
