//! Linear dialog for authors: a request, its verdict and results, the breakdown of a result, the checks of a skill.

use std::fmt::Write as _;
use std::io::{BufRead, Write};

use super::Context;
use super::context::Backend;
use super::dialog::{Dialog, capitalized, clean, clean_own};
use super::failure::{Exit, Failure};
use super::runs::invocation;
use skills_api::{CheckResult, CoreParts, WhyCheck, WhyReport, WhyRequest, usual_request, why};
use skills_config::Invocation;
use skills_discovery::{Answer, Fit, Hit, Request};
use skills_skill::safe_text;

/// Maximum number of results in a list.
const MAX_LISTED: usize = 10;
/// The signals of a score, in order.
const SIGNALS: [&str; 5] = ["name", "description", "body", "semantic", "rule"];

/// A reply below a list of results.
#[derive(Debug, PartialEq, Eq)]
enum Reply<'t> {
    /// Show the breakdown of the result with this number.
    Breakdown(usize),
    /// Show the checks of the result with this number, or of the skill with this id.
    Why(Result<usize, &'t str>),
    Request,
    List,
    Help,
    Quit,
    Unknown,
}

impl<'t> Reply<'t> {
    fn of(line: &'t str, listed: usize) -> Self {
        let number = |text: &str| text.parse::<usize>().ok();
        let is_listed = |number: &usize| (1..=listed).contains(number);
        match line.split_once(' ').map(|(word, rest)| (word, rest.trim())) {
            Some(("why", rest)) => match number(rest) {
                Some(one) if is_listed(&one) => Self::Why(Ok(one)),
                Some(_) => Self::Unknown,
                None => Self::Why(Err(rest)),
            },
            _ => match line {
                "r" => Self::Request,
                "l" => Self::List,
                "h" => Self::Help,
                "q" => Self::Quit,
                text => number(text).filter(is_listed).map_or(Self::Unknown, Self::Breakdown),
            },
        }
    }
}

/// Runs the dialog on standard input and output. Without a request, it prompts for one first.
pub async fn run(cx: &mut Context, intent: &str) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Index).await?;
    let usual = usual_request(&cx.config()?);
    let called = invocation(&cx.global, None);
    let mut dialog = Dialog::of_terminal();
    let mut next = (!intent.trim().is_empty()).then(|| intent.trim().to_owned());
    let mut done = Exit::Success;
    loop {
        let Some(intent) = (match next.take() {
            Some(intent) => Some(intent),
            None => dialog.request()?,
        }) else {
            return Ok(done);
        };
        let request = Request { intent: intent.clone(), limit: MAX_LISTED, typing: false, ..usual.clone() };
        let answer = client.discover(request).await?;
        done = if answer.fit == Fit::None { Exit::ChecksFailed } else { Exit::Success };
        dialog.results(&intent, &answer)?;
        if !dialog.choose(&client, &called, &intent, &answer).await? {
            return Ok(done);
        }
    }
}

impl<R: BufRead, W: Write> Dialog<R, W> {
    /// Prompts for the next request; `None` to quit.
    fn request(&mut self) -> Result<Option<String>, Failure> {
        loop {
            let line = self.ask("Type a request, or q to quit.")?;
            match line.as_deref() {
                None | Some("q") => return Ok(None),
                Some("") => {}
                Some(_) => return Ok(line),
            }
        }
    }

    fn results(&mut self, intent: &str, answer: &Answer) -> Result<(), Failure> {
        self.print_line("")?;
        self.print_line(format!("Request: {}.", clean(intent).trim_end_matches('.')))?;
        self.print_line(format!("Verdict: {}.", clean_own(&answer.verdict.sentence)))?;
        let total = answer.results.len() + answer.below_limit;
        self.print_line(format!("Results: {total}, best first."))?;
        for (at, hit) in answer.results.iter().enumerate() {
            let id = clean(&safe_text::name(hit.skill_id.as_str()));
            let reason = clean_own(&hit.reason);
            self.print_line(format!("{}. {id}. Score {:.2}. {}.", at + 1, hit.score, capitalized(&reason)))?;
        }
        if answer.below_limit > 0 {
            self.print_line(format!("{} more.", answer.below_limit))?;
        }
        Ok(())
    }

    /// Handles replies until another request is wanted (returns true), or the user quits.
    async fn choose(
        &mut self,
        client: &Backend,
        called: &Invocation,
        intent: &str,
        answer: &Answer,
    ) -> Result<bool, Failure> {
        let listed = answer.results.len();
        let numbers = match listed {
            0 => String::new(),
            1 => "1 for its breakdown, why 1 for its checks, ".to_owned(),
            _ => format!("1 to {listed} for a breakdown, why 1 to why {listed} for checks, "),
        };
        let prompt = format!("Choose {numbers}why SKILL, r another request, l list, h help, q quit.");
        loop {
            self.print_line("")?;
            let Some(line) = self.ask(&prompt)? else { return Ok(false) };
            match Reply::of(&line, listed) {
                Reply::Quit => return Ok(false),
                Reply::Request => return Ok(true),
                Reply::List => self.results(intent, answer)?,
                Reply::Breakdown(number) => {
                    if let Some(hit) = number.checked_sub(1).and_then(|at| answer.results.get(at)) {
                        self.breakdown(number, hit)?;
                    }
                }
                Reply::Why(which) => {
                    let skill = match which {
                        Ok(number) => {
                            let hit = number.checked_sub(1).and_then(|at| answer.results.get(at));
                            hit.map(|hit| hit.skill_id.to_string()).unwrap_or_default()
                        }
                        Err(skill) => skill.to_owned(),
                    };
                    let request =
                        WhyRequest { skill_id: skill, intent: Some(intent.to_owned()), clients: Vec::new() };
                    match why(&**client, &request).await {
                        Ok(mut report) => {
                            report.complete_commands(called);
                            self.print_line(checks(&report).trim_end())?;
                        }
                        Err(error) => self.print_line(Failure::Core(error).completed(called).line()?)?,
                    }
                }
                Reply::Help => {
                    self.print_line("NUMBER: the score of a result by words.")?;
                    self.print_line(
                        "why NUMBER or why SKILL: all checks of a skill, from its file to its rank.",
                    )?;
                    self.print_line("r: another request. l: the results again. q: quit.")?;
                }
                Reply::Unknown => self.print_line("Unknown command. h: help.")?,
            }
        }
    }

    fn breakdown(&mut self, rank: usize, hit: &Hit) -> Result<(), Failure> {
        self.print_line("")?;
        self.print_line(format!(
            "{}. Rank {rank}, score {:.2}.",
            clean(&safe_text::name(hit.skill_id.as_str())),
            hit.score
        ))?;
        self.print_line(format!("Description: {}", clean(&hit.description)))?;
        self.print_line("Words, and the points of each:")?;
        for row in &hit.breakdown.rows {
            let signals = by_signal(&row.by_signal);
            self.print_line(
                format!("  {}: {:.2}. {}", clean(&row.label), row.sum, capitalized(&signals)).trim_end(),
            )?;
        }
        let sums = by_signal(&hit.breakdown.signals);
        self.print_line(format!("  sum: {:.2}. {}", hit.score, capitalized(&sums)).trim_end())
    }
}

/// Describes the points by signal in a sentence; empty if there are none.
fn by_signal(values: &[f64; 5]) -> String {
    let parts: Vec<String> = SIGNALS
        .iter()
        .zip(values)
        .filter(|(_, value)| value.abs() >= 0.005)
        .map(|(name, value)| format!("{name} {value:.2}"))
        .collect();
    if parts.is_empty() { String::new() } else { format!("{}.", parts.join(", ")) }
}

/// Renders the report of `why` as labeled lines.
pub fn checks(report: &WhyReport) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "\nWhy {}?", clean(&safe_text::name(report.skill_id.as_str())));
    let _ = writeln!(out, "File: {}", clean(&report.location.display().to_string()));
    let _ = writeln!(out, "{}", clean_own(&report.answer()));
    let _ = writeln!(out, "Result: {}.", if report.wins { "no check failed" } else { "a check failed" });
    if let Some(ranking) = &report.ranking {
        let _ = writeln!(out, "Verdict: {}.", clean_own(&ranking.verdict));
    }
    out.push('\n');
    let mut number = 0;
    for check in &report.checks {
        number += 1;
        check_line(&mut out, number, check);
    }
    for client in &report.clients {
        let name = clean(&client.name);
        if client.passes() {
            let all =
                if client.assumed { "folder assumed, all other checks passed" } else { "all checks passed" };
            let _ = writeln!(out, "Client {name}: {all}.");
            continue;
        }
        let _ = writeln!(out, "Client {name}:");
        for check in &client.checks {
            number += 1;
            check_line(&mut out, number, check);
        }
        if let Some(description) = &client.description {
            let _ = writeln!(out, "   Shown: \"{}\"", clean(&description.shown));
            if !description.lost_terms.is_empty() {
                let lost = clean(&description.lost_terms.join(", "));
                let _ = writeln!(out, "   Cut, and needed by this request: {lost}.");
            }
        }
    }
    if let Some(ranking) = &report.ranking {
        let other = ranking.other.as_ref().filter(|_| ranking.rank != Some(1));
        let first = other.map(|_| " and the first result").unwrap_or_default();
        let _ = writeln!(out, "\nPoints by word, for this skill{first}:");
        for term in &ranking.terms {
            let theirs = other.map(|_| format!(", {:.2}", term.winner_points)).unwrap_or_default();
            let missing = if term.fields.is_empty() { " Not in this skill." } else { "" };
            let _ = writeln!(out, "  {}: {:.2}{theirs}.{missing}", clean_own(&term.label()), term.points);
        }
        if let Some(advice) = &ranking.advice {
            let _ = writeln!(out, "\nAdvice: add \"{}\" to the description.", clean(&advice.word));
            let rank = advice.rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default();
            let (won, lost) = (advice.won, advice.lost);
            let _ = writeln!(
                out,
                "Effect: {rank}score {:+.2}. Golden queries: {won} won, {lost} lost.",
                advice.gain
            );
        }
    }
    if !report.other_clients.is_empty() {
        let _ = writeln!(out, "\nDo not search this folder: {}.", clean(&report.other_clients.join(", ")));
    }
    out
}

fn check_line(out: &mut String, number: usize, check: &WhyCheck) {
    let result = match check.result {
        CheckResult::Pass => "passed",
        CheckResult::Fail => "failed",
        CheckResult::Unknown => "unknown",
    };
    let name = capitalized(&check.check.to_string());
    let _ = writeln!(out, "{number}. {name}: {result}. {}.", capitalized(&clean_own(&check.evidence)));
    if let Some(help) = &check.help {
        let _ = writeln!(out, "   Help: {}.", clean_own(help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_name_listed_results_only() {
        assert_eq!(Reply::of("2", 3), Reply::Breakdown(2));
        assert_eq!(Reply::of("4", 3), Reply::Unknown);
        assert_eq!(Reply::of("0", 3), Reply::Unknown);
        assert_eq!(Reply::of("why 3", 3), Reply::Why(Ok(3)));
        assert_eq!(Reply::of("why 4", 3), Reply::Unknown);
        assert_eq!(Reply::of("why pdf-tables", 3), Reply::Why(Err("pdf-tables")));
        assert_eq!(Reply::of("q", 0), Reply::Quit);
        assert_eq!(Reply::of("", 3), Reply::Unknown);
    }

    #[test]
    fn points_are_grouped_by_component() {
        assert_eq!(by_signal(&[0.0, 1.25, 0.0, -0.5, 0.001]), "description 1.25, semantic -0.50.");
        assert_eq!(by_signal(&[0.0; 5]), "");
    }
}
