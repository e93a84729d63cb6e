//! Golden sets, read from the roots and measured over a snapshot of the index. The last results are cached, because an
//! editor requests them at each key.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use super::collisions::Collisions;
use super::levels::Levels;
use super::ranking::Ranking;
use super::sessions::ClientLists;
use super::skills::Skills;
use crate::eval::{self, Golden};
use crate::golden::{self, invalid};
use crate::{Code, Error, GoldenExplainRequest, GoldenExplanation, GoldenReport, GoldenRequest};
use skills_base::sync::MutexExt as _;
use skills_discovery::{Case, Document, EvalOptions, Outcome, Request, Revision, Router, advise, outcomes};
use skills_registry::{Catalog, RootOrigin};
use skills_skill::SkillId;

/// A file with its modification time and length; `None` if it does not exist.
type Stamp = (PathBuf, Option<(SystemTime, u64)>);

#[derive(Default)]
struct GoldenReadings {
    read: Option<(Arc<Catalog>, Vec<Stamp>, Option<Arc<Golden>>)>,
    measured: Option<(Revision, Arc<[Case]>, Arc<[Outcome]>)>,
}

/// Cache of the last golden set read and the last outcomes measured.
#[derive(Default)]
pub struct GoldenCache(Mutex<GoldenReadings>);

impl GoldenCache {
    fn cached(&self) -> std::sync::MutexGuard<'_, GoldenReadings> {
        self.0.locked()
    }

    /// Returns the golden sets; `None` if there are none. Evaluation files of skills are read again only if the catalog
    /// changed, or with `is_fresh`.
    pub fn read(
        &self,
        catalog: &Arc<Catalog>,
        own: Option<&Path>,
        is_fresh: bool,
    ) -> Result<Option<Arc<Golden>>, Error> {
        let stamp = |file: PathBuf| {
            let found = std::fs::metadata(&file).ok();
            let stamp = found.and_then(|found| Some((found.modified().ok()?, found.len())));
            (file, stamp)
        };
        let stamps: Vec<Stamp> = eval::golden_files(catalog, own).into_iter().map(stamp).collect();
        if let Some((before, known, golden)) = &self.cached().read
            && !is_fresh
            && Arc::ptr_eq(before, catalog)
            && *known == stamps
        {
            return Ok(golden.clone());
        }
        let golden = match eval::golden_of(catalog, own) {
            Ok(golden) => Some(Arc::new(golden)),
            Err(error) if error.code == Code::NotFound => None,
            Err(error) => return Err(error),
        };
        self.cached().read = Some((Arc::clone(catalog), stamps, golden.clone()));
        Ok(golden)
    }

    /// Returns the outcomes of cases over the current skills.
    pub fn outcomes(&self, router: &Router, cases: &[Case]) -> Result<Arc<[Outcome]>, Error> {
        if let Some((revision, known, outcomes)) = &self.cached().measured
            && *revision == router.revision()
            && **known == *cases
        {
            return Ok(Arc::clone(outcomes));
        }
        let measured: Arc<[Outcome]> =
            outcomes(router, cases, EvalOptions::default()).map_err(invalid)?.into();
        self.cached().measured = Some((router.revision(), cases.into(), Arc::clone(&measured)));
        Ok(measured)
    }
}

/// Measurements over the index and the golden sets.
pub(super) struct Measurements {
    pub skills: Skills,
    pub levels: Arc<Levels>,
    pub golden: Arc<GoldenCache>,
    pub lists: Arc<ClientLists>,
    pub maps: Arc<Collisions>,
    pub ranking: Arc<Ranking>,
}

impl Measurements {
    /// Measures the golden sets.
    pub(super) async fn golden_report(&self, request: GoldenRequest) -> Result<GoldenReport, Error> {
        let extra = golden::cases_of(request.queries)?;
        let skill = match &request.skill_id {
            Some(id) => Some(self.skills.resolve(id.as_str())?.id.clone()),
            None => None,
        };
        let cache = Arc::clone(&self.golden);
        let (catalog, own) = (self.skills.registry.snapshot(), self.skills.config.golden_file());
        self.ranking
            .measure(move |router| {
                let started = Instant::now();
                let golden = with_extra(cache.read(&catalog, own.as_deref(), true)?, extra);
                let outcomes = cache.outcomes(&router, golden.cases())?;
                let is_editable = |file: &Path| {
                    let is_yaml = file.file_name().is_some_and(|name| name == "golden.yaml");
                    let shipped = catalog.roots.iter().filter(|root| root.origin == RootOrigin::Shipped);
                    is_yaml && !shipped.into_iter().any(|root| file.starts_with(&root.path))
                };
                let report = golden::report(&router, &golden, &outcomes, skill.as_ref(), is_editable)?;
                Ok(GoldenReport { took_us: started.elapsed().as_micros() as u64, ..report })
            })
            .await
    }

    /// Explains why a query is answered as it is.
    pub(super) async fn golden_explain(
        &self,
        request: GoldenExplainRequest,
    ) -> Result<GoldenExplanation, Error> {
        let case = request.query.clone().checked()?;
        let extra = golden::cases_of(request.queries)?;
        let query = request.query;
        let cache = Arc::clone(&self.golden);
        let (catalog, own) = (self.skills.registry.snapshot(), self.skills.config.golden_file());
        self.ranking
            .measure(move |router| {
                let ask = |skill: Option<SkillId>| {
                    let request =
                        Request { intent: case.query.clone(), skill, limit: 1, ..Request::default() };
                    router.discover(&request).map_err(invalid)
                };
                let answer = ask(None)?;
                let named = query.expect.iter().chain(&query.not);
                let mut expected: Option<skills_discovery::Hit> = None;
                for id in named {
                    let found = ask(Some(id.clone()))?.results.into_iter().next();
                    let better = |hit: &skills_discovery::Hit| {
                        expected.as_ref().is_none_or(|best| hit.score > best.score)
                    };
                    if let Some(hit) = found.filter(better) {
                        expected = Some(hit);
                    }
                }
                // The best expected skill, or the first one if none of them is a result.
                let advised = expected.as_ref().map(|hit| hit.skill_id.clone());
                let advised =
                    advised.or_else(|| query.expect.first().cloned()).filter(|_| query.not.is_none());
                let skill = advised.and_then(|id| catalog.by_id(id.as_str()).map(Arc::clone));
                let advice = match skill {
                    Some(skill) => {
                        let golden = with_extra(cache.read(&catalog, own.as_deref(), false)?, extra);
                        let current = cache.outcomes(&router, golden.cases())?;
                        let text = skills_skill::read_index_text(&skill).ok();
                        let document = Document { digest: None, ..Document::from_skill(&skill, text) };
                        advise(&router, &document, &case.query, golden.cases(), &current).map_err(invalid)?
                    }
                    None => None,
                };
                Ok(GoldenExplanation {
                    query,
                    words: answer.words,
                    verdict: answer.verdict,
                    confidence: answer.confidence,
                    first: answer.results.into_iter().next(),
                    expected,
                    advice,
                })
            })
            .await
    }
}

/// Adds queries of a caller to golden sets.
pub fn with_extra(golden: Option<Arc<Golden>>, extra: Vec<Case>) -> Arc<Golden> {
    let golden = golden.unwrap_or_default();
    if extra.is_empty() {
        return golden;
    }
    let mut more = (*golden).clone();
    more.extend(extra);
    Arc::new(more)
}
