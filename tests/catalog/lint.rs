//! Linting: every defect of real files, on one fixture each, and the result of `--fix`.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use skills_skill::{Finding, Skill, fix, lint};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/skills")
}

fn main_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            main_files(&entry.path(), found);
        } else if entry.file_name().to_str().is_some_and(skills_skill::is_main_file) {
            found.push(entry.path());
        }
    }
}

fn read(name: &str) -> Skill {
    skills_skill::read_bundle(&fixtures().join(name).join("SKILL.md")).unwrap()
}

fn place(finding: &Finding) -> String {
    finding.span.map_or_else(|| "-".to_owned(), |span| format!("{}:{}", span.line, span.column))
}

#[test]
fn every_defect_is_reported_at_its_location() {
    let mut files = Vec::new();
    main_files(&fixtures(), &mut files);
    files.sort();
    let mut table = String::new();
    for path in files {
        let shown = path.strip_prefix(fixtures()).unwrap().display().to_string();
        let findings = match skills_skill::read_bundle(&path) {
            Ok(skill) => {
                writeln!(table, "{shown}: {}", skill.name).unwrap();
                lint::bundle(&skill, &std::fs::read_to_string(&path).unwrap())
            }
            Err(refusal) => {
                writeln!(table, "{shown}: REFUSED {:?}", refusal.reason).unwrap();
                refusal.findings
            }
        };
        for finding in findings {
            let field = finding.field.as_deref().map_or_else(String::new, |field| format!(" [{field}]"));
            let message = skills_skill::safe_text::line(&finding.message).into_owned();
            let place = place(&finding);
            writeln!(table, "    {place} {} {}{field}: {message}", finding.severity, finding.code).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

fn findings_of(frontmatter: &str, code: &str) -> (String, Vec<Finding>) {
    let source = format!("---\nname: a\n{frontmatter}\n---\n# A\n\nText.\n");
    let skill = skills_skill::parse(Path::new("/s/a/SKILL.md"), source.as_bytes(), 0).unwrap();
    let found = skill.findings.into_iter().filter(|finding| finding.code == code).collect();
    (source, found)
}

fn marked<'a>(source: &'a str, finding: &Finding) -> &'a str {
    let span = finding.span.unwrap();
    &source[span.offset as usize..(span.offset + span.length) as usize]
}

#[test]
fn text_hidden_by_yaml_escapes_is_found_at_its_value() {
    for (frontmatter, field) in [
        (r#"description: "Reads\U000E0041\u202E files""#, "description"),
        ("description: Reads files\ntags: [one, \"t\\u202Ewo\"]", "tags"),
        ("description: Reads files\nwhen_to_use: \"a\\u202Eb\"", "when_to_use"),
        ("description: Reads files\nmetadata:\n  author: \"a\\u202Eb\"", "metadata.author"),
    ] {
        let (source, found) = findings_of(frontmatter, "smuggled-text");
        assert!(!found.is_empty(), "{frontmatter}");
        for finding in &found {
            assert_eq!(finding.field.as_deref(), Some(field));
            assert!(marked(&source, finding).contains("\\u202E"), "{finding:?}");
        }
    }
    let (_, findings) = findings_of("description: \"Reads\\tfiles \\u00e9\"", "smuggled-text");
    assert_eq!(findings, []);
    let (_, once) = findings_of("description: \"Reads\u{202e} files\"", "smuggled-text");
    assert_eq!(once.len(), 1, "a literal hidden character is reported once");
}

#[test]
fn unrestricted_shell_is_reported() {
    for tools in [
        "[Read, Bash(git status:*), Bash, Write]",
        "\n  - Read\n  - Bash(git log:*)\n  - Bash\n  - Write",
        "Read, Bash(git log:*), Bash",
        "Read Bash",
    ] {
        let frontmatter = format!("description: Reads files\nallowed-tools: {tools}");
        let (source, found) = findings_of(&frontmatter, "grants-shell");
        assert_eq!(found.len(), 1, "{tools}");
        assert_eq!(marked(&source, &found[0]), "Bash", "{tools}");
        let at = found[0].span.unwrap().offset as usize;
        assert!(!source[at..].starts_with("Bash("), "{tools}");
    }
}

#[test]
fn fields_are_read_in_every_spelling() {
    assert_eq!(
        read("tools-by-spaces").properties.allowed_tools,
        ["Read", "Bash(git diff:*)", "Bash(git log --oneline:*)"]
    );
    assert_eq!(read("tools-by-commas").properties.allowed_tools, ["Read", "Bash(git diff:*)", "Write"]);
    assert_eq!(read("tools-as-list").properties.allowed_tools, ["Read", "Bash(*)"]);
    let metadata = serde_json::Value::Object(read("metadata-values").properties.metadata.to_map());
    let expected = serde_json::json!({"version": 1.1, "stable": true, "authors": ["one", "two"],
        "nested": {"a": {"b": 1}}, "since": "2024-05-01"});
    assert_eq!(metadata, expected);
    assert_eq!(read("name-list").name, "name-list");
    assert_eq!(read("name-number").name, "007");
    assert_eq!(read("name-absent").name, "name-absent");
    assert_eq!(
        read("unquoted-colon").description,
        "Converts temperatures: Celsius, Kelvin. Use when a request says \"it's: hot\"."
    );
}

#[test]
fn a_lone_contract_is_a_skill() {
    let skill = skills_skill::read_bundle(&fixtures().join("lone-contract/skill.yaml")).unwrap();
    assert_eq!((skill.id.as_str(), skill.name.as_str()), ("climate.convert", "Convert"));
    assert_eq!(
        skill.domain.map(|domain| (domain.value, domain.inferred)),
        Some(("climate".to_owned(), true))
    );
    assert_eq!(skill.classification.attach_targets, [skills_skill::AttachTarget::Output]);
    assert_eq!(skill.kind.value, skills_skill::Kind::Tool);
    assert!(!skill.has_body && skill.findings.is_empty());
}

#[test]
fn committed_schema_equals_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/schema/skill-frontmatter.json");
    let made = format!("{}\n", serde_json::to_string_pretty(&skills_skill::schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &made).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap();
    assert_eq!(checked_in, made, "run the tests with UPDATE_SCHEMA=1 and check the schema in");
}

/// What is displayed of a skill, without positions and digests.
fn essence(bytes: &[u8]) -> Option<(String, String, skills_skill::Properties, skills_skill::Clients, usize)> {
    let skill = skills_skill::parse(Path::new("/skills/some/SKILL.md"), bytes, 0).ok()?;
    Some((skill.name, skill.description, skill.properties, skill.clients, skill.findings.len()))
}

/// Fixing preserves the content, leaves fewer findings, and takes one pass.
fn check_fix(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Some(fixed) = fix::fix(bytes) else { return Ok(()) };
    prop_assert!(!fixed.applied.is_empty());
    prop_assert_eq!(fix::fix(&fixed.bytes), None, "fixing again changes something");
    if let Some((name, description, properties, clients, findings)) = essence(bytes) {
        let after = essence(&fixed.bytes);
        prop_assert!(after.is_some(), "the fixed file is refused");
        let (name_after, description_after, properties_after, clients_after, findings_after) = after.unwrap();
        prop_assert_eq!(name, name_after);
        prop_assert_eq!(description, description_after);
        prop_assert_eq!(properties, properties_after);
        prop_assert_eq!(clients, clients_after);
        prop_assert!(findings_after < findings, "{} findings before, {} after", findings, findings_after);
    }
    Ok(())
}

#[test]
fn fix_repairs_every_finding_marked_fixable() {
    let mut files = Vec::new();
    main_files(&fixtures(), &mut files);
    for path in files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let bytes = std::fs::read(&path).unwrap();
        check_fix(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let Ok(skill) = skills_skill::parse(&path, &bytes, 0) else { continue };
        let fixable = skill.findings.iter().any(|finding| finding.fixable);
        assert_eq!(fix::fix(&bytes).is_some(), fixable, "{}", path.display());
        let after = fix::fix(&bytes).map_or(bytes, |fixed| fixed.bytes);
        let left = skills_skill::parse(&path, &after, 0).unwrap().findings;
        assert!(left.iter().all(|finding| !finding.fixable), "{}: {left:?}", path.display());
    }
}

/// Real frontmatter with defects, and with deletions and insertions at any position.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let mut files = Vec::new();
    main_files(&fixtures(), &mut files);
    files.sort();
    let sources: Vec<Vec<u8>> = files.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let fragment = prop_oneof![
        Just("---\n"),
        Just("\n"),
        Just("\r\n"),
        Just(": "),
        Just("\""),
        Just("'"),
        Just("  "),
        Just("- "),
        Just("["),
        Just("{"),
        Just("#"),
        Just("|"),
        Just("\u{feff}"),
        Just("\t"),
        Just("&a "),
        Just("*a"),
        Just("é"),
        Just("<<: "),
    ];
    let edits = proptest::collection::vec((any::<prop::sample::Index>(), 0..4_usize, fragment), 0..6);
    (prop::sample::select(sources), edits).prop_map(|(mut bytes, edits)| {
        for (at, cut, fragment) in edits {
            let at = at.index(bytes.len() + 1);
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, fragment.bytes());
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = skills_skill::parse(Path::new("/skills/some/SKILL.md"), &bytes, 0);
        let _ = skills_skill::parse(Path::new("/skills/some/skill.yaml"), &bytes, 0);
        let _ = fix::fix(&bytes);
    }

    #[test]
    fn mutated_files_are_read_and_reported(bytes in mutated()) {
        let findings = match skills_skill::parse(Path::new("/skills/some/SKILL.md"), &bytes, 0) {
            Ok(skill) => skill.findings,
            Err(refusal) => {
                prop_assert!(!refusal.findings.is_empty());
                refusal.findings
            }
        };
        if let Ok(source) = std::str::from_utf8(&bytes) {
            let _ = skills_skill::index_text(source);
            for finding in &findings {
                let known = lint::rules::by_code(&finding.code);
                prop_assert!(known.is_some(), "{}", finding.code);
                if let Some(span) = finding.span {
                    prop_assert!(source.get(span.offset as usize..(span.offset + span.length) as usize).is_some());
                    prop_assert!(span.line as usize <= source.split('\n').count());
                }
            }
            let report = lint::report(&findings, "some/SKILL.md", source, lint::ReportStyle::default());
            prop_assert!(!report.chars().any(|c| c.is_control() && c != '\n'));
        }
    }

    #[test]
    fn fix_preserves_the_content_of_a_file(bytes in mutated()) {
        check_fix(&bytes)?;
    }
}
