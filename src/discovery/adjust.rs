//! Adjustments of the order by a policy: score terms for single skills, and skills to leave out, each with its reason.
//! The router knows nothing of why; it keeps the sums right and shows every one of them.

use std::collections::HashMap;

use skills_skill::SkillId;

/// What becomes of one skill.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Adjustment {
    /// Why the skill is left out of the results, as a sentence.
    pub leave_out: Option<String>,
    /// Terms of its score, each with its label.
    pub terms: Vec<(String, f64)>,
    /// A person is asked before it runs; why.
    pub needs_approval: Option<String>,
}

/// Adjustments by skill; a skill without one is taken as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Adjustments(HashMap<SkillId, Adjustment>);

impl Adjustments {
    /// Whether nothing is adjusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The adjustment for a skill, if any.
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
    /// What its terms add together.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.terms.iter().map(|(_, value)| value).sum()
    }
}
