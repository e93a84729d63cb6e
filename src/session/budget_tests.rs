//! Tests of each client's truncation rules.

use super::*;
use skills_skill::client::{Fact, profile};

fn entries(count: usize, length: usize) -> Vec<ListedEntry> {
    (0..count)
        .map(|i| ListedEntry {
            name: format!("skill-{i:03}"),
            description: "d".repeat(length),
            location: Some(format!("/home/ann/.agents/skills/skill-{i:03}/SKILL.md").into()),
            ..ListedEntry::default()
        })
        .collect()
}

/// Returns skills of the client's own, of which only the length is known.
fn own(skills: &[(&str, usize)]) -> Vec<ListedEntry> {
    let one = |(name, length): &(&str, usize)| ListedEntry {
        name: (*name).to_owned(),
        description: ".".repeat(*length),
        bundled: true,
        ..ListedEntry::default()
    };
    skills.iter().map(one).collect()
}

fn of(client: &str, count: usize, length: usize, uses: &[u64]) -> BudgetedCatalog {
    apply_budget(&entries(count, length), uses, profile(client).unwrap(), 200_000)
}

/// Returns the size of the catalog as Codex writes it, with its token estimate.
fn codex_tokens(allowed: &BudgetedCatalog) -> usize {
    let line = |entry: &ListedEntry| {
        let space = if entry.description.is_empty() { "" } else { " " };
        let location = entry.location.as_ref().unwrap().display();
        format!("- {}: {}{space}(file: {location})\n", entry.name, entry.description)
    };
    allowed.included().map(|entry| line(entry).len().div_ceil(4)).sum()
}

#[test]
fn claude_code_keeps_names_and_fitting_descriptions_in_order() {
    // 1 % of 200,000 tokens are 8,000 characters: 20 names and 12 descriptions of 602 with their separators.
    let mut uses = vec![0; 20];
    uses[19] = 5;
    let allowed = of("claude-code", 20, 600, &uses);
    assert_eq!((allowed.fill.limit, allowed.fill.unit), (Some(8_000), Unit::Characters));
    assert!(allowed.fill.used <= 8_000, "{}", allowed.fill.used);
    assert_eq!(allowed.entries[19].1, Truncation::Complete, "the used one stays");
    assert_eq!((allowed.entries[0].1.clone(), allowed.fill.made.complete), (Truncation::Complete, 12));
    assert!(matches!(allowed.entries[18].1, Truncation::NameOnly { .. }) && allowed.fill.made.shortened == 0);
    assert_eq!(allowed.included().count(), 20, "no name goes");
    // A short one after a long one is kept.
    let mut listed = entries(20, 600);
    listed[18].description = "short".to_owned();
    let allowed = apply_budget(&listed, &[], profile("claude-code").unwrap(), 200_000);
    assert_eq!(allowed.entries[18].1, Truncation::Complete);
    let names = of("claude-code", 2_000, 10, &[]);
    assert!(names.fill.used > 8_000 && names.fill.over.is_some(), "what is over its bound says why");
    let large = apply_budget(&entries(1, 10), &[], profile("claude-code").unwrap(), 1_000_000);
    assert_eq!(large.fill.limit, Some(30_000), "more than that it never is");
}

#[test]
fn built_in_skills_of_the_client_are_counted_separately() {
    let mut listed = entries(120, 300);
    listed.extend(own(&[("dataviz", 1_436), ("update-config", 690), ("code-review", 4_000)]));
    let allowed = apply_budget(&listed, &[], profile("claude-code").unwrap(), 200_000);
    assert_eq!(allowed.fill.own.skills, 3);
    assert!(allowed.fill.own.used > 6_126, "names and separators too: {:?}", allowed.fill.own);
    assert_eq!(allowed.fill.made.complete + allowed.fill.made.name_only, 120, "{:?}", allowed.fill.made);
    assert!(
        allowed.entries[120..].iter().all(|(_, shown)| *shown == Truncation::Complete),
        "its own keep theirs"
    );
    assert!(of("claude-code", 120, 300, &[]).fill.made.complete > allowed.fill.made.complete);
}

#[test]
fn claude_code_removes_descriptions_of_its_own_commands_last_in_the_list() {
    let mut listed = own(&[("dataviz", 1_436), ("init", 59), ("security-review", 71)]);
    let profile = profile("claude-code").unwrap();
    let complete = apply_budget(&listed, &[], profile, 200_000);
    assert!(
        complete.entries.iter().all(|(_, shown)| *shown == Truncation::Complete),
        "there is room: {:?}",
        complete.fill
    );
    // 16 descriptions of 316 characters fill the list exactly.
    listed.splice(0..0, entries(120, 316));
    let full = apply_budget(&listed, &[], profile, 200_000);
    let shown: Vec<bool> =
        full.entries[120..].iter().map(|(_, shown)| *shown == Truncation::Complete).collect();
    assert_eq!(shown, [true, false, false]);
}

#[test]
fn claude_code_counts_the_columns_of_its_list() {
    // 7,396 characters of names, its own skills and separators leave room for one description of 300 and one of 302.
    let fits = |text: &str| {
        let mut listed = entries(120, 300);
        for entry in &mut listed {
            entry.name = entry.name.replace("skill", "many");
        }
        text.clone_into(&mut listed[1].description);
        let known = profile("claude-code").unwrap();
        listed.extend(known.bundled.value().unwrap().skills.iter().flat_map(|skill| {
            let mut one = own(&[(&skill.name, skill.characters as usize)]);
            let breaks = skill.line_breaks as usize;
            one[0].description.replace_range(..breaks, &"\n".repeat(breaks));
            one
        }));
        apply_budget(&listed, &[], known, 200_000).entries[1].1 == Truncation::Complete
    };
    // As recorded with 2.1.330.
    for (text, most) in [("d", 302), ("漢", 151), ("😀", 151), ("e\u{301}", 302), ("—", 302)] {
        assert!(fits(&text.repeat(most)), "{most} × {text}");
        assert!(!fits(&text.repeat(most + 1)), "{} × {text}", most + 1);
    }
}

#[test]
fn codex_counts_lines_with_paths_within_its_limit() {
    let allowed = of("codex", 100, 300, &[]);
    assert_eq!((allowed.fill.limit, allowed.fill.unit), (Some(4_000), Unit::Tokens));
    assert_eq!(allowed.fill.used, codex_tokens(&allowed), "the reported size is the sent size");
    assert!(allowed.fill.used <= 4_000 && allowed.fill.used > 3_990, "{}", allowed.fill.used);
    let lengths: Vec<usize> = allowed.entries.iter().map(|(e, _)| e.description.chars().count()).collect();
    let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
    assert!(*least > 0 && most - least <= 4 && *most < 300, "{least} to {most}: all are truncated evenly");
    let many = of("codex", 3_000, 10, &[]);
    assert_eq!(many.fill.used, codex_tokens(&many));
    assert!(many.fill.used <= 4_000 && many.fill.made.omitted > 2_000, "{:?}", many.fill);
    assert_eq!(many.fill.made.name_only + many.fill.made.omitted, 3_000, "descriptions go before skills");
}

#[test]
fn codex_counts_short_names_of_its_folders_and_not_the_table_of_them() {
    let mut listed = entries(120, 300);
    for entry in &mut listed {
        entry.written_location = Some(format!("r0/{}/SKILL.md", entry.name));
    }
    let short = apply_budget(&listed, &[], profile("codex").unwrap(), 200_000);
    let long = of("codex", 120, 300, &[]);
    let described = |allowed: &BudgetedCatalog| allowed.entries[0].0.description.len();
    assert!(described(&short) > described(&long) + 15, "{} {}", described(&short), described(&long));
    let sum: usize = short
        .included()
        .map(|entry| {
            format!("- {}: {} (file: r0/{0}/SKILL.md)\n", entry.name, entry.description).len().div_ceil(4)
        })
        .sum();
    assert_eq!((short.fill.used, sum), (4_000, 4_000), "nothing but the entries is counted");
}

#[test]
fn unused_budget_is_used_for_longer_descriptions() {
    let mut listed = entries(100, 300);
    for entry in &mut listed[..50] {
        entry.description = "short".to_owned();
    }
    let allowed = apply_budget(&listed, &[], profile("codex").unwrap(), 200_000);
    assert!(allowed.entries[..50].iter().all(|(_, shown)| *shown == Truncation::Complete));
    let even = of("codex", 100, 300, &[]).entries[0].0.description.len();
    let last = allowed.entries[99].0.description.len();
    assert!(last > even + 50, "{last}");
}

#[test]
fn codex_without_a_known_window_counts_characters() {
    let allowed = apply_budget(&entries(200, 100), &[], profile("codex").unwrap(), 0);
    assert_eq!((allowed.fill.limit, allowed.fill.unit), (Some(8_000), Unit::Characters));
    assert!(allowed.fill.used <= 8_000, "{}", allowed.fill.used);
}

#[test]
fn openclaw_lists_150_and_drops_all_descriptions_before_a_skill() {
    let allowed = of("openclaw", 200, 220, &[]);
    assert_eq!(allowed.fill.made.omitted, 50 + (150 - allowed.fill.made.name_only));
    assert_eq!(allowed.fill.made.complete, 0, "all descriptions go at once");
    assert!(allowed.fill.used <= 18_000 && allowed.fill.over.is_none(), "{:?}", allowed.fill);
    let few = of("openclaw", 30, 220, &[]);
    assert_eq!(few.fill.made.complete, 30, "{:?}", few.fill);
    let one = few.entries[0].0.description.len() + "skill-000".len();
    assert!(few.fill.used > 30 * one + 368, "entries are in markup: {}", few.fill.used);
}

/// Returns the number of characters of the catalog as `OpenClaw` writes it, with its note.
fn openclaw_characters(allowed: &BudgetedCatalog, around: usize) -> usize {
    let entry = |entry: &ListedEntry| {
        let name = &entry.name;
        let location = entry.location.as_ref().unwrap().display();
        let description = match entry.description.as_str() {
            "" => String::new(),
            text => format!("    <description>{text}</description>\n"),
        };
        format!(
            "  <skill>\n    <name>{name}</name>\n{description}    <location>{location}</location>\n  </skill>\n"
        )
    };
    around + allowed.included().map(|one| entry(one).chars().count()).sum::<usize>()
}

#[test]
fn openclaw_truncates_descriptions_to_the_longest_fitting_length() {
    // A list that fits keeps descriptions of any length.
    let complete = of("openclaw", 3, 5_000, &[]);
    assert_eq!((complete.fill.made.complete, complete.fill.used), (3, openclaw_characters(&complete, 370)));
    // One that does not fit keeps none of more than 220 characters.
    let mut listed = entries(60, 40);
    listed[0].description = "d".repeat(20_000);
    let allowed = apply_budget(&listed, &[], profile("openclaw").unwrap(), 200_000);
    assert_eq!(allowed.fill.made, BudgetResult { complete: 59, shortened: 1, ..BudgetResult::default() });
    assert_eq!(allowed.entries[0].0.description, "d".repeat(217) + "...");
    // All have the same length, and one character more would not fit.
    let allowed = of("openclaw", 80, 300, &[]);
    let length = allowed.entries[0].0.description.chars().count();
    assert!(allowed.entries.iter().all(|(entry, _)| entry.description.chars().count() == length));
    assert_eq!(allowed.fill.used, openclaw_characters(&allowed, 378 + 103));
    assert!(allowed.fill.used <= 18_000 && allowed.fill.used + 80 > 18_000, "{length}: {:?}", allowed.fill);
    // Less than four characters are none.
    let names = of("openclaw", 140, 300, &[]);
    assert_eq!((names.fill.made.name_only, names.fill.made.omitted), (140, 0), "{:?}", names.fill);
    assert_eq!(names.fill.used, openclaw_characters(&names, 363 + 101));
    let some = of("openclaw", 200, 300, &[]);
    assert!(some.fill.made.omitted > 0 && some.fill.made.name_only > 99, "{:?}", some.fill);
    assert_eq!(some.fill.used, openclaw_characters(&some, 363 + 113 + 2 * 3));
}

#[test]
fn openclaw_truncates_descriptions_again_for_a_small_context_window() {
    let small = apply_budget(&entries(20, 300), &[], profile("openclaw").unwrap(), 30_000);
    let length = small.entries[0].0.description.chars().count();
    assert!(small.entries.iter().all(|(entry, _)| entry.description.chars().count() == length));
    assert!(small.fill.used <= 6_000 && small.fill.used + 20 > 6_000, "{length}: {:?}", small.fill);
    assert_eq!(small.fill.used, openclaw_characters(&small, 370), "it is still the list that fits its limit");
    let least = apply_budget(&entries(20, 300), &[], profile("openclaw").unwrap(), 8_000);
    assert!(least.entries.iter().all(|(entry, _)| entry.description.chars().count() == 64));
}

#[test]
fn openclaw_writes_truncated_descriptions_on_one_line() {
    let mut listed = entries(60, 40);
    listed[0].description = "a\n\n  b".to_owned();
    let few = apply_budget(&listed[..3], &[], profile("openclaw").unwrap(), 200_000);
    assert_eq!(few.entries[0].0.description, "a\n\n  b");
    listed[1].description = "d".repeat(20_000);
    let many = apply_budget(&listed, &[], profile("openclaw").unwrap(), 200_000);
    assert_eq!(
        many.entries[0],
        (ListedEntry { description: "a b".to_owned(), ..listed[0].clone() }, Truncation::Complete)
    );
}

#[test]
fn copilot_lists_complete_entries_up_to_its_limit() {
    let allowed = of("copilot", 100, 300, &[]);
    assert_eq!(allowed.fill.made.omitted + allowed.fill.made.shortened, 0);
    assert!(allowed.fill.used <= 15_000 && allowed.fill.made.complete > 20, "{:?}", allowed.fill);
    assert_eq!(allowed.fill.made.complete + allowed.fill.made.name_only, 100);
    let first = allowed.entries.iter().position(|(_, shown)| *shown != Truncation::Complete).unwrap();
    assert!(allowed.entries[first..].iter().all(|(_, shown)| matches!(shown, Truncation::NameOnly { .. })));
}

#[test]
fn client_without_a_limit_lists_everything() {
    for client in ["gemini-cli", "opencode"] {
        let allowed = of(client, 500, 1_000, &[]);
        assert_eq!(
            (allowed.fill.made.complete, allowed.fill.limit, allowed.fill.unbounded),
            (500, None, true)
        );
        assert!(allowed.fill.unknown.is_empty(), "{:?}", allowed.fill.unknown);
    }
}

#[test]
fn unpublished_facts_are_marked_as_unknown() {
    let mut client = profile("openclaw").unwrap().clone();
    client.budget.shortening = Fact(None);
    let allowed = apply_budget(&entries(100, 300), &[], &client, 200_000);
    assert!(allowed.entries.iter().any(|(_, s)| *s == Truncation::Beyond));
    assert!(allowed.fill.over.is_some() && !allowed.fill.unknown.is_empty());
    let none = of("cursor", 10, 10, &[]);
    assert!(none.fill.unknown.iter().any(|what| what.contains("budget")));
    assert!(none.fill.unknown.iter().any(|what| what.contains("built in")), "{:?}", none.fill.unknown);
}

#[test]
fn fitting_catalog_is_not_changed() {
    let allowed = of("codex", 3, 50, &[]);
    assert!(allowed.entries.iter().all(|(_, shown)| *shown == Truncation::Complete));
    assert_eq!(allowed.fill.wanted, allowed.fill.used);
}

#[test]
fn exceeded_known_limit_is_always_reported() {
    for client in skills_skill::client::profiles() {
        for (count, length) in [(1, 5_000), (10, 100), (400, 40), (900, 700), (4_000, 20)] {
            let fill = apply_budget(&entries(count, length), &[], client, 200_000).fill;
            let within = fill.limit.is_none_or(|limit| fill.used <= limit);
            assert!(within || fill.over.is_some(), "{} with {count} of {length}: {fill:?}", client.id);
        }
    }
}

#[test]
fn an_entry_without_a_description_is_shown_with_its_name_only() {
    let mut listed = entries(2, 10);
    listed[0].description = " ".to_owned();
    let allowed = apply_budget(&listed, &[], profile("gemini-cli").unwrap(), 200_000);
    let why = "Gemini CLI finds no description".to_owned();
    assert_eq!(allowed.entries[0].1, Truncation::NameOnly { why });
    assert_eq!((allowed.fill.made.complete, allowed.fill.made.name_only), (1, 1));
}

#[test]
fn descriptions_of_built_in_skills_over_budget_are_named() {
    let known = profile("claude-code").unwrap();
    let mut listed = entries(1, 300);
    listed.extend(own(&[("code-review", 8_000)]));
    let over = apply_budget(&listed, &[], known, 100_000).fill.over.unwrap();
    assert!(over.starts_with("all names and the descriptions of built-in skills are kept"), "{over}");
}
