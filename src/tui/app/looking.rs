//! Polls for changes by others to what a pane shows, without drawing anything if there are none.

use std::time::Instant;

use super::{App, AppEvent};
use crate::pane::Message;
use crate::proposal_requests::ProposalAnswer;
use crate::session_requests::SessionTold;

/// Whether these news leave the picture as it is.
pub(super) fn unmoved(news: &AppEvent) -> bool {
    matches!(
        news,
        AppEvent::Answer(
            _,
            Message::Session(SessionTold::Looked(_, _, None))
                | Message::Proposals(ProposalAnswer::Listed(Ok(None)))
        )
    )
}

impl App {
    /// Lets the pane that is shown look, if it is time.
    pub(super) fn look_again(&mut self, now: Instant) {
        let Some(pane) = self.panes.get_mut(self.active) else { return };
        if pane.looks_at(now).is_some_and(|due| now >= due) {
            let (id, effects) = (pane.id(), pane.look(now));
            self.effects_of(id, effects, now);
        }
    }

    /// When that is.
    pub(super) fn next_look(&self, now: Instant) -> Option<Instant> {
        self.panes.get(self.active)?.looks_at(now)
    }
}
