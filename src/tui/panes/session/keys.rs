//! Keys of the Session pane.

use std::time::Instant;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;

use super::{Focus, SessionPane, TABS, Tab};
use crate::action::{Action, Command, Context};
use crate::overlay::{DialogSpec, NAME_OF_EXPORT, PromptKind, name_of_script};
use crate::pane::{Draw, Effect, Message, Pane, PaneId, Picker, PickerKind, Target};
use crate::session_requests::SessionRequest;
use crate::widgets::format::bytes;
use crate::widgets::text_width::shown as safe;
use skills_api::{LevelsView, LoadedFrom, SettingsChange, SkillDrift};

/// The choice of a new session with the settings of the current one.
pub(super) const SAME_SETTINGS: &str = "like";

/// Returns the effect that opens a chooser with the current value selected, or the first one.
pub(super) fn pick(
    what: PickerKind,
    title: &str,
    choices: Vec<(String, String, String)>,
    current: Option<usize>,
) -> Effect {
    Effect::Pick(Picker { what, title: title.to_owned(), choices, current })
}

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

    fn commands(&self) -> Vec<Command> {
        let none = || self.selected().is_none().then(|| "no skills loaded: l loads one".to_owned());
        let closed = || self.session.is_none().then(|| "no session is open".to_owned());
        let on_skill = |command: Command| Command { blocked: none(), ..command };
        let gone = |there: bool, what: &str| {
            (!there).then(|| format!("{what} no longer exists: the loaded version is kept"))
        };
        let drift = self.selected_drift();
        let folder = || none().or_else(|| gone(drift.has_folder(), "its folder"));
        let file = || folder().or_else(|| gone(drift.has_file(), "its SKILL.md"));
        let in_order = |command: Command| Command { blocked: none().or_else(|| self.unmovable()), ..command };
        let in_folder = |command: Command| Command { blocked: folder(), ..command };
        let on_session = |command: Command| Command { blocked: closed(), ..command };
        let mut out = vec![
            shown(Action::Down, if self.focus == Focus::Composed { "scroll" } else { "move" }),
            on_session(shown(Action::LoadSkill, "load")),
            on_skill(shown(Action::UnloadSkill, "unload")),
            in_folder(shown(Action::ReadResource, "read")),
            in_folder(shown(Action::RunScript, "run script")),
            on_session(shown(Action::Say, "say")),
            on_session(shown(Action::DiffCalls, if self.diff { "call" } else { "diff" })),
            on_session(shown(Action::MarkCall, "record call")),
            on_session(shown(Action::Export, "export")),
            on_session(hidden(Action::AttachThis, "attach to it")),
            on_session(hidden(Action::PickAgent, "agent")),
            on_session(hidden(Action::PickClient, "client")),
            hidden(Action::NewSession, "new session"),
            hidden(Action::OpenSession, "open session"),
            in_order(hidden(Action::MoveEarlier, "earlier")),
            in_order(hidden(Action::MoveLater, "later")),
            Command { blocked: file(), ..hidden(Action::Edit, "edit") },
            on_session(hidden(Action::Copy, "copy")),
            on_session(hidden(Action::CopyAs, "copy as")),
            hidden(Action::Open, "open"),
            hidden(Action::Fold, "fold"),
            hidden(Action::NextPart, "next panel"),
            hidden(Action::PreviousPart, "previous panel"),
            hidden(Action::NextTab, "next tab"),
            hidden(Action::PreviousTab, "previous tab"),
        ];
        out.extend(
            [Action::Up, Action::PageUp, Action::PageDown, Action::Top, Action::Bottom]
                .map(|action| hidden(action, "move")),
        );
        out
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

    fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        self.pointed(event)
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        let effects = self.news(message);
        self.others.acting(&effects);
        effects
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.view(area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        if !self.requested {
            // The store is opened when the pane is first shown, not before.
            self.requested = true;
            self.wanted.push(Effect::Session(SessionRequest::Latest));
        }
        std::mem::take(&mut self.wanted)
    }

    fn animated(&self) -> bool {
        false
    }

    fn unsaved(&self) -> Option<String> {
        let typed = |sheet: &&String| sheet.as_str() != NAME_OF_EXPORT;
        let what = match self.typed.sheets().find(typed)?.as_str() {
            "say" => "A message was typed and not appended.",
            _ => "The arguments of a script were typed and not used.",
        };
        Some(what.to_owned())
    }

    fn next_poll(&self, now: Instant) -> Option<Instant> {
        (self.session.is_some() || self.unreached).then(|| self.others.due(now)).flatten()
    }

    fn poll(&mut self, now: Instant) -> Vec<Effect> {
        self.check_again(now)
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
            Action::LoadSkill => vec![self.loadable()],
            Action::UnloadSkill => {
                let name = self.selected()?.name.clone();
                self.call("skills.unload", json!({"names": [name]}))
            }
            Action::ReadResource => self.files(PickerKind::FileToRead)?,
            Action::RunScript => self.files(PickerKind::ScriptToRun)?,
            Action::Say => {
                let session = self.id()?.to_owned();
                let (asking, typed) = (PromptKind::Message { session }, self.typed.of("say"));
                vec![Effect::OpenDialog(Box::new(DialogSpec::Prompt { asking, typed }))]
            }
            Action::AttachThis => {
                let target = ("transcript".to_owned(), format!("session:{}", self.id()?));
                vec![Effect::Go(PaneId::Attach, Some(Target::Attach { skill: None, target: Some(target) }))]
            }
            Action::DiffCalls => {
                self.diff = !self.diff;
                self.turn(Tab::Composed)
            }
            Action::MarkCall => {
                let id = self.id()?.to_owned();
                let made = Effect::Session(SessionRequest::Compose(id.clone(), true));
                let again = Effect::Session(SessionRequest::Compose(id, false));
                vec![made, again, Effect::Toast("call recorded for comparison".to_owned())]
            }
            Action::Export => vec![Effect::Session(SessionRequest::Exports(self.id()?.to_owned()))],
            Action::CopyAs => vec![self.copy_choices()?],
            Action::PickAgent => vec![Effect::Session(SessionRequest::Agents)],
            Action::PickClient => {
                vec![Effect::PickClient(self.session.as_ref().and_then(|s| s.settings.client.clone()))]
            }
            Action::NewSession => vec![self.new_session()],
            Action::OpenSession => vec![Effect::Session(SessionRequest::List)],
            Action::MoveEarlier => self.reorder(-1)?,
            Action::MoveLater => self.reorder(1)?,
            Action::Edit => vec![Effect::Edit(self.selected()?.location.clone(), 1)],
            Action::Copy => self.copy()?,
            other => return self.moved(other),
        })
    }

    fn turn_by(&mut self, steps: usize) -> Vec<Effect> {
        let at = TABS.iter().position(|(tab, _)| *tab == self.tab).unwrap_or(0);
        self.focus = Focus::Composed;
        self.turn(TABS[(at + steps) % TABS.len()].0)
    }

    fn moved(&mut self, action: Action) -> Option<Vec<Effect>> {
        if self.focus == Focus::Composed {
            return self.scrolled(action);
        }
        let last = self.active().len().saturating_sub(1);
        self.cursor = match action {
            Action::Up => self.cursor.saturating_sub(1),
            Action::Down => (self.cursor + 1).min(last),
            Action::Top | Action::PageUp => 0,
            Action::Bottom | Action::PageDown => last,
            Action::Open => {
                self.focus = Focus::Composed;
                let name = self.selected()?.name.clone();
                self.reveal(&name);
                self.cursor
            }
            _ => return None,
        };
        Some(if self.tab == Tab::PerLevel { self.request_levels() } else { Vec::new() })
    }

    fn scrolled(&mut self, action: Action) -> Option<Vec<Effect>> {
        let page = self.composed_scroll.page();
        let rows = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -page,
            Action::PageDown => page,
            Action::Top => isize::MIN,
            Action::Bottom => isize::MAX,
            Action::Back => {
                self.focus = Focus::Active;
                return Some(Vec::new());
            }
            Action::Open if self.tab == Tab::Payload => return Some(self.next_api()),
            Action::Open | Action::Fold => {
                self.fold_in_sight();
                return Some(Vec::new());
            }
            _ => return None,
        };
        // Drawing knows the length and clamps the offset.
        self.composed_scroll.offset = self.composed_scroll.offset.saturating_add_signed(rows).min(1_000_000);
        Some(Vec::new())
    }

    /// Returns a picker of active skills whose text in the roots has changed, and of every skill that is not loaded.
    fn loadable(&self) -> Effect {
        let loaded: Vec<&str> = self.active().iter().map(|skill| skill.name.as_str()).collect();
        let to_reload = loaded.iter().filter_map(|name| {
            let drift = self.drift_of(name);
            let description = drift.describe().filter(|_| drift.needs_reload())?;
            Some(((*name).to_owned(), safe(name), format!("reload: {description}")))
        });
        let others = self
            .catalogue
            .entries
            .iter()
            .map(|entry| &entry.skill)
            .filter(|skill| !loaded.contains(&skill.id.as_str()))
            .map(|skill| (skill.id.to_string(), skill.id.to_string(), safe(&skill.description)));
        pick(PickerKind::SkillToLoad, "Load a skill", to_reload.chain(others).collect(), None)
    }

    /// Returns why the skills cannot be reordered: that reloads them all, and one cannot be loaded again or has
    /// changed.
    fn unmovable(&self) -> Option<String> {
        let session = self.session.as_ref()?;
        let lost = |drift: &SkillDrift| drift.roots != LoadedFrom::Here || !drift.has_file();
        let (name, _) = session.drift.iter().find(|(_, drift)| lost(drift))?;
        Some(format!("reordering reloads all skills, and {} cannot be reloaded: u unloads it", safe(name)))
    }

    /// Requests the files of the selected skill; the chooser opens with the response.
    fn files(&mut self, what: PickerKind) -> Option<Vec<Effect>> {
        let skill = self.selected()?;
        // Look it up by location: the roots may contain another skill of this name, or none.
        let here = self.catalogue.by_location(&skill.location);
        let id = here.filter(|here| here.id.as_str() == skill.name).map(|here| here.id.clone());
        self.choosing = Some(what);
        Some(id.map_or_else(|| self.count_levels(), |id| vec![Effect::Describe(id)]))
    }

    /// Returns the same chooser for a skill that is not in the roots, from the data of the session.
    pub(super) fn choose_loaded_file(&mut self, levels: &LevelsView) -> Option<Effect> {
        if self.selected()?.name != levels.skill_id.as_str() {
            return None;
        }
        let what = self.choosing.take()?;
        if let Some(why) = &levels.files_unknown {
            return Some(Effect::Toast(safe(why)));
        }
        let files = levels.files.iter().map(|(path, size)| (path.as_str(), size.bytes));
        Some(file_chooser(what, levels.skill_id.as_str(), files))
    }

    /// Returns the chooser of a skill's files.
    pub(super) fn choose_file(&mut self, detail: &skills_api::SkillDetail) -> Option<Effect> {
        let what = self.choosing.take()?;
        let files = detail.files.iter().map(|file| (file.path.as_str(), file.bytes));
        Some(file_chooser(what, detail.summary.skill_id.as_str(), files))
    }

    /// Returns the dialog before a script runs: its arguments and its sandbox; "Cancel" comes first.
    pub(super) fn script_sheet(&self, path: &str) -> Option<Effect> {
        let session = self.session.as_ref()?;
        let skill = self.selected()?.name.clone();
        let typed = self.typed.of(&name_of_script(&skill, path));
        let asking = PromptKind::Script {
            session: session.session_id.clone(),
            skill,
            path: path.to_owned(),
            isolation: session.isolation.clone(),
        };
        Some(Effect::OpenDialog(Box::new(DialogSpec::Prompt { asking, typed })))
    }

    /// Creates a session; if this one has its own settings, the user chooses whether to copy them.
    fn new_session(&self) -> Effect {
        let own = self.session.as_ref().map(|session| session.own_settings()).unwrap_or_default();
        if own.is_empty() {
            return self.begin(false);
        }
        let row = |value: &str, label: &str, note: String| (value.to_owned(), label.to_owned(), note);
        let choices = vec![
            row(SAME_SETTINGS, "same settings", safe(&own.join(", "))),
            row("", "default settings", "orchestrator, complete catalog, no settings".to_owned()),
        ];
        pick(PickerKind::NewSession, "New session", choices, None)
    }

    pub(super) fn begin(&self, like: bool) -> Effect {
        let settings = if like { self.like() } else { SettingsChange::default() };
        Effect::Session(SessionRequest::New(settings))
    }

    /// Returns the settings of this session for a new one.
    fn like(&self) -> SettingsChange {
        let Some(session) = &self.session else { return SettingsChange::default() };
        let settings = session.settings.clone();
        SettingsChange {
            cap: Some(settings.cap),
            form: Some(settings.form),
            instructions: Some(settings.instructions),
            locations: Some(settings.locations),
            client: settings.client,
            window: Some(settings.window),
            agent: settings.agent,
            compat: Some(settings.compat),
        }
    }

    /// Reorders the active skills by loading them again in the new order.
    fn reorder(&mut self, by: isize) -> Option<Vec<Effect>> {
        self.cursor.checked_add_signed(by).filter(|to| *to < self.active().len())?;
        let (session, skill) = (self.id()?.to_owned(), self.selected()?.name.clone());
        Some(vec![Effect::Session(SessionRequest::Reorder { session, skill, by })])
    }

    fn copy_choices(&self) -> Option<Effect> {
        let id = self.id()?;
        let choice = |what: &str, label: &str, note: String| (what.to_owned(), label.to_owned(), note);
        let choices = vec![
            choice("id", "id", id.to_owned()),
            choice("cli", "command line", format!("skills session show {id}")),
            choice("target", "as a target", format!("session:{id}")),
            choice("json", "JSON", "the complete session".to_owned()),
        ];
        Some(pick(PickerKind::CopyAs, "Copy the session as", choices, None))
    }

    pub(super) fn copy_as(&self, what: &str) -> Vec<Effect> {
        let Some(session) = &self.session else { return Vec::new() };
        let id = &session.session_id;
        let (text, what) = match what {
            "cli" => {
                let line = format!("skills session show {id}");
                return vec![Effect::CopyCommand(line, "the command line".to_owned())];
            }
            "target" => (format!("session:{id}"), "the target"),
            "json" => (serde_json::to_string_pretty(session.as_ref()).unwrap_or_default(), "the session"),
            _ => (id.clone(), "the session's id"),
        };
        vec![Effect::Copy(text, what.to_owned())]
    }

    fn copy(&self) -> Option<Vec<Effect>> {
        let (text, what) = match (self.tab, &self.composed, &self.payload) {
            (Tab::Payload, _, Some((api, text))) => (text.to_string(), format!("the request for {api}")),
            (Tab::Composed, Some(composed), _) => {
                (composed.composed.text.clone(), "the instructions".to_owned())
            }
            _ => (self.id()?.to_owned(), "the session's id".to_owned()),
        };
        Some(vec![Effect::Copy(text, what)])
    }
}

/// Returns the chooser of a skill's files, or of its scripts.
fn file_chooser<'a>(what: PickerKind, name: &str, files: impl Iterator<Item = (&'a str, u64)>) -> Effect {
    let (scripts, name) = (what == PickerKind::ScriptToRun, safe(name));
    let choices: Vec<_> = files
        .filter(|(path, _)| !scripts || path.starts_with("scripts/"))
        .map(|(path, size)| (path.to_owned(), safe(path), bytes(size)))
        .collect();
    if choices.is_empty() {
        return Effect::Toast(format!("{name} has no {}", if scripts { "scripts" } else { "files" }));
    }
    let verb = if scripts { "Run a script" } else { "Read a file" };
    pick(what, &format!("{verb} of {name}"), choices, None)
}

fn shown(action: Action, label: &str) -> Command {
    Command { action, label: label.to_owned(), blocked: None, footer: true }
}

fn hidden(action: Action, label: &str) -> Command {
    Command { footer: false, ..shown(action, label) }
}
