//! Clusters of skills that win each other's requests, and their labels.

use std::collections::{BTreeMap, HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::collisions::Collision;
use super::index::Index;
use super::tokenize::Words;
use skills_skill::SkillId;

/// Minimum share of lost probes that puts two skills into one cluster.
const CLUSTERS_FROM: f64 = 0.10;
/// Maximum number of skills in a cluster: what one screen shows as a matrix.
pub const MAX_CLUSTER: usize = 24;

/// Terms too generic to label a cluster, in any inflected form.
const GENERIC_TERMS: &str = "use user new create build make add run write get set help work manage perform implement \
    generate handle provide support need want include ensure apply follow enable skill tool task agent guide best \
    practice expert based various complete";

/// Terms by stem: the number of skills that contain it, and one written form.
type Terms = BTreeMap<String, (usize, String)>;

/// Skills that win each other's requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cluster {
    /// A term that the names of its skills have in common and other clusters do not, two terms if one is not unique;
    /// without such a term its first skill, which loses most.
    pub label: String,
    /// The skills; neighbors lose most to each other.
    pub skills: Vec<SkillId>,
}

/// Groups skills that lose to each other, starting with the strongest losses.
pub(super) fn clusters(collisions: &[Collision], index: &Index, words: &Words) -> Vec<Cluster> {
    let mut weights: BTreeMap<(&SkillId, &SkillId), f64> = BTreeMap::new();
    for collision in collisions.iter().filter(|collision| collision.share >= CLUSTERS_FROM) {
        let (a, b) = (&collision.skill_id, &collision.rival);
        *weights.entry(if a < b { (a, b) } else { (b, a) }).or_default() += collision.share;
    }
    let mut edges: Vec<((&SkillId, &SkillId), f64)> =
        weights.iter().map(|(pair, weight)| (*pair, *weight)).collect();
    edges.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut of: HashMap<&SkillId, usize> = HashMap::new();
    let mut members: Vec<Vec<&SkillId>> = Vec::new();
    for ((a, b), _) in edges {
        let [first, second] = [a, b].map(|id| {
            *of.entry(id).or_insert_with(|| {
                members.push(vec![id]);
                members.len() - 1
            })
        });
        if first != second && members[first].len() + members[second].len() <= MAX_CLUSTER {
            let moved = std::mem::take(&mut members[second]);
            for id in &moved {
                of.insert(id, first);
            }
            members[first].extend(moved);
        }
    }
    let weight =
        |a: &SkillId, b: &SkillId| weights.get(&if a < b { (a, b) } else { (b, a) }).copied().unwrap_or(0.0);
    let members: Vec<Vec<&SkillId>> = members
        .into_iter()
        .filter(|members| members.len() > 1)
        .map(|members| in_order(members, &weight))
        .collect();
    let severe = |skills: &[&SkillId]| {
        let is_in = |id: &SkillId| skills.contains(&id);
        let found = collisions.iter().filter(|found| found.is_severe());
        found.filter(|found| is_in(&found.skill_id) && is_in(&found.rival)).count()
    };
    let labels = Labeler { index, words }.labels(&members);
    let clusters = members.into_iter().zip(labels).map(|(members, label)| {
        let severe = severe(&members);
        (severe, Cluster { label, skills: members.into_iter().cloned().collect() })
    });
    let mut clusters: Vec<(usize, Cluster)> = clusters.collect();
    clusters.sort_by(|(a_severe, a), (b_severe, b)| {
        let by_size = b.skills.len().cmp(&a.skills.len());
        b_severe.cmp(a_severe).then(by_size).then_with(|| a.label.cmp(&b.label))
    });
    clusters.into_iter().map(|(_, cluster)| cluster).collect()
}

/// Orders the members so that each is adjacent to those it loses most to: starts with the pair of greatest weight,
/// then repeatedly appends the member with the greatest total weight to those already placed.
fn in_order<'a>(mut left: Vec<&'a SkillId>, weight: &impl Fn(&SkillId, &SkillId) -> f64) -> Vec<&'a SkillId> {
    left.sort();
    let total = |id: &SkillId, others: &[&SkillId]| others.iter().map(|other| weight(id, other)).sum::<f64>();
    let mut placed: Vec<&SkillId> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let among: &[&SkillId] = if placed.is_empty() { &left } else { &placed };
        let scores: Vec<f64> = left.iter().map(|id| total(id, among)).collect();
        let next =
            (0..left.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]).then(b.cmp(a))).unwrap_or(0);
        placed.push(left.remove(next));
    }
    placed
}

/// Labels clusters by the names of their skills.
struct Labeler<'a> {
    index: &'a Index,
    words: &'a Words,
}

impl Labeler<'_> {
    /// Labels each cluster with a term that the names of many of its skills contain and few others do, else with its
    /// first skill: a term of descriptions is seldom the subject. Clusters with the same term get a second one.
    fn labels(&self, clusters: &[Vec<&SkillId>]) -> Vec<String> {
        let generic: HashSet<String> =
            self.words.split(GENERIC_TERMS).into_iter().map(|word| word.stem).collect();
        let terms: Vec<Terms> = clusters.iter().map(|skills| self.terms(skills, &generic)).collect();
        // The number of clusters in which a term is common.
        let mut spread: HashMap<&str, usize> = HashMap::new();
        for (skills, terms) in clusters.iter().zip(&terms) {
            let is_common = |count: usize| count >= skills.len().div_ceil(2).max(2);
            for (stem, _) in terms.iter().filter(|(_, (count, _))| is_common(*count)) {
                *spread.entry(stem).or_default() += 1;
            }
        }
        let rarity = |stem: &str| self.index.rarity(stem).max(0.0);
        let distinct = |stem: &str| {
            let others = spread.get(stem).copied().unwrap_or(0).max(1);
            ((1 + clusters.len()) as f64 / others as f64).ln()
        };
        let ranked = |terms: &Terms, least: usize| {
            let terms = terms.iter().filter(|(_, (count, _))| *count >= least);
            let mut scored: Vec<(f64, &String)> = terms
                .map(|(stem, (count, word))| {
                    (*count as f64 * (0.5 + rarity(stem)) * (0.2 + distinct(stem)), word)
                })
                .collect();
            scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
            scored.into_iter().map(|(_, word)| word.clone()).collect::<Vec<String>>()
        };
        let mut taken: HashSet<String> = HashSet::new();
        let label = |(skills, names): (&Vec<&SkillId>, &Terms)| {
            let mut words = ranked(names, skills.len().div_ceil(2).max(2));
            words.extend(skills.first().map(ToString::to_string));
            let first = words.first().cloned().unwrap_or_default();
            let second = words.iter().find(|word| **word != first);
            let label = match second.filter(|_| taken.contains(&first)) {
                Some(second) => format!("{first} {second}"),
                None => first,
            };
            taken.insert(label.clone());
            label
        };
        clusters.iter().zip(&terms).map(label).collect()
    }

    /// Counts the terms of the names of skills, without generic ones.
    fn terms(&self, skills: &[&SkillId], generic: &HashSet<String>) -> Terms {
        let mut out = Terms::new();
        for document in skills.iter().filter_map(|id| self.index.document(id)) {
            let mut seen = HashSet::new();
            for word in self.words.split(&document.name.replace(['-', '_'], " ")) {
                let is_number = word.text.chars().all(|c| c.is_ascii_digit());
                let is_named = !word.is_stop_word && !is_number && !generic.contains(&word.stem);
                if is_named && seen.insert(word.stem.clone()) {
                    out.entry(word.stem).or_insert((0, word.text)).0 += 1;
                }
            }
        }
        out
    }
}
