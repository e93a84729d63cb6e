//! The summary of a run in a list: its title, and briefly why it failed.

use serde_json::Value;

use crate::RunRecord;
use skills_model::{ApprovalReason, BEFORE_FIRST_STEP, Gate, RunState, Verdict};

/// Maximum number of characters of a reason.
const MAX_REASON_CHARS: usize = 120;

impl RunRecord {
    /// Returns whether its inputs are left out, because they are too long for a list or cannot be read. Those of a run
    /// that was read by its id are an object.
    pub fn lacks_inputs(&self) -> bool {
        self.inputs.is_null()
    }

    /// Returns whether the content of its target is left out, because it is too long for a list.
    pub fn lacks_target_content(&self) -> bool {
        self.target.as_ref().is_some_and(|target| target.get("content").is_none())
    }

    /// Returns whether a list leaves out values that distinguish it from other runs.
    pub fn lacks_values(&self) -> bool {
        self.lacks_inputs() || self.lacks_target_content()
    }

    /// Returns whether another record of the run describes the same state. The inputs change only when the run is resumed,
    /// which ends the state or a pause.
    pub fn is_in_same_state(&self, other: &Self) -> bool {
        (self.since_ms, self.state, self.paused) == (other.since_ms, other.state, other.paused)
    }

    /// Returns whether a worker executes it or could.
    pub fn is_executable(&self) -> bool {
        match self.state {
            RunState::Running | RunState::Replaying => true,
            RunState::Pending => !self.paused,
            _ => false,
        }
    }

    /// Returns who started it and, unless it is the same person, who changed its inputs since.
    pub fn starters(&self) -> impl Iterator<Item = &str> {
        let others = self.options.inputs_by.iter().filter(|name| **name != self.started_by);
        std::iter::once(&self.started_by).chain(others).map(String::as_str)
    }

    /// Returns the title; `None` for a run of an earlier version, or without a template and inputs.
    pub fn title(&self) -> Option<&str> {
        self.options.title.as_deref().filter(|title| !title.is_empty())
    }

    /// Returns the title, or the skill if there is none.
    pub fn title_or_skill(&self) -> &str {
        self.title().unwrap_or(&self.skill_id)
    }

    /// Returns whether it waits for a decision about a step whose outcome is unknown.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(&self.gate, Some(Gate::Human { why: ApprovalReason::UnknownOutcome, .. }))
    }

    /// Returns its position: `step 3 of 4`, or `2 of 4 steps` if it has ended or is at no step.
    pub fn position(&self) -> String {
        let (completed, all) = self.progress;
        let has_ended = self.state.is_terminal() || self.state == RunState::Failed;
        if has_ended || completed >= all || self.step.as_deref() == Some(BEFORE_FIRST_STEP) {
            format!("{completed} of {all} steps")
        } else {
            format!("step {} of {all}", completed + 1)
        }
    }

    /// Returns the step whose denial canceled it.
    pub fn denied_at(&self) -> Option<&str> {
        let denied = self.decided.as_ref().filter(|decided| decided.verdict == Verdict::Deny)?;
        (self.state == RunState::Canceled).then_some(&denied.step)
    }

    /// Returns its labels on one line: `env=prod, team=web`.
    pub fn labels(&self) -> String {
        let labels: Vec<String> =
            self.options.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        labels.join(", ")
    }

    /// Returns briefly why it failed or ended without a result; `None` if it has no error.
    pub fn failure(&self) -> Option<String> {
        self.error.as_ref().map(failure_summary)
    }

    /// Returns `approved, 1 of 2`, or ``approved with `rerun`, 1 of 2``, while more approvals are needed.
    pub fn approval_progress(&self) -> Option<String> {
        match &self.gate {
            Some(Gate::Human { approvals, .. }) if !approvals.is_empty() => {
                let choice = approvals.choice.map(|choice| format!(" with `{choice}`")).unwrap_or_default();
                Some(format!("approved{choice}, {} of {}", approvals.by.len(), approvals.need))
            }
            _ => None,
        }
    }

    /// Returns `escalated to lead`, or `escalated`, while it waits for the approval that was escalated.
    pub fn escalation(&self) -> Option<String> {
        let is_escalated = self.options.escalated_ms == Some(self.since_ms);
        let to = &self.options.escalated_to;
        (self.state == RunState::WaitingForHuman && is_escalated).then(|| match to.as_slice() {
            [] => "escalated".to_owned(),
            to => format!("escalated to {}", to.join(", ")),
        })
    }

    /// Returns what distinguishes its wait for approval: an unknown outcome, the approvals it has, the escalation.
    pub fn wait_notes(&self) -> impl Iterator<Item = String> {
        let unknown = self.is_outcome_unknown().then(|| "outcome unknown".to_owned());
        let waits = self.state == RunState::WaitingForHuman;
        [unknown, self.approval_progress(), self.escalation()].into_iter().flatten().filter(move |_| waits)
    }
}

/// Summarizes an error: `http 503`, `circuit breaker open`, `timed out`, or the beginning of its message.
pub fn failure_summary(error: &Value) -> String {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if let Some(summary) = text(error, "summary") {
        return summary;
    }
    let reason = error.get("reason");
    let status = reason.and_then(|reason| reason.get("status")?.as_i64());
    let kind = reason.and_then(|reason| text(reason, "kind"));
    let short = match (kind.as_deref(), status) {
        (Some("error_answer"), Some(status)) if (100..600).contains(&status) => {
            Some(format!("http {status}"))
        }
        (Some("error_answer"), Some(status)) => Some(format!("error {status}")),
        (Some("error_answer"), None) => Some("error response".to_owned()),
        // A script that exited with an error has no response.
        (Some("invalid_answer"), _) => {
            let exit = reason.and_then(exit).or_else(|| exit_in_message(&text(error, "message")?));
            Some(exit.unwrap_or_else(|| "invalid response".to_owned()))
        }
        (Some("unreachable"), _) => Some("service unreachable".to_owned()),
        (Some("timeout"), _) => Some("timed out".to_owned()),
        (Some("breaker_open"), _) => Some("circuit breaker open".to_owned()),
        (Some("not_configured"), _) => Some("no binding configured".to_owned()),
        (Some("stopped"), _) => Some("stopped".to_owned()),
        _ => None,
    };
    if let Some(short) = short {
        return short;
    }
    let code = text(error, "code").map(|code| code.replace('_', " "));
    match code.as_deref() {
        // The code is sufficient; the message repeats it at length.
        Some("expired" | "step timeout" | "upstream timeout" | "untrusted" | "skill changed") => {
            code.unwrap_or_default()
        }
        _ => text(error, "message").and_then(|message| first_sentence(&message)).or(code).unwrap_or_default(),
    }
}

/// Returns the typed part of a summary, without the text of the failed script: `exit code 3`. Runs that failed for the
/// same reason share it, while the text may name what differs between them.
pub fn failure_kind(summary: &str) -> &str {
    let is_exit =
        |kind: &&str| kind.strip_prefix("exit code ").is_some_and(|code| code.parse::<i64>().is_ok());
    summary.split_once(": ").map(|(kind, _)| kind).filter(is_exit).unwrap_or(summary)
}

/// Returns how a script exited, with the last line that it printed to stderr: `exit code 3: no such version`.
fn exit(reason: &Value) -> Option<String> {
    let code = reason.get("exit_code")?.as_i64()?;
    let line = reason.get("stderr_line").and_then(Value::as_str);
    let text = line.map_or_else(|| format!("exit code {code}"), |line| format!("exit code {code}: {line}"));
    Some(shortened(text.lines().next().unwrap_or_default().trim()))
}

/// Returns the same for an error that an earlier version stored, whose reason does not have the exit code.
fn exit_in_message(message: &str) -> Option<String> {
    let at = message.find(" ended with exit code ")?;
    let line = message.get(at + " ended with ".len()..)?.lines().next()?;
    let line = line.strip_suffix(", and printed nothing to stderr").unwrap_or(line).trim();
    Some(shortened(line))
}

/// Returns the first sentence of a message, on one line and truncated.
fn first_sentence(message: &str) -> Option<String> {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty())?;
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first).trim_end_matches('.');
    Some(shortened(sentence))
}

/// Truncates a line.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(MAX_REASON_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunOptions;
    use serde_json::json;

    #[test]
    fn position_counts_completed_steps_unless_it_is_at_a_step() {
        let run = |state: RunState, progress: (u32, u32), step: Option<&str>| -> RunRecord {
            serde_json::from_value(json!({
                "id": "a", "skill_id": "demo", "state": state, "held": false, "gate": null, "decided": null,
                "contract_digest": "c", "inputs": {}, "target": null, "options": RunOptions::default(),
                "outputs": null, "error": null, "trace_id": "t", "started_by": "ana", "source": null,
                "progress": progress, "step": step, "head": 0, "fence": 1, "created_ms": 0, "since_ms": 0,
                "expires_ms": null, "allowed": [],
            }))
            .unwrap()
        };
        for (state, progress, step, text) in [
            (RunState::Running, (2, 4), Some("sum"), "step 3 of 4"),
            (RunState::Failed, (2, 4), Some("sum"), "2 of 4 steps"),
            (RunState::WaitingForHuman, (0, 1), Some(BEFORE_FIRST_STEP), "0 of 1 steps"),
            (RunState::Pending, (1, 1), None, "1 of 1 steps"),
        ] {
            assert_eq!(run(state, progress, step).position(), text);
        }
    }

    #[test]
    fn a_failure_is_named_by_its_typed_reason() {
        for (error, words) in [
            (
                json!({"code": "upstream_failure", "message": "registry.push: its service returned an error",
                    "reason": {"kind": "error_answer", "capability": "registry.push", "status": 503}}),
                "http 503",
            ),
            (
                json!({"code": "upstream_failure", "message": "x", "reason": {"kind": "error_answer", "status": -32000}}),
                "error -32000",
            ),
            (
                json!({"code": "upstream_failure", "message": "x", "reason": {"kind": "breaker_open"}}),
                "circuit breaker open",
            ),
            (
                json!({"code": "runtime_error", "message": "`a.b`: its script ended with exit code 3: version 'bad' is not in the registry. Use another.",
                    "reason": {"kind": "invalid_answer"}}),
                "exit code 3: version 'bad' is not in the registry. Use another.",
            ),
            (
                json!({"code": "runtime_error", "message": "`a.b`: its script ended with exit code 1, and printed nothing to stderr",
                    "reason": {"kind": "invalid_answer"}}),
                "exit code 1",
            ),
            (
                json!({"code": "runtime_error", "message": "`a.b`: its script exited with code 3: no file a.csv",
                    "reason": {"kind": "invalid_answer", "exit_code": 3, "stderr_line": "no file a.csv"}}),
                "exit code 3: no file a.csv",
            ),
            (
                json!({"code": "runtime_error", "message": "`a.b`: its script exited with code 1, and printed nothing to stderr",
                    "reason": {"kind": "invalid_answer", "exit_code": 1}}),
                "exit code 1",
            ),
            (
                json!({"code": "runtime_error", "message": "`a.b`: its script printed no JSON",
                    "reason": {"kind": "invalid_answer"}}),
                "invalid response",
            ),
            (json!({"code": "step_timeout", "message": "step a took longer than 2 s"}), "step timeout"),
            (
                json!({"code": "runtime_error", "message": "version 'bad' is not in the registry. Use another."}),
                "version 'bad' is not in the registry",
            ),
            (json!({"code": "runtime_error"}), "runtime error"),
        ] {
            assert_eq!(failure_summary(&error), words, "{error}");
        }
    }

    #[test]
    fn the_kind_of_a_failure_omits_the_text() {
        for (summary, kind) in [
            ("exit code 7: vault: permission denied for a1", "exit code 7"),
            ("exit code 7", "exit code 7"),
            ("exit code x: a", "exit code x: a"),
            ("http 503", "http 503"),
            ("cannot read: no such file", "cannot read: no such file"),
        ] {
            assert_eq!(failure_kind(summary), kind);
        }
    }
}
