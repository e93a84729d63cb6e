//! `list`: records of the catalogue as summaries, filtered, in catalogue order or by match.

use std::path::Path;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::{ListFilter, SkillList, SkillSummary};
use crate::registry::{Catalogue, Trusted};
use crate::skill::Skill;

/// The catalogue through a filter. Shadowed skills follow the winners; refused bundles are named
/// when nothing is filtered.
#[must_use]
pub fn list(catalogue: &Catalogue, filter: &ListFilter) -> SkillList {
    let winners = catalogue.entries.iter().map(|entry| summary(catalogue, &entry.skill, entry.root, None));
    let shadowed = catalogue
        .shadowed
        .iter()
        .map(|loser| summary(catalogue, &loser.skill, loser.root, Some(&loser.winner)));
    let mut skills: Vec<SkillSummary> =
        winners.chain(shadowed).filter(|skill| keeps(filter, skill)).collect();
    if let Some(query) = filter.query.as_deref().filter(|query| !query.trim().is_empty()) {
        skills = by_match(skills, query);
    }
    let refused = if *filter == ListFilter::default() { catalogue.refused.clone() } else { Vec::new() };
    SkillList { skills, refused }
}

fn keeps(filter: &ListFilter, skill: &SkillSummary) -> bool {
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    (filter.domain.is_empty()
        || skill.domain.as_deref().is_some_and(|domain| filter.domain.iter().any(|want| same(want, domain))))
        && filter.role.is_none_or(|role| role == skill.role)
        && filter.status.as_deref().is_none_or(|status| same(status, skill.status.as_str()))
}

fn by_match(skills: Vec<SkillSummary>, query: &str) -> Vec<SkillSummary> {
    let pattern = Pattern::parse(query, CaseMatching::Ignore, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, SkillSummary)> = skills
        .into_iter()
        .filter_map(|skill| {
            let mut score = |text: &str| pattern.score(Utf32Str::new(text, &mut buffer), &mut matcher);
            let best = score(skill.skill_id.as_str()).max(score(&skill.name))?;
            Some((best, skill))
        })
        .collect();
    // Stable: equals stay in catalogue order.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().map(|(_, skill)| skill).collect()
}

/// One line of `list`.
#[must_use]
pub fn summary(catalogue: &Catalogue, skill: &Skill, root: usize, winner: Option<&Path>) -> SkillSummary {
    let class = &skill.classification;
    let inferred = [
        ("role", class.role.inferred),
        ("invocation", class.invocation.inferred),
        ("effect_mode", class.effect_mode.inferred),
        ("status", skill.status.inferred),
        ("kind", skill.kind.inferred),
        ("domain", skill.domain.as_ref().is_some_and(|domain| domain.inferred)),
    ];
    SkillSummary {
        skill_id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        role: class.role.value,
        invocation: class.invocation.value,
        effect_mode: class.effect_mode.value,
        status: skill.status.value.clone(),
        kind: skill.kind.value,
        domain: skill.domain.as_ref().map(|domain| domain.value.clone()),
        tags: skill.tags.clone(),
        attach_targets: class.attach_targets.clone(),
        inferred: inferred.into_iter().filter(|(_, yes)| *yes).map(|(name, _)| name.to_owned()).collect(),
        location: skill.location.clone(),
        root: catalogue.roots.get(root).map_or_else(String::new, |root| root.label.clone()),
        digest: skill.digest,
        findings: skill.findings.len(),
        shadowed_by: winner.map(Path::to_path_buf),
        has_contract: false,
        trusted: Trusted::No,
        needs_approval: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::testing::catalogue;
    use crate::skill::{Role, Stated};

    fn ids(list: &SkillList) -> Vec<&str> {
        list.skills.iter().map(|skill| skill.skill_id.as_str()).collect()
    }

    #[test]
    fn no_filter_keeps_the_catalogues_order() {
        let catalogue = catalogue(&[("b", "b"), ("a", "a")]);
        assert_eq!(ids(&list(&catalogue, &ListFilter::default())), ["b", "a"]);
    }

    #[test]
    fn a_query_is_fuzzy_and_sorts_by_match() {
        let catalogue = catalogue(&[("deploy-check", "x"), ("p-d-f", "x"), ("pdf", "x")]);
        let filter = ListFilter { query: Some("pdf".into()), ..ListFilter::default() };
        assert_eq!(ids(&list(&catalogue, &filter)), ["pdf", "p-d-f"]);
    }

    #[test]
    fn filters_join_and_do_not_mind_case() {
        let mut catalogue = catalogue(&[("a", "a"), ("b", "b")]);
        std::sync::Arc::make_mut(&mut catalogue.entries[1].skill).domain =
            Some(Stated::written("Docs".into()));
        let filter = ListFilter {
            domain: vec!["docs".into()],
            role: Some(Role::Procedure),
            status: Some("STABLE".into()),
            query: None,
        };
        assert_eq!(ids(&list(&catalogue, &filter)), ["b"]);
    }

    #[test]
    fn what_the_reader_filled_in_is_said() {
        let catalogue = catalogue(&[("a", "a")]);
        let list = list(&catalogue, &ListFilter::default());
        assert_eq!(list.skills[0].inferred, ["role", "invocation", "effect_mode", "status", "kind"]);
    }
}
