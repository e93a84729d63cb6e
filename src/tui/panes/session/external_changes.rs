//! Changes to the session by others: another process, a model over MCP. Polled while the session is shown, and
//! distinguished from changes made here.

use std::time::{Duration, Instant};

use crate::pane::Effect;
use crate::session_requests::{Newest, SessionRequest};
use crate::widgets::{counted, shown};
use skills_api::SessionView;

const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// What others changed.
#[derive(Debug)]
pub(super) enum Change {
    /// The session, described briefly.
    Session(String),
    Files,
}

/// The state of polling for changes by others.
#[derive(Debug, Default)]
pub(super) struct ExternalChanges {
    looked: Option<Instant>,
    looking: bool,
    /// Whether a change was requested here whose response is pending.
    acting: bool,
    newest: Option<Newest>,
}

impl ExternalChanges {
    /// Returns when to poll next.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        (!self.looking && !self.acting).then(|| self.looked.map_or(now, |looked| looked + POLL_INTERVAL))
    }

    /// Registers effects of this pane: the response to a change reports the session's state.
    pub fn acting(&mut self, effects: &[Effect]) {
        self.acting |= effects.iter().any(changes);
    }

    /// Registers the response to a change.
    pub fn answered(&mut self) {
        self.acting = false;
    }

    /// Registers that it is polled now.
    pub fn polled(&mut self, now: Instant) {
        self.looked = Some(now);
    }

    /// Checks whether others changed the session; with `always`, also returns the state of its skills in any case.
    pub fn check(&mut self, session: &SessionView, always: bool) -> Effect {
        self.looking = true;
        Effect::Session(SessionRequest::Check {
            session: session.session_id.clone(),
            version: session.version,
            newest: self.newest.clone(),
            always,
        })
    }

    /// Returns what the response to a check says about the session that is shown.
    pub fn compare(
        &mut self,
        before: Option<&SessionView>,
        id: &str,
        newest: Option<&Newest>,
        after: Option<&SessionView>,
    ) -> Option<Change> {
        self.looking = false;
        let before = before.filter(|session| session.session_id == id)?;
        if self.acting {
            // The pending response reports the same, and that the change was made here.
            return None;
        }
        self.newest = newest.cloned();
        let after = after.filter(|after| after.version >= before.version)?;
        if after.version > before.version {
            return Some(Change::Session(difference(before, after)));
        }
        // The session is the same, but its files or the roots changed.
        (after.drift != before.drift).then_some(Change::Files)
    }
}

fn changes(effect: &Effect) -> bool {
    let Effect::Session(ask) = effect else { return false };
    matches!(
        ask,
        SessionRequest::Latest
            | SessionRequest::Open(_)
            | SessionRequest::New(_)
            | SessionRequest::Configure(..)
            | SessionRequest::Tool { .. }
            | SessionRequest::Reorder { .. }
            | SessionRequest::Script { .. }
            | SessionRequest::Say(..)
    )
}

/// Describes the change made elsewhere briefly.
fn difference(before: &SessionView, after: &SessionView) -> String {
    let names =
        |view: &SessionView| -> Vec<String> { view.active.iter().map(|skill| skill.name.clone()).collect() };
    let (old, new) = (names(before), names(after));
    let only = |sign: char, these: &[String], those: &[String]| -> Vec<String> {
        these
            .iter()
            .filter(|name| !those.contains(name))
            .map(|name| format!("{sign}{}", shown(name)))
            .collect()
    };
    let mut changes: Vec<String> = only('+', &new, &old);
    changes.extend(only('-', &old, &new));
    if changes.is_empty() && old != new {
        changes.push("different order".to_owned());
    }
    if before.settings.client != after.settings.client {
        let client = after.settings.client.as_deref().unwrap_or("no client");
        changes.push(format!("as {}", shown(client)));
    } else if before.settings.agent != after.settings.agent {
        changes.push(format!("agent {}", shown(after.settings.agent.as_deref().unwrap_or("orchestrator"))));
    } else if before.settings != after.settings {
        changes.push("other settings".to_owned());
    }
    if changes.is_empty() {
        let more = after.transcript.len().saturating_sub(before.transcript.len());
        changes.push(counted(more, "more line") + " in the transcript");
    }
    changes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::SessionPane;
    use super::*;
    use crate::pane::{Message, Pane as _};
    use crate::run_requests::RunResponse;
    use crate::session_requests::SessionResponse;
    use skills_api::{Code, Error};

    #[test]
    fn failed_session_request_is_repeated_after_reconnect() {
        let refused = |code| SessionResponse::Session(Err(Error::new(code, "the core cannot be reached")));
        let following = Message::Run(RunResponse::Following);
        let asks = |effects: &[Effect]| matches!(effects, [Effect::Session(SessionRequest::Latest)]);
        let mut pane = SessionPane::new();
        assert!(asks(&pane.take_pending_effects()));
        assert!(pane.message(&following).is_empty(), "the first request is still in flight");
        assert!(pane.message(&Message::Session(refused(Code::UpstreamFailure))).is_empty());
        assert!(asks(&pane.message(&following)), "the connection is back");
        assert!(pane.message(&following).is_empty(), "once");
        // The event can arrive before the failure.
        pane.message(&Message::Session(refused(Code::UpstreamTimeout)));
        let now = Instant::now();
        assert_eq!(pane.next_poll(now), Some(now));
        assert!(asks(&pane.poll(now)));
        assert_eq!(pane.next_poll(now), None, "it is in flight");
        let responses = pane.message(&Message::Session(refused(Code::Forbidden)));
        assert!(matches!(responses.as_slice(), [Effect::ErrorNotice(..)]));
        assert_eq!(pane.next_poll(now + POLL_INTERVAL), None, "what is refused is refused again");
    }

    #[test]
    fn external_changes_are_not_checked_during_a_request() {
        let (mut others, now) = (ExternalChanges::default(), Instant::now());
        assert_eq!(others.due(now), Some(now), "at once when the pane is entered");
        others.looked = Some(now);
        assert_eq!(others.due(now), Some(now + POLL_INTERVAL));
        others.acting(&[Effect::Toast(String::new())]);
        assert!(others.due(now).is_some());
        others.acting(&[Effect::Session(SessionRequest::Open("x".to_owned()))]);
        assert_eq!(others.due(now), None);
        others.answered();
        assert!(others.due(now).is_some());
    }
}
