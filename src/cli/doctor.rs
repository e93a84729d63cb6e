//! `skills doctor`: checks this installation, and says how to fix problems.

use std::fmt::Write as _;

use serde::Serialize;

use super::Context;
use super::args::Global;
use super::context::connect;
use super::dialog::{capitalized, clean, sentences};
use super::failure::{Exit, Failure};
use super::output::{TerminalCaps, TextStyle, cells, counted, fit, stdout_caps, wrap};
use super::runs::invocation;
use skills_api::{Check, CoreParts, Health};
use skills_skill::safe_text;

/// The subject of the check of the settings files.
const CONFIGURATION: &str = "configuration";

#[derive(Serialize)]
struct Report<'a> {
    checks: &'a [Check],
}

pub async fn run(cx: &mut Context) -> Result<Exit, Failure> {
    let config = cx.config()?;
    let client = cx.open_local(CoreParts::Index).await?;
    let mut checks = client.checkup().await?;
    if let Some(problem) = configuration(&(cx.adapters.settings_problems)(&config))
        && let Some(check) = checks.iter_mut().find(|check| check.subject == CONFIGURATION)
    {
        *check = problem;
    }
    if !config.watch {
        let found = "folders are not watched for changes (--no-watch, `watch` or SKILLS_WATCH)";
        checks.push(Check::good("watching", found));
    }
    if let Some(address) = &config.connect {
        checks.push(match connect(&config, &cx.env).await {
            Ok(remote) => {
                Check::good("service", format!("{} is reachable, access granted", remote.address()))
            }
            Err(error) => Check::problem(
                "service",
                error.message,
                format!(
                    "check the address {address} (`connect`, --connect), the API key, and that the service is running"
                ),
            ),
        });
    }
    let look = TerminalCaps { width: stdout_caps(true).width, ..cx.out.look };
    checks.extend(terminal(look, std::env::var("TERM").ok().as_deref(), colors().as_deref()));
    // The checks are about this machine, even with --connect.
    let called = invocation(&Global { connect: None, api_key_file: None, ..cx.global.clone() }, None);
    for check in &mut checks {
        check.found = called.completed_in(&check.found);
        check.advice = check.advice.take().map(|advice| called.completed_in(&advice));
    }
    cx.show(
        &Report { checks: &checks },
        |is_plain, look| if is_plain { labeled(&checks) } else { render(&checks, look) },
    )?;
    let worst = checks.iter().map(|check| check.health).max();
    Ok(if worst == Some(Health::Problem) { Exit::ChecksFailed } else { Exit::Success })
}

/// Returns the check of settings that are valid YAML but not usable; `None` if all are.
fn configuration(mistakes: &[String]) -> Option<Check> {
    let first = mistakes.first()?;
    let found = match mistakes.len() - 1 {
        0 => first.clone(),
        more => format!("{first} (and {})", counted(more, "more error")),
    };
    Some(Check::problem(CONFIGURATION, found, "correct the setting; `skills config check` lists all errors"))
}

/// Returns the value of `COLORTERM`.
fn colors() -> Option<String> {
    std::env::var("COLORTERM").ok().filter(|value| !value.is_empty())
}

/// Returns the checks of the terminal's capabilities.
fn terminal(look: TerminalCaps, term: Option<&str>, colorterm: Option<&str>) -> Vec<Check> {
    if !look.terminal {
        return vec![Check::good("terminal", "standard output is not a terminal: plain text, no color")];
    }
    let depth = match (look.color, colorterm, term) {
        (false, ..) => "no color",
        (true, Some("truecolor" | "24bit"), _) => "24-bit color",
        (true, _, Some(term)) if term.contains("256color") => "256 colors",
        _ => "16 colors",
    };
    let signs = if look.unicode { "Unicode characters" } else { "ASCII characters" };
    let found = format!("TERM={}, {depth}, {signs}, {} columns", term.unwrap_or("(not set)"), look.width);
    vec![match term {
        None | Some("" | "dumb") => Check::problem(
            "terminal",
            found,
            "set TERM to the terminal's name (e.g. xterm-256color): the workbench needs cursor movement",
        ),
        Some(_) => Check::good("terminal", found),
    }]
}

/// Renders the report as labeled lines.
fn labeled(checks: &[Check]) -> String {
    let line = |(number, check): (usize, &Check)| {
        let state = match check.health {
            Health::Good => "good",
            Health::Note => "note",
            Health::Problem => "problem",
        };
        let advice = check.advice.as_ref().map(|advice| format!("Help: {}", clean(advice)));
        let parts = vec![
            format!("{}: {state}", capitalized(&clean(&check.subject))),
            capitalized(&clean(&check.found)),
            advice.unwrap_or_default(),
        ];
        format!("{number}. {}\n", sentences(parts))
    };
    (1..).zip(checks).map(line).collect()
}

fn render(checks: &[Check], look: TerminalCaps) -> String {
    let mut out = String::new();
    let subject_width = checks.iter().map(|check| cells(&check.subject)).max().unwrap_or(0).clamp(8, 32);
    let available = look.text_width(110).saturating_sub(subject_width + 4);
    for check in checks {
        let (sign, style) = match (check.health, look.unicode) {
            (Health::Good, true) => ("✓", TextStyle::Good),
            (Health::Good, false) => ("+", TextStyle::Good),
            (Health::Note, _) => ("!", TextStyle::Warn),
            (Health::Problem, true) => ("✗", TextStyle::Bad),
            (Health::Problem, false) => ("x", TextStyle::Bad),
        };
        let subject = fit(&safe_text::line(&check.subject), subject_width, look.unicode);
        for (i, line) in wrap(&safe_text::line(&check.found), available).iter().enumerate() {
            let head = if i == 0 {
                format!("{} {subject}", style.paint(sign, look.color))
            } else {
                " ".repeat(subject_width + 2)
            };
            let _ = writeln!(out, "{head}  {line}");
        }
        for line in check.advice.iter().flat_map(|advice| wrap(advice, available)) {
            let _ = writeln!(
                out,
                "{}  {}",
                " ".repeat(subject_width + 2),
                TextStyle::Muted.paint(&line, look.color)
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnamed_terminal_is_a_problem_but_a_pipe_is_not() {
        let look = TerminalCaps { color: true, unicode: true, width: 80, terminal: true };
        assert_eq!(terminal(look, Some("dumb"), None)[0].health, Health::Problem);
        assert_eq!(
            terminal(look, Some("xterm-256color"), None)[0].found,
            "TERM=xterm-256color, 256 colors, Unicode characters, 80 columns"
        );
        assert_eq!(terminal(TerminalCaps { terminal: false, ..look }, None, None)[0].health, Health::Good);
    }

    #[test]
    fn advice_follows_the_finding() {
        let look = TerminalCaps { color: false, unicode: true, width: 60, terminal: true };
        let checks =
            [Check::good("cache", "used"), Check::problem("root ./x", "there is no folder", "make it")];
        assert_eq!(
            labeled(&checks),
            "1. Cache: good. Used.\n2. Root ./x: problem. There is no folder. Help: make it.\n"
        );
        insta::assert_snapshot!(render(&checks, look), @r"
        ✓ cache     used
        ✗ root ./x  there is no folder
                    make it
        ");
    }
}
