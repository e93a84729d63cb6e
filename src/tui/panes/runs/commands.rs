//! The available commands of a run, and the dialogs that confirm them. The run itself reports which commands it
//! accepts.

use std::sync::Arc;

use serde_json::Value;

use super::board_view::LOST;
use super::detail::{DetailCursor, DetailView};
use super::detail_view::label_of;
use super::list::Row;
use super::{Focus, Runs};
use crate::action::{Action, Command};
use crate::overlay::{DialogSpec, RunCommandKind, name_of_decision, name_of_launch, name_of_run_command};
use crate::pane::{Effect, PaneId, Picker, PickerKind, Target};
use crate::run_requests::RunRequest;
use crate::widgets::format::count;
use crate::widgets::text_width::shown;
use skills_api::{ContractView, WorkerState, requested_pause};
use skills_model::{CommandName, Gate, RunState};
use skills_skill::SkillId;
use skills_store::{RunId, RunRecord};

/// Why commands are unavailable while the core is unreachable.
pub(super) const DISCONNECTED: &str =
    "no connection to the service: commands are refused until it is restored";
/// Maximum number of other waiting runs that are loaded to be decided together.
const MAX_BULK_DECISIONS: usize = 24;

impl Runs {
    /// Returns every command, with the reason why it is unavailable, if so.
    pub(super) fn available_commands(&self) -> Vec<Command> {
        let mut out = self.offered_when_connected();
        for command in out.iter_mut().filter(|command| self.disconnected && is_sent(command.action)) {
            command.blocked.get_or_insert_with(|| DISCONNECTED.to_owned());
        }
        out
    }

    fn offered_when_connected(&self) -> Vec<Command> {
        if self.focus == Focus::Name {
            return vec![
                Command::shown(Action::Submit, "save"),
                Command::shown(Action::LeaveField, "cancel"),
            ];
        }
        if let Some(board) = &self.board {
            return self.offered_on_board(board.run().is_some(), board.worker().map(|worker| worker.state));
        }
        if self.focus == Focus::Filter {
            return Command::in_filter("apply");
        }
        let run = self.record();
        let in_list = self.focus == Focus::List;
        let has_marks = in_list && !self.marked.is_empty();
        let none = run.is_none().then(|| "no run is selected".to_owned());
        let with_run = |command: Command| Command { blocked: none.clone(), ..command };
        let mut out = Vec::new();
        for (name, action, label) in [
            (CommandName::Approve, Action::Approve, "approve"),
            (CommandName::Deny, Action::Deny, "deny"),
            (CommandName::Resume, Action::Resume, "resume"),
            (CommandName::Signal, Action::Signal, "signal"),
            (CommandName::Cancel, Action::CancelRun, "cancel"),
            (CommandName::Replay, Action::Replay, "replay"),
            (CommandName::Fork, Action::Fork, "fork"),
        ] {
            let of_marked = bulk_command(action).is_some() && has_marks;
            let accepting = || self.marked_runs().filter(|run| run.allowed.contains(&name)).count();
            let accepting = if of_marked { accepting() } else { 0 };
            let blocked = match run {
                _ if of_marked => (accepting == 0).then(|| "no marked run accepts this command".to_owned()),
                _ if has_marks => Some(self.one_run_only()),
                None => none.clone(),
                Some(run) if run.allowed.contains(&name) => None,
                Some(run) => Some(why_not(run, name)),
            };
            // A signal that no step waits for is buffered: it has a key, but is not in the footer.
            let footer =
                name != CommandName::Signal || run.is_some_and(|run| run.state == RunState::WaitingForSignal);
            let label =
                if accepting > 0 { format!("{label} {}", count(accepting)) } else { label.to_owned() };
            out.push(Command { blocked, footer, ..Command::shown(action, &label) });
        }
        if in_list {
            out.push(with_run(Command::shown(Action::Open, "details")));
            out.push(Command::shown(Action::Launch, "new run"));
            out.push(Command::shown(Action::Filter, "filter"));
            out.push(with_run(Command::hidden(Action::ShowCheckpoint, "state")));
            if self.is_table() && run.is_some() {
                let rows = self.rows.iter().filter_map(Row::run).count();
                let all = if self.feeds.lacks_matches() || has_marks {
                    "mark all".to_owned()
                } else {
                    format!("mark all {}", count(rows))
                };
                out.splice(
                    0..0,
                    [Command::shown(Action::Mark, "mark"), Command::shown(Action::MarkAll, &all)],
                );
            }
            if has_marks || self.marks_all {
                out.insert(0, Command::shown(Action::Back, "unmark"));
            } else if !self.filter.field.is_empty() {
                out.insert(0, Command::shown(Action::Back, "all"));
            }
        } else {
            let label = match (&self.detail.showing, &self.detail.stop) {
                (DetailView::State(_), _) => "fold",
                (_, Some(DetailCursor::Checkpoint(_))) => "state",
                (_, Some(DetailCursor::Source(_) | DetailCursor::Descendant(_))) => "go there",
                _ => "open",
            };
            out.push(with_run(Command::shown(Action::Open, label)));
            out.push(with_run(Command::shown(Action::ShowCheckpoint, "state")));
            let back = if self.shows_other() { "back to run" } else { "list" };
            out.push(Command::shown(Action::Back, back));
        }
        let ended = run.filter(|run| run.state.is_terminal()).map(|_| "the run has ended".to_owned());
        let one_only = has_marks.then(|| self.one_run_only());
        let assign = none.clone().or(one_only.clone()).or(ended);
        out.push(Command { blocked: assign, ..Command::hidden(Action::Assign, "assign") });
        out.push(with_run(Command::shown(Action::ReadWhole, "read")));
        let compare = self.comparable().err();
        let compare = none.clone().or(one_only.clone()).or(compare);
        out.push(Command { blocked: compare, ..Command::shown(Action::Compare, "compare") });
        out.push(Command::hidden(Action::ShowBoard, "board"));
        if in_list {
            if !self.is_table() || run.is_none() {
                out.push(with_run(Command::shown(Action::Mark, "mark")));
                out.push(with_run(Command::hidden(Action::MarkAll, "mark all")));
            }
            out.push(Command::hidden(Action::SaveView, "save view"));
            out.push(with_run(Command::hidden(Action::AddTerm, "add to filter")));
            out.push(Command::hidden(Action::SortRuns, "sort"));
            out.extend([Action::NextTab, Action::PreviousTab].map(|a| Command::hidden(a, "view")));
            out.extend(
                [Action::ExtendUp, Action::ExtendDown].map(|a| with_run(Command::hidden(a, "extend"))),
            );
        }
        out.push(Command {
            blocked: none.clone().or(one_only),
            ..Command::hidden(Action::AttachThis, "attach")
        });
        out.push(with_run(Command::hidden(Action::Copy, "copy")));
        out.push(with_run(Command::hidden(Action::CopyAs, "copy as")));
        out.extend(
            [Action::Up, Action::Down, Action::PageUp, Action::PageDown, Action::Top, Action::Bottom]
                .map(|a| Command::hidden(a, "move")),
        );
        out.extend([Action::NextPart, Action::PreviousPart].map(|a| Command::hidden(a, "next panel")));
        out
    }

    /// Returns why a command that takes one run is unavailable while runs are marked.
    fn one_run_only(&self) -> String {
        let marked = self.marked.len();
        let are = if marked == 1 { "is" } else { "are" };
        format!("this command takes one run, and {} {are} marked: Esc unmarks", count(marked))
    }

    /// Returns the commands of the board.
    fn offered_on_board(&self, on_run: bool, worker: Option<WorkerState>) -> Vec<Command> {
        let run = self.record();
        let takes = |name: CommandName| run.is_some_and(|run| on_run && run.allowed.contains(&name));
        let mut out = Vec::new();
        for (name, action, label) in [
            (CommandName::Approve, Action::Approve, "approve"),
            (CommandName::Deny, Action::Deny, "deny"),
            (CommandName::Cancel, Action::CancelRun, "cancel"),
        ] {
            let blocked = (!takes(name)).then(|| "the run under the cursor does not accept it".to_owned());
            out.push(Command { blocked, ..Command::shown(action, label) });
        }
        let no_run = (!on_run).then(|| "no run under the cursor".to_owned());
        out.push(Command { blocked: no_run, ..Command::shown(Action::Open, "open run") });
        let no_worker = match worker {
            None => Some("no worker under the cursor".to_owned()),
            Some(WorkerState::Lost) => Some(LOST.to_owned()),
            Some(_) => None,
        };
        let drain = if worker == Some(WorkerState::Draining) { "undrain" } else { "drain" };
        out.push(Command { blocked: no_worker, ..Command::shown(Action::Drain, drain) });
        out.push(Command::shown(Action::AddTerm, "shorter period"));
        out.push(Command::shown(Action::ZoomOut, "longer period"));
        out.push(Command::shown(Action::Filter, "filter"));
        out.push(Command::shown(Action::Back, "list"));
        out.extend([Action::NextTab, Action::PreviousTab].map(|a| Command::hidden(a, "view")));
        out.extend(
            [Action::Up, Action::Down, Action::PageUp, Action::PageDown, Action::Top, Action::Bottom]
                .map(|a| Command::hidden(a, "move")),
        );
        out
    }

    /// Executes an action on the run; `None` for movements.
    pub(super) fn execute_command(&mut self, action: Action) -> Option<Vec<Effect>> {
        if let Some(effects) = self.ordered_of_marked(action) {
            return Some(effects);
        }
        let known = |pane: &Self| pane.record().cloned();
        Some(match action {
            Action::Approve | Action::Deny => self.open_decision(),
            Action::Resume => {
                let run = known(self)?;
                let detail = self.detail.get();
                let changed = detail.is_some_and(|detail| detail.contract_unchanged == Some(false));
                let fields = detail.map(|detail| detail.input_fields.clone()).unwrap_or_default();
                self.open_order(run, RunCommandKind::Resume { changed, fields })
            }
            Action::Signal => {
                let run = known(self)?;
                let name = match &run.gate {
                    Some(Gate::Signal { name, .. }) => name.clone(),
                    _ => String::new(),
                };
                let pause = requested_pause(&run, self.detail.events());
                self.open_order(run, RunCommandKind::Signal { name, pause })
            }
            Action::CancelRun => {
                let run = known(self)?;
                self.open_order(run, RunCommandKind::Cancel)
            }
            Action::Replay => {
                let run = known(self)?;
                self.open_order(run, RunCommandKind::Replay)
            }
            Action::Fork => {
                let run = known(self)?;
                self.open_order(run, RunCommandKind::Fork)
            }
            Action::Assign => {
                let run = known(self)?;
                self.open_order(run, RunCommandKind::Assign)
            }
            Action::Launch => vec![Effect::Run(RunRequest::Launchable)],
            Action::Compare => self.compare(),
            Action::ReadWhole => self.read_whole(),
            Action::ShowCheckpoint => {
                let head = known(self)?.head;
                let number = self.detail.checkpoint().unwrap_or(head);
                self.show_state(number);
                if self.shows_other() {
                    self.focus = Focus::Detail;
                    Vec::new()
                } else if self.detail.get().is_none() {
                    vec![Effect::Toast("loading this run; try again in a moment".to_owned())]
                } else {
                    vec![Effect::Toast(format!("checkpoint {number} of this run no longer exists"))]
                }
            }
            Action::NextTab | Action::PreviousTab if self.shows_other() => {
                self.neighbour_state(if action == Action::NextTab { 1 } else { -1 });
                Vec::new()
            }
            Action::AttachThis => {
                let run = known(self)?.id.0;
                let target = match (&self.focus, &self.detail.stop) {
                    (Focus::Detail, Some(DetailCursor::Step(step))) => {
                        ("output".to_owned(), format!("{run}/{step}"))
                    }
                    _ => ("run".to_owned(), run),
                };
                vec![Effect::Go(PaneId::Attach, Some(Target::Attach { skill: None, target: Some(target) }))]
            }
            Action::Copy => vec![Effect::Copy(known(self)?.id.0, "id".to_owned())],
            Action::CopyAs => vec![Effect::Pick(copy_choices(&known(self)?))],
            _ => return None,
        })
    }

    /// Opens the dialog for all marked runs, in the order of the list.
    fn ordered_of_marked(&mut self, action: Action) -> Option<Vec<Effect>> {
        if self.marks_all && is_sent(action) {
            return Some(vec![Effect::Toast(
                "the runs that match are being loaded and marked; try again in a moment".to_owned(),
            )]);
        }
        if self.marked.is_empty() || self.focus != Focus::List {
            return None;
        }
        let command = bulk_command(action)?;
        let marked: Vec<RunRecord> = self.marked_runs().cloned().collect();
        let ticket = self.next_ticket();
        // Every run takes one number, and a second one if it is resumed although its skill changed.
        self.tickets += 2 * marked.len() as u64;
        // What would be executed, and whether the skill changed, is shown before anything is sent.
        let checks = matches!(command, CommandName::Approve | CommandName::Deny | CommandName::Resume);
        let first =
            marked.iter().filter(|run| checks && run.allowed.contains(&command)).take(MAX_BULK_DECISIONS);
        let ids: Vec<RunId> = first.map(|run| run.id.clone()).collect();
        let mut out = vec![Effect::OpenDialog(Box::new(DialogSpec::Bulk { command, runs: marked, ticket }))];
        for id in ids {
            if self.detail.ask(&id) {
                out.push(Effect::Run(RunRequest::Detail(id)));
            }
        }
        Some(out)
    }

    /// Returns the marked runs in the order of the list.
    fn marked_runs(&self) -> impl Iterator<Item = &RunRecord> {
        let listed = self.rows.iter().filter_map(Row::run).filter(|id| self.marked.contains_key(*id));
        listed.filter_map(|id| self.known.get(id))
    }

    fn open_order(&mut self, run: RunRecord, kind: RunCommandKind) -> Vec<Effect> {
        let detail = self.detail.get();
        let checkpoints = detail.map(|detail| {
            detail.checkpoints.iter().map(|point| (point.number, label_of(detail, point.number))).collect()
        });
        let chosen = self.detail.checkpoint();
        let ticket = self.next_ticket();
        let checkpoints = checkpoints.unwrap_or_default();
        let typed = self.typed.of(&name_of_run_command(&kind, &run.id));
        let run = Box::new(run);
        vec![Effect::OpenDialog(Box::new(DialogSpec::RunCommand {
            run,
            kind,
            checkpoints,
            chosen,
            typed,
            ticket,
        }))]
    }

    /// Opens the dialog with the known state of the run, and requests the other runs that wait for the same step. If
    /// nothing is known yet, the dialog opens with the response.
    fn open_decision(&mut self) -> Vec<Effect> {
        let Some(run) = self.record().cloned() else { return Vec::new() };
        let Some(sheet) = self.detail.get().and_then(|detail| detail.sheet.clone()) else {
            self.detail.sheet_wanted = true;
            return self.request_detail();
        };
        self.detail.sheet_wanted = false;
        let ticket = self.next_ticket();
        let typed = self.typed.of(&name_of_decision(&run.id));
        let (sheet, title) = (Box::new(sheet), run.title().map(str::to_owned));
        let mut out = vec![Effect::OpenDialog(Box::new(DialogSpec::Decide { sheet, title, typed, ticket }))];
        // Scripts and trust change without an event: reload the run to compare it with the dialog.
        out.extend(self.request_detail());
        let step = |run: &RunRecord| match &run.gate {
            Some(Gate::Human { step, .. }) => Some(step.clone()),
            _ => None,
        };
        let mut alike: Vec<(i64, RunId)> = self
            .known
            .iter()
            .filter(|(other, _)| other.id != run.id && other.state == RunState::WaitingForHuman)
            .filter(|(other, _)| other.skill_id == run.skill_id && step(other) == step(&run))
            .map(|(other, _)| (other.since_ms, other.id.clone()))
            .collect();
        alike.sort();
        for (_, id) in alike.into_iter().take(MAX_BULK_DECISIONS) {
            if self.detail.ask(&id) {
                out.push(Effect::Run(RunRequest::Detail(id)));
            }
        }
        out
    }

    /// Opens the dialog for the result of a step whose outcome is unknown.
    pub(super) fn open_happened(&mut self, run: &RunId) -> Vec<Effect> {
        let sheet = self.detail.other(run).and_then(|detail| detail.sheet.clone());
        let (Some(record), Some(sheet)) = (self.known.get(run).cloned(), sheet) else {
            return self.no_sheet(run);
        };
        let draft = self.typed.of(&name_of_decision(run));
        let text = |name: &str| draft.get(name).and_then(Value::as_str).map(str::to_owned);
        let kind = RunCommandKind::Happened {
            step: sheet.step,
            inputs_digest: sheet.inputs_digest,
            outputs: sheet.outputs,
            approver: text("approver").or(sheet.approver.map(|(name, _)| name)),
            notes: text("notes"),
        };
        let typed = self.typed.of(&name_of_run_command(&kind, run));
        let ticket = self.next_ticket();
        let (run, checkpoints) = (Box::new(record), Vec::new());
        vec![Effect::OpenDialog(Box::new(DialogSpec::RunCommand {
            run,
            kind,
            checkpoints,
            chosen: None,
            typed,
            ticket,
        }))]
    }

    /// Opens the dialog that waited for the run to be loaded.
    pub(super) fn open_awaited_sheet(&mut self, run: &RunId) -> Vec<Effect> {
        if !self.detail.sheet_wanted || self.selected.as_ref() != Some(run) {
            return Vec::new();
        }
        self.detail.sheet_wanted = false;
        let there = self.detail.get().is_some_and(|detail| detail.sheet.is_some());
        if there { self.open_decision() } else { self.no_sheet(run) }
    }

    /// Explains why the requested dialog does not open.
    pub(super) fn no_sheet(&self, run: &RunId) -> Vec<Effect> {
        let read = self.detail.other(run).is_some();
        let error = self.detail.error().filter(|_| self.detail.is_of(run));
        let text = match error {
            Some(error) => format!("cannot load the pending decision: {}", shown(&error.message)),
            None if read => "no pending decision".to_owned(),
            None => "loading the pending decision".to_owned(),
        };
        vec![Effect::Toast(text)]
    }

    /// Discards the drafts of a completed decision or launch, because they were submitted with it.
    pub(super) fn discard_submitted_drafts(&mut self, decided: Option<&RunId>, launched: Option<&str>) {
        let names = decided.map(name_of_decision).into_iter().chain(launched.map(name_of_launch));
        for name in names {
            self.typed.keep(&name, &serde_json::Map::new());
        }
    }

    /// Lets the user choose a skill, with that of the run under the cursor preselected.
    pub(super) fn choose_skill(&self, ready: &[(SkillId, String)]) -> Vec<Effect> {
        let choices: Vec<(String, String, String)> = ready
            .iter()
            .map(|(id, description)| (id.to_string(), shown(id.as_str()), shown(description)))
            .collect();
        if choices.is_empty() {
            return vec![Effect::Toast(
                "no skill has a contract (skill.yaml next to its SKILL.md)".to_owned(),
            )];
        }
        let here = self.record().map(|run| run.skill_id.as_str());
        let current = choices.iter().position(|(id, ..)| Some(id.as_str()) == here);
        let what = PickerKind::Launchable;
        vec![Effect::Pick(Picker { what, title: "Launch a skill".to_owned(), choices, current })]
    }

    pub(super) fn open_launch(&mut self, view: &Arc<ContractView>) -> Vec<Effect> {
        self.machine = Some(view.isolation.clone());
        let ticket = self.next_ticket();
        let typed = self.typed.of(&name_of_launch(view.skill_id.as_str()));
        vec![Effect::OpenDialog(Box::new(DialogSpec::Launch { view: Arc::clone(view), typed, ticket }))]
    }

    /// Describes what would be lost if the workbench quit now.
    pub(super) fn typed_and_unsent(&self) -> Option<String> {
        // Notes for a decision that is no longer pending are not worth keeping.
        let awaited = |run: &str| {
            let state = self.known.get(&RunId(run.to_owned())).map(|run| run.state);
            state == Some(RunState::WaitingForHuman)
        };
        let alive = |name: &&String| name.strip_prefix("decide ").is_none_or(awaited);
        let mut names: Vec<&String> = self.typed.sheets().filter(alive).collect();
        names.sort();
        let (what, of) = names.first()?.split_once(' ')?;
        let name = match self.known.get(&RunId(of.to_owned())) {
            Some(run) => format!("{} {}", shown(&run.skill_id), super::list::tail(&run.id)),
            None => shown(of),
        };
        let first = match what {
            "decide" => format!("The notes for the decision on {name}"),
            "launch" => format!("The inputs for a launch of {name}"),
            "signal" => format!("The signal for {name}"),
            "happened" => format!("The result of a step of {name}"),
            _ => format!("The corrected inputs of {name}"),
        };
        let more = names.len() - 1;
        let rest = match more {
            0 => String::new(),
            1 => " and the input of 1 more dialog".to_owned(),
            more => format!(" and the input of {more} more dialogs"),
        };
        Some(format!("{first}{rest} would be lost."))
    }

    pub(super) fn copy_as(&self, what: &str) -> Vec<Effect> {
        let Some(run) = self.record() else { return Vec::new() };
        let text = match what {
            "id" => Some(run.id.0.clone()),
            "cli" => Some(format!("skills runs show {}", run.id)),
            "trace" => Some(run.trace_id.clone()),
            "outputs" => run.outputs.as_ref().and_then(|outputs| serde_json::to_string_pretty(outputs).ok()),
            "json" => match self.detail.get() {
                Some(detail) => serde_json::to_string_pretty(detail.as_ref()).ok(),
                None => serde_json::to_string_pretty(run).ok(),
            },
            _ => None,
        };
        let what = |text| match what {
            "cli" => Effect::CopyCommand(text, "command line".to_owned()),
            _ => Effect::Copy(text, what.to_owned()),
        };
        text.into_iter().map(what).collect()
    }
}

fn copy_choices(run: &RunRecord) -> Picker {
    let mut choices = vec![
        ("id".to_owned(), "id".to_owned(), shown(&run.id.0)),
        ("cli".to_owned(), "command line".to_owned(), format!("skills runs show {}", shown(&run.id.0))),
        ("trace".to_owned(), "trace".to_owned(), shown(&run.trace_id)),
        ("json".to_owned(), "JSON".to_owned(), "the complete run".to_owned()),
    ];
    if run.outputs.is_some() {
        choices.push(("outputs".to_owned(), "outputs".to_owned(), "result".to_owned()));
    }
    Picker { what: PickerKind::CopyAs, title: "Copy as".to_owned(), choices, current: Some(0) }
}

/// Returns the command that an action sends to marked runs.
fn bulk_command(action: Action) -> Option<CommandName> {
    Some(match action {
        Action::Approve => CommandName::Approve,
        Action::Deny => CommandName::Deny,
        Action::Resume => CommandName::Resume,
        Action::CancelRun => CommandName::Cancel,
        Action::Signal => CommandName::Signal,
        _ => return None,
    })
}

/// Returns whether an action opens a dialog for a command to the core, or sends one.
fn is_sent(action: Action) -> bool {
    matches!(
        action,
        Action::Approve
            | Action::Deny
            | Action::Resume
            | Action::Signal
            | Action::CancelRun
            | Action::Replay
            | Action::Fork
            | Action::Assign
            | Action::Launch
            | Action::Drain
    )
}

/// Describes why a run does not accept a command, and what it would accept.
fn why_not(run: &RunRecord, command: CommandName) -> String {
    let state = run.state.label();
    match (command, run.state) {
        (CommandName::Approve | CommandName::Deny, RunState::WaitingForSignal) => {
            "waiting for a signal; press s".to_owned()
        }
        (CommandName::Approve | CommandName::Deny, _) => format!("no pending decision: it is {state}"),
        (CommandName::Resume, RunState::WaitingForHuman) => "waiting for approval; press a".to_owned(),
        (CommandName::Resume, RunState::WaitingForSignal) => "waiting for a signal; press s".to_owned(),
        (CommandName::Resume, RunState::Completed | RunState::Canceled) => {
            format!("it is {state}; p replays it from a checkpoint")
        }
        (CommandName::Resume, _) => format!("it is {state} already"),
        (CommandName::Signal, _) => format!("it does not wait for one: it is {state}"),
        _ => format!("it is {state}"),
    }
}
