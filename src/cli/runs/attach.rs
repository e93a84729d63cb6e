//! `skills attach`: the four checks, what would happen, and the attachment itself.

use std::fmt::Write as _;

use serde::Serialize;

use super::completion::{self, NextCommand};
use super::inputs::InputTypes;
use super::next_steps::invocation;
use super::{inputs, launch, values};
use crate::Context;
use crate::args::AttachArgs;
use crate::failure::{Exit, Failure};
use crate::output::{HANGING, TerminalCaps, TextStyle, byte_size, fit, push_row, wrap, wrap_after};
use skills_api::{AttachCheck, AttachPreview, AttachRequest, Attached, CoreParts, LocalFiles, first_events};
use skills_skill::safe_text;
use skills_store::EventKind;

/// `skills attach --json`.
#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(flatten)]
    attached: &'a Attached,
    next: Vec<NextCommand>,
}

pub async fn run(cx: &mut Context, args: &AttachArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let mut reporter = cx.reporter();
    // The checks report problems of the skill, in order; the contract is only used here to type the inputs.
    let contract = client.contract(&args.skill).await.ok();
    let types =
        contract.as_ref().map_or(InputTypes::Nothing, |view| InputTypes::Declared(&view.contract.inputs));
    let request = AttachRequest {
        skill: args.skill.clone(),
        target_type: args.target_type.to_string(),
        target_ref: args.target_ref.clone(),
        inputs: inputs::gather(&args.inputs, types, &cx.cwd)?,
        options: launch::options(&args.exec, &cx.cwd)?,
        started_by: None,
        sessions: skills_api::SessionAccess::default(),
        local_files: Some(LocalFiles { cwd: cx.cwd.clone(), home: cx.config()?.dirs.home }),
    };
    let mut preview = client.attach_preview(request.clone()).await?;
    let called = invocation(&cx.global, None);
    preview.cli = called.completed(&preview.cli);
    if !cx.out.json {
        let notes = preview.checks.iter_mut().map(|check| &mut check.note);
        for text in notes.chain(&mut preview.may_do) {
            *text = called.completed_in(text);
        }
    }
    if args.check {
        cx.out.show(&preview, |look| render(&preview, true, look))?;
        let accepted = preview.reason.is_none() && preview.input_problems.is_empty();
        return Ok(if accepted { Exit::Success } else { Exit::ChecksFailed });
    }
    reporter.print_line(&render(&preview, false, reporter.look));
    let mut attached = client.attach(request).await?;
    let run = attached.execution.clone();
    reporter.print_line(&format!("{} {}", TextStyle::Muted.paint("run       ", reporter.look.color), run.id));
    if let Some(view) = &contract {
        let isolation = safe_text::line(&view.isolation).into_owned();
        reporter.print_line(&format!(
            "{} {isolation}",
            TextStyle::Muted.paint("isolation ", reporter.look.color)
        ));
    }
    if args.exec.detach {
        if cx.out.json {
            let next = completion::next(cx, &run, None);
            cx.out.value(&Outcome { attached: &attached, next })?;
        } else {
            cx.out.line(&run.id.0)?;
        }
        return Ok(Exit::Success);
    }
    let steps: Vec<String> =
        contract.iter().flat_map(|view| view.steps.iter().map(|step| step.id.clone())).collect();
    let completion = completion::work(&*client, &run, 0, &steps, &mut reporter).await?;
    attached.execution = completion.run.clone();
    if attached.control.is_none() {
        // A control signal is applied when the run ends, which was after the response above.
        let (events, _) = first_events(&*client, &run.id.0, usize::MAX).await?;
        let wish = events
            .iter()
            .rev()
            .find(|event| matches!(event.event.kind, EventKind::ControlApplied | EventKind::ControlRefused));
        attached.control =
            wish.map(|event| super::event_line::describe_event(&event.event.kind, &event.event.data));
    }
    let done = completion::conclude(cx, &completion, &mut reporter)?;
    if let Some(control) = &attached.control {
        reporter.print_message("  control: ", &safe_text::line(control));
    }
    if cx.out.json {
        let next = completion::next(cx, &completion.run, completion.obstacle.as_deref());
        cx.out.value(&Outcome { attached: &attached, next })?;
    } else if completion.run.outputs.is_none() {
        cx.out.line(&run.id.0)?;
    }
    Ok(done)
}

/// Describes what a check requires.
fn question(check: AttachCheck) -> &'static str {
    match check {
        AttachCheck::Exists => "contract",
        AttachCheck::Invocation => "invocation",
        AttachCheck::TargetType => "target type",
        AttachCheck::Target => "target exists",
    }
}

/// Width of the column of the checks.
const LABEL_WIDTH: usize = 13;

/// Renders the checks and, with `full`, what would happen.
fn render(preview: &AttachPreview, full: bool, look: TerminalCaps) -> String {
    let mut out = String::new();
    let available = look.text_width(100);
    for check in &preview.checks {
        let (sign, ascii, style) = match check.passed {
            Some(true) => ("✓", "+", TextStyle::Good),
            Some(false) => ("✗", "x", TextStyle::Bad),
            None => ("·", ".", TextStyle::Muted),
        };
        let sign = style.paint(if look.unicode { sign } else { ascii }, look.color);
        let note = safe_text::line(&check.note);
        let note = wrap_after(LABEL_WIDTH + 3, &note, available, TextStyle::Muted, look.color);
        let question = fit(question(check.check), LABEL_WIDTH, look.unicode);
        let _ = writeln!(out, "{}", format!("{sign} {question} {note}").trim_end());
    }
    for (field, problem) in &preview.input_problems {
        let sign = TextStyle::Bad.paint(if look.unicode { "✗" } else { "x" }, look.color);
        let text = format!("input {}: {}", safe_text::line(field), safe_text::line(problem));
        for line in look.rows(&format!("{sign} "), HANGING, &text) {
            let _ = writeln!(out, "{line}");
        }
    }
    if let Some(label) = &preview.target_label {
        push_row(&mut out, "target     ", &safe_text::line(label), look);
    }
    if !full {
        return out;
    }
    if let Some(content) = &preview.content {
        if let Some(bytes) = preview.content_bytes {
            let _ = writeln!(out, "content    {} as JSON", byte_size(bytes));
        }
        let text = values::rows(content, 2, look);
        for line in text.lines().take(12) {
            let _ = writeln!(out, "{line}");
        }
        if text.lines().count() > 12 {
            let _ = writeln!(
                out,
                "  {}",
                TextStyle::Muted.paint("(truncated; --json prints the complete content)", look.color)
            );
        }
    }
    for sentence in &preview.may_do {
        for line in wrap(&safe_text::line(sentence), available.saturating_sub(2)) {
            let _ = writeln!(out, "  {line}");
        }
    }
    let _ = writeln!(
        out,
        "\n{}\n{}",
        TextStyle::Strong.paint("as a command", look.color),
        look.unbroken_row("  ", &safe_text::line(&preview.cli))
    );
    let _ = writeln!(out, "{}", TextStyle::Strong.paint("as an HTTP request", look.color));
    for line in safe_text::block(&preview.curl).lines() {
        let _ = writeln!(out, "{}", look.unbroken_row("  ", line));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_api::{AttachCheckResult, AttachReason};

    #[test]
    fn checks_are_listed_in_order_with_results() {
        let check = |check, passed, note: &str| AttachCheckResult { check, passed, note: note.to_owned() };
        let preview = AttachPreview {
            checks: vec![
                check(AttachCheck::Exists, Some(true), "table-audit 1.0.0"),
                check(AttachCheck::Invocation, Some(true), "attach"),
                check(AttachCheck::TargetType, Some(false), "a run is none of output, artifact"),
                check(AttachCheck::Target, None, ""),
            ],
            reason: Some(AttachReason {
                check: AttachCheck::TargetType,
                value: "run".to_owned(),
                allowed: vec!["output".to_owned(), "artifact".to_owned()],
                cause: None,
            }),
            target_label: None,
            content: None,
            content_bytes: None,
            input_problems: vec![("limit".to_owned(), "a number is wanted".to_owned())],
            effect_mode: None,
            may_do: Vec::new(),
            cli: "skills attach table-audit".to_owned(),
            curl: "curl …".to_owned(),
        };
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        insta::assert_snapshot!(render(&preview, false, look), @r"
        ✓ contract      table-audit 1.0.0
        ✓ invocation    attach
        ✗ target type   a run is none of output, artifact
        · target exists
        ✗ input limit: a number is wanted
        ");
        let label = Some("file f.txt, 6 B".to_owned());
        let content = Some(serde_json::Value::from("a"));
        let preview = AttachPreview { target_label: label, content, content_bytes: Some(90), ..preview };
        let text = render(&preview, true, look);
        assert!(text.contains("\ntarget     file f.txt, 6 B\ncontent    90 B as JSON\n"), "{text}");
    }
}
