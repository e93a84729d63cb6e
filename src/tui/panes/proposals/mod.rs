//! Pane 7: proposed changes to skills, the effects of each, and their decisions.

mod detail_view;
mod diff_view;
mod keys;
mod list_view;
mod summary_list;
mod view;

pub use self::diff_view::changed_lines;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::detail_view::ProposalText;
use self::summary_list::SummaryList;
use crate::overlay::{DialogSpec, ProposalCommand};
use crate::pane::{Effect, Message, PaneId, Target};
use crate::proposal_requests::{ProposalPaneRequest, ProposalPaneResponse};
use skills_api::{Code, Error, Event, ProposalList, ProposalState, ProposalView};
use skills_registry::Catalog;

/// Interval at which the active pane polls for changes by other processes.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of cached proposals.
const MAX_VIEWS: usize = 64;

/// The states in the order of the list.
const GROUPS: [ProposalState; 4] =
    [ProposalState::Waiting, ProposalState::Approved, ProposalState::Denied, ProposalState::RolledBack];

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    List,
    Filter,
    Detail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Blank,
    Group(ProposalState),
    /// A proposal, by its index in the list.
    Proposal(usize),
}

/// The state of pane 7.
#[derive(Default)]
pub struct Proposals {
    catalog: Option<Arc<Catalog>>,
    list: SummaryList,
    error: Option<Error>,
    focus: Focus,
    views: HashMap<String, Arc<ProposalView>>,
    /// Requested proposals whose response is pending.
    pending: Vec<String>,
    text: ProposalText,
    /// When the list was last requested; `None` while a request is in progress.
    looked: Option<Instant>,
    looking: bool,
}

impl Proposals {
    const ID: PaneId = PaneId::Proposals;

    /// Creates an empty pane with the focus on the list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the selected proposal, once loaded.
    fn view_of_selected(&self) -> Option<&Arc<ProposalView>> {
        self.views.get(self.list.selected.as_ref()?)
    }

    fn request_list(&mut self) -> Vec<Effect> {
        self.looking = true;
        vec![Effect::Proposals(ProposalPaneRequest::List(self.list.list.clone()))]
    }

    /// Requests the selected proposal, unless it is loaded or already requested.
    fn request_selected(&mut self) -> Vec<Effect> {
        let Some(id) = self.list.selected.clone() else { return Vec::new() };
        if self.views.contains_key(&id) || self.pending.contains(&id) {
            return Vec::new();
        }
        self.pending.push(id.clone());
        vec![Effect::Proposals(ProposalPaneRequest::Show(id))]
    }

    /// Rebuilds the rows; the text of another proposal is shown from its top.
    fn rebuild(&mut self) {
        let is_other = self.list.rebuild();
        self.text.reset_if(is_other);
    }

    fn handle_message(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Proposals(ProposalPaneResponse::Listed(listed)) => self.take_list(listed),
            Message::Proposals(ProposalPaneResponse::Shown(id, shown)) => {
                self.pending.retain(|pending| pending != id);
                match shown {
                    Ok(view) => {
                        if self.views.len() >= MAX_VIEWS {
                            self.views.clear();
                        }
                        self.views.insert(id.clone(), Arc::clone(view));
                        Vec::new()
                    }
                    // It is requested again with the catalog, or with its index.
                    Err(error) if error.code == Code::NotReady => Vec::new(),
                    Err(error) => {
                        vec![Effect::ErrorNotice(
                            "cannot show the proposal".to_owned(),
                            error.message.clone(),
                        )]
                    }
                }
            }
            Message::Proposals(ProposalPaneResponse::Acted(id, result)) => {
                self.views.remove(id);
                let mut effects = match result {
                    Ok(result) => {
                        vec![Effect::Toast(format!("{}: {}", result.proposal.skill_id, result.note))]
                    }
                    Err(error) => {
                        vec![Effect::ErrorNotice("nothing was decided".to_owned(), error.message.clone())]
                    }
                };
                effects.extend(self.request_list());
                effects.extend(self.request_selected());
                effects
            }
            // Checks and effects of waiting proposals depend on the skills.
            Message::Catalog(catalog) => self.skills_changed(catalog),
            Message::Event(Event::Catalog(change)) => self.skills_changed(&change.catalog),
            Message::Event(Event::Index(progress)) if progress.done => self.request_selected(),
            Message::Visit(Target::Proposal(id)) => {
                self.list.filter.clear();
                self.list.selected = Some(id.clone());
                self.rebuild();
                let mut effects = self.request_list();
                effects.extend(self.request_selected());
                effects
            }
            _ => Vec::new(),
        }
    }

    /// Handles a change of the catalog: checks and effects of waiting proposals depend on the skills.
    fn skills_changed(&mut self, catalog: &Arc<Catalog>) -> Vec<Effect> {
        self.catalog = Some(Arc::clone(catalog));
        self.views.clear();
        let mut effects = self.request_list();
        effects.extend(self.request_selected());
        effects
    }

    fn take_list(&mut self, listed: &Result<Option<Arc<ProposalList>>, Error>) -> Vec<Effect> {
        self.looking = false;
        match listed {
            Ok(None) => Vec::new(),
            Ok(Some(list)) => {
                self.error = None;
                let before = self.list.list.replace(Arc::clone(list));
                // Reload proposals that were decided elsewhere.
                for one in &list.proposals {
                    let mut earlier = before.iter().flat_map(|before| &before.proposals);
                    if earlier.any(|old| old.proposal_id == one.proposal_id && old.state != one.state) {
                        self.views.remove(&one.proposal_id);
                    }
                }
                self.rebuild();
                let mut effects = self.request_selected();
                let more = before.filter(|before| before.waiting < list.waiting);
                effects.extend(
                    more.map(|_| Effect::Awaited("a proposal is waiting for approval (7)".to_owned())),
                );
                effects
            }
            Err(error) => {
                self.error = Some(error.clone());
                Vec::new()
            }
        }
    }

    /// Opens the dialog for a command on the selected proposal.
    fn open_dialog(&self, command: ProposalCommand) -> Vec<Effect> {
        let Some(view) = self.view_of_selected() else { return Vec::new() };
        vec![Effect::OpenDialog(Box::new(DialogSpec::Proposal { view: Arc::clone(view), command }))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use crate::pane::Pane as _;
    use skills_api::IndexProgress;

    #[test]
    fn the_copied_command_quotes_the_id() {
        let mut pane = Proposals::new();
        pane.list.selected = Some("one; echo two".to_owned());
        let copied = pane.act(Action::CopyAs);
        assert!(
            matches!(&copied.unwrap()[..], [Effect::CopyCommand(line, _)] if line == "skills proposals show 'one; echo two'")
        );
    }

    #[test]
    fn a_proposal_is_requested_again_with_its_skills() {
        let mut pane = Proposals::new();
        pane.list.selected = Some("one".to_owned());
        assert_eq!(pane.request_selected().len(), 1);
        let shown = |code| {
            let error = Error::new(code, "skills are still being loaded");
            Message::Proposals(ProposalPaneResponse::Shown("one".to_owned(), Err(error)))
        };
        assert_eq!(pane.handle_message(&shown(Code::NotReady)), []);
        let indexed = IndexProgress { done: true, ..IndexProgress::default() };
        let requested = pane.handle_message(&Message::Event(Event::Index(indexed)));
        assert!(matches!(&requested[..], [Effect::Proposals(ProposalPaneRequest::Show(id))] if id == "one"));
        assert!(matches!(&pane.handle_message(&shown(Code::NotFound))[..], [Effect::ErrorNotice(..)]));
    }
}
