//! `skills policy`: shows which rules match and their effects, and validates the file.

use std::fmt::Write as _;

use super::Context;
use super::args::{ExplainPolicyArgs, PolicyAction};
use super::failure::{Exit, Failure};
use super::output::{TerminalCaps, TextStyle, counted};
use skills_api::{CoreParts, PolicyExplanation, PolicyReport};
use skills_registry::policy::Effect;
use skills_skill::safe_text;

pub async fn run(cx: &mut Context, action: &PolicyAction) -> Result<Exit, Failure> {
    match action {
        PolicyAction::Explain(args) => explain(cx, args).await,
        PolicyAction::Check => check(cx).await,
    }
}

async fn explain(cx: &mut Context, args: &ExplainPolicyArgs) -> Result<Exit, Failure> {
    let needs = if args.intent.is_some() { CoreParts::Index } else { CoreParts::Catalog };
    let local = cx.open(needs).await?;
    let report = local.policies().explain(args.skill.as_deref(), args.intent.as_deref()).await?;
    if cx.out.json {
        cx.out.value(&report)?;
        return Ok(Exit::Success);
    }
    let look = cx.out.look;
    let mut out = head(&report, look);
    for skill in &report.skills {
        out += &render_skill(skill, args.intent.as_deref(), look);
    }
    if report.skills.is_empty() && report.rules.len() + report.approvals > 0 {
        out += "no rule matches any skill\n";
    }
    cx.out.text(&out)?;
    Ok(Exit::Success)
}

fn head(report: &PolicyReport, look: TerminalCaps) -> String {
    let file = report.file.as_ref().map(|file| safe_text::line(&file.display().to_string()).into_owned());
    let text = match (file, report.exists) {
        (None, _) => "demo mode has no policy; no restrictions by policy".to_owned(),
        (Some(file), false) => format!("no policy file ({file}); no restrictions by policy"),
        (Some(file), true) => {
            format!("{file}: {}", counted(report.rules.len() + report.approvals, "rule"))
        }
    };
    TextStyle::Muted.paint(&text, look.color) + "\n"
}

fn render_skill(skill: &PolicyExplanation, intent: Option<&str>, look: TerminalCaps) -> String {
    let result = &skill.result;
    let (style, word) = match (result.allowed, &result.require_approval) {
        (false, _) => (TextStyle::Bad, "denied"),
        (true, Some(_)) => (TextStyle::Warn, "requires approval"),
        (true, None) => (TextStyle::Good, "allowed"),
    };
    let mut out = format!(
        "{}  {}\n",
        TextStyle::Strong.paint(&safe_text::name(skill.skill_id.as_str()), look.color),
        style.paint(word, look.color)
    );
    let by_rule = result.rules.iter().any(|rule| rule.effect == Effect::Deny);
    if let Some(why) = result.denied_by.as_ref().filter(|_| !by_rule) {
        let _ = writeln!(out, "  {}", safe_text::line(why));
    }
    for rule in &result.rules {
        let does = match (rule.counts, rule.by) {
            (false, _) => "  (no effect: a deny rule has precedence)".to_owned(),
            (true, Some(by)) => format!("  {by:+.2}"),
            (true, None) => String::new(),
        };
        let _ = writeln!(out, "  {}{does}", safe_text::line(&rule.rule));
    }
    for rule in &skill.approvals {
        let _ = writeln!(out, "  {}", safe_text::line(rule));
    }
    if result.rules.is_empty() && skill.approvals.is_empty() && result.allowed {
        out += "  no rule matches it\n";
    }
    if let (Some(ranking), Some(intent)) = (skill.ranking, intent) {
        let place = |place: Option<(usize, f64)>| match place {
            Some((place, score)) => format!("#{place} ({score:.2})"),
            None => "no result".to_owned(),
        };
        let text = format!(
            "for “{}”: {}, without the policy {}",
            safe_text::line(intent),
            place(ranking.with),
            place(ranking.without)
        );
        let _ = writeln!(out, "  {}", TextStyle::Muted.paint(&text, look.color));
    }
    out
}

async fn check(cx: &mut Context) -> Result<Exit, Failure> {
    let local = cx.open(CoreParts::Catalog).await?;
    let report = local.policies().explain(None, None).await?;
    let idle = report.rules.iter().filter(|rule| rule.skills == 0).count();
    if cx.out.json {
        cx.out.value(&report)?;
    } else {
        let look = cx.out.look;
        let mut out = head(&report, look);
        for rule in &report.rules {
            let reach = match rule.skills {
                0 => TextStyle::Warn.paint("matches no skill", look.color),
                n => format!("matches {}", counted(n, "skill")),
            };
            let labeled = if rule.labels.is_empty() { "" } else { ", for runs with its labels" };
            let _ = writeln!(out, "  {}  {reach}{labeled}", safe_text::line(&rule.rule));
        }
        if report.approvals > 0 {
            let _ = writeln!(out, "  {}", counted(report.approvals, "approval rule"));
        }
        cx.out.text(&out)?;
    }
    Ok(if idle > 0 { Exit::ChecksFailed } else { Exit::Success })
}
