//! The input forms of the skills.

use std::collections::HashMap;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::plan::Plan;
use crate::form::{Form, FormState};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, Seg, shown, wrap_to};
use skills_api::{ContractView, Error};
use skills_skill::SkillId;

/// Input forms by skill: returning to a skill restores what was entered.
#[derive(Default)]
pub(super) struct Inputs {
    forms: HashMap<SkillId, Form>,
    contracts: HashMap<SkillId, Result<Arc<ContractView>, Error>>,
}

impl Inputs {
    pub fn form(&self, skill: Option<&SkillId>) -> Option<&Form> {
        self.forms.get(skill?)
    }

    pub fn form_mut(&mut self, skill: Option<&SkillId>) -> Option<&mut Form> {
        self.forms.get_mut(skill?)
    }

    pub fn is_empty(&self, skill: Option<&SkillId>) -> bool {
        self.form(skill).is_none_or(Form::is_empty)
    }

    pub fn contract(&self, skill: &SkillId) -> Option<&Result<Arc<ContractView>, Error>> {
        self.contracts.get(skill)
    }

    pub fn forget_contract(&mut self, skill: &SkillId) {
        self.contracts.remove(skill);
    }

    pub fn take_contract(&mut self, id: &SkillId, view: &Result<Arc<ContractView>, Error>) {
        if let Ok(view) = view {
            let before = self.forms.get(id).map(Form::so_far).unwrap_or_default();
            let mut form = Form::new(&view.contract.inputs, &serde_json::Map::new());
            form.fill(&before);
            self.forms.insert(id.clone(), form);
        }
        self.contracts.insert(id.clone(), view.clone());
    }

    /// Returns the minimum number of rows.
    pub fn least_height(&self, skill: Option<&SkillId>, focused: bool) -> u16 {
        if self.is_empty(skill) { 1 } else { 2 + u16::from(focused) }
    }

    pub fn draw(
        &mut self,
        area: Rect,
        plan: Plan,
        (skill, focused): (Option<&SkillId>, bool),
        buf: &mut Buffer,
        cx: &mut Draw<'_>,
    ) -> u16 {
        if area.height == 0 {
            return area.y;
        }
        let mut painter = Painter::new(buf, cx);
        let rows = if self.is_empty(skill) { usize::from(area.height).min(4) } else { 1 };
        plan.label("Inputs", area.y, false, &mut painter);
        let about = [Seg::new(self.describe_inputs(skill), Role::Muted)];
        let lines = wrap_to(&about, plan.width, rows, painter.glyphs.ellipsis);
        for (line, y) in lines.iter().zip(area.y..) {
            painter.line(plan.field, y, line, plan.width);
        }
        let top = area.y + lines.len() as u16;
        let wide = area.width;
        let Some(form) = self.form_mut(skill).filter(|form| !form.is_empty()) else { return top };
        let label = form.label_width(4, (wide / 3).max(14)).max(plan.field - area.x);
        let mut look = FormState { indent: 4, label, roomy: plan.roomy, focused };
        let available = area.bottom().saturating_sub(top);
        let width = wide.saturating_sub(2);
        // Drop blank rows before fields.
        look.roomy = look.roomy && form.height(width, look) <= available;
        let height = form.height(width, look).min(available);
        form.draw(Rect { x: area.x, y: top, width, height }, look, buf, cx);
        top + height
    }

    fn describe_inputs(&self, skill: Option<&SkillId>) -> String {
        match skill.map(|skill| self.contract(skill)) {
            None => "inputs of the selected skill".to_owned(),
            Some(None) => "loading contract".to_owned(),
            Some(Some(Err(error))) => shown(&error.message),
            Some(Some(Ok(_))) if self.is_empty(skill) => "none".to_owned(),
            Some(Some(Ok(_))) => "from the contract".to_owned(),
        }
    }
}
