//! The commands of Session.

use super::Focus;
use super::state::SessionState;
use crate::action::{Action, PaneCommand};
use crate::keymap::mention;

/// Returns the available commands.
pub(super) fn commands(state: &SessionState, focus: Focus, is_diff: bool) -> Vec<PaneCommand> {
    let none_loaded = || format!("no skills loaded: {} loads one", mention(Action::LoadSkill));
    let none = || state.selected().is_none().then(none_loaded);
    let closed = || state.session.is_none().then(|| "no session is open".to_owned());
    let on_skill = |command: PaneCommand| PaneCommand { blocked: none(), ..command };
    let gone =
        |there: bool, what: &str| (!there).then(|| format!("{what} was deleted; using the loaded version"));
    let drift = state.selected_drift();
    let folder = || none().or_else(|| gone(drift.has_folder(), "its folder"));
    let file = || folder().or_else(|| gone(drift.has_file(), "its SKILL.md"));
    let in_order =
        |command: PaneCommand, by| PaneCommand { blocked: none().or_else(|| state.unmovable(by)), ..command };
    let in_folder = |command: PaneCommand| PaneCommand { blocked: folder(), ..command };
    let on_session = |command: PaneCommand| PaneCommand { blocked: closed(), ..command };
    let mut out = vec![
        PaneCommand::shown(Action::Down, if focus == Focus::Composed { "scroll" } else { "move" }),
        on_session(PaneCommand::shown(Action::LoadSkill, "load")),
        on_skill(PaneCommand::shown(Action::UnloadSkill, "unload")),
        in_folder(PaneCommand::shown(Action::ReadResource, "read")),
        in_folder(PaneCommand::shown(Action::RunScript, "run script")),
        on_session(PaneCommand::shown(Action::Say, "say")),
        on_session(PaneCommand::shown(Action::DiffCalls, if is_diff { "instructions" } else { "diff" })),
        on_session(PaneCommand::shown(Action::MarkCall, "record call")),
        on_session(PaneCommand::shown(Action::Export, "export")),
        on_session(PaneCommand::hidden(Action::AttachThis, "attach to it")),
        on_session(PaneCommand::hidden(Action::PickAgent, "agent")),
        on_session(PaneCommand::hidden(Action::PickClient, "client")),
        PaneCommand::hidden(Action::NewSession, "new session"),
        PaneCommand::hidden(Action::OpenSession, "open session"),
        in_order(PaneCommand::hidden(Action::MoveEarlier, "earlier"), -1),
        in_order(PaneCommand::hidden(Action::MoveLater, "later"), 1),
        PaneCommand { blocked: file(), ..PaneCommand::hidden(Action::Edit, "edit") },
        on_session(PaneCommand::hidden(Action::Copy, "copy")),
        on_session(PaneCommand::hidden(Action::CopyAs, "copy as")),
        PaneCommand::hidden(Action::Open, "open"),
        PaneCommand::hidden(Action::Fold, "fold"),
        PaneCommand::hidden(Action::NextPart, "next panel"),
        PaneCommand::hidden(Action::PreviousPart, "previous panel"),
        PaneCommand::hidden(Action::NextTab, "next tab"),
        PaneCommand::hidden(Action::PreviousTab, "previous tab"),
    ];
    out.extend(PaneCommand::moves());
    out
}
