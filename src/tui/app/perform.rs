//! Execution of actions and effects: what the application does itself, and what it delegates.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent};
use serde_json::Map;

use super::{App, AppCommand};
use crate::action::Action;
use crate::keymap::{Keymap, key_name};
use crate::overlay::{
    Chooser, ClientsView, DialogSpec, DraftEditor, Help, LogView, Outcome, Palette, PromptKind, Purpose,
    Question, Reader, SkillEntry,
};
use crate::pane::{Effect, Message, PaneId, Picker, PickerKind, beginning};
use crate::run_requests::RunRequest;
use crate::theme::contrast;
use crate::theme::{Depth, Role};
use crate::widgets::text_width::shown;

/// By how many cells `<` and `>` move a split, and the maximum in total.
const SPLIT_STEP: i16 = 2;
const SPLIT_MOST: i16 = 60;
/// Number of actions that the palette remembers.
const RECENT: usize = 5;

/// Describes what happens to runs executing here when the workbench exits.
fn stopped(runs: usize, passing: bool) -> Option<String> {
    let (are, they, the) = match runs {
        0 => return None,
        1 => ("1 run is executing here".to_owned(), "It has", "the run continues"),
        more => (format!("{more} runs are executing here"), "They have", "the runs continue"),
    };
    Some(if passing {
        format!("{are} and will be lost: the store is in memory.")
    } else {
        format!(
            "{are}. {they} 2 s to finish the current steps; unfinished steps are stopped, and {the} at \
                the next start. Steps that are not idempotent require a decision then."
        )
    })
}

/// Why there is no command for a run or a session here.
const NO_COMMAND_REASON: &str = "none: the store is in memory, visible only to this workbench";

impl App {
    /// Returns whether a command refers to a store that no other process can access.
    fn is_beyond(&self, line: &str) -> bool {
        let stored = ["skills runs ", "skills session "].iter().any(|begin| line.starts_with(begin));
        stored && self.passing && self.elsewhere().is_none()
    }

    /// Executes an action; returns `false` if the action has no handler here.
    pub(super) fn perform(&mut self, action: Action, now: Instant) -> bool {
        let commands = self.panes.get(self.active).map(|pane| pane.commands()).unwrap_or_default();
        if let Some(why) =
            commands.into_iter().find(|command| command.action == action).and_then(|command| command.blocked)
        {
            self.notices.note(why, now);
            return true;
        }
        match action {
            Action::Quit => self.leave(now),
            Action::GoBrowse => self.show(PaneId::Browse),
            Action::GoDiscover => self.show(PaneId::Discover),
            Action::GoAttach => self.show(PaneId::Attach),
            Action::GoSession => self.show(PaneId::Session),
            Action::GoRuns => self.show(PaneId::Runs),
            Action::GoGolden => self.show(PaneId::Golden),
            Action::GoProposals => self.show(PaneId::Proposals),
            Action::Palette => {
                let palette = Palette::new(self.palette_entries(), self.skills_offered());
                self.overlay = Some(Box::new(palette));
            }
            Action::Help => self.open_help(),
            Action::PickTheme => self.open_themes(),
            Action::ShowClients => self.open_clients(),
            Action::ShowLog => self.overlay = Some(Box::new(LogView::new(self.log.clone()))),
            Action::Suspend => self.commands.push(AppCommand::Suspend),
            Action::PlayDemo => self.commands.push(AppCommand::Demo),
            Action::Redraw => self.commands.push(AppCommand::Redraw),
            Action::Rescan => {
                self.notices.note("rescanning all roots", now);
                self.commands.push(AppCommand::Rescan);
            }
            Action::FullScreen => self.full_screen = !self.full_screen,
            Action::SplitNarrower => self.move_split(-SPLIT_STEP),
            Action::SplitWider => self.move_split(SPLIT_STEP),
            Action::Seen => {
                self.notices.dismiss();
            }
            _ => match self.pane().and_then(|pane| pane.act(action)) {
                Some(effects) => self.effects(effects, now),
                None if action == Action::Back => self.full_screen = false,
                None => return false,
            },
        }
        true
    }

    /// Notes that a key has no action here, and which key lists the available ones.
    pub(super) fn hint(&mut self, key: KeyEvent, now: Instant) {
        let is_typed = !matches!(
            key.code,
            KeyCode::Null
                | KeyCode::Modifier(_)
                | KeyCode::Media(_)
                | KeyCode::CapsLock
                | KeyCode::NumLock
                | KeyCode::ScrollLock
        );
        if !is_typed {
            return;
        }
        let name = key_name(Keymap::combination(key), self.glyphs);
        let pane = self.panes.get(self.active).map_or("the workbench", |pane| pane.id().name());
        let help = self.here(|here| here.keymap.key_for(Action::Help, here.contexts, here.in_text));
        let help = help.map(|key| format!("; {} lists the keys", key_name(key, self.glyphs)));
        self.notices.hint(format!("{name} is not available in {pane}{}", help.unwrap_or_default()), now);
    }

    pub(super) fn leave(&mut self, now: Instant) {
        let is_asked = self.overlay.as_ref().is_some_and(|overlay| overlay.asks_to_leave());
        if is_asked && self.unsaved_state().is_some() {
            return;
        }
        if self.behind.is_some() && !is_asked {
            // The help over a dialog.
            self.close(now);
        }
        if self.overlay.as_ref().is_some_and(|overlay| overlay.unsaved().is_some()) {
            self.behind = self.overlay.take();
        } else {
            // Entered fields of the dialog now belong to its pane, which reports them below.
            self.close(now);
        }
        match self.unsaved_state() {
            Some(lost) => self.overlay = Some(Box::new(Question::new(lost))),
            None => self.commands.push(AppCommand::Quit),
        }
    }

    /// Describes what would be lost, stopped or never sent if the workbench quit now.
    pub(super) fn unsaved_state(&self) -> Option<String> {
        let edited = self.behind.as_ref().and_then(|overlay| overlay.unsaved());
        let typed = self.panes.iter().find_map(|pane| pane.unsaved());
        // Runs that a service executes continue without this workbench.
        let here = self.elsewhere().is_none();
        let under_way = self.panes.iter().map(|pane| pane.executing_runs()).sum();
        let stopped = here.then(|| stopped(under_way, self.passing)).flatten();
        let all = [self.undelivered(), edited, typed, stopped];
        all.into_iter().flatten().reduce(|one, other| format!("{one} {other}"))
    }

    pub(super) fn finish(&mut self, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Close => self.close(now),
            Outcome::Quit => self.commands.push(AppCommand::Quit),
            Outcome::Do(action) => {
                self.overlay = None;
                self.recent.retain(|done| *done != action);
                self.recent.insert(0, action);
                self.recent.truncate(RECENT);
                self.perform(action, now);
            }
            Outcome::OpenSkill(id) => {
                self.overlay = None;
                let shown = self.panes.get(self.active).map(|pane| pane.id());
                let pane = if shown == Some(PaneId::Discover) { PaneId::Discover } else { PaneId::Browse };
                self.show(pane);
                self.deliver(pane, &Message::Picked(PickerKind::SkillToOpen, id.to_string()), now);
            }
            Outcome::Request(pane, effects) | Outcome::HandledWith(pane, effects) => {
                self.effects_of(pane, effects, now);
            }
            Outcome::Done(pane, effects) => {
                self.close(now);
                self.effects_of(pane, effects, now);
            }
            Outcome::Hovered(Purpose::Theme, name) => self.apply_theme(&name),
            Outcome::Stay | Outcome::Handled | Outcome::Hovered(..) => {}
            Outcome::Chosen(Purpose::Theme, name) => {
                self.overlay = None;
                self.apply_theme(&name);
                self.kept_theme = name;
            }
            Outcome::Chosen(Purpose::Pane(pane, kind), value) => {
                self.overlay = None;
                self.deliver(pane, &Message::Picked(kind, value), now);
            }
        }
    }

    fn close(&mut self, now: Instant) {
        let closed = self.overlay.take();
        self.overlay = self.behind.take();
        let draft = closed.and_then(|overlay| overlay.draft_effect());
        self.apply_theme(&self.kept_theme.clone());
        if let Some((pane, effect)) = draft {
            self.effects_of(pane, vec![effect], now);
        }
    }

    pub(super) fn effects(&mut self, effects: Vec<Effect>, now: Instant) {
        if let Some(id) = self.panes.get(self.active).map(|pane| pane.id()) {
            self.effects_of(id, effects, now);
        }
    }

    pub(super) fn effects_of(&mut self, pane: PaneId, effects: Vec<Effect>, now: Instant) {
        for effect in effects {
            match effect {
                Effect::Toast(text) => self.notices.note(text, now),
                Effect::Copy(text, what) => self.commands.push(AppCommand::Copy(text, what)),
                Effect::CopyCommand(line, _) if self.is_beyond(&line) => {
                    self.notices.note(NO_COMMAND_REASON, now);
                }
                Effect::CopyCommand(line, what) => {
                    self.commands.push(AppCommand::Copy(self.invocation.completed(&line), what));
                }
                Effect::Edit(path, line) => match self.elsewhere() {
                    None => self.commands.push(AppCommand::Edit(path, line)),
                    Some(address) => {
                        let what = format!("this file is on {address} and cannot be edited from here");
                        self.notices.error(what, "edit it there; changes appear here automatically");
                    }
                },
                Effect::Go(id, target) => {
                    self.show(id);
                    if let Some(target) = target {
                        self.deliver(id, &Message::Visit(target), now);
                    }
                }
                Effect::Pick(mut picker) => {
                    // Show exactly the text that is copied.
                    if picker.what == PickerKind::CopyAs {
                        let lines = picker.choices.iter_mut().filter(|(what, ..)| what == "cli");
                        lines.for_each(|(_, _, line)| {
                            *line = if self.is_beyond(line) {
                                NO_COMMAND_REASON.to_owned()
                            } else {
                                self.invocation.completed(line)
                            };
                        });
                    }
                    self.open_picker(pane, picker);
                }
                Effect::OpenDialog(sheet) => {
                    let opened = (self.clock(now), now);
                    let mut sheet = sheet.open(pane, opened);
                    self.introduce(sheet.as_mut());
                    self.overlay = Some(sheet);
                }
                Effect::Read(reading) => self.overlay = Some(Box::new(Reader::new(pane, *reading))),
                Effect::ReadAgain(reading) => {
                    if let Some(overlay) = &mut self.overlay {
                        overlay.read_again(*reading);
                    }
                }
                Effect::AddGolden(mut form) => {
                    if form.query.is_none() {
                        form.query = self.panes.iter().find_map(|pane| pane.request());
                    }
                    let sheet = DialogSpec::Prompt { asking: PromptKind::Golden(form), typed: Map::new() };
                    self.effects_of(pane, vec![Effect::OpenDialog(Box::new(sheet))], now);
                }
                Effect::EditDescription(mut skill) => {
                    if skill.intent.is_none() {
                        skill.intent = self.panes.iter().find_map(|pane| pane.request());
                    }
                    let (editor, measure) = DraftEditor::open(pane, skill);
                    self.overlay = Some(Box::new(editor));
                    self.commands.push(AppCommand::Call(pane, measure));
                }
                Effect::Why(mut request) => {
                    if request.intent.is_none() {
                        request.intent = self.panes.iter().find_map(|pane| pane.request());
                    }
                    self.notices.note("checking", now);
                    self.report_requested = Some(self.inputs);
                    self.commands.push(AppCommand::Call(pane, Effect::Why(request)));
                }
                Effect::Keep(sheet, typed) => self.deliver(pane, &Message::SavedDraft(sheet, typed), now),
                Effect::ErrorNotice(what, place) => self.notices.error(what, place),
                Effect::Awaited(text) => {
                    let shown = self.panes.get(self.active).is_some_and(|active| active.id() == pane);
                    if !shown {
                        self.notices.note(text, now);
                    }
                }
                Effect::Discover { generation, .. } => {
                    self.newest.insert(pane, generation);
                    self.commands.push(AppCommand::Call(pane, effect));
                }
                effect => {
                    let is_order = matches!(effect, Effect::Run(RunRequest::Order { .. }));
                    self.unacknowledged += usize::from(is_order && self.elsewhere().is_some());
                    self.commands.push(AppCommand::Call(pane, effect));
                }
            }
        }
    }

    pub(super) fn choose_client(
        &mut self,
        pane: PaneId,
        current: Option<&str>,
        profiles: Vec<(String, String)>,
    ) {
        let mut choices = vec![(String::new(), "none".to_owned(), "complete catalog".to_owned())];
        choices.extend(profiles.into_iter().map(|(id, name)| (id.clone(), name, id)));
        let at = choices.iter().position(|(id, ..)| id == current.unwrap_or_default());
        let purpose = Purpose::Pane(pane, PickerKind::Client);
        self.overlay = Some(Box::new(Chooser::new(purpose, "View as client", choices, at)));
    }

    fn open_picker(&mut self, pane: PaneId, picker: Picker) {
        let purpose = Purpose::Pane(pane, picker.what);
        self.overlay = Some(Box::new(Chooser::new(purpose, picker.title, picker.choices, picker.current)));
    }

    fn show(&mut self, id: PaneId) {
        if let Some(at) = self.panes.iter().position(|pane| pane.id() == id)
            && at != self.active
        {
            self.active = at;
            self.full_screen = false;
        }
    }

    fn move_split(&mut self, by: i16) {
        if let Some(id) = self.panes.get(self.active).map(|pane| pane.id()) {
            let split = self.splits.entry(id).or_default();
            *split = (*split + by).clamp(-SPLIT_MOST, SPLIT_MOST);
        }
    }

    fn skills_offered(&self) -> Vec<SkillEntry> {
        let skill = |entry: &skills_registry::Entry| SkillEntry {
            id: entry.skill.id.clone(),
            name: shown(entry.skill.id.as_str()),
            description: beginning(&entry.skill.description),
        };
        self.catalog.entries.iter().map(skill).collect()
    }

    fn palette_entries(&self) -> Vec<crate::overlay::Entry> {
        let present: Vec<Action> = self.panes.iter().map(|pane| pane.id().go()).collect();
        let mut entries = self.here(|here| here.palette(&self.recent));
        let gone = |action| {
            let goes = matches!(
                action,
                Action::GoBrowse
                    | Action::GoDiscover
                    | Action::GoAttach
                    | Action::GoSession
                    | Action::GoRuns
                    | Action::GoGolden
                    | Action::GoProposals
            );
            goes && !present.contains(&action)
        };
        entries.retain(|entry| !gone(entry.action));
        entries
    }

    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method's path has one lifetime too few"
    )]
    pub(super) fn open_help(&mut self) {
        let (left, right) = self.here(|here| here.help());
        let pane = self.panes.get(self.active).map_or("the workbench", |pane| pane.id().name());
        let name = if self.overlay.is_some() { "this dialog" } else { pane };
        self.behind = self.overlay.take();
        self.overlay = Some(Box::new(Help::new(name, left, right, &self.config_file)));
    }

    /// Returns whether help can be opened over the overlay, which is restored when it closes.
    pub(super) fn can_open_help_over(&self) -> bool {
        let is_dialog = self.overlay.as_ref().is_some_and(|over| !over.asks_to_leave() && !over.is_help());
        is_dialog && self.behind.is_none()
    }

    /// Closes the help over a dialog that ends.
    pub(super) fn uncover(&mut self, outcome: &Outcome) {
        let ends = matches!(outcome, Outcome::Close | Outcome::Done(..));
        if ends && self.overlay.as_ref().is_some_and(|overlay| overlay.is_help()) && self.behind.is_some() {
            self.overlay = self.behind.take();
        }
    }

    fn open_clients(&mut self) {
        let Some(pane) = self.panes.get(self.active).map(|pane| pane.id()) else { return };
        let (view, request) = ClientsView::open(pane);
        self.overlay = Some(Box::new(view));
        self.commands.push(AppCommand::Call(pane, request));
    }

    /// Sets the theme.
    pub fn set_theme(&mut self, name: &str) {
        name.clone_into(&mut self.kept_theme);
        self.apply_theme(name);
    }

    fn open_themes(&mut self) {
        let names: Vec<String> = self.themes.names().into_iter().map(str::to_owned).collect();
        let note = |name: &str| {
            let Ok(theme) = self.themes.theme(name, Depth::True) else {
                return "cannot be read: see the log".to_owned();
            };
            let worn = self.themes.theme(name, self.depth).map(|theme| theme.name).unwrap_or_default();
            if worn != theme.name {
                return format!("needs more colors; using {worn}");
            }
            let (text, base) = (theme.style(Role::Text), theme.style(Role::Base));
            let ratio = text.fg.zip(base.bg).and_then(|(text, ground)| contrast(text, ground));
            ratio.map_or_else(|| "terminal colors".to_owned(), |ratio| format!("contrast {ratio:.1}"))
        };
        let choices = names.iter().map(|name| (name.clone(), name.clone(), note(name))).collect();
        let current = names.iter().position(|name| *name == self.kept_theme);
        self.overlay = Some(Box::new(Chooser::new(Purpose::Theme, "Theme", choices, current)));
    }

    fn apply_theme(&mut self, name: &str) {
        match self.themes.theme(name, self.depth) {
            Ok(theme) => self.theme = theme,
            Err(error) => self.notices.error(error.message, format!("{}:{}", error.file, error.line)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_and_several_are_told_in_their_own_grammar() {
        assert_eq!(stopped(0, false), None);
        let one = stopped(1, false).unwrap();
        assert!(
            one.starts_with("1 run is executing here. It has 2 s") && one.contains("the run continues at"),
            "{one}"
        );
        let many = stopped(3, false).unwrap();
        assert!(many.starts_with("3 runs are executing here. They have 2 s"), "{many}");
        assert!(many.contains("the runs continue at the next start"), "{many}");
        assert_eq!(
            [stopped(1, true).unwrap(), stopped(2, true).unwrap()],
            [
                "1 run is executing here and will be lost: the store is in memory.",
                "2 runs are executing here and will be lost: the store is in memory."
            ]
        );
    }
}
