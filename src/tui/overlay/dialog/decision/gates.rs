//! The gates of a decision: first the one that the dialog was opened for, then others of the same capability.

use super::super::parts::{self, Button};
use crate::action::Action;
use crate::theme::Role;
use crate::widgets::{Seg, age, shown, time_of_day, until_younger};
use skills_api::{Code, CommandResult, DecisionPreview, Error, RunCommand, RunDetail};
use skills_model::{Choice, Expiry, Verdict};
use skills_store::{RunId, RunQuery};

/// The progress of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SendState {
    Open,
    Sent,
    Done,
    /// No decision is possible any longer, with the reason.
    Past(String),
}

pub(super) struct PendingGate {
    pub preview: DecisionPreview,
    pub title: Option<String>,
    /// Whether the decision applies to this gate too.
    pub marked: bool,
    pub send_state: SendState,
}

impl PendingGate {
    fn open(preview: DecisionPreview, title: Option<String>, marked: bool) -> Self {
        Self { preview, title, marked, send_state: SendState::Open }
    }

    /// Returns the title of the run, or its skill.
    pub fn name(&self) -> String {
        shown(self.title.as_deref().unwrap_or(&self.preview.skill_id))
    }

    /// Returns the name with the end of the run's id: several runs may have the same name.
    fn name_and_id(&self) -> String {
        format!("{} {}", self.name(), parts::tail(&self.preview.run.0).to_uppercase())
    }

    /// Returns whether its run waits for a decision, as far as it is known.
    pub fn is_waiting(&self) -> bool {
        matches!(self.send_state, SendState::Open | SendState::Sent)
    }

    /// Returns why an approval by the suggested approver is rejected, unless another person is named.
    pub fn not_approver(&self, names_another: bool) -> Option<&str> {
        self.preview.not_approver.as_deref().filter(|_| !names_another)
    }

    /// Returns whether a command is sent for this gate: one that cannot be executed takes none that executes it, and one
    /// whose approval is rejected no approval.
    fn takes(&self, verdict: Verdict, executes: bool, names_another: bool) -> bool {
        let is_rejected = verdict == Verdict::Approve && self.not_approver(names_another).is_some();
        !(is_rejected || executes && self.preview.blocked.is_some())
    }

    /// Records that no decision was made here, because there was one before.
    fn was_decided_before(&mut self) {
        self.send_state = SendState::Past("already decided".to_owned());
    }
}

/// What the dialog shows after an event.
pub(super) struct Notice {
    pub text: String,
    /// Whether the dialog scrolls to it.
    pub to_top: bool,
}

impl Notice {
    pub fn at_top(text: impl Into<String>) -> Self {
        Self { text: text.into(), to_top: true }
    }

    fn aside(text: impl Into<String>) -> Self {
        Self { text: text.into(), to_top: false }
    }
}

/// Returns the outcome of a run whose wait expired.
fn then(expiry: Expiry) -> &'static str {
    match expiry {
        Expiry::Deny => "denied and canceled",
        Expiry::Fail => "failed, can be resumed",
    }
}

pub(super) struct Gates {
    pub all: Vec<PendingGate>,
    /// Index of the gate whose inputs are shown.
    pub at: usize,
    /// The filter of the list that the dialog was opened from: runs that do not match are not decided here.
    pub filter: Option<RunQuery>,
    /// Whether a person other than the suggested approver is named.
    pub names_another: bool,
}

impl Gates {
    pub fn new(preview: DecisionPreview) -> Self {
        let all = vec![PendingGate::open(preview, None, true)];
        Self { all, at: 0, filter: None, names_another: false }
    }

    pub fn current(&self) -> &PendingGate {
        &self.all[self.at.min(self.all.len() - 1)]
    }

    pub fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Returns the gates that a decision would apply to.
    pub fn selected(&self) -> impl Iterator<Item = &PendingGate> {
        self.all.iter().filter(|one| one.marked && one.send_state == SendState::Open)
    }

    /// Returns whether a decision would apply to the gate that is shown. Others are not decided while it is shown.
    pub fn shows_selected(&self) -> bool {
        let one = self.current();
        one.marked && one.send_state == SendState::Open
    }

    /// Returns the number of gates that a command would apply to, and of how many selected ones; empty for a single one.
    pub fn count(&self, verdict: Verdict, executes: bool) -> String {
        let selected = self.selected().count();
        let taken = self.selected().filter(|one| one.takes(verdict, executes, self.names_another)).count();
        match selected {
            0 | 1 => String::new(),
            _ if taken < selected => format!("{taken} of {selected}"),
            _ => selected.to_string(),
        }
    }

    pub fn any_open(&self) -> bool {
        self.all.iter().any(|one| one.send_state == SendState::Open)
    }

    /// Returns whether a decision made here is in flight.
    pub fn sending(&self) -> bool {
        self.all.iter().any(|one| one.marked && one.send_state == SendState::Sent)
    }

    /// Returns whether a decision is still possible, so that notes can be entered.
    pub fn takes_text(&self) -> bool {
        self.any_open() && !self.sending() && self.not_permitted().is_none()
    }

    /// Returns why decisions of this caller are rejected: a missing scope.
    pub fn not_permitted(&self) -> Option<&str> {
        let preview =
            self.all.iter().map(|one| &one.preview).find(|preview| preview.missing_scope.is_some())?;
        Some(preview.blocked.as_deref().unwrap_or("the key lacks a scope"))
    }

    /// Returns why an approval of the gate that is shown would be rejected, or only fail its step. No selected gate is
    /// approved while another one is shown that takes no approval.
    pub fn in_the_way(&self) -> Option<&str> {
        self.current().preview.blocked.as_deref().or_else(|| self.no_approval())
    }

    /// Returns why an approval of the gate that is shown would be rejected, whatever the choice.
    pub fn no_approval(&self) -> Option<&str> {
        self.current().not_approver(self.names_another)
    }

    /// Returns the buttons: "Cancel" first, or only "Close" while a decision is in flight or nothing is left to decide.
    pub fn buttons(&self) -> Vec<Button> {
        let blocked = self.in_the_way().is_some();
        if !self.takes_text() {
            return vec![Button::new(Action::Back, "Close")];
        }
        let mut out = vec![Button::new(Action::Back, "Cancel")];
        if !self.shows_selected() {
            return out;
        }
        let label = |word: &str, verdict, executes| {
            let count = self.count(verdict, executes);
            if count.is_empty() { word.to_owned() } else { format!("{word} {count}") }
        };
        out.push(Button::danger(Action::DenyNow, label("Deny", Verdict::Deny, false)));
        if self.all[0].preview.outcome_unknown && self.no_approval().is_none() {
            out.push(Button::danger(Action::FailStep, label("Fail", Verdict::Approve, false)));
            out.push(Button::new(Action::SkipStep, label("Skip", Verdict::Approve, false)));
            out.push(Button::new(Action::MarkCompleted, "Mark completed"));
            if !blocked {
                out.push(Button::new(Action::RunAgain, label("Run again", Verdict::Approve, true)));
            }
        } else if !blocked {
            out.push(Button::new(Action::ApproveNow, label("Approve", Verdict::Approve, true)));
        }
        out
    }

    /// Handles the loss of the store that contains these runs.
    pub fn close(&mut self) {
        for one in &mut self.all {
            if matches!(one.send_state, SendState::Open | SendState::Sent) {
                one.send_state = SendState::Past("no longer in the store".to_owned());
                one.marked = false;
            }
        }
    }

    /// Returns how long the shown gate has been waiting, and how much time is left.
    pub fn waits(&self, clock: i64) -> String {
        let preview = &self.current().preview;
        let left = preview.expires_ms.filter(|_| self.any_open()).map(|at| at.saturating_sub(clock));
        let left = left.filter(|left| *left > 0).map(|left| format!(", {} left", age(left)));
        format!("waiting {}{}", age(clock.saturating_sub(preview.since_ms)), left.unwrap_or_default())
    }

    pub fn mark(&mut self, index: usize) -> bool {
        let Some(one) = self.all.get_mut(index).filter(|one| one.send_state == SendState::Open) else {
            return false;
        };
        one.marked = !one.marked;
        true
    }

    /// Deselects expired gates and records that they can no longer be decided.
    pub fn let_expire(&mut self, clock: i64) -> Option<Notice> {
        let mut over = Vec::new();
        for one in &mut self.all {
            let Some(at) = one.preview.expires_ms.filter(|at| *at <= clock) else { continue };
            if one.send_state == SendState::Open {
                over.push(format!(
                    "{} expired at {}: {}. No decision was made here.",
                    one.name(),
                    time_of_day(at),
                    then(one.preview.on_expiry)
                ));
                one.send_state = SendState::Past("expired".to_owned());
                one.marked = false;
            }
        }
        (!over.is_empty()).then(|| Notice::at_top(over.join(" ")))
    }

    /// Returns after how many milliseconds the texts change without input.
    pub fn changes_in(&self, clock: i64) -> Option<u64> {
        let open = self.all.iter().filter(|one| one.send_state == SendState::Open);
        let left = open
            .filter_map(|one| one.preview.expires_ms)
            .map(|at| at.saturating_sub(clock))
            .filter(|left| *left > 0);
        left.map(until_younger).min().and_then(|millis| u64::try_from(millis).ok())
    }

    /// Returns a command for each selected gate that takes it, with exactly the inputs that were shown, and marks it as
    /// sent.
    pub fn decide(
        &mut self,
        (verdict, choice): (Verdict, Option<Choice>),
        executes: bool,
        (approver, notes): (Option<String>, Option<String>),
    ) -> Vec<(RunId, RunCommand)> {
        let names_another = self.names_another;
        let taken = |one: &&mut PendingGate| {
            one.marked && one.send_state == SendState::Open && one.takes(verdict, executes, names_another)
        };
        let send = |one: &mut PendingGate| {
            one.send_state = SendState::Sent;
            let command = RunCommand::Decide {
                verdict,
                step: Some(one.preview.step.clone()),
                inputs_digest: Some(one.preview.inputs_digest.clone()),
                approver: approver.clone(),
                notes: notes.clone(),
                choice,
                result: None,
            };
            (one.preview.run.clone(), command)
        };
        self.all.iter_mut().filter(taken).map(send).collect()
    }

    /// Returns why nothing is decided while this gate is shown.
    pub fn not_selected(&self) -> String {
        match &self.current().send_state {
            SendState::Open if self.selected().next().is_some() => {
                "No decision made: the run shown here is not selected. Space selects it.".to_owned()
            }
            SendState::Done => {
                "No decision made: the run shown here is decided. Move to a selected one.".to_owned()
            }
            SendState::Past(why) => {
                let is = if why.starts_with("was ") { "" } else { "is " };
                let selects = if self.selected().next().is_some() { "" } else { " and press Space" };
                format!("This one {is}{why}; move to another run{selects}.")
            }
            _ => "None is selected: Space selects the one under the cursor.".to_owned(),
        }
    }

    /// Records the response to a decision.
    pub fn answered(&mut self, run: &RunId, answer: Result<&CommandResult, &Error>) -> Option<Notice> {
        let one = self.all.iter_mut().find(|one| one.preview.run == *run)?;
        match answer {
            Ok(result) if result.repeated && result.run.approval_progress().is_some() => {
                // It can still be denied.
                one.send_state = SendState::Open;
                // About an unknown outcome, another choice replaces the first one.
                if !one.preview.outcome_unknown {
                    let why = "your approval is recorded; another person must approve, too";
                    one.preview.not_approver = Some(why.to_owned());
                }
                let message =
                    format!("{}: your approval is recorded; waiting for another person", one.name_and_id());
                Some(Notice::at_top(message))
            }
            Ok(result) if result.repeated => {
                // The other decision is final, and the later user must know it: the dialog stays until it is closed.
                one.was_decided_before();
                Some(Notice::at_top(format!("{} {}", one.name_and_id(), shown(&result.note))))
            }
            Ok(_) => {
                one.send_state = SendState::Done;
                None
            }
            Err(error) if error.code == Code::InvalidTransition => {
                one.was_decided_before();
                Some(Notice::aside(format!("{}: {}", one.name_and_id(), shown(&error.message))))
            }
            Err(error) => {
                // Sending the same decision again is safe: it returns the first result.
                one.send_state = SendState::Open;
                Some(Notice::at_top(failure(error)))
            }
        }
    }

    /// Returns whether all selected gates are decided.
    pub fn are_done(&self) -> bool {
        self.all.iter().all(|one| !one.marked || one.send_state == SendState::Done)
    }

    /// Updates a gate from its run: another one of the same capability, or one in the dialog that changed.
    pub fn take_detail(&mut self, detail: &RunDetail, clock: i64) -> Option<Notice> {
        let several = self.are_several();
        let Some(one) = self.all.iter_mut().find(|one| one.preview.run == detail.run.id) else {
            if self.filter.as_ref().is_none_or(|filter| filter.matches(&detail.run, clock)) {
                self.add(detail);
            }
            return None;
        };
        if one.send_state != SendState::Open {
            return None;
        }
        let Some(preview) = &detail.sheet else {
            let (what, message) = decided_since(detail, &one.preview);
            one.send_state = SendState::Past(what);
            one.marked = false;
            return Some(Notice::aside(message));
        };
        let before = std::mem::replace(&mut one.preview, preview.clone());
        let notice = if before.inputs_digest != preview.inputs_digest || before.step != preview.step {
            let message = match &preview.changed {
                Some(what) if before.step == preview.step => {
                    format!("{}: review what it would execute now.", shown(what))
                }
                _ => "The pending step has changed: review it again.".to_owned(),
            };
            Notice::at_top(if several { message + " Space selects it again." } else { message })
        } else if (&before.binding, &before.fallbacks) != (&preview.binding, &preview.fallbacks) {
            Notice::aside("Its binding or script has changed: review it again.")
        } else {
            return None;
        };
        // Among several, the gate that changed may not be the one that is shown.
        one.marked &= !several;
        Some(notice)
    }

    /// Adds the gate of another run if it is of the same capability.
    fn add(&mut self, detail: &RunDetail) {
        let (Some(preview), first) = (&detail.sheet, &self.all[0].preview) else { return };
        let alike =
            first.capability == preview.capability && first.outcome_unknown == preview.outcome_unknown;
        if alike && !first.capability.is_empty() {
            // Runs arrive in any order; after the requested one, the oldest is on top.
            let at = self.all.iter().skip(1).filter(|one| one.preview.run < preview.run).count() + 1;
            let title = detail.run.title().map(str::to_owned);
            self.all.insert(at, PendingGate::open(preview.clone(), title, false));
            self.at += usize::from(at <= self.at);
        }
    }
}

/// Describes a decision that was not made, or whose outcome is unknown.
fn failure(error: &Error) -> String {
    let message = shown(&error.message);
    for (begin, status) in [("not approved: ", "Not approved"), ("no decision made: ", "No decision made")] {
        if let Some(why) = message.strip_prefix(begin) {
            return format!("{status}: {why}");
        }
    }
    let is_of_connection = error.is_outcome_unknown() || error.is_service_unreachable();
    // "Rejected" could be the decision.
    let status = if is_of_connection { error.command_status() } else { "No decision made" };
    format!("{status}: {message}")
}

/// Returns what follows a decision, or the lack of one: label and text.
pub fn outlook(preview: &DecisionPreview, clock: i64) -> Vec<(&'static str, Vec<Seg>)> {
    let mut out = Vec::new();
    if let Some(sidecar) = &preview.pause {
        let text =
            format!("pause requested by {}: after approval it is paused until resumed", shown(sidecar));
        out.push(("after it", vec![Seg::new(text, Role::Warning)]));
    }
    if let Some(expires) = preview.expires_ms.filter(|at| *at > clock) {
        out.push((
            "expires",
            vec![
                Seg::new(format!("in {}", age(expires - clock)), Role::Warning),
                Seg::new(format!("; then {}", then(preview.on_expiry)), Role::Muted),
            ],
        ));
    }
    out
}

/// Describes the outcome of a gate that was decided while the dialog was open: short, and in full.
fn decided_since(detail: &RunDetail, preview: &DecisionPreview) -> (String, String) {
    let decided = detail.decisions.iter().rev().find(|decided| {
        let decision = &decided.decision;
        decision.step == preview.step && decision.inputs_digest == preview.inputs_digest
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
    let message = format!("{name} {what}{notes}; it is now {state}.");
    (what, message)
}
