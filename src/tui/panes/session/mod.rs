//! Pane 4: a session as a model sees it. Shows the active skills, the exact bytes of the next call, the cost of each
//! disclosure level, and what changed since the last call.

mod bound_view;
mod calls_view;
mod context_view;
mod external_changes;
mod keys;
mod left_view;
mod levels_view;
mod mouse;
mod news;
mod payload_view;
mod since_view;
mod view;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ratatui::layout::Rect;
use strum::IntoEnumIterator as _;

use crate::form_drafts::FormDrafts;
use crate::pane::{Effect, PickerKind};
use crate::session_requests::SessionRequest;
use crate::widgets::rich::RichLine;
use crate::widgets::scroll::Scroll;
use skills_api::{ComposedView, LevelsView, SessionView, SkillDrift};
use skills_registry::Catalogue;
use skills_session::{Active, Api};

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    Active,
    Composed,
}

/// The tab of the right part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Tab {
    #[default]
    Composed,
    PerLevel,
    Payload,
    Transcript,
}

const TABS: [(Tab, &str); 4] = [
    (Tab::Composed, "Instructions"),
    (Tab::PerLevel, "Levels"),
    (Tab::Payload, "Request"),
    (Tab::Transcript, "Transcript"),
];

/// A section of the composed text that can be collapsed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Fold {
    /// All entries of the catalog.
    Catalogue,
    /// The body of a skill.
    Body(String),
    /// An entry of the transcript.
    Entry(u64),
}

/// Areas of the last frame.
#[derive(Debug, Default)]
struct FrameAreas {
    active: Rect,
    composed_area: Rect,
    tabs: Vec<(Rect, Tab)>,
    /// Rows of the active list, with their index.
    rows: Vec<(Rect, usize)>,
    /// Rows of the text that collapse or expand a section.
    folds: Vec<(Rect, Fold)>,
}

/// The state of pane 4.
#[derive(Default)]
pub struct SessionPane {
    session: Option<Arc<SessionView>>,
    composed: Option<Arc<ComposedView>>,
    /// Number of pending requests for the next call.
    composing: usize,
    /// Whether several of them were pending at the same time.
    overlapped: bool,
    /// Why there is no session or no composed call.
    trouble: Option<String>,
    /// Whether that is because the core is unreachable: then it is requested again.
    unreached: bool,
    catalogue: Arc<Catalogue>,
    focus: Focus,
    tab: Tab,
    /// The active skill under the cursor.
    cursor: usize,
    composed_scroll: Scroll,
    /// The section under the cursor, among those of the text.
    fold: usize,
    open: HashSet<Fold>,
    /// Whether to show the difference from the last call instead of the call.
    diff: bool,
    api: Option<Api>,
    payload: Option<(Api, Arc<str>)>,
    /// Errors that the service is expected to report for that request.
    objections: Vec<String>,
    /// Drafts of dialogs, by the dialog's name.
    typed: FormDrafts,
    rendered: BTreeMap<u64, Arc<[RichLine]>>,
    /// The cached rows of the composed call, with the hash of their input.
    laid_out: Option<(u64, Arc<[context_view::Line]>)>,
    levels: Option<Arc<LevelsView>>,
    /// The skill whose levels could not be loaded, and why.
    no_levels: Option<(String, String)>,
    /// Whether a session was requested.
    requested: bool,
    /// A skill to load once a session is open.
    waiting_load: Option<String>,
    wanted: Vec<Effect>,
    asked_for: HashSet<u64>,
    /// The state of polling for changes by others.
    others: external_changes::ExternalChanges,
    /// The chooser for which files were requested.
    choosing: Option<PickerKind>,
    drawn: FrameAreas,
}

impl SessionPane {
    /// Creates a pane that requests a session once it is shown.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn active(&self) -> &[Active] {
        self.session.as_ref().map_or(&[], |session| &session.active)
    }

    fn selected(&self) -> Option<&Active> {
        self.active().get(self.cursor)
    }

    fn id(&self) -> Option<&str> {
        self.session.as_ref().map(|session| session.session_id.as_str())
    }

    /// Requests the next call again, and what depends on it.
    fn compose(&mut self) -> Vec<Effect> {
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

    fn call(&self, tool: &str, arguments: serde_json::Value) -> Vec<Effect> {
        let Some(session) = self.id().map(str::to_owned) else { return Vec::new() };
        vec![Effect::Session(SessionRequest::Tool { session, tool: tool.to_owned(), arguments })]
    }

    /// Shows a session; the cursor stays on its skill.
    fn show(&mut self, session: Arc<SessionView>) {
        let name = self.selected().map(|skill| skill.name.clone());
        let other = self.id() != Some(session.session_id.as_str());
        let more = !other && session.active.len() > self.active().len();
        if other {
            self.open.clear();
            self.composed = None;
            self.payload = None;
            self.objections.clear();
            self.composed_scroll = Scroll::default();
        }
        self.session = Some(session);
        (self.trouble, self.unreached) = (None, false);
        // Select a skill that was just loaded.
        let name = name.filter(|_| !more);
        self.cursor = name
            .and_then(|name| self.active().iter().position(|skill| skill.name == name))
            .unwrap_or_else(|| self.active().len().saturating_sub(1));
    }

    /// Switches to a tab and requests its content.
    fn turn(&mut self, tab: Tab) -> Vec<Effect> {
        self.tab = tab;
        self.composed_scroll = Scroll::default();
        self.fold = 0;
        match tab {
            Tab::PerLevel => self.request_levels(),
            Tab::Payload => self.request_payload(),
            Tab::Composed | Tab::Transcript => Vec::new(),
        }
    }

    /// Shows the request in the next service's format.
    fn next_api(&mut self) -> Vec<Effect> {
        let all: Vec<Api> = Api::iter().collect();
        let at = all.iter().position(|api| Some(*api) == self.api).unwrap_or(0);
        self.api = all.get((at + 1) % all.len()).copied();
        self.request_payload()
    }

    /// Returns the selected skill's levels if they are loaded for its current version.
    fn levels_of_selected(&self) -> Option<&Arc<LevelsView>> {
        let skill = self.selected()?;
        let of_it =
            |levels: &&Arc<LevelsView>| levels.skill_id.as_str() == skill.name && levels.body == skill.body;
        self.levels.as_ref().filter(of_it)
    }

    fn request_levels(&mut self) -> Vec<Effect> {
        if self.levels_of_selected().is_some() { Vec::new() } else { self.count_levels() }
    }

    /// Requests the selected skill's levels, whether they are loaded or not.
    fn count_levels(&mut self) -> Vec<Effect> {
        self.no_levels = None;
        let (Some(session), Some(skill)) = (self.id(), self.selected()) else { return Vec::new() };
        let (session, skill) = (session.to_owned(), skill.name.clone());
        vec![Effect::Session(SessionRequest::Levels { session, skill })]
    }

    /// Returns the drift of the selected skill from its file and the roots.
    fn selected_drift(&self) -> SkillDrift {
        self.selected().map(|skill| self.drift_of(&skill.name)).unwrap_or_default()
    }

    fn drift_of(&self, name: &str) -> SkillDrift {
        self.session.as_ref().and_then(|session| session.drift.get(name)).copied().unwrap_or_default()
    }

    fn request_payload(&self) -> Vec<Effect> {
        let api = self.api.unwrap_or(Api::Anthropic);
        self.id().map(|id| Effect::Session(SessionRequest::Export(id.to_owned(), api))).into_iter().collect()
    }
}
