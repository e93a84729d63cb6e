//! The commands of Session.

use super::Focus;
use super::state::SessionState;
use crate::action::{Action, Command};
use crate::keymap::mention;

/// Returns the available commands.
pub(super) fn commands(state: &SessionState, focus: Focus, is_diff: bool) -> Vec<Command> {
    let none_loaded = || format!("no skills loaded: {} loads one", mention(Action::LoadSkill));
    let none = || state.selected().is_none().then(none_loaded);
    let closed = || state.session.is_none().then(|| "no session is open".to_owned());
    let on_skill = |command: Command| Command { blocked: none(), ..command };
    let gone =
        |there: bool, what: &str| (!there).then(|| format!("{what} was deleted; using the loaded version"));
    let drift = state.selected_drift();
    let folder = || none().or_else(|| gone(drift.has_folder(), "its folder"));
    let file = || folder().or_else(|| gone(drift.has_file(), "its SKILL.md"));
    let in_order = |command: Command| Command { blocked: none().or_else(|| state.unmovable()), ..command };
    let in_folder = |command: Command| Command { blocked: folder(), ..command };
    let on_session = |command: Command| Command { blocked: closed(), ..command };
    let mut out = vec![
        Command::shown(Action::Down, if focus == Focus::Composed { "scroll" } else { "move" }),
        on_session(Command::shown(Action::LoadSkill, "load")),
        on_skill(Command::shown(Action::UnloadSkill, "unload")),
        in_folder(Command::shown(Action::ReadResource, "read")),
        in_folder(Command::shown(Action::RunScript, "run script")),
        on_session(Command::shown(Action::Say, "say")),
        on_session(Command::shown(Action::DiffCalls, if is_diff { "instructions" } else { "diff" })),
        on_session(Command::shown(Action::MarkCall, "record call")),
        on_session(Command::shown(Action::Export, "export")),
        on_session(Command::hidden(Action::AttachThis, "attach to it")),
        on_session(Command::hidden(Action::PickAgent, "agent")),
        on_session(Command::hidden(Action::PickClient, "client")),
        Command::hidden(Action::NewSession, "new session"),
        Command::hidden(Action::OpenSession, "open session"),
        in_order(Command::hidden(Action::MoveEarlier, "earlier")),
        in_order(Command::hidden(Action::MoveLater, "later")),
        Command { blocked: file(), ..Command::hidden(Action::Edit, "edit") },
        on_session(Command::hidden(Action::Copy, "copy")),
        on_session(Command::hidden(Action::CopyAs, "copy as")),
        Command::hidden(Action::Open, "open"),
        Command::hidden(Action::Fold, "fold"),
        Command::hidden(Action::NextPart, "next panel"),
        Command::hidden(Action::PreviousPart, "previous panel"),
        Command::hidden(Action::NextTab, "next tab"),
        Command::hidden(Action::PreviousTab, "previous tab"),
    ];
    out.extend(Command::moves());
    out
}
