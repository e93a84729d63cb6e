//! The next call of a session: composed, measured by level, compared with the last one, exported.

use std::collections::BTreeMap;
use std::sync::Arc;

use similar::{ChangeTag, TextDiff};

use super::{Local, tools};
use crate::gateway::{CallSize, ComposedView, DiffLine, Error, LevelSize, LevelsView, detail};
use crate::session::{
    Active, Api, Composed, Entry, Form, Ingredients, Instructions, Listed, PartKind, Payload, Session, Tool,
    Turn, Wire, compose, payload,
};
use crate::skill::{self, Digest};

/// Lines of an unchanged stretch that a difference keeps on either side of a change.
const CONTEXT: usize = 3;
/// What a model may answer with, in tokens, in an exported request.
const MOST_ANSWERED: u32 = 4_096;

impl Local {
    fn composed(
        &self,
        session: &Session,
        wire: Wire,
    ) -> Result<(Composed, Option<crate::session::Allowance>), Error> {
        let settings = &session.settings;
        let agent = settings.agent.as_deref().map(|id| self.agent(id)).transpose()?;
        let own: Vec<Active> = match &agent {
            Some(agent) => {
                agent.uses_skills.iter().map(|name| self.active(name)).collect::<Result<_, _>>()?
            }
            None => Vec::new(),
        };
        let seen = self.seen(settings, agent.as_ref(), &uses(&session.transcript))?;
        let what = Ingredients {
            listed: &seen.listed,
            active: &session.active,
            agent: agent.as_ref(),
            own: &own,
            form: settings.form,
            instructions: settings.instructions,
            wire,
        };
        Ok((compose(&what), seen.allowance))
    }

    pub(super) async fn composed_view(&self, session: &Session) -> Result<ComposedView, Error> {
        let (composed, allowance) = self.composed(session, Wire::Dotted)?;
        let diff = session.last_call.as_ref().map(|last| difference(&last.text, &composed.text));
        let levels = Arc::clone(&self.levels);
        let (text, transcript) = (composed.clone(), session.transcript.clone());
        let window = session.settings.window;
        let size = super::super::apart(move || {
            let count = |text: &str| levels.text(text);
            Ok(measured(&text, &transcript, window, &count))
        })
        .await?;
        Ok(ComposedView {
            digest: Digest::of(composed.text.as_bytes()).to_string(),
            size,
            diff,
            allowance,
            tools: Tool::specs(Wire::Dotted, session.settings.compat),
            composed,
        })
    }

    pub(super) async fn exported(&self, session: &Session, api: Api, model: &str) -> Result<Payload, Error> {
        let (composed, _) = self.composed(session, Wire::Underscored)?;
        let agent = session.settings.agent.as_deref().map(|id| self.agent(id)).transpose()?;
        let model = agent.and_then(|agent| agent.model).unwrap_or_else(|| model.to_owned());
        let offered = Tool::specs(Wire::Underscored, session.settings.compat);
        Ok(payload(api, &model, &composed.text, &session.transcript, &offered, MOST_ANSWERED))
    }

    pub(super) async fn levels_of(&self, wanted: &str) -> Result<LevelsView, Error> {
        let skill = self.resolve(wanted)?;
        let levels = Arc::clone(&self.levels);
        super::super::apart(move || {
            let source = detail::source(&skill)?;
            let body = skill::body(&source).to_owned();
            let entry = Listed {
                name: skill.id.to_string(),
                description: skill.description.clone(),
                location: Some(skill.location.clone()),
            };
            let shown = compose(&Ingredients {
                listed: std::slice::from_ref(&entry),
                active: &[],
                agent: None,
                own: &[],
                form: Form::Xml,
                instructions: Instructions::TopLevel,
                wire: Wire::Dotted,
            });
            let own = shown.parts.iter().find(|part| part.skill.is_some()).map(|part| shown.of(part));
            let size = |text: &str| LevelSize { bytes: text.len() as u64, tokens: levels.text(text) };
            let files = skill::bundle_files(&skill.root_dir)
                .unwrap_or_default()
                .into_iter()
                .map(|file| {
                    let size = LevelSize { bytes: file.bytes, tokens: levels.file(&skill, &file) };
                    (file.path, size)
                })
                .collect();
            Ok(LevelsView {
                skill_id: skill.id.clone(),
                l1: size(own.unwrap_or_default()),
                l2: size(&body),
                entry,
                body,
                files,
            })
        })
        .await
    }
}

/// How often each skill was loaded in this session, for clients that shorten what is used least.
fn uses(transcript: &[Entry]) -> BTreeMap<String, u64> {
    let mut uses = BTreeMap::new();
    for entry in transcript {
        if let Turn::Call { tool, arguments, result: Ok(_) } = &entry.turn
            && *tool == Tool::Load.to_string()
        {
            for name in arguments["names"].as_array().into_iter().flatten().filter_map(|name| name.as_str()) {
                *uses.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
    uses
}

fn measured(composed: &Composed, transcript: &[Entry], window: u32, count: &dyn Fn(&str) -> u32) -> CallSize {
    let mut size = CallSize { window, ..CallSize::default() };
    for part in &composed.parts {
        let text = composed.of(part);
        let level = match part.kind {
            PartKind::Available => &mut size.l1,
            PartKind::AgentSkill | PartKind::ActiveSkill => &mut size.l2,
            PartKind::Prompt | PartKind::Rules | PartKind::Inline => &mut size.base,
        };
        level.bytes += text.len() as u64;
        level.tokens += count(text);
    }
    for entry in transcript {
        match &entry.turn {
            Turn::Message { text, .. } => add(&mut size.history, text, count),
            Turn::Call { tool, arguments, result } => {
                add(&mut size.history, &arguments.to_string(), count);
                let level = if tools::hands_out_files(tool) { &mut size.l3 } else { &mut size.history };
                add(level, &Entry::result_text(result), count);
            }
        }
    }
    size
}

fn add(level: &mut LevelSize, text: &str, count: &dyn Fn(&str) -> u32) {
    level.bytes += text.len() as u64;
    level.tokens += count(text);
}

/// Line by line, with a few unchanged lines around each change; empty where nothing differs.
fn difference(before: &str, after: &str) -> Vec<DiffLine> {
    let diff = TextDiff::from_lines(before, after);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let text = change.value().trim_end_matches('\n').to_owned();
            lines.push(match change.tag() {
                ChangeTag::Equal => DiffLine::Same(text),
                ChangeTag::Insert => DiffLine::Added(text),
                ChangeTag::Delete => DiffLine::Removed(text),
            });
        }
    }
    lines
}
