//! Resolves a skill by id, unambiguous name, or location. This is the only implementation of name resolution and of
//! suggestions for similar names.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use super::{Code, Error};
use skills_config::quoted;
use skills_registry::{Catalog, RootOrigin, is_shipped_id};
use skills_skill::Skill;

/// Minimum similarity of suggested names (Jaro-Winkler, 0 to 1).
const NEAR: f64 = 0.82;
/// Maximum number of suggestions, and of candidates listed for an ambiguous name.
const MAX_SUGGESTIONS: usize = 3;
/// Maximum size of a skill id, name or location in bytes, the maximum of a path on Linux: comparing one with the
/// locations of all skills takes time in proportion to it.
const MAX_NAME_BYTES: usize = 4096;
/// Maximum size of a requested name that is compared with others, in bytes.
const MAX_COMPARED_BYTES: usize = 256;
/// The same for names of skills, of which there are many; the specification allows 64.
const MAX_COMPARED_SKILL_BYTES: usize = 64;

/// Returns the skill that `requested` names: by its id, else its location, else its name. `place` is `requested` as an
/// absolute path; the path of a file, and an absolute path, is not a name.
///
/// # Errors
/// Returns `not_found` with similar names; `invalid_request` for a name that several skills have, listing their ids.
pub fn resolve(catalog: &Catalog, requested: &str, place: Option<&Path>) -> Result<Arc<Skill>, Error> {
    let requested = requested.trim();
    if let Some(skill) = find(catalog, requested, place)? {
        return Ok(skill);
    }
    let compared = catalog.entries.iter().filter(|_| requested.len() <= MAX_COMPARED_SKILL_BYTES);
    let skills = compared.map(|e| [e.skill.id.as_str(), e.skill.name.as_str()]);
    Err(Error {
        suggestions: nearest(requested, skills),
        ..Error::new(Code::NotFound, format!("skill `{requested}` not found"))
    })
}

/// Like [`resolve`], without similar names: `None` if nothing has the name.
fn find(catalog: &Catalog, requested: &str, place: Option<&Path>) -> Result<Option<Arc<Skill>>, Error> {
    if requested.is_empty() {
        return Err(Error::new(Code::InvalidRequest, "a skill id, name or location is required"));
    }
    if requested.len() > MAX_NAME_BYTES {
        let message = format!("a skill id, name or location has at most {MAX_NAME_BYTES} bytes");
        return Err(Error::new(Code::InvalidRequest, message));
    }
    if let Some(skill) = catalog.by_id(requested) {
        return Ok(Some(Arc::clone(skill)));
    }
    // Anyone can write a bundle with any name, so a location is found first, and a path is not a name.
    if let Some(skill) = place.and_then(|place| catalog.by_location(place)) {
        return Ok(Some(Arc::clone(skill)));
    }
    let is_path = is_path(requested, place);
    let is_name = |skill: &&Arc<Skill>| skill.name == requested && !is_path;
    let winners: Vec<_> = catalog.entries.iter().map(|e| &e.skill).filter(is_name).collect();
    match winners.as_slice() {
        [one] => return Ok(Some(Arc::clone(one))),
        [] => {}
        several => return Err(ambiguous(requested, several)),
    }
    let losers: Vec<_> = catalog.shadowed.iter().map(|s| &s.skill).filter(is_name).collect();
    match losers.as_slice() {
        [one] => return Ok(Some(Arc::clone(one))),
        [] => {}
        several => return Err(ambiguous(requested, several)),
    }
    if let Some(refusal) = catalog.refused.iter().find(|refusal| {
        refusal.id.as_str() == requested || place.is_some_and(|place| refusal.location == place)
    }) {
        let why = refusal.findings.last().map_or("it could not be read", |finding| &finding.message);
        let message = format!(
            "skill `{requested}` was rejected: {why}; run `skills lint {}` for details",
            quoted(&refusal.location.to_string_lossy())
        );
        return Err(Error::new(Code::InvalidConfiguration, message).of_rejected_skill(&refusal.id));
    }
    // A folder that is a link to a skill's folder contains that skill, under its own name.
    if let Some(skill) = catalog.behind_link_named(requested) {
        let id = skill.id.to_string();
        let message = format!("{requested} is a symbolic link to the folder of {id}: use that");
        return Err(Error { suggestions: vec![id], ..Error::new(Code::NotFound, message) });
    }
    // With only the shipped skills, advice to use only them would not help.
    if is_shipped_id(requested) && catalog.roots.iter().any(|root| root.origin != RootOrigin::Shipped) {
        let message = format!(
            "skill `{requested}` not found; it is a shipped example, and those are used only if no other skills are \
                found"
        );
        return Err(Error::new(Code::NotFound, message).of_shipped_skill());
    }
    Ok(None)
}

/// Returns whether a name leads to a skill; compares no similar names, for lists of many.
pub fn exists(catalog: &Catalog, requested: &str, place: Option<&Path>) -> bool {
    find(catalog, requested.trim(), place).is_ok_and(|found| found.is_some())
}

/// Like [`exists`], for the user's own skills.
pub fn exists_own(catalog: &Catalog, requested: &str, place: Option<&Path>) -> bool {
    find_own(catalog, requested.trim(), place).is_ok_and(|found| found.is_some())
}

/// Like [`resolve`], as if there were no project: a text of the user names only the user's own skills.
///
/// # Errors
/// Like [`resolve`]; `not_found` for a skill of a project.
pub fn resolve_own(catalog: &Catalog, requested: &str, place: Option<&Path>) -> Result<Arc<Skill>, Error> {
    let requested = requested.trim();
    if let Some(skill) = find_own(catalog, requested, place)? {
        return Ok(skill);
    }
    let found = resolve(catalog, requested, place)?;
    let message = format!("skill `{requested}` is only in a project ({}), not among your own", found.id);
    Err(Error::new(Code::NotFound, message))
}

/// Returns the user's own skill with an id, location or unambiguous name.
fn find_own(catalog: &Catalog, requested: &str, place: Option<&Path>) -> Result<Option<Arc<Skill>>, Error> {
    let at_place =
        || place.and_then(|place| catalog.by_location(place)).filter(|skill| catalog.is_own(skill));
    if let Some(skill) = catalog.own_skill(requested).or_else(at_place) {
        return Ok(Some(Arc::clone(skill)));
    }
    if is_path(requested, place) {
        return Ok(None);
    }
    match catalog.own_skills_named(requested).as_slice() {
        [one] => Ok(Some(Arc::clone(one))),
        [] => Ok(None),
        several => Err(ambiguous(requested, several)),
    }
}

/// Returns whether a requested text is a path, not the name of a skill.
fn is_path(requested: &str, place: Option<&Path>) -> bool {
    requested.contains(std::path::is_separator)
        && (requested.starts_with(['/', '\\', '.', '~']) || place.is_some_and(Path::exists))
}

fn ambiguous(requested: &str, several: &[&Arc<Skill>]) -> Error {
    let ids: Vec<String> = several.iter().map(|skill| skill.id.to_string()).collect();
    let more = ids.len().saturating_sub(MAX_SUGGESTIONS);
    let mut named = ids[..ids.len() - more].join(", ");
    if more > 0 {
        let _ = write!(named, " and {more} more");
    }
    let message = format!("{} skills are named {requested}: {named}; use an id", ids.len());
    Error {
        suggestions: ids.into_iter().take(MAX_SUGGESTIONS).collect(),
        ..Error::new(Code::InvalidRequest, message)
    }
}

/// Returns the names most similar to `wanted`, best first, at most three.
pub fn near<'a>(requested: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    nearest(requested, names.map(|name| [name]))
}

/// Returns the items most similar to `wanted` among items with several names, best first, at most three; each once, by
/// its first name.
fn nearest<'a, const N: usize>(requested: &str, things: impl Iterator<Item = [&'a str; N]>) -> Vec<String> {
    if requested.len() > MAX_COMPARED_BYTES {
        return Vec::new();
    }
    let requested = requested.to_lowercase();
    let alike = |name: &str| {
        let lower = name.to_lowercase();
        let alike = strsim::jaro_winkler(&requested, &lower);
        // A name that contains the given text (`tables` in `pdf-tables`) counts as similar however long it is.
        let contains = requested.chars().count() >= 3 && lower.contains(&requested);
        if contains { alike.max(NEAR) } else { alike }
    };
    let mut scored: Vec<(f64, &str)> = things
        .filter_map(|names| {
            let score = names.iter().map(|name| alike(name)).fold(0.0, f64::max);
            (score >= NEAR).then_some((score, *names.first()?))
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.len().cmp(&b.1.len())).then(a.1.cmp(b.1)));
    let mut out: Vec<String> = Vec::new();
    for (_, name) in scored {
        if out.len() == MAX_SUGGESTIONS {
            break;
        }
        if !out.iter().any(|have| have == name) {
            out.push(name.to_owned());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{catalog, refused};

    #[test]
    fn id_has_precedence_over_name() {
        let catalog = catalog(&[("pdf-tables", "PDF Tables"), ("tables", "pdf-tables")]);
        assert_eq!(resolve(&catalog, "pdf-tables", None).unwrap().name, "PDF Tables");
        assert_eq!(resolve(&catalog, "PDF Tables", None).unwrap().id.as_str(), "pdf-tables");
    }

    #[test]
    fn long_name_is_rejected_before_it_is_compared() {
        let catalog = catalog(&[("pdf", "pdf")]);
        let error = |expected: &str| resolve(&catalog, expected, Some(Path::new(expected))).unwrap_err();
        assert_eq!(error(&"a".repeat(4096)).code, Code::NotFound);
        let error = error(&"a".repeat(4097));
        assert_eq!(error.code, Code::InvalidRequest);
        assert!(error.message.len() < 100 && error.message.contains("4096"), "{error}");
    }

    #[test]
    fn a_location_names_a_skill_by_its_file_or_its_folder() {
        let catalog = catalog(&[("pdf", "pdf")]);
        for place in ["/skills/pdf", "/skills/pdf/SKILL.md"] {
            assert_eq!(resolve(&catalog, place, Some(Path::new(place))).unwrap().id.as_str(), "pdf");
        }
    }

    #[test]
    fn location_has_precedence_over_the_name_of_another_skill() {
        let path = "/skills/deploy/SKILL.md";
        let mut catalog = catalog(&[("deploy", "deploy"), ("fmt", path), ("tables", "sdk/linux")]);
        let found =
            |catalog: &Catalog| resolve(catalog, path, Some(Path::new(path))).map(|s| s.id.to_string());
        assert_eq!(found(&catalog).as_deref(), Ok("deploy"));
        assert_eq!(resolve(&catalog, "sdk/linux", None).unwrap().id.as_str(), "tables");
        catalog.entries.remove(0);
        assert_eq!(found(&catalog).unwrap_err().code, Code::NotFound, "a path is not a name");
    }

    #[test]
    fn an_ambiguous_name_lists_the_ids() {
        let catalog = catalog(&[("a", "same"), ("b", "same")]);
        let error = resolve(&catalog, "same", None).unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest);
        assert_eq!(error.message, "2 skills are named same: a, b; use an id");
    }

    #[test]
    fn own_name_is_not_resolved_in_a_project() {
        let mut catalog = catalog(&[("csv", "csv"), ("csv-v2", "other"), ("mine", "mine"), ("pdf", "pdf")]);
        let own = catalog.roots[0].clone();
        catalog.roots.push(skills_registry::Root { of_project: true, ..own });
        for at in [0, 1, 3] {
            catalog.entries[at].root = 1;
        }
        let shadowed = |id: &str, lost: &str, name: &str| skills_registry::Shadowed {
            skill: Arc::new(crate::testing::skill(id, name)),
            root: 0,
            lost: skills_skill::SkillId::new(lost),
            winner: "/other".into(),
            identical: false,
        };
        catalog.shadowed = vec![shadowed("csv-v2@3f9a01c2", "csv-v2", "csv")];
        let found =
            |catalog: &Catalog, name: &str| resolve_own(catalog, name, None).map(|s| s.id.to_string());
        for (name, id) in [("csv", "csv-v2@3f9a01c2"), ("csv-v2", "csv-v2@3f9a01c2"), ("mine", "mine")] {
            assert_eq!(found(&catalog, name).as_deref(), Ok(id));
        }
        let error = found(&catalog, "pdf").unwrap_err();
        assert!(error.code == Code::NotFound && error.message.contains("only in a project (pdf)"), "{error}");
        // A copy in a root of lower precedence is not a second skill; another skill of the name is.
        catalog.shadowed.push(shadowed("csv-v2@3f9a01c2.aaaaaa", "csv-v2", "csv"));
        assert!(found(&catalog, "csv").is_ok());
        catalog.shadowed.push(shadowed("pdf@11111111", "pdf", "csv"));
        assert_eq!(found(&catalog, "csv").unwrap_err().code, Code::InvalidRequest);
    }

    #[test]
    fn unknown_name_suggests_similar_ones() {
        let catalog = catalog(&[("pdf-tables", "pdf-tables"), ("invoice", "invoice")]);
        let error = resolve(&catalog, "pdf-tabels", None).unwrap_err();
        assert_eq!((error.code, error.suggestions), (Code::NotFound, vec!["pdf-tables".to_owned()]));
        assert!(resolve(&catalog, "zebra", None).unwrap_err().suggestions.is_empty());
    }

    #[test]
    fn shipped_skills_are_suggested_only_with_others() {
        let error = |catalog: &Catalog| resolve(catalog, "log-digest", None).unwrap_err();
        let mut catalog = catalog(&[("pdf", "pdf")]);
        assert!(error(&catalog).is_of_shipped_skill(), "{:?}", error(&catalog));
        // The command line adds its option; a caller over HTTP has none.
        assert!(!error(&catalog).message.contains("--"), "{:?}", error(&catalog));
        for root in &mut catalog.roots {
            root.origin = RootOrigin::Shipped;
        }
        assert!(!error(&catalog).is_of_shipped_skill(), "{:?}", error(&catalog));
    }

    #[test]
    fn skill_with_similar_name_and_id_is_suggested_once() {
        let catalog = catalog(&[("pdf-processing", "PDF Processing"), ("pdf-process", "pdf-process")]);
        let error = resolve(&catalog, "PDF Procesing", None).unwrap_err();
        assert_eq!(error.suggestions, ["pdf-processing", "pdf-process"]);
    }

    #[test]
    fn linked_folder_resolves_to_its_target() {
        let mut catalog = catalog(&[("beta", "beta")]);
        let same_as = catalog.entries[0].skill.location.clone();
        let location = "/skills/linked/SKILL.md".into();
        catalog.aliases.push(skills_registry::Alias { location, root: 0, same_as });
        let error = resolve(&catalog, "linked", None).unwrap_err();
        assert_eq!(error.message, "linked is a symbolic link to the folder of beta: use that");
        assert_eq!((error.code, error.suggestions), (Code::NotFound, vec!["beta".to_owned()]));
    }

    #[test]
    fn rejected_bundle_is_reported_with_its_reason() {
        let mut catalog = catalog(&[]);
        catalog.refused.push(refused("broken", "there is no description"));
        let error = resolve(&catalog, "broken", None).unwrap_err();
        assert_eq!(error.code, Code::InvalidConfiguration);
        assert!(error.message.contains("there is no description"), "{error}");
        assert!(error.message.contains("run `skills lint /skills/broken/SKILL.md` for"), "{error}");
        catalog.refused.push(refused("a;b", "there is no description"));
        let error = resolve(&catalog, "a;b", None).unwrap_err();
        assert!(error.message.contains("run `skills lint '/skills/a;b/SKILL.md'` for"), "{error}");
    }
}
