//! Time of a draft at a keystroke: the first figures (the request), the complete golden set, and the value of each clause.
//! Then the search for the commit that changed a winner, in a repository that is made of the skills, and the collisions of
//! all skills. `SKILLS_BENCH_ROOT=DIR` selects the skills; each query is a clause of a description, which its skill should
//! win.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench that cannot be set up has to stop; its harness writes undocumented items"
)]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

use skills_api::{BisectJob, bisect};
use skills_config::{Config, Env};
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
/// Commits of the repository, and skills in it.
const COMMITS: usize = 500;
const COMMITTED_SKILLS: usize = 200;
/// What the second commit adds to one of the skills, so that the search reads all other commits.
const NEW_SUBJECT: &str = "Calibrates the mirrors of a spectrograph.";
/// Searches after the first one.
const WARM: usize = 3;

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

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

fn run(mut command: Command) {
    let status = command.status().expect("git");
    assert!(status.success(), "{command:?}: {status}");
}

/// Makes a repository of these skills: the first commit adds them, each other one changes one description.
fn make_repository(folder: &Path, documents: &[Document]) {
    let file = |at: usize, description: &str| {
        let text = documents[at % documents.len()].text.clone().unwrap_or_default();
        let description = serde_json::to_string(description).expect("a string");
        let headings: String = text.headings.iter().map(|heading| format!("# {heading}\n\n")).collect();
        let content =
            format!("---\nname: skill-{at}\ndescription: {description}\n---\n{headings}{}\n", text.body);
        format!("M 100644 inline skill-{at}/SKILL.md\ndata {}\n{content}\n", content.len())
    };
    let mut descriptions: Vec<String> = documents
        .iter()
        .cycle()
        .take(COMMITTED_SKILLS)
        .map(|document| document.description.clone())
        .collect();
    let mut stream = String::new();
    for commit in 0..COMMITS {
        let message = format!("commit {commit}");
        let seconds = 1_700_000_000 + commit * 3_600;
        let _ = write!(
            stream,
            "commit refs/heads/main\ncommitter Bench <bench@example.org> {seconds} +0000\ndata {}\n{message}\n",
            message.len()
        );
        let at = commit % COMMITTED_SKILLS;
        match commit {
            0 => stream.extend((0..COMMITTED_SKILLS).map(|at| file(at, &descriptions[at]))),
            1 => {
                let _ = write!(descriptions[at], " {NEW_SUBJECT}");
                stream += &file(at, &descriptions[at]);
            }
            _ => stream += &file(at, &format!("{} Revision {commit}.", descriptions[at])),
        }
    }
    fs::create_dir_all(folder).expect("a folder");
    let commits = folder.with_extension("stream");
    fs::write(&commits, stream).expect("a file");
    let mut init = git(folder);
    init.args(["init", "--quiet"]);
    run(init);
    let mut head = git(folder);
    head.args(["symbolic-ref", "HEAD", "refs/heads/main"]);
    run(head);
    let mut import = git(folder);
    import.args(["fast-import", "--quiet"]).stdin(Stdio::from(File::open(&commits).expect("the commits")));
    run(import);
    let mut checkout = git(folder);
    checkout.args(["reset", "--quiet", "--hard"]);
    run(checkout);
}

/// Times the search with an empty cache, then with the index of the first search.
fn measure_bisect(documents: &[Document]) {
    let home = tempfile::tempdir().expect("a home");
    let repository = home.path().join("repository");
    make_repository(&repository, documents);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut times = Vec::new();
    for _ in 0..=WARM {
        let mut config = Config::defaults(&repository, &Env::at(home.path()));
        config.argument_roots = vec![repository.clone()];
        let job = BisectJob {
            request: NEW_SUBJECT.to_owned(),
            skill: None,
            from: "HEAD".to_owned(),
            max_commits: COMMITS,
        };
        let started = Instant::now();
        let found = runtime.block_on(bisect(config, job)).expect("a search");
        times.push(started.elapsed());
        let change = found.change.expect("a commit that changed the winner");
        assert_eq!((change.subject.as_str(), found.commits), ("commit 1", COMMITS - 1));
    }
    let cold = times.remove(0);
    println!(
        "bisect: cold {:.2} s, warm {:.2} s ({COMMITS} commits, {COMMITTED_SKILLS} skills)",
        cold.as_secs_f64(),
        percentile(&mut times, 0.5).as_secs_f64()
    );
}

/// Times the collisions of all skills, without reading and indexing them.
fn measure_collisions(router: &Router) {
    let started = Instant::now();
    let map = router.collision_map(&AtomicUsize::new(0), &AtomicBool::new(false)).expect("not stopped");
    let taken = started.elapsed().as_secs_f64();
    println!("collisions: {taken:.1} s ({} skills, {} probe requests)", map.skills, map.probes);
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
    measure_bisect(&documents);
    measure_collisions(&router);
}
