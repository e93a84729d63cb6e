//! Runs whose skills were read by another process: who may decide them, who executes them, and that another version of
//! this program continues runs of the shipped skills.

use crate::cli_runs_fixture;

use cli_runs_fixture::RunsFixture;
use serde_json::json;

#[test]
fn runs_of_unread_skills_can_only_be_denied() {
    let fixture = RunsFixture::new();
    let (first, second) = (fixture.waiting_mail(), fixture.waiting_mail());
    let signalled = fixture.run(&["run", "later", "--json"]).json()["run"]["id"].as_str().unwrap().to_owned();
    let other = fixture.home.path().join("other");
    std::fs::create_dir_all(&other).unwrap();
    let elsewhere =
        |args: &[&str]| fixture.home.run_bare(&[&["--root", other.to_str().unwrap()], args].concat());
    let why = format!("use --root {}", fixture.home.skills().display());

    let show = elsewhere(&["runs", "show", &first]).stdout;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&show).contains("which are not loaded"), "{show}");
    assert!(
        show.contains(" runs deny ") && !show.contains(" runs approve "),
        "only a denial is possible: {show}"
    );
    assert!(!words(&show).contains("no longer exists"), "{show}");
    let source = fixture.json(&["run", "words", "--input", "text=a b"])["run"]["id"].clone();
    let fork =
        fixture.json(&["runs", "fork", source.as_str().unwrap(), "--checkpoint", "0"])["run"]["id"].clone();
    let resume = elsewhere(&["runs", "resume", fork.as_str().unwrap(), "--json"]).error()["error"].clone();
    assert_eq!(resume["code"], "skill_changed", "{resume}");
    assert!(resume["message"].as_str().unwrap().contains(&why), "{resume}");
    let show = elsewhere(&["runs", "show", fork.as_str().unwrap()]).stdout;
    assert!(show.contains("worker") && !show.contains(" runs resume "), "{show}");
    let digest = fixture.digest(&first);
    let yes = elsewhere(&["runs", "approve", &first, "--inputs-digest", &digest, "--yes", "--json"]);
    let error = yes.error()["error"].clone();
    assert!(yes.code != 0 && error["message"].as_str().unwrap().contains(&why), "{error}");
    assert_eq!(fixture.json(&["runs", "show", &first])["decisions"], json!([]), "no decision made");
    assert_eq!(
        elsewhere(&["runs", "deny", &second, "--step", "send", "--yes"]).code,
        0,
        "you can still deny it"
    );

    // A signal may come from another program: it is buffered, and the process that can continue is named.
    let signal =
        elsewhere(&["runs", "signal", &signalled, "books-closed", "--payload", r#"{"text": "a b c"}"#]);
    assert!(signal.stderr.contains(&why), "{}{}", signal.stdout, signal.stderr);
    assert!([0, 5].contains(&signal.code), "{}{}", signal.stdout, signal.stderr);
    let pending = elsewhere(&["runs", "show", &signalled, "--json"]).json();
    assert!(pending["elsewhere"].as_str().unwrap().contains(&why), "{}", pending["elsewhere"]);

    assert_eq!(fixture.run(&["runs", "work"]).code, 0);
    assert_eq!(fixture.json(&["runs", "show", &signalled])["elsewhere"], json!(null));
    assert_eq!(fixture.run(&["runs", "approve", &first, "--inputs-digest", &digest, "--yes"]).code, 0);
}

#[test]
fn run_of_shipped_skills_continues_in_another_version() {
    let fixture = RunsFixture::new();
    let store = format!("sqlite:{}", fixture.home.path().join("shipped.db").display());
    let demo = |args: &[&str]| fixture.home.run_bare(&[&["--demo", "--store", &store], args].concat());
    let waits = demo(&["run", "invoice-intake", "--json"]);
    assert_eq!(waits.code, 5, "{}{}", waits.stdout, waits.stderr);
    let run = waits.json()["run"].clone();
    assert_eq!(run["options"]["place"], "shipped", "no folder of one version");
    // An earlier version named the folder that it had unpacked its skills to.
    let earlier = unpacked(fixture.home.path()).join("00000000000000ff");
    std::fs::create_dir_all(&earlier).unwrap();
    let connection = rusqlite::Connection::open(fixture.home.path().join("shipped.db")).unwrap();
    let changed = connection
        .execute(
            "UPDATE runs SET options = json_set(options, '$.place', ?1)",
            [earlier.to_string_lossy().into_owned()],
        )
        .unwrap();
    assert_eq!(changed, 1);
    drop(connection);
    // A process that reads other skills gets the complete command.
    let other = fixture.home.path().join("other");
    std::fs::create_dir_all(&other).unwrap();
    let show =
        ["--root", other.to_str().unwrap(), "--store", &store, "runs", "show", run["id"].as_str().unwrap()];
    let show = fixture.home.run_bare(&show).stdout;
    let words = show.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("use --demo --store {store}")), "{show}");
    let id = run["id"].as_str().unwrap();
    let digest = run["gate"]["human"]["inputs_digest"].as_str().unwrap();
    let approved = demo(&["runs", "approve", id, "--inputs-digest", digest, "--yes", "--json"]);
    assert_eq!(approved.code, 0, "{}{}", approved.stdout, approved.stderr);
    assert_eq!(approved.json()["run"]["state"], "completed");
}

/// The folder that holds the shipped skills of every version.
fn unpacked(home: &std::path::Path) -> std::path::PathBuf {
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten().filter(|e| e.path().is_dir()) {
            if entry.file_name() == "shipped" {
                return entry.path();
            }
            folders.push(entry.path());
        }
    }
    panic!("no shipped skills below {}", home.display())
}
