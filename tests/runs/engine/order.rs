//! Which step runs when, what it is given, what it leaves, and what of it is written down.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use skills_model::RunState;
use skills_runs::{ExecutionEnd, LogLine, PARALLEL, idempotency_key};
use skills_store::{AuditMode, StepStatus};

use super::fixture::{Bench, completed, failed, failing, pending_step};

const LINEAR: &str = "
id: demo.linear
inputs: { n: { type: integer } }
outputs: { sum: { type: integer, required: true } }
steps:
  - { id: a, uses: math.one, input: { n: inputs.n }, output: { n: vars.a } }
  - { id: b, uses: math.two, input: { n: vars.a, all: { list: [ inputs.n, fixed ], to: target.content.total } }, output: { n: vars.b } }
  - { id: c, uses: math.three, input: { sum: vars.b }, output: { sum: outputs.sum } }
";

#[tokio::test]
async fn steps_run_in_order_and_pass_their_results() {
    let bench = Bench::new();
    bench.fake.on("math.two", |made| Ok(json!({"n": made.inputs["n"].as_i64().unwrap() + 1})));
    let (run, executed) = bench.run(LINEAR, json!({"n": 41})).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"sum": 42})));
    assert_eq!(completed(&executed).progress, (3, 3));
    assert_eq!(bench.fake.steps(), ["a", "b", "c"]);
    let made = bench.fake.made();
    assert_eq!(made[1].inputs, json!({"n": 41, "all": {"list": [41, "fixed"], "to": 3}}));
    assert_eq!(made[1].key, idempotency_key(&run.0, "b"));
    let record = bench.step(&run, "b").await.unwrap();
    assert_eq!(
        (record.status, record.attempts, record.binding.as_deref()),
        (StepStatus::Completed, 1, Some("fake"))
    );
    assert_eq!(record.result, json!({"n": 42}));
    let checkpoints = bench.store.checkpoints(&run, None, 1000).await.unwrap();
    let done: Vec<Vec<String>> = checkpoints.into_iter().map(|checkpoint| checkpoint.done).collect();
    assert_eq!(
        done,
        [
            vec![],
            vec!["a".to_owned()],
            vec!["a".into(), "b".into()],
            vec!["a".into(), "b".into(), "c".into()]
        ]
    );
}

#[tokio::test]
async fn a_linear_run_takes_one_transaction_for_each_step_and_one_more() {
    let bench = Bench::ticking();
    let (run, _) = bench.run(LINEAR, json!({"n": 1})).await;
    let events = bench.events(&run).await;
    let kinds: Vec<&str> = events.iter().map(|event| event.event.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "run.created",
            "run.claimed",
            "step.started",
            "step.completed",
            "step.started",
            "step.completed",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    let moments: std::collections::BTreeSet<i64> = events[2..].iter().map(|event| event.at_ms).collect();
    assert_eq!(moments.len(), 4, "events of one transaction have one moment: {events:?}");
}

#[tokio::test]
async fn independent_steps_run_side_by_side_eight_at_most() {
    let bench = Bench::new();
    let steps: String = (0..12)
        .map(|n| format!("  - {{ id: s{n}, uses: slow.one, config: {{ depends_on: [] }} }}\n"))
        .collect();
    let barrier = Arc::new(tokio::sync::Barrier::new(PARALLEL));
    bench.fake.does("slow.one", move |made, _, _| {
        let barrier = barrier.clone();
        Box::pin(async move {
            // The first eight continue only when all eight are there: fewer at once would block.
            if made.nth <= PARALLEL {
                barrier.wait().await;
            }
            Ok(json!({}))
        })
    });
    let (_, executed) = bench.run(&format!("id: demo.wide\nsteps:\n{steps}"), json!({})).await;
    completed(&executed);
    assert_eq!(bench.fake.made().len(), 12);
    assert_eq!(bench.fake.most_at_once.load(Ordering::SeqCst), PARALLEL);
}

#[tokio::test]
async fn joining_step_waits_for_all_dependencies() {
    let bench = Bench::new();
    let text = "
id: demo.join
outputs: { both: { type: array } }
steps:
  - { id: left, uses: x.left, output: { v: vars.l }, config: { depends_on: [] } }
  - { id: right, uses: x.right, output: { v: vars.r }, config: { depends_on: [] } }
  - { id: join, uses: x.join, input: { both: [ vars.l, vars.r ] }, output: { both: outputs.both }, config: { depends_on: [left, right] } }
";
    bench.fake.on("x.left", |_| Ok(json!({"v": 1})));
    bench.fake.on("x.right", |_| Ok(json!({"v": 2})));
    assert_eq!(bench.outputs(text, json!({})).await, json!({"both": [1, 2]}));
}

#[tokio::test]
async fn a_missing_value_names_the_step_and_the_path() {
    let bench = Bench::new();
    // Without the condition, the contract would be refused before the run.
    let text = "
id: demo.missing
inputs: { gone: { type: string } }
steps:
  - { id: a, uses: x.y, input: { gone: inputs.gone }, output: {} }
  - { id: b, uses: x.y, input: { n: vars.later }, config: { condition: inputs.gone == null } }
  - { id: c, uses: x.y, input: {}, output: { v: vars.later } }
";
    let (run, executed) = bench.run(text, json!({})).await;
    let (code, message) = failed(&executed);
    assert_eq!(code, "invalid_request");
    assert!(message.contains("input n: vars.later has no value"), "{message}");
    assert_eq!(error_step(&executed), "b");
    assert_eq!(bench.fake.made()[0].inputs, json!({"gone": null}), "an absent input is null");
    assert_eq!(bench.status(&run, "a").await, Some(StepStatus::Completed));
    assert_eq!(bench.status(&run, "b").await, Some(StepStatus::Failed));
}

fn error_step(executed: &ExecutionEnd) -> String {
    let ExecutionEnd::Failed(run) = executed else { panic!("{executed:?}") };
    run.error.as_ref().unwrap()["step"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_target_written_twice_is_refused_before_anything_is_called() {
    let bench = Bench::new();
    let text = |strategy: &str| {
        format!(
            "
id: demo.twice
outputs: {{ list: {{ type: array }} }}
steps:
  - {{ id: a, uses: x.a, output: {{ v: outputs.list }} }}
  - {{ id: b, uses: x.b, output: {{ v: outputs.list }}, config: {{ {strategy} }} }}
"
        )
    };
    bench.fake.on("x.a", |_| Ok(json!({"v": [1]})));
    bench.fake.on("x.b", |_| Ok(json!({"v": [2]})));
    assert_eq!(bench.outputs(&text("merge_strategy: append"), json!({})).await, json!({"list": [1, 2]}));
    assert_eq!(bench.outputs(&text("merge_strategy: replace"), json!({})).await, json!({"list": [2]}));
    // The lint sees such a contract before it can run; two steps side by side it cannot see are caught here.
    let mut plan = serde_json::to_value(bench.plan(&text("merge_strategy: replace"))).unwrap();
    plan["contract"]["steps"][1]["merge_strategy"] = "overwrite".into();
    let run = bench.launch_plan(plan, json!({})).await;
    let executed = bench.work(&run).await;
    assert!(failed(&executed).1.contains("already set"), "{executed:?}");
    assert_eq!(bench.fake.count("b"), 2, "only in the two runs before");
}

#[tokio::test]
async fn inputs_are_checked_against_the_capability() {
    let mut bench = Bench::new();
    let field = |kind: &str, required: bool, default: serde_json::Value| json!({"type": kind, "required": required, "description": null, "default": default, "enum": []});
    bench.declare(
        "x.typed",
        json!({"inputs": {"n": field("integer", true, json!(null)), "mode": field("string", false, json!("fast"))}}),
    );
    let text = |input: &str| {
        format!(
            "id: demo.typed\ninputs: {{ mode: {{ type: string }} }}\nsteps:\n  - {{ id: a, uses: x.typed, input: {{ {input} }} }}\n"
        )
    };
    let (_, executed) = bench.run(&text("n: 3, mode: inputs.mode"), json!({})).await;
    completed(&executed);
    assert_eq!(bench.fake.made()[0].inputs, json!({"n": 3, "mode": "fast"}));
    let (_, executed) = bench.run(&text("n: three, speed: 1"), json!({})).await;
    let (code, message) = failed(&executed);
    assert_eq!(code, "invalid_request");
    assert!(
        message.contains("n: expected an integer") && message.contains("speed: not declared"),
        "{message}"
    );
    assert_eq!(bench.fake.made().len(), 1, "nothing is called with wrong inputs");
}

#[tokio::test]
async fn a_run_without_its_required_output_has_failed() {
    let bench = Bench::new();
    bench.fake.on("math.three", |_| Ok(json!({})));
    let (run, executed) = bench.run(LINEAR, json!({"n": 1})).await;
    let (code, message) = failed(&executed);
    assert_eq!(code, "runtime_error");
    assert!(message.contains("sum: required (integer), but missing"), "{message}");
    assert_eq!(bench.status(&run, "c").await, Some(StepStatus::Completed), "no step is to blame");
    // Continuing from before the step that omitted it repairs it.
    bench.fake.heals("math.three");
    bench.resume(&run, Some(2), None).await;
    completed(&bench.work(&run).await);
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_its_step() {
    let bench = Bench::new();
    bench.fake.on("x.y", |_| Ok(json!({"blob": "x".repeat(2 << 20)})));
    let (_, executed) = bench.run("id: demo.big\nsteps:\n  - { id: a, uses: x.y }\n", json!({})).await;
    assert!(failed(&executed).1.contains("artifact"), "{executed:?}");
}

#[tokio::test]
async fn a_failed_step_fails_its_run_and_its_siblings_are_recorded() {
    let mut bench = Bench::new();
    bench.declare_unsafe("x.pay");
    let text = "
id: demo.siblings
steps:
  - { id: bad, uses: x.bad, config: { depends_on: [] } }
  - { id: safe, uses: x.safe, config: { depends_on: [] } }
  - { id: pay, uses: x.pay, output: { n: vars.paid }, config: { depends_on: [] } }
  - { id: late, uses: x.late, config: { depends_on: [bad, safe, pay] } }
";
    let go = Arc::new(tokio::sync::Notify::new());
    let fake = bench.fake.clone();
    bench.fake.does("x.bad", move |_, _, _| {
        let fake = fake.clone();
        Box::pin(async move {
            fake.called("safe", 1).await;
            fake.called("pay", 1).await;
            failing("no such file")
        })
    });
    let notify = go.clone();
    bench.fake.does("x.safe", move |_, _, cancel| {
        let notify = notify.clone();
        Box::pin(async move {
            cancel.cancelled().await;
            notify.notify_one();
            Err(skills_runs::CallError::new(skills_runs::CallFailure::Canceled, "stopped"))
        })
    });
    bench.fake.does("x.pay", move |_, _, cancel| {
        let go = go.clone();
        Box::pin(async move {
            go.notified().await;
            assert!(!cancel.is_cancelled(), "what may not be repeated is waited for");
            Ok(json!({"n": 1}))
        })
    });
    let (run, executed) = bench.run(text, json!({})).await;
    assert_eq!(failed(&executed), ("runtime_error".into(), "no such file".into()));
    let stopped = bench.step(&run, "safe").await.unwrap().result;
    assert_eq!(stopped["message"], "stopped because step bad failed", "the run was not canceled");
    assert_eq!(bench.status(&run, "bad").await, Some(StepStatus::Failed));
    assert_eq!(bench.status(&run, "safe").await, Some(StepStatus::Failed));
    assert_eq!(bench.status(&run, "pay").await, Some(StepStatus::Completed));
    assert_eq!(bench.status(&run, "late").await, None);
    for capability in ["x.bad", "x.safe"] {
        bench.fake.heals(capability);
    }
    bench.resume(&run, None, None).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.count("pay"), 1, "what was through stays through");
    assert_eq!((bench.fake.count("bad"), bench.fake.count("safe")), (2, 2));
}

#[tokio::test]
async fn corrected_inputs_are_used_when_a_failed_run_resumes() {
    let bench = Bench::new();
    bench.fake.on("math.two", |made| {
        if made.inputs["all"]["list"][0] == 7 { Ok(json!({"n": 7})) } else { failing("seven is wanted") }
    });
    let (run, executed) = bench.run(LINEAR, json!({"n": 1})).await;
    assert_eq!(failed(&executed).1, "seven is wanted");
    bench.resume(&run, None, Some(json!({"n": 7}))).await;
    let executed = bench.work(&run).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"sum": 7})));
    assert_eq!(bench.fake.steps(), ["a", "b", "b", "c"]);
    let keys: Vec<String> = bench.fake.made().into_iter().map(|made| made.key).collect();
    assert_eq!(keys[1], keys[2], "the same key for every attempt");
}

#[tokio::test]
async fn resume_from_an_earlier_checkpoint_repeats_later_steps() {
    let bench = Bench::new();
    bench.fake.on("math.three", |made| if made.nth == 1 { failing("not yet") } else { Ok(made.inputs) });
    let (run, _) = bench.run(LINEAR, json!({"n": 1})).await;
    bench.resume(&run, Some(1), None).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.steps(), ["a", "b", "c", "b", "c"]);
    let numbers: Vec<u64> =
        bench.store.checkpoints(&run, None, 1000).await.unwrap().iter().map(|c| c.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4], "later checkpoints stay, and numbers continue after them");
}

#[tokio::test]
async fn a_replay_restores_what_was_recorded_and_a_fork_waits() {
    let bench = Bench::new();
    let (run, _) = bench.run(LINEAR, json!({"n": 1})).await;
    let replay = skills_store::RunId("replay".into());
    bench.store.fork(&run, Some(1), replay.clone(), false, None).await.unwrap();
    let claimed = bench.claim(&replay).await;
    assert_eq!(claimed.run.state, RunState::Replaying);
    let store = bench.store.clone();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (watched, states) = (replay.clone(), seen.clone());
    bench.fake.does("math.two", move |made, _, _| {
        let (store, watched, states) = (store.clone(), watched.clone(), states.clone());
        Box::pin(async move {
            let state = store.run(&watched).await.unwrap().unwrap().state;
            states.lock().unwrap().push(state);
            Ok(json!({"n": made.inputs["n"]}))
        })
    });
    let executed = bench.engine.execute(claimed, tokio_util::sync::CancellationToken::new()).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"sum": 1})));
    assert_eq!(bench.fake.steps(), ["a", "b", "c", "b", "c"], "restored steps are not executed");
    assert_eq!(*seen.lock().unwrap(), [RunState::Replaying], "until its first own step is recorded");
    let keys: Vec<String> = bench.fake.made().into_iter().map(|made| made.key).collect();
    assert_ne!(keys[1], keys[3], "a replay is another run");
    let fork = skills_store::RunId("fork".into());
    bench.store.fork(&run, Some(2), fork.clone(), true, None).await.unwrap();
    bench.resume(&fork, None, None).await;
    completed(&bench.work(&fork).await);
    assert_eq!(bench.fake.steps()[5..], ["c"]);
}

#[tokio::test]
async fn output_lines_are_gathered_into_events() {
    let bench = Bench::new();
    bench.fake.does("x.y", |_, call, _| {
        Box::pin(async move {
            for n in 0..100 {
                (call.log)(LogLine { stream: "stdout".into(), text: format!("line {n}") });
            }
            (call.log)(LogLine { stream: "stderr".into(), text: "careful".into() });
            Ok(json!({}))
        })
    });
    let (run, _) = bench.run("id: demo.log\nsteps:\n  - { id: a, uses: x.y }\n", json!({})).await;
    let logs: Vec<_> =
        bench.events(&run).await.into_iter().filter(|e| e.event.kind.as_str() == "step.log").collect();
    assert!(logs.len() <= 3, "{} events for 101 lines", logs.len());
    let text: String =
        logs.iter().map(|e| e.event.data["text"].as_str().unwrap().to_owned() + "\n").collect();
    assert_eq!(text.lines().count(), 101);
    assert_eq!(logs.last().unwrap().event.data, json!({"stream": "stderr", "text": "careful"}));
    assert_eq!(logs[0].event.step.as_deref(), Some("a"));
}

#[tokio::test]
async fn audit_mode_selects_the_recorded_content() {
    for (mode, inputs, result) in [
        (AuditMode::Full, json!({"n": 1}), json!({"n": 1})),
        (AuditMode::Standard, json!(null), json!({"n": 1})),
        (AuditMode::Off, json!(null), json!(null)),
    ] {
        let mut bench = Bench::new();
        bench.options.audit_mode = mode;
        let (run, executed) = bench.run(LINEAR, json!({"n": 1})).await;
        completed(&executed);
        let record = bench.step(&run, "a").await.unwrap();
        assert_eq!((record.inputs, record.result), (inputs, result), "{mode}");
    }
}

#[tokio::test]
async fn a_policy_requires_approval_before_the_first_step() {
    let mut bench = Bench::new();
    bench.approval = Some("runs of demo need approval".into());
    let (run, executed) = bench.run(LINEAR, json!({"n": 1})).await;
    assert_eq!(pending_step(&executed).1, json!({"policy": {"rule": "runs of demo need approval"}}));
    assert_eq!(bench.fake.made(), []);
    let at = bench.engine.at_gate(&run).await.unwrap().unwrap();
    assert_eq!((at.capability, at.inputs), (None, json!({"n": 1})));
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
}
