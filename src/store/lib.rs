//! What survives: runs, their steps, checkpoints, events, decisions, signals and idempotency keys,
//! behind one trait with an embedded and a client-server form. No rules: which command moves which
//! state where is the state machine's alone; a store applies its answer in one transaction.

mod audit_anchors;
mod clock;
mod counts;
mod delta;
mod documents;
mod event_kind;
mod expiry;
mod health;
mod known;
mod lease;
mod postgres;
mod query;
mod sessions;
mod sql;
mod sqlite;
mod summary;
mod types;
mod write_health;

pub use audit_anchors::{AuditAnchor, AuditAnchors};
pub use clock::{BootTime, Clock, Clocks, Moment};
pub use counts::{Allowance, Counts, SkillRuns, Tallies, Tally, TallyKind};
pub use documents::Document;
pub use event_kind::EventKind;
pub use health::{Due, Glance, Health};
pub use known::KnownStores;
pub use lease::{LeaseHolder, RunLease};
pub use postgres::{Postgres, PostgresAddress, PostgresOptions};
pub use query::{QUERY_KEYS, QUERY_STATES, QueryError, RunQuery};
pub use sessions::{SessionHead, SessionRow, Sessions};
pub use sqlite::{
    OpenOptions, Opened, Reset, Sqlite, adopt, check_source, damage_of, has_existed, reset, restore,
};
pub use summary::failure_summary;
pub use types::{
    Assignment, AuditMode, Begun, Checkpoint, Claimed, CommandEffect, CommandOutcome, Control,
    ControlOutcome, Decided, DecisionRecord, Idempotency, IdempotencyOutcome, Launch, NewEvent, RunEvent,
    RunFilter, RunId, RunOptions, RunPage, RunRecord, StepIntent, StepRecord, StepStatus, StoreError,
    TableRows, Unavailability, WorkerId, WriteFailure,
};

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use serde_json::{Map, Value};

use skills_model::{Command, RunSnapshot, RunState};

/// Told of each commit: how many jobs shared it, and how long it took until it was durable.
pub type CommitObserver = Arc<dyn Fn(usize, Duration) + Send + Sync>;

/// Asks for the roots of skills that a process reads.
pub type Places = Box<dyn Fn() -> Arc<Vec<String>> + Send + Sync>;

/// Why a run is neither shown nor worked: a part of it is not what was written.
#[must_use]
pub fn damaged(run: &RunId, part: &str) -> String {
    let (were, they) = if part == "inputs" { ("were", "they were") } else { ("was", "it was") };
    format!(
        "the stored {part} of run {run} {were} modified after {they} written, by a disk error or another \
            program; the run is blocked. See `skills db check`; launch it again, or restore a backup"
    )
}

/// A durable store of runs. Every method is one transaction: when it returns, what it says is on disk
/// and survives the loss of the process; when it fails, nothing of it happened.
///
/// Implementations call [`skills_model::transition`] inside the transaction with the run's standing and
/// their own clock, so that all stores agree by construction; the conformance suite checks the rest.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// What it is and where (`sqlite:/…/runs.db`, `memory:`), for people.
    fn describe(&self) -> String;

    /// Idempotency look-up and creation: the run of an earlier launch with the same key and payload, or
    /// a new `pending` run with its first checkpoint and event.
    ///
    /// # Errors
    /// [`StoreError::IdempotencyConflict`] when the key was used with another payload.
    async fn launch(&self, launch: Launch) -> Result<Begun, StoreError>;

    /// One run that may be claimed now (oldest first, or this one only), leased to this worker under a new fence.
    ///
    /// A lease ends by the boot clock of the machine that granted it. Read on another boot, where that clock says
    /// nothing, it ends by the wall clock.
    async fn claim(
        &self,
        worker: &WorkerId,
        lease_ms: u64,
        only: Option<&RunId>,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Releases a lease without a report (a worker that is stopped): the run is claimable at once.
    async fn release_lease(&self, run: &RunId, fence: u64) -> Result<(), StoreError>;

    /// Extends a lease.
    ///
    /// # Errors
    /// [`StoreError::Refused`] with a stale fence: the worker has to stop its child and leave.
    async fn renew(&self, run: &RunId, fence: u64, lease_ms: u64) -> Result<(), StoreError>;

    /// Records that a step is about to begin, before anything of it happens outside.
    ///
    /// # Errors
    /// [`skills_model::TransitionError::Held`] for a step of a paused run that has not begun before.
    async fn record_intent(&self, run: &RunId, fence: u64, intent: StepIntent) -> Result<(), StoreError>;

    /// A worker's report, with what belongs to it: finished steps, the new checkpoint, events, and the
    /// intents of the steps that follow.
    ///
    /// An event `signal.consumed` with the field `name` removes the oldest buffered signal of that name. A report
    /// that waits for a signal that is buffered already leads to `pending`.
    ///
    /// Of a paused run that is still executing, only intents of steps that began before are kept: the returned record
    /// states whether it is paused.
    ///
    /// A step that failed without an attempt keeps the intent of an earlier one that may not be repeated: the outcome
    /// of that one is unknown.
    ///
    /// A run that fails keeps the result of the failed step as its error; if no step caused it, the data of an
    /// event `run.failed` among `events`.
    async fn report(
        &self,
        run: &RunId,
        command: Command,
        finished: Vec<StepRecord>,
        checkpoint: Option<Checkpoint>,
        intents: Vec<StepIntent>,
        events: Vec<NewEvent>,
    ) -> Result<RunRecord, StoreError>;

    /// Appends events of a step in progress (its output lines), under the fence.
    async fn append(&self, run: &RunId, fence: u64, events: Vec<NewEvent>) -> Result<(), StoreError>;

    /// A person's or another program's command: decide, signal, cancel, pause, resume, expire. `resume` may move the head
    /// to an earlier checkpoint of this run; later steps run again. The payload is a signal's, or the corrected
    /// inputs of a resumed run (recorded as such in its event).
    ///
    /// A decision that is recorded already and answers no question that waits now changes nothing, and the outcome has
    /// the record. A wait whose time is over takes what its end takes: a decision on it is refused, and a command that
    /// is carried out records the end first.
    ///
    /// # Errors
    /// [`StoreError::AlreadyDecided`] where the step was decided otherwise; [`StoreError::Refused`].
    async fn command(
        &self,
        run: &RunId,
        command: Command,
        record: Option<DecisionRecord>,
        head: Option<u64>,
        payload: Option<serde_json::Value>,
    ) -> Result<CommandOutcome, StoreError>;

    /// What a finished sidecar asked for on the run it watches: the command and the events `control.applied` of both
    /// (or `control.refused` of both) in one transaction. Repeated, it answers the first outcome.
    async fn control(
        &self,
        sidecar: &RunId,
        watched: &RunId,
        control: Control,
    ) -> Result<ControlOutcome, StoreError>;

    /// A new run that continues from a checkpoint of another: copied steps, lineage, own checkpoints. Who made it is who
    /// started it, where that is said.
    async fn branch(
        &self,
        source: &RunId,
        checkpoint: Option<u64>,
        new: RunId,
        held: bool,
        by: Option<String>,
    ) -> Result<RunRecord, StoreError>;

    /// The oldest kept signal of this name for a run. It stays kept until a report takes it.
    async fn kept_signal(&self, run: &RunId, name: &str) -> Result<Option<serde_json::Value>, StoreError>;

    /// One run. A wait whose time is over is answered as ended, here and in every other read, whether or not anybody
    /// has recorded that; nothing is written by it.
    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Runs: waiting ones first (oldest first), then by time, newest first; a page at a time.
    async fn runs(&self, filter: RunFilter) -> Result<RunPage, StoreError>;

    /// Steps of a run, in order of recording.
    async fn steps(&self, run: &RunId) -> Result<Vec<StepRecord>, StoreError>;

    /// Steps of a run that have begun and have no result.
    async fn intents(&self, run: &RunId) -> Result<Vec<StepIntent>, StoreError>;

    /// One checkpoint of a run.
    ///
    /// # Errors
    /// [`StoreError::NoCheckpoint`].
    async fn checkpoint(&self, run: &RunId, number: u64) -> Result<Checkpoint, StoreError>;

    /// Checkpoints of a run, oldest first.
    async fn checkpoints(&self, run: &RunId) -> Result<Vec<Checkpoint>, StoreError>;

    /// Events of a run (or of all runs) after a number, at most `limit`.
    async fn events(
        &self,
        run: Option<&RunId>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<RunEvent>, StoreError>;

    /// Waits until there may be events after this global number, or the time is up.
    async fn wait(&self, after: u64, timeout_ms: u64) -> Result<(), StoreError>;

    /// The contract a run was launched with, by its digest.
    async fn contract(&self, digest: &str) -> Result<Option<serde_json::Value>, StoreError>;

    /// Decisions on a run, oldest first.
    async fn decisions(&self, run: &RunId) -> Result<Vec<Decided>, StoreError>;

    /// Runs that were replayed or forked from this one, oldest first.
    async fn descendants(&self, run: &RunId) -> Result<Vec<RunId>, StoreError>;

    /// Waiting runs whose time is over by the store's clock, as they were recorded: those whose end is to be recorded
    /// ([`Command::Expire`]).
    async fn expired(&self) -> Result<Vec<RunRecord>, StoreError>;

    /// A unique id of this store, created with it: numbers of events mean nothing in another store.
    fn identity(&self) -> String;

    /// The global number of the newest event; 0 where there is none.
    async fn newest_event(&self) -> Result<u64, StoreError>;

    /// Deletes ended runs (completed, canceled, failed) that ended before a moment, with everything of theirs;
    /// answers how many.
    async fn purge(&self, before_ms: i64) -> Result<u64, StoreError> {
        let ended = [RunState::Completed, RunState::Canceled, RunState::Failed];
        self.purge_states(&ended, before_ms).await
    }

    /// The same for runs that ended in one of these states only. Non-terminal states are ignored.
    async fn purge_states(&self, states: &[RunState], before_ms: i64) -> Result<u64, StoreError>;

    /// Merges fields into the options of a run (`null` removes one) and appends events, in one transaction. For what
    /// people say of a run and no state depends on: its title, labels, who it is assigned to. With an `assignee`, only
    /// if the run is assigned to this person (empty: unassigned).
    ///
    /// # Errors
    /// [`StoreError::NoRun`]; [`StoreError::AssignmentConflict`]; [`StoreError::Unasked`] for invalid options.
    async fn annotate(
        &self,
        run: &RunId,
        options: Map<String, Value>,
        events: Vec<NewEvent>,
        assignee: Option<String>,
    ) -> Result<RunRecord, StoreError>;

    /// Documents whose names begin like this, by name.
    async fn documents(&self, prefix: &str) -> Result<Vec<Document>, StoreError>;

    /// Writes a document, or deletes it where there is no value; answers its new version, 0 for a deleted one. With
    /// `expected` only where that is its version now (0: there is none).
    ///
    /// # Errors
    /// [`StoreError::DocumentConflict`]; [`StoreError::Unasked`] for one that is too large.
    async fn put_document(
        &self,
        name: &str,
        value: Option<Value>,
        expected: Option<u64>,
    ) -> Result<u64, StoreError>;

    /// Takes away what runs that ended before a moment wrote down beyond what a replay of them needs: inputs of steps
    /// and output lines. Answers how many runs had any.
    async fn forget(&self, before_ms: i64) -> Result<u64, StoreError>;

    /// Looks the whole store over: whether its storage is sound, and whether its records agree with each other.
    async fn check(&self) -> Result<Health, StoreError>;

    /// Looks for damage for at most this long; says whether that was enough to see everything.
    async fn quick_check(&self, patience: Duration) -> Result<Glance, StoreError>;

    /// Writes a complete copy, consistent during concurrent writes.
    ///
    /// # Errors
    /// [`StoreError::Failed`], also when the file exists already; an interrupted copy leaves nothing.
    async fn backup(&self, to: &Path) -> Result<(), StoreError>;

    /// Copies everything of a database file of the embedded store into this store, which has no runs yet, in one
    /// transaction; answers how many rows each table had. The file is not changed.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`]; [`StoreError::Unavailable`] for a file that a process has open or that changed
    /// meanwhile; [`StoreError::Newer`].
    async fn import(&self, from: &Path) -> Result<Vec<TableRows>, StoreError>;

    /// Gives the space of deleted records back to the system. Holds writers up while it lasts.
    async fn compact(&self) -> Result<(), StoreError>;

    /// A worker is alive: written down with the present moment by the store's clock.
    async fn heartbeat(&self, worker: &WorkerId) -> Result<(), StoreError>;

    /// Deregisters a worker that shut down cleanly: it is no longer active.
    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError>;

    /// Workers that hold a lease now, run out or not.
    async fn leaseholders(&self) -> Result<Vec<WorkerId>, StoreError>;

    /// Ends all leases of a worker that is known to be dead, so that its runs are claimable at once; answers how many.
    /// Each counts as lost, as if its time had run out.
    async fn expire_leases(&self, worker: &WorkerId) -> Result<u64, StoreError>;

    /// Makes sure that the store can be written, by writing to it, and that it is the one that was opened.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn probe(&self) -> Result<(), StoreError>;

    /// The failure of the last write or probe; none where that went well.
    fn write_failure(&self) -> Option<WriteFailure>;

    /// Whether there is anything to do now; cheap enough for polling.
    async fn due(&self) -> Result<Due, StoreError>;

    /// Workers that beat within the last `max_age_ms`.
    async fn live_workers(&self, max_age_ms: u64) -> Result<Vec<WorkerId>, StoreError>;

    /// Which part of what a run continues from (`inputs`, `checkpoint`) differs from what was written, if any.
    async fn damage(&self, run: &RunId) -> Result<Option<&'static str>, StoreError>;

    /// What the state machine would be given for this run.
    async fn run_snapshot(&self, run: &RunId) -> Result<Option<RunSnapshot>, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_modified_is_named_in_its_number() {
        let told = |part| damaged(&RunId("r".into()), part);
        assert!(told("inputs").contains("stored inputs of run r were modified"), "{}", told("inputs"));
        assert!(told("checkpoint").contains("stored checkpoint of run r was modified"));
    }
}
