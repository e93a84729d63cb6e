//! The attachable skills, and the selected one.

use std::collections::HashSet;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::plan::Plan;
use crate::pane::{Draw, Effect, Picker, PickerKind};
use crate::theme::Role;
use crate::widgets::{Painter, Seg, Title, count, cut_end, shown, wrap_to};
use skills_registry::Catalog;
use skills_skill::{Invocation, Skill, SkillId};

/// The attachable skills, and the selected one.
#[derive(Default)]
pub(super) struct Skills {
    catalog: Arc<Catalog>,
    /// Attachable skills: runnable ones first, by name.
    pub offered: Vec<Arc<Skill>>,
    /// Skills that have a contract and can therefore run; empty until that is known.
    runnable: HashSet<SkillId>,
    /// Whether the user or another pane chose the skill.
    pub meant: bool,
    pub id: Option<SkillId>,
    /// Area of the last frame.
    pub area: Rect,
}

impl Skills {
    pub fn chosen(&self) -> Option<&Arc<Skill>> {
        self.find(self.id.as_ref()?)
    }

    pub fn find(&self, id: &SkillId) -> Option<&Arc<Skill>> {
        self.offered.iter().find(|skill| skill.id == *id)
    }

    pub fn take_catalog(&mut self, catalog: &Arc<Catalog>) {
        self.catalog = Arc::clone(catalog);
        let attachable = |skill: &&Arc<Skill>| skill.classification.invocation.value != Invocation::Direct;
        self.offered = catalog.entries.iter().map(|entry| &entry.skill).filter(attachable).cloned().collect();
        self.sort();
    }

    pub fn take_runnable(&mut self, runnable: HashSet<SkillId>) {
        self.runnable = runnable;
        self.sort();
    }

    fn sort(&mut self) {
        let runnable = &self.runnable;
        self.offered.sort_by(|a, b| {
            let key = |skill: &Arc<Skill>| (!runnable.contains(&skill.id), skill.name.clone());
            key(a).cmp(&key(b)).then_with(|| a.id.as_str().cmp(b.id.as_str()))
        });
    }

    /// Returns the skill to select as long as none was chosen.
    pub fn default_choice(&self) -> Option<SkillId> {
        self.offered.first().filter(|_| !self.meant).map(|skill| skill.id.clone())
    }

    /// Returns whether a skill is known to have no contract.
    pub fn has_no_contract(&self, id: &SkillId) -> bool {
        !self.runnable.is_empty() && !self.runnable.contains(id)
    }

    fn position(&self) -> Option<usize> {
        self.offered.iter().position(|skill| Some(&skill.id) == self.id.as_ref())
    }

    /// Returns the skill next to the selected one in the list.
    pub fn neighbor(&self, by: isize) -> Option<SkillId> {
        let last = self.offered.len().saturating_sub(1);
        let next = self.position().map_or(0, |at| at.saturating_add_signed(by).min(last));
        Some(self.offered.get(next)?.id.clone())
    }

    pub fn picker(&self) -> Vec<Effect> {
        if self.offered.is_empty() {
            return Vec::new();
        }
        let choice = |skill: &Arc<Skill>| {
            let targets: Vec<String> =
                skill.classification.attach_targets.iter().map(ToString::to_string).collect();
            let note = if self.has_no_contract(&skill.id) {
                "instructions only, no contract".to_owned()
            } else {
                targets.join(", ")
            };
            (skill.id.to_string(), shown(&skill.name), note)
        };
        vec![Effect::Pick(Picker {
            what: PickerKind::Attachable,
            title: "Skill to attach".to_owned(),
            choices: self.offered.iter().map(choice).collect(),
            current: self.position(),
        })]
    }

    pub fn draw(&mut self, y: u16, plan: Plan, focused: bool, buf: &mut Buffer, cx: &Draw<'_>) -> u16 {
        let band = Rect { x: plan.field, y, width: plan.width, height: 1 };
        self.area = band;
        let mut painter = Painter::new(buf, cx);
        plan.label("Skill", y, focused, &mut painter);
        painter.band(band, Role::Field);
        let Some(skill) = self.chosen() else {
            let gone = self.id.as_ref().map_or("select a skill", |_| "no longer in the catalog");
            painter.put(band.x + 1, y, gone, Role::Muted, band.width.saturating_sub(2));
            return y + 1;
        };
        let end = band.right().saturating_sub(1);
        let at = painter.right(end, y, painter.glyphs.open, Role::Muted);
        let role = skill.classification.role.value.to_string();
        let at = painter.right(at.saturating_sub(1), y, &role, Role::Muted);
        let available = at.saturating_sub(band.x + 2);
        let name = cut_end(&shown(&skill.name), available, painter.glyphs.ellipsis).into_owned();
        let (role, plus) =
            if focused { (Role::Strong, Modifier::BOLD) } else { (Role::Text, Modifier::empty()) };
        painter.put_plus(band.x + 1, y, &name, role, plus, available);
        if !plan.roomy {
            return y + 1;
        }
        let description = [Seg::new(shown(&skill.description), Role::Muted)];
        let lines = wrap_to(&description, plan.width, 2, painter.glyphs.ellipsis);
        for (line, y) in lines.iter().zip(y + 1..) {
            painter.line(plan.field, y, line, plan.width);
        }
        y + 1 + lines.len() as u16
    }

    /// Draws the pane without attachable skills: what was searched, and what makes a skill attachable.
    pub fn draw_empty(&self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
        let mut painter = Painter::new(buf, cx);
        Title::of("Attach", cx.focused).draw(&mut painter, area.x, area.y, area.width);
        let (all, roots) = (self.catalog.entries.len(), self.catalog.roots.len());
        let looked = match (all, roots) {
            (0, 0) => "no skills loaded yet".to_owned(),
            (0, _) => "no skills in any root".to_owned(),
            (1, _) => "the only skill cannot be attached".to_owned(),
            (all, _) => format!("none of {} skills can be attached", count(all)),
        };
        let text = [
            (looked, Role::Strong),
            (
                "A sidecar is attached to a target (a task, a run, a step output, a session transcript or an \
                    artifact) instead of being invoked directly."
                    .to_owned(),
                Role::Text,
            ),
            (
                "To make a skill attachable, set `invocation: attach` (or `both`) and `attach_targets: \
                    [run, output]` under metadata.classification in its SKILL.md, and add a contract \
                    (skill.yaml)."
                    .to_owned(),
                Role::Muted,
            ),
        ];
        let width = area.width.saturating_sub(4).min(76);
        let mut y = area.y + 2;
        for (message, role) in text {
            for line in wrap_to(&[Seg::new(shown(&message), role)], width, 4, painter.glyphs.ellipsis) {
                if y < area.bottom() {
                    painter.line(area.x + 2, y, &line, width);
                }
                y += 1;
            }
            y += 1;
        }
    }
}
