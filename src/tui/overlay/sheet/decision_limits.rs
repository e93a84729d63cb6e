//! What keeps a decision from being taken, or makes more of it than a yes: its wait is over, its step cannot be carried
//! out, a sidecar wants the run held.

use std::time::Instant;

use super::decision::{Decision, Focus, Standing};
use super::parts;
use crate::gateway::{DecisionSheet, RunDetail};
use crate::runs::{Expiry, Verdict};
use crate::tui::theme::Role;
use crate::tui::widgets::ages::{age, time_of_day, until_younger};
use crate::tui::widgets::measure::shown;
use crate::tui::widgets::rich::Seg;

/// What becomes of a run whose wait is over.
pub(super) fn then(expiry: Expiry) -> &'static str {
    match expiry {
        Expiry::Deny => "as if denied, the run is canceled",
        Expiry::Fail => "the run fails, and can be resumed",
    }
}

impl Decision {
    /// Takes those off whose time is over at this moment: nothing can be decided about them any more.
    pub(super) fn let_expire(&mut self, now: Instant) {
        let clock = parts::clock(self.opened, now);
        let mut over = Vec::new();
        for one in &mut self.waiting {
            let Some(at) = one.sheet.expires_ms.filter(|at| *at <= clock) else { continue };
            if one.standing == Standing::Open {
                over.push(format!(
                    "The time of {} was over at {}: {}. Nothing was decided here.",
                    shown(&one.sheet.skill_id),
                    time_of_day(at),
                    then(one.sheet.on_expiry)
                ));
                one.standing = Standing::Past("its time is over".to_owned());
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

    /// Why a yes to those that are taken in would only fail a step; none where one of them can be carried out.
    pub(super) fn in_the_way(&self) -> Option<&str> {
        let mut open = self.waiting.iter().filter(|one| one.marked && one.standing == Standing::Open);
        let first = open.next()?.sheet.blocked.as_deref()?;
        open.all(|one| one.sheet.blocked.is_some()).then_some(first)
    }

    /// When the words of the sheet change by themselves, in milliseconds from this moment on.
    pub(super) fn words_hold(&self, now: Instant) -> Option<u64> {
        let clock = parts::clock(self.opened, now);
        let open = self.waiting.iter().filter(|one| one.standing == Standing::Open);
        let left = open.filter_map(|one| one.sheet.expires_ms).map(|at| at - clock).filter(|left| *left > 0);
        left.map(until_younger).min().and_then(|millis| u64::try_from(millis).ok())
    }
}

/// What comes after an answer or without one: label and words.
pub(super) fn outlook(sheet: &DecisionSheet, clock: i64) -> Vec<(&'static str, Vec<Seg>)> {
    let mut out = Vec::new();
    if let Some(sidecar) = &sheet.pause {
        let text = format!(
            "pause wanted by {}: after your yes it is held until somebody resumes it",
            shown(sidecar)
        );
        out.push(("after it", vec![Seg::new(text, Role::Warning)]));
    }
    if let Some(expires) = sheet.expires_ms.filter(|at| *at > clock) {
        out.push((
            "expires",
            vec![
                Seg::new(format!("in {}", age(expires - clock)), Role::Warning),
                Seg::new(format!("; then, {}", then(sheet.on_expiry)), Role::Muted),
            ],
        ));
    }
    out
}

/// What became of a gate that was on the sheet while it was read: in a few words, and whole.
pub(super) fn meanwhile(detail: &RunDetail, sheet: &DecisionSheet) -> (String, String) {
    let decided = detail.decisions.iter().rev().find(|decided| {
        let decision = &decided.decision;
        decision.step == sheet.step && decision.inputs_digest == sheet.inputs_digest
    });
    let by = decided.and_then(|decided| decided.by.approver.as_deref());
    let by = by.map(|name| format!(" by {}", shown(name))).unwrap_or_default();
    let at = decided.map(|decided| format!(" at {}", time_of_day(decided.at_ms)));
    let by = by + &at.unwrap_or_default();
    let state = super::choice::state_word(detail.run.state);
    let expired = detail.events.iter().rev().any(|event| event.event.kind == "run.expired");
    let what = match decided.map(|decided| decided.decision.verdict) {
        Some(Verdict::Approve) => format!("was approved{by}"),
        Some(Verdict::Deny) => format!("was denied{by}"),
        None if expired => "was not answered in time".to_owned(),
        None => "moved on".to_owned(),
    };
    let name = shown(&detail.run.skill_id);
    let notes = decided.and_then(|decided| decided.by.notes.as_deref()).map(shown);
    let notes = notes.filter(|notes| !notes.is_empty());
    let notes = notes.map(|notes| format!(" ({notes})")).unwrap_or_default();
    let said = format!("{name} {what} meanwhile{notes}; it is {state} now.");
    (what, said)
}
