//! The client of a remote core: the same results as in the process, and their handling when the connection breaks.
mod outages;
use crate::runs_place;
use crate::service;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::response::Html;
use runs_place::{TestHome, attachment, decide, object, request, resume};
use serde_json::{Value, json};
use service::{Mishap, Service};
use skills_api::remote::{Address, Key, Remote};
use skills_api::{
    CapabilityRequest, Client as _, Code, Connection, ConnectionState, DraftRequest, Error, Event,
    ExecutionOptions, GovernanceFilter, LaunchRequest, ListFilter, Local, OperatorClient as _,
    RunClient as _, RunCommand, SessionAccess, SessionClient as _, SettingsChange,
};
use skills_discovery::Request;
use skills_model::{RunState, Verdict};
use skills_session::{Api, MessageRole};
use skills_skill::{AttachTarget, SkillId};
use skills_store::{IdempotencyOutcome, RunFilter};
use tokio_util::sync::CancellationToken;

/// No test waits longer for something that has to happen.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

async fn connect(service: &Service) -> Remote {
    connect_with(service, None).await.unwrap()
}

async fn connect_with(service: &Service, key: Option<Key>) -> Result<Remote, Error> {
    Remote::connect(Address::parse(&service.url()).unwrap(), key, Some("ana".to_owned())).await
}

fn of(answer: Result<impl serde::Serialize, Error>) -> Value {
    match answer {
        Ok(value) => json!({ "ok": value }),
        Err(error) => json!({
            "code": error.code, "message": error.message, "suggestions": error.suggestions, "reason": error.reason,
        }),
    }
}

/// Without what differs from one call to the next.
fn steady(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            for name in ["took_us", "curl", "attached_at", "uptime_seconds", "resident_bytes", "operations"] {
                fields.remove(name);
            }
            // The suggested account in a decision depends on the process that shows it.
            if fields.contains_key("headline") {
                fields.remove("approver");
            }
            let old = std::mem::take(fields);
            *fields = old.into_iter().map(|(name, value)| (name, steady(value))).collect();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = steady(item.take())),
        _ => {}
    }
    value
}

macro_rules! same {
    ($here:expr, $there:expr, $($call:tt)+) => {{
        let (here, there) = (of($here.$($call)+.await), of($there.$($call)+.await));
        assert_eq!(steady(there), steady(here), "{}", stringify!($($call)+));
    }};
}

async fn setting() -> (TestHome, Arc<Local>, Service) {
    let place = TestHome::new();
    let core = place.open().await;
    let service = Service::start(&core);
    (place, core, service)
}

#[tokio::test(flavor = "multi_thread")]
async fn own_views_are_added_to_those_of_the_service() {
    let (_place, here, service) = setting().await;
    here.save_view("Failed", Some("state:failed"), None).await.unwrap();
    here.save_view("Mine", Some("state:open"), None).await.unwrap();
    let own = [("Mine".to_owned(), "by:kim".to_owned())].into();
    let there = connect(&service).await.with_views(own);
    let views = there.views().await.unwrap().views;
    let views: Vec<(&str, &str)> = views.iter().map(|view| (&*view.name, &*view.r#where)).collect();
    assert_eq!(views, [("Failed", "state:failed"), ("Mine", "by:kim")]);
    let refused = there.save_view("Mine", Some("by:bo"), None).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidConfiguration);
    let saved = there.save_view("Open", Some("state:open"), None).await.unwrap();
    assert_eq!(saved.views.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn remote_skill_results_equal_local_ones() {
    let (_place, here, service) = setting().await;
    let there = connect(&service).await;
    let Connection::Remote { address, state } = there.connection() else { panic!("not remote") };
    assert!(service.url().ends_with(&address));
    assert_eq!(state, ConnectionState::Connected);
    same!(here, there, catalog());
    same!(here, there, discover(Request { intent: "book an amount".to_owned(), ..Request::default() }));
    same!(here, there, discover(Request { intent: String::new(), ..Request::default() }));
    same!(here, there, list(ListFilter::default()));
    same!(here, there, list(ListFilter { query: Some("led ger&=".to_owned()), ..ListFilter::default() }));
    same!(here, there, describe("ledger"));
    same!(here, there, describe("ledgr"));
    let location = here.describe("ledger").await.unwrap().summary.location;
    same!(here, there, describe(location.to_str().unwrap()));
    same!(here, there, read_file("ledger", "scripts/book.sh"));
    same!(here, there, read_file("ledger", "../../etc/passwd"));
    same!(here, there, levels(vec![SkillId::new("ledger"), SkillId::new("notes")]));
    same!(here, there, body_lines("ledger", "book an amount", 3));
    same!(here, there, client_profiles());
    same!(here, there, client_view("codex"));
    same!(here, there, client_view("emacs"));
    let draft = |skill: &str| DraftRequest {
        skill_id: skill.to_owned(),
        description: Some("Books amounts in the ledger.".to_owned()),
        intent: Some("book an amount".to_owned()),
        ..DraftRequest::default()
    };
    same!(here, there, draft(draft("ledger")));
    same!(here, there, draft(draft("ledgr")));
    same!(here, there, governance(GovernanceFilter::default()));
    same!(here, there, contract("ledger"));
    same!(here, there, contract("ledgr"));
    same!(here, there, contract("notes"));
    same!(here, there, capabilities());
    let capability = here.capabilities().await.unwrap().remove(0);
    same!(here, there, explain_capability(&capability));
    same!(here, there, explain_capability("no.such"));
    same!(here, there, activate(&capability, None, None));
    same!(here, there, activate(&capability, Some("no_such"), None));
    let (mine, theirs) = (here.diagnostics().await.unwrap(), there.diagnostics().await.unwrap());
    assert_eq!((mine.skills, mine.roots, mine.version), (theirs.skills, theirs.roots, theirs.version));
    assert!(there.metrics().await.is_ok());
    assert!(there.reset_diagnostics().await.is_ok() && there.rescan().await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn remote_runs_and_sessions_equal_local_ones() {
    let (_place, here, service) = setting().await;
    let there = connect(&service).await;
    let launched = there.launch(request("ledger", json!({ "amounts": [4, 38] }))).await.unwrap();
    assert_eq!(launched.idempotency, IdempotencyOutcome::None);
    let id = launched.run.id.0.as_str();
    let waiting = there.wait_for_completion(id, CancellationToken::new()).await.unwrap();
    assert_eq!(waiting.state, RunState::WaitingForHuman);
    same!(here, there, run(id));
    same!(here, there, run(&id[..12]));
    same!(here, there, run("0000"));
    same!(here, there, runs(RunFilter::default()));
    let states = || vec![RunState::WaitingForHuman, RunState::Failed];
    same!(
        here,
        there,
        runs(RunFilter { states: states(), text: Some("ledg".to_owned()), ..RunFilter::default() })
    );
    same!(here, there, newest_event());
    same!(here, there, event_log());
    same!(here, there, run_events(Some(id), 1, 3, 0));
    same!(here, there, run_events(None, 0, 100, 1_000));
    same!(here, there, send_command(id, resume()));
    same!(here, there, launch(request("ledger", json!({ "amounts": "many" }))));
    same!(here, there, launch(request("ledgr", json!({}))));
    let target = format!("{id}/sum");
    same!(here, there, attach_preview(attachment("watch", "output", &target, json!({}))));
    let preview = there.attach_preview(attachment("watch", "output", &target, json!({}))).await.unwrap();
    assert!(preview.curl.contains(&format!("{}/v1/skills/watch/attach", service.url())), "{}", preview.curl);
    same!(here, there, attach(attachment("ledger", "output", &target, json!({}))));
    same!(here, there, target_choices(AttachTarget::Run, "", 5, &SessionAccess::default(), None));
    let waiting = here.run(id).await.unwrap().run;
    let approved = there.send_command(id, decide(&waiting, Verdict::Approve, "bo")).await.unwrap();
    assert_eq!(approved.note, "approved");
    assert_eq!(
        there.wait_for_completion(id, CancellationToken::new()).await.unwrap().state,
        RunState::Completed
    );
    same!(here, there, run(id));
    same!(here, there, send_command(id, RunCommand::Cancel { by: None }));
    let forked = there
        .send_command(id, RunCommand::Fork { checkpoint: None, by: None, since_ms: None })
        .await
        .unwrap();
    assert!(forked.run.paused && forked.run.id.0 != id);
    assert_eq!(
        there.send_command(&forked.run.id.0, RunCommand::Cancel { by: None }).await.unwrap().run.state,
        RunState::Canceled
    );
    let attached = there.attach(attachment("watch", "run", id, json!({}))).await;
    let again = here.attach(attachment("watch", "run", id, json!({}))).await;
    assert_eq!(
        attached.map(|it| (it.execution.state, it.control)),
        again.map(|it| (it.execution.state, it.control))
    );
    let capability = here.contract("ledger").await.unwrap().steps[0].uses.clone();
    let capability = capability.rsplit(' ').next().unwrap().to_owned();
    let alone = CapabilityRequest {
        capability,
        inputs: object(json!({ "amounts": [1, 2] })),
        options: ExecutionOptions { wait: true, ..ExecutionOptions::default() },
        started_by: None,
    };
    let (mine, theirs) =
        (here.execute_capability(alone.clone()).await, there.execute_capability(alone).await);
    assert_eq!(
        mine.map(|it| (it.run.state, it.run.outputs)),
        theirs.map(|it| (it.run.state, it.run.outputs))
    );

    let session =
        there.new_session(SettingsChange { cap: Some(2), ..SettingsChange::default() }).await.unwrap();
    let id = session.session_id.as_str();
    assert_eq!(there.say(id, MessageRole::User, "what is owed?").await.unwrap(), 1);
    let load = json!({ "names": ["notes"], "mode": "add" });
    assert!(there.call_tool(id, "skills.load", load.clone(), None).await.unwrap().result.is_ok());
    same!(here, there, call_tool(id, "skills.none", json!({}), None));
    assert!(there.compose(id, true).await.is_ok());
    same!(here, there, compose(id, false));
    same!(here, there, session(id));
    same!(here, there, sessions(5));
    same!(here, there, export_session(id, Api::Anthropic, "a-model"));
    let change = SettingsChange { client: Some("codex".to_owned()), ..SettingsChange::default() };
    assert!(there.configure_session(id, change).await.is_ok());
    same!(here, there, session(id));
    same!(here, there, session("none"));
    same!(here, there, level_view("ledger", None));
    same!(here, there, level_view("notes", Some(id)));
    same!(here, there, budget(Some("codex"), Some(100_000)));
    same!(here, there, budget(None, None));
    same!(here, there, agents());
}

/// Returns when the connection is in the wanted state.
async fn wait_for_connection(there: &Remote, wanted: impl Fn(&ConnectionState) -> bool) {
    let mut states = there.states();
    tokio::time::timeout(WAIT_TIMEOUT, states.wait_for(|state| wanted(state))).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_key_error_states_what_to_set() {
    let place = TestHome::new();
    let core = place.open().await;
    let service = Service::with_key(&core, Some("s3cret"));
    let refused = |key| async { connect_with(&service, key).await.err().unwrap() };
    let none = refused(None).await;
    assert_eq!(none.code, Code::Unauthorized);
    assert!(none.message.contains("SKILLS_API_KEY") && none.message.contains("--api-key-file"), "{none}");
    place.write("key", "other\n");
    let other = refused(Some(Key::of_file(&place.path("key")).unwrap())).await;
    assert!(other.message.contains("correct the key from") && other.message.contains("/key"), "{other}");
    assert!(!other.message.contains("other\n"), "{other}");
    let key = Key::of_variable("SKILLS_API_KEY", "s3cret").unwrap();
    let there = connect_with(&service, Some(key)).await.unwrap();
    assert!(there.list(ListFilter::default()).await.is_ok());
}

/// An address that responds to every request with this page.
async fn foreign_server(page: &'static str) -> Address {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::parse(&listener.local_addr().unwrap().to_string()).unwrap();
    let answer = move || async move {
        let json = page.starts_with('{');
        let media = if json { "application/json" } else { "text/html" };
        ([(axum::http::header::CONTENT_TYPE, media)], Html(page).0)
    };
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn other_services_and_versions_are_distinguished() {
    let error = |address| async { Remote::connect(address, None, None).await.err().unwrap() };
    let page = error(foreign_server("<html>It works!</html>").await).await;
    assert_eq!(page.code, Code::InvalidConfiguration);
    assert!(page.message.contains("(200 OK)") && page.message.contains("skills serve"), "{page}");
    let other = error(foreign_server("{\"hello\": 1}").await).await;
    assert!(other.message.contains("invalid response"), "{other}");
    let newer = r#"{"status": "ok", "version": "9.9.0", "skills": 1, "ready": true}"#;
    let newer = error(foreign_server(newer).await).await;
    assert!(newer.message.contains("runs version 9.9.0, this is"), "{newer}");
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let unreachable = error(Address::parse(&free.to_string()).unwrap()).await;
    assert_eq!(unreachable.code, Code::UpstreamFailure);
    assert!(unreachable.message.contains("cannot connect"), "{unreachable}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_service_times_out() {
    let (_place, _here, service) = setting().await;
    let address = Address::parse(&service.url()).unwrap();
    // Long enough for a response of a busy machine.
    let there = Remote::connect_within(Duration::from_secs(3), address, None, None).await.unwrap();
    service.mishap("agent.list", Mishap::Hangs);
    let error = there.agents().await.unwrap_err();
    assert_eq!(error.code, Code::UpstreamTimeout);
    assert_eq!(service.calls("agent.list"), 1, "a slow service is not asked twice");
    assert!(there.agents().await.is_ok());
    // A broken connection is not a slow one: the request is retried, without a visible error.
    service.mishap("agent.list", Mishap::BreaksBefore);
    assert!(there.agents().await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn catalog_changes_during_an_outage_are_reported() {
    let place = TestHome::new();
    let core = Arc::new(Local::open(place.config.clone()).unwrap());
    let mut service = Service::start(&core);
    let there = connect(&service).await;
    let mut events = there.events();
    let added = async |events: &mut tokio::sync::broadcast::Receiver<Event>, wanted: &str| {
        tokio::time::timeout(WAIT_TIMEOUT, async {
            let mut all = BTreeSet::new();
            while !all.contains(wanted) {
                if let Ok(Event::Catalog(change)) = events.recv().await {
                    all.extend(change.added.iter().map(ToString::to_string));
                    assert_eq!(change.catalog.generation, there.catalog().await.unwrap().generation);
                }
            }
        })
        .await
        .unwrap();
    };
    let skill =
        |name: &str| format!("---\nname: {name}\ndescription: Says {name} to any caller.\n---\nbody\n");
    while there.catalog().await.unwrap().entries.is_empty() {
        tokio::task::yield_now().await;
    }
    // The stream is established when it has sent something.
    wait_for_event_stream(&service).await;
    place.write("skills/hello/SKILL.md", &skill("hello"));
    there.rescan().await.unwrap();
    added(&mut events, "hello").await;

    service.kill();
    wait_for_connection(&there, |state| matches!(state, ConnectionState::Lost { .. })).await;
    place.write("skills/bye/SKILL.md", &skill("bye"));
    core.rescan().await.unwrap();
    while core.catalog().await.unwrap().by_id("bye").is_none() {
        tokio::task::yield_now().await;
    }
    service.begin();
    added(&mut events, "bye").await;
}

#[test]
fn an_unreachable_service_has_its_own_exit_code() {
    let home = crate::binary::Home::empty();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("http://{free}");
    for command in [&["list"][..], &["runs", "list"], &["discover", "a table"], &["run", "ledger"]] {
        let answer = home.run_bare(&[&["--connect", &address, "--json"], command].concat());
        assert_eq!(answer.code, 69, "{command:?}: {}", answer.stderr);
        let error = &answer.error()["error"];
        assert_eq!((&error["code"], &error["type"]), (&json!("upstream_failure"), &json!("unavailable")));
        assert_eq!(error["reason"]["service_unreachable"], free.to_string());
    }
}

/// The command on a service, with folders of its own.
fn command(place: &TestHome, service: &Service, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skills"));
    command
        .args(["--connect", &service.url()])
        .args(arguments)
        .current_dir(place.path("work"))
        .env_clear()
        .env("HOME", place.path("elsewhere"))
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("USER", "eve");
    command
}

/// Its result: exit code, output, errors.
fn skills(place: &TestHome, service: &Service, arguments: &[&str]) -> (i32, String, String) {
    let ran = command(place, service, arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ran.status.code().unwrap(), text(ran.stdout), text(ran.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_about_files_are_rejected_on_a_service() {
    let (place, here, service) = setting().await;
    let of = |arguments: &[&str]| skills(&place, &service, arguments);
    let (code, out, _) = of(&["list", "--json"]);
    let list = serde_json::to_value(here.list(ListFilter::default()).await.unwrap()).unwrap();
    assert_eq!((code, serde_json::from_str::<Value>(&out).unwrap()), (0, list));
    let (code, _, message) = of(&["run", "ledger", "--input", "amounts=[4, 38]"]);
    assert_eq!(code, 5, "{message}");
    let approve = message.lines().find(|line| line.contains("approve:")).unwrap();
    assert!(approve.contains(&format!("skills --connect {} runs approve", service.url())), "{message}");
    let run = here.runs(RunFilter::default()).await.unwrap().runs.remove(0);
    assert_eq!((run.state, run.started_by.as_str()), (RunState::WaitingForHuman, "eve"));
    let (code, _, message) = of(&["runs", "approve", &run.id.0, "--yes"]);
    assert!(code == 5 && message.contains("--inputs-digest"), "{code} {message}");
    let digest = here.run(&run.id.0).await.unwrap().sheet.unwrap().inputs_digest;
    let (code, out, message) = of(&["runs", "approve", &run.id.0, "--inputs-digest", &digest, "--yes"]);
    assert_eq!(code, 0, "{message}");
    assert!(out.contains("B-1"), "{out}{message}");
    let decided = here.run(&run.id.0).await.unwrap().decisions.remove(0);
    assert_eq!(decided.by.approver.as_deref(), Some("eve"));
    assert!(of(&["describe", "ledger"]).1.contains("ledger"));
    assert_eq!(of(&["describe", "ledgr"]).0, 3);
    let (code, out, _) = of(&["session", "new"]);
    assert_eq!((code, here.sessions(5).await.unwrap()[0].session_id.as_str()), (0, out.trim()));
    let (_, out, _) = of(&["doctor", "--json"]);
    assert!(out.contains("is reachable, access granted"), "{out}");
    for (arguments, message) in [
        (&["db", "check"][..], "run it on the host of"),
        (&["trust", "--list"], "run it on the host of"),
        (&["lint"], "remove --connect"),
        (&["demo"], "remove --connect"),
        (&["--demo", "list"], "--demo applies to this machine"),
        (&["run", "ledger", "--file", "a=key"], "is a local file"),
    ] {
        place.write("work/key", "x");
        let (code, _, error) = of(arguments);
        assert!(code == 2 && error.contains(message), "{arguments:?}: {code} {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_watchers_survive_a_service_restart() {
    let (place, here, mut service) = setting().await;
    let mut watching = command(&place, &service, &["runs", "watch"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_for_event_stream(&service).await;
    service.kill();
    // Longer than until the first poll for the runs' workers, which gets no response.
    let gone = async {
        while watching.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let left = tokio::time::timeout(Duration::from_secs(4), gone).await;
    assert!(left.is_err(), "it has left");
    service.begin();
    let launch = LaunchRequest {
        skill: "ledger".to_owned(),
        inputs: serde_json::from_value(json!({ "amounts": [1] })).unwrap(),
        ..LaunchRequest::default()
    };
    here.launch(launch).await.unwrap();
    let mut out = BufReader::new(watching.stdout.take().unwrap());
    let line = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        out.read_line(&mut line).map(|_| line)
    });
    let line = tokio::time::timeout(WAIT_TIMEOUT, line).await.unwrap().unwrap().unwrap();
    assert!(line.contains("ledger"), "{line}");
    watching.kill().unwrap();
    watching.wait().unwrap();
}

/// Returns when a client follows the events of a service.
async fn wait_for_event_stream(service: &Service) {
    let following = async {
        while service.calls("event.list") == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, following).await.unwrap();
}
