//! The result of a command: the message on standard error, and the exit code.

use std::io::{self, Write as _};
use std::process::ExitCode;

use super::context::IN_MEMORY_NOTE;
use super::dialog::clean;
use super::output::{TerminalCaps, TextStyle, stderr_caps};
use skills_api::{Code, Error, ErrorBody, new_trace_id, redacted_text};
use skills_config::Invocation;
use skills_skill::safe_text;

/// How a command ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Exit code 0.
    Success,
    /// Exit code 1: findings, no skill fits, a metric got worse, a run failed or was denied.
    ChecksFailed,
    /// Exit code 5: a run waits for approval or a signal.
    Waiting,
    /// Exit code 130, as shells return after Ctrl-C: the user left, and the run is not canceled.
    Left,
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    Core(Error),
    /// Standard output could not be written.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl Failure {
    /// Creates an error for wrong usage or configuration (exit code 2).
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Core(Error::new(Code::InvalidRequest, message))
    }

    /// Adds the next step to the message, and the options of this call to every command in it.
    #[must_use]
    pub fn completed(self, called: &Invocation) -> Self {
        match self {
            Self::Core(error) => {
                let step = next_step(&error, called.is_remote());
                let message = called.completed_in(&(error.message.clone() + step));
                Self::Core(Error { message, ..error })
            }
            Self::Output(error) => Self::Output(error),
        }
    }

    /// Renders it as a labeled line of a dialog.
    ///
    /// # Errors
    /// Returns the failure itself if the output is closed.
    pub fn line(self) -> Result<String, Self> {
        match self {
            Self::Core(error) => Ok(format!("Error: {}.", clean(error.message.trim_end_matches('.')))),
            Self::Output(error) => Err(Self::Output(error)),
        }
    }

    /// Adds why an entry is missing that no list contains: a store in memory, and the proposals of a demo, are empty
    /// when a command starts.
    #[must_use]
    pub fn explained(self, in_memory: bool, is_demo: bool) -> Self {
        let Self::Core(error) = self else { return self };
        let is_missing = |kinds: &[&str]| {
            let starts = kinds.iter().any(|kind| error.message.starts_with(kind));
            error.code == Code::NotFound && starts && error.message.ends_with(NOT_FOUND)
        };
        let why = if in_memory && is_missing(&["run `", "session `"]) {
            IN_MEMORY_NOTE
        } else if is_demo && is_missing(&["proposal `"]) {
            "with --demo, proposals are deleted when this command ends"
        } else {
            return Self::Core(error);
        };
        Self::Core(Error { message: format!("{}; {why}", error.message), ..error })
    }

    /// Creates an error for a file that cannot be read: missing (exit code 3), or not accessible (exit code 4).
    pub fn file(path: &std::path::Path, error: &io::Error) -> Self {
        let reason = skills_base::files::io_reason(error);
        Self::Core(Error::new(code_of(error), format!("cannot read `{}`: {reason}", path.display())))
    }

    /// Creates an error for a file that cannot be written, with the same exit codes.
    pub fn written_file(path: &std::path::Path, error: &io::Error) -> Self {
        Self::Core(Error::new(code_of(error), skills_base::files::write_failure(path, error)))
    }
}

/// Returns the code of an error about a file.
fn code_of(error: &io::Error) -> Code {
    match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        io::ErrorKind::PermissionDenied => Code::Forbidden,
        _ => Code::InvalidRequest,
    }
}

/// The end of the message about a missing entry of a list.
const NOT_FOUND: &str = "` not found";

/// Returns the command that helps after an error of the core, which does not know how it was called.
fn next_step(error: &Error, is_remote: bool) -> &'static str {
    const STEPS: [(&str, &str); 6] = [
        ("skill `", "; `skills list` lists skills"),
        ("proposal `", "; `skills proposals list` lists proposals"),
        ("agent `", "; `skills agents list` lists agents"),
        ("run `", "; `skills runs list` lists runs"),
        ("session `", "; `skills session list` lists sessions"),
        ("view `", "; `skills runs views` lists views"),
    ];
    // The options select what a local core uses.
    let is_of_store = error.code == Code::StoreUnavailable && error.message.contains("another store");
    if is_of_store && !is_remote {
        return " (--store)";
    }
    if error.is_of_shipped_skill() && !is_remote {
        return " (`skills --demo` uses only them; `--demo --store sqlite:FILE` keeps their runs)";
    }
    if error.code != Code::NotFound || !error.message.ends_with(NOT_FOUND) {
        return "";
    }
    STEPS.iter().find(|(what, _)| error.message.starts_with(what)).map_or("", |(_, step)| *step)
}

/// Ends the process: prints the failure, if any, and returns the exit code.
pub fn end(result: Result<Exit, Failure>, json: bool, look: TerminalCaps) -> ExitCode {
    match result {
        Ok(Exit::Success) => ExitCode::SUCCESS,
        Ok(Exit::ChecksFailed) => ExitCode::from(1),
        Ok(Exit::Waiting) => ExitCode::from(5),
        Ok(Exit::Left) => ExitCode::from(130),
        // The reader has closed the pipe (`skills list | head`), which is not an error.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Output(error)) => {
            let error = Error::new(Code::InternalError, format!("cannot write the output: {error}"));
            report_error(&error, json, look)
        }
        Err(Failure::Core(error)) => report_error(&error, json, look),
    }
}

/// Writes an error to standard error and returns its exit code.
pub fn report_error(error: &Error, json: bool, look: TerminalCaps) -> ExitCode {
    let trace_id = new_trace_id();
    let code = error.code;
    // Only internal errors are logged; user errors are not bugs of the program.
    let message = redacted_text(&error.message);
    if error.exit() == 70 {
        tracing::error!(%code, trace_id, "{message}");
    } else {
        tracing::info!(%code, trace_id, "{message}");
    }
    let text = match json {
        true if look.terminal => safe_text::json(&as_json(error, trace_id)).into_owned(),
        true => as_json(error, trace_id),
        false => as_text(error, look),
    };
    // If standard error is closed too, nothing can be reported.
    drop(io::stderr().lock().write_all(text.as_bytes()));
    ExitCode::from(error.exit())
}

/// Writes requested text to standard output, and everything else to standard error.
pub fn print(text: &str, is_requested: bool) {
    // A reader that has closed the pipe (`--help | head`) is not an error.
    drop(if is_requested {
        io::stdout().lock().write_all(text.as_bytes())
    } else {
        io::stderr().lock().write_all(stderr_caps(true).fitted(text).as_bytes())
    });
}

/// Writes warnings about a result to standard error.
pub fn warn(warnings: &[String]) {
    for warning in warnings {
        let look = stderr_caps(true);
        print(&look.labeled_message("warning:", TextStyle::Warn, &safe_text::line(warning)), false);
    }
}

fn as_json(error: &Error, trace_id: String) -> String {
    let body = ErrorBody { trace_id: Some(trace_id), ..ErrorBody::from(error) };
    serde_json::to_string(&body).map_or_else(|_| format!("{error}\n"), |json| json + "\n")
}

fn as_text(error: &Error, look: TerminalCaps) -> String {
    // The command that decides what is shown is wider than most terminals: it is not broken, so that it can be copied.
    let command = error.reason.as_ref().and_then(|reason| reason["command"].as_str());
    let command = command.filter(|command| look.terminal && command.starts_with("skills "));
    let before = command.and_then(|command| error.message.strip_suffix(command));
    let message = before.map_or(error.message.as_str(), str::trim_end);
    let mut out = look.labeled_message("error:", TextStyle::Bad, message);
    if let (Some(_), Some(command)) = (before, command) {
        out = format!("{out}  {}\n", safe_text::line(command));
    }
    let near: Vec<String> = error.suggestions.iter().map(|name| safe_text::line(name).into_owned()).collect();
    let help = match near.as_slice() {
        [] => return out,
        [one] => format!("did you mean {one}?"),
        several => format!("did you mean one of {}?", several.join(", ")),
    };
    out += &look.labeled_message("help:", TextStyle::Strong, &help);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown() -> Error {
        Error {
            suggestions: vec!["pdf-tables".into()],
            ..Error::new(Code::NotFound, "no skill is called pdf-tabels")
        }
    }

    #[test]
    fn text_names_the_failure_and_similar_names() {
        assert_eq!(
            as_text(&unknown(), TerminalCaps { color: false, unicode: true, width: 80, terminal: false }),
            "error: no skill is called pdf-tabels\nhelp: did you mean pdf-tables?\n"
        );
    }

    #[test]
    fn a_command_that_decides_is_not_broken() {
        let command = format!("skills runs approve abcd --inputs-digest {} --yes", "9f".repeat(32));
        let message = format!("no decision made: --yes requires --inputs-digest. To approve, run: {command}");
        let reason = Some(serde_json::json!({ "command": command }));
        let error = Error { reason, ..Error::new(Code::ConfirmationRequired, message) };
        let screen = TerminalCaps { color: false, unicode: true, width: 60, terminal: true };
        assert_eq!(
            as_text(&error, screen),
            format!(
                "error: no decision made: --yes requires --inputs-digest.\n  To approve, run:\n  {command}\n"
            )
        );
        let piped = as_text(&error, TerminalCaps { terminal: false, ..screen });
        assert_eq!(piped, format!("error: {}\n", error.message));
    }

    #[test]
    fn option_of_the_store_is_named_where_it_can_be_given() {
        let error = Error::new(Code::StoreUnavailable, "cannot open x: use another store");
        let message = |options: &[&str]| {
            let called = Invocation::with(options.iter().map(|word| (*word).to_owned()).collect());
            let Failure::Core(error) = Failure::Core(error.clone()).completed(&called) else {
                unreachable!()
            };
            error.message
        };
        assert_eq!(message(&[]), "cannot open x: use another store (--store)");
        assert_eq!(message(&["--connect", "http://gate:1"]), error.message);
    }

    #[test]
    fn missing_entry_of_a_store_in_memory_names_no_list() {
        let message = |message: &str, in_memory, is_demo| {
            let error = Error::new(Code::NotFound, message);
            let failure = Failure::Core(error).explained(in_memory, is_demo);
            let Failure::Core(error) = failure.completed(&Invocation::default()) else { unreachable!() };
            error.message
        };
        let listed = "run `x` not found; `skills runs list` lists runs";
        assert_eq!(message("run `x` not found", false, true), listed);
        assert_eq!(message("run `x` not found", true, true), format!("run `x` not found; {IN_MEMORY_NOTE}"));
        let skill = message("skill `x` not found", true, true);
        assert_eq!(skill, "skill `x` not found; `skills list` lists skills");
        let proposal = message("proposal `x` not found", true, true);
        assert!(!proposal.contains("`skills"), "{proposal}");
    }

    #[test]
    fn json_has_the_common_error_shape() {
        insta::assert_snapshot!(as_json(&unknown(), "4bf92f3577b34da6a3ce929d0e0e4736".to_owned()).trim_end(), @r#"{"error":{"code":"not_found","message":"no skill is called pdf-tabels","type":"not_found","suggestions":["pdf-tables"]},"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}"#);
    }
}
