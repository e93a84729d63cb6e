//! What a pane is: it takes actions, text keys, clicks and messages, answers effects, and draws itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use super::action::{Action, Command, Context};
use super::glyphs::Glyphs;
use super::golden_requests::{GoldenAnswer, GoldenAsk, GoldenForm};
use super::overlay::{Drafting, Reading, Sheet};
use super::panes::discover::Lookup;
use super::proposal_requests::{ProposalAnswer, ProposalAsk};
use super::run_requests::{RunAsk, RunTold};
use super::session_requests::{SessionAsk, SessionTold};
use super::theme::Theme;
use super::widgets::rich::RichLine;
use super::widgets::text_width::shown;
use skills_api::{
    ClientView, CollisionReport, Diagnostics, DraftReport, DraftRequest, Error, Event, FileContent,
    LevelTokens, SkillDetail, SkillRivals, VisibilityReport, WhyRequest,
};
use skills_discovery::{Answer, BodyLine, PairReport, Request};
use skills_registry::Catalogue;
use skills_skill::SkillId;
use skills_store::RunId;

/// Which pane. The numbers on the keys never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaneId {
    /// `1`
    Browse,
    /// `2`
    Discover,
    /// `3`
    Attach,
    /// `4`
    Session,
    /// `5`
    Runs,
    /// `6`
    Golden,
    /// `7`
    Proposals,
}

/// What a pane wants done. The application runs it; answers come back as [`Message`].
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Rank; stale generations are dropped on the way back.
    Discover {
        /// What.
        request: Request,
        /// Counts up per pane.
        generation: u64,
    },
    /// Rank for a part of the list that the answer does not hold: a page, a filter, one skill.
    Results {
        /// What.
        request: Request,
        /// Comes back with the answer.
        lookup: Lookup,
    },
    /// Everything about a skill.
    Describe(SkillId),
    /// A file of a bundle.
    ReadFile(SkillId, String),
    /// Token counts of these.
    Levels(Vec<SkillId>),
    /// Body lines that hold words of the intent.
    BodyLines(SkillId, String),
    /// The catalog in a client's view; `None` goes back to our own.
    ClientView(Option<String>),
    /// Render Markdown or highlight code off the UI task; the key comes back.
    Render(RenderJob),
    /// Put text on the clipboard; the second says what it was, for the toast.
    Copy(String, String),
    /// As [`Self::Copy`], of a command line that begins with `skills`: with the options that this process was started
    /// with.
    CopyCommand(String, String),
    /// Open `$EDITOR` at a line.
    Edit(PathBuf, u32),
    /// A short note above the footer that fades.
    Toast(String),
    /// Show another pane, there on this skill (Browse), with this intent (Discover), or loading this skill (Session).
    Go(PaneId, Option<Target>),
    /// Let the person choose one; the answer is [`Message::Picked`].
    Pick(Picker),
    /// Let the person choose a client profile (the application asks the core for them) or none; the one in
    /// force comes along. The answer is [`Message::Picked`] with its id, empty for none.
    PickClient(Option<String>),
    /// Ask about runs; the answer is [`Message::Run`].
    Run(RunAsk),
    /// Ask about proposals; the answer is [`Message::Proposals`].
    Proposals(ProposalAsk),
    /// Ask about sessions; the answer is [`Message::Session`].
    Session(SessionAsk),
    /// Open a sheet over the pane; what it asks is answered to the pane too.
    Sheet(Box<Sheet>),
    /// Show a text in full, over everything.
    Read(Box<Reading>),
    /// Show the text again that is shown in full, if it is the one of this title: it grew.
    ReadAgain(Box<Reading>),
    /// Show why clients use a skill or do not; without a request, for that of Discover.
    Why(WhyRequest),
    /// Ask who wins requests made from a skill's description; the answer is [`Message::Rivals`].
    Rivals(SkillId),
    /// Ask which skills win each other's requests; the answer is [`Message::Collisions`], complete or not.
    Collisions,
    /// Ask which clients show which skills to their models, or one skill with its text; the answer is
    /// [`Message::Visibility`].
    Visibility(Option<SkillId>),
    /// Compare two skills; the answer is [`Message::Pair`].
    CompareSkills(SkillId, SkillId),
    /// Edit the description of a skill, with what that would change; without a request, for that of Discover.
    EditDescription(Drafting),
    /// Measure a draft; the answer is [`Message::Draft`].
    Draft {
        /// What.
        request: DraftRequest,
        /// Counts up per editor.
        generation: u64,
    },
    /// Write a description into its file; the answer is [`Message::DescriptionWritten`].
    WriteDescription {
        /// The skill.
        skill_id: SkillId,
        /// The description that the editor began with: another one in the file is not replaced.
        present: String,
        /// The new one.
        description: String,
    },
    /// Ask about golden queries; the answer is [`Message::Golden`].
    Golden(GoldenAsk),
    /// Let the person add a query to the golden set; without one, that of Discover.
    AddGolden(GoldenForm),
    /// Something failed: what, and where or what to do. Stays until it is seen.
    ErrorNotice(String, String),
    /// Something began to wait for a person: notified if another pane is shown.
    Awaited(String),
    /// What was typed on a sheet that closes without having sent it, by the sheet's name; nothing forgets it.
    /// The pane is reported [`Message::Kept`].
    Keep(String, Map<String, Value>),
}

/// Where to go inside another pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Put the cursor on this skill.
    Skill(SkillId),
    /// Ask this.
    Intent(String),
    /// Put the cursor on this proposal.
    Proposal(String),
    /// Put the cursor on this run.
    Run(RunId),
    /// State what the waiting step of this run gave, whose outcome is unknown.
    Happened(RunId),
    /// Launch a run of this skill.
    Launch(SkillId),
    /// Attach this skill, or to this: `(type, reference)`.
    Attach {
        /// The skill, where one is meant.
        skill: Option<SkillId>,
        /// The target, where one is meant.
        target: Option<(String, String)>,
    },
}

/// A small list to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picker {
    /// Comes back with the answer.
    pub what: PickerKind,
    /// Title of the overlay.
    pub title: String,
    /// `(value, label, note)`.
    pub choices: Vec<(String, String, String)>,
    /// The one in force.
    pub current: Option<usize>,
}

/// As much of a description as a list of skills shows, safe to draw.
#[must_use]
pub fn beginning(description: &str) -> String {
    let end = description.char_indices().nth(MAX_BEGINNING).map_or(description.len(), |(at, _)| at);
    shown(&description[..end])
}

/// Characters of a description in a list of skills.
const MAX_BEGINNING: usize = 200;

/// All skills of a catalog, to open one by its name; none when there are none.
#[must_use]
pub fn skills_to_open(catalogue: &Catalogue, current: Option<&SkillId>) -> Option<Picker> {
    let shadowed = catalogue.shadowed.iter().map(|loser| &loser.skill);
    let skills = catalogue.entries.iter().map(|entry| &entry.skill).chain(shadowed);
    let choice = |skill: &Arc<skills_skill::Skill>| {
        (skill.id.to_string(), shown(skill.id.as_str()), beginning(&skill.description))
    };
    let choices: Vec<_> = skills.map(choice).collect();
    let current = current.and_then(|id| choices.iter().position(|(known, ..)| known == id.as_str()));
    let title = "Open a skill by name".to_owned();
    (!choices.is_empty()).then_some(Picker { what: PickerKind::SkillToOpen, title, choices, current })
}

/// What a picker chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say what")]
pub enum PickerKind {
    Attachable,
    Client,
    CopyAs,
    Domain,
    Checkpoint,
    FilterTerm,
    RunSort,
    Launchable,
    SkillToLoad,
    SkillToOpen,
    FileToRead,
    ScriptToRun,
    Session,
    NewSession,
    Agent,
}

impl PickerKind {
    /// Whether the choices have names that a person knows and begins to type.
    #[must_use]
    pub fn names_things(self) -> bool {
        matches!(
            self,
            Self::Agent
                | Self::Attachable
                | Self::Domain
                | Self::FileToRead
                | Self::Launchable
                | Self::ScriptToRun
                | Self::SkillToLoad
                | Self::SkillToOpen
        )
    }
}

/// A text to render off the UI task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RenderJob {
    /// The key returned with the result; jobs with an equal job are cached.
    pub key: u64,
    /// The text, raw.
    pub text: Arc<str>,
    /// `markdown`, or a syntax by name or extension (`yaml`, `py`).
    pub syntax: String,
    /// Width to wrap to, in cells.
    pub width: u16,
    /// Whether the signs of lists, quotes and rules are ASCII.
    pub ascii: bool,
}

/// What comes to a pane from outside.
#[derive(Debug, Clone)]
pub enum Message {
    /// Answer to [`Effect::Discover`].
    Answer(u64, Result<Arc<Answer>, Error>),
    /// Answer to [`Effect::Results`].
    Results(Lookup, Result<Arc<Answer>, Error>),
    /// Answer to [`Effect::Describe`].
    Detail(SkillId, Result<Arc<SkillDetail>, Error>),
    /// Answer to [`Effect::ReadFile`].
    File(SkillId, String, Result<Arc<FileContent>, Error>),
    /// Answer to [`Effect::Levels`].
    Levels(Vec<LevelTokens>),
    /// Answer to [`Effect::BodyLines`]: the skill, the intent, the lines.
    BodyLines(SkillId, String, Vec<BodyLine>),
    /// Answer to [`Effect::ClientView`].
    ClientView(Option<Arc<ClientView>>),
    /// Answer to [`Effect::Rivals`].
    Rivals(SkillId, Result<Arc<SkillRivals>, Error>),
    /// Answer to [`Effect::Collisions`].
    Collisions(Result<Arc<CollisionReport>, Error>),
    /// Answer to [`Effect::Visibility`].
    Visibility(Option<SkillId>, Result<Arc<VisibilityReport>, Error>),
    /// Answer to [`Effect::CompareSkills`].
    Pair(SkillId, SkillId, Result<Arc<PairReport>, Error>),
    /// Answer to [`Effect::Draft`].
    Draft(u64, Result<Arc<DraftReport>, Error>),
    /// Answer to [`Effect::WriteDescription`].
    DescriptionWritten(SkillId, Result<Saved, Error>),
    /// Answer to [`Effect::Render`]: lines in roles, already safe to draw.
    Rendered(u64, Arc<[RichLine]>),
    /// Events of the core.
    Event(Event),
    /// The present catalog, at start and after lagging.
    Catalogue(Arc<Catalogue>),
    /// Answer to [`Effect::Pick`].
    Picked(PickerKind, String),
    /// Diagnostics for the empty screen.
    Diagnostics(Arc<Diagnostics>),
    /// Come here: see [`Effect::Go`].
    Visit(Target),
    /// Keep this for the sheet's next opening: see [`Effect::Keep`].
    Kept(String, Map<String, Value>),
    /// About proposals: an answer to [`Effect::Proposals`].
    Proposals(ProposalAnswer),
    /// About sessions: an answer to [`Effect::Session`].
    Session(SessionTold),
    /// About golden queries: an answer to [`Effect::Golden`], or news.
    Golden(GoldenAnswer),
    /// About runs: an answer to [`Effect::Run`], or news.
    Run(RunTold),
}

/// Where a description was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// In the file, with this text.
    InFile(String),
    /// As a proposal, because the file cannot be written: why.
    AsProposal(String),
    /// Nowhere, because the file has another description now: this one.
    Changed(String),
}

/// What a pane may use while it draws.
pub struct Draw<'a> {
    /// Styles.
    pub theme: &'a Theme,
    /// Signs.
    pub glyphs: &'a Glyphs,
    /// Present moment, for spinners.
    pub now: Instant,
    /// The wall clock, milliseconds since 1970-01-01 UTC, for ages.
    pub clock_ms: i64,
    /// Whether the pane (not an overlay) has the focus.
    pub focused: bool,
    /// One part full screen.
    pub full_screen: bool,
    /// How many cells the person moved the split with `<` and `>` from where the pane puts it by itself.
    pub split: i16,
    /// Set to show the terminal's cursor (a focused text field).
    pub cursor: Option<Position>,
}

/// A pane of the workbench. It never does I/O; it asks for effects.
pub trait Pane {
    /// Which one.
    fn id(&self) -> PaneId;
    /// Contexts for key look-up, innermost first, without `Global`.
    fn contexts(&self) -> Vec<Context>;
    /// Whether a text field has the focus (it owns printable and readline keys).
    fn in_text(&self) -> bool;
    /// What can be done now, the most wanted first.
    fn commands(&self) -> Vec<Command>;
    /// An action the keymap found. `None` when this pane does not know it.
    fn act(&mut self, action: Action) -> Option<Vec<Effect>>;
    /// A key for the focused text field.
    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect>;
    /// Pasted text for the focused text field.
    fn paste(&mut self, text: &str) -> Vec<Effect>;
    /// A click, drag or wheel; positions are those of the last drawn frame.
    fn mouse(&mut self, event: MouseEvent) -> Vec<Effect>;
    /// An event.
    fn message(&mut self, message: &Message) -> Vec<Effect>;
    /// Draws into `area`.
    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>);
    /// What the last drawn frame found missing: texts at this width, tokens of the rows in sight. Called
    /// after every draw; empties what it answers.
    fn wanted(&mut self) -> Vec<Effect>;
    /// Whether something on it moves by itself now (a spinner).
    fn animated(&self) -> bool;
    /// When what it shows changes next by itself (an age), by the wall clock in milliseconds since 1970-01-01 UTC.
    fn changes_at(&self, _clock_ms: i64) -> Option<i64> {
        None
    }
    /// When it looks again whether somebody else changed what it shows, while it is shown. Looking draws nothing by
    /// itself.
    fn looks_at(&self, _now: Instant) -> Option<Instant> {
        None
    }
    /// That moment has come.
    fn look(&mut self, _now: Instant) -> Vec<Effect> {
        Vec::new()
    }
    /// How many items in it wait for a person; shown in its tab.
    fn awaited(&self) -> usize {
        0
    }
    /// What would be lost if the workbench ended now, as a sentence.
    fn unsaved(&self) -> Option<String> {
        None
    }
    /// How many runs this process works at this moment: they stop when it ends.
    fn under_way(&self) -> usize {
        0
    }
    /// The request that is typed here, where this pane takes one.
    fn request(&self) -> Option<String> {
        None
    }
    /// Texts to keep for the next session, oldest first (the intents asked).
    fn persistent_texts(&self) -> Vec<String> {
        Vec::new()
    }
}
