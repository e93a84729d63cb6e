//! Requests to the router, and which response is shown: never one older than what is on screen.

use std::sync::Arc;

use super::listing::PAGE_SIZE;
use crate::action::Action;
use skills_api::{Error, IndexProgress};
use skills_config::{arguments, option};
use skills_discovery::{Answer, Policy, Request};
use skills_registry::ScanProgress;
use skills_skill::Role;

/// The options of a request in addition to its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How rules combine with the text score.
    pub policy: Policy,
    pub role: Option<Role>,
    pub domain: Option<String>,
    /// Whether headings and bodies are searched.
    pub with_body: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { policy: Policy::Blended, role: None, domain: None, with_body: true }
    }
}

impl Options {
    /// Executes an action; returns whether it changes an option.
    pub fn act(&mut self, action: Action) -> bool {
        match action {
            Action::TogglePolicy => self.toggle_policy(),
            Action::CycleRole => self.cycle_role(),
            Action::ToggleBody => self.with_body = !self.with_body,
            _ => return false,
        }
        true
    }

    /// Cycles the role filter: any, procedure, utility, sidecar.
    fn cycle_role(&mut self) {
        self.role = match self.role {
            None => Some(Role::Procedure),
            Some(Role::Procedure) => Some(Role::Utility),
            Some(Role::Utility) => Some(Role::Sidecar),
            Some(Role::Sidecar) => None,
        };
    }

    fn toggle_policy(&mut self) {
        self.policy = match self.policy {
            Policy::Blended => Policy::Strict,
            Policy::Strict => Policy::Blended,
        };
    }

    /// Returns the request for the first page of results.
    pub fn request(&self, intent: &str, typing: bool) -> Request {
        Request {
            intent: intent.to_owned(),
            domain: self.domain.iter().cloned().collect(),
            role_filter: self.role,
            limit: PAGE_SIZE,
            policy: self.policy,
            with_body: self.with_body,
            typing,
            ..Request::default()
        }
    }

    /// Returns the equivalent command line.
    pub fn command_line(&self, intent: &str) -> String {
        let mut options = "--explain".to_owned();
        if self.policy == Policy::Strict {
            options.push_str(" --policy strict");
        }
        if let Some(role) = self.role {
            options = format!("{options} --role {role}");
        }
        if let Some(domain) = &self.domain {
            options = format!("{options} {}", option("--domain", domain));
        }
        if !self.with_body {
            options.push_str(" --no-body");
        }
        format!("skills discover {}", arguments([intent], &options))
    }
}

#[derive(Debug, Clone)]
pub struct RankedAnswer {
    pub intent: String,
    /// Whether its last word may be incomplete.
    pub typing: bool,
    pub answer: Arc<Answer>,
}

/// Requests in progress and the last successful answer.
#[derive(Debug, Default)]
pub struct PendingRequests {
    /// The options of the next request.
    pub options: Options,
    /// How far the skills are loaded that are ranked.
    pub scan: ScanProgress,
    /// How far they are indexed, as last reported.
    index: Option<IndexProgress>,
    /// Number of skills in the catalog.
    pub catalog_size: usize,
    generation: u64,
    /// Whether the last word of the last request may be incomplete.
    typing: bool,
    floor: u64,
    open: Vec<(u64, String, bool)>,
    shown: Option<RankedAnswer>,
    error: Option<Error>,
}

impl PendingRequests {
    /// Increments the generation and returns the request with it.
    pub fn ask(&mut self, intent: &str, typing: bool) -> (Request, u64) {
        self.generation += 1;
        self.typing = typing;
        self.open.push((self.generation, intent.to_owned(), typing));
        (self.options.request(intent, typing), self.generation)
    }

    /// Returns the request of the answer that is shown, with the current options.
    pub fn request(&self) -> Option<Request> {
        self.shown.as_ref().map(|shown| self.options.request(&shown.intent, shown.typing))
    }

    /// Returns how many skills are loaded, until all are: the verdict may still change.
    pub fn reading(&self) -> Option<(usize, usize)> {
        if !self.scan.done && self.scan.parsed < self.scan.found {
            return Some((self.scan.parsed, self.scan.found));
        }
        let answer = &self.shown()?.answer;
        match self.index.filter(|index| !index.done) {
            Some(index) if self.is_incomplete() => Some((index.indexed, index.total)),
            _ => (answer.bodies_missing > 0)
                .then(|| (answer.skills.saturating_sub(answer.bodies_missing), answer.skills)),
        }
    }

    /// Returns whether the answer that is shown lacks skills of the catalog, or bodies.
    fn is_incomplete(&self) -> bool {
        self.shown()
            .is_some_and(|shown| shown.answer.bodies_missing > 0 || shown.answer.skills < self.catalog_size)
    }

    /// Takes the progress of the index; returns whether the request has to be ranked again.
    pub fn take_index(&mut self, progress: IndexProgress) -> bool {
        let was_indexing = self.index.replace(progress).is_some_and(|index| !index.done);
        let is_changed = self.is_incomplete() || (was_indexing && self.shown().is_some());
        is_changed && (progress.done || !self.pending())
    }

    /// Returns whether the last word of the last request may be incomplete.
    pub fn is_typing(&self) -> bool {
        self.typing
    }

    /// Clears the state; responses to requests in progress will be dropped.
    pub fn clear(&mut self) {
        self.floor = self.generation;
        self.typing = false;
        self.open.clear();
        self.shown = None;
        self.error = None;
    }

    /// Handles a response; returns `false` if it is older than what is shown, or was never requested.
    pub fn take(&mut self, generation: u64, answer: &Result<Arc<Answer>, Error>) -> bool {
        if generation <= self.floor {
            return false;
        }
        let Some(at) = self.open.iter().position(|(g, ..)| *g == generation) else { return false };
        let (_, intent, typing) = self.open.swap_remove(at);
        self.open.retain(|(g, ..)| *g > generation);
        self.floor = generation;
        match answer {
            Ok(answer) => {
                self.error = None;
                self.shown = Some(RankedAnswer { intent, typing, answer: Arc::clone(answer) });
            }
            Err(error) => {
                self.error = Some(error.clone());
                // The ranking of another request must not appear under this one.
                self.shown.take_if(|shown| shown.intent != intent);
            }
        }
        true
    }

    /// Returns the last successful answer.
    pub fn shown(&self) -> Option<&RankedAnswer> {
        self.shown.as_ref()
    }

    /// Returns why the last request failed.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Returns whether a request is in progress.
    pub fn pending(&self) -> bool {
        !self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_repeats_the_request_with_quotes() {
        let mut options = Options::default();
        assert_eq!(options.command_line("what's $HOME"), "skills discover 'what'\\''s $HOME' --explain");
        options.toggle_policy();
        options.cycle_role();
        options.with_body = false;
        assert_eq!(
            options.command_line("a"),
            "skills discover a --explain --policy strict --role procedure --no-body"
        );
    }

    #[test]
    fn failed_request_is_not_above_the_ranking_of_another() {
        let mut asking = PendingRequests::default();
        let (_, first) = asking.ask("book an invoice", false);
        let answer = Answer {
            results: Vec::new(),
            attachable: Vec::new(),
            excluded: Vec::new(),
            below_limit: 0,
            fit: skills_discovery::Fit::None,
            verdict: skills_discovery::FitVerdict::default(),
            confidence: None,
            words: Vec::new(),
            matchers: Vec::new(),
            profile: "bodies".to_owned(),
            hints: Vec::new(),
            skills: 0,
            bodies_missing: 0,
            took_us: 0,
        };
        assert!(asking.take(first, &Ok(Arc::new(answer))));
        let refused = || Err(Error::new(skills_api::Code::RateLimited, "in 17 s"));
        let (_, again) = asking.ask("book an invoice", false);
        assert!(asking.take(again, &refused()));
        assert!(asking.shown().is_some(), "of the same question the last answer stays");
        let (_, other) = asking.ask("write release notes", false);
        assert!(asking.take(other, &refused()));
        assert!(asking.shown().is_none() && asking.error().is_some());
    }
}
