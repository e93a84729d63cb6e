//! How an execution ends: the run waits, is complete, or failed; each is one final report.

use serde_json::{Map, json};

use super::approvals::ApprovalRequest;
use super::call::{CallError, CallFailure};
use super::execute::{Engine, ExecutionEnd};
use super::executor::RunExecution;
use super::failure::Failure;
use super::fields::check_outputs;
use super::progress::Progress;
use super::run_writer::ExecutionStop;
use super::scheduled_call::sentence;
use skills_model::{Command, Gate, WorkerReport};
use skills_store::{EventKind, NewEvent, RunId, StepRecord, StoreError};

impl RunExecution<'_> {
    /// Ends a run that cannot be executed at all.
    pub async fn refuse(
        engine: &Engine,
        run: &RunId,
        fence: u64,
        (code, message): (&str, String),
    ) -> ExecutionEnd {
        let error = json!({"code": code, "message": message});
        let event = NewEvent { kind: EventKind::RunFailed, step: None, data: error };
        let command = Command::Work { fence, report: WorkerReport::Fail };
        let none = Vec::new();
        match engine.store.report(run, command, Vec::new(), None, none, vec![event]).await {
            Ok(run) => ExecutionEnd::Failed(run),
            Err(error) => end_for_error(error),
        }
    }

    /// Records the gate and releases the lease.
    pub(super) async fn wait(&mut self, gate: Gate) -> Result<ExecutionEnd, ExecutionStop> {
        let intents = self.opened_intents();
        let run = self.report(WorkerReport::Wait(gate), Vec::new(), intents).await?;
        Ok(ExecutionEnd::Waiting(run))
    }

    /// Releases a paused run; it continues when it is resumed.
    pub(super) async fn pause(&mut self) -> Result<ExecutionEnd, ExecutionStop> {
        // Steps about to be opened are opened again then.
        self.opened.clear();
        Ok(ExecutionEnd::Waiting(self.report(WorkerReport::Pause, Vec::new(), Vec::new()).await?))
    }

    /// Completes a run whose steps are all complete, if the declared outputs are there.
    pub(super) async fn complete(&mut self) -> Result<ExecutionEnd, ExecutionStop> {
        let outputs = self.scheduler.progress.frames.outputs("");
        if let Err(problems) = check_outputs(&self.scheduler.progress.plan.contract.outputs, &outputs) {
            let message =
                format!("all steps completed, but the outputs cannot be produced: {}", sentence(&problems));
            return self.fail(of_the_run(message)).await;
        }
        Ok(ExecutionEnd::Completed(self.report(WorkerReport::Complete, Vec::new(), Vec::new()).await?))
    }

    /// Records the failure together with the steps that fail with it.
    pub(super) async fn fail(&mut self, failure: Failure) -> Result<ExecutionEnd, ExecutionStop> {
        let now = self.now();
        let mut failed: Vec<StepRecord> = Vec::new();
        if failure.step.is_none() {
            let data = failure.json();
            self.events.push(NewEvent { kind: EventKind::RunFailed, step: None, data });
        }
        for failure in [failure].into_iter().chain(std::mem::take(&mut self.stopped)) {
            let (records, changed) = self.scheduler.progress.fail(&failure, now);
            self.needs_checkpoint |= changed;
            for record in records {
                if !failed.iter().any(|known| known.step == record.step) {
                    failed.push(record);
                }
            }
        }
        Ok(ExecutionEnd::Failed(self.report(WorkerReport::Fail, failed, Vec::new()).await?))
    }
}

/// A failure of the run that no step is to blame for.
fn of_the_run(message: String) -> Failure {
    let error = CallError::new(CallFailure::RuntimeError, message);
    Failure { step: None, code: None, error, inputs: Map::new(), attempts: 0, started_ms: None }
}

/// The failure of a run with remaining steps, none of which can start.
pub(super) fn stuck(progress: &Progress) -> Failure {
    let left: Vec<&str> = progress
        .plan
        .contract
        .steps
        .iter()
        .map(|step| step.id.as_str())
        .filter(|id| !progress.completed.contains(id))
        .collect();
    of_the_run(format!("no step can start: {} wait for steps that never complete", left.join(", ")))
}

/// Converts the question to the gate of the state machine.
pub(super) fn approval_gate(ask: ApprovalRequest) -> Gate {
    Gate::human(ask.step, ask.digest, ask.why)
}

/// Maps an error of the final report to the end of the execution.
pub(super) fn end_for_error(error: StoreError) -> ExecutionEnd {
    match error {
        StoreError::Refused(refusal) => ExecutionEnd::LeaseLost(refusal),
        other => ExecutionEnd::StoreFailed(other),
    }
}
