//! Drafts of skills, ranked over a copy of the index.

use std::sync::PoisonError;

use super::{Local, apart};
use crate::{Code, DraftPlace, DraftReport, DraftRequest, Error, detail, eval, lint};
use skills_authoring::write_back::with_description;
use skills_discovery::{self as discovery, Document, Fit, Request, RequestError, Router};
use skills_skill::{Finding, Skill, SkillId};

impl Local {
    /// What a draft would change. Nothing is written.
    pub(super) async fn drafted(&self, request: DraftRequest) -> Result<DraftReport, Error> {
        let skill = self.resolve(&request.skill_id)?;
        let description = request.description.clone().unwrap_or_else(|| skill.description.clone());
        if description.trim().is_empty() {
            return Err(Error::new(Code::InvalidRequest, "the description of a draft has no text"));
        }
        let shown = self.shown_by_clients(&skill.id, &description)?;
        let (shared, levels) = (std::sync::Arc::clone(&self.shared), std::sync::Arc::clone(&self.levels));
        let catalogue = self.registry.snapshot();
        apart(move || {
            let text = skills_skill::read_index_text(&skill).ok();
            let present = Document::from_skill(&skill, text);
            let document = Document {
                description: description.clone(),
                name: request.name.clone().unwrap_or_else(|| present.name.clone()),
                tags: request.tags.clone().unwrap_or_else(|| present.tags.clone()),
                digest: None,
                ..present
            };
            let golden = match eval::golden_of(&catalogue) {
                Ok(golden) => Some(golden),
                Err(error) if error.code == Code::NotFound => None,
                Err(error) => return Err(error),
            };
            let invalid = |error: RequestError| Error::new(Code::InvalidRequest, error.to_string());
            let router = shared.router.read().unwrap_or_else(PoisonError::into_inner);
            let draft = router.with_document(document.clone());
            let place = |router: &Router| {
                request.intent.as_deref().map(|intent| place(router, &skill.id, intent)).transpose()
            };
            let (before, after) = (place(&router).map_err(invalid)?, place(&draft).map_err(invalid)?);
            let cases = golden.as_ref().map(eval::Golden::cases);
            let change = cases.map(|cases| discovery::compare(&router, &draft, cases)).transpose();
            // Drafts of the draft are made of copies: new skills need not wait for them.
            drop(router);
            let advice = cases.map(|cases| discovery::advice(&draft, &document, cases)).transpose();
            let clauses = cases
                .filter(|_| request.clauses)
                .map(|cases| discovery::clause_values(&draft, &document, cases))
                .transpose();
            Ok(DraftReport {
                skill_id: skill.id.clone(),
                tokens: levels.text(&description).tokens,
                findings: findings(&skill, &description),
                description,
                before,
                after,
                golden: change.map_err(invalid)?,
                advice: advice.map_err(invalid)?.unwrap_or_default(),
                clauses: clauses.map_err(invalid)?.unwrap_or_default(),
                shown,
            })
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
        first: first.results.into_iter().next().map(|hit| hit.skill_id),
    })
}

/// What lint says about the file with another description.
fn findings(skill: &Skill, description: &str) -> Vec<Finding> {
    let draft = detail::source(skill).ok().and_then(|source| {
        let source = with_description(&skill.location, &source, description).ok()?;
        Some((skills_skill::parse(&skill.location, source.as_bytes(), 0).ok()?, source))
    });
    let Some((draft, source)) = draft else { return Vec::new() };
    lint::checked(&draft, &source, None).0
}
