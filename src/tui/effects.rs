//! Executes the effects of panes that need the core or the renderer, off the UI task; results return as events.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::task::AbortHandle;

use super::action::Action;
use super::app::{AppEvent, ReceivedEvents, Refreshed};
use super::golden_requests::{GoldenPaneRequest, GoldenPaneResponse, GoldenPlace, own_queries};
use super::keymap::mention;
use super::pane::{Effect, InFile, Message, PaneId, RenderJob, SaveOutcome, StatedTexts};
use super::run_requests::RunRequest;
use super::why_report;
use super::widgets::render::render;
use crate::widgets::RichLine;
use skills_api::{
    Code, CollisionFilter, Connection, Core, DraftMeasure, DraftRequest, Error, Event, LocalFiles,
    NewDescription, SavedDescription, SharedClient, SharedSessionClient, ShownFile, VisibilityRequest,
    WhyRequest, save_description, visibility, why,
};
use skills_config::Invocation;
use skills_discovery::Request;
use skills_skill::{Digest, SkillId, parse};

/// Number of rendered texts in the cache.
const RENDER_CACHE_SIZE: usize = 128;
/// Duration of a call after which the user is notified that the response is pending.
const SLOW_WARNING_AFTER: std::time::Duration = std::time::Duration::from_secs(2);
/// How long one request for the collision map waits before its progress is shown.
const MAP_WAIT_MS: u64 = 500;
/// Maximum number of body lines that contain words of the request.
const BODY_LINES: usize = 12;

/// Maximum number of events queued for the UI task; a sender waits when the queue is full.
pub const MAX_PENDING_NEWS: usize = 1024;
/// Maximum number of concurrent calls; others wait for one of these to end.
const MAX_CALLS: usize = 256;
/// Maximum number of calls waiting or in progress; more are rejected.
const MAX_WAITING_CALLS: usize = 1024;

/// Executes effects with the core's client.
pub struct EffectRunner {
    client: SharedClient,
    sessions: Option<SharedSessionClient>,
    invocation: Arc<Invocation>,
    local_files: Option<LocalFiles>,
    golden: Option<GoldenPlace>,
    news: Sender<AppEvent>,
    /// The discover call in progress, by pane; a newer one replaces it.
    ranking: HashMap<PaneId, AbortHandle>,
    /// The draft being measured.
    drafting: Option<AbortHandle>,
    /// The comparison of two skills in progress.
    comparing: Option<AbortHandle>,
    /// The report of a skill in progress.
    checking: Option<AbortHandle>,
    rendered: HashMap<RenderJob, Arc<[RichLine]>>,
    order: VecDeque<RenderJob>,
    finished: (Sender<RenderedJob>, Receiver<RenderedJob>),
    running: Arc<AtomicUsize>,
    places: Arc<Semaphore>,
}

type RenderedJob = (RenderJob, Arc<[RichLine]>);

/// A guard that counts a task as in progress until it is dropped, however the task ends.
struct TaskGuard(Arc<AtomicUsize>);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl EffectRunner {
    /// Creates an executor over a client that sends results to `news`. Requires a tokio runtime.
    pub fn new(client: SharedClient, news: Sender<AppEvent>) -> Self {
        Self {
            client,
            sessions: None,
            invocation: Arc::default(),
            local_files: None,
            golden: None,
            news,
            ranking: HashMap::new(),
            drafting: None,
            comparing: None,
            checking: None,
            rendered: HashMap::new(),
            order: VecDeque::new(),
            finished: tokio::sync::mpsc::channel(RENDER_CACHE_SIZE),
            running: Arc::default(),
            places: Arc::new(Semaphore::new(MAX_CALLS)),
        }
    }

    /// Sets the client for sessions, if the core has any.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Option<SharedSessionClient>) -> Self {
        self.sessions = sessions;
        self
    }

    /// Sets the local files that the user may name.
    #[must_use]
    pub fn with_local_files(mut self, local_files: Option<LocalFiles>) -> Self {
        self.local_files = local_files;
        self
    }

    /// Sets the location of the user's golden queries.
    #[must_use]
    pub fn with_golden(mut self, golden: Option<GoldenPlace>) -> Self {
        self.golden = golden;
        self
    }

    /// Sets how the workbench was started.
    #[must_use]
    pub fn with_invocation(mut self, invocation: &Invocation) -> Self {
        self.invocation = Arc::new(invocation.clone());
        self
    }

    /// Forwards run events until the returned task is aborted.
    pub fn follow_runs(&self) -> AbortHandle {
        let follow = super::follow_runs::follow(
            Arc::clone(&self.client),
            self.news.clone(),
            Arc::clone(&self.invocation),
        );
        tokio::spawn(follow).abort_handle()
    }

    /// Returns the number of calls in progress.
    pub fn in_progress(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// Forwards the core's events until the returned task is aborted; after lagging, the complete catalog.
    pub fn follow_events(&self) -> AbortHandle {
        use tokio::sync::broadcast::error::RecvError;
        let mut events = self.client.events();
        let (client, news) = (Arc::clone(&self.client), self.news.clone());
        let called = Arc::clone(&self.invocation);
        let follow = async move {
            loop {
                let message = match events.recv().await {
                    Ok(Event::Notice(text)) => Message::Event(Event::Notice(called.completed_in(&text))),
                    Ok(event) => Message::Event(event),
                    Err(RecvError::Lagged(_)) => match client.catalog().await {
                        Ok(catalog) => Message::Catalog(catalog),
                        Err(error) => {
                            tracing::warn!("no catalog after lagging: {error}");
                            continue;
                        }
                    },
                    Err(RecvError::Closed) => return,
                };
                if news.send(AppEvent::All(message)).await.is_err() {
                    return;
                }
            }
        };
        tokio::spawn(follow).abort_handle()
    }

    /// Requests the catalog, the diagnostics and the core's progress; `since` is what has been received so far.
    pub fn refresh(&self, since: ReceivedEvents) {
        let client = Arc::clone(&self.client);
        self.spawn("refresh", async move {
            let mut news = Vec::new();
            let catalog =
                client.catalog().await.map_err(|error| news.push(failure_event("no catalog", &error)));
            let diagnostics = client.diagnostics().await;
            let diagnostics = diagnostics.map_err(|error| news.push(failure_event("no diagnostics", &error)));
            let diagnostics = diagnostics.ok().map(Arc::new);
            let refreshed = Refreshed { since, catalog: catalog.ok(), diagnostics };
            news.push(AppEvent::Refreshed(Box::new(refreshed)));
            news
        });
    }

    /// Rescans all roots.
    pub fn rescan(&self) {
        let client = Arc::clone(&self.client);
        self.spawn("rescan", async move {
            match client.rescan().await {
                Ok(()) => Vec::new(),
                Err(error) => vec![failure_event("cannot rescan the roots", &error)],
            }
        });
    }

    /// Executes a pane's effect. Effects that the application handles itself are ignored.
    pub fn run(&mut self, pane: PaneId, effect: Effect) {
        let client = Arc::clone(&self.client);
        match effect {
            Effect::Discover { request, generation } => self.rank(pane, request, generation),
            Effect::Results { request, lookup } => self.reply("discover", pane, async move {
                Message::Results(lookup, client.discover(request).await.map(Arc::new))
            }),
            Effect::Describe(id) => self.reply("describe", pane, async move {
                let detail = client.describe(id.as_str()).await.map(Arc::new);
                Message::Detail(id, detail)
            }),
            Effect::ReadFile(id, path) => self.reply("read_file", pane, async move {
                let file = client.read_file(id.as_str(), &path).await.map(Arc::new);
                Message::File(id, path, file)
            }),
            Effect::Levels(ids) => self.count_tokens(pane, ids),
            Effect::BodyLines(id, intent) => self.search_body(pane, id, intent),
            Effect::ClientView(Some(id)) => self.load_client_view(pane, id),
            Effect::ClientView(None) => self.deliver(answer(pane, Message::ClientView(None))),
            Effect::Why(request) => self.check_skill(request),
            Effect::Rivals(id) => self.reply("rivals", pane, async move {
                let rivals = client.rivals(id.as_str()).await.map(Arc::new);
                Message::Rivals(id, rivals)
            }),
            Effect::Collisions => self.reply("collisions", pane, async move {
                let filter = CollisionFilter { wait_ms: Some(MAP_WAIT_MS), ..CollisionFilter::default() };
                Message::Collisions(client.collisions(filter).await.map(Arc::new))
            }),
            Effect::Visibility(skill) => self.read_visibility(pane, skill),
            Effect::CompareSkills(a, b) => self.compare_skills(pane, a, b),
            Effect::Draft { request, generation } => self.measure_draft(pane, request, generation),
            Effect::WriteDescription { skill_id, shown, texts, earlier } => {
                self.reply("write_description", pane, async move {
                    let written = write_description(&*client, &skill_id, shown, texts, earlier).await;
                    Message::DescriptionWritten(skill_id, written)
                });
            }
            Effect::PickClient(current) => {
                self.spawn("client_profiles", async move {
                    vec![AppEvent::Profiles(pane, current, client.client_profiles().await)]
                });
            }
            Effect::Render(job) => self.render(pane, job),
            Effect::Run(request) => self.send_run_request(pane, request),
            Effect::Golden(request) => self.send_golden_request(pane, request),
            Effect::Proposals(request) => {
                self.reply(
                    request.name(),
                    pane,
                    async move { Message::Proposals(request.send(client).await) },
                );
            }
            Effect::Session(request) => {
                let Some(sessions) = self.sessions.clone() else { return };
                self.reply(
                    request.name(),
                    pane,
                    async move { Message::Session(request.send(sessions).await) },
                );
            }
            Effect::Copy(..)
            | Effect::CopyCommand(..)
            | Effect::Edit(..)
            | Effect::Toast(_)
            | Effect::Go(..)
            | Effect::Pick(_)
            | Effect::OpenDialog(_)
            | Effect::ErrorNotice(..)
            | Effect::Awaited(_)
            | Effect::Read(_)
            | Effect::ReadAgain(_)
            | Effect::EditDescription(_)
            | Effect::AddGolden(_)
            | Effect::Keep(..) => {}
        }
    }

    /// Ranks the skills for a request; a newer request of the pane replaces the one in progress.
    fn rank(&mut self, pane: PaneId, request: Request, generation: u64) {
        let client = Arc::clone(&self.client);
        let task = self.spawn("discover", async move {
            let found = client.discover(request).await.map(Arc::new);
            answer(pane, Message::Answer(generation, found))
        });
        if let Some(older) = self.ranking.insert(pane, task) {
            older.abort();
        }
    }

    fn count_tokens(&self, pane: PaneId, ids: Vec<SkillId>) {
        let client = Arc::clone(&self.client);
        self.spawn("levels", async move {
            match client.levels(ids).await {
                Ok(levels) => answer(pane, Message::Levels(levels)),
                Err(error) => vec![failure_event("cannot count tokens", &error)],
            }
        });
    }

    fn search_body(&self, pane: PaneId, id: SkillId, intent: String) {
        let client = Arc::clone(&self.client);
        self.spawn("body_lines", async move {
            match client.body_lines(id.as_str(), &intent, BODY_LINES).await {
                Ok(lines) => answer(pane, Message::BodyLines(id, intent, lines)),
                Err(error) => vec![failure_event("cannot search the body", &error)],
            }
        });
    }

    fn load_client_view(&self, pane: PaneId, id: String) {
        let client = Arc::clone(&self.client);
        self.spawn("client_view", async move {
            match client.client_view(&id).await {
                Ok(view) => answer(pane, Message::ClientView(Some(Arc::new(view)))),
                Err(error) => vec![failure_event("cannot show the view of that client", &error)],
            }
        });
    }

    /// Compares two skills; a newer comparison replaces the one in progress.
    fn compare_skills(&mut self, pane: PaneId, a: SkillId, b: SkillId) {
        let client = Arc::clone(&self.client);
        let task = self.spawn("compare_skills", async move {
            let pair = client.compare_skills(a.as_str(), b.as_str()).await.map(Arc::new);
            answer(pane, Message::Pair(a, b, pair))
        });
        replace(&mut self.comparing, task);
    }

    /// Checks why a skill is selected or not; a newer report replaces the one in progress.
    fn check_skill(&mut self, request: WhyRequest) {
        let client = Arc::clone(&self.client);
        let called = Arc::clone(&self.invocation);
        let pending = why_report::pending(&request);
        let task = self.spawn("why", async move {
            let reading = match why(&*client, &request).await {
                Ok(mut report) => {
                    report.complete_commands(&called);
                    // A file that cannot be parsed has no entry in the catalog, and thus no draft.
                    let detail = client.describe(report.skill_id.as_str()).await.ok();
                    why_report::reading(pending, &report, detail.as_ref().map(|detail| &*detail.skill))
                }
                Err(error) => why_report::failed(pending, &called.completed_in(&error.message)),
            };
            vec![AppEvent::Read(Box::new(reading))]
        });
        replace(&mut self.checking, task.clone());
        self.report_if_slow("the checks of the skill", task);
    }

    fn read_visibility(&self, pane: PaneId, skill: Option<SkillId>) {
        let client = Arc::clone(&self.client);
        let request = VisibilityRequest {
            skill: skill.as_ref().map(ToString::to_string),
            ..VisibilityRequest::default()
        };
        let task = self.spawn("visibility", async move {
            let report = visibility(&*client, &request).await.map(Arc::new);
            answer(pane, Message::Visibility(skill, report))
        });
        self.report_if_slow("the lists of the clients", task);
    }

    /// Measures a draft with the user's golden queries, if they count; a newer text replaces the one being measured.
    fn measure_draft(&mut self, pane: PaneId, mut request: DraftRequest, generation: u64) {
        let client = Arc::clone(&self.client);
        let place = self.golden.clone();
        let task = self.spawn("draft", async move {
            if request.measure != DraftMeasure::Request {
                match own_queries(&*client, place.as_ref()).await {
                    Ok(queries) => request.queries = queries,
                    Err(error) => return answer(pane, Message::Draft(generation, Err(error))),
                }
            }
            let report = client.draft(request).await.map(Arc::new);
            answer(pane, Message::Draft(generation, report))
        });
        replace(&mut self.drafting, task);
    }

    fn send_run_request(&self, pane: PaneId, request: RunRequest) {
        let client = Arc::clone(&self.client);
        let awaited = request.awaited();
        let called = Arc::clone(&self.invocation);
        let local_files = self.local_files.clone();
        let task = self.spawn(request.name(), async move {
            answer(pane, Message::Run(request.send(client, local_files).await.completed(&called)))
        });
        if let Some(what) = awaited {
            self.report_if_slow(what, task);
        }
    }

    fn send_golden_request(&self, pane: PaneId, request: GoldenPaneRequest) {
        let client = Arc::clone(&self.client);
        let place = self.golden.clone();
        self.spawn(request.name(), async move {
            let answered = request.execute(&*client, place).await;
            let mut news = Vec::new();
            match &answered {
                GoldenPaneResponse::Edited(Ok(note)) => news.push(AppEvent::Done(note.clone())),
                GoldenPaneResponse::Edited(Err(error)) | GoldenPaneResponse::Baselines(Err(error)) => {
                    news.push(failure_event("the golden set was not changed", error));
                }
                _ => {}
            }
            let message = Message::Golden(answered);
            // A query added from another pane must reach the golden pane too.
            news.push(match &message {
                Message::Golden(GoldenPaneResponse::Edited(_)) => AppEvent::All(message),
                _ => AppEvent::Answer(pane, message),
            });
            news
        });
    }

    fn render(&mut self, pane: PaneId, job: RenderJob) {
        while let Ok((job, lines)) = self.finished.1.try_recv() {
            if self.rendered.insert(job.clone(), lines).is_none() {
                self.order.push_back(job);
            }
            if self.order.len() > RENDER_CACHE_SIZE
                && let Some(oldest) = self.order.pop_front()
            {
                self.rendered.remove(&oldest);
            }
        }
        if let Some(lines) = self.rendered.get(&job) {
            self.deliver(vec![AppEvent::Answer(pane, Message::Rendered(job.key, Arc::clone(lines)))]);
            return;
        }
        let done = self.finished.0.clone();
        self.spawn("render", async move {
            let rendering = tokio::task::spawn_blocking(move || {
                let lines: Arc<[RichLine]> = render(&job).into();
                (job, lines)
            });
            match rendering.await {
                Ok((job, lines)) => {
                    let news = AppEvent::Answer(pane, Message::Rendered(job.key, Arc::clone(&lines)));
                    // If the channel is full, the text is not cached and is rendered again on the next request.
                    done.try_send((job, lines)).ok();
                    vec![news]
                }
                Err(error) => {
                    vec![AppEvent::Failed("cannot render a text".to_owned(), error.to_string())]
                }
            }
        });
    }

    /// Reports that a remote core is slow to respond, before the user wonders whether the key was received.
    fn report_if_slow(&self, what: &'static str, task: AbortHandle) {
        if !matches!(self.client.connection(), Connection::Remote { .. }) {
            return;
        }
        let news = self.news.clone();
        tokio::spawn(async move {
            tokio::time::sleep(SLOW_WARNING_AFTER).await;
            if !task.is_finished() {
                let event = AppEvent::Done(format!("no response yet: {what}; still waiting"));
                news.send(event).await.ok();
            }
        });
    }

    fn deliver(&self, news: Vec<AppEvent>) {
        for one in news {
            // The UI task itself sends these, so it must not wait for its own queue. The receiver is dropped only while
            // the workbench shuts down.
            if let Err(TrySendError::Full(one)) = self.news.try_send(one) {
                self.spawn("notify", async { vec![one] });
            }
        }
    }

    /// Spawns a task whose result is a message to the pane.
    fn reply(
        &self,
        what: &'static str,
        pane: PaneId,
        message: impl Future<Output = Message> + Send + 'static,
    ) {
        self.spawn(what, async move { answer(pane, message.await) });
    }

    /// Spawns a task and reports its panic instead of losing it.
    fn spawn(
        &self,
        what: &'static str,
        task: impl Future<Output = Vec<AppEvent>> + Send + 'static,
    ) -> AbortHandle {
        let waiting = self.running.fetch_add(1, Ordering::SeqCst);
        let running = TaskGuard(Arc::clone(&self.running));
        let (news, places) = (self.news.clone(), Arc::clone(&self.places));
        let guarded = async move {
            if waiting >= MAX_WAITING_CALLS {
                let why = format!("{waiting} others are pending");
                news.send(AppEvent::Failed(format!("{what} failed"), why)).await.ok();
                return drop(running);
            }
            // The semaphore is never closed.
            let _place = places.acquire_owned().await;
            let answers = std::panic::AssertUnwindSafe(task).catch_unwind().await.unwrap_or_else(|_| {
                vec![AppEvent::Failed(
                    format!("{what}: internal error"),
                    format!("internal error; {} shows the log", mention(Action::ShowLog)),
                )]
            });
            for answer in answers {
                news.send(answer).await.ok();
            }
            drop(running);
        };
        tokio::spawn(guarded).abort_handle()
    }
}

/// Saves a description and `when_to_use`: in the file, or as a proposal if the file cannot be written.
async fn write_description(
    client: &dyn Core,
    skill: &SkillId,
    shown: Digest,
    texts: StatedTexts,
    earlier: Vec<Arc<str>>,
) -> Result<SaveOutcome, Error> {
    let new = NewDescription {
        skill_id: skill.to_string(),
        shown: Some(ShownFile::Digest(shown)),
        description: Some(texts.description.clone()),
        when_to_use: Some(texts.when_to_use.clone()),
        justification: Some("Changes the description, measured as a draft in the workbench.".to_owned()),
        propose: false,
        earlier,
    };
    match save_description(client, new).await {
        Ok(SavedDescription::Written(_, replaced, text)) => {
            let now = InFile { texts, digest: Digest::of(text.as_bytes()) };
            Ok(SaveOutcome::InFile(now, replaced.into()))
        }
        Ok(SavedDescription::Proposed(_, obstacle)) => Ok(SaveOutcome::AsProposal(obstacle)),
        Err(error) if error.code == Code::SkillChanged => {
            // From the file: the catalog may not have noticed the change yet.
            let present = client.describe(skill.as_str()).await?;
            let source = present.source.as_bytes();
            let Ok(parsed) = parse(&present.summary.location, source, 0) else { return Err(error) };
            Ok(SaveOutcome::Changed(InFile { texts: StatedTexts::of(&parsed), digest: Digest::of(source) }))
        }
        Err(error) => Err(error),
    }
}

/// Stores the task that replaces the one in progress, which is aborted.
fn replace(slot: &mut Option<AbortHandle>, task: AbortHandle) {
    if let Some(older) = slot.replace(task) {
        older.abort();
    }
}

fn answer(pane: PaneId, message: Message) -> Vec<AppEvent> {
    vec![AppEvent::Answer(pane, message)]
}

fn failure_event(what: &str, error: &Error) -> AppEvent {
    AppEvent::Failed(what.to_owned(), error.message.clone())
}
