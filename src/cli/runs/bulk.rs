//! `--where` of resume, cancel, signal, approve and deny: one command for every run that matches. The runs are listed
//! first, and the command is sent to each of them.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::commands::with_option;
use super::next_steps::Caller;
use super::plain::selection::{NumberedRun, Selection};
use super::reporter::{self, Reporter};
use super::{clock, plain, status, values};
use crate::Context;
use crate::args::DecideArgs;
use crate::dialog::{capitalized, clean};
use crate::failure::{Exit, Failure};
use crate::output::{
    HANGING, TerminalCaps, TextStyle, cells, counted, fit, inflected, push_painted, push_row,
};
use skills_api::{
    Code, CoreParts, DecisionPreview, Distinction, Error, RunClient, RunCommand, UNDONE, distinguish,
};
use skills_model::{CommandName, Gate, RunState, Verdict};
use skills_skill::{Digest, safe_text};
use skills_store::{RunFilter, RunRecord};

/// Runs read per page.
const PAGE: usize = 500;
/// Maximum number of runs for one command.
const MAX_RUNS: usize = 10_000;
/// Maximum number of runs whose reason an error names.
const MAX_NAMED_REASONS: usize = 5;

/// The outcome for one run.
#[derive(Debug, Serialize)]
struct RunOutcome {
    run: String,
    title: String,
    /// `done`, `repeated`, `skipped`, `refused`, or `failed` if the service or its store failed.
    outcome: &'static str,
    note: String,
}

/// The outcomes of all runs.
#[derive(Debug, Serialize)]
struct Report {
    runs: Vec<RunOutcome>,
}

/// Sends a command, with the other arguments of its command line, to every run that matches a filter.
pub async fn run(
    cx: &mut Context,
    filter: &str,
    yes: bool,
    (command, words): (CommandName, &[&str]),
    to_command: impl Fn(&RunRecord) -> RunCommand,
) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let runs = matching(&*client, filter).await?;
    let (mut takes, others): (Vec<&RunRecord>, Vec<&RunRecord>) =
        runs.iter().partition(|run| run.allowed.contains(&command));
    if takes.is_empty() {
        let others: Vec<_> = others.into_iter().map(|run| (run, state_clause(run))).collect();
        return Err(none_accepts(&others, &command.to_string()).into());
    }
    let mut skipped: Vec<SkippedRun<'_>> = Vec::new();
    // Without a question, each run reports it itself.
    if !yes {
        let is_resumed =
            |run: &&RunRecord| matches!(to_command(run), RunCommand::Resume { despite_change: false, .. });
        skipped = not_resumed(&*client, takes.iter().copied().filter(is_resumed)).await;
        takes.retain(|run| skipped.iter().all(|one| one.run.id != run.id));
    }
    if takes.is_empty() {
        return Err(none_resumed(&skipped, &others, &command.to_string()).into());
    }
    let name = command.to_string();
    let mut chosen = Selection::new(&name, &takes);
    if !yes {
        let mut reporter = cx.reporter();
        let words = [&["runs", &name], words, &["--where", filter, "--yes"]].concat();
        let means = Caller::of(&cx.global).line(&words);
        if cx.is_plain() {
            choose(&mut reporter, &mut chosen, (others.len(), &skipped), &means)?;
        } else {
            let text = listed(&name, &takes, &others, reporter.look);
            reporter.print_line(&(text + &will_be_skipped(&skipped)));
            confirm(&name, takes.len(), &means)?;
        }
    }
    let commands = chosen.runs.into_iter().map(|one| {
        let command = to_command(one.run).if_unchanged(one.run);
        (one, command)
    });
    send(cx, &*client, commands.collect()).await
}

/// A run that is not resumed with others.
pub struct SkippedRun<'r> {
    pub run: &'r RunRecord,
    /// Why the process that answers cannot check its skill; `None` if the skill changed since the launch.
    obstacle: Option<String>,
}

/// Returns the runs that are not resumed, because their skill changed since their launch or is not loaded.
pub async fn not_resumed<'r>(
    client: &(impl RunClient + ?Sized),
    runs: impl Iterator<Item = &'r RunRecord>,
) -> Vec<SkippedRun<'r>> {
    let mut skipped = Vec::new();
    for run in runs {
        // A run that cannot be read reports that itself.
        let Ok(detail) = client.run(&run.id.0).await else { continue };
        let obstacle = detail.resume_obstacle().map(str::to_owned);
        if obstacle.is_some() || detail.contract_unchanged == Some(false) {
            skipped.push(SkippedRun { run, obstacle });
        }
    }
    skipped
}

/// Describes which runs will be skipped, and why.
pub fn will_be_skipped(runs: &[SkippedRun<'_>]) -> String {
    let mut out = String::new();
    for (is_changed, one, several) in [
        (true, "its skill changed since the launch", "their skills changed since the launch"),
        (false, "its skill is not loaded", "their skills are not loaded"),
    ] {
        let of = runs.iter().filter(|skipped| skipped.obstacle.is_none() == is_changed);
        let ids: Vec<&str> = of.map(|skipped| status::short(&skipped.run.id.0)).collect();
        if !ids.is_empty() {
            let why = if ids.len() == 1 { one } else { several };
            let number = counted(ids.len(), "run");
            let _ = writeln!(out, "Will be skipped: {number}, because {why}: {}.", ids.join(", "));
        }
    }
    out
}

async fn matching(client: &(impl RunClient + ?Sized), filter: &str) -> Result<Vec<RunRecord>, Failure> {
    let mut request = RunFilter { r#where: Some(filter.to_owned()), limit: PAGE, ..RunFilter::default() };
    let mut runs: Vec<RunRecord> = Vec::new();
    loop {
        let page = client.runs(request.clone()).await?;
        runs.extend(page.runs);
        if runs.len() > MAX_RUNS {
            let message = format!("more than {MAX_RUNS} runs match {filter:?}; narrow the filter");
            return Err(Error::new(Code::InvalidRequest, message).into());
        }
        match page.next {
            Some(cursor) => request.cursor = Some(cursor),
            None => return Ok(runs),
        }
    }
}

fn state_clause(run: &RunRecord) -> String {
    if run.paused && run.state == RunState::Pending { "it is paused".to_owned() } else { run.state.clause() }
}

/// Returns the error of a command that none of the matching runs accepts, with the reason of each.
fn none_accepts(others: &[(&RunRecord, String)], command: &str) -> Error {
    let participle = match command {
        "approve" => "approved",
        "deny" => "denied",
        "resume" => "resumed",
        "signal" => "signaled",
        "cancel" => "canceled",
        other => other,
    };
    let mut message = match others.len() {
        0 => "no runs match the filter".to_owned(),
        1 => format!("the matching run cannot be {participle}: "),
        runs => format!("none of the {runs} matching runs can be {participle}: "),
    };
    let named = others.iter().take(MAX_NAMED_REASONS);
    let reasons: Vec<String> =
        named.map(|(run, why)| format!("{}: {why}", status::short(&run.id.0))).collect();
    message += &reasons.join("; ");
    if others.len() > MAX_NAMED_REASONS {
        let _ = write!(message, "; and {} more", others.len() - MAX_NAMED_REASONS);
    }
    Error::new(Code::InvalidTransition, message)
}

/// Returns the error for runs of which none accepts the command: because the skills of some changed or are not loaded, or
/// for their state.
fn none_resumed(skipped: &[SkippedRun<'_>], others: &[&RunRecord], command: &str) -> Error {
    let reasons = skipped.iter().map(|skipped| {
        let changed = || "its skill changed since the launch".to_owned();
        (skipped.run, skipped.obstacle.clone().unwrap_or_else(changed))
    });
    let others = others.iter().map(|run| (*run, state_clause(run)));
    let all: Vec<_> = reasons.chain(others).collect();
    let message = none_accepts(&all, command).message;
    if skipped.iter().all(|skipped| skipped.obstacle.is_some()) {
        return Error::new(Code::SkillChanged, message);
    }
    let runs = if all.len() == 1 { "it with the contract of its" } else { "runs with the contract of their" };
    Error::new(Code::SkillChanged, format!("{message}; --allow-changed-skill resumes {runs} launch"))
}

/// Prompts for the command and the number of runs; `means` is the command line without prompt.
fn confirm(command: &str, runs: usize, means: &str) -> Result<(), Failure> {
    let word = format!("{command} {runs}");
    let question = format!("Type `{word}` to confirm, or press Enter to abort:");
    if reporter::ask(&question, &format!("to confirm, run: {means}"))? != word {
        return Err(Error::new(Code::ConfirmationRequired, "not confirmed; no runs were changed").into());
    }
    Ok(())
}

/// Lists the runs by number and prompts for the command, or for runs to leave out.
fn choose(
    reporter: &mut Reporter,
    chosen: &mut Selection<'_>,
    (others, skipped): (usize, &[SkippedRun<'_>]),
    means: &str,
) -> Result<(), Failure> {
    let mut text = chosen.list(clock::now_ms());
    if others > 0 {
        let left = inflected(others, "other run matches", "other runs match");
        let _ = writeln!(text, "{left} but do not accept this command.");
    }
    text += &will_be_skipped(skipped);
    reporter.print_line(&text);
    loop {
        let answer = reporter::ask(&chosen.question(), &format!("to confirm, run: {means}"))?;
        if answer == chosen.confirmation() {
            return Ok(());
        }
        let Some(notice) = chosen.leave_out(&answer) else {
            return Err(Error::new(Code::ConfirmationRequired, "not confirmed; no runs were changed").into());
        };
        reporter.print_line(&notice);
    }
}

/// Sends a command to each run, and reports each outcome.
async fn send(
    cx: &mut Context,
    client: &(impl RunClient + ?Sized),
    commands: Vec<(NumberedRun<'_>, RunCommand)>,
) -> Result<Exit, Failure> {
    let (look, plain) = (cx.out.look, cx.is_plain());
    let caller = Caller::of(&cx.global);
    let mut report = Report { runs: Vec::new() };
    for (one, command) in commands {
        let run = one.run;
        let (outcome, note) = match client.send_command(&run.id.0, command).await {
            Ok(result) => (if result.repeated { "repeated" } else { "done" }, result.note),
            Err(error) => (error.outcome(), with_option(error).message),
        };
        let sent =
            RunOutcome { run: run.id.0.clone(), title: run.title_or_skill().to_owned(), outcome, note };
        if !cx.out.json {
            let mut text = String::new();
            push_painted(&mut text, look, |look| {
                caller.completed_in(&if plain { plain_row(&one, &sent) } else { row(&sent, look) })
            });
            cx.out.text(&text)?;
            cx.out.flush()?;
        }
        report.runs.push(sent);
    }
    let of = |outcome: &str| report.runs.iter().filter(|sent| sent.outcome == outcome).count();
    let all_done = UNDONE.into_iter().all(|outcome| of(outcome) == 0);
    if cx.out.json {
        cx.out.value(&report)?;
    } else {
        let parts: Vec<String> = ["done", "repeated"]
            .into_iter()
            .chain(UNDONE)
            .filter_map(|outcome| Some((of(outcome), outcome)).filter(|(count, _)| *count > 0))
            .map(|(count, outcome)| format!("{count} {outcome}"))
            .collect();
        let summary = parts.join(", ");
        cx.out.line(if plain { format!("Summary: {summary}.") } else { summary })?;
    }
    Ok(if all_done { Exit::Success } else { Exit::ChecksFailed })
}

/// Approves or denies the pending decision of every run that matches a filter, exactly as listed.
pub async fn decide(cx: &mut Context, args: &DecideArgs, verdict: Verdict) -> Result<Exit, Failure> {
    let filter = args.r#where.as_deref().unwrap_or_default();
    let client = cx.reach(CoreParts::Catalog).await?;
    let runs = matching(&*client, filter).await?;
    let caller = Caller::of(&cx.global);
    let mut takes: Vec<(&RunRecord, DecisionPreview)> = Vec::new();
    let mut others: Vec<(&RunRecord, String)> = Vec::new();
    for run in &runs {
        let preview = match run.state {
            RunState::WaitingForHuman => client.run(&run.id.0).await?.sheet,
            _ => None,
        };
        let Some(preview) = preview else {
            others.push((run, state_clause(run)));
            continue;
        };
        match obstacle(verdict, args.approver.as_deref(), &preview) {
            Some(why) => others.push((run, caller.completed_in(why))),
            None => takes.push((run, preview)),
        }
    }
    let name = verdict.to_string();
    if takes.is_empty() {
        return Err(none_accepts(&others, &name).into());
    }
    let chosen = Selection::new(&name, &takes.iter().map(|(run, _)| *run).collect::<Vec<_>>());
    let digest = set_digest(verdict, takes.iter().map(|(run, preview)| (run.id.0.as_str(), preview)));
    if !(args.yes && args.digest.as_ref() == Some(&digest)) {
        let mut reporter = cx.reporter();
        let plain = cx.is_plain();
        reporter.print_line(&if plain {
            labeled_decisions(&chosen, &takes, &others, &digest, &caller)
        } else {
            decisions(verdict, &takes, &others, &digest, reporter.look)
        });
        let mut words = vec!["runs", &name, "--where", filter, "--list-digest", &digest];
        let options = [("--approver", args.approver.as_deref()), ("--notes", args.notes.as_deref())];
        words.extend(
            options.into_iter().filter_map(|(option, value)| value.map(|value| [option, value])).flatten(),
        );
        words.push("--yes");
        let means = caller.line(&words);
        let refusal = match (&args.digest, args.yes) {
            (Some(expected), _) if *expected != digest => {
                Some("--list-digest does not match the listed runs")
            }
            (None, true) => Some("--yes requires --list-digest"),
            _ => None,
        };
        if let Some(why) = refusal {
            let message = format!("no decision made: {why}. To {verdict} the listed runs, run: {means}");
            let reason = Some(serde_json::json!({ "command": means }));
            return Err(Error { reason, ..Error::new(Code::ConfirmationRequired, message) }.into());
        }
        confirm(&name, takes.len(), &means)?;
    }
    let to_command = |preview: DecisionPreview| RunCommand::Decide {
        verdict,
        step: Some(preview.step),
        inputs_digest: Some(preview.inputs_digest),
        approver: args.approver.clone().or_else(|| preview.approver.map(|(name, _)| name)),
        notes: args.notes.clone(),
        choice: None,
        result: None,
    };
    let commands = chosen.runs.into_iter().zip(takes).map(|(one, (_, preview))| (one, to_command(preview)));
    send(cx, &*client, commands.collect()).await
}

/// Returns why a decision cannot be sent with others, or would be rejected, as far as it is known.
fn obstacle<'p>(verdict: Verdict, approver: Option<&str>, preview: &'p DecisionPreview) -> Option<&'p str> {
    if verdict == Verdict::Deny {
        return None;
    }
    let unknown = "the outcome of its step is unknown; decide it individually";
    // Who else may not approve is not known.
    let not_approver = preview.not_approver.as_deref().filter(|_| approver.is_none());
    preview.blocked.as_deref().or(preview.outcome_unknown.then_some(unknown)).or(not_approver)
}

/// Returns the digest of a set of decisions: of the verdict, and of run, step and inputs of each.
fn set_digest<'s>(
    verdict: Verdict,
    previews: impl Iterator<Item = (&'s str, &'s DecisionPreview)>,
) -> String {
    let mut lines: Vec<String> = previews
        .map(|(run, preview)| format!("{run} {} {}\n", preview.step, preview.inputs_digest))
        .collect();
    lines.sort();
    Digest::of(format!("{verdict}\n{}", lines.concat()).as_bytes()).to_string()
}

/// Maximum length of an input of a call in a list of decisions; of all inputs, if they are on one line.
const MAX_LISTED_INPUTS: usize = 2_000;

/// Appends a run with its title and a text, which has lines of its own if the row is wider than the terminal.
fn push_run(out: &mut String, run: &RunRecord, text: &str, style: Option<TextStyle>, look: TerminalCaps) {
    let width = look.text_width(usize::MAX);
    let title_width = width.saturating_sub(cells(HANGING)).min(44);
    let title = fit(&safe_text::line(run.title_or_skill()), title_width, look.unicode);
    let head = format!("  {}  {title}  ", status::short(&run.id.0));
    let paint = |text: &str| style.map_or_else(|| text.to_owned(), |style| style.paint(text, look.color));
    if cells(&head) + cells(text) <= width {
        let _ = writeln!(out, "{head}{}", paint(text));
        return;
    }
    let _ = writeln!(out, "{}", head.trim_end());
    for line in look.rows(HANGING, HANGING, text) {
        let _ = writeln!(out, "{}", paint(&line));
    }
}

/// Renders what would be decided, with the digest of each, and what would not.
fn decisions(
    verdict: Verdict,
    takes: &[(&RunRecord, DecisionPreview)],
    others: &[(&RunRecord, String)],
    digest: &str,
    look: TerminalCaps,
) -> String {
    let verb = capitalized(&verdict.to_string());
    let mut out = format!("{verb} {}:\n", counted(takes.len(), "run"));
    let distinction = distinguish(takes.iter().map(|(run, _)| *run));
    push_common(&mut out, &distinction, look);
    for ((run, preview), differs) in takes.iter().zip(distinction.lines("  ")) {
        push_run(&mut out, run, &safe_text::exact(&preview.headline), None, look);
        push_difference(&mut out, &differs, look);
        for (label, text) in [("reason", &preview.why), ("binding", &preview.binding)] {
            push_row(&mut out, &format!("      {label} "), &safe_text::exact(text), look);
        }
        for fallback in &preview.fallbacks {
            push_row(&mut out, "      or, if that fails, ", &safe_text::exact(fallback), look);
        }
        if look.terminal && !preview.inputs.is_null() {
            out.push_str("      inputs\n");
            out += &values::rows(&shortened(&preview.inputs), 8, look);
        } else if !preview.inputs.is_null() {
            let text = preview.inputs.to_string();
            let _ = writeln!(out, "      inputs {}", safe_text::exact(&cut(&text).unwrap_or(text)));
        }
        let inputs =
            format!("{}, inputs digest {}", status::approval_phrase(&preview.step), preview.inputs_digest);
        for line in look.rows("      ", HANGING, &safe_text::line(&inputs)) {
            let _ = writeln!(out, "{}", TextStyle::Muted.paint(&line, look.color));
        }
        for file in &preview.files {
            push_row(&mut out, "      file ", &safe_text::exact(&file.text()), look);
        }
        if let Some(target) = &preview.target {
            push_row(&mut out, "      attached to ", &safe_text::exact(&target.text()), look);
        }
        let warning = preview.irreversible.iter();
        for line in warning.flat_map(|warning| look.rows("      ", HANGING, &safe_text::line(warning))) {
            let _ = writeln!(out, "{}", TextStyle::Warn.paint(&line, look.color));
        }
    }
    for (run, why) in others {
        let left = format!("skipped: {}: {}", status::short(&run.id.0), safe_text::line(why));
        for line in look.rows("  ", HANGING, &left) {
            let _ = writeln!(out, "{}", TextStyle::Muted.paint(&line, look.color));
        }
    }
    let _ = writeln!(out, "digest: {digest}");
    out
}

/// Appends what all runs of a list have in common, which their rows do not repeat.
fn push_common(out: &mut String, distinction: &Distinction, look: TerminalCaps) {
    let title = distinction.title.as_deref().unwrap_or_default();
    for (label, text) in [
        ("title", title),
        ("inputs", &*distinction.inputs),
        ("labels", &*distinction.labels),
        ("attached to", &*distinction.target),
    ] {
        if !text.is_empty() {
            push_row(out, &format!("  the same in all: {label} "), text, look);
        }
    }
}

/// Appends what distinguishes a run from the others of a list.
fn push_difference(out: &mut String, differs: &str, look: TerminalCaps) {
    if differs.is_empty() {
        return;
    }
    for line in look.rows("      ", HANGING, differs) {
        let _ = writeln!(out, "{line}");
    }
}

/// Truncates each long input.
fn shortened(inputs: &Value) -> Value {
    let short = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        cut(&text).map_or_else(|| value.clone(), Value::from)
    };
    match inputs {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), short(value))).collect(),
        other => short(other),
    }
}

/// Truncates a long text, with the number of the omitted bytes; `None` if it is not long.
fn cut(text: &str) -> Option<String> {
    let (end, _) = text.char_indices().nth(MAX_LISTED_INPUTS)?;
    Some(format!("{}… {} bytes more", &text[..end], text.len() - end))
}

/// Renders the same as labeled lines.
fn labeled_decisions(
    chosen: &Selection<'_>,
    takes: &[(&RunRecord, DecisionPreview)],
    others: &[(&RunRecord, String)],
    digest: &str,
    caller: &Caller,
) -> String {
    let now_ms = clock::now_ms();
    let mut out = chosen.heading();
    for (one, (_, preview)) in chosen.runs.iter().zip(takes) {
        let _ = writeln!(out, "{}", one.line(now_ms));
        let _ = writeln!(out, "{}", plain::text::decision_preview(preview, caller, false).trim());
    }
    for (run, why) in others {
        let _ = writeln!(out, "Skipped: run {}, {}.", status::short(&run.id.0), clean(why));
    }
    let _ = writeln!(out, "Digest: {digest}.");
    out
}

fn plain_row(one: &NumberedRun<'_>, sent: &RunOutcome) -> String {
    let (number, name, id) = (one.number, &one.name, status::short(&sent.run));
    format!("{number}. {name}. Run {id}. {}: {}.", capitalized(sent.outcome), clean(&sent.note))
}

fn row(sent: &RunOutcome, look: TerminalCaps) -> String {
    let style = match sent.outcome {
        "done" | "repeated" => TextStyle::Good,
        _ => TextStyle::Bad,
    };
    format!(
        "{}  {}  {}: {}",
        status::short(&sent.run),
        fit(&safe_text::line(&sent.title), 36, look.unicode),
        style.paint(sent.outcome, look.color),
        safe_text::line(&sent.note),
    )
}

/// Renders the runs to which the command would be sent.
fn listed(command: &str, takes: &[&RunRecord], others: &[&RunRecord], look: TerminalCaps) -> String {
    let mut out = format!("{} {}:\n", capitalized(command), counted(takes.len(), "run"));
    let resumes = command == CommandName::Resume.to_string();
    let distinction = distinguish(takes.iter().copied());
    push_common(&mut out, &distinction, look);
    for (run, differs) in takes.iter().zip(distinction.lines("  ")) {
        let why = match &run.gate {
            Some(Gate::Signal { step, name }) => format!("{step} is waiting for the signal {name}"),
            _ if run.paused && run.state == RunState::Pending => "paused".to_owned(),
            _ => run.failure().unwrap_or_else(|| run.state.label().to_owned()),
        };
        let from = if resumes { format!(", from checkpoint {}", run.head) } else { String::new() };
        let why = why + &from;
        push_run(&mut out, run, &safe_text::line(&why), Some(TextStyle::Muted), look);
        push_difference(&mut out, &differs, look);
    }
    if !others.is_empty() {
        let left = inflected(others.len(), "other run matches", "other runs match");
        let _ = writeln!(out, "{left} but do not accept this command.");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples::{caller, detail};

    const CAPS: TerminalCaps = TerminalCaps { color: false, unicode: true, width: 100, terminal: true };

    #[test]
    fn digest_of_a_set_ignores_the_order_of_decisions() {
        let preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        let other = DecisionPreview { inputs_digest: "00".repeat(32), ..preview.clone() };
        let of =
            |previews: &[(&str, &DecisionPreview)], verdict| set_digest(verdict, previews.iter().copied());
        let both = of(&[("a", &preview), ("b", &preview)], Verdict::Approve);
        assert_eq!(both, of(&[("b", &preview), ("a", &preview)], Verdict::Approve));
        assert_ne!(both, of(&[("a", &preview), ("b", &other)], Verdict::Approve), "other inputs");
        assert_ne!(both, of(&[("a", &preview)], Verdict::Approve), "another set");
        assert_ne!(both, of(&[("a", &preview), ("b", &preview)], Verdict::Deny), "another verdict");
    }

    #[test]
    fn an_approval_that_would_be_rejected_is_left_out() {
        let not_approver = Some("a person other than ana must approve".to_owned());
        let preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        assert_eq!(obstacle(Verdict::Approve, None, &preview), None);
        let preview = DecisionPreview { not_approver, ..preview };
        assert_eq!(obstacle(Verdict::Approve, None, &preview), preview.not_approver.as_deref());
        assert_eq!(obstacle(Verdict::Approve, Some("bo"), &preview), None);
        assert_eq!(obstacle(Verdict::Deny, None, &preview), None);
        let preview = DecisionPreview { outcome_unknown: true, ..preview };
        assert!(obstacle(Verdict::Approve, Some("bo"), &preview).unwrap().contains("individually"));
    }

    #[test]
    fn runs_that_accept_no_command_are_named_with_the_reason() {
        let run = detail(RunState::WaitingForSignal).run;
        let message = |others: &[(&RunRecord, String)]| none_accepts(others, "approve").message;
        let why = run.state.clause();
        let id = status::short(&run.id.0);
        let one = message(&[(&run, why.clone())]);
        assert_eq!(one, format!("the matching run cannot be approved: {id}: it is waiting for a signal"));
        let many = message(&std::iter::repeat_n((&run, why), 7).collect::<Vec<_>>());
        assert!(many.starts_with("none of the 7 matching runs can be approved: "), "{many}");
        assert!(many.ends_with("; and 2 more"), "{many}");
        assert_eq!(message(&[]), "no runs match the filter");
        let changed = |obstacle| [SkippedRun { run: &run, obstacle }];
        let error = none_resumed(&changed(None), &[], "resume");
        assert_eq!(error.code, Code::SkillChanged);
        let expected = format!(
            "the matching run cannot be resumed: {id}: its skill changed since the launch; --allow-changed-skill \
             resumes it with the contract of its launch"
        );
        assert_eq!(error.message, expected);
        let both = none_resumed(&changed(None), &[&run], "resume").message;
        assert!(both.starts_with("none of the 2 matching runs can be resumed: "), "{both}");
        let unloaded = changed(Some("it was launched from skills that are not loaded".to_owned()));
        let message = none_resumed(&unloaded, &[], "resume").message;
        assert!(message.ends_with(": it was launched from skills that are not loaded"), "{message}");
        let listed = format!("Will be skipped: 1 run, because its skill is not loaded: {id}.\n");
        assert_eq!(will_be_skipped(&unloaded), listed);
    }

    #[test]
    fn labeled_decisions_distinguish_the_runs() {
        let detail = detail(RunState::WaitingForHuman);
        let preview = detail.sheet.clone().unwrap();
        let run = |n: u32| RunRecord { inputs: serde_json::json!({ "n": n }), ..detail.run.clone() };
        let (one, other) = (run(10), run(200));
        let chosen = Selection::new("approve", &[&one, &other]);
        let text = labeled_decisions(
            &chosen,
            &[(&one, preview.clone()), (&other, preview)],
            &[],
            "0a",
            &caller(&[]),
        );
        assert!(text.starts_with("Approve 2 runs. The same in all: "), "{text}");
        assert!(text.contains("n=10. Run ") && text.contains("n=200. Run "), "{text}");
    }

    #[test]
    fn common_values_of_all_runs_are_listed() {
        let run = |n: u32| {
            let mut run = detail(RunState::Failed).run;
            run.options.title = Some(format!("Payment {n}"));
            run.options.labels = [("env".to_owned(), "prod".to_owned())].into();
            run.inputs = serde_json::json!({ "amount": n, "to": "mallory" });
            run
        };
        let (one, other) = (run(1), run(2));
        let text = listed("resume", &[&one, &other], &[], CAPS);
        let common = "  the same in all: inputs to=mallory\n  the same in all: labels env=prod\n";
        assert!(text.starts_with(&format!("Resume 2 runs:\n{common}")), "{text}");
        let text = listed("resume", &[&one, &one], &[], CAPS);
        assert!(text.contains("  the same in all: title Payment 1\n"), "{text}");
        assert!(text.contains("  the same in all: inputs amount=1  to=mallory\n"), "{text}");
        let text = listed("resume", &[&one], &[], CAPS);
        assert!(!text.contains("the same in all") && text.contains("to=mallory"), "{text}");
        let preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        let both = [(&one, preview.clone()), (&other, preview)];
        let text = decisions(Verdict::Approve, &both, &[], "0a", CAPS);
        assert!(text.contains(common), "{text}");
    }

    #[test]
    fn each_decision_is_listed_with_its_digest() {
        let detail = detail(RunState::WaitingForHuman);
        let preview = detail.sheet.clone().unwrap();
        let digest = preview.inputs_digest.clone();
        let text = decisions(
            Verdict::Approve,
            &[(&detail.run, preview)],
            &[(&detail.run, RunState::Failed.clause())],
            "0a",
            CAPS,
        );
        assert!(text.starts_with("Approve 1 run:\n"), "{text}");
        assert!(text.contains(&format!("inputs digest {digest}")), "{text}");
        assert!(text.contains("skipped: ") && text.ends_with("digest: 0a\n"), "{text}");
        assert!(text.contains("      inputs\n        total     1204.5\n"), "{text}");
        let (name, path) = ("a\ndigest: 0b".to_owned(), "/srv/pay.csv".to_owned());
        let forged = DecisionPreview {
            files: vec![skills_api::SuppliedFile { name, path, sha256: None }],
            step: "a\ndigest: 0b".to_owned(),
            inputs_digest: "00\ndigest: 0b".to_owned(),
            ..detail.sheet.clone().unwrap()
        };
        let text = decisions(Verdict::Approve, &[(&detail.run, forged)], &[], "0a", CAPS);
        assert_eq!(text.lines().filter(|line| line.starts_with("digest: ")).count(), 1, "{text}");
        assert!(text.contains("/srv/pay.csv  sha256 not recorded\n"), "{text}");
    }

    #[test]
    fn no_text_of_a_decision_begins_a_row() {
        let detail = detail(RunState::WaitingForHuman);
        let row = |text: &str| format!("x{}{text}", " ".repeat(CAPS.width));
        let forged = DecisionPreview {
            headline: row("  7f3c19aa  pay"),
            why: row("      reason approved"),
            binding: row("      binding none"),
            fallbacks: vec![row("      binding none")],
            inputs: serde_json::json!({ "about": row("      inputs"), "amount": 90_000, "long": "z".repeat(3_000) }),
            ..detail.sheet.clone().unwrap()
        };
        let others = [(&detail.run, row("  skipped: 8d1e40aa: it is completed"))];
        let text = decisions(Verdict::Approve, &[(&detail.run, forged.clone())], &others, "0a", CAPS);
        assert!(text.lines().all(|line| cells(line) <= CAPS.width), "{text}");
        let begin = |begin: &str| text.lines().filter(|line| line.starts_with(begin)).count();
        let rows = ["      reason ", "      binding ", "      inputs", "        amount", "  skipped: "];
        assert_eq!(rows.map(begin), [1; 5], "{text}");
        assert_eq!(begin("  7f3c19aa"), 0, "{text}");
        assert!(text.contains("… 1000 bytes") && text.contains("        amount  90000\n"), "{text}");
        let piped = TerminalCaps { terminal: false, ..CAPS };
        let text = decisions(Verdict::Approve, &[(&detail.run, forged)], &others, "0a", piped);
        assert!(text.lines().any(|line| line.starts_with("      inputs {\"about\":\"x    ")), "{text}");
    }
}
