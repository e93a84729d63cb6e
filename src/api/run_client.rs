//! The operations on runs as one trait, implemented locally over the engine and remotely over HTTP.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::operations::{CheckpointList, Principal, RunObserver};
use super::{
    AttachPreview, AttachRequest, Attached, CapabilityExplanation, CapabilityRequest, CommandResult,
    ContractView, Error, LaunchRequest, Launched, LocalFiles, NewArtifact, RunCommand, RunDetail,
    SessionAccess, StoredArtifact, TargetChoice,
};
use skills_base::memory::value_bytes;
use skills_skill::AttachTarget;
use skills_store::{RecordedDecision, RunEvent, RunFilter, RunId, RunPage, RunRecord};

/// Operations on runs for all adapters. A run is named by its id, or by a unique prefix or suffix of it.
#[async_trait]
pub trait RunClient: Send + Sync + 'static {
    /// Launches a run of a skill's contract.
    ///
    /// # Errors
    /// Returns `not_found`; `invalid_configuration` for a skill without a contract ([`Error::has_no_contract`]) or with an
    /// invalid one; `untrusted`; `forbidden` by policy; `invalid_request` naming each invalid input;
    /// `idempotency_conflict`.
    async fn launch(&self, request: LaunchRequest) -> Result<Launched, Error>;

    /// Launches a run of a single capability: one step with the same gates, confirmations and policy as in any run. Its
    /// skill is shown as `capability:ID`.
    ///
    /// # Errors
    /// Returns `not_found` with similar names; `forbidden` by policy; `invalid_request` naming each invalid input;
    /// `idempotency_conflict`.
    async fn execute_capability(&self, request: CapabilityRequest) -> Result<Launched, Error>;

    /// Returns a page of runs, waiting ones first.
    async fn runs(&self, filter: RunFilter) -> Result<RunPage, Error>;

    async fn run(&self, run: &str) -> Result<RunDetail, Error>;

    /// Returns the newest checkpoints of a run, before a number if stated: at most `limit`, fewer if they are large, none
    /// only if there is none.
    async fn run_checkpoints(
        &self,
        run: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<CheckpointList, Error>;

    /// Executes a command; repeating it has no further effect. Rules about approvals apply to name and scopes of the
    /// principal, if the caller is authenticated.
    ///
    /// # Errors
    /// Returns `invalid_transition` with the commands that are allowed instead; `skill_changed`;
    /// `checkpoint_not_found`; `not_found`.
    async fn command_as(
        &self,
        run: &str,
        command: RunCommand,
        principal: Option<Principal>,
    ) -> Result<CommandResult, Error>;

    /// Like [`Self::command_as`] without a principal: for the user of this process.
    async fn send_command(&self, run: &str, command: RunCommand) -> Result<CommandResult, Error> {
        self.command_as(run, command, None).await
    }

    /// Returns when a run has ended, waits or is paused, with the run in that state. A core in this process
    /// executes the run itself, unless an active worker has claimed it; a remote service executes it there.
    /// When `leave` fires, the run is returned in its current state: nothing is canceled. A run that this core executes
    /// ends first if the core has workers; otherwise its children are killed and its lease is released.
    async fn wait_for_completion(&self, run: &str, leave: CancellationToken) -> Result<RunRecord, Error>;

    /// Ends waits that have expired. Of a service, its workers do that.
    async fn record_expired_waits(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns at most `limit` events after a number, fewer if they are large: of one run by its own numbering, or of all
    /// by the store's. If there are none, waits up to `wait_ms` for the first.
    async fn run_events(
        &self,
        run: Option<&str>,
        after: u64,
        limit: usize,
        wait_ms: u64,
    ) -> Result<Vec<RunEvent>, Error>;

    /// Returns the global number of the newest event, from which followers start.
    async fn newest_event(&self) -> Result<u64, Error>;

    /// Returns the complete id of a run and the number of its newest event. A remote service only has the complete run.
    async fn newest_run_event(&self, run: &str) -> Result<(RunId, u64), Error> {
        let detail = self.run(run).await?;
        Ok((detail.run.id, detail.events.last().map_or(0, |event| event.number)))
    }

    /// Returns the decisions on a run, oldest first.
    async fn decisions(&self, run: &str) -> Result<Vec<RecordedDecision>, Error> {
        Ok(self.run(run).await?.decisions)
    }

    /// Returns the id of the event log, which is that of the store: in another one event numbers have no meaning, and
    /// cached data about runs and sessions is invalid.
    async fn event_log(&self) -> Result<String, Error>;

    /// Returns the four checks and what attaching would do; nothing is started.
    async fn attach_preview(&self, request: AttachRequest) -> Result<AttachPreview, Error>;

    /// Attaches a skill: the target's content is passed to it as `target`.
    ///
    /// # Errors
    /// Returns `attach_invalid` (or `target_not_found`) with the structured reason; otherwise same as [`Self::launch`].
    async fn attach(&self, request: AttachRequest) -> Result<Attached, Error>;

    /// Like [`Self::launch`]; if its options wait for the run, at most until `leave` fires.
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
        let Launched { run, idempotency, worker_alive } = launched;
        let id = run.id.clone();
        // A run of an earlier launch may be large, and is read again.
        drop(run);
        let run = self.wait_for_completion(&id.0, leave).await?;
        Ok(Launched { run, idempotency, worker_alive })
    }

    /// Like [`Self::attach`], and reports the run to the observer. A core in this process waits at most until `leave`
    /// fires, and reports the run before it waits for it.
    async fn attach_until(
        &self,
        request: AttachRequest,
        leave: CancellationToken,
        observer: RunObserver,
    ) -> Result<Attached, Error> {
        drop(leave);
        let attached = self.attach(request).await?;
        observer.report(&attached.execution);
        Ok(attached)
    }

    /// Returns existing references of this type that contain `text`, newest first: only sessions that the caller may
    /// use, and local files only for a caller that may name them.
    async fn target_choices(
        &self,
        target_type: AttachTarget,
        text: &str,
        limit: usize,
        sessions: &SessionAccess,
        local_files: Option<&LocalFiles>,
    ) -> Result<Vec<TargetChoice>, Error>;

    /// Stores content as an artifact, which targets name by its digest. Identical content is stored once.
    ///
    /// # Errors
    /// Returns `payload_too_large` above 8 MiB; `invalid_request` for an invalid name.
    async fn store_artifact(&self, artifact: NewArtifact) -> Result<StoredArtifact, Error>;

    /// Returns the contract of a skill.
    ///
    /// # Errors
    /// Returns `not_found`; `invalid_configuration` if it has none.
    async fn contract(&self, skill: &str) -> Result<ContractView, Error>;

    /// Explains which binding executes a capability.
    ///
    /// # Errors
    /// Returns `not_found` with similar names.
    async fn explain_capability(&self, capability: &str) -> Result<CapabilityExplanation, Error>;

    /// Returns the ids of all known capabilities, sorted.
    async fn capabilities(&self) -> Result<Vec<String>, Error>;

    /// Sets the preferred binding of a capability on this host, or removes the preference (`None`). `by` is the principal;
    /// `None` for the local account.
    ///
    /// # Errors
    /// Returns `not_found`; `invalid_request` for a binding of another capability.
    async fn activate(
        &self,
        capability: &str,
        binding: Option<&str>,
        by: Option<String>,
    ) -> Result<CapabilityExplanation, Error>;
}

/// Returns the first events of a run, as many as a response contains and whose data takes at most `max_bytes` of memory,
/// at least one; and whether there are more.
pub async fn first_events(
    client: &(impl RunClient + ?Sized),
    run: &str,
    max_bytes: usize,
) -> Result<(Vec<RunEvent>, bool), Error> {
    let (mut events, mut bytes): (Vec<RunEvent>, usize) = (Vec::new(), 0);
    loop {
        let after = events.last().map_or(0, |event| event.number);
        // One more, to know whether it exists.
        let limit = RunDetail::MAX_EVENTS.saturating_sub(events.len()).max(1);
        let page = client.run_events(Some(run), after, limit, 0).await?;
        if page.is_empty() {
            return Ok((events, false));
        }
        for event in page {
            bytes = bytes.saturating_add(value_bytes(&event.event.data));
            if events.len() == RunDetail::MAX_EVENTS || (bytes > max_bytes && !events.is_empty()) {
                return Ok((events, true));
            }
            events.push(event);
        }
    }
}
