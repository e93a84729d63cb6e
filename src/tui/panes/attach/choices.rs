//! Existing references as completions of the input, by fuzzy search; newest first for an empty input.

use std::sync::Arc;

use nucleo_matcher::Utf32String;

use crate::widgets::fuzzy::Fuzzy;
use crate::widgets::scroll::Scroll;
use skills_api::{Error, TargetChoice};
use skills_skill::AttachTarget;

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
    fn references_come_before_labels_and_stale_answers_are_dropped() {
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
