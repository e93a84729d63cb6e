//! Rules for a skill hold wherever it is executed: alone, through the contracts of others, and by its capabilities; at
//! the launch, when a run continues, and when a worker claims it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use skills_api::operations::{Principal, Scope};
use skills_api::{
    CapabilityRequest, Code, Error, ExecutionOptions, Local, RunClient as _, RunCommand, SessionClient as _,
    SettingsChange,
};
use skills_model::{ApprovalReason, Gate, RunState, Verdict};
use skills_session::ToolFailure;
use skills_skill::contract::Conformance;
use skills_store::RunRecord;

use crate::runs_place::{TestHome, attachment, decide, object, request, resume, wait_for_completion};
use crate::session_place;

const POLICY: &str = "home/.config/skill-workbench/policy.yaml";

/// The fixtures, and skills that reach `ledger` through others: `outer` runs `wrap`, which runs it, `borrow` calls its
/// capability, `later` waits for a signal first, and `beside` is a sidecar.
fn place() -> TestHome {
    let place = TestHome::new();
    let skill = |id: &str, more: &str, steps: &str| {
        let text =
            format!("---\nname: {id}\ndescription: Does {id} things. Use for {id}.\n{more}---\n# {id}\n");
        place.write(&format!("skills/{id}/SKILL.md"), &text);
        let contract = format!(
            "id: test.{id}\nversion: 1.0.0\ndescription: Does {id} things.\ninputs: {{}}\noutputs: {{}}\nsteps:\n{steps}"
        );
        place.write(&format!("skills/{id}/skill.yaml"), &contract);
    };
    skill("wrap", "", "  - id: inner\n    uses: skill:ledger\n    input: {amounts: [1]}\n");
    skill("outer", "", "  - id: wrap\n    uses: skill:wrap\n");
    let book = "uses: test.ledger.book\n    input: {amount: 1, account: \"1\"}\n";
    skill("borrow", "", &format!("  - id: book\n    {book}"));
    skill(
        "later",
        "",
        &format!(
            "  - id: wait\n    wait_for_signal: go\n  - id: book\n    config: {{depends_on: [wait]}}\n    {book}"
        ),
    );
    let attached = "metadata:\n  classification:\n    role: sidecar\n    invocation: attach\n    attach_targets: [run]\n";
    skill("beside", attached, &format!("  - id: book\n    {book}"));
    place.write(POLICY, "{}\n");
    place
}

/// Everything that reaches `ledger`, with the state in which it waits for the booking.
const WAYS: [&str; 5] = ["ledger", "wrap", "outer", "borrow", "capability:test.ledger.book"];

async fn launch_labeled(core: &Local, way: &str, env: Option<&str>) -> Result<RunRecord, Error> {
    let labels = env.map(|env| ("env".to_owned(), env.to_owned())).into_iter().collect();
    launch_with(core, way, ExecutionOptions { labels, ..ExecutionOptions::default() }).await
}

async fn launch_with(core: &Local, way: &str, options: ExecutionOptions) -> Result<RunRecord, Error> {
    let launched = if let Some(capability) = way.strip_prefix("capability:") {
        let mut request = CapabilityRequest {
            capability: capability.to_owned(),
            inputs: object(json!({ "amount": 1, "account": "1" })),
            started_by: Some("ana".to_owned()),
            ..CapabilityRequest::default()
        };
        request.options = options;
        core.execute_capability(request).await?
    } else {
        let inputs = if way == "ledger" { json!({ "amounts": [1] }) } else { json!({}) };
        let mut request = request(way, inputs);
        request.options = options;
        core.launch(request).await?
    };
    Ok(launched.run)
}

async fn launch(core: &Local, way: &str) -> Result<RunRecord, Error> {
    launch_labeled(core, way, None).await
}

async fn waiting(core: &Local, way: &str) -> RunRecord {
    waiting_with(core, way, ExecutionOptions::default()).await
}

async fn waiting_with(core: &Local, way: &str, options: ExecutionOptions) -> RunRecord {
    let run = launch_with(core, way, options).await.unwrap();
    let run = wait_for_completion(core, &run.id.0).await;
    assert_eq!(run.state, RunState::WaitingForHuman, "{way}: {:?}", run.error);
    run
}

fn is_policy_approval(run: &RunRecord) -> bool {
    matches!(&run.gate, Some(Gate::Human { why: ApprovalReason::Policy { .. }, .. }))
}

fn replay() -> RunCommand {
    RunCommand::Replay { checkpoint: None, by: None, since_ms: None }
}

fn fork() -> RunCommand {
    RunCommand::Fork { checkpoint: None, by: None, since_ms: None }
}

fn signal() -> RunCommand {
    RunCommand::Signal { name: "go".to_owned(), payload: Value::Null, by: None, since_ms: None }
}

fn is_forbidden(what: &str, refused: Option<Error>) {
    let error = refused.unwrap_or_else(|| panic!("{what}: it was not refused"));
    assert_eq!(error.code, Code::Forbidden, "{what}: {error}");
    assert!(error.message.contains("ledger"), "{what}: it names the skill: {error}");
}

/// Every command that starts or continues execution.
#[tokio::test(flavor = "multi_thread")]
async fn rules_apply_to_every_execution_of_a_skill() {
    let place = place();
    let core = place.open().await;
    for way in WAYS {
        place.write(POLICY, "{}\n");
        let stopped = waiting(&core, way).await;
        let paused = core.send_command(&stopped.id.0, fork()).await.unwrap().run;
        let pending = [launch(&core, way).await.unwrap(), launch(&core, way).await.unwrap()];
        for (policy, pending) in
            ["deny: [{id: ledger}]\n", "require_approval: [{id: ledger}]\n"].iter().zip(pending)
        {
            place.write(POLICY, policy);
            let is_denied = policy.starts_with("deny");
            for (name, run, command) in
                [("replay", &stopped, replay()), ("fork", &stopped, fork()), ("resume", &paused, resume())]
            {
                let refused = core.send_command(&run.id.0, command).await.err();
                is_forbidden(&format!("{name} of {way} with {policy}"), refused);
            }
            let claimed = wait_for_completion(&core, &pending.id.0).await;
            assert_eq!(claimed.state, RunState::Failed, "claim of {way} with {policy}");
            assert_eq!(claimed.error.as_ref().unwrap()["code"], "forbidden", "{way}");
            if is_denied {
                is_forbidden(&format!("launch of {way}"), launch(&core, way).await.err());
                let approve = decide(&stopped, Verdict::Approve, "bo");
                is_forbidden(
                    &format!("approve {way}"),
                    core.send_command(&stopped.id.0, approve).await.err(),
                );
            } else {
                let launched = waiting(&core, way).await;
                assert!(is_policy_approval(&launched), "{way}: {:?}", launched.gate);
                // An approval is what the rule requires.
                core.send_command(&stopped.id.0, decide(&stopped, Verdict::Approve, "bo")).await.unwrap();
                let done = wait_for_completion(&core, &stopped.id.0).await;
                assert_eq!(done.state, RunState::Completed, "{way}: {:?}", done.error);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_continues_no_run_that_the_policy_forbids() {
    let place = place();
    let core = place.open().await;
    let run = launch(&core, "later").await.unwrap();
    let run = wait_for_completion(&core, &run.id.0).await;
    assert_eq!(run.state, RunState::WaitingForSignal);
    for policy in ["deny: [{id: ledger}]\n", "require_approval: [{id: later}, {id: ledger}]\n"] {
        place.write(POLICY, policy);
        let error = core.send_command(&run.id.0, signal()).await.unwrap_err();
        assert_eq!(error.code, Code::Forbidden, "{policy}: {error}");
    }
    place.write(POLICY, "{}\n");
    core.send_command(&run.id.0, signal()).await.unwrap();
    place.write(POLICY, "deny: [{id: later}]\n");
    let claimed = wait_for_completion(&core, &run.id.0).await;
    assert_eq!((claimed.state, &claimed.error.unwrap()["code"]), (RunState::Failed, &json!("forbidden")));
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_of_a_step_does_not_approve_the_run() {
    let place = place();
    place
        .write("skills/between/SKILL.md", "---\nname: between\ndescription: Waits. Use for waits.\n---\nx\n");
    let contract = "id: test.between\nversion: 1.0.0\ndescription: Waits.\ninputs: {}\noutputs: {}\nsteps:\n  \
        - id: book\n    uses: test.ledger.book\n    input: {amount: 1, account: \"1\"}\n  - id: wait\n    \
        wait_for_signal: go\n    config: {depends_on: [book]}\n";
    place.write("skills/between/skill.yaml", contract);
    let core = place.open().await;
    let run = waiting(&core, "between").await;
    core.send_command(&run.id.0, decide(&run, Verdict::Approve, "bo")).await.unwrap();
    let run = wait_for_completion(&core, &run.id.0).await;
    assert_eq!(run.state, RunState::WaitingForSignal, "{:?}", run.error);
    place.write(POLICY, "require_approval: [{id: between}]\n");
    let error = core.send_command(&run.id.0, signal()).await.unwrap_err();
    assert_eq!(error.code, Code::Forbidden, "{error}");
    place.write(POLICY, "{}\n");
    core.send_command(&run.id.0, signal()).await.unwrap();
    assert_eq!(wait_for_completion(&core, &run.id.0).await.state, RunState::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_apply_to_attached_skills() {
    let place = place();
    let core = place.open().await;
    let target = waiting(&core, "ledger").await;
    place.write(POLICY, "deny: [{id: ledger}]\n");
    let attached = core.attach(attachment("beside", "run", &target.id.0, json!({}))).await;
    is_forbidden("attach", attached.err());
    place.write(POLICY, "require_approval: [{id: ledger}]\n");
    let attached = core.attach(attachment("beside", "run", &target.id.0, json!({}))).await.unwrap();
    assert!(is_policy_approval(&attached.execution), "{:?}", attached.execution.gate);
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_of_a_nested_skill_count() {
    fn key(name: &str) -> Principal {
        Principal { name: name.to_owned(), scopes: BTreeSet::from([Scope::Read, Scope::Decide]) }
    }
    let place = place();
    let core = place.open().await;
    let approve = async |run: &RunRecord, by: &str| {
        core.command_as(&run.id.0, decide(run, Verdict::Approve, by), Some(key(by))).await
    };
    for (policy, refused, accepted) in [
        ("approvals: [{id: ledger, not_by: starter}]\n", "ana", &["bo"][..]),
        ("approvals: [{id: ledger, of: [boss]}, {id: outer, need: 1}]\n", "ana", &["boss"]),
        ("approvals: [{id: outer, not_by: starter}, {id: ledger, need: 2}]\n", "ana", &["bo", "cy"]),
    ] {
        place.write(POLICY, policy);
        let run = waiting(&core, "outer").await;
        let error = approve(&run, refused).await.unwrap_err();
        assert_eq!(error.code, Code::Forbidden, "{policy}: {error}");
        for by in accepted {
            let now = core.run(&run.id.0).await.unwrap().run;
            assert_eq!(now.state, RunState::WaitingForHuman, "{policy}");
            approve(&now, by).await.unwrap();
        }
        assert_eq!(core.run(&run.id.0).await.unwrap().run.state, RunState::Pending, "{policy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_of_a_capability_run_are_compared() {
    let place = place();
    let core = place.open().await;
    let capability = "capability:test.ledger.book";
    let other = launch_labeled(&core, capability, Some("prod")).await.unwrap();
    for policy in [
        "deny: [{label: env=prod}]\n",
        "deny: [{id: \"capability:*\", label: env=prod}]\n",
        "deny: [{id: ledger, label: env=prod}]\n",
    ] {
        place.write(POLICY, policy);
        let error = launch_labeled(&core, capability, Some("prod")).await.unwrap_err();
        assert_eq!(error.code, Code::Forbidden, "{policy}: {error}");
        launch_labeled(&core, capability, Some("test")).await.unwrap();
    }
    let error = core.send_command(&other.id.0, fork()).await.unwrap_err();
    assert_eq!(error.code, Code::Forbidden, "{error}");
    for policy in
        ["require_approval: [{label: env=prod}]\n", "require_approval: [{id: ledger, label: env}]\n"]
    {
        place.write(POLICY, policy);
        let run = launch_labeled(&core, capability, Some("prod")).await.unwrap();
        let run = wait_for_completion(&core, &run.id.0).await;
        assert!(is_policy_approval(&run), "{policy}: {:?}", run.gate);
    }
}

#[tokio::test]
async fn a_script_in_a_session_collects_one_confirmation() {
    let place = session_place::TestHome::new();
    place.file("alpha/scripts/a.sh", "echo hello\n");
    let policy = place.home().join(".config/skill-workbench/policy.yaml");
    std::fs::create_dir_all(policy.parent().unwrap()).unwrap();
    let core = place.core().await;
    let session = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    session_place::call(&core, &session, "skills.load", json!({ "names": ["alpha"] })).await;
    let run = async || {
        let answer =
            session_place::call(&core, &session, "skills.run_script", json!({ "path": "scripts/a.sh" }))
                .await;
        answer.result.unwrap_err()
    };
    for text in ["{id: alpha, need: 2}", "{id: alpha, not_by: starter}", "{of: [boss]}"] {
        std::fs::write(&policy, format!("approvals: [{text}]\n")).unwrap();
        let refused = run().await;
        assert_eq!(refused.code, ToolFailure::SafetyDenied, "{text}");
        assert!(refused.message.contains("skills run alpha"), "{text}: {}", refused.message);
    }
    std::fs::write(&policy, "approvals: [{id: beta, need: 2}]\nrequire_approval: [{id: alpha}]\n").unwrap();
    let refused = run().await;
    assert!(
        !refused.message.contains("skills run alpha"),
        "its confirmation is the approval: {}",
        refused.message
    );
    std::fs::write(&policy, "deny: [{id: alpha}]\n").unwrap();
    assert_eq!(run().await.code, ToolFailure::SafetyDenied);
    std::fs::remove_file(place.root().join("alpha/SKILL.md")).unwrap();
    let reopened = place.core().await;
    let script = json!({ "path": "scripts/a.sh" });
    let removed =
        session_place::call(&reopened, &session, "skills.run_script", script).await.result.unwrap_err();
    assert_eq!(removed.code, ToolFailure::SafetyDenied, "{}", removed.message);
    assert!(removed.message.contains("no longer in the catalog"), "{}", removed.message);
}

#[tokio::test]
async fn a_name_that_is_a_location_does_not_change_the_policy_of_a_session() {
    let place = session_place::TestHome::new();
    place.file("alpha/scripts/a.sh", "echo hello\n");
    let location = place.root().join("alpha/SKILL.md");
    let hostile = format!("---\nname: {}\ndescription: Formats tables.\n---\nx\n", location.display());
    place.file("fmt/SKILL.md", &hostile);
    let policy = place.home().join(".config/skill-workbench/policy.yaml");
    std::fs::create_dir_all(policy.parent().unwrap()).unwrap();
    let core = place.core().await;
    let session = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    session_place::call(&core, &session, "skills.load", json!({ "names": ["alpha"] })).await.result.unwrap();
    for text in ["approvals: [{id: alpha, need: 2}]\n", "deny: [{id: alpha}]\n"] {
        std::fs::write(&policy, text).unwrap();
        let script = json!({ "path": "scripts/a.sh" });
        let answer = session_place::call(&core, &session, "skills.run_script", script).await;
        let error = answer.result.unwrap_err();
        assert_eq!(error.code, ToolFailure::SafetyDenied, "{text}: {}", error.message);
        assert!(error.message.contains("alpha"), "{text}: {}", error.message);
    }
}

#[tokio::test]
async fn approvals_of_a_contract_hold_for_the_scripts_of_a_session() {
    let place = session_place::TestHome::new();
    let skills = [
        ("alpha", "approvals: {need: 2}\n", Some("skills run alpha")),
        ("beta", "approvals: {not_by: starter}\n", Some("skills run beta")),
        ("broken", "approvals: two\n", Some("the contract of broken has errors")),
        ("gamma", "approvals: {need: 1}\n", None),
    ];
    for (id, approvals, _) in skills {
        place.skill(id, "# Body\n\nUse it well.\n");
        place.file(&format!("{id}/scripts/a.sh"), "echo hello\n");
        let contract = format!("id: test.{id}\n{approvals}steps:\n  - id: one\n    uses: test.one\n");
        place.file(&format!("{id}/skill.yaml"), &contract);
    }
    let core = place.core().await;
    let session = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    for (id, _, refused) in skills {
        session_place::call(&core, &session, "skills.load", json!({ "names": [id] })).await;
        let script = json!({ "path": "scripts/a.sh" });
        let answer = session_place::call(&core, &session, "skills.run_script", script).await;
        let error = answer.result.unwrap_err();
        match refused {
            Some(why) => assert!(error.message.contains(why), "{id}: {}", error.message),
            None => assert!(!error.message.contains("approvals"), "{id}: {}", error.message),
        }
        let is_refused = error.code != ToolFailure::ConfirmationRequired;
        assert!(is_refused || refused.is_none(), "{id}: {}", error.message);
    }
}

/// Trust counts when a run continues, for its skill and for those that it runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_does_not_continue_after_trust_in_its_skills_was_revoked() {
    fn is_untrusted(what: &str, refused: Option<Error>) {
        let error = refused.unwrap_or_else(|| panic!("{what}: it was not refused"));
        assert_eq!(error.code, Code::Untrusted, "{what}: {error}");
        assert!(error.message.contains("`skills trust "), "{what}: {error}");
    }
    let mut place = place();
    let core = place.open().await;
    let mut runs = Vec::new();
    for way in ["ledger", "wrap", "outer"] {
        let stopped = waiting(&core, way).await;
        let paused = core.send_command(&stopped.id.0, fork()).await.unwrap().run;
        runs.push((way, stopped, paused, launch(&core, way).await.unwrap()));
    }
    let later = launch(&core, "later").await.unwrap();
    assert_eq!(wait_for_completion(&core, &later.id.0).await.state, RunState::WaitingForSignal);
    place.config.trust = ["wrap", "outer"].map(|id| place.path(&format!("skills/{id}"))).to_vec();
    let core = place.open().await;
    is_untrusted("signal", core.send_command(&later.id.0, signal()).await.err());
    for (way, stopped, paused, pending) in &runs {
        for (name, run, command) in [
            ("approve", stopped, decide(stopped, Verdict::Approve, "bo")),
            ("replay", stopped, replay()),
            ("fork", stopped, fork()),
            ("resume", paused, resume()),
        ] {
            is_untrusted(&format!("{name} of {way}"), core.send_command(&run.id.0, command).await.err());
        }
        let claimed = wait_for_completion(&core, &pending.id.0).await;
        assert_eq!(claimed.state, RunState::Failed, "claim of {way}");
        assert_eq!(claimed.error.unwrap()["code"], "untrusted", "claim of {way}");
        core.send_command(&stopped.id.0, decide(stopped, Verdict::Deny, "bo")).await.unwrap();
        core.send_command(&paused.id.0, RunCommand::Cancel { by: None }).await.unwrap();
    }
    place.config.trust = vec![place.path("skills")];
    let core = place.open().await;
    for (way, _, _, pending) in &runs {
        core.send_command(&pending.id.0, resume()).await.unwrap();
        let again = wait_for_completion(&core, &pending.id.0).await;
        assert_eq!(again.state, RunState::WaitingForHuman, "{way}: {:?}", again.error);
    }
}

/// Nothing that appears in a root, or disappears from it, exempts a run from the rules for what it executes.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_subject_to_the_rules_for_what_was_launched() {
    let place = place();
    place.write("skills/call/SKILL.md", "---\nname: call\ndescription: Calls. Use for calls.\n---\n# call\n");
    let call = "id: test.call\nversion: 1.0.0\ndescription: Calls.\ninputs: {}\noutputs: {}\nsteps:\n  - id: inner\n    uses: skill:test.ledger\n    input: {amounts: [1]}\n";
    place.write("skills/call/skill.yaml", call);
    let core = place.open().await;
    let mut runs = Vec::new();
    for way in ["call", "capability:test.ledger.book", "outer"] {
        runs.push((way, waiting(&core, way).await));
    }
    let is_refused = async |what: &str| {
        let core = place.open().await;
        for (way, run) in &runs {
            for policy in ["deny: [{domain: test}, {id: ledger}]\n", "deny: [{root: \"*skills\"}]\n"] {
                place.write(POLICY, policy);
                for (name, command) in
                    [("approve", decide(run, Verdict::Approve, "bo")), ("replay", replay()), ("fork", fork())]
                {
                    let refused = core.send_command(&run.id.0, command).await.err();
                    let error = refused.unwrap_or_else(|| panic!("{name} of {way} after {what}: {policy}"));
                    assert_eq!(error.code, Code::Forbidden, "{name} of {way} after {what}: {error}");
                }
            }
            place.write(POLICY, "approvals: [{id: [ledger, \"capability:*\"], need: 2}]\n");
            // The approval of the same person counts once.
            let approved = core.send_command(&run.id.0, decide(run, Verdict::Approve, "bo")).await;
            let now = core.run(&run.id.0).await.unwrap().run;
            assert_eq!(now.state, RunState::WaitingForHuman, "{way} after {what}: {approved:?}");
        }
    };
    is_refused("the launch").await;
    let bundle = |id: &str| format!("---\nname: {id}\ndescription: Other. Use for others.\n---\n# {id}\n");
    place.write("skills/capability:test.ledger.book/SKILL.md", &bundle("capability"));
    place.write("skills/test.ledger/SKILL.md", &bundle("test-ledger"));
    is_refused("skills of the same names appeared").await;
    for id in ["outer", "wrap", "call"] {
        std::fs::rename(place.path(&format!("skills/{id}")), place.path(&format!("was-{id}"))).unwrap();
    }
    is_refused("the skills were removed").await;
    // Of a removed skill, more is known than its id.
    place.write(POLICY, "deny: [{id: wrap, role: procedure}]\n");
    let outer = &runs[2].1;
    let refused = core.send_command(&outer.id.0, decide(outer, Verdict::Approve, "cy")).await.unwrap_err();
    assert_eq!(refused.code, Code::Forbidden, "{refused}");
}

/// Adds the bundle `other` with a binding for `ledger`'s capability.
fn write_other_binding(place: &TestHome, conformance: &str) {
    place.write(
        "skills/other/SKILL.md",
        "---\nname: other\ndescription: Books. Use for books.\n---\n# other\n",
    );
    let binding =
        "id: aa-book\ncapability: test.ledger.book\nservice: other\nprotocol: script\noperation: book.sh\n";
    let metadata = format!("metadata: {{default: true, conformance_profile: {conformance}}}\n");
    place.write("skills/other/bindings/aa-book.yaml", &format!("{binding}{metadata}"));
    place.write("skills/other/scripts/book.sh", "cat > /dev/null; echo '{\"entry\": \"by other\"}'\n");
}

/// Nor can the options of a run avoid a rule for the bundle that they lead to.
#[tokio::test(flavor = "multi_thread")]
async fn rules_for_a_bundle_apply_to_bindings_that_only_options_permit() {
    let place = place();
    write_other_binding(&place, "experimental");
    place.write(POLICY, "require_approval: [{id: other}]\n");
    let core = place.open().await;
    for way in ["borrow", "outer", "capability:test.ledger.book"] {
        let run = waiting(&core, way).await;
        assert!(!is_policy_approval(&run), "{way}: {:?}", run.gate);
        let conformance = Some(Conformance::Experimental);
        let options = ExecutionOptions { conformance, ..ExecutionOptions::default() };
        let run = waiting_with(&core, way, options).await;
        assert!(is_policy_approval(&run), "{way}: {:?}", run.gate);
        let subjects = &run.options.policy_subjects;
        assert!(subjects.iter().any(|subject| subject.id == "other"), "{way}: {subjects:?}");
    }
}

/// Code of a denied bundle is never executed; the bindings of others still are.
#[tokio::test(flavor = "multi_thread")]
async fn rules_for_a_bundle_apply_to_its_bindings() {
    let place = place();
    write_other_binding(&place, "standard");
    place.write(POLICY, "require_approval: [{id: other}]\n");
    let core = place.open().await;
    let run = waiting(&core, "borrow").await;
    assert!(is_policy_approval(&run), "{:?}", run.gate);
    place.write(POLICY, "deny: [{id: other}]\n");
    let run = waiting(&core, "capability:test.ledger.book").await;
    core.send_command(&run.id.0, decide(&run, Verdict::Approve, "bo")).await.unwrap();
    let done = wait_for_completion(&core, &run.id.0).await;
    assert_eq!(done.state, RunState::Completed, "{:?}", done.error);
    let outputs = core.run(&run.id.0).await.unwrap();
    assert!(!format!("{outputs:?}").contains("by other"), "{outputs:?}");
}

/// A definition decides about approvals, gates and default inputs: that of a bundle counts only if it is trusted.
#[tokio::test(flavor = "multi_thread")]
async fn definition_of_an_untrusted_bundle_is_not_used() {
    let mut place = place();
    place.write(
        "skills/aaa/SKILL.md",
        "---\nname: aaa\ndescription: Formats tables. Use for tables.\n---\nx\n",
    );
    let hostile = "id: test.ledger.book\nversion: 1.0.0\ndescription: Formats a table.\n";
    place.write("skills/aaa/capabilities/book.yaml", hostile);
    let trusted = ["borrow", "ledger"].map(|id| place.path(&format!("skills/{id}")));
    place.config.trust = trusted[..1].to_vec();
    let core = place.open().await;
    for way in ["borrow", "capability:test.ledger.book"] {
        let error = launch(&core, way).await.unwrap_err();
        assert_eq!(error.code, Code::Untrusted, "{way}: {error}");
        assert!(error.message.contains("`skills trust aaa`"), "{way}: {error}");
    }
    place.config.trust = trusted.to_vec();
    let core = place.open().await;
    let run = waiting(&core, "borrow").await;
    assert!(
        matches!(&run.gate, Some(Gate::Human { why: ApprovalReason::Confirmation, .. })),
        "{:?}",
        run.gate
    );
}

/// The same holds when a run continues: with the definition that it was launched with, which another may have replaced.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_does_not_continue_after_trust_in_a_definition_was_revoked() {
    let mut place = place();
    let store = place.path("runs.db");
    place.config.store = Some(format!("sqlite:{}", store.display()));
    place.write(
        "skills/aaa/SKILL.md",
        "---\nname: aaa\ndescription: Formats tables. Use for tables.\n---\nx\n",
    );
    let text = std::fs::read_to_string(place.path("skills/ledger/capabilities/book.yaml")).unwrap();
    place.write("skills/aaa/capabilities/book.yaml", &text.replacen("description:", "description: Also", 1));
    let bundle = |id: &str| place.path(&format!("skills/{id}"));
    let (own, aaa) = ([bundle("borrow"), bundle("ledger")], bundle("aaa"));
    place.config.trust = [&own[..], std::slice::from_ref(&aaa)].concat();
    let core = place.open().await;
    let mut runs = Vec::new();
    for way in ["borrow", "capability:test.ledger.book"] {
        let run = waiting(&core, way).await;
        assert_eq!(
            run.options.definitions.as_ref().unwrap()["test.ledger.book"],
            aaa.to_string_lossy(),
            "{way}"
        );
        runs.push((way, run));
    }
    place.config.trust = own.to_vec();
    for of_earlier_version in [false, true] {
        if of_earlier_version {
            let other = rusqlite::Connection::open(&store).unwrap();
            let changed =
                other.execute("UPDATE runs SET options = json_remove(options, '$.definitions')", []);
            assert!(changed.unwrap() > 0);
        }
        let core = place.open().await;
        for (way, run) in &runs {
            for (name, command) in
                [("approve", decide(run, Verdict::Approve, "bo")), ("replay", replay()), ("fork", fork())]
            {
                let refused = core.send_command(&run.id.0, command).await.err();
                let error = refused.unwrap_or_else(|| panic!("{name} of {way}: it was not refused"));
                assert_eq!(error.code, Code::Untrusted, "{name} of {way}: {error}");
                assert!(error.message.contains("`skills trust aaa`"), "{name} of {way}: {error}");
            }
        }
    }
    place.config.trust.push(aaa);
    let core = place.open().await;
    for (way, run) in &runs {
        core.send_command(&run.id.0, decide(run, Verdict::Approve, "bo")).await.unwrap();
        let done = wait_for_completion(&core, &run.id.0).await;
        assert_eq!(done.state, RunState::Completed, "{way}: {:?}", done.error);
    }
}

/// A run of an earlier version, which did not record its definitions, continues only with a present one that is trusted.
#[tokio::test(flavor = "multi_thread")]
async fn run_without_any_definition_does_not_continue() {
    let mut place = place();
    let store = place.path("runs.db");
    place.config.store = Some(format!("sqlite:{}", store.display()));
    let trusted = ["borrow", "ledger"].map(|id| place.path(&format!("skills/{id}")));
    place.config.trust = trusted.to_vec();
    let core = place.open().await;
    let mut runs = Vec::new();
    for way in ["borrow", "capability:test.ledger.book"] {
        runs.push((way, waiting(&core, way).await));
    }
    let other = rusqlite::Connection::open(&store).unwrap();
    let changed =
        other.execute("UPDATE runs SET options = json_remove(options, '$.definitions')", []).unwrap();
    assert_eq!(changed, runs.len());
    drop(other);
    let definition = "skills/ledger/capabilities/book.yaml";
    let text = std::fs::read_to_string(place.path(definition)).unwrap();
    place.write(definition, &text.replacen("description:", "description: Also", 1));
    for (trust, expected) in [(&trusted[..], None), (&trusted[..1], Some("`skills trust ledger`"))] {
        place.config.trust = trust.to_vec();
        let core = place.open().await;
        for (way, run) in &runs {
            for (name, command) in [("replay", replay()), ("fork", fork())] {
                let refused = core.send_command(&run.id.0, command).await.err();
                let code = refused.as_ref().map(|error| error.code);
                assert_eq!(code, expected.map(|_| Code::Untrusted), "{name} of {way}: {refused:?}");
                if let (Some(error), Some(expected)) = (refused, expected) {
                    assert!(error.message.contains(expected), "{name} of {way}: {error}");
                }
            }
        }
    }
    std::fs::remove_file(place.path(definition)).unwrap();
    place.config.trust = trusted.to_vec();
    let core = place.open().await;
    for (way, run) in &runs {
        for (name, command) in [("replay", replay()), ("fork", fork())] {
            let refused = core.send_command(&run.id.0, command).await.err();
            let error = refused.unwrap_or_else(|| panic!("{name} of {way}: it was not refused"));
            assert_eq!(error.code, Code::Untrusted, "{name} of {way}: {error}");
            assert!(error.message.contains("test.ledger.book"), "{name} of {way}: {error}");
        }
    }
}

/// Forks of a run keep its definitions, but not without a question if one outside of the binding's bundle was edited.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_requires_approval_after_a_definition_was_edited() {
    let mut place = place();
    place.config.store = Some(format!("sqlite:{}", place.path("runs.db").display()));
    place.write(
        "skills/aaa/SKILL.md",
        "---\nname: aaa\ndescription: Formats tables. Use for tables.\n---\nx\n",
    );
    let text = std::fs::read_to_string(place.path("skills/ledger/capabilities/book.yaml")).unwrap();
    let define = |what: &str| {
        let edited = text.replacen("description:", &format!("description: {what}"), 1);
        place.write("skills/aaa/capabilities/book.yaml", &edited);
    };
    define("Also");
    let core = place.open().await;
    let run = waiting(&core, "borrow").await;
    core.send_command(&run.id.0, decide(&run, Verdict::Approve, "bo")).await.unwrap();
    assert_eq!(wait_for_completion(&core, &run.id.0).await.state, RunState::Completed);
    for (edit, is_changed) in [("Also", false), ("Still", true)] {
        define(edit);
        let core = place.open().await;
        let command = RunCommand::Fork { checkpoint: Some(0), by: None, since_ms: None };
        let forked = core.send_command(&run.id.0, command).await.unwrap().run;
        let resume = RunCommand::Resume {
            checkpoint: None,
            inputs: None,
            despite_change: is_changed,
            by: None,
            since_ms: None,
        };
        core.send_command(&forked.id.0, resume).await.unwrap();
        let waits = wait_for_completion(&core, &forked.id.0).await;
        let Some(Gate::Human { why, .. }) = &waits.gate else { panic!("{edit}: {:?}", waits.error) };
        assert_eq!(matches!(why, ApprovalReason::Changed { .. }), is_changed, "{edit}: {why:?}");
        assert_eq!(json!(why).to_string().contains("capability:test.ledger.book"), is_changed, "{why:?}");
        core.send_command(&forked.id.0, decide(&waits, Verdict::Approve, "bo")).await.unwrap();
        assert_eq!(wait_for_completion(&core, &forked.id.0).await.state, RunState::Completed, "{edit}");
    }
}

/// A router chooses what its step calls: that a later step cannot be executed does not prevent the approval.
#[tokio::test(flavor = "multi_thread")]
async fn approval_before_a_router_does_not_depend_on_later_steps() {
    let place = place();
    place.write("skills/ext/SKILL.md", "---\nname: ext\ndescription: Calls. Use for calls.\n---\nx\n");
    place.write("skills/ext/capabilities/ext.yaml", "id: ext.call\nversion: 1.0.0\ndescription: Calls.\n");
    let binding = "id: ext\ncapability: ext.call\nprotocol: openapi\nservice: nope\noperation: GET /x\n";
    place.write("skills/ext/bindings/ext.yaml", binding);
    place
        .write("skills/routed/SKILL.md", "---\nname: routed\ndescription: Routes. Use for routes.\n---\nx\n");
    let contract = "id: test.routed\nversion: 1.0.0\ndescription: Routes.\ninputs: {kind: {type: string, default: a}}\n\
        outputs: {}\nsteps:\n  - id: pick\n    uses: test.ledger.book\n    input: {amount: 1, account: \"1\"}\n    \
        config: {router: {on: inputs.kind, cases: {b: test.amounts.add}, default: test.ledger.book}}\n  - id: other\n    \
        uses: ext.call\n    config: {condition: \"inputs.kind == 'b'\"}\n";
    place.write("skills/routed/skill.yaml", contract);
    place.write(POLICY, "require_approval: [{id: routed}]\n");
    let core = place.open().await;
    let run = waiting(&core, "routed").await;
    let approved = core.send_command(&run.id.0, decide(&run, Verdict::Approve, "bo")).await;
    assert!(approved.is_ok(), "{:?}", approved.err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_named_like_a_capability_does_not_run() {
    let place = place();
    for file in ["SKILL.md", "skill.yaml"] {
        let text = std::fs::read_to_string(place.path(&format!("skills/ledger/{file}"))).unwrap();
        place.write(&format!("skills/capability:test.ledger.book/{file}"), &text);
    }
    let core = place.open().await;
    let error =
        core.launch(request("capability:test.ledger.book", json!({"amounts": [1]}))).await.unwrap_err();
    assert!(error.message.contains("rename its folder"), "{error}");
}

/// A process whose policy is invalid leaves runs to others.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_claimed_while_the_policy_is_invalid() {
    let mut place = place();
    let healthy = place.open().await;
    place.write("other.yaml", "deny: [{idd: x}]\n");
    place.config.policy_file = Some(place.path("other.yaml"));
    let broken = place.open().await;
    broken.start_workers().await.unwrap();
    let run = launch(&healthy, "capability:test.ledger.book").await.unwrap();
    let run = wait_for_completion(&healthy, &run.id.0).await;
    assert_eq!(run.state, RunState::WaitingForHuman, "{:?}", run.error);
    place.write("other.yaml", "{}\n");
    let done = healthy.send_command(&run.id.0, decide(&run, Verdict::Approve, "bo")).await.unwrap().run;
    let stop = tokio_util::sync::CancellationToken::new();
    let done = broken.wait_for_completion(&done.id.0, stop).await.unwrap();
    assert_eq!(done.state, RunState::Completed, "{:?}", done.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capability_runs_where_its_root_is_read() {
    let mut place = place();
    let core = place.open().await;
    let skill = launch(&core, "ledger").await.unwrap();
    let capability = launch(&core, "capability:test.ledger.book").await.unwrap();
    assert!(capability.options.place.is_some());
    assert_eq!(capability.options.place, skill.options.place);
    std::fs::create_dir_all(place.path("others")).unwrap();
    place.config.argument_roots = vec![place.path("others")];
    let other: Arc<Local> = place.open().await;
    let refused =
        other.wait_for_completion(&capability.id.0, tokio_util::sync::CancellationToken::new()).await;
    assert_eq!(refused.unwrap_err().code, Code::InvalidConfiguration);
    assert!(other.run(&capability.id.0).await.unwrap().elsewhere.is_some());
    assert_eq!(wait_for_completion(&core, &capability.id.0).await.state, RunState::WaitingForHuman);
}
