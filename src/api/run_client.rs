//! The operations on runs, as one trait: a local form over the engine, a remote one over HTTP.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::operations::Principal;
use super::{
    AttachPreview, AttachRequest, Attached, CapabilityExplanation, CapabilityRequest, Code, ContractView,
    Error, LaunchRequest, Launched, LocalFiles, NewArtifact, Ordered, RunDetail, RunOrder, SessionAccess,
    StoredArtifact, TargetChoice,
};
use skills_skill::AttachTarget;
use skills_store::{RunEvent, RunFilter, RunPage, RunRecord};

/// What every adapter may ask about runs. A run is named by its id, or by a beginning or an end of it that no
/// other run has.
#[async_trait]
pub trait RunClient: Send + Sync + 'static {
    /// Launches a run of a skill's contract.
    ///
    /// # Errors
    /// `not_found`; `invalid_configuration` for a skill without a contract ("instructions only: load it into a
    /// session") or with one that has errors; `untrusted`; `forbidden` by policy; `invalid_request` naming each wrong
    /// input; `idempotency_conflict`.
    async fn launch(&self, request: LaunchRequest) -> Result<Launched, Error>;

    /// Launches a run of one capability alone: one step, behind the same gates, confirmations and policy as in any
    /// run. Its skill is shown as `capability:ID`.
    ///
    /// # Errors
    /// `not_found` with near names; `forbidden` by policy; `invalid_request` naming each wrong input;
    /// `idempotency_conflict`.
    async fn execute_capability(&self, request: CapabilityRequest) -> Result<Launched, Error>;

    /// A page of runs, waiting ones first.
    async fn runs(&self, filter: RunFilter) -> Result<RunPage, Error>;

    /// A complete run.
    async fn run(&self, run: &str) -> Result<RunDetail, Error>;

    /// Executes an order; sent once it is executed once, whatever repeats it.
    ///
    /// # Errors
    /// `invalid_transition` with what the run takes instead; `skill_changed`; `checkpoint_not_found`; `not_found`.
    async fn order(&self, run: &str, order: RunOrder) -> Result<Ordered, Error>;

    /// The same for a caller who was authenticated: rules about approvals go by their name and scopes.
    async fn order_as(
        &self,
        run: &str,
        order: RunOrder,
        principal: Option<Principal>,
    ) -> Result<Ordered, Error> {
        drop(principal);
        self.order(run, order).await
    }

    /// Takes back a decision on a run that waits for a connection; who ordered it is answered that it was.
    ///
    /// # Errors
    /// `invalid_transition` where none waits, or it was sent already.
    fn take_back(&self, _run: &str) -> Result<(), Error> {
        let message = "no pending decision: decisions are applied immediately in this process";
        Err(Error::new(Code::InvalidTransition, message))
    }

    /// Returns when a run has ended, waits or is paused, with the run in that state. A core in this process
    /// executes the run itself, unless an active worker has claimed it; a remote service executes it there.
    /// When `leave` fires, children of this process are killed, the lease is released, and the run is returned
    /// in its current state: nothing is canceled.
    async fn wait_for_completion(&self, run: &str, leave: CancellationToken) -> Result<RunRecord, Error>;

    /// Events after a number: of one run by its own numbering, or of all by the store's. Where there are none it
    /// waits up to `wait_ms` for the first.
    async fn run_events(
        &self,
        run: Option<&str>,
        after: u64,
        limit: usize,
        wait_ms: u64,
    ) -> Result<Vec<RunEvent>, Error>;

    /// The store's number of the newest event: where following begins.
    async fn newest_event(&self) -> Result<u64, Error>;

    /// Which store counts the events: in another one their numbers mean nothing, and what was known of runs
    /// and sessions is not true any longer.
    async fn event_log(&self) -> Result<String, Error>;

    /// The four checks and what would happen; nothing is started.
    async fn attach_preview(&self, request: AttachRequest) -> Result<AttachPreview, Error>;

    /// Attaches: the target's content goes to the skill as `target`.
    ///
    /// # Errors
    /// `attach_invalid` (or `target_not_found`) with the structured reason; as [`Self::launch`].
    async fn attach(&self, request: AttachRequest) -> Result<Attached, Error>;

    /// As [`Self::launch`]; where its options wait for the run, no longer than until `leave` fires.
    async fn launch_until(
        &self,
        mut request: LaunchRequest,
        leave: CancellationToken,
    ) -> Result<Launched, Error> {
        let wait = std::mem::take(&mut request.options.wait);
        let launched = self.launch(request).await?;
        if !wait {
            return Ok(launched);
        }
        let run = self.wait_for_completion(&launched.run.id.0, leave).await?;
        Ok(Launched { run, ..launched })
    }

    /// As [`Self::attach`]; a core in this process waits no longer than until `leave` fires.
    async fn attach_until(
        &self,
        request: AttachRequest,
        leave: CancellationToken,
    ) -> Result<Attached, Error> {
        drop(leave);
        self.attach(request).await
    }

    /// References of this type that exist, newest first, those that hold `text` only: sessions that the caller may
    /// use, and files of this machine for a caller that may name such.
    async fn target_choices(
        &self,
        target_type: AttachTarget,
        text: &str,
        limit: usize,
        sessions: &SessionAccess,
        local_files: Option<&LocalFiles>,
    ) -> Result<Vec<TargetChoice>, Error>;

    /// Stores content as an artifact, which targets name by its digest. The same content is stored once.
    ///
    /// # Errors
    /// `payload_too_large` beyond 8 MiB; `invalid_request` for a name that is none.
    async fn store_artifact(&self, artifact: NewArtifact) -> Result<StoredArtifact, Error>;

    /// The contract of a skill.
    ///
    /// # Errors
    /// `not_found`; `invalid_configuration` where it has none.
    async fn contract(&self, skill: &str) -> Result<ContractView, Error>;

    /// Which binding executes a capability, and why.
    ///
    /// # Errors
    /// `not_found` with near names.
    async fn explain_capability(&self, capability: &str) -> Result<CapabilityExplanation, Error>;

    /// The ids of all capabilities known, sorted.
    async fn capabilities(&self) -> Result<Vec<String>, Error>;

    /// Makes a binding the one for its capability on this host (`None` takes the override away). `by` is the principal;
    /// none for the local account.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` for a binding of another capability.
    async fn activate(
        &self,
        capability: &str,
        binding: Option<&str>,
        by: Option<String>,
    ) -> Result<CapabilityExplanation, Error>;
}
