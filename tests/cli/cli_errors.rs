//! Errors: text or JSON on standard error, and the exit code.

use crate::binary;

use binary::Home;

#[test]
fn unknown_skill_suggests_similar_names_and_exits_with_3() {
    let home = Home::with_skills();
    let answer = home.run(&["describe", "pdf-tabels"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (3, ""));
    let stated = "error: skill `pdf-tabels` not found; `skills ";
    assert!(answer.stderr.starts_with(stated), "{}", answer.stderr);
    let next = "list` lists skills\nhelp: did you mean pdf-tables?\n";
    assert!(answer.stderr.ends_with(next), "{}", answer.stderr);
    let mut error = home.run(&["describe", "pdf-tabels", "--json"]).error();
    let trace_id = error["trace_id"].take();
    let trace_id = trace_id.as_str().unwrap();
    assert!(trace_id.len() == 32 && trace_id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{trace_id}");
    let log = home.path().join("home/.local/state/skill-workbench/skills.log");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.lines().any(|line| line.contains(trace_id) && line.contains("pdf-tabels")), "{log}");
    insta::assert_snapshot!(error.to_string(), @r#"{"error":{"code":"not_found","message":"skill `pdf-tabels` not found","type":"not_found","suggestions":["pdf-tables"]},"trace_id":null}"#);
}

#[test]
fn wrong_usage_exits_with_2_in_text_and_json() {
    let home = Home::empty();
    let text = home.run(&["describe"]);
    assert_eq!(text.code, 2);
    assert!(text.stderr.starts_with("error: ") && text.stderr.contains("Usage:"), "{}", text.stderr);
    let text = home.run(&["discover"]);
    assert_eq!(text.code, 2);
    assert!(text.stderr.starts_with("error: missing request"), "{}", text.stderr);
    let near = home.run(&["discovr", "x"]);
    assert!(near.stderr.contains("'discover'"), "{}", near.stderr);
    let missing = home.run_bare(&["--json", "db"]).error()["error"]["message"].to_string();
    assert!(missing.contains("is missing"), "{missing}");
    let json = home.run(&["list", "--role", "unknown", "--json"]);
    assert_eq!(json.code, 2);
    let error = json.error();
    assert_eq!(
        (&error["error"]["code"], &error["error"]["type"]),
        (&"invalid_request".into(), &"usage".into())
    );
    assert!(error["error"]["message"].as_str().unwrap().contains("procedure"), "{error}");
}

#[test]
fn limit_out_of_range_is_wrong_usage() {
    let home = Home::with_skills();
    for limit in ["0", "1001", "999999999999", "many"] {
        for command in [&["discover", "x"][..], &["list"], &["proposals", "list"]] {
            let answer = home.run(&[command, &["--limit", limit]].concat());
            assert_eq!(answer.code, 2, "{command:?} {limit}: {}", answer.stderr);
            assert!(answer.stderr.contains("from 1 to 1000"), "{command:?} {limit}: {}", answer.stderr);
        }
    }
    assert_eq!(home.run(&["discover", "extract tables from a pdf", "--limit", "1000"]).code, 0);
}

#[test]
fn an_intent_beyond_the_limits_is_wrong_usage() {
    let home = Home::with_skills();
    for (intent, limit) in [("tables ".repeat(4000), "20000"), ("x".repeat(1001), "1000")] {
        let answer = home.run(&["discover", &intent, "--json"]);
        assert_eq!(answer.code, 2, "{}", answer.stderr);
        let error = answer.error();
        assert_eq!(error["error"]["code"], "invalid_request");
        assert!(error["error"]["message"].as_str().unwrap().contains(limit), "{error}");
    }
}

#[test]
fn control_sequences_in_an_intent_are_not_words() {
    let home = Home::with_skills();
    let words = |intent: &str| home.json(&["discover", intent])["words"].as_array().unwrap().len();
    assert_eq!(words("\u{1b}[31mextract\u{1b}[0m tables"), words("extract tables"));
    let text = home.run(&["discover", "\u{1b}[31mextract\u{1b}[0m tables"]).stdout;
    assert!(!text.contains("31m"), "{text}");
}

#[test]
fn control_characters_of_arguments_are_visible() {
    let home = Home::with_skills();
    let evil = "\u{1b}[31mx\u{202e}\r\u{7}";
    let store = format!("sqlite:{}/{evil}.db", home.path().display());
    let file = format!("{evil}.db");
    for command in [
        &["show", evil][..],
        &["describe", evil],
        &["list", "--role", evil],
        &["list", "--client", evil],
        &["list", &format!("--{evil}")],
        &["--root", evil, "list"],
        &["--config", evil, "list"],
        &["--store", evil, "runs", "list"],
        &["--store", &store, "runs", "list"],
        &["--connect", evil, "list"],
        &["runs", "show", evil],
        &["runs", "list", "--where", evil],
        &["run", evil],
        &["session", "show", evil],
        &["proposals", "show", evil],
        &["policy", "explain", evil],
        &["lint", evil],
        &["eval", "--queries", evil],
        &["golden", "list", "--queries", evil],
        &["attach", evil, "--target-type", "run", "--target-ref", evil],
        &["explain-capability", evil],
        &["db", "restore", &file],
        &["db", "backup", &format!("{evil}/{evil}")],
        &["keys", "new", evil],
        &["package-validate", evil],
        &["verify", "adapters", "--url", evil],
        &["demo", evil],
        &["serve", "--host", evil],
    ] {
        let answer = home.run_bare(command);
        let shown = answer.stdout + &answer.stderr;
        let acts = |c: &char| ["\u{1b}", "\u{202e}", "\r", "\u{7}"].contains(&c.to_string().as_str());
        assert_eq!(shown.chars().find(acts), None, "{command:?}: {shown:?}");
        let is_visible = shown.contains('␛') || shown.contains("\\u{1b}");
        assert!(is_visible || !shown.contains("31mx"), "{command:?}: {shown}");
    }
}

#[test]
fn an_ambiguous_name_lists_the_ids() {
    let home = Home::empty();
    for id in ["one", "two"] {
        home.file(
            &format!("{id}/SKILL.md"),
            format!("---\nname: same\ndescription: Does {id} thing with a file.\n---\nBody {id}\n"),
        );
    }
    let answer = home.run(&["describe", "same"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("one, two"), "{}", answer.stderr);
}

#[test]
fn a_skill_is_found_by_its_path() {
    let home = Home::with_skills();
    let path = home.skills().join("pdf-tables");
    let answer = home.json(&["describe", path.to_str().unwrap()]);
    assert_eq!(answer["summary"]["skill_id"], "pdf-tables");
}

#[test]
fn an_unknown_key_in_the_settings_names_file_and_line() {
    let home = Home::with_skills();
    let file = home.config("watch: true\nthem: dark\n");
    let answer = home.run(&["list"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains(&format!("{}:2:", file.display())), "{}", answer.stderr);
    let check = home.run(&["config", "check"]);
    assert_eq!(check.code, 2);
    assert!(
        check.stdout.contains(":2:") && check.stdout.contains("did you mean `theme`?"),
        "{}",
        check.stdout
    );
    let other = home.path().join("other.yaml");
    std::fs::write(&other, "watch: false\n").unwrap();
    let answer = home.run(&["list", "--config", other.to_str().unwrap()]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let missing = home.run(&["list", "--config", "nowhere.yaml"]);
    assert_eq!(missing.code, 3, "{}", missing.stderr);
    assert!(
        missing.stderr.contains("configuration file `nowhere.yaml` does not exist"),
        "{}",
        missing.stderr
    );
}

#[test]
fn config_check_reports_settings_that_fail_only_when_they_are_used() {
    let home = Home::with_skills();
    let file = home.config(
        "store: mysql://db/runs\nconnect: ftp://gate\nruns:\n  views: {Failed: 'state:faild', All: ''}\n",
    );
    let check = home.run_bare(&["config", "check"]);
    assert_eq!(check.code, 2, "{}", check.stdout);
    let lines: Vec<&str> = check.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", check.stdout);
    for (line, parts) in lines.iter().zip([
        [format!("{}:1:", file.display()), "unknown store".to_owned()],
        [format!("{}:2:", file.display()), "ftp:// is not supported".to_owned()],
        ["`Failed`".to_owned(), "faild".to_owned()],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }
}

#[test]
fn doctor_reports_a_setting_that_config_check_rejects() {
    let home = Home::with_skills();
    let of_settings = |text: &str| {
        let file = home.config(text).display().to_string();
        let report = home.run_bare(&["doctor", "--json"]).json();
        let checks = report["checks"].as_array().unwrap();
        (file, checks.iter().find(|check| check["subject"] == "configuration").unwrap().clone())
    };
    let (file, check) = of_settings("theme: nope\n");
    let found = check["found"].as_str().unwrap();
    assert_eq!(check["health"], "problem", "{check}");
    assert!(found.starts_with(&format!("{file}:1:8: ")) && found.contains("`nope`"), "{check}");
    let (file, check) = of_settings("theme: dark\n");
    assert_eq!(check["health"], "good", "{check}");
    assert_eq!(check["found"].as_str(), Some(file.as_str()));
}

#[test]
fn config_check_reports_errors_of_all_kinds_at_once() {
    let home = Home::with_skills();
    home.config(
        "limit: many\ntheme: nosuch\nruns:\n  columns: [cost]\n  sort: price\nkeys:\n  foo: {x: a}\n  \
         browse: {srot: o}\n",
    );
    let check = home.run_bare(&["config", "check"]);
    assert_eq!(check.code, 2, "{}", check.stdout);
    for part in ["`limit`", "`cost`", "`price`", "`foo`", "`srot`", "`nosuch`"] {
        assert_eq!(check.stdout.matches(part).count(), 1, "{part}: {}", check.stdout);
    }
}

#[test]
fn config_check_counts_at_least_the_reported_errors() {
    let home = Home::with_skills();
    let lines = |line: &str| (0..3_000).map(|n| format!("{line}{n}: x\n")).collect::<String>();
    for text in [lines("key"), format!("keys:\n  global:\n{}", lines("    action"))] {
        home.config(&text);
        let check = home.run_bare(&["config", "check"]);
        assert_eq!((check.code, check.stdout.lines().count()), (2, 50), "{}", check.stdout);
        assert!(check.stderr.contains("the configuration has at least 50 errors"), "{}", check.stderr);
    }
}

#[test]
fn config_check_prints_no_control_characters_of_a_file() {
    let home = Home::with_skills();
    let bad = r"\e]52;c;eA==\a\u202e";
    home.config(&format!(
        "theme: \"{bad}\"\nruns: {{columns: [\"{bad}\"], sort: \"{bad}\", expires_in: \"{bad}\"}}\n\
         keys: {{\"{bad}\": {{x: a}}, browse: {{\"{bad}\": o, sort: \"{bad}\"}}}}\n"
    ));
    let check = home.run_bare(&["config", "check"]);
    assert_eq!(check.code, 2);
    assert!(check.stdout.contains("52;c"), "{}", check.stdout);
    let is_raw = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!check.stdout.contains(is_raw) && !check.stderr.contains(is_raw), "{:?}", check.stdout);
}

#[test]
fn unreachable_service_exits_with_69() {
    let home = Home::with_skills();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    for verifier in ["adapters", "controls", "parity"] {
        let answer = home.run(&["verify", verifier, "--url", &url, "--json"]);
        assert_eq!(answer.code, 69, "{verifier}: {}{}", answer.stdout, answer.stderr);
        assert_eq!(answer.error()["error"]["code"], "upstream_failure");
    }
}

#[test]
fn one_fault_has_one_exit_code() {
    let home = Home::with_skills();
    let file = home.path().join("broken.json");
    std::fs::write(&file, "{\"queries\": [").unwrap();
    let file = file.to_str().unwrap();
    for command in
        [&["eval", "--queries", file][..], &["openapi", "--check", file], &["schema", "--check", file]]
    {
        let answer = home.run(command);
        assert_eq!(answer.code, 2, "{command:?}: {}{}", answer.stdout, answer.stderr);
        assert!(answer.stderr.contains("broken.json"), "{command:?}: {}", answer.stderr);
    }
}

#[test]
fn unknown_filter_values_suggest_similar_ones() {
    let home = Home::with_skills();
    let status = home.run(&["list", "--status", "stabel"]);
    assert_eq!(status.code, 0);
    assert!(status.stderr.contains("did you mean stable?"), "{}", status.stderr);
    let domain = home.run(&["list", "--domain", "documnts"]);
    assert!(domain.stderr.contains("did you mean documents?"), "{}", domain.stderr);
    let discovered = home.run(&["discover", "read a pdf", "--domain", "documnts"]);
    assert!(discovered.stderr.contains("did you mean documents?"), "{}", discovered.stderr);
    let known = home.run(&["discover", "read a pdf", "--domain", "Documents"]);
    assert!(!known.stderr.contains("did you mean"), "{}", known.stderr);
    let hints = home.run(&["list", "--domain", "documnts", "--json"]).json()["hints"].clone();
    assert_eq!(hints, serde_json::json!(["no skill has domain `documnts`; did you mean documents?"]));
    let known = home.run(&["list", "--status", "deprecated", "--domain", "documents"]);
    assert_eq!(known.stderr, "", "both values are in use, by no skill together");
}

#[test]
fn names_are_not_truncated_in_a_pipe() {
    let home = Home::empty();
    let long = "a-skill-with-a-name-of-sixty-four-letters-which-is-the-most-64ch";
    home.skill(long, "description: Counts the words of a text.\n", "B.\n");
    for command in [&["list"][..], &["governance"], &["discover", "count the words of a text"]] {
        let answer = home.run(command);
        let words = answer.stdout.split_whitespace();
        assert!(words.clone().any(|word| word == long), "{command:?}: {}", answer.stdout);
    }
}

#[test]
fn a_missing_root_is_a_finding_of_doctor_and_an_error_elsewhere() {
    let home = Home::empty();
    let answer = home.run_bare(&["--root", "/nowhere/at/all", "doctor", "--json"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    let checks = answer.json();
    let root = checks["checks"].as_array().unwrap().iter().find(|c| c["health"] == "problem").unwrap();
    assert!(root["subject"].as_str().unwrap().contains("/nowhere/at/all"), "{root}");
    assert!(root["advice"].is_string());
    let list = home.run_bare(&["--root", "/nowhere/at/all", "list"]);
    assert_eq!(list.code, 3, "an answer over nothing would look like one over an empty folder");
    assert!(list.stderr.contains("skill folder `/nowhere/at/all` does not exist"), "{}", list.stderr);
}

#[test]
fn shipped_skills_are_shown_without_other_skills() {
    let home = Home::empty();
    let list = home.run_bare(&["list", "--json"]).json();
    let skills = list["skills"].as_array().unwrap();
    assert!(skills.len() >= 12 && skills.iter().all(|skill| skill["root"] == "shipped"), "{}", skills.len());
}

#[test]
fn a_refused_bundle_is_listed_with_its_reason() {
    let home = Home::with_skills();
    home.file("empty/SKILL.md", "---\nname: empty\n---\n");
    let list = home.json(&["list"]);
    assert_eq!(list["refused"][0]["id"], "empty");
    let answer = home.run(&["describe", "empty"]);
    assert_eq!(answer.code, 4, "{}", answer.stderr);
    assert!(answer.stderr.contains("description"), "{}", answer.stderr);
}

#[test]
fn damaged_store_is_rejected_and_not_changed() {
    let home = Home::with_skills();
    let store = home.path().join("store.db");
    let damaged = "no database at all, and longer than the header of one would be ".repeat(80);
    std::fs::write(&store, &damaged).unwrap();
    let place = format!("sqlite:{}", store.display());
    let answer = home.run(&["--store", &place, "runs", "list", "--json"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (70, ""), "{}", answer.stderr);
    let error: serde_json::Value = serde_json::from_str(&answer.stderr).unwrap();
    assert_eq!(error["error"]["code"], "store_unavailable");
    assert_eq!(error["error"]["reason"]["cause"], "damaged");
    assert_eq!(std::fs::read_to_string(&store).unwrap(), damaged);
    let names = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_string_lossy().starts_with("store.db")).count(), 1);
}
