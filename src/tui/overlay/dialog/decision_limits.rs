//! Limits of a decision: an expired wait, a step that cannot be executed, a sidecar that requests a pause.

use std::time::Instant;

use super::decision::{Decision, Focus, SendState};
use super::parts;
use crate::theme::Role;
use crate::widgets::relative_time::{age, time_of_day, until_younger};
use crate::widgets::rich::Seg;
use crate::widgets::text_width::shown;
use skills_api::{DecisionSheet, RunDetail};
use skills_model::{Expiry, Verdict};

/// Returns the outcome of a run whose wait expired.
pub(super) fn then(expiry: Expiry) -> &'static str {
    match expiry {
        Expiry::Deny => "denied and canceled",
        Expiry::Fail => "failed, can be resumed",
    }
}

impl Decision {
    /// Deselects expired gates and records that they can no longer be decided.
    pub(super) fn let_expire(&mut self, now: Instant) {
        let clock = parts::clock(self.opened, now);
        let mut over = Vec::new();
        for one in &mut self.waiting {
            let Some(at) = one.sheet.expires_ms.filter(|at| *at <= clock) else { continue };
            if one.send_state == SendState::Open {
                over.push(format!(
                    "{} expired at {}: {}. No decision was made here.",
                    one.name(),
                    time_of_day(at),
                    then(one.sheet.on_expiry)
                ));
                one.send_state = SendState::Past("expired".to_owned());
                one.marked = false;
            }
        }
        if !over.is_empty() {
            self.said = Some(over.join(" "));
            self.body.offset = 0;
            if !self.takes_text() {
                self.focus = Focus::Button(0);
            }
        }
    }

    /// Returns why decisions of this caller are rejected: a missing scope.
    pub(super) fn not_permitted(&self) -> Option<&str> {
        let sheet = self.waiting.iter().map(|one| &one.sheet).find(|sheet| sheet.missing_scope.is_some())?;
        Some(sheet.blocked.as_deref().unwrap_or("the key lacks a scope"))
    }

    /// Returns why an approval of the selected gates would only fail their steps; `None` if one of them can be
    /// executed.
    pub(super) fn in_the_way(&self) -> Option<&str> {
        let mut open = self.waiting.iter().filter(|one| one.marked && one.send_state == SendState::Open);
        let first = open.next()?.sheet.blocked.as_deref()?;
        open.all(|one| one.sheet.blocked.is_some()).then_some(first)
    }

    /// Returns after how many milliseconds the dialog's text changes without input.
    pub(super) fn words_hold(&self, now: Instant) -> Option<u64> {
        let clock = parts::clock(self.opened, now);
        let open = self.waiting.iter().filter(|one| one.send_state == SendState::Open);
        let left = open.filter_map(|one| one.sheet.expires_ms).map(|at| at - clock).filter(|left| *left > 0);
        left.map(until_younger).min().and_then(|millis| u64::try_from(millis).ok())
    }
}

/// Returns what follows a decision, or the lack of one: label and text.
pub(super) fn outlook(sheet: &DecisionSheet, clock: i64) -> Vec<(&'static str, Vec<Seg>)> {
    let mut out = Vec::new();
    if let Some(sidecar) = &sheet.pause {
        let text =
            format!("pause requested by {}: after approval it is paused until resumed", shown(sidecar));
        out.push(("after it", vec![Seg::new(text, Role::Warning)]));
    }
    if let Some(expires) = sheet.expires_ms.filter(|at| *at > clock) {
        out.push((
            "expires",
            vec![
                Seg::new(format!("in {}", age(expires - clock)), Role::Warning),
                Seg::new(format!("; then {}", then(sheet.on_expiry)), Role::Muted),
            ],
        ));
    }
    out
}

/// Describes the outcome of a gate that was decided while the dialog was open: short, and in full.
pub(super) fn meanwhile(detail: &RunDetail, sheet: &DecisionSheet) -> (String, String) {
    let decided = detail.decisions.iter().rev().find(|decided| {
        let decision = &decided.decision;
        decision.step == sheet.step && decision.inputs_digest == sheet.inputs_digest
    });
    let by = decided.and_then(|decided| decided.by.approver.as_deref());
    let by = by.map(|name| format!(" by {}", shown(name))).unwrap_or_default();
    let at = decided.map(|decided| format!(" at {}", time_of_day(decided.at_ms)));
    let by = by + &at.unwrap_or_default();
    let state = detail.run.state.label();
    let expired = detail.run.expired_ms().is_some();
    let what = match decided.map(|decided| decided.decision.verdict) {
        Some(Verdict::Approve) => format!("was approved{by}"),
        Some(Verdict::Deny) => format!("was denied{by}"),
        None if expired => "was not answered in time".to_owned(),
        None => "continued".to_owned(),
    };
    let name = shown(detail.run.title_or_skill());
    let notes = decided.and_then(|decided| decided.by.notes.as_deref()).map(shown);
    let notes = notes.filter(|notes| !notes.is_empty());
    let notes = notes.map(|notes| format!(" ({notes})")).unwrap_or_default();
    let said = format!("{name} {what} meanwhile{notes}; it is {state} now.");
    (what, said)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::action::Action;
    use crate::overlay::{Outcome, Overlay as _};
    use crate::pane::{Effect, PaneId};
    use crate::run_requests::RunRequest;
    use skills_api::operations::Scope;
    use skills_api::{Code, Error, RunCommand};
    use skills_store::RunId;

    fn sheet(changes: serde_json::Value) -> DecisionSheet {
        let mut sheet = json!({
            "run": "r1", "skill_id": "send", "headline": "Sends", "step": "send", "place": [1, 1],
            "outcome_unknown": false, "capability": "mail.send", "capability_note": "", "binding": "",
            "isolation": "", "why": "", "irreversible": null, "inputs": {}, "inputs_digest": "d1",
            "approver": null, "since_ms": 0, "expires_ms": null,
        });
        for (name, value) in changes.as_object().into_iter().flatten() {
            sheet[name] = value.clone();
        }
        serde_json::from_value(sheet).unwrap()
    }

    fn open(changes: serde_json::Value) -> Decision {
        let mut decision = Decision::new(PaneId::Runs, sheet(changes), 1, (1_000, Instant::now()));
        "d1".clone_into(&mut decision.drawn.digest);
        decision
    }

    fn labels(decision: &Decision) -> Vec<&'static str> {
        decision.hints().iter().map(|hint| hint.label).collect()
    }

    #[test]
    fn while_an_answer_is_under_way_the_footer_offers_no_other_one() {
        let mut decision = open(json!({}));
        assert!(labels(&decision).contains(&"approve") && labels(&decision).contains(&"cancel"));
        let Outcome::Request(_, sent) = decision.press(Action::ApproveNow) else {
            panic!("nothing was sent")
        };
        assert_eq!(sent.len(), 1);
        assert_eq!(labels(&decision), ["close", "scroll"]);
        assert_eq!(decision.press(Action::DenyNow), Outcome::Stay, "one answer is sent");
    }

    #[test]
    fn what_no_frame_showed_is_not_decided() {
        let mut decision = open(json!({}));
        "d2".clone_into(&mut decision.waiting[0].sheet.inputs_digest);
        for action in [Action::ApproveNow, Action::DenyNow] {
            assert_eq!(decision.press(action), Outcome::Stay);
        }
        assert!(decision.said.is_some());
    }

    #[test]
    fn a_lost_step_that_cannot_run_again_can_still_be_settled() {
        let mut decision = open(json!({"outcome_unknown": true, "blocked": "no binding executes it"}));
        assert_eq!(decision.press(Action::RunAgain), Outcome::Stay);
        assert!(!labels(&decision).contains(&"run again") && labels(&decision).contains(&"skip"));
        let Outcome::Request(_, sent) = decision.press(Action::SkipStep) else { panic!("nothing was sent") };
        let [Effect::Run(RunRequest::Order { order, .. })] = &sent[..] else { panic!("{sent:?}") };
        assert!(matches!(**order, RunCommand::Decide { verdict: Verdict::Approve, .. }));
    }

    #[test]
    fn without_the_scope_no_answer_is_offered_or_sent() {
        for unknown in [false, true] {
            let mut decision =
                open(json!({"outcome_unknown": unknown, "blocked": "the key op lacks `decide`"}));
            decision.waiting[0].sheet.missing_scope = Some(Scope::Decide);
            let offered: Vec<Action> = decision.buttons().iter().map(|button| button.action).collect();
            assert_eq!(offered, [Action::Back]);
            assert_eq!(labels(&decision), ["move", "cancel", "scroll", "copy inputs", "cancel"]);
            let decide = [
                Action::ApproveNow,
                Action::DenyNow,
                Action::RunAgain,
                Action::ItHappened,
                Action::SkipStep,
                Action::FailStep,
            ];
            for action in decide {
                decision.said = None;
                assert_eq!(decision.press(action), Outcome::Stay, "{action:?}");
                assert!(decision.said.as_deref().unwrap_or_default().contains("`decide`"), "{action:?}");
            }
        }
    }

    #[test]
    fn an_error_says_what_became_of_the_decision() {
        let unreachable = || Error::service_unreachable(Code::UpstreamFailure, "gate", "cannot connect");
        let unknown = Error { reason: Some(json!({"outcome_unknown": true})), ..unreachable() };
        let refused = Error::new(Code::Forbidden, "no");
        for (error, said) in
            [(unreachable(), "Not sent"), (unknown, "Sent, outcome unknown"), (refused, "Rejected")]
        {
            let mut decision = open(json!({}));
            decision.press(Action::ApproveNow);
            assert!(decision.sending());
            decision.answered(&RunId("r1".to_owned()), Err(&error));
            assert!(!decision.sending() && labels(&decision).contains(&"approve"));
            assert!(decision.said.is_some_and(|text| text.starts_with(said)), "{said}");
        }
    }

    #[test]
    fn a_key_that_comes_after_the_time_decides_nothing() {
        let mut decision = open(json!({"expires_ms": 61_000}));
        let opened = decision.opened.1;
        assert_eq!(decision.words_hold(opened), Some(1), "what is left is less than a minute at once");
        decision.at(opened + std::time::Duration::from_secs(60));
        assert_eq!(decision.press(Action::ApproveNow), Outcome::Stay);
        assert!(decision.said.as_deref().unwrap_or_default().contains("No decision was made here"));
    }
}
