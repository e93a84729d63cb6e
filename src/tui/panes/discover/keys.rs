//! Keys of the Discover pane.

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::rows::Item;
use super::{Discover, Focus};
use crate::action::{Action, Command, Context};
use crate::golden_requests::GoldenForm;
use crate::overlay::Drafting;
use crate::pane::{Draw, Effect, Message, Pane, PaneId, Picker, PickerKind, Target, skills_to_open};
use crate::widgets::format::count;
use skills_api::WhyRequest;
use skills_discovery::Fit;
use skills_skill::Invocation;

impl Pane for Discover {
    fn id(&self) -> PaneId {
        PaneId::Discover
    }

    fn contexts(&self) -> Vec<Context> {
        match self.focus {
            Focus::Intent => vec![Context::DiscoverIntent, Context::Field],
            Focus::Results => vec![Context::Discover, Context::List],
            Focus::Filter => vec![Context::Field],
            Focus::Why => vec![Context::Discover, Context::Text],
        }
    }

    fn in_text(&self) -> bool {
        matches!(self.focus, Focus::Intent | Focus::Filter)
    }

    fn commands(&self) -> Vec<Command> {
        match self.focus {
            Focus::Intent => self.intent_commands(),
            Focus::Filter => filter_commands(),
            Focus::Results | Focus::Why => self.result_commands(),
        }
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        let asks = match action {
            Action::FocusIntent => {
                self.focus = Focus::Intent;
                Vec::new()
            }
            Action::TogglePolicy => {
                self.options.toggle_policy();
                self.ask()
            }
            Action::CycleRole => {
                self.options.cycle_role();
                self.ask()
            }
            Action::ToggleBody => {
                self.options.with_body = !self.options.with_body;
                self.ask()
            }
            Action::PickDomain => vec![Effect::Pick(self.domains())],
            Action::CopyAs => self.copy_choices()?,
            Action::OpenByName => vec![Effect::Pick(skills_to_open(&self.catalogue, self.selected())?)],
            Action::Filter => {
                self.asking.shown()?;
                self.focus = Focus::Filter;
                Vec::new()
            }
            Action::NextPart => self.turn(1),
            Action::PreviousPart => self.turn(2),
            other => return self.act_in_part(other),
        };
        Some(asks)
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.focus == Focus::Filter {
            return if self.filter.key(key) { self.filter_typed() } else { Vec::new() };
        }
        let changed = self.field.key(key);
        if changed {
            self.history.stop();
        }
        if changed { self.ask() } else { Vec::new() }
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.focus == Focus::Filter {
            return if self.filter.paste(text) { self.filter_typed() } else { Vec::new() };
        }
        if self.field.paste(text) {
            self.history.stop();
            self.ask()
        } else {
            Vec::new()
        }
    }

    fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        self.pointed(event)
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        self.news(message)
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.view(area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.wanted)
    }

    fn request(&self) -> Option<String> {
        Some(self.field.text().trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn persistent_texts(&self) -> Vec<String> {
        self.history.entries().to_vec()
    }

    fn animated(&self) -> bool {
        false
    }
}

impl Discover {
    fn act_in_part(&mut self, action: Action) -> Option<Vec<Effect>> {
        match self.focus {
            Focus::Intent => self.act_in_intent(action),
            Focus::Results => self.act_in_results(action),
            Focus::Filter => self.act_in_filter(action),
            Focus::Why => self.act_in_why(action),
        }
    }

    fn act_in_intent(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Clear => Some(if self.field.kill_to_start() { self.ask() } else { Vec::new() }),
            Action::HistoryEarlier => {
                let earlier = self.history.earlier(self.field.text()).map(str::to_owned);
                Some(self.recall(earlier))
            }
            Action::HistoryLater => {
                let later = self.history.later().map(str::to_owned);
                Some(self.recall(later))
            }
            Action::Down if self.history.walking() => self.act_in_intent(Action::HistoryLater),
            Action::LeaveField | Action::Submit | Action::Back | Action::Down => Some(self.leave_intent()),
            _ => None,
        }
    }

    fn recall(&mut self, intent: Option<String>) -> Vec<Effect> {
        let Some(intent) = intent else { return Vec::new() };
        self.field.set(&intent);
        self.ask()
    }

    fn leave_intent(&mut self) -> Vec<Effect> {
        self.focus = Focus::Results;
        self.finish()
    }

    /// Completes the request: its last word is no longer treated as incomplete.
    pub(super) fn finish(&mut self) -> Vec<Effect> {
        self.history.keep(self.field.text());
        if self.asking.is_typing() { self.ask() } else { Vec::new() }
    }

    fn act_in_results(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Open | Action::Fold if self.on_copies() => {
                self.unfolded = !self.unfolded;
                let cursor = self.cursor;
                self.set_rows();
                self.cursor = cursor;
                Some(Vec::new())
            }
            Action::Open => Some(self.open()),
            Action::Back if !self.filter.is_empty() => {
                self.filter.clear();
                Some(self.filter_results())
            }
            other if self.move_cursor(other) => Some(Vec::new()),
            other => self.act_on_skill(other),
        }
    }

    fn act_in_filter(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Submit | Action::LeaveField | Action::Back => {
                self.focus = Focus::Results;
                Some(Vec::new())
            }
            Action::Clear => Some(if self.filter.kill_to_start() { self.filter_typed() } else { Vec::new() }),
            other => self.move_cursor(other).then(Vec::new),
        }
    }

    /// Handles a change of the filter: the cursor moves to the first match.
    fn filter_typed(&mut self) -> Vec<Effect> {
        self.chosen = None;
        self.filter_results()
    }

    /// Moves the cursor by a row, a page or to an end; returns `false` for every other action.
    fn move_cursor(&mut self, action: Action) -> bool {
        let last = self.items.len().saturating_sub(1);
        let at = match action {
            Action::Up => self.cursor.saturating_sub(1),
            Action::Down => self.cursor + 1,
            Action::PageUp => self.cursor.saturating_sub(self.page_items()),
            Action::PageDown => self.cursor + self.page_items(),
            Action::Top => 0,
            Action::Bottom => last,
            _ => return false,
        };
        self.choose(at.min(last));
        self.follow = true;
        true
    }

    fn act_in_why(&mut self, action: Action) -> Option<Vec<Effect>> {
        let page = self.why.page();
        let rows = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -page,
            Action::PageDown => page,
            Action::Top => isize::MIN,
            Action::Bottom => isize::MAX,
            Action::Back => {
                self.focus = Focus::Results;
                return Some(Vec::new());
            }
            Action::Open => return Some(self.visit()),
            _ => return self.act_on_skill(action),
        };
        // Drawing knows the length and clamps the offset.
        self.why.offset = self.why.offset.saturating_add_signed(rows).min(10_000);
        Some(Vec::new())
    }

    fn act_on_skill(&mut self, action: Action) -> Option<Vec<Effect>> {
        let id = self.selected()?.clone();
        match action {
            Action::Copy => Some(vec![Effect::Copy(id.to_string(), "id".to_owned())]),
            Action::AttachThis => {
                let target = Target::Attach { skill: Some(id), target: None };
                Some(vec![Effect::Go(PaneId::Attach, Some(target))])
            }
            Action::LoadSkill => Some(vec![Effect::Go(PaneId::Session, Some(Target::Skill(id)))]),
            Action::Draft => {
                let skill = self.catalogue.by_id(id.as_str())?;
                Some(vec![Effect::EditDescription(Drafting::of(skill, self.request()))])
            }
            Action::AddGolden => {
                // The verdict is the initial suggestion.
                let is_rejected = self.asking.shown().is_some_and(|shown| shown.answer.fit == Fit::None);
                let skills =
                    if is_rejected && self.chosen.is_none() { "none".to_owned() } else { id.to_string() };
                Some(vec![Effect::AddGolden(GoldenForm { query: self.request(), skills, replaces: None })])
            }
            Action::Why => {
                let intent = Some(self.field.text().to_owned());
                Some(vec![Effect::Why(WhyRequest {
                    skill_id: id.to_string(),
                    intent,
                    ..WhyRequest::default()
                })])
            }
            Action::Edit => {
                let skill = self.catalogue.by_id(id.as_str())?;
                Some(vec![Effect::Edit(skill.location.clone(), 1)])
            }
            _ => None,
        }
    }

    /// Returns how many items a page moves: one stays visible.
    fn page_items(&self) -> usize {
        let mut seen: Vec<usize> = self.drawn.items.iter().map(|(_, item)| *item).collect();
        seen.dedup();
        seen.len().saturating_sub(1).max(1)
    }

    /// Returns whether the cursor is on the line that represents all copies.
    pub(super) fn on_copies(&self) -> bool {
        matches!(self.item(), Some(Item::Copies(_)))
    }

    /// Opens the selected skill: with one column first the explanation, otherwise the skill in Browse.
    fn open(&mut self) -> Vec<Effect> {
        if self.drawn.folded && self.selected().is_some() {
            self.focus = Focus::Why;
            return Vec::new();
        }
        self.visit()
    }

    fn visit(&mut self) -> Vec<Effect> {
        let Some(id) = self.selected().cloned() else { return Vec::new() };
        vec![Effect::Go(PaneId::Browse, Some(Target::Skill(id)))]
    }

    fn turn(&mut self, steps: usize) -> Vec<Effect> {
        let parts = [Focus::Intent, Focus::Results, Focus::Why];
        let focus = if self.focus == Focus::Filter { Focus::Results } else { self.focus };
        let at = parts.iter().position(|p| *p == focus).unwrap_or(0);
        self.focus = parts[(at + steps) % parts.len()];
        if at == 0 { self.finish() } else { Vec::new() }
    }

    fn domains(&self) -> Picker {
        let mut counts: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
        for entry in &self.catalogue.entries {
            if let Some(domain) = &entry.skill.domain {
                *counts.entry(domain.value.as_str()).or_default() += 1;
            }
        }
        let any = (String::new(), "any domain".to_owned(), count(self.catalogue.entries.len()));
        let named = counts.into_iter().map(|(d, n)| (d.to_owned(), d.to_owned(), count(n)));
        let choices: Vec<_> = std::iter::once(any).chain(named).collect();
        let wanted = self.options.domain.clone().unwrap_or_default();
        let current = choices.iter().position(|(value, ..)| *value == wanted);
        Picker { what: PickerKind::Domain, title: "Domain".to_owned(), choices, current }
    }

    fn copy_choices(&self) -> Option<Vec<Effect>> {
        let id = self.selected()?;
        let line = self.options.command_line(self.field.text());
        let mut choices = vec![
            ("id".to_owned(), "id".to_owned(), id.to_string()),
            ("cli".to_owned(), "command line".to_owned(), line),
        ];
        if self.hit().is_some() {
            let note = "the result with its breakdown".to_owned();
            choices.push(("json".to_owned(), "JSON".to_owned(), note));
        }
        let title = "Copy as".to_owned();
        Some(vec![Effect::Pick(Picker { what: PickerKind::CopyAs, title, choices, current: Some(0) })])
    }

    pub(super) fn copy_as(&self, what: &str) -> Vec<Effect> {
        let copied = match what {
            "id" => self.selected().map(|id| Effect::Copy(id.to_string(), "id".to_owned())),
            "cli" => {
                let line = self.options.command_line(self.field.text());
                Some(Effect::CopyCommand(line, "command line".to_owned()))
            }
            "json" => self
                .hit()
                .and_then(|hit| serde_json::to_string_pretty(hit).ok())
                .map(|json| Effect::Copy(json, "JSON".to_owned())),
            _ => None,
        };
        copied.into_iter().collect()
    }

    fn intent_commands(&self) -> Vec<Command> {
        let earlier = (!self.history.has_earlier()).then(|| "no earlier request".to_owned());
        vec![
            shown(Action::Down, "results"),
            Command { blocked: earlier, ..shown(Action::HistoryEarlier, "earlier") },
            shown(Action::Clear, "clear"),
            shown(Action::LeaveField, "leave"),
            hidden(Action::HistoryLater, "later"),
            hidden(Action::Submit, "results"),
            hidden(Action::NextPart, "next panel"),
            hidden(Action::PreviousPart, "previous panel"),
        ]
    }

    fn attach_command(&self) -> Command {
        let skill = self.selected().and_then(|id| self.catalogue.by_id(id.as_str()));
        let blocked = match skill {
            None => Some("no skill selected".to_owned()),
            Some(skill) if skill.classification.invocation.value == Invocation::Direct => {
                Some("it is invoked directly; only sidecars can be attached".to_owned())
            }
            Some(_) => None,
        };
        Command { blocked, ..shown(Action::AttachThis, "attach") }
    }

    fn result_commands(&self) -> Vec<Command> {
        let none = || self.selected().is_none().then(|| "no skill selected".to_owned());
        let on_skill = |command: Command| Command { blocked: none(), ..command };
        let opens = if self.on_copies() {
            if self.unfolded { "fold" } else { "unfold" }
        } else if self.drawn.folded && self.focus == Focus::Results {
            "why"
        } else {
            "open"
        };
        let mut out = vec![shown(Action::Down, if self.focus == Focus::Why { "scroll" } else { "move" })];
        if self.on_copies() && self.focus == Focus::Results {
            out.extend([shown(Action::Open, opens), hidden(Action::Fold, opens)]);
        } else {
            out.push(on_skill(shown(Action::Open, opens)));
        }
        if self.focus == Focus::Why {
            out.push(shown(Action::Back, "results"));
        }
        let ranked = self.asking.shown().is_none().then(|| "no results yet".to_owned());
        out.extend([
            shown(Action::FocusIntent, "request"),
            Command { blocked: ranked, ..shown(Action::Filter, "filter") },
            shown(Action::OpenByName, "open by name"),
            shown(Action::TogglePolicy, "policy"),
            shown(Action::CycleRole, "role"),
            shown(Action::PickDomain, "domain"),
            shown(Action::ToggleBody, "body"),
            on_skill(shown(Action::Why, "why")),
            on_skill(shown(Action::Draft, "draft")),
            on_skill(shown(Action::AddGolden, "to golden set")),
            on_skill(shown(Action::LoadSkill, "load")),
            on_skill(shown(Action::Copy, "copy")),
            self.attach_command(),
            on_skill(hidden(Action::CopyAs, "copy as")),
            on_skill(shown(Action::Edit, "edit")),
            hidden(Action::NextPart, "next panel"),
            hidden(Action::PreviousPart, "previous panel"),
        ]);
        out.extend(
            [Action::Up, Action::PageUp, Action::PageDown, Action::Top, Action::Bottom]
                .map(|action| hidden(action, "move")),
        );
        out
    }
}

fn filter_commands() -> Vec<Command> {
    vec![
        shown(Action::Submit, "results"),
        shown(Action::Down, "move"),
        shown(Action::Clear, "clear"),
        shown(Action::LeaveField, "leave"),
        hidden(Action::Up, "move"),
        hidden(Action::PageUp, "page up"),
        hidden(Action::PageDown, "page down"),
        hidden(Action::NextPart, "next panel"),
        hidden(Action::PreviousPart, "previous panel"),
    ]
}

fn shown(action: Action, label: &str) -> Command {
    Command { action, label: label.to_owned(), blocked: None, footer: true }
}

fn hidden(action: Action, label: &str) -> Command {
    Command { footer: false, ..shown(action, label) }
}
