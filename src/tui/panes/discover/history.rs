//! Intents that were asked, newest last, and the walk through them with Up and Down.

/// How many are kept.
const HISTORY_SIZE: usize = 200;

/// Intents asked, and the state of the walk.
#[derive(Debug, Clone, Default)]
pub struct History {
    asked: Vec<String>,
    at: Option<usize>,
    draft: String,
}

impl History {
    /// A history that was kept from before, oldest first.
    #[must_use]
    pub fn from_entries(entries: Vec<String>) -> Self {
        Self { asked: entries, ..Self::default() }
    }

    /// What should be kept for the next time, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[String] {
        &self.asked
    }

    /// Whether there is anything earlier.
    #[must_use]
    pub fn has_earlier(&self) -> bool {
        self.at.map_or(!self.asked.is_empty(), |at| at > 0)
    }

    /// Whether the walk is in progress.
    #[must_use]
    pub fn walking(&self) -> bool {
        self.at.is_some()
    }

    /// Keeps an intent; the same one again moves to the end.
    pub fn keep(&mut self, intent: &str) {
        let intent = intent.trim();
        self.at = None;
        if intent.is_empty() {
            return;
        }
        self.asked.retain(|known| known != intent);
        self.asked.push(intent.to_owned());
        let excess = self.asked.len().saturating_sub(HISTORY_SIZE);
        self.asked.drain(..excess);
    }

    /// The intent before, if any; `present` is what is in the field and comes back at the end.
    pub fn earlier(&mut self, present: &str) -> Option<&str> {
        let at = if let Some(at) = self.at {
            at.checked_sub(1)?
        } else {
            present.clone_into(&mut self.draft);
            let last = self.asked.len().checked_sub(1)?;
            if self.asked[last] == present.trim() { last.checked_sub(1)? } else { last }
        };
        self.at = Some(at);
        self.asked.get(at).map(String::as_str)
    }

    /// The intent after, or the draft that was there before the walk.
    pub fn later(&mut self) -> Option<&str> {
        let next = self.at? + 1;
        self.at = (next < self.asked.len()).then_some(next);
        Some(self.at.map_or(self.draft.as_str(), |at| self.asked[at].as_str()))
    }

    /// Typing ends the walk.
    pub fn stop(&mut self) {
        self.at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_walks_back_and_down_returns_to_the_draft() {
        let mut history = History::default();
        for intent in ["pdf to csv", "fill a form", "pdf to csv"] {
            history.keep(intent);
        }
        assert_eq!(history.entries(), ["fill a form", "pdf to csv"]);
        assert_eq!(history.earlier("dra"), Some("pdf to csv"));
        assert_eq!(history.earlier("pdf to csv"), Some("fill a form"));
        assert_eq!(history.earlier("fill a form"), None);
        assert_eq!(history.later(), Some("pdf to csv"));
        assert_eq!(history.later(), Some("dra"));
        assert_eq!(history.later(), None);
    }
}
