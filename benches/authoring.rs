//! Time of a draft at a keystroke: the first figures (the request), the complete golden set, and the value of each clause.
//! `SKILLS_BENCH_ROOT=DIR` selects the skills; each query is a clause of a description, which its skill should win.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench that cannot be set up has to stop; its harness writes undocumented items"
)]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use skills_discovery::{
    Case, Document, EvalOptions, Expect, Request, Router, Weights, clauses, compare, outcomes,
};
use skills_skill::{index_text, parse};

/// The allocator of the program: with that of the C library, a ranking takes a third longer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Queries of the golden set.
const QUERIES: usize = 500;
/// Keystrokes that are measured.
const KEYS: usize = 60;

fn skills() -> Vec<Document> {
    let root = std::env::var_os("SKILLS_BENCH_ROOT")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/skills")), PathBuf::from);
    let mut folders = vec![root];
    let mut documents = Vec::new();
    let mut ids = std::collections::BTreeSet::new();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md"))
                && let Ok(bytes) = std::fs::read(&path)
                && let Ok(skill) = parse(&path, &bytes, 0)
                && ids.insert(skill.id.clone())
            {
                let text = index_text(&String::from_utf8_lossy(&bytes));
                documents.push(Document::from_skill(&skill, Some(text)));
            }
        }
    }
    documents
}

fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share).round() as usize]
}

fn main() {
    let documents = skills();
    let cases: Vec<Case> = documents
        .iter()
        .step_by((documents.len() / QUERIES).max(1))
        .filter_map(|document| {
            let clause = clauses(&document.description).into_iter().next()?;
            Some(Case {
                query: clause.trim().chars().take(120).collect(),
                expect: Expect::AnyOf(vec![document.id.clone()]),
            })
        })
        .take(QUERIES)
        .collect();
    let mut router =
        Router::new(Weights::shipped().expect("the shipped weights").with_generous_time_limits());
    router.update(documents.clone(), &[]);
    if let Some(joined) = router.joined() {
        router.adopt(joined);
    }
    let before = outcomes(&router, &cases, EvalOptions::default()).expect("queries with text");
    let edited = documents[documents.len() / 2].clone();
    let request = Request { intent: cases[cases.len() / 2].query.clone(), limit: 1, ..Request::default() };
    let (mut first, mut complete) = (Vec::new(), Vec::new());
    let typed = " Reads invoices and statements of a bank, and writes their rows to a sheet.";
    for key in 1..=KEYS {
        let more: String = typed.chars().take(key).collect();
        let description = format!("{}{more}", edited.description);
        let started = Instant::now();
        let draft = router.snapshot().with_document(Document { description, digest: None, ..edited.clone() });
        for router in [&router, &draft] {
            let own = Request { skill: Some(edited.id.clone()), ..request.clone() };
            black_box((router.discover(&request).expect("text"), router.discover(&own).expect("text")));
        }
        first.push(started.elapsed());
        let after = outcomes(&draft, &cases, EvalOptions::default()).expect("queries with text");
        black_box(compare(&cases, &before, &after));
        complete.push(started.elapsed());
    }
    println!("{} skills, {} queries, {KEYS} keystrokes", documents.len(), cases.len());
    for (name, times) in [("first figures", &mut first), ("complete", &mut complete)] {
        let (half, most) = (percentile(times, 0.5), percentile(times, 0.95));
        println!(
            "{name}: {:.1} ms (p50), {:.1} ms (p95)",
            half.as_secs_f64() * 1e3,
            most.as_secs_f64() * 1e3
        );
    }
}
