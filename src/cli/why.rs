//! `skills why`: every check between a skill's file and its use for a request.

use std::fmt::Write as _;

use super::Context;
use super::args::WhyArgs;
use super::failure::{Exit, Failure};
use super::output::{HANGING, TerminalCaps, TextStyle, cells, cut, push_parts, wrap};
use super::runs::invocation;
use skills_api::{CheckKind, CheckResult, ClientChecks, CoreParts, WhyCheck, WhyReport, WhyRequest, why};
use skills_skill::safe_text;

pub async fn run(cx: &mut Context, args: &WhyArgs) -> Result<Exit, Failure> {
    let intent = super::discover::intent(&args.intent)?;
    let core = cx.reach(CoreParts::Index).await?;
    let request = WhyRequest {
        skill_id: args.skill.clone(),
        intent: (!intent.trim().is_empty()).then_some(intent),
        clients: args.client.clone(),
    };
    let mut report = why(&*core, &request).await?;
    if !cx.out.json {
        report.complete_commands(&invocation(&cx.global, None));
    }
    if cx.out.json {
        cx.out.value(&report)?;
    } else if cx.global.plain || cx.config()?.plain {
        cx.out.text(&super::plain::checks(&report))?;
    } else {
        let shown = safe_text::line(&report.location.display().to_string()).into_owned();
        let text = cx.out.links.file(render(&report, cx.out.look), &shown, &report.location);
        cx.out.text(&text)?;
    }
    Ok(if report.wins { Exit::Success } else { Exit::ChecksFailed })
}

fn label(check: CheckKind) -> &'static str {
    match check {
        CheckKind::Folder => "folder",
        CheckKind::Parse => "parse",
        CheckKind::Name => "name",
        CheckKind::Offered => "offered",
        CheckKind::Description => "description",
        CheckKind::Rank => "rank",
        CheckKind::Terms => "terms",
        CheckKind::Exclusion => "exclusion",
    }
}

fn line(out: &mut String, check: &WhyCheck, look: TerminalCaps) {
    let (sign, style) = match (check.result, look.unicode) {
        (CheckResult::Pass, true) => ("✓", TextStyle::Good),
        (CheckResult::Pass, false) => ("ok", TextStyle::Good),
        (CheckResult::Fail, true) => ("✗", TextStyle::Bad),
        (CheckResult::Fail, false) => ("!!", TextStyle::Bad),
        (CheckResult::Unknown, _) => ("?", TextStyle::Warn),
    };
    let sign_width = if look.unicode { 1 } else { 2 };
    let indent = 2 + sign_width + 1 + 13;
    let sign =
        format!("{}{}", style.paint(sign, look.color), " ".repeat(sign_width - cells(sign).min(sign_width)));
    let width = look.text_width(100).saturating_sub(indent);
    let mut text = wrap(&safe_text::line(&check.evidence), width).into_iter();
    let name = TextStyle::Strong.paint(label(check.check), look.color);
    let pad = " ".repeat(13 - label(check.check).len());
    let _ = writeln!(out, "  {sign} {name}{pad}{}", text.next().unwrap_or_default());
    for more in text {
        let _ = writeln!(out, "{}{more}", " ".repeat(indent));
    }
    if let Some(help) = &check.help {
        for (at, more) in wrap(&safe_text::line(help), width.saturating_sub(6)).iter().enumerate() {
            let head = if at == 0 { "help: " } else { "      " };
            let _ = writeln!(
                out,
                "{}{}",
                " ".repeat(indent),
                TextStyle::Muted.paint(&format!("{head}{more}"), look.color)
            );
        }
    }
}

/// Maximum width of the part of a description that a client does not show, in cells.
const MAX_NOT_SHOWN: usize = 200;

pub fn render(report: &WhyReport, look: TerminalCaps) -> String {
    let mut out = String::new();
    let strong = |text: &str| TextStyle::Strong.paint(text, look.color);
    let hanging = |out: &mut String, head: &str, text: &str, style: Option<TextStyle>| {
        for line in look.rows(head, HANGING, &safe_text::line(text)) {
            let line = style.map_or_else(|| line.clone(), |style| style.paint(&line, look.color));
            let _ = writeln!(out, "{line}");
        }
    };
    let location = report.location.display().to_string();
    let (name, location) = (safe_text::name(report.skill_id.as_str()), safe_text::line(&location));
    push_parts(&mut out, &[(TextStyle::Strong, &*name), (TextStyle::Muted, &*location)], look);
    if let Some(intent) = &report.intent {
        hanging(&mut out, "request: ", intent, None);
    }
    hanging(&mut out, "", &report.answer(), None);
    out.push('\n');
    for check in &report.checks {
        line(&mut out, check, look);
    }
    if let Some(ranking) = &report.ranking {
        hanging(&mut out, "    ", &format!("verdict: {}", ranking.verdict), Some(TextStyle::Muted));
    }
    if let Some(advice) = report.ranking.as_ref().and_then(|ranking| ranking.advice.as_ref()) {
        let rank = advice.new_rank();
        let golden = match advice.won + advice.lost {
            0 => String::new(),
            _ => format!("; golden queries: {} won, {} lost", advice.won, advice.lost),
        };
        let word = safe_text::line(&advice.word);
        let text = format!("advice: add “{word}” to the description: {:+.2}, {rank}{golden}", advice.gain);
        let _ = writeln!(out, "    {}", TextStyle::Strong.paint(&text, look.color));
    }
    for assumed in [false, true] {
        let clients = report.clients.iter().filter(|client| client.passes() && client.assumed == assumed);
        let passing: Vec<&ClientChecks> = clients.collect();
        let Some(first) = passing.first() else { continue };
        let names: Vec<&str> = passing.iter().map(|client| client.name.as_str()).collect();
        out.push('\n');
        hanging(&mut out, "", &names.join(", "), Some(TextStyle::Strong));
        if let Some(check) = first.checks.iter().find(|check| first.assumes(check)) {
            let evidence = check.evidence.replace(&first.name, "each client");
            line(&mut out, &WhyCheck { evidence, ..check.clone() }, look);
        }
        let sign = if look.unicode { "✓" } else { "ok" };
        let all = if assumed {
            "all other checks pass: file read, not shadowed, offered, description shown in full"
        } else {
            "all checks pass: folder searched, file read, not shadowed, offered, description shown in full"
        };
        let _ = writeln!(out, "  {} {all}", TextStyle::Good.paint(sign, look.color));
    }
    for client in report.clients.iter().filter(|client| !client.passes()) {
        let _ = writeln!(out, "\n{}", strong(&safe_text::line(&client.name)));
        for check in &client.checks {
            line(&mut out, check, look);
        }
        if let Some(description) = client.description.as_ref().filter(|one| !one.cut.is_empty()) {
            let cut = cut(&safe_text::line(&description.cut), MAX_NOT_SHOWN, look.unicode);
            let head = format!("    {} ", TextStyle::Muted.paint("not shown:", look.color));
            for line in look.rows(&head, &" ".repeat(15), &cut) {
                let _ = writeln!(out, "{line}");
            }
            if let Some((rank, score)) =
                description.place.as_ref().and_then(|place| place.rank.zip(place.score))
            {
                let text = format!("with the shown text: rank {rank} with {score:.2}");
                let _ = writeln!(out, "    {}", TextStyle::Muted.paint(&text, look.color));
            }
        }
    }
    if !report.other_clients.is_empty() {
        let _ = writeln!(
            out,
            "\n{}",
            TextStyle::Muted.paint(
                &format!("do not search this folder: {}", safe_text::line(&report.other_clients.join(", "))),
                look.color
            )
        );
    }
    out
}
