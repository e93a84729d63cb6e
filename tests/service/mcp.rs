//! The MCP server as clients use it: the real binary over standard input and output.

use crate::binary;
use crate::cli_runs_fixture;
use crate::mcp_client;

use base64::Engine as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Instant;

use binary::Home;
use cli_runs_fixture::RunsFixture;
use mcp_client::{Client, ClientEvent, WAIT_TIMEOUT, json as json_of, text, without_trace};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CompletionContext, ElicitationAction,
    GetPromptRequestParams, ProtocolVersion, ReadResourceRequestParams, Reference, ResourceContents,
    SkillResources,
};
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn tool_results_match_schemas_and_errors_match_the_cli() {
    let fixture = RunsFixture::new();
    let client =
        Client::of(&fixture.home, &["--scope", "read,run,decide,admin"], ProtocolVersion::V_2025_06_18, None)
            .await;
    let tools = client.peer.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 31);
    assert!(tools.iter().all(|tool| tool.output_schema.is_none()), "a model pays for every schema");
    let described = client.described().await;
    let calls = [
        ("runtime.health", json!({})),
        ("skill.list", json!({ "query": "words" })),
        ("skill.discover", json!({ "intent": "count words" })),
        ("skill.describe", json!({ "skill_id": "words" })),
        ("skill.why", json!({ "skill_id": "words", "intent": "count words" })),
        ("skill.draft", json!({ "skill_id": "words", "description": "Counts words in a text." })),
        ("skill.rivals", json!({ "skill_id": "words" })),
        ("skill.pair", json!({ "skill_id": "words", "rival": "send" })),
        ("skill.collisions", json!({ "wait_ms": 10_000 })),
        ("skill.lint", json!({ "level": "warning" })),
        ("skill.diagnostics", json!({})),
        ("skill.governance.list", json!({})),
        (
            "skill.execute",
            json!({ "skill_id": "words", "inputs": { "text": "a b c" }, "include_trace": true }),
        ),
        ("capability.explain", json!({ "capability_id": "text.words.count" })),
        ("capability.execute", json!({ "capability_id": "text.words.count", "inputs": { "text": "a b" } })),
        ("run.list", json!({ "where": "skill:words state:completed" })),
        ("skill.metrics.reset", json!({})),
        ("artifact.create", json!({ "name": "a.txt", "content": "a b c" })),
        ("skills.list", json!({})),
        ("skills.load", json!({ "names": ["words"] })),
        ("skills.read", json!({ "path": "skill.yaml" })),
        ("skills.unload", json!({ "all": true })),
    ];
    for (tool, arguments) in calls {
        let answer = client.works(tool, arguments.clone()).await;
        if let Some(schema) = described.get(tool) {
            let output = client.explains(tool, arguments).await;
            let problems: Vec<String> = jsonschema::validator_for(schema)
                .unwrap()
                .iter_errors(&output)
                .map(|error| error.to_string())
                .collect();
            assert!(problems.is_empty(), "{tool}: {problems:?}");
        }
        if tool == "skill.execute" {
            assert_eq!(
                (&answer["run"]["outputs"]["count"], &answer["idempotency"]),
                (&json!(3), &json!("none"))
            );
            let run = answer["run"]["id"].as_str().unwrap();
            let attach = json!({ "skill_id": "watcher", "target_type": "output", "target_ref": run });
            assert_eq!(client.works("skill.attach", attach).await["execution"]["state"], "completed");
        }
    }
    // The same words and codes as everywhere else.
    for (tool, arguments, line) in [
        ("skill.describe", json!({ "skill_id": "wrods" }), &["describe", "wrods"][..]),
        ("skill.execute", json!({ "skill_id": "words" }), &["run", "words"]),
        (
            "capability.explain",
            json!({ "capability_id": "text.word.count" }),
            &["explain-capability", "text.word.count"],
        ),
    ] {
        let failure = client.fails(tool, arguments).await;
        let reported = fixture.run(&[line, &["--json"]].concat()).error();
        assert_eq!(without_trace(failure), without_trace(reported), "{tool}");
    }
    assert_eq!(client.fails("skill.list", json!({ "qury": "x" })).await["error"]["code"], "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_catalog_is_listed_in_pages() {
    let home = Home::empty();
    for n in 0..120 {
        home.skill(
            &format!("skill-{n:03}"),
            &format!("description: {}\n", "Does one thing well. ".repeat(40)),
            "B.\n",
        );
    }
    let client = Client::new(&home, None).await;
    for tool in ["skill.list", "skill.governance.list"] {
        let mut seen = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let answer = client.call(tool, json!({ "cursor": cursor })).await;
            let size = serde_json::to_string(&answer).unwrap().len();
            assert!(size < 300_000, "{tool}: {size} bytes in one answer");
            let page = json_of(&answer);
            assert_eq!(page["total"], 120);
            seen.extend(page["skills"].as_array().unwrap().iter().map(|skill| skill["skill_id"].clone()));
            cursor = page["next"].clone();
            if cursor.is_null() {
                break;
            }
        }
        let expected: Vec<Value> = (0..120).map(|n| json!(format!("skill-{n:03}"))).collect();
        assert_eq!(seen, expected, "{tool}");
        let output = client.works(tool, json!({ "limit": 1000 })).await;
        assert_eq!((output["skills"].as_array().unwrap().len(), &output["next"]), (120, &Value::Null));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_does_what_its_scopes_allow() {
    let fixture = RunsFixture::new();
    let client = Client::of(&fixture.home, &["--scope", "read"], ProtocolVersion::V_2024_11_05, None).await;
    assert_eq!(client.works("runtime.health", json!({})).await["status"], "ok");
    for (tool, arguments) in [
        ("skill.execute", json!({ "skill_id": "words", "inputs": { "text": "a" } })),
        ("skill.metrics.reset", json!({})),
        ("skills.load", json!({ "names": ["words"] })),
    ] {
        assert_eq!(client.fails(tool, arguments).await["error"]["code"], "forbidden", "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_in_the_client_continues_the_run() {
    for version in [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2026_07_28] {
        let fixture = RunsFixture::new();
        let mut client =
            Client::of(&fixture.home, &[], version.clone(), Some(ElicitationAction::Accept)).await;
        let answer =
            client.works("skill.execute", json!({ "skill_id": "send", "inputs": { "to": "ana" } })).await;
        assert_eq!(answer["run"]["outputs"]["sent"], "to ana", "{version}");
        assert_eq!(answer["idempotency"], "none", "the key that was lent is not told");
        let elicitations = client.elicitations();
        assert_eq!(elicitations.len(), 1, "{version}: {elicitations:?}");
        assert!(
            elicitations[0].contains("mail.message.send") && elicitations[0].contains("\"ana\""),
            "{}",
            elicitations[0]
        );
        let run = fixture.json(&["runs", "show", answer["run"]["id"].as_str().unwrap()]);
        let decided = &run["decisions"][0];
        let notes = decided["record"]["notes"].as_str().or(decided["notes"].as_str()).unwrap();
        assert!(notes.contains("looks right") && notes.contains("desk 1.0"), "{decided}");
        assert_eq!(fixture.mails(), ["to ana"], "sent once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn denial_cancels_and_no_response_leaves_the_run_waiting() {
    let fixture = RunsFixture::new();
    let arguments = json!({ "skill_id": "send", "inputs": { "to": "ana" } });
    for version in [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28] {
        let of = |answer| Client::of(&fixture.home, &[], version.clone(), answer);
        let failure =
            of(Some(ElicitationAction::Decline)).await.fails("skill.execute", arguments.clone()).await;
        let error = &failure["error"];
        assert_eq!(
            (&error["code"], &error["reason"]["state"]),
            (&json!("safety_denied"), &json!("canceled")),
            "{version}: {failure}"
        );
        assert!(error["message"].as_str().unwrap().contains("was denied"), "{version}: {failure}");
        for answer in [Some(ElicitationAction::Cancel), None] {
            let failure = of(answer).await.fails("skill.execute", arguments.clone()).await;
            assert_eq!(failure["error"]["code"], "confirmation_required", "{version}: {failure}");
            assert_eq!(failure["error"]["reason"]["state"], "waiting_for_human");
        }
    }
    assert!(fixture.mails().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn session_ends_with_its_connection_and_can_be_resumed() {
    let home = Home::with_skills();
    home.file("pdf-tables/scripts/hello.sh", "echo hello $1\n");
    let mut client = Client::new(&home, Some(ElicitationAction::Accept)).await;
    let loaded = client.call("skills.load", json!({ "names": ["pdf-tables"] })).await;
    let session = loaded.meta.as_ref().unwrap().0["session_id"].as_str().unwrap().to_owned();
    let receipt = json_of(&loaded);
    assert!(receipt["active"][0]["body"].as_str().is_some_and(|body| !body.is_empty()), "{receipt}");
    let read = client.works("skills.read", json!({ "path": "references/layout.md" })).await;
    assert_eq!(read["content"], "How tables are laid out.\n");
    for (path, code) in [("../csv-tools/SKILL.md", "path_escape"), ("no.md", "not_found")] {
        let failure = client.fails("skills.read", json!({ "path": path })).await;
        assert_eq!(failure["error"]["code"], code, "{path}");
    }
    let ran = client.call("skills.run_script", json!({ "path": "scripts/hello.sh", "args": ["you"] })).await;
    let elicitations = client.elicitations();
    assert!(
        elicitations[0].contains("scripts/hello.sh") && elicitations[0].contains("\"you\""),
        "{elicitations:?}"
    );
    assert!(elicitations[0].contains("digest: "), "{elicitations:?}");
    if text(&ran).contains("isolat") && ran.is_error == Some(true) {
        eprintln!("SKIPPED: this machine isolates nothing, the script was not run");
    } else {
        assert_eq!(json_of(&ran)["stdout"], "hello you\n");
    }
    drop(client);
    // Another connection, whose client does not support elicitation.
    let client = Client::of(&home, &["--session", &session], ProtocolVersion::V_2026_07_28, None).await;
    let read = client.works("skills.read", json!({ "path": "references/layout.md" })).await;
    assert_eq!(read["skill"], "pdf-tables");
    let arguments = json!({ "path": "scripts/hello.sh", "args": ["--help"] });
    let failure = client.fails("skills.run_script", arguments).await;
    assert_eq!(failure["error"]["code"], "confirmation_required");
    let message = failure["error"]["message"].as_str().unwrap();
    let digest = failure["error"]["reason"]["script"]["inputs_digest"].as_str().unwrap();
    let rest =
        format!(" session run-script {session} scripts/hello.sh --inputs-digest {digest} --yes -- --help`");
    assert!(message.contains("`skills --root ") && message.contains(&rest), "{message}");
    // The host confirms it, separately from the model's arguments.
    let confirmed = async |digest: &str| {
        let arguments = json!({ "path": "scripts/hello.sh", "args": ["--help"] });
        let mut request = CallToolRequestParams::new("skills.run_script")
            .with_arguments(arguments.as_object().unwrap().clone());
        request.meta = serde_json::from_value(json!({ "inputs_digest": digest })).unwrap();
        json_of(&client.peer.call_tool(request).await.unwrap())
    };
    assert_eq!(confirmed("9f").await["error"]["code"], "invalid_transition");
    assert_eq!(confirmed(digest).await["stdout"], "hello --help\n");
    let shown = home.json(&["session", "show", &session]);
    assert!(shown["session"]["transcript"].as_array().unwrap().len() >= 6, "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn resource_bytes_match_their_digests() {
    let home = Home::with_skills();
    home.file("pdf-tables/assets/logo.png", b"\x89PNG\0\xff");
    home.file("pdf-tables/.secret", "x");
    let client = Client::of(&home, &[], ProtocolVersion::V_2026_07_28, None).await;
    let listed = client.peer.list_all_resources().await.unwrap();
    let pdf = listed.iter().find(|one| one.uri == "skill://pdf-tables/SKILL.md").unwrap();
    assert_eq!((pdf.name.as_str(), pdf.mime_type.as_deref()), ("pdf-tables", Some("text/markdown")));
    let skills = client.peer.list_skills(None).await.unwrap().skills;
    let entry = skills.iter().find(|skill| skill.uri == pdf.uri).unwrap();
    let SkillResources::Files(files) = &entry.resources else { panic!("no files") };
    let read = async |uri: &str| client.peer.read_resource(ReadResourceRequestParams::new(uri)).await;
    for file in files {
        let found = read(&file.uri).await.unwrap();
        let bytes = match &found.contents[0] {
            ResourceContents::TextResourceContents { text, .. } => text.clone().into_bytes(),
            ResourceContents::BlobResourceContents { blob, mime_type, .. } => {
                assert_eq!(mime_type.as_deref(), Some("image/png"));
                base64::engine::general_purpose::STANDARD.decode(blob).unwrap()
            }
            other => panic!("{other:?}"),
        };
        file.verify(&bytes).unwrap();
    }
    let uris: Vec<&str> = files.iter().map(|file| file.uri.as_str()).collect();
    assert!(
        uris.contains(&"skill://pdf-tables/assets/logo.png")
            && !uris.iter().any(|uri| uri.contains("secret"))
    );
    for uri in
        ["skill://pdf-tables/.secret", "skill://pdf-tables/../csv-tools/SKILL.md", "skill://nope/SKILL.md"]
    {
        assert!(read(uri).await.is_err(), "{uri}");
    }
    let folder = rmcp::model::ReadResourceDirectoryRequestParams::new("skill://pdf-tables");
    let children = client.peer.read_resource_directory(folder).await.unwrap().resources;
    assert!(
        children.iter().any(|child| child.uri == "skill://pdf-tables/references" && child.is_directory())
    );
    let skill = Reference::for_resource("skill://{skill_id}/SKILL.md");
    let completed = client.peer.complete(rmcp::model::CompleteRequestParams::new(
        skill,
        rmcp::model::ArgumentInfo::new("skill_id", "pdf-t"),
    ));
    assert_eq!(completed.await.unwrap().completion.values, ["pdf-tables"]);
    let context =
        CompletionContext::with_arguments([("skill_id".to_owned(), "pdf-tables".to_owned())].into());
    let file = rmcp::model::CompleteRequestParams::new(
        Reference::for_resource("skill://{skill_id}/{+path}"),
        rmcp::model::ArgumentInfo::new("path", "logo"),
    );
    let completed = client.peer.complete(file.with_context(context)).await.unwrap();
    assert_eq!(completed.completion.values, ["assets/logo.png"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn user_invocable_skills_are_prompts() {
    let home = Home::with_skills();
    let mut client = Client::new(&home, None).await;
    assert!(client.peer.list_all_prompts().await.unwrap().is_empty());
    home.skill(
        "greet",
        "description: Greets somebody by name, for the tests of this program.\nargument-hint: \"[name]\"",
        "Say hello to $0.\n",
    );
    // The end of the first scan is an event too, and the client handles notifications concurrently.
    let (mut has_resources, mut prompts) = (false, Vec::new());
    while !has_resources || prompts.is_empty() {
        let is_prompts = client.receive("the news", |heard| match heard {
            ClientEvent::Resources => Some(false),
            ClientEvent::Prompts => Some(true),
            _ => None,
        });
        if is_prompts.await {
            prompts = client.peer.list_all_prompts().await.unwrap();
        } else {
            has_resources = true;
        }
    }
    assert_eq!(prompts[0].name, "greet");
    let Value::Object(arguments) = json!({ "arguments": "Ana" }) else { unreachable!() };
    let mut request = GetPromptRequestParams::new("greet");
    request.arguments = Some(arguments);
    let prompt = client.peer.get_prompt(request).await.unwrap();
    let reported = serde_json::to_value(&prompt.messages[0]).unwrap();
    assert!(reported["content"]["text"].as_str().unwrap().contains("Say hello to Ana."), "{reported}");
    assert!(
        client.peer.get_prompt(GetPromptRequestParams::new("pdf-tables")).await.is_err(),
        "not for people"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_steps_of_a_run_are_progress_notifications() {
    let fixture = RunsFixture::new();
    let mut client = Client::new(&fixture.home, Some(ElicitationAction::Accept)).await;
    client.works("skill.execute", json!({ "skill_id": "send", "inputs": { "to": "ana" } })).await;
    let progress = client.receive("progress", |heard| match heard {
        ClientEvent::Progress(done, total, message) => Some((done, total, message)),
        _ => None,
    });
    assert_eq!(progress.await, (1.0, Some(1.0), "send completed (1 of 1)".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn canceled_call_does_not_end_its_run() {
    let fixture = RunsFixture::new();
    fixture.home.skill("slow", "description: Takes its time, for the tests of this program.", "Body.\n");
    for (file, text) in [
        (
            "skill.yaml",
            "id: test.slow\nversion: 1.0.0\noutputs: {done: {type: string}}\n\
             steps:\n  - {id: wait, uses: test.slow.wait, output: {done: outputs.done}}\n",
        ),
        (
            "capabilities/wait.yaml",
            "id: test.slow.wait\nversion: 1.0.0\ndescription: Of these tests.\ninputs: {}\n\
             outputs: {done: {type: string}}\nproperties: {deterministic: true, side_effects: false, idempotent: true}\n",
        ),
        (
            "bindings/wait.yaml",
            "id: slow_wait\ncapability: test.slow.wait\nservice: bundle\nprotocol: script\n\
             operation: scripts/wait.py\nmetadata: {conformance_profile: strict}\n",
        ),
        ("scripts/wait.py", "import time\ntime.sleep(2)\nprint('{\"done\": \"yes\"}')\n"),
    ] {
        fixture.home.file(&format!("slow/{file}"), text);
    }
    let client = Client::new(&fixture.home, None).await;
    let params = CallToolRequestParams::new("skill.execute")
        .with_arguments(json!({ "skill_id": "slow" }).as_object().unwrap().clone());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let call = client.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    let deadline = Instant::now() + WAIT_TIMEOUT;
    let wait_for_state = |expected: &[&str]| {
        loop {
            let list = fixture.json(&["runs", "list", "--skill", "slow"]);
            let state = list["runs"][0]["state"].as_str().unwrap_or("none").to_owned();
            if expected.contains(&state.as_str()) {
                return state;
            }
            assert!(Instant::now() < deadline, "timed out waiting for {expected:?}: {list}");
        }
    };
    wait_for_state(&["running", "completed"]);
    call.cancel(Some("somebody pressed Escape".to_owned())).await.unwrap();
    assert_eq!(wait_for_state(&["completed", "failed", "canceled", "pending"]), "completed");
    assert_eq!(client.works("runtime.health", json!({})).await["status"], "ok");
}

/// A server spoken to in lines, as any client does that is not of this library.
struct Lines {
    child: std::process::Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Lines {
    fn of(home: &Home) -> Self {
        let mut command = home.command();
        command.arg("--root").arg(home.skills()).arg("mcp");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn send(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        self.answer(id)
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "the server ended");
            let answer: Value = serde_json::from_str(&line).expect("only the protocol is on standard output");
            if answer["id"] == id {
                return answer;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_results_cost_six_kilobytes() {
    let home = Home::empty();
    for n in 0..15 {
        let description =
            format!("description: Profiles a table and reports rows. {}\n", "Says why. ".repeat(80));
        home.skill(&format!("table-profile-{n:02}"), &description, "B.\n");
    }
    let client = Client::new(&home, None).await;
    let request = json!({ "intent": "profile a table and report its rows" });
    let answer = client.call("skill.discover", request.clone()).await;
    assert!(text(&answer).len() <= 6_000, "{} bytes", text(&answer).len());
    let results = json_of(&answer)["results"].as_array().unwrap().len();
    assert_eq!((results, answer.structured_content), (10, None));
    let output = client.explains("skill.discover", request).await;
    assert!(output["results"][0]["breakdown"].is_object(), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_tool_names_are_offered_on_request() {
    let home = Home::with_skills();
    home.file("pdf-tables/references/layout.md", "How tables are laid out.\n");
    let client = Client::of(&home, &["--compat"], ProtocolVersion::V_2025_11_25, None).await;
    let tools = client.peer.list_all_tools().await.unwrap();
    for older in ["list_skills", "read_skill", "read_skill_resource"] {
        assert!(tools.iter().any(|tool| tool.name == older), "{older}");
    }
    let listed = client.works("list_skills", json!({ "query": "tables in a pdf" })).await;
    assert!(listed.to_string().contains("pdf-tables"), "{listed}");
    let body = client.works("read_skill", json!({ "id": "pdf-tables" })).await;
    assert!(body.to_string().contains("# PDF tables"), "{body}");
    let read =
        client.works("read_skill_resource", json!({ "skill": "pdf-tables", "path": "references/layout.md" }));
    assert_eq!(read.await["content"], "How tables are laid out.\n");
    let failure = client.fails("read_skill_resource", json!({ "path": "../csv-tools/SKILL.md" })).await;
    assert_eq!(failure["error"]["code"], "path_escape");
    let unextended = Client::new(&home, None).await;
    assert_eq!(unextended.peer.list_all_tools().await.unwrap().len() + 3, tools.len());
    let request = CallToolRequestParams::new("list_skills");
    assert!(unextended.peer.call_tool(request).await.is_err(), "not without being asked for");
}

#[test]
fn too_long_request_is_rejected() {
    let home = Home::with_skills();
    let mut lines = Lines::of(&home);
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    lines.ask(1, "initialize", &hello);
    lines.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    for (id, mebibytes) in [(2, 3), (4, 10), (6, 20)] {
        let long = json!({ "name": "skill.discover", "arguments": { "id": 1, "intent": "x".repeat(mebibytes << 20) } });
        let refused = lines.ask(id, "tools/call", &long);
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("2 MiB"), "{refused}");
        // Clients write the members in any order.
        let last = json!({ "arguments": long["arguments"], "name": "skill.discover" });
        lines.send(&format!(r#"{{"method":"tools/call","params":{last},"jsonrpc":"2.0","id":{}}}"#, id + 1));
        assert_eq!(lines.answer(id + 1)["error"]["code"], -32600);
    }
    assert!(lines.ask(8, "ping", &json!({}))["result"].is_object(), "the connection stays open");
    drop(lines.child.stdin.take());
    assert!(lines.child.wait().unwrap().success());
}

#[test]
fn invalid_message_does_not_end_the_server() {
    let home = Home::with_skills();
    let mut lines = Lines::of(&home);
    lines.send("this is not JSON");
    lines.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let hello = json!({ "protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let answer = lines.ask(1, "initialize", &hello);
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "the newest with a handshake");
    assert_eq!(answer["result"]["serverInfo"]["name"], "skill-workbench");
    lines.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let long = "x".repeat(3 << 20);
    for wrong in ["{", "[1, 2]", "null", r#"{"jsonrpc":"2.0","id":7}"#, "\u{0}", long.as_str()] {
        lines.send(wrong);
    }
    let unknown = lines.ask(2, "no/such/method", &json!({}));
    assert_eq!(unknown["error"], json!({ "code": -32601, "message": "method `no/such/method` not found" }));
    assert_eq!(lines.ask(3, "tools/call", &json!({ "name": "skill.lst" }))["error"]["code"], -32602);
    let nameless = lines.ask(4, "tools/call", &json!({ "arguments": {} }));
    let missing = "invalid parameters of `tools/call`: `name` is missing";
    assert_eq!(nameless["error"], json!({ "code": -32602, "message": missing }));
    let found = lines.ask(5, "tools/call", &json!({ "name": "skill.list", "arguments": { "query": "pdf" } }));
    let text = found["result"]["content"][0]["text"].as_str().unwrap();
    let skills: Value = serde_json::from_str(text).unwrap();
    assert_eq!(skills["skills"][0]["skill_id"], "pdf-tables", "{found}");
    drop(lines.child.stdin.take());
    assert!(lines.child.wait().unwrap().success(), "it ends with its client");
}
