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
        let needs_inputs =
            matches!(kind, RunCommandKind::Resume { .. } | RunCommandKind::Replay | RunCommandKind::Fork);
        detail.wanted = (needs_inputs && run.lacks_inputs()).then_some(action);
        if detail.wanted.is_some() {
            // Its form would show the defaults, and later inputs could not be compared.
            return Some(detail.request(&run.id).into_iter().collect());
        }
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
        // What would be executed, whether the skill changed, and inputs that the list leaves out are shown before anything
        // is sent.
        let checks = matches!(command, CommandName::Approve | CommandName::Deny | CommandName::Resume);
        let is_read = |run: &&RunRecord| (checks || run.lacks_values()) && run.allowed.contains(&command);
        let first = runs.iter().filter(is_read).take(MAX_BULK_DECISIONS);
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
            detail.wanted = Some(Action::Approve);
            return detail.request(&run.id).into_iter().collect();
        };
        detail.wanted = None;
        let ticket = self.next_ticket();
        let typed = self.typed.of(&decision_draft_key(&run.id));
        let (preview, title) = (Box::new(preview), run.title().map(str::to_owned));
        // The dialog compares those of which only the store knows it, once they are loaded.
        let is_shown = |run: &RunRecord| {
            filter.as_ref().is_none_or(|filter| filter.evaluate(run, list.drawn.clock_ms) != Some(false))
        };
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
        if list.selected.as_ref() != Some(run) {
            return Vec::new();
        }
        let Some(action) = detail.wanted.take() else { return Vec::new() };
        let decides = action == Action::Approve;
        let is_loaded = if decides {
            detail.get().is_some_and(|detail| detail.sheet.is_some())
        } else {
            list.record().is_some_and(|run| !run.lacks_inputs())
        };
        match (is_loaded, decides) {
            (true, _) => self.act(action, list, filter, detail).unwrap_or_default(),
            (false, true) => vec![dialog_unavailable(run, detail)],
            (false, false) => vec![inputs_unavailable(detail)],
        }
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

/// Explains why a dialog that shows the inputs of the run does not open.
fn inputs_unavailable(detail: &DetailState) -> Effect {
    Effect::Toast(match detail.error() {
        Some(error) => format!("cannot load the inputs of the run: {}", shown(&error.message)),
        None => "the inputs of the run cannot be read".to_owned(),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use skills_api::{Code, RunDetail};
    use skills_store::RunOptions;

    /// Returns a failed run with these inputs.
    fn failed(inputs: &Value) -> RunRecord {
        serde_json::from_value(json!({
            "id": "a", "skill_id": "pay", "state": "failed", "held": false, "gate": null, "decided": null,
            "contract_digest": "c", "inputs": inputs, "target": null, "options": RunOptions::default(),
            "outputs": null, "error": null, "trace_id": "t", "started_by": "ana", "source": null,
            "progress": [0, 1], "step": null, "head": 0, "fence": 1, "created_ms": 0, "since_ms": 0,
            "expires_ms": null, "allowed": ["resume", "replay", "fork"],
        }))
        .unwrap()
    }

    /// Returns the state after the command for a run whose inputs are not loaded: it is requested, and nothing opens.
    fn requested(action: Action) -> (Dialogs, RunList, DetailState) {
        let run = failed(&Value::Null);
        let (mut dialogs, mut list, mut detail) =
            (Dialogs::default(), RunList::default(), DetailState::default());
        list.selected = Some(run.id.clone());
        detail.show(&run.id);
        list.runs.known.put(run.clone(), true);
        let effects = dialogs.act(action, &list, None, &mut detail);
        assert_eq!(effects, Some(vec![Effect::Run(RunRequest::Detail(run.id))]), "{action}");
        (dialogs, list, detail)
    }

    #[test]
    fn a_dialog_waits_for_inputs_that_the_list_leaves_out() {
        for action in [Action::Resume, Action::Replay, Action::Fork] {
            let (mut dialogs, mut list, mut detail) = requested(action);
            let loaded = failed(&json!({ "to": "mallory" }));
            let answer: RunDetail = serde_json::from_value(json!({
                "run": loaded, "contract_version": "1", "contract_unchanged": true, "steps": [], "checkpoints": [],
                "events": [], "decisions": [], "sheet": null, "descendants": [], "isolation": "",
            }))
            .unwrap();
            detail.take(&loaded.id, &Ok(Arc::new(answer)), Some(&loaded.id));
            list.runs.known.put(loaded.clone(), true);
            let opened = dialogs.open_awaited(&loaded.id, &list, None, &mut detail);
            let [Effect::OpenDialog(spec)] = &opened[..] else { panic!("{action}: {opened:?}") };
            let DialogSpec::RunCommand { run, .. } = &**spec else { panic!("{action}: {spec:?}") };
            assert_eq!(run.inputs, loaded.inputs, "{action}");
            assert!(dialogs.open_awaited(&loaded.id, &list, None, &mut detail).is_empty(), "{action}");
        }
    }

    #[test]
    fn a_dialog_without_inputs_is_refused_with_the_reason() {
        let (mut dialogs, list, mut detail) = requested(Action::Resume);
        let run = failed(&Value::Null).id;
        detail.take(&run, &Err(Error::new(Code::RateLimited, "try again later")), Some(&run));
        let refused = dialogs.open_awaited(&run, &list, None, &mut detail);
        let why = "cannot load the inputs of the run: try again later".to_owned();
        assert_eq!(refused, [Effect::Toast(why)]);
    }
}
