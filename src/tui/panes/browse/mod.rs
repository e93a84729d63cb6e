//! Pane 1: every skill that was found, and its content.

mod budget;
mod collisions;
mod collisions_view;
mod commands;
mod contract_view;
mod copy;
mod detail;
mod detail_view;
mod disclosure_view;
mod empty_view;
mod files_view;
mod items;
mod keys;
mod list;
mod list_view;
mod rivals_view;
mod skill_list;
mod token_counts;
mod view;

use std::sync::Arc;

use self::budget::SelectedClient;
use self::detail::Detail;
use self::skill_list::SkillList;
use crate::pane::{Effect, Message, PickerKind, Target};
use crate::session_requests::SessionResponse;
use skills_api::Event;
use skills_registry::{Catalog, ScanProgress};
use skills_skill::SkillId;

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    List,
    Filter,
    Detail,
}

/// The state of pane 1.
#[derive(Default)]
pub struct Browse {
    scan: ScanProgress,
    list: SkillList,
    detail: Detail,
    map: collisions::Map,
    focus: Focus,
    visit: Option<SkillId>,
}

impl Browse {
    /// Creates an empty pane with the focus on the list.
    pub fn new() -> Self {
        Self { list: SkillList::new(), ..Self::default() }
    }

    fn take_catalog(&mut self, catalog: &Arc<Catalog>) -> Vec<Effect> {
        self.detail.forget();
        self.list.set_catalog(catalog);
        let refresh = self.detail.skill.as_ref().map(|d| (d.summary.skill_id.clone(), d.skill.digest));
        let mut effects = self.selection_changed();
        if effects.is_empty()
            && let Some((id, digest)) = refresh
            && catalog.by_id(id.as_str()).is_none_or(|s| s.digest != digest)
        {
            effects.push(Effect::Describe(id));
        }
        if let Some(id) = self.visit.take() {
            effects.extend(self.go_to(&id));
        }
        effects
    }

    /// Requests the data of the skill under the cursor if it is not the same as before.
    fn selection_changed(&mut self) -> Vec<Effect> {
        let selected = self.list.take_selection();
        selected.map_or_else(Vec::new, |(id, is_readable)| self.detail.select(&id, is_readable))
    }

    /// Moves the cursor to a skill, resetting a filter or collapsed group that hides it.
    fn go_to(&mut self, id: &SkillId) -> Vec<Effect> {
        if !self.list.go_to(id) {
            self.visit = Some(id.clone());
            return Vec::new();
        }
        self.focus = Focus::List;
        self.map.is_open = false;
        self.selection_changed()
    }

    fn handle_message(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Catalog(catalog) => return self.take_catalog(catalog),
            Message::Event(Event::Catalog(change)) => {
                // The last change of the first scan may arrive after its result was read.
                let is_known = self.list.shows(&change.catalog);
                self.list.note_change(change, self.scan.done && !is_known);
                let mut effects = self.take_catalog(&change.catalog);
                self.detail.forget_rivals();
                effects.extend(self.map.forget());
                if let Some(client) = &self.list.client.view {
                    effects.extend(SelectedClient::request(&client.client));
                }
                effects.extend(self.list.all_tokens());
                return effects;
            }
            Message::Event(Event::Scan(progress)) => self.scan = *progress,
            Message::Levels(levels) => self.list.take_levels(levels),
            Message::ClientView(view) => {
                self.list.set_client(view.as_ref());
                return self.selection_changed();
            }
            Message::Picked(PickerKind::Client, id) => return SelectedClient::request(id),
            Message::Session(SessionResponse::Budget(client, Ok(view))) => {
                self.list.set_budget(client, view);
            }
            Message::Session(SessionResponse::Budget(_, Err(error))) => {
                let what = "the client's budget".to_owned();
                return vec![Effect::ErrorNotice(what, error.message.clone())];
            }
            Message::Collisions(report) => return self.map.take_report(report),
            Message::Pair(a, b, report) => self.map.take_pair(a, b, report),
            Message::Picked(PickerKind::CopyAs, what) => {
                let copied = self.list.shown().and_then(|shown| copy::copy(shown, what));
                return copied.into_iter().collect();
            }
            Message::Visit(Target::Skill(id)) => return self.go_to(id),
            Message::Picked(PickerKind::SkillToOpen, id) => return self.go_to(&SkillId::new(id)),
            other => return self.detail.take(other, self.list.selected.as_ref()),
        }
        Vec::new()
    }
}
