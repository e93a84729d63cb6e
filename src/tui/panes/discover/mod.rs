//! Pane 2: a request, the skills that match it, and why. Every keystroke ranks again; the last successful answer stays
//! on screen until a newer one arrives.

mod against_view;
mod ask;
mod history;
mod intent_view;
mod keys;
mod listing;
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

pub(crate) use self::against_view::draw_scored;
use self::ask::{Options, PendingRequests};
pub use self::history::History;
use self::listing::Listing;
pub use self::listing::Lookup;
pub(crate) use self::rival::compare as compare_hits;
use self::rows::{OpenedSkill, Row};
use self::selection::Selection;
pub(crate) use self::why_view::draw_differences;
use crate::field::Field;
use crate::pane::{Effect, Message, PickerKind, Target};
use crate::widgets::scroll::Scroll;
use skills_api::{Event, LevelTokens, SkillDetail};
use skills_discovery::BodyLine;
use skills_registry::{Catalogue, ScanProgress};
use skills_skill::SkillId;

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    Intent,
    Results,
    /// The filter of the results.
    Filter,
    Why,
}

/// Data that is requested once for each answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ResultRequest {
    Levels(SkillId),
    Detail(SkillId),
    Body(SkillId, String),
}

/// Areas of the last frame.
#[derive(Debug, Default)]
struct FrameAreas {
    intent: Rect,
    field: Rect,
    results: Rect,
    filter: Rect,
    why: Rect,
    /// Whether the parts share one column.
    folded: bool,
    /// Whether the nearest rival has a separate column.
    third: bool,
    /// Visible rows with the index of their item.
    items: Vec<(Rect, usize)>,
}

/// The state of pane 2.
#[derive(Default)]
pub struct Discover {
    field: Field,
    options: Options,
    asking: PendingRequests,
    history: History,
    focus: Focus,
    listing: Listing,
    filter: Field,
    rows: Vec<Row>,
    /// Rows that the cursor can be on.
    items: Vec<usize>,
    /// Index into `items`.
    cursor: usize,
    /// What the user put the cursor on; `None` while it stays on the first result by itself.
    chosen: Option<Selection>,
    /// The skill under the cursor after the last answer.
    selected: Option<SkillId>,
    /// A skill being opened by its name, until its rank is known.
    opening: Option<SkillId>,
    /// A skill that was opened and is not a row of the list.
    opened: Option<OpenedSkill>,
    /// Whether shadowed copies are listed one by one.
    unfolded: bool,
    scan: ScanProgress,
    /// Scroll position in screen lines, not items.
    results: Scroll,
    /// Whether the window follows the cursor (the wheel detaches it).
    follow: bool,
    why: Scroll,
    catalogue: Arc<Catalogue>,
    levels: HashMap<SkillId, LevelTokens>,
    details: HashMap<SkillId, Arc<SkillDetail>>,
    body_lines: HashMap<(SkillId, String), Vec<BodyLine>>,
    asked_for: HashSet<ResultRequest>,
    wanted: Vec<Effect>,
    drawn: FrameAreas,
}

impl Discover {
    /// Creates an empty pane with the focus on the request.
    #[must_use]
    pub fn new(history: History) -> Self {
        Self { history, follow: true, ..Self::default() }
    }

    /// Returns the history, to be stored.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Ranks the text of the field. An empty field clears the results.
    fn ask(&mut self) -> Vec<Effect> {
        if self.field.text().trim().is_empty() {
            self.asking.clear();
            self.filter.clear();
            (self.chosen, self.opening) = (None, None);
            return self.take_answer();
        }
        let typing = self.focus == Focus::Intent && self.field.cursor() == self.field.text().len();
        let intent = self.field.text().to_owned();
        let (request, generation) = self.asking.ask(&intent, typing, &self.options);
        vec![Effect::Discover { request, generation }]
    }

    fn news(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Answer(generation, answer) => {
                let before = self.asking.shown().map(|s| s.intent.clone());
                if !self.asking.take(*generation, answer) {
                    return Vec::new();
                }
                if self.asking.shown().map(|s| &s.intent) != before.as_ref() {
                    (self.chosen, self.follow) = (None, true);
                }
                self.take_answer()
            }
            Message::Results(lookup, answer) => self.take_lookup(lookup, answer),
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
                self.clear_measurements();
                self.ask()
            }
            Message::Event(Event::Catalogue(change)) => {
                self.catalogue = Arc::clone(&change.catalogue);
                self.clear_measurements();
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
                self.filter.clear();
                self.focus = Focus::Results;
                self.ask()
            }
            Message::Picked(PickerKind::Domain, domain) => {
                self.options.domain = (!domain.is_empty()).then(|| domain.clone());
                self.ask()
            }
            Message::Picked(PickerKind::CopyAs, what) => self.copy_as(what),
            Message::Picked(PickerKind::SkillToOpen, id) => self.open_by_name(&SkillId::new(id)),
            _ => Vec::new(),
        }
    }

    /// Rebuilds the list from the answer that is shown.
    fn take_answer(&mut self) -> Vec<Effect> {
        self.opened = None;
        let answer = self.asking.shown().map(|s| Arc::clone(&s.answer));
        if answer.is_some() && !self.filter.text().trim().is_empty() {
            return self.filter_results();
        }
        self.listing.set(answer, "");
        self.set_rows();
        match self.opening.clone() {
            Some(id) => self.look_up(id),
            None => self.find_chosen(),
        }
    }

    /// Requests the results that match the filter. The current list stays until they arrive.
    fn filter_results(&mut self) -> Vec<Effect> {
        let Some(shown) = self.asking.shown() else { return Vec::new() };
        let text = self.filter.text().to_owned();
        if text.trim().is_empty() {
            self.listing.set(Some(Arc::clone(&shown.answer)), "");
            self.set_rows();
            return self.find_chosen();
        }
        let mut request = self.options.request(&shown.intent, shown.typing);
        request.filter.clone_from(&text);
        let list = self.listing.next();
        vec![Effect::Results { request, lookup: Lookup::Filter { list, text } }]
    }

    /// Requests the page of a result if it is not loaded.
    fn want_place(&mut self, place: usize) {
        let Some(shown) = self.asking.shown() else { return };
        let mut request = self.options.request(&shown.intent, shown.typing);
        if let Some(page) = self.listing.missing(place) {
            request.offset = page * listing::PAGE_SIZE;
            self.listing.filter().clone_into(&mut request.filter);
            let lookup = Lookup::Page { list: self.listing.number(), page };
            self.wanted.push(Effect::Results { request, lookup });
        }
    }

    /// Discards measurements: skills may have changed.
    fn clear_measurements(&mut self) {
        self.levels.clear();
        self.details.clear();
        self.body_lines.clear();
        self.asked_for.clear();
    }

    /// Records data that a frame lacked, once.
    fn want(&mut self, want: ResultRequest) {
        if !self.asked_for.insert(want.clone()) {
            return;
        }
        match want {
            ResultRequest::Levels(id) => match self.wanted.iter_mut().find_map(|e| match e {
                Effect::Levels(ids) => Some(ids),
                _ => None,
            }) {
                Some(ids) => ids.push(id),
                None => self.wanted.push(Effect::Levels(vec![id])),
            },
            ResultRequest::Detail(id) => self.wanted.push(Effect::Describe(id)),
            ResultRequest::Body(id, intent) => self.wanted.push(Effect::BodyLines(id, intent)),
        }
    }
}
