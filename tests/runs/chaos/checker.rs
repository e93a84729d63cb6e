//! What has to hold of the store and of the outside world afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use skills_runs::idempotency_key;

use super::effects::Effects;
use super::fleet::{Fleet, REPEATABLE, UNREPEATABLE};
use super::load::{Approval, Observations};

/// How long a process may take to detect that its runs were reclaimed, after a suspension or when the server's clock
/// ended its leases. A call that it is about to make cannot be recalled; its result is refused.
const WAKE_UP: Duration = Duration::from_secs(5);

fn rows(fleet: &Fleet, sql: &str) -> Vec<Value> {
    let text = fleet.sql(&format!("SELECT coalesce(json_agg(found), '[]') FROM ({sql}) found"));
    serde_json::from_str(&text).unwrap()
}

fn text(row: &Value, column: &str) -> String {
    row[column].as_str().unwrap_or_default().to_owned()
}

/// The invariants; prints the counts.
pub fn check(fleet: &Fleet, effects: &Effects, observed: &Observations) {
    assert!(observed.unexpected.is_empty(), "{:#?}\n{}", observed.unexpected, fleet.logs());
    let runs = rows(fleet, "SELECT id, state, error FROM runs");
    let known: BTreeMap<String, &Value> = runs.iter().map(|run| (text(run, "id"), run)).collect();
    for (key, run) in &observed.acknowledged {
        assert!(known.contains_key(run), "run {run} of {key} was acknowledged and is lost");
    }
    assert_eq!(runs.len(), observed.acknowledged.len(), "each key has one run");
    let distinct: BTreeSet<&String> = observed.acknowledged.values().collect();
    assert_eq!(distinct.len(), runs.len(), "each run has one key");
    // None loses six workers in a row, which would fail it, unless it is taken over without need.
    let failed: Vec<_> = runs.iter().filter(|run| run["state"] != "completed").collect();
    assert!(failed.is_empty(), "{} of {}: {failed:#?}\n{}", failed.len(), runs.len(), fleet.logs());

    let twice = rows(
        fleet,
        "SELECT run, step FROM events WHERE kind IN ('step.completed', 'step.skipped')
         GROUP BY run, step HAVING count(*) > 1",
    );
    assert!(twice.is_empty(), "recorded twice: {twice:?}");
    let gaps = rows(
        fleet,
        "SELECT events.run FROM events JOIN runs ON runs.id = events.run GROUP BY events.run, runs.events
         HAVING min(number) <> 1 OR max(number) <> count(*) OR count(*) <> runs.events",
    );
    assert!(gaps.is_empty(), "events with gaps: {gaps:?}");

    let decisions = decisions(fleet);
    for decided in &observed.decided {
        assert!(decisions.contains(decided), "acknowledged and lost: {decided:?}");
    }
    let takeovers = fleet.sql(
        "SELECT count(*) FROM events WHERE kind = 'run.claimed' AND CAST(data AS jsonb) @> '{\"takeover\": true}'",
    );
    let (calls, late) = check_calls(fleet, effects, &decisions, &known);
    let sound = fleet.command(&["db", "check", "--json"]);
    assert_eq!(sound.code, 0, "{}{}", sound.stdout, sound.stderr);
    eprintln!(
        "{} runs, all completed; {} launches answered with an existing run; {} requests sent again; \
         {} decisions, {} of them on unknown outcomes; {takeovers} takeovers; {} calls of {} steps, {late} by a \
         process that did not know yet that its run was taken over",
        runs.len(),
        observed.reused,
        observed.repeated,
        decisions.len(),
        decisions.iter().filter(|decided| decided.choice.is_some()).count(),
        calls,
        effects.calls().len(),
    );
    assert!(!runs.is_empty() && takeovers != "0", "{} runs, {takeovers} takeovers", runs.len());
}

fn decisions(fleet: &Fleet) -> Vec<Approval> {
    let found = rows(
        fleet,
        "SELECT run, CAST(decision AS jsonb) ->> 'step' AS step, CAST(decision AS jsonb) ->> 'choice' AS choice
         FROM decisions",
    );
    let decided = |row: &Value| Approval {
        run: text(row, "run"),
        step: text(row, "step"),
        choice: row["choice"].as_str().map(str::to_owned),
    };
    found.iter().map(decided).collect()
}

/// Checks that no step was called after it was recorded, that none with an unknown outcome was repeated without a
/// decision, and that none was called without the approval it requires. Returns the number of calls, and of late ones.
fn check_calls(
    fleet: &Fleet,
    effects: &Effects,
    decisions: &[Approval],
    runs: &BTreeMap<String, &Value>,
) -> (usize, usize) {
    let recorded = rows(
        fleet,
        "SELECT run, step, CAST(json AS jsonb) -> 'result' -> 'n' AS call FROM steps
         WHERE superseded = 0 AND CAST(json AS jsonb) ->> 'status' = 'completed'",
    );
    let recorded: BTreeMap<(String, String), u64> = recorded
        .iter()
        .map(|row| ((text(row, "run"), text(row, "step")), row["call"].as_u64().expect("a result")))
        .collect();
    let all = effects.calls();
    let (mut attributed, mut late) = (0, 0);
    for (run, row) in runs {
        let chosen = |step: &str, choice: &str| {
            let of = |d: &&Approval| d.run == *run && d.step == step && d.choice.as_deref() == Some(choice);
            decisions.iter().filter(of).count()
        };
        for step in REPEATABLE.into_iter().chain(UNREPEATABLE) {
            let calls = all.get(&idempotency_key(run, step)).map(Vec::as_slice).unwrap_or_default();
            attributed += calls.len();
            if UNREPEATABLE.contains(&step) {
                let most = 1 + chosen(step, "rerun");
                assert!(calls.len() <= most, "{step} of {run}: {} calls, {most} permitted", calls.len());
            }
            let result = recorded.get(&(run.clone(), step.to_owned())).copied();
            assert!(
                result.is_some() || chosen(step, "skip") > 0 || row["state"] != "completed",
                "{step} of {run} is missing"
            );
            if step == "pay" && !calls.is_empty() {
                let approved = decisions.iter().any(|d| d.run == *run && d.step == step);
                assert!(approved, "{step} of {run} was not approved");
            }
            let Some(result) = result.map(|result| usize::try_from(result).unwrap()) else { continue };
            assert!(
                calls.iter().any(|call| call.number == result),
                "{step} of {run} has a result of no call"
            );
            for call in calls.iter().filter(|call| call.number > result) {
                assert!(
                    fleet.may_have_been_late(call.member, call.at_ms, WAKE_UP),
                    "{step} of {run} was recorded with call {result} and called again: {calls:?}"
                );
                late += 1;
            }
        }
    }
    let total: usize = all.values().map(Vec::len).sum();
    assert_eq!(attributed, total, "every call belongs to a step of a run");
    (total, late)
}
