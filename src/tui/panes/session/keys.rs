//! Keys, clicks and the wheel in Session, using the areas of the last frame.

use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use serde_json::json;

use super::{Focus, SessionPane, TABS, Tab, choosers, commands};
use crate::action::{Action, Context, PaneCommand};
use crate::overlay::{DialogSpec, EXPORT_DRAFT_KEY, PromptKind};
use crate::pane::{Draw, Effect, Message, Pane, PaneId, PickerKind, Target};
use crate::session_requests::SessionRequest;
use skills_api::LoadedFrom;

impl Pane for SessionPane {
    fn id(&self) -> PaneId {
        PaneId::Session
    }

    fn contexts(&self) -> Vec<Context> {
        match self.focus {
            Focus::Active => vec![Context::Session, Context::List],
            Focus::Composed => vec![Context::Session, Context::Text],
        }
    }

    fn in_text(&self) -> bool {
        false
    }

    fn commands(&self) -> Vec<PaneCommand> {
        commands::commands(&self.state, self.focus, self.context.diff)
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        let effects = self.done(action);
        self.others.acting(effects.as_deref().unwrap_or_default());
        effects
    }

    fn text_key(&mut self, _key: KeyEvent) -> Vec<Effect> {
        Vec::new()
    }

    fn paste(&mut self, _text: &str) -> Vec<Effect> {
        Vec::new()
    }

    fn click(&mut self, at: Position) -> Vec<Effect> {
        if let Some((_, tab)) = self.context.tabs.iter().find(|(place, _)| place.contains(at)) {
            let tab = *tab;
            self.focus = Focus::Composed;
            return self.turn(tab);
        }
        if let Some((_, row)) = self.rows.iter().find(|(place, _)| place.contains(at)) {
            self.state.cursor = *row;
            self.focus = Focus::Active;
            return self.cursor_moved();
        }
        if let Some(fold) = self.context.fold_at(at) {
            self.focus = Focus::Composed;
            self.context.toggle(fold);
        } else if self.context.area.contains(at) {
            self.focus = Focus::Composed;
        } else if self.active_area.contains(at) {
            self.focus = Focus::Active;
        }
        Vec::new()
    }

    fn wheel(&mut self, at: Position, rows: isize) -> Vec<Effect> {
        if self.context.area.contains(at) {
            self.context.roll(rows);
        }
        Vec::new()
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        let effects = self.handle_message(message);
        self.others.acting(&effects);
        effects
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.view(area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        if !self.state.requested {
            // The store is opened when the pane is first shown, not before.
            let latest = self.state.request_latest();
            self.context.wanted.extend(latest);
        }
        std::mem::take(&mut self.context.wanted)
    }

    fn unsaved(&self) -> Option<String> {
        let typed = |dialog: &&String| dialog.as_str() != EXPORT_DRAFT_KEY;
        let what = match self.state.typed.dialogs().find(typed)?.as_str() {
            "say" => "The message that you typed has not been appended.",
            _ => "The script arguments that you typed have not been used.",
        };
        Some(what.to_owned())
    }

    fn next_poll(&self, now: Instant) -> Option<Instant> {
        (self.state.session.is_some() || self.state.unreached).then(|| self.others.due(now)).flatten()
    }

    fn poll(&mut self, now: Instant) -> Vec<Effect> {
        self.others.polled(now);
        let Some(session) = &self.state.session else {
            let effects = self.state.request_latest();
            self.others.acting(&effects);
            return effects;
        };
        // There is no notification for changes of files outside of the roots.
        let outside = session.drift.values().any(|drift| drift.roots != LoadedFrom::Here);
        vec![self.others.check(session, outside)]
    }
}

impl SessionPane {
    fn done(&mut self, action: Action) -> Option<Vec<Effect>> {
        Some(match action {
            Action::NextPart | Action::PreviousPart => {
                self.focus = if self.focus == Focus::Active { Focus::Composed } else { Focus::Active };
                Vec::new()
            }
            Action::NextTab => self.turn_by(1),
            Action::PreviousTab => self.turn_by(TABS.len() - 1),
            Action::LoadSkill => vec![choosers::loadable(&self.state)],
            Action::UnloadSkill => {
                let name = self.state.selected()?.name.clone();
                self.state.call("skills.unload", json!({"names": [name]}))
            }
            Action::ReadResource => self.state.files(PickerKind::FileToRead)?,
            Action::RunScript => self.state.files(PickerKind::ScriptToRun)?,
            Action::Say => {
                let session = self.state.id()?.to_owned();
                let (asking, typed) = (PromptKind::Message { session }, self.state.typed.of("say"));
                vec![Effect::OpenDialog(Box::new(DialogSpec::Prompt { asking, typed }))]
            }
            Action::AttachThis => {
                let target = ("transcript".to_owned(), format!("session:{}", self.state.id()?));
                vec![Effect::Go(PaneId::Attach, Some(Target::Attach { skill: None, target: Some(target) }))]
            }
            Action::DiffCalls => {
                self.context.diff = !self.context.diff;
                self.turn(Tab::Composed)
            }
            Action::MarkCall => {
                let made = SessionRequest::Compose(self.state.id()?.to_owned(), true);
                vec![Effect::Session(made), Effect::Toast("call recorded for comparison".to_owned())]
            }
            Action::Export => vec![Effect::Session(SessionRequest::Exports(self.state.id()?.to_owned()))],
            Action::CopyAs => vec![choosers::to_copy(self.state.id()?)],
            Action::PickAgent => vec![Effect::Session(SessionRequest::Agents)],
            Action::PickClient => {
                vec![Effect::PickClient(self.state.session.as_ref().and_then(|s| s.settings.client.clone()))]
            }
            Action::NewSession => vec![self.state.new_session()],
            Action::OpenSession => vec![Effect::Session(SessionRequest::List)],
            Action::MoveEarlier => self.state.reorder(-1)?,
            Action::MoveLater => self.state.reorder(1)?,
            Action::Edit => vec![Effect::Edit(self.state.selected()?.location.clone(), 1)],
            Action::Copy => self.copy()?,
            other => return self.moved(other),
        })
    }

    fn turn(&mut self, tab: Tab) -> Vec<Effect> {
        self.context.turn(tab, &mut self.state)
    }

    fn turn_by(&mut self, steps: usize) -> Vec<Effect> {
        self.focus = Focus::Composed;
        self.turn(self.context.tab_after(steps))
    }

    fn cursor_moved(&mut self) -> Vec<Effect> {
        if self.context.tab == Tab::PerLevel { self.state.request_levels() } else { Vec::new() }
    }

    fn moved(&mut self, action: Action) -> Option<Vec<Effect>> {
        if self.focus == Focus::Composed {
            return self.scrolled(action);
        }
        let last = self.state.active().len().saturating_sub(1);
        self.state.cursor = match action {
            Action::Up => self.state.cursor.saturating_sub(1),
            Action::Down => (self.state.cursor + 1).min(last),
            Action::Top | Action::PageUp => 0,
            Action::Bottom | Action::PageDown => last,
            Action::Open => {
                self.focus = Focus::Composed;
                self.context.reveal(&self.state.selected()?.name, &self.state);
                self.state.cursor
            }
            _ => return None,
        };
        Some(self.cursor_moved())
    }

    fn scrolled(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Back => self.focus = Focus::Active,
            Action::Open if self.context.tab == Tab::Payload => return Some(self.state.next_api()),
            Action::Open | Action::Fold => self.context.fold_visible(),
            other => self.context.move_by(other)?,
        }
        Some(Vec::new())
    }

    fn copy(&self) -> Option<Vec<Effect>> {
        let (text, what) = match (self.context.tab, &self.state.composed, &self.state.payload) {
            (Tab::Payload, _, Some((api, text))) => (text.to_string(), format!("the request for {api}")),
            (Tab::Composed, Some(composed), _) => {
                (composed.composed.text.clone(), "the instructions".to_owned())
            }
            _ => (self.state.id()?.to_owned(), "the session's id".to_owned()),
        };
        Some(vec![Effect::Copy(text, what)])
    }
}
