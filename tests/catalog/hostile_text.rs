//! Text of a bundle that is as large as a file may be, and as unlike prose as can be: every reader of it takes time
//! and memory in proportion to its size.

use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use skills_discovery::{Document, Router, Weights, matched_exclusion};
use skills_session::{Form, ListedEntry, ToolNameFormat, body_text, catalog_text};
use skills_skill::contract::expression::Expr;
use skills_skill::tokens::TokenCount;
use skills_skill::{contract, fix, lint, safe_text, tokens};
use skills_tui::widgets::markdown;

const LARGE: usize = skills_skill::MAX_BYTES as usize;
const SMALL: usize = LARGE / 8;
/// In proportion it would be 8; with the square of the size, 64.
const MAX_GROWTH: u32 = 24;
const SLACK: Duration = Duration::from_millis(300);
/// The vocabulary alone is about 50 MB.
const MAX_PEAK_KB: u64 = 500_000;

/// One pattern, repeated to a size.
fn filled(pattern: &str, size: usize) -> String {
    pattern.repeat(size / pattern.len())
}

/// One character, and alternating ones, with a meaning in YAML, Markdown, XML, a link, a table, or in words.
const PATTERNS: &[&str] = &[
    "a",
    " ",
    "\n",
    "-",
    "#",
    "*",
    "`",
    "[",
    "<",
    "{",
    "\"",
    "|",
    ">",
    "表",
    "\u{301}",
    "\u{202e}",
    "\0",
    "\r",
    "A1",
    "*_",
    "](",
    ")",
    ".) ",
    "(but) ",
    "!`",
    "- ",
    ": ",
    "</skill>",
    "\u{200d}👩",
    "&a",
    "&a *b ",
    "k: v: w\n",
    "k: v: *w\n&x ",
    "\n  license: ",
    ". key: ",
    "a and ",
    "a or ",
    "not a and ",
    "- t\n",
];

/// Random characters of all of Unicode, the same in every run.
fn random(size: usize) -> String {
    let mut runner = TestRunner::deterministic();
    let some = proptest::collection::vec(any::<char>(), 4_096).new_tree(&mut runner).unwrap().current();
    let some: String = some.into_iter().collect();
    filled(&some, size)
}

/// CPU time if the system reports it: other load on the machine does not count.
fn cpu_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

fn time_of(read: &dyn Fn(&str), text: &str) -> Duration {
    let before = cpu_time();
    read(text);
    cpu_time().saturating_sub(before)
}

/// Reads each text at both sizes, and compares. Unoptimized code needs more stack than the product does.
fn stays_in_proportion(read: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().stack_size(64 << 20);
        reader.spawn_scoped(scope, || compare(&read)).unwrap().join().unwrap();
    });
}

fn compare(read: &dyn Fn(&str)) {
    read("warm");
    let pattern = |size| PATTERNS.iter().map(move |pattern| (format!("{pattern:?}"), filled(pattern, size)));
    let texts = |size| pattern(size).chain([("random".to_owned(), random(size))]);
    for ((name, small), (_, large)) in texts(SMALL).zip(texts(LARGE)) {
        let (short, long) = (time_of(read, &small), time_of(read, &large));
        assert!(
            long <= short * MAX_GROWTH + SLACK,
            "{name}: {short:?} for {SMALL} bytes, {long:?} for {LARGE}"
        );
    }
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(peak < MAX_PEAK_KB, "{peak} kB");
    }
}

fn skill_of(source: &str) -> Option<skills_skill::Skill> {
    skills_skill::parse(Path::new("/s/x/SKILL.md"), source.as_bytes(), 0).ok()
}

#[test]
fn token_counts_never_fail() {
    stays_in_proportion(|text| assert!(text.is_empty() || tokens::count(text).tokens > 0));
}

#[test]
fn runs_longer_than_the_tokenizer_limit_are_estimated() {
    for pattern in [" ", "\t", "\n", "\u{a0}", "a"] {
        let TokenCount { tokens, estimated } = tokens::count(&filled(pattern, LARGE));
        assert!(estimated && tokens > 1_000, "{pattern:?}: {tokens}");
    }
}

#[test]
fn frontmatter_is_parsed_in_linear_time() {
    stays_in_proportion(|text| {
        skill_of(&format!("---\nname: x\ndescription: {text}\n---\nbody\n"));
        skill_of(&format!("---\n{text}"));
    });
}

#[test]
fn bodies_are_parsed_in_linear_time() {
    stays_in_proportion(|text| {
        let source = format!("---\nname: x\ndescription: Does x. Use for x.\n---\n{text}");
        let skill = skill_of(&source);
        skill.map(|skill| lint::bundle(&skill, &source));
        let _ = skills_skill::index_text(&source);
        let _ = fix::fix(source.as_bytes());
    });
}

#[test]
fn contracts_are_parsed_in_linear_time() {
    stays_in_proportion(|text| {
        let _ = contract::parse(Path::new("/s/x/skill.yaml"), text);
        let value =
            format!("id: x.y\nsteps:\n  - id: a\n    uses: text.upper\n    input:\n      text: {text}\n");
        let _ = contract::parse(Path::new("/s/x/skill.yaml"), &value);
        drop(Expr::parse(text));
    });
}

#[test]
fn text_is_escaped_in_linear_time() {
    stays_in_proportion(|text| {
        let _ = safe_text::line(text);
        let _ = safe_text::block(text);
        let _ = body_text("x", text);
        let listed = |form| {
            let entry = ListedEntry { name: "x".into(), description: text.into(), ..ListedEntry::default() };
            catalog_text(&[entry], form, ToolNameFormat::Dotted)
        };
        assert!(!listed(Form::Xml).text.is_empty() && !listed(Form::Bullets).text.is_empty());
    });
}

#[test]
fn markdown_is_drawn_in_linear_time() {
    stays_in_proportion(|text| drop(markdown::render(text, 80, false)));
}

#[test]
fn text_is_indexed_in_linear_time() {
    stays_in_proportion(|text| {
        let mut router = Router::new(Weights::shipped().unwrap());
        let words = Document { text: Some(skills_skill::index_text(text)), ..Document::new("x", "x", text) };
        router.update(vec![words], &[]);
        router.body_lines(text, 1, "extract tables from a pdf", 5);
    });
}

#[test]
fn exclusions_are_read_in_linear_time() {
    // A sixteenth of each text: every word of a clause is stemmed.
    stays_in_proportion(|text| {
        let end = (0..=text.len() / 16).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        drop(matched_exclusion(&format!("Not for {}", &text[..end]), "zebra"));
    });
}

proptest! {
    #![proptest_config(Config { cases: 24, ..Config::default() })]
    #[test]
    fn any_two_characters_alternating_are_counted(a in any::<char>(), b in any::<char>()) {
        let text = filled(&format!("{a}{b}"), LARGE);
        prop_assert!(tokens::count(&text).tokens > 0);
    }
}
