//! One contract in four adapters: the same call by the library, the command line, HTTP and MCP returns the same JSON,
//! errors included.

use std::collections::BTreeSet;

use crate::cli_runs_fixture;
mod doors;

use cli_runs_fixture::RunsFixture;
use doors::{CallResult, Doors};
use serde_json::{Value, json};
use skills_api::operations::{normalize_volatile_fields, operation, operations};

/// One call, in the form of each interface.
struct Case {
    operation: &'static str,
    arguments: Value,
    /// None if the command line has no command for this call.
    cli: Option<Vec<String>>,
    /// The code of the error that it is, if it is one.
    error: Option<&'static str>,
}

fn case(operation: &'static str, arguments: Value, cli: &str) -> Case {
    // The line is split at spaces; `_` represents a space inside a word.
    let words = |line: &str| line.split(' ').map(|word| word.replace('_', " ")).collect();
    Case { operation, arguments, cli: (!cli.is_empty()).then(|| words(cli)), error: None }
}

fn wrong(operation: &'static str, arguments: Value, cli: &str, code: &'static str) -> Case {
    Case { error: Some(code), ..case(operation, arguments, cli) }
}

/// Tools whose results describe the process that answers, so that they differ.
const OF_ONE_PROCESS: [&str; 3] = ["runtime.health", "skill.diagnostics", "skill.metrics.reset"];

/// Read-only calls; their order is irrelevant.
fn lookup_cases() -> Vec<Case> {
    let discover = "skill.discover";
    vec![
        case(discover, json!({"intent": "extract tables from a pdf"}), "discover extract_tables_from_a_pdf"),
        case(discover, json!({"intent": "extract tables", "limit": 1}), "discover extract_tables --limit 1"),
        case(
            discover,
            json!({"intent": "pdf tables", "domain": ["documents"]}),
            "discover pdf_tables --domain documents",
        ),
        case(
            discover,
            json!({"intent": "clean a csv", "role_filter": "utility"}),
            "discover clean_a_csv --role utility",
        ),
        case(
            discover,
            json!({"intent": "watch a table", "role_filter": "sidecar"}),
            "discover watch_a_table --role sidecar",
        ),
        case(
            discover,
            json!({"intent": "show the pdf tables", "policy": "strict"}),
            "discover show_the_pdf_tables --policy strict",
        ),
        case(discover, json!({"intent": "knit a scarf of wool"}), "discover knit_a_scarf_of_wool"),
        wrong(discover, json!({"intent": " "}), "discover _", "invalid_request"),
        wrong(discover, json!({"intent": "a", "limit": 1001}), "", "invalid_request"),
        wrong(discover, json!({"intnt": "a"}), "", "invalid_request"),
        wrong(discover, json!({"intent": "a", "role_filter": "boss"}), "", "invalid_request"),
        case("skill.list", json!({}), "list"),
        case("skill.list", json!({"role": "utility"}), "list --role utility"),
        case("skill.list", json!({"domain": ["documents"]}), "list --domain documents"),
        case("skill.list", json!({"status": "deprecated"}), "list --status deprecated"),
        case("skill.list", json!({"query": "pdf"}), "list --query pdf"),
        case("skill.list", json!({"limit": 2}), "list --limit 2"),
        wrong("skill.list", json!({"limit": 0}), "", "invalid_request"),
        wrong(
            "skill.list",
            json!({"limit": 2, "cursor": "7:x"}),
            "list --limit 2 --cursor 7:x",
            "invalid_request",
        ),
        case("skill.describe", json!({"skill_id": "pdf-tables"}), "describe pdf-tables"),
        case("skill.describe", json!({"skill_id": "words"}), "describe words"),
        wrong("skill.describe", json!({"skill_id": "pdf-tabels"}), "describe pdf-tabels", "not_found"),
        wrong("skill.describe", json!({"skill_id": "../../etc"}), "describe ../../etc", "not_found"),
        case("skill.governance.list", json!({}), "governance"),
        case("skill.governance.list", json!({"limit": 2}), "governance --limit 2"),
        case("skill.governance.list", json!({"skill": "words"}), "governance words"),
        wrong("skill.governance.list", json!({"skill": "wrods"}), "governance wrods", "not_found"),
        case("skill.why", json!({"skill_id": "words", "intent": "count words", "clients": ["codex"]}), ""),
        wrong("skill.why", json!({"skill_id": "wrods"}), "why wrods", "not_found"),
        wrong(
            "skill.why",
            json!({"skill_id": "words", "clients": ["codx"]}),
            "why words --client codx",
            "not_found",
        ),
        case("skill.visibility", json!({}), "visibility"),
        case(
            "skill.visibility",
            json!({"limit": 1, "clients": ["codex"]}),
            "visibility --limit 1 --client codex",
        ),
        wrong("skill.visibility", json!({"skill": "wrods"}), "visibility wrods", "not_found"),
        wrong("skill.visibility", json!({"clients": ["codx"]}), "visibility --client codx", "not_found"),
        case(
            "skill.draft",
            json!({"skill_id": "words", "description": "Counts words."}),
            "draft words --description Counts_words.",
        ),
        wrong("skill.draft", json!({"skill_id": "wrods"}), "draft wrods", "not_found"),
        wrong(
            "skill.draft",
            json!({"skill_id": "words", "description": " "}),
            "draft words --description _",
            "invalid_request",
        ),
        wrong("skill.budget.fit", json!({"clients": ["codx"]}), "budget fit --client codx", "not_found"),
        wrong("skill.budget.fit", json!({"clients": []}), "", "invalid_request"),
        case(
            "skill.budget.fit",
            json!({"clients": ["codex"], "queries": [{"query": "count words", "expect": ["words"]}]}),
            "",
        ),
        case("golden.report", json!({}), "golden list"),
        case("golden.report", json!({"skill_id": "words"}), "golden list --skill words"),
        wrong("golden.report", json!({"skill_id": "wrods"}), "golden list --skill wrods", "not_found"),
        wrong("golden.report", json!({"queries": [{"query": " "}]}), "", "invalid_request"),
        case(
            "golden.explain",
            json!({"query": {"query": "count the words", "expect": ["words"]}}),
            "golden explain count_the_words --expect words",
        ),
        wrong(
            "golden.explain",
            json!({"query": {"query": "q", "expect": ["words"], "not": "send"}}),
            "",
            "invalid_request",
        ),
        case("proposal.list", json!({}), "proposals list"),
        wrong("proposal.list", json!({"limit": 0}), "", "invalid_request"),
        wrong("proposal.show", json!({"proposal_id": "none"}), "proposals show none", "not_found"),
        wrong("proposal.deny", json!({"proposal_id": "none"}), "proposals deny none --yes", "not_found"),
        wrong(
            "proposal.create",
            json!({"skill_id": "wrods", "diff": "x", "justification": "y"}),
            "",
            "not_found",
        ),
        case("skill.rivals", json!({"skill_id": "pdf-tables"}), "rivals pdf-tables"),
        wrong("skill.rivals", json!({"skill_id": "wrods"}), "rivals wrods", "not_found"),
        case(
            "skill.pair",
            json!({"skill_id": "pdf-tables", "rival": "words"}),
            "collisions pdf-tables words",
        ),
        wrong(
            "skill.pair",
            json!({"skill_id": "words", "rival": "words"}),
            "collisions words words",
            "invalid_request",
        ),
        case("skill.collisions", json!({"wait_ms": 10_000}), "collisions"),
        wrong("skill.collisions", json!({"wait_ms": 10_001}), "", "invalid_request"),
        case("skill.lint", json!({}), ""),
        case("skill.lint", json!({"skill": "words", "level": "warning"}), ""),
        wrong("skill.lint", json!({"rule": ["brokn-link"]}), "", "invalid_request"),
        case("lint.rules", json!({}), ""),
        case("client.list", json!({}), ""),
        case("client.view", json!({"client": "codex"}), ""),
        wrong("client.view", json!({"client": "codx"}), "", "not_found"),
        case("skill.contract", json!({"skill_id": "send"}), ""),
        wrong("skill.contract", json!({"skill_id": "pdf-tables"}), "", "invalid_configuration"),
        case("skill.file", json!({"skill_id": "pdf-tables", "path": "references/layout.md"}), ""),
        wrong(
            "skill.file",
            json!({"skill_id": "pdf-tables", "path": "../words/SKILL.md"}),
            "",
            "path_escape",
        ),
        wrong("skill.file", json!({"skill_id": "pdf-tables", "path": "gone.md"}), "", "not_found"),
        case("capability.list", json!({}), "explain-capability"),
        case(
            "capability.explain",
            json!({"capability_id": "text.words.count"}),
            "explain-capability text.words.count",
        ),
        case(
            "capability.explain",
            json!({"capability_id": "mail.message.send"}),
            "explain-capability mail.message.send",
        ),
        wrong(
            "capability.explain",
            json!({"capability_id": "text.word.count"}),
            "explain-capability text.word.count",
            "not_found",
        ),
        case("view.list", json!({}), "runs views"),
        case("run.facets", json!({}), ""),
        wrong("run.facets", json!({"where": "colour:red"}), "", "invalid_request"),
        wrong("run.board", json!({"hours": 0}), "", "invalid_request"),
        wrong("run.log", json!({"run_id": "no-such-run"}), "runs logs no-such-run", "not_found"),
        wrong(
            "run.assign",
            json!({"run_id": "no-such-run", "to": "kim"}),
            "runs assign no-such-run kim",
            "not_found",
        ),
        wrong("worker.drain", json!({"worker": "no-such"}), "runs workers --drain no-such", "not_found"),
        wrong("view.save", json!({"name": "x", "where": "colour:red"}), "", "invalid_request"),
        wrong("view.delete", json!({"name": "no-such"}), "runs views --delete no-such", "not_found"),
        wrong("run.show", json!({"run_id": "no-such-run"}), "runs show no-such-run", "not_found"),
        wrong("run.checkpoints", json!({"run_id": "no-such-run"}), "", "not_found"),
        wrong("run.status", json!({"run_id": "no-such-run"}), "", "not_found"),
        case(
            "run.list",
            json!({"where": "state:failed,completed"}),
            "runs list --where state:failed,completed",
        ),
        wrong("run.list", json!({"where": "colour:red"}), "runs list --where colour:red", "invalid_request"),
        wrong("run.list", json!({"limit": 5, "cursor": "no cursor"}), "", "invalid_request"),
        wrong("session.show", json!({"session_id": "no-such"}), "session show no-such", "not_found"),
        case("skill.budget", json!({"client": "codex"}), ""),
        case("agent.list", json!({}), ""),
        wrong(
            "artifact.create",
            json!({"name": "a.txt", "content": "?", "encoding": "base64"}),
            "",
            "invalid_request",
        ),
    ]
}

/// Calls that execute: each interface creates a run of its own, and the results are equal.
fn acts() -> Vec<Case> {
    vec![
        case(
            "skill.execute",
            json!({"skill_id": "words", "inputs": {"text": "a b c"}}),
            "run words --input text=a_b_c",
        ),
        wrong("skill.execute", json!({"skill_id": "words", "inputs": {"txt": "a"}}), "", "invalid_request"),
        wrong("skill.execute", json!({"skill_id": "pdf-tables"}), "run pdf-tables", "invalid_configuration"),
        wrong("skill.execute", json!({"skill_id": "wrods"}), "run wrods", "not_found"),
        wrong(
            "skill.execute",
            json!({"skill_id": "send", "inputs": {"to": "ana"}}),
            "",
            "confirmation_required",
        ),
        wrong("skill.execute", json!({"skill_id": "picky", "inputs": {"text": "bad"}}), "", "runtime_error"),
        case(
            "capability.execute",
            json!({"capability_id": "text.words.count", "inputs": {"text": "a b", "times": 2}}),
            "",
        ),
        wrong(
            "skill.attach",
            json!({"skill_id": "gone", "target_type": "output", "target_ref": "x"}),
            "attach gone --target-type output --target-ref x",
            "attach_invalid",
        ),
        wrong(
            "skill.attach",
            json!({"skill_id": "words", "target_type": "output", "target_ref": "x"}),
            "attach words --target-type output --target-ref x",
            "attach_invalid",
        ),
        wrong(
            "skill.attach",
            json!({"skill_id": "watcher", "target_type": "run", "target_ref": "x"}),
            "attach watcher --target-type run --target-ref x",
            "attach_invalid",
        ),
        wrong(
            "skill.attach",
            json!({"skill_id": "watcher", "target_type": "output", "target_ref": "no-run/step"}),
            "attach watcher --target-type output --target-ref no-run/step",
            "target_not_found",
        ),
    ]
}

/// `small` has every member of `full` with the same value: a command adds only its own members.
fn within(full: &Value, small: &Value) -> bool {
    match (full, small) {
        (Value::Object(full), Value::Object(small)) => {
            small.iter().all(|(key, value)| full.get(key).is_some_and(|other| other == value))
        }
        (full, small) => full == small,
    }
}

/// Returns a value without volatile fields and without bubblewrap, which the sandbox of the library does not use in
/// tests.
fn comparable(value: &Value) -> Value {
    let text = normalize_volatile_fields(value).to_string().replace(", bubblewrap", "");
    serde_json::from_str(&text).unwrap()
}

fn judge(case: &Case, adapter: &str, expected: &CallResult, actual: &CallResult, wrongs: &mut Vec<String>) {
    let same = match (expected, actual) {
        (Ok(expected), Ok(actual)) if adapter == "command line" => {
            within(&comparable(actual), &comparable(expected))
        }
        (Ok(expected), Ok(actual)) => comparable(actual) == comparable(expected),
        (Err(expected), Err(actual)) => comparable(actual) == comparable(expected),
        _ => false,
    };
    if !same {
        let text = |actual: &CallResult| match actual {
            Ok(value) => format!("ok {}", comparable(value)),
            Err(value) => format!("error {}", comparable(value)),
        };
        wrongs.push(format!(
            "{} {} by {adapter}:\n  library: {}\n  {adapter}: {}",
            case.operation,
            case.arguments,
            text(expected),
            text(actual)
        ));
    }
}

fn compare(doors: &mut Doors, cases: &[Case]) -> Vec<String> {
    let mut wrongs = Vec::new();
    for case in cases {
        let expected = doors.library(case.operation, &case.arguments);
        let code = expected.as_ref().err().and_then(|error| error["code"].as_str());
        if code != case.error {
            wrongs.push(format!(
                "{} {}: {expected:?}, wanted {:?}",
                case.operation, case.arguments, case.error
            ));
        }
        judge(case, "HTTP", &expected, &doors.http(case.operation, &case.arguments), &mut wrongs);
        if operation(case.operation).unwrap().tool {
            let tool = operation(case.operation).unwrap().tool_name;
            judge(case, "MCP", &expected, &doors.mcp(tool, &case.arguments), &mut wrongs);
        }
        if let Some(words) = &case.cli {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            judge(case, "command line", &expected, &doors.cli(&words), &mut wrongs);
        }
    }
    wrongs
}

fn doors() -> Doors {
    let fixture = RunsFixture::new();
    fixture.home.skill(
        "pdf-tables",
        "description: Extracts tables from PDF files into spreadsheets. Use when a request names a PDF with tables.\n\
         tags: [pdf, tables]\ndomain: documents",
        "# PDF tables\n\nA table in a PDF must become rows of a spreadsheet.\n",
    );
    fixture.home.file("pdf-tables/references/layout.md", "How tables are laid out.\n");
    fixture.home.skill(
        "csv-tools",
        "description: Cleans and joins CSV files.\nmetadata:\n  classification:\n    role: utility",
        "# CSV\n\nJoin, filter, clean.\n",
    );
    fixture.home.skill("old-pdf", "description: Reads tables from PDF files.\nstatus: deprecated", "# Old\n");
    Doors::open(fixture)
}

#[test]
fn every_adapter_returns_the_same_result_and_error() {
    let mut doors = doors();
    let (lookups, acts) = (lookup_cases(), acts());
    let compared: BTreeSet<&str> = lookups.iter().chain(&acts).map(|case| case.operation).collect();
    let missing = operations().iter().filter(|operation| operation.tool).map(|operation| operation.name);
    let missing = missing.filter(|name| !compared.contains(name) && !OF_ONE_PROCESS.contains(name));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&str>::new(), "tools without a case");
    let mut wrongs = compare(&mut doors, &lookups);
    wrongs.extend(compare(&mut doors, &acts));
    assert!(wrongs.is_empty(), "{} differ:\n{}", wrongs.len(), wrongs.join("\n"));
}
