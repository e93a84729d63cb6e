//! Menu of the line-based interface: `skills --plain` without a command.

use super::Context;
use super::args::{self, Cli};
use super::dialog::{Dialog, clean};
use super::failure::{Exit, Failure};
use super::runs::invocation;
use super::{dispatch, missing_store};
use skills_config::Audience;

/// The entries: a number, and the words of the command.
const ENTRIES: [(&str, &[&str]); 4] =
    [("1", &["runs"]), ("2", &["discover"]), ("3", &["why"]), ("4", &["list"])];

/// Runs the menu on standard input and output until the user quits.
pub fn run(cx: &mut Context) -> Result<Exit, Failure> {
    loop {
        let Some(words) = choose()? else { return Ok(Exit::Success) };
        if let Err(failure) = command(cx, &words) {
            let line = failure.completed(&invocation(&cx.global, None)).line()?;
            Dialog::of_terminal().print_line(line)?;
        }
    }
}

/// Prompts for a command; `None` to quit. The dialog ends with it, because commands open their own.
fn choose() -> Result<Option<Vec<String>>, Failure> {
    let mut dialog = Dialog::of_terminal();
    loop {
        dialog.print_line("")?;
        let Some(answer) =
            dialog.ask("Menu. 1. Runs. 2. Discover. 3. Why. 4. Skills. q. Quit. Choose 1 to 4, or q.")?
        else {
            return Ok(None);
        };
        if answer == "q" {
            return Ok(None);
        }
        let entry = ENTRIES.iter().find(|(number, _)| *number == answer);
        let Some((_, words)) = entry else {
            if !answer.is_empty() {
                dialog.print_line(format!("Unknown command: {}.", clean(&answer)))?;
            }
            continue;
        };
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if words == ["why"] {
            let skill = dialog.ask("Skill, or press Enter to go back.")?.unwrap_or_default();
            if skill.is_empty() {
                continue;
            }
            let request = dialog.ask("Request, or press Enter for none.")?.unwrap_or_default();
            words.extend(["--".to_owned(), skill]);
            words.extend(Some(request).filter(|request| !request.is_empty()));
        }
        return Ok(Some(words));
    }
}

/// Runs a command with the options of this call.
fn command(cx: &mut Context, words: &[String]) -> Result<Exit, Failure> {
    let words = std::iter::once("skills").chain(words.iter().map(String::as_str));
    let cli = args::command().try_get_matches_from(words).and_then(|found| Cli::of(&found));
    let cli = cli.map_err(|error| Failure::usage(error.to_string()))?;
    let Some(command) = cli.command else { return Ok(Exit::Success) };
    cx.missing_store = missing_store(&command);
    cx.audience = Audience::CommandLine;
    let done = dispatch(cx, command)?;
    cx.out.flush()?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_a_command() {
        for (_, words) in ENTRIES {
            let more: &[&str] = if words == ["why"] { &["--", "pdf", "-x"] } else { &[] };
            let words = ["skills"].iter().chain(words).chain(more);
            let found = args::command().try_get_matches_from(words).unwrap();
            assert!(Cli::of(&found).unwrap().command.is_some());
        }
    }
}
