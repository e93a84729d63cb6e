//! Draws the left part: skill, target, reference with its completions, inputs, and the button.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use strum::IntoEnumIterator as _;

use super::{Attach, Focus};
use crate::form::{Form, FormState};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::painter::Painter;
use crate::widgets::relative_time::age;
use crate::widgets::rich::Seg;
use crate::widgets::rule::Title;
use crate::widgets::text_width::{cells, cut_end, cut_middle, shown};
use crate::widgets::wrap::wrap_to;
use skills_skill::{AttachTarget, SkillId};

/// Minimum height for blank rows between parts.
const ROOMY: u16 = 30;
/// Maximum number of rows of completions.
const COMPLETIONS: usize = 6;

/// The layout of the left part in this frame.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub area: Rect,
    /// Column at which the fields begin.
    pub field: u16,
    /// Width of the fields.
    pub width: u16,
    /// Whether there are blank rows.
    pub roomy: bool,
}

impl Attach {
    /// Draws the left part; returns the row of the last result's rule, if there is one.
    pub(super) fn draw_compose(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) -> Option<u16> {
        self.drawn.compose = area;
        let focused = cx.focused && self.focus != Focus::Preview;
        Title::of("Attach", focused).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
        let roomy = area.height >= ROOMY;
        let label = if area.width < 50 { 10 } else { 14 };
        let plan = Plan { area, field: area.x + label, width: area.width.saturating_sub(label + 2), roomy };
        let gap = u16::from(roomy);
        let mut y = area.y + 1 + gap;
        y = self.draw_skill(y, plan, buf, cx) + gap;
        y = self.draw_targets(y, plan, buf, cx) + gap;
        let last = self.last_height(plan);
        // The button and the last result keep their rows; completions and inputs share the rest.
        let below = 1 + gap + last + if last > 0 { gap } else { 0 };
        let end = area.bottom().saturating_sub(below);
        let inputs = self.inputs_least();
        y = self.draw_reference(y, end.saturating_sub(inputs), plan, buf, cx) + gap;
        y = self.draw_inputs(Rect { y, height: end.saturating_sub(y), ..area }, plan, buf, cx);
        let y = (y + gap).min(area.bottom().saturating_sub(last + 1));
        self.draw_button(y, plan, buf, cx);
        if last == 0 {
            return None;
        }
        let rule = (y + 1 + 2 * gap).min(area.bottom().saturating_sub(last));
        self.draw_last(Rect { y: rule, height: last, ..area }, buf, cx);
        Some(rule)
    }

    fn focused(&self, part: Focus, cx: &Draw<'_>) -> bool {
        cx.focused && self.focus == part
    }

    fn draw_skill(&mut self, y: u16, plan: Plan, buf: &mut Buffer, cx: &Draw<'_>) -> u16 {
        let focused = self.focused(Focus::Skill, cx);
        let band = Rect { x: plan.field, y, width: plan.width, height: 1 };
        self.drawn.skill = band;
        let mut painter = Painter::new(buf, cx);
        part_label("Skill", y, plan, focused, &mut painter);
        painter.band(band, Role::Field);
        let Some(skill) = self.chosen() else {
            let gone = self.skill.as_ref().map_or("select a skill", |_| "no longer in the catalog");
            painter.put(band.x + 1, y, gone, Role::Muted, band.width.saturating_sub(2));
            return y + 1;
        };
        let end = band.right().saturating_sub(1);
        let at = painter.right(end, y, painter.glyphs.open, Role::Muted);
        let role = skill.classification.role.value.to_string();
        let at = painter.right(at.saturating_sub(1), y, &role, Role::Muted);
        let available = at.saturating_sub(band.x + 2);
        let name = cut_end(&shown(&skill.name), available, painter.glyphs.ellipsis).into_owned();
        let plus = if focused { Modifier::BOLD } else { Modifier::empty() };
        painter.put_plus(
            band.x + 1,
            y,
            &name,
            if focused { Role::Strong } else { Role::Text },
            plus,
            available,
        );
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

    fn draw_targets(&mut self, y: u16, plan: Plan, buf: &mut Buffer, cx: &Draw<'_>) -> u16 {
        let focused = self.focused(Focus::Target, cx);
        let mut painter = Painter::new(buf, cx);
        part_label("Target", y, plan, focused, &mut painter);
        let kinds: Vec<(AttachTarget, Option<&str>)> =
            AttachTarget::iter().map(|target| (target, self.refuses(target))).collect();
        if plan.roomy {
            for ((target, why), y) in kinds.iter().zip(y..) {
                let end = self.draw_target(plan.field, y, *target, *why, focused, &mut painter);
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
            x = self.draw_target(x, row, *target, *why, focused, &mut painter) + 2;
        }
        row + 1
    }

    fn draw_target(
        &mut self,
        x: u16,
        y: u16,
        target: AttachTarget,
        why: Option<&str>,
        focused: bool,
        painter: &mut Painter<'_>,
    ) -> u16 {
        let on = self.target == Some(target);
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
        self.drawn.targets.push((Rect::new(x, y, end - x, 1), target));
        end
    }

    /// Draws the reference and its completions, down to `end`.
    fn draw_reference(&mut self, y: u16, end: u16, plan: Plan, buf: &mut Buffer, cx: &mut Draw<'_>) -> u16 {
        let focused = self.focused(Focus::Reference, cx);
        let band = Rect { x: plan.field, y, width: plan.width, height: 1 };
        self.drawn.reference = band;
        let mut painter = Painter::new(buf, cx);
        part_label("Ref", y, plan, focused, &mut painter);
        painter.band(band, Role::Field);
        let line = Rect { x: band.x + 1, width: band.width.saturating_sub(2), ..band };
        let cursor = self.reference.draw(line, painter.buf, cx.theme.style(Role::Text), &[]);
        if focused {
            cx.cursor = cursor;
        }
        let mut painter = Painter::new(buf, cx);
        if self.reference.is_empty() {
            let ghost = cut_end(example(self.target), line.width, painter.glyphs.ellipsis).into_owned();
            painter.put(line.x, y, &ghost, Role::Muted, line.width);
        } else if focused
            && let Some(x) = self.reference.column(self.reference.text().len())
            && let Some(ghost) = self.completion()
        {
            let available = line.right().saturating_sub(x);
            let ghost = cut_end(&shown(ghost), available, painter.glyphs.ellipsis).into_owned();
            painter.put(x, y, &ghost, Role::Muted, available);
        }
        if !focused {
            return y + 1;
        }
        let available = usize::from(end.saturating_sub(y + 1)).min(COMPLETIONS);
        let len = self.choices.len();
        if len == 0 && available > 0 {
            let said = self.no_choices();
            painter.put(plan.field + 1, y + 1, &said, Role::Muted, plan.width.saturating_sub(1));
            return y + 2;
        }
        let height = available.min(len);
        self.choices.scroll.follow(len, height);
        for row in 0..height {
            let place = Rect { x: plan.field, y: y + 1 + row as u16, width: plan.width, height: 1 };
            self.draw_choice(self.choices.scroll.offset + row, place, buf, cx);
        }
        y + 1 + height as u16
    }

    fn no_choices(&self) -> String {
        let Some(target) = self.target else { return "select a target type first".to_owned() };
        if self.choices.none() {
            match target {
                AttachTarget::Task => "no open tasks; type task:ID",
                AttachTarget::Run => "no runs yet; press n in Runs to launch one",
                AttachTarget::Output => "no outputs yet",
                AttachTarget::Transcript => "no transcripts yet",
                AttachTarget::Artifact => "no artifacts yet; type the path of a file",
            }
            .to_owned()
        } else {
            "not in the list; used as typed".to_owned()
        }
    }

    fn draw_choice(&mut self, row: usize, place: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
        let Some(choice) = self.choices.get(row).cloned() else { return };
        let on = row == self.choices.scroll.cursor;
        let mut painter = Painter::new(buf, cx);
        painter.band(place, if on { Role::Selection } else { Role::Field });
        if on {
            painter.put(place.x, place.y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        self.drawn.choices.push((place, row));
        let end = place.right().saturating_sub(1);
        let mut at = end;
        if let Some(ms) = choice.at_ms {
            at = painter.right(end, place.y, &format!("{:>4}", age(cx.clock_ms - ms)), Role::Muted);
        }
        let text = shown(&choice.target_ref);
        let least = cells(&text).min(place.width / 2);
        let available = at.saturating_sub(place.x + 1 + least + 3);
        let label = cut_end(&shown(&choice.label), available, painter.glyphs.ellipsis).into_owned();
        if cells(&label) > 3 {
            at = painter.right(at.saturating_sub(1), place.y, &label, Role::Muted);
        }
        let available = at.saturating_sub(place.x + 2);
        let text = cut_middle(&text, available, painter.glyphs.ellipsis).into_owned();
        let marked = self.choices.fuzzy.letters(&text);
        let mut x = place.x + 1;
        for (index, letter) in text.chars().enumerate() {
            let plus =
                if marked.contains(&(index as u32)) { Modifier::UNDERLINED } else { Modifier::empty() };
            let role = if marked.contains(&(index as u32)) { Role::Strong } else { Role::Text };
            x = painter.put_plus(x, place.y, letter.encode_utf8(&mut [0; 4]), role, plus, 2);
        }
    }

    /// Returns the minimum number of rows of the inputs.
    fn inputs_least(&self) -> u16 {
        match self.form() {
            Some(form) if !form.is_empty() => 2 + u16::from(self.focus == Focus::Inputs),
            _ => 1,
        }
    }

    fn draw_inputs(&mut self, area: Rect, plan: Plan, buf: &mut Buffer, cx: &mut Draw<'_>) -> u16 {
        if area.height == 0 {
            return area.y;
        }
        let focused = self.focused(Focus::Inputs, cx);
        let mut painter = Painter::new(buf, cx);
        let said = self.about_inputs();
        let has_fields = self.form().is_some_and(|form| !form.is_empty());
        part_label("Inputs", area.y, plan, false, &mut painter);
        let lines = wrap_to(
            &[Seg::new(said, Role::Muted)],
            plan.width,
            if has_fields { 1 } else { usize::from(area.height).min(4) },
            painter.glyphs.ellipsis,
        );
        for (line, y) in lines.iter().zip(area.y..) {
            painter.line(plan.field, y, line, plan.width);
        }
        let top = area.y + lines.len() as u16;
        let wide = area.width;
        let Some(form) = self.form_mut().filter(|form| !form.is_empty()) else { return top };
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

    fn about_inputs(&self) -> String {
        let of = |skill: &SkillId| self.contracts.get(skill);
        match self.skill.as_ref().and_then(of) {
            None if self.skill.is_none() => "inputs of the selected skill".to_owned(),
            None => "loading contract".to_owned(),
            Some(Err(error)) => shown(&error.message),
            Some(Ok(_)) if self.form().is_none_or(Form::is_empty) => "none".to_owned(),
            Some(Ok(_)) => "from the skill's input schema".to_owned(),
        }
    }

    fn draw_button(&mut self, y: u16, plan: Plan, buf: &mut Buffer, cx: &Draw<'_>) {
        let blocked = self.blocked();
        let focused = self.focused(Focus::Button, cx);
        let mut painter = Painter::new(buf, cx);
        let key = " ^S";
        let text = match (painter.glyphs.ascii, blocked.is_none()) {
            (true, true) => format!("[ Attach{key} ]"),
            (true, false) => format!("  Attach{key}  "),
            (false, _) => format!("   Attach{key}  "),
        };
        if focused {
            painter.put(plan.area.x, y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        let role = if blocked.is_none() { Role::ButtonFocus } else { Role::Button };
        let x = if plan.roomy { plan.field } else { plan.area.x + 2 };
        let end = if blocked.is_some() {
            let style = cx.theme.style(Role::Button).patch(cx.theme.style(Role::Muted));
            painter.styled(x, y, &text, style, plan.width)
        } else {
            painter.put(x, y, &text, role, plan.width)
        };
        self.drawn.button = Rect::new(x, y, end - x, 1);
        let available = plan.area.right().saturating_sub(end + 3);
        let said = blocked.unwrap_or_else(|| "all checks passed".to_owned());
        let said = cut_end(&said, available, painter.glyphs.ellipsis).into_owned();
        painter.put(end + 2, y, &said, Role::Muted, available);
    }
}

fn part_label(label: &str, y: u16, plan: Plan, focused: bool, painter: &mut Painter<'_>) {
    if focused {
        painter.put(plan.area.x, y, painter.glyphs.gutter, Role::Gutter, 1);
    }
    let role = if focused { Role::Strong } else { Role::Muted };
    painter.put(plan.area.x + 2, y, label, role, plan.field.saturating_sub(plan.area.x + 2));
}

/// Returns an example for an empty reference.
fn example(target: Option<AttachTarget>) -> &'static str {
    match target {
        Some(AttachTarget::Task) => "task:ID",
        Some(AttachTarget::Run) => "a run's id",
        Some(AttachTarget::Output) => "RUN/STEP",
        Some(AttachTarget::Transcript) => "session:ID",
        Some(AttachTarget::Artifact) => "artifact:DIGEST, or a file's path",
        None => "select a target first",
    }
}
