//! Bindings of protocol `openrpc` against a separate server.

use serde_json::json;
use skills_runs::CallFailure;

use super::place::{Bench, Server, call};

#[tokio::test]
async fn a_method_is_called_with_the_request_as_its_params() {
    let server = Server::start();
    let mut bench = Bench::new();
    bench.http("rpc", server.url("/rpc"));
    bench.bind("b", "rpc", "openrpc", "echo", "request: {content: input.text}");
    let reply = call(&bench.broker(), bench.call("hello")).await.unwrap();
    assert_eq!(reply.outputs["params"], json!({"content": "hello"}));
    assert_eq!(reply.outputs["key"], "run-1/classify");
}

#[tokio::test]
async fn error_objects_and_invalid_responses_are_distinguished() {
    let server = Server::start();
    let mut bench = Bench::new();
    bench.http("rpc", server.url("/rpc"));
    for (method, code, expected) in [
        ("invalid", CallFailure::InvalidRequest, "error -32602: no such text ({\"field\":\"text\"})"),
        ("busy", CallFailure::UpstreamFailure, "error -32000: busy"),
        ("unheard-of", CallFailure::InvalidConfiguration, "correct the `operation`"),
        ("other-id", CallFailure::RuntimeError, "its `id` does not match the request"),
        ("neither", CallFailure::RuntimeError, "neither `result` nor `error`"),
        ("no-json", CallFailure::RuntimeError, "not JSON"),
    ] {
        bench.bind("b", "rpc", "openrpc", method, "");
        let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
        assert_eq!(error.code, code, "{method}: {error}");
        assert!(error.message.contains(expected), "{method}: {error}");
    }
}
