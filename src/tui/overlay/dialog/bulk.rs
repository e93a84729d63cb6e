//! One command for many runs: each run is listed with what distinguishes it, the commands are sent one by one after a
//! delay in which they can be withdrawn, and each outcome is shown.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use serde_json::Value;

use super::decision_view::tail;
use super::parts::{Button, buttons};
use crate::action::{Action, Context};
use crate::overlay::{Hint, Outcome, Overlay, centred, frame, row_at};
use crate::pane::{Effect, Message, PaneId};
use crate::run_requests::{RunRequest, RunResponse};
use crate::theme::Role;
use crate::widgets::format::count;
use crate::widgets::painter::Painter;
use crate::widgets::scroll::Scroll;
use crate::widgets::text_width::{cells, cut_end, shown};
use skills_api::RunCommand;
use skills_model::{ApprovalReason, CommandName, Gate, Verdict};
use skills_store::RunRecord;

/// Delay before the first command is sent, in which all can be withdrawn.
const UNDO_DELAY: Duration = Duration::from_secs(3);

/// Maximum number of characters of an input's value in a row.
const VALUE_LENGTH: usize = 40;

/// A run of the dialog.
struct Row {
    run: RunRecord,
    /// What distinguishes it from the others.
    text: String,
    /// Why the command cannot be sent to it.
    blocked: Option<String>,
    /// Whether the command will be sent to it.
    included: bool,
    outcome: Option<Result<String, String>>,
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

/// The state of the dialog.
pub struct BulkDialog {
    pane: PaneId,
    command: CommandName,
    rows: Vec<Row>,
    ticket: u64,
    phase: Phase,
    /// Why sending stopped.
    said: Option<String>,
    now: Option<Instant>,
    focused: usize,
    scroll: Scroll,
    drawn_rows: Vec<(Rect, usize)>,
    drawn_buttons: Vec<Rect>,
}

impl BulkDialog {
    /// Creates the dialog for a command and the selected runs.
    pub fn new(pane: PaneId, command: CommandName, runs: Vec<RunRecord>, ticket: u64) -> Self {
        let texts = distinctions(&runs);
        let row = |(run, text): (RunRecord, String)| {
            let blocked = blocked(&run, command);
            Row { text, included: blocked.is_none(), blocked, outcome: None, run }
        };
        // A decision requires its own key, as in the dialog of a single run.
        let focused = usize::from(!matches!(command, CommandName::Approve | CommandName::Deny));
        Self {
            pane,
            command,
            rows: runs.into_iter().zip(texts).map(row).collect(),
            ticket,
            phase: Phase::Choosing,
            said: None,
            now: None,
            focused,
            scroll: Scroll::default(),
            drawn_rows: Vec::new(),
            drawn_buttons: Vec::new(),
        }
    }

    fn included(&self) -> usize {
        self.rows.iter().filter(|row| row.included).count()
    }

    /// Returns the number of runs that the command is still to be sent to.
    fn unsent(&self) -> usize {
        self.rows.iter().filter(|row| row.included && row.outcome.is_none()).count()
    }

    fn order(&self, run: &RunRecord) -> Option<RunCommand> {
        Some(match self.command {
            CommandName::Resume => {
                RunCommand::Resume { checkpoint: None, inputs: None, despite_change: false, by: None }
            }
            CommandName::Cancel => RunCommand::Cancel { by: None },
            CommandName::Approve | CommandName::Deny => {
                let Some(Gate::Human { step, inputs_digest, .. }) = &run.gate else { return None };
                let approve = self.command == CommandName::Approve;
                RunCommand::Decide {
                    verdict: if approve { Verdict::Approve } else { Verdict::Deny },
                    step: Some(step.clone()),
                    inputs_digest: Some(inputs_digest.clone()),
                    approver: None,
                    notes: None,
                    choice: None,
                    result: None,
                }
            }
            _ => return None,
        })
    }

    fn begin(&mut self) -> Outcome {
        if self.phase == Phase::Choosing && self.unsent() > 0 {
            self.said = None;
            let now = self.now.unwrap_or_else(Instant::now);
            self.phase = Phase::Counting(now + UNDO_DELAY);
        }
        Outcome::Stay
    }

    /// Sends the command to the next run at or after index `from`.
    fn send(&mut self, from: usize) -> Option<Effect> {
        let waits = |row: &Row| row.included && row.outcome.is_none();
        let at = (from..self.rows.len()).find(|at| waits(&self.rows[*at]));
        let Some(at) = at else {
            self.phase = Phase::Done;
            self.focused = 0;
            return None;
        };
        let Some(order) = self.order(&self.rows[at].run) else {
            self.rows[at].outcome = Some(Err("it no longer waits for a decision".to_owned()));
            return self.send(at + 1);
        };
        self.phase = Phase::Sending(at);
        (self.scroll.cursor, self.ticket) = (at, self.ticket + 1);
        let run = self.rows[at].run.id.clone();
        Some(Effect::Run(RunRequest::Order { run, order: Box::new(order), ticket: self.ticket }))
    }

    /// Handles Esc: withdraws, stops or closes.
    fn back(&mut self) -> Outcome {
        match self.phase {
            Phase::Counting(_) => self.phase = Phase::Choosing,
            Phase::Sending(_) => self.phase = Phase::Done,
            Phase::Choosing | Phase::Done => return Outcome::Close,
        }
        Outcome::Stay
    }

    fn press(&mut self, action: Action) -> Outcome {
        match action {
            Action::Back => self.back(),
            action if Some(action) == self.buttons().get(1).map(|button| button.action) => self.begin(),
            _ => Outcome::Stay,
        }
    }

    fn toggle(&mut self, at: usize) {
        if self.phase == Phase::Choosing
            && let Some(row) = self.rows.get_mut(at)
        {
            row.included = !row.included && row.blocked.is_none();
        }
    }

    fn verb(&self) -> &'static str {
        match self.command {
            CommandName::Approve => "Approve",
            CommandName::Deny => "Deny",
            CommandName::Cancel => "Cancel",
            _ => "Resume",
        }
    }

    fn buttons(&self) -> Vec<Button> {
        let runs = plural(self.unsent());
        let (action, key, danger) = match self.command {
            CommandName::Approve => (Action::ApproveNow, "A", false),
            CommandName::Deny => (Action::DenyNow, "D", true),
            CommandName::Cancel => (Action::CarryOut, "^s", true),
            _ => (Action::CarryOut, "^s", false),
        };
        match self.phase {
            Phase::Choosing => {
                let label = format!("{} {runs}", self.verb());
                let go = Button { danger, ..Button::new(action, label, key) };
                let back = Button::new(Action::Back, "Not now", "esc");
                if self.unsent() == 0 { vec![back] } else { vec![back, go] }
            }
            Phase::Counting(_) => vec![Button::new(Action::Back, "Undo", "esc")],
            Phase::Sending(_) => vec![Button::new(Action::Back, "Stop", "esc")],
            Phase::Done => vec![Button::new(Action::Back, "Close", "esc")],
        }
    }

    /// Returns the line below the list.
    fn status(&self, now: Instant) -> (String, Role) {
        let done = |ok: bool| {
            self.rows.iter().filter(move |row| row.outcome.as_ref().is_some_and(|o| o.is_ok() == ok))
        };
        let (ok, refused) = (done(true).count(), done(false).count());
        let unsent = self.unsent();
        match self.phase {
            Phase::Choosing => {
                if let Some(said) = &self.said {
                    return (said.clone(), Role::Danger);
                }
                let left_out = self.rows.iter().filter(|row| row.blocked.is_some()).count();
                let text = match left_out {
                    0 => "Space leaves a run out. Nothing is sent yet.".to_owned(),
                    _ => format!("Space leaves a run out. {} cannot take this command.", plural(left_out)),
                };
                (text, Role::Muted)
            }
            Phase::Counting(until) => {
                let left = until.saturating_duration_since(now).as_millis().div_ceil(1_000).max(1);
                (format!("Sending in {left} s. Esc withdraws all of it."), Role::Waiting)
            }
            Phase::Sending(_) => (format!("{} of {} sent", ok + refused, self.included()), Role::Info),
            Phase::Done => {
                let mut parts = vec![format!("{ok} done")];
                parts.extend((refused > 0).then(|| format!("{refused} refused")));
                parts.extend((unsent > 0).then(|| format!("{unsent} not sent")));
                let role = if refused + unsent > 0 { Role::Warning } else { Role::Success };
                (parts.join(", "), role)
            }
        }
    }

    fn draw_row(&self, at: usize, area: Rect, id_width: u16, name_width: u16, painter: &mut Painter<'_>) {
        let row = &self.rows[at];
        if at == self.scroll.cursor {
            painter.band(area, Role::Selection);
        }
        let (sign, role) = match (&row.outcome, row.included, self.phase) {
            (Some(Ok(_)), ..) => (painter.glyphs.ok, Role::Success),
            (Some(Err(_)), ..) => (painter.glyphs.bad, Role::Danger),
            (None, true, Phase::Sending(sending)) if sending == at => (painter.glyphs.running[0], Role::Info),
            (None, true, _) => ("x", Role::Strong),
            (None, false, _) => (" ", Role::Muted),
        };
        painter.put(area.x + 1, area.y, "[", Role::Muted, 1);
        painter.put(area.x + 2, area.y, sign, role, 1);
        painter.put(area.x + 3, area.y, "]", Role::Muted, 1);
        let text_role = if row.included { Role::Text } else { Role::Muted };
        let mut x = area.x + 5;
        for (text, width) in
            [(shown(row.run.title_or_skill()), name_width), (tail(&row.run.id.0).to_uppercase(), id_width)]
        {
            painter.put(x, area.y, &cut_end(&text, width, painter.glyphs.ellipsis), text_role, width);
            x += width + 1;
        }
        let (text, role) = match (&row.outcome, &row.blocked) {
            (Some(Ok(note)), _) => (note.clone(), Role::Success),
            (Some(Err(why)), _) => (why.clone(), Role::Danger),
            (None, Some(why)) => (why.clone(), Role::Muted),
            (None, None) => (row.text.clone(), text_role),
        };
        let available = area.right().saturating_sub(x + 1);
        painter.put(x, area.y, &cut_end(&text, available, painter.glyphs.ellipsis), role, available);
    }
}

fn plural(runs: usize) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{} runs", count(runs)) }
}

/// Returns why a run does not accept the command.
fn blocked(run: &RunRecord, command: CommandName) -> Option<String> {
    if !run.allowed.contains(&command) {
        return Some(format!("left out: it is {}", super::state_word(run.state)));
    }
    match (&run.gate, command) {
        (Some(Gate::Human { why: ApprovalReason::UnknownOutcome, .. }), CommandName::Approve) => {
            Some("left out: the outcome of its step is unknown, decide it alone".to_owned())
        }
        _ => None,
    }
}

/// Returns for each run what distinguishes it: the inputs in which runs of the same skill differ, and its error.
fn distinctions(runs: &[RunRecord]) -> Vec<String> {
    let value_of = |run: &RunRecord, name: &str| match run.inputs.get(name) {
        Some(Value::String(text)) => shown(text),
        Some(other) => shown(&other.to_string()),
        None => String::new(),
    };
    let mut by_skill: BTreeMap<&str, Vec<&RunRecord>> = BTreeMap::new();
    for run in runs {
        by_skill.entry(run.skill_id.as_str()).or_default().push(run);
    }
    let mut differing: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (skill, of_it) in by_skill {
        let names = of_it.iter().filter_map(|run| run.inputs.as_object()).flat_map(|inputs| inputs.keys());
        let mut names: Vec<String> = names.cloned().collect();
        names.sort();
        names.dedup();
        names.retain(|name| {
            of_it.len() == 1 || of_it.iter().any(|run| value_of(run, name) != value_of(of_it[0], name))
        });
        differing.insert(skill, names);
    }
    let text = |run: &RunRecord| {
        // A title already contains the inputs.
        let names = differing.get(run.skill_id.as_str()).filter(|_| run.title().is_none());
        let names = names.map(Vec::as_slice).unwrap_or_default();
        let mut parts: Vec<String> = Vec::new();
        if let Some(Gate::Human { step, .. }) = &run.gate {
            parts.push(shown(step));
        }
        parts.extend(names.iter().map(|name| {
            let value = value_of(run, name);
            let cut: String = value.chars().take(VALUE_LENGTH).collect();
            format!("{}={cut}{}", shown(name), if cut.len() < value.len() { "…" } else { "" })
        }));
        let error = |key: &str| run.error.as_ref().and_then(|error| error.get(key)?.as_str()).map(shown);
        parts.extend(error("message").or_else(|| error("code")));
        parts.join("  ")
    };
    runs.iter().map(text).collect()
}

impl Overlay for BulkDialog {
    fn in_text(&self) -> bool {
        false
    }

    fn contexts(&self) -> Vec<Context> {
        vec![Context::Dialog]
    }

    fn at(&mut self, now: Instant) {
        self.now = Some(now);
    }

    fn tick(&mut self, now: Instant) -> Outcome {
        match self.phase {
            Phase::Counting(until) if now >= until => {
                let effect = self.send(0);
                effect.map_or(Outcome::Stay, |effect| Outcome::Request(self.pane, vec![effect]))
            }
            _ => Outcome::Stay,
        }
    }

    fn key(&mut self, _key: KeyEvent, action: Option<Action>) -> Outcome {
        let Some(action) = action else { return Outcome::Stay };
        let len = self.rows.len();
        match action {
            Action::Up => self.scroll.by(-1, len),
            Action::Down => self.scroll.by(1, len),
            Action::PageUp => self.scroll.by(-self.scroll.page(), len),
            Action::PageDown => self.scroll.by(self.scroll.page(), len),
            Action::Mark => {
                self.toggle(self.scroll.cursor);
                self.scroll.by(1, len);
            }
            Action::NextPart | Action::PreviousPart => {
                let buttons = self.buttons().len().max(1);
                self.focused = (self.focused + 1) % buttons;
            }
            Action::Open => {
                let buttons = self.buttons();
                let at = self.focused.min(buttons.len().saturating_sub(1));
                return buttons.get(at).map_or(Outcome::Stay, |button| self.press(button.action));
            }
            other => return self.press(other),
        }
        Outcome::Stay
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        let Message::Run(RunResponse::Ordered(ticket, run, answer)) = message else { return Outcome::Stay };
        if *ticket > self.ticket || !self.rows.iter().any(|row| row.run.id == *run) {
            return Outcome::Stay;
        }
        let Some(at) = self.rows.iter().position(|row| row.run.id == *run) else { return Outcome::Stay };
        if let Err(error) = answer
            && error.is_service_unreachable()
            && !error.is_outcome_unknown()
        {
            // The others would not be sent either; what was chosen is kept.
            (self.phase, self.said) = (Phase::Choosing, Some(format!("Not sent: {}", shown(&error.message))));
            return Outcome::Handled;
        }
        self.rows[at].outcome = Some(match answer {
            Ok(ordered) => Ok(shown(&ordered.note)),
            Err(error) => Err(shown(&error.message)),
        });
        if self.phase != Phase::Sending(at) {
            return Outcome::Handled;
        }
        let effect = self.send(at + 1);
        effect.map_or(Outcome::Handled, |effect| Outcome::HandledWith(self.pane, vec![effect]))
    }

    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.scroll.by(-3, self.rows.len()),
            MouseEventKind::ScrollDown => self.scroll.by(3, self.rows.len()),
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(button) = self.drawn_buttons.iter().position(|rect| rect.contains(at)) {
                    let action = self.buttons().get(button).map(|button| button.action);
                    return action.map_or(Outcome::Stay, |action| self.press(action));
                }
                if let Some(row) = row_at(&self.drawn_rows, at) {
                    self.scroll.cursor = row;
                    self.toggle(row);
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        match self.phase {
            Phase::Choosing => vec![
                Hint { action: Action::Down, label: "move" },
                Hint { action: Action::Mark, label: "include or leave out" },
                Hint { action: Action::NextPart, label: "next button" },
                Hint { action: Action::Back, label: "not now" },
            ],
            Phase::Counting(_) => vec![Hint { action: Action::Back, label: "undo" }],
            Phase::Sending(_) => vec![Hint { action: Action::Back, label: "stop" }],
            Phase::Done => {
                vec![
                    Hint { action: Action::Down, label: "move" },
                    Hint { action: Action::Back, label: "close" },
                ]
            }
        }
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        let wide = area.width.saturating_sub(4).min(140);
        let tall = u16::try_from(self.rows.len()).unwrap_or(u16::MAX).saturating_add(6);
        let area = centred(area, wide, tall.min(area.height.saturating_sub(2)).max(8));
        let title = format!("{} {}", self.verb(), plural(self.included()));
        let note = format!("{} marked", plural(self.rows.len()));
        let decision = matches!(self.command, CommandName::Approve | CommandName::Deny);
        let inside = frame(area, painter, &title, &note, decision);
        let list = Rect { height: inside.height.saturating_sub(4), ..inside };
        self.scroll.follow(self.rows.len(), usize::from(list.height));
        let names = self.rows.iter().map(|row| cells(&shown(row.run.title_or_skill()))).max().unwrap_or(0);
        let name_width = names.min(inside.width / 2);
        self.drawn_rows.clear();
        for place in 0..list.height {
            let at = self.scroll.offset + usize::from(place);
            if at >= self.rows.len() {
                break;
            }
            let row = Rect { y: list.y + place, height: 1, ..list };
            self.draw_row(at, row, 3, name_width, painter);
            self.drawn_rows.push((row, at));
        }
        let (text, role) = self.status(now);
        painter.put(
            inside.x + 1,
            inside.bottom().saturating_sub(3),
            &text,
            role,
            inside.width.saturating_sub(2),
        );
        let row = Rect { y: inside.bottom().saturating_sub(1), height: 1, ..inside };
        let all = self.buttons();
        let focused = Some(self.focused.min(all.len().saturating_sub(1)));
        self.drawn_buttons = buttons(row, painter, &all, focused);
        None
    }

    fn changes_in(&self, now: Instant) -> Option<u64> {
        let Phase::Counting(until) = self.phase else { return None };
        let left = u64::try_from(until.saturating_duration_since(now).as_millis()).unwrap_or(u64::MAX);
        // The next full second, or the end.
        Some(left.checked_rem(1_000).filter(|rest| *rest > 0).unwrap_or(left.min(1_000)))
    }
}
