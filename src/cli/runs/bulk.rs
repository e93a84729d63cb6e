//! `--where` of resume, cancel and deny: one command for every run that matches, listed first, sent one by one.

use std::fmt::Write as _;

use serde::Serialize;

use super::next_steps::Caller;
use super::{reporter, status};
use crate::Context;
use crate::failure::{Done, Failure};
use crate::output::{TerminalCaps, TextStyle, counted, fit};
use skills_api::{Code, Error, Needs, RunOrder};
use skills_model::CommandName;
use skills_skill::safe_text;
use skills_store::{RunFilter, RunRecord};

/// Runs of one question.
const PAGE: usize = 500;
/// Runs that one command is sent to.
const MAX_RUNS: usize = 10_000;

/// The outcome for one run.
#[derive(Debug, Serialize)]
struct Sent {
    run: String,
    title: String,
    /// `done`, `repeated`, `skipped` or `refused`.
    outcome: &'static str,
    note: String,
}

/// Everything that was sent.
#[derive(Debug, Serialize)]
struct Report {
    runs: Vec<Sent>,
}

/// Sends a command to every run that matches a filter.
pub async fn run(
    cx: &mut Context,
    filter: &str,
    yes: bool,
    command: CommandName,
    order: impl Fn(&RunRecord) -> RunOrder,
) -> Result<Done, Failure> {
    let client = cx.reach(Needs::Catalogue).await?;
    let mut asked = RunFilter { r#where: Some(filter.to_owned()), limit: PAGE, ..RunFilter::default() };
    let mut runs: Vec<RunRecord> = Vec::new();
    loop {
        let page = client.runs(asked.clone()).await?;
        runs.extend(page.runs);
        if runs.len() > MAX_RUNS {
            let message = format!("more than {MAX_RUNS} runs match {filter:?}; narrow the filter");
            return Err(Error::new(Code::InvalidRequest, message).into());
        }
        match page.next {
            Some(cursor) => asked.cursor = Some(cursor),
            None => break,
        }
    }
    let (takes, others): (Vec<&RunRecord>, Vec<&RunRecord>) =
        runs.iter().partition(|run| run.allowed.contains(&command));
    let look = cx.out.look;
    if takes.is_empty() {
        let message = format!(
            "{} {}, and none of them accepts {command}",
            counted(runs.len(), "run", "runs"),
            if runs.len() == 1 { "matches" } else { "match" }
        );
        return Err(Error::new(Code::InvalidTransition, message).into());
    }
    let verb = capitalized(&command.to_string());
    if !yes {
        let mut voice = cx.reporter();
        voice.say(&listed(&verb, &takes, &others, voice.look));
        let word = format!("{command} {}", takes.len());
        let means = Caller::of(&cx.global).line(&["runs", &command.to_string(), "--where", filter, "--yes"]);
        let question = format!("Type `{word}` to send it, or press Enter to cancel:");
        if reporter::ask(&question, &format!("to send it, run: {means}"))? != word {
            let message = "nothing was sent".to_owned();
            return Err(Error::new(Code::ConfirmationRequired, message).into());
        }
    }
    let mut report = Report { runs: Vec::new() };
    for run in takes {
        let (outcome, note) = match client.order(&run.id.0, order(run)).await {
            Ok(ordered) => (if ordered.repeated { "repeated" } else { "done" }, ordered.note),
            Err(error) => {
                let skipped = matches!(error.code, Code::SkillChanged | Code::InvalidTransition);
                (if skipped { "skipped" } else { "refused" }, error.message)
            }
        };
        let sent = Sent { run: run.id.0.clone(), title: run.title_or_skill().to_owned(), outcome, note };
        if !cx.out.json {
            cx.out.line(row(&sent, look))?;
            cx.out.flush()?;
        }
        report.runs.push(sent);
    }
    let of = |outcome: &str| report.runs.iter().filter(|sent| sent.outcome == outcome).count();
    let all_done = of("skipped") + of("refused") == 0;
    if cx.out.json {
        cx.out.value(&report)?;
    } else {
        let parts: Vec<String> = ["done", "repeated", "skipped", "refused"]
            .into_iter()
            .filter_map(|outcome| Some((of(outcome), outcome)).filter(|(count, _)| *count > 0))
            .map(|(count, outcome)| format!("{count} {outcome}"))
            .collect();
        cx.out.line(parts.join(", "))?;
    }
    Ok(if all_done { Done::Fine } else { Done::Findings })
}

fn row(sent: &Sent, look: TerminalCaps) -> String {
    let ink = match sent.outcome {
        "done" | "repeated" => TextStyle::Good,
        _ => TextStyle::Bad,
    };
    format!(
        "{}  {}  {}: {}",
        status::short(&sent.run),
        fit(&safe_text::line(&sent.title), 36, look.unicode),
        ink.paint(sent.outcome, look.colour),
        safe_text::line(&sent.note),
    )
}

/// What the command would be sent to.
fn listed(verb: &str, takes: &[&RunRecord], others: &[&RunRecord], look: TerminalCaps) -> String {
    let mut out = format!("{verb} {}:\n", counted(takes.len(), "run", "runs"));
    for run in takes {
        let why = run.failure().map(|why| safe_text::line(&why).into_owned()).unwrap_or_default();
        let _ = writeln!(
            out,
            "  {}  {}  {}",
            status::short(&run.id.0),
            fit(&safe_text::line(run.title_or_skill()), 44, look.unicode),
            TextStyle::Muted.paint(&why, look.colour),
        );
    }
    if !others.is_empty() {
        let left = counted(others.len(), "other run matches", "other runs match");
        let _ = writeln!(out, "{left} but cannot take this command.");
    }
    out
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
