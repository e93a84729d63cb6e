//! Sessions over the core: what is loaded, read and composed, what a hostile bundle cannot do, and that nothing is
//! lost when processes come and go.

use crate::session_place;

use serde_json::json;
use session_place::{TestHome, call, failure, names};
use skills_api::{BudgetView, Client as _, Code, DiffLine, SessionClient as _, SettingsChange};
use skills_session::{Api, MessageRole, PartKind, ToolFailure};

#[tokio::test]
async fn loading_replaces_or_adds_in_order() {
    let place = TestHome::new();
    let core = place.core().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    let before = core.compose(&id, true).await.unwrap();
    assert!(before.composed.text.contains("<available_skills>"));
    assert!(!before.composed.text.contains("<active_skills>"), "nothing is loaded yet");

    assert_eq!(names(&call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await), ["alpha"]);
    let added = call(&core, &id, "skills.load", json!({"names": ["beta", "alpha"], "mode": "add"})).await;
    assert_eq!(names(&added), ["alpha", "beta"], "add keeps the order and does not repeat");
    let receipt = &added.result.as_ref().unwrap()["active"][0];
    for key in ["name", "location", "root_dir", "digest", "properties", "tokens"] {
        assert!(!receipt[key].is_null(), "{key}: {receipt}");
    }
    assert!(receipt["body"].is_null(), "the body belongs into the instructions");

    let after = core.compose(&id, false).await.unwrap();
    let bodies: Vec<&str> = after
        .composed
        .parts
        .iter()
        .filter(|part| part.kind == PartKind::ActiveSkill)
        .filter_map(|part| part.skill.as_deref())
        .collect();
    assert_eq!(bodies, ["alpha", "beta"]);
    assert!(after.diff.unwrap().iter().any(|line| format!("{line:?}").contains("Use beta well.")));
    assert_eq!(core.compose(&id, false).await.unwrap().digest, after.digest, "the same bytes again");
    assert!(after.size.l1.tokens > 0 && after.size.l2.tokens > 0);

    assert_eq!(names(&call(&core, &id, "skills.load", json!({"names": ["gamma"]})).await), ["gamma"]);
    let none = call(&core, &id, "skills.unload", json!({"names": ["gamma", "never"]})).await;
    assert!(names(&none).is_empty());
    assert_eq!(none.result.unwrap()["ignored"], json!(["never"]), "what was not loaded is reported");
}

#[tokio::test]
async fn skills_per_call_and_transcript_size_are_limited() {
    let place = TestHome::new();
    let core = place.core().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    let names: Vec<String> = (0..65).map(|n| format!("skill-{n}")).collect();
    for tool in ["skills.load", "skills.unload"] {
        let refused = call(&core, &id, tool, json!({ "names": names })).await.result.unwrap_err();
        assert_eq!(refused.code, ToolFailure::InvalidRequest);
        assert_eq!(refused.message, "`names` has 65 items; the maximum is 64");
    }
    let text = "a".repeat(4 << 20);
    for _ in 0..3 {
        core.say(&id, MessageRole::User, &text).await.unwrap();
    }
    let entries = core.session(&id).await.unwrap().transcript.len();
    let refused = core.say(&id, MessageRole::User, &text).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidRequest, "{refused}");
    assert!(refused.message.ends_with("the maximum is 16777216. Create another session"), "{refused}");
    assert_eq!(core.session(&id).await.unwrap().transcript.len(), entries, "nothing was appended");
}

#[tokio::test]
async fn maximum_of_active_skills_is_limited() {
    let place = TestHome::new();
    let core = place.core().await;
    let change = |cap| SettingsChange { cap: Some(cap), ..SettingsChange::default() };
    for cap in [0, 65, 1_000_000] {
        assert_eq!(core.new_session(change(cap)).await.unwrap_err().code, Code::InvalidRequest, "{cap}");
    }
    let id = core.new_session(change(64)).await.unwrap().session_id;
    let refused = core.configure_session(&id, change(65)).await.unwrap_err();
    assert_eq!(refused.message, "`cap`: 65 is out of range; allowed: 1 to 64");
}

#[tokio::test]
async fn loading_over_the_limit_or_unknown_changes_nothing() {
    let place = TestHome::new();
    let core = place.core().await;
    let change = SettingsChange { cap: Some(2), ..SettingsChange::default() };
    let id = core.new_session(change).await.unwrap().session_id;
    call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await;
    let over = json!({"names": ["beta", "gamma"], "mode": "add"});
    assert_eq!(failure(&core, &id, "skills.load", over).await, ToolFailure::TooManySkills);
    let unknown =
        call(&core, &id, "skills.load", json!({"names": ["beta", "alfa"]})).await.result.unwrap_err();
    assert_eq!(unknown.code, ToolFailure::NotFound);
    assert!(unknown.message.contains("alpha"), "near names: {}", unknown.message);
    let known = core.session(&id).await.unwrap();
    assert_eq!(known.active.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["alpha"]);
    assert_eq!(known.transcript.len(), 3, "failed calls are written down too");
}

#[tokio::test]
async fn unknown_arguments_and_tools_are_refused_by_name() {
    let place = TestHome::new();
    let core = place.core().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    let error =
        call(&core, &id, "skills.load", json!({"names": ["alpha"], "force": 1})).await.result.unwrap_err();
    assert!(error.code == ToolFailure::InvalidRequest && error.message.contains("force"), "{error}");
    let unknown = core.call_tool(&id, "skills.lod", json!({}), None).await.unwrap_err();
    assert_eq!(
        (unknown.code, unknown.suggestions.first().map(String::as_str)),
        (Code::NotFound, Some("skills.load"))
    );
    let older = core.call_tool(&id, "read_skill", json!({"id": "alpha"}), None).await.unwrap_err();
    assert_eq!(older.code, Code::NotFound, "older names are offered on request only");
    let change = SettingsChange { compat: Some(true), ..SettingsChange::default() };
    core.configure_session(&id, change).await.unwrap();
    let read = call(&core, &id, "read_skill", json!({"id": "alpha"})).await.result.unwrap();
    assert!(read["active"][0]["body"].as_str().unwrap().contains("Use alpha well."));
}

#[tokio::test]
async fn every_tool_accepts_a_skill_by_id_name_or_path() {
    let place = TestHome::new();
    let about = "---\nname: other-name\ndescription: Has a name that is not its folder's.\n---\n# Other\n";
    place.file("dir-a/SKILL.md", about);
    let core = place.core().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    let skill = place.root().join("dir-a/SKILL.md");
    for called in ["other-name", skill.to_str().unwrap(), skill.parent().unwrap().to_str().unwrap()] {
        let loaded = call(&core, &id, "skills.load", json!({"names": ["other-name"]})).await.result.unwrap();
        assert_eq!(loaded["loaded"].as_array().unwrap().len(), 1, "{called}");
        let read = json!({"skill": called, "path": "SKILL.md"});
        call(&core, &id, "skills.read", read).await.result.unwrap();
        let gone = call(&core, &id, "skills.unload", json!({"names": [called]})).await.result.unwrap();
        assert_eq!(gone["unloaded"].as_array().unwrap().len(), 1, "{called}: {gone}");
    }
    let unloaded = call(&core, &id, "skills.unload", json!({"names": ["unknown"]})).await.result.unwrap();
    assert_eq!(unloaded["ignored"], json!(["unknown"]));
}

#[tokio::test]
async fn host_with_own_instructions_gets_bodies_in_results() {
    let place = TestHome::new();
    let core = place.core().await;
    let change =
        SettingsChange { instructions: Some("tool-result".parse().unwrap()), ..SettingsChange::default() };
    let id = core.new_session(change).await.unwrap().session_id;
    let answer = call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await;
    assert!(answer.result.unwrap()["active"][0]["body"].as_str().unwrap().contains("Use alpha well."));
    let composed = core.compose(&id, false).await.unwrap().composed.text;
    assert!(!composed.contains("Use alpha well."));
}

#[tokio::test]
async fn agent_has_only_its_own_skills() {
    let place = TestHome::new();
    place.file(
        "agents/clerk.yaml",
        "id: clerk\nprompt: You are a clerk.\nuses_skills: [beta]\ninstructions: Be brief.\nmodel: small\n",
    );
    let core = place.core().await;
    let clerk = || SettingsChange { agent: Some("clerk".to_owned()), ..SettingsChange::default() };
    let change = clerk();
    let id = core.new_session(change).await.unwrap().session_id;
    let text = core.compose(&id, false).await.unwrap().composed.text;
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
    assert!(at("You are a clerk.") < at("Use beta well.") && at("Use beta well.") < at("Be brief."));
    assert!(!text.contains("Does alpha things"));
    let payload = core.export_session(&id, Api::OpenaiChat, "large").await.unwrap();
    assert_eq!(payload.body["model"], "small");
    // Its own skill is already included and not composed twice; it has no others.
    assert_eq!(names(&call(&core, &id, "skills.load", json!({"names": ["beta"]})).await), ["beta"]);
    let text = core.compose(&id, false).await.unwrap().composed.text;
    assert_eq!(text.matches("Use beta well.").count(), 1, "{text}");
    let other = call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await.result.unwrap_err();
    assert!(other.code == ToolFailure::NotFound && other.message.contains("beta"), "{other}");
    let free = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    call(&core, &free, "skills.load", json!({"names": ["alpha"]})).await.result.unwrap();
    let error = core.configure_session(&free, clerk()).await.unwrap_err();
    assert!(error.code == Code::InvalidConfiguration && error.message.contains("unload alpha"), "{error}");
    assert!(core.session(&free).await.unwrap().settings.agent.is_none(), "nothing was changed");
    call(&core, &free, "skills.unload", json!({"all": true})).await.result.unwrap();
    core.configure_session(&free, clerk()).await.unwrap();
    let agents = core.agents().await.unwrap();
    assert!(agents[0].composed.iter().any(|part| part == "the body of beta, always"), "{agents:?}");
    let wrong = SettingsChange { agent: Some("clark".to_owned()), ..SettingsChange::default() };
    let error = core.new_session(wrong).await.unwrap_err();
    assert_eq!((error.code, error.suggestions), (Code::NotFound, vec!["clerk".to_owned()]));
}

#[tokio::test]
async fn an_agent_that_cannot_be_read_does_not_hide_the_others() {
    let place = TestHome::new();
    place.file("agents/clerk.yaml", "id: clerk\nprompt: You are a clerk.\n");
    place.file("agents/broken.yaml", "id: [\n");
    let pipe = place.root().join("agents/pipe.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let core = place.core().await;
    let agents = core.agents().await.unwrap();
    let ids: Vec<(&str, bool)> =
        agents.iter().map(|view| (view.agent.id.as_str(), view.problems.is_empty())).collect();
    assert_eq!(ids, [("broken", false), ("clerk", true), ("pipe", false)]);
    let with = |agent: &str| SettingsChange { agent: Some(agent.to_owned()), ..SettingsChange::default() };
    core.new_session(with("clerk")).await.unwrap();
    for wrong in ["broken", "pipe"] {
        assert_eq!(core.new_session(with(wrong)).await.unwrap_err().code, Code::InvalidConfiguration);
    }
}

#[tokio::test]
async fn agents_are_read_only_inside_their_root() {
    let place = TestHome::new();
    let outside = place.dir.path().join("outside.yaml");
    std::fs::write(&outside, "id: outside\nprompt: secret\n").unwrap();
    let clerk = "id: clerk\nprompt: You are a clerk.\n";
    place.file("team/clerk.yaml", clerk);
    std::os::unix::fs::symlink("team", place.root().join("agents")).unwrap();
    std::os::unix::fs::symlink(&outside, place.root().join("team/out.yaml")).unwrap();
    let core = place.core().await;
    let agents = core.agents().await.unwrap();
    let listed: Vec<(&str, Option<&str>, usize)> = agents
        .iter()
        .map(|view| (view.agent.id.as_str(), view.definition.as_deref(), view.problems.len()))
        .collect();
    assert_eq!(listed, [("clerk", Some(clerk), 0), ("out", None, 1)]);
    std::fs::remove_file(place.root().join("agents")).unwrap();
    let elsewhere = place.dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::rename(&outside, elsewhere.join("outside.yaml")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, place.root().join("agents")).unwrap();
    let agents = core.agents().await.unwrap();
    let listed: Vec<(&str, usize)> =
        agents.iter().map(|view| (view.agent.id.as_str(), view.problems.len())).collect();
    assert_eq!(listed, [("agents", 1)], "a folder outside of the root is refused");
}

#[tokio::test]
async fn client_budget_truncates_the_catalog_of_the_session() {
    let place = TestHome::new();
    for at in 0..60 {
        let long = "says the same thing over and over again ".repeat(24);
        place.file(
            &format!("many-{at:02}/SKILL.md"),
            &format!("---\nname: many-{at:02}\ndescription: Number {at} {long}\n---\nbody\n"),
        );
    }
    let core = place.core().await;
    let complete = core.budget(None, None).await.unwrap();
    let codex = core.budget(Some("codex"), None).await.unwrap();
    assert!(codex.allowance.fill.used <= codex.allowance.fill.limit.unwrap());
    assert!(codex.tokens.1 < complete.tokens.1 / 2, "{:?} {:?}", codex.tokens, complete.tokens);
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    let before = core.compose(&id, false).await.unwrap().size.l1.tokens;
    let change = SettingsChange { client: Some("codex".to_owned()), ..SettingsChange::default() };
    core.configure_session(&id, change).await.unwrap();
    let after = core.compose(&id, false).await.unwrap();
    assert!(after.size.l1.tokens < before && after.allowance.is_some());
    let unknown = core.budget(Some("codecs"), None).await.unwrap_err();
    assert_eq!(unknown.suggestions, ["codex"]);
}

#[tokio::test]
async fn another_client_names_the_skills_it_omits() {
    let place = TestHome::new();
    place.file("group/deep/SKILL.md", "---\nname: deep\ndescription: Lies deep.\n---\nbody\n");
    for at in 0..5 {
        place.file(
            &format!("group/a-{at}/SKILL.md"),
            &format!("---\nname: a-{at}\ndescription: d.\n---\nb\n"),
        );
    }
    let for_people = "---\nname: own\ndescription: d.\ndisable-model-invocation: true\n---\nbody\n";
    place.file("own/SKILL.md", for_people);
    let core = place.core().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await;
    let complete = core.compose(&id, true).await.unwrap();
    assert_eq!(complete.since, None, "there was no call before");
    call(&core, &id, "skills.load", json!({"names": ["beta"], "mode": "add"})).await;
    let change = SettingsChange { client: Some("claude-code".to_owned()), ..SettingsChange::default() };
    core.configure_session(&id, change).await.unwrap();
    let claude = core.compose(&id, true).await.unwrap();
    let since = claude.since.unwrap();
    assert_eq!(
        since.describe(|many| many.to_string()),
        ["the client changed from none to claude-code", "6 entries fewer"]
    );
    assert_eq!(claude.client.as_deref(), Some("claude-code"));
    let changed = |expected: &str| {
        let lines = claude.diff.iter().flatten().filter(|line| !matches!(line, DiffLine::Same(_)));
        lines.filter(|line| format!("{line:?}").contains(expected)).count()
    };
    assert_eq!((changed("Use alpha well"), changed("Use beta well"), changed("<name>deep")), (0, 1, 1));
    let reasons: Vec<(usize, bool)> =
        claude.not_listed.iter().map(|group| (group.skills, group.why.contains("too deep"))).collect();
    assert_eq!(reasons, [(6, true), (1, false)], "{:?}", claude.not_listed);
    let again = core.compose(&id, false).await.unwrap();
    assert_eq!(again.since.unwrap().describe(|many| many.to_string()), Vec::<String>::new());
    // The reason of a loaded skill is reported, however many others share it.
    call(&core, &id, "skills.load", json!({"names": ["deep"], "mode": "add"})).await.result.unwrap();
    let named = core.compose(&id, false).await.unwrap().not_listed;
    let deep = named.iter().find(|group| group.why.contains("too deep")).unwrap();
    assert!((deep.skills, deep.names.len()) == (6, 3) && deep.names[0] == "deep", "{deep:?}");
    let budget = core.budget(Some("claude-code"), None).await.unwrap();
    assert_eq!(budget.not_listed.iter().map(|group| group.skills).sum::<usize>(), 7);
    assert!(
        budget.not_listed.iter().any(|group| group.names.iter().any(|name| name == "deep")),
        "{:?}",
        budget.not_listed
    );
}

#[tokio::test]
async fn kept_entries_follow_the_order_of_the_client() {
    let place = TestHome::new();
    // Far more than either client accepts; the first by path has the last name.
    for at in 0..450 {
        let (folder, name) = (format!("f{at:03}"), format!("n{:03}", 449 - at));
        let text = format!("---\nname: {name}\ndescription: Does {name} things.\n---\nbody\n");
        place.file(&format!("{folder}/SKILL.md"), &text);
    }
    place.file(".hidden/h/SKILL.md", "---\nname: a0\ndescription: d.\n---\nbody\n");
    place.file("group/inner/SKILL.md", "---\nname: a1\ndescription: d.\n---\nbody\n");
    place.file("x/y/z/SKILL.md", "---\nname: a2\ndescription: d.\n---\nbody\n");
    let core = place.core().await;
    let included = async |client: &str| {
        let view = core.budget(Some(client), None).await.unwrap();
        let own = view.allowance.included().filter(|entry| !entry.bundled);
        let included: Vec<String> = own.map(|entry| entry.name.clone()).collect();
        (included, view)
    };
    let why = |view: &BudgetView, expected: &str| -> usize {
        view.not_listed.iter().filter(|group| group.why.contains(expected)).map(|group| group.skills).sum()
    };
    let (codex, view) = included("codex").await;
    assert_eq!(codex[..4], ["a1", "a2", "alpha", "beta"], "by the client's names");
    assert_eq!(codex[5], "n000", "n000 before n001, whatever their folders are called");
    assert_eq!(why(&view, "hidden folder"), 1, "{:?}", view.not_listed);
    let (openclaw, view) = included("openclaw").await;
    // 300 folders by name: alpha, beta, and f000 to f297; 200 skills of them; 150 in the prompt, by name, eleven of its
    // own among them.
    assert_eq!(openclaw[..3], ["alpha", "beta", "n252"], "{openclaw:?}");
    assert_eq!((openclaw.len(), why(&view, "first 200 skills"), why(&view, "first 300 ")), (139, 100, 155));
    assert_eq!(why(&view, "hidden folder"), 1, "{:?}", view.not_listed);
    let (gemini, view) = included("gemini-cli").await;
    assert_eq!((gemini.len(), why(&view, "too deep"), why(&view, "hidden folder")), (453, 2, 1));
    let unknown = core.budget(Some("claude-code"), None).await.unwrap().allowance.fill.unknown;
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[tokio::test]
async fn failed_reads_are_not_counted_as_level_three() {
    let place = TestHome::new();
    place.file("alpha/references/rules.md", "the rules\n");
    let core = place.core().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await;
    let before = core.compose(&id, false).await.unwrap().size;
    failure(&core, &id, "skills.read", json!({"path": "references/none.md"})).await;
    failure(&core, &id, "skills.read", json!({"path": "../beta/SKILL.md"})).await;
    let failed = core.compose(&id, false).await.unwrap().size;
    assert_eq!((before.l3.bytes, failed.l3.bytes, failed.l3.tokens), (0, 0, 0));
    assert!(failed.history.bytes > before.history.bytes, "what failed is history");
    call(&core, &id, "skills.read", json!({"path": "references/rules.md"})).await.result.unwrap();
    assert!(core.compose(&id, false).await.unwrap().size.l3.tokens > 0);
    let none = SettingsChange { window: Some(0), ..SettingsChange::default() };
    for error in [
        core.new_session(none.clone()).await.unwrap_err(),
        core.configure_session(&id, none).await.unwrap_err(),
        core.budget(Some("codex"), Some(0)).await.unwrap_err(),
    ] {
        assert_eq!(error.code, Code::InvalidRequest);
        assert!(error.message.contains("1 to 4294967295"), "{error}");
    }
}

#[tokio::test]
async fn receipt_states_whether_tokens_were_counted() {
    let place = TestHome::new();
    let core = place.core().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    let load = async || {
        let answer = call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await.result.unwrap();
        answer["active"][0].clone()
    };
    assert_eq!(load().await["tokens_estimated"], true);
    let view = core.compose(&id, false).await.unwrap();
    let parts = view.composed.parts.iter().zip(&view.part_tokens);
    let body: Vec<u32> = parts
        .filter(|(part, _)| part.kind == PartKind::ActiveSkill && part.skill.is_some())
        .map(|(_, t)| *t)
        .collect();
    let counted = load().await;
    assert_eq!((&counted["tokens_estimated"], &counted["tokens"]), (&json!(false), &json!(body[0])));
}

#[tokio::test]
async fn a_changed_file_keeps_the_loaded_text() {
    let place = TestHome::new();
    let core = place.core().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await;
    drop(core);
    place.skill("alpha", "# other\n");
    let core = place.core().await;
    let session = core.session(&id).await.unwrap();
    assert_eq!(session.changed_since, ["alpha"]);
    assert!(core.compose(&id, false).await.unwrap().composed.text.contains("Use alpha well."));
    call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await;
    assert!(core.compose(&id, false).await.unwrap().composed.text.contains("# other"));
    assert!(core.session(&id).await.unwrap().changed_since.is_empty());
}

#[tokio::test]
async fn missing_session_is_reported() {
    let place = TestHome::new();
    let core = place.core().await;
    let error = core.session("no-such").await.unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert_eq!(error.message, "session `no-such` not found");
}

#[tokio::test]
async fn token_count_is_the_same_everywhere() {
    let place = TestHome::new();
    place.file("alpha/references/rules.md", "the rules\n");
    let core = place.core().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    call(&core, &id, "skills.load", json!({"names": ["alpha"]})).await;
    let next = core.compose(&id, false).await.unwrap();
    let of = |kind: PartKind| {
        let parts = next.composed.parts.iter().zip(&next.part_tokens);
        parts
            .filter(|(part, _)| part.kind == kind && part.skill.as_deref() == Some("alpha"))
            .map(|(_, tokens)| *tokens)
            .sum::<u32>()
    };
    let skill = core.describe("alpha").await.unwrap().summary.skill_id;
    let described = core.levels(vec![skill]).await.unwrap();
    let levels = core.level_view("alpha", None).await.unwrap();
    assert_eq!((of(PartKind::Available), described[0].l1), (levels.l1.tokens, levels.l1.tokens));
    assert_eq!((of(PartKind::ActiveSkill), described[0].l2), (levels.l2.tokens, levels.l2.tokens));
    assert_eq!(levels.files[0].1.tokens, described[0].l3);
    let budget = core.budget(None, None).await.unwrap();
    let in_session = next.size.l1.tokens;
    assert_eq!(budget.tokens, (in_session, in_session), "the catalog costs the same in a session");
}
