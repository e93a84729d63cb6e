//! Collisions between skills: probe requests of every skill are ranked against the whole collection, and a request
//! that another skill wins counts as a loss to that skill.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clusters::{Cluster, clusters};
use super::document::Document;
use super::groups::{SimilarGroup, groups};
use super::index::Facts;
use super::probes::ProbeClause;
use super::request::Request;
use super::router::{RequestError, Router};
use skills_skill::{SkillId, Status};

/// Maximum number of probe requests per skill.
pub const MAX_PROBES: usize = 24;
/// Minimum number of probe requests per skill, however large the collection is.
const MIN_PROBES: usize = 3;
/// Approximate number of probe requests for a collection: two cores rank this many in less than a minute with 14,639
/// skills.
const PROBE_BUDGET: usize = 45_000;
/// Minimum share of a skill's probes lost to a single rival for a collision.
pub const COLLIDES_FROM: f64 = 0.20;
/// Minimum number of lost probes for a collision: a single one may be an accident of wording.
const COLLIDES_FROM_PROBES: usize = 2;
/// Version of the map; raise it when the same index gives another map, so that cached ones are computed again.
const MAP_VERSION: u32 = 3;
/// A clause of a description, with the results of its probe requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedClause {
    /// Text of the clause.
    pub clause: String,
    /// Probe requests made from it.
    pub made: usize,
    /// Those that its own skill wins.
    #[serde(rename = "kept")]
    pub won: usize,
}

/// A probe request that its own skill does not win.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostProbe {
    /// Text of the request.
    pub query: String,
    /// The skill that wins it; none if no skill is a result.
    pub won: Option<SkillId>,
}

/// A skill with the results of its probe requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedSkill {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// Probe requests made from its description.
    pub made: usize,
    /// Those that it wins.
    #[serde(rename = "kept")]
    pub won: usize,
    /// The skill that wins most of the others.
    pub rival: Option<SkillId>,
    /// Probe requests that the rival wins.
    pub lost_to_rival: usize,
}

/// A skill that wins probe requests of another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collision {
    /// The skill that loses.
    pub skill_id: SkillId,
    /// The skill that wins.
    pub rival: SkillId,
    /// Probe requests lost.
    pub lost: usize,
    /// Probe requests made.
    pub made: usize,
    /// `lost` of `made`, 0 to 1.
    pub share: f64,
}

impl Collision {
    /// Returns whether enough requests are lost to need a review.
    #[must_use]
    pub fn is_severe(&self) -> bool {
        self.share >= COLLIDES_FROM && self.lost >= COLLIDES_FROM_PROBES
    }
}

/// A collection as a map of collisions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CollisionMap {
    /// Skills that were compared.
    pub skills: usize,
    /// Probe requests that were ranked.
    pub probes: usize,
    /// Probe requests that a skill other than their own wins.
    pub lost: usize,
    /// Maximum number of probe requests per skill; smaller in a large collection.
    pub probes_per_skill: usize,
    /// Skills that win each other's requests: clusters with the most collisions first, then the largest.
    pub clusters: Vec<Cluster>,
    /// Losses to a single skill, the largest share first.
    pub collisions: Vec<Collision>,
    /// Skills that lose requests, the largest share first.
    pub losers: Vec<ProbedSkill>,
    /// Skills with the same or nearly the same text.
    pub groups: Vec<SimilarGroup>,
}

/// The ranked probes of one skill.
pub(crate) struct Probing {
    pub clauses: Vec<ProbeClause>,
    /// The winner of each probe, by clause.
    pub winners: Vec<Vec<Option<SkillId>>>,
}

impl Probing {
    /// Iterates over all probes with their winners.
    pub fn each(&self) -> impl Iterator<Item = (&str, Option<&SkillId>)> {
        self.clauses.iter().zip(&self.winners).flat_map(|(clause, winners)| {
            clause.probes.iter().map(String::as_str).zip(winners.iter().map(Option::as_ref))
        })
    }

    pub fn made(&self) -> usize {
        self.winners.iter().map(Vec::len).sum()
    }

    pub fn won_by(&self, skill: &SkillId) -> usize {
        self.each().filter(|(_, winner)| *winner == Some(skill)).count()
    }

    pub fn probed_clauses(&self, own: &SkillId) -> Vec<ProbedClause> {
        let clause = |(clause, winners): (&ProbeClause, &Vec<Option<SkillId>>)| ProbedClause {
            clause: clause.text.clone(),
            made: winners.len(),
            won: winners.iter().filter(|winner| winner.as_ref() == Some(own)).count(),
        };
        self.clauses.iter().zip(&self.winners).map(clause).collect()
    }

    /// Returns how many probes each other skill wins, the most first.
    pub fn lost_to(&self, own: &SkillId) -> Vec<(&SkillId, usize)> {
        let mut lost: BTreeMap<&SkillId, usize> = BTreeMap::new();
        for winner in self.each().filter_map(|(_, winner)| winner).filter(|winner| *winner != own) {
            *lost.entry(winner).or_default() += 1;
        }
        let mut lost: Vec<(&SkillId, usize)> = lost.into_iter().collect();
        lost.sort_by_key(|(_, lost)| std::cmp::Reverse(*lost));
        lost
    }
}

/// Returns the maximum number of probe requests per skill for a collection of this size.
#[must_use]
pub fn probes_per_skill(skills: usize) -> usize {
    (PROBE_BUDGET / skills.max(1)).clamp(MIN_PROBES, MAX_PROBES)
}

impl Router {
    /// Returns the first result of a request.
    pub(crate) fn winner(&self, query: &str) -> Result<Option<SkillId>, RequestError> {
        let request = Request { intent: query.to_owned(), limit: 1, ..Request::default() };
        Ok(self.discover(&request)?.results.into_iter().next().map(|hit| hit.skill_id))
    }

    /// Ranks the probes of the given clauses.
    pub(crate) fn probing(&self, clauses: Vec<ProbeClause>) -> Result<Probing, RequestError> {
        let winners = clauses
            .iter()
            .map(|clause| clause.probes.iter().map(|probe| self.winner(probe)).collect())
            .collect::<Result<_, _>>()?;
        Ok(Probing { clauses, winners })
    }

    /// Returns why a skill is not a result of any request without filters; `None` if it can be one or is unknown.
    #[must_use]
    pub fn not_ranked(&self, id: &SkillId) -> Option<String> {
        let slot = self.index.slot_of(id)?;
        let document = &self.index.entry(slot)?.document;
        if self.index.facts()[slot].is_some_and(Facts::is_result) {
            return None;
        }
        Some(match &document.shadowed_by {
            Some(winner) => format!("a copy, shadowed by {winner}"),
            None if document.status == Status::Deprecated => "deprecated".to_owned(),
            None => "a sidecar is offered for attachment only".to_owned(),
        })
    }

    /// Returns the number of skills that can be results.
    #[must_use]
    pub fn ranked_skills(&self) -> usize {
        self.index.facts().iter().flatten().filter(|facts| facts.is_result()).count()
    }

    /// Returns the semantic similarity of two skills: the cosine of their vectors after subtracting the mean of the
    /// collection (in a collection of few skills, a share of it). A high value suggests a review; it proves nothing.
    #[must_use]
    pub fn similarity(&self, a: &SkillId, b: &SkillId) -> Option<f64> {
        self.index.similarity(a, b)
    }

    /// Returns the semantically most similar skills, most similar first.
    pub(crate) fn nearest(&self, id: &SkillId, limit: usize) -> Vec<(SkillId, f64)> {
        let others = self
            .index
            .ranked_documents()
            .into_iter()
            .map(|document| &document.id)
            .filter(|other| *other != id);
        let mut near: Vec<(SkillId, f64)> =
            others.filter_map(|other| Some((other.clone(), self.index.similarity(id, other)?))).collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        near.truncate(limit);
        near
    }

    /// Returns the number of skills whose headings and bodies are not read yet.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.index.unread()
    }

    /// Returns a digest of the index content: with the same key, the same requests have the same winners.
    #[must_use]
    pub fn content_key(&self) -> String {
        self.index.content_digest(format!("{MAP_VERSION} {} {:?}\n", self.stamp(), self.off))
    }

    /// Returns groups of skills with identical or nearly identical text.
    #[must_use]
    pub fn similar_groups(&self) -> Vec<SimilarGroup> {
        let all: Vec<&Document> = self.index.entries().map(|(_, entry)| &entry.document).collect();
        groups(&all, &self.words)
    }

    /// Ranks the probes of every skill against all others, on the threads of the calling pool. `done` counts finished
    /// skills; returns `None` once `stop` is set.
    #[must_use]
    pub fn collision_map(&self, done: &AtomicUsize, stop: &AtomicBool) -> Option<CollisionMap> {
        let documents = self.index.ranked_documents();
        let limit = probes_per_skill(documents.len());
        let probed: Vec<Option<Probing>> = documents
            .par_iter()
            .map(|document| {
                if stop.load(Ordering::Relaxed) {
                    return None;
                }
                let probing = self.probing(self.probes(document, limit)).ok();
                done.fetch_add(1, Ordering::Relaxed);
                probing
            })
            .collect();
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let mut map = CollisionMap::of(&documents, &probed, limit);
        map.clusters = clusters(&map.collisions, &self.index, &self.words);
        map.groups = self.similar_groups();
        Some(map)
    }
}

impl CollisionMap {
    /// Counts the probes that documents win and lose.
    fn of(documents: &[&Document], probed: &[Option<Probing>], limit: usize) -> Self {
        let mut map = Self { skills: documents.len(), probes_per_skill: limit, ..Self::default() };
        for (document, probing) in documents.iter().zip(probed) {
            let Some(probing) = probing.as_ref().filter(|probing| probing.made() > 0) else { continue };
            let (made, lost) = (probing.made(), probing.lost_to(&document.id));
            map.probes += made;
            map.lost += lost.iter().map(|(_, lost)| lost).sum::<usize>();
            if let Some((rival, lost_to_rival)) = lost.first() {
                map.losers.push(ProbedSkill {
                    skill_id: document.id.clone(),
                    made,
                    won: probing.won_by(&document.id),
                    rival: Some((*rival).clone()),
                    lost_to_rival: *lost_to_rival,
                });
            }
            map.collisions.extend(lost.into_iter().map(|(rival, lost)| Collision {
                skill_id: document.id.clone(),
                rival: rival.clone(),
                lost,
                made,
                share: lost as f64 / made as f64,
            }));
        }
        let by_share = |a: &Collision, b: &Collision| b.share.total_cmp(&a.share).then(b.lost.cmp(&a.lost));
        map.collisions.sort_by(|a, b| {
            by_share(a, b).then_with(|| (&a.skill_id, &a.rival).cmp(&(&b.skill_id, &b.rival)))
        });
        let kept_share = |skill: &ProbedSkill| skill.won as f64 / skill.made as f64;
        map.losers.sort_by(|a, b| {
            kept_share(a).total_cmp(&kept_share(b)).then_with(|| a.skill_id.cmp(&b.skill_id))
        });
        map
    }

    /// Iterates over the collisions that need a review.
    pub fn severe(&self) -> impl Iterator<Item = &Collision> {
        self.collisions.iter().filter(|collision| collision.is_severe())
    }

    /// Returns the losses of a skill to another one, or `None` if there are none.
    #[must_use]
    pub fn collision(&self, skill: &SkillId, rival: &SkillId) -> Option<&Collision> {
        self.collisions.iter().find(|collision| collision.skill_id == *skill && collision.rival == *rival)
    }
}

#[cfg(test)]
mod tests {
    use super::super::clusters::MAX_CLUSTER;
    use super::super::groups::GroupKind;
    use super::super::weights::Weights;
    use super::*;
    use skills_skill::Role;

    pub(crate) fn router() -> Router {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let skills = [
            (
                "stripe-billing",
                "Bills recurring subscriptions with Stripe. Customers, products and prices of Stripe.",
            ),
            (
                "stripe-checkout",
                "Builds Stripe checkout pages and payment links. Stripe products, prices and customers; one-time payments with Stripe.",
            ),
            ("pdf-tables", "Extracts tables from PDF files into spreadsheets."),
            ("release-notes", "Writes release notes from merged pull requests."),
            ("trip-planner", "Plans train journeys with hotels and museums."),
        ];
        router.update(skills.map(|(id, text)| Document::new(id, id, text)).into(), &[]);
        router
    }

    fn map() -> CollisionMap {
        router().collision_map(&AtomicUsize::new(0), &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn skills_that_claim_the_same_collide_in_one_cluster() {
        let map = map();
        assert_eq!(map.skills, 5);
        assert!(map.probes > map.lost && map.lost > 0, "{map:?}");
        let [cluster] = map.clusters.as_slice() else { panic!("{:?}", map.clusters) };
        assert_eq!(cluster.label, "stripe");
        assert_eq!(cluster.skills.len(), 2);
        assert!(map.collisions.iter().all(|found| found.share > 0.0 && found.lost <= found.made));
        assert!(map.losers.iter().all(|skill| skill.won < skill.made && skill.rival.is_some()));
        assert!(!cluster.skills.contains(&SkillId::new("pdf-tables")));
    }

    #[test]
    fn clusters_are_named_by_distinguishing_words() {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let skills = [
            ("using-stripe", "Use Stripe to bill customers with subscriptions and invoices."),
            ("new-stripe", "Use Stripe to bill customers with subscriptions and invoices of Stripe."),
            ("using-postgres", "Use Postgres to tune slow queries with indexes and plans."),
            ("new-postgres", "Use Postgres to tune slow queries with indexes and plans of Postgres."),
        ];
        router.update(skills.map(|(id, text)| Document::new(id, id, text)).into(), &[]);
        let map = router.collision_map(&AtomicUsize::new(0), &AtomicBool::new(false)).unwrap();
        let mut labels: Vec<&str> = map.clusters.iter().map(|cluster| cluster.label.as_str()).collect();
        labels.sort_unstable();
        assert_eq!(labels, ["postgres", "stripe"], "{:?}", map.clusters);
    }

    #[test]
    fn a_cluster_without_a_common_name_has_that_of_its_strongest_skill() {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let skills = [
            (
                "terraform",
                "Handles errors: validates forms with Zod schemas and shows errors of input fields.",
            ),
            ("page-cro", "Handles errors: validates forms with Zod schemas and shows errors of input."),
            ("brand", "Handles errors: validates forms with Zod schemas and errors of input fields."),
        ];
        router.update(skills.map(|(id, text)| Document::new(id, id, text)).into(), &[]);
        let map = router.collision_map(&AtomicUsize::new(0), &AtomicBool::new(false)).unwrap();
        let [cluster] = map.clusters.as_slice() else { panic!("{:?}", map.clusters) };
        assert_eq!(cluster.label, cluster.skills[0].as_str());
    }

    #[test]
    fn clusters_with_collisions_come_first() {
        let severe = |map: &CollisionMap, cluster: &Cluster| {
            let of = |found: &&Collision| {
                cluster.skills.contains(&found.skill_id) && cluster.skills.contains(&found.rival)
            };
            map.severe().filter(of).count()
        };
        let map = map();
        let counts: Vec<usize> = map.clusters.iter().map(|cluster| severe(&map, cluster)).collect();
        assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    }

    #[test]
    fn canceled_map_is_absent_and_complete_map_counts_all() {
        let done = AtomicUsize::new(0);
        assert_eq!(router().collision_map(&done, &AtomicBool::new(true)), None);
        router().collision_map(&done, &AtomicBool::new(false)).unwrap();
        assert_eq!(done.into_inner(), 5);
    }

    #[test]
    fn cluster_size_is_limited() {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let skills = (0..60).map(|n| {
            let text = format!(
                "Deploys services to Kubernetes clusters in region {n}. Rolls back failed deployments."
            );
            Document::new(format!("deploy-{n:02}"), format!("deploy-{n:02}"), text)
        });
        router.update(skills.collect(), &[]);
        let map = router.collision_map(&AtomicUsize::new(0), &AtomicBool::new(false)).unwrap();
        assert!(!map.clusters.is_empty());
        assert!(map.clusters.iter().all(|cluster| (2..=MAX_CLUSTER).contains(&cluster.skills.len())));
        let templates = map.groups.iter().filter(|group| group.kind == GroupKind::Template);
        assert_eq!(templates.count(), 1);
    }

    #[test]
    fn skills_that_no_request_finds_neither_lose_nor_win() {
        let with = |id: &str, role: Role, status: Status| Document {
            role,
            status,
            ..Document::new(id, id, "Bills recurring subscriptions with Stripe. Reads products of Stripe.")
        };
        let mut router = router();
        router.update(
            vec![
                with("cost-watch", Role::Sidecar, Status::Stable),
                with("old-billing", Role::Procedure, Status::Deprecated),
            ],
            &[],
        );
        let map = router.collision_map(&AtomicUsize::new(0), &AtomicBool::new(false)).unwrap();
        assert_eq!((map.skills, router.ranked_skills()), (5, 5));
        for id in ["cost-watch", "old-billing"] {
            let id = SkillId::new(id);
            assert!(map.losers.iter().all(|skill| skill.skill_id != id), "{:?}", map.losers);
            assert!(map.collisions.iter().all(|one| one.skill_id != id && one.rival != id));
            let report = router.rivals(&id, &[]).unwrap().unwrap();
            assert_eq!((report.made, report.lost.len()), (0, 0));
            assert!(report.not_ranked.is_some());
        }
        assert!(router.rivals(&SkillId::new("pdf-tables"), &[]).unwrap().unwrap().not_ranked.is_none());
    }

    #[test]
    fn large_collections_get_fewer_probes() {
        assert_eq!(probes_per_skill(20), MAX_PROBES);
        assert_eq!(probes_per_skill(14_639), 3);
    }

    #[test]
    fn similarity_is_semantic() {
        let router = router();
        let id = |text: &str| SkillId::new(text);
        let of = |a: &str, b: &str| router.similarity(&id(a), &id(b)).unwrap();
        assert!((of("pdf-tables", "pdf-tables") - 1.0).abs() < 1e-9);
        assert!(of("stripe-billing", "stripe-checkout") > of("stripe-billing", "trip-planner"));
        assert_eq!(router.nearest(&id("stripe-billing"), 1)[0].0, id("stripe-checkout"));
        assert_eq!(router.similarity(&id("stripe-billing"), &id("unknown")), None);
    }

    #[test]
    fn similar_skills_of_a_small_collection_are_similar() {
        let texts = [
            "Finds messages, reads threads and searches the archive. Use when the user asks to find a message.",
            "Finds messages, files and searches the archive. Use when the user asks to find a message or a file.",
            "Plans train journeys with hotels and museums.",
        ];
        for skills in [2, 3] {
            let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
            let documents =
                (0..skills).map(|n| Document::new(format!("skill-{n}"), format!("skill-{n}"), texts[n]));
            router.update(documents.collect(), &[]);
            let of = |a: usize, b: usize| {
                let id = |n: usize| SkillId::new(format!("skill-{n}"));
                router.similarity(&id(a), &id(b)).unwrap()
            };
            assert!(of(0, 1) > 0.7, "{skills} skills: {}", of(0, 1));
            assert!(skills == 2 || of(0, 2) < 0.5, "{skills} skills: {}", of(0, 2));
        }
    }
}
