//! The interface between panes and the application: a pane handles actions, text keys, clicks and messages, returns
//! effects, and draws itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use super::action::{Action, Context, PaneCommand};
use super::command_lines::CommandLines;
use super::glyphs::Glyphs;
use super::golden_requests::{GoldenForm, GoldenPaneRequest, GoldenPaneResponse};
use super::keymap::Keymap;
use super::overlay::{DescriptionEdit, DialogSpec, Reading};
use super::panes::discover::Lookup;
use super::proposal_requests::{ProposalPaneRequest, ProposalPaneResponse};
use super::run_requests::{RunRequest, RunResponse};
use super::session_requests::{SessionRequest, SessionResponse};
use super::theme::Theme;
use crate::widgets::{RichLine, shown};
use skills_api::{
    ClientView, CollisionReport, Diagnostics, DraftReport, DraftRequest, Error, Event, FileContent,
    LevelTokens, SkillDetail, SkillRivals, VisibilityReport, WhyRequest,
};
use skills_discovery::{Answer, BodyLine, PairReport, Request};
use skills_registry::Catalog;
use skills_skill::{Digest, RejectedBundle, Skill, SkillId};
use skills_store::RunId;

/// A pane of the workbench. The numbers of the keys are stable.
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

/// A request of a pane to the application, which executes it; results return as a [`Message`].
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Rank skills; results of outdated generations are dropped.
    Discover {
        request: Request,
        /// Incremented by each pane.
        generation: u64,
    },
    /// Rank for results that the answer does not contain: a page, a filter, one skill.
    Results {
        request: Request,
        /// Returned with the result.
        lookup: Lookup,
    },
    /// Load everything about a skill.
    Describe(SkillId),
    /// Load a file of a bundle.
    ReadFile(SkillId, String),
    /// Count the tokens of these skills.
    Levels(Vec<SkillId>),
    /// Find body lines that contain words of the request.
    BodyLines(SkillId, String),
    /// Load the catalog in a client's view; `None` restores the unfiltered view.
    ClientView(Option<String>),
    /// Render Markdown or highlight code off the UI task; the key is returned with the result.
    Render(RenderJob),
    /// Copy text to the clipboard; the second value names it in the note.
    Copy(String, String),
    /// Like [`Self::Copy`], for a command line that begins with `skills`: the options that this process was started
    /// with are added.
    CopyCommand(String, String),
    /// Open `$EDITOR` at a line.
    Edit(PathBuf, u32),
    /// Show a short note above the footer that fades.
    Toast(String),
    /// Show another pane, optionally at a target: a skill in Browse, a request in Discover, a skill to load in Session.
    Go(PaneId, Option<Target>),
    /// Let the user choose from a list; the result is [`Message::Picked`].
    Pick(Picker),
    /// Let the user choose a client profile, or none, with the current one preselected; the application loads the
    /// profiles. The result is [`Message::Picked`] with the id, empty for none.
    PickClient(Option<String>),
    /// Send a request about runs; the result is [`Message::Run`].
    Run(RunRequest),
    /// Send a request about proposals; the result is [`Message::Proposals`].
    Proposals(ProposalPaneRequest),
    /// Send a request about sessions; the result is [`Message::Session`].
    Session(SessionRequest),
    /// Open a dialog over the pane; results of its requests are delivered to the pane too.
    OpenDialog(Box<DialogSpec>),
    /// Show a text in the reader overlay.
    Read(Box<Reading>),
    /// Update the text in the reader overlay, if it has the same title: the text grew.
    ReadAgain(Box<Reading>),
    /// Show why clients use a skill or do not; without a request, for the request of Discover.
    Why(WhyRequest),
    /// Find the skills that win requests made from a skill's description; the result is [`Message::Rivals`].
    Rivals(SkillId),
    /// Find the skills that win each other's requests; the result is [`Message::Collisions`], possibly incomplete.
    Collisions,
    /// Find which clients show which skills to their models, or one skill with its text; the result is
    /// [`Message::Visibility`].
    Visibility(Option<SkillId>),
    /// Compare two skills; the result is [`Message::Pair`].
    CompareSkills(SkillId, SkillId),
    /// Edit the description of a skill with a preview of the effects; without a request, for the request of Discover.
    EditDescription(DescriptionEdit),
    /// Measure a draft; the result is [`Message::Draft`].
    Draft {
        request: DraftRequest,
        /// Incremented by each editor.
        generation: u64,
    },
    /// Write a description and `when_to_use` to their file; the result is [`Message::DescriptionWritten`].
    WriteDescription {
        skill_id: SkillId,
        /// Digest of the file whose texts were shown: another file is not changed.
        shown: Digest,
        texts: StatedTexts,
        /// Versions of the file that were replaced before, newest last.
        earlier: Vec<Arc<str>>,
    },
    /// Send a request about golden queries; the result is [`Message::Golden`].
    Golden(GoldenPaneRequest),
    /// Let the user add a query to the golden set; without one, the request of Discover.
    AddGolden(GoldenForm),
    /// Show an error: what failed, and where or what to do. Stays until it is dismissed.
    ErrorNotice(String, String),
    /// Announce that something started to wait for a person, if another pane is shown.
    Awaited(String),
    /// Keep the fields of a dialog that closes without submitting, by the dialog's name, until they are submitted.
    /// The pane receives [`Message::SavedDraft`].
    Keep(String, Map<String, Value>),
}

impl Effect {
    /// Copies a name or a path, which is one line: a shell would execute a second one.
    pub fn copy_line(text: &str, what: &str) -> Self {
        Self::Copy(text.replace(['\n', '\r'], "\u{fffd}"), what.to_owned())
    }
}

/// A target inside another pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Move the cursor to this skill.
    Skill(SkillId),
    /// Rank this request.
    Intent(String),
    /// Move the cursor to this proposal.
    Proposal(String),
    /// Move the cursor to this run.
    Run(RunId),
    /// Enter the result of this run's waiting step, whose outcome is unknown.
    Happened(RunId),
    Launch(SkillId),
    /// Attach this skill, or attach to this target: `(type, reference)`.
    Attach {
        /// The skill, if given.
        skill: Option<SkillId>,
        /// The target, if given.
        target: Option<(String, String)>,
    },
}

/// A small list to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picker {
    /// Returned with the result.
    pub what: PickerKind,
    /// Title of the overlay.
    pub title: String,
    /// `(value, label, note)`.
    pub choices: Vec<(String, String, String)>,
    /// The current choice.
    pub current: Option<usize>,
}

/// Returns the beginning of a description for a list of skills, safe to draw.
pub fn beginning(description: &str) -> String {
    let end = description.char_indices().nth(MAX_BEGINNING).map_or(description.len(), |(at, _)| at);
    shown(&description[..end])
}

/// Maximum number of characters of a description in a list of skills.
const MAX_BEGINNING: usize = 200;

/// Returns a picker of all bundles of a catalog, also of rejected ones, to open one by id or name; `None` if there are
/// none.
pub fn skills_to_open(catalog: &Catalog, current: Option<&SkillId>) -> Option<Picker> {
    let choice = |skill: &Arc<skills_skill::Skill>| {
        let id = shown(skill.id.as_str());
        let label =
            if skill.name == skill.id.as_str() { id } else { format!("{id} ({})", shown(&skill.name)) };
        (skill.id.to_string(), label, beginning(&skill.description))
    };
    // A list is opened at an id: of several bundles with one, the skill has precedence.
    let refused = catalog.refused.iter().filter(|refusal| catalog.by_id(refusal.id.as_str()).is_none());
    let rejected = |refusal: &RejectedBundle| {
        let why = refusal.findings.last().map_or("", |finding| finding.message.as_str());
        (refusal.id.to_string(), shown(refusal.id.as_str()), beginning(&format!("rejected: {why}")))
    };
    let choices: Vec<_> = catalog.all_skills().map(choice).chain(refused.map(rejected)).collect();
    let current = current.and_then(|id| choices.iter().position(|(known, ..)| known == id.as_str()));
    let title = "Open a skill by name".to_owned();
    (!choices.is_empty()).then_some(Picker { what: PickerKind::SkillToOpen, title, choices, current })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Returns whether the choices have names that a user knows and begins to type.
    pub fn names_things(self) -> bool {
        matches!(
            self,
            Self::Agent
                | Self::Attachable
                | Self::Domain
                | Self::FileToRead
                | Self::FilterTerm
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
    /// The key returned with the result; results are cached by job.
    pub key: u64,
    /// The text, unescaped.
    pub text: Arc<str>,
    /// `markdown`, or a syntax by name or extension (`yaml`, `py`).
    pub syntax: String,
    /// Width to wrap to, in cells.
    pub width: u16,
    /// Whether the markers of lists, quotes and rules are ASCII.
    pub ascii: bool,
}

#[derive(Debug, Clone)]
pub enum Message {
    /// Result of [`Effect::Discover`].
    Answer(u64, Result<Arc<Answer>, Error>),
    /// Result of [`Effect::Results`].
    Results(Lookup, Result<Arc<Answer>, Error>),
    /// Result of [`Effect::Describe`].
    Detail(SkillId, Result<Arc<SkillDetail>, Error>),
    /// Result of [`Effect::ReadFile`].
    File(SkillId, String, Result<Arc<FileContent>, Error>),
    /// Result of [`Effect::Levels`].
    Levels(Vec<LevelTokens>),
    /// Result of [`Effect::BodyLines`]: the skill, the request, the lines.
    BodyLines(SkillId, String, Vec<BodyLine>),
    /// Result of [`Effect::ClientView`].
    ClientView(Option<Arc<ClientView>>),
    /// Result of [`Effect::Rivals`].
    Rivals(SkillId, Result<Arc<SkillRivals>, Error>),
    /// Result of [`Effect::Collisions`].
    Collisions(Result<Arc<CollisionReport>, Error>),
    /// Result of [`Effect::Visibility`].
    Visibility(Option<SkillId>, Result<Arc<VisibilityReport>, Error>),
    /// Result of [`Effect::CompareSkills`].
    Pair(SkillId, SkillId, Result<Arc<PairReport>, Error>),
    /// Result of [`Effect::Draft`].
    Draft(u64, Result<Arc<DraftReport>, Error>),
    /// Result of [`Effect::WriteDescription`].
    DescriptionWritten(SkillId, Result<SaveOutcome, Error>),
    /// Result of [`Effect::Render`]: lines with roles, safe to draw.
    Rendered(u64, Arc<[RichLine]>),
    /// Events of the core.
    Event(Event),
    /// The current catalog, at startup and after lagging.
    Catalog(Arc<Catalog>),
    /// Result of [`Effect::Pick`].
    Picked(PickerKind, String),
    /// The user wants everything to be read again.
    Reread,
    /// Diagnostics for the empty screen.
    Diagnostics(Arc<Diagnostics>),
    /// The pane is shown with this target: see [`Effect::Go`].
    Visit(Target),
    /// The draft for the dialog's next opening: see [`Effect::Keep`].
    SavedDraft(String, Map<String, Value>),
    /// About proposals: the result of [`Effect::Proposals`].
    Proposals(ProposalPaneResponse),
    /// About sessions: the result of [`Effect::Session`].
    Session(SessionResponse),
    /// About golden queries: the result of [`Effect::Golden`], or a change.
    Golden(GoldenPaneResponse),
    /// About runs: the result of [`Effect::Run`], or an event.
    Run(RunResponse),
}

/// Where a description was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveOutcome {
    /// In the file; with the version that was replaced.
    InFile(InFile, Arc<str>),
    /// As a proposal, because the file cannot be written; with the reason.
    AsProposal(String),
    /// Nowhere, because the file is now another one.
    Changed(InFile),
}

/// The texts by which a model selects a skill.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatedTexts {
    pub description: String,
    /// `when_to_use`; empty if the file has none.
    pub when_to_use: String,
}

impl StatedTexts {
    pub fn of(skill: &Skill) -> Self {
        let when_to_use = skill.clients.when_to_use.clone().unwrap_or_default();
        Self { description: skill.description.clone(), when_to_use }
    }

    /// Returns whether both are the same but for blanks at their ends.
    pub fn is_same(&self, other: &Self) -> bool {
        self.description.trim() == other.description.trim()
            && self.when_to_use.trim() == other.when_to_use.trim()
    }
}

/// The texts in a file, and the digest of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFile {
    pub texts: StatedTexts,
    pub digest: Digest,
}

/// The context in which a pane draws.
pub struct Draw<'a> {
    /// Styles.
    pub theme: &'a Theme,
    pub glyphs: &'a Glyphs,
    /// The keys in effect, for texts that name one.
    pub keymap: &'a Keymap,
    /// For command lines in texts.
    pub commands: &'a CommandLines,
    /// The current time, for spinners.
    pub now: Instant,
    /// The wall clock in milliseconds since 1970-01-01 UTC, for relative times.
    pub clock_ms: i64,
    /// Whether the pane (not an overlay) has the focus.
    pub focused: bool,
    /// Whether one part is shown full screen.
    pub full_screen: bool,
    /// By how many cells the user moved the split with `<` and `>` from its default position.
    pub split: i16,
    /// Set to show the terminal's cursor (a focused text field).
    pub cursor: Option<Position>,
}

/// Number of rows that a notch of the wheel scrolls by.
pub const WHEEL_ROWS: isize = 3;

/// A pane of the workbench. It performs no I/O; it returns effects.
pub trait Pane {
    fn id(&self) -> PaneId;
    /// Returns the contexts for key look-up, innermost first, without `Global`.
    fn contexts(&self) -> Vec<Context>;
    /// Returns whether a text field has the focus (it owns printable and readline keys).
    fn in_text(&self) -> bool;
    /// Returns the available commands, most important first.
    fn commands(&self) -> Vec<PaneCommand>;
    /// Executes an action that the keymap found. Returns `None` if this pane does not handle it.
    fn act(&mut self, action: Action) -> Option<Vec<Effect>>;
    /// Handles a key for the focused text field.
    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect>;
    /// Handles pasted text for the focused text field.
    fn paste(&mut self, text: &str) -> Vec<Effect>;
    /// Handles a click, drag or wheel; positions refer to the last drawn frame.
    fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.wheel(at, -WHEEL_ROWS),
            MouseEventKind::ScrollDown => self.wheel(at, WHEEL_ROWS),
            MouseEventKind::Down(MouseButton::Left) => self.click(at),
            _ => Vec::new(),
        }
    }
    fn click(&mut self, _at: Position) -> Vec<Effect> {
        Vec::new()
    }
    /// Handles the wheel, which scrolls by these rows.
    fn wheel(&mut self, _at: Position, _rows: isize) -> Vec<Effect> {
        Vec::new()
    }
    fn message(&mut self, message: &Message) -> Vec<Effect>;
    /// Handles that another pane is shown: notes about this one disappear.
    fn leave(&mut self) {}
    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>);
    /// Takes the effects that load what the last drawn frame lacked: texts at this width, tokens of the visible rows.
    /// Called after every draw.
    fn take_pending_effects(&mut self) -> Vec<Effect>;
    /// Returns whether something on it is animated (a spinner).
    fn animated(&self) -> bool {
        false
    }
    /// Returns when it next changes without input (a relative time), by the wall clock in milliseconds since 1970-01-01
    /// UTC.
    fn changes_at(&self, _clock_ms: i64) -> Option<i64> {
        None
    }
    /// Returns when it next polls for changes by other processes, while it is shown. Polling alone draws nothing.
    fn next_poll(&self, _now: Instant) -> Option<Instant> {
        None
    }
    /// Polls for changes by other processes.
    fn poll(&mut self, _now: Instant) -> Vec<Effect> {
        Vec::new()
    }
    /// Returns how many items on it wait for a person; shown in its tab.
    fn pending_decisions(&self) -> usize {
        0
    }
    /// Describes in a sentence what would be lost if the workbench quit now.
    fn unsaved(&self) -> Option<String> {
        None
    }
    /// Returns how many runs this process is executing: they stop when it exits.
    fn executing_runs(&self) -> usize {
        0
    }
    /// Returns the request entered here, if this pane has one.
    fn request(&self) -> Option<String> {
        None
    }
    /// Returns texts to keep for the next session, oldest first (the ranked requests).
    fn persistent_texts(&self) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn an_id_is_copied_as_one_line() {
        let copied = Effect::copy_line("pay\ntouch PWNED\r\n", "id");
        assert!(matches!(copied, Effect::Copy(text, _) if !text.contains(['\n', '\r'])));
    }

    #[test]
    fn a_rejected_skill_and_a_name_of_the_frontmatter_are_found_by_name() {
        let parse = |path: &str, text: &str| skills_skill::parse(Path::new(path), text.as_bytes(), 0);
        let skill = parse("/s/folder-x/SKILL.md", "---\nname: name-y\ndescription: Does it.\n---\n").unwrap();
        let catalog = Catalog {
            entries: vec![skills_registry::Entry { skill: Arc::new(skill), root: 0 }],
            refused: vec![parse("/s/emptyfile/SKILL.md", "").unwrap_err()],
            ..Catalog::default()
        };
        let choices = skills_to_open(&catalog, None).unwrap().choices;
        let labels: Vec<_> = choices.iter().map(|(id, label, _)| (id.as_str(), label.as_str())).collect();
        assert_eq!(labels, [("folder-x", "folder-x (name-y)"), ("emptyfile", "emptyfile")]);
        assert!(choices[1].2.starts_with("rejected: "), "{}", choices[1].2);
    }
}
