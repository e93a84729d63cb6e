//! The catalogue in a client's eyes: what it finds, repairs, drops and shadows. Follows the facts of
//! the client's profile; where the fact about a bundle's defect is unknown, that is what is told.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{ClientView, ClientViewEntry, ClientViewState};
use crate::config::Config;
use crate::registry::{Catalogue, RootOrigin};
use crate::skill::client::{Depth, Fact, Handling, NameFrom, Profile, SameName, Scope};
use crate::skill::lint::rules;
use crate::skill::{Finding, Skill};

/// The folders that a client looks into, the one that wins a name first. A folder named on the command
/// line, and the shipped skills, stand for the client's own: who names one asks what the client would
/// make of it.
fn places(profile: &Profile, catalogue: &Catalogue, config: &Config) -> Vec<PathBuf> {
    let named = catalogue
        .roots
        .iter()
        .filter(|root| matches!(root.origin, RootOrigin::Argument | RootOrigin::Shipped));
    let mut places: Vec<PathBuf> = named.map(|root| root.path.clone()).collect();
    let top = config.repository.as_deref().unwrap_or(&config.cwd);
    let walks_up = profile.walks_up.value() == Some(&true);
    for folder in &profile.folders {
        match folder.scope {
            Scope::User => places.push(config.dirs.home.join(&folder.path)),
            Scope::Project => {
                let up = config.cwd.ancestors().take_while(|dir| dir.starts_with(top));
                places
                    .extend(up.take(if walks_up { usize::MAX } else { 1 }).map(|dir| dir.join(&folder.path)));
            }
        }
    }
    places
}

/// Every bundle of the catalogue as the client sees it.
#[must_use]
pub fn view(profile: &Profile, catalogue: &Catalogue, config: &Config) -> ClientView {
    let places = places(profile, catalogue, config);
    let mut aliases: HashMap<&Path, Vec<&Path>> = HashMap::new();
    for alias in &catalogue.aliases {
        aliases.entry(&alias.same_as).or_default().push(&alias.location);
    }
    let one_deep = profile.depth.value() == Some(&Depth::One);
    let order = |location: &Path| {
        let others = aliases.get(location).map_or(&[][..], Vec::as_slice);
        order(location, others, &places, one_deep)
    };
    let lost = |location: &Path| {
        let others = aliases.get(location).map_or(&[][..], Vec::as_slice);
        match order_below(location, others, &places) {
            Some(place) => ClientViewState::TooDeep(places[place].clone()),
            None => ClientViewState::NotLooked,
        }
    };
    let mut found: Vec<(Option<usize>, &Skill)> = catalogue
        .entries
        .iter()
        .map(|entry| &entry.skill)
        .chain(catalogue.shadowed.iter().map(|loser| &loser.skill))
        .map(|skill| (order(&skill.location), skill.as_ref()))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.location.cmp(&b.1.location)));
    let mut winners: HashMap<String, PathBuf> = HashMap::new();
    let mut entries: Vec<ClientViewEntry> = found
        .into_iter()
        .map(|(place, skill)| {
            let mut state = if place.is_some() { handled(profile, skill) } else { lost(&skill.location) };
            if seen(&state) && profile.same_name.value() == Some(&SameName::First) {
                match winners.get(&name(profile, skill)) {
                    Some(winner) => state = ClientViewState::Shadowed(winner.clone()),
                    None => {
                        winners.insert(name(profile, skill), skill.location.clone());
                    }
                }
            }
            ClientViewEntry { skill_id: skill.id.clone(), state }
        })
        .collect();
    entries.extend(catalogue.refused.iter().map(|refusal| {
        let state = match order(&refusal.location) {
            None => lost(&refusal.location),
            Some(_) => defects(profile, &refusal.findings).unwrap_or_else(|| {
                let why = refusal.findings.last().map_or("it cannot be read", |finding| &finding.message);
                ClientViewState::Dropped(why.to_owned())
            }),
        };
        ClientViewEntry { skill_id: refusal.id.clone(), state }
    }));
    ClientView {
        client: profile.id.clone(),
        name: profile.name.clone(),
        source: profile.sources_line(),
        entries,
    }
}

/// Whether a client with a bundle in this state tells its model about it.
#[must_use]
pub fn seen(state: &ClientViewState) -> bool {
    matches!(state, ClientViewState::Found | ClientViewState::Repaired(_) | ClientViewState::Unknown(_))
}

/// Why a client does not see a bundle, without what is particular to this one: what many can be counted by. Nothing
/// for one that it sees.
#[must_use]
pub fn common_reason(
    profile: &Profile,
    findings: &[Finding],
    state: &ClientViewState,
    home: &Path,
) -> Option<String> {
    let name = &profile.name;
    let place = |place: &Path| match place.strip_prefix(home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => place.display().to_string(),
    };
    Some(match state {
        ClientViewState::Found | ClientViewState::Repaired(_) | ClientViewState::Unknown(_) => return None,
        ClientViewState::Shadowed(_) => "another skill of the same name wins".to_owned(),
        ClientViewState::NotLooked => format!("in no folder where {name} looks"),
        ClientViewState::TooDeep(below) => {
            format!("too deep: {name} takes only folders right below {}", place(below))
        }
        ClientViewState::Dropped(_) => {
            let dropped = facts(profile).into_iter().find(|(fact, codes, _)| {
                fact.value() == Some(&Handling::Dropped)
                    && findings.iter().any(|finding| codes.iter().any(|rule| rule.code == finding.code))
            });
            match (dropped, profile.longest_description.value()) {
                (Some((.., what)), _) => format!("{name} drops {what}"),
                (None, Some(longest)) => format!("a description of more than {longest} characters"),
                (None, None) => "the file cannot be read".to_owned(),
            }
        }
    })
}

/// The place of a file among the folders of the client, by any path that leads to it.
fn order(location: &Path, others: &[&Path], places: &[PathBuf], one_deep: bool) -> Option<usize> {
    places.iter().position(|place| {
        std::iter::once(&location).chain(others).any(|path| {
            path.strip_prefix(place).is_ok_and(|below| !one_deep || below.components().count() == 2)
        })
    })
}

/// The folder of the client that a file lies below, however deep.
fn order_below(location: &Path, others: &[&Path], places: &[PathBuf]) -> Option<usize> {
    order(location, others, places, false)
}

fn name(profile: &Profile, skill: &Skill) -> String {
    match profile.name_from.value() {
        Some(NameFrom::Folder) => skill
            .root_dir
            .file_name()
            .map_or_else(|| skill.name.clone(), |name| name.to_string_lossy().into_owned()),
        Some(NameFrom::Frontmatter) | None => skill.name.clone(),
    }
}

fn handled(profile: &Profile, skill: &Skill) -> ClientViewState {
    if let Some(&longest) = profile.longest_description.value() {
        let length = skill.description.chars().count();
        if length > longest as usize {
            return ClientViewState::Dropped(format!(
                "its description has {length} characters; at most {longest} are taken"
            ));
        }
    }
    defects(profile, &skill.findings).unwrap_or(ClientViewState::Found)
}

/// A fact of a profile about a defect, the rules that find it, and what it is.
type Defect<'a> = (&'a Fact<Handling>, &'static [&'static rules::Rule], &'static str);

fn facts(profile: &Profile) -> [Defect<'_>; 5] {
    [
        (
            &profile.bad_yaml,
            &[&rules::BAD_YAML, &rules::UNQUOTED_COLON, &rules::UNQUOTED_VALUE, &rules::NOT_A_MAPPING][..],
            "frontmatter that is not valid YAML",
        ),
        (
            &profile.no_frontmatter,
            &[&rules::NO_FRONTMATTER, &rules::NO_OPENING_FENCE, &rules::NO_CLOSING_FENCE],
            "a file without fenced frontmatter",
        ),
        (&profile.missing_description, &[&rules::DESCRIPTION_MISSING], "a missing description"),
        (&profile.missing_name, &[&rules::NAME_MISSING], "a missing name"),
        (&profile.name_not_folder, &[&rules::NAME_NOT_FOLDER], "a name that is not its folder's"),
    ]
}

/// What the client makes of the defects that a file has: dropped for any, else unknown, else repaired.
fn defects(profile: &Profile, findings: &[Finding]) -> Option<ClientViewState> {
    let (mut repaired, mut unknown) = (None, None);
    for (fact, codes, what) in facts(profile) {
        let defect = findings.iter().find(|finding| codes.iter().any(|rule| rule.code == finding.code));
        match (defect, fact.value()) {
            (Some(finding), Some(Handling::Dropped)) => {
                return Some(ClientViewState::Dropped(finding.message.clone()));
            }
            (Some(_), Some(Handling::Repaired(how))) => {
                repaired.get_or_insert_with(|| ClientViewState::Repaired(how.clone()));
            }
            (Some(_), None) => {
                unknown.get_or_insert_with(|| {
                    let client = &profile.name;
                    ClientViewState::Unknown(format!("nobody has published what {client} does with {what}"))
                });
            }
            _ => {}
        }
    }
    unknown.or(repaired)
}

#[cfg(test)]
mod tests {
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
        let skills =
            vec![at("/home/ann/repo/.codex/skills/a", "a"), at("/home/ann/repo/.claude/skills/b", "b")];
        let states = see("codex", skills);
        assert_eq!(states.iter().filter(|s| **s == ClientViewState::Found).count(), 1);
        assert_eq!(states.iter().filter(|s| **s == ClientViewState::NotLooked).count(), 1);
    }

    #[test]
    fn a_skill_deeper_than_a_client_looks_is_told_apart_from_one_elsewhere() {
        let deep = vec![at("/home/ann/.claude/skills/group/a", "a"), at("/home/ann/.claude/skills/b", "b")];
        let place = PathBuf::from("/home/ann/.claude/skills");
        assert_eq!(
            see("claude-code", deep),
            [ClientViewState::TooDeep(place.clone()), ClientViewState::Found]
        );
        let client = client::profile("claude-code").unwrap();
        let why = common_reason(client, &[], &ClientViewState::TooDeep(place), Path::new("/home/ann"));
        assert_eq!(
            why.as_deref(),
            Some("too deep: Claude Code takes only folders right below ~/.claude/skills")
        );
    }

    #[test]
    fn reasons_are_counted_without_what_is_particular_to_one_skill() {
        let codex = client::profile("codex").unwrap();
        let reason = |length: usize| {
            let mut skill = at("/home/ann/.codex/skills/a", "a");
            skill.description = "x".repeat(length);
            common_reason(codex, &skill.findings, &handled(codex, &skill), Path::new("/"))
        };
        assert_eq!(reason(1025), reason(2000));
        assert_eq!(reason(1025).as_deref(), Some("a description of more than 1024 characters"));
        assert_eq!(reason(10), None, "what is seen has no reason");
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
        let state = defects(profile, &[skill]).unwrap();
        let told = format!("nobody has published what {} does with a missing name", profile.name);
        assert_eq!(state, ClientViewState::Unknown(told));
    }

    #[test]
    fn a_description_past_the_clients_limit_is_dropped() {
        let mut skill = at("/home/ann/.codex/skills/a", "a");
        skill.description = "x".repeat(1025);
        assert!(
            matches!(&see("codex", vec![skill])[0], ClientViewState::Dropped(why) if why.contains("1025"))
        );
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
        let view = view(client::profile("codex").unwrap(), &catalogue, &config);
        let state = |id: &str| &view.entries.iter().find(|e| e.skill_id.as_str() == id).unwrap().state;
        assert_eq!(state("a@12345678"), &ClientViewState::Found);
        assert_eq!(state("a"), &ClientViewState::Shadowed("/home/ann/repo/.agents/skills/a/SKILL.md".into()));
    }
}
