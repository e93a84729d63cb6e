//! Time of a request, of a cold index, of a warm start and of one changed skill, over synthetic skills
//! made from a seed, and over the public query sets where `SKILLS_TEST_DATA` is set.

#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "a bench that cannot be set up has to stop; its harness writes undocumented items"
)]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use skills_discovery::{Document, EvalOptions, Request, Router, Weights, eval, queries_jsonl, skills_jsonl};
use skills_skill::IndexText;

/// Skills of the largest public collection that was counted.
const LARGE: usize = 14_639;

/// A small generator (xorshift) that puts words together as often as real skills have them, so that every
/// run has the same texts.
struct Seeded {
    state: u64,
    words: Arc<[String]>,
}

impl Seeded {
    fn new(seed: u64) -> Self {
        Self { state: seed, words: shipped_words() }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// A word of the shipped skills; one in twenty is a rare one with a number, as identifiers are.
    fn word(&mut self) -> String {
        let draw = self.next() >> 11;
        let word = self.words[draw as usize % self.words.len()].clone();
        if draw.is_multiple_of(20) { format!("{word}{}", self.next() % 5_000) } else { word }
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn document(&mut self, id: usize) -> Document {
        let body = IndexText { headings: (0..12).map(|_| self.text(3)).collect(), body: self.text(850) };
        let (name, description) = (self.text(2).replace(' ', "-"), self.text(38));
        Document { text: Some(body), ..Document::new(format!("skill-{id}"), name, description) }
    }

    fn documents(&mut self, n: usize) -> Vec<Document> {
        (0..n).map(|id| self.document(id)).collect()
    }
}

/// All words of the shipped skills, repeated as they are there.
fn shipped_words() -> Arc<[String]> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the shipped skills")
        .map(|entry| entry.expect("an entry").path().join("SKILL.md"))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let text: String = files.iter().map(|f| std::fs::read_to_string(f).expect("a skill")).collect();
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

fn router() -> Router {
    Router::new(Weights::shipped().expect("the shipped weights"))
}

fn filled(documents: Vec<Document>) -> Router {
    let mut router = router();
    router.update(documents, &[]);
    router
}

fn requests(n: usize) -> Vec<Request> {
    let mut seeded = Seeded::new(7);
    (0..n).map(|_| Request { intent: seeded.text(10), ..Request::default() }).collect()
}

fn percentiles(what: &str, router: &Router) {
    let mut times: Vec<Duration> = requests(500)
        .iter()
        .map(|request| {
            let started = Instant::now();
            black_box(router.discover(request).expect("an answer"));
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("{what}: p50 {:?}, p99 {:?}", times[250], times[495]);
}

fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?.trim().trim_end_matches(" kB").parse().ok()
}

fn query(c: &mut Criterion) {
    let mut group = c.benchmark_group("query");
    for n in [100, 1_000, 10_000, LARGE] {
        let router = filled(Seeded::new(1).documents(n));
        percentiles(&format!("query over {n} skills"), &router);
        let requests = requests(64);
        let mut at = 0;
        group.bench_function(BenchmarkId::from_parameter(n), |b| {
            b.iter(|| {
                at = (at + 1) % requests.len();
                router.discover(&requests[at]).expect("an answer")
            });
        });
    }
    group.finish();
}

fn index(c: &mut Criterion) {
    let mut group = c.benchmark_group("index");
    group.sample_size(10);
    let documents = Seeded::new(1).documents(LARGE);
    let before = resident();
    let started = Instant::now();
    let mut full = router();
    for chunk in documents.chunks(512) {
        full.update(chunk.to_vec(), &[]);
    }
    println!("cold index of {LARGE} skills in pieces of 512: {:?}", started.elapsed());
    if let (Some(before), Some(after)) = (before, resident()) {
        println!("resident: {} MB more than before it", (after.saturating_sub(before)) / 1024);
    }
    let mut bytes = Vec::new();
    full.write_snapshot(&mut bytes).expect("a snapshot");
    println!("snapshot: {} MB", bytes.len() / 1_048_576);
    group.bench_function("warm start", |b| {
        b.iter_batched(
            || (router(), Box::new(bytes.clone())),
            |(mut r, bytes)| r.restore(bytes).map(|()| r),
            BatchSize::PerIteration,
        );
    });
    let mut seeded = Seeded::new(3);
    group.bench_function("one changed skill", |b| {
        b.iter_batched(
            || {
                let id = seeded.next() as usize % LARGE;
                seeded.document(id)
            },
            |document| full.update(vec![document], &[]),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn real(_: &mut Criterion) {
    let Some(dir) = std::env::var_os("SKILLS_TEST_DATA") else {
        eprintln!("SKIPPED: SKILLS_TEST_DATA is not set; the public query sets are not measured");
        return;
    };
    for name in ["skilltrig", "metatool", "sealtools", "clinc150", "banking77"] {
        let dir = std::path::Path::new(&dir).join("golden").join(name);
        let read = |file| std::fs::read_to_string(dir.join(file)).expect("a file of the set");
        let router = filled(skills_jsonl(&read("skills.jsonl")).expect("skills"));
        let cases = queries_jsonl(&read("queries.jsonl")).expect("queries");
        let report = eval(&router, &cases, EvalOptions::default()).expect("a report");
        println!("{name}: P@1 {:.2} %, {:?} µs", report.p_at_1 * 100.0, report.latency_us);
    }
}

criterion_group!(benches, query, index, real);
criterion_main!(benches);
