//! Drafts of skills, ranked over a copy of the index.

use std::sync::Arc;

use super::golden::{Measurements, with_extra};
use crate::golden::invalid;
use crate::rewrite_prompt;
use crate::{Code, DraftMeasure, DraftPlace, DraftReport, DraftRequest, Error, detail, golden, lint};
use skills_authoring::write_back::with_texts;
use skills_discovery::{self as discovery, Document, EvalOptions, Fit, Request, RequestError, Router};
use skills_skill::{Finding, Skill, SkillId};

/// Maximum number of clauses whose contribution is measured; each takes a ranking of all golden queries.
const MAX_CLAUSES: usize = 64;

impl Measurements {
    /// Measures what a draft would change. Nothing is written.
    pub(super) async fn draft(&self, request: DraftRequest) -> Result<DraftReport, Error> {
        let skill = self.skills.resolve(&request.skill_id)?;
        let description = request.description.clone().unwrap_or_else(|| skill.description.clone());
        if description.trim().is_empty() {
            return Err(Error::new(Code::InvalidRequest, "the description is empty"));
        }
        let when_to_use = request.when_to_use.clone().or_else(|| skill.clients.when_to_use.clone());
        let when_to_use = when_to_use.filter(|text| !text.trim().is_empty());
        let extra = golden::cases_of(request.queries.clone())?;
        let source = draft_source(&skill, &description, request.when_to_use.as_deref());
        let shown = match (request.measure, &source) {
            (DraftMeasure::Golden | DraftMeasure::All, Some(source)) => {
                self.lists.shown_by_clients(&skill, source, &description, when_to_use.as_deref())?
            }
            _ => Vec::new(),
        };
        if request.clauses {
            let count = [Some(&description), when_to_use.as_ref()];
            let count: usize = count.into_iter().flatten().map(|text| discovery::clauses(text).len()).sum();
            if count > MAX_CLAUSES {
                let message =
                    format!("the draft has {count} clauses; the maximum to measure is {MAX_CLAUSES}");
                return Err(Error::new(Code::InvalidRequest, message));
            }
        }
        let levels = Arc::clone(&self.levels);
        let (catalog, own, cache) =
            (self.skills.registry.snapshot(), self.skills.config.golden_file(), Arc::clone(&self.golden));
        self.ranking
            .measure(move |router| {
                let text = skills_skill::read_index_text(&skill).ok();
                let present = Document::from_skill(&skill, text);
                let document = Document {
                    description: description.clone(),
                    when_to_use: when_to_use.clone(),
                    name: request.name.clone().unwrap_or_else(|| present.name.clone()),
                    tags: request.tags.clone().unwrap_or_else(|| present.tags.clone()),
                    digest: None,
                    ..present
                };
                let draft = router.with_document(document.clone());
                let place = |router: &Router| {
                    request.intent.as_deref().map(|intent| place(router, &skill.id, intent)).transpose()
                };
                let mut report = DraftReport {
                    skill_id: skill.id.clone(),
                    tokens: levels.text(&description).tokens,
                    findings: source.map(|source| findings(&skill, &source)).unwrap_or_default(),
                    description,
                    when_to_use,
                    before: place(&router).map_err(invalid)?,
                    after: place(&draft).map_err(invalid)?,
                    golden: None,
                    advice: Vec::new(),
                    clauses: Vec::new(),
                    attractions: Vec::new(),
                    prompt: None,
                    shown,
                };
                if request.measure == DraftMeasure::Request {
                    return Ok(report);
                }
                let own_queries = cache.read(&catalog, own.as_deref(), false)?;
                if own_queries.is_none() && extra.is_empty() {
                    return Ok(report);
                }
                let golden = with_extra(own_queries, extra);
                let cases = golden.cases();
                let before = cache.outcomes(&router, cases)?;
                let after = discovery::outcomes(&draft, cases, EvalOptions::default()).map_err(invalid)?;
                report.golden = Some(discovery::compare(cases, &before, &after));
                if request.measure == DraftMeasure::All {
                    let intent = request.intent.as_deref().map(str::trim);
                    report.advice =
                        discovery::advice(&draft, &document, cases, &after, intent).map_err(invalid)?;
                }
                if request.prompt {
                    let shown = std::mem::take(&mut report.shown);
                    let present = &skill.description;
                    report.prompt =
                        Some(rewrite_prompt::prompt(&draft, &document, present, cases, &after, &shown));
                    report.shown = shown;
                }
                if request.clauses {
                    report.clauses =
                        discovery::clause_values(&draft, &document, cases, &after).map_err(invalid)?;
                    report.attractions =
                        discovery::attractions(&draft, &skill.id, cases, &after).map_err(invalid)?;
                }
                Ok(report)
            })
            .await
    }
}

fn place(router: &Router, skill: &SkillId, intent: &str) -> Result<DraftPlace, RequestError> {
    let request =
        |skill: Option<SkillId>| Request { intent: intent.to_owned(), skill, limit: 1, ..Request::default() };
    let own = router.discover(&request(Some(skill.clone())))?;
    let first = router.discover(&request(None))?;
    let hit = own.results.first();
    let is_first = first.results.first().is_some_and(|first| first.skill_id == *skill);
    Ok(DraftPlace {
        fits: is_first && first.fit != Fit::None,
        rank: hit.map(|hit| hit.rank.unwrap_or(1)),
        score: hit.map(|hit| hit.score),
        signals: hit.map(|hit| hit.breakdown.signals),
        first: first.results.into_iter().next().map(|hit| hit.skill_id),
    })
}

/// Returns the file with the draft; `None` if it cannot be written there.
fn draft_source(skill: &Skill, description: &str, when_to_use: Option<&str>) -> Option<String> {
    let source = detail::source(skill).ok()?;
    with_texts(&skill.location, &source, Some(description.trim()), when_to_use.map(str::trim)).ok()
}

/// Returns the lint findings of the file with a draft.
fn findings(skill: &Skill, source: &str) -> Vec<Finding> {
    let draft = skills_skill::parse(&skill.location, source.as_bytes(), 0);
    draft.map(|draft| lint::checked(&draft, source, None).0).unwrap_or_default()
}
