//! `skills runs show`: the details of a run.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use serde::Serialize;

use super::next_steps::Caller;
use super::{clock, compare, decision_preview, event_line, plain, status, values};
use crate::Context;
use crate::args::RunsShowArgs;
use crate::failure::{Exit, Failure};
use crate::output::{HANGING, TerminalCaps, TextStyle, cells, cut, fit, push_parts, wrap};
use skills_api::{
    Change, CoreParts, Error, RunDetail, StepState, changes, control_requests, orphaned_run_reason,
};
use skills_model::{RunState, step_label};
use skills_skill::safe_text;
use skills_store::{Checkpoint, RunId, RunLease};

/// `skills runs show --checkpoint --json`.
#[derive(Serialize)]
struct CheckpointOutput<'a> {
    checkpoint: &'a Checkpoint,
    changes: &'a [Change],
}

pub async fn run(cx: &mut Context, args: &RunsShowArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let zone = TimeZone::system();
    if let Some(number) = args.checkpoint {
        let list = client.run_checkpoints(&args.run, Some(number.saturating_add(1)), 2).await?;
        let Some((checkpoint, changes)) = at(&list.checkpoints, number) else {
            let newest = client.run_checkpoints(&args.run, None, 1).await?.checkpoints;
            let last = newest.last().map_or(0, |checkpoint| checkpoint.number);
            return Err(Error::no_checkpoint(&list.run_id.0, number, last).into());
        };
        cx.out.show(&CheckpointOutput { checkpoint, changes: &changes }, |look| {
            checkpoint_text(checkpoint, &changes, &zone, look)
        })?;
        return Ok(Exit::Success);
    }
    let detail = client.run(&args.run).await?;
    if cx.out.json {
        cx.out.value(&detail)?;
        return Ok(Exit::Success);
    }
    let plain = cx.is_plain();
    let look = if plain { TerminalCaps { color: false, unicode: false, ..cx.out.look } } else { cx.out.look };
    let page = Page { now_ms: clock::now_ms(), zone, caller: Caller::of(&cx.global), look };
    let mut text = if plain {
        plain::text::page(&detail, &page.caller, false, page.now_ms)
    } else {
        page.render(&detail)
    };
    if args.events {
        text += &page.events(&detail);
    }
    let id = detail.run.id.0.as_str();
    let text = cx.out.links.runs(text, std::iter::once((id, id)));
    cx.out.text(&text)?;
    Ok(Exit::Success)
}

/// Returns a checkpoint and what its step changed.
fn at(checkpoints: &[Checkpoint], number: u64) -> Option<(&Checkpoint, Vec<Change>)> {
    let place = checkpoints.iter().position(|checkpoint| checkpoint.number == number)?;
    let checkpoint = &checkpoints[place];
    let before = place.checked_sub(1).and_then(|before| checkpoints.get(before));
    Some((checkpoint, before.map_or_else(Vec::new, |before| changes(&before.state, &checkpoint.state))))
}

fn checkpoint_text(
    checkpoint: &Checkpoint,
    changed: &[Change],
    zone: &TimeZone,
    look: TerminalCaps,
) -> String {
    let mut out = String::new();
    let after = checkpoint.done.last().map_or_else(
        || "before the first step".to_owned(),
        |step| format!("after {}", safe_text::line(step)),
    );
    let title = format!("checkpoint {} {after}", checkpoint.number);
    let _ = writeln!(
        out,
        "{}  {}",
        TextStyle::Strong.paint(&title, look.color),
        TextStyle::Muted.paint(&clock::moment(checkpoint.at_ms, zone), look.color)
    );
    out += &values::rows(&checkpoint.state, 2, look);
    if !changed.is_empty() {
        let _ = writeln!(out, "\n{}", TextStyle::Strong.paint("since the previous checkpoint", look.color));
        out += &compare::changes_text(changed, look);
    }
    out
}

/// Rendering of a run.
struct Page {
    now_ms: i64,
    zone: TimeZone,
    caller: Caller,
    look: TerminalCaps,
}

impl Page {
    fn title(&self, out: &mut String, text: &str) {
        let _ = writeln!(out, "\n{}", TextStyle::Strong.paint(text, self.look.color));
    }

    fn muted(&self, text: &str) -> String {
        TextStyle::Muted.paint(text, self.look.color)
    }

    fn fact(&self, out: &mut String, name: &str, value: &str) {
        let head = format!("  {}", self.muted(&fit(name, 12, self.look.unicode)));
        self.row(out, &head, &" ".repeat(14), value);
    }

    fn row(&self, out: &mut String, head: &str, rest: &str, text: &str) {
        for line in self.look.rows(head, rest, text) {
            let _ = writeln!(out, "{line}");
        }
    }

    fn render(&self, detail: &RunDetail) -> String {
        let run = &detail.run;
        let look = self.look;
        let mut out = String::new();
        let version = safe_text::line(&detail.contract_version);
        let skill = format!("{} {version}", safe_text::name(&run.skill_id));
        push_parts(&mut out, &[(TextStyle::Strong, &*skill), (TextStyle::Muted, &*run.id.0)], look);
        let ended = run.state.is_terminal() || run.state == RunState::Failed;
        let age = clock::age(self.now_ms.saturating_sub(run.since_ms));
        let duration = if ended { format!(" {age} ago") } else { format!(" for {age}") };
        let (state, why) = status::state_since(run, &self.zone, &duration);
        let state = format!("{state}; {} of {} steps completed", run.progress.0, run.progress.1);
        self.row(&mut out, &format!("{} ", status::sign(run, look)), HANGING, &state);
        if let Some(why) = why {
            self.row(&mut out, "  ", HANGING, &why);
        }
        out.push('\n');
        self.facts(&mut out, detail);
        if !detail.steps.is_empty() {
            self.title(&mut out, "steps");
            self.steps(&mut out, detail);
        }
        self.earlier(&mut out, detail);
        if let Some(preview) = &detail.sheet {
            self.title(&mut out, "pending approval");
            let indented = look.at_most(look.width.saturating_sub(2));
            let text = decision_preview::render(preview, &self.caller, self.now_ms, &self.zone, indented);
            for line in text.lines() {
                let _ = writeln!(out, "{}", format!("  {line}").trim_end());
            }
        }
        for (name, value) in
            [("inputs", Some(&run.inputs)), ("outputs", run.outputs.as_ref()), ("error", run.error.as_ref())]
        {
            if let Some(value) =
                value.filter(|value| value.as_object().is_none_or(|fields| !fields.is_empty()))
            {
                self.title(&mut out, name);
                out += &values::rows(value, 2, look);
            }
        }
        if !detail.decisions.is_empty() {
            self.title(&mut out, "decisions");
        }
        for decided in &detail.decisions {
            let by = decided.by.approver.as_deref().map_or_else(|| "another user".into(), safe_text::line);
            let notes = decided.by.notes.as_deref().map(|notes| format!(": {}", safe_text::line(notes)));
            let choice = decided.decision.choice.map(|choice| format!(" ({choice})")).unwrap_or_default();
            let moment = clock::moment(decided.at_ms, &self.zone);
            let text = format!(
                "{} {}{choice} by {by}{}",
                decided.decision.verdict,
                safe_text::line(step_label(&decided.decision.step)),
                notes.unwrap_or_default()
            );
            let rest = " ".repeat(cells(&moment) + 4);
            self.row(&mut out, &format!("  {}  ", self.muted(&moment)), &rest, &text);
        }
        let commands = event_line::render_commands(&detail.events, &self.zone, look);
        if !commands.is_empty() {
            self.title(&mut out, "commands");
            out += &commands;
        }
        self.controls(&mut out, detail);
        self.checkpoints(&mut out, detail);
        let blocked = detail.sheet.as_ref().is_some_and(|preview| preview.approval_obstacle().is_some());
        let mut next = self.caller.next(run);
        next.retain(|(verb, _)| match *verb {
            "approve" => !blocked,
            // Only a process that reads the skills it was launched from can execute it.
            "work" => detail.elsewhere.is_none(),
            "resume" => detail.resume_obstacle().is_none(),
            _ => true,
        });
        if !next.is_empty() {
            self.title(&mut out, "next commands");
        }
        for (verb, line) in next.iter().filter(|(verb, _)| *verb != "look") {
            let head = format!("  {}", self.muted(&fit(verb, 9, look.unicode)));
            let _ = writeln!(out, "{}", look.command_row(&head, line));
        }
        out
    }

    fn facts(&self, out: &mut String, detail: &RunDetail) {
        let run = &detail.run;
        let started = clock::moment(run.created_ms, &self.zone);
        self.fact(out, "started", &format!("{started} by {}", safe_text::line(&run.started_by)));
        if let Some(title) = run.title() {
            self.fact(out, "title", &safe_text::line(title));
        }
        if !run.options.labels.is_empty() {
            let labels: Vec<String> =
                run.options.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            self.fact(out, "labels", &safe_text::line(&labels.join(", ")));
        }
        if let Some(assigned) = &run.options.assigned {
            let note = assigned.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            let text = format!("to {} by {}{note}", assigned.to, assigned.by);
            self.fact(out, "assigned", &safe_text::line(&text));
        }
        if let Some(progress) = run.approval_progress() {
            self.fact(out, "approvals", &progress);
        }
        if let Some(escalation) = run.escalation() {
            self.fact(out, "escalation", &safe_text::line(&escalation));
        }
        self.fact(out, "trace", &safe_text::line(&run.trace_id));
        let digest = run.contract_digest.get(..12).unwrap_or(&run.contract_digest);
        let contract = match detail.contract_unchanged {
            Some(true) => "unchanged since the launch",
            Some(false) => "changed since the launch; the contract of the launch is used",
            None => "the skill is not loaded or can no longer run; the contract of the launch is used",
        };
        self.fact(out, "contract", &format!("{digest}, {contract}"));
        self.fact(out, "isolation", &safe_text::line(&detail.isolation));
        self.worker(out, detail);
        if let Some(at) = run.expires_ms {
            let expiry_text = status::wait_expiry(run, at, self.now_ms, &self.zone);
            self.fact(out, "expires", &expiry_text);
        }
        if let Some(target) = &run.target {
            let part = |name: &str| target.get(name).map(skills_api::value_line).unwrap_or_default();
            self.fact(out, "attached to", format!("{} {}", part("type"), part("ref")).trim());
        }
        if let Some((source, checkpoint)) = &run.source {
            self.fact(out, "source", &format!("{source} at checkpoint {checkpoint}"));
        }
        for descendant in &detail.descendants {
            self.fact(out, "descendants", &descendant.0);
        }
    }

    /// Renders the worker that executes it, and the one it was taken over from.
    fn worker(&self, out: &mut String, detail: &RunDetail) {
        let run = &detail.run;
        // Lines after the first continue it.
        let mut label = "worker";
        if let Some(why) = &detail.elsewhere {
            self.fact(out, std::mem::take(&mut label), &safe_text::line(why));
        } else if let Some(text) = orphaned_run_reason(run, self.now_ms, clock::age) {
            self.fact(out, std::mem::take(&mut label), &text);
        } else if let Some(RunLease { worker: Some(worker), until_ms, .. }) = &run.lease {
            let left = clock::age(until_ms.saturating_sub(self.now_ms));
            let worker = worker.describe();
            let text = format!("{}, lease expires in {left}", safe_text::line(&worker));
            self.fact(out, std::mem::take(&mut label), &text);
        }
        for event in detail.events.iter().filter(|event| event.event.data.get("taken_over_from").is_some()) {
            let at = clock::moment(event.at_ms, &self.zone);
            let text = status::claim(&event.event.kind, &event.event.data).unwrap_or_default();
            self.fact(out, std::mem::take(&mut label), &format!("{at} {text}"));
        }
    }

    /// Renders what failed before the run was resumed, and what was changed for it.
    fn earlier(&self, out: &mut String, detail: &RunDetail) {
        if detail.earlier.is_empty() {
            return;
        }
        self.title(out, "earlier attempts");
        for attempt in &detail.earlier {
            if let Some(at) = attempt.failed_ms {
                let step = attempt.step.as_deref().map(|step| format!(" at {}", safe_text::line(step)));
                let why = attempt.error.as_ref().map(|error| format!(": {}", status::message(error)));
                let (number, moment) = (format!("{:>2}", attempt.number), clock::moment(at, &self.zone));
                let rest = " ".repeat(cells(&number) + cells(&moment) + 6);
                let text = format!("failed{}{}", step.unwrap_or_default(), why.unwrap_or_default());
                self.row(out, &format!("  {number}  {}  ", self.muted(&moment)), &rest, &text);
            }
            let with =
                if attempt.changed.is_empty() { "with the same inputs" } else { "with changed inputs" };
            let _ = writeln!(
                out,
                "      {}  resumed from checkpoint {} {with}",
                self.muted(&clock::moment(attempt.resumed_ms, &self.zone)),
                attempt.checkpoint
            );
            let arrow = if self.look.unicode { "→" } else { "->" };
            for change in &attempt.changed {
                let before =
                    change.before.as_ref().map_or_else(|| "(none)".to_owned(), skills_api::value_line);
                let name = safe_text::line(&change.name);
                let change = format!("{name}  {before} {arrow} {}", skills_api::value_line(&change.after));
                self.row(out, "      ", HANGING, &change);
            }
        }
    }

    fn steps(&self, out: &mut String, detail: &RunDetail) {
        let look = self.look;
        let name = |step: &skills_api::StepView| {
            format!("{}{}", "  ".repeat(step.depth.min(12) as usize), safe_text::line(&step.step))
        };
        let width = detail.steps.iter().map(|step| cells(&name(step))).max().unwrap_or(8).clamp(8, 28);
        let available = look.text_width(usize::MAX).saturating_sub(4 + width + 2 + 10 + 2).max(12);
        for step in &detail.steps {
            let took = match (step.started_ms, step.ended_ms) {
                (Some(started), Some(ended)) => clock::took(ended.saturating_sub(started)),
                (Some(_), None) if step.state == StepState::Interrupted => String::new(),
                (Some(started), None) => clock::took(self.now_ms.saturating_sub(started)),
                _ => String::new(),
            };
            let mut words: Vec<String> = Vec::new();
            if let (StepState::Interrupted, Some(started)) = (step.state, step.started_ms) {
                words.push(format!("started {}", clock::time_of_day(started, &self.zone)));
            }
            words.extend(step.summary.as_deref().map(|words_list| safe_text::line(words_list).into_owned()));
            if step.attempts > 1 {
                words.push(format!("{} attempts", step.attempts));
            }
            words.extend(step.artifacts.iter().map(|file| format!("left {}", safe_text::line(&file.name))));
            if words.is_empty() && step.ended_ms.is_none() {
                words.push(safe_text::line(&step.uses).into_owned());
            }
            let words = cut(&words.join(", "), available, look.unicode);
            let line = format!(
                "  {} {}  {took:>10}  {}",
                status::step_sign(step.state, look),
                look.name(&name(step), width),
                self.muted(&words)
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }

    /// Renders control requests of sidecars for this run, or of this run as a sidecar, and their outcomes.
    fn controls(&self, out: &mut String, detail: &RunDetail) {
        let wishes = control_requests(&detail.run, detail.events.iter());
        if wishes.is_empty() {
            return;
        }
        self.title(out, "sidecar");
        let named = |skill: Option<&str>, run: &RunId| {
            format!("{} {}", skill.unwrap_or("run"), status::short(&run.0))
        };
        for wish in wishes {
            let sentence = wish.sentence(named, |at| clock::time_of_day(at, &self.zone));
            let sentence = safe_text::line(&sentence);
            let moment = clock::moment(wish.at_ms, &self.zone);
            let available = self.look.text_width(100).saturating_sub(cells(&moment) + 4).max(20);
            for (at, line) in wrap(&sentence, available).into_iter().enumerate() {
                let left = if at == 0 { moment.clone() } else { " ".repeat(cells(&moment)) };
                let _ = writeln!(out, "  {}  {line}", self.muted(&left));
            }
        }
    }

    fn checkpoints(&self, out: &mut String, detail: &RunDetail) {
        if detail.checkpoints.len() < 2 {
            return;
        }
        self.title(out, "checkpoints");
        for checkpoint in detail.checkpoints.iter().rev() {
            let after = checkpoint.done.last().map_or_else(
                || "before the first step".to_owned(),
                |step| format!("after {}", safe_text::line(step)),
            );
            let head = if checkpoint.number == detail.run.head { "  latest" } else { "" };
            let _ = writeln!(
                out,
                "  {:>4}  {}  {after}{head}",
                checkpoint.number,
                self.muted(&clock::time_of_day(checkpoint.at_ms, &self.zone))
            );
        }
        if let Some(last) = detail.earlier_checkpoint() {
            let text = format!("0 to {last} are not listed; `--checkpoint N` shows one");
            let _ = writeln!(out, "  {}", self.muted(&text));
        }
    }

    fn events(&self, detail: &RunDetail) -> String {
        let mut out = String::new();
        self.title(&mut out, "events");
        let indented = TerminalCaps { width: self.look.width.saturating_sub(2), ..self.look };
        for event in &detail.events {
            for line in event_line::render(event, false, &self.zone, indented).lines() {
                let _ = writeln!(out, "  {line}");
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::runs::samples::{NOW_MS, caller, detail};
    use skills_api::{ChangedInput, EarlierAttempt};
    use skills_model::{BEFORE_FIRST_STEP, Decision, Verdict};
    use skills_store::{DecisionRecord, EventKind, RecordedDecision};

    fn page() -> Page {
        Page {
            now_ms: NOW_MS,
            zone: TimeZone::UTC,
            caller: caller(&[]),
            look: TerminalCaps { color: false, unicode: true, width: 80, terminal: true },
        }
    }

    #[test]
    fn extreme_numbers_of_a_service_do_not_overflow() {
        let mut detail = detail(RunState::Completed);
        (detail.run.created_ms, detail.run.since_ms) = (i64::MIN, i64::MIN);
        for step in &mut detail.steps {
            (step.started_ms, step.ended_ms) = (Some(i64::MIN), Some(i64::MAX));
        }
        let text = page().render(&detail);
        assert!(text.contains("2562047788015 h 12 m"), "{text}");
    }

    #[test]
    fn ended_run_is_shown_completely() {
        let mut detail = detail(RunState::Completed);
        detail.run.progress = (4, 4);
        insta::assert_snapshot!(page().render(&detail) + &page().events(&detail));
    }

    #[test]
    fn waiting_run_shows_the_decision_and_the_commands() {
        let text = page().render(&detail(RunState::WaitingForHuman));
        assert!(text.contains("pending approval\n  Book 1204.5 EUR in the ledger\n"), "{text}");
        assert!(text.contains("approve  skills runs approve 0198a1b2-"), "{text}");
        let wide: Vec<&str> =
            text.lines().filter(|line| cells(line) > 80 && !line.contains("skills runs")).collect();
        assert!(wide.is_empty(), "{wide:?}");
    }

    #[test]
    fn a_run_of_skills_that_are_not_loaded_is_not_resumed_here() {
        let mut detail = detail(RunState::Failed);
        assert!(page().render(&detail).contains("resume   skills runs resume 0198a1b2-"));
        detail.elsewhere = Some("it was launched from skills that are not loaded".to_owned());
        detail.contract_unchanged = None;
        let text = page().render(&detail);
        assert!(text.contains("not loaded") && !text.contains("runs resume"), "{text}");
    }

    #[test]
    fn decision_before_the_first_step_has_no_internal_step() {
        let mut detail = detail(RunState::Completed);
        let (step, inputs_digest) = (BEFORE_FIRST_STEP.to_owned(), String::new());
        detail.decisions = vec![RecordedDecision {
            at_ms: NOW_MS,
            decision: Decision { verdict: Verdict::Approve, step, inputs_digest, choice: None, result: None },
            by: DecisionRecord { approver: Some("ana".to_owned()), notes: None },
        }];
        let text = page().render(&detail);
        assert!(text.contains("  approve before the first step by ana\n"), "{text}");
    }

    #[test]
    fn takeover_of_an_ended_run_is_labeled_as_its_worker() {
        let mut detail = detail(RunState::Completed);
        let mut event = detail.events[0].clone();
        event.event.kind = EventKind::RunClaimed;
        event.event.data = serde_json::json!({ "worker": "b/1-a/5/9/0", "taken_over_from": "b/1-a/4/8/0", "attempt": 2, "attempts": 6 });
        detail.events.push(event);
        let text = page().render(&detail);
        let line = text.lines().find(|line| line.contains("taken over from")).unwrap();
        assert!(line.starts_with("  worker  "), "{text}");
    }

    #[test]
    fn a_resumed_run_shows_what_failed_and_what_was_changed() {
        let mut detail = detail(RunState::Completed);
        let change = |name: &str, before: Option<serde_json::Value>| ChangedInput {
            name: name.to_owned(),
            before,
            after: serde_json::json!("b.csv"),
        };
        detail.earlier = vec![EarlierAttempt {
            number: 1,
            failed_ms: Some(NOW_MS - 90_000),
            step: Some("extract".to_owned()),
            error: Some(serde_json::json!({ "code": "runtime_error", "message": "no such file" })),
            resumed_ms: NOW_MS - 80_000,
            checkpoint: 0,
            changed: vec![change("file", Some(serde_json::json!("a.csv"))), change("other", None)],
        }];
        let mut text = String::new();
        page().earlier(&mut text, &detail);
        insta::assert_snapshot!(text, @r"
        earlier attempts
           1  2026-07-14 09:28:30  failed at extract: no such file
              2026-07-14 09:28:40  resumed from checkpoint 0 with changed inputs
              file  a.csv → b.csv
              other  (none) → b.csv
        ");
    }

    #[test]
    fn a_checkpoint_shows_its_state_and_what_its_step_changed() {
        let detail = detail(RunState::Completed);
        let (checkpoint, changed) = at(&detail.checkpoints, 2).unwrap();
        let look = page().look;
        insta::assert_snapshot!(checkpoint_text(checkpoint, &changed, &TimeZone::UTC, look), @r#"
        checkpoint 2 after check  2026-07-14 09:28:02
          vars  {"through":2}

        since the previous checkpoint
          /vars/through  1 → 2
        "#);
        assert!(at(&detail.checkpoints, 9).is_none());
    }
}
