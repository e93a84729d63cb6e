//! A worker is lost in the middle, on a database file: another continues there, nothing recorded is done again, and
//! nothing that may not be repeated is repeated silently.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use skills_model::{Choice, Verdict};
use skills_runs::{CallError, CallFailure, LogLine};
use skills_store::{EventKind, RunId};

use super::fixture::{Bench, completed, pending_step};
use super::flow::OUTER;

/// Loses the worker at the nth call of a step, which hangs then, and continues; returns the outputs and every call.
async fn lose(
    bench: &Bench,
    text: &str,
    inputs: Value,
    step: &str,
    capability: &str,
    then: impl Fn(&Bench),
) -> (RunId, Value) {
    let run = bench.launch(text, inputs).await;
    let at = step.to_owned();
    bench.fake.does(capability, move |made, _, cancel| {
        let at = at.clone();
        Box::pin(async move {
            if made.step == at {
                cancel.cancelled().await;
            }
            Ok(answer(&made.inputs))
        })
    });
    bench.work_until(&run, step, 1).await;
    then(bench);
    let executed = bench.work(&run).await;
    let outputs = completed(&executed).outputs.clone().unwrap();
    (run, outputs)
}

/// One more than what came in, and what came in.
fn answer(inputs: &Value) -> Value {
    json!({"n": inputs["n"].as_i64().unwrap_or(0) + 1, "was": inputs})
}

fn answers(capability: &'static str) -> impl Fn(&Bench) {
    move |bench: &Bench| bench.fake.on(capability, |made| Ok(answer(&made.inputs)))
}

async fn once_each(bench: &Bench, run: &RunId) {
    let records = bench.store.steps(run, u64::MAX).await.unwrap();
    let mut steps: Vec<&str> = records.iter().map(|record| record.step.as_str()).collect();
    steps.sort_unstable();
    let all = steps.len();
    steps.dedup();
    assert_eq!(steps.len(), all, "each step is recorded once");
}

#[tokio::test]
async fn foreach_resumes_at_the_interrupted_item() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::on_disk(folder.path());
    let text = "
id: demo.each
inputs: { list: { type: array } }
outputs: { all: { type: array } }
steps:
  - { id: each, uses: math.next, input: { n: item }, output: { n: outputs.all }, config: { foreach: { items: inputs.list, as: item } } }
";
    let (run, outputs) =
        lose(&bench, text, json!({"list": [1, 2, 3, 4]}), "each[2]", "math.next", answers("math.next")).await;
    assert_eq!(outputs, json!({"all": [2, 3, 4, 5]}));
    assert_eq!(bench.fake.steps(), ["each[0]", "each[1]", "each[2]", "each[2]", "each[3]"]);
    once_each(&bench, &run).await;
    let made = bench.fake.made();
    assert_eq!(made[2].key, made[3].key);
    let started = bench.kinds(&run, "each").await;
    assert_eq!(started, ["step.started", "step.completed"], "it began once");
}

#[tokio::test]
async fn while_resumes_at_the_interrupted_iteration() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::on_disk(folder.path());
    let text = "
id: demo.rounds
outputs: { n: { type: integer } }
steps:
  - { id: zero, uses: x.zero, input: { n: 0 }, output: { n: vars.n } }
  - { id: loop, uses: math.next, input: { n: vars.n }, output: { n: vars.n }, config: { merge_strategy: replace, while: { condition: vars.n < 4, max_iterations: 9 } } }
  - { id: end, uses: x.end, input: { n: vars.n }, output: { n: outputs.n } }
";
    let (run, outputs) = lose(&bench, text, json!({}), "loop[2]", "math.next", answers("math.next")).await;
    assert_eq!(outputs, json!({"n": 4}));
    assert_eq!(bench.fake.steps(), ["zero", "loop[0]", "loop[1]", "loop[2]", "loop[2]", "loop[3]", "end"]);
    once_each(&bench, &run).await;
}

#[tokio::test]
async fn routed_step_resumes_with_the_same_choice() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::on_disk(folder.path());
    let text = "
id: demo.routed
inputs: { kind: { type: string } }
outputs: { n: { type: any } }
steps:
  - { id: loop, uses: doc.any, output: { n: outputs.n }, config: { merge_strategy: replace, router: { on: inputs.kind, cases: { a: doc.a, b: doc.b } }, while: { condition: 'outputs.n < 1', max_iterations: 3 } } }
  - { id: one, uses: doc.any, config: { router: { on: inputs.kind, cases: { a: doc.a, b: doc.b } } } }
";
    let (run, _) = lose(&bench, text, json!({"kind": "a"}), "one", "doc.a", answers("doc.a")).await;
    let capabilities: Vec<String> = bench.fake.made().into_iter().map(|made| made.capability).collect();
    assert_eq!(capabilities, ["doc.a", "doc.a", "doc.a"]);
    once_each(&bench, &run).await;
}

#[tokio::test]
async fn scatter_resumes_the_interrupted_branches() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::on_disk(folder.path());
    let text = "
id: demo.fan
outputs: { one: { type: any }, two: { type: any } }
steps:
  - { id: fan, uses: _, input: { n: 1 }, output: { x.one: outputs.one, x.two: outputs.two }, config: { scatter: { capabilities: [x.one, x.two], merge: collect } } }
";
    let run = bench.launch(text, json!({})).await;
    bench.fake.block_forever("x.two");
    let claimed = bench.claim(&run).await;
    let store = bench.store.clone();
    tokio::select! {
        ended = bench.engine.execute(claimed, tokio_util::sync::CancellationToken::new()) => panic!("{ended:?}"),
        () = async {
            // The first branch is recorded while the second hangs.
            while store.steps(&run, u64::MAX).await.unwrap().is_empty() {
                let newest = store.newest_event().await.unwrap();
                store.wait(newest, 100).await.unwrap();
            }
        } => {}
    }
    bench.pass(30_001);
    bench.fake.on("x.two", |made| Ok(answer(&made.inputs)));
    let outputs = completed(&bench.work(&run).await).outputs.clone().unwrap();
    assert_eq!(outputs["two"]["n"], 2);
    assert_eq!((bench.fake.count("fan[0]"), bench.fake.count("fan[1]")), (1, 2));
    once_each(&bench, &run).await;
}

#[tokio::test]
async fn nested_skill_resumes_in_the_middle() {
    let bench = super::flow::nested();
    let run = bench.launch(OUTER, json!({"rows": [1, 2]})).await;
    bench.fake.block_forever("math.sum");
    bench.work_until(&run, "sum/add", 1).await;
    bench.fake.on("math.sum", |_| Ok(json!({"total": 3})));
    assert_eq!(completed(&bench.work(&run).await).outputs, Some(json!({"total": 3})));
    assert_eq!(bench.fake.steps(), ["before", "sum/first", "sum/add", "sum/add", "end"]);
    once_each(&bench, &run).await;
}

#[tokio::test]
async fn retry_resumes_at_the_interrupted_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::on_disk(folder.path());
    let text = "
id: demo.retry
steps:
  - { id: a, uses: x.flaky, config: { retry: { max_attempts: 3, backoff_seconds: 0 } } }
";
    let run = bench.launch(text, json!({})).await;
    bench.fake.does("x.flaky", |made, _, cancel| {
        Box::pin(async move {
            if made.nth == 2 {
                cancel.cancelled().await;
            }
            if made.nth < 4 { super::fixture::failing("busy") } else { Ok(json!({})) }
        })
    });
    bench.work_until(&run, "a", 2).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.step(&run, "a").await.unwrap().attempts, 3, "the lost attempt counts once");
    assert_eq!(bench.fake.count("a"), 4);
}

#[tokio::test]
async fn interrupted_unsafe_item_requires_a_decision() {
    for (choice, calls, all) in [(Choice::Rerun, 2, json!([1, 2, 3])), (Choice::Skip, 1, json!([1, null, 3]))]
    {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::on_disk(folder.path());
        bench.declare_unsafe("bank.pay");
        let text = "
id: demo.payments
inputs: { list: { type: array } }
outputs: { all: { type: array } }
steps:
  - { id: pay, uses: bank.pay, input: { n: sum }, output: { n: outputs.all }, config: { foreach: { items: inputs.list, as: sum } } }
";
        let run = bench.launch(text, json!({"list": [1, 2, 3]})).await;
        bench.fake.does("bank.pay", |made, _, cancel| {
            Box::pin(async move {
                if made.nth == 2 {
                    cancel.cancelled().await;
                }
                Ok(made.inputs)
            })
        });
        bench.work_until(&run, "pay[1]", 1).await;
        assert_eq!(pending_step(&bench.work(&run).await), ("pay[1]".into(), json!("unknown_outcome")));
        bench.decide(&run, Verdict::Approve, Some(choice)).await;
        let executed = bench.work(&run).await;
        assert_eq!(completed(&executed).outputs, Some(json!({"all": all})), "{choice}");
        assert_eq!(bench.fake.count("pay[1]"), calls);
        assert_eq!((bench.fake.count("pay[0]"), bench.fake.count("pay[2]")), (1, 1));
    }
}

#[tokio::test]
async fn an_interrupted_approved_step_needs_no_second_approval() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::on_disk(folder.path());
    bench.declare("mail.send", json!({"safety": {"requires_confirmation": true}}));
    let text = "id: demo.send\nsteps:\n  - { id: send, uses: mail.send }\n";
    let (run, executed) = bench.run(text, json!({})).await;
    pending_step(&executed);
    bench.approve(&run).await;
    bench.fake.block_forever("mail.send");
    bench.work_until(&run, "send", 1).await;
    bench.fake.heals("mail.send");
    completed(&bench.work(&run).await);
}

#[tokio::test]
async fn parallel_steps_resume_independently() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::on_disk(folder.path());
    let steps: String = (0..6)
        .map(|n| {
            format!(
                "  - {{ id: s{n}, uses: x.s{n}, output: {{ n: vars.v{n} }}, config: {{ depends_on: [] }} }}\n"
            )
        })
        .collect();
    let run = bench.launch(&format!("id: demo.wide\nsteps:\n{steps}"), json!({})).await;
    for n in [1, 3] {
        bench.fake.block_forever(&format!("x.s{n}"));
    }
    let claimed = bench.claim(&run).await;
    let store = bench.store.clone();
    tokio::select! {
        ended = bench.engine.execute(claimed, tokio_util::sync::CancellationToken::new()) => panic!("{ended:?}"),
        () = async {
            while store.steps(&run, u64::MAX).await.unwrap().len() < 4 {
                let newest = store.newest_event().await.unwrap();
                store.wait(newest, 100).await.unwrap();
            }
        } => {}
    }
    bench.pass(30_001);
    for n in [1, 3] {
        bench.fake.heals(&format!("x.s{n}"));
    }
    completed(&bench.work(&run).await);
    let counts: Vec<usize> = (0..6).map(|n| bench.fake.count(&format!("s{n}"))).collect();
    assert_eq!(counts, [1, 2, 1, 2, 1, 1]);
    once_each(&bench, &run).await;
}

#[tokio::test]
async fn printing_step_survives_a_temporary_store_outage() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::on_disk(folder.path());
    bench.declare_unsafe("bank.pay");
    let (file, away) = (folder.path().join("runs.db"), folder.path().join("away.db"));
    let (step_started, store) = (Arc::new(tokio::sync::Notify::new()), bench.store.clone());
    let (first, there, elsewhere) = (step_started.clone(), file.clone(), away.clone());
    bench.fake.does("bank.pay", move |_, call, cancel| {
        let (first, store) = (first.clone(), store.clone());
        let (there, elsewhere) = (there.clone(), elsewhere.clone());
        Box::pin(async move {
            let prints = |text: &str| (call.log)(LogLine { stream: "stdout".into(), text: text.into() });
            prints("before");
            tokio::time::sleep(Duration::from_millis(400)).await;
            std::fs::rename(&there, &elsewhere).unwrap();
            assert!(store.probe().await.is_err(), "the store accepts no writes");
            prints("meanwhile");
            first.notify_one();
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(1)) => Ok(json!({"paid": true})),
                () = cancel.cancelled() => Err(CallError::new(CallFailure::Canceled, "told to stop")),
            }
        })
    });
    let text = "
id: demo.pay
outputs: { paid: { type: any } }
steps:
  - { id: pay, uses: bank.pay, output: { paid: outputs.paid } }
";
    let run = bench.launch(text, json!({})).await;
    let restore = async {
        step_started.notified().await;
        // Longer than the step takes: its result waits for the store too.
        tokio::time::sleep(Duration::from_secs(2)).await;
        std::fs::rename(&away, &file).unwrap();
    };
    let (executed, ()) = tokio::join!(bench.work(&run), restore);
    assert_eq!(completed(&executed).outputs, Some(json!({"paid": true})));
    assert_eq!((bench.fake.count("pay"), bench.fake.canceled.load(Ordering::SeqCst)), (1, 0));
    let events = bench.events(&run).await;
    let printed: Vec<&Value> =
        events.iter().filter(|e| e.event.kind == EventKind::StepLog).map(|e| &e.event.data["text"]).collect();
    assert_eq!(printed, ["before", "meanwhile"]);
}

#[tokio::test]
async fn output_lines_are_recorded_once_despite_lost_responses() {
    let bench = Bench::new();
    bench.fake.does("x.y", |_, call, _| {
        Box::pin(async move {
            for n in 0..4 {
                (call.log)(LogLine { stream: "stdout".into(), text: format!("line {n}") });
                tokio::time::sleep(Duration::from_millis(400)).await;
            }
            (call.log)(LogLine { stream: "stdout".into(), text: "last".into() });
            Ok(json!({}))
        })
    });
    fail::cfg("append-answer-lost", "2*return").unwrap();
    let (run, executed) = bench.run("id: demo.log\nsteps:\n  - { id: a, uses: x.y }\n", json!({})).await;
    fail::remove("append-answer-lost");
    completed(&executed);
    let logs = bench.events(&run).await.into_iter().filter(|e| e.event.kind == EventKind::StepLog);
    let text: String = logs.map(|e| e.event.data["text"].as_str().unwrap().to_owned() + "\n").collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), ["line 0", "line 1", "line 2", "line 3", "last"]);
}
