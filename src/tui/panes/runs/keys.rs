//! Keys of the Runs pane.

use std::time::Instant;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::{Focus, Runs, commands, view};
use crate::action::{Action, Context, PaneCommand};
use crate::pane::{Draw, Effect, Message, Pane, PaneId};
use skills_model::RunState;

impl Pane for Runs {
    fn id(&self) -> PaneId {
        PaneId::Runs
    }

    fn contexts(&self) -> Vec<Context> {
        match self.browser.focus {
            Focus::List if self.browser.board.is_some() => {
                vec![Context::RunsBoard, Context::Runs, Context::List]
            }
            Focus::List => vec![Context::Runs, Context::List],
            Focus::Filter | Focus::Name => vec![Context::Field],
            Focus::Detail => vec![Context::RunsDetail, Context::List],
        }
    }

    fn in_text(&self) -> bool {
        matches!(self.browser.focus, Focus::Filter | Focus::Name)
    }

    fn commands(&self) -> Vec<PaneCommand> {
        commands::available(&self.browser)
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        if let Some(effects) = self.browser.act_on_view(action) {
            return Some(effects);
        }
        if let Some(effects) = self.execute_command(action) {
            self.browser.list.moved = true;
            return Some(effects);
        }
        self.browser.act(action)
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.browser.focus == Focus::Name {
            self.browser.list.views.name.key(key);
            return Vec::new();
        }
        if self.browser.list.filter.field.key(key) { self.browser.filtered() } else { Vec::new() }
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.browser.focus == Focus::Name {
            self.browser.list.views.name.paste(text);
            return Vec::new();
        }
        if self.browser.list.filter.field.paste(text) { self.browser.filtered() } else { Vec::new() }
    }

    fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                let clicked = self.browser.clicked(at);
                return clicked.unwrap_or_else(|action| self.act(action).unwrap_or_default());
            }
            MouseEventKind::ScrollUp => self.browser.wheel(at, -3),
            MouseEventKind::ScrollDown => self.browser.wheel(at, 3),
            _ => {}
        }
        Vec::new()
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        self.handle_message(message)
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        view::draw(&mut self.browser, self.sandbox.isolation.as_deref(), area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.browser.list.wanted)
    }

    fn animated(&self) -> bool {
        self.browser.list.animated()
    }

    fn changes_at(&self, clock_ms: i64) -> Option<i64> {
        self.browser.list.changes_at(clock_ms)
    }

    fn next_poll(&self, now: Instant) -> Option<Instant> {
        let list = &self.browser.list;
        let board = self.browser.board.as_ref().map(|board| board.due(now));
        [board, list.summaries_due(now), list.views.due()].into_iter().flatten().min()
    }

    fn poll(&mut self, now: Instant) -> Vec<Effect> {
        let list = &mut self.browser.list;
        let is_due = |due: Option<Instant>| due.is_some_and(|due| now >= due);
        let mut effects = Vec::new();
        if let Some(board) = self.browser.board.as_mut().filter(|board| now >= board.due(now)) {
            effects.extend(board.refresh(now));
        }
        if is_due(list.summaries_due(now)) {
            let filters = list.requested_filters();
            effects.extend(list.views.summaries.refresh(&filters, now));
        }
        if is_due(list.views.due()) {
            effects.push(list.views.refresh(now));
            // Deleted runs are not noticed if as many were launched in the meantime.
            if list.runs.loaded && list.runs.outage.is_none() && !list.runs.disconnected {
                effects.extend(list.runs.refresh_all());
            }
        }
        effects
    }

    fn executing_runs(&self) -> usize {
        self.browser.list.runs.executing()
    }

    fn unsaved(&self) -> Option<String> {
        self.dialogs.unsaved(&self.browser.list.runs.known)
    }

    fn pending_decisions(&self) -> usize {
        let waiting = self.browser.list.runs.count(&[RunState::WaitingForHuman]);
        usize::try_from(waiting).unwrap_or(usize::MAX)
    }
}

impl Runs {
    /// Executes an action on the run under the cursor, or on the marked ones; `None` for movements.
    fn execute_command(&mut self, action: Action) -> Option<Vec<Effect>> {
        let filter = self.browser.shown_filter();
        let (list, detail) = (&self.browser.list, &mut self.browser.detail);
        let in_list = self.browser.focus == Focus::List;
        if let Some(effects) = self.dialogs.act_on_marked(action, in_list, list, detail) {
            return Some(effects);
        }
        self.dialogs.act(action, list, filter, detail).or_else(|| self.browser.act_on_run(action))
    }
}
