//! The next call of a session: composed, measured by level, compared with the last one, exported.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::agents::AgentFolders;
use super::catalog_cache::Ready;
use super::session_store::LastCall;
use super::{ClientLists, tools};
use crate::local::levels::{self, Levels};
use crate::local::skills::Skills;
use crate::{
    CallSize, ComposedView, Error, GivenBody, HiddenSkills, LevelSize, LevelsView, SinceLast, detail,
};
use skills_base::files::Folder;
use skills_session::{
    Active, Api, ComposeInput, Composed, Entry, PartKind, Payload, Session, Tool, ToolNameFormat, Turn,
    body_text, compose, entry_text, payload,
};
use skills_skill::Digest;
use skills_skill::tokens::TokenCount;

/// Maximum number of output tokens in an exported request.
const MAX_OUTPUT_TOKENS: u32 = 4_096;
/// Maximum number of skills named for each reason why they are not listed.
const MAX_NAMED_SKILLS: usize = 3;

/// The calls of sessions.
pub(super) struct Composer {
    pub skills: Skills,
    pub levels: Arc<Levels>,
    pub agents: AgentFolders,
    pub lists: Arc<ClientLists>,
}

impl Composer {
    fn composed(&self, session: &Session, wire: ToolNameFormat) -> Result<(Composed, Arc<Ready>), Error> {
        let settings = &session.settings;
        let agent = self.agents.of_session(settings)?;
        let own: Vec<Active> = match &agent {
            Some(agent) => agent
                .uses_skills
                .iter()
                .map(|name| tools::active(&self.skills, &self.levels, name))
                .collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        let seen = self.lists.seen(settings, agent.as_ref(), uses(&session.transcript), wire)?;
        let what = ComposeInput {
            available: &seen.text,
            active: &session.active,
            agent: agent.as_ref(),
            own: &own,
            instructions: settings.instructions,
            in_answers: &session.in_answers(),
            wire,
        };
        Ok((compose(&what), seen))
    }

    /// Returns the next call, compared with `last` if one was made.
    pub(super) async fn composed_view(
        &self,
        session: &Session,
        last: Option<LastCall>,
    ) -> Result<ComposedView, Error> {
        let (composed, seen) = self.composed(session, ToolNameFormat::Dotted)?;
        let levels = Arc::clone(&self.levels);
        let (transcript, settings) = (session.transcript.clone(), session.settings.clone());
        let loaded: Vec<String> = session.active.iter().map(|skill| skill.name.clone()).collect();
        // A receipt counts a body's tokens with its element: bodies that are in no part are counted separately.
        let answered = session.in_answers();
        let separate = session.active.iter().filter(|skill| answered.contains(&skill.name));
        let separate: Vec<String> = separate.map(|skill| body_text(&skill.name, &skill.body)).collect();
        crate::work::run_blocking(move || {
            let differs = last.as_ref().map(|last| last.difference(&composed));
            let (diff, reordered) = differs.map_or((None, Vec::new()), |d| (Some(d.lines), d.reordered));
            let since = last.as_ref().and_then(|last| {
                let since = last.since(&settings, entries(&composed), reordered)?;
                Some(SinceLast { redescribed: last.redescribed(&composed), ..since })
            });
            let sized = |text: &str| levels.size(text);
            // The prepared catalog is in the call with its parts in order.
            let mut listed = seen.tokens(&levels).iter();
            let part_counts: Vec<TokenCount> = composed
                .parts
                .iter()
                .map(|part| match part.kind {
                    PartKind::Available => listed.next().copied().unwrap_or_default(),
                    _ => levels.text(composed.of(part)),
                })
                .collect();
            for element in &separate {
                levels.text(element);
            }
            let (size, bodies) = measured(&composed, &part_counts, &transcript, settings.window, &sized);
            Ok(ComposedView {
                digest: Digest::of(composed.text.as_bytes()).to_string(),
                client: settings.client.clone(),
                instructions: settings.instructions,
                size,
                part_tokens: part_counts.iter().map(|count| count.tokens).collect(),
                parts_estimated: (0..part_counts.len()).filter(|at| part_counts[*at].estimated).collect(),
                delivered: bodies,
                diff,
                since,
                allowance: seen.bounded.then(|| seen.allowance.fill.clone()),
                not_listed: seen.not_listed.iter().map(|group| in_short(group, &loaded)).collect(),
                tools: Tool::specs(ToolNameFormat::Dotted, settings.compat),
                composed,
            })
        })
        .await
    }

    pub(super) async fn exported(&self, session: &Session, api: Api, model: &str) -> Result<Payload, Error> {
        let (composed, _) = self.composed(session, ToolNameFormat::Underscored)?;
        let agent = self.agents.of_session(&session.settings)?;
        let model = agent.and_then(|agent| agent.model).unwrap_or_else(|| model.to_owned());
        let offered = Tool::specs(ToolNameFormat::Underscored, session.settings.compat);
        Ok(payload(api, &model, &composed.text, &session.transcript, &offered, MAX_OUTPUT_TOKENS))
    }

    pub(super) async fn levels_of(&self, requested: &str) -> Result<LevelsView, Error> {
        let skill = self.skills.resolve(requested)?;
        let levels = Arc::clone(&self.levels);
        crate::work::run_blocking(move || {
            let source = detail::source(&skill)?;
            let body = skills_skill::body(&source).to_owned();
            let entry = levels::entry(&skill);
            let files = skill.open().and_then(|bundle| sizes(&levels, &bundle)).unwrap_or_default();
            Ok(LevelsView {
                skill_id: skill.id.clone(),
                l1: levels.size(&entry_text(&entry)),
                l2: levels.size(&body_text(skill.id.as_str(), &body)),
                entry: Some(entry),
                body,
                files,
                files_unknown: None,
            })
        })
        .await
    }
}

/// Returns the resource files of a bundle with their sizes.
pub(super) fn sizes(levels: &Levels, bundle: &Folder) -> std::io::Result<Vec<(String, LevelSize)>> {
    let files = skills_skill::bundle_files(bundle)?.into_iter();
    let sized = files.map(|file| {
        let size = LevelSize::new(file.bytes, levels.file(bundle, &file));
        (file.path, size)
    });
    Ok(sized.collect())
}

/// Returns the number of catalog entries in a call.
pub(super) fn entries(composed: &Composed) -> usize {
    composed.parts.iter().filter(|part| part.kind == PartKind::Available && part.skill.is_some()).count()
}

/// Shortens a list of names; loaded skills come first, because readers want to know why those are not listed.
fn in_short(all: &HiddenSkills, loaded: &[String]) -> HiddenSkills {
    let (mut names, others): (Vec<String>, Vec<String>) =
        all.names.iter().cloned().partition(|name| loaded.contains(name));
    let more = MAX_NAMED_SKILLS.saturating_sub(names.len());
    names.extend(others.into_iter().take(more));
    HiddenSkills { names, why: all.why.clone(), ..*all }
}

/// Counts how often each skill was loaded in this session, for clients that shorten the least used ones.
pub(super) fn uses(transcript: &[Arc<Entry>]) -> BTreeMap<String, u64> {
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

fn measured(
    composed: &Composed,
    part_counts: &[TokenCount],
    transcript: &[Arc<Entry>],
    window: u32,
    sized: &dyn Fn(&str) -> LevelSize,
) -> (CallSize, Vec<GivenBody>) {
    let mut bodies = Vec::new();
    let mut size = CallSize { window, ..CallSize::default() };
    for (part, count) in composed.parts.iter().zip(part_counts) {
        let level = match part.kind {
            PartKind::Available => &mut size.l1,
            PartKind::AgentSkill | PartKind::ActiveSkill => &mut size.l2,
            PartKind::Prompt | PartKind::Rules | PartKind::Inline => &mut size.base,
        };
        *level += LevelSize::new((part.end - part.start) as u64, *count);
    }
    for entry in transcript {
        match &entry.turn {
            Turn::Message { text, .. } => size.history += sized(text),
            Turn::Call { tool, arguments, result } => {
                size.history += sized(&arguments.to_string());
                // A failed call returned no file: its message counts as history.
                let files = tools::hands_out_files(tool) && result.is_ok();
                let level = if files { &mut size.l3 } else { &mut size.history };
                let answer = Entry::result_text(result);
                let mut rest = sized(&answer);
                for body in entry.bodies() {
                    let text = body.in_answer();
                    // At most the size of the complete result, so that the sum of the levels is that of the call.
                    let own = sized(&text);
                    let part = LevelSize {
                        bytes: own.bytes.min(rest.bytes),
                        tokens: own.tokens.min(rest.tokens),
                        estimated: own.estimated || rest.estimated,
                    };
                    rest.bytes -= part.bytes;
                    rest.tokens -= part.tokens;
                    size.l2 += part;
                    bodies.push(GivenBody { entry: entry.number, skill: body.skill.to_owned(), size: part });
                }
                *level += rest;
            }
        }
    }
    (size, bodies)
}
