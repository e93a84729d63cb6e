//! Decisions in flight to a service: at most one per step, which can be withdrawn until it is sent.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{Code, Error, UnderWay};
use skills_model::{Decision, Verdict};

/// How long a decision waits for a connection before it is dropped unsent: an approval must not take effect late.
pub const UNSENT: Duration = Duration::from_secs(120);

/// The decisions of one client.
#[derive(Default)]
pub struct PendingDecisions(Mutex<Vec<PendingDecision>>);

/// A decision in flight.
struct PendingDecision {
    run: String,
    decision: Decision,
    /// Whether it may have reached the service.
    sent: bool,
    back: CancellationToken,
}

/// A slot of a decision in flight, released on drop; the same decision made twice shares it.
pub struct InFlightDecision<'d> {
    all: &'d PendingDecisions,
    run: String,
    decision: Decision,
    first: bool,
    back: CancellationToken,
}

impl PendingDecisions {
    fn places(&self) -> MutexGuard<'_, Vec<PendingDecision>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the single slot for decisions on a step: with two, the order of arrival would decide. The same decision
    /// made twice counts as one.
    ///
    /// # Errors
    /// Returns `invalid_transition` if a different decision on the same step is in flight.
    pub fn begin(&self, run: &str, decision: &Decision) -> Result<InFlightDecision<'_>, Error> {
        let mut places = self.places();
        let known = places.iter().find(|place| {
            place.run == run
                && place.decision.step == decision.step
                && place.decision.inputs_digest == decision.inputs_digest
        });
        let (first, back) = match known {
            None => (true, CancellationToken::new()),
            Some(place) if place.decision == *decision => (false, place.back.clone()),
            Some(place) => return Err(contrary(place)),
        };
        if first {
            let (decision, back) = (decision.clone(), back.clone());
            places.push(PendingDecision { run: run.to_owned(), decision, sent: false, back });
        }
        Ok(InFlightDecision { all: self, run: run.to_owned(), decision: decision.clone(), first, back })
    }

    /// Withdraws the unsent decision about a run.
    ///
    /// # Errors
    /// Returns `invalid_transition` if there is none, or if it was already sent.
    pub fn take_back(&self, run: &str) -> Result<(), Error> {
        let places = self.places();
        let mut about = places.iter().filter(|place| place.run == run).peekable();
        let refused = |message: &str| Err(Error::new(Code::InvalidTransition, message));
        if about.peek().is_none() {
            return refused("no decision on this run is pending");
        }
        let mut unsent = about.filter(|place| !place.sent).peekable();
        if unsent.peek().is_none() {
            return refused("it was already sent and cannot be withdrawn; the run will show the result");
        }
        unsent.for_each(|place| place.back.cancel());
        Ok(())
    }
}

impl InFlightDecision<'_> {
    /// Returns whether it is the first with this decision, which reports its progress.
    pub fn is_first(&self) -> bool {
        self.first
    }

    /// Marks it as being sent: from now on it cannot be withdrawn.
    ///
    /// # Errors
    /// Returns an error if it was withdrawn before.
    pub fn leaves(&self) -> Result<(), Error> {
        self.mark(true)
    }

    /// Marks it as not sent.
    ///
    /// # Errors
    /// Same as [`Self::leaves`].
    pub fn stayed(&self) -> Result<(), Error> {
        self.mark(false)
    }

    fn mark(&self, sent: bool) -> Result<(), Error> {
        let mut places = self.all.places();
        if self.back.is_cancelled() {
            return Err(UnderWay::taken_back());
        }
        if let Some(place) = self.place(&mut places) {
            place.sent = sent;
        }
        Ok(())
    }

    fn place<'p>(&self, places: &'p mut [PendingDecision]) -> Option<&'p mut PendingDecision> {
        places.iter_mut().find(|place| place.run == self.run && place.decision == self.decision)
    }

    /// Returns when it is withdrawn.
    pub async fn taken_back(&self) {
        self.back.cancelled().await;
    }
}

impl Drop for InFlightDecision<'_> {
    fn drop(&mut self) {
        if self.first {
            self.all.places().retain(|place| place.run != self.run || place.decision != self.decision);
        }
    }
}

fn contrary(place: &PendingDecision) -> Error {
    let verdict = match place.decision.verdict {
        Verdict::Approve => "approval",
        Verdict::Deny => "denial",
    };
    let message = if place.sent {
        format!(
            "your {verdict} of this step was already sent, and the response is pending; the run will \
            show it"
        )
    } else {
        format!(
            "your {verdict} of this step is pending; it is sent when the connection is restored, or \
                dropped after {} s; withdraw it first to decide differently",
            UNSENT.as_secs()
        )
    };
    Error::new(Code::InvalidTransition, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_model::Choice;

    fn decision(verdict: Verdict, choice: Option<Choice>) -> Decision {
        let (step, inputs_digest) = ("pay".to_owned(), "sha256:1".to_owned());
        Decision { verdict, step, inputs_digest, choice, result: None }
    }

    #[test]
    fn of_two_answers_to_one_step_the_second_is_refused_while_the_first_is_on_its_way() {
        let all = PendingDecisions::default();
        let yes = all.begin("a", &decision(Verdict::Approve, None)).unwrap();
        assert!(yes.is_first() && !all.begin("a", &decision(Verdict::Approve, None)).unwrap().is_first());
        let refused = |decision| all.begin("a", &decision).err().map(|error| error.message).unwrap();
        let no = refused(decision(Verdict::Deny, None));
        assert!(no.contains("your approval of this step is pending") && no.contains("withdraw it"), "{no}");
        refused(decision(Verdict::Approve, Some(Choice::Skip)));
        yes.leaves().unwrap();
        let no = refused(decision(Verdict::Deny, None));
        assert!(no.contains("was already sent"), "{no}");
        assert!(all.begin("b", &decision(Verdict::Deny, None)).is_ok(), "another run is another matter");
        drop(yes);
        assert!(all.begin("a", &decision(Verdict::Deny, None)).is_ok(), "it is over");
    }

    #[test]
    fn what_was_not_sent_is_taken_back_and_what_was_is_not() {
        let all = PendingDecisions::default();
        assert!(all.take_back("a").unwrap_err().message.contains("no decision"));
        let yes = all.begin("a", &decision(Verdict::Approve, None)).unwrap();
        yes.leaves().unwrap();
        assert!(all.take_back("a").unwrap_err().message.contains("already sent"));
        yes.stayed().unwrap();
        all.take_back("a").unwrap();
        let error = yes.leaves().unwrap_err();
        assert!(UnderWay::was_taken_back(&error), "{error}");
    }
}
