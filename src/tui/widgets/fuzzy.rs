//! A fuzzy filter over names: a score for each name, and the matched letters for drawn ones.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str, Utf32String};

use skills_api::{MatchKind, QueryWords};

/// A filter text and its matcher. Words are matched in any order, each by its letters.
pub struct Fuzzy {
    matcher: Matcher,
    pattern: Pattern,
    words: QueryWords,
    empty: bool,
}

impl Default for Fuzzy {
    fn default() -> Self {
        Self {
            matcher: Matcher::new(Config::DEFAULT),
            pattern: Pattern::default(),
            words: QueryWords::default(),
            empty: true,
        }
    }
}

impl Fuzzy {
    /// Sets the filter text.
    pub fn set(&mut self, text: &str) {
        self.empty = text.trim().is_empty();
        self.words = QueryWords::new(text);
        self.pattern.reparse(text, CaseMatching::Smart, Normalization::Smart);
    }

    /// Returns whether the filter is empty.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// Returns how well a name matches; `None` if it does not. Everything matches an empty filter.
    pub fn score(&mut self, name: &Utf32String) -> Option<u32> {
        if self.empty { Some(0) } else { self.pattern.score(name.slice(..), &mut self.matcher) }
    }

    /// Returns how well a skill matches by its name or its description; `None` if it does not.
    pub fn matched<'t>(
        &mut self,
        name: &Utf32String,
        description: impl FnOnce() -> Option<&'t str>,
    ) -> Option<(MatchKind, u32)> {
        let by_letters = self.score(name);
        let names = if by_letters.is_some() && !self.empty { name.to_string() } else { String::new() };
        self.words.matched(&[names.as_str()], by_letters, description)
    }

    /// Returns the indices of the matched characters of a text, ascending and deduplicated.
    pub fn letters(&mut self, text: &str) -> Vec<u32> {
        if self.empty {
            return Vec::new();
        }
        let mut buffer = Vec::new();
        let mut out = Vec::new();
        self.pattern.indices(Utf32Str::new(text, &mut buffer), &mut self.matcher, &mut out);
        out.sort_unstable();
        out.dedup();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matched_letters_are_returned() {
        let mut fuzzy = Fuzzy::default();
        fuzzy.set("pdf");
        assert_eq!(fuzzy.letters("po-diff"), [0, 3, 5]);
        assert!(fuzzy.score(&"xlsx".into()).is_none());
        assert!(fuzzy.score(&"pdf-tables".into()) > fuzzy.score(&"po-diff".into()));
    }

    #[test]
    fn an_empty_filter_keeps_all() {
        let mut fuzzy = Fuzzy::default();
        fuzzy.set("  ");
        assert_eq!(fuzzy.score(&"xlsx".into()), Some(0));
    }
}
