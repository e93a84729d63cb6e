//! Scripts that are edited while their run waits, or before it gets there: one change is one question, and what was
//! shown is what runs.

use serde_json::json;
use skills_base::canonical::digest_of;
use skills_model::{ApprovalReason, Choice, Command, Decision, Gate, RunState, Verdict};
use skills_runs::{PendingGate, gate_digest};
use skills_store::RunId;

use super::fixture::{Bench, NOT_CONFIGURED, completed, pending_step};

const SEND: &str = "
id: demo.send
inputs: { to: { type: string } }
outputs: { done: { type: any } }
steps:
  - { id: write, uses: x.write }
  - { id: send, uses: mail.send, input: { to: inputs.to }, output: { to: outputs.done } }
";

const EACH: &str = "
id: demo.each
inputs: { all: { type: array } }
outputs: { done: { type: any } }
steps:
  - { id: send, uses: mail.send, input: { to: item }, output: { to: outputs.done }, config: { foreach: { items: inputs.all, as: item } } }
";

/// A fixture with a script as it is at launch.
fn pinned() -> Bench {
    let mut bench = Bench::new();
    bench.edit("v1");
    bench.options.pins = Some(["x.write", "mail.send"].map(|id| (id.to_owned(), "v1".to_owned())).into());
    bench
}

/// A fixture whose `mail.send` requires approval each time, over a script as it is at launch.
fn confirming() -> Bench {
    let mut bench = pinned();
    bench.declare("mail.send", json!({"safety": {"requires_confirmation": true}}));
    bench
}

/// A fixture whose runs require approval before their first step, over a script as it is at launch.
fn with_policy() -> Bench {
    let mut bench = pinned();
    bench.approval = Some("require_approval id demo".to_owned());
    bench
}

/// A run of `confirming`, whose worker was lost during a call of `x.write` that must not be repeated.
async fn interrupted() -> (Bench, RunId) {
    let mut bench = confirming();
    bench.declare_unsafe("x.write");
    bench.fake.block_forever("x.write");
    let run = bench.launch(SEND, json!({"to": "ana"})).await;
    bench.work_until(&run, "write", 1).await;
    bench.fake.on("x.write", |_| Ok(json!({})));
    (bench, run)
}

impl Bench {
    /// Edits the script behind every capability.
    pub fn edit(&self, content: &str) {
        content.clone_into(&mut self.fake.script.lock().unwrap());
    }

    /// Replaces the address of the service of every capability.
    fn move_service(&self, address: &str) {
        address.clone_into(&mut self.fake.address.lock().unwrap());
    }

    /// Updates the approval request of the waiting run to what it would execute now, as reading it does.
    pub async fn look(&self, run: &RunId) -> PendingGate {
        let at = self.engine.at_gate(run).await.unwrap().unwrap();
        let gate = Gate::human(at.step.clone(), at.inputs_digest.clone(), at.why.clone());
        self.store.command(run, Command::Ask(gate), None, None, None).await.unwrap();
        at
    }
}

async fn why(bench: &Bench, run: &RunId) -> serde_json::Value {
    match bench.record(run).await.gate {
        Some(Gate::Human { why, .. }) => json!(why),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn edited_script_requires_one_approval() {
    let bench = confirming();
    let run = bench.launch(SEND, json!({"to": "ana"})).await;
    bench.fake.on("x.write", |_| Ok(json!({})));
    bench.edit("v2");
    // The first step is behind the edit too; its yes is one to everything that changed, the second step's script too.
    assert_eq!(pending_step(&bench.work(&run).await).0, "write");
    bench.approve(&run).await;
    assert_eq!(pending_step(&bench.work(&run).await), ("send".into(), json!("confirmation")));
    bench.edit("v3");
    bench.look(&run).await;
    let explanation = why(&bench, &run).await;
    assert_eq!(
        explanation["changed"]["besides"], "the capability always requires approval",
        "both reasons in one question"
    );
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.count("send"), 1);
}

#[tokio::test]
async fn an_approval_does_not_cover_a_later_edit() {
    let bench = confirming();
    let run = bench.launch(EACH, json!({"all": ["ana", "bob"]})).await;
    assert_eq!(pending_step(&bench.work(&run).await), ("send".into(), json!("confirmation")));
    let before = bench.record(&run).await;
    bench.edit("v2");
    let at = bench.look(&run).await;
    let after = bench.record(&run).await;
    assert_eq!(at.inputs, json!([{"to": "ana"}, {"to": "bob"}]), "what would run is shown");
    assert_ne!(before.gate, after.gate);
    assert_eq!((before.since_ms, before.state), (after.since_ms, after.state), "it has waited all the time");
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
    assert_eq!(
        bench.fake.count("send[0]") + bench.fake.count("send[1]"),
        2,
        "one approval for the whole step"
    );
}

#[tokio::test]
async fn reverted_edit_is_not_a_change() {
    let bench = confirming();
    let run = bench.launch(SEND, json!({"to": "ana"})).await;
    bench.edit("v2");
    assert_eq!(pending_step(&bench.work(&run).await).0, "write");
    bench.edit("v1");
    let at = bench.look(&run).await;
    assert!(json!(at.why)["changed"]["what"].as_str().unwrap().contains("was reverted"), "{:?}", at.why);
    bench.approve(&run).await;
    assert_eq!(
        pending_step(&bench.work(&run).await),
        ("send".into(), json!("confirmation")),
        "nothing else is asked"
    );
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
}

#[tokio::test]
async fn unknown_outcome_is_decided_before_the_edited_script() {
    let (bench, run) = interrupted().await;
    bench.edit("v2");
    assert_eq!(pending_step(&bench.work(&run).await).1, json!("unknown_outcome"));
    bench.decide(&run, Verdict::Approve, Some(Choice::Rerun)).await;
    assert!(
        pending_step(&bench.work(&run).await).1["changed"].is_object(),
        "only what runs again is asked about"
    );
    bench.approve(&run).await;
    assert_eq!(pending_step(&bench.work(&run).await).0, "send");
    assert_eq!((bench.fake.count("write"), bench.record(&run).await.state), (2, RunState::WaitingForHuman));
}

async fn shown(bench: &Bench, run: &RunId) -> String {
    match bench.record(run).await.gate {
        Some(Gate::Human { inputs_digest, .. }) => inputs_digest,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn approval_covers_one_version_only() {
    let mut bench = confirming();
    bench.fake.on("x.write", |_| Ok(json!({})));
    let first = bench.launch(SEND, json!({"to": "ana"})).await;
    assert_eq!(pending_step(&bench.work(&first).await).0, "send");
    let before = shown(&bench, &first).await;
    // Launched as before, but what changed was approved at the step before.
    let edited = bench.launch(SEND, json!({"to": "ana"})).await;
    bench.edit("v2");
    assert_eq!(pending_step(&bench.work(&edited).await).0, "write");
    bench.approve(&edited).await;
    assert_eq!(pending_step(&bench.work(&edited).await), ("send".into(), json!("confirmation")));
    bench.options.pins = Some(["x.write", "mail.send"].map(|id| (id.to_owned(), "v2".to_owned())).into());
    let later = bench.launch(SEND, json!({"to": "ana"})).await;
    assert_eq!(pending_step(&bench.work(&later).await).0, "send");
    for run in [&edited, &later] {
        let decision = Decision {
            verdict: Verdict::Approve,
            step: "send".to_owned(),
            inputs_digest: before.clone(),
            choice: None,
            result: None,
        };
        bench.store.command(run, Command::Decide(decision), None, None, None).await.unwrap_err();
        assert_eq!(bench.record(run).await.state, RunState::WaitingForHuman);
    }
    assert_eq!(bench.fake.count("send"), 0, "nothing ran by an approval of the first version");
    bench.approve(&later).await;
    completed(&bench.work(&later).await);
}

#[tokio::test]
async fn a_gate_of_an_earlier_version_keeps_its_digest() {
    let bench = confirming();
    bench.fake.on("x.write", |_| Ok(json!({})));
    for covers_code in [false, true] {
        let run = bench.launch(SEND, json!({"to": "ana"})).await;
        assert_eq!(pending_step(&bench.work(&run).await).0, "send");
        let record = bench.record(&run).await;
        let call = gate_digest("send", "mail.send", &json!({"to": "ana"}));
        let earlier = if covers_code {
            let (contract, code) = (&record.contract_digest, &record.options.pins);
            digest_of(&json!({"call": call, "contract": contract, "code": code}))
        } else {
            call
        };
        assert_ne!(shown(&bench, &run).await, earlier, "what the run is attached to is covered");
        let gate = Gate::human("send", earlier.clone(), ApprovalReason::Confirmation);
        bench.store.command(&run, Command::Ask(gate), None, None, None).await.unwrap();
        assert_eq!(bench.look(&run).await.inputs_digest, earlier);
        bench.approve(&run).await;
        completed(&bench.work(&run).await);
    }
}

#[tokio::test]
async fn an_approval_applies_to_the_address_that_was_shown() {
    let bench = confirming();
    let run = bench.launch(SEND, json!({"to": "ana"})).await;
    assert_eq!(pending_step(&bench.work(&run).await), ("send".into(), json!("confirmation")));
    // The process of the approver calls another address than the worker.
    bench.move_service("https://b.example");
    let shown = bench.look(&run).await;
    bench.approve(&run).await;
    bench.move_service("");
    assert_eq!(pending_step(&bench.work(&run).await), ("send".into(), json!("confirmation")), "asked again");
    assert_eq!(bench.fake.count("send"), 0);
    assert_ne!(bench.look(&run).await.inputs_digest, shown.inputs_digest);
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
    assert_eq!(bench.fake.count("send"), 1);
}

#[tokio::test]
async fn an_approval_before_the_first_step_applies_to_the_addresses_of_all_steps() {
    let outer = "
id: demo.outer
inputs: { to: { type: string } }
steps:
  - { id: inner, uses: 'skill:demo.send', input: { to: inputs.to } }
";
    for (text, inputs) in
        [(SEND, json!({"to": "ana"})), (EACH, json!({"all": [1, 2]})), (outer, json!({"to": "ana"}))]
    {
        let mut bench = with_policy();
        bench.skill(SEND);
        let (run, executed) = bench.run(text, inputs).await;
        assert_eq!(pending_step(&executed).0, "~policy");
        let digest = shown(&bench, &run).await;
        assert_eq!(bench.engine.at_gate(&run).await.unwrap().unwrap().inputs_digest, digest);
        bench.approve(&run).await;
        // The process of the worker calls another address than that of the approver.
        bench.move_service("https://b.example");
        assert_eq!(pending_step(&bench.work(&run).await).0, "~policy", "asked again");
        assert_eq!(bench.fake.made(), []);
        let present = shown(&bench, &run).await;
        assert_ne!(present, digest);
        assert_eq!(bench.engine.at_gate(&run).await.unwrap().unwrap().inputs_digest, present);
        bench.approve(&run).await;
        completed(&bench.work(&run).await);
    }
}

#[tokio::test]
async fn an_approval_before_the_first_step_applies_after_a_signal_unless_an_address_changed() {
    let text = "
id: demo.close
steps:
  - { id: write, uses: x.write }
  - { id: ready, wait_for_signal: go }
  - { id: send, uses: mail.send, input: { to: ana } }
";
    for moves in [false, true] {
        let bench = with_policy();
        let (run, executed) = bench.run(text, json!({})).await;
        assert_eq!(pending_step(&executed).0, "~policy");
        bench.approve(&run).await;
        bench.work(&run).await;
        assert_eq!(bench.record(&run).await.state, RunState::WaitingForSignal);
        if moves {
            bench.move_service("https://b.example");
        }
        bench.signal(&run, "go", json!({})).await;
        let mut executed = bench.work(&run).await;
        if moves {
            assert_eq!(pending_step(&executed).0, "~policy", "asked again");
            assert_eq!(bench.fake.count("send"), 0);
            bench.approve(&run).await;
            executed = bench.work(&run).await;
        }
        completed(&executed);
        assert_eq!((bench.fake.count("write"), bench.fake.count("send")), (1, 1));
    }
}

#[tokio::test]
async fn a_question_of_an_earlier_version_before_the_first_step_is_replaced() {
    for covers in 0..3 {
        let bench = with_policy();
        let (run, executed) = bench.run(SEND, json!({"to": "ana"})).await;
        assert_eq!(pending_step(&executed).0, "~policy");
        let (record, at) = (bench.record(&run).await, bench.engine.at_gate(&run).await.unwrap().unwrap());
        let call = gate_digest("~policy", "", &at.inputs);
        let mut covered =
            json!({"call": call, "contract": record.contract_digest, "code": record.options.pins});
        let earlier = match covers {
            0 => call,
            1 => digest_of(&covered),
            _ => {
                covered["target"] = json!(digest_of(record.target.as_ref().unwrap()));
                digest_of(&covered)
            }
        };
        let gate = Gate::human("~policy", earlier, at.why);
        bench.store.command(&run, Command::Ask(gate), None, None, None).await.unwrap();
        let present = bench.engine.at_gate(&run).await.unwrap().unwrap();
        assert_eq!(present.inputs_digest, at.inputs_digest, "it is not approved as it was recorded");
        bench.approve(&run).await;
        assert_eq!(pending_step(&bench.work(&run).await).0, "~policy", "asked again");
        assert_eq!(bench.fake.made(), []);
        bench.approve(&run).await;
        completed(&bench.work(&run).await);
    }
}

#[tokio::test]
async fn own_approval_does_not_answer_the_question_for_another_address() {
    for (text, inputs) in [(SEND, json!({"to": "ana"})), (EACH, json!({"all": [1, 2]}))] {
        let bench = confirming();
        let run = bench.launch(text, inputs).await;
        assert_eq!(pending_step(&bench.work(&run).await).0, "send");
        bench.move_service("https://b.example");
        let own = bench.look(&run).await.inputs_digest;
        bench.approve(&run).await;
        bench.move_service("");
        assert_eq!(pending_step(&bench.work(&run).await).0, "send", "asked again");
        assert_ne!(shown(&bench, &run).await, own);
        bench.move_service("https://b.example");
        let at = bench.engine.at_gate(&run).await.unwrap().unwrap();
        assert_eq!(at.inputs_digest, own, "not what the worker asked");
    }
}

#[tokio::test]
async fn a_question_without_bindings_is_replaced_when_something_can_be_called() {
    let bench = confirming();
    bench.move_service(NOT_CONFIGURED);
    let run = bench.launch(SEND, json!({"to": "ana"})).await;
    assert_eq!(pending_step(&bench.work(&run).await).0, "send");
    let before = shown(&bench, &run).await;
    bench.move_service("https://a.example");
    assert_ne!(bench.look(&run).await.inputs_digest, before);
    bench.approve(&run).await;
    bench.move_service("https://b.example");
    assert_eq!(pending_step(&bench.work(&run).await), ("send".into(), json!("confirmation")), "asked again");
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
}

#[tokio::test]
async fn a_rerun_applies_to_the_address_that_was_shown() {
    let (bench, run) = interrupted().await;
    assert_eq!(pending_step(&bench.work(&run).await).1, json!("unknown_outcome"));
    let before = shown(&bench, &run).await;
    bench.move_service("https://b.example");
    assert_ne!(bench.look(&run).await.inputs_digest, before);
    bench.decide(&run, Verdict::Approve, Some(Choice::Rerun)).await;
    bench.move_service("https://a.example");
    assert_eq!(pending_step(&bench.work(&run).await).1, json!("unknown_outcome"), "asked again");
    bench.decide(&run, Verdict::Approve, Some(Choice::Rerun)).await;
    assert_eq!(pending_step(&bench.work(&run).await).0, "send");
    assert_eq!(bench.fake.count("write"), 2);
}

#[tokio::test]
async fn a_choice_that_executes_nothing_applies_whatever_the_address_is_now() {
    for choice in [Choice::Skip, Choice::Happened] {
        let (bench, run) = interrupted().await;
        assert_eq!(pending_step(&bench.work(&run).await).1, json!("unknown_outcome"));
        match choice {
            Choice::Happened => bench.happened(&run, json!({})).await,
            _ => drop(bench.decide(&run, Verdict::Approve, Some(choice)).await),
        }
        bench.move_service("https://b.example");
        assert_eq!(pending_step(&bench.work(&run).await), ("send".into(), json!("confirmation")), "{choice}");
        assert_eq!(bench.fake.count("write"), 1);
    }
}

#[tokio::test]
async fn a_question_of_an_earlier_version_about_an_unknown_outcome_can_be_decided() {
    let (bench, run) = interrupted().await;
    bench.work(&run).await;
    let call = gate_digest("write", "x.write", &json!({}));
    let earlier = digest_of(&json!({"call": call, "lost_attempt": 1}));
    let gate = Gate::human("write", earlier.clone(), ApprovalReason::UnknownOutcome);
    bench.store.command(&run, Command::Ask(gate), None, None, None).await.unwrap();
    assert_eq!(bench.look(&run).await.inputs_digest, earlier);
    bench.decide(&run, Verdict::Approve, Some(Choice::Rerun)).await;
    assert_eq!(pending_step(&bench.work(&run).await).0, "send");
}

#[tokio::test]
async fn the_rest_of_an_approved_step_requires_approval_at_another_address() {
    for (uses, inputs, first) in
        [(SEND, json!({"to": "ana"}), "send"), (EACH, json!({"all": [1, 2]}), "send[0]")]
    {
        let mut bench = confirming();
        let shape = json!({"safety": {"requires_confirmation": true},
                           "properties": {"side_effects": true, "idempotent": true}});
        bench.declare("mail.send", shape);
        bench.fake.on("x.write", |_| Ok(json!({})));
        let run = bench.launch(uses, inputs).await;
        assert_eq!(pending_step(&bench.work(&run).await), ("send".into(), json!("confirmation")));
        bench.fake.block_forever("mail.send");
        bench.approve(&run).await;
        bench.work_until(&run, first, 1).await;
        bench.fake.heals("mail.send");
        bench.move_service("https://b.example");
        assert_eq!(pending_step(&bench.work(&run).await), ("send".into(), json!("confirmation")), "{uses}");
        assert_eq!(bench.fake.count(first), 1);
        bench.approve(&run).await;
        completed(&bench.work(&run).await);
        assert_eq!(bench.fake.count(first), 2);
    }
}

#[tokio::test]
async fn a_question_of_an_earlier_version_without_the_bindings_can_be_approved() {
    let bench = confirming();
    let run = bench.launch(SEND, json!({"to": "ana"})).await;
    assert_eq!(pending_step(&bench.work(&run).await), ("send".into(), json!("confirmation")));
    let (record, at) = (bench.record(&run).await, bench.engine.at_gate(&run).await.unwrap().unwrap());
    let call = gate_digest("send", "mail.send", &at.inputs);
    let former = digest_of(
        &json!({"call": call, "contract": record.contract_digest, "code": record.options.pins.clone().unwrap()}),
    );
    let gate = Gate::human("send".to_owned(), former.clone(), at.why);
    bench.store.command(&run, Command::Ask(gate), None, None, None).await.unwrap();
    assert_eq!(bench.engine.at_gate(&run).await.unwrap().unwrap().inputs_digest, former);
    bench.approve(&run).await;
    completed(&bench.work(&run).await);
}
