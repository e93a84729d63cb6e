//! Tests of why clients do not list bundles.

use std::fs;

use super::*;
use crate::testing;
use skills_config::Env;
use skills_registry::{Entry, Shadowed};
use skills_skill::client;

/// A home folder with a repository in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.path("repo/.git")).unwrap();
        home
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    /// Returns a skill that is written to disk.
    fn skill(&self, folder: &str, name: &str) -> Skill {
        let mut skill = testing::skill(name, name);
        skill.root_dir = self.path(folder);
        skill.location = skill.root_dir.join("SKILL.md");
        fs::create_dir_all(&skill.root_dir).unwrap();
        fs::write(&skill.location, format!("---\nname: {name}\ndescription: Does {name}.\n---\nBODY\n"))
            .unwrap();
        skill
    }

    fn config(&self) -> Config {
        Config::defaults(&self.path("repo"), &Env::at(self.path("")))
    }

    fn catalog(skills: Vec<Skill>) -> Catalog {
        let entries = skills.into_iter().map(|skill| Entry { skill: Arc::new(skill), root: 0 }).collect();
        Catalog { entries, ..Catalog::default() }
    }

    /// Returns why the client does not list each skill.
    fn whys(&self, client: &str, skills: Vec<Skill>) -> HashMap<String, String> {
        let catalog = Self::catalog(skills);
        let profile = client::profile(client).unwrap();
        let view = compute_view(
            profile,
            &catalog,
            &self.config(),
            &SkillFiles::default(),
            &ClientSettings::default(),
        );
        view.bundles
            .into_iter()
            .map(|one| (one.entry.skill_id.to_string(), one.why.unwrap_or_default()))
            .collect()
    }
}

#[test]
fn the_rule_that_skips_a_skill_is_reported() {
    let home = Home::new();
    let skills = || {
        vec![
            home.skill("repo/.codex/skills/a", "a"),
            home.skill("repo/.codex/skills/.git/hidden", "hidden"),
            home.skill("repo/.codex/skills/1/2/3/4/5/6/seventh", "seventh"),
            home.skill("repo/.claude/skills/group/deep", "deep"),
            home.skill("repo/.claude/skills/shallow", "shallow"),
            home.skill("repo/.claude/skills", "top"),
        ]
    };
    let codex = home.whys("codex", skills());
    assert_eq!(codex["a"], "");
    assert_eq!(codex["hidden"], "in a hidden folder, which Codex skips");
    assert_eq!(codex["seventh"], "nested too deep: Codex searches at most 6 levels");
    assert_eq!(codex["shallow"], "not in a folder that Codex searches");
    let claude = home.whys("claude-code", skills());
    assert_eq!(claude["shallow"], "");
    assert_eq!(claude["top"], "directly in the folder of skills; Claude Code searches only its subfolders");
    let place = home.path("repo/.claude/skills");
    let below = place.strip_prefix(home.path("")).unwrap().display().to_string();
    assert_eq!(
        claude["deep"],
        format!("nested too deep: Claude Code loads only folders directly in ~/{below}")
    );
    let inner =
        vec![home.skill("repo/skills/outer", "outer"), home.skill("repo/skills/outer/inner", "inner")];
    let openclaw = home.whys("openclaw", inner);
    assert_eq!(openclaw["inner"], "inside another skill's folder, which OpenClaw does not search");
}

#[test]
fn openclaw_reads_the_first_200_entries_of_a_folder() {
    let home = Home::new();
    let skills = (0..205).map(|n| home.skill(&format!("repo/skills/s{n:03}"), &format!("s{n:03}"))).collect();
    let whys = home.whys("openclaw", skills);
    let beyond = whys.values().filter(|why| why.starts_with("beyond the first 200 skills of a folder"));
    assert_eq!(beyond.count(), 5);
    assert_eq!((whys["s199"].as_str(), whys["s200"].is_empty()), ("", false));
}

#[test]
fn precedence_follows_the_order_of_the_client() {
    let home = Home::new();
    // This catalog has the user's folder first; the client takes the project's.
    let user = Arc::new(home.skill(".agents/skills/a", "a"));
    let mut project = home.skill("repo/.agents/skills/a", "a");
    project.id = SkillId::new("a@12345678");
    let shadowed = Shadowed {
        winner: user.location.clone(),
        skill: Arc::new(project),
        root: 1,
        lost: user.id.clone(),
        identical: false,
    };
    let catalog = Catalog {
        entries: vec![Entry { skill: user, root: 0 }],
        shadowed: vec![shadowed],
        ..Catalog::default()
    };
    let profile = client::profile("gemini-cli").unwrap();
    let view =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default());
    let state =
        |id: &str| &view.bundles.iter().find(|one| one.entry.skill_id.as_str() == id).unwrap().entry.state;
    assert_eq!(state("a@12345678"), &ClientViewState::Found);
    assert_eq!(state("a"), &ClientViewState::Shadowed(home.path("repo/.agents/skills/a/SKILL.md")));
}

#[test]
fn unpublished_facts_are_reported_as_unknown() {
    let home = Home::new();
    let skill = home.skill("repo/.cursor/skills/a", "a");
    fs::write(&skill.location, "---\ndescription: No name.\n---\nBODY\n").unwrap();
    let catalog = Home::catalog(vec![skill]);
    let profile = client::profile("cursor").unwrap();
    let view =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default());
    let message = "what Cursor does with no name is not documented".to_owned();
    assert_eq!(view.bundles[0].entry.state, ClientViewState::Unknown(message));
    assert_eq!(view.rows.len(), 1);
}

#[test]
fn reasons_are_counted_without_details_of_one_skill() {
    let home = Home::new();
    let reason = |length: usize| {
        let skill = home.skill("repo/.github/skills/a", "a");
        fs::write(&skill.location, format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(length)))
            .unwrap();
        home.whys("copilot", vec![skill])["a"].clone()
    };
    assert_eq!(reason(1025), reason(2000));
    assert_eq!(reason(1025), "a description of more than 1,024 characters");
    assert_eq!(reason(10), "", "what is seen has no reason");
}

#[test]
fn codex_built_in_skills_are_read_from_its_folder() {
    let home = Home::new();
    let own = |home: &Home| {
        let catalog = Catalog::default();
        let profile = client::profile("codex").unwrap();
        let rows = compute_view(
            profile,
            &catalog,
            &home.config(),
            &SkillFiles::default(),
            &ClientSettings::default(),
        )
        .rows;
        rows.into_iter().map(|row| (row.entry.name, row.entry.bundled)).collect::<Vec<_>>()
    };
    assert_eq!(own(&home).len(), 4, "those of its profile");
    home.skill(".codex/skills/.system/later", "later");
    home.skill(".codex/skills/mine", "mine");
    // A run of 0.169.0 unpacks more skills than it lists: one is for users only.
    home.skill(".codex/skills/.system/hidden", "hidden");
    fs::create_dir_all(home.path(".codex/skills/.system/hidden/agents")).unwrap();
    let policy = "policy:\n  allow_implicit_invocation: false\n";
    fs::write(home.path(".codex/skills/.system/hidden/agents/openai.yaml"), policy).unwrap();
    for name in ["c", "a", "d", "b"] {
        home.skill(&format!(".codex/skills/.system/{name}"), name);
    }
    let listed = [("a", true), ("b", true), ("c", true), ("d", true), ("later", true), ("mine", false)];
    assert_eq!(own(&home), listed.map(|(name, bundled)| (name.to_owned(), bundled)));
}

#[test]
fn unpacked_codex_skills_are_listed_as_built_in() {
    let home = Home::new();
    let own = home.skill(".codex/skills/.system/imagegen", "imagegen");
    let users_only = home.skill(".codex/skills/.system/installer", "installer");
    fs::create_dir_all(users_only.root_dir.join("agents")).unwrap();
    let policy = "policy:\n  allow_implicit_invocation: false\n";
    fs::write(users_only.root_dir.join("agents/openai.yaml"), policy).unwrap();
    let catalog = Home::catalog(vec![own, users_only]);
    let profile = client::profile("codex").unwrap();
    let view =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default());
    let states: Vec<_> =
        view.bundles.iter().map(|one| (one.entry.skill_id.as_str(), &one.entry.state)).collect();
    assert!(
        matches!(
            states[..],
            [("imagegen", ClientViewState::Found), ("installer", ClientViewState::ForPeople(_))]
        ),
        "{states:?}"
    );
    let entries: Vec<_> = view.rows.iter().map(|row| (row.entry.bundled, row.skill.is_some())).collect();
    assert_eq!(entries, [(true, true)]);
}

#[test]
fn dropped_file_outside_the_catalog_has_no_id() {
    let home = Home::new();
    let good = home.skill("repo/.agents/skills/tool", "tool");
    let bad = home.skill("repo/.agents/skills/node_modules/tool", "tool");
    fs::write(&bad.location, "---\nname: tool\ndescription: Bad.\nname: other\n---\n").unwrap();
    let catalog = Home::catalog(vec![good]);
    let profile = client::profile("codex").unwrap();
    let view =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default());
    let names: Vec<_> = view.others.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [bad.location.to_str().unwrap()]);
    assert_eq!(view.bundles[0].entry.state, ClientViewState::Found);
}

#[test]
fn shipped_skills_replace_folders_without_a_skill() {
    let home = Home::new();
    home.skill("cache/shipped/example", "example");
    let root = skills_registry::Root {
        path: home.path("cache/shipped"),
        label: "shipped".to_owned(),
        project_label: None,
        of_project: false,
        origin: skills_registry::RootOrigin::Shipped,
        state: skills_registry::RootState::Present,
        live: false,
    };
    let catalog = Catalog { roots: vec![root], ..Catalog::default() };
    let names = |demo: bool| {
        let profile = client::profile("openclaw").unwrap();
        let mut config = home.config();
        config.demo = demo;
        let rows =
            compute_view(profile, &catalog, &config, &SkillFiles::default(), &ClientSettings::default()).rows;
        let rows = rows.into_iter().filter(|row| !row.entry.bundled);
        rows.map(|row| row.entry.name).collect::<Vec<_>>()
    };
    assert_eq!(names(false), ["example"]);
    // This catalog has no root for the folder `skills` of a workspace; the client lists it.
    home.skill("repo/skills/mine", "mine");
    assert_eq!(names(false), ["mine"]);
    assert_eq!(names(true), ["example"], "a demonstration reads none of the user's folders");
}

#[test]
fn openclaw_follows_external_links_of_user_folders_only() {
    let home = Home::new();
    for (folder, target) in [(".agents/skills", "out/personal"), ("repo/.agents/skills", "out/project")] {
        home.skill(target, target.rsplit('/').next().unwrap());
        fs::create_dir_all(home.path(folder)).unwrap();
        std::os::unix::fs::symlink(home.path(target), home.path(&format!("{folder}/linked"))).unwrap();
    }
    let catalog = Catalog::default();
    let profile = client::profile("openclaw").unwrap();
    let rows =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default())
            .rows;
    let names: Vec<_> = rows.into_iter().filter(|row| !row.entry.bundled).map(|row| row.entry.name).collect();
    assert_eq!(names, ["personal"]);
}

#[test]
fn only_the_first_linked_folders_are_searched() {
    let home = Home::new();
    home.skill("out/a/first", "first");
    home.skill("out/z/last", "last");
    for n in 0..5_000 {
        fs::create_dir_all(home.path(&format!("out/m/{n}"))).unwrap();
    }
    home.skill("repo/.agents/skills/zz/own", "own");
    std::os::unix::fs::symlink(home.path("out"), home.path("repo/.agents/skills/linked")).unwrap();
    let catalog = Catalog::default();
    let profile = client::profile("opencode").unwrap();
    let rows =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default())
            .rows;
    let mut names: Vec<_> =
        rows.into_iter().filter(|row| !row.entry.bundled).map(|row| row.entry.name).collect();
    names.sort();
    assert_eq!(names, ["first", "own"], "the folder itself is searched completely");
    // The link as the catalog reports it.
    let mut link = testing::skill("linked", "linked");
    link.location = home.path("repo/.agents/skills/linked");
    let whys = home.whys("opencode", vec![link.clone()]);
    assert!(whys["linked"].contains("5000 folders behind links"), "{whys:?}");
    let mut linked = link;
    linked.location = home.path("repo/.claude/skills/linked");
    fs::create_dir_all(home.path("repo/.claude/skills")).unwrap();
    std::os::unix::fs::symlink(home.path("out"), &linked.location).unwrap();
    let whys = home.whys("claude-code", vec![linked]);
    assert_eq!(whys["linked"], "behind a symbolic link to a folder without SKILL.md");
}

#[test]
fn file_replaced_by_a_pipe_does_not_block() {
    let home = Home::new();
    let pipe = home.path("repo/.claude/skills/a/SKILL.md");
    fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let profile = client::profile("claude-code").unwrap();
    let config = home.config();
    let catalog = Catalog::default();
    let places = places(profile, &catalog, &config);
    let at = places.iter().position(|place| pipe.starts_with(&place.path)).unwrap();
    // As found before it was replaced.
    let found = FoundSkillFile { file: pipe.clone(), real: pipe, at: 0 };
    let known = CatalogByPath::of(&catalog);
    let one = read_candidate(profile, at, &places[at], found, &known, &SkillFiles::default());
    assert!(matches!(one.state, ClientViewState::Unknown(_)), "{:?}", one.state);
}

#[test]
fn claude_code_shows_unique_names_after_their_folder() {
    let home = Home::new();
    for (folder, name) in [("aa", "same"), ("bb", "same"), ("cc", "dd"), ("dd", "dd"), ("ee", "with blank")] {
        home.skill(&format!("repo/.claude/skills/{folder}"), name);
    }
    let catalog = Catalog::default();
    let profile = client::profile("claude-code").unwrap();
    let rows =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default())
            .rows;
    let shown = rows.into_iter().filter(|row| !row.entry.bundled);
    let shown: Vec<_> = shown.map(|row| row.entry.title.unwrap_or(row.entry.name)).collect();
    assert_eq!(shown, ["aa (same)", "bb", "cc", "dd", "ee"]);
}

#[test]
fn copilot_lists_a_folder_by_name_byte_by_byte() {
    let home = Home::new();
    for (folder, name) in
        [("a", "within"), ("b", "within"), ("c", "beta"), ("d", "_x"), ("e", "Zeta"), ("f", "1x")]
    {
        home.skill(&format!("repo/.github/skills/{folder}"), name);
    }
    home.skill("repo/.agents/skills/g", "Alpha");
    let catalog = Catalog::default();
    let profile = client::profile("copilot").unwrap();
    let rows =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default())
            .rows;
    let names: Vec<_> = rows.into_iter().filter(|row| !row.entry.bundled).map(|row| row.entry.name).collect();
    assert_eq!(names, ["1x", "Zeta", "_x", "beta", "within", "Alpha"]);
}

#[test]
fn opencode_enters_hidden_folders_of_other_clients_only() {
    let home = Home::new();
    for folder in
        ["repo/.agents", "repo/.claude", "repo/.opencode", ".config/opencode", ".claude", ".opencode"]
    {
        home.skill(&format!("{folder}/skills/.hidden/a"), folder);
    }
    let catalog = Catalog::default();
    let profile = client::profile("opencode").unwrap();
    let rows =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default())
            .rows;
    let names: Vec<_> = rows.into_iter().filter(|row| !row.entry.bundled).map(|row| row.entry.name).collect();
    assert_eq!(names, [".claude", "repo/.agents", "repo/.claude"]);
}

#[test]
fn linked_file_without_frontmatter_is_not_read() {
    let home = Home::new();
    fs::write(home.path("secret"), "the secret line\n").unwrap();
    fs::create_dir_all(home.path("repo/.claude/skills/a")).unwrap();
    std::os::unix::fs::symlink(home.path("secret"), home.path("repo/.claude/skills/a/SKILL.md")).unwrap();
    let catalog = Catalog::default();
    let profile = client::profile("claude-code").unwrap();
    let view =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default());
    assert!(
        view.rows.iter().all(|row| !row.entry.description.contains("secret")),
        "hidden skills are not listed"
    );
    assert_eq!(view.others.len(), 1);
}

#[test]
fn second_path_to_a_listed_file_is_not_a_skill_that_is_not_listed() {
    let home = Home::new();
    home.skill("repo/skills/pdf", "pdf");
    std::os::unix::fs::symlink("pdf", home.path("repo/skills/again")).unwrap();
    let catalog = Catalog::default();
    let profile = client::profile("openclaw").unwrap();
    let view =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default());
    assert_eq!((view.foreign.len(), view.others), (1, Vec::new()));
}

#[test]
fn many_skills_with_one_name_have_a_few_paths_each() {
    let home = Home::new();
    let others_of = |one: &ForeignBundle| match &one.state {
        ClientViewState::Either(others) => others.clone(),
        _ => Vec::new(),
    };
    let profile = client::profile("opencode").unwrap();
    let others = || -> Vec<Vec<PathBuf>> {
        let (config, files) = (home.config(), SkillFiles::default());
        let catalog = Catalog::default();
        let view = compute_view(profile, &catalog, &config, &files, &ClientSettings::default());
        view.foreign.iter().map(others_of).collect()
    };
    let text = |others: &[PathBuf]| crate::other_files(others, ", ", |path| path.display().to_string());
    for number in 10..15 {
        home.skill(&format!("repo/.agents/skills/p{number}/s"), "s");
    }
    let few = others();
    assert_eq!(few.iter().map(Vec::len).collect::<Vec<_>>(), [4; 5]);
    assert!(text(&few[0]).ends_with("/s/SKILL.md, 1 more"), "{}", text(&few[0]));
    for number in 15..60 {
        home.skill(&format!("repo/.agents/skills/p{number}/s"), "s");
    }
    let many = others();
    assert_eq!(many.iter().map(Vec::len).collect::<Vec<_>>(), [16; 50]);
    let shown = text(&many[0]);
    assert!(shown.ends_with("/s/SKILL.md, at least 13 more"), "{shown}");
    assert_eq!(shown.matches("SKILL.md").count(), 3);
}

#[test]
fn skill_found_only_by_the_client_has_its_state() {
    let home = Home::new();
    home.skill("repo/skills/pdf", "pdf");
    let broken = home.skill("repo/skills/broken", "broken");
    fs::write(&broken.location, "No frontmatter.\n").unwrap();
    let known = home.skill("repo/.agents/skills/known", "known");
    let catalog = Home::catalog(vec![known]);
    let profile = client::profile("openclaw").unwrap();
    let view =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default());
    let found: Vec<_> = view.foreign.iter().map(|one| (one.name.as_str(), &one.state)).collect();
    assert!(
        matches!(found[..], [("pdf", ClientViewState::Found), ("broken", ClientViewState::Dropped(_))]),
        "{found:?}"
    );
    assert_eq!(view.foreign[0].location, home.path("repo/skills/pdf/SKILL.md"));
    assert_eq!(view.foreign[0].description, "Does pdf.");
}

#[test]
fn a_skill_that_takes_the_place_of_a_built_in_one_is_the_only_one_with_its_name() {
    let home = Home::new();
    let catalog = Home::catalog(vec![home.skill(".claude/skills/init", "init")]);
    let profile = client::profile("claude-code").unwrap();
    let view =
        compute_view(profile, &catalog, &home.config(), &SkillFiles::default(), &ClientSettings::default());
    assert_eq!(view.others, [], "the built-in skill is not missing");
    let named: Vec<bool> =
        view.rows.iter().filter(|row| row.entry.name == "init").map(|row| row.entry.bundled).collect();
    assert_eq!(named, [false]);
}

#[test]
fn links_to_one_folder_are_scanned_once() {
    let home = Home::new();
    home.skill("out/a", "a");
    fs::create_dir_all(home.path("repo/.claude/skills")).unwrap();
    let config = home.config();
    let profile = client::profile("claude-code").unwrap();
    let mut scanned = ScannedLinks::default();
    let mut found = 0;
    for n in 0..3 {
        let link = home.path(&format!("repo/.claude/skills/l{n}"));
        std::os::unix::fs::symlink(home.path("out"), &link).unwrap();
        let places = places(profile, &Catalog::default(), &config);
        let place = places.iter().find(|place| link.starts_with(&place.path)).unwrap();
        found += place.files_behind(&link, &mut scanned).len();
    }
    assert_eq!(found, 1);
}
