//! The user's policy: its current file, its effect on the catalog, and its explanation. An invalid policy file is
//! enforced as a refusal: nothing is found, run or attached.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::{Code, Error};
use skills_base::sync::MutexExt as _;
use skills_config::Config;
use skills_discovery::{Adjustment, Adjustments};
use skills_registry::Catalog;
use skills_registry::policy::{
    self, ApprovalRule, Effect, LinkedPaths, Policy, PolicyResult, SkillPath, SkillProperties,
};
use skills_skill::{Skill, SkillId, read_regular_text};

/// Maximum size of a policy, which is written by hand, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The policy file, reloaded when it changes.
#[derive(Debug)]
pub struct PolicyFile {
    path: Option<PathBuf>,
    /// Whether the settings name it: then it must exist.
    named: bool,
    home: PathBuf,
    read: Mutex<Option<(String, Arc<Policy>)>>,
    adjusted: Mutex<Option<CachedAdjustments>>,
}

/// Adjustments, and what they were computed from.
#[derive(Debug, Clone)]
struct CachedAdjustments {
    policy: Arc<Policy>,
    generation: u64,
    adjustments: Arc<Adjustments>,
}

impl PolicyFile {
    /// Uses the file that the settings name, else `policy.yaml` in the user's configuration folder. A demo has none.
    pub fn of(config: &Config) -> Self {
        let usual = || config.dirs.config.join("policy.yaml");
        Self {
            path: (!config.demo).then(|| config.policy_file.clone().unwrap_or_else(usual)),
            named: config.policy_file.is_some(),
            home: config.dirs.home.clone(),
            read: Mutex::default(),
            adjusted: Mutex::default(),
        }
    }

    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the file and its text, as last read.
    pub fn read(&self) -> Option<(&Path, String)> {
        let read = self.read.locked();
        Some((self.path()?, read.as_ref()?.0.clone()))
    }

    /// Returns the current rules of the file.
    ///
    /// # Errors
    /// Returns `invalid_configuration` with line and column of an error, or for a file that the settings name and that
    /// cannot be read.
    pub fn current(&self) -> Result<Arc<Policy>, Error> {
        let Some(path) = &self.path else { return Ok(Arc::default()) };
        let refused = |message: String| Error::new(Code::InvalidConfiguration, message);
        let text = match read_regular_text(path, MAX_BYTES) {
            Ok(text) => text,
            // A link whose target is missing is a policy that cannot be read, not none.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.named && !path.is_symlink() => {
                String::new()
            }
            Err(error) => {
                let advice =
                    if self.named { "or remove `policy_file` from your config.yaml" } else { "or remove it" };
                let message = format!("cannot read the policy {}: {error}; fix it, {advice}", path.display());
                return Err(refused(message));
            }
        };
        let mut read = self.read.locked();
        if let Some((before, policy)) = read.as_ref()
            && *before == text
            && policy.is_resolved()
        {
            return Ok(Arc::clone(policy));
        }
        let policy = policy::parse(path, &text, &self.home).map_err(|error| refused(error.to_string()))?;
        let policy = Arc::new(policy);
        *read = Some((text, Arc::clone(&policy)));
        Ok(policy)
    }

    /// Returns how the policy changes answers over this catalog.
    pub fn adjustments(&self, catalog: &Catalog) -> Result<Arc<Adjustments>, Error> {
        let policy = self.current()?;
        let mut adjusted = self.adjusted.locked();
        if let Some(known) = adjusted.as_ref()
            && Arc::ptr_eq(&known.policy, &policy)
            && known.generation == catalog.generation
        {
            return Ok(Arc::clone(&known.adjustments));
        }
        let adjustments = Arc::new(adjustments(&policy, catalog));
        let generation = catalog.generation;
        *adjusted = Some(CachedAdjustments { policy, generation, adjustments: Arc::clone(&adjustments) });
        Ok(adjustments)
    }
}

/// Returns the label of the root that a skill came from.
pub fn root_label<'c>(catalog: &'c Catalog, skill: &Skill) -> &'c str {
    let id = skill.id.as_str();
    let winner = catalog.entry(id).map(|entry| entry.root);
    let root = winner.or_else(|| catalog.shadowed_by_id(id).map(|loser| loser.root));
    root.map_or("", |root| label_at(catalog, root))
}

fn label_at(catalog: &Catalog, root: usize) -> &str {
    catalog.roots.get(root).map_or("", |root| &root.label)
}

/// Returns what the rules compare with a skill of the catalog.
pub fn properties<'c>(catalog: &'c Catalog, skill: &'c Skill) -> SkillProperties<'c> {
    properties_in(catalog, skill, root_label(catalog, skill))
}

/// The same for a skill whose root has this label.
fn properties_in<'c>(catalog: &'c Catalog, skill: &'c Skill, label: &'c str) -> SkillProperties<'c> {
    let aliases = catalog.aliases_of(&skill.location);
    let aliases = aliases.map(|alias| SkillPath::new(&alias.location, label_at(catalog, alias.root)));
    let linked = catalog.links_of(skill).flat_map(|(links, file)| {
        LinkedPaths::of(links, file, links.first().map_or("", |link| label_at(catalog, link.root)))
    });
    SkillProperties::of(skill, label, aliases, linked)
}

/// Returns what the rules compare with every skill of the catalog, the winners first.
fn all_properties(catalog: &Catalog) -> impl Iterator<Item = (&SkillId, SkillProperties<'_>)> {
    let skills = catalog.skills_with_roots();
    skills.map(move |(skill, root)| (&skill.id, properties_in(catalog, skill, label_at(catalog, root))))
}

pub fn policy_result(policy: &Policy, catalog: &Catalog, skill: &Skill) -> PolicyResult {
    policy.result(&properties(catalog, skill))
}

fn adjustments(policy: &Policy, catalog: &Catalog) -> Adjustments {
    if policy.is_empty() {
        return Adjustments::default();
    }
    let changed = all_properties(catalog).filter_map(|(id, properties)| {
        let result = policy.result(&properties);
        let terms: Vec<(String, f64)> = result
            .rules
            .iter()
            .filter_map(|rule| Some((rule.rule.clone(), rule.by.filter(|by| *by > 0.0)?)))
            .collect();
        let idle = result.allowed && terms.is_empty() && result.require_approval.is_none();
        let adjustment =
            Adjustment { leave_out: result.denied_by, terms, needs_approval: result.require_approval };
        (!idle).then(|| (id.clone(), adjustment))
    });
    changed.collect()
}

/// The policy's decision about one skill, and its effect on a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PolicyExplanation {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// The result with the rules that led to it.
    #[serde(flatten)]
    pub result: PolicyResult,
    /// The rules about approvals that match it, as text; those for labeled runs, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<String>,
    /// Its state for the request, with and without the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranking: Option<PolicyRanking>,
}

/// A skill's rank in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PolicyRanking {
    /// With the policy: rank from 1 and score; none if it is excluded.
    pub with: Option<(usize, f64)>,
    /// Without the policy.
    pub without: Option<(usize, f64)>,
}

/// The complete explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PolicyReport {
    /// Path of the policy; none in a demo.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub file: Option<PathBuf>,
    /// Whether the file exists.
    pub exists: bool,
    /// Skills with a matching rule, in catalog order; always including the requested one.
    pub skills: Vec<PolicyExplanation>,
    /// Every rule with how many skills it matches.
    pub rules: Vec<PolicyRule>,
    /// Number of rules about approvals.
    #[serde(default)]
    pub approvals: usize,
}

/// A rule and the number of skills that it matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PolicyRule {
    /// What it does.
    pub effect: Effect,
    /// The rule as parsed, as text.
    pub rule: String,
    /// Its line in the file.
    pub line: u32,
    /// Skills of the catalog that it matches; a rule for labeled runs is compared without its labels.
    pub skills: usize,
    /// Labels that a run needs to match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// Returns the rules about approvals of the runs of a skill. Those that need a label apply to runs with it.
pub fn approval_rules(policy: &Policy, catalog: &Catalog, skill: &Skill) -> Vec<String> {
    let subject = properties(catalog, skill);
    let rules = policy.approvals.iter();
    rules
        .filter(|rule| rule.criteria.without_labels().fit_anywhere(&subject))
        .map(ApprovalRule::describe)
        .collect()
}

/// Returns every rule with the number of skills that it matches: one that matches none is often misspelled.
pub fn reach(policy: &Policy, catalog: &Catalog) -> Vec<PolicyRule> {
    let subjects: Vec<SkillProperties<'_>> =
        all_properties(catalog).map(|(_, properties)| properties).collect();
    let of_rule = |rule: &policy::Rule| {
        // Only runs have labels.
        let unlabeled = policy::Rule { criteria: rule.criteria.without_labels(), ..rule.clone() };
        PolicyRule {
            effect: rule.effect,
            rule: rule.describe(),
            line: rule.line,
            labels: rule.criteria.label.clone(),
            skills: subjects.iter().filter(|subject| unlabeled.fits(subject)).count(),
        }
    };
    policy.rules.iter().map(of_rule).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "the tests' scratch folder")]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::catalog;
    use skills_config::Env;
    use skills_registry::FolderLink;

    fn file(dir: &Path) -> PolicyFile {
        let config = Config::defaults(dir, &Env::at(dir));
        PolicyFile::of(&config)
    }

    #[test]
    fn edited_policy_is_reloaded_and_an_invalid_one_denies() {
        let dir = tempfile::tempdir().unwrap();
        let policy = file(dir.path());
        assert!(policy.current().unwrap().is_empty(), "none is none");
        let path = policy.path().unwrap().to_owned();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "deny: [{id: pdf}]\n").unwrap();
        let catalog = catalog(&[("pdf", "pdf"), ("mail", "mail")]);
        let adjusted = policy.adjustments(&catalog).unwrap();
        let left = adjusted.of(&SkillId::new("pdf")).unwrap().leave_out.clone();
        assert_eq!(left.unwrap(), "deny id pdf (line 1)");
        assert!(adjusted.of(&SkillId::new("mail")).is_none());
        fs::write(&path, "deny: [{id: mail}]\n").unwrap();
        let adjusted = policy.adjustments(&catalog).unwrap();
        assert!(adjusted.of(&SkillId::new("pdf")).is_none());
        #[cfg(unix)]
        {
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(dir.path().join("missing"), &path).unwrap();
            let error = policy.adjustments(&catalog).unwrap_err();
            assert_eq!(error.code, Code::InvalidConfiguration, "a link without a target is not “no policy”");
            fs::remove_file(&path).unwrap();
        }
        fs::write(&path, "denny: []\n").unwrap();
        let error = policy.adjustments(&catalog).unwrap_err();
        assert_eq!(error.code, Code::InvalidConfiguration);
        assert!(error.message.contains("policy.yaml:1:1"), "{}", error.message);
    }

    #[test]
    fn a_rule_restricts_a_skill_at_each_of_many_linked_paths() {
        let mut catalog = catalog(&[("pdf", "pdf"), ("mail", "mail")]);
        let links = |name: &'static str, target: &'static str| {
            (10..60).map(move |number| FolderLink {
                location: format!("/repo/{name}{number}").into(),
                root: 0,
                target: target.into(),
            })
        };
        catalog.links = links("all", "/skills").chain(links("own", "/skills/pdf")).collect();
        for (rule, id, denied) in [
            ("root: /repo/all59", "mail", true),
            ("root: /repo/all59/mail", "mail", true),
            ("root: /repo/all59/mail", "pdf", false),
            ("root: /repo", "mail", true),
            ("root: /repo/all5", "mail", false),
            ("id: own59", "pdf", true),
            ("id: own59", "mail", false),
            ("id: own59, root: /repo/own59", "pdf", true),
            ("id: own59, root: /repo/own58", "pdf", false),
            ("id: mail, root: /repo/own59", "mail", false),
        ] {
            let text = format!("deny: [{{{rule}}}]");
            let policy = policy::parse(Path::new("/h/policy.yaml"), &text, Path::new("/h")).unwrap();
            let result = policy_result(&policy, &catalog, catalog.by_id(id).unwrap());
            assert_eq!(!result.allowed, denied, "{rule}, {id}");
        }
        // Links to a common folder are compared at once, links to the folder of a skill give it an id each.
        let compared: Vec<usize> =
            all_properties(&catalog).map(|(_, properties)| properties.linked_paths.len()).collect();
        assert_eq!(compared, [51, 1]);
    }

    #[test]
    fn configured_policy_file_must_exist() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::defaults(dir.path(), &Env::at(dir.path()));
        config.policy_file = Some(dir.path().join("none.yaml"));
        assert!(PolicyFile::of(&config).current().is_err());
        config.demo = true;
        assert!(PolicyFile::of(&config).current().unwrap().is_empty());
    }
}
