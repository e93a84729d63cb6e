//! Whose sessions a key may use: for others they do not exist in any operation.

use serde_json::{Value, json};
use skills_api::operations::Scope;
use skills_api::{AuditFilter, SessionClient as _, SettingsChange};
use skills_mcp::SessionLimits;

use super::errors::is;
use super::test_server::{Answer, TestServer, filled};
use crate::runs_place::TestHome;

/// A service with three keys, and a session of the first.
pub struct Owned {
    pub test_server: TestServer,
    pub ana: String,
    pub ben: String,
    pub admin: String,
    session: String,
}

impl Owned {
    async fn begin() -> Self {
        let (test_server, [ana, ben, admin]) = keyed(SessionLimits::default()).await;
        let made = call(&test_server, &ana, "session.new", json!({})).await;
        assert_eq!((made.status, made.json()["owner"].as_str()), (201, Some("ana")));
        let session = made.json()["session_id"].as_str().unwrap().to_owned();
        Self { test_server, ana, ben, admin, session }
    }

    async fn call(&self, key: &str, name: &str, arguments: Value) -> Answer {
        call(&self.test_server, key, name, arguments).await
    }

    /// Sends a request as every caller: it succeeds for owner and admin; for others the session does not exist.
    async fn only_its_owner(name: &str, arguments: Value) {
        let owned = Self::begin().await;
        let with = |session: &str| {
            let mut arguments = arguments.clone();
            arguments["session_id"] = json!(session);
            arguments
        };
        let load = json!({ "session_id": owned.session, "tool": "skills.load", "arguments": { "names": ["notes"] } });
        assert_eq!(owned.call(&owned.ana, "session.tool", load).await.status, 200);
        let short = owned.session.get(24..).unwrap().to_owned();
        for named in [owned.session.clone(), short] {
            let foreign = owned.call(&owned.ben, name, with(&named)).await;
            let absent = owned.call(&owned.ben, name, with("0198-none")).await;
            assert_eq!((foreign.status, foreign.code()), (404, "not_found".to_owned()), "{}", foreign.body);
            assert_eq!(foreign.message(), absent.message().replace("0198-none", &named));
        }
        for key in [&owned.ana, &owned.admin] {
            let answer = owned.call(key, name, with(&owned.session)).await;
            assert!(answer.status < 300, "{} {}", answer.status, answer.body);
        }
    }

    async fn only_its_owner_calls(tool: &str, arguments: Value) {
        Self::only_its_owner("session.tool", json!({ "tool": tool, "arguments": arguments })).await;
    }
}

pub async fn call(test_server: &TestServer, key: &str, name: &str, arguments: Value) -> Answer {
    let (operation, mut path, rest) = filled(name, arguments);
    let mut body = String::new();
    if operation.route.asks_by_query() {
        let query = skills_api::operations::to_query(&rest);
        if !query.is_empty() {
            path = format!("{path}?{query}");
        }
    } else {
        body = Value::Object(rest).to_string();
    }
    test_server.ask(&operation.route.method.to_string(), &path, &[("x-api-key", key)], &body).await
}

/// A service, and the keys of two who run and decide and of one who may do everything.
pub async fn keyed(limits: SessionLimits) -> (TestServer, [String; 3]) {
    keyed_at(TestHome::new(), limits).await
}

async fn keyed_at(place: TestHome, limits: SessionLimits) -> (TestServer, [String; 3]) {
    let all: &[Scope] = &[Scope::Read, Scope::Run, Scope::Decide];
    let admin = &[Scope::Read, Scope::Run, Scope::Decide, Scope::Admin];
    TestServer::with_keys(place, limits, [("ana", all), ("ben", all), ("admin", admin)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_offered_under_the_name_of_the_key() {
    let (test_server, [ana, ben, _]) = keyed(SessionLimits::default()).await;
    let asks = test_server
        .ask(
            "POST",
            "/v1/skills/ledger/execute",
            &[("x-api-key", ana.as_str())],
            r#"{"inputs":{"amounts":[1]}}"#,
        )
        .await;
    let reason = asks.json()["error"]["reason"].clone();
    let path = format!("/v1/runs/{}", reason["run_id"].as_str().unwrap());
    let shown = test_server.ask("GET", &path, &[("x-api-key", ben.as_str())], "").await.json();
    assert_eq!(shown["sheet"]["approver"], json!(["ben", "principal of the API key"]), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_own_sessions_only() {
    let owned = Owned::begin().await;
    let listed = async |key: &str| {
        let listed = owned.call(key, "session.list", json!({})).await.json();
        listed["sessions"].as_array().unwrap().len()
    };
    assert_eq!((listed(&owned.ana).await, listed(&owned.ben).await, listed(&owned.admin).await), (1, 0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_a_principal_are_limited() {
    let (test_server, [ana, ben, _]) = keyed(SessionLimits::default()).await;
    for _ in 0..500 {
        let made = call(&test_server, &ana, "session.new", json!({})).await;
        assert!(made.status < 300, "{}", made.body);
    }
    let refused = call(&test_server, &ana, "session.new", json!({})).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "rate_limited"), "{}", refused.body);
    assert!(refused.message().contains("retention.sessions"), "{}", refused.message());
    assert!(call(&test_server, &ben, "session.new", json!({})).await.status < 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_without_an_owner_belong_to_admin() {
    let owned = Owned::begin().await;
    let local = owned.test_server.core.new_session(SettingsChange::default()).await.unwrap();
    assert_eq!(local.owner, None);
    let show = json!({ "session_id": local.session_id });
    assert_eq!(owned.call(&owned.ana, "session.show", show.clone()).await.status, 404);
    assert_eq!(owned.call(&owned.admin, "session.show", show).await.status, 200);
    // The local account uses the runs of every owner.
    owned.test_server.core.session(&owned.session).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_earlier_databases_have_no_owner() {
    let mut place = TestHome::new();
    let store = place.path("earlier.db");
    let earlier = include_str!("../../fixtures/stores/version-6.sql");
    rusqlite::Connection::open(&store).unwrap().execute_batch(earlier).unwrap();
    place.config.store = Some(format!("sqlite:{}", store.display()));
    let (test_server, [ana, ben, admin]) = keyed_at(place, SessionLimits::default()).await;
    let session = "01a2068b-d3cf-775c-a243-c3fe9f6d5f0e";
    let show = json!({ "session_id": session });
    for other in [&ana, &ben] {
        assert_eq!(call(&test_server, other, "session.show", show.clone()).await.status, 404);
    }
    let shown = call(&test_server, &admin, "session.show", show.clone()).await;
    assert!(shown.status == 200 && shown.body.contains("kept from before"), "{}", shown.body);
    let listed = call(&test_server, &admin, "session.list", json!({})).await.json();
    assert_eq!(
        (&listed["sessions"][0]["session_id"], &listed["sessions"][0]["entries"]),
        (&json!(session), &json!(1))
    );
    assert_eq!(
        call(&test_server, &admin, "session.show", json!({ "session_id": "fe9f6d5f0e" })).await.status,
        200
    );
    assert_eq!(test_server.core.session(session).await.unwrap().transcript.len(), 1);
    let made = call(&test_server, &ana, "session.new", json!({})).await.json();
    assert_eq!(made["owner"], "ana");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_without_keys_share_their_sessions() {
    let test_server = TestServer::open().await;
    let made = test_server.call("session.new", json!({})).await.json();
    assert!(made.get("owner").is_none());
    let show = json!({ "session_id": made["session_id"] });
    assert_eq!(test_server.call("session.show", show).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn showing_is_for_the_owner() {
    Owned::only_its_owner("session.show", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configuring_is_for_the_owner() {
    Owned::only_its_owner("session.configure", json!({ "settings": { "cap": 3 } })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_for_the_owner() {
    Owned::only_its_owner("session.say", json!({ "speaker": "user", "text": "hello" })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn composing_is_for_the_owner() {
    Owned::only_its_owner("session.compose", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exporting_is_for_the_owner() {
    Owned::only_its_owner("session.export", json!({ "api": "anthropic", "model": "m" })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_of_loaded_skills_are_for_the_owner() {
    Owned::only_its_owner("skill.levels", json!({ "skill_id": "notes" })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listing_skills_is_for_the_owner() {
    Owned::only_its_owner_calls("skills.list", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_is_for_the_owner() {
    Owned::only_its_owner_calls("skills.load", json!({ "names": ["notes"] })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unloading_is_for_the_owner() {
    Owned::only_its_owner_calls("skills.unload", json!({ "names": ["other"] })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_files_is_for_the_owner() {
    Owned::only_its_owner_calls("skills.read", json!({ "path": "SKILL.md" })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn running_scripts_is_for_the_owner() {
    let owned = Owned::begin().await;
    let run = json!({
        "session_id": owned.session, "tool": "skills.run_script", "approved": true,
        "arguments": { "path": "scripts/none.sh" },
    });
    let foreign = owned.call(&owned.ben, "session.tool", run.clone()).await;
    assert_eq!((foreign.status, foreign.code()), (404, "not_found".to_owned()));
    let own = owned.call(&owned.ana, "session.tool", run).await;
    assert_eq!(own.code(), "not_loaded", "{}", own.body);
    let show = json!({ "session_id": owned.session });
    let transcript = owned.call(&owned.ana, "session.show", show).await.json()["transcript"].clone();
    assert_eq!(transcript.as_array().unwrap().len(), 1, "the refused call is not in it");
}

/// A session of ana with the skill of a script, and the call of that script.
async fn with_script() -> (Owned, Value) {
    let owned = Owned::begin().await;
    let load =
        json!({ "session_id": owned.session, "tool": "skills.load", "arguments": { "names": ["ledger"] } });
    assert_eq!(owned.call(&owned.ana, "session.tool", load).await.status, 200);
    let run = json!({
        "session_id": owned.session, "tool": "skills.run_script",
        "arguments": { "path": "scripts/book.sh", "args": ["1"] },
    });
    (owned, run)
}

#[tokio::test(flavor = "multi_thread")]
async fn script_runs_only_as_shown() {
    let (owned, run) = with_script().await;
    let confirmed = |digest: &Value| {
        let mut run = run.clone();
        run["inputs_digest"] = digest.clone();
        run
    };
    let mut flag = run.clone();
    flag["approved"] = json!(true);
    for unconfirmed in [run.clone(), flag] {
        let asks = owned.call(&owned.ana, "session.tool", unconfirmed).await;
        if asks.code() == "safety_denied" {
            eprintln!("SKIPPED: this machine isolates nothing, the script was not run");
            return;
        }
        is(&asks, 428, "confirmation_required");
        let reason = asks.json()["error"]["reason"].clone();
        let script = &reason["script"];
        assert_eq!(
            (&script["skill"], &script["path"], &script["args"]),
            (&json!("ledger"), &json!("scripts/book.sh"), &json!(["1"]))
        );
        assert_eq!(reason["send"]["body"]["inputs_digest"], script["inputs_digest"], "{reason}");
    }
    let asks = owned.call(&owned.ana, "session.tool", run.clone()).await;
    let digest = asks.json()["error"]["reason"]["script"]["inputs_digest"].clone();
    is(&owned.call(&owned.ana, "session.tool", confirmed(&json!("9f"))).await, 409, "invalid_transition");
    let script = owned.test_server.place.path("skills/ledger/scripts/book.sh");
    let before = std::fs::read(&script).unwrap();
    std::fs::write(&script, "echo something else\n").unwrap();
    is(&owned.call(&owned.ana, "session.tool", confirmed(&digest)).await, 409, "invalid_transition");
    std::fs::write(&script, before).unwrap();
    assert_eq!(owned.call(&owned.ana, "session.tool", confirmed(&digest)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_names_whose_key_confirmed() {
    let (owned, mut run) = with_script().await;
    let asks = owned.call(&owned.ana, "session.tool", run.clone()).await;
    if asks.code() == "safety_denied" {
        eprintln!("SKIPPED: this machine isolates nothing, the script was not run");
        return;
    }
    run["inputs_digest"] = asks.json()["error"]["reason"]["script"]["inputs_digest"].clone();
    let ran = owned.call(&owned.ana, "session.tool", run).await;
    assert_eq!(ran.status, 200, "{}", ran.body);
    let filter = AuditFilter { kind: Some("script.allowed".to_owned()), ..AuditFilter::default() };
    let lines = owned.test_server.core.audit_log().show(filter).await.unwrap();
    let by: Vec<Option<&str>> = lines.iter().map(|line| line.by.as_deref()).collect();
    assert_eq!(by, [Some("ana")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_names_who_activated_a_binding() {
    let owned = Owned::begin().await;
    let choose = json!({ "capability_id": "test.ledger.book", "binding": "ledger-book" });
    let chosen = owned.call(&owned.admin, "capability.activate", choose).await;
    assert_eq!(chosen.status, 200, "{}", chosen.body);
    let filter = AuditFilter { kind: Some("binding.activated".to_owned()), ..AuditFilter::default() };
    let lines = owned.test_server.core.audit_log().show(filter).await.unwrap();
    let by: Vec<Option<&str>> = lines.iter().map(|line| line.by.as_deref()).collect();
    assert_eq!(by, [Some("admin")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_names_who_assigned_and_unassigned() {
    let test_server = TestServer::open().await;
    let run = test_server.waiting().await;
    for (to, by) in [(json!("kim"), "ana"), (json!(null), "bo")] {
        let assigned = test_server.call("run.assign", json!({ "run_id": run, "to": to, "by": by })).await;
        assert_eq!(assigned.status, 200, "{}", assigned.body);
    }
    let filter = AuditFilter { kind: Some("run.assigned".to_owned()), ..AuditFilter::default() };
    let lines = test_server.core.audit_log().show(filter).await.unwrap();
    let decided: Vec<_> =
        lines.iter().map(|line| (line.by.as_deref(), line.data.get("to").and_then(Value::as_str))).collect();
    assert_eq!(decided, [(Some("ana"), Some("kim")), (Some("bo"), None)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_is_a_target_for_the_owner() {
    let owned = Owned::begin().await;
    let say = json!({ "session_id": owned.session, "speaker": "user", "text": "secret plan" });
    assert_eq!(owned.call(&owned.ana, "session.say", say).await.status, 200);
    let choices = json!({ "target_type": "transcript" });
    let offered = async |key: &str| {
        let listed = owned.call(key, "target.list", choices.clone()).await.json();
        listed["targets"].as_array().unwrap().len()
    };
    assert_eq!((offered(&owned.ana).await, offered(&owned.ben).await), (1, 0));
    let attach = |session: &str| {
        let target_ref = format!("session:{session}");
        json!({ "skill_id": "watch", "target_type": "transcript", "target_ref": target_ref, "inputs": {} })
    };
    let own = owned.call(&owned.ana, "skill.attach_preview", attach(&owned.session)).await;
    assert!(own.body.contains("secret plan"), "{}", own.body);
    for operation in ["skill.attach_preview", "skill.attach", "skill.attach_async"] {
        let foreign = owned.call(&owned.ben, operation, attach(&owned.session)).await;
        let absent = owned.call(&owned.ben, operation, attach("0198-none")).await;
        assert!(!foreign.body.contains("secret plan"), "{}", foreign.body);
        assert_eq!(foreign.status, absent.status, "{operation}");
        if operation != "skill.attach_preview" {
            assert_eq!((foreign.code(), absent.code()), (absent.code(), "target_not_found".to_owned()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_script_are_artifacts_for_the_owner() {
    let (owned, mut run) = with_script().await;
    let asks = owned.call(&owned.ana, "session.tool", run.clone()).await;
    if asks.code() == "safety_denied" {
        eprintln!("SKIPPED: this machine isolates nothing, the script was not run");
        return;
    }
    run["inputs_digest"] = asks.json()["error"]["reason"]["script"]["inputs_digest"].clone();
    let ran = owned.call(&owned.ana, "session.tool", run).await;
    assert!(ran.status == 200 && ran.body.contains("artifact:"), "{}", ran.body);
    let offered = async |key: &str| {
        let listed = owned.call(key, "target.list", json!({ "target_type": "artifact" })).await.json();
        let targets = listed["targets"].as_array().unwrap().clone();
        targets.iter().filter(|target| target["label"].as_str().unwrap().starts_with("entry.txt")).count()
    };
    assert_eq!(
        (offered(&owned.ana).await, offered(&owned.ben).await, offered(&owned.admin).await),
        (1, 0, 1)
    );
    // An abbreviated digest finds the file for its owner, and nothing for others.
    let target_ref = ran.body.split_once("artifact:").unwrap().1.get(..6).unwrap();
    let target_ref = format!("artifact:{target_ref}");
    let attach = json!({
        "skill_id": "watch", "target_type": "artifact", "target_ref": target_ref, "inputs": {},
    });
    let own = owned.call(&owned.ana, "skill.attach", attach.clone()).await;
    assert!(!own.body.contains("target_not_found"), "{}", own.body);
    let foreign = owned.call(&owned.ben, "skill.attach", attach).await;
    assert_eq!(foreign.code(), "target_not_found", "{}", foreign.body);
}
