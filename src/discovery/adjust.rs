//! Adjustments of a ranking by a policy: additional score terms for single skills, and skills to exclude, each with
//! its reason. The router does not know the policy; it only includes these terms in the sums and in the breakdown.

use std::collections::HashMap;

use skills_skill::SkillId;

/// The adjustment of one skill.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Adjustment {
    /// Why the skill is excluded from the results, as a sentence.
    pub leave_out: Option<String>,
    /// Additional score terms, each with its label.
    pub terms: Vec<(String, f64)>,
    /// Why running the skill requires approval; `None` if it does not.
    pub needs_approval: Option<String>,
}

/// Adjustments by skill; a skill without an entry is ranked unchanged.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Adjustments(HashMap<SkillId, Adjustment>);

impl Adjustments {
    /// Returns whether no skill is adjusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the adjustment of a skill, if any.
    #[must_use]
    pub fn of(&self, skill: &SkillId) -> Option<&Adjustment> {
        if self.0.is_empty() { None } else { self.0.get(skill) }
    }
}

impl FromIterator<(SkillId, Adjustment)> for Adjustments {
    fn from_iter<I: IntoIterator<Item = (SkillId, Adjustment)>>(adjustments: I) -> Self {
        Self(adjustments.into_iter().collect())
    }
}

impl Adjustment {
    /// Returns the sum of the terms.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.terms.iter().map(|(_, value)| value).sum()
    }
}
