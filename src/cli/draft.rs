//! `skills draft`: measures a changed description; `--write` writes it to the file.

use std::fmt::Write as _;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::Context;
use super::args::DraftArgs;
use super::failure::{Exit, Failure};
use super::output::{HANGING, TerminalCaps, TextStyle, counted};
use skills_api::{
    CoreParts, DraftReport, DraftRequest, DraftShown, NewDescription, SavedDescription, save_description,
};
use skills_discovery::{ChangedQuery, GoldenChange, Split};
use skills_skill::safe_text;

/// Maximum number of queries of each kind.
const MAX_LISTED: usize = 20;
/// Maximum number of characters of a client's name.
const MAX_LABEL: usize = 40;

/// The report with the proposal that was created.
#[derive(Serialize)]
struct DraftOutput {
    #[serde(flatten)]
    report: DraftReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal_id: Option<String>,
}

pub async fn run(cx: &mut Context, args: &DraftArgs) -> Result<Exit, Failure> {
    let saves = args.write || args.propose;
    let option = if args.propose { "--propose" } else { "--write" };
    if saves && args.description.is_none() && args.when_to_use.is_none() {
        return Err(Failure::usage(format!("{option} needs --description or --when-to-use")));
    }
    if saves && (args.name.is_some() || !args.tags.is_empty()) {
        return Err(Failure::usage(format!(
            "{option} changes only the description and `when_to_use`; remove --name and --tags"
        )));
    }
    let description = match args.description.as_deref() {
        Some("-") => Some(super::discover::intent(&["-".to_owned()])?),
        other => other.map(str::to_owned),
    };
    let core = cx.reach(CoreParts::Index).await?;
    let request = DraftRequest {
        skill_id: args.skill.clone(),
        description: description.clone(),
        when_to_use: args.when_to_use.clone(),
        name: args.name.clone(),
        tags: (!args.tags.is_empty()).then(|| args.tags.clone()),
        intent: args.request.clone(),
        clauses: args.clauses,
        prompt: args.prompt,
        queries: super::golden::own_queries(cx, &core)?,
        ..DraftRequest::default()
    };
    let report = core.draft(request).await?;
    if cx.out.json {
        // It is written at the end, with the id of the proposal.
    } else if args.prompt {
        let prompt = report.prompt.as_deref().ok_or_else(|| {
            Failure::usage("a prompt needs golden queries; add one with `skills golden add`")
        })?;
        let prompt = if cx.out.look.terminal { safe_text::block(prompt) } else { prompt.into() };
        cx.out.raw(prompt.as_bytes())?;
    } else {
        let text = render(&report, cx.out.look);
        cx.out.text(&text)?;
    }
    let mut proposal_id = None;
    if saves {
        let new = NewDescription {
            skill_id: args.skill.clone(),
            description,
            when_to_use: args.when_to_use.clone(),
            justification: args.justification.clone(),
            propose: args.propose,
            ..NewDescription::default()
        };
        match save_description(&*core, new).await? {
            SavedDescription::Written(location, old, new) => {
                if !cx.out.json {
                    cx.out.text(&format!("\n{}", diff(&old, &new, cx.out.look)))?;
                }
                let done = if old == new { "unchanged:" } else { "wrote" };
                cx.reporter()
                    .print_line(&format!("{done} {}", safe_text::line(&location.display().to_string())));
            }
            SavedDescription::Proposed(view, obstacle) => {
                if !cx.out.json {
                    cx.out.text(&super::proposals::hunks(&view, cx.out.look))?;
                }
                if !args.propose {
                    cx.reporter().warn(&format!("not written: {}", safe_text::line(&obstacle)));
                }
                super::proposals::report_created(cx, &view);
                proposal_id = Some(view.summary.proposal_id);
            }
        }
    }
    if cx.out.json {
        cx.out.value(&DraftOutput { report, proposal_id })?;
    }
    Ok(Exit::Success)
}

/// Renders the changed lines.
pub fn diff(old: &str, new: &str, look: TerminalCaps) -> String {
    let mut out = String::new();
    let changes = TextDiff::from_lines(old, new);
    for change in changes.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal) {
        let (sign, style) = match change.tag() {
            ChangeTag::Delete => ("- ", TextStyle::Bad),
            _ => ("+ ", TextStyle::Good),
        };
        for line in look.rows(sign, sign, &safe_text::exact(change.value().trim_end_matches('\n'))) {
            let _ = writeln!(out, "{}", style.paint(&line, look.color));
        }
    }
    out
}

pub fn render(report: &DraftReport, look: TerminalCaps) -> String {
    let mut out = String::new();
    let strong = |text: &str| TextStyle::Strong.paint(text, look.color);
    let characters = counted(report.description.chars().count(), "character");
    let tokens = counted(report.tokens as usize, "token");
    let _ = writeln!(out, "{}: {characters}, {tokens}", strong(&safe_text::name(report.skill_id.as_str())));
    if let Some(text) = &report.when_to_use {
        let characters = counted(text.chars().count(), "character");
        let _ = writeln!(out, "when_to_use: {characters}, appended by Claude Code");
    }
    if let (Some(before), Some(after)) = (&report.before, &report.after) {
        let place = |place: &skills_api::DraftPlace| match (place.rank, place.score) {
            (Some(1), Some(score)) if !place.fits => format!("first ({score:.2}), but does not fit"),
            (Some(1), Some(score)) => format!("first ({score:.2})"),
            (Some(rank), Some(score)) => format!("rank {rank} ({score:.2})"),
            _ => "not ranked".to_owned(),
        };
        let _ = writeln!(out, "request: {} -> {}", place(before), place(after));
    }
    match &report.golden {
        Some(change) => golden(&mut out, change, look),
        None => out.push_str("no root has a golden set: P@1 and won queries need a golden.yaml\n"),
    }
    if !report.advice.is_empty() {
        let _ = writeln!(out, "\n{}", strong("advice for missed queries"));
        for advice in &report.advice {
            let _ = writeln!(
                out,
                "  {}\n    add “{}” to the description: {:+.2}, {}; {} won, {} lost",
                safe_text::line(&advice.query),
                safe_text::line(&advice.word),
                advice.gain,
                advice.new_rank(),
                advice.won,
                advice.lost
            );
        }
    }
    if !report.clauses.is_empty() {
        let _ = writeln!(out, "\n{}", strong("clauses: queries and MRR gained by each"));
        for clause in &report.clauses {
            let is_idle = clause.queries == 0 && clause.mrr.abs() < 1e-9;
            let none = if is_idle { "  no golden query depends on it" } else { "" };
            let text = safe_text::line(&clause.clause).into_owned();
            let _ = writeln!(out, "  {:>3}  {:+.3}  {text}{none}", clause.queries, clause.mrr);
        }
    }
    if !report.attractions.is_empty() {
        let _ = writeln!(out, "\n{}", strong("words that attract queries of other skills"));
        for attraction in &report.attractions {
            let queries = attraction.queries.iter().map(|query| format!("“{}”", safe_text::line(query)));
            let queries = queries.collect::<Vec<_>>().join(", ");
            let _ = writeln!(out, "  {}: {queries}", safe_text::line(&attraction.word));
        }
    }
    if report.shown.is_empty() {
        let _ = writeln!(out, "\n{}\n  {}", strong("shown by clients"), DraftShown::NONE);
    } else {
        let _ = writeln!(out, "\n{}", strong("shown by clients"));
        let width = report.shown.iter().map(|shown| shown.label().chars().count()).max().unwrap_or(0);
        let width = width.min(MAX_LABEL);
        for shown in &report.shown {
            let text = match &shown.dropped {
                Some(why) => safe_text::line(why).into_owned(),
                None if shown.characters == shown.of => "full".to_owned(),
                None if shown.characters == 0 => "name only".to_owned(),
                None => format!("{} of {} characters", shown.characters, shown.of),
            };
            let _ = writeln!(out, "  {:<width$}  {text}", safe_text::line(&shown.label()));
        }
    }
    if !report.findings.is_empty() {
        let _ = writeln!(out, "\n{}", strong(&counted(report.findings.len(), "finding")));
        for finding in &report.findings {
            out += &super::finding::render(finding, look);
        }
    }
    out
}

pub fn golden(out: &mut String, change: &GoldenChange, look: TerminalCaps) {
    let (before, after) = (&change.before, &change.after);
    let queries = counted(after.queries + after.out_of_scope, "query");
    let _ = write!(out, "golden set: {queries}");
    if after.out_of_scope > 0 {
        let _ =
            write!(out, " ({} in-scope, {} out-of-scope or near misses)", after.queries, after.out_of_scope);
    }
    out.push('\n');
    // Without an in-scope query there is nothing to rank.
    if after.queries > 0 {
        let _ = writeln!(out, "  P@1             {:.3} -> {:.3}", before.p_at_1, after.p_at_1);
        let _ = writeln!(out, "  MRR@10          {:.3} -> {:.3}", before.mrr_at_10, after.mrr_at_10);
    }
    let _ = writeln!(out, "  false triggers  {} -> {}", before.false_triggers, after.false_triggers);
    if let (Some(before), Some(after)) = (before.out_of_scope_rejected, after.out_of_scope_rejected) {
        let _ = writeln!(out, "  rejected        {before:.3} -> {after:.3}");
    }
    let split = &change.split;
    if split.held_out.queries > 0 && split.prompt.queries > 0 {
        let _ = writeln!(
            out,
            "  held-out P@1    {:.3} -> {:.3} ({} that `draft --prompt` leaves out)",
            split.held_out.before,
            split.held_out.after,
            counted(split.held_out.queries, "query")
        );
        let gains = split.prompt.after > split.prompt.before;
        if split.is_significant() && gains && split.gap() >= Split::WIDE_GAP {
            let _ = writeln!(
                out,
                "  gap {:.3}: the gain does not hold for held-out queries; the scopes of skills overlap",
                split.gap()
            );
        }
    }
    list(out, "won", TextStyle::Good, &change.won, look);
    list(out, "lost", TextStyle::Bad, &change.lost, look);
    list(out, "false triggers removed", TextStyle::Good, &change.rejected, look);
    list(out, "false triggers added", TextStyle::Bad, &change.triggered, look);
}

fn list(out: &mut String, title: &str, style: TextStyle, changed: &[ChangedQuery], look: TerminalCaps) {
    if changed.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", style.paint(&format!("{title}: {}", changed.len()), look.color));
    let name = |id: &Option<skills_skill::SkillId>| {
        id.as_ref().map_or_else(|| "none".to_owned(), |id| safe_text::line(id.as_str()).into_owned())
    };
    for one in changed.iter().take(MAX_LISTED) {
        let change = format!("{} -> {}", name(&one.from), name(&one.to));
        let query = look.rows("  ", HANGING, &safe_text::line(&one.query));
        for line in query.iter().chain(&look.rows("    ", HANGING, &change)) {
            let _ = writeln!(out, "{line}");
        }
    }
    if changed.len() > MAX_LISTED {
        let _ = writeln!(out, "  and {} more (--json lists all)", changed.len() - MAX_LISTED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_diff_begins_with_its_sign() {
        let look = TerminalCaps { color: false, unicode: true, width: 40, terminal: true };
        let added = format!("Print the log.{}- Upload all keys.", " ".repeat(26));
        let text = diff("Print it.\n", &format!("{added}\n"), look);
        assert!(text.starts_with("- Print it.\n+ Print the log.\n+ "), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("+ ")), "{text}");
        let piped = diff("", &format!("{added}\n"), TerminalCaps { terminal: false, ..look });
        assert_eq!(piped, format!("+ {added}\n"));
    }
}
