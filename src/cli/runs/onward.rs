//! The commands that come next, as lines to copy: with the options that lead to the same runs.

use crate::cli::args::Global;
use crate::runs::{CommandName, Gate, RunState};
use crate::store::RunRecord;

/// How this program was called, as far as it decides which runs are seen.
#[derive(Debug, Clone)]
pub struct Caller(Vec<String>);

impl Caller {
    /// The caller by its global options.
    pub fn of(global: &Global) -> Self {
        let mut words = vec!["skills".to_owned()];
        if global.demo {
            words.push("--demo".to_owned());
        }
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        for root in &global.roots {
            option("--root", root.display().to_string());
        }
        if let Some(file) = &global.config {
            option("--config", file.display().to_string());
        }
        if let Some(store) = &global.store {
            option("--store", store.clone());
        }
        if let Some(address) = &global.connect {
            option("--connect", address.clone());
        }
        if let Some(file) = &global.api_key_file {
            option("--api-key-file", file.display().to_string());
        }
        Self(words)
    }

    /// A command line of these words.
    pub fn line(&self, words: &[&str]) -> String {
        let all = self.0.iter().map(String::as_str).chain(words.iter().copied());
        all.map(quoted).collect::<Vec<_>>().join(" ")
    }

    /// What a person may do with a run now: verb and command line.
    pub fn next(&self, run: &RunRecord) -> Vec<(&'static str, String)> {
        let id = run.id.0.as_str();
        let takes = |name| run.allowed.contains(&name);
        let mut out = Vec::new();
        match (&run.state, &run.gate) {
            (RunState::WaitingForHuman, Some(Gate::Human { step, inputs_digest, .. })) => {
                let exact = ["--step", step, "--inputs-digest", inputs_digest];
                out.push(("look", self.line(&["runs", "show", id])));
                out.push(("approve", self.line(&[&["runs", "approve", id], &exact[..]].concat())));
                out.push(("deny", self.line(&[&["runs", "deny", id], &exact[..]].concat())));
            }
            (RunState::WaitingForSignal, Some(Gate::Signal { name, .. })) => {
                out.push(("signal", self.line(&["runs", "signal", id, name, "--payload", "{}"])));
                out.push(("cancel", self.line(&["runs", "cancel", id])));
            }
            (RunState::Failed, _) if takes(CommandName::Resume) => {
                out.push(("look", self.line(&["runs", "show", id])));
                out.push(("resume", self.line(&["runs", "resume", id])));
            }
            (RunState::Pending, _) if run.held => {
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

/// A word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('~') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::runs::samples::{ID, record};

    fn caller() -> Caller {
        Caller(["skills", "--store", "sqlite:my runs.db"].map(str::to_owned).into())
    }

    #[test]
    fn the_command_of_a_waiting_run_names_the_store_the_step_and_what_was_seen() {
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
    fn every_run_that_has_not_ended_has_a_next_command() {
        for state in [RunState::Pending, RunState::Running, RunState::WaitingForSignal, RunState::Failed] {
            assert!(!caller().next(&record(state)).is_empty(), "{state}");
        }
        assert!(caller().next(&record(RunState::Completed)).is_empty());
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(
            [quoted("a-b.c"), quoted("it's"), quoted(""), quoted("{}")],
            ["a-b.c", r"'it'\''s'", "''", "'{}'"]
        );
    }
}
