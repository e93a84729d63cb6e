//! Rivals and collisions: arguments and results of the operations, and the baseline of known collisions.

use std::collections::BTreeSet;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Code, Error};
use skills_discovery::{Collision, CollisionMap, RivalReport, SimilarGroup};
use skills_skill::SkillId;

/// Default time to wait for the map.
const DEFAULT_WAIT_MS: u64 = 5_000;
/// Maximum time to wait for the map.
pub(crate) const MAX_WAIT_MS: u64 = 10_000;

/// What the operation returns of the map.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CollisionFilter {
    /// Only the cluster, collisions and groups of this skill: id, unambiguous name or location.
    #[schemars(length(min = 1))]
    pub skill: Option<String>,
    /// Only collisions of at least two probe requests and 20 %.
    pub severe: bool,
    /// Collisions, losers and groups, at most 1,000 of each; default: all.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<usize>,
    /// Milliseconds to wait for the map, at most 10,000; default 5,000.
    #[schemars(range(max = 10_000))]
    pub wait_ms: Option<u64>,
}

impl CollisionFilter {
    /// Returns the time to wait, in milliseconds.
    ///
    /// # Errors
    /// Returns `invalid_request` for a limit or a time out of range.
    pub(crate) fn wait_ms(&self) -> Result<u64, Error> {
        if let Some(limit) = self.limit.filter(|limit| !(1..=super::LARGEST_PAGE).contains(limit)) {
            let message = format!("`limit`: {limit} is out of range; allowed: 1 to {}", super::LARGEST_PAGE);
            return Err(Error::new(Code::InvalidRequest, message));
        }
        let wait = self.wait_ms.unwrap_or(DEFAULT_WAIT_MS);
        if wait > MAX_WAIT_MS {
            let message = format!("`wait_ms`: {wait} is out of range; allowed: 0 to {MAX_WAIT_MS}");
            return Err(Error::new(Code::InvalidRequest, message));
        }
        Ok(wait)
    }

    /// Returns the part of a map that the filter selects. `skill` is the one that the filter names.
    pub(crate) fn report(&self, map: &CollisionMap, skill: Option<&SkillId>) -> CollisionReport {
        let mut part = map.clone();
        let severe = map.severe().count();
        if let Some(skill) = skill {
            part.clusters.retain(|cluster| cluster.skills.contains(skill));
            part.collisions.retain(|found| found.skill_id == *skill || found.rival == *skill);
            part.losers.retain(|loser| loser.skill_id == *skill);
            part.groups.retain(|group| group.skills.contains(skill));
        }
        if self.severe {
            part.collisions.retain(Collision::is_severe);
        }
        let limit = self.limit.unwrap_or(usize::MAX);
        let total = part.collisions.len();
        part.collisions.truncate(limit);
        part.losers.truncate(limit);
        part.groups.truncate(limit);
        CollisionReport { complete: true, done: map.skills, skills: map.skills, severe, total, map: part }
    }
}

/// The map of a collection, or the progress of its computation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CollisionReport {
    /// Whether the map is complete. It is computed in the background: if it is not complete, ask again later.
    pub complete: bool,
    /// Skills that were probed.
    pub done: usize,
    /// Skills of the collection.
    pub skills: usize,
    /// Collisions of at least two probe requests and 20 %, of the complete map.
    pub severe: usize,
    /// Collisions that the filter keeps, before the limit.
    pub total: usize,
    /// The map; empty until it is complete.
    pub map: CollisionMap,
}

/// A skill among its rivals, and skills with the same or nearly the same text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillRivals {
    /// The rivals.
    #[serde(flatten)]
    pub report: RivalReport,
    /// Groups that contain the skill.
    pub groups: Vec<SimilarGroup>,
}

/// Version of the baseline format.
const VERSION: u32 = 1;

/// Known collisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollisionBaseline {
    version: u32,
    collisions: BTreeSet<KnownCollision>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct KnownCollision {
    skill: SkillId,
    rival: SkillId,
}

impl CollisionBaseline {
    /// Collects the severe collisions of a map.
    pub fn of(map: &CollisionMap) -> Self {
        let known =
            |found: &Collision| KnownCollision { skill: found.skill_id.clone(), rival: found.rival.clone() };
        Self { version: VERSION, collisions: map.severe().map(known).collect() }
    }

    /// Reads a baseline file.
    ///
    /// # Errors
    /// Returns `not_found`, or `invalid_configuration` for another format or version.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let baseline: Self = super::lint::read_baseline(path)?;
        super::lint::check_version(path, baseline.version, VERSION)?;
        Ok(baseline)
    }

    /// Returns the severe collisions of a map that are not in the baseline.
    pub fn new_collisions<'a>(&'a self, map: &'a CollisionMap) -> impl Iterator<Item = &'a Collision> {
        map.severe().filter(|found| {
            let known = KnownCollision { skill: found.skill_id.clone(), rival: found.rival.clone() };
            !self.collisions.contains(&known)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_discovery::{Cluster, GroupKind};

    fn collision(skill: &str, rival: &str, lost: usize, made: usize) -> Collision {
        let share = lost as f64 / made as f64;
        Collision { skill_id: SkillId::new(skill), rival: SkillId::new(rival), lost, made, share }
    }

    fn map() -> CollisionMap {
        CollisionMap {
            skills: 4,
            collisions: vec![
                collision("a", "b", 5, 10),
                collision("b", "a", 1, 2),
                collision("c", "d", 1, 10),
            ],
            clusters: vec![Cluster { label: "x".into(), skills: vec![SkillId::new("a"), SkillId::new("b")] }],
            groups: vec![SimilarGroup {
                kind: GroupKind::Identical,
                skills: vec![SkillId::new("c"), SkillId::new("d")],
                text: "t".into(),
            }],
            ..CollisionMap::default()
        }
    }

    #[test]
    fn filter_keeps_the_collisions_of_a_skill() {
        let skill = SkillId::new("c");
        let report = CollisionFilter::default().report(&map(), Some(&skill));
        assert_eq!(
            (report.map.collisions.len(), report.map.clusters.len(), report.map.groups.len()),
            (1, 0, 1)
        );
        assert_eq!((report.severe, report.skills, report.complete), (1, 4, true));
        let filter = CollisionFilter { severe: true, limit: Some(1), ..CollisionFilter::default() };
        assert_eq!(filter.report(&map(), None).map.collisions, [collision("a", "b", 5, 10)]);
    }

    #[test]
    fn limits_and_times_out_of_range_are_refused() {
        let code = |filter: CollisionFilter| filter.wait_ms().map_err(|error| error.code);
        assert_eq!(code(CollisionFilter { limit: Some(0), ..Default::default() }), Err(Code::InvalidRequest));
        assert_eq!(
            code(CollisionFilter { wait_ms: Some(10_001), ..Default::default() }),
            Err(Code::InvalidRequest)
        );
        assert_eq!(code(CollisionFilter::default()), Ok(DEFAULT_WAIT_MS));
    }

    #[test]
    fn only_collisions_outside_the_baseline_are_new() {
        let baseline = CollisionBaseline::of(&map());
        let mut later = map();
        later.collisions.push(collision("c", "a", 4, 10));
        let new: Vec<&Collision> = baseline.new_collisions(&later).collect();
        assert_eq!(new, [&collision("c", "a", 4, 10)]);
    }
}
