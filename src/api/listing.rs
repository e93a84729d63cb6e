//! `list`: records of the catalog as summaries, filtered, in catalog order or by match.

use std::collections::BTreeSet;
use std::path::Path;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::{Error, ListFilter, SkillList, SkillSummary, names, paging};
use skills_registry::{Catalog, TrustSummary};
use skills_skill::{Finding, Skill, errors_and_warnings};

/// A skill of the catalog before it is summarized.
struct ListedSkill<'a> {
    skill: &'a Skill,
    root: usize,
    winner: Option<&'a Path>,
}

/// Applies a filter to the catalog and returns the requested page. Shadowed skills follow the winners; rejected bundles
/// are included if nothing is filtered.
///
/// # Errors
/// Returns `invalid_request` for a limit outside 1 to 1,000, and for an invalid cursor.
pub fn list(catalog: &Catalog, filter: &ListFilter) -> Result<SkillList, Error> {
    let winners = catalog.entries.iter().map(|entry| ListedSkill {
        skill: &entry.skill,
        root: entry.root,
        winner: None,
    });
    let shadowed = catalog.shadowed.iter().map(|loser| ListedSkill {
        skill: &loser.skill,
        root: loser.root,
        winner: Some(&loser.winner),
    });
    let mut skills: Vec<ListedSkill<'_>> =
        winners.chain(shadowed).filter(|found| keeps(filter, found.skill)).collect();
    if let Some(query) = filter.query.as_deref().filter(|query| !query.trim().is_empty()) {
        skills = by_match(skills, query);
    }
    let refused = if filter.keeps_all() { catalog.refused.as_slice() } else { &[] };
    let total = skills.len();
    let id = |at: usize| match skills.get(at) {
        Some(found) => found.skill.id.as_str(),
        None => refused[at - total].id.as_str(),
    };
    let (page, next) = paging::part(total + refused.len(), id, filter.limit, filter.cursor.as_deref())?;
    let of_skills = page.start.min(total)..page.end.min(total);
    let of_refused = page.start.max(total) - total..page.end.max(total) - total;
    Ok(SkillList {
        skills: skills[of_skills]
            .iter()
            .map(|found| summary(catalog, found.skill, found.root, found.winner))
            .collect(),
        refused: refused[of_refused].to_vec(),
        total,
        next,
        hints: if total == 0 {
            unknown_values(catalog, &filter.domain, filter.status.as_deref())
        } else {
            Vec::new()
        },
    })
}

/// Reports values of a filter that no skill has, with similar ones that skills have.
pub fn unknown_values(catalog: &Catalog, domains: &[String], status: Option<&str>) -> Vec<String> {
    if domains.is_empty() && status.is_none() {
        return Vec::new();
    }
    let (mut statuses, mut known) = (BTreeSet::new(), BTreeSet::new());
    for skill in catalog.all_skills() {
        statuses.insert(skill.status.value.as_str());
        known.extend(skill.domain.as_ref().map(|domain| domain.value.as_str()));
    }
    let values = domains.iter().map(|domain| ("domain", domain.as_str(), &known));
    let values = values.chain(status.map(|status| ("status", status, &statuses)));
    let unknown = values.filter(|(_, value, known)| !known.iter().any(|one| one.eq_ignore_ascii_case(value)));
    let hint = |(what, value, known): (&str, &str, &BTreeSet<&str>)| {
        let near = names::near(value, known.iter().copied());
        let near = near.first().map_or_else(String::new, |name| format!("; did you mean {name}?"));
        format!("no skill has {what} `{value}`{near}")
    };
    unknown.map(hint).collect()
}

fn keeps(filter: &ListFilter, skill: &Skill) -> bool {
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let domain = skill.domain.as_ref().map(|domain| domain.value.as_str());
    (filter.domain.is_empty()
        || domain.is_some_and(|domain| filter.domain.iter().any(|want| same(want, domain))))
        && filter.role.is_none_or(|role| role == skill.classification.role.value)
        && filter.status.as_deref().is_none_or(|status| same(status, skill.status.value.as_str()))
}

fn by_match<'a>(skills: Vec<ListedSkill<'a>>, query: &str) -> Vec<ListedSkill<'a>> {
    let pattern = Pattern::parse(query, CaseMatching::Ignore, Normalization::Smart);
    let words = QueryWords::new(query);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let mut scored: Vec<((MatchKind, u32), ListedSkill<'a>)> = skills
        .into_iter()
        .filter_map(|found| {
            let mut score = |text: &str| pattern.score(Utf32Str::new(text, &mut buffer), &mut matcher);
            let (id, name) = (found.skill.id.as_str(), found.skill.name.as_str());
            let by_letters = score(id).max(score(name));
            let matched =
                words.matched(&[id, name], by_letters, || Some(found.skill.description.as_str()))?;
            Some((matched, found))
        })
        .collect();
    // Stable: equal scores keep the catalog order.
    scored.sort_by_key(|(matched, _)| std::cmp::Reverse(*matched));
    scored.into_iter().map(|(_, found)| found).collect()
}

/// What of a skill matches a query, in ascending order of relevance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKind {
    /// The letters of the query, in order, in its name.
    Letters,
    /// The words of the query in its description.
    Description,
    /// The words of the query in its name.
    Name,
}

/// Words of a query to match against names and descriptions: in a description each at the beginning of a word, ignoring case.
#[derive(Debug, Clone, Default)]
pub struct QueryWords(Vec<String>);

impl QueryWords {
    /// Splits a query into words.
    pub fn new(query: &str) -> Self {
        Self(query.split_whitespace().map(str::to_lowercase).collect())
    }

    /// Returns the kind of match and its score, which compares matches of one kind. `by_letters` is the fuzzy score of
    /// the names; the description is requested only if the names do not contain the words.
    pub fn matched<'t>(
        &self,
        names: &[&str],
        by_letters: Option<u32>,
        description: impl FnOnce() -> Option<&'t str>,
    ) -> Option<(MatchKind, u32)> {
        if let Some(score) = by_letters
            && names.iter().any(|name| self.are_in_name(name))
        {
            return Some((MatchKind::Name, score));
        }
        if !self.0.is_empty() && description().is_some_and(|text| self.is_in(text)) {
            return Some((MatchKind::Description, 0));
        }
        by_letters.map(|score| (MatchKind::Letters, score))
    }

    fn are_in_name(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        !self.0.is_empty() && self.0.iter().all(|word| name.contains(word.as_str()))
    }

    /// Returns whether a text contains all words; false if there are none.
    fn is_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let begins = |word: &String| {
            text.match_indices(word.as_str())
                .any(|(at, _)| !text.get(..at).is_some_and(|before| before.ends_with(char::is_alphanumeric)))
        };
        !self.0.is_empty() && self.0.iter().all(begins)
    }
}

/// Returns the number of findings that a summary shows.
pub fn problems(findings: &[Finding]) -> usize {
    let (errors, warnings) = errors_and_warnings(findings);
    errors + warnings
}

/// Returns the summary of one skill for `list`.
pub fn summary(catalog: &Catalog, skill: &Skill, root: usize, winner: Option<&Path>) -> SkillSummary {
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
        root: catalog.roots.get(root).map_or_else(String::new, |root| root.label.clone()),
        digest: skill.digest,
        findings: problems(&skill.findings),
        shadowed_by: winner.map(Path::to_path_buf),
        has_contract: false,
        trusted: TrustSummary::No,
        needs_approval: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{catalog, refused};
    use skills_skill::{Role, WithOrigin};

    fn ids(list: &SkillList) -> Vec<&str> {
        list.skills.iter().map(|skill| skill.skill_id.as_str()).collect()
    }

    #[test]
    fn no_filter_keeps_the_catalogs_order() {
        let catalog = catalog(&[("b", "b"), ("a", "a")]);
        assert_eq!(ids(&list(&catalog, &ListFilter::default()).unwrap()), ["b", "a"]);
    }

    #[test]
    fn a_query_is_fuzzy_and_sorts_by_match() {
        let catalog = catalog(&[("deploy-check", "x"), ("p-d-f", "x"), ("pdf", "x")]);
        let filter = ListFilter { query: Some("pdf".into()), ..ListFilter::default() };
        assert_eq!(ids(&list(&catalog, &filter).unwrap()), ["pdf", "p-d-f"]);
    }

    #[test]
    fn query_matches_descriptions_after_names() {
        let mut catalog = catalog(&[("a", "a"), ("log-sum", "log-sum"), ("c", "c")]);
        for (entry, text) in catalog.entries.iter_mut().zip(["Reads log files", "Sums", "Catalogs books"]) {
            std::sync::Arc::make_mut(&mut entry.skill).description = text.to_owned();
        }
        let filter = |query: &str| ListFilter { query: Some(query.into()), ..ListFilter::default() };
        assert_eq!(ids(&list(&catalog, &filter("log")).unwrap()), ["log-sum", "a"]);
        assert_eq!(ids(&list(&catalog, &filter("files LOG")).unwrap()), ["a"]);
    }

    #[test]
    fn words_of_descriptions_rank_before_scattered_letters() {
        let names = [("s-t-r-i-p-e", "x"), ("pay", "pay"), ("my-stripe", "x")];
        let mut catalog = catalog(&names);
        std::sync::Arc::make_mut(&mut catalog.entries[1].skill).description = "Uses Stripe.".to_owned();
        let filter = ListFilter { query: Some("stripe".into()), ..ListFilter::default() };
        assert_eq!(ids(&list(&catalog, &filter).unwrap()), ["my-stripe", "pay", "s-t-r-i-p-e"]);
    }

    #[test]
    fn filters_combine_and_ignore_case() {
        let mut catalog = catalog(&[("a", "a"), ("b", "b")]);
        std::sync::Arc::make_mut(&mut catalog.entries[1].skill).domain =
            Some(WithOrigin::explicit("Docs".into()));
        let filter = ListFilter {
            domain: vec!["docs".into()],
            role: Some(Role::Procedure),
            status: Some("STABLE".into()),
            ..ListFilter::default()
        };
        assert_eq!(ids(&list(&catalog, &filter).unwrap()), ["b"]);
    }

    #[test]
    fn values_added_by_the_parser_are_reported() {
        let catalog = catalog(&[("a", "a")]);
        let list = list(&catalog, &ListFilter::default()).unwrap();
        assert_eq!(list.skills[0].inferred, ["role", "invocation", "effect_mode", "status", "kind"]);
    }

    #[test]
    fn page_counts_all_skills_and_lists_rejected_bundles_last() {
        let mut catalog = catalog(&[("a", "a"), ("b", "b"), ("c", "c")]);
        catalog.refused.push(refused("broken", "there is no description"));
        let page = |limit: Option<usize>, cursor: Option<String>| {
            list(&catalog, &ListFilter { limit, cursor, ..ListFilter::default() }).unwrap()
        };
        let first = page(Some(2), None);
        assert_eq!((ids(&first), first.total, first.refused.len()), (vec!["a", "b"], 3, 0));
        let second = page(Some(2), first.next);
        assert_eq!((ids(&second), second.refused.len(), second.next.is_none()), (vec!["c"], 1, true));
        let all_entries = page(None, None);
        assert_eq!(
            (all_entries.skills.len(), all_entries.refused.len(), all_entries.total, all_entries.next),
            (3, 1, 3, None)
        );
        let filter = ListFilter { query: Some("b".into()), limit: Some(5), ..ListFilter::default() };
        assert!(list(&catalog, &filter).unwrap().refused.is_empty());
    }
}
