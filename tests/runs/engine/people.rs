//! Signals before and after the wait, and steps with an unknown outcome.

use std::sync::Arc;

use serde_json::json;
use skills_model::{Choice, Command, Gate, RunState, Verdict};
use skills_runs::ExecutionEnd;
use skills_store::StepStatus;
use tokio_util::sync::CancellationToken;

use super::fixture::{Bench, LEASE, completed, failed, pending_step};

const CLOSE: &str = "
id: demo.close
outputs: { by: { type: string }, all: { type: any } }
steps:
  - { id: before, uses: x.before, output: {} }
  - { id: ready, wait_for_signal: books-closed, output: { by: outputs.by, payload: outputs.all } }
  - { id: after, uses: x.after }
";

#[tokio::test]
async fn run_waits_for_its_signal_and_passes_the_payload() {
    let bench = Bench::new();
    let (run, executed) = bench.run(CLOSE, json!({})).await;
    let ExecutionEnd::Waiting(waiting) = executed else { panic!("{executed:?}") };
    assert_eq!(waiting.gate, Some(Gate::Signal { step: "ready".into(), name: "books-closed".into() }));
    assert_eq!(bench.fake.steps(), ["before"]);
    bench.signal(&run, "books-closed", json!({"by": "ana"})).await;
    let executed = bench.work(&run).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"by": "ana", "all": {"by": "ana"}})));
    assert!(bench.kinds(&run, "ready").await.contains(&"signal.consumed".to_owned()));
    assert_eq!(bench.store.buffered_signal(&run, "books-closed").await.unwrap(), None);
}

#[tokio::test]
async fn early_signal_is_buffered_for_its_step() {
    let bench = Bench::new();
    let run = bench.launch(CLOSE, json!({})).await;
    bench.signal(&run, "books-closed", json!("now")).await;
    let executed = bench.work(&run).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"all": "now"})));
}

#[tokio::test]
async fn two_steps_receive_signals_of_one_name_in_order() {
    let bench = Bench::new();
    let text = "
id: demo.two
outputs: { a: { type: any }, b: { type: any } }
steps:
  - { id: a, wait_for_signal: go, output: { payload: outputs.a }, config: { depends_on: [] } }
  - { id: b, wait_for_signal: go, output: { payload: outputs.b }, config: { depends_on: [] } }
";
    let run = bench.launch(text, json!({})).await;
    bench.signal(&run, "go", json!(1)).await;
    assert!(matches!(bench.work(&run).await, ExecutionEnd::Waiting(_)));
    bench.signal(&run, "go", json!(2)).await;
    assert_eq!(completed(&bench.work(&run).await).outputs, Some(json!({"a": 1, "b": 2})));
}

#[tokio::test]
async fn signal_during_the_start_of_a_wait_wakes_the_run() {
    let bench = Bench::new();
    let run = bench.launch(CLOSE, json!({})).await;
    let (store, watched) = (bench.store.clone(), run.clone());
    bench.fake.does("x.before", move |_, _, _| {
        let (store, watched) = (store.clone(), watched.clone());
        Box::pin(async move {
            let signal = skills_model::Command::Signal { name: "books-closed".into() };
            store.command(&watched, signal, None, None, Some(json!("now"))).await.unwrap();
            Ok(json!({}))
        })
    });
    completed(&bench.work(&run).await);
}

const SIDE: &str = "
id: demo.side
outputs: { by: { type: any } }
steps:
  - { id: slow, uses: x.slow, output: { by: vars.by }, config: { depends_on: [] } }
  - { id: also, uses: x.also, config: { depends_on: [] } }
  - { id: after, uses: x.after, input: { by: vars.by }, output: { by: outputs.by } , config: { depends_on: [slow, also] } }
";

#[tokio::test]
async fn paused_run_finishes_active_steps_and_starts_no_others() {
    let mut bench = Bench::new();
    bench.declare_unsafe("x.slow");
    let (store, paused) = (bench.store.clone(), Arc::new(std::sync::Mutex::new(None)));
    let run = bench.launch(SIDE, json!({})).await;
    *paused.lock().unwrap() = Some(run.clone());
    bench.fake.does("x.slow", move |_, _, _| {
        let (store, run) = (store.clone(), paused.lock().unwrap().clone().unwrap());
        Box::pin(async move {
            store.command(&run, Command::Pause, None, None, None).await.unwrap();
            tokio::task::yield_now().await;
            Ok(json!({"by": "ana"}))
        })
    });
    let executed = bench.work(&run).await;
    let ExecutionEnd::Waiting(paused) = executed else { panic!("{executed:?}") };
    assert_eq!((paused.state, paused.paused, paused.lease), (RunState::Pending, true, None));
    assert_eq!(bench.status(&run, "slow").await, Some(StepStatus::Completed), "its result is not lost");
    assert_eq!(bench.fake.count("after"), 0);
    assert!(!bench.kinds(&run, "after").await.contains(&"step.started".to_owned()));
    bench.resume(&run, None, None).await;
    assert_eq!(completed(&bench.work(&run).await).outputs, Some(json!({"by": "ana"})));
    assert_eq!((bench.fake.count("slow"), bench.fake.count("after")), (1, 1));
}

const PAY: &str = "
id: demo.pay
outputs: { paid: { type: any } }
steps:
  - { id: pay, uses: bank.pay, input: { sum: 3 }, output: { paid: vars.paid } }
  - { id: tell, uses: x.tell, config: { condition: 'true' } }
";

/// A run whose worker was lost while an unsafe step was in progress.
async fn lost() -> (Bench, skills_store::RunId) {
    let mut bench = Bench::new();
    bench.declare_unsafe("bank.pay");
    bench.fake.block_forever("bank.pay");
    let run = bench.launch(PAY, json!({})).await;
    bench.work_until(&run, "pay", 1).await;
    bench.fake.on("bank.pay", |_| Ok(json!({"paid": true})));
    let executed = bench.work(&run).await;
    assert_eq!(pending_step(&executed), ("pay".into(), json!("unknown_outcome")));
    assert_eq!(bench.fake.count("pay"), 1, "never a second time silently");
    (bench, run)
}

#[tokio::test]
async fn unknown_outcome_is_rerun_only_by_decision() {
    let (bench, run) = lost().await;
    let at = bench.engine.at_gate(&run).await.unwrap().unwrap();
    assert_eq!((at.capability.unwrap().id.as_str(), at.inputs), ("bank.pay", json!({"sum": 3})));
    bench.decide(&run, Verdict::Approve, Some(Choice::Rerun)).await;
    completed(&bench.work(&run).await);
    let made = bench.fake.made();
    assert_eq!(made[0].key, made[1].key, "with the key of the first time");
    assert_eq!(bench.step(&run, "pay").await.unwrap().attempts, 2);
}

#[tokio::test]
async fn lost_rerun_requires_another_decision() {
    let (bench, run) = lost().await;
    bench.fake.block_forever("bank.pay");
    bench.decide(&run, Verdict::Approve, Some(Choice::Rerun)).await;
    bench.work_until(&run, "pay", 2).await;
    assert_eq!(pending_step(&bench.work(&run).await).1, json!("unknown_outcome"));
    bench.fake.heals("bank.pay");
    bench.decide(&run, Verdict::Approve, Some(Choice::Rerun)).await;
    completed(&bench.work(&run).await);
}

#[tokio::test]
async fn step_marked_completed_is_recorded_with_the_stated_result() {
    let (bench, run) = lost().await;
    bench.happened(&run, json!({"paid": {"receipt": "R-7"}})).await;
    let executed = bench.work(&run).await;
    completed(&executed);
    assert_eq!(bench.fake.count("pay"), 1, "it is not called again");
    assert_eq!(bench.fake.count("tell"), 1, "the run continues after it");
    let pay = bench.step(&run, "pay").await.unwrap();
    assert_eq!((pay.status, pay.result), (StepStatus::Completed, json!({"paid": {"receipt": "R-7"}})));
    let head = bench.store.checkpoint(&run, bench.record(&run).await.head).await.unwrap();
    assert_eq!(head.state["vars"]["paid"]["receipt"], "R-7", "its outputs go where the contract says");
}

#[tokio::test]
async fn invalid_stated_result_fails_its_own_step() {
    let mut bench = Bench::new();
    let paid = json!({"type": "boolean", "required": true, "description": null, "default": null, "enum": []});
    let shape = json!({"properties": {"side_effects": true}, "outputs": {"paid": paid}});
    bench.declare("bank.pay", shape);
    bench.fake.block_forever("bank.pay");
    let run = bench.launch(PAY, json!({})).await;
    bench.work_until(&run, "pay", 1).await;
    assert_eq!(pending_step(&bench.work(&run).await).1, json!("unknown_outcome"));
    bench.happened(&run, json!({"paid": "yes"})).await;
    let (code, message) = failed(&bench.work(&run).await);
    assert_eq!(code, "invalid_request");
    assert!(message.contains("paid") && message.contains("the stated result"), "{message}");
    bench.resume(&run, None, None).await;
    assert_eq!(pending_step(&bench.work(&run).await).1, json!("unknown_outcome"));
    assert_eq!(bench.fake.count("pay"), 1);
}

#[tokio::test]
async fn step_of_unknown_outcome_can_be_skipped() {
    let (bench, run) = lost().await;
    bench.decide(&run, Verdict::Approve, Some(Choice::Skip)).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.status(&run, "pay").await, Some(StepStatus::Skipped));
    assert_eq!(bench.fake.count("pay"), 1);
}

#[tokio::test]
async fn a_step_of_unknown_outcome_can_fail_its_run() {
    let (bench, run) = lost().await;
    bench.decide(&run, Verdict::Approve, Some(Choice::Fail)).await;
    assert!(failed(&bench.work(&run).await).1.contains("failed by a decision"));
    assert_eq!(bench.fake.count("pay"), 1);
    // Resuming does not decide its outcome.
    bench.resume(&run, None, None).await;
    assert_eq!(pending_step(&bench.work(&run).await).1, json!("unknown_outcome"));
    assert_eq!(bench.fake.count("pay"), 1, "it is not repeated silently");
    bench.decide(&run, Verdict::Approve, Some(Choice::Fail)).await;
    assert!(failed(&bench.work(&run).await).1.contains("failed by a decision"));
    bench.resume(&run, None, Some(json!({"to": "bo"}))).await;
    assert_eq!(
        pending_step(&bench.work(&run).await).1,
        json!("unknown_outcome"),
        "with other inputs neither"
    );
    bench.decide(&run, Verdict::Approve, Some(Choice::Rerun)).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.count("pay"), 2);
}

#[tokio::test]
async fn a_canceled_run_stops_its_calls_and_records_nothing_more() {
    let bench = Bench::new();
    bench.fake.block_forever("bank.pay");
    let run = bench.launch(PAY, json!({})).await;
    let claimed = bench.claim(&run).await;
    let (store, watched, fake) = (bench.store.clone(), run.clone(), bench.fake.clone());
    let cancel = CancellationToken::new();
    let cancellation = cancel.clone();
    let (executed, ()) = tokio::join!(bench.engine.execute(claimed, cancel), async move {
        fake.called("pay", 1).await;
        store.command(&watched, skills_model::Command::Cancel, None, None, None).await.unwrap();
        cancellation.cancel();
    });
    assert_eq!(executed, ExecutionEnd::Stopped);
    assert_eq!(bench.fake.canceled.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert_eq!(bench.record(&run).await.state, RunState::Canceled);
    assert_eq!(bench.store.steps(&run, u64::MAX).await.unwrap(), []);
    let last = bench.events(&run).await.pop().unwrap();
    assert_eq!(last.event.kind.as_str(), "run.canceled");
}

#[tokio::test]
async fn only_the_executor_with_the_current_token_records() {
    let bench = Arc::new(Bench::new());
    let go = Arc::new(tokio::sync::Notify::new());
    let paused = go.clone();
    bench.fake.does("bank.pay", move |made, _, _| {
        let paused = paused.clone();
        Box::pin(async move {
            if made.nth == 1 {
                paused.notified().await;
            }
            Ok(json!({"paid": made.nth}))
        })
    });
    let run = bench.launch(PAY, json!({})).await;
    let first = bench.claim(&run).await;
    let sleeper = tokio::spawn({
        let bench = bench.clone();
        async move { bench.engine.execute(first, CancellationToken::new()).await }
    });
    bench.fake.called("pay", 1).await;
    bench.pass(i64::try_from(LEASE).unwrap() + 1);
    let second = bench.work(&run).await;
    completed(&second);
    go.notify_one();
    assert!(matches!(sleeper.await.unwrap(), ExecutionEnd::LeaseLost(_)));
    assert_eq!(bench.step(&run, "pay").await.unwrap().result, json!({"paid": 2}));
    let kinds = bench.kinds(&run, "pay").await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "step.completed").count(), 1);
}
