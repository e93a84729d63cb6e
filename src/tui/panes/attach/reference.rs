//! The reference of the target, with its completions.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use nucleo_matcher::Utf32String;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;

use super::plan::Plan;
use crate::action::{Action, Context};
use crate::field::Field;
use crate::keymap::mention;
use crate::pane::{Draw, Effect};
use crate::run_requests::RunRequest;
use crate::theme::Role;
use crate::widgets::fuzzy::Fuzzy;
use crate::widgets::{Painter, Scroll, age, cells, cut_end, cut_middle, shown};
use skills_api::{Error, TargetChoice};
use skills_skill::AttachTarget;

/// Maximum number of references per request.
const CHOICES: usize = 200;
/// Maximum number of rows of completions.
const COMPLETIONS: usize = 6;

/// The reference and its completions.
#[derive(Default)]
pub(super) struct Reference {
    pub field: Field,
    pub choices: Choices,
    /// Areas of the last frame: the field, and the completions.
    pub area: Rect,
    pub rows: Vec<(Rect, usize)>,
}

impl Reference {
    pub fn text(&self) -> &str {
        self.field.text().trim()
    }

    pub fn request(&mut self, target_type: AttachTarget) -> Effect {
        let generation = self.choices.ask(target_type);
        Effect::Run(RunRequest::Targets { target_type, text: String::new(), limit: CHOICES, generation })
    }

    pub fn take(&mut self, generation: u64, found: &Result<Arc<[TargetChoice]>, Error>) {
        self.choices.take(generation, found, self.field.text());
    }

    /// Filters the completions by the text.
    pub fn filter(&mut self) {
        self.choices.filter(self.field.text());
    }

    /// Handles an action; returns whether the text changed, or `None` if it does not handle it.
    pub fn act(&mut self, action: Action) -> Option<bool> {
        let rows = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -self.choices.scroll.page(),
            Action::PageDown => self.choices.scroll.page(),
            Action::Clear => return Some(self.field.kill_to_start()),
            _ => return None,
        };
        self.scroll(rows);
        Some(false)
    }

    pub fn scroll(&mut self, rows: isize) {
        let len = self.choices.len();
        self.choices.scroll.by(rows, len);
    }

    /// Handles a key; returns whether the text changed.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        if self.takes_completion(key) { self.complete() } else { self.field.key(key) }
    }

    /// Returns whether a key accepts the completion that is shown after the text.
    fn takes_completion(&self, key: KeyEvent) -> bool {
        let continues = matches!(
            (key.code, key.modifiers),
            (KeyCode::Right | KeyCode::End, KeyModifiers::NONE)
                | (KeyCode::Char('f' | 'e'), KeyModifiers::CONTROL)
        );
        continues && self.field.cursor() == self.field.text().len() && self.completion().is_some()
    }

    /// Returns the rest of the reference under the cursor if it begins with the entered text.
    fn completion(&self) -> Option<&str> {
        let rest = self.choices.under_cursor()?.target_ref.strip_prefix(self.field.text())?;
        (!rest.is_empty()).then_some(rest)
    }

    /// Accepts the reference under the cursor; returns whether the text changed. A complete input is kept.
    pub fn complete(&mut self) -> bool {
        let Some(choice) = self.choices.under_cursor() else { return false };
        let text = choice.target_ref.clone();
        if text == self.field.text() {
            return false;
        }
        self.field.set(&text);
        true
    }

    /// Returns the row of the completion at a position.
    pub fn row_at(&self, at: Position) -> Option<usize> {
        self.rows.iter().find(|(area, _)| area.contains(at)).map(|(_, row)| *row)
    }

    /// Draws the field and its completions, down to `end`.
    pub fn draw(
        &mut self,
        (y, end): (u16, u16),
        plan: Plan,
        (target, focused): (Option<AttachTarget>, bool),
        buf: &mut Buffer,
        cx: &mut Draw<'_>,
    ) -> u16 {
        let band = Rect { x: plan.field, y, width: plan.width, height: 1 };
        self.area = band;
        self.rows.clear();
        let mut painter = Painter::new(buf, cx);
        plan.label("Ref", y, focused, &mut painter);
        painter.band(band, Role::Field);
        let line = Rect { x: band.x + 1, width: band.width.saturating_sub(2), ..band };
        let cursor = self.field.draw(line, painter.buf, cx.theme.style(Role::Text), &[]);
        if focused {
            cx.cursor = cursor;
        }
        let mut painter = Painter::new(buf, cx);
        if self.field.is_empty() {
            let ghost = cut_end(example(target), line.width, painter.glyphs.ellipsis).into_owned();
            painter.put(line.x, y, &ghost, Role::Muted, line.width);
        } else if focused
            && let Some(x) = self.field.column(self.field.text().len())
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
            let message = no_choices(target, self.choices.none());
            let message = painter.with_keys(&message, &[Context::Runs]);
            painter.put(plan.field + 1, y + 1, &message, Role::Muted, plan.width.saturating_sub(1));
            return y + 2;
        }
        let height = available.min(len);
        self.choices.scroll.follow(len, height);
        for row in 0..height {
            let place = Rect { x: plan.field, y: y + 1 + row as u16, width: plan.width, height: 1 };
            self.draw_choice(self.choices.scroll.offset + row, place, cx.clock_ms, &mut painter);
        }
        y + 1 + height as u16
    }

    fn draw_choice(&mut self, row: usize, place: Rect, clock_ms: i64, painter: &mut Painter<'_>) {
        let Some(choice) = self.choices.get(row) else { return };
        let on = row == self.choices.scroll.cursor;
        painter.band(place, if on { Role::Selection } else { Role::Field });
        if on {
            painter.put(place.x, place.y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        let end = place.right().saturating_sub(1);
        let mut at = end;
        if let Some(ms) = choice.at_ms {
            at =
                painter.right(end, place.y, &format!("{:>4}", age(clock_ms.saturating_sub(ms))), Role::Muted);
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
        self.rows.push((place, row));
    }
}

/// Returns what is shown instead of completions.
fn no_choices(target: Option<AttachTarget>, none_exist: bool) -> String {
    let text = match target {
        None => "select a target type first",
        Some(_) if !none_exist => "not listed; used as typed",
        Some(AttachTarget::Task) => "no open tasks; type task:ID",
        Some(AttachTarget::Run) => {
            return format!("no runs yet; press {} in Runs to launch one", mention(Action::Launch));
        }
        Some(AttachTarget::Output) => "no outputs yet",
        Some(AttachTarget::Transcript) => "no transcripts yet",
        Some(AttachTarget::Artifact) => "no artifacts yet; type the path of a file",
    };
    text.to_owned()
}

/// Returns an example for an empty reference.
fn example(target: Option<AttachTarget>) -> &'static str {
    match target {
        Some(AttachTarget::Task) => "task:ID",
        Some(AttachTarget::Run) => "a run's id",
        Some(AttachTarget::Output) => "RUN/STEP",
        Some(AttachTarget::Transcript) => "session:ID",
        Some(AttachTarget::Artifact) => "artifact:DIGEST, skill:ID/PATH or FILE",
        None => "select a target first",
    }
}

/// The references of a type, the matching ones, and the cursor.
#[derive(Default)]
pub(super) struct Choices {
    generation: u64,
    of: Option<AttachTarget>,
    all: Arc<[TargetChoice]>,
    /// Whether a response for this type has arrived.
    known: bool,
    fitting: Vec<usize>,
    pub scroll: Scroll,
    pub fuzzy: Fuzzy,
}

impl Choices {
    /// Returns the number of the next request; references of another type are hidden until its response.
    pub fn ask(&mut self, of: AttachTarget) -> u64 {
        if self.of != Some(of) {
            self.of = Some(of);
            self.all = Arc::default();
            self.known = false;
            self.fitting.clear();
        }
        self.generation += 1;
        self.generation
    }

    pub fn take(&mut self, generation: u64, found: &Result<Arc<[TargetChoice]>, Error>, text: &str) {
        if generation != self.generation {
            return;
        }
        // After a failed request there are no completions; the check of the target reports the error.
        self.all = found.as_ref().map(Arc::clone).unwrap_or_default();
        self.known = true;
        self.filter(text);
    }

    /// Returns whether it is known that there are none.
    pub fn none(&self) -> bool {
        self.known && self.all.is_empty()
    }

    /// Filters the references by a text, best first.
    pub fn filter(&mut self, text: &str) {
        self.fuzzy.set(text);
        let score = |at: usize| {
            let choice = self.all.get(at)?;
            let by_ref = self.fuzzy.score(&Utf32String::from(choice.target_ref.as_str()));
            // Users often remember the label, such as `invoice`, rather than an id.
            let score = by_ref.or_else(|| self.fuzzy.score(&Utf32String::from(choice.label.as_str())));
            score.map(|score| (score + u32::from(by_ref.is_some()) * 1_000, at))
        };
        let mut scored: Vec<(u32, usize)> = (0..self.all.len()).filter_map(score).collect();
        scored.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
        self.fitting = scored.into_iter().map(|(_, at)| at).collect();
        self.scroll.cursor = 0;
        self.scroll.offset = 0;
    }

    pub fn len(&self) -> usize {
        self.fitting.len()
    }

    pub fn get(&self, row: usize) -> Option<&TargetChoice> {
        self.all.get(*self.fitting.get(row)?)
    }

    pub fn under_cursor(&self) -> Option<&TargetChoice> {
        self.get(self.scroll.cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(target_ref: &str, label: &str) -> TargetChoice {
        TargetChoice { target_ref: target_ref.to_owned(), label: label.to_owned(), at_ms: None }
    }

    #[test]
    fn references_precede_labels_and_stale_responses_are_dropped() {
        let mut choices = Choices::default();
        let old = choices.ask(AttachTarget::Run);
        let new = choices.ask(AttachTarget::Output);
        choices.take(old, &Ok(Arc::from(vec![choice("r1", "run")])), "");
        assert!(choices.len() == 0 && !choices.none());
        let all =
            vec![choice("r1/read", "export of r1"), choice("r2/export", "output"), choice("r3/x", "total")];
        choices.take(new, &Ok(Arc::from(all)), "export");
        let found: Vec<&str> =
            (0..choices.len()).filter_map(|at| choices.get(at)).map(|c| &*c.target_ref).collect();
        assert_eq!(found, ["r2/export", "r1/read"]);
        choices.filter("");
        assert_eq!((choices.len(), choices.under_cursor().unwrap().target_ref.as_str()), (3, "r1/read"));
    }
}
