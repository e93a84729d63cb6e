//! Approvals that are not yet consumed. An approval belongs to one step with exactly what it would run; starting the
//! step consumes it. It covers the rejection of a gate only if the gate was called before, or if it was the reason of the
//! question.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::gates::{is_gate, rejection};
use super::progress::owner_of;
use skills_base::canonical::digest_of;
use skills_model::{ApprovalReason, BEFORE_FIRST_STEP, Choice, Gate};
use skills_store::{EventKind, RunEvent};

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    step: String,
    digest: String,
    choice: Option<Choice>,
    /// The outputs of the step, if it was marked as completed.
    result: Map<String, Value>,
    /// Why approval was required, until the run is resumed.
    why: Option<ApprovalReason>,
    /// Whether a gate of the step was called after the approval.
    precedes_gate: bool,
}

impl Grant {
    /// Returns whether a call that requires approval for this reason is approved.
    fn covers(&self, why: &ApprovalReason) -> bool {
        match why {
            ApprovalReason::Gate { capability, .. } if self.precedes_gate => {
                self.why.as_ref().is_some_and(|why| rejection(why, capability).is_some())
            }
            _ => true,
        }
    }
}

/// Unconsumed approvals, and the number of consumed ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Grants {
    open: Vec<Grant>,
    /// The step at which the run last waited for approval, and the reason.
    waiting: Option<(String, ApprovalReason)>,
    /// Number of consumed approvals by step.
    used: BTreeMap<String, u64>,
}

impl Grants {
    /// Applies the events of a run in order: approvals are added, and a step that starts or ends consumes its own. That
    /// of the whole run is consumed when the run continues from an earlier checkpoint, because steps are then repeated.
    pub fn follow(&mut self, events: &[RunEvent]) {
        for event in events.iter().map(|event| &event.event) {
            if event.kind == EventKind::RunResumed {
                // What was asked about may have other inputs now.
                self.open.iter_mut().for_each(|grant| grant.why = None);
                if event.data.get("head_before").is_some() {
                    self.use_up(BEFORE_FIRST_STEP);
                }
            }
            if matches!(event.kind, EventKind::GateWaiting | EventKind::GateChanged)
                && let Ok(Gate::Human { step, why, .. }) = Gate::deserialize(&event.data["gate"])
            {
                self.waiting = Some((step, why));
            }
            let Some(step) = event.step.as_deref() else { continue };
            match &event.kind {
                EventKind::GateApproved => {
                    let text = |field: &str| event.data.get(field).and_then(|value| value.as_str());
                    let waiting = self.waiting.as_ref().filter(|(at, _)| at == step);
                    let why = waiting.map(|(_, why)| why.clone());
                    let grant = |digest: &str| Grant {
                        step: step.to_owned(),
                        digest: digest.to_owned(),
                        choice: None,
                        result: Map::new(),
                        why: why.clone(),
                        precedes_gate: false,
                    };
                    // Approving a changed call also approves the call itself.
                    self.open.extend(text("call").map(grant));
                    self.open.push(Grant {
                        choice: text("choice").and_then(|word| word.parse().ok()),
                        result: event.data["result"].as_object().cloned().unwrap_or_default(),
                        ..grant(text("inputs_digest").unwrap_or_default())
                    });
                }
                EventKind::StepStarted => self.start(step),
                EventKind::StepCompleted | EventKind::StepSkipped | EventKind::StepFailed => {
                    self.use_up(step);
                }
                _ => {}
            }
        }
    }

    /// Applies the start of a step or of a gate.
    pub fn start(&mut self, path: &str) {
        self.use_up(path);
        if is_gate(path) {
            let guarded = |grant: &&mut Grant| owner_of(&grant.step) == owner_of(path);
            self.open.iter_mut().filter(guarded).for_each(|grant| grant.precedes_gate = true);
        }
    }

    /// Removes the approvals of a step.
    pub fn remove(&mut self, step: &str) {
        self.open.retain(|grant| grant.step != step);
    }

    /// Consumes the approvals of a step.
    fn use_up(&mut self, step: &str) {
        let before = self.open.len();
        self.remove(step);
        if self.open.len() < before {
            *self.used.entry(step.to_owned()).or_default() += 1;
        }
    }

    /// Returns the digest of the question whether a step may run this. It changes once an approval of the step is
    /// consumed: a request that approved the step before a resume, sent again, does not approve what comes after it.
    pub fn question(&self, step: &str, digest: &str) -> String {
        match self.used.get(step) {
            None => digest.to_owned(),
            Some(used) => digest_of(&json!({"call": digest, "approvals_used": used})),
        }
    }

    /// Returns whether this step is approved to run exactly this, although it requires approval for this reason.
    pub fn allow(&self, step: &str, digest: &str, why: &ApprovalReason) -> bool {
        self.open.iter().any(|grant| {
            grant.step == step
                && grant.digest == digest
                && matches!(grant.choice, None | Some(Choice::Rerun))
                && grant.covers(why)
        })
    }

    /// Returns the newest decision about a step whose outcome is unknown, with the outputs that it states, if it has one
    /// of these digests. One that executes nothing applies to the question at which it was made, whatever the bindings
    /// are now.
    pub fn choice(&self, step: &str, digests: &[String]) -> Option<(Choice, Map<String, Value>)> {
        self.open.iter().rev().filter(|grant| grant.step == step).find_map(|grant| {
            let choice = grant.choice?;
            let executes_nothing =
                choice != Choice::Rerun && grant.why == Some(ApprovalReason::UnknownOutcome);
            let applies = executes_nothing || digests.contains(&grant.digest);
            applies.then(|| (choice, grant.result.clone()))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use skills_store::{NewEvent, RunId};

    const ALWAYS: ApprovalReason = ApprovalReason::Confirmation;

    fn follow(events: &[(&str, &str, Value)]) -> Grants {
        let events: Vec<RunEvent> = (1..)
            .zip(events)
            .map(|(number, (kind, step, data))| RunEvent {
                run: RunId("r".into()),
                number,
                global: number,
                at_ms: 0,
                event: NewEvent { kind: (*kind).into(), step: Some((*step).into()), data: data.clone() },
            })
            .collect();
        let mut grants = Grants::default();
        grants.follow(&events);
        grants
    }

    #[test]
    fn an_approval_is_for_one_step_with_one_content_and_is_used_once() {
        let yes = ("gate.approved", "send", json!({"inputs_digest": "d1", "choice": null}));
        let grants = follow(std::slice::from_ref(&yes));
        assert!(grants.allow("send", "d1", &ALWAYS));
        assert!(!grants.allow("send", "d2", &ALWAYS) && !grants.allow("archive", "d1", &ALWAYS));
        assert_eq!(grants.choice("send", &["d1".to_owned()]), None);
        let used = follow(&[yes.clone(), ("step.started", "send", json!({}))]);
        assert!(!used.allow("send", "d1", &ALWAYS));
        assert_eq!(grants.question("send", "d1"), "d1");
        assert_ne!(used.question("send", "d1"), "d1");
        assert_eq!(used.question("archive", "d1"), "d1");
        let again = follow(&[yes.clone(), ("step.started", "send", json!({})), yes]);
        assert!(again.allow("send", "d1", &ALWAYS));
    }

    #[test]
    fn approval_of_a_run_is_used_by_a_resume_from_an_earlier_checkpoint() {
        let yes = ("gate.approved", BEFORE_FIRST_STEP, json!({"inputs_digest": "d", "choice": null}));
        let started = ("step.started", "send", json!({}));
        let here = ("run.resumed", "", json!({"checkpoint": 1}));
        let earlier = ("run.resumed", "", json!({"checkpoint": 0, "head_before": 1}));
        let grants = follow(&[yes.clone(), started.clone(), here]);
        assert!(grants.allow(BEFORE_FIRST_STEP, "d", &ALWAYS));
        let used = follow(&[yes.clone(), started.clone(), earlier.clone()]);
        assert!(!used.allow(BEFORE_FIRST_STEP, "d", &ALWAYS));
        assert_ne!(used.question(BEFORE_FIRST_STEP, "d"), "d");
        assert!(follow(&[yes.clone(), started, earlier, yes]).allow(BEFORE_FIRST_STEP, "d", &ALWAYS));
    }

    #[test]
    fn an_approval_does_not_cover_a_gate_that_is_called_later() {
        let rejected = |capability: &str, reason: &str| ApprovalReason::Gate {
            capability: capability.into(),
            reason: reason.into(),
        };
        let approved = ("gate.approved", "send", json!({"inputs_digest": "d", "choice": null}));
        let called = ("step.started", "send~gate:pii.detect#0", json!({}));
        let waiting = |why: &ApprovalReason| {
            ("gate.waiting", "", json!({"gate": Gate::human("send", "d".to_owned(), why.clone())}))
        };
        for (why, covers) in [
            (ALWAYS, false),
            (rejected("x.other", "no"), false),
            (rejected("pii.detect", "of an earlier version"), true),
        ] {
            let before = [waiting(&why), approved.clone(), called.clone()];
            let grants = follow(&before);
            assert_eq!(grants.allow("send", "d", &rejected("pii.detect", "no")), covers, "{why:?}");
            assert!(grants.allow("send", "d", &ALWAYS));
            let after = [called.clone(), waiting(&why), approved.clone()];
            assert!(follow(&after).allow("send", "d", &rejected("pii.detect", "no")));
            let again = [before.as_slice(), std::slice::from_ref(&approved)].concat();
            assert!(follow(&again).allow("send", "d", &rejected("pii.detect", "no")));
        }
    }

    #[test]
    fn a_choice_that_executes_nothing_applies_to_its_question_until_a_resume() {
        let gate = Gate::human("send", "d".to_owned(), ApprovalReason::UnknownOutcome);
        let waiting = ("gate.waiting", "", json!({"gate": gate}));
        let resumed = ("run.resumed", "", json!({"checkpoint": 1}));
        for (choice, applies) in [("rerun", false), ("happened", true), ("skip", true), ("fail", true)] {
            let decided = ("gate.approved", "send", json!({"inputs_digest": "d", "choice": choice}));
            let digests = ["of other bindings".to_owned()];
            let grants = follow(&[waiting.clone(), decided.clone()]);
            assert_eq!(grants.choice("send", &digests).is_some(), applies, "{choice}");
            let later = follow(&[waiting.clone(), decided.clone(), resumed.clone()]);
            assert_eq!(later.choice("send", &digests), None, "{choice}");
            assert!(later.choice("send", &["d".to_owned()]).is_some());
        }
    }

    #[test]
    fn only_the_rerun_choice_allows_execution() {
        for (choice, runs) in [("rerun", true), ("happened", false), ("skip", false), ("fail", false)] {
            let grants =
                follow(&[("gate.approved", "send", json!({"inputs_digest": "d", "choice": choice}))]);
            assert_eq!(grants.allow("send", "d", &ALWAYS), runs, "{choice}");
            let chosen = grants.choice("send", &["d".to_owned()]).map(|(choice, _)| choice);
            assert_eq!(chosen, choice.parse().ok());
        }
    }
}
