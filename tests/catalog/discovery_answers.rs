//! Natural-language requests: what wins, why, what is left out, and what happens while typing.

use crate::discovery::skills::{ask, router, typing};
use skills_discovery::{Correction, ExcludedWhy, Fit, Group, MatcherState, Policy, Request, ScoreComponent};
use skills_skill::Role;

#[test]
fn matching_skill_wins_and_terms_sum_to_its_score() {
    let answer = ask(&router(), "turn the table in this pdf into a spreadsheet");
    let first = &answer.results[0];
    assert_eq!(first.skill_id.as_str(), "pdf-tables");
    assert_eq!(first.group, Group::Primary);
    assert!(first.reason.starts_with("name and description contain “tables” and “pdf”"), "{}", first.reason);
    for hit in &answer.results {
        let sum: f64 = hit.breakdown.terms.iter().map(|p| p.value).sum();
        assert!((sum - hit.score).abs() < 1e-6, "{}: {sum} for {}", hit.skill_id, hit.score);
        let rows: f64 = hit.breakdown.rows.iter().map(|r| r.sum).sum();
        let columns: f64 = hit.breakdown.signals.iter().sum();
        assert!((rows - sum).abs() < 1e-9 && (columns - sum).abs() < 1e-9);
    }
    let labels: Vec<&str> = first.breakdown.rows.iter().map(|r| r.label.as_str()).collect();
    assert!(labels.contains(&"spreadsheet") && labels.contains(&"general wording"), "{labels:?}");
    assert_eq!(labels.last(), Some(&"rules"));
}

#[test]
fn matched_words_are_marked_in_name_and_description() {
    let answer = ask(&router(), "turn the tables in this pdf into a spreadsheet");
    let hit = &answer.results[0];
    let marked = |marks: &[skills_discovery::Mark], text: &str, signal| {
        let of = marks.iter().filter(|m| m.signal == signal);
        of.map(|m| text[m.start as usize..m.end as usize].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(marked(&hit.name_marks, &hit.name, ScoreComponent::Name), ["pdf", "tables"]);
    let words = marked(&hit.description_marks, &hit.description, ScoreComponent::Description);
    assert_eq!(words, ["tables", "PDF", "spreadsheets"]);
}

#[test]
fn description_excluding_the_request_is_reported() {
    let answer = ask(&router(), "fill in a form of a pdf");
    let tables = answer.results.iter().find(|h| h.skill_id.as_str() == "pdf-tables").unwrap();
    assert_eq!(tables.exclusion_note.as_deref(), Some("Not for filling in forms."));
    assert_eq!(answer.results[0].skill_id.as_str(), "pdf-forms");
    assert_eq!(answer.results[0].exclusion_note, None);
}

#[test]
fn a_named_skill_wins_over_any_text() {
    for intent in
        ["weekly-report", "use the weekly-report skill for my pdf tables", "/weekly-report tables pdf"]
    {
        let answer = ask(&router(), intent);
        assert_eq!(answer.results[0].skill_id.as_str(), "weekly-report", "{intent}");
        assert_eq!(answer.fit, Fit::High, "{intent}");
    }
}

#[test]
fn sidecars_deprecated_and_shadowed_skills_are_listed_separately() {
    let answer = ask(&router(), "check the rows of a table from a pdf");
    assert!(answer.results.iter().all(|h| h.role != Role::Sidecar));
    assert_eq!(answer.attachable[0].skill_id.as_str(), "table-audit");
    let why: Vec<(&str, &str)> =
        answer.excluded.iter().map(|e| (e.skill_id.as_str(), e.why.as_str())).collect();
    assert!(why.contains(&("old-pdf", "deprecated")), "{why:?}");
    assert!(why.contains(&("pdf-tables@0a1b2c3d", "a copy, shadowed by ~/.claude/skills")), "{why:?}");

    let request = Request { intent: "extract pdf".into(), include_deprecated: true, ..Request::default() };
    let answer = router().discover(&request).unwrap();
    assert!(answer.results.iter().any(|h| h.skill_id.as_str() == "old-pdf"));
}

#[test]
fn role_and_domain_filters_report_excluded_skills() {
    let request = Request {
        intent: "table in a pdf".into(),
        domain: vec!["documents".into()],
        role_filter: Some(Role::Utility),
        ..Request::default()
    };
    let answer = router().discover(&request).unwrap();
    assert_eq!(answer.results.iter().map(|h| h.skill_id.as_str()).collect::<Vec<_>>(), ["csv-tools"]);
    assert!(
        answer.excluded.iter().any(|e| e.reason == ExcludedWhy::Role && e.why == "its role is procedure")
    );
    assert!(
        answer.excluded.iter().any(|e| e.reason == ExcludedWhy::Domain && e.why == "its domain is house")
    );
    let sidecars = Request { intent: "table".into(), role_filter: Some(Role::Sidecar), ..Request::default() };
    assert_eq!(router().discover(&sidecars).unwrap().results[0].group, Group::Attachable);
}

#[test]
fn limit_reports_the_number_of_hidden_results() {
    let request = Request { intent: "pdf".into(), limit: 1, ..Request::default() };
    let answer = router().discover(&request).unwrap();
    assert_eq!(answer.results.len(), 1);
    assert!(answer.below_limit >= 1);
}

#[test]
fn strict_policy_puts_roles_before_text() {
    let intent = "convert csv columns";
    let blended = ask(&router(), intent);
    assert_eq!(blended.results[0].skill_id.as_str(), "csv-tools");
    let request = Request { intent: intent.into(), policy: Policy::Strict, ..Request::default() };
    let strict = router().discover(&request).unwrap();
    let roles: Vec<Role> = strict.results.iter().map(|h| h.role).collect();
    assert!(roles.is_sorted() && roles.contains(&Role::Utility), "{roles:?}");
    assert_eq!(strict.results[0].role, Role::Procedure);
    assert!(strict.results.iter().all(|h| (h.score - h.z).abs() < 1e-12), "rules order, they add nothing");
}

#[test]
fn read_only_request_prefers_a_read_only_skill() {
    let term = |intent: &str| {
        let answer = ask(&router(), intent);
        let hit = answer.results.into_iter().find(|h| h.skill_id.as_str() == "lamp-state").unwrap();
        hit.breakdown.terms.iter().any(|p| p.label == "read-only")
    };
    assert!(term("show which lamps are on"));
    assert!(!term("switch the lamps on"));
}

#[test]
fn a_misspelled_word_is_corrected_and_reported() {
    let answer = ask(&router(), "extract the tabels from a pdf");
    assert_eq!(answer.results[0].skill_id.as_str(), "pdf-tables");
    assert_eq!(answer.words[2].correction, Some(Correction::Typo("tables".into())));
}

#[test]
fn an_unfinished_last_word_is_completed_only_while_typing() {
    let answer = typing(&router(), "make a spreadsh");
    assert_eq!(answer.words[2].correction, Some(Correction::Completed(vec!["spreadsheets".into()])));
    assert_eq!(answer.results[0].skill_id.as_str(), "pdf-tables");
    let answer = typing(&router(), "pdf tables zq");
    assert_eq!(answer.words[2].correction, Some(Correction::Dropped));
    let done = ask(&router(), "make a spreadsh");
    assert_ne!(done.words[2].correction, Some(Correction::Completed(vec!["spreadsheets".into()])));
}

#[test]
fn chinese_requests_find_chinese_descriptions() {
    let answer = ask(&router(), "提取表格");
    assert_eq!(answer.results[0].skill_id.as_str(), "biaoge");
    let hit = &answer.results[0];
    let marked: Vec<&str> =
        hit.description_marks.iter().map(|m| &hit.description[m.start as usize..m.end as usize]).collect();
    assert_eq!(marked, ["提取表格"]);
}

#[test]
fn unknown_words_rank_nothing_and_empty_request_is_rejected() {
    let answer = ask(&router(), "ωωω");
    assert!(answer.results.is_empty() && answer.confidence.is_none());
    assert_eq!(answer.fit, Fit::None);
    assert!(!answer.words[0].known);
    let error = router().discover(&Request { intent: "  ".into(), ..Request::default() }).unwrap_err();
    assert_eq!(error.to_string(), "the request is empty; describe the task in a few words");
}

#[test]
fn bodies_can_be_omitted_and_missing_ones_are_counted() {
    let with = ask(&router(), "borderless grids");
    assert_eq!(with.results[0].skill_id.as_str(), "pdf-tables");
    let body = with.results[0].reason.split(';').next();
    assert_eq!(body, Some("only its body contains “borderless” and a form of “grids”"));
    let request = Request { intent: "borderless grids".into(), with_body: false, ..Request::default() };
    let without = router().discover(&request).unwrap();
    assert!(
        without.results.iter().all(|h| h.skill_id.as_str() != "pdf-tables" || h.breakdown.signals[2] == 0.0)
    );
    assert_eq!(without.profile, "short");
    assert_eq!(with.bodies_missing, with.skills - 2);
}

#[test]
fn each_matcher_reports_its_result() {
    let answer = ask(&router(), "tables of a pdf");
    let states: Vec<(&str, bool)> =
        answer.matchers.iter().map(|l| (l.matcher.as_str(), l.state == MatcherState::Ran)).collect();
    assert_eq!(
        states,
        [
            ("exact", false),
            ("typo", false),
            ("lexical", true),
            ("presence", true),
            ("task", false),
            ("semantic", true)
        ]
    );
}
