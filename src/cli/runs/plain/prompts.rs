//! Prompts for decisions, signals and assignments.

use std::io::{BufRead, Write};

use serde_json::Value;

use super::text::{awaited_signal, short};
use crate::dialog::{Dialog, capitalized, clean};
use crate::failure::Failure;
use skills_api::{DecisionPreview, RunCommand};
use skills_model::{BEFORE_FIRST_STEP, Choice, Verdict, approval_label};
use skills_store::RunRecord;

/// Prompts for a decision; `None` if it is not confirmed. Returns the word that was typed, too.
pub fn decision<R: BufRead, W: Write>(
    dialog: &mut Dialog<R, W>,
    run: &RunRecord,
    preview: &DecisionPreview,
    verdict: Verdict,
) -> Result<Option<(String, RunCommand)>, Failure> {
    let (mut choice, mut result) = (None, None);
    if preview.outcome_unknown && verdict == Verdict::Approve {
        let typed = dialog.ask(
            "The outcome of this step is unknown. Type rerun to run it again, happened to enter its result, \
             skip to continue without it, fail to fail the run, or press Enter to go back.",
        )?;
        let Some(Ok(chosen)) = typed.map(|typed| typed.parse::<Choice>()) else { return Ok(None) };
        choice = Some(chosen);
        if chosen == Choice::Happened {
            let fields: Vec<String> = preview
                .outputs
                .iter()
                .map(|(name, field)| format!("{}: {}", clean(name), field.kind))
                .collect();
            let fields = if fields.is_empty() { "any fields".to_owned() } else { fields.join(", ") };
            result = json(dialog, &format!("Result as one line of JSON, {fields}."))?;
            if result.is_none() {
                return Ok(None);
            }
        }
    }
    let approver = preview.approver.as_ref().map(|(name, _)| name.clone());
    let who = preview
        .approver
        .as_ref()
        .map_or_else(String::new, |(name, origin)| format!(" as {} ({})", clean(name), clean(origin)));
    let word = choice.map_or_else(|| verdict.to_string(), |choice: Choice| choice.to_string());
    let (run, step) = (short(run), clean(&preview.step));
    dialog.print_line(match choice {
        None if preview.step == BEFORE_FIRST_STEP => {
            let what = approval_label(&preview.step);
            format!("{}: {what} of run {run}{who}?", capitalized(&word))
        }
        None => format!("{} step {step} of run {run}{who}?", capitalized(&word)),
        Some(Choice::Rerun) => format!("Run step {step} of run {run} again{who}?"),
        Some(Choice::Happened) => {
            format!("Record that step {step} of run {run} happened, with this result{who}?")
        }
        Some(Choice::Skip) => format!("Skip step {step} of run {run}{who}?"),
        Some(Choice::Fail) => format!("Fail run {run} at step {step}{who}?"),
    })?;
    let typed = dialog.ask(&format!("Type the word {word} to confirm, or press Enter to go back."))?;
    if typed.as_deref() != Some(word.as_str()) {
        return Ok(None);
    }
    let notes = dialog.ask("Notes, or Enter for none.")?.filter(|notes| !notes.is_empty());
    let command = RunCommand::Decide {
        verdict,
        step: Some(preview.step.clone()),
        inputs_digest: Some(preview.inputs_digest.clone()),
        approver,
        notes,
        choice,
        result,
    };
    Ok(Some((word, command)))
}

/// Prompts for a line of JSON; `None` if it is not valid, or at the end of the input.
fn json<R: BufRead, W: Write>(dialog: &mut Dialog<R, W>, prompt: &str) -> Result<Option<Value>, Failure> {
    let Some(typed) = dialog.ask(prompt)? else { return Ok(None) };
    match serde_json::from_str(&typed) {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            dialog.print_line(format!("This is not valid JSON: {error}."))?;
            Ok(None)
        }
    }
}

/// Prompts for a signal; `None` if it is not to be sent.
pub fn signal<R: BufRead, W: Write>(
    dialog: &mut Dialog<R, W>,
    run: &RunRecord,
) -> Result<Option<RunCommand>, Failure> {
    let awaited = awaited_signal(run);
    let prompt = match awaited {
        Some(name) => {
            format!("Name of the signal, or Enter for {}, for which the run is waiting.", clean(name))
        }
        None => "Name of the signal. No step is waiting for one; it is buffered until a step waits for it."
            .to_owned(),
    };
    let typed = dialog.ask(&prompt)?.filter(|name| !name.is_empty());
    let Some(name) = typed.or_else(|| awaited.map(str::to_owned)) else { return Ok(None) };
    if let Some(awaited) = awaited.filter(|awaited| *awaited != name) {
        let (awaited, name) = (clean(awaited), clean(&name));
        dialog.print_line(format!(
            "The run is not waiting for the signal {name}. It is waiting for: {awaited}."
        ))?;
        return Ok(None);
    }
    let Some(payload) = json(dialog, "Payload as one line of JSON, {} for none.")? else { return Ok(None) };
    dialog.print_line(format!("Send the signal {} to run {}?", clean(&name), short(run)))?;
    Ok(Some(RunCommand::Signal { name, payload, by: None, since_ms: None }))
}

/// Prompts for the person to whom a run is assigned, and a note; `None` if nothing is to change.
pub fn assignment<R: BufRead, W: Write>(
    dialog: &mut Dialog<R, W>,
    run: &RunRecord,
) -> Result<Option<RunCommand>, Failure> {
    let assigned = run.options.assigned.as_ref().map(|assigned| assigned.to.as_str());
    let prompt = match assigned {
        Some(to) => {
            format!("Person. Now: {}. Type none to unassign it, or press Enter to go back.", clean(to))
        }
        None => "Person, or press Enter to go back.".to_owned(),
    };
    let Some(typed) = dialog.ask(&prompt)?.filter(|typed| !typed.is_empty()) else { return Ok(None) };
    let to = Some(typed).filter(|typed| assigned.is_none() || typed != "none");
    let note = match to {
        Some(_) => dialog.ask("Note for this person, or Enter for none.")?.filter(|note| !note.is_empty()),
        None => None,
    };
    let run = short(run);
    dialog.print_line(match &to {
        Some(to) => format!("Assign run {run} to {}?", clean(to)),
        None => format!("Unassign run {run}?"),
    })?;
    Ok(Some(RunCommand::Assign {
        to,
        note,
        assignee: Some(assigned.unwrap_or_default().to_owned()),
        by: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples::{NOW_MS, detail, record};
    use skills_model::RunState;
    use skills_store::Assignment;

    fn typed(text: &str) -> Dialog<&[u8], Vec<u8>> {
        Dialog { input: text.as_bytes(), output: Vec::new() }
    }

    #[test]
    fn an_unknown_outcome_is_decided_and_a_signal_sent_in_the_dialog() {
        let mut unknown = detail(RunState::WaitingForHuman);
        let preview = unknown.sheet.as_mut().unwrap();
        preview.outcome_unknown = true;
        let mut dialog = typed("happened\n{\"id\": 7}\nhappened\nchecked\n");
        let (word, command) =
            decision(&mut dialog, &unknown.run, preview, Verdict::Approve).unwrap().unwrap();
        assert_eq!(word, "happened");
        let message = String::from_utf8(dialog.output).unwrap();
        assert!(message.contains("Record that step book of run 0000abcd happened"), "{message}");
        assert!(message.contains(" as kim (from git config)?"), "{message}");
        let expected = RunCommand::Decide {
            verdict: Verdict::Approve,
            step: Some("book".to_owned()),
            inputs_digest: Some("9f".repeat(32)),
            approver: Some("kim".to_owned()),
            notes: Some("checked".to_owned()),
            choice: Some(Choice::Happened),
            result: Some(serde_json::json!({"id": 7})),
        };
        assert_eq!(command, expected);
        let mut dialog = typed("perhaps\n");
        assert_eq!(decision(&mut dialog, &unknown.run, preview, Verdict::Approve).unwrap(), None);

        let command = signal(&mut typed("\n{}\n"), &record(RunState::WaitingForSignal)).unwrap();
        let expected = RunCommand::Signal {
            name: "books-closed".to_owned(),
            payload: serde_json::json!({}),
            by: None,
            since_ms: None,
        };
        assert_eq!(command, Some(expected));
        let mut wrong = typed("{\"ok\":1\n{}\n");
        assert_eq!(signal(&mut wrong, &record(RunState::WaitingForSignal)).unwrap(), None);
        let message = String::from_utf8(wrong.output).unwrap();
        assert!(message.contains("It is waiting for: books-closed."), "{message}");
    }

    #[test]
    fn a_run_is_assigned_with_a_note_and_unassigned() {
        let mut run = record(RunState::WaitingForHuman);
        let assign = |to: Option<&str>, note: Option<&str>, before: &str| {
            let text = |text: &str| text.to_owned();
            let (to, note, assignee) = (to.map(text), note.map(text), Some(text(before)));
            Some(RunCommand::Assign { to, note, assignee, by: None })
        };
        let command = assignment(&mut typed("lena\nlook at the registry\n"), &run).unwrap();
        assert_eq!(command, assign(Some("lena"), Some("look at the registry"), ""));
        assert_eq!(assignment(&mut typed("\n"), &run).unwrap(), None);
        let (to, by) = ("lena".to_owned(), "ana".to_owned());
        run.options.assigned = Some(Assignment { to, by, note: None, at_ms: NOW_MS });
        assert_eq!(assignment(&mut typed("none\n"), &run).unwrap(), assign(None, None, "lena"));
    }
}
