//! Pane 4: a session as a model sees it. Which skills are loaded, what the next call is given byte for byte, what
//! each level of disclosure costs, and what changed since the last call.

mod bound_view;
mod calls_view;
mod context_view;
mod elsewhere;
mod given_view;
mod keys;
mod left_view;
mod levels_view;
mod mouse;
mod news;
mod since_view;
mod view;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ratatui::layout::Rect;
use strum::IntoEnumIterator as _;

use crate::form_drafts::Typed;
use crate::pane::{Effect, PickerKind};
use crate::session_requests::SessionAsk;
use crate::widgets::rich::RichLine;
use crate::widgets::scroll::Scroll;
use skills_api::{ComposedView, LevelsView, SessionView, Standing};
use skills_registry::Catalogue;
use skills_session::{Active, Api};

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Part {
    #[default]
    Active,
    Given,
}

/// What of the next call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Tab {
    #[default]
    Composed,
    PerLevel,
    Payload,
    Transcript,
}

const TABS: [(Tab, &str); 4] = [
    (Tab::Composed, "Composed"),
    (Tab::PerLevel, "Per level"),
    (Tab::Payload, "Call payload"),
    (Tab::Transcript, "Transcript"),
];

/// A stretch of the composed text that can be folded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Fold {
    /// All entries of the catalog.
    Catalogue,
    /// The body of a skill.
    Body(String),
    /// An entry of the transcript.
    Entry(u64),
}

/// Where things were in the last frame.
#[derive(Debug, Default)]
struct Drawn {
    active: Rect,
    given: Rect,
    tabs: Vec<(Rect, Tab)>,
    /// Rows of the active list, with their index.
    rows: Vec<(Rect, usize)>,
    /// Rows of the given text that fold.
    folds: Vec<(Rect, Fold)>,
}

/// Pane 4.
#[derive(Default)]
pub struct SessionPane {
    session: Option<Arc<SessionView>>,
    composed: Option<Arc<ComposedView>>,
    /// How many next calls are asked for and not answered.
    composing: usize,
    /// Whether several of them were at once.
    overlapped: bool,
    /// Why there is no session or no composed call.
    trouble: Option<String>,
    /// Whether that is so because no call gets through: it is asked for again.
    unreached: bool,
    catalogue: Arc<Catalogue>,
    focus: Part,
    tab: Tab,
    /// The active skill under the cursor.
    cursor: usize,
    given: Scroll,
    /// The fold under the cursor, among those of the text.
    fold: usize,
    open: HashSet<Fold>,
    /// Show what differs from the last call instead of the call.
    diff: bool,
    api: Option<Api>,
    payload: Option<(Api, Arc<str>)>,
    /// What the service would object to in that request.
    objections: Vec<String>,
    /// What was typed on sheets and not sent, by the sheet's name.
    typed: Typed,
    rendered: BTreeMap<u64, Arc<[RichLine]>>,
    /// The composed call as rows, and of what.
    laid_out: Option<(u64, Arc<[context_view::Line]>)>,
    levels: Option<Arc<LevelsView>>,
    /// Of which skill the levels could not be reported, and why.
    no_levels: Option<(String, String)>,
    /// Whether a session was asked for.
    asked: bool,
    /// A skill to load once a session is open.
    waiting_load: Option<String>,
    wanted: Vec<Effect>,
    asked_for: HashSet<u64>,
    /// What others do with the session.
    others: elsewhere::Others,
    /// What the files that were asked for are wanted for.
    choosing: Option<PickerKind>,
    drawn: Drawn,
}

impl SessionPane {
    /// A pane that asks for a session once it is looked at.
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

    /// Asks for the next call again, and for what hangs on it.
    fn compose(&mut self) -> Vec<Effect> {
        let Some(id) = self.id().map(str::to_owned) else { return Vec::new() };
        self.composing += 1;
        self.overlapped |= self.composing > 1;
        vec![Effect::Session(SessionAsk::Compose(id, false))]
    }

    /// A next call came. Of two that were in progress at once the older may come last: then it is asked for
    /// once more.
    fn composed_once(&mut self) -> Vec<Effect> {
        self.composing = self.composing.saturating_sub(1);
        if self.composing > 0 || !std::mem::take(&mut self.overlapped) {
            return Vec::new();
        }
        self.compose()
    }

    fn call(&self, tool: &str, arguments: serde_json::Value) -> Vec<Effect> {
        let Some(session) = self.id().map(str::to_owned) else { return Vec::new() };
        vec![Effect::Session(SessionAsk::Tool { session, tool: tool.to_owned(), arguments })]
    }

    /// A session whose skills were changed: the cursor stays on its skill.
    fn show(&mut self, session: Arc<SessionView>) {
        let name = self.selected().map(|skill| skill.name.clone());
        let other = self.id() != Some(session.session_id.as_str());
        let more = !other && session.active.len() > self.active().len();
        if other {
            self.open.clear();
            self.composed = None;
            self.payload = None;
            self.objections.clear();
            self.given = Scroll::default();
        }
        self.session = Some(session);
        (self.trouble, self.unreached) = (None, false);
        // A skill that was just loaded is what one wants to see.
        let name = name.filter(|_| !more);
        self.cursor = name
            .and_then(|name| self.active().iter().position(|skill| skill.name == name))
            .unwrap_or_else(|| self.active().len().saturating_sub(1));
    }

    /// Turns to a tab and asks for what it shows.
    fn turn(&mut self, tab: Tab) -> Vec<Effect> {
        self.tab = tab;
        self.given = Scroll::default();
        self.fold = 0;
        match tab {
            Tab::PerLevel => self.ask_levels(),
            Tab::Payload => self.ask_payload(),
            Tab::Composed | Tab::Transcript => Vec::new(),
        }
    }

    /// The request as another service takes it.
    fn next_api(&mut self) -> Vec<Effect> {
        let all: Vec<Api> = Api::iter().collect();
        let at = all.iter().position(|api| Some(*api) == self.api).unwrap_or(0);
        self.api = all.get((at + 1) % all.len()).copied();
        self.ask_payload()
    }

    /// The selected skill's levels, where they are known of what is loaded now.
    fn levels_of_selected(&self) -> Option<&Arc<LevelsView>> {
        let skill = self.selected()?;
        let of_it =
            |levels: &&Arc<LevelsView>| levels.skill_id.as_str() == skill.name && levels.body == skill.body;
        self.levels.as_ref().filter(of_it)
    }

    fn ask_levels(&mut self) -> Vec<Effect> {
        if self.levels_of_selected().is_some() { Vec::new() } else { self.count_levels() }
    }

    /// Asks for the selected skill's levels, known or not.
    fn count_levels(&mut self) -> Vec<Effect> {
        self.no_levels = None;
        let (Some(session), Some(skill)) = (self.id(), self.selected()) else { return Vec::new() };
        let (session, skill) = (session.to_owned(), skill.name.clone());
        vec![Effect::Session(SessionAsk::Levels { session, skill })]
    }

    /// How the selected skill is to its file and the roots.
    fn selected_drift(&self) -> Standing {
        self.selected().map(|skill| self.standing_of(&skill.name)).unwrap_or_default()
    }

    fn standing_of(&self, name: &str) -> Standing {
        self.session.as_ref().and_then(|session| session.standing.get(name)).copied().unwrap_or_default()
    }

    fn ask_payload(&self) -> Vec<Effect> {
        let api = self.api.unwrap_or(Api::Anthropic);
        self.id().map(|id| Effect::Session(SessionAsk::Export(id.to_owned(), api))).into_iter().collect()
    }
}
