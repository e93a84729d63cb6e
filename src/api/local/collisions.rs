//! The collision map of the current index: computed in the background on its own threads, and kept in memory and in the
//! cache until the index changes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::cache_file::{CacheFile, CacheRead};
use super::golden::Measurements;
use super::indexer::Shared;
use super::reports::separate_threads;
use crate::collisions::{CollisionFilter, CollisionReport, SkillRivals};
use crate::work::run_blocking;
use crate::{Code, Error, eval};
use skills_base::sync::{MutexExt as _, RwLockExt as _};
use skills_discovery::{Case, CollisionMap, Document, PairReport, RequestError, Router, SimilarGroup};
use skills_registry::Catalog;
use skills_skill::SkillId;

/// Polling interval for the completion of the index while a request waits.
const INDEX_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The map of one state of the index, with the key of that state.
#[derive(Debug, Serialize, Deserialize)]
struct StoredMap {
    key: String,
    map: CollisionMap,
}

/// A map that is being computed.
#[derive(Debug)]
struct Job {
    key: String,
    skills: usize,
    done: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct State {
    job: Option<Job>,
    map: Option<(String, Arc<CollisionMap>)>,
    groups: Option<(String, Arc<Vec<SimilarGroup>>)>,
    /// Why the last job failed.
    failure: Option<String>,
}

/// The maps of one core.
#[derive(Debug)]
pub struct Collisions {
    state: Arc<Mutex<State>>,
    cache: Option<CacheFile>,
    changed: watch::Sender<u64>,
}

/// The progress of a map.
enum Progress {
    Complete(Arc<CollisionMap>),
    Computing { done: usize, skills: usize },
    IndexIncomplete,
}

impl Collisions {
    /// Creates it without a map.
    pub fn new(cache: Option<CacheFile>) -> Self {
        Self { state: Arc::default(), cache, changed: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }

    /// Returns the map of the current index; starts computing it if it is not known.
    fn poll(&self, shared: &Shared) -> Result<Progress, Error> {
        let router = shared.router.read_locked();
        if router.unread() > 0 {
            return Ok(Progress::IndexIncomplete);
        }
        let key = router.content_key();
        let mut state = self.state();
        if let Some(why) = state.failure.take() {
            return Err(Error::new(Code::InternalError, format!("cannot compute the collision map: {why}")));
        }
        if let Some((known, map)) = &state.map
            && *known == key
        {
            return Ok(Progress::Complete(Arc::clone(map)));
        }
        if let Some(job) = state.job.as_ref().filter(|job| job.key == key) {
            return Ok(Progress::Computing { done: job.done.load(Ordering::Relaxed), skills: job.skills });
        }
        if let Some(map) = self.cached(&key) {
            state.map = Some((key, Arc::clone(&map)));
            return Ok(Progress::Complete(map));
        }
        let job = self.start(key, router.snapshot())?;
        let skills = job.skills;
        // The job of an older index stops when it is dropped.
        state.job = Some(job);
        Ok(Progress::Computing { done: 0, skills })
    }

    fn cached(&self, key: &str) -> Option<Arc<CollisionMap>> {
        let CacheRead::Content(content) = self.cache.as_ref()?.read() else { return None };
        let keyed: StoredMap = serde_json::from_slice(&content).ok()?;
        (keyed.key == key).then(|| Arc::new(keyed.map))
    }

    fn start(&self, key: String, router: Router) -> Result<Job, Error> {
        let pool = separate_threads("collisions")?;
        let job = Job {
            key: key.clone(),
            skills: router.ranked_skills(),
            done: Arc::default(),
            stop: Arc::default(),
        };
        let (done, stop) = (Arc::clone(&job.done), Arc::clone(&job.stop));
        let (state, cache, changed) = (Arc::clone(&self.state), self.cache.clone(), self.changed.clone());
        let compute = move || {
            let computing =
                std::panic::AssertUnwindSafe(|| pool.install(|| router.collision_map(&done, &stop)));
            let computed = std::panic::catch_unwind(computing);
            let mut state = state.locked();
            match computed {
                Ok(Some(map)) => {
                    let map = Arc::new(map);
                    state.map = Some((key.clone(), Arc::clone(&map)));
                    state.job = None;
                    drop(state);
                    if let Some(cache) = cache {
                        let keyed = serde_json::json!({ "key": key, "map": &*map });
                        if let Err(error) = cache.write(keyed.to_string().as_bytes()) {
                            tracing::warn!(%error, "cannot cache the collision map");
                        }
                    }
                }
                // It was superseded by another index.
                Ok(None) => {}
                Err(_) => {
                    state.failure = Some("internal error".to_owned());
                    state.job = None;
                }
            }
            changed.send_modify(|version| *version += 1);
        };
        let spawned = std::thread::Builder::new().name("collision map".to_owned()).spawn(compute);
        spawned.map(|_| job).map_err(|error| {
            Error::new(Code::InternalError, format!("cannot start the collision map thread: {error}"))
        })
    }

    /// Returns groups of skills with the same or nearly the same text.
    fn groups(&self, router: &Router) -> Arc<Vec<SimilarGroup>> {
        let key = router.content_key();
        if let Some((known, groups)) = &self.state().groups
            && *known == key
        {
            return Arc::clone(groups);
        }
        let groups = Arc::new(router.similar_groups());
        self.state().groups = Some((key, Arc::clone(&groups)));
        groups
    }
}

impl Drop for Collisions {
    fn drop(&mut self) {
        self.state().job = None;
    }
}

impl Measurements {
    /// Returns the part of the collision map that a filter selects, or its progress after the time to wait.
    pub(super) async fn collided(&self, filter: CollisionFilter) -> Result<CollisionReport, Error> {
        let deadline = Instant::now() + Duration::from_millis(filter.wait_ms()?);
        let skill = filter.skill.as_deref().map(|requested| self.skills.resolve(requested)).transpose()?;
        let mut changed = self.maps.changed.subscribe();
        loop {
            let (collisions, shared) = (Arc::clone(&self.maps), Arc::clone(&self.ranking.shared));
            let progress = run_blocking(move || collisions.poll(&shared)).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            let (done, skills) = match progress {
                Progress::Complete(map) => {
                    return Ok(filter.report(&map, skill.as_ref().map(|skill| &skill.id)));
                }
                Progress::Computing { done, skills } => {
                    if !left.is_zero() {
                        drop(tokio::time::timeout(left, changed.changed()).await);
                    }
                    (done, skills)
                }
                Progress::IndexIncomplete => {
                    tokio::time::sleep(left.min(INDEX_POLL_INTERVAL)).await;
                    (0, self.skills.registry.snapshot().entries.len())
                }
            };
            if Instant::now() >= deadline {
                return Ok(CollisionReport { done, skills, ..CollisionReport::default() });
            }
        }
    }

    pub(super) async fn rivals_of(&self, requested: &str) -> Result<SkillRivals, Error> {
        let skill = self.skills.resolve(requested)?;
        let (catalog, own) = (self.skills.registry.snapshot(), self.skills.config.golden_file());
        let collisions = Arc::clone(&self.maps);
        self.ranking
            .measure(move |router| {
                let cases = golden_cases(&catalog, own.as_deref())?;
                let groups = collisions.groups(&router);
                let report = router
                    .rivals(&skill.id, &cases)
                    .map_err(invalid)?
                    .ok_or_else(|| not_ranked(&skill.id))?;
                let groups =
                    groups.iter().filter(|group| group.skills.contains(&skill.id)).cloned().collect();
                Ok(SkillRivals { report, groups })
            })
            .await
    }

    pub(super) async fn compared(&self, first: &str, second: &str) -> Result<PairReport, Error> {
        let (a, b) = (self.skills.resolve(first)?, self.skills.resolve(second)?);
        if a.id == b.id {
            return Err(Error::new(
                Code::InvalidRequest,
                "the two skills are the same; select two different skills",
            ));
        }
        let (catalog, own) = (self.skills.registry.snapshot(), self.skills.config.golden_file());
        let levels = Arc::clone(&self.levels);
        self.ranking
            .measure(move |router| {
                for id in [&a.id, &b.id] {
                    if let Some(why) = router.not_ranked(id) {
                        let text =
                            format!("{id} is not ranked: {why}; compare two skills that requests can find");
                        return Err(Error::new(Code::InvalidRequest, text));
                    }
                }
                let cases = golden_cases(&catalog, own.as_deref())?;
                let complete = |id: &SkillId| {
                    let skill = [&a, &b].into_iter().find(|skill| skill.id == *id)?;
                    Some(Document::from_skill(skill, skills_skill::read_index_text(skill).ok()))
                };
                let tokens = |text: &str| levels.text(text).tokens;
                let report = router.pair((&a.id, &b.id), &cases, &tokens, &complete).map_err(invalid)?;
                report.ok_or_else(|| not_ranked(&a.id))
            })
            .await
    }
}

/// Returns the golden queries of the roots and of the user; empty if there is no golden set.
fn golden_cases(catalog: &Catalog, own: Option<&Path>) -> Result<Vec<Case>, Error> {
    match eval::golden_of(catalog, own) {
        Ok(golden) => Ok(golden.cases().to_vec()),
        Err(error) if error.code == Code::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn invalid(error: RequestError) -> Error {
    Error::new(Code::InvalidRequest, error.to_string())
}

fn not_ranked(id: &SkillId) -> Error {
    Error::new(Code::NotFound, format!("{id} is not in the index yet"))
}
