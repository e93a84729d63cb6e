//! The store's methods, each handed to the part that does it, on the writing or the reading side.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use fail::fail_point;
use serde_json::{Map, Value};

use super::{
    Sqlite, checkpoints, command, control, documents, integrity, launch, maintenance, read, report, rows,
    work,
};
use crate::{
    Begun, Checkpoint, Claimed, CommandOutcome, Control, ControlOutcome, Decided, DecisionRecord, Document,
    Due, Glance, Health, Launch, NewEvent, RunEvent, RunFilter, RunId, RunPage, RunRecord, StepIntent,
    StepRecord, Store, StoreError, WorkerId, WriteFailure,
};
use skills_model::{Command, RunState, Standing, WorkerMove};

#[async_trait]
impl Store for Sqlite {
    fn describe(&self) -> String {
        self.place.clone()
    }

    async fn launch(&self, launch: Launch) -> Result<Begun, StoreError> {
        let begun = self
            .write(move |connection, now| {
                let begun = launch::launch(connection, &launch, now);
                fail_point!("launch-before-commit");
                begun
            })
            .await;
        fail_point!("launch-after-commit");
        begun
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        lease_ms: u64,
        only: Option<&RunId>,
    ) -> Result<Option<Claimed>, StoreError> {
        let (worker, only, places) = (worker.clone(), only.cloned(), self.claimable_places());
        let claimed = self
            .write_at(move |connection, now| {
                work::claim(connection, &worker, lease_ms, (only.as_ref(), places().as_deref()), now)
            })
            .await;
        if let Ok(Some(_)) = claimed {
            fail_point!("claim-after-commit");
        }
        claimed
    }

    async fn give_back(&self, run: &RunId, fence: u64) -> Result<(), StoreError> {
        let run = run.clone();
        self.write(move |connection, now| work::give_back(connection, &run, fence, now)).await
    }

    async fn renew(&self, run: &RunId, fence: u64, lease_ms: u64) -> Result<(), StoreError> {
        let run = run.clone();
        self.write_at(move |connection, now| work::renew(connection, &run, fence, lease_ms, now)).await
    }

    async fn intend(&self, run: &RunId, fence: u64, intent: StepIntent) -> Result<(), StoreError> {
        let run = run.clone();
        self.write(move |connection, now| work::intend(connection, &run, fence, &intent, now)).await
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
        let report = report::Report { command, finished, checkpoint, intents, events };
        let waits = matches!(report.command, Command::Work { report: WorkerMove::Wait(_), .. });
        let reported = self
            .write(move |connection, now| {
                let reported = report::report(connection, &run, &report, now);
                fail_point!("report-before-commit");
                reported
            })
            .await;
        fail_point!("report-after-commit");
        if waits {
            fail_point!("wait-after-commit");
        }
        reported
    }

    async fn append(&self, run: &RunId, fence: u64, events: Vec<NewEvent>) -> Result<(), StoreError> {
        let run = run.clone();
        self.write(move |connection, now| work::note(connection, &run, fence, &events, now)).await
    }

    async fn command(
        &self,
        run: &RunId,
        command: Command,
        record: Option<DecisionRecord>,
        head: Option<u64>,
        payload: Option<Value>,
    ) -> Result<CommandOutcome, StoreError> {
        let run = run.clone();
        let order = command::Order { command, record, head, payload };
        let moved = self
            .write(move |connection, now| {
                let moved = command::command(connection, &run, &order, now);
                fail_point!("command-before-commit");
                moved
            })
            .await;
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
        self.write(move |connection, now| control::control(connection, &sidecar, &watched, &control, now))
            .await
    }

    async fn branch(
        &self,
        source: &RunId,
        checkpoint: Option<u64>,
        new: RunId,
        held: bool,
        by: Option<String>,
    ) -> Result<RunRecord, StoreError> {
        let source = source.clone();
        let branch = launch::Branch { new, checkpoint, held, by };
        self.write(move |connection, now| launch::branch(connection, &source, &branch, now)).await
    }

    async fn kept_signal(&self, run: &RunId, name: &str) -> Result<Option<Value>, StoreError> {
        let (run, name) = (run.clone(), name.to_owned());
        self.read(move |connection| report::kept_signal(connection, &run, &name)).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let run = run.clone();
        let now = self.clocks.now().wall_ms;
        self.read(move |connection| Ok(rows::find_as_of(connection, &run, now)?.map(|(run, _)| run))).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<RunPage, StoreError> {
        let now = self.clocks.now().wall_ms;
        self.read(move |connection| read::runs(connection, &filter, now)).await
    }

    async fn steps(&self, run: &RunId) -> Result<Vec<StepRecord>, StoreError> {
        let run = run.clone();
        self.read(move |connection| read::steps(connection, &run)).await
    }

    async fn intents(&self, run: &RunId) -> Result<Vec<StepIntent>, StoreError> {
        let run = run.clone();
        self.read(move |connection| read::intents(connection, &run)).await
    }

    async fn checkpoint(&self, run: &RunId, number: u64) -> Result<Checkpoint, StoreError> {
        let run = run.clone();
        self.read(move |connection| checkpoints::one(connection, &run, number)).await
    }

    async fn checkpoints(&self, run: &RunId) -> Result<Vec<Checkpoint>, StoreError> {
        let run = run.clone();
        self.read(move |connection| checkpoints::all(connection, &run)).await
    }

    async fn events(
        &self,
        run: Option<&RunId>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<RunEvent>, StoreError> {
        let run = run.cloned();
        self.read(move |connection| read::events(connection, run.as_ref(), after, limit)).await
    }

    async fn wait(&self, after: u64, timeout_ms: u64) -> Result<(), StoreError> {
        let mut committed = self.committed.clone();
        let deadline = tokio::time::Instant::now() + Duration::from_millis(timeout_ms);
        loop {
            committed.mark_unchanged();
            if self.read(read::newest).await? > after || tokio::time::Instant::now() >= deadline {
                return Ok(());
            }
            // Our own commits wake us, and those of other processes where their log can be watched.
            let turn = deadline.min(tokio::time::Instant::now() + self.poll);
            let _ = tokio::time::timeout_at(turn, committed.changed()).await;
        }
    }

    async fn contract(&self, digest: &str) -> Result<Option<Value>, StoreError> {
        let digest = digest.to_owned();
        self.read(move |connection| read::contract(connection, &digest)).await
    }

    async fn decisions(&self, run: &RunId) -> Result<Vec<Decided>, StoreError> {
        let run = run.clone();
        self.read(move |connection| read::decisions(connection, &run)).await
    }

    async fn descendants(&self, run: &RunId) -> Result<Vec<RunId>, StoreError> {
        let run = run.clone();
        self.read(move |connection| read::descendants(connection, &run)).await
    }

    async fn expired(&self) -> Result<Vec<RunRecord>, StoreError> {
        let now = self.clocks.now().wall_ms;
        self.read(move |connection| read::expired(connection, now)).await
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    async fn newest_event(&self) -> Result<u64, StoreError> {
        self.read(read::newest).await
    }

    async fn purge_states(&self, states: &[RunState], before_ms: i64) -> Result<u64, StoreError> {
        let states = states.to_vec();
        self.write(move |connection, _| maintenance::purge(connection, &states, before_ms)).await
    }

    async fn annotate(
        &self,
        run: &RunId,
        options: Map<String, Value>,
        events: Vec<NewEvent>,
    ) -> Result<RunRecord, StoreError> {
        let run = run.clone();
        self.write(move |connection, now| command::annotate(connection, &run, &options, &events, now)).await
    }

    async fn documents(&self, prefix: &str) -> Result<Vec<Document>, StoreError> {
        let prefix = prefix.to_owned();
        self.read(move |connection| documents::list(connection, &prefix)).await
    }

    async fn put_document(
        &self,
        name: &str,
        value: Option<Value>,
        expected: Option<u64>,
    ) -> Result<u64, StoreError> {
        let name = name.to_owned();
        self.write(move |connection, _| documents::put(connection, &name, value.as_ref(), expected)).await
    }

    async fn forget(&self, before_ms: i64) -> Result<u64, StoreError> {
        self.write(move |connection, _| maintenance::forget(connection, before_ms)).await
    }

    async fn check(&self) -> Result<Health, StoreError> {
        self.read_apart(maintenance::check).await
    }

    async fn glance(&self, patience: Duration) -> Result<Glance, StoreError> {
        self.read_apart(move |connection| maintenance::glance(connection, patience)).await
    }

    async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let to = to.to_owned();
        self.read_apart(move |connection| maintenance::backup(connection, &to)).await
    }

    async fn compact(&self) -> Result<(), StoreError> {
        self.writer()?.alone(maintenance::compact).await
    }

    async fn beat(&self, worker: &WorkerId) -> Result<(), StoreError> {
        let worker = worker.clone();
        self.write_at(move |connection, now| maintenance::beat(connection, &worker, now)).await
    }

    async fn retire(&self, worker: &WorkerId) -> Result<(), StoreError> {
        let worker = worker.clone();
        self.write(move |connection, _| maintenance::retire(connection, &worker)).await
    }

    async fn leaseholders(&self) -> Result<Vec<WorkerId>, StoreError> {
        self.read(read::leaseholders).await
    }

    async fn abandon(&self, worker: &WorkerId) -> Result<u64, StoreError> {
        let worker = worker.clone();
        self.write(move |connection, now| work::abandon(connection, &worker, now)).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        let probed = self.probe_file().await;
        match &probed {
            Ok(()) => {}
            Err(error) => self.health.failed(error, self.clocks.now().wall_ms),
        }
        probed
    }

    fn write_failure(&self) -> Option<WriteFailure> {
        self.health.failure()
    }

    async fn due(&self) -> Result<Due, StoreError> {
        let now = self.clocks.now();
        let places = self.claimable_places();
        self.read(move |connection| read::due(connection, &now, places().as_deref())).await
    }

    async fn live_workers(&self, max_age_ms: u64) -> Result<Vec<WorkerId>, StoreError> {
        let now = self.clocks.now();
        self.read(move |connection| read::workers(connection, &now, max_age_ms)).await
    }

    async fn damage(&self, run: &RunId) -> Result<Option<&'static str>, StoreError> {
        let run = run.clone();
        self.read(move |connection| integrity::damage(connection, &run)).await
    }

    async fn standing(&self, run: &RunId) -> Result<Option<Standing>, StoreError> {
        let run = run.clone();
        let now = self.clocks.now().wall_ms;
        self.read(move |connection| {
            let found = rows::find_as_of(connection, &run, now)?;
            Ok(found.map(|(run, replays)| rows::standing(&run, replays)))
        })
        .await
    }
}
