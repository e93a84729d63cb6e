//! The left part: skill, target, reference with its completions, inputs, and the button. Together they are the request.

use std::sync::Arc;

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::inputs::Inputs;
use super::last::LastResult;
use super::plan::Plan;
use super::preview::Preview;
use super::reference::Reference;
use super::skills::Skills;
use super::targets::Targets;
use crate::action::{Action, Context};
use crate::form::{Form, FormOutcome};
use crate::pane::{Draw, Effect};
use crate::run_requests::RunRequest;
use crate::theme::Role;
use crate::widgets::{Painter, Title, cut_end, shown};
use skills_api::{AttachCheck, AttachRequest, ContractView, Error, ExecutionOptions};
use skills_registry::Catalog;
use skills_skill::{AttachTarget, Skill, SkillId};

/// The parts that can have the focus, in the order of Tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Focus {
    #[default]
    Skill,
    Target,
    Reference,
    Inputs,
    Button,
    /// Next to the left part.
    Preview,
}

#[derive(Default)]
pub(super) struct Compose {
    pub focus: Focus,
    pub skills: Skills,
    pub targets: Targets,
    pub reference: Reference,
    pub inputs: Inputs,
    /// Whether the request changed since its preview was requested.
    pub changed: bool,
    /// Areas of the last frame.
    pub area: Rect,
    pub button: Rect,
}

impl Compose {
    pub fn form(&self) -> Option<&Form> {
        self.inputs.form(self.skills.id.as_ref())
    }

    pub fn form_mut(&mut self) -> Option<&mut Form> {
        self.inputs.form_mut(self.skills.id.as_ref())
    }

    fn skill(&self) -> Option<&Skill> {
        self.skills.chosen().map(Arc::as_ref)
    }

    /// Returns the current request, with the inputs that are valid.
    pub fn request(&self) -> Option<AttachRequest> {
        Some(AttachRequest {
            skill: self.skills.id.as_ref()?.to_string(),
            target_type: self.targets.chosen.map(|target| target.to_string()).unwrap_or_default(),
            target_ref: self.reference.text().to_owned(),
            inputs: self.form().map(Form::so_far).unwrap_or_default(),
            options: ExecutionOptions::default(),
            started_by: None,
            sessions: skills_api::SessionAccess::default(),
            local_files: None,
        })
    }

    /// Returns why it cannot be attached now, if so.
    pub fn blocked(&self, preview: &Preview) -> Option<String> {
        if self.skills.id.is_none() {
            return Some("no skill selected".to_owned());
        }
        if let Some(error) = preview.error() {
            return Some(shown(&error.message));
        }
        let failed = preview.failed().filter(|_| !preview.pending());
        // Without a reference, the check of the target fails as well.
        if let Some(failed) = failed.filter(|failed| failed.check != AttachCheck::Target) {
            let is_missing = |id| failed.check == AttachCheck::Exists && self.skills.has_no_contract(id);
            let has_none = self.skills.id.as_ref().is_some_and(is_missing);
            return Some(if has_none { "it has no contract".to_owned() } else { shown(&failed.note) });
        }
        if self.reference.text().is_empty() && self.targets.chosen.is_some() {
            return Some("enter a reference".to_owned());
        }
        if let Some(failed) = failed {
            return Some(shown(&failed.note));
        }
        if let Some(problem) = self.form().and_then(|form| form.problems().into_iter().next()) {
            return Some(format!("{} {}", shown(&problem.field), problem.why));
        }
        let remarked = preview.shown().and_then(|preview| preview.input_problems.first());
        if let Some((field, why)) = remarked.filter(|_| !preview.pending()) {
            return Some(format!("{}: {}", shown(field), shown(why)));
        }
        if preview.pending() {
            return Some("checking".to_owned());
        }
        (!preview.is_valid()).then(|| "checks failed".to_owned())
    }

    pub fn take_catalog(&mut self, catalog: &Arc<Catalog>) -> Vec<Effect> {
        self.skills.take_catalog(catalog);
        let mut effects = match self.skills.default_choice().filter(|_| self.skills.id.is_none()) {
            Some(first) => self.choose_skill(&first),
            None => self.request_again(),
        };
        effects.push(Effect::Run(RunRequest::Launchable));
        effects
    }

    pub fn take_runnable(&mut self, ready: impl Iterator<Item = SkillId>) -> Vec<Effect> {
        self.skills.take_runnable(ready.collect());
        match self.skills.default_choice() {
            Some(first) if self.skills.id.as_ref() != Some(&first) => self.choose_skill(&first),
            _ => Vec::new(),
        }
    }

    pub fn take_contract(&mut self, skill: &str, view: &Result<Arc<ContractView>, Error>) {
        let id = SkillId::new(skill);
        self.inputs.take_contract(&id, view);
        if self.skills.id.as_ref() == Some(&id) {
            if self.focus == Focus::Inputs && self.inputs.is_empty(Some(&id)) {
                self.focus = Focus::Button;
            }
            self.changed = true;
        }
    }

    /// Selects the skill that the user or another pane means.
    pub fn pick_skill(&mut self, id: &SkillId) -> Vec<Effect> {
        self.skills.meant = true;
        self.choose_skill(id)
    }

    /// Selects another skill and restores what was entered for it before.
    fn choose_skill(&mut self, id: &SkillId) -> Vec<Effect> {
        let Some(skill) = self.skills.find(id).cloned() else { return Vec::new() };
        self.skills.id = Some(skill.id.clone());
        self.changed = true;
        let targets = &skill.classification.attach_targets;
        let mut effects = Vec::new();
        if !self.targets.chosen.is_some_and(|target| targets.contains(&target)) {
            self.targets.chosen = targets.first().copied().or(self.targets.chosen);
            effects.extend(self.request_choices());
        }
        if self.inputs.contract(&skill.id).is_none() {
            effects.push(Effect::Run(RunRequest::Contract(skill.id.to_string())));
        }
        effects
    }

    /// Selects another type of target; the reference is kept because it may fit.
    fn choose_target(&mut self, target: AttachTarget) -> Vec<Effect> {
        if self.targets.chosen == Some(target) {
            return Vec::new();
        }
        (self.targets.chosen, self.changed) = (Some(target), true);
        self.request_choices().into_iter().collect()
    }

    pub fn visit(&mut self, skill: Option<&SkillId>, target: Option<&(String, String)>) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some((kind, reference)) = target {
            let kind: Option<AttachTarget> = kind.parse().ok();
            self.reference.field.set(reference);
            self.targets.chosen = kind.or(self.targets.chosen);
            // Select a skill that accepts the target and can run, unless the user chose one or the current one does. If
            // there is none, select none: one that cannot be attached would not help.
            let fits = |skill: &Arc<Skill>| {
                kind.is_none_or(|kind| skill.classification.attach_targets.contains(&kind))
                    && !self.skills.has_no_contract(&skill.id)
            };
            if skill.is_none() && !self.skills.chosen().is_some_and(fits) {
                let first =
                    self.skills.offered.iter().find(|skill| fits(skill)).map(|skill| skill.id.clone());
                match first {
                    Some(id) => effects.extend(self.choose_skill(&id)),
                    None => self.skills.id = None,
                }
            }
            effects.extend(self.request_choices());
        }
        self.skills.meant = true;
        if let Some(id) = skill {
            effects.extend(self.choose_skill(id));
        }
        self.focus = match (skill, target) {
            (Some(_), Some(_)) => Focus::Button,
            (None, Some(_)) => Focus::Skill,
            _ => Focus::Reference,
        };
        self.changed = true;
        effects
    }

    /// Requests everything again after events may have been missed.
    pub fn request_again(&mut self) -> Vec<Effect> {
        let Some(id) = self.skills.id.clone() else { return Vec::new() };
        self.changed = true;
        let contract = Effect::Run(RunRequest::Contract(id.to_string()));
        std::iter::once(contract).chain(self.request_choices()).collect()
    }

    fn request_choices(&mut self) -> Option<Effect> {
        self.targets.chosen.map(|target| self.reference.request(target))
    }

    /// Moves the focus to the next part that is not empty.
    fn turn(&mut self, forward: bool) -> Vec<Effect> {
        let parts =
            [Focus::Skill, Focus::Target, Focus::Reference, Focus::Inputs, Focus::Button, Focus::Preview];
        let by = if forward { 1 } else { parts.len() - 1 };
        let at = parts.iter().position(|part| *part == self.focus).unwrap_or(0);
        let mut next = (at + by) % parts.len();
        if parts[next] == Focus::Inputs {
            match self.form_mut().filter(|form| !form.is_empty()) {
                Some(form) if forward => form.first(),
                Some(form) => form.last(),
                None => next = (next + by) % parts.len(),
            }
        }
        self.focus_on(parts[next])
    }

    pub fn focus_on(&mut self, part: Focus) -> Vec<Effect> {
        if self.focus == Focus::Inputs
            && part != Focus::Inputs
            && let Some(form) = self.form_mut()
        {
            form.leave();
        }
        let came = self.focus != part;
        self.focus = part;
        if came && part == Focus::Reference {
            self.reference.filter();
            return self.request_choices().into_iter().collect();
        }
        Vec::new()
    }

    /// Handles a change of the reference.
    fn referred(&mut self, changed: bool) {
        if changed {
            self.reference.filter();
            self.changed = true;
        }
    }

    pub fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        match (self.focus, action) {
            (Focus::Inputs, Action::LeaveField | Action::Back) => Some(self.focus_on(Focus::Button)),
            (Focus::Inputs, _) => {
                let outcome = self.form_mut()?.act(action);
                self.changed |= outcome == FormOutcome::Changed;
                match outcome {
                    FormOutcome::Unknown => None,
                    FormOutcome::Stayed | FormOutcome::Changed => Some(Vec::new()),
                    FormOutcome::Before => Some(self.focus_on(Focus::Reference)),
                    FormOutcome::After => Some(self.focus_on(Focus::Button)),
                }
            }
            (_, Action::NextPart) => Some(self.turn(true)),
            (_, Action::PreviousPart) => Some(self.turn(false)),
            (Focus::Skill, Action::Open | Action::Fold | Action::Filter) => Some(self.skills.picker()),
            (Focus::Skill, Action::Up | Action::Down) => {
                let id = self.skills.neighbor(if action == Action::Up { -1 } else { 1 })?;
                let is_other = self.skills.id.as_ref() != Some(&id);
                Some(if is_other { self.pick_skill(&id) } else { Vec::new() })
            }
            (Focus::Target, Action::Open) => {
                Targets::accepted(self.skill()).next()?;
                Some(self.turn(true))
            }
            (Focus::Target, _) => {
                let target = self.targets.step(action, self.skill())?;
                Some(self.choose_target(target))
            }
            (Focus::Reference, Action::Submit) => {
                let changed = self.reference.complete();
                self.referred(changed);
                Some(self.turn(true))
            }
            (Focus::Reference, Action::LeaveField | Action::Back) | (Focus::Preview, Action::Back) => {
                self.focus = Focus::Button;
                Some(Vec::new())
            }
            (Focus::Reference, _) => {
                let changed = self.reference.act(action)?;
                self.referred(changed);
                Some(Vec::new())
            }
            _ => None,
        }
    }

    pub fn text_key(&mut self, key: KeyEvent) {
        if self.focus == Focus::Inputs {
            self.changed |= self.form_mut().is_some_and(|form| form.key(key));
        } else {
            let changed = self.reference.key(key);
            self.referred(changed);
        }
    }

    pub fn paste(&mut self, text: &str) {
        if self.focus == Focus::Inputs {
            self.changed |= self.form_mut().is_some_and(|form| form.paste(text));
        } else {
            let changed = self.reference.field.paste(text.trim());
            self.referred(changed);
        }
    }

    pub fn clicked(&mut self, at: Position) -> Vec<Effect> {
        if self.skills.area.contains(at) {
            let mut effects = self.focus_on(Focus::Skill);
            effects.extend(self.skills.picker());
            return effects;
        }
        if let Some(target) = self.targets.clicked(at) {
            let mut effects = self.focus_on(Focus::Target);
            match Targets::refuses(self.skill(), target) {
                Some(why) => effects.push(Effect::Toast(format!("{target}: {why}"))),
                None => effects.extend(self.choose_target(target)),
            }
            return effects;
        }
        if let Some(row) = self.reference.row_at(at) {
            self.reference.choices.scroll.cursor = row;
            let changed = self.reference.complete();
            self.referred(changed);
        } else if self.reference.area.contains(at) {
            let effects = self.focus_on(Focus::Reference);
            self.reference.field.click(at);
            return effects;
        } else if let Some(changed) = self.form_mut().and_then(|form| form.click(at)) {
            self.focus = Focus::Inputs;
            self.changed |= changed;
        }
        Vec::new()
    }

    pub fn rolled(&mut self, at: Position, down: bool) {
        if self.reference.row_at(at).is_some() {
            self.reference.scroll(if down { 1 } else { -1 });
        } else if self.area.contains(at)
            && self.focus == Focus::Inputs
            && let Some(form) = self.form_mut()
        {
            form.wheel(down);
        }
    }

    /// Draws the left part with the last result; returns the row of the last result's rule, if there is one.
    pub fn draw(
        &mut self,
        area: Rect,
        (blocked, last): (Option<String>, &mut LastResult),
        buf: &mut Buffer,
        cx: &mut Draw<'_>,
    ) -> Option<u16> {
        self.area = area;
        let (focus, pane_focused) = (self.focus, cx.focused);
        let focused = |part| pane_focused && focus == part;
        let on_left = pane_focused && focus != Focus::Preview;
        Title::of("Attach", on_left).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
        let plan = Plan::new(area);
        let gap = u16::from(plan.roomy);
        let mut y = area.y + 1 + gap;
        y = self.skills.draw(y, plan, focused(Focus::Skill), buf, cx) + gap;
        let skill = self.skills.chosen().map(Arc::as_ref);
        y = self.targets.draw(y, plan, (skill, focused(Focus::Target)), buf, cx) + gap;
        let last_height = last.height(plan);
        // The button and the last result keep their rows; completions and inputs share the rest.
        let below = 1 + gap + last_height + if last_height > 0 { gap } else { 0 };
        let end = area.bottom().saturating_sub(below);
        let skill = self.skills.id.as_ref();
        let inputs = self.inputs.least_height(skill, focus == Focus::Inputs);
        let of = (self.targets.chosen, focused(Focus::Reference));
        y = self.reference.draw((y, end.saturating_sub(inputs)), plan, of, buf, cx) + gap;
        let inputs = Rect { y, height: end.saturating_sub(y), ..area };
        y = self.inputs.draw(inputs, plan, (skill, focused(Focus::Inputs)), buf, cx);
        let y = (y + gap).min(area.bottom().saturating_sub(last_height + 1));
        self.button = draw_button(y, plan, (blocked, focused(Focus::Button)), &mut Painter::new(buf, cx));
        if last_height == 0 {
            return None;
        }
        let rule = (y + 1 + 2 * gap).min(area.bottom().saturating_sub(last_height));
        last.draw(Rect { y: rule, height: last_height, ..area }, buf, cx);
        Some(rule)
    }
}

/// Draws the button with why it cannot be pressed; returns its area.
fn draw_button(
    y: u16,
    plan: Plan,
    (blocked, focused): (Option<String>, bool),
    painter: &mut Painter<'_>,
) -> Rect {
    let key =
        painter.key(Action::Execute, &[Context::Attach]).map(|key| format!(" {key}")).unwrap_or_default();
    let text = match (painter.glyphs.ascii, blocked.is_none()) {
        (true, true) => format!("[ Attach{key} ]"),
        (true, false) => format!("  Attach{key}  "),
        (false, _) => format!("   Attach{key}  "),
    };
    if focused {
        painter.put(plan.area.x, y, painter.glyphs.gutter, Role::Gutter, 1);
    }
    let x = if plan.roomy { plan.field } else { plan.area.x + 2 };
    let end = if blocked.is_some() {
        let style = painter.theme.style(Role::Button).patch(painter.theme.style(Role::Muted));
        painter.styled(x, y, &text, style, plan.width)
    } else {
        painter.put(x, y, &text, Role::ButtonFocus, plan.width)
    };
    let available = plan.area.right().saturating_sub(end + 3);
    let message = blocked.unwrap_or_else(|| "all checks passed".to_owned());
    let message = cut_end(&message, available, painter.glyphs.ellipsis).into_owned();
    painter.put(end + 2, y, &message, Role::Muted, available);
    Rect::new(x, y, end - x, 1)
}
