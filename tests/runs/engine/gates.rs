//! Gates before a step: every outcome, and what an approval covers.

use serde_json::{Value, json};
use skills_model::{Command, RunState, Verdict};
use skills_runs::ExecutionEnd;
use skills_store::StepStatus;

use super::fixture::{Bench, completed, failed, failing, pending_step};

const SEND: &str = "
id: demo.send
inputs: { to: { type: string } }
outputs: { done: { type: any } }
steps:
  - { id: write, uses: x.write, output: {} }
  - { id: send, uses: mail.send, input: { to: inputs.to }, output: { to: outputs.done } }
  - { id: archive, uses: x.archive }
";

const LETTERS: &str = "
id: demo.letters
inputs: { people: { type: array } }
steps:
  - { id: send, uses: mail.send, input: { to: who }, config: { foreach: { items: inputs.people, as: who } } }
";

fn gated(on_fail: &str) -> Bench {
    let mut bench = Bench::new();
    bench.declare(
        "mail.send",
        json!({"safety": {"mandatory_pre_gates": [{"capability": "pii.detect", "on_fail": on_fail}]}}),
    );
    bench
}

#[tokio::test]
async fn inputs_too_large_for_a_review_fail_the_step() {
    let mut bench = Bench::new();
    bench.declare("mail.send", json!({"safety": {"requires_confirmation": true}}));
    let people = |each: usize| json!({"people": vec!["x".repeat(each); 3]});
    pending_step(&bench.run(LETTERS, people(1_000_000)).await.1);
    let (run, executed) = bench.run(LETTERS, people(1_500_000)).await;
    let (code, message) = failed(&executed);
    assert_eq!(code, "invalid_request");
    assert!(message.contains("more than 4 MiB of memory, too much for a review"), "{message}");
    assert_eq!(bench.status(&run, "send").await, Some(StepStatus::Failed));
    assert!(bench.fake.made().is_empty());
}

#[tokio::test]
async fn allowing_gate_lets_the_step_run() {
    let bench = gated("block");
    bench.fake.on("pii.detect", |_| Ok(json!({"allowed": true})));
    let (run, executed) = bench.run(SEND, json!({"to": "ana"})).await;
    completed(&executed);
    assert_eq!(bench.fake.steps(), ["write", "send~gate:pii.detect", "send", "archive"]);
    assert_eq!(bench.fake.made()[1].inputs, json!({"to": "ana"}), "it is asked about the step's inputs");
    assert_eq!(bench.status(&run, "send~gate:pii.detect").await, Some(StepStatus::Completed));
}

#[tokio::test]
async fn blocking_gate_fails_the_step_and_is_evaluated_again() {
    for answer in [json!({"allowed": false, "reason": "two addresses"}), json!({"contains_pii": false})] {
        let bench = gated("block");
        let gate_answer = answer.clone();
        bench.fake.on("pii.detect", move |_| Ok(gate_answer.clone()));
        let (run, executed) = bench.run(SEND, json!({"to": "ana"})).await;
        let (code, message) = failed(&executed);
        assert_eq!(code, "safety_denied");
        let why = if answer.get("allowed").is_some() { "two addresses" } else { "no field `allowed`" };
        assert!(message.contains("pii.detect") && message.contains(why), "{message}");
        assert_eq!(bench.fake.count("send"), 0);
        assert_eq!(bench.status(&run, "send").await, Some(StepStatus::Failed));
        bench.fake.on("pii.detect", |_| Ok(json!({"allowed": true})));
        bench.resume(&run, None, None).await;
        completed(&bench.work(&run).await);
        assert_eq!(bench.fake.count("send~gate:pii.detect"), 2, "a failed run asks its gates again");
    }
}

#[tokio::test]
async fn a_gate_that_cannot_be_called_does_not_allow() {
    let bench = gated("block");
    bench.fake.on("pii.detect", |_| failing("no such service"));
    let (run, executed) = bench.run(SEND, json!({"to": "ana"})).await;
    let (code, message) = failed(&executed);
    assert_eq!(code, "gate_execution_failure");
    assert!(message.contains("no such service"), "{message}");
    assert_eq!(bench.fake.count("send"), 0);
    assert_eq!(bench.status(&run, "send~gate:pii.detect").await, Some(StepStatus::Failed));
}

#[tokio::test]
async fn a_gate_that_degrades_skips_the_step() {
    let bench = gated("degrade");
    let (run, executed) = bench.run(SEND, json!({"to": "ana"})).await;
    completed(&executed);
    assert_eq!(bench.status(&run, "send").await, Some(StepStatus::Skipped));
    assert!(bench.kinds(&run, "send").await.contains(&"gate.degraded".to_owned()));
    assert_eq!(bench.fake.count("send"), 0);
}

#[tokio::test]
async fn warning_gate_lets_the_step_run_and_is_reported() {
    let bench = gated("warn");
    bench.fake.on("pii.detect", |_| Ok(json!({"allowed": false, "reason": "an address"})));
    let (run, executed) = bench.run(SEND, json!({"to": "ana"})).await;
    completed(&executed);
    let events = bench.events(&run).await;
    let warned: Vec<_> = events.iter().filter(|event| event.event.kind.as_str() == "gate.warned").collect();
    assert_eq!(warned.len(), 1);
    assert_eq!(warned[0].event.data["reason"], "an address");
}

#[tokio::test]
async fn gate_can_require_a_decision() {
    let bench = gated("require_human");
    bench.fake.on("pii.detect", |_| Ok(json!({"allowed": false, "reason": "an address"})));
    let (run, executed) = bench.run(SEND, json!({"to": "ana"})).await;
    let (step, why) = pending_step(&executed);
    assert_eq!(step, "send");
    assert_eq!(why, json!({"gate": {"capability": "pii.detect", "reason": "an address"}}));
    let at = bench.engine.at_gate(&run).await.unwrap().unwrap();
    assert_eq!(at.capability.unwrap().id, "mail.send");
    assert_eq!(at.inputs, json!({"to": "ana"}));
    bench.approve(&run).await;
    assert!(bench.engine.at_gate(&run).await.unwrap().is_none(), "no decision is pending");
    completed(&bench.work(&run).await);
    assert_eq!(
        bench.fake.steps(),
        ["write", "send~gate:pii.detect", "send", "archive"],
        "each is called once"
    );
}

fn confirmed() -> Bench {
    let mut bench = Bench::new();
    bench.declare("mail.send", json!({"safety": {"requires_confirmation": true}}));
    bench
}

#[tokio::test]
async fn confirmation_is_required_each_time() {
    let bench = confirmed();
    bench.fake.on("mail.send", |made| if made.nth == 1 { failing("bounced") } else { Ok(made.inputs) });
    let (run, executed) = bench.run(SEND, json!({"to": "ana"})).await;
    assert_eq!(pending_step(&executed), ("send".into(), json!("confirmation")));
    assert_eq!(bench.fake.count("send"), 0, "nothing happens before the approval");
    bench.approve(&run).await;
    assert_eq!(failed(&bench.work(&run).await).1, "bounced");
    bench.resume(&run, None, None).await;
    let again = bench.work(&run).await;
    assert_eq!(pending_step(&again).0, "send", "an approval is used once");
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
}

#[tokio::test]
async fn approved_inputs_are_executed() {
    let bench = confirmed();
    let (run, _) = bench.run(SEND, json!({"to": "ana"})).await;
    let before = bench.engine.at_gate(&run).await.unwrap().unwrap();
    bench.approve(&run).await;
    // Its worker is lost before the step starts, and its inputs change.
    let mut claimed = bench.claim(&run).await;
    claimed.run.inputs = json!({"to": "mallory"});
    let executed = bench.engine.execute(claimed, tokio_util::sync::CancellationToken::new()).await;
    assert_eq!(pending_step(&executed).0, "send", "other inputs need another yes");
    let ExecutionEnd::Waiting(waiting) = executed else { panic!() };
    let Some(skills_model::Gate::Human { inputs_digest, .. }) = waiting.gate else { panic!() };
    assert_ne!(inputs_digest, before.inputs_digest);
    assert_eq!(bench.fake.count("send"), 0);
}

#[tokio::test]
async fn denial_ends_the_run() {
    let bench = confirmed();
    let (run, _) = bench.run(SEND, json!({"to": "ana"})).await;
    assert_eq!(bench.decide(&run, Verdict::Deny, None).await.state, RunState::Canceled);
    assert_eq!(bench.fake.steps(), ["write"]);
}

#[tokio::test]
async fn one_approval_covers_all_items_of_a_foreach() {
    let bench = confirmed();
    bench.fake.on("mail.send", |made| if made.nth == 2 { failing("bounced") } else { Ok(made.inputs) });
    let (run, executed) = bench.run(LETTERS, json!({"people": ["ana", "ben", "cem"]})).await;
    assert_eq!(pending_step(&executed).0, "send");
    let at = bench.engine.at_gate(&run).await.unwrap().unwrap();
    assert_eq!(at.inputs, json!([{"to": "ana"}, {"to": "ben"}, {"to": "cem"}]));
    bench.approve(&run).await;
    assert_eq!(failed(&bench.work(&run).await).1, "bounced");
    bench.resume(&run, None, None).await;
    pending_step(&bench.work(&run).await);
    let at = bench.engine.at_gate(&run).await.unwrap().unwrap();
    assert_eq!(at.inputs, json!([{"to": "ben"}, {"to": "cem"}]), "what is left needs its own approval");
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.steps(), ["send[0]", "send[1]", "send[1]", "send[2]"]);
}

#[tokio::test]
async fn each_while_iteration_needs_its_own_approval() {
    let mut bench = Bench::new();
    bench.declare(
        "mail.send",
        json!({"safety": {"requires_confirmation": true, "mandatory_pre_gates": [{"capability": "pii.detect", "on_fail": "warn"}]}}),
    );
    let text = "
id: demo.rounds
steps:
  - { id: send, uses: mail.send, output: { more: vars.more }, config: { while: { condition: vars.more, max_iterations: 4 } } }
";
    bench.fake.on("mail.send", |made| Ok(json!({"more": made.nth < 2})));
    let (run, executed) = bench.run(text, json!({})).await;
    assert_eq!(pending_step(&executed).0, "send[0]");
    bench.approve(&run).await;
    assert_eq!(pending_step(&bench.work(&run).await).0, "send[1]");
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.steps(), ["send~gate:pii.detect", "send[0]", "send[1]"]);
}

#[tokio::test]
async fn branches_are_approved_before_any_starts() {
    let bench = confirmed();
    let text = "
id: demo.fan
steps:
  - { id: fan, uses: _, input: { to: ana }, config: { scatter: { capabilities: [mail.send, x.log], merge: collect } } }
";
    let (run, executed) = bench.run(text, json!({})).await;
    assert_eq!(pending_step(&executed).0, "fan[0]");
    assert_eq!(bench.fake.made(), []);
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.made().len(), 2);
}

#[tokio::test]
async fn other_steps_complete_before_the_run_waits() {
    let bench = confirmed();
    let text = "
id: demo.two
steps:
  - { id: one, uses: mail.send, input: { to: a }, config: { depends_on: [] } }
  - { id: two, uses: mail.send, input: { to: b }, config: { depends_on: [] } }
  - { id: free, uses: x.free, config: { depends_on: [] } }
";
    let (run, executed) = bench.run(text, json!({})).await;
    assert_eq!(pending_step(&executed).0, "one");
    assert_eq!(bench.fake.steps(), ["free"]);
    bench.approve(&run).await;
    assert_eq!(pending_step(&bench.work(&run).await).0, "two");
    assert_eq!(bench.fake.steps(), ["free", "one"]);
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.steps(), ["free", "one", "two"]);
}

#[tokio::test]
async fn answer_of_a_gate_holds_for_its_inputs_only() {
    let bench = gated("block");
    bench.fake.on("pii.detect", |made| Ok(json!({"allowed": made.inputs["to"] == "ana"})));
    bench.fake.on("mail.send", |_| failing("down"));
    let (run, executed) = bench.run(SEND, json!({"to": "ana"})).await;
    assert_eq!(failed(&executed).1, "down");
    let checkpoints = bench.store.checkpoints(&run, None, 1000).await.unwrap();
    let is_after_gate =
        |done: &[String]| done.last().is_some_and(|path| path.starts_with("send~gate:pii.detect#"));
    let after_gate = checkpoints.iter().find(|point| is_after_gate(&point.done)).unwrap().number;
    for checkpoint in [Some(after_gate), None] {
        bench.resume(&run, checkpoint, Some(json!({"to": "mallory"}))).await;
        assert_eq!(failed(&bench.work(&run).await).0, "safety_denied");
    }
    assert_eq!(bench.fake.count("send"), 1, "nothing is sent to others");
    bench.resume(&run, Some(after_gate), Some(json!({"to": "ana"}))).await;
    assert_eq!(failed(&bench.work(&run).await).1, "down");
}

#[tokio::test]
async fn gates_check_each_capability_of_a_scatter_and_each_round() {
    let mut bench = gated("block");
    bench.declare(
        "x.pay",
        json!({"safety": {"mandatory_pre_gates": [{"capability": "pii.detect", "on_fail": "block"}]}}),
    );
    let fan = "
id: demo.fan
steps:
  - { id: fan, uses: _, input: { to: ana }, config: { scatter: { capabilities: [mail.send, x.pay], merge: collect } } }
";
    bench.fake.on("pii.detect", |_| Ok(json!({"allowed": true})));
    let (_, executed) = bench.run(fan, json!({})).await;
    completed(&executed);
    let gates: Vec<String> = bench.fake.steps().into_iter().filter(|step| step.contains('~')).collect();
    assert_eq!(gates, ["fan~gate:pii.detect", "fan~gate:pii.detect"]);

    let bench = gated("block");
    let rounds = "
id: demo.rounds
steps:
  - { id: start, uses: x.start, output: { sum: vars.sum } }
  - { id: send, uses: mail.send, input: { sum: vars.sum }, output: { sum: vars.sum }, config: { merge_strategy: replace, while: { condition: vars.sum < 100, max_iterations: 9 } } }
";
    bench.fake.on("x.start", |_| Ok(json!({"sum": 0})));
    bench.fake.on("mail.send", |made| Ok(json!({"sum": made.inputs["sum"].as_i64().unwrap_or(0) + 7})));
    bench.fake.on("pii.detect", |made| Ok(json!({"allowed": made.inputs["sum"].as_i64().unwrap_or(0) < 10})));
    let (_, executed) = bench.run(rounds, json!({})).await;
    assert_eq!(failed(&executed).0, "safety_denied");
    assert_eq!(
        bench.fake.count("send[1]") + bench.fake.count("send[2]"),
        1,
        "the round that the gate rejects"
    );
}

#[tokio::test]
async fn approved_calls_are_executed_once_despite_resumes_and_forks() {
    let bench = confirmed();
    let text = "
id: demo.letters
inputs: { people: { type: array } }
steps:
  - { id: send, uses: mail.send, input: { to: who }, config: { foreach: { items: inputs.people, as: who } } }
  - { id: log, uses: x.log }
";
    bench.fake.on("x.log", |_| failing("full"));
    let (run, _) = bench.run(text, json!({"people": ["ana", "ben"]})).await;
    bench.approve(&run).await;
    assert_eq!(failed(&bench.work(&run).await).1, "full");
    let checkpoints = bench.store.checkpoints(&run, None, 1000).await.unwrap();
    let within = checkpoints.iter().find(|point| point.done.last().is_some_and(|path| path == "send[0]"));
    let within = within.map(|point| point.number);
    assert!(within.is_some(), "{checkpoints:?}");
    bench.resume(&run, within, None).await;
    assert_eq!(pending_step(&bench.work(&run).await).0, "send");
    assert_eq!(bench.fake.count("send[1]"), 1, "it is executed again only after another approval");
    let fork = skills_store::RunId("fork".into());
    bench.store.fork(&run, within, fork.clone(), true, None).await.unwrap();
    bench.resume(&fork, None, None).await;
    assert_eq!(pending_step(&bench.work(&fork).await).0, "send");
    assert_eq!(bench.fake.count("send[1]"), 1);
}

#[tokio::test]
async fn a_paused_foreach_is_approved_again_from_an_earlier_checkpoint() {
    let bench = confirmed();
    let (run, _) = bench.run(LETTERS, json!({"people": ["ana", "ben", "cem"]})).await;
    let store = bench.store.clone();
    let paused = run.clone();
    bench.fake.does("mail.send", move |made, _, _| {
        let (store, run) = (store.clone(), paused.clone());
        Box::pin(async move {
            if made.step == "send[1]" {
                store.command(&run, Command::Pause, None, None, None).await.unwrap();
                tokio::task::yield_now().await;
            }
            Ok(json!({}))
        })
    });
    bench.approve(&run).await;
    let executed = bench.work(&run).await;
    let ExecutionEnd::Waiting(record) = executed else { panic!("{executed:?}") };
    assert!(record.paused);
    bench.resume(&run, Some(0), None).await;
    assert_eq!(pending_step(&bench.work(&run).await).0, "send");
    assert_eq!(bench.fake.count("send[0]"), 1, "it is executed again only after another approval");
    bench.approve(&run).await;
    bench.fake.on("mail.send", |_| Ok(json!({})));
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.count("send[0]"), 2);
}

#[tokio::test]
async fn approval_that_a_policy_requires_does_not_hold_from_an_earlier_checkpoint() {
    let mut bench = Bench::new();
    bench.approval = Some("require_approval id demo".to_owned());
    bench.fake.on("x.archive", |_| failing("full"));
    let (run, executed) = bench.run(SEND, json!({"to": "ana"})).await;
    assert_eq!(pending_step(&executed).0, "~policy");
    bench.approve(&run).await;
    assert_eq!(failed(&bench.work(&run).await).1, "full");
    bench.resume(&run, None, None).await;
    assert_eq!(failed(&bench.work(&run).await).1, "full", "it continues where it failed");
    bench.resume(&run, Some(0), None).await;
    assert_eq!(pending_step(&bench.work(&run).await).0, "~policy");
    assert_eq!(bench.fake.count("write"), 1, "it is executed again only after another approval");
    bench.approve(&run).await;
    bench.fake.on("x.archive", |_| Ok(json!({})));
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.count("write"), 2);
}

#[tokio::test]
async fn corrected_inputs_decide_again_whether_a_step_is_executed() {
    let bench = gated("block");
    bench.fake.on("pii.detect", |_| Ok(json!({"allowed": true})));
    bench.fake.on("mail.send", |_| failing("down"));
    let small = "{ condition: inputs.amount < 100 }";
    let single = format!(
        "
id: demo.one
inputs: {{ amount: {{ type: integer }} }}
steps:
  - {{ id: send, uses: mail.send, input: {{ amount: inputs.amount }}, config: {small} }}
"
    );
    let (run, executed) = bench.run(&single, json!({"amount": 5})).await;
    assert_eq!(failed(&executed).1, "down");
    let checkpoints = bench.store.checkpoints(&run, None, 1000).await.unwrap();
    let after_gate = checkpoints.iter().find(|point| !point.done.is_empty()).unwrap().number;
    bench.resume(&run, Some(after_gate), Some(json!({"amount": 900}))).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.status(&run, "send").await, Some(StepStatus::Skipped));

    let items = "
id: demo.items
inputs: { amounts: { type: array }, total: { type: integer } }
steps:
  - { id: send, uses: mail.send, input: { amount: item }, config: { condition: inputs.total < 100, foreach: { items: inputs.amounts, as: item } } }
";
    bench
        .fake
        .on("mail.send", |made| if made.inputs["amount"] == 1 { Ok(json!({})) } else { failing("down") });
    let (run, executed) = bench.run(items, json!({"amounts": [1, 7], "total": 8})).await;
    assert_eq!(failed(&executed).1, "down");
    bench.resume(&run, None, Some(json!({"amounts": [1, 900], "total": 901}))).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.status(&run, "send").await, Some(StepStatus::Skipped));
    assert!(bench.fake.made().iter().all(|call| call.inputs["amount"] != 900));
}

/// A capability whose environment is production unless stated otherwise, which its gate rejects.
fn deploying(safety: Value) -> Bench {
    let mut bench = Bench::new();
    let env = json!({"type": "string", "required": false, "description": null, "default": "production",
        "enum": []});
    bench.declare("x.deploy", json!({"inputs": {"env": env}, "safety": safety}));
    bench.fake.on("env.check", |made| Ok(json!({"allowed": made.inputs["env"] != "production"})));
    bench
}

/// A contract of one step that deploys.
fn deployment(uses: &str, config: &str) -> String {
    format!(
        "
id: demo.deploy
inputs: {{ env: {{ type: string }}, all: {{ type: array }} }}
steps:
  - {{ id: go, uses: {uses}, input: {{ env: inputs.env }}, config: {{ {config} }} }}
"
    )
}

const FOREACH: &str = "foreach: { items: inputs.all, as: item }";
const SCATTER: &str = "scatter: { capabilities: [x.deploy, x.log], merge: collect }";

#[tokio::test]
async fn gates_see_default_inputs() {
    let while_true = "while: { condition: 'true', max_iterations: 2 }";
    for (uses, config) in [("x.deploy", ""), ("x.deploy", FOREACH), ("x.deploy", while_true), ("_", SCATTER)]
    {
        for inputs in [json!({"all": [1]}), json!({"all": [1], "env": null})] {
            let bench =
                deploying(json!({"mandatory_pre_gates": [{"capability": "env.check", "on_fail": "block"}]}));
            let (_, executed) = bench.run(&deployment(uses, config), inputs).await;
            assert_eq!(failed(&executed).0, "safety_denied", "{config}");
            let calls: Vec<_> = bench.fake.made().into_iter().map(|made| (made.step, made.inputs)).collect();
            assert_eq!(calls, [("go~gate:env.check".to_owned(), json!({"env": "production"}))], "{config}");
        }
    }
}

#[tokio::test]
async fn approvals_show_default_inputs() {
    let called = json!({"env": "production"});
    for (uses, config, shown) in
        [("x.deploy", FOREACH, json!([called, called])), ("_", SCATTER, called.clone())]
    {
        let bench = deploying(json!({"requires_confirmation": true}));
        let (run, executed) = bench.run(&deployment(uses, config), json!({"all": [1, 2], "env": null})).await;
        assert_eq!(pending_step(&executed).1, json!("confirmation"));
        let at = bench.engine.at_gate(&run).await.unwrap().unwrap();
        assert_eq!(at.inputs, shown, "{config}");
        bench.approve(&run).await;
        completed(&bench.work(&run).await);
        let deployed: Vec<_> =
            bench.fake.made().into_iter().filter(|made| made.capability == "x.deploy").collect();
        assert!(deployed.iter().all(|made| made.inputs == called), "{deployed:?}");
    }
}

#[tokio::test]
async fn gates_check_each_item_of_a_foreach() {
    let people = json!({"people": ["ana", "mallory", "ana", "eve"]});
    for on_fail in ["block", "require_human", "degrade", "warn"] {
        let bench = gated(on_fail);
        // A list would differ from the refused values that it contains.
        bench.fake.on("pii.detect", |made| {
            let to = &made.inputs["to"];
            Ok(json!({"allowed": *to != "mallory" && *to != "eve", "reason": "blocked"}))
        });
        let (run, executed) = bench.run(LETTERS, people.clone()).await;
        let gates = bench.fake.count("send~gate:pii.detect");
        match on_fail {
            "block" => {
                assert_eq!((failed(&executed).0.as_str(), bench.fake.count("send[0]")), ("safety_denied", 0));
            }
            "degrade" => {
                completed(&executed);
                assert_eq!(bench.status(&run, "send").await, Some(StepStatus::Skipped));
            }
            "warn" => {
                completed(&executed);
                let kinds = bench.kinds(&run, "send").await;
                let warnings = kinds.iter().filter(|kind| *kind == "gate.warned").count();
                assert_eq!((gates, warnings, bench.fake.count("send[3]")), (3, 1, 1), "{kinds:?}");
            }
            _ => {
                let why =
                    json!({"gate": {"capability": "pii.detect", "reason": "blocked (send[1], send[3])"}});
                assert_eq!(pending_step(&executed), ("send".into(), why));
                let at = bench.engine.at_gate(&run).await.unwrap().unwrap();
                assert_eq!(at.inputs.as_array().unwrap().len(), 4, "one question about all");
                bench.approve(&run).await;
                completed(&bench.work(&run).await);
                assert_eq!((bench.fake.count("send~gate:pii.detect"), bench.fake.count("send[1]")), (3, 1));
            }
        }
    }
}

#[tokio::test]
async fn a_question_remains_decidable_if_its_gates_were_called_with_other_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = Bench::on_disk(dir.path());
    bench.declare(
        "mail.send",
        json!({"safety": {"mandatory_pre_gates": [
            {"capability": "x.first", "on_fail": "block"}, {"capability": "pii.detect", "on_fail": "require_human"}]}}),
    );
    bench.fake.on("x.first", |_| Ok(json!({"allowed": true})));
    let (run, executed) = bench.run(LETTERS, json!({"people": ["ana", "ben"]})).await;
    assert_eq!(pending_step(&executed).0, "send");
    let before = bench.engine.at_gate(&run).await.unwrap().unwrap();
    // An earlier version called the gates once for both items: there is no answer for either.
    let other = rusqlite::Connection::open(dir.path().join("runs.db")).unwrap();
    let edited = other.execute("UPDATE steps SET superseded = 1 WHERE step LIKE '%~gate:%'", []).unwrap();
    assert_eq!(edited, 4);
    assert_eq!(bench.engine.at_gate(&run).await.unwrap(), Some(before));
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
    assert_eq!((bench.fake.count("send~gate:x.first"), bench.fake.count("send[1]")), (4, 1));
}

#[tokio::test]
async fn an_approval_does_not_cover_the_rejection_of_a_gate_that_is_called_later() {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = Bench::on_disk(dir.path());
    bench.declare(
        "mail.send",
        json!({"safety": {"requires_confirmation": true, "mandatory_pre_gates": [
            {"capability": "pii.detect", "on_fail": "require_human"}]}}),
    );
    bench.fake.on("pii.detect", |_| Ok(json!({"allowed": true})));
    let (run, executed) = bench.run(SEND, json!({"to": "ana"})).await;
    assert_eq!(pending_step(&executed), ("send".into(), json!("confirmation")));
    // An earlier version called the gate with other inputs.
    let other = rusqlite::Connection::open(dir.path().join("runs.db")).unwrap();
    other.execute("UPDATE steps SET superseded = 1 WHERE step LIKE '%~gate:%'", []).unwrap();
    bench.fake.on("pii.detect", |_| Ok(json!({"allowed": false, "reason": "blocked"})));
    bench.approve(&run).await;
    let why = json!({"gate": {"capability": "pii.detect", "reason": "blocked"}});
    assert_eq!(pending_step(&bench.work(&run).await), ("send".into(), why));
    assert_eq!(bench.fake.count("send"), 0);
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
    assert_eq!((bench.fake.count("send~gate:pii.detect"), bench.fake.count("send")), (2, 1));
}

#[tokio::test]
async fn reserved_inputs_of_a_gate_cannot_be_replaced() {
    let field = |kind: &str| json!({"type": kind, "required": false, "description": null, "default": null, "enum": []});
    let reserved = json!({"inputs": field("object"), "capability": field("string")});
    for declared in [
        json!({}),
        json!({"method": field("string"), "inputs": field("object"), "capability": field("string")}),
    ] {
        let mut bench = Bench::new();
        let gates = json!({"mandatory_pre_gates": [{"capability": "x.check", "on_fail": "block"}]});
        bench.declare("x.call", json!({"inputs": declared, "safety": gates}));
        bench.declare("x.check", json!({"inputs": reserved.clone()}));
        bench.fake.on("x.check", |_| Ok(json!({"allowed": true})));
        let text = "
id: demo.call
inputs: { object: { type: object } }
steps:
  - { id: go, uses: x.call, input: { method: delete, inputs: inputs.object, capability: harmless } }
";
        completed(&bench.run(text, json!({"object": {}})).await.1);
        let made = bench.fake.made();
        assert_eq!(made[0].inputs, json!({"inputs": made[1].inputs, "capability": "x.call"}));
        assert_eq!(made[1].inputs["method"], "delete");
    }
}
