//! One command for many runs: each run is listed with what distinguishes it, the commands are sent one by one after a
//! delay in which sending can be canceled, and each outcome is shown.

mod runs;
mod texts;

use std::time::{Duration, Instant};

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};

use self::runs::{DetailChange, RunRows};
use self::texts::Texts;
use super::parts::{self, Button};
use crate::action::{Action, Context};
use crate::keymap::mention;
use crate::overlay::{Hint, Outcome, Overlay, centered, frame};
use crate::pane::{Effect, Message, PaneId};
use crate::run_requests::{RunRequest, RunResponse};
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Scroll, count, counted, cut_end, rows_above_note, shown};
use skills_api::UNDONE;
use skills_model::CommandName;
use skills_store::RunRecord;

/// Delay before the first command is sent, in which sending can be canceled.
const CANCEL_DELAY: Duration = Duration::from_secs(3);
const MAX_WIDTH: u16 = 140;
/// Minimum width of the screen for a margin around the dialog.
const MIN_WIDTH_WITH_MARGIN: u16 = 100;
/// Minimum number of rows of the list.
const MIN_ROWS: u16 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Button(usize),
    Text(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing is sent.
    Choosing,
    /// Sending begins at this moment.
    Counting(Instant),
    /// The command for this row is in flight.
    Sending(usize),
    Done,
}

/// Where the keys of the dialog are looked up, innermost first.
const CONTEXTS: [Context; 2] = [Context::Bulk, Context::Dialog];

impl Phase {
    /// Returns the line below the list.
    fn status(self, runs: &RunRows, now: Instant, painter: &Painter<'_>) -> (String, Role) {
        let tally = runs.tally();
        let key = |action| painter.key_word(action, &CONTEXTS);
        match self {
            Self::Choosing => {
                let left_out = runs.rows.iter().filter(|row| row.is_excluded() && !row.included).count();
                let text = match left_out {
                    _ if runs.awaits_review() => format!(
                        "{} toggles a run. {} excluded until the details were shown ({}).",
                        key(Action::Mark),
                        counted(left_out, "run"),
                        key(Action::PageDown)
                    ),
                    0 => format!("{} toggles a run. Nothing is sent yet.", key(Action::Mark)),
                    _ => {
                        format!("{} toggles a run. {} excluded.", key(Action::Mark), counted(left_out, "run"))
                    }
                };
                (text, Role::Muted)
            }
            Self::Counting(_) if runs.is_loading() => {
                let text = format!(
                    "Loading what the run under the cursor would execute. Nothing is sent until then. {} cancels.",
                    key(Action::Undo)
                );
                (text, Role::Waiting)
            }
            Self::Counting(until) => {
                let left = until.saturating_duration_since(now).as_millis().div_ceil(1_000).max(1);
                let (cancel, send) = (key(Action::Undo), key(Action::SendNow));
                let text =
                    format!("Sending in {left} s. Nothing is sent yet: {cancel} cancels, {send} sends now.");
                (text, Role::Waiting)
            }
            Self::Sending(_) => {
                let accepted = tally.done + tally.approved_in_part + tally.decided_before + tally.waiting;
                let undone: usize = tally.undone.iter().map(|(count, _)| count).sum();
                let sent = accepted + undone + tally.unknown;
                (format!("{} of {} sent", count(sent), count(runs.included())), Role::Info)
            }
            Self::Done => {
                let mut parts = vec![format!("{} done", tally.done)];
                let partly = [
                    (tally.approved_in_part, "approved in part"),
                    (tally.decided_before, "decided before"),
                    (tally.waiting, "waiting for another person"),
                ];
                let open = [(tally.unknown, "unknown"), (tally.unsent, "not sent")];
                let others =
                    partly.into_iter().chain(tally.undone).chain(open).filter(|(count, _)| *count > 0);
                parts.extend(others.map(|(count, what)| format!("{count} {what}")));
                let role = if parts.len() > 1 { Role::Warning } else { Role::Success };
                (parts.join(", "), role)
            }
        }
    }

    /// Returns the keys while a button has the focus.
    fn hints(self, runs: &RunRows, text: Option<&'static str>) -> Vec<Hint> {
        let hint = Hint::new;
        match self {
            Self::Choosing => {
                let mut out = vec![hint(Action::Up, "run"), hint(Action::Mark, "include or exclude")];
                out.extend(text.map(|label| hint(Action::Notes, label)));
                if runs.changed().next().is_some() {
                    let is_on = runs.includes_changed();
                    let label =
                        if is_on { "exclude changed skills" } else { "use the contract of the launch" };
                    out.push(hint(Action::AllowChangedSkill, label));
                }
                out.extend([hint(Action::NextPart, "next button"), hint(Action::Back, "back")]);
                out
            }
            Self::Counting(_) if runs.is_loading() => vec![hint(Action::Undo, "cancel sending")],
            Self::Counting(_) => {
                vec![hint(Action::Undo, "cancel sending"), hint(Action::SendNow, "send now")]
            }
            Self::Sending(_) => vec![hint(Action::Back, "stop")],
            Self::Done => {
                let mut out = vec![hint(Action::Up, "run")];
                if runs.changed().next().is_some() {
                    out.push(hint(Action::AllowChangedSkill, "resume with the contract of the launch"));
                }
                out.push(hint(Action::Back, "close"));
                out
            }
        }
    }
}

/// Returns the verb of a command in its button, and in the footer.
fn verb(command: CommandName) -> (&'static str, &'static str) {
    match command {
        CommandName::Approve => ("Approve", "approve"),
        CommandName::Deny => ("Deny", "deny"),
        CommandName::Cancel => ("Cancel", "cancel runs"),
        CommandName::Signal => ("Signal", "signal"),
        _ => ("Resume", "resume"),
    }
}

/// Returns the maximum number of rows for the lines about all runs above the list: in a small window the list has
/// precedence, and lines that do not fit need rows below it.
fn head_height(head: u16, rows: u16, about: u16, above: u16) -> u16 {
    let free = above.saturating_sub(rows).saturating_sub(about.saturating_add(1));
    let list = rows.min(MIN_ROWS) + 1;
    let height = above.saturating_sub(list).min(free.max(above / 2));
    if head <= height {
        return height;
    }
    height.min(above / 2).min(above.saturating_sub(list + 3))
}

/// Removes the lines about all runs that do not fit above the list, and returns them with a heading, to be shown below
/// the list, where they scroll.
fn cut_head(head: &mut Vec<RichLine>, height: usize, painter: &Painter<'_>) -> Vec<RichLine> {
    if head.len() <= height {
        return Vec::new();
    }
    let mut rest = head.split_off(height.saturating_sub(1));
    if height > 0 {
        let (ellipsis, down) = (painter.glyphs.ellipsis, painter.glyphs.down);
        let note = format!("{ellipsis} {} below the list {down}", counted(rest.len(), "more line"));
        head.push(RichLine::of(note, Role::Waiting));
    }
    rest.insert(0, RichLine::of("continued from above the list", Role::Muted));
    rest
}

/// Areas of the last frame.
#[derive(Debug, Default)]
struct FrameAreas {
    buttons: Vec<Rect>,
    /// The screen, and the height on it: while the dialog is open it grows, but does not shrink.
    height: (Rect, u16),
}

pub struct BulkDialog {
    pane: PaneId,
    command: CommandName,
    runs: RunRows,
    texts: Texts,
    ticket: u64,
    opened: (i64, Instant),
    phase: Phase,
    /// Why sending stopped, or what changed.
    notice: Option<String>,
    now: Option<Instant>,
    focus: Focus,
    /// Whether what all runs have in common, if it does not fit above the list, was shown below it, and whether that is to
    /// be done.
    is_head_read: bool,
    lacks_head: bool,
    /// The visible part of what is shown about the run under the cursor.
    about: Scroll,
    drawn: FrameAreas,
}

impl BulkDialog {
    /// Creates the dialog for a command and the selected runs.
    pub fn new(
        pane: PaneId,
        command: CommandName,
        runs: Vec<RunRecord>,
        ticket: u64,
        opened: (i64, Instant),
    ) -> Self {
        let texts = Texts::of(command, &runs);
        let mut dialog = Self {
            pane,
            command,
            runs: RunRows::new(command, runs),
            texts,
            ticket,
            opened,
            phase: Phase::Choosing,
            notice: None,
            now: None,
            focus: Focus::Button(0),
            is_head_read: false,
            lacks_head: false,
            about: Scroll::default(),
            drawn: FrameAreas::default(),
        };
        dialog.focus = dialog.first_focus();
        dialog
    }

    /// Returns the initial focus. A decision requires its own key, as in the dialog of a single run.
    fn first_focus(&self) -> Focus {
        Focus::Button(usize::from(!self.runs.decides()))
    }

    /// Returns whether nothing was sent yet.
    fn is_undecided(&self) -> bool {
        matches!(self.phase, Phase::Choosing | Phase::Counting(_))
    }

    fn request(&self, effect: Option<Effect>) -> Outcome {
        effect.map_or(Outcome::Stay, |effect| Outcome::Request(self.pane, vec![effect]))
    }

    fn begin(&mut self) -> Outcome {
        let is_signal = self.command == CommandName::Signal;
        if let Some((at, why)) = self.texts.invalid_signal().filter(|_| is_signal) {
            (self.focus, self.notice) = (Focus::Text(at), Some(why));
            return Outcome::Stay;
        }
        // A run that is canceled executes nothing.
        if self.lacks_head && self.command != CommandName::Cancel {
            let key = mention(Action::PageDown);
            let why = "What the runs have in common was not shown completely";
            self.notice = Some(format!("{why}: scroll to its end ({key}), or enlarge the window."));
            return Outcome::Stay;
        }
        if self.phase == Phase::Choosing && self.runs.unsent() > 0 {
            self.notice = None;
            let now = self.now.unwrap_or_else(Instant::now);
            self.phase = Phase::Counting(now + CANCEL_DELAY);
            self.focus = Focus::Button(0);
        }
        Outcome::Stay
    }

    /// Sends without waiting for the end of the delay.
    fn send_now(&mut self) -> Outcome {
        if !matches!(self.phase, Phase::Counting(_)) || self.runs.is_loading() {
            return Outcome::Stay;
        }
        let effect = self.send(0);
        self.request(effect)
    }

    /// Includes the runs whose skill changed, or leaves them out again. After sending, sends the command to them alone.
    fn allow_changed_skills(&mut self) -> Outcome {
        let done = self.phase == Phase::Done;
        if !(done || self.phase == Phase::Choosing) || self.runs.changed().next().is_none() {
            return Outcome::Stay;
        }
        let on = done || self.runs.changed().any(|row| !row.despite);
        self.runs.include_changed(on, done);
        self.notice = None;
        if done {
            self.phase = Phase::Choosing;
            return self.begin();
        }
        Outcome::Stay
    }

    /// Sends the command to the next run at or after index `from`.
    fn send(&mut self, from: usize) -> Option<Effect> {
        let Some(at) = self.runs.next(from) else {
            self.phase = Phase::Done;
            self.focus = Focus::Button(0);
            return None;
        };
        let Some(command) = self.runs.build_command(at, &self.texts) else {
            let row = &mut self.runs.rows[at];
            (row.outcome, row.undone) =
                (Some(Err("it is no longer waiting for a decision".to_owned())), UNDONE[0]);
            return self.send(at + 1);
        };
        self.phase = Phase::Sending(at);
        (self.runs.scroll.cursor, self.ticket) = (at, self.ticket + 1);
        let run = self.runs.rows[at].run.id.clone();
        Some(Effect::Run(RunRequest::Command { run, command: Box::new(command), ticket: self.ticket }))
    }

    /// Handles Esc: cancels sending, stops or closes.
    fn back(&mut self) -> Outcome {
        match self.phase {
            Phase::Counting(_) => (self.phase, self.focus) = (Phase::Choosing, self.first_focus()),
            Phase::Sending(_) => self.phase = Phase::Done,
            Phase::Choosing | Phase::Done => return Outcome::Close,
        }
        Outcome::Stay
    }

    fn press(&mut self, action: Action) -> Outcome {
        if !self.buttons().iter().any(|button| button.action == action) && action != Action::Back {
            return Outcome::Stay;
        }
        match action {
            Action::Back | Action::Undo => self.back(),
            Action::SendNow => self.send_now(),
            Action::AllowChangedSkill => self.allow_changed_skills(),
            _ => self.begin(),
        }
    }

    fn toggle(&mut self, at: usize) {
        if self.phase == Phase::Choosing
            && let Some(why) = self.runs.toggle(at)
        {
            self.notice = Some(why);
        }
    }

    fn go(&mut self, rows: isize) -> Outcome {
        self.about.offset = 0;
        let effects = self.runs.go(rows);
        if effects.is_empty() { Outcome::Stay } else { Outcome::Request(self.pane, effects) }
    }

    fn ring(&self) -> Vec<Focus> {
        let texts = if self.phase == Phase::Choosing { self.texts.all.len() } else { 0 };
        let buttons = (0..self.buttons().len()).map(Focus::Button);
        buttons.chain((0..texts).map(Focus::Text)).collect()
    }

    fn turn(&mut self, forward: bool) {
        let ring = self.ring();
        self.focus = parts::next_focus(&ring, self.focus, forward);
    }

    fn buttons(&self) -> Vec<Button> {
        let runs = counted(self.runs.unsent(), "run");
        let (action, danger) = match self.command {
            CommandName::Approve => (Action::ApproveNow, false),
            CommandName::Deny => (Action::DenyNow, true),
            CommandName::Cancel => (Action::Execute, true),
            _ => (Action::Execute, false),
        };
        let changed = self.runs.changed().count();
        let despite = |label: &str| {
            let which =
                if label == "Resume" { "with the contract of the launch" } else { "of changed skills" };
            let label = format!("{label} {} {which}", counted(changed, "run"));
            (changed > 0).then(|| Button::new(Action::AllowChangedSkill, label))
        };
        match self.phase {
            Phase::Choosing => {
                // Next to "Cancel 2 runs", a button "Cancel" would be ambiguous.
                let label = if self.command == CommandName::Cancel { "Keep running" } else { "Cancel" };
                let mut out = vec![Button::new(Action::Back, label)];
                if self.runs.unsent() > 0 {
                    let label = format!("{} {runs}", verb(self.command).0);
                    out.push(Button { danger, ..Button::new(action, label) });
                }
                let is_on = self.runs.includes_changed();
                out.extend(despite(if is_on { "Exclude" } else { "Include" }));
                out
            }
            Phase::Counting(_) if self.runs.is_loading() => {
                vec![Button::new(Action::Undo, "Cancel sending")]
            }
            Phase::Counting(_) => vec![
                Button::new(Action::Undo, "Cancel sending"),
                Button::new(Action::SendNow, format!("Send {} now", self.runs.unsent())),
            ],
            Phase::Sending(_) => vec![Button::new(Action::Back, "Stop")],
            Phase::Done => {
                let mut out = vec![Button::new(Action::Back, "Close")];
                out.extend(despite("Resume"));
                out
            }
        }
    }
}

impl Overlay for BulkDialog {
    fn in_text(&self) -> bool {
        matches!(self.focus, Focus::Text(_))
    }

    fn contexts(&self) -> Vec<Context> {
        CONTEXTS.to_vec()
    }

    fn at(&mut self, now: Instant) {
        self.now = Some(now);
    }

    fn tick(&mut self, now: Instant) -> Outcome {
        match self.phase {
            Phase::Counting(_) if self.runs.is_loading() => {
                self.phase = Phase::Counting(now + CANCEL_DELAY);
                Outcome::Stay
            }
            Phase::Counting(until) if now >= until => {
                let effect = self.send(0);
                self.request(effect)
            }
            _ => Outcome::Stay,
        }
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        if let Focus::Text(at) = self.focus {
            match action {
                Some(Action::Back) => self.focus = self.first_focus(),
                Some(Action::Open) => self.turn(true),
                None => {
                    self.texts.all[at].field.key(key);
                }
                _ => {}
            }
            if !matches!(action, Some(Action::NextPart | Action::PreviousPart | Action::Execute)) {
                return Outcome::Stay;
            }
        }
        let Some(action) = action else { return Outcome::Stay };
        match action {
            Action::Up => return self.go(-1),
            Action::Down => return self.go(1),
            Action::PageUp | Action::PageDown if self.about.cursor > self.about.height => {
                let rows = if action == Action::PageUp { -self.about.page() } else { self.about.page() };
                self.about.roll(rows, self.about.cursor);
            }
            Action::PageUp => return self.go(-self.runs.scroll.page()),
            Action::PageDown => return self.go(self.runs.scroll.page()),
            Action::Mark => {
                self.toggle(self.runs.scroll.cursor);
                return self.go(1);
            }
            Action::NextPart => self.turn(true),
            Action::PreviousPart => self.turn(false),
            Action::Notes if self.phase == Phase::Choosing && !self.texts.all.is_empty() => {
                self.focus = Focus::Text(0);
            }
            Action::Open => {
                let Focus::Button(focused) = self.focus else { return Outcome::Stay };
                let buttons = self.buttons();
                let at = focused.min(buttons.len().saturating_sub(1));
                return buttons.get(at).map_or(Outcome::Stay, |button| self.press(button.action));
            }
            other => return self.press(other),
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if let Focus::Text(at) = self.focus {
            self.texts.all[at].field.paste(text);
        }
        Outcome::Stay
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        let was_loading = self.runs.is_loading();
        if let Message::Run(RunResponse::Detail(_, Ok(detail))) = message {
            match self.runs.take_detail(detail, self.is_undecided(), self.phase == Phase::Choosing) {
                DetailChange::NotExecuted if self.phase == Phase::Done => self.phase = Phase::Choosing,
                DetailChange::Moved => {
                    let warning = "A run has changed since it was listed: review it, then include it again.";
                    self.notice = Some(warning.to_owned());
                }
                DetailChange::NotExecuted | DetailChange::Nothing => {}
            }
            if matches!(self.phase, Phase::Counting(_)) && self.runs.unsent() == 0 {
                self.back();
            }
        }
        if let Message::Run(RunResponse::Detail(run, Err(error))) = message {
            self.runs.take_failure(run, error);
        }
        if let (true, Phase::Counting(_), Some(now)) = (was_loading, self.phase, self.now) {
            // The delay begins when everything is shown.
            self.phase = Phase::Counting(now + CANCEL_DELAY);
        }
        let Message::Run(RunResponse::CommandDone(ticket, run, answer)) = message else {
            return Outcome::Stay;
        };
        let Some(at) = self.runs.position(run).filter(|_| *ticket <= self.ticket) else {
            return Outcome::Stay;
        };
        if let Err(error) = answer
            && error.is_service_unreachable()
            && !error.is_outcome_unknown()
        {
            // The others would not be sent either; what was chosen is kept.
            let warning = Some(format!("Not sent: {}", shown(&error.message)));
            (self.phase, self.focus, self.notice) = (Phase::Choosing, self.first_focus(), warning);
            return Outcome::Handled;
        }
        let is_unknown = self.runs.take_response(at, answer.as_deref());
        let asks = is_unknown.then(|| Effect::Run(RunRequest::Detail(run.clone())));
        let next = if self.phase == Phase::Sending(at) { self.send(at + 1) } else { None };
        match asks.into_iter().chain(next).collect::<Vec<Effect>>() {
            effects if effects.is_empty() => Outcome::Handled,
            effects => Outcome::HandledWith(self.pane, effects),
        }
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        self.go(rows)
    }

    fn click(&mut self, at: Position) -> Outcome {
        if let Some(button) = parts::button_at(&self.drawn.buttons, at) {
            let action = self.buttons().get(button).map(|button| button.action);
            return action.map_or(Outcome::Stay, |action| self.press(action));
        }
        if let Some(row) = self.runs.row_at(at) {
            self.runs.scroll.cursor = row;
            self.toggle(row);
            return self.go(0);
        }
        if self.phase == Phase::Choosing
            && let Some(text) = self.texts.click(at)
        {
            self.focus = Focus::Text(text);
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let hint = Hint::new;
        if self.in_text() {
            return vec![
                hint(Action::NextPart, "next"),
                hint(Action::Execute, verb(self.command).1),
                hint(Action::Back, "leave field"),
            ];
        }
        self.phase.hints(&self.runs, self.texts.all.first().map(|text| text.label))
    }

    fn help_items(&self) -> Vec<Hint> {
        let mut out = self.hints();
        let buttons = self.buttons();
        let send = buttons.iter().find(|button| button.action != Action::Back).map(|button| button.action);
        let all = [Action::NextPart, Action::Up, Action::PageDown, Action::Mark, Action::Open];
        let all = all
            .into_iter()
            .map(|action| (action, "select"))
            .filter(|(action, _)| *action != Action::Mark || self.phase == Phase::Choosing);
        out.extend(all.map(|(action, label)| Hint::new(action, label)));
        out.extend(
            send.filter(|_| self.phase == Phase::Choosing)
                .map(|action| Hint { action, label: verb(self.command).1 }),
        );
        out.extend([
            Hint::new(Action::SendNow, "send now"),
            Hint::new(Action::Undo, "cancel sending"),
            Hint::new(Action::Back, "close"),
        ]);
        out
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        let margin = if area.width < MIN_WIDTH_WITH_MARGIN { 0 } else { 4 };
        let width = area.width.saturating_sub(margin).min(MAX_WIDTH);
        let inner = width.saturating_sub(6);
        let clock = parts::clock(self.opened, now);
        self.runs.measure(inner, clock, self.phase == Phase::Choosing);
        let mut head = self.runs.common_lines(inner, painter);
        let mut about = self.runs.detail_lines(inner, painter, clock);
        let texts = if self.is_undecided() { self.texts.all.len() } else { 0 };
        let len = |lines: usize| u16::try_from(lines).unwrap_or(u16::MAX);
        let blank = |lines: usize| len(lines).saturating_add(u16::from(lines > 0));
        // Text fields, status, a blank row, and the buttons.
        let foot = len(texts) + 3 + 1;
        let requested = [blank(head.len()), len(self.runs.rows.len()), blank(about.len()), foot + 2];
        let requested = requested.into_iter().fold(0, u16::saturating_add);
        let least = if self.drawn.height.0 == area { self.drawn.height.1 } else { 8 };
        let height = requested.min(area.height.saturating_sub(2)).max(least);
        self.drawn.height = (area, height);
        let outer = centered(area, width, height);
        let asks = self.phase != Phase::Done;
        let sign = if asks { format!("{} ", painter.glyphs.waiting) } else { String::new() };
        let title = format!("{sign}{} {}", verb(self.command).0, counted(self.runs.included(), "run"));
        let note = format!("{} marked", counted(self.runs.rows.len(), "run"));
        let inside = frame(outer, painter, &title, &note, asks);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let end = inside.bottom().saturating_sub(foot);
        let mut y = inside.y;
        let rows = len(self.runs.rows.len());
        let above = end.saturating_sub(y);
        let head_height = head_height(len(head.len()), rows, blank(about.len()), above);
        let rest = cut_head(&mut head, usize::from(head_height), painter);
        let is_head_cut = !rest.is_empty();
        about.extend(rest);
        for line in &head {
            painter.line(inside.x, y, line, inside.width);
            y += 1;
        }
        y += u16::from(!head.is_empty());
        let available = end.saturating_sub(y);
        let about_room = available.saturating_sub(rows.min(MIN_ROWS.max(available / 2))).saturating_sub(1);
        let lines = about.len();
        self.about.height = rows_above_note(lines, about_room);
        // A text without cursor: the number of its lines, if it does not fit.
        self.about.cursor = if about_room > 0 { lines } else { 0 };
        self.about.offset = self.about.offset.min(lines.saturating_sub(self.about.height));
        let is_read = about_room > 0 && lines <= self.about.offset + self.about.height;
        self.is_head_read |= is_head_cut && is_read;
        self.lacks_head = is_head_cut && !self.is_head_read;
        if is_read && self.phase == Phase::Choosing && self.runs.review(inner) {
            // The title states the number of runs.
            return self.draw(area, painter, now);
        }
        let about_rows = lines.min(usize::from(about_room));
        let left = available.saturating_sub(blank(about_rows));
        let list = Rect { y, height: rows.min(left), ..inside };
        let sending = if let Phase::Sending(at) = self.phase { Some(at) } else { None };
        self.runs.draw(list, sending, clock, painter);
        let below = Rect { y: end.saturating_sub(len(about_rows)), height: len(about_rows), ..inside };
        for (line, y) in about.iter().skip(self.about.offset).take(self.about.height).zip(below.y..) {
            painter.line(inside.x, y, line, inside.width);
        }
        parts::more_below(below, painter, self.about.cursor, &self.about);
        let focused = if let Focus::Text(at) = self.focus { Some(at) } else { None };
        let cursor = self.texts.draw(Rect { y: end, ..inside }, (texts, focused), painter);
        let (text, role) = match &self.notice {
            Some(warning) if self.phase == Phase::Choosing => {
                (painter.with_keys(warning, &CONTEXTS), Role::Danger)
            }
            _ => self.phase.status(&self.runs, now, painter),
        };
        let y = inside.bottom().saturating_sub(3);
        if matches!(self.phase, Phase::Counting(_)) {
            let band = Rect { x: inside.x.saturating_sub(1), y, width: inside.width + 2, height: 1 };
            painter.band(band, Role::WaitingBand);
            painter.put(band.x, y, painter.glyphs.gutter, Role::Waiting, 1);
        }
        let text = cut_end(&text, inside.width, painter.glyphs.ellipsis).into_owned();
        painter.put(inside.x, y, &text, role, inside.width);
        let row = Rect { y: inside.bottom().saturating_sub(1), height: 1, ..inside };
        let all = self.buttons();
        let focused = match self.focus {
            Focus::Button(at) => Some(at.min(all.len().saturating_sub(1))),
            Focus::Text(_) => None,
        };
        self.drawn.buttons = parts::buttons(row, painter, (&all, &CONTEXTS), focused);
        cursor
    }

    fn changes_in(&self, now: Instant) -> Option<u64> {
        let Phase::Counting(until) = self.phase else { return None };
        let left = u64::try_from(until.saturating_duration_since(now).as_millis()).unwrap_or(u64::MAX);
        // The next full second, or the end.
        Some(left.checked_rem(1_000).filter(|rest| *rest > 0).unwrap_or(left.min(1_000)))
    }
}
