//! All profiles load, and every value in them names its source.

use super::*;

fn known() -> Vec<(&'static Path, Vec<Profile>)> {
    let loaded = |(path, text): (&'static Path, &str)| {
        (path, load(text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    };
    shipped_files().map(loaded).collect()
}

#[test]
fn every_profile_loads_under_its_files_name() {
    let mut ids = Vec::new();
    for (path, profiles) in known() {
        for profile in profiles {
            assert_eq!(path.file_stem().unwrap().to_str().unwrap(), profile.id);
            ids.push(profile.id);
        }
    }
    ids.sort();
    ids.dedup();
    let known = ["claude-code", "codex", "copilot", "cursor", "gemini-cli", "goose", "openclaw", "opencode"];
    assert_eq!(ids, known);
    assert_eq!(profiles().len(), known.len());
}

#[test]
fn every_value_has_source_version_and_date() {
    for (path, profiles) in known() {
        for profile in profiles {
            let tree = serde_json::to_value(&profile).unwrap();
            let mut used = Vec::new();
            collect(&tree, &mut used);
            for key in &used {
                assert!(profile.sources.contains_key(key), "{}: no source `{key}`", path.display());
            }
            for (key, source) in &profile.sources {
                assert!(used.contains(key), "{}: source `{key}` is not used", path.display());
                let public = source.url.as_deref().is_some_and(|url| url.starts_with("https://"));
                assert_eq!(public, source.how != How::Run, "{}: {key}", path.display());
                assert!(!source.client_version.is_empty(), "{key}");
                if source.how == How::Run {
                    assert_eq!(
                        Some(&source.client_version),
                        profile.measured_at.as_ref(),
                        "{}",
                        path.display()
                    );
                }
                assert!(
                    source.date.len() == 10 && source.date.split('-').count() == 3,
                    "{key}: {}",
                    source.date
                );
            }
        }
    }
}

fn collect(value: &Value, used: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(source)) = map.get("source") {
                used.push(source.clone());
            }
            map.values().for_each(|value| collect(value, used));
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, used)),
        _ => {}
    }
}

#[test]
fn version_selects_the_profile_of_its_range() {
    let version = |id: &str| profile(id).and_then(|profile| profile.measured_at.as_deref());
    assert_eq!(version("claude-code"), Some("2.1.330"));
    assert_eq!(version("claude-code@2.2.0"), Some("2.1.330"));
    assert_eq!(version("claude-code@2.1.330"), Some("2.1.330"));
    assert_eq!(version("claude-code@2.1.197"), Some("2.1.197"));
    assert_eq!(profile("claude-code@2.1.197").unwrap().same_name.value(), Some(&SameName::All));
    assert_eq!(profile("claude-code").unwrap().same_name.value(), Some(&SameName::First));
    assert!(profile("codex@0.1.0").is_none(), "that version was not measured");
    assert!(profile("cursor@7").is_some() && profile("emacs").is_none());
}

#[test]
fn unknown_and_known_facts_are_distinguished() {
    let facts: BTreeMap<String, Fact<Handling>> = serde_saphyr::from_str(
        "a: unknown\nb: {is: dropped, source: s}\nc: {is: {repaired: how}, source: s}\n",
    )
    .unwrap();
    assert_eq!(facts["a"].value(), None);
    assert_eq!(facts["b"].value(), Some(&Handling::Dropped));
    assert_eq!(facts["c"].value(), Some(&Handling::Repaired("how".to_owned())));
    assert!(serde_saphyr::from_str::<Fact<Handling>>("{is: dropped}").is_err());
}

#[test]
fn a_list_as_description_is_json_for_openclaw() {
    let openclaw = profile("openclaw").unwrap();
    for text in ["[a, b]", "\n- a\n- b"] {
        let source = format!("---\nname: x\ndescription: {text}\n---\nBody\n");
        match read(openclaw, &SkillFile::of(source.as_bytes()), "x") {
            ParseOutcome::Listed(read) => assert_eq!(read.description, r#"["a","b"]"#, "{text:?}"),
            dropped @ ParseOutcome::Dropped { .. } => panic!("{dropped:?}"),
        }
    }
}

#[test]
fn defect_not_repaired_by_quotes_is_another_kind() {
    let source = "---\nname: x\ndescription: \"Makes bills.\ntags: [a, b\n---\n# Title\n";
    let file = SkillFile::of(source.as_bytes());
    assert_eq!(file.defects, [YamlDefect::Other]);
    match read(profile("claude-code").unwrap(), &file, "x") {
        ParseOutcome::Listed(read) => {
            assert_eq!((read.description.as_str(), read.unknown, read.other_text), ("Title", None, true));
        }
        dropped @ ParseOutcome::Dropped { .. } => panic!("{dropped:?}"),
    }
}
