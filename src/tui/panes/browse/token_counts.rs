//! The token counts of skills at each disclosure level, requested once for each skill.

use std::collections::{HashMap, HashSet};

use crate::pane::Effect;
use skills_api::LevelTokens;
use skills_skill::SkillId;

/// Maximum number of skills in one request for token counts.
const LEVELS_AT_ONCE: usize = 256;

/// The loaded counts, and the skills for which they were requested.
#[derive(Debug, Default)]
pub(super) struct TokenCounts {
    levels: HashMap<SkillId, LevelTokens>,
    requested: HashSet<SkillId>,
}

impl TokenCounts {
    pub fn of(&self, id: &SkillId) -> Option<&LevelTokens> {
        self.levels.get(id)
    }

    pub fn extend(&mut self, levels: &[LevelTokens]) {
        self.levels.extend(levels.iter().map(|l| (l.skill_id.clone(), l.clone())));
    }

    pub fn forget(&mut self, id: &SkillId) {
        self.levels.remove(id);
        self.requested.remove(id);
    }

    /// Requests in batches the counts of those skills for which they were not requested yet.
    pub fn request<'a>(&mut self, ids: impl Iterator<Item = &'a SkillId>) -> Vec<Effect> {
        let unknown: Vec<SkillId> = ids.filter(|id| !self.requested.contains(*id)).cloned().collect();
        self.requested.extend(unknown.iter().cloned());
        unknown.chunks(LEVELS_AT_ONCE).map(|ids| Effect::Levels(ids.to_vec())).collect()
    }
}
