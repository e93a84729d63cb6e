//! The report of why clients use a skill or do not, as a text for the reader overlay.

use std::fmt::Write as _;

use crate::action::Action;
use crate::glyphs::UNICODE;
use crate::keymap::mention;
use crate::overlay::{DescriptionEdit, Passage, Reading, ScoreBar};
use crate::theme::Role;
use crate::widgets::{shown, signed, signed_count};
use skills_api::{
    CheckKind, CheckResult, ClientChecks, WhyCheck, WhyRanking, WhyReport, WhyRequest, WhyTerm,
};
use skills_discovery::SignalSums;
use skills_skill::Skill;

/// Width of the column that names the check, in cells.
const NAME_WIDTH: usize = 13;
/// Cells before the evidence of a check: its glyph, its result, its name.
const EVIDENCE_INDENT: usize = 2 + 8 + NAME_WIDTH;
/// The score of a full bar; a higher score extends it.
const MIN_SCALE: f64 = 3.5;
/// Minimum common prefix of two forms of a word, and maximum length of the ending that differs, in characters.
const MIN_STEM: usize = 4;
const MAX_ENDING: usize = 3;

/// The questions about a skill, in the order in which they decide, and the checks that answer each.
const GROUPS: [(&str, &[CheckKind]); 3] = [
    ("Found by clients", &[CheckKind::Folder, CheckKind::Parse, CheckKind::Name]),
    ("Offered to the model", &[CheckKind::Offered, CheckKind::Description]),
    ("Ranked for the request", &[CheckKind::Rank, CheckKind::Terms, CheckKind::Exclusion]),
];

/// Returns what is shown until the report is computed, under its title.
pub fn pending(request: &WhyRequest) -> Reading {
    let intent = request.intent.as_deref().map(str::trim).filter(|intent| !intent.is_empty());
    let title = match intent {
        Some(intent) => format!("Why {}: {intent}", request.skill_id),
        None => format!("Why {}", request.skill_id),
    };
    Reading {
        title: shown(&title),
        what: "report".to_owned(),
        passages: vec![text("", "reading the clients' catalogs", Role::Muted)],
        is_pending: true,
        ..Reading::default()
    }
}

/// Returns why there is no report, under the title of the pending one.
pub fn failed(pending: Reading, why: &str) -> Reading {
    let passages = vec![text("", &format!("cannot check the skill: {why}"), Role::Danger)];
    Reading { passages, is_pending: false, ..pending }
}

/// Returns the report, section by section, under the title of the pending one; for a skill in the catalog also its
/// draft.
pub fn reading(pending: Reading, report: &WhyReport, skill: Option<&Skill>) -> Reading {
    let mut passages = Vec::new();
    let mut answer = report.answer();
    if report.intent.is_none() && report.wins {
        answer.push_str(" Type a request in Discover to also check the ranking.");
    }
    passages.push(text("", &answer, if report.wins { Role::Success } else { Role::Warning }));
    passages.push(text("", &report.location.display().to_string(), Role::Muted));
    for (name, kinds) in GROUPS {
        push_group(report, name, kinds, &mut passages);
    }
    if !report.other_clients.is_empty() {
        passages.push(Passage::Heading("Clients that do not search this folder".to_owned()));
        passages.push(text("", &report.other_clients.join(", "), Role::Muted));
    }
    let mut alongside = Vec::new();
    if let Some(ranking) = &report.ranking {
        push_scores(report, ranking, &mut alongside);
    }
    push_descriptions(report, &mut alongside);
    if let Some(ranking) = &report.ranking {
        push_terms(report, ranking, skill.map_or("", |skill| &skill.description), &mut alongside);
        push_other(ranking, &mut alongside);
    }
    let mut foot = Vec::new();
    let draft = skill.map(|skill| DescriptionEdit::of(skill, report.intent.clone()));
    if !report.wins {
        push_advice(report, draft.is_some(), &mut foot);
    }
    Reading { passages, alongside, foot, draft, is_pending: false, ..pending }
}

/// Describes how to change the description.
fn draft() -> String {
    format!("{} opens a draft of the description", mention(Action::Draft))
}

/// Appends the advice: a measured change of the description, else the help of the check that failed. A file that cannot
/// be parsed has no draft.
fn push_advice(report: &WhyReport, has_draft: bool, passages: &mut Vec<Passage>) {
    let measured = report.ranking.as_ref().and_then(|ranking| ranking.advice.as_ref());
    let what = measured.map_or_else(
        || advice(report, has_draft),
        |measured| {
            let word = &measured.word;
            Some(format!("add “{word}” to the description if it applies to the skill: {}", draft()))
        },
    );
    let Some(what) = what else { return };
    passages.push(Passage::Heading("Advice".to_owned()));
    // Another rank does not help in a client that does not read or offer the skill.
    if let Some(first) = first_repair(report).filter(|first| *first != what) {
        passages.push(text("", &first, Role::Strong));
    }
    passages.push(text("", &what, Role::Strong));
    if let Some(measured) = measured {
        let gain = signed(measured.gain, &UNICODE);
        let mut effect = format!("{}, score {gain}", measured.new_rank());
        if measured.won + measured.lost > 0 {
            let _ = write!(effect, "; golden queries: {} won, {} lost", measured.won, measured.lost);
        }
        if measured.false_triggers != 0 {
            let triggers = signed_count(measured.false_triggers, &UNICODE);
            let _ = write!(effect, ", false triggers {triggers}");
        }
        passages.push(text("", &effect, Role::Muted));
    }
}

/// Appends the description as the clients show it: what is truncated is struck out, what the request needs of it is
/// marked. Clients that show the same text share a section.
fn push_descriptions(report: &WhyReport, passages: &mut Vec<Passage>) {
    let mut done: Vec<&str> = Vec::new();
    for client in &report.clients {
        let Some(description) = client.description.as_ref().filter(|one| !one.cut.is_empty()) else {
            continue;
        };
        if done.contains(&description.shown.as_str()) {
            continue;
        }
        done.push(&description.shown);
        let same = |other: &&ClientChecks| {
            other.description.as_ref().is_some_and(|other| other.shown == description.shown)
        };
        let names: Vec<&str> =
            report.clients.iter().filter(same).map(|client| client.name.as_str()).collect();
        let all = description.shown.chars().count() + description.cut.chars().count();
        let who = match names.as_slice() {
            [one] => format!("{one} shows"),
            all => format!("{} clients show", all.len()),
        };
        let heading = format!("What {who}: {} of {all} characters", description.shown.chars().count());
        passages.push(Passage::Heading(heading));
        if names.len() > 1 {
            passages.push(text("", &names.join(", "), Role::Muted));
        }
        let (shown, cut) = (description.shown.clone(), description.cut.clone());
        passages.push(Passage::Cut {
            before: String::new(),
            shown,
            cut,
            lost: description.lost_terms.clone(),
        });
    }
    let own = report.ranking.as_ref().and_then(|ranking| ranking.own.as_ref());
    if let Some(own) = own.filter(|_| done.is_empty()) {
        passages.push(Passage::Heading("Its description".to_owned()));
        let (text, marks) = (own.description.clone(), own.description_marks.clone());
        passages.push(Passage::Marked { text, marks });
    }
}

/// Appends bars on one scale: the skill as clients show it, untruncated, with the advice, and the other result.
fn push_scores(report: &WhyReport, ranking: &WhyRanking, passages: &mut Vec<Passage>) {
    let bar = |label: String, rank: Option<usize>, score: f64, signals: Option<SignalSums>| ScoreBar {
        label,
        label_width: 0,
        rank,
        score,
        signals,
        scale: 0.0,
        fit_threshold: ranking.fit_threshold,
        is_strong: false,
    };
    let mut bars: Vec<ScoreBar> = Vec::new();
    for client in &report.clients {
        let place = client.description.as_ref().and_then(|description| description.place.as_ref());
        if let Some(place) = place {
            let label = format!("as {} shows it", client.name);
            bars.push(bar(label, place.rank, place.score.unwrap_or(0.0), place.signals));
        }
    }
    let label = if bars.is_empty() { report.skill_id.to_string() } else { "with its full text".to_owned() };
    let own = ranking.own.as_ref();
    let full = bar(label, ranking.rank, ranking.score.unwrap_or(0.0), own.map(|own| own.signals));
    bars.push(ScoreBar { is_strong: true, ..full });
    if let Some(advice) = &ranking.advice {
        let score = ranking.score.unwrap_or(0.0) + advice.gain;
        bars.push(bar("with the advice".to_owned(), advice.rank, score, None));
    }
    if let Some(other) = &ranking.other_hit {
        bars.push(bar(other.skill_id.to_string(), Some(other.rank), other.score, Some(other.signals)));
    }
    let label_width = bars.iter().map(|bar| shown(&bar.label).chars().count()).max().unwrap_or(0);
    let scale = bars.iter().map(|bar| bar.score).fold(MIN_SCALE, f64::max);
    let threshold = ranking.fit_threshold.map(|from| format!("; threshold {from:.2}")).unwrap_or_default();
    passages.push(Passage::Heading(format!("Score{threshold}")));
    passages.extend(bars.into_iter().map(|bar| Passage::Score(ScoreBar { label_width, scale, ..bar })));
}

/// Appends the description of the other result, with the words that decided.
fn push_other(ranking: &WhyRanking, passages: &mut Vec<Passage>) {
    let Some(other) = &ranking.other_hit else { return };
    let missing: Vec<&str> = ranking
        .terms
        .iter()
        .filter(|term| term.fields.is_empty() && !term.winner_fields.is_empty())
        .map(WhyTerm::word)
        .collect();
    let note =
        if missing.is_empty() { String::new() } else { format!("; missing here: {}", missing.join(", ")) };
    passages.push(Passage::Heading(format!("What {} says{note}", other.skill_id)));
    let (text, marks) = (other.description.clone(), other.description_marks.clone());
    passages.push(Passage::Marked { text, marks });
}

/// Returns the help of the first client that does not read or does not offer the skill.
fn first_repair(report: &WhyReport) -> Option<String> {
    let of_client = |client: &ClientChecks| {
        let mut checks = client.checks.iter().filter(|check| check.result == CheckResult::Fail);
        let is_early = |check: &&WhyCheck| matches!(check.check, CheckKind::Parse | CheckKind::Offered);
        let help = checks.find(is_early)?.help.as_deref()?;
        Some(with_client(client, help))
    };
    report.clients.iter().find_map(of_client)
}

/// Returns help with the client that it concerns.
fn with_client(client: &ClientChecks, help: &str) -> String {
    let name = &client.name;
    if help.contains(name.as_str()) { help.to_owned() } else { format!("{name}: {help}") }
}

/// Returns the advice: for failed ranking checks the help for the ranking, else the help of the first client that does
/// not offer the skill, else the help for the text that clients show.
fn advice(report: &WhyReport, has_draft: bool) -> Option<String> {
    let is_failed = |check: &&WhyCheck| check.result == CheckResult::Fail;
    let is_of_ranking =
        |check: &&WhyCheck| matches!(check.check, CheckKind::Terms | CheckKind::Exclusion | CheckKind::Rank);
    let of_ranking: Vec<&WhyCheck> = report.checks.iter().filter(is_failed).filter(is_of_ranking).collect();
    let of_clients = report
        .clients
        .iter()
        .flat_map(|client| client.checks.iter().map(move |check| (client, check)))
        .filter(|(_, check)| is_failed(check));
    let is_of_text = |check: &WhyCheck| check.check == CheckKind::Description;
    let is_hidden = of_clients.clone().any(|(_, check)| !is_of_text(check));
    let help = if of_ranking.is_empty() {
        let mut of_file = report.checks.iter().filter(is_failed).filter_map(|check| check.help.clone());
        let helps = |(client, check): (&ClientChecks, &WhyCheck)| {
            check.help.as_deref().map(|help| with_client(client, help))
        };
        // Another description does not help a client that does not offer the skill.
        let hidden = of_clients.clone().filter(|(_, check)| !is_of_text(check)).find_map(helps);
        if let Some(help) = of_file.next().or(hidden) {
            return Some(help);
        }
        of_clients.filter(|(_, check)| is_of_text(check)).find_map(helps)
    } else {
        // Without a measured change, the missing terms do not win the request.
        let mut helps = of_ranking.iter().filter(|check| check.check != CheckKind::Terms);
        helps.find_map(|check| check.help.clone())
    };
    let other = report.ranking.as_ref().and_then(|ranking| ranking.other.as_ref());
    match (help, other) {
        // Help that names a command or key does not concern the wording of the description.
        (Some(help), _) if help.contains('`') || !has_draft => Some(help),
        (Some(help), _) => Some(format!("{help}: {}", draft())),
        (None, Some(other)) if !of_ranking.is_empty() => {
            Some(format!("say what {other} does not do, and measure it: {}", draft()))
        }
        // A client that does not offer the skill does not do so for another description.
        (None, _) if of_ranking.is_empty() && is_hidden => None,
        (None, _) => has_draft.then(|| format!("measure another description: {}", draft())),
    }
}

/// Appends the checks of a group: those of the skill itself, then those of the clients. Clients without findings share
/// a line.
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
    let has_file = kinds.contains(&CheckKind::Parse);
    let passes = |client: &&ClientChecks| {
        let is_passed = |check: &WhyCheck| check.result == CheckResult::Pass || client.assumes(check);
        client.checks.iter().filter(is_here).all(is_passed)
            && !(has_text && client.description.is_some())
            && !(has_file && client.repaired.is_some())
            && of_client(client)
    };
    let assumes =
        |client: &&ClientChecks| client.checks.iter().filter(is_here).any(|one| client.assumes(one));
    if let Some(client) = report.clients.iter().find(assumes)
        && let Some(check) = client.checks.iter().find(|check| client.assumes(check))
    {
        let evidence = check.evidence.replace(&client.name, "each client");
        push_check("", &WhyCheck { evidence, ..check.clone() }, passages);
    }
    for assumed in [false, true] {
        let passing = report.clients.iter().filter(passes).filter(|client| client.assumed == assumed);
        let passing: Vec<&ClientChecks> = passing.collect();
        if passing.is_empty() {
            continue;
        }
        let names = passing.iter().map(|client| client.name.as_str()).collect::<Vec<_>>().join(", ");
        let what = match (has_text, assumed) {
            (true, _) => "offered, description shown in full",
            (false, false) => "folder searched, file read, not shadowed",
            (false, true) => "file read, not shadowed",
        };
        let text = format!("{names}: {what}");
        passages.push(Passage::Check { result: CheckResult::Pass, name: label("clients"), text });
    }
    for client in report.clients.iter().filter(|client| !passes(client)) {
        let checks = client.checks.iter().filter(is_here).filter(|check| !client.assumes(check));
        checks.for_each(|check| {
            let is_named = check.evidence.starts_with(&client.name);
            let before = if is_named { String::new() } else { format!("{}: ", client.name) };
            push_check(&before, check, passages);
        });
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

/// Appends each term of the request: its points for the skill, and its points for the other result.
fn push_terms(report: &WhyReport, ranking: &WhyRanking, description: &str, passages: &mut Vec<Passage>) {
    passages.push(Passage::Heading("Terms of the request".to_owned()));
    passages.push(text("verdict  ", &ranking.verdict, Role::Muted));
    let other = ranking.other.as_ref().filter(|_| ranking.rank != Some(1));
    let width = ranking.terms.iter().map(|term| shown(&term.label()).chars().count()).max().unwrap_or(0) + 2;
    let head = match other {
        Some(_) => format!("{:>5}  {:>5}", "this", "first"),
        None => report.skill_id.to_string(),
    };
    passages.push(text(&" ".repeat(width), &head, Role::Muted));
    for term in &ranking.terms {
        let own = match term.fields.as_slice() {
            [] => match sentence_with(description, term.word()) {
                Some(clause) if is_exclusion(clause) => format!("only in the exclusion “{clause}”"),
                Some(clause) => format!("in “{clause}”, which adds no points"),
                None => "not in its text".to_owned(),
            },
            fields => format!("in {}", fields.join(", ")),
        };
        let line = match other {
            Some(other) => {
                let theirs = match term.winner_fields.as_slice() {
                    [] => String::new(),
                    fields => format!("; {other}: {}", fields.join(", ")),
                };
                format!("{}  {}  {own}{theirs}", points(term.points), points(term.winner_points))
            }
            None => format!("{}  {own}", points(term.points)),
        };
        let role = if term.fields.is_empty() { Role::Warning } else { Role::Text };
        passages.push(text(&format!("{:<width$}", shown(&term.label())), &line, role));
    }
    let sum = |score: Option<f64>| score.map_or_else(|| "    ·".to_owned(), points);
    let of_terms = |points: fn(&WhyTerm) -> f64| ranking.terms.iter().map(points).sum::<f64>();
    let rest = |score: Option<f64>, of_terms: f64| sum(score.map(|score| score - of_terms));
    // The part of the score without a single word: pairs, rules and general wording.
    let (own, theirs) = (rest(ranking.score, of_terms(|term| term.points)), ranking.other_score);
    let theirs_rest = rest(theirs, of_terms(|term| term.winner_points));
    let (rules, total) = match other {
        Some(_) => (format!("{own}  {theirs_rest}"), format!("{}  {}", sum(ranking.score), sum(theirs))),
        None => (own, sum(ranking.score)),
    };
    passages.push(text(&format!("{:<width$}", "other"), &rules, Role::Muted));
    passages.push(text(&format!("{:<width$}", "sum"), &total, Role::Strong));
}

/// Formats points of a score, never as `-0.00`.
fn points(value: f64) -> String {
    format!("{:5.2}", if value.abs() < 0.005 { 0.0 } else { value })
}

/// Returns the clause of a description that contains a word in any of its forms.
fn sentence_with<'d>(description: &'d str, term: &str) -> Option<&'d str> {
    let term = term.to_lowercase();
    let has = |clause: &&str| {
        let mut words = clause.split(|sign: char| !sign.is_alphanumeric()).map(str::to_lowercase);
        words.any(|word| is_form_of(&word, &term))
    };
    description.split_inclusive(['.', ';', '!', '?', '\n']).map(str::trim).find(has)
}

/// Returns whether a clause states what a skill is not for.
fn is_exclusion(clause: &str) -> bool {
    let clause = clause.to_lowercase();
    let begins = ["not ", "never ", "no ", "don't ", "don’t ", "do not ", "does not ", "except "];
    begins.iter().any(|begin| clause.starts_with(begin)) || clause.contains(" not for ")
}

/// Returns whether two words are forms of one: equal, or with different short endings.
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
    use skills_api::{CutDescription, WhyHit};
    use skills_discovery::Advice;
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
            assumed: false,
            checks: vec![check(CheckKind::Offered, result, "evidence")],
            repaired: None,
            description: None,
        };
        let report = WhyReport {
            skill_id: SkillId::new("a"),
            location: "/s/a/SKILL.md".into(),
            intent: Some("read tables".to_owned()),
            wins: false,
            checks: vec![check(CheckKind::Rank, CheckResult::Fail, "rank 2")],
            clients: vec![
                client("One", CheckResult::Pass),
                ClientChecks {
                    checks: vec![
                        check(CheckKind::Parse, CheckResult::Unknown, "repaired"),
                        check(CheckKind::Offered, CheckResult::Pass, "evidence"),
                    ],
                    repaired: Some("a tab".to_owned()),
                    ..client("Four", CheckResult::Pass)
                },
                ClientChecks {
                    description: Some(CutDescription {
                        shown: "Reads".to_owned(),
                        cut: " tables.".to_owned(),
                        lost_terms: vec!["tables".to_owned()],
                        place: None,
                    }),
                    ..client("Two", CheckResult::Fail)
                },
            ],
            other_clients: vec!["Three".to_owned()],
            ranking: Some(WhyRanking {
                rank: Some(2),
                score: Some(1.0),
                other: Some(SkillId::new("b")),
                other_score: Some(2.0),
                verdict: "b fits".to_owned(),
                terms: vec![WhyTerm {
                    read_as: None,
                    term: "tables".to_owned(),
                    fields: Vec::new(),
                    points: 0.0,
                    winner_fields: vec!["name".to_owned()],
                    winner_points: 1.5,
                }],
                fit_threshold: Some(1.5),
                own: None,
                other_hit: Some(WhyHit {
                    skill_id: SkillId::new("b"),
                    rank: 1,
                    score: 2.0,
                    signals: [2.0, 0.0, 0.0, 0.0, 0.0],
                    description: "Tables.".to_owned(),
                    description_marks: Vec::new(),
                }),
                advice: Some(Advice {
                    query: "read tables".to_owned(),
                    word: "tables".to_owned(),
                    gain: 1.25,
                    rank: Some(1),
                    won: 2,
                    lost: 1,
                    false_triggers: 0,
                }),
            }),
        };
        let report_of = reading(Reading::default(), &report, None);
        let mut advised = Vec::new();
        push_advice(&report, true, &mut advised);
        let all =
            report_of.passages.into_iter().chain(report_of.alongside).chain(advised).chain(report_of.foot);
        let text: Vec<String> = all
            .map(|passage| match passage {
                Passage::Heading(name) => name,
                Passage::Text { before, text, .. } => format!("{before}{text}"),
                Passage::Value(value) => value.to_string(),
                Passage::Cut { before, shown, cut, lost } => format!("{before}{shown}{{-{cut}-}} {lost:?}"),
                Passage::Marked { text, .. } => text,
                Passage::Score(bar) => format!("{} {:?} {:.2}", bar.label, bar.rank, bar.score),
                Passage::Check { result, name, text } => format!("{result} {name}{text}"),
            })
            .collect();
        let all = text.join("\n");
        assert!(
            all.contains("Ranked for the request\nfail rank         rank 2\n                 help: do this"),
            "{all}"
        );
        assert!(
            all.contains(
                "         this  first\ntables   0.00   1.50  not in its text; b: name\nother    1.00   0.50"
            ),
            "{all}"
        );
        let scores = "Score; threshold 1.50\na Some(2) 1.00\nwith the advice Some(1) 2.25\nb Some(1) 2.00";
        assert!(all.contains(scores), "{all}");
        assert!(all.contains("What Two shows: 5 of 13 characters\nReads{- tables.-} [\"tables\"]"), "{all}");
        assert!(all.contains("What b says; missing here: tables\nTables."), "{all}");
        assert!(all.contains("would rank first, score +1.25; golden queries: 2 won, 1 lost"), "{all}");
        let offered = "Offered to the model\npass clients      One, Four: offered, description shown in full\n\
            fail offered      Two: evidence";
        assert!(all.contains(offered), "{all}");
        assert!(
            all.contains("Found by clients\nunknown parse        Four: repaired\nOffered to the model"),
            "{all}"
        );
        assert!(all.contains("\nThree\n"), "{all}");
    }

    #[test]
    fn the_advice_is_about_the_ranking_before_the_clients() {
        let failed = |check: CheckKind, help: Option<&str>| WhyCheck {
            check,
            result: CheckResult::Fail,
            evidence: String::new(),
            help: help.map(str::to_owned),
        };
        let mut report = WhyReport {
            skill_id: SkillId::new("a"),
            location: "/s/a/SKILL.md".into(),
            intent: Some("read tables".to_owned()),
            wins: false,
            checks: vec![failed(CheckKind::Rank, None)],
            clients: vec![ClientChecks {
                client: "openclaw".to_owned(),
                name: "OpenClaw".to_owned(),
                source: String::new(),
                searches_folder: true,
                assumed: false,
                checks: vec![failed(
                    CheckKind::Description,
                    Some(
                        "shorten the list with `skills budget fit --client openclaw`, which needs golden queries",
                    ),
                )],
                repaired: None,
                description: None,
            }],
            other_clients: Vec::new(),
            ranking: None,
        };
        let advice = |report: &WhyReport| advice(report, true).unwrap_or_default();
        let other = format!("measure another description: {}", draft());
        assert_eq!(advice(&report), other);
        report.checks.push(failed(CheckKind::Terms, Some("add “tables”")));
        assert_eq!(advice(&report), other, "words are only advised if a draft with them wins");
        assert_eq!(first_repair(&report), None, "a text that is cut is not a repair of the file");
        report.checks.clear();
        let expected = "OpenClaw: shorten the list with `skills budget fit --client openclaw`, which needs golden queries";
        assert_eq!(advice(&report), expected);
        report.clients[0].checks = vec![failed(CheckKind::Parse, Some("rename the file to SKILL.md"))];
        assert_eq!(advice(&report), "OpenClaw: rename the file to SKILL.md");
        assert_eq!(first_repair(&report).as_deref(), Some("OpenClaw: rename the file to SKILL.md"));
        report.clients[0].checks = vec![failed(CheckKind::Parse, None)];
        assert_eq!(advice(&report), "", "no description makes a client read a file that it drops");
        report.clients[0].checks = vec![failed(CheckKind::Offered, None)];
        assert_eq!(super::advice(&report, false), None, "a file without a draft");
    }

    #[test]
    fn report_distinguishes_truncated_descriptions_from_unlisted_skills() {
        let answer = |failed: CheckKind, repaired: Option<&str>, intent: Option<&str>| {
            let report = WhyReport {
                skill_id: SkillId::new("a"),
                location: "/s/a/SKILL.md".into(),
                intent: intent.map(str::to_owned),
                wins: false,
                checks: Vec::new(),
                clients: vec![ClientChecks {
                    client: "one".to_owned(),
                    name: "One".to_owned(),
                    source: String::new(),
                    searches_folder: true,
                    assumed: false,
                    checks: vec![WhyCheck {
                        check: failed,
                        result: CheckResult::Fail,
                        evidence: String::new(),
                        help: None,
                    }],
                    repaired: repaired.map(str::to_owned),
                    description: (failed == CheckKind::Description && repaired.is_none()).then(|| {
                        CutDescription {
                            shown: "Reads".to_owned(),
                            cut: " tables.".to_owned(),
                            lost_terms: Vec::new(),
                            place: None,
                        }
                    }),
                }],
                other_clients: Vec::new(),
                ranking: None,
            };
            match reading(Reading::default(), &report, None).passages.into_iter().next() {
                Some(Passage::Text { text, .. }) => text,
                _ => String::new(),
            }
        };
        let cut = "One does not show all of the skill's description.";
        assert_eq!(answer(CheckKind::Description, None, None), cut);
        let other = "One shows other text instead of the skill's description.";
        assert_eq!(answer(CheckKind::Description, Some("a tab"), None), other);
        let not_selected = "The skill is not selected for this request, and One does not offer it.";
        assert_eq!(answer(CheckKind::Parse, None, Some("read tables")), not_selected);
        assert_eq!(answer(CheckKind::Offered, None, None), "One does not offer the skill.");
    }

    #[test]
    fn assumed_folder_is_stated_once() {
        let check = |check: CheckKind, result: CheckResult, evidence: &str| WhyCheck {
            check,
            result,
            evidence: evidence.to_owned(),
            help: None,
        };
        let client = |name: &str, parse: CheckResult| ClientChecks {
            client: name.to_lowercase(),
            name: name.to_owned(),
            source: String::new(),
            searches_folder: false,
            assumed: true,
            checks: vec![
                check(CheckKind::Folder, CheckResult::Unknown, &format!("checked as if {name} searched it")),
                check(CheckKind::Parse, parse, "the file"),
            ],
            repaired: None,
            description: None,
        };
        let report = WhyReport {
            skill_id: SkillId::new("a"),
            location: "/s/a/SKILL.md".into(),
            intent: None,
            wins: false,
            checks: Vec::new(),
            clients: vec![client("One", CheckResult::Pass), client("Two", CheckResult::Fail)],
            other_clients: Vec::new(),
            ranking: None,
        };
        let mut passages = Vec::new();
        push_group(&report, GROUPS[0].0, GROUPS[0].1, &mut passages);
        let text = |passage: Passage| match passage {
            Passage::Check { result, name, text } => Some(format!("{result} {}: {text}", name.trim())),
            _ => None,
        };
        let text: Vec<String> = passages.into_iter().filter_map(text).collect();
        assert_eq!(
            text,
            [
                "unknown folder: checked as if each client searched it",
                "pass clients: One: file read, not shadowed",
                "fail parse: Two: the file"
            ]
        );
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
