//! Commands of people on a run: decide, resume, signal, cancel, replay, fork.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use strum::IntoEnumIterator as _;

use super::lease_holder::with_holder;
use super::runtime::{RunRuntime, RunStore};
use super::workers::{OwnWorkers, returned, watched_run};
use super::{Approvals, Permissions, Plans, find, identity, launch, operator};
use crate::approver_obstacle::waited_s;
use crate::operations::{Principal, Scope, await_returned_run};
use crate::run_options::{MAX_KEY_LEN, ensure_without_nul, nul_in};
use crate::{Code, CommandResult, Error, ResumeMode, RunCommand};
use skills_model::{
    ApprovalReason, Choice, Command, Decision, Gate, RunState, Transition, Verdict, transition,
};
use skills_registry::policy::{Approver, RequiredApprovals};
use skills_runs::{PendingGate, Plan, check_inputs, check_outputs};
use skills_skill::safe_text;
use skills_store::{
    CommandEffect, CommandOutcome, DecisionRecord, RecordedDecision, RunId, RunRecord, Store, StoreError,
};

/// Maximum time for which an applied command waits to be answered with a complete run.
const MAX_ANSWER_WAIT: Duration = Duration::from_secs(10);

/// A decision as it was sent; fields may be missing.
struct DecisionRequest {
    verdict: Verdict,
    step: Option<String>,
    inputs_digest: Option<String>,
    choice: Option<Choice>,
    result: Option<Value>,
    by: DecisionRecord,
}

/// The run after the command, which may lack values that are too long for a list, a message, and whether the same command
/// had been given before.
type CommandAnswer = (RunRecord, String, bool);

/// The commands of people on runs.
pub(in crate::local) struct Commands {
    pub(super) store: Arc<RunStore>,
    pub(super) plans: Arc<Plans>,
    pub(super) permissions: Arc<Permissions>,
    pub(super) approvals: Arc<Approvals>,
    pub(super) own_workers: Arc<OwnWorkers>,
}

impl Commands {
    pub(super) async fn execute(
        &self,
        requested: &str,
        command: RunCommand,
        principal: Option<&Principal>,
    ) -> Result<CommandResult, Error> {
        let runtime = self.store.runtime().await?;
        let mut run = find::listed(&*runtime.store, requested).await?;
        ensure_scope(&run, &command, principal)?;
        ensure_storable(&command)?;
        if depends_on_inputs(&run, &command) {
            run = runtime.store.run(&run.id).await?.ok_or_else(|| StoreError::NoRun(run.id.clone()))?;
        }
        let mode = matches!(command, RunCommand::Resume { .. }).then_some(ResumeMode::CheckpointResume);
        let creates_run = matches!(command, RunCommand::Replay { .. } | RunCommand::Fork { .. });
        let (mut run, note, repeated) = self.apply(&runtime, run, command, principal).await?;
        if !creates_run {
            run = with_long_values(&*runtime.store, run).await;
        }
        let note = safe_text::line(&note).into_owned();
        let worker_alive = self.own_workers.or_others(&runtime).await;
        Ok(CommandResult { run: with_holder(run), note, worker_alive, repeated, mode })
    }

    async fn apply(
        &self,
        runtime: &Arc<RunRuntime>,
        run: RunRecord,
        command: RunCommand,
        principal: Option<&Principal>,
    ) -> Result<CommandAnswer, Error> {
        match command {
            RunCommand::Decide { verdict, step, inputs_digest, approver, notes, choice, result } => {
                let by = DecisionRecord { approver, notes };
                let request = DecisionRequest { verdict, step, inputs_digest, choice, result, by };
                self.decide(runtime, run, request, principal).await
            }
            RunCommand::Resume { checkpoint, inputs, despite_change, by, since_ms } => {
                self.resume(
                    runtime,
                    &run,
                    (checkpoint, inputs),
                    (despite_change, since_ms),
                    decision_record(by),
                )
                .await
            }
            RunCommand::Signal { name, payload, by, since_ms } => {
                self.permissions.ensure_may_continue(runtime, &run).await?;
                signal(runtime, &run, (name, payload), since_ms, decision_record(by)).await
            }
            RunCommand::Cancel { by } => {
                let done = runtime
                    .store
                    .command(&run.id, Command::Cancel, Some(decision_record(by)), None, None)
                    .await?;
                let repeated = matches!(done.effect, CommandEffect::Repeated(_));
                let note = if repeated { "was already canceled" } else { "canceled" };
                Ok((done.run, note.to_owned(), repeated))
            }
            RunCommand::Assign { to, note, assignee, by } => {
                assign(runtime, run, (assignee, to), note, decision_record(by)).await
            }
            RunCommand::Replay { checkpoint, by, since_ms } => {
                self.branch(runtime, &run, (checkpoint, since_ms), false, decision_record(by)).await
            }
            RunCommand::Fork { checkpoint, by, since_ms } => {
                self.branch(runtime, &run, (checkpoint, since_ms), true, decision_record(by)).await
            }
        }
    }

    /// Returns the transition that a command would cause now.
    ///
    /// # Errors
    /// Returns `invalid_transition`.
    async fn next(
        &self,
        runtime: &RunRuntime,
        run: &RunRecord,
        command: &Command,
    ) -> Result<Transition, Error> {
        let snapshot = runtime.store.run_snapshot(&run.id).await?;
        let snapshot =
            snapshot.ok_or_else(|| Error::from(skills_store::StoreError::NoRun(run.id.clone())))?;
        transition(&snapshot, command).map_err(Error::from)
    }

    /// Records a decision about exactly what the request names. The store's transaction determines whether this
    /// decision was the first.
    async fn decide(
        &self,
        runtime: &Arc<RunRuntime>,
        run: RunRecord,
        request: DecisionRequest,
        principal: Option<&Principal>,
    ) -> Result<CommandAnswer, Error> {
        let missing = missing_fields(run.gate.as_ref(), &request);
        if !missing.is_empty()
            && let Some(error) = self.incomplete(runtime, &run, &missing, &request).await?
        {
            return Err(error);
        }
        let DecisionRequest { verdict, step, inputs_digest, choice, result, mut by } = request;
        let (step, inputs_digest) = (step.unwrap_or_default(), inputs_digest.unwrap_or_default());
        let decision = Decision { verdict, step, inputs_digest, choice, result };
        let (run, unrecorded) = self.approvals.check_approval(runtime, run, &decision).await?;
        if by.approver.as_deref().is_none_or(|name| name.trim().is_empty()) {
            by.approver = Some(self.approvals.approver().await.0);
        }
        if let Some(result) = &decision.result {
            ensure_result_fits(runtime, &run, &decision, result).await?;
        }
        let approves = decision.verdict == Verdict::Approve;
        // A run whose stored contract was modified can be denied.
        let unchecked = approves && !decision.answers(run.gate.as_ref());
        let required = if approves {
            let plan = runtime.plan(&run.contract_digest).await?;
            if !unchecked {
                self.permissions.ensure_permitted(&run, &plan, true).await?;
            }
            let (permissions, run) = (Arc::clone(&self.permissions), run.clone());
            crate::work::run_blocking(move || permissions.required_approvals(&run, &plan)).await?
        } else {
            RequiredApprovals::default()
        };
        let account = identity::account();
        // Without keys every caller acts under the account of this process, whatever name they give.
        let identity = principal.map_or(account.as_str(), |principal| principal.name.as_str());
        if approves && !unchecked && required.is_strict() {
            self.ensure_may_approve(&run, &required, (identity, by.approver.as_deref()), principal)?;
        }
        // Only a decision that counts replaces the question, which revokes the approvals of the former one.
        if let Some(gate) = unrecorded {
            Approvals::record_question(runtime, &run.id, gate).await?;
        }
        // The gate may open before the store receives the command; the approval would then bypass the rules above.
        let command = if unchecked {
            Command::RepeatDecision(decision.clone())
        } else if approves && required.need > 1 {
            Command::Endorse { decision: decision.clone(), by: identity.to_owned(), need: required.need }
        } else {
            Command::Decide(decision.clone())
        };
        match runtime.store.command(&run.id, command, Some(by.clone()), None, None).await {
            Ok(CommandOutcome { run, effect: CommandEffect::Repeated(first), .. }) => {
                let mut note = first.map_or_else(
                    || "was already decided".to_owned(),
                    |first| repeated_decision_text(&first, &by),
                );
                if let Some(progress) = run.approval_progress().filter(|_| approves) {
                    note += &format!("; a second approval by the same person does not count: {progress}");
                }
                Ok((run, note, true))
            }
            Ok(CommandOutcome { run, .. }) => {
                let note = match run.approval_progress().filter(|_| approves) {
                    Some(progress) => format!("{progress}; the run is waiting for another approval"),
                    None => decision_label(&decision).to_owned() + paused_note(&run),
                };
                Ok((run, note, false))
            }
            Err(StoreError::AlreadyDecided { first, refusal }) => {
                let error = Error::from(refusal);
                let message = format!(
                    "step {} {}; a decision cannot be reverted",
                    decision.step,
                    first_decision_text(&first)
                );
                let mut reason = error.reason.clone().unwrap_or_else(|| json!({}));
                reason["decided"] = json!(first);
                Err(Error { message, reason: Some(reason), ..error })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Checks whether the approval of this caller counts.
    ///
    /// # Errors
    /// Returns `forbidden` with what the policy requires.
    fn ensure_may_approve(
        &self,
        run: &RunRecord,
        required: &RequiredApprovals,
        (identity, named): (&str, Option<&str>),
        principal: Option<&Principal>,
    ) -> Result<(), Error> {
        let mut names = vec![identity];
        // A given name counts only if callers are not authenticated.
        names.extend(named.filter(|_| principal.is_none()));
        let scopes: BTreeSet<String> = match principal {
            Some(principal) => principal.scopes.iter().map(ToString::to_string).collect(),
            None => Scope::iter().map(|scope| scope.to_string()).collect(),
        };
        let approver = Approver { names: &names, scopes: &scopes };
        let Some(why) = required.refuses(approver, run.starters(), waited_s(run)) else { return Ok(()) };
        let message = format!("not approved: {why}");
        Err(Error { reason: Some(json!({ "approvals": required })), ..Error::new(Code::Forbidden, message) })
    }

    /// Returns the error for a decision that does not name what it decides, with what that would be and the request
    /// that decides it; `None` if nothing is pending any longer.
    async fn incomplete(
        &self,
        runtime: &Arc<RunRuntime>,
        run: &RunRecord,
        missing: &[&str],
        request: &DecisionRequest,
    ) -> Result<Option<Error>, Error> {
        let plan = runtime.plan(&run.contract_digest).await?;
        let (run, at) = self.approvals.at_gate(runtime, run.clone()).await?;
        let preview = self.approvals.decision_preview(runtime, &run, &plan, at.as_ref()).await?;
        let Some(preview) = preview else { return Ok(None) };
        let mut body = json!({ "step": preview.step });
        let mut optional = |name: &str, value: Value| {
            if !value.is_null() {
                body[name] = value;
            }
        };
        if request.verdict == Verdict::Approve {
            optional("inputs_digest", json!(preview.inputs_digest));
        }
        optional("choice", json!(request.choice));
        optional("result", json!(request.result));
        optional("approver", json!(request.by.approver));
        optional("notes", json!(request.by.notes));
        let (word, wants) = match request.verdict {
            Verdict::Approve => {
                ("approve", "`step` and the `inputs_digest` of the inputs that were reviewed")
            }
            Verdict::Deny => ("deny", "`step` that was reviewed"),
        };
        let other_step = request.step.as_ref().filter(|step| **step != preview.step);
        let mut message = match other_step {
            Some(step) => format!(
                "no decision made: step `{step}` is not waiting; run {} is waiting at step `{}` ({})",
                run.id, preview.step, preview.headline
            ),
            None => format!(
                "no decision made: run {} is waiting at step `{}` ({})",
                run.id, preview.step, preview.headline
            ),
        };
        if other_step.is_none() && (missing.contains(&"step") || missing.contains(&"inputs_digest")) {
            message += &format!("; to {word} it, pass the {wants}");
        }
        let mut reason = json!({
            "run_id": run.id,
            "missing": missing,
            "decision": preview,
            "send": { "method": "POST", "path": format!("/v1/runs/{}/{word}", run.id), "body": body },
        });
        if preview.outcome_unknown && request.verdict == Verdict::Approve {
            let choices: Vec<Choice> = Choice::iter().collect();
            reason["choices"] = json!(choices);
            if missing.contains(&"choice") {
                message += "; its outcome is unknown: choose `rerun`, `happened` (with its `result`), `skip` or `fail`";
            } else if missing.contains(&"result") {
                message += "; `happened` needs the `result` of the step, an object of its outputs; other \
                    choices: `rerun`, `skip`, `fail`";
            }
        }
        Ok(Some(Error { reason: Some(reason), ..Error::new(Code::ConfirmationRequired, message) }))
    }

    async fn resume(
        &self,
        runtime: &RunRuntime,
        run: &RunRecord,
        (checkpoint, inputs): (Option<u64>, Option<Map<String, Value>>),
        (despite_change, since_ms): (bool, Option<i64>),
        by: DecisionRecord,
    ) -> Result<CommandAnswer, Error> {
        self.next(runtime, run, &Command::Resume).await?;
        let plan = runtime.plan(&run.contract_digest).await?;
        self.permissions.ensure_permitted(run, &plan, plan.approval.is_some()).await?;
        self.ensure_may_steer(runtime, run).await?;
        if let Some(number) = checkpoint {
            ensure_checkpoint_exists(runtime, run, number).await?;
        }
        let joined = inputs
            .as_ref()
            .map(|corrected| join_inputs(&plan, run, corrected))
            .transpose()?
            .unwrap_or_default();
        // As at the launch, null stands for the default.
        let inputs = inputs.map(|mut corrected| {
            for (name, value) in &mut corrected {
                *value = joined.get(name).cloned().unwrap_or_default();
            }
            corrected
        });
        if !despite_change {
            self.ensure_skill_unchanged(run, &plan).await?;
        }
        let payload = inputs.clone().map(Value::Object);
        let sent =
            runtime.store.command_if(&run.id, since_ms, Command::Resume, Some(by), checkpoint, payload);
        let after = sent.await?.run;
        let after = match &inputs {
            Some(corrected) if !corrected.is_empty() => {
                let title = launch::title_of(&run.skill_id, &plan.contract, &joined);
                let fields = Map::from_iter([("title".to_owned(), json!(title))]);
                runtime.store.annotate(&run.id, fields, Vec::new(), None).await?
            }
            _ => after,
        };
        let mut note = "resumed".to_owned();
        if let Some(number) = checkpoint {
            note = format!("{note} from checkpoint {number}");
        }
        if let Some(corrected) = inputs {
            let changed = corrected.iter().filter(|(name, value)| run.inputs.get(name) != Some(*value));
            let names: Vec<&str> = changed.map(|(name, _)| name.as_str()).collect();
            note += &crate::run_commands::changed_inputs_note(&names);
        }
        Ok((after, note, false))
    }

    async fn branch(
        &self,
        runtime: &RunRuntime,
        run: &RunRecord,
        (checkpoint, since_ms): (Option<u64>, Option<i64>),
        paused: bool,
        by: DecisionRecord,
    ) -> Result<CommandAnswer, Error> {
        if let Some(number) = checkpoint {
            ensure_checkpoint_exists(runtime, run, number).await?;
        }
        let plan = runtime.plan(&run.contract_digest).await?;
        self.permissions.ensure_permitted(run, &plan, plan.approval.is_some()).await?;
        self.ensure_may_steer(runtime, run).await?;
        let new = RunId(uuid::Uuid::now_v7().to_string());
        let made = runtime.store.fork_if(&run.id, since_ms, checkpoint, new, paused, by.approver).await?;
        // A run that is executed may have a later checkpoint than when it was read.
        let at = made.source.as_ref().map_or(run.head, |(_, number)| *number);
        let note = if paused {
            format!("created a fork of {} at checkpoint {at}; paused until it is resumed", run.id)
        } else {
            format!("created a replay of {} from checkpoint {at}", run.id)
        };
        Ok((made, note, false))
    }

    /// Checks that the run that a sidecar watches may continue after a signal, before the sidecar is executed again:
    /// another process, with another policy, may apply its signal.
    async fn ensure_may_steer(&self, runtime: &RunRuntime, sidecar: &RunRecord) -> Result<(), Error> {
        let Some(watched) = watched_run(sidecar) else { return Ok(()) };
        match runtime.store.listed_run(&RunId(watched.to_owned())).await? {
            Some(watched) => self.permissions.ensure_may_continue(runtime, &watched).await,
            None => Ok(()),
        }
    }

    /// Rejects the command if the skill is not the one that was launched.
    async fn ensure_skill_unchanged(&self, run: &RunRecord, plan: &Plan) -> Result<(), Error> {
        let (present, version) = self.plans.present(run, plan).await;
        if present.as_deref() == Some(&run.contract_digest) {
            return Ok(());
        }
        let launched = &plan.contract.version;
        let skill = &run.skill_id;
        let advice = "Resume with the contract of the launch, or launch the skill again";
        let message = match (&present, version) {
            (None, None) => self.approvals.places.elsewhere(run).map_or_else(
                || format!("the skill {skill} no longer exists or can no longer run. {advice}"),
                |why| format!("cannot check whether the skill {skill} changed since the launch: {why}"),
            ),
            (_, Some(now)) if now != *launched => {
                format!("the skill {skill} changed since the launch: {launched} then, {now} now. {advice}")
            }
            _ => format!("the skill {skill} changed since the launch. {advice}"),
        };
        let reason = json!({ "launched": run.contract_digest, "present": present });
        Err(Error { reason: Some(reason), ..Error::new(Code::SkillChanged, message) })
    }
}

/// Returns whether a command depends on the inputs of a run or the content of its target. A completed run refuses those
/// that do.
fn depends_on_inputs(run: &RunRecord, command: &RunCommand) -> bool {
    run.state != RunState::Completed
        && matches!(command, RunCommand::Decide { .. } | RunCommand::Resume { .. })
}

/// Returns the run of an answer with the values that are too long for a list: they are read after the command, because
/// other writes wait for it. If they cannot be read soon, the answer is without them, because the command was applied.
async fn with_long_values(store: &dyn Store, run: RunRecord) -> RunRecord {
    if !may_lack_values(&run) {
        return run;
    }
    if !matches!(tokio::time::timeout(MAX_ANSWER_WAIT, await_returned_run()).await, Ok(Ok(()))) {
        return run;
    }
    let Ok(complete) = returned(store, &run.id).await else { return run };
    let decided = match (run.decided, complete.decided) {
        (Some(listed), Some(stored)) if stored.same_gate(&listed) => Some(stored),
        (listed, _) => listed,
    };
    // It may have been completed since.
    let outputs = if run.state == RunState::Completed { complete.outputs } else { run.outputs };
    RunRecord { inputs: complete.inputs, target: complete.target, outputs, decided, ..run }
}

/// Returns whether a run may lack values that are too long for a list.
fn may_lack_values(run: &RunRecord) -> bool {
    let lacks_result =
        |decided: &Decision| decided.choice == Some(Choice::Happened) && decided.result.is_none();
    run.lacks_inputs()
        || run.target.is_some()
        || (run.state == RunState::Completed && run.outputs.is_none())
        || run.decided.as_ref().is_some_and(lacks_result)
}

/// Checks that a caller may execute the scripts of a run again: without a sandbox they may do what this process may.
fn ensure_scope(run: &RunRecord, command: &RunCommand, principal: Option<&Principal>) -> Result<(), Error> {
    let word = match command {
        RunCommand::Resume { .. } => "resume",
        RunCommand::Replay { .. } => "replay",
        RunCommand::Fork { .. } => "fork",
        RunCommand::Decide { .. }
        | RunCommand::Signal { .. }
        | RunCommand::Cancel { .. }
        | RunCommand::Assign { .. } => return Ok(()),
    };
    let is_admin = principal.is_none_or(|principal| principal.scopes.contains(&Scope::Admin));
    if !run.options.unsandboxed || is_admin {
        return Ok(());
    }
    let message =
        format!("run {} was launched with `unsandboxed`; to {word} it needs the scope `admin`", run.id);
    Err(Error::new(Code::Forbidden, message))
}

/// Checks that what a command stores contains no NUL character.
///
/// # Errors
/// Returns `invalid_request`, naming the field.
fn ensure_storable(command: &RunCommand) -> Result<(), Error> {
    let nul =
        |name: &str| Error::new(Code::InvalidRequest, format!("`{name}`: a NUL character is not allowed"));
    let text = |name: &str, text: &Option<String>| match text {
        Some(text) if text.contains('\0') => Err(nul(name)),
        _ => Ok(()),
    };
    let value = |name: &str, value: &Value| match value {
        Value::Object(fields) => ensure_without_nul(name, fields),
        value => nul_in(value).map_or(Ok(()), |path| Err(nul(&format!("{name}{path}")))),
    };
    match command {
        RunCommand::Decide { notes, result, approver, .. } => {
            text("notes", notes)?;
            text("approver", approver)?;
            result.as_ref().map_or(Ok(()), |result| value("result", result))
        }
        RunCommand::Resume { inputs, .. } => {
            inputs.as_ref().map_or(Ok(()), |inputs| ensure_without_nul("inputs", inputs))
        }
        RunCommand::Signal { payload, .. } => value("payload", payload),
        RunCommand::Assign { to, note, .. } => text("to", to).and_then(|()| text("note", note)),
        RunCommand::Cancel { .. } | RunCommand::Replay { .. } | RunCommand::Fork { .. } => Ok(()),
    }
}

/// Returns who gave a command: the given name, else the account.
fn decision_record(by: Option<String>) -> DecisionRecord {
    let by = by.filter(|name| !name.trim().is_empty()).unwrap_or_else(identity::account);
    DecisionRecord { approver: Some(by), notes: None }
}

/// Rejects a result that the step could not have returned.
async fn ensure_result_fits(
    runtime: &RunRuntime,
    run: &RunRecord,
    decision: &Decision,
    result: &Value,
) -> Result<(), Error> {
    let wrong = |message: String| Error::new(Code::InvalidRequest, message);
    let Some(fields) = result.as_object() else {
        return Err(wrong("a result must be an object: {\"field\": value}".to_owned()));
    };
    let at = runtime.engine.at_gate(&run.id).await?;
    let names_it =
        |at: &PendingGate| at.inputs_digest == decision.inputs_digest || decision.answers(run.gate.as_ref());
    let pending = at.filter(|at| at.step == decision.step && names_it(at));
    // If nothing is pending, the state machine returns the error.
    let Some(capability) = pending.and_then(|at| at.capability) else { return Ok(()) };
    check_outputs(&capability.outputs, fields).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        wrong(format!("the result does not match the outputs of {}: {}", capability.id, problems.join("; ")))
    })
}

/// Returns `was already approved by ana at 2026-07-14 09:28:30 UTC`.
fn first_decision_text(first: &RecordedDecision) -> String {
    let who = first.by.approver.as_deref().unwrap_or("another user");
    let at = jiff::Timestamp::from_millisecond(first.at_ms).unwrap_or_default();
    format!(
        "was already {} by {who} at {} UTC",
        decision_label(&first.decision),
        at.strftime("%Y-%m-%d %H:%M:%S")
    )
}

/// Returns the message for a decision on what was already decided: the first decision counts, with its notes.
fn repeated_decision_text(first: &RecordedDecision, now: &DecisionRecord) -> String {
    let first_decision = first_decision_text(first);
    let spoken = |notes: &Option<String>| notes.clone().filter(|notes| !notes.trim().is_empty());
    match (spoken(&now.notes), spoken(&first.by.notes)) {
        (Some(new), Some(stored_notes)) if new == stored_notes => first_decision,
        (Some(_), Some(stored_notes)) => {
            format!("{first_decision} with the notes {stored_notes:?}; the new notes were not stored")
        }
        (Some(_), None) => format!("{first_decision} without notes; the new notes were not stored"),
        (None, Some(stored_notes)) => format!("{first_decision} with the notes {stored_notes:?}"),
        (None, None) => first_decision,
    }
}

/// Returns a note if a sidecar paused the run while it could have continued.
fn paused_note(after: &RunRecord) -> &'static str {
    if after.paused { "; it was paused in the meantime and stays paused until it is resumed" } else { "" }
}

fn decision_label(decision: &Decision) -> &'static str {
    match (decision.verdict, decision.choice) {
        (Verdict::Approve, None) => "approved",
        (Verdict::Approve, Some(Choice::Rerun)) => "approved to run again",
        (Verdict::Approve, Some(Choice::Happened)) => "marked completed with the given result",
        (Verdict::Approve, Some(Choice::Skip)) => "skipped",
        (Verdict::Approve, Some(Choice::Fail)) => "failed",
        (Verdict::Deny, _) => "denied",
    }
}

/// Returns the fields that a decision lacks: for an approval the step and the digest of what was reviewed, for a denial
/// the step; and the choice for a step whose outcome is unknown.
fn missing_fields(gate: Option<&Gate>, request: &DecisionRequest) -> Vec<&'static str> {
    let approves = request.verdict == Verdict::Approve;
    let unknown = match gate {
        Some(Gate::Human { why: ApprovalReason::UnknownOutcome, inputs_digest, .. }) => {
            request.inputs_digest.as_ref().is_none_or(|named| named == inputs_digest)
        }
        _ => false,
    };
    let no_result = request.choice == Some(Choice::Happened) && request.result.is_none();
    [
        ("step", request.step.is_none()),
        ("inputs_digest", approves && request.inputs_digest.is_none()),
        ("choice", approves && unknown && request.choice.is_none()),
        ("result", approves && unknown && no_result),
    ]
    .into_iter()
    .filter_map(|(name, lacks)| lacks.then_some(name))
    .collect()
}

fn ensure_name_length(what: &str, name: &str) -> Result<(), Error> {
    if name.len() <= MAX_KEY_LEN {
        return Ok(());
    }
    let message = format!("the {what} has {} bytes; the maximum is {MAX_KEY_LEN}", name.len());
    Err(Error::new(Code::InvalidRequest, message))
}

/// Assigns the run to a person, or unassigns it. An assignment that the run already has is not stored again.
async fn assign(
    runtime: &RunRuntime,
    run: RunRecord,
    (assignee, to): (Option<String>, Option<String>),
    note: Option<String>,
    by: DecisionRecord,
) -> Result<CommandAnswer, Error> {
    let to = to.map(|to| to.trim().to_owned()).filter(|to| !to.is_empty());
    for (what, name) in [("name of the assignee", &to), ("name of the current assignee", &assignee)] {
        ensure_name_length(what, name.as_deref().unwrap_or_default())?;
    }
    let message = to.as_ref().map_or_else(|| "unassigned".to_owned(), |to| format!("assigned to {to}"));
    let assigned = run.options.assigned.as_ref();
    let present_note = assigned.and_then(|assigned| assigned.note.as_ref());
    let is_repeated = assigned.map(|assigned| &assigned.to) == to.as_ref()
        && (note.is_none() || note.as_ref() == present_note);
    if is_repeated {
        return Ok((run, message, true));
    }
    let by = by.approver.unwrap_or_default();
    let after = operator::assign(runtime, &run.id, (assignee, to), &by, note).await?;
    Ok((after, message, false))
}

async fn signal(
    runtime: &RunRuntime,
    run: &RunRecord,
    (name, payload): (String, Value),
    since_ms: Option<i64>,
    by: DecisionRecord,
) -> Result<CommandAnswer, Error> {
    if name.trim().is_empty() {
        return Err(Error::new(Code::InvalidRequest, "the signal needs a name"));
    }
    ensure_name_length("name of the signal", &name)?;
    let command = Command::Signal { name: name.clone() };
    let done = runtime.store.command_if(&run.id, since_ms, command, Some(by), None, Some(payload)).await?;
    let note = match done.effect {
        CommandEffect::Stored => format!("signal `{name}` is buffered until a step waits for it"),
        _ => format!("sent signal `{name}`{}", paused_note(&done.run)),
    };
    Ok((done.run, note, false))
}

/// Rejects a checkpoint that the run does not have, naming the last one.
async fn ensure_checkpoint_exists(runtime: &RunRuntime, run: &RunRecord, number: u64) -> Result<(), Error> {
    match runtime.store.checkpoint(&run.id, number).await {
        Err(StoreError::NoCheckpoint { .. }) => {
            let checkpoints = runtime.store.checkpoints(&run.id, None, 1).await?;
            let last = checkpoints.last().map_or(0, |checkpoint| checkpoint.number);
            Err(Error::no_checkpoint(&run.id.0, number, last))
        }
        outcome => Ok(outcome.map(drop)?),
    }
}

/// Returns the inputs of a run merged with the corrections, as its contract declares them: with its defaults.
///
/// # Errors
/// Returns `invalid_request` if they are not valid for the contract of the run.
fn join_inputs(
    plan: &Plan,
    run: &RunRecord,
    corrected: &Map<String, Value>,
) -> Result<Map<String, Value>, Error> {
    let mut joined = run.inputs.as_object().cloned().unwrap_or_default();
    joined.extend(corrected.clone());
    check_inputs(&plan.contract.inputs, &joined)
        .map_err(|problems| launch::inputs_error(&run.skill_id, &problems))
}
