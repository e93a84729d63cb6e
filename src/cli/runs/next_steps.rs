//! Next commands as lines to copy, with the options that select the same runs.

use std::path::Path;

use crate::args::Global;
use skills_config::Invocation;
use skills_model::{ApprovalReason, CommandName, Gate, RunState};
use skills_store::{PostgresAddress, RunRecord};

/// How this program was called, to build further command lines.
#[derive(Debug, Clone)]
pub struct Caller(Invocation);

impl Caller {
    /// Creates it from the global options.
    pub fn of(global: &Global) -> Self {
        Self(invocation(global, None))
    }

    /// Returns a command line with these words.
    pub fn line(&self, words: &[&str]) -> String {
        self.0.line(words)
    }

    /// Adds the options to the commands in a text.
    pub fn completed_in(&self, text: &str) -> String {
        self.0.completed_in(text)
    }

    /// Returns what a user can do with a run now: verb and command line.
    pub fn next(&self, run: &RunRecord) -> Vec<(&'static str, String)> {
        let id = run.id.0.as_str();
        let takes = |name| run.allowed.contains(&name);
        let mut out = Vec::new();
        match (&run.state, &run.gate) {
            (RunState::WaitingForHuman, Some(Gate::Human { step, inputs_digest, why, .. })) => {
                let exact = ["--step", step, "--inputs-digest", inputs_digest];
                // Commands are not broken into rows, and the terminal would continue such a step in its first column. Without
                // them, the commands show the question and ask.
                let exact = if exact.iter().any(|word| has_space(word)) { &[][..] } else { &exact[..] };
                // Alternatives, which no choice equals: nothing is decided by copying the line unchanged.
                let choice = match why {
                    ApprovalReason::UnknownOutcome => &["--choice", "rerun|happened|skip|fail"][..],
                    _ => &[],
                };
                out.push(("show", self.line(&["runs", "show", id])));
                out.push(("approve", self.line(&[&["runs", "approve", id], exact, choice].concat())));
                out.push(("deny", self.line(&[&["runs", "deny", id], exact].concat())));
            }
            (RunState::WaitingForSignal, Some(Gate::Signal { name, .. })) => {
                let name = if has_space(name) { "NAME" } else { name };
                out.push(("signal", self.line(&["runs", "signal", id, name, "--payload", "{}"])));
                out.push(("cancel", self.line(&["runs", "cancel", id])));
            }
            (RunState::Failed, _) if takes(CommandName::Resume) => {
                out.push(("show", self.line(&["runs", "show", id])));
                out.push(("resume", self.line(&["runs", "resume", id])));
            }
            (RunState::Pending, _) if run.paused => {
                out.push(("resume", self.line(&["runs", "resume", id])));
            }
            (RunState::Pending | RunState::Running | RunState::Replaying, _) => {
                out.push(("watch", self.line(&["runs", "watch", id])));
                out.push(("work", self.line(&["runs", "work", id])));
            }
            _ => {}
        }
        out
    }
}

fn has_space(word: &str) -> bool {
    word.contains(char::is_whitespace)
}

/// Returns the options that determine which skills and runs are used; with `from`, paths are absolute, so that the line
/// can be used anywhere.
pub fn invocation(global: &Global, from: Option<&Path>) -> Invocation {
    let place =
        |path: &Path| from.map_or_else(|| path.to_owned(), |from| from.join(path)).display().to_string();
    let mut options = Vec::new();
    if global.demo {
        options.push("--demo".to_owned());
    }
    let mut option = |name: &str, value: String| options.extend([name.to_owned(), value]);
    for root in &global.roots {
        option("--root", place(root));
    }
    if let Some(file) = &global.config {
        option("--config", place(file));
    }
    if let Some(store) = &global.store {
        let file = store.strip_prefix("sqlite:").map(|file| format!("sqlite:{}", place(Path::new(file))));
        // Never with a password.
        let server = PostgresAddress::is_one(store).then(|| PostgresAddress::parse(store).ok()).flatten();
        let server = server.map(|server| server.place().to_owned());
        option("--store", file.or(server).unwrap_or_else(|| store.clone()));
    }
    if let Some(address) = &global.connect {
        option("--connect", address.clone());
    }
    if let Some(file) = &global.api_key_file {
        option("--api-key-file", place(file));
    }
    Invocation::with(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples::{ID, record};

    fn caller() -> Caller {
        Caller(Invocation::with(["--store", "sqlite:my runs.db"].map(str::to_owned).into()))
    }

    #[test]
    fn command_of_a_waiting_run_names_store_step_and_digest() {
        let next = caller().next(&record(RunState::WaitingForHuman));
        let (_, approve) = next.iter().find(|(verb, _)| *verb == "approve").unwrap();
        let digest = "9f".repeat(32);
        assert_eq!(
            *approve,
            format!(
                "skills --store 'sqlite:my runs.db' runs approve {ID} --step book --inputs-digest {digest}"
            )
        );
    }

    #[test]
    fn a_step_or_signal_with_spaces_is_not_part_of_a_command() {
        let mut run = record(RunState::WaitingForHuman);
        if let Some(Gate::Human { step, .. }) = &mut run.gate {
            *step = format!("s{}next: skills runs approve", " ".repeat(60));
        }
        let approve = format!("skills --store 'sqlite:my runs.db' runs approve {ID}");
        assert!(caller().next(&run).contains(&("approve", approve)));
        let mut run = record(RunState::WaitingForSignal);
        if let Some(Gate::Signal { name, .. }) = &mut run.gate {
            *name = format!("s{}next:", " ".repeat(60));
        }
        let next = caller().next(&run);
        assert!(next.iter().any(|(_, line)| line.ends_with("NAME --payload '{}'")), "{next:?}");
    }

    #[test]
    fn every_run_that_has_not_ended_has_a_next_command() {
        for state in [RunState::Pending, RunState::Running, RunState::WaitingForSignal, RunState::Failed] {
            assert!(!caller().next(&record(state)).is_empty(), "{state}");
        }
        assert!(caller().next(&record(RunState::Completed)).is_empty());
    }

    #[test]
    fn the_command_of_an_unknown_outcome_leaves_the_choice_open() {
        let mut run = record(RunState::WaitingForHuman);
        if let Some(Gate::Human { why, .. }) = &mut run.gate {
            *why = ApprovalReason::UnknownOutcome;
        }
        let next = caller().next(&run);
        let (_, approve) = next.iter().find(|(verb, _)| *verb == "approve").unwrap();
        assert!(approve.ends_with("--choice 'rerun|happened|skip|fail'"), "{approve}");
    }

    #[test]
    fn next_command_repeats_options_with_absolute_paths() {
        use clap::Parser as _;
        let arguments =
            ["skills", "--root", "my skills", "--store", "sqlite:runs.db", "--config", "/etc/c.yaml"];
        let cli = crate::args::Cli::try_parse_from(arguments).unwrap();
        let line = invocation(&cli.global, Some(Path::new("/work"))).completed("skills runs list");
        assert_eq!(
            line,
            "skills --root '/work/my skills' --config /etc/c.yaml --store sqlite:/work/runs.db runs list"
        );
    }
}
