//! What each client's rules leave of a catalogue.

use super::*;
use crate::skill::client::{Fact, profile};

/// A client without folders of its own.
fn here() -> Ground<'static> {
    Ground { home: Path::new("/home/ann"), folders: &[] }
}

fn entries(count: usize, length: usize) -> Vec<Listed> {
    (0..count)
        .map(|i| Listed {
            name: format!("skill-{i:03}"),
            description: "d".repeat(length),
            location: Some(format!("/home/ann/.agents/skills/skill-{i:03}/SKILL.md").into()),
        })
        .collect()
}

fn of(client: &str, count: usize, length: usize, uses: &[u64]) -> Allowance {
    let budget = &profile(client).unwrap().budget;
    shorten(&entries(count, length), uses, budget, 200_000, here())
}

/// The catalogue as Codex writes it, and as it estimates tokens.
fn codex_tokens(allowed: &Allowance) -> usize {
    let line = |entry: &Listed| {
        let space = if entry.description.is_empty() { "" } else { " " };
        let location = entry.location.as_ref().unwrap().display();
        format!("- {}: {}{space}(file: {location})\n", entry.name, entry.description)
    };
    allowed.kept().map(|entry| line(entry).len().div_ceil(4)).sum()
}

#[test]
fn claude_code_keeps_names_and_shortens_what_is_used_least() {
    // 1 % of 200,000 tokens are 8,000 characters.
    let mut uses = vec![0; 20];
    uses[19] = 5;
    let allowed = of("claude-code", 20, 600, &uses);
    assert_eq!((allowed.fill.limit, allowed.fill.unit), (Some(8_000), Unit::Characters));
    assert!(allowed.fill.used <= 8_000 && allowed.fill.used > 7_900, "{}", allowed.fill.used);
    assert_eq!(allowed.entries[19].1, Shown::Whole, "the used one stays");
    assert!(matches!(allowed.entries[18].1, Shown::NameOnly { .. }), "the last of the unused goes first");
    assert_eq!(allowed.entries[0].1, Shown::Whole);
    assert_eq!(allowed.kept().count(), 20, "no name goes");
    let long = of("claude-code", 1, 2_000, &[]);
    assert_eq!(long.entries[0].0.description.chars().count(), 1_536);
    let names = of("claude-code", 2_000, 10, &[]);
    assert!(names.fill.used > 8_000 && names.fill.over.is_some(), "what is over its bound says why");
}

#[test]
fn codex_counts_the_line_with_its_path_and_never_hands_out_more_than_its_bound() {
    let allowed = of("codex", 100, 300, &[]);
    assert_eq!((allowed.fill.limit, allowed.fill.unit), (Some(4_000), Unit::Tokens));
    assert_eq!(allowed.fill.used, codex_tokens(&allowed), "what is told is what would be sent");
    assert!(allowed.fill.used <= 4_000 && allowed.fill.used > 3_990, "{}", allowed.fill.used);
    let lengths: Vec<usize> = allowed.entries.iter().map(|(e, _)| e.description.chars().count()).collect();
    let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
    assert!(*least > 0 && most - least <= 4 && *most < 300, "{least} to {most}: all give way alike");
    let many = of("codex", 3_000, 10, &[]);
    assert_eq!(many.fill.used, codex_tokens(&many));
    assert!(many.fill.used <= 4_000 && many.fill.made.omitted > 2_000, "{:?}", many.fill);
    assert_eq!(many.fill.made.name_only + many.fill.made.omitted, 3_000, "descriptions go before skills");
}

#[test]
fn what_a_short_description_leaves_goes_to_the_long_ones() {
    let mut listed = entries(100, 300);
    for entry in &mut listed[..50] {
        entry.description = "short".to_owned();
    }
    let budget = &profile("codex").unwrap().budget;
    let allowed = shorten(&listed, &[], budget, 200_000, here());
    assert!(allowed.entries[..50].iter().all(|(_, shown)| *shown == Shown::Whole));
    let even = of("codex", 100, 300, &[]).entries[0].0.description.len();
    assert!(
        allowed.entries[99].0.description.len() > even + 50,
        "{}",
        allowed.entries[99].0.description.len()
    );
}

#[test]
fn codex_without_a_known_window_counts_characters() {
    let budget = &profile("codex").unwrap().budget;
    let allowed = shorten(&entries(200, 100), &[], budget, 0, here());
    assert_eq!((allowed.fill.limit, allowed.fill.unit), (Some(8_000), Unit::Characters));
    assert!(allowed.fill.used <= 8_000, "{}", allowed.fill.used);
}

#[test]
fn openclaw_lists_150_and_drops_all_descriptions_before_a_skill() {
    let allowed = of("openclaw", 200, 300, &[]);
    assert_eq!(allowed.fill.made.omitted, 50 + (150 - allowed.fill.made.name_only));
    assert_eq!(allowed.fill.made.whole, 0, "all descriptions go at once");
    assert!(allowed.fill.used <= 18_000 && allowed.fill.over.is_none(), "{:?}", allowed.fill);
    let few = of("openclaw", 30, 300, &[]);
    assert_eq!(few.fill.made.whole, 30, "{:?}", few.fill);
    // Its entries stand in markup, and with `~` for the home folder.
    let one =
        few.entries[0].0.description.len() + "skill-000".len() + "~/.agents/skills/skill-000/SKILL.md".len();
    assert!(few.fill.used > 30 * one + 368, "{}", few.fill.used);
}

#[test]
fn what_is_not_published_is_marked_and_not_guessed() {
    let mut budget = profile("openclaw").unwrap().budget.clone();
    budget.shortening = Fact(None);
    let allowed = shorten(&entries(100, 300), &[], &budget, 200_000, here());
    assert!(allowed.entries.iter().any(|(_, s)| *s == Shown::Beyond));
    assert!(allowed.fill.over.is_some() && !allowed.fill.unknown.is_empty());
    let none = of("cursor", 10, 10, &[]);
    assert!(none.fill.unknown.iter().any(|what| what.contains("bound")));
    let claude = of("claude-code", 3, 10, &[]);
    assert!(claude.fill.unknown.iter().any(|what| what.contains("counts")), "{:?}", claude.fill.unknown);
}

#[test]
fn what_fits_is_left_alone() {
    let allowed = of("codex", 3, 50, &[]);
    assert!(allowed.entries.iter().all(|(_, shown)| *shown == Shown::Whole));
    assert_eq!(allowed.fill.wanted, allowed.fill.used);
}

#[test]
fn no_bound_that_is_known_is_broken_without_a_word() {
    for client in crate::skill::client::profiles() {
        for (count, length) in [(1, 5_000), (10, 100), (400, 40), (900, 700), (4_000, 20)] {
            let listed = entries(count, length);
            let fill = shorten(&listed, &[], &client.budget, 200_000, here()).fill;
            let within = fill.limit.is_none_or(|limit| fill.used <= limit);
            assert!(within || fill.over.is_some(), "{} with {count} of {length}: {fill:?}", client.id);
        }
    }
}

#[test]
fn codex_writes_a_folder_once_where_more_skills_are_told_so() {
    let budget = &profile("codex").unwrap().budget;
    let folders = [PathBuf::from("/home/ann/.agents/skills")];
    let ground = Ground { folders: &folders, ..here() };
    let (plain, short) =
        (of("codex", 400, 300, &[]), shorten(&entries(400, 300), &[], budget, 200_000, ground));
    assert!(short.fill.made.omitted < plain.fill.made.omitted, "{:?} {:?}", short.fill, plain.fill);
    assert!(short.fill.used <= 4_000 && short.fill.measured.contains("table"), "{:?}", short.fill);
    // 173 characters around, one row of 36, and 400 lines of 41 without descriptions: `- skill-000: (file: r0/…)`.
    let line = "- skill-000: (file: r0/skill-000/SKILL.md)\n".len().div_ceil(4);
    let table = (173 + "- `r0` = `/home/ann/.agents/skills`\n".len()).div_ceil(4);
    assert_eq!(short.fill.made.name_only, (4_000 - table) / line);
    let few = shorten(&entries(3, 50), &[], budget, 200_000, ground);
    assert!(!few.fill.measured.contains("table"), "what fits is written whole");
}
