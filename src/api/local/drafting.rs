//! Drafts of skills, ranked over a copy of the index.

use std::sync::Arc;

use super::Local;
use super::golden::with_extra;
use crate::golden::invalid;
use crate::rewrite_prompt;
use crate::{Code, DraftMeasure, DraftPlace, DraftReport, DraftRequest, Error, detail, golden, lint};
use skills_authoring::write_back::with_description;
use skills_discovery::{self as discovery, Document, EvalOptions, Fit, Request, RequestError, Router};
use skills_skill::{Finding, Skill, SkillId};

/// Maximum number of clauses whose contribution is measured; each takes a ranking of all golden queries.
const MAX_CLAUSES: usize = 64;

impl Local {
    /// Measures what a draft would change. Nothing is written.
    pub(super) async fn drafted(&self, request: DraftRequest) -> Result<DraftReport, Error> {
        let skill = self.resolve(&request.skill_id)?;
        let description = request.description.clone().unwrap_or_else(|| skill.description.clone());
        if description.trim().is_empty() {
            return Err(Error::new(Code::InvalidRequest, "the description of a draft has no text"));
        }
        let extra = golden::cases_of(request.queries.clone())?;
        let shown = match request.measure {
            DraftMeasure::Request => Vec::new(),
            DraftMeasure::Golden | DraftMeasure::All => self.shown_by_clients(&skill.id, &description)?,
        };
        if request.clauses {
            let count = discovery::clauses(&description).len();
            if count > MAX_CLAUSES {
                let message =
                    format!("the description has {count} clauses; the maximum to measure is {MAX_CLAUSES}");
                return Err(Error::new(Code::InvalidRequest, message));
            }
        }
        let levels = Arc::clone(&self.levels);
        let (catalogue, own, cache) =
            (self.registry.snapshot(), self.config.golden_file(), Arc::clone(&self.golden));
        self.measure(move |router| {
            let text = skills_skill::read_index_text(&skill).ok();
            let present = Document::from_skill(&skill, text);
            let document = Document {
                description: description.clone(),
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
                findings: findings(&skill, &description),
                description,
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
            let known = cache.read(&catalogue, own.as_deref(), false)?;
            if known.is_none() && extra.is_empty() {
                return Ok(report);
            }
            let golden = with_extra(known, extra);
            let cases = golden.cases();
            let before = cache.outcomes(&router, cases)?;
            let after = discovery::outcomes(&draft, cases, EvalOptions::default()).map_err(invalid)?;
            report.golden = Some(discovery::compare(cases, &before, &after));
            if request.measure == DraftMeasure::All {
                report.advice = discovery::advice(&draft, &document, cases, &after).map_err(invalid)?;
            }
            if request.prompt {
                let shown = std::mem::take(&mut report.shown);
                report.prompt = Some(rewrite_prompt::prompt(&draft, &document, cases, &after, &shown));
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

/// Returns the lint findings of the file with another description.
fn findings(skill: &Skill, description: &str) -> Vec<Finding> {
    let draft = detail::source(skill).ok().and_then(|source| {
        let source = with_description(&skill.location, &source, description).ok()?;
        Some((skills_skill::parse(&skill.location, source.as_bytes(), 0).ok()?, source))
    });
    let Some((draft, source)) = draft else { return Vec::new() };
    lint::checked(&draft, &source, None).0
}
