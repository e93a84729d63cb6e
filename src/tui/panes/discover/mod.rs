//! Pane 2: a request, the skills that match it, and why. Every keystroke ranks again; the last successful answer stays
//! on screen until a newer one arrives.

mod ask;
mod commands;
mod comparison;
mod comparison_view;
mod history;
mod intent_view;
mod keys;
mod listing;
mod measurements;
mod request_form;
mod result_list;
mod results_view;
mod rows;
mod view;
mod why_view;

use std::sync::Arc;

use ratatui::layout::Rect;

use self::ask::PendingRequests;
pub(crate) use self::comparison::compare as compare_hits;
pub(crate) use self::comparison_view::draw_scored;
pub use self::history::History;
pub use self::listing::Lookup;
use self::measurements::Measurements;
use self::request_form::RequestForm;
use self::result_list::ResultList;
pub(crate) use self::why_view::draw_differences;
use crate::pane::{Effect, Message, PaneId, PickerKind, Target};
use skills_api::Event;
use skills_registry::Catalog;
use skills_skill::SkillId;

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    Intent,
    Results,
    Filter,
    Why,
}

/// The state of pane 2.
#[derive(Default)]
pub struct Discover {
    form: RequestForm,
    asking: PendingRequests,
    focus: Focus,
    list: ResultList,
    measured: Measurements,
    /// Area of the explanation in the last frame.
    why_area: Rect,
}

impl Discover {
    /// Creates an empty pane with the focus on the request.
    pub fn new(history: History) -> Self {
        let form = RequestForm { history, ..RequestForm::default() };
        Self { form, list: ResultList::new(), ..Self::default() }
    }

    pub fn history(&self) -> &History {
        &self.form.history
    }

    /// Ranks the text of the field. An empty field clears the results.
    fn ask(&mut self) -> Vec<Effect> {
        let intent = self.form.field.text();
        if intent.trim().is_empty() {
            self.asking.clear();
            self.list.clear();
            return self.list.take_answer(&self.asking);
        }
        let typing = self.focus == Focus::Intent && self.form.is_at_end();
        let (request, generation) = self.asking.ask(intent, typing);
        vec![Effect::Discover { request, generation }]
    }

    fn take_catalog(&mut self, catalog: &Arc<Catalog>) -> Vec<Effect> {
        self.list.catalog = Arc::clone(catalog);
        self.asking.catalog_size = catalog.entries.len();
        self.measured.clear();
        self.ask()
    }

    fn handle_message(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Answer(generation, answer) => {
                let before = self.asking.shown().map(|s| s.intent.clone());
                if !self.asking.take(*generation, answer) {
                    return Vec::new();
                }
                if self.asking.shown().map(|s| &s.intent) != before.as_ref() {
                    (self.list.chosen, self.list.follow) = (None, true);
                }
                self.list.take_answer(&self.asking)
            }
            Message::Results(lookup, answer) => self.list.take_lookup(lookup, answer, &self.asking),
            Message::Catalog(catalog) => self.take_catalog(catalog),
            Message::Event(Event::Catalog(change)) => self.take_catalog(&change.catalog),
            Message::Event(Event::Scan(scan)) => {
                self.asking.scan = *scan;
                Vec::new()
            }
            Message::Event(Event::Index(progress)) => {
                if self.asking.take_index(*progress) {
                    self.ask()
                } else {
                    Vec::new()
                }
            }
            Message::Visit(Target::Intent(intent)) => {
                self.form.set(intent);
                self.list.filter.clear();
                self.focus = Focus::Results;
                self.ask()
            }
            Message::Picked(PickerKind::Domain, domain) => {
                self.asking.options.domain = (!domain.is_empty()).then(|| domain.clone());
                self.ask()
            }
            Message::Picked(PickerKind::CopyAs, what) => {
                commands::copy_as(what, &self.list, self.command_line()).into_iter().collect()
            }
            Message::Picked(PickerKind::SkillToOpen, id) => self.open_by_name(&SkillId::new(id)),
            other => {
                self.measured.take(other);
                Vec::new()
            }
        }
    }

    /// Returns the command line that ranks the same request.
    fn command_line(&self) -> String {
        self.asking.options.command_line(self.form.field.text())
    }

    /// Opens a skill by its name: in the ranking of the current request, or in Browse if there is none.
    fn open_by_name(&mut self, id: &SkillId) -> Vec<Effect> {
        if self.asking.shown().is_none() || self.list.is_rejected(id) {
            return vec![Effect::Go(PaneId::Browse, Some(Target::Skill(id.clone())))];
        }
        let writing = self.focus == Focus::Intent;
        self.focus = if self.list.folded { Focus::Why } else { Focus::Results };
        self.list.opening = Some(id.clone());
        let finished = if writing { self.finish() } else { Vec::new() };
        if finished.is_empty() { self.list.look_up(id.clone(), &self.asking) } else { finished }
    }
}
