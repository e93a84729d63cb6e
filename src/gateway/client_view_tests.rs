//! What clients make of the same bundles.

use std::sync::Arc;

use super::*;
use crate::config::Env;
use crate::gateway::testing;
use crate::registry::{Entry, Shadowed};
use crate::skill::{Severity, client};

fn at(path: &str, name: &str) -> Skill {
    let mut skill = testing::skill(name, name);
    skill.location = PathBuf::from(path).join("SKILL.md");
    skill.root_dir = path.into();
    skill
}

fn finding(code: &str) -> Finding {
    let mut finding = testing::refused("x", "what is wrong").findings.remove(0);
    (finding.code, finding.severity) = (code.to_owned(), Severity::Error);
    finding
}

fn see(client: &str, skills: Vec<Skill>) -> Vec<ClientViewState> {
    let config = Config::defaults(Path::new("/home/ann/repo"), &Env::at("/home/ann"));
    let entries = skills.into_iter().map(|skill| Entry { skill: Arc::new(skill), root: 0 }).collect();
    let catalogue = Catalogue { entries, ..Catalogue::default() };
    let view = view(client::profile(client).unwrap(), &catalogue, &config);
    view.entries.into_iter().map(|entry| entry.state).collect()
}

#[test]
fn a_client_looks_into_its_own_folders_only() {
    let skills = vec![at("/home/ann/repo/.codex/skills/a", "a"), at("/home/ann/repo/.claude/skills/b", "b")];
    let states = see("codex", skills);
    assert_eq!(states.iter().filter(|s| **s == ClientViewState::Found).count(), 1);
    assert_eq!(states.iter().filter(|s| **s == ClientViewState::NotLooked).count(), 1);
}

#[test]
fn a_skill_deeper_than_a_client_looks_is_told_apart_from_one_elsewhere() {
    let deep = vec![at("/home/ann/.claude/skills/group/a", "a"), at("/home/ann/.claude/skills/b", "b")];
    let place = PathBuf::from("/home/ann/.claude/skills");
    assert_eq!(see("claude-code", deep), [ClientViewState::TooDeep(place.clone()), ClientViewState::Found]);
    let (why, _) = listed("claude-code", vec![at("/home/ann/.claude/skills/group/a", "a")]).remove(0);
    assert_eq!(why, "too deep: Claude Code takes only folders right below ~/.claude/skills");
}

/// Names in the client's order, with `""` before those that it lists, else why it does not.
fn listed(client: &str, skills: Vec<Skill>) -> Vec<(String, String)> {
    let config = Config::defaults(Path::new("/home/ann/repo"), &Env::at("/home/ann"));
    let entries = skills.into_iter().map(|skill| Entry { skill: Arc::new(skill), root: 0 }).collect();
    let catalogue = Catalogue { entries, ..Catalogue::default() };
    let sight = sight(client::profile(client).unwrap(), &catalogue, &config);
    let row = |judged: Judged<'_>| (judged.why.unwrap_or_default(), judged.location.display().to_string());
    sight.bundles.into_iter().map(row).collect()
}

#[test]
fn reasons_are_counted_without_what_is_particular_to_one_skill() {
    let reason = |length: usize| {
        let mut skill = at("/home/ann/.codex/skills/a", "a");
        skill.description = "x".repeat(length);
        listed("codex", vec![skill]).remove(0).0
    };
    assert_eq!(reason(1025), reason(2000));
    assert_eq!(reason(1025), "a description of more than 1024 characters");
    assert_eq!(reason(10), "", "what is seen has no reason");
}

#[test]
fn codex_lists_by_scope_then_name_and_goes_into_no_hidden_folder() {
    let found = listed(
        "codex",
        vec![
            at("/home/ann/.codex/skills/one", "alpha"),
            at("/home/ann/repo/.codex/skills/z", "zeta"),
            at("/home/ann/repo/.codex/skills/b/c/d", "Beta"),
            at("/home/ann/repo/.agents/skills/z", "zeta"),
            at("/home/ann/repo/.codex/skills/.git/x", "hidden"),
            at("/home/ann/repo/.codex/skills/1/2/3/4/5/6/7", "seventh"),
        ],
    );
    let seen: Vec<&str> =
        found.iter().filter(|(why, _)| why.is_empty()).map(|(_, path)| path.as_str()).collect();
    let wanted =
        ["repo/.codex/skills/b/c/d", "repo/.agents/skills/z", "repo/.codex/skills/z", ".codex/skills/one"];
    assert_eq!(seen, wanted.map(|path| format!("/home/ann/{path}/SKILL.md")), "both of one name stay");
    let whys: Vec<&str> = found.iter().map(|(why, _)| why.as_str()).filter(|why| !why.is_empty()).collect();
    assert!(whys.contains(&"in a hidden folder: Codex goes into none"), "{whys:?}");
    assert!(whys.contains(&"too deep: Codex looks 6 folders down at most"), "{whys:?}");
}

#[test]
fn openclaw_takes_200_of_a_folder_two_levels_down_and_sorts_them_as_english_does() {
    let mut skills: Vec<Skill> =
        (0..205).map(|n| at(&format!("/home/ann/repo/skills/s{n:03}"), &format!("s{n:03}"))).collect();
    skills.push(at("/home/ann/repo/.agents/skills/x", "Zebra"));
    skills.push(at("/home/ann/repo/.agents/skills/y", "apple_pie"));
    skills.push(at("/home/ann/repo/.agents/skills/g/z", "apple-pie"));
    skills.push(at("/home/ann/repo/.agents/skills/g/h/i", "deep"));
    skills.push(at("/home/ann/repo/.agents/skills/y/inner", "inner"));
    // The project's first folder wins the name, in one folder the later.
    skills.push(at("/home/ann/repo/.agents/skills/a-first", "s001"));
    skills.push(at("/home/ann/repo/.agents/skills/q1", "twice"));
    skills.push(at("/home/ann/repo/.agents/skills/q2", "twice"));
    let found = listed("openclaw", skills);
    let seen: Vec<&str> =
        found.iter().filter(|(why, _)| why.is_empty()).map(|(_, path)| path.as_str()).collect();
    assert_eq!(seen.len(), 204, "200 and four");
    assert!(seen[0].ends_with("/y/SKILL.md") && seen[1].ends_with("/g/z/SKILL.md"), "_ before -: {seen:?}");
    assert!(seen[2].ends_with("/s000/SKILL.md") && seen[203].ends_with("/x/SKILL.md"), "{:?}", &seen[200..]);
    assert!(seen.iter().any(|path| path.ends_with("/q2/SKILL.md")));
    let count = |start: &str| found.iter().filter(|(why, _)| why.starts_with(start)).count();
    assert_eq!(count("beyond the first 200 skills of a folder"), 5);
    assert_eq!(count("too deep: OpenClaw looks 2 folders down at most"), 1);
    assert_eq!(count("inside another skill's folder"), 1);
    assert_eq!(count("another skill of the same name wins"), 2);
}

#[test]
fn gemini_lists_the_weakest_folder_first_and_claude_code_in_an_order_that_nobody_published() {
    let skills = || {
        vec![
            at("/home/ann/repo/.agents/skills/a", "a"),
            at("/home/ann/.gemini/skills/b", "b"),
            at("/home/ann/.gemini/skills/.h", "h"),
        ]
    };
    let found = listed("gemini-cli", skills());
    let seen: Vec<&str> =
        found.iter().filter(|(why, _)| why.is_empty()).map(|(_, path)| path.as_str()).collect();
    assert_eq!(seen, ["/home/ann/.gemini/skills/b/SKILL.md", "/home/ann/repo/.agents/skills/a/SKILL.md"]);
    assert_eq!(client::profile("claude-code").unwrap().order.value(), None);
}

#[test]
fn a_link_out_of_the_root_is_not_put_down_to_the_client() {
    let config = Config::defaults(Path::new("/home/ann/repo"), &Env::at("/home/ann"));
    let mut refusal = testing::refused("linked", "the link leads to /srv/linked, out of the root");
    refusal.location = "/home/ann/.codex/skills/linked".into();
    refusal.reason = RefusalReason::LeavesRoot;
    let catalogue = Catalogue { refused: vec![refusal], ..Catalogue::default() };
    let sight = sight(client::profile("codex").unwrap(), &catalogue, &config);
    let why = sight.bundles[0].why.as_deref().unwrap();
    assert_eq!(why, "a link that leads out of its root: not read here, whatever Codex does with it");
}

#[test]
fn a_malformed_file_is_dropped_by_one_client_and_repaired_by_another() {
    let broken = |path: &str| {
        let mut skill = at(path, "a");
        skill.findings = vec![finding("unquoted-colon")];
        vec![skill]
    };
    let codex = see("codex", broken("/home/ann/.codex/skills/a"));
    assert_eq!(codex, [ClientViewState::Dropped("what is wrong".into())]);
    let gemini = see("gemini-cli", broken("/home/ann/.gemini/skills/a"));
    assert!(
        matches!(&gemini[0], ClientViewState::Repaired(how) if how.contains("line by line")),
        "{gemini:?}"
    );
}

#[test]
fn what_nobody_published_is_told_and_not_taken_for_found() {
    let all = client::profiles().iter().find(|profile| profile.missing_name.value().is_none());
    let profile = all.expect("a profile with an unknown fact");
    let skill = finding(rules::NAME_MISSING.code);
    let (state, why) = defects(profile, &[skill]).unwrap();
    let told = format!("nobody has published what {} does with a missing name", profile.name);
    assert_eq!((state, why), (ClientViewState::Unknown(told), None));
}

#[test]
fn a_description_past_the_clients_limit_is_dropped() {
    let mut skill = at("/home/ann/.codex/skills/a", "a");
    skill.description = "x".repeat(1025);
    assert!(matches!(&see("codex", vec![skill])[0], ClientViewState::Dropped(why) if why.contains("1025")));
}

#[test]
fn the_clients_order_decides_who_wins_not_ours() {
    let config = Config::defaults(Path::new("/home/ann/repo"), &Env::at("/home/ann"));
    // Ours has the user's folder first here; the client takes the project's.
    let user = Arc::new(at("/home/ann/.agents/skills/a", "a"));
    let mut project = at("/home/ann/repo/.agents/skills/a", "a");
    project.id = crate::skill::SkillId::new("a@12345678");
    let shadowed = Shadowed {
        winner: user.location.clone(),
        skill: Arc::new(project),
        root: 1,
        lost: user.id.clone(),
        identical: false,
    };
    let catalogue = Catalogue {
        entries: vec![Entry { skill: user, root: 0 }],
        shadowed: vec![shadowed],
        ..Catalogue::default()
    };
    let view = view(client::profile("gemini-cli").unwrap(), &catalogue, &config);
    let state = |id: &str| &view.entries.iter().find(|e| e.skill_id.as_str() == id).unwrap().state;
    assert_eq!(state("a@12345678"), &ClientViewState::Found);
    assert_eq!(state("a"), &ClientViewState::Shadowed("/home/ann/repo/.agents/skills/a/SKILL.md".into()));
}

#[test]
fn what_people_alone_call_is_kept_from_the_models_of_clients_that_heed_it() {
    let marked = |path: &str| {
        let mut skill = at(path, "a");
        skill.clients.disable_model_invocation = true;
        vec![skill]
    };
    let said = ClientViewState::ForPeople("disable-model-invocation".to_owned());
    assert_eq!(see("claude-code", marked("/home/ann/.claude/skills/a")), [said]);
    let codex = see("codex", marked("/home/ann/.codex/skills/a"));
    assert_eq!(codex, [ClientViewState::Found], "Codex asks another file");
    let unknown = see("goose", marked("/home/ann/.claude/skills/a"));
    assert!(matches!(&unknown[..], [ClientViewState::Unknown(why)] if why.contains("nobody has published")));
}

#[test]
fn codex_asks_a_file_beside_the_instructions_whether_its_model_may_call_a_skill() {
    let home = tempfile::tempdir().unwrap();
    let config = Config::defaults(home.path(), &Env::at(home.path()));
    let state = |written: Option<&str>| {
        let folder = home.path().join(".codex/skills/a");
        let beside = folder.join("agents/openai.yaml");
        std::fs::create_dir_all(beside.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&beside);
        if let Some(text) = written {
            std::fs::write(&beside, text).unwrap();
        }
        let entry = Entry { skill: Arc::new(at(folder.to_str().unwrap(), "a")), root: 0 };
        let catalogue = Catalogue { entries: vec![entry], ..Catalogue::default() };
        let view = view(client::profile("codex").unwrap(), &catalogue, &config);
        view.entries.into_iter().next().unwrap().state
    };
    let kept = state(Some("interface: {display_name: A}\npolicy:\n  allow_implicit_invocation: false\n"));
    assert!(
        matches!(&kept, ClientViewState::ForPeople(said) if said.contains("agents/openai.yaml")),
        "{kept:?}"
    );
    let others =
        [None, Some("policy: {allow_implicit_invocation: true}\n"), Some("interface: {}\n"), Some(": : :")];
    for written in others {
        assert_eq!(state(written), ClientViewState::Found, "{written:?}");
    }
}
