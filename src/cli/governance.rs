//! `skills governance`: the quality state of skills, and what is missing for the next one.

use std::fmt::Write as _;

use super::Context;
use super::args::GovernanceArgs;
use super::failure::{Exit, Failure, warn};
use super::output::{HANGING, TerminalCaps, TextStyle, counted, fit, wrap_after};
use super::runs::invocation;
use skills_api::{CoreParts, GovernanceFilter, GovernanceList, GovernedSkill};
use skills_authoring::governance::QualityState;
use skills_skill::safe_text;

pub async fn run(cx: &mut Context, args: &GovernanceArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Index).await?;
    let filter = GovernanceFilter {
        skill: args.skill.clone(),
        state: args.state.clone(),
        domain: args.domain.clone(),
        limit: args.limit,
        cursor: args.cursor.clone(),
    };
    let mut list = client.governance(filter).await?;
    if cx.out.json {
        cx.out.value(&list)?;
    } else {
        let called = invocation(&cx.global, None);
        for missing in list.skills.iter_mut().flat_map(|skill| &mut skill.next) {
            *missing = called.completed_in(missing);
        }
        let text = match (&args.skill, list.skills.as_slice()) {
            (Some(_), [skill]) => format_skill(skill, cx.out.look),
            _ => render(&list, cx.out.look),
        };
        cx.out.text(&text)?;
        warn(&list.warnings);
    }
    let below = args.require.is_some_and(|least| list.skills.iter().any(|skill| skill.state < least));
    Ok(if below { Exit::ChecksFailed } else { Exit::Success })
}

fn text_style(state: QualityState) -> TextStyle {
    match state {
        QualityState::Draft => TextStyle::Warn,
        QualityState::Validated => TextStyle::Info,
        QualityState::LabVerified => TextStyle::SignalName,
        QualityState::Trusted | QualityState::Recommended => TextStyle::Good,
    }
}

/// Renders one skill with all reasons.
fn format_skill(skill: &GovernedSkill, look: TerminalCaps) -> String {
    let mut out = format!(
        "{}  {}\n",
        TextStyle::Strong.paint(&safe_text::name(skill.skill_id.as_str()), look.color),
        text_style(skill.state).paint(&skill.state.to_string(), look.color)
    );
    let (passed, lacks) = if look.unicode { ("✓", "·") } else { ("+", "-") };
    let push = |out: &mut String, style: TextStyle, sign: &str, text: &str| {
        let head = format!("  {} ", style.paint(sign, look.color));
        for row in look.rows(&head, HANGING, &safe_text::line(text)) {
            let _ = writeln!(out, "{row}");
        }
    };
    for reason in &skill.reasons {
        push(&mut out, TextStyle::Good, passed, reason);
    }
    if !skill.next.is_empty() {
        let _ = writeln!(out, "{}", TextStyle::Muted.paint("missing for the next state:", look.color));
    }
    for missing in &skill.next {
        push(&mut out, TextStyle::Warn, lacks, missing);
    }
    out
}

/// Renders one line per skill, and the number of skills in each state.
fn render(list: &GovernanceList, look: TerminalCaps) -> String {
    let mut out = String::new();
    let ids = list.skills.iter().map(|skill| skill.skill_id.as_str());
    let width = look.name_width(ids, 12, if look.width >= 120 { 48 } else { 30 });
    let available = look.text_width(usize::MAX);
    if !list.skills.is_empty() {
        let head = format!("{}  {:<12}  missing for the next state", fit("id", width, look.unicode), "state");
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(&head, look.color));
    }
    for skill in &list.skills {
        let id = look.name(&safe_text::name(skill.skill_id.as_str()), width);
        let missing = skill.next.join("; ");
        let _ = writeln!(
            out,
            "{}  {}  {}",
            TextStyle::Strong.paint(&id, look.color),
            text_style(skill.state).paint(&format!("{:<12}", skill.state.to_string()), look.color),
            wrap_after(
                width + 2 + 12 + 2,
                &safe_text::line(&missing),
                available,
                TextStyle::Muted,
                look.color
            )
        );
    }
    let mut states: Vec<(QualityState, usize)> = Vec::new();
    for skill in &list.skills {
        match states.iter_mut().find(|(state, _)| *state == skill.state) {
            Some((_, count)) => *count += 1,
            None => states.push((skill.state, 1)),
        }
    }
    states.sort_by_key(|(state, _)| std::cmp::Reverse(*state));
    let parts: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    if !out.is_empty() {
        out.push('\n');
    }
    let mut all = counted(list.skills.len(), "skill");
    if list.total > list.skills.len() {
        all = format!("{} of {}", list.skills.len(), counted(list.total, "skill"));
    }
    let more = list.next.as_ref().map(|next| {
        let dot = if look.unicode { "·" } else { "-" };
        format!(" {dot} more: --cursor '{}'", safe_text::line(next).replace('\'', "'\\''"))
    });
    let states = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    out + &format!("{all}{states}{}\n", more.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_skill::SkillId;

    fn governed(id: &str, state: QualityState, next: &[&str]) -> GovernedSkill {
        GovernedSkill {
            skill_id: SkillId::new(id),
            state,
            reasons: vec!["no lint errors".to_owned()],
            next: next.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    #[test]
    fn list_and_single_skill_are_rendered() {
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let skills = vec![
            governed("pdf-tables", QualityState::Recommended, &[]),
            governed("ledger", QualityState::Validated, &["add 3 more golden queries that should find it"]),
            governed("odd\u{1b}[31m", QualityState::Draft, &["fix 1 lint error", "say `status: stable`"]),
        ];
        let page = GovernanceList {
            skills: skills[..1].to_vec(),
            total: 3,
            next: Some("pdf-tables".to_owned()),
            ..GovernanceList::default()
        };
        assert!(
            render(&page, look).ends_with("\n1 of 3 skills: 1 recommended · more: --cursor 'pdf-tables'\n"),
            "{}",
            render(&page, look)
        );
        let one = format_skill(&skills[1], look);
        insta::assert_snapshot!(
            render(&GovernanceList { skills, ..GovernanceList::default() }, look) + "---\n" + &one
        );
    }
}
