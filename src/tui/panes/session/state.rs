//! The session that is shown, and what is loaded about it.

use std::sync::Arc;

use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

use super::Tab;
use super::choosers::{self, SAME_SETTINGS};
use crate::form_drafts::FormDrafts;
use crate::overlay::{DialogSpec, EXPORT_DRAFT_KEY, PromptKind, name_of_script};
use crate::pane::{Effect, PickerKind};
use crate::session_export::Format;
use crate::session_requests::{SessionRequest, SessionResponse};
use crate::widgets::{byte_size, shown};
use skills_api::{
    Code, ComposedView, LevelsView, LoadedFrom, SessionView, SettingsChange, SkillDetail, SkillDrift,
};
use skills_registry::Catalog;
use skills_session::{Active, Api, MAX_CAP, ToolError};

/// The state of the session, of its next call and of the active skill under the cursor.
#[derive(Default)]
pub(super) struct SessionState {
    pub session: Option<Arc<SessionView>>,
    pub composed: Option<Arc<ComposedView>>,
    /// Number of pending requests for the next call.
    composing: usize,
    /// Whether several of them were pending at the same time.
    overlapped: bool,
    /// Why there is no session or no composed call.
    pub trouble: Option<String>,
    /// Whether that is because the core is unreachable: then it is requested again.
    pub unreached: bool,
    pub catalog: Arc<Catalog>,
    /// The active skill under the cursor.
    pub cursor: usize,
    api: Option<Api>,
    pub payload: Option<(Api, Arc<str>)>,
    /// Errors that the service is expected to report for that request.
    pub objections: Vec<String>,
    /// Drafts of dialogs, by the dialog's name.
    pub typed: FormDrafts,
    pub levels: Option<Arc<LevelsView>>,
    /// The skill whose levels could not be loaded, and why.
    pub no_levels: Option<(String, String)>,
    pub requested: bool,
    /// A skill to load once a session is open.
    waiting_load: Option<String>,
    /// The chooser for which files were requested.
    pub choosing: Option<PickerKind>,
}

impl SessionState {
    pub fn active(&self) -> &[Active] {
        self.session.as_ref().map_or(&[], |session| &session.active)
    }

    pub fn selected(&self) -> Option<&Active> {
        self.active().get(self.cursor)
    }

    pub fn id(&self) -> Option<&str> {
        self.session.as_ref().map(|session| session.session_id.as_str())
    }

    /// Requests the next call again, and what depends on it.
    pub fn compose(&mut self) -> Vec<Effect> {
        let Some(id) = self.id().map(str::to_owned) else { return Vec::new() };
        self.composing += 1;
        self.overlapped |= self.composing > 1;
        vec![Effect::Session(SessionRequest::Compose(id, false))]
    }

    /// Registers a composed call. Of two requests pending at the same time, the response to the older may arrive last:
    /// then it is requested once more.
    fn composed_once(&mut self) -> Vec<Effect> {
        self.composing = self.composing.saturating_sub(1);
        if self.composing > 0 || !std::mem::take(&mut self.overlapped) {
            return Vec::new();
        }
        self.compose()
    }

    pub fn call(&self, tool: &str, arguments: Value) -> Vec<Effect> {
        let Some(session) = self.id().map(str::to_owned) else { return Vec::new() };
        vec![Effect::Session(SessionRequest::Tool { session, tool: tool.to_owned(), arguments })]
    }

    /// Shows a session; the cursor stays on its skill. Returns whether it is another session.
    pub fn show(&mut self, session: Arc<SessionView>) -> bool {
        let name = self.selected().map(|skill| skill.name.clone());
        let other = self.id() != Some(session.session_id.as_str());
        let more = !other && session.active.len() > self.active().len();
        if other {
            self.composed = None;
            self.payload = None;
            self.objections.clear();
        }
        self.session = Some(session);
        (self.trouble, self.unreached) = (None, false);
        // Select a skill that was just loaded.
        let name = name.filter(|_| !more);
        self.cursor = name
            .and_then(|name| self.active().iter().position(|skill| skill.name == name))
            .unwrap_or_else(|| self.active().len().saturating_sub(1));
        other
    }

    /// Shows the request in the next service's format.
    pub fn next_api(&mut self) -> Vec<Effect> {
        let all: Vec<Api> = Api::iter().collect();
        let at = all.iter().position(|api| Some(*api) == self.api).unwrap_or(0);
        self.api = all.get((at + 1) % all.len()).copied();
        self.request_payload()
    }

    /// Returns the selected skill's levels if they are loaded for its current version.
    pub fn levels_of_selected(&self) -> Option<&Arc<LevelsView>> {
        let skill = self.selected()?;
        let of_it =
            |levels: &&Arc<LevelsView>| levels.skill_id.as_str() == skill.name && levels.body == skill.body;
        self.levels.as_ref().filter(of_it)
    }

    pub fn request_levels(&mut self) -> Vec<Effect> {
        if self.levels_of_selected().is_some() { Vec::new() } else { self.count_levels() }
    }

    /// Requests the selected skill's levels, whether they are loaded or not.
    pub fn count_levels(&mut self) -> Vec<Effect> {
        self.no_levels = None;
        let (Some(session), Some(skill)) = (self.id(), self.selected()) else { return Vec::new() };
        let (session, skill) = (session.to_owned(), skill.name.clone());
        vec![Effect::Session(SessionRequest::Levels { session, skill })]
    }

    /// Returns the drift of the selected skill from its file and the roots.
    pub fn selected_drift(&self) -> SkillDrift {
        self.selected().map(|skill| self.drift_of(&skill.name)).unwrap_or_default()
    }

    pub fn drift_of(&self, name: &str) -> SkillDrift {
        self.session.as_ref().and_then(|session| session.drift.get(name)).copied().unwrap_or_default()
    }

    fn request_payload(&self) -> Vec<Effect> {
        let api = self.api.unwrap_or(Api::Anthropic);
        self.id().map(|id| Effect::Session(SessionRequest::Export(id.to_owned(), api))).into_iter().collect()
    }

    /// Returns why the selected skill cannot be moved: that reloads all skills, and one cannot be loaded again or has
    /// changed; or it is the first or last one.
    pub fn unmovable(&self, by: isize) -> Option<String> {
        let session = self.session.as_ref()?;
        let lost = |drift: &SkillDrift| drift.roots != LoadedFrom::Here || !drift.has_file();
        if let Some((name, _)) = session.drift.iter().find(|(_, drift)| lost(drift)) {
            let name = shown(name);
            return Some(format!(
                "reordering reloads all skills, and {name} cannot be reloaded: u unloads it"
            ));
        }
        let end = if by < 0 { "first" } else { "last" };
        self.moved_to(by).is_none().then(|| format!("it is the {end} skill"))
    }

    /// Requests the files of the selected skill; the chooser opens with the response.
    pub fn files(&mut self, what: PickerKind) -> Option<Vec<Effect>> {
        let skill = self.selected()?;
        // Look it up by location: the roots may contain another skill of this name, or none.
        let here = self.catalog.by_location(&skill.location);
        let here = here.filter(|here| here.location == skill.location && here.id.as_str() == skill.name);
        let id = here.map(|here| here.id.clone());
        self.choosing = Some(what);
        Some(id.map_or_else(|| self.count_levels(), |id| vec![Effect::Describe(id)]))
    }

    /// Returns the same chooser for a skill that is not in the roots, from the data of the session.
    fn choose_loaded_file(&mut self, levels: &LevelsView) -> Option<Effect> {
        if self.selected()?.name != levels.skill_id.as_str() {
            return None;
        }
        let what = self.choosing.take()?;
        if let Some(why) = &levels.files_unknown {
            return Some(Effect::Toast(shown(why)));
        }
        let files = levels.files.iter().map(|(path, size)| (path.as_str(), size.bytes));
        Some(choosers::files(what, levels.skill_id.as_str(), files))
    }

    /// Returns the chooser of a skill's files.
    pub fn choose_file(&mut self, detail: &SkillDetail) -> Option<Effect> {
        let what = self.choosing.take()?;
        let files = detail.files.iter().map(|file| (file.path.as_str(), file.bytes));
        Some(choosers::files(what, detail.summary.skill_id.as_str(), files))
    }

    /// Returns the dialog before a script runs: its arguments and its sandbox; "Cancel" comes first.
    fn script_dialog(&self, path: &str) -> Option<Effect> {
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
    pub fn new_session(&self) -> Effect {
        let own = self.session.as_ref().map(|session| session.own_settings()).unwrap_or_default();
        if own.is_empty() {
            return self.begin(false);
        }
        let row = |value: &str, label: &str, note: String| (value.to_owned(), label.to_owned(), note);
        let choices = vec![
            row(SAME_SETTINGS, "same settings", shown(&own.join(", "))),
            row("", "default settings", "orchestrator, complete catalog, no settings".to_owned()),
        ];
        choosers::pick(PickerKind::NewSession, "New session", choices, None)
    }

    fn begin(&self, like: bool) -> Effect {
        let settings = if like { self.like() } else { SettingsChange::default() };
        Effect::Session(SessionRequest::New(settings))
    }

    fn like(&self) -> SettingsChange {
        let Some(session) = &self.session else { return SettingsChange::default() };
        let settings = session.settings.clone();
        SettingsChange {
            cap: Some(settings.cap.min(MAX_CAP)),
            form: Some(settings.form),
            instructions: Some(settings.instructions),
            locations: Some(settings.locations),
            client: settings.client,
            window: Some(settings.window),
            agent: settings.agent,
            compat: Some(settings.compat),
        }
    }

    fn moved_to(&self, by: isize) -> Option<usize> {
        self.cursor.checked_add_signed(by).filter(|to| *to < self.active().len())
    }

    /// Reorders the active skills by loading them again in the new order.
    pub fn reorder(&self, by: isize) -> Option<Vec<Effect>> {
        self.moved_to(by)?;
        let (session, skill) = (self.id()?.to_owned(), self.selected()?.name.clone());
        Some(vec![Effect::Session(SessionRequest::Reorder { session, skill, by })])
    }

    /// Handles a response; `tab` is the tab that is shown.
    pub fn take(&mut self, response: &SessionResponse, tab: Tab) -> Vec<Effect> {
        match response {
            SessionResponse::Session(Ok(_)) => {
                if let Some(skill) = self.waiting_load.take() {
                    return self.call("skills.load", json!({"names": [skill], "mode": "add"}));
                }
                self.refresh(tab)
            }
            SessionResponse::Session(Err(error)) => {
                if self.session.is_none() {
                    self.trouble = Some(error.message.clone());
                    self.unreached = matches!(error.code, Code::UpstreamFailure | Code::UpstreamTimeout);
                    if self.unreached {
                        // The pane shows the error in place of the session, as long as it applies.
                        return Vec::new();
                    }
                }
                let what =
                    if self.session.is_some() { "the session is unchanged" } else { "no session was opened" };
                vec![Effect::ErrorNotice(what.to_owned(), error.message.clone())]
            }
            SessionResponse::Tool(tool, answer, _) => {
                let mut effects = self.refresh(tab);
                effects.push(match answer {
                    Ok(answer) => notice(tool, &answer.result),
                    Err(error) => Effect::ErrorNotice(tool.clone(), error.message.clone()),
                });
                effects
            }
            SessionResponse::Review(call, preview, _) => {
                let mut effects = self.refresh(tab);
                if self.id() == Some(call.session.as_str()) {
                    let (call, preview) = (call.clone(), preview.clone());
                    effects.push(Effect::OpenDialog(Box::new(DialogSpec::Script { call, preview })));
                }
                effects
            }
            SessionResponse::Composed(id, Ok(composed)) if self.id() == Some(id) => {
                self.composed = Some(Arc::clone(composed));
                self.composed_once()
            }
            SessionResponse::Composed(_, Ok(_)) => self.composed_once(),
            SessionResponse::Composed(_, Err(error)) => {
                (self.composing, self.overlapped) = (0, false);
                vec![Effect::ErrorNotice(
                    "the next call cannot be composed".to_owned(),
                    error.message.clone(),
                )]
            }
            SessionResponse::Exported(api, Ok(payload)) => {
                let text = serde_json::to_string_pretty(&payload.body).unwrap_or_default();
                self.payload = Some((*api, text.into()));
                self.objections.clone_from(&payload.notes);
                Vec::new()
            }
            SessionResponse::Exports(id, Ok(exports), desktop) if self.id() == Some(id) => {
                let asking = PromptKind::Export {
                    session: id.clone(),
                    exports: Arc::clone(exports),
                    first: Format::of(self.api.unwrap_or(Api::Anthropic)),
                    desktop: *desktop,
                };
                let typed = self.typed.of(EXPORT_DRAFT_KEY);
                vec![Effect::OpenDialog(Box::new(DialogSpec::Prompt { asking, typed }))]
            }
            SessionResponse::Exports(_, Ok(_), _) => Vec::new(),
            SessionResponse::Written(Ok(path)) => {
                vec![Effect::Toast(format!("wrote {}", shown(&path.display().to_string())))]
            }
            SessionResponse::Written(Err(why)) => {
                vec![Effect::ErrorNotice("nothing was exported".to_owned(), why.clone())]
            }
            SessionResponse::Levels(_, Ok(levels)) => {
                self.levels = Some(Arc::clone(levels));
                self.choose_loaded_file(levels).into_iter().collect()
            }
            SessionResponse::Levels(skill, Err(error)) => {
                (self.choosing, self.no_levels) = (None, Some((skill.clone(), error.message.clone())));
                let what = format!("the levels of {} cannot be read", shown(skill));
                vec![Effect::ErrorNotice(what, error.message.clone())]
            }
            // Browse requested the one, and polling handles the other.
            SessionResponse::Budget(..) | SessionResponse::Looked(..) => Vec::new(),
            SessionResponse::Listed(Ok(sessions)) => vec![choosers::sessions(sessions, self.id())],
            SessionResponse::Agents(Ok(agents)) => {
                let current = self.session.as_ref().and_then(|session| session.settings.agent.as_deref());
                vec![choosers::agents(agents, current)]
            }
            SessionResponse::Exported(_, Err(error)) | SessionResponse::Exports(_, Err(error), _) => {
                vec![Effect::ErrorNotice("nothing was exported".to_owned(), error.message.clone())]
            }
            SessionResponse::Listed(Err(error)) => {
                vec![Effect::ErrorNotice("sessions cannot be listed".to_owned(), error.message.clone())]
            }
            SessionResponse::Agents(Err(error)) => {
                vec![Effect::ErrorNotice("agents cannot be listed".to_owned(), error.message.clone())]
            }
        }
    }

    /// Requests what depends on the session's state.
    pub fn refresh(&mut self, tab: Tab) -> Vec<Effect> {
        let mut effects = self.compose();
        effects.extend(self.request_for(tab));
        effects
    }

    /// Requests the next call and what the tab shows, whether it is loaded or not: files may have changed.
    pub fn recount(&mut self, tab: Tab) -> Vec<Effect> {
        let mut effects = self.compose();
        match tab {
            Tab::PerLevel => effects.extend(self.count_levels()),
            Tab::Payload => effects.extend(self.request_payload()),
            Tab::Composed | Tab::Transcript => {}
        }
        // They are counted again when they are shown.
        if tab != Tab::PerLevel {
            self.levels = None;
        }
        effects
    }

    /// Requests what a tab shows and is not loaded.
    pub fn request_for(&mut self, tab: Tab) -> Vec<Effect> {
        match tab {
            Tab::PerLevel => self.request_levels(),
            Tab::Payload => self.request_payload(),
            Tab::Composed | Tab::Transcript => Vec::new(),
        }
    }

    /// Loads a skill; without an open session once there is one.
    pub fn load(&mut self, skill: &str) -> Vec<Effect> {
        if self.id().is_some() {
            return self.call("skills.load", json!({"names": [skill], "mode": "add"}));
        }
        (self.waiting_load, self.requested) = (Some(skill.to_owned()), true);
        vec![Effect::Session(SessionRequest::Latest)]
    }

    /// Requests the session that was open last.
    pub fn request_latest(&mut self) -> Vec<Effect> {
        (self.unreached, self.requested) = (false, true);
        vec![Effect::Session(SessionRequest::Latest)]
    }

    /// Resets the pane after the core changed to another store, in which this session does not exist.
    pub fn reset(&mut self) -> Vec<Effect> {
        if self.session.take().is_none() {
            return Vec::new();
        }
        (self.composed, self.levels, self.payload, self.trouble) = (None, None, None, None);
        self.requested = true;
        vec![Effect::Session(SessionRequest::Latest)]
    }

    /// Handles a restored connection: loads what failed in the meantime.
    pub fn reached(&mut self, tab: Tab) -> Vec<Effect> {
        if self.unreached {
            return self.request_latest();
        }
        if self.session.is_some() && self.composed.is_none() { self.refresh(tab) } else { Vec::new() }
    }

    /// Handles the choice of a picker.
    pub fn picked(&mut self, kind: PickerKind, value: &str) -> Vec<Effect> {
        let named = || Some(value.to_owned());
        match kind {
            PickerKind::SkillToLoad => self.call("skills.load", json!({"names": [value], "mode": "add"})),
            PickerKind::FileToRead => {
                let skill = self.selected().map(|skill| skill.name.clone());
                self.call("skills.read", json!({"path": value, "skill": skill}))
            }
            PickerKind::ScriptToRun => self.script_dialog(value).into_iter().collect(),
            PickerKind::Session => vec![Effect::Session(SessionRequest::Open(value.to_owned()))],
            PickerKind::NewSession => vec![self.begin(value == SAME_SETTINGS)],
            PickerKind::Agent => {
                self.configure(SettingsChange { agent: named(), ..SettingsChange::default() })
            }
            PickerKind::Client => {
                self.configure(SettingsChange { client: named(), ..SettingsChange::default() })
            }
            PickerKind::CopyAs => {
                self.session.as_deref().map(|session| choosers::copy_as(session, value)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn configure(&self, change: SettingsChange) -> Vec<Effect> {
        let Some(id) = self.id() else { return Vec::new() };
        vec![Effect::Session(SessionRequest::Configure(id.to_owned(), change))]
    }
}

/// Returns the notice about a tool's result that the pane does not show anyway.
fn notice(tool: &str, result: &Result<Value, ToolError>) -> Effect {
    match result {
        Err(error) => Effect::ErrorNotice(tool.to_owned(), error.message.clone()),
        Ok(value) => {
            let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
            Effect::Toast(match tool {
                "skills.read" => format!(
                    "read {}: {}",
                    text("path"),
                    byte_size(value["size"].as_u64().unwrap_or_default())
                ),
                "skills.run_script" => format!("{} exited with {}", text("path"), value["exit_code"]),
                "skills.load" => "takes effect with the next call".to_owned(),
                _ => "unloaded".to_owned(),
            })
        }
    }
}
