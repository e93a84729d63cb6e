//! Pane 5: running runs, runs that wait for a person, and ended ones; and the details of one run, updated from its
//! events.

mod blocks;
mod board;
mod board_view;
mod browser;
mod commands;
mod compare_view;
mod copy;
mod detail;
mod detail_view;
mod dialogs;
mod empty_view;
mod feed;
mod filter;
mod keys;
mod list;
mod list_view;
mod live;
mod loaded;
mod reading;
mod run_list;
mod sandbox;
mod state_view;
mod steps_view;
mod summaries;
mod table_view;
mod view;
mod views;

use std::sync::Arc;

use self::browser::RunBrowser;
use self::dialogs::{Dialogs, choose_skill};
use self::sandbox::Sandbox;
use crate::pane::{Effect, Message, PickerKind, Target};
use crate::run_requests::{RunRequest, RunResponse};
use crate::widgets::text_width::shown;
use skills_api::{Code, ConnectionState, Error, Event, RunDetail};
use skills_config::RunSettings;
use skills_model::RunState;
use skills_store::{RunId, RunPage};

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    List,
    Filter,
    /// The name under which a filter is saved.
    Name,
    Detail,
}

/// The state of pane 5.
#[derive(Default)]
pub struct Runs {
    browser: RunBrowser,
    dialogs: Dialogs,
    sandbox: Sandbox,
}

impl Runs {
    /// Creates an empty pane with the focus on the list.
    #[must_use]
    pub fn new() -> Self {
        Self::of(RunSettings::default())
    }

    /// Creates a pane with the settings of a configuration.
    #[must_use]
    pub fn of(settings: RunSettings) -> Self {
        Self { browser: RunBrowser::of(settings), ..Self::default() }
    }

    fn handle_message(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Run(response) => {
                let mut effects = self.on_response(response);
                effects.extend(self.browser.read_again());
                return effects;
            }
            Message::Event(Event::Replaced) => {
                self.dialogs.reset();
                return self.browser.reset();
            }
            Message::Catalog(catalog) => {
                self.sandbox.catalog = Arc::clone(catalog);
                return self.check_again();
            }
            Message::Event(Event::Catalog(change)) => {
                self.sandbox.catalog = Arc::clone(&change.catalog);
                return self.check_again();
            }
            Message::Event(Event::Connection(state)) => {
                self.browser.list.runs.disconnected = matches!(state, ConnectionState::Lost { .. });
            }
            Message::Visit(Target::Run(run)) => return self.browser.go_to(run).into_iter().collect(),
            Message::Visit(Target::Happened(run)) => {
                return self.dialogs.open_happened(run, &self.browser.list, &self.browser.detail);
            }
            Message::Visit(Target::Launch(_)) if self.browser.list.runs.disconnected => {
                return vec![Effect::Toast(commands::DISCONNECTED.to_owned())];
            }
            Message::Visit(Target::Launch(skill)) => return self.dialogs.begin_launch(skill.as_str()),
            Message::Picked(PickerKind::Launchable, skill) => return self.dialogs.begin_launch(skill),
            Message::Picked(PickerKind::CopyAs, what) => {
                let run = self.browser.list.record();
                let copied = run.and_then(|run| copy::copy(run, &self.browser.detail, what));
                return copied.into_iter().collect();
            }
            Message::Picked(PickerKind::Checkpoint, choice) => return self.browser.picked(choice),
            Message::Picked(PickerKind::FilterTerm, text) => return self.browser.add_term(text),
            Message::Picked(PickerKind::RunSort, column) => {
                return self.browser.list.sort_by(column.parse().ok());
            }
            Message::Reread => {
                let mut effects = self.browser.list.runs.refresh_all();
                effects.extend(self.browser.request_detail());
                effects.extend(self.browser.request_board());
                effects.push(Effect::Run(RunRequest::Views(None)));
                return effects;
            }
            Message::SavedDraft(dialog, typed) => self.dialogs.typed.keep(dialog, typed),
            _ => {}
        }
        Vec::new()
    }

    fn on_response(&mut self, response: &RunResponse) -> Vec<Effect> {
        let browser = &mut self.browser;
        let failed =
            |what: &str, error: &Error| vec![Effect::ErrorNotice(what.to_owned(), shown(&error.message))];
        match response {
            RunResponse::Following => {
                browser.list.runs.outage = None;
                let mut effects = browser.list.runs.refresh_all();
                effects.extend(browser.request_detail());
                effects.push(Effect::Run(RunRequest::Views(None)));
                effects
            }
            RunResponse::Deleted => browser.list.runs.refresh_all(),
            RunResponse::NotFollowing(outage) => {
                let runs = &mut browser.list.runs;
                if outage.is_of_store() || outage.is_unreachable() {
                    runs.outage = Some(outage.clone());
                }
                if !runs.loaded {
                    runs.error = Some(outage.error.clone());
                }
                runs.refresh_all()
            }
            RunResponse::Events(events) => browser.happened(events),
            RunResponse::Page(generation, answer) => self.page(*generation, answer),
            RunResponse::Detail(run, answer) => self.take_detail(run, answer),
            RunResponse::CommandDone(_, run, Ok(result)) => {
                if result.run.state != RunState::WaitingForHuman {
                    self.dialogs.discard_submitted(Some(run), None);
                }
                browser.list.runs.known.put(result.run.clone(), true);
                browser.list.build();
                let made = result.run.id != *run;
                let effects = made.then(|| browser.go_to(&result.run.id)).flatten();
                // `was already approved by ana` has no subject.
                let of_run =
                    || format!("{} {} ", shown(result.run.title_or_skill()), list::tail(&result.run.id));
                let subject = if result.repeated { of_run() } else { String::new() };
                let note = subject + &shown(&result.note);
                std::iter::once(Effect::Toast(note)).chain(effects).collect()
            }
            RunResponse::CommandDone(_, run, Err(error)) => {
                let mut effects = failed(&format!("{}: failed", shown(&run.0)), error);
                if error.code == Code::NotFound {
                    // If it was deleted, the response removes its row.
                    effects.push(Effect::Run(RunRequest::Detail(run.clone())));
                }
                effects
            }
            RunResponse::Board(hours, answer) => browser.take_board(*hours, answer),
            RunResponse::Facets(filter, answer) => {
                let requested = browser.list.requested_filters();
                browser.list.views.summaries.take(filter, answer, &requested);
                Vec::new()
            }
            RunResponse::Views(Ok(Some(list))) => browser.list.take_views(&list.views),
            RunResponse::ViewSaved(name, Ok(list)) => {
                let mut effects = browser.list.take_views(&list.views);
                effects.push(Effect::Toast(format!("saved as {}", shown(name))));
                effects
            }
            RunResponse::ViewSaved(_, Err(error)) => failed("the view was not saved", error),
            RunResponse::Drained(Ok(_)) => browser.request_board(),
            RunResponse::Drained(Err(error)) => failed("the worker was not changed", error),
            RunResponse::Launched(_, Ok(launched)) => {
                let name = shown(&launched.run.skill_id);
                let note = if launched.worker_alive {
                    format!("{name} launched")
                } else {
                    format!("{name} launched, but no worker is connected")
                };
                browser.list.runs.known.put(launched.run.clone(), true);
                self.dialogs.discard_submitted(None, Some(&launched.run.skill_id));
                let effects = browser.go_to(&launched.run.id);
                std::iter::once(Effect::Toast(note)).chain(effects).collect()
            }
            RunResponse::Launched(_, Err(error)) => failed("nothing was launched", error),
            RunResponse::Launchable(Ok(ready)) => vec![choose_skill(ready, browser.list.record())],
            RunResponse::Launchable(Err(error)) => failed("cannot list skills", error),
            RunResponse::Contract(skill, answer) => {
                if let Ok(view) = answer {
                    self.sandbox.isolation = Some(view.isolation.clone());
                }
                self.dialogs.take_contract(skill, answer).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn page(&mut self, generation: u64, answer: &Result<Arc<RunPage>, Error>) -> Vec<Effect> {
        let list = &mut self.browser.list;
        match answer {
            Ok(page) => {
                let mut effects = self.browser.page(generation, page);
                effects.extend(self.sandbox.probe(&self.browser.list.runs));
                effects
            }
            Err(error) => {
                list.runs.feeds.failed(generation);
                list.runs.error = Some(error.clone());
                list.mark_found()
            }
        }
    }

    /// Reloads what depends on skills after a change of the catalog, such as what would execute a step.
    fn check_again(&mut self) -> Vec<Effect> {
        let mut effects = self.sandbox.probe(&self.browser.list.runs);
        if self.browser.list.runs.loaded {
            effects.extend(self.browser.request_detail());
        }
        effects
    }

    fn take_detail(&mut self, run: &RunId, answer: &Result<Arc<RunDetail>, Error>) -> Vec<Effect> {
        let (mut effects, is_for_view) = self.browser.take_detail(run, answer);
        if is_for_view {
            if let Ok(detail) = answer {
                self.sandbox.isolation = Some(detail.isolation.clone());
            }
            let filter = self.browser.shown_filter();
            let browser = &mut self.browser;
            effects.extend(self.dialogs.open_awaited(run, &browser.list, filter, &mut browser.detail));
        }
        effects
    }
}
