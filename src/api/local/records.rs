//! The records of the current skills, with what trust and policy say about them.

use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::levels::Levels;
use super::skills::Skills;
use super::trust::Facts;
use crate::known_contracts::KnownContracts;
use crate::policies::PolicyFile;
use crate::work::run_blocking;
use crate::{
    Error, FileContent, LevelTokens, LintFilter, LintReport, ListFilter, SkillDetail, SkillList, detail,
    lint, listing,
};
use skills_registry::Trust;
use skills_skill::{Skill, SkillId};

pub(super) struct SkillRecords {
    pub skills: Skills,
    pub levels: Arc<Levels>,
    pub trust: Trust,
    pub contracts: Arc<KnownContracts>,
    pub policy: Arc<PolicyFile>,
}

impl SkillRecords {
    pub(super) async fn list(&self, filter: ListFilter) -> Result<SkillList, Error> {
        let catalog = self.skills.registry.snapshot();
        let facts = self.facts();
        run_blocking(move || {
            let mut list = listing::list(&catalog, &filter)?;
            list.skills.par_iter_mut().for_each(|summary| facts.add(&catalog, summary));
            Ok(list)
        })
        .await
    }

    pub(super) async fn describe(&self, skill: &str) -> Result<SkillDetail, Error> {
        match self.skills.resolve(skill) {
            Ok(skill) => {
                let catalog = self.skills.registry.snapshot();
                let facts = self.facts();
                run_blocking(move || {
                    let mut detail = detail::describe(&catalog, &skill)?;
                    facts.add(&catalog, &mut detail.summary);
                    Ok(detail)
                })
                .await
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn read_file(&self, skill: &str, path: &str) -> Result<FileContent, Error> {
        match self.skills.resolve(skill) {
            Ok(skill) => {
                let path = path.to_owned();
                run_blocking(move || detail::read_file(&skill, &path)).await
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn levels(&self, skills: Vec<SkillId>) -> Result<Vec<LevelTokens>, Error> {
        let catalog = self.skills.registry.snapshot();
        let found: Vec<Arc<Skill>> =
            skills.iter().filter_map(|id| catalog.by_id(id.as_str()).map(Arc::clone)).collect();
        let levels = Arc::clone(&self.levels);
        run_blocking(move || {
            let counted = found.iter().map(|skill| levels.of(skill)).collect();
            levels.save(Instant::now());
            Ok(counted)
        })
        .await
    }

    pub(super) async fn lint(&self, filter: LintFilter) -> Result<LintReport, Error> {
        match filter.skill.as_deref().map(|requested| self.skills.resolve(requested)).transpose() {
            Ok(skill) => {
                let catalog = self.skills.registry.snapshot();
                run_blocking(move || lint::catalog(&catalog).page(&filter, skill.as_deref())).await
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the facts about skills beyond their records.
    fn facts(&self) -> Facts {
        // With an invalid policy nothing runs, and attempts report the error; lists still work.
        Facts {
            trust: self.trust.trust_snapshot(),
            contracts: Arc::clone(&self.contracts),
            policy: self.policy.current().unwrap_or_default(),
        }
    }
}
