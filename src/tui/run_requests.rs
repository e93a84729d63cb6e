//! Requests of panes about runs and their responses: the operations of [`skills_api::RunClient`] as values.

use std::sync::Arc;

use crate::widgets::relative_time::moment_since;
use skills_api::{
    AttachPreview, AttachRequest, Attached, Board, CapabilityExplanation, Code, CommandResult, ContractView,
    Error, FacetList, LaunchRequest, Launched, ListFilter, LocalFiles, RunCommand, RunDetail, SavedView,
    SessionAccess, SharedClient, TargetChoice, ViewList, WorkerList,
};
use skills_config::Invocation;
use skills_skill::{AttachTarget, SkillId};
use skills_store::{RunEvent, RunFilter, RunId, RunPage};

/// A request about runs. A `generation` or `ticket` is returned with the response.
#[derive(Debug, Clone, PartialEq)]
pub enum RunRequest {
    Page {
        filter: Box<RunFilter>,
        /// Distinguishes the pane's requests.
        generation: u64,
    },
    /// Load a complete run.
    Detail(RunId),
    /// Execute a command on a run.
    Command {
        run: RunId,
        command: Box<RunCommand>,
        /// Distinguishes commands.
        ticket: u64,
    },
    Launch {
        /// The skill and its inputs.
        request: Box<LaunchRequest>,
        /// Distinguishes launches.
        ticket: u64,
    },
    /// Preview an attachment.
    AttachPreview {
        /// The skill and the target.
        request: Box<AttachRequest>,
        /// Distinguishes previews.
        generation: u64,
    },
    /// Attach a skill to a target.
    Attach {
        /// The skill and the target.
        request: Box<AttachRequest>,
        /// Distinguishes attachments.
        ticket: u64,
    },
    /// List existing targets.
    Targets {
        target_type: AttachTarget,
        /// The text that they contain.
        text: String,
        /// Maximum number of targets.
        limit: usize,
        /// Distinguishes requests.
        generation: u64,
    },
    /// Load the board of the last hours.
    Board {
        /// Number of hours.
        hours: u32,
    },
    /// Count the runs that match a filter, and load its facets.
    Facets(String),
    /// List saved views, if they differ from the given ones.
    Views(Option<Vec<SavedView>>),
    /// Save a filter under a name.
    SaveView { name: String, filter: String },
    /// Drain a worker, or let it claim runs again.
    Drain { worker: String, drain: bool },
    /// List the skills that have a contract.
    Launchable,
    /// Load the contract of a skill.
    Contract(String),
    /// Explain which binding executes a capability.
    Explain(String),
}

/// An interruption of the updates of runs.
#[derive(Debug, Clone)]
pub struct Outage {
    /// The reason.
    pub error: Error,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub since_ms: i64,
    /// When the core last responded.
    pub seen_ms: Option<i64>,
}

impl Outage {
    /// Creates the interruption that an error reports; it began now, unless the error contains its beginning.
    #[must_use]
    pub fn new(error: Error, seen_ms: Option<i64>, now_ms: i64) -> Self {
        let reported = error.reason.as_ref().and_then(|reason| reason.get("since_ms")?.as_i64());
        let since_ms = reported.unwrap_or(now_ms);
        Self { error, since_ms, seen_ms: seen_ms.map(|at| at.min(since_ms)) }
    }

    /// Returns whether the run store is what does not work.
    #[must_use]
    pub fn is_of_store(&self) -> bool {
        self.error.code == Code::StoreUnavailable
    }

    /// Returns whether nothing can be read, so that all figures are outdated. A store that is full or read-only can be
    /// read.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        let cause = self.error.reason.as_ref().and_then(|reason| reason.get("cause")?.as_str());
        let is_readable = matches!(cause, Some("disk_full" | "read_only"));
        (self.is_of_store() && !is_readable) || self.error.is_service_unreachable()
    }

    /// Returns what does not work.
    #[must_use]
    pub fn what(&self) -> &'static str {
        match (self.is_of_store(), self.is_unreachable()) {
            (true, true) => "store unreachable",
            (true, false) => "store unavailable",
            (false, true) => "service unreachable",
            (false, false) => "no live updates",
        }
    }

    /// Describes it with the time of the last data, the longer text first.
    #[must_use]
    pub fn texts(&self, data_ms: Option<i64>, now_ms: i64) -> Vec<String> {
        let what = self.what();
        let since = moment_since(self.since_ms, now_ms);
        let Some(data) = data_ms.or(self.seen_ms).map(|at| moment_since(at, now_ms)) else {
            return vec![format!("{what} since {since}")];
        };
        vec![format!("{what} since {since}, last data {data}"), format!("{what}, last data {data}")]
    }
}

/// A response or event about runs.
#[derive(Debug, Clone)]
pub enum RunResponse {
    /// Events are complete from now on: earlier responses may be outdated.
    Following,
    /// Runs were deleted, which causes no event.
    Deleted,
    /// Run events are unavailable: what is shown may be stale or empty.
    NotFollowing(Outage),
    /// Events in the store's order.
    Events(Arc<[RunEvent]>),
    /// Response to [`RunRequest::Page`].
    Page(u64, Result<Arc<RunPage>, Error>),
    /// Response to [`RunRequest::Detail`].
    Detail(RunId, Result<Arc<RunDetail>, Error>),
    /// Response to [`RunRequest::Command`]: the ticket, the run, the outcome.
    CommandDone(u64, RunId, Result<Arc<CommandResult>, Error>),
    /// Response to [`RunRequest::Launch`].
    Launched(u64, Result<Arc<Launched>, Error>),
    /// Response to [`RunRequest::AttachPreview`].
    AttachPreview(u64, Result<Arc<AttachPreview>, Error>),
    /// Response to [`RunRequest::Attach`].
    Attached(u64, Result<Arc<Attached>, Error>),
    /// Response to [`RunRequest::Targets`].
    Targets(u64, Result<Arc<[TargetChoice]>, Error>),
    /// Response to [`RunRequest::Board`].
    Board(u32, Result<Arc<Board>, Error>),
    /// Response to [`RunRequest::Facets`].
    Facets(String, Result<Arc<FacetList>, Error>),
    /// Response to [`RunRequest::Views`]; `None` if they are unchanged.
    Views(Result<Option<Arc<ViewList>>, Error>),
    /// Response to [`RunRequest::SaveView`]: the name, and the current views.
    ViewSaved(String, Result<Arc<ViewList>, Error>),
    /// Response to [`RunRequest::Drain`].
    Drained(Result<Arc<WorkerList>, Error>),
    /// Response to [`RunRequest::Launchable`]: id and description of each.
    Launchable(Result<Arc<[(SkillId, String)]>, Error>),
    /// Response to [`RunRequest::Contract`].
    Contract(String, Result<Arc<ContractView>, Error>),
    /// Response to [`RunRequest::Explain`].
    Explained(String, Result<Arc<CapabilityExplanation>, Error>),
}

impl RunResponse {
    /// Adds the options that this process was started with to the commands that the response contains.
    #[must_use]
    pub fn completed(self, called: &Invocation) -> Self {
        let with_commands = |error: Error| Error { message: called.completed_in(&error.message), ..error };
        match self {
            Self::AttachPreview(generation, Ok(mut preview)) => {
                let preview_mut = Arc::make_mut(&mut preview);
                preview_mut.cli = called.completed(&preview_mut.cli);
                for check in &mut preview_mut.checks {
                    check.note = called.completed_in(&check.note);
                }
                for permission in &mut preview_mut.may_do {
                    *permission = called.completed_in(permission);
                }
                Self::AttachPreview(generation, Ok(preview))
            }
            Self::Contract(skill, Ok(mut view)) => {
                if let Some(why) = &view.blocked {
                    let blocked = Some(called.completed_in(why));
                    Arc::make_mut(&mut view).blocked = blocked;
                }
                Self::Contract(skill, Ok(view))
            }
            Self::Detail(run, Ok(mut detail)) => {
                if detail.sheet.as_ref().is_some_and(|preview| preview.blocked.is_some()) {
                    let sheet = Arc::make_mut(&mut detail).sheet.as_mut();
                    if let Some(why) = sheet.and_then(|preview| preview.blocked.as_mut()) {
                        *why = called.completed_in(why);
                    }
                }
                Self::Detail(run, Ok(detail))
            }
            Self::Contract(skill, Err(error)) => Self::Contract(skill, Err(with_commands(error))),
            Self::Launched(ticket, Err(error)) => Self::Launched(ticket, Err(with_commands(error))),
            Self::Launchable(Err(error)) => Self::Launchable(Err(with_commands(error))),
            Self::Attached(ticket, Err(error)) => Self::Attached(ticket, Err(with_commands(error))),
            Self::AttachPreview(generation, Err(error)) => {
                Self::AttachPreview(generation, Err(with_commands(error)))
            }
            Self::Page(generation, Err(error)) => Self::Page(generation, Err(with_commands(error))),
            Self::Detail(run, Err(error)) => Self::Detail(run, Err(with_commands(error))),
            Self::CommandDone(ticket, run, Err(error)) => {
                Self::CommandDone(ticket, run, Err(with_commands(error)))
            }
            Self::NotFollowing(outage) => {
                Self::NotFollowing(Outage { error: with_commands(outage.error), ..outage })
            }
            other => other,
        }
    }
}

impl RunRequest {
    /// Returns the operation's name for the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Page { .. } => "runs",
            Self::Detail(_) => "run",
            Self::Command { .. } => "order",
            Self::Launch { .. } => "launch",
            Self::AttachPreview { .. } => "attach_preview",
            Self::Attach { .. } => "attach",
            Self::Targets { .. } => "target_choices",
            Self::Board { .. } => "board",
            Self::Facets(_) => "facets",
            Self::Views(_) => "views",
            Self::SaveView { .. } => "save_view",
            Self::Drain { .. } => "drain",
            Self::Launchable => "list",
            Self::Contract(_) => "contract",
            Self::Explain(_) => "explain_capability",
        }
    }

    /// Describes what the user waits for with an empty screen; `None` for content that is filled in later.
    pub fn awaited(&self) -> Option<&'static str> {
        match self {
            Self::Launchable => Some("the skills that can be launched"),
            Self::Contract(_) => Some("the skill's contract"),
            Self::Launch { .. } => Some("the launch"),
            Self::Attach { .. } => Some("the attachment"),
            _ => None,
        }
    }

    /// Sends the request to the core, with the local files that the user may name; a failure is a response too.
    pub async fn send(self, core: SharedClient, local_files: Option<LocalFiles>) -> RunResponse {
        match self {
            Self::Page { filter, generation } => {
                RunResponse::Page(generation, core.runs(*filter).await.map(Arc::new))
            }
            Self::Detail(run) => {
                let detail = core.run(&run.0).await.map(Arc::new);
                RunResponse::Detail(run, detail)
            }
            Self::Command { run, command, ticket } => {
                let result = core.send_command(&run.0, *command).await.map(Arc::new);
                RunResponse::CommandDone(ticket, run, result)
            }
            Self::Launch { request, ticket } => {
                RunResponse::Launched(ticket, core.launch(*request).await.map(Arc::new))
            }
            Self::AttachPreview { request, generation } => {
                let request = AttachRequest { local_files, ..*request };
                RunResponse::AttachPreview(generation, core.attach_preview(request).await.map(Arc::new))
            }
            Self::Attach { request, ticket } => {
                let request = AttachRequest { local_files, ..*request };
                RunResponse::Attached(ticket, core.attach(request).await.map(Arc::new))
            }
            Self::Targets { target_type, text, limit, generation } => {
                let sessions = SessionAccess::default();
                let found =
                    core.target_choices(target_type, &text, limit, &sessions, local_files.as_ref()).await;
                RunResponse::Targets(generation, found.map(Into::into))
            }
            Self::Board { hours } => RunResponse::Board(hours, core.board(hours).await.map(Arc::new)),
            Self::Facets(filter) => {
                let list = core.facets(&filter).await.map(Arc::new);
                RunResponse::Facets(filter, list)
            }
            Self::Views(known) => {
                let is_changed = |list: &ViewList| known.as_ref() != Some(&list.views);
                RunResponse::Views(core.views().await.map(|list| is_changed(&list).then(|| Arc::new(list))))
            }
            Self::SaveView { name, filter } => {
                let saved = core.save_view(&name, Some(&filter), None).await.map(Arc::new);
                RunResponse::ViewSaved(name, saved)
            }
            Self::Drain { worker, drain } => {
                RunResponse::Drained(core.drain(&worker, drain, None).await.map(Arc::new))
            }
            Self::Launchable => {
                let listed = core.list(ListFilter::default()).await;
                RunResponse::Launchable(listed.map(|list| {
                    let ready = list
                        .skills
                        .into_iter()
                        .filter(|skill| skill.has_contract && skill.shadowed_by.is_none());
                    ready.map(|skill| (skill.skill_id, skill.description)).collect()
                }))
            }
            Self::Contract(skill) => {
                let contract = core.contract(&skill).await.map(Arc::new);
                RunResponse::Contract(skill, contract)
            }
            Self::Explain(capability) => {
                let explained = core.explain_capability(&capability).await.map(Arc::new);
                RunResponse::Explained(capability, explained)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use skills_skill::contract;

    const WHY: &str = "it is not trusted; run `skills trust a`";
    const COMPLETED: &str = "it is not trusted; run `skills --demo trust a`";

    #[test]
    fn commands_in_responses_repeat_the_options() {
        let called = Invocation::with(vec!["--demo".to_owned()]);
        let error = || Error::new(Code::Untrusted, WHY);
        for response in [
            RunResponse::Contract("a".to_owned(), Err(error())),
            RunResponse::Launched(1, Err(error())),
            RunResponse::Launchable(Err(error())),
            RunResponse::Attached(1, Err(error())),
            RunResponse::AttachPreview(1, Err(error())),
        ] {
            let message = match response.completed(&called) {
                RunResponse::Contract(_, Err(error))
                | RunResponse::Launched(_, Err(error))
                | RunResponse::Launchable(Err(error))
                | RunResponse::Attached(_, Err(error))
                | RunResponse::AttachPreview(_, Err(error)) => error.message,
                other => panic!("{other:?}"),
            };
            assert_eq!(message, COMPLETED);
        }
        let source = "id: demo.order\nsteps:\n  - { id: a, uses: x.y }\n";
        let view = ContractView {
            skill_id: SkillId::new("a"),
            contract: contract::parse(Path::new("skill.yaml"), source).0.unwrap(),
            digest: String::new(),
            steps: Vec::new(),
            blocked: Some(WHY.to_owned()),
            findings: Vec::new(),
            isolation: String::new(),
        };
        let response = RunResponse::Contract("a".to_owned(), Ok(Arc::new(view))).completed(&called);
        let RunResponse::Contract(_, Ok(view)) = &response else { panic!("{response:?}") };
        assert_eq!(view.blocked.as_deref(), Some(COMPLETED));
        let preview = AttachPreview {
            checks: Vec::new(),
            reason: None,
            target_label: None,
            content: None,
            content_bytes: None,
            input_problems: Vec::new(),
            effect_mode: None,
            may_do: vec![WHY.to_owned()],
            cli: String::new(),
            curl: String::new(),
        };
        let response = RunResponse::AttachPreview(1, Ok(Arc::new(preview))).completed(&called);
        let RunResponse::AttachPreview(_, Ok(preview)) = &response else { panic!("{response:?}") };
        assert_eq!(preview.may_do, [COMPLETED]);
    }
}
