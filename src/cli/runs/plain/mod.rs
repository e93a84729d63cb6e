//! Linear dialog for operators: labeled lines, numbered lists, prompts that name every answer. For screen readers and
//! terminals without cursor movement: ASCII only, no cursor movement, confirmation by a typed word.

mod prompts;
pub mod selection;
pub mod text;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use self::selection::Selection;
use self::text::{item, short};
use super::{Caller, bulk, clock};
use crate::Context;
use crate::context::FullClient;
use crate::dialog::{Dialog, capitalized, clean};
use crate::failure::{Exit, Failure};
use skills_api::operations::Scope;
use skills_api::{
    CallerView, CommandResult, CoreParts, DecisionPreview, Error, LogRequest, RunCommand, RunDetail,
    distinguishing_texts,
};
use skills_model::{CommandName, RunState, Verdict};
use skills_store::{RunFilter, RunPage, RunRecord};

/// Number of runs listed at a time.
const RUNS_PER_PAGE: usize = 50;
/// Maximum number of runs of a view: they are read to sort and count them.
const MAX_READ: usize = 2_000;
/// Runs read per request.
const PAGE: usize = 500;
/// How long a run is followed after a command, and how often it is read.
const FOLLOW_TIMEOUT: Duration = Duration::from_secs(10);
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);
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
    /// Reads the list again.
    List,
    /// Shows another run.
    Next(String),
    Quit,
}

/// A dialog about the runs of a core.
struct RunsDialog<'a, R, W> {
    dialog: Dialog<R, W>,
    core: &'a dyn FullClient,
    scopes: BTreeSet<Scope>,
    caller: Caller,
    /// The filter that was typed.
    filter: Option<String>,
}

/// Runs the dialog on standard input and output.
pub async fn run(cx: &mut Context) -> Result<Exit, Failure> {
    let core = cx.reach(CoreParts::Catalog).await?;
    // A service that does not report the scopes checks them itself.
    let scopes = core.caller().await.unwrap_or_else(|_| CallerView::anyone()).scopes;
    let (dialog, caller) = (Dialog::of_terminal(), Caller::of(&cx.global));
    RunsDialog { dialog, core: &*core, scopes, caller, filter: None }.list().await
}

/// Returns whether the runs of a filter are sorted by deadline: those that wait for approval, and lists of runs that all
/// wait.
fn are_by_deadline(runs: &[RunRecord], filter: &str) -> bool {
    filter == VIEWS[0].1 || (!runs.is_empty() && runs.iter().all(|run| run.state.is_waiting()))
}

/// Sorts runs: those that wait for approval by deadline, any others by age, newest first.
fn sort(runs: &mut [RunRecord], by_deadline: bool) {
    if by_deadline {
        runs.sort_by_key(|run| run.expires_ms.unwrap_or(i64::MAX));
    } else {
        runs.sort_by_key(|run| Reverse(run.created_ms));
    }
}

impl<R: BufRead, W: Write> RunsDialog<'_, R, W> {
    fn print_line(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        self.dialog.print_line(line)
    }

    fn print_error(&mut self, error: &Error) -> Result<(), Failure> {
        self.dialog.print_line(text::error(error, &self.caller))
    }

    /// Reads the runs of a filter, at most [`MAX_READ`]; then the page has a cursor.
    async fn read(&self, filter: &str) -> Result<RunPage, Error> {
        let r#where = Some(filter.to_owned());
        let mut request = RunFilter { r#where, limit: PAGE, ..RunFilter::default() };
        let mut page = self.core.runs(request.clone()).await?;
        while page.runs.len() < MAX_READ
            && let Some(cursor) = page.next.take()
        {
            request.cursor = Some(cursor);
            let more = self.core.runs(request.clone()).await?;
            page.runs.extend(more.runs);
            page.next = more.next;
        }
        let by_deadline = are_by_deadline(&page.runs, filter);
        sort(&mut page.runs, by_deadline);
        Ok(page)
    }

    async fn list(&mut self) -> Result<Exit, Failure> {
        let mut view = 0;
        loop {
            let filter = self.filter.clone().unwrap_or_else(|| VIEWS[view].1.to_owned());
            let page = match self.read(&filter).await {
                Ok(page) => page,
                Err(error) if self.filter.is_some() => {
                    self.print_error(&error)?;
                    self.filter = None;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let is_by_deadline = are_by_deadline(&page.runs, &filter);
            let order = if is_by_deadline { "nearest deadline first" } else { "newest first" };
            let name = self
                .filter
                .as_ref()
                .map_or(VIEWS[view].0.to_owned(), |filter| format!("filter {}, {order}", clean(filter)));
            self.heading(&page, &name)?;
            match self.choose(&page).await?.as_str() {
                "q" => return Ok(Exit::Success),
                "v" => (view, self.filter) = ((view + 1) % VIEWS.len(), None),
                "f" => {
                    let typed = self
                        .dialog
                        .ask("Filter, for example state:failed skill:deploy* age:>1h, or Enter for none.")?;
                    self.filter = typed.filter(|typed| !typed.is_empty());
                }
                _ => {}
            }
        }
    }

    /// Lists the runs of a page and handles replies until another list is wanted; returns the reply.
    async fn choose(&mut self, page: &RunPage) -> Result<String, Failure> {
        let runs = &page.runs;
        let may_resume = self.scopes.contains(&Scope::Run);
        let mut listed = self.show(runs, 0)?;
        if page.next.is_some() {
            self.print_line(format!("More than {} runs match. f: narrow the filter.", runs.len()))?;
            self.print_line("")?;
        }
        loop {
            let range = match listed {
                0 => String::new(),
                1 => "1, ".to_owned(),
                count => format!("1 to {count}, "),
            };
            let more = if listed < runs.len() { "m more, " } else { "" };
            let has_failed = runs.iter().take(listed).any(|run| run.state == RunState::Failed);
            let resume = if has_failed && may_resume { "r resume all listed failed runs, " } else { "" };
            let prompt =
                format!("Choose {range}{more}v view, f filter, {resume}l list again, h help, q quit.");
            let Some(answer) = self.dialog.ask(&prompt)? else { return Ok("q".to_owned()) };
            match answer.as_str() {
                "q" | "v" | "f" | "l" => return Ok(answer),
                "m" if listed < runs.len() => listed = self.show(runs, listed)?,
                "r" if may_resume => {
                    if self.resume_all(runs.iter().take(listed)).await? {
                        return Ok("l".to_owned());
                    }
                }
                "h" => self.help()?,
                "" => {}
                number => {
                    let place = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                    match place.and_then(|place| runs.iter().take(listed).nth(place)) {
                        Some(run) => match self.open(&run.id.0).await? {
                            After::Quit => return Ok("q".to_owned()),
                            After::List => return Ok("l".to_owned()),
                            After::Back | After::Next(_) => {}
                        },
                        None => self.print_line(format!("Unknown command: {}. h: help.", clean(number)))?,
                    }
                }
            }
        }
    }

    /// Shows a run, and those that are opened from it.
    async fn open(&mut self, run: &str) -> Result<After, Failure> {
        let mut id = run.to_owned();
        loop {
            match self.show_run(&id).await? {
                After::Next(next) => id = next,
                after => return Ok(after),
            }
        }
    }

    fn heading(&mut self, page: &RunPage, view: &str) -> Result<(), Failure> {
        let count = |state: RunState| page.counts.get(&state).copied().unwrap_or(0);
        let all = page.counts.values().copied().fold(0, u64::saturating_add);
        self.print_line("")?;
        self.print_line(format!(
            "Runs. {all} total: {} waiting for approval, {} running, {} failed.",
            count(RunState::WaitingForHuman),
            count(RunState::Running).saturating_add(count(RunState::Replaying)),
            count(RunState::Failed),
        ))?;
        self.print_line(format!("View: {view}."))
    }

    /// Lists the next runs after the first `from`; returns the number of runs that are listed then.
    fn show(&mut self, runs: &[RunRecord], from: usize) -> Result<usize, Failure> {
        let to = runs.len().min(from + RUNS_PER_PAGE);
        self.print_line("")?;
        if runs.is_empty() {
            self.print_line("No runs.")?;
        } else if runs.len() > RUNS_PER_PAGE {
            self.print_line(format!("{} runs match, {} to {to}:", runs.len(), from + 1))?;
        }
        let now_ms = clock::now_ms();
        let distinctions = distinguishing_texts(&runs.iter().collect::<Vec<_>>(), ", ");
        for (number, (run, distinction)) in (1..).zip(runs.iter().zip(&distinctions)).take(to).skip(from) {
            self.print_line(format!("{number}. {}", item(run, distinction, now_ms)))?;
        }
        self.print_line("")?;
        Ok(to)
    }

    fn help(&mut self) -> Result<(), Failure> {
        for line in [
            "Help. Type an answer and press Enter. Enter alone never decides anything.",
            "NUMBER: open a run of the list. v: next view. f: filter the list. m: more runs of a long list.",
            "l: read the list again; until then its numbers stay the same.",
            "r: resume all failed runs of the list, after you type a word to confirm.",
            "In a run: a: approve. d: deny. s: send a signal. r: resume. c: cancel. b: back to the list.",
            "i: inputs and outputs in full. o: output of a step. t: assign the run to a person, with a note.",
            "n, after a decision: the next run that is waiting for approval, of those that match the filter.",
            "If the outcome of a step is unknown, a asks what to do: rerun, happened, skip or fail.",
        ] {
            self.print_line(line)?;
        }
        Ok(())
    }

    async fn show_run(&mut self, id: &str) -> Result<After, Failure> {
        let mut detail = self.page(id).await?;
        loop {
            let run = &detail.run;
            let answers = answers(&detail, &self.scopes);
            let Some(answer) = self.dialog.ask(&format!("Choose {}.", answers.join(", ")))? else {
                return Ok(After::Quit);
            };
            let is_offered = answers.iter().any(|offered| offered.split(' ').next() == Some(answer.as_str()));
            let preview = detail.sheet.as_ref();
            let is_sent = match (answer.as_str(), preview) {
                ("", _) => false,
                (other, _) if !is_offered => {
                    self.print_line(format!("Unknown command: {}.", clean(other)))?;
                    false
                }
                ("b", _) => return Ok(After::Back),
                ("q", _) => return Ok(After::Quit),
                ("h", _) => self.help().map(|()| false)?,
                ("i", _) => self.print_line(text::in_full(&detail).trim_end()).map(|()| false)?,
                ("o", _) => self.output(&detail).await.map(|()| false)?,
                ("a" | "d", Some(preview)) => {
                    let verdict = if answer == "a" { Verdict::Approve } else { Verdict::Deny };
                    let decided = self.decide(run, preview, verdict).await?;
                    if decided && let Some(after) = self.after_decision(id).await? {
                        return Ok(after);
                    }
                    decided
                }
                ("s", _) => {
                    let command = prompts::signal(&mut self.dialog, run)?;
                    self.confirm(run, "signal", command).await?
                }
                ("t", _) => {
                    let command = prompts::assignment(&mut self.dialog, run)?;
                    self.confirm(run, "assign", command).await?
                }
                ("r", _) => {
                    let command = resume_command();
                    self.confirm(run, "resume", Some(command)).await?
                }
                _ => self.confirm(run, "cancel", Some(RunCommand::Cancel { by: None })).await?,
            };
            if is_sent {
                detail = self.page(id).await?;
            }
        }
    }

    /// Prints the details of a run.
    async fn page(&mut self, id: &str) -> Result<RunDetail, Failure> {
        let detail = self.core.run(id).await?;
        self.print_line(text::page(&detail, &self.caller, true, clock::now_ms()).trim_end_matches('\n'))?;
        self.print_line("")?;
        Ok(detail)
    }

    /// Prints what the steps of a run, or one of them, printed so far.
    async fn output(&mut self, detail: &RunDetail) -> Result<(), Failure> {
        let names: Vec<String> = detail.steps.iter().map(|step| clean(&step.step)).collect();
        let prompt = format!("Step, or Enter for all: {}.", names.join(", "));
        let Some(typed) = self.dialog.ask(&prompt)? else { return Ok(()) };
        let step = Some(typed).filter(|step| !step.is_empty());
        if step.as_ref().is_some_and(|step| !names.contains(step)) {
            return self.print_line("The run has no such step.");
        }
        let run = detail.run.id.0.clone();
        let mut request = LogRequest { run, step, text: None, after: 0, limit: MAX_LINES, wait_ms: 0 };
        let mut lines = 0;
        loop {
            let page = match self.core.run_log(request.clone()).await {
                Ok(page) => page,
                Err(error) => return self.print_error(&error),
            };
            if lines == 0 {
                let of = request.step.as_ref().map_or("all steps".to_owned(), |step| format!("step {step}"));
                self.print_line(format!("Output of {of}:"))?;
            }
            lines += page.lines.len();
            for line in &page.lines {
                let step = if request.step.is_none() { clean(&line.step) + ": " } else { String::new() };
                let error = if line.stream == "stderr" { "error output: " } else { "" };
                self.print_line(format!("  {step}{error}{}", clean(&line.text)))?;
            }
            if page.lines.len() < MAX_LINES {
                let end = if page.open { "The run may print more." } else { "End of the output." };
                return self.print_line(if lines == 0 && !page.open { "No output." } else { end });
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
        preview: &DecisionPreview,
        verdict: Verdict,
    ) -> Result<bool, Failure> {
        match prompts::decision(&mut self.dialog, run, preview, verdict)? {
            Some((word, command)) => self.send(run, &word, command).await,
            None => self.print_line("Nothing was sent.").map(|()| false),
        }
    }

    /// Names the next run that waits for approval, and asks what to do; `None` shows the decided run again.
    async fn after_decision(&mut self, decided: &str) -> Result<Option<After>, Failure> {
        let among = self.filter.as_deref().unwrap_or_default();
        let mut waiting = self.read(&format!("{} {among}", VIEWS[0].1)).await?.runs;
        sort(&mut waiting, true);
        let next = waiting.into_iter().find(|run| run.id.0 != decided);
        let of_filter = if among.is_empty() { "" } else { " that matches the filter" };
        self.print_line("")?;
        let next_answer = if let Some(run) = &next {
            self.print_line(format!("Next waiting{of_filter}: {}", item(run, "", clock::now_ms())))?;
            "n next, "
        } else {
            self.print_line(format!("No other run{of_filter} is waiting for approval."))?;
            ""
        };
        self.print_line("")?;
        let prompt = format!("Choose {next_answer}l list, q quit, or press Enter for this run.");
        let answer = self.dialog.ask(&prompt)?;
        Ok(match (answer.as_deref(), next) {
            (None | Some("q"), _) => Some(After::Quit),
            (Some("n"), Some(run)) => Some(After::Next(run.id.0)),
            (Some("l"), _) => Some(After::List),
            _ => None,
        })
    }

    /// Prompts for a word and sends a command, if there is one; returns whether it was accepted.
    async fn confirm(
        &mut self,
        run: &RunRecord,
        word: &str,
        command: Option<RunCommand>,
    ) -> Result<bool, Failure> {
        let Some(command) = command else { return self.print_line("Nothing was sent.").map(|()| false) };
        let prompt = format!("Type the word {word} to confirm, or press Enter to go back.");
        if self.dialog.ask(&prompt)?.as_deref() != Some(word) {
            return self.print_line("Nothing was sent.").map(|()| false);
        }
        self.send(run, word, command).await
    }

    /// Sends a command; returns whether it was accepted.
    async fn send(&mut self, run: &RunRecord, word: &str, command: RunCommand) -> Result<bool, Failure> {
        self.print_line("")?;
        match self.core.send_command(&run.id.0, command.if_unchanged(run)).await {
            Ok(result) => {
                self.print_line(format!("Sent: {word}, run {}.", short(run)))?;
                let (note, state) = (clean(&result.note), result.run.state.label());
                self.print_line(format!("Result: {note}. Run {} is {state}.", short(&result.run)))?;
                self.follow(result).await.map(|()| true)
            }
            Err(error) => {
                let message = self.caller.completed_in(error.message.trim_end_matches('.'));
                self.print_line(format!("{}: {}.", error.command_status(), clean(&message)))?;
                Ok(false)
            }
        }
    }

    /// Reports how a run continued after a command: once it has ended or waits, or after some seconds.
    async fn follow(&mut self, result: CommandResult) -> Result<(), Failure> {
        let is_active = |run: &RunRecord| {
            matches!(run.state, RunState::Pending | RunState::Running | RunState::Replaying) && !run.paused
        };
        let CommandResult { mut run, worker_alive, .. } = result;
        if !is_active(&run) {
            return Ok(());
        }
        if !worker_alive {
            let text = "No worker is connected; the run continues when one starts (skills runs work).";
            return self.print_line(self.caller.completed_in(text));
        }
        let since = Instant::now();
        while is_active(&run) && since.elapsed() < FOLLOW_TIMEOUT {
            tokio::time::sleep(FOLLOW_INTERVAL).await;
            run = match self.core.run(&run.id.0).await {
                Ok(detail) => detail.run,
                Err(error) => return self.print_error(&error),
            };
        }
        self.print_line(text::outcome(&run))
    }

    /// Resumes the failed ones of these runs, except those that the user leaves out; returns whether any was sent.
    async fn resume_all<'r>(&mut self, runs: impl Iterator<Item = &'r RunRecord>) -> Result<bool, Failure> {
        let failed: Vec<&RunRecord> = runs.filter(|run| run.state == RunState::Failed).collect();
        if failed.is_empty() {
            return self.print_line("No failed runs are listed.").map(|()| false);
        }
        let skipped = bulk::not_resumed(self.core, failed.iter().copied()).await;
        let taken = failed.iter().filter(|run| skipped.iter().all(|one| one.run.id != run.id)).copied();
        let taken: Vec<&RunRecord> = taken.collect();
        self.print_line("")?;
        if taken.is_empty() {
            return self.print_line(bulk::will_be_skipped(&skipped).trim_end()).map(|()| false);
        }
        let mut chosen = Selection::new("resume", &taken);
        let text = chosen.list(clock::now_ms()) + &bulk::will_be_skipped(&skipped);
        self.print_line(text.trim_end())?;
        loop {
            let Some(answer) = self.dialog.ask(&chosen.question())? else { return Ok(false) };
            if answer == chosen.confirmation() {
                break;
            }
            let Some(notice) = chosen.leave_out(&answer) else {
                return self.print_line("Nothing was sent.").map(|()| false);
            };
            self.print_line(notice)?;
        }
        let (mut resumed, mut failed) = (0, 0);
        for one in chosen.runs {
            let command = resume_command();
            let sent = self.core.send_command(&one.run.id.0, command.if_unchanged(one.run));
            let line = match sent.await {
                Ok(result) => {
                    resumed += 1;
                    capitalized(&clean(&result.note))
                }
                Err(error) => {
                    failed += 1;
                    let message = self.caller.completed_in(error.message.trim_end_matches('.'));
                    format!("Skipped: {}", clean(&message))
                }
            };
            self.print_line(format!("{}. {}. {line}.", one.number, one.name))?;
        }
        self.print_line(format!("Summary: {resumed} resumed, {failed} skipped."))?;
        Ok(true)
    }
}

/// Returns the command that continues a run from its head, with its own inputs.
fn resume_command() -> RunCommand {
    RunCommand::Resume { checkpoint: None, inputs: None, despite_change: false, by: None, since_ms: None }
}

/// Returns what a user with these scopes can do with a run: the answer, and what it does.
fn answers(detail: &RunDetail, scopes: &BTreeSet<Scope>) -> Vec<&'static str> {
    let may_run = scopes.contains(&Scope::Run);
    let takes = |command| may_run && detail.run.allowed.contains(&command);
    let mut answers: Vec<&str> = Vec::new();
    if let Some(preview) = &detail.sheet {
        answers.push("i inputs in full");
        answers.extend(preview.approval_obstacle().is_none().then_some(if preview.outcome_unknown {
            "a answer with rerun, happened, skip or fail"
        } else {
            "a approve"
        }));
        answers.extend(scopes.contains(&Scope::Decide).then_some("d deny"));
    }
    if detail.sheet.is_none() && detail.run.outputs.as_ref().is_some_and(|outputs| !outputs.is_null()) {
        answers.push("i outputs in full");
    }
    answers.push("o output");
    answers.extend(takes(CommandName::Signal).then_some("s send a signal"));
    answers.extend(takes(CommandName::Resume).then_some("r resume"));
    answers.extend(takes(CommandName::Cancel).then_some("c cancel"));
    answers.extend((may_run && !detail.run.state.is_terminal()).then_some("t assign to a person"));
    answers.extend(["h help", "b back", "q quit"]);
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples::{detail, record};

    #[test]
    fn menu_lists_the_commands_that_a_run_accepts() {
        let all = CallerView::anyone().scopes;
        let approval = answers(&detail(RunState::WaitingForHuman), &all);
        assert!(approval.contains(&"a approve") && approval.contains(&"t assign to a person"));
        let ended = answers(&detail(RunState::Completed), &all);
        assert_eq!(ended, ["i outputs in full", "o output", "h help", "b back", "q quit"]);
    }

    #[test]
    fn a_key_is_offered_what_its_scopes_allow() {
        let read = BTreeSet::from([Scope::Read]);
        for state in [RunState::WaitingForSignal, RunState::Failed] {
            assert_eq!(answers(&detail(state), &read), ["o output", "h help", "b back", "q quit"]);
        }
        let approval = answers(&detail(RunState::WaitingForHuman), &read);
        assert!(!approval.contains(&"d deny") && !approval.contains(&"c cancel"), "{approval:?}");
    }

    #[test]
    fn newest_run_is_listed_first() {
        let run = |state, created_ms| RunRecord { created_ms, ..record(state) };
        let mut runs =
            [run(RunState::WaitingForHuman, 1), run(RunState::Failed, 3), run(RunState::Running, 2)];
        sort(&mut runs, false);
        assert_eq!(runs.map(|run| run.created_ms), [3, 2, 1]);
    }
}
