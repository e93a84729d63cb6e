//! The launch dialog: the inputs of the skill's contract, the approvals that it requires, and a button.

use std::sync::Arc;
use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use super::form_box::{FormBox, Surroundings};
use super::parts::{self, Button, LABEL};
use crate::action::{Action, Context};
use crate::form::Form;
use crate::overlay::{Hint, Outcome, Overlay, centered, frame};
use crate::pane::{Effect, Message, PaneId};
use crate::run_requests::{RunRequest, RunResponse};
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Scroll, Seg, counted, shown, wrap_to};
use skills_api::{ConnectionState, ContractStep, ContractView, Event, LaunchRequest};
use skills_skill::Severity;

/// Message if the connection is lost after the launch was sent.
const LOST: &str = "The connection was lost before the response arrived. The launch is retried for up to \
    2 minutes with the same idempotency key, so that only one run is created.";

/// Message if the contract was edited while the dialog was open.
const EDITED: &str = "The contract was edited in the meantime: review its inputs and approvals.";

const TITLE: &str = "Launch a run";

pub(super) struct LaunchDialog {
    pane: PaneId,
    view: Arc<ContractView>,
    ticket: u64,
    fields: FormBox,
    sent: bool,
    /// Whether the core is reachable.
    connected: bool,
    done: bool,
    /// Why the launch was refused, or what changed.
    message: Option<String>,
    /// The position in all lines about the launch, while they are shown instead of the form.
    details: Option<Scroll>,
    /// Number of these lines in the last frame, and whether those above the form were only a part of them.
    lines: (usize, bool),
}

impl LaunchDialog {
    pub(super) fn new(pane: PaneId, view: Arc<ContractView>, ticket: u64) -> Self {
        let form = Form::new(&view.contract.inputs, &Map::new());
        let button = form.is_empty().then_some(0);
        let fields = FormBox::new(form, button);
        Self {
            pane,
            view,
            ticket,
            fields,
            sent: false,
            connected: true,
            done: false,
            message: None,
            details: None,
            lines: (0, false),
        }
    }

    /// Restores a draft.
    pub(super) fn retyped(mut self, typed: &Map<String, Value>) -> Self {
        self.fields.form.retype(typed);
        self
    }

    fn buttons(&self) -> Vec<Button> {
        if self.sent || self.view.blocked.is_some() {
            return vec![Button::new(Action::Back, "Close")];
        }
        vec![Button::new(Action::Back, "Cancel"), Button::new(Action::Execute, "Launch")]
    }

    fn press(&mut self, action: Option<Action>) -> Outcome {
        match action {
            Some(Action::Back) => Outcome::Close,
            Some(Action::Execute) => self.launch(),
            _ => Outcome::Stay,
        }
    }

    /// Sends the launch, once.
    fn launch(&mut self) -> Outcome {
        if self.sent || self.view.blocked.is_some() {
            return Outcome::Stay;
        }
        if !self.fields.form.check() {
            self.fields.button = None;
            return Outcome::Stay;
        }
        let Ok(inputs) = self.fields.form.values() else { return Outcome::Stay };
        (self.sent, self.message, self.fields.button) = (true, None, Some(0));
        let skill = self.view.skill_id.to_string();
        let request = Box::new(LaunchRequest { skill, inputs, ..LaunchRequest::default() });
        Outcome::Request(self.pane, vec![Effect::Run(RunRequest::Launch { request, ticket: self.ticket })])
    }

    /// Updates the contract; entered values are kept for fields that remain.
    fn update_contract(&mut self, view: &Arc<ContractView>) {
        if self.sent || self.view == *view {
            return;
        }
        let (edited, before) = (self.view.digest != view.digest, self.view.blocked.is_some());
        if self.view.contract.inputs != view.contract.inputs {
            let typed = self.fields.form.typed();
            self.fields.form = Form::new(&view.contract.inputs, &Map::new());
            self.fields.form.retype(&typed);
        }
        self.view = Arc::clone(view);
        if edited || before != view.blocked.is_some() {
            self.fields.button = (self.fields.form.is_empty() || view.blocked.is_some()).then_some(0);
        }
        if edited {
            self.message = Some(EDITED.to_owned());
        }
    }

    /// Returns whether the contract has errors, so that its version, steps and inputs may be incomplete.
    fn has_errors(&self) -> bool {
        self.view.contract.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Returns a message about the launch, and whether it is a problem.
    fn status_line(&self) -> Option<(String, bool)> {
        let message = self.view.blocked.clone().or_else(|| self.message.clone());
        match (message, self.sent, self.connected) {
            (Some(message), ..) => Some((message, true)),
            (None, true, true) => Some(("Sent; waiting for the response.".to_owned(), false)),
            (None, true, false) => Some((LOST.to_owned(), true)),
            (None, false, _) => None,
        }
    }

    /// Scrolls or closes the view of all lines.
    fn key_in_details(&mut self, action: Option<Action>) {
        let (Some(action), Some(scroll)) = (action, &mut self.details) else { return };
        let rows = match action {
            Action::Back | Action::Open => {
                self.details = None;
                return;
            }
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -scroll.page(),
            Action::PageDown => scroll.page(),
            _ => return,
        };
        scroll.roll(rows, self.lines.0);
    }

    /// Returns the skill, the required approvals and the sandbox of its scripts: at most this number of steps with
    /// approvals, and of rows of each text.
    fn head(&self, width: u16, (steps, rows): (usize, usize), painter: &Painter<'_>) -> Vec<RichLine> {
        let contract = &self.view.contract;
        let mut title = vec![Seg::new(shown(self.view.skill_id.as_str()), Role::Strong)];
        if !self.has_errors() {
            let steps = counted(self.view.steps.len(), "step");
            let text = format!("  {} {} {steps}", shown(&contract.version), painter.glyphs.dot);
            title.push(Seg::new(text, Role::Muted));
        }
        let mut out = vec![RichLine::from_segs(title)];
        let mut row = |label: &str, text: &str, role: Role| {
            let segs = [Seg::new(shown(text), role)];
            let lines = wrap_to(&segs, width.saturating_sub(LABEL), rows, painter.glyphs.ellipsis);
            out.extend(parts::labeled(label, LABEL, lines.into_iter().map(|line| line.segs)));
        };
        let mut asking = self.view.steps.iter().filter(|step| !step.gates.is_empty());
        for step in asking.by_ref().take(steps) {
            let place = if step.uses.starts_with("skill ") { "in" } else { "before" };
            row("approval", &format!("{place} {}: {}", step.id, step.gates.join("; ")), Role::Waiting);
        }
        let more = asking.count();
        if more > 0 {
            row("", &format!("and before {}", counted(more, "more step")), Role::Waiting);
        }
        let unapproved: Vec<String> = self.view.steps.iter().filter_map(unapproved).collect();
        if !unapproved.is_empty() {
            let (step, change) =
                if unapproved.len() == 1 { ("step", "changes") } else { ("steps", "change") };
            // A step that waits for the approval of one capability can call another one without.
            let text = format!(
                "{step} {} {change} external state without waiting for approval",
                unapproved.join(", ")
            );
            row("unapproved", &text, Role::Warning);
        }
        row("isolation", &self.view.isolation, Role::Text);
        out
    }
}

/// Returns the id of a step that can change external state without an approval, with the capabilities that do so if it
/// does not call only these.
fn unapproved(step: &ContractStep) -> Option<String> {
    match &step.unapproved {
        Some(called) if step.uses.strip_prefix("capability ") == Some(called.as_str()) => {
            Some(step.id.clone())
        }
        Some(called) => Some(format!("{} ({called})", step.id)),
        // Of a service of an earlier version.
        None => (step.acts && step.gates.is_empty()).then(|| step.id.clone()),
    }
}

impl Overlay for LaunchDialog {
    fn in_text(&self) -> bool {
        self.fields.button.is_none() && self.details.is_none()
    }

    fn contexts(&self) -> Vec<Context> {
        if self.details.is_some() { vec![Context::Dialog] } else { self.fields.contexts() }
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        if self.details.is_some() {
            self.key_in_details(action);
            return Outcome::Stay;
        }
        if self.lines.1 && action == Some(Action::PageDown) {
            self.details = Some(Scroll::default());
            return Outcome::Stay;
        }
        let pressed = self.fields.key(key, action, &self.buttons());
        self.press(pressed)
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if self.details.is_none() {
            self.fields.paste(text);
        }
        Outcome::Stay
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Run(RunResponse::Launched(ticket, answer)) if *ticket == self.ticket => match answer {
                Ok(_) => {
                    self.done = true;
                    Outcome::Close
                }
                Err(error) => {
                    self.sent = false;
                    self.message = Some(shown(&error.message));
                    Outcome::Handled
                }
            },
            // Reload the contract: what may run, and its inputs, may have changed.
            Message::Event(Event::Catalog(_)) | Message::Catalog(_) if !self.sent => {
                let request = RunRequest::Contract(self.view.skill_id.to_string());
                Outcome::HandledWith(self.pane, vec![Effect::Run(request)])
            }
            Message::Run(RunResponse::Contract(skill, Ok(view)))
                if *skill == *self.view.skill_id.as_str() =>
            {
                self.update_contract(view);
                Outcome::Handled
            }
            Message::Event(Event::Connection(state)) => {
                self.connected = !matches!(state, ConnectionState::Lost { .. });
                Outcome::Stay
            }
            _ => Outcome::Stay,
        }
    }

    fn draft_effect(&self) -> Option<(PaneId, Effect)> {
        let typed = if self.done { Map::new() } else { self.fields.form.typed() };
        Some((self.pane, Effect::Keep(super::name_of_launch(self.view.skill_id.as_str()), typed)))
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        if let Some(scroll) = &mut self.details {
            scroll.roll(rows, self.lines.0);
        } else {
            self.fields.form.wheel(rows > 0);
        }
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        if self.details.is_some() {
            return Outcome::Stay;
        }
        let pressed = self.fields.click(at, &self.buttons());
        self.press(pressed)
    }

    fn hints(&self) -> Vec<Hint> {
        if self.details.is_some() {
            return vec![Hint::new(Action::PageDown, "scroll"), Hint::new(Action::Back, "back")];
        }
        if self.sent {
            // Closing does not withdraw the launch.
            return vec![Hint::new(Action::Back, "close")];
        }
        let mut hints = self.fields.hints(self.view.blocked.is_none().then_some("launch"));
        if self.lines.1 {
            hints.push(Hint::new(Action::PageDown, "show all"));
        }
        hints
    }

    fn help_items(&self) -> Vec<Hint> {
        if self.details.is_some() {
            return self.hints();
        }
        parts::with_form_keys(self.hints())
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        let width = FormBox::inner_width(area);
        let all = self.head(width, (usize::MAX, usize::MAX), painter);
        self.lines.0 = all.len();
        if let Some(scroll) = &mut self.details {
            let height = u16::try_from(all.len()).unwrap_or(u16::MAX).saturating_add(2);
            let inside = frame(centered(area, width + 6, height), painter, TITLE, "", false);
            let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
            parts::scrolled(inside, painter, &all, scroll);
            return None;
        }
        let limits = if area.height >= 26 { (3, 2) } else { (1, 1) };
        let mut head = self.head(width, limits, painter);
        self.lines.1 = head != all;
        if self.lines.1 {
            let note = format!("{} shows all", painter.key_word(Action::PageDown, &self.contexts()));
            head.extend(parts::labeled("", LABEL, [vec![Seg::new(note, Role::Muted)]]));
        }
        let around = Surroundings {
            title: TITLE,
            head,
            message: self.status_line().map(|(message, bad)| (shown(&message), bad)),
            buttons: &self.buttons(),
            // A contract with errors may have inputs that could not be parsed.
            no_fields: if self.has_errors() { "" } else { "This skill has no inputs." },
            keeps_rows: true,
        };
        self.fields.draw(area, painter, now, &around)
    }
}
