//! Runs, decisions, the board and workers as labeled lines.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::{Caller, clock, status};
use crate::dialog::{capitalized, clean, sentences};
use crate::output::counted;
use skills_api::{
    Board, BoardFailures, BoardRun, Deadline, DecisionPreview, DecisionTarget, Error, RunDetail, StepState,
    WorkerView,
};
use skills_model::{BEFORE_FIRST_STEP, Gate, RunState, step_label};
use skills_skill::safe_text;
use skills_store::{RunId, RunRecord};

/// Maximum number of characters of an input's value.
const MAX_VALUE: usize = 200;

/// Formats a duration in words: `2 hours`.
pub fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    let (count, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    counted(count, unit)
}

fn deadline(expires_ms: Option<i64>, now_ms: i64) -> String {
    capitalized(&Deadline::of(expires_ms, now_ms).text(span))
}

/// Like [`deadline`], with what happens then.
fn deadline_and_outcome(run: &RunRecord, now_ms: i64) -> String {
    let when = deadline(run.expires_ms, now_ms);
    if run.expires_ms.is_some_and(|at| at > now_ms) {
        format!("{when}, {}", status::on_expiry(run))
    } else {
        when
    }
}

/// Returns the abbreviated id of a run.
pub fn short(run: &RunRecord) -> &str {
    status::short(&run.id.0)
}

/// Returns the name of the signal that a run waits for.
pub fn awaited_signal(run: &RunRecord) -> Option<&str> {
    match &run.gate {
        Some(Gate::Signal { name, .. }) if run.state == RunState::WaitingForSignal => Some(name),
        _ => None,
    }
}

/// Describes the state of a run, and why it was canceled.
fn state(run: &RunRecord) -> String {
    if run.state == RunState::Pending && run.paused {
        return "paused until resumed".to_owned();
    }
    if run.state != RunState::Canceled {
        return run.state.label().to_owned();
    }
    let why = run.failure().map(|why| format!("canceled: {}", clean(&why)));
    match (run.expired_ms(), run.denied_at()) {
        (Some(_), _) => "canceled: the wait for approval or a signal expired".to_owned(),
        (None, Some(step)) if step == BEFORE_FIRST_STEP => format!("denied {}", step_label(step)),
        (None, Some(step)) => format!("denied at step {}", clean(step)),
        (None, None) => why.unwrap_or_else(|| run.state.label().to_owned()),
    }
}

/// Describes how a run continued after a command.
pub fn outcome(run: &RunRecord) -> String {
    let (done, all) = run.progress;
    let mut parts = vec![
        format!("Result: run {} is {}", short(run), state(run)),
        format!("Completed steps: {done} of {all}"),
    ];
    if run.state == RunState::Failed {
        parts.push(format!("Failed: {}", clean(&run.failure().unwrap_or_default())));
    }
    sentences(parts)
}

/// Renders a run of a list, without its number, and with what distinguishes it from others of its title.
pub fn item(run: &RunRecord, distinction: &str, now_ms: i64) -> String {
    let name = full_name(run.title_or_skill(), distinction);
    let mut text = named_item(run, &name, now_ms);
    if let Some(labels) = labels(run) {
        text.push(' ');
        text += &sentences(vec![labels]);
    }
    text
}

/// Returns a title and what distinguishes the run from others of this title.
pub fn full_name(title: &str, distinction: &str) -> String {
    let parts = [clean(title), clean(distinction)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(". ")
}

/// Renders a run of a list by a name other than its title, without number and labels.
pub fn named_item(run: &RunRecord, name: &str, now_ms: i64) -> String {
    let (done, all) = run.progress;
    let step = run.step.as_deref().filter(|_| !run.state.is_terminal());
    let step = step.map(|step| match step {
        BEFORE_FIRST_STEP => format!(", {}", step_label(step)),
        _ => format!(", step {} of {all} {}", (done + 1).min(all), clean(step)),
    });
    let mut parts = vec![
        name.to_owned(),
        format!("Run {}, skill {}{}", short(run), clean(&run.skill_id), step.unwrap_or_default()),
    ];
    parts.extend(run.wait_notes().map(|note| capitalized(&clean(&note))));
    parts.extend(awaited_signal(run).map(|name| format!("Waiting for the signal {}", clean(name))));
    parts.push(match run.state {
        RunState::WaitingForHuman | RunState::WaitingForSignal => deadline(run.expires_ms, now_ms),
        RunState::Failed => format!("Failed: {}", clean(&run.failure().unwrap_or_default())),
        _ => format!("State: {}", state(run)),
    });
    let assigned = run.options.assigned.as_ref().filter(|_| !run.state.is_terminal());
    parts.extend(assigned.map(|assigned| format!("Assigned to {}", clean(&assigned.to))));
    sentences(parts)
}

/// Renders an error as a sentence.
pub fn error(error: &Error, caller: &Caller) -> String {
    let message = clean(&caller.completed_in(&error.message));
    let end = if message.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("Error: {message}{end}")
}

fn labels(run: &RunRecord) -> Option<String> {
    Some(run.labels()).filter(|labels| !labels.is_empty()).map(|labels| format!("Labels: {}", clean(&labels)))
}

/// Renders the details of a run; in the dialog about runs, a key shows what is truncated.
pub fn page(detail: &RunDetail, caller: &Caller, in_dialog: bool, now_ms: i64) -> String {
    let run = &detail.run;
    let mut out = format!("\nRun {}: {}\n", short(run), sentences(vec![clean(run.title_or_skill())]));
    let mut line = |parts: Vec<String>| {
        let _ = writeln!(out, "{}", sentences(parts));
    };
    let mut first = vec![format!("State: {}, for {}", state(run), span(now_ms.saturating_sub(run.since_ms)))];
    if run.state.is_waiting() {
        first.push(deadline_and_outcome(run, now_ms));
    }
    first.extend(run.wait_notes().map(|note| capitalized(&clean(&note))));
    line(first);
    line(vec![
        format!(
            "Started by: {}, {} ago",
            clean(&run.started_by),
            span(now_ms.saturating_sub(run.created_ms))
        ),
        format!("Trace: {}", clean(&run.trace_id)),
    ]);
    if let Some(labels) = labels(run) {
        line(vec![labels]);
    }
    if let Some(name) = awaited_signal(run) {
        line(vec![format!("Waiting for the signal: {}", clean(name))]);
    }
    if let Some(target) = run.target.as_ref().filter(|_| detail.sheet.is_none()) {
        let field = |name: &str| clean(target.get(name).and_then(Value::as_str).unwrap_or_default());
        line(vec![format!("Attached to: {} {}", field("type"), field("ref"))]);
    }
    if let Some(assigned) = &run.options.assigned {
        let to = format!("Assigned to: {}, by {}", clean(&assigned.to), clean(&assigned.by));
        let note = assigned.note.as_ref().map(|note| format!("Note: {}", clean(note)));
        line([Some(to), note].into_iter().flatten().collect());
    }
    let own = || detail.steps.iter().filter(|step| step.depth == 0);
    let mut steps = vec![format!("Steps: {}", own().count())];
    for (label, state) in [
        ("Completed", StepState::Completed),
        ("Running", StepState::Running),
        ("Waiting", StepState::WaitingForHuman),
        ("Waiting for a signal at step", StepState::WaitingForSignal),
        ("Failed", StepState::Failed),
        ("Skipped", StepState::Skipped),
        ("Interrupted", StepState::Interrupted),
        ("Pending", StepState::Pending),
    ] {
        let names: Vec<String> =
            own().filter(|step| step.state == state).map(|step| clean(&step.step)).collect();
        if !names.is_empty() {
            steps.push(format!("{label}: {}", names.join(", ")));
        }
    }
    line(steps);
    for decided in &detail.decisions {
        let decision = &decided.decision;
        let choice = decision.choice.map(|choice| format!(" ({choice})")).unwrap_or_default();
        let by = decided.by.approver.as_deref().map_or_else(|| "another user".to_owned(), clean);
        let what = format!(
            "Decision: {}{choice}, {}, by {by}, {} ago",
            decision.verdict,
            clean(&status::approval_phrase(&decision.step)),
            span(now_ms.saturating_sub(decided.at_ms))
        );
        let notes = decided.by.notes.as_ref().map(|notes| format!("Notes: {}", clean(notes)));
        line([Some(what), notes].into_iter().flatten().collect());
    }
    if let Some(error) = &run.error {
        line(vec![format!("Error: {}", clean(&caller.completed_in(&status::message(error))))]);
    }
    if let Some(outputs) = run.outputs.as_ref().filter(|outputs| !outputs.is_null()) {
        out.push_str("Outputs:\n");
        out += &short_values(outputs, || truncated(&run.id, caller, in_dialog));
    }
    if let Some(preview) = &detail.sheet {
        out += &decision_preview(preview, caller, in_dialog);
    }
    out.push('\n');
    out
}

/// Renders what is to be decided; in the dialog about runs, a key shows what is truncated.
pub fn decision_preview(preview: &DecisionPreview, caller: &Caller, in_dialog: bool) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", sentences(vec![text]));
    };
    line(format!(
        "\nApproval: {}, {}",
        clean(&preview.headline),
        clean(&status::approval_phrase(&preview.step))
    ));
    if preview.outcome_unknown {
        line("Outcome unknown".to_owned());
    }
    for warning in [&preview.irreversible, &preview.changed, &preview.blocked].into_iter().flatten() {
        line(format!("Warning: {}", clean(&caller.completed_in(warning))));
    }
    let capability = format!("{}, {}", preview.capability, preview.capability_note);
    for (label, value) in [
        ("Capability", capability.trim_matches(|c| c == ',' || c == ' ')),
        ("Binding", &preview.binding),
        ("Fallbacks", &preview.fallbacks.join("; ")),
        ("Isolation", &preview.isolation),
        ("Reason", &preview.why),
    ] {
        if !value.is_empty() {
            line(format!("{label}: {}", clean(value)));
        }
    }
    for file in &preview.files {
        line(format!("File: {}", clean(&file.text())));
    }
    if let Some(target) = &preview.target {
        out += &target_lines(target, &preview.run, caller, in_dialog);
    }
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", sentences(vec![text]));
    };
    if preview.inputs.is_null() {
        line(format!("Inputs: {}", DecisionPreview::CHANGED));
        return out;
    }
    let count = preview.inputs.as_object().map_or(0, serde_json::Map::len);
    let digest = clean(&preview.inputs_digest);
    line(format!("Inputs: {count}. Digest: sha256 {digest}. Exactly these inputs are used"));
    out + &short_values(&preview.inputs, || truncated(&preview.run, caller, in_dialog))
}

/// Renders what the run is attached to.
fn target_lines(target: &DecisionTarget, run: &RunId, caller: &Caller, in_dialog: bool) -> String {
    let mut parts = vec![format!("Attached to: {}", clean(&target.text()))];
    if target.truncated {
        parts.push(truncated(run, caller, in_dialog));
    }
    format!("{}\n{}", sentences(parts), values(&target.fields()))
}

/// Returns what shows all of a truncated text of a run: a key of the dialog about runs, or a command.
fn truncated(run: &RunId, caller: &Caller, in_dialog: bool) -> String {
    if in_dialog {
        return "Truncated: i shows all of it".to_owned();
    }
    let command = caller.line(&["runs", "show", &run.0, "--json"]);
    format!("Truncated: {} prints all of it", clean(&command))
}

/// Renders the fields of an object in full.
pub fn values(fields: &Value) -> String {
    value_lines(fields, usize::MAX).0
}

/// Renders the fields of an object, each value in at most [`MAX_VALUE`] characters; `truncated` is what shows the rest.
fn short_values(fields: &Value, truncated: impl FnOnce() -> String) -> String {
    match value_lines(fields, MAX_VALUE) {
        (lines, false) => lines,
        (lines, true) => format!("{lines}{}\n", sentences(vec![truncated()])),
    }
}

/// Renders the fields of an object, each value in at most `max` characters, and returns whether one is longer.
fn value_lines(fields: &Value, max: usize) -> (String, bool) {
    let (mut out, mut is_cut) = (String::new(), false);
    for (name, value) in fields.as_object().into_iter().flatten() {
        let text = exact(value);
        let all = text.chars().count();
        let line: String = text.chars().take(max).collect();
        let cut = if all > max { format!("... {all} characters") } else { String::new() };
        is_cut |= all > max;
        let _ = writeln!(out, "  {}: {}{cut}", safe_text::coded(name), safe_text::coded(&line));
    }
    (out, is_cut)
}

/// Returns a value on one line: a text as JSON if it is empty, if spaces at its ends or several in a row would not be
/// recognized, or if it contains characters that are shown as codes.
pub fn exact(value: &Value) -> String {
    let is_plain = |text: &&str| {
        let has_usual_spaces = !text.is_empty() && text.trim() == *text && !text.contains("  ");
        has_usual_spaces && !text.starts_with('"') && safe_text::coded(text) == **text
    };
    value.as_str().filter(is_plain).map_or_else(|| value.to_string(), str::to_owned)
}

/// Renders the target, the inputs of the pending decision and the outputs of a run in full.
pub fn in_full(detail: &RunDetail) -> String {
    let preview = detail.sheet.as_ref();
    let target = preview.and_then(|preview| preview.target.as_ref());
    // The preview has the beginning of the content; the run has all of it.
    let target = target.and(detail.run.target.as_ref()).map(|target| match &target["content"] {
        Value::Object(fields) => Value::Object(fields.clone()),
        content => serde_json::json!({ "content": content }),
    });
    let parts = [
        ("Target", target.as_ref()),
        ("Inputs", preview.map(|preview| &preview.inputs)),
        ("Outputs", detail.run.outputs.as_ref()),
    ];
    let parts = parts.into_iter().filter_map(|(label, fields)| Some((label, fields?)));
    let parts = parts.filter(|(_, fields)| !fields.is_null());
    let lines = parts.map(|(label, fields)| format!("{label}:\n{}", values(fields)));
    lines.collect()
}

pub fn board(board: &Board, hours: u32) -> String {
    let mut out = String::new();
    let count = |states: &[RunState]| {
        let counts = states.iter().filter_map(|state| board.counts.get(state));
        counts.copied().fold(0, u64::saturating_add)
    };
    let _ = writeln!(
        out,
        "Board. {} waiting for approval, {} running, {} waiting for a signal, {} pending, {} paused. Last {hours} \
         hours: {} failed, {} completed, {} canceled.",
        count(&[RunState::WaitingForHuman]),
        count(&[RunState::Running, RunState::Replaying]),
        count(&[RunState::WaitingForSignal]),
        count(&[RunState::Pending]).saturating_sub(board.paused()),
        board.paused(),
        board.failed_runs(),
        board.completed_runs(),
        board.canceled_runs(),
    );
    if board.truncated {
        out.push_str("Only the newest ended runs are counted.\n");
    }
    let mut group = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{title}: {}.", lines.len());
            for (number, line) in (1..).zip(lines) {
                let _ = writeln!(out, "{number}. {line}");
            }
        }
    };
    let now_ms = board.now_ms;
    let run = |run: &BoardRun, last: Vec<String>| {
        let step = run.step.as_deref().map(|step| match step {
            BEFORE_FIRST_STEP => format!(", {}", step_label(step)),
            _ => format!(", step {}", clean(step)),
        });
        let step = step.unwrap_or_default();
        let head = format!("Run {}, skill {}{step}", status::short(&run.run.0), clean(&run.skill_id));
        sentences([vec![full_name(&run.title, &run.distinction.replace("  ", ", ")), head], last].concat())
    };
    let waits = |one: &BoardRun| {
        let mut parts: Vec<String> = one.wait_notes().map(|note| capitalized(&clean(note))).collect();
        parts.push(deadline(one.expires_ms, now_ms));
        parts.extend(one.assigned.as_ref().map(|to| format!("Assigned to {}", clean(to))));
        run(one, parts)
    };
    group("Waiting for approval, nearest deadline first", board.waiting.iter().map(waits).collect());
    let runs = |one: &BoardRun| {
        let last = match &one.signal {
            Some(signal) => format!("Waiting for the signal {}", clean(signal)),
            None if one.is_paused() => "Paused until resumed".to_owned(),
            None => format!(
                "{}, for {}",
                capitalized(one.state.label()),
                span(now_ms.saturating_sub(one.since_ms))
            ),
        };
        run(one, vec![last])
    };
    group("Running, paused or waiting for a signal", board.running.iter().map(runs).collect());
    let reason = |reason: &BoardFailures| {
        let ago = span(now_ms.saturating_sub(reason.last_ms));
        sentences(vec![clean(&reason.reason), format!("Runs: {}", reason.runs), format!("Last: {ago} ago")])
    };
    group("Failed, by reason", board.failed.iter().map(reason).collect());
    group("Workers", board.workers.iter().map(|one| worker(one, now_ms)).collect());
    out
}

fn worker(worker: &WorkerView, now_ms: i64) -> String {
    let slots = worker.slots.map(|slots| format!(" of {slots}")).unwrap_or_default();
    let runs: Vec<&str> = worker.runs.iter().map(|run| status::short(&run.run.0)).collect();
    let mut parts = vec![clean(&worker.name), format!("State: {}", worker.state)];
    parts.extend(worker.version.as_ref().map(|version| format!("Version: {}", clean(version))));
    parts.push(match runs.as_slice() {
        [] => format!("Runs: 0{slots}"),
        runs => format!("Runs: {}{slots}, {}", runs.len(), runs.join(", ")),
    });
    parts.push(match worker.seen_ms {
        Some(seen) => format!("Heartbeat: {} ago", span(now_ms.saturating_sub(seen))),
        None => "No heartbeat".to_owned(),
    });
    sentences(parts)
}

pub fn workers(workers: &[WorkerView]) -> String {
    if workers.is_empty() {
        return "No workers.\n".to_owned();
    }
    let now_ms = clock::now_ms();
    let lines = (1..).zip(workers).map(|(number, one)| format!("{number}. {}\n", worker(one, now_ms)));
    format!("Workers: {}.\n{}", workers.len(), lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples::{NOW_MS, caller, detail, record};
    use skills_model::{ApprovalReason, Approvals, Decision, Verdict};
    use skills_store::{Assignment, DecisionRecord, RecordedDecision};

    #[test]
    fn a_run_is_one_labeled_line_without_glyphs() {
        let mut run = record(RunState::WaitingForHuman);
        run.options.title = Some("Send 214 invoices to ana…".to_owned());
        run.expires_ms = Some(NOW_MS + 300_000);
        assert_eq!(
            item(&run, "", NOW_MS),
            "Send 214 invoices to ana... Run 0000abcd, skill invoice-intake, step 4 of 4 book. Expires in 5 minutes."
        );
        let failed = item(&record(RunState::Failed), "", NOW_MS);
        assert!(failed.ends_with("Failed: the service answered 502."), "{failed}");
        let paused = item(&RunRecord { paused: true, ..record(RunState::Pending) }, "", NOW_MS);
        assert!(paused.ends_with("State: paused until resumed."), "{paused}");
    }

    #[test]
    fn preview_shows_each_file_on_a_line() {
        let mut preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        let (name, path) = ("pay.csv".to_owned(), "/srv/pay.csv".to_owned());
        preview.files = vec![skills_api::SuppliedFile { name, path, sha256: Some("c4".repeat(32)) }];
        let file = format!("\nFile: pay.csv  /srv/pay.csv  sha256 {}.\n", "c4".repeat(32));
        let text = decision_preview(&preview, &caller(&[]), false);
        assert!(text.contains(&file), "{text}");
    }

    #[test]
    fn commands_of_a_preview_repeat_the_options() {
        let mut preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        preview.blocked = Some("it is not trusted; run `skills trust pdf`".to_owned());
        let (kind, reference) = ("output".to_owned(), "run/x".to_owned());
        let (label, sha256, content) = (None, "ab".repeat(32), serde_json::json!({ "rows": 1 }));
        preview.target = Some(DecisionTarget {
            kind,
            reference,
            label,
            content_bytes: 90_000,
            sha256,
            content,
            truncated: true,
        });
        let text = decision_preview(&preview, &caller(&["--demo", "--store", "sqlite:a.db"]), false);
        let options = "skills --demo --store sqlite:a.db";
        assert!(text.contains(&format!("run `{options} trust pdf`.\n")), "{text}");
        let show = format!("Truncated: {options} runs show {} --json prints", preview.run.0);
        assert!(text.contains(&show), "{text}");
    }

    #[test]
    fn truncated_values_name_what_shows_all_of_them() {
        let mut detail = detail(RunState::Completed);
        detail.run.outputs = Some(serde_json::json!({ "report": "x".repeat(300) }));
        let all = |in_dialog: bool| page(&detail, &caller(&["--demo"]), in_dialog, NOW_MS);
        let end = |text: &str| format!("x... 300 characters\nTruncated: {text}.\n");
        let command = format!("skills --demo runs show {} --json prints all of it", detail.run.id.0);
        let text = all(false);
        assert!(text.contains(&end(&command)), "{text}");
        let text = all(true);
        assert!(text.contains(&end("i shows all of it")), "{text}");
        assert!(in_full(&detail).contains(&"x".repeat(300)));
    }

    #[test]
    fn white_space_of_values_is_exact() {
        let fields = serde_json::json!({
            "a": "b    c", "d": "one\n  two\t", "e": " f", "g": "100 €; a−b×c “d”…", "h": "1\u{a0}2", "i": "",
            "j": ["3\u{2009}4"],
        });
        let text = values(&fields);
        for line in [
            r#"  a: "b    c""#,
            r#"  d: "one\n  two\t""#,
            r#"  e: " f""#,
            "  g: 100 €; a−b×c “d”…",
            r#"  h: "1<U+00A0>2""#,
            r#"  i: """#,
            r#"  j: ["3<U+2009>4"]"#,
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
    }

    #[test]
    fn line_shows_unknown_outcome_signal_and_labels() {
        let mut run = record(RunState::WaitingForHuman);
        run.gate = Some(Gate::human("book", "9f".repeat(32), ApprovalReason::UnknownOutcome));
        run.options.labels = [("env".to_owned(), "prod".to_owned())].into();
        assert_eq!(
            item(&run, "", NOW_MS),
            "invoice-intake. Run 0000abcd, skill invoice-intake, step 4 of 4 book. Outcome unknown. No deadline. \
             Labels: env=prod."
        );
        let waits = item(&record(RunState::WaitingForSignal), "", NOW_MS);
        assert!(waits.contains("book. Waiting for the signal books-closed. No deadline."), "{waits}");
    }

    #[test]
    fn line_shows_approvals_escalation_and_assignee() {
        let mut run = record(RunState::WaitingForHuman);
        if let Some(Gate::Human { approvals, .. }) = &mut run.gate {
            *approvals = Approvals { need: 2, by: vec!["ana".to_owned()], ..Approvals::default() };
        }
        run.options.escalated_ms = Some(run.since_ms);
        run.options.escalated_to = vec!["lead".to_owned()];
        let (to, by) = ("lena".to_owned(), "ana".to_owned());
        run.options.assigned = Some(Assignment { to, by, note: None, at_ms: NOW_MS });
        let line = item(&run, "", NOW_MS);
        let end = "book. Approved, 1 of 2. Escalated to lead. No deadline. Assigned to lena.";
        assert!(line.ends_with(end), "{line}");
    }

    #[test]
    fn canceled_run_shows_its_reason_and_deadline_its_effect() {
        let canceled = record(RunState::Canceled);
        let expired = RunRecord { error: Some(serde_json::json!({ "code": "expired" })), ..canceled };
        assert_eq!(expired.expired_ms(), Some(expired.since_ms));
        assert!(
            item(&expired, "", NOW_MS)
                .ends_with("State: canceled: the wait for approval or a signal expired.")
        );
        let mut waiting = detail(RunState::WaitingForHuman);
        waiting.run.expires_ms = Some(NOW_MS + 300_000);
        let text = page(&waiting, &caller(&[]), false, NOW_MS);
        assert!(text.contains("Expires in 5 minutes, then denied and canceled.\n"), "{text}");
        assert_eq!(
            outcome(&record(RunState::Failed)),
            "Result: run 0000abcd is failed. Completed steps: 3 of 4. Failed: the service answered 502."
        );
    }

    #[test]
    fn denied_run_names_who_denied_it() {
        let mut detail = detail(RunState::Canceled);
        let decision = Decision {
            verdict: Verdict::Deny,
            step: "book".to_owned(),
            inputs_digest: String::new(),
            choice: None,
            result: None,
        };
        detail.run.decided = Some(decision.clone());
        let by = DecisionRecord { approver: Some("ana".to_owned()), notes: Some("wrong vendor".to_owned()) };
        detail.decisions = vec![RecordedDecision { at_ms: NOW_MS - 60_000, decision, by }];
        let text = page(&detail, &caller(&[]), false, NOW_MS);
        assert!(text.contains("State: denied at step book, for 1 minute.\n"), "{text}");
        let decided = "Decision: deny, step book, by ana, 1 minute ago. Notes: wrong vendor.\n";
        assert!(text.contains(decided), "{text}");
    }

    #[test]
    fn times_are_written_out() {
        assert_eq!(
            (span(1_000), span(61_000), span(7_200_000)),
            ("1 second".into(), "1 minute".into(), "2 hours".into())
        );
        assert_eq!(deadline(None, 0), "No deadline");
        assert_eq!(deadline(Some(5), 5), "Expired");
    }
}
