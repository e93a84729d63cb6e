//! The report of why clients use a skill or do not, as a text to read.

use crate::overlay::{Passage, Reading};
use crate::theme::Role;
use crate::widgets::text_width::shown;
use skills_api::{CheckResult, ClientChecks, WhyCheck, WhyRanking, WhyReport};

/// Cells of the column that names the check.
const NAME_WIDTH: usize = 13;
/// Cells of the column that has its result.
const RESULT_WIDTH: usize = 9;

/// The report, section by section.
pub fn reading(report: &WhyReport) -> Reading {
    let mut passages = Vec::new();
    let title = match &report.intent {
        Some(intent) => format!("Why {}: {intent}", report.skill_id),
        None => format!("Why {}", report.skill_id),
    };
    let answer = match (&report.intent, report.wins) {
        (Some(_), true) => "The skill is offered and ranks first for this request.",
        (Some(_), false) => "The skill is not selected for this request. See the first failed check.",
        (None, true) => "Clients offer the skill. Type a request in Discover to also check the ranking.",
        (None, false) => "Some clients do not offer the skill. See the first failed check.",
    };
    passages.push(text("", answer, if report.wins { Role::Success } else { Role::Warning }));
    passages.push(text("", &report.location.display().to_string(), Role::Muted));
    passages.push(Passage::Heading("File and ranking".to_owned()));
    report.checks.iter().for_each(|check| push_check(check, &mut passages));
    if let Some(ranking) = &report.ranking {
        push_terms(report, ranking, &mut passages);
    }
    let passes = |client: &&ClientChecks| {
        client.description.is_none() && client.checks.iter().all(|check| check.result == CheckResult::Pass)
    };
    let passing: Vec<&str> =
        report.clients.iter().filter(passes).map(|client| client.name.as_str()).collect();
    if !passing.is_empty() {
        passages.push(Passage::Heading(passing.join(", ")));
        let all = "folder searched, file read, not shadowed, offered to the model, description shown in \
            full";
        passages.push(text(&format!("{:<RESULT_WIDTH$}", "pass"), all, Role::Text));
    }
    for client in report.clients.iter().filter(|client| !passes(client)) {
        passages.push(Passage::Heading(client.name.clone()));
        client.checks.iter().for_each(|check| push_check(check, &mut passages));
        if let Some(description) = &client.description {
            let before = format!("{:<width$}", "not shown", width = RESULT_WIDTH + NAME_WIDTH);
            passages.push(text(&before, &description.cut, Role::Muted));
        }
    }
    if !report.other_clients.is_empty() {
        passages.push(Passage::Heading("Clients that do not search this folder".to_owned()));
        passages.push(text("", &report.other_clients.join(", "), Role::Muted));
    }
    Reading { title: shown(&title), what: "report".to_owned(), passages }
}

fn push_check(check: &WhyCheck, passages: &mut Vec<Passage>) {
    let (result, role) = match check.result {
        CheckResult::Pass => ("pass", Role::Text),
        CheckResult::Fail => ("FAIL", Role::Danger),
        CheckResult::Unknown => ("unknown", Role::Warning),
    };
    let before = format!("{result:<RESULT_WIDTH$}{:<NAME_WIDTH$}", check.check.to_string());
    passages.push(text(&before, &check.evidence, role));
    if let Some(help) = &check.help {
        let before = format!("{:>width$}", "help: ", width = RESULT_WIDTH + NAME_WIDTH);
        passages.push(text(&before, help, Role::Info));
    }
}

/// Each term of the request: what it gives the skill, and what it gives the rival.
fn push_terms(report: &WhyReport, ranking: &WhyRanking, passages: &mut Vec<Passage>) {
    passages.push(Passage::Heading("Terms of the request".to_owned()));
    passages.push(text("verdict  ", &ranking.verdict, Role::Muted));
    let side = |fields: &[String], points: f64| match fields {
        [] => format!("{points:+.2} not in its text"),
        fields => format!("{points:+.2} in {}", fields.join(", ")),
    };
    let width = ranking.terms.iter().map(|term| shown(&term.term).chars().count()).max().unwrap_or(0) + 2;
    for term in &ranking.terms {
        let own = format!("{} {}", report.skill_id, side(&term.fields, term.points));
        let line = match &ranking.rival {
            Some(rival) if ranking.rank != Some(1) => {
                format!("{own}; {rival} {}", side(&term.winner_fields, term.winner_points))
            }
            _ => own,
        };
        let role = if term.fields.is_empty() { Role::Warning } else { Role::Text };
        passages.push(text(&format!("{:<width$}", shown(&term.term)), &line, role));
    }
}

fn text(before: &str, text: &str, role: Role) -> Passage {
    Passage::Text { before: before.to_owned(), text: text.to_owned(), role }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_api::{CheckKind, ClientChecks, WhyTerm};
    use skills_skill::SkillId;

    #[test]
    fn failed_checks_and_missing_terms_are_named() {
        let check = |check: CheckKind, result: CheckResult, evidence: &str| WhyCheck {
            check,
            result,
            evidence: evidence.to_owned(),
            help: (result == CheckResult::Fail).then(|| "do this".to_owned()),
        };
        let client = |name: &str, result: CheckResult| ClientChecks {
            client: name.to_owned(),
            name: name.to_owned(),
            source: String::new(),
            searches_folder: true,
            checks: vec![check(CheckKind::Offered, result, "evidence")],
            description: None,
        };
        let report = WhyReport {
            skill_id: SkillId::new("a"),
            location: "/s/a/SKILL.md".into(),
            intent: Some("read tables".to_owned()),
            wins: false,
            checks: vec![check(CheckKind::Rank, CheckResult::Fail, "rank 2")],
            clients: vec![client("One", CheckResult::Pass), client("Two", CheckResult::Fail)],
            other_clients: vec!["Three".to_owned()],
            ranking: Some(WhyRanking {
                rank: Some(2),
                score: Some(1.0),
                rival: Some(SkillId::new("b")),
                rival_score: Some(2.0),
                verdict: "b fits".to_owned(),
                terms: vec![WhyTerm {
                    term: "tables".to_owned(),
                    fields: Vec::new(),
                    points: 0.0,
                    winner_fields: vec!["name".to_owned()],
                    winner_points: 1.5,
                }],
            }),
        };
        let text: Vec<String> = reading(&report)
            .passages
            .into_iter()
            .map(|passage| match passage {
                Passage::Heading(name) => name,
                Passage::Text { before, text, .. } => format!("{before}{text}"),
                Passage::Value(value) => value.to_string(),
            })
            .collect();
        let all = text.join("\n");
        assert!(all.contains("FAIL     rank         rank 2\n                help: do this"), "{all}");
        assert!(all.contains("tables  a +0.00 not in its text; b +1.50 in name"), "{all}");
        assert!(all.contains("One\npass     folder searched"), "{all}");
        assert!(all.contains("Two\nFAIL     offered"), "{all}");
        assert!(all.ends_with("Three"), "{all}");
    }
}
