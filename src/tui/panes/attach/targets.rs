//! The type of the target.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use strum::IntoEnumIterator as _;

use super::plan::Plan;
use crate::action::Action;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, cells};
use skills_skill::{AttachTarget, Skill};

/// The selected type of target.
#[derive(Default)]
pub(super) struct Targets {
    pub chosen: Option<AttachTarget>,
    /// Areas of the last frame.
    pub areas: Vec<(Rect, AttachTarget)>,
}

impl Targets {
    /// Returns why a type of target cannot be chosen, if so.
    pub fn refuses(skill: Option<&Skill>, target: AttachTarget) -> Option<&'static str> {
        (!skill?.classification.attach_targets.contains(&target)).then_some("not accepted by this skill")
    }

    pub fn accepted(skill: Option<&Skill>) -> impl Iterator<Item = AttachTarget> {
        AttachTarget::iter().filter(move |target| Self::refuses(skill, *target).is_none())
    }

    /// Returns the type that an action selects.
    pub fn step(&self, action: Action, skill: Option<&Skill>) -> Option<AttachTarget> {
        let kinds: Vec<AttachTarget> = Self::accepted(skill).collect();
        let at = kinds.iter().position(|target| Some(*target) == self.chosen);
        let last = kinds.len().checked_sub(1)?;
        let next = match action {
            Action::Up => at.map_or(last, |at| at.saturating_sub(1)),
            Action::Down => at.map_or(0, |at| (at + 1).min(last)),
            Action::Top => 0,
            Action::Bottom => last,
            Action::Fold => at.map_or(0, |at| (at + 1) % kinds.len()),
            _ => return None,
        };
        Some(kinds[next])
    }

    pub fn clicked(&self, at: Position) -> Option<AttachTarget> {
        self.areas.iter().find(|(area, _)| area.contains(at)).map(|(_, target)| *target)
    }

    pub fn draw(
        &mut self,
        y: u16,
        plan: Plan,
        (skill, focused): (Option<&Skill>, bool),
        buf: &mut Buffer,
        cx: &Draw<'_>,
    ) -> u16 {
        let mut painter = Painter::new(buf, cx);
        plan.label("Target", y, focused, &mut painter);
        self.areas.clear();
        let kinds: Vec<(AttachTarget, Option<&str>)> =
            AttachTarget::iter().map(|target| (target, Self::refuses(skill, target))).collect();
        if plan.roomy {
            for ((target, why), y) in kinds.iter().zip(y..) {
                let end = self.draw_one(plan.field, y, *target, *why, focused, &mut painter);
                if let Some(why) = why {
                    let x = (plan.field + 14).max(end + 2);
                    painter.put(x, y, why, Role::Muted, plan.area.right().saturating_sub(x + 1));
                }
            }
            return y + kinds.len() as u16;
        }
        // In a small window they are in a row, and the reason for unavailable ones is shown once.
        let (mut x, mut row) = (plan.field, y);
        for (target, why) in &kinds {
            let width = cells(&target.to_string()) + 2;
            if x > plan.field && x + width > plan.field + plan.width {
                (x, row) = (plan.field, row + 1);
            }
            x = self.draw_one(x, row, *target, *why, focused, &mut painter) + 2;
        }
        row + 1
    }

    fn draw_one(
        &mut self,
        x: u16,
        y: u16,
        target: AttachTarget,
        why: Option<&str>,
        focused: bool,
        painter: &mut Painter<'_>,
    ) -> u16 {
        let on = self.chosen == Some(target);
        let role = match (why.is_some(), on) {
            (true, _) => Role::Muted,
            (false, true) => Role::Strong,
            (false, false) => Role::Text,
        };
        let sign = match (why.is_some(), on) {
            // An unavailable type has no ring, because without color it could not be muted.
            (true, false) => painter.glyphs.dot,
            (_, true) => painter.glyphs.set,
            (false, false) => painter.glyphs.pending,
        };
        painter.put(x, y, sign, if on && focused { Role::Accent } else { role }, 1);
        let name = target.to_string();
        let end = if on && why.is_none() {
            painter.put_plus(x + 2, y, &name, role, Modifier::BOLD, 12)
        } else {
            painter.put(x + 2, y, &name, role, 12)
        };
        self.areas.push((Rect::new(x, y, end - x, 1), target));
        end
    }
}
