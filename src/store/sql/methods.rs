//! The methods of both stores. Each is one transaction: a function of this module, run by the engine's `write` or
//! `read` macro. What is specific to an engine is a method of the store itself.

/// Implements the traits of a store. `$write` runs its second argument in a transaction that writes, and retries it if
/// the database requests that; `$read` in one that reads a consistent snapshot; `$follow` in one in which each
/// statement reads what is committed by then.
macro_rules! implement_store {
    ($store:ty, $write:ident, $read:ident, $follow:ident) => {
        #[async_trait::async_trait]
        impl crate::Store for $store {
            fn describe(&self) -> String {
                self.place.clone()
            }

            async fn launch(&self, launch: Launch) -> Result<LaunchOutcome, StoreError> {
                let begun = $write!(self, tx => {
                    let begun = launch::launch(tx, &launch).await;
                    fail_point!("launch-before-commit");
                    begun
                });
                fail_point!("launch-after-commit");
                begun
            }

            async fn claim(
                &self,
                worker: &WorkerId,
                lease_ms: u64,
                only: Option<&RunId>,
            ) -> Result<Option<Claimed>, StoreError> {
                let (worker, only) = (worker.clone(), only.cloned());
                let places = self.claimable_places().await?;
                let claimed = $write!(self, tx => {
                    let which = only.as_ref().map_or(claims::Candidates::Any, claims::Candidates::One);
                    claims::claim(tx, &worker, lease_ms, which, places.as_deref()).await
                });
                if let Ok(Some(_)) = claimed {
                    fail_point!("claim-after-commit");
                }
                claimed
            }

            async fn claim_of_idle_principal(
                &self,
                worker: &WorkerId,
                lease_ms: u64,
            ) -> Result<Option<Claimed>, StoreError> {
                let worker = worker.clone();
                let places = self.claimable_places().await?;
                $write!(self, tx => {
                    let which = claims::Candidates::OfIdlePrincipal;
                    claims::claim(tx, &worker, lease_ms, which, places.as_deref()).await
                })
            }

            async fn release_lease(&self, run: &RunId, fence: u64) -> Result<(), StoreError> {
                let run = run.clone();
                $write!(self, tx => claims::release_lease(tx, &run, fence).await)
            }

            async fn renew(&self, run: &RunId, fence: u64, lease_ms: u64) -> Result<(), StoreError> {
                let run = run.clone();
                $write!(self, tx => claims::renew(tx, &run, fence, lease_ms).await)
            }

            async fn record_intent(
                &self,
                run: &RunId,
                fence: u64,
                batch: u32,
                intent: StepIntent,
            ) -> Result<(), StoreError> {
                let run = run.clone();
                $write!(self, tx => claims::record_intent(tx, &run, fence, batch, &intent).await)
            }

            async fn report(
                &self,
                run: &RunId,
                command: Command,
                finished: Vec<StepRecord>,
                checkpoint: Option<Checkpoint>,
                intents: Vec<StepIntent>,
                events: Vec<NewEvent>,
            ) -> Result<RunRecord, StoreError> {
                let run = run.clone();
                let waits = matches!(command, Command::Work { report: WorkerReport::Wait(_), .. });
                let report = report::Report { command, finished, checkpoint, intents, events };
                let reported = $write!(self, tx => {
                    let reported = report::report(tx, &run, &report).await;
                    fail_point!("report-before-commit");
                    reported
                });
                fail_point!("report-after-commit");
                if waits {
                    fail_point!("wait-after-commit");
                }
                reported
            }

            async fn append(
                &self,
                run: &RunId,
                fence: u64,
                batch: u32,
                events: Vec<NewEvent>,
            ) -> Result<(), StoreError> {
                let run = run.clone();
                let appended = $write!(self, tx => claims::note(tx, &run, fence, batch, &events).await);
                fail_point!("append-answer-lost", |_| {
                    let (action, reason) = ("append".to_owned(), "the response was lost".to_owned());
                    Err(StoreError::Unavailable { cause: crate::Unavailability::Io, action, reason })
                });
                appended
            }

            async fn command_if(
                &self,
                run: &RunId,
                since_ms: Option<i64>,
                command: Command,
                record: Option<DecisionRecord>,
                head: Option<u64>,
                payload: Option<Value>,
            ) -> Result<CommandOutcome, StoreError> {
                let run = run.clone();
                let request = command::CommandRequest { since_ms, command, record, head, payload };
                let moved = $write!(self, tx => {
                    let moved = command::command(tx, &run, &request).await;
                    fail_point!("command-before-commit");
                    moved
                });
                fail_point!("command-after-commit");
                moved
            }

            async fn control(
                &self,
                sidecar: &RunId,
                watched: &RunId,
                control: Control,
            ) -> Result<ControlOutcome, StoreError> {
                let (sidecar, watched) = (sidecar.clone(), watched.clone());
                $write!(self, tx => control::control(tx, &sidecar, &watched, &control).await)
            }

            async fn fork_if(
                &self,
                source: &RunId,
                since_ms: Option<i64>,
                checkpoint: Option<u64>,
                new: RunId,
                paused: bool,
                by: Option<String>,
            ) -> Result<RunRecord, StoreError> {
                let source = source.clone();
                let branch = launch::Fork { since_ms, new, checkpoint, paused, by };
                $write!(self, tx => launch::fork(tx, &source, &branch).await)
            }

            async fn buffered_signal(&self, run: &RunId, name: &str) -> Result<Option<Value>, StoreError> {
                let (run, name) = (run.clone(), name.to_owned());
                $read!(self, tx => report::buffered_signal(tx, &run, &name).await)
            }

            async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
                let run = run.clone();
                $read!(self, tx => rows::find_as_of(tx, &run).await)
            }

            async fn listed_run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
                let run = run.clone();
                $read!(self, tx => rows::find_listed(tx, &run).await)
            }

            async fn runs(&self, filter: RunFilter) -> Result<RunPage, StoreError> {
                if filter.is_search() {
                    return self.search_runs(filter).await;
                }
                $read!(self, tx => read::runs(tx, &filter).await)
            }

            async fn steps(&self, run: &RunId, max_content: u64) -> Result<Vec<StepRecord>, StoreError> {
                let run = run.clone();
                $read!(self, tx => read::steps(tx, &run, max_content).await)
            }

            async fn step(&self, run: &RunId, step: &str) -> Result<Option<StepRecord>, StoreError> {
                let (run, step) = (run.clone(), step.to_owned());
                $read!(self, tx => read::step(tx, &run, &step).await)
            }

            async fn intents(&self, run: &RunId) -> Result<Vec<StepIntent>, StoreError> {
                let run = run.clone();
                $read!(self, tx => read::intents(tx, &run).await)
            }

            async fn checkpoint(&self, run: &RunId, number: u64) -> Result<Checkpoint, StoreError> {
                let run = run.clone();
                $read!(self, tx => checkpoints::read_checkpoint(tx, &run, number).await)
            }

            async fn checkpoints(
                &self,
                run: &RunId,
                before: Option<u64>,
                limit: usize,
            ) -> Result<Vec<Checkpoint>, StoreError> {
                let run = run.clone();
                $read!(self, tx => checkpoints::page(tx, &run, before, limit).await)
            }

            async fn events(
                &self,
                run: Option<&RunId>,
                after: u64,
                limit: usize,
            ) -> Result<Vec<RunEvent>, StoreError> {
                let run = run.cloned();
                $follow!(self, tx => read::events(tx, run.as_ref(), after, limit).await)
            }

            async fn wait(&self, mut after: u64, timeout_ms: u64) -> Result<(), StoreError> {
                let mut committed = self.committed.clone();
                let deadline = tokio::time::Instant::now() + Duration::from_millis(timeout_ms);
                let mut has_waited = false;
                loop {
                    committed.mark_unchanged();
                    let newest = self.newest_event().await?;
                    if newest > after {
                        if has_waited || !self.events(None, after, 1).await?.is_empty() {
                            return Ok(());
                        }
                        // Otherwise numbers without events would end every wait at once: those of transactions that
                        // were rolled back, and of events that were purged.
                        after = newest;
                    }
                    if tokio::time::Instant::now() >= deadline {
                        return Ok(());
                    }
                    // Commits of this process wake the caller, and those of other processes if the engine learns of
                    // them.
                    let turn = deadline.min(tokio::time::Instant::now() + self.poll());
                    let _ = tokio::time::timeout_at(turn, committed.changed()).await;
                    has_waited = true;
                }
            }

            async fn contract(&self, digest: &str) -> Result<Option<Value>, StoreError> {
                let digest = digest.to_owned();
                $read!(self, tx => read::contract(tx, &digest).await)
            }

            async fn decisions(&self, run: &RunId) -> Result<Vec<RecordedDecision>, StoreError> {
                let run = run.clone();
                $read!(self, tx => read::decisions(tx, &run).await)
            }

            async fn descendants(&self, run: &RunId) -> Result<Vec<RunId>, StoreError> {
                let run = run.clone();
                $read!(self, tx => read::descendants(tx, &run).await)
            }

            async fn expired(&self) -> Result<Vec<RunRecord>, StoreError> {
                $read!(self, tx => read::expired(tx).await)
            }

            async fn unescalated(
                &self,
                since_ms: i64,
                after: Option<(i64, i64)>,
                limit: usize,
            ) -> Result<Vec<(RunRecord, (i64, i64))>, StoreError> {
                $read!(self, tx => read::unescalated(tx, since_ms, after, limit).await)
            }

            async fn unnotified(
                &self,
                since_ms: i64,
                after: u64,
                limit: usize,
            ) -> Result<Vec<RunEvent>, StoreError> {
                $read!(self, tx => read::unnotified(tx, since_ms, after, limit).await)
            }

            fn identity(&self) -> String {
                self.identity.clone()
            }

            async fn newest_event(&self) -> Result<u64, StoreError> {
                $follow!(self, tx => read::newest(tx).await)
            }

            async fn newest_run_event(&self, run: &RunId) -> Result<u64, StoreError> {
                let run = run.clone();
                $read!(self, tx => read::newest_of_run(tx, &run).await)
            }

            async fn purge_states(&self, states: &[RunState], before_ms: i64) -> Result<u64, StoreError> {
                let mut purged = 0;
                loop {
                    let states = states.to_vec();
                    let some = $write!(self, tx => maintenance::purge(tx, &states, before_ms, PURGED).await)?;
                    purged += some;
                    if some < PURGED as u64 {
                        break;
                    }
                }
                $write!(self, tx => maintenance::purge_contracts(tx).await)?;
                Ok(purged)
            }

            async fn annotate(
                &self,
                run: &RunId,
                options: Map<String, Value>,
                events: Vec<NewEvent>,
                requires: Option<Precondition>,
            ) -> Result<RunRecord, StoreError> {
                let run = run.clone();
                $write!(self, tx => command::annotate(tx, &run, &options, &events, requires.as_ref()).await)
            }

            async fn documents(&self, prefix: &str) -> Result<Vec<Document>, StoreError> {
                let prefix = prefix.to_owned();
                $read!(self, tx => documents::list(tx, &prefix).await)
            }

            async fn put_document(
                &self,
                name: &str,
                value: Option<Value>,
                expected: Option<u64>,
            ) -> Result<u64, StoreError> {
                let name = name.to_owned();
                $write!(self, tx => documents::put(tx, &name, value.as_ref(), expected).await)
            }

            async fn prune(&self, before_ms: i64) -> Result<u64, StoreError> {
                $write!(self, tx => maintenance::prune(tx, before_ms).await)
            }

            async fn check(&self) -> Result<Health, StoreError> {
                self.check_storage().await
            }

            async fn quick_check(&self, patience: Duration) -> Result<QuickCheck, StoreError> {
                self.quick_check_storage(patience).await
            }

            async fn backup(&self, to: &Path) -> Result<(), StoreError> {
                self.copy_storage(to).await
            }

            async fn import(&self, from: &Path) -> Result<Vec<TableRows>, StoreError> {
                if self.is_at(from) {
                    return Err(StoreError::InvalidRequest(format!("{} is the store itself", self.place)));
                }
                let (from, place) = (from.to_owned(), self.place.clone());
                let source = tokio::task::spawn_blocking(move || Source::open(&from))
                    .await
                    .map_err(|e| crate::sql::failed("open the source", &e))??;
                let source = Arc::new(source);
                $write!(self, tx => {
                    let rows = source.rows()?;
                    import::import(tx, &place, &source, rows).await
                })
            }

            async fn compact(&self) -> Result<(), StoreError> {
                self.compact_storage().await
            }

            async fn heartbeat(&self, worker: &WorkerId) -> Result<(), StoreError> {
                let worker = worker.clone();
                $write!(self, tx => maintenance::heartbeat(tx, &worker).await)
            }

            async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError> {
                let worker = worker.clone();
                $write!(self, tx => maintenance::deregister_worker(tx, &worker).await)
            }

            async fn leaseholders(&self) -> Result<Vec<WorkerId>, StoreError> {
                $read!(self, tx => read::leaseholders(tx).await)
            }

            async fn expire_leases(&self, worker: &WorkerId) -> Result<u64, StoreError> {
                let worker = worker.clone();
                $write!(self, tx => claims::expire_leases(tx, &worker).await)
            }

            async fn probe(&self) -> Result<(), StoreError> {
                let probed = self.probe_storage().await;
                if let Err(error) = &probed {
                    self.health.failed(error, self.wall_ms());
                }
                probed
            }

            fn write_failure(&self) -> Option<WriteFailure> {
                self.health.failure()
            }

            async fn due(&self) -> Result<Due, StoreError> {
                let places = self.claimable_places().await?;
                $read!(self, tx => read::due(tx, places.as_deref()).await)
            }

            async fn live_workers(&self, max_age_ms: u64) -> Result<Vec<WorkerId>, StoreError> {
                $read!(self, tx => read::workers(tx, max_age_ms).await)
            }

            async fn damage(&self, run: &RunId) -> Result<Option<&'static str>, StoreError> {
                let run = run.clone();
                $read!(self, tx => integrity::damage(tx, &run).await)
            }

            async fn run_snapshot(&self, run: &RunId) -> Result<Option<RunSnapshot>, StoreError> {
                let run = run.clone();
                $read!(self, tx => rows::find_snapshot(tx, &run).await)
            }
        }

        #[async_trait::async_trait]
        impl crate::Sessions for $store {
            async fn create_session(
                &self,
                id: &str,
                owner: Option<&str>,
                document: Value,
            ) -> Result<SessionRow, StoreError> {
                let (id, owner) = (id.to_owned(), owner.map(str::to_owned));
                $write!(self, tx => sessions::create(tx, &id, owner.as_deref(), &document).await)
            }

            async fn session(&self, id: &str, skip: u64) -> Result<Option<SessionRow>, StoreError> {
                let id = id.to_owned();
                $read!(self, tx => sessions::read(tx, &id, skip).await)
            }

            async fn sessions(&self, owner: Option<&str>, limit: usize) -> Result<Vec<SessionHead>, StoreError> {
                let owner = owner.map(str::to_owned);
                $read!(self, tx => sessions::list(tx, owner.as_deref(), limit).await)
            }

            async fn session_ids(
                &self,
                owner: Option<&str>,
                part: &str,
                limit: usize,
            ) -> Result<Vec<String>, StoreError> {
                let (owner, part) = (owner.map(str::to_owned), part.to_owned());
                $read!(self, tx => sessions::ids(tx, owner.as_deref(), &part, limit).await)
            }

            async fn change_session(
                &self,
                id: &str,
                version: u64,
                document: Value,
                lines: Vec<Value>,
            ) -> Result<u64, StoreError> {
                let id = id.to_owned();
                let changed = $write!(self, tx => {
                    let changed = sessions::change(tx, &id, version, &document, &lines).await;
                    if changed.is_ok() {
                        fail_point!("session-before-commit");
                    }
                    changed
                })?;
                fail_point!("session-after-commit");
                Ok(changed)
            }

            async fn store_last_call(&self, id: &str, text: String) -> Result<(), StoreError> {
                let id = id.to_owned();
                $write!(self, tx => sessions::store_last_call(tx, &id, &text).await)
            }

            async fn load_last_call(&self, id: &str) -> Result<Option<String>, StoreError> {
                let id = id.to_owned();
                $read!(self, tx => sessions::load_last_call(tx, &id).await)
            }

            async fn session_usage(&self, owner: &str) -> Result<SessionUsage, StoreError> {
                let owner = owner.to_owned();
                $read!(self, tx => sessions::usage(tx, &owner).await)
            }

            async fn purge_sessions(&self, before_ms: i64) -> Result<u64, StoreError> {
                $write!(self, tx => sessions::purge(tx, before_ms).await)
            }
        }

        #[async_trait::async_trait]
        impl crate::Counts for $store {
            async fn add_tallies(&self, tallies: Vec<Tally>) -> Result<(), StoreError> {
                $write!(self, tx => counts::add(tx, &tallies).await)
            }

            async fn tallies(&self) -> Result<Tallies, StoreError> {
                $read!(self, tx => counts::tallies(tx).await)
            }

            async fn reset_tallies(&self) -> Result<Tallies, StoreError> {
                $write!(self, tx => counts::reset(tx).await)
            }

            async fn allowance(
                &self,
                principal: &str,
                began_ms: i64,
                requested: u64,
                limit: u64,
            ) -> Result<Allowance, StoreError> {
                let principal = principal.to_owned();
                $write!(self, tx => counts::allowance(tx, &principal, began_ms, requested, limit).await)
            }

            async fn runs_by_skill(&self) -> Result<Vec<SkillRuns>, StoreError> {
                self.count_runs_by_skill().await
            }
        }

        #[async_trait::async_trait]
        impl crate::AuditAnchors for $store {
            fn store_audit_anchor(&self, log: &str, anchor: AuditAnchor) {
                self.post_audit_anchor(log.to_owned(), anchor);
            }

            async fn audit_anchors(&self, log: &str) -> Result<Vec<AuditAnchor>, StoreError> {
                let log = log.to_owned();
                $read!(self, tx => audit_anchors::all(tx, &log).await)
            }
        }
    };
}
pub(crate) use implement_store;

/// Names used in the macro.
pub(crate) mod prelude {
    pub(crate) use std::path::Path;
    pub(crate) use std::time::Duration;

    pub(crate) use fail::fail_point;
    pub(crate) use serde_json::{Map, Value};

    pub(crate) use crate::sql::{
        audit_anchors, checkpoints, claims, command, control, counts, documents, import, integrity, launch,
        maintenance, read, report, rows, sessions,
    };
    pub(crate) use crate::sqlite::Source;
    pub(crate) use crate::{
        Allowance, AuditAnchor, Checkpoint, Claimed, CommandOutcome, Control, ControlOutcome, DecisionRecord,
        Document, Due, Health, Launch, LaunchOutcome, NewEvent, Precondition, QuickCheck, RecordedDecision,
        RunEvent, RunFilter, RunId, RunPage, RunRecord, SessionHead, SessionRow, SessionUsage, SkillRuns,
        StepIntent, StepRecord, StoreError, TableRows, Tallies, Tally, WorkerId, WriteFailure,
    };
    pub(crate) use skills_model::{Command, RunSnapshot, RunState, WorkerReport};

    /// Maximum number of runs purged in one transaction.
    pub const PURGED: usize = 1000;
}
