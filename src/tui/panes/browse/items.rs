//! The entries of the list, one for each bundle: skills, shadowed ones, rejected ones.

use std::collections::HashMap;

use nucleo_matcher::Utf32String;

use crate::widgets::shown;
use skills_api::{ClientView, ClientViewState, ForeignBundle, other_files};
use skills_registry::Catalog;
use skills_skill::{RefusalReason, Role, Skill, SkillId, Status, errors_and_warnings, safe_text};

/// Whether a bundle is a skill, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExclusionReason {
    Skill,
    /// Another bundle has its id; index into the shadowed bundles.
    Shadowed(usize),
    /// It is invalid; index into the rejected bundles.
    Refused(usize),
    /// It is not in the catalog, but the selected client finds it.
    Elsewhere,
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub id: SkillId,
    /// The displayed id, safe to draw. Names may collide, ids do not.
    pub label: String,
    /// The name if it differs from the id.
    pub name: Option<String>,
    /// The text that the filter searches: id, and the name if it differs.
    pub hay: Utf32String,
    /// Sort key for the displayed text.
    pub key: String,
    pub role: Role,
    /// Its lifecycle status, if notable (`deprecated`).
    pub status: Option<String>,
    /// Number of errors and of warnings.
    pub findings: (usize, usize),
    /// Index into the catalog's roots.
    pub root: usize,
    /// Subject area.
    pub domain: Option<String>,
    /// Modification time.
    pub modified: i64,
    /// Whether it is a skill, or why not.
    pub exclusion: ExclusionReason,
    /// Why it is not listed as a skill.
    pub note: Option<String>,
}

/// Returns all entries of a catalog, skills first, in catalog order.
pub fn entries(catalog: &Catalog) -> Vec<Entry> {
    let mut out: Vec<Entry> =
        catalog.entries.iter().map(|e| of_skill(&e.skill, e.root, ExclusionReason::Skill)).collect();
    for (index, shadowed) in catalog.shadowed.iter().enumerate() {
        let mut entry = of_skill(&shadowed.skill, shadowed.root, ExclusionReason::Shadowed(index));
        let root = catalog.entry(shadowed.lost.as_str()).and_then(|winner| catalog.roots.get(winner.root));
        let place = root.map_or_else(|| shadowed.winner.display().to_string(), |r| r.label.clone());
        let same = if shadowed.identical { "identical" } else { "differs" };
        let place = shown(&place);
        entry.note = Some(format!("shadowed by {}, {same}", place.trim_end_matches("/skills")));
        out.push(entry);
    }
    for (index, refusal) in catalog.refused.iter().enumerate() {
        let root = catalog.roots.iter().position(|r| refusal.location.starts_with(&r.path)).unwrap_or(0);
        let name = safe_text::name(refusal.id.as_str()).into_owned();
        out.push(Entry {
            id: refusal.id.clone(),
            hay: Utf32String::from(name.as_str()),
            key: name.to_lowercase(),
            label: name,
            name: None,
            role: Role::Procedure,
            status: None,
            findings: errors_and_warnings(&refusal.findings),
            root,
            domain: None,
            modified: 0,
            exclusion: ExclusionReason::Refused(index),
            note: Some(refused_because(&refusal.reason)),
        });
    }
    out
}

/// Returns what the client finds in its folders but this catalog does not contain: outside of every root, or behind a
/// link that points outside one.
pub fn elsewhere(view: &ClientView) -> Vec<Entry> {
    view.foreign.iter().map(|one| of_foreign(one, &view.name)).collect()
}

fn of_foreign(bundle: &ForeignBundle, client: &str) -> Entry {
    let label = shown(&bundle.name);
    let note = match (why_unseen(&bundle.state, client), &bundle.state) {
        (Some(why), _) => format!("outside the roots; {why}"),
        (None, ClientViewState::Unknown(what)) => format!("outside the roots; unknown: {}", shown(what)),
        (None, _) => format!("listed by {}, outside the roots", shown(client)),
    };
    Entry {
        id: SkillId::new(bundle.location.display().to_string()),
        hay: Utf32String::from(label.as_str()),
        key: label.to_lowercase(),
        label,
        name: None,
        role: Role::Procedure,
        status: None,
        findings: (0, 0),
        root: 0,
        domain: None,
        modified: 0,
        exclusion: ExclusionReason::Elsewhere,
        note: Some(note),
    }
}

impl Entry {
    /// Returns whether its skill can be read here.
    pub fn is_readable(&self) -> bool {
        matches!(self.exclusion, ExclusionReason::Skill | ExclusionReason::Shadowed(_))
    }
}

fn of_skill(skill: &Skill, root: usize, exclusion: ExclusionReason) -> Entry {
    let name = safe_text::name(&skill.name).into_owned();
    let label = safe_text::name(skill.id.as_str()).into_owned();
    let name = (name != label).then_some(name);
    let hay = name.as_ref().map_or_else(|| label.clone(), |name| format!("{label} {name}"));
    Entry {
        id: skill.id.clone(),
        hay: Utf32String::from(hay),
        key: label.to_lowercase(),
        label,
        name,
        role: skill.classification.role.value,
        status: (skill.status.value != Status::Stable).then(|| shown(skill.status.value.as_str())),
        findings: errors_and_warnings(&skill.findings),
        root,
        domain: skill.domain.as_ref().map(|d| shown(&d.value)),
        modified: skill.modified_ms,
        exclusion,
        note: None,
    }
}

fn refused_because(reason: &RefusalReason) -> String {
    match reason {
        RefusalReason::NoDescription => "no description",
        RefusalReason::NotUtf8 => "not UTF-8",
        RefusalReason::TooLarge => "larger than 2 MiB",
        RefusalReason::BadFrontmatter => "frontmatter cannot be read",
        RefusalReason::Unreadable => "file cannot be read",
        RefusalReason::LeavesRoot => "link points outside its root",
        RefusalReason::NoSkillFile => "no SKILL.md",
    }
    .to_owned()
}

/// Returns for each bundle that a client does not list, why.
pub fn unseen(view: &ClientView) -> HashMap<SkillId, String> {
    let entries = view.entries.iter();
    entries.filter_map(|e| why_unseen(&e.state, &view.name).map(|why| (e.skill_id.clone(), why))).collect()
}

/// Returns briefly why a client does not list a bundle.
fn why_unseen(state: &ClientViewState, client: &str) -> Option<String> {
    match state {
        ClientViewState::Found
        | ClientViewState::Repaired(_)
        | ClientViewState::Unknown(_)
        | ClientViewState::Either(_) => None,
        ClientViewState::Shadowed(winner) => {
            Some(format!("shadowed by {}", shown(&winner.display().to_string())))
        }
        ClientViewState::Dropped(why) => {
            // A row has space for the defect only.
            let defect = why.strip_prefix(&format!("{client} drops a skill with ")).unwrap_or(why);
            Some(format!("dropped: {}", shown(defect)))
        }
        ClientViewState::NotRead(why) => Some(format!("not read: {}", shown(why))),
        ClientViewState::ForPeople(message) => Some(format!("user-only: {}", shown(message))),
        ClientViewState::TurnedOff(message) => Some(format!("turned off: {}", shown(message))),
        ClientViewState::Waiting(until) => Some(format!("not loaded yet: {}", shown(until))),
        ClientViewState::NotLooked => Some("not in its folders".to_owned()),
        ClientViewState::TooDeep(_) => Some("nested too deep".to_owned()),
    }
}

/// Describes in full how a client treats a bundle; `None` if it simply lists it.
pub fn reason(state: &ClientViewState) -> Option<String> {
    match state {
        ClientViewState::Found => None,
        ClientViewState::Repaired(how) => Some(format!("repaired: {}", shown(how))),
        ClientViewState::Shadowed(winner) => {
            Some(format!("shadowed by {}", shown(&winner.display().to_string())))
        }
        ClientViewState::Dropped(why) => Some(format!("dropped: {}", shown(why))),
        ClientViewState::Unknown(why) => Some(format!("unknown: {}", shown(why))),
        ClientViewState::NotRead(why) => Some(format!("not read: {}", shown(why))),
        ClientViewState::ForPeople(message) => {
            Some(format!("user-only: {} hides it from this client's model", shown(message)))
        }
        ClientViewState::TurnedOff(message) => {
            Some(format!("turned off in this client's settings: {}", shown(message)))
        }
        ClientViewState::Either(others) => {
            let others = other_files(others, " or ", |path| shown(&path.display().to_string()));
            Some(format!("this one or {others}: the choice varies between starts"))
        }
        ClientViewState::Waiting(until) => Some(format!("not listed yet: {}", shown(until))),
        ClientViewState::NotLooked => Some("not in a folder that this client searches".to_owned()),
        ClientViewState::TooDeep(place) => Some(format!(
            "nested too deep: this client loads only folders directly in {}",
            shown(&place.display().to_string())
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_the_defect_of_a_dropped_skill() {
        for (why, row) in [
            ("goose drops a skill with a duplicate key", "dropped: a duplicate key"),
            (
                "its SKILL.md has 9 bytes; the maximum is 8",
                "dropped: its SKILL.md has 9 bytes; the maximum is 8",
            ),
        ] {
            let state = ClientViewState::Dropped(why.to_owned());
            assert_eq!(why_unseen(&state, "goose").as_deref(), Some(row));
        }
    }

    #[test]
    fn a_file_that_a_client_skips_is_not_called_unreadable() {
        let why = "in a hidden folder, which Gemini CLI skips";
        let state = ClientViewState::NotRead(why.to_owned());
        let row = format!("not read: {why}");
        assert_eq!(why_unseen(&state, "Gemini CLI").as_deref(), Some(row.as_str()));
        assert_eq!(reason(&state).as_deref(), Some(row.as_str()));
    }
}
