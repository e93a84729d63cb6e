//! The decision dialog: shows exactly what would be executed, and sends an approval or a denial once. Approval is never
//! the default.

mod fields;
mod gates;
mod view;

use std::borrow::Cow;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value, json};

use self::fields::{Fields, Part};
use self::gates::{Gates, Notice, SendState};
pub(super) use self::view::passed;
use self::view::{Body, Line, body_lines};
use super::parts::{self, Button, LABEL};
use crate::action::{Action, Context};
use crate::overlay::{Hint, Outcome, Overlay, centered, frame};
use crate::pane::{Effect, Message, PaneId, Target};
use crate::run_requests::{RunRequest, RunResponse};
use crate::theme::Role;
use crate::widgets::{Painter, cells, cut_end, shown};
use skills_api::{Code, CommandResult, DecisionPreview, Error, Event};
use skills_model::{Choice, Verdict};
use skills_store::{RunId, RunQuery};

/// A repeat of the key that opened the dialog is ignored as held down within this time.
const KEY_REPEAT_TIMEOUT: Duration = Duration::from_secs(1);
/// Width of the dialog if its lines need no more.
const WIDTH: u16 = 76;
/// Width up to which the dialog grows with its lines.
const MAX_WIDTH: u16 = 140;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Button(usize),
    /// The list of gates that are decided together.
    Together,
    Field(Part),
}

/// The state of the dialog.
pub(super) struct Decision {
    pane: PaneId,
    ticket: u64,
    opened: (i64, Instant),
    gates: Gates,
    fields: Fields,
    focus: Focus,
    /// The time of the current key, and until when `a` and `d` are repeats of the key that opened the dialog.
    now: Instant,
    ignore_repeats_until: Instant,
    /// A message to show: what failed, or what changed.
    notice: Option<String>,
    body: Body,
    /// Digest of what the last frame showed: only that can be decided.
    drawn_digest: String,
    /// Areas of the buttons in the last frame.
    button_areas: Vec<Rect>,
}

fn decides(action: Action) -> bool {
    matches!(
        action,
        Action::ApproveNow
            | Action::DenyNow
            | Action::RunAgain
            | Action::MarkCompleted
            | Action::SkipStep
            | Action::FailStep
    )
}

impl Decision {
    pub(super) fn new(pane: PaneId, preview: DecisionPreview, ticket: u64, opened: (i64, Instant)) -> Self {
        Self {
            pane,
            ticket,
            opened,
            fields: Fields::new(&preview),
            gates: Gates::new(preview),
            focus: Focus::Button(0),
            now: opened.1,
            ignore_repeats_until: opened.1 + KEY_REPEAT_TIMEOUT,
            notice: None,
            body: Body::default(),
            drawn_digest: String::new(),
            button_areas: Vec::new(),
        }
    }

    /// Sets the title of the run that the dialog was opened for, and the filter of those that can be decided with it.
    pub(super) fn among(mut self, title: Option<String>, filter: Option<RunQuery>) -> Self {
        self.gates.all[0].title = title;
        self.gates.filter = filter;
        self
    }

    /// Restores a draft.
    pub(super) fn retyped(mut self, typed: &Map<String, Value>) -> Self {
        self.fields.retype(typed);
        self.gates.names_another = self.fields.names_another();
        self
    }

    /// Returns the entered fields that were not sent with a decision.
    fn typed(&self) -> Map<String, Value> {
        match self.gates.all[0].send_state {
            SendState::Open | SendState::Sent => self.fields.typed(),
            SendState::Done | SendState::Past(_) => Map::new(),
        }
    }

    fn show_notice(&mut self, notice: Notice) -> Outcome {
        self.notice = Some(notice.text);
        if notice.to_top {
            self.body.scroll.offset = 0;
        }
        Outcome::Stay
    }

    fn clock(&self, now: Instant) -> i64 {
        parts::clock(self.opened, now)
    }

    fn let_expire(&mut self, now: Instant) {
        if let Some(notice) = self.gates.let_expire(self.clock(now)) {
            self.show_notice(notice);
            if !self.gates.takes_text() {
                self.focus = Focus::Button(0);
            }
        }
    }

    fn focus_order(&self) -> Vec<Focus> {
        let mut ring: Vec<Focus> = (0..self.gates.buttons().len()).map(Focus::Button).collect();
        if self.gates.takes_text() || self.gates.are_several() {
            if self.gates.are_several() {
                ring.push(Focus::Together);
            }
            ring.extend([Focus::Field(Part::Approver), Focus::Field(Part::Notes)]);
        }
        ring
    }

    fn turn(&mut self, forward: bool) {
        self.focus = parts::next_focus(&self.focus_order(), self.focus, forward);
    }

    /// Sends a decision, the only way to do so.
    fn decide(&mut self, verdict: Verdict, choice: Option<Choice>) -> Outcome {
        self.let_expire(self.now);
        let unknown = self.gates.all[0].preview.outcome_unknown;
        let executes = verdict == Verdict::Approve && matches!(choice, None | Some(Choice::Rerun));
        if let Some(why) = self.gates.in_the_way().filter(|_| executes) {
            let notice = Notice::at_top(format!("Not approved: {}", shown(why)));
            return self.show_notice(notice);
        }
        if self.gates.sending() || (verdict == Verdict::Approve && unknown != choice.is_some()) {
            return Outcome::Stay;
        }
        if self.drawn_digest != self.gates.current().preview.inputs_digest {
            return self
                .show_notice(Notice::at_top("No decision made: the request just changed. Review it again."));
        }
        if !self.gates.shows_selected() {
            if self.gates.takes_text() {
                let notice = Notice::at_top(self.gates.not_selected());
                self.show_notice(notice);
            }
            return Outcome::Stay;
        }
        let commands = self.gates.decide((verdict, choice), executes, self.fields.words());
        if commands.is_empty() {
            return Outcome::Stay;
        }
        self.notice = None;
        self.focus = Focus::Button(0);
        let ticket = self.ticket;
        let request =
            |(run, command)| Effect::Run(RunRequest::Command { run, command: Box::new(command), ticket });
        Outcome::Request(self.pane, commands.into_iter().map(request).collect())
    }

    /// Continues in the dialog for the result of the step under the cursor, with the fields entered here.
    fn happened(&mut self) -> Outcome {
        let one = self.gates.current();
        if !one.preview.outcome_unknown || one.send_state != SendState::Open || self.gates.sending() {
            return Outcome::Stay;
        }
        if self.gates.selected().count() > 1 {
            return self.show_notice(Notice::at_top(
                "A result is given for one run at a time: unselect the others.",
            ));
        }
        let run = one.preview.run.clone();
        let keep = Effect::Keep(super::decision_draft_key(&run), self.typed());
        let go = Effect::Go(self.pane, Some(Target::Happened(run)));
        Outcome::Done(self.pane, vec![keep, go])
    }

    fn press(&mut self, action: Action) -> Outcome {
        if let Some(why) = self.gates.not_permitted().filter(|_| decides(action)) {
            let notice = Notice::at_top(format!("Not decided: {}", shown(why)));
            return self.show_notice(notice);
        }
        let approves = decides(action) && action != Action::DenyNow;
        if let Some(why) = self.gates.no_approval().filter(|_| approves) {
            let notice = Notice::at_top(format!("Not approved: {}", shown(why)));
            return self.show_notice(notice);
        }
        match action {
            Action::Back => Outcome::Close,
            Action::ApproveNow => self.decide(Verdict::Approve, None),
            Action::DenyNow => self.decide(Verdict::Deny, None),
            Action::RunAgain => self.decide(Verdict::Approve, Some(Choice::Rerun)),
            Action::MarkCompleted => self.happened(),
            Action::SkipStep => self.decide(Verdict::Approve, Some(Choice::Skip)),
            Action::FailStep => self.decide(Verdict::Approve, Some(Choice::Fail)),
            _ => Outcome::Stay,
        }
    }

    fn answered(&mut self, run: &RunId, answer: Result<&CommandResult, &Error>) -> Outcome {
        if !self.gates.all.iter().any(|one| one.preview.run == *run) {
            return Outcome::Stay;
        }
        if let Some(notice) = self.gates.answered(run, answer) {
            self.show_notice(notice);
        }
        match answer {
            Err(error) if error.code == Code::InvalidTransition => Outcome::Handled,
            // The obstacle may have appeared while the dialog was open: reload the run.
            Err(_) => Outcome::HandledWith(self.pane, vec![Effect::Run(RunRequest::Detail(run.clone()))]),
            Ok(_) if self.gates.are_done() => Outcome::Close,
            Ok(_) => Outcome::Stay,
        }
    }

    fn choose(&mut self, index: usize) {
        if index < self.gates.all.len() && index != self.gates.at {
            self.gates.at = index;
            self.body.show_cursor();
        }
    }

    fn mark(&mut self, index: usize) {
        if self.gates.mark(index) {
            self.notice = None;
        }
    }

    fn moved(&mut self, action: Action) {
        let page = self.body.scroll.page();
        let rows = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -page,
            Action::PageDown => page,
            _ => return,
        };
        match self.focus {
            // The arrows move in the list from the start; pages scroll the text.
            Focus::Together | Focus::Button(_) if rows.abs() == 1 && self.gates.are_several() => {
                self.choose(self.gates.at.saturating_add_signed(rows));
            }
            Focus::Field(_) if rows.abs() == 1 => self.turn(rows > 0),
            _ => self.body.roll(rows),
        }
    }

    fn press_button(&mut self, at: usize) -> Outcome {
        let action = self.gates.buttons().get(at).map(|button| button.action);
        action.map_or(Outcome::Stay, |action| self.press(action))
    }

    /// Returns whether a key begins a text: a letter that is bound to no button or action. The capitals of decisions
    /// never do, so that a decision cannot become text by mistake, nor does the key that opened the dialog while it is
    /// held down.
    fn begins_text(&mut self, key: KeyEvent, action: Option<Action>) -> bool {
        let KeyCode::Char(letter) = key.code else { return false };
        let is_bound =
            action.is_some_and(|action| decides(action) || matches!(action, Action::Copy | Action::Mark));
        let is_unmodified = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let is_possible = !self.in_text() && self.gates.takes_text();
        if is_bound || !is_possible || !is_unmodified || !letter.is_alphanumeric() {
            return false;
        }
        if matches!(letter, 'a' | 'd') && self.now < self.ignore_repeats_until {
            self.ignore_repeats_until = self.now + KEY_REPEAT_TIMEOUT;
            return false;
        }
        true
    }
}

/// Returns the keys of the buttons that decide.
fn button_hints(buttons: &[Button]) -> Vec<Hint> {
    let label = |action| match action {
        Action::DenyNow => "deny",
        Action::ApproveNow => "approve",
        Action::RunAgain => "run again",
        Action::MarkCompleted => "mark completed",
        Action::SkipStep => "skip",
        _ => "fail",
    };
    let decides = buttons.iter().filter(|button| button.action != Action::Back);
    decides.map(|button| Hint { action: button.action, label: label(button.action) }).collect()
}

/// Returns the line below the buttons.
fn caption(
    gates: &Gates,
    (notes_are_empty, in_text): (bool, bool),
    inner: u16,
    painter: &Painter<'_>,
) -> Cow<'static, str> {
    let key = |action| painter.key_word(action, &[Context::Dialog]);
    let (approve, deny, copy) = (key(Action::ApproveNow), key(Action::DenyNow), key(Action::Copy));
    let leave = painter.key_word(Action::LeaveField, &[Context::Field]);
    let captions: [Cow<'static, str>; 2] = if gates.sending() {
        ["Sent; waiting for the response."; 2].map(Cow::from)
    } else if gates.not_permitted().is_some() {
        ["This API key lacks the scope shown above.", "This API key cannot decide."].map(Cow::from)
    } else if !gates.takes_text() {
        ["No pending decision."; 2].map(Cow::from)
    } else if in_text {
        [
            format!("Press {leave} to leave the field, then choose a button.").into(),
            format!("Press {leave} to leave the field, then decide.").into(),
        ]
    } else if !gates.shows_selected() {
        let text = if gates.current().is_waiting() {
            "Not selected: Space selects this run."
        } else {
            "This run is no longer waiting: move to another one."
        };
        [text; 2].map(Cow::from)
    } else if notes_are_empty {
        let runs = |verdict, executes| {
            let count = gates.count(verdict, executes);
            if count.is_empty() { count } else { format!(" {count} runs") }
        };
        let (approved, denied) = (runs(Verdict::Approve, true), runs(Verdict::Deny, false));
        if gates.all[0].preview.outcome_unknown {
            [
                format!("Type to add notes; {copy} copies the inputs, uppercase keys decide.").into(),
                format!("Type to add notes; {copy} copies, uppercase decides.").into(),
            ]
        } else if gates.in_the_way().is_some() {
            [
                format!("{deny} denies{denied}, {copy} copies inputs; other letters start the notes.").into(),
                format!("{deny} denies{denied}, {copy} copies; typing adds notes.").into(),
            ]
        } else {
            [
                format!(
                    "{approve} approves{approved}, {deny} denies{denied}, {copy} copies inputs; other letters start the \
                     notes."
                )
                .into(),
                format!("{approve} approves{approved}, {deny} denies{denied}, {copy} copies; typing adds notes.")
                    .into(),
            ]
        }
    } else {
        [
            "Notes are stored with the decision, and kept as a draft if you close.",
            "Notes are kept as a draft if you close.",
        ]
        .map(Cow::from)
    };
    let [long, short] = captions;
    if cells(&long) > inner.saturating_sub(2) { short } else { long }
}

impl Overlay for Decision {
    fn in_text(&self) -> bool {
        matches!(self.focus, Focus::Field(_))
    }

    fn letters_begin_text(&self) -> bool {
        self.gates.takes_text()
    }

    fn contexts(&self) -> Vec<Context> {
        if self.focus == Focus::Field(Part::Notes) {
            vec![Context::Form, Context::Dialog]
        } else {
            vec![Context::Dialog]
        }
    }

    fn at(&mut self, now: Instant) {
        self.now = now;
    }

    fn draft_effect(&self) -> Option<(PaneId, Effect)> {
        let name = super::decision_draft_key(&self.gates.all[0].preview.run);
        Some((self.pane, Effect::Keep(name, self.typed())))
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        if self.begins_text(key, action) {
            self.focus = Focus::Field(Part::Notes);
            self.fields.notes.key(key);
            return Outcome::Stay;
        }
        match action {
            Some(Action::NextPart) => self.turn(true),
            Some(Action::PreviousPart) => self.turn(false),
            Some(Action::Back) if self.in_text() => self.focus = Focus::Button(0),
            Some(Action::NewLine) => {
                self.fields.notes.insert("\n");
            }
            Some(action @ (Action::Up | Action::Down))
                if self.focus == Focus::Field(Part::Notes)
                    && self.fields.notes.by_row(action == Action::Down) => {}
            Some(Action::Open) => match self.focus {
                Focus::Button(at) => return self.press_button(at),
                Focus::Together => self.mark(self.gates.at),
                Focus::Field(Part::Approver) => self.turn(true),
                // A user who continues to write must not decide by a letter.
                Focus::Field(Part::Notes) => {}
            },
            Some(Action::Mark) if self.gates.are_several() && !self.in_text() => self.mark(self.gates.at),
            Some(Action::Copy) => {
                let preview = &self.gates.current().preview;
                let (value, what) = match &preview.target {
                    Some(target) => {
                        let value = json!({ "target": target.content, "inputs": preview.inputs });
                        (value, "the target and the inputs")
                    }
                    None => (preview.inputs.clone(), "the inputs"),
                };
                let text = serde_json::to_string_pretty(&value).unwrap_or_default();
                return Outcome::Request(self.pane, vec![Effect::Copy(text, what.to_owned())]);
            }
            Some(action @ (Action::Up | Action::Down | Action::PageUp | Action::PageDown)) => {
                self.moved(action);
            }
            Some(action) => return self.press(action),
            None => {
                if let Focus::Field(part) = self.focus {
                    self.fields.key(part, key);
                    self.gates.names_another = self.fields.names_another();
                }
            }
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if self.focus == Focus::Field(Part::Approver) {
            self.fields.paste(Part::Approver, text);
            self.gates.names_another = self.fields.names_another();
        } else if self.gates.takes_text() {
            self.focus = Focus::Field(Part::Notes);
            self.fields.paste(Part::Notes, text);
        }
        Outcome::Stay
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Run(RunResponse::CommandDone(ticket, run, answer)) if *ticket == self.ticket => {
                self.answered(run, answer.as_deref())
            }
            Message::Run(RunResponse::Detail(_, Ok(detail))) => {
                if let Some(notice) = self.gates.take_detail(detail, self.clock(self.now)) {
                    if detail.sheet.is_none() {
                        self.focus = Focus::Button(0);
                    }
                    self.show_notice(notice);
                }
                Outcome::Stay
            }
            Message::Event(Event::Replaced) => {
                self.gates.close();
                self.notice = Some("The service has a different store now, without this run.".to_owned());
                self.focus = Focus::Button(0);
                Outcome::Stay
            }
            _ => Outcome::Stay,
        }
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        self.body.roll(rows);
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        if let Some(index) = parts::button_at(&self.button_areas, at) {
            return self.press_button(index);
        }
        if let Some(index) = self.body.row_at(at) {
            // A second click on the row that is shown selects it.
            if self.focus == Focus::Together && self.gates.at == index {
                self.mark(index);
            }
            self.focus = Focus::Together;
            self.choose(index);
        } else if let Some(part) = self.fields.click(at) {
            self.focus = Focus::Field(part);
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let hint = Hint::new;
        let mut out = vec![hint(Action::NextPart, "move")];
        if self.in_text() {
            out.push(match self.focus {
                Focus::Field(Part::Notes) => hint(Action::NewLine, "new line"),
                _ => hint(Action::Open, "next"),
            });
            out.push(hint(Action::Back, "leave field"));
            return out;
        }
        if self.gates.sending() {
            // Closing does not withdraw a decision.
            return vec![hint(Action::Back, "close"), hint(Action::Up, "scroll")];
        }
        out.push(match self.focus {
            Focus::Together => hint(Action::Mark, "select"),
            Focus::Button(0) => hint(Action::Open, "cancel"),
            _ => hint(Action::Open, "select"),
        });
        let several = self.gates.are_several();
        if several && self.focus != Focus::Together {
            out.push(hint(Action::Mark, "select"));
        }
        out.extend(button_hints(&self.gates.buttons()));
        if several {
            out.extend([hint(Action::Up, "run"), hint(Action::PageDown, "scroll")]);
        } else {
            out.push(hint(Action::Up, "scroll"));
        }
        out.extend([hint(Action::Copy, "copy inputs"), hint(Action::Back, "cancel")]);
        out
    }

    fn help_items(&self) -> Vec<Hint> {
        let hint = Hint::new;
        let mut out = parts::with_form_keys(self.hints());
        if !self.gates.sending() {
            out.extend(button_hints(&self.gates.buttons()));
            out.extend(self.gates.are_several().then(|| hint(Action::Mark, "select")));
            out.extend([
                hint(Action::PageDown, "scroll"),
                hint(Action::Copy, "copy inputs"),
                hint(Action::Back, "cancel"),
            ]);
        }
        out
    }

    fn changes_in(&self, now: Instant) -> Option<u64> {
        self.gates.changes_in(self.clock(now))
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        self.let_expire(now);
        self.drawn_digest.clone_from(&self.gates.current().preview.inputs_digest);
        let roomy = area.height >= 30;
        let mut width = area.width.saturating_sub(4).clamp(WIDTH, MAX_WIDTH).min(area.width);
        let clock = self.clock(now);
        let lines = |width: u16, painter: &Painter<'_>| {
            body_lines(
                (&self.gates, self.notice.as_deref()),
                (width.saturating_sub(6), roomy),
                clock,
                painter,
            )
        };
        let mut body = lines(width, painter);
        // With a list the width must not change with the row under the cursor.
        if !self.gates.are_several() {
            let needed = body.iter().map(Line::width).max().unwrap_or(0);
            width = needed.saturating_add(6).clamp(WIDTH.min(width), width);
            body = lines(width, painter);
        }
        let inner = width.saturating_sub(6);
        let caption = caption(&self.gates, (self.fields.notes.is_empty(), self.in_text()), inner, painter);
        // Approver, notes and buttons, with blank rows if there is enough space, and the caption.
        let long = self.fields.notes.height(inner.saturating_sub(LABEL + 2)) > 1;
        let notes: u16 = if roomy || long || self.focus == Focus::Field(Part::Notes) { 2 } else { 1 };
        let foot: u16 = if roomy { 7 + notes } else { 2 + notes };
        let requested = (body.len() as u16).saturating_add(foot + 3 + u16::from(roomy));
        let height = requested.min(area.height.saturating_sub(if roomy { 2 } else { 0 })).max(8);
        let outer = centered(area, width, height);
        let title = format!("{} Your decision", painter.glyphs.waiting);
        let inside = frame(outer, painter, &title, &self.gates.waits(clock), true);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let top = inside.y + u16::from(roomy);
        let bottom = inside.bottom().saturating_sub(foot);
        let mut middle = Rect { y: top, height: bottom.saturating_sub(top), ..inside };
        if roomy && body.len() > usize::from(middle.height) {
            // A text that continues below must still not touch the fields.
            middle.height -= 1;
        }
        self.body.draw(middle, &body, (&self.gates, matches!(self.focus, Focus::Field(_)), clock), painter);
        let air = u16::from(roomy);
        let mut y = bottom;
        let approver = Rect { y, height: 1, ..inside };
        let areas = (approver, Rect { y: y + 1 + air, height: notes, ..inside });
        let focused = if let Focus::Field(part) = self.focus { Some(part) } else { None };
        let cursor = self.fields.draw(areas, (&self.gates.current().preview, focused), painter);
        y += 1 + notes + 2 * air;
        let focused = if let Focus::Button(at) = self.focus { Some(at) } else { None };
        self.button_areas = parts::buttons(
            Rect { y, height: 1, ..inside },
            painter,
            (&self.gates.buttons(), &[Context::Dialog]),
            focused,
        );
        if roomy {
            painter.put(inside.x, y + 2, &caption, Role::Muted, inside.width);
        } else {
            let note = format!(" {caption} ");
            let available = outer.width.saturating_sub(6);
            let note = cut_end(&note, available, painter.glyphs.ellipsis).into_owned();
            painter.put(outer.x + 2, outer.bottom().saturating_sub(1), &note, Role::Muted, available);
        }
        cursor
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use skills_api::RunCommand;
    use skills_api::operations::Scope;
    use skills_store::RunOptions;

    fn preview(changes: serde_json::Value) -> DecisionPreview {
        let mut preview = json!({
            "run": "r1", "skill_id": "send", "headline": "Sends", "step": "send", "place": [1, 1],
            "outcome_unknown": false, "capability": "mail.send", "capability_note": "", "binding": "",
            "isolation": "", "why": "", "irreversible": null, "inputs": {}, "inputs_digest": "d1",
            "approver": null, "since_ms": 0, "expires_ms": null,
        });
        for (name, value) in changes.as_object().into_iter().flatten() {
            preview[name] = value.clone();
        }
        serde_json::from_value(preview).unwrap()
    }

    fn open(changes: serde_json::Value) -> Decision {
        let mut decision = Decision::new(PaneId::Runs, preview(changes), 1, (1_000, Instant::now()));
        "d1".clone_into(&mut decision.drawn_digest);
        decision
    }

    fn labels(decision: &Decision) -> Vec<&'static str> {
        decision.hints().iter().map(|hint| hint.label).collect()
    }

    #[test]
    fn footer_offers_no_second_decision_in_flight() {
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
    fn the_footer_in_the_notes_offers_no_enter() {
        let mut decision = open(json!({}));
        decision.focus = Focus::Field(Part::Notes);
        assert_eq!(labels(&decision), ["move", "new line", "leave field"]);
    }

    #[test]
    fn decision_requires_a_drawn_frame() {
        let mut decision = open(json!({}));
        "d2".clone_into(&mut decision.gates.all[0].preview.inputs_digest);
        for action in [Action::ApproveNow, Action::DenyNow] {
            assert_eq!(decision.press(action), Outcome::Stay);
        }
        assert!(decision.notice.is_some());
    }

    #[test]
    fn only_a_selected_run_that_is_shown_is_decided() {
        let mut decision = open(json!({}));
        let mut other = Gates::new(preview(json!({"run": "r2", "inputs_digest": "d2"}))).all.remove(0);
        other.marked = false;
        decision.gates.all.push(other);
        decision.moved(Action::Down);
        "d2".clone_into(&mut decision.drawn_digest);
        assert!(!labels(&decision).contains(&"approve"));
        for action in [Action::ApproveNow, Action::DenyNow] {
            assert_eq!(decision.press(action), Outcome::Stay);
            assert!(decision.notice.take().is_some_and(|text| text.contains("not selected")));
        }
        decision.mark(1);
        let Outcome::Request(_, sent) = decision.press(Action::ApproveNow) else {
            panic!("nothing was sent")
        };
        assert_eq!(sent.len(), 2);
    }

    #[test]
    fn an_approval_counts_only_the_runs_that_take_it() {
        let mut decision = open(json!({}));
        let why = "ana has already approved; another person must approve";
        for (run, not_approver) in [("r2", None), ("r3", Some(why))] {
            let mut preview = preview(json!({"run": run, "inputs_digest": run}));
            preview.not_approver = not_approver.map(str::to_owned);
            decision.gates.all.extend(Gates::new(preview).all);
        }
        let names = |decision: &Decision| -> Vec<String> {
            decision.gates.buttons().into_iter().map(|button| button.label).collect()
        };
        assert_eq!(names(&decision), ["Cancel", "Deny 3", "Approve 2 of 3"]);
        decision.moved(Action::Down);
        decision.moved(Action::Down);
        "r3".clone_into(&mut decision.drawn_digest);
        assert_eq!(names(&decision), ["Cancel", "Deny 3"]);
        assert_eq!(
            decision.press(Action::ApproveNow),
            Outcome::Stay,
            "the run that is shown takes no approval"
        );
        assert!(decision.notice.take().is_some_and(|text| text.contains(why)));
    }

    #[test]
    fn lost_step_without_rerun_can_still_be_decided() {
        let mut decision = open(json!({"outcome_unknown": true, "blocked": "no binding executes it"}));
        assert_eq!(decision.press(Action::RunAgain), Outcome::Stay);
        assert!(!labels(&decision).contains(&"run again") && labels(&decision).contains(&"skip"));
        let Outcome::Request(_, sent) = decision.press(Action::SkipStep) else { panic!("nothing was sent") };
        let [Effect::Run(RunRequest::Command { command, .. })] = &sent[..] else { panic!("{sent:?}") };
        assert!(matches!(**command, RunCommand::Decide { verdict: Verdict::Approve, .. }));
    }

    #[test]
    fn decision_without_scope_is_neither_offered_nor_sent() {
        for unknown in [false, true] {
            let mut decision =
                open(json!({"outcome_unknown": unknown, "blocked": "the key op lacks `decide`"}));
            decision.gates.all[0].preview.missing_scope = Some(Scope::Decide);
            let offered: Vec<Action> = decision.gates.buttons().iter().map(|button| button.action).collect();
            assert_eq!(offered, [Action::Back]);
            assert_eq!(labels(&decision), ["move", "cancel", "scroll", "copy inputs", "cancel"]);
            let decide = [
                Action::ApproveNow,
                Action::DenyNow,
                Action::RunAgain,
                Action::MarkCompleted,
                Action::SkipStep,
                Action::FailStep,
            ];
            for action in decide {
                decision.notice = None;
                assert_eq!(decision.press(action), Outcome::Stay, "{action:?}");
                assert!(decision.notice.as_deref().unwrap_or_default().contains("`decide`"), "{action:?}");
            }
        }
    }

    #[test]
    fn an_approval_that_the_policy_rejects_is_neither_offered_nor_sent() {
        let approvals =
            [Action::ApproveNow, Action::RunAgain, Action::MarkCompleted, Action::SkipStep, Action::FailStep];
        for unknown in [false, true] {
            let mut decision = open(json!({"outcome_unknown": unknown}));
            let why = "the policy allows approvals by ana only";
            decision.gates.all[0].preview.not_approver = Some(why.to_owned());
            let offered = |decision: &Decision| -> Vec<Action> {
                decision.gates.buttons().iter().map(|button| button.action).collect()
            };
            assert_eq!(offered(&decision), [Action::Back, Action::DenyNow]);
            for action in approvals {
                decision.notice = None;
                assert_eq!(decision.press(action), Outcome::Stay, "{action:?}");
                assert!(decision.notice.as_deref().unwrap_or_default().contains(why), "{action:?}");
            }
            decision.focus = Focus::Field(Part::Approver);
            decision.paste("ana");
            assert!(offered(&decision).len() > 2, "another person may approve");
        }
    }

    #[test]
    fn a_decided_run_among_others_is_not_offered() {
        let mut decision = open(json!({}));
        decision.gates.all.extend(Gates::new(preview(json!({"run": "r2"}))).all);
        decision.press(Action::DenyNow);
        let error = Error::new(Code::InvalidTransition, "step send was already approved by bo");
        decision.answered(&RunId("r1".to_owned()), Err(&error));
        assert_eq!(decision.notice.as_deref(), Some("send R1: step send was already approved by bo"));
        decision.answered(&RunId("r2".to_owned()), Err(&Error::new(Code::Forbidden, "no")));
        assert_eq!(decision.gates.all.iter().filter(|one| one.is_waiting()).count(), 1);
        assert!(decision.gates.not_selected().ends_with("move to another run."));
        decision.mark(1);
        assert!(decision.gates.not_selected().ends_with("move to another run and press Space."));
    }

    #[test]
    fn recorded_approval_is_not_offered_again() {
        let result = json!({
            "run": {
                "id": "r1", "skill_id": "send", "state": "waiting_for_human", "held": false, "decided": null,
                "gate": {"human": {
                    "step": "send", "inputs_digest": "d1", "why": "confirmation",
                    "approvals": {"need": 2, "by": ["ana"]},
                }},
                "contract_digest": "c", "inputs": {}, "target": null, "options": RunOptions::default(),
                "outputs": null, "error": null, "trace_id": "t", "started_by": "lee", "source": null,
                "progress": [0, 1], "step": null, "head": 0, "fence": 1, "created_ms": 0, "since_ms": 0,
                "expires_ms": null, "allowed": ["approve"],
            },
            "note": "was already approved by ana", "worker_alive": true, "repeated": true,
        });
        let result: CommandResult = serde_json::from_value(result).unwrap();
        let mut decision = open(json!({}));
        decision.press(Action::ApproveNow);
        decision.answered(&RunId("r1".to_owned()), Ok(&result));
        assert!(!labels(&decision).contains(&"approve") && labels(&decision).contains(&"deny"));
        assert!(decision.gates.no_approval().is_some_and(|why| why.contains("is recorded")));
    }

    #[test]
    fn copy_includes_the_target() {
        let inputs = json!({"amount": 1});
        let content = json!({"subject": "Offer"});
        let target =
            json!({"type": "output", "ref": "r0/a", "content_bytes": 19, "sha256": "", "content": content});
        let both = json!({"target": content, "inputs": inputs});
        let alone = json!({"inputs": inputs});
        let attached = json!({"inputs": inputs, "target": target});
        for (changes, copied) in [(alone, &inputs), (attached, &both)] {
            let mut decision = open(changes);
            let key = KeyEvent::from(KeyCode::Char('y'));
            let Outcome::Request(_, effects) = decision.key(key, Some(Action::Copy)) else {
                panic!("nothing was copied")
            };
            let [Effect::Copy(text, _)] = &effects[..] else { panic!("{effects:?}") };
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *copied);
        }
    }

    #[test]
    fn error_states_whether_the_decision_was_applied() {
        let unreachable = || Error::service_unreachable(Code::UpstreamFailure, "gate", "cannot connect");
        let unknown = Error { reason: Some(json!({"outcome_unknown": true})), ..unreachable() };
        let refused = Error::new(Code::Forbidden, "no");
        let not_approved = Error::new(Code::Forbidden, "not approved: lee started the run");
        for (error, expected) in [
            (unreachable(), "Not sent"),
            (unknown, "Sent, outcome unknown"),
            (refused, "No decision made: no"),
            (not_approved, "Not approved: lee started the run"),
        ] {
            let mut decision = open(json!({}));
            decision.press(Action::ApproveNow);
            assert!(decision.gates.sending());
            decision.answered(&RunId("r1".to_owned()), Err(&error));
            assert!(!decision.gates.sending() && labels(&decision).contains(&"approve"));
            assert!(decision.notice.is_some_and(|text| text.starts_with(expected)), "{expected}");
        }
    }

    #[test]
    fn key_after_the_deadline_decides_nothing() {
        let mut decision = open(json!({"expires_ms": 61_000}));
        let opened = decision.opened.1;
        assert_eq!(decision.changes_in(opened), Some(1), "what is left is less than a minute at once");
        decision.at(opened + std::time::Duration::from_secs(60));
        assert_eq!(decision.press(Action::ApproveNow), Outcome::Stay);
        assert!(decision.notice.as_deref().unwrap_or_default().contains("No decision was made here"));
    }
}
