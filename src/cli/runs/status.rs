//! Status of a run and a step as a symbol, a style and a short text; and the resulting exit code.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::clock;
use crate::failure::Exit;
use crate::output::{TerminalCaps, TextStyle};
use skills_api::{Deadline, StepState};
use skills_model::{ApprovalReason, BEFORE_FIRST_STEP, Expiry, Gate, RunState, approval_label};
use skills_skill::safe_text;
use skills_store::{EventKind, RunRecord, WorkerId, expiry_outcome};

/// Returns the styled sign of a run's state.
pub fn sign(run: &RunRecord, look: TerminalCaps) -> String {
    sign_of(run.state, look)
}

/// Returns the styled sign of a state.
pub fn sign_of(state: RunState, look: TerminalCaps) -> String {
    let (unicode, ascii, style) = match state {
        RunState::WaitingForHuman => ("◆", "!", TextStyle::Warn),
        RunState::WaitingForSignal => ("◇", "~", TextStyle::Info),
        RunState::Pending => ("○", "o", TextStyle::Muted),
        RunState::Running | RunState::Replaying => ("▸", ">", TextStyle::Info),
        RunState::Completed => ("✓", "+", TextStyle::Good),
        RunState::Failed => ("✗", "x", TextStyle::Bad),
        RunState::Canceled => ("⊘", "/", TextStyle::Muted),
    };
    style.paint(if look.unicode { unicode } else { ascii }, look.color)
}

/// Returns the styled sign of a step's state.
pub fn step_sign(state: StepState, look: TerminalCaps) -> String {
    let (unicode, ascii, style) = match state {
        StepState::Pending => ("○", "o", TextStyle::Muted),
        StepState::Running => ("▸", ">", TextStyle::Info),
        StepState::WaitingForHuman => ("◆", "!", TextStyle::Warn),
        StepState::WaitingForSignal => ("◇", "~", TextStyle::Info),
        StepState::Completed => ("✓", "+", TextStyle::Good),
        StepState::Skipped => ("–", "-", TextStyle::Muted),
        StepState::Failed => ("✗", "x", TextStyle::Bad),
        StepState::Interrupted => ("⊘", "/", TextStyle::Warn),
    };
    style.paint(if look.unicode { unicode } else { ascii }, look.color)
}

/// Describes its state briefly: `book waits for approval`, `failed at sum: http 502`.
pub fn describe(run: &RunRecord, zone: &TimeZone) -> String {
    let text = match state_and_reason(run, zone) {
        (state, Some(why)) => format!("{state}: {why}"),
        (state, None) => state,
    };
    match &run.source {
        Some((_, checkpoint)) if run.paused && run.state == RunState::Pending => {
            format!("{text}, created from checkpoint {checkpoint}")
        }
        _ => text,
    }
}

/// Returns its state, and why it failed or was canceled: `failed at sum`, `http 502`.
fn state_and_reason(run: &RunRecord, zone: &TimeZone) -> (String, Option<String>) {
    state_since(run, zone, "")
}

/// Like [`state_and_reason`], with the duration of the state: ` for 2 s`, ` 8 m ago`.
pub fn state_since(run: &RunRecord, zone: &TimeZone, duration: &str) -> (String, Option<String>) {
    match run.state {
        RunState::Failed => {
            let step = failed_step(run).map(|step| format!(" at {step}")).unwrap_or_default();
            (format!("failed{step}{duration}"), failure(run))
        }
        RunState::Canceled if run.expired_ms().is_none() => {
            (format!("canceled{duration}"), failure(run).or_else(|| denial(run)))
        }
        _ => (state_label(run, zone, duration), None),
    }
}

fn state_label(run: &RunRecord, zone: &TimeZone, duration: &str) -> String {
    let step = run.step.as_deref().map(|step| safe_text::line(step).into_owned());
    match run.state {
        RunState::Pending if run.paused => format!("paused{duration}"),
        RunState::Pending => format!("pending{duration}"),
        RunState::Running | RunState::Replaying => {
            let lost = run.lease.as_ref().is_some_and(|lease| lease.holder.is_lost());
            let word = step.filter(|_| run.state == RunState::Running);
            let word = word.map_or_else(|| run.state.to_string(), |step| format!("running {step}"));
            let word = word + duration;
            let word = if run.paused { format!("{word}, pauses before its next step") } else { word };
            if lost { format!("{word}, but no worker owns it") } else { word }
        }
        RunState::WaitingForHuman | RunState::WaitingForSignal => {
            let waits = match &run.gate {
                Some(Gate::Human { step, why: ApprovalReason::UnknownOutcome, .. }) => {
                    format!("{}: outcome unknown{duration}", safe_text::line(step))
                }
                Some(Gate::Human { step, .. }) => {
                    let is_of_policy = step == BEFORE_FIRST_STEP;
                    let step = safe_text::line(approval_label(step));
                    let waits = match (is_of_policy, duration.is_empty()) {
                        (true, _) => "",
                        (false, true) => " is waiting for approval",
                        (false, false) => " has been waiting for approval",
                    };
                    match run.approval_progress() {
                        Some(progress) if duration.is_empty() => format!("{step}: {progress}"),
                        Some(progress) => format!("{step}{waits}{duration} ({progress})"),
                        None => format!("{step}{waits}{duration}"),
                    }
                }
                Some(Gate::Signal { name, .. }) => {
                    format!("waiting for signal {}{duration}", safe_text::line(name))
                }
                None => format!("{}{duration}", run.state.label()),
            };
            let escalation = run.escalation().map(|text| format!(", {}", safe_text::line(&text)));
            let waits = waits + &escalation.unwrap_or_default();
            if run.paused { format!("{waits}, then paused until resumed") } else { waits }
        }
        RunState::Completed | RunState::Failed => format!("{}{duration}", run.state.label()),
        RunState::Canceled => match run.expired_ms() {
            Some(at) => format!("canceled{duration}: expired at {}", clock::time_of_day(at, zone)),
            None => format!("canceled{duration}"),
        },
    }
}

fn denial(run: &RunRecord) -> Option<String> {
    run.denied_at().map(|step| format!("{} was denied", safe_text::line(approval_label(step))))
}

/// Returns the step of an approval as a phrase: `step book`, or the approval before the first step.
pub fn approval_phrase(step: &str) -> String {
    let label = approval_label(step);
    if step == BEFORE_FIRST_STEP { label.to_owned() } else { format!("step {}", safe_text::line(label)) }
}

/// Describes a claim or the loss of a worker; `None` for other events.
pub fn claim(kind: &EventKind, data: &Value) -> Option<String> {
    let worker = |name: &str| {
        let id = data.get(name)?.as_str()?;
        Some(safe_text::line(&WorkerId(id.to_owned()).describe()).into_owned())
    };
    match kind {
        EventKind::RunAbandoned => Some(format!("{} has exited", worker("worker")?)),
        EventKind::RunClaimed => {
            let by = worker("worker")?;
            let Some(before) = worker("taken_over_from") else { return Some(format!("by {by}")) };
            let attempt = match (data["attempt"].as_u64(), data["attempts"].as_u64()) {
                (Some(attempt), Some(of)) => format!("attempt {attempt} of {of}: "),
                _ => String::new(),
            };
            Some(format!("{attempt}taken over from {before} by {by}"))
        }
        _ => None,
    }
}

/// Returns why approval is required, as a sentence.
pub fn approval_reason(why: &ApprovalReason) -> String {
    safe_text::line(&why.describe()).into_owned()
}

/// Describes when a wait for approval expires, and what happens then: `in 2 h, at 2026-07-14 11:30:00: then denied and
/// canceled`.
pub fn expiry(at_ms: i64, then: Expiry, now_ms: i64, zone: &TimeZone) -> String {
    format!("{}: {}", expiry_time(at_ms, now_ms, zone), expiry_outcome(then, None))
}

/// Like [`expiry`], of any wait of a run.
pub fn wait_expiry(run: &RunRecord, at_ms: i64, now_ms: i64, zone: &TimeZone) -> String {
    format!("{}: {}", expiry_time(at_ms, now_ms, zone), on_expiry(run))
}

fn expiry_time(at_ms: i64, now_ms: i64, zone: &TimeZone) -> String {
    let at = clock::moment(at_ms, zone);
    if at_ms > now_ms {
        format!("in {}, at {at}", clock::age(at_ms.saturating_sub(now_ms)))
    } else {
        format!("expired at {at}")
    }
}

/// Describes the outcome of a run whose wait expires.
pub fn on_expiry(run: &RunRecord) -> &'static str {
    expiry_outcome(run.options.on_expiry, run.gate.as_ref())
}

/// Like [`describe`], with the remaining time of a wait: `book waits for a person, expires in 2 h (denied then, …)`.
pub fn words_now(run: &RunRecord, now_ms: i64, zone: &TimeZone) -> String {
    match Deadline::of(run.expires_ms.filter(|_| run.state.is_waiting()), now_ms) {
        Deadline::None => describe(run, zone),
        deadline => {
            let when = deadline.text(clock::age);
            format!("{when}: {} ({})", describe(run, zone), on_expiry(run))
        }
    }
}

/// Returns what went wrong, on one line.
pub fn failure(run: &RunRecord) -> Option<String> {
    run.error.as_ref().map(message)
}

/// Returns the message of an error, on one line.
pub fn message(error: &Value) -> String {
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    let message = error.as_str().or_else(|| text("detail")).or_else(|| text("message"));
    safe_text::line(&message.map_or_else(|| error.to_string(), str::to_owned)).into_owned()
}

/// Returns the step at which a run failed; `None` if the failure is that of the run.
fn failed_step(run: &RunRecord) -> Option<String> {
    let error = run.error.as_ref()?;
    let named = error.get("step").and_then(Value::as_str);
    let at_last = run.expired_ms().is_some() || error.get("lost_workers").is_some();
    let step = named.or_else(|| run.step.as_deref().filter(|_| at_last))?;
    Some(safe_text::line(approval_label(step)).into_owned())
}

/// Returns how a command that executed a run ends, by the state of the run.
pub fn done(run: &RunRecord) -> Exit {
    match run.state {
        RunState::Pending if run.paused => Exit::Waiting,
        RunState::Completed | RunState::Pending | RunState::Running | RunState::Replaying => Exit::Success,
        RunState::Failed | RunState::Canceled => Exit::ChecksFailed,
        RunState::WaitingForHuman | RunState::WaitingForSignal => Exit::Waiting,
    }
}

/// Returns the end of a run's id, which distinguishes it: ids begin with their creation time.
pub fn short(id: &str) -> &str {
    let at = id.char_indices().rev().nth(7).map_or(0, |(at, _)| at);
    &id[at..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples::record;
    use skills_api::orphaned_run_reason;
    use skills_store::{LeaseHolder, RunLease};

    #[test]
    fn every_state_has_its_details() {
        let parts: Vec<String> = [
            RunState::Pending,
            RunState::Running,
            RunState::Replaying,
            RunState::WaitingForHuman,
            RunState::WaitingForSignal,
            RunState::Completed,
            RunState::Failed,
            RunState::Canceled,
        ]
        .map(|state| describe(&record(state), &TimeZone::UTC))
        .into();
        assert_eq!(
            parts,
            [
                "pending",
                "running book",
                "replaying",
                "book is waiting for approval",
                "waiting for signal books-closed",
                "completed",
                "failed at sum: the service answered 502",
                "canceled"
            ]
        );
        let lost = |holder| {
            let worker = Some(WorkerId("build-2/1-ab/4711/99/0".to_owned()));
            let lease = Some(RunLease { worker, until_ms: 1_000, until_boot: None, holder });
            RunRecord { lease, ..record(RunState::Running) }
        };
        assert_eq!(describe(&lost(LeaseHolder::Dead), &TimeZone::UTC), "running book, but no worker owns it");
        assert_eq!(describe(&lost(LeaseHolder::Elsewhere), &TimeZone::UTC), "running book");
        let why = [LeaseHolder::Elsewhere, LeaseHolder::Dead, LeaseHolder::RunOut]
            .map(|holder| orphaned_run_reason(&lost(holder), 9_000, clock::age));
        assert_eq!(
            why,
            [
                None,
                Some("no worker owns it: process 4711 on build-2 has exited".to_owned()),
                Some("no worker owns it: the lease of process 4711 on build-2 expired 8 s ago".to_owned()),
            ]
        );
        let fork = RunRecord {
            paused: true,
            source: Some((record(RunState::Completed).id, 2)),
            ..record(RunState::Pending)
        };
        assert_eq!(describe(&fork, &TimeZone::UTC), "paused, created from checkpoint 2");
        assert_eq!(state_and_reason(&fork, &TimeZone::UTC), ("paused".to_owned(), None));
    }

    #[test]
    fn expired_wait_for_a_signal_is_not_denied() {
        let text = |state| wait_expiry(&record(state), 3_600_000, 0, &TimeZone::UTC);
        let at = "in 1 h, at 1970-01-01 01:00:00: then";
        assert_eq!(text(RunState::WaitingForSignal), format!("{at} canceled"));
        assert_eq!(text(RunState::WaitingForHuman), format!("{at} denied and canceled"));
    }

    #[test]
    fn a_failure_of_the_run_names_no_step() {
        let error =
            Some(serde_json::json!({ "code": "runtime_error", "message": "all steps completed, but" }));
        let failed = RunRecord { error, ..record(RunState::Failed) };
        assert_eq!(describe(&failed, &TimeZone::UTC), "failed: all steps completed, but");
        let error = Some(serde_json::json!({ "code": "expired", "message": "late", "expired_ms": 62_000 }));
        let late = RunRecord { error, ..record(RunState::Failed) };
        assert_eq!(describe(&late, &TimeZone::UTC), "failed at book: late");
    }

    #[test]
    fn duration_of_a_partial_approval_follows_the_step() {
        let mut run = record(RunState::WaitingForHuman);
        if let Some(Gate::Human { approvals, .. }) = &mut run.gate {
            approvals.by = vec!["ana".to_owned()];
            approvals.need = 2;
        }
        assert_eq!(describe(&run, &TimeZone::UTC), "book: approved, 1 of 2");
        let (state, _) = state_since(&run, &TimeZone::UTC, " for 2 s");
        assert_eq!(state, "book has been waiting for approval for 2 s (approved, 1 of 2)");
    }

    #[test]
    fn expired_and_canceled_runs_are_distinguished() {
        let error = Some(serde_json::json!({ "code": "expired", "message": "in UTC", "expired_ms": 62_000 }));
        let expired = RunRecord { error, ..record(RunState::Canceled) };
        assert_eq!(describe(&expired, &TimeZone::UTC), "canceled: expired at 00:01:02");
        assert_eq!(describe(&record(RunState::Canceled), &TimeZone::UTC), "canceled");
        assert_eq!(
            state_since(&expired, &TimeZone::UTC, " 8 m ago").0,
            "canceled 8 m ago: expired at 00:01:02"
        );
    }

    #[test]
    fn exit_code_follows_the_state() {
        let code = |state| done(&record(state));
        assert_eq!(code(RunState::Completed), Exit::Success);
        assert_eq!(
            (code(RunState::Failed), code(RunState::Canceled)),
            (Exit::ChecksFailed, Exit::ChecksFailed)
        );
        assert_eq!(
            (code(RunState::WaitingForHuman), code(RunState::WaitingForSignal)),
            (Exit::Waiting, Exit::Waiting)
        );
        let paused_record = RunRecord { paused: true, ..record(RunState::Pending) };
        assert_eq!((code(RunState::Pending), done(&paused_record)), (Exit::Success, Exit::Waiting));
    }

    #[test]
    fn a_short_id_is_its_end() {
        assert_eq!(short("0198a1b2-0000-7000-8000-00000000abcd"), "0000abcd");
        assert_eq!(short("abc"), "abc");
    }
}
