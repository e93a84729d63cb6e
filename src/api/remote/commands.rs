//! Commands on runs: sent once; if the response is lost, the outcome is read from the run.

use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use super::call::{Arguments, to_arguments};
use super::transport::TransportError;
use crate::operations::arguments::{
    ApprovalArguments, AssignArguments, BranchArguments, ResumeArguments, RunArguments, RunCommandArguments,
    SignalArguments,
};
use crate::operations::{KEY_OWNER, OS_ACCOUNT, Scope};
use crate::{CallerView, Code, CommandResult, DecisionPreview, Error, RunCommand, RunDetail};
use skills_model::{Decision, RunState, Verdict};
use skills_store::{RecordedDecision, RunId, RunRecord, StoreError};

/// How long to reconnect to a service that received a decision and did not respond.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of times a decision is sent if its response was lost and the run does not show it.
const MAX_ATTEMPTS: usize = 3;

/// Sends commands on runs.
pub(super) struct CommandSender {
    pub inner: Arc<Inner>,
    /// Who sends them, if the service has no authentication.
    pub user: Option<String>,
}

impl CommandSender {
    pub async fn send(&self, run: &str, command: RunCommand) -> Result<CommandResult, Error> {
        let run_id = run.to_owned();
        match command {
            RunCommand::Decide { verdict, step, inputs_digest, approver, notes, choice, result } => {
                let approver = approver.or_else(|| self.user.clone());
                let made = ApprovalArguments {
                    run_id,
                    step: step.clone(),
                    inputs_digest: inputs_digest.clone(),
                    approver,
                    notes,
                    choice,
                    result: result.clone(),
                };
                let decision = Decision {
                    verdict,
                    step: step.unwrap_or_default(),
                    inputs_digest: inputs_digest.unwrap_or_default(),
                    choice,
                    result,
                };
                self.send_decision(run, &decision, to_arguments(&made)?).await
            }
            RunCommand::Resume { checkpoint, inputs, despite_change, by, since_ms } => {
                let by = self.user_or_default(by);
                let fields = ResumeArguments {
                    run_id,
                    checkpoint_id: checkpoint,
                    inputs,
                    despite_change,
                    since_ms,
                    by,
                };
                self.send_command(run, "run.resume", &fields).await
            }
            RunCommand::Signal { name, payload, by, since_ms } => {
                let by = self.user_or_default(by);
                self.send_command(run, "run.signal", &SignalArguments { run_id, name, payload, since_ms, by })
                    .await
            }
            RunCommand::Cancel { by } => {
                self.send_command(
                    run,
                    "run.cancel",
                    &RunCommandArguments { run_id, by: self.user_or_default(by) },
                )
                .await
            }
            RunCommand::Assign { to, note, assignee, by } => {
                let by = self.user_or_default(by);
                self.send_command(run, "run.assign", &AssignArguments { run_id, to, note, assignee, by })
                    .await
            }
            RunCommand::Replay { checkpoint, by, since_ms } => {
                let fields = BranchArguments {
                    run_id,
                    checkpoint_id: checkpoint,
                    since_ms,
                    by: self.user_or_default(by),
                };
                self.send_command(run, "run.replay", &fields).await
            }
            RunCommand::Fork { checkpoint, by, since_ms } => {
                let fields = BranchArguments {
                    run_id,
                    checkpoint_id: checkpoint,
                    since_ms,
                    by: self.user_or_default(by),
                };
                self.send_command(run, "run.fork", &fields).await
            }
        }
    }

    /// Returns the user of a command: as named, else the local account. A service with authentication uses the key's
    /// owner.
    pub fn user_or_default(&self, by: Option<String>) -> Option<String> {
        by.or_else(|| self.user.clone())
    }

    pub async fn detail(&self, run: &str) -> Result<RunDetail, Error> {
        let mut detail: RunDetail =
            self.inner.ask("run.show", to_arguments(&RunArguments { run_id: run.to_owned() })?).await?;
        // The service returns its own account; the user who decides is here, unless the key has a name.
        let Some(preview) = &mut detail.sheet else { return Ok(detail) };
        if self.inner.wire.has_key() {
            match self.inner.ask("runtime.caller", Arguments::new()).await {
                Ok(caller) => set_approver(preview, caller),
                // Failing to look up the owner of the key must not hide the decision preview of the run.
                Err(error) => {
                    tracing::warn!("cannot look up the owner of the key: {error}");
                    preview.approver = None;
                }
            }
        } else if let Some(user) = &self.user {
            preview.approver = Some((user.clone(), OS_ACCOUNT.to_owned()));
        }
        Ok(detail)
    }

    /// Sends a decision. If its response is lost, the outcome is read from the run; the decision is sent again only while
    /// the run waits for it, and the service applies the same decision once.
    async fn send_decision(
        &self,
        run: &str,
        decision: &Decision,
        fields: Arguments,
    ) -> Result<CommandResult, Error> {
        let name = match decision.verdict {
            Verdict::Approve => "run.approve",
            Verdict::Deny => "run.deny",
        };
        let patience = self.inner.wire.reading();
        let advice = "check the run before you decide again";
        let mut tries = 1;
        loop {
            let reconnects = self.inner.link.reconnect_count();
            let answer = if tries == 1 {
                self.inner.command(name, fields.clone(), patience).await
            } else {
                self.inner.once(name, fields.clone(), patience).await
            };
            let error = match answer {
                Err(TransportError::ResponseLost(error)) => error,
                Err(TransportError::NotSent(error)) if tries > 1 => error,
                answer => return answer.map_err(TransportError::error),
            };
            tracing::info!("the response to a decision on {run} was lost: {error}");
            let shown = match self.detail(run).await {
                Err(_) => {
                    let finding = self.inner.link.reconnect(&self.inner.wire, reconnects, &error, 0);
                    if tokio::time::timeout(RECONNECT_TIMEOUT, finding).await.is_err() {
                        return Err(error.outcome_unknown(advice));
                    }
                    self.detail(run).await
                }
                shown => shown,
            };
            let Ok(detail) = shown else { return Err(error.outcome_unknown(advice)) };
            let decisions = detail.decisions.iter().map(|recorded| &recorded.decision);
            let bound = decision.clone().bound_to(detail.run.gate.as_ref(), decisions);
            if let Some(recorded) = detail.decisions.iter().rev().find(|recorded| recorded.decision == bound)
            {
                return Ok(result_from_run(detail.run.clone(), recorded));
            }
            if tries == MAX_ATTEMPTS || !bound.answers(detail.run.gate.as_ref()) {
                return Err(error.outcome_unknown(advice));
            }
            tries += 1;
        }
    }

    /// Sends any other command. If its response is lost, the state of the run is reported.
    async fn send_command(
        &self,
        run: &str,
        name: &'static str,
        fields: &impl serde::Serialize,
    ) -> Result<CommandResult, Error> {
        let mut fields = to_arguments(fields)?;
        let mut answer = self.inner.command(name, fields.clone(), self.inner.wire.reading()).await;
        // A service of an earlier version does not compare the state of the run.
        if let Err(TransportError::Server(error)) = &answer
            && error.code == Code::InvalidRequest
            && error.message.contains("unknown field `since_ms`")
            && let Some(reviewed) = fields.remove("since_ms")
        {
            if reviewed.as_i64() != Some(self.detail(run).await?.run.since_ms) {
                let id = RunId(run.to_owned());
                return Err(StoreError::PreconditionFailed { run: id }.into());
            }
            answer = self.inner.command(name, fields, self.inner.wire.reading()).await;
        }
        match answer {
            Err(TransportError::ResponseLost(error)) => {
                let status = match self.detail(run).await {
                    Ok(detail) => {
                        let state = detail.run.state.label();
                        format!("it is now {state}; check it before repeating the request")
                    }
                    Err(_) => "check the run before repeating the request".to_owned(),
                };
                Err(error.outcome_unknown(&status))
            }
            answer => answer.map_err(TransportError::error),
        }
    }
}

/// Returns the result of a decision that the run shows although its response was lost.
fn result_from_run(run: RunRecord, recorded: &RecordedDecision) -> CommandResult {
    let word = match recorded.decision.verdict {
        Verdict::Approve => "approved",
        Verdict::Deny => "denied",
    };
    let by = recorded.by.approver.as_deref().map(|name| format!(" by {name}")).unwrap_or_default();
    // If the run is no longer pending, a worker has claimed it.
    let worker_alive = run.state != RunState::Pending;
    CommandResult {
        run,
        note: format!("{word}{by} (the response was lost; confirmed from the run)"),
        worker_alive,
        repeated: false,
        mode: None,
    }
}

/// Sets the user of this dialog to the owner of the key, and states it if the key may not decide.
fn set_approver(preview: &mut DecisionPreview, caller: CallerView) {
    let Some(name) = caller.name else { return };
    if !caller.scopes.contains(&Scope::Decide) {
        let scope = Scope::Decide;
        preview.missing_scope = Some(scope);
        preview.blocked = Some(format!(
            "the key {name} lacks the scope `{scope}`, which decisions require; use a key that has it"
        ));
    }
    preview.approver = Some((name, KEY_OWNER.to_owned()));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn decision_names_the_key_and_its_missing_permission() {
        let preview = json!({
            "run": "r1", "skill_id": "pay", "headline": "", "step": "pay", "place": [1, 1], "outcome_unknown": false,
            "capability": "", "capability_note": "", "binding": "", "isolation": "", "why": "", "irreversible": null,
            "inputs": {}, "inputs_digest": "9f", "approver": ["uid 0", "OS account"], "since_ms": 0, "expires_ms": null,
        });
        let on = |name: Option<&str>, scopes: &[Scope]| {
            let mut preview: DecisionPreview = serde_json::from_value(preview.clone()).unwrap();
            let scopes = scopes.iter().copied().collect::<BTreeSet<_>>();
            set_approver(&mut preview, CallerView { name: name.map(str::to_owned), scopes });
            (preview.approver.unwrap().0, preview.blocked)
        };
        assert_eq!(on(Some("adm"), &[Scope::Read, Scope::Decide]), ("adm".to_owned(), None));
        let (name, blocked) = on(Some("op"), &[Scope::Read, Scope::Run]);
        assert!(name == "op" && blocked.unwrap().contains("the key op lacks the scope `decide`"));
        assert_eq!(on(None, &[]).0, "uid 0");
    }
}
