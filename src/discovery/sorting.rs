//! Candidates in order, apart from those that are no result: attachable, and left out for a reason.

use std::cmp::Ordering;

use super::adjust::Adjustment;
use super::answer::{Attachable, Excluded, ExcludedWhy};
use super::filter::Filter;
use super::index::{Facts, Index};
use super::link::matched;
use super::ranking::{Asked, strict};
use super::rules::{role_rank, terms};
use skills_skill::{Role, Status};

/// How many of the first results the verdict looks at, with room for those whose order changes with the exact score.
const FIRST: usize = 4;

/// A candidate with what its place depends on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranked {
    pub slot: usize,
    /// Before rule terms.
    pub z: f64,
    pub score: f64,
    /// Place by rule: role, status, match, read-only; all zero under the blended policy.
    pub rules: [u8; 4],
    /// Place among all results, from 1, where the request keeps only some of them.
    pub rank: Option<usize>,
}

impl Ranked {
    /// From what the columns say.
    pub fn new(asked: &Asked<'_>, slot: usize, facts: Facts, z: f64, flags: u8) -> Self {
        let preferred = own(asked, slot).map_or(0.0, Adjustment::sum);
        if !strict(asked.request) {
            let terms = terms(&asked.cx.weights.rules, facts, asked.read_only);
            return Self {
                slot,
                z,
                score: z + terms.iter().sum::<f64>() + preferred,
                rules: [0; 4],
                rank: None,
            };
        }
        let by_match = if flags & matched::EXACT != 0 {
            0
        } else if flags & matched::SHORT != 0 {
            1
        } else {
            2
        };
        let by_effect = u8::from(asked.read_only && !facts.read_only);
        Self {
            slot,
            z,
            score: z + preferred,
            rules: [role_rank(facts.role), facts.status, by_match, by_effect],
            rank: None,
        }
    }

    /// Order of an answer: by rule (under the strict policy), by score, by id.
    pub fn compare(&self, other: &Self, index: &Index) -> Ordering {
        let id = |slot| index.entry(slot).map(|e| &e.document.id);
        self.rules
            .cmp(&other.rules)
            .then(other.score.total_cmp(&self.score))
            .then_with(|| id(self.slot).cmp(&id(other.slot)))
    }
}

/// Candidates by what becomes of them.
pub(crate) struct Sorted {
    /// The first of all results.
    pub first: Vec<Ranked>,
    /// Results that the request keeps, best first.
    pub results: Vec<Ranked>,
    /// Sidecars, best first.
    pub attachable: Vec<Attachable>,
    /// Left out, best first.
    pub excluded: Vec<Excluded>,
}

/// Puts candidates where they belong.
pub(crate) fn sort(asked: &Asked<'_>, candidates: Vec<Ranked>) -> Sorted {
    let index = asked.cx.index;
    let by_score = |a: &(Ranked, ExcludedWhy), b: &(Ranked, ExcludedWhy)| a.0.compare(&b.0, index);
    let mut results = Vec::with_capacity(candidates.len());
    let (mut sidecars, mut excluded) = (Vec::new(), Vec::new());
    for candidate in candidates {
        match place(asked, candidate.slot) {
            Place::Result => results.push(candidate),
            Place::Attachable => sidecars.push(candidate),
            Place::Excluded(why) => excluded.push((candidate, why)),
            Place::Nowhere => {}
        }
    }
    let request = asked.request;
    let in_order = if request.is_narrowed() {
        usize::MAX
    } else {
        request.offset.saturating_add(request.limit).saturating_add(16)
    };
    best(&mut results, in_order, |a, b| a.compare(b, index));
    let first = results.iter().take(FIRST).cloned().collect();
    if request.is_narrowed() {
        for (place, result) in results.iter_mut().enumerate() {
            result.rank = Some(place + 1);
        }
        let filter = Filter::new(&request.filter);
        results.retain(|c| is_kept(asked, &filter, c.slot));
        sidecars.retain(|c| is_kept(asked, &filter, c.slot));
        excluded.retain(|(c, _)| is_kept(asked, &filter, c.slot));
    }
    sidecars.sort_by(|a, b| a.compare(b, index));
    let before = results_before(&sidecars, &results, index);
    best(&mut excluded, asked.cx.weights.limits.excluded, by_score);
    excluded.truncate(asked.cx.weights.limits.excluded);
    let document = |slot: usize| index.entry(slot).map(|e| &e.document);
    Sorted {
        first,
        results,
        attachable: sidecars
            .into_iter()
            .zip(before)
            .take(request.limit)
            .filter_map(|(c, before)| document(c.slot).map(|d| (c, before, d)))
            .map(|(c, results_before, d)| Attachable {
                skill_id: d.id.clone(),
                name: d.name.clone(),
                score: c.score,
                attach_targets: d.attach_targets.clone(),
                results_before,
            })
            .collect(),
        excluded: excluded
            .into_iter()
            .filter_map(|(c, why)| document(c.slot).map(|d| (c, why, d)))
            .map(|(c, why, d)| Excluded {
                skill_id: d.id.clone(),
                score: c.score,
                why: phrase(&why, d.domain.as_deref(), d.role),
                reason: why,
            })
            .collect(),
    }
}

/// Whether the request keeps a skill.
fn is_kept(asked: &Asked<'_>, filter: &Filter, slot: usize) -> bool {
    asked.cx.index.entry(slot).is_some_and(|entry| {
        let d = &entry.document;
        asked.request.skill.as_ref().is_none_or(|wanted| *wanted == d.id)
            && filter.matches(&[d.id.as_str(), &d.name, &d.description])
    })
}

/// For each of the sidecars, which are in order, how many of the results stand before it.
fn results_before(sidecars: &[Ranked], results: &[Ranked], index: &Index) -> Vec<usize> {
    let mut counts = vec![0; sidecars.len() + 1];
    if !sidecars.is_empty() {
        for result in results {
            counts[sidecars.partition_point(|s| s.compare(result, index) == Ordering::Less)] += 1;
        }
    }
    let sum = |total: &mut usize, count: usize| {
        *total += count;
        Some(*total)
    };
    counts.into_iter().take(sidecars.len()).scan(0, sum).collect()
}

/// Brings the best `n` to the front in order; the rest stays as it is.
fn best<T>(all: &mut [T], n: usize, compare: impl Fn(&T, &T) -> Ordering) {
    if all.len() > n && n > 0 {
        all.select_nth_unstable_by(n - 1, &compare);
    }
    let n = n.min(all.len());
    all[..n].sort_by(compare);
}

enum Place {
    Result,
    Attachable,
    Excluded(ExcludedWhy),
    /// Gone.
    Nowhere,
}

/// What somebody wants of this skill, if anybody wants anything of any.
fn own<'a>(asked: &Asked<'a>, slot: usize) -> Option<&'a Adjustment> {
    if asked.adjustments.is_empty() {
        return None;
    }
    asked.adjustments.of(&asked.cx.index.entry(slot)?.document.id)
}

fn place(asked: &Asked<'_>, slot: usize) -> Place {
    let request = asked.request;
    let Some(facts) = asked.cx.index.facts()[slot] else { return Place::Nowhere };
    // The usual case needs no look at the document itself.
    if !facts.offered || !request.domain.is_empty() {
        let Some(d) = asked.cx.index.entry(slot).map(|e| &e.document) else { return Place::Nowhere };
        if let Some(winner) = &d.shadowed_by {
            return Place::Excluded(ExcludedWhy::Shadowed(winner.clone()));
        }
        if d.status == Status::Deprecated && !request.include_deprecated {
            return Place::Excluded(ExcludedWhy::Deprecated);
        }
        let in_domain = |wanted: &String| d.domain.as_ref().is_some_and(|d| d.eq_ignore_ascii_case(wanted));
        if !request.domain.is_empty() && !request.domain.iter().any(in_domain) {
            return Place::Excluded(ExcludedWhy::Domain);
        }
    }
    if let Some(rule) = own(asked, slot).and_then(|own| own.leave_out.clone()) {
        return Place::Excluded(ExcludedWhy::Policy(rule));
    }
    match (request.role_filter, facts.role) {
        (None, Role::Sidecar) => Place::Attachable,
        (None, _) => Place::Result,
        (Some(wanted), role) if wanted == role => Place::Result,
        (Some(_), _) => Place::Excluded(ExcludedWhy::Role),
    }
}

fn phrase(why: &ExcludedWhy, domain: Option<&str>, role: Role) -> String {
    match why {
        ExcludedWhy::Deprecated => "deprecated".to_owned(),
        ExcludedWhy::Shadowed(winner) => format!("a copy, shadowed by {winner}"),
        ExcludedWhy::Domain => {
            domain.map_or_else(|| "it has no domain".to_owned(), |d| format!("its domain is {d}"))
        }
        ExcludedWhy::Role => format!("its role is {role}"),
        ExcludedWhy::Policy(rule) => format!("policy: {rule}"),
        ExcludedWhy::BelowLimit => "below the limit".to_owned(),
    }
}
