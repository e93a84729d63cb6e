//! Matches a rule against a skill: all of its criteria must hold, each by any of its values.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::iter;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::FolderLink;
use crate::ordered_path::compare;
use skills_skill::{EffectMode, Role, Skill};

/// The properties of a skill that a policy uses.
#[derive(Debug, Clone)]
pub struct SkillProperties<'a> {
    /// Its id; for a shadowed skill (`id@3f9a01c2`), the part before the `@` matches as well.
    pub id: &'a str,
    pub tags: &'a [String],
    /// Its subject area, stated or inferred.
    pub domain: Option<&'a str>,
    pub role: Role,
    pub effect: EffectMode,
    pub location: &'a Path,
    /// The display form of its root (`~/.claude/skills`, `shipped`).
    pub root: &'a str,
    /// Other paths of the same files: a folder that reaches them by a symbolic link does not exempt them from a rule.
    pub other_paths: Vec<SkillPath<'a>>,
    /// Further paths, through links to folders.
    pub linked_paths: Vec<LinkedPaths<'a>>,
    /// Labels of the run that is launched or decided; empty if the policy is evaluated for the skill alone.
    pub labels: &'a BTreeMap<String, String>,
}

/// Another path of a skill: its real path, or one in another root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillPath<'a> {
    /// The id that it has at this path: the name of the folder.
    pub id: &'a str,
    pub location: &'a Path,
    /// The display form of the root; empty for a path in none.
    pub root: &'a str,
}

impl<'a> SkillPath<'a> {
    /// Returns the path of a main file in a root.
    pub fn new(location: &'a Path, root: &'a str) -> Self {
        let folder = location.parent().and_then(Path::file_name);
        Self { id: folder.and_then(OsStr::to_str).unwrap_or_default(), location, root }
    }
}

/// The paths of a skill through the links of one root to one folder: rules are compared with all of them at once, because
/// a few thousand links to a folder with a few thousand skills are millions of paths.
#[derive(Debug, Clone, Copy)]
pub struct LinkedPaths<'a> {
    /// The id that it has at these paths: the name of the folder.
    id: &'a str,
    /// Sorted by path.
    links: &'a [FolderLink],
    /// The main file, below each link.
    file: &'a Path,
    /// The display form of the root.
    root: &'a str,
}

impl<'a> LinkedPaths<'a> {
    /// Returns the paths of a main file through links of one root, sorted by path. A link to its folder gives it an id of
    /// its own.
    pub fn of(links: &'a [FolderLink], file: &'a Path, root: &'a str) -> impl Iterator<Item = Self> {
        let name = file.parent().and_then(Path::file_name).map(|name| name.to_str().unwrap_or_default());
        let size = if name.is_some() { links.len() } else { 1 };
        links.chunks(size.max(1)).map(move |links| {
            let of_link = || links.first()?.location.file_name()?.to_str();
            Self { id: name.or_else(of_link).unwrap_or_default(), links, file, root }
        })
    }

    /// Returns the paths, each with the display form of its root.
    pub fn paths(self) -> impl Iterator<Item = (PathBuf, &'a str)> {
        self.links.iter().map(move |link| (link.location.join(self.file), self.root))
    }

    /// Returns whether any of the paths is below a folder.
    fn has_path_below(&self, folder: &Path) -> bool {
        // As the paths of links: without superfluous separators.
        let folder: PathBuf = folder.components().collect();
        let first = self.links.partition_point(|link| compare(&link.location, &folder).is_lt());
        let is_below = self.links.get(first).is_some_and(|link| link.location.starts_with(&folder));
        let is_inside = |above: &Path| {
            let is_link = self.links.binary_search_by(|link| compare(&link.location, above)).is_ok();
            is_link && folder.strip_prefix(above).is_ok_and(|rest| self.file.starts_with(rest))
        };
        is_below || folder.ancestors().skip(1).any(is_inside)
    }
}

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

impl<'a> SkillProperties<'a> {
    /// Returns the properties of a skill from a root, with its paths in other roots and through links.
    pub fn of(
        skill: &'a Skill,
        root: &'a str,
        aliases: impl Iterator<Item = SkillPath<'a>>,
        linked: impl Iterator<Item = LinkedPaths<'a>>,
    ) -> Self {
        let real = skill.real_location();
        let real = (real != skill.location).then(|| SkillPath::new(real, ""));
        Self {
            id: skill.id.as_str(),
            tags: &skill.tags,
            domain: skill.domain.as_ref().map(|domain| domain.value.as_str()),
            role: skill.classification.role.value,
            effect: skill.classification.effect_mode.value,
            location: &skill.location,
            root,
            other_paths: real.into_iter().chain(aliases).collect(),
            linked_paths: linked.collect(),
            labels: &NO_LABELS,
        }
    }

    /// Returns the path at which it is listed.
    fn listed_path(&self) -> SkillPath<'a> {
        SkillPath { id: self.id, location: self.location, root: self.root }
    }
}

/// The value of a `root` criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RootPattern {
    /// A folder: every skill below it.
    Below(PathBuf),
    /// A root's label, with `*` and `?`.
    Label(String),
}

/// The criteria of a rule. An empty list is not a criterion.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Criteria {
    /// Ids, with `*` and `?`.
    pub id: Vec<String>,
    /// Tags, with `*` and `?`.
    pub tag: Vec<String>,
    /// Subject areas, with `*` and `?`.
    pub domain: Vec<String>,
    /// Roles.
    pub role: Vec<Role>,
    /// Effects.
    pub effect: Vec<EffectMode>,
    /// Roots.
    pub root: Vec<RootPattern>,
    /// Real paths of the folders of `root` that symbolic links reach: for rules that restrict something.
    #[serde(skip)]
    pub real_roots: Vec<PathBuf>,
    /// Labels of a run as `NAME=VALUE`, with `*` and `?` in the value. Never matches a skill without a run.
    pub label: Vec<String>,
    /// Ids that are excluded.
    pub except: Vec<String>,
}

impl Criteria {
    /// Returns whether there are no criteria.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
            && self.tag.is_empty()
            && self.domain.is_empty()
            && self.role.is_empty()
            && self.effect.is_empty()
            && self.root.is_empty()
            && self.label.is_empty()
    }

    /// Returns whether all criteria hold at the path where the skill is listed: a rule that permits something.
    pub fn fit(&self, subject: &SkillProperties<'_>) -> bool {
        self.fit_at(subject, subject.listed_path(), &[])
    }

    /// Returns whether all criteria hold at any path of the skill, and of the folders of `root`: a rule that restricts
    /// something.
    pub fn fit_anywhere(&self, subject: &SkillProperties<'_>) -> bool {
        let mut paths = iter::once(subject.listed_path()).chain(subject.other_paths.iter().copied());
        paths.any(|path| self.fit_at(subject, path, &self.real_roots))
            || subject.linked_paths.iter().any(|paths| self.fit_at_any(subject, paths))
    }

    fn fit_at(&self, subject: &SkillProperties<'_>, path: SkillPath<'_>, real_roots: &[PathBuf]) -> bool {
        self.fit_as(subject, path.id, || {
            self.root.iter().any(|root| root.fits(path))
                || real_roots.iter().any(|folder| path.location.starts_with(folder))
        })
    }

    /// Returns whether all criteria hold at any of these paths.
    fn fit_at_any(&self, subject: &SkillProperties<'_>, paths: &LinkedPaths<'_>) -> bool {
        self.fit_as(subject, paths.id, || {
            self.root.iter().any(|root| root.fits_any(paths))
                || self.real_roots.iter().any(|folder| paths.has_path_below(folder))
        })
    }

    /// Returns whether all criteria hold for a skill under an id; `is_in_root` determines whether `root` does.
    fn fit_as(&self, subject: &SkillProperties<'_>, id: &str, is_in_root: impl Fn() -> bool) -> bool {
        let any = |patterns: &[String], text: &str| patterns.iter().any(|pattern| glob(pattern, text));
        let is_id = |patterns: &[String]| {
            let base_id = id.split('@').next().unwrap_or(id);
            any(patterns, id) || any(patterns, base_id)
        };
        (self.id.is_empty() || is_id(&self.id))
            && (self.tag.is_empty() || subject.tags.iter().any(|tag| any(&self.tag, tag)))
            && (self.domain.is_empty() || subject.domain.is_some_and(|domain| any(&self.domain, domain)))
            && (self.role.is_empty() || self.role.contains(&subject.role))
            && (self.effect.is_empty() || self.effect.contains(&subject.effect))
            && (self.root.is_empty() || is_in_root())
            && (self.label.is_empty() || self.label.iter().any(|label| has_label(subject, label)))
            && !is_id(&self.except)
    }

    /// Returns the criteria for a skill without a run: only runs have labels.
    #[must_use]
    pub fn without_labels(&self) -> Self {
        Self { label: Vec::new(), ..self.clone() }
    }

    /// Returns the criteria as text: `id deploy.* and effect control_signal, except deploy.docs`.
    pub fn describe(&self) -> String {
        fn part<T: ToString>(name: &str, values: &[T]) -> Option<String> {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            (!values.is_empty()).then(|| format!("{name} {}", values.join(" or ")))
        }
        let roots: Vec<String> = self.root.iter().map(RootPattern::describe).collect();
        let all = [
            part("id", &self.id),
            part("tag", &self.tag),
            part("domain", &self.domain),
            part("role", &self.role),
            part("effect", &self.effect),
            part("root", &roots),
            part("label", &self.label),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        let except = part("except", &self.except).map(|words| format!(", {words}")).unwrap_or_default();
        format!("{}{except}", all.join(" and "))
    }
}

/// Returns whether a run has a label `NAME=VALUE`; `NAME` alone matches any value.
fn has_label(subject: &SkillProperties<'_>, label: &str) -> bool {
    let (name, value) = label.split_once('=').unwrap_or((label, "*"));
    // Names of labels are in lower case; comparison ignores case.
    subject.labels.get(&name.to_lowercase()).is_some_and(|actual| glob(value, actual))
}

/// Returns the real paths of the folders that symbolic links reach. Reads from disk.
pub(super) fn real_roots(roots: &[RootPattern]) -> Vec<PathBuf> {
    roots.iter().filter_map(RootPattern::real_path).collect()
}

impl RootPattern {
    /// Returns the real path of a folder if it differs; a part of it that does not exist is kept as written.
    fn real_path(&self) -> Option<PathBuf> {
        let Self::Below(folder) = self else { return None };
        let resolve = |above: &Path| {
            let rest = folder.strip_prefix(above).ok()?;
            Some(skills_base::files::canonicalize(above).ok()?.join(rest))
        };
        folder.ancestors().find_map(resolve).filter(|real| real != folder)
    }

    fn fits(&self, path: SkillPath<'_>) -> bool {
        match self {
            Self::Below(folder) => path.location.starts_with(folder),
            Self::Label(label) => glob(label, path.root),
        }
    }

    fn fits_any(&self, paths: &LinkedPaths<'_>) -> bool {
        match self {
            Self::Below(folder) => paths.has_path_below(folder),
            Self::Label(label) => glob(label, paths.root),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Below(folder) => folder.display().to_string(),
            Self::Label(label) => label.clone(),
        }
    }
}

/// Returns whether a text matches a pattern: `*` matches any sequence, `?` any one character; case is ignored.
pub fn glob(pattern: &str, text: &str) -> bool {
    let fold = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (pattern, text) = (fold(pattern), fold(text));
    let (mut p, mut t) = (0, 0);
    // Position of the last star, and the start of the text that follows its current match.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_common_forms() {
        for (pattern, text, fits) in [
            ("deploy.*", "deploy.staging", true),
            ("deploy.*", "deploy", false),
            ("deploy*", "Deploy", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("?", "é", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("*.yaml", "a.yaml.yaml", true),
            ("pdf-tables", "pdf-table", false),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn long_pattern_of_stars_is_matched_quickly() {
        let pattern = "*a".repeat(60);
        assert!(!glob(&pattern, &format!("{}b", "a".repeat(5_000))));
    }
}
