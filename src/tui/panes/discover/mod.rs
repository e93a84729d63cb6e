//! Pane 2: a request, the skills that fit it, and why. Every keystroke ranks again; the last good
//! answer stays on screen until a newer one is there.

mod against_view;
mod ask;
mod history;
mod intent_view;
mod keys;
mod mouse;
mod results_view;
mod rival;
mod rows;
mod selection;
mod view;
mod why_view;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ratatui::layout::Rect;

use self::ask::{Asking, Options};
pub use self::history::History;
use self::rows::{Item, Row};
use self::selection::Chosen;
use crate::discovery::{BodyLine, Hit};
use crate::gateway::{Event, LevelTokens, SkillDetail};
use crate::registry::{Catalogue, ScanProgress};
use crate::skill::SkillId;
use crate::tui::field::Field;
use crate::tui::pane::{Effect, Message, PickerKind, Target};
use crate::tui::widgets::scroll::Scroll;

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Part {
    #[default]
    Intent,
    Results,
    Why,
}

/// Something asked for once for the present answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Want {
    Levels(SkillId),
    Detail(SkillId),
    Body(SkillId, String),
}

/// Where things stood in the last frame.
#[derive(Debug, Default)]
struct Drawn {
    intent: Rect,
    field: Rect,
    results: Rect,
    why: Rect,
    /// Whether the parts share one column.
    folded: bool,
    /// Whether the nearest rival has a column of its own.
    third: bool,
    /// Rows on screen with the place of their item among all items.
    items: Vec<(Rect, usize)>,
}

/// Pane 2.
#[derive(Default)]
pub struct Discover {
    field: Field,
    options: Options,
    asking: Asking,
    history: History,
    focus: Part,
    rows: Vec<Row>,
    items: Vec<(Item, Option<usize>)>,
    cursor: usize,
    /// What a person put the cursor on; none while it stays on the first by itself.
    chosen: Option<Chosen>,
    /// What the cursor stood on after the last answer.
    held: Option<SkillId>,
    /// Whether the shadowed copies are listed one by one.
    unfolded: bool,
    scan: ScanProgress,
    /// Rows of screen lines, not of items.
    results: Scroll,
    /// Whether the window follows the cursor (the wheel lets go of it).
    follow: bool,
    why: Scroll,
    catalogue: Arc<Catalogue>,
    levels: HashMap<SkillId, LevelTokens>,
    details: HashMap<SkillId, Arc<SkillDetail>>,
    body_lines: HashMap<(SkillId, String), Vec<BodyLine>>,
    asked_for: HashSet<Want>,
    wanted: Vec<Effect>,
    drawn: Drawn,
}

impl Discover {
    /// An empty pane with the focus on the intent.
    #[must_use]
    pub fn new(history: History) -> Self {
        Self { history, follow: true, ..Self::default() }
    }

    /// The intents asked so far, for keeping.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    fn hit(&self) -> Option<&Hit> {
        let (item, _) = self.items.get(self.cursor)?;
        item.hit(&self.asking.shown()?.answer)
    }

    fn selected(&self) -> Option<&SkillId> {
        let (item, _) = self.items.get(self.cursor)?;
        item.skill(&self.asking.shown()?.answer)
    }

    /// Asks for what stands in the field. An empty field asks nothing.
    fn ask(&mut self) -> Vec<Effect> {
        if self.field.text().trim().is_empty() {
            self.asking.clear();
            self.chosen = None;
            self.set_rows();
            return Vec::new();
        }
        let typing = self.focus == Part::Intent && self.field.cursor() == self.field.text().len();
        let intent = self.field.text().to_owned();
        let (request, generation) = self.asking.ask(&intent, typing, &self.options);
        vec![Effect::Discover { request, generation }]
    }

    fn news(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Answer(generation, answer) => {
                let before = self.asking.shown().map(|s| s.intent.clone());
                if self.asking.take(*generation, answer) {
                    if self.asking.shown().map(|s| &s.intent) != before.as_ref() {
                        self.chosen = None;
                    }
                    self.set_rows();
                }
                Vec::new()
            }
            Message::Levels(levels) => {
                self.levels.extend(levels.iter().map(|l| (l.skill_id.clone(), l.clone())));
                Vec::new()
            }
            Message::Detail(id, Ok(detail)) => {
                self.details.insert(id.clone(), Arc::clone(detail));
                Vec::new()
            }
            Message::BodyLines(id, intent, lines) => {
                self.body_lines.retain(|(_, known), _| known == intent);
                self.body_lines.insert((id.clone(), intent.clone()), lines.clone());
                Vec::new()
            }
            Message::Catalogue(catalogue) => {
                self.catalogue = Arc::clone(catalogue);
                self.forget();
                self.ask()
            }
            Message::Event(Event::Catalogue(change)) => {
                self.catalogue = Arc::clone(&change.catalogue);
                self.forget();
                self.ask()
            }
            Message::Event(Event::Scan(scan)) => {
                self.scan = *scan;
                Vec::new()
            }
            Message::Event(Event::Index(progress)) => {
                let lacking = self.asking.shown().is_some_and(|s| s.answer.bodies_missing > 0);
                if lacking && (progress.done || !self.asking.pending()) { self.ask() } else { Vec::new() }
            }
            Message::Visit(Target::Intent(intent)) => {
                self.history.keep(self.field.text());
                self.field.set(intent);
                self.history.keep(intent);
                self.focus = Part::Results;
                self.ask()
            }
            Message::Picked(PickerKind::Domain, domain) => {
                self.options.domain = (!domain.is_empty()).then(|| domain.clone());
                self.ask()
            }
            Message::Picked(PickerKind::CopyAs, what) => self.copy_as(what),
            _ => Vec::new(),
        }
    }

    /// Forgets what was measured: skills may have changed.
    fn forget(&mut self) {
        self.levels.clear();
        self.details.clear();
        self.body_lines.clear();
        self.asked_for.clear();
    }

    /// Notes something a frame found missing, once.
    fn want(&mut self, want: Want) {
        if !self.asked_for.insert(want.clone()) {
            return;
        }
        match want {
            Want::Levels(id) => match self.wanted.iter_mut().find_map(|e| match e {
                Effect::Levels(ids) => Some(ids),
                _ => None,
            }) {
                Some(ids) => ids.push(id),
                None => self.wanted.push(Effect::Levels(vec![id])),
            },
            Want::Detail(id) => self.wanted.push(Effect::Describe(id)),
            Want::Body(id, intent) => self.wanted.push(Effect::BodyLines(id, intent)),
        }
    }
}
