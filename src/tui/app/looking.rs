//! Looking again whether somebody else changed what a pane shows, without drawing anything where nobody did.

use std::time::{Duration, Instant};

use super::{App, News};
use crate::tui::pane::Message;
use crate::tui::session_traffic::SessionTold;

/// Whether these news leave the picture as it is.
pub(super) fn unmoved(news: &News) -> bool {
    matches!(news, News::Answer(_, Message::Session(SessionTold::Looked(_, _, None))))
}

impl App {
    /// Lets the pane that is shown look, if it is time.
    pub(super) fn look_again(&mut self, now: Instant) {
        let clock_ms = self.clock(now);
        let Some(pane) = self.panes.get_mut(self.active) else { return };
        if pane.looks_at().is_some_and(|due| clock_ms >= due) {
            let (id, effects) = (pane.id(), pane.look(clock_ms));
            self.effects_of(id, effects, now);
        }
    }

    /// When that is.
    pub(super) fn next_look(&self, now: Instant) -> Option<Instant> {
        let due = self.panes.get(self.active)?.looks_at()?;
        let wait = u64::try_from(due - self.clock(now)).unwrap_or_default();
        Some(now + Duration::from_millis(wait))
    }
}
