//! Callers from elsewhere name no file of the service's machine: each operation with each value that may be a path.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

use serde_json::{Map, Value, json};
use skills_api::operations::{
    Caller, Operation, Principal, ReturnedRun, RunObserver, Scope, operation, operations,
};
use skills_api::resources;
use tokio_util::sync::CancellationToken;

use super::test_server::TestServer;
use super::tools::Tools;

/// Content of the files that must not be read.
const SECRET: &str = "TOP-SECRET-CONTENT";

/// A service whose working directory, whose bundles' surroundings and whose bundle `watch` hold secrets.
async fn test_server() -> TestServer {
    let test_server = TestServer::open().await;
    let place = &test_server.place;
    for path in
        ["work/key", "work/.env", "work/deep/key", "skills/key", "outside/passwd", "skills/watch/.hidden"]
    {
        place.write(path, SECRET);
    }
    place.write("work/rows.json", &format!("{{\"secret\": \"{SECRET}\"}}"));
    symlink(place.path("work/key"), place.path("skills/watch/evil")).unwrap();
    symlink("../../work/key", place.path("skills/watch/evil-relative")).unwrap();
    symlink(place.path("outside"), place.path("skills/watch/evil-folder")).unwrap();
    test_server
}

/// Spellings of files that are there.
fn paths(test_server: &TestServer) -> Vec<String> {
    let key = test_server.place.path("work/key");
    let key = key.to_str().unwrap();
    let fixed = [
        "key",
        "./key",
        " key",
        "key/",
        "rows.json",
        ".env",
        "deep/key",
        "deep/../key",
        "~/key",
        "../work/key",
        "../skills/key",
        "/proc/self/environ",
        "proc/self/environ",
        "artifact:key",
        "artifact:../work/key",
        "skill:key",
        "skill:/key",
        "skill:watch/../../work/key",
        "skill:watch/../key",
        "skill:watch//key",
        "skill:watch/%2e%2e/key",
        "skill:watch/.hidden",
        "skill:watch/evil",
        "skill:watch/evil-relative",
        "skill:watch/evil-folder/passwd",
        "skill:../work/key",
        "skill:./key",
        "task:key",
        "session:../work/key",
        "key\u{0}",
    ];
    let mut all: Vec<String> = fixed.map(str::to_owned).to_vec();
    all.extend(
        ["", "file://", "artifact:", "skill:", "skill:watch/", "task:"]
            .map(|scheme| format!("{scheme}{key}")),
    );
    all
}

/// A caller with the scopes `read` and `run` only.
fn runner() -> Caller {
    let scopes = BTreeSet::from([Scope::Read, Scope::Run]);
    let principal = Some(Principal { name: "runner".to_owned(), scopes });
    Caller {
        credentials: None,
        principal,
        local: false,
        trace_id: "paths".to_owned(),
        leave: CancellationToken::new(),
        body: None,
        observer: RunObserver::default(),
        returned_run: ReturnedRun::default(),
    }
}

async fn call(test_server: &TestServer, name: &str, arguments: Value) -> Result<Value, Value> {
    let service = skills_api::operations::Service {
        core: std::sync::Arc::clone(&test_server.core) as _,
        sessions: std::sync::Arc::clone(&test_server.core) as _,
    };
    let called = operation(name).expect(name).call(&service, &runner(), arguments).await;
    called.map_err(|error| json!({ "code": error.code, "message": error.message, "reason": error.reason }))
}

/// Fails if a response contains the secret, as text or in Base64.
fn clean(result: &Result<Value, Value>, what: &str) {
    let text = match result {
        Ok(value) | Err(value) => value.to_string(),
    };
    // Base64 of the secret at each of its three places in a group.
    let hidden = ["VE9QLVNFQ1JFVC", "RPUC1TRUNSRVQt", "UT1AtU0VDUkVUL"];
    let leaks = text.contains(SECRET) || hidden.iter().any(|part| text.contains(part));
    assert!(!leaks, "{what}: {text}");
}

/// The code that a path as a target is refused with.
fn refusal(path: &str) -> &'static str {
    if path.contains('\0') { "invalid_request" } else { "target_not_found" }
}

#[tokio::test(flavor = "multi_thread")]
async fn attach_names_no_server_file() {
    let test_server = test_server().await;
    for path in paths(&test_server) {
        for kind in ["artifact", "task", "run", "output", "transcript"] {
            let arguments = json!({ "skill_id": "watch", "target_type": kind, "target_ref": path });
            for name in ["skill.attach", "skill.attach_async"] {
                let result = call(&test_server, name, arguments.clone()).await;
                clean(&result, &format!("{name} {kind} {path}"));
                assert_eq!(result.unwrap_err()["code"], refusal(&path), "{name} {kind} {path}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attach_preview_shows_no_server_file() {
    let test_server = test_server().await;
    for path in paths(&test_server) {
        let arguments = json!({ "skill_id": "watch", "target_type": "artifact", "target_ref": path });
        let result = call(&test_server, "skill.attach_preview", arguments).await;
        clean(&result, &path);
        if path.contains('\0') {
            assert_eq!(result.unwrap_err()["code"], refusal(&path), "{path}");
            continue;
        }
        let preview = result.unwrap();
        assert_eq!(
            (&preview["content"], &preview["reason"]["check"]),
            (&Value::Null, &json!("target")),
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_and_errors_list_no_server_file() {
    let test_server = test_server().await;
    for text in ["", "key", "rows", "/"] {
        let listed = call(
            &test_server,
            "target.list",
            json!({ "target_type": "artifact", "text": text, "limit": 500 }),
        )
        .await;
        assert_eq!(listed.unwrap()["targets"], json!([]), "{text}");
    }
    let arguments = json!({ "skill_id": "watch", "target_type": "artifact", "target_ref": "nothing" });
    let error = call(&test_server, "skill.attach", arguments).await.unwrap_err();
    let allowed = error["reason"]["allowed"].to_string();
    assert!(!allowed.contains("rows.json") && !allowed.contains("key"), "{allowed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn launches_accept_no_server_file() {
    let test_server = test_server().await;
    for path in paths(&test_server) {
        for (name, what, id) in [
            ("skill.execute", "skill_id", "ledger"),
            ("skill.execute_async", "skill_id", "ledger"),
            ("run.launch", "skill_id", "ledger"),
            ("capability.execute", "capability_id", "test.amounts.add"),
            ("capability.execute_async", "capability_id", "test.amounts.add"),
            ("skill.attach", "skill_id", "watch"),
        ] {
            let mut arguments =
                json!({ what: id, "inputs": { "amounts": [1] }, "options": { "files": { "a": path } } });
            if name == "skill.attach" {
                arguments["target_type"] = json!("run");
                arguments["target_ref"] = json!("none");
            }
            let result = call(&test_server, name, arguments).await;
            clean(&result, &format!("{name} {path}"));
            assert_eq!(result.unwrap_err()["code"], "invalid_request", "{name} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn skill_locations_are_looked_up_only() {
    let test_server = test_server().await;
    // The response is the same whether or not a file exists: nothing is opened.
    let missing = test_server.place.path("work/missing").display().to_string();
    let there = test_server.place.path("work/key").display().to_string();
    for name in ["skill.describe", "skill.contract", "skill.file", "skill.lines", "skill.levels"] {
        let mut answers = Vec::new();
        for place in [&there, &missing] {
            let mut arguments = json!({ "skill_id": place });
            match name {
                "skill.file" => arguments["path"] = json!("SKILL.md"),
                "skill.lines" => arguments["intent"] = json!("secret"),
                _ => {}
            }
            let error = call(&test_server, name, arguments).await.unwrap_err();
            answers.push(error.to_string().replace(place.as_str(), "PLACE"));
        }
        assert_eq!(answers[0], answers[1], "{name}");
        assert!(answers[0].contains("not_found"), "{name}: {}", answers[0]);
    }
    for place in [&there, &missing] {
        let result = call(&test_server, "skill.governance.list", json!({ "skill": place })).await;
        assert_eq!(result.unwrap_err()["code"], "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bundle_files_stay_in_their_bundle() {
    let test_server = test_server().await;
    for path in paths(&test_server) {
        let path = path.strip_prefix("skill:watch/").unwrap_or(&path);
        let result = call(&test_server, "skill.file", json!({ "skill_id": "watch", "path": path })).await;
        clean(&result, path);
        assert!(result.is_err(), "{path}");
    }
    let read = call(&test_server, "skill.file", json!({ "skill_id": "watch", "path": "skill.yaml" })).await;
    assert!(read.is_ok(), "{read:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runtime_tools_stay_in_their_bundle() {
    let test_server = test_server().await;
    let session = call(&test_server, "session.new", json!({})).await.unwrap()["session_id"].clone();
    let tool = async |tool: &str, arguments: Value| {
        let arguments = json!({ "session_id": session, "tool": tool, "arguments": arguments });
        call(&test_server, "session.tool", arguments).await
    };
    tool("skills.load", json!({ "names": ["watch"] })).await.unwrap();
    for path in paths(&test_server) {
        let path = path.strip_prefix("skill:watch/").unwrap_or(&path);
        for (name, arguments) in [
            ("skills.read", json!({ "path": path })),
            ("skills.read", json!({ "path": "key", "skill": path })),
            ("skills.load", json!({ "names": [path] })),
            ("skills.run_script", json!({ "path": path })),
            ("skills.run_script", json!({ "path": format!("scripts/{path}") })),
            ("skills.run_script", json!({ "path": "scripts/look.py", "workdir": path })),
        ] {
            let result = tool(name, arguments.clone()).await;
            clean(&result, &format!("{name} {arguments}"));
            assert!(result.is_err(), "{name} {arguments}: {result:?}");
        }
    }
    for setting in ["agent", "client"] {
        for path in paths(&test_server) {
            let arguments = json!({ "session_id": session, "settings": { setting: path } });
            let result = call(&test_server, "session.configure", arguments).await;
            clean(&result, &format!("{setting} {path}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn artifact_names_are_not_paths() {
    let test_server = test_server().await;
    for name in ["../key", "a/b", "/etc/passwd", "..", "", " ", "a\u{0}b", "a\\b", "a\nb"] {
        let result = call(&test_server, "artifact.create", json!({ "name": name, "content": "x" })).await;
        assert_eq!(result.unwrap_err()["code"], "invalid_request", "{name:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_names_no_server_file() {
    let test_server = test_server().await;
    let tools = Tools::of(&test_server, None).await;
    for path in paths(&test_server) {
        let arguments = json!({ "skill_id": "watch", "target_type": "artifact", "target_ref": path });
        let error = tools.error("skill.attach", &arguments).await;
        assert_eq!(error["code"], refusal(&path), "{path}: {error}");
        clean(&Ok(error), &path);
        for uri in [
            path.clone(),
            format!("skill://watch/{path}"),
            format!("file://{path}"),
            path.replace(':', "://"),
        ] {
            let result = tools.request("resources/read", &json!({ "uri": uri })).await;
            clean(&Ok(result.clone()), &uri);
            assert!(result["error"].is_object(), "{uri}: {result}");
        }
    }
}

/// Every operation gets every spelling in every argument, whatever that is for.
#[tokio::test(flavor = "multi_thread")]
async fn no_argument_of_any_operation_reads_server_files() {
    let test_server = test_server().await;
    let session = call(&test_server, "session.new", json!({})).await.unwrap()["session_id"].clone();
    let usual = |name: &str, operation: &Operation| match name {
        "skill_id" if operation.name.contains("attach") => json!("watch"),
        "skill_id" => json!("close"),
        "capability_id" => json!("test.amounts.add"),
        "session_id" => session.clone(),
        "run_id" => json!("ffffffff"),
        "target_type" => json!("artifact"),
        "path" => json!("SKILL.md"),
        "client" => json!("claude-code"),
        "tool" => json!("skills.read"),
        "speaker" => json!("user"),
        "api" => json!("anthropic"),
        "skills" => json!(["watch"]),
        "settings" => json!({}),
        "limit" => json!(5),
        _ => json!("x"),
    };
    let mut tried = 0;
    for operation in operations() {
        let mut generator = schemars::SchemaGenerator::default();
        let schema = operation.arguments(&mut generator).to_value();
        let definitions = Value::Object(generator.take_definitions(true));
        let name =
            schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()).unwrap_or_default();
        let schema = definitions.get(name).unwrap_or(&schema);
        let fields = schema["properties"].as_object().cloned().unwrap_or_default();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let base: Map<String, Value> =
            required.iter().map(|name| ((*name).to_owned(), usual(name, operation))).collect();
        for field in fields.keys() {
            for path in ["key", "./rows.json", "../work/key", "/proc/self/environ"] {
                let full_path = test_server.place.path("work/key").display().to_string();
                for value in [
                    json!(path),
                    json!(full_path),
                    json!([full_path]),
                    json!({ "path": path, "file": full_path, "agent": path, "client": path }),
                ] {
                    let mut arguments = base.clone();
                    arguments.insert(field.clone(), value);
                    let result = call(&test_server, operation.name, Value::Object(arguments)).await;
                    clean(&result, &format!("{} {field} {path}", operation.name));
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 1000, "{tried}");
}

#[tokio::test(flavor = "multi_thread")]
async fn skill_files_and_stored_content_are_targets() {
    let test_server = test_server().await;
    let content = "item,amount\ncoffee,3\n";
    let stored = call(&test_server, "artifact.create", json!({ "name": "rows.csv", "content": content }))
        .await
        .unwrap();
    assert_eq!((&stored["bytes"], &stored["media_type"]), (&json!(content.len()), &json!("text/csv")));
    let reference = stored["target_ref"].as_str().unwrap();
    assert_eq!(reference, format!("artifact:{}", stored["digest"].as_str().unwrap()));
    let preview = async |reference: &str| {
        let arguments = json!({ "skill_id": "watch", "target_type": "artifact", "target_ref": reference });
        call(&test_server, "skill.attach_preview", arguments).await.unwrap()
    };
    assert_eq!(preview(reference).await["content"]["content"], content);
    let listed = call(&test_server, "target.list", json!({ "target_type": "artifact" })).await.unwrap();
    assert_eq!(listed["targets"][0]["target_ref"], reference);
    let own = preview("skill:watch/scripts/look.py").await;
    assert!(own["content"]["content"].as_str().is_some_and(|text| text.contains("import")), "{own}");
    for (reference, code) in
        [("skill:nothing/a.md", "exists"), ("skill:watch/missing.md", "exists"), ("skill:watch", "exists")]
    {
        let refused = preview(reference).await;
        assert_eq!(refused["reason"]["check"], "target", "{reference} {code}");
    }
    for (digest, is_prefix) in [("zz", false), ("e3b0c", false), ("e3b0cz", false), ("0000000000", true)] {
        let refused = preview(&format!("artifact:{digest}")).await;
        assert_eq!(refused["reason"]["check"], "target", "{digest}");
        assert_eq!(!refused.to_string().contains("is not a digest prefix"), is_prefix, "{refused}");
    }
    let binary = json!({ "name": "a.bin", "content": "AP8=", "encoding": "base64" });
    assert_eq!(call(&test_server, "artifact.create", binary).await.unwrap()["bytes"], 2);
    let wrong = json!({ "name": "a.bin", "content": "no base64!", "encoding": "base64" });
    assert_eq!(call(&test_server, "artifact.create", wrong).await.unwrap_err()["code"], "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_have_a_size_limit() {
    let test_server = test_server().await;
    let mib = "a".repeat(1 << 20);
    let stored =
        test_server.post("/v1/artifacts", &json!({ "name": "large", "content": mib.repeat(8) })).await;
    assert_eq!(stored.status, 201, "{}", stored.body);
    for mebibytes in [9, 13] {
        let content = mib.repeat(mebibytes);
        let refused =
            test_server.post("/v1/artifacts", &json!({ "name": "large", "content": content })).await;
        assert_eq!((refused.status, refused.code().as_str()), (413, "payload_too_large"), "{mebibytes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_store_nothing() {
    let (test_server, [reader, runner, _]) = super::callers::keyed().await;
    let body = json!({ "name": "a.txt", "content": "x" }).to_string();
    let stored =
        async |key: &str| test_server.ask("POST", "/v1/artifacts", &[("x-api-key", key)], &body).await;
    assert_eq!(stored(&reader).await.code(), "forbidden");
    assert_eq!(stored(&runner).await.status, 201);
    assert_eq!(test_server.ask("POST", "/v1/artifacts", &[], &body).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_have_only_files_of_their_skill() {
    let test_server = test_server().await;
    let core: skills_api::SharedClient = std::sync::Arc::clone(&test_server.core) as _;
    let skill = test_server.core.resolve("watch").unwrap();
    let files = resources::files(&core, &skill).await.unwrap();
    assert!(files.contains(&"scripts/look.py".to_owned()), "{files:?}");
    assert!(!files.iter().any(|file| file.contains("evil") || file.contains("hidden")), "{files:?}");
}
