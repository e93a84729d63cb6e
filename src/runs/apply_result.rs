//! Applies the result of a finished call to its run: writes its outputs to their targets and builds its record, or
//! fails its step.

use serde_json::{Map, Value, json};

use super::call::{CallError, CallFailure, Reply};
use super::failure::{Failure, error_json};
use super::progress::{Progress, lineage, split};
use super::scheduled_call::{Role, ScheduledCall};
use super::scheduler::{Running, StepContext, engine_log};
use skills_base::memory::object_bytes;
use skills_base::nesting::{self, MAX_LEVELS};
use skills_skill::contract::MergeStrategy;
use skills_store::{AuditMode, EventKind, NewEvent, StepRecord, StepStatus};

/// Maximum size of one call's outputs, in bytes of JSON.
pub const RESULT_BYTES: usize = 1 << 20;

/// Maximum memory in bytes of all results of a run, which its worker holds and each checkpoint contains.
pub(super) const MAX_RUN_BYTES: usize = 32 << 20;

/// The record and events that result from a finished call.
#[derive(Debug)]
pub(super) struct AppliedReply {
    pub record: StepRecord,
    pub events: Vec<NewEvent>,
}

/// Returns the reply unless its outputs exceed [`RESULT_BYTES`] or [`MAX_LEVELS`].
pub(super) fn check_size(reply: Reply) -> Result<Reply, CallError> {
    let bytes = serde_json::to_vec(&reply.outputs).map_or(usize::MAX, |json| json.len());
    let is_too_deep = reply.outputs.values().any(|output| nesting::exceeds(output, MAX_LEVELS));
    if bytes <= RESULT_BYTES && !is_too_deep {
        return Ok(reply);
    }
    let size = if is_too_deep {
        format!("is nested more than {MAX_LEVELS} levels deep")
    } else {
        format!("has {bytes} bytes of JSON, the maximum is {RESULT_BYTES}")
    };
    let message = format!(
        "its result {size}: write it to a file, which is kept as an artifact, and return the file name"
    );
    // Without the binding: the message is for everyone who may see the run.
    Err(CallError::new(CallFailure::InvalidRequest, message))
}

impl Progress {
    /// Applies the result of a call.
    ///
    /// # Errors
    /// Returns the failure of its step.
    pub fn apply_reply(
        &mut self,
        call: &ScheduledCall,
        result: Result<Reply, CallError>,
        started_ms: i64,
        now_ms: i64,
    ) -> Result<AppliedReply, Failure> {
        let beaten = call.role == Role::Branch
            && !self.superseded_branches(&Running::from([call.path.clone()])).is_empty();
        let (status, reply, value) = match result.and_then(|reply| self.check_total_size(reply)) {
            Ok(reply) => {
                let value = Value::Object(reply.outputs.clone());
                (StepStatus::Completed, reply, value)
            }
            Err(error) if error.code == CallFailure::Canceled && beaten => {
                (StepStatus::Skipped, Reply::default(), json!({"reason": "another branch completed first"}))
            }
            // A failed branch or gate does not fail its step by itself: other branches may succeed, and a failed gate
            // counts as a refusal.
            Err(error) if matches!(call.role, Role::Branch | Role::Gate) => {
                let code = match call.role {
                    Role::Gate => "gate_execution_failure".to_owned(),
                    _ => error.code.to_string(),
                };
                let value = error_json(&error, &code, Some(&call.path));
                let reply = Reply { binding: error.binding.unwrap_or_default(), ..Reply::default() };
                (StepStatus::Failed, reply, value)
            }
            Err(error) => return Err(call.failure(error, started_ms)),
        };
        if status == StepStatus::Completed
            && matches!(call.role, Role::Call | Role::Round)
            && let Err(mut failure) = self.write_call_result(call, &reply.outputs, now_ms)
        {
            failure.inputs.clone_from(&call.inputs);
            failure.attempts = call.attempt;
            failure.started_ms = Some(started_ms);
            return Err(failure);
        }
        let events = after(call, &reply);
        let record = StepRecord {
            step: call.path.clone(),
            status,
            inputs: self.inputs_to_record(&call.inputs),
            result: if call.role == Role::Call && self.run.options.audit_mode == AuditMode::Off {
                Value::Null
            } else {
                value.clone()
            },
            binding: Some(reply.binding).filter(|binding| !binding.is_empty()),
            isolation: reply.isolation,
            attempts: call.attempt,
            started_ms,
            ended_ms: now_ms,
            omitted_bytes: None,
        };
        self.close_call(call, status, value);
        Ok(AppliedReply { record, events })
    }

    /// Returns the reply unless the results of the run would exceed [`MAX_RUN_BYTES`].
    fn check_total_size(&mut self, reply: Reply) -> Result<Reply, CallError> {
        let bytes = object_bytes(&reply.outputs);
        self.held_bytes += bytes;
        if self.held_bytes <= MAX_RUN_BYTES {
            return Ok(reply);
        }
        // Results that were replaced, and those of parts of steps that ended, are no longer held.
        self.held_bytes = self.count_held_bytes() + bytes;
        if self.held_bytes <= MAX_RUN_BYTES {
            return Ok(reply);
        }
        let message = format!(
            "with its result, all results of the run take more than {} MiB of memory: write large ones to files, which \
             are kept as artifacts, and return the file names",
            MAX_RUN_BYTES >> 20
        );
        Err(CallError::new(CallFailure::InvalidRequest, message))
    }

    /// Returns the inputs to record: all of them in full audit mode, otherwise null.
    pub fn inputs_to_record(&self, inputs: &Map<String, Value>) -> Value {
        if self.run.options.audit_mode == AuditMode::Full {
            Value::Object(inputs.clone())
        } else {
            Value::Null
        }
    }

    fn write_call_result(
        &mut self,
        call: &ScheduledCall,
        produced: &Map<String, Value>,
        now_ms: i64,
    ) -> Result<(), Failure> {
        let owner = call.owner().to_owned();
        let (frame, _) = split(&owner);
        let Some(step) = self.plan.step_at(&owner).cloned() else { return Ok(()) };
        let later = call.role == Role::Round && !call.path.ends_with("[0]");
        let strategy = match step.merge_strategy {
            // Each round overwrites the results of the previous one.
            MergeStrategy::Overwrite if later => MergeStrategy::Replace,
            stated => stated,
        };
        let running = Running::new();
        let context = StepContext { frame, path: &owner, step: &step, running: &running, now_ms };
        self.frames.write(context, strategy, produced)
    }

    /// Applies a signal that a step waited for: its fields by name, and the complete payload under `payload`.
    ///
    /// # Errors
    /// Returns the failure of the step if a target cannot be written.
    pub fn settle_signal(&mut self, path: &str, payload: Value, now_ms: i64) -> Result<StepRecord, Failure> {
        let (frame, _) = split(path);
        let mut produced = payload.as_object().cloned().unwrap_or_default();
        produced.entry("payload").or_insert(payload);
        if let Some(step) = self.plan.step_at(path).cloned() {
            let running = Running::new();
            let context = StepContext { frame, path, step: &step, running: &running, now_ms };
            self.frames.write(context, step.merge_strategy, &produced)?;
        }
        let record = self.instant(path, StepStatus::Completed, Value::Object(produced), now_ms, now_ms);
        self.close(path);
        Ok(record)
    }

    /// Returns the records of a failed step and of the steps it is nested in, the failed one first, and whether the
    /// state of a step in progress changed. Steps in progress are kept, so that a resumed run continues there.
    pub fn fail(&mut self, failure: &Failure, now_ms: i64) -> (Vec<StepRecord>, bool) {
        let Some(step) = &failure.step else { return (Vec::new(), false) };
        let mut paths = vec![step.clone()];
        paths.extend(lineage(step).into_iter().filter(|path| path != step));
        let result = failure.json();
        let (mut records, mut changed) = (Vec::new(), false);
        for path in paths {
            changed |= self.reset(&path);
            let own = path == *step;
            let started = self.active.get(&path).map(|active| active.started_ms);
            records.push(StepRecord {
                step: path,
                status: StepStatus::Failed,
                inputs: if own { self.inputs_to_record(&failure.inputs) } else { Value::Null },
                result: result.clone(),
                binding: failure.error.binding.clone().filter(|_| own),
                isolation: None,
                attempts: if own { failure.attempts } else { 1 },
                started_ms: started.or(failure.started_ms).unwrap_or(now_ms),
                ended_ms: now_ms,
                omitted_bytes: None,
            });
        }
        (records, changed)
    }
}

/// Returns the events about a reply other than its outputs: artifacts, and bindings that failed before.
fn after(call: &ScheduledCall, reply: &Reply) -> Vec<NewEvent> {
    let artifacts = reply.artifacts.iter().map(|artifact| NewEvent {
        kind: EventKind::ArtifactKept,
        step: Some(call.path.clone()),
        data: json!(artifact),
    });
    let tried = reply.tried.iter().map(|tried| {
        let detail = format!("{} failed: {}; {} succeeded", tried.binding, tried.reason, reply.binding);
        let mut event = engine_log(&call.path, "a binding failed, and its fallback was called".to_owned());
        event.data["code"] = "upstream_failure".into();
        event.data["detail"] = detail.into();
        event
    });
    artifacts.chain(tried).collect()
}
