//! Execution of actions and effects: what the workbench does itself, and what it delegates.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Map;

use super::AppCommand;
use super::screen::ScreenState;
use crate::action::Action;
use crate::golden_requests::NO_GOLDEN_FILE;
use crate::overlay::{
    Chooser, ClientsView, DialogSpec, DraftEditor, LogView, Outcome, Palette, PromptKind, Purpose, Question,
    Reader,
};
use crate::pane::{Effect, Message, Pane, PaneId, Picker, PickerKind};
use crate::run_requests::RunRequest;
use crate::why_report;
use skills_base::telemetry::RingBuffer;

/// By how many cells `<` and `>` move a split.
const SPLIT_STEP: i16 = 2;
/// Number of actions that the palette remembers.
const RECENT: usize = 5;
/// Why there is no command for a run or a session here.
const NO_COMMAND_REASON: &str = "none: the store is in memory, visible only to this workbench";

/// The screen, and the commands that its actions and effects result in.
pub(super) struct Executor {
    pub screen: ScreenState,
    pub commands: Vec<AppCommand>,
    /// The newest request to rank of each pane.
    newest: HashMap<PaneId, u64>,
    recent: Vec<Action>,
    log: RingBuffer,
    config_file: String,
}

impl Executor {
    pub fn new(screen: ScreenState, log: RingBuffer, config_file: String) -> Self {
        Self {
            screen,
            commands: vec![AppCommand::Refresh],
            newest: HashMap::new(),
            recent: Vec::new(),
            log,
            config_file,
        }
    }

    /// Executes an action; returns `false` if the action has no handler here.
    pub fn perform(&mut self, action: Action, now: Instant) -> bool {
        let screen = &mut self.screen;
        let command = screen.commands().into_iter().find(|command| command.action == action);
        if let Some(why) = command.and_then(|command| command.blocked) {
            screen.notices.note_of_pane(why, now);
            return true;
        }
        match action {
            Action::Quit => self.leave(now),
            Action::GoBrowse => screen.show(PaneId::Browse),
            Action::GoDiscover => screen.show(PaneId::Discover),
            Action::GoAttach => screen.show(PaneId::Attach),
            Action::GoSession => screen.show(PaneId::Session),
            Action::GoRuns => screen.show(PaneId::Runs),
            Action::GoGolden => screen.show(PaneId::Golden),
            Action::GoProposals => screen.show(PaneId::Proposals),
            Action::Palette => {
                let palette =
                    Palette::new(screen.palette_entries(&self.recent), screen.core.skills_offered());
                screen.overlays.open(palette);
            }
            Action::Help => self.open_help(),
            Action::PickTheme => screen.overlays.open(screen.appearance.chooser()),
            Action::ShowClients => {
                if let Some(pane) = screen.panes.active_id() {
                    let (view, request) = ClientsView::open(pane);
                    screen.overlays.open(view);
                    self.commands.push(AppCommand::Call(pane, request));
                }
            }
            Action::ShowLog => screen.overlays.open(LogView::new(self.log.clone())),
            Action::Suspend => self.commands.push(AppCommand::Suspend),
            Action::PlayDemo => self.commands.push(AppCommand::Demo),
            Action::Redraw => self.commands.push(AppCommand::Redraw),
            Action::Rescan if screen.connection.is_lost() => {
                screen.notices.note("not rescanned: no connection to the service", now);
            }
            Action::Rescan => {
                screen.notices.note("rescanning all roots", now);
                self.commands.push(AppCommand::Rescan);
                self.deliver_all(&Message::Reread, now);
            }
            Action::FullScreen => screen.panes.full_screen = !screen.panes.full_screen,
            Action::SplitNarrower => screen.panes.move_split(-SPLIT_STEP),
            Action::SplitWider => screen.panes.move_split(SPLIT_STEP),
            Action::DismissError => {
                screen.notices.dismiss();
            }
            _ => match screen.panes.active_mut().and_then(|pane| pane.act(action)) {
                Some(effects) => self.effects(effects, now),
                None if action == Action::Back => screen.panes.full_screen = false,
                None => return false,
            },
        }
        true
    }

    pub fn open_help(&mut self) {
        self.screen.open_help(&self.config_file);
    }

    pub fn leave(&mut self, now: Instant) {
        let is_asked = self.screen.overlays.asks_to_leave();
        if is_asked && self.screen.unsaved_state().is_some() {
            return;
        }
        if self.screen.overlays.behind.is_some() && !is_asked {
            // The help over a dialog.
            self.close(now);
        }
        let overlays = &mut self.screen.overlays;
        if overlays.top.as_ref().is_some_and(|overlay| overlay.unsaved().is_some()) {
            overlays.behind = overlays.top.take();
        } else {
            // Entered fields of the dialog now belong to its pane, which reports them below.
            self.close(now);
        }
        match self.screen.unsaved_state() {
            Some(lost) => self.screen.overlays.open(Question::new(lost)),
            None => self.commands.push(AppCommand::Quit),
        }
    }

    pub fn finish(&mut self, outcome: Outcome, now: Instant) {
        let screen = &mut self.screen;
        match outcome {
            Outcome::Close => self.close(now),
            Outcome::Quit => self.commands.push(AppCommand::Quit),
            Outcome::Do(action) => {
                screen.overlays.top = None;
                self.recent.retain(|done| *done != action);
                self.recent.insert(0, action);
                self.recent.truncate(RECENT);
                self.perform(action, now);
            }
            Outcome::OpenSkill(id) => {
                screen.overlays.top = None;
                let shown = screen.panes.active_id();
                let pane = if shown == Some(PaneId::Discover) { PaneId::Discover } else { PaneId::Browse };
                screen.show(pane);
                self.deliver(pane, &Message::Picked(PickerKind::SkillToOpen, id.to_string()), now);
            }
            Outcome::Request(pane, effects) | Outcome::HandledWith(pane, effects) => {
                self.run_effects(pane, effects, now);
            }
            Outcome::Done(pane, effects) => {
                self.close(now);
                self.run_effects(pane, effects, now);
            }
            Outcome::Hovered(Purpose::Theme, name) => screen.apply_theme(&name),
            Outcome::Stay | Outcome::Handled | Outcome::Hovered(..) => {}
            Outcome::Chosen(Purpose::Theme, name) => {
                screen.overlays.top = None;
                screen.set_theme(&name);
            }
            Outcome::Chosen(Purpose::Pane(pane, kind), value) => {
                screen.overlays.top = None;
                self.deliver(pane, &Message::Picked(kind, value), now);
            }
        }
    }

    fn close(&mut self, now: Instant) {
        let closed = self.screen.overlays.top.take();
        self.screen.overlays.top = self.screen.overlays.behind.take();
        let draft = closed.and_then(|overlay| overlay.draft_effect());
        self.screen.apply_theme(&self.screen.appearance.kept_theme.clone());
        if let Some((pane, effect)) = draft {
            self.run_effects(pane, vec![effect], now);
        }
    }

    /// Executes effects of the active pane.
    pub fn effects(&mut self, effects: Vec<Effect>, now: Instant) {
        let Some(id) = self.screen.panes.active_id() else { return };
        for effect in effects {
            if let Effect::Toast(text) = effect {
                let text = self.screen.with_keys(&text);
                self.screen.notices.note_of_pane(text, now);
            } else {
                self.run_effect(id, effect, now);
            }
        }
    }

    pub fn run_effects(&mut self, pane: PaneId, effects: Vec<Effect>, now: Instant) {
        for effect in effects {
            self.run_effect(pane, effect, now);
        }
    }

    fn run_effect(&mut self, pane: PaneId, effect: Effect, now: Instant) {
        let screen = &mut self.screen;
        match effect {
            Effect::Toast(text) => {
                let text = screen.with_keys(&text);
                if screen.panes.active_id() == Some(pane) {
                    screen.notices.note_of_pane(text, now);
                } else {
                    screen.notices.note(text, now);
                }
            }
            Effect::Copy(text, what) => self.commands.push(AppCommand::Copy(without_controls(&text), what)),
            Effect::CopyCommand(line, what) => match screen.connection.commands().completed(&line) {
                Some(line) => self.commands.push(AppCommand::Copy(line, what)),
                None => screen.notices.note(NO_COMMAND_REASON, now),
            },
            Effect::Edit(path, line) => match screen.connection.address() {
                None => self.commands.push(AppCommand::Edit(path, line)),
                Some(address) => {
                    let what = format!("this file is on {address} and cannot be edited from here");
                    screen.notices.error(what, "edit it there; changes appear here automatically");
                }
            },
            Effect::Go(id, target) => {
                screen.show(id);
                if let Some(target) = target {
                    self.deliver(id, &Message::Visit(target), now);
                }
            }
            Effect::Pick(mut picker) => {
                // Show exactly the text that is copied.
                if picker.what == PickerKind::CopyAs {
                    let lines = picker.choices.iter_mut().filter(|(what, ..)| what == "cli");
                    lines.for_each(|(_, _, line)| {
                        let completed = screen.connection.commands().completed(line);
                        *line = completed.unwrap_or_else(|| NO_COMMAND_REASON.to_owned());
                    });
                }
                let Picker { what, title, choices, current } = picker;
                screen.overlays.open(Chooser::new(Purpose::Pane(pane, what), title, choices, current));
            }
            Effect::OpenDialog(spec) => {
                let mut dialog = spec.open(pane, (screen.clock.wall_ms(now), now));
                screen.connection.introduce(dialog.as_mut());
                dialog.on_message(&Message::Catalog(Arc::clone(&screen.core.catalog)));
                screen.overlays.top = Some(dialog);
            }
            Effect::Read(reading) => screen.overlays.open(Reader::new(pane, *reading)),
            Effect::ReadAgain(reading) => screen.overlays.read_again(*reading),
            Effect::AddGolden(_) if screen.lacks_golden_file => screen.notices.note(NO_GOLDEN_FILE, now),
            Effect::AddGolden(mut form) => {
                form.query = form.query.or_else(|| screen.panes.iter().find_map(Pane::request));
                let spec = DialogSpec::Prompt { asking: PromptKind::Golden(form), typed: Map::new() };
                self.run_effect(pane, Effect::OpenDialog(Box::new(spec)), now);
            }
            Effect::EditDescription(mut skill) => {
                skill.intent = skill.intent.or_else(|| screen.panes.iter().find_map(Pane::request));
                let catalog = &screen.core.catalog;
                let edited = catalog.by_id(skill.skill_id.as_str());
                skill.is_shipped = edited.is_some_and(|edited| catalog.is_shipped(edited));
                let (editor, measure) = DraftEditor::open(pane, skill);
                screen.overlays.open(editor);
                self.commands.push(AppCommand::Call(pane, measure));
            }
            Effect::Why(mut request) => {
                request.intent = request.intent.or_else(|| screen.panes.iter().find_map(Pane::request));
                screen.overlays.open(Reader::new(pane, why_report::pending(&request)));
                self.commands.push(AppCommand::Call(pane, Effect::Why(request)));
            }
            Effect::Keep(dialog, typed) => self.deliver(pane, &Message::SavedDraft(dialog, typed), now),
            Effect::ErrorNotice(what, place) => {
                let place = screen.with_keys(&place);
                screen.notices.error(what, place);
            }
            Effect::Awaited(text) => {
                if screen.panes.active_id() != Some(pane) {
                    screen.notices.note(text, now);
                }
            }
            effect => {
                if let Effect::Discover { generation, .. } = effect {
                    self.newest.insert(pane, generation);
                }
                if matches!(effect, Effect::Run(RunRequest::Command { .. })) {
                    screen.connection.sent();
                }
                self.commands.push(AppCommand::Call(pane, effect));
            }
        }
    }

    pub fn deliver(&mut self, id: PaneId, message: &Message, now: Instant) {
        if let Some(pane) = self.screen.panes.get_mut(id) {
            let effects = pane.message(message);
            self.run_effects(id, effects, now);
        }
    }

    /// Delivers a message to every pane.
    pub fn deliver_all(&mut self, message: &Message, now: Instant) {
        for id in self.screen.panes.ids() {
            self.deliver(id, message, now);
        }
    }

    /// Delivers a message to the overlay; returns whether it is handled there.
    pub fn notify_overlay(&mut self, message: &Message, now: Instant) -> bool {
        let Some(overlay) = self.screen.overlays.receiver() else { return false };
        let outcome = overlay.on_message(message);
        self.screen.overlays.uncover(&outcome);
        let is_handled = matches!(outcome, Outcome::Handled | Outcome::HandledWith(..));
        self.finish(outcome, now);
        is_handled
    }

    /// Delivers the response to a pane's effect, unless it is outdated.
    pub fn answer(&mut self, pane: PaneId, message: &Message, now: Instant) {
        if let Message::Answer(generation, _) = message
            && self.newest.get(&pane).is_some_and(|newest| generation < newest)
        {
            return;
        }
        if !self.notify_overlay(message, now) {
            self.deliver(pane, message, now);
        }
    }

    /// Lets the overlay and the active pane advance.
    pub fn tick(&mut self, now: Instant) {
        if let Some(overlay) = self.screen.overlays.receiver() {
            let outcome = overlay.tick(now);
            self.screen.overlays.uncover(&outcome);
            self.finish(outcome, now);
        }
        self.screen.dirty |= self.screen.notices.expire(now);
        if let Some((pane, effects)) = self.screen.panes.poll(now) {
            self.run_effects(pane, effects, now);
        }
    }

    pub fn choose_client(&mut self, pane: PaneId, current: Option<&str>, profiles: Vec<(String, String)>) {
        let mut choices = vec![(String::new(), "none".to_owned(), "complete catalog".to_owned())];
        choices.extend(profiles.into_iter().map(|(id, name)| (id.clone(), name, id)));
        let at = choices.iter().position(|(id, ..)| id == current.unwrap_or_default());
        let purpose = Purpose::Pane(pane, PickerKind::Client);
        self.screen.overlays.open(Chooser::new(purpose, "View as client", choices, at));
    }
}
/// Replaces control characters other than line breaks and tabs: one of them ends a bracketed paste, and the terminal into
/// which a copied text is pasted would execute what follows.
fn without_controls(text: &str) -> String {
    let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    text.replace("\r\n", "\n")
        .chars()
        .map(|c| if is_text(c) { c } else { char::REPLACEMENT_CHARACTER })
        .collect()
}
