//! Linear dialog for operators: labeled lines, numbered lists, prompts that name every answer. For screen readers and
//! terminals without cursor movement: ASCII only, no cursor movement, confirmation by a typed word.

use std::fmt::Write as _;
use std::io::{BufRead, Write};

use serde_json::Value;

use super::clock;
use crate::Context;
use crate::dialog::{Dialog, clean};
use crate::failure::{Done, Failure};
use skills_api::{
    Board, BoardFailures, BoardRun, DecisionSheet, Error, Needs, RunClient, RunCommand, RunDetail, StepState,
    WorkerView,
};
use skills_model::{Choice, CommandName, Gate, RunState, Verdict};
use skills_store::{RunFilter, RunPage, RunRecord};

/// Maximum number of runs in a list.
const MAX_LISTED: usize = 50;
/// Maximum number of characters of an input's value.
const MAX_VALUE: usize = 200;

/// Views that `v` cycles through: a name, its text when it is empty, and its filter.
const VIEWS: [(&str, &str); 4] = [
    ("waiting for approval, nearest deadline first", "state:waiting_for_human"),
    ("failed, newest first", "state:failed"),
    ("open, newest first", "state:open"),
    ("all, newest first", ""),
];

/// What to do after a run was shown.
#[derive(Debug, PartialEq, Eq)]
enum After {
    Back,
    Quit,
}

/// Runs the dialog on standard input and output.
pub async fn run(cx: &mut Context) -> Result<Done, Failure> {
    let client = cx.reach(Needs::Catalogue).await?;
    let mut dialog = Dialog::of_terminal();
    dialog.list(&*client).await
}

fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    let (count, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

fn deadline(expires_ms: Option<i64>, now_ms: i64) -> String {
    match expires_ms {
        Some(at) if at > now_ms => format!("Expires in {}", span(at - now_ms)),
        Some(_) => "Expired".to_owned(),
        None => "No deadline".to_owned(),
    }
}

fn short(run: &RunRecord) -> String {
    super::status::short(&run.id.0).to_owned()
}

/// Returns the lines that a dialog prints.
fn rendered(
    show: impl FnOnce(&mut Dialog<std::io::Empty, Vec<u8>>) -> Result<(), Failure>,
) -> Result<String, Failure> {
    let mut dialog = Dialog { input: std::io::empty(), output: Vec::new() };
    show(&mut dialog)?;
    Ok(String::from_utf8_lossy(&dialog.output).into_owned())
}

/// Renders the details of a run.
pub fn page(detail: &RunDetail) -> Result<String, Failure> {
    rendered(|dialog| dialog.show_run(detail))
}

/// Renders what is to be decided.
pub fn sheet(sheet: &DecisionSheet) -> Result<String, Failure> {
    rendered(|dialog| dialog.show_sheet(sheet))
}

/// Renders the board.
pub fn board(board: &Board, hours: u32) -> String {
    let mut out = String::new();
    let count = |states: &[RunState]| states.iter().filter_map(|state| board.counts.get(state)).sum::<u64>();
    let _ = writeln!(
        out,
        "Board. {} waiting for approval, {} running, {} waiting for a signal, {} pending. Last {hours} hours: {} \
         failed, {} completed.",
        count(&[RunState::WaitingForHuman]),
        count(&[RunState::Running, RunState::Replaying]),
        count(&[RunState::WaitingForSignal]),
        count(&[RunState::Pending]),
        board.failed.iter().map(|reason| reason.runs).sum::<u64>(),
        board.completed.iter().map(|runs| u64::from(*runs)).sum::<u64>(),
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
    let run = |run: &BoardRun, last: String| {
        let step = run.step.as_deref().map(|step| format!(", step {}", clean(step))).unwrap_or_default();
        format!("{}. Run {}{step}. {last}.", clean(&run.title), super::status::short(&run.run.0))
    };
    let waits = |one: &BoardRun| {
        let mut parts = vec![deadline(one.expires_ms, now_ms)];
        parts.extend(one.outcome_unknown.then(|| "Outcome unknown".to_owned()));
        parts.extend(one.approvals.as_ref().map(|approvals| capitalized(approvals)));
        parts.extend(one.assigned.as_ref().map(|to| format!("Assigned to {}", clean(to))));
        run(one, parts.join(". "))
    };
    group("Waiting for approval, nearest deadline first", board.waiting.iter().map(waits).collect());
    let runs = |one: &BoardRun| {
        let last = match &one.signal {
            Some(signal) => format!("Waits for the signal {}", clean(signal)),
            None => format!("{}, for {}", capitalized(one.state.label()), span(now_ms - one.since_ms)),
        };
        run(one, last)
    };
    group("Running or waiting for a signal", board.running.iter().map(runs).collect());
    let reason = |reason: &BoardFailures| {
        let ago = span(now_ms - reason.last_ms);
        format!("{}. Runs: {}. Last: {ago} ago.", clean(&reason.reason), reason.runs)
    };
    group("Failed, by reason", board.failed.iter().map(reason).collect());
    let worker = |worker: &WorkerView| {
        let slots = worker.slots.map(|slots| format!(" of {slots}")).unwrap_or_default();
        let seen = match worker.seen_ms {
            Some(seen) => format!("Heartbeat: {} ago", span(now_ms - seen)),
            None => "No heartbeat".to_owned(),
        };
        format!(
            "{}. State: {}. Runs: {}{slots}. {seen}.",
            clean(&worker.name),
            worker.state,
            worker.runs.len()
        )
    };
    group("Workers", board.workers.iter().map(worker).collect());
    out
}

/// Renders a run of a list, without its number.
pub fn item(run: &RunRecord, now_ms: i64) -> String {
    let (done, all) = run.progress;
    let step = run.step.as_deref().filter(|_| !run.state.is_terminal());
    let step = step.map(|step| format!(", step {} of {all} {}", (done + 1).min(all), clean(step)));
    let last = match run.state {
        RunState::WaitingForHuman | RunState::WaitingForSignal => deadline(run.expires_ms, now_ms),
        RunState::Failed => format!("Failed: {}", clean(&run.failure().unwrap_or_default())),
        state => format!("State: {}", state.label()),
    };
    let approvals = run.approval_progress().map(|progress| format!(" {}.", capitalized(&progress)));
    let unknown = if run.is_outcome_unknown() { " Outcome unknown." } else { "" };
    let signal = awaited_signal(run).map(|name| format!(" Waits for the signal {}.", clean(name)));
    let labels = labels(run).map(|labels| format!(" {labels}"));
    format!(
        "{}. Run {}, skill {}{}.{unknown}{} {last}.{}{}",
        clean(run.title_or_skill()),
        short(run),
        clean(&run.skill_id),
        step.unwrap_or_default(),
        signal.unwrap_or_default(),
        approvals.unwrap_or_default(),
        labels.unwrap_or_default(),
    )
}

fn labels(run: &RunRecord) -> Option<String> {
    Some(run.labels())
        .filter(|labels| !labels.is_empty())
        .map(|labels| format!("Labels: {}.", clean(&labels)))
}

/// Returns the name of the signal that a run waits for.
fn awaited_signal(run: &RunRecord) -> Option<&str> {
    match &run.gate {
        Some(Gate::Signal { name, .. }) if run.state == RunState::WaitingForSignal => Some(name),
        _ => None,
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

impl<R: BufRead, W: Write> Dialog<R, W> {
    async fn list(&mut self, client: &dyn RunClient) -> Result<Done, Failure> {
        let mut view = 0;
        let mut own: Option<String> = None;
        loop {
            let filter = own.clone().unwrap_or_else(|| VIEWS[view].1.to_owned());
            let page = match client
                .runs(RunFilter { r#where: Some(filter), limit: MAX_LISTED, ..RunFilter::default() })
                .await
            {
                Ok(page) => page,
                Err(error) if own.is_some() => {
                    self.say(format!("Error: {}.", clean(&error.message)))?;
                    own = None;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let name =
                own.as_ref().map_or(VIEWS[view].0.to_owned(), |filter| format!("filter {}", clean(filter)));
            let runs = self.show_list(&page, &name)?;
            let range = match runs.len() {
                0 => String::new(),
                1 => "1, ".to_owned(),
                count => format!("1 to {count}, "),
            };
            let has_failed = runs.iter().any(|run| run.state == RunState::Failed);
            let resume = if has_failed { "r resume all listed failed runs, " } else { "" };
            let prompt = format!("Choose {range}v view, f filter, {resume}h help, q quit.");
            let Some(answer) = self.ask(&prompt)? else { return Ok(Done::Fine) };
            match answer.as_str() {
                "q" => return Ok(Done::Fine),
                "v" => (view, own) = ((view + 1) % VIEWS.len(), None),
                "f" => {
                    let typed = self
                        .ask("Filter, for example state:failed skill:deploy* age:>1h, or Enter for none.")?;
                    own = typed.filter(|typed| !typed.is_empty());
                }
                "r" => self.resume_all(client, &runs).await?,
                "h" => self.help()?,
                "" => {}
                number => match number.parse::<usize>().ok().and_then(|n| runs.get(n.checked_sub(1)?)) {
                    Some(run) => {
                        let id = run.id.0.clone();
                        if self.one(client, &id).await? == After::Quit {
                            return Ok(Done::Fine);
                        }
                    }
                    None => self.say(format!("Unknown command: {}. h: help.", clean(number)))?,
                },
            }
        }
    }

    fn show_list(&mut self, page: &RunPage, view: &str) -> Result<Vec<RunRecord>, Failure> {
        let count = |state: RunState| page.counts.get(&state).copied().unwrap_or(0);
        let all: u64 = page.counts.values().sum();
        self.say("")?;
        self.say(format!(
            "Runs. {all} in total: {} waiting for approval, {} running, {} failed.",
            count(RunState::WaitingForHuman),
            count(RunState::Running) + count(RunState::Replaying),
            count(RunState::Failed),
        ))?;
        self.say(format!("View: {view}."))?;
        let mut runs = page.runs.clone();
        // The list has waiting runs in the order in which they started to wait.
        runs.sort_by_key(|run| match run.state {
            RunState::WaitingForHuman => (0, run.expires_ms.unwrap_or(i64::MAX)),
            _ => (1, 0),
        });
        self.say("")?;
        if runs.is_empty() {
            self.say("No runs.")?;
        }
        let now_ms = clock::now_ms();
        for (number, run) in (1..).zip(&runs) {
            self.say(format!("{number}. {}", item(run, now_ms)))?;
        }
        if page.next.is_some() {
            self.say(format!("More runs match; the first {MAX_LISTED} are listed."))?;
        }
        self.say("")?;
        Ok(runs)
    }

    fn help(&mut self) -> Result<(), Failure> {
        for line in [
            "Help. Type an answer and press Enter. Enter alone never decides anything.",
            "NUMBER: open a run of the list. v: next view. f: filter the list.",
            "r: resume all failed runs of the list, after you type a word to confirm.",
            "In a run: a: approve. d: deny. s: send a signal. r: resume. c: cancel. b: back to the list.",
            "If the outcome of a step is unknown, a asks what to do: rerun, happened, skip or fail.",
        ] {
            self.say(line)?;
        }
        Ok(())
    }

    async fn one(&mut self, client: &dyn RunClient, id: &str) -> Result<After, Failure> {
        loop {
            let detail = client.run(id).await?;
            self.show_run(&detail)?;
            let mut answers: Vec<&str> = Vec::new();
            if let Some(sheet) = &detail.sheet {
                let approve =
                    if sheet.outcome_unknown { "a rerun, happened, skip or fail" } else { "a approve" };
                answers.extend(["i inputs in full", approve, "d deny"]);
            }
            let takes = |command| detail.run.allowed.contains(&command);
            if takes(CommandName::Signal) {
                answers.push("s send a signal");
            }
            if takes(CommandName::Resume) {
                answers.push("r resume");
            }
            if takes(CommandName::Cancel) {
                answers.push("c cancel");
            }
            answers.extend(["h help", "b back", "q quit"]);
            let Some(answer) = self.ask(&format!("Choose {}.", answers.join(", ")))? else {
                return Ok(After::Quit);
            };
            let known = answers.iter().any(|known| known.split(' ').next() == Some(answer.as_str()));
            match (answer.as_str(), &detail.sheet) {
                ("b", _) => return Ok(After::Back),
                ("q", _) => return Ok(After::Quit),
                ("h", _) => self.help()?,
                ("s", _) if known => match self.signal(&detail.run)? {
                    Some(order) => self.confirm(client, &detail.run, "signal", order).await?,
                    None => self.say("Nothing was sent.")?,
                },
                ("i", Some(sheet)) => self.show_inputs(&sheet.inputs, usize::MAX)?,
                ("a", Some(sheet)) => self.decide(client, &detail.run, sheet, Verdict::Approve).await?,
                ("d", Some(sheet)) => self.decide(client, &detail.run, sheet, Verdict::Deny).await?,
                ("r", _) if known => {
                    let order = RunCommand::Resume {
                        checkpoint: None,
                        inputs: None,
                        despite_change: false,
                        by: None,
                    };
                    self.confirm(client, &detail.run, "resume", order).await?;
                }
                ("c", _) if known => {
                    self.confirm(client, &detail.run, "cancel", RunCommand::Cancel { by: None }).await?;
                }
                ("", _) => {}
                (other, _) => self.say(format!("Unknown command: {}.", clean(other)))?,
            }
        }
    }

    fn show_run(&mut self, detail: &RunDetail) -> Result<(), Failure> {
        let (run, now_ms) = (&detail.run, clock::now_ms());
        self.say("")?;
        self.say(format!("Run {}: {}.", short(run), clean(run.title_or_skill())))?;
        let wait = match run.state {
            RunState::WaitingForHuman | RunState::WaitingForSignal => {
                format!(" {}.", deadline(run.expires_ms, now_ms))
            }
            _ => String::new(),
        };
        self.say(format!("State: {}, for {}.{wait}", run.state.label(), span(now_ms - run.since_ms)))?;
        self.say(format!(
            "Started by: {}, {} ago. Trace: {}.",
            clean(&run.started_by),
            span(now_ms - run.created_ms),
            clean(&run.trace_id)
        ))?;
        if let Some(labels) = labels(run) {
            self.say(labels)?;
        }
        if let Some(name) = awaited_signal(run) {
            self.say(format!("Waits for the signal: {}.", clean(name)))?;
        }
        if let Some(assigned) = &run.options.assigned {
            let note =
                assigned.note.as_ref().map(|note| format!(" Note: {}.", clean(note))).unwrap_or_default();
            self.say(format!("Assigned to: {}, by {}.{note}", clean(&assigned.to), clean(&assigned.by)))?;
        }
        let named = |state: StepState| -> Vec<String> {
            detail
                .steps
                .iter()
                .filter(|step| step.depth == 0 && step.state == state)
                .map(|step| clean(&step.step))
                .collect()
        };
        let mut parts =
            vec![format!("Steps: {}.", detail.steps.iter().filter(|step| step.depth == 0).count())];
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
            let steps = named(state);
            if !steps.is_empty() {
                parts.push(format!("{label}: {}.", steps.join(", ")));
            }
        }
        self.say(parts.join(" "))?;
        if let Some(error) = &run.error {
            self.say(format!("Error: {}.", clean(&super::status::message(error))))?;
        }
        if let Some(outputs) = run.outputs.as_ref().filter(|outputs| !outputs.is_null()) {
            self.say("Outputs:")?;
            self.show_inputs(outputs, MAX_VALUE)?;
        }
        if let Some(sheet) = &detail.sheet {
            self.show_sheet(sheet)?;
        }
        self.say("")
    }

    fn show_sheet(&mut self, sheet: &DecisionSheet) -> Result<(), Failure> {
        self.say("")?;
        self.say(format!("Approval: {}, step {}.", clean(&sheet.headline), clean(&sheet.step)))?;
        if sheet.outcome_unknown {
            self.say("Outcome unknown.")?;
        }
        for warning in [&sheet.irreversible, &sheet.changed, &sheet.blocked].into_iter().flatten() {
            self.say(format!("Warning: {}.", clean(warning.trim_end_matches('.'))))?;
        }
        let capability = format!("{}, {}", sheet.capability, sheet.capability_note);
        for (label, value) in [
            ("Capability", capability.trim_matches(|c| c == ',' || c == ' ')),
            ("Binding", &sheet.binding),
            ("Sandbox", &sheet.isolation),
            ("Reason", &sheet.why),
        ] {
            if !value.is_empty() {
                self.say(format!("{label}: {}.", clean(value)))?;
            }
        }
        if sheet.inputs.is_null() {
            return self.say(format!("Inputs: {}.", DecisionSheet::CHANGED));
        }
        let count = sheet.inputs.as_object().map_or(0, serde_json::Map::len);
        self.say(format!(
            "Inputs: {count}. Digest: sha256 {}. Exactly these inputs are used.",
            clean(&sheet.inputs_digest)
        ))?;
        self.show_inputs(&sheet.inputs, MAX_VALUE)
    }

    fn show_inputs(&mut self, inputs: &Value, max: usize) -> Result<(), Failure> {
        for (name, value) in inputs.as_object().into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let all = text.chars().count();
            let line: String = text.chars().take(max).collect();
            let cut = if all > max { format!("... {all} characters, i shows them") } else { String::new() };
            self.say(format!("  {}: {}{cut}", clean(name), clean(&line)))?;
        }
        Ok(())
    }

    async fn decide(
        &mut self,
        client: &dyn RunClient,
        run: &RunRecord,
        sheet: &DecisionSheet,
        verdict: Verdict,
    ) -> Result<(), Failure> {
        match self.decision(run, sheet, verdict)? {
            Some((word, order)) => self.send(client, run, &word, order).await,
            None => self.say("Nothing was sent."),
        }
    }

    /// Prompts for a decision; `None` if it is not confirmed.
    fn decision(
        &mut self,
        run: &RunRecord,
        sheet: &DecisionSheet,
        verdict: Verdict,
    ) -> Result<Option<(String, RunCommand)>, Failure> {
        let (mut choice, mut result) = (None, None);
        if sheet.outcome_unknown && verdict == Verdict::Approve {
            let typed = self.ask(
                "The outcome of this step is unknown. Type rerun to run it again, happened to state its result, \
                 skip to continue without it, fail to fail the run, or press Enter to go back.",
            )?;
            let Some(Ok(chosen)) = typed.map(|typed| typed.parse::<Choice>()) else { return Ok(None) };
            choice = Some(chosen);
            if chosen == Choice::Happened {
                let fields: Vec<String> = sheet
                    .outputs
                    .iter()
                    .map(|(name, field)| format!("{}: {}", clean(name), field.kind))
                    .collect();
                let fields = if fields.is_empty() { "any fields".to_owned() } else { fields.join(", ") };
                result = self.ask_json(&format!("Result as one line of JSON, {fields}."))?;
                if result.is_none() {
                    return Ok(None);
                }
            }
        }
        let approver = sheet.approver.as_ref().map(|(name, _)| name.clone());
        let who = sheet.approver.as_ref().map_or_else(String::new, |(name, origin)| {
            format!(" as {} (from {})", clean(name), clean(origin))
        });
        let word = choice.map_or_else(|| verdict.to_string(), |choice: Choice| choice.to_string());
        let run = short(run);
        self.say(format!("{} step {} of run {run}{who}?", capitalized(&word), clean(&sheet.step)))?;
        let typed = self.ask(&format!("Type the word {word} to send it, or press Enter to go back."))?;
        if typed.as_deref() != Some(word.as_str()) {
            return Ok(None);
        }
        let notes = self.ask("Notes, or Enter for none.")?.filter(|notes| !notes.is_empty());
        let order = RunCommand::Decide {
            verdict,
            step: Some(sheet.step.clone()),
            inputs_digest: Some(sheet.inputs_digest.clone()),
            approver,
            notes,
            choice,
            result,
        };
        Ok(Some((word, order)))
    }

    /// Prompts for a line of JSON; `None` if it is not valid, or at the end of the input.
    fn ask_json(&mut self, prompt: &str) -> Result<Option<Value>, Failure> {
        let Some(typed) = self.ask(prompt)? else { return Ok(None) };
        match serde_json::from_str(&typed) {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                self.say(format!("This is not valid JSON: {error}."))?;
                Ok(None)
            }
        }
    }

    /// Prompts for a signal; `None` if it is not to be sent.
    fn signal(&mut self, run: &RunRecord) -> Result<Option<RunCommand>, Failure> {
        let awaited = awaited_signal(run);
        let prompt = match awaited {
            Some(name) => format!("Name of the signal, or Enter for {}.", clean(name)),
            None => "Name of the signal. No step waits for one now; it is kept for a later step.".to_owned(),
        };
        let typed = self.ask(&prompt)?.filter(|name| !name.is_empty());
        let Some(name) = typed.or_else(|| awaited.map(str::to_owned)) else { return Ok(None) };
        let Some(payload) = self.ask_json("Payload as one line of JSON, {} for none.")? else {
            return Ok(None);
        };
        self.say(format!("Send the signal {} to run {}?", clean(&name), short(run)))?;
        Ok(Some(RunCommand::Signal { name, payload, by: None }))
    }

    async fn confirm(
        &mut self,
        client: &dyn RunClient,
        run: &RunRecord,
        word: &str,
        order: RunCommand,
    ) -> Result<(), Failure> {
        let typed = self.ask(&format!("Type the word {word} to send it, or press Enter to go back."))?;
        if typed.as_deref() != Some(word) {
            return self.say("Nothing was sent.");
        }
        self.send(client, run, word, order).await
    }

    async fn send(
        &mut self,
        client: &dyn RunClient,
        run: &RunRecord,
        word: &str,
        order: RunCommand,
    ) -> Result<(), Failure> {
        self.say("")?;
        match client.order(&run.id.0, order).await {
            Ok(ordered) => {
                self.say(format!("Sent: {word}, run {}.", short(run)))?;
                self.say(format!(
                    "Result: {}. Run {} is {}.",
                    clean(&ordered.note),
                    short(&ordered.run),
                    ordered.run.state.label()
                ))
            }
            Err(error) => self.refused(&error),
        }
    }

    fn refused(&mut self, error: &Error) -> Result<(), Failure> {
        self.say(format!("Not sent: {}.", clean(error.message.trim_end_matches('.'))))
    }

    async fn resume_all(&mut self, client: &dyn RunClient, runs: &[RunRecord]) -> Result<(), Failure> {
        let mut chosen: Vec<&RunRecord> = runs.iter().filter(|run| run.state == RunState::Failed).collect();
        if chosen.is_empty() {
            return self.say("No failed runs are listed.");
        }
        let now_ms = clock::now_ms();
        loop {
            self.say("")?;
            self.say(format!("Resume {} runs.", chosen.len()))?;
            for (number, run) in (1..).zip(&chosen) {
                self.say(format!("{number}. {}", item(run, now_ms)))?;
            }
            let word = format!("resume {}", chosen.len());
            let prompt =
                format!("Type {word} to send them, a number to exclude one, or press Enter to go back.");
            let Some(answer) = self.ask(&prompt)? else { return Ok(()) };
            if answer == word {
                break;
            }
            match answer.parse::<usize>() {
                Ok(number) if (1..=chosen.len()).contains(&number) && chosen.len() > 1 => {
                    chosen.remove(number - 1);
                }
                _ => return self.say("Nothing was sent."),
            }
        }
        let (mut resumed, mut failed) = (0, 0);
        for (number, run) in (1..).zip(chosen) {
            let order =
                RunCommand::Resume { checkpoint: None, inputs: None, despite_change: false, by: None };
            let line = match client.order(&run.id.0, order).await {
                Ok(ordered) => {
                    resumed += 1;
                    capitalized(&clean(&ordered.note))
                }
                Err(error) => {
                    failed += 1;
                    format!("Skipped: {}", clean(error.message.trim_end_matches('.')))
                }
            };
            self.say(format!("{number}. {}. {line}.", clean(run.title_or_skill())))?;
        }
        self.say(format!("Summary: {resumed} resumed, {failed} skipped."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples::{NOW_MS, detail, record};

    #[test]
    fn a_run_is_one_labeled_line_without_glyphs() {
        let mut run = record(RunState::WaitingForHuman);
        run.options.title = Some("Send 214 invoices to ana…".to_owned());
        run.expires_ms = Some(NOW_MS + 300_000);
        assert_eq!(
            item(&run, NOW_MS),
            "Send 214 invoices to ana.... Run 0000abcd, skill invoice-intake, step 4 of 4 book. Expires in 5 minutes."
        );
        let failed = record(RunState::Failed);
        assert!(
            item(&failed, NOW_MS).ends_with("Failed: the service answered 502."),
            "{}",
            item(&failed, NOW_MS)
        );
    }

    #[test]
    fn a_line_says_an_unknown_outcome_the_signal_and_the_labels() {
        let mut run = record(RunState::WaitingForHuman);
        run.gate = Some(Gate::human("book", "9f".repeat(32), skills_model::ApprovalReason::UnknownOutcome));
        run.options.labels = [("env".to_owned(), "prod".to_owned())].into();
        assert_eq!(
            item(&run, NOW_MS),
            "invoice-intake. Run 0000abcd, skill invoice-intake, step 4 of 4 book. Outcome unknown. No deadline. \
             Labels: env=prod."
        );
        let waits = item(&record(RunState::WaitingForSignal), NOW_MS);
        assert!(waits.contains("book. Waits for the signal books-closed. No deadline."), "{waits}");
    }

    #[test]
    fn an_unknown_outcome_is_decided_and_a_signal_sent_in_the_dialog() {
        let mut unknown = detail(RunState::WaitingForHuman);
        let sheet = unknown.sheet.as_mut().unwrap();
        sheet.outcome_unknown = true;
        let typed = "happened\n{\"id\": 7}\nhappened\nchecked\n";
        let mut dialog = Dialog { input: typed.as_bytes(), output: Vec::new() };
        let (word, order) = dialog.decision(&unknown.run, sheet, Verdict::Approve).unwrap().unwrap();
        assert_eq!(word, "happened");
        let expected = RunCommand::Decide {
            verdict: Verdict::Approve,
            step: Some("book".to_owned()),
            inputs_digest: Some("9f".repeat(32)),
            approver: Some("kim".to_owned()),
            notes: Some("checked".to_owned()),
            choice: Some(Choice::Happened),
            result: Some(serde_json::json!({"id": 7})),
        };
        assert_eq!(order, expected);
        let mut dialog = Dialog { input: "perhaps\n".as_bytes(), output: Vec::new() };
        assert_eq!(dialog.decision(&unknown.run, sheet, Verdict::Approve).unwrap(), None);

        let mut dialog = Dialog { input: "\n{}\n".as_bytes(), output: Vec::new() };
        let order = dialog.signal(&record(RunState::WaitingForSignal)).unwrap();
        let expected =
            RunCommand::Signal { name: "books-closed".to_owned(), payload: serde_json::json!({}), by: None };
        assert_eq!(order, Some(expected));
    }

    #[test]
    fn times_are_said_in_words() {
        assert_eq!(
            (span(1_000), span(61_000), span(7_200_000)),
            ("1 second".into(), "1 minute".into(), "2 hours".into())
        );
        assert_eq!(deadline(None, 0), "No deadline");
        assert_eq!(deadline(Some(5), 5), "Expired");
    }
}
