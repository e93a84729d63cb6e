//! Earlier attempts of a resumed run: what failed, and with which changed inputs it continued.

use crate::EarlierAttempt;
use crate::run_commands::changed_inputs;
use skills_store::{EventKind, RunEvent};

/// Returns each resume after a failure, or with changed inputs, oldest first.
pub(super) fn attempts(events: &[RunEvent]) -> Vec<EarlierAttempt> {
    let mut earlier: Vec<EarlierAttempt> = Vec::new();
    let mut failed: Option<&RunEvent> = None;
    for event in events {
        let data = &event.event.data;
        match &event.event.kind {
            EventKind::RunFailed => failed = Some(event),
            EventKind::RunResumed => {
                let failure = failed.take();
                let changed = changed_inputs(data);
                if failure.is_none() && changed.is_empty() {
                    continue;
                }
                let error = failure.map(|failure| failure.event.data.clone());
                let step = error.as_ref().and_then(|error| error["step"].as_str()).map(str::to_owned);
                earlier.push(EarlierAttempt {
                    number: u32::try_from(earlier.len() + 1).unwrap_or(u32::MAX),
                    failed_ms: failure.map(|failure| failure.at_ms),
                    step,
                    error,
                    resumed_ms: event.at_ms,
                    checkpoint: data["checkpoint"].as_u64().unwrap_or_default(),
                    changed,
                });
            }
            _ => {}
        }
    }
    earlier
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ChangedInput;
    use skills_store::{NewEvent, RunId};

    fn event(number: u64, kind: &str, data: Value) -> RunEvent {
        let event = NewEvent { kind: kind.into(), step: None, data };
        RunEvent {
            run: RunId("r".into()),
            number,
            global: number,
            at_ms: 1_000 * number.cast_signed(),
            event,
        }
    }

    #[test]
    fn attempt_contains_its_failure_and_later_changes() {
        let events = [
            event(1, "run.created", json!({})),
            event(2, "run.failed", json!({"step": "sum", "message": "no such file"})),
            event(
                3,
                "run.resumed",
                json!({"checkpoint": 1, "corrected_inputs": {"file": "b.csv", "limit": 3},
                       "inputs_before": {"file": "a.csv", "limit": 3}}),
            ),
            event(4, "run.failed", json!({"step": "sum", "message": "still none"})),
            event(5, "run.resumed", json!({"checkpoint": 1})),
            event(6, "run.failed", json!({"message": "the present one"})),
        ];
        let earlier = attempts(&events);
        assert_eq!(earlier.len(), 2);
        assert_eq!((earlier[0].failed_ms, earlier[0].step.as_deref()), (Some(2_000), Some("sum")));
        let change =
            ChangedInput { name: "file".into(), before: Some(json!("a.csv")), after: json!("b.csv") };
        assert_eq!(earlier[0].changed, [change]);
        assert!(earlier[1].changed.is_empty() && earlier[1].number == 2);
    }

    #[test]
    fn resumed_fork_has_no_earlier_attempt() {
        assert!(attempts(&[event(1, "run.resumed", json!({"checkpoint": 0}))]).is_empty());
    }
}
