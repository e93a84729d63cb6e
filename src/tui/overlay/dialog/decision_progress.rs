//! The decision dialog while its decision is in flight: progress, prevention of duplicates, and withdrawal.

use super::decision::{Decision, SendState, Waiting};
use crate::overlay::Outcome;
use crate::pane::Effect;
use crate::pending_decision::is_unsent;
use crate::run_requests::RunAsk;
use skills_api::{Sending, UnderWay};

/// The progress of a decision, and whether this dialog sent it.
#[derive(Debug, Clone)]
pub(super) struct DecisionProgress {
    pub(super) told: UnderWay,
    own: bool,
}

impl Waiting {
    /// Updates the progress of a decision on this gate.
    fn take(&mut self, told: &UnderWay) {
        let about = told.is_for(&self.sheet.run.0, &self.sheet.step, &self.sheet.inputs_digest);
        if !about {
            return;
        }
        match (told.sending, &self.way) {
            // For a decision that this dialog sent, the response reports the end more precisely.
            (Sending::Over, Some(way)) if !way.own => {
                (self.way, self.standing) = (None, SendState::Open);
            }
            (Sending::Over, _) => {}
            (_, way) => {
                let own = way.as_ref().map_or(self.standing == SendState::Sent, |way| way.own);
                if matches!(self.standing, SendState::Open | SendState::Sent) {
                    self.standing = SendState::Sent;
                    self.way = Some(DecisionProgress { told: told.clone(), own });
                }
            }
        }
    }
}

impl Decision {
    /// Returns whether a decision made here is in flight.
    pub(super) fn sending(&self) -> bool {
        self.under_way().next().is_some()
    }

    fn under_way(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter().filter(|one| one.marked && one.standing == SendState::Sent)
    }

    /// Describes the decision in flight, long and short. Of several, the least advanced one counts.
    pub(super) fn way(&self) -> [&'static str; 2] {
        let any = |sending| {
            self.under_way().any(|one| one.way.as_ref().is_some_and(|way| way.told.sending == sending))
        };
        if any(Sending::Waiting) {
            ["Not sent yet: waiting for the connection.", "Not sent yet: no connection."]
        } else if any(Sending::Unanswered) {
            ["Sent, but the response was lost: checking the run.", "Sent; checking the run."]
        } else {
            ["Sent; waiting for the response."; 2]
        }
    }

    /// Handles the progress of a decision: on a gate in the dialog, or on one that is added later.
    pub(super) fn on_its_way(&mut self, told: &UnderWay) {
        self.ways.retain(|way| way.run != told.run);
        if told.sending != Sending::Over {
            self.ways.push(told.clone());
        }
        for one in &mut self.waiting {
            one.take(told);
        }
    }

    /// Applies known progress to a gate that was just added to the dialog.
    pub(super) fn arrived(&mut self, at: usize) {
        let Some(one) = self.waiting.get_mut(at) else { return };
        for told in &self.ways {
            one.take(told);
        }
    }

    /// Returns whether a decision on this run is in flight that another dialog sent.
    pub(super) fn awaits(&self, run: &str) -> bool {
        self.waiting.iter().any(|one| one.sheet.run.0 == run && one.way.as_ref().is_some_and(|way| !way.own))
    }

    /// Returns whether a decision can be withdrawn.
    pub(super) fn is_unsent(&self) -> bool {
        self.under_way().any(|one| one.way.as_ref().is_some_and(|way| is_unsent(&way.told)))
    }

    /// Withdraws decisions that were not sent yet.
    pub(super) fn take_back(&mut self) -> Outcome {
        let unsent = self.under_way().filter(|one| one.way.as_ref().is_some_and(|way| is_unsent(&way.told)));
        let effects: Vec<Effect> =
            unsent.map(|one| Effect::Run(RunAsk::TakeBack(one.sheet.run.clone()))).collect();
        if effects.is_empty() { Outcome::Stay } else { Outcome::Ask(self.pane, effects) }
    }
}
