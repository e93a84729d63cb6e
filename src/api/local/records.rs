//! The records of the current skills, with what trust and policy say about them.

use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::levels::Levels;
use super::reports::Reports;
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

/// Minimum number of skills per thread: pages of a list do not wait for the shared threads.
const MIN_SKILLS_PER_THREAD: usize = 1_000;

pub(super) struct SkillRecords {
    pub skills: Skills,
    pub levels: Arc<Levels>,
    pub trust: Trust,
    pub contracts: Arc<KnownContracts>,
    pub policy: Arc<PolicyFile>,
    pub reports: Arc<Reports>,
}

impl SkillRecords {
    pub(super) async fn list(&self, filter: ListFilter) -> Result<SkillList, Error> {
        let catalog = self.skills.registry.snapshot();
        let facts = self.facts();
        run_blocking(move || {
            let mut list = listing::list(&catalog, &filter)?;
            let skills = list.skills.par_iter_mut().with_min_len(MIN_SKILLS_PER_THREAD);
            skills.for_each(|summary| facts.add(&catalog, summary));
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
        let skill = filter.skill.as_deref().map(|requested| self.skills.resolve(requested)).transpose()?;
        // All filters select from the same report.
        let look = || {
            let catalog = self.skills.registry.snapshot();
            self.reports.compute(move || Ok(Arc::new(lint::catalog(&catalog))))
        };
        let report = self.reports.lint.share("", look).await?;
        run_blocking(move || Arc::unwrap_or_clone(report).page(&filter, skill.as_deref())).await
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
