//! What scripts rely on: the shapes of `--json`, exit codes, and plain text into a pipe.

use crate::binary;

use binary::{Answer, Home, keys};
use serde_json::json;

#[test]
fn discover_returns_ranked_results_with_their_breakdown() {
    let home = Home::with_skills();
    let answer = home.run(&["discover", "extract the tables of a pdf into a spreadsheet", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let answer = answer.json();
    for key in ["results", "attachable", "excluded", "fit", "skills", "took_us"] {
        assert!(!answer[key].is_null(), "{key}");
    }
    let first = &answer["results"][0];
    for key in ["skill_id", "name", "score", "role", "effect_mode", "reason", "breakdown"] {
        assert!(!first[key].is_null(), "{key}: {first}");
    }
    assert_eq!(first["skill_id"], "pdf-tables");
    let parts: f64 = first["breakdown"]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["value"].as_f64().unwrap())
        .sum();
    assert!((parts - first["score"].as_f64().unwrap()).abs() < 1e-6);
    assert!(answer["results"].as_array().unwrap().iter().all(|hit| hit["role"] != "sidecar"));
    assert_eq!(answer["attachable"][0]["skill_id"], "table-audit");
    assert!(answer["excluded"].as_array().unwrap().iter().any(|left| left["skill_id"] == "old-pdf"));
    assert_ne!(answer["fit"], "none");
}

#[test]
fn request_without_a_fit_exits_with_1() {
    let home = Home::with_skills();
    let answer = home.run(&["discover", "what is the weather like in Lisbon tomorrow", "--json"]);
    assert_eq!((answer.code, answer.json()["fit"].clone()), (1, json!("none")), "{}", answer.stderr);
}

#[test]
fn intent_is_read_from_stdin_and_must_not_be_empty() {
    let home = Home::with_skills();
    let skills = home.skills();
    let mut child = home
        .command()
        .args(["--root", skills.to_str().unwrap(), "discover", "-", "--json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"extract tables from a pdf\n").unwrap();
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!(answer.json()["results"][0]["skill_id"], "pdf-tables");
    let empty = home.run(&["discover", "  "]);
    assert_eq!(empty.code, 2, "{}", empty.stderr);
}

/// Runs the plain dialog with these lines typed.
fn run_dialog(home: &Home, args: &[&str], typed: &str) -> Answer {
    let skills = home.skills();
    let mut child = home
        .command()
        .args(["--root", skills.to_str().unwrap(), "--plain"])
        .args(args)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), typed.as_bytes()).unwrap();
    Answer::of(child.wait_with_output().unwrap())
}

#[test]
fn a_plain_dialog_ranks_explains_and_checks() {
    let home = Home::with_skills();
    let typed = "extract tables from a pdf\n1\nwhy 1\nwhy nothing-like-it\n99\nq\n";
    let answer = run_dialog(&home, &["discover"], typed);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    let text = &answer.stdout;
    for line in [
        "Type a request, or q to quit.\n> ",
        "Request: extract tables from a pdf.\nVerdict: pdf-tables fits",
        "\n1. pdf-tables. Score ",
        "\npdf-tables. Rank 1, score ",
        "Words, and the points of each:\n",
        "  sum: ",
        "\nWhy pdf-tables?\n",
        "1. Parse: passed.",
        "Rank: passed. First with ",
        "Error: ",
        "Unknown command. h: help.",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(text.is_ascii(), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");

    let again = run_dialog(&home, &["discover", "extract tables from a pdf"], "r\nzzxx qqvv\n");
    assert_eq!(again.code, 1, "the last request has no result: {}", again.stdout);
    assert!(again.stdout.contains("Request: zzxx qqvv."), "{}", again.stdout);
    assert_eq!(home.run(&["discover"]).code, 2, "without the dialog a request is required");
}

#[test]
fn the_plain_menu_opens_the_dialogs() {
    let home = Home::with_skills();
    let typed = "9\n4\n3\npdf-tables\n\n2\nextract tables from a pdf\nq\n1\nq\nq\n";
    let answer = run_dialog(&home, &[], typed);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    for line in [
        "Choose 1 to 4, or q.\n> Unknown command: 9.",
        "Description: ",
        "\nWhy pdf-tables?\n",
        "Verdict: pdf-tables fits",
        "View: waiting for approval, nearest deadline first.",
    ] {
        assert!(answer.stdout.contains(line), "{line} is missing in\n{}", answer.stdout);
    }
    let sign = |c: char| !c.is_ascii() && !c.is_alphanumeric();
    assert!(!answer.stdout.contains(sign), "{}", answer.stdout);
}

#[test]
fn why_as_labeled_lines_keeps_its_exit_code() {
    let home = Home::with_skills();
    home.skill("billing", "description: Creates bills for customers. Not for subscriptions.", "# Bills\n");
    home.skill("subs", "description: Cancels and renews a subscription.", "# Plans\n");
    let answer = home.run(&["--plain", "why", "billing", "cancel my subscription"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    for line in [
        "\nWhy billing?\n",
        "Result: a check failed.",
        "Rank: failed. ",
        "Exclusion: failed. ",
        "Points by word",
    ] {
        assert!(answer.stdout.contains(line), "{line} is missing in\n{}", answer.stdout);
    }
    assert!(answer.stdout.is_ascii(), "{}", answer.stdout);
}

#[test]
fn the_explanation_adds_up_to_the_score() {
    let home = Home::with_skills();
    let answer = home.run(&["discover", "extract tables from a pdf", "--explain", "--top", "1"]);
    assert!(answer.stdout.contains("Why pdf-tables is #1"), "{}", answer.stdout);
    let ledger: Vec<&str> = answer.stdout.split("Why pdf-tables").nth(1).unwrap().lines().skip(2).collect();
    let last = |line: &str| line.split_whitespace().last().unwrap_or("0").replace('−', "-").parse::<f64>();
    let end = ledger.iter().position(|line| line.trim_start().starts_with("sum ")).unwrap();
    let rows: f64 = ledger[..end].iter().map(|line| last(line).unwrap_or(0.0)).sum();
    let sum = last(ledger[end]).unwrap();
    assert!((rows - sum).abs() < 0.005 * (end + 1) as f64, "{rows} is not {sum}\n{}", answer.stdout);
}

#[test]
fn named_skill_is_explained_at_any_rank() {
    let home = Home::with_skills();
    let answer = home.run(&["discover", "extract tables from a pdf", "--limit", "1", "--skill", "csv-tools"]);
    let place = answer.stdout.split("Why csv-tools is #").nth(1).and_then(|rest| rest.lines().next());
    assert!(
        place.is_some_and(|place| place.parse::<usize>().unwrap() > 1),
        "{}{}",
        answer.stdout,
        answer.stderr
    );
    let left = home.run(&["discover", "extract tables from a pdf", "--skill", "old-pdf"]);
    assert_eq!(left.code, 3);
    assert!(left.stderr.contains("excluded: "), "{}", left.stderr);
}

#[test]
fn results_are_numbered_in_order_of_score() {
    let home = Home::with_skills();
    let text = home.run(&["discover", "clean and join csv files zzqx qqvw"]).stdout;
    let number = |line: &str| line.split_whitespace().next().and_then(|word| word.parse::<usize>().ok());
    let numbers: Vec<usize> = text.lines().filter_map(number).collect();
    assert!(!numbers.is_empty() && numbers.iter().copied().eq(1..=numbers.len()), "{text}");
    let scores: Vec<f64> = text
        .lines()
        .filter(|line| number(line).is_some())
        .filter_map(|line| line.split_whitespace().nth(2)?.parse().ok())
        .collect();
    assert!(scores.len() == numbers.len() && scores.is_sorted_by(|a, b| a >= b), "{text}");
    assert!(text.contains("role utility"), "{text}");
    assert!(text.lines().filter(|line| line.starts_with("no skill has")).count() <= 1, "{text}");
}

#[test]
fn list_has_a_fixed_shape() {
    let home = Home::with_skills();
    let list = home.json(&["list"]);
    let skill = list["skills"].as_array().unwrap().iter().find(|s| s["skill_id"] == "table-audit").unwrap();
    insta::assert_snapshot!(keys(skill).join(" "), @"skill_id name description role invocation effect_mode status kind domain tags attach_targets inferred location root digest findings shadowed_by has_contract trusted needs_approval");
    assert_eq!(skill["attach_targets"], json!(["output", "artifact"]));
    assert_eq!((&skill["role"], &skill["invocation"]), (&json!("sidecar"), &json!("attach")));
    assert!(skill["findings"].is_u64() && skill["digest"].as_str().unwrap().len() == 64);
    let ids = |args: &[&str]| -> Vec<String> {
        let list = home.json(args);
        list["skills"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["skill_id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(&["list", "--role", "utility"]), ["csv-tools"]);
    assert_eq!(ids(&["list", "--status", "deprecated"]), ["old-pdf"]);
    assert_eq!(ids(&["list", "--domain", "documents"]), ["pdf-tables"]);
    assert_eq!(ids(&["list", "--query", "depl"]), ["deploy-check"]);
}

#[test]
fn page_of_a_client_list_names_the_next_page() {
    let home = Home::with_skills();
    let page = home.run(&["list", "--client", "codex", "--limit", "2"]).stdout;
    assert!(page.contains(", 2 of ") && page.contains("more: --cursor '"), "{page}");
    let complete = home.run(&["list", "--client", "codex"]).stdout;
    assert!(!complete.contains("more: --cursor"), "{complete}");
}

#[test]
fn describe_shows_one_skill_completely() {
    let home = Home::with_skills();
    let detail = home.json(&["describe", "pdf-tables"]);
    insta::assert_snapshot!(keys(&detail).join(" "), @"summary skill source body findings files levels");
    assert_eq!(detail["files"][0]["path"], "references/layout.md");
    assert!(detail["body"].as_str().unwrap().trim_start().starts_with("# PDF tables"));
    assert!(detail["levels"]["l2"].as_u64().unwrap() > 10);
    let text = home.run(&["describe", "pdf-tables"]).stdout;
    assert!(text.contains("procedure (inferred)") && text.contains("references/layout.md"), "{text}");
}

#[test]
fn source_written_to_a_pipe_equals_the_file() {
    let home = Home::empty();
    home.skill("odd", "description: Does \u{202e}odd things with files.", "body \u{1b}[31m\n");
    let answer = home.run(&["describe", "odd", "--source"]);
    assert_eq!(answer.stdout, std::fs::read_to_string(home.skills().join("odd/SKILL.md")).unwrap());
}

#[test]
fn control_sequences_of_a_bundle_are_escaped() {
    let home = Home::empty();
    home.skill("evil", "description: \"Reads files. \\e[2J\\u202e Use for reading files.\"", "body\n");
    for args in [&["list"][..], &["describe", "evil"], &["discover", "read files"], &["lint"]] {
        let answer = home.run(args);
        let bad = answer.stdout.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(bad, None, "{args:?}: {:?}", answer.stdout);
    }
}

#[test]
fn texts_and_paths_are_not_truncated_in_a_pipe() {
    let home = Home::empty();
    let long = format!("Reads {}files.", "many and various ".repeat(20));
    home.skill("reader", &format!("description: {long}"), "body\n");
    let folder = home.path().join("a-long-name-of-a-folder/".repeat(8));
    std::fs::create_dir_all(folder.join("reader")).unwrap();
    std::fs::copy(home.skills().join("reader/SKILL.md"), folder.join("reader/SKILL.md")).unwrap();
    let prints_in_full = |args: &[&str], text: &str| {
        let answer = home.run(args);
        assert!(answer.stdout.contains(text), "{args:?}: {}{}", answer.stdout, answer.stderr);
    };
    let root = folder.to_str().unwrap();
    let winner = home.skills().join("reader/SKILL.md");
    prints_in_full(&["list"], &long);
    prints_in_full(&["--root", root, "list"], winner.to_str().unwrap());
    prints_in_full(&["describe", "reader"], &long);
    prints_in_full(&["describe", "reader"], winner.to_str().unwrap());
    prints_in_full(&["--root", root, "doctor"], &home.skills().display().to_string());
}

#[test]
fn plain_text_without_color_fits_80_columns() {
    let home = Home::with_skills();
    for args in [
        &["list"][..],
        &["discover", "extract tables from a pdf", "--explain"],
        &["describe", "pdf-tables"],
        &["doctor"],
        &["--help"],
    ] {
        let answer = home.run(args);
        assert!(!answer.stdout.contains('\u{1b}'), "{args:?}: {:?}", answer.stdout);
        if args == ["--help"] {
            assert!(answer.stdout.lines().all(|line| line.chars().count() <= 80), "{}", answer.stdout);
        }
    }
}

#[test]
fn closed_pipe_is_not_a_failure() {
    let home = Home::empty();
    for i in 0..400 {
        home.skill(
            &format!("skill-{i}"),
            "description: Does one thing of many, for lists that are long.",
            "x\n",
        );
    }
    // The shell returns the status of `head`; errors of the first program are on standard error.
    let script = format!("{} --root skills list | head -n 1", env!("CARGO_BIN_EXE_skills"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(home.path()).env("HOME", home.path().join("home"));
    let answer = Answer::of(shell.output().unwrap());
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{}", answer.stdout);
    assert_eq!(answer.stdout.lines().count(), 1);
}

#[test]
fn settings_in_the_working_directory_are_not_those_of_the_user() {
    let home = Home::empty();
    let work = home.path().join("work");
    std::fs::create_dir_all(work.join("~/.config/skill-workbench")).unwrap();
    for file in ["~/.config/skill-workbench/config.yaml", "skills.yaml"] {
        std::fs::write(work.join(file), "limit: 3\n").unwrap();
    }
    for variable in [("HOME", "~"), ("SKILLS_CONFIG", "skills.yaml"), ("SKILLS_STORE", "sqlite:runs.db")] {
        let answer = home.run_bare_with(&["--demo", "list"], &[variable]);
        assert_eq!(answer.code, 2, "{variable:?} {}", answer.stderr);
        assert!(answer.stderr.contains(variable.0), "{}", answer.stderr);
    }
    let answer = home.run_bare(&["--config", "skills.yaml", "config", "check"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
}

#[test]
fn why_does_not_deny_a_word_that_the_request_repeats() {
    let home = Home::empty();
    let request = "diff this json against that json";
    let answer = home.run_bare(&["--demo", "why", "json-diff", request, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let terms = checks.iter().find(|check| check["check"] == "terms").unwrap();
    assert_eq!(terms["evidence"], "the skill contains every term of the request");
}
