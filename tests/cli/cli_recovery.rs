//! Commands of an operator after changes: an edited script, revoked trust, an expired wait, a store with damaged pages.

use crate::cli_runs_fixture;

use cli_runs_fixture::RunsFixture;
use serde_json::json;

#[test]
fn a_decision_after_the_deadline_is_rejected() {
    let fixture = RunsFixture::new();
    let waiting = fixture.run(&["run", "send", "--input", "to=ana", "--expires-in", "1s", "--json"]).json();
    let id = waiting["run"]["id"].as_str().unwrap().to_owned();
    let over = waiting["run"]["expires_ms"].as_i64().unwrap();
    while jiff::Timestamp::now().as_millisecond() <= over {
        std::thread::yield_now();
    }
    let late = fixture.run(&["runs", "approve", &id, "--yes", "--json"]);
    assert_eq!((late.code, late.error()["error"]["code"].clone()), (4, json!("invalid_transition")));
    assert_eq!(fixture.mails(), Vec::<String>::new());
    let message = late.error()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("cannot approve the run: it was canceled; expired at "), "{message}");
    for shown in [fixture.run(&["runs", "list"]).stdout, fixture.run(&["runs", "show", &id]).stdout] {
        assert!(shown.contains("canceled") && shown.contains(": expired at "), "{shown}");
    }
    let error = fixture.json(&["runs", "show", &id])["run"]["error"].clone();
    assert_eq!((&error["code"], &error["expired_ms"]), (&json!("expired"), &json!(over)), "{error}");
    let events = fixture.json(&["runs", "show", &id])["events"].clone();
    let last = events.as_array().unwrap().last().unwrap();
    assert_eq!(last["kind"], "gate.waiting", "what only reads records nothing: {events}");
}

#[test]
fn an_edited_script_requires_new_approval() {
    let fixture = RunsFixture::new();
    let waits = fixture.run(&["run", "send", "--input", "to=ana", "--json"]);
    assert_eq!(waits.code, 5, "{}{}", waits.stdout, waits.stderr);
    let id = waits.json()["run"]["id"].as_str().unwrap().to_owned();
    let edited = "import json, sys\nto = json.load(sys.stdin)['inputs']['to']\nprint(json.dumps({'sent': 'elsewhere'}))\n";
    fixture.home.file("send/scripts/send.py", edited);
    let launched = waits.json()["run"]["gate"]["human"]["inputs_digest"].as_str().unwrap().to_owned();
    let unconfirmed = fixture.run(&["runs", "approve", &id, "--yes", "--json"]);
    let error = unconfirmed.error()["error"].clone();
    assert_eq!((unconfirmed.code, &error["code"]), (5, &json!("confirmation_required")), "{error}");
    let changed = error["reason"]["decision"]["changed"].as_str().unwrap();
    assert!(changed.contains("changed since the launch"), "{changed}");
    let stale = fixture.run(&["runs", "approve", &id, "--inputs-digest", &launched, "--yes", "--json"]);
    assert_eq!((stale.code, stale.error()["error"]["code"].clone()), (5, json!("confirmation_required")));
    let shown = fixture.json(&["runs", "show", &id]);
    let kinds = |shown: &serde_json::Value| -> Vec<String> {
        let events = shown["events"].as_array().unwrap().iter();
        events.map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&shown).last().unwrap(), "gate.waiting", "looking at a question records none");
    let why = shown["sheet"]["why"].as_str().unwrap();
    assert!(why.contains("scripts/send.py") && why.contains("changed since the launch"), "{why}");
    assert!(why.contains("always requires approval"), "the other reason is listed too: {why}");
    assert_eq!(shown["sheet"]["inputs"], json!({ "to": "ana" }), "what would run is shown");
    let digest = shown["sheet"]["inputs_digest"].as_str().unwrap();
    let once = fixture.run(&["runs", "approve", &id, "--inputs-digest", digest, "--yes", "--json"]);
    assert_eq!(once.code, 0, "one change is one question: {}{}", once.stdout, once.stderr);
    let shown = fixture.json(&["runs", "show", &id]);
    assert_eq!(shown["run"]["outputs"], json!({ "sent": "elsewhere" }));
    let decided: Vec<String> = kinds(&shown).into_iter().filter(|kind| kind.starts_with("gate.")).collect();
    assert_eq!(decided, ["gate.waiting", "gate.changed", "gate.approved"]);
}

#[test]
fn an_approval_that_must_fail_is_rejected() {
    let fixture = RunsFixture::new();
    let (first, second) = (fixture.waiting_mail(), fixture.waiting_mail());
    let digest = fixture.digest(&first);
    let refused = |why: &str, code: &str| {
        let yes = fixture.run(&["runs", "approve", &first, "--inputs-digest", &digest, "--yes", "--json"]);
        let error = yes.error()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert_eq!(
            (yes.code, error["code"].as_str()),
            (if code == "untrusted" { 4 } else { yes.code }, Some(code)),
            "{message}"
        );
        assert!(yes.code != 0 && message.contains(why) && message.contains("keeps waiting"), "{message}");
        let shown = fixture.json(&["runs", "show", &first]);
        assert_eq!((&shown["run"]["state"], &shown["decisions"]), (&json!("waiting_for_human"), &json!([])));
        assert!(shown["sheet"]["blocked"].as_str().unwrap().contains(why), "{}", shown["sheet"]);
    };
    fixture.home.config("trust: []\n");
    refused("skills trust", "untrusted");
    assert!(fixture.run(&["runs", "show", &first]).stdout.contains("`send` cannot be approved"));
    fixture.home.config(&format!("trust: [\"{}\"]\n", fixture.home.skills().display()));
    std::fs::remove_dir_all(fixture.home.skills().join("send/bindings")).unwrap();
    refused("no binding implements", "invalid_configuration");
    let no = fixture.run(&["runs", "deny", &second, "--step", "send", "--yes", "--json"]);
    assert_eq!(no.code, 0, "{}{}", no.stdout, no.stderr);
    assert!(fixture.mails().is_empty());
}

#[test]
fn waiting_run_shows_its_deadline_and_the_effect() {
    let fixture = RunsFixture::new();
    let waits = fixture.run(&["run", "send", "--input", "to=ana", "--expires-in", "2h", "--json"]);
    let id = waits.json()["run"]["id"].as_str().unwrap().to_owned();
    let list = fixture.run(&["runs", "list"]).stdout;
    assert!(
        list.contains("expires in 1 h: send is waiting for approval (then denied and canceled)"),
        "{list}"
    );
    let show = fixture.run(&["runs", "show", &id]).stdout;
    assert_eq!(show.matches("in 1 h, at ").count(), 2, "among the facts and on the sheet: {show}");
}

#[test]
fn unchanged_script_needs_no_second_approval() {
    let fixture = RunsFixture::new();
    let waits = fixture.run(&["run", "send", "--input", "to=ana", "--json"]);
    let id = waits.json()["run"]["id"].as_str().unwrap().to_owned();
    let digest = fixture.digest(&id);
    let approved = fixture.run(&["runs", "approve", &id, "--inputs-digest", &digest, "--yes", "--json"]);
    assert_eq!(approved.code, 0, "{}{}", approved.stdout, approved.stderr);
}

#[test]
fn an_expired_wait_needs_no_worker() {
    let fixture = RunsFixture::new();
    let waits = fixture.run(&["run", "send", "--input", "to=ana", "--expires-in", "1s", "--json"]);
    assert_eq!(waits.code, 5, "{}{}", waits.stdout, waits.stderr);
    let state = || fixture.json(&["runs", "list"])["runs"][0]["state"].as_str().unwrap().to_owned();
    let started = std::time::Instant::now();
    while state() == "waiting_for_human" {
        assert!(started.elapsed().as_secs() < 60, "it is listed as waiting for ever");
    }
    assert_eq!(state(), "canceled", "as it was not approved");
}

#[test]
fn doctor_reports_damaged_pages_with_available_remedies() {
    let fixture = RunsFixture::new();
    let long = fixture.home.path().join("long.txt");
    std::fs::write(&long, "a ".repeat(60_000)).unwrap();
    let text = format!("text=@{}", long.display());
    for _ in 0..3 {
        assert_eq!(fixture.run(&["run", "words", "--input", &text, "--json"]).code, 0);
    }
    let sound = fixture.run(&["doctor"]).stdout;
    assert!(sound.contains("3 runs: 3 completed; integrity check passed"), "{sound}");
    // Pages in the middle of the file: the header, and what lists read, are not changed.
    let store = fixture.store();
    let connection = rusqlite::Connection::open(&store).unwrap();
    let page = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    page("PRAGMA wal_checkpoint(TRUNCATE)");
    let size = usize::try_from(page("PRAGMA page_size")).unwrap();
    drop(connection);
    let mut bytes = std::fs::read(&store).unwrap();
    let filled = |page: &[u8]| page.split(|byte| *byte == b'a').count() > page.len() / 3;
    let texts: Vec<usize> = (1..bytes.len() / size).filter(|n| filled(&bytes[n * size..][..size])).collect();
    for page in &texts[texts.len() / 3..texts.len() / 3 + 4] {
        bytes[page * size..][..size].fill(0);
    }
    std::fs::write(&store, &bytes).unwrap();
    let place = format!("sqlite:{}", store.display());
    let doctor = fixture.run(&["--store", &place, "doctor"]);
    assert_eq!(doctor.code, 1, "{}", doctor.stdout);
    let message = doctor.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        message.contains("damaged:") && message.contains("db restore FILE` restores a backup"),
        "{message}"
    );
    assert!(message.contains(&format!("--store {place} db check` shows where")), "{message}");
    let checks = fixture.run(&["--store", &place, "doctor", "--json"]).json()["checks"].clone();
    let mut found = checks.as_array().unwrap().iter().filter_map(|check| check["found"].as_str());
    let listed = found.find_map(|found| found.split_once("damaged: ")).unwrap().1;
    let health = fixture.run(&["db", "check", "--json"]).json();
    for line in listed.split("; ") {
        assert!(health["damage"].as_array().unwrap().contains(&json!(line)), "{line}: {health}");
        assert!(line.to_lowercase().contains("page"), "it says where: {line}");
    }
    let check = fixture.run(&["db", "check"]);
    assert_eq!(check.code, 1, "{}{}", check.stdout, check.stderr);
    assert!(check.stdout.contains("damaged:") && check.stdout.contains("3 runs"), "{}", check.stdout);
}
