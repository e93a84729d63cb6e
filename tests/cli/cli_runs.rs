//! Commands of an operator: launch, decide, signal, resume, cancel, fork, compare, by the real
//! binary over skills with contracts.

use crate::binary;
use crate::cli_runs_fixture;

use binary::Answer;
use cli_runs_fixture::RunsFixture;
use serde_json::{Value, json};

#[test]
fn completed_run_writes_outputs_to_stdout_and_steps_to_stderr() {
    let fixture = RunsFixture::new();
    let answer = fixture.run(&["run", "words", "--input", "text=one two three", "--input", "times=2"]);
    assert_eq!(answer.code, 0, "{}\n{}", answer.stdout, answer.stderr);
    assert_eq!(answer.stdout, "count  6\n", "{}", answer.stderr);
    assert!(answer.stderr.contains("words 1.0.0, 1 step"), "{}", answer.stderr);
    let line = answer.stderr.lines().find(|line| line.starts_with("  ✓ count ")).unwrap();
    assert!(line.contains("ms") || line.contains(" s"), "{line}");
    assert!(answer.stderr.contains("isolation"), "the isolation is said before the start: {}", answer.stderr);
    assert!(!answer.stderr.contains('\u{1b}'), "no line moves in a pipe");
}

#[test]
fn json_is_the_complete_run_without_other_output() {
    let fixture = RunsFixture::new();
    let answer = fixture.run(&["run", "words", "--input", "text=a b", "--json"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    let output = answer.json();
    assert_eq!(output["run"]["state"], "completed");
    assert_eq!(output["run"]["outputs"], json!({ "count": 2 }));
    assert_eq!(output["idempotency"], "none");
    assert!(!output["isolation"].as_str().unwrap().is_empty());
    assert_eq!(output["next"], json!([]));
}

#[test]
fn invalid_inputs_are_reported_before_the_start() {
    let fixture = RunsFixture::new();
    let unknown = fixture.run(&["run", "words", "--input", "txt=a"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("did you mean text?"), "{}", unknown.stderr);
    let untyped = fixture.run(&["run", "words", "--input", "text=a", "--input", "times=many"]);
    assert_eq!(untyped.code, 2);
    assert!(untyped.stderr.contains("input times: \"many\" is not an integer"), "{}", untyped.stderr);
    assert_eq!(fixture.run(&["run", "words"]).code, 2, "text is required");
    assert_eq!(fixture.run(&["run", "wrods", "--input", "text=a"]).code, 3);
    assert_eq!(fixture.json(&["runs", "list"])["runs"], json!([]), "nothing was launched");
}

#[test]
fn repeated_key_returns_its_run_and_rejects_another_payload() {
    let fixture = RunsFixture::new();
    let launch =
        |text: &str| fixture.run(&["run", "words", "--input", text, "--idempotency-key", "k1", "--json"]);
    let (first, again) = (launch("text=a").json(), launch("text=a").json());
    assert_eq!(first["run"]["id"], again["run"]["id"]);
    assert_eq!((&first["idempotency"], &again["idempotency"]), (&json!("created"), &json!("reused")));
    let other = launch("text=b");
    assert_eq!((other.code, other.error()["error"]["code"].clone()), (4, json!("idempotency_conflict")));
}

#[test]
fn waiting_run_is_decided_by_the_command_it_names() {
    let fixture = RunsFixture::new();
    let waiting = fixture.run(&["run", "send", "--input", "to=ana"]);
    assert_eq!(waiting.code, 5, "{}", waiting.stderr);
    let command = suggested_command(&waiting, "approve:");
    // The exact command, as a shell would split it; only `--yes` is added.
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let refused = Answer::of(fixture.command().args(&words).output().unwrap());
    assert_eq!(
        refused.code, 5,
        "without a terminal and without --yes nothing is decided: {}",
        refused.stderr
    );
    assert!(refused.stderr.contains("ana"), "what would be sent is shown: {}", refused.stderr);
    let approved = Answer::of(fixture.command().args(&words).arg("--yes").output().unwrap());
    assert_eq!((approved.code, approved.stdout.as_str()), (0, "sent  to ana\n"), "{}", approved.stderr);
    let again = Answer::of(fixture.command().args(&words).arg("--yes").output().unwrap());
    assert_eq!(again.code, 0, "repeating the same decision is not an error: {}", again.stderr);
    assert_eq!(fixture.mails(), ["to ana"], "it was sent once");
}

#[test]
fn many_runs_are_decided_by_the_digest_of_the_set_that_was_listed() {
    let fixture = RunsFixture::new();
    for to in ["to=ana", "to=bo"] {
        assert_eq!(fixture.run(&["run", "send", "--input", to]).code, 5);
    }
    let set = ["runs", "approve", "--where", "state:waiting skill:send", "--yes"];
    let unconfirmed = fixture.run(&set);
    assert_eq!(unconfirmed.code, 5, "{}", unconfirmed.stderr);
    assert!(
        unconfirmed.stderr.contains("Approve 2 runs:") && unconfirmed.stderr.contains("inputs digest "),
        "{}",
        unconfirmed.stderr
    );
    assert!(unconfirmed.stderr.contains("--yes requires --list-digest"), "{}", unconfirmed.stderr);
    let digest =
        unconfirmed.stderr.lines().find_map(|line| line.split_once("digest: ")).unwrap().1.to_owned();
    let other = fixture.run(&[&set[..], &["--digest", &"00".repeat(32)]].concat());
    assert_eq!(other.code, 5, "{}", other.stderr);
    assert!(fixture.mails().is_empty());
    let decided = fixture.run(&[&set[..], &["--digest", &digest]].concat());
    assert_eq!(decided.code, 0, "{}", decided.stderr);
    assert!(decided.stdout.contains("2 done"), "{}", decided.stdout);
    assert_eq!(fixture.json(&["runs", "list", "--where", "state:waiting"])["runs"], json!([]));
    let none = fixture.run(&["runs", "list", "--where", "state:waiting"]);
    assert_eq!((none.code, none.stderr.contains("no runs match the filter")), (0, true), "{}", none.stderr);
    assert!(!fixture.run(&["runs", "list"]).stderr.contains("no runs match"));
    assert_eq!(fixture.run(&set).code, 4, "nothing waits any longer");
    assert_eq!(fixture.run(&["runs", "approve"]).code, 2);
    assert_eq!(fixture.run(&["runs", "signal", "go", "--where", "state:waiting", "--yes"]).code, 4);
}

#[test]
fn denying_cancels_and_sends_nothing() {
    let fixture = RunsFixture::new();
    let run = fixture.waiting_mail();
    let unconfirmed = fixture.run(&["runs", "deny", &run, "--yes", "--json"]);
    assert_eq!(
        (unconfirmed.code, unconfirmed.error()["error"]["code"].clone()),
        (5, json!("confirmation_required"))
    );
    let denied = fixture.run(&[
        "runs",
        "deny",
        &run,
        "--yes",
        "--step",
        "send",
        "--notes",
        "not today",
        "--approver",
        "kim",
    ]);
    assert_eq!(denied.code, 0, "{}", denied.stderr);
    let shown = fixture.json(&["runs", "show", &run]);
    assert_eq!(shown["run"]["state"], "canceled");
    assert_eq!(shown["decisions"][0]["notes"], "not today");
    assert_eq!(shown["decisions"][0]["approver"], "kim");
    let late = fixture.run(&["runs", "approve", &run, "--yes", "--json"]);
    assert_eq!((late.code, late.error()["error"]["code"].clone()), (4, json!("invalid_transition")));
    assert!(fixture.mails().is_empty());
}

#[test]
fn an_approval_without_digest_decides_nothing() {
    let fixture = RunsFixture::new();
    let run = fixture.waiting_mail();
    let unconfirmed = fixture.run(&["runs", "approve", &run, "--yes"]);
    assert_eq!(unconfirmed.code, 5, "{}{}", unconfirmed.stdout, unconfirmed.stderr);
    let digest = fixture.digest(&run);
    assert!(
        unconfirmed.stderr.contains("ana") && unconfirmed.stderr.contains("digest"),
        "the details: {}",
        unconfirmed.stderr
    );
    let json = fixture.run(&["runs", "approve", &run, "--yes", "--json"]).error()["error"].clone();
    assert_eq!(json["code"], "confirmation_required");
    assert_eq!(json["reason"]["decision"]["inputs_digest"], json!(digest));
    let command = json["reason"]["command"].as_str().unwrap();
    let named = format!("runs approve {run} --step send --inputs-digest {digest} --yes");
    assert!(command.starts_with("skills ") && command.ends_with(&named), "{command}");
    assert!(unconfirmed.stderr.contains(command), "{}", unconfirmed.stderr);
    assert_eq!(fixture.json(&["runs", "show", &run])["decisions"], json!([]));
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    for _ in 0..2 {
        let again = Answer::of(fixture.command().args(&words).output().unwrap());
        assert_eq!(again.code, 0, "the same decision again gets the first result: {}", again.stderr);
    }
    assert_eq!(fixture.mails(), ["to ana"]);
}

#[test]
fn decision_is_bound_to_the_shown_digest() {
    let fixture = RunsFixture::new();
    let run = fixture.waiting_mail();
    let other = fixture.run(&["runs", "approve", &run, "--yes", "--inputs-digest", &"0".repeat(64)]);
    assert_eq!(other.code, 4, "{}", other.stderr);
    assert_eq!(fixture.json(&["runs", "show", &run])["run"]["state"], "waiting_for_human");
    assert!(fixture.mails().is_empty());
}

#[test]
fn a_run_is_found_by_its_trace() {
    let fixture = RunsFixture::new();
    let run = fixture.json(&["run", "words", "--input", "text=a"])["run"].clone();
    fixture.run(&["run", "words", "--input", "text=b"]);
    let trace = run["trace_id"].as_str().unwrap();
    for filter in [["--trace", trace], ["--text", trace]] {
        let found = fixture.json(&[&["runs", "list"], &filter[..]].concat())["runs"].clone();
        assert_eq!(found.as_array().unwrap().iter().map(|one| &one["id"]).collect::<Vec<_>>(), [&run["id"]]);
    }
    let log = fixture.home.path().join("home/.local/state/skill-workbench/skills.log");
    let log = std::fs::read_to_string(log).unwrap();
    let field = format!("trace_id=\"{trace}\"");
    assert!(log.lines().filter(|line| line.contains(&field)).count() >= 2, "{log}");
}

#[test]
fn ambiguous_run_id_error_lists_endings() {
    let fixture = RunsFixture::new();
    let ids: Vec<String> = (0..3)
        .map(|_| {
            fixture.json(&["run", "words", "--input", "text=a"])["run"]["id"].as_str().unwrap().to_owned()
        })
        .collect();
    let answer = fixture.run(&["runs", "show", &ids[0][..4], "--json"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    let endings = answer.error()["error"]["suggestions"].clone();
    let endings: Vec<&str> = endings.as_array().unwrap().iter().map(|end| end.as_str().unwrap()).collect();
    assert_eq!(endings.len(), 3);
    for ending in endings {
        let named = ids.iter().filter(|id| id.ends_with(ending)).count();
        assert_eq!(named, 1, "{ending}");
        assert_eq!(fixture.run(&["runs", "show", ending]).code, 0);
    }
}

#[test]
fn a_run_shown_by_an_abbreviated_id_is_complete() {
    let fixture = RunsFixture::new();
    let text = format!("text={}", "word ".repeat(2000));
    let id = fixture.json(&["run", "words", "--input", &text])["run"]["id"].as_str().unwrap().to_owned();
    let details = fixture.json(&["runs", "show", &id]);
    assert_eq!(details["run"]["inputs"]["text"].as_str().unwrap().len(), 10_000);
    assert_eq!(fixture.json(&["runs", "show", &id[id.len() - 8..]]), details);
}

#[test]
fn signal_continues_a_run_with_its_payload() {
    let fixture = RunsFixture::new();
    let waiting = fixture.run(&["run", "later", "--json"]);
    assert_eq!(waiting.code, 5, "{}", waiting.stderr);
    let run = waiting.json()["run"]["id"].as_str().unwrap().to_owned();
    let wrong = fixture.run(&["runs", "signal", &run, "books-opened"]);
    assert_eq!(wrong.code, 4, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("books-closed"), "{}", wrong.stderr);
    let text = fixture.run(&["runs", "signal", &run, "books-closed", "--payload", "yes"]);
    assert_eq!(text.code, 2, "{}", text.stderr);
    let sent = fixture.run(&["runs", "signal", &run, "books-closed", "--payload", r#"{"text": "a b c d"}"#]);
    assert_eq!((sent.code, sent.stdout.as_str()), (0, "count  4\n"), "{}", sent.stderr);
}

#[test]
fn a_failed_run_is_resumed_with_corrected_inputs() {
    let fixture = RunsFixture::new();
    let failed = fixture.run(&["run", "picky", "--input", "text=bad", "--json"]);
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    let failed = failed.json();
    assert_eq!(failed["run"]["state"], "failed");
    assert_eq!(failed["next"][1]["does"], "resume");
    let run = failed["run"]["id"].as_str().unwrap();
    let resumed = fixture.run(&["runs", "resume", run, "--input", "text=good words"]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (0, "count  2\n"), "{}", resumed.stderr);
    assert_eq!(fixture.run(&["runs", "resume", run]).code, 4, "a completed run takes no resume");
}

#[test]
fn fork_is_paused_and_replay_runs() {
    let fixture = RunsFixture::new();
    let source =
        fixture.json(&["run", "words", "--input", "text=a b"])["run"]["id"].as_str().unwrap().to_owned();
    let fork = fixture.json(&["runs", "fork", &source, "--checkpoint", "0"]);
    assert_eq!((&fork["run"]["state"], &fork["run"]["held"]), (&json!("pending"), &json!(true)));
    let fork = fork["run"]["id"].as_str().unwrap();
    assert_eq!(fixture.run(&["runs", "resume", fork]).code, 0);
    let replay = fixture.json(&["runs", "replay", &source, "--checkpoint", "0"]);
    assert_eq!(replay["run"]["state"], "completed");
    let same = fixture.run(&["runs", "compare", &source, fork]);
    assert_eq!(same.code, 0, "{}", same.stdout);
    let other =
        fixture.json(&["run", "words", "--input", "text=a"])["run"]["id"].as_str().unwrap().to_owned();
    let differs = fixture.run(&["runs", "compare", &source, &other, "--json"]);
    assert_eq!(differs.code, 1);
    assert_eq!(differs.json()["outputs"][0]["path"], "/count");
    let gone = fixture.run(&["runs", "fork", &source, "--checkpoint", "99", "--json"]);
    assert_eq!((gone.code, gone.error()["error"]["code"].clone()), (3, json!("checkpoint_not_found")));
}

#[test]
fn a_detached_run_warns_without_an_active_worker() {
    let fixture = RunsFixture::new();
    let left = fixture.run(&["run", "words", "--input", "text=a", "--detach"]);
    assert_eq!(left.code, 0, "{}", left.stderr);
    assert!(left.stderr.contains("no worker is connected"), "{}", left.stderr);
    let id = left.stdout.trim();
    assert_eq!(fixture.json(&["runs", "show", id])["run"]["state"], "pending");
    let worked = fixture.run(&["runs", "work"]);
    assert_eq!((worked.code, worked.stdout.as_str()), (0, "count  1\n"), "{}", worked.stderr);
}

#[test]
fn cancel_is_for_runs_that_have_not_ended() {
    let fixture = RunsFixture::new();
    let run = fixture.waiting_mail();
    assert_eq!(fixture.run(&["runs", "cancel", &run]).code, 0);
    assert_eq!(fixture.run(&["runs", "cancel", &run]).code, 0, "again is the same answer");
    let done = fixture.json(&["run", "words", "--input", "text=a"])["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(fixture.run(&["runs", "cancel", &done]).code, 4);
}

#[test]
fn waiting_runs_are_listed_first_with_short_ids() {
    let fixture = RunsFixture::new();
    let waiting = fixture.waiting_mail();
    fixture.json(&["run", "words", "--input", "text=a"]);
    let list = fixture.json(&["runs", "list"]);
    let states: Vec<&Value> = list["runs"].as_array().unwrap().iter().map(|run| &run["state"]).collect();
    assert_eq!(states, [&json!("waiting_for_human"), &json!("completed")]);
    let some = fixture.json(&["runs", "list", "--state", "completed"]);
    assert_eq!(some["runs"].as_array().unwrap().len(), 1);
    assert_eq!(fixture.run(&["runs", "list", "--state", "done"]).code, 2);
    let end = &waiting[waiting.len() - 8..];
    assert_eq!(fixture.json(&["runs", "show", end])["run"]["id"], json!(waiting));
    let gone = fixture.run(&["runs", "show", "zzzz"]);
    assert_eq!(gone.code, 3, "{}", gone.stderr);
}

#[test]
fn plain_output_of_runs_is_numbered_and_labeled() {
    let fixture = RunsFixture::new();
    let run = fixture.waiting_mail();
    let plain = |words: &[&str]| {
        let answer = fixture.run(&[&["--plain", "runs"], words].concat());
        assert!(answer.stdout.is_ascii(), "{}", answer.stdout);
        answer.stdout
    };
    assert!(plain(&["list"]).starts_with("1. "));
    assert!(
        plain(&["list", "--columns", "state,id"])
            .starts_with(&format!("1. state: waiting_for_human; id: {run}"))
    );
    assert!(plain(&["board"]).contains(": 1.\n1. "));
    let shown = plain(&["show", &run]);
    assert!(shown.contains("\nState: ") && shown.contains("\nApproval: "), "{shown}");
    let refused = fixture.run(&["--plain", "runs", "approve", &run]);
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    assert!(refused.stderr.contains("\nApproval: "), "{}", refused.stderr);
    let refused = fixture.run(&["--plain", "runs", "cancel", "--where", "state:waiting"]);
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    assert!(refused.stderr.contains("\n1. "), "{}", refused.stderr);
}

#[test]
fn plain_output_has_no_boxes_and_no_glyphs() {
    let fixture = RunsFixture::new();
    let ids = ["text=a", "text=b c"].map(|text| {
        fixture.json(&["run", "words", "--input", text])["run"]["id"].as_str().unwrap().to_owned()
    });
    let golden = "- query: does words for the tests\n  expect: [words]\n- query: bake a cake\n  expect: [mail]\n\
                  - query: zzxx qqvv wwkk\n  expect: none\n";
    fixture.home.file("golden.yaml", golden);
    let commands: [&[&str]; 24] = [
        &["lint"],
        &["doctor"],
        &["list"],
        &["visibility"],
        &["visibility", "words"],
        &["budget"],
        &["budget", "--client", "codex"],
        &["run", "words", "--input", "text=a b"],
        &["runs", "show", &ids[0]],
        &["runs", "compare", &ids[0], &ids[1]],
        &["runs", "list"],
        &["runs", "list", "--columns", "state,title,id"],
        &["runs", "board"],
        &["runs", "workers"],
        &["list", "--client", "claude-code"],
        &["budget", "fit", "--client", "codex", "--window", "8000"],
        &["eval"],
        &["rivals"],
        &["rivals", "words"],
        &["collisions"],
        &["collisions", "--all"],
        &["--store", "memory:", "doctor"],
        &["why", "words", "count words"],
        &["demo"],
    ];
    for words in commands {
        let answer = fixture.run(&[&["--plain"], words].concat());
        let text = answer.stdout + &answer.stderr;
        assert!(!text.contains("unexpected argument") && !text.is_empty(), "{words:?}: {text}");
        // Box drawing, block elements, geometric shapes, and the other glyphs of the themes.
        let sign = |c: char| !c.is_ascii() && !c.is_alphanumeric();
        assert!(!text.contains(sign) && !text.contains('\u{1b}'), "{words:?}: {text}");
        assert!(
            !text.lines().any(|line| line.trim_start().starts_with(['+', '!', '|'])),
            "{words:?}: {text}"
        );
        let columns: Vec<&str> = text.lines().filter(|line| line.trim().contains("  ")).collect();
        assert!(columns.is_empty(), "{words:?}: {columns:#?}");
        assert!(!text.contains(":;"), "{words:?}: {text}");
    }
}

#[test]
fn the_nearest_deadline_is_listed_first() {
    let fixture = RunsFixture::new();
    let launch = |to: &str, expiry: &[&str]| {
        assert_eq!(fixture.run(&[&["run", "send", "--input", to], expiry].concat()).code, 5);
    };
    launch("to=none", &[]);
    launch("to=late", &["--expires-in", "2h"]);
    launch("to=soon", &["--expires-in", "10m"]);
    let order = |limit: &str| {
        let list = fixture.json(&["runs", "list", "--limit", limit]);
        let runs = list["runs"].as_array().unwrap().clone();
        runs.iter().map(|run| run["inputs"]["to"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(order("9"), ["soon", "late", "none"]);
    assert_eq!(order("1"), ["soon"], "it is not cut off by runs that have waited longer");
}

#[test]
fn sorted_list_is_truncated_after_the_sort() {
    let fixture = RunsFixture::new();
    let ids: Vec<Value> = ["text=a", "text=b", "text=c"]
        .map(|text| fixture.json(&["run", "words", "--input", text])["run"]["id"].clone())
        .into();
    let first = |sort: &str| {
        let list = fixture.json(&["runs", "list", "--where", "skill:words", "--sort", sort, "--limit", "1"]);
        assert_eq!(list["runs"].as_array().unwrap().len(), 1);
        list["runs"][0]["id"].clone()
    };
    assert_eq!((first("-age"), first("age")), (ids[0].clone(), ids[2].clone()));
    for cut in [&["--sort", "-age"][..], &["--where", "skill:words"], &["--state", "completed"]] {
        let list = fixture.run(&[&["runs", "list", "--limit", "1"], cut].concat());
        assert!(list.stdout.contains("1 of 3"), "{}", list.stdout);
    }
    assert_eq!(fixture.run(&["runs", "list", "--sort", "height"]).code, 2);
}

#[test]
fn trace_has_one_json_line_per_event() {
    let fixture = RunsFixture::new();
    let answer = fixture.run(&["trace", "words", "--input", "text=a", "--json"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    let kinds: Vec<String> = answer
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds.first().unwrap(), "run.created");
    assert_eq!(kinds.last().unwrap(), "run.completed");
    assert!(kinds.contains(&"step.completed".to_owned()), "{kinds:?}");
}

#[test]
fn lists_and_pages_of_skills_open_no_store() {
    let fixture = RunsFixture::new();
    fixture.run(&["list"]);
    fixture.run(&["describe", "words"]);
    assert!(!fixture.store().exists());
    fixture.run(&["session", "new"]);
    assert!(fixture.store().exists());
}

#[test]
fn the_binding_of_a_capability_can_be_switched() {
    let fixture = RunsFixture::new();
    let all = fixture.json(&["explain-capability"]);
    assert!(all["capabilities"].as_array().unwrap().contains(&json!("text.words.count")), "{all}");
    let output = fixture.json(&["explain-capability", "text.words.count"]);
    assert_eq!(output["explanation"]["chosen"], "count_other");
    assert_eq!(output["used_by"][0], "later/count");
    let near = fixture.run(&["explain-capability", "text.word.count"]);
    assert_eq!(near.code, 3);
    assert!(near.stderr.contains("text.words.count"), "{}", near.stderr);
    let chosen = fixture.json(&["activate", "text.words.count", "count_script"]);
    assert_eq!(chosen["explanation"]["chosen"], "count_script");
    assert_eq!(fixture.run(&["activate", "text.words.count", "send_script"]).code, 2);
    let cleared = fixture.json(&["activate", "text.words.count", "--clear"]);
    assert_eq!(cleared["explanation"]["chosen"], "count_other");
}

#[test]
fn a_sidecar_is_attached_to_an_output_after_four_checks() {
    let fixture = RunsFixture::new();
    let run =
        fixture.json(&["run", "words", "--input", "text=a b"])["run"]["id"].as_str().unwrap().to_owned();
    let attach = |more: &[&str]| {
        fixture.run(&[&["attach", "watcher", "--target-type", "output", "--target-ref"], more].concat())
    };
    let checked = attach(&[&format!("{run}/count"), "--check"]);
    assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
    assert_eq!(checked.stdout.lines().filter(|line| line.starts_with('✓')).count(), 4, "{}", checked.stdout);
    let gone = attach(&[&format!("{run}/nothing"), "--json"]);
    assert_eq!((gone.code, gone.error()["error"]["code"].clone()), (3, json!("target_not_found")));
    let attached = attach(&[&format!("{run}/count"), "--json"]);
    assert_eq!(attached.code, 0, "{}", attached.stderr);
    assert_eq!(attached.json()["execution"]["state"], "completed");
    let wrong = fixture.run(&["attach", "words", "--target-type", "output", "--target-ref", &run, "--json"]);
    assert_eq!((wrong.code, wrong.error()["error"]["reason"]["check"].clone()), (4, json!("invocation")));
    assert_eq!(wrong.error()["error"]["reason"].get("cause"), None);
    let store = format!("sqlite:{}", fixture.store().display());
    let direct = ["attach", "words", "--target-type", "output", "--target-ref", &run, "--check"];
    let direct = fixture.run(&[&["--store", &store], &direct[..]].concat());
    let command = format!(" --store {store} run words`");
    assert!(direct.stdout.contains(&command) && !direct.stdout.contains('…'), "{}", direct.stdout);
    let unknown =
        fixture.run(&["attach", "wacher", "--target-type", "output", "--target-ref", &run, "--json"]);
    assert_eq!((unknown.code, unknown.error()["error"]["reason"]["cause"].clone()), (3, json!("not_found")));
    let refused =
        fixture.run(&["attach", "watcher", "--target-type", "transcript", "--target-ref", "x", "--json"]);
    assert_eq!(
        (refused.code, refused.error()["error"]["reason"]["check"].clone()),
        (4, json!("target_type"))
    );
}

#[test]
fn runs_are_executed_by_workers_with_their_skills() {
    let fixture = RunsFixture::new();
    let launched = fixture.run(&["run", "words", "--input", "text=a b", "--detach", "--json"]).json();
    let run = launched["run"]["id"].as_str().unwrap();
    let other = fixture.home.path().join("other");
    std::fs::create_dir_all(&other).unwrap();
    let elsewhere =
        |args: &[&str]| fixture.home.run_bare(&[&["--root", other.to_str().unwrap()], args].concat());
    let all = elsewhere(&["runs", "work"]);
    assert_eq!(all.code, 0, "{}", all.stderr);
    assert!(all.stderr.contains("which are not loaded: use --root"), "{}", all.stderr);
    assert_eq!(elsewhere(&["runs", "work", run]).code, 4);
    assert_eq!(fixture.json(&["runs", "show", run])["run"]["state"], "pending", "the run has not failed");
    assert_eq!(fixture.run(&["runs", "work"]).code, 0);
    assert_eq!(fixture.json(&["runs", "show", run])["run"]["outputs"], json!({ "count": 2 }));
}

#[test]
fn the_store_is_checked_copied_and_cleared() {
    let fixture = RunsFixture::new();
    let run = fixture.json(&["run", "words", "--input", "text=a", "--audit-mode", "full"])["run"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let health = fixture.json(&["db", "check"]);
    assert_eq!((&health["runs"], &health["damage"]), (&json!(1), &json!([])));
    let copy = fixture.home.path().join("copy.db");
    let copied = fixture.run(&["db", "backup", copy.to_str().unwrap()]);
    assert_eq!(copied.code, 0, "{}", copied.stderr);
    assert_eq!(fixture.run(&["db", "backup", copy.to_str().unwrap()]).code, 4, "no copy is overwritten");
    let missing = fixture.home.path().join("missing/copy.db");
    assert_eq!(
        fixture.run(&["db", "backup", missing.to_str().unwrap()]).code,
        3,
        "the folder does not exist"
    );
    assert_eq!(fixture.run(&["db", "purge", "--older-than", "0s"]).code, 5, "not confirmed");
    assert_eq!(fixture.json(&["audit-purge", "--older-than", "0s", "--yes"])["runs"], 1);
    let purged = fixture.json(&["db", "purge", "--older-than", "0s", "--yes"]);
    assert_eq!(purged["runs"], 1);
    assert_eq!(fixture.run(&["runs", "show", &run]).code, 3);
    let store = format!("sqlite:{}", copy.display());
    assert_eq!(fixture.run(&["runs", "show", &run, "--store", &store]).code, 0, "the copy still has it");
}

/// The command that standard error names after this word.
fn suggested_command(answer: &Answer, word: &str) -> String {
    let line = answer.stderr.lines().find_map(|line| line.trim_start().strip_prefix(word));
    line.unwrap_or_else(|| panic!("no {word} in {}", answer.stderr)).trim().to_owned()
}

#[test]
fn log_digest_runs_on_its_target() {
    let fixture = RunsFixture::new();
    std::fs::write(
        fixture.home.path().join("work").join("app.log"),
        "09:00:01 web-9 ERROR disk is full\n09:00:02 web-9 INFO up\n",
    )
    .unwrap();
    let digest = |file: &str| {
        let attach = ["attach", "log-digest", "--target-type", "artifact", "--target-ref", file, "--json"];
        fixture.home.run_bare(&attach)
    };
    let attached = digest("app.log");
    assert_eq!(attached.code, 0, "{}{}", attached.stdout, attached.stderr);
    let page = attached.json()["execution"]["outputs"]["digest"].as_str().unwrap().to_owned();
    assert!(page.contains("1 x disk is full") && page.contains("web-9: 2 lines"), "{page}");
    assert!(!page.contains("pool exhausted"), "the sample of the contract is left aside: {page}");
    std::fs::write(fixture.home.path().join("work").join("rows.json"), "{\"rows\": []}").unwrap();
    let wrong = digest("rows.json");
    assert_eq!(wrong.code, 1, "{}{}", wrong.stdout, wrong.stderr);
    assert!(wrong.json()["execution"]["error"].to_string().contains("not a text log"), "{}", wrong.stdout);
}
