//! One command for many runs: each run is listed with what distinguishes it, the commands are sent one by one after a
//! delay in which sending can be canceled, and each outcome is shown.

use std::time::{Duration, Instant};

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::bulk_view::Drawn;
use super::parts::Button;
use super::run_command::payload;
use crate::action::{Action, Context};
use crate::field::Field;
use crate::overlay::{Hint, Outcome, Overlay, row_at};
use crate::pane::{Effect, Message, PaneId};
use crate::run_requests::{RunRequest, RunResponse};
use crate::theme::Role;
use crate::widgets::format::count;
use crate::widgets::painter::Painter;
use crate::widgets::scroll::Scroll;
use crate::widgets::text_width::shown;
use skills_api::{Code, DecisionSheet, Error, RunCommand, RunDetail, distinguish, is_same};
use skills_model::{ApprovalReason, CommandName, Gate, Verdict};
use skills_store::RunRecord;

/// Delay before the first command is sent, in which sending can be canceled.
const CANCEL_DELAY: Duration = Duration::from_secs(3);

/// A run of the dialog.
pub(super) struct Row {
    pub(super) run: RunRecord,
    /// What distinguishes it from the others.
    pub(super) text: String,
    /// Why the command cannot be sent to it.
    pub(super) blocked: Option<String>,
    /// Whether the command will be sent to it.
    pub(super) included: bool,
    pub(super) outcome: Option<Result<String, String>>,
    /// Whether the command was sent and it is not known whether it was executed.
    pub(super) unknown: bool,
    /// What would be executed, once it is loaded.
    pub(super) sheet: Option<DecisionSheet>,
    /// Version of its contract, once it is loaded.
    version: Option<String>,
    /// Whether its skill changed since the launch.
    pub(super) changed: bool,
    /// Whether it continues with the contract of the launch although its skill changed.
    pub(super) despite: bool,
    /// Whether its details were requested from here.
    requested: bool,
}

/// A text field of the dialog.
pub(super) struct Text {
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) field: Field,
}

/// The focused part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Button(usize),
    Text(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
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
    pub(super) command: CommandName,
    pub(super) rows: Vec<Row>,
    /// What is the same in all rows: label and value.
    pub(super) common: Vec<(&'static str, String)>,
    ticket: u64,
    pub(super) opened: (i64, Instant),
    pub(super) phase: Phase,
    /// Why sending stopped, or what changed.
    said: Option<String>,
    now: Option<Instant>,
    pub(super) focus: Focus,
    /// The notes of a decision, or name and payload of a signal.
    pub(super) texts: Vec<Text>,
    pub(super) scroll: Scroll,
    pub(super) drawn: Drawn,
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
        let row = |run: RunRecord| {
            let blocked = blocked(&run, command);
            Row {
                text: String::new(),
                included: blocked.is_none(),
                blocked,
                outcome: None,
                unknown: false,
                sheet: None,
                version: None,
                changed: false,
                despite: false,
                requested: false,
                run,
            }
        };
        let texts = texts(command, &runs);
        let mut sheet = Self {
            pane,
            command,
            rows: runs.into_iter().map(row).collect(),
            common: Vec::new(),
            ticket,
            opened,
            phase: Phase::Choosing,
            said: None,
            now: None,
            focus: Focus::Button(0),
            texts,
            scroll: Scroll::default(),
            drawn: Drawn::default(),
        };
        sheet.focus = sheet.first_focus();
        sheet.distinguish();
        sheet
    }

    /// Returns the initial focus. A decision requires its own key, as in the dialog of a single run.
    fn first_focus(&self) -> Focus {
        Focus::Button(usize::from(!self.decides()))
    }

    pub(super) fn decides(&self) -> bool {
        matches!(self.command, CommandName::Approve | CommandName::Deny)
    }

    /// Separates what is the same in all runs from what distinguishes each.
    fn distinguish(&mut self) {
        let mut facts: Vec<Vec<(&'static str, String)>> = self.rows.iter().map(Row::facts).collect();
        if self.rows.iter().any(|row| row.version.is_none()) {
            // A row that is not loaded yet would seem to have another contract.
            facts.iter_mut().for_each(|facts| facts.retain(|fact| fact.0 != "contract"));
        }
        let labels = ["skill", "step", "waits for", "error", "contract", "started by"];
        let of = |facts: &[(&'static str, String)], label: &str| {
            facts.iter().find(|fact| fact.0 == label).map(|fact| fact.1.clone()).unwrap_or_default()
        };
        let same: Vec<&str> =
            labels.into_iter().filter(|label| is_same(facts.iter().map(|one| of(one, label)))).collect();
        let first = facts.first().map(Vec::as_slice).unwrap_or_default();
        self.common = labels
            .into_iter()
            .filter(|label| same.contains(label))
            .map(|label| (label, of(first, label)))
            .collect();
        let told = distinguish(self.rows.iter().map(|row| &row.run));
        self.common.extend(told.title.clone().map(|title| ("title", title)));
        self.common.extend([("labels", told.labels), ("inputs", told.inputs)]);
        self.common.retain(|(_, value)| !value.is_empty());
        for ((row, facts), inputs) in self.rows.iter_mut().zip(facts).zip(told.rows) {
            // Without a title, the name of the row is the skill.
            let titled = row.run.title().is_some();
            let parts = facts.into_iter().filter(|fact| !same.contains(&fact.0));
            let parts = parts.filter(|fact| titled || fact.0 != "skill").map(|fact| fact.1);
            let all: Vec<String> =
                [inputs].into_iter().chain(parts).filter(|part| !part.is_empty()).collect();
            row.text = all.join("  ");
        }
    }

    pub(super) fn included(&self) -> usize {
        self.rows.iter().filter(|row| row.included).count()
    }

    /// Returns the number of runs that the command is still to be sent to.
    fn unsent(&self) -> usize {
        self.rows.iter().filter(|row| row.included && row.outcome.is_none()).count()
    }

    /// Returns an entered text without blanks at its ends, if it is not empty.
    fn typed(&self, at: usize) -> Option<String> {
        let text = self.texts.get(at)?.field.text().trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn order(&self, row: &Row) -> Option<RunCommand> {
        Some(match self.command {
            CommandName::Resume => {
                RunCommand::Resume { checkpoint: None, inputs: None, despite_change: row.despite, by: None }
            }
            CommandName::Cancel => RunCommand::Cancel { by: None },
            CommandName::Signal => {
                let payload = payload(&self.typed(1).unwrap_or_default()).ok()?;
                RunCommand::Signal { name: self.typed(0)?, payload, by: None }
            }
            CommandName::Approve | CommandName::Deny => {
                let Some(Gate::Human { step, inputs_digest, .. }) = &row.run.gate else { return None };
                let approve = self.command == CommandName::Approve;
                RunCommand::Decide {
                    verdict: if approve { Verdict::Approve } else { Verdict::Deny },
                    step: Some(step.clone()),
                    inputs_digest: Some(inputs_digest.clone()),
                    approver: None,
                    notes: self.typed(0),
                    choice: None,
                    result: None,
                }
            }
            _ => return None,
        })
    }

    /// Returns why a signal cannot be sent with the texts as they are.
    fn invalid_text(&self) -> Option<(usize, String)> {
        if self.command != CommandName::Signal {
            return None;
        }
        if self.typed(0).is_none() {
            return Some((0, "Enter the name of the signal.".to_owned()));
        }
        let why = payload(&self.typed(1).unwrap_or_default()).err()?;
        Some((1, format!("Payload: {why}.")))
    }

    fn begin(&mut self) -> Outcome {
        if let Some((at, why)) = self.invalid_text() {
            (self.focus, self.said) = (Focus::Text(at), Some(why));
            return Outcome::Stay;
        }
        if self.phase == Phase::Choosing && self.unsent() > 0 {
            self.said = None;
            let now = self.now.unwrap_or_else(Instant::now);
            self.phase = Phase::Counting(now + CANCEL_DELAY);
            self.focus = Focus::Button(0);
        }
        Outcome::Stay
    }

    /// Sends without waiting for the end of the delay.
    fn send_now(&mut self) -> Outcome {
        if !matches!(self.phase, Phase::Counting(_)) {
            return Outcome::Stay;
        }
        self.send(0).map_or(Outcome::Stay, |effect| Outcome::Request(self.pane, vec![effect]))
    }

    /// Returns the runs whose skill changed and that are not resumed.
    fn changed(&self) -> impl Iterator<Item = &Row> {
        let resumes = self.command == CommandName::Resume;
        let stays = |row: &&Row| row.changed && !matches!(row.outcome, Some(Ok(_)));
        self.rows
            .iter()
            .filter(move |row| resumes && row.run.allowed.contains(&CommandName::Resume) && stays(row))
    }

    /// Includes the runs whose skill changed, with the contract of their launch, or leaves them out again. After
    /// sending, sends the command to them alone.
    fn despite_change(&mut self) -> Outcome {
        let on = self.changed().any(|row| !row.despite);
        let done = self.phase == Phase::Done;
        if !matches!(self.phase, Phase::Choosing | Phase::Done) || self.changed().next().is_none() {
            return Outcome::Stay;
        }
        for row in &mut self.rows {
            let stays = row.changed && !matches!(row.outcome, Some(Ok(_)));
            if stays {
                (row.despite, row.included, row.outcome) = (on || done, on || done, None);
            } else if done && row.outcome.is_none() {
                row.included = false;
            }
        }
        self.said = None;
        if done {
            self.phase = Phase::Choosing;
            return self.begin();
        }
        Outcome::Stay
    }

    /// Sends the command to the next run at or after index `from`.
    fn send(&mut self, from: usize) -> Option<Effect> {
        let waits = |row: &Row| row.included && row.outcome.is_none();
        let at = (from..self.rows.len()).find(|at| waits(&self.rows[*at]));
        let Some(at) = at else {
            self.phase = Phase::Done;
            self.focus = Focus::Button(0);
            return None;
        };
        let Some(order) = self.order(&self.rows[at]) else {
            self.rows[at].outcome = Some(Err("it no longer waits for a decision".to_owned()));
            return self.send(at + 1);
        };
        self.phase = Phase::Sending(at);
        (self.scroll.cursor, self.ticket) = (at, self.ticket + 1);
        let run = self.rows[at].run.id.clone();
        Some(Effect::Run(RunRequest::Order { run, order: Box::new(order), ticket: self.ticket }))
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
            Action::DespiteChange => self.despite_change(),
            _ => self.begin(),
        }
    }

    fn toggle(&mut self, at: usize) {
        if self.phase == Phase::Choosing
            && let Some(row) = self.rows.get_mut(at)
        {
            if row.changed && !row.despite {
                self.said =
                    Some("Its skill changed: W resumes it with the contract of the launch.".to_owned());
                return;
            }
            row.included = !row.included && row.blocked.is_none();
        }
    }

    /// Moves the cursor, and requests what would be executed for the run under it.
    fn go(&mut self, rows: isize) -> Outcome {
        self.scroll.by(rows, self.rows.len());
        let checks = self.decides() || self.command == CommandName::Resume;
        let Some(row) = self.rows.get_mut(self.scroll.cursor) else { return Outcome::Stay };
        let is_known = !checks || row.requested || row.version.is_some() || row.outcome.is_some();
        if is_known && !row.unknown {
            return Outcome::Stay;
        }
        row.requested = true;
        Outcome::Request(self.pane, vec![Effect::Run(RunRequest::Detail(row.run.id.clone()))])
    }

    /// Updates a run: what would be executed, and whether it still takes the command.
    fn news_of(&mut self, detail: &RunDetail) {
        let (command, undecided) = (self.command, matches!(self.phase, Phase::Choosing | Phase::Counting(_)));
        let Some(row) = self.rows.iter_mut().find(|row| row.run.id == detail.run.id) else { return };
        if row.unknown {
            row.unknown = false;
            let is_unchanged = row.run.since_ms == detail.run.since_ms && row.run.state == detail.run.state;
            if is_unchanged && gate_key(&row.run) == gate_key(&detail.run) {
                // It was not executed, and can be sent again.
                row.outcome = None;
                if self.phase == Phase::Done {
                    self.phase = Phase::Choosing;
                }
            } else {
                row.outcome = Some(Ok(format!("it is {} now", detail.run.state.label())));
                row.run.clone_from(&detail.run);
            }
            return;
        }
        if row.outcome.is_some() || !undecided {
            return;
        }
        let first = row.version.is_none();
        let moved = gate_key(&row.run) != gate_key(&detail.run);
        row.run.clone_from(&detail.run);
        row.sheet.clone_from(&detail.sheet);
        row.version = Some(detail.contract_version.clone());
        row.blocked = blocked(&row.run, command).or_else(|| {
            let why = row.sheet.as_ref().filter(|_| command == CommandName::Approve)?.blocked.as_ref()?;
            Some(format!("excluded: {}", shown(why)))
        });
        row.changed = command == CommandName::Resume && detail.contract_unchanged == Some(false);
        if row.blocked.is_some() || (row.changed && !row.despite && first) {
            row.included = false;
        } else if moved && row.included {
            row.included = false;
            self.said =
                Some("A run waits for something else now: review it, then include it again.".to_owned());
        }
        if matches!(self.phase, Phase::Counting(_)) && self.unsent() == 0 {
            self.back();
        }
        self.distinguish();
    }

    fn ring(&self) -> Vec<Focus> {
        let texts = if self.phase == Phase::Choosing { self.texts.len() } else { 0 };
        let buttons = (0..self.buttons().len()).map(Focus::Button);
        buttons.chain((0..texts).map(Focus::Text)).collect()
    }

    fn turn(&mut self, forward: bool) {
        let ring = self.ring();
        let at = ring.iter().position(|focus| *focus == self.focus).unwrap_or(0);
        let by = if forward { 1 } else { ring.len() - 1 };
        self.focus = ring[(at + by) % ring.len()];
    }

    pub(super) fn verb(&self) -> &'static str {
        match self.command {
            CommandName::Approve => "Approve",
            CommandName::Deny => "Deny",
            CommandName::Cancel => "Cancel",
            CommandName::Signal => "Signal",
            _ => "Resume",
        }
    }

    /// Returns the label of the key that sends the commands.
    fn verb_label(&self) -> &'static str {
        match self.command {
            CommandName::Approve => "approve",
            CommandName::Deny => "deny",
            CommandName::Cancel => "cancel runs",
            CommandName::Signal => "signal",
            _ => "resume",
        }
    }

    pub(super) fn buttons(&self) -> Vec<Button> {
        let runs = plural(self.unsent());
        let (action, key, danger) = match self.command {
            CommandName::Approve => (Action::ApproveNow, "A", false),
            CommandName::Deny => (Action::DenyNow, "D", true),
            CommandName::Cancel => (Action::CarryOut, "^S", true),
            _ => (Action::CarryOut, "^S", false),
        };
        let changed = self.changed().count();
        let despite = |label: &str| {
            let label = format!("{label} {} with the launched version", plural(changed));
            (changed > 0).then(|| Button::new(Action::DespiteChange, label, "W"))
        };
        match self.phase {
            Phase::Choosing => {
                // Next to "Cancel 2 runs", a button "Cancel" would be ambiguous.
                let label = if self.command == CommandName::Cancel { "Keep running" } else { "Cancel" };
                let mut out = vec![Button::new(Action::Back, label, "Esc")];
                if self.unsent() > 0 {
                    let label = format!("{} {runs}", self.verb());
                    out.push(Button { danger, ..Button::new(action, label, key) });
                }
                let is_on = self.changed().all(|row| row.despite);
                out.extend(despite(if is_on { "Exclude" } else { "Include" }));
                out
            }
            Phase::Counting(_) => vec![
                Button::new(Action::Undo, "Cancel sending", "u"),
                Button::new(Action::SendNow, format!("Send {} now", self.unsent()), "S"),
            ],
            Phase::Sending(_) => vec![Button::new(Action::Back, "Stop", "Esc")],
            Phase::Done => {
                let mut out = vec![Button::new(Action::Back, "Close", "Esc")];
                out.extend(despite("Resume"));
                out
            }
        }
    }

    /// Returns the line below the list.
    pub(super) fn status(&self, now: Instant) -> (String, Role) {
        let done = |ok: bool| {
            let known = self.rows.iter().filter(|row| !row.unknown);
            known.filter(move |row| row.outcome.as_ref().is_some_and(|o| o.is_ok() == ok))
        };
        let (ok, refused) = (done(true).count(), done(false).count());
        let unknown = self.rows.iter().filter(|row| row.unknown).count();
        let unsent = self.unsent();
        match self.phase {
            Phase::Choosing => {
                if let Some(said) = &self.said {
                    return (said.clone(), Role::Danger);
                }
                let left_out = self.rows.iter().filter(|row| row.blocked.is_some()).count();
                let text = match left_out {
                    0 => "Space toggles a run. Nothing is sent yet.".to_owned(),
                    _ => format!("Space toggles a run. {} excluded.", plural(left_out)),
                };
                (text, Role::Muted)
            }
            Phase::Counting(until) => {
                let left = until.saturating_duration_since(now).as_millis().div_ceil(1_000).max(1);
                (format!("Sending in {left} s. Nothing is sent yet: u cancels, S sends now."), Role::Waiting)
            }
            Phase::Sending(_) => {
                (format!("{} of {} sent", ok + refused + unknown, self.included()), Role::Info)
            }
            Phase::Done => {
                let mut parts = vec![format!("{ok} done")];
                parts.extend((refused > 0).then(|| format!("{refused} refused")));
                parts.extend((unknown > 0).then(|| format!("{unknown} unknown")));
                parts.extend((unsent > 0).then(|| format!("{unsent} not sent")));
                let role = if refused + unknown + unsent > 0 { Role::Warning } else { Role::Success };
                (parts.join(", "), role)
            }
        }
    }
}

impl Row {
    /// Returns the properties that are compared between runs: label and value.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let (step, signal) = match &self.run.gate {
            Some(Gate::Human { step, .. }) => (Some(step.as_str()), None),
            Some(Gate::Signal { step, name }) => (Some(step.as_str()), Some(name.as_str())),
            _ => (self.run.step.as_deref(), None),
        };
        let mut facts = vec![("skill", shown(&self.run.skill_id))];
        facts.extend(step.map(|step| ("step", shown(step))));
        facts.extend(signal.map(|name| ("waits for", shown(name))));
        facts.extend(self.run.failure().map(|why| ("error", shown(&why))));
        facts.extend(self.version.as_ref().map(|version| ("contract", shown(version))));
        facts.push(("started by", shown(&self.run.started_by)));
        facts
    }
}

/// Returns the text fields of a command.
fn texts(command: CommandName, runs: &[RunRecord]) -> Vec<Text> {
    let text = |label, hint, value: &str| {
        let mut field = Field::new();
        field.set(value);
        Text { label, hint, field }
    };
    match command {
        CommandName::Approve | CommandName::Deny => {
            vec![text("notes", "optional, stored with each decision", "")]
        }
        CommandName::Signal => {
            let mut names = runs.iter().filter_map(|run| match &run.gate {
                Some(Gate::Signal { name, .. }) => Some(name.as_str()),
                _ => None,
            });
            let first = names.next().unwrap_or_default();
            let name = if names.all(|name| name == first) { first } else { "" };
            vec![text("signal", "name that the runs wait for", name), text("payload", "JSON, or empty", "{}")]
        }
        _ => Vec::new(),
    }
}

/// Returns step and digest of what a run waits for.
fn gate_key(run: &RunRecord) -> Option<(&str, &str)> {
    match &run.gate {
        Some(Gate::Human { step, inputs_digest, .. }) => Some((step, inputs_digest)),
        Some(Gate::Signal { step, name }) => Some((step, name)),
        _ => None,
    }
}

pub(super) fn plural(runs: usize) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{} runs", count(runs)) }
}

/// Returns why a run does not accept the command.
fn blocked(run: &RunRecord, command: CommandName) -> Option<String> {
    if !run.allowed.contains(&command) {
        return Some(format!("excluded: {}", run.state.label()));
    }
    match (&run.gate, command) {
        (Some(Gate::Human { why: ApprovalReason::UnknownOutcome, .. }), CommandName::Approve) => {
            Some("excluded: unknown outcome, decide it individually".to_owned())
        }
        _ => None,
    }
}

impl Overlay for BulkDialog {
    fn in_text(&self) -> bool {
        matches!(self.focus, Focus::Text(_))
    }

    fn contexts(&self) -> Vec<Context> {
        vec![Context::Bulk, Context::Dialog]
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

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        if let Focus::Text(at) = self.focus {
            match action {
                Some(Action::Back) => self.focus = self.first_focus(),
                Some(Action::Open) => self.turn(true),
                None => {
                    self.texts[at].field.key(key);
                }
                _ => {}
            }
            if !matches!(action, Some(Action::NextPart | Action::PreviousPart | Action::CarryOut)) {
                return Outcome::Stay;
            }
        }
        let Some(action) = action else { return Outcome::Stay };
        match action {
            Action::Up => return self.go(-1),
            Action::Down => return self.go(1),
            Action::PageUp => return self.go(-self.scroll.page()),
            Action::PageDown => return self.go(self.scroll.page()),
            Action::Mark => {
                self.toggle(self.scroll.cursor);
                return self.go(1);
            }
            Action::NextPart => self.turn(true),
            Action::PreviousPart => self.turn(false),
            Action::Notes if self.phase == Phase::Choosing && !self.texts.is_empty() => {
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
            self.texts[at].field.paste(text);
        }
        Outcome::Stay
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        if let Message::Run(RunResponse::Detail(_, Ok(detail))) = message {
            self.news_of(detail);
        }
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
            let said = Some(format!("Not sent: {}", shown(&error.message)));
            (self.phase, self.focus, self.said) = (Phase::Choosing, self.first_focus(), said);
            return Outcome::Handled;
        }
        self.rows[at].changed |= answer.as_ref().is_err_and(|error| error.code == Code::SkillChanged);
        self.rows[at].unknown = answer.as_ref().is_err_and(Error::is_outcome_unknown);
        self.rows[at].outcome = Some(match answer {
            Ok(ordered) => Ok(shown(&ordered.note)),
            Err(error) => Err(shown(&error.message)),
        });
        let asks = self.rows[at].unknown.then(|| Effect::Run(RunRequest::Detail(run.clone())));
        let next = if self.phase == Phase::Sending(at) { self.send(at + 1) } else { None };
        match asks.into_iter().chain(next).collect::<Vec<Effect>>() {
            effects if effects.is_empty() => Outcome::Handled,
            effects => Outcome::HandledWith(self.pane, effects),
        }
    }

    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => return self.go(-3),
            MouseEventKind::ScrollDown => return self.go(3),
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(button) = self.drawn.buttons.iter().position(|rect| rect.contains(at)) {
                    let action = self.buttons().get(button).map(|button| button.action);
                    return action.map_or(Outcome::Stay, |action| self.press(action));
                }
                if let Some(row) = row_at(&self.drawn.rows, at) {
                    self.scroll.cursor = row;
                    self.toggle(row);
                    return self.go(0);
                }
                let text = self.drawn.texts.iter().position(|rect| rect.contains(at));
                if let Some(text) = text.filter(|_| self.phase == Phase::Choosing) {
                    self.focus = Focus::Text(text);
                    self.texts[text].field.click(at);
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let hint = |action, label| Hint { action, label };
        if self.in_text() {
            return vec![
                hint(Action::NextPart, "next"),
                hint(Action::CarryOut, self.verb_label()),
                hint(Action::Back, "leave the field"),
            ];
        }
        match self.phase {
            Phase::Choosing => {
                let mut out = vec![hint(Action::Up, "run"), hint(Action::Mark, "include or exclude")];
                if !self.texts.is_empty() {
                    out.push(hint(Action::Notes, self.texts[0].label));
                }
                if self.changed().next().is_some() {
                    out.push(hint(Action::DespiteChange, "use the launched version"));
                }
                out.extend([hint(Action::NextPart, "next button"), hint(Action::Back, "back")]);
                out
            }
            Phase::Counting(_) => {
                vec![hint(Action::Undo, "cancel sending"), hint(Action::SendNow, "send now")]
            }
            Phase::Sending(_) => vec![hint(Action::Back, "stop")],
            Phase::Done => {
                let mut out = vec![hint(Action::Up, "run")];
                if self.changed().next().is_some() {
                    out.push(hint(Action::DespiteChange, "resume with the launched version"));
                }
                out.push(hint(Action::Back, "close"));
                out
            }
        }
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
        out.extend(all.map(|(action, label)| Hint { action, label }));
        out.extend(
            send.filter(|_| self.phase == Phase::Choosing)
                .map(|action| Hint { action, label: self.verb_label() }),
        );
        out.extend([
            Hint { action: Action::SendNow, label: "send now" },
            Hint { action: Action::Undo, label: "cancel sending" },
            Hint { action: Action::Back, label: "close" },
        ]);
        out
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        self.view(area, painter, now)
    }

    fn changes_in(&self, now: Instant) -> Option<u64> {
        let Phase::Counting(until) = self.phase else { return None };
        let left = u64::try_from(until.saturating_duration_since(now).as_millis()).unwrap_or(u64::MAX);
        // The next full second, or the end.
        Some(left.checked_rem(1_000).filter(|rest| *rest > 0).unwrap_or(left.min(1_000)))
    }
}
