//! The catalogue in a client's eyes: what it finds, repairs, drops and shadows, and in which order it lists it. Follows
//! the facts of the client's profile; where the fact about a bundle's defect is unknown, that is what is told.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::client_people;
use super::client_reach::{Missed, Place};
use super::{ClientView, ClientViewEntry, ClientViewState};
use crate::config::Config;
use crate::registry::{Catalogue, RootOrigin};
use crate::skill::client::{Fact, Handling, NameFrom, Order, Profile, SameName, Scope};
use crate::skill::lint::rules;
use crate::skill::{Finding, Refusal, RefusalReason, Skill, SkillId};

/// A bundle of the catalogue as a client takes it.
pub struct Judged<'a> {
    /// Its id here.
    pub id: &'a SkillId,
    /// The skill; none for a bundle that is refused here.
    pub skill: Option<&'a Arc<Skill>>,
    /// What the client does with it.
    pub state: ClientViewState,
    /// Why the client does not list it, without what is particular to this one: what many can be counted by.
    pub why: Option<String>,
    /// What the client calls it.
    pub name: String,
    location: &'a Path,
    /// Which of the client's folders it lies in, and when the client comes to it there.
    place: Option<(usize, usize)>,
}

/// Everything that lies in the catalogue, judged.
pub struct Sight<'a> {
    /// The bundles, in the order in which the client lists them where that is known, else in the catalogue's.
    pub bundles: Vec<Judged<'a>>,
    /// The folders that the client looks into, the one that wins a name first.
    pub folders: Vec<PathBuf>,
}

/// What becomes of a bundle, and why in words that hold for all of its kind.
type Fate = (ClientViewState, Option<String>);

/// The folders that a client looks into, the one that wins a name first. A folder named on the command line, and the
/// shipped skills, stand for the client's own: who names one asks what the client would make of it.
fn places(profile: &Profile, catalogue: &Catalogue, config: &Config) -> Vec<Place> {
    let named = catalogue.roots.iter().filter_map(|root| match root.origin {
        RootOrigin::Argument => Some((root.path.clone(), Scope::Project)),
        RootOrigin::Shipped => Some((root.path.clone(), Scope::User)),
        _ => None,
    });
    let mut places: Vec<(PathBuf, Scope)> = named.collect();
    let top = config.repository.as_deref().unwrap_or(&config.cwd);
    let walks_up = profile.walks_up.value() == Some(&true);
    for folder in &profile.folders {
        match folder.scope {
            Scope::User => places.push((config.dirs.home.join(&folder.path), Scope::User)),
            Scope::Project => {
                let up = config.cwd.ancestors().take_while(|dir| dir.starts_with(top));
                let up = up.take(if walks_up { usize::MAX } else { 1 });
                places.extend(up.map(|dir| (dir.join(&folder.path), Scope::Project)));
            }
        }
    }
    places.into_iter().map(|(path, scope)| Place::new(path, scope, profile)).collect()
}

/// Every bundle of the catalogue as the client takes it. Looks at the client's folders where it reads a part of them
/// alone.
#[must_use]
pub fn sight<'a>(profile: &Profile, catalogue: &'a Catalogue, config: &Config) -> Sight<'a> {
    let places = places(profile, catalogue, config);
    let mut aliases: HashMap<&Path, Vec<&Path>> = HashMap::new();
    for alias in &catalogue.aliases {
        aliases.entry(&alias.same_as).or_default().push(&alias.location);
    }
    let losers = catalogue.shadowed.iter().map(|loser| &loser.skill);
    let all: Vec<&Arc<Skill>> = catalogue.entries.iter().map(|entry| &entry.skill).chain(losers).collect();
    let inside_none = profile.reading.value().is_none_or(|reading| !reading.stops_at_skill);
    let skills: HashSet<&Path> =
        if inside_none { HashSet::new() } else { all.iter().map(|skill| skill.root_dir.as_path()).collect() };
    let looked = |location: &'a Path| {
        let others = aliases.get(location).map_or(&[][..], Vec::as_slice);
        look(location, others, &places, profile, (&skills, &config.dirs.home))
    };
    let mut bundles: Vec<Judged<'a>> = all
        .into_iter()
        .map(|skill| {
            let (place, lost) = looked(&skill.location);
            let (state, why) = lost.unwrap_or_else(|| handled(profile, skill));
            let name = called(profile, skill);
            Judged { id: &skill.id, skill: Some(skill), state, why, name, location: &skill.location, place }
        })
        .collect();
    bundles.extend(catalogue.refused.iter().map(|refusal| {
        let (place, lost) = looked(&refusal.location);
        let (state, why) = lost.unwrap_or_else(|| refused(profile, refusal));
        let (name, location) = (refusal.id.to_string(), refusal.location.as_path());
        Judged { id: &refusal.id, skill: None, state, why, name, location, place }
    }));
    first_of_each_folder(&mut bundles, profile, places.len());
    one_of_each_name(&mut bundles, profile);
    kept_for_people(&mut bundles, profile);
    in_order(&mut bundles, profile, &places);
    Sight { bundles, folders: places.into_iter().map(|place| place.path).collect() }
}

/// The same for adapters.
#[must_use]
pub fn view(profile: &Profile, catalogue: &Catalogue, config: &Config) -> ClientView {
    let entries = sight(profile, catalogue, config)
        .bundles
        .into_iter()
        .map(|judged| ClientViewEntry { skill_id: judged.id.clone(), state: judged.state })
        .collect();
    let (client, name) = (profile.id.clone(), profile.name.clone());
    ClientView { client, name, source: profile.sources_line(), entries }
}

/// Whether a client with a bundle in this state tells its model about it.
fn seen(state: &ClientViewState) -> bool {
    matches!(state, ClientViewState::Found | ClientViewState::Repaired(_) | ClientViewState::Unknown(_))
}

/// The place of a file among the folders of the client, by any path that leads to it; or what keeps the client from it.
fn look(
    location: &Path,
    others: &[&Path],
    places: &[Place],
    profile: &Profile,
    (skills, home): (&HashSet<&Path>, &Path),
) -> (Option<(usize, usize)>, Option<Fate>) {
    let mut missed = None;
    for (which, place) in places.iter().enumerate() {
        for path in std::iter::once(&location).chain(others) {
            match place.reached(path, profile, skills) {
                Some(Ok(at)) => return (Some((which, at)), None),
                Some(Err(why)) => {
                    missed.get_or_insert((why, place));
                }
                None => {}
            }
        }
    }
    let name = &profile.name;
    let fate = match missed {
        None => (ClientViewState::NotLooked, format!("in no folder where {name} looks")),
        Some((Missed::TooDeep, place)) => (
            ClientViewState::TooDeep(place.path.clone()),
            format!("too deep: {name} takes only folders right below {}", from_home(&place.path, home)),
        ),
        Some((Missed::Because(why), _)) => (ClientViewState::NotRead(why.clone()), why),
    };
    (None, Some((fate.0, Some(fate.1))))
}

fn from_home(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => path.display().to_string(),
    }
}

/// A client that takes so many skills of a folder takes those that it comes to first.
fn first_of_each_folder(bundles: &mut [Judged<'_>], profile: &Profile, places: usize) {
    let Some(most) = profile.reading.value().and_then(|reading| reading.skills) else { return };
    for which in 0..places {
        let mut here: Vec<&mut Judged<'_>> = bundles
            .iter_mut()
            .filter(|judged| judged.place.is_some_and(|(place, _)| place == which) && seen(&judged.state))
            .collect();
        here.sort_by(|a, b| a.place.cmp(&b.place).then_with(|| a.location.cmp(b.location)));
        for judged in here.into_iter().skip(most as usize) {
            let why = format!(
                "beyond the first {most} skills of a folder, which is all that {} takes",
                profile.name
            );
            judged.state = ClientViewState::NotRead(why.clone());
            judged.why = Some(why);
        }
    }
}

fn one_of_each_name(bundles: &mut [Judged<'_>], profile: &Profile) {
    let last = match profile.same_name.value() {
        Some(SameName::First) => false,
        Some(SameName::LastRead) => true,
        Some(SameName::All) | None => return,
    };
    let mut all: Vec<&mut Judged<'_>> = bundles.iter_mut().filter(|judged| seen(&judged.state)).collect();
    all.sort_by(|a, b| {
        let place = |judged: &Judged<'_>| judged.place.map(|(place, _)| place);
        let inside = a.place.cmp(&b.place).then_with(|| a.location.cmp(b.location));
        place(a).cmp(&place(b)).then(if last { inside.reverse() } else { inside })
    });
    let mut winners: HashMap<String, PathBuf> = HashMap::new();
    for judged in all {
        if let Some(winner) = winners.get(&judged.name) {
            judged.state = ClientViewState::Shadowed(winner.clone());
            judged.why = Some("another skill of the same name wins".to_owned());
        } else {
            winners.insert(judged.name.clone(), judged.location.to_owned());
        }
    }
}

/// What people alone call has its name all the same, and is not told to the model.
fn kept_for_people(bundles: &mut [Judged<'_>], profile: &Profile) {
    for judged in bundles.iter_mut().filter(|judged| seen(&judged.state)) {
        match judged.skill.and_then(|skill| client_people::mark(profile, skill)) {
            Some(Ok(said)) => {
                judged.state = ClientViewState::ForPeople(said.to_owned());
                judged.why = Some(format!("for people alone: {said}"));
            }
            Some(Err(unknown)) => judged.state = ClientViewState::Unknown(unknown),
            None => {}
        }
    }
}

fn in_order(bundles: &mut [Judged<'_>], profile: &Profile, places: &[Place]) {
    let scope = |judged: &Judged<'_>| {
        judged.place.map_or(2, |(place, _)| match places[place].scope {
            Scope::Project => 0,
            Scope::User => 1,
        })
    };
    let by_path = |a: &Judged<'_>, b: &Judged<'_>| a.location.cmp(b.location);
    match profile.order.value() {
        Some(Order::ScopeNamePath) => {
            bundles.sort_by(|a, b| (scope(a), &a.name).cmp(&(scope(b), &b.name)).then_with(|| by_path(a, b)));
        }
        Some(Order::Name) => bundles.sort_by(|a, b| english(&a.name, &b.name).then_with(|| by_path(a, b))),
        Some(Order::WeakestFirst) => bundles.sort_by(|a, b| {
            let weak = |judged: &Judged<'_>| std::cmp::Reverse(judged.place.map(|(place, _)| place));
            let inside = |judged: &Judged<'_>| judged.place.map(|(_, at)| at);
            weak(a).cmp(&weak(b)).then(inside(a).cmp(&inside(b))).then_with(|| by_path(a, b))
        }),
        None => {}
    }
}

/// As English sorts names: signs, digits, letters; case decides only where nothing else does.
fn english(a: &str, b: &str) -> Ordering {
    const SIGNS: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789";
    let rank = |sign: char| match SIGNS.find(sign) {
        Some(at) => (0, at, sign),
        None => (1, 0, sign.to_lowercase().next().unwrap_or(sign)),
    };
    let case = |sign: char| sign.is_uppercase();
    a.chars()
        .map(rank)
        .cmp(b.chars().map(rank))
        .then_with(|| a.chars().map(case).cmp(b.chars().map(case)))
        .then_with(|| a.cmp(b))
}

fn called(profile: &Profile, skill: &Skill) -> String {
    match profile.name_from.value() {
        Some(NameFrom::Folder) => skill
            .root_dir
            .file_name()
            .map_or_else(|| skill.name.clone(), |name| name.to_string_lossy().into_owned()),
        Some(NameFrom::Frontmatter) | None => skill.name.clone(),
    }
}

fn handled(profile: &Profile, skill: &Skill) -> Fate {
    let name = &profile.name;
    let dropped = |why: String, common: String| (ClientViewState::Dropped(why), Some(common));
    let file = skill.location.file_name().unwrap_or_default();
    let reading = profile.reading.value();
    if file == "skill.yaml" || reading.is_some() && file != "SKILL.md" {
        let why = format!("no file called SKILL.md, which is all that {name} reads");
        return dropped(why.clone(), why);
    }
    if let Some(most) = reading.and_then(|reading| reading.file_bytes)
        && skill.bytes > most
    {
        let why = format!("its SKILL.md has {} bytes; at most {most} are taken", skill.bytes);
        return dropped(why, format!("a SKILL.md of more than {most} bytes"));
    }
    let long = [
        ("name", &profile.longest_name, called(profile, skill).chars().count()),
        ("description", &profile.longest_description, skill.description.chars().count()),
    ];
    for (what, longest, length) in long {
        if let Some(&longest) = longest.value()
            && length > longest as usize
        {
            let why = format!("its {what} has {length} characters; at most {longest} are taken");
            return dropped(why, format!("a {what} of more than {longest} characters"));
        }
    }
    defects(profile, &skill.findings).unwrap_or((ClientViewState::Found, None))
}

/// What is refused here is not always what the client refuses: that is said, and not put down to the client.
fn refused(profile: &Profile, refusal: &Refusal) -> Fate {
    let unread = |why: &str| {
        let why = format!("{why}: not read here, whatever {} does with it", profile.name);
        (ClientViewState::NotRead(why.clone()), Some(why))
    };
    match refusal.reason {
        RefusalReason::LeavesRoot => return unread("a link that leads out of its root"),
        RefusalReason::Unreadable => return unread("a file that cannot be read"),
        RefusalReason::TooLarge => return unread("a file of more than 2 MiB"),
        RefusalReason::NotUtf8 => return unread("a file that is not UTF-8"),
        RefusalReason::NoDescription | RefusalReason::BadFrontmatter => {}
    }
    // What has no description or no frontmatter here is none of ours, whatever the client repairs.
    match defects(profile, &refusal.findings) {
        Some((state, why)) if !seen(&state) => (state, why),
        Some((state, _)) => (state, Some("it cannot be read here: skills lint says why".to_owned())),
        None => {
            let why = refusal.findings.last().map_or("it cannot be read", |finding| &finding.message);
            (ClientViewState::Dropped(why.to_owned()), Some("a file that cannot be read".to_owned()))
        }
    }
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
fn defects(profile: &Profile, findings: &[Finding]) -> Option<Fate> {
    let (mut repaired, mut unknown) = (None, None);
    let client = &profile.name;
    for (fact, codes, what) in facts(profile) {
        let defect = findings.iter().find(|finding| codes.iter().any(|rule| rule.code == finding.code));
        match (defect, fact.value()) {
            (Some(finding), Some(Handling::Dropped)) => {
                let common = format!("{client} drops {what}");
                return Some((ClientViewState::Dropped(finding.message.clone()), Some(common)));
            }
            (Some(_), Some(Handling::Repaired(how))) => {
                repaired.get_or_insert_with(|| ClientViewState::Repaired(how.clone()));
            }
            (Some(_), None) => {
                unknown.get_or_insert_with(|| {
                    ClientViewState::Unknown(format!("nobody has published what {client} does with {what}"))
                });
            }
            _ => {}
        }
    }
    unknown.or(repaired).map(|state| (state, None))
}

#[cfg(test)]
#[path = "client_view_tests.rs"]
mod tests;
