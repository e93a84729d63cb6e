//! The combined result of all rules for one skill.

use serde::{Deserialize, Serialize};
use strum::Display;

use super::approvals::{ApprovalRule, RequiredApprovals};
use super::matching::{Criteria, SkillProperties, real_roots};

/// Maximum sum of all preferences in a score: enough to decide between two skills that fit about equally well, too
/// little to promote one that does not fit.
pub const MAX_PREFERENCE: f64 = 0.5;

/// The effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Effect {
    /// Adds it to the allowed skills.
    Allow,
    /// It must not be found, run or attached.
    Deny,
    /// Requires approval before the first step.
    RequireApproval,
    /// Adds a term to the score.
    Prefer,
}

/// One rule of the file.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Rule {
    /// Its effect.
    pub effect: Effect,
    /// The skills to which it applies.
    #[serde(flatten)]
    pub criteria: Criteria,
    /// The reason, in the user's words.
    pub reason: Option<String>,
    /// The score term of a preference.
    pub by: Option<f64>,
    /// Its line in the file, from 1.
    pub line: u32,
}

impl Rule {
    /// Returns whether it applies to a skill.
    pub fn fits(&self, subject: &SkillProperties<'_>) -> bool {
        match self.effect {
            Effect::Deny | Effect::RequireApproval => self.criteria.fit_anywhere(subject),
            Effect::Allow | Effect::Prefer => self.criteria.fit(subject),
        }
    }

    /// Returns the rule as text: `deny id deploy.* (line 4: through the pipeline only)`.
    pub fn describe(&self) -> String {
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{} {} (line {}{reason})", self.effect, self.criteria.describe(), self.line)
    }
}

/// A rule that matched, and whether it has an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RuleMatch {
    /// Its effect.
    pub effect: Effect,
    /// The rule as text.
    pub rule: String,
    /// Its line in the file.
    pub line: u32,
    /// Its contribution to the score, if any, after applying the bound.
    pub by: Option<f64>,
    /// False if a `deny` overrides it.
    pub counts: bool,
}

/// The result of the policy for a skill.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PolicyResult {
    /// Whether it may be found, run and attached.
    pub allowed: bool,
    /// The rule that denies it, if any.
    pub denied_by: Option<String>,
    /// The first rule in the file that requires approval before the first step, if any.
    pub require_approval: Option<String>,
    /// Its contribution to the score.
    pub prefer: f64,
    /// Every rule that matched, in the order of the file's effects: deny, allow, require approval, prefer.
    pub rules: Vec<RuleMatch>,
}

/// All rules. Without rules, everything is allowed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Policy {
    /// The rules, grouped as deny, allow, require approval, prefer; within each group in file order.
    pub rules: Vec<Rule>,
    /// Who may approve, and how many approvals are required.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalRule>,
}

impl Policy {
    /// Returns the combined requirements for approvals of a run of these skills.
    pub fn approvals(&self, subjects: &[SkillProperties<'_>]) -> RequiredApprovals {
        let fits = |rule: &&ApprovalRule| subjects.iter().any(|subject| rule.criteria.fit_anywhere(subject));
        RequiredApprovals::of(self.approvals.iter().filter(fits))
    }

    /// Returns whether the folders of all rules still have the real paths that were read.
    pub fn is_resolved(&self) -> bool {
        let rules = self.rules.iter().map(|rule| &rule.criteria);
        let mut all = rules.chain(self.approvals.iter().map(|rule| &rule.criteria));
        all.all(|criteria| criteria.real_roots == real_roots(&criteria.root))
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.approvals.is_empty()
    }

    /// Returns the combined result of the rules for a skill.
    pub fn result(&self, subject: &SkillProperties<'_>) -> PolicyResult {
        let fitting: Vec<&Rule> = self.rules.iter().filter(|rule| rule.fits(subject)).collect();
        let first =
            |effect: Effect| fitting.iter().find(|rule| rule.effect == effect).map(|rule| rule.describe());
        let listed = self.rules.iter().any(|rule| rule.effect == Effect::Allow);
        let denied_by = first(Effect::Deny).or_else(|| {
            let missing = listed && first(Effect::Allow).is_none();
            missing.then(|| "no `allow` rule matches, so it is denied".to_owned())
        });
        let allowed = denied_by.is_none();
        let mut prefer = 0.0;
        let rules = fitting
            .iter()
            .map(|rule| {
                let counts = allowed || rule.effect == Effect::Deny;
                let by = rule.by.map(|by| by.min(MAX_PREFERENCE - prefer)).filter(|_| counts);
                prefer += by.unwrap_or(0.0);
                RuleMatch { effect: rule.effect, rule: rule.describe(), line: rule.line, by, counts }
            })
            .collect();
        let require_approval = first(Effect::RequireApproval).filter(|_| allowed);
        PolicyResult { allowed, denied_by, require_approval, prefer, rules }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::parse;
    use super::*;
    use crate::policy::SkillPath;
    use skills_skill::{EffectMode, Role};

    fn policy(text: &str) -> Policy {
        parse(Path::new("/h/policy.yaml"), text, Path::new("/home/ann")).unwrap()
    }

    fn result(policy: &Policy, id: &str) -> PolicyResult {
        let tags = ["production".to_owned()];
        policy.result(&SkillProperties {
            id,
            tags: &tags,
            domain: Some("ops"),
            role: Role::Procedure,
            effect: EffectMode::ControlSignal,
            location: Path::new("/home/ann/skills/x/SKILL.md"),
            labels: &std::collections::BTreeMap::new(),
            root: "~/skills",
            other_paths: Vec::new(),
            linked_paths: Vec::new(),
        })
    }

    #[test]
    fn a_linked_skill_is_restricted_as_at_its_other_paths() {
        let others = [("/home/ann/own/deploy/SKILL.md", ""), ("/home/ann/team/ship/SKILL.md", "team")];
        let linked = |text: &str| {
            policy(text).result(&SkillProperties {
                id: "helper",
                tags: &[],
                domain: None,
                role: Role::Procedure,
                effect: EffectMode::Enrich,
                location: Path::new("/home/ann/repo/helper/SKILL.md"),
                labels: &std::collections::BTreeMap::new(),
                root: "repo",
                other_paths: others.map(|(path, root)| SkillPath::new(Path::new(path), root)).into(),
                linked_paths: Vec::new(),
            })
        };
        for text in [
            "deny: [{id: deploy}]",
            "deny: [{id: ship}]",
            "deny: [{root: ~/own}]",
            "deny: [{root: team}]",
            "deny: [{id: '*', except: helper}]",
        ] {
            assert!(!linked(text).allowed, "{text}");
            let approval = text.replace("deny", "require_approval");
            assert!(linked(&approval).require_approval.is_some(), "{approval}");
        }
        for text in ["deny: [{id: deploy, except: deploy}]", "deny: [{id: deploy, root: team}]"] {
            assert!(linked(text).allowed, "{text}");
        }
        assert!(!linked("allow: [{id: deploy}]").allowed, "only its own path permits it");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_a_link_reaches_restricts_its_real_path() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join("data/clones")).unwrap();
        std::os::unix::fs::symlink("data/clones", home.join("clones")).unwrap();
        let location = home.join("data/clones/repo/skills/fmt/SKILL.md");
        let subject = SkillProperties {
            id: "fmt",
            tags: &[],
            domain: None,
            role: Role::Procedure,
            effect: EffectMode::Enrich,
            location: &location,
            labels: &std::collections::BTreeMap::new(),
            root: "./skills",
            other_paths: Vec::new(),
            linked_paths: Vec::new(),
        };
        let policy = |text: &str| parse(&home.join("policy.yaml"), text, &home).unwrap();
        for folder in ["~/clones", "~/clones/repo", "./clones", "~/data/clones"] {
            let rule = format!("[{{root: {folder}, reason: cloned}}]");
            assert!(!policy(&format!("deny: {rule}")).result(&subject).allowed, "{folder}");
            let approval = policy(&format!("require_approval: {rule}")).result(&subject);
            assert!(approval.require_approval.is_some(), "{folder}");
            let approvals = policy(&format!("approvals: [{{root: {folder}, need: 2}}]"));
            assert_eq!(approvals.approvals(std::slice::from_ref(&subject)).need, 2, "{folder}");
        }
        assert!(policy("deny: [{root: ~/clones/other}]").result(&subject).allowed);
        assert!(!policy("allow: [{root: ~/clones}]").result(&subject).allowed, "it permits as written");
        let before = policy("deny: [{root: ~/clones}]");
        assert!(before.is_resolved());
        std::fs::remove_file(home.join("clones")).unwrap();
        std::os::unix::fs::symlink("data", home.join("clones")).unwrap();
        assert!(!before.is_resolved());
    }

    #[test]
    fn without_rules_everything_is_allowed() {
        assert!(result(&Policy::default(), "a").allowed);
        assert!(policy("").is_empty());
    }

    #[test]
    fn deny_has_precedence_in_any_position() {
        for text in [
            "deny: [{id: a}]\nallow: [{id: '*'}]\nprefer: [{id: a}]\n",
            "prefer: [{id: a}]\nallow: [{id: '*'}]\ndeny: [{id: a}]\n",
        ] {
            let result = result(&policy(text), "a");
            assert!(!result.allowed && result.prefer == 0.0, "{result:?}");
            assert!(result.denied_by.unwrap().starts_with("deny id a (line "));
            assert_eq!(result.rules.iter().filter(|rule| rule.counts).count(), 1);
            assert_eq!(result.rules.len(), 3, "what is idle is listed too");
        }
    }

    #[test]
    fn allow_rules_deny_everything_else() {
        let policy = policy("allow:\n  - {domain: docs}\n  - {id: 'deploy.*', except: deploy.prod}\n");
        assert!(result(&policy, "deploy.staging").allowed);
        let denied = result(&policy, "deploy.prod").denied_by.unwrap();
        assert!(denied.contains("`allow`"), "{denied}");
        assert!(!result(&policy, "other").allowed);
    }

    #[test]
    fn shadowed_copy_is_matched_by_its_original_id() {
        let policy = policy("deny: [{id: deploy}]\n");
        assert!(!result(&policy, "deploy@3f9a01c2").allowed);
        assert!(result(&policy, "deploy2@3f9a01c2").allowed);
    }

    #[test]
    fn rule_matches_all_criteria_with_any_value_of_each() {
        let policy = policy(
            "require_approval:\n  - {tag: [production, live], effect: control_signal, role: utility}\n  \
             - {tag: [live, Production], effect: control_signal, reason: ask first}\n",
        );
        let result = result(&policy, "a");
        let rule = result.require_approval.unwrap();
        assert_eq!(
            rule,
            "require_approval tag live or Production and effect control_signal (line 3: ask first)"
        );
    }

    #[test]
    fn roots_are_named_by_folder_or_by_label() {
        for (root, fits) in [
            ("~/skills", true),
            ("/home/ann/skills/", true),
            ("~/skill", false),
            ("shipped", false),
            ("\"*skills\"", true),
        ] {
            let policy = policy(&format!("deny: [{{root: {root}}}]\n"));
            assert_eq!(!result(&policy, "a").allowed, fits, "{root}");
        }
    }

    #[test]
    fn sum_of_preferences_is_limited() {
        let policy =
            policy("prefer:\n  - {id: a, by: 0.4}\n  - {tag: production, by: 0.3}\n  - {domain: docs}\n");
        let result = result(&policy, "a");
        assert!((result.prefer - MAX_PREFERENCE).abs() < 1e-12);
        let each: f64 = result.rules.iter().filter_map(|rule| rule.by).sum();
        assert!((each - result.prefer).abs() < 1e-12, "{:?}", result.rules);
    }
}
