//! Polls for changes by other processes to what a pane shows, without redrawing if there are none.

use std::time::Instant;

use super::{App, AppEvent};
use crate::pane::Message;
use crate::proposal_requests::ProposalPaneResponse;
use crate::run_requests::RunResponse;
use crate::session_requests::SessionResponse;

/// Returns whether an event leaves the frame unchanged.
pub(super) fn unmoved(news: &AppEvent) -> bool {
    matches!(
        news,
        AppEvent::Answer(
            _,
            Message::Session(SessionResponse::Looked(_, _, None))
                | Message::Proposals(ProposalPaneResponse::Listed(Ok(None)))
                | Message::Run(RunResponse::Views(Ok(None)))
        )
    )
}

impl App {
    /// Lets the active pane poll if it is due.
    pub(super) fn check_again(&mut self, now: Instant) {
        let Some(pane) = self.panes.get_mut(self.active) else { return };
        if pane.next_poll(now).is_some_and(|due| now >= due) {
            let (id, effects) = (pane.id(), pane.poll(now));
            self.effects_of(id, effects, now);
        }
    }

    /// Returns when the active pane next polls.
    pub(super) fn next_look(&self, now: Instant) -> Option<Instant> {
        self.panes.get(self.active)?.next_poll(now)
    }
}
