//! Measures the threshold below which no skill fits, in collections of many sizes, and draws it beside the one that
//! the program uses: `cargo run --release --example thresholds DATA CORPUS docs/thresholds.svg`. DATA holds the public
//! query sets (`golden/`), CORPUS any folder with many skills. Prints the table of docs/ranking.md.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measurement that cannot be set up has to stop"
)]

#[path = "sets/mod.rs"]
mod sets;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use sets::{Seeded, corpus, filled, set, strangers};
use skills_discovery::{Answer, Case, Document, Expect, Fit, Request, VerdictReason, Weights, keeps};

/// How far the first result of a request is above its threshold; far below where something else speaks against it.
fn excess(answer: &Answer) -> f64 {
    let by_score = matches!(
        answer.verdict.reason,
        VerdictReason::Fits | VerdictReason::FitsByReading | VerdictReason::BelowThreshold
    );
    let first = answer.results.first().zip(answer.confidence).filter(|_| by_score);
    first.map_or(-9.0, |(hit, confidence)| hit.score - confidence.fit_threshold)
}

/// Requests with a skill and strangers, by how far they are above their thresholds.
#[derive(Default)]
struct Measurement {
    fitting: Vec<f64>,
    strange: Vec<f64>,
    accepted: usize,
    /// The threshold in use.
    used: f64,
}

impl Measurement {
    fn take(&mut self, skills: Vec<Document>, queries: &[Case], strangers: &[Case]) {
        let ids: HashSet<_> = skills.iter().map(|d| d.id.clone()).collect();
        let router = filled(skills, &Weights::shipped().unwrap().with_generous_time_limits());
        let profiles = &router.weights().profiles;
        let profile = if router.bodies() * 2 >= router.len() { &profiles.bodies } else { &profiles.short };
        self.used = profile.confidence.at(router.len()).fit_threshold;
        let ask = |case: &Case| {
            let request = Request { intent: case.query.clone(), ..Request::default() };
            router.discover(&request).unwrap()
        };
        for case in queries {
            let Expect::AnyOf(expected) = &case.expect else { continue };
            if expected.iter().any(|id| ids.contains(id)) {
                let answer = ask(case);
                self.fitting.push(excess(&answer));
                self.accepted += usize::from(answer.fit != Fit::None);
            }
        }
        self.strange.extend(strangers.iter().map(|case| excess(&ask(case))));
    }

    fn keeping(&self, share: f64) -> f64 {
        self.used + keeps(&self.fitting, share).unwrap()
    }

    fn rejected(&self, share: f64) -> f64 {
        let bar = keeps(&self.fitting, share).unwrap();
        self.strange.iter().filter(|z| **z < bar).count() as f64 / self.strange.len() as f64
    }

    fn row(&self, name: &str, n: usize) -> String {
        let accepted = 100.0 * self.accepted as f64 / self.fitting.len() as f64;
        let turned = self.strange.iter().filter(|z| **z < 0.0).count() as f64 / self.strange.len() as f64;
        format!(
            "| {name} | {n} | {:.2} | {:.2} | {:.0} % | {:.2} | {accepted:.1} % | {:.1} % |",
            self.keeping(0.98),
            self.keeping(0.94),
            100.0 * self.rejected(0.94),
            self.used,
            100.0 * turned
        )
    }
}

fn main() {
    let arguments: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let [data, folder, svg]: [PathBuf; 3] = arguments.try_into().expect("DATA CORPUS SVG");
    let strangers = strangers(&data);
    let mut seeded = Seeded::new(1);
    let all = corpus(&folder);
    println!("| collection | skills | keeps 98 % | keeps 94 % | rejected there | in use | kept | rejected |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    let mut lines: Vec<(&str, Vec<(usize, f64, f64)>)> = Vec::new();
    let mut curves: Vec<(String, Measurement)> = Vec::new();
    let nothing: Vec<Document> = Vec::new();
    for (name, fill) in [
        ("skilltrig", &all),
        ("clinc150", &nothing),
        ("banking77", &nothing),
        ("metatool", &nothing),
        ("sealtools", &nothing),
    ] {
        let set = set(&data, name);
        let own = set.skills.len();
        let mut line: Vec<(usize, f64, f64)> = Vec::new();
        for n in [8, 16, 32, 64, 128, 207, 400, 800, 1_600, 2_600, 4_076].map(|n| n.min(own + fill.len())) {
            let is_complete = n >= own;
            if line.last().is_some_and(|(last, ..)| *last == n) || (n < own && n > 207 && name != "sealtools")
            {
                continue;
            }
            let mut measured = Measurement::default();
            for _ in 0..if is_complete { 1 } else { (600 / n).clamp(1, 24) } {
                let mut skills = seeded.part(set.skills.clone(), n.min(own));
                skills.extend(seeded.part(fill.clone(), n.saturating_sub(own)));
                measured.take(skills, &set.queries, &strangers);
            }
            println!("{}", measured.row(name, n));
            line.push((n, measured.keeping(0.94), measured.used));
            if n == own || name == "skilltrig" && n > 2_600 {
                curves.push((format!("{name}, {n}"), measured));
            }
        }
        lines.push((name, line));
    }
    std::fs::write(svg, drawn(&lines, &curves)).unwrap();
}

const COLORS: [&str; 6] = ["#3b6ea5", "#b5651d", "#4b8b3b", "#8b4b8b", "#777777", "#b03a48"];

/// Left the threshold that keeps 94 % against the number of skills (dots) with the one in use (lines); right how many
/// strangers are rejected against how many requests are accepted, with the present point.
fn drawn(lines: &[(&str, Vec<(usize, f64, f64)>)], curves: &[(String, Measurement)]) -> String {
    let mut out = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 360\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"860\" height=\"360\" fill=\"#ffffff\"/>\n",
    );
    let x = |n: usize| 50.0 + (n as f64 / 8.0).ln() / (14_317.0_f64 / 8.0).ln() * 350.0;
    let y = |z: f64| 310.0 - z / 2.6 * 280.0;
    let (kx, ky) =
        (|accepted: f64| 480.0 + (accepted - 0.5) * 700.0, |rejected: f64| 310.0 - rejected * 280.0);
    let text = |out: &mut String, x: f64, y: f64, text: &str, color: &str| {
        let _ = writeln!(out, "<text x=\"{x:.0}\" y=\"{y:.0}\" fill=\"{color}\">{text}</text>");
    };
    for n in [8, 64, 512, 4_096, 14_317] {
        text(&mut out, x(n) - 8.0, 326.0, &n.to_string(), "#333333");
    }
    for z in [0.5, 1.0, 1.5, 2.0, 2.5] {
        text(&mut out, 20.0, y(z) + 4.0, &format!("{z}"), "#333333");
        let _ = writeln!(out, "<path d=\"M50 {0:.1}H400\" stroke=\"#dddddd\"/>", y(z));
    }
    text(
        &mut out,
        120.0,
        346.0,
        "skills; score before rules that keeps 94 % (dots), in use (lines)",
        "#333333",
    );
    for (at, (name, line)) in lines.iter().enumerate() {
        let color = COLORS[at % COLORS.len()];
        for (n, measured, _) in line {
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{color}\"/>",
                x(*n),
                y(*measured)
            );
        }
        let points: Vec<String> =
            line.iter().map(|(n, _, used)| format!("{:.1},{:.1}", x(*n), y(*used))).collect();
        let _ = writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\"/>", points.join(" "));
        text(&mut out, 60.0, 30.0 + 14.0 * at as f64, name, color);
    }
    for share in [0.5, 0.6, 0.7, 0.8, 0.9, 1.0] {
        text(&mut out, kx(share) - 8.0, 326.0, &format!("{:.0}", share * 100.0), "#333333");
    }
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        text(&mut out, 452.0, ky(share) + 4.0, &format!("{:.0}", share * 100.0), "#333333");
        let _ = writeln!(out, "<path d=\"M480 {0:.1}H830\" stroke=\"#dddddd\"/>", ky(share));
    }
    text(
        &mut out,
        540.0,
        346.0,
        "% accepted; % of strangers rejected; the circle is the present point",
        "#333333",
    );
    for (at, (name, measured)) in curves.iter().enumerate() {
        let color = COLORS[at % COLORS.len()];
        let shares = (0..=50).map(|step| 0.5 + f64::from(step) * 0.01);
        let points: Vec<String> = shares
            .map(|accepted| format!("{:.1},{:.1}", kx(accepted), ky(measured.rejected(accepted))))
            .collect();
        let _ = writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\"/>", points.join(" "));
        let accepted = measured.accepted as f64 / measured.fitting.len() as f64;
        let rejected =
            measured.strange.iter().filter(|z| **z < 0.0).count() as f64 / measured.strange.len() as f64;
        let (cx, cy) = (kx(accepted), ky(rejected));
        let _ = writeln!(
            out,
            "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"5\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>"
        );
        text(&mut out, 490.0, 210.0 + 14.0 * at as f64, name, color);
    }
    out + "</svg>\n"
}
