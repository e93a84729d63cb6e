//! What a session exports, against the published shapes of the services that would be sent it: the fields, and what no
//! schema can express (turns alternate, every call has its result where the service expects it, each body appears
//! once and is counted where it appears).

use crate::session_place;

use serde_json::{Value, json};
use session_place::{TestHome, call};
use skills_api::{SessionClient as _, SettingsChange};
use skills_session::{Api, MessageRole};

const SHAPES: [(Api, &str); 3] = [
    (Api::Anthropic, include_str!("../fixtures/model_apis/anthropic-messages.schema.json")),
    (Api::OpenaiResponses, include_str!("../fixtures/model_apis/openai-responses.schema.json")),
    (Api::OpenaiChat, include_str!("../fixtures/model_apis/openai-chat.schema.json")),
];

fn wrong(api: Api, body: &Value) -> Vec<String> {
    let (_, shape) = SHAPES.iter().find(|(of, _)| *of == api).unwrap();
    let shape: Value = serde_json::from_str(shape).unwrap();
    let validator = jsonschema::draft202012::new(&shape).unwrap();
    validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// A talk with everything in it: messages of both, calls in a row, a failed call, one without arguments, a message
/// after a result, a loaded body.
async fn talk(place: &TestHome) -> (skills_api::Local, String) {
    place.file("alpha/references/rules.md", "the rules\n");
    let core = place.core().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    core.say(&id, MessageRole::User, "do the alpha thing").await.unwrap();
    call(&core, &id, "skills.list", json!({})).await.result.unwrap();
    call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await.result.unwrap();
    call(&core, &id, "skills.read", json!({"path": "../beta/SKILL.md"})).await.result.unwrap_err();
    call(&core, &id, "skills.read", json!({"path": "references/rules.md"})).await.result.unwrap();
    core.say(&id, MessageRole::User, "and faster").await.unwrap();
    core.say(&id, MessageRole::Assistant, "Done.").await.unwrap();
    core.say(&id, MessageRole::User, "thanks").await.unwrap();
    call(&core, &id, "skills.unload", Value::Null).await.result.unwrap_err();
    (core, id)
}

#[tokio::test]
async fn exports_are_valid_for_every_service() {
    let place = TestHome::new();
    let (core, id) = talk(&place).await;
    for compat in [false, true] {
        let change = SettingsChange { compat: Some(compat), ..SettingsChange::default() };
        core.configure_session(&id, change).await.unwrap();
        for (api, _) in SHAPES {
            let payload = core.export_session(&id, api, "a-model").await.unwrap();
            let wrong = wrong(api, &payload.body);
            assert!(wrong.is_empty(), "{api}: {}\n{:#}", wrong.join("\n"), payload.body);
            assert!(payload.notes.is_empty(), "{api}: {:?}", payload.notes);
        }
    }
}

#[tokio::test]
async fn anthropic_turns_alternate_and_results_follow_their_calls() {
    let place = TestHome::new();
    let (core, id) = talk(&place).await;
    let body = core.export_session(&id, Api::Anthropic, "a-model").await.unwrap().body;
    assert!(body["max_tokens"].as_u64().is_some());
    assert!(body["system"][0]["text"].as_str().unwrap().contains("Use alpha well."));
    let messages = body["messages"].as_array().unwrap();
    for pair in messages.windows(2) {
        assert_ne!(pair[0]["role"], pair[1]["role"], "turns alternate");
    }
    let ids = |message: &Value, kind: &str, key: &str| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap();
        blocks.iter().filter(|b| b["type"] == kind).map(|b| b[key].as_str().unwrap().to_owned()).collect()
    };
    let mut calls = 0;
    for (at, message) in messages.iter().enumerate() {
        let called = ids(message, "tool_use", "id");
        if called.is_empty() {
            continue;
        }
        calls += called.len();
        let next = &messages[at + 1];
        assert_eq!(ids(next, "tool_result", "tool_use_id"), called, "answered in the very next message");
        let kinds: Vec<&Value> = next["content"].as_array().unwrap().iter().map(|b| &b["type"]).collect();
        let first_text = kinds.iter().position(|kind| **kind == "text").unwrap_or(kinds.len());
        assert!(kinds[first_text..].iter().all(|kind| **kind == "text"), "results precede text");
    }
    assert_eq!(calls, 5);
}

#[tokio::test]
async fn openai_pairs_calls_and_outputs_by_id() {
    let place = TestHome::new();
    let (core, id) = talk(&place).await;
    let body = core.export_session(&id, Api::OpenaiResponses, "a-model").await.unwrap().body;
    let input = body["input"].as_array().unwrap();
    for (at, item) in input.iter().enumerate().filter(|(_, item)| item["type"] == "function_call") {
        let next = &input[at + 1];
        assert_eq!((&next["type"], &next["call_id"]), (&json!("function_call_output"), &item["call_id"]));
        let arguments: Value = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
        assert!(arguments.is_object(), "{item}");
    }
    let body = core.export_session(&id, Api::OpenaiChat, "a-model").await.unwrap().body;
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0]["role"], "system");
    for (at, message) in messages.iter().enumerate().filter(|(_, m)| m["tool_calls"].is_array()) {
        let answers: Vec<&Value> = messages[at + 1..].iter().take_while(|m| m["role"] == "tool").collect();
        let tool_calls = message["tool_calls"].as_array().unwrap();
        assert_eq!(answers.len(), tool_calls.len());
        assert_eq!(answers[0]["tool_call_id"], tool_calls[0]["id"]);
    }
}

#[tokio::test]
async fn offered_schemas_are_schemas_and_recorded_arguments_fit_them() {
    let place = TestHome::new();
    let (core, id) = talk(&place).await;
    let body = core.export_session(&id, Api::Anthropic, "a-model").await.unwrap().body;
    let tools = body["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 5);
    for tool in tools {
        jsonschema::draft202012::meta::validate(&tool["input_schema"]).unwrap();
    }
    let blocks = body["messages"].as_array().unwrap().iter().flat_map(|m| m["content"].as_array().unwrap());
    for used in blocks.filter(|block| block["type"] == "tool_use") {
        let tool = tools.iter().find(|tool| tool["name"] == used["name"]).unwrap();
        let validator = jsonschema::draft202012::new(&tool["input_schema"]).unwrap();
        assert!(validator.is_valid(&used["input"]), "{used}");
    }
}

#[tokio::test]
async fn invalid_exports_are_reported() {
    let place = TestHome::new();
    let core = place.core().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    let empty = core.export_session(&id, Api::Anthropic, "a-model").await.unwrap();
    assert!(empty.notes[0].contains("no messages"), "{:?}", empty.notes);
    assert!(!wrong(Api::Anthropic, &empty.body).is_empty(), "the check sees it too");
    core.say(&id, MessageRole::User, "hello").await.unwrap();
    core.say(&id, MessageRole::Assistant, "Hello.").await.unwrap();
    let ends = core.export_session(&id, Api::Anthropic, "a-model").await.unwrap();
    assert!(ends.notes[0].contains("last message"), "{:?}", ends.notes);
}

#[test]
fn check_reports_the_errors_of_a_service() {
    let bodies = [
        (Api::Anthropic, json!({"model": "m", "messages": [{"role": "user", "content": "x"}]}), "max_tokens"),
        (
            Api::Anthropic,
            json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}],
                "tools": [{"name": "skills.load", "input_schema": {"type": "object"}}]}),
            "skills.load",
        ),
        (
            Api::OpenaiChat,
            json!({"model": "m", "messages": [{"role": "tool", "content": "x"}]}),
            "messages/0",
        ),
        (
            Api::OpenaiResponses,
            json!({"model": "m", "input": [{"type": "function_call", "call_id": "c", "name": "n", "arguments": {}}]}),
            "input/0",
        ),
    ];
    for (api, body, what) in bodies {
        let errors = wrong(api, &body).join("\n");
        assert!(errors.contains(what), "{api}: {errors:?}");
    }
}

fn errors(instructions: &str) -> SettingsChange {
    SettingsChange { instructions: Some(instructions.parse().unwrap()), ..SettingsChange::default() }
}

#[tokio::test]
async fn bodies_in_tool_results_count_as_level_two() {
    let place = TestHome::new();
    place.file("alpha/references/rules.md", "the rules\n");
    let core = place.core().await;
    let id = core.new_session(errors("tool-result")).await.unwrap().session_id;
    call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await;
    call(&core, &id, "skills.read", json!({"path": "references/rules.md"})).await;
    let first = core.compose(&id, false).await.unwrap();
    let body = json!(core.session(&id).await.unwrap().active[0].body).to_string().len() as u64 - 2;
    assert_eq!((first.size.l2.bytes, first.delivered.len()), (body, 1), "{:?}", first.size);
    assert_eq!((first.delivered[0].skill.as_str(), first.delivered[0].entry), ("alpha", 1));
    assert_eq!(first.body_size("alpha"), Some(first.size.l2));
    assert!(first.size.l3.tokens > 0 && first.size.history.tokens > 0, "{:?}", first.size);
    // Added to, only what is new is given; named again, it appears again.
    call(&core, &id, "skills.load", json!({"names": ["beta"], "mode": "add"})).await;
    call(&core, &id, "skills.load", json!({"names": ["alpha"], "mode": "add"})).await;
    call(&core, &id, "skills.unload", json!({"names": ["beta"]})).await;
    let next = core.compose(&id, false).await.unwrap();
    let delivered: Vec<(&str, u64)> = next.delivered.iter().map(|g| (g.skill.as_str(), g.entry)).collect();
    assert_eq!(delivered, [("alpha", 1), ("beta", 3), ("alpha", 4)]);
    let view = core.session(&id).await.unwrap();
    let entries = view.transcript.iter().map(|entry| serde_json::to_value(entry).unwrap());
    let overhead: usize = entries
        .map(|entry| entry["arguments"].to_string().len() + entry["result"]["Ok"].to_string().len())
        .sum();
    let size = next.size;
    let all: u64 = [size.base, size.l1, size.l2, size.l3, size.history].iter().map(|level| level.bytes).sum();
    assert_eq!(next.composed.text.len() as u64 + overhead as u64, all, "{size:?}");
}

#[tokio::test]
async fn each_body_is_in_the_request_once() {
    let place = TestHome::new();
    let core = place.core().await;
    for api in [Api::Anthropic, Api::OpenaiResponses, Api::OpenaiChat] {
        for (first, then) in [("top-level", "tool-result"), ("tool-result", "top-level")] {
            let id = core.new_session(errors(first)).await.unwrap().session_id;
            let once = async |names: &[&str], when: &str| {
                let text = core.export_session(&id, api, "m").await.unwrap().body.to_string();
                for name in names {
                    let many = text.matches(&format!("Use {name} well.")).count();
                    assert_eq!(many, 1, "{name} {when}, {first} then {then}: {text}");
                }
            };
            call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await;
            once(&["alpha"], "loaded").await;
            core.configure_session(&id, errors(then)).await.unwrap();
            once(&["alpha"], "after the switch").await;
            call(&core, &id, "skills.load", json!({"names": ["beta"], "mode": "add"})).await;
            once(&["alpha", "beta"], "with another").await;
            core.configure_session(&id, errors(first)).await.unwrap();
            once(&["alpha", "beta"], "and back").await;
        }
    }
}

#[tokio::test]
async fn body_returned_by_the_older_tool_is_not_composed() {
    let place = TestHome::new();
    let core = place.core().await;
    let change = SettingsChange { compat: Some(true), ..SettingsChange::default() };
    let id = core.new_session(change).await.unwrap().session_id;
    call(&core, &id, "skills.load", json!({"names": ["beta"]})).await;
    let read = call(&core, &id, "read_skill", json!({"id": "alpha"})).await.result.unwrap();
    assert!(read["active"][0]["body"].is_null(), "only what was asked for: {read}");
    let view = core.compose(&id, false).await.unwrap();
    let text = view.composed.text;
    assert!(text.contains("Use beta well.") && !text.contains("Use alpha well."), "{text}");
    assert!(text.contains("<skill name=\"alpha\">its instructions are in the result"), "{text}");
    assert_eq!((view.delivered.len(), view.delivered[0].skill.as_str()), (1, "alpha"));
    call(&core, &id, "skills.unload", json!({"all": true})).await;
    call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await;
    let text = core.compose(&id, false).await.unwrap().composed.text;
    assert!(text.contains("Use alpha well."), "loaded again, it is at the session's position: {text}");
}

#[tokio::test]
async fn composed_token_counts_are_exact_in_the_session() {
    let place = TestHome::new();
    let core = place.core().await;
    for instructions in ["top-level", "tool-result"] {
        let skill = if instructions == "top-level" { "alpha" } else { "beta" };
        let id = core.new_session(errors(instructions)).await.unwrap().session_id;
        call(&core, &id, "skills.load", json!({"names": [skill]})).await;
        assert!(core.session(&id).await.unwrap().active[0].tokens_estimated, "{instructions}");
        core.compose(&id, false).await.unwrap();
        let active = core.session(&id).await.unwrap().active.remove(0);
        let counted = core.level_view(skill, None).await.unwrap().l2.tokens;
        assert_eq!((active.tokens_estimated, active.tokens), (false, counted), "{instructions}");
        // A receipt of another skill has its current state.
        let more = call(&core, &id, "skills.load", json!({"names": ["gamma"], "mode": "add"})).await;
        let errors = more.result.unwrap()["active"][0].clone();
        assert_eq!((&errors["tokens_estimated"], &errors["tokens"]), (&json!(false), &json!(counted)));
    }
}
