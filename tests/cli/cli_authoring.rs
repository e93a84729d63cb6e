//! New skills and packages on the command line: made, checked, packed, and checked again.

use crate::binary;

use std::fs;

use binary::{Answer, Home};
use serde_json::json;

const NEW: &[&str] = &[
    "scaffold",
    "log-digest",
    "--description",
    "Sums up a server log by hour and level.",
    "--when",
    "somebody asks what happened on a machine",
];

#[test]
fn a_new_skill_is_clean_wins_its_queries_and_packs() {
    let home = Home::with_skills();
    let made = home
        .json(&[NEW, &["--script", "python", "--contract", "--tag", "log,server", "--references"]].concat());
    assert_eq!(made["skill_id"], "log-digest");
    assert_eq!(made["golden"][1], 2);
    let lint = home.run(&["lint", "--deny", "warnings", home.skills().join("log-digest").to_str().unwrap()]);
    assert_eq!(lint.code, 0, "{}", lint.stdout);
    let eval = home.json(&["eval"]);
    assert_eq!(eval["p_at_1"], 1.0, "{eval}");

    let packed = home.json(&["package-prepare", "log-digest"]);
    let file = packed["file"].as_str().unwrap();
    assert!(file.ends_with("work/log-digest-0.1.0.skill.tar.gz"), "{file}");
    let good = home.run_bare(&["package-validate", file]);
    assert_eq!(good.code, 0, "{}", good.stdout);
    assert!(good.stdout.contains("includes contract local.log-digest 0.1.0"), "{}", good.stdout);
    let again = home.run(&["package-prepare", "log-digest"]);
    assert_eq!(again.code, 4, "an archive is not replaced unasked");
    let forced = home.json(&["package-prepare", "log-digest", "--force"]);
    assert_eq!(forced["sha256"], packed["sha256"]);

    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(file, bytes).unwrap();
    assert_eq!(home.run_bare(&["package-validate", file]).code, 1);
    assert_eq!(home.run_bare(&["package-validate", "no.tar.gz"]).code, 3);
}

#[test]
fn scaffold_reports_a_folder_that_no_client_searches() {
    let home = Home::empty();
    let made = home.run_bare(&[
        "scaffold",
        "a",
        "--description",
        "Reads bank statements and lists recurring payments.",
        "--no-golden",
    ]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let step = "no client searches this folder: move it to .claude/skills/a or .agents/skills/a";
    assert!(made.stdout.contains(step), "{}", made.stdout);
    for folder in [".claude/skills", "skills"] {
        let args = [
            "scaffold",
            "b",
            "--description",
            "Reads bank statements and lists recurring payments.",
            "--no-golden",
            "--dir",
            folder,
        ];
        let made = home.run_bare(&args);
        assert_eq!(made.code, 0, "{}", made.stderr);
        assert!(!made.stdout.contains("no client searches"), "{}", made.stdout);
    }
    assert_eq!(home.run_bare(&["why", "b", "--client", "claude-code"]).code, 0);
    let other = home.run_bare(&["why", "b", "--client", "codex"]);
    let folders = "such as ~/.agents/skills or .agents/skills of the project";
    assert!(other.code == 1 && other.stdout.contains(folders), "{}", other.stdout);
}

#[test]
fn scaffold_overwrites_nothing_and_names_what_is_missing() {
    let home = Home::with_skills();
    assert_eq!(home.run(NEW).code, 0);
    let text = fs::read(home.skills().join("log-digest/SKILL.md")).unwrap();
    let again = home.run(NEW);
    assert_eq!(again.code, 4, "{}", again.stderr);
    assert_eq!(fs::read(home.skills().join("log-digest/SKILL.md")).unwrap(), text);
    for (args, word) in [
        (&["scaffold"][..], "an id is required"),
        (&["scaffold", "x"], "--description is required"),
        (&["scaffold", "x", "--description", "Does x.", "--role", "sidecar"], "--target"),
        (&["scaffold", "X Y", "--description", "Does x."], "not a valid id"),
        (&["scaffold", "zz", "--description", "Foo bar."], "match requests. State"),
    ] {
        let answer = home.run(args);
        assert_eq!(answer.code, 2, "{args:?}");
        assert!(answer.stderr.contains(word), "{}", answer.stderr);
    }
}

#[test]
fn reasons_against_a_package_are_named() {
    let home = Home::with_skills();
    home.file("csv-tools/assets/id_rsa", "x");
    let answer = home.run(&["package-prepare", "csv-tools"]);
    assert_eq!(answer.code, 1);
    assert!(answer.stdout.contains("looks-like-a-secret"), "{}", answer.stdout);
    let dry = home.run(&["package-prepare", "csv-tools", "--allow", "assets/id_rsa", "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.stdout);
    assert!(dry.stdout.contains("would pack"), "{}", dry.stdout);
    assert_eq!(fs::read_dir(home.path().join("work")).unwrap().count(), 0, "nothing was written");
}

#[test]
fn why_names_the_check_that_fails_and_a_draft_repairs_it() {
    let home = Home::with_skills();
    let folder = home.skills().join("statements");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("SKILL.md");
    let source = "---\nname: statements\ndescription: Reads bank statements. # short\n---\nBody\r\n";
    fs::write(&file, source).unwrap();
    fs::write(
        home.skills().join("golden.yaml"),
        "- query: list my recurring payments\n  expect: [statements]\n",
    )
    .unwrap();

    let wins = home.run(&["why", "statements", "read bank statements", "--client", "claude-code"]);
    assert_eq!(wins.code, 0, "{}", wins.stdout);
    let fails = home.run(&["why", "statements", "list my recurring payments", "--json"]);
    assert_eq!(fails.code, 1, "{}", fails.stdout);
    let report: serde_json::Value = serde_json::from_str(&fails.stdout).unwrap();
    let failed = |check: &str| {
        let all = report["checks"].as_array().unwrap();
        all.iter().any(|one| one["check"] == check && one["result"] == "fail")
    };
    assert!(failed("rank") && !failed("parse"), "{report}");

    let text = "Reads bank statements and lists recurring payments: \"rent\", fees.";
    let draft = ["draft", "statements", "--description", text, "--request", "list my recurring payments"];
    let measured = home.json(&draft);
    assert_eq!(measured["after"]["rank"], 1, "{measured}");
    assert_eq!(measured["golden"]["won"][0]["to"], "statements", "{measured}");
    assert_eq!(fs::read_to_string(&file).unwrap(), source, "nothing is written without confirmation");

    let written = home.run(&[&draft[..], &["--write"]].concat());
    assert_eq!(written.code, 0, "{}", written.stderr);
    let expected = "---\nname: statements\ndescription: \"Reads bank statements and lists recurring payments: \\\"rent\\\", fees.\" # short\n---\nBody\r\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    assert_eq!(home.run(&["why", "statements", "list my recurring payments"]).code, 0);
    assert_eq!(home.run(&["draft", "statements", "--write"]).code, 2);
}

#[test]
fn why_names_missing_terms_and_the_exclusion_of_a_losing_skill() {
    let home = Home::with_skills();
    home.skill("billing", "description: Creates bills for customers. Not for subscriptions.", "# Bills\n");
    home.skill("subs", "description: Cancels and renews a subscription.", "# Plans\n");
    let answer = home.run(&["why", "billing", "cancel my subscription", "--json"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    let report = answer.json();
    let check = |kind: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["check"] == kind).unwrap_or_else(|| panic!("{kind}: {report}"))
    };
    let evidence = |kind: &str| check(kind)["evidence"].as_str().unwrap();
    assert!(evidence("rank").contains("subs"), "{report}");
    assert!(evidence("terms").contains("“subscription” (only in the exclusion clause)"), "{report}");
    assert!(evidence("terms").contains("subs has “cancel” (description"), "{report}");
    assert_eq!(check("terms")["help"], "add “cancel” to the description if it applies to the skill");
    assert_eq!(check("exclusion")["result"], "fail");
    assert!(evidence("exclusion").contains("“Not for subscriptions.”"), "{report}");
}

#[test]
fn an_exclusion_clause_is_matched_by_its_own_subject() {
    let home = Home::with_skills();
    let text = "description: Summarizes log files. Not for joining log files of several systems.";
    home.skill("digest", text, "# Digest\n");
    let exclusion = |request: &str| {
        let answer = home.run(&["why", "digest", request, "--client", "codex", "--json"]);
        let report = answer.json();
        let mut checks = report["checks"].as_array().unwrap().iter();
        let check = checks.find(|check| check["check"] == "exclusion").unwrap_or_else(|| panic!("{report}"));
        (check["result"].as_str().unwrap().to_owned(), report["wins"].clone())
    };
    // Words of the skill's own subject are in the clause too.
    assert_eq!(exclusion("summarize this log file").0, "pass");
    // A skill that is first wins, whatever its clause contains.
    assert_eq!(exclusion("summarize log files of systems"), ("unknown".to_owned(), true.into()));
}

#[test]
fn first_skill_is_compared_with_the_second() {
    let home = Home::with_skills();
    home.skill("bills", "description: Creates bills for customers every month.", "# Bills\n");
    home.skill("plans", "description: Creates bills and plans for customers.", "# Plans\n");
    let rank_of_other = |skill: &str| {
        let report = home.run(&["why", skill, "create bills and plans for customers", "--json"]).json();
        report["ranking"]["rival_hit"]["rank"].clone()
    };
    assert_eq!((rank_of_other("plans"), rank_of_other("bills")), (2.into(), 1.into()));
}

#[test]
fn help_of_a_client_check_names_no_other_client() {
    let home = Home::with_skills();
    let folder = home.path().join("home/.agents/skills/colon");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("SKILL.md"),
        "---\nname: colon\ndescription: Reads tables: from PDF files.\n---\nBody\n",
    )
    .unwrap();
    let answer = home.run_bare(&["why", "colon", "--json"]);
    let report = answer.json();
    for client in report["clients"].as_array().unwrap() {
        let checks = client["checks"].as_array().unwrap().iter();
        for check in checks.filter(|check| check["check"] == "parse" && check["result"] == "fail") {
            assert_eq!(check["help"], "Put the value in quotes", "{client}");
        }
    }
}

#[test]
fn why_shows_how_a_client_repairs_a_file() {
    let home = Home::with_skills();
    let file = |name: &str, source: &str| {
        let folder = home.path().join("home/.claude/skills").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), source).unwrap();
    };
    file("noend", "---\nname: noend\ndescription: Resizes images.\n# Noend\nText\n");
    file("colon", "---\nname: colon\ndescription: Reads tables: from PDF files.\n---\nBody\n");
    file("nodesc", "---\nname: nodesc\n---\n");
    file("twice", "---\nname: twice\ndescription: Resizes images.\nlicense: A\nlicense: B\n---\nBody\n");
    let checks = |name: &str| {
        let report = home.run_bare(&["why", name, "--client", "claude-code", "--json"]).json();
        let client = report["clients"][0].clone();
        let check = |kind: &str| {
            let mut all = client["checks"].as_array().unwrap().iter();
            let found =
                all.find(|check| check["check"] == kind).unwrap_or_else(|| panic!("{kind}: {client}"));
            (found["result"].as_str().unwrap().to_owned(), found["evidence"].as_str().unwrap().to_owned())
        };
        assert!(client["repaired"].is_string(), "{client}");
        let (result, parse) = check("parse");
        assert_eq!(result, "pass", "what the client does is known: {client}");
        assert!(parse.starts_with("Claude Code reads the file although it has "), "{parse}");
        if name == "twice" {
            assert!(parse.contains("a duplicate key: "), "{parse}");
        }
        check("description")
    };
    checks("twice");
    let (result, evidence) = checks("noend");
    assert_eq!((&*result, &*evidence), ("fail", "Claude Code shows “---” instead of the description"));
    assert_eq!(checks("colon"), ("pass".into(), "all 29 characters of the description are shown".into()));
    let (result, evidence) = checks("nodesc");
    assert_eq!((&*result, &*evidence), ("fail", "Claude Code shows “Skill” instead of the description"));
    for name in ["noend", "colon", "nodesc"] {
        let text = home.run_bare(&["why", name, "--client", "claude-code"]).stdout;
        assert!(text.contains("reads the file although it has"), "{text}");
        assert!(!text.contains("all checks pass"), "{text}");
        let report = home.run_bare(&["--plain", "why", name, "--client", "claude-code"]).stdout;
        assert!(!report.contains("all checks passed"), "{report}");
    }
}

#[test]
fn a_rejected_file_of_unknown_state_is_listed_once() {
    let home = Home::with_skills();
    home.file("empty/SKILL.md", "");
    let shown = home.run(&["list", "--client", "cursor"]).stdout;
    let rows: Vec<&str> = shown.lines().filter(|line| line.contains("  empty ")).collect();
    assert!(rows.len() == 1 && rows[0].contains("unknown"), "{shown}");
}

#[test]
fn why_does_not_state_an_offer_that_varies_between_starts() {
    let home = Home::empty();
    for (place, description) in [(".claude", "Counts words."), (".agents", "Counts lines.")] {
        let folder = home.path().join("home").join(place).join("skills/same");
        fs::create_dir_all(&folder).unwrap();
        let source = format!("---\nname: same\ndescription: {description}\n---\nText\n");
        fs::write(folder.join("SKILL.md"), source).unwrap();
    }
    let report = home.run_bare(&["why", "same", "--client", "opencode", "--json"]).json();
    let checks = report["clients"][0]["checks"].as_array().unwrap();
    let result =
        |kind: &str| checks.iter().find(|check| check["check"] == kind).map(|check| &check["result"]);
    assert_eq!(result("offered"), Some(&"unknown".into()), "{report}");
    assert_eq!(result("description"), None, "{report}");
}

#[test]
fn why_advises_what_the_reason_of_the_client_requires() {
    let home = Home::with_skills();
    let folder = home.path().join("home/.claude/skills/my_tool");
    fs::create_dir_all(&folder).unwrap();
    let source = "---\nname: my_tool\ndescription: [Counts words of texts.\n---\nText\n";
    fs::write(folder.join("SKILL.md"), source).unwrap();
    let report = home.run_bare(&["why", "my_tool", "--client", "goose", "--json"]).json();
    let mut checks = report["clients"][0]["checks"].as_array().unwrap().iter();
    let parse = checks.find(|check| check["check"] == "parse").unwrap();
    assert_eq!((&parse["result"], &parse["help"]), (&"fail".into(), &"Put the value in quotes".into()));
}

#[test]
fn why_names_a_tab_as_the_defect() {
    let home = Home::with_skills();
    let folder = home.path().join("home/.claude/skills/tabbed");
    fs::create_dir_all(&folder).unwrap();
    let source = "---\nname: tabbed\nmetadata:\n\tkey: x\ndescription: Resizes images.\n---\nText\n";
    fs::write(folder.join("SKILL.md"), source).unwrap();
    let report = home.run_bare(&["why", "tabbed", "--json"]).json();
    let parse = &report["checks"][0];
    let evidence =
        "SKILL.md:4: the frontmatter is not valid YAML: the line is indented with a tab (bad-yaml)";
    assert_eq!((&parse["evidence"], &parse["result"]), (&evidence.into(), &"fail".into()), "{report}");
    assert_eq!(parse["help"], "Indent with spaces: YAML does not allow tabs there.");
}

#[test]
fn why_explains_a_file_that_is_refused() {
    let home = Home::with_skills();
    let folder = home.skills().join("empty");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), "---\nname: empty\n---\n").unwrap();
    let answer = home.run(&["why", "empty", "do something", "--json"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    let report: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(
        (&report["checks"][0]["check"], &report["checks"][0]["result"]),
        (&"parse".into(), &"fail".into())
    );
    assert_eq!(home.run(&["why", "nosuch"]).code, 3);
}

#[test]
fn a_proposal_is_approved_by_its_digests_and_rolled_back() {
    let home = Home::with_skills();
    home.skill("billing", "description: Writes bills for customers.", "# Billing\n\nWrite them.\n");
    let file = home.skills().join("billing/SKILL.md");
    let old = fs::read_to_string(&file).unwrap();
    let view = home.json(&["draft", "billing", "--description", "Writes bills and invoices.", "--propose"]);
    assert_eq!(view["description"], "Writes bills and invoices.");
    assert_eq!(fs::read_to_string(&file).unwrap(), old, "a proposal writes nothing");
    assert_eq!(view["proposal_id"], home.json(&["proposals", "list"])["proposals"][0]["proposal_id"]);
    let diff = home.json(&["proposals", "list"])["proposals"][0]["proposal_id"].as_str().unwrap().to_owned();
    let shown = home.json(&["proposals", "show", &diff]);
    fs::write(home.path().join("again.diff"), shown["diff"].as_str().unwrap()).unwrap();
    let again = home.path().join("again.diff");
    let proposed = home.json(&[
        "propose",
        "billing",
        "--diff",
        again.to_str().unwrap(),
        "--justification",
        "Invoices are missed.",
    ]);
    let id = proposed["summary"]["proposal_id"].as_str().unwrap();
    let unnamed = home.run(&["--json", "proposals", "approve", id, "--yes"]);
    assert_eq!((unnamed.code, unnamed.error()["error"]["code"].as_str()), (5, Some("confirmation_required")));
    assert_eq!(home.run(&["proposals", "approve", id]).code, 5, "there is no terminal to prompt on");
    assert_eq!(fs::read_to_string(&file).unwrap(), old);
    fs::write(&file, format!("{old}More.\n")).unwrap();
    let outdated = home.run(&["--json", "proposals", "approve", id, "--yes"]);
    assert_eq!((outdated.code, outdated.error()["error"]["code"].as_str()), (4, Some("skill_changed")));
    fs::write(&file, &old).unwrap();
    let digests = [proposed["proposal_digest"].as_str().unwrap(), proposed["base_digest"].as_str().unwrap()];
    let approve =
        ["proposals", "approve", id, "--proposal-digest", digests[0], "--base-digest", digests[1], "--yes"];
    assert_eq!(home.json(&approve)["proposal"]["state"], "approved");
    let shown = home.run(&["proposals", "show", id]).stdout;
    let is_first = |line: &&str| line.trim_start().starts_with("v1 ");
    assert!(shown.lines().find(is_first).is_some_and(|line| line.ends_with("original")), "{shown}");
    assert_eq!(fs::read_to_string(&file).unwrap(), old.replace("bills for customers", "bills and invoices"));
    assert_eq!(home.json(&["proposals", "rollback", id, "--yes"])["proposal"]["state"], "rolled_back");
    assert_eq!(fs::read_to_string(&file).unwrap(), old);
    let audit = home.json(&["audit", "show", "--kind", "proposal."]);
    let kinds: Vec<&str> =
        audit.as_array().unwrap().iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["proposal.created", "proposal.created", "proposal.approved", "proposal.rolled_back"]);
}

#[test]
fn a_proposal_of_a_repository_names_no_other_file() {
    let home = Home::with_skills();
    home.skill("billing", "description: Writes bills for customers.", "# Billing\n\nWrite them.\n");
    let (profile, work) = (home.path().join("home/.profile"), home.path().join("work"));
    let file = home.skills().join("billing/SKILL.md").canonicalize().unwrap();
    let old = fs::read_to_string(&file).unwrap();
    // Its content is known, so that the diff applies to it.
    fs::write(&profile, &old).unwrap();
    fs::write(work.join(".skill-workbench.yaml"), "client: claude-code\n").unwrap();
    home.json(&["draft", "billing", "--description", "Writes bills and invoices.", "--propose"]);
    let listed = home.json(&["proposals", "list"]);
    let id = listed["proposals"][0]["proposal_id"].as_str().unwrap();
    let proposal = work.join(format!("proposals/{id}.md"));
    let text = fs::read_to_string(&proposal).unwrap();
    let stated = |path: &std::path::Path| format!("real: {}", path.display());
    assert!(text.contains(&stated(&file)), "{text}");
    fs::write(&proposal, text.replace(&stated(&file), &stated(&profile))).unwrap();
    let shown = home.json(&["proposals", "show", id]);
    assert_eq!(
        (&shown["checks"][0]["check"], &shown["checks"][0]["result"]),
        (&"unchanged".into(), &"fail".into())
    );
    let digests = [shown["proposal_digest"].as_str().unwrap(), shown["base_digest"].as_str().unwrap()];
    let approve =
        ["proposals", "approve", id, "--proposal-digest", digests[0], "--base-digest", digests[1], "--yes"];
    let refused = home.run(&[&["--json"], &approve[..]].concat());
    assert_eq!(refused.error()["error"]["code"], "invalid_configuration", "{}", refused.stderr);
    let unchanged = || [&profile, &file].iter().all(|path| fs::read_to_string(path).unwrap() == old);
    assert!(unchanged());
    // One that claims to be approved writes nothing with a rollback either.
    let text = fs::read_to_string(&proposal).unwrap();
    fs::write(&proposal, text.replace("state: waiting", "state: approved")).unwrap();
    let refused = home.run(&["--json", "proposals", "rollback", id, "--yes"]);
    assert_eq!(refused.error()["error"]["code"], "invalid_configuration", "{}", refused.stderr);
    assert!(unchanged());
}

#[test]
fn blanks_around_a_description_are_not_written() {
    let home = Home::with_skills();
    home.skill("billing", "description: Writes bills for customers.", "# Billing\n");
    let written = home.run(&["draft", "billing", "--description", " Writes invoices. ", "--write"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    let text = fs::read_to_string(home.skills().join("billing/SKILL.md")).unwrap();
    assert!(text.contains("description: Writes invoices.\n"), "{text}");
}

#[test]
fn when_to_use_is_measured_and_written() {
    let home = Home::with_skills();
    home.skill("billing", "description: Writes bills for customers.\ntags: [x] # note", "# Billing\n");
    let file = home.skills().join("billing/SKILL.md");
    let old = fs::read_to_string(&file).unwrap();
    let request = ["--request", "a chargeback dispute"];
    let draft =
        home.json(&[&["draft", "billing", "--when-to-use", "On a chargeback."], &request[..]].concat());
    assert_eq!((&draft["before"]["fits"], &draft["after"]["fits"]), (&json!(false), &json!(true)), "{draft}");
    assert_eq!(draft["when_to_use"], "On a chargeback.");
    assert_eq!(fs::read_to_string(&file).unwrap(), old);
    let written = home.run(&["draft", "billing", "--when-to-use", "On a chargeback.", "--write"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    let line = "customers.\nwhen_to_use: On a chargeback.\ntags";
    assert_eq!(fs::read_to_string(&file).unwrap(), old.replace("customers.\ntags", line));
    // A new description keeps it, and it is ranked.
    assert_eq!(home.json(&["discover", "chargeback"])["results"][0]["skill_id"], "billing");
    home.json(&["draft", "billing", "--description", "Writes invoices.", "--write"]);
    assert!(fs::read_to_string(&file).unwrap().contains("Writes invoices.\nwhen_to_use: On a chargeback.\n"));
    home.json(&["draft", "billing", "--when-to-use", "", "--write"]);
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        old.replace("Writes bills for customers.", "Writes invoices.")
    );
    assert_eq!(home.run(&["draft", "billing", "--write"]).code, 2);
}

#[test]
fn draft_shows_how_clients_display_a_defective_file() {
    let home = Home::empty();
    let folders = [".claude", ".agents", ".cursor", ".config/opencode"];
    for folder in folders {
        let file = |name: &str| format!("../home/{folder}/skills/{name}/SKILL.md");
        home.file(&file("nodesc"), "---\nname: nodesc\n---\nReads tables of files.\n");
        let hidden = "---\nname: hidden\ndescription: Hides.\ndisable-model-invocation: true\n---\nx\n";
        home.file(&file("hidden"), hidden);
    }
    let matrix = home.run_bare(&["--json", "visibility"]).json();
    for row in matrix["skills"].as_array().unwrap() {
        let id = row["skill_id"].as_str().unwrap();
        let draft = home.run_bare(&["--json", "draft", id]);
        assert_eq!(draft.code, 0, "{}", draft.stderr);
        let draft = draft.json();
        let shown = draft["shown"].as_array().unwrap();
        for cell in row["cells"].as_array().unwrap() {
            let one = shown.iter().find(|one| one["client"] == cell["client"]);
            let state = cell["state"].as_str().unwrap();
            let Some(one) = one else {
                assert_eq!(state, "not_searched", "{id}: {cell}");
                continue;
            };
            let is_shown = ["full", "cut", "name_only"].contains(&state);
            assert_eq!(one["dropped"].is_null(), is_shown, "{id}: {cell}, {one}");
            assert_eq!(one["characters"] == one["of"], state == "full", "{id}: {cell}, {one}");
        }
    }
}

#[test]
fn undocumented_key_does_not_affect_the_folder_check() {
    let home = Home::empty();
    let hidden = "---\nname: hidden\ndescription: Hides.\ndisable-model-invocation: true\n---\nx\n";
    home.file("../home/.agents/skills/hidden/SKILL.md", hidden);
    let why = home.run_bare(&["--json", "why", "hidden"]).json();
    for client in why["clients"].as_array().unwrap() {
        let unknown =
            client["checks"].as_array().unwrap().iter().filter(|check| check["result"] == "unknown");
        for check in unknown {
            assert_ne!(check["check"], "folder", "{client}");
        }
    }
    let budget = home.run_bare(&["--json", "budget", "--client", "goose"]).json();
    let groups = budget["not_listed"].to_string();
    assert!(groups.contains("assumed user-only: disable-model-invocation"), "{budget}");
}

#[test]
fn a_shipped_skill_is_not_proposed() {
    let home = Home::empty();
    let list = home.run_bare(&["--json", "list"]).json();
    let id = list["skills"][0]["skill_id"].as_str().unwrap();
    let written = home.run_bare(&["draft", id, "--description", "Writes something else.", "--write"]);
    assert_eq!(written.code, 2, "{}", written.stderr);
    assert!(written.stderr.contains("copy the skill's folder to your own root"), "{}", written.stderr);
    assert_eq!(home.run_bare(&["--json", "proposals", "list"]).json()["proposals"], json!([]));
}

#[test]
fn a_draft_is_shown_as_each_client_would_read_its_file() {
    let home = Home::empty();
    for folder in [".claude", ".agents"] {
        let file = format!("../home/{folder}/skills/long/SKILL.md");
        home.file(&file, "---\nname: long\ndescription: Short.\n---\nx\n");
    }
    let description = format!("{}.", "word ".repeat(300).trim_end());
    let when = format!("{}.", "case ".repeat(20).trim_end());
    let id = home.run_bare(&["--json", "list"]).json()["skills"][0]["skill_id"].as_str().unwrap().to_owned();
    let draft = ["--json", "draft", &id, "--description", &description, "--when-to-use", &when];
    let draft = home.run_bare(&draft).json();
    let shown = draft["shown"].as_array().unwrap();
    let of = |client: &str| shown.iter().find(|one| one["client"] == client);
    if let Some(claude) = of("claude-code") {
        // The description, ` - `, and `when_to_use`.
        assert_eq!((&claude["characters"], &claude["of"]), (&json!(1536), &json!(1500 + 3 + 100)));
    }
    if let Some(codex) = of("codex") {
        assert_eq!((&codex["characters"], &codex["of"]), (&json!(1024), &json!(1500)));
    }
    if let Some(copilot) = of("copilot") {
        let why = copilot["dropped"].as_str().unwrap();
        assert!(why.contains("1,500 characters"), "{why}");
    }
    assert!(!shown.is_empty(), "{draft}");
}

#[test]
fn a_folder_without_a_skill_file_is_reported() {
    let home = Home::empty();
    let folder = home.path().join("home/.claude/skills/pdf-tables");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("README.md"), "# PDF tables\n").unwrap();
    let run = |args: &[&str]| Answer::of(home.command().args(args).arg("--json").output().unwrap());
    let listed = run(&["list"]).json();
    assert_eq!(
        (&listed["refused"][0]["id"], &listed["refused"][0]["reason"]),
        (&json!("pdf-tables"), &json!("no_skill_file"))
    );
    let why = run(&["why", "pdf-tables", "--client", "claude-code"]);
    assert_eq!(why.code, 1, "{}", why.stderr);
    let why = why.json();
    for check in [&why["checks"][0], &why["clients"][0]["checks"][0]] {
        assert_eq!(check["result"], "fail");
        let evidence = check["evidence"].as_str().unwrap();
        assert!(
            evidence.contains("no SKILL.md in ~/.claude/skills/pdf-tables; found README.md"),
            "{evidence}"
        );
    }
    let lint = run(&["lint"]).json();
    let findings = lint["findings"].as_array().unwrap();
    assert!(findings.iter().any(|one| one["code"] == "skill-file-missing"), "{findings:?}");
    fs::write(folder.join("SKILL.md"), "---\nname: pdf-tables\ndescription: Reads tables.\n---\nText\n")
        .unwrap();
    assert_eq!(run(&["list"]).json()["refused"], json!([]));
}

#[test]
fn a_skill_that_only_a_client_finds_has_its_reports() {
    let home = Home::empty();
    let work = home.path().join("work");
    fs::create_dir_all(work.join("skills/pdf-tables")).unwrap();
    let file = work.join("skills/pdf-tables/SKILL.md");
    fs::write(&file, "---\nname: pdf-tables\ndescription: Reads tables in PDF files.\n---\nText\n").unwrap();
    fs::create_dir_all(work.join("skills/broken")).unwrap();
    fs::write(work.join("skills/broken/SKILL.md"), "---\nname: broken\ndescription: \"Reads\n---\nB\n")
        .unwrap();
    fs::create_dir_all(work.join("skills/repaired")).unwrap();
    fs::write(work.join("skills/repaired/SKILL.md"), "No frontmatter.\n").unwrap();
    let run = |args: &[&str]| Answer::of(home.command().args(args).arg("--json").output().unwrap());
    let listed = run(&["list", "--client", "openclaw"]).json();
    let names: Vec<_> =
        listed["client"]["foreign"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["pdf-tables", "broken", "repaired"]);
    let why = run(&["why", "pdf-tables", "--client", "openclaw"]);
    assert_eq!(why.code, 0, "{}", why.stderr);
    let why = why.json();
    assert_eq!(why["location"].as_str().map(std::path::Path::new), Some(file.as_path()));
    let checks = why["clients"][0]["checks"].as_array().unwrap();
    assert!(checks.iter().all(|check| check["result"] == "pass"), "{checks:?}");
    // It is not ranked, so it wins no request.
    assert_eq!(run(&["why", "pdf-tables", "tables in a pdf", "--client", "openclaw"]).code, 1);
    let broken = run(&["why", "broken", "--client", "openclaw"]);
    assert_eq!(broken.code, 1, "{}", broken.stderr);
    // The cause is stated, not a root that would not help.
    let (broken, foreign) = (broken.json(), &listed["client"]["foreign"]);
    let (check, error) = (&broken["checks"][0], &foreign[1]["error"]);
    assert_eq!((&check["result"], &foreign[1]["rejected"]), (&json!("fail"), &json!(true)));
    assert!(check["evidence"].as_str().unwrap().contains(error["code"].as_str().unwrap()), "{check}");
    assert_eq!(check["help"], error["help"]);
    let repaired = run(&["why", "repaired", "--client", "openclaw"]).json();
    let checks = repaired["clients"][0]["checks"].as_array().unwrap();
    let dropped = checks.iter().find(|check| check["result"] == "fail").unwrap();
    let help = foreign[2]["error"]["help"].as_str().unwrap();
    assert!(help.starts_with(dropped["help"].as_str().unwrap()), "{dropped}: {help}");
    assert_eq!(run(&["why", "pdf-tables", "--client", "claude-code"]).code, 3);
    let cell = |args: &[&str]| {
        let report = run(args).json();
        let rows = report["skills"].as_array().unwrap();
        let row = rows.iter().find(|row| row["skill_id"] == "pdf-tables").unwrap();
        (row["cells"][0]["state"].clone(), report["clients"][0]["with_description"].clone())
    };
    let full = (json!("full"), json!(1));
    assert_eq!(cell(&["visibility", "--client", "openclaw"]), full);
    assert_eq!(cell(&["visibility", "pdf-tables", "--client", "openclaw"]), full);
}

#[test]
fn clients_are_compared_with_a_reason_for_each_missing_skill() {
    let home = Home::empty();
    let write = |path: &str, text: &str| home.file(&format!("../home/.claude/skills/{path}"), text);
    write("plain/SKILL.md", "---\nname: plain\ndescription: Writes reports for teams.\n---\nx\n");
    write(
        "people/SKILL.md",
        "---\nname: people\ndescription: Deploys.\ndisable-model-invocation: true\n---\nx\n",
    );
    write("waits/SKILL.md", "---\nname: waits\ndescription: Waits.\npaths: ['*.py']\n---\nx\n");
    let report =
        home.run_bare(&["--json", "visibility", "--client", "claude-code", "--client", "codex"]).json();
    let cell = |id: &str, at: usize| {
        let rows = report["skills"].as_array().unwrap();
        rows.iter().find(|row| row["skill_id"] == id).unwrap()["cells"][at].clone()
    };
    assert_eq!((&cell("plain", 0)["state"], &cell("plain", 0)["words"]), (&"full".into(), &4.into()));
    assert_eq!(cell("people", 0)["state"], "manual");
    assert_eq!(cell("waits", 0)["state"], "off", "users cannot invoke it yet either");
    assert!(cell("people", 0)["reason"].as_str().unwrap().contains("disable-model-invocation"));
    assert_eq!(cell("plain", 1)["state"], "not_searched");
    assert_eq!(report["clients"][0]["with_description"], 1);
    assert_eq!(home.run_bare(&["visibility", "people", "--client", "claude-code"]).code, 1);
    assert_eq!(home.run_bare(&["visibility", "plain", "--client", "claude-code"]).code, 0);
}

/// Returns the location of the only skill that Claude Code lists under a name.
fn listed_location(home: &Home, name: &str) -> serde_json::Value {
    let listed = home.run_bare(&["--json", "list", "--client", "claude-code"]).json();
    let entries = listed["client"]["list"]["entries"].as_array().unwrap();
    let mut own = entries.iter().map(|entry| &entry[0]).filter(|entry| entry["name"] == name);
    let location = own.next().unwrap()["location"].clone();
    assert_eq!(own.next(), None);
    location
}

#[test]
fn the_path_of_a_client_is_that_of_its_list() {
    let home = Home::empty();
    home.file(
        "../home/.agents/skills/tool/SKILL.md",
        "---\nname: tool\ndescription: Makes tables of text.\n---\nB\n",
    );
    let folder = home.path().join("home/.claude/skills");
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(home.path().join("home/.agents/skills/tool"), folder.join("tool")).unwrap();
    let report = home
        .run_bare(&["--json", "visibility", "tool", "--client", "claude-code", "--client", "codex"])
        .json();
    let row = &report["skills"][0];
    let path = |cell: usize| Some(&row["cells"][cell]["location"]).filter(|path| !path.is_null());
    assert_eq!(path(0).unwrap_or(&row["location"]), &listed_location(&home, "tool"), "{row}");
    assert_ne!(path(0).unwrap_or(&row["location"]), path(1).unwrap_or(&row["location"]), "{row}");
}

#[test]
fn a_link_that_clients_follow_is_visible_to_them() {
    let home = Home::empty();
    home.file("../far/linky/SKILL.md", "---\nname: linky\ndescription: Links far away places.\n---\nB\n");
    let folder = home.path().join("home/.claude/skills");
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(home.path().join("far/linky"), folder.join("linky")).unwrap();
    let report = home.run_bare(&["--json", "visibility", "linky", "--client", "claude-code"]).json();
    let row = &report["skills"][0];
    let cell = &row["cells"][0];
    assert_eq!((&cell["state"], &cell["words"], &row["words"]), (&json!("full"), &json!(4), &json!(4)));
    assert_eq!(row["location"], listed_location(&home, "linky"));
    let why = home.run_bare(&["--json", "why", "linky", "--client", "claude-code"]);
    assert_eq!(why.code, 0, "{}", why.stdout);
    let why = why.json();
    assert_eq!(why["checks"][0]["result"], "unknown", "only its frontmatter is read");
    let checks = why["clients"][0]["checks"].as_array().unwrap();
    assert!(checks.iter().all(|check| check["result"] == "pass"), "{checks:?}");
    // Another link with its name, in the folder of another client.
    let other = home.path().join("home/.agents/skills");
    fs::create_dir_all(&other).unwrap();
    std::os::unix::fs::symlink(home.path().join("far/linky"), other.join("linky")).unwrap();
    assert_eq!(home.run_bare(&["why", "linky", "--client", "claude-code"]).code, 0);
    let report = home.run_bare(&["--json", "visibility", "linky", "--client", "claude-code"]).json();
    let states: Vec<_> =
        report["skills"].as_array().unwrap().iter().map(|row| &row["cells"][0]["state"]).collect();
    assert_eq!(states, ["not_searched", "full"]);
    // Not ranked, so it wins no request.
    let why = home.run_bare(&["why", "linky", "far away", "--client", "claude-code"]);
    assert_eq!(why.code, 1);
    let answer = "The skill is not ranked here, so it may or may not be selected; Claude Code offers it.";
    assert!(why.stdout.contains(answer), "{}", why.stdout);
}

#[test]
fn a_broken_file_with_the_name_of_a_skill_does_not_hide_it() {
    let home = Home::empty();
    let write = |path: &str, text: &str| home.file(&format!("../home/.agents/skills/{path}"), text);
    write("tool/SKILL.md", "---\nname: tool\ndescription: Makes tables of text.\n---\nB\n");
    write("node_modules/tool/SKILL.md", "---\nname: tool\ndescription: Bad.\nname: x\n---\nB\n");
    let report = home.run_bare(&["--json", "visibility", "tool", "--client", "codex"]).json();
    assert_eq!(report["skills"][0]["cells"][0]["state"], "full", "{report}");
    assert_eq!(home.run_bare(&["why", "tool", "--client", "codex"]).code, 0);
}

#[test]
fn listed_file_that_is_rejected_here_is_labeled_so() {
    let home = Home::empty();
    home.file(
        "../home/.claude/skills/tab/SKILL.md",
        "---\nname: tab\ndescription: Uses a tab.\nmetadata:\n\ta: b\n---\nbody\n",
    );
    let list = home.run_bare(&["list", "--client", "claude-code"]).stdout;
    assert!(list.contains("full        rejected here: "), "{list}");
}

#[test]
fn rejected_file_is_not_confused_with_its_namesake() {
    let home = Home::empty();
    home.file(
        "../home/.claude/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: \"Reads PDF files\n---\nB\n",
    );
    home.file(
        "../work/.claude/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Makes PDF files.\n---\nB\n",
    );
    let report = home.run_bare(&["--json", "visibility"]).json();
    let rows: Vec<&serde_json::Value> = report["skills"].as_array().unwrap().iter().collect();
    assert_eq!(rows.len(), 2, "{report}");
    assert_ne!(rows[0]["skill_id"], rows[1]["skill_id"]);
    let client = |name: &str| {
        let ids = report["clients"].as_array().unwrap();
        ids.iter().position(|client| client["client"] == name).unwrap()
    };
    let rejected = rows.iter().find(|row| row["location"].as_str().unwrap().contains("/home/")).unwrap();
    assert_ne!(rejected["cells"][client("copilot")]["state"], "full", "{rejected}");
    for path in [".claude/skills/pdf/SKILL.md", "../home/.claude/skills/pdf/SKILL.md"] {
        let why = home.run_bare(&["--json", "why", path]).json();
        let location = why["location"].as_str().unwrap();
        assert_eq!(location.contains("/home/"), path.contains("/home/"), "{path}: {location}");
        assert_eq!(why["checks"][0]["result"] == "fail", path.contains("/home/"), "{path}: {why}");
    }
    let why = home.run_bare(&["--json", "why", "pdf", "--client", "claude-code"]).json();
    let listed = home.run_bare(&["--json", "list", "--client", "claude-code"]).stdout;
    let checks = why["clients"][0]["checks"].as_array().unwrap();
    let is_shadowed = checks.iter().any(|check| check["check"] == "name" && check["result"] == "fail");
    assert!(is_shadowed, "{why} {listed}");
}

#[test]
fn a_rejected_expectation_is_explained_by_its_error() {
    let home = Home::empty();
    home.file("bills/SKILL.md", "---\nname: bills\ndescription: \"Writes bills\n---\nB\n");
    let explained = home.run(&["golden", "explain", "write a bill", "--expect", "bills"]).stdout;
    assert!(explained.contains("SKILL.md:3") && explained.contains("bad-yaml"), "{explained}");
    assert!(!explained.contains("no added words"), "{explained}");
}

#[test]
fn no_proposal_is_created_for_a_shipped_skill() {
    let home = Home::empty();
    let arguments = [
        "--demo",
        "draft",
        "meeting-minutes",
        "--description",
        "Writes minutes.",
        "--propose",
        "--justification",
        "x",
    ];
    let refused = home.run_bare(&arguments);
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    assert!(refused.stderr.contains("shipped skills are read-only"), "{}", refused.stderr);
}

#[test]
fn unpacked_codex_skills_are_in_its_list() {
    let home = Home::empty();
    let text = "---\nname: imagegen\ndescription: Draws images.\n---\nB\n";
    home.file("../home/.codex/skills/.system/imagegen/SKILL.md", text);
    let report = home.run_bare(&["--json", "visibility", "imagegen", "--client", "codex"]).json();
    assert_eq!(report["skills"][0]["cells"][0]["state"], "full", "{report}");
    let budget = home.run_bare(&["budget", "--client", "codex", "--all"]).stdout;
    assert!(budget.contains("built into the client") && !budget.contains("hidden folder"), "{budget}");
}

#[test]
fn why_does_not_pass_a_file_that_a_client_reads_with_a_workaround() {
    let home = Home::empty();
    let folder = home.path().join("home/.claude/skills/noend");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\nname: noend\ndescription: Resizes images for the web.\n# Noend\nText\n";
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    let report = home.run_bare(&["why", "noend", "--client", "claude-code"]).stdout;
    assert!(report.contains("reads the file although it has"), "{report}");
    assert!(!report.contains("description shown in full"), "{report}");
}
