//! `skills discover`: ranks skills for a request and explains the ranking.

use std::fmt::Write as _;
use std::io::Read as _;

use super::args::DiscoverArgs;
use super::context::Backend;
use super::failure::{Exit, Failure};
use super::output::{TerminalCaps, TextStyle, counted, cut, elapsed_micros, inflected, push_painted, wrap};
use super::{Context, bar, breakdown};
use skills_api::{Code, CoreParts, Error, usual_request};
use skills_discovery::{Answer, Correction, Fit, Group, Hit, MatcherState, Request, Weights};
use skills_skill::safe_text;

/// Note shown with every ranking.
pub const RANKING_DISCLAIMER: &str = "Ranked by Skill Workbench; a client's model may choose differently.";

/// Maximum number of omitted results named.
const LEFT_OUT: usize = 5;

pub async fn run(cx: &mut Context, args: &DiscoverArgs) -> Result<Exit, Failure> {
    let intent = intent(&args.intent)?;
    if !cx.out.json && (cx.global.plain || cx.config()?.plain) {
        return super::plain::run(cx, &intent).await;
    }
    if args.intent.is_empty() {
        return Err(Failure::usage("missing request; for example: `skills discover \"clean this csv\"`"));
    }
    let client = cx.reach(CoreParts::Index).await?;
    let usual = usual_request(&cx.config()?);
    let request = Request {
        intent,
        domain: args.domain.clone(),
        role_filter: args.role,
        limit: args.limit.unwrap_or(usual.limit),
        policy: args.policy.unwrap_or(usual.policy),
        with_body: usual.with_body && !args.no_body,
        typing: false,
        include_deprecated: args.include_deprecated,
        ..Request::default()
    };
    let answer = client.discover(request.clone()).await?;
    if !cx.out.json {
        super::failure::warn(&answer.hints);
    }
    if cx.out.json {
        cx.out.value(&answer)?;
    } else {
        let mut text = render(&answer, &request, cx.out.look);
        if let Some(requested) = &args.skill {
            text += &explained(&client, requested, &answer, &request, cx.out.look).await?;
        } else if args.explain {
            for (place, hit) in answer.results.iter().take(args.top).enumerate() {
                text += &breakdown::render(place + 1, hit, cx.out.look);
            }
        }
        let _ = writeln!(text, "\n{}", cx.out.paint(TextStyle::Muted, RANKING_DISCLAIMER));
        cx.out.text(&text)?;
    }
    Ok(if answer.fit == Fit::None { Exit::ChecksFailed } else { Exit::Success })
}

/// Returns the request from the command line, or from standard input for a single `-`.
pub(super) fn intent(words: &[String]) -> Result<String, Failure> {
    if words != ["-"] {
        return Ok(words.join(" "));
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|e| Failure::usage(format!("cannot read the request from standard input: {e}")))?;
    Ok(text.trim().to_owned())
}

/// Returns the breakdown of one skill, requested by its id if it is not among the results.
async fn explained(
    client: &Backend,
    requested: &str,
    answer: &Answer,
    request: &Request,
    look: TerminalCaps,
) -> Result<String, Failure> {
    let id = client.describe(requested).await?.summary.skill_id;
    if let Some((place, hit)) = answer.results.iter().enumerate().find(|(_, hit)| hit.skill_id == id) {
        return Ok(breakdown::render(place + 1, hit, look));
    }
    let alone = Request { skill: Some(id.clone()), limit: 1, ..request.clone() };
    let all = client.discover(alone).await?;
    if let Some(hit) = all.results.first() {
        return Ok(breakdown::render(hit.rank.unwrap_or(1), hit, look));
    }
    let why = match (all.excluded.first(), all.attachable.first()) {
        (Some(left), _) => format!("it is excluded: {}", left.why),
        (None, Some(_)) => "it is a sidecar: attached to a target, not ranked".to_owned(),
        (None, None) => "it does not match the request".to_owned(),
    };
    let message = format!("{} has no score for this request: {why}", safe_text::name(id.as_str()));
    Err(Error::new(Code::NotFound, message).into())
}

pub fn render(answer: &Answer, request: &Request, look: TerminalCaps) -> String {
    let mut out = String::new();
    let dot = if look.unicode { "·" } else { "-" };
    push_painted(&mut out, look, |look| {
        let took = elapsed_micros(answer.took_us);
        format!("{} {dot} {} {dot} {took}", fit_line(answer, look), counted(answer.skills, "skill"))
    });
    for line in readings(answer, &request.intent).iter().chain(&limitations(answer)) {
        let _ = writeln!(
            out,
            "{}",
            TextStyle::Muted.paint(&cut(line, look.text_width(usize::MAX), look.unicode), look.color)
        );
    }
    let best = answer.results.iter().map(|hit| hit.score).fold(bar::SCALE, f64::max);
    if !answer.results.is_empty() {
        out.push('\n');
    }
    for (place, hit) in (1..).zip(&answer.results) {
        result(&mut out, place, hit, best, answer, look);
    }
    if answer.below_limit > 0 {
        let text =
            format!("{}; --limit shows more", inflected(answer.below_limit, "more result", "more results"));
        let _ = writeln!(out, "    {}", TextStyle::Muted.paint(&text, look.color));
    }
    if !answer.results.is_empty() {
        let _ = writeln!(out, "\n  {}", bar::legend(look));
    }
    print_sidecars(&mut out, answer, look);
    out
}

/// Renders the verdict, with its sign.
fn fit_line(answer: &Answer, look: TerminalCaps) -> String {
    let (sign, style) = match answer.fit {
        Fit::High | Fit::Medium => (if look.unicode { "✓" } else { "+" }, TextStyle::Good),
        Fit::Low => ("!", TextStyle::Warn),
        Fit::None => (if look.unicode { "○" } else { "o" }, TextStyle::Strong),
    };
    style.paint(&format!("{sign} {}", safe_text::line(&answer.verdict.sentence)), look.color)
}

/// Describes how unknown words were interpreted.
fn readings(answer: &Answer, intent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for word in &answer.words {
        let as_written = intent.get(word.start as usize..word.end as usize).unwrap_or_default();
        let as_written = safe_text::line(as_written);
        match &word.correction {
            Some(Correction::Typo(read)) if read.eq_ignore_ascii_case(&as_written) => {}
            Some(Correction::Typo(read)) => lines.push(format!("interpreted {as_written} as {read}")),
            Some(Correction::Completed(to)) => {
                lines.push(format!("completed {as_written} to {}", to.join(", ")));
            }
            Some(Correction::Dropped) => lines.push(format!("ignored {as_written}")),
            None => {}
        }
    }
    let unknown: Vec<_> = answer.unknown_words(intent).map(safe_text::line).collect();
    if !unknown.is_empty() {
        lines.push(format!("unknown words: {}", unknown.join(", ")));
    }
    lines
}

/// Describes matchers that failed or were skipped.
fn limitations(answer: &Answer) -> Vec<String> {
    let mut lines: Vec<String> = answer
        .matchers
        .iter()
        .filter_map(|link| match &link.state {
            MatcherState::Failed(why) => {
                Some(format!("{} was skipped: {}", link.matcher, safe_text::line(why)))
            }
            _ => None,
        })
        .collect();
    if answer.bodies_missing > 0 {
        lines.push(format!("{} not indexed yet", inflected(answer.bodies_missing, "body is", "bodies are")));
    }
    lines
}

fn result(out: &mut String, place: usize, hit: &Hit, best: f64, answer: &Answer, look: TerminalCaps) {
    // Rank, name, score and bar in one row of at most 80 cells; on wider terminals the name has more space.
    let bar_width = 24;
    let name_width = (look.width.min(120) - bar_width - 4 - 2 - 6 - 2).max(12);
    let name = look.name(&safe_text::name(hit.skill_id.as_str()), name_width);
    let fit_threshold = answer.confidence.map(|confidence| confidence.fit_threshold);
    let bar = bar::stacked(&hit.breakdown.signals, hit.score, best, fit_threshold, bar_width, look);
    let style = if answer.fit == Fit::None { TextStyle::Muted } else { TextStyle::Strong };
    let row = format!("{place:>3} {} {:>6.2}  {bar}", style.paint(&name, look.color), hit.score);
    let _ = writeln!(out, "{}", row.trim_end());
    let mut notes = vec![hit.reason.clone()];
    if hit.name != hit.skill_id.as_str() {
        notes.push(format!("its name is {}", hit.name));
    }
    if let Some(note) = &hit.exclusion_note {
        notes.push(format!("exclusion clause: {note}"));
    }
    if hit.group != Group::Primary {
        notes.push(format!("role {}", hit.role));
    }
    if hit.status != "stable" {
        notes.push(format!("status {}", hit.status));
    }
    for note in notes {
        for line in wrap(&safe_text::line(&note), look.text_width(100) - 4) {
            let _ = writeln!(out, "    {}", TextStyle::Muted.paint(&line, look.color));
        }
    }
}

fn print_sidecars(out: &mut String, answer: &Answer, look: TerminalCaps) {
    let id_width = (look.width.min(120) - 40).clamp(16, 48);
    if !answer.attachable.is_empty() {
        let _ = writeln!(out, "\n{}", TextStyle::Strong.paint("sidecars, not ranked", look.color));
        for sidecar in &answer.attachable {
            let targets: Vec<String> = sidecar.attach_targets.iter().map(ToString::to_string).collect();
            let id = look.name(&safe_text::name(sidecar.skill_id.as_str()), id_width);
            let targets = safe_text::line(&targets.join(", ")).into_owned();
            push_painted(out, look, |_| format!("    {id} {:>6.2}  attaches to {targets}", sidecar.score));
        }
    }
    if !answer.excluded.is_empty() {
        let _ = writeln!(out, "\n{}", TextStyle::Strong.paint("excluded", look.color));
    }
    for left in answer.excluded.iter().take(LEFT_OUT) {
        let id = look.name(&safe_text::name(left.skill_id.as_str()), id_width);
        let why = cut(&safe_text::line(&left.why), look.text_width(usize::MAX) - id_width - 13, look.unicode);
        let _ = writeln!(out, "    {id} {:>6.2}  {}", left.score, TextStyle::Muted.paint(&why, look.color));
    }
    if answer.excluded.len() > LEFT_OUT {
        let more = answer.excluded.len() - LEFT_OUT;
        // An answer contains the first of them only.
        let limit = Weights::shipped().map_or(usize::MAX, |weights| weights.limits.excluded);
        let more = if answer.excluded.len() < limit {
            format!("and {more} more (--json lists all)")
        } else {
            format!("and at least {more} more (--json lists the first {})", answer.excluded.len())
        };
        let _ = writeln!(out, "    {}", TextStyle::Muted.paint(&more, look.color));
    }
}
