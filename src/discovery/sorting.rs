//! Sorts candidates and partitions them into results, attachable skills, and excluded skills with the reason.

use std::cmp::Ordering;

use super::adjust::Adjustment;
use super::answer::{Attachable, Excluded, ExcludedWhy};
use super::filter::Filter;
use super::index::{Facts, Index};
use super::matcher::{Column, matched};
use super::ranking::{QueryContext, strict};
use super::rules::{max_terms_sum, role_rank, terms};
use skills_skill::{Role, Status};

/// Number of first results used for the verdict, plus a margin for those whose order changes with the exact score.
const FIRST: usize = 4;

/// Calls `take` with each skill that matches: slot, facts, z from the columns, and match flags.
fn candidates(query: &QueryContext<'_>, sums: &Column, mut take: impl FnMut(usize, Facts, f64, u8)) {
    // Only a request that consists of stop words is matched by stop words.
    let content = query.reading.words.iter().any(|w| !w.word.is_stop_word);
    let need = matched::CONTENT | matched::EXACT | matched::MEANING | if content { 0 } else { matched::STOP };
    let slots = sums.matched.iter().zip(&sums.values).zip(query.cx.index.facts());
    for (slot, ((flags, z), facts)) in slots.enumerate() {
        if let (true, Some(facts)) = (flags & need != 0, facts) {
            take(slot, *facts, f64::from(*z), *flags);
        }
    }
}

/// A candidate with its sort keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranked {
    pub slot: usize,
    /// The score before rule terms.
    pub z: f64,
    pub score: f64,
    /// Ranks by rule: role, status, match, read-only; all zero under the blended policy.
    pub rules: [u8; 4],
    /// Rank among all results, from 1, if the request is narrowed.
    pub rank: Option<usize>,
}

impl Ranked {
    /// Creates a candidate from the values of the columns.
    pub fn new(query: &QueryContext<'_>, slot: usize, facts: Facts, z: f64, flags: u8) -> Self {
        let preferred = own(query, slot).map_or(0.0, Adjustment::sum);
        if !strict(query.request) {
            let terms = terms(&query.cx.weights.rules, facts, query.read_only);
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
        let by_effect = u8::from(query.read_only && !facts.read_only);
        Self {
            slot,
            z,
            score: z + preferred,
            rules: [role_rank(facts.role), facts.status, by_match, by_effect],
            rank: None,
        }
    }

    /// Compares candidates by rule (under the strict policy), then by score, then by id.
    pub fn compare(&self, other: &Self, index: &Index) -> Ordering {
        let id = |slot| index.entry(slot).map(|e| &e.document.id);
        self.rules
            .cmp(&other.rules)
            .then(other.score.total_cmp(&self.score))
            .then_with(|| id(self.slot).cmp(&id(other.slot)))
    }
}

/// Candidates, partitioned by outcome.
pub(crate) struct Sorted {
    /// The first of all results, regardless of filters.
    pub first: Vec<Ranked>,
    /// The best results that pass the filters, in order: enough for the page and for those that may change places with
    /// its ends.
    pub results: Vec<Ranked>,
    /// Number of results that pass the filters.
    pub matches: usize,
    /// Sidecars, best first.
    pub attachable: Vec<Attachable>,
    /// Excluded skills, best first.
    pub excluded: Vec<Excluded>,
}

/// Partitions candidates by outcome.
pub(crate) fn sort(query: &QueryContext<'_>, sums: &Column) -> Sorted {
    let index = query.cx.index;
    let request = query.request;
    // A filter needs the rank of every result.
    let limit = |n: usize| if request.is_narrowed() { usize::MAX } else { n };
    let mut results = TopResults::new(limit(request.offset.saturating_add(request.limit).saturating_add(16)));
    let mut sidecars = TopResults::new(limit(request.limit));
    let mut excluded = TopResults::new(limit(query.cx.weights.limits.excluded));
    let default_rules = DefaultRules::new(query);
    candidates(query, sums, |slot, facts, z, flags| {
        // Most candidates are results far below the last one that is kept.
        if default_rules.as_ref().is_some_and(|rules| facts.is_result() && results.is_below(rules.most(z))) {
            results.pushed += 1;
            return;
        }
        let candidate = Ranked::new(query, slot, facts, z, flags);
        match place(query, slot) {
            ListSlot::Result => results.push(candidate, index),
            ListSlot::Attachable => sidecars.push(candidate, index),
            ListSlot::Excluded => excluded.push(candidate, index),
            ListSlot::Nowhere => {}
        }
    });
    let mut matches = results.pushed;
    let [mut results, mut sidecars, mut excluded] =
        [results, sidecars, excluded].map(|best| best.sorted(index));
    let first = results.iter().take(FIRST).cloned().collect();
    if request.is_narrowed() {
        for (place, result) in results.iter_mut().enumerate() {
            result.rank = Some(place + 1);
        }
        let filter = Filter::new(&request.filter);
        for list in [&mut results, &mut sidecars, &mut excluded] {
            list.retain(|candidate| is_kept(query, &filter, candidate.slot));
        }
        matches = results.len();
        sidecars.truncate(request.limit);
        excluded.truncate(query.cx.weights.limits.excluded);
    }
    let mut before = ResultsBefore::new(&sidecars);
    if request.is_narrowed() {
        for result in &results {
            before.count(result, index);
        }
    } else if !sidecars.is_empty() {
        candidates(query, sums, |slot, facts, z, flags| {
            if place(query, slot) == ListSlot::Result {
                before.count(&Ranked::new(query, slot, facts, z, flags), index);
            }
        });
    }
    let document = |slot: usize| index.entry(slot).map(|e| &e.document);
    let attachable = sidecars.iter().zip(before.sums());
    Sorted {
        attachable: attachable
            .filter_map(|(c, results_before)| {
                let d = document(c.slot)?;
                Some(Attachable {
                    skill_id: d.id.clone(),
                    name: d.name.clone(),
                    score: c.score,
                    attach_targets: d.attach_targets.clone(),
                    results_before,
                })
            })
            .collect(),
        excluded: excluded
            .into_iter()
            .filter_map(|c| {
                let (d, why) = (document(c.slot)?, exclusion(query, c.slot)?);
                Some(Excluded {
                    skill_id: d.id.clone(),
                    score: c.score,
                    why: phrase(&why, d.domain.as_deref(), d.role),
                    reason: why,
                })
            })
            .collect(),
        first,
        results,
        matches,
    }
}

/// The rules of a request that selects no domain or role, under the blended policy, without adjustments.
struct DefaultRules {
    /// The largest sum of rule terms.
    max_terms_sum: f64,
}

impl DefaultRules {
    fn new(query: &QueryContext<'_>) -> Option<Self> {
        let request = query.request;
        let is_default = !strict(request)
            && query.adjustments.is_empty()
            && request.domain.is_empty()
            && request.role_filter.is_none();
        is_default.then(|| Self { max_terms_sum: max_terms_sum(&query.cx.weights.rules) })
    }

    /// Returns the largest score that a candidate can have.
    fn most(&self, z: f64) -> f64 {
        z + self.max_terms_sum
    }
}

/// Returns whether a skill passes the filters of the request.
fn is_kept(query: &QueryContext<'_>, filter: &Filter, slot: usize) -> bool {
    query.cx.index.entry(slot).is_some_and(|entry| {
        let d = &entry.document;
        query.request.skill.as_ref().is_none_or(|requested| *requested == d.id)
            && filter.matches(&[d.id.as_str(), &d.name, &d.description])
    })
}

/// Counts the results that rank before each sidecar.
struct ResultsBefore<'a> {
    /// The sidecars, in order.
    sidecars: &'a [Ranked],
    /// Counts by position among the sidecars.
    counts: Vec<usize>,
}

impl<'a> ResultsBefore<'a> {
    fn new(sidecars: &'a [Ranked]) -> Self {
        Self { sidecars, counts: vec![0; sidecars.len() + 1] }
    }

    fn count(&mut self, result: &Ranked, index: &Index) {
        let place = self.sidecars.partition_point(|s| s.compare(result, index) == Ordering::Less);
        self.counts[place] += 1;
    }

    fn sums(self) -> impl Iterator<Item = usize> {
        self.counts.into_iter().scan(0, |total, count| {
            *total += count;
            Some(*total)
        })
    }
}

/// Collects the best of many candidates without storing all of them.
struct TopResults {
    limit: usize,
    best: Vec<Ranked>,
    /// The worst candidate that can still be among the best, once more than `limit` were pushed.
    last: Option<Ranked>,
    /// Number of pushed candidates.
    pushed: usize,
}

impl TopResults {
    /// Number of candidates beyond `limit` that are stored before the worst are dropped.
    const SLACK: usize = 128;

    fn new(limit: usize) -> Self {
        Self { limit, best: Vec::new(), last: None, pushed: 0 }
    }

    /// Returns whether no candidate with this score or less can be among the best, ordered by score.
    fn is_below(&self, score: f64) -> bool {
        self.last.as_ref().is_some_and(|last| score < last.score)
    }

    fn push(&mut self, candidate: Ranked, index: &Index) {
        self.pushed += 1;
        if self.last.as_ref().is_some_and(|last| candidate.compare(last, index) == Ordering::Greater) {
            return;
        }
        self.best.push(candidate);
        if self.best.len() >= self.limit.saturating_add(Self::SLACK) {
            self.cut(index);
        }
    }

    /// Drops all but the best `limit` candidates.
    fn cut(&mut self, index: &Index) {
        if self.limit > 0 && self.best.len() > self.limit {
            self.best.select_nth_unstable_by(self.limit - 1, |a, b| a.compare(b, index));
        }
        self.best.truncate(self.limit);
        self.last = self.best.last().cloned();
    }

    /// Returns the best candidates, in order.
    fn sorted(mut self, index: &Index) -> Vec<Ranked> {
        self.cut(index);
        self.best.sort_unstable_by(|a, b| a.compare(b, index));
        self.best
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListSlot {
    Result,
    Attachable,
    Excluded,
    /// The slot is empty.
    Nowhere,
}

/// Returns the policy's adjustment of this skill, if any.
fn own<'a>(query: &QueryContext<'a>, slot: usize) -> Option<&'a Adjustment> {
    if query.adjustments.is_empty() {
        return None;
    }
    query.adjustments.of(&query.cx.index.entry(slot)?.document.id)
}

fn place(query: &QueryContext<'_>, slot: usize) -> ListSlot {
    let request = query.request;
    let Some(facts) = query.cx.index.facts()[slot] else { return ListSlot::Nowhere };
    // The common cases are decided without reading the document.
    let usual = facts.offered && request.domain.is_empty() && query.adjustments.is_empty();
    match (request.role_filter, facts.role) {
        _ if facts.shadowed => ListSlot::Excluded,
        _ if !usual && exclusion(query, slot).is_some() => ListSlot::Excluded,
        (None, Role::Sidecar) => ListSlot::Attachable,
        (None, _) => ListSlot::Result,
        (Some(requested), role) if requested == role => ListSlot::Result,
        (Some(_), _) => ListSlot::Excluded,
    }
}

/// Returns whether a skill can be a result of the request.
pub(crate) fn is_searched(query: &QueryContext<'_>, slot: usize) -> bool {
    place(query, slot) == ListSlot::Result
}

/// Returns whether a skill is only attached, and not a result of the request.
pub(crate) fn is_attachable(query: &QueryContext<'_>, slot: usize) -> bool {
    place(query, slot) == ListSlot::Attachable
}

/// Returns why a candidate is excluded, if it is.
fn exclusion(query: &QueryContext<'_>, slot: usize) -> Option<ExcludedWhy> {
    let request = query.request;
    let d = &query.cx.index.entry(slot)?.document;
    if let Some(winner) = &d.shadowed_by {
        return Some(ExcludedWhy::Shadowed(winner.clone()));
    }
    if d.status == Status::Deprecated && !request.include_deprecated {
        return Some(ExcludedWhy::Deprecated);
    }
    let in_domain = |requested: &String| d.domain.as_ref().is_some_and(|d| d.eq_ignore_ascii_case(requested));
    if !request.domain.is_empty() && !request.domain.iter().any(in_domain) {
        return Some(ExcludedWhy::Domain);
    }
    if let Some(rule) = own(query, slot).and_then(|own| own.leave_out.clone()) {
        return Some(ExcludedWhy::Policy(rule));
    }
    let other_role = request.role_filter.is_some_and(|requested| requested != d.role);
    other_role.then_some(ExcludedWhy::Role)
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
