//! The report of why clients use a skill or do not, as a text to read.

use crate::overlay::{Drafting, Passage, Reading};
use crate::theme::Role;
use crate::widgets::text_width::shown;
use skills_api::{CheckKind, CheckResult, ClientChecks, WhyCheck, WhyRanking, WhyReport};
use skills_skill::Skill;

/// Cells of the column that names the check.
const NAME_WIDTH: usize = 13;
/// Cells before the evidence of a check: its sign, its result, its name.
const EVIDENCE_INDENT: usize = 2 + 8 + NAME_WIDTH;
/// Letters that two forms of a word share at least, and by which they differ at most.
const MIN_STEM: usize = 4;
const MAX_ENDING: usize = 3;

/// What is asked about a skill, in the order in which it decides, and the checks that answer it.
const GROUPS: [(&str, &[CheckKind]); 3] = [
    ("Found by the clients", &[CheckKind::Folder, CheckKind::Parse, CheckKind::Name]),
    ("Offered to the model", &[CheckKind::Offered, CheckKind::Description]),
    ("Ranked for the request", &[CheckKind::Rank, CheckKind::Terms, CheckKind::Exclusion]),
];

/// The report, section by section; of a skill with a record also its draft.
pub fn reading(report: &WhyReport, skill: Option<&Skill>) -> Reading {
    let mut passages = Vec::new();
    let title = match &report.intent {
        Some(intent) => format!("Why {}: {intent}", report.skill_id),
        None => format!("Why {}", report.skill_id),
    };
    let is_ranked_first = !report.checks.iter().any(|check| check.result == CheckResult::Fail);
    let answer = match (&report.intent, report.wins) {
        (Some(_), true) => "The skill is offered and ranks first for this request.",
        (Some(_), false) if is_ranked_first => {
            "The skill ranks first for this request, but some clients do not offer it. See the first failed check."
        }
        (Some(_), false) => "The skill is not selected for this request. See the first failed check.",
        (None, true) => "Clients offer the skill. Type a request in Discover to also check the ranking.",
        (None, false) => "Some clients do not offer the skill. See the first failed check.",
    };
    passages.push(text("", answer, if report.wins { Role::Success } else { Role::Warning }));
    passages.push(text("", &report.location.display().to_string(), Role::Muted));
    for (name, kinds) in GROUPS {
        push_group(report, name, kinds, &mut passages);
    }
    if let Some(ranking) = &report.ranking {
        push_terms(report, ranking, skill.map_or("", |skill| &skill.description), &mut passages);
    }
    if !report.other_clients.is_empty() {
        passages.push(Passage::Heading("Clients that do not search this folder".to_owned()));
        passages.push(text("", &report.other_clients.join(", "), Role::Muted));
    }
    let draft = skill.map(|skill| Drafting::of(skill, report.intent.clone()));
    if draft.is_some() && !report.wins {
        passages.push(Passage::Heading("Advice".to_owned()));
        let advice = format!("{}: w opens a draft of the description", advice(report));
        passages.push(text("", &advice, Role::Strong));
    }
    Reading { title: shown(&title), what: "report".to_owned(), passages, draft }
}

/// What helps: of the ranking before of a client, since the text of the skill decides it.
fn advice(report: &WhyReport) -> String {
    let of_clients = report.clients.iter().flat_map(|client| &client.checks);
    let failed = report.checks.iter().chain(of_clients).filter(|check| check.result == CheckResult::Fail);
    let is_about_text = |check: &&WhyCheck| {
        matches!(
            check.check,
            CheckKind::Terms | CheckKind::Exclusion | CheckKind::Rank | CheckKind::Description
        )
    };
    let mut failed = failed.filter(is_about_text).filter_map(|check| check.help.clone());
    failed.next().unwrap_or_else(|| "measure another description".to_owned())
}

/// The checks of a kind: those of the skill itself, then those of the clients. Clients without anything to say share a
/// line.
fn push_group(report: &WhyReport, name: &str, kinds: &[CheckKind], passages: &mut Vec<Passage>) {
    let is_here = |check: &&WhyCheck| kinds.contains(&check.check);
    let own: Vec<&WhyCheck> = report.checks.iter().filter(is_here).collect();
    let of_client = |client: &ClientChecks| client.checks.iter().any(|check| is_here(&check));
    if own.is_empty() && !report.clients.iter().any(of_client) {
        return;
    }
    passages.push(Passage::Heading(name.to_owned()));
    own.into_iter().for_each(|check| push_check("", check, passages));
    let has_text = kinds.contains(&CheckKind::Description);
    let passes = |client: &&ClientChecks| {
        client.checks.iter().filter(is_here).all(|check| check.result == CheckResult::Pass)
            && !(has_text && client.description.is_some())
            && of_client(client)
    };
    let passing: Vec<&str> =
        report.clients.iter().filter(passes).map(|client| client.name.as_str()).collect();
    if !passing.is_empty() {
        let what = if has_text {
            "offered, description shown in full"
        } else {
            "folder searched, file read, not shadowed"
        };
        let text = format!("{}: {what}", passing.join(", "));
        passages.push(Passage::Check { result: CheckResult::Pass, name: label("clients"), text });
    }
    for client in report.clients.iter().filter(|client| !passes(client)) {
        let before = format!("{}: ", client.name);
        client.checks.iter().filter(is_here).for_each(|check| push_check(&before, check, passages));
        if let Some(description) = client.description.as_ref().filter(|_| has_text) {
            let before = format!("{:>EVIDENCE_INDENT$}", "shown: ");
            let (shown, cut) = (description.shown.clone(), description.cut.clone());
            passages.push(Passage::Cut { before, shown, cut });
        }
    }
}

fn label(name: &str) -> String {
    format!("{name:<NAME_WIDTH$}")
}

fn push_check(client: &str, check: &WhyCheck, passages: &mut Vec<Passage>) {
    let evidence = format!("{client}{}", check.evidence);
    let name = label(&check.check.to_string());
    passages.push(Passage::Check { result: check.result, name, text: evidence });
    if let Some(help) = &check.help {
        let before = format!("{:>EVIDENCE_INDENT$}", "help: ");
        passages.push(text(&before, help, Role::Info));
    }
}

/// Each term of the request: what it gives the skill, and what it gives the rival.
fn push_terms(report: &WhyReport, ranking: &WhyRanking, description: &str, passages: &mut Vec<Passage>) {
    passages.push(Passage::Heading("Terms of the request".to_owned()));
    passages.push(text("verdict  ", &ranking.verdict, Role::Muted));
    let side = |fields: &[String], points: f64, none: &str| match fields {
        [] => format!("{points:+.2} {none}"),
        fields => format!("{points:+.2} in {}", fields.join(", ")),
    };
    let width = ranking.terms.iter().map(|term| shown(&term.term).chars().count()).max().unwrap_or(0) + 2;
    for term in &ranking.terms {
        let none = match sentence_with(description, &term.term) {
            Some(clause) if is_exclusion(clause) => format!("only in the exclusion “{clause}”"),
            Some(clause) => format!("in “{clause}”, which adds no points"),
            None => "not in its text".to_owned(),
        };
        let own = format!("{} {}", report.skill_id, side(&term.fields, term.points, &none));
        let line = match &ranking.rival {
            Some(rival) if ranking.rank != Some(1) => {
                format!("{own}; {rival} {}", side(&term.winner_fields, term.winner_points, "without a match"))
            }
            _ => own,
        };
        let role = if term.fields.is_empty() { Role::Warning } else { Role::Text };
        passages.push(text(&format!("{:<width$}", shown(&term.term)), &line, role));
    }
}

/// The clause of a description that has a word, in any of its forms.
fn sentence_with<'d>(description: &'d str, term: &str) -> Option<&'d str> {
    let term = term.to_lowercase();
    let has = |clause: &&str| {
        let mut words = clause.split(|sign: char| !sign.is_alphanumeric()).map(str::to_lowercase);
        words.any(|word| is_form_of(&word, &term))
    };
    description.split_inclusive(['.', ';', '!', '?', '\n']).map(str::trim).find(has)
}

/// Whether a clause says what a skill is not for.
fn is_exclusion(clause: &str) -> bool {
    let clause = clause.to_lowercase();
    let begins = ["not ", "never ", "no ", "don't ", "don’t ", "do not ", "does not ", "except "];
    begins.iter().any(|begin| clause.starts_with(begin)) || clause.contains(" not for ")
}

/// Whether two words are forms of one: equal, or with another short ending.
fn is_form_of(a: &str, b: &str) -> bool {
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let longest = a.chars().count().max(b.chars().count());
    a == b || (common >= MIN_STEM && longest - common <= MAX_ENDING)
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
        let text: Vec<String> = reading(&report, None)
            .passages
            .into_iter()
            .map(|passage| match passage {
                Passage::Heading(name) => name,
                Passage::Text { before, text, .. } => format!("{before}{text}"),
                Passage::Value(value) => value.to_string(),
                Passage::Cut { before, shown, cut } => format!("{before}{shown}{{-{cut}-}}"),
                Passage::Check { result, name, text } => format!("{result} {name}{text}"),
            })
            .collect();
        let all = text.join("\n");
        assert!(
            all.contains("Ranked for the request\nfail rank         rank 2\n                 help: do this"),
            "{all}"
        );
        assert!(all.contains("tables  a +0.00 not in its text; b +1.50 in name"), "{all}");
        let offered = "Offered to the model\npass clients      One: offered, description shown in full\n\
            fail offered      Two: evidence";
        assert!(all.contains(offered), "{all}");
        assert!(all.ends_with("Three"), "{all}");
    }

    #[test]
    fn a_word_of_an_exclusion_is_not_missing() {
        let description = "Creates bills for customers. Not for subscriptions.";
        assert_eq!(sentence_with(description, "subscription"), Some("Not for subscriptions."));
        assert!(is_exclusion("Not for subscriptions.") && !is_exclusion("Creates bills for customers."));
        assert_eq!(sentence_with(description, "refund"), None);
        assert_eq!(sentence_with(description, "cancel"), None);
        assert!(is_form_of("bills", "bill") && !is_form_of("form", "formation"));
    }
}
