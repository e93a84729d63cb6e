//! What panes ask about runs and what they are notified: the operations of [`skills_api::RunClient`] as plain
//! values.

use std::sync::Arc;

use skills_api::{
    AttachPreview, AttachRequest, Attached, Board, CapabilityExplanation, ContractView, Error, LaunchRequest,
    Launched, ListFilter, LocalFiles, Ordered, RunDetail, RunOrder, SessionAccess, SharedClient,
    TargetChoice, ViewList, WorkerList,
};
use skills_config::Invocation;
use skills_skill::{AttachTarget, SkillId};
use skills_store::{RunEvent, RunFilter, RunId, RunPage};

/// Something a pane asks of the core about runs. Numbers named `generation` and `ticket` come back with the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum RunAsk {
    /// A page of runs.
    Page {
        /// Which.
        filter: Box<RunFilter>,
        /// Tells the pane's questions apart.
        generation: u64,
    },
    /// A complete run.
    Detail(RunId),
    /// Execute an order.
    Order {
        /// On which run.
        run: RunId,
        /// What.
        order: Box<RunOrder>,
        /// Tells orders apart.
        ticket: u64,
    },
    /// Take back the decision on this run that waits for a connection.
    TakeBack(RunId),
    /// Launch a run.
    Launch {
        /// Of what, with what.
        request: Box<LaunchRequest>,
        /// Tells launches apart.
        ticket: u64,
    },
    /// What attaching would do.
    AttachPreview {
        /// What to what.
        request: Box<AttachRequest>,
        /// Tells previews apart.
        generation: u64,
    },
    /// Attach.
    Attach {
        /// What to what.
        request: Box<AttachRequest>,
        /// Tells attachments apart.
        ticket: u64,
    },
    /// References that exist.
    Targets {
        /// Of this type.
        target_type: AttachTarget,
        /// That hold this text.
        text: String,
        /// That many at most.
        limit: usize,
        /// Tells the questions apart.
        generation: u64,
    },
    /// The board of the last hours.
    Board {
        /// How many.
        hours: u32,
    },
    /// Saved views.
    Views,
    /// Save a filter under a name.
    SaveView {
        /// The name.
        name: String,
        /// The filter.
        filter: String,
    },
    /// Let a worker claim no more runs, or claim again.
    Drain {
        /// Its id.
        worker: String,
        /// Whether it claims no more.
        drain: bool,
    },
    /// The skills that have a contract.
    Launchable,
    /// The contract of a skill.
    Contract(String),
    /// Which binding executes a capability, and why.
    Explain(String),
}

/// What a pane is reported about runs.
#[derive(Debug, Clone)]
pub enum RunTold {
    /// From here on every event is reported: what was asked before may be old.
    Following,
    /// Events of runs do not arrive, and why: what is shown may be stale, or empty.
    NotFollowing(Error),
    /// What happened since, in the store's order.
    Events(Arc<[RunEvent]>),
    /// Answer to [`RunAsk::Page`].
    Page(u64, Result<Arc<RunPage>, Error>),
    /// Answer to [`RunAsk::Detail`].
    Detail(RunId, Result<Arc<RunDetail>, Error>),
    /// Answer to [`RunAsk::Order`]: the ticket, the run that was ordered, what it led to.
    Ordered(u64, RunId, Result<Arc<Ordered>, Error>),
    /// Answer to [`RunAsk::TakeBack`]; the order itself is answered too.
    TakenBack(RunId, Result<(), Error>),
    /// Answer to [`RunAsk::Launch`].
    Launched(u64, Result<Arc<Launched>, Error>),
    /// Answer to [`RunAsk::AttachPreview`].
    AttachPreview(u64, Result<Arc<AttachPreview>, Error>),
    /// Answer to [`RunAsk::Attach`].
    Attached(u64, Result<Arc<Attached>, Error>),
    /// Answer to [`RunAsk::Targets`].
    Targets(u64, Result<Arc<[TargetChoice]>, Error>),
    /// Answer to [`RunAsk::Board`].
    Board(u32, Result<Arc<Board>, Error>),
    /// Answer to [`RunAsk::Views`].
    Views(Result<Arc<ViewList>, Error>),
    /// Answer to [`RunAsk::SaveView`]: the name, and the views now.
    ViewSaved(String, Result<Arc<ViewList>, Error>),
    /// Answer to [`RunAsk::Drain`].
    Drained(Result<Arc<WorkerList>, Error>),
    /// Answer to [`RunAsk::Launchable`]: id and description of each.
    Launchable(Result<Arc<[(SkillId, String)]>, Error>),
    /// Answer to [`RunAsk::Contract`].
    Contract(String, Result<Arc<ContractView>, Error>),
    /// Answer to [`RunAsk::Explain`].
    Explained(String, Result<Arc<CapabilityExplanation>, Error>),
}

impl RunTold {
    /// With the options that this process was started with in the commands that it names.
    #[must_use]
    pub fn completed(self, called: &Invocation) -> Self {
        let told = |error: Error| Error { message: called.completed_in(&error.message), ..error };
        match self {
            Self::AttachPreview(generation, Ok(mut preview)) => {
                let whole = Arc::make_mut(&mut preview);
                whole.cli = called.completed(&whole.cli);
                Self::AttachPreview(generation, Ok(preview))
            }
            Self::Page(generation, Err(error)) => Self::Page(generation, Err(told(error))),
            Self::Detail(run, Err(error)) => Self::Detail(run, Err(told(error))),
            Self::Ordered(ticket, run, Err(error)) => Self::Ordered(ticket, run, Err(told(error))),
            Self::NotFollowing(error) => Self::NotFollowing(told(error)),
            other => other,
        }
    }
}

impl RunAsk {
    /// The operation's name, for the log.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Page { .. } => "runs",
            Self::Detail(_) => "run",
            Self::Order { .. } => "order",
            Self::TakeBack(_) => "take_back",
            Self::Launch { .. } => "launch",
            Self::AttachPreview { .. } => "attach_preview",
            Self::Attach { .. } => "attach",
            Self::Targets { .. } => "target_choices",
            Self::Board { .. } => "board",
            Self::Views => "views",
            Self::SaveView { .. } => "save_view",
            Self::Drain { .. } => "drain",
            Self::Launchable => "list",
            Self::Contract(_) => "contract",
            Self::Explain(_) => "explain_capability",
        }
    }

    /// What a person waits for with an empty screen as text; none for what fills in by itself.
    #[must_use]
    pub fn awaited(&self) -> Option<&'static str> {
        match self {
            Self::Launchable => Some("the skills that can be launched"),
            Self::Contract(_) => Some("the skill's contract"),
            Self::Launch { .. } => Some("the launch"),
            Self::Attach { .. } => Some("the attachment"),
            _ => None,
        }
    }

    /// Asks the core, for a person who may name these files; failures are answers too.
    pub async fn put_to(self, core: SharedClient, local_files: Option<LocalFiles>) -> RunTold {
        match self {
            Self::Page { filter, generation } => {
                RunTold::Page(generation, core.runs(*filter).await.map(Arc::new))
            }
            Self::Detail(run) => {
                let detail = core.run(&run.0).await.map(Arc::new);
                RunTold::Detail(run, detail)
            }
            Self::Order { run, order, ticket } => {
                let ordered = core.order(&run.0, *order).await.map(Arc::new);
                RunTold::Ordered(ticket, run, ordered)
            }
            Self::TakeBack(run) => {
                let taken = core.take_back(&run.0);
                RunTold::TakenBack(run, taken)
            }
            Self::Launch { request, ticket } => {
                RunTold::Launched(ticket, core.launch(*request).await.map(Arc::new))
            }
            Self::AttachPreview { request, generation } => {
                let request = AttachRequest { local_files, ..*request };
                RunTold::AttachPreview(generation, core.attach_preview(request).await.map(Arc::new))
            }
            Self::Attach { request, ticket } => {
                let request = AttachRequest { local_files, ..*request };
                RunTold::Attached(ticket, core.attach(request).await.map(Arc::new))
            }
            Self::Targets { target_type, text, limit, generation } => {
                let sessions = SessionAccess::default();
                let found =
                    core.target_choices(target_type, &text, limit, &sessions, local_files.as_ref()).await;
                RunTold::Targets(generation, found.map(Into::into))
            }
            Self::Board { hours } => RunTold::Board(hours, core.board(hours).await.map(Arc::new)),
            Self::Views => RunTold::Views(core.views().await.map(Arc::new)),
            Self::SaveView { name, filter } => {
                let saved = core.save_view(&name, Some(&filter), None).await.map(Arc::new);
                RunTold::ViewSaved(name, saved)
            }
            Self::Drain { worker, drain } => {
                RunTold::Drained(core.drain(&worker, drain, None).await.map(Arc::new))
            }
            Self::Launchable => {
                let listed = core.list(ListFilter::default()).await;
                RunTold::Launchable(listed.map(|list| {
                    let ready = list
                        .skills
                        .into_iter()
                        .filter(|skill| skill.has_contract && skill.shadowed_by.is_none());
                    ready.map(|skill| (skill.skill_id, skill.description)).collect()
                }))
            }
            Self::Contract(skill) => {
                let contract = core.contract(&skill).await.map(Arc::new);
                RunTold::Contract(skill, contract)
            }
            Self::Explain(capability) => {
                let explained = core.explain_capability(&capability).await.map(Arc::new);
                RunTold::Explained(capability, explained)
            }
        }
    }
}
