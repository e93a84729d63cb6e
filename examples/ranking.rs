//! Measures the ranking on the public query sets: `cargo run --release --example ranking DATA CORPUS [WEIGHTS]`. DATA
//! holds the sets (`golden/`), CORPUS any folder with many skills, WEIGHTS a weights file in place of the shipped one.
//! Prints the tables of README.md.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measurement that cannot be set up has to stop"
)]

#[path = "sets/mod.rs"]
mod sets;

use std::path::{Path, PathBuf};

/// The allocator of the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use sets::{SETS, Seeded, Set, corpus, filled, set, strangers};
use skills_discovery::{Case, Document, EvalOptions, EvalReport, Router, Weights, eval};
use skills_skill::SkillId;

/// Skills of the largest public collection that was counted.
const LARGE: usize = 14_639;

/// Runs with one typing error in each request; each draws other errors.
const TYPO_SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

fn main() {
    let arguments: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let (data, folder, weights) = match &arguments[..] {
        [data, folder] => (data, folder, Weights::shipped().unwrap()),
        [data, folder, file] => {
            (data, folder, Weights::parse(&std::fs::read_to_string(file).unwrap()).unwrap())
        }
        _ => panic!("usage: ranking DATA CORPUS [WEIGHTS]"),
    };
    let weights = weights.with_generous_time_limits();
    let strangers = strangers(data);
    println!(
        "| set | skills | requests | P@1 | hit@5 | MRR@10 | kept | rejected | at 90 % | at 94 % | at 98 % |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for name in SETS {
        let set = set(data, name);
        measure(name, &set, &strangers, &weights);
        if name == "skilltrig" {
            let mut large = set;
            large.skills.extend(corpus(folder));
            measure("skilltrig in the corpus", &large, &strangers, &weights);
        }
    }
    speed(data, folder, &weights);
    println!("\n| set | P@1 | with one typing error | loss | hit@5 | with one typing error |");
    println!("|---|--:|--:|--:|--:|--:|");
    for name in SETS {
        typos(data, name, &weights);
    }
}

fn report(router: &Router, cases: &[Case]) -> EvalReport {
    eval(router, cases, EvalOptions::default()).unwrap()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn measure(name: &str, set: &Set, strangers: &[Case], weights: &Weights) {
    let router = filled(set.skills.clone(), weights);
    let cases: Vec<Case> = set.queries.iter().chain(strangers).cloned().collect();
    let report_all = report(&router, &cases);
    let at = |accepted_share: f64| {
        let point = report_all.thresholds.iter().find(|point| point.accepted > accepted_share - 1e-9);
        point.and_then(|point| point.rejected).map_or_else(|| "–".to_owned(), percent)
    };
    println!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        router.len(),
        report_all.queries,
        percent(report_all.p_at_1),
        percent(report_all.hit_at_5),
        percent(report_all.mrr_at_10),
        percent(report_all.present.accepted),
        report_all.present.rejected.map_or_else(String::new, percent),
        at(0.90),
        at(0.94),
        at(0.98)
    );
    if let Some(near) = report(&router, &set.near_misses).near_misses {
        let share = |n: usize| percent(n as f64 / near.queries as f64);
        println!(
            "<!-- {name}: of {} near misses {} have the forbidden skill first, {} are routed to it -->",
            near.queries,
            share(near.forbidden_first),
            share(near.routed)
        );
    }
}

/// The time of a request over the corpus, repeated under other names, in one segment as after a start.
fn speed(data: &Path, folder: &Path, weights: &Weights) {
    let real = corpus(folder);
    let copies = (0..).flat_map(|copy| real.iter().map(move |document| (copy, document)));
    let skills: Vec<Document> = copies
        .take(LARGE)
        .map(|(copy, document)| {
            let (id, name) = (format!("{}-{copy}", document.id), format!("{}-{copy}", document.name));
            Document { id: SkillId::new(id), name, ..document.clone() }
        })
        .collect();
    let mut router = filled(skills, weights);
    if let Some(joined) = router.joined() {
        router.adopt(joined);
    }
    let cases = set(data, "skilltrig").queries;
    report(&router, &cases);
    let times = report(&router, &cases).latency_us;
    println!("\n{} skills: p50 {:.2} ms, p99 {:.2} ms", router.len(), ms(times.p50), ms(times.p99));
}

fn ms(us: u64) -> f64 {
    us as f64 / 1_000.0
}

fn typos(data: &Path, name: &str, weights: &Weights) {
    let set = set(data, name);
    let router = filled(set.skills, weights);
    let unchanged = report(&router, &set.queries);
    let (mut first, mut five) = (0.0, 0.0);
    for seed in TYPO_SEEDS {
        let mut seeded = Seeded::new(seed);
        let misspelt: Vec<Case> = set
            .queries
            .iter()
            .map(|case| Case { query: seeded.misspell(&case.query), ..case.clone() })
            .collect();
        let report = report(&router, &misspelt);
        first += report.p_at_1;
        five += report.hit_at_5;
    }
    let runs = TYPO_SEEDS.count() as f64;
    println!(
        "| {name} | {} | {} | {:.1} | {} | {} |",
        percent(unchanged.p_at_1),
        percent(first / runs),
        (unchanged.p_at_1 - first / runs) * 100.0,
        percent(unchanged.hit_at_5),
        percent(five / runs)
    );
}
