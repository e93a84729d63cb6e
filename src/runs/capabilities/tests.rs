//! Tests of valid and invalid registries.

use std::path::Path;

use super::*;

fn registry(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

fn place(dir: &Path) -> CapabilityFolder {
    CapabilityFolder { dir: dir.to_owned(), bundle: None, shipped: false, of_project: false }
}

const CAPABILITY: &str =
    "id: text.count\ninputs: {text: string}\noutputs: {words: {type: integer, required: true}}\n";

#[test]
fn first_definition_wins_and_both_are_named() {
    let first = registry(&[
        ("capabilities/text.count.yaml", CAPABILITY),
        ("bindings/a/b.yaml", "id: b\ncapability: text.count\nprotocol: script\noperation: first.py\n"),
    ]);
    let second = registry(&[
        ("capabilities/text.count.yaml", "id: text.count\nsafety: {requires_confirmation: false}\n"),
        ("bindings/b.yaml", "id: b\ncapability: text.count\nprotocol: script\noperation: second.py\n"),
    ]);
    let catalog = Capabilities::load(&[place(first.path()), place(second.path())]);
    assert_eq!(catalog.ids().collect::<Vec<_>>(), ["text.count"]);
    assert!(catalog.capability("text.count").unwrap().outputs.contains_key("words"));
    assert_eq!(catalog.bindings_of("text.count")[0].binding.operation, "first.py");
    let codes: Vec<_> = catalog.findings().iter().map(|f| f.code.as_str()).collect();
    assert_eq!(codes, ["capability-duplicate", "binding-duplicate"]);
    let message = &catalog.findings()[0].message;
    assert!(message.contains(&*first.path().to_string_lossy()), "{message}");
    assert!(catalog.findings()[0].file.starts_with(second.path()));
    assert_eq!(catalog.other_definitions("text.count"), [second.path().join("capabilities/text.count.yaml")]);
    let same = Capabilities::load(&[place(first.path()), place(first.path())]);
    assert!(
        !same.findings().iter().any(|f| f.code == "capability-duplicate"),
        "the same text contradicts nothing"
    );
    assert!(same.other_definitions("text.count").is_empty(), "it is the same file");
}

#[test]
fn a_bundle_named_like_a_folder_of_the_registry_is_not_read() {
    let dir = registry(&[
        ("capabilities/SKILL.md", "---\nname: capabilities\ndescription: x\n---\n"),
        ("capabilities/text.count.yaml", CAPABILITY),
        ("bindings/a/skill.yaml", "id: a\n"),
        ("bindings/a/b.yaml", "id: b\ncapability: text.count\nprotocol: script\noperation: b.py\n"),
        ("bindings/c.yaml", "id: c\ncapability: text.count\nprotocol: script\noperation: c.py\n"),
    ]);
    let catalog = Capabilities::load(&[place(dir.path())]);
    assert_eq!(catalog.ids().count(), 0);
    let bindings: Vec<_> = catalog.bindings().map(|offered| offered.binding.id.as_str()).collect();
    assert_eq!(bindings, ["c"]);
}

#[test]
fn dangling_references_are_distinguished() {
    let dir = registry(&[
        ("capabilities/text.count.yaml", CAPABILITY),
        (
            "capabilities/text.send.yaml",
            "id: text.send\nsafety: {mandatory_pre_gates: [{capability: text.gate}]}\n",
        ),
        ("capabilities/_index.yaml", "no: [yaml"),
        (
            "bindings/x/a.yaml",
            "id: a\ncapability: text.count\nservice: s\nprotocol: openapi\noperation: count\n\
             request: {t: input.txt, u: 'say ${input.text} ${input.unknown}'}\nresponse: {letters: response.l}\n\
             metadata: {fallback_binding_id: gone}\n",
        ),
        (
            "bindings/x/b.yaml",
            "id: b\ncapability: text.lost\nservice: s\nprotocol: mcp\noperation: t\n\
             metadata: {fallback_binding_id: a}\n",
        ),
        ("bindings/x/c.yaml", "id: c\ncapability: text.count\nprotocol: carrier-pigeon\noperation: t\n"),
        ("services/specs/s.yaml", "openapi: 3.0.3\n"),
    ]);
    let catalog = Capabilities::load(&[place(dir.path())]);
    let seen: Vec<String> = catalog
        .findings()
        .iter()
        .map(|f| {
            format!(
                "{} {} {}: {}",
                f.severity,
                f.file.strip_prefix(dir.path()).unwrap().display(),
                f.code,
                f.message
            )
        })
        .collect();
    insta::assert_snapshot!(seen.join("\n"));
}

#[test]
fn a_gate_whose_input_could_mean_two_values_is_found() {
    let dir = registry(&[
        (
            "capabilities/text.send.yaml",
            "id: text.send\ninputs: {inputs: object}\n\
             safety: {mandatory_pre_gates: [{capability: text.gate, on_fail: block}]}\n",
        ),
        ("capabilities/text.gate.yaml", "id: text.gate\ninputs: {inputs: object}\n"),
    ]);
    let catalog = Capabilities::load(&[place(dir.path())]);
    let found: Vec<_> = catalog.findings().iter().filter(|f| f.code == "capability-gate").collect();
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("both declare the input `inputs`"), "{}", found[0].message);
}

#[test]
fn a_link_out_of_the_registry_is_not_followed() {
    let outside = registry(&[("secret.yaml", CAPABILITY)]);
    let dir = registry(&[("capabilities/readme.md", "")]);
    std::os::unix::fs::symlink(outside.path().join("secret.yaml"), dir.path().join("capabilities/s.yaml"))
        .unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("bindings")).unwrap();
    let catalog = Capabilities::load(&[place(dir.path())]);
    assert_eq!(catalog.ids().len(), 0);
}
