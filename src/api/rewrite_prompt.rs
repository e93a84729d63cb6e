//! The prompt for a better description: missed queries, false triggers, neighboring skills, and limits.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::DraftShown;
use skills_base::number::counted;
use skills_base::text::collapse_whitespace;
use skills_discovery::{Case, Document, Expect, Outcome, Router, is_held_out};
use skills_skill::SkillId;

/// Maximum number of queries of each kind.
const MAX_QUERIES: usize = 30;
/// Maximum number of neighboring skills.
const MAX_NEIGHBORS: usize = 6;

/// Writes the prompt. `outcomes` are those of `router`, in which `document` is the draft; `present` is the description in
/// the file. Held-out queries are omitted, so that they can judge the result.
pub fn prompt(
    router: &Router,
    document: &Document,
    present: &str,
    cases: &[Case],
    outcomes: &[Outcome],
    shown: &[DraftShown],
) -> String {
    let queries = Queries::of(&document.id, cases, outcomes);
    let mut out = introduction(document, present);
    let first = |id: Option<&SkillId>| id.map_or_else(|| "no result".to_owned(), |id| format!("`{id}`"));
    let missed =
        queries.missed.iter().map(|(query, winner)| format!("“{query}” (first now: {})", first(*winner)));
    list(&mut out, "Requests that must select this skill, but do not:", missed.collect());
    let wrong = queries.wrong.iter().map(|(query, owner)| match owner {
        Some(owner) => format!("“{query}” (belongs to `{owner}`)"),
        None => format!("“{query}” (no skill fits)"),
    });
    list(&mut out, "Requests that select this skill, but must not:", wrong.collect());
    let winning = queries.winning.iter().map(|query| format!("“{query}”"));
    list(&mut out, "Requests that must keep selecting it:", winning.collect());
    let neighbors = neighbors(router, queries.neighbors);
    list(&mut out, "Neighboring skills, which keep their scope:", neighbors);
    let title = "Clients that shorten the description (put the most important words first):";
    list(&mut out, title, limits(shown));
    let has_queries = !(queries.missed.is_empty() && queries.wrong.is_empty() && queries.winning.is_empty());
    let and_no_list = if has_queries { ", and do not list the requests above" } else { "" };
    let _ = write!(
        out,
        "\nRules:\n\n\
        - One paragraph of at most 1,024 characters; shorter is better.\n\
        - State what the skill does and when to use it with words that users write.\n\
        - Where the skill is confused with a neighbor, state with “Not for …” what belongs to the neighbor.\n\
        - Do not promise anything that the skill does not do{and_no_list}.\n\n\
        Answer with the new description only.\n"
    );
    out
}

/// The queries that a draft wins or loses, and the skills with which it is confused.
#[derive(Default)]
struct Queries<'a> {
    winning: Vec<&'a str>,
    /// Each with the skill that wins it.
    missed: Vec<(&'a str, Option<&'a SkillId>)>,
    /// Each with the skill that must win it, if any.
    wrong: Vec<(&'a str, Option<&'a SkillId>)>,
    /// The number of queries by skill.
    neighbors: BTreeMap<&'a SkillId, usize>,
}

impl<'a> Queries<'a> {
    fn of(id: &SkillId, cases: &'a [Case], outcomes: &'a [Outcome]) -> Self {
        let mut queries = Self::default();
        let usable = cases.iter().zip(outcomes).filter(|(case, _)| !is_held_out(&case.query));
        for (case, outcome) in usable {
            let query = case.query.as_str();
            let wins = outcome.first.as_ref() == Some(id);
            let neighbor = match &case.expect {
                Expect::AnyOf(ids) if ids.contains(id) => {
                    if outcome.rank == Some(1) {
                        queries.winning.push(query);
                        continue;
                    }
                    queries.missed.push((query, outcome.first.as_ref()));
                    outcome.first.as_ref()
                }
                expect if wins && !outcome.is_expected(expect) => {
                    let owner = match expect {
                        Expect::AnyOf(ids) => ids.first(),
                        _ => None,
                    };
                    queries.wrong.push((query, owner));
                    owner
                }
                _ => None,
            };
            if let Some(neighbor) = neighbor {
                *queries.neighbors.entry(neighbor).or_default() += 1;
            }
        }
        queries
    }
}

fn introduction(document: &Document, present: &str) -> String {
    let is_draft = document.description.trim() != present.trim();
    let title = if is_draft { "Draft of the description" } else { "Current description" };
    let mut out = format!(
        "Rewrite the description of the skill `{}`. A router and the models of several clients select the skill by this \
         text alone.\n\n{title} ({}):\n\n> {}\n",
        document.id,
        counted(document.description.chars().count(), "character"),
        collapse_whitespace(&document.description)
    );
    if let Some(text) = document.when_to_use.as_deref().filter(|text| !text.trim().is_empty()) {
        let _ = writeln!(
            out,
            "\nClaude Code appends the field `when_to_use` ({}), which stays unchanged:\n\n> {}",
            counted(text.chars().count(), "character"),
            collapse_whitespace(text)
        );
    }
    out
}

/// Appends a section, unless it is empty.
fn list(out: &mut String, title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}\n");
    let count = lines.len();
    for line in lines.into_iter().take(MAX_QUERIES) {
        let _ = writeln!(out, "- {line}");
    }
    if count > MAX_QUERIES {
        let _ = writeln!(out, "- and {} more", count - MAX_QUERIES);
    }
}

/// Describes the skills with which the draft is confused most often.
fn neighbors(router: &Router, counts: BTreeMap<&SkillId, usize>) -> Vec<String> {
    let mut neighbors: Vec<(&SkillId, usize)> = counts.into_iter().collect();
    neighbors.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let described = neighbors.into_iter().take(MAX_NEIGHBORS).filter_map(|(id, _)| {
        let (description, exclusions) = router.exclusion_clauses(id)?;
        let text = collapse_whitespace(&description);
        let exclusions = if exclusions.is_empty() {
            String::new()
        } else {
            format!(" Its limits: {}", exclusions.join(" "))
        };
        Some(format!("`{id}`: {text}{exclusions}"))
    });
    described.collect()
}

/// Describes the clients that do not show the complete description.
fn limits(shown: &[DraftShown]) -> Vec<String> {
    let is_known =
        |shown: &&DraftShown| !shown.dropped.as_deref().is_some_and(|why| why.starts_with("unknown"));
    let limits = shown.iter().filter(|shown| shown.characters < shown.of).filter(is_known);
    let limits = limits.map(|shown| match (&shown.dropped, shown.characters) {
        (Some(why), _) => format!("{}: {why}", shown.name),
        (None, 0) => format!("{} shows the name only", shown.name),
        (None, characters) => {
            format!("{} shows the first {characters} of {} characters", shown.name, shown.of)
        }
    });
    limits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_discovery::{EvalOptions, Weights, outcomes};

    #[test]
    fn held_out_queries_are_never_part_of_a_prompt() {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let own = Document::new("pdf", "pdf-tables", "Extracts tables from PDF files.");
        let other = Document::new("mail", "mail-writer", "Writes short mails. Not for newsletters.");
        router.update(vec![own.clone(), other], &[]);
        let case = |n: usize, skill: &str| Case {
            query: format!("write short mail number {n}"),
            expect: Expect::AnyOf(vec![SkillId::new(skill)]),
        };
        let cases: Vec<Case> = (0..20).map(|n| case(n, "pdf")).collect();
        let outcomes = outcomes(&router, &cases, EvalOptions::default()).unwrap();
        let cut = [DraftShown {
            client: "codex".to_owned(),
            name: "Codex".to_owned(),
            version: None,
            characters: 10,
            of: 31,
            dropped: None,
            assumed: false,
        }];
        let text = prompt(&router, &own, &own.description, &cases, &outcomes, &cut);
        let (held_out, usable): (Vec<&Case>, Vec<&Case>) =
            cases.iter().partition(|case| is_held_out(&case.query));
        assert!(!held_out.is_empty() && !usable.is_empty());
        for case in held_out {
            assert!(!text.contains(&format!("“{}”", case.query)), "{text}");
        }
        for case in usable {
            assert!(text.contains(&format!("“{}”", case.query)), "{text}");
        }
        assert!(text.contains("Not for newsletters") && text.contains("Codex shows the first 10"), "{text}");
    }
}
