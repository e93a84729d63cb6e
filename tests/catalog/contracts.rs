//! Contracts: parsed values, findings, and a complete public registry.
use std::path::{Path, PathBuf};

use skills_skill::contract::{self, Source, StepAction};
use skills_skill::{Finding, Severity};

fn parse(text: &str) -> (contract::Contract, Vec<Finding>) {
    let (contract, findings) = contract::parse(Path::new("/skills/demo/skill.yaml"), text);
    (contract.expect("a contract"), findings)
}

fn lines(findings: &[Finding]) -> String {
    findings
        .iter()
        .map(|f| format!("{}:{} {} {}", f.span.map_or(0, |s| s.line), f.severity, f.code, f.message))
        .collect::<Vec<_>>()
        .join("\n")
}

const WHOLE: &str = r#"
id: invoice.intake
version: 1.10
inputs:
  file: { type: string, required: true }
  limit: number
  lines: array
outputs:
  total: { type: number, required: true }
steps:
  - id: extract
    uses: document.table.extract
    input: { path: inputs.file, mode: "inputs are many.", nested: [ { a: inputs.limit }, 3 ] }
    output: { rows: vars.rows }
    config: { retry: { max_attempts: 3, backoff_seconds: 0.2 }, timeout_seconds: 60, condition: "inputs.file != null" }
  - id: each
    uses: row.check
    input: { row: row, at: index, why: rowing }
    output: { ok: vars.ok }
    config: { depends_on: [], foreach: { items: inputs.lines, as: row, index_as: index } }
  - id: ready
    wait_for_signal: books-closed
  - id: sum
    uses: skill:table.sum
    input: { rows: vars.rows }
    output: { total: outputs.total }
    config: { depends_on: [extract, ready] }
"#;

#[test]
fn complete_contract_is_parsed() {
    let (contract, findings) = parse(WHOLE);
    assert_eq!(lines(&findings), "");
    assert_eq!(contract.version, "1.10", "as written, not as a number");
    let [extract, each, ready, sum] = &contract.steps[..] else { panic!("four steps") };
    assert!(matches!(&extract.input["path"], Source::Reference(path) if *path == ["inputs", "file"]));
    assert!(matches!(&extract.input["mode"], Source::Literal(_)), "a sentence is not a reference");
    assert_eq!(extract.timeout, Some(std::time::Duration::from_secs(60)));
    assert_eq!(extract.line, 11);
    assert_eq!(each.depends_on, Vec::<String>::new(), "an empty list starts at once");
    assert!(matches!(&each.input["row"], Source::Reference(path) if *path == ["row"]));
    assert!(matches!(&each.input["why"], Source::Literal(_)));
    assert_eq!(ready.action, StepAction::WaitForSignal("books-closed".into()));
    assert_eq!(ready.depends_on, ["each"], "the step before by default");
    assert_eq!(sum.action, StepAction::Skill("table.sum".into()));
}

#[test]
fn errors_are_reported_with_their_line() {
    let (_, findings) = parse(
        r#"
id: demo.wrong
inputs: { file: { typ: string }, n: numbre }
outputs: { total: { type: number, required: true } }
steps:
  - id: a
    uses: x.y
    inputs: { path: inputs.file }
    input: { path: inputs.fil }
    output: { rows: inputs.rows }
  - id: b
    uses: x.y
    output: { r: vars.r }
    config: { depend_on: [a], depends_on: [nowhere], condition: "vars.r = 1", retry: { backoff_seconds: -1 } }
  - id: b
    uses: x.z
    output: { r: vars.r }
    config: { timeout_seconds: soon, condition: "row.x > 1", foreach: { items: vars.r, as: i }, while: { condition: "true" } }
  - id: c
    uses: x.z
    wait_for_signal: now
  - id: d
  - uses: x
  - id: e
    uses: x
    config: { depends_on: [f] }
  - id: f
    uses: skill:demo.wrong
    config: { depends_on: [e], scatter: { capabilities: [one] }, merge_strategy: mix }
"#,
    );
    insta::assert_snapshot!(lines(&findings));
}

/// Line, code and severity of each finding.
fn found(text: &str) -> Vec<(u32, String, Severity)> {
    let (_, findings) = contract::parse(Path::new("skill.yaml"), text);
    findings.iter().map(|f| (f.span.map_or(0, |span| span.line), f.code.clone(), f.severity)).collect()
}

#[test]
fn value_read_before_it_is_written_is_reported() {
    let text = "id: demo.order
inputs: {n: string}
steps:
  - id: early
    uses: x.y
    input:
      n: vars.late
  - id: maybe
    uses: x.y
    input:
      n: vars.late
    config:
      condition: vars.late != inputs.m
  - id: late
    uses: x.y
    input: {n: vars.own.part}
    output: {a: vars.late, b: vars.own}
    config:
      while: {condition: vars.late == 1}
  - id: side
    uses: x.y
    output: {a: vars.side}
    config: {depends_on: []}
  - id: beside
    uses: x.y
    input: {n: vars.side}
    config: {depends_on: [late]}
  - id: each
    uses: x.y
    input: {n: vars.own.part, all: vars.side.deep}
    config:
      depends_on: [beside, side]
      foreach: {items: inputs.rows, as: row}
  - id: choice
    uses: x.y
    config:
      router: {on: inputs.kind, cases: {a: x.y}}
  - id: fan
    uses: _
    config: {scatter: {capabilities: [x.y, x.z]}}
  - id: after
    uses: x.y
    input: {n: vars.fan, z: vars.late}
";
    let reference = |line, severity| (line, "contract-reference".to_owned(), severity);
    assert_eq!(
        found(text),
        [
            reference(7, Severity::Error),
            reference(11, Severity::Warning),
            reference(13, Severity::Warning),
            reference(13, Severity::Warning),
            reference(16, Severity::Error),
            reference(26, Severity::Warning),
            reference(33, Severity::Error),
            reference(37, Severity::Warning),
        ]
    );
    let (_, findings) = parse(text);
    assert_eq!(findings[0].help, "Move step `late` before step `early`, or change `depends_on`.");
    assert_eq!(findings[5].help, "Add `side` to `depends_on` of step `beside`.");
}

#[test]
fn frame_is_undefined_unless_foreach_defines_it() {
    let step = |config: &str| {
        format!("id: demo.frames\nsteps:\n  - id: a\n    uses: x.y\n    input: {{n: frame.i}}\n{config}")
    };
    assert_eq!(found(&step("")), [(5, "contract-reference".to_owned(), Severity::Warning)]);
    assert_eq!(found(&step("    config: {foreach: {items: inputs, as: frame}}\n")), []);
}

#[test]
fn versions_step_ids_and_outputs_are_checked() {
    let text = "id: demo.words
version: banana
outputs: {rows: {type: array, required: true}, total: {type: number, required: true}}
stepz: []
steps:
  - id: a b
    uses: x.y
    output:
      rows: outputs.rows
      all: outputs.totals
  - id: a/c
    uses: x.y
";
    assert_eq!(
        found(text),
        [
            (2, "contract-invalid".to_owned(), Severity::Warning),
            (3, "contract-output".to_owned(), Severity::Warning),
            (4, "contract-unknown-key".to_owned(), Severity::Warning),
            (6, "contract-invalid".to_owned(), Severity::Warning),
            (10, "contract-output".to_owned(), Severity::Warning),
            (11, "contract-invalid".to_owned(), Severity::Warning),
        ]
    );
    let (_, findings) = parse(text);
    let helps: Vec<&str> = findings.iter().map(|finding| finding.help.as_str()).collect();
    assert!(
        helps.contains(&"Did you mean `steps`?") && helps.contains(&"Did you mean `total`?"),
        "{helps:?}"
    );
    let text = "id: a\noutputs:\n  n: any\n  total:\n    type: number\n    required: true\nsteps:\n  - {id: a, uses: x.y}\n";
    assert_eq!(found(text), [(4, "contract-output".to_owned(), Severity::Warning)]);
    for version in ["1.10", "0.1.0", "v2", "1.0.0-rc.1+build", "2024-05-01"] {
        let text = format!("id: a\nversion: {version}\nsteps:\n  - {{id: a.b_c-1, uses: x.y}}\n");
        assert_eq!(found(&text), [], "{version}");
    }
}

#[test]
fn duplicate_step_id_is_reported_once_at_the_second() {
    let text = "id: demo.twice\nsteps:\n  - id: a\n    uses: x.y\n  - id: a\n    uses: x.y\n";
    assert_eq!(found(text), [(5, "contract-invalid".to_owned(), Severity::Error)]);
}

#[test]
fn steps_that_cannot_be_read_are_not_called_empty() {
    for steps in ["{a: 1}", "\n  - {id: a, uses: x.y, wait_for_signal: go}"] {
        let (_, findings) = parse(&format!("id: demo.none\nsteps: {steps}\n"));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(!findings[0].message.contains("empty"), "{findings:?}");
    }
    let (_, findings) = parse("id: demo.none\nsteps: []\n");
    assert_eq!(findings[0].message, "`steps` is empty");
}

#[test]
fn file_without_steps_is_not_a_contract() {
    let (contract, findings) = contract::parse(Path::new("skill.yaml"), "id: a\ndescription: b\n");
    assert_eq!((contract, findings), (None, vec![]));
    let (contract, findings) = contract::parse(Path::new("skill.yaml"), "- a\n- b\n");
    assert!(contract.is_none());
    assert_eq!(findings[0].code, "not-a-mapping");
}

#[test]
fn misspelled_top_level_key_is_found() {
    let text = "id: a\nstepz: []\ntitel: Convert {inputs.file}\nhome: here\nteam: data\n";
    let (contract, findings) = contract::parse(Path::new("skill.yaml"), text);
    assert!(contract.is_none());
    let found: Vec<_> =
        findings.iter().map(|f| (f.span.unwrap().line, f.code.as_ref(), f.help.as_str())).collect();
    assert_eq!(
        found,
        [
            (2, "contract-unknown-key", "Did you mean `steps`?"),
            (3, "contract-unknown-key", "Did you mean `title`?"),
        ]
    );
}

#[test]
fn undeclared_properties_have_strict_defaults() {
    let (capability, _) = contract::parse_capability(Path::new("c.yaml"), "id: mail.send\n");
    let properties = capability.unwrap().properties;
    assert!(properties.side_effects && !properties.idempotent);
    let text =
        "id: mail.send\nsafety: { mandatory_pre_gates: [ { capability: pii.detect, on_fail: ignore } ] }\n";
    let (capability, findings) = contract::parse_capability(Path::new("c.yaml"), text);
    let gate = &capability.unwrap().safety.mandatory_pre_gates[0];
    assert_eq!(gate.on_fail, contract::GateFailure::Block, "at its strictest");
    assert!(findings[0].message.contains("expected one of block"));
}

#[test]
fn unknown_keys_of_a_capability_are_reported() {
    let text =
        "id: mail.send\nsafty: {}\nproperties: {idempotence: true}\nsafety: {requires_approval: true}\n";
    let (_, findings) = contract::parse_capability(Path::new("c.yaml"), text);
    let fields: Vec<_> =
        findings.iter().map(|finding| (finding.code.as_str(), finding.field.as_deref())).collect();
    let unknown = |field| ("contract-unknown-key", Some(field));
    assert_eq!(fields, ["safty", "properties.idempotence", "safety.requires_approval"].map(unknown));
}

/// The public registry in the contract form, unpacked from the large test data.
fn registry() -> Option<(tempfile::TempDir, PathBuf)> {
    let Some(data) = std::env::var_os("SKILLS_TEST_DATA") else {
        eprintln!(
            "SKIPPED: set SKILLS_TEST_DATA to the folder of the large data to read a public registry whole"
        );
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let archive = Path::new(&data).join("contract-registry.tar.xz");
    let tar =
        std::process::Command::new("tar").arg("xJf").arg(&archive).arg("-C").arg(folder.path()).status();
    assert!(tar.unwrap().success(), "{} cannot be unpacked", archive.display());
    let path = folder.path().to_owned();
    Some((folder, path))
}

fn files(root: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "yaml") {
            out.push(path);
        }
    }
    out.sort();
}

#[test]
fn public_registry_is_loaded_completely() {
    let Some((_folder, root)) = registry() else { return };
    let read = |folder: &str| {
        let mut all = Vec::new();
        files(&root.join(folder), &mut all);
        all
    };
    let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let mut remarks = Vec::new();
    let mut note = |path: &PathBuf, findings: Vec<Finding>| {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        remarks.extend(findings.iter().map(|f| format!("{name}: {} {} {}", f.severity, f.code, f.message)));
    };
    let skills = read("registry/skills/official");
    let skills: Vec<_> = skills.iter().filter(|p| p.ends_with("skill.yaml")).collect();
    for path in &skills {
        let (contract, findings) = contract::parse(path, &text(path));
        let contract = contract.unwrap_or_else(|| panic!("{} has no contract", path.display()));
        assert!(!contract.steps.is_empty());
        note(path, findings);
    }
    let (mut capabilities, mut bindings, mut services) = (0, 0, 0);
    for path in read("registry/capabilities")
        .iter()
        .filter(|p| !p.file_name().is_some_and(|n| n.to_string_lossy().starts_with('_')))
    {
        let (capability, findings) = contract::parse_capability(path, &text(path));
        capabilities += usize::from(capability.is_some());
        note(path, findings);
    }
    for path in &read("runtime/bindings") {
        let (binding, findings) = contract::parse_binding(path, &text(path));
        bindings += usize::from(binding.is_some());
        note(path, findings);
    }
    // The OpenAPI documents of the mocks are next to the services, in `specs`.
    let specs = std::ffi::OsStr::new("specs");
    for path in read("runtime/services").iter().filter(|p| !p.iter().any(|part| part == specs)) {
        let (service, findings) = contract::parse_service(path, &text(path));
        services += usize::from(service.is_some());
        note(path, findings);
    }
    assert_eq!((skills.len(), capabilities, bindings), (26, 184, 189));
    assert!(services > 20, "{services}");
    assert!(!remarks.iter().any(|r| r.contains(&format!(" {} ", Severity::Error))), "{}", remarks.join("\n"));
    insta::assert_snapshot!(remarks.join("\n"));
}
