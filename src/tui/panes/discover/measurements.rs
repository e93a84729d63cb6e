//! What is measured about the skills of an answer, requested once for each answer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::pane::{Effect, Message};
use skills_api::{LevelTokens, SkillDetail};
use skills_discovery::BodyLine;
use skills_skill::SkillId;

/// Data that is requested once for each answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ResultRequest {
    Levels(SkillId),
    Detail(SkillId),
    Body(SkillId, String),
}

/// The loaded data, and what was requested.
#[derive(Default)]
pub(super) struct Measurements {
    levels: HashMap<SkillId, LevelTokens>,
    details: HashMap<SkillId, Arc<SkillDetail>>,
    body_lines: HashMap<(SkillId, String), Vec<BodyLine>>,
    requested: HashSet<ResultRequest>,
    /// Requests for what the last frame lacked.
    pub wanted: Vec<Effect>,
}

impl Measurements {
    /// Stores what was loaded.
    pub fn take(&mut self, message: &Message) {
        match message {
            Message::Levels(levels) => {
                self.levels.extend(levels.iter().map(|l| (l.skill_id.clone(), l.clone())));
            }
            Message::Detail(id, Ok(detail)) => {
                self.details.insert(id.clone(), Arc::clone(detail));
            }
            Message::BodyLines(id, intent, lines) => {
                self.body_lines.retain(|(_, known), _| known == intent);
                self.body_lines.insert((id.clone(), intent.clone()), lines.clone());
            }
            _ => {}
        }
    }

    /// Discards everything: skills may have changed.
    pub fn clear(&mut self) {
        self.levels.clear();
        self.details.clear();
        self.body_lines.clear();
        self.requested.clear();
    }

    /// Returns the token counts of a skill.
    pub fn levels(&mut self, id: &SkillId) -> Option<&LevelTokens> {
        self.request(ResultRequest::Levels(id.clone()));
        self.levels.get(id)
    }

    pub fn detail(&mut self, id: &SkillId) -> Option<Arc<SkillDetail>> {
        self.request(ResultRequest::Detail(id.clone()));
        self.details.get(id).cloned()
    }

    /// Returns the lines of the body that contain words of a request.
    pub fn body_lines(&mut self, id: &SkillId, intent: &str) -> Option<&[BodyLine]> {
        let key = (id.clone(), intent.to_owned());
        self.request(ResultRequest::Body(key.0.clone(), key.1.clone()));
        self.body_lines.get(&key).map(Vec::as_slice)
    }

    /// Records data that a frame lacked, once.
    fn request(&mut self, request: ResultRequest) {
        if !self.requested.insert(request.clone()) {
            return;
        }
        match request {
            ResultRequest::Levels(id) => match self.wanted.iter_mut().find_map(|e| match e {
                Effect::Levels(ids) => Some(ids),
                _ => None,
            }) {
                Some(ids) => ids.push(id),
                None => self.wanted.push(Effect::Levels(vec![id])),
            },
            ResultRequest::Detail(id) => self.wanted.push(Effect::Describe(id)),
            ResultRequest::Body(id, intent) => self.wanted.push(Effect::BodyLines(id, intent)),
        }
    }
}
