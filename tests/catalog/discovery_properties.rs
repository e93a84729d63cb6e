//! What holds for any skills and any request: parts add up to scores, and an index that was changed
//! incrementally ranks like one that was built at once.
use std::collections::BTreeMap;

use proptest::prelude::*;
use skills_discovery::{
    Answer, Correction, Document, Fit, Hit, Policy, Request, Router, TermKind, VerdictReason, Weights,
    WordRow,
};
use skills_skill::{IndexText, Role, SkillId, Status};

const WORDS: [&str; 35] = [
    "table",
    "tables",
    "pdf",
    "extract",
    "report",
    "weekly",
    "the",
    "a",
    "of",
    "mail",
    "send",
    "deploy",
    "server",
    "kubernetes",
    "docker",
    "image",
    "resize",
    "c++",
    "parseJSON",
    "user's",
    "表格",
    "提取",
    "not",
    "for",
    "show",
    "list",
    "café",
    "xlsx",
    "SwiftUI",
    "swiftui",
    "going",
    "go",
    "iOS",
    "ios",
    ". Not for tables and kubernetes servers.",
];

fn text(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&WORDS[..]), 0..most).prop_map(|words| words.join(" "))
}

/// Requests of stop words only.
fn stop_words() -> impl Strategy<Value = String> {
    const STOP_WORDS: [&str; 10] = ["the", "a", "of", "not", "for", "my", "what", "should", "help", "with"];
    prop::collection::vec(prop::sample::select(&STOP_WORDS[..]), 1..8).prop_map(|words| words.join(" "))
}

/// Requests: known words, misspelled ones, words of other languages.
fn requested() -> impl Strategy<Value = String> {
    const MORE: [&str; 9] =
        ["tabels", "extarct", "kuberntes", "lentas", "WaCAG", "repots", "my", "what", "crashlooping"];
    let words: Vec<&str> = WORDS.iter().chain(&MORE).copied().collect();
    prop::collection::vec(prop::sample::select(words), 1..8).prop_map(|words| words.join(" "))
}

prop_compose! {
    fn document()(
        id in 0..12_u32,
        name in text(4),
        description in text(14),
        tags in prop::collection::vec(text(2), 0..3),
        body in prop::option::of((prop::collection::vec(text(4), 0..3), text(40))),
        role in prop::sample::select(vec![Role::Procedure, Role::Utility, Role::Sidecar]),
        status in prop::sample::select(vec![Status::Stable, Status::Experimental, Status::Deprecated]),
    ) -> Document {
        let text = body.map(|(headings, body)| IndexText { headings, body });
        let document = Document::new(format!("skill-{id}"), name, description);
        Document { tags, text, role, status, ..document }
    }
}

fn router() -> Router {
    Router::new(Weights::shipped().unwrap().with_generous_time_limits())
}

fn ask(router: &Router, intent: &str, with_body: bool) -> Option<Answer> {
    let request = Request { intent: intent.into(), with_body, typing: true, ..Request::default() };
    router.discover(&request).ok()
}

fn same(a: &Answer, b: &Answer) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.results.len(), b.results.len());
    for (x, y) in a.results.iter().zip(&b.results) {
        prop_assert_eq!(&x.skill_id, &y.skill_id);
        prop_assert!((x.score - y.score).abs() < 1e-9, "{} {}", x.score, y.score);
    }
    prop_assert_eq!(a.excluded.len(), b.excluded.len());
    prop_assert_eq!(a.attachable.len(), b.attachable.len());
    prop_assert_eq!(a.below_limit, b.below_limit);
    Ok(())
}

/// Returns whether a text contains a word, also as a part of a camelCase word or of a run of another script.
fn has_word(text: &str, word: &str) -> bool {
    let mut parts = String::new();
    let mut last = ' ';
    for c in text.chars() {
        if last.is_lowercase() && c.is_uppercase() {
            parts.push(' ');
        }
        parts.push(c);
        last = c;
    }
    let found = |text: String| {
        text.split(|c: char| !c.is_alphanumeric() && !word.contains(c)).any(|other| other == word)
    };
    found(text.to_lowercase())
        || found(parts.to_lowercase())
        || !word.is_ascii() && text.to_lowercase().contains(word)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_parts_of_every_hit_sum_to_its_score(
        documents in prop::collection::vec(document(), 1..12),
        intent in text(9),
        with_body in any::<bool>(),
    ) {
        let mut router = router();
        router.update(documents, &[]);
        let Some(answer) = ask(&router, &intent, with_body) else { return Ok(()) };
        prop_assert!(answer.results.windows(2).all(|w| w[0].score >= w[1].score));
        for hit in &answer.results {
            let parts: f64 = hit.breakdown.terms.iter().map(|p| p.value).sum();
            let rows: f64 = hit.breakdown.rows.iter().map(|r| r.sum).sum();
            let columns: f64 = hit.breakdown.signals.iter().sum();
            let cells: f64 = hit.breakdown.rows.iter().flat_map(|r| r.by_signal).sum();
            for sum in [parts, rows, columns, cells] {
                prop_assert!((sum - hit.score).abs() < 1e-6, "{} for {}", sum, hit.score);
            }
            for mark in &hit.description_marks {
                prop_assert!(hit.description.get(mark.start as usize..mark.end as usize).is_some());
            }
        }
    }

    #[test]
    fn a_draft_scores_like_an_index_built_from_scratch(
        documents in prop::collection::vec(document(), 2..30),
        drafts in prop::collection::vec(document(), 1..4),
        intents in prop::collection::vec(requested(), 1..4),
    ) {
        let mut present: BTreeMap<SkillId, Document> = BTreeMap::new();
        for document in documents {
            present.insert(document.id.clone(), document);
        }
        let mut base = router();
        base.update(present.values().cloned().collect(), &[]);
        for draft in drafts {
            // One edit after the other, each over the same index.
            let overlay = base.with_document(draft.clone());
            let mut with_draft = present.clone();
            with_draft.insert(draft.id.clone(), draft);
            let mut rebuilt = router();
            rebuilt.update(with_draft.into_values().collect(), &[]);
            for intent in &intents {
                let request = Request { intent: intent.clone(), limit: 100, ..Request::default() };
                let (Ok(a), Ok(b)) = (overlay.discover(&request), rebuilt.discover(&request)) else { continue };
                prop_assert_eq!(a.results.len(), b.results.len(), "{}", intent);
                for (x, y) in a.results.iter().zip(&b.results) {
                    prop_assert_eq!(&x.skill_id, &y.skill_id);
                    prop_assert!((x.score - y.score).abs() < 1e-6, "{}: {} {}", intent, x.score, y.score);
                }
                prop_assert_eq!(&a.verdict, &b.verdict);
            }
        }
    }

    #[test]
    fn incrementally_changed_index_equals_a_rebuilt_one(
        steps in prop::collection::vec((document(), any::<bool>()), 1..40),
        intent in text(9),
    ) {
        let mut piecewise = router();
        let mut documents: BTreeMap<SkillId, Document> = BTreeMap::new();
        for (document, remove) in steps {
            if remove {
                piecewise.update(Vec::new(), std::slice::from_ref(&document.id));
                documents.remove(&document.id);
            } else {
                piecewise.update(vec![document.clone()], &[]);
                documents.insert(document.id.clone(), document);
            }
        }
        let mut once = router();
        once.update(documents.into_values().collect(), &[]);
        prop_assert_eq!(piecewise.len(), once.len());
        prop_assert_eq!(piecewise.bodies(), once.bodies());
        for with_body in [true, false] {
            if let (Some(a), Some(b)) = (ask(&piecewise, &intent, with_body), ask(&once, &intent, with_body)) {
                same(&a, &b)?;
            }
        }
        let mut restored = router();
        let mut written = Vec::new();
        piecewise.write_snapshot(&mut written).unwrap().unwrap();
        restored.restore(Box::new(written)).unwrap();
        if let (Some(a), Some(b)) = (ask(&restored, &intent, true), ask(&once, &intent, true)) {
            same(&a, &b)?;
        }
    }

    #[test]
    fn every_quoted_word_is_in_its_field(
        documents in prop::collection::vec(document(), 1..12),
        intent in requested(),
        typing in any::<bool>(),
    ) {
        let mut router = router();
        let texts: BTreeMap<SkillId, Document> =
            documents.iter().map(|d| (d.id.clone(), d.clone())).collect();
        router.update(documents, &[]);
        let request = Request { intent, typing, ..Request::default() };
        let Ok(answer) = router.discover(&request) else { return Ok(()) };
        for hit in &answer.results {
            let document = &texts[&hit.skill_id];
            let (headings, body) = document.text.clone().map_or((Vec::new(), String::new()), |t| (t.headings, t.body));
            let body = format!("{} {body}", headings.join(" "));
            for clause in hit.reason.split("; ") {
                let fields: &[String] = match clause.split(" “").next() {
                    Some("name and description contain") => &[document.name.clone(), document.description.clone()],
                    Some("its name contains") => std::slice::from_ref(&document.name),
                    Some("its description contains") => std::slice::from_ref(&document.description),
                    Some("its tags contain") => &[document.tags.join(" ")],
                    Some("only its body contains" | "its body contains") => std::slice::from_ref(&body),
                    _ => &[],
                };
                let quotes = clause.split('“').skip(1).zip(clause.split('“'));
                for (quote, before) in quotes {
                    let word = quote.split('”').next().unwrap_or_default().to_lowercase();
                    let hedges = ["a form of ", "a word with the stem of ", "characters of "];
                    let exact = !hedges.iter().any(|hedge| before.ends_with(hedge));
                    if before.ends_with("a word with ") {
                        prop_assert!(body.to_lowercase().contains(&word), "{}: {:?}", hit.reason, document);
                        continue;
                    }
                    for field in fields.iter().filter(|_| exact) {
                        prop_assert!(has_word(field, &word), "{}: {:?}", hit.reason, document);
                    }
                    if clause.starts_with("only its body contains") && exact {
                        let short = format!("{} {} {}", document.name, document.description, document.tags.join(" "));
                        prop_assert!(!has_word(&short, &word), "{}: {:?}", hit.reason, document);
                    }
                }
            }
        }
    }

    #[test]
    fn the_verdict_belongs_to_the_first_result(
        documents in prop::collection::vec(document(), 1..12),
        intent in requested(),
        strict in any::<bool>(),
    ) {
        let mut router = router();
        router.update(documents, &[]);
        let policy = if strict { Policy::Strict } else { Policy::Blended };
        let Ok(answer) = router.discover(&Request { intent, policy, ..Request::default() }) else { return Ok(()) };
        let first = answer.results.first();
        prop_assert_eq!(answer.verdict.skill_id.as_ref(), first.map(|hit| &hit.skill_id));
        prop_assert_eq!(answer.verdict.fit, answer.fit);
        let min_confidence = answer.confidence.map(|c| c.fit_threshold);
        if answer.verdict.reason == VerdictReason::BelowThreshold {
            prop_assert!(first.is_some_and(|hit| Some(hit.score) < min_confidence));
        }
        if answer.fit != Fit::None {
            prop_assert!(first.is_some_and(|hit| Some(hit.score) >= min_confidence));
            let content = answer.words.iter().any(|word| !word.stop);
            let named = first.is_some_and(|hit| hit.breakdown.terms.iter().any(|p| p.kind == TermKind::Exact));
            prop_assert!(content || named, "only stop words");
            let is_stop = |row: &&WordRow| row.query_word.is_some_and(|at| answer.words[at].stop);
            let rest = |hit: &Hit| hit.score - hit.breakdown.rows.iter().filter(is_stop).map(|row| row.sum).sum::<f64>();
            if answer.fit > Fit::Low && !named {
                prop_assert!(first.map(rest) >= min_confidence, "only with stop words: {}", answer.verdict.sentence);
            }
        }
    }

    #[test]
    fn stop_words_alone_fit_no_skill(
        documents in prop::collection::vec(document(), 1..12),
        intent in stop_words(),
        strict in any::<bool>(),
    ) {
        let mut router = router();
        router.update(documents, &[]);
        let policy = if strict { Policy::Strict } else { Policy::Blended };
        let answer = router.discover(&Request { intent, policy, ..Request::default() }).unwrap();
        let exact = |hit: &Hit| hit.breakdown.terms.iter().any(|part| part.kind == TermKind::Exact);
        if !answer.results.first().is_some_and(exact) {
            prop_assert_eq!(answer.fit, Fit::None, "{}", answer.verdict.sentence);
        }
    }

    #[test]
    fn finished_text_scores_the_same_everywhere(
        documents in prop::collection::vec(document(), 1..12),
        intent in requested(),
    ) {
        let mut router = router();
        router.update(documents, &[]);
        let ask = |intent: String, typing| router.discover(&Request { intent, typing, ..Request::default() });
        let Ok(finished) = ask(intent.clone(), false) else { return Ok(()) };
        let spaced = ask(format!("{intent} "), true).unwrap();
        prop_assert_eq!(&spaced.results, &finished.results);
        prop_assert_eq!(&spaced.verdict, &finished.verdict);
        let open = ask(intent.clone(), true).unwrap();
        for word in &open.words {
            let Some(Correction::Completed(completions)) = &word.correction else { continue };
            let fragment = intent[word.start as usize..word.end as usize].to_lowercase();
            for completion in completions {
                prop_assert!(completion.starts_with(&fragment) && *completion != fragment, "{}", completion);
            }
        }
        let completes = |c: &Option<Correction>| matches!(c, Some(Correction::Completed(_) | Correction::Dropped));
        if !open.words.iter().any(|word| completes(&word.correction)) {
            prop_assert_eq!(&open.results, &finished.results);
        }
    }

    #[test]
    fn no_text_makes_it_panic(name in any::<String>(), description in any::<String>(), intent in any::<String>()) {
        let mut router = router();
        router.update(vec![Document::new("x", name, description.clone())], &[]);
        let _ = ask(&router, &intent, true);
        let _ = ask(&router, &description, true);
        let _ = router.body_lines(&description, 1, &intent, 5);
    }
}
