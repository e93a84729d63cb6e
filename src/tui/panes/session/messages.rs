//! Messages of the Session pane, and the requests that they cause.

use std::sync::Arc;

use super::external_changes::Change;
use super::{SessionPane, Tab};
use crate::pane::{Effect, Message, Target};
use crate::run_requests::RunResponse;
use crate::session_requests::{Newest, SessionResponse};
use skills_api::{Event, SessionView};
use skills_registry::Catalog;

impl SessionPane {
    pub(super) fn handle_message(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Session(response) => return self.on_response(response),
            Message::Catalog(catalog) => return self.again(catalog),
            Message::Event(Event::Catalog(change)) => return self.again(&change.catalog),
            Message::Event(Event::Replaced) => return self.state.reset(),
            Message::Run(RunResponse::Following) => return self.state.reached(self.context.tab),
            Message::Rendered(key, lines) => self.context.take_rendered(*key, lines),
            Message::Visit(Target::Skill(skill)) => return self.state.load(skill.as_str()),
            Message::Detail(_, Ok(detail)) => return self.state.choose_file(detail).into_iter().collect(),
            Message::Detail(_, Err(error)) => {
                self.state.choosing = None;
                return vec![Effect::ErrorNotice(
                    "the skill's files cannot be listed".to_owned(),
                    error.message.clone(),
                )];
            }
            Message::Picked(kind, value) => return self.state.picked(*kind, value),
            Message::SavedDraft(dialog, typed) => self.state.typed.keep(dialog, typed),
            _ => {}
        }
        Vec::new()
    }

    /// Reloads everything after a change of the catalog, which may change the next call.
    fn again(&mut self, catalog: &Arc<Catalog>) -> Vec<Effect> {
        self.state.catalog = Arc::clone(catalog);
        let session = self.state.session.as_ref();
        let mut effects: Vec<Effect> =
            session.map(|session| self.others.check(session, true)).into_iter().collect();
        effects.extend(self.state.recount(self.context.tab));
        effects
    }

    fn show(&mut self, session: &Arc<SessionView>) {
        if self.state.show(Arc::clone(session)) {
            self.context.reset();
        }
    }

    fn on_response(&mut self, response: &SessionResponse) -> Vec<Effect> {
        match response {
            SessionResponse::Looked(id, newest, changed) => {
                return self.looked(id, newest.as_ref(), changed.as_ref());
            }
            SessionResponse::Session(Ok(session))
            | SessionResponse::Tool(_, _, Some(session))
            | SessionResponse::Review(_, _, Some(session)) => {
                self.others.answered();
                self.show(session);
            }
            SessionResponse::Session(Err(_)) | SessionResponse::Tool(..) | SessionResponse::Review(..) => {
                self.others.answered();
            }
            _ => {}
        }
        self.state.take(response, self.context.tab)
    }

    fn looked(
        &mut self,
        id: &str,
        newest: Option<&Newest>,
        changed: Option<&Arc<SessionView>>,
    ) -> Vec<Effect> {
        let before = self.state.session.as_deref();
        let change = self.others.compare(before, id, newest, changed.map(|after| &**after));
        let Some((change, after)) = change.zip(changed) else { return Vec::new() };
        self.show(after);
        match change {
            Change::Files if self.context.tab == Tab::PerLevel => self.state.count_levels(),
            Change::Files => Vec::new(),
            Change::Session(difference) => {
                let mut effects = self.state.refresh(self.context.tab);
                effects.push(Effect::Toast(format!("changed by another process: {difference}")));
                effects
            }
        }
    }
}
