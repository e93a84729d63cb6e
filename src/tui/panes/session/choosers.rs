//! The lists of Session to choose from, and what is copied.

use super::state::SessionState;
use crate::pane::{Effect, Picker, PickerKind};
use crate::session_export::short_id;
use crate::widgets::text_width::shown as safe;
use crate::widgets::{byte_size, counted, moment};
use skills_api::{AgentView, SessionSummary, SessionView};
use skills_config::quoted;

/// The choice of a new session with the settings of the current one.
pub(super) const SAME_SETTINGS: &str = "like";

/// Returns the effect that opens a chooser with the current value selected, or the first one.
pub(super) fn pick(
    what: PickerKind,
    title: &str,
    choices: Vec<(String, String, String)>,
    current: Option<usize>,
) -> Effect {
    Effect::Pick(Picker { what, title: title.to_owned(), choices, current })
}

/// Returns a picker of active skills whose text in the roots has changed, and of every skill that is not loaded.
pub(super) fn loadable(state: &SessionState) -> Effect {
    let loaded: Vec<&str> = state.active().iter().map(|skill| skill.name.as_str()).collect();
    let to_reload = loaded.iter().filter_map(|name| {
        let drift = state.drift_of(name);
        let description = drift.describe().filter(|_| drift.needs_reload())?;
        Some(((*name).to_owned(), safe(name), format!("reload: {description}")))
    });
    let others = state
        .catalog
        .entries
        .iter()
        .map(|entry| &entry.skill)
        .filter(|skill| !loaded.contains(&skill.id.as_str()))
        .map(|skill| (skill.id.to_string(), safe(skill.id.as_str()), safe(&skill.description)));
    pick(PickerKind::SkillToLoad, "Load a skill", to_reload.chain(others).collect(), None)
}

/// Returns the chooser of sessions; `current` is the open one.
pub(super) fn sessions(sessions: &[SessionSummary], current: Option<&str>) -> Effect {
    let choices = sessions
        .iter()
        .map(|session| {
            let active = if session.active.is_empty() {
                "no skills loaded".to_owned()
            } else {
                session.active.join(", ")
            };
            let label = format!("{}  {active}", short_id(&session.session_id));
            let agent = session.agent.as_deref().map(|id| format!("{}, ", safe(id)));
            let note = format!(
                "{}{}, created {}, changed {}",
                agent.unwrap_or_default(),
                counted(session.entries, "entry"),
                moment(session.created_ms),
                moment(session.changed_ms)
            );
            (session.session_id.clone(), label, note)
        })
        .collect();
    let open = sessions.iter().position(|session| Some(session.session_id.as_str()) == current);
    pick(PickerKind::Session, "Open a session", choices, open)
}

/// Returns the chooser of agents.
pub(super) fn agents(agents: &[AgentView], current: Option<&str>) -> Effect {
    let all = (String::new(), "orchestrator".to_owned(), "sees every skill".to_owned());
    let named = agents.iter().map(|view| {
        let of_project = if view.of_project { "(of the project) " } else { "" };
        let note = format!("{of_project}{}", view.agent.uses_skills.join(", "));
        (view.agent.id.clone(), view.agent.id.clone(), note)
    });
    let choices: Vec<_> = std::iter::once(all).chain(named).collect();
    let current = choices.iter().position(|(id, ..)| id == current.unwrap_or_default());
    pick(PickerKind::Agent, "Agent", choices, current)
}

/// Returns the chooser of a skill's files, or of its scripts.
pub(super) fn files<'a>(what: PickerKind, name: &str, files: impl Iterator<Item = (&'a str, u64)>) -> Effect {
    let (scripts, name) = (what == PickerKind::ScriptToRun, safe(name));
    let choices: Vec<_> = files
        .filter(|(path, _)| !scripts || path.starts_with("scripts/"))
        .map(|(path, size)| (path.to_owned(), safe(path), byte_size(size)))
        .collect();
    if choices.is_empty() {
        return Effect::Toast(format!("{name} has no {}", if scripts { "scripts" } else { "files" }));
    }
    let verb = if scripts { "Run a script" } else { "Read a file" };
    pick(what, &format!("{verb} of {name}"), choices, None)
}

/// Returns what of a session can be copied.
pub(super) fn to_copy(id: &str) -> Effect {
    let choice = |what: &str, label: &str, note: String| (what.to_owned(), label.to_owned(), note);
    let choices = vec![
        choice("id", "id", id.to_owned()),
        choice("cli", "command line", format!("skills session show {}", quoted(id))),
        choice("target", "as a target", format!("session:{id}")),
        choice("json", "JSON", "the complete session".to_owned()),
    ];
    pick(PickerKind::CopyAs, "Copy the session as", choices, None)
}

pub(super) fn copy_as(session: &SessionView, what: &str) -> Effect {
    let id = &session.session_id;
    match what {
        "cli" => {
            let line = format!("skills session show {}", quoted(id));
            Effect::CopyCommand(line, "the command line".to_owned())
        }
        "target" => Effect::copy_line(&format!("session:{id}"), "the target"),
        "json" => {
            let text = serde_json::to_string_pretty(session).unwrap_or_default();
            Effect::Copy(text, "the session".to_owned())
        }
        _ => Effect::copy_line(id, "the session's id"),
    }
}
