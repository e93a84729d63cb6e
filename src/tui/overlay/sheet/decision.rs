//! The decision sheet: exactly what would happen, and a yes or no that is sent once. Never yes by default.

use std::time::Instant;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::parts::Button;
use crate::gateway::{Code, DecisionSheet, Error, RunDetail, RunOrder};
use crate::runs::{Choice, Verdict};
use crate::store::RunId;
use crate::tui::action::{Action, Context};
use crate::tui::field::Field;
use crate::tui::overlay::{Hint, Outcome, Overlay};
use crate::tui::pane::{Effect, Message, PaneId};
use crate::tui::run_traffic::{RunAsk, RunTold};
use crate::tui::widgets::measure::shown;
use crate::tui::widgets::pen::Pen;
use crate::tui::widgets::scroll::Scroll;

/// What has the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Button(usize),
    /// The list of what is decided together.
    Together,
    Approver,
    Notes,
}

/// How far an answer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    Open,
    Sent,
    Done,
    /// Nothing can be decided any more, and why.
    Past(String),
}

/// One gate on the sheet.
pub(super) struct Waiting {
    pub(super) sheet: DecisionSheet,
    /// Whether an answer is for this one too.
    pub(super) marked: bool,
    pub(super) standing: Standing,
}

/// The sheet and where it stands.
pub(super) struct Decision {
    pub(super) pane: PaneId,
    pub(super) ticket: u64,
    pub(super) opened: (i64, Instant),
    /// What waits: the one it was opened for first, then others of the same capability.
    pub(super) waiting: Vec<Waiting>,
    /// The one whose inputs are shown.
    pub(super) at: usize,
    pub(super) focus: Focus,
    pub(super) approver: Field,
    pub(super) notes: Field,
    /// Something to be told: what failed, or what changed under it.
    pub(super) said: Option<String>,
    pub(super) body: Scroll,
    pub(super) drawn: Drawn,
}

/// Where things stood in the last frame.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) buttons: Vec<Rect>,
    pub(super) together: Vec<(Rect, usize)>,
    pub(super) approver: Rect,
    pub(super) notes: Rect,
}

impl Decision {
    pub(super) fn new(pane: PaneId, sheet: DecisionSheet, ticket: u64, opened: (i64, Instant)) -> Self {
        let mut approver = Field::new();
        if let Some((name, _)) = &sheet.approver {
            approver.set(&shown(name));
        }
        Self {
            pane,
            ticket,
            opened,
            waiting: vec![Waiting { sheet, marked: true, standing: Standing::Open }],
            at: 0,
            focus: Focus::Button(0),
            approver,
            notes: Field::new(),
            said: None,
            body: Scroll::default(),
            drawn: Drawn::default(),
        }
    }

    pub(super) fn shown_one(&self) -> &DecisionSheet {
        &self.waiting[self.at.min(self.waiting.len() - 1)].sheet
    }

    pub(super) fn sending(&self) -> bool {
        self.waiting.iter().any(|one| one.standing == Standing::Sent)
    }

    /// Those an answer would go to.
    fn open_ones(&self) -> usize {
        self.waiting.iter().filter(|one| one.marked && one.standing == Standing::Open).count()
    }

    /// "Not now" first; none but it while an answer is under way or nothing is left to answer.
    pub(super) fn buttons(&self) -> Vec<Button> {
        let open = self.open_ones();
        if open == 0 || self.sending() {
            return vec![Button::new(Action::Back, "Close", "Esc")];
        }
        let count = if open > 1 { format!(" {open}") } else { String::new() };
        let mut out = vec![
            Button::new(Action::Back, "Not now", "Esc"),
            Button::danger(Action::DenyNow, format!("Deny{count}"), "D"),
        ];
        if self.waiting[0].sheet.outcome_unknown {
            out.push(Button::danger(Action::FailStep, format!("Fail{count}"), "X"));
            out.push(Button::new(Action::SkipStep, format!("Skip{count}"), "S"));
            out.push(Button::new(Action::RunAgain, format!("Run again{count}"), "R"));
        } else {
            out.push(Button::new(Action::ApproveNow, format!("Approve{count}"), "A"));
        }
        out
    }

    fn ring(&self) -> Vec<Focus> {
        let mut ring: Vec<Focus> = (0..self.buttons().len()).map(Focus::Button).collect();
        if self.open_ones() > 0 || self.waiting.len() > 1 {
            if self.waiting.len() > 1 {
                ring.push(Focus::Together);
            }
            ring.extend([Focus::Approver, Focus::Notes]);
        }
        ring
    }

    fn turn(&mut self, by: isize) {
        let ring = self.ring();
        let at = ring.iter().position(|focus| *focus == self.focus).unwrap_or(0);
        let len = isize::try_from(ring.len()).unwrap_or(1);
        let next = (isize::try_from(at).unwrap_or(0) + by).rem_euclid(len);
        self.focus = ring[usize::try_from(next).unwrap_or(0)];
    }

    /// The one way an answer leaves: each marked gate gets one order with exactly what was read of it.
    fn decide(&mut self, verdict: Verdict, choice: Option<Choice>) -> Outcome {
        let unknown = self.waiting[0].sheet.outcome_unknown;
        if self.sending() || (verdict == Verdict::Approve && unknown != choice.is_some()) {
            return Outcome::Stay;
        }
        let words = |field: &Field| {
            let text = field.text().trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let (approver, notes, ticket) = (words(&self.approver), words(&self.notes), self.ticket);
        let mut effects = Vec::new();
        for one in self.waiting.iter_mut().filter(|one| one.marked && one.standing == Standing::Open) {
            one.standing = Standing::Sent;
            let order = RunOrder::Decide {
                verdict,
                step: Some(one.sheet.step.clone()),
                inputs_digest: Some(one.sheet.inputs_digest.clone()),
                approver: approver.clone(),
                notes: notes.clone(),
                choice,
            };
            let (run, order) = (one.sheet.run.clone(), Box::new(order));
            effects.push(Effect::Run(RunAsk::Order { run, order, ticket }));
        }
        self.said = None;
        self.focus = Focus::Button(0);
        if effects.is_empty() { Outcome::Stay } else { Outcome::Ask(self.pane, effects) }
    }

    fn press(&mut self, action: Action) -> Outcome {
        match action {
            Action::Back => Outcome::Close,
            Action::ApproveNow => self.decide(Verdict::Approve, None),
            Action::DenyNow => self.decide(Verdict::Deny, None),
            Action::RunAgain => self.decide(Verdict::Approve, Some(Choice::Rerun)),
            Action::SkipStep => self.decide(Verdict::Approve, Some(Choice::Skip)),
            Action::FailStep => self.decide(Verdict::Approve, Some(Choice::Fail)),
            _ => Outcome::Stay,
        }
    }

    fn answered(&mut self, run: &RunId, answer: Result<(), &Error>) -> Outcome {
        let Some(one) = self.waiting.iter_mut().find(|one| one.sheet.run == *run) else {
            return Outcome::Stay;
        };
        match answer {
            Ok(()) => one.standing = Standing::Done,
            Err(error) if error.code == Code::InvalidTransition => {
                one.standing = Standing::Past("decided by somebody else".to_owned());
                let said = format!("Somebody else decided first: {}", shown(&error.message));
                self.said = Some(said);
            }
            Err(error) => {
                // The same answer again is safe: it leads to the first result.
                one.standing = Standing::Open;
                self.said = Some(format!("Not sent: {}", shown(&error.message)));
            }
        }
        let failed = answer.is_err();
        let through = self.waiting.iter().all(|one| !one.marked || one.standing == Standing::Done);
        match (failed, through) {
            (true, _) => Outcome::Heard,
            (false, true) => Outcome::Close,
            (false, false) => Outcome::Stay,
        }
    }

    /// A run as it stands now: another one of the same capability, or one on the sheet that changed.
    fn news_of(&mut self, detail: &RunDetail) {
        let known = self.waiting.iter_mut().find(|one| one.sheet.run == detail.run.id);
        match (known, &detail.sheet) {
            (Some(one), Some(sheet))
                if one.standing == Standing::Open
                    && (one.sheet.inputs_digest != sheet.inputs_digest || one.sheet.step != sheet.step) =>
            {
                one.sheet = sheet.clone();
                self.said = Some("It waits for something else now: read it again.".to_owned());
                self.body.offset = 0;
            }
            (Some(one), None) if one.standing == Standing::Open => {
                let by = detail.decisions.last().and_then(|decided| decided.by.approver.as_deref());
                let by = by.map(|name| format!(" by {}", shown(name))).unwrap_or_default();
                let verdict = match detail.decisions.last().map(|decided| decided.decision.verdict) {
                    Some(Verdict::Approve) => "approved",
                    Some(Verdict::Deny) => "denied",
                    None => "moved on",
                };
                one.standing = Standing::Past(format!("{verdict}{by}"));
                one.marked = false;
                self.said = Some(format!(
                    "{} was {verdict}{by} meanwhile; it is {} now.",
                    shown(&detail.run.skill_id),
                    super::choice::state_word(detail.run.state)
                ));
            }
            (None, Some(sheet)) => {
                let first = &self.waiting[0].sheet;
                let alike =
                    first.capability == sheet.capability && first.outcome_unknown == sheet.outcome_unknown;
                if alike && !first.capability.is_empty() {
                    let sheet = sheet.clone();
                    self.waiting.push(Waiting { sheet, marked: false, standing: Standing::Open });
                }
            }
            _ => {}
        }
    }

    fn choose(&mut self, index: usize) {
        if index < self.waiting.len() && index != self.at {
            self.at = index;
            self.body.offset = 0;
        }
    }

    fn moved(&mut self, action: Action) {
        let page = self.body.page();
        let rows = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -page,
            Action::PageDown => page,
            _ => return,
        };
        match self.focus {
            Focus::Together if rows.abs() == 1 => self.choose(self.at.saturating_add_signed(rows)),
            Focus::Approver | Focus::Notes if rows.abs() == 1 => self.turn(rows),
            // The drawing keeps the offset inside.
            _ => self.body.offset = self.body.offset.saturating_add_signed(rows).min(10_000),
        }
    }

    fn mark(&mut self, index: usize) {
        let Some(one) = self.waiting.get_mut(index) else { return };
        if one.standing == Standing::Open {
            one.marked = !one.marked;
        }
    }
}

impl Overlay for Decision {
    fn in_text(&self) -> bool {
        matches!(self.focus, Focus::Approver | Focus::Notes)
    }

    fn contexts(&self) -> Vec<Context> {
        vec![Context::Sheet]
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        match action {
            Some(Action::NextPart) => self.turn(1),
            Some(Action::PreviousPart) => self.turn(-1),
            Some(Action::Back) if self.in_text() => self.focus = Focus::Button(0),
            Some(Action::Open) => match self.focus {
                Focus::Button(at) => {
                    let action = self.buttons().get(at).map(|button| button.action);
                    return action.map_or(Outcome::Stay, |action| self.press(action));
                }
                Focus::Together => self.mark(self.at),
                Focus::Approver | Focus::Notes => self.turn(1),
            },
            Some(Action::Mark) if self.waiting.len() > 1 && !self.in_text() => self.mark(self.at),
            Some(Action::Copy) => {
                let text = serde_json::to_string_pretty(&self.shown_one().inputs).unwrap_or_default();
                return Outcome::Ask(self.pane, vec![Effect::Copy(text, "the inputs".to_owned())]);
            }
            Some(action @ (Action::Up | Action::Down | Action::PageUp | Action::PageDown)) => {
                self.moved(action);
            }
            Some(action) => return self.press(action),
            None => {
                match self.focus {
                    Focus::Approver => self.approver.key(key),
                    Focus::Notes => self.notes.key(key),
                    _ => false,
                };
            }
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        match self.focus {
            Focus::Approver => self.approver.paste(text),
            Focus::Notes => self.notes.paste(text),
            _ => false,
        };
        Outcome::Stay
    }

    fn told(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Run(RunTold::Ordered(ticket, run, answer)) if *ticket == self.ticket => {
                self.answered(run, answer.as_ref().map(|_| ()))
            }
            Message::Run(RunTold::Detail(_, Ok(detail))) => {
                self.news_of(detail);
                Outcome::Stay
            }
            _ => Outcome::Stay,
        }
    }

    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.body.offset = self.body.offset.saturating_sub(3),
            MouseEventKind::ScrollDown => self.body.offset = (self.body.offset + 3).min(10_000),
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(index) = self.drawn.buttons.iter().position(|rect| rect.contains(at)) {
                    let action = self.buttons().get(index).map(|button| button.action);
                    return action.map_or(Outcome::Stay, |action| self.press(action));
                }
                let row = self.drawn.together.iter().find(|(rect, _)| rect.contains(at));
                if let Some(index) = row.map(|(_, index)| *index) {
                    // A second click on the row that is shown marks it.
                    if self.focus == Focus::Together && self.at == index {
                        self.mark(index);
                    }
                    self.focus = Focus::Together;
                    self.choose(index);
                } else if self.drawn.approver.contains(at) {
                    self.focus = Focus::Approver;
                    self.approver.click(at);
                } else if self.drawn.notes.contains(at) {
                    self.focus = Focus::Notes;
                    self.notes.click(at);
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let mut out = vec![Hint { action: Action::NextPart, label: "move" }];
        if self.in_text() {
            out.push(Hint { action: Action::Open, label: "next" });
            out.push(Hint { action: Action::Back, label: "leave" });
            return out;
        }
        match self.focus {
            Focus::Together => out.push(Hint { action: Action::Mark, label: "take in" }),
            Focus::Button(0) => out.push(Hint { action: Action::Open, label: "not now" }),
            _ => out.push(Hint { action: Action::Open, label: "press" }),
        }
        for button in self.buttons().iter().skip(1) {
            let label = match button.action {
                Action::DenyNow => "deny",
                Action::ApproveNow => "approve",
                Action::RunAgain => "run again",
                Action::SkipStep => "skip",
                _ => "fail",
            };
            out.push(Hint { action: button.action, label });
        }
        out.push(Hint { action: Action::Up, label: "scroll" });
        out.push(Hint { action: Action::Copy, label: "copy inputs" });
        out.push(Hint { action: Action::Back, label: "nothing is decided" });
        out
    }

    fn draw(&mut self, area: Rect, pen: &mut Pen<'_>, now: Instant) -> Option<Position> {
        self.view(area, pen, now)
    }
}
