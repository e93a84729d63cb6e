//! Persistence of runs, their steps, checkpoints, events, decisions, signals and idempotency keys, behind one trait
//! with an embedded and a client-server implementation. A store has no rules of its own: the state machine decides
//! which command leads to which state, and a store applies the result in one transaction.

mod audit_anchors;
mod clock;
mod counts;
mod delta;
mod documents;
mod event_kind;
mod expiry;
mod health;
mod known_stores;
mod lease;
mod postgres;
mod query;
mod query_terms;
mod sessions;
mod sql;
mod sqlite;
mod summary;
mod types;
mod write_health;

pub use audit_anchors::{AuditAnchor, AuditAnchors};
pub use clock::{BootTime, Clock, ClockReading, Clocks};
pub use counts::{Allowance, Counts, SkillRuns, Tallies, Tally, TallyKind};
pub use documents::Document;
pub use event_kind::EventKind;
pub use expiry::expiry_outcome;
pub use health::{Due, Health, QuickCheck};
pub use known_stores::KnownStores;
pub use lease::{LeaseHolder, RunLease};
pub use postgres::{Postgres, PostgresAddress, PostgresOptions};
pub use query::{QUERY_KEYS, QUERY_STATES, QueryError, RunQuery};
pub use query_terms::{TermEffect, quoted_value, with_term, without_each_field};
pub use sessions::{SessionHead, SessionOutline, SessionRow, SessionUsage, Sessions};
pub use sqlite::{
    OpenOptions, OpenedStore, Reset, Sqlite, adopt, check_source, damage_of, has_existed, reset, restore,
};
pub use summary::{failure_kind, failure_summary};
pub use types::{
    Assignment, AuditMode, Checkpoint, Claimed, CommandEffect, CommandOutcome, Control, ControlOutcome,
    DecisionRecord, Idempotency, IdempotencyOutcome, Launch, LaunchOutcome, NewEvent, OtherPath,
    PendingDelivery, PolicySubject, Precondition, RecordedDecision, RunEvent, RunFilter, RunId, RunOptions,
    RunPage, RunRecord, StepIntent, StepRecord, StepStatus, StoreError, TableRows, Unavailability, WorkerId,
    WriteFailure,
};

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use serde_json::{Map, Value};

use skills_model::{Command, RunSnapshot, RunState};

/// Called after each commit with the number of jobs that shared it and the time until it was durable.
pub type CommitObserver = Arc<dyn Fn(usize, Duration) + Send + Sync>;

/// Returns the roots of skills that a process reads.
pub type Places = Box<dyn Fn() -> Arc<Vec<String>> + Send + Sync>;

/// Returns why a run is neither shown nor executed: one of its parts was modified after it was written.
pub fn damaged(run: &RunId, part: &str) -> String {
    let (were, they) = if part == "inputs" { ("were", "they were") } else { ("was", "it was") };
    format!(
        "the stored {part} of run {run} {were} modified after {they} written, by a disk error or another \
            program; the run is blocked. See `skills db check`; launch it again, or restore a backup"
    )
}

/// A durable store of runs. Every method is one transaction: when it returns, its result is on disk and survives the
/// loss of the process; when it fails, it had no effect.
///
/// Implementations call [`skills_model::transition`] inside the transaction with the run's snapshot and their own
/// clock, so that all stores agree by construction; the conformance suite checks the rest.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Returns the kind and location of the store for display (`sqlite:/…/runs.db`, `memory:`).
    fn describe(&self) -> String;

    /// Looks up the idempotency key and creates the run in one transaction: returns the run of an earlier launch with
    /// the same key and payload, without values that are too long for a list, or a new `pending` run with its first
    /// checkpoint and event.
    ///
    /// # Errors
    /// Returns [`StoreError::IdempotencyConflict`] if the key was used with another payload.
    async fn launch(&self, launch: Launch) -> Result<LaunchOutcome, StoreError>;

    /// Claims a run for this worker under a new fencing token: the oldest one whose lease has expired, else the oldest
    /// pending one of a principal with the fewest runs being executed, or the given one only.
    ///
    /// A lease expires by the boot clock of the machine that granted it. On another boot, where that clock has no
    /// meaning, it expires by the wall clock.
    async fn claim(
        &self,
        worker: &WorkerId,
        lease_ms: u64,
        only: Option<&RunId>,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Claims a run as [`Self::claim`] does, of a principal none of whose runs is being executed.
    async fn claim_of_idle_principal(
        &self,
        worker: &WorkerId,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Releases a lease without a report (of a worker that is stopped): the run can be claimed immediately.
    async fn release_lease(&self, run: &RunId, fence: u64) -> Result<(), StoreError>;

    /// Extends a lease.
    ///
    /// # Errors
    /// Returns [`StoreError::Refused`] if the fencing token is stale: the worker has to stop its children and give up
    /// the run.
    async fn renew(&self, run: &RunId, fence: u64, lease_ms: u64) -> Result<(), StoreError>;

    /// Records that a step is about to start, before it has any external effect, as a batch with a number: see
    /// [`Store::append`].
    ///
    /// # Errors
    /// Returns [`skills_model::TransitionError::Paused`] for a step of a paused run that has not started before.
    async fn record_intent(
        &self,
        run: &RunId,
        fence: u64,
        batch: u32,
        intent: StepIntent,
    ) -> Result<(), StoreError>;

    /// Applies a worker's report with its finished steps, the new checkpoint, events, and the intents of the steps that
    /// follow.
    ///
    /// An event `signal.consumed` with the field `name` removes the oldest buffered signal of that name. A report that
    /// waits for a signal that is already buffered leads to `pending`.
    ///
    /// Of a paused run that is still executing, only intents of steps that started before are stored: the returned
    /// record states whether it is paused.
    ///
    /// A step that failed without an attempt keeps the intent of an earlier attempt that is not repeatable: the outcome
    /// of that one is unknown.
    ///
    /// A run that fails stores the result of the failed step as its error; if no step caused it, the data of an event
    /// `run.failed` among `events`.
    async fn report(
        &self,
        run: &RunId,
        command: Command,
        finished: Vec<StepRecord>,
        checkpoint: Option<Checkpoint>,
        intents: Vec<StepIntent>,
        events: Vec<NewEvent>,
    ) -> Result<RunRecord, StoreError>;

    /// Appends events of a step in progress (its output lines) under the fencing token, as a batch with a number. The
    /// numbers of a token increase: a batch that is not later than the last one is recorded already, and is not recorded
    /// again, so that a caller without an answer can repeat the call.
    async fn append(
        &self,
        run: &RunId,
        fence: u64,
        batch: u32,
        events: Vec<NewEvent>,
    ) -> Result<(), StoreError>;

    /// Applies a command of a person or another program: decide, signal, cancel, pause, resume, expire. `resume` may
    /// move the head to an earlier checkpoint of this run; later steps run again. The payload is that of a signal, or
    /// the corrected inputs of a resumed run (recorded as such in its event).
    ///
    /// A decision that is already recorded and answers no pending question changes nothing, and the outcome contains
    /// the record. After a wait has expired, the state after its expiry applies: a decision on it is refused, and a
    /// command that is applied records the expiry first. The run of the outcome is without inputs, contents of its
    /// target and outputs that are too long for a list.
    ///
    /// # Errors
    /// Returns [`StoreError::AlreadyDecided`] if the step was decided differently, and [`StoreError::Refused`].
    async fn command(
        &self,
        run: &RunId,
        command: Command,
        record: Option<DecisionRecord>,
        head: Option<u64>,
        payload: Option<serde_json::Value>,
    ) -> Result<CommandOutcome, StoreError> {
        self.command_if(run, None, command, record, head, payload).await
    }

    /// Applies a command like [`Self::command`], but only while the run is still in the state that it entered at this
    /// moment (milliseconds since 1970-01-01 UTC), if one is given.
    ///
    /// # Errors
    /// Returns [`StoreError::PreconditionFailed`] if the run has changed its state since, and those of [`Self::command`].
    async fn command_if(
        &self,
        run: &RunId,
        since_ms: Option<i64>,
        command: Command,
        record: Option<DecisionRecord>,
        head: Option<u64>,
        payload: Option<serde_json::Value>,
    ) -> Result<CommandOutcome, StoreError>;

    /// Applies what a finished sidecar requested for the run it watches: the command and the event `control.applied` of
    /// both runs (or `control.refused` of both) in one transaction. Repeated calls return the first outcome.
    async fn control(
        &self,
        sidecar: &RunId,
        watched: &RunId,
        control: Control,
    ) -> Result<ControlOutcome, StoreError>;

    /// Creates a run that continues from a checkpoint of another: copied steps, lineage, own checkpoints. If the
    /// creator is given, it becomes the one who started the run.
    async fn fork(
        &self,
        source: &RunId,
        checkpoint: Option<u64>,
        new: RunId,
        paused: bool,
        by: Option<String>,
    ) -> Result<RunRecord, StoreError> {
        self.fork_if(source, None, checkpoint, new, paused, by).await
    }

    /// Creates a run like [`Self::fork`], but only while its source is still in the state that it entered at this moment
    /// (milliseconds since 1970-01-01 UTC), if one is given.
    ///
    /// # Errors
    /// Returns [`StoreError::PreconditionFailed`] if the source has changed its state since.
    async fn fork_if(
        &self,
        source: &RunId,
        since_ms: Option<i64>,
        checkpoint: Option<u64>,
        new: RunId,
        paused: bool,
        by: Option<String>,
    ) -> Result<RunRecord, StoreError>;

    /// Returns the oldest buffered signal of this name for a run. It stays buffered until a report consumes it.
    async fn buffered_signal(&self, run: &RunId, name: &str)
    -> Result<Option<serde_json::Value>, StoreError>;

    /// Returns a run. A wait that has expired is returned as ended, here and in every other read, even if its expiry is
    /// not recorded yet; reading writes nothing.
    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Returns a run as in a list: without inputs and outputs that are too long for one.
    async fn listed_run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Returns a page of runs: waiting ones first (oldest first), then the others, newest first.
    async fn runs(&self, filter: RunFilter) -> Result<RunPage, StoreError>;

    /// Returns the steps of a run in recording order. Inputs and results that do not fit in `max_content` bytes of JSON in
    /// total are omitted, except those of failed steps and of records of up to [`StepRecord::SHORT_BYTES`].
    async fn steps(&self, run: &RunId, max_content: u64) -> Result<Vec<StepRecord>, StoreError>;

    /// Returns a recorded step of a run.
    async fn step(&self, run: &RunId, step: &str) -> Result<Option<StepRecord>, StoreError>;

    /// Returns the steps of a run that have started and have no result.
    async fn intents(&self, run: &RunId) -> Result<Vec<StepIntent>, StoreError>;

    /// Returns a checkpoint of a run.
    ///
    /// # Errors
    /// Returns [`StoreError::NoCheckpoint`] if it does not exist.
    async fn checkpoint(&self, run: &RunId, number: u64) -> Result<Checkpoint, StoreError>;

    /// Returns the newest checkpoints of a run, before a number if stated, oldest first: at most `limit`, none only if
    /// there is none. Large checkpoints make a page shorter: continue before its first one until a page is empty.
    async fn checkpoints(
        &self,
        run: &RunId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Checkpoint>, StoreError>;

    /// Returns at most `limit` events of a run (or of all runs) after a number, none only if there is none. Large events
    /// make a page shorter: continue after its last event until a page is empty.
    async fn events(
        &self,
        run: Option<&RunId>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<RunEvent>, StoreError>;

    /// Waits until there may be events after this global number, or the timeout expires.
    async fn wait(&self, after: u64, timeout_ms: u64) -> Result<(), StoreError>;

    /// Returns the contract that a run was launched with, by its digest.
    async fn contract(&self, digest: &str) -> Result<Option<serde_json::Value>, StoreError>;

    /// Returns the decisions on a run, oldest first.
    async fn decisions(&self, run: &RunId) -> Result<Vec<RecordedDecision>, StoreError>;

    /// Returns the runs that were replayed or forked from this one, oldest first.
    async fn descendants(&self, run: &RunId) -> Result<Vec<RunId>, StoreError>;

    /// Returns the waiting runs that have expired by the store's clock, as they were recorded; their expiry is yet to
    /// be recorded ([`Command::Expire`]).
    async fn expired(&self) -> Result<Vec<RunRecord>, StoreError>;

    /// Returns runs as in a list that have waited for approval since a moment (milliseconds since 1970-01-01 UTC) or
    /// longer and were not escalated, oldest first, after the given place of an earlier result; each with its place.
    async fn unescalated(
        &self,
        since_ms: i64,
        after: Option<(i64, i64)>,
        limit: usize,
    ) -> Result<Vec<(RunRecord, (i64, i64))>, StoreError>;

    /// Returns the events about waits that continue, and began at a moment (milliseconds since 1970-01-01 UTC) or later,
    /// whose webhook message was not sent or not delivered: those after an event, by global number, in that order.
    async fn unnotified(&self, since_ms: i64, after: u64, limit: usize) -> Result<Vec<RunEvent>, StoreError>;

    /// Returns the unique id of this store, created with it: event numbers have no meaning in another store.
    fn identity(&self) -> String;

    /// Returns the global number of the newest event; 0 if there is none.
    async fn newest_event(&self) -> Result<u64, StoreError>;

    /// Returns the number of the newest event of a run; 0 if there is none.
    async fn newest_run_event(&self, run: &RunId) -> Result<u64, StoreError>;

    /// Deletes ended runs (completed, canceled, failed) that ended before a moment, with everything that belongs to
    /// them; returns how many.
    async fn purge(&self, before_ms: i64) -> Result<u64, StoreError> {
        let ended = [RunState::Completed, RunState::Canceled, RunState::Failed];
        self.purge_states(&ended, before_ms).await
    }

    /// Like [`Self::purge`], limited to runs that ended in one of these states. Non-terminal states are ignored.
    async fn purge_states(&self, states: &[RunState], before_ms: i64) -> Result<u64, StoreError>;

    /// Merges fields into the options of a run (`null` removes one) and appends events, in one transaction. For
    /// properties on which no state depends: its title, labels, assignee. With a precondition, only if that holds. The
    /// run is returned as by [`Self::command`].
    ///
    /// # Errors
    /// Returns [`StoreError::NoRun`]; [`StoreError::AssignmentConflict`] or [`StoreError::PreconditionFailed`]; [`StoreError::InvalidRequest`] for
    /// invalid options, or for more assignments than the maximum.
    async fn annotate(
        &self,
        run: &RunId,
        options: Map<String, Value>,
        events: Vec<NewEvent>,
        requires: Option<Precondition>,
    ) -> Result<RunRecord, StoreError>;

    /// Returns the documents whose names have this prefix, sorted by name.
    async fn documents(&self, prefix: &str) -> Result<Vec<Document>, StoreError>;

    /// Writes a document, or deletes it if there is no value; returns its new version, 0 for a deleted one. With
    /// `expected`, only if that is its current version (0: it does not exist).
    ///
    /// # Errors
    /// Returns [`StoreError::DocumentConflict`]; [`StoreError::InvalidRequest`] for a document that is too large.
    async fn put_document(
        &self,
        name: &str,
        value: Option<Value>,
        expected: Option<u64>,
    ) -> Result<u64, StoreError>;

    /// Deletes audit data of runs that ended before a moment: inputs of steps and output lines, which a replay does not
    /// need. Returns how many runs had any.
    async fn prune(&self, before_ms: i64) -> Result<u64, StoreError>;

    /// Checks the integrity of the storage and the consistency of the records.
    async fn check(&self) -> Result<Health, StoreError>;

    /// Checks for damage within a time limit; the result states whether the check was complete.
    async fn quick_check(&self, patience: Duration) -> Result<QuickCheck, StoreError>;

    /// Writes a complete copy, consistent during concurrent writes.
    ///
    /// # Errors
    /// Returns [`StoreError::Failed`], also if the file already exists; an interrupted copy leaves nothing behind.
    async fn backup(&self, to: &Path) -> Result<(), StoreError>;

    /// Copies everything of a database file of the embedded store into this store, which has no runs yet, in one
    /// transaction; returns how many rows each table had. The file is not changed.
    ///
    /// # Errors
    /// Returns [`StoreError::NotEmpty`]; [`StoreError::Unavailable`] for a file that a process has open or that changed
    /// in the meantime; [`StoreError::Newer`].
    async fn import(&self, from: &Path) -> Result<Vec<TableRows>, StoreError>;

    /// Returns the space of deleted records to the system. Blocks writers meanwhile.
    async fn compact(&self) -> Result<(), StoreError>;

    /// Records that a worker is alive, with the current time of the store's clock.
    async fn heartbeat(&self, worker: &WorkerId) -> Result<(), StoreError>;

    /// Deregisters a worker that shut down cleanly: it is no longer active.
    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError>;

    /// Returns the workers that hold a lease, expired or not.
    async fn leaseholders(&self) -> Result<Vec<WorkerId>, StoreError>;

    /// Expires all leases of a worker that is known to be dead, so that its runs can be claimed immediately; returns
    /// how many. Each counts as lost, as if it had timed out.
    async fn expire_leases(&self, worker: &WorkerId) -> Result<u64, StoreError>;

    /// Checks that the store can be written, by writing to it, and that it is the one that was opened.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`] otherwise.
    async fn probe(&self) -> Result<(), StoreError>;

    /// Returns the failure of the last write or probe; `None` if it succeeded.
    fn write_failure(&self) -> Option<WriteFailure>;

    /// Returns whether there is pending work; cheap enough for polling.
    async fn due(&self) -> Result<Due, StoreError>;

    /// Returns the workers with a heartbeat within the last `max_age_ms`.
    async fn live_workers(&self, max_age_ms: u64) -> Result<Vec<WorkerId>, StoreError>;

    /// Returns which part of what a run continues from (`inputs`, `checkpoint`) differs from what was written, if any.
    async fn damage(&self, run: &RunId) -> Result<Option<&'static str>, StoreError>;

    /// Returns the input of the state machine for this run.
    async fn run_snapshot(&self, run: &RunId) -> Result<Option<RunSnapshot>, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modified_part_is_named_in_singular_or_plural() {
        let message = |part| damaged(&RunId("r".into()), part);
        assert!(message("inputs").contains("stored inputs of run r were modified"), "{}", message("inputs"));
        assert!(message("checkpoint").contains("stored checkpoint of run r was modified"));
    }
}
