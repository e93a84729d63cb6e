//! Bindings of protocol `openapi` against a separate HTTP server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use skills_runs::{CallConditions, CallFailure, Caller, Explanation};
use skills_skill::contract::ServiceTarget;
use tokio_util::sync::CancellationToken;

use super::place::{Bench, Server, call};

fn bench(server: &Server) -> Bench {
    let mut bench = Bench::new();
    bench.http("web", server.url(""));
    bench
}

#[tokio::test]
async fn request_matches_the_binding() {
    let server = Server::start();
    let mut bench = bench(&server);
    let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer ${API_KEY}".to_owned())]);
    bench.reach("web", ServiceTarget::Http { url: server.url("/v1/"), headers });
    bench.environment.insert("API_KEY".to_owned(), "s3cret".to_owned());
    bench.bind(
        "b",
        "web",
        "openapi",
        "cases/{id}/notes",
        "request: {id: input.text, note: 'about ${input.text}', mode: input.mode, limit: input.limit, via: test}\n\
         response: {label: response.label, seen: response}\nmetadata: {method: PUT, query: [via]}",
    );
    let reply = call(&bench.broker(), bench.call("a/b")).await.unwrap();
    let seen = &reply.outputs["seen"];
    assert_eq!(seen["method"], "PUT");
    assert_eq!(seen["path"], "/v1/cases/a%2Fb/notes");
    assert_eq!(seen["query"], json!({"via": ["test"]}));
    assert_eq!(
        seen["body"],
        json!({"note": "about a/b", "mode": "fast"}),
        "the default is filled in, absent leaves no trace"
    );
    let header = |name: &str| seen["headers"][name].as_str().unwrap_or_default().to_owned();
    assert_eq!(header("idempotency-key"), "run-1/classify");
    assert_eq!(header("x-trace-id"), "trace-1");
    assert_eq!(header("authorization"), "Bearer s3cret");
    assert_eq!((reply.binding.as_str(), reply.outputs["label"].as_str()), ("b", Some("echo")));

    bench.bind(
        "b",
        "web",
        "openapi",
        "GET /find",
        "request: {q: input.text, n: [1, 2]}\nresponse: {label: response.label, seen: response}",
    );
    let reply = call(&bench.broker(), bench.call("x y")).await.unwrap();
    assert_eq!(reply.outputs["seen"]["query"], json!({"q": ["x y"], "n": ["1", "2"]}));
    assert_eq!(reply.outputs["seen"]["body"], json!(null));
}

#[tokio::test]
async fn every_invalid_response_names_its_defect() {
    let server = Server::start();
    let bench = bench(&server);
    for (path, code, expected) in [
        ("garbage", CallFailure::RuntimeError, "responded with text/html that is not JSON"),
        ("list", CallFailure::RuntimeError, "the response is a list"),
        ("huge", CallFailure::RuntimeError, "more than 8 MiB"),
        ("dense", CallFailure::RuntimeError, "more than 200000 JSON values and keys"),
        ("breaks-off", CallFailure::UpstreamFailure, "closed the connection"),
        ("status/500", CallFailure::UpstreamFailure, "500 Internal Server Error: {\"error\""),
        ("status/429", CallFailure::UpstreamFailure, "429 Too Many Requests"),
        ("status/422", CallFailure::InvalidRequest, "422"),
        ("status/401", CallFailure::InvalidConfiguration, "correct its `headers` under `services:`"),
        ("status/404", CallFailure::RuntimeError, "404 Not Found"),
        ("redirect-out", CallFailure::UpstreamFailure, "localhost"),
    ] {
        bench.bind("b", "web", "openapi", path, "");
        let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
        assert_eq!(error.code, code, "{path}: {error}");
        assert!(error.message.contains(expected), "{path}: {error}");
        assert!(
            error.message.contains(&server.url(&format!("/{path}"))),
            "{path} names its address: {error}"
        );
        assert!(!error.message.contains('\u{1b}'), "{path}: {error:?}");
        assert_eq!(error.binding.as_deref(), Some("b"));
    }
    bench.bind("b", "web", "openapi", "redirect-in", "");
    assert_eq!(call(&bench.broker(), bench.call("x")).await.unwrap().outputs["path"], "/echo");
}

#[tokio::test]
async fn a_missing_response_times_out_at_the_limit() {
    let server = Server::start();
    let mut bench = bench(&server);
    bench.bind("b", "web", "openapi", "slow", "metadata: {timeout_seconds: 0.2}");
    let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::UpstreamTimeout, "{error}");
    assert!(error.message.contains("did not respond within 0.2 s"), "{error}");
    bench.bind("b", "web", "openapi", "slow", "");
    let error =
        call(&bench.broker(), skills_runs::Call { timeout: Duration::from_millis(200), ..bench.call("x") })
            .await
            .unwrap_err();
    assert_eq!(error.code, CallFailure::StepTimeout, "{error}");
    bench.services.get_mut("web").unwrap().timeout = Some(Duration::from_millis(200));
    let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::UpstreamTimeout, "{error}");
}

#[tokio::test]
async fn cancellation_does_not_wait_for_the_response() {
    let server = Server::start();
    let bench = bench(&server);
    bench.bind("b", "web", "openapi", "slow", "");
    let (broker, cancel, started) = (bench.broker(), CancellationToken::new(), Instant::now());
    let waiting = broker.call(bench.call("x"), cancel.clone());
    let (result, ()) = tokio::join!(waiting, async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(result.unwrap_err().code, CallFailure::Canceled);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn failed_service_falls_back_and_is_reported() {
    let server = Server::start();
    let mut bench = bench(&server);
    bench.http("gone", "http://127.0.0.1:9".to_owned());
    bench.bind(
        "first",
        "web",
        "openapi",
        "status/503",
        "metadata: {status: stable, fallback_binding_id: second}",
    );
    bench.bind("second", "gone", "openapi", "x", "metadata: {fallback_binding_id: third}");
    bench.bind("third", "web", "openapi", "echo", "response: {label: response.label}");
    let reply = call(&bench.broker(), bench.call("x")).await.unwrap();
    assert_eq!(reply.binding, "third");
    let reasons: Vec<_> =
        reply.tried.iter().map(|tried| (tried.binding.as_str(), tried.reason.as_str())).collect();
    assert_eq!(reasons[0].0, "first");
    assert!(reasons[0].1.contains("503"), "{reasons:?}");
    assert!(reasons[1].1.contains("cannot connect to"), "{reasons:?}");
}

#[tokio::test]
async fn call_with_unknown_outcome_does_not_fall_back() {
    let server = Server::start();
    let mut bench = bench(&server);
    bench.http("gone", "http://127.0.0.1:9".to_owned());
    let fallback = "metadata: {status: stable, fallback_binding_id: second}";
    bench.bind_to("mail.send", "first", "web", "openapi", "status/500", fallback);
    bench.bind_to("mail.send", "second", "web", "openapi", "echo", "");
    let error = call(&bench.broker(), bench.call_of("mail.send", "x")).await.unwrap_err();
    assert!(
        error.message.contains(
            "its fallback `second` was not tried, because this call may already have had side effects"
        ),
        "{error}"
    );
    // A connection that was refused, and a request that was turned away, had none.
    for (service, path) in [("gone", "x"), ("web", "status/429"), ("web", "status/400")] {
        bench.bind_to("mail.send", "first", service, "openapi", path, fallback);
        let reply = call(&bench.broker(), bench.call_of("mail.send", "x")).await.unwrap();
        assert_eq!(reply.binding, "second", "{path}");
    }
}

#[tokio::test]
async fn five_failures_open_the_breaker_and_a_trial_closes_it() {
    let server = Server::start();
    let bench = bench(&server);
    bench.bind("b", "web", "openapi", "fails-then-works/5", "response: {label: response.label}");
    let broker = bench.broker();
    for _ in 0..5 {
        assert_eq!(call(&broker, bench.call("x")).await.unwrap_err().code, CallFailure::UpstreamFailure);
    }
    let error = call(&broker, bench.call("x")).await.unwrap_err();
    assert!(error.message.contains("its circuit breaker is open, after 5 failures in a row"), "{error}");
    let capability = bench.capability("text.classify");
    let explained = broker.explain(&capability, &bench.call("x").conditions);
    assert_eq!(explained.chosen, None);
    assert_eq!(explained.bindings[0].breaker, "open for 30 s more, after 5 failures in a row");
    *bench.passed.lock().unwrap() = Duration::from_secs(30);
    let reply = call(&broker, bench.call("x")).await.unwrap();
    assert_eq!(reply.outputs["label"], "call 6", "the call that was refused never reached the server");
    assert_eq!(broker.explain(&capability, &bench.call("x").conditions).bindings[0].breaker, "closed");
}

#[tokio::test]
async fn failures_of_one_person_do_not_change_the_binding_of_another() {
    let server = Server::start();
    let bench = bench(&server);
    let fallback = "metadata: {status: stable, fallback_binding_id: second}";
    bench.bind("first", "web", "openapi", "status/503", fallback);
    bench.bind("second", "web", "openapi", "echo", "response: {label: response.label}");
    let (broker, capability) = (bench.broker(), bench.capability("text.classify"));
    for _ in 0..5 {
        assert_eq!(call(&broker, bench.call("x")).await.unwrap().binding, "second");
    }
    let explained = |person: Option<&str>| {
        let ordered_by = person.map(str::to_owned);
        broker.explain(&capability, &CallConditions { ordered_by, ..bench.call("x").conditions })
    };
    let state = |explained: &Explanation| explained.bindings[0].breaker.clone();
    assert_eq!(explained(Some("kim")).chosen.as_deref(), Some("second"));
    let other = explained(Some("lee"));
    assert_eq!((other.chosen.as_deref(), state(&other).as_str()), (Some("first"), "closed"));
    assert_eq!(other.chain().map(|choice| choice.binding.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    let without_person = explained(None);
    assert_eq!(
        (without_person.chosen.as_deref(), state(&without_person).as_str()),
        (Some("first"), "open for some callers")
    );
}

#[tokio::test]
async fn invalid_request_is_not_a_service_failure() {
    let server = Server::start();
    let bench = bench(&server);
    bench.bind("b", "web", "openapi", "status/422", "");
    let broker = bench.broker();
    for _ in 0..6 {
        assert_eq!(call(&broker, bench.call("x")).await.unwrap_err().code, CallFailure::InvalidRequest);
    }
}
