//! Who may approve the gates of a run, and how many approvals are required.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::matching::Criteria;
use skills_base::duration::age;
use skills_skill::contract::ContractApprovals;

/// Whose approval does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExcludedApprover {
    /// The person who started the run.
    Starter,
}

/// One rule of `approvals`.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ApprovalRule {
    /// The skills to which it applies; all skills without criteria.
    #[serde(flatten)]
    pub criteria: Criteria,
    /// Number of different people who have to approve.
    pub need: u32,
    /// Whose approval does not count.
    pub not_by: Option<ExcludedApprover>,
    /// Who may approve, as names of keys and `scope:NAME`; anyone if it is empty.
    pub of: Vec<String>,
    /// Time in seconds after which others are notified of a waiting gate.
    pub escalate_after_s: Option<u64>,
    /// Who is notified and may then approve as well.
    pub escalate_to: Vec<String>,
    /// Its line in the file, from 1.
    pub line: u32,
}

impl ApprovalRule {
    /// Returns the rule as text: `approvals id deploy*: need 2, not by starter, of ana, kim (line 3)`.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        if self.need > 1 {
            parts.push(format!("need {}", self.need));
        }
        if self.not_by == Some(ExcludedApprover::Starter) {
            parts.push("not by starter".to_owned());
        }
        if !self.of.is_empty() {
            parts.push(format!("of {}", self.of.join(", ")));
        }
        if let Some(after_s) = self.escalate_after_s {
            let after = age(i64::try_from(after_s).unwrap_or(i64::MAX).saturating_mul(1_000));
            parts.push(format!("escalate after {after} to {}", self.escalate_to.join(", ")));
        }
        let criteria = self.criteria.describe();
        let of = if criteria.is_empty() { "approvals".to_owned() } else { format!("approvals {criteria}") };
        let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        format!("{of}{parts} (line {})", self.line)
    }
}

/// The combined requirements of all rules for the approvals of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RequiredApprovals {
    /// Number of different people who have to approve.
    pub need: u32,
    /// Whether an approval by the person who started the run does not count.
    pub not_by_starter: bool,
    /// Lists of possible approvers: an approver must be in each of them, or in its escalation.
    pub of: Vec<Vec<String>>,
    /// Time in seconds after which others are notified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_after_s: Option<u64>,
    /// Who is notified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalate_to: Vec<String>,
    /// Who may approve as well after some time, for lists of `of`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalations: Vec<Escalation>,
}

/// Who may approve instead of those of one list after some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Escalation {
    /// Index of the list in `of`.
    pub list: usize,
    /// The time in seconds.
    pub after_s: u64,
    /// Names of keys and `scope:NAME`.
    pub to: Vec<String>,
}

impl Default for RequiredApprovals {
    fn default() -> Self {
        Self {
            need: 1,
            not_by_starter: false,
            of: Vec::new(),
            escalate_after_s: None,
            escalate_to: Vec::new(),
            escalations: Vec::new(),
        }
    }
}

/// A person who wants to approve.
#[derive(Debug, Clone, Copy)]
pub struct Approver<'a> {
    /// Their names: that of the key or the account, and the one they provided.
    pub names: &'a [&'a str],
    /// The scopes of their key.
    pub scopes: &'a BTreeSet<String>,
}

impl RequiredApprovals {
    /// Combines several rules into the strictest requirements.
    pub(super) fn of<'r>(rules: impl Iterator<Item = &'r ApprovalRule>) -> Self {
        let mut all = Self::default();
        for rule in rules {
            all.need = all.need.max(rule.need);
            all.not_by_starter |= rule.not_by == Some(ExcludedApprover::Starter);
            if !rule.of.is_empty() {
                // It opens the list of its own rule only: a further rule must not weaken this one.
                let list = all.of.len();
                let escalation = rule.escalate_after_s.map(|after_s| Escalation {
                    list,
                    after_s,
                    to: rule.escalate_to.clone(),
                });
                all.escalations.extend(escalation);
                all.of.push(rule.of.clone());
            }
            if let Some(after) = rule.escalate_after_s {
                all.escalate_after_s = Some(all.escalate_after_s.map_or(after, |earlier| earlier.min(after)));
                all.escalate_to.extend(rule.escalate_to.iter().cloned());
            }
        }
        all
    }

    /// Adds what a contract requires: it can only raise the requirements.
    pub fn raise(&mut self, contract: &ContractApprovals) {
        self.need = self.need.max(contract.need);
        self.not_by_starter |= contract.not_by_starter;
    }

    /// Returns whether more is required than one approval by anyone.
    pub fn is_strict(&self) -> bool {
        self.need > 1 || self.not_by_starter || !self.of.is_empty()
    }

    /// Returns for each list who may approve a gate that has waited this long, in seconds: those of the list, and of its
    /// escalation.
    pub fn approvers(&self, waited_s: u64) -> impl Iterator<Item = Vec<&str>> {
        self.of.iter().enumerate().map(move |(at, list)| {
            let own = self.escalations.iter().filter(move |one| one.list == at && waited_s >= one.after_s);
            list.iter().chain(own.flat_map(|escalation| &escalation.to)).map(String::as_str).collect()
        })
    }

    /// Returns why an approval does not count; `None` if it does. `starters` are the person who started the run, first, and
    /// those who changed its inputs since, `waited_s` is how long the gate has waited, in seconds.
    pub fn refuses<'r>(
        &self,
        approver: Approver<'_>,
        starters: impl IntoIterator<Item = &'r str>,
        waited_s: u64,
    ) -> Option<String> {
        if self.not_by_starter
            && let Some((at, name)) =
                starters.into_iter().enumerate().find(|(_, name)| approver.names.contains(name))
        {
            let did = if at == 0 { "started the run" } else { "chose inputs of the run" };
            return Some(format!("{name} {did} and cannot approve it; another person must"));
        }
        let is_on = |list: &[&str]| {
            list.iter().any(|entry| match entry.strip_prefix("scope:") {
                Some(scope) => approver.scopes.contains(scope),
                None => approver.names.contains(entry),
            })
        };
        let missing = self.approvers(waited_s).find(|names| !is_on(names))?;
        Some(format!("the policy allows approvals by {} only", missing.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Policy, SkillProperties, parse};
    use super::*;
    use skills_skill::{EffectMode, Role};

    fn policy(text: &str) -> Result<Policy, String> {
        parse(Path::new("/h/policy.yaml"), text, Path::new("/h")).map_err(|error| error.to_string())
    }

    fn required(text: &str, id: &str, env: &str) -> RequiredApprovals {
        let labels = [("env".to_owned(), env.to_owned())].into();
        let (location, tags) = (Path::new("/s/SKILL.md"), []);
        let (role, effect) = (Role::Procedure, EffectMode::Enrich);
        let subject = SkillProperties {
            id,
            tags: &tags,
            domain: None,
            role,
            effect,
            location,
            root: "",
            other_paths: Vec::new(),
            linked_paths: Vec::new(),
            labels: &labels,
        };
        policy(text).unwrap().approvals(&[subject])
    }

    #[test]
    fn the_strictest_rules_count_together() {
        let text = "approvals:\n- {label: env=prod, need: 2, not_by: starter}\n- {id: deploy*, of: [ana, 'scope:admin']}\n";
        let all = required(text, "deploy-web", "prod");
        assert_eq!((all.need, all.not_by_starter), (2, true));
        assert_eq!(all.of, [["ana", "scope:admin"]]);
        assert_eq!(required(text, "deploy-web", "test").need, 1);
        assert_eq!(required(text, "report", "test"), RequiredApprovals::default());
        assert_eq!(required("approvals: {need: 3}\n", "x", "y").need, 3, "one rule needs no list");
    }

    #[test]
    fn approval_counts_by_name_scope_and_time() {
        let text = "approvals: {not_by: starter, of: [ana, 'scope:admin'], escalate_after: 1h, escalate_to: [boss]}\n";
        let rules = required(text, "x", "y");
        let none = BTreeSet::new();
        let admin = BTreeSet::from(["admin".to_owned()]);
        let refuses = |name: &str, scopes, waited| {
            rules.refuses(Approver { names: &[name], scopes }, ["kim", "lee"], waited).is_some()
        };
        assert!(!refuses("ana", &none, 0));
        assert!(refuses("bo", &none, 0));
        assert!(!refuses("bo", &admin, 0));
        let why = |name: &str| {
            rules.refuses(Approver { names: &[name], scopes: &admin }, ["kim", "lee"], 0).unwrap()
        };
        assert_eq!(why("kim"), "kim started the run and cannot approve it; another person must");
        assert_eq!(why("lee"), "lee chose inputs of the run and cannot approve it; another person must");
        assert!(refuses("boss", &none, 3_599) && !refuses("boss", &none, 3_600));
        let approvers = |waited| rules.approvers(waited).collect::<Vec<_>>();
        assert_eq!(approvers(3_599), [["ana", "scope:admin"]]);
        assert_eq!(approvers(3_600), [["ana", "scope:admin", "boss"]], "the escalation may approve as well");
    }

    #[test]
    fn an_escalation_opens_the_list_of_its_own_rule_only() {
        let text = "approvals:\n- {id: pay, of: [boss]}\n- {label: env=test, escalate_after: 5s, escalate_to: [kim]}\n- {id: pay, of: [lee], escalate_after: 1h, escalate_to: [boss]}\n";
        let rules = required(text, "pay", "test");
        let none = BTreeSet::new();
        let refuses = |names: &[&str], waited| rules.refuses(Approver { names, scopes: &none }, [], waited);
        assert!(refuses(&["kim"], 10).is_some() && refuses(&["boss"], 10).is_some());
        assert_eq!(refuses(&["boss"], 3_600), None);
        assert_eq!(refuses(&["boss", "lee"], 0), None);
        assert!(refuses(&["kim"], 3_600).is_some() && refuses(&["lee"], 3_600).is_some());
    }

    #[test]
    fn rule_is_described_with_its_line() {
        let text = "approvals:\n- {id: deploy*, need: 2, not_by: starter, of: [ana], escalate_after: 2h, escalate_to: [boss]}\n- {label: env=prod}\n";
        let rules: Vec<String> = policy(text).unwrap().approvals.iter().map(ApprovalRule::describe).collect();
        assert_eq!(
            rules,
            [
                "approvals id deploy*: need 2, not by starter, of ana, escalate after 2 h to boss (line 2)",
                "approvals label env=prod (line 3)",
            ]
        );
    }

    #[test]
    fn errors_name_their_location() {
        for (text, message) in [
            ("approvals: {need: 0}\n", "`need` is 0"),
            ("approvals:\n- {id: a, needs: 2}\n", "policy.yaml:2:"),
            ("approvals: {escalate_after: soon}\n", "`escalate_after` is `soon`"),
            ("approvals: all\n", "policy.yaml:1:"),
        ] {
            let error = policy(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
