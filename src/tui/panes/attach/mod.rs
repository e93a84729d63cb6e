//! Pane 3: attaches a skill to a task, a run, an output, a transcript or an artifact. The four checks and the preview
//! of the request are updated while it is composed; nothing starts before the user confirms.

mod compose;
mod inputs;
mod last;
mod plan;
mod preview;
mod reference;
mod skills;
mod targets;

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use self::compose::{Compose, Focus};
use self::last::{LastAttachment, LastResult};
use self::preview::Preview;
use crate::action::{Action, Context, PaneCommand};
use crate::pane::{Draw, Effect, Message, Pane, PaneId, PickerKind, Target};
use crate::run_requests::RunResponse;
use crate::widgets::{Painter, column_divider, shown, until_older};
use skills_api::Event;
use skills_skill::SkillId;

/// Below this width the parts share one column.
const FOLD: u16 = 80;

/// The state of pane 3.
#[derive(Default)]
pub struct Attach {
    compose: Compose,
    preview: Preview,
    last: LastResult,
    wanted: Vec<Effect>,
}

impl Attach {
    /// Creates a pane without a selection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests a preview if the request changed, after other effects.
    fn with_preview(&mut self, mut effects: Vec<Effect>) -> Vec<Effect> {
        if std::mem::take(&mut self.compose.changed) {
            match self.compose.request() {
                Some(request) => effects.push(self.preview.request(request)),
                None => self.preview.clear(),
            }
        }
        effects
    }

    fn handle_message(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Catalog(catalog) => self.compose.take_catalog(catalog),
            Message::Event(Event::Catalog(change)) => {
                for id in change.changed.iter().chain(&change.removed).chain(&change.added) {
                    self.compose.inputs.forget_contract(id);
                }
                self.compose.take_catalog(&change.catalog)
            }
            Message::Event(Event::Replaced) => {
                self.last.clear();
                self.compose.request_again()
            }
            Message::Picked(PickerKind::Attachable, id) => self.compose.pick_skill(&SkillId::new(id)),
            Message::Picked(PickerKind::CopyAs, what) => {
                self.preview.copy_as(what, self.compose.request().as_ref())
            }
            Message::Visit(Target::Attach { skill, target }) => {
                self.compose.visit(skill.as_ref(), target.as_ref())
            }
            Message::Run(response) => self.on_response(response),
            _ => Vec::new(),
        }
    }

    fn on_response(&mut self, response: &RunResponse) -> Vec<Effect> {
        match response {
            RunResponse::AttachPreview(generation, preview) => {
                if self.preview.take(*generation, preview)
                    && let Ok(preview) = preview
                    && let Some(form) = self.compose.form_mut()
                {
                    form.remark(&preview.input_problems);
                }
                Vec::new()
            }
            RunResponse::Targets(generation, found) => {
                self.compose.reference.take(*generation, found);
                Vec::new()
            }
            RunResponse::Contract(skill, view) => {
                self.compose.take_contract(skill, view);
                Vec::new()
            }
            RunResponse::Launchable(Ok(ready)) => {
                self.compose.take_runnable(ready.iter().map(|(id, _)| id.clone()))
            }
            RunResponse::Attached(ticket, attached) if self.last.take(*ticket, attached) => {
                // The next key is likely for the run and must not be typed into a field.
                self.compose.focus = Focus::Button;
                self.compose.changed = true;
                // The run may have continued before this response arrived.
                self.last.request()
            }
            RunResponse::Following => {
                let mut effects = self.compose.request_again();
                effects.extend(self.last.on_response(response));
                effects
            }
            RunResponse::Events(events) => {
                let text = self.compose.reference.field.text();
                // The run may be named by the beginning or the end of its id.
                let named = text.split('/').next().unwrap_or_default().to_lowercase();
                let of_target = |id: &str| {
                    let id = id.to_lowercase();
                    !named.is_empty() && (id.starts_with(&named) || id.ends_with(&named))
                };
                if events.iter().any(|event| of_target(&event.run.0)) {
                    // The preview is requested at the next draw: events may arrive faster than frames.
                    self.preview.grow_old();
                }
                self.last.on_response(response)
            }
            other => self.last.on_response(other),
        }
    }

    /// Returns why it cannot be attached now, if so.
    fn blocked(&self) -> Option<String> {
        if self.compose.skills.id.is_some() && self.last.is_sending() {
            return Some("attaching".to_owned());
        }
        self.compose.blocked(&self.preview)
    }

    /// Sends the request, once: while it is in progress further keys have no effect.
    fn submit(&mut self) -> Vec<Effect> {
        if self.last.is_sending() {
            return Vec::new();
        }
        if let Some(why) = self.blocked() {
            if self.compose.form_mut().is_some_and(|form| !form.check()) && self.preview.failed().is_none() {
                self.compose.focus = Focus::Inputs;
            }
            return vec![Effect::Toast(why)];
        }
        self.compose.request().map(|request| self.last.send(request)).into_iter().collect()
    }

    fn show_run(&self) -> Vec<Effect> {
        let run = self.last.run();
        run.map(|run| Effect::Go(PaneId::Runs, Some(Target::Run(run.clone())))).into_iter().collect()
    }

    fn clicked(&mut self, at: Position) -> Vec<Effect> {
        if self.preview.click(at) {
            return self.compose.focus_on(Focus::Preview);
        }
        if self.last.area.contains(at) {
            return self.show_run();
        }
        if self.compose.button.contains(at) {
            let mut effects = self.compose.focus_on(Focus::Button);
            effects.extend(self.submit());
            return effects;
        }
        self.compose.clicked(at)
    }

    /// Returns the commands of the focused part.
    fn commands_of_focus(&self) -> Vec<PaneCommand> {
        let attach = PaneCommand { blocked: self.blocked(), ..PaneCommand::shown(Action::Execute, "attach") };
        let next = PaneCommand::shown(Action::NextPart, "next field");
        let choose = PaneCommand::shown(Action::Down, "choose");
        match self.compose.focus {
            Focus::Skill => vec![next, choose, PaneCommand::shown(Action::Open, "list"), attach],
            Focus::Target => vec![next, choose, attach],
            Focus::Reference => vec![
                next,
                choose,
                PaneCommand::shown(Action::Submit, "select"),
                attach,
                PaneCommand::shown(Action::LeaveField, "leave field"),
                PaneCommand::hidden(Action::Clear, "clear"),
            ],
            Focus::Inputs => vec![
                next,
                attach,
                PaneCommand::shown(Action::NewLine, "new line"),
                PaneCommand::shown(Action::LeaveField, "leave field"),
                PaneCommand::hidden(Action::Submit, "next field"),
                PaneCommand::hidden(Action::Clear, "clear"),
            ],
            Focus::Button => vec![next, attach, PaneCommand::hidden(Action::Open, "attach")],
            Focus::Preview => {
                let label = if self.preview.expanded { "shorten" } else { "complete" };
                let nothing = !self.preview.expanded && !self.preview.shortened;
                let why = nothing.then(|| "content is complete".to_owned());
                vec![
                    PaneCommand::shown(Action::Down, "scroll"),
                    PaneCommand { blocked: why, ..PaneCommand::shown(Action::Open, label) },
                    PaneCommand::shown(Action::NextTab, "CLI, curl"),
                    attach,
                ]
            }
        }
    }

    fn draw_compose(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) -> Option<u16> {
        let blocked = self.blocked();
        self.compose.draw(area, (blocked, &mut self.last), buf, cx)
    }

    fn draw_preview(&mut self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> Vec<u16> {
        let contract = self.compose.skills.id.as_ref().and_then(|id| self.compose.inputs.contract(id));
        let isolation = contract.and_then(|contract| contract.as_ref().ok()).map(|view| &*view.isolation);
        let focused = cx.focused && self.compose.focus == Focus::Preview;
        self.preview.draw(area, (isolation, focused), buf, cx)
    }
}

impl Pane for Attach {
    fn id(&self) -> PaneId {
        PaneId::Attach
    }

    fn contexts(&self) -> Vec<Context> {
        match self.compose.focus {
            Focus::Skill | Focus::Target | Focus::Button => vec![Context::Attach, Context::List],
            Focus::Reference => vec![Context::Attach, Context::Field],
            Focus::Inputs => vec![Context::Attach, Context::Form, Context::Field],
            Focus::Preview => vec![Context::Attach, Context::Text],
        }
    }

    fn in_text(&self) -> bool {
        matches!(self.compose.focus, Focus::Reference | Focus::Inputs)
    }

    fn commands(&self) -> Vec<PaneCommand> {
        if self.compose.skills.offered.is_empty() {
            // There is no form: the screen explains what makes a skill attachable.
            return Vec::new();
        }
        let mut out = self.commands_of_focus();
        if !self.in_text() {
            let why = self.last.run().is_none().then(|| "nothing attached yet".to_owned());
            out.push(PaneCommand { blocked: why, ..PaneCommand::shown(Action::ShowRun, "go to run") });
            let none = self.preview.shown().is_none().then(|| "no preview yet".to_owned());
            out.push(PaneCommand { blocked: none.clone(), ..PaneCommand::shown(Action::Copy, "copy") });
            out.push(PaneCommand { blocked: none, ..PaneCommand::hidden(Action::CopyAs, "copy as") });
            out.push(PaneCommand::hidden(Action::FocusIntent, "edit the target"));
        }
        out.push(PaneCommand::hidden(Action::PreviousPart, "previous field"));
        out
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        let effects = match (action, self.compose.focus) {
            (Action::Execute, _) | (Action::Open, Focus::Button) => self.submit(),
            (Action::FocusIntent, _) => self.compose.focus_on(Focus::Reference),
            (Action::ShowRun, _) => self.show_run(),
            (Action::Copy, _) => self.preview.copy(),
            (Action::CopyAs, _) => vec![Effect::Pick(self.preview.copy_choices()?)],
            (Action::NextTab | Action::PreviousTab, _) if !self.in_text() => {
                self.preview.turn_command();
                Vec::new()
            }
            (_, Focus::Preview) if self.preview.act(action) => Vec::new(),
            _ => self.compose.act(action)?,
        };
        Some(self.with_preview(effects))
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        self.compose.text_key(key);
        self.with_preview(Vec::new())
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        self.compose.paste(text);
        self.with_preview(Vec::new())
    }

    fn click(&mut self, at: Position) -> Vec<Effect> {
        if self.compose.skills.offered.is_empty() {
            return Vec::new();
        }
        let effects = self.clicked(at);
        self.with_preview(effects)
    }

    fn wheel(&mut self, at: Position, rows: isize) -> Vec<Effect> {
        if self.compose.skills.offered.is_empty() {
            return Vec::new();
        }
        if self.preview.area.contains(at) {
            self.preview.roll(rows);
        } else {
            self.compose.rolled(at, rows > 0);
        }
        self.with_preview(Vec::new())
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        let effects = self.handle_message(message);
        self.with_preview(effects)
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        if self.preview.is_old() {
            self.compose.changed = true;
            let effects = self.with_preview(Vec::new());
            self.wanted.extend(effects);
        }
        // A part that is not drawn has no areas.
        (self.preview.area, self.last.area) = (Rect::ZERO, Rect::ZERO);
        if self.compose.skills.offered.is_empty() {
            self.compose.skills.draw_empty(area, buf, cx);
            return;
        }
        if area.width < FOLD || cx.full_screen {
            if self.compose.focus == Focus::Preview {
                self.draw_preview(area, buf, cx);
            } else {
                self.draw_compose(area, buf, cx);
            }
            return;
        }
        let share = if area.width < 100 { area.width / 2 } else { area.width * 56 / 120 };
        let left = share.saturating_add_signed(cx.split).clamp(36, area.width.saturating_sub(34));
        let right = Rect { x: area.x + left + 1, width: area.width - left - 1, ..area };
        let rule = self.draw_compose(Rect { width: left, ..area }, buf, cx);
        let rules = self.draw_preview(right, buf, cx);
        let (x, heavy) = (area.x + left, cx.focused);
        column_divider(&mut Painter::new(buf, cx), area, x, heavy, rule.as_slice(), &rules);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.wanted)
    }

    fn animated(&self) -> bool {
        self.last.is_sending()
    }

    fn changes_at(&self, clock_ms: i64) -> Option<i64> {
        if self.compose.focus != Focus::Reference {
            return None;
        }
        let choices = &self.compose.reference.choices;
        let ages = (0..choices.len()).filter_map(|at| choices.get(at)?.at_ms);
        ages.map(|at| clock_ms + until_older(clock_ms.saturating_sub(at))).min()
    }

    fn unsaved(&self) -> Option<String> {
        let form = self.compose.form()?;
        let name = self.compose.skills.chosen().map(|skill| shown(&skill.name))?;
        let sent = self.last.is_sending() || matches!(self.last.outcome, Some(LastAttachment::Done(_)));
        (form.changed() && !sent).then(|| format!("The inputs for {name} in Attach would be lost."))
    }
}
