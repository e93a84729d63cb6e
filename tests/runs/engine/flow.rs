//! Each element of control flow: condition, retry, foreach, while, router, scatter, timeout, nested skills.

use serde_json::json;
use skills_runs::{CallError, CallFailure};
use skills_store::StepStatus;

use super::fixture::{Bench, completed, failed, failing};

#[tokio::test]
async fn step_with_a_false_condition_is_skipped() {
    let bench = Bench::new();
    let text = "
id: demo.condition
inputs: { go: { type: boolean } }
outputs: { n: { type: integer } }
steps:
  - { id: maybe, uses: x.maybe, output: { n: vars.n }, config: { condition: inputs.go } }
  - { id: after, uses: x.after, input: { n: 2 }, output: { n: outputs.n } }
";
    let (run, executed) = bench.run(text, json!({"go": false})).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"n": 2})));
    assert_eq!(bench.status(&run, "maybe").await, Some(StepStatus::Skipped));
    assert_eq!(bench.fake.steps(), ["after"]);
    bench.outputs(text, json!({"go": true})).await;
    assert_eq!(bench.fake.steps(), ["after", "maybe", "after"]);
}

const RETRY: &str = "
id: demo.retry
outputs: { n: { type: integer } }
steps:
  - { id: a, uses: x.flaky, output: { n: outputs.n }, config: { retry: { max_attempts: 3, backoff_seconds: 0.01, backoff_multiplier: 3 } } }
";

#[tokio::test]
async fn failed_attempts_are_retried_with_increasing_delay() {
    let bench = Bench::new();
    bench.fake.on("x.flaky", |made| if made.nth < 3 { failing("busy") } else { Ok(json!({"n": made.nth})) });
    let (run, executed) = bench.run(RETRY, json!({})).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"n": 3})));
    assert_eq!(bench.step(&run, "a").await.unwrap().attempts, 3);
    let kinds = bench.kinds(&run, "a").await;
    assert_eq!(
        kinds,
        ["step.started", "step.retrying", "step.started", "step.retrying", "step.started", "step.completed"]
    );
    let events = bench.events(&run).await;
    let backoffs: Vec<&serde_json::Value> = events
        .iter()
        .filter(|e| e.event.kind.as_str() == "step.retrying")
        .map(|e| &e.event.data["backoff_ms"])
        .collect();
    assert_eq!(backoffs, [10, 30]);
    let keys: std::collections::BTreeSet<String> =
        bench.fake.made().into_iter().map(|made| made.key).collect();
    assert_eq!(keys.len(), 1, "one key for all attempts");
}

#[tokio::test]
async fn the_last_error_of_all_attempts_is_reported() {
    let bench = Bench::new();
    bench.fake.on("x.flaky", |made| failing(&format!("busy {}", made.nth)));
    let (run, executed) = bench.run(RETRY, json!({})).await;
    assert_eq!(failed(&executed).1, "busy 3");
    assert_eq!(bench.step(&run, "a").await.unwrap().attempts, 3);
}

#[tokio::test]
async fn permanent_failure_is_not_retried() {
    let mut bench = Bench::new();
    bench.fake.on("x.flaky", |_| Err(CallError::new(CallFailure::InvalidRequest, "no such field")));
    assert_eq!(failed(&bench.run(RETRY, json!({})).await.1).1, "no such field");
    assert_eq!(bench.fake.made().len(), 1);
    // It may have acted before the response was lost, and it is not idempotent.
    bench.declare_unsafe("x.flaky");
    bench.fake.on("x.flaky", |_| Err(CallError::new(CallFailure::UpstreamTimeout, "no answer")));
    assert_eq!(failed(&bench.run(RETRY, json!({})).await.1).0, "upstream_timeout");
    assert_eq!(bench.fake.made().len(), 2);
}

const FOREACH: &str = "
id: demo.foreach
inputs: { docs: { type: array } }
outputs: { all: { type: array } }
steps:
  - id: each
    uses: text.sum
    input: { text: doc.body, at: n }
    output: { text: outputs.all }
    config: { foreach: { items: inputs.docs, as: doc, index_as: n } }
";

#[tokio::test]
async fn a_foreach_calls_once_for_each_item_and_collects_lists() {
    let bench = Bench::new();
    bench
        .fake
        .on("text.sum", |made| Ok(json!({"text": format!("{}!", made.inputs["text"].as_str().unwrap())})));
    let docs = json!({"docs": [{"body": "a"}, {"body": "b"}, {"body": "c"}]});
    let (run, executed) = bench.run(FOREACH, docs).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"all": ["a!", "b!", "c!"]})));
    assert_eq!(completed(&executed).progress, (1, 1));
    assert_eq!(bench.fake.steps(), ["each[0]", "each[1]", "each[2]"]);
    assert_eq!(bench.fake.made()[2].inputs, json!({"text": "c", "at": 2}));
    let records: Vec<String> =
        bench.store.steps(&run, u64::MAX).await.unwrap().into_iter().map(|record| record.step).collect();
    assert_eq!(records, ["each[0]", "each[1]", "each[2]", "each"]);
    assert_eq!(
        bench.outputs(FOREACH, json!({"docs": []})).await,
        json!({"all": []}),
        "nothing in, nothing out"
    );
    let (_, executed) = bench.run(FOREACH, json!({})).await;
    assert!(failed(&executed).1.contains("is null, expected a list"), "{executed:?}");
}

#[tokio::test]
async fn foreach_over_an_empty_list_returns_empty_lists() {
    let mut bench = Bench::new();
    let list = json!({"type": "any", "required": true, "description": null, "default": null, "enum": []});
    bench.declare("text.sum", json!({"outputs": {"text": list}}));
    assert_eq!(bench.outputs(FOREACH, json!({"docs": []})).await, json!({"all": []}));
    assert!(bench.fake.made().is_empty());
}

#[tokio::test]
async fn a_foreach_that_copies_too_much_fails_before_its_first_call() {
    let bench = Bench::new();
    let text = "
id: demo.copies
inputs: { docs: { type: array }, all: { type: any } }
outputs: { all: { type: array } }
steps:
  - { id: each, uses: text.sum, input: { text: inputs.all }, output: { text: outputs.all }, config: { foreach: { items: inputs.docs, as: doc } } }
";
    let docs = |items: usize| json!({"docs": vec![1; items], "all": "x".repeat(1 << 20)});
    let (_, executed) = bench.run(text, docs(33)).await;
    assert!(failed(&executed).1.contains("more than 32 MiB of memory in total"), "{executed:?}");
    assert!(bench.fake.made().is_empty());
}

#[tokio::test]
async fn results_of_a_run_are_limited_in_total() {
    let bench = Bench::new();
    bench.fake.on("text.sum", |_| Ok(json!({"text": "x".repeat(1_000_000)})));
    let docs = |items: usize| json!({"docs": vec![json!({"body": "a"}); items]});
    completed(&bench.run(FOREACH, docs(30)).await.1);
    let (run, executed) = bench.run(FOREACH, docs(40)).await;
    let (code, message) = failed(&executed);
    assert_eq!(code, "invalid_request");
    assert!(message.contains("take more than 32 MiB of memory"), "{message}");
    assert_eq!(bench.status(&run, "each[33]").await, Some(StepStatus::Failed));
}

#[tokio::test]
async fn results_that_replace_each_other_are_not_counted_twice() {
    let bench = Bench::new();
    bench.fake.on("text.sum", |_| Ok(json!({"text": "x".repeat(1_000_000)})));
    let step = |n: usize| {
        format!(
            "  - {{ id: s{n}, uses: text.sum, output: {{ text: vars.text }}, config: {{ merge_strategy: replace }} }}\n"
        )
    };
    let text = format!("id: demo.replaced\nsteps:\n{}", (0..50).map(step).collect::<String>());
    completed(&bench.run(&text, json!({})).await.1);
}

#[tokio::test]
async fn item_is_passed_as_the_field_of_its_name() {
    let mut bench = Bench::new();
    let any = json!({"type": "any", "required": true, "description": null, "default": null, "enum": []});
    bench.declare("text.sum", json!({"inputs": {"doc": any}}));
    let text = "
id: demo.foreach
inputs: { docs: { type: array } }
steps:
  - { id: each, uses: text.sum, config: { foreach: { items: inputs.docs, as: doc } } }
";
    bench.outputs(text, json!({"docs": ["x"]})).await;
    assert_eq!(bench.fake.made()[0].inputs, json!({"doc": "x"}));
}

#[tokio::test]
async fn failed_item_fails_the_step_and_resume_starts_there() {
    let bench = Bench::new();
    bench.fake.on("text.sum", |made| if made.nth == 2 { failing("torn page") } else { Ok(made.inputs) });
    let docs = json!({"docs": [{"body": "a"}, {"body": "b"}, {"body": "c"}]});
    let (run, executed) = bench.run(FOREACH, docs).await;
    assert_eq!(failed(&executed).1, "torn page");
    assert_eq!(bench.status(&run, "each[1]").await, Some(StepStatus::Failed));
    assert_eq!(bench.status(&run, "each").await, Some(StepStatus::Failed));
    bench.resume(&run, None, None).await;
    assert_eq!(completed(&bench.work(&run).await).outputs, Some(json!({"all": ["a", "b", "c"]})));
    assert_eq!(bench.fake.steps(), ["each[0]", "each[1]", "each[1]", "each[2]"]);
}

#[tokio::test]
async fn corrected_inputs_change_the_remaining_items() {
    let bench = Bench::new();
    bench.fake.on("text.sum", |made| {
        if made.inputs["text"] == "b" { failing("torn page") } else { Ok(made.inputs) }
    });
    let (run, _) = bench.run(FOREACH, json!({"docs": [{"body": "a"}, {"body": "b"}]})).await;
    bench.resume(&run, None, Some(json!({"docs": [{"body": "a"}, {"body": "B"}, {"body": "C"}]}))).await;
    assert_eq!(completed(&bench.work(&run).await).outputs, Some(json!({"all": ["a", "B", "C"]})));
}

const WHILE: &str = "
id: demo.while
inputs: { most: { type: integer } }
outputs: { n: { type: integer } }
steps:
  - { id: zero, uses: x.zero, input: { n: 0 }, output: { n: vars.n } }
  - id: loop
    uses: math.next
    input: { n: vars.n }
    output: { n: vars.n }
    config: { merge_strategy: replace, while: { condition: 'vars.n < inputs.most', max_iterations: 5 } }
  - { id: end, uses: x.end, input: { n: vars.n }, output: { n: outputs.n } }
";

#[tokio::test]
async fn while_repeats_until_its_condition_is_false() {
    let bench = Bench::new();
    bench.fake.on("math.next", |made| Ok(json!({"n": made.inputs["n"].as_i64().unwrap() + 1})));
    assert_eq!(bench.outputs(WHILE, json!({"most": 3})).await, json!({"n": 3}));
    assert_eq!(bench.fake.steps(), ["zero", "loop[0]", "loop[1]", "loop[2]", "end"]);
    assert_eq!(bench.outputs(WHILE, json!({"most": 0})).await, json!({"n": 1}), "looked at after each round");
}

#[tokio::test]
async fn while_iterations_are_limited_and_reported() {
    let bench = Bench::new();
    let (run, executed) = bench.run(WHILE, json!({"most": 3})).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"n": 0})));
    assert_eq!(bench.fake.steps().iter().filter(|step| step.starts_with("loop")).count(), 5);
    let events = bench.events(&run).await;
    let note = events.iter().find(|event| event.event.kind.as_str() == "step.log").unwrap();
    assert!(note.event.data["text"].as_str().unwrap().contains("stopped after 5 iterations"), "{note:?}");
}

const ROUTER: &str = "
id: demo.router
inputs: { kind: { type: any } }
outputs: { by: { type: string } }
steps:
  - id: parse
    uses: doc.any
    output: { by: outputs.by }
    config: { router: { on: inputs.kind, cases: { invoice: doc.invoice, '3': doc.three } } }
";

#[tokio::test]
async fn a_router_chooses_the_capability_by_value() {
    let bench = Bench::new();
    for capability in ["doc.invoice", "doc.three", "doc.other"] {
        bench.fake.on(capability, |made| Ok(json!({"by": made.capability})));
    }
    assert_eq!(bench.outputs(ROUTER, json!({"kind": "invoice"})).await, json!({"by": "doc.invoice"}));
    assert_eq!(bench.outputs(ROUTER, json!({"kind": 3})).await, json!({"by": "doc.three"}));
    let (_, executed) = bench.run(ROUTER, json!({"kind": "letter"})).await;
    let (_, message) = failed(&executed);
    assert!(message.contains("\"letter\"") && message.contains("3, invoice"), "{message}");
    let with_default = ROUTER.replace("cases:", "default: doc.other, cases:");
    assert_eq!(bench.outputs(&with_default, json!({"kind": "letter"})).await, json!({"by": "doc.other"}));
}

fn scatter(merge: &str, output: &str) -> String {
    format!(
        "
id: demo.scatter
outputs: {{ all: {{ type: object }}, n: {{ type: any }} }}
steps:
  - id: fan
    uses: _scatter
    input: {{ text: hello }}
    output: {{ {output} }}
    config: {{ scatter: {{ capabilities: [x.one, x.two], merge: {merge} }} }}
  - {{ id: end, uses: x.end, input: {{ all: vars.fan }}, output: {{ all: outputs.all }}, config: {{ condition: '{}' }} }}
",
        output.is_empty()
    )
}

#[tokio::test]
async fn scatter_joins_the_results_of_its_branches() {
    let bench = Bench::new();
    bench.fake.on("x.one", |_| Ok(json!({"n": [1], "only": true})));
    bench.fake.on("x.two", |_| Ok(json!({"n": [2]})));
    let both = json!({"x.one": {"n": [1], "only": true}, "x.two": {"n": [2]}});
    assert_eq!(bench.outputs(&scatter("collect", ""), json!({})).await, json!({"all": both}));
    assert_eq!(
        bench.outputs(&scatter("concat_lists", ""), json!({})).await,
        json!({"all": {"n": [[1], [2]], "only": [true]}})
    );
    bench.fake.on("x.two", |_| failing("down"));
    let (run, executed) = bench.run(&scatter("collect", ""), json!({})).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"all": {"x.one": {"n": [1], "only": true}}})));
    assert_eq!(bench.status(&run, "fan[1]").await, Some(StepStatus::Failed));
    bench.fake.on("x.one", |_| failing("down too"));
    let (run, executed) = bench.run(&scatter("collect", ""), json!({})).await;
    assert_eq!(failed(&executed).1, "every branch failed: down too; down");
    bench.fake.heals("x.one");
    bench.resume(&run, None, None).await;
    let outputs = completed(&bench.work(&run).await).outputs.clone();
    assert_eq!(
        outputs,
        Some(json!({"all": {"x.one": {"text": "hello"}}})),
        "failed branches are tried again"
    );
}

#[tokio::test]
async fn first_completed_branch_wins_and_others_are_canceled() {
    let bench = Bench::new();
    bench.fake.block_forever("x.one");
    let fake = bench.fake.clone();
    bench.fake.does("x.two", move |_, _, _| {
        let fake = fake.clone();
        Box::pin(async move {
            fake.called("fan[0]", 1).await;
            Ok(json!({"n": 2}))
        })
    });
    let (run, executed) = bench.run(&scatter("first_success", "n: outputs.n"), json!({})).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"n": 2})));
    assert_eq!(bench.status(&run, "fan[0]").await, Some(StepStatus::Skipped));
    assert_eq!(bench.fake.canceled.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn step_over_its_timeout_is_canceled() {
    let bench = Bench::new();
    bench.fake.block_forever("x.slow");
    let text = "id: demo.slow\nsteps:\n  - { id: a, uses: x.slow, config: { timeout_seconds: 0.05 } }\n";
    let (_, executed) = bench.run(text, json!({})).await;
    let (code, message) = failed(&executed);
    assert_eq!(code, "step_timeout");
    assert!(message.contains("0.05 s"), "{message}");
    assert_eq!(bench.fake.canceled.load(std::sync::atomic::Ordering::SeqCst), 1, "it was canceled");
}

#[tokio::test]
async fn panicking_caller_fails_only_its_step() {
    let bench = Bench::new();
    bench.fake.on("x.y", |_| panic!("a bug in there"));
    let (_, executed) = bench.run("id: demo.panic\nsteps:\n  - { id: a, uses: x.y }\n", json!({})).await;
    assert!(failed(&executed).1.contains("internal error"), "{executed:?}");
}

const INNER: &str = "
id: table.sum
inputs: { rows: { type: array, required: true }, note: { type: string, default: none } }
outputs: { total: { type: integer, required: true } }
steps:
  - { id: first, uses: x.first, input: { rows: inputs.rows, note: inputs.note }, output: { rows: vars.rows } }
  - { id: add, uses: math.sum, input: { rows: vars.rows }, output: { total: outputs.total } }
";
pub const OUTER: &str = "
id: demo.outer
inputs: { rows: { type: array } }
outputs: { total: { type: integer } }
steps:
  - { id: before, uses: x.before, output: {} }
  - { id: sum, uses: 'skill:table.sum', input: { rows: inputs.rows }, output: { total: vars.total }, config: { timeout_seconds: 7, retry: { max_attempts: 2, backoff_seconds: 0 } } }
  - { id: end, uses: x.end, input: { total: vars.total }, output: { total: outputs.total } }
";

pub fn nested() -> Bench {
    let mut bench = Bench::new();
    bench.skill(INNER);
    bench.fake.on("math.sum", |made| {
        let rows = made.inputs["rows"].as_array().unwrap();
        Ok(json!({"total": rows.iter().filter_map(serde_json::Value::as_i64).sum::<i64>()}))
    });
    bench
}

#[tokio::test]
async fn nested_skill_has_separate_namespaces() {
    let bench = nested();
    let (run, executed) = bench.run(OUTER, json!({"rows": [1, 2, 3]})).await;
    assert_eq!(completed(&executed).outputs, Some(json!({"total": 6})));
    assert_eq!(completed(&executed).progress, (3, 3), "progress counts its own steps");
    assert_eq!(bench.fake.steps(), ["before", "sum/first", "sum/add", "end"]);
    assert_eq!(bench.fake.made()[1].inputs, json!({"rows": [1, 2, 3], "note": "none"}));
    assert_eq!(bench.step(&run, "sum").await.unwrap().result, json!({"total": 6}));
}

#[tokio::test]
async fn retry_and_limit_apply_to_nested_steps() {
    let bench = nested();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let timeouts = seen.clone();
    bench.fake.does("x.first", move |made, call, _| {
        timeouts.lock().unwrap().push(call.timeout.as_secs());
        Box::pin(async move { if made.nth == 1 { failing("busy") } else { Ok(made.inputs) } })
    });
    let (_, executed) = bench.run(OUTER, json!({"rows": [1]})).await;
    completed(&executed);
    assert_eq!(*seen.lock().unwrap(), [7, 7]);
}

#[tokio::test]
async fn nested_failure_fails_the_run_and_resumes_in_the_middle() {
    let bench = nested();
    bench.fake.on("math.sum", |made| if made.nth < 3 { failing("no sum") } else { Ok(json!({"total": 1})) });
    let (run, executed) = bench.run(OUTER, json!({"rows": [1]})).await;
    assert_eq!(failed(&executed).1, "no sum");
    assert_eq!(bench.status(&run, "sum/add").await, Some(StepStatus::Failed));
    assert_eq!(bench.status(&run, "sum").await, Some(StepStatus::Failed));
    bench.resume(&run, None, None).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.steps(), ["before", "sum/first", "sum/add", "sum/add", "sum/add", "end"]);
}

#[tokio::test]
async fn nested_skill_without_its_declared_output_fails() {
    let bench = nested();
    bench.fake.on("math.sum", |_| Ok(json!({})));
    let (_, executed) = bench.run(OUTER, json!({"rows": [1]})).await;
    assert!(failed(&executed).1.contains("outputs of skill table.sum: total"), "{executed:?}");
}

#[tokio::test]
async fn late_caller_reports_what_timed_out() {
    let bench = Bench::new();
    bench.fake.does("x.slow", |_, _, cancel| {
        Box::pin(async move {
            cancel.cancelled().await;
            Err(CallError::new(CallFailure::StepTimeout, "reported by the caller"))
        })
    });
    let text = "id: demo.slow\nsteps:\n  - { id: a, uses: x.slow, config: { timeout_seconds: 0.05 } }\n";
    let (_, executed) = bench.run(text, json!({})).await;
    assert_eq!(failed(&executed), ("step_timeout".into(), "reported by the caller".into()));
}
