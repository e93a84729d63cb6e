//! The decision dialog: shows exactly what would be executed, and sends an approval or a denial once. Approval is never
//! the default.

use std::time::Instant;

use ratatui::layout::Rect;
use serde_json::{Map, Value};

use super::decision_keys::KEY_REPEAT_TIMEOUT;
use super::decision_limits::meanwhile;
use super::parts::Button;
use crate::action::Action;
use crate::field::Field;
use crate::form::Text;
use crate::overlay::Outcome;
use crate::pane::{Effect, PaneId, Target};
use crate::run_requests::RunRequest;
use crate::widgets::scroll::Scroll;
use crate::widgets::text_width::shown;
use skills_api::{Code, CommandResult, DecisionSheet, Error, RunCommand, RunDetail};
use skills_model::{Choice, Verdict};
use skills_store::RunId;

/// Names of the fields in the draft.
const NOTES: &str = "notes";
const APPROVER: &str = "approver";

/// The focused part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Button(usize),
    /// The list of gates that are decided together.
    Together,
    Approver,
    Notes,
}

/// The progress of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SendState {
    Open,
    Sent,
    Done,
    /// No decision is possible any longer, with the reason.
    Past(String),
}

/// A gate in the dialog.
pub(super) struct PendingGate {
    pub(super) sheet: DecisionSheet,
    /// The title of its run.
    pub(super) title: Option<String>,
    /// Whether the decision applies to this gate too.
    pub(super) marked: bool,
    pub(super) send_state: SendState,
}

impl PendingGate {
    fn open(sheet: DecisionSheet, title: Option<String>, marked: bool) -> Self {
        Self { sheet, title, marked, send_state: SendState::Open }
    }

    /// Returns the title of the run, or its skill.
    pub(super) fn name(&self) -> String {
        shown(self.title.as_deref().unwrap_or(&self.sheet.skill_id))
    }

    /// Records that another decision won.
    fn was_decided_elsewhere(&mut self) {
        self.send_state = SendState::Past("decided by another user".to_owned());
    }
}

/// The state of the dialog.
pub(super) struct Decision {
    pub(super) pane: PaneId,
    pub(super) ticket: u64,
    pub(super) opened: (i64, Instant),
    /// The gates: first the one it was opened for, then others of the same capability.
    pub(super) waiting: Vec<PendingGate>,
    /// Index of the gate whose inputs are shown.
    pub(super) at: usize,
    pub(super) focus: Focus,
    pub(super) approver: Field,
    pub(super) notes: Text,
    /// The suggested approver.
    offered: String,
    /// The time of the current key, and until when `a` and `d` are repeats of the key that opened the dialog.
    pub(super) now: Instant,
    pub(super) ignore_repeats_until: Instant,
    /// A message to show: what failed, or what changed.
    pub(super) said: Option<String>,
    pub(super) body: Scroll,
    /// Whether the next frame scrolls to the row under the cursor.
    pub(super) follow: bool,
    pub(super) drawn: FrameAreas,
}

/// Areas of the last frame.
#[derive(Debug, Default)]
pub(super) struct FrameAreas {
    /// Digest of what the frame showed: only that can be decided.
    pub(super) digest: String,
    pub(super) buttons: Vec<Rect>,
    pub(super) together: Vec<(Rect, usize)>,
    pub(super) approver: Rect,
    pub(super) notes: Rect,
}

impl Decision {
    pub(super) fn new(pane: PaneId, sheet: DecisionSheet, ticket: u64, opened: (i64, Instant)) -> Self {
        let offered = sheet.approver.as_ref().map(|(name, _)| shown(name)).unwrap_or_default();
        let mut approver = Field::new();
        approver.set(&offered);
        Self {
            pane,
            ticket,
            opened,
            waiting: vec![PendingGate::open(sheet, None, true)],
            at: 0,
            focus: Focus::Button(0),
            approver,
            notes: Text::default(),
            offered,
            now: opened.1,
            ignore_repeats_until: opened.1 + KEY_REPEAT_TIMEOUT,
            said: None,
            body: Scroll::default(),
            follow: false,
            drawn: FrameAreas::default(),
        }
    }

    /// Sets the title of the run that the dialog was opened for.
    pub(super) fn titled(mut self, title: Option<String>) -> Self {
        self.waiting[0].title = title;
        self
    }

    /// Restores a draft.
    pub(super) fn retyped(mut self, typed: &Map<String, Value>) -> Self {
        let text = |name: &str| typed.get(name).and_then(Value::as_str);
        if let Some(name) = text(APPROVER) {
            self.approver.set(name);
        }
        if let Some(notes) = text(NOTES) {
            self.notes.set(notes);
        }
        self
    }

    /// Returns the entered fields that were not sent with a decision.
    pub(super) fn typed(&self) -> Map<String, Value> {
        let mut typed = Map::new();
        let open = |one: &PendingGate| matches!(one.send_state, SendState::Open | SendState::Sent);
        if self.waiting.first().is_some_and(open) {
            if !self.notes.text().trim().is_empty() {
                typed.insert(NOTES.to_owned(), Value::from(self.notes.text()));
            }
            if self.approver.text() != self.offered {
                typed.insert(APPROVER.to_owned(), Value::from(self.approver.text()));
            }
        }
        typed
    }

    pub(super) fn shown_one(&self) -> &DecisionSheet {
        &self.waiting[self.at.min(self.waiting.len() - 1)].sheet
    }

    /// Handles the loss of the store that contains these runs.
    pub(super) fn gone(&mut self) {
        for one in &mut self.waiting {
            if matches!(one.send_state, SendState::Open | SendState::Sent) {
                one.send_state = SendState::Past("no longer in the store".to_owned());
                one.marked = false;
            }
        }
        self.said = Some("The service has a different store now, without this run.".to_owned());
        self.focus = Focus::Button(0);
    }

    /// Returns the number of gates that a decision would apply to.
    fn open_ones(&self) -> usize {
        self.waiting.iter().filter(|one| one.marked && one.send_state == SendState::Open).count()
    }

    /// Returns the buttons: "Cancel" first, or only "Close" while a decision is in flight or nothing is left to decide.
    pub(super) fn buttons(&self) -> Vec<Button> {
        let open = self.open_ones();
        let blocked = self.in_the_way().is_some();
        if !self.takes_text() {
            return vec![Button::new(Action::Back, "Close", "Esc")];
        }
        let count = if open > 1 { format!(" {open}") } else { String::new() };
        let mut out = vec![
            Button::new(Action::Back, "Cancel", "Esc"),
            Button::danger(Action::DenyNow, format!("Deny{count}"), "D"),
        ];
        if self.waiting[0].sheet.outcome_unknown {
            out.push(Button::danger(Action::FailStep, format!("Fail{count}"), "X"));
            out.push(Button::new(Action::SkipStep, format!("Skip{count}"), "S"));
            out.push(Button::new(Action::ItHappened, "Happened", "H"));
            if !blocked {
                out.push(Button::new(Action::RunAgain, format!("Run again{count}"), "R"));
            }
        } else if !blocked {
            out.push(Button::new(Action::ApproveNow, format!("Approve{count}"), "A"));
        }
        out
    }

    fn focus_order(&self) -> Vec<Focus> {
        let mut ring: Vec<Focus> = (0..self.buttons().len()).map(Focus::Button).collect();
        if self.takes_text() || self.waiting.len() > 1 {
            if self.waiting.len() > 1 {
                ring.push(Focus::Together);
            }
            ring.extend([Focus::Approver, Focus::Notes]);
        }
        ring
    }

    pub(super) fn turn(&mut self, by: isize) {
        let ring = self.focus_order();
        let at = ring.iter().position(|focus| *focus == self.focus).unwrap_or(0);
        let len = isize::try_from(ring.len()).unwrap_or(1);
        let next = (isize::try_from(at).unwrap_or(0) + by).rem_euclid(len);
        self.focus = ring[usize::try_from(next).unwrap_or(0)];
    }

    /// Sends a decision, the only way to do so: each selected gate receives one command with exactly the inputs that
    /// were shown.
    fn decide(&mut self, verdict: Verdict, choice: Option<Choice>) -> Outcome {
        self.let_expire(self.now);
        let unknown = self.waiting[0].sheet.outcome_unknown;
        let runs_it = verdict == Verdict::Approve && matches!(choice, None | Some(Choice::Rerun));
        if let Some(why) = self.in_the_way().filter(|_| runs_it) {
            self.said = Some(format!("Not approved: {}", shown(why)));
            self.body.offset = 0;
            return Outcome::Stay;
        }
        if self.sending() || (verdict == Verdict::Approve && unknown != choice.is_some()) {
            return Outcome::Stay;
        }
        if self.drawn.digest != self.shown_one().inputs_digest {
            self.said = Some("No decision made: the request just changed. Review it again.".to_owned());
            self.body.offset = 0;
            return Outcome::Stay;
        }
        let words = |text: &str| {
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let (approver, notes, ticket) = (words(self.approver.text()), words(self.notes.text()), self.ticket);
        let mut effects = Vec::new();
        let taken = |one: &&mut PendingGate| {
            one.marked && one.send_state == SendState::Open && !(runs_it && one.sheet.blocked.is_some())
        };
        for one in self.waiting.iter_mut().filter(taken) {
            one.send_state = SendState::Sent;
            let order = RunCommand::Decide {
                verdict,
                step: Some(one.sheet.step.clone()),
                inputs_digest: Some(one.sheet.inputs_digest.clone()),
                approver: approver.clone(),
                notes: notes.clone(),
                choice,
                result: None,
            };
            let (run, order) = (one.sheet.run.clone(), Box::new(order));
            effects.push(Effect::Run(RunRequest::Order { run, order, ticket }));
        }
        if effects.is_empty() {
            if self.takes_text() {
                let shown_one = &self.waiting[self.at.min(self.waiting.len() - 1)];
                self.said = Some(match &shown_one.send_state {
                    SendState::Past(why) => {
                        let is = if why.starts_with("was ") { "" } else { "is " };
                        format!("This one {is}{why}: space selects another.")
                    }
                    _ => "None is selected: space selects the one under the cursor.".to_owned(),
                });
                self.body.offset = 0;
            }
            return Outcome::Stay;
        }
        self.said = None;
        self.focus = Focus::Button(0);
        Outcome::Request(self.pane, effects)
    }

    /// Continues in the dialog for the result of the step under the cursor, with the fields entered here.
    fn happened(&mut self) -> Outcome {
        let one = &self.waiting[self.at.min(self.waiting.len() - 1)];
        if !one.sheet.outcome_unknown || one.send_state != SendState::Open || self.sending() {
            return Outcome::Stay;
        }
        if self.waiting.iter().filter(|one| one.marked && one.send_state == SendState::Open).count() > 1 {
            self.said = Some("A result is given for one run at a time: unselect the others.".to_owned());
            self.body.offset = 0;
            return Outcome::Stay;
        }
        let run = one.sheet.run.clone();
        let keep = Effect::Keep(super::name_of_decision(&run), self.typed());
        let go = Effect::Go(self.pane, Some(Target::Happened(run)));
        Outcome::Done(self.pane, vec![keep, go])
    }

    pub(super) fn press(&mut self, action: Action) -> Outcome {
        let decides = matches!(
            action,
            Action::ApproveNow
                | Action::DenyNow
                | Action::RunAgain
                | Action::ItHappened
                | Action::SkipStep
                | Action::FailStep
        );
        if let Some(why) = self.not_permitted().filter(|_| decides) {
            self.said = Some(format!("Not decided: {}", shown(why)));
            self.body.offset = 0;
            return Outcome::Stay;
        }
        match action {
            Action::Back => Outcome::Close,
            Action::ApproveNow => self.decide(Verdict::Approve, None),
            Action::DenyNow => self.decide(Verdict::Deny, None),
            Action::RunAgain => self.decide(Verdict::Approve, Some(Choice::Rerun)),
            Action::ItHappened => self.happened(),
            Action::SkipStep => self.decide(Verdict::Approve, Some(Choice::Skip)),
            Action::FailStep => self.decide(Verdict::Approve, Some(Choice::Fail)),
            _ => Outcome::Stay,
        }
    }

    pub(super) fn answered(&mut self, run: &RunId, answer: Result<&CommandResult, &Error>) -> Outcome {
        let Some(one) = self.waiting.iter_mut().find(|one| one.sheet.run == *run) else {
            return Outcome::Stay;
        };
        match answer {
            Ok(ordered) if ordered.repeated => {
                // The other decision is final, and the later user must know it: the dialog stays until it is closed.
                let name = one.name();
                one.was_decided_elsewhere();
                self.said = Some(format!("Already decided: {name} {}", shown(&ordered.note)));
                self.body.offset = 0;
            }
            Ok(_) => one.send_state = SendState::Done,
            Err(error) if error.code == Code::InvalidTransition => {
                one.was_decided_elsewhere();
                let said = format!("Already decided: {}", shown(&error.message));
                self.said = Some(said);
            }
            Err(error) => {
                // Sending the same decision again is safe: it returns the first result.
                one.send_state = SendState::Open;
                let what = if error.is_outcome_unknown() {
                    "Sent, outcome unknown"
                } else if error.is_service_unreachable() {
                    "Not sent"
                } else {
                    "Rejected"
                };
                self.said = Some(format!("{what}: {}", shown(&error.message)));
                self.body.offset = 0;
            }
        }
        let again = answer.is_err_and(|error| error.code != Code::InvalidTransition);
        let failed = answer.is_err();
        let through = self.waiting.iter().all(|one| !one.marked || one.send_state == SendState::Done);
        match (failed, through) {
            // The obstacle may have appeared while the dialog was open: reload the run.
            (true, _) if again => {
                Outcome::HandledWith(self.pane, vec![Effect::Run(RunRequest::Detail(run.clone()))])
            }
            (true, _) => Outcome::Handled,
            (false, true) => Outcome::Close,
            (false, false) => Outcome::Stay,
        }
    }

    /// Updates a gate from its run: another one of the same capability, or one in the dialog that changed.
    pub(super) fn news_of(&mut self, detail: &RunDetail) {
        let several = self.waiting.len() > 1;
        let known = self.waiting.iter_mut().find(|one| one.sheet.run == detail.run.id);
        match (known, &detail.sheet) {
            (Some(one), Some(sheet))
                if one.send_state == SendState::Open
                    && (one.sheet.inputs_digest != sheet.inputs_digest || one.sheet.step != sheet.step) =>
            {
                let said = match &sheet.changed {
                    Some(what) if one.sheet.step == sheet.step => {
                        format!("{}: review what it would execute now.", shown(what))
                    }
                    _ => "The pending step has changed: review it again.".to_owned(),
                };
                one.sheet = sheet.clone();
                // Among several, the gate that changed may not be the one that is shown.
                one.marked &= !several;
                self.said = Some(if several { said + " Space selects it again." } else { said });
                self.body.offset = 0;
            }
            (Some(one), Some(sheet))
                if one.send_state == SendState::Open && one.sheet.binding != sheet.binding =>
            {
                one.sheet = sheet.clone();
                one.marked &= !several;
                self.said = Some("Its binding or script has changed: review it again.".to_owned());
            }
            // The rest of the gate is updated.
            (Some(one), Some(sheet)) if one.send_state == SendState::Open => one.sheet = sheet.clone(),
            (Some(one), None) if one.send_state == SendState::Open => {
                let (what, said) = meanwhile(detail, &one.sheet);
                self.said = Some(said);
                one.send_state = SendState::Past(what);
                one.marked = false;
                self.focus = Focus::Button(0);
            }
            (None, Some(sheet)) => {
                let first = &self.waiting[0].sheet;
                let alike =
                    first.capability == sheet.capability && first.outcome_unknown == sheet.outcome_unknown;
                if alike && !first.capability.is_empty() {
                    // Runs arrive in any order; after the requested one, the oldest is on top.
                    let at = self.waiting.iter().skip(1).filter(|one| one.sheet.run < sheet.run).count() + 1;
                    let title = detail.run.title().map(str::to_owned);
                    self.waiting.insert(at, PendingGate::open(sheet.clone(), title, false));
                    self.at += usize::from(at <= self.at);
                }
            }
            _ => {}
        }
    }

    pub(super) fn choose(&mut self, index: usize) {
        if index < self.waiting.len() && index != self.at {
            self.at = index;
            (self.body.offset, self.follow) = (0, true);
        }
    }

    pub(super) fn moved(&mut self, action: Action) {
        let page = self.body.page();
        let rows = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -page,
            Action::PageDown => page,
            _ => return,
        };
        match self.focus {
            // The arrows move in the list from the start; pages scroll the text.
            Focus::Together | Focus::Button(_) if rows.abs() == 1 && self.waiting.len() > 1 => {
                self.choose(self.at.saturating_add_signed(rows));
            }
            Focus::Approver | Focus::Notes if rows.abs() == 1 => self.turn(rows),
            // Drawing clamps the offset.
            _ => self.body.offset = self.body.offset.saturating_add_signed(rows).min(10_000),
        }
    }

    /// Returns whether a decision made here is in flight.
    pub(super) fn sending(&self) -> bool {
        self.waiting.iter().any(|one| one.marked && one.send_state == SendState::Sent)
    }

    /// Returns whether a decision is still possible, so that notes can be entered.
    pub(super) fn takes_text(&self) -> bool {
        let open = self.waiting.iter().any(|one| one.send_state == SendState::Open);
        open && !self.sending() && self.not_permitted().is_none()
    }

    pub(super) fn mark(&mut self, index: usize) {
        let Some(one) = self.waiting.get_mut(index) else { return };
        if one.send_state == SendState::Open {
            one.marked = !one.marked;
            self.said = None;
        }
    }
}
