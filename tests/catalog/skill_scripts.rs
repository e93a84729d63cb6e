//! The scripts of the shipped skills match their instructions: results and exit codes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// What a script printed and how it ended.
struct Outcome {
    code: i32,
    out: String,
    err: String,
}

/// Runs a shipped script in a folder of its own; `None`, loudly, where its interpreter is not installed.
fn run(script: &str, args: &[&str], folder: &Path, input: &str) -> Option<Outcome> {
    let interpreter =
        if Path::new(script).extension().is_some_and(|e| e == "py") { "python3" } else { "bash" };
    if Command::new(interpreter).arg("--version").output().is_err() {
        eprintln!("SKIPPED: {interpreter} is not installed, {script} was not tried");
        return None;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills").join(script);
    let mut child = Command::new(interpreter)
        .arg(path)
        .args(args)
        .current_dir(folder)
        .env("PYTHONUTF8", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A script that refuses its arguments may end before it reads.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some(Outcome { code: done.status.code().unwrap(), out: text(done.stdout), err: text(done.stderr) })
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[cfg(unix)]
#[test]
fn every_script_is_executable_and_names_its_interpreter() {
    use std::os::unix::fs::PermissionsExt;
    let mut scripts = 0;
    for bundle in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("skills")).unwrap() {
        let Ok(files) = std::fs::read_dir(bundle.unwrap().path().join("scripts")) else { continue };
        for file in files.map(Result::unwrap) {
            let text = std::fs::read_to_string(file.path()).unwrap();
            let line = text.lines().next().unwrap();
            assert!(matches!(line, "#!/usr/bin/env python3" | "#!/usr/bin/env bash"), "{:?}", file.path());
            assert_ne!(file.metadata().unwrap().permissions().mode() & 0o111, 0, "{:?}", file.path());
            scripts += 1;
        }
    }
    assert!(scripts >= 5, "only {scripts} scripts");
}

#[test]
fn tables_of_every_form_become_csv() {
    let script = "table-from-text/scripts/table_from_text.py";
    let here = folder(&[]);
    let cases = [
        (
            "NAME    STATUS      AGE\napi     Crash Loop  3d\nnone                1h\n",
            "NAME,STATUS,AGE\napi,Crash Loop,3d\nnone,,1h\n",
        ),
        ("| a | b |\n|---|--:|\n| x \\| y | 2, 3 |\n", "a,b\nx | y,\"2, 3\"\n"),
        (" id | name \n----+------\n  1 | Bob\n(1 row)\n", "id,name\n1,Bob\n"),
        ("┌──┬──┐\n│ a│ b│\n├──┼──┤\n│ 1│ 2│\n└──┴──┘\n", "a,b\n1,2\n"),
        ("a\tb\n1\t\"two\nlines\"\n", "a,b\n1,\"two\nlines\"\n"),
    ];
    for (text, csv) in cases {
        let Some(done) = run(script, &[], here.path(), text) else { return };
        assert_eq!((done.code, done.out.replace("\r\n", "\n").as_str()), (0, csv), "{text}\n{}", done.err);
    }
    let ragged = run(script, &[], here.path(), "| a | b |\n|---|---|\n| 1 |\n").unwrap();
    assert_eq!(ragged.code, 1);
    assert!(ragged.err.contains("line 3: 1 cells where the header has 2"), "{}", ragged.err);
    assert_eq!(run(script, &["--pad"], here.path(), "| a | b |\n| 1 |\n").unwrap().out, "a,b\r\n1,\r\n");
}

#[test]
fn profile_names_anomalies() {
    let script = "csv-profile/scripts/csv_profile.py";
    let here = folder(&[("o.csv", "id;amount\n1;12.5\n2;13\n2;13\n3;n/a\n4;1\n5;7;x\n")]);
    let Some(done) = run(script, &["o.csv"], here.path(), "") else { return };
    assert_eq!(done.code, 0, "{}", done.err);
    for remark in [
        "6 rows, 2 columns",
        "1 rows with more or fewer cells than the header, first at row 7",
        "1 rows with the same cells as an earlier row, first at row 4",
        "column 'amount': mostly numbers, but row 5 holds 'n/a'",
    ] {
        assert!(done.out.contains(remark), "{remark} is not in\n{}", done.out);
    }
    assert_eq!(run(script, &["missing.csv"], here.path(), "").unwrap().code, 2);
}

#[test]
fn json_is_compared_by_structure() {
    let script = "json-diff/scripts/json_diff.py";
    let here = folder(&[
        ("a.json", r#"{"n": 1, "list": [1, 2], "gone": true, "t/x": "1"}"#),
        ("b.json", r#"{"t/x": 1, "list": [2, 1], "n": 1.0, "new": null}"#),
    ]);
    let Some(done) = run(script, &["a.json", "b.json"], here.path(), "") else { return };
    let expected =
        "- /gone   true\n~ /list/0   1 -> 2\n~ /list/1   2 -> 1\n+ /new   null\n! /t~1x   string -> number\n";
    assert_eq!((done.code, done.out.as_str()), (1, expected));
    let args =
        ["a.json", "b.json", "--unordered", "--ignore", "/gone", "--ignore", "/new", "--ignore", "/t*"];
    assert_eq!(run(script, &args, here.path(), "").unwrap().code, 0);
}

#[test]
fn release_notes_are_drafted_from_the_history() {
    let here = folder(&[]);
    let git = |args: &[&str]| {
        let fixed = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
        Command::new("git").args(fixed).args(args).current_dir(here.path()).output()
    };
    if git(&["init", "-q"]).is_err() {
        eprintln!("SKIPPED: git is not installed, release notes were not tried");
        return;
    }
    let commits = [
        ("start", ""),
        ("feat(ui): show tabs", ""),
        ("fix: keep the cursor", "More.\n\nBREAKING CHANGE: use x"),
        ("Tidy up", ""),
    ];
    for (n, (subject, body)) in commits.iter().enumerate() {
        assert!(git(&["commit", "-q", "--allow-empty", "-m", subject, "-m", body]).unwrap().status.success());
        if n == 0 {
            git(&["tag", "v1.0.0"]).unwrap();
        }
    }
    let script = "release-notes/scripts/commits_since.sh";
    let Some(done) = run(script, &[], here.path(), "") else { return };
    let shape: Vec<&str> =
        done.out.lines().map(|line| line.split(" (").next().unwrap()).filter(|l| !l.is_empty()).collect();
    assert_eq!(
        shape,
        [
            "# v1.0.0..HEAD",
            "## Breaking",
            "- keep the cursor",
            "## New",
            "- **ui:** show tabs",
            "## Other",
            "- Tidy up"
        ],
        "{}",
        done.err
    );
    assert_eq!(run(script, &["nowhere"], here.path(), "").unwrap().code, 2);
    assert_eq!(run(script, &["HEAD"], here.path(), "").unwrap().code, 1);
}

#[test]
fn an_unsorted_changelog_is_reported_by_line() {
    let script = "changelog-check/scripts/changelog_check.py";
    let here = folder(&[
        (
            "good.md",
            "# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2025-03-31\n### Added\n- x\n\n## [1.0.0] - 2025-01-31\n- y\n",
        ),
        ("bad.md", "## [1.0.1] - 2025-03-31\n### Bugfixes\n- x\n\n## [1.2.0] - 2025-02-30\n- y\n"),
    ]);
    let Some(good) = run(script, &["good.md", "--version", "1.1.0"], here.path(), "") else { return };
    assert_eq!((good.code, good.out.as_str()), (0, ""));
    assert_eq!(run(script, &["good.md", "--version", "1.2.0"], here.path(), "").unwrap().code, 1);
    let bad = run(script, &["bad.md"], here.path(), "").unwrap();
    let places: Vec<&str> = bad.out.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!((bad.code, places), (1, vec!["bad.md:2", "bad.md:5", "bad.md:5"]), "{}", bad.out);
}

#[test]
fn logs_of_several_zones_become_one_timeline() {
    let script = "incident-timeline/scripts/timeline.py";
    let here = folder(&[
        ("api.log", "2025-03-31T14:00:00.123Z ERROR boom\n  at main\n"),
        ("web.log", "1.2.3.4 - - [31/Mar/2025:16:05:00 +0200] \"GET /\" 500\n"),
        ("sys.log", "Mar 31 15:55:00 host sshd: in\n"),
        ("ticks.log", "1743430000 tick\n"),
    ]);
    let files = ["api.log", "web.log", "sys.log", "ticks.log"];
    let args: Vec<&str> =
        files.iter().copied().chain(["--year", "2025", "--zone", "+02:00", "--gap", "4"]).collect();
    let Some(done) = run(script, &args, here.path(), "") else { return };
    let starts: Vec<&str> = done.out.lines().map(|line| line.split("  ").take(2).last().unwrap()).collect();
    assert_eq!(
        starts,
        [
            "sys.log:1",
            " ... 5 min without an entry",
            "api.log:1",
            " ... 5 min without an entry",
            "web.log:1",
            "ticks.log:1"
        ],
        "{}{}",
        done.out,
        done.err
    );
    assert!(done.out.contains("2025-03-31T14:00:00.123Z  api.log:1") && done.out.contains("(+1 lines)"));
    assert_eq!(run(script, &["sys.log"], here.path(), "").unwrap().code, 2, "a year must be asked for");
}

#[test]
fn licenses_are_evaluated_by_their_expression() {
    let script = "dependency-licenses/scripts/licenses.py";
    let package = |name: &str, license: &str| {
        format!(r#"{{"id": "{name}", "name": "{name}", "version": "1.0.0", "license": {license}}}"#)
    };
    let packages = [
        package("me", r#""GPL-3.0-only""#),
        package("both", r#""MIT AND GPL-2.0-only""#),
        package("either", r#""GPL-2.0-only OR (MIT AND Zlib)""#),
        package("old", r#""Apache-2.0/MIT""#),
        package("silent", "null"),
    ];
    let metadata = format!(r#"{{"workspace_members": ["me"], "packages": [{}]}}"#, packages.join(","));
    let here = folder(&[]);
    let Some(done) = run(script, &["--cargo", "-"], here.path(), &metadata) else { return };
    assert_eq!(done.code, 1);
    assert_eq!(done.err.trim(), "2 allowed, 1 denied, 1 unknown", "{}", done.out);
    assert!(!done.out.contains("me 1.0.0"), "the project's own packages are not dependencies");
    let all = run(script, &["--cargo", "-", "--allow", "MIT"], here.path(), &metadata).unwrap();
    assert_eq!(all.err.trim(), "1 allowed, 2 denied, 1 unknown", "{}", all.out);
    let lock = r#"{"packages": {"": {}, "node_modules/a": {"version": "2.0.0", "license": "ISC"}}}"#;
    assert_eq!(run(script, &["--npm", "-"], here.path(), lock).unwrap().code, 0);
}

#[test]
fn secrets_pause_the_run_and_are_never_printed() {
    let script = "secret-scan/scripts/secret_scan.py";
    let here = folder(&[]);
    // Assembled here, so that this file contains nothing that looks like a secret.
    let key = ["-----BEGIN RSA PRIV", "ATE KEY-----"].concat();
    let value = ["Zk8fP0q", "Lm2Xy7wQ"].concat();
    let text = format!(
        "fine\n{key}\npass\nword = \"{value}\"\npassword = \"{value}\"\n{key} secret-scan: allow, an example\n"
    );
    let Some(done) = run(script, &["-"], here.path(), &text) else { return };
    let answer: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((done.code, answer["control"].as_str()), (1, Some("pause")));
    let lines: Vec<u64> =
        answer["findings"].as_array().unwrap().iter().map(|f| f["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [2, 5]);
    assert!(!done.out.contains(&value));
    let clean = run(script, &["-"], here.path(), "password = \"${FROM_VAULT_AT_RUNTIME}\"\n").unwrap();
    assert_eq!((clean.code, clean.out.contains("\"none\"")), (0, true), "{}", clean.out);
}

#[test]
fn secrets_are_found_in_field_names_and_values() {
    let script = "secret-scan/scripts/scan_target.py";
    let (key, value) = (["AKIA", "IOSFODNN7ABCDEFG"].concat(), ["Zk8fP0q", "Lm2Xy7wQ"].concat());
    let content =
        serde_json::json!({ "users": { key.clone(): { key.clone(): 1 } }, "password": value, "n": 3 });
    let input = serde_json::json!({ "content": content }).to_string();
    let Some(done) = run(script, &[], folder(&[]).path(), &input) else { return };
    let answer: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let mut rules: Vec<&str> =
        answer["findings"].as_array().unwrap().iter().map(|f| f["rule"].as_str().unwrap()).collect();
    rules.sort_unstable();
    assert_eq!(rules, ["assigned-secret", "cloud-access-key", "cloud-access-key"], "{}", done.out);
    assert_eq!(answer["control"], "pause");
    assert!(!done.out.contains(&key) && !done.out.contains(&value), "places name no secret: {}", done.out);
    let clean = r#"{"content": {"token": "${FROM_VAULT_AT_RUNTIME}", "names": ["password"]}}"#;
    let clean = run(script, &[], folder(&[]).path(), clean).unwrap();
    assert!(clean.out.contains("\"none\""), "{}", clean.out);
}

#[test]
fn budget_pauses_before_it_cancels() {
    let script = "run-cost-watch/scripts/cost_watch.py";
    let here = folder(&[("prices.json", r#"{"large": {"input": 3.0, "output": 15.0}}"#)]);
    let usage = |model: &str| {
        format!(
            "{{\"step\": \"draft\", \"model\": \"{model}\", \"input_tokens\": 1000000, \"output_tokens\": 100000}}\n"
        )
    };
    for (model, budget, control, code) in [
        ("large", "50", "none", 0),
        ("large", "5", "pause", 1),
        ("large", "4.5", "cancel", 1),
        ("other", "50", "pause", 1),
    ] {
        let args = ["-", "--prices", "prices.json", "--budget", budget];
        let Some(done) = run(script, &args, here.path(), &usage(model)) else { return };
        let answer: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(
            (answer["control"].as_str(), done.code),
            (Some(control), code),
            "{}{}",
            done.out,
            done.err
        );
    }
    let broken =
        run(script, &["-", "--prices", "prices.json", "--budget", "5"], here.path(), "{}\n").unwrap();
    assert_eq!(broken.code, 2);
}
