//! `skills golden`, `skills eval --against` and `skills bisect`: edited files, converted formats, earlier commits.

use crate::binary;

use std::path::Path;
use std::process::Command;

use binary::Home;
use serde_json::Value;

fn own(home: &Home) -> std::path::PathBuf {
    home.path().join("home/.config/skill-workbench/golden.yaml")
}

#[test]
fn queries_are_added_listed_and_removed() {
    let home = Home::with_skills();
    let added = home.json(&["golden", "add", "read the tables of a pdf", "--expect", "pdf-tables"]);
    assert_eq!(added["queries"], 1);
    assert_eq!(added["file"], own(&home).to_str().unwrap());
    home.json(&["golden", "add", "zzxx qqvv", "--none"]);
    home.json(&["golden", "add", "join two csv files", "--expect", "deploy-check"]);
    let listed = home.run(&["golden", "list", "--json"]);
    assert_eq!(listed.code, 1, "a query fails: {}", listed.stderr);
    let report = listed.json();
    let states: Vec<&str> = report["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["lost", "won", "rejected"]);
    assert_eq!(report["results"][0]["first"], "csv-tools");
    assert_eq!(report["sources"][0]["is_editable"], true);
    let failing = home.run(&["golden", "list", "--failing", "--json"]).json();
    assert_eq!(failing["results"].as_array().unwrap().len(), 1);

    let again = home.run(&["golden", "add", "zzxx qqvv", "--none"]);
    assert_eq!(again.code, 2, "a query is added once");
    assert_eq!(home.run(&["golden", "add", "q"]).code, 2, "an expectation is needed");
    assert_eq!(home.run(&["golden", "remove", "no such query"]).code, 3);
    home.json(&["golden", "remove", "join two csv files"]);
    assert_eq!(home.run(&["golden", "list"]).code, 0);
    // The draft and the evaluation count the same file.
    assert_eq!(home.json(&["eval"])["queries"], 1);
    assert_eq!(home.json(&["draft", "pdf-tables"])["golden"]["after"]["queries"], 1);
}

#[test]
fn a_damaged_golden_set_is_wrong_configuration_for_every_command() {
    let home = Home::with_skills();
    home.file("golden.yaml", "- query: [\n");
    for args in [
        &["eval"][..],
        &["draft", "pdf-tables"],
        &["golden", "list"],
        &["golden", "explain", "read a pdf", "--expect", "pdf-tables"],
        &["governance"],
    ] {
        let answer = home.run(args);
        assert_eq!(answer.code, 2, "{args:?}: {}", answer.stderr);
        assert!(answer.stderr.contains("golden.yaml"), "{args:?}: {}", answer.stderr);
    }
}

#[test]
fn an_imported_evaluation_file_counts_once() {
    let home = Home::with_skills();
    let evals = r#"[{"query": "read a table", "should_trigger": true}]"#;
    home.file("pdf-tables/evals/evals.json", evals);
    assert_eq!(home.json(&["eval"])["queries"], 1);
    let file = home.skills().join("pdf-tables/evals/evals.json");
    assert_eq!(home.json(&["golden", "import", file.to_str().unwrap()])["added"], 1);
    assert_eq!(home.json(&["eval"])["queries"], 1);
}

#[test]
fn a_query_of_an_unknown_skill_is_added_with_a_warning() {
    let home = Home::with_skills();
    let known = home.run(&["golden", "add", "read a pdf", "--expect", "pdf-tables"]);
    assert_eq!((known.code, known.stderr.contains("not found")), (0, false), "{}", known.stderr);
    let unknown = home.run(&["golden", "add", "read a book", "--expect", "books"]);
    assert_eq!((unknown.code, unknown.stderr.contains("skill `books` not found")), (0, true));
}

#[test]
fn expectation_without_a_valid_id_is_rejected() {
    let home = Home::with_skills();
    for (expect, hint) in [
        ("none,pdf-tables", "--none"),
        ("none", "--none"),
        ("not pdf-tables", "--not"),
        ("pdf-tables csv-tools", "commas"),
        ("", "expected the id of a skill"),
    ] {
        let rejected = home.run(&["golden", "add", "read a pdf", "--expect", expect]);
        assert_eq!(rejected.code, 2, "{expect}: {}", rejected.stdout);
        assert!(rejected.stderr.contains(hint), "{expect}: {}", rejected.stderr);
    }
    assert_eq!(home.run(&["golden", "add", "read a pdf", "--not", ""]).code, 2);
    assert!(!own(&home).exists(), "nothing is written");
}

#[test]
fn an_empty_golden_set_has_no_figures() {
    let home = Home::with_skills();
    std::fs::create_dir_all(own(&home).parent().unwrap()).unwrap();
    std::fs::write(own(&home), "[]\n").unwrap();
    let answer = home.run(&["eval"]);
    assert!(answer.stdout.contains("skills golden add"), "{}", answer.stdout);
    assert!(!answer.stdout.contains("P@1"), "{}", answer.stdout);
}

#[cfg(unix)]
#[test]
fn concurrent_additions_lose_nothing() {
    const PROCESSES: usize = 12;
    let home = Home::empty();
    let start = |at: usize| {
        let query = format!("query {at}");
        let args = ["golden", "add", &query, "--none", "--file", "shared.yaml"];
        home.command().args(args).stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut started: Vec<_> = (0..PROCESSES).map(start).collect();
    assert!(started.iter_mut().all(|process| process.wait().unwrap().success()));
    let text = std::fs::read_to_string(home.path().join("work/shared.yaml")).unwrap();
    assert_eq!(text.matches("- query:").count(), PROCESSES, "{text}");
}

#[test]
fn a_project_has_its_own_file() {
    let home = Home::with_skills();
    std::fs::write(home.path().join("work/.skill-workbench.yaml"), "limit: 5\n").unwrap();
    let added = home.json(&["golden", "add", "read a pdf", "--expect", "pdf-tables"]);
    assert_eq!(added["file"], home.path().join("work/golden.yaml").to_str().unwrap());
}

#[test]
fn files_of_other_tools_are_imported_and_exported() {
    let home = Home::with_skills();
    let work = home.path().join("work");
    let write = |name: &str, text: &str| {
        let path = work.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "pdf-tables/evals/evals.json",
        r#"[{"query": "rows of a pdf", "should_trigger": true}, {"query": "a poem", "should_trigger": false}]"#,
    );
    write("tasks.json", r#"{"evals": [{"id": 1, "prompt": "check the deployment"}]}"#);
    write("more.csv", "query,expect\n\"join, then clean\",csv-tools\nrows of a pdf,csv-tools\n");
    let first = home.json(&["golden", "import", "pdf-tables/evals/evals.json"]);
    assert_eq!((&first["added"], &first["known"]), (&2.into(), &0.into()));
    assert_eq!(home.run(&["golden", "import", "tasks.json"]).code, 2, "the skill is not known");
    let demo = home.run(&["--demo", "golden", "import", "more.csv"]);
    assert!(demo.code == 2 && demo.stderr.contains("--to FILE"), "{}", demo.stderr);
    let demo = home.run(&["--demo", "golden", "add", "q", "--none"]);
    assert!(demo.code == 2 && demo.stderr.contains("--file FILE"), "{}", demo.stderr);
    home.json(&["golden", "import", "tasks.json", "--skill", "deploy-check"]);
    let conflict = home.run(&["golden", "import", "more.csv", "--json"]);
    assert_eq!(conflict.code, 1);
    assert_eq!(conflict.json()["conflicts"][0]["query"], "rows of a pdf");
    let conflict = home.run(&["golden", "import", "more.csv"]).stdout;
    for part in ["\"rows of a pdf\" expects csv-tools", "query 1 of ", "expects pdf-tables"] {
        assert!(conflict.contains(part), "{conflict}");
    }
    for format in ["yaml", "jsonl", "csv"] {
        let text = home.run(&["golden", "export", "--format", format]).stdout;
        write(&format!("all.{format}"), &text);
        let to = format!("copy-{format}.yaml");
        let copied = home.json(&["golden", "import", &format!("all.{format}"), "--to", &to]);
        assert_eq!(copied["added"], 4, "{format}: {text}");
    }
    let evals = home.run(&["golden", "export", "--format", "json", "--skill", "pdf-tables"]).stdout;
    let evals: Value = serde_json::from_str(&evals).unwrap();
    assert_eq!(evals.as_array().unwrap().len(), 2);
}

#[test]
fn a_lost_query_is_explained_with_measured_advice() {
    let home = Home::with_skills();
    home.json(&["golden", "add", "frobnicate the deployment", "--expect", "csv-tools"]);
    let explained = home.run(&["golden", "explain", "frobnicate the deployment", "--json"]);
    assert_eq!(explained.code, 1, "{}", explained.stderr);
    let explained = explained.json();
    assert_eq!(explained["first"]["skill_id"], "deploy-check");
    let advice = &explained["advice"];
    assert_eq!((&advice["rank"], &advice["won"]), (&1.into(), &1.into()), "{explained}");
    // The advice is measured by a draft.
    let description = home.json(&["draft", "csv-tools"])["description"].as_str().unwrap().to_owned();
    let better = format!("{description} {}", advice["word"].as_str().unwrap());
    let draft = home.json(&[
        "draft",
        "csv-tools",
        "--description",
        &better,
        "--request",
        "frobnicate the deployment",
    ]);
    assert_eq!(draft["after"]["rank"], 1, "{draft}");
    assert_eq!(draft["golden"]["won"].as_array().unwrap().len(), 1);
    let eval = home.json(&["eval"]);
    assert_eq!(eval["advice"][0]["word"], advice["word"]);
}

fn git(folder: &Path, args: &[&str]) {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=Ana", "-c", "user.email=ana@example.org", "-c", "commit.gpgsign=false"])
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Three commits: with the second one another skill wins.
fn repository(home: &Home) {
    let skills = home.skills();
    git(&skills, &["init", "--quiet"]);
    git(&skills, &["add", "."]);
    git(&skills, &["commit", "--quiet", "-m", "Add the skills"]);
    std::fs::remove_dir_all(skills.join("pdf-tables")).unwrap();
    home.skill("csv-tools", "description: Joins CSV files. Extracts tables from PDF files.", "# CSV\n");
    git(&skills, &["commit", "--quiet", "-am", "Let csv-tools read tables"]);
    home.skill("deploy-check", "description: Checks a deployment before the release.", "# Check\n");
    git(&skills, &["commit", "--quiet", "-am", "Shorten deploy-check"]);
}

const REQUEST: &str = "extract tables from pdf files";

#[test]
fn the_commit_that_changed_the_winner_is_found() {
    let home = Home::with_skills();
    repository(&home);
    for args in [&["bisect", REQUEST, "--json"][..], &["bisect", REQUEST, "--skill", "csv-tools", "--json"]] {
        let found = home.run(args);
        assert_eq!(found.code, 0, "{}", found.stderr);
        let report = found.json();
        assert_eq!(report["current"], "csv-tools");
        assert_ne!(report["fit"], "none", "{report}");
        assert_eq!(report["change"]["subject"], "Let csv-tools read tables", "{report}");
        assert_eq!(report["change"]["before"]["skill_id"], "pdf-tables");
        assert_eq!(report["change"]["after"]["skill_id"], "csv-tools");
        assert_eq!(report["change"]["before_now"], Value::Null, "it was removed");
        assert_eq!(report["commits"], 2, "the commits after the change and the change");
    }
    let none =
        home.run(&["bisect", "check the deployment", "--from", "HEAD~1", "--max-commits", "1", "--json"]);
    assert_eq!(none.code, 1);
    assert_eq!((&none.json()["change"], &none.json()["is_limited"]), (&Value::Null, &true.into()));
    let foreign = home.run(&["bisect", "negotiate a lease in Lisbon", "--json"]);
    assert_eq!(foreign.json()["fit"], "none", "{}", foreign.stdout);
    assert_eq!(home.run(&["bisect", "q", "--from", "no-such-commit"]).code, 3);
    let unknown = home.run(&["bisect", REQUEST, "--skill", "nosuch"]);
    assert_eq!(unknown.code, 3, "{}", unknown.stdout);
    assert!(unknown.stderr.contains("skill `nosuch` not found"), "{}", unknown.stderr);
}

/// A repository whose settings name programs, in two forms: its own `.git`, and a bare repository among its files.
#[cfg(unix)]
#[test]
fn no_program_that_a_repository_names_is_executed() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::with_skills();
    let skills = home.skills();
    repository(&home);
    let program = skills.join("evil.sh");
    let pwned = skills.join("pwned");
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", pwned.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let signed = home.path().join("signed");
    let commit =
        Command::new("git").arg("-C").arg(&skills).args(["cat-file", "commit", "HEAD"]).output().unwrap();
    let commit = String::from_utf8(commit.stdout).unwrap().replace(
        "\n\n",
        "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n\n",
    );
    std::fs::write(&signed, commit).unwrap();
    let written = Command::new("git")
        .arg("-C")
        .arg(&skills)
        .args(["hash-object", "-t", "commit", "-w"])
        .arg(&signed)
        .output()
        .unwrap();
    let id = String::from_utf8(written.stdout).unwrap();
    git(&skills, &["update-ref", "HEAD", id.trim()]);
    for (name, value) in [
        ("log.showSignature", "true"),
        ("i18n.logOutputEncoding", "UTF-16"),
        ("log.showRoot", "false"),
        ("gpg.program", "./evil.sh"),
        ("core.fsmonitor", "./evil.sh"),
        ("core.sshCommand", "./evil.sh"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", "ssh://host/repository"),
        ("remote.origin.promisor", "true"),
    ] {
        git(&skills, &["config", name, value]);
    }
    let log = Command::new("git").arg("-C").arg(&skills).args(["log", "-1"]).output().unwrap();
    assert!(pwned.exists(), "git itself executes it: {log:?}");
    std::fs::remove_file(&pwned).unwrap();
    assert_eq!(home.run(&["bisect", REQUEST, "--json"]).json()["current"], "csv-tools");
    // A blob of the commit before is missing, which git would fetch.
    let blob = Command::new("git")
        .arg("-C")
        .arg(&skills)
        .args(["rev-parse", "HEAD~2:pdf-tables/SKILL.md"])
        .output()
        .unwrap();
    let blob = String::from_utf8(blob.stdout).unwrap();
    let (folder, file) = blob.trim().split_at(2);
    std::fs::remove_file(skills.join(".git/objects").join(folder).join(file)).unwrap();
    home.run(&["eval", "--against", "HEAD~2"]);
    home.run(&["bisect", REQUEST]);
    assert!(!pwned.exists());

    for part in std::fs::read_dir(skills.join(".git")).unwrap().flatten() {
        std::fs::rename(part.path(), skills.join(part.file_name())).unwrap();
    }
    std::fs::remove_dir(skills.join(".git")).unwrap();
    git(&skills, &["config", "--file", "config", "core.bare", "false"]);
    git(&skills, &["config", "--file", "config", "core.worktree", "."]);
    let refused = home.run(&["bisect", REQUEST]);
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    assert!(!pwned.exists());
}

#[test]
fn an_evaluation_against_a_commit_lists_other_winners() {
    let home = Home::with_skills();
    let query = REQUEST;
    home.json(&["golden", "add", query, "--expect", "pdf-tables"]);
    repository(&home);
    let report = home.run(&["eval", "--against", "HEAD~2", "--json"]);
    assert_eq!(report.code, 1, "P@1 fell: {}", report.stderr);
    let report = report.json();
    assert_eq!(report["changed"][0]["query"], query);
    assert_eq!(report["changed"][0]["to"], "csv-tools");
    let same = home.json(&["eval", "--against", "HEAD"]);
    assert_eq!(same["changed"].as_array().unwrap().len(), 0);
    let markdown = home.run(&["eval", "--against", "HEAD~2", "--report", "markdown"]).stdout;
    assert!(markdown.contains(query), "{markdown}");
    assert_eq!(home.run(&["eval", "--against", "no-such"]).code, 3);
}

#[test]
fn without_a_query_that_has_a_skill_no_ranking_is_shown() {
    let home = Home::with_skills();
    home.json(&["golden", "add", "zzxx qqvv", "--none"]);
    let listed = home.run(&["golden", "list"]).stdout;
    assert!(!listed.contains("P@1") && listed.contains("false trigger"), "{listed}");
    home.json(&["golden", "add", "read the tables of a pdf", "--expect", "pdf-tables"]);
    let listed = home.run(&["golden", "list"]).stdout;
    assert!(listed.contains("P@1 1.000, MRR@10 1.000"), "{listed}");
}
