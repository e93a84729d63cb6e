//! Bindings of protocol `mcp` against separate servers, over stdio and streamable HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use skills_runs::{Call, CallConditions, CallFailure, Caller};
use skills_skill::contract::ServiceTarget;
use tokio_util::sync::CancellationToken;

use super::place::{Bench, Server, alive, call, fixture, until};

fn bench(arguments: &[&str]) -> Bench {
    let mut bench = Bench::new();
    let script = fixture("mcp.py").to_string_lossy().into_owned();
    let args = std::iter::once(script).chain(arguments.iter().map(|arg| (*arg).to_owned())).collect();
    let env = BTreeMap::from([("MODE".to_owned(), "${WANTED}".to_owned())]);
    bench.environment.insert("WANTED".to_owned(), "quiet".to_owned());
    bench.environment.insert("SECRET".to_owned(), "not for servers".to_owned());
    let directory = bench.root().to_owned();
    bench.reach("tools", ServiceTarget::Command { program: "python3".to_owned(), args, env, directory });
    bench
}

#[tokio::test]
async fn server_of_a_tool_is_reused_for_the_next_call() {
    let bench = bench(&[]);
    bench.bind(
        "b",
        "tools",
        "mcp",
        "echo",
        "request: {content: input.text}\nresponse: {label: response.label, seen: response}",
    );
    let broker = bench.broker();
    let reply = call(&broker, bench.call("hello")).await.unwrap();
    assert_eq!(reply.outputs["seen"]["arguments"], json!({"content": "hello"}));
    assert_eq!(reply.outputs["seen"]["meta"]["skill-workbench/idempotency-key"], "run-1/classify");

    bench.bind("b", "tools", "mcp", "pid", "");
    broker.replace(bench.catalog().into());
    let first = call(&broker, bench.call("x")).await.unwrap().outputs;
    assert_eq!(call(&broker, bench.call("x")).await.unwrap().outputs, first, "the same process");

    bench.bind("b", "tools", "mcp", "text", "");
    broker.replace(bench.catalog().into());
    assert_eq!(call(&broker, bench.call("x")).await.unwrap().outputs["label"], "as text");
    bench.bind("b", "tools", "mcp", "prose", "response: {label: response.text}");
    broker.replace(bench.catalog().into());
    assert_eq!(call(&broker, bench.call("x")).await.unwrap().outputs["label"], "It is spam.");

    bench.bind("b", "tools", "mcp", "env", "response: {label: response.label, mode: response.mode}");
    broker.replace(bench.catalog().into());
    let outputs = call(&broker, bench.call("x")).await.unwrap().outputs;
    let names: Vec<&str> = outputs["label"].as_str().unwrap().split(',').collect();
    assert!(names.contains(&"MODE") && !names.contains(&"SECRET"), "{names:?}");
    assert_eq!(outputs["mode"], "quiet");
}

#[tokio::test]
async fn each_failure_is_reported() {
    let bench = bench(&[]);
    for (tool, code, expected) in [
        ("fail", CallFailure::RuntimeError, "failed: the disk is ␛[1mfull"),
        ("invalid", CallFailure::InvalidRequest, "text is too short"),
        ("unheard-of", CallFailure::InvalidConfiguration, "no such tool, available: echo, text"),
        ("die", CallFailure::UpstreamFailure, "it said: out of luck"),
    ] {
        bench.bind("b", "tools", "mcp", tool, "");
        let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
        assert_eq!(error.code, code, "{tool}: {error}");
        assert!(error.message.contains(expected), "{tool}: {error}");
    }
    bench.bind("b", "tools", "mcp", "garbage", "");
    let impatient = Call { timeout: Duration::from_secs(2), ..bench.call("x") };
    let error = call(&bench.broker(), impatient).await.unwrap_err();
    assert!(matches!(error.code, CallFailure::StepTimeout | CallFailure::UpstreamFailure), "{error}");
}

#[tokio::test]
async fn failed_server_start_is_reported_with_its_output() {
    let mut mute = bench(&["--mute"]);
    mute.bind("b", "tools", "mcp", "echo", "");
    let error = call(&mute.broker(), mute.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::UpstreamFailure);
    assert!(error.message.contains("MCP initialization failed"), "{error}");
    let missing = ServiceTarget::Command {
        program: "no-such-mcp-server".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        directory: mute.root().to_owned(),
    };
    mute.reach("tools", missing);
    let error = call(&mute.broker(), mute.call("x")).await.unwrap_err();
    assert!(error.message.contains("correct `services.tools.command`"), "{error}");
}

#[tokio::test]
async fn cancellation_ends_the_server_and_its_children() {
    let bench = bench(&[]);
    bench.bind("b", "tools", "mcp", "slow", "request: {text: input.text}");
    let note = bench.root().join("pids");
    let (broker, cancel) = (bench.broker(), CancellationToken::new());
    let waiting = broker.call(bench.call(&note.to_string_lossy()), cancel.clone());
    let stop = async {
        until("the tool runs", || std::fs::read_to_string(&note).is_ok_and(|text| text.ends_with('\n')))
            .await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(waiting, stop);
    assert_eq!(result.unwrap_err().code, CallFailure::Canceled);
    let pids = std::fs::read_to_string(&note).unwrap();
    for pid in pids.split_whitespace() {
        until("the process ends", || !alive(pid)).await;
    }
}

#[tokio::test]
async fn an_endless_list_of_tools_is_not_read() {
    let bench = bench(&["--endless-list"]);
    bench.bind("b", "tools", "mcp", "unheard-of", "");
    let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::InvalidRequest, "{error}");
    assert!(error.message.contains("unknown tool"), "{error}");
}

#[tokio::test]
async fn a_server_that_sends_requests_without_end_is_disconnected() {
    let bench = bench(&[]);
    bench.bind("b", "tools", "mcp", "flood", "");
    let broker = bench.broker();
    let pid = call(&broker, bench.call("x")).await.unwrap().outputs["label"].clone();
    // It ends when it writes to the closed connection.
    until("the server ends", || !alive(pid.as_str().unwrap())).await;
    assert_ne!(call(&broker, bench.call("x")).await.unwrap().outputs["label"], pid, "a new process");
}

#[tokio::test]
async fn tools_are_called_over_http_too() {
    let server = Server::start();
    let mut bench = Bench::new();
    let headers = BTreeMap::from([("X-Token".to_owned(), "${TOKEN}".to_owned())]);
    bench.environment.insert("TOKEN".to_owned(), "t-1".to_owned());
    bench.reach("tools", ServiceTarget::Http { url: server.url("/mcp"), headers });
    bench.bind("b", "tools", "mcp", "anything", "request: {text: input.text}");
    let broker = bench.broker();
    for text in ["plain", "stream"] {
        let outputs = call(&broker, bench.call(text)).await.unwrap().outputs;
        assert_eq!((outputs["label"].as_str(), outputs["token"].as_str()), (Some("over http"), Some("t-1")));
        assert_eq!(outputs["arguments"], json!({"text": text}));
    }
    bench.bind("b", "tools", "mcp", "unavailable", "");
    let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::UpstreamFailure, "{error}");
    bench.reach(
        "tools",
        ServiceTarget::Http { url: "http://127.0.0.1:9/mcp".to_owned(), headers: BTreeMap::new() },
    );
    let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::UpstreamFailure, "{error}");
}

#[tokio::test]
async fn callable_bindings_cover_the_settings_of_their_services() {
    let mut bench = Bench::new();
    bench.bind("b", "tools", "mcp", "classify", "");
    let command = |args: &[&str], account: &str| ServiceTarget::Command {
        program: "python3".to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::from([("ACCOUNT".to_owned(), account.to_owned())]),
        directory: PathBuf::from("/"),
    };
    let http = |header: &str| ServiceTarget::Http {
        url: "http://127.0.0.1:9/mcp".to_owned(),
        headers: BTreeMap::from([("Account".to_owned(), header.to_owned())]),
    };
    let mut seen = Vec::new();
    for target in [
        command(&["server.py"], "a"),
        command(&["server.py", "--live"], "a"),
        command(&["server.py"], "b"),
        http("a"),
        http("b"),
    ] {
        bench.reach("tools", target);
        let call = bench.call("x");
        let present =
            bench.broker().present_bindings(&call.capability, &CallConditions::default(), &BTreeMap::new());
        assert_eq!(present.callable.len(), 1);
        assert!(!seen.contains(&present.callable), "{:?}", present.callable);
        seen.push(present.callable);
    }
}
