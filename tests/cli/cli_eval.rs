//! `skills eval`: measures on files and on the roots' golden sets, missed queries, baselines.

use crate::binary;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use binary::Home;

fn golden(home: &Home) {
    home.file(
        "golden.yaml",
        "- query: extract the tables of a pdf\n  expect: [pdf-tables]\n\
         - query: what would break in this deployment\n  expect: [deploy-check]\n\
         - query: join two csv files\n  expect: [deploy-check]\n\
         - query: zzxx qqvv wwkk\n  expect: none\n",
    );
}

#[test]
fn the_golden_set_of_the_roots_is_measured() {
    let home = Home::with_skills();
    golden(&home);
    let answer = home.run(&["eval", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let report = answer.json();
    for key in ["queries", "p_at_1", "hit_at_5", "mrr_at_10", "out_of_scope_rejected"] {
        assert!(report[key].is_number(), "{key}: {report}");
    }
    assert!(report["latency_us"]["p50"].is_u64() && report["latency_us"]["p99"].is_u64());
    assert_eq!(report["queries"], 3);
    assert!((report["p_at_1"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9, "{report}");
    let text = home.run(&["eval"]).stdout;
    assert!(text.contains("join two csv files") && text.contains("csv-tools won"), "{text}");
}

#[test]
fn rejected_in_scope_queries_are_named() {
    let home = Home::with_skills();
    home.file("golden.yaml", "- query: zzxx qqvv wwkk\n  expect: [pdf-tables]\n");
    let text = home.run(&["eval"]).stdout;
    let named = "rejected in-scope queries (1)\n  zzxx qqvv wwkk\n    no fit; expected pdf-tables (not among the first ten)";
    assert!(text.contains(named), "{text}");
    let report = home.run(&["eval", "--json"]).json();
    assert_eq!(report["wrongly_rejected"], 1);
    assert_eq!(report["rejected_queries"][0]["query"], "zzxx qqvv wwkk");
    let markdown = home.run(&["eval", "--report", "markdown"]).stdout;
    assert!(markdown.contains("<summary>1 in-scope rejected</summary>"), "{markdown}");
    assert!(markdown.contains("| zzxx qqvv wwkk | no fit;"), "{markdown}");
}

#[test]
fn long_queries_are_complete_outside_of_a_terminal() {
    let home = Home::with_skills();
    let query = format!("join two csv files {}", "by their common columns ".repeat(8));
    home.file("golden.yaml", format!("- query: {query}\n  expect: [deploy-check]\n"));
    for command in [&["eval"][..], &["golden", "list"]] {
        for options in [&[][..], &["--plain"]] {
            let text = home.run(&[options, command].concat()).stdout;
            assert!(text.contains(query.trim()), "{command:?}: {text}");
        }
    }
}

#[test]
fn watch_prints_labeled_lines_in_plain_output() {
    let home = Home::with_skills();
    golden(&home);
    let skills = home.skills().display().to_string();
    let mut command = home.command();
    command.args(["--plain", "--root", &skills, "eval", "--watch"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (send, lines) = std::sync::mpsc::channel();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let read_until = |end: &str| {
        let mut text = String::new();
        while !text.contains(end) {
            text += &(lines.recv_timeout(Duration::from_secs(60)).expect(&text) + "\n");
        }
        text
    };
    let first = read_until("csv-tools won");
    assert!(first.contains("P@1: 0.667, 2 of 3 ranked first."), "{first}");
    home.file("golden.yaml", "- query: join two csv files\n  expect: [csv-tools]\n");
    let second = read_until("won from");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(second.contains(": P@1: 1.000 (+0.333), MRR@10: 1.000 ("), "{second}");
    assert!(second.contains(", 0 false triggers.\nwon from csv-tools: join two csv files"), "{second}");
    for text in [first, second] {
        assert!(!text.contains(['\u{1b}', '\r']) && !text.contains("  "), "{text}");
    }
}

#[test]
fn a_golden_set_that_is_a_pipe_does_not_hide_the_others() {
    let home = Home::with_skills();
    golden(&home);
    let other = home.path().join("other");
    fs::create_dir_all(&other).unwrap();
    let pipe = other.join("golden.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (skills, other) = (home.skills().display().to_string(), other.display().to_string());
    for command in ["eval", "governance"] {
        let answer = home.run(&["--root", &skills, "--root", &other, command, "--json"]);
        assert_eq!(answer.code, 0, "{command}: {}", answer.stderr);
        let warnings = answer.json()["warnings"].clone();
        assert_eq!(warnings.as_array().map(Vec::len), Some(1), "{command}: {warnings}");
        assert!(warnings[0].as_str().unwrap().contains("golden.yaml"), "{command}: {warnings}");
    }
}

#[test]
fn long_and_empty_evaluations_of_a_bundle_are_not_measured() {
    let home = Home::with_skills();
    golden(&home);
    let entry = |query: &str| serde_json::json!({"query": query, "should_trigger": true});
    let long = "table ".repeat(4_000);
    let evals = serde_json::json!([entry(" "), entry(&long), entry("read rows of a pdf")]);
    home.file("pdf-tables/evals/a.json", evals.to_string());
    let many: Vec<_> = (0..300).map(|n| entry(&format!("page {n} of a pdf"))).collect();
    home.file("pdf-tables/evals/b.json", serde_json::Value::from(many).to_string());
    home.file("pdf-tables/evals/c.json", "x".repeat((2 << 20) + 1));
    for command in ["eval", "governance"] {
        let answer = home.run(&[command, "--json"]);
        assert_eq!(answer.code, 0, "{command}: {}", answer.stderr);
        let report = answer.json();
        let warnings = report["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 3, "{command}: {warnings:?}");
        for (warning, parts) in warnings.iter().zip([
            ["a.json: 1 query has more than 20000 characters", "entry 2"],
            ["b.json: 102 queries are not measured, of 300", "200 queries"],
            ["c.json: the file has more than", "is not used"],
        ]) {
            let warning = warning.as_str().unwrap();
            assert!(parts.iter().all(|part| warning.contains(part)), "{command}: {warning}");
        }
    }
    assert_eq!(home.json(&["eval"])["queries"], 3 + 1 + 198);
}

#[test]
fn missing_evidence_names_commands_for_the_same_skills() {
    let home = Home::with_skills();
    home.file(
        "golden.yaml",
        "- {query: what would break in this deployment, expect: [deploy-check]}\n\
         - {query: join two csv files, expect: [deploy-check]}\n\
         - {query: clean and filter csv files, expect: [deploy-check]}\n",
    );
    let text = home.run(&["governance", "deploy-check"]).stdout;
    let skills = home.skills().display().to_string();
    assert!(text.contains(&format!("`skills --root {skills} eval`")), "{text}");
    let next = home.json(&["governance", "deploy-check"])["skills"][0]["next"].clone();
    assert!(next.to_string().contains("`skills eval`"), "{next}");
}

#[test]
fn files_given_by_name_are_measured() {
    let home = Home::empty();
    let write = |name: &str, text: &str| std::fs::write(home.path().join("work").join(name), text).unwrap();
    write(
        "skills.jsonl",
        "{\"id\":\"pdf\",\"name\":\"pdf\",\"description\":\"Reads tables from PDF files\",\"tags\":[]}\n\
         {\"id\":\"mail\",\"name\":\"mail\",\"description\":\"Writes short mails\",\"tags\":[]}\n",
    );
    write("queries.jsonl", "{\"query\":\"read a pdf table\",\"relevant\":[\"pdf\"]}\n");
    write("none.jsonl", "{\"query\":\"qqq zzz\"}\n");
    let args = [
        "eval",
        "--skills",
        "skills.jsonl",
        "--queries",
        "queries.jsonl",
        "--out-of-scope",
        "none.jsonl",
        "--json",
    ];
    let report = home.run_bare(&args).json();
    assert_eq!(
        (&report["queries"], &report["p_at_1"], &report["out_of_scope"]),
        (&1.into(), &1.0.into(), &1.into())
    );
    assert_eq!(report["thresholds"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["thresholds"][0]["kept"], 1.0);
    write("queries.jsonl", "");
    let shown = home.run_bare(&args[..7]).stdout;
    assert!(shown.contains("of 1 out-of-scope query\n") && shown.contains("  -         1.000"), "{shown}");
    let shown = home.run_bare(&args[..5]).stdout;
    assert!(shown.ends_with("queries.jsonl` has no queries\n"), "{shown}");
    write("queries.jsonl", "{\"query\":1}\n");
    let broken = home.run_bare(&args);
    assert_eq!(broken.code, 2, "{}", broken.stderr);
    assert!(broken.stderr.contains("queries.jsonl") && broken.stderr.contains("line 1"), "{}", broken.stderr);
}

#[test]
fn regression_fails_and_is_named() {
    let home = Home::with_skills();
    golden(&home);
    let baseline = home.path().join("baseline.json");
    let now = home.run(&["eval", "--json"]);
    std::fs::write(&baseline, &now.stdout).unwrap();
    let baseline = baseline.to_str().unwrap().to_owned();
    assert_eq!(home.run(&["eval", "--baseline", &baseline]).code, 0);
    std::fs::remove_dir_all(home.skills().join("deploy-check")).unwrap();
    let worse = home.run(&["eval", "--baseline", &baseline]);
    assert_eq!(worse.code, 1, "{}", worse.stdout);
    assert!(
        worse.stdout.contains("worse than the baseline") && worse.stdout.contains("p_at_1"),
        "{}",
        worse.stdout
    );
    let tolerant = home.run(&["eval", "--baseline", &baseline, "--tolerance", "1"]);
    assert_eq!(tolerant.code, 0);
}

#[test]
fn queries_added_and_removed_since_the_baseline_are_counted_apart() {
    let home = Home::with_skills();
    let golden = |queries: &[&str]| {
        let queries: String =
            queries.iter().map(|query| format!("- query: {query}\n  expect: none\n")).collect();
        fs::write(home.skills().join("golden.yaml"), queries).unwrap();
    };
    golden(&["play the piano", "water the roses"]);
    let before = home.run(&["eval", "--json"]).json();
    assert_eq!(before["winners"].as_array().unwrap().len(), 2, "{before}");
    let file = home.path().join("baseline.json");
    fs::write(&file, before.to_string()).unwrap();
    golden(&["play the piano", "ride a horse"]);
    let with = |more: &[&str]| {
        let args = ["eval", "--baseline", file.to_str().unwrap()];
        home.run(&[&args[..], more].concat())
    };
    let counts = "1 query compared, 1 added, 1 removed";
    for report in [&[][..], &["--report", "markdown"], &["--report", "github"]] {
        let report = with(report).stdout;
        assert!(report.contains(counts), "{report}");
    }
    let junit = with(&["--report", "junit"]).stdout;
    assert!(junit.contains("<property name=\"added_queries\" value=\"1\"/>"), "{junit}");
    let json = with(&["--json"]).json();
    let expected = serde_json::json!({"queries": 1, "added": 1, "removed": 1, "not_comparable": 0});
    assert_eq!((&json["compared"], json["changed"].as_array().map(Vec::len)), (&expected, Some(0)));
    let mut earlier = before;
    earlier.as_object_mut().unwrap().remove("winners");
    fs::write(&file, earlier.to_string()).unwrap();
    let command = format!("`skills --root {} eval --json`", home.skills().display());
    for report in [&[][..], &["--report", "markdown"], &["--report", "github"]] {
        let text = with(report).stdout;
        assert!(text.contains("0 queries compared; 2 queries not comparable: this baseline"), "{text}");
        assert!(text.contains(&command), "{text}");
    }
}

#[test]
fn missing_golden_set_is_reported_with_help() {
    let home = Home::with_skills();
    let answer = home.run(&["eval"]);
    assert_eq!(answer.code, 3);
    assert!(answer.stderr.contains("golden.yaml"), "{}", answer.stderr);
    assert!(answer.stderr.contains("next to .skill-workbench.yaml"), "{}", answer.stderr);
}

#[test]
fn the_shipped_skills_have_a_golden_set() {
    let home = Home::empty();
    let report = home.run_bare(&["--demo", "eval", "--json"]).json();
    assert!(report["queries"].as_u64().unwrap() >= 50, "{report}");
    assert_eq!(report["missing"].as_array().unwrap().len(), 0, "{report}");
}

#[test]
fn reports_for_other_tools_name_what_fails_and_what_changed() {
    let home = Home::with_skills();
    for (id, text) in [("alpha", "Reads bank statements."), ("beta", "Bakes <cakes> and bread.")] {
        let folder = home.skills().join(id);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), format!("---\nname: {id}\ndescription: {text}\n---\nBody\n"))
            .unwrap();
    }
    let golden = "- query: read my bank statement\n  expect: [beta]\n- query: bake bread\n  expect: [beta]\n";
    fs::write(home.skills().join("golden.yaml"), golden).unwrap();
    let before = home.run(&["eval", "--json"]);
    let baseline = home.skills().join("../before.json");
    fs::write(&baseline, &before.stdout).unwrap();
    let golden = golden.replace("statement\n  expect: [beta]", "statement\n  expect: [alpha]");
    fs::write(home.skills().join("golden.yaml"), golden).unwrap();
    let text = "---\nname: beta\ndescription: Sings.\n---\nBody\n";
    fs::write(home.skills().join("beta/SKILL.md"), text).unwrap();

    let markdown = home.run(&["eval", "--report", "markdown", "--baseline", baseline.to_str().unwrap()]);
    assert!(markdown.stdout.contains("| queries | | 2 |"), "{}", markdown.stdout);
    assert!(markdown.stdout.contains("**Queries with a different winner: 1**"), "{}", markdown.stdout);
    assert!(markdown.stdout.contains("| bake bread | beta | "), "{}", markdown.stdout);
    let junit = home.run(&["eval", "--report", "junit"]);
    assert!(
        junit.stdout.contains("<testsuite name=\"skills eval\" tests=\"2\" failures=\"1\">"),
        "{}",
        junit.stdout
    );
    assert!(junit.stdout.contains("name=\"read my bank statement\"/>"), "{}", junit.stdout);
    let github = home.run(&["eval", "--report", "github"]);
    let warning = "golden.yaml,line=3,title=bake bread::expected beta";
    assert!(github.stdout.contains(warning), "{}", github.stdout);
    let own = home.json(&["eval", "--skill", "alpha"]);
    assert_eq!(own["queries"], 1);
    let query = &own["of_skill"][0];
    assert_eq!((query["query"].as_str(), query["rank"].as_u64()), (Some("read my bank statement"), Some(1)));
    assert_eq!((&query["won"], &query["is_expected"]), (&"alpha".into(), &true.into()));
    let text = home.run(&["eval", "--skill", "alpha"]).stdout;
    assert!(text.contains("passed (1)\n  read my bank statement\n    alpha won"), "{text}");
    assert_eq!(home.run(&["eval", "--skill", "nosuch"]).code, 3);
}
