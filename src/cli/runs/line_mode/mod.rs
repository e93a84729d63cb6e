//! Linear dialog for operators: labeled lines, numbered lists, prompts that name every answer. For screen readers and
//! terminals without cursor movement: ASCII only, no cursor movement, confirmation by a typed word.

mod prompts;
pub mod text;

use std::io::{BufRead, Write};

use self::text::{capitalized, item, short};
use super::clock;
use crate::Context;
use crate::context::FullClient;
use crate::dialog::{Dialog, clean};
use crate::failure::{Done, Failure};
use skills_api::{CoreParts, DecisionPreview, LogRequest, RunCommand, RunDetail};
use skills_model::{CommandName, RunState, Verdict};
use skills_store::{RunFilter, RunPage, RunRecord};

/// Maximum number of runs in a list.
const MAX_LISTED: usize = 50;
/// Lines of output per page.
const MAX_LINES: usize = 200;

/// Views that `v` cycles through: a name, and its filter.
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
    /// Shows another run.
    Next(String),
    Quit,
}

/// A dialog about the runs of a core.
struct RunsDialog<'a, R, W> {
    dialog: Dialog<R, W>,
    core: &'a dyn FullClient,
}

/// Runs the dialog on standard input and output.
pub async fn run(cx: &mut Context) -> Result<Done, Failure> {
    let core = cx.reach(CoreParts::Catalog).await?;
    RunsDialog { dialog: Dialog::of_terminal(), core: &*core }.list().await
}

/// Returns the runs of a page, runs that wait for approval by deadline. The page has them in the order in which they
/// started to wait.
fn by_deadline(page: &RunPage) -> Vec<RunRecord> {
    let mut runs = page.runs.clone();
    runs.sort_by_key(|run| match run.state {
        RunState::WaitingForHuman => (0, run.expires_ms.unwrap_or(i64::MAX)),
        _ => (1, 0),
    });
    runs
}

impl<R: BufRead, W: Write> RunsDialog<'_, R, W> {
    fn say(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        self.dialog.say(line)
    }

    async fn page(&self, filter: &str) -> Result<RunPage, skills_api::Error> {
        let filter =
            RunFilter { r#where: Some(filter.to_owned()), limit: MAX_LISTED, ..RunFilter::default() };
        self.core.runs(filter).await
    }

    async fn list(&mut self) -> Result<Done, Failure> {
        let mut view = 0;
        let mut own: Option<String> = None;
        loop {
            let filter = own.clone().unwrap_or_else(|| VIEWS[view].1.to_owned());
            let page = match self.page(&filter).await {
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
            let Some(answer) = self.dialog.ask(&prompt)? else { return Ok(Done::Fine) };
            match answer.as_str() {
                "q" => return Ok(Done::Fine),
                "v" => (view, own) = ((view + 1) % VIEWS.len(), None),
                "f" => {
                    let typed = self
                        .dialog
                        .ask("Filter, for example state:failed skill:deploy* age:>1h, or Enter for none.")?;
                    own = typed.filter(|typed| !typed.is_empty());
                }
                "r" => self.resume_all(&runs).await?,
                "h" => self.help()?,
                "" => {}
                number => match number.parse::<usize>().ok().and_then(|n| runs.get(n.checked_sub(1)?)) {
                    Some(run) => {
                        let mut id = run.id.0.clone();
                        loop {
                            match self.one(&id).await? {
                                After::Quit => return Ok(Done::Fine),
                                After::Next(next) => id = next,
                                After::Back => break,
                            }
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
        let runs = by_deadline(page);
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
            "i: inputs in full. o: output of a step. t: assign the run to a person, with a note.",
            "n, after a decision: the next run that waits for approval.",
            "If the outcome of a step is unknown, a asks what to do: rerun, happened, skip or fail.",
        ] {
            self.say(line)?;
        }
        Ok(())
    }

    async fn one(&mut self, id: &str) -> Result<After, Failure> {
        loop {
            let detail = self.core.run(id).await?;
            let run = &detail.run;
            self.say(text::page(&detail, clock::now_ms()).trim_end_matches('\n'))?;
            self.say("")?;
            let answers = answers(&detail);
            let Some(answer) = self.dialog.ask(&format!("Choose {}.", answers.join(", ")))? else {
                return Ok(After::Quit);
            };
            let known = answers.iter().any(|known| known.split(' ').next() == Some(answer.as_str()));
            let sheet = detail.sheet.as_ref();
            match (answer.as_str(), sheet) {
                ("", _) => {}
                (other, _) if !known => self.say(format!("Unknown command: {}.", clean(other)))?,
                ("b", _) => return Ok(After::Back),
                ("q", _) => return Ok(After::Quit),
                ("h", _) => self.help()?,
                ("i", Some(sheet)) => self.say(text::values(&sheet.inputs, None).trim_end())?,
                ("o", _) => self.output(&detail).await?,
                ("a" | "d", Some(sheet)) => {
                    let verdict = if answer == "a" { Verdict::Approve } else { Verdict::Deny };
                    if self.decide(run, sheet, verdict).await?
                        && let Some(after) = self.after_decision(id).await?
                    {
                        return Ok(after);
                    }
                }
                ("s", _) => match prompts::signal(&mut self.dialog, run)? {
                    Some(order) => self.confirm(run, "signal", order).await?,
                    None => self.say("Nothing was sent.")?,
                },
                ("t", _) => match prompts::assignment(&mut self.dialog, run)? {
                    Some(order) => self.confirm(run, "assign", order).await?,
                    None => self.say("Nothing was sent.")?,
                },
                ("r", _) => {
                    let order = RunCommand::Resume {
                        checkpoint: None,
                        inputs: None,
                        despite_change: false,
                        by: None,
                    };
                    self.confirm(run, "resume", order).await?;
                }
                _ => self.confirm(run, "cancel", RunCommand::Cancel { by: None }).await?,
            }
        }
    }

    /// Prints what the steps of a run, or one of them, printed so far.
    async fn output(&mut self, detail: &RunDetail) -> Result<(), Failure> {
        let names: Vec<String> = detail.steps.iter().map(|step| clean(&step.step)).collect();
        let prompt = format!("Step, or Enter for all: {}.", names.join(", "));
        let Some(typed) = self.dialog.ask(&prompt)? else { return Ok(()) };
        let step = Some(typed).filter(|step| !step.is_empty());
        if step.as_ref().is_some_and(|step| !names.contains(step)) {
            return self.say("The run has no such step.");
        }
        let run = detail.run.id.0.clone();
        let mut request = LogRequest { run, step, text: None, after: 0, limit: MAX_LINES, wait_ms: 0 };
        let mut lines = 0;
        loop {
            let page = match self.core.run_log(request.clone()).await {
                Ok(page) => page,
                Err(error) => return self.say(format!("Error: {}.", clean(&error.message))),
            };
            if lines == 0 {
                let of = request.step.as_ref().map_or("all steps".to_owned(), |step| format!("step {step}"));
                self.say(format!("Output of {of}:"))?;
            }
            lines += page.lines.len();
            for line in &page.lines {
                let step = if request.step.is_none() { clean(&line.step) + ": " } else { String::new() };
                let error = if line.stream == "stderr" { "error output: " } else { "" };
                self.say(format!("  {step}{error}{}", clean(&line.text)))?;
            }
            if page.lines.len() < MAX_LINES {
                let end = if page.open { "The run may print more." } else { "End of the output." };
                return self.say(if lines == 0 && !page.open { "No output." } else { end });
            }
            let answer = self.dialog.ask("Type m for more, or press Enter to go back.")?;
            if answer.as_deref() != Some("m") {
                return Ok(());
            }
            request.after = page.next;
        }
    }

    /// Prompts for a decision and sends it; returns whether it was accepted.
    async fn decide(
        &mut self,
        run: &RunRecord,
        sheet: &DecisionPreview,
        verdict: Verdict,
    ) -> Result<bool, Failure> {
        match prompts::decision(&mut self.dialog, run, sheet, verdict)? {
            Some((word, order)) => self.send(run, &word, order).await,
            None => self.say("Nothing was sent.").map(|()| false),
        }
    }

    /// Names the next run that waits for approval, and asks what to do; `None` shows the decided run again.
    async fn after_decision(&mut self, decided: &str) -> Result<Option<After>, Failure> {
        let page = self.page(VIEWS[0].1).await?;
        let next = by_deadline(&page).into_iter().find(|run| run.id.0 != decided);
        self.say("")?;
        let next_answer = if let Some(run) = &next {
            self.say(format!("Next waiting: {}", item(run, clock::now_ms())))?;
            "n next, "
        } else {
            self.say("No other run waits for approval.")?;
            ""
        };
        self.say("")?;
        let prompt = format!("Choose {next_answer}l list, q quit, or press Enter for this run.");
        let answer = self.dialog.ask(&prompt)?;
        Ok(match (answer.as_deref(), next) {
            (None | Some("q"), _) => Some(After::Quit),
            (Some("n"), Some(run)) => Some(After::Next(run.id.0)),
            (Some("l"), _) => Some(After::Back),
            _ => None,
        })
    }

    async fn confirm(&mut self, run: &RunRecord, word: &str, order: RunCommand) -> Result<(), Failure> {
        let prompt = format!("Type the word {word} to send it, or press Enter to go back.");
        if self.dialog.ask(&prompt)?.as_deref() != Some(word) {
            return self.say("Nothing was sent.");
        }
        self.send(run, word, order).await.map(|_| ())
    }

    /// Sends a command; returns whether it was accepted.
    async fn send(&mut self, run: &RunRecord, word: &str, order: RunCommand) -> Result<bool, Failure> {
        self.say("")?;
        match self.core.order(&run.id.0, order).await {
            Ok(ordered) => {
                self.say(format!("Sent: {word}, run {}.", short(run)))?;
                let (note, state) = (clean(&ordered.note), ordered.run.state.label());
                self.say(format!("Result: {note}. Run {} is {state}.", short(&ordered.run)))?;
                Ok(true)
            }
            Err(error) => {
                self.say(format!("Not sent: {}.", clean(error.message.trim_end_matches('.'))))?;
                Ok(false)
            }
        }
    }

    async fn resume_all(&mut self, runs: &[RunRecord]) -> Result<(), Failure> {
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
            let Some(answer) = self.dialog.ask(&prompt)? else { return Ok(()) };
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
            let line = match self.core.order(&run.id.0, order).await {
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

/// Returns what a user can do with a run: the answer, and what it does.
fn answers(detail: &RunDetail) -> Vec<&'static str> {
    let takes = |command| detail.run.allowed.contains(&command);
    let mut answers: Vec<&str> = Vec::new();
    if let Some(sheet) = &detail.sheet {
        answers.push("i inputs in full");
        answers.extend(sheet.blocked.is_none().then_some(if sheet.outcome_unknown {
            "a rerun, happened, skip or fail"
        } else {
            "a approve"
        }));
        answers.push("d deny");
    }
    answers.push("o output");
    answers.extend(takes(CommandName::Signal).then_some("s send a signal"));
    answers.extend(takes(CommandName::Resume).then_some("r resume"));
    answers.extend(takes(CommandName::Cancel).then_some("c cancel"));
    answers.extend((!detail.run.state.is_terminal()).then_some("t assign to a person"));
    answers.extend(["h help", "b back", "q quit"]);
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples::detail;

    #[test]
    fn answers_are_what_a_run_accepts() {
        let approval = answers(&detail(RunState::WaitingForHuman));
        assert!(approval.contains(&"a approve") && approval.contains(&"t assign to a person"));
        let ended = answers(&detail(RunState::Completed));
        assert_eq!(ended, ["o output", "h help", "b back", "q quit"]);
    }
}
