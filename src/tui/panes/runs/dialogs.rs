//! The dialogs that confirm commands: their drafts, and what they open with.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::commands::{bulk_command, is_sent};
use super::detail::DetailState;
use super::detail_view::label_of;
use super::feed::KnownRuns;
use super::list::tail;
use super::run_list::RunList;
use crate::action::Action;
use crate::form_drafts::FormDrafts;
use crate::overlay::{DialogSpec, RunCommandKind, decision_draft_key, name_of_launch, name_of_run_command};
use crate::pane::{Effect, Picker, PickerKind};
use crate::run_requests::RunRequest;
use crate::widgets::text_width::shown;
use skills_api::{ContractView, Error, requested_pause};
use skills_model::{CommandName, Gate, RunState};
use skills_skill::SkillId;
use skills_store::{RunId, RunQuery, RunRecord};

/// Maximum number of other waiting runs that are loaded to be decided together.
const MAX_BULK_DECISIONS: usize = 24;

/// The state of the dialogs.
#[derive(Default)]
pub(super) struct Dialogs {
    /// Drafts of dialogs that were closed without submitting.
    pub typed: FormDrafts,
    tickets: u64,
    /// The skill whose contract was requested for a launch.
    launching: Option<String>,
}

fn open(spec: DialogSpec) -> Effect {
    Effect::OpenDialog(Box::new(spec))
}

impl Dialogs {
    fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Drops everything after the core changed to another store.
    pub fn reset(&mut self) {
        self.launching = None;
        self.typed.clear();
    }

    /// Opens the dialog of a command for the run under the cursor; `None` for other actions, and without a run.
    /// A decision can be extended to others only of those on the screen, which the filter restricts.
    pub fn act(
        &mut self,
        action: Action,
        list: &RunList,
        filter: Option<RunQuery>,
        detail: &mut DetailState,
    ) -> Option<Vec<Effect>> {
        let kind = match action {
            Action::Approve | Action::Deny => return Some(self.decide(list, filter, detail)),
            Action::Launch => return Some(vec![Effect::Run(RunRequest::Launchable)]),
            Action::Resume => {
                let changed = detail.get().is_some_and(|detail| {
                    detail.contract_unchanged == Some(false) || detail.resume_obstacle().is_some()
                });
                let fields = detail.get().map(|detail| detail.input_fields.clone()).unwrap_or_default();
                RunCommandKind::Resume { changed, fields }
            }
            Action::Signal => {
                let run = list.record()?;
                let name = match &run.gate {
                    Some(Gate::Signal { name, .. }) => name.clone(),
                    _ => String::new(),
                };
                RunCommandKind::Signal { name, pause: requested_pause(run, detail.events()) }
            }
            Action::CancelRun => RunCommandKind::Cancel,
            Action::Replay => RunCommandKind::Replay,
            Action::Fork => RunCommandKind::Fork,
            Action::Assign => RunCommandKind::Assign,
            _ => return None,
        };
        let run = list.record()?.clone();
        let points = detail.get().map(|detail| {
            detail.checkpoints.iter().map(|point| (point.number, label_of(detail, point.number))).collect()
        });
        Some(self.open_command(run, kind, points.unwrap_or_default(), detail.checkpoint()))
    }

    fn open_command(
        &mut self,
        run: RunRecord,
        kind: RunCommandKind,
        checkpoints: Vec<(u64, String)>,
        chosen: Option<u64>,
    ) -> Vec<Effect> {
        let ticket = self.next_ticket();
        let typed = self.typed.of(&name_of_run_command(&kind, &run.id));
        let run = Box::new(run);
        vec![open(DialogSpec::RunCommand { run, kind, checkpoints, chosen, typed, ticket })]
    }

    /// Opens the dialog for all marked runs, in the order of the list.
    pub fn act_on_marked(
        &mut self,
        action: Action,
        in_list: bool,
        list: &RunList,
        detail: &mut DetailState,
    ) -> Option<Vec<Effect>> {
        if list.marks_all && is_sent(action) {
            return Some(vec![Effect::Toast(
                "the runs that match are being loaded and marked; try again in a moment".to_owned(),
            )]);
        }
        if list.marked.is_empty() || !in_list {
            return None;
        }
        let command = bulk_command(action)?;
        let runs: Vec<RunRecord> = list.marked_runs().cloned().collect();
        let ticket = self.next_ticket();
        // Every run takes one number, and a second one if it is resumed although its skill changed.
        self.tickets += 2 * runs.len() as u64;
        // What would be executed, and whether the skill changed, is shown before anything is sent.
        let checks = matches!(command, CommandName::Approve | CommandName::Deny | CommandName::Resume);
        let first =
            runs.iter().filter(|run| checks && run.allowed.contains(&command)).take(MAX_BULK_DECISIONS);
        let ids: Vec<RunId> = first.map(|run| run.id.clone()).collect();
        let mut out = vec![open(DialogSpec::Bulk { command, runs, ticket })];
        out.extend(ids.iter().filter_map(|id| detail.request(id)));
        Some(out)
    }

    /// Opens the dialog with the known state of the run, and requests the other runs on the screen that wait for the
    /// same step. If nothing is known yet, the dialog opens with the response.
    fn decide(&mut self, list: &RunList, filter: Option<RunQuery>, detail: &mut DetailState) -> Vec<Effect> {
        let Some(run) = list.record() else { return Vec::new() };
        let Some(preview) = detail.get().and_then(|detail| detail.sheet.clone()) else {
            detail.sheet_wanted = true;
            return detail.request(&run.id).into_iter().collect();
        };
        detail.sheet_wanted = false;
        let ticket = self.next_ticket();
        let typed = self.typed.of(&decision_draft_key(&run.id));
        let (preview, title) = (Box::new(preview), run.title().map(str::to_owned));
        let is_shown =
            |run: &RunRecord| filter.as_ref().is_none_or(|filter| filter.matches(run, list.drawn.clock_ms));
        let step = |run: &RunRecord| match &run.gate {
            Some(Gate::Human { step, .. }) => Some(step.clone()),
            _ => None,
        };
        let others = list.runs.known.iter().map(|(other, _)| other);
        let mut alike: Vec<(i64, &RunId)> = others
            .filter(|other| other.id != run.id && other.state == RunState::WaitingForHuman)
            .filter(|other| other.skill_id == run.skill_id && step(other) == step(run) && is_shown(other))
            .map(|other| (other.since_ms, &other.id))
            .collect();
        alike.sort();
        let mut out = vec![open(DialogSpec::Decide { preview, title, filter, typed, ticket })];
        // Scripts and trust change without an event: reload the run to compare it with the dialog.
        out.extend(detail.request(&run.id));
        out.extend(alike.into_iter().take(MAX_BULK_DECISIONS).filter_map(|(_, id)| detail.request(id)));
        out
    }

    /// Opens the dialog for the result of a step whose outcome is unknown.
    pub fn open_happened(&mut self, run: &RunId, list: &RunList, detail: &DetailState) -> Vec<Effect> {
        let preview = detail.other(run).and_then(|detail| detail.sheet.clone());
        let (Some(record), Some(preview)) = (list.runs.known.get(run).cloned(), preview) else {
            return vec![dialog_unavailable(run, detail)];
        };
        let draft = self.typed.of(&decision_draft_key(run));
        let text = |name: &str| draft.get(name).and_then(Value::as_str).map(str::to_owned);
        let kind = RunCommandKind::Happened {
            step: preview.step,
            inputs_digest: preview.inputs_digest,
            outputs: preview.outputs,
            approver: text("approver").or(preview.approver.map(|(name, _)| name)),
            notes: text("notes"),
        };
        self.open_command(record, kind, Vec::new(), None)
    }

    /// Opens the dialog that waited for the run to be loaded.
    pub fn open_awaited(
        &mut self,
        run: &RunId,
        list: &RunList,
        filter: Option<RunQuery>,
        detail: &mut DetailState,
    ) -> Vec<Effect> {
        if !detail.sheet_wanted || list.selected.as_ref() != Some(run) {
            return Vec::new();
        }
        detail.sheet_wanted = false;
        let there = detail.get().is_some_and(|detail| detail.sheet.is_some());
        if there { self.decide(list, filter, detail) } else { vec![dialog_unavailable(run, detail)] }
    }

    /// Discards the drafts of a completed decision or launch, because they were submitted with it.
    pub fn discard_submitted(&mut self, decided: Option<&RunId>, launched: Option<&str>) {
        let names = decided.map(decision_draft_key).into_iter().chain(launched.map(name_of_launch));
        for name in names {
            self.typed.keep(&name, &Map::new());
        }
    }

    /// Requests the contract of a skill to launch it.
    pub fn begin_launch(&mut self, skill: &str) -> Vec<Effect> {
        self.launching = Some(skill.to_owned());
        vec![Effect::Run(RunRequest::Contract(skill.to_owned()))]
    }

    /// Opens the dialog of the launch that waited for this contract.
    pub fn take_contract(
        &mut self,
        skill: &str,
        answer: &Result<Arc<ContractView>, Error>,
    ) -> Option<Effect> {
        self.launching.take_if(|launching| *launching == skill)?;
        Some(match answer {
            Ok(view) => {
                let ticket = self.next_ticket();
                let typed = self.typed.of(&name_of_launch(view.skill_id.as_str()));
                open(DialogSpec::Launch { view: Arc::clone(view), typed, ticket })
            }
            Err(error) => {
                Effect::ErrorNotice(format!("{} cannot be launched", shown(skill)), shown(&error.message))
            }
        })
    }

    /// Describes what would be lost if the workbench quit now.
    pub fn unsaved(&self, runs: &KnownRuns) -> Option<String> {
        // Notes for a decision that is no longer pending are not worth keeping.
        let awaited = |run: &str| {
            let state = runs.get(&RunId(run.to_owned())).map(|run| run.state);
            state == Some(RunState::WaitingForHuman)
        };
        let alive = |name: &&String| name.strip_prefix("decide ").is_none_or(awaited);
        let mut names: Vec<&String> = self.typed.dialogs().filter(alive).collect();
        names.sort();
        let (what, of) = names.first()?.split_once(' ')?;
        let name = match runs.get(&RunId(of.to_owned())) {
            Some(run) => format!("{} {}", shown(&run.skill_id), tail(&run.id)),
            None => shown(of),
        };
        let first = match what {
            "decide" => format!("The notes for the decision on {name}"),
            "launch" => format!("The inputs for a launch of {name}"),
            "signal" => format!("The signal for {name}"),
            "happened" => format!("The result of a step of {name}"),
            _ => format!("The changed inputs of {name}"),
        };
        let more = names.len() - 1;
        let rest = match more {
            0 => String::new(),
            1 => " and the input in 1 other dialog".to_owned(),
            more => format!(" and the input in {more} other dialogs"),
        };
        Some(format!("{first}{rest} would be lost."))
    }
}

/// Explains why the requested dialog does not open.
fn dialog_unavailable(run: &RunId, detail: &DetailState) -> Effect {
    let read = detail.other(run).is_some();
    let error = detail.error().filter(|_| detail.is_of(run));
    Effect::Toast(match error {
        Some(error) => format!("cannot load the pending decision: {}", shown(&error.message)),
        None if read => "no pending decision".to_owned(),
        None => "loading the pending decision".to_owned(),
    })
}

/// Lets the user choose a skill to launch, with that of the run under the cursor preselected.
pub(super) fn choose_skill(ready: &[(SkillId, String)], run: Option<&RunRecord>) -> Effect {
    let choices: Vec<(String, String, String)> = ready
        .iter()
        .map(|(id, description)| (id.to_string(), shown(id.as_str()), shown(description)))
        .collect();
    if choices.is_empty() {
        return Effect::Toast("no skill has a contract (skill.yaml next to its SKILL.md)".to_owned());
    }
    let here = run.map(|run| run.skill_id.as_str());
    let current = choices.iter().position(|(id, ..)| Some(id.as_str()) == here);
    Effect::Pick(Picker {
        what: PickerKind::Launchable,
        title: "Launch a skill".to_owned(),
        choices,
        current,
    })
}
