//! The available commands of a run. The run itself reports which commands it accepts.

use strum::IntoEnumIterator as _;

use super::Focus;
use super::board::{BoardState, LOST};
use super::browser::RunBrowser;
use super::compare_view::comparable;
use super::detail::{DetailCursor, DetailState, DetailView};
use super::run_list::RunList;
use crate::action::{Action, PaneCommand};
use crate::keymap::mention;
use crate::widgets::format::count;
use skills_api::WorkerState;
use skills_model::{CommandName, RunState};
use skills_store::RunRecord;

/// Why commands are unavailable while the core is unreachable.
pub(super) const DISCONNECTED: &str =
    "no connection to the service: commands are refused until it is restored";

/// Why commands of a run are unavailable on the board.
const NO_RUN: &str = "no run under the cursor";

/// Returns the action of a command that a run accepts or refuses by its state.
fn action_of(command: CommandName) -> Action {
    match command {
        CommandName::Approve => Action::Approve,
        CommandName::Deny => Action::Deny,
        CommandName::Resume => Action::Resume,
        CommandName::Signal => Action::Signal,
        CommandName::Cancel => Action::CancelRun,
        CommandName::Replay => Action::Replay,
        CommandName::Fork => Action::Fork,
    }
}

/// Returns every command, with the reason why it is unavailable, if so.
pub(super) fn available(browser: &RunBrowser) -> Vec<PaneCommand> {
    let list = &browser.list;
    let mut out = match (browser.focus, &browser.board) {
        (Focus::Name, _) => {
            vec![PaneCommand::shown(Action::Submit, "save"), PaneCommand::shown(Action::LeaveField, "cancel")]
        }
        (_, Some(board)) => on_board(board, list, &browser.detail),
        (Focus::Filter, None) => PaneCommand::in_filter("apply"),
        (focus, None) => on_run(list, &browser.detail, focus == Focus::List),
    };
    for command in out.iter_mut().filter(|command| list.runs.disconnected && is_sent(command.action)) {
        command.blocked.get_or_insert_with(|| DISCONNECTED.to_owned());
    }
    out
}

/// Returns the commands of the list, or of the details.
fn on_run(list: &RunList, detail: &DetailState, in_list: bool) -> Vec<PaneCommand> {
    let run = list.record();
    let has_marks = in_list && !list.marked.is_empty();
    let none = run.is_none().then(|| "no run is selected".to_owned());
    let with_run = |command: PaneCommand| PaneCommand { blocked: none.clone(), ..command };
    let mut out = Vec::new();
    for name in CommandName::iter() {
        let action = action_of(name);
        let of_marked = bulk_command(action).is_some() && has_marks;
        let accepting = || list.marked_runs().filter(|run| run.allowed.contains(&name)).count();
        let accepting = if of_marked { accepting() } else { 0 };
        let blocked = match run {
            _ if of_marked => (accepting == 0).then(|| "no marked run accepts this command".to_owned()),
            _ if has_marks => Some(one_run_only(list)),
            None => none.clone(),
            Some(run) if run.allowed.contains(&name) => None,
            Some(run) => Some(why_not(run, name)),
        };
        // A signal that no step waits for is buffered: it has a key, but is not in the footer.
        let footer =
            name != CommandName::Signal || run.is_some_and(|run| run.state == RunState::WaitingForSignal);
        let label = if accepting > 0 { format!("{name} {}", count(accepting)) } else { name.to_string() };
        out.push(PaneCommand { blocked, footer, ..PaneCommand::shown(action, &label) });
    }
    if in_list {
        out.push(with_run(PaneCommand::shown(Action::Open, "details")));
        out.push(PaneCommand::shown(Action::Launch, "new run"));
        out.push(PaneCommand::shown(Action::Filter, "filter"));
        out.push(with_run(PaneCommand::hidden(Action::ShowCheckpoint, "state")));
        if list.is_table() && run.is_some() {
            let rows = list.listed().count();
            let blocked = list.filter.blocks_marking();
            let all = if list.runs.feeds.lacks_matches() || has_marks || blocked.is_some() {
                "mark all".to_owned()
            } else {
                format!("mark all {}", count(rows))
            };
            let mark_all = PaneCommand { blocked, ..PaneCommand::shown(Action::MarkAll, &all) };
            out.splice(0..0, [PaneCommand::shown(Action::Mark, "mark"), mark_all]);
        }
        if has_marks || list.marks_all {
            out.insert(0, PaneCommand::shown(Action::Back, "unmark"));
        } else if !list.filter.field.is_empty() {
            out.insert(0, PaneCommand::shown(Action::Back, "clear filter"));
        }
    } else {
        let label = match (&detail.showing, &detail.stop) {
            (DetailView::State(_), _) => Some("fold"),
            // There is nothing to open in a comparison.
            (DetailView::Changes(..) | DetailView::Pair(_), _) => None,
            (DetailView::Run, Some(DetailCursor::Checkpoint(_))) => Some("state"),
            (DetailView::Run, Some(DetailCursor::Source(_) | DetailCursor::Descendant(_))) => {
                Some("go there")
            }
            (DetailView::Run, _) => Some("open"),
        };
        out.extend(label.map(|label| with_run(PaneCommand::shown(Action::Open, label))));
        out.push(with_run(PaneCommand::shown(Action::ShowCheckpoint, "state")));
        let back = if detail.shows_other() { "back to run" } else { "back to list" };
        out.push(PaneCommand::shown(Action::Back, back));
    }
    let one_only = has_marks.then(|| one_run_only(list));
    let assign = none.clone().or(one_only.clone());
    out.push(PaneCommand { blocked: assign, ..PaneCommand::hidden(Action::Assign, "assign") });
    out.push(with_run(PaneCommand::shown(Action::Read, "zoom")));
    let compare = comparable(list, detail, !in_list).err();
    let compare = none.clone().or(one_only.clone()).or(compare);
    out.push(PaneCommand { blocked: compare, ..PaneCommand::shown(Action::Compare, "compare") });
    out.push(PaneCommand::hidden(Action::ShowBoard, "board"));
    if in_list {
        if !list.is_table() || run.is_none() {
            out.push(with_run(PaneCommand::shown(Action::Mark, "mark")));
            out.push(with_run(PaneCommand::hidden(Action::MarkAll, "mark all")));
        }
        out.push(PaneCommand::hidden(Action::SaveView, "save view"));
        let no_term = none.clone().filter(|_| list.drawn.terms.is_empty());
        out.push(PaneCommand { blocked: no_term, ..PaneCommand::hidden(Action::AddTerm, "add to filter") });
        out.push(PaneCommand::hidden(Action::SortRuns, "sort"));
        out.extend([Action::NextTab, Action::PreviousTab].map(|a| PaneCommand::hidden(a, "view")));
        out.extend(
            [Action::ExtendUp, Action::ExtendDown].map(|a| with_run(PaneCommand::hidden(a, "extend"))),
        );
    }
    out.push(PaneCommand {
        blocked: none.clone().or(one_only),
        ..PaneCommand::hidden(Action::AttachThis, "attach")
    });
    out.push(with_run(PaneCommand::hidden(Action::Copy, "copy")));
    out.push(with_run(PaneCommand::hidden(Action::CopyAs, "copy as")));
    out.extend(PaneCommand::all_moves());
    out.extend([Action::NextPart, Action::PreviousPart].map(|a| PaneCommand::hidden(a, "next panel")));
    out
}

/// Returns why a command that takes one run is unavailable while runs are marked.
fn one_run_only(list: &RunList) -> String {
    let marked = list.marked.len();
    let are = if marked == 1 { "is" } else { "are" };
    format!("this command needs a single run; {} {are} marked (Esc unmarks)", count(marked))
}

/// Returns the commands of the board. They apply to the run under its cursor; those of the list, which is not shown, are
/// unavailable.
fn on_board(board: &BoardState, list: &RunList, detail: &DetailState) -> Vec<PaneCommand> {
    let (has_run, worker) = (board.run().is_some(), board.worker().map(|worker| worker.state));
    let run = list.record();
    let none = match (has_run, run) {
        (false, _) => Some(NO_RUN.to_owned()),
        (true, None) => Some("loading the run; try again in a moment".to_owned()),
        (true, Some(_)) => None,
    };
    let with_run = |command: PaneCommand| PaneCommand { blocked: none.clone(), ..command };
    let mut out = Vec::new();
    for name in CommandName::iter() {
        let refused = run.filter(|run| !run.allowed.contains(&name)).map(|run| why_not(run, name));
        let footer = matches!(name, CommandName::Approve | CommandName::Deny | CommandName::Cancel);
        let command = PaneCommand::shown(action_of(name), &name.to_string());
        out.push(PaneCommand { blocked: none.clone().or(refused), footer, ..command });
    }
    let on_failures = board.failures().is_some();
    let no_run = (!has_run && !on_failures).then(|| NO_RUN.to_owned());
    let label = if on_failures { "open runs" } else { "open run" };
    out.push(PaneCommand { blocked: no_run, ..PaneCommand::shown(Action::Open, label) });
    let no_worker = match worker {
        None => Some("no worker under the cursor".to_owned()),
        Some(WorkerState::Lost) => Some(LOST.to_owned()),
        Some(_) => None,
    };
    let drain = if worker == Some(WorkerState::Draining) { "undrain" } else { "drain" };
    out.push(PaneCommand { blocked: no_worker, ..PaneCommand::shown(Action::Drain, drain) });
    out.push(PaneCommand::shown(Action::ZoomIn, "shorter period"));
    out.push(PaneCommand::shown(Action::ZoomOut, "longer period"));
    out.push(PaneCommand::shown(Action::Filter, "filter"));
    out.push(PaneCommand::shown(Action::Back, "list"));
    for (action, label) in [
        (Action::Assign, "assign"),
        (Action::Read, "zoom"),
        (Action::AttachThis, "attach"),
        (Action::Copy, "copy"),
        (Action::CopyAs, "copy as"),
    ] {
        out.push(with_run(PaneCommand::hidden(action, label)));
    }
    out.push(PaneCommand::hidden(Action::Launch, "new run"));
    out.push(PaneCommand::hidden(Action::ShowBoard, "board"));
    out.extend([Action::NextTab, Action::PreviousTab].map(|a| PaneCommand::hidden(a, "view")));
    out.extend(PaneCommand::all_moves());
    for command in on_run(list, detail, true) {
        if out.iter().all(|offered| offered.action != command.action) {
            let blocked = Some("not available on the board; Esc shows the list".to_owned());
            out.push(PaneCommand { blocked, footer: false, ..command });
        }
    }
    out
}

/// Returns the command that an action sends to marked runs.
pub(super) fn bulk_command(action: Action) -> Option<CommandName> {
    CommandName::iter().find(|command| match command {
        CommandName::Approve
        | CommandName::Deny
        | CommandName::Resume
        | CommandName::Signal
        | CommandName::Cancel => action_of(*command) == action,
        CommandName::Replay | CommandName::Fork => false,
    })
}

/// Returns whether an action opens a dialog for a command to the core, or sends one.
pub(super) fn is_sent(action: Action) -> bool {
    matches!(action, Action::Assign | Action::Launch | Action::Drain)
        || CommandName::iter().any(|command| action_of(command) == action)
}

/// Describes why a run does not accept a command, and what it would accept.
fn why_not(run: &RunRecord, command: CommandName) -> String {
    let state = match run.state {
        RunState::Completed | RunState::Failed => format!("has {}", run.state.label()),
        _ => format!("is {}", run.state.label()),
    };
    match (command, run.state) {
        (CommandName::Approve | CommandName::Deny, RunState::WaitingForSignal) => {
            format!("waiting for a signal; press {}", mention(Action::Signal))
        }
        (CommandName::Approve | CommandName::Deny, _) => format!("no pending decision: the run {state}"),
        (CommandName::Resume, RunState::WaitingForHuman) => {
            format!("waiting for approval; press {}", mention(Action::Approve))
        }
        (CommandName::Resume, RunState::WaitingForSignal) => {
            format!("waiting for a signal; press {}", mention(Action::Signal))
        }
        (CommandName::Resume, RunState::Completed | RunState::Canceled) => {
            format!("the run {state}; {} replays it from a checkpoint", mention(Action::Replay))
        }
        (CommandName::Resume, RunState::Pending | RunState::Running | RunState::Replaying) => {
            format!("the run is already {}", run.state.label())
        }
        (CommandName::Signal, _) => format!("no step is waiting for a signal: the run {state}"),
        _ => format!("cannot {command} this run: it {state}"),
    }
}
