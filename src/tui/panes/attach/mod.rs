//! Pane 3: attaches a skill to a task, a run, an output, a transcript or an artifact. The four checks and the preview
//! of the request are updated while it is composed; nothing starts before the user confirms.

mod choices;
mod compose;
mod compose_view;
mod keys;
mod last;
mod mouse;
mod preview;
mod preview_view;
mod result_view;
mod view;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ratatui::layout::Rect;

use self::choices::Choices;
use self::last::LastAttachment;
use self::preview::PreviewState;
use crate::field::Field;
use crate::form::Form;
use crate::pane::{Effect, Message, PickerKind, Target};
use crate::run_requests::{RunRequest, RunResponse};
use skills_api::{ContractView, Error, Event};
use skills_registry::Catalogue;
use skills_skill::{AttachTarget, Invocation, Skill, SkillId};
use skills_store::EventKind;

/// Maximum number of references per request.
const CHOICES: usize = 200;

/// The parts that can have the focus, in the order of Tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    Skill,
    Target,
    Reference,
    Inputs,
    Button,
    Preview,
}

/// The command form of the request that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CommandForm {
    #[default]
    Cli,
    Curl,
}

/// Areas of the last frame.
#[derive(Debug, Default)]
struct FrameAreas {
    skill: Rect,
    targets: Vec<(Rect, AttachTarget)>,
    reference: Rect,
    choices: Vec<(Rect, usize)>,
    button: Rect,
    compose: Rect,
    preview: Rect,
    same: Vec<(Rect, CommandForm)>,
    run: Rect,
}

/// The state of pane 3.
#[derive(Default)]
pub struct Attach {
    catalogue: Arc<Catalogue>,
    /// Attachable skills: runnable ones first, by name.
    offered: Vec<Arc<Skill>>,
    /// Skills that have a contract and can therefore run; empty until that is known.
    runnable: HashSet<SkillId>,
    /// Whether the user or another pane chose the skill.
    meant: bool,
    skill: Option<SkillId>,
    target: Option<AttachTarget>,
    reference: Field,
    choices: Choices,
    /// Input forms by skill: returning to a skill restores what was entered.
    forms: HashMap<SkillId, Form>,
    contracts: HashMap<SkillId, Result<Arc<ContractView>, Error>>,
    focus: Focus,
    preview: PreviewState,
    same: CommandForm,
    /// Counter of attachments; `sending` is the last one that was sent and has no response yet.
    ticket: u64,
    sending: Option<u64>,
    last: Option<LastAttachment>,
    /// Whether the last attachment's run is being loaded, and whether it has changed since.
    following: (bool, bool),
    wanted: Vec<Effect>,
    drawn: FrameAreas,
}

impl Attach {
    /// Creates a pane without a selection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn chosen(&self) -> Option<&Arc<Skill>> {
        let id = self.skill.as_ref()?;
        self.offered.iter().find(|skill| skill.id == *id)
    }

    fn form(&self) -> Option<&Form> {
        self.forms.get(self.skill.as_ref()?)
    }

    fn form_mut(&mut self) -> Option<&mut Form> {
        self.forms.get_mut(self.skill.as_ref()?)
    }

    fn news(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Catalogue(catalogue) => self.take_catalogue(catalogue),
            Message::Event(Event::Catalogue(change)) => {
                for id in change.changed.iter().chain(&change.removed).chain(&change.added) {
                    self.contracts.remove(id);
                }
                self.take_catalogue(&change.catalogue)
            }
            Message::Event(Event::Replaced) => {
                // The last attachment and its target belong to the previous store.
                (self.last, self.sending, self.following) = (None, None, (false, false));
                self.request_again()
            }
            Message::Picked(PickerKind::Attachable, id) => {
                self.meant = true;
                self.choose_skill(&SkillId::new(id))
            }
            Message::Picked(PickerKind::CopyAs, what) => self.copy_as(what),
            Message::Visit(Target::Attach { skill, target }) => self.visit(skill.as_ref(), target.as_ref()),
            Message::Run(response) => self.on_response(response),
            _ => Vec::new(),
        }
    }

    fn on_response(&mut self, response: &RunResponse) -> Vec<Effect> {
        match response {
            RunResponse::AttachPreview(generation, preview) => {
                if self.preview.take(*generation, preview)
                    && let Ok(preview) = preview
                    && let Some(form) = self.form_mut()
                {
                    form.remark(&preview.input_problems);
                }
                Vec::new()
            }
            RunResponse::Targets(generation, found) => {
                self.choices.take(*generation, found, self.reference.text());
                Vec::new()
            }
            RunResponse::Contract(skill, view) => self.take_contract(skill, view),
            RunResponse::Launchable(Ok(ready)) => {
                self.runnable = ready.iter().map(|(id, _)| id.clone()).collect();
                self.sort();
                match self.offered.first().map(|skill| skill.id.clone()) {
                    Some(first) if !self.meant && self.skill.as_ref() != Some(&first) => {
                        self.choose_skill(&first)
                    }
                    _ => Vec::new(),
                }
            }
            RunResponse::Attached(ticket, attached) if self.sending == Some(*ticket) => {
                self.sending = None;
                self.last = Some(LastAttachment::of(attached));
                self.following = (false, false);
                // The next key is likely for the run and must not be typed into a field.
                self.focus = Focus::Button;
                let mut effects = self.request_preview();
                // The run may have continued before this response arrived.
                effects.extend(self.request_last());
                effects
            }
            RunResponse::Following => {
                let mut effects = self.request_again();
                effects.extend(self.request_last());
                effects
            }
            RunResponse::Detail(run, answer) => {
                let again = std::mem::take(&mut self.following).1;
                if let (Some(last), Ok(detail)) = (&mut self.last, answer)
                    && last.run() == Some(run)
                {
                    last.goes_on(detail);
                }
                if again { self.request_last() } else { Vec::new() }
            }
            RunResponse::Events(events) => {
                let text = self.reference.text();
                let of_target = |id: &str| !text.is_empty() && text.starts_with(id);
                if events.iter().any(|event| of_target(&event.run.0)) {
                    // The preview is requested at the next draw: events may arrive faster than frames.
                    self.preview.grow_old();
                }
                let last = self.last.as_ref().and_then(LastAttachment::run);
                let telling = |event: &skills_store::RunEvent| {
                    Some(&event.run) == last && event.event.kind != EventKind::StepLog
                };
                if events.iter().any(telling) { self.request_last() } else { Vec::new() }
            }
            _ => Vec::new(),
        }
    }

    fn take_catalogue(&mut self, catalogue: &Arc<Catalogue>) -> Vec<Effect> {
        self.catalogue = Arc::clone(catalogue);
        let attachable = |skill: &&Arc<Skill>| skill.classification.invocation.value != Invocation::Direct;
        self.offered =
            catalogue.entries.iter().map(|entry| &entry.skill).filter(attachable).cloned().collect();
        self.sort();
        let mut effects = match (&self.skill, self.offered.first().map(|skill| skill.id.clone())) {
            (None, Some(first)) if !self.meant => self.choose_skill(&first),
            _ => self.request_again(),
        };
        effects.push(Effect::Run(RunRequest::Launchable));
        effects
    }

    fn sort(&mut self) {
        let runnable = &self.runnable;
        self.offered.sort_by(|a, b| {
            let key = |skill: &Arc<Skill>| (!runnable.contains(&skill.id), skill.name.clone());
            key(a).cmp(&key(b)).then_with(|| a.id.as_str().cmp(b.id.as_str()))
        });
    }

    /// Returns whether a skill is known to have no contract.
    fn lacks_contract(&self, id: &SkillId) -> bool {
        !self.runnable.is_empty() && !self.runnable.contains(id)
    }

    fn take_contract(&mut self, skill: &str, view: &Result<Arc<ContractView>, Error>) -> Vec<Effect> {
        let id = SkillId::new(skill);
        if let Ok(view) = view {
            let before = self.forms.get(&id).map(Form::so_far).unwrap_or_default();
            let mut form = Form::new(&view.contract.inputs, &serde_json::Map::new());
            form.fill(&before);
            self.forms.insert(id.clone(), form);
        }
        self.contracts.insert(id.clone(), view.clone());
        if self.skill.as_ref() == Some(&id) {
            if self.focus == Focus::Inputs && self.form().is_none_or(Form::is_empty) {
                self.focus = Focus::Button;
            }
            return self.request_preview();
        }
        Vec::new()
    }

    /// Selects another skill and restores what was entered for it before.
    fn choose_skill(&mut self, id: &SkillId) -> Vec<Effect> {
        let Some(skill) = self.offered.iter().find(|skill| skill.id == *id).cloned() else {
            return Vec::new();
        };
        self.skill = Some(skill.id.clone());
        let targets = &skill.classification.attach_targets;
        let mut effects = Vec::new();
        if !self.target.is_some_and(|target| targets.contains(&target)) {
            self.target = targets.first().copied().or(self.target);
            effects.extend(self.request_choices());
        }
        if self.contracts.contains_key(&skill.id) {
            effects.extend(self.request_preview());
        } else {
            effects.push(Effect::Run(RunRequest::Contract(skill.id.to_string())));
            effects.extend(self.request_preview());
        }
        effects
    }

    /// Selects another type of target; the reference is kept because it may fit.
    fn choose_target(&mut self, target: AttachTarget) -> Vec<Effect> {
        if self.target == Some(target) {
            return Vec::new();
        }
        self.target = Some(target);
        let mut effects = self.request_choices();
        effects.extend(self.request_preview());
        effects
    }

    fn visit(&mut self, skill: Option<&SkillId>, target: Option<&(String, String)>) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some((kind, reference)) = target {
            let kind: Option<AttachTarget> = kind.parse().ok();
            self.reference.set(reference);
            self.target = kind.or(self.target);
            let takes = |skill: &Arc<Skill>| {
                kind.is_none_or(|kind| skill.classification.attach_targets.contains(&kind))
            };
            // Select a skill that accepts the target and can run, unless the user chose one or the current one does. If
            // there is none, select none: one that cannot be attached would not help.
            let fits = |skill: &Arc<Skill>| takes(skill) && !self.lacks_contract(&skill.id);
            if skill.is_none() && !self.chosen().is_some_and(fits) {
                let first = self.offered.iter().find(|skill| fits(skill)).map(|skill| skill.id.clone());
                if let Some(id) = first {
                    effects.extend(self.choose_skill(&id));
                } else {
                    self.skill = None;
                    self.preview.clear();
                }
            }
            effects.extend(self.request_choices());
        }
        self.meant = true;
        if let Some(id) = skill {
            effects.extend(self.choose_skill(id));
        }
        self.focus = match (skill, target) {
            (Some(_), Some(_)) => Focus::Button,
            (None, Some(_)) => Focus::Skill,
            _ => Focus::Reference,
        };
        effects.extend(self.request_preview());
        effects
    }

    /// Requests the state of the last attachment's run; while a request is in progress, the next one waits for its
    /// response.
    fn request_last(&mut self) -> Vec<Effect> {
        let Some(run) = self.last.as_ref().and_then(LastAttachment::run).cloned() else { return Vec::new() };
        if self.following.0 {
            self.following.1 = true;
            return Vec::new();
        }
        self.following.0 = true;
        vec![Effect::Run(RunRequest::Detail(run))]
    }

    /// Requests everything again after events may have been missed.
    fn request_again(&mut self) -> Vec<Effect> {
        let Some(id) = self.skill.clone() else { return Vec::new() };
        let mut effects = vec![Effect::Run(RunRequest::Contract(id.to_string()))];
        effects.extend(self.request_choices());
        effects.extend(self.request_preview());
        effects
    }

    fn request_choices(&mut self) -> Vec<Effect> {
        let Some(target_type) = self.target else { return Vec::new() };
        let generation = self.choices.ask(target_type);
        let ask = RunRequest::Targets { target_type, text: String::new(), limit: CHOICES, generation };
        vec![Effect::Run(ask)]
    }
}
