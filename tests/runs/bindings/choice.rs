//! Which binding is chosen, and what the user is shown about it.

use skills_runs::{CallFailure, Caller};
use skills_skill::contract::Conformance;

use super::place::{Bench, call};

/// Four bindings of one capability: built in, experimental, two for services that are not configured.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.bind(
        "built-in",
        "x",
        "builtin",
        "text.template",
        "request: {template: 'T', variables: {}}\nresponse: {label: response.text}",
    );
    bench.bind("trial", "x", "builtin", "text.join", "request: {items: [J]}\nresponse: {label: response.text}\nmetadata: {conformance_profile: experimental}");
    bench.bind(
        "chat",
        "text_openapi",
        "openapi",
        "chat",
        "metadata: {conformance_profile: strict, fallback_binding_id: tool}",
    );
    bench.bind("tool", "text_tools", "mcp", "classify", "metadata: {fallback_binding_id: built-in}");
    bench.write("services/a.yaml", "id: text_openapi\nkind: openapi\nbase_url: https://api.example.com/v1\n");
    bench
}

fn explained(bench: &Bench, conformance: Conformance) -> String {
    let explained = bench.broker().explain(&bench.capability("text.classify"), &conformance.into());
    let mut out = format!("{}\nchosen: {:?}\n", explained.summary, explained.chosen);
    for choice in explained.bindings {
        out += &format!(
            "{} | {} | {} | {} | {} | {} | {} | {}\n",
            choice.binding,
            choice.place,
            choice.protocol,
            choice.service,
            choice.target,
            choice.conformance,
            choice.breaker,
            choice.isolation
        );
        out += &choice.obstacle.map(|obstacle| format!("    {obstacle}\n")).unwrap_or_default();
    }
    out
}

#[test]
fn complete_decision_is_explained() {
    let mut bench = bench();
    let default = explained(&bench, Conformance::Standard);
    bench.overrides.insert("text.classify".to_owned(), "chat".to_owned());
    let overridden = explained(&bench, Conformance::Standard);
    bench.http("text_openapi", "http://127.0.0.1:1/v1/".to_owned());
    let configured = explained(&bench, Conformance::Strict);
    bench.overrides.insert("text.classify".to_owned(), "gone".to_owned());
    let dangling = explained(&bench, Conformance::Standard);
    insta::assert_snapshot!(format!(
        "DEFAULT\n{default}\nOVERRIDE, NOT CONFIGURED\n{overridden}\nOVERRIDE, CONFIGURED, STRICT\n{configured}\nOVERRIDE THAT IS NOT THERE\n{dangling}"
    ));
}

#[test]
fn untrusted_bindings_are_not_advised() {
    let mut bench = bench();
    bench.overrides.insert("text.classify".to_owned(), "gone".to_owned());
    bench.untrusted = Some("not trusted".to_owned());
    let explained = bench.broker().explain(&bench.capability("text.classify"), &Conformance::Standard.into());
    assert!(explained.summary.ends_with("another capability; remove it"), "{}", explained.summary);
}

#[tokio::test]
async fn configured_binding_wins_and_unavailable_ones_fall_back() {
    let mut bench = bench();
    assert_eq!(call(&bench.broker(), bench.call("x")).await.unwrap().binding, "built-in");
    bench.overrides.insert("text.classify".to_owned(), "chat".to_owned());
    let broker = bench.broker();
    let reply = call(&broker, bench.call("x")).await.unwrap();
    assert_eq!(reply.binding, "built-in");
    assert_eq!(reply.tried.len(), 2);
    assert!(
        reply.tried[0].reason.starts_with("service text_openapi is not configured: add it under `services:`")
    );
    broker.set_overrides([("text.classify".to_owned(), "gone".to_owned())].into());
    let error = call(&broker, bench.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::InvalidConfiguration);
    assert!(error.message.contains("is set to the binding `gone`"), "{error}");
    broker.set_overrides([("text.classify".to_owned(), "trial".to_owned())].into());
    let error = call(&broker, bench.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::ConformanceUnmet, "{error}");
    assert!(error.message.contains("or lower the required level to experimental ("), "{error}");
    let lenient = skills_runs::Call { conditions: Conformance::Experimental.into(), ..bench.call("x") };
    assert_eq!(call(&broker, lenient).await.unwrap().outputs["label"], "J");
}

#[tokio::test]
async fn invalid_inputs_reach_no_binding() {
    let bench = bench();
    let mut wrong = bench.call("x");
    wrong.inputs.remove("text");
    wrong.inputs.insert("limit".to_owned(), "many".into());
    let error = call(&bench.broker(), wrong).await.unwrap_err();
    assert_eq!(error.code, CallFailure::InvalidRequest);
    assert!(
        error.message.contains("text: required") && error.message.contains("limit: expected an integer"),
        "{error}"
    );
    assert!(error.binding.is_none());
}

#[tokio::test]
async fn strict_binding_returns_every_declared_output() {
    let bench = Bench::new();
    let rest = |profile: &str| {
        format!(
            "request: {{template: T, variables: {{}}}}\nresponse: {{label: response.text}}\nmetadata: {{conformance_profile: {profile}}}"
        )
    };
    bench.bind("b", "x", "builtin", "text.template", &rest("strict"));
    let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
    assert!(error.message.contains("at conformance level strict: score: required"), "{error}");
    bench.bind("b", "x", "builtin", "text.template", &rest("standard"));
    assert!(call(&bench.broker(), bench.call("x")).await.is_ok());
}

#[tokio::test]
async fn capability_without_a_binding_states_what_to_add() {
    let bench = Bench::new();
    let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::InvalidConfiguration);
    assert!(error.message.contains("add a file in bindings/ with `capability: text.classify`"), "{error}");
}
