//! The decision sheet while its answer is on its way: how far it is, that it comes once, and how it is taken back.

use super::decision::{Decision, SendState, Waiting};
use crate::overlay::Outcome;
use crate::pane::Effect;
use crate::pending_decision::is_unsent;
use crate::run_requests::RunAsk;
use skills_api::{Sending, UnderWay};

/// How far an answer is on its way, and whether this sheet sent it.
#[derive(Debug, Clone)]
pub(super) struct DecisionProgress {
    pub(super) told: UnderWay,
    own: bool,
}

impl Waiting {
    /// Takes what was notified of an answer to it.
    fn take(&mut self, told: &UnderWay) {
        let about = told.is_for(&self.sheet.run.0, &self.sheet.step, &self.sheet.inputs_digest);
        if !about {
            return;
        }
        match (told.sending, &self.way) {
            // Of an answer that this sheet waits for, the answer says better that it is over.
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
    /// Whether an answer given here is in progress.
    pub(super) fn sending(&self) -> bool {
        self.under_way().next().is_some()
    }

    fn under_way(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter().filter(|one| one.marked && one.standing == SendState::Sent)
    }

    /// What is true of an answer in progress, long and short. Of several the one that is least far counts.
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

    /// Takes news of an answer on its way: to one on the sheet, or to one that comes onto it later.
    pub(super) fn on_its_way(&mut self, told: &UnderWay) {
        self.ways.retain(|way| way.run != told.run);
        if told.sending != Sending::Over {
            self.ways.push(told.clone());
        }
        for one in &mut self.waiting {
            one.take(told);
        }
    }

    /// The same for one that came onto the sheet just now.
    pub(super) fn arrived(&mut self, at: usize) {
        let Some(one) = self.waiting.get_mut(at) else { return };
        for told in &self.ways {
            one.take(told);
        }
    }

    /// Whether an answer to this run is awaited that another sheet sent.
    pub(super) fn awaits(&self, run: &str) -> bool {
        self.waiting.iter().any(|one| one.sheet.run.0 == run && one.way.as_ref().is_some_and(|way| !way.own))
    }

    /// Whether something can be taken back.
    pub(super) fn is_unsent(&self) -> bool {
        self.under_way().any(|one| one.way.as_ref().is_some_and(|way| is_unsent(&way.told)))
    }

    /// Takes back what was not sent.
    pub(super) fn take_back(&mut self) -> Outcome {
        let unsent = self.under_way().filter(|one| one.way.as_ref().is_some_and(|way| is_unsent(&way.told)));
        let effects: Vec<Effect> =
            unsent.map(|one| Effect::Run(RunAsk::TakeBack(one.sheet.run.clone()))).collect();
        if effects.is_empty() { Outcome::Stay } else { Outcome::Ask(self.pane, effects) }
    }
}
