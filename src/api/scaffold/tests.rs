//! Tests of new skills of every kind: they pass lint, their scripts run, and existing files are not changed.

#![allow(clippy::unwrap_used, reason = "the tests' scratch folder")]

use std::process::{Command, Stdio};

use super::*;

fn spec(id: &str) -> Scaffold {
    Scaffold {
        id: id.to_owned(),
        description: "Sums up a server log by hour and level".to_owned(),
        when: Some("somebody asks what happened on a machine: when, how often".to_owned()),
        kind: None,
        role: Role::Procedure,
        invocation: None,
        targets: Vec::new(),
        effect: EffectMode::Enrich,
        domain: None,
        tags: Vec::new(),
        script: None,
        contract: false,
        references: false,
        queries: Some(Vec::new()),
    }
}

/// Returns the output of a script.
fn run(program: &str, script: &Path, input: &str) -> Option<(bool, String)> {
    let mut command = Command::new(program);
    let child =
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    // Only Node may be missing; the other interpreters are installed everywhere.
    let Ok(mut child) = child else {
        assert_eq!(program, "node");
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let message = if output.status.success() { output.stdout } else { output.stderr };
    Some((output.status.success(), String::from_utf8(message).unwrap()))
}

#[test]
fn every_shape_of_skill_is_clean_and_its_script_runs() {
    let dir = tempfile::tempdir().unwrap();
    let attach = |spec: Scaffold, role, effect| Scaffold {
        role,
        invocation: Some(if role == Role::Sidecar { Invocation::Attach } else { Invocation::Both }),
        targets: vec![AttachTarget::Output, AttachTarget::Run],
        effect,
        ..spec
    };
    let scripted = |id: &str, language| Scaffold { script: Some(language), ..spec(id) };
    let contracted = |id: &str, language| Scaffold { contract: true, ..scripted(id, language) };
    let full = Scaffold {
        domain: Some("operations".to_owned()),
        tags: vec!["log".to_owned(), "on".to_owned()],
        references: true,
        ..contracted("full", ScriptLanguage::Python)
    };
    let all = [
        spec("plain"),
        scripted("py", ScriptLanguage::Python),
        scripted("js", ScriptLanguage::Node),
        scripted("sh", ScriptLanguage::Shell),
        contracted("py-run", ScriptLanguage::Python),
        contracted("js-run", ScriptLanguage::Node),
        Scaffold { contract: true, ..spec("run-alone") },
        full,
        attach(contracted("watch", ScriptLanguage::Python), Role::Sidecar, EffectMode::ControlSignal),
        attach(contracted("watch-js", ScriptLanguage::Node), Role::Sidecar, EffectMode::ControlSignal),
        attach(contracted("either", ScriptLanguage::Python), Role::Utility, EffectMode::ReadOnly),
    ];
    for spec in &all {
        let made = scaffold(spec, dir.path()).unwrap();
        assert_eq!(made.findings, [], "{}", spec.id);
        assert_eq!(linted(&made.folder), [], "{}", spec.id);
        assert_eq!(trust::has_contract(&made.folder), spec.contract, "{}", spec.id);
        for path in made.files.iter().filter(|path| path.starts_with("scripts/")) {
            let json = r#"{"text": "one line\nand another"}"#;
            let (program, input) = match path.rsplit('.').next().unwrap() {
                "py" => ("python3", json),
                "mjs" => ("node", json),
                _ => ("bash", "one line\nand another"),
            };
            let Some((good, message)) = run(program, &made.folder.join(path), input) else { continue };
            let answer: serde_json::Value = serde_json::from_str(&message).unwrap();
            assert!(good && answer["lines"] == 2 && answer["words"] == 4, "{}: {message}", spec.id);
            assert_eq!(answer.get("control").is_some(), spec.effect == EffectMode::ControlSignal);
            let (good, message) = run(program, &made.folder.join(path), "").unwrap();
            assert!(!good && !message.contains("Traceback"), "{}: {message}", spec.id);
        }
    }
    let entries: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(entries.len(), all.len() + 1, "nothing is left beside the skills and their golden queries");
    let golden = fs::read_to_string(dir.path().join(GOLDEN)).unwrap();
    let ranked = all.iter().filter(|spec| spec.role != Role::Sidecar).count();
    assert_eq!(golden_yaml(&golden).unwrap().len(), 2 * ranked, "sidecars are not ranked");
}

#[test]
fn existing_files_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("mine")).unwrap();
    let error = scaffold(&spec("mine"), dir.path()).unwrap_err();
    assert_eq!(error.code, Code::Forbidden);
    std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
    assert!(scaffold(&spec("link"), dir.path()).is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "not even golden queries");
}

#[test]
fn golden_queries_are_appended_or_omitted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(GOLDEN);
    fs::write(&file, "# mine\n- query: a\n  expect: none").unwrap();
    let queries = vec!["what: happened?".to_owned(), "- x".to_owned(), "- x".to_owned()];
    let made = scaffold(&Scaffold { queries: Some(queries), ..spec("one") }, dir.path()).unwrap();
    assert_eq!(made.golden.unwrap().1, 2);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# mine\n- query: a\n  expect: none\n\n# one\n"), "{text}");
    fs::write(&file, "[{query: a, expect: none}]\n").unwrap();
    let made = scaffold(&spec("two"), dir.path()).unwrap();
    assert!(made.golden.is_none() && made.golden_note.is_some());
    assert_eq!(fs::read_to_string(&file).unwrap(), "[{query: a, expect: none}]\n");
    let made = scaffold(&Scaffold { queries: None, ..spec("three") }, dir.path()).unwrap();
    assert!(made.golden.is_none() && made.golden_note.is_none());
}

#[test]
fn golden_queries_are_not_written_through_a_link_out_of_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let (root, outside) = (dir.path().join("root"), dir.path().join("outside.yaml"));
    fs::create_dir(&root).unwrap();
    let text = "- query: secret\n  expect: none\n";
    fs::write(&outside, text).unwrap();
    let file = root.join(GOLDEN);
    std::os::unix::fs::symlink(&outside, &file).unwrap();
    for _ in 0..2 {
        let made = scaffold(&spec("one"), &root).unwrap();
        assert!(made.golden.is_none() && made.golden_note.is_some());
        assert!(file.is_symlink());
        fs::remove_dir_all(root.join("one")).unwrap();
        // The second time the link is broken.
        let _ = fs::remove_file(&outside);
    }
    assert!(!outside.exists());
}

#[test]
fn contradictory_arguments_are_rejected_before_writing() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = [
        (Scaffold { id: "No Good".to_owned(), ..spec("") }, "not a valid id"),
        (Scaffold { id: "../out".to_owned(), ..spec("") }, "not a valid id"),
        (Scaffold { description: " ".to_owned(), ..spec("a") }, "--description"),
        (Scaffold { description: "Logs".to_owned(), when: None, ..spec("a") }, "lint finding"),
        (Scaffold { role: Role::Sidecar, ..spec("a") }, "--target"),
        (Scaffold { targets: vec![AttachTarget::Run], ..spec("a") }, "direct"),
        (Scaffold { effect: EffectMode::ControlSignal, ..spec("a") }, "attach"),
        (Scaffold { contract: true, script: Some(ScriptLanguage::Shell), ..spec("a") }, "JSON"),
        (Scaffold { tags: vec!["a]".to_owned()], ..spec("a") }, "not a valid tag"),
    ];
    for (spec, word) in wrong {
        let error = scaffold(&spec, dir.path()).unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest);
        assert!(error.message.contains(word), "{}", error.message);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
