//! The shipped skills: valid by the specification, of every kind, and
//! with a golden set that is worth measuring against.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use skills_skill::{AttachTarget, EffectMode, Invocation, Kind, Role, Skill, Status};
use strum::IntoEnumIterator;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("skills")
}

fn shipped() -> BTreeMap<String, Skill> {
    let mut skills = BTreeMap::new();
    for entry in std::fs::read_dir(root()).unwrap() {
        let location = entry.unwrap().path().join("SKILL.md");
        if location.is_file() {
            let skill = skills_skill::read_bundle(&location).unwrap_or_else(|refusal| panic!("{refusal:?}"));
            skills.insert(skill.id.as_str().to_owned(), skill);
        }
    }
    assert!(skills.len() >= 12, "only {} skills", skills.len());
    skills
}

#[test]
fn every_shipped_skill_is_clean() {
    for (id, skill) in shipped() {
        let source = std::fs::read_to_string(&skill.location).unwrap();
        // Truncation by one client is acceptable, as long as the others list it in full.
        let mut findings = skills_skill::lint::bundle(&skill, &source);
        findings.retain(|finding| finding.code != skills_skill::lint::rules::DESCRIPTION_OVER_220.code);
        assert_eq!(findings, [], "{id}");
        assert_eq!(skill.name, id);
        assert!(skill.properties.unknown.is_empty(), "{id} has keys that the specification does not know");
        assert!(skill.properties.license.is_some(), "{id} has no license");
        assert!(skill.body_lines < 150, "{id} is long; details belong into references/");
    }
}

#[test]
fn every_shipped_skill_is_classified() {
    for (id, skill) in shipped() {
        let class = &skill.classification;
        assert!(!class.role.inferred && !class.invocation.inferred && !class.effect_mode.inferred, "{id}");
        assert!(!skill.kind.inferred && !skill.status.inferred, "{id}");
        assert!(skill.domain.as_ref().is_some_and(|domain| !domain.inferred), "{id}");
        assert!((2..=6).contains(&skill.tags.len()), "{id}: {:?}", skill.tags);
        let has_scripts = skill.root_dir.join("scripts").is_dir();
        assert!(!has_scripts || skill.kind.value == Kind::Tool, "{id} has scripts, so it is a tool");
        assert!(
            skill.description.contains("Use ")
                || skill.description.contains("Attach ")
                || skill.status.value == Status::Deprecated,
            "{id} does not say when"
        );
        assert!(
            skill.description.contains("Not ") || skill.description.contains(" not "),
            "{id} does not say what it is not for"
        );
    }
}

#[test]
fn shipped_skills_cover_every_classification() {
    let skills = shipped();
    let all = || skills.values();
    let classes: Vec<_> = all().map(|skill| &skill.classification).collect();
    for role in Role::iter() {
        assert!(classes.iter().any(|c| c.role.value == role), "no {role}");
    }
    for invocation in Invocation::iter() {
        assert!(classes.iter().any(|c| c.invocation.value == invocation), "no {invocation}");
    }
    for effect in EffectMode::iter() {
        assert!(classes.iter().any(|c| c.effect_mode.value == effect), "no {effect}");
    }
    for target in AttachTarget::iter() {
        assert!(classes.iter().any(|c| c.attach_targets.contains(&target)), "no skill for a {target}");
    }
    for kind in Kind::iter() {
        assert!(all().any(|skill| skill.kind.value == kind), "no {kind}");
    }
    for status in [Status::Stable, Status::Experimental, Status::Deprecated] {
        assert!(all().any(|skill| skill.status.value == status), "no {}", status.as_str());
    }
    for folder in ["scripts", "references", "assets"] {
        assert!(all().any(|skill| skill.root_dir.join(folder).is_dir()), "none has {folder}/");
    }
    for skill in all() {
        for required in &skill.requires {
            assert!(skills.contains_key(required), "{} requires {required}, which is not here", skill.id);
        }
    }
}

#[test]
fn every_file_of_a_bundle_is_named_in_its_instructions() {
    for (id, skill) in shipped() {
        let source = std::fs::read_to_string(&skill.location).unwrap();
        for file in skills_skill::bundle_files(&skill.open().unwrap()).unwrap() {
            // Files that the engine reads are named in `skill.yaml`; instructions are for the model.
            let contract = ["skill.yaml", "capabilities/", "bindings/"];
            if contract.iter().any(|part| file.path.starts_with(part)) {
                continue;
            }
            assert!(source.contains(&file.path), "{id} never says what {} is for", file.path);
        }
    }
}

#[derive(Deserialize)]
struct Golden {
    query: String,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Expect {
    Ids(Vec<String>),
    Word(String),
}

fn golden() -> Vec<Golden> {
    let text = std::fs::read_to_string(root().join("golden.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

#[test]
fn the_golden_set_is_large_enough_and_names_skills_that_can_win() {
    let skills = shipped();
    let golden = golden();
    let none = golden.iter().filter(|g| matches!(&g.expect, Expect::Word(_))).count();
    assert!(golden.len() - none >= 60 && none >= 15, "{} queries, {none} of them fit none", golden.len());
    let mut query_counts = BTreeMap::<&str, usize>::new();
    for entry in &golden {
        match &entry.expect {
            Expect::Word(word) => assert_eq!(word, "none", "{}", entry.query),
            Expect::Ids(ids) => {
                assert!(!ids.is_empty(), "{}", entry.query);
                for id in ids {
                    let skill = skills.get(id).unwrap_or_else(|| panic!("{}: no skill {id}", entry.query));
                    assert_ne!(skill.classification.role.value, Role::Sidecar, "{}", entry.query);
                    assert_ne!(skill.status.value, Status::Deprecated, "{}", entry.query);
                    *query_counts.entry(skill.id.as_str()).or_default() += 1;
                }
            }
        }
    }
    for (id, skill) in &skills {
        let can_win =
            skill.classification.role.value != Role::Sidecar && skill.status.value != Status::Deprecated;
        let queries = query_counts.get(id.as_str()).copied().unwrap_or(0);
        assert!(!can_win || queries >= 5, "{id} is asked for by {queries} queries only");
    }
}

#[test]
fn golden_queries_are_unique_and_not_copied_descriptions() {
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        parts.map(str::to_lowercase).collect()
    };
    let runs =
        |text: &str| -> BTreeSet<Vec<String>> { words(text).windows(5).map(<[String]>::to_vec).collect() };
    let skills = shipped();
    let mut seen = BTreeSet::new();
    for entry in golden() {
        assert!(seen.insert(words(&entry.query)), "asked twice: {}", entry.query);
        for (id, skill) in &skills {
            let shared = runs(&entry.query).intersection(&runs(&skill.description)).next().cloned();
            assert_eq!(shared, None, "`{}` repeats the description of {id}", entry.query);
        }
    }
}
