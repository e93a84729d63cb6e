//! The verdict: about the first result, on one scale with the scores, and never by stop words, another language or a
//! guess alone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::collections::BTreeMap;
use std::path::Path;

use crate::discovery::skills::{ask, router, typing};
use serde::Deserialize;
use skills_discovery::{Answer, Correction, Document, Fit, Policy, Request, Router, VerdictReason, Weights};
use skills_skill::{IndexText, Role};

#[derive(Deserialize)]
struct Languages {
    foreign: BTreeMap<String, Vec<String>>,
    foreign_names: Vec<Expected>,
    mixed: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    query: String,
    expect: String,
}

fn languages() -> Languages {
    serde_saphyr::from_str(include_str!("../fixtures/discovery/languages.yaml")).unwrap()
}

fn filled(documents: Vec<Document>) -> Router {
    let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
    router.update(documents, &[]);
    router
}

fn shipped() -> Router {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills");
    let locations = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().join("SKILL.md"));
    let read = |location: std::path::PathBuf| {
        let skill = skills_skill::read_bundle(&location).unwrap();
        let text = skills_skill::read_index_text(&skill).unwrap();
        Document::from_skill(&skill, Some(text))
    };
    filled(locations.filter(|location| location.is_file()).map(read).collect())
}

fn first(answer: &Answer) -> &str {
    answer.results.first().map_or("", |hit| hit.skill_id.as_str())
}

#[test]
fn verdict_is_about_the_first_result() {
    let router = shipped();
    for intent in ["what should I do with it", "json diff", "explain this regex"] {
        for policy in [Policy::Blended, Policy::Strict] {
            let request = Request { intent: intent.into(), policy, ..Request::default() };
            let answer = router.discover(&request).unwrap();
            assert_eq!(answer.verdict.skill_id.as_ref(), answer.results.first().map(|hit| &hit.skill_id));
            assert_eq!(answer.verdict.fit, answer.fit);
        }
    }
}

#[test]
fn stop_words_alone_fit_nothing() {
    let router = shipped();
    for intent in [
        "my has should what",
        "should I have",
        "what do I do",
        "please help me with this",
        "can you do it for me",
        "should we use it or not",
        "what should I do with it",
        "whats it do",
        "cant you",
        "lets get it, youre who they dont",
    ] {
        let answer = ask(&router, intent);
        assert_eq!(answer.fit, Fit::None, "{intent}: {}", answer.verdict.sentence);
    }
    assert_eq!(ask(&router, "my has should what").verdict.reason, VerdictReason::StopWords);
}

#[test]
fn threshold_and_scores_are_on_one_scale() {
    let router = shipped();
    for intent in ["how tall is mount everest", "json diff", "order a pizza", "table of a pdf"] {
        let answer = ask(&router, intent);
        let Some(confidence) = answer.confidence else { continue };
        let score = answer.results[0].score;
        match answer.verdict.reason {
            VerdictReason::BelowThreshold => assert!(score < confidence.fit_threshold, "{intent}"),
            _ => assert!(answer.fit == Fit::None || score >= confidence.fit_threshold, "{intent}"),
        }
    }
}

#[test]
fn reasons_quote_words_as_interpreted() {
    let answer = ask(&router(), "extrakt the tabels from a pdf");
    let hit = &answer.results[0];
    assert!(matches!(&answer.words[2].correction, Some(Correction::Typo(word)) if word == "tables"));
    let clauses = hit.reason.strip_prefix("“tabels” was read as “tables”; ");
    assert!(clauses.is_some_and(|clauses| !clauses.contains("tabels")), "{}", hit.reason);
    let labels: Vec<&str> = hit.breakdown.rows.iter().map(|row| row.label.as_str()).collect();
    assert!(labels.contains(&"tables") && !labels.contains(&"tabels"), "{labels:?}");
}

#[test]
fn words_split_by_capitals_match_as_one() {
    let views = Document::new("views", "views", "Builds SwiftUI views. Reads and writes OpenAPI documents.");
    let other = |n: usize| Document::new(format!("s{n}"), format!("s{n}"), "Sorts rows of a list.");
    let router = filled([views].into_iter().chain((0..8).map(other)).collect());
    for (intent, quoted) in [("swiftui charts", "“SwiftUI”"), ("an openapi file", "“OpenAPI”")] {
        let answer = ask(&router, intent);
        assert_eq!(first(&answer), "views", "{intent}");
        assert!(answer.results[0].reason.contains(quoted), "{}", answer.results[0].reason);
    }
}

#[test]
fn shared_stop_words_are_named_in_the_reason() {
    let answer = ask(&shipped(), "what should I do with it");
    assert_eq!(answer.fit, Fit::None);
    for hit in &answer.results {
        assert!(!hit.reason.contains("no content word in common"), "{}", hit.reason);
    }
    assert!(answer.results[0].reason.starts_with("only stop words match"), "{}", answer.results[0].reason);
}

#[test]
fn fit_by_corrected_words_is_low() {
    let answer = ask(&router(), "wekly reprot");
    assert_eq!(first(&answer), "weekly-report");
    assert_eq!((answer.fit, answer.verdict.reason), (Fit::Low, VerdictReason::FitsByReading));
}

#[test]
fn finished_requests_score_as_while_typing() {
    let router = router();
    for intent in ["kuberntes tables crashlooping", "pdf tables zzqx", "extract the tabels"] {
        let (typed, finished) = (typing(&router, intent), ask(&router, intent));
        assert_eq!(typed.results, finished.results, "{intent}");
        assert_eq!(typed.verdict, finished.verdict, "{intent}");
    }
}

#[test]
fn strict_policy_names_itself_in_verdict() {
    let request = Request { intent: "tables of a pdf".into(), policy: Policy::Strict, ..Request::default() };
    let answer = router().discover(&request).unwrap();
    assert_eq!(answer.results[0].role, Role::Procedure);
    assert!(answer.fit != Fit::None && answer.verdict.sentence.ends_with("strict policy"));
}

#[test]
fn other_languages_without_function_words_are_reported() {
    let router = shipped();
    for intent in ["Sicherheitslücken beheben", "Übersetzung Geschäftsbericht", "procès-verbal hebdomadaire"]
    {
        let verdict = ask(&router, intent).verdict;
        assert_eq!(verdict.reason, VerdictReason::Language, "{intent}: {}", verdict.sentence);
    }
    let names = ask(&router, "traefik nginx ingress").verdict;
    assert_ne!(names.reason, VerdictReason::Language, "{}", names.sentence);
}

#[test]
fn requests_in_other_languages_are_reported() {
    let router = shipped();
    for (language, requests) in languages().foreign {
        for intent in requests {
            let answer = ask(&router, &intent);
            assert!(answer.fit <= Fit::Low, "{intent}: {}", answer.verdict.sentence);
            if answer.fit == Fit::None {
                let language_note = answer.verdict.language.unwrap();
                assert_eq!(
                    (language_note.request, language_note.skills),
                    (language.clone(), "en".to_owned()),
                    "{intent}"
                );
            }
        }
    }
}

#[test]
fn english_requests_with_foreign_words_find_their_skill() {
    let router = shipped();
    let Languages { foreign_names, mixed, .. } = languages();
    for Expected { query, expect } in foreign_names.into_iter().chain(mixed) {
        let answer = ask(&router, &query);
        assert_eq!(first(&answer), expect, "{query}");
        assert_ne!(answer.verdict.reason, VerdictReason::Language, "{query}");
    }
}

#[test]
fn skills_in_another_language_match_requests_in_it() {
    let documents = vec![
        Document::new("biaoge", "biaoge", "从PDF文件中提取表格并保存为电子表格。用户要求提取表格时使用。"),
        Document::new("fanyi", "fanyi", "把文档翻译成英文或其他语言。"),
        Document::new("gijiroku", "gijiroku", "会議の議事録を要約して、決定事項をまとめます。"),
        Document::new("csv", "csv-tools", "Converts and sorts columns of a CSV table."),
        Document::new("mail", "mail-writer", "Writes short mails to colleagues."),
    ];
    // Most of them are in Chinese, or no language is more frequent than another.
    let chinese = filled(documents[..4].to_vec());
    let router = filled(documents);
    for (intent, expected) in [("从这个PDF文件中提取表格", "biaoge"), ("把这份文档翻译成英文", "fanyi")]
    {
        let answer = ask(&chinese, intent);
        assert_eq!(first(&answer), expected, "{intent}");
        assert_ne!(answer.fit, Fit::None, "{intent}: {}", answer.verdict.sentence);
        assert_eq!(answer.verdict.language, None, "{intent}");
    }
    for (intent, expected) in [
        ("从这个PDF文件中提取表格", "biaoge"),
        ("把这份文档翻译成英文", "fanyi"),
        ("昨日の会議の議事録を要約して", "gijiroku"),
        ("sort the columns of a csv table", "csv"),
    ] {
        let answer = ask(&router, intent);
        assert_eq!(first(&answer), expected, "{intent}");
        assert_ne!(answer.fit, Fit::None, "{intent}: {}", answer.verdict.sentence);
    }
}

#[test]
fn exclusions_win_no_request() {
    let answer = ask(&shipped(), "merge the logs of three services in order of time");
    assert_eq!(first(&answer), "incident-timeline");
}

#[test]
fn every_surface_form_is_a_correction_target() {
    let router = filled(vec![
        Document::new(
            "a11y",
            "accessibility",
            "Accessibility of pages: makes them accessible, as WCAG says.",
        ),
        Document::new("mail", "mail-writer", "Writes short mails to colleagues."),
    ]);
    let read = |intent: &str| match ask(&router, intent).words[0].correction.clone() {
        Some(Correction::Typo(word)) => word,
        other => panic!("{intent}: {other:?}"),
    };
    assert_eq!(read("accessibjle pages"), "accessible");
    assert_eq!(read("WaCAG pages"), "wcag");
    assert_eq!(read("zaccessibility pages"), "accessibility");
    assert_eq!(read("zolleagues"), "colleagues");
}

#[test]
fn short_words_are_corrected_by_the_rest_of_the_request() {
    let router = filled(vec![
        Document::new("bills", "bills", "Pays the gas bill and the water bill of a flat."),
        Document::new("ball", "ball", "Finds a place to play ball in the park."),
        Document::new("disk", "disk", "Frees space on a disk, ssh keys excepted."),
    ]);
    let read = |intent: &str, at: usize| match ask(&router, intent).words[at].correction.clone() {
        Some(Correction::Typo(word)) => word,
        None => String::new(),
        other => panic!("{intent}: {other:?}"),
    };
    assert_eq!(read("pay the gas bxll", 3), "bill");
    assert_eq!(read("play bxll in the park", 1), "ball");
    // One edit turns most short words into a stop word, whatever they mean.
    assert_eq!(read("pay teh gas bill", 1), "the");
    assert_eq!(read("pay thw gas bill", 1), "");
    // Acronyms, contractions and words of English are not misspelled.
    assert_eq!(read("free space on my SSD", 4), "");
    assert_eq!(read("they're in the park", 0), "");
    assert_eq!(read("a bull in the park", 1), "");
}

#[test]
fn id_of_a_skill_has_precedence_over_similar_names() {
    let router = filled(vec![
        Document::new("pdf-anthropic", "pdf", "Reads, fills and writes PDF files: pdf forms, pdf tables."),
        Document::new("pdf", "pdf", "Works with documents."),
    ]);
    assert_eq!(first(&ask(&router, "pdf")), "pdf");
}

#[test]
fn mixed_requests_are_not_rejected_for_their_language() {
    let router = filled(vec![
        Document::new("modules", "terraform-modules", "Writes Terraform modules for AWS: VPC and subnets."),
        Document::new("seo", "seo-audit", "SEO audit of web pages."),
        Document::new("mail", "mail-writer", "Writes short mails to colleagues."),
    ]);
    for (intent, expected) in [
        ("write a terraform module for una VPC en AWS", "modules"),
        ("make an SEO audit de mi página web", "seo"),
    ] {
        let answer = ask(&router, intent);
        assert_eq!(first(&answer), expected, "{intent}");
        assert_ne!(answer.verdict.reason, VerdictReason::Language, "{intent}");
    }
}

#[test]
fn foreign_names_are_not_corrected() {
    let router = filled(vec![
        Document::new("tests", "unit-tests", "Writes unit tests for parsers."),
        Document::new("other", "other", "The word jos stands here."),
    ]);
    let answer = ask(&router, "unit tests for the parser that José wrote");
    assert_eq!(first(&answer), "tests");
    assert!(answer.words.iter().all(|word| word.correction.is_none()), "{:?}", answer.words);
}

#[test]
fn reasons_quote_compounds_as_one_word() {
    let router = filled(vec![
        Document::new("api", "api-expert", "Builds services with FastAPI and PostgreSQL."),
        Document::new("mail", "mail-writer", "Writes short mails to colleagues."),
    ]);
    let reason = ask(&router, "services with FastAPI and PostgreSQL").results[0].reason.clone();
    assert!(reason.contains("“FastAPI”") && reason.contains("“PostgreSQL”"), "{reason}");
    assert!(!reason.contains("“Fast”") && !reason.contains("“SQL”"), "{reason}");
}

#[test]
fn a_tag_that_is_a_stop_word_is_not_named_by_it() {
    let mut deploy = Document::new("deploy", "railway-docs", "Answers questions about Railway deployments.");
    deploy.tags = vec!["help".to_owned()];
    let router =
        filled(vec![deploy, Document::new("mail", "mail-writer", "Writes short mails to colleagues.")]);
    let answer = ask(&router, "help");
    assert_eq!(answer.verdict.reason, VerdictReason::StopWords, "{:?}", answer.verdict);
}

#[test]
fn words_of_an_exclusion_are_not_reported_as_body_only() {
    let mut timeline = Document::new(
        "timeline",
        "incident-timeline",
        "Builds a timeline of an incident from chat messages. Not for minutes of a planned meeting.",
    );
    timeline.text = Some(IndexText { headings: vec![], body: "Do not write minutes.".to_owned() });
    let router = filled(vec![
        timeline,
        Document::new("mail", "mail-writer", "Writes short mails to colleagues."),
        Document::new("api", "api-expert", "Builds services with FastAPI."),
    ]);
    let answer = ask(&router, "timeline minutes");
    let reason = &answer.results[0].reason;
    assert!(!reason.contains("only its body contains “minutes”"), "{reason}");
    assert!(reason.contains("its description contains “minutes” only in an exclusion clause"), "{reason}");
}

#[test]
fn requests_without_words_are_reported() {
    let router = filled(vec![Document::new("mail", "mail-writer", "Writes short mails to colleagues.")]);
    let verdict = ask(&router, "!!!").verdict;
    assert_eq!(verdict.reason, VerdictReason::StopWords);
    assert!(verdict.sentence.contains("contains no words"), "{}", verdict.sentence);
}

#[test]
fn odd_capitals_with_a_known_part_are_read_as_one_word() {
    let router = filled(vec![
        Document::new("wcag", "accessibility", "Checks pages against WCAG."),
        Document::new("cag", "prompt-caching", "Cache augmented generation, CAG, for prompts."),
        Document::new("wa", "whatsapp", "Sends WA messages."),
    ]);
    assert_eq!(first(&ask(&router, "WaCAG check")), "wcag");
}
