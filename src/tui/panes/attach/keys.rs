//! Keys of the Attach pane.

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use strum::IntoEnumIterator as _;

use super::{Attach, CommandForm, Focus};
use crate::action::{Action, Command, Context};
use crate::form::{Form, FormOutcome};
use crate::pane::{Draw, Effect, Message, Pane, PaneId, Picker, PickerKind, Target};
use crate::widgets::relative_time::until_older;
use crate::widgets::text_width::shown;
use skills_skill::AttachTarget;

impl Pane for Attach {
    fn id(&self) -> PaneId {
        PaneId::Attach
    }

    fn contexts(&self) -> Vec<Context> {
        match self.focus {
            Focus::Skill | Focus::Target | Focus::Button => vec![Context::Attach, Context::List],
            Focus::Reference => vec![Context::Attach, Context::Field],
            Focus::Inputs => vec![Context::Attach, Context::Form, Context::Field],
            Focus::Preview => vec![Context::Attach, Context::Text],
        }
    }

    fn in_text(&self) -> bool {
        matches!(self.focus, Focus::Reference | Focus::Inputs)
    }

    fn commands(&self) -> Vec<Command> {
        if self.offered.is_empty() {
            // There is no form: the screen explains what makes a skill attachable.
            return Vec::new();
        }
        let blocked = self.blocked();
        let attach = Command { blocked, ..shown_key(Action::CarryOut, "attach") };
        let mut out = match self.focus {
            Focus::Skill => vec![
                shown_key(Action::NextPart, "next field"),
                shown_key(Action::Down, "choose"),
                shown_key(Action::Open, "list"),
                attach,
            ],
            Focus::Target => {
                vec![shown_key(Action::NextPart, "next field"), shown_key(Action::Down, "choose"), attach]
            }
            Focus::Reference => vec![
                shown_key(Action::NextPart, "next field"),
                shown_key(Action::Down, "choose"),
                shown_key(Action::Submit, "select"),
                attach,
                shown_key(Action::LeaveField, "leave field"),
                hidden(Action::Clear, "clear"),
            ],
            Focus::Inputs => vec![
                shown_key(Action::NextPart, "next field"),
                attach,
                shown_key(Action::NewLine, "new line"),
                shown_key(Action::LeaveField, "leave field"),
                hidden(Action::Submit, "next field"),
                hidden(Action::Clear, "clear"),
            ],
            Focus::Button => {
                vec![shown_key(Action::NextPart, "next field"), attach, hidden(Action::Open, "attach")]
            }
            Focus::Preview => {
                let label = if self.preview.expanded { "shorten" } else { "complete" };
                let nothing = !self.preview.expanded && !self.preview.shortened;
                let why = nothing.then(|| "content is complete".to_owned());
                vec![
                    shown_key(Action::Down, "scroll"),
                    Command { blocked: why, ..shown_key(Action::Open, label) },
                    shown_key(Action::NextTab, "CLI, curl"),
                    attach,
                ]
            }
        };
        if !self.in_text() {
            let none = self.last.as_ref().and_then(super::LastAttachment::run).is_none();
            let why = none.then(|| "nothing attached yet".to_owned());
            out.push(Command { blocked: why, ..shown_key(Action::ShowRun, "go to run") });
            let none = self.preview.shown().is_none().then(|| "no preview yet".to_owned());
            out.push(Command { blocked: none.clone(), ..shown_key(Action::Copy, "copy") });
            out.push(Command { blocked: none, ..hidden(Action::CopyAs, "copy as") });
            out.push(hidden(Action::FocusIntent, "edit the target"));
        }
        out.push(hidden(Action::PreviousPart, "previous field"));
        out
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::CarryOut => return Some(self.submit()),
            Action::FocusIntent => return Some(self.focus_on(Focus::Reference)),
            Action::ShowRun => return Some(self.show_run()),
            Action::Copy => {
                return Some(self.copy_as(match self.same {
                    CommandForm::Cli => "cli",
                    CommandForm::Curl => "curl",
                }));
            }
            Action::CopyAs => return Some(vec![Effect::Pick(self.copy_choices()?)]),
            Action::NextTab | Action::PreviousTab if !self.in_text() => {
                self.same = if self.same == CommandForm::Cli { CommandForm::Curl } else { CommandForm::Cli };
                return Some(Vec::new());
            }
            _ => {}
        }
        if self.focus == Focus::Inputs {
            return self.act_in_inputs(action);
        }
        match action {
            Action::NextPart => Some(self.turn(true)),
            Action::PreviousPart => Some(self.turn(false)),
            other => match self.focus {
                Focus::Skill => self.act_on_skill(other),
                Focus::Target => self.act_on_target(other),
                Focus::Reference => self.act_on_reference(other),
                Focus::Button if other == Action::Open => Some(self.submit()),
                Focus::Preview => self.act_on_preview(other),
                Focus::Button | Focus::Inputs => None,
            },
        }
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let changed = match self.focus {
            Focus::Inputs => {
                return if self.form_mut().is_some_and(|form| form.key(key)) {
                    self.request_preview()
                } else {
                    Vec::new()
                };
            }
            _ if self.takes_completion(key) => self.complete(),
            _ => self.reference.key(key),
        };
        if changed { self.referred() } else { Vec::new() }
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.focus == Focus::Inputs {
            let changed = self.form_mut().is_some_and(|form| form.paste(text));
            return if changed { self.request_preview() } else { Vec::new() };
        }
        if self.reference.paste(text.trim()) { self.referred() } else { Vec::new() }
    }

    fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        self.pointed(event)
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        self.news(message)
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        if self.preview.is_old() {
            let effects = self.request_preview();
            self.wanted.extend(effects);
        }
        self.view(area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.wanted)
    }

    fn animated(&self) -> bool {
        self.sending.is_some()
    }

    fn changes_at(&self, clock_ms: i64) -> Option<i64> {
        if self.focus != Focus::Reference {
            return None;
        }
        let ages = (0..self.choices.len()).filter_map(|at| self.choices.get(at)?.at_ms);
        ages.map(|at| clock_ms + until_older(clock_ms - at)).min()
    }

    fn unsaved(&self) -> Option<String> {
        let form = self.form()?;
        let name = self.chosen().map(|skill| shown(&skill.name))?;
        let sent = self.sending.is_some() || matches!(self.last, Some(super::LastAttachment::Done(_)));
        (form.changed() && !sent).then(|| format!("The inputs for {name} in Attach would be lost."))
    }
}

impl Attach {
    /// Moves the focus to the next part that is not empty.
    fn turn(&mut self, forward: bool) -> Vec<Effect> {
        let parts =
            [Focus::Skill, Focus::Target, Focus::Reference, Focus::Inputs, Focus::Button, Focus::Preview];
        let at = parts.iter().position(|part| *part == self.focus).unwrap_or(0);
        let mut next = at;
        loop {
            next = (next + if forward { 1 } else { parts.len() - 1 }) % parts.len();
            let empty = parts[next] == Focus::Inputs && self.form().is_none_or(Form::is_empty);
            if !empty {
                break;
            }
        }
        if parts[next] == Focus::Inputs
            && let Some(form) = self.form_mut()
        {
            if forward { form.first() } else { form.last() }
        }
        self.focus_on(parts[next])
    }

    pub(super) fn focus_on(&mut self, part: Focus) -> Vec<Effect> {
        if self.focus == Focus::Inputs
            && part != Focus::Inputs
            && let Some(form) = self.form_mut()
        {
            form.leave();
        }
        let came = self.focus != part;
        self.focus = part;
        if came && part == Focus::Reference {
            self.choices.filter(self.reference.text());
            return self.request_choices();
        }
        Vec::new()
    }

    fn act_on_skill(&mut self, action: Action) -> Option<Vec<Effect>> {
        let step = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::Open | Action::Fold | Action::Filter => return Some(self.skill_list()),
            _ => return None,
        };
        let at = self.offered.iter().position(|skill| Some(&skill.id) == self.skill.as_ref());
        let next =
            at.map_or(0, |at| at.saturating_add_signed(step).min(self.offered.len().saturating_sub(1)));
        let id = self.offered.get(next)?.id.clone();
        if Some(&id) == self.skill.as_ref() {
            return Some(Vec::new());
        }
        self.meant = true;
        Some(self.choose_skill(&id))
    }

    pub(super) fn skill_list(&self) -> Vec<Effect> {
        if self.offered.is_empty() {
            return Vec::new();
        }
        let choice = |skill: &std::sync::Arc<skills_skill::Skill>| {
            let targets: Vec<String> =
                skill.classification.attach_targets.iter().map(ToString::to_string).collect();
            let note = if self.lacks_contract(&skill.id) {
                "instructions only, no contract".to_owned()
            } else {
                targets.join(", ")
            };
            (skill.id.to_string(), shown(&skill.name), note)
        };
        vec![Effect::Pick(Picker {
            what: PickerKind::Attachable,
            title: "Skill to attach".to_owned(),
            choices: self.offered.iter().map(choice).collect(),
            current: self.offered.iter().position(|skill| Some(&skill.id) == self.skill.as_ref()),
        })]
    }

    fn act_on_target(&mut self, action: Action) -> Option<Vec<Effect>> {
        let kinds: Vec<AttachTarget> =
            AttachTarget::iter().filter(|target| self.refuses(*target).is_none()).collect();
        let at = kinds.iter().position(|target| Some(*target) == self.target);
        let last = kinds.len().checked_sub(1)?;
        let next = match action {
            Action::Up => at.map_or(last, |at| at.saturating_sub(1)),
            Action::Down => at.map_or(0, |at| (at + 1).min(last)),
            Action::Top => 0,
            Action::Bottom => last,
            Action::Fold => at.map_or(0, |at| (at + 1) % kinds.len()),
            Action::Open => return Some(self.turn(true)),
            _ => return None,
        };
        Some(self.choose_target(kinds[next]))
    }

    fn act_on_reference(&mut self, action: Action) -> Option<Vec<Effect>> {
        let rows = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -self.choices.scroll.page(),
            Action::PageDown => self.choices.scroll.page(),
            Action::Clear => {
                return Some(if self.reference.kill_to_start() { self.referred() } else { Vec::new() });
            }
            Action::Submit => {
                let mut effects = if self.complete() { self.referred() } else { Vec::new() };
                effects.extend(self.turn(true));
                return Some(effects);
            }
            Action::LeaveField | Action::Back => {
                self.focus = Focus::Button;
                return Some(Vec::new());
            }
            _ => return None,
        };
        let len = self.choices.len();
        self.choices.scroll.by(rows, len);
        Some(Vec::new())
    }

    /// Returns whether a key accepts the completion that is shown after the text.
    fn takes_completion(&self, key: KeyEvent) -> bool {
        use crossterm::event::{KeyCode, KeyModifiers};
        let goes_on = matches!(
            (key.code, key.modifiers),
            (KeyCode::Right | KeyCode::End, KeyModifiers::NONE)
                | (KeyCode::Char('f' | 'e'), KeyModifiers::CONTROL)
        );
        goes_on && self.reference.cursor() == self.reference.text().len() && self.completion().is_some()
    }

    /// Returns the rest of the reference under the cursor if it begins with the entered text.
    pub(super) fn completion(&self) -> Option<&str> {
        let rest = self.choices.under_cursor()?.target_ref.strip_prefix(self.reference.text())?;
        (!rest.is_empty()).then_some(rest)
    }

    /// Accepts the reference under the cursor; returns whether the text changed. A complete input is kept.
    pub(super) fn complete(&mut self) -> bool {
        let Some(choice) = self.choices.under_cursor() else { return false };
        let text = choice.target_ref.clone();
        if text == self.reference.text() {
            return false;
        }
        self.reference.set(&text);
        true
    }

    /// Handles a change of the reference.
    pub(super) fn referred(&mut self) -> Vec<Effect> {
        self.choices.filter(self.reference.text());
        self.request_preview()
    }

    fn act_in_inputs(&mut self, action: Action) -> Option<Vec<Effect>> {
        if matches!(action, Action::LeaveField | Action::Back) {
            return Some(self.focus_on(Focus::Button));
        }
        match self.form_mut()?.act(action) {
            FormOutcome::Unknown => None,
            FormOutcome::Stayed => Some(Vec::new()),
            FormOutcome::Changed => Some(self.request_preview()),
            FormOutcome::Before => Some(self.focus_on(Focus::Reference)),
            FormOutcome::After => Some(self.focus_on(Focus::Button)),
        }
    }

    fn act_on_preview(&mut self, action: Action) -> Option<Vec<Effect>> {
        let page = self.preview.scroll.page();
        let rows = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -page,
            Action::PageDown => page,
            Action::Top => isize::MIN,
            Action::Bottom => isize::MAX,
            Action::Open | Action::Fold => {
                self.preview.expanded = !self.preview.expanded;
                self.preview.scroll.offset = 0;
                return Some(Vec::new());
            }
            Action::Back => {
                self.focus = Focus::Button;
                return Some(Vec::new());
            }
            _ => return None,
        };
        // Drawing knows the length and clamps the offset.
        let offset = self.preview.scroll.offset.saturating_add_signed(rows);
        self.preview.scroll.offset = offset.min(usize::MAX / 2);
        Some(Vec::new())
    }

    fn show_run(&self) -> Vec<Effect> {
        let run = self.last.as_ref().and_then(super::LastAttachment::run);
        run.map(|run| Effect::Go(PaneId::Runs, Some(Target::Run(run.clone())))).into_iter().collect()
    }

    fn copy_choices(&self) -> Option<Picker> {
        let preview = self.preview.shown()?;
        let mut choices = vec![
            ("cli".to_owned(), "command line".to_owned(), shown(&preview.cli)),
            ("curl".to_owned(), "curl".to_owned(), shown(&preview.curl)),
            ("json".to_owned(), "JSON".to_owned(), "the request".to_owned()),
        ];
        if preview.content.is_some() {
            let label = preview.target_label.as_deref().map(shown).unwrap_or_default();
            choices.push(("content".to_owned(), "content".to_owned(), label));
        }
        Some(Picker { what: PickerKind::CopyAs, title: "Copy as".to_owned(), choices, current: Some(0) })
    }
}

fn shown_key(action: Action, label: &str) -> Command {
    Command { action, label: label.to_owned(), blocked: None, footer: true }
}

fn hidden(action: Action, label: &str) -> Command {
    Command { footer: false, ..shown_key(action, label) }
}
